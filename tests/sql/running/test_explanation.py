"""How many people a question needs, said before anything is spent."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet.datasets.database import Database
from discreet.engines.duckdb.engine import DuckDB
from discreet.sql.schema import Column, Schema, Table

BY_CITY = "SELECT city, COUNT(*) AS n FROM t GROUP BY city"


def database(**people):
    """People of some cities, one row each, and nothing is declared."""
    cities = [city for city, count in people.items() for _ in range(count)]
    rows = pa.table({"pid": range(len(cities)), "city": pa.array(cities, pa.string())})
    columns = {"pid": Column(name="pid", type="integer"), "city": Column(name="city", type="text")}
    unit = dp.person("pid")
    schema = Schema(unit=unit, tables={"t": Table(name="t", columns=columns, person="pid", version="1")})
    ledger = dp.Ledger.open(":memory:", protects=unit, limit=dp.Approx(epsilon=100, delta=0.1), rule="basic")
    return Database(schema, DuckDB({"t": rows}), ledger)


@pytest.mark.slow
def test_a_plan_says_how_many_people_make_a_group():
    plan = database().explain(BY_CITY, epsilon=2, delta=1e-8)
    enough = plan.data["people_for_group"]
    assert f"about {float(f'{enough:.2g}'):,.0f} each" in plan
    asked = database(Rome=int(4 * enough), Oslo=int(enough / 4))
    assert asked.explain(BY_CITY, epsilon=2, delta=1e-8) == plan  # people change nothing
    assert asked.sql(BY_CITY, epsilon=2, delta=1e-8).table["city"].to_pylist() == ["Rome"]


def test_a_plan_says_which_quantile_an_extreme_is():
    long = "LEAST(GREATEST(LENGTH(city), 0), 9)"
    words = database(Rome=9).explain(f"SELECT MAX({long}) AS m, MEDIAN({long}) AS mid FROM t", epsilon=1)
    assert [column["is"].endswith(", as the quantile 0.999") for column in words.data["columns"]] == [True, False]


@pytest.mark.parametrize(("question", "where"), [("SELECT COUNT(*) AS n FROM t", ""), (BY_CITY, " in a group")])
def test_a_plan_says_below_how_many_people_the_error_is_large(question, where):
    plan = database().explain(question, epsilon=0.5, delta=1e-8)
    column = plan.data["columns"][-1]
    people = 10 * column["error_in_limits"]
    assert f"at least 10% below about {float(f'{people:.2g}'):,.0f} people{where} (" in column["in_words"]
    assert column["in_words"] in plan


def test_below_a_stated_number_of_people_the_error_of_an_average_is_stated_to_be_large():
    question = "SELECT city, AVG(length(city)) AS mean FROM t GROUP BY city"
    plan = database().explain(question, epsilon=0.5, delta=1e-8)
    noise = max(measure.get("error_in_limits", 0) for measure in plan.data["measures"])
    assert noise
    said = f"below about {float(f'{10 * noise:.2g}'):,.0f} people in a group (several times as many if most add less)"
    assert said in plan.data["columns"][-1]["in_words"]


@pytest.mark.parametrize(("shown", "used"), [("MEDIAN(age)", "rows"), ("COUNT(DISTINCT city)", "values")])
def test_an_error_is_not_promised_for_one_row_where_more_may_be_found(shown, used):
    question = f"SELECT {shown} AS x FROM t"
    ages = pa.table({"pid": list(range(100)), "age": [1.0] * 100, "city": ["Rome"] * 100})
    tables = {"t": {"source": ages, "version": "1"}}
    limits = {"path": ":memory:", "epsilon": 100.0}
    clinic = dp.connect({"ledger": limits, "unit": {"person": "pid"}, "tables": tables})
    plan = clinic.explain(question, epsilon=2)
    assert f"times the {used} of one person" in plan.data["columns"][0]["in_words"]
    assert plan.data["used_of_person"] == used
    assert "at most 1 row" not in plan


def test_with_fewer_people_the_error_is_over_a_tenth():
    question = "SELECT COUNT(*) AS n FROM t"
    people = round(9 * database().explain(question, epsilon=0.5).data["columns"][0]["error_in_limits"])
    answer = database(Rome=people).sql(question, epsilon=0.5)
    off = answer.table["n_error"][0].as_py()
    assert off is None or off > people / 10  # unknown, if too few people are above the limit to say what they lose


@pytest.mark.slow
@pytest.mark.parametrize("groups", [1, 30])
@pytest.mark.parametrize("people", [1000, 10_000])
def test_an_average_has_the_error_that_its_plan_says(groups, people):
    """In standard deviations of its values, for people who are not counted in advance. `bench/sql/averages.py` has more
    kinds of values, of which a tenth has more. One range in a hundred is found far too wide: the middle one of
    five answers counts.
    """
    rng, text = np.random.default_rng(7), "SELECT g, AVG(x) AS m FROM t GROUP BY g"
    many = people * groups
    rows = pa.table({"p": np.arange(many), "x": rng.normal(50, 5, many), "g": np.arange(many) % groups})
    table = {"source": rows, "columns": {"g": {"choices": list(range(groups))}}}
    ledger = {"path": ":memory:", "epsilon": 100, "delta": 1e-5, "delta_per_question": 1e-9}
    asked = dp.connect({"ledger": ledger, "unit": {"person": "p"}, "tables": {"t": table}})
    words = asked.explain(text, epsilon=1).data["columns"][-1]["in_words"]
    said = re.search(r"at most ± ([\d.]+) standard deviations of its values for ([\d,]+) people in a group", words)
    most = float(said[1]) * int(said[2].replace(",", "")) / people * 5
    errors = [error for _ in range(5) for error in asked.sql(text, epsilon=1).table["m_error"].to_pylist()]
    assert 0.1 < np.median([error or np.inf for error in errors]) / most < 2  # mostly below 1


@pytest.mark.parametrize("what", ["AVG(x) / 2", "STDDEV(x)", "SUM(x)"])
def test_only_of_an_average_deviations_are_told(what):
    rows = pa.table({"p": [1, 2], "x": [1.5, 2.5]})
    policy = {"ledger": {"path": ":memory:", "epsilon": 9}, "unit": {"person": "p"}, "tables": {"t": {"source": rows}}}
    assert "deviations" not in dp.connect(policy).explain(f"SELECT {what} AS m FROM t", epsilon=1)
