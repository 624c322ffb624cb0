"""Standing questions: one charge for a horizon, one answer for each block, whoever runs them and however often."""

from __future__ import annotations

import datetime
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import discreet as dp
from discreet.datasets import standing_totals
from discreet.datasets.standing import Standing
from discreet.errors import BudgetExhausted, InvalidArgument, NotAllowed
from discreet.sql.running import answering

from ..refusing import refuses
from .standing_worlds import CITIES, LATER, MONTHLY, PERSON, ROW, Q, clinic, policy_of, visits

MAY = datetime.date(2024, 5, 1)


def opened(database: Any, **more: Any) -> Standing:
    return database.standing(Q, **{"every": "month", "times": 4, "epsilon": 4, "first": "2024-01", **more})


@pytest.mark.parametrize("totals", [False, True])
@pytest.mark.parametrize("unit", [MONTHLY, PERSON, ROW], ids=["per", "person", "row"])
def test_a_horizon_is_charged_once_and_each_block_is_answered_once(unit: Any, totals: bool) -> None:
    database = clinic(unit)
    standing = opened(database, totals=totals)
    left = database.ledger.remaining
    assert left is not None
    assert left.epsilon < 10
    assert standing.due(today=datetime.date(2024, 1, 31)) == ()
    assert standing.due(today=datetime.date(2024, 2, 1)) == ("2024-01",)
    assert list(standing.run(today=datetime.date(2024, 3, 15))) == ["2024-01", "2024-02"]
    assert standing.answered == ("2024-01", "2024-02")
    first = standing.table
    assert list(standing.run(today=LATER)) == ["2024-03", "2024-04"]
    assert standing.run(today=LATER) == {}
    assert standing.table.slice(0, first.num_rows).equals(first)
    assert database.ledger.remaining == left
    assert database.ledger.verify() == database.ledger.count + 1
    names = standing.table.column_names
    assert names == ["block", "city", "n", "n_error"]
    assert all(abs(row["n"] - 20) < 80 for row in standing.table.to_pylist())


def test_blocks_of_a_unit_that_lives_in_one_are_charged_and_others_are_not() -> None:
    database = clinic(MONTHLY)
    opened(database)
    assert database.part("2024-04").ledger is not None
    assert database.part("2024-03").tables.remains.startswith("ε = 6")
    assert database.part("2024-05").tables.remains.startswith("ε = 10")
    assert database.tables.remains.startswith("ε = 6")


@pytest.mark.parametrize(("unit", "left"), [(MONTHLY, 6), (PERSON, 2)], ids=["per", "person"])
def test_horizons_one_after_the_other_add_up_for_a_person_in_both(unit: Any, left: int) -> None:
    database = clinic(unit)
    for first in ("2024-01", "2024-03"):
        opened(database, first=first, times=2, delta=0)
    assert database.ledger.remaining is not None
    assert float(database.ledger.remaining.epsilon) == pytest.approx(left, abs=0.01)


def test_the_first_blocks_of_a_person_in_two_tables_are_not_counted() -> None:
    """They may differ, and then a person would be in more answers than are charged."""
    rows = {"who": ["a", "b"], "day": [datetime.date(2024, 1, 2), datetime.date(2024, 2, 3)]}
    time = {"column": "day", "block": "month"}
    table = {"source": pa.table(rows), "rows_per_person": 1, "time": time}
    ledger = {"path": ":memory:", "epsilon": 10}
    database = dp.connect({"ledger": ledger, "unit": {"person": "who"}, "tables": {"visits": table, "bills": table}})
    asked = {"every": "month", "times": 2, "epsilon": 1, "delta": 0, "first": "2024-01", "blocks_per_person": 1}
    database.explain_standing("SELECT COUNT(*) AS n FROM visits", **asked)
    with refuses(NotAllowed, "standing-turns"):
        database.explain_standing("SELECT COUNT(*) AS n FROM visits v JOIN bills b ON v.who = b.who", **asked)


def test_the_same_question_is_not_opened_twice_while_its_horizon_lasts() -> None:
    database, day = clinic(PERSON), datetime.date(2024, 1, 5)
    one = database.standing(Q, every="month", times=3, epsilon=1, today=day)
    assert one.blocks == ("2024-01", "2024-02", "2024-03")
    again = database.standing(Q, every="month", times=3, epsilon=1, today=datetime.date(2024, 3, 31))
    assert again.receipt == one.receipt
    assert database.standing(Q, every="month", times=3, epsilon=1, first="2024-01").receipt == one.receipt
    new = database.standing(Q, every="month", times=3, epsilon=1, today=datetime.date(2024, 4, 1))
    assert new.blocks[0] == "2024-04"
    assert len(database.standings) == 2


def test_it_is_found_again_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "clinic.ledger"
    first = opened(clinic(PERSON, path), totals=True)
    first.run(today=datetime.date(2024, 3, 1))
    [found] = clinic(PERSON, path).standings
    assert (found.receipt, found.blocks, found.question) == (first.receipt, first.blocks, Q)
    assert found.table.equals(first.table)
    assert found.total().table.equals(first.total().table)
    assert found.due(today=MAY) == ("2024-03", "2024-04")


def test_a_block_is_the_same_whatever_version_the_data_have(tmp_path: Path) -> None:
    """Data that grow are new versions of a file: an answered block is not answered anew, others go on."""
    path, file = tmp_path / "clinic.ledger", tmp_path / "visits.parquet"
    whole = visits()
    early = whole.filter(pa.compute.less(whole["day"], pa.scalar(datetime.date(2024, 2, 1))))
    pa.parquet.write_table(early, file)
    standing = opened(clinic(PERSON, path, str(file)))
    standing.run(today=datetime.date(2024, 2, 1))
    before = standing.table
    pa.parquet.write_table(whole, file)
    [later] = clinic(PERSON, path, str(file)).standings
    assert later.table.equals(before)
    later.run(today=MAY)
    assert later.table.slice(0, 2).equals(before)
    assert later.table.num_rows == 8


@pytest.mark.slow
def test_analysts_pay_and_see_their_own(tmp_path: Path) -> None:
    path = tmp_path / "clinic.ledger"
    owner = clinic(PERSON, path)
    for name in ("alice", "bob"):
        owner.ledger.for_analyst(name, limit=dp.Approx(epsilon=4.5, delta=1e-5))
    policy = policy_of(PERSON, path)
    alice, bob = (dp.connect(policy, analyst=name) for name in ("alice", "bob"))
    mine = opened(alice)
    assert mine.analyst == "alice"
    assert [len(one.standings) for one in (alice, bob, owner)] == [1, 0, 1]
    assert alice.ledger.remaining.epsilon < 1
    assert bob.ledger.remaining.epsilon > 4
    with pytest.raises(BudgetExhausted):
        opened(alice, epsilon=3.9)
    [owners] = owner.standings
    owners.run(today=MAY)
    assert mine.table.equals(owners.table)
    assert [entry.kind for entry in alice.ledger.entries()] == ["account", "charge"]
    assert bob.ledger.entries()[0].kind == "account"
    assert owner.ledger.analysts == ("alice", "bob")
    owner.ledger.verify()


def test_totals_are_consistent_and_nearer_than_sums() -> None:
    database = clinic(MONTHLY)
    standing = opened(database, totals=True)
    standing.run(today=MAY)
    blocks = {block: [row["n"] for row in one.table.to_pylist()] for block, one in standing.answers.items()}
    totals = [[row["n"] for row in standing.total(block).table.to_pylist()] for block in standing.blocks]
    before = [0, 0]
    for block, total in zip(standing.blocks, totals, strict=True):
        assert [a - b for a, b in zip(total, before, strict=True)] == blocks[block]
        before = total
    assert standing.total().table.equals(standing.total("2024-04").table)
    assert [row["city"] for row in standing.total().table.to_pylist()] == CITIES


def test_means_of_totals_are_computed_from_the_totals_of_their_parts() -> None:
    database = clinic(ROW)
    question = "SELECT city, AVG(cost) AS mean, SUM(cost) AS total, COUNT(*) AS n FROM visits GROUP BY city"
    standing = database.standing(question, every="month", times=4, epsilon=9, first="2024-01", totals=True)
    standing.run(today=MAY)
    for row in standing.total().table.to_pylist():
        assert abs(row["mean"] - 4.5) < 4
        assert row["mean_error"] > 0
        assert abs(row["n"] - 80) < 40


@pytest.mark.parametrize(
    "kinds_of_people",
    [
        [(PERSON, {"rows_per_person": 1}), (ROW, {})],
        pytest.param([(PERSON, {}), (MONTHLY, {})], marks=pytest.mark.slow),
    ],
)
def test_groups_that_appear_are_shown_from_then_on(kinds_of_people: Any) -> None:
    rows = [(1000 * m + p, datetime.date(2024, m, 3), "big") for m in (1, 2, 3) for p in range(70)]
    rows += [(1000 * m + 500 + p, datetime.date(2024, m, 3), "new") for m in (2, 3) for p in range(70 if m == 2 else 1)]
    names, kinds = ("pid", "day", "town"), (pa.int64(), pa.date32(), pa.string())
    data = pa.table({n: pa.array(c, k) for n, c, k in zip(names, zip(*rows, strict=True), kinds, strict=True)})
    for unit, more in kinds_of_people:
        policy = policy_of(unit, ":memory:", data)
        policy["tables"]["visits"] = {"source": data, "time": {"column": "day", "block": "month"}, **more}
        database = dp.connect(policy)
        question = "SELECT town, COUNT(*) AS n FROM visits GROUP BY town"
        standing = database.standing(question, every="month", times=3, epsilon=9, first="2024-01")
        standing.run(today=MAY)
        shown = {block: [row["town"] for row in one.table.to_pylist()] for block, one in standing.answers.items()}
        assert shown == {"2024-01": ["big"], "2024-02": ["big", "new"], "2024-03": ["big", "new"]}
        [again] = database.standings
        assert again.table.equals(standing.table)
        database.ledger.verify()
        with refuses(dp.errors.DiscreetError, "standing-totals"):
            database.standing(question, every="month", times=3, epsilon=0.1, first="2024-01", totals=True)


@pytest.mark.slow
def test_nothing_is_shown_where_no_group_has_enough_people() -> None:
    policy = policy_of(PERSON, ":memory:")
    policy["tables"]["visits"] = {"source": visits(3), "time": {"column": "day", "block": "month"}}
    standing = opened(dp.connect(policy), times=2, epsilon=0.05)
    assert list(standing.run(today=MAY)) == ["2024-01", "2024-02"]
    assert standing.run(today=MAY) == {}
    assert standing.answered == standing.blocks
    assert standing.table.num_rows == 0


# --- once, whatever happens ---------------------------------------------------------------------------------


@pytest.mark.parametrize("totals", [False, True])
def test_a_stop_between_charge_and_draw_leaves_the_block_to_be_answered_once(totals: bool, monkeypatch: Any) -> None:
    database = clinic(MONTHLY)
    standing = opened(database, totals=totals)
    target = (standing_totals.RunningTotals, "_read") if totals else (answering, "_read_measures")
    with monkeypatch.context() as patch:
        patch.setattr(*target, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            standing.run(today=MAY)
    entries = database.ledger.count
    assert [entry.state for entry in database.ledger.entries()][-1] == "reserved"
    assert list(standing.run(today=datetime.date(2024, 2, 1))) == ["2024-01"]
    assert database.ledger.count == entries
    database.ledger.verify()


KILLED = """
import datetime, os, signal, sys, json
import discreet as dp
from discreet.sql.running import answering
from discreet.datasets import standing_totals
def stop(*_):
    os.kill(os.getpid(), signal.SIGKILL)
answering._read_measures = stop
standing_totals.RunningTotals._read = stop
[standing] = dp.connect(sys.argv[1]).standings
standing.run(today=datetime.date(2024, 5, 1))
"""


def written_policy(folder: Path, unit: str = 'person = "pid"\nper = "month"') -> Path:
    """The clinic as files."""
    pa.parquet.write_table(visits(), folder / "visits.parquet")
    (folder / "clinic.toml").write_text(f"""
[ledger]
path = "clinic.ledger"
epsilon = 10.0
delta = 1e-5
delta_per_question = 1e-6
[unit]
{unit}
[tables.visits]
source = "visits.parquet"
rows_per_person = 2
time = {{ column = "day", block = "month" }}
columns.city.choices = ["A", "B"]
columns.cost.between = [0, 10]
""")
    return folder / "clinic.toml"


@pytest.mark.slow
@pytest.mark.parametrize("totals", [False, True])
def test_killed_between_charge_and_draw(totals: bool, tmp_path: Path) -> None:
    policy = written_policy(tmp_path)
    opened(dp.connect(policy), totals=totals)
    done = subprocess.run([sys.executable, "-c", KILLED, str(policy)], check=False)
    assert done.returncode == -signal.SIGKILL
    database = dp.connect(policy)
    [standing] = database.standings
    assert [entry.state for entry in database.ledger.entries()][-1] == "reserved"
    standing.run(today=MAY)
    assert standing.answered == standing.blocks
    charges = [entry for entry in database.ledger.entries() if entry.kind == "charge"]
    assert len(charges) == 1 + 4
    database.ledger.verify()


SCHEDULER = """
import datetime, sys
import discreet as dp
[standing] = dp.connect(sys.argv[1]).standings
standing.run(today=datetime.date(2024, 5, 1))
print(standing.table.to_pylist())
"""


@pytest.mark.slow
@pytest.mark.parametrize("totals", [False, True])
def test_two_schedulers_give_the_same_answers(totals: bool, tmp_path: Path) -> None:
    policy = written_policy(tmp_path)
    opened(dp.connect(policy), totals=totals)
    command = [sys.executable, "-c", SCHEDULER, str(policy)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    shown = [process.communicate()[0] for process in both]
    assert shown[0] == shown[1] != ""
    database = dp.connect(policy)
    assert len([entry for entry in database.ledger.entries() if entry.kind == "charge"]) == 1 + 4
    database.ledger.verify()


@pytest.mark.parametrize("totals", [False, True])
def test_threads_that_run_at_once_give_the_same_answers(totals: bool, tmp_path: Path) -> None:
    path = tmp_path / "clinic.ledger"
    opened(clinic(PERSON, path), totals=totals)
    databases = [clinic(PERSON, path) for _ in range(2)]
    threads = [threading.Thread(target=one.standings[0].run, kwargs={"today": MAY}) for one in databases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    first, second = (one.standings[0].table for one in databases)
    assert first.equals(second)
    assert first.num_rows == 8
    databases[0].ledger.verify()


# --- refusals -----------------------------------------------------------------------------------------------


def test_what_cannot_be_asked_is_refused_before_anything_is_charged() -> None:
    database = clinic(PERSON)
    good: dict[str, Any] = {"every": "month", "times": 4, "epsilon": 1, "first": "2024-01"}
    for code, more in {
        "standing-blocks": {"every": "week", "first": "2024-W01"},
        "not-an-option": {"every": "fortnight"},
        "part-name": {"first": "January"},
        "standing-turns": {"blocks_per_person": 5},
        "out-of-range": {"times": 0},
        "too-large": {"times": 10**6},
        "wrong-type": {"totals": 1},
    }.items():
        with refuses(dp.errors.DiscreetError, code):
            database.standing(Q, **{**good, **more})
        with refuses(dp.errors.DiscreetError, code):
            database.explain_standing(Q, **{**good, **more})
    with refuses(dp.errors.DiscreetError, "part-name"):
        database.standing(Q, **{**good, "first": "null"})
    with refuses(dp.errors.DiscreetError, "standing-one-question"):
        database.standing("SELECT DISTINCT city FROM visits", **good)
    with refuses(dp.errors.DiscreetError, "part-of-part"):
        database.part("2024-01").standing(Q, **good)
    with refuses(dp.errors.DiscreetError, "standing-totals"):
        database.standing("SELECT MEDIAN(cost) AS m FROM visits", **good, totals=True)
    with refuses(dp.errors.DiscreetError, "standing-totals"):
        database.standing(Q, **good, totals=True, blocks_per_person=2)
    with refuses(dp.errors.DiscreetError, "needs-delta"):
        database.standing(Q, **good, totals=True, delta=0)
    with refuses(dp.errors.DiscreetError, "standing-turns"):
        clinic(MONTHLY).standing(Q, **good, blocks_per_person=2)
    with refuses(dp.errors.DiscreetError, "standing-turns"):
        clinic(ROW).standing(Q, **good, blocks_per_person=2)
    with pytest.raises(BudgetExhausted):
        database.standing(Q, **{**good, "epsilon": 11})
    assert database.ledger.count == 0


def test_other_declarations_are_refused_and_answers_that_are_not_there() -> None:
    database = clinic(PERSON)
    standing = opened(database)
    with refuses(dp.errors.DiscreetError, "standing-not-yet"):
        standing.answer("2024-01")
    with refuses(dp.errors.DiscreetError, "standing-block"):
        standing.answer("2025-01")
    with refuses(dp.errors.DiscreetError, "standing-no-totals"):
        standing.total()
    other = clinic(PERSON, rows_per_person=1)
    changed = other.seen_by(database.ledger).standings[0]
    with refuses(dp.errors.DiscreetError, "standing-declarations"):
        changed.run(today=MAY)
    totals = opened(database, totals=True, epsilon=1)
    with refuses(dp.errors.DiscreetError, "standing-not-yet"):
        totals.total()
    with refuses(dp.errors.DiscreetError, "standing-declarations"):
        other.seen_by(database.ledger).standings[1].run(today=MAY)


def test_a_plan_is_explained_before_it_is_paid() -> None:
    database = clinic(PERSON)
    explained = database.explain_standing(Q, every="month", times=4, epsilon=4, first="2024-01", blocks_per_person=2)
    assert explained.data["units"] == 2
    assert explained.data["fits"] is True
    assert "charged once" in explained
    totals = database.explain_standing(Q, every="month", times=4, epsilon=4, first="2024-01", totals=True)
    assert "after 4" in totals
    assert not database.explain_standing(Q, every="month", times=4, epsilon=40, first="2024-01").data["fits"]
    assert database.ledger.count == 0


def test_fewer_blocks_of_a_person_mean_less_noise() -> None:
    errors = []
    for turns in (1, 2, None):
        standing = opened(clinic(PERSON), blocks_per_person=turns)
        standing.run(today=datetime.date(2024, 2, 1))
        errors.append(standing.table["n_error"][0].as_py())
    assert errors == sorted(errors)
    assert errors[0] < errors[2] / 2


def test_many_answers_compose_to_far_less_than_their_sum() -> None:
    """Twenty-four answers of one person: Gaussian noise, composed exactly, and not 24 times the noise of one."""
    database = clinic(PERSON, rows_per_person=1)
    explained = database.explain_standing(Q, every="month", times=24, epsilon=2, first="2024-01")
    assert explained.data["each"]["noise"] == "Gaussian"
    assert explained.data["each"]["columns"][1]["error"] < 0.7 * 3 * 24 / 2
    standing = database.standing(Q, every="month", times=24, epsilon=2, first="2024-01")
    total = standing._paid.steps.total(database.schema.unit)
    assert 0.99 * 1e-6 < total.delta_at(epsilon=2) <= 1e-6
    standing.run(today=datetime.date(2024, 2, 1))
    assert float(standing.answer("2024-01").cost.delta) == 1e-6


def test_it_is_shown() -> None:
    standing = opened(clinic(PERSON), times=2)
    standing.run(today=datetime.date(2024, 2, 1))
    assert "1 of 2 answered" in repr(standing)
    assert standing.receipt in standing._repr_html_()
    assert "Paid in advance" in str(standing.answer("2024-01"))
    with pytest.raises((InvalidArgument, NotAllowed)):
        standing.due(today="tomorrow")  # type: ignore[arg-type]
