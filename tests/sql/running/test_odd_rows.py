"""No row decides whether a question is answered."""

import pyarrow as pa
import pytest

import discreet as dp
from discreet import testing
from discreet.datasets.database import Database
from discreet.engines.duckdb.engine import DuckDB
from discreet.sql.schema import Column, Schema, Table

COLS = {
    "pid": Column(name="pid", type="integer"),
    "k": Column(name="k", type="text", choices=("a", "b")),
    "x": Column(name="x", type="number", between=(0, 100)),
    "y": Column(name="y", type="integer", between=(0, 100)),
    "s": Column(name="s", type="text"),
}


TYPES = [pa.int64(), pa.string(), pa.float64(), pa.int64(), pa.string()]


PUBLIC = Table(
    name="c",
    public=True,
    columns={
        "k": Column(name="k", type="text", choices=("a", "b")),
        "code": Column(name="code", type="integer", between=(0, 9)),
    },
)


PERSON = dp.person("pid")


def opened(rows, source=None, unit=PERSON, columns=COLS, person="pid", **facts):
    data = pa.table({n: pa.array([r[i] for r in rows], TYPES[i]) for i, n in enumerate(COLS)})
    bounds = {"rows_per_person": 5} | facts
    table = Table(name="t", columns=columns, person=person, source=source, **bounds)
    ledger = dp.Ledger.open(":memory:", protects=unit, limit=dp.Approx(epsilon=10**5, delta=0.1), rule="basic")
    engine = DuckDB({"t": data if source is None else source, "c": pa.table({"k": ["a", "b"], "code": [1, 2]})})
    return Database(Schema(unit=unit, tables={"t": table, "c": PUBLIC}), engine, ledger)


def status(database, text, **more):
    with testing.no_noise():
        try:
            return "answered", database.sql(text, **({"epsilon": 100} | more)).table.schema.names
        except Exception as error:
            return type(error).__name__, str(error)


@pytest.mark.some_quick(8)
@pytest.mark.parametrize("text", [
    "SELECT SUM(abs(y)) AS s FROM t", "SELECT SUM(-y) AS s FROM t", "SELECT AVG(y * y) AS s FROM t",
    "SELECT AVG(CASE WHEN y * y > 5 THEN 1 ELSE 0 END) AS s FROM t", "SELECT VARIANCE(y + 1) AS s FROM t",
    "SELECT y * y > 5 AS g, SUM(y * y) AS n FROM t GROUP BY g", "SELECT MEDIAN(abs(y)) AS s FROM t",
    "SELECT COUNT(*) AS n FROM t JOIN c ON t.k = c.k AND t.y * t.y > c.code",
    "SELECT COUNT(*) AS n FROM t JOIN c ON t.k = c.k AND abs(t.y) > 1",
    "SELECT COUNT(*) AS n FROM t LEFT JOIN c ON t.k = c.k AND t.y + t.y > 1",
    "SELECT COUNT(*) AS n FROM t JOIN c ON t.s = c.code",
    "SELECT COUNT(*) AS n FROM t JOIN c ON t.k = c.k AND CAST(t.y AS VARCHAR) = t.y",
])  # fmt: skip
@pytest.mark.parametrize("bad", [(9, "a", 1.0, -(2**63), "abc"), (9, "a", 1.0, 2**63 - 1, "x")])
def test_status_does_not_depend_on_a_row(text, bad):
    good = [(1, "a", 1.0, 1, "1"), (2, "b", 2.0, 2, "2")]
    assert status(opened(good), text) == status(opened([*good, bad]), text)


@pytest.mark.parametrize("rows", [
    [(i, "a", 5.0 if i < 50 else None, 1, "one" if i < 50 else "two") for i in range(100)],
    [(1, "a", 5.0, i % 100, f"n{i}") for i in range(500)],
])  # fmt: skip
@pytest.mark.slow
def test_undeclared_keys_never_crash(rows):
    database = opened(rows, groups_per_person=3, rows_per_group=3)
    for text in ("SELECT s, MEDIAN(x) AS m, COUNT(DISTINCT y) AS d, COUNT(*) AS n FROM t GROUP BY s",
                 "SELECT s, COUNT(DISTINCT x) AS d FROM t GROUP BY s"):  # fmt: skip
        assert status(database, text, delta=1e-6)[0] == "answered"


def test_a_ratio_with_no_rows_has_no_warning():
    for _ in range(8):
        opened([]).sql("SELECT SUM(x) / COUNT(*) AS r FROM t", epsilon=1)


def test_nan_is_dropped_from_a_mean():
    database = opened([(1, "a", float("nan"), 1, ""), (2, "a", 10.0, 1, "")])
    with testing.no_noise():
        assert database.sql("SELECT AVG(x) AS m FROM t", epsilon=100).table.column("m")[0].as_py() == pytest.approx(10)


def test_rows_are_not_bounded_where_rows_are_protected():
    database = opened([(1, "a", 1.0, 1, "")] * 5, unit=dp.row(), rows_per_person=None)
    with testing.no_noise():
        assert database.sql("SELECT COUNT(*) AS n FROM t", epsilon=100).table.column("n")[0].as_py() == 5
