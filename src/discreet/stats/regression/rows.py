"""The private rows of a regression: coded, and asked for sums first and then for the squares of scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.exact.rational import sqrt_up
from discreet.queries.sensitivity import Sensitivity
from discreet.stats.regression.designs import Coded, Design, by_row
from discreet.stats.regression.linear import FAR, NoisyRegression
from discreet.stats.regression.released_moments import Layout
from discreet.stats.samples.dividing import Ints, part_of_range

Floats = NDArray[np.float64]
SQUARE_BITS = 24
_BLOCK = 2**14
_CLEAR, _ENOUGH = 6.0, 8.0


def codes_of(columns: tuple[Coded, ...], numbers: dict[str, Floats], chosen: dict[str, Ints]) -> list[Floats]:
    """The codes of rows, NaN where a cell is missing: from −1 to 1 for a number, and the place of a level."""
    found = []
    for column in columns:
        if column.ends is not None:
            found.append(2 * part_of_range(numbers[column.name], *column.ends) - 1)
        elif column.name in chosen:
            found.append(np.where(chosen[column.name] < 0, np.nan, chosen[column.name]))
        else:
            found.append(np.rint(part_of_range(numbers[column.name], 0.0, 1.0)))
    return found


def totals_by_unit(values: Floats, owners: Ints) -> Floats:
    """The sum of each column of `values` over the rows of every unit, in multiples of 2^−24: the order of rows does not
    matter. A number beyond ±2^16 counts as that.
    """
    units = int(owners.max()) + 1 if len(owners) else 0
    whole = np.rint(np.clip(np.nan_to_num(values), -(2.0**16), 2.0**16) * 2**SQUARE_BITS)
    totals = np.stack([np.bincount(owners, column, minlength=units) for column in whole.T], 1)
    return np.asarray(totals / 2**SQUARE_BITS)


def sum_of_squares(values: Floats) -> NDArray[np.object_]:
    """The exact sum over units of the squares of numbers from −1 to 1, each rounded to a multiple of 2^−24."""
    known = np.clip(np.nan_to_num(values), -1.0, 1.0) ** 2
    totals = np.rint(known * 2**SQUARE_BITS).astype(np.int64).sum(0)
    return np.array([*(Fraction(int(total), 2**SQUARE_BITS) for total in totals), None], dtype=object)[:-1]


def square_sensitivity(size: int, unit: Any, norm: str) -> Sensitivity:
    """That of `sum_of_squares` for this many columns: each changes by at most 1 for one unit, in both relations."""
    amount = Fraction(size) if norm == "L1" else sqrt_up(Fraction(size))
    return Sensitivity(amount, norm, unit, size, Fraction(1, 2**SQUARE_BITS))  # type: ignore[arg-type]


@dataclass(frozen=True)
class RegressionRows:
    """Coded rows. The first question is for the sums of the layout. The second is for the squares of the scores of
    units. `scores` makes from the first answer a function of the terms and the outcome of rows: a number for each row
    and score, in units of the most that a unit counts for.
    """

    layout: Layout
    codes: list[Floats]
    owners: Ints | None
    scores: Callable[[Any], Callable[[Floats], Floats]]

    def answer(self, earlier: list[Any]) -> Any:
        """The exact answer to the next question."""
        if not earlier:
            return self.layout.query(self.layout.blocks(self.codes))
        scores, kept, totals = self.scores(earlier[0]), [], []
        for start in range(0, max(len(self.codes[0]), 1), _BLOCK):
            block = [code[start : start + _BLOCK] for code in self.codes]
            known = ~np.any(np.isnan(block), axis=0)
            values = self.layout.design.values([np.nan_to_num(one) for one in block])
            each = np.where(known[:, None], scores(values), 0.0)
            if self.owners is None:
                totals.append(sum_of_squares(each))
            else:
                kept.append(each)
        if self.owners is None:
            return np.sum(totals, axis=0)
        return sum_of_squares(totals_by_unit(np.concatenate(kept), self.owners))


def scores_of(model: NoisyRegression, values: Floats) -> Floats:
    """For each row and coefficient the residual times what is left of the term after the others."""
    weights = np.stack([model.weights_of_score(place) for place in range(model.size)], 1)
    left, residuals = by_row(values[:, :-1], weights), by_row(values, np.asarray(model.residual)[:, None])
    return np.asarray(left * residuals)


def square_reach(model: NoisyRegression, design: Design, of_one: int, deviation: float) -> Floats:
    """The squares of scores of units are cut off here, for each coefficient. It follows from what was released.

    It is the most that they can be, or less if that would hide their sum in noise of this `deviation`: where the
    expected sum is `_CLEAR` times the noise (and at least `_CLEAR`·`_ENOUGH` such squares), but never less than
    `FAR` deviations of a score.
    """
    weights = [model.weights_of_score(place) for place in range(model.size)]
    longer = [np.concatenate([one, np.zeros((*one.shape[:-1], 1))], -1) for one in weights]
    bounds = np.stack([design.bound(one) for one in longer], -1) * design.bound(model.residual)[..., None]
    most = np.maximum(of_one * bounds, 1e-12) ** 2
    own = np.maximum(np.diagonal(model.inverse, axis1=-2, axis2=-1), 1e-300)
    total = np.maximum(model.residual_squares, 0.0)[..., None] / own / model.freedom[..., None]
    least = (FAR * of_one) ** 2 * total / np.maximum(model.count, 1.0)[..., None]
    chosen = np.minimum(np.maximum(total / (_CLEAR * max(deviation, _ENOUGH)), least), most)
    usable = np.asarray(model.is_known)[..., None] & (chosen > 1e-9 * most)
    return np.asarray(np.where(usable, chosen, most))
