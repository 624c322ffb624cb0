"""Values as PostgreSQL writes and reads them, in text and in binary.

An encoder of a column writes a whole field, its length included, because answers may have 100,000 rows.
"""

from __future__ import annotations

import datetime
import math
import re
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np

from discreet.gateway.wire.format import arrays
from discreet.gateway.wire.format.values import NAMES, TYPES, Column, Refusal

Write = Callable[[Any], bytes]
"""Writes a value that is not None as the bytes of its type."""
Read = Callable[[bytes], Any]
TEXT, BINARY = 0, 1
LONGEST_NUMBER = 1000
"""Characters of a number that a client sends, at most."""
_EPOCH = datetime.datetime(2000, 1, 1)
_FIRST_DAY = _EPOCH.toordinal()
_MICROSECOND = datetime.timedelta(microseconds=1)
_LENGTH = struct.Struct("!i")
_NULL = _LENGTH.pack(-1)
_REGISTERED = ("regtype", "regclass", "regproc", "regprocedure", "regnamespace", "regrole", "regoperator")
"""Types whose values are numbers of things with names, and are written by their names."""
_INTEGERS = {"int2": "h", "int4": "i", "int8": "q", **dict.fromkeys(("oid", "xid", "cid", *_REGISTERED), "I")}
_FLOATS = {"float4": "f", "float8": "d"}
_STRINGS = ("text", "varchar", "name", "unknown", "bpchar", "json", "pg_node_tree")
_TRUE, _FALSE = ("t", "true", "y", "yes", "on", "1"), ("f", "false", "n", "no", "off", "0")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|infinity)|nan", re.IGNORECASE)
_MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?))? ?(Z|[+-]\d\d(?::?\d\d)?)?", re.IGNORECASE
)


def formats_of(codes: Sequence[int], count: int) -> list[int]:
    """The format of each column or value: none given is text, one is for all."""
    if any(code not in (TEXT, BINARY) for code in codes):
        raise Refusal("A format must be 0 for text or 1 for binary.", state="22023")
    if len(codes) > 1 and len(codes) != count:
        raise Refusal(f"There are {len(codes)} formats, but {count} columns or values.", state="08P01")
    return list(codes) if len(codes) > 1 else [codes[0] if codes else TEXT] * count


# --- writing ------------------------------------------------------------------------------------------------


def field_writers(columns: Sequence[Column], formats: Sequence[int]) -> list[Write]:
    """For each column, what writes a field: its length and its value."""
    return [_field_writer(column.type, form) for column, form in zip(columns, formats, strict=True)]


def _field_writer(kind: str, form: int) -> Write:
    if form == BINARY and kind in ("int8", "float8", "int4"):  # most of what answers have, in one step
        size = TYPES[kind].size
        pack = struct.Struct("!i" + (_INTEGERS | _FLOATS)[kind]).pack
        return lambda value: pack(size, value)
    write, length = writer(kind, form), _LENGTH.pack

    def field(value: Any) -> bytes:
        content = write(value)
        return length(len(content)) + content

    return field


def data_rows(rows: Sequence[tuple[Any, ...]], writers: Sequence[Write]) -> list[bytes]:
    """Rows as messages."""
    head, count, found = struct.Struct("!cIH"), len(writers), []
    try:
        for row in rows:
            fields = [_NULL if value is None else write(value) for value, write in zip(row, writers, strict=True)]
            body = b"".join(fields)
            found.append(head.pack(b"D", len(body) + 6, count) + body)
    except (struct.error, OverflowError):
        raise out_of_range() from None
    return found


def writer(kind: str, form: int) -> Write:
    """What writes values of a type in a format."""
    element = arrays.ELEMENTS.get(kind)
    if element is not None and (form == TEXT or element in TYPES):
        if form == BINARY:
            return arrays.binary_writer(kind, TYPES[element].oid, writer(element, BINARY))
        return arrays.text_writer(kind, writer(element, TEXT))
    if form == BINARY:
        return _BINARY_WRITERS.get(kind) or _no_binary(kind)
    return _TEXT_WRITERS.get(kind, _string)


def _no_binary(kind: str) -> Write:
    """What refuses to write values of a type that is only spoken as text."""

    def refused(value: Any) -> bytes:
        raise _only_text(kind)

    return refused


def _only_text(kind: str) -> Refusal:
    return Refusal(f"A {kind} has no binary form here. Ask for it as text.", state="0A000")


def _string(value: Any) -> bytes:
    return (value if isinstance(value, str) else str(value)).encode("utf-8", "replace")


def _single(value: Any) -> bytes:
    return _string(value)[:1]


def _bool_text(value: Any) -> bytes:
    return b"t" if value else b"f"


def _integer_text(value: Any) -> bytes:
    return b"%d" % value


def float_text(value: float) -> str:
    """A number as PostgreSQL prints it: the shortest text that means it, without .0."""
    if math.isfinite(value):
        if 1e15 <= abs(value) < 1e16:  # Python writes these without an exponent
            return np.format_float_scientific(value, trim="-", exp_digits=2)
        return repr(float(value)).removesuffix(".0")
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _float_text(value: Any) -> bytes:
    return float_text(value).encode()


def _single_float_text(value: Any) -> bytes:
    with np.errstate(over="ignore"):
        short = np.float32(value)
    if not np.isfinite(short):
        return float_text(float(short)).encode()
    if short == 0 or 1e-4 <= abs(short) < 1e6:
        return np.format_float_positional(short, trim="-").encode()
    return np.format_float_scientific(short, trim="-", exp_digits=2).encode()


def _numeric_text(value: Any) -> bytes:
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, Decimal) and not value.is_finite():
        return _float_text(float(value))
    return (format(value, "f") if isinstance(value, Decimal) else str(value)).encode()


def _date_text(value: datetime.date) -> bytes:
    return b"%04d-%02d-%02d" % (value.year, value.month, value.day)


def _timestamp_text(value: Any) -> bytes:
    if not isinstance(value, datetime.datetime):
        return _date_text(value) + b" 00:00:00"
    found = b"%04d-%02d-%02d %02d:%02d:%02d" % value.timetuple()[:6]
    return found + (b".%06d" % value.microsecond).rstrip(b"0") if value.microsecond else found


def _in_utc(value: datetime.datetime) -> datetime.datetime:
    return value if value.tzinfo is None else value.astimezone(datetime.UTC).replace(tzinfo=None)


def _interval_text(value: Any) -> bytes:
    """A difference of times as days, hours, minutes and seconds. A text is written as it is."""
    if not isinstance(value, datetime.timedelta):
        return _string(value)
    rest = value - datetime.timedelta(days=value.days)
    day = f"{value.days} day{'' if value.days == 1 else 's'} " if value.days else ""
    return f"{day}{str(rest).rjust(len(str(rest)) + (rest < datetime.timedelta(hours=10)), '0')}".encode()


def _moment_text(value: datetime.datetime) -> bytes:
    return _timestamp_text(_in_utc(value)) + b"+00"


def _bytea_text(value: bytes) -> bytes:
    return b"\\x" + value.hex().encode()


_TEXT_WRITERS: dict[str, Write] = {
    "bool": _bool_text,
    **dict.fromkeys(("int2", "int4", "int8", "oid"), _integer_text),
    "float8": _float_text,
    "float4": _single_float_text,
    "numeric": _numeric_text,
    "char": _single,
    "date": _date_text,
    "timestamp": _timestamp_text,
    "timestamptz": _moment_text,
    "interval": _interval_text,
    "bytea": _bytea_text,
}


def _packer(form: str) -> Write:
    pack = struct.Struct("!" + form).pack

    def packed(value: Any) -> bytes:
        return pack(value)

    return packed


def _number_packer(kind: str) -> Write:
    pack = struct.Struct("!I").pack

    def packed(value: Any) -> bytes:
        if not isinstance(value, int):
            raise _only_text(kind)
        return pack(value)

    return packed


def _date_bytes(value: datetime.date) -> bytes:
    return _LENGTH.pack(value.toordinal() - _FIRST_DAY)


def _timestamp_bytes(value: Any) -> bytes:
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    return struct.pack("!q", (value.replace(tzinfo=None) - _EPOCH) // _MICROSECOND)


def _time_bytes(value: datetime.time) -> bytes:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return struct.pack("!q", seconds * 1_000_000 + value.microsecond)


def _interval_bytes(value: Any) -> bytes:
    if not isinstance(value, datetime.timedelta):
        raise _only_text("interval")
    rest = value - datetime.timedelta(days=value.days)
    return struct.pack("!qii", rest // _MICROSECOND, value.days, 0)


def _moment_bytes(value: datetime.datetime) -> bytes:
    return _timestamp_bytes(_in_utc(value))


def numeric_bytes(value: Any) -> bytes:
    """A number in groups of four decimal digits, with its sign and the digits after the point."""
    number = value if isinstance(value, Decimal) else Decimal(str(value))
    if not number.is_finite():
        sign = 0xC000 if number.is_nan() else 0xD000 if number > 0 else 0xF000
        return struct.pack("!hhHh", 0, 0, sign, 0)
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    text = ("".join(map(str, digits)) + "0" * max(0, exponent)).rjust(scale, "0")
    whole, part = text[: len(text) - scale], text[len(text) - scale :]
    whole, part = whole.lstrip("0"), part + "0" * (-scale % 4)
    whole = whole.rjust(-(-len(whole) // 4) * 4, "0")
    groups = [int((whole + part)[at : at + 4]) for at in range(0, len(whole) + len(part), 4)]
    weight = len(whole) // 4 - 1
    while groups and not groups[0]:
        groups, weight = groups[1:], weight - 1
    while groups and not groups[-1]:
        groups.pop()
    if not groups:
        sign, weight = 0, 0
    return struct.pack(f"!hhHh{len(groups)}h", len(groups), weight, 0x4000 if sign else 0, scale, *groups)


_BINARY_WRITERS: dict[str, Write] = {
    "bool": _packer("?"),
    **{kind: _packer(form) for kind, form in (_INTEGERS | _FLOATS).items()},
    **{kind: _number_packer(kind) for kind in ("xid", "cid", *_REGISTERED)},
    "numeric": numeric_bytes,
    **dict.fromkeys(_STRINGS, _string),
    "jsonb": lambda value: b"\x01" + _string(value),
    "time": _time_bytes,
    "interval": _interval_bytes,
    "char": _single,
    "date": _date_bytes,
    "timestamp": _timestamp_bytes,
    "timestamptz": _moment_bytes,
    "bytea": bytes,
}


# --- reading ------------------------------------------------------------------------------------------------


def read_value(kind: str, form: int, content: bytes) -> Any:
    """The value of a parameter that a client sent."""
    try:
        return _reader(kind, form)(content)
    except (ValueError, ArithmeticError, InvalidOperation, struct.error, IndexError):
        if form == BINARY:
            raise Refusal(f"This is no binary value of type {kind}.", state="22P03") from None
        state = "22007" if kind in ("date", "timestamp", "timestamptz") else "22P02"
        raise Refusal(f"This is no value of type {kind}.", state=state) from None


def _reader(kind: str, form: int) -> Read:
    element = arrays.ELEMENTS.get(kind)
    if element is not None and (form == TEXT or element in TYPES):
        if form == BINARY:
            return lambda content: arrays.read_binary(content, TYPES[element].oid, _reader(element, BINARY))
        return lambda content: arrays.read_text(kind, content.decode(), _reader(element, TEXT))
    if form == TEXT:
        return _TEXT_READERS.get(kind, _decoded)
    if kind not in _BINARY_READERS:
        raise Refusal(f"A value of type {kind} must be sent as text here.", state="0A000")
    return _BINARY_READERS[kind]


def _read_bool(content: bytes) -> bool:
    word = content.decode().strip().lower()
    if word not in _TRUE and word not in _FALSE:
        raise ValueError
    return word in _TRUE


def _integer_reader(kind: str) -> Read:
    bits = 8 * TYPES[kind].size
    least, most = (0, 2**bits) if kind == "oid" else (-(2 ** (bits - 1)), 2 ** (bits - 1))

    def read(content: bytes) -> int:
        text = content.decode().strip()
        if not re.fullmatch(r"[+-]?[0-9]{1,40}", text):
            raise ValueError
        if not least <= int(text) < most:
            raise out_of_range()
        return int(text)

    return read


def _read_named(content: bytes) -> int | str:
    """A number, or the name of what has it."""
    text = content.decode().strip()
    return int(text) if re.fullmatch(r"[0-9]{1,10}", text) else text


def _read_float(content: bytes) -> float:
    text = content.decode().strip()
    if len(text) > LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        raise ValueError
    found = float(text)
    if math.isinf(found) and "inf" not in text.lower():
        raise out_of_range()
    return found


def _read_single(content: bytes) -> float:
    found = _read_float(content)
    with np.errstate(over="ignore"):
        short = float(np.float32(found))
    if math.isinf(short) and not math.isinf(found):
        raise out_of_range()
    return short


def _read_numeric(content: bytes) -> Decimal:
    text = content.decode().strip()
    if len(text) > LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        raise ValueError
    found = Decimal(text)
    if found.is_finite() and abs(found.adjusted()) > 1000:
        raise out_of_range()
    return found


def _read_date(content: bytes) -> datetime.date:
    return _day_and_time(content)[0].date()


def _read_timestamp(content: bytes) -> datetime.datetime:
    """A time. PostgreSQL, too, leaves out a zone here."""
    return _day_and_time(content)[0]


def _read_moment(content: bytes) -> datetime.datetime:
    """A time in a zone. Without one, it is in UTC."""
    time, zone = _day_and_time(content)
    return (time - zone).replace(tzinfo=datetime.UTC)


def _day_and_time(content: bytes) -> tuple[datetime.datetime, datetime.timedelta]:
    match = _MOMENT.fullmatch(content.decode().strip())
    if match is None:
        raise ValueError
    day, time, zone = match.groups()
    found = datetime.datetime.fromisoformat(f"{day} {time or '00:00'}")
    if zone in (None, "Z", "z"):
        return found, datetime.timedelta()
    digits = zone[1:].replace(":", "").ljust(4, "0")
    away = datetime.timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return found, -away if zone[0] == "-" else away


def _read_bytea(content: bytes) -> bytes:
    if content.startswith(b"\\x"):
        return bytes.fromhex(content[2:].decode("ascii"))
    return re.sub(rb"\\(\\|[0-3][0-7][0-7])|\\", _unescaped, content)


def _unescaped(match: re.Match[bytes]) -> bytes:
    if match[1] is None:
        raise ValueError
    return b"\\" if match[1] == b"\\" else bytes([int(match[1], 8)])


def _decoded(content: bytes) -> str:
    try:
        found = content.decode()
    except UnicodeDecodeError:
        raise Refusal("The text is not UTF-8.", state="22021") from None
    if "\0" in found:
        raise Refusal("A text cannot have zero bytes.", state="22021")
    return found


_TEXT_READERS: dict[str, Read] = {
    "bool": _read_bool,
    **{kind: _integer_reader(kind) for kind in ("int2", "int4", "int8", "oid")},
    **dict.fromkeys(("xid", "cid", *_REGISTERED), _read_named),
    "float8": _read_float,
    "float4": _read_single,
    "numeric": _read_numeric,
    "date": _read_date,
    "timestamp": _read_timestamp,
    "timestamptz": _read_moment,
    "bytea": _read_bytea,
}


def _unpacker(form: str) -> Read:
    unpack = struct.Struct("!" + form).unpack

    def unpacked(content: bytes) -> Any:
        return unpack(content)[0]

    return unpacked


def _read_date_bytes(content: bytes) -> datetime.date:
    return datetime.date.fromordinal(_FIRST_DAY + int(_LENGTH.unpack(content)[0]))


def _read_timestamp_bytes(content: bytes) -> datetime.datetime:
    return _EPOCH + datetime.timedelta(microseconds=int(struct.unpack("!q", content)[0]))


def _read_moment_bytes(content: bytes) -> datetime.datetime:
    return _read_timestamp_bytes(content).replace(tzinfo=datetime.UTC)


def _read_numeric_bytes(content: bytes) -> Decimal:
    count, weight, sign, scale = struct.unpack_from("!hhHh", content)
    groups = struct.unpack(f"!{max(0, count)}h", content[8:])
    if sign in (0xC000, 0xD000, 0xF000):
        return Decimal({0xC000: "NaN", 0xD000: "Infinity", 0xF000: "-Infinity"}[sign])
    if sign not in (0, 0x4000) or not all(0 <= group < 10_000 for group in groups) or abs(weight) > 250:
        raise ValueError
    if count > 500 or not 0 <= scale <= 1000:
        raise out_of_range()
    digits = tuple(map(int, "".join(f"{group:04d}" for group in groups) or "0"))
    found = Decimal((0, digits, 4 * (weight - count + 1) if count else 0))  # exact, unlike arithmetic with decimals
    whole, _, part = f"{found:f}".partition(".")
    return Decimal(f"{'-' if sign else ''}{whole}" + (f".{part[:scale].ljust(scale, '0')}" if scale else ""))


_BINARY_READERS: dict[str, Read] = {
    "bool": lambda content: bool(_unpacker("B")(content)),
    **{kind: _unpacker(form) for kind, form in (_INTEGERS | _FLOATS).items()},
    "numeric": _read_numeric_bytes,
    **dict.fromkeys((*_STRINGS, "char"), _decoded),
    "date": _read_date_bytes,
    "timestamp": _read_timestamp_bytes,
    "timestamptz": _read_moment_bytes,
    "bytea": bytes,
}


def type_name(oid: int) -> str | None:
    """The name of a type by its number. None if it is not spoken, or was not said."""
    return NAMES.get(oid)


def out_of_range() -> Refusal:
    """The error about a number that its type cannot hold."""
    return Refusal("A value is out of the range of its type.", state="22003")
