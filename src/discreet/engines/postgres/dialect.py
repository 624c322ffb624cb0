"""PostgreSQL's dialect for relations; `values.py` has the one for values. Each operation is total, or it is refused."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from discreet.engines.duckdb.dialect import drawn as drawn
from discreet.engines.duckdb.dialect import exact_sum as exact_sum
from discreet.engines.duckdb.dialect import few_of_each as few_of_each
from discreet.engines.duckdb.dialect import quote as quote
from discreet.engines.duckdb.dialect import steps as steps
from discreet.engines.postgres.values import INFINITE, LONGEST, NAN, TYPES, WHOLE, as_types, cast, once, refuse
from discreet.engines.postgres.values import literal as literal
from discreet.engines.postgres.values import operation as operation


def total(value: str) -> str:
    """Every operation is already total."""
    return value


def fenced(rows: str) -> str:
    """Without it, PostgreSQL would inline a query into the one around it, once for every use of a column."""
    return f"{rows} OFFSET 0"


def equal_as(first: str, second: str, kind: str) -> str:
    """A condition that two columns are equal as one type."""
    return f"({first}::{TYPES[kind]} = {second}::{TYPES[kind]})"


# --- sources --------------------------------------------------------------------------------------------------

_DAYS = {"date": "'0001-01-01'::date AND '9999-12-31'::date"}
_DAYS["timestamp"] = "'0001-01-01'::timestamp AND '9999-12-31 23:59:59.999999'::timestamp"
_DAYS["timestamptz"] = "'0001-01-01 00:00+00'::timestamptz AND '9999-12-31 23:59:59.999999+00'::timestamptz"
"""The dates that Python has, too. Others, and those at infinity, are NULL."""


ARRAY = "array"
_LARGEST = 2**15
"""The bytes of the largest value of another type; a larger one is NULL. One that is full of numbers such as 1e131071
has a text that is 10,000 times longer."""


def plainly_typed(name: str, kind: str, given: str) -> str:
    """A column of a source, converted to one of our types. `given` is PostgreSQL's type, or says that it is an
    array.
    """
    column = quote(name)
    match kind:
        case "number" if given == "numeric":
            return (
                f"CASE WHEN {column} = 'NaN'::numeric THEN {NAN} WHEN abs({column}) > 1e300 THEN NULL "
                f"WHEN abs({column}) < 1e-300 THEN 0 ELSE {column}::float8 END AS {column}"
            )
        case "timestamp" if given == "timestamptz":  # of any zone, as the time in UTC
            return f"CASE WHEN {column} BETWEEN {_DAYS[given]} THEN timezone('UTC', {column}) END AS {column}"
        case "date" | "timestamp":
            return f"CASE WHEN {column} BETWEEN {_DAYS[kind]} THEN {column} END AS {column}"
        case "text" if given in ("text", "varchar", "bpchar"):
            return f'(CASE WHEN octet_length({column}) <= {LONGEST} THEN {column}::text END COLLATE "C") AS {column}'
        case "text":  # converted by its own type, not by a user-defined cast
            return f'(CASE WHEN {column} IS NOT NULL THEN concat({column}) END COLLATE "C") AS {column}'
        case "other":  # only compared
            whole = f"{column} || '{{}}'" if given == ARRAY else f"ARRAY[{column}]"  # neither is compressed
            short = f"{column} IS DISTINCT FROM NULL AND pg_column_size({whole}) <= {_LARGEST}"
            digest = f"encode(sha256(convert_to(concat({column}), 'UTF8')), 'hex')"
            return f'(CASE WHEN {short} THEN {digest} END COLLATE "C") AS {column}'
    return f"{column}::{TYPES[kind]} AS {column}"


# --- sums and counts ------------------------------------------------------------------------------------------


def square(value: str) -> str:
    """The square of an integer number of steps."""
    return f"{value}::numeric * {value}::numeric"


def whole(value: str, most: int | None) -> str:
    """An integer as one of 64 bits, within ±`most`."""
    within = value if most is None else f"least(greatest({value}, {-most}), {most})"
    return f"({within})::int8"


def exact_square(value: str) -> str:
    """The square of an integer, where many of them are added."""
    return f"{value}::numeric * {value}"


def root(squares: str) -> str:
    """The root of an exact integer, as a float8."""
    return f"sqrt(({squares})::float8)"


def root_above(squares: str) -> str:
    """An integer whose square is at least this one: the rounded root, or the next."""
    guess = f"ceil({root(squares)})::numeric"
    tries = [f"WHEN ({guess} + {more}) * ({guess} + {more}) >= {squares} THEN {guess} + {more}" for more in (0, 1)]
    return f"CASE {' '.join(tries)} END"


def shortened(value: str, bits: int) -> str:
    """An integer of 64 bits divided by 2^`bits`, rounded towards 0."""
    return f"({value} / {2**bits}::int8)"


def scaled(total: str, most: int, rows: str, largest: int) -> str:
    """An integer times `most` over `rows`, rounded towards 0."""
    return f"div({total}::numeric * {most}, {rows}::numeric)"


def moved_sum(total: str, rows: str, shift: int) -> str:
    """The exact sum of values that are each moved by the same amount."""
    return f"{total} + {shift}::numeric * {rows}"


def _number(value: str, kind: str) -> str:
    if kind == "boolean":
        return cast([value], [kind], "number", "DOUBLE")
    return (
        as_types([value], [kind], "number")[0]
        if kind in ("integer", "number")
        else refuse(f"A sum or rank of a {kind}")
    )


def distance(value: str, center: Fraction, kind: str) -> str:
    """The signed distance of a number from the center. NULL if it is not a number.

    Promise: no error. Centers are so small next to the largest float8 that subtracting one never overflows.
    """
    number = _number(value, kind)
    return f"({number} - '{float(center)!r}'::float8)" if center else number


def clamped_steps(number: str, step: Fraction, lowest: int, highest: int) -> str:
    """A float8, given by name, as an integer number of steps in [lowest, highest]. NULL for NULL and NaN."""
    low, high = (f"'{float(end * step)!r}'::float8" for end in (lowest, highest))
    # a product that underflows float8 would be an error
    whole = (
        f"CASE WHEN abs({number}) < '{float(step / 4)!r}'::float8 THEN 0 "
        f"ELSE ({number} * '{float(1 / step)!r}'::float8)::int8 END"
    )
    return (
        f"CASE WHEN {number} BETWEEN {low} AND {high} THEN {whole} WHEN {number} < {low} THEN {lowest}::int8 "
        f"WHEN {number} = {NAN} THEN NULL WHEN {number} > {high} THEN {highest}::int8 END"
    )


def of_person(aggregate: str, value: str, kind: str, of: str) -> str:
    """An aggregate of one person's rows. It never fails, and is NULL if it does not fit its type."""
    if aggregate == "count":
        return f"count({value})"
    if aggregate in ("min", "max"):
        if of == "other":
            refuse(f"{aggregate.upper()} of a column of another type")
        if of == "boolean":
            return f"bool_{'and' if aggregate == 'min' else 'or'}({value})"
        if of == "number":
            return f"{aggregate}({value} + 0::float8)"  # of two zeros the positive one, in any order
        return f'{aggregate}({value} COLLATE "C")' if of == "text" else f"{aggregate}({value})"
    if of == "integer":
        found = f"{aggregate}({value})"
        return f"CASE WHEN {found} {WHOLE} THEN {found}::int8 END" if kind == "integer" else f"{found}::float8"
    if of == "boolean":
        return f"{aggregate}({cast([value], [of], 'integer', 'BIGINT')})::{TYPES[kind]}"
    # as decimals: their sum has no order and no overflow; infinities and NaN are handled separately
    exact = f"{aggregate}({once('CASE WHEN abs({a}) < ' + INFINITE + ' THEN {a}::text::numeric END', a=value)})"
    odd = f"sum({once('CASE WHEN abs({a}) >= ' + INFINITE + ' THEN {a} END', a=value)})"
    plain = (
        f"CASE WHEN abs({exact}) > 1.7976931348623157e308 THEN sign({exact})::float8 * {INFINITE} "
        f"WHEN abs({exact}) < 1e-300 THEN 0 ELSE ({exact})::float8 END"
    )
    return f"coalesce({odd}, {plain})"


def sum_over(value: str, window: str) -> str:
    """The exact sum of integers over a window. NULL if it does not fit 64 bits."""
    found = f"sum({value}) OVER ({window})"
    return f"CASE WHEN {found} {WHOLE} THEN ({found})::int8 END"


def canonical(value: str, kind: str) -> str:
    """A value in canonical form: zero has no sign, there is one NaN, and text is its bytes."""
    match kind:
        case "number":
            return once(
                "CASE WHEN {a} = 0 THEN 0::float8 WHEN {a} = " + NAN + " THEN " + NAN + " ELSE {a} END", a=value
            )
        case "text":
            return f'({value} COLLATE "C")'
    return value


def group_key(value: str, kind: str) -> str:
    """A key that has the same value in the engine and in Python. NULL if there is no such value."""
    match kind:
        case "number":
            return once("CASE WHEN {a} = 0 THEN 0::float8 WHEN abs({a}) < " + INFINITE + " THEN {a} END", a=value)
        case "date" | "timestamp":
            return once("CASE WHEN {a} BETWEEN " + _DAYS[kind] + " THEN {a}::" + TYPES[kind] + " END", a=value)
        case "integer" | "boolean" | "text":
            return canonical(value, kind)
    return refuse(f"GROUP BY a column of type {kind}")


# --- bounds ---------------------------------------------------------------------------------------------------


def unit_key(block: str, person: str) -> str:
    """A number or NULL, a colon, which neither has, and the person."""
    return f"((coalesce({block}::text, 'null') || ':' || {person}::text) COLLATE \"C\")"


def among(rows: str, others: str) -> str:
    """The rows of people who are in `others`."""
    return f"{rows} WHERE person IN (SELECT person FROM {others})"


def apart(rows: str, others: str) -> str:
    """The rows of people who are not in `others`. Nobody in `others` is NULL."""
    return f"{rows} WHERE NOT EXISTS (SELECT 1 FROM {others} WHERE {others}.person = {rows}.person)"


def paired(rows: str, pairs: str, names: Sequence[str]) -> str:
    """The rows of `one` whose named columns are equal to those in one of the distinct pairs."""
    person, *keys = names
    same = [f"one.{person} = other.{person}", *(f"one.{key} IS NOT DISTINCT FROM other.{key}" for key in keys)]
    return f"{rows} AS one JOIN {pairs} AS other ON {' AND '.join(same)}"


ranks_all = True
gathers = True
exists_as_column = True
is_wide = False


_OTHER = 3_037_000_493_202_177_609
"""A public number: with it a second seed is made of the first."""


def random_rank(person: str, by: Sequence[str], seed: int) -> str:
    """The position of a row among its person's rows, in a random order that depends only on `by`."""
    hashed = f"hashtextextended(ROW({', '.join([*by, person])})::text, {seed})"
    # of short texts that are nearly the same, the first hash with one seed is alike: people would keep the same groups
    order = f"hashint8extended({hashed}, {seed} # {_OTHER})"
    return f"row_number() OVER (PARTITION BY {person} ORDER BY {', '.join([order, *by])})"


def one_of_each(rows: str, key: str, value: str) -> str:
    """One value for each key, chosen at random."""
    drawn = f"WITH drawn AS MATERIALIZED (SELECT *, random() AS draw FROM ({rows}) AS one)"
    return f"{drawn} SELECT DISTINCT ON ({key}) {value} FROM drawn ORDER BY {key}, draw"


# --- bounds that are found ------------------------------------------------------------------------------------


def octave_bin(value: str, first: int, last: int) -> str:
    """The index of the power of two of a number: 0 below 2^first, then 1, 2, … to last − first, with the
    number's sign.
    """
    ends = ", ".join(repr(2.0**power) for power in range(first, last))
    number = f"{value}::float8"
    sized = f"width_bucket(abs({number}), ARRAY[{ends}]::float8[])"
    return f"CASE WHEN {number} <> {NAN} THEN {sized} * sign({number})::int4 END"


def log_place(value: str, per_octave: int, octaves: int, finest: int) -> str:
    """The logarithm of a float8 as an integer, with its sign."""
    size = f"least(abs({value}), {float(2**octaves // finest)!r}::float8)"
    place = f"floor(ln(1::float8 + {size} * {finest}) / ln(2::float8) * {per_octave})"
    signed = f"sign({value}) * least({place}, {per_octave * octaves})"
    return f"CASE WHEN {value} <> {NAN} THEN ({signed})::int4 END"


def year_bin(value: str, first: int, last: int) -> str:
    """The year of a date, or the nearest listed year."""
    year = f"date_part('year', {value}::timestamp)::int4"
    return f"CASE WHEN {value} IS NOT NULL THEN least(greatest({year}, {first}), {last}) END"
