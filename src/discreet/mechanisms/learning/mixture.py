"""A mixture of normal laws by noisy steps of expectation and maximization, started from private clusters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_bound, check_count, check_positive, exactly, significant, sqrt_up
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.unit import Unit, row
from discreet.mechanisms.learning.cell_sums import (
    Part,
    Stage,
    calibrated_scale,
    check_law,
    law_for,
    shares_of,
    stages_guarantee,
    stages_sensitivity,
)
from discreet.mechanisms.learning.lloyd import Lloyd
from discreet.mechanisms.protocol import plain_sensitivity, tidy
from discreet.queries.sensitivity import Sensitivity, SensitivityLike
from discreet.rows.rounding import Block, Floats, RoundedRows, cube_norm, unit_of

SHAPES = ("full", "diag")
START = Fraction(1, 2)
"""What the private clusters cost of all."""
START_ROUNDS = 2
_WEIGHTS, _MOVES = 2**10, 2**12  # the units of responsibilities and of moves, so that sums of products are exact
_FINE = 2**7  # logarithms of densities are rounded to this part of 1
_TABLE = np.floor(np.exp(-np.arange(12 * _FINE + 1) / _FINE) * 2**20)
_LEAST = 3.0  # in deviations of a count


@dataclass(frozen=True)
class Components:
    """What is known of the components: weights, means and covariances (k × d × d), and the radii of their rows."""

    weights: Floats
    means: Floats
    covariances: Floats
    radii: Floats


@dataclass(frozen=True, kw_only=True)
class MixtureSteps:
    """Fits `components` normal laws to rows, in `rounds` steps, from the clusters of a `Lloyd` with half of the cost.

    Rows have `features` columns within [−1, 1], or a norm of at most `feature_norm` if it is given. In each round a row
    is divided among the components by its responsibilities. Each releases the sum of these, of the moves of the rows
    from its mean, in parts of its radius and no longer than it, and of the products of the moves: of all pairs of
    columns if `covariance` is "full", of each column with itself if it is "diag". `scale` and `noise` are as for
    `Lloyd`. The result is a dict: `weights`, `means`, `covariances`, `counts`, and `deviations`, the standard
    deviation of the noise in each coordinate of a mean.

    Promise: a responsibility is a whole number of 1/2^10, rounded down, so those of a row add up to at most 1. It is
    computed from the row and from released numbers alone, column by column. A move u has a length of at most 1, so the
    products u_i·u_j, i ≤ j, are no longer than 1, and the inner product of those of two rows is half of
    Σu_i²v_i² + (Σu_i·v_i)², which is never negative. In the L1 norm they are at most 1, or (1 + d)/2 for all pairs.
    So each round is a `Stage`, and all stages compose as in `Lloyd`.
    Error: none is stated, because the quality of a mixture depends on the data.
    Source: expectation-maximization with noisy sufficient statistics, as in Park et al. 2017.
    """

    components: int
    features: int
    rounds: int
    scale: Number
    levels: int = 0
    covariance: str = "full"
    noise: str = "gaussian"
    feature_norm: Number | None = None

    def __post_init__(self) -> None:
        for name in ("components", "features", "rounds"):
            check_count(getattr(self, name), name)
        check_count(self.levels, "levels", at_least=0)
        check_positive(self.scale, "scale")
        check_law(self.noise)
        if self.covariance not in SHAPES:
            raise InvalidArgument('covariance must be "full" or "diag".', code="not-an-option")
        if self.feature_norm is not None:
            check_bound(self.feature_norm, "feature_norm")

    @property
    def _clusters(self) -> Lloyd:
        share = sqrt_up(1 / START) if self.noise == "gaussian" else 1 / START
        return Lloyd(
            clusters=self.components,
            features=self.features,
            rounds=START_ROUNDS,
            levels=self.levels,
            scale=tidy(significant(exactly(self.scale) * share, up=True)),
            noise=self.noise,
            feature_norm=self.feature_norm,
        )

    @property
    def _pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        d = self.features
        if self.covariance == "diag":
            return np.arange(d), np.arange(d)
        first, second = np.triu_indices(d)
        return first, second

    @property
    def _round(self) -> Stage:
        d, one, grain = self.features, Fraction(1), Fraction(1, _WEIGHTS)
        pairs, full = len(self._pairs[0]), self.covariance == "full"
        shares = shares_of(count=Fraction(1, 4), sum=sqrt_up(Fraction(d)), square=sqrt_up(Fraction(pairs)))
        each = {name: share * (1 - START) / self.rounds for name, share in shares.items()}
        parts = (
            Part(grain=grain, length=one, total=one, share=each["count"], coordinates=1),
            Part(
                grain=grain / _MOVES,
                length=one,
                total=sqrt_up(Fraction(d)),
                share=each["sum"],
                coordinates=d,
                signed=True,
            ),
            Part(
                grain=grain / _MOVES**2,
                length=one,
                total=Fraction(1 + d, 2) if full else one,
                share=each["square"],
                coordinates=pairs,
            ),
        )
        scale = exactly(self.scale)
        return Stage(parts=parts, scale=scale, noise=self.noise, cells=self.components, times=self.rounds)

    @property
    def stages(self) -> list[Stage]:
        """All that is released, in order."""
        return [*self._clusters.stages, self._round]

    # --- what it promises -----------------------------------------------------------------------------------

    def sensitivity(self, unit: Unit | None = None, rows_per_person: int = 1) -> Sensitivity:
        """How far one unit can move all stages together, in deviations or scales of their noise."""
        return stages_sensitivity(self.stages, unit, rows_per_person)

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        """For one added or removed row. For another unit, give `m.sensitivity(unit, rows_per_person)`."""
        norm = "L1" if self.noise == "laplace" else "L2"
        bound = self.sensitivity(row()) if sensitivity is None else plain_sensitivity(sensitivity, norm)
        return stages_guarantee(self.stages, bound)

    @classmethod
    def for_guarantee(
        cls, guarantee: Guarantee, *, unit: Unit | None = None, rows_per_person: int = 1, **fixed: Any
    ) -> Self:
        """The least noise that keeps `guarantee`: Laplace noise if it is pure, otherwise Gaussian noise."""
        law = law_for(guarantee)

        def make(scale: Fraction) -> Any:
            return cls(scale=tidy(significant(scale, up=True)), noise=law, **fixed)

        found: Self = calibrated_scale(make, guarantee, unit, rows_per_person)
        return found

    def error(self, confidence: float) -> Accuracy:
        why = "the quality of a mixture depends on the data"
        return Accuracy(amount=None, confidence=check_confidence(confidence), reason=why)

    # --- what it does ---------------------------------------------------------------------------------------

    @property
    def _norm(self) -> Fraction:
        return cube_norm(self.features) if self.feature_norm is None else exactly(self.feature_norm)

    def _draw(self, value: RoundedRows) -> dict[str, Any]:
        rows, unit, stage = value.held(), float(unit_of(self._norm)), self._round
        centers, counts, radii = self._clusters.clusters_of(value)
        known = self._first(centers, counts, radii)
        deviations = np.zeros(self.components)
        for _ in range(self.rounds):
            seen = stage.noisy(exact_mixture_sums(rows, known, unit, *self._pairs))
            counts = seen[0]
            size = np.maximum(counts, _LEAST * stage.deviation(0))
            deviations = known.radii * stage.deviation(1) / size
            known = self._maximized(known, seen, size)
        return {
            "weights": known.weights,
            "means": known.means,
            "covariances": known.covariances,
            "counts": counts,
            "deviations": np.repeat(deviations[:, None], self.features, axis=1),
        }

    def _first(self, centers: Floats, counts: Floats, radii: Floats) -> Components:
        """Round components around the centers of clusters, whose radius has nine tenths of the rows."""
        d = self.features
        variances = radii**2 / (1.4 * (d + 1.8 * math.sqrt(d)))
        positive = np.maximum(counts, self._clusters.stages[-1].deviation(0))
        return Components(
            positive / positive.sum(), centers, variances[:, None, None] * np.eye(d), radii * math.sqrt(2)
        )

    def _maximized(self, known: Components, seen: list[Floats], size: Floats) -> Components:
        """New weights, means and covariances, from released numbers only."""
        counts, sums, squares = seen
        stage, d = self._round, self.features
        first, second = self._pairs
        steps = sums / size[:, None]
        steps /= np.maximum(np.linalg.norm(steps, axis=1), 1.0)[:, None]
        means = known.means + known.radii[:, None] * steps
        covariances = np.zeros((self.components, d, d))
        for k in range(self.components):
            second_moment = np.zeros((d, d))
            second_moment[first, second] = second_moment[second, first] = squares[k] / size[k]
            spread = second_moment - np.outer(steps[k], steps[k])
            if self.covariance == "diag":
                spread = np.diag(np.diag(spread))
            covariances[k] = _positive(spread, stage.deviation(2) / size[k]) * known.radii[k] ** 2
        positive = np.maximum(counts, stage.deviation(0))
        if self.feature_norm is None:
            means = np.clip(means, -1.0, 1.0)
        return Components(positive / positive.sum(), means, covariances, _radii(covariances, float(self._norm)))


def _positive(spread: Floats, noise: float) -> Floats:
    """A covariance after removing noise: shrunk to a multiple of 1, with eigenvalues above a small part of it."""
    d = len(spread)
    mean = max(float(np.trace(spread)) / d, noise / math.sqrt(d), 1e-6)
    rest = spread - mean * np.eye(d)
    coordinates = d if np.count_nonzero(rest - np.diag(np.diag(rest))) == 0 else d * d
    kept = max(0.0, 1 - coordinates * noise**2 / max(float((rest**2).sum()), 1e-300))
    values, vectors = np.linalg.eigh(kept * rest)
    values = np.maximum(values + mean, max(mean / 1000, min(noise, mean) / 4))
    return np.asarray((vectors * values) @ vectors.T)


def _radii(covariances: Floats, norm: float) -> Floats:
    """About 97% of the rows of a normal law with this covariance are within this distance of its mean."""
    total = np.trace(covariances, axis1=1, axis2=2)
    columns = np.maximum(total**2 / np.maximum((covariances**2).sum((1, 2)), 1e-300), 1.0)
    radii = np.sqrt(total * (1 + 3.3 / np.sqrt(columns) + 0.7 / columns))
    return np.asarray(np.clip(radii, norm * 2.0**-10, 2 * norm))


def responsibilities(whole: Floats, known: Components, unit: float) -> NDArray[np.int64]:
    """How much each component has of each row, in parts of 2^10, rounded down.

    Promise: a row's numbers are computed column by column from that row alone, so that other rows do not even change
    their last bits: a product of matrices might. Exponentials are looked up.
    """
    logs = np.zeros((len(whole), len(known.weights)))
    for k, covariance in enumerate(known.covariances):
        inverse = np.linalg.inv(np.linalg.cholesky(covariance)).T
        apart = whole * unit - known.means[k]
        scaled = np.zeros_like(apart)
        for column, weight in enumerate(inverse):
            scaled += apart[:, column, None] * weight
        for column in range(scaled.shape[1]):
            logs[:, k] -= scaled[:, column] * scaled[:, column] / 2
        logs[:, k] += np.log(np.diag(inverse)).sum() + math.log(known.weights[k])
    below = np.minimum(np.rint((logs.max(1)[:, None] - logs) * _FINE), len(_TABLE) - 1)
    likely = _TABLE[below.astype(np.int64)].astype(np.int64)
    return np.asarray(likely * _WEIGHTS // likely.sum(1)[:, None])


def exact_mixture_sums(
    rows: RoundedRows, known: Components, unit: float, first: NDArray[np.int64], second: NDArray[np.int64]
) -> list[NDArray[Any]]:
    """For each component the sums of its responsibilities, of the moves from its mean, and of their products."""
    many, columns = known.means.shape
    most = (_MOVES - math.sqrt(columns) / 2) * (1 - 2.0**-40)
    centers = np.rint(known.means / unit)

    def of_block(block: Block) -> list[Floats]:
        whole, goal = block
        share = responsibilities(whole, known, unit) * np.isfinite(goal)[:, None].astype(np.int64)
        weights = share.astype(np.float64)
        sums, squares = np.zeros((many, columns)), np.zeros((many, len(first)))
        for k in range(many):
            apart = whole - centers[k]
            length = np.sqrt((apart * apart).sum(1))  # of integers: exact in any order
            moves = np.rint(apart * (most / np.maximum(length, known.radii[k] / unit))[:, None])
            weighted = moves * weights[:, k, None]
            sums[k] = weighted.sum(0)
            if len(first) == columns:
                squares[k] = (weighted * moves).sum(0)
            else:
                squares[k] = (weighted.T @ moves)[first, second]  # integers below 2^47: exact
        return [weights.sum(0), sums, squares]

    return rows.exact_sums(of_block)
