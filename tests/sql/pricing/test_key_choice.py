"""Groups whose keys are not declared: chosen by coins, or by weights where the ledger adds up ρ."""

from __future__ import annotations

import pyarrow as pa
import pytest

from discreet.mechanisms.selection.common_keys import CommonKeys
from discreet.mechanisms.selection.weighted_keys import WeightedKeys

from ..connecting import connected

ASKED = "SELECT k, COUNT(*) AS n FROM v GROUP BY k"
DATA = pa.table({"pid": list(range(1200)) * 2, "k": ["a"] * 1200 + ["b"] * 1100 + ["c"] * 99 + ["d"]})


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "kind"), [("best", CommonKeys), ("basic", CommonKeys), ("zcdp", WeightedKeys)])
@pytest.mark.parametrize("neighbors", ["replace", "add_or_remove"])
def test_groups_are_chosen_within_what_they_may_cost(neighbors, rule, kind):
    database = connected({"v": (DATA, {})}, unit={"person": "pid", "neighbors": neighbors}, rule=rule)
    plan = database.plan(ASKED, epsilon=4, delta=1e-6)
    choice = database.planner.choice_of_keys(plan)
    assert type(choice.mechanism) is kind
    promised = choice.mechanism.guarantee().stated_for(database.schema.unit)
    assert promised.delta_at(epsilon=plan.goal.epsilon) <= float(plan.goal.delta)
    if kind is CommonKeys:
        assert promised.delta_at(epsilon=plan.goal.epsilon) >= 0.98 * float(plan.goal.delta)
    shown = [row["k"] for row in database.answer(plan).table.to_pylist()]
    assert {"a", "b"} <= set(shown) <= {"a", "b", "c"}


@pytest.mark.slow
def test_a_note_says_how_many_people_a_group_needs():
    said = {"groups_per_person": 20, "rows_per_person": 20}
    told = " ".join(connected({"v": (DATA, said)}).sql(ASKED, epsilon=2, delta=1e-6).notes)
    assert "who are in no other, or" in told
    assert "who are each in 20" in told
