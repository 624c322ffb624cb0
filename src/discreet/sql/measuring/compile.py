"""From a plan to the engine's SQL: exact aggregates of each group, after bounding what one person can contribute.

If a person is in too many groups, some are dropped at random. If a person has too many rows in a group, their sum is
scaled down to the expected value of a random choice, so no row needs a rank. Both depend on that person's rows only.
"""

from __future__ import annotations

import copy
import datetime
from collections.abc import Iterable, Sequence
from typing import Any, Self

from discreet.engines.dialect import ALL_ROWS, ROWS_OF_ONE, Dialect
from discreet.engines.engine import Engine
from discreet.sql.expressions import Expr, has_number
from discreet.sql.measuring.rows import rows_of, safe
from discreet.sql.question import OPEN, Bounds, Measure, Question


class Statement:
    """The statements that compute the measures of a question. `prepared` is a relation with its prepared rows, if they
    are known.
    """

    def __init__(
        self, question: Question, engine: Engine, bounds: Bounds | None, seed: int, prepared: str | None = None
    ) -> None:
        self.question, self.bounds, self.seed = question, bounds, seed
        self.dialect = engine.dialect
        self.keys = [f"k{n}" for n in range(len(question.keys))]
        self.steps: list[tuple[str, str]] = [("source", rows_of(question.relation, engine))]
        self.flags = Named("w")
        self.numbers = Named("x")
        self.values_of = Named("v")
        self._prepare()
        self.rows_prepared = f"WITH {self.dialect.steps(self.steps)} SELECT * FROM prepared"
        if prepared is not None:
            self.steps = [("prepared", f"SELECT * FROM {prepared}")]
        self._declare()

    def copied(self) -> Self:
        """The same, for another statement."""
        other = copy.copy(self)
        other.steps = list(self.steps)
        return other

    def _prepare(self) -> None:
        """Each row with its person, its keys, and what each measure is computed from."""
        question, person = self.question, self.question.relation.person
        keys = zip(self.keys, question.keys, strict=True)
        columns = [
            f"{self.dialect.group_key(safe(key.expr, self.dialect), key.expr.type)} AS {name}" for name, key in keys
        ]
        if person is not None:
            columns.append(f"{self.dialect.quote(person.id)} AS person")
        values = [self._value(measure) for measure in question.measures]
        # if a row only has to have a value, the value itself is the flag
        self.plain = {m.where: v for m, v in zip(question.measures, values, strict=True) if is_plain(m)}
        self.parts = [(self._flag(m), v) for m, v in zip(question.measures, values, strict=True)]
        columns += [*self.flags.columns(), *self.numbers.columns()]
        self.steps.append(("prepared", f"SELECT {', '.join(columns) or '1 AS one'} FROM source"))

    def _declare(self) -> None:
        """Each row with what it adds to each measure. Only rows of declared groups."""
        question, person = self.question, self.question.relation.person
        named = zip(self.keys, question.keys, strict=True)
        conditions = [_member(name, key.domain, self.dialect) for name, key in named if key.domain]
        if question.shown is not None and len(question.keys) > 1 and len(question.shown) <= MOST_WRITTEN:
            conditions.append(self._is_shown(question.shown))
        if person is not None:
            conditions.append("person IS NOT NULL")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        whose = [*self.keys, *(["person"] if person is not None else []), *self.flags.names.values()]
        columns = [*whose, *self.values_of.columns()]
        self.steps.append(("declared", f"SELECT {', '.join(columns) or '1 AS one'} FROM prepared{where}"))
        self.columns = [*whose, *self.values_of.names.values()]
        self.rows = "declared"

    def _is_shown(self, shown: Sequence[tuple[Any, ...]]) -> str:
        """Whether the keys of a row are those of a group that is shown. NULL is written as a flag and a default."""
        kinds = [key.expr.type for key in self.question.keys]
        literal = self.dialect.literal
        columns = [
            part
            for name, kind in zip(self.keys, kinds, strict=True)
            for part in (f"({name} IS NULL)", f"coalesce({name}, {literal(_DEFAULTS[kind])})")
        ]
        rows = [
            ", ".join(
                f"{literal(value is None)}, {literal(_DEFAULTS[kind] if value is None else value)}"
                for value, kind in zip(key, kinds, strict=True)
            )
            for key in shown
        ]
        names = ", ".join(f"g{place}" for place in range(len(columns)))
        listed = ", ".join(f"({row})" for row in rows)
        return f"({', '.join(columns)}) IN (SELECT {names} FROM (VALUES {listed}) AS shown({names}))"

    def _flag(self, measure: Measure) -> str:
        """The column that says which rows count, by being true or not NULL. Empty if all rows count."""
        if measure.where is None:
            return ""
        return self.plain.get(measure.where) or self.flags.name(f"coalesce({safe(measure.where, self.dialect)}, FALSE)")

    def _value(self, measure: Measure) -> str:
        if measure.value is None:
            return ""
        value = safe(measure.value, self.dialect)
        if measure.kind == "distinct":
            return self.values_of.name(self.numbers.name(self.dialect.canonical(value, measure.value.type)))
        shift = shift_of(measure)
        center = measure.center - shift * measure.step
        number = self.numbers.name(self.dialect.distance(value, center, measure.value.type))
        ends = measure.lowest + shift, measure.highest + shift
        return self.values_of.name(self.dialect.clamped_steps(number, measure.step, *ends))

    def _query(self, last: str) -> str:
        return f"WITH {self.dialect.steps(self.steps)} {last}"

    def _grouped(self, columns: Iterable[str], source: str, keys: list[str]) -> str:
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        return f"SELECT {', '.join([*keys, *columns])} FROM {source}{group}"

    # --- sums and counts ----------------------------------------------------------------------------------

    def additive(self) -> str:
        """One row for each group, with one column for each measure that is a sum."""
        if self.bounds is not None:
            self._bound_rows()
        pairs, totals, shown = Named("p"), Named("t"), list(self.keys)
        for number, measure in enumerate(self.question.measures):
            if measure.kind in ("count", "sum", "people"):
                total = totals.name(self._total(measure, *self.parts[number], pairs))
                if shift := shift_of(measure):
                    rows = totals.name(self._total(Measure("count"), *self.parts[number], pairs))
                    total = self.dialect.moved_sum(total, rows, -shift)
                shown.append(f"{total} AS m{number}")
        kept = self.rows
        if self.bounds is not None:
            self.steps.append(("pairs", self._grouped(pairs.columns(), self.rows, ["person", *self.keys])))
            kept = self._bounded_groups("pairs", ["person", *self.keys, *pairs.names.values()])
        self.steps.append(("totals", self._grouped(totals.columns(), kept, self.keys)))
        return self._query(f"SELECT {', '.join(shown)} FROM totals")

    def _total(self, measure: Measure, flag: str, value: str, pairs: Named) -> str:
        """The sum over the rows of a group, or over its pairs with a person, each with a bounded number of rows.

        Promise: a pair adds its rows, or `per_group` if they are more, times a value between the lowest and the
        highest; as both are whole, rounding a scaled sum towards 0 keeps it there, and so does moving it afterwards.
        """
        if self.bounds is None:
            return f"coalesce({self._summed(value, measure, flag)}, 0)" if measure.kind == "sum" else count_of(flag)
        count, most = pairs.name(count_of(flag)), self.bounds.per_group
        if measure.kind == "people":
            return f"count(*) FILTER (WHERE {count} > 0)"
        if measure.kind == "count":
            return f"coalesce({self.dialect.exact_sum(f'least({count}, {most})', most)}, 0)"
        summed = pairs.name(self._summed(value, measure, flag))
        scaled = self.dialect.scaled(summed, most, count, largest_of(measure))
        fitting = f"CASE WHEN {count} > {most} THEN {scaled} ELSE {summed} END"
        return f"coalesce({self.dialect.exact_sum(fitting, most * largest_of(measure))}, 0)"

    def _summed(self, value: str, measure: Measure, flag: str) -> str:
        term = value if measure.power == 1 else self.dialect.square(value)
        rows = ALL_ROWS if self.bounds is None else ROWS_OF_ONE
        return self.dialect.exact_sum(term, largest_of(measure), condition_of(flag), rows=rows)

    # --- bounds -------------------------------------------------------------------------------------------

    def _bound_rows(self) -> None:
        """Keep a bounded number of rows per person, chosen at random. Skipped if the bounds on groups already ensure
        it.
        """
        assert self.bounds is not None
        most = self.bounds.rows
        if not self.keys or self.bounds.groups * self.bounds.per_group <= most:
            return
        rank, columns = "row_number() OVER (PARTITION BY person ORDER BY draw)", ", ".join(self.columns)
        self.steps += [
            ("many_rows", f"SELECT person FROM declared GROUP BY person HAVING count(*) > {most}"),
            ("drawn", self.dialect.drawn(self.dialect.among("declared", "many_rows"), self.columns, self.seed)),
            ("ranked_rows", f"SELECT *, {rank} AS place FROM drawn"),
            (
                "bounded",
                f"SELECT {columns} FROM {self.dialect.apart('declared', 'many_rows')} UNION ALL "
                f"SELECT {columns} FROM ranked_rows WHERE place <= {most}",
            ),
        ]
        self.rows = "bounded"

    def _bounded_groups(self, pairs: str, columns: list[str]) -> str:
        """Pairs of person and group, with a bounded number of groups per person, chosen at random."""
        assert self.bounds is not None
        most = self.bounds.groups
        if not self.keys or (self.rows == "bounded" and most >= self.bounds.rows):
            return pairs
        rank, shown = self.dialect.random_rank("person", self.keys, self.seed), ", ".join(columns)
        if self.dialect.ranks_all:
            self.steps += [
                ("ranked_groups", f"SELECT *, {rank} AS place FROM {pairs}"),
                ("kept", f"SELECT {shown} FROM ranked_groups WHERE place <= {most}"),
            ]
            return "kept"
        self.steps += [
            ("many_groups", f"SELECT person FROM {pairs} GROUP BY person HAVING count(*) > {most}"),
            ("ranked_groups", f"SELECT *, {rank} AS place FROM {self.dialect.among(pairs, 'many_groups')}"),
            (
                "kept",
                f"SELECT {shown} FROM {self.dialect.apart(pairs, 'many_groups')} UNION ALL "
                f"SELECT {shown} FROM ranked_groups WHERE place <= {most}",
            ),
        ]
        return "kept"

    # --- values -------------------------------------------------------------------------------------------

    def values(self, number: int) -> str:
        """For a value that is chosen, or a count of distinct values: the values of each group, with their frequencies.
        Where a matching counts distinct values: those of each person.
        """
        measure, (flag, value) = self.question.measures[number], self.parts[number]
        where = _where(flag)
        if measure.kind == "distinct" and self.bounds is not None:
            if self.dialect.gathers:
                return self.supported(number)
            self._seen_values(number)
            few = f"few WHERE place <= {self.bounds.rows}"
            return self._query(self._grouped([f"count(DISTINCT value) AS m{number}"], few, self.keys))
        if self.bounds is None:
            self.steps.append(("few", f"SELECT {', '.join([*self.keys, f'{value} AS value'])} FROM declared{where}"))
        else:
            self._few_values(value, where)
        if measure.kind == "distinct":
            return self._query(self._grouped([f"count(DISTINCT value) AS m{number}"], "few", self.keys))
        return self._query(self._grouped([f"count(*) AS m{number}"], "few", [*self.keys, "value"]))

    # --- different values ---------------------------------------------------------------------------------

    def supported(self, number: int) -> str:
        """The different values of each person, each with a random `draw` that depends on no other person. A pair of
        group and value is one `item`. The matching bounds how many of them count.
        """
        self._seen_values(number)
        item = f"dense_rank() OVER (ORDER BY {', '.join([*self.keys, 'value'])}) AS item"
        return self._query(f"SELECT {', '.join([*self.keys, 'person', 'draw', item])} FROM few")

    def supports(self, number: int) -> str:
        """For each place in the orders of all people: how many values someone has there, and nobody earlier."""
        self._seen_values(number)
        self.steps.append(("first", self._grouped(["min(place) AS place"], "few", [*self.keys, "value"])))
        return self._query("SELECT place, count(*) AS n FROM first GROUP BY place")

    def _seen_values(self, number: int) -> None:
        """The different values of each person, each with a random `draw`, or at a random `place`, that depends on no
        other person; with a bounded number of groups and of values in each group, where they have bounds of their own.
        """
        flag, value = self.parts[number]
        whose, source, where = ["person", *self.keys], "declared AS one", _where(flag)
        bounds = self.bounds
        if self.keys and bounds is not None and bounds.groups < bounds.rows:
            self.steps.append(("pairs", f"SELECT DISTINCT {', '.join(whose)} FROM declared{where}"))
            source = self.dialect.paired("declared", self._bounded_groups("pairs", whose), whose)
        shown = ", ".join([*(f"one.{name} AS {name}" for name in whose), f"one.{value} AS value"])
        in_group = f"row_number() OVER (PARTITION BY {', '.join(whose)} ORDER BY draw) AS in_group"
        place = "row_number() OVER (PARTITION BY person ORDER BY draw) AS place"
        # values that could be taken instead stay, unless groups have a bound of their own
        bound = None if bounds is None or bounds.per_group >= bounds.rows else bounds.per_group
        few = "drawn_values" if bound is None else f"ranked WHERE in_group <= {bound}"
        self.steps += [
            ("seen", f"SELECT DISTINCT {shown} FROM {source}{where}"),
            ("drawn_values", self.dialect.drawn("seen", [*whose, "value"], self.seed)),
            *([] if bound is None else [("ranked", f"SELECT *, {in_group} FROM drawn_values")]),
            ("few", f"SELECT {'*' if self.dialect.gathers else f'*, {place}'} FROM {few}"),
        ]

    def _few_values(self, value: str, where: str) -> None:
        """The values, with a bounded number per person and group."""
        assert self.bounds is not None
        self._bound_rows()
        whose = ["person", *self.keys]
        source = f"{self.rows} AS one"
        if self.keys:
            self.steps.append(("pairs", f"SELECT DISTINCT {', '.join(whose)} FROM {self.rows}"))
            source = self.dialect.paired(self.rows, self._bounded_groups("pairs", whose), whose)
        shown = ", ".join([*(f"one.{name} AS {name}" for name in whose), f"one.{value} AS value"])
        rank = f"row_number() OVER (PARTITION BY {', '.join(whose)} ORDER BY draw)"
        self.steps += [
            ("seen", f"SELECT {shown} FROM {source}{where}"),
            ("drawn_values", self.dialect.drawn("seen", [*whose, "value"], self.seed)),
            ("ranked", f"SELECT *, {rank} AS place FROM drawn_values"),
            ("few", f"SELECT * FROM ranked WHERE place <= {self.bounds.per_group}"),
        ]


MOST_WRITTEN = 10_000
"""The most groups that are listed in a statement. Of more, rows of other groups are left out after they were read."""
_DEFAULTS: dict[str, Any] = {
    "integer": 0,
    "number": 0.0,
    "text": "",
    "boolean": False,
    "date": datetime.date(2000, 1, 1),
    "timestamp": datetime.datetime(2000, 1, 1),
}
"""A value of each type."""


class Named:
    """Expressions by name. Each is computed once, even if it is used several times."""

    def __init__(self, letter: str) -> None:
        self.letter = letter
        self.names: dict[str, str] = {}

    def name(self, text: str) -> str:
        return self.names.setdefault(text, f"{self.letter}{len(self.names)}")

    def columns(self) -> list[str]:
        return [f"{text} AS {name}" for text, name in self.names.items()]


def _has_value(measure: Measure) -> Expr | None:
    """The condition that a row has a value that can be added or ranked."""
    if measure.value is None or measure.kind not in ("sum", "quantile", "mode"):
        return None
    return has_number(measure.value)


def is_plain(measure: Measure) -> bool:
    """Whether all rows that have a value count."""
    return measure.where is not None and measure.where == _has_value(measure)


def shift_of(measure: Measure) -> int:
    """By how many steps per row a sum is moved afterwards, so that SUM and AVG add the same integers.

    Only if exactly the rows with a value count: a row that adds nothing must not be moved. Values without a range are
    always moved afterwards, by the number of rows that count, as their center is found from the same sums.
    """
    shift = measure.center / measure.step
    movable = measure.kind == "sum" and measure.power == 1 and (is_plain(measure) or measure.is_open)
    near = abs(shift) < (OPEN if measure.is_open else _FARTHEST)
    return int(shift) if movable and shift.denominator == 1 and near else 0


_FARTHEST = 2**40
"""Whole numbers of steps are exact as DOUBLE up to 2^53; a center farther away is taken off before rounding."""


def largest_of(measure: Measure) -> int:
    """The largest absolute value that one row may add."""
    shift = shift_of(measure)
    farthest = max(abs(measure.lowest + shift), abs(measure.highest + shift))
    return int(farthest**measure.power)


_TOGETHER = 100
"""So many numbers are added without parentheses."""


def added(parts: Sequence[str]) -> str:
    """The sum of these parts. Of many, in parentheses: an engine reads only so many additions one in another."""
    if len(parts) <= _TOGETHER:
        return " + ".join(parts)
    return added([f"({added(parts[place : place + _TOGETHER])})" for place in range(0, len(parts), _TOGETHER)])


def condition_of(flag: str) -> str:
    """The rows to which a sum is restricted. NULL values add nothing anyway."""
    return flag if flag.startswith("w") else ""


def _where(flag: str) -> str:
    """The rows that count, as a clause."""
    return f" WHERE {flag}{' IS NOT NULL' if flag.startswith('v') else ''}" if flag else ""


def count_of(flag: str) -> str:
    where = condition_of(flag)
    return f"count({flag})" if flag.startswith("v") else f"count(*) FILTER (WHERE {where})" if where else "count(*)"


def _member(name: str, domain: tuple[Any, ...], dialect: Dialect) -> str:
    """Whether a key has a declared value."""
    known = [value for value in domain if value is not None]
    null = f"{name} IS NULL" if len(known) < len(domain) else ""
    whole = all(type(value) is int for value in known) and len(known) > 2
    if whole and len(known) == max(known) - min(known) + 1:
        inside = f"{name} BETWEEN {min(known)} AND {max(known)}"
    else:
        inside = f"{name} IN ({', '.join(map(dialect.literal, known))})" if known else ""
    return f"({' OR '.join(part for part in (inside, null) if part)})"
