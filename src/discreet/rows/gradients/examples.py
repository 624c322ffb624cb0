"""The rows that a model learns from, and exact sums of their clipped gradients at the speed of matrix products.

Doubles are used as integers. Rows are clipped to a norm and rounded once to integers of at most 20 bits. Weights, which
are public, and slopes are also rounded to integers. Every product and partial sum then stays below 2^53, so both matrix
products are exact, in any order, on any number of threads and on any device. The contribution of a row depends on that
row alone, and one more row changes the sum by exactly its contribution. Noise is never added to a float sum.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_bound, exactly, float_up, power_of_two_below, sqrt_up
from discreet.rows import doubles as column_of_doubles
from discreet.rows import on_device, table
from discreet.rows.arrays import (
    doubles,
    flags_to_numbers,
    indices_to_device_of,
    integers,
    is_numpy,
    namespace,
    one_thread,
    scaled,
    to_device_of,
)
from discreet.rows.containers import on_host
from discreet.rows.gradients.losses import Loss, Softmax

BLOCK = 2**13
"""The number of rows whose contributions, of at most 2^40 units each, a double still adds exactly."""
_UNITS = 40
_MANY = 512
MACHINE_ROWS = 2**20
"""The number of rows whose sum is below 2^60 units, so that noise is added to it as machine integers."""


def unit_of(clip: Number) -> Fraction:
    """The unit of gradients: a power of two that divides the clip into at most 2^40 units."""
    return power_of_two_below(exactly(clip)) * Fraction(1, 2 ** (_UNITS - 1))


class Examples:
    """Rows of features with their targets, clipped and rounded for exact sums.

    A row with a norm above `feature_norm` is shortened to it. With `intercept`, a last feature is 1 in every row and is
    part of the norm. Features are first shifted by `offset` and multiplied by `scale`, column by column, and then
    clamped to ±`most`. A row with a value that is infinite or not a number counts as zeros.
    """

    def __init__(
        self,
        features: Any,
        targets: Any,
        *,
        feature_norm: Number = 1,
        intercept: bool = True,
        offset: Any = None,
        scale: Any = None,
        most: float | None = None,
    ) -> None:
        rows = features if on_device(features) else table(features)
        if rows.ndim != 2 or rows.shape[1] < 1:
            raise InvalidArgument(
                "Features must be a table of rows and columns: an array of two dimensions.", code="wrong-shape"
            )
        self.intercept, self.norm = bool(intercept), check_bound(feature_norm, "feature_norm")
        self.columns = int(rows.shape[1])
        self._bits = min(20, (52 - math.ceil(math.log2(self.columns))) // 2)
        known = targets if on_device(targets) and not is_numpy(rows) else column_of_doubles(targets)
        goal = known if is_numpy(rows) else to_device_of(known, rows)
        if goal.shape != (rows.shape[0],):
            raise InvalidArgument("There must be one target for each row.", code="wrong-shape")
        self.count = int(rows.shape[0])
        self._fill(rows, goal, offset, scale, most)

    def _fill(self, rows: Any, goal: Any, *columns: Any) -> None:
        xp, count = namespace(rows), self.count
        # a GPU gets whole blocks, with at least one row past the end; such rows are 0 and do not count
        padded = count if is_numpy(rows) else (count // BLOCK + 1) * BLOCK
        like = {"dtype": xp.float64} if xp.__name__ != "torch" else {"dtype": xp.float64, "device": rows.device}
        self._rows = xp.zeros((padded, self.columns), **like)
        self._worth, self._inverse, self._goal = (xp.zeros((padded,), **like) for _ in range(3))
        for start in range(0, count, BLOCK):
            part = slice(start, min(start + BLOCK, count))
            with np.errstate(all="ignore"):  # a warning would reveal something about a cell
                found = self._whole(rows[part], goal[part], *columns)
            self._rows[part], self._worth[part], self._inverse[part] = found
            self._goal[part] = xp.where(xp.isfinite(goal[part]), goal[part], xp.zeros_like(goal[part]))

    def _whole(self, rows: Any, goal: Any, offset: Any, scale: Any, most: float | None) -> tuple[Any, Any, Any]:
        """Rows as integers, the value of 1 in each row after clipping, and 1/norm of the row (0 if it is left out)."""
        xp, norm = namespace(rows), float_up(self.norm)
        block = doubles(rows) if offset is None else scaled(rows, offset, scale, most)
        kept = xp.isfinite(block).all(1) & xp.isfinite(goal)
        block = xp.clip(xp.where(kept[:, None], block, xp.zeros_like(block)), -(2.0**1000), 2.0**1000)
        _, exponent = xp.frexp(xp.clip(xp.amax(xp.abs(block), 1), norm, None))
        fine = xp.exp2(doubles(self._bits - exponent))
        whole = xp.round(block * fine[:, None])
        length = xp.sqrt((whole * whole).sum(1)) / fine  # squares of integers: the sum is exact in any order
        shorter = norm / xp.clip(length, norm, None)
        size = xp.sqrt((length * shorter) ** 2 + (1.0 if self.intercept else 1e-300))
        return whole, shorter / fine, flags_to_numbers(kept, size) / size

    def __reduce__(self) -> Any:
        raise InvalidArgument(
            "The rows of a model cannot be pickled: they are private. Pickle the fitted model.", code="not-pickled"
        )

    def __repr__(self) -> str:
        return f"<Examples of {self.columns} features>"

    @property
    def dimension(self) -> int:
        """The number of weights of a score, including the intercept."""
        return self.columns + self.intercept

    def plain(self) -> PlainRows:
        """The clipped rows, with the column of the intercept last. Zeros for rows that are left out."""
        kept = on_host(self._inverse) > 0
        rows = on_host(self._rows) * on_host(self._worth)[:, None]
        columns = np.column_stack([rows, kept]) if self.intercept else rows
        return PlainRows(columns.astype(np.float64), on_host(self._goal))

    @property
    def large(self) -> bool:
        """Whether summing rows on several threads is faster."""
        return bool(self._rows.shape[0] * self.columns >= 2**20)

    def sample(self, chosen: NDArray[np.bool_]) -> Examples:
        """The chosen rows only."""
        part = object.__new__(Examples)
        part.intercept, part.norm, part.columns, part._bits = self.intercept, self.norm, self.columns, self._bits
        index = np.flatnonzero(chosen)
        part.count = len(index)
        places: Any = index
        if not is_numpy(self._rows):
            places = indices_to_device_of(np.append(index, np.full(BLOCK - len(index) % BLOCK, self.count)), self._rows)
        for name in ("_rows", "_worth", "_inverse", "_goal"):
            setattr(part, name, getattr(self, name)[places])
        return part

    def sums(self, weights: NDArray[np.float64], loss: Loss | Softmax, clip: Number) -> NDArray[Any]:
        """The sum of clipped gradients at these weights, in units of `unit_of(clip)`, in the shape of the weights.

        Promise: the contribution of one row has an L2 norm of at most the clip and depends only on the row and the
        weights.
        """
        matrix = np.atleast_2d(np.asarray(weights, dtype=np.float64))
        step = self._step(matrix, loss, clip)
        total = np.zeros(matrix.shape, dtype=np.int64 if self.count <= MACHINE_ROWS else object)
        for part in self._parts(step):
            total += part.astype(total.dtype)
        return total.reshape(np.shape(weights))

    def judged(self, weights: NDArray[np.float64], judge: Callable[[Any, Any], Any]) -> int:
        """The sum of the integers that `judge` gives each row for its scores (classes × rows) and target. 0 for a row
        that is left out.

        Scores are exact, so the number of one row does not depend on other rows.
        """
        step, total = self._step(np.atleast_2d(np.asarray(weights, dtype=np.float64)), None, 1), 0
        for start in range(0, int(self._rows.shape[0]), BLOCK):
            part = slice(start, start + BLOCK)
            marks = judge(self._scores(part, step), self._goal[part])
            marks = namespace(marks).where(marks == marks, marks, namespace(marks).zeros_like(marks))
            total += int(integers(marks * flags_to_numbers(self._inverse[part] > 0, self._goal[part])).sum())
        return total

    def _step(self, matrix: NDArray[np.float64], loss: Any, clip: Number) -> _Step:
        coarse = self._coarse(matrix[:, : self.columns])
        constant = matrix[:, self.columns] if self.intercept else np.zeros(len(matrix))
        return _Step(loss, float(exactly(clip)), float(1 / unit_of(clip)), coarse, constant)

    def _coarse(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weights rounded to multiples of 2^-p, with the finest p for which a score stays below 2^53 of them."""
        largest = float(np.abs(weights).max(initial=0))
        if not 0 < largest < 2.0**500:  # public numbers; descent keeps weights far below
            return np.zeros_like(weights)
        _, exponent = math.frexp(largest)
        longest = float(np.sqrt((np.ldexp(weights, -exponent) ** 2).sum(1).max()))
        room = 51 - self._bits - math.ceil(math.log2(self.columns) / 2) - math.frexp(longest)[1] - exponent
        return np.ldexp(np.rint(np.ldexp(weights, room)), -room)

    def _parts(self, step: _Step) -> Iterator[NDArray[np.int64]]:
        count, wide = int(self._rows.shape[0]), not is_numpy(self._rows)
        workers = 1 if wide or not self.large else min(os.cpu_count() or 1, -(-count // BLOCK))
        many = BLOCK * _MANY if wide else -(-count // (workers * -(-count // (workers * BLOCK)))) if count else 1
        blocks = [slice(start, min(start + many, count)) for start in range(0, count, many)]
        if workers == 1:
            yield from (self._block(part, step) for part in blocks)
            return
        spans = [blocks[i * len(blocks) // workers : (i + 1) * len(blocks) // workers] for i in range(workers)]
        with ThreadPoolExecutor(workers) as pool:
            for parts in pool.map(lambda span: list(self._span(span, step)), spans):
                yield from parts

    def _span(self, blocks: list[slice], step: _Step) -> Iterator[NDArray[np.int64]]:
        for start in range(0, len(blocks), _MANY):  # 512 blocks of 2^53 still fit in 64 bits
            together = blocks[start : start + _MANY]
            total = self._block(together[0], step)
            for part in together[1:]:
                total += self._block(part, step)
            yield total

    def _block(self, part: slice, step: _Step) -> NDArray[np.int64]:
        rows, worth, xp = self._rows[part], self._worth[part], namespace(self._rows)
        slopes = step.clipped(self._scores(part, step), self._goal[part], self._inverse[part]) * step.fine
        sums = _exact_sums(xp.trunc(slopes * worth), rows)
        if not self.intercept:
            return sums
        constant = _exact_sums(xp.trunc(slopes), None)
        return np.concatenate([sums, constant[:, None]], axis=1)

    def _scores(self, part: slice, step: _Step) -> Any:
        rows = self._rows[part]
        scores = _products(to_device_of(step.weights, rows), rows)
        scores *= self._worth[part]
        scores += to_device_of(step.constant, rows)[:, None]
        return scores


class PlainRows(NamedTuple):
    """Clipped rows and targets, for mechanisms that minimize over them."""

    X: NDArray[np.float64]
    y: NDArray[np.float64]


class _Step:
    """The parts of one pass that are the same for all rows: integer weights, the loss and the clip."""

    def __init__(self, loss: Any, clip: float, units: float, weights: Any, constant: Any) -> None:
        self.loss, self.clip, self.weights, self.constant = loss, clip, weights, constant
        self.fine = units * (1 - 2.0**-45)  # more than the rounding of the few floating-point steps of a row

    def clipped(self, scores: Any, goal: Any, inverse: Any) -> Any:
        """Slopes, clipped so that no slope times the norm of its row exceeds the clip: min(1, C/(|r|·‖x‖))·r."""
        xp, most = namespace(scores), self.clip * inverse
        if not isinstance(self.loss, Softmax):
            slopes = self.loss.derivative(scores[0], goal)
            slopes = xp.where(slopes == slopes, slopes, xp.zeros_like(slopes))
            return xp.minimum(xp.maximum(slopes, -most), most)[None, :]
        slopes = self.loss.residuals(scores, goal)
        slopes = xp.where(slopes == slopes, slopes, xp.zeros_like(slopes))
        squared = slopes[0] * slopes[0]
        for one in slopes[1:]:
            squared = squared + one * one
        long = xp.sqrt(squared)
        return slopes * xp.where(long > most, most / xp.where(long > 0, long, xp.ones_like(long)), xp.ones_like(long))


def row_norm(feature_norm: Number, intercept: bool) -> Fraction:
    """The largest norm of a row, rounded up: √(feature_norm² + 1) with an intercept."""
    return sqrt_up(exactly(feature_norm) ** 2 + (1 if intercept else 0)) * (1 + Fraction(1, 2**40))


def _products(weights: Any, rows: Any) -> Any:
    """weights × rowsᵀ, classes × rows."""
    return (rows @ weights[0])[None, :] if weights.shape[0] == 1 else weights @ rows.T


def _exact_sums(whole: Any, rows: Any) -> NDArray[np.int64]:
    """The sum over rows of whole × rows, or of whole alone, in blocks that doubles add exactly."""
    xp = namespace(whole)
    if whole.shape[1] <= BLOCK:
        if rows is None:
            return on_host(whole.sum(1)).astype(np.int64)
        if is_numpy(rows):  # `@` blocks the other threads if its result is short, and `dot` never does
            return np.atleast_2d(np.dot(whole[0] if len(whole) == 1 else whole, rows)).astype(np.int64)
        sums = (whole[0] @ rows)[None, :] if whole.shape[0] == 1 else whole @ rows
        return on_host(sums).astype(np.int64)
    blocks = whole.reshape(whole.shape[0], -1, BLOCK)  # arrays on a GPU are padded to whole blocks
    if rows is None:
        sums = blocks.sum(2)
    else:
        sums = xp.swapaxes(xp.matmul(xp.swapaxes(blocks, 0, 1), rows.reshape(-1, BLOCK, rows.shape[1])), 0, 1)
    return on_host(integers(sums).sum(1))


def one_product_at_a_time(value: Any) -> AbstractContextManager[None]:
    """Use only our own threads while many rows are summed. Products are small, so threads of numpy would only wait."""
    return one_thread() if getattr(value, "large", False) else nullcontext()
