"""What a call returns, and how it is shown to a person."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet.guarantees.accuracy import Accuracy
from discreet.guarantees.guarantee import Guarantee

NOT_PRIVATE = "NOT PRIVATE: made in test mode"
"""What everything says that was made with noise under control, in words and in pictures."""
ANSWERED_BEFORE = "answered before, at no new cost"


@dataclass(frozen=True, kw_only=True)
class Release:
    """The noisy value, its guarantee, its error, and its receipt. Never the true answer.

    If `replayed`, it was requested before: it is the stored answer, and cost nothing this time. `found` says which
    bounds were found privately for it, each a release of its own. `clipped` is the estimated part of counts and sums
    that is lost because some people were scaled down. It is None if nobody was, because bounds are declared. With
    `left_now`, `remaining` is what remains now, also if this was answered before: what remained to another account is
    not shown.
    """

    value: Any
    guarantee: Guarantee
    receipt: str | None = None
    not_private: bool = False
    replayed: bool = False
    found: tuple[str, ...] = ()
    clipped: float | None = None
    left_now: bool = False
    _mechanism: Any = field(repr=False, default=None)
    _sizes: dict[str, int] = field(repr=False, default_factory=dict)
    _left: Callable[[], Guarantee | None] | None = field(repr=False, default=None)
    _said: tuple[str, ...] = field(repr=False, default=())
    _remains: str = field(repr=False, default="")
    """What remains in the words of a gateway, which knows more limits than the ledger."""

    @property
    def remaining(self) -> Guarantee | None:
        """The largest release of the ledger's kind that still fitted after this one. None if nothing did."""
        return None if self._left is None else self._left()

    def error(self, confidence: float = 0.95) -> Accuracy:
        """How large the error may be, with this confidence."""
        return self._mechanism.error(confidence, **self._sizes)  # type: ignore[no-any-return]

    def __str__(self) -> str:
        found = [f"found privately: {', '.join(self.found)}"] if self.found else []
        with np.printoptions(threshold=20):  # of a long array, the first and last numbers
            shown = self._value_text()
        short = [note for note in self.notes() if note not in self._said]
        return "; ".join([shown, *short, *found])

    def _value_text(self) -> str:
        """The value as people read it."""
        return _with_error_bar(self.value, self.error(0.95))

    def notes(self) -> list[str]:
        """The text next to the value: its guarantee, or the remaining budget and the receipt, and its marks. What the
        error of an answer from rows does not cover follows.
        """
        if self.receipt is None:
            return [str(self.guarantee), *self.marks(), *self._said]
        left = self._remains or left_in_words(self.remaining, then=self.left_then)
        return [left, f"receipt {self.receipt}", *self.marks(), *self._said]

    @property
    def left_then(self) -> bool:
        """Whether `remaining` is what remained when this was asked first: since then, more may have been bought."""
        return self.replayed and not self.left_now

    def marks(self) -> list[str]:
        """Notes that say that it was answered before, or that it is not private."""
        marks = [ANSWERED_BEFORE] if self.replayed else []
        return [*marks, NOT_PRIVATE] if self.not_private else marks


class Released:
    """A result that is built from one `release`, with the same guarantee."""

    release: Release

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the whole result."""
        return self.release.guarantee

    @property
    def receipt(self) -> str | None:
        """The entry of the ledger."""
        return self.release.receipt

    @property
    def remaining(self) -> Guarantee | None:
        """What still fitted the ledger after this release."""
        return self.release.remaining

    @property
    def replayed(self) -> bool:
        """Whether this was requested before: the stored answer, at no new cost."""
        return self.release.replayed

    @property
    def not_private(self) -> bool:
        """Whether it was made in test mode."""
        return self.release.not_private


def left_in_words(left: Guarantee | None, *, then: bool) -> str:
    """What remains or, if that is from `then`, what remained when an answer was asked first."""
    return f"{left or 'nothing'} {'remained when it was asked first' if then else 'remains'}"


def below_title(released: Any) -> str:
    """The line below the title of a plot if its content was made in test mode."""
    return f"\n{NOT_PRIVATE}" if released.not_private else ""


def _with_error_bar(value: Any, accuracy: Any) -> str:
    """A value with its error bar, with as many digits as the error makes meaningful."""
    if not isinstance(accuracy, Accuracy) or accuracy.amount is None:
        return str(value)
    match accuracy.of:
        case "rank":
            return f"{value}, within {accuracy.amount:,.0f} ranks (95%)"
        case "score":
            return f"{value}, within {_size(accuracy.amount)} of the best score (95%)"
        case "every score":
            return f"{value}, each within {_size(accuracy.amount)} of the score that has its place (95%)"
        case "threshold":
            return f"{value}, distinguished within {_size(accuracy.amount)} of the threshold (95%)"
        case "people above":
            return f"{value}, exceeded by at most {_size(accuracy.amount)} people more than requested (95%)"
    ranks = "" if accuracy.ranks is None else f", within {accuracy.ranks:,.0f} ranks"
    if isinstance(value, float) and accuracy.amount > 0:
        return f"{with_error(value, accuracy.amount)} (95%){ranks}"
    if isinstance(value, dict) and value and all(type(one) is float for one in value.values()) and accuracy.amount > 0:
        digits = max(0, 1 - math.floor(math.log10(accuracy.amount)))
        value = {name: round(one, digits or None) for name, one in value.items()}
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value
    return f"{text} ± {_size(accuracy.amount)} (95%){ranks}"


def with_error(value: Any, amount: float | None) -> str:
    """A number with its error, with as many digits as that makes meaningful."""
    if amount is None:
        return f"{value} ± ?"
    if isinstance(value, float) and amount > 0:
        digits = max(0, 1 - math.floor(math.log10(amount)))
        return f"{value:,.{digits}f} ± {amount:,.{digits}f}"
    return f"{value:,} ± {_size(amount)}" if isinstance(value, int) else f"{value} ± {_size(amount)}"


def _size(amount: float) -> str:
    return f"{amount:,.0f}" if amount >= 1000 else f"{amount:.3g}"
