"""Apache Spark."""
