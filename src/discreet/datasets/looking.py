"""What the rows behind a policy are like: for the eyes of their owner only, because all of it is exact."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction

from discreet.datasets.connect import open_engine, schema_of
from discreet.datasets.people import columns_about_people
from discreet.datasets.policy import Policy
from discreet.engines.engine import Engine
from discreet.sql.schema import Column, Schema, Table, is_auto

FEWEST = 100
"""Of fewer, nobody is one in a hundred."""
MUCH_OF_ONE, MUCH_OF_FEW = 0.1, 0.2
"""One person, or 1% of the people, with more than this have a long tail: intervals then miss the truth too often
(`bench/sql/clipping.py`: 1% have 9% of a lognormal law with σ = 1, and 20% with σ = 1.5).
"""
_MORE = 1.2
"""With so much less in the hands of a few, a column's tail is that of the rows."""
_LARGEST = 1e290
"""Larger numbers count as so much: sums stay finite."""


@dataclass(frozen=True)
class Tail:
    """How much those with the most have, as parts of what all have."""

    of_one: float = 0.0
    of_few: float = 0.0

    def words(self, one: str = "person", few: str = "people") -> str:
        """What is wrong with it. Empty if nothing is."""
        if self.of_one > MUCH_OF_ONE:
            return f"one {one} has {self.of_one:.0%}"
        return f"1% of the {few} have {self.of_few:.0%}" if self.of_few > MUCH_OF_FEW else ""


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
    """What a few people have so much of that answers miss it, unless declarations bound what one person adds."""
    if table.public:
        return
    rows_only = schema.unit.column is None
    is_bound = rows_only or table.rows_per_person is not None
    cut, least = "Limits cut that off, and the ± cannot show it", "tightly, or let analysts cut it off with LEAST"
    of_rows = tail_of(table, None, schema, engine)
    if of_rows.words() and not is_bound:
        yield f"  {of_rows.words()} of the rows. {cut}: declare rows_per_person."
    for column in columns_about_people(table, schema):
        is_ranged = column.between is not None and not is_auto(column.between)
        if column.type not in ("integer", "number") or (is_bound and is_ranged):
            continue
        tail = tail_of(table, column, schema, engine)
        words = tail.words("row", "rows") if rows_only else tail.words()
        if words and not (of_rows.words() and tail.of_few < _MORE * of_rows.of_few):
            open_bounds = {"rows_per_person": is_bound, "its range": is_ranged}
            wanted = " and ".join(what for what, is_declared in open_bounds.items() if not is_declared)
            yield f"  {column.name}: {words} of its total. {cut}: declare {wanted}, {least}."


def tail_of(table: Table, column: Column | None, schema: Schema, engine: Engine) -> Tail:
    """The tail of a column without signs, as far as it is within its range, or that of the rows."""
    whose, rows = _owned(table, schema, engine)
    size = "1" if column is None else _size(column, engine)
    sizes = f"SELECT {whose or '0'} AS who, {size} AS size FROM {rows}"
    people = "SELECT sum(size) AS total FROM ({}) AS one_size WHERE who IS NOT NULL GROUP BY who"
    people = (people if whose else "SELECT size AS total FROM ({}) AS one_size").format(sizes)
    ranked = "row_number() OVER (ORDER BY total DESC NULLS LAST) AS place, count(*) OVER () AS people"
    most = "max(people), sum(total), max(total), sum(CASE WHEN place * 100 <= people THEN total END)"
    [[many, whole, top, best]] = engine.rows(
        f"SELECT {most} FROM (SELECT total, {ranked} FROM ({people}) AS one_person) AS one_ranked"
    )
    return Tail(float(top / whole), float(best / whole)) if whole and many >= FEWEST else Tail()


def _owned(table: Table, schema: Schema, engine: Engine) -> tuple[str, str]:
    """Whose a row of a table is, and the table with all that lead from it to people. Rows alone belong to nobody."""
    quote, names, all_of = engine.dialect.quote, ["one_row"], "(SELECT * FROM {}) AS {}".format
    rows = all_of(engine.relations[table.name], "one_row")
    while table.person is None and table.through is not None:
        own, other, key = table.path
        leads, owner = f"{names[-1]}.{quote(own)}", f"owner_{len(names)}"
        rows += f" JOIN {all_of(engine.relations[other], owner)} ON {leads} = {owner}.{quote(key)}"
        names.append(owner)
        table = schema.tables[other]
    return ("" if table.person is None else f"{names[-1]}.{quote(table.person)}"), rows


def _size(column: Column, engine: Engine) -> str:
    """How large a value is that is a number. What is outside the declared range counts as its end."""
    dialect = engine.dialect
    number = dialect.distance(f"one_row.{dialect.quote(column.name)}", Fraction(0), column.type)
    if column.between is not None and not is_auto(column.between):
        low, high = (dialect.literal(float(end)) for end in column.between)
        size = f"abs(greatest(least({number}, {high}), {low}))"
    else:
        size = f"least(abs({number}), {dialect.literal(_LARGEST)})"
    is_number = dialect.operation("is_number", [number], ["number"], "boolean")
    return f"CASE WHEN {is_number} THEN {size} END"
