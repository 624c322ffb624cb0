"""The noise of an answer with several levels that add up: each level is measured with its own part of ε."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.mechanisms.noise.laplace import Laplace
from discreet.queries.levels import LevelSizes, with_meets
from discreet.sql.measuring.groups import Groups, ShownGroups
from discreet.sql.question import Question

_GRAIN = 10**6
"""Shares are multiples of about a millionth."""
_MORE = 1.001


@dataclass(frozen=True)
class LevelShares:
    """The levels that are measured, and the part of ε of each. `exact` if the cells are all combinations of the keys'
    values, so that the errors are known without them.
    """

    sizes: LevelSizes
    shares: tuple[Fraction, ...]
    exact: bool

    @cached_property
    def people(self) -> float:
        """How many people should exceed a limit on what one adds, for each unit of ε: then a higher limit would add as
        much noise to a group of each level as it would save. What is lost is divided among the groups of a level.
        """
        asked = slice(0, self.sizes.asked)
        noise = np.sqrt(self.variances)[asked].sum()
        return float(noise / (1 / np.array(self.sizes.sizes[asked], dtype=np.float64)).sum())

    @cached_property
    def most_exact(self) -> int:
        """The level with the largest part of ε."""
        return max(range(len(self.shares)), key=self.shares.__getitem__)

    @cached_property
    def variances(self) -> NDArray[np.float64]:
        """The variance of a number of each level, in units of the noise that all of ε would buy."""
        return self.sizes.variances(np.array([float(share) ** 2 for share in self.shares]))


def measured_levels(question: Question) -> tuple[tuple[int, ...], ...]:
    """The levels asked for, and then what helps to estimate them: the finest, and the keys that levels share."""
    return with_meets([*question.levels, tuple(range(len(question.keys)))])


def level_shares(question: Question, groups: Groups | None, number: int) -> LevelShares | None:
    """How ε is divided among the levels of a question. Only public facts and chosen groups decide. `number` is a guess
    of how many groups there are, if they are not known.
    """
    if not question.levels:
        return None
    levels = measured_levels(question)
    if groups is None:
        sizes = [max(1, round(number ** (len(level) / len(question.keys)))) for level in levels]
    elif isinstance(groups, ShownGroups):
        keys = groups.keys()
        sizes = [len({tuple(key[place] for place in level) for key in keys}) for level in levels]
        number = len(keys)
    else:
        sizes = [math.prod(len(groups.domains[place]) for place in level) for level in levels]
        number = groups.count
    known = LevelSizes(levels, tuple(max(1, size) for size in sizes), max(1, number), len(question.levels))
    return LevelShares(known, _shares(known), exact=groups is not None and not isinstance(groups, ShownGroups))


@lru_cache(maxsize=100)
def _shares(sizes: LevelSizes) -> tuple[Fraction, ...]:
    parts = [max(1, round(_GRAIN * share)) for share in sizes.shares().tolist()]
    return tuple(Fraction(part, sum(parts)) for part in parts)


@dataclass(frozen=True)
class LeveledNoise:
    """The noise of one measure at all levels, in its steps."""

    noises: tuple[Laplace, ...]
    shares: LevelShares

    def error(self, confidence: float, *, values: int = 1) -> Accuracy:
        """The largest error of a number that is asked for."""
        each = 1 - (1 - check_confidence(confidence)) / values
        errors = [self.at(level, each) for level in range(self.shares.sizes.asked)]
        return Accuracy(amount=max(errors), confidence=confidence, of="value" if values == 1 else "every value")

    def at(self, level: int, confidence: float) -> float:
        """The error of a number at one level: that of its own noise or, if it is known, that of the estimate from all
        levels.
        """
        own = float(self.noises[level].error(confidence))
        if not self.shares.exact:
            return own
        whole = self.noises[level].deviation * float(self.shares.shares[level])
        return min(own, whole * math.sqrt(float(self.shares.variances[level])) * reach(confidence))


def reach(confidence: float) -> float:
    """How many standard deviations a sum of Laplace noises, with any factors, is away from 0 with this confidence: at
    most as many as one Laplace noise, or as a Gaussian noise, and a thousandth more. Without that, two equal noises
    are wider at 90.7%, where both are equal.
    """
    from scipy.special import ndtri

    outside = 1 - confidence
    return _MORE * max(math.log(1 / outside) / math.sqrt(2), float(ndtri(1 - outside / 2)))
