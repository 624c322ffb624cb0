"""Bugs that were found and mended: one row that stops a question, raw errors, clauses dropped, wrong readings."""

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet import testing
from discreet.datasets.database import Database
from discreet.engines.duckdb.engine import DuckDB
from discreet.sql.schema import Column, Schema, Table

from ..refusing import refuses

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


def test_through_leads_to_a_table_that_is_there():
    columns = {n: c for n, c in COLS.items() if n != "pid"}
    with pytest.raises(dp.InvalidArgument, match="a key of another private table"):
        opened([(1, "a", 1.0, 1, "x")] * 20, columns=columns, person=None, through="visits.visit_id")


@pytest.mark.parametrize("rows", [
    [(i, "a", 5.0 if i < 50 else None, 1, "one" if i < 50 else "two") for i in range(100)],
    [(1, "a", 5.0, i % 100, f"n{i}") for i in range(500)],
])  # fmt: skip
def test_undeclared_keys_never_crash(rows):
    database = opened(rows, groups_per_person=3, rows_per_group=3)
    for text in ("SELECT s, MEDIAN(x) AS m, COUNT(DISTINCT y) AS d, COUNT(*) AS n FROM t GROUP BY s",
                 "SELECT s, COUNT(DISTINCT x) AS d FROM t GROUP BY s"):  # fmt: skip
        assert status(database, text, delta=1e-6)[0] == "answered"


@pytest.mark.parametrize(("first", "second"), [
    ("SELECT COUNT(*) AS n FROM t -- x\n WHERE y > 50", "SELECT COUNT(*) AS n FROM t -- x WHERE y > 50"),
    ("SELECT COUNT(*) AS n FROM t WHERE s = 'a  b'", "SELECT COUNT(*) AS n FROM t WHERE s = 'a b'"),
])  # fmt: skip
def test_another_question_is_not_replayed(first, second):
    path = Path(tempfile.mkdtemp()) / "t.parquet"
    rows = [(i, "a", 1.0, 10 * i, "a  b") for i in range(1, 9)]
    pq.write_table(pa.table({n: pa.array([r[i] for r in rows], TYPES[i]) for i, n in enumerate(COLS)}), path)
    database = opened([], source=str(path))
    with testing.no_noise():
        a, b = (database.sql(text, epsilon=1) for text in (first, second))
    assert not b.replayed
    assert a.table.column("n") != b.table.column("n")


RAW = [
    "SELECT COUNT(*) + n AS n FROM visits",
    "SELECT COUNT() AS n FROM visits",
    "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY minutes, cost) FROM visits",
    f"SELECT SUM(floor + 1{'0' * 400}) FROM visits",
    "SELECT COUNT(*) FROM visits LIMIT '²'",
    "SELECT COUNT(*) FROM visits LIMIT 99999999999999999999999",
    "SELECT COUNT(*) FROM visits WHERE " + " AND ".join(["floor > 1"] * 3000),
    "SELECT city + COUNT(*) FROM visits GROUP BY city",
    "SELECT lower(COUNT(*)) FROM visits",
    "SELECT TRUE + TRUE + COUNT(*) FROM visits",
    "SELECT COUNT(*) FROM visits HAVING 'x'",
    "SELECT COUNT(*) FROM visits ORDER BY 'x'",
    "SELECT @city, COUNT(*) AS n FROM visits GROUP BY city",
]


@pytest.mark.parametrize("text", RAW, ids=[t[:60] for t in RAW])
def test_only_our_errors_are_raised(clinic, text):
    before = clinic.database.ledger.spent
    try:
        clinic.private_rows(text)
    except dp.DiscreetError:
        assert clinic.database.ledger.spent == before, "charged for a question that can never be answered"


@pytest.mark.parametrize("text", [
    "SELECT COUNT(*) FROM visits WHERE note > 5", "SELECT COUNT(*) FROM visits WHERE coalesce(note, floor) = 5",
    "SELECT SUM(TRUE + urgent) FROM visits", "SELECT COUNT(*) FROM visits WHERE note = '\ud800'",
    "SELECT coalesce(city, 0) AS k, COUNT(*) AS n FROM visits GROUP BY 1",
    "SELECT CASE WHEN floor > 2 THEN 'x' ELSE 1 END AS k, COUNT(*) AS n FROM visits GROUP BY 1",
    "SELECT COUNT(*) AS n FROM visits WHERE day - 5 > DATE '2024-01-01'",
])  # fmt: skip
def test_what_can_never_be_answered_is_refused_before_it_is_charged(clinic, text):
    before = clinic.database.ledger.spent
    with pytest.raises((dp.InvalidArgument, dp.NotAllowed if hasattr(dp, "NotAllowed") else dp.DiscreetError)):
        clinic.database.sql(text, epsilon=1)
    assert clinic.database.ledger.spent == before


SAME = [
    "SELECT COUNT(note || 'x') AS n FROM visits",
    "SELECT COUNT(*) AS n FROM visits WHERE note || 'x' = 'x'",
    "SELECT SUM(CAST(cost / 7 AS DECIMAL(10, 0))) AS n FROM visits",
    "SELECT COUNT(*) AS n FROM visits WHERE TRY_CAST(minutes * 10 AS TINYINT) IS NULL",
    "SELECT COUNT(*) AS n FROM visits WHERE CAST(floor AS BIT) > 1",
    f"SELECT COUNT(*) AS n FROM visits WHERE floor < 1{'0' * 400}",
    "SELECT CASE WHEN city = 'Haifa' THEN 'H' ELSE 'o' END AS city, COUNT(*) AS n FROM visits GROUP BY city",
    "SELECT city, COUNT(*) AS n FROM visits GROUP BY city, city",
    "SELECT COUNT(*) AS n FROM visits LIMIT 10%",
    "SELECT COUNT(*) AS n FROM visits LIMIT 10 PERCENT",
    "SELECT COUNT(*) AS n FROM visits GROUP BY city LIMIT 1 WITH TIES",
    "SELECT COUNT(*) AS n FROM visits GROUP BY city LIMIT 2 BY city",
    "SELECT COUNT(* EXCLUDE (cost)) AS n FROM visits",
    "SELECT COUNT(*) AS n FROM visits OUTER JOIN cities USING (city)",
    "WITH x AS (SELECT * FROM read_csv('/etc/passwd')) SELECT COUNT(*) AS n FROM visits",
    "WITH x AS (SELECT random() FROM visits LIMIT 1) SELECT COUNT(*) AS n FROM visits",
    "SELECT CASE WHEN urgent THEN city END AS k, COUNT(DISTINCT floor) AS d FROM visits GROUP BY 1",
    "SELECT CASE WHEN urgent THEN city END AS k, MEDIAN(floor) AS d FROM visits GROUP BY 1",
    "SELECT CITY, COUNT(*) AS n FROM visits GROUP BY CITY",
]


@pytest.mark.parametrize("text", SAME)
def test_refused_or_the_same(clinic, text):
    try:
        clinic.private_rows(text)
    except (dp.NotAllowed, dp.InvalidArgument):
        return
    clinic.check_same(text, ordered=False)


def test_a_column_is_not_hidden_by_the_error_of_another(clinic):
    with refuses(dp.QueryError, "sql-same-name"):
        clinic.database.sql("SELECT COUNT(*) AS n, SUM(cost) AS n_error FROM visits", epsilon=1)


def test_a_ratio_with_no_rows_has_no_warning():
    for _ in range(30):
        opened([]).sql("SELECT SUM(x) / COUNT(*) AS r FROM t", epsilon=1)


def test_join_on_the_person_of_a_cte(clinic):
    clinic.check_same(
        "WITH v AS (SELECT person_id, cost FROM visits) SELECT p.active, SUM(v.cost) AS s FROM v JOIN people p "
        "ON v.person_id = p.person_id GROUP BY p.active", ordered=False)  # fmt: skip


def test_nan_is_dropped_from_a_mean():
    database = opened([(1, "a", float("nan"), 1, ""), (2, "a", 10.0, 1, "")])
    with testing.no_noise():
        assert database.sql("SELECT AVG(x) AS m FROM t", epsilon=100).table.column("m")[0].as_py() == pytest.approx(10)


def test_rows_are_not_bounded_where_rows_are_protected():
    database = opened([(1, "a", 1.0, 1, "")] * 5, unit=dp.row(), rows_per_person=None)
    with testing.no_noise():
        assert database.sql("SELECT COUNT(*) AS n FROM t", epsilon=100).table.column("n")[0].as_py() == 5
