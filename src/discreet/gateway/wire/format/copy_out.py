"""COPY … TO STDOUT: the rows of a result as text, CSV or PostgreSQL's binary file."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from discreet.gateway.wire.format.messages import message
from discreet.gateway.wire.format.types import BINARY, TEXT, field_writers, out_of_range, writer
from discreet.gateway.wire.format.values import Column, Copy

_SIGNATURE = b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0)
_END = struct.pack("!h", -1)
_SPECIAL = {8: rb"\b", 9: rb"\t", 10: rb"\n", 11: rb"\v", 12: rb"\f", 13: rb"\r", 92: rb"\\"}

Line = Callable[[tuple[Any, ...]], bytes]


def response(copy: Copy, columns: Sequence[Column]) -> bytes:
    """The message that rows will be copied out, and how."""
    form = BINARY if copy.form == "binary" else TEXT
    count = len(columns)
    return message(b"H", struct.pack(f"!bH{count}H", form, count, *[form] * count))


def copied(copy: Copy, columns: Sequence[Column], rows: Sequence[tuple[Any, ...]]) -> Iterator[bytes]:
    """A message for each row. In binary, the head of the file is in the first one: ADBC needs it there."""
    line = _LINES[copy.form](copy, columns)
    begin = _SIGNATURE if copy.form == "binary" else b""
    if copy.header and copy.form != "binary":
        yield message(b"d", _header(copy, columns))
    try:
        for row in rows:
            yield message(b"d", begin + line(row))
            begin = b""
    except (struct.error, OverflowError):
        raise out_of_range() from None
    if copy.form == "binary":
        yield message(b"d", begin + _END)


def _header(copy: Copy, columns: Sequence[Column]) -> bytes:
    names = tuple(column.name for column in columns)
    as_text = [Column(name) for name in names]
    return _LINES[copy.form](copy, as_text)(names)


def _binary_line(copy: Copy, columns: Sequence[Column]) -> Line:
    writers = field_writers(columns, [BINARY] * len(columns))
    count, null = struct.pack("!h", len(columns)), struct.pack("!i", -1)

    def line(row: tuple[Any, ...]) -> bytes:
        return count + b"".join(null if value is None else write(value) for value, write in _pairs(row, writers))

    return line


def _text_line(copy: Copy, columns: Sequence[Column]) -> Line:
    writers = [writer(column.type, TEXT) for column in columns]
    delimiter, null = copy.delimiter.encode(), copy.null.encode()
    special = _SPECIAL | ({} if delimiter == b"\t" else {delimiter[0]: b"\\" + delimiter})
    pattern = re.compile(b"[" + re.escape(bytes(special)) + b"]")

    def escaped(content: bytes) -> bytes:
        return pattern.sub(lambda match: special[match[0][0]], content)

    def line(row: tuple[Any, ...]) -> bytes:
        fields = [null if value is None else escaped(write(value)) for value, write in _pairs(row, writers)]
        return delimiter.join(fields) + b"\n"

    return line


def _csv_line(copy: Copy, columns: Sequence[Column]) -> Line:
    writers = [writer(column.type, TEXT) for column in columns]
    delimiter, null, quote, escape = (one.encode() for one in (copy.delimiter, copy.null, copy.quote, copy.escape))
    needed = re.compile(b"[" + re.escape(delimiter + quote + b"\r\n") + b"]")

    def field(content: bytes) -> bytes:
        end_of_data = content == b"\\." and len(columns) == 1
        if content != null and not needed.search(content) and not end_of_data:
            return content
        if escape != quote:
            content = content.replace(escape, escape + escape)
        return quote + content.replace(quote, escape + quote) + quote

    def line(row: tuple[Any, ...]) -> bytes:
        fields = [null if value is None else field(write(value)) for value, write in _pairs(row, writers)]
        return delimiter.join(fields) + b"\n"

    return line


def _pairs(row: tuple[Any, ...], writers: Sequence[Callable[[Any], bytes]]) -> Any:
    return zip(row, writers, strict=True)


_LINES = {"text": _text_line, "csv": _csv_line, "binary": _binary_line}
