"""Answers from earlier answers through a gateway: some are free, and of others the missing part is charged."""

from __future__ import annotations

import json
from typing import Any

import pytest

from discreet.exact.rational import LEDGER_UNIT
from discreet.gateway.vault.asking import Asked
from discreet.gateway.vault.clock import Lanes

from ..house import answer_in
from ..small_house import SmallHouse

PARTS = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
TOTAL = "SELECT COUNT(*) AS n FROM visits WHERE cost < 77"
SOME = "SELECT COUNT(*) AS n FROM visits WHERE city IN ('Haifa', 'Koper')"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Any:
    made = SmallHouse(
        tmp_path_factory.mktemp("derived") / "house", "answer_after = 0\n[answers]\nshared = true"
    ).start()
    yield made
    assert made.stop() == 0
    assert made.ledger.verify() > 0


def asked(house: Any, token: str, sql: str, **given: Any) -> Any:
    reply = house.ask(token, sql, **given)
    assert reply.header["ok"], reply.header
    return json.loads(reply.body)


@pytest.mark.slow
def test_what_is_implied_is_free_and_what_is_missing_is_charged(house: Any) -> None:
    ada, some = house.open("ada"), f"{SOME} AND cost > 20"  # of which nobody else asks anything
    first = asked(house, ada, PARTS.replace("GROUP", "WHERE cost > 20 GROUP"), epsilon=0.2)
    before = len(house.charges())
    planned = house.value(ada, "plan", sql=some, epsilon=0.05)
    assert planned["bought"]
    assert planned["derived_from"] == [first["receipt"]]
    free = asked(house, ada, some, epsilon=0.05)
    assert free["derived_from"] == [first["receipt"]]
    assert free["receipt"] is None
    assert free["guarantee"] == {"epsilon": 0.0, "delta": 0.0}
    assert len(house.charges()) == before
    part = asked(house, ada, some, epsilon=0.2)
    assert part["derived_from"] == [first["receipt"]]
    [entry] = house.charges()[before:]
    assert entry.receipt == part["receipt"]
    assert 0.1 < float(entry.guarantee.largest_loss) < 0.2
    assert part["remaining"]["epsilon"] == pytest.approx(3 - 0.2 - float(entry.guarantee.largest_loss))
    again = house.value(ada, "again", receipt=part["receipt"])
    assert again["rows"] == part["rows"]


def test_a_history_has_free_answers_and_limits_count_what_was_missing(house: Any) -> None:
    token, some = house.open("fay"), f"{SOME} AND cost > 50"  # of which nobody has asked anything
    first = asked(house, token, PARTS.replace("GROUP", "WHERE cost > 50 GROUP"), epsilon=0.2)
    free = asked(house, token, some, epsilon=0.05)
    assert asked(house, token, some, epsilon=0.05)["rows"] == free["rows"]
    before = house.charges()
    asked(house, token, some, epsilon=0.2)
    [entry] = house.charges()[len(before) :]
    listed = house.value(token, "history")["questions"]
    missing = float(entry.guarantee.largest_loss)
    assert [one["cost"] for one in listed] == pytest.approx([0.2, 0.0, missing])
    assert listed[0]["receipt"] == first["receipt"]
    assert len(house.value(token, "again", receipt=listed[1]["receipt"])["rows"]) == 1  # from what is known by now
    with house.store.read() as execute:
        [(spent,)] = execute("SELECT spent FROM days WHERE account = 'fay'")
    assert int(spent) / LEDGER_UNIT == pytest.approx(0.2 + missing)


def test_a_question_with_several_charges_runs_alone(house: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The times of its later charges depend on the data, and their order among those of others would show it."""
    token, real, seen = house.open("gus"), Lanes.run, []

    def run(self: Lanes, *given: Any, alone: bool = False) -> Any:
        seen.append(alone)
        return real(self, *given, alone=alone)

    monkeypatch.setattr(Lanes, "run", run)
    asked(house, token, "SELECT COUNT(*) AS n FROM visits WHERE cost > 61", epsilon=0.1)
    parts = [f"(SELECT COUNT(*) AS n FROM visits WHERE cost > {cost}) {name}" for cost, name in ((62, "a"), (63, "b"))]
    asked(house, token, f"SELECT a.n + b.n AS x FROM {parts[0]}, {parts[1]}", epsilon=0.2)
    assert seen == [False, True]


def test_what_is_remembered_is_the_very_same_question(house: Any) -> None:
    token, given = house.open("gina"), [{"epsilon": 0.1}, {"epsilon": 0.3}, {"epsilon": 0.1, "format": "csv"}]
    first = house.ask(token, TOTAL, **given[0])
    assert answer_in(house.ask(token, TOTAL, **given[0])) == answer_in(first)  # found once, and remembered from then on
    other, written = (house.ask(token, TOTAL, **one) for one in given[1:])
    assert json.loads(first.body)["receipt"] != json.loads(other.body)["receipt"]
    assert written.header["type"].startswith("text/csv")
    beside, again = json.loads(written.header["beside"]), json.loads(house.ask(token, TOTAL, **given[0]).body)
    assert again["notes"]
    assert beside == {name: again[name] for name in ("receipt", "replayed", "not_private", "notes")}
    assert answer_in(house.ask(token, TOTAL, **given[1])) == answer_in(other)
    one, two = (Asked(sql=TOTAL, options={}, key=key) for key in ("a", "b"))
    assert one.digest != two.digest
    assert one.words == two.words


def test_answers_of_other_accounts_count_where_they_are_shared(house: Any) -> None:
    cleo = house.open("cleo")
    asked(house, house.open("bea"), f"{PARTS.replace('COUNT(*)', 'SUM(cost)')}", epsilon=0.2)
    before = len(house.charges())
    free = asked(house, cleo, "SELECT SUM(cost) AS n FROM visits WHERE city = 'Koper'", epsilon=0.1)
    assert free["derived_from"]
    assert len(house.charges()) == before
    assert free["remaining"]["epsilon"] == 3


def test_who_may_not_see_answers_is_not_told_of_them(house: Any) -> None:
    token = house.open("dora")
    asked(house, token, PARTS, epsilon=0.3)
    blind = house.token("dora", scopes=["explain"])
    said = house.value(blind, "plan", sql=SOME, epsilon=0.05)
    assert not said["bought"]
    assert "derived_from" not in said
    assert "receipt" not in said["text"]


@pytest.mark.slow
def test_who_sees_the_answers_of_others_sees_what_was_paid_in_part(tmp_path: Any) -> None:
    house = SmallHouse(tmp_path / "house", 'answer_after = 0\nshare = "everyone"').start()
    ada, vera, bea = house.open("ada"), house.open("vera", "viewer"), house.open("bea")
    asked(house, ada, PARTS, epsilon=0.2)
    part = asked(house, ada, SOME, epsilon=0.2)
    before = len(house.charges())
    for token in (vera, bea):
        seen = asked(house, token, SOME, epsilon=0.2)
        assert seen["rows"] == part["rows"]
        assert part["receipt"] in seen["derived_from"]
    assert len(house.charges()) == before
    other = asked(house, bea, SOME.replace("Koper", "Maribor"), epsilon=0.3)  # who buys anything pays for all of it
    assert other["receipt"] is not None
    assert not other.get("derived_from")
    assert house.stop() == 0
