"""Owners that a join says by itself are not looked up, and the rows are the same."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product

import pytest

from discreet.sql.measuring import owners, rows
from discreet.sql.measuring.rows import rows_of

from ..reading.test_paths import data_of, database

SPARED = [
    "visits v JOIN items i ON v.vid = i.vid",
    "items i JOIN visits v ON i.vid = v.vid",
    "visits v LEFT JOIN items i ON v.vid = i.vid",
    "visits v JOIN items i ON v.vid = i.vid AND i.x > 1",
    "items i JOIN items j ON i.vid = j.vid",
    "visits w JOIN visits v ON w.pid = v.pid JOIN items i ON v.vid = i.vid",
    "visits w JOIN visits v ON w.pid = v.pid LEFT JOIN items i ON v.vid = i.vid",
    "items i, parts p, visits v WHERE i.vid = v.vid AND p.iid = i.iid",
    "parts p JOIN parts q ON p.iid = q.iid",
    "visits v LEFT JOIN (SELECT j.vid FROM items j LEFT JOIN parts p ON j.iid = p.iid) i ON v.vid = i.vid",
]
LOOKED_UP = [
    "items i LEFT JOIN visits v ON i.vid = v.vid AND v.c = 'e'",
    "items i",
]
KEYS = (1, 2, 3, None)


@pytest.fixture(scope="module")
def asked():
    """Keys that lead to nobody, to one and to two people, that are repeated, and that are missing."""
    visits = [(1, 1, "e"), (2, 1, "f"), (2, 2, "f"), (2, 2, "f"), (None, 3, "e"), (3, None, "e"), (4, 5, "e")]
    items = [(vid, iid, "ab"[n % 2], n % 4) for n, (vid, iid) in enumerate(product(KEYS, KEYS))]
    return database(data_of(visits, [*items, items[0], (9, 9, "a", 1)], [1, 1, 2, None, 9, 8]))


def relation_of(asked, sources):
    return asked.plan(f"SELECT COUNT(*) AS n FROM {sources}", epsilon=1).question.relation


def rows_with_people(asked, relation):
    """The rows that have a person, as often as they are there: all fields, and the person."""
    person = f'"{relation.person.id}"'
    named = ", ".join(dict.fromkeys([*(f'"{field.id}"' for field in relation.fields), person]))
    rows = asked.engine.rows(f"SELECT {named} FROM ({rows_of(relation, asked.engine)}) WHERE {person} IS NOT NULL")
    return Counter(map(tuple, rows))


def with_all_look_ups(function, *args):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(rows, "without_owners", lambda join: join)
        return function(*args)


@pytest.mark.parametrize("sources", [*SPARED, *LOOKED_UP])
def test_the_rows_and_their_people_are_the_same(asked, sources):
    relation = relation_of(asked, sources)
    found = rows_with_people(asked, relation)
    assert found
    assert found == with_all_look_ups(rows_with_people, asked, relation)


@pytest.mark.parametrize("sources", [*SPARED, *LOOKED_UP])
def test_what_a_join_says_is_not_looked_up(asked, sources):
    relation = relation_of(asked, sources)
    looked_up = rows_of(relation, asked.engine).count("SELECT DISTINCT")
    spared = with_all_look_ups(rows_of, relation, asked.engine).count("SELECT DISTINCT") - looked_up
    assert (spared > 0) == (sources in SPARED)


def test_mutant_a_condition_is_dropped_with_the_look_up(asked, monkeypatch):
    relation, equates = relation_of(asked, SPARED[3]), owners._equates
    monkeypatch.setattr(owners, "_equates", lambda part, people: part.op == "gt" or equates(part, people))
    assert rows_with_people(asked, relation) != with_all_look_ups(rows_with_people, asked, relation)


def test_mutant_the_rows_that_a_left_join_keeps_have_no_owner(asked, monkeypatch):
    def wrong(join):
        return spare(replace(join, kind="inner")) if join.kind == "left" else join

    relation, spare = relation_of(asked, LOOKED_UP[0]), owners.without_owners
    monkeypatch.setattr(rows, "without_owners", wrong)
    assert rows_with_people(asked, relation) != with_all_look_ups(rows_with_people, asked, relation)
