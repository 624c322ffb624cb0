"""The answer to a question: a table of noisy values, each with its error next to it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from discreet import html
from discreet.errors import InvalidArgument
from discreet.exact.rational import exactly, readable
from discreet.extras import need
from discreet.guarantees.guarantee import Approx, Guarantee, NoLoss
from discreet.releases import Release, Released
from discreet.sql.expressions import Call, Expr, Ref
from discreet.sql.pricing.price import Price
from discreet.sql.question import Output, Question
from discreet.sql.running.intervals import Band, Columns
from discreet.sql.running.notes import note_on_large_errors
from discreet.sql.running.plot import plot_answer
from discreet.sql.running.redrawn import redrawn_bands
from discreet.sql.running.shown import shown_rows

CONFIDENCE = 0.95
MOST_NAMED = 12
"""So many receipts are named in a text."""


@dataclass(frozen=True)
class AnswerColumn:
    """A column of an answer: its Arrow type, and whether it has noise. `error_of` names the column whose error, or end
    of an interval, it is.
    """

    name: str
    type: Any
    noisy: bool = False
    error_of: str | None = None


class Answer(Released):
    """The released answer to a question in SQL: `table` is an Arrow table. Every noisy column has its error next to it.

    `cost` is the guarantee as (ε,δ), `guarantee` the complete one. For numbers that were bought before, it is what they
    cost then, together with whatever was measured with them. `notes` say what the errors do not cover, and whether some
    are larger than their numbers. `free` says why an answer that reads nothing private cost nothing. `derived_from` are
    the receipts of earlier answers that it is estimated from. If it has no receipt of its own, they imply it, and it
    cost nothing.
    """

    confidence: float = CONFIDENCE
    """With which confidence each error in `table` holds."""
    free = ""
    derived_from: tuple[str, ...] = ()
    _given: tuple[str, ...] = ()
    """The notes that hold for every row: all but the one on errors that are larger than their numbers."""

    def __init__(
        self,
        question: Question,
        columns: Columns,
        release: Release,
        *,
        notes: tuple[str, ...],
        cost: Approx | NoLoss,
        derived_from: tuple[str, ...] = (),
    ) -> None:
        self.question, self._given, self.cost, self.derived_from = question, notes, cost, derived_from
        self._columns, self.release = columns, release
        self._shown = shown_rows(question, columns)
        self.table = self.with_errors(CONFIDENCE)
        self.notes = (*notes, *self._note_on_large_errors("row" if question.levels else "group"))

    def _note_on_large_errors(self, each: str) -> tuple[str, ...]:
        """The note on errors that are larger than their numbers, if there are any. `each` is what a row stands for."""
        errors = {name: f"{name}_error" for name in self.noisy if name not in self._chosen}
        alone = self.table.num_rows == 1 and len(self.names) == len(self.noisy)
        return note_on_large_errors(self.table, errors, self._given, "" if alone else each, divides=self._divides)

    @property
    def _divides(self) -> bool:
        """Whether a number that divides may be why an error is unknown."""
        return True

    @property
    def names(self) -> list[str]:
        """The columns of the answer, without those of errors."""
        return [output.name for output in self.question.outputs]

    @property
    def noisy(self) -> list[str]:
        """The columns that have an error."""
        return [output.name for output in self.question.outputs if self.question.is_noisy(output)]

    @property
    def columns(self) -> list[AnswerColumn]:
        """All columns of the table, those of errors included."""
        names, noisy = self.names, self.noisy
        return [
            AnswerColumn(f.name, f.type, f.name in noisy, None if f.name in names else f.name.rpartition("_")[0])
            for f in self.table.schema
        ]

    @property
    def _chosen(self) -> list[str]:
        """The columns of values that were chosen, which are right or wrong and have no ±."""
        modes = {one.field for one in self.question.aggregates if one.kind == "mode"}
        return [output.name for output in self.question.outputs if modes & set(output.expr.fields())]

    @property
    def price(self) -> Price:
        """The noise of every measure, and what was paid for all of them."""
        return self._columns.price

    @property
    def clipped(self) -> dict[str, float | None]:
        """For each noisy column that is a count or a sum, the estimated part that is lost because some people were
        scaled down. None for other columns, such as averages, which may be right although rows were lost. None if
        bounds are declared, too: then some rows are left out, and nothing measures how many.
        """
        noisy = [output for output in self.question.outputs if output.name in self.noisy]
        return {output.name: self._columns.clipped(output.expr) for output in noisy}

    def with_errors(self, confidence: float) -> Any:
        """The table with errors at another confidence. Each error is half an interval, in the column's unit."""
        import pyarrow as pa
        import pyarrow.compute as pc

        places, values = self._shown
        noisy = [output for output in self.question.outputs if self.question.is_noisy(output)]
        exprs = list(dict.fromkeys(expr for output in noisy for expr in listed(output.expr) or (output.expr,)))
        bands = dict(zip(exprs, self._bands(exprs, confidence), strict=True))
        table: dict[str, Any] = {}
        for output in self.question.outputs:
            column = table[output.name] = _unsigned_zeros(values[output.name])
            if output not in noisy:
                continue
            several = listed(output.expr)
            if several is None:
                errors = self._errors_and_ends(bands[output.expr], column, places)
            else:
                parts = [pc.list_element(column, place) for place in range(len(several))]
                each = [
                    self._errors_and_ends(bands[expr], part, places) for expr, part in zip(several, parts, strict=True)
                ]
                errors = [_lists(one) for one in zip(*each, strict=True)]
            ends = ("error", "low", "high") if self._is_lopsided(output) else ("error",)
            table |= {f"{output.name}_{end}": error for end, error in zip(ends, errors, strict=False)}
        return pa.table(table)

    def _errors_and_ends(self, band: Band | None, values: Any, places: Any) -> list[Any]:
        """The error of a column, and the ends of its interval."""
        import pyarrow as pa

        if band is None:
            return [pa.nulls(len(places), pa.float64())] * 3
        ends, value = [end[places] for end in band], _floats(values)
        with np.errstate(invalid="ignore"):  # a value that is not finite has no error
            half = np.maximum(ends[1] - value, value - ends[0])
        return [pa.array(one + 0.0, pa.float64(), mask=~np.isfinite(one)) for one in (half, *ends)]

    def _is_lopsided(self, output: Output) -> bool:
        """Whether the interval of a column may be much longer on one side: that of a quantile, where values are rare.
        Then both its ends are shown.
        """
        names = {one.name.lower() for one in self.question.outputs}
        kinds = {one.field: one.kind for one in self.question.aggregates}
        quantile = any(kinds.get(field) == "quantile" for field in output.expr.fields())
        return quantile and not names & {f"{output.name.lower()}_low", f"{output.name.lower()}_high"}

    def _bands(self, exprs: list[Expr], confidence: float) -> list[Band | None]:
        """The interval of each column: by arithmetic on intervals, or else simulated."""
        bands = [self._columns.band(expr, confidence) for expr in exprs]
        missing = [expr for expr, band in zip(exprs, bands, strict=True) if band is None]
        simulated = iter(redrawn_bands(self.question, self._columns, missing, confidence) if missing else [])
        return [next(simulated) if band is None else band for band in bands]

    def cube(self, by: Sequence[str] = ()) -> Any:
        """The rows of one level, by its keys, as an Arrow table. Without keys, the total."""
        levels, fields = self._columns.shown, self.question.key_fields
        names = {o.name.lower(): o.expr.field for o in self.question.outputs if isinstance(o.expr, Ref)}
        wanted = [
            names.get(one.lower()) if isinstance(one, str) else None for one in ([by] if isinstance(by, str) else by)
        ]
        level = tuple(sorted(fields.index(field) for field in wanted if field in fields))
        if levels is None or len(level) < len(wanted) or level not in self.question.levels:
            raise InvalidArgument(
                "The answer has no level with these keys. Ask with GROUP BY ROLLUP, CUBE or GROUPING SETS, and name "
                'keys that the answer shows, such as cube(["region"]).',
                code="cube-keys",
            )
        places, absent = self._shown[0], [key for key in range(len(fields)) if key not in level]
        kept = np.ones(len(places), dtype=bool)
        for key in range(len(fields)):
            kept &= levels.summed[key][places] == (key in absent)
        return self.table.filter(kept).drop_columns(
            [o.name for o in self.question.outputs if self._is_absent(o, absent)]
        )

    @property
    def summed(self) -> dict[str, Any]:
        """For each key that the answer shows: which rows are the sum over all its values. Empty if there is one level
        only.
        """
        levels, fields = self._columns.shown, self.question.key_fields
        if levels is None:
            return {}
        found = {}
        for output in self.question.outputs:
            if isinstance(output.expr, Ref) and output.expr.field in fields:
                of_key = levels.summed[fields.index(output.expr.field)]
                found[output.name] = np.asarray(of_key, dtype=bool)[self._shown[0]]
        return found

    def _is_absent(self, output: Output, absent: Sequence[int]) -> bool:
        """Whether a column is a key that rows are the sum over."""
        return any(output.expr == Ref(self.question.key_fields[key]) for key in absent)

    def shown(self, row: Mapping[str, Any]) -> dict[str, str]:
        """A row of the table in readable form: each noisy value with its error."""
        noisy = self.noisy
        cells = {}
        for name in self.names:
            ends = (
                (row.get(f"{name}_low"), row.get(f"{name}_high")) if f"{name}_low" not in self.names else (None, None)
            )
            if name not in noisy or name in self._chosen:
                cells[name] = _key(row[name])
            elif isinstance(row[name], list):
                unknown = [None] * len(row[name])
                each = zip(row[name], row[f"{name}_error"] or unknown, *(end or unknown for end in ends), strict=True)
                cells[name] = f"[{', '.join(_shown(value, error, low, high) for value, error, low, high in each)}]"
            else:
                cells[name] = _shown(row[name], row[f"{name}_error"], *ends)
        return cells

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame."""
        need("pandas", None, "answer.to_pandas")
        return self.table.to_pandas()

    def to_polars(self) -> Any:
        """The table as a polars DataFrame."""
        return need("polars", None, "answer.to_polars").from_arrow(self.table)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table for other libraries: `pl.DataFrame(answer)`, `pa.table(answer)`, `duckdb.sql("FROM answer")`."""
        return self.table.__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows of the table, each as a dict."""
        return iter(self.table.to_pylist())

    def plot(self, *, confidence: float = CONFIDENCE, style: str = "light") -> Any:
        """The answer as a matplotlib figure: bars with error bars, or lines with bands over dates and times. `style` is
        "light" or "dark". Save it with `figure.savefig("answer.png")`.
        """
        return plot_answer(self, confidence=confidence, style=style)

    def as_json(self, confidence: float = CONFIDENCE) -> dict[str, Any]:
        """The answer as one JSON object, with errors for this confidence."""
        names, noisy = self.names, self.noisy
        errors = [f"{name}_error" if name in noisy else None for name in names]
        table = self.table if confidence == self.confidence else self.with_errors(confidence)
        rows, left = table.to_pylist(), self.remaining
        return {
            "columns": names,
            "rows": [[row[name] for name in names] for row in rows],
            "errors": [[None if name is None else row[name] for name in errors] for row in rows],
            **self._json_ends(rows),
            "confidence": confidence,
            "guarantee": _numbers(self.cost),
            "remaining": None if left is None else _left_numbers(left),
            "receipt": self.receipt,
            "replayed": self.replayed,
            "notes": list(self.notes),
            "clipped": self.clipped,
            "not_private": self.not_private,
            **({"free": self.free} if self.free else {}),
            **({"derived_from": list(self.derived_from)} if self.derived_from else {}),
        }

    def _json_ends(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """Both ends of the intervals of quantiles, if there are any."""
        known = [
            name for name in self.names if {f"{name}_low", f"{name}_high"} <= {*self.table.column_names} - {*self.names}
        ]
        if not known:
            return {}
        return {
            end: [[row[f"{name}_{end}"] if name in known else None for name in self.names] for row in rows]
            for end in ("low", "high")
        }

    def __repr__(self) -> str:
        return f"<Answer: {self.table.num_rows} rows, {', '.join(self.names)}; {self._line()}>"

    def _line(self) -> str:
        if self.derived_from and self.receipt is None:
            left = f"{self.remaining or 'nothing'} remains"
            return "; ".join(
                [f"cost nothing: answered from {receipts_text(self.derived_from)}", left, *self.release.marks()]
            )
        return self.free or "; ".join([f"cost {self.cost}", *self.release.notes()])

    def __str__(self) -> str:
        return "\n".join([_text_table(self), self._line(), *self.notes])

    def _repr_html_(self) -> str:
        names, noisy = self.names, self.noisy
        numbers = [place for place, name in enumerate(names) if name in noisy]
        first, more = self.table.slice(0, html.MOST_ROWS), max(0, self.table.num_rows - html.MOST_ROWS)
        shown = ([row[name] for name in names] for row in map(self.shown, first.to_pylist()))
        table = html.table(names, shown, numbers=numbers, more=more)
        empty = [] if self.table.num_rows else [html.note("No group is shown.")]
        errors = [html.note(f"Each ± holds with {100 * self.confidence:g}% confidence.")] if numbers else []
        return "".join([table, *empty, html.note(self._line()), *errors, *map(html.note, self.notes)])


def receipts_text(receipts: Sequence[str]) -> str:
    """Receipts in words: some of them, if there are many."""
    listed, more = receipts[:MOST_NAMED], len(receipts) - MOST_NAMED
    return f"receipt{'s' * (len(listed) > 1)} {', '.join(listed)}" + (f" and {more} more" if more > 0 else "")


def _numbers(guarantee: Guarantee, *, up: bool = True) -> dict[str, float]:
    """The ε and δ of a guarantee as people read them: a cost is rounded up."""
    found = {"epsilon": guarantee.largest_loss or Fraction(0), "delta": exactly(getattr(guarantee, "delta", 0))}
    return {name: readable(value, up=up) for name, value in found.items()}


def _left_numbers(left: Guarantee) -> dict[str, float]:
    """What remains, rounded down. The largest release that fits has no δ: that says nothing of the δ that is left."""
    return {name: value for name, value in _numbers(left, up=False).items() if value or name != "delta"}


def _unsigned_zeros(values: Any) -> Any:
    """A column in which zero has no sign. The sign would reveal something about the summed values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.add(values, 0.0) if pa.types.is_floating(values.type) else values


def _floats(values: Any) -> Any:
    """A column as floats, with NaN for missing values."""
    import pyarrow as pa

    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        return values.cast(pa.float64(), safe=False).to_numpy()
    return np.array([float(v) if isinstance(v, int | float) else np.nan for v in values.to_pylist()])


def listed(expr: Expr) -> tuple[Expr, ...] | None:
    """What a column of lists has in each list. None for another column."""
    return expr.args if isinstance(expr, Call) and expr.detail == "list_value" else None


def _lists(columns: Sequence[Any]) -> Any:
    """Columns of numbers as one column of lists."""
    import pyarrow as pa

    flat = pa.chunked_array(columns).take(np.arange(len(columns) * len(columns[0])).reshape(len(columns), -1).T.ravel())
    ends = np.arange(0, flat.length() + 1, len(columns), dtype=np.int32)
    return pa.ListArray.from_arrays(ends, flat.combine_chunks())


def _shown(value: Any, error: float | None, low: Any = None, high: Any = None) -> str:
    """A noisy value with its error, or with the ends of its interval. Without one of them, the truth may be anywhere
    on that side.
    """
    return _cell(value, error) if low is None and high is None else _between(value, low, high)


def _key(value: Any) -> str:
    return "" if value is None else str(value)


def _cell(value: Any, error: float | None) -> str:
    """A noisy value, with as many digits as its error makes meaningful."""
    if value is None or isinstance(value, bool) or not isinstance(value, int | float):
        return _key(value)
    if error is None:
        return f"{value:,.6g} ± ?" if isinstance(value, float) else f"{value:,} ± ?"
    if isinstance(value, int):
        return f"{value:,} ± {error:,.0f}"
    if not error or not math.isfinite(value) or not math.isfinite(error):
        return f"{value:z,.12g} ± {error:,.0f}"
    digits = max(0, min(12, 1 - math.floor(math.log10(error)))) if error < 10 else 0
    shown = f"{value:z,.{digits}f}"
    off = abs(Fraction(value) - Fraction(shown.replace(",", ""))) + Fraction(error)  # plus the rounding
    steps = math.ceil(off * 10**digits - Fraction(1, 10**9))
    return f"{shown} ± {Decimal(steps).scaleb(-digits):,.{digits}f}"


_NEARLY = 1e-6
"""Ends are rounded outwards unless they are that near to a number with few digits."""


def _between(value: Any, low: Any, high: Any) -> str:
    """A noisy value and the ends of its interval, with as many digits as the shorter side makes meaningful."""
    known = [end for end in (low, high) if end is not None]
    if not isinstance(value, int | float) or not all(map(math.isfinite, (value, *known))):
        return _key(value)
    side = min((abs(end - value) for end in known if end != value), default=0.0)
    digits = max(0, min(12, 1 - math.floor(math.log10(side)))) if 0 < side < 10 else 0
    unit = 10.0**digits
    least = "" if low is None else f"{math.floor(low * unit + _NEARLY) / unit:z,.{digits}f}"
    most = "" if high is None else f"{math.ceil(high * unit - _NEARLY) / unit:z,.{digits}f}"
    ends = f"{least} to {most}" if least and most else f"{least or most} or {'more' if least else 'less'}"
    return f"{value:z,.{digits}f} ({ends})"


def _text_table(answer: Answer) -> str:
    names = answer.names
    cells = [names, *([shown[name] for name in names] for shown in map(answer.shown, answer.table.to_pylist()))]
    widths = [max(len(row[column]) for row in cells) for column in range(len(names))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])
