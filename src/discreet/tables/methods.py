"""The methods of a table. Each builds an offer, which explains itself or makes the release."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from operator import itemgetter
from typing import Any, Literal

import numpy as np

from discreet.engines.duckdb.dialect import quote
from discreet.engines.duckdb.engine import DuckDB
from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count, check_delta, check_epsilon
from discreet.functions.density import Density
from discreet.guarantees.accuracy import check_confidence
from discreet.ledger import Ledger
from discreet.releases import Release
from discreet.sql.bounded_rows import BoundedRows
from discreet.sql.cubes import Cross, all_levels, crossed
from discreet.sql.planner import Planner, new_opening
from discreet.sql.reading.parse import Conditioned
from discreet.sql.reading.values.ranges import day_of
from discreet.sql.running.answer import CONFIDENCE
from discreet.sql.schema import Column, Schema, Table, Type, implied_type, list_choices, validate_choice, validate_range
from discreet.synthetic.table import SyntheticTable
from discreet.tables import distributions
from discreet.tables.asking import (
    NAME,
    check_other,
    counts_by_value,
    cumulative_shares,
    grouped,
    largest,
    largest_by_group,
    names_of,
    query_of,
    selected,
    shares_by_group,
    text_of,
)
from discreet.tables.bands import BandedQuantiles, Least, chosen_quantiles, validate_quantiles
from discreet.tables.counted_first import CountedFirst, Values
from discreet.tables.days import DAYS, as_number, from_number
from discreet.tables.distribution import Distribution
from discreet.tables.fit import Estimator, Features, Fit, check_estimator, types_said
from discreet.tables.grouped import (
    Bins,
    By,
    Edge,
    GroupedOffer,
    GroupedRelease,
    bins_of,
    by_group,
    error_of_groups,
    grouping,
    listed,
    quoted,
    unused,
)
from discreet.tables.offer import (
    Drawing,
    FoundFirst,
    Offer,
    SqlOffer,
    TableRows,
    error_of_choice,
    error_of_counts,
    error_of_largest,
    error_of_one,
)
from discreet.tables.votes import Votes, votes

COUNTING = Fraction(1, 20)
"""The part of ε that counts values before quantiles are drawn: the count decides how wide their intervals are."""
End = Number | datetime.date
Between = tuple[End, End] | Literal["auto"]
"""Two public ends, or "auto" for ends that are found privately."""


@dataclass(frozen=True)
class Methods:
    """A table, the ledger that pays for its answers, and the engine that reads it."""

    ledger: Ledger
    table: Table
    engine: DuckDB
    opening: str = field(default_factory=new_opening)

    # --- answers in numbers -------------------------------------------------------------------------------

    def count(
        self,
        of: str = "rows",
        *,
        epsilon: Number,
        delta: Number = 0,
        where: str | None = None,
        by: By | None = None,
    ) -> Offer[Release]:
        """The number of rows, or the number of people: `count("people", …)`."""
        if not isinstance(of, str) or of not in ("rows", "people"):
            raise InvalidArgument('of must be "rows" or "people".', code="not-an-option")
        person = self.table.person
        counted = f"COUNT(DISTINCT {quote(person)})" if of == "people" and person is not None else "COUNT(*)"
        return self._number("count", counted, {}, epsilon, delta, where, by)

    def sum(
        self,
        column: str,
        *,
        between: Between | None = None,
        epsilon: Number,
        delta: Number = 0,
        where: str | None = None,
        by: By | None = None,
    ) -> Offer[Release]:
        """The sum of a column."""
        text = f"SUM({self._quoted_number(column, between)})"
        return self._number("sum", text, {column: between}, epsilon, delta, where, by)

    def mean(
        self,
        column: str,
        *,
        between: Between | None = None,
        epsilon: Number,
        delta: Number = 0,
        where: str | None = None,
        by: By | None = None,
    ) -> Offer[Release]:
        """The mean of a column, from a noisy sum and a noisy count."""
        text = f"AVG({self._quoted_number(column, between)})"
        return self._number("mean", text, {column: between}, epsilon, delta, where, by)

    def variance(
        self,
        column: str,
        *,
        between: Between | None = None,
        epsilon: Number,
        delta: Number = 0,
        where: str | None = None,
        by: By | None = None,
    ) -> Offer[Release]:
        """The sample variance of a column."""
        number = self._quoted_number(column, between)
        return self._number("variance", f"VAR_SAMP({number})", {column: between}, epsilon, delta, where, by)

    def median(
        self,
        column: str,
        *,
        between: Between | None = None,
        epsilon: Number,
        delta: Number = 0,
        where: str | None = None,
        by: By | None = None,
    ) -> Offer[Release]:
        """The median of a column, chosen from a public grid. For dates it is accurate to the day. A `delta` is used
        only to choose groups.
        """
        kind = self._kind(column, between)
        text = f"MEDIAN({as_number(column, kind)})"
        return self._number("median", text, {column: between}, epsilon, delta, where, by, kind)

    def quantiles(
        self,
        column: str,
        at: Sequence[Number],
        *,
        between: Between | None = None,
        epsilon: Number,
        delta: Number = 0,
        least: Least = "bound",
        confidence: float = 0.95,
        where: str | None = None,
        by: By | None = None,
    ) -> Offer[Release]:
        """Several quantiles of a column, as an array in the given order, with intervals that hold at once. With `by`,
        an array for each group, in which every quantile is chosen by itself.

        With `least="bound"` the intervals are narrow: quantiles are read from cumulative counts, whose noise is known.
        Otherwise they are chosen recursively or read from counts, whichever has the smaller expected error on average
        (`"mean"`) or at worst (`"largest"`). `"mean"` usually has less error, but much wider intervals. A twentieth of
        ε is used first to count the values. A single quantile is chosen by itself, if the confidence is 95%.
        """
        exact = validate_quantiles(at, least)
        sure = check_confidence(confidence)
        if by is not None:
            kind = self._kind(column, between)
            number = as_number(column, kind)
            texts = {f"q{float(q):g}": f"QUANTILE_CONT({number}, {float(q)!r})" for q in exact}
            of_group = lambda values: np.array([from_number(v, kind) for v in values])  # noqa: E731
            return self._by_group(texts, {column: between}, epsilon, delta, where, by, of_group, kind)
        check_delta(delta)
        if len(exact) == 1 and sure == CONFIDENCE:
            kind, planner = self._kind(column, between), self._planner({column: between}, {})
            return chosen_quantiles(planner, as_number(column, kind), exact, where, epsilon, kind)
        whole, kind = check_epsilon(epsilon), self._kind(column, between)
        number = as_number(column, kind)
        rows = self._rows(
            where, {column: between}, {}, whole * (1 - COUNTING), delta, number, f"MEDIAN({number}) AS value"
        )

        def asked(known: TableRows, values: Values, size: float) -> Drawing[BandedQuantiles]:
            options: dict[str, Any] = {"size": size, "least": least, "confidence": sure, "kind": kind}
            return distributions.quantiles(known, values, column, at, **options)

        def counted(known: TableRows, values: Values) -> Drawing[Release]:
            return distributions.count_values(known, values, whole * COUNTING, column)

        return CountedFirst(rows, whole * COUNTING, counted, asked)

    def cdf(
        self,
        column: str,
        *,
        between: tuple[End, End],
        step: Number = 1,
        epsilon: Number,
        delta: Number = 0,
        where: str | None = None,
        by: By | None = None,
    ) -> Offer[Distribution] | Offer[GroupedRelease]:
        """The share of rows up to each point of a public grid, from one end to the other: every threshold at once. With
        `by`, an array of shares for each group, added up from noisy counts.
        """
        if not isinstance(between, tuple | list) or len(between) != 2:
            raise InvalidArgument(
                "between must be two public ends, such as (0, 120): they are the grid.", code="ends-missing"
            )
        kind = self._kind(column, between)
        low, high = map(day_of, validate_range(between, kind, column))
        points = distributions.Points(low, high, step)
        place = points.places(column, kind)
        if by is not None:
            check_other(column, groups := grouping(by))
            keys = [self._column(key).name for key in groups]
            shown, after, names = cumulative_shares(keys, place)
            planner = self._planner({column: between}, groups)
            question = query_of(shown, where, after, own=f"{place} IS NOT NULL")
            plan = planner.plan(question, epsilon=epsilon, delta=delta)
            value_of = partial(shares_by_group, keys=keys, names=names, points=len(points.grid))
            return GroupedOffer(planner, plan, value_of, partial(error_of_groups, names=names[1:]))
        rows = self._rows(where, {column: between}, {}, epsilon, delta, place, f"MEDIAN({place}) AS value")
        return FoundFirst(rows, lambda known: distributions.cumulative(known, column, points))

    def synthesize(
        self,
        columns: Mapping[str, Any],
        *,
        epsilon: Number,
        delta: Number,
        where: str | None = None,
        rows: int | None = None,
        rounds: int | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> Offer[SyntheticTable]:
        """A synthetic table with these columns. For each column, give its public bounds in parentheses, such as (0,
        120), or a list of all its choices in brackets. A row with another choice, or with no value, is left out.

        Each column, and the pairs of columns that matter most, have nearly the same counts as the true rows. `rows` is
        the number of rows to create, by default about as many as the table has. `progress` is called after every step.
        """
        if not isinstance(columns, Mapping) or not columns:
            raise InvalidArgument(
                'columns must declare each, such as {"age": (0, 120), "city": ["Acre", "Haifa"]}.', code="wrong-type"
            )
        if progress is not None and not callable(progress):
            raise InvalidArgument("progress must be a function of one line of text, such as print.", code="wrong-type")
        for name, what in columns.items():
            if isinstance(what, str) or not isinstance(what, Sequence):
                raise InvalidArgument(
                    f"{name} needs a pair of ends, such as (0, 120), or a list of choices.", code="wrong-type"
                )
        ranges = {name: what for name, what in columns.items() if isinstance(what, tuple)}
        listed = {name: what for name, what in columns.items() if name not in ranges}
        planner = self._planner(ranges, listed)
        kinds: dict[str, Type] = {name: planner.schema.tables[NAME].columns[name].type for name in columns}
        for name, kind in kinds.items():
            if kind == "other":
                raise InvalidArgument(
                    f"{name} is not a number, text, a date or a condition. Leave it out.", code="column-type"
                )
        taken = self._rows(where, ranges, listed, epsilon, delta)
        options = {"rows": rows, "rounds": rounds, "progress": _show if progress is None else progress}
        return FoundFirst(taken, lambda known: distributions.synthetic(known, columns, kinds=kinds, **options))

    def density(
        self,
        column: str | Sequence[str],
        *,
        between: tuple[End, End] | Sequence[tuple[End, End]],
        bandwidth: Number | Sequence[Number] | None = None,
        epsilon: Number,
        delta: Number = 0,
        where: str | None = None,
    ) -> Offer[Density]:
        """The density of one to three columns, as one function: a release that can be evaluated at every point.

        `between` is a pair of public bounds, or a list of pairs. Values outside move to the nearest bound. `bandwidth`
        is the width of the kernel: one number, or one for each column. For a single column it may be omitted. The
        release then chooses it by a rule, at no extra cost. With `delta=0` the noise is Laplace.
        """
        columns: list[Any] = list(column) if isinstance(column, list | tuple) else [column]
        ranges = list(between) if isinstance(column, list | tuple) and isinstance(between, list | tuple) else [between]
        if not 1 <= len(columns) <= 3 or len(ranges) != len(columns):
            raise InvalidArgument(
                "A density has one to three columns, with one pair of ends for each.", code="wrong-shape"
            )
        if not all(isinstance(ends, tuple | list) and len(ends) == 2 for ends in ranges):
            raise InvalidArgument(
                "A density needs the public ends of its columns: between=(0, 120).", code="ends-missing"
            )
        given = {self._column(name).name: ends for name, ends in zip(columns, ranges, strict=True)}
        rows = self._rows(where, given, {}, epsilon, delta)
        declared = rows.planner.schema.tables[NAME].columns
        kinds = [declared[name].type for name in columns]
        return FoundFirst(rows, lambda known: distributions.density(known, columns, ranges, bandwidth, kinds))

    # --- answers by value ---------------------------------------------------------------------------------

    def histogram(
        self,
        column: str,
        *,
        choices: Sequence[Any] | None = None,
        bins: int | None = None,
        edges: Sequence[Edge] | None = None,
        between: tuple[End, End] | None = None,
        epsilon: Number,
        delta: Number = 0,
        where: str | None = None,
        by: By | None = None,
    ) -> Offer[GroupedRelease]:
        """The number of rows for each value, as a dict. Without `choices`, only values that enough people have are
        shown, which needs a `delta`.

        For a column of numbers or dates, give the number of `bins` and the public ends `between` which they lie, or
        all their `edges`. The keys are then pairs of edges. A bin includes its lower edge, and the last one also its
        upper edge. Values outside are left out. With `by`, the keys are tuples: the group, and then the value.
        """
        ends = between if edges is None else (*listed(edges)[:1], *listed(edges)[-1:])
        kind = "" if bins is None and edges is None else self._kind(column, ends)
        binned = bins_of(bins, edges, between, kind, column)
        if binned is None:
            planner, question = self._by_value(column, where, choices, by)
        elif choices is not None:
            raise InvalidArgument("A histogram has choices or bins. Remove one of them.", code="bins")
        else:
            planner, question = self._by_bin(column, where, binned, by)
        plan = planner.plan(question, epsilon=epsilon, delta=delta)
        said = () if binned is None else (f"Left out: rows whose {column} is in no bin.",)
        if by is None:
            value_of = partial(counts_by_value, keys=["value"], n="n", bins=binned)
            return GroupedOffer(planner, plan, value_of, error_of_counts, said=said)
        keys, n = names_of(grouping(by))
        value_of, error = partial(counts_by_value, keys=keys, n=n, bins=binned), partial(error_of_groups, names=[n])
        return GroupedOffer(planner, plan, value_of, error, said=said)

    def cube(
        self,
        by: Cross,
        *,
        total: str | None = None,
        choices: Mapping[str, Sequence[Any]] | None = None,
        between: Between | None = None,
        positive: bool = False,
        epsilon: Number,
        delta: Number = 0,
        where: str | None = None,
    ) -> Offer[GroupedRelease]:
        """The number of rows by all keys, by each part of them, and in total: levels that add up, for one charge. With
        `total`, the sum of that column instead.

        `by` lists the keys. Several in parentheses are a hierarchy, from coarse to fine: [("region", "city"), "sex"].
        `choices` declares their values. Keys without choices show the groups that enough people have, which needs a
        `delta`. With `positive`, no number is below 0. The value is a dict. In its keys, None stands for all values.
        """
        hierarchies = crossed(by)
        keys = [self._column(key).name for one in hierarchies for key in one]
        declared = dict.fromkeys(keys) | dict(choices or {})
        name = unused("n" if total is None else "total", keys)
        number = "COUNT(*)" if total is None else f"SUM({self._quoted_number(total, between)})"
        planner = self._planner({} if total is None else {total: between}, declared)
        levels = all_levels([[quote(key) for key in one] for one in hierarchies])
        question = query_of(f"{quoted(keys)}, {number} AS {quote(name)}", where, levels)
        plan = replace(planner.plan(question, epsilon=epsilon, delta=delta), positive=positive)
        value_of, error = by_group(keys, [name], itemgetter(0)), partial(error_of_groups, names=[name])
        return GroupedOffer(planner, plan, value_of, error, number=name)

    def most_common(
        self,
        column: str,
        *,
        choices: Sequence[Any] | None = None,
        epsilon: Number,
        delta: Number = 0,
        k: int = 1,
        where: str | None = None,
        by: By | None = None,
    ) -> Offer[Release]:
        """The value that (nearly) the most rows have. With `k`, the `k` most common, best first. With `by`, those of
        each group.

        Declared `choices` are chosen by permute-and-flip, or by the exponential mechanism if the ledger's rule makes
        that one more accurate. Without them, it is the value with the largest noisy count among those that enough
        people have, which needs a `delta`. If there is none, it is None. With `k`, there may be fewer than `k`.
        """
        number = check_count(k, "k")
        if by is not None and choices is not None and number == 1:
            check_other(column, grouping(by))
            chosen, known = {"value": f"MODE({self._quoted(column)})"}, {column: choices}
            offer = self._by_group(chosen, {}, epsilon, delta, where, by, itemgetter(0), choices=known)
            return replace(offer, error_of=error_of_choice)
        planner, question = self._by_value(column, where, choices, by)
        error = partial(error_of_largest, of="score" if number == 1 else "every score")
        if by is not None:
            keys, n = names_of(grouping(by))
            value_of = partial(largest_by_group, keys=keys, n=n, number=number)
            plan = planner.plan(question, epsilon=epsilon, delta=delta)
            return GroupedOffer(planner, plan, value_of, partial(error, n=n))
        if choices is None:
            plan = planner.plan(question, epsilon=epsilon, delta=delta)
            return SqlOffer(planner, plan, partial(largest, number=number), error)
        counted = Votes.of(planner, question, where, epsilon, delta)
        return FoundFirst(counted, lambda known: votes(known, column, number))

    # --- models -------------------------------------------------------------------------------------------

    def fit(
        self, estimator: Estimator, *, features: Features, target: str | None = None, where: str | None = None
    ) -> Offer[Estimator]:
        """Fit a private estimator, such as `dp.learn.LogisticRegression`, to columns of this table, and return it.

        `features` is a list of numeric columns, which are used as they are and clipped by the estimator's
        `feature_norm`. Or it is a dict that gives for each column its public bounds in parentheses, such as (0, 120),
        or a list of all its choices in brackets, which creates one column for each choice. The cost is the estimator's
        own epsilon and delta, paid from the ledger of this table. Each fit is charged and drawn anew. Without
        `rows_per_person`, a part of epsilon finds how many rows of one person are used.
        """
        check_estimator(estimator, target)
        said = types_said(estimator, features, target)
        rows = self._rows(where, {}, {}, estimator.epsilon, estimator.delta, types=said)
        return Fit(estimator, rows.planner, rows.plan, features, target)

    def one_of_each(self) -> BoundedRows:
        """Every row, or one row per person."""
        return replace(self, table=replace(self.table, rows_per_person=1))._rows(None, {}, {}, 1, 0).plan.rows

    # --- how all of them ask --------------------------------------------------------------------------------

    def _number(
        self,
        name: str,
        aggregate: str,
        between: Mapping[str, Between | None],
        epsilon: Number,
        delta: Number,
        where: str | None,
        by: By | None,
        kind: Type = "number",
    ) -> SqlOffer:
        """One aggregate of all rows, or of each group."""
        if by is not None:
            of_group = lambda values: from_number(values[0], kind)  # noqa: E731
            return self._by_group({name: aggregate}, between, epsilon, delta, where, by, of_group, kind)
        planner = self._planner(between, {})
        plan = planner.plan(query_of(f"{aggregate} AS value", where), epsilon=epsilon, delta=delta)
        return SqlOffer(planner, plan, lambda answer: from_number(answer["value"][0], kind), error_of_one)

    def _by_group(
        self,
        aggregates: Mapping[str, str],
        between: Mapping[str, Between | None],
        epsilon: Number,
        delta: Number,
        where: str | None,
        by: By,
        of_group: Callable[[list[Any]], Any],
        kind: Type = "number",
        choices: Mapping[str, Any] | None = None,
    ) -> GroupedOffer:
        """Aggregates of each group. `of_group` makes the value of a group from its numbers."""
        groups = grouping(by)
        keys = [self._column(key).name for key in groups]
        names = [unused(name, keys) for name in aggregates]
        shown = [f"{text} AS {quote(name)}" for name, text in zip(names, aggregates.values(), strict=True)]
        planner = self._planner(between, groups | dict(choices or {}))
        question = query_of(", ".join([quoted(keys), *shown]), where, f" GROUP BY {quoted(keys)}")
        plan = planner.plan(question, epsilon=epsilon, delta=delta)
        days = tuple(names) if kind in DAYS else ()
        value_of, error = by_group(keys, names, of_group), partial(error_of_groups, names=names)
        return GroupedOffer(planner, plan, value_of, error, days, number="" if names[1:] else names[0])

    def _by_value(
        self, column: str, where: str | None, choices: Any, by: By | None = None
    ) -> tuple[Planner, str | Conditioned]:
        """The question how many rows have each value, in each group."""
        groups = {} if by is None else grouping(by)
        name, planner = self._quoted(column), self._planner({}, groups | {column: choices})
        check_other(column, groups)
        return planner, query_of(selected(groups, name), where, grouped(groups, name))

    def _by_bin(self, column: str, where: str | None, bins: Bins, by: By | None) -> tuple[Planner, str | Conditioned]:
        """The question how many rows are in each bin, in each group."""
        groups = {} if by is None else grouping(by)
        planner, own = self._planner({}, groups, {column: bins.kind}), bins.expression(column)
        check_other(column, groups)
        return planner, query_of(selected(groups, own), where, grouped(groups, own), own=f"{own} IS NOT NULL")

    def _rows(
        self,
        where: str | None,
        between: Mapping[str, Any],
        choices: Mapping[str, Any],
        epsilon: Number,
        delta: Number,
        value: str | None = None,
        old_select: str = "COUNT(*) AS n",
        types: Mapping[str, Type] | None = None,
    ) -> TableRows:
        """The rows within bounds. `value` is one number per row, and `old_select` is what version 0.1 selected."""
        planner = self._planner(between, choices, types)
        plan = planner.rows(query_of("*", where), epsilon=epsilon, delta=delta, value=value)
        return TableRows(planner, plan, where, text_of(query_of(old_select, where)))

    def _planner(
        self, between: Mapping[str, Any], choices: Mapping[str, Any], types: Mapping[str, Type] | None = None
    ) -> Planner:
        """A planner for the table, with what is declared for this method only."""
        listed = {name: None if given is None else list_choices(given, name) for name, given in choices.items()}
        columns = dict(self.table.columns)
        for name, kind in (types or {}).items():
            if name in columns and not self._has_type(columns[name]):
                columns[name] = replace(columns[name], type=kind)
        for name in (*between, *listed):
            self._column(name)
            columns[name] = self._typed(columns[name], between.get(name), listed.get(name))
        for name, ends in between.items():
            columns[name] = replace(columns[name], between=ends)
        for name, given in listed.items():
            kind = columns[name].type
            if given is not None and kind != "other":  # an unsupported type gets its own error
                given = tuple(validate_choice(value, kind, name) for value in given)
            columns[name] = replace(columns[name], choices=given)
        engine = self.engine.typed(NAME, {name: column.type for name, column in columns.items()})
        schema = Schema(unit=self.ledger.protects, tables={NAME: replace(self.table, columns=columns)})
        bounds = (self.table.rows_per_person, self.table.groups_per_person, self.table.rows_per_group)
        declared = repr((bounds, [(c.name, c.between, c.choices, c.type) for _, c in sorted(columns.items())]))
        return Planner(schema, engine, self.ledger, policy=declared, opening=self.opening)

    def _column(self, name: Any) -> Column:
        """A column of the table, by its name."""
        known = self.table.columns
        if not isinstance(name, str):
            raise InvalidArgument(f"A column must be named by text, such as {next(iter(known))!r}.", code="wrong-type")
        if name not in known:
            raise InvalidArgument(f"Unknown column {name}. Known: {', '.join(known)}.", code="unknown-column")
        return known[name]

    def _quoted(self, column: Any) -> str:
        """A column of the table, as SQL writes it."""
        return quote(self._column(column).name)

    def _quoted_number(self, column: Any, between: Any) -> str:
        """The same for a column of numbers."""
        self._kind(column, between)
        return self._quoted(column)

    def _kind(self, column: str, between: Any) -> Type:
        """The type of a column of numbers or dates. In a text file it follows from the given range."""
        known = self._column(column)
        if between is None and not self._has_type(known):
            raise InvalidArgument(
                f"{column} has no type in its source, and is read as text. Declare the type, with "
                f'types={{"{column}": "number"}} in dp.table, or give between=.',
                code="untyped-column",
            )
        return self._typed(known, between, None).type

    def _typed(self, column: Column, between: Any, choices: Any) -> Column:
        kind = implied_type(between, choices)
        return column if kind == "other" or self._has_type(column) else replace(column, type=kind)

    def _has_type(self, column: Column) -> bool:
        """Whether a column has a type: a declared one, or its own."""
        return column.declared or column.name == self.table.person or not self.engine.reads_text(NAME, column.name)


def _show(line: str) -> None:
    """Show progress to a person who watches."""
    if sys.stderr.isatty():
        print(line, file=sys.stderr, flush=True)
