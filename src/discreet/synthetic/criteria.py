"""Acceptance criteria of a synthetic table: how far it is from the true rows, as integers that one row moves little.

A criterion is measured once the synthetic table is there. All that it needs besides the true rows is public: the
synthetic rows, and the noisy number of true rows, to which synthetic counts are scaled.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import check_count, check_positive
from discreet.queries.domain import MOST_CELLS

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]
STEPS = 2**20
"""How finely the part of one row in a mean or a slope is rounded: one row adds at most this many steps."""


@dataclass(frozen=True)
class Made:
    """A synthetic table: its rows as codes, the sizes of the columns, and the noisy number of true rows."""

    codes: Codes
    shape: tuple[int, ...]
    total: float

    @cached_property
    def scale(self) -> float:
        """How many true rows one synthetic row stands for."""
        return max(self.total, 1.0) / max(len(self.codes), 1)

    def counts(self, columns: tuple[int, ...]) -> NDArray[np.int64]:
        """Synthetic counts of some columns, scaled to the true rows and rounded."""
        return np.asarray(np.rint(self.scale * count_cells(self.codes, columns, self.shape)), dtype=np.int64)


def count_cells(codes: Codes, columns: tuple[int, ...], shape: tuple[int, ...]) -> NDArray[np.int64]:
    """How many rows are in each cell of some columns, as a flat array."""
    sizes = [shape[one] for one in columns]
    places = np.ravel_multi_index([codes[:, one] for one in columns], sizes) if columns else np.zeros(len(codes), int)
    return np.bincount(places, minlength=math.prod(sizes))


class Criterion(Protocol):
    """One criterion. It is met if its value is at most `at_most`."""

    @property
    def at_most(self) -> Any: ...

    def moved(self, *, replaced: bool) -> int:
        """How far one row moves the measurement, added or removed, or else replaced."""

    def measure(self, codes: Codes, made: Made) -> int:
        """The exact measurement."""

    def unit(self, made: Made) -> float:
        """What a measurement of 1 means, in the units of `at_most`."""


@dataclass(frozen=True, kw_only=True)
class MarginalError:
    """The largest error of a count in the tables of all sets of `ways` columns, as a share of all rows.

    Promise: one row changes one cell of each table by 1, and a replaced row two cells by 1 each; so the largest
    difference moves by at most 1 in both relations.
    """

    ways: int
    at_most: float

    def __post_init__(self) -> None:
        check_count(self.ways, "ways")
        check_positive(self.at_most, "at_most")

    def moved(self, *, replaced: bool) -> int:
        return 1

    def measure(self, codes: Codes, made: Made) -> int:
        worst = 0
        for columns in itertools.combinations(range(len(made.shape)), self.ways):
            worst = max(worst, int(np.abs(count_cells(codes, columns, made.shape) - made.counts(columns)).max()))
        return worst

    def unit(self, made: Made) -> float:
        return 1 / max(made.total, 1.0)


@dataclass(frozen=True, kw_only=True)
class RelativeError:
    """The largest error of a count of one column, as a share of the synthetic count, where that is `at_least`.

    Promise: the weight of a count is at most STEPS, and a row changes one count of each column, so the largest weighted
    difference moves by at most STEPS in both relations.
    """

    at_least: int
    at_most: float

    def __post_init__(self) -> None:
        check_count(self.at_least, "at_least")
        check_positive(self.at_most, "at_most")

    def moved(self, *, replaced: bool) -> int:
        return STEPS

    def measure(self, codes: Codes, made: Made) -> int:
        worst = 0
        for column in range(len(made.shape)):
            synthetic = made.counts((column,))
            judged = synthetic >= self.at_least
            weights = STEPS * self.at_least // np.maximum(synthetic, self.at_least)
            far = weights * np.abs(count_cells(codes, (column,), made.shape) - synthetic)
            worst = max(worst, int(far[judged].max(initial=0)))
        return worst

    def unit(self, made: Made) -> float:
        return 1 / (STEPS * self.at_least)


@dataclass(frozen=True, kw_only=True)
class MeanError:
    """The largest error of the mean of column `of` in the groups of column `by` with `at_least` synthetic rows.

    `values` are the numbers of the codes of `of`. The sum of value − synthetic mean over the true rows of a group,
    divided by the synthetic size of the group, is the error of its mean, if its size is right.

    Promise: each row adds a whole number of steps between −STEPS and STEPS to one group; so the largest sum moves by at
    most STEPS for an added or removed row, and by at most twice that for a replaced one.
    """

    of: int
    by: int
    values: tuple[float, ...]
    at_least: int
    at_most: float

    def __post_init__(self) -> None:
        check_count(self.at_least, "at_least")
        check_positive(self.at_most, "at_most")
        _check_values(self.values)

    def moved(self, *, replaced: bool) -> int:
        return 2 * STEPS if replaced else STEPS

    def measure(self, codes: Codes, made: Made) -> int:
        sizes, steps = self._steps(made)
        judged = sizes >= self.at_least
        here = count_cells(codes, (self.by, self.of), made.shape).reshape(steps.shape)
        sums = np.abs((here.astype(object) * steps.astype(object)).sum(axis=1)) if len(here) else np.zeros(0)
        return max([int(one) for one in sums[judged]], default=0)

    def _steps(self, made: Made) -> tuple[Floats, NDArray[np.int64]]:
        """The synthetic size of each group, and what a row with each value adds to it, in steps."""
        cells = count_cells(made.codes, (self.by, self.of), made.shape) * made.scale
        table, values = cells.reshape(made.shape[self.by], -1), np.asarray(self.values)
        sizes = table.sum(axis=1)
        means = (table @ values) / np.maximum(sizes, 1e-9)
        apart = values[None, :] - np.clip(means, values.min(), values.max())[:, None]
        steps = np.rint(apart / (self._width * np.maximum(sizes, self.at_least)[:, None] / self.at_least) * STEPS)
        return sizes, np.clip(steps, -STEPS, STEPS).astype(np.int64)

    @property
    def _width(self) -> float:
        return max(self.values) - min(self.values)

    def unit(self, made: Made) -> float:
        return self._width / self.at_least / STEPS


@dataclass(frozen=True, kw_only=True)
class SlopeError:
    """The largest error of a coefficient of the least-squares fit of column `of` on columns `on`, with an intercept.

    `values` are the numbers of the codes of each column, first those of `of`. Measured is one Newton step from the
    synthetic coefficients toward the true ones: the sum of H⁻¹·x·(y − x·β) over the true rows, with H and β of the
    synthetic rows. The intercept is not judged.

    Promise: each row adds a whole number of steps between −STEPS and STEPS to each coefficient, since its part is cut
    off there; so the largest sum moves by at most STEPS, and by at most twice that for a replaced row.
    """

    of: int
    on: tuple[int, ...]
    values: tuple[tuple[float, ...], ...]
    at_most: float

    def __post_init__(self) -> None:
        check_positive(self.at_most, "at_most")
        if not self.on or len(self.values) != len(self.on) + 1:
            raise InvalidArgument("A slope needs a column to explain, and others that explain it.", code="wrong-shape")
        for one in self.values:
            _check_values(one)

    def moved(self, *, replaced: bool) -> int:
        return 2 * STEPS if replaced else STEPS

    def measure(self, codes: Codes, made: Made) -> int:
        _, steps = self._steps(made)
        here = count_cells(codes, (self.of, *self.on), made.shape)
        sums = [int((here.astype(object) * steps[:, one].astype(object)).sum()) for one in range(steps.shape[1])]
        return max(map(abs, sums), default=0)

    def _cells(self, made: Made) -> tuple[Floats, Floats]:
        """The target of each cell, and its row of the design."""
        sizes = [made.shape[one] for one in (self.of, *self.on)]
        places = np.indices(sizes).reshape(len(sizes), -1)
        numbers = [np.asarray(values)[place] for values, place in zip(self.values, places, strict=True)]
        return numbers[0], np.stack([np.ones(len(numbers[0])), *numbers[1:]], axis=1)

    def _steps(self, made: Made) -> tuple[float, NDArray[np.int64]]:
        """What one step is worth, and the steps that a row of each cell adds to each slope."""
        target, design = self._cells(made)
        weights = count_cells(made.codes, (self.of, *self.on), made.shape) * made.scale
        gram = design.T @ (weights[:, None] * design)
        inverse = np.linalg.pinv(gram, hermitian=True)
        beta = inverse @ (design.T @ (weights * target))
        parts = ((target - design @ beta)[:, None] * design) @ inverse[:, 1:]
        widest = float(np.abs(parts[weights > 0]).max(initial=0.0)) if (weights > 0).any() else 0.0
        # a fit without any residual leaves nothing to divide by
        step = max(widest, 1e-9 * float(np.abs(parts).max(initial=0.0)), 1e-200) / STEPS
        return step, np.clip(np.rint(parts / step), -STEPS, STEPS).astype(np.int64)

    def unit(self, made: Made) -> float:
        return self._steps(made)[0]


@dataclass(frozen=True, kw_only=True)
class Unmatched:
    """The share of rows that have no partner: true and synthetic rows are matched one to one, and partners agree in
    `columns`, after the codes of each are joined in groups of `joined` neighbors.

    Promise: half the sum of differences of counts is what stays without a partner. An added row moves the sum by 1, and
    a replaced one by 2.
    """

    columns: tuple[int, ...]
    joined: tuple[int, ...]
    at_most: float

    def __post_init__(self) -> None:
        check_positive(self.at_most, "at_most")
        if not self.columns or len(self.joined) != len(self.columns):
            raise InvalidArgument("Give at least one column, and how many codes of each are joined.", code="empty")
        for one in self.joined:
            check_count(one, "joined")

    def moved(self, *, replaced: bool) -> int:
        return 2 if replaced else 1

    def measure(self, codes: Codes, made: Made) -> int:
        shape = tuple(-(-made.shape[c] // width) for c, width in zip(self.columns, self.joined, strict=True))
        if math.prod(shape) > MOST_CELLS:
            raise InvalidArgument("The rows to match have too many cells. Join more, or match fewer.", code="too-large")
        places = tuple(range(len(shape)))
        true, synthetic = (
            count_cells(np.stack([rows[:, c] // w for c, w in self._pairs()], axis=1), places, shape)
            for rows in (codes, made.codes)
        )
        return int(np.abs(true - np.rint(made.scale * synthetic).astype(np.int64)).sum())

    def _pairs(self) -> list[tuple[int, int]]:
        return list(zip(self.columns, self.joined, strict=True))

    def unit(self, made: Made) -> float:
        return 1 / (2 * max(made.total, 1.0))


def _check_values(values: tuple[float, ...]) -> None:
    if len(values) < 2 or not all(map(math.isfinite, values)) or min(values) == max(values):
        raise InvalidArgument("A mean or a slope needs a column of at least two numbers.", code="too-few-choices")
