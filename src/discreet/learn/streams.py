"""Rows that do not fit in memory: Parquet files, an Arrow dataset, or anything that yields batches again on every pass.

The rows of a Spark DataFrame stay where they are: see `engines/spark/dataframes.py`.

Public facts are read before the charge: paths, names and types of columns. Rows are read only behind the door. Error
messages of an engine are not passed on, because they may quote values, and no cell can make the engine fail.
"""

from __future__ import annotations

import glob
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from discreet.engines.spark.dataframes import Partitions, kinds_of, partitions_of
from discreet.errors import EngineFailed, InvalidArgument
from discreet.exact.rational import check_count
from discreet.learn.automatic import is_auto
from discreet.learn.base import column_of, table_of
from discreet.rows.arrays import is_spark_dataframe
from discreet.rows.arrow import Batch, Targets, from_arrow, is_number
from discreet.rows.containers import Data, on_host
from discreet.rows.gradients.stream import Stream
from discreet.rows.rounding import RoundedBatches

ONCE = (
    "These batches can be read only once, but every pass reads them again. Pass a function that starts over each time "
    "it is called: fit_batches(lambda: make_batches(), …)."
)
_CELLS = 2**22
"""Numbers in a batch that we cut ourselves."""


@dataclass(frozen=True)
class Batches:
    """A source of rows: `read(targets)` begins a pass, and yields features with the result of `targets` for their
    labels.
    """

    features: int
    names: list[str] | None
    read: Callable[[Targets], Iterator[Batch]]
    count: Callable[[], int] | None = None
    here: ClassVar[bool] = True

    def stream(self, targets: Targets, **kept: Any) -> Stream:
        """The rows for noisy descent."""
        return Stream(lambda: self.read(targets), columns=self.features, count=self.count, **kept)

    def rounded(self, targets: Targets, **bounds: Any) -> RoundedBatches:
        """The rows for exact moments."""
        return RoundedBatches(self.summing(targets), columns=self.features, **bounds)

    def summing(self, targets: Targets) -> Callable[[Any], list[Any]]:
        """What runs a function on all batches."""
        return lambda work: list(work(self.read(targets)))


def open_batches(
    batches: Data, features: Any, target: str | None, ranges: Any = None, *, labelled: bool = True
) -> Batches | Partitions:
    """Batches, checked by their public facts. Nothing is read yet."""
    if target is not None and not isinstance(target, str):
        raise InvalidArgument("target must be the name of a column.", code="wrong-type")
    if isinstance(batches, Partitions):
        return batches
    if is_spark_dataframe(batches):
        return _frame(batches, features, target, labelled)
    if _is_path(batches) or (isinstance(batches, list | tuple) and batches and all(map(_is_path, batches))):
        return _parquet(batches if isinstance(batches, list | tuple) else [batches], features, target, labelled)
    if type(batches).__module__ == "pyarrow._dataset" and hasattr(batches, "to_batches"):
        return _dataset(batches, features, target, labelled)
    return _from_function(batches, features, target, ranges, labelled)


def _frame(frame: Any, features: Any, target: str | None, labelled: bool) -> Partitions:
    kinds = kinds_of(frame)
    numbers = {name for name, kind in kinds if kind == "number"}
    chosen, goal = _columns_of([name for name, _ in kinds], numbers, features, target, labelled)
    return partitions_of(frame, chosen, goal)


def show_progress(what: str) -> None:
    """One line of progress, which overwrites the line that counts the steps."""
    print(f"{what:<30}", file=sys.stderr, flush=True)


def _is_path(value: Any) -> bool:
    return isinstance(value, str | Path)


# --- Parquet files and datasets -----------------------------------------------------------------------------


def _parquet(paths: Sequence[str | Path], features: Any, target: str | None, labelled: bool) -> Batches:
    from discreet.engines.duckdb.dialect import list_texts, quote
    from discreet.engines.parquet_files import TOTAL

    shown = ", ".join(map(str, paths))
    # one schema for all files, known before the charge, so every cell of a later file fits it
    source = f"read_parquet({list_texts([_pattern(path) for path in paths])}, union_by_name = true, {TOTAL})"
    database = _database()
    try:
        with _scan(database, f"SELECT * FROM {source} LIMIT 0") as reader:
            schema = reader.schema
    except _engine_errors():
        raise InvalidArgument(
            f"No Parquet files that can be read together were found at {shown}. Name files with the same columns.",
            code="file-not-readable",
        ) from None
    chosen, goal = _columns_of(schema.names, _numbers_of(schema), features, target, labelled)
    wanted = chosen if goal is None else [*chosen, goal]
    statement = f"SELECT {', '.join(map(quote, wanted))} FROM {source}"

    def read(targets: Targets) -> Iterator[Batch]:
        with _quiet(), _scan(database, statement, _rows(len(chosen))) as reader:
            for batch in reader:
                yield from_arrow(batch, targets, names=chosen, target=goal)

    def count() -> int:
        with _quiet(), _scan(database, f"SELECT count(*) AS rows FROM {source}") as reader:
            return int(reader.read_all().column(0)[0].as_py())

    return Batches(len(chosen), chosen, read, count)


def _pattern(path: str | Path) -> str:
    """The pattern that DuckDB uses for these files: all in a folder, one by its name, or those that match."""
    if "://" in str(path):
        return str(path)
    place = Path(path).expanduser()
    if place.is_dir():
        return f"{glob.escape(str(place.resolve()))}/**/*.parquet"
    return glob.escape(str(place.resolve())) if place.exists() else str(place)


def _database() -> Any:
    """DuckDB, configured to read files once: it caches nothing, and keeps no order."""
    import duckdb

    database = duckdb.connect(":memory:")
    known = {name for (name,) in database.execute("SELECT name FROM duckdb_settings()").fetchall()}
    for name in ("enable_external_file_cache", "preserve_insertion_order"):
        if name in known:  # not every version has these settings
            database.execute(f"SET {name} = false")
    return database


@contextmanager
def _scan(database: Any, statement: str, rows: int = 2**16) -> Iterator[Any]:
    """A result that is read piece by piece. The engine holds only what it needs to read ahead."""
    with database.cursor() as cursor:
        relation = cursor.sql(statement)
        yield (getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader)(rows)  # its former name


def _engine_errors() -> tuple[type[BaseException], ...]:
    import pyarrow as pa

    duckdb = sys.modules.get("duckdb")  # a dataset of Arrow is read without it
    return (pa.ArrowException, RuntimeError, OSError, *([] if duckdb is None else [duckdb.Error]))


@contextmanager
def _quiet() -> Iterator[None]:
    """Error messages of an engine are dropped here."""

    try:
        yield
    except _engine_errors():
        raise EngineFailed(
            "The files cannot be read to the end. The reason is not shown, because it may quote values."
        ) from None


def _dataset(dataset: Any, features: Any, target: str | None, labelled: bool) -> Batches:
    if type(getattr(dataset, "format", None)).__name__ in ("CsvFileFormat", "JsonFileFormat"):
        raise InvalidArgument(
            "Text files have no column types, so that one cell could stop the fit. Write the rows as Parquet.",
            code="learn-text-files",
        )
    chosen, goal = _columns_of(dataset.schema.names, _numbers_of(dataset.schema), features, target, labelled)
    wanted = chosen if goal is None else [*chosen, goal]

    def read(targets: Targets) -> Iterator[Batch]:
        with _quiet():
            for batch in dataset.to_batches(columns=wanted, batch_size=_rows(len(chosen))):
                yield from_arrow(batch, targets, names=chosen, target=goal)

    def count() -> int:
        with _quiet():
            return int(dataset.count_rows())

    return Batches(len(chosen), chosen, read, count)


def _rows(features: int) -> int:
    """How many rows a batch has."""
    return int(min(2**17, max(2**13, _CELLS // (features + 1))))


def _numbers_of(schema: Any) -> set[str]:
    return {field.name for field in schema if is_number(field.type)}


def _columns_of(
    there: Sequence[str], numbers: set[str], features: Any, target: str | None, labelled: bool
) -> tuple[list[str], str | None]:
    """The names of the features and of the target, after checking that they exist and have a supported type."""
    if target is None and labelled:
        raise InvalidArgument("Name the column to learn: target=….", code="learn-no-target")
    if features is None:
        features = [name for name in there if name != target]
    chosen = _feature_names(features)
    if chosen is None:
        raise InvalidArgument("Name the columns of the features: features=[…].", code="learn-no-features")
    _check_there(there, chosen if target is None else [*chosen, target])
    for name in chosen:
        if name not in numbers:
            raise InvalidArgument(
                f"The feature {name} is not a number. Encode it with declared categories first.",
                code="learn-feature-type",
            )
    return chosen, target


def _feature_names(features: Any) -> list[str] | None:
    """Features as a list of names, where they are one."""
    if isinstance(features, str):
        features = [features]
    if not isinstance(features, Sequence | np.ndarray) or not all(isinstance(name, str) for name in features):
        return None
    names = [str(name) for name in features]
    if not names or len(set(names)) != len(names):
        raise InvalidArgument("features must name at least one column, and none twice.", code="duplicates")
    return names


def _check_there(there: Sequence[str], wanted: list[str]) -> None:
    if missing := [name for name in wanted if name not in there]:
        raise InvalidArgument(
            f"Unknown column {', '.join(missing)}. The columns are: {', '.join(there)}.", code="unknown-column"
        )
    if len(set(wanted)) != len(wanted):
        raise InvalidArgument("The target is also among the features. Name each column once.", code="duplicates")


# --- whatever gives batches ---------------------------------------------------------------------------------


def _from_function(batches: Any, features: Any, target: str | None, ranges: Any, labelled: bool) -> Batches:
    if _is_arrow(batches):
        batches = [batches]
    if isinstance(batches, Iterator) or hasattr(batches, "read_next_batch"):
        raise InvalidArgument(ONCE, code="learn-batches-once")
    if hasattr(batches, "__array__") or not (_called_without_arguments(batches) or isinstance(batches, Iterable)):
        raise InvalidArgument(
            "batches must be a path of Parquet files, an Arrow dataset, a Spark DataFrame, or a function without "
            "arguments that returns batches: pairs (X, y) or Arrow record batches.",
            code="learn-batches",
        )
    if isinstance(batches, list | tuple):
        for batch in batches:
            _check_batch(batch, labelled)
    names = _feature_names(features)
    width = features if names is None else len(names)
    if width is None and not is_auto(ranges) and hasattr(ranges, "__len__"):
        width = len(ranges)
    if width is None:
        raise InvalidArgument(
            "Declare the features before the data is read: features=[…], or their number.", code="learn-no-features"
        )
    many = check_count(width, "features")
    return Batches(many, names, _Passes(batches, many, names, target, labelled).read)


def _called_without_arguments(function: Any) -> bool:
    if not callable(function):
        return False
    try:
        inspect.signature(function).bind()
    except TypeError:
        return False
    except ValueError:  # some functions have no signature
        return True
    return True


class _Passes:
    """Passes over batches from the caller. Each pass starts from the beginning."""

    def __init__(self, batches: Data, width: int, names: list[str] | None, target: str | None, labelled: bool) -> None:
        self._batches, self._width, self._names = batches, width, names
        self._target, self._labelled = target, labelled
        self._last: Any = None
        self._some = False

    def read(self, targets: Targets) -> Iterator[Batch]:
        come = self._begun()
        some = False
        for batch in come:
            some = True
            _check_batch(batch, self._labelled)
            yield self._columns(batch, targets) if _is_arrow(batch) else self._pair(batch, targets)
        if self._some and not some:  # a new iterator around an old one that has ended
            raise InvalidArgument(ONCE, code="learn-batches-once")
        self._some = some

    def _begun(self) -> Iterator[Any]:
        come = self._batches() if callable(self._batches) else self._batches
        if not isinstance(come, Iterable):
            raise InvalidArgument(
                "The function for batches must return an iterable of batches, or yield them.", code="learn-batches"
            )
        begun = iter(come)
        if begun is self._last:
            raise InvalidArgument(ONCE, code="learn-batches-once")
        self._last = begun
        return begun

    def _pair(self, batch: Any, targets: Targets) -> Batch:
        if not self._labelled:
            table, _ = table_of(batch, self._width, typed=False)  # a batch's dtype may follow from its cells
            return table, np.zeros(table.shape[0])
        table, _ = table_of(batch[0], self._width, typed=False)
        return table, on_host(targets(column_of(batch[1], "fit_batches")))

    def _columns(self, batch: Any, targets: Targets) -> Batch:
        if self._names is None or (self._labelled and self._target is None):
            raise InvalidArgument(
                "Arrow record batches need the names of their columns: features=[…], target=….",
                code="learn-no-features",
            )
        _check_there(batch.schema.names, [*self._names, *([] if self._target is None else [self._target])])
        return from_arrow(batch, targets, names=self._names, target=self._target)


def _check_batch(batch: Any, labelled: bool) -> None:
    if not _is_arrow(batch) and labelled and not (isinstance(batch, list | tuple) and len(batch) == 2):
        raise InvalidArgument("A batch must be a pair (X, y) or an Arrow record batch.", code="learn-batches")


def _is_arrow(batch: Any) -> bool:
    return hasattr(batch, "schema") and hasattr(batch, "column")
