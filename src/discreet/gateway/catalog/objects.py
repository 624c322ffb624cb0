"""The declared tables as rows of PostgreSQL's catalog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from discreet.gateway.catalog.facts import DeclaredTable
from discreet.gateway.catalog.snapshot import Kept, Row

DATABASE, ROLE, PUBLIC, FIRST = 16384, 10, 2200, 16385
"""Numbers of the database, of the account that asks, of the schema `public`, and of the first table."""
_A_TABLE, _ITS_TYPE, _ITS_ARRAY, _CLASS = 1259, 83, 210, 1259
ONLY_READING = ["\x01=r/\x01"]
"""Privileges on a declared table. The first character stands for the account that asks."""


def make_rows(
    tables: Sequence[DeclaredTable], database: str, kept: Mapping[tuple[str, str], Kept]
) -> dict[str, list[Row]]:
    """Rows by relation. They are made after the rows that PostgreSQL has for a table of its own."""
    types = {row["oid"]: row for row in kept["pg_catalog", "pg_type"].records}
    table = next(row for row in kept["pg_catalog", "pg_class"].records if row["oid"] == _A_TABLE)
    attributes = [row for row in kept["pg_catalog", "pg_attribute"].records if row["attrelid"] == _A_TABLE]
    rows: dict[str, list[Row]] = {
        name: [] for name in ("pg_class", "pg_type", "pg_attribute", "pg_description", "pg_database")
    }
    taken = {row["typname"] for row in types.values() if row["typnamespace"] == PUBLIC} | {one.name for one in tables}
    for place, declared in enumerate(tables):
        oid = FIRST + 3 * place
        array, kind = oid + 1, oid + 2
        rows["pg_class"].append(table | _class(declared, oid, kind))
        named = f"_{declared.name}"
        while named in taken:
            named = f"_{named}"
        taken.add(named)
        mine = {"typnamespace": PUBLIC, "typowner": ROLE}
        rows["pg_type"] += [
            types[_ITS_TYPE] | mine | {"oid": kind, "typname": declared.name, "typrelid": oid, "typarray": array},
            types[_ITS_ARRAY] | mine | {"oid": array, "typname": named, "typelem": kind},
        ]
        rows["pg_attribute"] += [row | {"attrelid": oid} for row in attributes if row["attnum"] < 0]
        rows["pg_attribute"] += _attributes(declared, oid, attributes[-1], types)
        rows["pg_description"] += [
            {"objoid": oid, "classoid": _CLASS, "objsubid": number, "description": comment}
            for number, comment in enumerate([declared.comment, *(one.comment for one in declared.columns)])
            if comment
        ]
    rows["pg_database"].append(_database(database))
    return rows


def _class(declared: DeclaredTable, oid: int, kind: int) -> Row:
    return {
        "oid": oid,
        "relname": declared.name,
        "relnamespace": PUBLIC,
        "reltype": kind,
        "relowner": ROLE,
        "relfilenode": oid,
        "reltoastrelid": 0,
        "relhasindex": False,
        "relreplident": "d",
        "relnatts": len(declared.columns),
        "relacl": ONLY_READING,
    }


def _attributes(declared: DeclaredTable, oid: int, like: Row, types: Mapping[int, Row]) -> list[Row]:
    found = []
    for number, column in enumerate(declared.columns, start=1):
        kind = types[column.type.oid]
        own: dict[str, Any] = {
            "attrelid": oid,
            "attname": column.name,
            "atttypid": column.type.oid,
            "attlen": kind["typlen"],
            "attnum": number,
            "attstattarget": -1,
            "attndims": 0,
            "attbyval": kind["typbyval"],
            "attalign": kind["typalign"],
            "attstorage": kind["typstorage"],
            "attcollation": kind["typcollation"],
            "attnotnull": False,
        }
        found.append(like | own)
    return found


def _database(name: str) -> Row:
    return {
        "oid": DATABASE,
        "datname": name,
        "datdba": ROLE,
        "encoding": 6,
        "datlocprovider": "c",
        "datistemplate": False,
        "datallowconn": True,
        "datconnlimit": -1,
        "datfrozenxid": 717,
        "datminmxid": 1,
        "dattablespace": 1663,
        "datcollate": "C",
        "datctype": "C",
        "daticulocale": None,
        "datcollversion": None,
        "datacl": ["\x01=c/\x01"],
    }
