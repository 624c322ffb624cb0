"""The tables that the catalog is tested with, as the vault's verb `tables` returns them."""

from __future__ import annotations

from typing import Any


def column(name: str, kind: str = "text", **declared: Any) -> dict[str, Any]:
    """A column as the vault describes it."""
    said = {"between": None, "choices": None, "other": None, "identifies_people": False}
    return {"name": name, "type": kind} | said | declared


def table(name: str, *columns: dict[str, Any], protects: str | None = "person('patient')", **declared: Any) -> dict:
    """A table as the vault describes it."""
    bounds = {"through": None, "rows_per_person": None, "groups_per_person": None, "rows_per_group": None}
    return {"name": name, "protects": protects, "columns": list(columns)} | bounds | declared


CLINIC = {
    "remains": "ε=10 of ε=10 remains",
    "tables": [
        table(
            "visits",
            column("patient", "integer", identifies_people=True),
            column("city", choices=["Oslo", "Bergen"], other="elsewhere"),
            column("cost", "number", between=[0, 500]),
            column("day", "date"),
            column("seen_at", "timestamp"),
            column("urgent", "boolean"),
            rows_per_person=5,
        ),
        table("people", column("patient", "integer", identifies_people=True), column("age", "integer", between="auto")),
        table("cities", column("city"), column("region"), protects=None),
    ],
}
HOSTILE = {
    "remains": "",
    "tables": [
        table("Visits", column("select"), column("a b", "integer"), column('quo"te', "number"), column("it's", "date")),
        table("order", column("naïve", "boolean"), column("名前", "text"), column("$1", "timestamp")),
        table("pg_class", column("oid", "integer"), column("relname"), protects=None),
        table('x"; DROP TABLE y; --', column("{r,p}"), column("\\d", "other")),
    ],
}
"""Names that would end a badly quoted statement, or that PostgreSQL itself uses."""
