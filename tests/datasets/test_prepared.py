"""A question that is planned: what it owes before and after it is answered."""

from __future__ import annotations

import pytest

import discreet as dp

QUESTION = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"


@pytest.fixture
def clinic():
    columns = {
        "id": {"type": "integer"},
        "city": {"choices": ["Haifa", "Koper"]},
        "cost": {"type": "number", "between": "auto"},
    }
    source = {"id": [1, 2, 3], "city": ["Haifa", "Koper", "Koper"], "cost": [1.0, 2.0, 3.0]}
    table = {"source": source, "rows_per_person": 1, "version": "1", "columns": columns}
    policy = {"ledger": {"path": ":memory:", "epsilon": 1000}, "unit": {"person": "id"}, "tables": {"visits": table}}
    database = dp.connect(policy)
    yield database
    database.close()


def test_an_answer_is_owed_once(clinic):
    asked = clinic.prepare(QUESTION, epsilon=1)
    assert [cost.epsilon_at(delta=0) for cost in asked.owed()] == [1]
    assert not asked.finds_bounds
    asked.answer()
    assert asked.owed() == []
    assert clinic.prepare(f"{QUESTION} ORDER BY n LIMIT 1", epsilon=1).owed() == []
    assert clinic.prepare("SELECT city FROM visits LIMIT 0", epsilon=1).owed() == []


def test_bounds_that_are_found_first_are_owed_too(clinic):
    asked = clinic.prepare("SELECT SUM(cost) AS s FROM visits", epsilon=400)
    assert asked.finds_bounds
    assert len(asked.owed()) == 2
    asked.answer()
    again = clinic.prepare("SELECT SUM(cost) AS s FROM visits", epsilon=400)
    assert len(again.owed()) == 1  # at most: whether the rest was bought is known with the bound
    assert again.answer().replayed


def test_a_statement_over_two_questions_owes_both(clinic):
    two = "WITH a AS (SELECT COUNT(*) AS n FROM visits), b AS (SELECT COUNT(*) AS m FROM visits WHERE city = 'Koper') "
    asked = clinic.prepare(f"{two}SELECT n - m AS rest FROM a, b", epsilon=1)
    assert len(asked.owed()) == 2
    assert not asked.finds_bounds


UNDECLARED = [
    "SELECT city, AVG(cost) AS c FROM visits GROUP BY city UNION ALL SELECT 'all' AS city, AVG(cost) AS c FROM visits",
    "SELECT city, COUNT(*) AS n FROM visits GROUP BY city UNION ALL SELECT 'all' AS city, COUNT(*) AS n FROM visits",
    "SELECT COUNT(*) AS n FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)",
]


@pytest.fixture
def undeclared():
    source = {"id": [*range(3000)], "city": ["Haifa", "Koper", "Izola"] * 1000, "cost": [*map(float, range(3000))]}
    columns = {"id": {"type": "integer"}, "city": {"type": "text"}, "cost": {"type": "number"}}
    table = {"source": source, "version": "1", "columns": columns}
    ledger = {"path": ":memory:", "epsilon": 2.1, "delta": 1e-5}
    database = dp.connect({"ledger": ledger, "unit": {"person": "id"}, "tables": {"visits": table}})
    yield database
    database.close()


@pytest.mark.slow
@pytest.mark.parametrize("sql", UNDECLARED)
def test_a_statement_that_was_bought_is_shown_when_nothing_else_fits(undeclared, sql):
    """What it asks the ledger for depends on what it found first: its own price is not the one of its first plan."""
    first = undeclared.sql(sql, epsilon=2)
    charged = undeclared.ledger.count
    again = undeclared.sql(sql, epsilon=2)
    assert again.table == first.table
    assert (again.replayed, undeclared.ledger.count) == (True, charged)
    assert undeclared.prepare(sql, epsilon=2).finds_bounds


@pytest.mark.parametrize("sql", UNDECLARED)
def test_only_a_part_of_a_statement_was_bought(undeclared, sql):
    """The rest must fit, or nothing is charged."""
    undeclared.sql("SELECT AVG(cost) AS c FROM visits", epsilon=1)
    undeclared.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1)
    charged = undeclared.ledger.count
    with pytest.raises(dp.BudgetExhausted):
        undeclared.sql(sql, epsilon=2)
    assert undeclared.ledger.count == charged


@pytest.mark.slow
def test_a_statement_of_which_a_part_was_bought_fits_with_the_rest(undeclared):
    undeclared.sql("SELECT city, AVG(cost) AS c FROM visits GROUP BY city", epsilon=1, delta=1e-7)
    answer = undeclared.sql(UNDECLARED[0], epsilon=2, delta=2e-7)
    assert answer.table.num_rows == 4
    assert not answer.replayed
