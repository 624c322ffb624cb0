"""The rows that a statistic reads: which columns, in which ranges, and whose rows they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.engines.duckdb.dialect import quote
from discreet.errors import InvalidArgument
from discreet.exact.rational import Number
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.noise.smaller import smaller_noise
from discreet.queries.sensitivity import Sensitivity
from discreet.queries.shares import ShareProducts
from discreet.releases import Release
from discreet.rows import doubles
from discreet.rows.arrow import cells_of
from discreet.sql.running.explanation import IMAGINED, Explanation
from discreet.sql.schema import validate_range
from discreet.stats.inference.noisy_shares import Noise, NoisyShares
from discreet.stats.samples.dividing import Ints
from discreet.tables.asking import NAME
from discreet.tables.days import DAYS, number_of_day
from discreet.tables.methods import Methods
from discreet.tables.offer import Drawing, FoundFirst, TableRows

Floats = NDArray[np.float64]
Ranges = Mapping[str, Any]
"""For each column of numbers its public ends, or None where they are to be found."""
TOLD_APART = (1.96 + 0.8416) / 1.96
"""A value so many half widths of a 95% interval away is rejected at the level of 5% with a power of 80%."""
MISSING, ANOTHER = -1, -2
"""The place of a cell that has no value, and of one whose value is none of the levels."""


@dataclass(frozen=True)
class StatisticsOfTable:
    """A table, and the statistics of one family as its methods."""

    table: Methods


@dataclass(frozen=True)
class Sample:
    """Rows within bounds, with the columns of numbers in `numbers` and those with declared values in `levels`."""

    rows: TableRows
    numbers: tuple[str, ...]
    levels: Mapping[str, tuple[Any, ...]]

    @property
    def planner(self) -> Any:
        return self.rows.planner

    @property
    def plan(self) -> Any:
        return self.rows.plan

    def settled(self) -> Sample:
        """The same rows after their bounds are found."""
        return Sample(self.rows.settled(), self.numbers, self.levels)

    @property
    def of_one(self) -> int:
        """The maximum number of rows per unit."""
        return self.rows.of_one

    def ends(self, column: str) -> tuple[float, float]:
        """The range of a column of numbers: the declared one, or the one that was found, extended to 0."""
        field = self._fields[column]
        if field.type == "boolean":
            return 0.0, 1.0
        low, high = (0, 1) if field.between is None else field.between  # unknown before it is found: an example
        if field.type in DAYS or not self.is_found(column):
            return number_of_day(low), number_of_day(high)
        return min(float(low), 0.0), max(float(high), 0.0)

    def is_found(self, column: str) -> bool:
        """Whether the range of a column is found privately, rather than declared."""
        return bool(self.rows.planner.schema.tables[NAME].columns[column].between == "auto")

    def assumed(self, columns: Sequence[str] | None = None) -> tuple[str, ...]:
        """What has to hold besides the declarations: that no value lies outside a range that was found."""
        return tuple(
            f"no value of {name} is outside {low:g} to {high:g}, a range that was found"
            for name in (self.numbers if columns is None else columns)
            if self.is_found(name)
            for low, high in [self.ends(name)]
        )

    @property
    def _fields(self) -> dict[str, Any]:
        return {field.name: field for field in self.rows.plan.relation.fields}

    def read(self) -> tuple[dict[str, Floats], dict[str, Ints], Ints | None]:
        """Numbers as doubles, with NaN where there is none; the place of each value among its levels, or
        `MISSING` or `ANOTHER`; and whose row it is.
        """
        kinds = {name: _read_as(self._fields[name].type, name in self.levels) for name in self._names}
        found, owners = self.rows.plan.rows.owned_columns(list(kinds), kinds)
        numbers = {name: doubles(found[name]) for name in self.numbers}
        return numbers, {name: place_cells(found[name], known) for name, known in self.levels.items()}, owners

    @property
    def _names(self) -> list[str]:
        return [*self.numbers, *self.levels]


def _read_as(kind: str, listed: bool) -> str:
    """How the cells of a column are read: as they are where levels are compared."""
    return "number" if listed or kind == "boolean" else kind


def place_cells(column: Any, levels: Sequence[Any]) -> Ints:
    """The place of each cell of a column among the levels, or `MISSING` or `ANOTHER`."""
    place = {level: number for number, level in enumerate(levels)}
    return each_value(column, lambda cell: _place(cell, place))


def each_value(column: Any, number_of: Callable[[Any], int]) -> Ints:
    """A number for each cell of an Arrow column, computed once for every different value. `MISSING` for none."""
    encoded = (column.combine_chunks() if hasattr(column, "combine_chunks") else column).dictionary_encode()
    listed = cells_of(encoded.dictionary)
    numbers = np.fromiter((number_of(cell) for cell in listed), np.int64, len(listed))
    return np.asarray(np.append(numbers, MISSING)[np.asarray(encoded.indices.fill_null(len(numbers)))])


def _place(cell: Any, place: Mapping[Any, int]) -> int:
    try:
        return MISSING if cell is None or cell != cell else place.get(cell, ANOTHER)
    except Exception:  # a cell that cannot be compared or hashed has no value that was listed
        return MISSING


def sample(
    methods: Methods,
    numbers: Ranges,
    levels: Mapping[str, Sequence[Any] | None],
    *,
    where: str | None,
    epsilon: Number,
    delta: Number,
    least: int = 2,
) -> Sample:
    """The rows of a table for a statistic. A column of numbers without ends has them found privately. Each list of
    levels has at least the `least` number of them.
    """
    for name in numbers:
        kind = methods._kind(name, numbers[name]) if methods._column(name).type != "boolean" else "boolean"
        if kind not in ("integer", "number", "boolean", *DAYS):
            raise InvalidArgument(
                f"{name} is {kind}, and a number is needed. Choose another column.", code="column-type"
            )
        if numbers[name] is not None and numbers[name] != "auto":
            validate_range(numbers[name], kind, name)
    wanted = {name: "auto" if ends is None else ends for name, ends in numbers.items()}
    wanted = {name: ends for name, ends in wanted.items() if methods._column(name).type != "boolean"}
    found = {name: list_levels(methods, name, given, least) for name, given in levels.items()}
    searched = " + ".join(quote(name) for name, ends in wanted.items() if ends == "auto") or None
    rows = methods._rows(where, wanted, found, epsilon, delta, searched)
    return Sample(rows, tuple(numbers), {name: tuple(known) for name, known in found.items()})


def list_levels(methods: Methods, name: str, given: Sequence[Any] | None, least: int = 2) -> list[Any]:
    """The levels of a column: those given, or false and true if it is a condition."""
    column = methods._column(name)
    if given is not None:
        listed = list(given) if isinstance(given, list | tuple) else []
        if len(listed) < least or len(set(map(repr, listed))) < len(listed):
            raise InvalidArgument(
                f'List at least two different values of {name}: {{"{name}": ["a", "b"]}}.', code="choices-missing"
            )
        return listed
    if column.type == "boolean":
        return [False, True]
    raise InvalidArgument(
        f'{name} is {column.type}. List the values to compare: {{"{name}": ["a", "b"]}}.', code="choices-missing"
    )


def least_noise(rows: TableRows, query: ShareProducts) -> tuple[Laplace | Gaussian, Sensitivity]:
    """The smaller noise that keeps what is allowed, and the sensitivity it is made for."""
    return smaller_noise(rows.allowed, lambda norm: query.sensitivity(rows.unit, rows.of_one, norm=norm))


@dataclass(frozen=True)
class Division:
    """How the rows of a sample are divided among places, what is released, and what follows from it.

    `divide` makes the shares of all units from what `Sample.read` returns. `imagine` gives the numbers that are
    expected of one row, for `explain`. `infer` makes an inference from released numbers.
    """

    query: ShareProducts
    divide: Callable[[dict[str, Floats], dict[str, Ints], Ints | None], Ints]
    infer: Callable[[NoisyShares], Any]
    imagine: Floats

    def noisy(self, numbers: Any, noise: Noise) -> NoisyShares:
        """The released numbers, with the law of their noise."""
        return NoisyShares(np.asarray(numbers, dtype=np.float64), self.query.pairs, self.query.places, noise)


@dataclass(frozen=True)
class StatisticOffer(FoundFirst[Sample, Any]):
    """A statistic from the products of shares. It says how wide its interval would be before anything is spent."""

    division: Callable[[Sample], Division] = None  # type: ignore[assignment]

    def explain(self) -> Explanation:
        plain = super().explain()
        if self.rows.plan.automatic:
            return plain
        made, drawn = self.division(self.rows), self.drawing(self.rows)
        noise = Noise.of(drawn.mechanism)
        lines = [str(plain).rsplit("; ", 1)[0]]
        for rows in IMAGINED:
            low, high = made.infer(made.noisy(rows * made.imagine, noise)).interval(0.95)
            half = (high - low) / 2
            lines.append(
                f"± {half:.3g} (95%) of the population if there are {rows:,} evenly spread rows; "
                f"a test tells apart what differs by {half * TOLD_APART:.3g} (80% power)"
            )
        return Explanation("\n".join(lines))


def statistic(
    taken: Sample,
    division: Callable[[Sample], Division],
    finish: Callable[[Release, Any, Sample], Any],
    *,
    asked: str,
    method: str,
    arguments: Mapping[str, Any],
) -> StatisticOffer:
    """A statistic as one release: what is read, drawn and charged, and what is built from it."""

    def drawing(known: Sample) -> Drawing[Any]:
        made = division(known)
        noise, bound = least_noise(known.rows, made.query)

        def finished(release: Release) -> Any:
            return finish(release, made.infer(made.noisy(release.value, Noise.of(noise))), known)

        return known.rows.drawing(
            noise,
            bound,
            asked=asked,
            old_text=asked,
            method=f"stats.{method}",
            arguments=dict(arguments),
            read=lambda: made.query(made.divide(*known.read())),
            finish=finished,
        )

    return StatisticOffer(taken, drawing, division)
