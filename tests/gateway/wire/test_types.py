"""Values in text and in binary: what is written is read again, and is what libpq's clients read."""

from __future__ import annotations

import contextlib
import datetime
import math
import struct
from decimal import Decimal
from fractions import Fraction
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.gateway.wire.format import types
from discreet.gateway.wire.format.types import BINARY, TEXT, float_text, read_value, writer
from discreet.gateway.wire.format.values import TYPES, Refusal
from discreet.gateway.wire.shapes import Field, layout, rows_of

from .a_wire import EVERYTHING
from .conftest import Doors

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int2": st.integers(-(2**15), 2**15 - 1),
    "int4": st.integers(-(2**31), 2**31 - 1),
    "int8": st.integers(-(2**63), 2**63 - 1),
    "oid": st.integers(0, 2**32 - 1),
    "regclass": st.integers(0, 2**32 - 1),
    "float8": st.floats(allow_nan=False),
    "float4": st.floats(allow_nan=False, width=32),
    "numeric": st.decimals(allow_nan=False, allow_infinity=False, places=None).filter(
        lambda one: abs(one.adjusted()) < 200 and abs(one.as_tuple().exponent) < 200
    ),
    "text": TEXTS,
    "varchar": TEXTS,
    "name": TEXTS,
    "unknown": TEXTS,
    "char": st.sampled_from("rvci"),
    "date": st.dates(),
    "timestamp": st.datetimes(),
    "timestamptz": st.datetimes(timezones=st.just(datetime.UTC)),
    "bytea": st.binary(max_size=20),
    "text[]": st.lists(st.one_of(st.none(), TEXTS), max_size=5),
    "name[]": st.lists(TEXTS, max_size=5),
    "char[]": st.lists(st.sampled_from("abc"), max_size=5),
    **{f"{kind}[]": st.lists(st.one_of(st.none(), st.integers(0, 2**15 - 1)), max_size=5) for kind in ("int2", "oid")},
    **{f"{kind}[]": st.lists(st.integers(-(2**31), 2**31 - 1), max_size=5) for kind in ("int4", "int8")},
    "int2vector": st.lists(st.integers(0, 9), max_size=5),
    "oidvector": st.lists(st.integers(0, 9), max_size=5),
    "bool[]": st.lists(st.booleans(), max_size=5),
    "float8[]": st.lists(st.floats(allow_nan=False), max_size=5),
    "json": TEXTS,
    "regproc": st.integers(0, 2**32 - 1),
}


def test_every_type_is_written() -> None:
    for kind in TYPES:
        assert callable(writer(kind, TEXT))
        assert callable(writer(kind, BINARY))


@pytest.mark.some_quick(31)
@pytest.mark.parametrize("form", [TEXT, BINARY])
@pytest.mark.parametrize("kind", VALUES)
def test_what_is_written_is_read_again(kind: str, form: int) -> None:
    @settings(max_examples=50)
    @given(VALUES[kind])
    def again(value: Any) -> None:
        found = read_value(kind, form, writer(kind, form)(value))
        assert found == value
        assert type(found) is type(value)
        if kind in ("float4", "float8"):
            assert math.copysign(1, found) == math.copysign(1, value)

    again()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "-0"),
        (1.0, "1"),
        (0.1, "0.1"),
        (1e14, "100000000000000"),
        (123456789012345.0, "123456789012345"),
        (1e15, "1e+15"),
        (1234567890123456.0, "1.234567890123456e+15"),
        (1e16, "1e+16"),
        (1e20, "1e+20"),
        (1e-4, "0.0001"),
        (1e-5, "1e-05"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (math.nan, "NaN"),
    ],
)
def test_floats_as_postgresql_prints_them(value: float, text: str) -> None:
    assert float_text(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.1, "0.1"), (1e6, "1e+06"), (123456.0, "123456"), (1e-5, "1e-05"), (3.4e38, "3.4e+38"), (math.inf, "Infinity")],
)
def test_short_floats_as_postgresql_prints_them(value: float, text: str) -> None:
    assert writer("float4", TEXT)(value) == text.encode()


@pytest.mark.parametrize(
    ("kind", "form", "content", "value"),
    [
        ("bool", TEXT, b" TRUE ", True),
        ("bool", TEXT, b"off", False),
        ("int8", TEXT, b" +12 ", 12),
        ("float8", TEXT, b"-inf", -math.inf),
        ("float8", TEXT, b"1e3", 1000.0),
        ("float8", TEXT, b".5", 0.5),
        ("numeric", TEXT, b"1.50", Decimal("1.50")),
        ("date", TEXT, b"2024-02-29", datetime.date(2024, 2, 29)),
        ("timestamp", TEXT, b"2024-02-29T12:00", datetime.datetime(2024, 2, 29, 12)),
        ("timestamp", TEXT, b"2024-02-29 12:00:00.5+05", datetime.datetime(2024, 2, 29, 12, 0, 0, 500_000)),
        ("timestamptz", TEXT, b"2024-02-29 12:00:00+05:30", datetime.datetime(2024, 2, 29, 6, 30, tzinfo=datetime.UTC)),
        ("timestamptz", TEXT, b"2024-02-29 12:00:00-08", datetime.datetime(2024, 2, 29, 20, tzinfo=datetime.UTC)),
        ("timestamptz", TEXT, b"2024-02-29 12:00:00Z", datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC)),
        ("bytea", TEXT, rb"\xDEad", b"\xde\xad"),
        ("bytea", TEXT, rb"a\\b\000", b"a\\b\0"),
        ("text[]", TEXT, b'{ a , "b c",NULL,"NULL" }', ["a", "b c", None, "NULL"]),
        ("int8[]", TEXT, b"{ }", []),
        ("regclass", TEXT, b"visits", "visits"),
        ("regclass", TEXT, b"123", 123),
        ("numeric", BINARY, struct.pack("!hhHhhh", 2, 0, 0x4000, 4, 1, 2500), Decimal("-1.2500")),
        ("numeric", BINARY, struct.pack("!hhHh", 0, 0, 0xC000, 0), None),
    ],
)
def test_what_clients_write(kind: str, form: int, content: bytes, value: Any) -> None:
    found = read_value(kind, form, content)
    assert found.is_nan() if value is None else found == value


@pytest.mark.parametrize(
    ("kind", "form", "content", "state"),
    [
        ("bool", TEXT, b"maybe", "22P02"),
        ("int8", TEXT, b"1.5", "22P02"),
        ("int8", TEXT, b"", "22P02"),
        ("int8", TEXT, "１".encode(), "22P02"),
        ("int2", TEXT, b"40000", "22003"),
        ("oid", TEXT, b"-1", "22003"),
        ("int8", TEXT, b"9" * 100_000, "22P02"),
        ("float8", TEXT, b"1e999", "22003"),
        ("float8", TEXT, b"0x10", "22P02"),
        ("float8", TEXT, b"1_000", "22P02"),
        ("float8", TEXT, b"1" * 100_000 + b"x", "22P02"),
        ("numeric", TEXT, b"1e100000", "22003"),
        ("date", TEXT, b"2023-02-29", "22007"),
        ("date", TEXT, b"yesterday", "22007"),
        ("timestamp", TEXT, b"2024-01-01 25:00", "22007"),
        ("timestamptz", TEXT, b"0001-01-01 00:00:00+05", "22007"),
        ("text", TEXT, b"\xff", "22021"),
        ("text", BINARY, b"a\0", "22021"),
        ("bytea", TEXT, rb"\xabc", "22P02"),
        ("bytea", TEXT, rb"\999", "22P02"),
        ("text[]", TEXT, b"a,b", "22P02"),
        ("text[]", TEXT, b"{a", "22P02"),
        ("text[]", TEXT, b"{a,}", "22P02"),
        ("text[]", TEXT, b"{{a}}", "22P02"),
        ("text[]", TEXT, b"{a} x", "22P02"),
        ("text[]", TEXT, b"{a" + b" " * 100_000, "22P02"),
        ("int8[]", TEXT, b"{" + b"1," * 20_000 + b"1}", "54000"),
        ("int8", BINARY, b"\0" * 4, "22P03"),
        ("bool", BINARY, b"", "22P03"),
        ("date", BINARY, struct.pack("!i", 2**31 - 1), "22P03"),
        ("timestamp", BINARY, struct.pack("!q", 2**63 - 1), "22P03"),
        ("int8[]", BINARY, struct.pack("!iiIii", 1, 0, 20, 2**30, 1), "54000"),
        ("int8[]", BINARY, struct.pack("!iiIii", 1, 0, 20, 5, 1), "22P03"),
        ("int8[]", BINARY, struct.pack("!iiIiiii", 2, 0, 20, 1, 1, 1, 1), "22P03"),
        ("int8[]", BINARY, struct.pack("!iiI", 0, 0, 25) + b"x", "22P03"),
        ("numeric", BINARY, struct.pack("!hhHh", 5, 0, 0, 0), "22P03"),
        ("numeric", BINARY, struct.pack("!hhHhh", 1, 30_000, 0, 0, 1), "22P03"),
        ("numeric", BINARY, struct.pack("!hhHhh", 1, 0, 0, 0, 10_000), "22P03"),
    ],
)
def test_what_is_no_value(kind: str, form: int, content: bytes, state: str) -> None:
    with pytest.raises(Refusal) as info:
        read_value(kind, form, content)
    assert info.value.state == state
    assert len(info.value.message) < 200


@pytest.mark.parametrize("form", [TEXT, BINARY])
@given(kind=st.sampled_from(sorted(VALUES)), content=st.binary(max_size=40))
def test_any_bytes_are_a_value_or_refused(form: int, kind: str, content: bytes) -> None:
    with contextlib.suppress(Refusal):  # anything else is a failure
        read_value(kind, form, content)


def test_a_number_that_does_not_fit_is_refused() -> None:
    for kind, form in (("int8", BINARY), ("int4", BINARY), ("int2", BINARY)):
        with pytest.raises(Refusal) as info:
            types.data_rows([(2**70,)], types.field_writers([types.Column("n", kind)], [form]))
        assert info.value.state == "22003"


@pytest.mark.parametrize(
    ("kind", "value", "text", "binary"),
    [
        ("interval", datetime.timedelta(1, 3723, 500_000), b"1 day 01:02:03.500000", (3_723_500_000, 1, 0)),
        ("interval", datetime.timedelta(-2), b"-2 days 00:00:00", (0, -2, 0)),
        ("interval", "1 mon", b"1 mon", None),
        ("time", datetime.time(1, 2, 3), b"01:02:03", (3_723_000_000,)),
        ("regclass", "visits", b"visits", None),
        ("record", "(1,2)", b"(1,2)", None),
        ("aclitem[]", ["alice=r/alice"], b"{alice=r/alice}", None),
    ],
)
def test_types_of_the_catalog(kind: str, value: Any, text: bytes, binary: tuple[int, ...] | None) -> None:
    assert writer(kind, TEXT)(value) == text
    if binary is None:
        with pytest.raises(Refusal) as info:
            writer(kind, BINARY)(value)
        assert info.value.state == "0A000"
    else:
        assert writer(kind, BINARY)(value) == struct.pack("!q" + "i" * (len(binary) - 1), *binary)
    assert read_value("record", TEXT, b"(1)") == "(1)"
    with pytest.raises(Refusal):
        read_value("record", BINARY, b"")


def test_formats() -> None:
    assert types.formats_of((), 3) == [0, 0, 0]
    assert types.formats_of((1,), 3) == [1, 1, 1]
    assert types.formats_of((1, 0), 2) == [1, 0]
    for codes, state in (((1, 0), "08P01"), ((2,), "22023"), ((-1, 0, 0), "22023")):
        with pytest.raises(Refusal) as info:
            types.formats_of(codes, 3)
        assert info.value.state == state


def test_psycopg_reads_every_type_in_both_formats(doors: Doors) -> None:
    """libpq hands over the bytes, and psycopg, whose readers are its own, reads the same values."""
    with psycopg.connect(doors.dsn(), autocommit=True) as connection:
        for binary in (False, True):
            found = connection.execute("everything", binary=binary).fetchall()
            names = list(EVERYTHING)
            assert found[1] == (None,) * len(names)
            for kind, value, right in zip(names, found[0], EVERYTHING.values(), strict=True):
                seen = bytes(value) if kind == "bytea" else value
                assert seen == (right.encode() if kind == "char" and isinstance(seen, bytes) else right), (kind, binary)


def test_parameters_by_libpq(doors: Doors) -> None:
    cases = {
        "int8": [0, -5, 2**62],
        "float8": [0.1, math.inf],
        "text": ["", "ünd", "it's"],
        "bool": [True, False],
        "date": [EVERYTHING["date"]],
        "timestamp": [EVERYTHING["timestamp"]],
        "timestamptz": [EVERYTHING["timestamptz"]],
        "numeric": [Decimal("1.50"), Decimal("-0.00012345678901234567890"), Decimal("1e20")],
        "int8[]": [[1, 2**40]],
        "text[]": [["a", 'b"', None]],
    }
    with psycopg.connect(doors.dsn(), autocommit=True) as connection:
        for kind, values in cases.items():
            for value in values:
                for form in (TEXT, BINARY):
                    doors.log.runs.clear()
                    content, oid = writer(kind, form)(value), TYPES[kind].oid
                    result = connection.pgconn.exec_params(f"echo {kind}".encode(), [content], [oid], [form], form)
                    assert result.get_value(0, 0) == content
                    assert doors.log.runs[0][2] == (value,)


def test_an_error_has_few_digits_and_is_never_below_itself():
    errors = [1153.4063316970087, 0.0, 2.5e-7, 1 / 3, math.inf, math.nan, None, 1000.0]
    table = pa.table({"n": [41.123456] * len(errors), "n_error": pa.array(errors, pa.float64())})
    fields = [Field("n", "double", noisy=True), Field("n_error", "double", error_of="n")]
    rows = rows_of(table, layout(fields, [], "columns"))
    assert [value for value, _ in rows] == [41.0, *[41.123456] * 2, 41.1235, *[41.123456] * 3, 41.0]
    shown = [error for _, error in rows]
    assert shown[:5] == [1154.0, 0.0, 2.5e-7, 0.3334, math.inf]
    assert math.isnan(shown[5])
    assert shown[6:] == [None, 1001.0]  # with what the value is rounded by


@settings(max_examples=200)
@given(st.floats(-1e6, 1e6), st.floats(0.01, 1e9))
def test_rounded_values_and_ends_still_contain_the_interval(value, error):
    table = pa.table({"n": [value], "n_error": [error]})
    fields = [Field("n", "double", noisy=True), Field("n_error", "double", error_of="n")]
    [[shown, half]] = rows_of(table, layout(fields, [], "columns"))
    assert abs(Fraction(shown) - Fraction(value)) + Fraction(error) <= Fraction(half) + Fraction(1, 10**6)
    assert half <= 1.02 * error
    ends = pa.table({"m": [value], "m_low": [value - error], "m_high": [value + error]})
    fields = [Field("m", "double", noisy=True), *(Field(f"m_{end}", "double", error_of="m") for end in ("low", "high"))]
    [[_, low, high]] = rows_of(ends, layout(fields, [], "columns"))
    assert low <= value - error
    assert high >= value + error


def test_the_ends_of_an_interval_have_the_digits_of_its_width():
    table = pa.table({"m": [443.0], "m_low": [241.3123456], "m_high": [645.0789], "n": [7], "n_error": [30.123456]})
    fields = [Field("m", "double", noisy=True), *(Field(f"m_{end}", "double", error_of="m") for end in ("low", "high"))]
    fields += [Field("n", "int64", noisy=True), Field("n_error", "double", error_of="n")]
    [row] = rows_of(table, layout(fields, [], "columns"))
    assert row == (443.0, 7, 241.3, 645.1, 30.13)
