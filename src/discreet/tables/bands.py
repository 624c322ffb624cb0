"""Quantiles with intervals: each is computed with two neighbors, far enough away that they enclose the true
quantile.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import check_probability
from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.unit import Unit
from discreet.mechanisms.counts.factorization import MOST_POINTS
from discreet.mechanisms.quantiles.cumulative import QuantilesFromCounts, best_quantiles
from discreet.mechanisms.quantiles.quantiles import Quantiles
from discreet.queries.space import Integers
from discreet.releases import Release

FINEST = 10**6
"""Quantiles are rounded to multiples of one divided by this."""
LOWEST, HIGHEST = -1, -2
Least = Literal["bound", "mean", "largest"]
"""Which error is to be least: the one that is promised, or the one to be expected on average or at worst."""
_ROUNDS = 5


@dataclass(frozen=True, kw_only=True)
class BandedQuantiles(Release):
    """Released quantiles: `value` in the given order, and the interval of each. All intervals hold at once."""

    intervals: Any = None

    def _value_text(self) -> str:
        """Every quantile with its interval."""
        lines = zip(self.value, *np.asarray(self.intervals).T, strict=True)
        return ", ".join(f"{value} ({low} to {high})" for value, low, high in lines)


@dataclass(frozen=True)
class Bands:
    """The mechanism for all quantiles, and the positions of the ends and the middle of each one in its answer. LOWEST
    and HIGHEST stand for the ends of the range.

    The interval of q contains the true quantile if no answer is off by more than `ranks` ranks and there are as many
    rows as stated. The outer quantiles are `ranks` rows away.
    """

    mechanism: Quantiles | QuantilesFromCounts
    places: tuple[tuple[int, int, int], ...]
    ranks: float | None

    def read(self, drawn: Any, space: Integers) -> NDArray[Any]:
        """One line (low, middle, high) for each quantile, in the given order."""
        known = [*np.asarray(drawn).tolist(), space.high, space.low]  # the last two are HIGHEST and LOWEST
        return np.array([[known[place] for place in line] for line in self.places])


def validate_quantiles(quantiles: Any, least: str) -> list[Fraction]:
    """The requested quantiles as exact numbers. Raises if they are invalid."""
    if not isinstance(least, str) or least not in get_args(Least):
        raise InvalidArgument("least must be 'bound', 'mean' or 'largest'.", code="not-an-option")
    if isinstance(quantiles, str) or not isinstance(quantiles, Sequence | np.ndarray) or not np.size(quantiles):
        raise InvalidArgument("Ask for a list of at least one quantile between 0 and 1, such as [0.5].", code="empty")
    listed = np.ravel(np.asarray(quantiles, dtype=object))
    asked = [Fraction(round(check_probability(_plain(q), "a quantile") * FINEST), FINEST) for q in listed]
    if any(not 0 < q < 1 for q in asked):
        raise InvalidArgument(
            f"Quantiles are rounded to one part in {FINEST:,}, and none may be nearer to 0 or 1.", code="out-of-range"
        )
    return asked


def _plain(number: Any) -> Any:
    return number.item() if isinstance(number, np.generic) else number


def bands_for(
    guarantee: Guarantee,
    *,
    space: Integers,
    quantiles: Sequence[Any],
    rows: float,
    unit: Unit,
    rows_per_person: int = 1,
    least: Least = "bound",
    confidence: float = 0.95,
) -> Bands:
    """The best mechanism for some quantiles and the two next to each of them, for at least about `rows` rows."""
    asked = validate_quantiles(quantiles, least)
    count = max(rows, 1.0)
    options: dict[str, Any] = {"unit": unit, "rows_per_person": rows_per_person, "rows": int(count)}
    best, wide = None, Fraction(1, 4)
    for _ in range(_ROUNDS):
        listed = _with_neighbors(asked, wide)
        made = _best_method(guarantee, least, space=space, quantiles=listed, **options)
        ranks = made.error(confidence).amount
        needed = Fraction(1) if ranks is None else Fraction(min(FINEST, int(ranks / count * FINEST) + 1), FINEST)
        if needed <= wide:
            best = Bands(made, _places(asked, listed, wide), ranks)
            if wide <= 2 * needed:
                break
        wide = min(Fraction(1), Fraction(int(needed * FINEST * 5 / 4) + 1, FINEST))
    return best or Bands(made, _places(asked, listed, Fraction(1)), ranks)


def _best_method(guarantee: Guarantee, least: Least, *, rows: int, **asked: Any) -> Quantiles | QuantilesFromCounts:
    """The method with the smallest error, in the requested sense. Only public facts decide."""
    if least != "bound":
        return best_quantiles(guarantee, least=least, rows=rows, **asked)
    chosen: list[Quantiles | QuantilesFromCounts] = [Quantiles.for_guarantee(guarantee, **asked)]
    chosen.append(QuantilesFromCounts.for_guarantee(guarantee, bins=MOST_POINTS, **asked))
    return min(chosen, key=lambda mechanism: mechanism.error(0.95).amount or math.inf)


def _with_neighbors(asked: Sequence[Fraction], wide: Fraction) -> list[Fraction]:
    near = {q for middle in asked for q in (middle - wide, middle, middle + wide)}
    return sorted(q for q in near if 0 < q < 1)


def _places(asked: Sequence[Fraction], listed: list[Fraction], wide: Fraction) -> tuple[tuple[int, int, int], ...]:
    at = {q: place for place, q in enumerate(listed)}
    return tuple((at.get(q - wide, LOWEST), at[q], at.get(q + wide, HIGHEST)) for q in asked)
