"""The public grid of automatic ranges: numbers sorted by size, with one bin for each doubling on either side of 0.

Bin 0 holds 0 and all that is at most 2^first. Bin k holds what is above 2^(first + k − 1), up to 2^(first + k); bin −k
the same below 0. The last bin on each side also holds all that is larger. The bin of a number depends on it alone, and
its ends are doubles, as the numbers are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def octave_end(place: int, first: int, *, outer: bool) -> float:
    """The end of a bin that is farther from 0, or the nearer one. 0 for bin 0."""
    power = first + abs(place) - (0 if outer else 1)
    return 0.0 if place == 0 else float(np.copysign(2.0**power, place))


def octave_places(cells: Floats, first: int, last: int) -> NDArray[np.int64]:
    """The bin of every number, counted from 0 for the most negative one. −1 for what is not a finite number."""
    known = np.isfinite(cells)
    size, power = np.frexp(np.where(known, np.abs(cells), 0.0))
    whole = np.asarray(power, dtype=np.int64) - (size == 0.5)  # a power of two belongs to the bin that ends with it
    octave = np.where(size > 0, np.clip(whole - first, 0, last - first), 0)
    return np.where(known, np.where(cells < 0, -octave, octave) + (last - first), -1)


def even_places(cells: Floats, low: Floats, high: Floats, bins: Any) -> NDArray[np.int64]:
    """The bin of every number among equal ones from `low` to `high` of its column. −1 outside."""
    inside = (cells >= low) & (cells <= high)  # false for what is not a number
    share = (np.where(inside, cells, low) / 2 - low / 2) / (high / 2 - low / 2)
    return np.where(inside, np.minimum((share * bins).astype(np.int64), np.asarray(bins, dtype=np.int64) - 1), -1)
