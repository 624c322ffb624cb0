"""The rules by which a ledger adds up costs."""
