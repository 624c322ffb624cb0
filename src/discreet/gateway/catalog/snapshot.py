"""What every empty PostgreSQL 15 holds in its catalog: relations, types, functions. Written by make_catalog.py."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any

from discreet.gateway.wire.format.values import Column

Row = dict[str, Any]


class Kept:
    """A relation: its schema, its name, its columns and its rows."""

    def __init__(self, schema: str, name: str, columns: list[list[str]], rows: list[list[Any]]) -> None:
        self.schema, self.name, self.rows = schema, name, rows
        self.columns = tuple(Column(*column) for column in columns)

    @property
    def records(self) -> Iterator[Row]:
        """The rows with the names of their columns."""
        names = [column.name for column in self.columns]
        return (dict(zip(names, row, strict=True)) for row in self.rows)

    def add(self, rows: list[Row]) -> Kept:
        """The same relation with more rows."""
        more = [[row[column.name] for column in self.columns] for row in rows]
        return Kept(self.schema, self.name, [list(column) for column in self.columns], self.rows + more)


@cache
def load() -> tuple[dict[tuple[str, str], Kept], dict[str, list[list[Any]]]]:
    """The relations by schema and name, and what functions say about PostgreSQL's own objects."""
    packed = resources.files(__package__).joinpath("postgres15.json.xz").read_bytes()
    read = json.loads(lzma.decompress(packed))
    relations = {}
    for one in read["relations"]:
        rows = _rows(one["rows"])
        relations[one["schema"], one["name"]] = Kept(one["schema"], one["name"], one["columns"], rows)
    said = {what: _rows(columns) for what, columns in read["said"].items()}
    keywords = [["word", "text"], ["catcode", "char"], ["barelabel", "bool"], ["catdesc", "text"], ["baredesc", "text"]]
    relations["pg_catalog", "pg_get_keywords"] = Kept("pg_catalog", "pg_get_keywords", keywords, said["keywords"])
    return relations, said


def _rows(columns: list[list[Any]]) -> list[list[Any]]:
    """The rows of a table that is stored column by column, which is smaller."""
    return [list(row) for row in zip(*columns, strict=True)]
