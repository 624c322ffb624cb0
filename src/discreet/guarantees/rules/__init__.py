"""The rules a ledger may add costs by."""
