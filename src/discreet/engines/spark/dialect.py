"""Spark's dialect for relations; `values.py` has the one for values. Each operation is total, or it is refused.

The engine draws nothing. A random order is a hash of the row, its index among equal rows, and a seed. So a task that
runs twice, or a query that is inlined twice, gives the same result.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from discreet.engines.dialect import ALL_ROWS, ROWS_OF_ONE
from discreet.engines.duckdb.dialect import filter_rows
from discreet.engines.spark.values import INFINITE, TYPES, as_types, refuse
from discreet.engines.spark.values import literal as literal
from discreet.engines.spark.values import operation as operation
from discreet.engines.spark.values import quote as quote
from discreet.exact.randomness import random_integer

ranks_all = True
gathers = False
exists_as_column = False
is_wide = False


def total(value: str) -> str:
    """Every operation is already total."""
    return value


def fenced(rows: str) -> str:
    """Spark itself computes a repeated query only once."""
    return rows


def equal_as(first: str, second: str, kind: str) -> str:
    """A condition that two columns are equal as one type."""
    return f"(CAST({first} AS {TYPES[kind]}) = CAST({second} AS {TYPES[kind]}))"


# --- sums and counts ------------------------------------------------------------------------------------------

_LIMB = 2**26


def exact_sum(value: str, largest: int, where: str = "", *, rows: int = ALL_ROWS) -> str:
    """A sum of integers: in 64 bits if all rows fit, in two halves of 64 bits, or as decimals."""
    only = filter_rows(where)
    if largest * rows < 2**63:
        return f"sum(CAST({value} AS BIGINT)){only}"
    if largest >= _LIMB * 2**27:
        return f"sum(CAST({value} AS DECIMAL(38, 0))){only}"
    whole = f"CAST({value} AS BIGINT)"
    high, low = f"sum(shiftright({whole}, 26)){only}", f"sum({whole} & {_LIMB - 1}L){only}"
    return f"(CAST({high} AS DECIMAL(28, 0)) * {_LIMB}L + {low})"


def square(value: str) -> str:
    """The square of an integer number of steps."""
    return f"CAST({value} AS DECIMAL(19, 0)) * CAST({value} AS DECIMAL(19, 0))"


def whole(value: str, most: int | None) -> str:
    """An integer as one of 64 bits, within ±`most`."""
    within = value if most is None else f"least(greatest({value}, {-most}L), {most}L)"
    return f"CAST({within} AS BIGINT)"


def exact_square(value: str) -> str:
    """The square of an integer, where many of them are added."""
    return square(value)


def root(squares: str) -> str:
    """The root of an exact integer, as a DOUBLE."""
    return f"sqrt(CAST({squares} AS DOUBLE))"


def root_above(squares: str) -> str:
    """An integer whose square is at least this one: the rounded root, or the next."""
    guess = f"CAST(ceil({root(squares)}) AS DECIMAL(19, 0))"
    tries = [f"WHEN ({guess} + {more}) * ({guess} + {more}) >= {squares} THEN {guess} + {more}" for more in (0, 1)]
    return f"CASE {' '.join(tries)} END"


def shortened(value: str, bits: int) -> str:
    """An integer of 64 bits divided by 2^`bits`, rounded towards 0."""
    return f"({value} div {2**bits}L)"


def scaled(total: str, most: int, rows: str, largest: int) -> str:
    """A sum times `most` over `rows`, rounded towards 0: in 64 bits if quotients and remainders fit."""
    if largest * max(most, ROWS_OF_ONE) < 2**62 and most < 2**31:
        few = f"nullif({rows}, 0L)"
        return f"(({total} div {few}) * {most}L + (({total} % {few}) * {most}L) div {few})"
    number = f"try_multiply(CAST({total} AS DECIMAL(38, 0)), CAST({most} AS DECIMAL(10, 0)))"
    return f"CAST(({number} - {number} % nullif({rows}, 0L)) / nullif({rows}, 0L) AS DECIMAL(38, 0))"


def moved_sum(total: str, rows: str, shift: int) -> str:
    """The exact sum of values that are each moved by the same amount."""
    return f"CAST({total} AS DECIMAL(38, 0)) + CAST({shift} AS DECIMAL(19, 0)) * {rows}"


def _number(value: str, kind: str) -> str:
    if kind not in ("integer", "number", "boolean"):
        refuse(f"A sum or rank of a {kind}")
    return as_types([value], [kind], "number")[0]


def distance(value: str, center: Fraction, kind: str) -> str:
    """The signed distance of a number from the center. NULL if it is not a number."""
    number = _number(value, kind)
    return f"({number} - {literal(float(center))})" if center else number


def clamped_steps(number: str, step: Fraction, lowest: int, highest: int) -> str:
    """A DOUBLE, given by name, as an integer number of steps in [lowest, highest]. NULL for NULL and NaN."""
    low, high = (literal(float(end * step)) for end in (lowest, highest))
    whole = f"TRY_CAST(rint({number} * {literal(float(1 / step))}) AS BIGINT)"
    return (
        f"CASE WHEN {number} BETWEEN {low} AND {high} THEN {whole} WHEN {number} < {low} THEN {literal(lowest)} "
        f"WHEN isnan({number}) THEN NULL WHEN {number} > {high} THEN {literal(highest)} END"
    )


def of_person(aggregate: str, value: str, kind: str, of: str) -> str:
    """An aggregate of one person's rows. It never fails, and is NULL if it does not fit its type."""
    if aggregate == "count":
        return f"count({value})"
    if aggregate in ("min", "max"):
        if of == "other":
            refuse(f"{aggregate.upper()} of a column of another type")
        # of two zeros the positive one
        return f"{aggregate}({value} + 0D)" if of == "number" else f"{aggregate}({value})"
    if of in ("integer", "boolean"):
        whole = f"sum(CAST(CAST({value} AS BIGINT) AS DECIMAL(28, 0)))"
        if aggregate == "avg":
            return f"CAST({whole} AS DOUBLE) / nullif(count({value}), 0L)"
        return f"TRY_CAST({whole} AS {TYPES[kind]})"
    # in the order of the values: the order of the rows depends on the rows of others
    listed = f"array_sort(collect_list({value}))"
    added = f"aggregate({listed}, 0D, (total, next) -> total + next)"
    found = f"CASE WHEN count({value}) > 0 THEN {added} END"
    return f"({found}) / nullif(count({value}), 0L)" if aggregate == "avg" else found


def sum_over(value: str, window: str) -> str:
    """The exact sum of integers over a window. NULL if it does not fit 64 bits."""
    return f"TRY_CAST(sum(CAST({value} AS DECIMAL(28, 0))) OVER ({window}) AS BIGINT)"


def canonical(value: str, kind: str) -> str:
    """A value in canonical form: zero has no sign, and there is one NaN."""
    if kind != "number":
        return value
    return f"CASE WHEN {value} = 0D THEN 0D WHEN isnan({value}) THEN CAST('NaN' AS DOUBLE) ELSE {value} END"


def group_key(value: str, kind: str) -> str:
    """A key that has the same value in the engine and in Python. NULL if there is no such value."""
    match kind:
        case "number":
            return f"CASE WHEN {value} = 0D THEN 0D WHEN abs({value}) < {INFINITE} THEN {value} END"
        case "date" | "timestamp":
            return f"CASE WHEN {value} BETWEEN {_DAYS[kind]} THEN {value} END"
        case "text":  # bytes that are not valid text differ here, but not in Python
            return f"decode(encode({value}, 'UTF-8'), 'UTF-8')"
        case "integer" | "boolean":
            return value
    return refuse(f"GROUP BY a column of type {kind}")


# --- bounds ---------------------------------------------------------------------------------------------------


def steps(steps: Sequence[tuple[str, str]]) -> str:
    """Named queries. Spark inlines them into the others, and gets the same result each time."""
    return ", ".join(f"{name} AS ({text})" for name, text in steps)


def drawn(rows: str, columns: Sequence[str], seed: int) -> str:
    """All rows, and a pseudorandom number for each. Equal rows are numbered."""
    number = f"row_number() OVER (PARTITION BY {', '.join(columns)} ORDER BY {columns[0]})"
    return f"SELECT *, {_hash_rows(columns, seed, number)} AS draw FROM {rows}"


def _hash_rows(columns: Sequence[str], seed: int, *others: str) -> str:
    """A pseudorandom number for each distinct row. The hash itself ignores NULL."""
    parts = (part for column in columns for part in (f"{column} IS NULL", column))
    return f"xxhash64({', '.join([f'{seed}L', *others, *parts])})"


def unit_key(block: str, person: str) -> str:
    """A number or NULL, a colon, which neither has, and the person."""
    return f"concat(coalesce(CAST({block} AS STRING), 'null'), ':', CAST({person} AS STRING))"


def among(rows: str, others: str) -> str:
    """The rows of people who are in `others`."""
    return f"{rows} LEFT SEMI JOIN {others} USING (person)"


def apart(rows: str, others: str) -> str:
    """The rows of people who are not in `others`."""
    return f"{rows} LEFT ANTI JOIN {others} USING (person)"


def paired(rows: str, pairs: str, names: Sequence[str]) -> str:
    """The rows of `one` whose named columns are equal to those in one of the pairs."""
    same = " AND ".join(f"one.{name} <=> other.{name}" for name in names)
    return f"{rows} AS one LEFT SEMI JOIN {pairs} AS other ON {same}"


def random_rank(person: str, by: Sequence[str], seed: int) -> str:
    """The position of a row among its person's rows, in a random order that depends only on `by`."""
    order = _hash_rows([*by, person], seed)
    return f"row_number() OVER (PARTITION BY {person} ORDER BY {', '.join([order, *by])})"


def few_of_each(rows: str, key: str, most: int, columns: Sequence[str]) -> str:
    """These columns of rows, with a bounded number of rows per key, chosen at random."""
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
    """The index of the power of two of a number: 0 below 2^first, then 1, 2, … to last − first, with the
    number's sign.
    """
    number = f"CAST({value} AS DOUBLE)"
    ends = (f"WHEN abs({number}) >= {2.0**power!r}D THEN {power - first + 1}" for power in reversed(range(first, last)))
    sized = f"CASE {' '.join(ends)} ELSE 0 END"
    sign = f"CASE WHEN {number} < 0 THEN -1 ELSE 1 END"
    return f"CASE WHEN NOT isnan({number}) THEN ({sign}) * ({sized}) END"


def log_place(value: str, per_octave: int, octaves: int, finest: int) -> str:
    """The logarithm of a DOUBLE as an integer, with its sign."""
    size = f"least(abs({value}), {float(2**octaves // finest)!r}D)"
    place = f"least(floor(log2(1D + {size} * {finest}D) * {per_octave}), {per_octave * octaves})"
    return f"CASE WHEN NOT isnan({value}) THEN CAST(sign({value}) * {place} AS INT) END"


def year_bin(value: str, first: int, last: int) -> str:
    """The year of a date, or the nearest listed year."""
    return f"CASE WHEN {value} IS NOT NULL THEN least(greatest(year({value}), {first}), {last}) END"


# --- sources --------------------------------------------------------------------------------------------------

_DAYS = {"date": "DATE'0001-01-01' AND DATE'9999-12-31'"}
_DAYS["timestamp"] = "TIMESTAMP_NTZ'0001-01-01 00:00:00' AND TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'"
"""The dates that Python has, too. Others are NULL."""


def plainly_typed(name: str, kind: str, given: str) -> str:
    """A column of a source, converted to one of our types. `given` is Spark's type."""
    column = quote(name)
    match kind:
        case "date":
            return f"CASE WHEN {column} BETWEEN {_DAYS[kind]} THEN {column} END AS {column}"
        case "timestamp":
            own = f"CAST({column} AS TIMESTAMP_NTZ)"
            return f"CASE WHEN {own} BETWEEN {_DAYS[kind]} THEN {own} END AS {column}"
        case "other":  # as text, even maps can be compared
            return f"{f'hex({column})' if given == 'binary' else f'CAST({column} AS STRING)'} AS {column}"
    if kind == "number":  # zero has no sign: which of two equal rows is kept must not matter
        return f"CAST({column} AS DOUBLE) + 0D AS {column}"
    return column if given.upper() == TYPES[kind] else f"CAST({column} AS {TYPES[kind]}) AS {column}"
