"""Which columns of a container hold numbers, by their dtype alone. No cell is looked at."""

from __future__ import annotations

from typing import Any

from discreet.rows.arrow import is_number
from discreet.rows.containers import columns_of, has, names_of, package

_NUMBERS = "biufc"


def columns_without_numbers(data: Any) -> list[str]:
    """The names of the columns whose dtype is not a number: text, dates, categories, objects.

    A list has no dtype, so nothing is known of its cells. An array has one dtype for all its columns, and no names.
    """
    names = names_of(data)
    if names is not None:
        return [name for name, column in zip(names, columns_of(data), strict=True) if not is_number_column(column)]
    return [] if is_number_column(data) else [""]


def is_number_column(data: Any) -> bool:
    """Whether the dtype of a column or an array is a number, or whether it has none."""
    if package(data) == "pyarrow" and has(data, "type"):
        return is_number(data.type)
    if not hasattr(data, "dtype"):
        return True
    kind = data.dtype
    if package(data) == "polars":
        return bool(kind.is_numeric()) or str(kind) in ("Boolean", "Null")
    if hasattr(kind, "pyarrow_dtype"):
        return is_number(kind.pyarrow_dtype)
    if hasattr(kind, "categories"):
        return False
    letter = getattr(kind, "kind", None)  # torch's dtypes have none: all of them are numbers
    return letter is None or letter in _NUMBERS
