"""Columns and tables from any container: typed ones as they are in memory, others cell by cell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.rows.arrow import floats_of, in_arrow, of_arrow, whole_in_arrow
from discreet.rows.cells import LEAST, MOST, number_in_text, number_of, parts_of, whole_of
from discreet.rows.containers import columns_of, has, names_of, none_of, objects, on_host, package

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_COLUMN = "A column is needed: one value for each record, in one dimension. Name or select one of the columns."
_NUMBERS = "Numbers are needed. Convert the column first."
_SPARK = "A DataFrame of Spark stays where it is. Ask a query of it by partitions: ByPartition(query, columns)."


# --- one column -----------------------------------------------------------------------------------------------------


def column(data: Any) -> NDArray[Any]:
    """A column in one dimension: the array of a container with a type, otherwise an array of objects, one for each
    record.

    Only shape and type decide what is refused. Integers with missing values are also objects, so that they are not
    converted to doubles.
    """
    if isinstance(data, np.ma.MaskedArray):
        array = objects(data.tolist()) if data.ndim == 1 else data
    elif isinstance(data, np.ndarray):
        array = data
    elif isinstance(data, list | tuple):
        array = objects(data)
    else:
        array = _of_container(data)
    if array.ndim != 1:
        raise InvalidArgument(_COLUMN, code="not-a-column")
    return array.view(np.ndarray)


def doubles(data: Any) -> Floats:
    """A column as doubles, with NaN for a value that is not a number."""
    whole = whole_in_arrow(data)
    if whole is not None:
        return floats_of(whole)
    values = column(data)
    if values.dtype.kind == "O":
        return np.fromiter(map(number_of, values), np.float64, len(values))
    _check_numbers(values)
    with np.errstate(all="ignore"):  # a warning would reveal something about a cell
        return values.astype(np.float64, copy=False)


def numbers_in_text(data: Any, *, flags: bool = False) -> Any:
    """A column with the numbers that its text holds, and with the conditions if `flags`. Other columns as they are."""
    if whole_in_arrow(data) is not None or (values := column(data)).dtype.kind not in "OU":
        return data
    return objects([number_in_text(cell, flags=flags) for cell in values])


def wholes(data: Any) -> tuple[Ints, NDArray[np.bool_]]:
    """A column as the nearest 64-bit integers, each exact, and a mask of the records that are not numbers."""
    whole = whole_in_arrow(data)
    if whole is not None:
        gaps = np.asarray(whole.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)
        return wholes(np.asarray(whole.fill_null(False if str(whole.type) == "bool" else 0)))[0], gaps
    values = column(data)
    if values.dtype.kind == "O":
        found = [whole_of(cell) for cell in values]
        missing = np.fromiter((one is None for one in found), np.bool_, len(found))
        return np.fromiter((one or 0 for one in found), np.int64, len(found)), missing
    _check_numbers(values)
    if values.dtype.kind == "f":
        with np.errstate(all="ignore"):
            near = np.rint(values.astype(np.float64, copy=False))
            missing, inside = np.isnan(near), np.abs(near) < 2.0**63
            return np.where(inside, near, 0).astype(np.int64) + np.where(
                inside | missing, 0, np.where(near < 0, LEAST, MOST)
            ), missing
    if values.dtype.kind == "u":
        values = np.minimum(values, np.uint64(MOST))
    return values.astype(np.int64, copy=False), np.zeros(len(values), dtype=np.bool_)


def present(data: Any) -> NDArray[np.bool_]:
    """Which records of a column are numbers."""
    values = column(data)
    return ~np.isnan(doubles(values)) if values.dtype.kind in "Of" else np.ones(len(values), dtype=np.bool_)


def cells(data: Any) -> list[Any]:
    """The records of a column as Python values."""
    values = column(data)
    fine = values.dtype.kind in "mM" and np.datetime_data(values.dtype)[0] in ("ns", "ps", "fs", "as")
    return list(values) if fine else values.tolist()  # tolist would turn such fine timestamps into numbers


def labels(data: Any) -> NDArray[Any]:
    """A column of targets. A typed column stays as it is. Otherwise a record that is a row of one cell counts as that
    cell.
    """
    values = column(data)
    if whole_in_arrow(data) is not None:  # the same with and without missing values: compared as Python compares
        return values.astype(object)
    if values.dtype.kind != "O":
        return values
    return objects([cell if (one := parts_of(cell, 1)) is None else one[0] for cell in values])


# --- rows of several columns ----------------------------------------------------------------------------------------


def table(data: Any, width: int | None = None) -> NDArray[Any]:
    """Rows of numbers, with NaN for other cells: in the type of a typed array, otherwise doubles.

    Lists need the declared `width` of a row. A record of another width is missing in every column.
    """
    array = _of_frame(data) if names_of(data) is not None else _records(data)
    if not isinstance(array, np.ndarray) or (array.dtype.kind == "O" and array.ndim == 1):
        return _of_records(array, width)
    if array.ndim == 1 and width == 1:
        array = array[:, None]
    if array.ndim != 2 or (width is not None and array.shape[1] != width):
        shown = "some numbers" if width is None else "1 number" if width == 1 else f"{width} numbers"
        raise InvalidArgument(
            f"Rows of {shown} are needed, in an array of two dimensions. Reshape your data, as with X.reshape(-1, 1).",
            code="wrong-shape",
        )
    if array.dtype.kind == "O":
        return np.fromiter(map(number_of, array.reshape(-1)), np.float64, array.size).reshape(array.shape)
    _check_numbers(array)
    with np.errstate(all="ignore"):  # a warning would reveal something about a cell
        return array.astype(np.float64) if array.dtype.itemsize > 8 else array


def cell_columns(data: Any, width: int) -> list[list[Any]]:
    """The cells of each of these columns, as Python values. None in all of them for a record of another width."""
    if names_of(data) is not None:
        found = [cells(part) for part in columns_of(data)]
    else:
        array = _records(data)
        if isinstance(array, np.ndarray) and not (array.dtype.kind == "O" and array.ndim == 1):
            found = array.T.tolist() if array.ndim == 2 else []
        else:
            rows = [_parts(record, width) for record in array]
            found = [[row[place] for row in rows] for place in range(width)]
    if len(found) != width:
        raise InvalidArgument(f"The table must have {width} columns, as declared.", code="wrong-shape")
    return found


def is_row(value: Any) -> bool:
    """Whether this is one row and not several: an array of one dimension, or a list that contains no rows."""
    if isinstance(value, list | tuple):
        return not any(issubclass(type(part), list | tuple | np.ndarray) for part in value)
    return has(value, "dtype") and np.ndim(value) == 1


def _of_records(records: Any, width: int | None) -> Floats:
    if width is None:
        raise InvalidArgument(
            "A list of rows does not declare how many columns it has, and no row may decide that. Give an array: "
            "np.array(X, dtype=float).",
            code="width-not-declared",
        )
    found = np.full((len(records), width), np.nan)
    for place, record in enumerate(records):
        found[place] = [number_of(cell) for cell in _parts(record, width)]
    return found


def _parts(record: Any, width: int) -> list[Any]:
    """The cells of a row. All are None if it has another width. A row of one cell may be given as that cell."""
    parts = parts_of(record, width)
    return parts if parts is not None else [record] if width == 1 else [None] * width


def _records(data: Any) -> Any:
    """The array of a container with a shape, otherwise the list of its records."""
    if isinstance(data, list | tuple):
        return data
    if isinstance(data, np.ma.MaskedArray):
        # masked values are missing; a mask never changes the type
        with np.errstate(all="ignore"):
            return np.ma.filled(data.astype(np.float64 if data.dtype.kind in "biuf" else object), np.nan)
    if package(data) == "pyarrow" or (has(data, "dtype") and has(data, "to_numpy")):
        # by its type, not by its missing values
        return doubles(data) if column(none_of(data)).dtype.kind in "biuf" else column(data)
    if has(data, "dtype") or has(data, "__array__"):
        return on_host(data)
    if isinstance(data, str | bytes | Mapping) or not isinstance(data, Iterable):
        raise InvalidArgument("The data must be an array, a data frame or an Arrow table.", code="not-a-table")
    return list(data)


def _of_frame(data: Any) -> NDArray[Any]:
    kinds = getattr(data, "dtypes", ())
    if has(data, "iloc") and all(isinstance(kind, np.dtype) and kind.kind in "iuf" for kind in kinds):
        with np.errstate(all="ignore"):  # columns of several types are converted
            return np.asarray(data.to_numpy())
    parts = columns_of(data)
    types = [column(none_of(part)).dtype for part in parts]  # a column of text or days is missing throughout
    narrow = bool(types) and all(one == np.float32 for one in types)
    found = np.empty((len(parts[0]) if parts else 0, len(parts)), dtype=np.float32 if narrow else np.float64)
    for place, (part, one) in enumerate(zip(parts, types, strict=True)):
        with np.errstate(all="ignore"):  # a warning would reveal something about a cell
            found[:, place] = column(part) if one.kind == "f" else doubles(part) if one.kind in "biuO" else np.nan
    return found


def _of_container(data: Any) -> NDArray[Any]:
    if package(data) == "pyspark":
        raise InvalidArgument(_SPARK, code="data-in-spark")
    if names_of(data) is not None or isinstance(data, str | bytes | Mapping):
        raise InvalidArgument(_COLUMN, code="not-a-column")
    if package(data) == "pyarrow":
        return of_arrow(data)
    if has(data, "dtype") or has(data, "__array__"):
        return on_host(data) if not has(data, "to_numpy") else _of_series(data)
    if not isinstance(data, Iterable):
        raise InvalidArgument(_COLUMN, code="not-a-column")
    return objects(list(data))


def _of_series(series: Any) -> NDArray[Any]:
    """A column of polars or pandas."""
    kind = series.dtype
    if isinstance(kind, np.dtype):
        return np.asarray(series.to_numpy())
    kept = in_arrow(series)
    if kept is not None:
        return of_arrow(kept)
    if has(series, "to_arrow"):  # a type that Arrow does not have
        return objects(series.to_list())
    if hasattr(kind, "categories") and hasattr(kind, "ordered"):
        known = series.cat if has(series, "cat") else series
        listed = [*_of_series(known.categories).tolist(), None]  # the code of a missing one is -1
        return objects([listed[code] for code in known.codes.tolist()])
    return np.asarray(series.astype(object))


def _check_numbers(values: NDArray[Any]) -> None:
    if values.dtype.kind not in "biuf":
        raise InvalidArgument(_NUMBERS, code="not-a-number")
