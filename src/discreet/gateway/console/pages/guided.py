"""A question without SQL: choose a table, a measure, groups and filters. Nothing here asks: it leads to the plan."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from html import escape
from typing import Any

from discreet.errors import InvalidArgument
from discreet.gateway.console.guided_sql import MEASURES, NUMBERS, PERIODS, TIMES, Choices, Filter, build_sql
from discreet.gateway.console.page import Page
from discreet.gateway.console.pages.answers import link_to_ask
from discreet.gateway.console.visit import Fields, Visit
from discreet.gateway.desk.replies import Reply

MOST_COLUMNS = 40
"""Columns of a table that the form has fields for."""
MOST_CHOICES, ROOM = 60, 18_000
"""Columns with more choices than that, or with more bytes in them, have a field to type into."""
MOST_TABLES = 300
USUAL = Fraction(1, 10)
"""The ε in the form if the owner names no other."""


async def guided_page(visit: Visit) -> Reply:
    """The form, or the page to ask with the question that it makes."""
    found = await visit.ask_vault("tables")
    tables: list[Mapping[str, Any]] = found["tables"]
    table = next((one for one in tables if one["name"] == visit.query["table"]), None)
    if table is None:
        names = [(one["name"], one["protects"] is None) for one in tables[:MOST_TABLES]]
        return visit.page("analyst/guided.html", tables=names, table=None)
    choices = read_choices(visit.query, table)
    refused, sql = None, ""
    try:
        sql = build_sql(choices, table)
    except InvalidArgument as error:
        refused = error
    if visit.query["do"] == "ask" and sql:
        epsilon = visit.query.number("epsilon")
        return visit.go(link_to_ask(sql, {} if epsilon is None else {"epsilon": epsilon}))
    return visit.page(
        "analyst/guided.html", table=table, refused=refused, sql=sql, chosen=choices, **_fields(visit, table)
    )


def read_choices(query: Fields, table: Mapping[str, Any]) -> Choices:
    """What the address says was chosen."""
    names = [str(column["name"]) for column in table["columns"][:MOST_COLUMNS]]
    filters = [
        Filter(name, comparison, value)
        for name in names
        for comparison in ("is", "not", "from", "to")
        if (value := query[f"{comparison}:{name}"]).strip()
    ]
    return Choices(
        table=str(table["name"]),
        measure=query["measure"] or "rows",
        of=query["of"],
        share=query["share"] or "0.9",
        by=query.all("by"),
        periods={name: query[f"per:{name}"] or "month" for name in names},
        filters=filters,
    )


def _fields(visit: Visit, table: Mapping[str, Any]) -> dict[str, Any]:
    """What the form shows for a table."""
    columns = table["columns"][:MOST_COLUMNS]
    people = any(column["identifies_people"] for column in table["columns"])
    settings = visit.console.settings
    default = (
        min(USUAL, settings.question_most or USUAL) if settings.question_default is None else settings.question_default
    )
    filters, room = [], ROOM
    for column in columns:
        if not column["identifies_people"]:
            size = 2 * sum(40 + 2 * len(escape(str(one)).encode()) for one in column["choices"] or ())
            filters.append(_filter(visit.query, column, listed=size <= room))
            room -= size if size <= room else 0
    return {
        "measures": {name: label for name, label in MEASURES.items() if name != "people" or people},
        "numbers": [column["name"] for column in columns if column["type"] in NUMBERS],
        "columns": [column["name"] for column in columns if not column["identifies_people"]],
        "groups": [column for column in columns if _groups(column, is_public=table["protects"] is None)],
        "periods": PERIODS,
        "times": TIMES,
        "filters": filters,
        "is_public": table["protects"] is None,
        "ungrouped": [
            column["name"]
            for column in columns
            if not (column["identifies_people"] or _groups(column, is_public=table["protects"] is None))
        ],
        "epsilon": visit.query["epsilon"] or f"{float(default):g}",
    }


def _groups(column: Mapping[str, Any], *, is_public: bool) -> bool:
    """Whether the groups of a column are known: by its choices, by its type, by its range of dates, or to everybody."""
    if column["identifies_people"]:
        return False
    if is_public and column["type"] not in NUMBERS:
        return True
    if column["choices"] is not None or column["type"] == "boolean":
        return True
    return column["type"] in TIMES and isinstance(column["between"], list)


def _filter(query: Fields, column: Mapping[str, Any], *, listed: bool) -> dict[str, Any]:
    name, kind, choices = str(column["name"]), column["type"], column["choices"]
    if kind == "boolean":
        choices = ["true", "false"]
    if choices is not None and (not listed or len(choices) > MOST_CHOICES):
        choices = None
    ranged = choices is None and kind in (*NUMBERS, *TIMES)
    named = {one: query[f"{one}:{name}"] for one in ("is", "not", "from", "to")}
    return {
        "name": name,
        "kind": kind,
        "choices": choices,
        "ranged": ranged,
        "given": named,
        "between": column["between"],
    }


PAGES = (Page(method="GET", path="/guided", handler=guided_page),)
