"""A dialect: how one engine writes each of the few things that a plan is made of."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

ALL_ROWS, ROWS_OF_ONE = 2**36, 2**31
"""No table has more rows, and nobody more of them in one group: up to here sums are exact in the type that is taken."""


class Dialect(Protocol):
    """How one engine says each of the few things a plan is made of. A module can be one."""

    def quoted(self, name: str, /) -> str:
        """A name, whatever it is made of."""

    def literal(self, value: Any, /) -> str:
        """A constant."""

    def operation(self, op: str, args: Sequence[str], kinds: Sequence[str], kind: str, detail: str = "") -> str:
        """An operation on printed values of these types, that gives one of type `kind`."""

    def total(self, value: str, /) -> str:
        """A value that is NULL where it cannot be computed: no row can stop a question."""

    def fenced(self, rows: str) -> str:
        """A query whose columns are computed once, however often the query around it uses them."""

    def equal_as(self, first: str, second: str, kind: str) -> str:
        """That two columns are equal as numbers, or as timestamps, for the engine to join by."""

    def canonical(self, value: str, kind: str) -> str:
        """A value of this type as the one writing of all that are equal to it: −0.0 is 0.0, NaN is one NaN."""

    def group_key(self, value: str, kind: str) -> str:
        """A key that is the same value here and in Python, and canonical: what has no such value is NULL."""

    def distance(self, value: str, center: Fraction, kind: str) -> str:
        """How far a number lies from the center; NULL where it is no number."""

    def clamped_steps(self, number: str, step: Fraction, lowest: int, highest: int) -> str:
        """A distance, given by name, as whole steps within [lowest, highest]; NULL for NULL and NaN."""

    def square(self, value: str) -> str:
        """The square of a whole number of steps, exactly."""

    def exact_sum(self, value: str, largest: int, where: str = "", *, rows: int = ALL_ROWS) -> str:
        """A sum of at most so many whole numbers, none of them beyond ±`largest`, which no order of them changes."""

    def scaled(self, total: str, most: int, rows: str, largest: int) -> str:
        """A sum of at most `ROWS_OF_ONE` numbers within ±`largest`, times `most` over `rows`, rounded towards 0."""

    def moved_sum(self, total: str, rows: str, shift: int) -> str:
        """The exact sum of values that are all moved by so much."""

    def of_person(self, aggregate: str, value: str, kind: str, of: str) -> str:
        """An aggregate, of type `kind`, of one person's values, of type `of`; NULL where it does not fit its type."""

    def among(self, rows: str, others: str) -> str:
        """FROM: the rows of people who are in `others`, none of them twice."""

    def apart(self, rows: str, others: str) -> str:
        """FROM: the rows of people who are not in `others`."""

    def paired(self, rows: str, pairs: str, names: Sequence[str]) -> str:
        """FROM: the rows `one` whose names, the person first, are the same as in one of different `pairs`."""

    def steps(self, steps: Sequence[tuple[str, str]]) -> str:
        """WITH: named queries, of which those named drawn… are computed once, or the same however often."""

    def drawn(self, rows: str, columns: Sequence[str], seed: int) -> str:
        """All of FROM `rows`, which has these columns, and a random number `draw` for each row."""

    ranks_all: bool
    """Whether it is cheaper to rank the pairs of all people than to tell first who has too many."""

    def random_rank(self, person: str, by: Sequence[str], seed: int) -> str:
        """The place of a row among its person's rows, in a random order that depends on no value but `by`."""

    def few_of_each(self, rows: str, key: str, most: int, columns: Sequence[str]) -> str:
        """These columns of rows, at most so many of them with the same key, chosen at random."""

    def one_of_each(self, rows: str, key: str, value: str) -> str:
        """One value for each key, chosen at random."""

    def octave_bin(self, value: str, first: int, last: int) -> str:
        """Which doubling a number is in: 0 under 2^first, then 1, 2, … to last − first, with the number's sign."""

    def year_bin(self, value: str, first: int, last: int) -> str:
        """The year of a date, or the nearest one of those listed."""
