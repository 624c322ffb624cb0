"""Every engine tells, of columns without a row, whether it can compute a statement."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import discreet as dp
from discreet.datasets.database import Database
from discreet.errors import NotAllowed
from discreet.sql.schema import Column, Schema, Table

from ..refusing import refuses

DATA = pa.table({"pid": pa.array([1, 2], pa.int64()), "x": [1.0, 2.0], "s": ["a", "b"]})


@pytest.fixture(scope="module")
def engine(opened: Any) -> Any:
    return opened({"t": DATA})


def test_what_can_be_computed_is_told_without_a_row(engine: Any) -> None:
    blank = engine.blank()
    quoted = engine.dialect.quote
    assert blank.columns("t") == engine.columns("t")
    for statement, fine in [
        (f"SELECT count(*) FROM {blank.relations['t']} WHERE {quoted('x')} > 1", True),
        (f"SELECT nobody_has_this({quoted('x')}) FROM {blank.relations['t']}", False),
        (f"SELECT {quoted('nowhere')} FROM {blank.relations['t']}", False),
        (f"SELECT {quoted('x')} FROM", False),
    ]:
        assert blank.computes(statement) is fine


def test_a_later_statement_reads_the_columns_of_an_earlier_one(engine: Any) -> None:
    blank = engine.blank()
    person, text = map(engine.dialect.quote, ("pid", "s"))
    computed = blank.computed(f"SELECT {person} AS a, {text} AS b FROM {blank.relations['t']}")
    assert blank.computes(f"SELECT a + 1, upper(b) FROM {computed}")
    assert not blank.computes(f"SELECT c FROM {computed}")


def test_a_question_that_no_row_could_answer_is_not_charged(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {name: Column(name=name, type=kind) for name, kind in engine.columns("t").items()}
    unit = dp.person("pid")
    schema = Schema(unit=unit, tables={"t": Table(name="t", columns=columns, person="pid", rows_per_person=1)})
    ledger = dp.Ledger.open(":memory:", protects=unit, limit=dp.Pure(epsilon=9))
    database = Database(schema, engine, ledger)
    text = "SELECT COUNT(*) AS n FROM t WHERE ABS(x) > 1"
    database.sql(text, epsilon=1)
    own = engine.dialect.operation

    def odd(op: str, args: Any, *given: Any, **named: Any) -> str:
        return f"nobody_has_this({args[0]})" if op == "abs" else own(op, args, *given, **named)

    monkeypatch.setattr(engine.dialect, "operation", odd)
    with refuses(NotAllowed, "sql-not-computable") as caught:
        database.sql(text, epsilon=1)
    assert caught.value.__context__ is None
    assert ledger.count == 1
