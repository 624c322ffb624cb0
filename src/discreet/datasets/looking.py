"""What the rows behind a policy are like: for the eyes of their owner only, because all of it is exact."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction

from discreet.datasets.connect import open_engine, schema_of
from discreet.datasets.people import columns_about_people
from discreet.datasets.policy import Policy
from discreet.engines.dialect import ROWS_OF_ONE
from discreet.engines.engine import Engine
from discreet.sql.schema import Column, Schema, Table

FEWEST = 100
"""Of fewer people, nobody is one in a hundred."""
MUCH_OF_ONE, MUCH_OF_FEW = 0.1, 0.2
"""One person, or 1% of the people, with more than this have a long tail: intervals then miss the truth too often
(`bench/sql/clipping.py`: 1% have 9% of a lognormal law with σ = 1, and 20% with σ = 1.5).
"""
_MORE = 1.2
"""With so much less in the hands of a few, a column's tail is that of the rows."""
_STEP, _MOST = Fraction(1, 2**10), 2**52
"""Values are added in these steps, and larger ones count as so many."""


@dataclass(frozen=True)
class Tail:
    """How much the people with the most have, as parts of what all have."""

    of_one: float
    of_few: float

    @property
    def words(self) -> str:
        """What is wrong with it. Empty if nothing is."""
        if self.of_one > MUCH_OF_ONE:
            return f"one person has {self.of_one:.0%}"
        return f"1% of the people have {self.of_few:.0%}" if self.of_few > MUCH_OF_FEW else ""


def look_at_rows(policy: Policy) -> Iterator[str]:
    """How many rows and people there are, what is missing, and what a few people have much of."""
    with closing(open_engine(policy)) as engine:
        schema = schema_of(policy, engine)
        for name, table in schema.tables.items():
            columns = list(table.columns)
            each = [f"count({engine.dialect.quote(column)})" for column in columns]
            person = [] if table.person is None else [f"count(DISTINCT {engine.dialect.quote(table.person)})"]
            [found] = engine.rows(f"SELECT {', '.join(['count(*)', *each, *person])} FROM {engine.relations[name]}")
            people = f" of {found[-1]:,} people" if person else ""
            yield f"{name}: {found[0]:,} rows{people}"
            for column, there in zip(columns, found[1:], strict=False):
                if there < found[0]:
                    yield f"  {column}: {found[0] - there:,} are NULL, missing or not of its type"
            yield from _long_tails(table, schema, engine)


def _long_tails(table: Table, schema: Schema, engine: Engine) -> Iterator[str]:
    """What a few people have so much of that answers miss it. What is declared is cut off at a known place."""
    owner = table.person or (table.path[0] if table.through is not None else None)
    if table.public or owner is None:
        return
    numbers = [one for one in columns_about_people(table, schema) if one.type in ("integer", "number")]
    columns = [column for column in numbers if column.between is None]
    of_rows, *of_columns = _tails(table, owner, columns, engine)
    cut = "Limits cut that off, and the ± cannot show it"
    if of_rows.words and table.rows_per_person is None:
        yield f"  {of_rows.words} of the rows. {cut}: declare rows_per_person."
    for column, tail in zip(columns, of_columns, strict=True):
        by_rows = bool(of_rows.words) and tail.of_few < _MORE * of_rows.of_few
        if tail.words and not by_rows:
            instead = f"declare its range, or let analysts ask for LEAST({column.name}, …)"
            yield f"  {column.name}: {tail.words} of its total. {cut}: {instead}."


def _tails(table: Table, owner: str, columns: list[Column], engine: Engine) -> list[Tail]:
    """The tail of the rows, and those of these columns, without signs."""
    dialect, places = engine.dialect, range(len(columns) + 1)
    near = [dialect.distance(dialect.quote(one.name), Fraction(0), one.type) for one in columns]
    whose = dialect.quote(owner)
    read = [f"{whose} AS who", *(f"{one} AS d{place}" for place, one in enumerate(near, 1))]
    steps = [dialect.clamped_steps(f"d{place}", _STEP, -_MOST, _MOST) for place in places[1:]]
    added = [dialect.exact_sum(f"abs({one})", _MOST, rows=ROWS_OF_ONE) for one in steps]
    totals = [f"{one} AS t{place}" for place, one in enumerate(["count(*)", *added])]
    ranks = [f"row_number() OVER (ORDER BY t{place} DESC NULLS LAST) AS r{place}" for place in places]
    few = [f"sum(t{n}), max(t{n}), sum(CASE WHEN r{n} * 100 <= people THEN t{n} END)" for n in places]
    rows = dialect.fenced(f"SELECT {', '.join(read)} FROM {engine.relations[table.name]} WHERE {whose} IS NOT NULL")
    people = f"SELECT {', '.join(totals)} FROM ({rows}) AS one_row GROUP BY who"
    ranked = f"SELECT *, count(*) OVER () AS people, {', '.join(ranks)} FROM ({people}) AS one_person"
    [[many, *found]] = engine.rows(f"SELECT max(people), {', '.join(few)} FROM ({ranked}) AS one_ranked")
    if (many or 0) < FEWEST:
        return [Tail(0, 0) for _ in places]
    sums = [found[3 * place : 3 * place + 3] for place in places]
    return [Tail(float(top / whole), float(best / whole)) if whole else Tail(0, 0) for whole, top, best in sums]
