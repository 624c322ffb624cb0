"""A dialect: how one engine writes each of the few operations that a plan consists of."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

ALL_ROWS, ROWS_OF_ONE = 2**36, 2**31
"""No table has more rows, and nobody more of them in one group: up to here sums are exact in the type that is taken."""


class Dialect(Protocol):
    """How one engine writes each of the few operations that a plan consists of. A module can be a dialect."""

    def quote(self, name: str, /) -> str:
        """A name, quoted, with any characters in it."""

    def literal(self, value: Any, /) -> str:
        """A constant."""

    def operation(self, op: str, args: Sequence[str], kinds: Sequence[str], kind: str, detail: str = "") -> str:
        """An operation on printed values of these types, with a result of type `kind`."""

    def total(self, value: str, /) -> str:
        """A value that is NULL if it cannot be computed, so no row can stop a question."""

    def fenced(self, rows: str) -> str:
        """A query whose columns are computed once, even if the query around it uses them several times."""

    def equal_as(self, first: str, second: str, kind: str) -> str:
        """A condition that two columns are equal as numbers, or as timestamps, which the engine can join by."""

    def canonical(self, value: str, kind: str) -> str:
        """A value of this type in canonical form, the same for all equal values: −0.0 is 0.0, and there is one NaN."""

    def group_key(self, value: str, kind: str) -> str:
        """A key in canonical form that has the same value in the engine and in Python. NULL if there is no such
        value.
        """

    def distance(self, value: str, center: Fraction, kind: str) -> str:
        """The signed distance of a number from the center. NULL if it is not a number."""

    def clamped_steps(self, number: str, step: Fraction, lowest: int, highest: int) -> str:
        """A distance, given by name, as an integer number of steps in [lowest, highest]. NULL for NULL and NaN."""

    def square(self, value: str) -> str:
        """The exact square of an integer number of steps."""

    def exact_sum(self, value: str, largest: int, where: str = "", *, rows: int = ALL_ROWS) -> str:
        """A sum of at most `rows` integers within ±`largest`. It does not depend on their order."""

    def whole(self, value: str, most: int | None) -> str:
        """An integer that is not NULL, as one of 64 bits. What is beyond ±`most` moves to the ends, or None: nothing
        is.
        """

    def exact_square(self, value: str) -> str:
        """The square of an integer below 2^31, as a number of which many can be added exactly."""

    def root(self, squares: str) -> str:
        """The root of an exact integer, as a DOUBLE."""

    def root_above(self, squares: str) -> str:
        """An integer whose square is at least this exact integer, compared as integers. NULL if none is found."""

    def shortened(self, value: str, bits: int) -> str:
        """An integer of 64 bits divided by 2^`bits`, rounded towards 0."""

    def scaled(self, total: str, most: int, rows: str, largest: int) -> str:
        """A sum of at most `ROWS_OF_ONE` numbers within ±`largest`, times `most` over `rows`, rounded towards 0."""

    def moved_sum(self, total: str, rows: str, shift: int) -> str:
        """The exact sum of values that are each moved by the same amount."""

    def of_person(self, aggregate: str, value: str, kind: str, of: str) -> str:
        """An aggregate, of type `kind`, of one person's values, of type `of`. NULL if it does not fit its type."""

    def sum_over(self, value: str, window: str) -> str:
        """The exact sum of integers of 64 bits over a window. NULL if it does not fit 64 bits."""

    def unit_key(self, block: str, person: str) -> str:
        """One text for each pair of an integer, or NULL, and a person: text, an integer, a date or a boolean. Different
        pairs have different texts. NULL if the person is.
        """

    def among(self, rows: str, others: str) -> str:
        """FROM: the rows of people who are in `others`, each row once."""

    def apart(self, rows: str, others: str) -> str:
        """FROM: the rows of people who are not in `others`."""

    def paired(self, rows: str, pairs: str, names: Sequence[str]) -> str:
        """FROM: the rows of `one` whose named columns, the person first, are equal to those in one of the distinct
        `pairs`.
        """

    def steps(self, steps: Sequence[tuple[str, str]]) -> str:
        """WITH: named queries. Those named drawn… are computed once, or give the same result each time."""

    def drawn(self, rows: str, columns: Sequence[str], seed: int) -> str:
        """All rows of FROM `rows`, which has these columns, and a random number `draw` for each row."""

    ranks_all: bool
    """Whether it is cheaper to rank the pairs of all people than to tell first who has too many."""

    gathers: bool
    """Whether the values of all people may be gathered in one process, to match people and values."""

    exists_as_column: bool
    """Whether EXISTS with a query may be a column, and not only a condition."""

    is_wide: bool
    """Whether a statement may have any number of columns."""

    def random_rank(self, person: str, by: Sequence[str], seed: int) -> str:
        """The position of a row among its person's rows, in a random order that depends only on `by`."""

    def few_of_each(self, rows: str, key: str, most: int, columns: Sequence[str]) -> str:
        """These columns of rows, with a bounded number of rows per key, chosen at random."""

    def one_of_each(self, rows: str, key: str, value: str) -> str:
        """One value for each key, chosen at random."""

    def octave_bin(self, value: str, first: int, last: int) -> str:
        """The index of the power of two of a number: 0 below 2^first, then 1, 2, … to last − first, with the number's
        sign.
        """

    def log_place(self, value: str, per_octave: int, octaves: int, finest: int) -> str:
        """log2(1 + |value|·finest)·per_octave as an integer with the sign of the value, at most so many octaves. The
        value is a DOUBLE, given by name. NULL for NULL and NaN.
        """

    def year_bin(self, value: str, first: int, last: int) -> str:
        """The year of a date, or the nearest listed year."""
