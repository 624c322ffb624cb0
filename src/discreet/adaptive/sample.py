"""A sample of rows, and exact integer sums of a question's values over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.adaptive.guarded import GuardedColumn, GuardedRows
from discreet.errors import DiscreetError, InvalidArgument
from discreet.exact.rational import exactly
from discreet.mechanisms.adaptive.means import QUANTUM
from discreet.mechanisms.sampling import random_order
from discreet.rows import doubles

Question = Callable[[Any], Any]
_BLOCK = 2**15
_ROUNDING = 1.5 * 2.0**52 * float(QUANTUM)
"""Adding and taking away this rounds a number of [0,1] to a multiple of `QUANTUM`; its bits then count quanta."""
_BITS_OF_ONE = int(np.float64(1.0).view(np.uint64))
_BITS_OF_ROUNDING = int(np.float64(_ROUNDING).view(np.int64))


class SampleRows(Mapping[str, Any]):
    """Columns by name, as arrays whose first axis is the rows. A question reads these."""

    def __init__(self, columns: Mapping[str, Any], where: slice = slice(None)) -> None:
        self._columns, self._where = columns, where

    def __getitem__(self, name: str) -> Any:
        return find_column(self._columns, name)[self._where]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def find_column(columns: Mapping[str, Any], name: Any) -> Any:
    """A column. Raises an error that lists the available ones."""
    if name not in columns:
        raise InvalidArgument(
            f"Unknown column {name}. The columns are: {', '.join(map(str, columns))}.", code="unknown-column"
        )
    return columns[name]


class Sample:
    """A fixed number of rows to ask about. Under a ledger, only functions of single rows can be asked.

    If there are more rows than `size`, `size` of them are chosen at random. A missing row counts as 0. `mixed` rows are
    in a random order, so a slice of them is also a sample, even if the rows were sorted.
    """

    def __init__(
        self,
        columns: Mapping[str, NDArray[Any]],
        size: int | None = None,
        *,
        guarded: bool = False,
        mixed: bool = False,
    ) -> None:
        rows = len(next(iter(columns.values())))
        self.size, self._guarded = rows if size is None else size, guarded
        if rows > self.size or mixed:
            kept = random_order(rows)[: self.size]
            columns = {name: column[kept] for name, column in columns.items()}
        self._columns, self._rows = {name: _read_only(column) for name, column in columns.items()}, min(rows, self.size)

    def __repr__(self) -> str:
        return f"<Sample of {self.size} rows: {', '.join(self._columns)}>"

    def total(self, question: Question, between: tuple[Any, Any] = (0, 1), where: slice = slice(None)) -> int:
        """The sum over the rows of the question's value for each, scaled to [0,1], in integer multiples of
        `QUANTUM`.
        """
        low, high = validate_range(between)
        values = self._asked(question, where)
        expected = len(range(*where.indices(self._rows)))
        if values.shape == (expected, 1):
            values = values[:, 0]
        if values.shape != (expected,):
            raise InvalidArgument(
                "A question must return one number for each row: an array with one dimension.", code="study-question"
            )
        if values.dtype.kind not in "biuf":
            raise InvalidArgument("A question must return numbers, or True and False.", code="study-question")
        return exact_total(values, low, high)

    def _asked(self, question: Question, where: slice) -> NDArray[Any]:
        if not callable(question):
            raise InvalidArgument(
                'A question must be a function of rows, such as lambda rows: rows["age"] > 40.', code="study-question"
            )
        if not self._guarded:
            return self._evaluate(question, where)
        said = question(GuardedRows(self._columns))
        if not isinstance(said, GuardedColumn):
            raise InvalidArgument(
                'Under a ledger, a question must compute with columns: lambda rows: rows["age"] > 40.',
                code="study-question",
            )
        return said._opened()

    def _evaluate(self, question: Question, where: slice) -> NDArray[Any]:
        """The question's values for all rows at once. If a cell stops it, for each row separately, without a trace of
        that.
        """
        failed = False
        try:
            with np.errstate(all="ignore"):
                return _numbers(question(SampleRows(self._columns, where)))
        except DiscreetError:
            raise
        except (TypeError, ValueError, ArithmeticError):  # of a comparison; other errors are the question's own
            failed = True
        found = np.full(len(places := range(*where.indices(self._rows))), np.nan)
        for number, place in enumerate(places if failed else ()):
            try:
                [found[number]] = _numbers(question(SampleRows(self._columns, slice(place, place + 1)))).ravel()
            except Exception:
                found[number] = np.nan
        return found


def _numbers(said: Any) -> NDArray[Any]:
    """The question's values: an array as it is, or each number of a list by itself, with NaN for anything else."""
    return doubles(said) if isinstance(said, list | tuple) else np.asarray(said)


def _read_only(column: NDArray[Any]) -> NDArray[Any]:
    """A column that no question can write to. Whether writing is possible must not reveal that rows were left out."""
    fixed = column.view()
    fixed.flags.writeable = False
    return fixed


def validate_range(between: Any) -> tuple[float, float]:
    """Two public bounds, the smaller one first."""
    if not isinstance(between, tuple | list) or len(between) != 2:
        raise InvalidArgument("between must be a pair of public ends, such as (0, 1).", code="wrong-type")
    low, high = (float(exactly(end, "between")) for end in between)
    if not low < high or high - low == np.inf:
        raise InvalidArgument("between must be two finite numbers, the smaller one first.", code="ends-out-of-order")
    return low, high


def exact_total(values: NDArray[Any], low: float = 0.0, high: float = 1.0) -> int:
    """The exact sum of values scaled from [low, high] to [0,1], each rounded to `QUANTUM` by itself.

    A value that is not a number counts as `low`. Sums of this few multiples of 2^-20 are exact in double precision in
    any order.
    """
    if values.dtype.kind == "b":
        if (low, high) == (0.0, 1.0):
            return int(np.count_nonzero(values)) * QUANTUM.denominator
        values = values.astype(np.float64)
    room, total = np.empty(min(_BLOCK, len(values))), 0.0
    plain = (low, high) == (0.0, 1.0)
    quick = plain and values.dtype == np.float64 and values.flags.c_contiguous
    for start in range(0, len(values), _BLOCK):
        block = values[start : start + _BLOCK]
        part = room[: len(block)]
        if (
            quick and block.view(np.uint64).max() <= _BITS_OF_ONE
        ):  # all in [0,1]: negative and odd ones have larger bits
            np.add(block, _ROUNDING, out=part)
            counted = int(part.view(np.int64).sum()) - len(block) * _BITS_OF_ROUNDING  # wraps, and is small
            total += (counted % 2**64) * float(QUANTUM)
            continue
        with np.errstate(all="ignore"):
            if plain:
                np.fmax(block, 0.0, out=part)
            else:
                np.subtract(block, low, out=part, dtype=np.float64)
                np.divide(part, high - low, out=part)
                np.fmax(part, 0.0, out=part)
        np.fmin(part, 1.0, out=part)
        np.add(part, _ROUNDING, out=part)
        np.subtract(part, _ROUNDING, out=part)
        total += float(part.sum())  # below 2^33 rows, every partial sum is a whole number of quanta below 2^53
    return round(total * QUANTUM.denominator)
