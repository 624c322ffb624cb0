"""Adaptive spending: the noise of each draw depends on earlier answers, under caps that were fixed in advance."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BudgetExhausted
from discreet.exact import samplers
from discreet.exact.rational import Number, check_positive, exactly
from discreet.guarantees.guarantee import ZeroConcentrated
from discreet.mechanisms.protocol import tidy
from discreet.mechanisms.selection.exponential import Exponential
from discreet.queries.sensitivity import Sensitivity


def guarantee_of_caps(measuring: Number, choosing: Number, rows: int, bound: Sensitivity | None) -> ZeroConcentrated:
    """What spending both caps promises a unit with this many rows, under the relation of the bound's unit.

    Promise: k added rows move a table of counts by at most k in L2 and the L1 distance of the table from a public one
    by at most k; k replaced rows by √2·k and by 2k. So the caps are paid k² times, or 2k² and 4k² times.
    """
    unit = None if bound is None else bound.unit
    replaced = unit is not None and unit.neighbors == "replace"
    rho = exactly(measuring) * (2 if replaced else 1) + exactly(choosing) * (4 if replaced else 1)
    return ZeroConcentrated(rho=tidy(rows**2 * rho), protects=unit, neighbors="add_or_remove" if unit is None else None)


class Allowance:
    """Two caps on zCDP, both for one row added or removed, spent draw by draw in exact rationals.

    `measuring` pays for counts: noise of variance v costs 1/(2v). `choosing` pays for choices: a rate of r for each row
    that scores may move costs r²/2, since log-probabilities then span a range of at most ε = 2r, and that is ε²/8.

    Promise: a draw is paid for before it is made, and one that would pass its cap is refused and draws nothing;
    whatever noise was chosen from earlier answers, the whole is (Σ of both)-zCDP for one row. Source: fully adaptive
    composition of zCDP, Whitehouse-Ramdas-Rogers-Wu 2023; bounded range, Dong-Durfee-Rogers 2020.
    """

    def __init__(self, *, measuring: Number, choosing: Number) -> None:
        self._measuring = check_positive(measuring, "measuring")
        self._choosing = check_positive(choosing, "choosing")

    @property
    def measuring(self) -> Fraction:
        """What is left for counts."""
        return self._measuring

    @property
    def choosing(self) -> Fraction:
        """What is left for choices."""
        return self._choosing

    def measure(self, counts: NDArray[np.int64], variance: Fraction) -> NDArray[np.int64]:
        """Integer counts, each with discrete Gaussian noise of this variance. A row is in at most one of them."""
        cost = 1 / (2 * check_positive(variance, "variance"))
        if cost > self._measuring:
            raise BudgetExhausted("This measurement would pass the cap of the release. Add noise.")
        self._measuring -= cost
        noise = samplers.discrete_gaussian(variance, counts.size).reshape(counts.shape)
        return np.asarray(counts + noise)

    def choose(self, scores: NDArray[np.int64], rate: Fraction) -> int:
        """The index of a high score, with probability ∝ exp(rate·score). A row changes each integer score by at
        most 1.
        """
        cost = check_positive(rate, "rate") ** 2 / 2
        if cost > self._choosing:
            raise BudgetExhausted("This choice would pass the cap of the release. Lower the rate.")
        self._choosing -= cost
        drawn: Any = Exponential(rate=rate)._draw(scores)
        return int(drawn)
