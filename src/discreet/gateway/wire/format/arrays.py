"""Arrays of one dimension as PostgreSQL writes and reads them, in text and in binary."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any

from discreet.gateway.wire.format.values import TYPES, Refusal

ELEMENTS = {name: name[:-2] for name in TYPES if name.endswith("[]")} | {"int2vector": "int2", "oidvector": "oid"}
"""The types of arrays, and those of their elements. A vector is an array that is counted from 0."""
MOST = 10_000
"""Elements of an array that a client sends, at most."""
_SPACES = " \t\n\r\v\f"
_HEAD = struct.Struct("!iiI")
_PLAIN = re.compile(rb"""[^\s{}",\\]+""")
_ELEMENT = re.compile(
    r'\s*(?:"((?:[^"\\]|\\.)*)"\s*|((?:[^{},"\\\s]|\\.)(?:[^{},"\\]|\\.)*))([,}])', re.DOTALL | re.ASCII
)

Write = Callable[[Any], bytes]
Read = Callable[[bytes], Any]


def text_writer(kind: str, element: Write) -> Write:
    """What writes an array as text: {1,2,NULL}, or 1 2 for a vector."""
    if not kind.endswith("[]"):
        return lambda values: values.encode() if isinstance(values, str) else b" ".join(map(element, values))

    def written(values: Any) -> bytes:
        return b"{" + b",".join(b"NULL" if value is None else _quoted(element(value)) for value in values) + b"}"

    return written


def _quoted(content: bytes) -> bytes:
    if _PLAIN.fullmatch(content) and content.upper() != b"NULL":
        return content
    return b'"' + content.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'


def binary_writer(kind: str, oid: int, element: Write) -> Write:
    """What writes an array in binary."""
    first = 1 if kind.endswith("[]") else 0

    def written(values: Any) -> bytes:
        if isinstance(values, str):
            values = [int(word) for word in values.split()]
        if not values:
            return _HEAD.pack(0, 0, oid)
        parts = [_HEAD.pack(1, int(None in values), oid), struct.pack("!ii", len(values), first)]
        for value in values:
            content = None if value is None else element(value)
            parts.append(struct.pack("!i", -1) if content is None else struct.pack("!i", len(content)) + content)
        return b"".join(parts)

    return written


def read_text(kind: str, text: str, element: Read) -> list[Any]:
    """The values of an array in text."""
    text = text.strip(_SPACES)
    if not kind.endswith("[]"):
        return [element(word.encode()) for word in text.split()]
    if not text.startswith("{"):
        raise ValueError
    if not text[1:-1].strip(_SPACES) and text[-1] == "}" and len(text) > 1:
        return []
    found: list[Any] = []
    at, last = 1, ","
    while last == ",":
        match = _ELEMENT.match(text, at)
        if match is None:
            raise ValueError
        quoted, plain, last = match.groups()
        if quoted is None and plain.strip(_SPACES).upper() == "NULL":
            found.append(None)
        else:
            words = plain.strip(_SPACES) if quoted is None else quoted
            found.append(element(re.sub(r"\\(.)", r"\1", words, flags=re.DOTALL).encode()))
        at = match.end()
        _check_count(len(found))
    if at != len(text):
        raise ValueError
    return found


def read_binary(content: bytes, oid: int, element: Read) -> list[Any]:
    """The values of an array in binary."""
    dimensions, _, kind = _HEAD.unpack_from(content)
    if kind != oid or dimensions not in (0, 1):
        raise ValueError
    if dimensions == 0:
        return []
    count, _ = struct.unpack_from("!ii", content, _HEAD.size)
    _check_count(count)
    at = _HEAD.size + 8
    found: list[Any] = []
    for _ in range(count):
        (length,) = struct.unpack_from("!i", content, at)
        at += 4
        if length < 0:
            found.append(None)
            continue
        if at + length > len(content):
            raise ValueError
        found.append(element(content[at : at + length]))
        at += length
    if at != len(content):
        raise ValueError
    return found


def _check_count(count: int) -> None:
    if not 0 <= count <= MOST:
        raise Refusal(f"An array can have at most {MOST} elements.", state="54000")
