"""The tables of what a question may hold are the allow-list: all of it works, and nothing else does. `ALLOWED` and
`AGGREGATES` are those of every question, and `OF_PERSON`, `WINDOWS` and `QUERIES` those of one person's rows.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlglot import exp

import discreet as dp
from discreet.sql.reading.aggregates import AGGREGATES, Aggregates
from discreet.sql.reading.grouped import OF_PERSON
from discreet.sql.reading.parse import Text, parse_query
from discreet.sql.reading.select import read_question
from discreet.sql.reading.subqueries import QUERIES
from discreet.sql.reading.translate import ALLOWED, Translator
from discreet.sql.reading.windows import WINDOWS

from ..conftest import CORPUS


def nodes_of_the_corpus() -> set[type]:
    """The classes of syntax that the corpus holds: `test_corpus` compares each of its questions with plain DuckDB."""
    texts = [text for path in CORPUS for text in path.read_text().split("-- name: ")[1:]]
    return {type(node) for text in texts for node in parse_query(text.partition("\n")[2])[1].walk()}


def kinds_of(kind: type) -> Iterator[type[exp.Expression]]:
    for narrower in kind.__subclasses__():
        yield narrower
        yield from kinds_of(narrower)


def refused_by_translation(kind: type[exp.Expression]) -> bool:
    with pytest.raises(dp.NotAllowed):
        Translator(Text("SELECT 1"), lambda column: pytest.fail("looked up"))(
            kind(this=exp.var("x"), expression=exp.var("x"))
        )
    return True


def refused_as_aggregate(kind: type[exp.Expression]) -> bool:
    aggregates = Aggregates(Text("SELECT 1"), None, None)  # type: ignore[arg-type]
    with pytest.raises(dp.NotAllowed):
        aggregates._parts(kind(this=exp.var("x"), expression=exp.var("x")), None)
    assert not aggregates.measures
    return True


@pytest.mark.slow
def test_every_allowed_class_is_in_the_corpus():
    assert {*ALLOWED, *AGGREGATES, *OF_PERSON, *WINDOWS, *QUERIES} - nodes_of_the_corpus() == set()


def test_every_other_class_is_refused():
    every = set(kinds_of(exp.Expression))
    assert len(every) > 500
    assert all(refused_by_translation(kind) for kind in every - ALLOWED.keys())
    assert all(refused_as_aggregate(kind) for kind in every - AGGREGATES.keys())


def test_a_class_that_leaves_the_tables_is_refused(monkeypatch):
    """The tables decide, and not names of methods or classes above a class."""
    monkeypatch.delitem(ALLOWED, exp.Lower)
    monkeypatch.delitem(ALLOWED, exp.Like)
    monkeypatch.delitem(AGGREGATES, exp.ApproxQuantile)
    assert refused_by_translation(exp.Lower)
    assert refused_by_translation(exp.Like)
    assert refused_as_aggregate(exp.ApproxQuantile)


def test_what_leaves_the_tables_of_one_person_is_refused(clinic, monkeypatch):
    asked = {
        exp.Max: (OF_PERSON, "SELECT COUNT(*) AS n FROM (SELECT person_id, MAX(cost) AS m FROM visits GROUP BY 1) t"),
        exp.Lag: (WINDOWS, "SELECT COUNT(*) AS n FROM (SELECT LAG(cost) OVER (PARTITION BY person_id ORDER BY day) "
                           "AS m FROM visits) t"),
        exp.In: (QUERIES, "SELECT COUNT(*) AS n FROM visits WHERE person_id IN (SELECT person_id FROM people)"),
    }  # fmt: skip
    for kind, (table, text) in asked.items():
        read_question(text, clinic.database.schema)
        monkeypatch.delitem(table, kind)
        with pytest.raises(dp.NotAllowed):
            read_question(text, clinic.database.schema)
