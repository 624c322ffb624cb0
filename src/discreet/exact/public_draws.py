"""Random numbers that protect nobody: public frequencies, synthetic people, rows drawn from a released model.

Promise: no guarantee depends on these draws, and they may be shown to anyone. Noise, samples of private rows and random
orders of them are drawn in `mechanisms/`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.exact import samplers


def whole_numbers(below: int, size: int) -> NDArray[Any]:
    """`size` uniform whole numbers, starting from 0."""
    return samplers.uniform_below(below, size)


def fractions(size: int) -> NDArray[np.float64]:
    """`size` uniform numbers in [0, 1), in steps of 2^-53."""
    return np.asarray(samplers.uniform_below(2**53, size).astype(np.float64) * 2.0**-53)


def normals(size: int) -> NDArray[np.float64]:
    """`size` standard normal numbers, in steps of 2^-30."""
    return np.asarray(samplers.discrete_gaussian(Fraction(2**60), size).astype(np.float64) * 2.0**-30)


def coins(probability: Fraction, size: int) -> NDArray[np.bool_]:
    """`size` coins that are True with this probability."""
    return samplers.bernoulli(probability, size)
