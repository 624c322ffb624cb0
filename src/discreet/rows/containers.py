"""What containers say of themselves: names, types and shapes; their columns as arrays, by type and never by cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def names_of(data: Any) -> list[str] | None:
    """The names of the columns of a data frame or an Arrow table; None for anything else."""
    if isinstance(data, Mapping) or not (has(data, "column_names") or has(data, "columns")):
        return None
    # in Arrow `columns` are the columns themselves
    return [str(name) for name in (data.column_names if has(data, "column_names") else data.columns)]


def has(data: Any, name: str) -> bool:
    """Whether a container's class has this: pandas finds columns and people's labels among attributes, too."""
    return hasattr(type(data), name)


def has_width(data: Any) -> bool:
    """Whether a container says by itself how wide a row is, as arrays and data frames do and lists do not."""
    return names_of(data) is not None or len(getattr(data, "shape", ())) == 2


def columns_of(frame: Any) -> list[Any]:
    """The columns of a data frame or an Arrow table, in order."""
    if has(frame, "iloc"):
        return [frame.iloc[:, place] for place in range(frame.shape[1])]
    return list(frame.get_columns() if has(frame, "get_columns") else frame.itercolumns())


def some(data: Any, which: Any) -> Any:
    """Some of the records, a slice of them or those that an array of true and false tells, in a container of the same
    kind; none is looked at.
    """
    if isinstance(data, Mapping):
        return {name: some(part, which) for name, part in data.items()}
    if isinstance(data, list | tuple):
        return (
            data[which]
            if isinstance(which, slice)
            else [one for one, kept in zip(data, which.tolist(), strict=True) if kept]
        )
    if has(data, "iloc"):
        return data.iloc[which]
    if isinstance(which, slice):
        return data[which]
    return data.filter(which) if package(data) in ("polars", "pyarrow") else data[which]


def none_of(data: Any) -> Any:
    """A container of the same kind without a record: what is refused of it, is refused by shape and type alone."""
    if isinstance(data, Mapping):
        return {name: none_of(part) for name, part in data.items()}
    if has(data, "__len__") or has(data, "__iter__"):
        try:
            return some(data, slice(0, 0))
        except Exception:  # what has no slices, such as a set
            return []
    return data


def on_device(data: Any) -> bool:
    """Whether this is an array of torch or cupy on a GPU, which may stay there."""
    return package(data) == "cupy" or (package(data) == "torch" and bool(data.is_cuda))


def objects(records: Any) -> NDArray[Any]:
    """Records in one dimension, as they are: nothing looks at them."""
    return np.fromiter(records, dtype=object, count=len(records))


def package(data: Any) -> str:
    """The package that a container is of."""
    return type(data).__module__.partition(".")[0]


def on_host(data: Any) -> NDArray[Any]:
    """An array of numpy, torch or cupy, or of any package that can show one, in the memory of this machine."""
    if package(data) == "torch":
        data = data.detach().cpu()
        data = data.float() if str(data.dtype) == "torch.bfloat16" else data
    return np.asarray(data.get() if package(data) == "cupy" else data)


def of_series(series: Any) -> NDArray[Any]:
    """A column of polars or pandas."""
    kind = series.dtype
    if isinstance(kind, np.dtype):
        return np.asarray(series.to_numpy())
    kept = _in_arrow(series)
    if kept is not None:
        return of_arrow(kept)
    if has(series, "to_arrow"):  # a type that Arrow has not
        return objects(series.to_list())
    if hasattr(kind, "categories") and hasattr(kind, "ordered"):
        known = series.cat if has(series, "cat") else series
        listed = [*of_series(known.categories).tolist(), None]  # the code of a missing one is -1
        return objects([listed[code] for code in known.codes.tolist()])
    return np.asarray(series.astype(object))


def _in_arrow(data: Any) -> Any:
    """A column of Arrow, of polars, or of pandas that is kept in Arrow, as Arrow has it; None for any other."""
    if names_of(data) is not None:
        return None
    if package(data) == "pyarrow":
        return data if has(data, "null_count") else None
    kind = getattr(data, "dtype", None) if has(data, "dtype") else None
    if package(data) == "polars":
        return None if kind is None or str(kind) in ("Object", "Int128") else data.to_arrow()
    if package(data) == "pandas" and (hasattr(kind, "pyarrow_dtype") or getattr(kind, "storage", None) == "pyarrow"):
        return (data.array if has(data, "array") else data).__arrow_array__()
    return None


def whole_in_arrow(data: Any) -> Any:
    """A column of whole numbers, or of true and false, as Arrow has it; None for any other."""
    data = _in_arrow(data)
    if data is None:
        return None
    import pyarrow as pa

    plain = _plain(data)
    return plain if pa.types.is_integer(plain.type) or pa.types.is_boolean(plain.type) else None


def _plain(data: Any) -> Any:
    """A column of Arrow without its dictionary, runs, or a type built on another."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = data.type
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(data.cast(kind.storage_type))
    if pa.types.is_dictionary(kind):
        return _plain(data.cast(kind.value_type))
    return _plain(pc.run_end_decode(data)) if pa.types.is_run_end_encoded(kind) else data


def of_arrow(data: Any) -> NDArray[Any]:
    """A column of Arrow. One of whole numbers is an array of objects where it has gaps: its numbers stay exact."""
    import pyarrow as pa

    data = _plain(data)
    kind = data.type
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        wide = data if kind == pa.float32() else data.cast(pa.float64(), safe=False)
        return np.asarray(wide.to_numpy(zero_copy_only=False))
    if (pa.types.is_integer(kind) or pa.types.is_boolean(kind)) and not data.null_count:
        return np.asarray(data.to_numpy(zero_copy_only=False))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view():
        return objects([_decoded(cell) for cell in data.cast(pa.large_binary()).to_pylist()])
    return objects([_python(cell) for cell in data])


def _decoded(cell: bytes | None) -> str | None:
    """None where bytes are no text."""
    try:
        return None if cell is None else cell.decode()
    except UnicodeDecodeError:
        return None


def _python(cell: Any) -> Any:
    """A scalar of Arrow as Python has it; None for one that Python has not, such as a day after the year 9999."""
    try:
        return cell.as_py()
    except Exception:
        return None
