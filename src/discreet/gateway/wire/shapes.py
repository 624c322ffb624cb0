"""The columns of an answer as a client of PostgreSQL sees them: first all that were asked for, then their errors.

Types follow from declarations, never from values, so that what is described and what is sent are the same.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
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
    """A column that is sent: where its values come from. `error` is the column that is added or taken away. `beside`
    says how many digits mean something: of a value its error, of an error its value, of an end the other end.
    """

    column: Column
    of: str
    value: int
    error: int | None = None
    sign: int = 0
    beside: int | None = None


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
        Cell(Column(name, pg_type(fields[place].type)), "value", place, beside=_places_of(fields, place).get("error"))
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
            found.append(_error_of(Column(name, pg_type(one.type)), place, fields))
    return found


def _error_of(column: Column, place: int, fields: Sequence[Field]) -> Cell:
    """An error, or an end of an interval, that is rounded with its value or with the other end."""
    own, value = fields[place], next((n for n, one in enumerate(fields) if one.name == fields[place].error_of), None)
    places, end = {} if value is None else _places_of(fields, value), own.name.rpartition("_")[2]
    if end == "error":
        return Cell(column, "error", place, beside=value)
    other = places.get("high" if end == "low" else "low")
    return Cell(column, "value" if other is None else end, place, beside=other)


def _places_of(fields: Sequence[Field], value: int) -> dict[str, int]:
    """Where the error of a column is, and the ends of its interval."""
    named = fields[value].name
    return {one.name.rpartition("_")[2]: n for n, one in enumerate(fields) if one.error_of == named}


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
    places = _places_of(fields, cell.value)
    column = Column(one.name or one.of, "float8")
    if one.of in places:
        return _error_of(column, places[one.of], fields)
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
    if cell.beside is not None:
        beside = table.column(cell.beside).to_pylist()
        values = [_ROUNDED.get(cell.of, _few_digits)(one, other) for one, other in zip(values, beside, strict=True)]
    elif cell.of == "error":
        values = [_rounded(error) for error in values]
    if cell.of == "end":
        errors = [0.0] * len(values) if cell.error is None else table.column(cell.error).to_pylist()
        return [_end(value, error, cell.sign) for value, error in zip(values, errors, strict=True)]
    if cell.column.type == "text":
        return [_text(value) for value in values]
    if cell.column.type == "numeric":
        return [None if value is None else Decimal(value) for value in values]
    return values  # type: ignore[no-any-return]


def _few_digits(value: Any, error: Any) -> Any:
    """A mean or the like, rounded at the fourth digit of its error. Counts, and what has no error, stay as they are."""
    if not isinstance(value, float) or not math.isfinite(value) or not _is_amount(error):
        return value
    return round(value, 3 - math.floor(math.log10(error)))


def _rounded(error: Any, value: Any = None) -> Any:
    """An error with three or four digits, never below itself and what its value is rounded by. Of a list, each."""
    if isinstance(error, list):
        return [_rounded(one) for one in error]
    if not _is_amount(error):
        return error
    shown = _few_digits(value, error)
    moved = 0 if shown is value or shown == value else abs(exactly(shown) - exactly(value))
    return float(significant(exactly(error) + moved, up=True, digits=3))


def _rounded_out(end: Any, other: Any) -> Any:
    """An end of an interval, moved away from the other end to three or four digits of half its width."""
    if not isinstance(end, float) or not isinstance(other, float) or not _is_amount(abs(end - other)):
        return end
    step = Decimal(1).scaleb(math.floor(math.log10(abs(end - other) / 2)) - 3)
    outward = ROUND_FLOOR if end < other else ROUND_CEILING
    return float((Decimal(end) / step).to_integral_value(outward) * step)


def _is_amount(error: Any) -> bool:
    return isinstance(error, int | float) and error > 0 and math.isfinite(error)


_ROUNDED: dict[str, Callable[[Any, Any], Any]] = {"error": _rounded, "low": _rounded_out, "high": _rounded_out}
"""How numbers are rounded, next to the column that is beside them."""


def _end(value: Any, error: Any, sign: int) -> float | None:
    """What is shown of a value, with what is shown of its error added or taken away."""
    if value is None or error is None:
        return None
    shown, half = float(_few_digits(value, error)), float(_rounded(error, value))
    if not math.isfinite(shown) or not math.isfinite(half):
        return shown + sign * half
    return float(Decimal(repr(shown)) + sign * Decimal(repr(half)))


def _text(value: Any) -> str | None:
    """A value that PostgreSQL has no type for: a list is written as {1,2}."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list):
        return "{" + ",".join("NULL" if one is None else _text(one) or '""' for one in value) + "}"
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    return value.isoformat() if isinstance(value, date | datetime) else str(value)
