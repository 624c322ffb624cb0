"""Clipped people: the statements that compute each person's totals, and the exact sums after every person is scaled down
to the limit.

Only integers decide: a person's steps, their sum without signs, and a quotient that is rounded towards 0. All of it is
computed from the rows of that person alone, so neither their order nor another person changes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.engines.dialect import ROWS_OF_ONE
from discreet.engines.engine import Engine
from discreet.sql.pricing.clipping import LARGEST, Clip, Clipping
from discreet.sql.question import OPEN, Measure, Question
from discreet.sql.running.compile import Named, Statement, condition_of, count_of, largest_of, shift_of
from discreet.sql.running.groups import Groups
from discreet.sql.running.measure import place_rows, require_computable


class People(Statement):
    """The totals of each person in each group, and what is computed from them. If single rows are protected, each row
    counts as a person.
    """

    def __init__(self, question: Question, engine: Engine, clipping: Clipping, held: str | None = None) -> None:
        super().__init__(replace(question, measures=clipping.basis.measures), engine, None, 0)
        self.clipping = clipping
        self.owned = question.relation.person is not None
        self.totals = [f"p{number}" for number in range(len(clipping.basis.measures))]
        self.most = OPEN // len(self.totals)  # all of them together fit 64 bits
        if held is None:
            self._add_pairs()
        else:
            self.steps = [("pairs", f"SELECT * FROM {held}")]

    def _add_pairs(self) -> None:
        """One row for each person and group, with the exact totals."""
        whose, sums = ["person", *self.keys] if self.owned else self.keys, Named("s")
        whole = [f"{self._of_pair(n, measure, sums)} AS p{n}" for n, measure in enumerate(self.question.measures)]
        group = f" GROUP BY {', '.join(whose)}" if self.owned else ""
        self.steps += [
            ("summed", f"SELECT {', '.join([*whose, *sums.columns()])} FROM {self.rows}{group}"),
            ("pairs", f"SELECT {', '.join([*whose, *whole])} FROM summed"),
        ]

    def _of_pair(self, number: int, measure: Measure, sums: Named) -> str:
        """A total of one person in one group, as an integer of 64 bits."""
        flag, value = self.parts[number]
        count = sums.name(count_of(flag) if self.owned else _counts_row(flag))
        if measure.kind == "people":
            return f"CASE WHEN {count} > 0 THEN 1 ELSE 0 END"
        if measure.kind == "count":
            return count
        added = value if measure.power == 1 else self.dialect.square(value)
        if self.owned:
            total = self.dialect.exact_sum(added, largest_of(measure), condition_of(flag), rows=ROWS_OF_ONE)
        else:
            total = f"CASE WHEN {flag} THEN {added} END" if condition_of(flag) else added
        total = f"coalesce({sums.name(total)}, 0)"
        if shift := shift_of(measure):
            total = self.dialect.moved_sum(total, count, -shift)
        return self.dialect.whole(total, self.most)

    def pairs(self) -> str:
        """The totals of each person in each group."""
        return self._query("SELECT * FROM pairs")

    def norms(self) -> str:
        """For each person and each kind of number, the total over all groups, without signs. No names are shown."""
        kinds = self.clipping.basis.kinds
        sums = []
        for kind in range(len(self.clipping.limits)):
            own = [f"abs({total})" for total, other in zip(self.totals, kinds, strict=True) if other == kind]
            if self.owned:
                own = [self.dialect.exact_sum(" + ".join(own), OPEN, rows=ROWS_OF_ONE)]
            sums.append(f"{self.dialect.whole(' + '.join(own), OPEN)} AS n{kind}")
        group = " GROUP BY person" if self.owned else ""
        return self._query(f"SELECT {', '.join(sums)} FROM pairs{group}")

    def clipped(self, clip: Clip) -> str:
        """For each group, the sums over clipped people, with 0 in the first column. Then one row with 1 there, and the
        sums over all people above the limit of `clip.above` steps, divided among the numbers as their totals are.

        Promise: of a person whose steps sum to S > limit without signs, each number n becomes n·limit/S, rounded
        towards 0, so that they sum to at most the limit.
        """
        steps = [f"a{number}" for number in range(len(self.totals))]
        whose = ["person", *self.keys] if self.owned else self.keys
        cells = [f"{self._in_steps(n, clip)} AS a{n}" for n in range(len(self.totals))]
        self.steps.append(("cells", f"SELECT {', '.join([*whose, *cells])} FROM pairs"))
        norm = " + ".join(f"abs({step})" for step in steps)
        if self.owned:
            total = self.dialect.exact_sum(norm, LARGEST * len(steps), rows=ROWS_OF_ONE)
            self.steps += [
                ("norms", f"SELECT person, {total} AS norm FROM cells GROUP BY person"),
                ("above", f"SELECT person, norm FROM norms WHERE norm > {clip.limit}"),
                ("joined", f"SELECT {', '.join([*self.keys, *steps])}, norm FROM cells LEFT JOIN above USING (person)"),
                ("cut", f"SELECT {', '.join(['person', *steps])}, norm FROM cells JOIN above USING (person)"),
            ]
        else:
            over = f"CASE WHEN {norm} > {clip.limit} THEN {norm} END AS norm"
            self.steps += [
                ("joined", f"SELECT {', '.join([*self.keys, *steps])}, {over} FROM cells"),
                ("cut", f"SELECT {', '.join(steps)}, norm FROM joined WHERE norm IS NOT NULL"),
            ]
        return self._query(f"{self._kept(clip, steps)} UNION ALL {self._lost(clip, steps)}")

    def _in_steps(self, number: int, clip: Clip) -> str:
        """A total as a number of steps, without the part that is beyond the largest."""
        shift, factor = clip.shifts[number], clip.factors[number]
        most = LARGEST // factor
        if shift < 0:
            return f"{self.dialect.whole(self.dialect.shortened(f'p{number}', -shift), most)} * {factor}"
        return f"{self.dialect.whole(f'p{number}', most >> shift)} * {factor << shift}"

    def _kept(self, clip: Clip, steps: Sequence[str]) -> str:
        def kept(step: str) -> str:
            scaled = self.dialect.whole(self.dialect.scaled(step, clip.limit, "norm", LARGEST), LARGEST)
            return self.dialect.exact_sum(f"CASE WHEN norm IS NULL THEN {step} ELSE {scaled} END", LARGEST)

        sums = [f"coalesce({kept(step)}, 0) AS m{n}" for n, step in enumerate(steps)]
        group = f" GROUP BY {', '.join(self.keys)}" if self.keys else ""
        return f"SELECT {', '.join(['0 AS lost', *self.keys, *sums])} FROM joined{group}"

    def _lost(self, clip: Clip, steps: Sequence[str]) -> str:
        if self.owned:
            each = [f"{self.dialect.exact_sum(f'abs({step})', LARGEST, rows=ROWS_OF_ONE)} AS {step}" for step in steps]
            source = f"(SELECT {', '.join(each)}, max(norm) AS norm FROM cut GROUP BY person) AS one"
        else:
            source = "(SELECT {}, norm FROM cut) AS one".format(", ".join(f"abs({s}) AS {s}" for s in steps))
        parts = [self.dialect.whole(self.dialect.scaled(s, clip.above, "norm", LARGEST), LARGEST) for s in steps]
        sums = [f"coalesce({self.dialect.exact_sum(part, LARGEST)}, 0)" for part in parts]
        return f"SELECT {', '.join(['1', *['NULL'] * len(self.keys), *sums])} FROM {source}"


def _counts_row(flag: str) -> str:
    """1 if a row counts, and 0 otherwise."""
    if not flag:
        return "1"
    return (
        f"CASE WHEN {flag} THEN 1 ELSE 0 END" if condition_of(flag) else f"CASE WHEN {flag} IS NULL THEN 0 ELSE 1 END"
    )


class Pairs:
    """The totals of each person in each group of one question, computed when they are first needed, and then held by an
    engine that can.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._held: str | None = None
        self._of: tuple[Question, Clipping] | None = None

    def people(self, question: Question, clipping: Clipping) -> People:
        """The statements on these totals."""
        if self._of is None:
            self._held = self.engine.hold(People(question, self.engine, clipping).pairs())
            self._of = question, clipping
        return People(question, self.engine, clipping, self._held)

    def close(self) -> None:
        """Forget them."""
        if self._held is not None:
            self.engine.forget(self._held)
        self._held = self._of = None


@contextmanager
def holding(engine: Engine) -> Iterator[Pairs]:
    """Totals that are forgotten at the end."""
    pairs = Pairs(engine)
    try:
        yield pairs
    finally:
        pairs.close()


def check_clippable(question: Question, engine: Engine, clipping: Clipping) -> None:
    """Refuse, before anything is charged, what the engine cannot compute for these types."""
    blank = engine.blank()
    people = (People(question, blank, clipping) for _ in range(2))
    require_computable(blank, [next(people).norms(), next(people).clipped(clipping.example())])


def read_norms(pairs: Pairs, question: Question, clipping: Clipping) -> list[Any]:
    """For each kind of number, the totals of all people, without signs."""
    found = pairs.engine.table(pairs.people(question, clipping).norms())
    return [_integers(found.column(f"n{kind}")) for kind in range(len(clipping.limits))]


def read_clipped(pairs: Pairs, question: Question, clipping: Clipping, clip: Clip, groups: Groups) -> tuple[Any, ...]:
    """The sums of clipped people in each group, one array for each number of the basis, and then what measures the loss
    to clipping.
    """
    rows = pairs.engine.rows(pairs.people(question, clipping).clipped(clip))
    kept = [row[1:] for row in rows if row[0] == 0]
    lost = next((row[1 + len(question.keys) :] for row in rows if row[0] == 1), (0,) * len(clipping.basis.measures))
    return *place_rows(kept, len(question.keys), len(lost), groups), np.array(
        [int(part) for part in lost], dtype=np.int64
    )


def _integers(column: Any) -> Any:
    """A column of integers as machine integers."""
    return np.asarray(column.combine_chunks().to_numpy(zero_copy_only=False)).astype(np.int64)


def unclipped(question: Question, clipping: Clipping, clip: Clip, noisy: Sequence[Any]) -> tuple[list[Any], Any]:
    """The noisy measures of a question in their own steps, and the numbers that measure what is lost, in steps of the
    clip.
    """
    (*cells, lost), *others = noisy[0], *noisy[1:]
    rest, found = iter(others), []
    for number, measure in enumerate(question.measures):
        if not measure.is_added:
            found.append(next(rest))
            continue
        made = clipping.basis.made_of[number]
        found.append(sum(np.asarray(cells[p], np.float64) * float(factor * clip.units[p]) for p, factor in made))
    return found, np.asarray(lost, np.float64)
