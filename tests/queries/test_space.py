"""Spaces: metric axioms, clamping, and bad declarations."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import InvalidArgument
from discreet.queries import Ball, Categories, Functions, Grid, Integers, Interval, Product, Space

from ..refusing import refuses

SPACES: list[Any] = [
    Interval(0, 120),
    Interval(-0.1, 0.1),
    Interval(Fraction(1, 3), Fraction(2, 3), missing=0.5),
    Integers(-3, 7),
    Integers(-(2**63), 2**63 - 1),
    Integers(2**53 + 1, 2**60, missing=2**53 + 1),
    Grid(0, 1, 0.1),
    Grid(-5, 5, Fraction(1, 3)),
    Grid(0.05, 10.05, 0.25, missing=10.05),
    Grid(10**9, 10**9 + 100, 4),
]
ANY_FLOAT = st.floats(allow_nan=True, allow_infinity=True)


@pytest.mark.some_quick(4)
@pytest.mark.parametrize("space", SPACES, ids=repr)
@given(values=st.lists(st.one_of(ANY_FLOAT, st.floats(-20, 20), st.integers(-(2**70), 2**70), st.none()), min_size=1))
@settings(max_examples=40, deadline=None)
def test_numbers_clamp_to_members_and_stay_there(space: Any, values: list[Any]) -> None:
    once = space.clamp(np.array(values, dtype=object))
    assert all(point in space for point in once)
    assert np.array_equal(space.clamp(once), once)
    for value, point in zip(values, once, strict=True):
        alone = space.clamp(value)
        assert alone in space
        assert alone == (value if value in space else point)


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_nan_inf_and_none_follow_the_public_rule(space: Any) -> None:
    center = space.clamp(math.nan)
    assert center in space
    assert space.clamp(None) == center
    assert space.clamp(np.array([math.nan]))[0] == center
    if space.missing is not None:
        assert center == space.missing
    low, high = space.clamp(np.array([-math.inf, math.inf]))
    assert abs(Fraction(repr(low.item())) - space.ends[0]) < Fraction(1, 10**9)
    assert abs(Fraction(repr(high.item())) - space.ends[1]) < Fraction(1, 10**9)


def test_members_are_not_moved_whatever_their_type() -> None:
    interval = Interval(0, 1)
    for member in (0, 1, 0.1, True, Decimal("0.3"), Fraction(1, 3), np.float32(0.5), np.int8(1)):
        assert interval.clamp(member) is member
    assert interval.clamp(Decimal("NaN")) == 0.5
    assert interval.clamp(10**400) == 1.0
    assert 0.1 in Interval(0, 0.1)  # the decimal that was written
    assert 0.30000000000000004 not in Grid(0, 1, 0.1)
    assert Grid(0, 1, 0.1).points()[3] == 0.3
    assert Grid(0, 120, 1).points().dtype == np.int64


def test_integers_do_not_wrap() -> None:
    wide = Integers(-(2**63), 2**63 - 1)
    assert wide.clamp(np.array([2**64 - 1], dtype=np.uint64))[0] == 2**63 - 1
    assert wide.clamp(np.array([1e300, -1e300, 2.0**63])).tolist() == [2**63 - 1, -(2**63), 2**63 - 1]
    assert Integers(0, 5).clamp(np.array([True, False])).tolist() == [1, 0]
    near = 2**53 + 1
    assert Integers(0, 2**60).clamp(np.array([near])).tolist() == [near]
    with refuses(InvalidArgument, "too-large"):
        wide.positions([1])


@pytest.mark.parametrize(
    "make",
    [
        lambda: Interval(1, 1),
        lambda: Interval(2, 1),
        lambda: Interval(math.nan, 1),
        lambda: Interval(0, math.inf),
        lambda: Interval(0, 10**400),
        lambda: Interval("0", 1),  # type: ignore[arg-type]
        lambda: Interval(True, 2),
        lambda: Interval(0, 1, missing=2),
        lambda: Interval(Fraction(1, 3), Fraction(1, 3) + Fraction(1, 10**30)),
        lambda: Integers(0, 1.5),
        lambda: Integers(0, 2**63),
        lambda: Grid(0, 1, 0.3),
        lambda: Grid(0, 1, 0),
        lambda: Grid(0, 1, -0.1),
        lambda: Grid(0, 1, math.nan),
        lambda: Grid(0, 2**60, 1),
        lambda: Grid(0, 1, 0.5, missing=0.3),
        lambda: Categories(()),
        lambda: Categories("abc"),
        lambda: Categories(("a", "a")),
        lambda: Categories(("a", None)),
        lambda: Categories(("a", math.nan)),
        lambda: Categories((["a"],)),  # type: ignore[arg-type]
        lambda: Categories(("a", "b"), other="c"),
        lambda: Categories(("a", "b"), apart=0),
        lambda: Ball(0, 1),
        lambda: Ball(2, 0),
        lambda: Ball(2, math.inf),
        lambda: Ball(2, 1, "L3"),  # type: ignore[arg-type]
        lambda: Functions((), Interval(0, 1)),
        lambda: Functions((0, 1), 3),  # type: ignore[arg-type]
        lambda: Product(),
        lambda: Product(3),  # type: ignore[arg-type]
        lambda: Product(Interval(0, 1), metric="min"),  # type: ignore[arg-type]
    ],
)
def test_bad_declarations_are_refused(make: Any) -> None:
    with pytest.raises(InvalidArgument):
        make()


def test_text_is_refused_without_showing_it() -> None:
    for space in (Interval(0, 1), Grid(0, 1, 0.5), Ball(2, 1)):
        for text in (np.array(["secret", "secret"]), np.array(["2020-01-01"] * 2, dtype="datetime64[D]")):
            with refuses(InvalidArgument, "not-a-number") as caught:
                space.clamp(text)
            assert "secret" not in str(caught.value)
    with refuses(InvalidArgument, "not-a-number"):
        Interval(0, 1).clamp("secret")
    assert Interval(0, 1).clamp(np.array(["secret", 0.2], dtype=object)).tolist() == [0.5, 0.2]


def test_categories() -> None:
    cities = Categories(("Haifa", "Ljubljana"))
    assert cities.clamp("Haifa") == "Haifa"
    assert cities.clamp(np.array(["Ljubljana", "Haifa"])).tolist() == ["Ljubljana", "Haifa"]
    for bad in ("secret", ["secret"], math.nan, None, {"secret": 1}, np.array(["Haifa", "secret"])):
        with refuses(InvalidArgument, "unknown-choice") as caught:
            cities.clamp(bad)
        assert "secret" not in str(caught.value)
        assert caught.value.__cause__ is None
    assert ["secret"] not in cities
    assert cities.positions(["Ljubljana", ["x"], None]).tolist() == [1, -1, -1]
    folded = Categories(("Haifa", "other"), other="other", apart=0.5)
    assert folded.clamp("secret") == "other"
    assert (folded.diameter, folded.minimal_distance, len(folded)) == (Fraction(1, 2), Fraction(1, 2), 2)
    assert Categories(("alone",)).diameter == 0
    assert Categories(((1, 2), (3, 4))).clamp((3, 4)) == (3, 4)


VECTOR = st.lists(st.one_of(ANY_FLOAT, st.floats(-2, 2), st.sampled_from([0.6, 0.8, 1.0, 0.1])), min_size=3, max_size=3)


@pytest.mark.some_quick(5)
@pytest.mark.parametrize("norm", ["L1", "L2", "Linf"])
@pytest.mark.parametrize("radius", [1, 0.1, Fraction(1, 3), 1e-290, 1e290])
@given(rows=st.lists(VECTOR, min_size=1, max_size=4))
@settings(max_examples=40, deadline=None)
def test_ball_clamps_to_members_and_stays_there(norm: Any, radius: Any, rows: list[list[float]]) -> None:
    ball = Ball(3, radius, norm)
    once = ball.clamp(rows)
    for row, point in zip(rows, once, strict=True):
        assert point in ball
        assert row not in ball or np.array_equal(row, point)
        assert np.array_equal(ball.clamp(row), point)
    assert np.array_equal(ball.clamp(once), once)


def test_ball_by_hand() -> None:
    unit = Ball(2, 1)
    assert unit.clamp([0.6, 0.8]).tolist() == [0.6, 0.8]  # on the surface, as decimals
    assert [0.6, 0.8] in unit
    assert [0.6, 0.8000000000000002] not in unit
    assert unit.clamp([math.nan, 5]).tolist() == [0, 0]
    assert unit.clamp([math.inf, 5]) == pytest.approx([1, 0])
    assert unit.clamp([-math.inf, math.inf]) == pytest.approx([-math.sqrt(0.5), math.sqrt(0.5)])
    assert unit.clamp([1e308, 1e308]) == pytest.approx([math.sqrt(0.5)] * 2)
    assert Ball(2, 1, "Linf").clamp([math.inf, 0.3]).tolist() == [1, 0.3]
    assert unit.distance([0, 0], [3, 4]) == 5
    assert 0 < unit.distance([0, 0], [1, 1]) ** 2 - 2 < Fraction(1, 10**15)
    assert unit.clamp([[1, 2, 3], [1, 0]]).tolist() == [[0, 0], [1, 0]]
    with refuses(InvalidArgument, "wrong-shape"):
        unit.clamp(np.ones((1, 3)))


def points_of(space: Any) -> st.SearchStrategy[Any]:
    if isinstance(space, Categories):
        return st.sampled_from(space.points())
    if isinstance(space, Ball):
        return st.lists(st.floats(-2, 2), min_size=space.dimension, max_size=space.dimension).map(space.clamp)
    if isinstance(space, Functions):
        return st.lists(points_of(space.values), min_size=len(space.at), max_size=len(space.at))
    if isinstance(space, Product):
        return st.tuples(*map(points_of, space.spaces))
    return st.floats(-10, 10).map(space.clamp)


def same(a: Any, b: Any) -> bool:
    parts = isinstance(a, tuple | list | np.ndarray)
    return all(map(same, a, b)) if parts else bool(a == b)


MIXED = [
    Interval(-2, 5),
    Integers(-2, 5),
    Grid(0, 1, 0.125),
    Categories(("a", "b", "c"), apart=2),
    Ball(2, 1.5),
    Ball(3, 1, "L1"),
    Ball(3, 1, "Linf"),
    Functions((0, 0.5, 1), Interval(0, 3)),
    Product(Interval(0, 1), Categories(("a", "b")), Ball(2, 1)),
    Product(Integers(0, 3), Categories(("a", "b")), metric="max"),
]


@pytest.mark.some_quick(4)
@pytest.mark.parametrize("space", MIXED, ids=repr)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_metric_axioms(space: Any, data: st.DataObject) -> None:
    """[T.3.1], [T.3.4]: numbers, categories, curves and their products are metric spaces."""
    assert isinstance(space, Space)
    a, b, c = (data.draw(points_of(space)) for _ in range(3))
    assert a in space
    assert space.distance(a, a) == 0
    assert (space.distance(a, b) == 0) == same(a, b)
    assert space.distance(a, b) == space.distance(b, a)
    rounding = 1 + Fraction(1, 2**60)
    assert space.distance(a, c) <= (space.distance(a, b) + space.distance(b, c)) * rounding
    assert space.distance(a, b) <= space.diameter * rounding


def test_finite_spaces_list_their_points() -> None:
    for space in (Integers(-1, 3), Grid(0, 1, 0.25), Categories(("a", "b", "c"))):
        points = list(space.points())
        assert len(points) == len(space) == len(set(points))
        assert space.positions(points).tolist() == list(range(len(space)))
        gaps = [space.distance(a, b) for a in points for b in points]
        assert max(gaps) == space.diameter
        assert min(gap for gap in gaps if gap) == space.minimal_distance
    both = Product(Integers(0, 2), Product(Categories(("a", "b")), Grid(0, 1, 0.5)))
    assert len(list(both.points())) == len(both) == 18
    assert both.minimal_distance == Fraction(1, 2)
    assert both.diameter == 4
    mixed = Product(Interval(0, 1), Categories(("a", "b")))
    assert mixed.minimal_distance is None
    assert bool(mixed)
    with refuses(InvalidArgument, "not-finite"):
        len(mixed)


def test_functions_and_products_clamp_by_parts() -> None:
    curves = Functions((0, 1), Interval(0, 1))
    assert curves.clamp([math.nan, 7]).tolist() == [0.5, 1]
    assert curves.clamp([[-1, 0.2], [3, 0]]).tolist() == [[0, 0.2], [1, 0]]
    assert [0, 0.5] in curves
    assert [0, 1.5] not in curves
    assert "ab" not in curves
    with refuses(InvalidArgument, "wrong-shape"):
        curves.clamp([1, 2, 3])
    row = Product(Interval(0, 1), Categories(("a", "b"), other="b"))
    assert row.clamp((5, "z")) == (1.0, "b")
    assert (0.5, "a") in row
    assert (0.5, "z") not in row
    assert 3 not in row
    with refuses(InvalidArgument, "wrong-shape"):
        row.clamp((1,))
