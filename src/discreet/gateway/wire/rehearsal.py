"""Made-up rows for designing a report: from declarations and the text of the question only, and the same each time.

No row of anybody is behind them. Keys are declared choices, numbers lie in declared ranges.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from itertools import islice, product
from typing import Any, NamedTuple

from sqlglot import exp

from discreet.gateway.wire.shapes import Field, asked_fields, pg_type
from discreet.gateway.wire.text.parameters import Columns
from discreet.gateway.wire.text.rewriting import ERRORS, Item

MOST_ROWS = 100
"""So many rows are made up, at most."""
_EACH = 5
"""So many values of a key without choices are made up."""
_PYTHON = {"text": str, "int8": int, "float8": float, "bool": bool}
_FIRST_DAY = date(2024, 1, 1)


class _MadeColumn(NamedTuple):
    type: str
    values: list[Any]

    def to_pylist(self) -> list[Any]:
        """The values."""
        return self.values


class MadeUp(NamedTuple):
    """Rows that look like those of an answer."""

    columns: list[_MadeColumn]
    num_rows: int

    def column(self, place: int) -> _MadeColumn:
        """One column."""
        return self.columns[place]


def made_up(
    sql: str, query: exp.Expression, fields: Sequence[Field], items: Sequence[Item], columns: Columns
) -> MadeUp:
    """Rows for a question with these columns."""
    trees = _trees(fields, items)
    declared = {
        place: _declared(trees.get(place), fields[place].name, query, columns) for place in asked_fields(fields)
    }
    keys = [place for place in declared if not fields[place].noisy]
    grouped = any(select.args.get("group") or select.args.get("distinct") for select in query.find_all(exp.Select))
    many = product(*(_keys(fields[place], declared[place]) for place in keys)) if keys and grouped else [()]
    rows = []
    for number, values in enumerate(islice(many, _limit(query))):
        row = dict(zip(keys, values, strict=False))
        for place in declared:
            if place not in row:
                row[place] = _number(f"{sql}\0{number}\0{place}", fields[place], trees.get(place), declared[place])
        rows.append([_cell(place, row, fields) for place in range(len(fields))])
    made = [_MadeColumn(one.type, [row[place] for row in rows]) for place, one in enumerate(fields)]
    return MadeUp(made, len(rows))


def _trees(fields: Sequence[Field], items: Sequence[Item]) -> dict[int, exp.Expression]:
    asked = asked_fields(fields)
    wanted = [one for one in items if one.of not in ERRORS]
    if len(wanted) != len(asked):
        return {}
    return {place: one.tree for place, one in zip(asked, wanted, strict=True) if one.tree is not None}


def _limit(query: exp.Expression) -> int:
    limit = query.args.get("limit")
    said = None if limit is None else limit.args.get("expression") or limit.args.get("count")
    known = isinstance(said, exp.Literal) and said.name.isdecimal() and len(said.name) < 9
    return min(MOST_ROWS, int(said.name)) if known and said is not None else MOST_ROWS


def _declared(
    tree: exp.Expression | None, name: str, query: exp.Expression, columns: Columns
) -> Mapping[str, Any] | None:
    found = [] if tree is None else [tree] if isinstance(tree, exp.Column) else list(tree.find_all(exp.Column))
    if tree is None:
        found = [exp.column(name)]
    return columns.find(found[0], query) if len(found) == 1 else None


def _range(declared: Mapping[str, Any] | None) -> tuple[Any, Any] | None:
    between = (declared or {}).get("between")
    return (between[0], between[1]) if isinstance(between, list | tuple) and len(between) == 2 else None


def _keys(field: Field, declared: Mapping[str, Any] | None) -> list[Any]:
    """The values of a key: its declared choices, or some that fit its type."""
    kind = pg_type(field.type)
    choices, other = list((declared or {}).get("choices") or ()), (declared or {}).get("other")
    known = [*choices, *([] if other is None else [other])]
    if choices and all(type(one) is _PYTHON.get(kind) for one in known):
        return known
    if kind == "bool":
        return [False, True]
    if kind == "date":
        return [_day(declared, part / _EACH) for part in range(_EACH)]
    if kind in ("timestamp", "timestamptz"):
        days = [_day(declared, part / _EACH) for part in range(_EACH)]
        return [datetime(day.year, day.month, day.day) for day in days]
    if kind in ("int8", "float8", "numeric"):
        ends = _range(declared)
        low, high = ends if ends is not None and all(isinstance(end, int | float) for end in ends) else (1, _EACH)
        found = [low + (high - low) * part / (_EACH - 1) for part in range(_EACH)]
        return list(dict.fromkeys(int(one) if kind == "int8" else float(one) for one in found))
    return [f"group {number}" for number in range(1, _EACH + 1)]


def _day(declared: Mapping[str, Any] | None, share: float) -> date:
    ends = _range(declared)
    try:
        first, last = (date.fromisoformat(str(end)[:10]) for end in ends) if ends else (_FIRST_DAY, _FIRST_DAY)
    except ValueError:
        first = last = _FIRST_DAY
    days = (last - first).days if last > first else 365
    return first + timedelta(days=int(share * days))


def _number(seed: str, field: Field, tree: exp.Expression | None, declared: Mapping[str, Any] | None) -> Any:
    """A value that depends on the text of the question, and on nothing else."""
    share = int.from_bytes(hashlib.sha256(seed.encode("utf-8", "replace")).digest()[:6]) / 2**48
    kind, ends = pg_type(field.type), _range(declared)
    if kind not in ("int8", "float8", "numeric"):
        keys = _keys(field, declared)
        return keys[int(share * len(keys))]
    aggregates = [] if tree is None else list(tree.find_all(exp.AggFunc))
    counted = bool(aggregates) and all(isinstance(one, exp.Count) for one in aggregates)
    if ends is None or counted or not all(isinstance(end, int | float) for end in ends):
        ends = (10, 1000)
    elif any(isinstance(one, exp.Sum) for one in aggregates):
        ends = (ends[0] * 100, ends[1] * 100)
    found = ends[0] + (ends[1] - ends[0]) * share
    return int(found) if kind == "int8" else round(float(found), 2)


def _cell(place: int, row: Mapping[int, Any], fields: Sequence[Field]) -> Any:
    """A value, or the error that goes with it: a twentieth of it."""
    field = fields[place]
    if field.error_of is None:
        return row[place]
    value = next((row[n] for n in row if fields[n].name == field.error_of), None)
    if isinstance(value, bool) or not isinstance(value, int | float) or pg_type(field.type) != "float8":
        return None
    error = max(1.0, round(abs(value) / 20, 2))
    return {"low": value - error, "high": value + error}.get(field.name.rpartition("_")[2], error)
