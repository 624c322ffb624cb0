"""Parameters such as $1: their types, from what they are compared with, and their values as literals of SQL."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from sqlglot import exp

from discreet.gateway.wire.format.values import NAMES, Refusal
from discreet.gateway.wire.text.statement import Statement

MOST = 1000
"""Parameters of one statement, at most."""
OF_COLUMNS = {
    "integer": "int8",
    "number": "float8",
    "text": "text",
    "boolean": "bool",
    "date": "date",
    "timestamp": "timestamp",
}
"""The type of PostgreSQL for each type that a column may have in the vault."""
_OF_CASTS = {
    "INT": "int4",
    "BIGINT": "int8",
    "SMALLINT": "int2",
    "TINYINT": "int2",
    "DOUBLE": "float8",
    "FLOAT": "float4",
    "DECIMAL": "numeric",
    "TEXT": "text",
    "VARCHAR": "varchar",
    "CHAR": "text",
    "BOOLEAN": "bool",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMPNTZ": "timestamp",
    "DATETIME": "timestamp",
    "TIMESTAMPTZ": "timestamptz",
}
_WORDS = {
    "int": "int4",
    "integer": "int4",
    "bigint": "int8",
    "smallint": "int2",
    "real": "float4",
    "float": "float8",
    "double precision": "float8",
    "decimal": "numeric",
    "boolean": "bool",
    "character varying": "varchar",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz",
    "unknown": "text",
}
_WHOLE, _REAL = ("int2", "int4", "int8", "oid"), ("float4", "float8", "numeric")
_TEXTS = ("text", "varchar", "name", "char", "unknown")
_KNOWN = (*_WHOLE, *_REAL, *_TEXTS, "bool", "date", "timestamp", "timestamptz")
_LARGEST = 2**63
_LONGEST_NUMBER = 60
_MOST_TYPED = 100_000


class Parameter(NamedTuple):
    """The type of a parameter, and a literal that stands for it until its value is known."""

    type: str
    example: str


class Columns:
    """What is declared about the columns of all tables."""

    def __init__(self, tables: Mapping[str, Any]) -> None:
        self._tables = {
            str(table["name"]).lower(): {str(one["name"]).lower(): one for one in table["columns"]}
            for table in tables.get("tables", ())
        }
        self._last: tuple[exp.Expression, dict[str, str]] | None = None

    def _named(self, query: exp.Expression) -> dict[str, str]:
        """The tables of a query by their aliases. Those of the last one are remembered: each parameter needs them."""
        if self._last is None or self._last[0] is not query:
            tables = query.find_all(exp.Table)
            self._last = query, {table.alias_or_name.lower(): table.name.lower() for table in tables}
        return self._last[1]

    def find(self, column: exp.Column, query: exp.Expression) -> Mapping[str, Any] | None:
        """What is declared about a column of a query. None if it is not one column of one table."""
        named = self._named(query)
        tables = [named.get(column.table.lower(), column.table.lower())] if column.table else [*named.values()]
        found = [self._tables[one].get(column.name.lower()) for one in dict.fromkeys(tables) if one in self._tables]
        known = [one for one in found if one is not None]
        return known[0] if len(known) == 1 else None


def parameters_of(statement: Statement, declared: Sequence[int], columns: Columns) -> list[Parameter]:
    """The parameters of a question, in their order: what the client said, or what they are compared with."""
    numbers = [number for number, _, _ in statement.parameters]
    wrong = next((place for number, *place in statement.parameters if not 1 <= number <= MOST), None)
    if wrong is not None:
        shown = statement.text[wrong[0] : wrong[1] + 1]
        raise Refusal(f"there is no parameter {shown}", state="42P02", position=wrong[0] + 1)
    count = max([*numbers, len(declared)], default=0)
    found = _compared(statement.query, columns) if numbers else {}
    said = [*declared, *([0] * (count - len(declared)))]
    return [_parameter(number, oid, found.get(number)) for number, oid in enumerate(said, 1)]


def _parameter(number: int, oid: int, found: Parameter | None) -> Parameter:
    if oid and oid != 705:  # unknown
        name = NAMES.get(oid)
        if name not in _KNOWN:
            raise Refusal(
                f"Parameter ${number} has a type that questions do not take.",
                state="0A000",
                hint="Send a number, a text, a truth value, a date or a timestamp.",
            )
        return Parameter(name, found.example if found and found.type == name else _EXAMPLES[name])
    return found or Parameter("text", _EXAMPLES["text"])


_EXAMPLES = {
    **dict.fromkeys(_WHOLE, "1"),
    **dict.fromkeys(_REAL, "1.5"),
    **dict.fromkeys(_TEXTS, "'a'"),
    "bool": "TRUE",
    "date": "DATE '2024-01-01'",
    "timestamp": "TIMESTAMP '2024-01-01 00:00:00'",
    "timestamptz": "TIMESTAMP '2024-01-01 00:00:00'",
}


def _compared(query: exp.Expression | None, columns: Columns) -> dict[int, Parameter]:
    """What each parameter is compared with, or cast to."""
    found: dict[int, Parameter] = {}
    if query is None:
        return found
    left = [_MOST_TYPED]
    for node in query.find_all(exp.Parameter, exp.Placeholder):
        name = node.name or str(node.args.get("this") or "")
        if not name.isdecimal():
            continue
        guess = _by_place(node, query, columns, left)
        if guess is not None and (int(name) not in found):
            found[int(name)] = guess
    return found


def _by_place(node: exp.Expression, query: exp.Expression, columns: Columns, left: list[int]) -> Parameter | None:
    parent: Any = node.parent
    child: Any = node
    while isinstance(parent, exp.Paren | exp.Neg | exp.Tuple):
        child, parent = parent, parent.parent
    if isinstance(parent, exp.Cast):
        return _usual(_cast_type(parent))
    if isinstance(parent, exp.Limit | exp.Offset | exp.Fetch):
        return _usual("int8")
    if isinstance(parent, exp.Like | exp.ILike | exp.RegexpLike | exp.SimilarTo):
        return _usual("text")
    if isinstance(parent, exp.Binary | exp.Between | exp.In | exp.Coalesce):
        for other in parent.iter_expressions():
            if other is not child and (guess := _typed(other, query, columns, left)) is not None:
                return guess
    return None


def _usual(name: str | None) -> Parameter | None:
    return None if name is None else Parameter(name, _EXAMPLES[name])


def _cast_type(node: exp.Cast) -> str | None:
    kind = node.to.this
    return _OF_CASTS.get(str(getattr(kind, "name", kind)))


def _typed(node: Any, query: exp.Expression, columns: Columns, left: list[int]) -> Parameter | None:
    """The type of an expression, as far as it is plain. `left` is how many parts may still be looked at."""
    left[0] -= 1
    if left[0] < 0:
        return None
    if isinstance(node, exp.Column):
        return _of_column(columns.find(node, query))
    if isinstance(node, exp.Cast):
        return _usual(_cast_type(node))
    if isinstance(node, exp.Count | exp.ApproxDistinct | exp.Length):
        return _usual("int8")
    if isinstance(node, exp.Avg | exp.Sum | exp.Extract | exp.Stddev | exp.Variance | exp.Div):
        return _usual("float8")
    if isinstance(node, exp.DateTrunc | exp.TimestampTrunc):
        return _usual("timestamp")
    if isinstance(node, exp.Literal):
        whole = node.name.isdecimal()
        return _usual("text" if node.is_string else "int8" if whole else "float8")
    if isinstance(node, exp.Lower | exp.Upper | exp.Trim | exp.Concat | exp.Substring):
        return _usual("text")
    for part in node.iter_expressions() if isinstance(node, exp.Expression) else ():
        if not isinstance(part, exp.Parameter | exp.Placeholder) and (guess := _typed(part, query, columns, left)):
            return guess
    return None


def _of_column(column: Mapping[str, Any] | None) -> Parameter | None:
    name = None if column is None else OF_COLUMNS.get(str(column.get("type")))
    if name is None or column is None:
        return None
    between, choices = column.get("between"), column.get("choices")
    known = choices[0] if choices else between[0] if isinstance(between, list) and len(between) == 2 else None
    try:
        return Parameter(name, _EXAMPLES[name] if known is None else literal(value_of(str(known), name), name))
    except Refusal:
        return Parameter(name, _EXAMPLES[name])


# --- values -------------------------------------------------------------------------------------------------


def literals_of(parameters: Sequence[Parameter], values: Sequence[Any]) -> dict[int, str]:
    """The values of parameters as literals."""
    if len(parameters) != len(values):
        raise Refusal(
            f"bind message supplies {len(values)} parameters, but the statement requires {len(parameters)}",
            state="08P01",
        )
    return {
        number: literal(value, one.type) for number, (one, value) in enumerate(zip(parameters, values, strict=True), 1)
    }


def literal(value: Any, kind: str) -> str:
    """A value as a literal of SQL that means exactly this value."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        if kind not in _TEXTS:
            return literal(value_of(value, kind), kind)
        if "\0" in value or any("\ud800" <= mark <= "\udfff" for mark in value):
            raise _not_a("text", "…")
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int) and kind not in _REAL:
        if not -_LARGEST <= value < _LARGEST:
            raise _not_a("int8", value)
        return str(value) if value >= 0 else f"({value})"
    if isinstance(value, int | float | Decimal):
        return _real(value)
    if isinstance(value, datetime):
        plain = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo is not None else value
        if kind == "date" and plain.time() == time.min:
            return f"DATE '{plain.date().isoformat()}'"
        return f"TIMESTAMP '{plain.isoformat(sep=' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    raise Refusal(
        "A parameter has a value that questions do not take.",
        state="0A000",
        hint="Send a number, a text, a truth value, a date or a timestamp.",
    )


def _real(value: int | float | Decimal) -> str:
    """A number in decimals: the shortest that is read as the same number."""
    if not math.isfinite(value):
        raise _not_a("number", value)
    if isinstance(value, Decimal) and abs(int(value.as_tuple().exponent)) > _LONGEST_NUMBER:
        raise _not_a("number", "…")  # 1e-999999999 would be a text of a gigabyte
    written = repr(value) if isinstance(value, float) else str(value) if isinstance(value, int) else format(value, "f")
    if len(written) > _LONGEST_NUMBER:
        raise _not_a("number", "…")
    return f"({written})" if written.startswith("-") else written


def value_of(said: str | None, kind: str) -> Any:
    """The value that a text means in a type."""
    if said is None:
        return None
    try:
        if kind in _WHOLE:
            return int(said)
        if kind == "numeric":
            return Decimal(said)
        if kind in _REAL:
            return float(said)
        if kind == "bool":
            return {"t": True, "f": False, "1": True, "0": False}[said.strip().lower()[:1]]
        if kind == "date":
            return date.fromisoformat(said)
        if kind in ("timestamp", "timestamptz"):
            return datetime.fromisoformat(said)
    except (ValueError, KeyError, InvalidOperation, OverflowError):
        raise _not_a(kind, said) from None
    return said


def type_named(words: str) -> str:
    """The type that words such as double precision name."""
    name = _WORDS.get(words.lower(), words.lower())
    if name not in _KNOWN:
        raise Refusal(f'type "{words}" does not exist', state="42704")
    return name


def _not_a(kind: str, value: Any) -> Refusal:
    return Refusal(f'invalid input syntax for type {kind}: "{str(value)[:40]}"', state="22P02")
