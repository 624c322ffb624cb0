"""Selection by score: the exponential mechanism, exactly, for integer and rational scores of any size."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact import samplers
from discreet.exact.rational import Number, check_count, check_positive, exactly, significant
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Guarantee, Pure
from discreet.guarantees.privacy_loss.compose import LossDistribution
from discreet.guarantees.privacy_loss.derived_pairs import BoundedRangePair
from discreet.mechanisms.noise.lattice import as_numbers
from discreet.mechanisms.protocol import (
    TAUGHT,
    TIGHT,
    check_calibration,
    least_noise,
    meets,
    plain_sensitivity,
    tidy,
)
from discreet.queries.scores import Scores
from discreet.queries.sensitivity import Sensitivity, SensitivityLike
from discreet.rows.containers import Data


def exact_scores(value: Data) -> tuple[NDArray[Any], Fraction]:
    """Scores as integers (or rationals) and their public unit. Floats are taken exactly. NaN is the lowest score."""
    if isinstance(value, Scores):
        return value.steps, value.unit
    array = as_numbers(value).reshape(-1)
    if array.dtype.kind == "f":
        with np.errstate(all="ignore"):  # a warning would reveal something about a score
            finite = np.nan_to_num(array.astype(np.float64), nan=-np.finfo(np.float64).max)
        array = np.array([Fraction(x) for x in finite.tolist()] + [None], dtype=object)[:-1]
    return array, Fraction(1)


def score_range(rate: Fraction, bound: Sensitivity) -> Fraction:
    """How far log-probabilities can move apart: 2·rate·Δ, or rate·Δ if a neighbor moves all scores in one direction."""
    return (1 if bound.monotone else 2) * rate * bound.exact


@dataclass(frozen=True, kw_only=True)
class _ByRate:
    """A choice whose preference for higher scores is `rate` per unit of score."""

    rate: Number
    choices: Sequence[Hashable] | None = None

    def __post_init__(self) -> None:
        check_positive(self.rate, "rate")
        if self.choices is not None:
            object.__setattr__(self, "choices", tuple(self.choices))

    def guarantee(self, sensitivity: SensitivityLike) -> Guarantee:
        """What a choice promises if one unit changes every score by at most `sensitivity`."""
        raise NotImplementedError

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        sensitivity: SensitivityLike,
        choices: Sequence[Hashable] | None = None,
        calibration: str = TIGHT,
    ) -> Self:
        """The strongest preference that satisfies `guarantee`. Taught: ε/(2Δ), for monotone scores or not [L3.EM]."""
        check_calibration(calibration)
        bound = plain_sensitivity(sensitivity, "Linf")
        if type(guarantee) is Pure or calibration == TAUGHT:
            if not isinstance(guarantee, Pure):
                raise InvalidArgument(
                    "The formula of the documents for the exponential mechanism holds for Pure only. Use "
                    "calibration='tight'.",
                    code="formula-does-not-apply",
                )
            factor = 2 if calibration == TAUGHT else score_range(Fraction(1), bound) / bound.exact
            return cls(
                rate=tidy(significant(exactly(guarantee.epsilon) / (factor * bound.exact), up=False)),
                choices=choices,
            )
        return least_noise(
            lambda scale: cls(rate=tidy(significant(1 / scale, up=False)), choices=choices),
            lambda m: meets(m.guarantee(bound), guarantee),
            bound.exact,
        )

    @classmethod
    def for_error(
        cls,
        amount: Number,
        *,
        candidates: int,
        confidence: float = 0.95,
        choices: Sequence[Hashable] | None = None,
    ) -> Self:
        """The weakest preference whose choice is within `amount` of the best score with this confidence."""
        most = check_positive(amount, "amount")
        unit = cls(rate=1, choices=choices).error(confidence, candidates=candidates)
        return cls(rate=tidy(significant(exactly(float(unit)) / most, up=True)), choices=choices)

    def error(self, confidence: float, *, candidates: int | None = None) -> Accuracy:
        """The score lost against the best: at most ln(candidates/(1−confidence))/rate [L3.EM-U]."""
        sure = check_confidence(confidence)
        if candidates is None and self.choices is None:
            return Accuracy(amount=None, confidence=sure, of="score", reason="the number of candidates is not given")
        count = len(self.choices or ()) if candidates is None else check_count(candidates, "candidates")
        return Accuracy(amount=math.log(count / (1 - sure)) / float(self.rate), confidence=sure, of="score")

    def sizes(self, value: Data) -> dict[str, int]:
        """How many candidates there are, for `error`. Raises if their number differs from the number of choices."""
        count = len(value) if isinstance(value, Scores) else int(np.size(value))
        if not count:
            raise InvalidArgument("There is nothing to choose from: give at least one score.", code="empty")
        if self.choices is not None and len(self.choices) != count:
            raise InvalidArgument(
                f"{len(self.choices)} choices are declared, but there are {count} scores. Give one for each choice.",
                code="wrong-shape",
            )
        return {"candidates": count}

    def _chosen(self, index: int) -> Any:
        return index if self.choices is None else self.choices[index]


@dataclass(frozen=True, kw_only=True)
class Exponential(_ByRate):
    """Chooses candidate r with probability ∝ exp(rate·score(r)).

    Promise: log-probabilities move by a range of at most ε = 2·rate·Δ (rate·Δ for monotone scores), so it
    is ε-DP and ε²/8-zCDP.
    Error: loses more than λ of the best score with probability at most candidates·exp(-rate·λ).
    Source: [L3.EM], [L3.EM-U].

    >>> Exponential.for_guarantee(Pure(epsilon=1), sensitivity=1, choices=["tea", "coffee"]).rate
    0.5
    """

    def guarantee(self, sensitivity: SensitivityLike) -> Guarantee:
        bound = plain_sensitivity(sensitivity, "Linf")
        pair = BoundedRangePair(score_range(exactly(self.rate), bound))
        return LossDistribution(factors=((pair, 1),), protects=bound.unit)

    def probabilities(self, scores: Data) -> NDArray[np.float64]:
        """The distribution of the choice, as floats, for inspection. The draw itself does not use them."""
        steps, unit = exact_scores(scores)
        levels, places = np.unique(steps, return_inverse=True)
        rate, (*_, best) = exactly(self.rate) * unit, levels.tolist()
        energies = np.array([float(min(rate * (best - level), 800)) for level in levels.tolist()])[places]
        weights = np.exp(-energies)
        return np.asarray(weights / weights.sum())

    def _draw(self, value: Any) -> Any:
        steps, unit = exact_scores(value)
        lost = steps.max() - steps if steps.dtype == object else _losses(steps)
        return self._chosen(int(samplers.exponential_choice(lost, exactly(self.rate) * unit, 1)[0]))


def _losses(steps: NDArray[np.int64]) -> NDArray[Any]:
    """How far each candidate's score is below the best, without wrapping."""
    if int(steps.max()) - int(steps.min()) >= 2**63:
        steps = steps.astype(object)
    return np.asarray(steps.max() - steps)


@dataclass(frozen=True, kw_only=True)
class PermuteAndFlip(_ByRate):
    """Goes through the candidates in random order and stops at r with probability exp(rate·(score(r) − best)).

    Promise: ε-DP with ε = 2·rate·Δ (rate·Δ for monotone scores), never a worse choice than the exponential
    mechanism at this ε; but its losses have no bounded range, so in zCDP it costs ε²/2 and not ε²/8.
    Error: as the exponential mechanism's, or better. Source: McKenna-Sheldon 2020, and [L6.T7].
    """

    def guarantee(self, sensitivity: SensitivityLike) -> Guarantee:
        bound = plain_sensitivity(sensitivity, "Linf")
        return Pure(epsilon=score_range(exactly(self.rate), bound), protects=bound.unit)

    def _draw(self, value: Any) -> Any:
        steps, unit = exact_scores(value)
        lost = steps.max() - steps if steps.dtype == object else _losses(steps)
        # the first heads in a random order is uniform among all heads; the best candidate always has heads
        heads = np.flatnonzero(samplers.bernoulli_exp_each(lost, exactly(self.rate) * unit))
        return self._chosen(int(heads[int(samplers.uniform_below(len(heads), 1)[0])]))
