"""Units of a few rows in a policy: what is said, what is charged, and what is refused."""

from __future__ import annotations

import datetime
from fractions import Fraction
from typing import Any

import pytest

import discreet as dp
from discreet.gateway.remote import _unit as read_unit
from discreet.publication.schema import read_schema, written_schema
from discreet.sql.pricing.automatic_bounds import column_bound

from ..refusing import refuses

ROWS = {
    "region": ["N", "S", "E"] * 300,
    "city": ["a", "b", "c", "d"] * 225,
    "cost": [float(n % 50) for n in range(900)],
    "many": [float(n) for n in range(900)],
}
COLUMNS = {"region": {"choices": ["N", "S", "E"]}, "cost": {"between": [0, 50]}, "city": {"type": "text"}}
FEW = {"rows": 3, "groups": 2, "by": "region"}


def connect(unit: dict[str, Any], columns: Any = COLUMNS, **more: Any) -> Any:
    return dp.connect(
        {
            "ledger": {"path": ":memory:", "epsilon": 100, "delta": 1e-3},
            "unit": unit,
            "tables": {"v": {"source": ROWS, "columns": columns}, **more},
        }
    )


@pytest.mark.parametrize(
    ("unit", "meant"),
    [
        ({"rows": 3}, dp.row(times=3)),
        ({"rows": 1}, dp.row()),
        (FEW, dp.row(times=3, groups=2, by="region")),
        (FEW | {"neighbors": "replace"}, dp.row(times=3, groups=2, by="region", neighbors="replace")),
    ],
)
def test_a_policy_says_how_many_rows(unit: Any, meant: Any) -> None:
    database = connect(unit)
    assert database.schema.unit == meant
    answer = database.sql("SELECT COUNT(*) AS n FROM v", epsilon=1)
    assert answer.guarantee.protects == meant
    assert database.ledger.entries()[0].guarantee.protects == meant


@pytest.mark.parametrize(
    "unit",
    [
        {"row": True, "rows": 3},
        {"person": "city", "rows": 3},
        {"rows": True},
        {"groups": 2, "by": "region"},
        {"rows": 3, "groups": 2},
        {"rows": 3, "by": "region"},
        {"rows": 0},
        {"rows": 2.5},
        {"rows": "3"},
        {"rows": 2**40},
        {"rows": 3, "groups": 2, "by": 7},
        {"rows": 3, "groups": 2, "by": "street"},
        {"person": "city", "groups": 2, "by": "region"},
        {"rows": 3, "lives_in": "region"},
    ],
)
def test_units_that_mean_nothing_are_refused(unit: Any) -> None:
    with pytest.raises(dp.errors.InvalidArgument):
        connect(unit)


def test_each_private_table_has_the_groups() -> None:
    streets = {"source": {"name": ["x"]}}
    with refuses(dp.errors.InvalidArgument, "unit-groups"):
        connect(FEW, streets=streets)
    assert connect(FEW, streets=streets | {"public": True}).tables


def sensitivity(database: Any, text: str) -> Any:
    return database.plan(text, epsilon=1, delta=0).price.sensitivities[0].exact


def test_what_a_few_rows_move() -> None:
    few = connect(FEW)
    assert sensitivity(few, "SELECT COUNT(*) AS n FROM v") == 6
    assert sensitivity(few, "SELECT COUNT(*) AS n FROM v WHERE cost > 3 AND city = 'a'") == 6
    assert sensitivity(few, "SELECT region, COUNT(*) AS n FROM v GROUP BY region") == 6
    twice = {"source": {"name": ["a", "a", "b"]}, "public": True}
    joined = connect(FEW, twice=twice)
    assert sensitivity(joined, "SELECT COUNT(*) AS n FROM v JOIN twice ON city = name") == 12
    assert sensitivity(connect(FEW | {"neighbors": "replace"}), "SELECT COUNT(*) AS n FROM v") == 12


def test_the_range_of_a_column_is_found_for_all_rows_of_a_unit() -> None:
    for unit, most in ((FEW, 6), (FEW | {"neighbors": "replace"}, 12)):
        found = connect(unit, COLUMNS | {"cost": {"between": "auto"}})
        bound = column_bound(found.schema, "between", ("v", "cost"), Fraction(1))
        assert bound.sensitivity.exact == most
        assert bound.guarantee.largest_loss <= 1
        assert found.sql("SELECT SUM(cost) AS n FROM v", epsilon=50).guarantee.protects == found.schema.unit


@pytest.mark.parametrize(
    "text",
    [
        "SELECT MEDIAN(cost) AS m FROM v",
        "SELECT region, MEDIAN(cost) AS m FROM v GROUP BY region",
        "SELECT MODE(region) AS m FROM v",
        "SELECT city, MODE(region) AS m FROM v GROUP BY city",
    ],
)
@pytest.mark.parametrize("neighbors", ["add_or_remove", "replace"])
def test_what_is_chosen_is_charged_for_all_rows(text: str, neighbors: str) -> None:
    """One row of a few has a sixth of ε: the choice has the rate of a question about one row with as much."""
    columns = COLUMNS | {"city": {"choices": ["a", "b", "c", "d"]}}
    few = connect(FEW | {"neighbors": neighbors}, columns).plan(text, epsilon=6, delta=0)
    one = connect({"row": True, "neighbors": neighbors}, columns).plan(text, epsilon=1, delta=0)
    assert few.price.parts[0].mechanism.__class__ == one.price.parts[0].mechanism.__class__
    assert float(few.price.parts[0].mechanism.rate) == pytest.approx(float(one.price.parts[0].mechanism.rate))
    assert few.price.guarantee.largest_loss <= 6


def test_groups_that_are_not_declared_need_more_rows() -> None:
    text = "SELECT city, COUNT(*) AS n FROM v GROUP BY city"
    plans = [connect(unit).plan(text, epsilon=1, delta=1e-6) for unit in ({"row": True}, {"rows": 3}, FEW)]
    bars = [plan.price.selection.threshold for plan in plans]
    assert 2.5 * bars[0] < bars[1] < bars[2] / 1.8
    assert all(plan.cost.epsilon <= 1 and float(plan.cost.delta) <= 1e-6 for plan in plans)
    answer = connect({"rows": 3}).sql(text, epsilon=3, delta=1e-6)
    assert [row["city"] for row in answer] == ["a", "b", "c", "d"]
    assert "rows are not shown" in str(answer)


def test_with_a_large_epsilon_groups_are_still_chosen() -> None:
    plan = connect({"rows": 3}).plan("SELECT city, COUNT(*) AS n FROM v GROUP BY city", epsilon=99, delta=1e-6)
    assert plan.price.selection.threshold >= 2
    assert float(plan.cost.epsilon) <= 99


def test_an_explanation_says_who_is_protected_and_that_no_row_is_left_out() -> None:
    said = str(connect(FEW).explain("SELECT region, COUNT(*) AS n FROM v GROUP BY region", epsilon=1))
    assert "up to 3 rows in each of up to 2 groups of region" in said
    assert "at most 6 rows, 2 groups, 3 rows in a group" in said
    assert "No row is left out" in said
    assert "left out at random" not in said
    data = connect(FEW).explain("SELECT COUNT(*) AS n FROM v", epsilon=1).data
    assert (data["one_unit"], data["one_person"]) == ({"rows": 6, "groups": 1, "rows_in_group": 6}, None)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT COUNT(*) AS n FROM v AS a JOIN v AS b ON a.city = b.city", "sql-join-several-rows"),
        ("SELECT SUM(many) AS n FROM v", "sql-no-bounds"),
        ("SELECT AVG(many) AS n FROM v", "sql-no-bounds"),
        ("SELECT VARIANCE(many) AS n FROM v", "sql-no-bounds"),
        ("SELECT city, region, COUNT(*) AS n FROM v GROUP BY ROLLUP (region, city)", "sql-several-rows-keys"),
        ("SELECT city, SUM(many) AS n FROM v GROUP BY city", "sql-several-rows-keys"),
    ],
)
def test_questions_without_a_known_price_are_refused(text: str, code: str) -> None:
    columns = {**COLUMNS, "city": {"type": "text", "frequency": 2}, "many": {"type": "number"}}
    database = connect(FEW, columns)
    with refuses(dp.errors.DiscreetError, code):
        database.sql(text, epsilon=1, delta=1e-6)
    assert not database.ledger.entries()


def test_a_model_is_refused_before_it_is_charged() -> None:
    database = connect(FEW)
    with refuses(dp.errors.InvalidArgument, "unit-several-rows"):
        database.fit(dp.learn.LinearRegression(epsilon=1.0), "v", features=["cost"], target="cost")
    assert not database.ledger.entries()


TIMED: dict[str, Any] = {
    "source": {"day": [datetime.date(2024, 1 + n % 2, 1) for n in range(90)]},
    "columns": {"day": {"type": "date"}},
    "time": {"column": "day", "block": "month"},
}


def test_a_few_rows_of_one_month_have_its_budget() -> None:
    policy = {"ledger": {"path": ":memory:", "epsilon": 2}, "tables": {"v": TIMED}}
    monthly = dp.connect(policy | {"unit": {"rows": 3, "per": "month"}})
    assert monthly.plan("SELECT COUNT(*) AS n FROM v", epsilon=1).price.sensitivities[0].exact == 3
    for part in ("2024-01", "2024-02"):
        monthly.part(part).sql("SELECT COUNT(*) AS n FROM v", epsilon=2)
    with refuses(dp.errors.BudgetExhausted, "budget-exhausted"):
        monthly.part("2024-01").sql("SELECT COUNT(*) + 1 AS n FROM v WHERE day > '2023-01-01'", epsilon=1)
    anywhere = dp.connect(policy | {"unit": {"rows": 3}})
    anywhere.part("2024-01").sql("SELECT COUNT(*) AS n FROM v", epsilon=2)
    with refuses(dp.errors.BudgetExhausted, "budget-exhausted"):
        anywhere.part("2024-02").sql("SELECT COUNT(*) AS n FROM v", epsilon=2)


def test_a_few_rows_of_one_month_need_a_month() -> None:
    with refuses(dp.errors.InvalidArgument, "unit-needs-time"):
        connect({"rows": 3, "per": "month"})
    assert connect({"row": True, "per": "month"}).tables


def test_a_standing_question_refuses_a_few_rows() -> None:
    policy = {"ledger": {"path": ":memory:", "epsilon": 2}, "tables": {"v": TIMED}, "unit": {"rows": 3}}
    with refuses(dp.errors.InvalidArgument, "unit-several-rows"):
        dp.connect(policy).standing("SELECT COUNT(*) AS n FROM v", every="month", times=3, epsilon=1)


def test_a_few_rows_are_written_and_read() -> None:
    for unit in (FEW, {"rows": 3, "neighbors": "replace"}, {"row": True}):
        schema = connect(unit).schema
        written = written_schema(schema)
        assert read_schema(written).unit == schema.unit == read_unit(repr(schema.unit))
        assert ("times" in written["unit"]) == ("rows" in unit)


def test_a_few_rows_are_said_in_risk() -> None:
    said = str(dp.risk(dp.Pure(epsilon=1, protects=dp.row(times=3, groups=2, by="region"))))
    assert "up to 3 rows in each of up to 2 groups of region" in said
    assert "these rows are in the data" in said
