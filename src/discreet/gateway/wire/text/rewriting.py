"""From a question in the words of PostgreSQL to the question that the vault is asked: as little as possible is changed.

Schemas before names of tables, `error(n)` and the like, and parameters are not for the vault. What `/` and NUMERIC mean
in PostgreSQL is `//` and DOUBLE there. Everything else, comments included, is sent as it was written, so that errors
point at the client's own text.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

from sqlglot import exp

from discreet.gateway.wire.format.values import Refusal
from discreet.gateway.wire.text.statement import Statement
from discreet.gateway.wire.text.texts import LONGEST, Edit, Edited, depths, kind_of, unquoted

ERRORS = ("error", "low", "high")
"""The functions that show the error of a column, or an end of its interval."""
_SCHEMA = "public"
_MOST_ERRORS = 100
_NAMED = {
    exp.Coalesce: "coalesce",
    exp.Extract: "extract",
    exp.CurrentDate: "current_date",
    exp.CurrentTimestamp: "current_timestamp",
    exp.Boolean: "bool",
    exp.Exists: "exists",
    exp.Interval: "interval",
    exp.Array: "array",
    exp.Nullif: "nullif",
    exp.Greatest: "greatest",
    exp.Least: "least",
}
_TYPES = {"INT": "int4", "BIGINT": "int8", "SMALLINT": "int2", "DOUBLE": "float8", "FLOAT": "float4", "BOOLEAN": "bool"}
_TYPES |= {"VARCHAR": "varchar", "DECIMAL": "numeric"}


class Item(NamedTuple):
    """An item of the select list: a star, a column (`of` is value), or the error of another column.

    A star has no name: those of the vault are right. `target` is what an error is about.
    """

    of: str
    name: str | None
    target: exp.Expression | None = None
    tree: exp.Expression | None = None


@dataclass(frozen=True)
class Rewritten:
    """The question for the vault, and the columns that the client wants to see."""

    sql: Edited
    items: tuple[Item, ...]


def rewritten(statement: Statement, literals: Mapping[int, str], database: str) -> Rewritten:
    """The question of a statement, with these literals for its parameters."""
    if literals:
        return _rewritten(statement, literals, database)
    key = ("rewritten", database)
    if key not in statement.memory:
        statement.memory[key] = _rewritten(statement, literals, database)
    known: Rewritten = statement.memory[key]
    return known


def _rewritten(statement: Statement, literals: Mapping[int, str], database: str) -> Rewritten:
    query, text = statement.query, statement.text
    assert query is not None
    edits = [*_without_schemas(query, database, text), *_dates(query, statement)]
    edits += [Edit(one.start, one.end + 1, "//") for one in statement.tokens if kind_of(one) == "SLASH"]
    edits += [Edit(one.start, one.end + 1, "DOUBLE") for one in _numerics(statement.tokens)]
    if sum(len(literals[number]) for number, _, _ in statement.parameters) > LONGEST:  # one may be used often
        raise Refusal(f"The question has more than {LONGEST:,} characters. Send shorter values.", state="54000")
    edits += [Edit(start, end + 1, literals[number]) for number, start, end in statement.parameters]
    items, more = _items(query, statement)
    start, end = statement.start, statement.end
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if statement.before:
        edits = [edit for edit in edits if edit.start >= start]
    return Rewritten(Edited(text, start, end, _apart([*edits, *more]), statement.before), tuple(items))


def _apart(edits: Sequence[Edit]) -> list[Edit]:
    """Changes that do not overlap: what is inside of a removed part goes with it."""
    kept: list[Edit] = []
    for edit in sorted(edits, key=lambda one: (one.start, -one.end)):
        if not kept or edit.start >= kept[-1].end:
            kept.append(edit)
    return kept


# --- names --------------------------------------------------------------------------------------------------


def _folded(name: exp.Expression) -> str:
    """A name as PostgreSQL reads it: lower case if it is not quoted."""
    return name.name if name.args.get("quoted") else name.name.lower()


def _without_schemas(query: exp.Expression, database: str, text: str) -> Iterator[Edit]:
    for node in query.find_all(exp.Table, exp.Column):
        schema, catalog = node.args.get("db"), node.args.get("catalog")
        if schema is None:
            continue
        kept = node.args["table"] if isinstance(node, exp.Column) else node.this
        first = catalog if catalog is not None else schema
        if "start" not in first.meta or "start" not in kept.meta:
            continue
        position = int(first.meta["start"]) + 1
        if catalog is not None and _folded(catalog) != database:
            raise Refusal(
                f'cross-database references are not implemented: "{text[position - 1 : kept.meta["end"] + 1]}"',
                state="0A000",
                position=position,
            )
        if _folded(schema) in ("pg_catalog", "information_schema"):
            raise Refusal(
                "A question about tables cannot name relations of the catalog.",
                state="0A000",
                hint="Ask them one by one.",
                position=position,
            )
        if _folded(schema) != _SCHEMA:
            raise Refusal(
                f'schema "{schema.name}" does not exist',
                state="3F000",
                hint=f"All tables are in the schema {_SCHEMA}.",
                position=position,
            )
        yield Edit(position - 1, kept.meta["start"])


def _dates(query: exp.Expression, statement: Statement) -> Iterator[Edit]:
    """TO_DATE('2024-01-31', 'YYYY-MM-DD') is a date, and so for a time: tools write constants like this."""
    starts = [one.start for one in statement.tokens]
    for node in query.find_all(exp.StrToDate, exp.StrToTime):
        said, form = node.this, node.args.get("format")
        known = ("%Y-%m-%d",) if isinstance(node, exp.StrToDate) else ("%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%d %H:%M:%S")
        if not (said.is_string and form is not None and form.name in known and "start" in node.meta):
            continue
        first = bisect_right(starts, node.meta["end"])
        inside = (statement.tokens[n] for n in range(first, len(starts)))
        close = next((one.end for n, (one, depth) in enumerate(depths(inside)) if n and depth == 0), None)
        if close is not None and "start" in said.meta:
            kind = "DATE" if isinstance(node, exp.StrToDate) else "TIMESTAMP"
            written = statement.text[said.meta["start"] : said.meta["end"] + 1]
            yield Edit(node.meta["start"], close + 1, f"{kind} {written}")


def _numerics(tokens: Sequence[Any]) -> Iterator[Any]:
    """NUMERIC and DECIMAL in casts. With a number of digits they round, which the vault says how to write."""
    words, callers = ["", *map(unquoted, tokens), ""], [""]
    for number, token in enumerate(tokens, 1):
        kind, before = kind_of(token), words[number - 1]
        if kind == "L_PAREN":
            callers.append(before)
        elif kind == "R_PAREN" and callers[1:]:
            callers.pop()
        is_type = before == "::" or (before == "AS" and callers[-1] in ("CAST", "TRY_CAST"))
        if kind == "DECIMAL" and is_type and words[number + 1] != "(":
            yield token


def column_name(item: exp.Expression, text: str) -> str:
    """What PostgreSQL calls a column of a select list."""
    if isinstance(item, exp.Alias):
        return _folded(item.args["alias"])
    if isinstance(item, exp.Column):
        return _folded(item.this)
    if isinstance(item, exp.Paren | exp.Window | exp.Filter | exp.WithinGroup | exp.Distinct):
        return column_name(item.this, text)
    if isinstance(item, exp.Cast):
        inner = column_name(item.this, text)
        kind = item.to.this
        named = str(getattr(kind, "name", kind))
        return inner if inner != "?column?" else _TYPES.get(named, named.lower())
    if isinstance(item, exp.Case):
        other = item.args.get("default")
        return str(other.name) if isinstance(other, exp.Column) else "case"
    if isinstance(item, exp.Subquery) and isinstance(item.this, exp.Select) and item.this.expressions:
        first = item.this.expressions[0]
        return column_name(first, text)
    if isinstance(item, exp.Func) and "start" in item.meta:
        return text[item.meta["start"] : item.meta["end"] + 1].strip('"').lower()
    return next((name for kind, name in _NAMED.items() if isinstance(item, kind)), "?column?")


# --- the select list ----------------------------------------------------------------------------------------


def _items(query: exp.Expression, statement: Statement) -> tuple[list[Item], list[Edit]]:
    """The items of the outermost select list, and what is taken out of the question."""
    select: Any = query
    while isinstance(select, exp.SetOperation | exp.Subquery):
        select = select.this
    if not isinstance(select, exp.Select):
        return [], []
    items = [_item(one, statement.text) for one in select.expressions]
    removed = [number for number, one in enumerate(items) if one.of in ERRORS]
    if not removed:
        return items, []
    if select is not query:
        raise _only_simple("error(n), low(n) and high(n) are for one SELECT, without UNION or parentheses.")
    if len(removed) > _MOST_ERRORS:
        raise _only_simple(f"A SELECT has at most {_MOST_ERRORS} of error(n), low(n) and high(n).")
    if len(removed) == len(items) or any(one.of == "star" for one in items):
        raise _only_simple("error(n), low(n) and high(n) need their columns by name in the same SELECT.")
    return items, _removals(select, items, statement)


def _item(one: exp.Expression, text: str) -> Item:
    bare = one.this if isinstance(one, exp.Alias) else one
    if isinstance(bare, exp.Star) or (isinstance(bare, exp.Column) and isinstance(bare.this, exp.Star)):
        return Item("star", None)
    name = column_name(one, text)
    if isinstance(bare, exp.Anonymous) and bare.name.lower() in ERRORS and len(bare.expressions) == 1:
        return Item(bare.name.lower(), name, bare.expressions[0], bare)
    return Item("value", name, None, bare)


def _removals(select: exp.Select, items: Sequence[Item], statement: Statement) -> list[Edit]:
    """What takes the items for errors out of the text, each with a comma, and moves the numbers of columns."""
    commas = _commas(statement.tokens, len(items))
    edits, kept_before = [], False
    for number, one in enumerate(items):
        if one.of not in ERRORS:
            kept_before = True
            continue
        assert one.tree is not None
        after = [token for token in statement.tokens if token.start >= one.tree.meta["start"]]
        last = next(token for n, (token, depth) in enumerate(depths(after)) if n > 1 and depth == 0)
        alias = select.expressions[number].args.get("alias")
        end = last.end if alias is None else alias.meta["end"]
        if kept_before:
            edits.append(Edit(commas[number - 1].start, end + 1))
        else:
            edits.append(Edit(one.tree.meta["start"], commas[number].end + 1))
    shown = {one.name for one in items if one.of in ERRORS}
    moved = list(accumulate(int(one.of not in ERRORS) for one in items))
    group, order = select.args.get("group"), select.args.get("order")
    ordered = [] if order is None else [one.this for one in order.expressions]
    for node in [*([] if group is None else group.expressions), *ordered]:
        if isinstance(node, exp.Literal) and not node.is_string and node.name.isdecimal() and "start" in node.meta:
            place = int(node.name)
            if 1 <= place <= len(items):
                if items[place - 1].of in ERRORS:
                    raise _only_simple("Rows cannot be ordered or grouped by an error.")
                edits.append(Edit(node.meta["start"], node.meta["end"] + 1, str(moved[place - 1])))
        elif isinstance(node, exp.Column) and not node.table and _folded(node.this) in shown:
            raise _only_simple("Rows cannot be ordered or grouped by an error.")
    return edits


def _commas(tokens: Sequence[Any], items: int) -> list[Any]:
    """The commas of the outermost select list."""
    found, begun = [], False
    for token, depth in depths(tokens):
        if depth == 0 and kind_of(token) == "SELECT":
            begun = True
        elif begun and depth == 0 and kind_of(token) == "COMMA":
            found.append(token)
    return found[: items - 1]


def _only_simple(message: str) -> Refusal:
    return Refusal(
        message,
        state="0A000",
        hint="Write SELECT city, COUNT(*) AS n, error(n) AS e FROM visits GROUP BY city, and sort the rows yourself.",
    )
