"""Spark DataFrames by partition: executors read the rows, and only exact sums come back.

A pass runs a function on every partition. It yields integers, wide enough to add without rounding, so the partitioning
of the rows does not change the result. Errors in a pass stay there: the function never fails where a row could be
quoted, and Spark's messages about other failures are not passed on. Executors need this package.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet.engines.spark.dialect import quote
from discreet.engines.spark.sessions import frees_frames, in_time
from discreet.errors import EngineFailed, InvalidArgument
from discreet.guarantees.unit import Unit
from discreet.queries.counts import Count, CountingQuery, Histogram
from discreet.queries.numeric import Sum, VectorSum
from discreet.queries.sensitivity import Sensitivity
from discreet.rows.arrays import is_spark_dataframe
from discreet.rows.arrow import Batch, Targets, from_arrow, unlabelled
from discreet.rows.gradients.partitions import SpreadStream, Whole, Work
from discreet.rows.gradients.stream import Stream
from discreet.rows.rounding import RoundedBatches

Pass = Callable[[Iterator[Any], int], Iterable[bytes]]
"""From the record batches of a partition, and its number, to what comes back of it."""
Fold = Callable[[Iterator[bytes]], bytes]

FAILED = (
    "Spark cannot finish a pass over the rows. Why is not shown, as it may quote values. Every executor needs this "
    "package and its dependencies, in the Python that Spark runs."
)
UNLIKE = (
    "The executors do not compute alike: exp differs in its last bit, and a row's part would depend on where it is. "
    "Use executors of one kind, or set NPY_DISABLE_CPU_FEATURES for all of them."
)
COLUMNS = "Spark cannot find the columns of the DataFrame, or two have the same name. Give each its own name."
_NUMBERS = ("byte", "short", "integer", "long", "float", "double", "decimal", "boolean", "void")
_TEXTS = ("string", "char", "varchar")
_NARROW = 2**10
"""Sums of more numbers are added on executors first: the driver must not hold one for each partition."""
_REDUCERS = 8
_LOST, _ANY, _UNLIKE = b"lost", b"any", b"unlike"
_MOST = 2**100  # in whole units: 2^26 partitions of them still fit in 128 bits


# --- a pass -------------------------------------------------------------------------------------------------


@frees_frames
def run_on_partitions(
    frame: Any, work: Pass, *, alike: bool = False, then: Fold | None = None, timeout: int | None = None
) -> list[bytes]:
    """The result of `work` for each partition. With `then`, the parts are combined on a few executors.

    With `alike` the executors must agree on functions that are not exact, such as exp. `timeout` is in seconds.
    """

    def on_partition(batches: Iterable[Any]) -> Iterator[Any]:
        return _without_errors(
            lambda: [(_arithmetic() if alike else _ANY, part) for part in work(iter(batches), _partition_number())]
        )

    def on_parts(batches: Iterable[Any]) -> Iterator[Any]:
        assert then is not None
        return _without_errors(lambda: [_fold(batches, then)])

    schema = "mark binary, part binary"
    found: list[tuple[bytes, bytes]] | None = None
    try:
        with warnings.catch_warnings():  # Spark's warnings about versions of other packages
            warnings.simplefilter("ignore")
            spread = frame.mapInArrow(on_partition, schema)
            if then is not None:
                spread = spread.repartition(_REDUCERS).mapInArrow(on_parts, schema)
            with in_time(frame.sparkSession, timeout):
                found = [(bytes(row[0]), bytes(row[1])) for row in spread.collect()]
    except Exception:  # many kinds, from other machines; ours is raised outside, without a context
        found = None
    if found is None or any(mark == _LOST for mark, _ in found):
        raise EngineFailed(FAILED)
    marks = {mark for mark, _ in found} - {_ANY}
    if len(marks) > 1 or _UNLIKE in marks:
        raise EngineFailed(UNLIKE, code="spark-workers-differ")
    return [part for _, part in found]


def _without_errors(work: Callable[[], list[tuple[bytes, bytes]]]) -> Iterator[Any]:
    """The result of a partition. If anything fails it is empty and marked as failed, because Spark would log the
    reason.
    """
    import pyarrow as pa

    try:
        found = work()
    except Exception:
        found = [(_LOST, b"")]
    for mark, part in found:
        columns = [pa.array([mark], pa.binary()), pa.array([part], pa.binary())]
        yield pa.RecordBatch.from_arrays(columns, names=["mark", "part"])


def _fold(batches: Iterable[Any], then: Fold) -> tuple[bytes, bytes]:
    """The parts that arrived here combined into one, with the mark that they agree on."""
    marks: set[bytes] = set()

    def parts() -> Iterator[bytes]:
        for batch in batches:
            marks.update(batch.column(0).to_pylist())
            yield from batch.column(1).to_pylist()

    total = then(parts())
    marks -= {_ANY}
    return (_LOST if _LOST in marks else _UNLIKE if len(marks) > 1 else min(marks, default=_ANY)), total


def _partition_number() -> int:
    from pyspark import TaskContext

    here = TaskContext.get()
    return 0 if here is None else int(here.partitionId())


@lru_cache(maxsize=1)
def _arithmetic() -> bytes:
    """A digest of inexact functions at public points. It depends on the processor and on numpy's build."""
    found = [np.exp(np.linspace(-709, 709, 20_001)), np.exp2(np.arange(-1022.0, 1024.0))]
    return hashlib.sha256(b"".join(one.tobytes() for one in found)).digest()


# --- exact sums ---------------------------------------------------------------------------------------------


def sum_over_partitions(
    frame: Any, function: Callable[[Iterator[Any], int], Whole], *, alike: bool = False, timeout: int | None = None
) -> Whole:
    """The sum over all partitions of the integer arrays that `function` computes from their record batches.

    Promise: exact, whatever the partitions are. `function` must give arrays of the same shapes for any rows, also for
    none, and the parts of rows must add up.
    """
    shapes = [np.shape(part) for part in function(iter(()), 0)]
    width = sum(int(np.prod(shape)) for shape in shapes)

    def part(batches: Iterator[Any], place: int) -> Iterator[bytes]:
        yield _pack(function(batches, place))

    def fold(parts: Iterator[bytes]) -> bytes:
        low, high = _add(parts, width)
        return low.tobytes() + high.tobytes()

    then = fold if width > _NARROW else None
    total = _add(run_on_partitions(frame, part, alike=alike, then=then, timeout=timeout), width)
    whole = total[1].astype(object) * 2**64 + total[0].astype(object)
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
    return [one.reshape(shape) for one, shape in zip(np.split(whole, ends), shapes, strict=True)]


def _pack(parts: Whole) -> bytes:
    """Integers as 128 bits each: all low halves, then all high ones."""
    flat = [_whole(one) for part in parts for one in np.asarray(part, dtype=object).reshape(-1)]
    low = np.array([one & (2**64 - 1) for one in flat], dtype=np.uint64)
    return low.tobytes() + np.array([one >> 64 for one in flat], dtype=np.int64).tobytes()


def _whole(number: Any) -> int:
    whole = int(number)
    if whole != number or abs(whole) >= _MOST:
        raise InvalidArgument("A sum must be of whole numbers below 2^100.", code="out-of-range")
    return whole


def _add(blobs: Iterable[bytes], width: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    low, high = np.zeros(width, dtype=np.uint64), np.zeros(width, dtype=np.int64)
    for blob in blobs:
        if len(blob) != 16 * width:
            raise EngineFailed(FAILED)
        low = low + (more := np.frombuffer(blob, dtype=np.uint64, count=width))  # wraps around
        high = high + np.frombuffer(blob, dtype=np.int64, offset=8 * width) + (low < more)
    return low, high


# --- rows to learn from -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Partitions:
    """A DataFrame to learn from: `cells(batch, targets)` converts a batch to rows of `features` numbers, with targets.

    `names` are the names of the features. `cells` is sent to the executors: it must not hold the data or a ledger.
    """

    frame: Any
    features: int
    names: list[str] | None
    cells: Callable[[Any, Targets], Batch]
    timeout: int | None = None
    here: ClassVar[bool] = False

    def stream(self, targets: Targets, **kept: Any) -> Stream:
        """The rows for noisy descent. `targets` is also sent to the executors."""
        summed, gathered = partial(self.summed, targets), partial(self.gathered, targets)
        return SpreadStream(summed, gathered, columns=self.features, **kept)

    def rounded(self, targets: Targets, **bounds: Any) -> RoundedBatches:
        """The rows for exact moments."""
        return RoundedBatches(self.summing(targets), columns=self.features, **bounds)

    def summing(self, targets: Targets) -> Callable[[Any], Whole]:
        """What runs a function on all partitions and adds its results."""
        return partial(self.summed, targets)

    def summed(self, targets: Targets, work: Work, *, alike: bool = False) -> Whole:
        """Exact sums of the results of `work` on each partition."""
        return sum_over_partitions(self.frame, _on_rows(self.cells, targets, work), alike=alike, timeout=self.timeout)

    def gathered(self, targets: Targets, work: Callable[[Iterator[Batch], int], Iterable[bytes]]) -> list[bytes]:
        """All results of `work` on each partition."""
        return run_on_partitions(self.frame, _on_rows(self.cells, targets, work), timeout=self.timeout)


def _on_rows(cells: Any, targets: Targets, work: Any) -> Any:
    return lambda batches, place: work((cells(batch, targets) for batch in batches if batch.num_rows), place)


def kinds_of(frame: Any) -> list[tuple[str, str]]:
    """The names of the columns, each with its kind: "number", "text" or "other"."""
    fields = _analyze(lambda: [(field.name, field.dataType.typeName()) for field in frame.schema.fields])
    if frame.isStreaming:
        raise InvalidArgument(
            "A streaming DataFrame has no end. Give one that can be read repeatedly.", code="source-streaming"
        )
    kinds = dict.fromkeys(_NUMBERS, "number") | dict.fromkeys(_TEXTS, "text")
    return [(name, kinds.get(kind.partition("(")[0].partition(" ")[0], "other")) for name, kind in fields]


def partitions_of(frame: Any, features: Sequence[str], target: str | None) -> Partitions:
    """The named columns of a DataFrame. The features are numbers. A target of an unsupported type counts as missing."""
    kinds, names = kinds_of(frame), list(features)
    there = [name for name, _ in kinds]
    if any(there.count(name) > 1 for name in (names if target is None else [*names, target])):
        raise InvalidArgument(COLUMNS, code="source-columns")
    wanted = [quote(name) for name in names]
    if target is not None:
        known = (target, "other") not in kinds
        wanted.append(quote(target) if known else f"CAST(NULL AS DOUBLE) AS {quote(target)}")
    chosen = _analyze(lambda: _with_schema(frame.selectExpr(*wanted)))
    return Partitions(chosen, len(names), names, partial(from_arrow, names=names, target=target))


def _with_schema(frame: Any) -> Any:
    _ = frame.schema  # Connect looks at columns only now
    return frame


def _analyze(look: Callable[[], Any]) -> Any:
    found = None
    try:
        found = look()
    except Exception:
        found = None
    if found is None:
        raise InvalidArgument(COLUMNS, code="source-columns")
    return found


# --- a query of one's own -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ByPartition:
    """A query that adds up over rows, such as `VectorSum`, `Sum` or `Count`, on columns of a DataFrame.

    `dp.release(frame, noise, query=ByPartition(VectorSum(Ball(2, 1)), ["a", "b"]), ledger=ledger)`: the query
    runs on every partition, and the answers, integer multiples of its grain, are added exactly. The sensitivity is that
    of the query. Cells that are not numbers are NaN.
    """

    query: Any
    columns: Sequence[str]

    @property
    def space(self) -> Any:
        """The space of the query."""
        return self.query.space

    def __post_init__(self) -> None:
        if type(self.query) not in (Count, CountingQuery, Histogram, Sum, VectorSum):
            raise InvalidArgument(
                "Only counts, histograms and sums can be added over partitions. Use one of them.", code="not-additive"
            )

    def __call__(self, data: Any) -> Any:
        if not is_spark_dataframe(data):
            raise InvalidArgument("The data must be a DataFrame of Spark.", code="wrong-type")
        kinds = dict(kinds_of(data))
        if missing := [name for name in self.columns if kinds.get(name) != "number"]:
            raise InvalidArgument(
                f"Unknown column of numbers {', '.join(missing)}. Name one that exists, or cast it.",
                code="unknown-column",
            )
        known, query, width = partitions_of(data, self.columns, None), self.query, len(self.columns)
        grain, flat = getattr(query, "grain", 1), width == 1 and not isinstance(self.query, VectorSum)

        def asked(rows: Any) -> Any:
            return rows[:, 0] if flat else rows

        def work(batches: Iterator[Batch], place: int) -> Whole:
            total = query(asked(np.zeros((0, width))))
            for rows, _ in batches:
                total = total + query(asked(rows))
            return [np.asarray(np.asarray(total, dtype=object) / Fraction(grain), dtype=object)]

        [whole] = known.summed(unlabelled, work, alike=True)
        return whole * grain if whole.ndim else whole.item() * grain

    def sensitivity(self, unit: Unit, rows_per_person: int = 1) -> Sensitivity:
        """The sensitivity of the query."""
        found: Sensitivity = self.query.sensitivity(unit, rows_per_person)
        return found
