"""Sums of rank scores by group: first a noisy distribution of all values, then each value's share of smaller values."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import check_count, exactly
from discreet.guarantees.accuracy import Accuracy
from discreet.guarantees.guarantee import Approx, Guarantee, Pure
from discreet.guarantees.privacy_loss.compose import compose
from discreet.guarantees.unit import Unit
from discreet.mechanisms.counts.count_tree import CountTree
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.laplace import Laplace
from discreet.queries.sensitivity import SensitivityLike
from discreet.queries.shares import WHOLE, ShareProducts

Floats = NDArray[np.float64]
RANKING = Fraction(1, 5)
"""The part of ε that finds the distribution. An error there costs a little power, and nothing else."""
POINTS = 4096
"""The number of equal parts of the range in which values are ranked. Values in one part are ties."""


@dataclass(frozen=True, kw_only=True)
class RankScores:
    """Ranks values by a noisy distribution of all of them, and releases the products of the shares of scores by group.

    A row is a part of the range from 0 to 1, or from −1 to 1 if `signed`, and the number of its group. Its score is the
    share of values that are smaller, with half of those equal to it; if `signed`, the share among absolute values, with
    the sign of the value. A score is divided between the low and the high end of its group.

    Promise: the first draw has the guarantee of `tree` for the counts of all rows. Given its outcome, the score of a
    row is a function of that row alone, so the products change as `ShareProducts` says, and `noise` has its guarantee
    for that. Both compose. Groups do not enter the first draw: if they are exchangeable given all values, they are so
    given the scores, which makes tests of their means valid.
    Error: of one product.
    """

    groups: int
    signed: bool
    tree: CountTree
    noise: Laplace | Gaussian
    unit: Unit

    def __post_init__(self) -> None:
        check_count(self.groups, "groups")

    @property
    def query(self) -> ShareProducts:
        """The products that are released: of the two ends of each group."""
        return _products(self.groups)

    @classmethod
    def for_guarantee(cls, guarantee: Guarantee, *, groups: int, unit: Unit, signed: bool = False) -> Self:
        """The least noise, after a part of ε is used to rank. A δ is used for the second draw."""
        if not isinstance(guarantee, Approx):
            raise InvalidArgument("Ranks are made for Pure or Approx guarantees.", code="guarantee-not-supported")
        epsilon, delta = exactly(guarantee.epsilon), exactly(guarantee.delta)
        tree = CountTree.for_guarantee(Pure(epsilon=epsilon * RANKING), points=POINTS, unit=unit)
        rest = epsilon * (1 - RANKING)
        query = _products(check_count(groups, "groups"))
        # Laplace noise leaves the δ alone: what composes with the tree is then ε itself
        noise: Laplace | Gaussian = Laplace.for_guarantee(Pure(epsilon=rest), sensitivity=query.sensitivity(unit))
        if delta:
            square = query.sensitivity(unit, norm="L2")
            gaussian = Gaussian.for_guarantee(Approx(epsilon=rest, delta=delta), sensitivity=square)
            noise = gaussian if gaussian.deviation < noise.deviation else noise
        return cls(groups=groups, signed=signed, tree=tree, noise=noise, unit=unit)

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        """For one added, removed or replaced unit with one row, as `unit` says."""
        norm = "L1" if isinstance(self.noise, Laplace) else "L2"
        return compose(
            [
                self.tree.guarantee(self.tree.sensitivity(self.unit)),
                self.noise.guarantee(self.query.sensitivity(self.unit, norm=norm)),
            ]
        )

    def error(self, confidence: float) -> Accuracy:
        return self.noise.error(confidence)

    def _draw(self, value: Any) -> Floats:
        parts, groups = value
        known = ~np.isnan(parts) & (groups >= 0) & (groups < self.groups)
        parts, groups = parts[known], groups[known]
        size = np.abs(parts) if self.signed else parts
        bins = np.clip((size * POINTS).astype(np.int64), 0, POINTS - 1)
        scores = self.scores_from(self.tree._draw(np.bincount(bins, minlength=POINTS)))[bins]
        if self.signed:
            scores = 0.5 + 0.5 * np.sign(parts) * scores
        high = np.rint(scores * WHOLE).astype(np.int64)
        ends = np.stack([WHOLE - high, high], 1)
        # no unit is in two groups, so the products of each group are those of its own rows
        own = ShareProducts(2, self.query.pairs[:3])
        products = np.concatenate([own(ends[groups == group]) for group in range(self.groups)])
        return np.asarray(self.noise._draw(products), dtype=np.float64)

    def scores_from(self, cumulative: Any) -> Floats:
        """The score of each part of the range, from noisy cumulative counts."""
        from scipy.optimize import isotonic_regression

        counts = np.maximum(isotonic_regression(np.asarray(cumulative, dtype=np.float64)).x, 0.0)
        if counts[-1] <= 0:  # nothing is known: as if values were spread evenly
            return (np.arange(POINTS) + 0.5) / POINTS
        before = np.concatenate([[0.0], counts[:-1]])
        return np.asarray(np.clip((before + counts) / (2 * counts[-1]), 0.0, 1.0))


def _products(groups: int) -> ShareProducts:
    """The products of the two ends of each group."""
    each = [(2 * g + v, 2 * g + w) for g in range(groups) for v, w in ((0, 0), (0, 1), (1, 1))]
    return ShareProducts(2 * groups, tuple(each))
