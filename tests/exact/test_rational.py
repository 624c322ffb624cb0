"""Numbers mean what was written, roundings are on the safe side, and enclosures hold against 80-digit arithmetic."""

from __future__ import annotations

import decimal
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dp
from discreet.errors import InvalidArgument
from discreet.exact import rational
from discreet.exact.rational import (
    LEDGER_UNIT,
    check_count,
    check_delta,
    check_epsilon,
    check_positive,
    check_probability,
    exactly,
    exp_bounds,
    exp_minus_bits,
    float_down,
    float_up,
    log_bounds,
    power_of_two_below,
    round_down,
    round_up,
    significant,
    sqrt_up,
)

from ..refusing import refuses

F = Fraction
DIGITS = 80
POSITIVE = st.fractions(min_value=F(1, 10**40), max_value=10**40).filter(bool)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_the_decimal_it_prints(x):
    assert exactly(x) == F(repr(x)) == F(decimal.Decimal(repr(x)))
    assert float(exactly(x)) == x
    assert exactly(np.float64(x)) == exactly(np.array(x)) == exactly(x)


def test_numbers_of_every_kind():
    assert exactly(0.1) == F(1, 10)
    assert exactly(-0.0) == 0
    assert exactly(decimal.Decimal("1.10")) == F(11, 10)
    assert exactly(np.int8(-3)) == -3
    assert exactly(np.uint64(2**64 - 1)) == 2**64 - 1
    assert exactly(10**400) == 10**400


NOT_NUMBERS = [True, False, np.True_, np.array(True), "1", b"1", None, [1], np.array([1.0]), 1j, Ellipsis]
NOT_FINITE = [math.nan, math.inf, -math.inf, np.float32("nan"), decimal.Decimal("NaN"), decimal.Decimal("sNaN"),
              decimal.Decimal("-Infinity")]  # fmt: skip


@pytest.mark.parametrize("value", [*NOT_NUMBERS, *NOT_FINITE], ids=repr)
@pytest.mark.parametrize("check", [exactly, check_epsilon, check_delta, check_probability])
def test_what_is_not_a_finite_number_is_refused(check, value):
    with refuses(InvalidArgument, "not-a-number"):
        check(value)


@pytest.mark.parametrize("value", [0, -1, 1e-300, 1e300, 9.99e-19, 1_000_000.1, F(-1, 3), -0.0], ids=str)
def test_epsilon_out_of_range_is_refused(value):
    with refuses(InvalidArgument, "out-of-range"):
        check_epsilon(value)
    with refuses(InvalidArgument, "out-of-range"):
        dp.Pure(epsilon=value)


@pytest.mark.parametrize("value", [1e-18, 0.1, 1, 1e6, F(1, 3)], ids=str)
def test_epsilon_in_range_is_kept(value):
    assert check_epsilon(value) == exactly(value)


@pytest.mark.parametrize("value", [-1, 1, 1.5, -1e-300], ids=str)
def test_delta_out_of_range_is_refused(value):
    with refuses(InvalidArgument, "out-of-range"):
        check_delta(value)


@pytest.mark.parametrize("value", [0, -0.0, -1, math.nan, math.inf, "1", True], ids=repr)
def test_what_must_be_positive(value):
    with pytest.raises(InvalidArgument):
        check_positive(value, "sensitivity")


def test_other_domains():
    assert check_delta(0) == 0
    assert check_delta(1 - F(1, 10**30)) < 1
    for value in (0, 1, -0.5):
        with refuses(InvalidArgument, "out-of-range"):
            check_probability(value)
    assert check_count(3.0, "times") == 3
    for value in (0, 2.5, True, math.nan):
        with pytest.raises(InvalidArgument):
            check_count(value, "times")


def test_three_hundred_hundredths_are_three():
    """In ledger units and through a ledger: 300 charges of 0.01 fit a limit of 3, and nothing more does."""
    assert 300 * round_up(exactly(0.01)) == round_down(exactly(3)) == 3 * LEDGER_UNIT
    ledger = dp.Ledger.open(":memory:", limit=dp.Pure(epsilon=3), protects=dp.row())
    for _ in range(300):
        ledger.charge(dp.Pure(epsilon=0.01), asked="a hundredth")
    with refuses(dp.BudgetExhausted, "budget-exhausted"):
        ledger.charge(dp.Pure(epsilon=1e-18), asked="one unit more")


@given(st.fractions())
def test_costs_round_up_and_limits_down(x):
    assert F(round_up(x) - 1, LEDGER_UNIT) < x <= F(round_up(x), LEDGER_UNIT)
    assert F(round_down(x), LEDGER_UNIT) <= x < F(round_down(x) + 1, LEDGER_UNIT)


@given(st.fractions() | st.builds(lambda m, e: F(m) * F(2) ** e, st.integers(), st.integers(-1200, 1200)))
def test_floats_on_the_right_side(x):
    up, down = float_up(x), float_down(x)
    assert up == math.inf or F(up) >= x
    assert down == -math.inf or F(down) <= x
    assert up == down or math.nextafter(down, math.inf) == up
    assert up == -float_down(-x)


def test_floats_at_the_ends():
    largest = math.nextafter(math.inf, 0)
    assert float_up(F(10) ** 400) == math.inf
    assert float_down(F(10) ** 400) == largest
    assert float_up(-(F(10) ** 400)) == -largest
    assert float_down(-(F(10) ** 400)) == -math.inf
    assert float_up(F(1, 10**400)) == 5e-324
    assert float_down(F(1, 10**400)) == 0.0
    assert float_down(F(-1, 10**400)) == -5e-324
    assert float_up(F(largest) + 1) == math.inf


@given(POSITIVE, st.integers(1, 20))
def test_significant_digits(x, digits):
    up, down = significant(x, up=True, digits=digits), significant(x, up=False, digits=digits)
    assert down <= x <= up
    assert up - x <= x * F(10) ** (2 - digits)
    assert x - down <= x * F(10) ** (2 - digits)


@given(POSITIVE)
def test_powers_of_two(x):
    power = power_of_two_below(x)
    assert power <= x < 2 * power
    assert (power.numerator & (power.numerator - 1), power.denominator & (power.denominator - 1)) == (0, 0)


def _encloses(lower: Fraction, upper: Fraction, function, value: Fraction) -> bool:
    """Never on the wrong side of the truth, which is known to 400 digits."""
    with mpmath.workdps(400):
        truth = function(mpmath.mpf(value.numerator) / value.denominator)
        slack = abs(truth) * mpmath.mpf(10) ** -150
        low, high = (mpmath.mpf(end.numerator) / end.denominator for end in (lower, upper))
        return bool(low <= truth + slack and truth - slack <= high)


@given(st.fractions(min_value=-2000, max_value=2000), st.sampled_from([5, 60, DIGITS]))
def test_exp_is_enclosed(x, digits):
    lower, upper = exp_bounds(x, digits)
    assert _encloses(lower, upper, mpmath.exp, x)
    assert upper - lower <= lower * F(10) ** -digits


@pytest.mark.parametrize("x", [F(0), F(1, 10**200), F(-1, 10**200), F(10**5), F(-(10**5)), F(1, 3)], ids=float)
def test_exp_at_its_ends(x):
    lower, upper = exp_bounds(x, DIGITS)
    assert _encloses(lower, upper, mpmath.exp, x)
    assert (lower == upper == 1) if x == 0 else lower < upper


def test_exp_beyond_use_is_refused():
    for x in (F(10**7 + 1), F(-(10**7) - 1)):
        with refuses(InvalidArgument, "out-of-range"):
            exp_bounds(x)


@given(POSITIVE, st.sampled_from([5, 60, DIGITS]))
def test_log_is_enclosed(x, digits):
    lower, upper = log_bounds(x, digits)
    assert _encloses(lower, upper, mpmath.log, x)
    assert upper - lower <= max(abs(lower), abs(upper)) * F(10) ** -digits


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("places", [1, 17, 60, 66, 100, 140])
def test_log_close_to_one_keeps_its_digits(sign, places):
    """ln(1 ± 10^-places): it once rounded its argument to 1 and then tried to write down 10^(10^18)."""
    x = 1 + F(sign, 10**places)
    lower, upper = log_bounds(x, 40)
    assert _encloses(lower, upper, mpmath.log, x)
    assert (lower > 0) if sign > 0 else (upper < 0)
    assert upper - lower <= abs(lower) * F(10) ** -40
    assert log_bounds(F(1)) == (0, 0)


@given(st.fractions(min_value=0, max_value=700) | POSITIVE, st.sampled_from([1, 64, 128, 256, 320]))
def test_bits_of_exp_minus(x, bits):
    lower, upper = exp_minus_bits(x, bits)
    assert 0 <= upper - lower <= 2
    assert _encloses(F(lower, 2**bits), F(upper, 2**bits), lambda y: mpmath.exp(-y), x)
    assert lower >= 0


def test_the_ends_of_epsilon_have_a_name():
    assert F(1, 10**18) == rational.SMALLEST_EPSILON
    assert F(10**6) == rational.LARGEST_EPSILON


@given(POSITIVE)
def test_square_roots_are_exact_for_squares_and_otherwise_a_little_above(value):
    assert sqrt_up(value * value) == value
    root = sqrt_up(value)
    assert value <= root**2 < value * (1 + F(1, 2**64)) ** 2
    assert sqrt_up(F(0)) == 0
