"""What could be asked instead of a refused question, written out: the nearest known name, or numbers in place of rows.

These are proposals. Whoever offers one plans it first, so that only questions that can be answered are offered.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sqlglot import exp

from discreet.engines.duckdb.dialect import quote
from discreet.errors import DiscreetError, NotAllowed, QueryError
from discreet.sql.reading.parse import Text, parse_query, without_alias
from discreet.sql.schema import Schema, Table

LONGEST = 10_000
"""For longer questions, nothing is proposed."""
_NEAR, _LINE = 0.6, 100
_NAMES = ("sql-unknown-table", "sql-unknown-column")
_ROWS = ("sql-not-aggregated", "sql-shows-people")


def suggestions(question: str, schema: Schema, refused: DiscreetError) -> Iterator[str]:
    """Questions that may be meant, the most likely one first. None of them was planned."""
    if not isinstance(refused, NotAllowed | QueryError) or len(question) > LONGEST:
        return
    if refused.code in _NAMES and refused.place is not None and refused.place[0] == question:
        yield from _named(question, schema, refused.place[1], tables=refused.code == _NAMES[0])
    elif refused.code == "sql-parentheses":
        yield question.strip().rstrip(";").strip()[1:-1].strip()
    elif refused.code in _ROWS:
        query = parse_query(question).query
        if isinstance(query, exp.Select):
            yield from map(_text, _numbers(query, schema))


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """A sentence with the known name that is nearest to an unknown one, to stand before others. Empty if none is."""
    names = {name.lower(): name for name in known}
    near = difflib.get_close_matches(wrong.lower(), names, n=1, cutoff=_NEAR) if len(wrong) <= _LINE else []
    return f"Did you mean {names[near[0]]}? " if near else ""


def _text(query: exp.Select) -> str:
    line = query.sql(dialect="duckdb")
    return line if len(line) <= _LINE else query.sql(dialect="duckdb", pretty=True)


# --- names ------------------------------------------------------------------------------------------------


def _named(question: str, schema: Schema, start: int, *, tables: bool) -> Iterator[str]:
    """The question with the nearest known names in place of the one that starts here, or wherever it is written: a name
    that is mistyped in GROUP BY often is in SELECT, too.
    """
    tokens = Text(question).tokens
    parts = [token for token in tokens if token.start >= start]
    place = 0
    while parts[place + 1 : place + 3] and parts[place + 1].text == "." and len(parts) > place + 2:
        place += 2
    if not parts:
        return
    wrong = parts[place]
    known = {name.lower(): name for name in (schema.tables if tables else _columns_of(schema))}
    for near in difflib.get_close_matches(wrong.text.lower(), known, n=3, cutoff=_NEAR):
        yield _renamed(question, [wrong], known[near])
        same = [token for token in tokens if token.text == wrong.text and token.token_type == wrong.token_type]
        if len(same) > 1:
            yield _renamed(question, same, known[near])


def _renamed(question: str, tokens: Sequence[Any], name: str) -> str:
    """The question with a name in place of some tokens."""
    for token in reversed(tokens):
        question = question[: token.start] + _written(name) + question[token.end + 1 :]
    return question


def _columns_of(schema: Schema) -> list[str]:
    return list(dict.fromkeys(name for table in schema.tables.values() for name in table.columns))


def _written(name: str) -> str:
    """A name as it is typed: in quotes, unless it is a plain word."""
    plain = name.isascii() and name.isidentifier() and name == name.lower()
    return name if plain else quote(name)


# --- numbers in place of rows -----------------------------------------------------------------------------


def _numbers(query: exp.Select, schema: Schema) -> Iterator[exp.Select]:
    """The query with counts in place of what shows people."""
    plain = [item for item in query.expressions if not item.find(exp.AggFunc)]
    columns = [item for item in plain if isinstance(without_alias(item), exp.Column)]
    if len(plain) < len(query.expressions):  # some numbers are there: the other columns may be their groups
        yield _without_order(query, exp.select(*query.expressions), [without_alias(item) for item in columns])
    people = [without_alias(item) for item in columns if _is_person(without_alias(item), schema)]
    if people:
        counted = exp.alias_(exp.Count(this=exp.Distinct(expressions=[people[0].copy()])), "people")
        keys = [item for item in columns if without_alias(item) not in people]
        kept = [item for item in query.expressions if item.find(exp.AggFunc)]
        yield _without_order(query, exp.select(*keys, counted, *kept), [without_alias(item) for item in keys])
    groups = [item for item in columns if _has_choices(without_alias(item), query, schema)]
    counted = exp.alias_(exp.Count(this=exp.Star()), "n")
    if groups:
        yield _without_order(query, exp.select(*groups, counted), [without_alias(item) for item in groups])
    yield _without_order(query, exp.select(counted), [])


def _without_order(query: exp.Select, shown: exp.Select, keys: list[exp.Expression]) -> exp.Select:
    """The same rows, with these columns and groups. What ordered or cut the rows is left out."""
    made = shown.copy()
    for name in ("with_", "from_", "joins", "where"):
        if query.args.get(name):
            found = query.args[name]
            made.set(name, [one.copy() for one in found] if isinstance(found, list) else found.copy())
    return made.group_by(*(key.copy() for key in dict.fromkeys(keys))) if keys else made


def _is_person(column: exp.Expression, schema: Schema) -> bool:
    return any(table.person and table.person.lower() == column.name.lower() for table in schema.tables.values())


def _has_choices(column: exp.Expression, query: exp.Select, schema: Schema) -> bool:
    named = {one.name.lower() for one in query.find_all(exp.Table)}
    tables: list[Table] = [table for name, table in schema.tables.items() if name.lower() in named]
    found = [own for table in tables for own in table.columns.values() if own.name.lower() == column.name.lower()]
    return bool(found) and found[0].choices is not None
