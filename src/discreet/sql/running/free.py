"""Answers that no row of anybody can change. They are made of public facts only: nothing is read, drawn or charged."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from discreet.errors import DiscreetError
from discreet.guarantees.guarantee import NoLoss
from discreet.ledger import Ledger
from discreet.releases import Release
from discreet.sql.expressions import Expr
from discreet.sql.measuring.groups import groups_of
from discreet.sql.planner import Planner
from discreet.sql.question import Question
from discreet.sql.reading.combined import combination_in, unread_statement
from discreet.sql.reading.free import is_empty, is_unread, listed_in, possible
from discreet.sql.reading.parse import parse_query
from discreet.sql.reading.values.combinations import with_combinations
from discreet.sql.running.answer import Answer
from discreet.sql.running.answering import as_written
from discreet.sql.running.combined import CombinedAnswer, check_statement, rows_of_tables
from discreet.sql.running.intervals import Band, Columns
from discreet.sql.running.shown import check_showable

DECLARED = "what is declared, not what occurs: exact, nothing was spent"
UNREAD = "the same whatever the rows of people are: exact, nothing was spent"


class FreeAnswer(Answer):
    """Groups that are declared, or the columns of an answer without its rows."""

    def __init__(self, question: Question, columns: Columns, ledger: Ledger, free: str) -> None:
        self.free, left = free, ledger.remaining
        release = Release(value=None, guarantee=NoLoss(), _left=lambda: left)
        super().__init__(question, columns, release, notes=(), cost=NoLoss())

    def _bands(self, exprs: list[Expr], confidence: float) -> list[Band | None]:
        return [None] * len(exprs)


def free_answer(planner: Planner, text: str) -> Answer | None:
    """The answer to a statement that no row of anybody can change. None if rows of people, or only public tables, are
    to be read.
    """
    sql, query = parse_query(text)
    if not is_unread(query, planner.schema):
        return _declared(planner, text)
    if is_empty(query):
        with suppress(DiscreetError):  # it is no question, such as SELECT *
            return without_rows(planner, text)
    try:
        statement = unread_statement(sql, query, planner.schema)
        check_statement(statement, ())
    except DiscreetError:
        return None  # it may be a question all the same, and is refused if it is none
    return CombinedAnswer(statement, (), rows_of_tables(statement, planner.engine), planner.ledger, free=UNREAD)


def _declared(planner: Planner, text: str) -> Answer | None:
    """The groups that a statement lists, if they are declared."""
    asked = listed_in(text, planner.schema)
    if asked is None:
        return None
    asked = with_combinations(asked, planner.schema, planner.different)
    groups = groups_of(asked)
    if groups is None:
        return None
    check_showable(asked, planner.engine)
    _, keys = as_written(asked, [], groups.keys())
    keys = keys.take(possible(asked, keys))
    return FreeAnswer(asked, Columns(asked, None, [], keys), planner.ledger, DECLARED)


def without_rows(planner: Planner, text: str) -> Answer:
    """The answer to a statement without its rows: what its columns are. No ε is needed to know them."""
    statement = combination_in(text, planner.schema)
    if statement is None:
        return _without_groups(planner, text)
    parts = [_without_groups(planner, asked.text()) for asked in statement.questions]
    if statement.is_last:
        return parts[-1]
    check_statement(statement, [part.question for part in parts])
    public = rows_of_tables(statement, planner.engine, shown=False)
    return CombinedAnswer(statement, parts, public, planner.ledger, free=UNREAD)


def _without_groups(planner: Planner, text: Any) -> FreeAnswer:
    question = planner.read(text, planner.schema)
    check_showable(question, planner.engine)
    return FreeAnswer(question, Columns.without_groups(question, None), planner.ledger, UNREAD)
