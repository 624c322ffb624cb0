"""What is asked again is replayed, and another question never is."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet import testing

from .connecting import connected


@pytest.mark.parametrize(("first", "second"), [
    ("SELECT COUNT(*) AS n FROM t -- x\n WHERE y > 50", "SELECT COUNT(*) AS n FROM t -- x WHERE y > 50"),
    ("SELECT COUNT(*) AS n FROM t WHERE s = 'a  b'", "SELECT COUNT(*) AS n FROM t WHERE s = 'a b'"),
])  # fmt: skip
def test_another_question_is_not_replayed(first, second, tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"pid": list(range(1, 9)), "y": [10 * n for n in range(1, 9)], "s": ["a  b"] * 8}), path)
    database = connected({"t": (str(path), {"rows_per_person": 5, "columns": {"y": {"between": [0, 100]}}})})
    with testing.no_noise():
        a, b = (database.sql(text, epsilon=1) for text in (first, second))
    assert not b.replayed
    assert a.table.column("n") != b.table.column("n")


def test_bounds_of_a_table_make_another_question():
    ledger = dp.Ledger.open(":memory:", protects=dp.person("pid"), limit=dp.Pure(epsilon=10))
    data = pa.table({"pid": [1, 2], "k": ["a", "b"]})
    for groups, rows in ((2, 10), (1, 20)):
        table = dp.table(
            data, ledger=ledger, rows_per_person=20, groups_per_person=groups, rows_per_group=rows, version="1"
        )
        assert not table.histogram("k", choices=["a", "b"], epsilon=1).replayed
        assert not table.most_common("k", choices=["a", "b"], epsilon=1).replayed


def found_groups(answer):
    return int(answer.notes[0].rpartition(" ")[2].rstrip("."))


def test_groups_found_for_other_bounds_are_not_taken():
    rows = [(pid, k) for pid in range(400) for k in range(8)]
    data = pa.table({"pid": [pid for pid, _ in rows], "k": [k for _, k in rows]})
    said = {"version": "1", "groups_per_person": "auto", "rows_per_group": 1, "columns": {"k": {"between": [0, 7]}}}
    database = connected({"v": (data, said)})
    text = "SELECT k, COUNT(*) AS n FROM v GROUP BY k"
    assert found_groups(database.sql(text, epsilon=20)) == 8
    assert found_groups(database.sql(text, epsilon=20, bounds={"groups_per_person": 2})) <= 2
    assert found_groups(database.sql(text, epsilon=20)) == 8


def test_what_was_found_and_answered_is_free_when_nothing_is_left():
    data = pa.table({"pid": list(range(3000)), "x": [float(n) for n in range(3000)]})
    said = {"version": "1", "columns": {"x": {"between": "auto"}}}
    database = connected({"v": (data, said)}, limit=1, rule="basic", delta=0)
    first = database.sql("SELECT AVG(x) AS m FROM v", epsilon=1)
    again = database.sql("SELECT AVG(x) AS m FROM v", epsilon=1)
    assert again.replayed
    assert again.table.equals(first.table)
    assert " remains; receipt" in str(first)
    assert " remained when it was asked first; receipt" in str(again)


@pytest.mark.slow
def test_the_longest_key_is_the_question_s_own():
    data = pa.table({"pid": list(range(3000)), "x": [float(n) for n in range(3000)]})
    database = connected({"v": (data, {"columns": {"x": {"between": "auto"}}})})
    key = "k" * 200
    first = database.sql("SELECT AVG(x) AS m FROM v", epsilon=1, key=key)
    assert database.sql("SELECT AVG(x) AS m FROM v", epsilon=1, key=key).table.equals(first.table)
