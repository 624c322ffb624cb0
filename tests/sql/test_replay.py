"""With frozen noise nothing but the numbers may tell a table from its neighbor.

Not the text that reaches the engine, not the noise, not an error, not the columns, types or order; and no value of the
data is ever quoted.
"""

from __future__ import annotations

import datetime
import traceback

import pyarrow as pa
import pytest

import discreet as dp
from discreet import testing
from discreet.datasets.database import Database
from discreet.engines.duckdb.engine import DuckDB
from discreet.sql.schema import Column, Schema, Table

CANARY = "canary-7f3a"
PERSON = dp.person("pid")
COLUMNS = {
    "pid": Column(name="pid", type="integer"),
    "k": Column(name="k", type="text", choices=("a", "b")),
    "x": Column(name="x", type="number", between=(-10, 10)),
    "y": Column(name="y", type="integer", between=(0, 100)),
    "s": Column(name="s", type="text"),
    "d": Column(name="d", type="date", between=("2020-01-01", "2020-12-31")),
}
TYPES = {"pid": pa.int64(), "k": pa.string(), "x": pa.float64(), "y": pa.int64(), "s": pa.string(), "d": pa.date32()}
DAY = datetime.date(2020, 5, 17)
USUAL = [(n, "ab"[n % 2], float(n), 10 * n, str(n), DAY) for n in range(1, 6)]
HOSTILE = {
    "nothing": [],
    "null everywhere": [(9, None, None, None, None, None)],
    "null person": [(None, "a", 1.0, 1, CANARY, DAY)] * 3,
    "zero": [(9, "a", 0.0, 0, "0", DAY)],
    "negative": [(9, "a", -1.0, -1, "-1", DAY)],
    "not a number": [(9, "a", float("nan"), 1, "nan", DAY)],
    "infinite": [(9, "a", float("inf"), 1, "inf", DAY), (9, "b", float("-inf"), 1, "-inf", DAY)],
    "enormous": [(9, "a", 1e308, 2**63 - 1, "1e308", DAY), (9, "b", -1e308, -(2**63), "9" * 400, DAY)],
    "text": [(9, "a", 1.0, 1, CANARY, DAY), (9, "b", 1.0, 1, "", DAY), (9, "b", 1.0, 1, "\x00", DAY)],
    "another key": [(9, CANARY, 1.0, 1, CANARY, DAY), (9, "A", 1.0, 1, CANARY, DAY)],
    "far dates": [(9, "a", 1.0, 1, "2020-02-30", datetime.date(1, 1, 1)), (9, "a", 1.0, 1, "x", datetime.date.max)],
    "many rows": [(9, "ab"[n % 2], 1.0, n, CANARY, DAY) for n in range(500)],
}
QUESTIONS = [
    "SELECT COUNT(*) AS n FROM t",
    "SELECT k, COUNT(*) AS n, COUNT(DISTINCT pid) AS p, COUNT(DISTINCT s) AS d FROM t GROUP BY k",
    "SELECT k, SUM(x) AS s, AVG(x) AS m, VARIANCE(x) AS v, STDDEV(y) AS d FROM t GROUP BY k",
    "SELECT k, MEDIAN(y) AS m FROM t GROUP BY k",
    "SELECT COUNT(*) AS n FROM t WHERE 1 / x > 0.1",
    "SELECT COUNT(*) AS n FROM t WHERE y // 0 = 1 OR y % 0 = 1",
    "SELECT COUNT(*) AS n FROM t WHERE ln(x) > 0",
    "SELECT COUNT(*) AS n FROM t WHERE sqrt(x) > 0",
    "SELECT COUNT(*) AS n FROM t WHERE exp(x) > 5",
    "SELECT COUNT(*) AS n FROM t WHERE power(x, y) > 5",
    "SELECT COUNT(*) AS n FROM t WHERE y * y > 5",
    "SELECT COUNT(*) AS n FROM t WHERE y + 1 > 5 AND -y < 3 AND abs(y) > 1",
    "SELECT COUNT(*) AS n FROM t WHERE CAST(s AS INTEGER) > 1",
    "SELECT COUNT(*) AS n FROM t WHERE s::DOUBLE > 1",
    "SELECT COUNT(*) AS n FROM t WHERE CAST(s AS DATE) > d",
    "SELECT COUNT(*) AS n FROM t WHERE CAST(s AS BOOLEAN)",
    "SELECT COUNT(*) AS n FROM t WHERE CAST(x AS INTEGER) > 1",
    "SELECT COUNT(*) AS n FROM t WHERE s IN ('1', '2')",
    "SELECT COUNT(*) AS n FROM t WHERE month(d) = 5 AND date_trunc('month', d) = d",
    "SELECT COUNT(*) AS n FROM t WHERE d - DATE '2020-01-01' > 5",
    "SELECT COUNT(*) AS n FROM t WHERE substring(s, y, y) = 'a'",
    "SELECT COUNT(*) AS n FROM t WHERE round(x, 300) > 1",
    "SELECT COUNT(*) AS n FROM t WHERE length(s) = 1 AND lower(s) LIKE '%a%' AND upper(trim(s)) <> concat(s, k)",
    "SELECT month(d) AS m, COUNT(*) AS n FROM t GROUP BY m",
    "SELECT CASE WHEN 1 / y > 0.1 THEN 'small' ELSE 'large' END AS c, COUNT(*) AS n FROM t GROUP BY c",
    "SELECT CAST(s AS INTEGER) > 3 AS c, COUNT(*) AS n FROM t GROUP BY c",
    "SELECT SUM(CASE WHEN y > 50 THEN 1 ELSE 0 END) AS n, COUNT(x) AS c, COUNT(s) AS e FROM t",
    "SELECT SUM(x) FILTER (WHERE ln(y) > 1) AS n FROM t",
    "WITH u AS (SELECT k, 1 / y AS z, CAST(s AS INTEGER) AS i FROM t WHERE sqrt(x) > 0) "
    "SELECT k, COUNT(z) AS n, COUNT(i) AS m FROM u GROUP BY k HAVING COUNT(z) > 1 ORDER BY m DESC LIMIT 1",
]


def opened(rows):
    data = pa.table({n: pa.array([r[i] for r in rows], t) for i, (n, t) in enumerate(TYPES.items())})
    table = Table(name="t", columns=COLUMNS, person="pid", rows_per_person=4, groups_per_person=2)
    ledger = dp.Ledger.open(":memory:", protects=PERSON, limit=dp.Approx(epsilon=1000, delta=0.1), rule="basic")
    made = Database(Schema(unit=PERSON, tables={"t": table}), DuckDB({"t": data}), ledger)
    made.plan("SELECT COUNT(*) AS n FROM t", epsilon=1)  # the first question of all asks for the columns, too
    return made


@pytest.fixture(scope="module")
def databases():
    together = [row for name, rows in HOSTILE.items() if name != "many rows" for row in rows]
    one_by_one = {name: opened(USUAL + rows) for name, rows in HOSTILE.items()}
    return one_by_one | {"empty": opened([]), "together": opened(USUAL + together)}


QUICK = ("null everywhere", "many rows", "empty", "together")


def seen(database, text, capture, monkeypatch):
    """All that can be seen of an answer but its numbers."""
    with capture(monkeypatch) as texts, testing.frozen(3) as tape:
        try:
            answer = database.sql(text, epsilon=1)
        except Exception as error:
            return _checked(error)
    columns = answer.table.schema
    keys = [name for name in columns.names if name in ("k", "m", "c") and f"{name}_error" not in columns.names]
    shown = () if "LIMIT" in text else (answer.table.num_rows, *(answer.table.column(n).to_pylist() for n in keys))
    # hidden identifiers are numbered through the life of a program
    sent = [_without_numbers(sql) for sql in texts]
    return sent, list(tape.calls), columns, str(answer.guarantee), shown


def _checked(error):
    """An error of ours, that quotes no value anywhere in its chain."""
    said = "".join(traceback.format_exception(error)) + repr(error) + repr(error.args)
    assert CANARY not in said
    assert isinstance(error, dp.DiscreetError), said
    return type(error), str(error)


def _without_numbers(sql):
    names = {}
    parts = sql.split('"')
    for place in range(1, len(parts), 2):
        if parts[place][:1] == "c" and parts[place][1:].isdigit():
            parts[place] = names.setdefault(parts[place], f"c{len(names)}")
    return '"'.join(parts)


def draws_of(calls):
    """What was asked of the samplers. The runs of a quantile follow its data, and only its name is public."""
    return [call if not call[0].startswith(("exponential", "uniform")) else call[0] for call in calls]


def check(databases, names, capture, monkeypatch, text):
    first = seen(databases["nothing"], text, capture, monkeypatch)
    assert len(first) == 5, f"refused: {first}"
    for name in names:
        other = seen(databases[name], text, capture, monkeypatch)
        assert len(other) == 5, f"{name}: {other}"
        assert other[0] == first[0], name
        assert draws_of(other[1]) == draws_of(first[1]), name
        assert other[2:] == first[2:], name


@pytest.mark.some_quick(1)
@pytest.mark.parametrize("text", QUESTIONS)
def test_nothing_but_the_numbers_depends_on_the_data(databases, capture, monkeypatch, text):
    check(databases, QUICK, capture, monkeypatch, text)


@pytest.mark.slow
@pytest.mark.parametrize("text", QUESTIONS)
def test_nothing_but_the_numbers_depends_on_any_one_row(databases, capture, monkeypatch, text):
    check(databases, HOSTILE, capture, monkeypatch, text)


@pytest.mark.parametrize(
    "text", ["SELECT k FROM t", f"SELECT COUNT(*) FROM t WHERE s LIKE '{CANARY}", "SELECT sum(s) FROM t"]
)
def test_refusals_do_not_depend_on_the_data(databases, capture, monkeypatch, text):
    said = set()
    for database in databases.values():
        with pytest.raises(dp.DiscreetError) as caught:
            database.sql(text, epsilon=1)
        said.add((type(caught.value), str(caught.value)))
    assert len(said) == 1


def test_an_engine_failure_quotes_nothing(databases, monkeypatch):
    """Whatever the engine says when it fails, its words stay inside."""
    database = databases["text"]
    original = DuckDB._run

    def broken(self, text, fetch):
        return original(self, f"SELECT CAST(s AS INTEGER) FROM {self.relations['t']} WHERE s LIKE 'canary%'", fetch)

    with monkeypatch.context() as patch:
        patch.setattr(DuckDB, "_run", broken)
        with pytest.raises(dp.DiscreetError) as caught:
            database.sql("SELECT COUNT(*) AS n FROM t", epsilon=1)
    error = caught.value
    chain = [error, error.__cause__, error.__context__ if not error.__suppress_context__ else None]
    assert all(CANARY not in repr(part) + str(part) for part in chain)
    assert CANARY not in "".join(traceback.format_exception(error))


@pytest.mark.slow
def test_rows_are_in_the_order_of_the_keys(databases):
    """Not in that of the true counts."""
    for database in databases.values():
        with testing.no_noise():
            shown = database.sql("SELECT k, COUNT(*) AS n FROM t GROUP BY k", epsilon=1).table
        assert shown.column("k").to_pylist() == ["a", "b"]
