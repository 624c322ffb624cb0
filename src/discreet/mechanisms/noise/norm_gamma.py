"""A vector with density ∝ exp(−‖b‖/scale): a Gamma length in a uniform direction, both exact to the last digit used."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.exact import samplers
from discreet.exact.randomness import random_integer
from discreet.exact.rational import Number, check_positive, exactly, exp_minus_bits
from discreet.mechanisms.noise.lattice import step_for

_VARIANCE = Fraction(2**16)
"""Normal numbers are drawn as a cell, of which a standard deviation has 2^8, and a place in it."""
_MORE = 64


@dataclass(frozen=True, kw_only=True)
class NormGamma:
    """Linear terms for a pure guarantee, in integer steps of a public lattice.

    Promise: what is drawn, times the step, is within (d+1) steps of a b* whose law has the density ∝ exp(−‖b‖/scale)
    exactly. The length of b* is a sum of d exponential numbers, of which each has whole steps by a geometric law; its
    direction is that of d normal numbers, of which as many binary digits are drawn as the length needs.
    """

    scale: Number

    def __post_init__(self) -> None:
        check_positive(self.scale, "scale")

    @property
    def step(self) -> Fraction:
        """The lattice's step, a power of two far below the scale."""
        return step_for(exactly(self.scale))

    def _noise(self, size: int) -> NDArray[Any]:
        drawn = samplers.discrete_laplace(exactly(self.scale) / self.step, size)
        # k for k ≥ 0 and −k−1 below: mass ∝ q^k + q^(k+1), so exactly the whole steps of an exponential number
        whole = sum(int(k) if k >= 0 else -int(k) - 1 for k in drawn)
        twice = 2 * whole + size  # the middle of [whole, whole + size), in half steps
        if size == 1:
            return _indices([twice if samplers.bernoulli(Fraction(1, 2), 1)[0] else -twice], 2)
        normals = [_Normal() for _ in range(size)]
        while True:
            _together(normals)
            length = math.isqrt(sum(normal.value**2 for normal in normals))
            if length > 16 * size * (whole + size):
                return _indices([twice * normal.value for normal in normals], 2 * length)
            normals[0].extend()


def _indices(numerators: list[int], denominator: int) -> NDArray[Any]:
    """The nearest integers to fractions of any size."""
    return np.array([(2 * n + denominator) // (2 * denominator) for n in numerators] + [None], dtype=object)[:-1]


class _Normal:
    """A normal number of standard deviation 2^8 to as many binary digits as were asked for, each drawn exactly.

    |x| is in cell k with probability ∝ exp(−k²/2v) and at a uniform place f of it, kept with probability
    exp(−(2kf + f²)/2v): both the place and the coin are read on until the coin is sure.
    """

    def __init__(self) -> None:
        while True:
            cell = int(samplers.discrete_gaussian(_VARIANCE, 1)[0])
            if cell >= 0 and self._kept(cell):
                break
        self._sign = 1 if samplers.bernoulli(Fraction(1, 2), 1)[0] else -1

    def _kept(self, cell: int) -> bool:
        self._cell, self._place, self.bits = cell, random_integer(_MORE), _MORE
        word = random_integer(_MORE)
        while True:
            low, high = (self._energy(Fraction(self._place + end, 2**self.bits)) for end in (0, 1))
            if word + 1 <= exp_minus_bits(high, self.bits)[0]:
                return True
            if word >= exp_minus_bits(low, self.bits)[1]:
                return False
            self.extend()
            word = word << _MORE | random_integer(_MORE)

    def _energy(self, place: Fraction) -> Fraction:
        return (2 * self._cell * place + place * place) / (2 * _VARIANCE)

    def extend(self) -> None:
        """Draw more digits."""
        self._place, self.bits = self._place << _MORE | random_integer(_MORE), self.bits + _MORE

    @property
    def value(self) -> int:
        """The number in units of 2^-bits, cut off after them."""
        return self._sign * ((self._cell << self.bits) + self._place)


def _together(normals: list[_Normal]) -> None:
    """The same number of digits for all, as many as the longest has."""
    most = max(normal.bits for normal in normals)
    for normal in normals:
        while normal.bits < most:
            normal.extend()
