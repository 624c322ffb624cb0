"""Rows that do not fit in memory: Parquet files, a dataset of Arrow, or whatever gives batches afresh on every pass.

What is public is looked at before the charge: paths, names and types of columns. Rows are read only behind the door.
What an engine says when it fails goes no further, as it may quote values, and no cell can make it fail.
"""

from __future__ import annotations

import glob
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.learn.base import column_of, table_of
from discreet.queries.arrays import on_host
from discreet.queries.stream import Batch
from discreet.rational import check_count

Targets = Callable[[Any], Any]

ONCE = (
    "The batches can be read only once, and every pass reads them afresh. Give a function that begins anew each time "
    "it is called: fit_batches(lambda: make_batches(), …)."
)
_CELLS = 2**22
"""Numbers in a batch that we cut ourselves."""


@dataclass(frozen=True)
class Batches:
    """Where rows come from: `read(targets)` begins a pass, and gives features with what `targets` makes of their
    labels.
    """

    features: int
    names: list[str] | None
    read: Callable[[Targets], Iterator[Batch]]
    count: Callable[[], int] | None = None


def opened(batches: Any, features: Any, target: str | None, ranges: Any = None) -> Batches:
    """Batches by what is public of them; nothing is read yet."""
    if target is not None and not isinstance(target, str):
        raise InvalidArgument("target must be the name of a column.")
    if _is_path(batches) or (isinstance(batches, list | tuple) and batches and all(map(_is_path, batches))):
        return _parquet(batches if isinstance(batches, list | tuple) else [batches], features, target)
    if type(batches).__module__ == "pyarrow._dataset" and hasattr(batches, "to_batches"):
        return _dataset(batches, features, target)
    return _given(batches, features, target, ranges)


def told(what: str) -> None:
    """One line of progress, over the one that counts the steps."""
    print(f"{what:<30}", file=sys.stderr, flush=True)


def _is_path(value: Any) -> bool:
    return isinstance(value, str | Path)


# --- Parquet files and datasets -----------------------------------------------------------------------------


def _parquet(paths: Sequence[str | Path], features: Any, target: str | None) -> Batches:
    from discreet.engines.words import listed, quoted

    shown = ", ".join(map(str, paths))
    # one schema for all files, known before the charge: a cell of a later file cannot fail to fit it
    source = f"read_parquet({listed([_pattern(path) for path in paths])}, union_by_name = true)"
    database = _database()
    try:
        with _scanned(database, f"SELECT * FROM {source} LIMIT 0") as reader:
            schema = reader.schema
    except _engine_errors():
        raise InvalidArgument(f"There are no Parquet files that can be read together at {shown}.") from None
    chosen, goal = _columns_of(schema, features, target)
    statement = f"SELECT {', '.join(map(quoted, [*chosen, goal]))} FROM {source}"

    def read(targets: Targets) -> Iterator[Batch]:
        with _quiet(), _scanned(database, statement, _rows(len(chosen))) as reader:
            for batch in reader:
                yield _from_arrow(batch, chosen, goal, targets)

    def count() -> int:
        with _quiet(), _scanned(database, f"SELECT count(*) AS rows FROM {source}") as reader:
            return int(reader.read_all().column(0)[0].as_py())

    return Batches(len(chosen), chosen, read, count)


def _pattern(path: str | Path) -> str:
    """What DuckDB takes for these files: all in a folder, one by its name, or those that match."""
    if "://" in str(path):
        return str(path)
    place = Path(path).expanduser()
    if place.is_dir():
        return f"{glob.escape(str(place.resolve()))}/**/*.parquet"
    return glob.escape(str(place.resolve())) if place.exists() else str(place)


def _database() -> Any:
    """DuckDB, set to read files once through: it keeps nothing of them, in no order."""
    import duckdb

    database = duckdb.connect(":memory:")
    known = {name for (name,) in database.execute("SELECT name FROM duckdb_settings()").fetchall()}
    for name in ("enable_external_file_cache", "preserve_insertion_order"):
        if name in known:  # not every version has them
            database.execute(f"SET {name} = false")
    return database


@contextmanager
def _scanned(database: Any, statement: str, rows: int = 2**16) -> Iterator[Any]:
    """An answer that is read piece by piece, while the engine holds no more than it needs to be ahead."""
    with database.cursor() as cursor:
        relation = cursor.sql(statement)
        yield (getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader)(rows)  # its former name


def _engine_errors() -> tuple[type[BaseException], ...]:
    import pyarrow as pa

    duckdb = sys.modules.get("duckdb")  # a dataset of Arrow is read without it
    return (pa.ArrowException, RuntimeError, OSError, *([] if duckdb is None else [duckdb.Error]))


@contextmanager
def _quiet() -> Iterator[None]:
    """What an engine says when it fails stays here."""
    from discreet.engines.engine import EngineFailed

    try:
        yield
    except _engine_errors():
        raise EngineFailed("The files cannot be read to the end. Why is not shown, as it may quote values.") from None


def _dataset(dataset: Any, features: Any, target: str | None) -> Batches:
    if type(getattr(dataset, "format", None)).__name__ in ("CsvFileFormat", "JsonFileFormat"):
        raise InvalidArgument("Files of text have no types, and a cell could stop the fit: write them as Parquet.")
    chosen, goal = _columns_of(dataset.schema, features, target)

    def read(targets: Targets) -> Iterator[Batch]:
        with _quiet():
            for batch in dataset.to_batches(columns=[*chosen, goal], batch_size=_rows(len(chosen))):
                yield _from_arrow(batch, chosen, goal, targets)

    def count() -> int:
        with _quiet():
            return int(dataset.count_rows())

    return Batches(len(chosen), chosen, read, count)


def _rows(features: int) -> int:
    """How many rows a batch has."""
    return int(min(2**17, max(2**13, _CELLS // (features + 1))))


def _columns_of(schema: Any, features: Any, target: str | None) -> tuple[list[str], str]:
    """The names of the features and of the target, once they are known to be there and of a right type."""
    if target is None:
        raise InvalidArgument("Say which column is to be learned: target=….")
    if features is None:
        features = [name for name in schema.names if name != target]
    chosen = _named(features)
    if chosen is None:
        raise InvalidArgument("Say which columns are the features by their names: features=[…].")
    _check_there(schema.names, [*chosen, target])
    for name in chosen:
        if not _is_number(schema.field(schema.names.index(name)).type):
            raise InvalidArgument(f"The feature {name} is not a number. Encode it with declared categories first.")
    return chosen, target


def _named(features: Any) -> list[str] | None:
    """Features as a list of names, where they are one."""
    if isinstance(features, str):
        features = [features]
    if not isinstance(features, Sequence | np.ndarray) or not all(isinstance(name, str) for name in features):
        return None
    names = [str(name) for name in features]
    if not names or len(set(names)) != len(names):
        raise InvalidArgument("features must name at least one column, and none twice.")
    return names


def _check_there(there: Sequence[str], wanted: list[str]) -> None:
    if missing := [name for name in wanted if name not in there]:
        raise InvalidArgument(f"There is no column {', '.join(missing)}. There are: {', '.join(there)}.")
    if len(set(wanted)) != len(wanted):
        raise InvalidArgument("The target is among the features. Name each column once.")


# --- whatever gives batches ---------------------------------------------------------------------------------


def _given(batches: Any, features: Any, target: str | None, ranges: Any) -> Batches:
    if _is_arrow(batches):
        batches = [batches]
    if isinstance(batches, Iterator) or hasattr(batches, "read_next_batch"):
        raise InvalidArgument(ONCE)
    if hasattr(batches, "__array__") or not (_called_without_arguments(batches) or isinstance(batches, Iterable)):
        raise InvalidArgument(
            "batches must be the path of Parquet files, a dataset of Arrow, or a function without arguments that "
            "returns batches: pairs (X, y), or record batches of Arrow."
        )
    if isinstance(batches, list | tuple):
        for batch in batches:
            _check_batch(batch)
    names = _named(features)
    width = features if names is None else len(names)
    if width is None and hasattr(ranges, "__len__"):
        width = len(ranges)
    if width is None:
        raise InvalidArgument("Say what the features are before they are read: features=[…], or how many there are.")
    return Batches(check_count(width, "features"), names, _Passes(batches, names, target).read)


def _called_without_arguments(function: Any) -> bool:
    if not callable(function):
        return False
    try:
        inspect.signature(function).bind()
    except TypeError:
        return False
    except ValueError:  # some functions do not tell
        return True
    return True


class _Passes:
    """Passes over batches that come from the caller, each begun anew."""

    def __init__(self, batches: Any, names: list[str] | None, target: str | None) -> None:
        self._batches, self._names, self._target = batches, names, target
        self._last: Any = None
        self._some = False

    def read(self, targets: Targets) -> Iterator[Batch]:
        come = self._begun()
        some = False
        for batch in come:
            some = True
            _check_batch(batch)
            yield self._columns(batch, targets) if _is_arrow(batch) else self._pair(batch, targets)
        if self._some and not some:  # a new iterator around an old one that has ended
            raise InvalidArgument(ONCE)
        self._some = some

    def _begun(self) -> Iterator[Any]:
        come = self._batches() if callable(self._batches) else self._batches
        if not isinstance(come, Iterable):
            raise InvalidArgument("The function that gives the batches must return them: an iterator, or yield.")
        begun = iter(come)
        if begun is self._last:
            raise InvalidArgument(ONCE)
        self._last = begun
        return begun

    def _pair(self, batch: Any, targets: Targets) -> Batch:
        # cells of a list stay as they are: text among them does not make text of the others
        features, labels = (np.array(one, dtype=object) if isinstance(one, list | tuple) else one for one in batch)
        table, _ = table_of(features)
        return table, on_host(targets(column_of(labels, "fit_batches")))

    def _columns(self, batch: Any, targets: Targets) -> Batch:
        if self._names is None or self._target is None:
            raise InvalidArgument("Record batches need the names of their columns: features=[…], target=….")
        _check_there(batch.schema.names, [*self._names, self._target])
        return _from_arrow(batch, self._names, self._target, targets)


def _check_batch(batch: Any) -> None:
    if not _is_arrow(batch) and not (isinstance(batch, list | tuple) and len(batch) == 2):
        raise InvalidArgument("A batch must be a pair (X, y) or a record batch of Arrow.")


def _is_arrow(batch: Any) -> bool:
    return hasattr(batch, "schema") and hasattr(batch, "column")


# --- columns of Arrow ---------------------------------------------------------------------------------------


def _from_arrow(batch: Any, names: list[str], target: str, targets: Targets) -> Batch:
    place = batch.schema.names.index
    columns = [_doubles(batch.column(place(name))) for name in names]
    table = np.empty((batch.num_rows, len(names)), dtype=np.result_type(*columns))
    for number, column in enumerate(columns):
        table[:, number] = column
    return table, _goals(batch.column(place(target)), targets)


def _doubles(column: Any) -> NDArray[Any]:
    """A column as numbers, NaN where there is none; a column of anything else has none."""
    import pyarrow as pa

    if not _is_number(column.type):
        return np.full(len(column), np.nan, dtype=np.float32)
    kind = pa.float32() if column.type == pa.float32() else pa.float64()
    return np.asarray(_plain(column).cast(kind, safe=False).to_numpy(zero_copy_only=False))


def _goals(column: Any, targets: Targets) -> NDArray[np.float64]:
    """Targets of a column of numbers or text, NaN where it has neither: a cell's target depends on that cell alone."""
    import pyarrow as pa

    column = _plain(column)
    missing = np.asarray(column.is_null().to_numpy(zero_copy_only=False), dtype=bool)
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    if _is_number(column.type):
        if pa.types.is_decimal(column.type):
            column = column.cast(pa.float64(), safe=False)
        values = column.fill_null(pa.scalar(0).cast(column.type)).to_numpy(zero_copy_only=False)
    elif column.type in (pa.string(), pa.large_string(), pa.string_view()):
        values = np.array([_text(cell) for cell in column.cast(pa.large_binary()).to_pylist()], dtype=object)
    else:
        return np.full(len(column), np.nan)
    return np.where(missing, np.nan, on_host(targets(values)))


def _text(cell: bytes | None) -> str:
    return "" if cell is None else cell.decode(errors="replace")


def _plain(column: Any) -> Any:
    """A column without a dictionary."""
    import pyarrow as pa

    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _is_number(kind: Any) -> bool:
    """Whether a type of Arrow is one of numbers; one of nothing but NULL is, since any may look so."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    are = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal, pa.types.is_null)
    return any(one(kind) for one in are)
