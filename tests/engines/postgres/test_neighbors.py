"""The hostile rows and the made-up questions of the SQL tests, on PostgreSQL: nothing stops there, nothing differs."""

from __future__ import annotations

import traceback
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings

import discreet as dp
from discreet import testing
from discreet.datasets.database import Database
from discreet.engines.postgres.engine import Postgres
from discreet.errors import EngineFailed
from discreet.sql.schema import Schema, Table

from ..conftest import PostgresClinic, beside, sql

replay = beside("sql", "test_replay")
made_up = beside("sql", "test_random_questions")


def rows_of(extra: str) -> pa.Table:
    """The usual rows with hostile ones; PostgreSQL has no text with a zero character."""
    rows = [*replay.USUAL, *replay.HOSTILE[extra]]
    rows = [tuple(v.replace("\0", "") if isinstance(v, str) else v for v in row) for row in rows]
    columns = zip(*rows, strict=True)
    named = zip(replay.TYPES.items(), columns, strict=True)
    return pa.table({name: pa.array(values, kind) for (name, kind), values in named})


def asked(database: Database, text: str) -> Any:
    """The answer without noise, or the refusal; an engine never fails."""
    try:
        with testing.no_noise():
            return database.sql(text, epsilon=1)
    except EngineFailed:
        pytest.fail(f"the engine failed: {text}")
    except dp.DiscreetError as error:
        return error


def shown(server, rows):
    """Of each question the columns, types and number of rows, or the refusal."""
    engine = Postgres(server.url, server.loaded({"t": rows_of(rows)}))
    table = Table(name="t", columns=replay.COLUMNS, person="pid", rows_per_person=4)
    unit = replay.PERSON
    database = Database(Schema(unit=unit, tables={"t": table}), engine, sql.open_ledger(unit))
    seen = []
    for text in replay.QUESTIONS:
        found = asked(database, text)
        if isinstance(found, Exception):
            assert replay.CANARY not in "".join(traceback.format_exception(found))
            seen.append(str(found))
        else:  # which rows HAVING leaves depends on the numbers
            seen.append((found.table.schema, None if "HAVING" in text else found.table.num_rows))
    return seen


@pytest.fixture(scope="module")
def without(server):
    return shown(server, "nothing")


QUICK = ("null person", "not a number", "text")


@pytest.mark.some_quick(1)
@pytest.mark.parametrize(
    "extra", [pytest.param(extra, marks=[] if extra in QUICK else [pytest.mark.slow]) for extra in replay.HOSTILE]
)
def test_hostile_rows_change_nothing_but_numbers(server, extra, without):
    """The same columns, types and number of rows as without them, or the same refusal; and no value is quoted."""
    assert shown(server, extra) == without
    assert sum(isinstance(one, tuple) for one in without) >= len(replay.QUESTIONS) - 5


@pytest.fixture(scope="session")
def both(server):
    return sql.Clinic(), PostgresClinic(server)


@pytest.mark.slow
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=made_up.questions())
def test_made_up_questions_are_answered_alike(both, text):
    """What DuckDB answers PostgreSQL answers with the same numbers, or refuses; what one refuses so does the other."""
    assume("9223372036854775" not in text)  # DuckDB moves constants to the other side, where they do not overflow
    found = []
    for clinic in both:
        answer = asked(clinic.database, text)
        found.append(answer if isinstance(answer, Exception) else answer.as_json())
    if isinstance(found[1], Exception):
        assert found[1].code == "sql-engine" or (type(found[0]), str(found[0])) == (type(found[1]), str(found[1]))
        return
    assert isinstance(found[0], dict)
    assert found[0]["columns"] == found[1]["columns"]
    rows = [sorted(one["rows"], key=str) for one in found]
    assert len(rows[0]) == len(rows[1])
    if both[0].database.prepare(text, epsilon=1).finds_bounds:
        return  # they are drawn at random, also without noise: one engine differs from itself, too
    for mine, theirs in zip(*rows, strict=True):
        for a, b in zip(mine, theirs, strict=True):
            assert str(a) == str(b) or sql.same_value(a, b, 1e-3, 1e-6), (text, mine, theirs)
