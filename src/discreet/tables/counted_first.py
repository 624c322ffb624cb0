"""Quantiles whose intervals depend on the number of values, which is counted first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from discreet.guarantees.guarantee import Guarantee, Pure
from discreet.releases import Release
from discreet.sql.running.explanation import IMAGINED, Explanation
from discreet.tables.bands import BandedQuantiles
from discreet.tables.offer import Drawing, TableRows

SURE_COUNT = 0.995
"""The number of values is at least the noisy count less its error at this confidence."""


@dataclass(frozen=True)
class CountedFirst:
    """Quantiles with intervals that depend on the number of values. A part of ε counts the values first."""

    rows: TableRows
    counted: Fraction
    counting: Callable[[TableRows], Drawing[Release]]
    quantiles: Callable[[TableRows, float], Drawing[BandedQuantiles]]

    def explain(self) -> Explanation:
        drawn = self.quantiles(self.rows, IMAGINED[-1]).explain()
        return Explanation(f"{drawn}\nbefore that, ε = {float(self.counted):.4g} counts the values")

    def release(self) -> BandedQuantiles:
        unpaid = self.rows.planner.unpaid(self.rows.plan.automatic)
        if unpaid:
            self._check_fits(self.rows, unpaid)
        rows = self.rows.settled()
        counting = self.counting(rows)
        if not unpaid and not counting.is_known:
            self._check_fits(rows, [])
        at_least = float(counting.release().value[0]) - float(counting.mechanism.error(SURE_COUNT))
        return self.quantiles(rows, at_least).release()

    def _check_fits(self, rows: TableRows, unpaid: list[Guarantee]) -> None:
        """Refuse a release that does not fit the budget as a whole, before anything is spent."""
        most = self.quantiles(rows, IMAGINED[-1]).most
        rows.planner.ledger.after(*unpaid, Pure(epsilon=self.counted), most)
