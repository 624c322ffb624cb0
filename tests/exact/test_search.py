"""Bisection returns the side on which the condition holds, within its tolerance, for integers, floats and rationals."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.exact.search import bisect, bisect_each, bracket, geometric, halfway, least_place


def three(numbers: Any) -> Any:
    """Three different numbers in order."""
    return st.lists(numbers, min_size=3, max_size=3, unique=True).map(sorted)


WHOLE = three(st.integers(-(10**30), 10**30))
FLOATS = three(st.floats(1e-100, 1e100))
RATIONALS = three(st.builds(Fraction, st.integers(1, 10**20), st.integers(1, 10**20)))


class Condition:
    """True from `edge` on, or up to it, and a list of what was asked."""

    def __init__(self, edge: Any, *, falling: bool = False) -> None:
        self.edge, self.falling, self.asked = edge, falling, []

    def __call__(self, place: Any) -> bool:
        self.asked.append(place)
        return bool(place <= self.edge if self.falling else place >= self.edge)


@given(WHOLE)
def test_integers_are_found_exactly(ends: list[int]) -> None:
    low, edge, high = ends
    assert bisect(Condition(edge), high, low) == edge
    assert bisect(Condition(edge, falling=True), low, high) == edge


def test_a_search_over_integers_takes_as_many_questions_as_they_have_bits() -> None:
    condition = Condition(123_456_789)
    assert bisect(condition, 10**40, 0) == 123_456_789
    assert len(condition.asked) <= math.ceil(40 * math.log2(10))


@given(FLOATS)
def test_floats_are_found_to_the_last_bit(ends: list[float]) -> None:
    low, edge, high = ends
    assert bisect(Condition(edge), high, low) == edge
    assert bisect(Condition(edge, falling=True), low, high) == edge


@given(FLOATS | RATIONALS, st.sampled_from([1e-12, 1e-9, 0.01]), st.sampled_from([halfway, geometric]))
def test_the_result_holds_and_is_within_the_relative_tolerance(ends: list[Any], relative: float, middle: Any) -> None:
    low, edge, high = ends
    least = bisect(Condition(edge), high, low, relative=relative, middle=middle)
    assert 0 <= least - edge <= relative * least * (1 + 1e-9)
    largest = bisect(Condition(edge, falling=True), low, high, relative=relative, middle=middle)
    assert 0 <= edge - largest <= relative * edge * (1 + 1e-9) / (1 - relative)


@given(st.floats(0.01, 0.99), st.sampled_from([0.3, 1e-3, 1e-9]))
def test_an_absolute_tolerance_serves_where_one_end_is_zero(edge: float, absolute: float) -> None:
    assert edge <= bisect(Condition(edge), 1.0, 0.0, absolute=absolute) <= edge + absolute


@given(st.integers(0, 2**200 - 1), st.booleans())
def test_what_is_returned_held_even_where_the_condition_changes_often(answers: int, rising: bool) -> None:
    inside, outside = (200, 0) if rising else (0, 200)
    found = bisect(lambda place: bool(answers >> place & 1), inside, outside)
    assert found == inside or answers >> found & 1


def test_the_inside_end_is_returned_untested_when_nothing_else_holds() -> None:
    condition = Condition(math.inf)
    assert bisect(condition, 3.0, 1.0, absolute=1e-6) == 3.0
    assert not {3.0, 1.0} & set(condition.asked)


@pytest.mark.parametrize("middle", [lambda low, high: low, lambda low, high: high, lambda low, high: 2 * high])
def test_a_middle_that_does_not_lie_between_ends_the_search(middle: Callable[[float, float], float]) -> None:
    assert bisect(Condition(1.5), 2.0, 1.0, middle=middle) == 2.0


@given(st.integers(-90, 90), st.integers(-90, 90), st.sampled_from([2, 4, Fraction(3, 2)]), st.booleans())
def test_a_bracket_encloses_the_place_of_change(at: int, start: int, factor: Any, falling: bool) -> None:
    edge, first = Fraction(10) ** at, Fraction(2) ** start
    condition = Condition(edge, falling=falling)
    found = bracket(
        condition, first, least=Fraction(1, 10**100), most=Fraction(10**100), factor=factor, falling=falling
    )
    assert found is not None
    inside, outside = found
    assert (condition(inside), condition(outside)) == (True, False)
    assert max(found) <= min(found) * factor
    assert len(condition.asked) == len(set(condition.asked)) + 2  # these two lines; the search asks nothing twice


@pytest.mark.parametrize(("start", "least", "most"), [(64, 1, 10**6), (3, 2, 1000), (1, 1, 1)])
def test_a_bracket_of_integers(start: int, least: int, most: int) -> None:
    for edge in (1, 2, 3, 63, 64, 65, 1000, 10**6, 10**7):
        found = bracket(Condition(edge), start, least=least, most=most)
        if edge > most:
            assert found is None
            continue
        assert found is not None
        assert bisect(Condition(edge), *found) == max(edge, least)


def test_a_bracket_tries_its_limits_and_nothing_beyond() -> None:
    never, always = Condition(math.inf), Condition(-math.inf)
    assert bracket(never, 1.0, least=0.1, most=7.0) is None
    assert bracket(always, 1.0, least=0.1, most=7.0) == (0.1, 0.1)
    assert (min(always.asked), max(never.asked)) == (0.1, 7.0)
    assert bracket(Condition(math.inf, falling=True), 1.0, least=0.1, most=7.0, falling=True) == (7.0, 7.0)
    assert bracket(Condition(-math.inf, falling=True), 1.0, least=0.1, most=7.0, falling=True) is None


def test_a_bracket_in_which_all_holds_is_its_own_answer() -> None:
    assert bisect(Condition(-math.inf), *(5.0, 5.0), relative=1e-9) == 5.0


@pytest.mark.slow
@given(st.lists(st.floats(0.001, 0.999), min_size=1, max_size=20))
def test_arrays_are_searched_place_by_place(edges: list[float]) -> None:
    at = np.array(edges)
    found = bisect_each(lambda place: place >= at, np.ones(len(at)), np.zeros(len(at)), 60)
    assert ((found >= at) & (found <= at + 1e-15)).all()
    one_by_one = [bisect(Condition(edge), 1.0, 0.0, absolute=2.0**-40) for edge in edges]
    assert bisect_each(lambda place: place >= at, np.ones(len(at)), np.zeros(len(at)), 40).tolist() == one_by_one


def test_the_place_of_a_valley() -> None:
    assert least_place(lambda x: (x - 0.3) ** 2, -5.0, 5.0, 60) == pytest.approx(0.3, abs=1e-7)
