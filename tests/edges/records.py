"""Odd records, and the containers that they come in: what a stranger may put in the place of one row.

A record of a person is theirs: whatever it is, it may change their own part of an answer and nothing else.
"""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

# --- records ------------------------------------------------------------------------------------------------------


class Raised(Exception):
    """What an odd object raises; its text is private, and must not be quoted."""


def _raising(self: Any, *_: Any, **__: Any) -> Any:
    raise Raised("the secret of a row")


SPECIAL = ("float", "int", "index", "complex", "eq", "hash", "len", "iter", "getitem", "array", "bool", "str", "repr",
           "lt", "format", "round", "index", "contains", "getattr")  # fmt: skip


def raising(*names: str, of: type = object, value: Any = None) -> Any:
    """An object whose special methods `names` raise; a subclass of `of` with this value where that is given."""
    methods: dict[str, Any] = {f"__{name}__": _raising for name in names}
    methods.setdefault("__hash__", of.__hash__)
    made = type("Raising", (of,), methods)
    return made() if value is None else made(value)


class Longer:
    """Says that it has one item, and has a thousand."""

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Any:
        return iter(range(1000))


class LyingFloat(float):
    """A float that says of itself to be another kind of number each time."""

    def __float__(self) -> float:
        return float("nan")

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __lt__(self, other: object) -> bool:
        return True

    __gt__ = __le__ = __ge__ = __lt__


class LyingInt(int):
    """A whole number that is text where it is looked at."""

    def __index__(self) -> int:
        return 10**30

    def __int__(self) -> int:
        return -(10**30)

    def __float__(self) -> float:
        raise Raised("the secret of a row")


class LyingText(str):
    """Text that equals everything, and whose length and bytes are not its own."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash("a")

    def __len__(self) -> int:
        return 10**6

    def encode(self, *_: Any, **__: Any) -> bytes:
        raise Raised("the secret of a row")


class ArrayOf:
    """An object that says to be an array, of this."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.value, dtype=dtype)


class WrongNumber:
    """Special methods that give what they must not."""

    def __float__(self) -> Any:
        return "1"

    def __int__(self) -> Any:
        return 1.5

    def __index__(self) -> Any:
        return None

    def __len__(self) -> Any:
        return -1

    def __bool__(self) -> Any:
        return 2


def _itself() -> list[Any]:
    held: list[Any] = []
    held.append(held)
    return held


_ZONE = datetime.timezone(datetime.timedelta(hours=5, minutes=45))
_DAY = datetime.datetime(2020, 2, 29, 12)

HOSTILE: dict[str, Any] = {
    "None": None,
    "nan": float("nan"),
    "inf": float("inf"),
    "-inf": float("-inf"),
    "-0.0": -0.0,
    "1e308": 1e308,
    "5e-324": 5e-324,
    "10**30": 10**30,
    "-10**30": -(10**30),
    "10**400": 10**400,
    "10**5000": 10**5000,
    "2**53+1": 2**53 + 1,
    "2**63": 2**63,
    "-2**63": -(2**63),
    "2**64": 2**64,
    "2.5": 2.5,
    "text": "zzz",
    "empty text": "",
    "long text": "x" * 5000,
    "number as text": "7",
    "NUL text": "a\0b",
    "surrogate": "\ud800",
    "bytes": b"zzz",
    "bytearray": bytearray(b"z"),
    "memoryview": memoryview(b"z"),
    "True": True,
    "False": False,
    "list": [1, 2, 3],
    "empty list": [],
    "list of one": [1.0],
    "list of text": ["a"],
    "ragged list": [[1], [2, 3]],
    "list of itself": _itself(),
    "tuple": (1, 2, 3),
    "empty tuple": (),
    "tuple of one": (1,),
    "dict": {"a": 1},
    "empty dict": {},
    "set": {1, 2},
    "frozenset": frozenset({1}),
    "range": range(3),
    "generator": (x for x in range(2)),
    "Decimal": Decimal("0.1"),
    "Decimal NaN": Decimal("NaN"),
    "Decimal sNaN": Decimal("sNaN"),
    "Decimal 1e999999": Decimal("1e999999"),
    "Decimal -Infinity": Decimal("-Infinity"),
    "Fraction": Fraction(1, 3),
    "Fraction of 10**400": Fraction(10**400, 3),
    "complex": 1 + 2j,
    "datetime": _DAY,
    "datetime with a zone": _DAY.replace(tzinfo=_ZONE),
    "date": datetime.date(2020, 2, 29),
    "time": datetime.time(12, 30),
    "timedelta": datetime.timedelta(days=10**6),
    "NotImplemented": NotImplemented,
    "Ellipsis": ...,
    "object": object(),
    "type": int,
    "function": len,
    "exception": ValueError("x"),
    "np.float16": np.float16(2),
    "np.float32 nan": np.float32("nan"),
    "np.longdouble": np.longdouble("1e4000"),
    "np.int8": np.int8(-3),
    "np.uint64": np.uint64(2**64 - 1),
    "np.bool": np.True_,
    "np.str": np.str_("zzz"),
    "np.bytes": np.bytes_(b"z"),
    "np.void": np.void(b"zz"),
    "np.complex": np.complex128(1j),
    "np.datetime64": np.datetime64("2020-02-29"),
    "np.datetime64 NaT": np.datetime64("NaT"),
    "np.timedelta64": np.timedelta64(3, "D"),
    "np.timedelta64 NaT": np.timedelta64("NaT"),
    "0-d array": np.array(3.0),
    "0-d object array": np.array(None, dtype=object),
    "1-element array": np.array([3.0]),
    "array": np.arange(4.0),
    "empty array": np.empty(0),
    "matrix": np.ones((2, 2)),
    "masked": np.ma.masked,
    "pd.NA": pd.NA,
    "pd.NaT": pd.NaT,
    "pd.Timestamp": pd.Timestamp("2020-02-29", tz="UTC"),
    "pd.Interval": pd.Interval(0, 1),
    "pd.Series": pd.Series([1.0, 2.0]),
    "pd.DataFrame": pd.DataFrame({"x": [1.0]}),
    "pl.Series": pl.Series([1.0, 2.0]),
    "pa.scalar": pa.scalar(1.5),
    "pa.array": pa.array([1.0, 2.0]),
    "float subclass that raises": raising("float", "eq", "lt", of=float, value=1.0),
    "int subclass that raises": raising("int", "index", "float", "eq", "lt", of=int, value=1),
    "str subclass that raises": raising("str", "eq", "len", "iter", of=str, value="a"),
    "float that lies": LyingFloat(1.0),
    "int that lies": LyingInt(1),
    "text that lies": LyingText("a"),
    "array of text": ArrayOf("zzz"),
    "array of three": ArrayOf([1.0, 2.0, 3.0]),
    "wrong number": WrongNumber(),
    "longer than it says": Longer(),
    **{f"raises in __{name}__": raising(name) for name in dict.fromkeys(SPECIAL)},
    "raises in all": raising(*SPECIAL),
}  # fmt: skip

WORST = ("None", "nan", "10**400", "2**53+1", "text", "list", "np.datetime64 NaT", "array", "raises in all",
         "int subclass that raises", "generator")  # fmt: skip
"""Those that most often change what others are read as: tried in every container."""


def again(name: str) -> Any:
    """A record by name; one that can be read once only is made anew."""
    return (x for x in range(2)) if name == "generator" else HOSTILE[name]


# --- containers ---------------------------------------------------------------------------------------------------


class Odd:
    """The odd record among others, so that a container may place it otherwise than them."""

    def __init__(self, value: Any) -> None:
        self.value = value


class CannotHold(Exception):
    """A typed container that has no place for this record: then nobody can hand it in."""


Container = Callable[[Sequence[Any]], Any]


def plain(records: Sequence[Any]) -> list[Any]:
    """The records, the odd ones as they are."""
    return [one.value if isinstance(one, Odd) else one for one in records]


def of_plain(make: Callable[[list[Any]], Any]) -> Container:
    """A container that treats all records alike; what its library raises says that it cannot hold one."""

    @functools.wraps(make)
    def made(records: Sequence[Any]) -> Any:
        try:
            return make(plain(records))
        except Exception as error:
            raise CannotHold from error

    return made


def objects(cells: list[Any]) -> Any:
    """An object array of one dimension, whatever the cells are."""
    array = np.empty(len(cells), dtype=object)
    for place, cell in enumerate(cells):
        array[place] = cell
    return array


def table_of_objects(rows: list[Any], width: int) -> Any:
    """An object matrix; a row of another length cannot be in it."""
    array = np.empty((len(rows), width), dtype=object)
    for place, row in enumerate(rows):
        if not isinstance(row, list | tuple) or len(row) != width:
            raise CannotHold
        for number, cell in enumerate(row):
            array[place, number] = cell
    return array


def typed(dtype: Any, shape: tuple[int, ...] = (-1,)) -> Container:
    """An array with a type of its own."""

    def make(cells: list[Any]) -> Any:
        array = np.empty(len(cells), dtype=dtype)
        for place, cell in enumerate(cells):
            array[place] = cell
        return array.reshape(shape)

    return of_plain(make)


def one_cell_rows_but_the_odd(records: Sequence[Any]) -> list[Any]:
    """Rows of one cell, and the odd record bare among them."""
    return [one.value if isinstance(one, Odd) else [one] for one in records]


def _series(dtype: Any) -> Container:
    def make(cells: list[Any]) -> Any:
        series = pd.Series([None] * len(cells), dtype=dtype)
        for place, cell in enumerate(cells):  # not all at once: a gap among them would make doubles of whole numbers
            series.iat[place] = cell
        return series

    return of_plain(make)


def _polars(kind: Any) -> Container:
    return of_plain(lambda cells: pl.Series("x", cells, dtype=kind, strict=kind != pl.Object))


def _arrow(kind: Any) -> Container:
    return of_plain(lambda cells: pa.array(cells, type=kind))


LISTS: dict[str, Container] = {
    "list": of_plain(list),
    "tuple": of_plain(tuple),
    "iterator": of_plain(iter),
    "one-cell rows": of_plain(lambda cells: [[cell] for cell in cells]),
    "one-cell tuples": of_plain(lambda cells: [(cell,) for cell in cells]),
    "one-cell rows but the odd": one_cell_rows_but_the_odd,
    "objects": of_plain(objects),
    "objects, one column": of_plain(lambda cells: objects(cells).reshape(-1, 1)),
    "objects, three columns": of_plain(lambda cells: np.stack([objects(cells)] * 3, axis=1)),
    "pandas objects": of_plain(lambda cells: pd.Series(objects(cells), dtype=object)),
    "pandas frame of objects": of_plain(lambda cells: pd.DataFrame({"x": pd.Series(objects(cells), dtype=object)})),
    "pandas frame of two": of_plain(lambda c: pd.DataFrame({k: pd.Series(objects(c), dtype=object) for k in "xy"})),
    "polars objects": _polars(pl.Object),
}
NUMBERS: dict[str, Container] = LISTS | {
    "float64": typed(np.float64),
    "float32": typed(np.float32),
    "float64, one column": typed(np.float64, (-1, 1)),
    "float64, two columns": of_plain(lambda cells: np.array([[c, c] for c in cells], dtype=np.float64)),
    "int64": typed(np.int64),
    "pandas Int64": _series("Int64"),
    "pandas Float64": _series("Float64"),
    "pandas arrow": _series(pd.ArrowDtype(pa.float64())),
    "polars Float64": _polars(pl.Float64),
    "polars Int64": _polars(pl.Int64),
    "arrow float64": _arrow(pa.float64()),
    "arrow int64": _arrow(pa.int64()),
    "arrow decimal": _arrow(pa.decimal128(38, 2)),
}
TEXTS: dict[str, Container] = LISTS | {
    "U20": typed("U20"),
    "pandas string": _series("string"),
    "pandas category": of_plain(lambda cells: pd.Series(pd.Categorical(objects(cells), categories=["a", "b", "zzz"]))),
    "polars String": _polars(pl.String),
    "arrow string": _arrow(pa.string()),
    "arrow dictionary": of_plain(lambda cells: pa.array(cells, pa.string()).dictionary_encode()),
}


def rows_in(width: int, names: str = "xyzw") -> dict[str, Container]:
    """Containers of rows with so many cells each."""
    columns = list(names[:width])

    def by_column(make: Callable[[dict[str, Any]], Any], column: Callable[[list[Any]], Any]) -> Container:
        def made(rows: list[Any]) -> Any:
            table = table_of_objects(rows, width)
            return make({name: column(list(table[:, place])) for place, name in enumerate(columns)})

        return of_plain(made)

    def numbers(cells: list[Any]) -> Any:
        return pa.array(cells, type=pa.float64())

    return {
        "rows": of_plain(list),
        "tuples": of_plain(lambda rows: [tuple(row) if isinstance(row, list) else row for row in rows]),
        "tuple of rows": of_plain(tuple),
        "array of rows": of_plain(lambda rows: [np.array(r, float) if isinstance(r, list) else r for r in rows]),
        "objects": of_plain(lambda rows: table_of_objects(rows, width)),
        "objects of rows": of_plain(objects),
        "float64": of_plain(lambda rows: table_of_objects(rows, width).astype(np.float64)),
        "pandas objects": by_column(pd.DataFrame, lambda cells: pd.Series(objects(cells), dtype=object)),
        "pandas Float64": by_column(pd.DataFrame, lambda cells: pd.Series(cells, dtype="Float64")),
        "polars": by_column(pl.DataFrame, lambda cells: pl.Series(cells, dtype=pl.Float64, strict=True)),
        "polars objects": by_column(pl.DataFrame, lambda cells: pl.Series(cells, dtype=pl.Object)),
        "arrow": by_column(pa.table, numbers),
    }
