"""Spark's own words, for 3.5 and 4.x in ANSI mode. Each of them is total by itself, wherever an optimizer moves it.

Whole numbers are BIGINT, others DOUBLE, moments TIMESTAMP_NTZ. Nothing is drawn by the engine: a random order is a hash
of the row, its number among rows that are equal, and a seed, so that a task that runs twice, or a query that is written
into another one twice, finds the same.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NoReturn

from discreet.engines.engine import ALL_ROWS, ROWS_OF_ONE
from discreet.engines.words import LONGEST, PLAIN_WORDS, filtered
from discreet.errors import NotAllowed
from discreet.randomness import random_integer

TYPES = {
    "integer": "BIGINT",
    "number": "DOUBLE",
    "text": "STRING",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP_NTZ",
}
_LEAST, _MOST = -(2**63), 2**63 - 1
_INFINITE, _NAN = "CAST('Infinity' AS DOUBLE)", "CAST('NaN' AS DOUBLE)"
_WHOLE_FROM = "4503599627370496D"
"""From 2^52 on a DOUBLE is a whole number."""
ranks_all = True


def _refuse(what: str) -> NoReturn:
    raise NotAllowed(f"{what} is not answered from Spark yet. Use CASE, comparisons and arithmetic.")


def quoted(name: str) -> str:
    """A name, whatever it is made of."""
    return "`" + name.replace("`", "``") + "`"


def literal(value: Any) -> str:
    """A constant in the engine's words."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return f"CAST({value} AS BIGINT)" if _LEAST <= value <= _MOST else _refuse("A number of more than 64 bits")
        case float():
            return f"CAST('{value!r}' AS DOUBLE)"
        case str():
            return _text(value)
        case datetime.datetime() if value.tzinfo is None:
            return f"TIMESTAMP_NTZ'{value.isoformat(' ')}'"
        case datetime.date() if not isinstance(value, datetime.datetime):
            return f"DATE'{value.isoformat()}'"
    return _refuse(f"A constant of type {type(value).__name__}")


def _text(value: str) -> str:
    """Text by its bytes: no character has a meaning of its own."""
    try:
        return f"CAST(X'{value.encode().hex()}' AS STRING)"
    except UnicodeEncodeError:
        _refuse("Text that is not Unicode")


def _text_in(literal: str) -> str | None:
    """The text that was written so."""
    found = re.fullmatch(r"CAST\(X'([0-9a-f]*)' AS STRING\)", literal)
    return None if found is None else bytes.fromhex(found[1]).decode()


def _whole_in(literal: str) -> int | None:
    """The whole number that was written so."""
    found = re.fullmatch(r"CAST\((-?\d+) AS BIGINT\)", literal)
    return None if found is None else int(found[1])


# --- operations -----------------------------------------------------------------------------------------------


def operation(op: str, args: Sequence[str], kinds: Sequence[str], kind: str, detail: str = "") -> str:
    """An operation on printed values of these types: total, whatever they are."""
    if op in _ARITHMETIC:
        if kind not in ("integer", "number"):
            _refuse(op.upper())
        body = _ARITHMETIC[op].get(kind)
        if body is None:
            _refuse(f"{op.upper().replace('_', ' ')} of numbers that are not whole")
        return body.format(*_as(args, kinds, kind))
    if op in _FUNCTIONS:
        return _FUNCTIONS[op].format(*_as(args, kinds, "number"))
    if op in ("least", "greatest") and len(args) == 1:
        return args[0]
    if op in PLAIN_WORDS:
        return PLAIN_WORDS[op].format(*args, all=", ".join(args))
    if op in _TEXTS:
        texts = _as(args, kinds, "text")
        return _TEXTS[op].format(*texts, all=", ".join(texts))
    if op in _SPECIAL:
        return _SPECIAL[op](args, kinds, kind, detail)
    return _refuse(op.upper())


def _as(args: Sequence[str], kinds: Sequence[str], kind: str) -> list[str]:
    """Values as one type: whole numbers as others, and NULL, which has none."""
    typed = TYPES[kind]
    return [
        f"CAST(NULL AS {typed})" if own == "other" else arg if own == kind else f"CAST({arg} AS {typed})"
        for arg, own in zip(args, kinds, strict=True)
    ]


_ARITHMETIC: dict[str, dict[str, str]] = {
    "add": {"integer": "try_add({0}, {1})", "number": "({0} + {1})"},
    "subtract": {"integer": "try_subtract({0}, {1})", "number": "({0} - {1})"},
    "multiply": {"integer": "try_multiply({0}, {1})", "number": "({0} * {1})"},
    # what try_divide has no answer for is infinite or no number; 1/0 is infinite, as 0 has no sign here
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
    "ln": "(CASE WHEN {0} < 0D OR isnan({0}) THEN " + _NAN + " WHEN {0} = 0D THEN -" + _INFINITE + " ELSE ln({0}) END)",
    "exp": "exp({0})",
    # as C has it, where Java finds no number
    "power": "(CASE WHEN {1} IS NOT NULL AND ({0} = 1D OR ({0} = -1D AND abs({1}) = " + _INFINITE + ")) THEN 1D "
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
    number = _as(args, kinds, "number")[0]
    return f"({number} IS NOT NULL AND NOT isnan({number}))"


def _like(word: str) -> Callable[[Sequence[str], Sequence[str], str, str], str]:
    def printed(args: Sequence[str], kinds: Sequence[str], kind: str, detail: str) -> str:
        pattern = _text_in(args[1])
        if pattern is None:
            _refuse("LIKE with a pattern that is not written out")
        plain = pattern.replace("\\", "\\\\")  # it escapes nothing in the question
        return f"({_as(args[:1], kinds[:1], 'text')[0]} {word} {_text(plain)})"

    return printed


def _round(args: Sequence[str], kinds: Sequence[str], kind: str, detail: str) -> str:
    """Halves go away from 0. The number as it is scaled and rounded in binary, and not as its digits."""
    digits = _whole_in(args[1]) if len(args) > 1 else 0
    if digits is None or not 0 <= digits <= 15:
        _refuse("ROUND to other than 0 to 15 digits")
    number = _as(args[:1], kinds[:1], "number")[0]
    unit = f"1e{digits}D"
    small = f"CASE WHEN abs({number}) < {_WHOLE_FROM} THEN abs({number}) * {unit} END"
    whole = _FUNCTIONS["floor"].format(small)
    half = f"CASE WHEN {small} - {whole} >= 0.5D THEN 1D ELSE 0D END"
    return f"coalesce(sign({number}) * ({whole} + {half}) / {unit}, {number})"


def _substring(args: Sequence[str], kinds: Sequence[str], kind: str, detail: str) -> str:
    places = [_whole_in(arg) for arg in args[1:]]
    if not all(place is not None and 0 <= place < 10**9 for place in places) or not places[0]:
        _refuse("SUBSTRING with places that are not written out, from 1 on,")
    return f"substring({_as(args[:1], kinds[:1], 'text')[0]}, {', '.join(map(str, places))})"


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
        _refuse(f"{detail.upper()} of a date")
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
            # Java takes 2^63 for the largest whole number
            return f"{opened}rint(CASE WHEN {value} < 9.223372036854775808E18D THEN {value} END) AS {whole}"
        case "text", "integer":
            # as decimals first: they round, and keep all digits of a whole number
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
    return _refuse(f"A cast from {own} to {kind}")


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


def total(value: str) -> str:
    """Every word is total here already."""
    return value


def fenced(rows: str) -> str:
    """Spark itself computes once what is used twice."""
    return rows


def equal_as(first: str, second: str, kind: str) -> str:
    """That two columns are equal as one type."""
    return f"(CAST({first} AS {TYPES[kind]}) = CAST({second} AS {TYPES[kind]}))"


# --- sums and counts ------------------------------------------------------------------------------------------

_LIMB = 2**26


def exact_sum(value: str, largest: int, where: str = "", *, rows: int = ALL_ROWS) -> str:
    """A sum of whole numbers: in 64 bits where all rows fit, in two halves of them, or as decimals."""
    only = filtered(where)
    if largest * rows < 2**63:
        return f"sum(CAST({value} AS BIGINT)){only}"
    if largest >= _LIMB * 2**27:
        return f"sum(CAST({value} AS DECIMAL(38, 0))){only}"
    whole = f"CAST({value} AS BIGINT)"
    high, low = f"sum(shiftright({whole}, 26)){only}", f"sum({whole} & {_LIMB - 1}L){only}"
    return f"(CAST({high} AS DECIMAL(28, 0)) * {_LIMB}L + {low})"


def square(value: str) -> str:
    """The square of a whole number of steps."""
    return f"CAST({value} AS DECIMAL(19, 0)) * CAST({value} AS DECIMAL(19, 0))"


def scaled(total: str, most: int, rows: str, largest: int) -> str:
    """A sum times `most` over `rows`, rounded towards 0: in 64 bits where whole parts and rests fit."""
    if largest * max(most, ROWS_OF_ONE) < 2**62 and most < 2**31:
        few = f"nullif({rows}, 0L)"
        return f"(({total} div {few}) * {most}L + (({total} % {few}) * {most}L) div {few})"
    number = f"try_multiply(CAST({total} AS DECIMAL(38, 0)), CAST({most} AS DECIMAL(10, 0)))"
    return f"CAST(({number} - {number} % nullif({rows}, 0L)) / nullif({rows}, 0L) AS DECIMAL(38, 0))"


def moved_sum(total: str, rows: str, shift: int) -> str:
    """The exact sum of values that are all moved by so much."""
    return f"CAST({total} AS DECIMAL(38, 0)) + CAST({shift} AS DECIMAL(19, 0)) * {rows}"


def _number(value: str, kind: str) -> str:
    if kind not in ("integer", "number", "boolean"):
        _refuse(f"A sum or rank of a {kind}")
    return _as([value], [kind], "number")[0]


def distance(value: str, center: Fraction, kind: str) -> str:
    """How far a number lies from the center; NULL where it is no number."""
    number = _number(value, kind)
    return f"({number} - {literal(float(center))})" if center else number


def clamped_steps(number: str, step: Fraction, lowest: int, highest: int) -> str:
    """A DOUBLE, given by name, as whole steps within [lowest, highest]; NULL for NULL and NaN."""
    low, high = (literal(float(end * step)) for end in (lowest, highest))
    whole = f"TRY_CAST(rint({number} * {literal(float(1 / step))}) AS BIGINT)"
    return (
        f"CASE WHEN {number} BETWEEN {low} AND {high} THEN {whole} WHEN {number} < {low} THEN {literal(lowest)} "
        f"WHEN isnan({number}) THEN NULL WHEN {number} > {high} THEN {literal(highest)} END"
    )


def of_person(aggregate: str, value: str, kind: str, of: str) -> str:
    """An aggregate of one person's rows: it never fails, and is NULL where it does not fit its type."""
    if aggregate == "count":
        return f"count({value})"
    if aggregate in ("min", "max"):
        if of == "other":
            _refuse(f"{aggregate.upper()} of a column of another type")
        return f"{aggregate}({value} + 0D)" if of == "number" else f"{aggregate}({value})"  # of two zeros the plain one
    if of in ("integer", "boolean"):
        whole = f"sum(CAST(CAST({value} AS BIGINT) AS DECIMAL(28, 0)))"
        if aggregate == "avg":
            return f"CAST({whole} AS DOUBLE) / nullif(count({value}), 0L)"
        return f"TRY_CAST({whole} AS {TYPES[kind]})"
    # in an order that these values have by themselves: that of the rows depends on the rows of others
    listed = f"array_sort(collect_list({value}))"
    added = f"aggregate({listed}, 0D, (total, next) -> total + next)"
    found = f"CASE WHEN count({value}) > 0 THEN {added} END"
    return f"({found}) / nullif(count({value}), 0L)" if aggregate == "avg" else found


def group_key(value: str, kind: str) -> str:
    """A key that is the same value here and in Python: what has no such value is NULL."""
    match kind:
        case "number":
            return f"CASE WHEN abs({value}) < {_INFINITE} THEN {value} END"
        case "date" | "timestamp":
            return f"CASE WHEN {value} BETWEEN {_DAYS[kind]} THEN {value} END"
        case "text":  # bytes that are no text are told apart here, but not in Python
            return f"decode(encode({value}, 'UTF-8'), 'UTF-8')"
        case "integer" | "boolean":
            return value
    return _refuse(f"GROUP BY a column of type {kind}")


# --- bounds ---------------------------------------------------------------------------------------------------


def steps(steps: Sequence[tuple[str, str]]) -> str:
    """Named queries; Spark writes them into the others, and finds the same each time."""
    return ", ".join(f"{name} AS ({text})" for name, text in steps)


def drawn(rows: str, columns: Sequence[str], seed: int) -> str:
    """All rows, and a number for each that is as good as random: equal rows are numbered."""
    number = f"row_number() OVER (PARTITION BY {', '.join(columns)} ORDER BY {columns[0]})"
    return f"SELECT *, {_hashed(columns, seed, number)} AS draw FROM {rows}"


def _hashed(columns: Sequence[str], seed: int, *others: str) -> str:
    """A number that is as good as random, for each different row. The hash itself leaves NULL out."""
    told = (part for column in columns for part in (f"{column} IS NULL", column))
    return f"xxhash64({', '.join([f'{seed}L', *others, *told])})"


def among(rows: str, others: str) -> str:
    """The rows of people who are in `others`."""
    return f"{rows} LEFT SEMI JOIN {others} USING (person)"


def apart(rows: str, others: str) -> str:
    """The rows of people who are not in `others`."""
    return f"{rows} LEFT ANTI JOIN {others} USING (person)"


def paired(rows: str, pairs: str, names: Sequence[str]) -> str:
    """The rows `one` whose names are the same as in one of the pairs."""
    same = " AND ".join(f"one.{name} <=> other.{name}" for name in names)
    return f"{rows} AS one LEFT SEMI JOIN {pairs} AS other ON {same}"


def random_rank(person: str, by: Sequence[str], seed: int) -> str:
    """The place of a row among its person's rows, in a random order that depends on no value but `by`."""
    order = _hashed([*by, person], seed)
    return f"row_number() OVER (PARTITION BY {person} ORDER BY {', '.join([order, *by])})"


def few_of_each(rows: str, key: str, most: int, columns: Sequence[str]) -> str:
    """These columns of rows, at most so many of them with the same key, chosen at random."""
    listed = list(dict.fromkeys([key, *columns]))
    numbered = drawn(f"({rows}) AS one", listed, random_integer(62))
    ranked = f"SELECT *, row_number() OVER (PARTITION BY {key} ORDER BY draw) AS place FROM ({numbered}) AS one"
    return f"SELECT {', '.join(columns)} FROM ({ranked}) AS one WHERE place <= {most}"


def one_of_each(rows: str, key: str, value: str) -> str:
    """One value for each key, chosen at random."""
    numbered = drawn(f"({rows}) AS one", [key, value], random_integer(62))
    return f"SELECT min_by({value}, draw) AS {value} FROM ({numbered}) AS one GROUP BY {key}"


# --- bounds that are found ------------------------------------------------------------------------------------


def octave_bin(value: str, first: int, last: int) -> str:
    """Which doubling a number is in: 0 under 2^first, then 1, 2, … to last − first, with the sign of the number."""
    number = f"CAST({value} AS DOUBLE)"
    ends = (f"WHEN abs({number}) >= {2.0**power!r}D THEN {power - first + 1}" for power in reversed(range(first, last)))
    sized = f"CASE {' '.join(ends)} ELSE 0 END"
    sign = f"CASE WHEN {number} < 0 THEN -1 ELSE 1 END"
    return f"CASE WHEN NOT isnan({number}) THEN ({sign}) * ({sized}) END"


def year_bin(value: str, first: int, last: int) -> str:
    """The year of a date, or the nearest one of those listed."""
    return f"CASE WHEN {value} IS NOT NULL THEN least(greatest(year({value}), {first}), {last}) END"


# --- sources --------------------------------------------------------------------------------------------------

_DAYS = {"date": "DATE'0001-01-01' AND DATE'9999-12-31'"}
_DAYS["timestamp"] = "TIMESTAMP_NTZ'0001-01-01 00:00:00' AND TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'"
"""The dates that Python has, too. Others are NULL."""


def plainly_typed(name: str, kind: str, given: str) -> str:
    """A column of a source as the one type of ours; `given` is Spark's own."""
    column = quoted(name)
    match kind:
        case "date":
            return f"CASE WHEN {column} BETWEEN {_DAYS[kind]} THEN {column} END AS {column}"
        case "timestamp":
            own = f"CAST({column} AS TIMESTAMP_NTZ)"
            return f"CASE WHEN {own} BETWEEN {_DAYS[kind]} THEN {own} END AS {column}"
        case "other":  # as text even a map can be told apart
            return f"{f'hex({column})' if given == 'binary' else f'CAST({column} AS STRING)'} AS {column}"
    if kind == "number":  # zero has no sign: which of two equal rows is kept must not matter
        return f"CAST({column} AS DOUBLE) + 0D AS {column}"
    return column if given.upper() == TYPES[kind] else f"CAST({column} AS {TYPES[kind]}) AS {column}"
