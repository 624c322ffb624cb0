"""The one door: sensitivity, guarantee, charge, draw, release. Nothing leaves by another way."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from discreet import samplers
from discreet.errors import InvalidArgument
from discreet.guarantees.accuracy import Accuracy
from discreet.guarantees.guarantee import Approx, Guarantee, Renyi, ZeroConcentrated
from discreet.ledger import Ledger
from discreet.mechanisms.mechanism import Mechanism, meets
from discreet.sealed import Sealed


@dataclass(frozen=True, kw_only=True)
class Release:
    """What leaves: the noisy value, what it promises, how wrong it may be, and its receipt. Never the true
    answer.
    """

    value: Any
    guarantee: Guarantee
    receipt: str | None = None
    not_private: bool = False
    _mechanism: Any = field(repr=False, default=None)
    _sizes: dict[str, int] = field(repr=False, default_factory=dict)
    _left: Callable[[], Guarantee | None] | None = field(repr=False, default=None)

    @property
    def remaining(self) -> Guarantee | None:
        """The largest release of the ledger's kind that still fitted after this one; None when nothing did."""
        return None if self._left is None else self._left()

    def error(self, confidence: float = 0.95) -> Accuracy:
        """How wrong the value may be, with this confidence."""
        return self._mechanism.error(confidence, **self._sizes)  # type: ignore[no-any-return]

    def __str__(self) -> str:
        shown = [_shown(self.value, self.error(0.95))]
        if self.receipt is None:
            shown.append(str(self.guarantee))
        else:
            shown.append(f"{self.remaining or 'nothing'} remains")
            shown.append(f"receipt {self.receipt}")
        if self.not_private:
            shown.append("NOT PRIVATE: made in test mode")
        return "; ".join(shown)


def _shown(value: Any, accuracy: Any) -> str:
    """A value with its error bar, to as many digits as the error leaves meaning."""
    if not isinstance(accuracy, Accuracy) or accuracy.amount is None:
        return str(value)
    match accuracy.of:
        case "rank":
            return f"{value}, within {accuracy.amount:.0f} ranks (95%)"
        case "score":
            return f"{value}, within {accuracy.amount:.3g} of the best score (95%)"
        case "threshold":
            return f"{value}, told apart within {accuracy.amount:.3g} of the threshold (95%)"
    if isinstance(value, float) and accuracy.amount > 0:
        digits = max(0, 1 - math.floor(math.log10(accuracy.amount)))
        return f"{value:.{digits}f} ± {accuracy.amount:.{digits}f} (95%)"
    return f"{value} ± {accuracy.amount:.3g} (95%)"


def release(
    value: Any,
    mechanism: Mechanism,
    *,
    sensitivity: Any = None,
    ledger: Ledger | None = None,
    query: Any = None,
    rows_per_person: int | None = None,
    stated: Guarantee | None = None,
) -> Release:
    """Answer with noise: charge `ledger` (when given), then draw, then report.

    `value` is the true answer, and `sensitivity` how far one unit can move it: a number, in the mechanism's own norm,
    or a `Sensitivity`. With `query`, `value` is the data: the query is asked of it behind the door and knows its own
    sensitivity, for a person with at most `rows_per_person` rows (the caller's word). `stated` charges a guarantee that
    the mechanism keeps, such as the Approx it was made for, in place of its own loss distribution: a ledger with basic
    sums needs that for Gaussian noise. Every call charges and draws anew.
    """
    if isinstance(mechanism, type) or not isinstance(mechanism, Mechanism):
        raise InvalidArgument("The second argument must be a mechanism, such as dp.Laplace(scale=2).")
    if ledger is not None and not isinstance(ledger, Ledger):
        raise InvalidArgument("ledger must be an open ledger: ledger=dp.Ledger.open(…).")
    if query is not None:
        sensitivity = _sensitivity_of(query, mechanism, sensitivity, ledger, rows_per_person)
    elif hasattr(mechanism, "sensitivity_for"):
        sensitivity = mechanism.sensitivity_for(sensitivity, value)
    guarantee = mechanism.guarantee(sensitivity)
    sizes = mechanism.sizes(value) if query is None and hasattr(mechanism, "sizes") else {}
    if stated is not None:
        guarantee = _restated(guarantee, stated)
    entry = None if ledger is None else ledger.charge(guarantee, asked=repr(mechanism))
    sealed = Sealed(value)
    drawn = sealed.open_with(lambda true: mechanism._draw(true if query is None else query(true)))
    return Release(
        value=drawn,
        guarantee=guarantee if entry is None else entry.guarantee,
        receipt=None if entry is None else entry.receipt,
        not_private=not samplers.is_private(),
        _mechanism=mechanism,
        _sizes=sizes,
        _left=None if ledger is None else ledger.remaining_now(),
    )


def _sensitivity_of(query: Any, mechanism: Any, sensitivity: Any, ledger: Ledger | None, rows: int | None) -> Any:
    """The query's own sensitivity for the ledger's unit."""
    if ledger is None or sensitivity is not None:
        raise InvalidArgument(
            "A query takes its sensitivity from the ledger's unit: give ledger=, and no sensitivity=."
        )
    if hasattr(mechanism, "query"):
        raise InvalidArgument("This mechanism asks a query of its own: give it there, and not to release.")
    if ledger.protects.column is not None and rows is None:
        raise InvalidArgument(
            "The ledger protects a person: say how many of the rows one person may have with rows_per_person=, "
            "and see to it that nobody has more."
        )
    return query.sensitivity(ledger.protects, rows or 1)


def _restated(guarantee: Guarantee, stated: Guarantee) -> Guarantee:
    """What the caller wants charged instead, once it is known to hold."""
    if not isinstance(stated, Approx | ZeroConcentrated | Renyi):
        raise InvalidArgument("stated must be Pure, Approx, ZeroConcentrated or Renyi.")
    if stated.protects is not None and stated.protects != guarantee.protects:
        raise InvalidArgument("stated must name no unit: it is that of the sensitivity or of the ledger.")
    if not meets(guarantee, stated):
        raise InvalidArgument(f"The mechanism does not keep {stated}: it promises {guarantee}. Add noise.")
    return replace(stated, protects=guarantee.protects, trust=guarantee.trust, neighbors=guarantee.neighbors)
