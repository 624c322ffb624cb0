"""Standing questions over the years: periods of the ledger, and declarations and columns that change."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import discreet as dp
from discreet.datasets import standing_steps
from discreet.errors import BudgetExhausted

from ..refusing import refuses
from .standing_worlds import CITIES, MONTHLY, PERSON, ROW, clinic, policy_of, visits
from .test_standing import MAY, opened


@pytest.mark.parametrize("totals", [False, True])
@pytest.mark.parametrize("unit", [MONTHLY, PERSON, ROW], ids=["per", "person", "row"])
def test_what_is_left_in_a_new_period_is_charged_to_it_once(unit: Any, totals: bool) -> None:
    """Who is in the data of the new period only is protected by its limit, so its answers are charged to it."""
    database = clinic(unit)
    standing = opened(database, totals=totals)
    spent = database.ledger.remaining
    standing.run(today=datetime.date(2024, 2, 1))
    database.ledger.renew(why="a new year")
    assert database.ledger.remaining.epsilon == 10
    standing.answers, standing.table, standing.due()
    assert database.ledger.remaining.epsilon == 10
    standing.run(today=datetime.date(2024, 3, 1))
    many = len(database.ledger.entries())
    assert database.ledger.remaining == spent
    again = [entry for entry in database.ledger.entries() if (entry.key or "").startswith("standing/")]
    each = ("2024-02",) if not totals else standing.blocks
    assert [entry.parts for entry in again] == [each if "per" in unit else ()]
    standing.run(today=datetime.date(2024, 3, 1))
    assert len(database.ledger.entries()) == many
    standing.run(today=MAY)
    assert standing.answered == standing.blocks
    if "per" in unit and not totals:
        lost = {name: one.spent.epsilon_at(delta=1e-5) for name, one in database.ledger.parts.items()}
        assert [name for name, epsilon in lost.items() if not epsilon] == ["2024-01"]
    database.ledger.verify()


@pytest.mark.parametrize("totals", [False, True])
@pytest.mark.parametrize("unit", [MONTHLY, PERSON], ids=["per", "person"])
def test_a_step_that_its_period_did_not_pay_is_caught(unit: Any, totals: bool, monkeypatch: Any) -> None:
    """The wrong rule: what was paid in an earlier period is free in all later ones."""
    database = clinic(unit)
    standing = opened(database, totals=totals)
    standing.run(today=datetime.date(2024, 2, 1))
    database.ledger.renew(why="a new year")
    with monkeypatch.context() as patch:
        patch.setattr(standing_steps, "pay_again", lambda *given: None)
        standing.run(today=datetime.date(2024, 3, 1))
    with refuses(dp.errors.DiscreetError, "ledger-steps-wrong"):
        database.ledger.verify()


def test_only_the_part_that_was_renewed_is_paid_again() -> None:
    database = clinic(MONTHLY)
    standing = opened(database)
    database.ledger._within("2024-03").renew(why="a new register for March")
    standing.run(today=MAY)
    again = [entry for entry in database.ledger.entries() if (entry.key or "").startswith("standing/")]
    assert [entry.parts for entry in again] == [("2024-03",)]
    totals = opened(database, totals=True, epsilon=1)
    database.ledger._within("2024-03").renew(why="and another")
    totals.run(today=MAY)
    again = [entry for entry in database.ledger.entries() if (entry.key or "").startswith("standing/")]
    assert [entry.parts for entry in again][1:] == [totals.blocks]
    database.ledger.verify()


def test_a_new_period_without_room_for_what_is_left_stops_it() -> None:
    database = clinic(PERSON)
    standing = opened(database)
    standing.run(today=datetime.date(2024, 2, 1))
    database.ledger.renew(dp.Approx(epsilon=1, delta=1e-5), why="less")
    with pytest.raises(BudgetExhausted):
        standing.run(today=MAY)
    assert standing.answered == ("2024-01",)
    database.ledger.raise_limit(dp.Approx(epsilon=5, delta=1e-5), why="enough")
    standing.run(today=MAY)
    assert standing.answered == standing.blocks
    database.ledger.verify()


def test_a_new_period_of_an_analyst_is_one_too(tmp_path: Path) -> None:
    path = tmp_path / "clinic.ledger"
    owner = clinic(PERSON, path)
    for name in ("alice", "bob"):
        owner.ledger.for_analyst(name, limit=dp.Approx(epsilon=4.5, delta=1e-5))
    alice = dp.connect(policy_of(PERSON, path), analyst="alice")
    opened(alice)
    owner.ledger.renew(why="bob has a new contract", analyst="bob")
    owner.standings[0].run(today=datetime.date(2024, 2, 1))
    assert not [entry for entry in owner.ledger.entries() if (entry.key or "").startswith("standing/")]
    owner.ledger.renew(why="alice has one, too", analyst="alice")
    owner.standings[0].run(today=MAY)
    [again] = [entry for entry in owner.ledger.entries() if (entry.key or "").startswith("standing/")]
    assert again.analyst == "alice"
    assert alice.ledger.remaining.epsilon < 1
    owner.ledger.verify()


@pytest.mark.parametrize("totals", [False, True])
def test_columns_that_are_added_later_do_not_stop_it_and_those_that_go_do(totals: bool) -> None:
    database = clinic(PERSON)
    standing = opened(database, totals=totals)
    standing.run(today=datetime.date(2024, 2, 1))
    rows = visits()
    wider = pa.table({"new": rows["cost"], **{name: rows[name] for name in reversed(rows.column_names)}})
    later = clinic(PERSON, source=wider).seen_by(database.ledger)
    assert later.standings[0].is_current
    assert opened(later, totals=totals).receipt == standing.receipt
    assert len(later.ledger.entries()) == len(database.ledger.entries())
    later.standings[0].run(today=MAY)
    assert standing.answered == standing.blocks
    assert standing.table.equals(later.standings[0].table)
    fewer = clinic(PERSON, source=rows.drop_columns(["cost"]), columns={"city": {"choices": CITIES}})
    gone = fewer.seen_by(database.ledger)
    assert not gone.standings[0].is_current
    assert gone.standings[0].answered == standing.blocks
    with refuses(dp.errors.DiscreetError, "standing-declarations"):
        gone.standings[0].answer("2024-01")
    database.ledger.verify()


def test_a_question_that_stopped_is_listed_though_its_last_step_shows_nothing() -> None:
    """Whether a step showed no group is known by its plan, which the changed declarations do not have."""
    columns = {"cost": {"between": [0, 10]}}
    database = clinic(PERSON, source=visits(3), columns=columns)
    standing = opened(database)
    standing.run(today=MAY)
    assert standing.answered == standing.blocks
    other = clinic(PERSON, source=visits(3), columns=columns, rows_per_person=1).seen_by(database.ledger)
    [listed] = other.standings
    assert not listed.is_current
    assert set(listed.due(today=MAY)) <= set(standing.blocks)
    assert "of 4 answered" in repr(listed)
