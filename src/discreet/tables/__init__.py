"""One table, queried by methods."""
