"""One statement on a real, empty PostgreSQL and on our catalog: what each answers, in a form that can be compared."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import sqlglot

from discreet.gateway.catalog.casts import split_array
from discreet.gateway.catalog.catalog import Catalog
from discreet.gateway.catalog.database import write_array
from discreet.gateway.catalog.dialect import PostgresText
from discreet.gateway.wire.format.values import TYPES, Refusal

FIXTURES = Path(__file__).parents[2] / "fixtures/catalog"
_NUMBERS = re.compile(r"\b16[34]\d\d\b")
_BOUNDS = re.compile(r"^\[0:\d+\]=")
"""Where an array begins, if not at 1: ours do not say it."""
_LABELS = """
    SELECT c.oid::int8, 'table ' || c.relname FROM pg_class c WHERE c.relnamespace = 2200
    UNION ALL SELECT t.oid::int8, CASE WHEN t.typelem = 0 THEN 'row of ' ELSE 'rows of ' END || t.typname
        FROM pg_type t WHERE t.typnamespace = 2200
    UNION ALL SELECT d.oid::int8, 'database' FROM pg_database d
"""


class Answer(NamedTuple):
    """Names and types of the columns, and the rows as PostgreSQL writes them. Or the SQLSTATE of an error."""

    columns: tuple[tuple[str, int], ...]
    rows: tuple[tuple[str | None, ...], ...]
    error: str | None = None

    def plain(self) -> list[Any]:
        """The answer as JSON keeps it."""
        return [[list(one) for one in self.columns], [list(row) for row in self.rows], self.error]


def read_answer(kept: list[Any]) -> Answer:
    """The answer of its plain form."""
    return Answer(tuple(map(tuple, kept[0])), tuple(map(tuple, kept[1])), kept[2])


class Statement(NamedTuple):
    """A statement that clients sent, and the values of its parameters as texts."""

    clients: tuple[str, ...]
    sql: str
    parameters: tuple[str | None, ...]


def recorded() -> list[Statement]:
    """The statements that were recorded from real clients, with the clients."""
    lines = (FIXTURES / "statements.jsonl").read_text().splitlines()
    read = map(json.loads, lines)
    return [Statement(tuple(one["clients"]), one["sql"], tuple(one["parameters"])) for one in read]


def recorded_numbers() -> dict[str, int]:
    """The numbers that the tables had when the statements were recorded."""
    return json.loads((FIXTURES / "numbers.json").read_text())


def expected() -> dict[int, Answer]:
    """What a real PostgreSQL answered to some of the statements, by their places."""
    kept = json.loads((FIXTURES / "answers.json").read_text())
    return {int(place): read_answer(answer) for place, answer in kept.items()}


class Real:
    """A real PostgreSQL."""

    def __init__(self, url: str) -> None:
        import psycopg

        self.connection = psycopg.connect(url, autocommit=True)
        self.numbers = {label: number for number, label in self.connection.execute(_LABELS).fetchall()}

    def answer(self, sql: str, parameters: Sequence[str | None]) -> Answer:
        """What it answers."""
        given = [None if one is None else one.encode() for one in parameters]
        found = self.connection.pgconn.exec_params(sql.encode(), given)
        if found.status not in (1, 2):  # no rows, rows
            return Answer((), (), (found.error_field(ord("C")) or b"").decode())
        columns = tuple((_text(found.fname(place)), found.ftype(place)) for place in range(found.nfields))
        rows = tuple(
            tuple(_text(found.get_value(row, place)) for place in range(found.nfields)) for row in range(found.ntuples)
        )
        plain = tuple(tuple(cell and _BOUNDS.sub("", cell) for cell in row) for row in rows)
        return Answer(columns, _labelled(plain, self.numbers))


class Ours:
    """Our catalog."""

    def __init__(self, catalog: Catalog, user: str = "alice", settings: dict[str, str] | None = None) -> None:
        self.catalog, self.user, self.settings = catalog, user, settings or {}
        query = sqlglot.parse_one(_LABELS, read=PostgresText)
        self.numbers = {label: number for number, label in catalog.run(query, user=user)[1]}

    def answer(self, sql: str, parameters: Sequence[str | None], theirs: dict[str, int]) -> Answer:
        """What it answers, to a statement that has their numbers."""
        mine = {str(number): str(self.numbers.get(label, number)) for label, number in theirs.items()}

        def numbered(text: str) -> str:
            return _NUMBERS.sub(lambda found: mine.get(found[0], found[0]), text)

        try:
            query = sqlglot.parse_one(numbered(sql), read=PostgresText)
            assert self.catalog.answers(query)
            described = self.catalog.describe(query)
            texts = [None if one is None else numbered(one) for one in parameters]
            values = [_value(one, kind) for one, kind in zip(texts, described.parameters, strict=True)]
            columns, rows = self.catalog.run(query, values, user=self.user, settings=self.settings)
            assert described.columns == columns
        except Refusal as refusal:
            return Answer((), (), refusal.state)
        written = tuple(
            tuple(None if value is None else write(value, one.type) for value, one in zip(row, columns, strict=True))
            for row in rows
        )
        return Answer(tuple((one.name, TYPES[one.type].oid) for one in columns), _labelled(written, self.numbers))


def same(one: Answer, other: Answer, sql: str) -> bool:
    """Whether two answers are equal. Rows that nobody orders may come in any order."""
    if one.error or other.error:
        return one.error == other.error
    if re.search(r"\blimit\s+\d", sql, re.IGNORECASE) and "order by" not in sql.lower():
        return one.columns == other.columns and len(one.rows) == len(other.rows)
    ordered = re.search(r"\border\s+by\b", sql, re.IGNORECASE) is not None
    if ordered and one.rows == other.rows and one.columns == other.columns:
        return True
    # rows with equal keys may change places
    return one.columns == other.columns and sorted(map(str, one.rows)) == sorted(map(str, other.rows))


def write(value: Any, kind: str) -> str:
    """A value as PostgreSQL writes it."""
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, list):
        inner = [None if one is None else write(one, kind.removesuffix("[]")) for one in value]
        if kind in ("int2vector", "oidvector"):
            return " ".join(map(str, inner))
        return write_array(inner)
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ") + ("+00" if kind == "timestamptz" else "")
    return str(value)


def _value(text: str | None, kind: str) -> Any:
    """A parameter as the wire would read it."""
    if text is None:
        return None
    if kind.endswith("[]"):
        return [_value(one, kind.removesuffix("[]")) for one in split_array(text)]
    if kind in ("int2", "int4", "int8", "oid"):
        return int(text)
    return text in ("t", "true", "1") if kind == "bool" else text


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def _labelled(rows: Any, numbers: dict[str, int]) -> Any:
    """The rows with labels instead of numbers that a server gives as tables are made."""
    labels = {str(number): f"<{label}>" for label, number in numbers.items()}
    if not labels:
        return rows
    change = lambda found: labels.get(found[0], found[0])  # noqa: E731
    return tuple(tuple(None if cell is None else _NUMBERS.sub(change, cell) for cell in row) for row in rows)
