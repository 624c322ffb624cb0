"""The PostgreSQL protocol: the gateway for psql, notebooks, JDBC, ODBC and every tool that speaks it."""
