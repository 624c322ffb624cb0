"""An approval is for what is measured and what it costs: it holds at every door, and for nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..house import BY_CITY, COUNT
from ..small_house import SmallHouse

EPSILON = 0.5
TABLE = "SELECT city, AVG(cost) AS c, COUNT(*) AS n FROM visits GROUP BY city"


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    gateway = 'answer_after = 0\nversion = "v1"\n[gateway.limits]\napprove_above = 0.3'
    made = SmallHouse(tmp_path_factory.mktemp("approved") / "house", gateway, epsilon=100)
    made.owner = made.open("olga", "owner")
    made.start()
    yield made
    made.stop()


def approve(house, token, sql, **options):
    """File a request for a question, and approve it."""
    assert house.ask(token, sql, **options).header["code"] == "gateway-approval"
    number = house.value(token, "requests")["requests"][0]["number"]
    house.value(house.owner, "decide", number=number, decision="approve")
    return number


def requests(house, token):
    return len(house.value(token, "requests")["requests"])


@pytest.mark.parametrize(
    ("sql", "options"),
    [
        (f"/* psql */ {COUNT}", {"format": "arrow"}),
        ("select count(*)\nfrom visits", {"confidence": 0.95}),
        (f"{COUNT} -- for the report", {"confidence": 0.9, "key": "k", "delta": None}),
    ],
)
def test_the_same_question_is_approved_at_every_door(house, sql, options, request):
    token = house.open(f"ada{abs(hash(request.node.name)) % 10**9}", epsilon=8)
    approve(house, token, COUNT, epsilon=EPSILON)
    assert house.ask(token, sql, epsilon=EPSILON, **options).header["ok"]
    assert requests(house, token) == 1
    assert house.value(token, "requests")["requests"][0]["state"] == "used"


OTHERS = {
    "more epsilon": (COUNT, {"epsilon": 0.50001}),
    "less epsilon": (COUNT, {"epsilon": 0.4}),
    "other rows": (f"{COUNT} WHERE city = 'Koper'", {"epsilon": EPSILON}),
    "another column": ("SELECT SUM(cost) AS n FROM visits", {"epsilon": EPSILON}),
    "other groups": (BY_CITY, {"epsilon": EPSILON}),
    "other bounds": (COUNT, {"epsilon": EPSILON, "bounds": {"rows_per_person": 2}}),
    "by its error": (COUNT, {"within": {"n": 13}}),
}


@pytest.mark.parametrize("name", OTHERS)
def test_an_approval_is_for_nothing_else(house, name):
    sql, options = OTHERS[name]
    token = house.open(f"other{[*OTHERS].index(name)}", epsilon=8)
    approve(house, token, COUNT, epsilon=EPSILON)
    refused = house.ask(token, sql, **options).header
    assert refused["code"] == "gateway-approval"
    assert requests(house, token) == 2
    assert house.ask(token, COUNT, epsilon=EPSILON).header["ok"]  # and it is still there


def test_a_larger_delta_is_another_cost(house):
    token, sql = house.open("dora", epsilon=8), "SELECT cost, COUNT(*) AS n FROM visits GROUP BY cost"
    approve(house, token, sql, epsilon=EPSILON, delta=1e-8)
    assert house.ask(token, sql, epsilon=EPSILON, delta=1e-7).header["code"] == "gateway-approval"
    assert house.ask(token, f"{sql} ORDER BY n", epsilon=EPSILON, delta=1e-8).header["ok"]


def test_weights_are_a_part_of_what_is_approved(house):
    token = house.open("wera", epsilon=8)
    approve(house, token, TABLE, epsilon=EPSILON)
    weighed = house.ask(token, TABLE, epsilon=EPSILON, weights={"n": 9, "c": 1}).header
    assert weighed["code"] == "gateway-approval"


def test_an_approval_is_for_one_account(house):
    ada, bea = house.open("one", epsilon=8), house.open("two", epsilon=8)
    approve(house, ada, COUNT, epsilon=EPSILON)
    assert house.ask(bea, COUNT, epsilon=EPSILON).header["code"] == "gateway-approval"
    assert house.ask(ada, COUNT, epsilon=EPSILON).header["ok"]


def test_where_a_number_is_asked_first_all_of_the_text_counts(house):
    """With the examples that such a question is planned with, these two have the same plan."""
    token = house.open("nora", epsilon=8)
    first = f"{COUNT} WHERE cost > (SELECT AVG(cost) FROM visits) AND cost <> 1.0"
    other = f"{COUNT} WHERE cost > 1.0 AND cost <> (SELECT AVG(cost) FROM visits)"
    approve(house, token, first, epsilon=EPSILON)
    assert house.ask(token, other, epsilon=EPSILON).header["code"] == "gateway-approval"
    assert house.ask(token, first, epsilon=EPSILON).header["ok"]


def test_bounds_that_are_found_first_are_approved_with_it(tmp_path: Path):
    gateway = "answer_after = 0\n[gateway.limits]\napprove_above = 0.3"
    made = SmallHouse(tmp_path / "house", gateway, epsilon=100)
    made.policy.write_text(made.policy.read_text().replace("rows_per_person = 3\n", ""))
    made.owner, token = made.open("olga", "owner"), made.open("ada", epsilon=8)
    made.start()
    try:
        approve(made, token, COUNT, epsilon=EPSILON)
        assert made.ask(token, "SELECT COUNT(*) AS m FROM visits", epsilon=0.6).header["code"] == "gateway-approval"
        made.stop()
        made.start()  # data without a version are opened anew: what is measured is the same
        assert made.ask(token, "SELECT COUNT(*) AS m FROM visits", epsilon=EPSILON).header["ok"]
        made.stop()
        made.policy.write_text(made.policy.read_text().replace('"Koper", ', '"Koper", "Piran", '))
        made.start()
        approved = f"{COUNT} WHERE cost < 5"
        approve(made, token, approved, epsilon=EPSILON)
        made.stop()
        made.policy.write_text(made.policy.read_text().replace('"Piran", ', ""))
        made.start()  # other declarations: somebody must look again
        assert made.ask(token, approved, epsilon=EPSILON).header["code"] == "gateway-approval"
    finally:
        made.stop()
