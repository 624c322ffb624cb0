"""Rows clipped to public bounds and rounded to integers, so that sums of their products are exact.

A row is either shortened to a norm, or its columns are clamped to declared ranges and scaled to [−1, 1]. In both cases
it becomes integer multiples of a public unit, with a norm of at most 2^20 units. Targets have at most 2^20 units of
their own. A product of two is at most 2^40, and a double adds 2^13 of those exactly, in any order. So the contribution
of a row to every sum depends on that row alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_bound, exactly, power_of_two_below, sqrt_up
from discreet.rows import column, doubles, on_device, table
from discreet.rows.containers import on_host

Floats = NDArray[np.float64]
Block = tuple[Floats, Floats]
BLOCK = 2**13
"""The number of rows whose products, of at most 2^40 each, a double still adds exactly."""
_MANY = 512  # this many sums of at most 2^53 fit into 64 bits


def unit_of(bound: Number) -> Fraction:
    """The unit for numbers or norms up to the bound: a power of two that divides the bound into at most 2^20 units."""
    return power_of_two_below(exactly(bound)) / 2**19


def cube_norm(features: int) -> Fraction:
    """The maximum length of a row with this many columns within [−1, 1]: √features, rounded up."""
    return sqrt_up(Fraction(features))


def check_ranges(ranges: Any, features: int | None = None) -> Floats:
    """Public pairs (low, high), checked: one for each column."""
    pairs = np.asarray(ranges, dtype=np.float64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or features not in (None, len(pairs)):
        many = "" if features is None else f"{features} "
        raise InvalidArgument(
            f"feature_ranges must be {many}pairs (low, high), one for each column.", code="wrong-shape"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        wide = (pairs[:, 1] - pairs[:, 0]) / 2
    if not (np.isfinite(pairs).all() and np.isfinite(wide).all() and (wide > 1e-300).all()):
        raise InvalidArgument(
            "Every feature range must be two finite numbers with low below high.",
            code="ends-out-of-order" if np.isfinite(pairs).all() else "not-a-number",
        )
    return pairs


class RoundedRows:
    """Rows as integers, with targets if there are any.

    With `feature_norm`, longer rows are shortened to it. With `feature_ranges`, columns are clamped and scaled to [−1,
    1]. Targets are clamped to ±`target_bound`. With `groups`, they are the group of the row, 0 … groups − 1. A row
    counts as zeros, and not in the number of rows, if a cell or its target is not a finite number or not a group.
    """

    def __init__(
        self,
        features: Any,
        targets: Any = None,
        *,
        feature_norm: Number | None = None,
        feature_ranges: Any = None,
        target_bound: Number | None = None,
        groups: int | None = None,
    ) -> None:
        self._features = features if on_device(features) else table(features)
        if self._features.ndim != 2 or self._features.shape[1] < 1:
            raise InvalidArgument(
                "Features must be a table of rows and columns: an array of two dimensions.", code="wrong-shape"
            )
        self.columns = int(self._features.shape[1])
        self.ranges = None if feature_ranges is None else check_ranges(feature_ranges, self.columns)
        if (feature_norm is None) == (self.ranges is None):
            raise InvalidArgument(
                "Give either feature_norm or feature_ranges.",
                code="missing-argument" if feature_norm is None else "conflicting-arguments",
            )
        self.norm = cube_norm(self.columns) if feature_norm is None else check_bound(feature_norm, "feature_norm")
        self.unit = unit_of(self.norm)
        self.bound = None if target_bound is None else check_bound(target_bound, "target_bound")
        self.groups = groups
        self._targets = None if targets is None else targets if on_device(targets) else column(targets)
        if self._targets is not None:
            if not on_device(self._targets) and self._targets.dtype.kind not in "biufO":
                raise InvalidArgument(
                    "Targets must be numbers. Encode text with declared categories first.", code="not-a-number"
                )
            if tuple(self._targets.shape) != tuple(self._features.shape[:1]):
                raise InvalidArgument("There must be one target for each row.", code="wrong-shape")

    def __reduce__(self) -> Any:
        raise InvalidArgument(
            "The rows of a model cannot be pickled: they are private. Pickle the fitted model.", code="not-pickled"
        )

    def __repr__(self) -> str:
        return f"<RoundedRows of {self.columns} features>"

    def blocks(self) -> Iterator[Block]:
        """Rows in units of `unit` (zeros if left out), and their targets or groups (NaN if left out).

        Promise: the numbers of a row depend on that row alone, and its norm is at most `norm`.
        """
        for start in range(0, max(int(self._features.shape[0]), 1), BLOCK):
            part = slice(start, start + BLOCK)
            with np.errstate(all="ignore"):  # a warning would reveal something about a cell
                cells = np.ascontiguousarray(on_host(self._features[part]), dtype=np.float64)
                goal = np.zeros(len(cells)) if self._targets is None else doubles(on_host(self._targets[part]))
            kept = np.isfinite(cells).all(1) & np.isfinite(goal)
            if self.groups is not None:
                kept &= (goal >= 0) & (goal < self.groups) & (goal == np.floor(goal))
            cells = np.where(kept[:, None], cells, 0.0)
            whole = self._shortened(cells) if self.ranges is None else self._clamped(cells)
            yield np.where(kept[:, None], whole, 0.0), np.where(kept, self._goals(goal), np.nan)

    def exact_sums(self, parts: Callable[[Block], list[Floats]]) -> list[NDArray[Any]]:
        """The parts of all rows added as integers of any size; each block's own must be exact."""
        return exact_sums(self.blocks(), parts)

    def held(self) -> RoundedRows:
        """The same rows for several passes. Rows in memory are rounded only once."""
        return _Held(self)

    def _clamped(self, cells: Floats) -> Floats:
        low, high = self.ranges[:, 0], self.ranges[:, 1]  # type: ignore[index]
        middle, half, most = low / 2 + high / 2, high / 2 - low / 2, float(1 / self.unit)
        return np.clip(np.rint((np.clip(cells, low, high) - middle) / half * most), -most, most)

    def _shortened(self, cells: Floats) -> Floats:
        """Rows, first rounded to `bits` bits of the larger of the norm and the largest cell, and then to units.

        After the first rounding, the length is exact up to √columns/2. With room for that, and for as much in the
        second rounding, no row becomes longer than the norm.
        """
        bits, off = (52 - math.ceil(math.log2(self.columns))) // 2, math.sqrt(self.columns) / 2
        _, exponent = np.frexp(np.maximum(np.abs(cells).max(1), float(self.norm)))
        first = cells * np.ldexp(1.0, bits - exponent)[:, None]
        rounded = np.rint(first)
        length = np.sqrt((rounded * rounded).sum(1)) + off  # squares of integers: exact in any order
        most = (math.floor(self.norm / self.unit) - off) * (1 - 2.0**-40)
        with np.errstate(over="ignore"):  # such long rows are shortened
            plain = np.ldexp(1.0, exponent - bits - (math.frexp(float(self.unit))[1] - 1))
        return np.asarray(np.rint(first * np.minimum(most / length, plain)[:, None]))

    def _goals(self, goal: Floats) -> Floats:
        if self.bound is None:
            return goal
        unit = unit_of(self.bound)
        most = math.floor(self.bound / unit)
        with np.errstate(over="ignore"):
            return np.clip(np.rint(goal / float(unit)), -most, most)


class _Held(RoundedRows):
    def __init__(self, rows: RoundedRows) -> None:
        self._blocks = list(rows.blocks())

    def blocks(self) -> Iterator[Block]:
        return iter(self._blocks)


class RoundedBatches(RoundedRows):
    """Rows in batches, on any machine: `summed` runs a function on them and adds the results exactly.

    The other arguments are those of `RoundedRows`. Rows without targets have zeros as targets.
    """

    def __init__(self, summed: Callable[[Any], list[NDArray[Any]]], *, columns: int, **bounds: Any) -> None:
        super().__init__(np.zeros((0, columns)), **bounds)
        self._summed, self._bounds = summed, bounds

    def exact_sums(self, parts: Callable[[Block], list[Floats]]) -> list[NDArray[Any]]:
        columns, bounds = self.columns, self._bounds

        def work(batches: Iterable[Any], place: int = 0) -> list[NDArray[Any]]:
            return exact_sums(_blocks_of(batches, columns, bounds), parts)

        return self._summed(work)

    def held(self) -> RoundedRows:
        return self


def _blocks_of(batches: Iterable[Any], columns: int, bounds: dict[str, Any]) -> Iterator[Block]:
    yield from RoundedRows(np.zeros((0, columns)), **bounds).blocks()  # sums have their shape even without rows
    for rows, goal in batches:
        if rows.ndim != 2 or rows.shape[1] != columns:
            raise InvalidArgument(
                f"Every batch must have the same {columns} features, in two dimensions.", code="wrong-shape"
            )
        yield from RoundedRows(rows, goal, **bounds).blocks()


def exact_sums(blocks: Iterable[Block], parts: Callable[[Block], list[Floats]]) -> list[NDArray[Any]]:
    """The parts of all blocks added as integers of any size; each block's own must be exact."""
    totals: list[NDArray[Any]] = []
    waiting: list[NDArray[np.int64]] = []
    for place, block in enumerate(blocks):
        new = [np.asarray(part).astype(np.int64) for part in parts(block)]
        waiting = new if not waiting else [a + b for a, b in zip(waiting, new, strict=True)]
        if place % _MANY == _MANY - 1:
            totals, waiting = _add(totals, waiting), []
    return _add(totals, waiting) if waiting else totals


def _add(totals: list[NDArray[Any]], parts: list[NDArray[np.int64]]) -> list[NDArray[Any]]:
    large = [np.asarray(part).astype(object) for part in parts]
    return large if not totals else [np.asarray(a + b, dtype=object) for a, b in zip(totals, large, strict=True)]
