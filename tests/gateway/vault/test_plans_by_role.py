"""Plans say what an account may know: to who has no budget, nothing of that of the data set, and nothing of answers."""

from __future__ import annotations

import itertools
import json

import pytest

from ..house import COUNT
from ..small_house import SmallHouse

ROLES = {"ada": "analyst", "olga": "owner", "vera": "viewer", "stefan": "steward", "aude": "auditor"}
_NEW = itertools.count(11)


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    made = SmallHouse(tmp_path_factory.mktemp("plans") / "house", 'answer_after = 0\nversion = "v1"')
    made.tokens = {name: made.open(name, role) for name, role in ROLES.items()}
    made.start()
    yield made
    made.stop()


@pytest.mark.some_quick(5)
@pytest.mark.parametrize("name", ROLES)
@pytest.mark.parametrize("epsilon", [0.1, 500.0])
def test_who_has_no_budget_is_not_told_that_of_the_data_set(house, name, epsilon):
    token = house.tokens[name]
    before = house.value(token, "plan", sql=COUNT, epsilon=epsilon)
    house.ask(house.tokens["olga"], COUNT, epsilon=next(_NEW) / 1000)  # the data set has less now
    after = house.value(token, "plan", sql=COUNT, epsilon=epsilon)
    if ROLES[name] in ("analyst", "owner"):
        assert before["fits"] == (epsilon < 1)
        assert (before["left"] != after["left"]) == (ROLES[name] == "owner")
        return
    assert before == after
    assert (before["left"], before["after"], before["fits"]) == (None, None, True)
    assert "remain" not in json.dumps(before)


def test_whether_something_was_bought_is_said_to_who_may_see_it(house):
    text = f"{COUNT} WHERE city = 'Koper'"
    assert house.ask(house.tokens["olga"], text, epsilon=0.25).header["ok"]
    bought = {name: house.value(house.tokens[name], "plan", sql=text, epsilon=0.25)["bought"] for name in ROLES}
    assert bought == {"ada": False, "olga": True, "vera": True, "stefan": False, "aude": False}
    blind = house.token("olga", scopes=["explain"])
    assert house.value(blind, "plan", sql=text, epsilon=0.25)["bought"] is False


def test_without_the_right_to_see_answers_a_plan_hides_what_was_bought(house):
    """A limit that would refuse the question is told, unless the answer is there already and may be seen."""
    text = f"{COUNT} WHERE city = 'Haifa'"
    assert house.ask(house.tokens["olga"], text, epsilon=0.25).header["ok"]
    seeing, blind = (house.token("olga", scopes=scopes, epsilon=0.1) for scopes in (["explain", "replay"], ["explain"]))
    assert house.value(seeing, "plan", sql=text, epsilon=0.25)["hindrance"] is None
    bought, new = (house.value(blind, "plan", sql=sql, epsilon=0.25) for sql in (text, text.replace("Haifa", "Piran")))
    assert "this token" in bought["hindrance"]
    assert [bought[name] for name in ("hindrance", "fits", "after")] == [
        new[name] for name in ("hindrance", "fits", "after")
    ]
    assert bought["after"] != bought["left"]
    assert house.value(house.tokens["stefan"], "plan", sql=text, epsilon=0.25)["hindrance"] is None
