"""When a synthetic table is accepted: impossible and rare rows are replaced, and criteria are measured with noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import check_count
from discreet.synthetic.bins import values_in_bins
from discreet.synthetic.criteria import Codes, Made
from discreet.synthetic.refit import MOST_CELLS, drawn_cells, refit

Never = tuple[tuple[int, tuple[int, ...]], ...]
"""An impossible combination: for each of some columns, the codes that it has."""


@dataclass(frozen=True, kw_only=True)
class Acceptance:
    """What is made of a synthetic table before it is released, and the criteria that it must meet.

    A table that is not too large is fitted once more to all noisy counts, without the combinations in `never`. Of a
    larger one, rows that are such a combination are replaced by a neighbor that is not. Then every row that fewer than
    `at_least` rows are equal to is made equal to neighbors that are as rare. All of this sees released numbers only. It
    is the judge of `JudgedRuns`: what one row moves is stated by each criterion.
    """

    names: tuple[str, ...]
    shape: tuple[int, ...]
    criteria: tuple[Any, ...] = ()
    never: tuple[Never, ...] = ()
    at_least: int = 1

    def __post_init__(self) -> None:
        check_count(self.at_least, "at_least")
        for one in self.never:
            if not one or any(not codes for _, codes in one):
                raise InvalidArgument("An impossible combination needs at least one value.", code="empty")

    def finish(self, drawn: Mapping[str, Any]) -> dict[str, Any]:
        """The table that would be released, in few bytes, and what a measurement of each criterion means."""
        codes = self.repaired(self._fitted(drawn))
        made = Made(codes, self.shape, float(drawn["total"]))
        small = np.min_scalar_type(max(max(self.shape) - 1, 0))
        return {
            "rows": codes.astype(small),
            "total": float(drawn["total"]),
            "measured": drawn["measured"],
            "bins": drawn["bins"],
            "units": [float(one.unit(made)) for one in self.criteria],
        }

    def measure(self, data: Codes, finished: Mapping[str, Any]) -> list[int]:
        """The exact measurement of every criterion."""
        made = Made(finished["rows"].astype(np.int64), self.shape, finished["total"])
        return [int(one.measure(data, made)) for one in self.criteria]

    def moved(self, *, replaced: bool) -> tuple[int, ...]:
        """How far one row moves each measurement."""
        return tuple(one.moved(replaced=replaced) for one in self.criteria)

    def values(self, finished: Mapping[str, Any], noisy: Sequence[int]) -> list[float]:
        """The noisy value of each criterion, in the units of its `at_most`. None is below 0."""
        return [max(0.0, unit * one) for unit, one in zip(finished["units"], noisy, strict=True)]

    def score(self, finished: Mapping[str, Any], noisy: Sequence[int]) -> float:
        """How far the criterion that is worst is from its limit, as a share of it."""
        values = self.values(finished, noisy)
        limits = [float(one.at_most) for one in self.criteria]
        return min((1 - value / limit for value, limit in zip(values, limits, strict=True)), default=0.0)

    def _fitted(self, drawn: Mapping[str, Any]) -> Codes:
        """The rows of the better fit, or those that were drawn."""
        rows, bins = np.asarray(drawn["rows"], dtype=np.int64), [np.asarray(one) for one in drawn["bins"]]
        law = refit(drawn, self.names, self._possible(bins))
        if law is None:
            return rows
        cells = drawn_cells(law, len(rows))
        shares = [
            values_in_bins(counts, own, sd) for (_, counts, sd), own in zip(drawn["measured"], bins, strict=False)
        ]
        return np.stack([one.values(cells[:, place]) for place, one in enumerate(shares)], axis=1)

    def _possible(self, bins: Sequence[NDArray[np.int64]]) -> NDArray[np.bool_] | None:
        """Which cells of bins are not impossible as a whole. None if all are possible, or they are too many."""
        sizes = tuple(int(one.max()) + 1 for one in bins)
        if not self.never or math.prod(sizes) > MOST_CELLS:
            return None
        possible = np.ones(sizes, dtype=bool)
        for one in self.never:
            inside = np.ones(sizes, dtype=bool)
            for column, values in one:
                known = np.isin(np.arange(self.shape[column]), values)
                whole = np.array([known[bins[column] == place].all() for place in range(sizes[column])])
                inside &= whole.reshape([-1 if axis == column else 1 for axis in range(len(sizes))])
            possible &= ~inside
        return possible

    # --- rows that are replaced -------------------------------------------------------------------------------

    def repaired(self, codes: Codes) -> Codes:
        """The rows after impossible and rare ones are replaced. Their number stays the same, if any row is possible."""
        if not len(codes):
            return codes
        codes = codes[self._order(codes)]
        impossible = self.impossible(codes)
        if impossible.all():
            return codes[:0]
        possible = np.flatnonzero(~impossible)
        before = np.maximum(np.searchsorted(possible, np.arange(len(codes)), side="right") - 1, 0)
        codes = codes[possible[before]]
        return self._joined(codes) if self.at_least > 1 else codes

    def impossible(self, codes: Codes) -> NDArray[np.bool_]:
        """Which rows are an impossible combination."""
        found = np.zeros(len(codes), dtype=bool)
        for one in self.never:
            found |= np.all([np.isin(codes[:, column], values) for column, values in one], axis=0)
        return found

    def rarest(self, codes: Codes) -> int:
        """How many rows are equal to the rarest row. 0 if there is no row."""
        return 0 if not len(codes) else int(np.unique(codes, axis=0, return_counts=True)[1].min())

    def _order(self, codes: Codes) -> NDArray[np.int64]:
        """Rows in an order in which neighbors are alike: columns with few values first."""
        keys = sorted(range(len(self.shape)), key=lambda one: self.shape[one])
        return np.lexsort([codes[:, one] for one in reversed(keys)])

    def _joined(self, codes: Codes) -> Codes:
        """Rare rows in groups of neighbors. All rows of a group become equal to one of them, each in its turn, so that
        no value is preferred.
        """
        _, which, many = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
        rare = np.flatnonzero(many[which.reshape(-1)] < self.at_least)
        if not len(rare):
            return codes
        groups = max(len(rare) // self.at_least, 1)
        if groups == 1 and len(rare) < self.at_least:  # too few for a group of their own
            others = np.setdiff1d(np.arange(len(codes)), rare)
            kept = others[:1] if len(others) else rare[:1]
            codes = codes.copy()
            codes[rare] = codes[kept]
            return codes
        of_group = np.minimum(np.arange(len(rare)) // self.at_least, groups - 1)
        chosen = rare[of_group * self.at_least + of_group % self.at_least]
        joined = codes.copy()
        joined[rare] = codes[chosen]
        return joined
