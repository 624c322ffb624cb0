"""What is spent and what remains."""

from discreet.ledger.ledger import Entry, Ledger

__all__ = ["Entry", "Ledger"]
