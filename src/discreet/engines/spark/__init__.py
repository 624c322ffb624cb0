"""Apache Spark 3.5 and 4, classic and Connect."""
