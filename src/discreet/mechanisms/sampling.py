"""Which rows take part, and in which order: secret draws that are not noise, but that guarantees depend on.

A Poisson sample strengthens the promise of what sees only the sample (`Subsampled`, `GradientDescent`). A uniformly
random order hides whose row is where, and its first rows are a uniform sample without replacement. Code that reads rows
does not draw: a mechanism hands it one of these functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.exact import samplers

_COINS = 2**17
"""Coins that are tossed at once."""


def poisson_samples(rate: Fraction, steps: int, count: int) -> Iterator[NDArray[np.int64]]:
    """For each step the places of its rows among `count`: a coin of its own for every row in every step."""
    many = max(1, _COINS // max(count, 1))
    for start in range(0, steps, many):
        now = min(many, steps - start)
        for coins in samplers.bernoulli(rate, now * count).reshape(now, count):
            yield np.flatnonzero(coins)


def random_order(count: int) -> NDArray[np.int64]:
    """The places of `count` rows in a uniformly random order."""
    return samplers.permutation(count)
