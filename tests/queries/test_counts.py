"""Counts: every sensitivity, by brute force over all tiny databases."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.guarantees.unit import RELATIONS, Unit, person, row
from discreet.queries import Categories, Count, CountingQuery, Histogram, Query

from ..refusing import refuses


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("per_person", [1, 2])
def test_count(relation: Any, per_person: int, neighbors: Any, largest: Any) -> None:
    query = Count(lambda rows: np.asarray(rows) >= 2)
    assert isinstance(query, Query)
    seen = largest(lambda rows: [query(rows)], neighbors((1, 2, 3), 3, relation, per_person), "L1")
    stated = query.sensitivity(person("id", neighbors=relation), per_person)
    assert stated.exact == seen == per_person
    assert stated.unit == person("id", neighbors=relation)
    assert stated.monotone == (relation == "add_or_remove")


def test_counting_query_needs_a_public_size(neighbors: Any, largest: Any) -> None:
    """[L3.CQ]: a replaced row moves an average by 1/n; an added one is refused."""
    query = CountingQuery(lambda rows: np.asarray(rows) >= 2, size=3)
    seen = largest(lambda rows: [query(rows)], neighbors((1, 2), 3, "replace", exchange=True), "L1")
    stated = query.sensitivity(row(neighbors="replace"))
    assert stated.exact == seen == Fraction(1, 3)
    with refuses(InvalidArgument, "size-is-private"):
        query.sensitivity(row())
    with refuses(InvalidArgument, "out-of-range"):
        CountingQuery(np.isnan, size=0)


@pytest.mark.parametrize("norm", ["L1", "L2", "Linf"])
@pytest.mark.parametrize("per_person", [1, 3])
@pytest.mark.parametrize("relation", RELATIONS)
def test_histogram(relation: Any, per_person: int, norm: Any, neighbors: Any, largest: Any) -> None:
    query = Histogram(("a", "b"))
    pairs = neighbors(("a", "b", "undeclared"), 2, relation, per_person)
    seen = largest(lambda rows: [Fraction(int(n)) for n in query(rows)], pairs, norm)
    stated = query.sensitivity(person("id", neighbors=relation), per_person, norm)
    assert stated.dimension == 2
    if norm == "L2":
        assert stated.squared_in_steps(1) == seen  # √2 squares back to 2 exactly
        assert 0 <= stated.exact**2 - seen < Fraction(1, 10**15)
    else:
        assert stated.exact == stated.in_steps(1) == seen


def test_histogram_of_odd_rows() -> None:
    assert Histogram(["a", "b"])(["a", None, float("nan"), ["b"], "secret"]).tolist() == [1, 0]
    assert Histogram(["a", "b"])([]).tolist() == [0, 0]
    assert Histogram(Categories(("a", "b"), other="b"))(np.array(["a", "z", "y"])).tolist() == [1, 2]
    with refuses(InvalidArgument, "duplicates"):
        Histogram(["a", "a"])


def test_predicates_speak_for_each_row() -> None:
    assert Count()([1, 2, 3]) == 3
    assert Count()({"age": np.arange(4)}) == 4
    assert Count(lambda rows: rows["age"] > 1)({"age": np.arange(4)}) == 2
    assert Count(lambda rows: rows * 5.0)(np.array([0, 3, 7])) == 2  # a truth value, never a weight
    with refuses(InvalidArgument, "function-fails"):
        Count(lambda rows: True)([1, 2])


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "3", float("nan")])
def test_rows_per_person_is_a_count(bad: Any) -> None:
    with pytest.raises(InvalidArgument):
        Count().sensitivity(Unit("id"), bad)


def test_unit_is_a_unit() -> None:
    with refuses(InvalidArgument, "wrong-type"):
        Count().sensitivity("replace")  # type: ignore[arg-type]
