"""Questions whose groups and limits are found first: one price, one receipt, and the same answer again."""

from __future__ import annotations

import json
from typing import Any

import pyarrow.parquet as pq
import pytest

from ..house import rows
from ..small_house import SmallHouse

SQL = "SELECT city, COUNT(*) AS n, AVG(cost) AS c FROM visits GROUP BY city"
BEYOND = "SELECT COUNT(*) AS n FROM visits WHERE cost > 5"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Any:
    made = SmallHouse(tmp_path_factory.mktemp("found") / "house")
    pq.write_table(rows(3000), made.folder / "visits.parquet")
    undeclared = [line for line in made.policy.read_text().splitlines() if not line.startswith(("choices", "rows_per"))]
    made.policy.write_text("\n".join(undeclared).replace("between = [0, 100]", 'type = "number"'))
    made.start()
    yield made
    assert made.stop() == 0
    assert made.ledger.verify() > 0


def test_its_answer_is_shown_again_and_a_retry_is_free(house: Any) -> None:
    """The limits on one person are found for the groups that were found, and not for those that were expected."""
    token = house.open("ada")
    first = house.ask(token, SQL, epsilon=0.5, key="one")
    assert first.header["ok"], first.header
    charged = len(house.charges())
    retried = house.ask(token, SQL, epsilon=0.5, key="one")
    assert retried.header["ok"], retried.header
    receipt = json.loads(first.body)["receipt"]
    assert house.value(token, "again", receipt=receipt)["rows"] == json.loads(first.body)["rows"]
    assert json.loads(retried.body)["receipt"] == receipt
    assert len(house.charges()) == charged
    for other in ({"sql": SQL, "epsilon": 0.4}, {"sql": BEYOND, "epsilon": 0.5}):
        assert house.call("ask", token, **other, key="one").header["code"] == "ledger-key-reused"
    assert len(house.charges()) == charged


def test_the_history_has_its_whole_cost(house: Any) -> None:
    """What was found first belongs to the price: the answer's own entry is about half of it."""
    token = house.open("bea")
    assert house.ask(token, SQL, epsilon=0.5, key="one").header["ok"]
    assert house.ask(token, BEYOND, epsilon=0.2).header["ok"]
    many, few = (one["cost"] for one in house.value(token, "history")["questions"])
    assert 0.4 < many <= 0.5 + 1e-9
    assert few == pytest.approx(0.2)


@pytest.mark.slow
def test_statements_of_several_questions_are_shown_again_when_nothing_else_fits(house: Any) -> None:
    rest = f"{SQL} UNION ALL SELECT 'all' AS city, COUNT(*) AS n, AVG(cost) AS c FROM visits"
    asked_first = "SELECT COUNT(*) AS n FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)"
    for name, sql in (("cyd", rest), ("dan", asked_first)):
        token = house.open(name, epsilon=0.55)
        first = house.ask(token, sql, epsilon=0.5)
        assert first.header["ok"], first.header
        charged, released = len(house.charges()), json.loads(first.body)
        again = house.ask(token, sql, epsilon=0.5)
        assert again.header["ok"], again.header
        assert json.loads(again.body)["rows"] == released["rows"]
        receipt = house.value(token, "history")["questions"][0]["receipt"]
        assert house.value(token, "again", receipt=receipt)["rows"] == released["rows"]
        assert house.value(token, "plan", sql=sql, epsilon=0.5)["bought"] is True
        assert len(house.charges()) == charged
