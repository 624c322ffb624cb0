"""PostgreSQL's dialect for values: constants, operations, casts. There is no TRY, so each is total, or it is refused.

Integers are int8, other numbers float8, and text compares as bytes (COLLATE "C"). Arithmetic on float8 raises errors
where IEEE 754 defines a value. The operations below return that value, as DuckDB does: 1/0 is infinite, 0/0 is NaN.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from discreet.engines.duckdb.dialect import PLAIN_WORDS, quote_text
from discreet.errors import NotAllowed

TYPES = {
    "integer": "int8",
    "number": "float8",
    "text": "text",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamp",
}
_LEAST, _MOST = -(2**63), 2**63 - 1
WHOLE = f"BETWEEN {_LEAST} AND {_MOST}"
INFINITE, NAN = "'Infinity'::float8", "'NaN'::float8"
_SIMPLE = re.compile(r"""(\w+|"[^"]+"|CAST\(-?\d+ AS int8\)|'[^']*')(::\w+)?""")
LONGEST = 2**18
"""Text of more bytes is NULL. PostgreSQL fails on values and rows of 1 GB, and lower() on a quarter of that; a row of
1664 columns, which is the most it has, all of them so long, is half as large."""


def refuse(what: str) -> NoReturn:
    raise NotAllowed(
        f"{what} is not supported on PostgreSQL yet. Use CASE, comparisons and arithmetic.", code="sql-engine"
    )


def literal(value: Any) -> str:
    """A constant in the engine's dialect."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return f"CAST({value} AS int8)" if _LEAST <= value <= _MOST else refuse("A number of more than 64 bits")
        case float():
            return f"'{value!r}'::float8"
        case str():
            return f"{_text(value)}::text"
        case datetime.datetime() if value.tzinfo is None:
            return f"'{value.isoformat(' ')}'::timestamp"
        case datetime.date() if not isinstance(value, datetime.datetime):
            return f"'{value.isoformat()}'::date"
    return refuse(f"A constant of type {type(value).__name__}")


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        refuse("Text that is not Unicode")
    return refuse("Text with a zero character") if "\0" in value else quote_text(value)


def once(body: str, **operands: str) -> str:
    """A body that uses its operands several times. Each operand is computed once: OFFSET 0 prevents inlining."""
    if all(_SIMPLE.fullmatch(text) for text in operands.values()):
        return f"({body.format(**operands)})"
    columns = ", ".join(f"{text} AS {name}" for name, text in operands.items())
    named = body.format(**{name: f"o.{name}" for name in operands})
    return f"(SELECT {named} FROM (SELECT {columns} OFFSET 0) AS o)"


# --- operations -----------------------------------------------------------------------------------------------


def operation(op: str, args: Sequence[str], kinds: Sequence[str], kind: str, detail: str = "") -> str:
    """An operation on printed values of these types. It is total for all values."""
    known = [name for name in kinds if name != "other"]
    if op in _ARITHMETIC:
        if kind not in ("integer", "number"):
            refuse(op.upper())
        body = _ARITHMETIC[op].get(kind)
        if body is None:
            refuse(f"{op.upper().replace('_', ' ')} of numbers that are not whole")
        return once(body, **dict(zip("ab", as_types(args, kinds, kind), strict=False)))
    if op in _FUNCTIONS:
        return once(_FUNCTIONS[op], **dict(zip("ab", as_types(args, kinds, "number"), strict=False)))
    if op in ("lt", "le", "gt", "ge", "least", "greatest") and "text" in known:
        args = [f'{arg} COLLATE "C"' for arg in args]
    if op in PLAIN_WORDS:
        return PLAIN_WORDS[op].format(*args, all=", ".join(args))
    if op in _TEXTS:
        return _TEXTS[op].format(*as_types(args, kinds, "text"), all=", ".join(as_types(args, kinds, "text")))
    if op in _SPECIAL:
        return _SPECIAL[op](args, kinds, kind, detail)
    return refuse(op.upper())


def as_types(args: Sequence[str], kinds: Sequence[str], kind: str) -> list[str]:
    """Values converted to one type: integers become floats if needed, and NULL gets the type."""
    typed = TYPES[kind]
    return [
        f"NULL::{typed}" if own == "other" else arg if own == kind else f"{arg}::{typed}"
        for arg, own in zip(args, kinds, strict=True)
    ]


def _fitting(exact: str, value: str) -> str:
    """An integer, or NULL if it needs more than 64 bits."""
    return f"CASE WHEN {exact} {WHOLE} THEN {value} END"


_ORDINARY = "abs({a}) BETWEEN 1e-150 AND 1e150 AND abs({b}) BETWEEN 1e-150 AND 1e150"
_ENDLESS = "abs({a}) >= " + INFINITE + " OR abs({b}) >= " + INFINITE  # NaN sorts above all numbers here
# what is small next to the last digit of the largest float8 cannot overflow it
_BEYOND = "least(abs({a}), abs({b})) > 1e290 AND abs({a}) > '1.797e308'::float8 - abs({b})"
_SIGNED = "sign({a}) * sign({b}) * " + INFINITE
_ARITHMETIC: dict[str, dict[str, str]] = {
    "add": {
        "integer": _fitting("{a}::numeric + {b}::numeric", "{a} + {b}"),
        "number": "CASE WHEN " + _ENDLESS + " THEN {a} + {b} "
        "WHEN " + _BEYOND + " AND sign({a}) = sign({b}) THEN sign({a}) * " + INFINITE + " ELSE {a} + {b} END",
    },
    "subtract": {
        "integer": _fitting("{a}::numeric - {b}::numeric", "{a} - {b}"),
        "number": "CASE WHEN " + _ENDLESS + " THEN {a} - {b} "
        "WHEN " + _BEYOND + " AND sign({a}) = -sign({b}) THEN sign({a}) * " + INFINITE + " ELSE {a} - {b} END",
    },
    "multiply": {
        "integer": _fitting("{a}::numeric * {b}::numeric", "{a} * {b}"),
        "number": "CASE WHEN " + _ORDINARY + " THEN {a} * {b} "
        "WHEN {a} = 0 OR {b} = 0 OR " + _ENDLESS + " THEN {a} * {b} "
        "WHEN ln(abs({a})) + ln(abs({b})) > 709.78 THEN " + _SIGNED + " "
        "WHEN ln(abs({a})) + ln(abs({b})) < -744.9 THEN 0 ELSE {a} * {b} END",
    },
    "divide": {
        "number": "CASE WHEN {a} IS NULL OR {b} IS NULL THEN NULL "
        "WHEN {a} = " + NAN + " OR {b} = " + NAN + " THEN {a} + {b} "
        "WHEN {b} = 0 THEN CASE WHEN {a} = 0 THEN " + NAN + " "
        "WHEN {b}::text = '-0' THEN sign({a}) * -" + INFINITE + " ELSE sign({a}) * " + INFINITE + " END "
        "WHEN " + _ORDINARY + " THEN {a} / {b} "
        "WHEN abs({b}) = " + INFINITE + " THEN CASE WHEN abs({a}) = " + INFINITE + " THEN " + NAN + " "
        "ELSE {a} * 0 END "
        "WHEN abs({a}) = " + INFINITE + " THEN " + _SIGNED + " WHEN {a} = 0 THEN 0 "
        "WHEN ln(abs({a})) - ln(abs({b})) > 709.78 THEN " + _SIGNED + " "
        "WHEN ln(abs({a})) - ln(abs({b})) < -744.9 THEN 0 ELSE {a} / {b} END",
    },
    "integer_divide": {
        "integer": "CASE WHEN {b} = 0 THEN NULL WHEN {b} = -1 THEN "
        + _fitting("-{a}::numeric", "-{a}")
        + " ELSE {a} / {b} END"
    },
    "modulo": {
        "integer": "CASE WHEN {b} = 0 THEN NULL WHEN {b} = -1 THEN CASE WHEN {a} > "
        + str(_LEAST)
        + " THEN 0 END ELSE {a} % {b} END"
    },
    "negate": {"integer": _fitting("-{a}::numeric", "-{a}"), "number": "-{a}"},
    "abs": {"integer": _fitting("abs({a}::numeric)", "abs({a})"), "number": "abs({a})"},
    "sign": {
        "integer": "sign({a}::numeric)::int8",
        "number": "CASE WHEN {a} = " + NAN + " THEN 0::float8 ELSE sign({a}) END",
    },
}
"""By the type of the result; `a` and `b` have it, too."""

_ODD = "{b} = floor({b}) AND {b} / 2 <> floor({b} / 2)"
_POWER = "{b} * ln(abs({a}))"
_FUNCTIONS = {
    "floor": "floor({a})",
    "ceil": "ceil({a})",
    "sqrt": "CASE WHEN {a} < 0 THEN " + NAN + " ELSE sqrt({a}) END",
    "ln": "CASE WHEN {a} < 0 THEN " + NAN + " WHEN {a} = 0 THEN -" + INFINITE + " ELSE ln({a}) END",
    "exp": "CASE WHEN {a} = " + NAN + " THEN {a} WHEN {a} > 709.78 THEN " + INFINITE + " "
    "WHEN {a} < -708 THEN 0::float8 ELSE exp({a}) END",
    # the rules of C, case by case; exponents above 1e300 are even, and those below 1e-250 count as 0
    "power": "CASE WHEN {a} IS NULL OR {b} IS NULL THEN NULL WHEN {b} = 0 OR {a} = 1 THEN 1::float8 "
    "WHEN {a} = " + NAN + " OR {b} = " + NAN + " THEN " + NAN + " "
    "WHEN abs({b}) > 1e300 AND abs({a}) = 1 THEN 1::float8 "
    "WHEN abs({b}) > 1e300 THEN CASE WHEN (abs({a}) > 1) = ({b} > 0) THEN " + INFINITE + " ELSE 0::float8 END "
    "WHEN abs({b}) < 1e-250 AND {a} > 0 AND {a} < " + INFINITE + " THEN 1::float8 "
    "WHEN abs({b}) < 1e-250 AND {a} < 0 AND {a} > -" + INFINITE + " THEN " + NAN + " "
    "WHEN {a} = 0 OR abs({a}) = " + INFINITE + " THEN CASE WHEN ({a} = 0) = ({b} > 0) THEN 0::float8 "
    "WHEN abs({b}) >= 1 AND {a} < 0 THEN CASE WHEN " + _ODD + " THEN -" + INFINITE + " ELSE " + INFINITE + " END "
    "ELSE " + INFINITE + " END "
    "WHEN {a} < 0 AND {b} <> floor({b}) THEN " + NAN + " "
    "WHEN " + _POWER + " > 709.78 THEN CASE WHEN {a} < 0 AND " + _ODD + " THEN -" + INFINITE + " "
    "ELSE " + INFINITE + " END "
    "WHEN " + _POWER + " < -708 THEN 0::float8 ELSE power({a}, {b}) END",
}
"""Of numbers, to a number."""

_TEXTS = {
    "like": "({0} LIKE {1} ESCAPE '')",
    "ilike": "({0} COLLATE \"default\" ILIKE {1} ESCAPE '')",
    "lower": '(lower({0} COLLATE "default") COLLATE "C")',
    "upper": '(upper({0} COLLATE "default") COLLATE "C")',
    "trim": "btrim({0}, ' ')",
    "length": "char_length({0})::int8",
}


def _join(args: Sequence[str], kinds: Sequence[str], kind: str, detail: str) -> str:
    texts = dict(zip("ab", as_types(args, kinds, "text"), strict=True))
    return once(_within_longest(["octet_length({a})", "octet_length({b})"], "{a} || {b}"), **texts)


def _concat(args: Sequence[str], kinds: Sequence[str], kind: str, detail: str) -> str:
    """Texts joined together. NULL adds nothing."""
    texts = {f"t{number}": text for number, text in enumerate(as_types(args, kinds, "text"))}
    named = [f"{{{name}}}" for name in texts]
    lengths = [f"coalesce(octet_length({name}), 0)" for name in named]
    return once(_within_longest(lengths, f"concat({', '.join(named)})"), **texts)


def _within_longest(lengths: Sequence[str], text: str) -> str:
    """A text made from others, or NULL if it is too long: a question could double it until the engine fails."""
    return f"CASE WHEN {' + '.join(lengths)} <= {LONGEST} THEN {text} END"


def _is_number(args: Sequence[str], kinds: Sequence[str], kind: str, detail: str) -> str:
    return once("{a} IS NOT NULL AND {a} <> " + NAN, a=as_types(args, kinds, "number")[0])


def _round(args: Sequence[str], kinds: Sequence[str], kind: str, detail: str) -> str:
    """Halves round away from 0, as in DuckDB. PostgreSQL itself rounds float8 halves to even."""
    digits = re.fullmatch(r"CAST\((-?\d+) AS int8\)", args[1]) if len(args) > 1 else None
    if len(args) > 1 and (digits is None or abs(int(digits[1])) > 15):
        refuse("ROUND to other than -15 to 15 digits")
    many = int(digits[1]) if digits else 0
    unit = f"'1e{abs(many)}'::float8"
    up, down = ("*", "/") if many >= 0 else ("/", "*")
    part = f"trunc({{a}} {up} {unit})"
    half = f"CASE WHEN abs({{a}} {up} {unit} - {part}) >= 0.5 THEN sign({{a}}) ELSE 0 END"
    # above 2^52 every number is an integer
    body = f"WHEN abs({{a}}) < 4503599627370496 THEN ({part} + {half}) {down} {unit} ELSE {{a}} END"
    # a quotient that underflows float8 would be an error
    body = f"CASE WHEN abs({{a}}) < 0.5 THEN 0::float8 {body}" if many < 0 else f"CASE {body}"
    return once(body, a=as_types(args[:1], kinds[:1], "number")[0])


def _substring(args: Sequence[str], kinds: Sequence[str], kind: str, detail: str) -> str:
    places = [re.fullmatch(r"CAST\((\d{1,9}) AS int8\)", arg) for arg in args[1:]]
    if not places[0] or not int(places[0][1]) or not all(places):
        refuse("SUBSTRING with positions that are not literals of at least 1")
    written = ", ".join(place[1] for place in places if place)
    return f"substr({as_types(args[:1], kinds[:1], 'text')[0]}, {written})"


def _part(args: Sequence[str], kinds: Sequence[str], kind: str, detail: str) -> str:
    name = {"dayofweek": "dow"}.get(detail, detail)
    return f"floor(date_part('{name}', {args[0]}::timestamp))::int8"


def _truncate(args: Sequence[str], kinds: Sequence[str], kind: str, detail: str) -> str:
    typed = TYPES.get(kind, "timestamp")
    return f"date_trunc('{detail}', {args[0]}::timestamp)::{typed}"


def _days_between(args: Sequence[str], kinds: Sequence[str], kind: str, detail: str) -> str:
    return f"({args[1]}::date - {args[0]}::date)::int8"


_BLANK = r"[ \t\n\r\f\v]*"
_NUMBER = rf"'^{_BLANK}[+-]?([0-9]{{1,200}}(\.[0-9]{{0,200}})?|\.[0-9]{{1,200}})([eE][+-]?[0-9]{{1,2}})?{_BLANK}$'"
"""The text that is read as a number: decimals, with few enough digits that no float8 overflows."""


def cast(args: Sequence[str], kinds: Sequence[str], kind: str, detail: str) -> str:
    own, value = kinds[0], args[0]
    if own == "other":
        return f"NULL::{TYPES[kind]}"
    small = detail == "INTEGER"
    low, high = (-(2**31), 2**31) if small else (-(2**63), 2**63)
    inside = f"BETWEEN {low} AND {high - 1}"
    match own, kind:
        case "integer", "integer":
            return once("CASE WHEN {a} " + inside + " THEN {a} END", a=value) if small else value
        case "number", "integer":
            # a value that rounds to the upper end is outside; float8 has no number in between
            top = f"'{high - 0.5}'" if small else f"'{high}'"
            body = "CASE WHEN {a} >= " + f"'{low}'::float8" + " AND {a} < " + f"{top}::float8" + " THEN {a}::int8 END"
            return once(body, a=value)
        case "text", "integer":
            read = "round({a}::numeric)"
            body = "CASE WHEN {a} ~ " + _escape_braces(_NUMBER) + " THEN CASE WHEN " + read + " " + inside + " THEN "
            return once(body + read + "::int8 END END", a=value)
        case "text", "number":
            return once("CASE WHEN {a} ~ " + _escape_braces(_NUMBER) + " THEN {a}::float8 END", a=value)
        case ("boolean", "integer") | ("boolean", "number"):
            return f"{value}::int4::{TYPES[kind]}"
        case ("integer", "boolean") | ("number", "boolean"):
            return f"({value} <> 0)"
        case ("integer", "number") | ("integer", "text") | ("boolean", "text") | ("date", "text"):
            return f"{value}::{TYPES[kind]}"
        case ("date", "timestamp") | ("timestamp", "date"):
            return f"{value}::{TYPES[kind]}"
        case _ if own == kind:
            return value
    return refuse(f"A cast from {own} to {kind}")


def _escape_braces(text: str) -> str:
    """Text to be inserted into a body, with its braces escaped."""
    return text.replace("{", "{{").replace("}", "}}")


_SPECIAL: dict[str, Callable[[Sequence[str], Sequence[str], str, str], str]] = {
    "is_number": _is_number,
    "concat": _concat,
    "joined": _join,
    "round": _round,
    "substring": _substring,
    "part": _part,
    "truncate": _truncate,
    "days_between": _days_between,
    "cast": cast,
}
