"""What remains is said with the limit that is nearest, wherever it is said, and a plan says what would refuse it."""

from __future__ import annotations

import json

import pytest

from ..house import BY_CITY, COUNT
from ..small_house import SmallHouse


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    gateway = 'answer_after = 0\nversion = "v1"\n[gateway.limits]\nday = 0.95'
    made = SmallHouse(tmp_path_factory.mktemp("nearest") / "house", gateway)
    made.account = made.open("ada", epsilon=4)
    made.start()
    yield made
    made.stop()


def test_what_remains_names_the_nearest_limit(house):
    token = house.token("ada", epsilon=0.3)
    assert house.value(token, "budget")["remains"] == "ε = 4 remains, 0.3 of it with this token"
    assert house.value(token, "tables")["remains"].endswith(" remains, 0.3 of it with this token")
    plan = house.value(token, "plan", sql=COUNT, epsilon=0.1)
    assert (plan["left"], plan["after"]) == ("ε = 4, 0.3 of it with this token", "ε = 3.9, 0.2 of it with this token")
    assert plan["text"].endswith("\nAfter it, ε = 3.9 remains, 0.2 of it with this token.")
    answer = house.ask(token, COUNT, epsilon=0.3)
    assert answer.header["remains"] == "ε = 3.7 remains, nothing of it with this token"
    assert json.loads(answer.body)["remaining"]["epsilon"] == 3.7
    again = house.ask(token, COUNT, epsilon=0.3)  # it is the same but for `replayed`, and says what remained then
    assert json.loads(again.body) == {**json.loads(answer.body), "replayed": True}
    assert "remains" not in again.header
    other = house.ask(house.account, BY_CITY, epsilon=0.6)
    assert other.header["remains"] == "ε = 3.1 remains, 0.05 of it today"
    assert house.value(house.account, "me")["limits"]["account"] == {
        "limit": {"epsilon": 4.0, "delta": 1e-05},
        "left": {"epsilon": 3.1},
    }


def test_of_an_account_without_a_nearer_limit_the_account_is_said(house):
    token = house.open("bea", epsilon=0.5)
    assert house.value(token, "budget")["remains"] == "ε = 0.5 remains"
    assert house.value(token, "tables")["remains"].endswith(" remains")
    assert house.ask(token, COUNT, epsilon=0.2).header["remains"] == "ε = 0.3 remains"


def test_who_has_no_budget_is_told_of_none(house):
    token = house.open("vera", "viewer")
    assert "account" not in house.value(token, "me")["limits"]
    assert "remains" not in house.ask(token, COUNT, epsilon=0.3).header


# --- what does not fit --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def undeclared(tmp_path_factory):
    gateway = 'answer_after = 0\nversion = "v1"\n[gateway.limits]\napprove_above = 0.3'
    made = SmallHouse(tmp_path_factory.mktemp("undeclared") / "house", gateway)
    made.policy.write_text(made.policy.read_text().replace("rows_per_person = 3\n", ""))
    made.account, made.other = made.open("ada", epsilon=0.5), made.open("bea", epsilon=0.5)
    made.start()
    for token in (made.account, made.other):
        assert made.ask(token, f"{COUNT} WHERE cost < 9", epsilon=0.2).header["ok"]
        assert made.ask(token, f"{COUNT} WHERE cost < 8", epsilon=0.2).header["ok"]
    yield made
    made.stop()


@pytest.mark.parametrize("epsilon", [0.2, 0.4])
@pytest.mark.parametrize("sql", [COUNT, "SELECT COUNT(DISTINCT id) AS n FROM visits"])
def test_a_plan_that_does_not_fit_says_what_the_refusal_says(undeclared, sql, epsilon):
    """Bounds are found first, or not: it is never refused to explain, and no limit or person is asked before."""
    plan = undeclared.value(undeclared.account, "plan", sql=sql, epsilon=epsilon)
    refused = undeclared.ask(undeclared.account, sql, epsilon=epsilon).header
    assert (plan["fits"], plan["after"], plan["left"]) == (False, None, "ε = 0.1")
    assert (refused["kind"], refused["code"]) == ("BudgetExhausted", "budget-exhausted")
    assert plan["hindrance"] == f"Asked now, it would be refused: {refused['message']}"
    assert plan["text"].lower().count(plan["hindrance"].lower()) == 1
    assert f"ε = {epsilon}" in refused["message"]
    assert "ε = 0.1." in refused["message"]


def test_what_the_account_cannot_pay_is_not_filed(undeclared):
    assert undeclared.ask(undeclared.other, COUNT, epsilon=0.45).header["code"] == "budget-exhausted"
    assert undeclared.value(undeclared.other, "requests")["requests"] == []


def test_what_was_bought_fits_with_nothing_left(undeclared):
    token = undeclared.account
    assert undeclared.ask(token, f"{COUNT} WHERE cost < 7", epsilon=0.1).header["ok"]
    plan = undeclared.value(token, "plan", sql=f"{COUNT} WHERE cost < 8", epsilon=0.2)
    assert (plan["bought"], plan["fits"], plan["hindrance"], plan["left"]) == (True, True, None, "nothing")
    assert "refused" not in plan["text"]
    assert undeclared.ask(token, f"{COUNT} WHERE cost < 8", epsilon=0.2).header["ok"]
    new = f"{COUNT} WHERE cost < 6"
    only = undeclared.call("ask", token, sql=new, epsilon=0.2, bought_only=True).header
    assert only["code"] == "gateway-not-bought"
