"""Lloyd's clustering with noise: a public number of rounds, charged once, before the first round."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

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
from discreet.mechanisms.learning.cluster_sums import exact_centered_sums, exact_rings
from discreet.mechanisms.learning.cluster_tree import Directions, Tree, exact_leaf_sums, grow
from discreet.mechanisms.learning.public_points import public_centers
from discreet.mechanisms.learning.weighted_centers import weighted_centers
from discreet.mechanisms.protocol import plain_sensitivity, tidy
from discreet.queries.sensitivity import Sensitivity, SensitivityLike
from discreet.rows.rounding import Floats, RoundedRows, cube_norm, unit_of

_LEAST = 3.0  # in deviations of a count: a cluster with fewer rows may be empty
_SPLIT = {"gaussian": 2.0, "laplace": 1.0}
_TREE, _LEAVES, _RADII = Fraction(1, 4), Fraction(3, 10), Fraction(1, 20)  # what they cost of all
_PER_CLUSTER = 8
RINGS = 16
_INSIDE = 0.9
"""The radius of a cluster has this part of its rows inside."""


@dataclass(frozen=True, kw_only=True)
class Lloyd:
    """Moves `clusters` centers to the noisy means of the rows nearest to them, `rounds` times.

    Rows have `features` columns within [−1, 1], or a norm of at most `feature_norm` if it is given. With `levels`, a
    tree of this many levels divides the rows first, and the centers start as the clusters of its leaves: of their noisy
    means, weighted by their noisy counts. With 0 levels, they start at public points, spread over the possible rows.
    One added row moves all numbers together by 1/`scale`, in deviations of Gaussian `noise` or scales of Laplace noise.
    Rounds that differ only by noise are averaged. A center with hardly any rows moves next to the one with the most
    rows. The result is a dict: the `centers`, and `counts`, the noisy number of rows of each.

    Promise: integer arithmetic on the row and on released numbers alone decides in which leaf a row is and which center
    is nearest. So in each level and in each round, a row moves the numbers of one cell: see `Stage`. All of them
    together are one Gaussian mechanism at the root of the sum of the squared distances, plus the slack of all
    numbers, or a Laplace mechanism at the sum of the distances. k rows move k times as far.
    Error: none is stated, because the quality of clusters depends on the data.
    Source: Blum-Dwork-McSherry-Nissim 2005; public first centers as in Su et al. 2016; noisy cells as weighted points
    as in Balcan et al. 2017 and Chang-Ghazi-Kumar-Manurangsi 2021.
    """

    clusters: int
    features: int
    rounds: int
    scale: Number
    levels: int = 0
    noise: str = "gaussian"
    feature_norm: Number | None = None

    def __post_init__(self) -> None:
        for name in ("clusters", "features", "rounds"):
            check_count(getattr(self, name), name)
        check_count(self.levels, "levels", at_least=0)
        check_positive(self.scale, "scale")
        check_law(self.noise)
        if self.feature_norm is not None:
            check_bound(self.feature_norm, "feature_norm")

    @property
    def _norm(self) -> Fraction:
        return cube_norm(self.features) if self.feature_norm is None else exactly(self.feature_norm)

    # --- its stages -----------------------------------------------------------------------------------------

    @property
    def _directions(self) -> Directions:
        return Directions(self.features, self._norm, self.feature_norm is not None)

    def _stage(self, parts: list[Part], cells: int, times: int) -> Stage:
        return Stage(parts=tuple(parts), scale=exactly(self.scale), noise=self.noise, cells=cells, times=times)

    @property
    def _growing(self) -> Stage:
        """What each level of the tree releases: counts, and the sums of numbers and of their squares."""
        directions, unit = self._directions, unit_of(self._norm)
        share, many = _TREE / self.levels / 3, directions.many
        parts = [_count(share)]
        for power in (1, 2):
            length, total = directions.reach(power)
            parts.append(
                Part(grain=unit**power, length=length, total=total, share=share, coordinates=many, signed=power == 1)
            )
        return self._stage(parts, self._most_leaves, self.levels)

    @property
    def _most_leaves(self) -> int:
        return _PER_CLUSTER * self.clusters

    @property
    def _leaves(self) -> Stage:
        return self._stage(self._counts_and_sums(_LEAVES, self._norm), self._most_leaves, 1)

    @property
    def _radii(self) -> Stage:
        """How many rows are how far from their center."""
        return self._stage([_count(_RADII)], self.clusters * RINGS, 1)

    @property
    def _round(self) -> Stage:
        share = (1 - _RADII - (_TREE + _LEAVES if self.levels else 0)) / self.rounds
        return self._stage(self._counts_and_sums(share, Fraction(1)), self.clusters, self.rounds)

    def _counts_and_sums(self, share: Fraction, norm: Fraction) -> list[Part]:
        """The error of Σx/n is (√d·sum + ‖center‖·count)/n. For a center halfway to the norm, the best shares of the
        squared distance of a row are in the ratio of √d to ½.
        """
        root = sqrt_up(Fraction(self.features))
        shares = shares_of(count=Fraction(1, 2), sum=root)
        sums = Part(
            grain=unit_of(norm),
            length=norm,
            total=norm * root,
            share=share * shares["sum"],
            coordinates=self.features,
            signed=True,
        )
        return [_count(share * shares["count"]), sums]

    @property
    def stages(self) -> list[Stage]:
        """All that is released, in order."""
        starts = [self._growing, self._leaves] if self.levels else []
        return [*starts, self._radii, self._round]

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
        cls,
        guarantee: Guarantee,
        *,
        clusters: int,
        features: int,
        rounds: int,
        levels: int = 0,
        feature_norm: Number | None = None,
        unit: Unit | None = None,
        rows_per_person: int = 1,
    ) -> Self:
        """The least noise that keeps `guarantee`: Laplace noise if it is pure, otherwise Gaussian noise."""
        law = law_for(guarantee)

        def make(scale: Fraction) -> Any:
            return cls(
                clusters=clusters,
                features=features,
                rounds=rounds,
                levels=levels,
                noise=law,
                feature_norm=feature_norm,
                scale=tidy(significant(scale, up=True)),
            )

        found: Self = calibrated_scale(make, guarantee, unit, rows_per_person)
        return found

    def error(self, confidence: float) -> Accuracy:
        why = "the quality of clusters depends on the data"
        return Accuracy(amount=None, confidence=check_confidence(confidence), reason=why)

    # --- what it does ---------------------------------------------------------------------------------------

    def _draw(self, value: RoundedRows) -> dict[str, Any]:
        found = self.clusters_of(value)
        return {"centers": found[0], "counts": found[1]}

    def clusters_of(self, value: RoundedRows) -> tuple[Floats, Floats, Floats]:
        """The centers, the noisy counts of their rows, and the radii within which most of these were at first."""
        if value.columns != self.features or value.norm != self._norm:
            raise InvalidArgument(
                "The rows are not rounded for the bounds of these clusters. Round them with the same features and "
                "norm.",
                code="rows-not-rounded",
            )
        rows, unit = value.held(), float(unit_of(self._norm))
        centers = self._private_starts(rows) if self.levels else self.first_centers()
        radii = self._found_radii(rows, centers)
        stage = self._round
        counts, means, doubt = np.zeros(self.clusters), centers, np.full(self.clusters, np.inf)
        for done in range(self.rounds):
            whole = self.whole(centers)
            seen, sums = stage.noisy(exact_centered_sums(rows, whole, radii / unit))
            size = np.maximum(seen, _LEAST * stage.deviation(0))
            moved = whole * unit + radii[:, None] * sums / size[:, None]
            noise = (radii * stage.deviation(1) / size) ** 2
            # how far centers moved beyond the noise: the less they moved, the more of the earlier rounds is kept
            beyond = 0.0 if not done else float(np.mean((moved - means) ** 2 / (noise + doubt)[:, None])) - 1
            doubt = doubt + max(beyond, 0.0) * (noise + doubt) if done else doubt
            gain = doubt / (doubt + noise) if done else np.ones(self.clusters)
            means, doubt = means + gain[:, None] * (moved - means), gain * noise
            counts = counts + float(gain.mean()) * (seen - counts)
            centers = means = self._moved(centers, means, counts)
        return centers, counts, radii

    def _found_radii(self, rows: RoundedRows, centers: Floats) -> Floats:
        """The distance from each center within which most of its rows are. Longer moves are shortened to it."""
        (rings,) = self._radii.noisy([exact_rings(rows, self.whole(centers), self._edges)])
        edges = np.sqrt(self._edges) * float(unit_of(self._norm))
        enough = _LEAST * self._radii.deviation(0) * RINGS
        pooled = rings.sum(0)
        return np.array([_radius(ring if ring.sum() > enough else pooled, edges) for ring in rings])

    @property
    def _edges(self) -> Floats:
        """The squared radii of the rings, in squared units, from the largest distance down by halves."""
        most = 4 * math.ceil(self._norm / unit_of(self._norm)) ** 2
        return np.asarray(most / 2.0 ** np.arange(RINGS))

    def _private_starts(self, rows: RoundedRows) -> Floats:
        """The clusters of the leaves of a tree. Public points take the place of those that are missing."""
        growing, leaves = self._growing, self._leaves
        least = _SPLIT[self.noise] * math.sqrt(self.features) * leaves.deviation(1) / float(self._norm)
        tree = Tree(self._directions)
        for level in range(self.levels):
            cells = min(2**level, self._most_leaves)
            grow(tree, growing.noisy(exact_leaf_sums(rows, tree, cells, full=False)), 2 * least, self._most_leaves)
        noisy = leaves.noisy(exact_leaf_sums(rows, tree, min(2**self.levels, self._most_leaves), full=True))
        counts, sums = (part[: len(tree.leaves)] for part in noisy)
        kept = counts >= min(_LEAST * leaves.deviation(0), float(counts.max()))
        points = self._inside(sums[kept] / np.maximum(counts[kept], 1.0)[:, None])
        found = weighted_centers(points, np.maximum(counts[kept], 1.0), self.clusters)
        return np.concatenate([found, self._farthest(found, self.clusters - len(found))])

    def _farthest(self, found: Floats, more: int) -> Floats:
        """The public points farthest from the centers found, and from one another."""
        if not more:
            return np.zeros((0, self.features))
        public, distance = self.first_centers(), np.full(self.clusters, np.inf)
        for center in found:
            distance = np.minimum(distance, ((public - center) ** 2).sum(1))
        chosen: list[Floats] = []
        for _ in range(more):
            chosen.append(public[int(distance.argmax())])
            distance = np.minimum(distance, ((public - chosen[-1]) ** 2).sum(1))
        return np.array(chosen).reshape(more, self.features)

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

    def _moved(self, centers: Floats, means: Floats, counts: Floats) -> Floats:
        """Means of clusters with enough rows. The other centers move next to those of the largest clusters."""
        least = _LEAST * self._round.deviation(0)
        left, moved = counts.copy(), self._inside(means)
        for place in np.flatnonzero(left < least).tolist():
            largest = int(left.argmax())
            if left[largest] < 2 * least:
                moved[place] = centers[place]
                continue
            left[[place, largest]] = left[largest] / 2
            moved[place] = moved[largest] + (centers[place] - moved[largest]) / 4
        return self._inside(moved)

    def first_centers(self) -> Floats:
        """Public points, evenly spread."""
        size = 1.0 if self.feature_norm is None else float(self._norm)
        return public_centers(self.clusters, self.features, self.feature_norm is not None) * size


def _count(share: Fraction) -> Part:
    return Part(grain=Fraction(1), length=Fraction(1), total=Fraction(1), share=share, coordinates=1)


def _radius(ring: Floats, edges: Floats) -> float:
    """The smallest edge within which most rows are. `ring[j]` is the number of rows within edge j and not within the
    next."""
    inside = np.cumsum(np.maximum(ring, 0.0)[::-1])[::-1]
    return float(edges[np.flatnonzero(inside >= _INSIDE * inside[0]).max()])
