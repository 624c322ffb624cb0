"""The answer to a question: a table of noisy values, each with its error next to it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.engines.dialect import Dialect
from discreet.engines.duckdb.dialect import TYPES
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.engine import Engine
from discreet.errors import InvalidArgument, NotAllowed
from discreet.exact.rational import exactly
from discreet.extras import need
from discreet.guarantees.guarantee import Approx, Guarantee
from discreet.releases import Release, Released
from discreet.sql.expressions import Expr, Ref
from discreet.sql.pricing.price import Price
from discreet.sql.question import Question
from discreet.sql.running.intervals import Columns
from discreet.sql.running.plot import plot_answer
from discreet.sql.running.rows import safe

CONFIDENCE = 0.95


class Answer(Released):
    """The released answer to a question in SQL: `table` is an Arrow table. Every noisy column has its error next to it.

    `cost` is the guarantee as (ε,δ), `guarantee` the complete one. For numbers that were bought before, it is what they
    cost then, together with whatever was measured with them. `notes` say what the errors do not cover.
    """

    def __init__(
        self, question: Question, columns: Columns, release: Release, *, notes: tuple[str, ...], cost: Approx
    ) -> None:
        self.question, self.notes, self.cost = question, notes, cost
        self._columns, self.release = columns, release
        self._shown = _shown_rows(question, columns)
        self.table = self.with_errors(CONFIDENCE)

    @property
    def price(self) -> Price:
        """The noise of every measure, and what was paid for all of them."""
        return self._columns.price

    @property
    def clipped(self) -> dict[str, float | None]:
        """For each noisy column, the estimated part that is lost because some people were scaled down. None if bounds
        are declared: then some rows are left out, and nothing measures how many.
        """
        noisy = [output for output in self.question.outputs if self.question.is_noisy(output)]
        return {output.name: self._columns.clipped(output.expr) for output in noisy}

    def with_errors(self, confidence: float) -> Any:
        """The table with errors at another confidence. Each error is half an interval, in the column's unit."""
        import pyarrow as pa

        places, values = self._shown
        table: dict[str, Any] = {}
        for output in self.question.outputs:
            table[output.name] = _unsigned_zeros(values[output.name])
            if self.question.is_noisy(output):
                table[f"{output.name}_error"] = self._error(output.expr, values[output.name], places, confidence)
        return pa.table(table)

    def _error(self, expr: Expr, values: Any, places: Any, confidence: float) -> Any:
        import pyarrow as pa

        band = self._columns.band(expr, confidence)
        if band is None:
            return pa.nulls(len(places), pa.float64())
        value = _floats(values)
        with np.errstate(invalid="ignore"):  # a value that is not finite has no error
            half = np.maximum(band[1][places] - value, value - band[0][places])
        return pa.array(half + 0.0, pa.float64(), mask=~np.isfinite(half))

    def shown(self, row: Mapping[str, Any]) -> dict[str, str]:
        """A row of the table in readable form: each noisy value with its error."""
        return {
            output.name: _cell(row[output.name], row[f"{output.name}_error"])
            if self.question.is_noisy(output)
            else _key(row[output.name])
            for output in self.question.outputs
        }

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame."""
        need("pandas", None, "answer.to_pandas")
        return self.table.to_pandas()

    def to_polars(self) -> Any:
        """The table as a polars DataFrame."""
        return need("polars", None, "answer.to_polars").from_arrow(self.table)

    def plot(self, *, confidence: float = CONFIDENCE) -> Any:
        """The answer as a matplotlib figure: bars with error bars. Save it with `figure.savefig("answer.png")`."""
        return plot_answer(self, confidence=confidence)

    def as_json(self) -> dict[str, Any]:
        """The answer as one JSON object."""
        outputs, is_noisy = self.question.outputs, self.question.is_noisy
        names = [output.name for output in outputs]
        errors = [f"{output.name}_error" if is_noisy(output) else None for output in outputs]
        rows, left = self.table.to_pylist(), self.remaining
        return {
            "columns": names,
            "rows": [[row[name] for name in names] for row in rows],
            "errors": [[None if name is None else row[name] for name in errors] for row in rows],
            "confidence": CONFIDENCE,
            "guarantee": _numbers(self.cost),
            "remaining": None if left is None else _numbers(left),
            "receipt": self.receipt,
        }

    def __repr__(self) -> str:
        return (
            f"<Answer: {self.table.num_rows} rows, {', '.join(o.name for o in self.question.outputs)}; {self._line()}>"
        )

    def _line(self) -> str:
        return "; ".join([f"cost {self.cost}", *self.release.notes()])

    def __str__(self) -> str:
        return "\n".join([_text_table(self), self._line(), *self.notes])

    def _repr_html_(self) -> str:
        from html import escape

        names = [output.name for output in self.question.outputs]
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        shown = map(self.shown, self.table.to_pylist())
        body = "".join(f"<tr>{''.join(f'<td>{escape(row[name])}</td>' for name in names)}</tr>" for row in shown)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{escape(self._line())}</p>"


def _numbers(guarantee: Guarantee) -> dict[str, float]:
    delta = getattr(guarantee, "delta", 0)
    return {"epsilon": float(guarantee.largest_loss or 0), "delta": float(exactly(delta))}


def _shown_rows(question: Question, columns: Columns) -> tuple[Any, dict[str, Any]]:
    """Which groups are shown, in order, and the values of each column. Arithmetic, HAVING and ORDER BY run on noisy
    values only, in a separate in-memory database. Columns that are shown unchanged do not need it.
    """
    import pyarrow as pa

    table: dict[str, Any] = {"place": np.arange(len(columns.keys))}
    for number, field in enumerate(question.key_fields):
        table[field.id] = _keys(question, number, [key[number] for key in columns.keys])
    for aggregate in question.aggregates:
        table[aggregate.field.id] = _round_counts(columns.value(aggregate), aggregate.field.type)
    cells = pa.table(table)
    if _only_shown(question):
        few = cells.slice(question.offset, question.limit)
        named = {o.name: few.column(o.expr.field.id) for o in question.outputs if isinstance(o.expr, Ref)}
        return few.column("place").to_numpy(), named
    engine = DuckDB({"noisy": cells})
    text = _shown_statement(question, engine.dialect, engine.relations["noisy"])
    found = engine.table(text)
    engine.close()
    places = found.column(_PLACE).to_numpy()
    return places, {output.name: found.column(output.name) for output in question.outputs}


def _only_shown(question: Question) -> bool:
    """Whether all noisy numbers are shown unchanged."""
    return question.having is None and not question.order and all(isinstance(o.expr, Ref) for o in question.outputs)


def _shown_statement(question: Question, dialect: Dialect, noisy: str) -> str:
    """The statement, in DuckDB's dialect, that computes the rows of the answer from the noisy numbers."""
    quoted = dialect.quote
    shown = [f"{safe(output.expr, dialect)} AS {quoted(output.name)}" for output in question.outputs]
    text = f"SELECT place AS {quoted(_PLACE)}, {', '.join(shown)} FROM {noisy}"
    if question.having is not None:
        text += f" WHERE {safe(question.having, dialect)}"
    orders = [
        f"{safe(o.expr, dialect)} {'DESC' if o.descending else 'ASC'} NULLS {'FIRST' if o.nulls_first else 'LAST'}"
        for o in question.order
    ]
    text += f" ORDER BY {', '.join([*orders, 'place'])}"
    if question.limit is not None:
        text += f" LIMIT {question.limit}"
    return f"{text} OFFSET {question.offset}" if question.offset else text


def check_showable(question: Question, engine: Engine) -> None:
    """Refuse, before anything is charged, an answer that could not be shown: keys with values of the wrong type, or
    expressions that cannot be computed from noisy numbers.
    """
    for number, key in enumerate(question.keys):
        _keys(question, number, key.domain or ())
    if _only_shown(question):
        return
    own = engine if isinstance(engine, DuckDB) else DuckDB({})
    kinds = {"place": "integer"} | {field.id: field.type for field in question.key_fields}
    kinds |= {aggregate.field.id: aggregate.field.type for aggregate in question.aggregates}
    columns = ", ".join(f"CAST(NULL AS {TYPES[kind]}) AS {name}" for name, kind in kinds.items())
    fine = own.computes(_shown_statement(question, own.dialect, f"(SELECT {columns} WHERE FALSE)"))
    if own is not engine:
        own.close()
    if not fine:
        raise NotAllowed(
            "An expression of the noisy numbers cannot be computed for these types. Nothing was charged. Cast the "
            "arguments of functions to the types they need, or remove the function.",
            code="sql-not-computable",
        )


def _keys(question: Question, number: int, values: Sequence[Any]) -> Any:
    """The values of a key in the type that the question gives it, whichever values are present."""
    import pyarrow as pa

    key, kinds = question.keys[number], {"integer": pa.int64(), "number": pa.float64(), "text": pa.string()}
    kinds |= {"boolean": pa.bool_(), "date": pa.date32(), "timestamp": pa.timestamp("us")}
    with suppress(pa.ArrowException, OverflowError, TypeError, ValueError):
        return pa.array(values, kinds[key.expr.type])
    raise InvalidArgument(
        f"The declared values of {key.name} must have its type, {key.expr.type}.", code="column-choices-type"
    )


_PLACE = "place of the cell"


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


def _round_counts(values: Any, kind: str) -> Any:
    """A noisy count is shown as an integer: rounding is free, and within the error. A count that exceeds 64 bits is
    moved to the largest or smallest value, which is also free.
    """
    return np.clip(np.rint(values), -_LARGEST, _LARGEST).astype(np.int64) if kind == "integer" else values


_LARGEST = 2.0**63 - 1024
"""The largest number of 64 bits that is a DOUBLE."""


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


def _text_table(answer: Answer) -> str:
    names = [output.name for output in answer.question.outputs]
    cells = [names, *([shown[name] for name in names] for shown in map(answer.shown, answer.table.to_pylist()))]
    widths = [max(len(row[column]) for row in cells) for column in range(len(names))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])
