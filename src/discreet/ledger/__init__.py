"""The ledger: what is spent, what remains, and the durable record of both."""

from discreet.ledger.cost import cost_of
from discreet.ledger.entry import Entry
from discreet.ledger.ledger import Ledger
from discreet.ledger.periods import PartBudget, Period
from discreet.ledger.texts.request import Identity, version_of

__all__ = ["Entry", "Identity", "Ledger", "PartBudget", "Period", "cost_of", "version_of"]
