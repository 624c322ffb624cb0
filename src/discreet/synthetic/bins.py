"""Fewer values for a column, from its noisy counts alone: values too rare to distinguish from noise are merged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.synthetic.model import Floats, uniforms

_LEAST = 1e-300


@dataclass(frozen=True)
class Bins:
    """Which bin each value of a column goes to, and how likely each value is within its bin."""

    bin_of: NDArray[np.int64]
    share: Floats

    @property
    def size(self) -> int:
        """How many bins there are."""
        return int(self.bin_of.max()) + 1

    @property
    def widths(self) -> NDArray[np.int64]:
        """How many values each bin holds."""
        return np.bincount(self.bin_of, minlength=self.size)

    def merged(self, counts: Floats) -> Floats:
        """Counts of values as counts of bins."""
        return np.bincount(self.bin_of, counts, minlength=self.size).astype(np.float64)

    def values(self, bins: NDArray[np.int64]) -> NDArray[np.int64]:
        """A value for each row's bin, with frequencies that follow the shares."""
        order = np.argsort(self.bin_of, kind="stable")
        ends = np.cumsum(self.share[order])  # shares sum to 1 in each bin, so bin k covers (k, k+1]
        rows = np.lexsort((uniforms(len(bins)), bins))
        members = np.bincount(bins, minlength=self.size)
        ranks = np.arange(len(bins)) - (np.cumsum(members) - members)[bins[rows]]
        place = (ranks + uniforms(self.size)[bins[rows]]) / members[bins[rows]]
        found = np.searchsorted(ends, place * (1 - 1e-12) + bins[rows], side="right")
        first = (np.cumsum(self.widths) - self.widths)[bins[rows]]
        found = np.clip(found, first, first + self.widths[bins[rows]] - 1)
        values = np.empty(len(bins), dtype=np.int64)
        values[rows] = order[found]
        return values


def merge_rare(counts: Floats, stddev: float, *, ordered: bool, least: float = 3.0) -> Bins:
    """Bins from noisy counts with standard deviation `stddev`. A value at least `least` deviations above zero stays
    alone.

    The others become one bin. In an ordered column neighbors are joined instead, until their sum is large enough.
    """
    seen = counts >= least * stddev
    if ordered:
        bin_of = _runs(counts, stddev, least)
    elif seen.all():
        bin_of = np.arange(len(counts))
    else:
        bin_of = np.where(seen, np.cumsum(seen) - 1, seen.sum())
    return Bins(bin_of.astype(np.int64), _shares(counts, bin_of, stddev))


def _runs(counts: Floats, stddev: float, least: float) -> NDArray[np.int64]:
    """Neighbors joined from the left until their sum is large enough. The rest at the end joins the last bin."""
    starts, total, width = [0], 0.0, 0
    for place, count in enumerate(counts.tolist()):
        if width and (count >= least * stddev or total >= least * stddev * width**0.5):
            starts.append(place)
            total, width = 0.0, 0
        total, width = total + count, width + 1
    if len(starts) > 1 and total < least * stddev * width**0.5:
        starts.pop()
    edges = np.zeros(len(counts), dtype=np.int64)
    edges[starts[1:]] = 1
    return np.cumsum(edges)


def _shares(counts: Floats, bin_of: NDArray[np.int64], stddev: float) -> Floats:
    """How likely each value is in its bin: as counted, shrunk toward the bin's mean according to the noise."""
    size = int(bin_of.max()) + 1
    widths = np.bincount(bin_of, minlength=size)
    mean = np.bincount(bin_of, counts, minlength=size) / widths
    spread = np.bincount(bin_of, (counts - mean[bin_of]) ** 2, minlength=size) / np.maximum(widths - 1, 1)
    trust = 1 - stddev**2 / np.maximum(spread, stddev**2)
    guess = np.maximum(mean[bin_of] + trust[bin_of] * (counts - mean[bin_of]), 0.0)
    total = np.bincount(bin_of, guess, minlength=size)
    return np.where(total[bin_of] > 0, guess / np.maximum(total[bin_of], _LEAST), 1 / widths[bin_of])


def values_in_bins(counts: Floats, bin_of: NDArray[np.int64], stddev: float) -> Bins:
    """The bins that were made of noisy counts, with the shares of the values in each."""
    return Bins(bin_of, _shares(np.asarray(counts, dtype=np.float64), bin_of, stddev))
