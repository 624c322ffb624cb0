"""Columns of a table and what is declared of them: a public range, public categories, or nothing.

Names, positions and types decide what is refused, never a cell. A cell that is not a number, or not a declared
category, has a bin of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.learn.automatic import rows_in_memory
from discreet.learn.base import places_of
from discreet.rows import cell_columns, column, columns_of, doubles, has_width, names_of, none_of, table
from discreet.rows.arrays import is_spark_dataframe
from discreet.rows.arrow import in_arrow, is_text, plain, whole_in_arrow
from discreet.rows.containers import objects, on_host
from discreet.rows.unbounded import UnboundedRows

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
AUTO = "auto"
WHOLE, NUMBER, OBJECT, OTHER = "whole numbers", "numbers", "objects", "text or times"


@dataclass(frozen=True)
class Columns:
    """The columns of a table, not yet read, with their names if they have names."""

    parts: tuple[Any, ...]
    names: tuple[str, ...] | None

    @classmethod
    def of(cls, data: Any, width: int | None = None) -> Columns:
        """The columns of an array, a data frame, an Arrow table or a dict of columns. A list of rows needs the declared
        `width`.
        """
        _refuse(data)
        names = [str(name) for name in data] if isinstance(data, Mapping) else names_of(data)
        if names is not None:
            parts = list(data.values()) if isinstance(data, Mapping) else columns_of(data)
            if isinstance(data, Mapping):
                parts = [part if _has_type(part) else column(part) for part in parts]
        else:
            parts = _of_rows(data, width)
        if not parts:
            raise InvalidArgument("0 feature(s) while a minimum of 1 is required.", code="wrong-shape")
        if len({len(part) for part in parts}) > 1:
            raise InvalidArgument("All columns must have the same number of rows.", code="unequal-lengths")
        if names is not None and len(set(names)) != len(names):
            raise InvalidArgument("Two columns have the same name. Rename one of them.", code="duplicates")
        return cls(tuple(parts), None if names is None else tuple(names))

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def rows(self) -> int:
        """The number of rows, which is private."""
        return len(self.parts[0])

    def kind(self, place: int) -> str:
        """The type of a column, by its container alone."""
        part, empty = self.parts[place], none_of(self.parts[place])
        kept = in_arrow(empty)
        own = getattr(part, "dtype", None)
        kind = column(empty).dtype.kind
        if kind == "O" and getattr(own, "na_value", None) is not None:  # numbers of pandas with a mask
            kind = getattr(own, "kind", "O")
        if kind in "biu":
            return WHOLE
        if kind == "f":
            return NUMBER
        return OBJECT if kept is None and kind == "O" and (own is None or own == np.dtype(object)) else OTHER

    def is_boolean(self, place: int) -> bool:
        """Whether a column has only True and False, by its type."""
        part = self.parts[place]
        return column(none_of(part)).dtype.kind == "b" or str(getattr(part, "dtype", "")) == "boolean"

    def numbers(self, place: int) -> Floats:
        """The cells of a column as doubles. NaN for a cell that is not a number."""
        with np.errstate(all="ignore"):  # a warning would reveal something about a cell
            return doubles(self.parts[place]).astype(np.float64, copy=False)

    def unbounded(self, chosen: list[int], within: Callable[[Floats], Any], targets: Any = None) -> UnboundedRows:
        """These columns, and the targets if they are given, before their ranges are known. `within` gives the rows for
        the mechanism that follows.
        """
        cells = np.empty((self.rows, len(chosen)))
        for place, one in enumerate(chosen):
            cells[:, place] = self.numbers(one)
        found = {"finds_features": bool(chosen), "finds_target": targets is not None}
        return UnboundedRows(rows_in_memory(cells, targets), within, features=len(chosen), **found)

    def places(self, place: int, choices: Sequence[Any]) -> Codes:
        """The position of each cell among the choices, or their number for any other cell."""
        part = self.parts[place]
        kept = in_arrow(part)
        if kept is not None and is_text((known := plain(kept)).type):
            return _places_of_text(known, choices)
        values = column(part)
        if whole_in_arrow(part) is not None:  # the same with and without missing values: compared as Python compares
            values = values.astype(object)
        found = places_of(values, list(choices))
        return np.where(np.isnan(found), len(choices), found).astype(np.int64)


def _refuse(data: Any) -> None:
    if is_spark_dataframe(data):
        raise InvalidArgument(
            "The rows of a Spark DataFrame stay in Spark, and bins are not supported there. Collect the columns that "
            "you need.",
            code="data-in-spark",
        )
    if hasattr(data, "tocsr"):
        raise InvalidArgument("Sparse data is not supported. Pass a dense array: X.toarray().", code="wrong-type")
    if getattr(getattr(data, "dtype", None), "kind", "") == "c":
        raise InvalidArgument("Complex data not supported: pass real numbers.", code="not-a-number")


def _has_type(part: Any) -> bool:
    return hasattr(type(part), "dtype") or in_arrow(part) is not None


def _of_rows(data: Any, width: int | None) -> list[Any]:
    """The columns of an array, or of a list of rows with a declared width."""
    if has_width(data):
        kind = getattr(getattr(data, "dtype", None), "kind", "f")
        array = table(data) if kind not in "OUSMm" else on_host(data)
        return [array[:, place] for place in range(array.shape[1])]
    if hasattr(data, "shape") and str(getattr(data, "dtype", "")) != "object":
        raise InvalidArgument(
            "Features must have rows and columns. Reshape your data, as with X.reshape(-1, 1).", code="wrong-shape"
        )
    if width is None:
        if hasattr(type(data), "__array__") and np.ndim(data) == 2:
            return _of_rows(np.asarray(data), None)
        table(data)  # raises: no row may decide how many columns there are
    return [objects(part) for part in cell_columns(data, width or 1)]


def _places_of_text(known: Any, choices: Sequence[Any]) -> Codes:
    import pyarrow as pa
    import pyarrow.compute as pc

    if known.type == pa.string_view():  # Arrow cannot look up views
        known = known.cast(pa.large_string())
    texts = [place for place, choice in enumerate(choices) if isinstance(choice, str)]
    listed = pa.array([str(choices[place]) for place in texts], type=known.type)
    found = np.asarray(pc.fill_null(pc.index_in(known, value_set=listed), len(texts)), dtype=np.int64)
    return np.array([*texts, len(choices)], dtype=np.int64)[found]


# --- what is declared ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Declared:
    """What is public about one column: a range, categories, or neither, so that its range must be found."""

    name: str
    kind: str
    range: tuple[float, float] | None = None
    choices: tuple[Any, ...] | None = None

    @property
    def is_auto(self) -> bool:
        """Whether a range must be found privately."""
        return self.range is None and self.choices is None


def declared_width(ranges: Any, categories: Any) -> int | None:
    """The number of columns, if it is declared by a list with one entry for each of them."""
    for listed in (ranges, categories):
        if listed is not None and not isinstance(listed, str | Mapping) and hasattr(listed, "__len__"):
            return len(listed)
    return None


def declare(columns: Columns, ranges: Any, categories: Any) -> list[Declared]:
    """What is declared of each column. Raises for unknown columns, and for text without categories."""
    known = names_or_places(columns.names, len(columns))
    spans, listed = _by_place(ranges, columns, "ranges"), _by_place(categories, columns, "categories")
    found = []
    for place, name in enumerate(known):
        kind = columns.kind(place)
        span, choices = spans.get(place), listed.get(place)
        if choices is not None:
            if span is not None:
                raise InvalidArgument(
                    f"Column {name} has both a range and categories. Declare one of them.", code="conflicting-arguments"
                )
            found.append(Declared(name, kind, choices=_choices(choices, name)))
        elif span is not None:
            if kind == OTHER:
                raise InvalidArgument(
                    f"Column {name} holds text or times, so it has no range. Declare its categories, or convert it to "
                    "numbers.",
                    code="learn-feature-type",
                )
            found.append(Declared(name, kind, range=_range(span, name)))
        elif kind in (OBJECT, OTHER):
            raise InvalidArgument(
                f'Column {name} holds {kind}. Declare its values, as in categories={{{name!r}: ["a", "b"]}}, or '
                f"its range, as in ranges={{{name!r}: (0, 1)}}.",
                code="learn-feature-type",
            )
        elif columns.is_boolean(place):
            found.append(Declared(name, kind, range=(0.0, 1.0)))
        else:
            found.append(Declared(name, kind))
    return found


def names_or_places(names: Sequence[str] | None, width: int) -> list[str]:
    """The names of columns: as given, or x0, x1, …"""
    return [f"x{place}" for place in range(width)] if names is None else list(names)


def place_of_column(key: Any, names: Sequence[str] | None, width: int) -> int:
    """The position of a column, by its name or position."""
    if names is not None and str(key) in names:
        return list(names).index(str(key))
    if names is None and isinstance(key, str) and key in (known := names_or_places(None, width)):
        return known.index(key)
    if isinstance(key, int | np.integer) and not isinstance(key, bool) and 0 <= key < width:
        return int(key)
    shown = f"names: {', '.join(names)}" if names is not None else f"positions: 0 to {width - 1}"
    raise InvalidArgument(f"There is no column {key!r}. The columns have these {shown}.", code="unknown-column")


def _by_place(given: Any, columns: Columns, what: str) -> dict[int, Any]:
    """The declarations by the position of their column. "auto" and None declare nothing."""
    if given is None or (isinstance(given, str) and given == AUTO):
        return {}
    if isinstance(given, Mapping):
        pairs = [(place_of_column(key, columns.names, len(columns)), one) for key, one in given.items()]
    else:
        if isinstance(given, str) or not hasattr(given, "__len__") or len(given) != len(columns):
            raise InvalidArgument(
                f"{what} must be a dict by column, or a list with one entry for each of the {len(columns)} columns.",
                code="wrong-shape",
            )
        pairs = list(enumerate(given))
    return {place: one for place, one in pairs if one is not None and not (isinstance(one, str) and one == AUTO)}


def _range(given: Any, name: str) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in given)
    except (TypeError, ValueError):
        raise InvalidArgument(
            f"The range of {name} must be two numbers, such as (0, 120).", code="wrong-type"
        ) from None
    with np.errstate(all="ignore"):
        if not (np.isfinite([low, high]).all() and np.isfinite(high - low)):
            raise InvalidArgument(f"The range of {name} must be two finite numbers.", code="not-a-number")
    if not low < high:
        raise InvalidArgument(f"The range of {name} must have its lower end first.", code="ends-out-of-order")
    return low, high


def _choices(given: Any, name: str) -> tuple[Any, ...]:
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise InvalidArgument(f'The categories of {name} must be a list, such as ["a", "b"].', code="wrong-type")
    listed = tuple(given)
    if not listed:
        raise InvalidArgument(f"Column {name} needs at least one category.", code="empty")
    if len(set(listed)) != len(listed):
        raise InvalidArgument(f"The categories of {name} must all be different.", code="duplicates")
    return listed
