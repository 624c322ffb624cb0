"""The names, types and shapes of containers, and their columns as arrays. Types decide, never cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Data = Any
"""Any data that users pass: an array, a data frame, an Arrow table, a dict of columns, a list of rows, or one value.
`rows/` reads each of them, and raises for others. There is no narrower type that all of them share.
"""


def names_of(data: Any) -> list[str] | None:
    """The column names of a data frame or an Arrow table. None for anything else."""
    if isinstance(data, Mapping) or not (has(data, "column_names") or has(data, "columns")):
        return None
    # in Arrow, `columns` are the columns themselves
    return [str(name) for name in (data.column_names if has(data, "column_names") else data.columns)]


def has(data: Any, name: str) -> bool:
    """Whether the class of a container has this attribute. On the object itself, pandas would also find columns and
    labels.
    """
    return hasattr(type(data), name)


def has_width(data: Any) -> bool:
    """Whether a container itself declares a row width. Arrays and data frames do, and lists do not."""
    return names_of(data) is not None or len(getattr(data, "shape", ())) == 2


def columns_of(frame: Any) -> list[Any]:
    """The columns of a data frame or an Arrow table, in order."""
    if has(frame, "iloc"):
        return [frame.iloc[:, place] for place in range(frame.shape[1])]
    return list(frame.get_columns() if has(frame, "get_columns") else frame.itercolumns())


def some(data: Any, which: Any) -> Any:
    """Some of the records, by a slice or a boolean array, in a container of the same kind. No record is read."""
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
    """A container of the same kind without records. If it is refused, only its shape and type can be the reason."""
    if isinstance(data, Mapping):
        return {name: none_of(part) for name, part in data.items()}
    if has(data, "__len__") or has(data, "__iter__"):
        try:
            return some(data, slice(0, 0))
        except Exception:  # a container without slices, such as a set
            return []
    return data


def on_device(data: Any) -> bool:
    """Whether this is a torch or cupy array on a GPU, which may stay there."""
    return package(data) == "cupy" or (package(data) == "torch" and bool(data.is_cuda))


def objects(records: Any) -> NDArray[Any]:
    """Records in one dimension, as they are. They are not read."""
    return np.fromiter(records, dtype=object, count=len(records))


def package(data: Any) -> str:
    """The package that defines a container."""
    return type(data).__module__.partition(".")[0]


def on_host(data: Any) -> NDArray[Any]:
    """A numpy array in the memory of this machine, from numpy, torch, cupy or any package that can provide one."""
    if package(data) == "torch":
        data = data.detach().cpu()
        data = data.float() if str(data.dtype) == "torch.bfloat16" else data
    return np.asarray(data.get() if package(data) == "cupy" else data)
