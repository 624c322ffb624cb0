"""Tables that lead to the person through a key of another: whose a row is, and what one person can move."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet.datasets.database import Database
from discreet.engines.duckdb.engine import DuckDB
from discreet.sql.measuring.measure import read_measures
from discreet.sql.pricing.price import contribution
from discreet.sql.question import Bounds
from discreet.sql.schema import Column, Schema, Table

from ...refusing import refuses

PERSON = dp.person("pid")
QUICK = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
QUESTIONS = [
    "SELECT k, COUNT(*) AS n, SUM(x) AS s FROM items GROUP BY k",
    "SELECT c, COUNT(*) AS n, SUM(x) AS s FROM items JOIN visits USING (vid) GROUP BY c",
    "SELECT c, COUNT(DISTINCT pid) AS n, COUNT(*) AS m FROM visits LEFT JOIN items USING (vid) GROUP BY c",
    "SELECT COUNT(*) AS n FROM parts",
    "SELECT k, COUNT(*) AS n FROM parts p, items i WHERE p.iid = i.iid GROUP BY k",
    "SELECT COUNT(*) AS n, SUM(x) AS s FROM (SELECT x FROM items UNION ALL SELECT x FROM items WHERE k = 'a') u",
]


def column(name, kind="integer", **known):
    return Column(name=name, type=kind, **known)


COLUMNS = {
    "visits": [column("pid"), column("vid"), column("c", "text", choices=("e", "f"))],
    "items": [column("vid"), column("iid"), column("k", "text", choices=("a", "b")), column("x", between=(0, 5))],
    "parts": [column("iid")],
}
THROUGH = {"visits": None, "items": "visits.vid", "parts": "iid -> items.iid"}


def data_of(visits, items, parts):
    rows = {"visits": visits, "items": items, "parts": [(part,) for part in parts]}
    kinds = {"integer": pa.int64(), "text": pa.string()}
    return {
        name: pa.table({c.name: pa.array([row[n] for row in rows[name]], kinds[c.type]) for n, c in enumerate(columns)})
        for name, columns in COLUMNS.items()
    }


def database(data, **bounds):
    tables = {
        name: Table(
            name=name,
            columns={c.name: c for c in columns},
            person="pid" if name == "visits" else None,
            through=THROUGH[name],
            **({"rows_per_person": 3} | bounds),
        )
        for name, columns in COLUMNS.items()
    }
    ledger = dp.Ledger.open(":memory:", protects=PERSON, limit=dp.Approx(epsilon=1000, delta=0.1), rule="basic")
    return Database(Schema(unit=PERSON, tables=tables), DuckDB(data), ledger)


def exact(data, text, **bounds):
    asked = database(data, **bounds)
    plan = asked.plan(text, epsilon=1)
    return plan, read_measures(plan.question, asked.engine, plan.bounds, plan.groups)


VISITS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from("ef")), max_size=5)
ITEMS = st.lists(
    st.tuples(st.integers(0, 7), st.integers(0, 9), st.sampled_from("ab"), st.integers(-2, 9)), max_size=12
)
PARTS = st.lists(st.integers(0, 9), max_size=8)


@pytest.mark.slow
@given(mine=VISITS, others=VISITS, items=ITEMS, parts=PARTS, text=st.sampled_from(QUESTIONS))
@QUICK
def test_one_person_moves_no_more_than_is_priced(mine, others, items, parts, text):
    """Others have one visit each, under keys that are theirs (4 to 7) or shared with the person (0 to 3), and bounds
    that never bind: whatever changes is the person's doing. Rows that led to the person alone go with the person.
    """
    visits = [(1, vid, c) for vid, c in mine]
    others = [(100 + n, vid + 4 * (n % 2), c) for n, (vid, c) in enumerate(others)]
    kept = {vid for _, vid, _ in others}
    after = [item for item in items if item[0] in kept or item[0] not in {vid for _, vid, _ in visits}]
    bounds = {"rows_per_person": 200}
    plan, first = exact(data_of(visits + others, items, parts), text, **bounds)
    _, second = exact(data_of(others, after, parts), text, **bounds)
    for measure, a, b in zip(plan.question.measures, first, second, strict=True):
        apart = np.abs(np.asarray(a, dtype=object) - np.asarray(b, dtype=object))
        bound = contribution(measure, plan.bounds, PERSON)
        assert sum(apart) <= bound.l1
        assert sum(apart**2) <= bound.squared


def test_a_row_of_two_owners_is_there_for_each():
    data = data_of([(1, 7, "e"), (2, 7, "f"), (2, 7, "f")], [(7, 0, "a", 5)], [])
    _, (count, total) = exact(data, "SELECT k, COUNT(*) AS n, SUM(x) AS s FROM items GROUP BY k")
    assert count.tolist() == [2, 0]
    assert total.tolist()[0] > 0


def test_rows_that_lead_to_nobody_are_left_out():
    data = data_of(
        [(None, 7, "e"), (1, None, "e"), (1, 8, "e")], [(7, 0, "a", 5), (None, 1, "a", 5), (9, 2, "a", 5)], [0]
    )
    for text in ("SELECT COUNT(*) AS n FROM items", "SELECT COUNT(*) AS n FROM parts"):
        assert exact(data, text)[1][0].tolist() == [0]


def test_one_person_with_a_thousand_rows_has_three():
    data = data_of([(1, vid, "e") for vid in range(50)], [(n % 50, n, "a", 5) for n in range(1000)], list(range(1000)))
    for text in QUESTIONS:
        plan, values = exact(data, text)
        for measure, value in zip(plan.question.measures, values, strict=True):
            assert sum(value) <= contribution(measure, plan.bounds, PERSON).l1


def test_the_bound_is_reached():
    data = data_of([(1, vid, "e") for vid in range(50)], [(n % 50, n, "a", 5) for n in range(1000)], list(range(1000)))
    plan, (count, total) = exact(data, QUESTIONS[0])
    assert count.tolist() == [3, 0]
    assert total[0] == contribution(plan.question.measures[1], plan.bounds, PERSON).l1


def test_joining_by_what_does_not_lead_to_the_person_is_refused():
    asked = database(data_of([], [], []))
    for text in (
        "SELECT COUNT(*) AS n FROM items a JOIN items b ON a.k = b.k",
        "SELECT COUNT(*) AS n FROM visits v JOIN items i ON v.pid = i.iid",
        "SELECT COUNT(*) AS n FROM visits v, parts p WHERE v.vid = p.iid",
    ):
        with refuses(dp.NotAllowed, "sql-join-person"):
            asked.plan(text, epsilon=1)


def test_the_answer_is_of_the_version_of_every_table_that_says_whose_rows_are():
    asked = database(data_of([], [], []))
    plan = asked.plan(QUESTIONS[3], epsilon=1)
    assert Counter(t.name for t in plan.question.relation.tables(owners=True)) == {"parts": 1, "items": 1, "visits": 1}
    assert [t.name for t in plan.question.relation.tables()] == ["parts"]


@pytest.mark.parametrize(
    "through", ["visits", "visits.nothing", "nothing.vid", "other -> visits.vid", "iid -> parts.iid"]
)
def test_a_path_that_leads_nowhere_is_told(through):
    tables = {
        name: {"columns": {c.name: c for c in columns}, "rows_per_person": 3, "through": THROUGH[name]}
        for name, columns in COLUMNS.items()
    }
    tables["visits"]["person"], tables["items"]["through"] = "pid", through
    with refuses(dp.InvalidArgument, "policy-through"):
        Schema(unit=PERSON, tables={name: Table(name=name, **known) for name, known in tables.items()})


def test_a_policy_file_says_through(tmp_path):
    import pyarrow.parquet as pq

    for name, table in data_of([(1, 7, "e"), (2, 8, "f")], [(7, 0, "a", 5), (8, 1, "b", 2)], [0, 1]).items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
    (tmp_path / "clinic.toml").write_text(
        """
        [ledger]
        path = "clinic.ledger"
        epsilon = 10.0
        [unit]
        person = "pid"
        [tables.visits]
        source = "visits.parquet"
        rows_per_person = 3
        [tables.items]
        source = "items.parquet"
        through = "visits.vid"
        rows_per_person = 3
        [tables.items.columns.k]
        choices = ["a", "b"]
        [tables.parts]
        source = "parts.parquet"
        through = "iid -> items.iid"
        rows_per_person = 3
        """
    )
    clinic = dp.connect(tmp_path / "clinic.toml")
    answer = clinic.sql("SELECT k, COUNT(*) AS n FROM items JOIN visits USING (vid) GROUP BY k", epsilon=1)
    assert answer.table.column("k").to_pylist() == ["a", "b"]


def test_one_row_for_each_person_is_priced_as_one():
    """Grouped by the person in FROM, a person has one row, whatever the bound on rows."""
    asked = database(data_of([(1, vid, "e") for vid in range(50)] + [(2, 99, "f")], [], []), rows_per_person=20)
    text = "SELECT COUNT(*) AS n FROM (SELECT pid, COUNT(*) AS k FROM visits GROUP BY pid) u WHERE k > 1"
    plan = asked.plan(text, epsilon=1)
    assert plan.bounds.rows == 1
    assert read_measures(plan.question, asked.engine, plan.bounds, plan.groups)[0].tolist() == [1]
    joined = "SELECT v.pid, COUNT(*) AS k FROM items i JOIN visits v ON i.vid = v.vid GROUP BY v.pid"
    assert asked.plan(f"SELECT COUNT(*) AS n FROM ({joined}) u", epsilon=1).bounds.rows == 1
    by_city = "SELECT COUNT(*) AS n FROM (SELECT pid, c, COUNT(*) AS k FROM visits GROUP BY pid, c) u"
    assert asked.plan(by_city, epsilon=1).bounds.rows == 20
    both = "SELECT COUNT(*) AS n FROM (SELECT pid FROM visits UNION ALL SELECT pid FROM visits) u"
    assert asked.plan(both, epsilon=1).bounds.rows == 40


def test_people_are_counted_by_whichever_of_their_columns():
    """Of a join, the person's column on either side counts people, at the price of people."""
    asked = database(
        data_of([(1, 7, "e"), (2, 8, "f"), (3, 9, "f")], [(7, 0, "a", 5), (7, 1, "b", 5), (8, 2, "a", 1)], [])
    )
    text = "SELECT COUNT(DISTINCT v.pid) AS n FROM items i JOIN visits v ON i.vid = v.vid"
    plan = asked.plan(text, epsilon=1)
    assert [measure.kind for measure in plan.question.measures] == ["people"]
    assert read_measures(plan.question, asked.engine, plan.bounds, plan.groups)[0].tolist() == [2]
    some = "(SELECT * FROM visits WHERE c = 'f') w"
    left = f"SELECT COUNT(DISTINCT w.pid) AS n FROM visits v LEFT JOIN {some} ON v.pid = w.pid"
    plan = asked.plan(left, epsilon=1)
    assert read_measures(plan.question, asked.engine, plan.bounds, plan.groups)[0].tolist() == [2]


def test_groups_of_others_in_from_are_refused():
    asked = database(data_of([], [], []))
    for text in (
        "SELECT COUNT(*) AS n FROM (SELECT c, COUNT(*) AS k FROM visits GROUP BY c) u",
        "SELECT COUNT(*) AS n FROM (SELECT k, SUM(x) AS s FROM items GROUP BY k) u",
    ):
        with refuses(dp.NotAllowed, "sql-inner-group"):
            asked.plan(text, epsilon=1)


@pytest.mark.parametrize("bounds", [{"rows_per_person": 2}, {"groups_per_person": 1}, {"rows_per_group": 1}])
def test_a_question_may_lower_the_bounds(bounds):
    asked = database(data_of([(1, vid, "ef"[vid % 2]) for vid in range(50)], [], []), rows_per_person=20)
    plan = asked.plan("SELECT c, COUNT(*) AS n FROM visits GROUP BY c", epsilon=1, bounds=bounds)
    whole = asked.plan("SELECT c, COUNT(*) AS n FROM visits GROUP BY c", epsilon=1)
    rows = bounds.get("rows_per_person", 20)
    expected = Bounds(rows, bounds.get("groups_per_person", 2), bounds.get("rows_per_group", rows))
    assert plan.bounds == expected
    assert plan.price.parts[0].scale <= whole.price.parts[0].scale
    count = read_measures(plan.question, asked.engine, plan.bounds, plan.groups)[0]
    assert sum(count) <= contribution(plan.question.measures[0], plan.bounds, PERSON).l1


def test_a_question_cannot_raise_the_bounds():
    asked = database(data_of([], [], []))
    text = "SELECT c, COUNT(*) AS n FROM visits GROUP BY c"
    assert asked.plan(text, epsilon=1, bounds={"rows_per_person": 50}).bounds == asked.plan(text, epsilon=1).bounds
    for wrong in ({"rows": 3}, {"rows_per_person": 0}, {"rows_per_person": 1.5}):
        with pytest.raises(dp.InvalidArgument):
            asked.plan(text, epsilon=1, bounds=wrong)


def test_rows_joined_without_their_person_are_found(monkeypatch):
    """A mutant that trusts a shared key: the rows of one person change with another's."""
    from discreet.sql.reading import joins

    monkeypatch.setattr(joins.Joins, "_meeting", _trusting)
    visits, others = [(1, 0, "e")], [(100 + n, 0, "e") for n in range(6)]
    text = "SELECT COUNT(*) AS n FROM items JOIN visits USING (vid)"
    data = [data_of(rows, [(0, 0, "a", 1)], []) for rows in (visits + others, others)]
    plan, (first,) = exact(data[0], text, rows_per_person=10)
    _, (second,) = exact(data[1], text, rows_per_person=10)
    most = contribution(plan.question.measures[0], plan.bounds, PERSON).l1
    assert abs(first - second).sum() > most
    monkeypatch.undo()
    _, (first,) = exact(data[0], text, rows_per_person=10)
    _, (second,) = exact(data[1], text, rows_per_person=10)
    assert abs(first - second).sum() <= most


def _trusting(self, left, right, condition, outer, node):
    from discreet.sql.pricing.relation import Join

    return Join(left, right, condition, "inner", left.person, ())


def test_through_leads_to_a_table_that_is_there():
    items = {c.name: c for c in COLUMNS["items"]}
    with refuses(dp.InvalidArgument, "policy-through"):
        Schema(unit=PERSON, tables={"t": Table(name="t", columns=items, through="visits.visit_id", rows_per_person=5)})
