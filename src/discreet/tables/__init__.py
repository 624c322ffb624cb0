"""One table, asked by methods."""
