"""Numbers that mean what a person wrote, and roundings that keep guarantees valid.

A float is read as the decimal that it prints (`0.1` is one tenth, not 0.1000000000000000055…), so that ten charges of
0.1 are exactly 1. Costs round up and limits round down, and every name says which. Transcendental functions return
certified bounds: `decimal` rounds `exp` and `ln` correctly, so the true value is within one unit in the last place.
"""

from __future__ import annotations

import decimal
import math
import numbers
from fractions import Fraction
from functools import lru_cache
from typing import Any

from discreet.errors import InvalidArgument

Number = int | float | Fraction | decimal.Decimal
LEDGER_UNIT = 10**18
"""The number of integer units in a ledger for a cost of 1."""
SMALLEST_EPSILON, LARGEST_EPSILON = Fraction(1, 10**18), Fraction(10**6)


_DIGITS = 5000


def exactly(value: Any, name: str = "value") -> Fraction:
    """The rational number that a person meant.

    >>> exactly(0.1)
    Fraction(1, 10)
    """
    kind = type(value)
    if kind is float:
        return _of_float(value, name)
    if kind is int:
        return Fraction(value)
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Number | decimal.Decimal):
        if type(value).__name__ != "bool" and hasattr(value, "item") and getattr(value, "ndim", None) == 0:
            return exactly(value.item(), name)
        raise InvalidArgument(
            f"{name} must be a number, not {type(value).__name__}. Write it as a plain number.", code="not-a-number"
        )
    if isinstance(value, numbers.Integral):
        return Fraction(int(value))
    if isinstance(value, decimal.Decimal):
        if not value.is_finite():
            raise InvalidArgument(f"{name} must be finite.", code="not-a-number")
        if value and abs(value.adjusted()) > _DIGITS:
            raise InvalidArgument(
                f"{name} must have at most {_DIGITS} digits before or after its point.", code="too-many-digits"
            )
        return Fraction(value) if value else Fraction(0)
    if isinstance(value, numbers.Real):
        return _of_float(float(value), name)
    raise InvalidArgument(f"{name} must be a real number, not {type(value).__name__}.", code="not-a-number")


@lru_cache(maxsize=4096)
def _of_float(value: float, name: str) -> Fraction:
    """The decimal that a float prints. The ε of a ledger's charges are few."""
    if not math.isfinite(value):
        raise InvalidArgument(f"{name} must be finite, not {value}.", code="not-a-number")
    return Fraction(repr(value))


def check_epsilon(value: Any, name: str = "epsilon") -> Fraction:
    """ε as a rational, checked to be in [1e-18, 1e6]."""
    exact = exactly(value, name)
    if not SMALLEST_EPSILON <= exact <= LARGEST_EPSILON:
        raise InvalidArgument(
            f"{name} must be between 1e-18 and 1e6. Choose a value such as 0.1 or 1.", code="out-of-range"
        )
    return exact


def check_delta(value: Any, name: str = "delta") -> Fraction:
    """δ as a rational, checked to be in [0, 1)."""
    exact = exactly(value, name)
    if not 0 <= exact < 1:
        raise InvalidArgument(
            f"{name} must be at least 0 and below 1. Choose a value such as 1e-6.", code="out-of-range"
        )
    return exact


def check_positive(value: Any, name: str) -> Fraction:
    """A finite rational (a sensitivity, a scale, a step), checked to be above zero."""
    exact = exactly(value, name)
    if exact <= 0:
        raise InvalidArgument(f"{name} must be above 0.", code="out-of-range")
    return exact


def check_bound(bound: Number, name: str) -> Fraction:
    """A public bound on a norm or a target. Raises if it is so far from 1 that its square is not a double."""
    exact = check_positive(bound, name)
    if not Fraction(1, 10**100) <= exact <= 10**100:
        raise InvalidArgument(f"{name} must be between 1e-100 and 1e100.", code="out-of-range")
    return exact


def check_probability(value: Any, name: str = "probability") -> Fraction:
    """A rational, checked to be strictly between 0 and 1."""
    exact = exactly(value, name)
    if not 0 < exact < 1:
        raise InvalidArgument(f"{name} must be strictly between 0 and 1.", code="out-of-range")
    return exact


def check_count(value: Any, name: str, at_least: int = 1) -> int:
    """A whole number, checked to be at least `at_least`."""
    if type(value) is int and value >= at_least:
        return value
    exact = exactly(value, name)
    if exact.denominator != 1 or exact < at_least:
        raise InvalidArgument(
            f"{name} must be a whole number of at least {at_least}.",
            code="not-whole" if exact.denominator != 1 else "out-of-range",
        )
    return int(exact)


def round_up(cost: Fraction) -> int:
    """A cost in integer ledger units, rounded up."""
    return -(-cost.numerator * LEDGER_UNIT // cost.denominator)


def round_down(limit: Fraction) -> int:
    """A limit in integer ledger units, rounded down."""
    return limit.numerator * LEDGER_UNIT // limit.denominator


def float_up(value: Fraction) -> float:
    """The smallest float that is not below `value`. Infinity if it exceeds the largest float."""
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf if value > 0 else -float_down(-value)
    above, below = nearest.as_integer_ratio()
    at_least = above * value.denominator >= value.numerator * below
    return nearest if at_least else math.nextafter(nearest, math.inf)


def float_down(value: Fraction) -> float:
    """The largest float that is not above `value`."""
    try:
        nearest = float(value)
    except OverflowError:
        return math.nextafter(math.inf, 0) if value > 0 else -math.inf
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


def significant(value: Fraction, *, up: bool, digits: int = 12) -> Fraction:
    """`value` > 0 rounded to this many significant decimal digits, never below (up) or never above it.

    >>> significant(Fraction(1, 3), up=True, digits=3)
    Fraction(167, 500)
    """
    size = len(str(value.numerator)) - len(str(value.denominator))
    unit = Fraction(10) ** (size - digits)
    whole = -(-value // unit) if up else value // unit
    return whole * unit


def readable(value: Fraction | float, *, up: bool) -> float:
    """A number ≥ 0 as people read it: six significant digits, rounded up for a cost, and down for what is left.

    >>> readable(0.4999999999994351, up=True), readable(2.1500000000003747, up=False)
    (0.5, 2.15)
    """
    exact = Fraction(f"{float(value):.12g}")  # 0.1 in binary is a little more than 0.1
    return float(significant(exact, up=up, digits=6)) if exact > 0 else float(exact)


def sqrt_up(value: Fraction) -> Fraction:
    """The square root of a rational ≥ 0: exact for squares, otherwise too large by less than one part in 2^64."""
    scaled = value.numerator * value.denominator
    root = math.isqrt(scaled)
    if root * root == scaled:
        return Fraction(root, value.denominator)
    return Fraction(math.isqrt(scaled << 130) + 1, value.denominator << 65)


def power_of_two_below(value: Fraction) -> Fraction:
    """The largest power of two that is at most `value` > 0."""
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    power = Fraction(2) ** exponent
    return power if power <= value else power / 2


def _context(digits: int, rounding: str) -> decimal.Context:
    return decimal.Context(prec=digits, rounding=rounding, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX, traps=[])


def _enclose(function: str, value: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    ends = []
    for rounding, step in ((decimal.ROUND_FLOOR, "next_minus"), (decimal.ROUND_CEILING, "next_plus")):
        context = _context(digits + 5, rounding)
        argument = context.divide(decimal.Decimal(value.numerator), decimal.Decimal(value.denominator))
        ends.append(Fraction(getattr(context, step)(getattr(context, function)(argument))))
    return ends[0], ends[1]


@lru_cache(maxsize=4096)
def exp_bounds(value: Fraction, digits: int = 60) -> tuple[Fraction, Fraction]:
    """Rationals lower ≤ exp(value) ≤ upper that agree to `digits` digits, for |value| ≤ 10^7."""
    if value == 0:
        return Fraction(1), Fraction(1)
    if abs(value) > 10**7:
        raise InvalidArgument(
            "exp takes a number between -1e7 and 1e7. Larger probability ratios have no use.",
            code="out-of-range",
        )
    return _enclose("exp", value, digits)


@lru_cache(maxsize=4096)
def log_bounds(value: Fraction, digits: int = 60) -> tuple[Fraction, Fraction]:
    """Rationals lower ≤ ln(value) ≤ upper that agree to `digits` digits, for value > 0."""
    if value == 1:
        return Fraction(0), Fraction(0)
    # near 1 the logarithm is small, so the argument needs more digits
    near = value.denominator.bit_length() - abs(value.numerator - value.denominator).bit_length()
    return _enclose("ln", value, digits + max(0, near * 302 // 1000 + 1))


def exp_minus_bits(value: Fraction, bits: int) -> tuple[int, int]:
    """Integers lower ≤ exp(-value)·2^bits ≤ upper with upper − lower ≤ 2, for value ≥ 0 of any size."""
    if value > bits:
        return 0, 1
    lower, upper = exp_bounds(-value, digits=bits * 302 // 1000 + 8)
    return math.floor(lower * 2**bits), math.ceil(upper * 2**bits)
