"""The one door: sensitivity, guarantee, charge, draw, release. Nothing leaves by another way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from discreet import samplers
from discreet.errors import InvalidArgument
from discreet.guarantees.accuracy import Accuracy
from discreet.guarantees.guarantee import Guarantee
from discreet.ledger import Ledger
from discreet.mechanisms.mechanism import Mechanism
from discreet.sealed import Sealed


@dataclass(frozen=True, kw_only=True)
class Release:
    """What leaves: the noisy value, what it promises, how wrong it may be, and its receipt. Never the true
    answer.
    """

    value: Any
    guarantee: Guarantee
    receipt: str | None = None
    remaining: Guarantee | None = None
    not_private: bool = False
    _mechanism: Any = field(repr=False, default=None)

    def error(self, confidence: float = 0.95) -> Accuracy:
        """How wrong the value may be, with this confidence."""
        return self._mechanism.error(confidence)  # type: ignore[no-any-return]

    def __str__(self) -> str:
        parts = [f"{self.value}"]
        accuracy = self.error(0.95)
        if isinstance(accuracy, Accuracy) and accuracy.amount is not None and accuracy.of == "value":
            parts[0] += f" ± {accuracy.amount:.4g} (95%)"
        parts.append(f"for {self.guarantee}")
        if self.receipt is not None:
            parts.append(f"{self.remaining} remains" if self.remaining is not None else "nothing remains")
            parts.append(f"receipt {self.receipt}")
        if self.not_private:
            parts.append("NOT PRIVATE: made in test mode")
        return "; ".join(parts)


def release(
    value: Any,
    mechanism: Mechanism,
    *,
    sensitivity: Any = None,
    ledger: Ledger | None = None,
    query: Any = None,
) -> Release:
    """Answer with noise: charge `ledger` (when given), then draw, then report.

    `value` is the true answer, and `sensitivity` how far one unit can move it (a number, in the mechanism's
    own norm, or a `Sensitivity`). With `query`, `value` is the data: the query is asked of it behind the
    door and knows its own sensitivity. Every call charges and draws anew.
    """
    if not isinstance(mechanism, Mechanism):
        raise InvalidArgument("The second argument must be a mechanism, such as dp.Laplace(scale=2).")
    if query is not None:
        if ledger is None or sensitivity is not None:
            raise InvalidArgument(
                "A query takes its sensitivity from the ledger's unit: give ledger=, and no sensitivity=."
            )
        sensitivity = query.sensitivity(ledger.protects)
    elif hasattr(mechanism, "sensitivity_for"):
        sensitivity = mechanism.sensitivity_for(sensitivity, value)
    guarantee = mechanism.guarantee(sensitivity)
    entry = None if ledger is None else ledger.charge(guarantee, asked=repr(mechanism))
    sealed = Sealed(value)
    drawn = sealed.open_with(lambda true: mechanism._draw(true if query is None else query(true)))
    return Release(
        value=drawn,
        guarantee=guarantee if entry is None else entry.guarantee,
        receipt=None if entry is None else entry.receipt,
        remaining=None if ledger is None else ledger.remaining,
        not_private=not samplers.is_private(),
        _mechanism=mechanism,
    )
