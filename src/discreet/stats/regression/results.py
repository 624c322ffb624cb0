"""What a regression returns: coefficients with intervals and p-values, and a table like that of statsmodels."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from discreet import html
from discreet.errors import InvalidArgument
from discreet.guarantees.accuracy import check_confidence
from discreet.releases import Release
from discreet.stats.results import Estimate, digits_for, p_text
from discreet.tables.offer import convert_release

Interval = tuple[float, float]
_WIDTH = 84


@dataclass(frozen=True, kw_only=True)
class Regression(Release):
    """The coefficients of a regression in the population, by name. All of it is computed from one release.

    Intervals and p-values account for sampling and for noise. `errors` says how the sampling error was found, and
    `assumed` what has to hold besides the declarations. If the noise is too large, coefficients are NaN, intervals
    infinite and p-values 1, and `reason` says why.
    """

    model: str
    formula: str
    errors: str
    assumed: tuple[str, ...] = ()
    reason: str | None = None
    facts: dict[str, float] = field(default_factory=dict)
    _inferences: dict[str, Any] = field(repr=False, default_factory=dict)
    _deviations: dict[str, float] = field(repr=False, default_factory=dict)

    @property
    def params(self) -> dict[str, float]:
        """The coefficients."""
        return dict(self.value)

    @property
    def bse(self) -> dict[str, float]:
        """The standard error of each coefficient: of the sample and of the noise."""
        return dict(self._deviations)

    @property
    def pvalues(self) -> dict[str, float]:
        """The p-value of the hypothesis that a coefficient is 0, for each."""
        return {name: one.p_value(0.0, "two-sided") for name, one in self._inferences.items()}

    def conf_int(self, confidence: float = 0.95) -> dict[str, Interval]:
        """The interval of each coefficient, each with this confidence."""
        sure = check_confidence(confidence)
        return {name: one.interval(sure) for name, one in self._inferences.items()}

    def coefficient(self, name: str) -> Estimate:
        """One coefficient as an estimate, with its `interval` and `test`, at no further cost."""
        if name not in self._inferences:
            raise InvalidArgument(
                f"There is no coefficient {name!r}. Choose one of {', '.join(self._inferences)}.", code="unknown-column"
            )
        one = self._inferences[name]
        found: Estimate = convert_release(
            Estimate, self, value=one.value, what=f"coefficient of {name}", assumed=self.assumed, _inference=one
        )
        return found

    @property
    def nobs(self) -> float:
        """The noisy number of rows."""
        return self.facts["nobs"]

    @property
    def rsquared(self) -> float:
        """The part of the variance of the outcome that the terms explain. From noisy sums, within 0 and 1."""
        return self._fact("rsquared")

    @property
    def residual_variance(self) -> float:
        """The variance of the residuals, from noisy sums."""
        return self._fact("residual_variance")

    def _fact(self, name: str) -> float:
        if name not in self.facts:
            raise InvalidArgument(f"A {self.model} regression has no {name}. Use params.", code="not-an-option")
        return self.facts[name]

    # --- shown to people ----------------------------------------------------------------------------------------

    def _lines(self, confidence: float) -> list[tuple[str, ...]]:
        intervals, chances = self.conf_int(confidence), self.pvalues
        lines = []
        for name, value in self.value.items():
            low, high = intervals[name]
            shown = digits_for((high - low) / 2)
            texts = [_number(one, shown) for one in (value, self.bse[name], low, high)]
            lines.append((name, *texts[:2], p_text(chances[name]), *texts[2:]))
        return lines

    def _heads(self) -> list[tuple[str, str]]:
        known = {
            "nobs": ("Rows (noisy)", ",.0f"),
            "rsquared": ("R-squared", ".3f"),
            "residual_variance": ("Residual variance", ".4g"),
        }
        listed = [("Model", self.model), ("Formula", self.formula), ("Errors", self.errors)]
        return listed + [(known[name][0], format(value, known[name][1])) for name, value in self.facts.items()]

    def summary(self, confidence: float = 0.95) -> str:
        """The regression table as text."""
        ends = (1 - check_confidence(confidence)) / 2
        rows = [("", "coef", "std err", "P>|t|", f"[{ends:.3g}", f"{1 - ends:.3g}]"), *self._lines(confidence)]
        widths = [max(len(row[place]) for row in rows) for place in range(6)]
        widths = [widths[0], *(max(width, 9) for width in widths[1:])]
        wide = max(_WIDTH, sum(widths) + 10)
        table = [
            "  ".join(
                [row[0].ljust(widths[0]), *(text.rjust(size) for text, size in zip(row[1:], widths[1:], strict=True))]
            )
            for row in rows
        ]
        heads = [f"{name + ':':<20}{text}" for name, text in self._heads()]
        notes = [f"Guarantee: {self.guarantee}", *(f"Assumed: {one}" for one in self.assumed)]
        notes += [self.reason] if self.reason else []
        parts = [
            [f"{self.model} regression, private".center(wide).rstrip()],
            heads,
            [table[0], "-" * wide, *table[1:]],
            [*notes, *self.marks()],
        ]
        return ("\n" + "=" * wide + "\n").join("\n".join(part) for part in parts)

    def _value_text(self) -> str:
        return "; ".join(f"{row[0]} {row[1]} ({row[4]} to {row[5]})" for row in self._lines(0.95))

    def _repr_html_(self) -> str:
        head = ("", "coef", "std err", "P>|t|", "[0.025", "0.975]")
        table = html.table(head, self._lines(0.95), numbers=range(1, 6), title=f"{self.model} regression")
        assumed = {"assumed": "; ".join(self.assumed)} if self.assumed else {}
        reason = {"note": self.reason} if self.reason else {}
        return table + html.facts(dict(self._heads()) | assumed | reason) + html.note("; ".join(self.notes()))


def _number(value: float, digits: int) -> str:
    if not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return f"{value:,.{digits}f}" if abs(value) < 1e15 else f"{value:.4g}"
