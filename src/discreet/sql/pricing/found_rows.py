"""How many rows of one person are used where nobody declares it, and rows are chosen rather than added: quantiles,
distinct values, densities, synthetic tables and model fits.

Two searches find the most rows in one group, and the most groups, that all but a few people have. A person with more
keeps as many as that, chosen at random. If only different values are counted, one choice finds how many of them a
person may support: usually few, as most values have many people.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.engines.dialect import ROWS_OF_ONE
from discreet.engines.engine import Engine
from discreet.exact.randomness import random_integer
from discreet.exact.rational import Number, exactly, significant
from discreet.guarantees.guarantee import Pure
from discreet.guarantees.unit import Unit
from discreet.mechanisms.protocol import tidy
from discreet.mechanisms.selection.person_limits import PersonLimits, thirds_of_octaves
from discreet.mechanisms.selection.support_limit import SupportLimit
from discreet.queries.sensitivity import Sensitivity
from discreet.sql.measuring.compile import Statement
from discreet.sql.measuring.support import Support
from discreet.sql.pricing.automatic_bounds import AutomaticBound
from discreet.sql.question import Bounds, Measure, Question
from discreet.sql.reading.values.domains import domain_of

ROWS_FOUND, VALUES_FOUND = "how many rows of one person are used", "how many values of one person are counted"
"""What is found, in words."""
UNLIKELY, HALF = Fraction(3), Fraction(7, 10)
"""About ln 20 and ln 2: of limits that gain nothing, a coin of a large one comes up once in 20 times, and half as often
for each further limit."""
MOST_VALUES = 2**20
"""Nobody supports more values: with more, noise would be larger than any count that it hides."""
PEOPLE = 100
"""About so many people for each group, over the ε of the release, may have more rows than are used. With fewer, the
noise of a CDF is larger than what is lost; with ten times as many, more is lost if frequent people differ from others.
"""


def wants_rows(question: Question, rows: int | None) -> bool:
    """Whether the rows of one person must be found: nobody says how many, and some of them are chosen."""
    return rows is None and any(not measure.is_added for measure in question.measures)


def rows_bound(
    question: Question, unit: Unit, groups: int, asked: Mapping[str, int], epsilon: Fraction, left: Number
) -> AutomaticBound:
    """How the bounds on the rows of one person are found, for `epsilon`. `asked` has caps on groups and rows in each,
    if any, and `left` is the ε of what is released then.
    """
    most = [ROWS_OF_ONE, groups][: 2 if question.keys else 1]
    limits = [thirds_of_octaves(1, last) for last in most]
    moved = Sensitivity(1, "Linf", unit, monotone=True)
    search = PersonLimits.for_guarantee(
        Pure(epsilon=epsilon), limits=limits, people=PEOPLE * groups / exactly(left), sensitivity=moved
    )

    def read(engine: Engine) -> Any:
        found = engine.table(_Counted(question, engine).per_person())
        return [np.asarray(found.column(f"n{n}").to_numpy(zero_copy_only=False), np.int64) for n in range(len(limits))]

    def value(found: Any) -> Bounds:
        in_group, number = (int(found[0]), int(found[1])) if len(limits) > 1 else (int(found[0]), 1)
        in_group = min(in_group, asked.get("rows_per_group", in_group))
        number = min(number, asked.get("groups_per_person", number))
        return Bounds(in_group * number, number, in_group)

    return AutomaticBound(ROWS_FOUND, question.relation, read, search, moved, value, question)


def counts_values_only(question: Question) -> bool:
    """Whether all that is chosen of a person's rows are different values."""
    return all(measure.is_added or measure.kind == "distinct" for measure in question.measures)


def support_bound(
    question: Question, unit: Unit, groups: int, asked: Mapping[str, int], epsilon: Fraction, left: Number
) -> AutomaticBound:
    """How the number of different values is found that one person supports, over all groups. `asked` and `left` as
    above.
    """
    counted = [number for number, measure in enumerate(question.measures) if measure.kind == "distinct"]
    limits = thirds_of_octaves(1, _most_values(question, counted, groups))
    moved = Sensitivity(len(counted), "Linf", unit, monotone=unit.neighbors == "add_or_remove")
    goal = Pure(epsilon=epsilon)
    sharp = SupportLimit.for_guarantee(goal, limits=limits, penalty=0, sensitivity=moved)
    # what noise adds to the errors of all groups, and so much that far limits which gain nothing are hardly ever chosen
    noise, once = groups * len(counted) ** 2 / exactly(left), 1 / exactly(sharp.rate)
    penalty, step = (tidy(significant(number, up=True)) for number in (noise + UNLIKELY * once, HALF * once))
    search = replace(sharp, penalty=penalty, step=step)

    def read(engine: Engine) -> Any:
        found = np.zeros(len(limits), dtype=np.int64)
        for number in counted:
            statement = Statement(question, engine, None, random_integer(62))
            if engine.dialect.gathers:
                found += Support.of(engine.table(statement.supported(number))).counts(limits)
                continue
            for place, values in engine.rows(statement.supports(number)):
                found[np.searchsorted(limits, place) :] += values
        return found

    def value(found: Any) -> Bounds:
        most = int(found)
        in_groups = min(most, asked.get("groups_per_person", most)) if question.keys else 1
        return Bounds(most, in_groups, min(most, asked.get("rows_per_group", most)))

    return AutomaticBound(VALUES_FOUND, question.relation, read, search, moved, value, question)


def _most_values(question: Question, counted: list[int], groups: int) -> int:
    """The largest number of values that one person can support, if the values are declared."""
    domains = [domain_of(value) for n in counted if (value := question.measures[n].value) is not None]
    return min(MOST_VALUES, groups * max((MOST_VALUES if one is None else len(one) for one in domains), default=1))


class _Counted(Statement):
    """The rows of each person."""

    def __init__(self, question: Question, engine: Engine) -> None:
        super().__init__(replace(question, measures=(Measure("count"),), aggregates=(), outputs=()), engine, None, 0)

    def per_person(self) -> str:
        """For each person, the largest number of rows in a group, and the number of groups."""
        self.steps.append(("pairs", self._grouped(["count(*) AS n"], self.rows, ["person", *self.keys])))
        shown = ["max(n) AS n0", *(["count(*) AS n1"] if self.keys else [])]
        return self._query(f"SELECT {', '.join(shown)} FROM pairs GROUP BY person")
