"""Rows on many machines: each machine sums its rows, or draws its part of a sample, and returns only the result.

This file does not decide how rows are distributed: `summed` and `gathered` run a function where the rows are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.exact.randomness import Keystream, random_integer, replaying
from discreet.exact.rational import Number
from discreet.rows.arrow import Batch
from discreet.rows.gradients.losses import Loss, Softmax
from discreet.rows.gradients.stream import Choose, Stream

Whole = list[NDArray[Any]]
"""Arrays of integers of any size."""
Work = Callable[[Iterator[Batch], int], Whole]
"""A function of the batches of a partition and of its number that returns sums over its rows."""


Thinning = tuple[Fraction, int, Choose]
"""The rate of a sample, the key of its random choices, and the function that chooses its rows."""


class Summed(Protocol):
    """Exact sums of the results of `work` over all partitions. `alike` requires that all machines compute exp
    identically.
    """

    def __call__(self, work: Work, *, alike: bool = False) -> Whole: ...


class Gathered(Protocol):
    """All results of `work`, for all partitions."""

    def __call__(self, work: Callable[[Iterator[Batch], int], Iterable[bytes]]) -> list[bytes]: ...


class SpreadStream(Stream):
    """A `Stream` whose rows stay on other machines. Only the rows of samples that fit in memory are sent here.

    Promise: that of `Stream`. The random choices in a partition follow from its number and from a key that is drawn
    here. If a task runs again because a machine was slow or failed, it makes the same choices, so a repetition cannot
    influence the sample.
    """

    def __init__(self, summed: Summed, gathered: Gathered, *, thin: Thinning | None = None, **kept: Any):
        super().__init__(list, **kept)
        self._summed, self._gathered, self._thin = summed, gathered, thin

    @property
    def count(self) -> int:
        """The true number of rows. Like the sums, it is private."""
        self._show_progress("counting the rows")
        return int(self._summed(_number_of_rows)[0].item())

    def sums(self, weights: NDArray[np.float64], loss: Loss | Softmax, clip: Number) -> NDArray[Any]:
        """The sum of clipped gradients in one pass, with the promise of `Examples.sums`."""
        columns, kept, thin = self.columns, self._kept, self._thin

        def work(batches: Iterator[Batch], place: int) -> Whole:
            stream = Stream(lambda: batches, columns=columns, **kept)
            if thin is None:
                return [stream.sums(weights, loss, clip)]
            rate, key, choose = thin
            with _coins_of(key, place):
                return [stream._thinned(rate, choose).sums(weights, loss, clip)]

        return self._summed(work, alike=True)[0]

    def _collected(self, rate: Fraction, steps: int, choose: Choose) -> deque[list[Batch]]:
        columns, kept, key = self.columns, self._kept, random_integer(256)

        def work(batches: Iterator[Batch], place: int) -> Iterable[bytes]:
            stream = Stream(lambda: batches, columns=columns, **kept)
            with _coins_of(key, place):
                return [_pack(stream._collected(rate, steps, choose), columns)]

        held: deque[list[Batch]] = deque([] for _ in range(steps))
        for blob in self._gathered(work):
            for pieces, piece in zip(held, _unpack(blob, steps, columns), strict=True):
                pieces.append(piece)
        return held

    def _thinned(self, rate: Fraction, choose: Choose) -> Stream:
        given: dict[str, Any] = {"columns": self.columns, "held_rows": self.held_rows, **self._kept}
        return SpreadStream(self._summed, self._gathered, thin=(rate, random_integer(256), choose), **given)


def _number_of_rows(batches: Iterator[Batch], place: int) -> Whole:
    return [np.array(sum(len(goal) for _, goal in batches), dtype=object)]


@contextmanager
def _coins_of(key: int, place: int) -> Iterator[None]:
    """The keystream of a partition. Its number is the high half of the counter, which 2^64 blocks do not reach."""
    with replaying(Keystream(key.to_bytes(32, "big"), place.to_bytes(8, "big") + bytes(8))):
        yield


def _pack(held: Iterable[list[Batch]], columns: int) -> bytes:
    """The samples of all steps as bytes: the number of rows of each, the rows, and their targets."""
    pieces = list(held)
    sizes = [sum(len(goal) for _, goal in one) for one in pieces]
    rows = [np.zeros((0, columns)), *(np.asarray(rows, np.float64) for one in pieces for rows, _ in one)]
    goals = [np.zeros(0), *(goal for one in pieces for _, goal in one)]
    return np.array(sizes, np.int64).tobytes() + np.concatenate(rows).tobytes() + np.concatenate(goals).tobytes()


def _unpack(blob: bytes, steps: int, columns: int) -> list[Batch]:
    sizes = np.frombuffer(blob, np.int64, steps)
    count, ends = int(sizes.sum()), np.cumsum(sizes)[:-1]
    rows = np.frombuffer(blob, np.float64, count * columns, 8 * steps).reshape(count, columns)
    goals = np.frombuffer(blob, np.float64, count, 8 * (steps + count * columns))
    # copies, so that a used sample does not stay in memory with the others
    pairs = zip(np.split(rows, ends), np.split(goals, ends), strict=True)
    return [(some.copy(), goal.copy()) for some, goal in pairs]
