"""The columns of an answer as a client of PostgreSQL sees them: first all that were asked for, then their errors.

Types follow from declarations, never from values, so that what is described and what is sent are the same.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

from discreet.exact.rational import exactly, significant
from discreet.gateway.formats import FACTS
from discreet.gateway.wire.format.values import Column, Refusal
from discreet.gateway.wire.text.rewriting import ERRORS, Item

_TYPES = {
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"), "int8"),
    **dict.fromkeys(("double", "float", "halffloat"), "float8"),
    **dict.fromkeys(("string", "large_string", "string_view"), "text"),
    "bool": "bool",
    "date32[day]": "date",
    "uint64": "numeric",
}
_NUMBERS = ("int8", "float8", "numeric")


class Field(NamedTuple):
    """A column of an answer of the vault. `error_of` is the column whose error, or end of an interval, it is."""

    name: str
    type: str
    noisy: bool = False
    error_of: str | None = None


class Cell(NamedTuple):
    """A column that is sent: where its values come from. `error` is the column that is added or taken away."""

    column: Column
    of: str
    value: int
    error: int | None = None
    sign: int = 0


def pg_type(arrow: str) -> str:
    """The type of PostgreSQL for a type of Arrow. Decimals are numeric; what PostgreSQL has no type for is text."""
    if arrow.startswith("timestamp"):
        return "timestamptz" if "tz=" in arrow else "timestamp"
    if arrow.startswith("decimal"):
        return "numeric"
    return _TYPES.get(arrow, "text")


def fields_said(columns: Sequence[Mapping[str, Any]]) -> list[Field]:
    """The columns that the vault describes."""
    return [Field(one["name"], str(one["type"]), bool(one["noisy"]), one["error_of"]) for one in columns]


def answer_in(body: bytes) -> tuple[Any, dict[str, Any], list[Field]]:
    """The table of an answer, the facts about it, and its columns."""
    import pyarrow as pa

    table = pa.ipc.open_stream(body).read_all()
    facts = json.loads(table.schema.metadata[FACTS])
    names, noisy = set(facts["columns"]), set(facts["noisy"])
    fields = [
        Field(one.name, str(one.type), one.name in noisy, None if one.name in names else one.name.rpartition("_")[0])
        for one in table.schema
    ]
    return table, facts, fields


def asked_fields(fields: Sequence[Field]) -> list[int]:
    """The places of the columns that were asked for."""
    return [place for place, one in enumerate(fields) if one.error_of is None]


def named_fields(fields: Sequence[Field], items: Sequence[Item]) -> list[str]:
    """The names of the columns that were asked for, as PostgreSQL has them."""
    asked = [fields[place].name for place in asked_fields(fields)]
    wanted = [one for one in items if one.of not in ERRORS]
    stars = [place for place, one in enumerate(wanted) if one.of == "star"]
    if len(stars) > 1 or (not stars and len(wanted) != len(asked)) or len(wanted) - 1 > len(asked):
        return asked
    names = [one.name for one in wanted]
    if stars:
        names[stars[0] : stars[0] + 1] = [None] * (len(asked) - len(wanted) + 1)
    return [own if name is None else name for own, name in zip(asked, names, strict=True)]


def layout(fields: Sequence[Field], items: Sequence[Item], errors: str) -> list[Cell]:
    """The columns that are sent. Errors come after all others, unless the question says where they are."""
    asked, names = asked_fields(fields), named_fields(fields, items)
    plain = [
        Cell(Column(name, pg_type(fields[place].type)), "value", place)
        for name, place in zip(names, asked, strict=True)
    ]
    if any(one.of in ERRORS for one in items):
        return _placed(plain, fields, items)
    if errors != "columns":
        return plain
    found, taken = list(plain), {one.column.name for one in plain}
    of = {fields[place].name: name for name, place in zip(names, asked, strict=True)}
    for place, one in enumerate(fields):
        if one.error_of is not None:
            name = _free(f"{of.get(one.error_of, one.error_of)}_{one.name.rpartition('_')[2]}", taken)
            taken.add(name)
            found.append(Cell(Column(name, pg_type(one.type)), _read_as(one), place))
    return found


def _read_as(field: Field) -> str:
    """Errors are rounded; the ends of intervals are values like others."""
    return "error" if field.name.endswith("_error") else "value"


def _free(name: str, taken: set[str]) -> str:
    """This name, or one with a number if it is taken."""
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    return found


def _placed(plain: list[Cell], fields: Sequence[Field], items: Sequence[Item]) -> list[Cell]:
    """The columns of a select list in which errors have places of their own."""
    values = iter(plain)
    shown = [next(values) if one.of not in ERRORS else None for one in items]
    return [cell or _error_cell(one, shown, fields, items) for cell, one in zip(shown, items, strict=True)]


def _error_cell(one: Item, shown: Sequence[Cell | None], fields: Sequence[Field], items: Sequence[Item]) -> Cell:
    target = one.target
    assert target is not None
    for cell, item in zip(shown, items, strict=True):
        if cell is None or item.tree is None:
            continue
        named = target.name.lower() == cell.column.name.lower() and not target.args.get("table")
        if (named and target.key == "column") or item.tree == target:
            break
    else:
        position = next((part.meta["start"] for part in target.walk() if "start" in part.meta), None)
        raise Refusal(
            f"{one.of}(…) needs a column of the same SELECT.",
            state="42703",
            hint=f"Write COUNT(*) AS n, {one.of}(n) AS e.",
            position=None if position is None else int(position) + 1,
        )
    name = fields[cell.value].name
    places = {field.name.rpartition("_")[2]: n for n, field in enumerate(fields) if field.error_of == name}
    column = Column(one.name or one.of, "float8")
    if one.of in places:
        return Cell(column, _read_as(fields[places[one.of]]), places[one.of])
    if cell.column.type not in _NUMBERS:
        raise Refusal(f"{one.of}(…) is for numbers, and {cell.column.name} is {cell.column.type}.", state="42804")
    if one.of == "error":
        return Cell(column, "zero", cell.value)
    return Cell(column, "end", cell.value, places.get("error"), -1 if one.of == "low" else 1)


def rows_of(table: Any, cells: Sequence[Cell]) -> list[tuple[Any, ...]]:
    """The rows of an answer, as they are sent."""
    return list(zip(*[_values(table, cell) for cell in cells], strict=True)) if cells else [()] * table.num_rows


def _values(table: Any, cell: Cell) -> list[Any]:
    column = table.column(cell.value)
    if str(column.type).startswith("timestamp[ns"):
        import pyarrow as pa

        column = column.cast(pa.timestamp("us", tz=column.type.tz), safe=False)
    values = column.to_pylist()
    if cell.of == "zero":
        return [None if value is None else 0.0 for value in values]
    if cell.of == "error":
        values = [_rounded(error) for error in values]
    if cell.of == "end":
        errors = [0.0] * len(values) if cell.error is None else table.column(cell.error).to_pylist()
        return [_end(value, error, cell.sign) for value, error in zip(values, errors, strict=True)]
    if cell.column.type == "text":
        return [_text(value) for value in values]
    if cell.column.type == "numeric":
        return [None if value is None else Decimal(value) for value in values]
    return values  # type: ignore[no-any-return]


def _rounded(error: Any) -> Any:
    """An error with three or four digits, never below itself. People read it next to its value. Of a list, each."""
    if isinstance(error, list):
        return [_rounded(one) for one in error]
    if error is None or not error or not math.isfinite(error):
        return error
    return float(significant(exactly(error), up=True, digits=3))


def _end(value: Any, error: Any, sign: int) -> float | None:
    return None if value is None or error is None else float(value) + sign * float(error)


def _text(value: Any) -> str | None:
    """A value that PostgreSQL has no type for: a list is written as {1,2}."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list):
        return "{" + ",".join("NULL" if one is None else _text(one) or '""' for one in value) + "}"
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    return value.isoformat() if isinstance(value, date | datetime) else str(value)
