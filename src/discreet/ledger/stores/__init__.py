"""Where a ledger is stored: SQLite or PostgreSQL, and the checkpoint that notices an old copy."""
