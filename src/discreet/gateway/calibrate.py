"""How long answers take on this machine, so that the owner can choose when they leave.

The times depend on the data, and are for the owner alone. What is published is one round number far above all of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

from discreet.datasets.connect import open_engine, schema_of
from discreet.datasets.database import Database
from discreet.datasets.policy import Policy
from discreet.engines.duckdb.dialect import quote
from discreet.errors import DiscreetError
from discreet.gateway.settings import Settings
from discreet.gateway.vault.snapshot import named, published, published_before
from discreet.guarantees.guarantee import Approx
from discreet.ledger import Ledger
from discreet.ledger.stores.store import IN_MEMORY
from discreet.sql.schema import Schema

TIMES = 5
"""Answers leave after so many times the slowest one."""
LEAST = 0.5
_FEW = 4
_NUMBERS = ("integer", "number")


class Timed(NamedTuple):
    """A question, and how many seconds its answer took."""

    question: str
    seconds: float


def typical_questions(schema: Schema) -> Iterator[str]:
    """Heavy questions about all private tables: all numbers, by each key, medians, and joins on the person."""
    private = [table for table in schema.tables.values() if not table.public]
    for table in private:
        name = quote(table.name)
        numbers = [quote(c.name) for c in table.columns.values() if c.type in _NUMBERS and c.name != table.person]
        shown = ["COUNT(*) AS n"]
        shown += [f"AVG({one}) AS a{place}, SUM({one}) AS s{place}" for place, one in enumerate(numbers[:_FEW])]
        yield f"SELECT {', '.join(shown)} FROM {name}"
        keys = [c for c in table.columns.values() if c.name != table.person and (c.choices or c.type == "text")]
        for key in (quote(c.name) for c in keys[:_FEW]):
            yield f"SELECT {key}, {', '.join(shown)} FROM {name} GROUP BY {key}"
        if numbers:
            yield f"SELECT MEDIAN({numbers[0]}) AS m FROM {name}"
    for left, right in combinations(private, 2):
        if left.person is not None and left.person == right.person:
            joined = f"{quote(left.name)} JOIN {quote(right.name)} USING ({quote(left.person)})"
            yield f"SELECT COUNT(*) AS n FROM {joined}"


def time_questions(policy: Policy, settings: Settings, questions: list[str] | None = None) -> Iterator[Timed]:
    """Answer typical questions, or given ones, as a lane would, and say how long each takes. The ledger of the policy
    is not charged: nothing that is drawn here is shown.
    """
    place = published(policy, settings.version, settings.copies, published_before(settings))
    if place.engine.kind == "duckdb" and settings.lane_memory:
        place = replace(place, engine=replace(place.engine, memory=settings.lane_memory))
    engine = open_engine(place)
    schema = schema_of(named(policy, settings.version), engine)
    try:
        for question in questions or typical_questions(schema):
            ledger = Ledger.open(IN_MEMORY, protects=policy.unit, limit=Approx(epsilon=100, delta=0.01))
            database = Database(schema, engine, ledger, delta_per_question=1e-7, policy=policy.public_text())
            begun = time.perf_counter()
            try:
                database.sql(question, epsilon=1)
            except DiscreetError:
                continue  # it is refused: nobody can ask it
            finally:
                ledger.close()
            yield Timed(question, time.perf_counter() - begun)
    finally:
        engine.close()


def proposed(slowest: float) -> str:
    """A round time far above the slowest answer, as it is written in the policy.

    >>> proposed(0.03), proposed(0.7), proposed(30)
    ('500ms', '5s', '200s')
    """
    wanted = max(LEAST, TIMES * slowest)
    power = 10.0**-1
    while True:
        for digit in (1, 2, 5):
            if digit * power >= wanted * (1 - 1e-9):
                seconds = digit * power
                return f"{seconds:g}s" if seconds >= 1 else f"{1000 * seconds:g}ms"
        power *= 10
