"""What the page says about a plan, from plans of the library: nothing is asked and no vault runs."""

from __future__ import annotations

import pyarrow as pa
import pytest

import discreet as dp
from discreet.gateway.console.plans import view_plan
from discreet.sql.running.notes import RARE

BY_CITY = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"


@pytest.fixture(scope="module")
def clinic():
    rows = pa.table({"pid": range(100), "city": ["Rome"] * 100, "cost": [1.5] * 100})
    ledger = {"path": ":memory:", "epsilon": 100.0, "delta": 1e-6, "delta_per_question": 1e-8}
    tables = {"visits": {"source": rows, "version": "1"}}
    return dp.connect({"ledger": ledger, "unit": {"person": "pid"}, "tables": tables})


def viewed(clinic, question, epsilon=1.0, *, bought=False):
    """The plan of a question, as the vault gives it to the page."""
    facts = {
        "epsilon": epsilon,
        "bought": bought,
        "fits": True,
        "left": None,
        "after": None,
        "spends": False,
        "hindrance": None,
    }
    return view_plan({**clinic.explain(question, epsilon=epsilon).data, **facts})


@pytest.mark.slow
def test_the_first_line_says_how_many_people_a_group_needs(clinic):
    enough = clinic.explain(BY_CITY, epsilon=0.1).data["people_for_group"]
    [warning] = viewed(clinic, BY_CITY, 0.1).warnings
    assert f"about {float(f'{enough:.2g}'):,.0f} people" in warning
    assert "ε = 0.1" in warning
    assert viewed(clinic, BY_CITY, 2.0).warnings != viewed(clinic, BY_CITY, 0.1).warnings
    assert not viewed(clinic, BY_CITY, bought=True).warnings
    assert not viewed(clinic, "SELECT COUNT(*) FROM visits").warnings


def test_a_value_that_is_not_declared_is_warned_of():
    rows = pa.table({"pid": range(9), "city": ["Rome"] * 9})
    tables = {"visits": {"source": rows, "version": "1", "columns": {"city": {"choices": ["Rome", "Lod"]}}}}
    one = dp.connect({"ledger": {"path": ":memory:", "epsilon": 9.0}, "unit": {"person": "pid"}, "tables": tables})
    [said] = viewed(one, "SELECT COUNT(*) AS n FROM visits WHERE city = 'rome'").warnings
    assert said == "'rome' is not among the declared choices of city. Did you mean Rome?"


def test_a_median_without_declarations_is_not_promised_for_one_row(clinic):
    plan = viewed(clinic, "SELECT MEDIAN(cost) AS m FROM visits")
    assert "times the rows of one person" in plan.columns[0].error
    assert plan.columns[0].within is None  # an error that depends on what is found cannot be asked for
    assert any("(until then, errors are shown for public defaults)" in said for said in plan.losses)
    assert not any("at most" in said for said in plan.losses)


def test_an_average_by_undeclared_groups_is_warned_of(clinic):
    plan = viewed(clinic, "SELECT city, AVG(cost) AS mean FROM visits GROUP BY city", 0.1)
    noise = max(float(share.noise.split()[1].replace(",", "")) for share in plan.shares)
    below = plan.columns[-1].error.split("below about ")[1].split(" people")[0]
    assert float(below.replace(",", "")) == pytest.approx(10 * noise, rel=0.06)


def test_one_row_is_used(clinic):
    rows = pa.table({"pid": range(9), "cost": [1.5] * 9})
    columns = {"cost": {"between": [0, 9]}}
    tables = {"visits": {"source": rows, "version": "1", "rows_per_person": 1, "columns": columns}}
    one = dp.connect({"ledger": {"path": ":memory:", "epsilon": 9.0}, "unit": {"person": "pid"}, "tables": tables})
    assert any("at most 1 row is used" in said for said in viewed(one, "SELECT MEDIAN(cost) FROM visits").losses)


def test_before_a_sum_is_bought_it_says_what_the_error_does_not_cover(clinic):
    [said] = viewed(clinic, "SELECT SUM(cost) AS total FROM visits").losses
    assert RARE in said
    assert "It is mostly unknown (± ?) below about " in said
    assert not any(RARE in one for one in viewed(clinic, "SELECT COUNT(*) AS n FROM visits").losses)


def test_before_a_median_is_bought_it_says_how_many_people_its_range_needs(clinic):
    text = "SELECT MEDIAN(cost) AS m FROM visits"
    [found_if] = clinic.explain(text, epsilon=0.1).data["found_if"]
    [warning] = viewed(clinic, text, 0.1).warnings
    assert f"about {float(format(found_if['people'], '.2g')):,.0f} people" in warning
    assert "stays charged" in warning
    assert not viewed(clinic, text, bought=True).warnings
