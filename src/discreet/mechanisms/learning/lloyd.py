"""Lloyd's clustering with noise: a public number of rounds, charged once, before the first round."""

from __future__ import annotations

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
from discreet.mechanisms.learning.moments import calibrate_noise, noisy_units, within_deviations
from discreet.mechanisms.noise.lattice import step_for
from discreet.mechanisms.protocol import plain_sensitivity, tidy
from discreet.queries.sensitivity import Sensitivity, SensitivityLike
from discreet.rows.rounding import Block, Floats, RoundedRows, cube_norm, unit_of

_PUBLIC_POINTS = 2**12
_LEAST = 3.0  # in deviations of a count: a cluster with fewer rows may be empty


@dataclass(frozen=True, kw_only=True)
class Lloyd:
    """Moves `clusters` centers to the noisy means of the rows nearest to them, `rounds` times.

    Rows have `features` columns within [−1, 1], or a norm of at most `feature_norm` if it is given. The first centers
    are public points, spread over the possible rows. `count` and `sum` are the standard deviations of the noise on the
    number of rows and on their sum in each cluster, in each round. Rounds that differ only by noise are averaged. A
    center with hardly any rows moves next to the one with the most rows. The result is a dict: the `centers`, and
    `counts`, the noisy number of rows of each.

    Promise: integer arithmetic on the row and the released centers alone decides which center is nearest. So in each
    round a row moves the numbers of one cluster, by 1/count² + ‖x‖²/sum² in squared deviations, whatever was released
    before. A replaced row moves them by twice that in two clusters, or by 4‖x‖²/sum² in one. All rounds together are
    one Gaussian mechanism at the root of `rounds` times that distance, plus the slack of all rounds. k rows move k
    times as far.
    Error: none is stated, because the quality of clusters depends on the data.
    Source: Blum-Dwork-McSherry-Nissim 2005; public first centers as in Su et al. 2016.
    """

    clusters: int
    features: int
    rounds: int
    count: Number
    sum: Number
    feature_norm: Number | None = None

    def __post_init__(self) -> None:
        for name in ("clusters", "features", "rounds"):
            check_count(getattr(self, name), name)
        check_positive(self.count, "count")
        check_positive(self.sum, "sum")
        if self.feature_norm is not None:
            check_bound(self.feature_norm, "feature_norm")

    @property
    def _norm(self) -> Fraction:
        return cube_norm(self.features) if self.feature_norm is None else exactly(self.feature_norm)

    def _lattice(self, part: str) -> tuple[Fraction, Fraction, Fraction]:
        """Grain, step and variance of the counts or the sums."""
        deviation = exactly(getattr(self, part))
        grain = Fraction(1) if part == "count" else unit_of(self._norm)
        return grain, min(grain, step_for(deviation)), deviation**2

    # --- what it promises -----------------------------------------------------------------------------------

    def sensitivity(self, unit: Unit | None = None, rows_per_person: int = 1) -> Sensitivity:
        """How far one unit can move all rounds together, in deviations of their noise."""
        inside = self._norm**2 / exactly(self.sum) ** 2
        squared = 1 / exactly(self.count) ** 2 + inside
        if unit is not None and unit.neighbors == "replace":
            squared = max(squared * min(self.clusters, 2), 4 * inside)
        rows = check_count(rows_per_person, "rows_per_person")
        return Sensitivity(rows * sqrt_up(self.rounds * squared), "L2", unit=unit, dimension=self._every)

    @property
    def _every(self) -> int:
        return self.rounds * self.clusters * (self.features + 1)

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        """For one added or removed row. For another unit, give `m.sensitivity(unit, rows_per_person)`."""
        bound = self.sensitivity(row()) if sensitivity is None else plain_sensitivity(sensitivity, "L2")
        lattices = (self._lattice("count"), self._lattice("sum"))
        coarsest = min(variance / step**2 for _, step, variance in lattices)
        return within_deviations(bound.exact**2, coarsest, self._every, bound.unit)

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        clusters: int,
        features: int,
        rounds: int,
        feature_norm: Number | None = None,
        unit: Unit | None = None,
        rows_per_person: int = 1,
    ) -> Self:
        """The least noise that keeps `guarantee`, divided so that the mean of spread-out rows is most accurate.

        The error of Σx/n is (√d·sum + ‖center‖·count)/n. For a center halfway to the norm, the best shares of the
        squared distance of a row are in the ratio of √d to ½.
        """
        share = Fraction(1, 2) / (Fraction(1, 2) + sqrt_up(Fraction(features)))
        norm = cube_norm(features) if feature_norm is None else check_bound(feature_norm, "feature_norm")

        def make(scale: Fraction) -> Any:
            count, total = scale / sqrt_up(share), scale * norm / sqrt_up(1 - share)
            return cls(
                clusters=clusters,
                features=features,
                rounds=rounds,
                feature_norm=feature_norm,
                count=tidy(significant(count, up=True)),
                sum=tidy(significant(total, up=True)),
            )

        found: Self = calibrate_noise(make, guarantee, unit, rows_per_person)
        return found

    def error(self, confidence: float) -> Accuracy:
        why = "the quality of clusters depends on the data"
        return Accuracy(amount=None, confidence=check_confidence(confidence), reason=why)

    # --- what it does ---------------------------------------------------------------------------------------

    def _draw(self, value: RoundedRows) -> dict[str, Any]:
        if value.columns != self.features or value.norm != self._norm:
            raise InvalidArgument(
                "The rows are not rounded for the bounds of these clusters. Round them with the same features and "
                "norm.",
                code="rows-not-rounded",
            )
        rows, centers = value.held(), self.first_centers()
        known, doubt = np.zeros((self.clusters, self.features + 1)), np.inf
        for _ in range(self.rounds):
            seen = self._noisy(exact_cluster_sums(rows, self.whole(centers)))
            # how far clusters moved beyond the noise: the less they moved, the more of the earlier rounds is kept
            moved = float(np.mean((seen - known) ** 2)) - 1 - doubt
            doubt = doubt + max(moved, 0.0)
            gain = 1.0 if np.isinf(doubt) else doubt / (doubt + 1)
            known, doubt = known + gain * (seen - known), gain
            centers = self._moved(centers, known)
        return {"centers": centers, "counts": known[:, 0] * float(exactly(self.count))}

    def _noisy(self, exact: list[NDArray[Any]]) -> Floats:
        """The numbers of rows and their sums with noise, in deviations of the noise."""
        counts = noisy_units(exact[0], *self._lattice("count")) / float(exactly(self.count))
        sums = noisy_units(exact[1], *self._lattice("sum")) / float(exactly(self.sum))
        return np.concatenate([counts[:, None], sums], axis=1)

    def whole(self, centers: Floats) -> Floats:
        """Centers in whole units, no longer than a row."""
        whole = np.trunc(self._inside(centers) / float(unit_of(self._norm)))
        return np.asarray(whole)

    def _inside(self, points: Floats) -> Floats:
        if self.feature_norm is None:
            return np.clip(points, -1.0, 1.0)
        length = np.linalg.norm(points, axis=1, keepdims=True)
        norm = float(self._norm)
        return np.asarray(points * (norm / np.maximum(length, norm) * (1 - 1e-9)))

    def _moved(self, centers: Floats, known: Floats) -> Floats:
        """Means of clusters with enough rows. The other centers move next to those of the largest clusters."""
        left = known[:, 0].copy()
        sums = known[:, 1:] * float(exactly(self.sum) / exactly(self.count))
        moved = self._inside(sums / np.maximum(left, _LEAST)[:, None])
        for place in np.flatnonzero(left < _LEAST).tolist():
            largest = int(left.argmax())
            if left[largest] < 2 * _LEAST:
                moved[place] = centers[place]
                continue
            left[[place, largest]] = left[largest] / 2
            moved[place] = moved[largest] + (centers[place] - moved[largest]) / 4
        return self._inside(moved)

    def first_centers(self) -> Floats:
        """Public points, evenly spread: the cluster means of a fixed set of points."""
        ball = self.feature_norm is not None
        cloud = _cloud(self.features, ball) * (float(self._norm) if ball else 1.0)
        centers = [cloud[int(np.argmin((cloud**2).sum(1)))]]
        distance = np.full(len(cloud), np.inf)
        for _ in range(self.clusters - 1):
            distance = np.minimum(distance, ((cloud - centers[-1]) ** 2).sum(1))
            centers.append(cloud[int(distance.argmax())])
        found = np.array(centers)
        for _ in range(10):
            nearest = (cloud @ found.T - (found**2).sum(1) / 2).argmax(1)
            members = (nearest[:, None] == np.arange(self.clusters)).astype(np.float64)
            sizes = members.sum(0)[:, None]
            found = np.where(sizes > 0, members.T @ cloud / np.maximum(sizes, 1), found)
        return found


def exact_cluster_sums(rows: RoundedRows, centers: Floats) -> list[NDArray[Any]]:
    """How many rows are nearest to each center, and their sum. All in integers; a tie goes to the first center."""
    lengths = (centers**2).sum(1)

    def of_block(block: Block) -> list[Floats]:
        whole, goal = block
        nearest = (2 * (whole @ centers.T) - lengths).argmax(1)  # below 2^43: exact
        members = (nearest[:, None] == np.arange(len(centers))) & np.isfinite(goal)[:, None]
        counted = members.astype(np.float64)
        return [counted.sum(0), counted.T @ whole]

    return rows.exact_sums(of_block)


def _cloud(features: int, ball: bool) -> Floats:
    """Fixed points spread evenly over [−1, 1]^d, or over the ball of radius 1: a lattice by powers of one root."""
    from scipy.special import ndtri

    size = features + ball
    root = 2.0
    for _ in range(60):  # the root of x^(d+1) = x + 1
        root = (1 + root) ** (1 / (size + 1))
    places = np.arange(1, _PUBLIC_POINTS + 1)[:, None] * root ** -np.arange(1.0, size + 1) + 0.5
    uniform = np.clip(places % 1.0, 1e-9, 1 - 1e-9)
    if not ball:
        return np.asarray(2 * uniform - 1)
    direction = ndtri(uniform[:, :-1])
    radius = uniform[:, -1:] ** (1 / features)
    return np.asarray(direction / np.linalg.norm(direction, axis=1, keepdims=True) * radius)
