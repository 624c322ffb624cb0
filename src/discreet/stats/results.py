"""What statistics return: estimates for the population with their intervals, and the evidence of tests."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from discreet import html
from discreet.errors import InvalidArgument
from discreet.exact.rational import exactly
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.releases import Release
from discreet.stats.inference.noisy_shares import ALTERNATIVES, Alternative

Of = Literal["population", "value"]


class Inference(Protocol):
    """What follows from released numbers about one number of the population. No true value is in it."""

    @property
    def value(self) -> float:
        """The best estimate."""

    def p_value(self, null: float, alternative: Alternative) -> float:
        """How probable an estimate so far from `null` would be if `null` were true."""

    def interval(self, confidence: float, *, sampled: bool = True) -> tuple[float, float]:
        """Values for the population that fit the released numbers, or, if not `sampled`, for the rows themselves."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What a test says against a hypothesis.

    `p_value` is the probability, if the hypothesis were true, of numbers that speak against it as strongly as the
    released ones do. It accounts for sampling and for the noise. `assumed` says what has to hold besides.
    """

    test: str
    hypothesis: str
    p_value: float
    statistic: float | None = None
    assumed: tuple[str, ...] = ()

    def rejects(self, level: float = 0.05) -> bool:
        """Whether the hypothesis is rejected at this level."""
        return self.p_value <= check_confidence(level)

    def __str__(self) -> str:
        return f"{self.test}: {self.hypothesis}; {p_said(self.p_value)}{said(self.assumed)}"

    def _repr_html_(self) -> str:
        facts = {"test": self.test, "hypothesis": self.hypothesis, "p-value": p_text(self.p_value)}
        return html.facts(facts | ({"assumed": "; ".join(self.assumed)} if self.assumed else {}))


@dataclass(frozen=True, kw_only=True)
class Estimate(Release):
    """An estimate for the population that the rows are a sample of.

    `what` says what is estimated. `assumed` says what has to hold for the intervals besides the declarations. It is
    empty if all ranges were declared.
    """

    what: str
    assumed: tuple[str, ...] = ()
    _inference: Any = field(repr=False, default=None)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """The ends between which the value for the population lies: sampling and noise are both accounted for."""
        return self._inference.interval(check_confidence(confidence))  # type: ignore[no-any-return]

    def error(self, confidence: float = 0.95, *, of: Of = "population") -> Accuracy:
        """How far the value may be from that of the population, or, with `of="value"`, from that of the rows."""
        sure = check_confidence(confidence)
        if of not in ("population", "value"):
            raise InvalidArgument('of must be "population" or "value".', code="not-an-option")
        low, high = self._inference.interval(sure, sampled=of == "population")
        return Accuracy(amount=max(high - self.value, self.value - low), confidence=sure, of=of)

    def test(self, null: float = 0.0, *, alternative: Alternative = "two-sided") -> Evidence:
        """Test the hypothesis that the value for the population is `null`, at no further cost."""
        at = float(exactly(null, "null"))
        relation = {"two-sided": "=", "greater": "≤", "less": "≥"}[check_alternative(alternative)]
        return Evidence(
            test=f"{self.what}, {alternative}",
            hypothesis=f"it is {relation} {at:g} in the population",
            p_value=self._inference.p_value(at, alternative),
            statistic=self.value,
            assumed=self.assumed,
        )

    def _value_text(self) -> str:
        low, high = self.interval(0.95)
        shown = digits_for((high - low) / 2)
        ends = f"{low:,.{shown}f} to {high:,.{shown}f}"
        return f"{self.what}: {self.value:,.{shown}f}, in the population {ends} (95%){said(self.assumed)}"

    def _repr_html_(self) -> str:
        low, high = self.interval(0.95)
        shown = digits_for((high - low) / 2)
        facts = {
            self.what: f"{self.value:,.{shown}f}",
            "in the population (95%)": f"{low:,.{shown}f} to {high:,.{shown}f}",
        }
        assumed = {"assumed": "; ".join(self.assumed)} if self.assumed else {}
        return html.facts(facts | assumed) + html.note("; ".join(self.notes()))


@dataclass(frozen=True, kw_only=True)
class Difference(Estimate):
    """The difference of two groups: the second one less the first."""

    @property
    def difference(self) -> float:
        """The estimate itself."""
        return float(self.value)

    @property
    def p_value(self) -> float:
        """The p-value of the hypothesis that there is no difference in the population."""
        return self.test(0.0).p_value


def check_alternative(alternative: Any) -> Alternative:
    """A typed error unless it is "two-sided", "greater" or "less"."""
    if alternative not in ALTERNATIVES:
        raise InvalidArgument('alternative must be "two-sided", "greater" or "less".', code="not-an-option")
    return alternative  # type: ignore[no-any-return]


def p_text(p: float) -> str:
    """A p-value as people write it."""
    return "< 0.0001" if p < 1e-4 else f"{p:.4f}" if p < 0.1 else f"{p:.3f}"


def p_said(p: float) -> str:
    """A p-value in a sentence: p = 0.0123, or p < 0.0001."""
    return f"p {'' if p < 1e-4 else '= '}{p_text(p)}"


def said(assumed: tuple[str, ...]) -> str:
    """The assumptions, after a semicolon."""
    return f"; assumed: {'; '.join(assumed)}" if assumed else ""


def digits_for(half: float) -> int:
    """How many decimals make sense next to an error of this size."""
    return 3 if not half > 0 or not math.isfinite(half) else min(12, max(0, 1 - math.floor(math.log10(half))))
