"""Clipped people: the statements that compute each person's totals, and the exact sums over people after each is scaled
down to the limit.

Only integers decide: a person's steps, their sum without signs, and a quotient that is rounded towards 0. All of it is
computed from the rows of that person alone, so neither their order nor another person changes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow.compute as pc

from discreet.engines.dialect import ALL_ROWS, ROWS_OF_ONE
from discreet.engines.engine import Engine
from discreet.ledger.texts.exact import digest, exact_texts
from discreet.sql.measuring.compile import Named, Statement, added, condition_of, count_of, largest_of, shift_of
from discreet.sql.measuring.groups import Groups
from discreet.sql.measuring.measure import keys_of, place_numbers
from discreet.sql.pricing.clipping import LARGEST, Clip, Clipping
from discreet.sql.question import OPEN, Measure, Question

KEPT, CUT, LOST = range(3)
"""The sorts of rows that `People.clipped` computes."""


class People(Statement):
    """The totals of each person in each group, and what is computed from them. If single rows are protected, each row
    counts as a person. `pairs` and `people` name results that the engine holds.
    """

    def __init__(
        self,
        question: Question,
        engine: Engine,
        clipping: Clipping,
        pairs: str | None = None,
        people: str | None = None,
        *,
        prepared: str | None = None,
        number: int | None = None,
    ) -> None:
        basis = clipping.basis
        measured = {measure for measure in (*basis.measures, *basis.minus) if measure is not None}
        texts = exact_texts((measure.kind, measure.value, measure.where) for measure in measured)
        ordered = [measure for _, measure in sorted(zip(texts, measured, strict=True), key=lambda one: one[0])]
        self.place_of = {measure: place for place, measure in enumerate(ordered)}
        super().__init__(replace(question, measures=tuple(ordered)), engine, None, 0, prepared)
        self.clipping = clipping
        self.number = number or len(basis.measures)
        self.owned = question.relation.person is not None
        self.whose = ["person", *self.keys] if self.owned else self.keys
        self.most = OPEN // self.number  # all totals of a pair together fit 64 bits
        self.sums = _Columns("s")
        self.totals = [self._total_of(*one) for one in zip(basis.measures, basis.minus, strict=True)]
        group = f" GROUP BY {', '.join(self.whose)}" if self.owned else ""
        self.steps.append(("pairs", f"SELECT {', '.join([*self.whose, *self.sums.columns()])} FROM {self.rows}{group}"))
        if pairs is not None:
            self.steps = []
        self.totals_in, self.people = pairs or "pairs", people

    def _query(self, last: str) -> str:
        return super()._query(last) if self.steps else last

    def _total_of(self, measure: Measure, minus: Measure | None) -> str:
        """A total of one person in one group, as an integer of 64 bits."""
        flag, value = self.parts[self.place_of[measure]]
        count = self._counted(flag)
        if minus is not None:
            other = self._counted(self.parts[self.place_of[minus]][0])
            return f"({count} - {other})"
        if measure.kind == "people":
            return f"(CASE WHEN {count} > 0 THEN 1 ELSE 0 END)"
        if measure.kind == "count":
            return count
        term = value if measure.power == 1 else self.dialect.square(value)
        if self.owned:
            total = self.dialect.exact_sum(term, largest_of(measure), condition_of(flag), rows=ROWS_OF_ONE)
        else:
            total = f"CASE WHEN {flag} THEN {term} END" if condition_of(flag) else term
        fits = largest_of(measure) * ROWS_OF_ONE < OPEN
        # NULL must become 0 first: the ends of a range are taken for it otherwise
        total = self.sums.name(self.dialect.whole(f"coalesce({total}, 0)", None if fits else OPEN))
        shift = shift_of(measure)
        if abs(shift) * ALL_ROWS < OPEN:
            total = f"({total} - {shift} * {count})" if shift else total
        else:
            total = self.dialect.moved_sum(total, count, -shift)
        return self.dialect.whole(total, self.most)

    def _counted(self, flag: str) -> str:
        """The number of a person's rows in a group that count, by name."""
        if self.owned:
            return self.sums.name(count_of(flag))
        if not flag:
            return self.sums.name("1")
        is_true = flag if condition_of(flag) else f"{flag} IS NOT NULL"
        return self.sums.name(f"CASE WHEN {is_true} THEN 1 ELSE 0 END")

    def pairs(self) -> str:
        """The sums of each person in each group."""
        return self._query("SELECT * FROM pairs")

    def means(self, numbers: Sequence[Measure]) -> str:
        """For each person with values, and for each of these sums about no center: the sum over all groups, and the
        number of values.
        """
        shown: list[str] = []
        for measure in numbers:
            flag, _ = self.parts[self.place_of[measure]]
            parts = self._total_of(measure, None), self._counted(flag)
            shown += [self._over_groups(part, OPEN) for part in parts] if self.owned else parts
        named = [f"{part} AS n{place}" for place, part in enumerate(shown)]
        group = " GROUP BY person" if self.owned else ""
        return self._query(f"SELECT {', '.join(named)} FROM {self.totals_in}{group}")

    def _over_groups(self, total: str, largest: int) -> str:
        return self.dialect.whole(self.dialect.exact_sum(total, largest, rows=ROWS_OF_ONE), OPEN)

    def norms(self) -> str:
        """For each person and each kind of number, the total over all groups, without signs."""
        return self._query(self._norms(named=True))

    def _norms(self, *, named: bool) -> str:
        shown = []
        for kind in range(len(self.clipping.limits)):
            kinds = zip(self.totals, self.clipping.basis.kinds, strict=True)
            total = added([f"abs({total})" for total, own in kinds if own == kind])
            shown.append(f"{self._over_groups(total, OPEN) if self.owned else total} AS n{kind}")
        if not self.owned:
            return f"SELECT {', '.join(shown)} FROM {self.totals_in}"
        return f"SELECT {', '.join([*(['person'] if named else []), *shown])} FROM {self.totals_in} GROUP BY person"

    def clipped(self, clip: Clip) -> str:
        """Rows of three sorts, by their first column. KEPT: for each group, the sums over all people, as if nobody were
        above the limit. CUT: what is to be taken off for those who are. LOST: the sums over them of `clip.above` steps,
        or of a part of these, divided among the kinds of numbers as their totals are.

        Promise: of a person whose steps have the norm S > limit, each number n becomes n·limit/S, rounded towards 0, so
        that their norm is at most the limit. In L2, S is rounded up, and its square is compared: if it were too small,
        the person would count as nobody.
        """
        steps = self._add_cells("cells", clip, self.totals_in)
        size, squares = self._size_and_squares(steps)
        if self.owned:
            near = self._near(clip)
            norms = f"SELECT person, {size} AS size, {squares} AS squares FROM {near} GROUP BY person"
            self.steps += [
                ("norms", norms if clip.norm == "L2" else norms.replace(f", {squares} AS squares", "")),
                ("above", f"SELECT person, size, {self._root(clip)} AS root FROM norms WHERE {_is_above(clip)}"),
                ("cut", f"SELECT {', '.join([*self.whose, *steps])}, size, root FROM {near} JOIN above USING (person)"),
            ]
        else:
            self.steps += [
                ("norms", f"SELECT *, {size} AS size, {squares} AS squares FROM cells"),
                ("cut", f"SELECT *, {self._root(clip)} AS root FROM norms WHERE {_is_above(clip)}"),
            ]
        scaled = [self.dialect.whole(self.dialect.scaled(step, clip.limit, "root", LARGEST), None) for step in steps]
        taken = [f"{step} - coalesce({part}, 0)" for step, part in zip(steps, scaled, strict=True)]
        parts = self._summed_by_group(KEPT, steps, "cells"), self._summed_by_group(CUT, taken, "cut")
        return self._query(" UNION ALL ".join([*parts, self._lost(clip, steps)]))

    def _summed_by_group(self, sort: int, values: Sequence[str], source: str) -> str:
        sums = [f"coalesce({self.dialect.exact_sum(value, LARGEST)}, 0)" for value in values]
        group = f" GROUP BY {', '.join(self.keys)}" if self.keys else ""
        return f"SELECT {', '.join([str(sort), *self.keys, *sums])} FROM {source}{group}"

    def roots(self, clip: Clip) -> str:
        """For each person, the root of the sum of squares of all steps: exact integers, rounded at the end."""
        _, squares = self._size_and_squares(self._add_cells("cells", clip, self.totals_in))
        group = " GROUP BY person" if self.owned else ""
        return self._query(f"SELECT {self.dialect.root(squares)} AS n0 FROM cells{group}")

    def _add_cells(self, name: str, clip: Clip, source: str) -> list[str]:
        """The steps of each person in each group, and their names."""
        cells = [f"{self._in_steps(total, n, clip)} AS a{n}" for n, total in enumerate(self.totals)]
        self.steps.append((name, f"SELECT {', '.join([*self.whose, *cells])} FROM {source}"))
        return [f"a{place}" for place in range(len(self.totals))]

    def _size_and_squares(self, steps: Sequence[str]) -> tuple[str, str]:
        """The sum of a person's steps without signs, and the sum of their squares."""
        size = added([f"abs({step})" for step in steps])
        squares = f"({added([self.dialect.exact_square(step) for step in steps])})"
        if not self.owned:
            return size, squares
        sums = (size, LARGEST * self.number), (squares, LARGEST**2 * self.number)
        return tuple(self.dialect.exact_sum(one, largest, rows=ROWS_OF_ONE) for one, largest in sums)  # type: ignore[return-value]

    def _root(self, clip: Clip) -> str:
        return "size" if clip.norm == "L1" else self.dialect.root_above("squares")

    def _near(self, clip: Clip) -> str:
        """The name of the cells of people who may be above the limit.

        Promise: the totals of a kind over all groups, without signs, have at least as many steps as the cells together,
        as each is rounded down. And the root of a sum of squares is at most the sum.
        """
        if self.people is None:
            return "cells"
        firsts = [self.clipping.basis.kinds.index(kind) for kind in range(len(self.clipping.limits))]
        bound = " + ".join(self._in_steps(f"n{kind}", place, clip) for kind, place in enumerate(firsts))
        self.steps.append(("near", f"SELECT person FROM {self.people} WHERE {bound} > {clip.limit}"))
        self._add_cells("near_cells", clip, self.dialect.among(self.totals_in, "near"))
        return "near_cells"

    def _in_steps(self, total: str, number: int, clip: Clip) -> str:
        """A total as a number of steps. What is beyond the largest number is left out."""
        shift, factor = clip.shifts[number], clip.factors[number]
        most = LARGEST // factor
        if shift < 0:
            return f"{self.dialect.whole(self.dialect.shortened(total, -shift), most)} * {factor}"
        return f"{self.dialect.whole(total, most >> shift)} * {factor << shift}"

    def _lost(self, clip: Clip, steps: Sequence[str]) -> str:
        """What measures the loss. A person of all steps S and norm N loses S·(N − limit)/N, and adds that part of
        `clip.above` which this is of `clip.most_lost` limits, if there are any.

        Promise: a person adds at most `clip.above`: all totals are S, and they are divided by S or more.
        """
        kinds = range(len(self.clipping.limits))
        own = [[s for s, of in zip(steps, self.clipping.basis.kinds, strict=True) if of == kind] for kind in kinds]
        totals = [added([f"abs({step})" for step in listed]) for listed in own]
        if self.owned:
            totals = [self.dialect.exact_sum(total, LARGEST * self.number, rows=ROWS_OF_ONE) for total in totals]
        named = ", ".join(f"{total} AS n{kind}" for kind, total in enumerate(totals))
        size = "size"
        if clip.most_lost:
            most, norm = clip.most_lost * clip.limit, "size" if clip.norm == "L1" else "root"
            squares = most * clip.limit  # as one number: an engine might multiply in 64 bits
            beyond = self.dialect.scaled(str(squares), 1, f"({norm} - {clip.limit})", squares)
            size = f"greatest(size, {beyond} + {most + 1})"
        source = f"SELECT {named}, max({size}) AS size FROM cut GROUP BY person"
        if not self.owned:
            source = f"SELECT {named}, {size} AS size FROM cut"
        parts = [self.dialect.whole(self.dialect.scaled(f"n{kind}", clip.above, "size", OPEN), None) for kind in kinds]
        sums = [f"coalesce({self.dialect.exact_sum(part, LARGEST)}, 0)" for part in parts]
        sums += ["0"] * (len(steps) - len(sums))
        return f"SELECT {', '.join([str(LOST), *['NULL'] * len(self.keys), *sums])} FROM ({source}) AS one"


class _Columns(Named):
    """Expressions that are named by what they say, and listed by name: two questions with the same sums have the same
    columns.
    """

    def name(self, text: str) -> str:
        return self.names.setdefault(text, f"{self.letter}{digest(text)[:12]}")

    def columns(self) -> list[str]:
        return sorted(super().columns(), key=lambda column: column.rpartition(" AS ")[2])


class Pairs:
    """The totals of each person in each group of one question, computed when they are first needed, and held from one
    statement to the next by an engine that can.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._held: dict[str, str | None] = {}
        self._people: tuple[Question, Clipping, str | None] | None = None

    def statements(self, question: Question, clipping: Clipping) -> People:
        """The statements on these totals."""
        pairs = self._hold(People(question, self.engine, clipping).pairs())
        same = self._people is not None and self._people[:2] == (question, clipping)
        return People(question, self.engine, clipping, pairs, self._people[2] if same and self._people else None)

    def hold_people(self, question: Question, clipping: Clipping, statement: str) -> str | None:
        """Hold the totals of each person by kind."""
        self._people = question, clipping, self._hold(statement)
        return self._people[2]

    def _hold(self, statement: str) -> str | None:
        """The name of a result that is held. The same statement is computed once."""
        if statement not in self._held:
            self._held[statement] = self.engine.hold(statement)
        return self._held[statement]

    def close(self) -> None:
        """Forget them."""
        for name in self._held.values():
            if name is not None:
                self.engine.forget(name)


@contextmanager
def holding(engine: Engine) -> Iterator[Pairs]:
    """Totals that are forgotten at the end."""
    pairs = Pairs(engine)
    try:
        yield pairs
    finally:
        pairs.close()


def read_means(pairs: Pairs, question: Question, clipping: Clipping, measure: Measure) -> Any:
    """The mean of each person's values, in steps."""
    found = pairs.engine.table(pairs.statements(question, clipping).means([measure]))
    totals, counts = (_integers(found.column(f"n{place}")) for place in range(2))
    return totals[counts > 0] / counts[counts > 0]


def read_norms(pairs: Pairs, question: Question, clipping: Clipping) -> list[Any]:
    """For each kind of number, the totals of all people, without signs."""
    statements, kinds = pairs.statements(question, clipping), range(len(clipping.limits))
    text = statements.norms()
    if statements.owned and (held := pairs.hold_people(question, clipping, text)) is not None:
        text = f"SELECT {', '.join(f'n{kind}' for kind in kinds)} FROM {held}"
    found = pairs.engine.table(text)
    return [_integers(found.column(f"n{kind}")) for kind in kinds]


def read_roots(pairs: Pairs, question: Question, clipping: Clipping, clip: Clip) -> list[Any]:
    """For each person, the root of the sum of squares of all steps."""
    found = pairs.engine.table(pairs.statements(question, clipping).roots(clip))
    return [np.asarray(found.column("n0").to_numpy(zero_copy_only=False), np.float64)]


def _is_above(clip: Clip) -> str:
    return f"size > {clip.limit}" if clip.norm == "L1" else f"squares > {clip.limit**2}"


def read_clipped(pairs: Pairs, question: Question, clipping: Clipping, clip: Clip, groups: Groups) -> tuple[Any, ...]:
    """The sums of clipped people in each group, one array for each number of the basis, and then what measures the loss
    of each kind.
    """
    table = pairs.engine.table(pairs.statements(question, clipping).clipped(clip))
    sorts, width = table.column(0), len(question.keys)
    kept, cut, lost = (table.filter(pc.equal(sorts, sort)).remove_column(0) for sort in (KEPT, CUT, LOST))
    sums = (place_numbers(keys_of(question, part), part.columns[width:], groups) for part in (kept, cut))
    above = [int(column[0].as_py()) for column in lost.columns[width:][: len(clipping.limits)]]
    return *map(np.subtract, *sums), np.array(above, dtype=np.int64)


def _integers(column: Any) -> Any:
    """A column of integers as machine integers."""
    return np.asarray(column.combine_chunks().to_numpy(zero_copy_only=False)).astype(np.int64)


def unclipped(question: Question, clipping: Clipping, clip: Clip, noisy: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The noisy measures of a question in their own steps, and the numbers they are made of, in steps of the clip: one
    array for each number of the basis, and then what measures the loss.
    """
    numbers = [np.asarray(part, np.float64) for part in noisy[0]]
    others, found = iter(noisy[1:]), []
    for number, measure in enumerate(question.measures):
        if measure.is_added:
            made = clipping.basis.made_of[number]
            found.append(sum(numbers[place] * float(factor * clip.units[place]) for place, factor in made))
        else:
            found.append(next(others))
    return found, numbers
