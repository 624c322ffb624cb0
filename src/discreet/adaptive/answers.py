"""The answers of a study: a value, and how far it may be from the population's, for all answers together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from discreet.errors import InvalidArgument
from discreet.guarantees.accuracy import Accuracy, at_most, check_confidence
from discreet.guarantees.guarantee import Guarantee

Interval = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class StudyAnswer:
    """A value with an interval that holds on the population, together with those of all other answers of its study.

    `agrees` is False if a holdout corrected the guess of the training set, or if a submission is not a new best.
    `guarantee` and `receipt` are those of the whole study. An answer that is `not_private` is a function of the sample.
    """

    value: float
    confidence: float
    remaining: int
    agrees: bool = True
    note: str = ""
    guarantee: Guarantee | None = None
    receipt: str | None = None
    not_private: bool = False
    _interval: Callable[[float], Interval] = field(repr=False)
    _on_sample: Callable[[float], float] | None = field(repr=False, default=None)

    @property
    def interval(self) -> Interval:
        """The interval that contains the population's value, with the study's confidence."""
        return self._interval(self.confidence)

    @property
    def width(self) -> float:
        """How far the value may be from the population's."""
        return float(self.error(self.confidence))

    def error(self, confidence: float | None = None, of: str = "population") -> Accuracy:
        """How large the error may be: on the "population", or, if the value has noise, on the "sample"."""
        sure = self.confidence if confidence is None else check_confidence(confidence)
        if of == "population":
            low, high = self._interval(sure)
            return Accuracy(amount=max(high - self.value, self.value - low), confidence=sure, of=of)
        if of != "sample":
            raise InvalidArgument('of must be "population" or "sample".', code="not-an-option")
        if self._on_sample is None:
            return Accuracy(amount=None, confidence=sure, reason="nothing is known but the interval on the population")
        return Accuracy(amount=self._on_sample(sure), confidence=sure, of="every value")

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        (low, high), left = self.interval, f"{self.remaining} question{'' if self.remaining == 1 else 's'} left"
        within = f"[{-float(at_most(-low, 4)):.4g}, {float(at_most(high, 4)):.4g}]"  # never rounded inward
        shown = [f"{self.value:.4g}, in {within} on the population ({100 * self.confidence:.6g}%)", left]
        if self.note:
            shown.append(self.note)
        if self.guarantee is not None:
            shown.append(str(self.guarantee))
        if self.not_private:
            shown.append("NOT PRIVATE")
        return "; ".join(shown)
