"""The lattice of noisy numbers: integer multiples of a public power of two, chosen from the noise, never from
the data.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import check_positive, power_of_two_below
from discreet.rows.containers import Data

FINENESS = 2**40
"""The lattice is at least this much finer than the noise, so that rounding a long vector to it costs next
to nothing.
"""
_MACHINE = 2**61


def step_for(scale: Fraction) -> Fraction:
    """The step for noise of this scale. Never above 1, so that integers are always on the lattice."""
    return min(Fraction(1), power_of_two_below(scale) / FINENESS)


def check_step(step: Any) -> Fraction:
    """A power of two. Raises for anything else."""
    # 2.0**-30 prints as a decimal near it: here the float itself is meant
    exact = Fraction(step) if isinstance(step, float) and math.frexp(step)[0] == 0.5 else check_positive(step, "step")
    if power_of_two_below(exact) != exact:
        raise InvalidArgument("step must be a power of two, such as 1, 0.5 or 1024.", code="step-not-a-power-of-two")
    return exact


def as_numbers(value: Data) -> NDArray[Any]:
    """The value as an array of integers, floats or exact rationals. Raises for anything else."""
    if isinstance(value, Fraction):
        return np.array(value, dtype=object)
    array = np.asarray(value)
    if array.dtype.kind == "O" and all(isinstance(x, int | Fraction) for x in array.ravel()):
        return array
    if array.dtype.kind == "u":
        return array.astype(np.int64) if array.dtype.itemsize < 8 else array.astype(object)
    if array.dtype.kind not in "if":
        raise InvalidArgument(
            f"The value must be a number or an array of numbers, not {type(value).__name__}.", code="not-a-number"
        )
    return array.astype(np.int64) if array.dtype.kind == "i" else array  # differences of narrow integers would wrap


def grain_of(array: NDArray[Any]) -> int | None:
    """1 if the type of the array is an integer type."""
    return 1 if array.dtype.kind == "i" else None


def to_lattice(array: NDArray[Any], step: Fraction) -> NDArray[Any]:
    """The nearest lattice index of each number of a flat array, with halves rounded up. NaN becomes 0, ±inf becomes
    ±2^960.

    Machine integers if all indices are small, and Python integers otherwise: nothing wraps.
    """
    if array.dtype.kind == "i":
        largest = max(1, abs(int(array.max())), abs(int(array.min()))) if array.size else 1
        if step <= 1 and largest * step.denominator < _MACHINE:
            return array.astype(np.int64) * step.denominator
    elif array.dtype.kind == "f":
        finite = np.clip(np.nan_to_num(array.astype(np.float64)), -(2.0**960), 2.0**960)
        with np.errstate(all="ignore"):  # too large for a double is too large for a machine integer
            scaled = np.ldexp(finite, step.denominator.bit_length() - step.numerator.bit_length())
        if np.abs(scaled).max(initial=0.0) < _MACHINE:
            down = np.floor(scaled)
            return (down + (scaled - down >= 0.5)).astype(np.int64)
        array = finite
    indices = np.empty(array.size, dtype=object)
    for i, value in enumerate(array.tolist()):
        indices[i] = (Fraction(value) / step + Fraction(1, 2)) // 1
    return indices


def from_lattice(indices: NDArray[Any], step: Fraction) -> NDArray[Any]:
    """Lattice indices as numbers: on a whole step integers, saturated to 64 bits; else doubles, to ±2^1023."""
    if step.denominator > 1 and indices.dtype == object:
        edge = step.denominator << 1023
        return np.array([max(-edge, min(edge, int(i))) / step.denominator for i in indices], dtype=np.float64)
    if step.denominator > 1:
        return indices.astype(np.float64) * float(step)
    if indices.dtype != object and step == 1:
        return indices
    return np.array([max(-(2**63), min(2**63 - 1, int(i) * int(step))) for i in indices], dtype=np.int64)


def add_noise(array: NDArray[Any], noise: NDArray[Any], step: Fraction) -> Any:
    """Numbers and noise added in integer steps, without wrapping. A plain number for an array of no dimension."""
    indices = to_lattice(array.reshape(-1), step)
    noisy = from_lattice(indices + noise, step)
    return noisy.reshape(array.shape) if array.ndim else noisy[0].item()


def between(values: NDArray[Any], low: Fraction, high: Fraction, step: Fraction) -> NDArray[Any]:
    """Lattice indices of numbers from `low` to `high`, cut in whole steps last, so that no two are further apart than
    the ends are: what doubles make of numbers far from 0 changes nothing about it.
    """
    first, last = round(low / step), (high - low) // step
    if last >= _MACHINE:  # more steps than fit a machine integer, for a user-defined step
        exact = [min(max(round((Fraction(value) - low) / step), 0), last) + first for value in values.tolist()]
        return np.array([*exact, None], dtype=object)[:-1]
    if values.dtype.kind == "i" and low.denominator == 1 and step <= 1:
        steps = (values - int(low)) * step.denominator
    else:
        with np.errstate(over="ignore"):
            steps = np.rint((values.astype(np.float64) - float(low)) / float(step))
    whole = np.clip(np.clip(steps, 0, last).astype(np.int64), 0, last)  # a double may round the last one up
    return np.asarray(whole + first if abs(first) < _MACHINE else whole.astype(object) + first)
