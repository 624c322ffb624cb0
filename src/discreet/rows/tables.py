"""Tables in memory. The kind of a column comes from the dtype of its container or from a declaration, never from its
cells.

A list, a tuple or an object column has no dtype. Without a declared kind it is text. Each cell is read by itself, and
is missing if it does not fit. No cell affects another cell, a kind, or whether the table can be read at all.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from discreet.errors import InvalidArgument
from discreet.rows.arrow import in_arrow
from discreet.rows.kinds import READERS

_DAYS = 2**31 - 1
_UNITS = ("s", "ms", "us", "ns")


@dataclass(frozen=True, repr=False)
class Cells:
    """A column without a dtype: its cells, or the distinct cells and the index of the cell of each row (−1: none)."""

    cells: Sequence[Any]
    places: Any = None

    def read(self, kind: str) -> Any:
        """The column as an Arrow array of this kind. Cells that do not fit are missing."""
        import pyarrow as pa

        reader, typed = READERS[kind]
        found = pa.array([reader(cell) for cell in self.cells], pa.type_for_alias(typed))
        return found if self.places is None else found.take(_places(self.places, len(found)))

    def __len__(self) -> int:
        return len(self.cells if self.places is None else self.places)


def columns_of(source: Any, name: str) -> dict[str, Any]:
    """The columns of a source in memory, each as an Arrow array or `Cells`. `name` is the name of the source, for
    errors.

    Columns with an unsupported dtype, such as complex numbers, are left out.
    """
    said = (
        f"The source of {name} must be a path, an Arrow table, a DataFrame, a DuckDB relation, or a dict of arrays "
        "and lists."
    )
    named = run_guarded(lambda: _columns_by_name(source), said)
    if named is None:
        raise InvalidArgument(said, code="not-a-table")
    columns = {column: _column(cells, f"{column} of {name}") for column, cells in named}
    if len(columns) < len(named):
        raise InvalidArgument(f"Two columns of {name} have the same name. Rename one of them.", code="duplicates")
    if len({len(column) for column in columns.values() if column is not None}) > 1:
        raise InvalidArgument(
            f"The columns of {name} have different lengths. Give one cell of each column for every row.",
            code="unequal-lengths",
        )
    return {column: cells for column, cells in columns.items() if cells is not None}


def run_guarded(work: Callable[[], Any], said: str, *, code: str = "not-a-table") -> Any:
    """Run foreign code on data. If it fails, only `said` is passed on, without a context."""
    try:
        return work()
    except Exception:
        pass
    # raised outside the handler, so that it has no context, which might quote values
    raise InvalidArgument(said, code=code)


def _columns_by_name(source: Any) -> list[tuple[str, Any]] | None:
    """The columns of a container by name. None if it is not a container of columns."""
    import pyarrow as pa

    if isinstance(source, Mapping):
        return [(str(name), column) for name, column in source.items()]
    if _is(source, "pandas", "DataFrame"):
        return [(str(name), source.iloc[:, place]) for place, name in enumerate(source.columns)]
    if _is(source, "polars", "DataFrame"):
        return [(column.name, column) for column in source.get_columns()]
    if isinstance(source, pa.RecordBatchReader):
        source = source.read_all()
    elif not isinstance(source, pa.Table | pa.RecordBatch):
        if hasattr(source, "__arrow_c_stream__"):
            source = pa.table(source)
        elif hasattr(source, "to_arrow"):
            source = source.to_arrow()
        else:
            return None
    return list(zip(source.column_names, source.columns, strict=True))


def _column(cells: Any, name: str) -> Any:
    """One column, as an Arrow array or `Cells`. None if its dtype is not supported."""
    import pyarrow as pa

    said = f"The column {name} must be a list, a tuple or an array of one dimension, with a cell for every row."
    if isinstance(cells, pa.Array | pa.ChunkedArray):
        return cells
    for kind in (list, tuple):
        if issubclass(type(cells), kind):
            return Cells(list(kind.__iter__(cells)))
    if isinstance(cells, range):
        cells = run_guarded(
            lambda: np.arange(cells.start, cells.stop, cells.step, dtype=np.int64), said, code="not-a-column"
        )
    if any(_is(cells, "pandas", kind) for kind in ("Series", "Index")):
        return run_guarded(lambda: _of_pandas(cells), said, code="not-a-column")
    if _is(cells, "polars", "Series"):
        return run_guarded(lambda: _of_polars(cells), said, code="not-a-column")
    if any(hasattr(type(cells), word) for word in ("__arrow_c_array__", "__arrow_c_stream__", "__arrow_array__")):
        return run_guarded(lambda: _of_arrow(cells), said, code="not-a-column")
    if issubclass(type(cells), str | bytes | bytearray) or not _is_array(cells):
        raise InvalidArgument(said, code="not-a-column")
    return _of_numpy(
        cells if isinstance(cells, np.ndarray) else run_guarded(lambda: np.asarray(cells), said, code="not-a-column"),
        said,
    )


def _is(value: Any, package: str, kind: str) -> bool:
    """Whether a value has this type of a package. The package is then already imported."""
    known = getattr(sys.modules.get(package), kind, None)
    return known is not None and isinstance(value, known)


def _is_array(cells: Any) -> bool:
    """Whether a container has its own dtype: numpy arrays, objects that convert to one, and buffers."""
    if hasattr(type(cells), "__array__"):
        return True
    try:
        return bool(memoryview(cells).format)
    except TypeError:
        return False


# --- arrays of numpy ------------------------------------------------------------------------------------------


def _of_numpy(array: Any, said: str, *, nan_is_missing: bool = False) -> Any:
    """An array, read by its dtype. No cell decides anything here."""
    import pyarrow as pa

    if array.ndim != 1:
        raise InvalidArgument(said, code="not-a-column")
    mask = np.ma.getmaskarray(array) if np.ma.isMaskedArray(array) else None
    plain = np.asarray(np.ma.getdata(array))
    match plain.dtype.kind:
        case "O":
            cells = plain.tolist()
            return Cells(
                cells
                if mask is None
                else [None if off else cell for cell, off in zip(cells, mask.tolist(), strict=True)]
            )
        case "U" | "T":
            return _texts(plain, mask)
        case "S":
            return pa.array(plain.tolist(), pa.binary(), mask=mask)
        case "M":
            return _moments(plain, mask)
        case "m":
            return _durations(plain, mask)
        case "b" | "i" | "u" | "f":
            size = plain.dtype.itemsize
            wide = np.float32 if size == 2 else np.float64  # Arrow has no longer floats, and DuckDB no shorter ones
            with np.errstate(all="ignore"):  # a warning would reveal something about a cell
                known = plain.astype(wide) if plain.dtype.kind == "f" and size not in (4, 8) else plain
            known = known.astype(known.dtype.newbyteorder("="), copy=False)
            return pa.array(known, mask=mask, from_pandas=nan_is_missing)
    return None


def _texts(array: Any, mask: Any) -> Any:
    """An array of text. A cell that is not valid Unicode stops numpy and Arrow: then each cell is read by itself."""
    import pyarrow as pa

    try:
        return pa.array(array.tolist(), pa.string(), mask=mask)
    except Exception:  # numpy may also raise SystemError
        pass
    reader, typed = READERS["text"]
    cells = [None if mask is not None and mask[place] else _cell(array, place) for place in range(len(array))]
    return pa.array(map(reader, cells), pa.type_for_alias(typed), size=len(cells))


def _cell(array: Any, place: int) -> Any:
    try:
        return array[place].item() if isinstance(array[place], np.generic) else array[place]
    except Exception:
        return None


def _moments(array: Any, mask: Any) -> Any:
    """Dates and timestamps. A value that does not fit our unit is missing."""
    import pyarrow as pa

    unit = np.datetime_data(array.dtype)[0]
    days = unit in ("Y", "M", "W", "D")
    target = "D" if days else unit if unit in _UNITS else "s" if unit in ("h", "m") else "ns"
    known = array.astype(f"datetime64[{'us' if unit == 'generic' else target}]")
    number = known.view(np.int64)
    missing = np.isnat(array) | (known.astype(array.dtype) != array) if known.dtype != array.dtype else np.isnat(array)
    if unit in ("ps", "fs", "as"):  # a finer timestamp would not be the same in nanoseconds
        missing = np.isnat(array)
    if days:
        missing = missing | (np.abs(number) > _DAYS)
    missing = missing if mask is None else missing | mask
    if days:
        return pa.array(np.where(missing, 0, number).astype(np.int32), mask=missing).view(pa.date32())
    return pa.array(number, mask=missing).view(pa.timestamp(np.datetime_data(known.dtype)[0]))


def _durations(array: Any, mask: Any) -> Any:
    import pyarrow as pa

    unit = np.datetime_data(array.dtype)[0]
    known = array if unit in _UNITS else array.astype("timedelta64[s]" if unit in "WDhm" else "timedelta64[ns]")
    missing = np.isnat(array) if mask is None else np.isnat(array) | mask
    return pa.array(known.view(np.int64), mask=missing).view(pa.duration(np.datetime_data(known.dtype)[0]))


# --- columns of pandas, polars and others ---------------------------------------------------------------------

_SHAPE = "A column must have one dimension."


def _of_pandas(series: Any) -> Any:
    """A column of pandas, by its dtype."""
    import pyarrow as pa

    pd, dtype = sys.modules["pandas"], series.dtype
    if isinstance(dtype, np.dtype):
        return _of_numpy(series.to_numpy(), _SHAPE, nan_is_missing=True)
    if isinstance(dtype, pd.CategoricalDtype):
        return _of_codes(np.asarray(pd.Categorical(series).codes), _of_pandas(dtype.categories))
    if isinstance(dtype, pd.DatetimeTZDtype):
        moments = _moments(series.to_numpy(dtype=f"datetime64[{dtype.unit}]"), None)
        return moments.cast(pa.timestamp(moments.type.unit, "UTC"))
    if (kept := in_arrow(series)) is not None:
        return kept
    if isinstance(dtype, pd.StringDtype):
        return Cells(series.to_numpy(dtype=object).tolist()).read("text")
    if isinstance(dtype, pd.SparseDtype):
        return _of_numpy(series.to_numpy(), _SHAPE, nan_is_missing=True)
    if isinstance(getattr(dtype, "numpy_dtype", None), np.dtype):  # with a mask of missing values
        missing = series.isna().to_numpy(dtype=bool)
        return pa.array(series.to_numpy(dtype=dtype.numpy_dtype, na_value=dtype.numpy_dtype.type(0)), mask=missing)
    return Cells(list(series.astype(object)))


def _of_codes(codes: Any, categories: Any) -> Any:
    """A dictionary-encoded column. Text stays dictionary-encoded."""
    import pyarrow as pa

    if isinstance(categories, Cells):
        return Cells(categories.cells, codes)
    places = _places(codes, len(categories))
    if pa.types.is_string(categories.type) or pa.types.is_large_string(categories.type):
        return pa.DictionaryArray.from_arrays(places, categories)
    return categories.take(places)


def _places(codes: Any, length: int) -> Any:
    import pyarrow as pa

    return pa.array(codes.astype(np.int32), mask=(codes < 0) | (codes >= length))


def _of_polars(series: Any) -> Any:
    return Cells(series.to_list()) if series.dtype == sys.modules["polars"].Object else series.to_arrow()


def _of_arrow(cells: Any) -> Any:
    import pyarrow as pa

    if hasattr(type(cells), "__arrow_c_stream__"):
        return pa.chunked_array(cells)
    return pa.array(cells)


def refuse_untyped(column: str, table: str) -> NoReturn:
    """Raise for an untyped column that identifies people. It would be read as text, and people with numeric ids would
    be lost.
    """
    raise InvalidArgument(
        f"{column} identifies people in {table}, but it is a list, a tuple or an object column, which has no type. "
        f'Declare the type, with types={{"{column}": "integer"}} or type = "integer" in a policy, or give an array.',
        code="untyped-column",
    )
