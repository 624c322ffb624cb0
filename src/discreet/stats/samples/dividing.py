"""From rows to the shares of units: a number becomes two shares, near the low and the high end of its range."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet.queries.shares import WHOLE

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def part_of_range(values: Floats, low: float, high: float) -> Floats:
    """How far each value is from the low to the high end, from 0 to 1. NaN stays NaN. Values outside move to an end."""
    with np.errstate(all="ignore"):  # a warning would reveal something about a cell
        return (np.clip(values, low, high) - low) / (high - low)


def divided(places: int, spots: Ints, parts: Floats, *, owners: Ints | None, rows: int) -> Ints:
    """The shares of each unit, as whole numbers that add up to at most `WHOLE`.

    The r-th column of `spots` and `parts` says to which place a row gives how much; the parts of a row add up to 1. A
    negative place stands for a missing value, and gives nothing. Without `owners`, every row is a unit. Otherwise
    `owners` numbers them, every row has the weight 1/`rows`, and the last place receives what a unit has left.
    """
    weight = WHOLE // rows
    with np.errstate(invalid="ignore"):
        given = np.floor(np.where(spots < 0, 0.0, parts) * weight)  # rounded down: no sum exceeds the weight
    given[:, -1] = np.where(spots[:, -1] < 0, 0.0, weight) - given[:, :-1].sum(1)
    amounts = np.nan_to_num(np.clip(given, 0, weight)).astype(np.int64)
    known = np.maximum(spots, 0)
    if owners is None:
        units = np.zeros((len(spots), places), dtype=np.int64)
        each = np.arange(len(spots))
        for column in range(spots.shape[1]):
            units[each, known[:, column]] += amounts[:, column]
        return units
    count = int(owners.max()) + 1 if len(owners) else 0
    units = np.zeros((count, places), dtype=np.int64)
    for column in range(spots.shape[1]):
        flat = np.bincount(owners * places + known[:, column], amounts[:, column], minlength=count * places)
        units += flat.astype(np.int64).reshape(count, places)  # doubles are exact up to 2^53
    units[:, -1] += WHOLE - units.sum(1)
    return units


def pairs_of(blocks: list[list[int]], nothing: int | None) -> tuple[tuple[int, int], ...]:
    """The pairs of places that a unit can be in at once: those of one block, or all if a unit has several rows.

    With several rows, `nothing` is the place of what is left. Its own square is left out: no total needs it.
    """
    every = [place for block in blocks for place in block]
    if nothing is None:
        listed = [(v, w) for block in blocks for v in block for w in block if v <= w]
    else:
        listed = [(v, w) for v in every for w in [*every, nothing] if v <= w]
    return tuple(sorted(set(listed)))
