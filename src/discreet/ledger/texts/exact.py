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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from json.encoder import encode_basestring_ascii
from typing import Any

import numpy as np

_ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]+")
_WIDE = 2**63
_PLAIN = json.JSONEncoder(separators=(",", ":"))
_TEXTS = frozenset((str, type(None)))
LATER = {"later": True}
"""Metadata of a dataclass's field that an earlier version did not have. It is not written while it is None, so the
texts of before stay the same."""
_OWN_TEXTS = (
    *(Mapping, bytes, bytearray, np.generic, np.ndarray, type),
    *(datetime.date, datetime.time, datetime.timedelta),
)
"""Classes whose values are written in their own way, even if a subclass of them is a dataclass."""


class Nameless(Exception):
    """A value that cannot be distinguished from another one by its text."""


def exact_text(value: Any, instead: Callable[[Any], Any] = lambda value: value) -> str:
    """The text of a value. Different values have different texts. `instead` can replace a part of the value, if it is
    no text and no number.
    """
    return _PLAIN.encode(_Writer(instead).exact(value))


def exact_texts(values: Iterable[Any], instead: Callable[[Any], Any] = lambda value: value) -> Iterator[str]:
    """The texts of several values. A dataclass that appears often is written once: it must not change meanwhile."""
    writer = _Writer(instead)
    return (_PLAIN.encode(writer.exact(value)) for value in values)


def exact_text_of(*parts: Any) -> str:
    """The same as `exact_text(parts)`, and faster if the parts are only text and None."""
    if not _TEXTS.issuperset(map(type, parts)):
        return exact_text(parts)
    written = ["null" if part is None else encode_basestring_ascii(part) for part in parts]
    return f'{{"tuple":[{",".join(written)}]}}'


def digest(text: str) -> str:
    """A text of any characters as a 256-bit hash."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class _Writer:
    """Writes values as what JSON has a text for. `known` holds each dataclass with what is written for it."""

    def __init__(self, instead: Callable[[Any], Any]) -> None:
        self.instead = instead
        self.known: dict[int, tuple[Any, Any]] = {}

    def exact(self, given: Any) -> Any:
        kind = type(given)
        if given is None or kind is str or kind is bool:
            return given
        if kind is int:
            return given if abs(given) < _WIDE else {"int": hex(given)}
        if _parts_of(kind) is None:
            return self._other(self.instead(given))
        if id(given) not in self.known:
            self.known[id(given)] = (
                given,
                self._other(self.instead(given)),
            )  # the id is not reused as long as it is held
        return self.known[id(given)][1]

    def _other(self, value: Any) -> Any:
        kind = type(value)
        if (known := _parts_of(kind)) is not None:
            name, parts, later = known
            found = {part: getattr(value, part) for part in parts}
            written = {part: self.exact(one) for part, one in found.items() if one is not None or part not in later}
            return {"is": name, "parts": written}
        if kind in (tuple, list):
            return {kind.__name__: list(value) if _is_plain(value) else [self.exact(part) for part in value]}
        if value is None or kind in (bool, str):
            return value
        if kind is int:
            return value if abs(value) < _WIDE else {"int": hex(value)}
        if kind is float:
            return {"float": value.hex()}
        if kind in (Fraction, Decimal):
            return {kind.__name__: [hex(part) for part in value.as_integer_ratio()] if kind is Fraction else str(value)}
        if kind in (set, frozenset):
            return {kind.__name__: sorted(json.dumps(self.exact(part)) for part in value)}
        if isinstance(value, Mapping):
            return {"mapping": [[self.exact(key), self.exact(part)] for key, part in value.items()]}
        if isinstance(value, datetime.date | datetime.time | datetime.timedelta):
            return {kind.__name__: repr(value)}
        if isinstance(value, bytes | bytearray):
            return {kind.__name__: value.hex()}
        if isinstance(value, np.generic | np.ndarray):
            return self._array(np.asarray(value), kind.__name__)
        if isinstance(value, type):
            return {"class": f"{value.__module__}.{value.__qualname__}"}
        text = "" if callable(value) else repr(value)
        if not text or _ADDRESS.search(text):
            raise Nameless
        return {"is": _name_of(kind), "text": text}

    def _array(self, array: np.ndarray[Any, Any], kind: str) -> Any:
        facts = [kind, repr(array.dtype), list(array.shape)]
        if array.dtype.hasobject:
            return {"objects": [*facts, [self.exact(part) for part in array.ravel().tolist()]]}
        return {"array": [*facts, hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()]}


def _name_of(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


_Parts = tuple[str, list[str], frozenset[str]] | None
_KNOWN_PARTS: dict[type, _Parts] = {}


def _parts_of(kind: type) -> _Parts:
    """The name of a dataclass, those of its fields, and which of them came later. None for another class, or one with
    a text of its own.
    """
    if kind not in _KNOWN_PARTS:
        if len(_KNOWN_PARTS) >= 1000:
            _KNOWN_PARTS.clear()
        written = dataclasses.is_dataclass(kind) and not issubclass(kind, _OWN_TEXTS)
        own = [one for one in dataclasses.fields(kind) if one.compare] if written else []
        later = frozenset(one.name for one in own if one.metadata.get("later"))
        return _KNOWN_PARTS.setdefault(kind, (_name_of(kind), [one.name for one in own], later) if written else None)
    return _KNOWN_PARTS[kind]


def _is_plain(values: Sequence[Any]) -> bool:
    """Whether the parts are their own texts: the choices of a column can be thousands."""
    kinds = set(map(type, values))
    return kinds == {str} or (kinds == {int} and min(values) > -_WIDE and max(values) < _WIDE)
