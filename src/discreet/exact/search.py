"""Bisection: finds where a condition starts or stops to hold, and returns a value for which it holds.

A calibration needs the least noise that keeps a guarantee, or the largest cost that fits a limit. The result must
itself satisfy the condition, not only be close to a value that does. So a search has an `inside` end, where the
condition holds, and an `outside` end, where it does not, and returns the inside end. A least value is rounded up, a
largest down.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

N = TypeVar("N", int, float, Fraction)
Floats = NDArray[np.float64]


def halfway(low: N, high: N) -> N:
    """The middle of two numbers. It is rounded down for integers, and to a double for rationals, to keep the digits
    few.
    """
    if isinstance(low, Fraction):
        return Fraction(float((low + high) / 2))
    return (low + high) // 2 if isinstance(low, int) else (low + high) / 2


def geometric(low: N, high: N) -> N:
    """The square root of the product of two positive numbers, as a double: for ends of different magnitude."""
    root = math.sqrt(low * high)
    return Fraction(root) if isinstance(low, Fraction) else type(low)(root)


def bisect(
    holds: Callable[[N], bool],
    inside: N,
    outside: N,
    *,
    relative: float = 0.0,
    absolute: float = 0.0,
    middle: Callable[[N, N], N] = halfway,
) -> N:
    """The last number from `inside` toward `outside` for which `holds` is true, to the larger of two tolerances.

    If `inside` is the larger end, this is the least such number, otherwise the largest. The search ends when the ends
    differ by at most `absolute`, or by `relative` times the larger one, or when `middle` finds no number between them.
    If both tolerances are 0, the result is exact for integers, and exact to the last bit for floats.

    Promise: the result is either `inside` itself, which the caller knows to hold or accepts without a test, or a number
    for which `holds` was true. If `holds` changes more than once, this is still true, but the result may not be the
    last.

    >>> bisect(lambda k: k * k <= 50, 0, 100)
    7
    >>> bisect(lambda x: x * x >= 2, 2.0, 1.0, absolute=0.01)
    1.421875
    """
    while True:
        low, high = min(inside, outside), max(inside, outside)
        if (absolute or relative) and high - low <= max(absolute, relative * max(abs(low), abs(high))):
            return inside
        place = middle(low, high)
        if not low < place < high:
            return inside
        inside, outside = (place, outside) if holds(place) else (inside, place)


def bracket(
    holds: Callable[[N], bool], start: N, *, least: N, most: N, factor: float | Fraction = 2, falling: bool = False
) -> tuple[N, N] | None:
    """Two numbers (inside, outside) for `bisect`, found by repeatedly multiplying or dividing `start` by `factor`.

    `holds` should be true for all large numbers, or with `falling` for all small ones. Only numbers from `least` to
    `most` are tried, including both. If `holds` is true up to the last of them, that one is both inside and outside.
    None if `holds` is never true.

    >>> bracket(lambda k: k * k > 50, 1, least=1, most=1000)
    (8, 4)
    """

    def moved(place: N, up: bool) -> N:
        if isinstance(place, int):
            return min(most, int(place * factor)) if up else max(least, int(place // factor))
        step = Fraction(factor) if isinstance(place, Fraction) else factor
        return min(most, place * step) if up else max(least, place / step)

    place, up = start, not falling
    if holds(place):
        while (further := moved(place, not up)) != place:
            if not holds(further):
                return place, further
            place = further
        return place, place
    while (further := moved(place, up)) != place:
        if holds(further):
            return further, place
        place = further
    return None


def bisect_each(holds: Callable[[Floats], NDArray[np.bool_]], inside: Floats, outside: Floats, rounds: int) -> Floats:
    """`bisect` for every number of an array at once, with this many halvings and the same promise for each number."""
    for _ in range(rounds):
        place = (inside + outside) / 2
        kept = holds(place)
        inside, outside = np.where(kept, place, inside), np.where(kept, outside, place)
    return inside


def least_place(cost: Callable[[float], float], low: float, high: float, rounds: int) -> float:
    """The minimum of a cost with a single valley, by golden-section search."""
    golden = (math.sqrt(5) - 1) / 2
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = cost(left), cost(right)
    for _ in range(rounds):
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = cost(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = cost(right)
    return (low + high) / 2
