"""Sums and means: every sensitivity by brute force, exact arithmetic, hostile rows."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import InvalidArgument
from discreet.guarantees.unit import RELATIONS, person, row
from discreet.queries import Ball, Mean, Query, Sum, VectorSum

from ..refusing import refuses

ROWS = (-9.0, -1.0, 0.5, 2.0, 3.0, 50.0, math.nan, math.inf)


@pytest.mark.some_quick(6)
@pytest.mark.parametrize("between", [(-1, 3), (0, 3), (2, 3), (-9, -1)])
@pytest.mark.parametrize("about", [0, 1])
@pytest.mark.parametrize("relation", RELATIONS)
def test_sum_of_rows(between: Any, about: int, relation: Any, neighbors: Any, largest: Any) -> None:
    query = Sum(between, about=about)
    assert isinstance(query, Query)
    pairs = neighbors(ROWS, 2, relation, exchange=True)
    seen = largest(lambda rows: [query(rows)], pairs, "L1")
    stated = query.sensitivity(row(neighbors=relation))
    low, high = between[0] - about, between[1] - about
    assert stated.exact == seen == (max(abs(low), abs(high)) if relation == "add_or_remove" else high - low)


@pytest.mark.parametrize("between", [(-1, 3), pytest.param((2, 3), marks=pytest.mark.slow)])
@pytest.mark.parametrize("relation", RELATIONS)
def test_sum_of_people_with_several_rows(between: Any, relation: Any, neighbors: Any, largest: Any) -> None:
    # a replaced person may bring fewer rows: (2, 3) moves by 3 for each row, not by 1
    query = Sum(between)
    seen = largest(lambda rows: [query(rows)], neighbors(ROWS, 1, relation, 2), "L1")
    assert query.sensitivity(person("id", neighbors=relation), 2).exact == seen


def test_sum_is_exact_and_does_not_depend_on_order() -> None:
    values = np.random.default_rng(1).uniform(-1e6, 1e6, 10_001)
    query = Sum((-1e6, 1e6))
    assert query(values) == query(values[::-1]) == query(np.sort(values))
    assert abs(query(values) - sum(map(Fraction, values))) <= len(values) * query.grain / 2
    assert (query(values) / query.grain).denominator == 1
    assert Sum((0, 1), step=0.1)([0.1] * 10) == 1
    assert Sum((0, 2**40), step=1)(np.full(5000, 2**40)) == 5000 * 2**40
    assert Sum((0, 2**52), step=1)(np.full(5000, 2**52)) == 5000 * 2**52  # past 64 bits
    assert Sum((10**9, 10**9 + 1))([10**9 + 0.5]) == 10**9 + Fraction(1, 2)
    assert Sum((0, 10))(np.array([2**64 - 1], dtype=np.uint64)) == 10
    assert Sum((0, 10))([]) == 0


def test_missing_rows_add_nothing() -> None:
    assert Sum((-1, 3))([math.nan, 2, None]) == 2
    assert Sum((2, 3))([math.nan]) == 2  # nothing is not in the range: the nearest end
    centered, count = Mean((0, 10)).parts()
    assert (centered([math.nan, 8, 8]), count([math.nan, 8, 8])) == (6, 2)
    assert centered([math.inf, -math.inf]) == 0


def test_mean_with_public_size(neighbors: Any, largest: Any) -> None:
    query = Mean((2, 10), size=4)
    pairs = neighbors((-5.0, 2.0, 3.0, 10.0, math.nan), 3, "replace", exchange=True)
    seen = largest(lambda rows: [query(rows)], pairs, "L1")
    assert query.sensitivity(row(neighbors="replace")).exact == seen == 2
    assert query([2, 4, 6, 8]) == 5
    pairs = neighbors((2.0, 10.0), 2, "replace", 2)
    seen = largest(lambda rows: [query(rows)], pairs, "L1")
    assert query.sensitivity(person("id", neighbors="replace"), 2).exact == seen == 4


def test_mean_never_uses_the_true_size(neighbors: Any, largest: Any) -> None:
    for size in (None, 5):
        with refuses(InvalidArgument, "size-is-private"):
            Mean((0, 10), size=size).sensitivity(row())
    with refuses(InvalidArgument, "size-missing"):
        Mean((0, 10)).sensitivity(row(neighbors="replace"))
    with refuses(InvalidArgument, "size-missing"):
        Mean((0, 10))([1, 2])
    for rows in ([], [3], [3, 4]):
        assert Mean((0, 10), size=2)(rows) == 5 + Fraction(sum(rows) - 5 * len(rows), 2)
    centered, count = Mean((2, 10)).parts()
    pairs = list(neighbors((-5.0, 2.0, 3.0, 10.0, math.nan), 2, "add_or_remove"))
    assert largest(lambda rows: [centered(rows)], iter(pairs), "L1") == 4 == centered.sensitivity(row()).exact
    assert largest(lambda rows: [count(rows)], iter(pairs), "L1") == 1 == count.sensitivity(row()).exact


@pytest.mark.parametrize(
    "make",
    [
        lambda: Sum((1, 1)),
        lambda: Sum((0, math.nan)),
        lambda: Sum(5),  # type: ignore[arg-type]
        lambda: Sum((0, 1), step=0),
        lambda: Sum((0, 1), step=2),
        lambda: Sum((0, 1), step=1e-30),
        lambda: Sum((0, 1), about=math.inf),
        lambda: Mean((0, 1), size=0),
        lambda: Mean((1, 0)),
        lambda: Mean(3),  # type: ignore[arg-type]
        lambda: VectorSum(3),  # type: ignore[arg-type]
        lambda: VectorSum(Ball(2, 1), step=0.3),
        lambda: VectorSum(Ball(2, 1), step=2**-40),
        lambda: VectorSum(Ball(2, 1), step=2),
    ],
)
def test_bad_declarations_are_refused(make: Any) -> None:
    with pytest.raises(InvalidArgument):
        make()


@pytest.mark.parametrize("norm", ["L1", "L2", "Linf"])
@pytest.mark.parametrize("relation", RELATIONS)
def test_vector_sum(norm: Any, relation: Any, neighbors: Any, largest: Any) -> None:
    query = VectorSum(Ball(2, 1, norm), step=Fraction(1, 4))
    assert isinstance(query, Query)
    domain = list(itertools.product((-9.0, -1.0, 0.0, 0.6, 0.9, 1.0, math.inf, math.nan), repeat=2))
    seen = largest(query, neighbors(domain, 0, relation, exchange=True), norm)
    stated = query.sensitivity(row(neighbors=relation))
    radius = 1 if relation == "add_or_remove" else 2
    assert stated.exact == radius
    assert seen == (radius**2 if norm == "L2" else radius)
    assert query.sensitivity(row(neighbors=relation), 3).exact == 3 * radius


@pytest.mark.some_quick(1)
@pytest.mark.parametrize("norm", ["L1", "L2", "Linf"])
@given(
    vector=st.lists(st.one_of(st.floats(), st.floats(-1, 1), st.sampled_from([0.6, 0.8])), min_size=3, max_size=3),
    radius=st.sampled_from([1, 0.1, Fraction(1, 3), 7e20, Fraction("9.313225746154785e-10")]),
)
@settings(max_examples=100, deadline=None)
def test_no_vector_passes_the_radius(norm: Any, vector: list[float], radius: Any) -> None:
    query = VectorSum(Ball(3, radius, norm))
    moved = [abs(x) for x in query([vector])]
    exact = Fraction(radius) if not isinstance(radius, float) else Fraction(repr(radius))
    size = {"L1": sum(moved), "L2": sum(x * x for x in moved), "Linf": max(moved)}[norm]
    assert size <= exact ** (2 if norm == "L2" else 1)
    assert all((x / query.grain).denominator == 1 for x in moved)
    if vector in query.space:
        assert max(abs(Fraction(repr(x)) - y) for x, y in zip(map(abs, vector), moved, strict=True)) <= 2 * query.grain


def test_vector_sum_of_surface_rows_is_exact() -> None:
    assert VectorSum(Ball(2, 1))(np.tile([1.0, 0.0], (1000, 1))).tolist() == [1000, 0]
    assert VectorSum(Ball(2, 1))(np.zeros((0, 2))).tolist() == [0, 0]
