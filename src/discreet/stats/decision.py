"""The release of a decision: whether a test rejects at a level that was declared before."""

from __future__ import annotations

from dataclasses import dataclass

from discreet import html
from discreet.errors import NotAllowed
from discreet.exact.rational import exactly
from discreet.releases import Release
from discreet.stats.results import said


@dataclass(frozen=True, kw_only=True)
class Decision(Release):
    """Whether a hypothesis is rejected at a declared `level`. `value` is True if it is. Nothing else was released.

    If the hypothesis is true, it is rejected with a probability of at most `level`, noise included.
    """

    test: str
    hypothesis: str
    level: float
    assumed: tuple[str, ...] = ()

    @property
    def p_value(self) -> float:
        """Not released: the decision at one level is."""
        raise NotAllowed(
            f"Only the decision at the level {self.level:g} was released. Leave level= out to release a p-value.",
            code="decision-only",
        )

    def rejects(self, level: float | None = None) -> bool:
        """Whether the hypothesis is rejected at the declared level, the only one that is known."""
        if level is not None and exactly(level, "level") != exactly(self.level):
            raise NotAllowed(
                f"Only the decision at the level {self.level:g} was released. Leave level= out to release a p-value.",
                code="decision-only",
            )
        return bool(self.value)

    def _value_text(self) -> str:
        return f"{self.test}: {self.hypothesis}; {self._verdict}{said(self.assumed)}"

    @property
    def _verdict(self) -> str:
        return f"{'rejected' if self.value else 'not rejected'} at the level {self.level:g}"

    def _repr_html_(self) -> str:
        facts = {"test": self.test, "hypothesis": self.hypothesis, "decision": self._verdict}
        assumed = {"assumed": "; ".join(self.assumed)} if self.assumed else {}
        return html.facts(facts | assumed) + html.note("; ".join(self.notes()))
