"""Telling statements apart, by their tokens and their syntax tree: what is inside a literal never counts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, cast

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from discreet.gateway.catalog.dialect import PostgresText
from discreet.gateway.wire.format.values import Copy, Refusal
from discreet.gateway.wire.text.commands import COMMANDS
from discreet.gateway.wire.text.statement import Statement
from discreet.gateway.wire.text.texts import (
    Words,
    comments_in,
    depths,
    kind_of,
    syntax_error,
    tokens_of,
    unquoted,
)
from discreet.sql.reading.parse import sqlglot_logger, too_slow

_QUERIES = ("SELECT", "WITH", "VALUES", "TABLE", "FROM", "(")
_WRITES = (
    *("INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE", "CREATE", "ALTER", "DROP", "GRANT", "REVOKE", "COMMENT"),
    *("VACUUM", "ANALYZE", "REINDEX", "CLUSTER", "REFRESH", "IMPORT", "SECURITY", "REASSIGN", "LOCK"),
)
_OTHERS = (
    "LISTEN",
    "NOTIFY",
    "DO",
    "CALL",
    "CHECKPOINT",
    "LOAD",
    "SUMMARIZE",
    "DESCRIBE",
    "PRAGMA",
    "ATTACH",
    "INSTALL",
)
_reading = threading.local()
sqlglot_logger.addFilter(lambda _: not getattr(_reading, "is_quiet", False))  # it would log the question
_MOST_STATEMENTS = 1000
_LONGEST_REMEMBERED = 2000
"""So many characters of a text whose tree is kept, at most: a tree takes hundreds of bytes for each."""


def read_statements(text: str, is_catalog: Callable[[exp.Expression], bool]) -> list[Statement]:
    """The statements of a text. Which questions are for the catalog is decided by their trees."""
    found = _remembered(text) if len(text) <= _LONGEST_REMEMBERED else _read(text)
    return [_decided(one, is_catalog) for one in found]


def _decided(one: Statement, is_catalog: Callable[[exp.Expression], bool]) -> Statement:
    if one.inner is not None:
        return replace(one, inner=_decided(one.inner, is_catalog))
    return replace(one, of_catalog=one.query is not None and is_catalog(one.query))


@lru_cache(maxsize=256)
def _remembered(text: str) -> tuple[Statement, ...]:
    return _read(text)


def _read(text: str) -> tuple[Statement, ...]:
    tokens, first, start = tokens_of(text), 0, 0
    found: list[Statement] = []
    ends = [number for number, token in enumerate(tokens) if kind_of(token) == "SEMICOLON" and token.text == ";"]
    for end in (*ends, len(tokens)):
        stop = tokens[end].start if end < len(tokens) else len(text)
        part = tuple(tokens[first:end])
        if part or (not found and end == len(tokens)):
            found.append(_statement(text, part, start, stop))
        first, start = end + 1, stop + 1
    if len(found) > _MOST_STATEMENTS:
        raise Refusal(f"A text may have at most {_MOST_STATEMENTS} statements. Send fewer.", state="54000")
    return tuple(found)


def _statement(text: str, tokens: tuple[Any, ...], start: int, end: int) -> Statement:
    if not tokens:
        return Statement("empty", text)
    words = Words(text, tokens)
    one = Statement("", text, start, end, tokens, comments_in(text, tokens, start, end))
    first = words.next
    if first in _QUERIES:
        return _query(one, tokens)
    if first in _WRITES:
        return replace(one, what="write", name=first)
    read = _READERS.get(words.take(first) if first else "")
    if read is None:
        if first in _OTHERS:
            return replace(one, what="other", name=first)
        raise syntax_error(text, tokens[0])
    found = read(one, words)
    if found.what not in ("write", "other"):
        words.end()
    return found


# --- questions ----------------------------------------------------------------------------------------------


def _query(one: Statement, tokens: Sequence[Any]) -> Statement:
    """A question, or a statement of the catalog."""
    if slow := too_slow(tokens):
        raise Refusal(slow, state="54001")
    query = _tree(one.text, tokens)
    written = query.find(exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Create, exp.Drop)
    if written is not None:
        return replace(one, what="write", name=written.key.upper())
    if query.find(exp.Into) is not None:
        return replace(one, what="write", name="SELECT INTO")
    if any(select.args.get("locks") for select in query.find_all(exp.Select)):
        return replace(one, what="write", name="SELECT FOR UPDATE")
    if not isinstance(query, exp.Query | exp.Values):
        raise syntax_error(one.text, tokens[0])
    return replace(one, what="query", tokens=tuple(tokens), query=query)


def _tree(text: str, tokens: Sequence[Any]) -> exp.Expression:
    """The tree of a query in the language of PostgreSQL, or else in that of DuckDB."""
    _reading.is_quiet = True
    try:
        problem: Exception | None = None
        for dialect in (PostgresText, "duckdb"):
            try:
                found = sqlglot.Dialect.get_or_raise(dialect).parser().parse(list(tokens), text)
            except SqlglotError as error:
                problem = problem or error
                continue
            if len(found) == 1 and found[0] is not None:
                return cast(exp.Expression, found[0])
        raise syntax_error(text, _culprit(problem, tokens))
    except RecursionError:
        raise Refusal("The statement is nested too deeply. Simplify it.", state="54001") from None
    finally:
        _reading.is_quiet = False


def _culprit(problem: Exception | None, tokens: Sequence[Any]) -> Any | None:
    """The token at which the parser stopped. None at the end."""
    said = (getattr(problem, "errors", None) or [{}])[0]
    place = (said.get("line"), said.get("col"))
    return next((token for token in tokens if (token.line, token.col) == place), tokens[0])


def is_question(statement: Statement) -> bool:
    """Whether a statement is a question to the vault."""
    return statement.what == "query" and not statement.of_catalog


# --- other statements ---------------------------------------------------------------------------------------


def _explain(one: Statement, words: Words) -> Statement:
    form, analyze = "text", False
    if (
        words.next == "("
        and words.place + 1 < len(words.tokens)
        and unquoted(words.tokens[1 + words.place]) not in (*_QUERIES,)
    ):
        for name, value in _options(words):
            if name == "analyze":
                analyze = _is_on(value)
            elif name == "format":
                form = value.lower()
    else:
        while word := words.take("ANALYZE", "ANALYSE", "VERBOSE"):
            analyze |= word != "VERBOSE"
    if form not in ("text", "json"):
        raise Refusal(f"EXPLAIN has no format {form} here.", state="0A000", hint="Write FORMAT TEXT or FORMAT JSON.")
    inner = _inner(one, words)
    return replace(one, what="explain", inner=inner, given={"form": form, "analyze": analyze})


def _inner(one: Statement, words: Words) -> Statement:
    """The statement that is left. Its comments are those of the whole statement."""
    if words.at_end:
        words.fail()
    tokens = tuple(words.left)
    words.place = len(words.tokens)
    found = _statement(one.text, tokens, tokens[0].start, one.end)
    return replace(found, comments=one.comments)


def _options(words: Words) -> list[tuple[str, str]]:
    """Options in parentheses: names, each with a value or with none."""
    words.need("(")
    found = []
    while True:
        name, value = words.name(), []
        while not words.at_end and words.next not in (",", ")"):
            if words.next == "(":  # a list of columns
                value.append(" ".join(item for item, _ in _options(words)))
            else:
                value.append(str(words.token().text))
        found.append((name, " ".join(value)))
        if not words.take(","):
            break
    words.need(")")
    return found


def _is_on(value: str) -> bool:
    return value.lower() not in ("off", "false", "0")


def _copy(one: Statement, words: Words) -> Statement:
    if words.next == "(":
        tokens = words.left
        close = next(
            (n for n, (token, depth) in enumerate(depths(tokens)) if n and depth == 0 and token.text == ")"), 0
        )
        if not close:
            raise syntax_error(one.text, None)
        inside = tuple(tokens[1:close])
        if not inside:
            raise syntax_error(one.text, tokens[close])
        words.place += close + 1
        inner = replace(_statement(one.text, inside, inside[0].start, tokens[close].start), comments=one.comments)
    else:
        inner = _copied_table(one, words)
    if words.take("FROM"):
        return replace(one, what="write", name="COPY FROM")
    words.need("TO")
    if words.take("STDOUT") == "" or inner.what == "write":
        return replace(one, what="write" if inner.what == "write" else "other", name=inner.name or "COPY TO a file")
    if inner.what != "query":
        raise syntax_error(one.text, inner.tokens[0] if inner.tokens else None)
    return replace(one, what="copy", inner=inner, given=_copy_form(one, words))


def _copied_table(one: Statement, words: Words) -> Statement:
    """The query for all rows of a table."""
    first = words.place
    words.name()
    while words.take("."):
        words.name()
    table, columns = words.tokens[first : words.place], ""
    if words.next == "(":
        begin = words.place
        _options(words)
        columns = one.text[words.tokens[begin].start + 1 : words.tokens[words.place - 1].start]
    written = one.text[table[0].start : table[-1].end + 1]
    before = f"SELECT {columns or '*'} FROM "
    tree = _tree(before + written, tokens_of(before + written))
    moved = table[0].start - len(before)
    for node in tree.walk():  # places of the columns are lost, those of the table are kept
        if "start" in node.meta:
            node.meta.update(start=node.meta["start"] + moved, end=node.meta["end"] + moved)
    given = {"start": table[0].start, "end": table[-1].end + 1, "before": before, "tokens": tuple(table)}
    return Statement("query", one.text, comments=one.comments, query=tree, **given)


def _copy_form(one: Statement, words: Words) -> Copy:
    words.take("WITH")
    given: dict[str, str] = {}
    if words.next == "(":
        given = dict(_options(words))
    while not words.at_end:  # as it was written before PostgreSQL 9
        word = words.need("BINARY", "CSV", "HEADER", "DELIMITER", "NULL", "QUOTE", "ESCAPE", "ENCODING", "FORCE")
        if word in ("BINARY", "CSV"):
            given["format"] = word.lower()
        elif word == "HEADER":
            given["header"] = ""
        elif word == "FORCE":
            words.need("QUOTE")
            while words.take("*", ",") or (not words.at_end and words.next not in ("HEADER", "DELIMITER", "NULL")):
                if words.at_end:
                    break
                words.name()
        else:
            words.take("AS")
            given[word.lower()] = words.string()
    return _copy_of(given)


def _copy_of(given: dict[str, str]) -> Copy:
    form = given.pop("format", "text").lower()
    if form not in ("text", "csv", "binary"):
        raise Refusal(f'COPY format "{form}" not recognized', state="22023", hint="Write text, csv or binary.")
    usual = Copy("csv", delimiter=",", null="") if form == "csv" else Copy(form)  # type: ignore[arg-type]
    known: dict[str, Any] = {"form": form, "header": "header" in given and _is_on(given.pop("header"))}
    for name in ("delimiter", "null", "quote", "escape"):
        if name in given:
            known[name] = given.pop(name)
    if known.get("quote") and "escape" not in known:
        known["escape"] = known["quote"]
    encoding = given.pop("encoding", "utf8").lower().replace("-", "")
    unknown = [name for name in given if name not in ("force_quote", "freeze", "oids")]
    long = [name for name in ("delimiter", "quote", "escape") if len(known.get(name, "x").encode()) != 1]
    if unknown or long or encoding not in ("utf8", "unicode"):
        wrong = (unknown or long or ["encoding"])[0]
        raise Refusal(
            f"COPY cannot be told this {wrong}.",
            state="22023",
            hint="Write FORMAT, HEADER, DELIMITER, NULL, QUOTE and ESCAPE with single characters, in UTF8.",
        )
    return usual._replace(**known)


def _declare(one: Statement, words: Words) -> Statement:
    name, hold, scroll = words.name(), False, True
    while word := words.take("BINARY", "INSENSITIVE", "ASENSITIVE", "NO", "SCROLL"):
        if word == "NO":
            words.need("SCROLL")
            scroll = False
    words.need("CURSOR")
    if word := words.take("WITH", "WITHOUT"):
        words.need("HOLD")
        hold = word == "WITH"
    words.need("FOR")
    inner = _inner(one, words)
    if inner.what != "query":
        raise syntax_error(one.text, inner.tokens[0])
    return replace(one, what="declare", inner=inner, name=name, given={"hold": hold, "scroll": scroll})


def _prepare(one: Statement, words: Words) -> Statement:
    if words.next == "TRANSACTION":
        return replace(one, what="other", name="PREPARE TRANSACTION")
    name, types = words.name(), []
    if words.next == "(":
        types = [" ".join(filter(None, said)) for said in _options(words)]
    words.need("AS")
    inner = _inner(one, words)
    if inner.what not in ("query", "write"):
        raise syntax_error(one.text, inner.tokens[0])
    return replace(one, what="prepare", name=name, inner=inner, given=types)


_READERS: dict[str, Callable[[Statement, Words], Statement]] = {
    **COMMANDS,
    "EXPLAIN": _explain,
    "COPY": _copy,
    "DECLARE": _declare,
    "PREPARE": _prepare,
}
