"""Where units live: which tables are divided into blocks of time or into parts of the people, and how a part is named.

It is decided by declarations only. A part that is named wrongly is refused before any row is read.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from discreet.errors import InvalidArgument
from discreet.guarantees.unit import few_rows
from discreet.ledger.texts.exact import digest, exact_text
from discreet.sql.blocks import NULL, OTHER, read_name

if TYPE_CHECKING:
    from discreet.sql.schema import Column, Schema, Table

MOST_HOMES = 1000
"""A person lives in one of at most so many declared parts."""
_TIMES = ("date", "timestamp")


def check_groups(schema: Schema) -> None:
    """Check that each private table has the column whose groups a unit has few of."""
    unit = schema.unit
    for table in schema.tables.values():
        if unit.by is not None and not table.public and unit.by not in table.columns:
            raise InvalidArgument(
                f"A unit is {few_rows(unit)}, and {table.name} has no column {unit.by}. Correct by, or write public = "
                "true if the table is about nobody.",
                code="unit-groups",
            )


def check_times(schema: Schema) -> None:
    """Check that each table says when its rows happened if that decides whose they are, and that all say it alike."""
    for table in schema.tables.values():
        if table.time is None:
            _check_without_time(schema, table)
        else:
            _check_time(schema, table)


def _check_without_time(schema: Schema, table: Table) -> None:
    unit = schema.unit
    needed = unit.per is not None and (unit.column is not None or unit.most_rows > 1)
    if needed and not table.public and table.through is None:
        who = few_rows(unit) if unit.column is None else f"one person in one {unit.per}"
        raise InvalidArgument(
            f"A unit is {who}, and {table.name} does not say when its rows happened. "
            f'Add [tables.{table.name}.time] with column = "day", or write public = true if it is about nobody.',
            code="unit-needs-time",
        )


def _check_time(schema: Schema, table: Table) -> None:
    time = table.time
    assert time is not None
    if table.public or table.through is not None:
        why = "is public" if table.public else "leads to a row of another table, and is in the block of that row"
        _refuse(table, f"{table.name} {why}. Remove its time")
    for name in time.columns:
        if name not in table.columns:
            _refuse(table, f"{table.name} has no column {name}. Correct it")
        if table.columns[name].type not in _TIMES:
            what = "must be a date, or a timestamp without a time zone"
            _refuse(table, f'{name} {what}. Convert it, or declare type = "date" for a text file')
    if schema.unit.per not in (None, time.block):
        _refuse(table, f'Units live in one {schema.unit.per}. Write block = "{schema.unit.per}"')
    if time.block != schema.block:
        _refuse(table, "All tables must be divided into the same blocks. Write the same block everywhere")


def _refuse(table: Table, what: str) -> NoReturn:
    raise InvalidArgument(f"[tables.{table.name}.time]: {what}.", code="policy-time")


# --- where people live --------------------------------------------------------------------------------------


def home_of(schema: Schema) -> tuple[Table, Column]:
    """The table and the column of `lives_in`: "region", or "patients.region" if several tables have one."""
    wanted = str(schema.unit.lives_in)
    private = [t for t in schema.tables.values() if not t.public and t.person is not None]
    found = [(table, wanted) for table in private if wanted in table.columns]
    if not found:
        of, _, own = wanted.partition(".")
        found = [(table, own) for table in private if table.name == of and own in table.columns]
    if len(found) != 1:
        raise InvalidArgument(
            f'lives_in = "{wanted}" must name a column of one table that has the person\'s column: "region", or '
            '"patients.region" if several tables have one.',
            code="unit-lives-in",
        )
    table, name = found[0]
    column = table.columns[name]
    if column.choices is None or len(column.choices) > MOST_HOMES or column.type == "number":
        raise InvalidArgument(
            f"{table.name}.{name} says where a person lives, so its values must be declared. Give it at most "
            f"{MOST_HOMES:,} choices: text, whole numbers or dates.",
            code="unit-lives-in",
        )
    others = [t for t in private if t.columns[str(t.person)].type != table.columns[str(table.person)].type]
    if others:
        raise InvalidArgument(
            f"The person's column has another type in {others[0].name} than in {table.name}, which says where a person "
            "lives. Store it with the same type in both tables.",
            code="unit-lives-in",
        )
    homes_named(column)
    return table, column


def homes_named(column: Column) -> tuple[str, ...]:
    """The names of the parts that people live in: the declared values in their order, others, and none."""
    other = OTHER if column.other is None else name_of_value(column.other)
    names = (*map(name_of_value, column.choices or ()), other, NULL)
    if len(set(names)) < len(names):
        raise InvalidArgument(
            f'The parts of {column.name} are its choices, "{other}" and "{NULL}". Rename the choice that is one of '
            "these words.",
            code="unit-lives-in",
        )
    return names


def division_of(schema: Schema) -> int:
    """A number for the declarations that say where people live. 0 for blocks of time, which are those of the calendar.

    If they change, people who lived in one part live in another: a new value takes people out of `other`, and another
    order moves those with two values.
    """
    if schema.unit.lives_in is None:
        return 0
    table, column = schema.home
    said = exact_text((table.name, column.name, column.choices, column.other))
    return 1 + int(digest(said)[:10], 16)


def name_of_value(value: Any) -> str:
    """A declared value as the name of a part."""
    if isinstance(value, datetime.date):
        return value.isoformat()
    return str(value).lower() if isinstance(value, bool) else str(value)


# --- parts --------------------------------------------------------------------------------------------------


def parts_named(schema: Schema, names: Sequence[Any]) -> tuple[str, ...]:
    """Parts in canonical order, each once. Raises if one of them cannot exist."""
    if isinstance(names, str) or not names:
        raise InvalidArgument('Name at least one part, such as "2024-01".', code="part-name")
    if schema.unit.lives_in is not None:
        known = homes_named(schema.home[1])
        listed = [one if isinstance(one, str) else name_of_value(one) for one in names]
        if any(one not in known for one in listed):
            shown = ", ".join((*known[:20], *(("…",) if len(known) > 20 else ())))
            raise InvalidArgument(f"Unknown part. Known: {shown}.", code="part-name")
        return tuple(one for one in known if one in listed)
    block = schema.block
    if block is None:
        raise InvalidArgument(
            "Parts are blocks of time, and no table says when its rows happened. Add a section such as "
            '[tables.visits.time] with column = "day" and block = "month".',
            code="part-name",
        )
    for name in names:
        read_name(block, name)
    return tuple(sorted(set(names)))
