"""PostgreSQL 13 or later."""
