"""The terms of an answer: what it may cost, how its ε is divided, and the bounds lowered for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypedDict

from discreet.exact.rational import Number, check_delta, exactly
from discreet.guarantees.guarantee import Approx, Guarantee, Pure


class QuestionOptions(TypedDict, total=False):
    """The options of a question: those of `Database.sql`, except for `key`."""

    epsilon: Number | None
    delta: Number | None
    within: Mapping[str, float] | None
    confidence: float
    weights: Mapping[str, Number] | None
    bounds: Mapping[str, int] | None


@dataclass(frozen=True)
class Terms:
    """`weights` divide ε among the columns of the answer. `bounds` lower those of the policy."""

    epsilon: Number
    delta: Number = 0
    weights: Mapping[str, Number] | None = None
    bounds: Mapping[str, int] = field(default_factory=dict)

    def without(self, epsilon: Number, delta: Number = 0) -> Terms:
        """What is left after so much of ε and δ is spent."""
        left = exactly(self.epsilon) - exactly(epsilon), exactly(self.delta) - exactly(delta)
        return replace(self, epsilon=left[0], delta=left[1])

    @property
    def allowed(self) -> Guarantee:
        """What a release may cost."""
        delta = check_delta(self.delta)
        return Approx(epsilon=self.epsilon, delta=delta) if delta else Pure(epsilon=self.epsilon)
