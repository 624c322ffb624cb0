"""How rows are divided among places for each kind of estimate, and which inference follows from what is released."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.queries.shares import ShareProducts
from discreet.stats.inference.equal_means import EqualMeans
from discreet.stats.inference.means import DifferenceOf, Extended, MeanOf
from discreet.stats.inference.noisy_shares import NoisyShares
from discreet.stats.inference.ratios import RatioOf, VarianceOf
from discreet.stats.samples.dividing import Ints, divided, pairs_of, part_of_range
from discreet.stats.samples.sample import Division, Sample

Floats = NDArray[np.float64]
HIDDEN_MISS = 0.001
"""The number of rows beyond a range that was found exceeds its bound with at most this probability."""


@dataclass(frozen=True)
class Spot:
    """Where rows of one group are: the places of the low and the high end of the range and, if the range was found,
    those of the values below and above it.
    """

    low: int
    high: int
    below: int | None = None
    above: int | None = None

    @property
    def places(self) -> list[int]:
        return [place for place in (self.low, self.high, self.below, self.above) if place is not None]

    @property
    def blocks(self) -> list[list[int]]:
        """The places that one row can be in at once."""
        return [[self.low, self.high], *([place] for place in self.places[2:])]


def division_of_two(known: Sample, column: str, over: str) -> Division:
    """Each row half between the ends of one column, and half between those of the other."""
    several = known.of_one > 1
    places = 4 + several
    query = ShareProducts(places, pairs_of([[0, 1, 2, 3]], 4 if several else None))
    ends = known.ends(column), known.ends(over)
    x, y = np.zeros(places), np.zeros(places)
    x[:2], y[2:4] = 2 * np.array(ends[0]), 2 * np.array(ends[1])
    corners = tuple((a, b) for a in ends[0] for b in ends[1])

    def divided_of(first: Floats, second: Floats, owners: Ints | None) -> Ints:
        parts = np.stack([1 - first, first, 1 - second, second], 1) / 2
        missing = np.isnan(first) | np.isnan(second)
        spots = np.where(missing[:, None], -1, np.arange(4))
        return divided(places, spots, parts, owners=owners, rows=known.of_one)

    def divide(numbers: dict[str, Floats], chosen: dict[str, Ints], owners: Ints | None) -> Ints:
        return divided_of(part_of_range(numbers[column], *ends[0]), part_of_range(numbers[over], *ends[1]), owners)

    grid = np.arange(0.5, 20) / 20
    first, second = (part.reshape(-1) for part in np.meshgrid(grid, grid))
    imagined = query(divided_of(first, second, np.arange(400) if several else None)).astype(np.float64) / 400
    return Division(query, divide, lambda shares: RatioOf(shares, x, y, corners), imagined)


def division_by_square(known: Sample, column: str) -> Division:
    """Each row at three places, with the shares (1−t)², 2t(1−t) and t² for the part t of its range."""
    several = known.of_one > 1
    places = 3 + several
    query = ShareProducts(places, pairs_of([[0, 1, 2]], 3 if several else None))
    ends = known.ends(column)
    member, part, square = np.zeros(places), np.zeros(places), np.zeros(places)
    member[:3], part[:3], square[2] = 1.0, (0.0, 0.5, 1.0), 1.0

    def divided_of(t: Floats, owners: Ints | None) -> Ints:
        spots = np.where(np.isnan(t)[:, None], -1, np.arange(3))
        parts = np.stack([(1 - t) ** 2, 2 * t * (1 - t), t**2], 1)
        return divided(places, spots, parts, owners=owners, rows=known.of_one)

    def divide(numbers: dict[str, Floats], chosen: dict[str, Ints], owners: Ints | None) -> Ints:
        return divided_of(part_of_range(numbers[column], *ends), owners)

    imagined = query(divided_of(np.arange(0.5, 200) / 200, np.arange(200) if several else None)).astype(np.float64)
    return Division(
        query, divide, lambda shares: VarianceOf(shares, member, part, square, ends[1] - ends[0]), imagined / 200
    )


def division_by_range(
    known: Sample, column: str, group: str | None = None, *, less: str | None = None, many: bool = False
) -> Division:
    """Each row between the low and the high end of a range, in its group. The inference is about one mean, about the
    difference of two, or, with `many`, about whether several are equal. With `less`, the value of a row is its column
    less that one.
    """
    ends, found, several = range_of_values(known, column, less), known.is_found(column), known.of_one > 1
    each = 4 if found else 2
    spots = [
        Spot(*range(each * number, each * number + each))
        for number in range(1 if group is None else len(known.levels[group]))
    ]
    places = each * len(spots) + several
    blocks = [spot.places for spot in spots] if several else [block for spot in spots for block in spot.blocks]
    query = ShareProducts(places, pairs_of(blocks, places - 1 if several else None))

    def divide(numbers: dict[str, Floats], chosen: dict[str, Ints], owners: Ints | None) -> Ints:
        values = numbers[column] if less is None else _change(numbers[less], numbers[column])
        part = part_of_range(values, *ends)
        at = each * (np.zeros(len(part), dtype=np.int64) if group is None else chosen[group])
        where = np.stack([at, at + 1], 1)
        if found:
            with np.errstate(invalid="ignore"):
                where[:, 0] += 2 * (values < ends[0])
                where[:, 1] += 2 * (values > ends[1])
        missing = np.isnan(part) | (at < 0)
        where = np.where(missing[:, None], -1, where)
        return divided(places, where, np.stack([1 - part, part], 1), owners=owners, rows=known.of_one)

    def infer(shares: NoisyShares) -> Any:
        groups = [MeanOf(shares, *_group(spot, places), ends) for spot in spots]
        if many:
            return EqualMeans(groups)
        inner = groups[0] if group is None else DifferenceOf(*groups)
        if not found:
            return inner
        hidden = [_hidden(one, spot, places) for one, spot in zip(groups, spots, strict=True)]
        if group is None:
            return Extended(inner, hidden[0])
        return Extended(inner, (hidden[1][0] + hidden[0][1], hidden[1][1] + hidden[0][0]))

    return Division(query, divide, infer, _evenly(query, spots, known.of_one))


def range_of_values(known: Sample, column: str, less: str | None = None) -> tuple[float, float]:
    """The range of a column, or of a column less another one."""
    low, high = known.ends(column)
    if less is None:
        return low, high
    other = known.ends(less)
    return low - other[1], high - other[0]


def _change(before: Floats, after: Floats) -> Floats:
    with np.errstate(all="ignore"):  # a warning would reveal something about a cell
        return after - before


def _group(spot: Spot, places: int) -> tuple[Floats, Floats]:
    """Which places belong to a group, and the part of the range at each."""
    member, part = np.zeros(places), np.zeros(places)
    member[spot.places] = 1.0
    part[[place for place in (spot.high, spot.above) if place is not None]] = 1.0
    return member, part


def _hidden(mean: MeanOf, spot: Spot, places: int) -> tuple[float, float]:
    """How far clipping may have raised and lowered a mean, if values outside are on average within the width of the
    range.
    """
    width = mean.ends[1] - mean.ends[0]
    amounts = []
    for place in (spot.below, spot.above):
        rows = float(mean.shares.at_most(np.eye(places)[place], HIDDEN_MISS))
        amounts.append(width * max(rows, 0.0) / max(float(mean.size), 1.0))
    return amounts[0], amounts[1]


def _evenly(query: ShareProducts, spots: list[Spot], rows: int) -> Floats:
    """The numbers that one row is expected to add if rows are spread evenly over the range and the groups."""
    even = np.arange(0.5, 200) / 200
    where = np.concatenate([np.tile([[spot.low, spot.high]], (200, 1)) for spot in spots])
    parts = np.tile(np.stack([1 - even, even], 1), (len(spots), 1))
    owners = np.arange(len(parts)) if rows > 1 else None
    return query(divided(query.places, where, parts, owners=owners, rows=rows)).astype(np.float64) / len(parts)
