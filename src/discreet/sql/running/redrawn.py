"""Errors of what is computed from many released numbers: shares, running sums, differences to the row before.

The noise has a known law. So the released numbers are moved by noise that is drawn again, many times, the column is
computed from each of these tables, and the error covers as many of the results as the confidence says. The draws are
the same for every answer, so an answer that is shown again has the same errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.errors import EngineFailed
from discreet.sql.expressions import Expr, Window, walk
from discreet.sql.question import Question
from discreet.sql.running.intervals import Band, Columns, Floats, combine
from discreet.sql.running.shown import DRAW, computed_again, having_rows, released_cells, round_counts

MOST_DRAWS, LEAST_DRAWS, MOST_CELLS = 1000, 200, 4_000_000
"""An error is simulated by so many draws, of so many numbers of groups in all. Beyond that, there is none."""
_MOST_PARTS = 4096
"""Each part of an answer has its own numbers, so that they are the same whichever parts are drawn again."""
RANKS = ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile")
"""Noise moves a rank by jumps, which no interval describes well."""

EXTREMES = ("max", "min", "first_value", "last_value")


def has_rank(expr: Expr) -> bool:
    """Whether a column depends on the places of rows in an order."""
    return any(isinstance(part, Window) and part.function in RANKS for part in walk(expr))


def has_extreme(expr: Expr) -> bool:
    """Whether a column uses the largest or smallest of noisy numbers: noise moves it to one side, by more than noise
    that is drawn again shows.
    """
    return any(isinstance(part, Window) and part.function in EXTREMES for part in walk(expr))


def redrawn_bands(question: Question, columns: Columns, exprs: Sequence[Expr], confidence: float) -> list[Band | None]:
    """The interval of each expression, for each group: the middle part of its simulated values. Where the noise decides
    which rows are shown, all intervals of a column hold at once.
    """
    kept = having_rows(question, columns)
    many = len(kept)
    draws = min(MOST_DRAWS, MOST_CELLS // max(many, 1))
    wanted = [e for e in exprs if e.type in ("integer", "number") and not has_rank(e) and not has_extreme(e)]
    wanted = [expr for expr in wanted if columns.is_drawn_for(expr, confidence)]
    drawn = _cells(question, columns, kept, draws) if wanted and many and draws >= LEAST_DRAWS else None
    if drawn is None or question.distinct:
        return [None] * len(exprs)
    try:
        found = computed_again(question, drawn, wanted)
    except EngineFailed:  # the answer is there all the same
        return [None] * len(exprs)
    bands = {}
    for number, expr in enumerate(wanted):
        values = found.column(f"e{number}").cast("float64").to_numpy().reshape(draws + 1, many)
        bands[expr] = _spread(interval_of(values, confidence, columns.is_chosen_by(expr)), kept, len(columns.keys))
    return [bands.get(expr) for expr in exprs]


def redrawn_table(question: Question, columns: Columns, places: Any, draws: int, stream: int) -> Any:
    """The shown rows of an answer as they are (draw 0) and as they may be without noise: an Arrow table with the draw
    and the columns of the answer. None if the noise of a column is not known. Answers with different streams have
    independent draws.
    """
    import pyarrow as pa

    kept = having_rows(question, columns)
    drawn = _cells(question, columns, kept, draws, stream)
    if drawn is None:
        return None
    found = computed_again(question, drawn, [output.expr for output in question.outputs])
    rows = np.arange((draws + 1) * len(kept)).reshape(draws + 1, len(kept))
    chosen = pa.array(rows[:, np.searchsorted(kept, places)].reshape(-1))
    shown = {output.name: found.column(f"e{number}").take(chosen) for number, output in enumerate(question.outputs)}
    return pa.table({DRAW: np.repeat(np.arange(draws + 1), len(places)), **shown})


def _cells(question: Question, columns: Columns, kept: Any, draws: int, stream: int = 0) -> Any:
    """The released numbers of the groups that HAVING leaves, as they are (draw 0) and as they may be without noise."""
    import pyarrow as pa

    parts: dict[int, Floats] = {}
    for part in sorted(columns.parts_of(*(output.expr for output in question.outputs))):
        again = columns.redrawn(part, draws, _Mixed(stream * _MOST_PARTS + part))
        if again is None:
            return None
        parts[part] = np.concatenate([columns.noisy[part][None], again])[:, kept]
    values = {}
    for aggregate in question.aggregates:
        if all(part in parts for part in aggregate.parts):
            numbers = [parts[part].reshape(-1, *parts[part].shape[2:]) for part in aggregate.parts]
            found = combine(aggregate, [question.measures[p] for p in aggregate.parts], numbers)
            values[aggregate.field.id] = round_counts(found, aggregate.field.type)
    once = released_cells(columns, kept, {})
    rows = pa.array(np.tile(np.arange(len(kept)), draws + 1))
    keys = {name: values.take(rows) for name, values in once.items()}
    return pa.table({DRAW: np.repeat(np.arange(draws + 1), len(kept)), "place": rows, **keys, **values})


def interval_of(values: Floats, confidence: float, at_once: bool) -> Band:
    """The ends of the middle part of the simulated values of each group, of which the first is the released one."""
    released, drawn = values[0], values[1:]
    tail = (1 - confidence) / 2
    far = np.where(np.isnan(drawn), np.inf, drawn)  # a value that could not be computed may be anything
    low = np.quantile(np.where(np.isnan(drawn), -np.inf, drawn), tail, axis=0, method="lower")
    high = np.quantile(far, 1 - tail, axis=0, method="higher")
    low, high = np.minimum(low, released), np.maximum(high, released)
    if at_once:
        with np.errstate(invalid="ignore", divide="ignore"):
            ratios = np.maximum((released - drawn) / (released - low), (drawn - released) / (high - released))
        factor = np.quantile(np.nanmax(np.where(np.isfinite(ratios), ratios, 0.0), axis=1), confidence, method="higher")
        low, high = released - factor * (released - low), released + factor * (high - released)
    moved = 2 * _moved(released, drawn)
    return low - moved, high + moved


def _moved(released: Floats, drawn: Floats) -> Floats:
    """How far noise moves a number in one direction, as it does a maximum or a sum of absolute values. The released one
    is moved already, by more than noise on top of it moves it again. 0 unless it is more than chance.
    """
    with np.errstate(invalid="ignore"):
        known = np.where(np.isfinite(drawn), drawn, released)
        first, middle, last = np.quantile(known, (0.16, 0.5, 0.84), axis=0)
        beyond = np.abs(middle - released) - 4 * (last - first) / 2 / np.sqrt(len(drawn))
    return np.where(np.isfinite(beyond), np.maximum(beyond, 0.0), 0.0)


def _spread(band: Band, kept: Any, many: int) -> Band:
    """The intervals of the kept groups among all groups."""
    ends = [np.full(many, np.nan) for _ in band]
    for end, known in zip(ends, band, strict=True):
        end[kept] = known
    return ends[0], ends[1]


class _Mixed:
    """Numbers between 0 and 1 that look random: the mixed bits of 1, 2, 3, … (SplitMix64). They protect nobody, so they
    need not be unpredictable, and they are the same each time.
    """

    def __init__(self, stream: int = 0) -> None:
        self._used = stream << 40

    def __call__(self, shape: tuple[int, ...]) -> Floats:
        many = int(np.prod(shape))
        bits = np.arange(self._used + 1, self._used + many + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        self._used += many
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
        bits ^= bits >> np.uint64(31)
        return np.asarray(((bits >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53).reshape(shape)
