"""Quantiles whose intervals depend on the number of values, which is counted first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

from discreet.guarantees.guarantee import Guarantee, Pure
from discreet.releases import Release
from discreet.sql.running.explanation import IMAGINED, Explanation
from discreet.tables.bands import BandedQuantiles
from discreet.tables.offer import Drawing, TableRows

Values = Callable[[], Any]
"""Reads the values of all rows."""
SURE_COUNT = 0.995
"""The number of values is at least the noisy count less its error at this confidence."""


@dataclass(frozen=True)
class CountedFirst:
    """Quantiles with intervals that depend on the number of values. A part of ε counts the values first.

    The values are read once. Both releases use the same rows of each person.
    """

    rows: TableRows
    counted: Fraction
    counting: Callable[[TableRows, Values], Drawing[Release]]
    quantiles: Callable[[TableRows, Values, float], Drawing[BandedQuantiles]]

    def explain(self) -> Explanation:
        drawn = self.quantiles(self.rows, self.rows.plan.rows.values, IMAGINED[-1]).explain()
        return Explanation(f"{drawn}\nbefore that, ε = {float(self.counted):.4g} counts the values")

    def release(self) -> BandedQuantiles:
        unpaid = self.rows.planner.unpaid(self.rows.plan.automatic)
        if unpaid:
            self._check_fits(self.rows, unpaid)
        rows = self.rows.settled()
        values = cache(rows.plan.rows.values)
        counting = self.counting(rows, values)
        if not unpaid and not counting.is_known:
            self._check_fits(rows, [])
        at_least = float(counting.release().value[0]) - float(counting.mechanism.error(SURE_COUNT))
        return self.quantiles(rows, values, at_least).release()

    def _check_fits(self, rows: TableRows, unpaid: list[Guarantee]) -> None:
        """Refuse a release that does not fit the budget as a whole, before anything is spent."""
        most = self.quantiles(rows, rows.plan.rows.values, IMAGINED[-1]).most
        rows.planner.ledger.after(*unpaid, Pure(epsilon=self.counted), most)
