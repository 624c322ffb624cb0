"""Which rows of an answer are shown, and what they hold: everything that is done with released numbers.

HAVING, windows, QUALIFY, DISTINCT, ORDER BY, LIMIT and arithmetic run in a separate in-memory database that holds the
released numbers only. Nothing here is charged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.engines.dialect import Dialect
from discreet.engines.duckdb.dialect import TYPES
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.engine import Engine
from discreet.errors import InvalidArgument, NotAllowed
from discreet.rows.arrow import cleared
from discreet.rows.key_columns import arrow_type
from discreet.sql.expressions import Call, Expr, Field, Ref, Window
from discreet.sql.measuring.rows import print_window, safe
from discreet.sql.question import Question, summed_over
from discreet.sql.running.intervals import Columns

PLACE, DRAW = "place of the cell", "number of the draw"
_LARGEST = 2.0**63 - 1024
"""The largest number of 64 bits that is a DOUBLE."""


def shown_rows(question: Question, columns: Columns) -> tuple[Any, dict[str, Any]]:
    """Which groups are shown, in order, and the values of each column. Columns that are shown unchanged need no
    database.
    """
    import pyarrow as pa

    values = {aggregate.field.id: columns.value(aggregate) for aggregate in question.aggregates}
    places = np.arange(len(columns.keys))
    cells = pa.table({"place": places, **released_cells(columns, places, values)})
    if _only_shown(question):
        few = cells.slice(question.offset, question.limit)
        named = {o.name: few.column(o.expr.field.id) for o in question.outputs if isinstance(o.expr, Ref)}
        return few.column("place").to_numpy(), named
    engine = DuckDB({"noisy": cells})
    found = cleared(engine.table(_Statement(question, engine.dialect, engine.relations["noisy"]).text()))
    engine.close()
    places = found.column(0).to_numpy()
    return places, {output.name: found.column(output.name) for output in question.outputs}


def having_rows(question: Question, columns: Columns) -> Any:
    """The groups that HAVING leaves, before windows are computed from them."""
    if question.having is None:
        return np.arange(len(columns.keys))
    unchosen = replace(question, qualify=None, distinct=False, order=(), limit=None, ties=False, offset=0)
    return shown_rows(unchosen, columns)[0]


def released_cells(columns: Columns, places: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of released numbers: the keys of the groups at these places, which keys their rows are the sum over
    if there are levels, and the values of the aggregates by the ids of their fields.
    """
    question, keys = columns.question, columns.keys.take(places)
    found = {f.id: shown_key(column) for f, column in zip(question.key_fields, keys.columns, strict=True)}
    if columns.shown is not None:
        summed = zip(question.key_fields, columns.shown.summed, strict=True)
        found |= {summed_over(field).id: own[places] for field, own in summed}
    kinds = {aggregate.field.id: aggregate.field.type for aggregate in question.aggregates}
    return found | {name: round_counts(numbers, kinds[name]) for name, numbers in values.items()}


def computed_again(question: Question, cells: Any, exprs: Sequence[Expr]) -> Any:
    """The values of these expressions, in columns e0, e1, …, for released numbers that were drawn several times. The
    columns `draw` and `place` of the Arrow table `cells` say which draw and which group a row has, and the result is
    sorted by them. Windows run within each draw.
    """
    engine = DuckDB({"noisy": cells})
    drawn = Ref(Field(DRAW, DRAW, "integer"))
    found = engine.table(_Statement(question, engine.dialect, engine.relations["noisy"], drawn).text_of_all(exprs))
    engine.close()
    return found


def check_showable(question: Question, engine: Engine) -> None:
    """Refuse, before anything is charged, an answer that could not be shown: keys with values of the wrong type, or
    expressions that cannot be computed from noisy numbers.
    """
    for number, key in enumerate(question.keys):
        _check_keys(question, number, key.domain or ())
    if _only_shown(question):
        return
    own = engine if isinstance(engine, DuckDB) else DuckDB({})
    kinds = {"place": "integer"} | {field.id: field.type for field in question.public_fields}
    kinds |= {aggregate.field.id: aggregate.field.type for aggregate in question.aggregates}
    columns = ", ".join(f"CAST(NULL AS {TYPES[kind]}) AS {name}" for name, kind in kinds.items())
    fine = own.computes(_Statement(question, own.dialect, f"(SELECT {columns} WHERE FALSE)").text())
    if own is not engine:
        own.close()
    if not fine:
        raise NotAllowed(
            "An expression of the noisy numbers cannot be computed for these types. Nothing was charged. Cast the "
            "arguments of functions to the types they need, or remove the function.",
            code="sql-not-computable",
        )


def _only_shown(question: Question) -> bool:
    """Whether all noisy numbers are shown unchanged."""
    chosen = question.having is not None or question.qualify is not None or question.distinct or question.order
    return not chosen and all(isinstance(output.expr, Ref) for output in question.outputs)


class _Statement:
    """The statement, in DuckDB's dialect, that computes the rows of an answer from released numbers. Windows are
    computed first, each as a column, from the groups that HAVING leaves; with `apart`, among rows that are equal in it.
    """

    def __init__(self, question: Question, dialect: Dialect, noisy: str, apart: Ref | None = None) -> None:
        self.question, self.dialect, self.noisy, self.apart = question, dialect, noisy, apart
        self._windows: dict[Window, Field] = {}

    def text(self) -> str:
        """All clauses of the question."""
        question, quoted = self.question, self.dialect.quote
        names = [quoted(output.name) for output in question.outputs]
        taken = {output.name.lower() for output in question.outputs}
        sorted_by = [quoted(_unused(f"order {number}", taken)) for number in range(len(question.order))]
        place = quoted(_unused(PLACE, taken))
        exprs = [*(output.expr for output in question.outputs), *(one.expr for one in question.order)]
        shown = [self._print(expr) for expr in exprs]
        columns = ", ".join(f"{text} AS {name}" for text, name in zip(shown, names + sorted_by, strict=True))
        chosen = "" if question.qualify is None else f" WHERE {self._print(question.qualify)}"
        having = None if question.having is None else safe(question.having, self.dialect)
        text = f"SELECT place AS {place}, {columns} FROM {self._source(having)}{chosen}"
        ways = [f"{name} {one.way}" for name, one in zip(sorted_by, question.order, strict=True)]
        if question.distinct:
            equal = f"PARTITION BY {', '.join(names)} ORDER BY {place}"
            text = f"SELECT * FROM ({text}) AS one QUALIFY row_number() OVER ({equal}) = 1"
        limit = "" if question.limit is None else f" LIMIT {question.limit}"
        if question.ties and question.limit is not None:
            last = question.offset + question.limit
            text, limit = (
                f"SELECT * FROM ({text}) AS one QUALIFY rank() OVER (ORDER BY {', '.join(ways)}) <= {last}",
                "",
            )
        shown_last = ", ".join([place, *names])
        text = f"SELECT {shown_last} FROM ({text}) AS one ORDER BY {', '.join([*ways, place])}{limit}"
        return f"{text} OFFSET {question.offset}" if question.offset else text

    def text_of_all(self, exprs: Sequence[Expr]) -> str:
        """These expressions of every row, with the draw and the place."""
        columns = ", ".join(f"{self._print(expr)} AS e{number}" for number, expr in enumerate(exprs))
        drawn = self.dialect.quote(DRAW)
        return f"SELECT {drawn}, place, {columns} FROM {self._source(None)} ORDER BY {drawn}, place"

    def _print(self, expr: Expr) -> str:
        return safe(self._without_windows(expr), self.dialect)

    def _without_windows(self, expr: Expr) -> Expr:
        """An expression in which each window is a column."""
        match expr:
            case Window():
                field = Field(f"w{len(self._windows)}", "", expr.type)
                return Ref(self._windows.setdefault(expr, field))
            case Call(args=args):
                return replace(expr, args=tuple(map(self._without_windows, args)))
        return expr

    def _source(self, having: str | None) -> str:
        """FROM: the released numbers with a column for each window."""
        chosen = "" if having is None else f" WHERE {having}"
        if not self._windows:
            return f"(SELECT * FROM {self.noisy}{chosen}) AS one" if chosen else self.noisy
        columns = "".join(f", {self._window(window)} AS {field.id}" for window, field in self._windows.items())
        return f"(SELECT *{columns} FROM {self.noisy}{chosen}) AS one"

    def _window(self, window: Window) -> str:
        if self.apart is not None:
            window = replace(window, partition=(self.apart, *window.partition))
        return f"TRY_CAST({print_window(window, self.dialect)} AS {TYPES[window.type]})"


def _unused(name: str, taken: set[str]) -> str:
    """A name that no column of the answer has."""
    while name in taken:
        name += " again"
    return name


def shown_key(column: Any) -> Any:
    """A column of keys, with text in the type that most libraries read."""
    import pyarrow as pa

    small = column.type == pa.large_string() and column.nbytes < _MOST_TEXT
    return column.cast(pa.string()) if small else column


_MOST_TEXT = 2**31


def _check_keys(question: Question, number: int, values: Sequence[Any]) -> None:
    """Refuse declared values that have not the type that the question gives their key."""
    import pyarrow as pa

    key = question.keys[number]
    with suppress(pa.ArrowException, OverflowError, TypeError, ValueError):
        pa.array(values, arrow_type(key.expr.type))
        return
    raise InvalidArgument(
        f"The declared values of {key.name} must have its type, {key.expr.type}.", code="column-choices-type"
    )


def round_counts(values: Any, kind: str) -> Any:
    """A noisy count is shown as an integer: rounding is free, and within the error. A count that exceeds 64 bits is
    moved to the largest or smallest value, which is also free.
    """
    return np.clip(np.rint(values), -_LARGEST, _LARGEST).astype(np.int64) if kind == "integer" else values
