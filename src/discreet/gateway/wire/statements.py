"""Telling statements apart, by their tokens and their syntax tree: what is inside a literal never counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from discreet.gateway.wire.texts import Words, comments_in, depths, is_quoted, kind_of, syntax_error, tokens_of, unquoted
from discreet.gateway.wire.values import Copy, Refusal
from discreet.sql.reading.parse import MOST_OPEN_JOINS, open_joins, sqlglot_logger

_QUERIES = ("SELECT", "WITH", "VALUES", "TABLE", "FROM", "(")
_WRITES = (
    *("INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE", "CREATE", "ALTER", "DROP", "GRANT", "REVOKE", "COMMENT"),
    *("VACUUM", "ANALYZE", "REINDEX", "CLUSTER", "REFRESH", "IMPORT", "SECURITY", "REASSIGN", "LOCK"),
)
_OTHERS = ("LISTEN", "NOTIFY", "DO", "CALL", "CHECKPOINT", "LOAD", "SUMMARIZE", "DESCRIBE", "PRAGMA", "ATTACH", "INSTALL")
_MOST_STATEMENTS = 1000
_LONGEST_REMEMBERED = 20_000


@dataclass(frozen=True, eq=False)
class Statement:
    """One statement of a text: `what` it does, where it is, and what was read of it.

    `query` is the tree of a question or a catalog statement, and `first` the character where it begins. `inner` is
    what EXPLAIN, COPY, DECLARE and PREPARE are about, and `given` what else they were told.
    """

    what: str
    text: str = ""
    start: int = 0
    end: int = 0
    tokens: tuple[Any, ...] = ()
    comments: tuple[str, ...] = ()
    query: exp.Expression | None = None
    of_catalog: bool = False
    before: str = ""
    inner: Statement | None = None
    name: str = ""
    given: Any = None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing but comments."""
        return self.what == "empty"

    @property
    def parameters(self) -> list[tuple[int, int, int]]:
        """The parameters such as $1: the number of each, and its first and last character."""
        found = []
        for mark, number in zip(self.tokens, self.tokens[1:], strict=False):
            if kind_of(mark) == "PARAMETER" and kind_of(number) == "NUMBER" and number.start == mark.end + 1:
                found.append((int(number.text) if number.text.isdecimal() else 0, mark.start, number.end))
        return found


@dataclass(frozen=True)
class Move:
    """How far a cursor moves: `how` is forward, backward, absolute or relative; a `count` of None is ALL."""

    how: str = "forward"
    count: int | None = 1


def read_statements(text: str, is_catalog: Callable[[exp.Expression], bool]) -> list[Statement]:
    """The statements of a text. Which questions are for the catalog is decided by their trees."""
    found = _remembered(text) if len(text) <= _LONGEST_REMEMBERED else _read(text)
    return [_decided(one, is_catalog) for one in found]


def _decided(one: Statement, is_catalog: Callable[[exp.Expression], bool]) -> Statement:
    if one.inner is not None:
        return replace(one, inner=_decided(one.inner, is_catalog))
    return replace(one, of_catalog=one.query is not None and is_catalog(one.query))


@lru_cache(maxsize=512)
def _remembered(text: str) -> tuple[Statement, ...]:
    return _read(text)


def _read(text: str) -> tuple[Statement, ...]:
    tokens, found, first, start = tokens_of(text), [], 0, 0
    ends = [number for number, token in enumerate(tokens) if kind_of(token) == "SEMICOLON" and token.text == ";"]
    for end in (*ends, len(tokens)):
        stop = tokens[end].start if end < len(tokens) else len(text)
        part = tuple(tokens[first:end])
        if part or not found and end == len(tokens):
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
    if open_joins(tokens) > MOST_OPEN_JOINS:
        raise Refusal(
            "Too many joins have neither ON nor USING.",
            state="54001",
            hint="Write the columns to join on, with USING (…).",
        )
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
    sqlglot_logger.disabled = True  # it would log the question
    try:
        problem: Exception | None = None
        for dialect in ("postgres", "duckdb"):
            try:
                found = sqlglot.Dialect.get_or_raise(dialect).parser().parse(list(tokens), text)
            except SqlglotError as error:
                problem = problem or error
                continue
            if len(found) == 1 and found[0] is not None:
                return found[0]
        raise syntax_error(text, _culprit(problem, tokens))
    except RecursionError:
        raise Refusal("The statement is nested too deeply. Simplify it.", state="54001") from None
    finally:
        sqlglot_logger.disabled = False


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
    if words.next == "(" and words.place + 1 < len(words.tokens) and unquoted(words.tokens[1 + words.place]) not in (
        *_QUERIES,
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
        close = next((n for n, (token, depth) in enumerate(depths(tokens)) if n and depth == 0 and token.text == ")"), 0)
        if not close:
            raise syntax_error(one.text, None)
        inside = tuple(tokens[1:close])
        if not inside:
            raise syntax_error(one.text, tokens[close])
        words.place += close + 1
        inner = replace(
            _statement(one.text, inside, inside[0].start, tokens[close].start), comments=one.comments
        )
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
            while words.take("*", ",") or not words.at_end and words.next not in ("HEADER", "DELIMITER", "NULL"):
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


def _fetch(what: str) -> Callable[[Statement, Words], Statement]:
    def read(one: Statement, words: Words) -> Statement:
        move = Move()
        if word := words.take("NEXT", "PRIOR", "FIRST", "LAST"):
            move = {
                "NEXT": Move(),
                "PRIOR": Move("backward", 1),
                "FIRST": Move("absolute", 1),
                "LAST": Move("absolute", -1),
            }[word]
        elif word := words.take("ABSOLUTE", "RELATIVE"):
            move = Move(word.lower(), _whole(words))
        elif word := words.take("FORWARD", "BACKWARD"):
            many = 1 if words.next in ("FROM", "IN") or len(words.left) == 1 and words.next != "ALL" else _many(words)
            move = Move(word.lower(), many)
        elif words.next == "ALL" and len(words.left) > 1 or words.next == "-" or _is_number(words):
            move = Move("forward", _many(words))
        if move.how in ("forward", "backward") and move.count is not None and move.count < 0:
            move = Move("backward" if move.how == "forward" else "forward", -move.count)
        words.take("FROM", "IN")
        return replace(one, what=what, name=words.name(), given=move)

    return read


def _is_number(words: Words) -> bool:
    return not words.at_end and kind_of(words.tokens[words.place]) == "NUMBER"


def _many(words: Words) -> int | None:
    return None if words.take("ALL") else _whole(words)


def _whole(words: Words) -> int:
    sign = -1 if words.take("-") else 1
    if not _is_number(words) or not words.next.isdecimal() or len(words.next) > 18:
        words.fail()
    return sign * int(words.token().text)


def _close(one: Statement, words: Words) -> Statement:
    quoted = not words.at_end and is_quoted(words.tokens[words.place])
    name = words.name()
    return replace(one, what="close", name="" if name == "all" and not quoted else name)


# --- transactions -------------------------------------------------------------------------------------------


def _transaction(what: str) -> Callable[[Statement, Words], Statement]:
    def read(one: Statement, words: Words) -> Statement:
        if what == "begin":
            words.take("TRANSACTION", "WORK")
            words.place = len(words.tokens)  # an isolation level changes nothing
            return replace(one, what="begin")
        if words.take("PREPARED"):
            return replace(one, what="other", name="PREPARED TRANSACTION")
        words.take("TRANSACTION", "WORK")
        if what == "rollback" and words.take("TO"):
            words.take("SAVEPOINT")
            return replace(one, what="rollback to", name=words.name())
        if words.take("AND"):
            no = words.take("NO")
            words.need("CHAIN")
            return replace(one, what=what, given={"chain": not no})
        return replace(one, what=what)

    return read


def _start(one: Statement, words: Words) -> Statement:
    words.need("TRANSACTION")
    return _transaction("begin")(one, words)


def _savepoint(one: Statement, words: Words) -> Statement:
    return replace(one, what="savepoint", name=words.name())


def _release(one: Statement, words: Words) -> Statement:
    words.take("SAVEPOINT")
    return replace(one, what="release", name=words.name())


# --- settings -----------------------------------------------------------------------------------------------


def _setting_name(words: Words) -> str:
    name = words.name()
    while words.take("."):
        name += f".{words.name()}"
    return name


def _set(one: Statement, words: Words) -> Statement:
    scope = words.take("SESSION", "LOCAL")
    if scope == "SESSION" and words.take("CHARACTERISTICS"):
        words.need("AS")
        words.need("TRANSACTION")
        return _characteristics(one, words, "SESSION")
    if words.take("TRANSACTION"):
        return _characteristics(one, words, "LOCAL")
    if words.next in ("ROLE", "AUTHORIZATION"):
        return replace(one, what="other", name=f"SET {words.next}")
    local = scope == "LOCAL"
    if words.take("TIME"):
        words.need("ZONE")
        value = None if words.take("DEFAULT", "LOCAL") else _value(words)
        return replace(one, what="set", name="timezone", given={"value": value, "local": local})
    if words.take("NAMES"):
        value = None if words.at_end or words.take("DEFAULT") else words.string()
        return replace(one, what="set", name="client_encoding", given={"value": value, "local": local})
    name = _setting_name(words)
    words.need("TO", "=")
    value = None if len(words.left) == 1 and words.take("DEFAULT") else _values(words)
    return replace(one, what="set", name=name, given={"value": value, "local": local})


def _characteristics(one: Statement, words: Words, scope: str) -> Statement:
    """The level of isolation and the like. Nothing can be written, and nothing changes while it is read."""
    words.place = len(words.tokens)
    return replace(one, what="set", name="", given={"value": None, "local": scope == "LOCAL"})


def _values(words: Words) -> str:
    found = [_value(words)]
    while words.take(","):
        found.append(_value(words))
    return ", ".join(found)


def _value(words: Words) -> str:
    sign = words.take("-", "+")
    if words.at_end or words.next in (",", "(", ")", "="):
        words.fail()
    if words.take("."):  # .5 is a dot and a number
        return f"{sign.strip('+')}0.{words.token().text}"
    token = words.token()
    if kind_of(token) == "VAR" and words.next == "/":
        words.fail()
    return f"{sign.strip('+')}{token.text}"


def _show(one: Statement, words: Words) -> Statement:
    if len(words.left) == 1 and words.take("ALL"):
        return replace(one, what="show", name="")
    if words.take("TIME"):
        words.need("ZONE")
        return replace(one, what="show", name="timezone")
    if words.take("TRANSACTION"):
        words.need("ISOLATION")
        words.need("LEVEL")
        return replace(one, what="show", name="transaction_isolation")
    if words.take("SESSION"):
        words.need("AUTHORIZATION")
        return replace(one, what="show", name="session_authorization")
    return replace(one, what="show", name=_setting_name(words))


def _reset(one: Statement, words: Words) -> Statement:
    if len(words.left) == 1 and words.take("ALL"):
        return replace(one, what="reset", name="")
    if words.take("ROLE") or words.next == "SESSION" and words.take("SESSION") and words.take("AUTHORIZATION"):
        return replace(one, what="set", name="", given={"value": None, "local": False})
    if words.take("TIME"):
        words.need("ZONE")
        return replace(one, what="reset", name="timezone")
    return replace(one, what="reset", name=_setting_name(words))


def _discard(one: Statement, words: Words) -> Statement:
    return replace(one, what="discard", name=words.need("ALL", "PLANS", "SEQUENCES", "TEMP", "TEMPORARY"))


# --- prepared statements ------------------------------------------------------------------------------------


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


def _execute(one: Statement, words: Words) -> Statement:
    name, values = words.name(), []
    if words.take("("):
        while True:
            values.append(_argument(words))
            if not words.take(","):
                break
        words.need(")")
    return replace(one, what="execute", name=name, given=values)


def _argument(words: Words) -> str | None:
    """A constant as text. None is NULL."""
    if words.take("NULL"):
        return None
    found = _value(words)
    if words.next not in (",", ")"):
        raise Refusal("EXECUTE takes constants only.", state="0A000", hint="Write EXECUTE p (1, 'Haifa').")
    return found


def _deallocate(one: Statement, words: Words) -> Statement:
    words.take("PREPARE")
    quoted = not words.at_end and is_quoted(words.tokens[words.place])
    name = words.name()
    return replace(one, what="deallocate", name="" if name == "all" and not quoted else name)


def _unlisten(one: Statement, words: Words) -> Statement:
    words.place = len(words.tokens)
    return replace(one, what="unlisten")


_READERS: dict[str, Callable[[Statement, Words], Statement]] = {
    "EXPLAIN": _explain,
    "COPY": _copy,
    "DECLARE": _declare,
    "FETCH": _fetch("fetch"),
    "MOVE": _fetch("move"),
    "CLOSE": _close,
    "BEGIN": _transaction("begin"),
    "START": _start,
    "COMMIT": _transaction("commit"),
    "END": _transaction("commit"),
    "ROLLBACK": _transaction("rollback"),
    "ABORT": _transaction("rollback"),
    "SAVEPOINT": _savepoint,
    "RELEASE": _release,
    "SET": _set,
    "SHOW": _show,
    "RESET": _reset,
    "DISCARD": _discard,
    "PREPARE": _prepare,
    "EXECUTE": _execute,
    "DEALLOCATE": _deallocate,
    "UNLISTEN": _unlisten,
}
