"""From text to a syntax tree: exactly one query."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, NoReturn, TypeVar

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from discreet.errors import NotAllowed, QueryError

LONGEST = 200_000
sqlglot_logger = logging.getLogger("sqlglot")
_OTHER_NAMES: dict[str, type[exp.AggFunc]] = {
    "mean": exp.Avg,
    "favg": exp.Avg,
    "fsum": exp.Sum,
    "sumkahan": exp.Sum,
    "kahan_sum": exp.Sum,
}
"""Names that the engine has for aggregates, and sqlglot has not."""
MOST_OPEN_JOINS = 8
"""The parser tries each join without a condition in two ways: thirty of them would take it days."""
MOST_STEPS = 200_000
"""Tokens that the parser may read, again and again."""
_BESIDE = 100
"""So many characters before and after what is underlined are shown."""
_SPOKEN: dict[type[exp.Expression], str] = {
    exp.Distinct: "SELECT DISTINCT",
    exp.Group: "GROUP BY ALL",
    exp.Tuple: "GROUP BY ()",
    exp.Placeholder: "?",
}
"""How parts of a question are written that sqlglot gives no place, where it is not by their name."""


Refused = TypeVar("Refused", NotAllowed, QueryError)


class Text:
    """A question as it was written, used to point at its parts."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def tokens(self) -> list[Any]:
        """The tokens of the question, without comments."""
        return sqlglot.tokenize(self.text, read="duckdb")

    def refuse(self, node: Any, what: str, instead: str, *, code: str) -> NoReturn:
        """An error for a question that is valid SQL but cannot be answered privately."""
        raise self.placed(NotAllowed(f"{what} {instead}{self.pointed(node)}", code=code), node)

    def unknown(self, node: Any, what: str, *, code: str) -> NoReturn:
        """An error for a question that cannot be read."""
        raise self.placed(QueryError(f"{what}{self.pointed(node)}", code=code), node)

    def placed(self, error: Refused, node: Any) -> Refused:
        """An error that knows where in the question the part is that it is about."""
        place = self.place(node) if isinstance(node, exp.Expression) else None
        return error if place is None else self.at(error, place[0])

    def at(self, error: Refused, start: int) -> Refused:
        """An error that knows at which character of the question it points."""
        error.place = (self.text, start)
        return error

    def pointed(self, node: Any) -> str:
        """The line that contains a part of the question, with the part underlined. Empty if its position is not
        known.
        """
        place = None if node is None else self.place(node)
        return "" if place is None else self.underlined(*place)

    def place(self, node: exp.Expression) -> tuple[int, int] | None:
        """The first and last character of a part of the question, including its name and parentheses."""
        span = span_of(node)
        written = self._written(node) if span is None or isinstance(node, exp.Distinct) else None
        if span is None:
            return written
        start, end = span if written is None else (min(span[0], written[0]), span[1])
        before = [token for token in self.tokens if token.end < start]
        if isinstance(node, exp.Query | exp.Exists):
            start = max((token.start for token in before if token.token_type.name == "SELECT"), default=start)
        nameless = (
            bool(before) and before[-1].text == "(" and isinstance(node, exp.AggFunc) and "start" not in node.meta
        )
        while before and before[-1].token_type.name == "L_PAREN":
            before.pop()
        if before and (nameless or _plain(before[-1].text) == node.key):
            start = before[-1].start
        still_open = 0
        for token in self.tokens:
            if start <= token.start and (token.end <= end or still_open > 0):
                still_open += {"L_PAREN": 1, "R_PAREN": -1}.get(token.token_type.name, 0)
                end = max(end, token.end)
        return start, end

    def numbered(self, node: exp.Expression, clause: str, columns: int) -> int | None:
        """The index, from 0, of the column that a number in GROUP BY or ORDER BY names. None if it is not a number."""
        if not isinstance(node, exp.Literal) or node.is_string:
            return None
        number = int(node.this) if node.this.isdecimal() and len(node.this) < 10 else 0
        if not 1 <= number <= columns:
            what = f"{clause} {node.this} is not the number of a column in SELECT. Write a number from 1 to {columns}."
            self.unknown(node, what, code="sql-position")
        return number - 1

    def name(self, node: exp.Expression) -> str:
        """The name of a function or an operator as it is typed: strftime, and not the parser's name for it."""
        if isinstance(node, exp.Func) and "start" in node.meta:
            return self.text[node.meta["start"] : node.meta["end"] + 1]
        if operator := self._operator(node):
            return operator
        start, _ = self.place(node) or (len(self.text), 0)
        first = [token.text for token in self.tokens if token.start >= start][:2]
        if first and (first[1:] == ["("] or _plain(first[0]) == node.key):
            return str(first[0])
        return (isinstance(node, exp.Func) and self._caller(start)) or node.key.upper()

    def _caller(self, start: int) -> str:
        """The name before the parenthesis that encloses a position. Empty if there is none."""
        before, closed = [token for token in self.tokens if token.start < start], 0
        for name, token in zip(before[-2::-1], before[::-1], strict=False):
            closed += {"R_PAREN": 1, "L_PAREN": -1}.get(token.token_type.name, 0)
            if closed < 0:
                return str(name.text) if name.token_type.name == "VAR" else ""
        return ""

    def _operator(self, node: exp.Expression) -> str:
        """What is typed between the two sides of an operator. Empty if it is none."""
        sides = [node.args.get("this"), node.args.get("expression")]
        spans = [self.place(side) if isinstance(side, exp.Expression) else None for side in sides]
        if not isinstance(node, exp.Binary) or spans[0] is None or spans[1] is None:
            return ""
        between = (t for t in self.tokens if spans[0][1] < t.start and t.end < spans[1][0] and t.text not in "()")
        return " ".join(token.text for token in between)

    def _written(self, node: exp.Expression) -> tuple[int, int] | None:
        """The position of a part that has none of its own, found by its tokens."""
        for sql in (_SPOKEN.get(type(node), node.key), f"${node.name}", node.name):
            wanted = _plain(sql)
            for number, first in enumerate(self.tokens):
                found = ""
                for token in self.tokens[number : number + 4]:
                    found += _plain(token.text) if token.token_type.name != "STRING" else "'"
                    if found == wanted:
                        return first.start, token.end
        return None

    def underlined(self, start: int, end: int) -> str:
        """The line at a position in the question, and a second line that underlines it."""
        begin = self.text.rfind("\n", 0, start) + 1
        stop = self.text.find("\n", start)
        stop = stop if stop >= 0 else len(self.text)
        begin, stop = max(begin, start - _BESIDE), min(stop, max(end, start) + 1 + _BESIDE)
        line = self.text[begin:stop].replace("\t", " ")
        width = max(1, min(end - start + 1, len(line) - (start - begin)))
        return f"\n  {line}\n  {' ' * (start - begin)}{'^' * width}"


def span_of(node: exp.Expression) -> tuple[int, int] | None:
    """The first and last character of those parts of a node that have a position in sqlglot."""
    places = [part.meta for part in node.walk() if "start" in part.meta]
    return (min(p["start"] for p in places), max(p["end"] for p in places)) if places else None


def unread_arguments(node: exp.Expression, *read: str) -> list[str]:
    """The arguments of a node that are not read."""
    return [name for name, value in node.args.items() if value and name not in read]


def without_alias(item: exp.Expression) -> exp.Expression:
    """An item of a SELECT list without its AS."""
    return item.this if isinstance(item, exp.Alias) else item


def grouped_items(query: exp.Select) -> list[exp.Expression]:
    """What GROUP BY lists. ALL stands for the numbers of all columns without aggregates and windows."""
    group = query.args.get("group")
    if group is None or not group.args.get("all") or group.expressions:
        return [] if group is None else list(group.expressions)
    plain = [n for n, item in enumerate(query.expressions, 1) if not item.find(exp.AggFunc, exp.Window)]
    return [exp.Literal.number(number) for number in plain]


def ordered_items(query: exp.Select) -> list[exp.Ordered]:
    """What ORDER BY lists. ALL stands for the numbers of all columns."""
    order = query.args.get("order")
    items = [] if order is None else list(order.expressions)
    if len(items) != 1 or not isinstance(items[0].this, exp.Var) or items[0].this.name.upper() != "ALL":
        return items
    how = {name: value for name, value in items[0].args.items() if name != "this"}
    return [exp.Ordered(this=exp.Literal.number(n), **how) for n in range(1, len(query.expressions) + 1)]


def _plain(sql: str) -> str:
    """Text without case and spaces: GROUPING SETS becomes groupingsets."""
    return sql.lower().replace(" ", "").replace("_", "")


@dataclass(frozen=True)
class Conditioned:
    """A query that we wrote, and a condition from the user. The condition is parsed by itself, and its tree is
    inserted. `own` is another condition that we wrote: both must hold.
    """

    before: str
    condition: str
    after: str = ""
    own: str = ""

    @property
    def text(self) -> str:
        """Both together, in readable form."""
        ended = "\n" if (self.after or self.own) and "--" in self.condition else ""  # a comment ends with its line
        return f"{self.start}{self.condition}{ended}{')' if self.own else ''}{self.after}"

    @property
    def start(self) -> str:
        """What comes before the user's condition."""
        return f"{self.before} WHERE {f'{self.own} AND (' if self.own else ''}"


_LONGEST_REMEMBERED = 10_000
"""Queries of so many characters are parsed once for all that read them."""
_NO_SQL = "This does not parse as SQL: "
_BEGINS = ("SELECT", "WITH", "FROM", "VALUES", "(")


class Parsed(NamedTuple):
    """A text and its syntax tree. The tree is never changed, so it can be read again under other declarations."""

    sql: Text
    query: exp.Query


def parse_query(source: Any) -> Parsed:
    """The single query of a text."""
    if isinstance(source, Parsed):
        return source
    if not isinstance(source, Conditioned):
        short = isinstance(source, str) and len(source) <= _LONGEST_REMEMBERED
        return _remembered(source) if short else _query(source)
    condition = _condition(source.condition)
    sql, query = Text(source.text), _query(source.before + source.after)[1]
    moved = len(source.start)
    for node in condition.walk():
        if "start" in node.meta:
            node.meta.update(start=node.meta["start"] + moved, end=node.meta["end"] + moved)
    if source.own:
        condition = exp.And(this=_condition(source.own), expression=exp.Paren(this=condition))
    query.set("where", exp.Where(this=condition))
    return Parsed(sql, query)


def _condition(text: Any) -> exp.Condition:
    """The single condition of a text: all of it, and nothing that would belong to the query around it."""
    said = "where must be one condition and nothing else, such as city = 'Acre' AND age >= 18"
    code = "sql-where-argument"
    sql = _check_text(text) if isinstance(text, str) else Text("")
    dialect = sqlglot.Dialect.get_or_raise("duckdb")
    found = _parse_tree(
        sql, f"{said}. This does not parse: ", lambda: dialect.parser().parse_into(exp.Condition, sql.tokens)
    )
    if not found:
        raise QueryError(f"{said}. To ask about all rows, leave it out.", code=code)
    if len(found) != 1 or not isinstance(found[0], exp.Condition) or any(token.text == ";" for token in sql.tokens):
        start = sql.tokens[0].start
        raise sql.at(QueryError(f"{said}.{sql.underlined(start, sql.tokens[-1].end)}", code=code), start)
    return found[0]


def _check_text(text: str) -> Text:
    """A text, checked not to be too long and to be encodable."""
    if len(text) > LONGEST:
        raise QueryError(f"The query has more than {LONGEST:,} characters. Write a shorter one.", code="sql-too-long")
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise QueryError("The query contains text that is not valid Unicode. Write it again.", code="sql-syntax")
    return Text(text)


def _parse_tree(sql: Text, said: str, parse: Callable[[], Any]) -> Any:
    """The syntax tree of a text. Errors of the parser become errors of ours."""
    sqlglot_logger.disabled = True  # it would log the question
    start = None
    try:
        error = too_slow(sql.tokens)
        found = [] if error else [statement for statement in parse() if statement is not None]
        code = "sql-too-complex"
    except (SqlglotError, RecursionError) as problem:
        first, start = _first_error(problem, sql)
        error = said + first
        if isinstance(problem, ParseError) and (instead := _top(sql) or _first_word(sql, said)) is not None:
            error, start = instead
        code = "sql-too-complex" if isinstance(problem, RecursionError) else "sql-syntax"
    finally:
        sqlglot_logger.disabled = False
    if error:
        refused = QueryError(error, code=code)
        raise refused if start is None else sql.at(refused, start)
    return found


@lru_cache(maxsize=32)
def _remembered(text: str) -> Parsed:
    """The query of a text that is read several times, for one plan."""
    return _query(text)


def _query(text: Any) -> Parsed:
    if not isinstance(text, str) or not text.strip():
        raise QueryError("A query must be text in SQL, such as SELECT COUNT(*) FROM visits.", code="sql-not-a-query")
    sql = _check_text(text)
    dialect = sqlglot.Dialect.get_or_raise("duckdb")
    statements = _parse_tree(sql, _NO_SQL, lambda: dialect.parser().parse(sql.tokens, text))
    if not statements:
        raise QueryError("This text contains no query. Write SELECT COUNT(*) FROM visits.", code="sql-not-a-query")
    if len(statements) > 1:
        start, end = _second(sql)
        said = (
            f"Only one query at a time is supported, and these are {len(statements)} statements. Ask them one by one."
        )
        raise sql.at(QueryError(said + sql.underlined(start, end), code="sql-one-at-a-time"), start)
    [statement] = statements
    if isinstance(statement, exp.Select | exp.SetOperation):
        return Parsed(sql, _renamed(statement))
    if isinstance(statement, exp.Subquery):
        sql.refuse(
            statement, "A query in parentheses is not supported.", "Remove the parentheses.", code="sql-parentheses"
        )
    if isinstance(statement, exp.Alias | exp.Column | exp.Condition):
        sql.unknown(statement, "This is not a query. Begin with SELECT or WITH.", code="sql-not-a-query")
    what = f"{sql.tokens[0].text.upper()} is not supported. Only SELECT is."
    start = sql.tokens[0].start
    raise sql.at(NotAllowed(what + sql.underlined(start, sql.tokens[-1].end), code="sql-not-select"), start)


def open_joins(tokens: Iterable[Any]) -> int:
    """Joins without an ON or USING of their own."""
    found, depth = 0, 0
    waiting: dict[int, int] = {}
    for token in tokens:
        match token.token_type.name:
            case "L_PAREN":
                depth += 1
            case "R_PAREN":
                found += waiting.pop(depth, 0)
                depth -= 1
            case "ON" | "USING":
                waiting[depth] = 0
            case "JOIN" | "STRAIGHT_JOIN":
                found += waiting.get(depth, 0)
                waiting[depth] = 1
    return found + sum(waiting.values())


def too_slow(tokens: Sequence[Any]) -> str:
    """Why the parser would take too long. Empty if it would not."""
    if open_joins(tokens) > MOST_OPEN_JOINS:
        return "Too many joins have neither ON nor USING. Write the columns to join on, with USING (…)."
    return "The query is nested too deeply. Simplify it." if _steps(tokens) > MOST_STEPS else ""


def _steps(tokens: Sequence[Any]) -> int:
    """How many tokens the parser may read: what is in DATE(…) and the like is read as a type first and then again, so
    that each of them inside another one doubles the time.
    """
    steps, before = 0, None
    depths = [0]
    for token in tokens:
        kind = token.token_type
        if kind.name in ("L_PAREN", "L_BRACKET", "L_BRACE"):
            depths.append(depths[-1] + (before in sqlglot.Parser.TYPE_TOKENS))
        elif kind.name in ("R_PAREN", "R_BRACKET", "R_BRACE") and len(depths) > 1:
            depths.pop()
        steps += 3 ** min(depths[-1], 20)
        before = kind
    return steps


def _renamed(statement: exp.Query) -> exp.Query:
    for node in list(statement.find_all(exp.Anonymous)):
        known = _OTHER_NAMES.get(node.name.lower())
        if known is not None and len(node.expressions) == 1:
            same = known(this=node.expressions[0])
            same.meta.update(node.meta)
            node.replace(same)
    return statement


def _second(sql: Text) -> tuple[int, int]:
    """The first and last character of the second of several statements."""
    end = next((number for number, token in enumerate(sql.tokens) if token.text == ";"), len(sql.tokens))
    rest = sql.tokens[end + 1 :]
    return (rest[0].start, rest[-1].end) if rest else (0, 0)


def _top(sql: Text) -> tuple[str, int] | None:
    """What to write instead of SELECT TOP 5, and at which character that stands. None if it does not."""
    for before, word, number in zip(sql.tokens, sql.tokens[1:], sql.tokens[2:], strict=False):
        first = before.token_type.name in ("SELECT", "DISTINCT") and word.text.upper() == "TOP"
        if first and number.token_type.name == "NUMBER":
            said = f"TOP is not supported. Write LIMIT {number.text} at the end."
            return said + sql.underlined(word.start, number.end), word.start
    return None


def _first_word(sql: Text, said: str) -> tuple[str, int] | None:
    """Which words a question begins with, and at which character another one stands. None if it begins so."""
    first = sql.tokens[0] if said == _NO_SQL and sql.tokens else None
    if first is None or first.text.upper() in _BEGINS:
        return None
    return f"{said}a question begins with SELECT or WITH.{sql.underlined(first.start, first.end)}", first.start


def _first_error(error: Exception, sql: Text) -> tuple[str, int | None]:
    """What the parser says, and at which character. None if it does not say where."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply.", None
    first = (getattr(error, "errors", None) or [{}])[0]
    said, line, column = first.get("description") or "", first.get("line"), first.get("col")
    said = "unexpected text" if not said or "<" in said else said
    if not line:
        return f"{said.rstrip('.')}.", None
    end = sum(map(len, sql.text.split("\n")[: line - 1])) + line - 1 + column - 1
    start = end - max(0, len(first.get("highlight") or "") - 1)
    return f"{said.rstrip('.')} at line {line}, column {column}.{sql.underlined(start, end)}", start
