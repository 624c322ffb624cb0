"""DuckDB, embedded: files, Arrow tables and data frames."""
