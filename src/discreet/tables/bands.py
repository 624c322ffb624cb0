"""Quantiles with intervals, read from noisy cumulative counts, or from two neighbors of each quantile that are far
enough away to enclose the true one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_probability
from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.unit import Unit
from discreet.mechanisms.quantiles.cumulative import QuantilesFromCounts, bins_for, predicted_error
from discreet.mechanisms.quantiles.quantiles import Quantiles
from discreet.queries.space import Integers
from discreet.releases import Release
from discreet.sql.planner import Planner
from discreet.tables.asking import query_of
from discreet.tables.days import from_number
from discreet.tables.offer import SqlOffer, convert_release, error_of_all

FINEST = 10**6
"""Quantiles are rounded to multiples of one divided by this."""
LOWEST, HIGHEST = -1, -2
Least = Literal["bound", "mean", "largest"]
"""Which error is to be least: the one that is promised, or the one to be expected on average or at worst."""
WIDEST = 256
"""Bins of more points than this may be too coarse: all values could lie in a few of them."""
_ROUNDS = 5


@dataclass(frozen=True, kw_only=True)
class BandedQuantiles(Release):
    """Released quantiles: `value` in the given order, and the interval of each. All intervals hold at once."""

    intervals: Any = None

    def _value_text(self) -> str:
        """Every quantile with its interval."""
        lines = zip(self.value, *np.asarray(self.intervals).T, strict=True)
        return ", ".join(f"{value} ({_ends(low, high)})" for value, low, high in lines)


def _ends(low: Any, high: Any) -> str:
    """Both ends of an interval, or the one that it has."""
    if low is None or high is None:
        return "any value" if low is high else f"{high} or less" if low is None else f"{low} or more"
    return f"{low} to {high}"


def ending(number: float, kind: str, *, whole: bool) -> Any:
    """An end of an interval, as a value of its column. None if there is no end."""
    return from_number(int(number) if whole else number, kind) if math.isfinite(number) else None


@dataclass(frozen=True)
class BandedOffer(SqlOffer):
    """Quantiles in SQL, by the names of their columns: each is chosen with its own interval."""

    names: Sequence[str]
    kind: str

    def release(self) -> BandedQuantiles:
        answer = self._answer()
        ends = [[answer.table.column(f"{name}_{end}")[0].as_py() for end in ("low", "high")] for name in self.names]
        whole = self.kind == "integer"
        shown = [[None if end is None else ending(end, self.kind, whole=whole) for end in own] for own in ends]
        return convert_release(BandedQuantiles, self._release_of(answer), intervals=np.array(shown))  # type: ignore[no-any-return]


def chosen_quantiles(
    planner: Planner, number: str, at: Sequence[Any], where: str | None, epsilon: Number, kind: str
) -> BandedOffer:
    """Quantiles of a number, each chosen by itself."""
    names = [f"q{place}" for place, _ in enumerate(at)]
    shown = [f"QUANTILE_CONT({number}, {float(q)!r}) AS {name}" for name, q in zip(names, at, strict=True)]
    plan = planner.plan(query_of(", ".join(shown), where), epsilon=epsilon, delta=0)

    def value_of(answer: dict[str, list[Any]]) -> Any:
        return np.array([from_number(answer[name][0], kind) for name in names])

    return BandedOffer(planner, plan, value_of, error_of_all, names, kind)


@dataclass(frozen=True)
class Bands:
    """The mechanism for all quantiles, and the positions of the ends and the middle of each one in its answer. LOWEST
    and HIGHEST stand for the ends of the range.

    Cumulative counts draw the ends with each quantile. A recursion draws two more quantiles for each: its interval
    contains the true quantile if no answer is off by more than their distance and there are as many rows as stated.
    """

    mechanism: Quantiles | QuantilesFromCounts
    places: tuple[tuple[int, int, int], ...]

    def read(self, drawn: Any, space: Integers) -> NDArray[Any]:
        """One line (low, middle, high) for each quantile, in the given order."""
        known = [*np.ravel(drawn).tolist(), space.high, space.low]  # the last two are HIGHEST and LOWEST
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
    """The best mechanism for some quantiles and their intervals, for at least about `rows` rows.

    Cumulative counts have the narrowest intervals, if their bins are not much coarser than the points of the space.
    Otherwise, and for another kind of error, public facts choose between counts and a recursion.
    """
    asked, count = validate_quantiles(quantiles, least), max(rows, 1.0)
    given: dict[str, Any] = {"space": space, "unit": unit, "rows_per_person": rows_per_person}
    listed = sorted(set(asked))
    counts = _counts(guarantee, space, tuple(listed), bins_for(int(count)), confidence, unit, rows_per_person)
    lines = {q: (3 * place, 3 * place + 1, 3 * place + 2) for place, q in enumerate(listed)}
    counted = Bands(counts, tuple(lines[q] for q in asked))
    if least == "bound" and counts.counts.width <= WIDEST:
        return counted
    chosen = _with_recursion(guarantee, asked, count, confidence, **given)
    if least == "bound" or predicted_error(chosen.mechanism, least) <= predicted_error(counts, least):
        return chosen
    return counted


@lru_cache(maxsize=64)
def _counts(
    guarantee: Guarantee,
    space: Integers,
    quantiles: tuple[Fraction, ...],
    bins: int,
    confidence: float,
    unit: Unit,
    rows_per_person: int,
) -> QuantilesFromCounts:
    """Calibrated once: a release is planned before and after its rows are counted, often with the same bins."""
    given: dict[str, Any] = {"unit": unit, "rows_per_person": rows_per_person, "confidence": confidence}
    return QuantilesFromCounts.for_guarantee(guarantee, space=space, quantiles=quantiles, bins=bins, **given)


def _with_recursion(
    guarantee: Guarantee, asked: list[Fraction], count: float, confidence: float, **given: Any
) -> Bands:
    """A recursion for all quantiles and the two next to each of them, a little farther away than its error."""
    best, wide = None, Fraction(1, 4)
    for _ in range(_ROUNDS):
        listed = _with_neighbors(asked, wide)
        made = Quantiles.for_guarantee(guarantee, quantiles=listed, **given)
        ranks = float(made.error(confidence))
        needed = Fraction(min(FINEST, int(ranks / count * FINEST) + 1), FINEST)
        if needed <= wide:
            best = Bands(made, _places(asked, listed, wide))
            if wide <= 2 * needed:
                break
        wide = min(Fraction(1), Fraction(int(needed * FINEST * 5 / 4) + 1, FINEST))
    return best or Bands(made, _places(asked, listed, Fraction(1)))


def _with_neighbors(asked: Sequence[Fraction], wide: Fraction) -> list[Fraction]:
    near = {q for middle in asked for q in (middle - wide, middle, middle + wide)}
    return sorted(q for q in near if 0 < q < 1)


def _places(asked: Sequence[Fraction], listed: list[Fraction], wide: Fraction) -> tuple[tuple[int, int, int], ...]:
    at = {q: place for place, q in enumerate(listed)}
    return tuple((at.get(q - wide, LOWEST), at[q], at.get(q + wide, HIGHEST)) for q in asked)
