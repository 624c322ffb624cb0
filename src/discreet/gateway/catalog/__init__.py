"""PostgreSQL's catalog of the declared tables, as far as programs ask for it: names and types, and no row."""
