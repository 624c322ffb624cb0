"""Released values as bytes, and back. They are stored before they are returned, so that a retry gets the same value.

The bytes are a JSON header, which describes the value, then the raw arrays one after another. Each value has one
encoding, nothing is executed on reading, and every type is restored.
"""

from __future__ import annotations

import base64
import datetime
import json
import math
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.errors import InvalidArgument
from discreet.rows.key_columns import KeyColumns

_MAGIC = b"discreet answer 1\n"
_TEXTUAL: dict[str, tuple[type, Callable[[Any], str], Callable[[str], Any]]] = {
    "fraction": (Fraction, str, Fraction),
    "decimal": (Decimal, str, Decimal),
    "datetime": (datetime.datetime, datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    "date": (datetime.date, datetime.date.isoformat, datetime.date.fromisoformat),
    "time": (datetime.time, datetime.time.isoformat, datetime.time.fromisoformat),
    "bytes": (bytes, lambda b: base64.b64encode(b).decode(), base64.b64decode),
}
_MICROSECOND = datetime.timedelta(microseconds=1)


def encode(value: Any) -> bytes:
    """A released value as bytes. Raises InvalidArgument for a type that is not a plain value."""
    arrays: list[bytes] = []
    header = json.dumps(_describe(value, arrays), ensure_ascii=True, separators=(",", ":")).encode()
    return b"".join([_MAGIC, len(header).to_bytes(8, "little"), header, *arrays])


def decode(data: bytes) -> Any:
    """The value that was encoded."""
    start = len(_MAGIC) + 8
    if data[: len(_MAGIC)] != _MAGIC:
        raise InvalidArgument(
            "These bytes are not an answer that this version of discreet can read. Use a newer version.",
            code="ledger-answer-unreadable",
        )
    end = start + int.from_bytes(data[len(_MAGIC) : start], "little")
    with suppress(ValueError, TypeError, LookupError, ArithmeticError, StopIteration, RecursionError):
        return _rebuilt(json.loads(data[start:end]), _ArrayReader(data, end))
    raise InvalidArgument(
        "This answer is not in the form it was written in. Use the version of discreet that stored it.",
        code="ledger-answer-unreadable",
    )


def _describe(value: Any, arrays: list[bytes]) -> Any:
    kind = type(value)
    if value is None or kind in (bool, int, str) or (kind is float and math.isfinite(value)):
        return value
    if kind is float:
        return {"float": repr(value)}
    if kind in (list, tuple):
        parts = [_describe(part, arrays) for part in value]
        return parts if kind is list else {"tuple": parts}
    if kind in (set, frozenset):
        return {kind.__name__: [_describe(part, arrays) for part in sorted(value, key=repr)]}
    if kind is dict:
        return {"dict": [[_describe(key, arrays), _describe(part, arrays)] for key, part in value.items()]}
    if kind is datetime.timedelta:
        return {"microseconds": value // _MICROSECOND}
    for name, (textual, to_text, _) in _TEXTUAL.items():
        if kind is textual:
            return {name: to_text(value)}
    if isinstance(value, np.generic) and value.dtype != object:
        arrays.append(value.tobytes())
        return {"scalar": value.dtype.str}
    if kind is np.ndarray and value.dtype == object:
        return {"objects": [_describe(part, arrays) for part in value.ravel()], "shape": list(value.shape)}
    if kind is np.ndarray and value.dtype.names is None:
        arrays.append(value.tobytes())
        return {"array": value.dtype.str, "shape": list(value.shape)}
    if kind is KeyColumns:
        return {"keys": _describe(value.parts(), arrays), "size": len(value)}
    raise InvalidArgument(
        f"An answer of type {kind.__name__} cannot be kept. "
        "Release numbers, text, dates, arrays, or lists, tuples, sets and dicts of them.",
        code="ledger-answer-type",
    )


class _ArrayReader:
    """The arrays after the header, in the order in which they were written."""

    def __init__(self, data: bytes, start: int) -> None:
        self.data, self.at = data, start

    def take(self, dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        array = np.zeros(shape, dtype)
        data = self.data[self.at : self.at + array.nbytes]
        self.at += array.nbytes
        return np.frombuffer(data, array.dtype).reshape(shape).copy() if array.nbytes else array


def _rebuilt(header: Any, arrays: _ArrayReader) -> Any:
    if isinstance(header, list):
        return [_rebuilt(part, arrays) for part in header]
    if not isinstance(header, dict):
        return header
    kind, content = next(iter(header.items()))
    match kind:
        case "float":
            return float(content)
        case "tuple":
            return tuple(_rebuilt(part, arrays) for part in content)
        case "set" | "frozenset":
            parts = {_rebuilt(part, arrays) for part in content}
            return parts if kind == "set" else frozenset(parts)
        case "dict":
            return {_rebuilt(key, arrays): _rebuilt(part, arrays) for key, part in content}
        case "microseconds":
            return content * _MICROSECOND
        case "scalar":
            return arrays.take(content, (1,))[0]
        case "objects":
            flat = np.empty(len(content), object)
            flat[:] = [_rebuilt(part, arrays) for part in content]
            return flat.reshape(header["shape"])
        case "keys":
            return KeyColumns.from_parts(_rebuilt(content, arrays), header["size"])
        case "array":
            return arrays.take(content, tuple(header["shape"]))
    return _TEXTUAL[kind][2](content)
