"""What leaves, and how it is shown to a person."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from discreet.guarantees.accuracy import Accuracy
from discreet.guarantees.guarantee import Guarantee


@dataclass(frozen=True, kw_only=True)
class Release:
    """What leaves: the noisy value, what it promises, how wrong it may be, and its receipt. Never the true answer.

    A `replayed` one was asked for before: it is the stored answer, and cost nothing this time.
    """

    value: Any
    guarantee: Guarantee
    receipt: str | None = None
    not_private: bool = False
    replayed: bool = False
    _mechanism: Any = field(repr=False, default=None)
    _sizes: dict[str, int] = field(repr=False, default_factory=dict)
    _left: Callable[[], Guarantee | None] | None = field(repr=False, default=None)

    @property
    def remaining(self) -> Guarantee | None:
        """The largest release of the ledger's kind that still fitted when this one was made; None when nothing did."""
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
        if self.replayed:
            shown.append("answered before, at no new cost")
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
        case "every score":
            return f"{value}, each within {accuracy.amount:.3g} of the score that has its place (95%)"
        case "threshold":
            return f"{value}, told apart within {accuracy.amount:.3g} of the threshold (95%)"
    beside = "" if accuracy.ranks is None else f", within {accuracy.ranks:.0f} ranks"
    if isinstance(value, float) and accuracy.amount > 0:
        digits = max(0, 1 - math.floor(math.log10(accuracy.amount)))
        return f"{value:.{digits}f} ± {accuracy.amount:.{digits}f} (95%){beside}"
    return f"{value} ± {accuracy.amount:.3g} (95%){beside}"
