"""How rows are counted for proportions: with a value or another one, in one group or in two."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.queries.shares import ShareProducts
from discreet.stats.inference.means import DifferenceOf, MeanOf
from discreet.stats.inference.noisy_shares import NoisyShares
from discreet.stats.inference.proportions import ShareOfUnknown
from discreet.stats.inference.two_proportions import Counts, ShareGap, ShareRatio
from discreet.stats.samples.dividing import Ints, divided, pairs_of
from discreet.stats.samples.sample import ANOTHER, MISSING, Division, Sample

Floats = NDArray[np.float64]


def division_by_value(known: Sample, column: str, complete: bool = False) -> Division:
    """Each row at one of two places: it has another value, or the one whose share is wanted. A row without a value is
    left out, or has another one if all are `complete`.
    """
    several = known.of_one > 1
    places = 2 + several
    query = ShareProducts(places, pairs_of([[0], [1]], 2 if several else None))

    def divide(numbers: dict[str, Floats], chosen: dict[str, Ints], owners: Ints | None) -> Ints:
        at = chosen[column]
        other = (at == ANOTHER) | (complete & (at == MISSING))
        spots = np.where(at == 0, 1, np.where(other, 0, -1))[:, None]
        return divided(places, spots, np.ones((len(at), 1)), owners=owners, rows=known.of_one)

    def infer(noisy: NoisyShares) -> Any:
        mean = _share_at(noisy, 0)
        return mean if several else ShareOfUnknown(float(noisy.numbers[1]), float(noisy.numbers[0]), noisy.noise, mean)

    one = np.array([[0], [1]])
    shares = divided(places, one, np.ones((2, 1)), owners=np.arange(2) if several else None, rows=known.of_one)
    return Division(query, divide, infer, query(shares).astype(np.float64) / 2)


def division_of_two_shares(known: Sample, column: str, group: str, *, ratio: bool = False) -> Division:
    """Each row at one of four places: without or with success, in the first or in the second group. Every row is a unit
    of its own.
    """
    query = ShareProducts(4, tuple((place, place) for place in range(4)))

    def divide(numbers: dict[str, Floats], chosen: dict[str, Ints], owners: Ints | None) -> Ints:
        values, at = numbers[column], chosen[group]
        missing = np.isnan(values) | (at < 0)
        spots = np.where(missing, -1, 2 * at + (np.nan_to_num(values) > 0.5))[:, None]
        return divided(4, spots, np.ones((len(at), 1)), owners=owners, rows=1)

    def infer(noisy: NoisyShares) -> Any:
        found = [float(number) for number in noisy.numbers]
        counts = Counts((found[0], found[2]), (found[1], found[3]), noisy.noise)
        if ratio:
            return ShareRatio(counts)
        return ShareGap(counts, DifferenceOf(_share_at(noisy, 0), _share_at(noisy, 2)))

    return Division(query, divide, infer, np.full(4, 0.25))


def _share_at(noisy: NoisyShares, low: int) -> MeanOf:
    """The share of the place after `low` among both."""
    member, part = np.zeros(noisy.places), np.zeros(noisy.places)
    member[[low, low + 1]], part[low + 1] = 1.0, 1.0
    return MeanOf(noisy, member, part)
