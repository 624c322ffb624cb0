"""Rows whose bounds are not known yet: they are counted in public bins first, and then read within what was found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.rows import doubles
from discreet.rows.containers import on_host

Floats = NDArray[np.float64]
Places = Callable[[Floats], NDArray[np.int64]]
"""From cells, rows × columns, to the bin of each, or −1."""
BLOCK = 2**15


class UnboundedRows:
    """Rows of features and targets, of which either or both have bounds to be found.

    The columns are the features, if `finds_features`, and then the target, if `finds_target`. `summed` runs a function
    on all batches of rows and targets, wherever they are, and adds its results exactly. `within` gives the rows for the
    mechanism that follows, from the ranges that were found.

    Promise: a row is in at most one bin of each column, which depends on that cell alone.
    """

    def __init__(
        self,
        summed: Callable[[Any], list[NDArray[Any]]],
        within: Callable[[Floats], Any],
        *,
        features: int,
        finds_features: bool = True,
        finds_target: bool = False,
    ) -> None:
        self._summed, self._within = summed, within
        self.features, self._found = features, (finds_features, finds_target)
        self.columns = features * finds_features + finds_target

    def __reduce__(self) -> Any:
        raise InvalidArgument(
            "The rows of a model cannot be pickled: they are private. Pickle the fitted model.", code="not-pickled"
        )

    def __repr__(self) -> str:
        return f"<UnboundedRows of {self.columns} columns>"

    def counts(self, places: Places, bins: int) -> NDArray[np.int64]:
        """The number of rows in each bin of each column: columns × bins."""
        columns, features, found = self.columns, self.features, self._found

        def work(batches: Iterable[Any], place: int = 0) -> list[NDArray[Any]]:
            total = np.zeros(columns * bins, dtype=np.int64)
            for cells in _cells_of(batches, features, *found):
                at = places(cells)
                total += np.bincount((at + bins * np.arange(columns))[at >= 0], minlength=columns * bins)
            return [total.astype(object)]

        return np.asarray(self._summed(work)[0]).astype(np.int64).reshape(columns, bins)

    def within(self, ranges: Floats) -> Any:
        """The rows with these bounds, for the next mechanism."""
        return self._within(ranges)


def _cells_of(batches: Iterable[Any], features: int, finds_features: bool, finds_target: bool) -> Iterator[Floats]:
    for rows, goals in batches:
        if rows.ndim != 2 or rows.shape[1] != features:
            raise InvalidArgument(
                f"Every batch must have the same {features} features, in two dimensions.", code="wrong-shape"
            )
        for start in range(0, int(rows.shape[0]), BLOCK):
            part = slice(start, start + BLOCK)
            with np.errstate(all="ignore"):  # a warning would reveal something about a cell
                cells = [np.asarray(on_host(rows[part]), dtype=np.float64)] if finds_features else []
                goal = [doubles(on_host(goals[part]))[:, None]] if finds_target else []
            yield np.concatenate([*cells, *goal], axis=1)
