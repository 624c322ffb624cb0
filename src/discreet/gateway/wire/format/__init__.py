"""Messages and values as the bytes of the PostgreSQL protocol."""
