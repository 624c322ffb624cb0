"""Rows that do not fit in memory: exact sums batch by batch, and samples for every step."""

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
from discreet.rows.gradients.examples import BLOCK
from discreet.rows.gradients.gpu import examples_of
from discreet.rows.gradients.losses import Loss, Softmax

HELD = 2**25
"""The default for how many numbers are held in memory, approximately: 256 megabytes of doubles."""
Choose = Callable[[Fraction, int, int], Iterable[NDArray[np.int64]]]
"""A function of a rate, a number of steps and a number of rows that returns the indices of the rows of each step."""


class Stream:
    """Rows of features with their targets. `read()` returns them batch by batch, from the start in every pass.

    `columns` is the number of features of a row. The other arguments are those of `Examples`. `held_rows` is the
    expected number of rows of samples that may be held in memory. It is public, like everything that decides how often
    the rows are read. `count` counts the rows if there is a faster way than reading them.

    Promise: the sums are those of `Examples` of all rows at once, however the rows are batched. A stream draws nothing.
    The choice of the rows in a sample is part of the guarantee of a mechanism, so the mechanism passes the function
    that chooses them. The stream calls it once for each row and each step, so every row is sampled independently in
    every step.
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
        most: float | None = None,
        held_rows: int | None = None,
        count: Callable[[], int] | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self.columns, self.intercept = check_count(columns, "columns"), bool(intercept)
        self.held_rows = max(1, HELD // (columns + 1)) if held_rows is None else check_count(held_rows, "held_rows")
        self._read, self._count, self._progress = read, count, progress
        self._kept: dict[str, Any] = {"feature_norm": feature_norm, "intercept": self.intercept}
        self._kept |= {"offset": offset, "scale": scale, "most": most}

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
        """The sum of clipped gradients in one pass, in units of `unit_of(clip)`, with the promise of
        `Examples.sums`.
        """
        total = np.zeros(np.shape(weights), dtype=object)
        for rows, goal in _in_blocks(self._batches()):
            total = total + examples_of(rows, goal, **self._kept).sums(weights, loss, clip)
        return total

    def samples(self, rate: Fraction, steps: int, size: float, choose: Choose) -> Iterator[Stream]:
        """The samples of all steps, one after another. `size` is the public number of rows.

        One pass collects the samples of as many steps as fit in memory. If not even one fits, each step is a pass of
        its own, in which the sample is summed while it is drawn. How the steps are grouped does not change their law.
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
        """The samples of the next steps, in pieces, from one pass."""
        held: deque[list[Batch]] = deque([] for _ in range(steps))
        for rows, goal in self._batches():
            for pieces, places in zip(held, choose(rate, steps, len(goal)), strict=True):
                if len(places):
                    pieces.append(_copy_rows(rows, goal, places))
        return held

    def _held(self, pieces: list[Batch]) -> Stream:
        """One collected sample, for one pass. Its rows are freed afterwards. If it is empty, the step is only noise."""

        def read() -> Iterator[Batch]:
            while pieces:
                yield pieces.pop()

        return Stream(read, columns=self.columns, **self._kept)

    def _thinned(self, rate: Fraction, choose: Choose) -> Stream:
        """One sample that is drawn while it is read, for one pass only. A second pass would draw another sample."""

        def read() -> Iterator[Batch]:
            for rows, goal in self._batches():
                [places] = choose(rate, 1, len(goal))
                yield _copy_rows(rows, goal, places)

        return Stream(read, columns=self.columns, **self._kept)

    def _show_progress(self, what: str) -> None:
        if self._progress is not None:
            self._progress(what)


def _copy_rows(rows: Any, goal: NDArray[np.float64], places: NDArray[np.int64]) -> Batch:
    """Copies of these rows, so that the batch they came in can be freed."""
    return rows[indices_to_device_of(places, rows)], goal[places]


def _in_blocks(batches: Iterable[Batch]) -> Iterator[Batch]:
    """The same rows with small batches joined, because a sum of a few rows takes as long as that of a block."""
    some: list[Batch] = []
    count = 0
    for batch in batches:
        if some and _type_of(batch[0]) != _type_of(some[-1][0]):  # joining them would change the type of one batch
            yield _join(some)
            some, count = [], 0
        some.append(batch)
        count += len(batch[1])
        if count >= BLOCK:
            yield _join(some)
            some, count = [], 0
    if some:
        yield _join(some)


def _type_of(rows: Any) -> tuple[Any, ...]:
    return namespace(rows), rows.dtype, getattr(rows, "device", None)


def _join(batches: list[Batch]) -> Batch:
    if len(batches) == 1:
        return batches[0]
    rows = namespace(batches[0][0]).concatenate([rows for rows, _ in batches])
    return rows, np.concatenate([goal for _, goal in batches])
