"""The release of a test that is not an estimate: its statistic, its p-value, and what it rejects."""

from __future__ import annotations

from dataclasses import dataclass

from discreet import html
from discreet.guarantees.accuracy import check_confidence
from discreet.releases import Release
from discreet.stats.results import p_said, p_text, said


@dataclass(frozen=True, kw_only=True)
class Tested(Release):
    """A test as one release. `value` has the released numbers that the test is computed from.

    `p_value` is the probability, if the hypothesis were true, of numbers that speak against it as strongly as the
    released ones do. It accounts for sampling and for the noise. `assumed` says what has to hold besides.
    """

    test: str
    hypothesis: str
    statistic: float
    p_value: float
    assumed: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    """What would make the test more powerful."""

    def rejects(self, level: float = 0.05) -> bool:
        """Whether the hypothesis is rejected at this level."""
        return self.p_value <= check_confidence(level)

    def _value_text(self) -> str:
        return f"{self.test}: {self.hypothesis}; {p_said(self.p_value)}{said(self.assumed)}"

    def notes(self) -> list[str]:
        """The notes of a release, and the advice."""
        return [*super().notes(), *self.advice]

    def _repr_html_(self) -> str:
        facts = {"test": self.test, "hypothesis": self.hypothesis, "p-value": p_text(self.p_value)}
        assumed = {"assumed": "; ".join(self.assumed)} if self.assumed else {}
        return html.facts(facts | assumed) + html.note("; ".join(self.notes()))
