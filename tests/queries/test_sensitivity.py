"""Sensitivity: bad amounts, norms, and exact bounds in lattice steps."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import InvalidArgument
from discreet.exact.rational import sqrt_up
from discreet.guarantees.unit import person, row
from discreet.queries import Sensitivity, nearest_step, sensitivity_of

from ..refusing import refuses


@pytest.mark.parametrize("amount", [0, -0.0, -1, math.nan, math.inf, -math.inf, "1", True, None])
def test_bad_amounts_are_refused(amount: Any) -> None:
    with pytest.raises(InvalidArgument):
        Sensitivity(amount)
    with pytest.raises(InvalidArgument):
        sensitivity_of(amount)


@pytest.mark.parametrize(
    "bad", [{"norm": "L3"}, {"dimension": 0}, {"dimension": 1.5}, {"grain": 0}, {"grain": 2}, {"unit": "row"}]
)
def test_bad_fields_are_refused(bad: Any) -> None:
    with pytest.raises(InvalidArgument):
        Sensitivity(1, **bad)


def test_plain_numbers() -> None:
    assert sensitivity_of(0.1) == Sensitivity(0.1)
    assert sensitivity_of(0.1).exact == Fraction(1, 10)
    stated = Sensitivity(2, unit=row(neighbors="replace"), dimension=3)
    assert sensitivity_of(stated, dimension=3) is stated
    assert sensitivity_of(2, dimension=3).dimension == 3
    with refuses(InvalidArgument, "sensitivity-wrong-size"):
        sensitivity_of(stated, dimension=4)
    with refuses(InvalidArgument, "sensitivity-wrong-kind"):
        Sensitivity(1, "L2", dimension=2).in_steps(Fraction(1))
    for step in (0, -1, math.nan):
        with pytest.raises(InvalidArgument):
            Sensitivity(1).in_steps(step)
    assert str(Sensitivity(1, unit=person("id"))) == "at most 1 when one person('id') is added or removed"


TENTHS = st.integers(-40, 40).map(lambda k: Fraction(k, 10))


@pytest.mark.slow
@given(
    before=st.lists(TENTHS, min_size=1, max_size=4),
    moves=st.lists(TENTHS, min_size=4, max_size=4),
    step=st.sampled_from([Fraction(1), Fraction(1, 2), Fraction(3, 10), Fraction(7, 4), Fraction(1, 16)]),
    grained=st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_rounded_answers_stay_within_steps(
    before: list[Fraction], moves: list[Fraction], step: Fraction, grained: bool
) -> None:
    if grained:  # differences that are whole multiples of 1/2, from any start
        moves = [Fraction(math.floor(m * 2), 2) for m in moves]
    after = [x + m for x, m in zip(before, moves, strict=False)]
    gaps = [abs(x - y) for x, y in zip(before, after, strict=True)]
    if not any(gaps):
        return
    steps = [abs(nearest_step(x, step) - nearest_step(y, step)) for x, y in zip(before, after, strict=True)]
    grain, d = Fraction(1, 2) if grained else None, len(before)
    squared = sum(g * g for g in gaps)
    l1, l2, linf = (
        Sensitivity(amount, norm, dimension=d, grain=grain)
        for amount, norm in ((sum(gaps), "L1"), (sqrt_up(squared), "L2"), (max(gaps), "Linf"))
    )
    assert sum(steps) <= l1.in_steps(step)
    assert max(steps) <= linf.in_steps(step)
    assert all(sum(s * s for s in steps) <= each.squared_in_steps(step) for each in (l1, l2, linf))
    if grain is not None and (grain / step).denominator == 1:
        assert sum(steps) == l1.in_steps(step)
        assert sum(s * s for s in steps) == l2.squared_in_steps(step)
    assert float(l2.squared_in_steps(step)) <= (math.sqrt(squared) / step + math.sqrt(d)) ** 2 * (1 + 1e-12)


@pytest.mark.parametrize(("amount", "d"), [*itertools.product([Fraction(1, 2), 1, Fraction(3, 2), 2], [1, 2, 3])])
def test_bounds_in_steps_are_attained(amount: Fraction, d: int) -> None:
    # one coordinate takes nearly all, the others cross a tie by a hair
    hair = Fraction(1, 1000)
    before = [Fraction(1, 2) - hair / 2] * d
    after = [x + hair for x in before]
    after[0] = before[0] + Fraction(amount) - hair * (d - 1)
    steps = [abs(nearest_step(x, 1) - nearest_step(y, 1)) for x, y in zip(before, after, strict=True)]
    sensitivity = Sensitivity(amount, dimension=d)
    assert sum(abs(x - y) for x, y in zip(before, after, strict=True)) == amount
    assert sum(steps) == sensitivity.in_steps(1)
    assert sum(s * s for s in steps) == sensitivity.squared_in_steps(1)


def test_ties_go_one_way() -> None:
    # ties to even would put 0.5 and 1.5, one step apart, two steps apart
    assert nearest_step(1.5, 1) - nearest_step(0.5, 1) == 1 == Sensitivity(1).in_steps(1)


def test_norm_conversions() -> None:
    vector = [Fraction(3), Fraction(-4), Fraction(0), Fraction(0)]
    sizes = {"L1": Fraction(7), "L2": Fraction(5), "Linf": Fraction(4)}
    for norm, size in sizes.items():
        for other, least in sizes.items():
            assert Sensitivity(size, norm, dimension=len(vector)).to(other).exact >= least  # type: ignore[arg-type]
    assert Sensitivity(1, "L1", dimension=9).to("L2").exact == 1
    assert Sensitivity(1, "L2", dimension=9).to("L1").exact == 3
    assert Sensitivity(1, "Linf", dimension=9).to("L1").exact == 9
    assert Sensitivity(1, "Linf", dimension=9).to("L2").exact == 3
    assert Sensitivity(1, "L2", dimension=9).to("Linf").exact == 1
