"""Prices: no more than what was asked for, and all that is left can be spent."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from ..connecting import connected

ASKED = ("MEDIAN(x)", "COUNT(*)", "COUNT(*) AS a, SUM(x) AS b, MEDIAN(x)")
SOME = {("add_or_remove", ASKED[0], 0.5), ("replace", ASKED[1], 2)}


@pytest.mark.parametrize(
    ("neighbors", "what", "epsilon"),
    [
        pytest.param(*one, marks=[] if one in SOME else [pytest.mark.slow])
        for one in itertools.product(("add_or_remove", "replace"), ASKED, (0.5, 2))
    ],
)
def test_undeclared_keys_keep_what_is_asked(neighbors, what, epsilon):
    data = pa.table({"pid": [1], "k": ["a"], "x": [1]})
    unit = {"person": "pid", "neighbors": neighbors}
    said = {"rows_per_person": 20, "groups_per_person": 20, "rows_per_group": 1, "columns": {"x": {"between": [0, 9]}}}
    for rule in ("best", "basic"):
        database = connected({"v": (data, said)}, unit=unit, rule=rule)
        plan = database.plan(f"SELECT k, {what} AS m FROM v GROUP BY k", epsilon=epsilon, delta=1e-6)
        assert plan.price.guarantee.delta_at(epsilon=epsilon) <= 1e-6 * (1 + 1e-6)
        assert plan.cost.epsilon <= epsilon
        database.answer(plan)


def test_a_question_for_all_that_is_left_fits():
    data = pa.table({"pid": [1], "k": ["a"]})
    database = connected({"v": (data, {"columns": {"k": {"choices": ["a", "b"]}}})}, limit=1, rule="basic")
    text = "SELECT k, COUNT(*) AS a, COUNT(*) FILTER (WHERE k = 'a') AS b FROM v GROUP BY k"
    assert database.plan(text, epsilon=1, delta=1e-6).cost.epsilon <= 1
    database.sql(text, epsilon=1, delta=1e-6)
