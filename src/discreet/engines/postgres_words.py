"""PostgreSQL's own words. It has no TRY: each word is total by itself, and what is not yet said so is refused.

Whole numbers are int8, others float8, text compares as bytes (COLLATE "C"). Arithmetic on float8 raises errors here for
what IEEE 754 gives a value; the words below give that value, as DuckDB does: 1/0 is infinite, 0/0 is NaN.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NoReturn

from discreet.engines.words import PLAIN_WORDS, quoted_text
from discreet.engines.words import drawn as drawn
from discreet.engines.words import exact_sum as exact_sum
from discreet.engines.words import few_of_each as few_of_each
from discreet.engines.words import quoted as quoted
from discreet.engines.words import steps as steps
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
_WHOLE = f"BETWEEN {_LEAST} AND {_MOST}"
_INFINITE, _NAN = "'Infinity'::float8", "'NaN'::float8"
_SIMPLE = re.compile(r"""(\w+|"[^"]+"|CAST\(-?\d+ AS int8\)|'[^']*')(::\w+)?""")
LONGEST = 2**18
"""Text of more bytes is NULL. PostgreSQL fails on values and rows of 1 GB, and lower() on a quarter of that; a row of
1664 columns, which is the most it has, all of them so long, is half as large."""


def _refuse(what: str) -> NoReturn:
    raise NotAllowed(f"{what} is not answered from PostgreSQL yet. Use CASE, comparisons and arithmetic.")


def literal(value: Any) -> str:
    """A constant in the engine's words."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return f"CAST({value} AS int8)" if _LEAST <= value <= _MOST else _refuse("A number of more than 64 bits")
        case float():
            return f"'{value!r}'::float8"
        case str():
            return f"{_text(value)}::text"
        case datetime.datetime() if value.tzinfo is None:
            return f"'{value.isoformat(' ')}'::timestamp"
        case datetime.date() if not isinstance(value, datetime.datetime):
            return f"'{value.isoformat()}'::date"
    return _refuse(f"A constant of type {type(value).__name__}")


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        _refuse("Text that is not Unicode")
    return _refuse("Text with a zero character") if "\0" in value else quoted_text(value)


def _once(body: str, **operands: str) -> str:
    """A body that names its operands several times, each of them computed once: OFFSET 0 keeps them apart."""
    if all(_SIMPLE.fullmatch(text) for text in operands.values()):
        return f"({body.format(**operands)})"
    columns = ", ".join(f"{text} AS {name}" for name, text in operands.items())
    named = body.format(**{name: f"o.{name}" for name in operands})
    return f"(SELECT {named} FROM (SELECT {columns} OFFSET 0) AS o)"


# --- operations -----------------------------------------------------------------------------------------------


def operation(op: str, args: Sequence[str], kinds: Sequence[str], kind: str, detail: str = "") -> str:
    """An operation on printed values of these types: total, whatever they are."""
    known = [name for name in kinds if name != "other"]
    if op in _ARITHMETIC:
        if kind not in ("integer", "number"):
            _refuse(op.upper())
        body = _ARITHMETIC[op].get(kind)
        if body is None:
            _refuse(f"{op.upper().replace('_', ' ')} of numbers that are not whole")
        return _once(body, **dict(zip("ab", _as(args, kinds, kind), strict=False)))
    if op in _FUNCTIONS:
        return _once(_FUNCTIONS[op], **dict(zip("ab", _as(args, kinds, "number"), strict=False)))
    if op in ("lt", "le", "gt", "ge", "least", "greatest") and "text" in known:
        args = [f'{arg} COLLATE "C"' for arg in args]
    if op in PLAIN_WORDS:
        return PLAIN_WORDS[op].format(*args, all=", ".join(args))
    if op in _TEXTS:
        return _TEXTS[op].format(*_as(args, kinds, "text"), all=", ".join(_as(args, kinds, "text")))
    if op in _SPECIAL:
        return _SPECIAL[op](args, kinds, kind, detail)
    return _refuse(op.upper())


def _as(args: Sequence[str], kinds: Sequence[str], kind: str) -> list[str]:
    """Values as one type: whole numbers as others, and NULL, which has none."""
    typed = TYPES[kind]
    return [
        f"NULL::{typed}" if own == "other" else arg if own == kind else f"{arg}::{typed}"
        for arg, own in zip(args, kinds, strict=True)
    ]


def _fitting(exact: str, value: str) -> str:
    """A whole number, unless it needs more than 64 bits."""
    return f"CASE WHEN {exact} {_WHOLE} THEN {value} END"


_ORDINARY = "abs({a}) BETWEEN 1e-150 AND 1e150 AND abs({b}) BETWEEN 1e-150 AND 1e150"
_ENDLESS = "abs({a}) >= " + _INFINITE + " OR abs({b}) >= " + _INFINITE  # NaN is above all numbers here
# what is small beside the last digit of the largest float8 cannot lead beyond it
_BEYOND = "least(abs({a}), abs({b})) > 1e290 AND abs({a}) > '1.797e308'::float8 - abs({b})"
_SIGNED = "sign({a}) * sign({b}) * " + _INFINITE
_ARITHMETIC: dict[str, dict[str, str]] = {
    "add": {
        "integer": _fitting("{a}::numeric + {b}::numeric", "{a} + {b}"),
        "number": "CASE WHEN " + _ENDLESS + " THEN {a} + {b} "
        "WHEN " + _BEYOND + " AND sign({a}) = sign({b}) THEN sign({a}) * " + _INFINITE + " ELSE {a} + {b} END",
    },
    "subtract": {
        "integer": _fitting("{a}::numeric - {b}::numeric", "{a} - {b}"),
        "number": "CASE WHEN " + _ENDLESS + " THEN {a} - {b} "
        "WHEN " + _BEYOND + " AND sign({a}) = -sign({b}) THEN sign({a}) * " + _INFINITE + " ELSE {a} - {b} END",
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
        "WHEN {a} = " + _NAN + " OR {b} = " + _NAN + " THEN {a} + {b} "
        "WHEN {b} = 0 THEN CASE WHEN {a} = 0 THEN " + _NAN + " "
        "WHEN {b}::text = '-0' THEN sign({a}) * -" + _INFINITE + " ELSE sign({a}) * " + _INFINITE + " END "
        "WHEN " + _ORDINARY + " THEN {a} / {b} "
        "WHEN abs({b}) = " + _INFINITE + " THEN CASE WHEN abs({a}) = " + _INFINITE + " THEN " + _NAN + " "
        "ELSE {a} * 0 END "
        "WHEN abs({a}) = " + _INFINITE + " THEN " + _SIGNED + " WHEN {a} = 0 THEN 0 "
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
        "number": "CASE WHEN {a} = " + _NAN + " THEN 0::float8 ELSE sign({a}) END",
    },
}
"""By the type of the result; `a` and `b` have it, too."""

_ODD = "{b} = floor({b}) AND {b} / 2 <> floor({b} / 2)"
_POWER = "{b} * ln(abs({a}))"
_FUNCTIONS = {
    "floor": "floor({a})",
    "ceil": "ceil({a})",
    "sqrt": "CASE WHEN {a} < 0 THEN " + _NAN + " ELSE sqrt({a}) END",
    "ln": "CASE WHEN {a} < 0 THEN " + _NAN + " WHEN {a} = 0 THEN -" + _INFINITE + " ELSE ln({a}) END",
    "exp": "CASE WHEN {a} = " + _NAN + " THEN {a} WHEN {a} > 709.78 THEN " + _INFINITE + " "
    "WHEN {a} < -708 THEN 0::float8 ELSE exp({a}) END",
    # the rules of C, case by case; exponents above 1e300 are even, and those under 1e-250 as good as 0
    "power": "CASE WHEN {a} IS NULL OR {b} IS NULL THEN NULL WHEN {b} = 0 OR {a} = 1 THEN 1::float8 "
    "WHEN {a} = " + _NAN + " OR {b} = " + _NAN + " THEN " + _NAN + " "
    "WHEN abs({b}) > 1e300 AND abs({a}) = 1 THEN 1::float8 "
    "WHEN abs({b}) > 1e300 THEN CASE WHEN (abs({a}) > 1) = ({b} > 0) THEN " + _INFINITE + " ELSE 0::float8 END "
    "WHEN abs({b}) < 1e-250 AND {a} > 0 AND {a} < " + _INFINITE + " THEN 1::float8 "
    "WHEN abs({b}) < 1e-250 AND {a} < 0 AND {a} > -" + _INFINITE + " THEN " + _NAN + " "
    "WHEN {a} = 0 OR abs({a}) = " + _INFINITE + " THEN CASE WHEN ({a} = 0) = ({b} > 0) THEN 0::float8 "
    "WHEN abs({b}) >= 1 AND {a} < 0 THEN CASE WHEN " + _ODD + " THEN -" + _INFINITE + " ELSE " + _INFINITE + " END "
    "ELSE " + _INFINITE + " END "
    "WHEN {a} < 0 AND {b} <> floor({b}) THEN " + _NAN + " "
    "WHEN " + _POWER + " > 709.78 THEN CASE WHEN {a} < 0 AND " + _ODD + " THEN -" + _INFINITE + " "
    "ELSE " + _INFINITE + " END "
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


def _joined(args: Sequence[str], kinds: Sequence[str], kind: str, detail: str) -> str:
    texts = dict(zip("ab", _as(args, kinds, "text"), strict=True))
    return _once(_within_longest(["octet_length({a})", "octet_length({b})"], "{a} || {b}"), **texts)


def _concat(args: Sequence[str], kinds: Sequence[str], kind: str, detail: str) -> str:
    """Texts one after the other; NULL adds nothing."""
    texts = {f"t{number}": text for number, text in enumerate(_as(args, kinds, "text"))}
    named = [f"{{{name}}}" for name in texts]
    lengths = [f"coalesce(octet_length({name}), 0)" for name in named]
    return _once(_within_longest(lengths, f"concat({', '.join(named)})"), **texts)


def _within_longest(lengths: Sequence[str], text: str) -> str:
    """A text made of others, unless it is too long: a question could double it until the engine fails."""
    return f"CASE WHEN {' + '.join(lengths)} <= {LONGEST} THEN {text} END"


def _is_number(args: Sequence[str], kinds: Sequence[str], kind: str, detail: str) -> str:
    return _once("{a} IS NOT NULL AND {a} <> " + _NAN, a=_as(args, kinds, "number")[0])


def _round(args: Sequence[str], kinds: Sequence[str], kind: str, detail: str) -> str:
    """Halves go away from 0, as in DuckDB; float8 by itself rounds them to even."""
    digits = re.fullmatch(r"CAST\((\d+) AS int8\)", args[1]) if len(args) > 1 else None
    if len(args) > 1 and (digits is None or int(digits[1]) > 15):
        _refuse("ROUND to other than 0 to 15 digits")
    unit = f"'1e{digits[1]}'::float8" if digits else "1::float8"
    part = "trunc({a} * " + unit + ")"
    half = "CASE WHEN abs({a} * " + unit + " - " + part + ") >= 0.5 THEN sign({a}) ELSE 0 END"
    # beyond 2^52 a number is whole
    body = "CASE WHEN abs({a}) < 4503599627370496 THEN (" + part + " + " + half + ") / " + unit + " ELSE {a} END"
    return _once(body, a=_as(args[:1], kinds[:1], "number")[0])


def _substring(args: Sequence[str], kinds: Sequence[str], kind: str, detail: str) -> str:
    places = [re.fullmatch(r"CAST\((\d{1,9}) AS int8\)", arg) for arg in args[1:]]
    if not places[0] or not int(places[0][1]) or not all(places):
        _refuse("SUBSTRING with places that are not written out, from 1 on,")
    written = ", ".join(place[1] for place in places if place)
    return f"substr({_as(args[:1], kinds[:1], 'text')[0]}, {written})"


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
"""What text is read as a number: decimals, in at most so many digits that no float8 overflows."""


def _cast(args: Sequence[str], kinds: Sequence[str], kind: str, detail: str) -> str:
    own, value = kinds[0], args[0]
    if own == "other":
        return f"NULL::{TYPES[kind]}"
    small = detail == "INTEGER"
    low, high = (-(2**31), 2**31) if small else (-(2**63), 2**63)
    inside = f"BETWEEN {low} AND {high - 1}"
    match own, kind:
        case "integer", "integer":
            return _once("CASE WHEN {a} " + inside + " THEN {a} END", a=value) if small else value
        case "number", "integer":
            # what rounds to the upper end is outside; float8 has no number between that and the end itself
            top = f"'{high - 0.5}'" if small else f"'{high}'"
            body = "CASE WHEN {a} >= " + f"'{low}'::float8" + " AND {a} < " + f"{top}::float8" + " THEN {a}::int8 END"
            return _once(body, a=value)
        case "text", "integer":
            read = "round({a}::numeric)"
            body = "CASE WHEN {a} ~ " + _braced(_NUMBER) + " THEN CASE WHEN " + read + " " + inside + " THEN "
            return _once(body + read + "::int8 END END", a=value)
        case "text", "number":
            return _once("CASE WHEN {a} ~ " + _braced(_NUMBER) + " THEN {a}::float8 END", a=value)
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
    return _refuse(f"A cast from {own} to {kind}")


def _braced(text: str) -> str:
    """Written into a body: braces stand for themselves."""
    return text.replace("{", "{{").replace("}", "}}")


_SPECIAL: dict[str, Callable[[Sequence[str], Sequence[str], str, str], str]] = {
    "is_number": _is_number,
    "concat": _concat,
    "joined": _joined,
    "round": _round,
    "substring": _substring,
    "part": _part,
    "truncate": _truncate,
    "days_between": _days_between,
    "cast": _cast,
}


def total(value: str) -> str:
    """Every word is total here already."""
    return value


def fenced(rows: str) -> str:
    """PostgreSQL would write a query into the one around it, once for every use of a column."""
    return f"{rows} OFFSET 0"


def equal_as(first: str, second: str, kind: str) -> str:
    """That two columns are equal as one type."""
    return f"({first}::{TYPES[kind]} = {second}::{TYPES[kind]})"


# --- sources --------------------------------------------------------------------------------------------------

_DAYS = {"date": "'0001-01-01'::date AND '9999-12-31'::date"}
_DAYS["timestamp"] = "'0001-01-01'::timestamp AND '9999-12-31 23:59:59.999999'::timestamp"
"""The dates that Python has, too. Others, and those at infinity, are NULL."""


ARRAY = "array"
_LARGEST = 2**15
"""The bytes of the largest value of another type; a larger one is NULL. One that is full of numbers such as 1e131071
has a text that is 10,000 times longer."""


def plainly_typed(name: str, kind: str, given: str) -> str:
    """A column of a source as the one type of ours; `given` is PostgreSQL's own, or that it is an array."""
    column = quoted(name)
    match kind:
        case "number" if given == "numeric":
            return (
                f"CASE WHEN {column} = 'NaN'::numeric THEN {_NAN} WHEN abs({column}) > 1e300 THEN NULL "
                f"WHEN abs({column}) < 1e-300 THEN 0 ELSE {column}::float8 END AS {column}"
            )
        case "date" | "timestamp":
            return f"CASE WHEN {column} BETWEEN {_DAYS[kind]} THEN {column} END AS {column}"
        case "text" if given in ("text", "varchar", "bpchar"):
            return f'(CASE WHEN octet_length({column}) <= {LONGEST} THEN {column}::text END COLLATE "C") AS {column}'
        case "text":  # written by its own type, and by no cast that somebody made
            return f'(CASE WHEN {column} IS NOT NULL THEN concat({column}) END COLLATE "C") AS {column}'
        case "other":  # only told apart
            whole = f"{column} || '{{}}'" if given == ARRAY else f"ARRAY[{column}]"  # neither is compressed
            short = f"{column} IS DISTINCT FROM NULL AND pg_column_size({whole}) <= {_LARGEST}"
            digest = f"encode(sha256(convert_to(concat({column}), 'UTF8')), 'hex')"
            return f'(CASE WHEN {short} THEN {digest} END COLLATE "C") AS {column}'
    return f"{column}::{TYPES[kind]} AS {column}"


# --- sums and counts ------------------------------------------------------------------------------------------


def square(value: str) -> str:
    """The square of a whole number of steps."""
    return f"{value}::numeric * {value}::numeric"


def scaled(total: str, most: int, rows: str, largest: int) -> str:
    """A whole number times `most` over `rows`, rounded towards 0."""
    return f"div({total}::numeric * {most}, {rows}::numeric)"


def moved_sum(total: str, rows: str, shift: int) -> str:
    """The exact sum of values that are all moved by so much."""
    return f"{total} + {shift}::numeric * {rows}"


def _number(value: str, kind: str) -> str:
    if kind == "boolean":
        return _cast([value], [kind], "number", "DOUBLE")
    return _as([value], [kind], "number")[0] if kind in ("integer", "number") else _refuse(f"A sum or rank of a {kind}")


def distance(value: str, center: Fraction, kind: str) -> str:
    """How far a number lies from the center; NULL where it is no number.

    Promise: no error. Centers are so small beside the largest float8 that taking one off never leads beyond it.
    """
    number = _number(value, kind)
    return f"({number} - '{float(center)!r}'::float8)" if center else number


def clamped_steps(number: str, step: Fraction, lowest: int, highest: int) -> str:
    """A float8, given by name, as whole steps within [lowest, highest]; NULL for NULL and NaN."""
    low, high = (f"'{float(end * step)!r}'::float8" for end in (lowest, highest))
    # a product that is too small for float8 would be an error
    whole = (
        f"CASE WHEN abs({number}) < '{float(step / 4)!r}'::float8 THEN 0 "
        f"ELSE ({number} * '{float(1 / step)!r}'::float8)::int8 END"
    )
    return (
        f"CASE WHEN {number} BETWEEN {low} AND {high} THEN {whole} WHEN {number} < {low} THEN {lowest}::int8 "
        f"WHEN {number} = {_NAN} THEN NULL WHEN {number} > {high} THEN {highest}::int8 END"
    )


def of_person(aggregate: str, value: str, kind: str, of: str) -> str:
    """An aggregate of one person's rows: it never fails, and is NULL where it does not fit its type."""
    if aggregate == "count":
        return f"count({value})"
    if aggregate in ("min", "max"):
        if of == "other":
            _refuse(f"{aggregate.upper()} of a column of another type")
        if of == "boolean":
            return f"bool_{'and' if aggregate == 'min' else 'or'}({value})"
        if of == "number":
            return f"{aggregate}({value} + 0::float8)"  # of two zeros the plain one, in any order
        return f'{aggregate}({value} COLLATE "C")' if of == "text" else f"{aggregate}({value})"
    if of == "integer":
        found = f"{aggregate}({value})"
        return f"CASE WHEN {found} {_WHOLE} THEN {found}::int8 END" if kind == "integer" else f"{found}::float8"
    if of == "boolean":
        return f"{aggregate}({_cast([value], [of], 'integer', 'BIGINT')})::{TYPES[kind]}"
    # as decimals, whose sum has no order and no overflow; infinities and NaN decide by themselves
    exact = f"{aggregate}({_once('CASE WHEN abs({a}) < ' + _INFINITE + ' THEN {a}::text::numeric END', a=value)})"
    odd = f"sum({_once('CASE WHEN abs({a}) >= ' + _INFINITE + ' THEN {a} END', a=value)})"
    plain = (
        f"CASE WHEN abs({exact}) > 1.7976931348623157e308 THEN sign({exact})::float8 * {_INFINITE} "
        f"WHEN abs({exact}) < 1e-300 THEN 0 ELSE ({exact})::float8 END"
    )
    return f"coalesce({odd}, {plain})"


def group_key(value: str, kind: str) -> str:
    """A key that is the same value here and in Python: what has no such value is NULL."""
    match kind:
        case "number":
            return _once("CASE WHEN abs({a}) < " + _INFINITE + " THEN {a} END", a=value)
        case "date" | "timestamp":
            return _once("CASE WHEN {a} BETWEEN " + _DAYS[kind] + " THEN {a}::" + TYPES[kind] + " END", a=value)
        case "integer" | "boolean" | "text":
            return value
    return _refuse(f"GROUP BY a column of type {kind}")


# --- bounds ---------------------------------------------------------------------------------------------------


def among(rows: str, others: str) -> str:
    """The rows of people who are in `others`."""
    return f"{rows} WHERE person IN (SELECT person FROM {others})"


def apart(rows: str, others: str) -> str:
    """The rows of people who are not in `others`; nobody there is NULL."""
    return f"{rows} WHERE NOT EXISTS (SELECT 1 FROM {others} WHERE {others}.person = {rows}.person)"


def paired(rows: str, pairs: str, names: Sequence[str]) -> str:
    """The rows `one` whose names are the same as in one of the pairs, which are all different."""
    person, *keys = names
    same = [f"one.{person} = other.{person}", *(f"one.{key} IS NOT DISTINCT FROM other.{key}" for key in keys)]
    return f"{rows} AS one JOIN {pairs} AS other ON {' AND '.join(same)}"


ranks_all = True


def random_rank(person: str, by: Sequence[str], seed: int) -> str:
    """The place of a row among its person's rows, in a random order that depends on no value but `by`."""
    hashed = f"hashtextextended(ROW({', '.join([*by, person])})::text, {seed})"
    return f"row_number() OVER (PARTITION BY {person} ORDER BY {hashed})"


def one_of_each(rows: str, key: str, value: str) -> str:
    """One value for each key, chosen at random."""
    drawn = f"WITH drawn AS MATERIALIZED (SELECT *, random() AS draw FROM ({rows}) AS one)"
    return f"{drawn} SELECT DISTINCT ON ({key}) {value} FROM drawn ORDER BY {key}, draw"


# --- bounds that are found ------------------------------------------------------------------------------------


def octave_bin(value: str, first: int, last: int) -> str:
    """Which doubling a number is in: 0 under 2^first, then 1, 2, … to last − first, with the sign of the number."""
    ends = ", ".join(repr(2.0**power) for power in range(first, last))
    number = f"{value}::float8"
    sized = f"width_bucket(abs({number}), ARRAY[{ends}]::float8[])"
    return f"CASE WHEN {number} <> {_NAN} THEN {sized} * sign({number})::int4 END"


def year_bin(value: str, first: int, last: int) -> str:
    """The year of a date, or the nearest one of those listed."""
    year = f"date_part('year', {value}::timestamp)::int4"
    return f"CASE WHEN {value} IS NOT NULL THEN least(greatest({year}, {first}), {last}) END"
