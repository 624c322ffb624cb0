"""Rows that never are in memory all at once: exact sums batch after batch, and samples of every step."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count
from discreet.rows.arrays import indices_to_device_of, namespace
from discreet.rows.arrow import Batch
from discreet.rows.examples import BLOCK
from discreet.rows.gpu import examples_of
from discreet.rows.losses import Loss, Softmax

HELD = 2**25
"""Numbers that are held at most, about, where it is not said how many rows: 256 megabytes of doubles."""
Choose = Callable[[Fraction, int, int], Iterable[NDArray[np.int64]]]
"""From a rate, a number of steps and a number of rows to the places of the rows of each step."""


class Stream:
    """Rows of features with their targets that `read()` gives batch after batch, afresh on every pass.

    `columns` says how many features a row has; `Examples` says what the others mean. `held_rows` is how many rows of
    samples may be held in memory, in expectation: a public number, as is all that decides how often the rows are read.
    `count` counts the rows where there is a faster way than to read them.

    Promise: the sums are those of `Examples` of all the rows at once, wherever a batch ends. A stream draws nothing:
    which rows are in a sample is part of a mechanism's guarantee, so that the mechanism hands over how they are chosen.
    A stream asks once for each row and each step, so that every row has a coin of its own in every step.
    """

    large = True

    def __init__(
        self,
        read: Callable[[], Iterable[Batch]],
        *,
        columns: int,
        feature_norm: Number = 1,
        intercept: bool = True,
        offset: Any = None,
        scale: Any = None,
        held_rows: int | None = None,
        count: Callable[[], int] | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self.columns, self.intercept = check_count(columns, "columns"), bool(intercept)
        self.held_rows = max(1, HELD // (columns + 1)) if held_rows is None else check_count(held_rows, "held_rows")
        self._read, self._count, self._progress = read, count, progress
        self._kept = {"feature_norm": feature_norm, "intercept": self.intercept, "offset": offset, "scale": scale}

    def __reduce__(self) -> Any:
        raise InvalidArgument(
            "The rows of a model cannot be pickled: they are private. Pickle the fitted model.", code="not-pickled"
        )

    def __repr__(self) -> str:
        return f"<Stream of {self.columns} features>"

    @property
    def dimension(self) -> int:
        """How many weights a score has, the intercept's included."""
        return self.columns + self.intercept

    @property
    def count(self) -> int:
        """The true number of rows: private, as the sums are."""
        self._show_progress("counting the rows")
        return sum(len(goal) for _, goal in self._batches()) if self._count is None else self._count()

    def sums(self, weights: NDArray[np.float64], loss: Loss | Softmax, clip: Number) -> NDArray[Any]:
        """Σ clipped gradients in one pass, as whole numbers of `unit_of(clip)`: the promise of `Examples.sums`."""
        total = np.zeros(np.shape(weights), dtype=object)
        for rows, goal in _in_blocks(self._batches()):
            total = total + examples_of(rows, goal, **self._kept).sums(weights, loss, clip)
        return total

    def samples(self, rate: Fraction, steps: int, size: float, choose: Choose) -> Iterator[Stream]:
        """The samples of all steps, one after another; `size` is the public number of rows.

        One pass collects those of as many steps as may be held. Where not even one may be, each step is a pass of its
        own, in which the sample is summed as it is drawn. How the steps are grouped changes nothing in their law.
        """
        together = min(steps, math.floor(self.held_rows / max(float(rate) * size, 1e-9)))
        if together < 1:
            yield from (self._thinned(rate, choose) for _ in range(steps))
            return
        passes = math.ceil(steps / together)
        for number in range(passes):
            self._show_progress(f"pass {number + 1} of {passes}")
            held = self._collected(rate, (number + 1) * steps // passes - number * steps // passes, choose)
            while held:
                yield self._held(held.popleft())

    def _batches(self) -> Iterator[Batch]:
        for rows, goal in self._read():
            if rows.ndim != 2 or rows.shape[1] != self.columns:
                raise InvalidArgument(
                    f"Every batch must have the same {self.columns} features, in two dimensions.", code="wrong-shape"
                )
            if goal.shape != (rows.shape[0],):
                raise InvalidArgument("Every batch must have one target for each row.", code="wrong-shape")
            yield rows, goal

    def _collected(self, rate: Fraction, steps: int, choose: Choose) -> deque[list[Batch]]:
        """The samples of the next steps, in pieces, by one pass."""
        held: deque[list[Batch]] = deque([] for _ in range(steps))
        for rows, goal in self._batches():
            for pieces, places in zip(held, choose(rate, steps, len(goal)), strict=True):
                if len(places):
                    pieces.append(_taken(rows, goal, places))
        return held

    def _held(self, pieces: list[Batch]) -> Stream:
        """One sample that was collected, for one pass: it lets go of its rows. Of none, a step of noise alone."""

        def read() -> Iterator[Batch]:
            while pieces:
                yield pieces.pop()

        return Stream(read, columns=self.columns, **self._kept)

    def _thinned(self, rate: Fraction, choose: Choose) -> Stream:
        """One sample, drawn while it is read, for one pass: another would have other coins."""

        def read() -> Iterator[Batch]:
            for rows, goal in self._batches():
                [places] = choose(rate, 1, len(goal))
                yield _taken(rows, goal, places)

        return Stream(read, columns=self.columns, **self._kept)

    def _show_progress(self, what: str) -> None:
        if self._progress is not None:
            self._progress(what)


def _taken(rows: Any, goal: NDArray[np.float64], places: NDArray[np.int64]) -> Batch:
    """Copies of these rows: nothing keeps the batch they came in."""
    return rows[indices_to_device_of(places, rows)], goal[places]


def _in_blocks(batches: Iterable[Batch]) -> Iterator[Batch]:
    """The same rows, small batches joined: a sum of a few rows takes as long as one of a block."""
    some: list[Batch] = []
    count = 0
    for batch in batches:
        if some and _type_of(batch[0]) != _type_of(some[-1][0]):  # joined, one batch would change the type of another
            yield _joined(some)
            some, count = [], 0
        some.append(batch)
        count += len(batch[1])
        if count >= BLOCK:
            yield _joined(some)
            some, count = [], 0
    if some:
        yield _joined(some)


def _type_of(rows: Any) -> tuple[Any, ...]:
    return namespace(rows), rows.dtype, getattr(rows, "device", None)


def _joined(batches: list[Batch]) -> Batch:
    if len(batches) == 1:
        return batches[0]
    rows = namespace(batches[0][0]).concatenate([rows for rows, _ in batches])
    return rows, np.concatenate([goal for _, goal in batches])
