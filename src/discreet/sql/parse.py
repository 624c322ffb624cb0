"""From text to a syntax tree: one query, and nothing else."""

from __future__ import annotations

import logging
from typing import Any, NoReturn

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from discreet.errors import NotAllowed, QueryError

LONGEST = 100_000
sqlglot_logger = logging.getLogger("sqlglot")


class Text:
    """A question as it was written, to point at its parts."""

    def __init__(self, text: str) -> None:
        self.text = text

    def refuse(self, node: Any, what: str, instead: str) -> NoReturn:
        """It can be read, but not be answered privately."""
        raise NotAllowed(f"{what} {instead}{self.pointed(node)}")

    def unknown(self, node: Any, what: str) -> NoReturn:
        """It cannot be read."""
        raise QueryError(f"{what}{self.pointed(node)}")

    def pointed(self, node: Any) -> str:
        """The line that holds a part of the question, with the part underlined; empty where its place is not known."""
        places = [] if node is None else [part.meta for part in node.walk() if "start" in part.meta]
        if not places:
            return ""
        start, end = min(place["start"] for place in places), max(place["end"] for place in places)
        begin = self.text.rfind("\n", 0, start) + 1
        stop = self.text.find("\n", start)
        line = self.text[begin : stop if stop >= 0 else len(self.text)].replace("\t", " ")
        width = max(1, min(end - start + 1, len(line) - (start - begin)))
        return f"\n  {line}\n  {' ' * (start - begin)}{'^' * width}"


def parsed(text: Any) -> tuple[Text, exp.Query]:
    """The one query of a text."""
    if not isinstance(text, str) or not text.strip():
        raise QueryError("A question is a text in SQL, such as SELECT COUNT(*) FROM visits.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise QueryError("A question holds text that is no Unicode. Write it again.") from None
    if len(text) > LONGEST:
        raise QueryError(f"A question has at most {LONGEST:,} characters. Ask for less at once.")
    words = Text(text)
    sqlglot_logger.disabled = True  # it would log the question
    try:
        statements = [statement for statement in sqlglot.parse(text, read="duckdb") if statement is not None]
    except (SqlglotError, RecursionError) as error:
        raise QueryError(f"This does not parse as SQL: {_first_error(error)}") from None
    finally:
        sqlglot_logger.disabled = False
    if len(statements) != 1:
        raise QueryError(f"One question at a time: here are {len(statements)} statements. Ask them one by one.")
    [statement] = statements
    if isinstance(statement, exp.Select | exp.SetOperation):
        return words, statement
    if isinstance(statement, exp.Subquery):
        words.refuse(statement, "A query in parentheses is not answered.", "Write it without them.")
    if isinstance(statement, exp.Alias | exp.Column | exp.Condition):
        raise QueryError(f"This is not a query. Begin with SELECT or WITH.{words.pointed(statement)}")
    words.refuse(statement, f"{statement.key.upper()} is not a question.", "Only SELECT is answered.")


def _first_error(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply."
    first = (getattr(error, "errors", None) or [{}])[0]
    said, line, column = first.get("description") or "", first.get("line"), first.get("col")
    said = "unexpected text" if not said or "<" in said else said
    return f"{said.rstrip('.')}{f' at line {line}, column {column}' if line else ''}."
