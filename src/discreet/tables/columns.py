"""Columns of the rows that a plan asks of, as numbers and cells, read as in SQL: only so many rows of one person."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from discreet.datasets.database import Database
from discreet.engines.duckdb.dialect import quoted
from discreet.errors import InvalidArgument
from discreet.rows import arrow
from discreet.sql.plan import Plan
from discreet.sql.reading.ranges import day_of
from discreet.sql.running.rows import rows_of

DAYS = ("date", "timestamp")
EPOCH = datetime.date(1970, 1, 1)
"""Dates are numbers of days from here."""


def rows_of_one(plan: Plan) -> int:
    return 1 if plan.bounds is None else plan.bounds.rows


def as_number(column: str, kind: str) -> str:
    """A column as a number in SQL: of a date, its days since 1970."""
    name = quoted(column)
    return f"({name} - DATE '{EPOCH}')" if kind in DAYS else name


def from_number(value: Any, kind: str) -> Any:
    """The number as the column has it."""
    return EPOCH + datetime.timedelta(days=int(value)) if kind in DAYS else value


def in_days(what: tuple[Any, Any]) -> tuple[int, int]:
    if not all(isinstance(end, datetime.date) for end in what):
        raise InvalidArgument("The range of a column of dates must be two dates.")
    low, high = map(day_of, what)
    return (low - EPOCH).days, (high - EPOCH).days


def columns_of(database: Database, plan: Plan, names: list[str], kinds: Mapping[str, str]) -> dict[str, Any]:
    """The columns of the rows that are asked of, no more rows of one person than may be."""
    text, known = statement_of(database, plan, names)
    found = database.engine.table(text)
    return {name: cells_of(found.column(known[name]), kinds[name]) for name in names}


def statement_of(database: Database, plan: Plan, names: list[str]) -> tuple[str, dict[str, str]]:
    """What reads these columns of the rows that are asked of, and how each is called there."""
    relation = plan.question.relation
    known = {field.name: field.id for field in relation.fields}  # ids: no name of a column can be one of the engine's
    dialect = database.engine.dialect
    columns = [dialect.quoted(known[name]) for name in names]
    texts = {dialect.quoted(field.id) for field in relation.fields if field.type == "text"}
    # as keys are: bytes that are no text would stop whoever reads them
    cells = [f"{dialect.group_key(column, 'text')} AS {column}" if column in texts else column for column in columns]
    shown, rows = ", ".join(cells), f"({rows_of(relation, database.engine)}) AS one"
    if relation.person is None or plan.bounds is None:
        text = f"SELECT {shown} FROM {rows}"
    else:
        person = dialect.quoted(relation.person.id)
        own = f"SELECT {shown}, {person} AS person FROM {rows} WHERE {person} IS NOT NULL"
        text = dialect.few_of_each(own, "person", plan.bounds.rows, columns)
    return text, {name: known[name] for name in names}


def cells_of(column: Any, kind: str) -> Any:
    """A column of Arrow: numbers as they are, days as numbers, and else a list of its cells."""
    if kind in DAYS:
        return arrow.whole_days_of(column)
    return column if kind in ("integer", "number") else arrow.cells_of(column)
