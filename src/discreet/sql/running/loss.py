"""What is lost to clipping, estimated from the release itself.

Each person above the limit adds to numbers that are released with the answer. If there are few cells, all add the same:
the numbers say how many people were scaled down, and in which measures. How much such a person has in all, nobody can
promise: one person may hold anything. Intervals cover the truth with their confidence if people above the limit have at
most twice the limit on average, so that at most as much is lost as is kept, and if each group has its part in the loss.

If there are many cells, a person adds as much as is lost, up to a largest loss, and intervals take all to lose more
than these numbers say. In L2 only this says something: the limit is on a norm there, and one with a row in each of 16
groups has the norm of one with 4 rows in one group.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.exact.rational import exactly
from discreet.mechanisms.noise.joint import JointNoise
from discreet.mechanisms.noise.laplace import Laplace
from discreet.sql.pricing.clipping import Clip, Clipping, has_one_sign

Floats = NDArray[np.float64]
BEYOND = 1.6
"""What is lost, in units of what is measured: people may lose more than the most that is measured of them. With this,
intervals cover tails as long as Pareto's with exponent 2 (`bench/sql/clipping_squares.py`)."""

USUAL_PART = 0.1
"""People mostly add at least this part of the limits on average, also if few have by far the most
(`tests/sql/running/test_unknown_errors.py`)."""


@dataclass(frozen=True)
class Loss:
    """The noisy numbers of a clipped answer, in steps: `cells` for each number of the basis, and `above` for what the
    people above the limit have of each kind.
    """

    clipping: Clipping
    clip: Clip
    noise: JointNoise
    cells: list[Floats]
    above: Floats

    def limits(self, confidence: float | None = None) -> float:
        """How many times the limit was lost: an estimate, or with a confidence not more than this. Where people are
        counted, it is how many are above the limit.
        """
        if not self.clip.above:
            return 0.0
        most = 0.0 if confidence is None else float(self.noise.error(confidence)) * np.sqrt(len(self.above))
        return max(0.0, float(self.above.sum()) + most) * self.lost_for_each / self.clip.limit

    def of_all(self, confidence: float | None = None) -> float:
        """The part of all steps that was lost: an estimate, or with a confidence not more than this."""
        lost = self.limits(confidence) * self.clip.limit
        return lost / (lost + sum(float(np.abs(cells).sum()) for cells in self.cells)) if lost else 0.0

    def is_mostly_noise(self) -> bool:
        """Whether what is kept is so little that there are probably too few people. Only released numbers decide."""
        if not (plain := _plain(self.clipping)) or not self.clip.above:
            return False
        kept = sum(abs(float(self.cells[place].sum())) / self.clip.reached[place] for place in plain)
        guessed = 0.0 if self.clip.most_lost else self.limits()  # what is measured may be much, and is in the ±
        return kept < _needed(self.clipping, self.clip, self.noise, len(self.cells[0]), guessed)

    def share(self, number: int) -> float:
        """The estimated part of a measure that is lost, over all groups."""
        lost = kept = 0.0
        for place, factor in self.clipping.basis.made_of[number]:
            size = float(abs(factor) * self.clip.units[place])
            lost += size * max(0.0, self._lost(place))
            kept += size * max(0.0, abs(float(self.cells[place].sum())))
        return lost / (lost + kept) if lost else 0.0

    def interval(self, number: int, confidence: float) -> tuple[Floats, Floats]:
        """How far below and how far above its noisy number the truth of a measure may be, in each group."""
        made = self.clipping.basis.made_of[number]
        each = 1 - (1 - confidence) / len(made)
        below, beyond = np.zeros(1), np.zeros(1)
        for place, factor in made:
            size = float(abs(factor) * self.clip.units[place])
            noise, missing = self._noise_and_missing(place, each)
            signed = not has_one_sign(self.clipping.basis.measures[place])
            beyond = beyond + size * (missing if signed or factor > 0 else noise)
            below = below + size * (missing if signed or factor < 0 else noise)
        return below, beyond

    def _noise_and_missing(self, place: int, confidence: float) -> tuple[Floats, Floats]:
        """How large the noise of a number may be, and how large the noise and the loss together, in steps. Both have
        the same kind of noise, and the tail of their sum is known.
        """
        noise = np.full(len(self.cells[0]), float(self.noise.error(confidence)))
        if not self.clip.above:
            return noise, noise
        ratio = self._parts(place) * self.lost_for_each
        if isinstance(self.noise.noise, Laplace):
            both = float(exactly(self.noise.noise.scale)) * _tail_of_two(ratio, (1 - confidence) / 2)
        else:
            both = noise * np.sqrt(1 + ratio**2)
        lost = float(self.above[self.clipping.basis.kinds[place]]) * ratio
        return noise, np.maximum(noise, lost + both)

    def _parts(self, place: int) -> Floats:
        """The part of a number and each group in the loss of its kind. A group has part as in all numbers that are
        kept, and not less than an equal part.
        """
        sizes = np.sum([np.abs(cells) for cells in self.cells], axis=0)
        groups = max(len(sizes), 1)
        of_groups = np.maximum(sizes / max(float(sizes.sum()), 1.0), 1 / groups)
        return np.asarray(self._part_of_kind(place) * of_groups)

    def _part_of_kind(self, place: int) -> float:
        kinds = self.clipping.basis.kinds
        sizes = [abs(float(cells.sum())) for cells in self.cells]
        return sizes[place] / max(sum(s for s, kind in zip(sizes, kinds, strict=True) if kind == kinds[place]), 1.0)

    def _lost(self, place: int) -> float:
        """What people above the limit lose of a number, in steps. With noise: it may be below 0."""
        if not self.clip.above:
            return 0.0
        of_kind = float(self.above[self.clipping.basis.kinds[place]])
        return of_kind * self._part_of_kind(place) * self.lost_for_each

    @property
    def lost_for_each(self) -> float:
        """How many steps are lost for each step of the numbers that measure it."""
        return (BEYOND * self.clip.most_lost or 1.0) * self.clip.limit / self.clip.above


def _plain(clipping: Clipping) -> list[int]:
    """The numbers of an answer that say how many people are in it: those in which nothing cancels, if there are any."""
    measures = clipping.basis.measures
    uncentered = [place for place, measure in enumerate(measures) if not measure.center or measure.power == 2]
    return [place for place in uncentered if has_one_sign(measures[place])] or uncentered


def _needed(clipping: Clipping, clip: Clip, noise: JointNoise, groups: int, lost: float = 0.0) -> float:
    """How many limits must be kept in these numbers, in all groups, so that the answer is not mostly noise."""
    plain = _plain(clipping)
    spread = math.sqrt(groups * sum(1 / clip.reached[place] ** 2 for place in plain))
    enough = max(lost, *(search.enough for search in clipping.search().searches if search is not None))
    return float(noise.error(0.99)) * spread + 2 * len({clipping.basis.kinds[place] for place in plain}) * enough


def people_for_error(clipping: Clipping, clip: Clip) -> tuple[int, int] | None:
    """Below how many people the ± of an answer is mostly unknown, and from how many on it is mostly known. Only public
    facts decide. None if the number of people never matters.
    """
    filled = [place for place in _plain(clipping) if clipping.basis.minus[place] is None]
    if not filled or not clip.above:
        return None
    needed = _needed(clipping, clip, clipping.noise(clip), clipping.groups) / len(filled)  # each has the whole limit
    return math.ceil(needed), math.ceil(needed / USUAL_PART)


def may_cancel(clipping: Clipping) -> bool:
    """Whether numbers say how many people are in an answer whose values of both signs may cancel."""
    return not all(has_one_sign(clipping.basis.measures[place]) for place in _plain(clipping))


def _tail_of_two(ratio: Floats, tail: float) -> Floats:
    """The x for which P[L + ratio·M > x] = tail < ½, where L and M are independent Laplace noise of scale 1.

    The logarithm of this probability is concave, so Newton's steps from above stay above, and six of them are exact.
    """
    ratio = np.where(np.abs(ratio - 1) < 1e-6, 1 + 1e-6, ratio)  # the formula divides by ratio² − 1
    point = (1 + ratio) * np.log(1 / tail)
    for _ in range(6):
        with np.errstate(under="ignore", divide="ignore"):  # a part of 0 adds nothing: exp(−∞) = 0
            other, own = np.exp(-point / ratio), np.exp(-point)
        above, falls = ratio**2 * other - own, ratio * other - own  # both times 2 · (ratio² − 1)
        point = point + np.log(above / (2 * (ratio**2 - 1) * tail)) * above / falls
    return np.asarray(point)
