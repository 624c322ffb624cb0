"""The tables and columns that may be asked about, as the pages list them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from typing import Any

from sqlglot import parse_one
from sqlglot.errors import SqlglotError

from discreet.engines.duckdb.dialect import quote

ROOM = 20_000
"""So many bytes of a page are for tables."""
SHOWN_CHOICES = 6
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")


@dataclass(frozen=True)
class ListedColumn:
    """A column: its name, how it is written in SQL, its type, and what is declared about it."""

    name: str
    written: str
    type: str
    values: str
    identifies_people: bool


@dataclass(frozen=True)
class ListedTable:
    """A table with its columns. `columns` is None if there is no room for them on the page."""

    name: str
    written: str
    about: str
    is_public: bool
    columns: Sequence[ListedColumn] | None


def written(name: str) -> str:
    """A name as it is typed in SQL: in quotes, unless it is a plain word that SQL does not use itself."""
    return name if _PLAIN.fullmatch(name) and _is_name(name) else quote(name)


@lru_cache(maxsize=4096)
def _is_name(word: str) -> bool:
    """Whether a word without quotes is a name wherever names stand. A few words are not, but begin something."""
    text = "SELECT {0} AS {0} FROM {0} WHERE {0} = '' AND {0} IS NULL GROUP BY {0} ORDER BY {0}"
    try:
        bare, quoted = (parse_one(text.format(one), read="duckdb") for one in (word, quote(word)))
    except SqlglotError:
        return False
    return bare.sql("duckdb", identify=True) == quoted.sql("duckdb", identify=True)


def listed_tables(tables: Sequence[Mapping[str, Any]], first: str = "") -> tuple[list[ListedTable], int]:
    """The tables that fit on a page, the one named `first` before all others, and how many more there are."""
    ordered = sorted(tables, key=lambda table: table["name"] != first)
    found: list[ListedTable] = []
    room = ROOM
    for table in ordered:
        columns = [_column(column) for column in table["columns"]]
        size = 200 + sum(190 + _size(one.written, one.written, one.type, one.values) for one in columns)
        is_shown = size <= room or not found
        room -= min(size, ROOM) if is_shown else 180 + 3 * _size(table["name"])
        if room < 0 and found:
            break
        found.append(_table(table, columns[:100] if is_shown else None))
    return found, len(ordered) - len(found)


def _size(*texts: str) -> int:
    return sum(len(escape(text).encode()) for text in texts)


def _table(table: Mapping[str, Any], columns: Sequence[ListedColumn] | None) -> ListedTable:
    name, public = str(table["name"]), table["protects"] is None
    return ListedTable(name, written(name), "public: exact and free" if public else _protected(table), public, columns)


def _protected(table: Mapping[str, Any]) -> str:
    unit = re.search(r"""person\((['"])(.*?)\1""", str(table["protects"]))
    per = re.search(r"""per=(['"])(\w+)\1""", str(table["protects"]))
    block = f" in each {per[2]}" if per else ""
    few = re.search(r"times=(\d+)(?:, groups=(\d+), by=(['\"])(.*?)\3)?", str(table["protects"]))
    rows = (
        f"up to {few[1]} rows" + (f" in each of {few[2]} groups of {few[4]}" if few[2] else "") if few else "each row"
    )
    who = f"protects each person ({unit[2]}){block}" if unit else f"protects {rows}"
    path = f", through {table['through']}" if table["through"] else ""
    bounds = [
        f"{many:,} {what if many == 1 else what + 's'}"
        for many, what in ((table["rows_per_person"], "row"), (table["groups_per_person"], "group"))
        if isinstance(many, int)
    ]
    most = f"; at most {' and '.join(bounds)} of one person" if bounds else ""
    return f"{who}{path}{most}"


def _column(column: Mapping[str, Any]) -> ListedColumn:
    said = ["identifies people"] if column["identifies_people"] else []
    between, choices = column["between"], column["choices"]
    if between is not None:
        said.append(" to ".join(map(str, between)) if isinstance(between, list) else "a range that is found")
    if choices is not None:
        more = f", … ({len(choices):,})" if len(choices) > SHOWN_CHOICES else ""
        said.append(", ".join(_cut(str(choice)) for choice in choices[:SHOWN_CHOICES]) + more)
    if column["other"] is not None:
        said.append(f"others as {column['other']}")
    name = str(column["name"])
    return ListedColumn(name, written(name), str(column["type"]), "; ".join(said), column["identifies_people"] is True)


def _cut(text: str) -> str:
    return text if len(text) <= 30 else text[:29] + "…"


def names_of(tables: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """All names as they are written in SQL, for completion."""
    return {
        "tables": [
            {"name": written(str(table["name"])), "columns": [written(str(one["name"])) for one in table["columns"]]}
            for table in tables
        ]
    }
