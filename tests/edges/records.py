"""Odd records: what a stranger may put in the place of one row.

A record of a person is theirs: whatever it is, it may change their own part of an answer and nothing else.
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa


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
