"""DuckDB's dialect: every operation that a plan is printed with. Nothing else reaches the engine."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from discreet.engines.dialect import ALL_ROWS
from discreet.errors import InvalidArgument


def quote(name: str) -> str:
    """A name, quoted, with any characters in it."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """A text literal, with any characters in it."""
    return "'" + text.replace("'", "''") + "'"


def list_texts(texts: Sequence[str]) -> str:
    """Texts as a list."""
    return f"[{', '.join(map(quote_text, texts))}]"


def literal(value: Any) -> str:
    """A constant in the engine's dialect."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return f"({value})"
        case float():
            return f"({value!r}::DOUBLE)"
        case str():
            return quote_text(value)
        case datetime.datetime():
            return f"TIMESTAMP {quote_text(value.isoformat(' '))}"
        case datetime.date():
            return f"DATE {quote_text(value.isoformat())}"
    raise InvalidArgument(
        f"A {type(value).__name__} cannot be a constant in a query. Use numbers, text or dates.", code="sql-constant"
    )


LONGEST = 2**18
"""The largest number of characters of concatenated text. Otherwise, repeated doubling in one row could fill the
memory.
"""
WORDS = {
    "add": "({0} + {1})",
    "subtract": "({0} - {1})",
    "multiply": "({0} * {1})",
    "divide": "({0} / {1})",
    "integer_divide": "({0} // {1})",
    "modulo": "({0} % {1})",
    "power": "power({0}, {1})",
    "negate": "(-{0})",
    "abs": "abs({0})",
    "sign": "sign({0})",
    "round": "round({all})",
    "floor": "floor({0})",
    "ceil": "ceil({0})",
    "sqrt": "sqrt({0})",
    "ln": "ln({0})",
    "exp": "exp({0})",
    "eq": "({0} = {1})",
    "ne": "({0} <> {1})",
    "lt": "({0} < {1})",
    "le": "({0} <= {1})",
    "gt": "({0} > {1})",
    "ge": "({0} >= {1})",
    "same": "({0} IS NOT DISTINCT FROM {1})",
    "like": "({0} LIKE {1})",
    "ilike": "({0} ILIKE {1})",
    "not": "(NOT {0})",
    "is_null": "({0} IS NULL)",
    "is_number": "({0} IS NOT NULL AND NOT isnan(TRY_CAST({0} AS DOUBLE)))",
    "coalesce": "coalesce({all})",
    "least": "least({all})",
    "greatest": "greatest({all})",
    "nullif": "nullif({0}, {1})",
    "lower": "lower({0})",
    "upper": "upper({0})",
    "trim": "trim({0})",
    "length": "length({0})",
    "substring": "substring({all})",
    "concat": f"left(concat({{all}}), {LONGEST})",
    "joined": f"left({{0}} || {{1}}, {LONGEST})",
    "part": "date_part('{detail}', {0})",
    # TRY inside: otherwise it is also computed on the statistics of a file, and may fail at the earliest day
    "truncate": "date_trunc('{detail}', TRY({0}))",
    "days_between": "date_diff('day', {0}, {1})",
    "cast": "TRY_CAST({0} AS {detail})",
}
"""How each operation on values is written here."""
_PLAIN = ("eq", "ne", "lt", "le", "gt", "ge", "same", "not", "is_null", "coalesce", "least", "greatest", "nullif")
PLAIN_WORDS = {op: WORDS[op] for op in _PLAIN}
"""Those that are total, and the same, in all engines."""


TYPES = {
    "integer": "BIGINT",
    "number": "DOUBLE",
    "text": "VARCHAR",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}


_DAYS = {"date": "DATE '0001-01-01' AND DATE '9999-12-31'"}
_DAYS["timestamp"] = "TIMESTAMP '0001-01-01' AND TIMESTAMP '9999-12-31 23:59:59.999999'"
"""The dates that Python has, too."""


def operation(op: str, args: Sequence[str], kinds: Sequence[str], kind: str, detail: str = "") -> str:
    """An operation on printed values. DuckDB needs their types for one operation only: formatting a timestamp that has
    no text would stop it, even inside a TRY.
    """
    if op == "cast" and kind == "text" and kinds[0] == "timestamp":
        args = [_in_python_range(args[0], "timestamp")]
    return WORDS[op].format(*args, all=", ".join(args), detail=detail)


def fenced(rows: str) -> str:
    """DuckDB already computes every query by itself."""
    return rows


def equal_as(first: str, second: str, kind: str) -> str:
    """A condition that two columns are equal as one type."""
    return f"(TRY_CAST({first} AS {TYPES[kind]}) = TRY_CAST({second} AS {TYPES[kind]}))"


def total(value: str) -> str:
    """A value that is NULL if it cannot be computed, so no row can stop a question."""
    return f"TRY({value})"


def exact_sum(value: str, largest: int, where: str = "", *, rows: int = ALL_ROWS) -> str:
    """A sum of integers, in 128 bits."""
    return f"sum({value}){filter_rows(where)}"


def filter_rows(where: str) -> str:
    """Restricts an aggregate to some rows, unless all rows count."""
    return f" FILTER (WHERE {where})" if where else ""


def square(value: str) -> str:
    """The square of an integer number of steps."""
    return f"{value} * {value}"


def whole(value: str, most: int | None) -> str:
    """An integer as one of 64 bits, within ±`most`."""
    within = value if most is None else f"least(greatest({value}, {-most}), {most})"
    return f"CAST({within} AS BIGINT)"


def exact_square(value: str) -> str:
    """The square of an integer, where many of them are added."""
    return f"CAST({value} AS HUGEINT) * {value}"


def root(squares: str) -> str:
    """The root of an exact integer, as a DOUBLE."""
    return f"sqrt(CAST({squares} AS DOUBLE))"


def root_above(squares: str) -> str:
    """An integer whose square is at least this one: the rounded root, or the next."""
    guess = f"CAST(ceil({root(squares)}) AS HUGEINT)"
    tries = [f"WHEN ({guess} + {more}) * ({guess} + {more}) >= {squares} THEN {guess} + {more}" for more in (0, 1)]
    return f"CASE {' '.join(tries)} END"


def shortened(value: str, bits: int) -> str:
    """An integer of 64 bits divided by 2^`bits`, rounded towards 0."""
    return f"({value} // {2**bits})"


def scaled(total: str, most: int, rows: str, largest: int) -> str:
    """An integer times `most` over `rows`, rounded towards 0."""
    return f"{total} * {most} // {rows}"


def moved_sum(total: str, rows: str, shift: int) -> str:
    """The exact sum of values that are each moved by the same amount."""
    return f"{total} + CAST({shift} AS HUGEINT) * {rows}"


def distance(value: str, center: Fraction, kind: str = "number") -> str:
    """The signed distance of a number from the center. NULL if it is not a number.

    Promise: nothing is known of it in advance. An engine that believes the statistics of a file leaves out comparisons
    that they decide, clamping among them; what is in a TRY has none.
    """
    number = f"TRY_CAST({value} AS DOUBLE)"
    return total(f"{number} - ({float(center)!r}::DOUBLE)" if center else number)


def clamped_steps(number: str, step: Fraction, lowest: int, highest: int) -> str:
    """A DOUBLE, given by name, as an integer number of steps in [lowest, highest]. NULL for NULL and NaN.

    Promise: steps are powers of two and ends below 2^53, so that both are exact, and rounding what lies between the
    ends does not lead beyond them.
    """
    low, high = (f"({float(end * step)!r}::DOUBLE)" for end in (lowest, highest))
    whole = f"TRY_CAST({number} * ({float(1 / step)!r}::DOUBLE) AS BIGINT)"
    # nearly all values need only the first case; NaN compares as the largest number
    return (
        f"CASE WHEN {number} BETWEEN {low} AND {high} THEN {whole} WHEN {number} < {low} THEN ({lowest}) "
        f"WHEN isnan({number}) THEN NULL WHEN {number} > {high} THEN ({highest}) END"
    )


def steps(steps: Sequence[tuple[str, str]]) -> str:
    """Named queries. Random ones are materialized: computed again, they would differ."""
    return ", ".join(f"{name} AS {'MATERIALIZED ' * name.startswith('drawn')}({text})" for name, text in steps)


def drawn(rows: str, columns: Sequence[str], seed: int) -> str:
    """All rows, and a random number for each."""
    return f"SELECT *, random() AS draw FROM {rows}"


ranks_all = False
gathers = True
exists_as_column = True
is_wide = True


def random_rank(person: str, by: Sequence[str], seed: int) -> str:
    """The position of a row among its person's rows, in a random order that depends only on `by`.

    DuckDB's hash of several values mixes in the last one by itself. A seed among them would move all rows of a person
    in the same way, and only a few orders could occur. So the seed is combined with the hash of the values, and both
    are hashed again. Values with the same hash, which an analyst can find, are ordered by value, so nothing depends on
    where rows are stored.
    """
    order = f"hash(xor(hash({', '.join([*by, person])}), {seed}::UBIGINT))"
    return f"row_number() OVER (PARTITION BY {person} ORDER BY {', '.join([order, *by])})"


def unit_key(block: str, person: str) -> str:
    """A number or NULL, a colon, which neither has, and the person."""
    return f"(coalesce(CAST({block} AS VARCHAR), 'null') || ':' || CAST({person} AS VARCHAR))"


def among(rows: str, others: str) -> str:
    """The rows of people who are in `others`."""
    return f"{rows} SEMI JOIN {others} USING (person)"


def apart(rows: str, others: str) -> str:
    """The rows of people who are not in `others`."""
    return f"{rows} ANTI JOIN {others} USING (person)"


def paired(rows: str, pairs: str, names: Sequence[str]) -> str:
    """The rows of `one` whose named columns are equal to those in one of the pairs."""
    same = " AND ".join(f"one.{name} IS NOT DISTINCT FROM other.{name}" for name in names)
    return f"{rows} AS one SEMI JOIN {pairs} AS other ON {same}"


def few_of_each(rows: str, key: str, most: int, columns: Sequence[str]) -> str:
    """These columns of rows, with a bounded number of rows per key, chosen at random."""
    drawn = f"WITH drawn AS MATERIALIZED (SELECT *, random() AS draw FROM ({rows}) AS one)"
    rank = f"row_number() OVER (PARTITION BY {key} ORDER BY draw)"
    ranked = f"SELECT *, {rank} AS place FROM drawn"
    return f"{drawn} SELECT {', '.join(columns)} FROM ({ranked}) AS one WHERE place <= {most}"


def one_of_each(rows: str, key: str, value: str) -> str:
    """One value for each key, chosen at random."""
    drawn = f"WITH drawn AS MATERIALIZED (SELECT *, random() AS draw FROM ({rows}))"
    return f"{drawn} SELECT arg_min({value}, draw) AS {value} FROM drawn GROUP BY {key}"


def octave_bin(value: str, first: int, last: int) -> str:
    """The index of the power of two of a number: 0 below 2^first, then 1, 2, … to last − first, with the
    number's sign.
    """
    number = f"TRY_CAST({value} AS DOUBLE)"
    octave = f"least(floor(log2(abs({number}))) - ({first}) + 1, {last - first})"
    sized = f"CASE WHEN abs({number}) < {2.0**first!r} THEN 0 ELSE CAST(sign({number}) * {octave} AS INTEGER) END"
    return total(f"CASE WHEN {number} IS NULL OR isnan({number}) THEN NULL ELSE {sized} END")


def log_place(value: str, per_octave: int, octaves: int, finest: int) -> str:
    """The logarithm of a DOUBLE as an integer, with its sign."""
    size = f"least(abs({value}), {float(2**octaves // finest)!r}::DOUBLE)"
    place = f"least(floor(log2(1.0::DOUBLE + {size} * {finest}) * {per_octave}), {per_octave * octaves})"
    return f"CASE WHEN NOT isnan({value}) THEN CAST(sign({value}) * {place} AS INTEGER) END"


def year_bin(value: str, first: int, last: int) -> str:
    """The year of a date, or the nearest listed year."""
    year = f"date_part('year', {value})"
    inside = f"CAST(least(greatest({year}, {first}), {last}) AS INTEGER)"
    return total(f"CASE WHEN {year} IS NULL THEN NULL ELSE {inside} END")


def of_person(aggregate: str, value: str, kind: str, of: str = "number") -> str:
    """An aggregate of one person's rows. It never fails, and is NULL if it does not fit its type."""
    if aggregate in ("min", "max") and of == "number":
        return f"{aggregate}(TRY_CAST({value} AS DOUBLE) + 0.0::DOUBLE)"  # of two zeros the positive one, in any order
    if aggregate in ("count", "min", "max"):
        return f"{aggregate}({value})"
    # in the order of the values: the order of the rows depends on the rows of others
    number = f"TRY_CAST({value} AS DOUBLE)"
    found = f"{aggregate}({number} ORDER BY {number})"
    return f"TRY_CAST(round({found}) AS BIGINT)" if kind in ("integer", "boolean") else found


def sum_over(value: str, window: str) -> str:
    """The exact sum of integers over a window. NULL if it does not fit 64 bits."""
    return f"TRY_CAST(sum(TRY_CAST({value} AS BIGINT)) OVER ({window}) AS BIGINT)"


def canonical(value: str, kind: str) -> str:
    """A value in canonical form: zero has no sign, and there is one NaN."""
    if kind != "number":
        return value
    number = f"TRY_CAST({value} AS DOUBLE)"
    return f"CASE WHEN {number} = 0 THEN 0.0::DOUBLE WHEN isnan({number}) THEN 'nan'::DOUBLE ELSE {number} END"


def group_key(value: str, kind: str) -> str:
    """A key that has the same value in the engine and in Python. NULL if there is no such value."""
    match kind:
        case "integer":
            return f"TRY_CAST({value} AS BIGINT)"
        case "number":
            number = f"TRY_CAST({value} AS DOUBLE)"
            return f"CASE WHEN {number} = 0 THEN 0.0::DOUBLE WHEN isfinite({number}) THEN {number} END"
        case "date" | "timestamp":
            return _in_python_range(f"TRY_CAST({value} AS {TYPES[kind]})", kind)
    return value


def _in_python_range(value: str, kind: str) -> str:
    """A day or timestamp that Python also supports. Others move to the first one inside the CASE, because DuckDB may
    compute once per value of a dictionary instead of once per row, and then meets values of other rows.
    """
    return f"CASE WHEN {value} BETWEEN {_DAYS[kind]} THEN greatest({value}, {_DAYS[kind].partition(' AND ')[0]}) END"


def decimal_as_double(column: str, given: str) -> str:
    """A decimal as a DOUBLE. The smallest 128-bit number has more digits than any decimal, and would stop DuckDB."""
    digits, scale = (int(part) for part in re.findall(r"\d+", given))
    if digits <= _SMALL_DECIMAL:
        return f"TRY_CAST({column} AS DOUBLE)"
    least = f"CAST('-{'9' * (digits - scale)}.{'9' * scale}' AS DECIMAL({digits}, {scale}))"
    return f"CASE WHEN {column} IS NOT NULL THEN TRY_CAST(greatest({column}, {least}) AS DOUBLE) END"


_SMALL_DECIMAL = 18
"""Decimals of more digits are numbers of 128 bits."""
