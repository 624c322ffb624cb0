"""Different values on every engine: bounded for each person, equal where no bound binds, found with little noise."""

from __future__ import annotations

import datetime
import math

import numpy as np
import pyarrow as pa
import pytest

from discreet import testing
from discreet.sql.pricing.found_rows import support_bound

from .test_engine import answer, database

COLUMNS = {"k": {"choices": ("a", "b", "c")}}
TEXT = "SELECT k, COUNT(DISTINCT x) AS n FROM t GROUP BY k"


def rows(people: int, each: int, values: int, seed: int = 4) -> pa.Table:
    rng = np.random.default_rng(seed)
    many = people * each
    return pa.table(
        {
            "pid": pa.array(np.repeat(np.arange(people), each)),
            "k": pa.array(rng.choice(["a", "b", "c"], many).tolist()),
            "x": pa.array(rng.integers(0, values, many)),
        }
    )


def test_without_a_bound_that_binds_all_values_are_counted(opened):
    data = rows(20, 10, 30)
    true = {
        k: len({x for own, x in zip(data["k"].to_pylist(), data["x"].to_pylist(), strict=True) if own == k})
        for k in "abc"
    }
    asked = database(opened, data, columns=COLUMNS, rows_per_person=10)
    assert dict(answer(asked, TEXT)) == true


@pytest.mark.parametrize("bounds", [(1, 1, 1), (4, 2, 3), (6, 3, 2)])
def test_bounds_hold_for_one_person(opened, bounds):
    total, groups, in_group = bounds
    declared = {"rows_per_person": total, "groups_per_person": groups, "rows_per_group": in_group}
    counts = [n for _, n in answer(database(opened, rows(1, 40, 20), columns=COLUMNS, **declared), TEXT)]
    assert 0 < sum(counts) <= total
    assert sum(n > 0 for n in counts) <= groups
    assert max(counts) <= in_group


def test_one_person_moves_each_count_by_at_most_its_limit(opened):
    """What is read to choose the limit, with and without one person, on neighbors that the same order is drawn for."""
    data = rows(12, 6, 25)
    mine = pa.table({"pid": [99] * 9, "k": ["a"] * 9, "x": [*range(20, 29)]})
    found = []
    for table in (data, pa.concat_tables([data, mine.cast(data.schema)])):
        asked = database(opened, table, columns=COLUMNS, rows_per_person=None)
        plan = asked.plan(TEXT, epsilon=5)
        bound = support_bound(plan.question, asked.schema.unit, 3, {}, plan.each_bound, 5)
        found.append([bound.read(asked.engine) for _ in range(10)])
        limits = bound.mechanism.limits
    for counts in found:
        assert all((np.diff(own) >= 0).all() for own in counts)
    # with all values of everybody nothing is drawn
    added = len({("a", x) for x in range(20, 29)} - set(zip(data["k"].to_pylist(), data["x"].to_pylist(), strict=True)))
    assert found[1][0][-1] - found[0][0][-1] == added
    assert limits[0] == 1
    assert max(own[0] for own in found[1]) <= 13


def test_few_values_of_many_people_need_a_small_limit(opened):
    asked = database(opened, rows(300, 12, 10), columns=COLUMNS, rows_per_person=None)
    found = asked.sql("SELECT COUNT(DISTINCT x) AS n FROM t", epsilon=5)
    assert int(found.notes[0].rpartition(" ")[2].rstrip(".")) <= 4
    with testing.no_noise():
        [[n]] = asked.sql("SELECT COUNT(DISTINCT x) AS n FROM t", epsilon=5).as_json()["rows"]
    assert n == 10


@pytest.mark.parametrize(
    ("values", "kind", "many"),
    [
        ([None, math.nan, math.inf, -math.inf, -0.0, 0.0, 1.5], pa.float64(), 5),
        ([None, "", " ", "a", "A", "\U0001d11e"], pa.string(), 5),
        ([None, datetime.date(1, 1, 1), datetime.date(9999, 12, 31)], pa.date32(), 2),
        ([None, True, False, True], pa.bool_(), 2),
        ([None, 2**63 - 1, -(2**63), 0], pa.int64(), 3),
    ],
    ids=str,
)
def test_odd_values(opened, values, kind, many):
    """Each is one value, and NULL is none."""
    people = list(range(2 * len(values)))
    data = pa.table({"pid": people, "x": pa.array(values * 2, kind)})
    assert answer(database(opened, data), "SELECT COUNT(DISTINCT x) AS n FROM t") == [(many,)]
