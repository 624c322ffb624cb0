"""What containers say of themselves: names, types and shapes; their columns as arrays, by type and never by cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Data = Any
"""Data as people have it: an array, a data frame, an Arrow table, a dict of columns, a list of rows, or one value.
`rows/` reads each of them, and says what it does not read. There is no narrower type that all of them share.
"""


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
    """Whether a container itself has a row width, as arrays and data frames do and lists do not."""
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
