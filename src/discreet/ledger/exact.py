"""An exact text for each public value. It is used to compare two requests.

Nothing is normalized: integers, floats, text and booleans that look the same stay different, as do the signs of zero,
white space and every character of a text. A value that has no text of its own, such as a function, is refused, because
its memory address can be reused by another one.
"""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

_ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]+")
_WIDE = 2**63


class Nameless(Exception):
    """A value that cannot be distinguished from another one by its text."""


def exact_text(value: Any, instead: Callable[[Any], Any] = lambda value: value) -> str:
    """The text of a value. Different values have different texts. `instead` can replace a part of the value, if it is
    no text and no number.
    """
    return json.dumps(_exact(value, instead), separators=(",", ":"))


def digest(text: str) -> str:
    """A text of any characters as a 256-bit hash."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _exact(given: Any, instead: Callable[[Any], Any]) -> Any:
    value = instead(given)
    kind = type(value)
    if value is None or kind in (bool, str):
        return value
    if kind is int:
        return value if abs(value) < _WIDE else {"int": hex(value)}
    if kind is float:
        return {"float": value.hex()}
    if kind in (Fraction, Decimal):
        return {kind.__name__: [hex(part) for part in value.as_integer_ratio()] if kind is Fraction else str(value)}
    if kind in (tuple, list):
        return {kind.__name__: list(value) if _is_plain(value) else [_exact(part, instead) for part in value]}
    if kind in (set, frozenset):
        return {kind.__name__: sorted(json.dumps(_exact(part, instead)) for part in value)}
    if isinstance(value, Mapping):
        return {"mapping": [[_exact(key, instead), _exact(part, instead)] for key, part in value.items()]}
    if isinstance(value, datetime.date | datetime.time | datetime.timedelta):
        return {kind.__name__: repr(value)}
    if isinstance(value, bytes | bytearray):
        return {kind.__name__: value.hex()}
    if isinstance(value, np.generic | np.ndarray):
        return _array(np.asarray(value), kind.__name__, instead)
    if isinstance(value, type):
        return {"class": f"{value.__module__}.{value.__qualname__}"}
    name = f"{kind.__module__}.{kind.__qualname__}"
    if dataclasses.is_dataclass(value):
        parts = {one.name: getattr(value, one.name) for one in dataclasses.fields(value) if one.compare}
        return {"is": name, "parts": {part: _exact(held, instead) for part, held in parts.items()}}
    text = "" if callable(value) else repr(value)
    if not text or _ADDRESS.search(text):
        raise Nameless
    return {"is": name, "text": text}


def _is_plain(values: Sequence[Any]) -> bool:
    """Whether the parts are their own texts: the choices of a column can be thousands."""
    kinds = set(map(type, values))
    return kinds == {str} or (kinds == {int} and min(values) > -_WIDE and max(values) < _WIDE)


def _array(array: np.ndarray[Any, Any], kind: str, instead: Callable[[Any], Any]) -> Any:
    facts = [kind, repr(array.dtype), list(array.shape)]
    if array.dtype.hasobject:
        return {"objects": [*facts, [_exact(part, instead) for part in array.ravel().tolist()]]}
    return {"array": [*facts, hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()]}
