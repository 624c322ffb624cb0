"""Spark's dialect for values, for 3.5 and 4.x in ANSI mode: constants, operations, casts.

Integers are BIGINT, other numbers DOUBLE, and timestamps TIMESTAMP_NTZ. Each operation is total, wherever an optimizer
moves it, or it is refused.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from discreet.engines.duckdb.dialect import LONGEST, PLAIN_WORDS
from discreet.errors import NotAllowed

TYPES = {
    "integer": "BIGINT",
    "number": "DOUBLE",
    "text": "STRING",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP_NTZ",
}
_LEAST, _MOST = -(2**63), 2**63 - 1
INFINITE, _NAN = "CAST('Infinity' AS DOUBLE)", "CAST('NaN' AS DOUBLE)"
_WHOLE_FROM = "4503599627370496D"
"""From 2^52 on a DOUBLE is a whole number."""


def refuse(what: str) -> NoReturn:
    raise NotAllowed(f"{what} is not supported on Spark yet. Use CASE, comparisons and arithmetic.", code="sql-engine")


def quote(name: str) -> str:
    """A name, quoted, with any characters in it."""
    return "`" + name.replace("`", "``") + "`"


def literal(value: Any) -> str:
    """A constant in the engine's dialect."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return f"CAST({value} AS BIGINT)" if _LEAST <= value <= _MOST else refuse("A number of more than 64 bits")
        case float():
            return f"CAST('{value!r}' AS DOUBLE)"
        case str():
            return _text(value)
        case datetime.datetime() if value.tzinfo is None:
            return f"TIMESTAMP_NTZ'{value.isoformat(' ')}'"
        case datetime.date() if not isinstance(value, datetime.datetime):
            return f"DATE'{value.isoformat()}'"
    return refuse(f"A constant of type {type(value).__name__}")


def _text(value: str) -> str:
    """Text by its bytes: no character has a special meaning."""
    try:
        return f"CAST(X'{value.encode().hex()}' AS STRING)"
    except UnicodeEncodeError:
        refuse("Text that is not Unicode")


def _text_in(literal: str) -> str | None:
    """The text in a literal that `_text` wrote."""
    found = re.fullmatch(r"CAST\(X'([0-9a-f]*)' AS STRING\)", literal)
    return None if found is None else bytes.fromhex(found[1]).decode()


def _whole_in(literal: str) -> int | None:
    """The integer in a printed literal."""
    found = re.fullmatch(r"CAST\((-?\d+) AS BIGINT\)", literal)
    return None if found is None else int(found[1])


# --- operations -----------------------------------------------------------------------------------------------


def operation(op: str, args: Sequence[str], kinds: Sequence[str], kind: str, detail: str = "") -> str:
    """An operation on printed values of these types. It is total for all values."""
    if op in _ARITHMETIC:
        if kind not in ("integer", "number"):
            refuse(op.upper())
        body = _ARITHMETIC[op].get(kind)
        if body is None:
            refuse(f"{op.upper().replace('_', ' ')} of numbers that are not whole")
        return body.format(*as_types(args, kinds, kind))
    if op in _FUNCTIONS:
        return _FUNCTIONS[op].format(*as_types(args, kinds, "number"))
    if op in ("least", "greatest") and len(args) == 1:
        return args[0]
    if op in PLAIN_WORDS:
        return PLAIN_WORDS[op].format(*args, all=", ".join(args))
    if op in _TEXTS:
        texts = as_types(args, kinds, "text")
        return _TEXTS[op].format(*texts, all=", ".join(texts))
    if op in _SPECIAL:
        return _SPECIAL[op](args, kinds, kind, detail)
    return refuse(op.upper())


def as_types(args: Sequence[str], kinds: Sequence[str], kind: str) -> list[str]:
    """Values converted to one type: integers become floats if needed, and NULL gets the type."""
    typed = TYPES[kind]
    return [
        f"CAST(NULL AS {typed})" if own == "other" else arg if own == kind else f"CAST({arg} AS {typed})"
        for arg, own in zip(args, kinds, strict=True)
    ]


_ARITHMETIC: dict[str, dict[str, str]] = {
    "add": {"integer": "try_add({0}, {1})", "number": "({0} + {1})"},
    "subtract": {"integer": "try_subtract({0}, {1})", "number": "({0} - {1})"},
    "multiply": {"integer": "try_multiply({0}, {1})", "number": "({0} * {1})"},
    # where try_divide is NULL, the result is infinite or NaN; 1/0 is infinite, because 0 has no sign here
    "divide": {"number": "coalesce(try_divide({0}, {1}), {0} * power(abs({1}), -1D))"},
    "integer_divide": {
        "integer": "(CASE WHEN {1} = -1 THEN try_subtract(0L, {0}) ELSE {0} div nullif(nullif({1}, 0L), -1L) END)"
    },
    "modulo": {
        "integer": "(CASE WHEN {1} = -1 AND {0} = try_subtract(-9223372036854775807L, 1L) THEN NULL "
        "ELSE {0} % nullif({1}, 0L) END)"
    },
    "negate": {"integer": "try_subtract(0L, {0})", "number": "(-{0})"},
    "abs": {"integer": "(CASE WHEN {0} < 0 THEN try_subtract(0L, {0}) ELSE {0} END)", "number": "abs({0})"},
    "sign": {
        "integer": "CAST(sign({0}) AS BIGINT)",
        "number": "(CASE WHEN isnan({0}) THEN 0D ELSE sign({0}) END)",
    },
}
"""By the type of the result; the arguments have it, too."""

_SMALL = "CASE WHEN abs({0}) < " + _WHOLE_FROM + " THEN {0} END"
_FUNCTIONS = {
    "floor": "coalesce(CAST(floor(" + _SMALL + ") AS DOUBLE), {0})",
    "ceil": "coalesce(CAST(ceil(" + _SMALL + ") AS DOUBLE), {0})",
    "sqrt": "sqrt({0})",
    "ln": "(CASE WHEN {0} < 0D OR isnan({0}) THEN " + _NAN + " WHEN {0} = 0D THEN -" + INFINITE + " ELSE ln({0}) END)",
    "exp": "exp({0})",
    # as in C, where Java returns NaN
    "power": "(CASE WHEN {1} IS NOT NULL AND ({0} = 1D OR ({0} = -1D AND abs({1}) = " + INFINITE + ")) THEN 1D "
    "ELSE power({0}, {1}) END)",
}
"""Of numbers, to a number."""

_TEXTS = {
    "lower": "lower({0})",
    "upper": "upper({0})",
    "trim": "trim(BOTH ' ' FROM {0})",
    "length": "CAST(length({0}) AS BIGINT)",
    "concat": f"left(concat_ws('', {{all}}), {LONGEST})",
    "joined": f"left(concat({{0}}, {{1}}), {LONGEST})",
}


def _is_number(args: Sequence[str], kinds: Sequence[str], kind: str, detail: str) -> str:
    number = as_types(args, kinds, "number")[0]
    return f"({number} IS NOT NULL AND NOT isnan({number}))"


def _like(word: str) -> Callable[[Sequence[str], Sequence[str], str, str], str]:
    def printed(args: Sequence[str], kinds: Sequence[str], kind: str, detail: str) -> str:
        pattern = _text_in(args[1])
        if pattern is None:
            refuse("LIKE with a pattern that is not a literal")
        plain = pattern.replace("\\", "\\\\")  # the question has no escape character
        return f"({as_types(args[:1], kinds[:1], 'text')[0]} {word} {_text(plain)})"

    return printed


def _round(args: Sequence[str], kinds: Sequence[str], kind: str, detail: str) -> str:
    """Halves round away from 0. The number is scaled and rounded in binary, not by its decimal digits."""
    digits = _whole_in(args[1]) if len(args) > 1 else 0
    if digits is None or not -15 <= digits <= 15:
        refuse("ROUND to other than -15 to 15 digits")
    number = as_types(args[:1], kinds[:1], "number")[0]
    unit = f"1e{abs(digits)}D"
    up, down = ("*", "/") if digits >= 0 else ("/", "*")
    small = f"CASE WHEN abs({number}) < {_WHOLE_FROM} THEN abs({number}) {up} {unit} END"
    whole = _FUNCTIONS["floor"].format(small)
    half = f"CASE WHEN {small} - {whole} >= 0.5D THEN 1D ELSE 0D END"
    return f"coalesce(sign({number}) * ({whole} + {half}) {down} {unit}, {number})"


def _substring(args: Sequence[str], kinds: Sequence[str], kind: str, detail: str) -> str:
    places = [_whole_in(arg) for arg in args[1:]]
    if not all(place is not None and 0 <= place < 10**9 for place in places) or not places[0]:
        refuse("SUBSTRING with positions that are not literals of at least 1")
    return f"substring({as_types(args[:1], kinds[:1], 'text')[0]}, {', '.join(map(str, places))})"


_PARTS = {
    "year": "year({0})",
    "quarter": "quarter({0})",
    "month": "month({0})",
    "week": "weekofyear({0})",
    "day": "day({0})",
    "dayofweek": "(dayofweek({0}) - 1)",
    "hour": "hour({0})",
    "minute": "minute({0})",
    "second": "second({0})",
}


def _part(args: Sequence[str], kinds: Sequence[str], kind: str, detail: str) -> str:
    body = _PARTS.get(detail)
    if body is None:
        refuse(f"{detail.upper()} of a date")
    return f"CAST({body.format(f'CAST({args[0]} AS TIMESTAMP_NTZ)')} AS BIGINT)"


def _truncate(args: Sequence[str], kinds: Sequence[str], kind: str, detail: str) -> str:
    typed = TYPES.get(kind, "TIMESTAMP_NTZ")
    return f"CAST(date_trunc('{detail}', CAST({args[0]} AS TIMESTAMP)) AS {typed})"


def _days_between(args: Sequence[str], kinds: Sequence[str], kind: str, detail: str) -> str:
    return f"CAST(datediff(CAST({args[1]} AS DATE), CAST({args[0]} AS DATE)) AS BIGINT)"


_BLANK = r"[ \t\n\r\f\x0B]*"
_NUMBER = rf"^{_BLANK}[+-]?([0-9]{{1,200}}(\.[0-9]{{0,200}})?|\.[0-9]{{1,200}})([eE][+-]?[0-9]{{1,2}})?{_BLANK}\z"
"""What text is read as a number: decimals, without the letters that Java allows at their end."""


def _read_number(value: str) -> str:
    return f"CASE WHEN {value} RLIKE {_text(_NUMBER)} THEN TRY_CAST(trim(BOTH ' \\t\\n\\r\\f\\u000B' FROM {value}) AS "


def _cast(args: Sequence[str], kinds: Sequence[str], kind: str, detail: str) -> str:
    own, value, small = kinds[0], args[0], detail == "INTEGER"
    whole = "BIGINT) AS INT) AS BIGINT)" if small else "BIGINT)"
    opened = "CAST(TRY_CAST(TRY_CAST(" if small else "TRY_CAST("
    match own, kind:
        case "other", _:
            return f"CAST(NULL AS {TYPES[kind]})"
        case "integer", "integer":
            return f"{opened}{value} AS {whole}" if small else value
        case "number", "integer":
            # Java converts 2^63 to the largest integer
            return f"{opened}rint(CASE WHEN {value} < 9.223372036854775808E18D THEN {value} END) AS {whole}"
        case "text", "integer":
            # as decimals first: they round, and keep all digits of an integer
            exact = f"{_read_number(value)}DECIMAL(38, 15)) END"
            wide = f"{_read_number(value)}DOUBLE) END"
            return f"{opened}coalesce(round({exact}), TRY_CAST(rint({wide}) AS DECIMAL(38, 0))) AS {whole}"
        case "text", "number":
            return f"({_read_number(value)}DOUBLE) END)"
        case ("integer", "boolean") | ("number", "boolean"):
            return f"({value} <> 0)"
        case _ if own == kind:
            return value
        case ("boolean", "integer" | "number") | ("integer", "number") | ("integer" | "boolean" | "date", "text"):
            return f"CAST({value} AS {TYPES[kind]})"
        case ("date", "timestamp") | ("timestamp", "date"):
            return f"CAST({value} AS {TYPES[kind]})"
    return refuse(f"A cast from {own} to {kind}")


_SPECIAL: dict[str, Callable[[Sequence[str], Sequence[str], str, str], str]] = {
    "is_number": _is_number,
    "like": _like("LIKE"),
    "ilike": _like("ILIKE"),
    "round": _round,
    "substring": _substring,
    "part": _part,
    "truncate": _truncate,
    "days_between": _days_between,
    "cast": _cast,
}
