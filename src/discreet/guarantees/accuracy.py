"""How wrong an answer may be, and in which sense."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, exactly

MEANINGS = {
    "value": "the answer is within this of the true answer",
    "every value": "all answers at once are within this of the true ones",
    "rank": "the rank of the answer is within this many rows of the requested one",
    "score": "the chosen item's score is within this of the best",
    "every score": "each named item has a score within this of the one that truly has its rank",
    "threshold": "answers this far above or below the threshold are distinguished",
    "holders": "a key that this many people have is shown",
    "people above": "at most this many people more than requested exceed the chosen limit",
    "norm": "the answer is within this of the true one in the L2 norm",
    "fraction wrong": "at most this fraction of the records is changed",
    "excess risk": "the mean loss is within this of the least possible one",
    "population": "the answer is within this of the answer for the population",
}


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """With probability `confidence`, the error is at most `amount`, in the sense that `of` names.

    If no bound is known, `amount` is None and `reason` says why. `float()` gives the amount. For a quantile, `amount`
    is in the unit of the column, and `ranks` is the bound in ranks.

    >>> float(Accuracy(amount=3.0, confidence=0.95))
    3.0
    """

    amount: float | None
    confidence: float
    of: str = "value"
    reason: str = ""
    ranks: float | None = None

    def __post_init__(self) -> None:
        if self.of not in MEANINGS:
            raise InvalidArgument(f"of must be one of {', '.join(MEANINGS)}.", code="not-an-option")
        if self.amount is not None:  # a plain float, even if the amount came from an array
            object.__setattr__(self, "amount", float(self.amount))

    def __float__(self) -> float:
        if self.amount is None:
            raise InvalidArgument(f"No error bound is known: {self.reason}", code="error-not-known")
        return self.amount

    def __str__(self) -> str:
        if self.amount is None:
            return f"no bound known ({self.reason})"
        return f"± {self.amount:.4g} ({100 * self.confidence:.6g}%) of {self.of}"

    def __format__(self, spec: str) -> str:
        return format(float(self), spec) if spec else str(self)

    def __round__(self, digits: int | None = None) -> float:
        return round(float(self), digits)


def check_confidence(confidence: Number) -> float:
    """A confidence, checked to be strictly between 0 and 1."""
    exact = exactly(confidence, "confidence")
    if not 0 < exact < 1:
        raise InvalidArgument("confidence must be strictly between 0 and 1, such as 0.95.", code="out-of-range")
    return float(exact)


def at_most(amount: float, digits: int = 3) -> str:
    """An error bound as text, rounded up, so that the printed bound also holds.

    >>> at_most(0.10229), at_most(0.0294)
    ('0.103', '0.0294')
    """
    rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(repr(float(amount)))
    return f"{float(rounded):#.{digits}g}"


def bernstein(variance: float, largest: float, log: float) -> float:
    """A bound that a sum of independent terms exceeds its mean by with probability at most e^(−log).

    `variance` is that of the sum, and no term is farther than `largest` from its mean. The sum is this far below its
    mean with the same probability. For the mean of n terms, give the variance of one term and log/n.

    >>> round(bernstein(100.0, 1.0, 3.0), 2)
    25.52
    """
    lift = largest * log / 3
    return lift + math.sqrt(lift**2 + 2 * variance * log)
