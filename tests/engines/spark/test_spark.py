"""What is Spark's own: the policy that names it, its sources and types, its loggers, and what is left when it fails."""

from __future__ import annotations

import datetime
import gc
import json
import socket
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet import testing
from discreet.datasets.database import Database
from discreet.engines.spark.dataframes import run_on_partitions
from discreet.engines.spark.engine import Spark
from discreet.errors import EngineFailed, InvalidArgument
from discreet.sql.measuring.compile import Statement
from discreet.sql.question import Bounds
from discreet.sql.reading.select import read_question
from discreet.sql.schema import Column, Schema, Table

from ...refusing import refuses
from ..conftest import CORES, ELSEWHERE, sql
from .cluster import Cluster, connect_server

pytestmark = pytest.mark.spark
HERE = Path(__file__).parent
POLICY = """
[ledger]
path = "clinic.ledger"
epsilon = 10.0
[engine]
kind = "spark"
{engine}
[unit]
person = "pid"
[tables.visits]
source = "{source}"
rows_per_person = 2
[tables.visits.columns.cost]
between = [0, 10]
"""
VISITS = pa.table({"pid": [1, 2, 3], "cost": [1.0, 2.0, 3.0], "note": ["a", "b", "secret-77"]})
COUNT = "SELECT COUNT(*) AS n, SUM(cost) AS s FROM visits"
SLOW = "SELECT max(x) FROM (SELECT java_method('java.lang.Thread', 'sleep', 600000L) AS x FROM range(2)) WHERE x = 'y'"


def written(folder: Path, source: str = "visits", engine: str = f'master = "local[{CORES}]"') -> Path:
    (folder / "visits").mkdir(exist_ok=True)
    pq.write_table(VISITS, folder / "visits" / "0.parquet")
    path = folder / "clinic.toml"
    path.write_text(POLICY.format(source=source, engine=engine))
    return path


def plain(database: Database, text: str = COUNT, **given) -> list:
    with testing.no_noise():
        return database.sql(text, **({"epsilon": 1} | given)).as_json()["rows"]


def held_of_the_jvm():
    """How many objects of the JVM are held by Python."""
    return sum(type(one).__name__ == "JavaObject" for one in gc.get_objects())


def a_statement(lake):
    engine = lake.opened({"t": VISITS})
    return lambda: engine.rows(f"SELECT COUNT(*) FROM {engine.relations['t']}")


def a_pass(lake):
    frame = lake.session.range(10)
    return lambda: run_on_partitions(frame, lambda batches, _: [bytes(batch.num_rows) for batch in batches])


# --- the policy and the sources -----------------------------------------------------------------------------


def test_a_policy_names_spark(lake, tmp_path):
    """A folder beside the policy; files that come later are seen."""
    database = dp.connect(written(tmp_path))
    assert plain(database) == [[3, 6.0]]
    more = pa.table({"pid": [4], "cost": [4.0], "note": ["c"]})
    pq.write_table(more, tmp_path / "visits" / "1.parquet")
    assert plain(database, COUNT + " LIMIT 1") == [[4, 10.0]]
    assert "secret" not in repr(database.engine) + str(database.explain(COUNT, epsilon=1))


def test_a_session_is_passed(lake, tmp_path):
    database = dp.connect(written(tmp_path, engine=""), spark=lake.session)
    assert plain(database) == [[3, 6.0]]
    assert database.engine._session.conf.get("spark.sql.session.timeZone") == "UTC"
    assert lake.session.conf.get("spark.sql.session.timeZone") == ELSEWHERE  # what the owner set stays


@pytest.mark.parametrize(
    ("engine", "source", "code"),
    [
        ('master = "local[7]"', "visits", "spark-session"),
        ("", "nowhere/visits", "source-unreadable"),
        ("", "no_such_table", "source-unreadable"),
    ],
)
def test_what_is_not_there_is_said(lake, tmp_path, engine, source, code):
    with refuses(InvalidArgument, code) as caught:
        dp.connect(written(tmp_path, source, engine))
    assert caught.value.__context__ is None


def test_only_a_policy_of_spark_takes_a_session(lake, tmp_path):
    policy = written(tmp_path, engine="")
    policy.write_text(policy.read_text().replace('kind = "spark"', ""))
    with refuses(InvalidArgument, "spark-not-the-engine"):
        dp.connect(policy, spark=lake.session)


def test_a_delta_folder_is_not_read_as_parquet(lake, tmp_path):
    """Its files hold rows that were deleted. Without Delta's package nothing is read."""
    policy = written(tmp_path)
    (tmp_path / "visits" / "_delta_log").mkdir()
    with refuses(InvalidArgument, "source-unreadable"):
        dp.connect(policy)


@pytest.mark.slow
def test_tables_views_and_frames(lake):
    """A table is read as it is; a DataFrame or view is computed when it is opened, so that no row fails later."""
    session = lake.session
    frame = session.createDataFrame([(1, "5"), (2, "6")], "pid BIGINT, note STRING")
    frame.write.mode("overwrite").saveAsTable("kept")
    frame.createOrReplaceTempView("seen")
    engine = Spark({"kept": "kept", "seen": "seen", "frame": frame}, session=session)
    for name in ("kept", "seen", "frame"):
        assert engine.rows(f"SELECT count(*), max(note) FROM {engine.relations[name]}") == [(2, "6")]
    assert "kept" in engine.relations["kept"]
    assert "global_temp" in engine.relations["seen"]
    failing = session.createDataFrame([("secret-77",)], "note STRING").selectExpr("raise_error(note) AS x")
    with refuses(InvalidArgument, "source-unreadable") as caught:
        Spark({"t": failing}, session=session)
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None
    with refuses(InvalidArgument, "source-unreadable"):
        Spark({"t": {"x": [1]}}, session=session)
    engine.close()
    engine.close()
    session.sql("DROP TABLE kept")


def test_types(lake):
    """One type of ours for each of Spark's; days that Python has not are NULL."""
    row = (
        "SELECT 1 AS pid, 2Y AS small, 3S AS short, CAST(1.5 AS FLOAT) AS real, CAST(2.5 AS DECIMAL(38, 18)) AS price, "
        "DATE'2020-01-02' AS day, TIMESTAMP_NTZ'2020-01-02 03:04:05' AS at, TIMESTAMP'2020-01-02 03:04:05Z' AS zoned, "
        "X'ff' AS bytes, map('a', 1) AS pairs, array(1) AS many, CAST('x' AS CHAR(3)) AS fixed, TRUE AS yes"
    )
    odd = row.replace("2020-01-02", "-0044-03-15")
    engine = Spark({"t": lake.session.sql(f"{row} UNION ALL {odd}")}, session=lake.session)
    kinds = engine.columns("t")
    numbers = {"pid": "integer", "small": "integer", "short": "integer", "real": "number", "price": "number"}
    times = {"day": "date", "at": "timestamp", "zoned": "timestamp"}
    others = {"bytes": "other", "pairs": "other", "many": "other", "fixed": "text", "yes": "boolean"}
    assert kinds == numbers | times | others
    found = engine.rows(f"SELECT price, day, at, zoned, bytes, fixed FROM {engine.relations['t']} ORDER BY day")
    moment = datetime.datetime(2020, 1, 2, 3, 4, 5)
    assert found[0][1:5] == (None, None, None, "FF")
    assert found[1][:5] == (2.5, datetime.date(2020, 1, 2), moment, moment, "FF")


@pytest.mark.slow
def test_keys_that_are_no_text(lake, tmp_path):
    """Bytes that Python has no text for are one key there, too: groups that nobody declared are found all the same."""
    broken = pa.array([b"\xff", b"\xfe", b"Acre"] * 50, pa.binary()).cast(pa.string(), safe=False)
    place = tmp_path / "t"
    place.mkdir()
    pq.write_table(pa.table({"pid": range(150), "city": broken}), place / "0.parquet")
    told = {"pid": Column(name="pid", type="integer"), "city": Column(name="city", type="text")}
    unit = dp.person("pid")
    schema = Schema(unit=unit, tables={"t": Table(name="t", columns=told, person="pid", rows_per_person=1)})
    database = Database(schema, Spark({"t": str(place)}, session=lake.session), sql.open_ledger(unit))
    with testing.no_noise():
        rows = database.sql("SELECT city, COUNT(*) AS n FROM t GROUP BY city", epsilon=9, delta=0.1).as_json()["rows"]
    assert sorted(row[1] for row in rows) == [50, 100]


@pytest.mark.slow
def test_views_are_of_one_database(lake):
    """Two databases on one cluster: neither sees the other's rows, and nothing is left when they are closed."""
    frames = [lake.session.createDataFrame([(name,)], "x STRING") for name in ("mine", "theirs")]
    engines = [Spark({"t": frame}, session=lake.session) for frame in frames]
    found = [engine.rows(f"SELECT x FROM {engine.relations['t']}") for engine in engines]
    assert found == [[("mine",)], [("theirs",)]]
    views = [engine.relations["t"].split("`")[-2] for engine in engines]
    for engine in engines:
        engine.close()
    left = [table.name for table in lake.session.catalog.listTables("global_temp")]
    assert not set(views) & set(left)


def test_a_folder_for_each_city_is_text(lake, tmp_path):
    """What one row is in does not decide the type of all; and moments that Spark may fail on are refused."""
    for city in ("1", "02"):
        (tmp_path / "t" / f"city={city}").mkdir(parents=True)
        pq.write_table(pa.table({"pid": [1]}), tmp_path / "t" / f"city={city}" / "0.parquet")
    engine = Spark({"t": str(tmp_path / "t")}, session=lake.session)
    assert engine.columns("t") == {"pid": "integer", "city": "text"}
    assert sorted(engine.rows(f"SELECT city FROM {engine.relations['t']}")) == [("02",), ("1",)]
    moments = pa.table({"pid": [1], "at": pa.array([0], pa.timestamp("ms"))})
    pq.write_table(moments, tmp_path / "ms.parquet")
    with refuses(InvalidArgument, "source-milliseconds"):
        Spark({"t": str(tmp_path / "ms.parquet")}, session=lake.session)


@pytest.mark.slow
def test_nulls_are_chosen_as_others_are(lake):
    """Of two rows that differ in where they have NULL, each is kept by half the people, or nearly."""
    people = 500
    ones, nulls = [1] * people, [None] * people
    engine = lake.opened({"t": pa.table({"pid": [*range(people)] * 2, "a": ones + nulls, "b": nulls + ones})})
    kept = engine.dialect.few_of_each(f"SELECT pid, a, b FROM {engine.relations['t']}", "pid", 1, ["a", "b"])
    ((first, second),) = engine.rows(f"SELECT count(a), count(b) FROM ({kept})")
    assert first + second == people
    assert abs(first - people / 2) < 6 * (people / 4) ** 0.5


@pytest.mark.slow
def test_a_model_of_rows_with_bytes_that_are_no_text(lake, tmp_path):
    broken = pa.array([b"\xff", b"Acre", b"Haifa"] * 30, pa.binary()).cast(pa.string(), safe=False)
    rows = pa.table({"pid": range(90), "city": broken, "cost": [float(n) for n in range(90)]})
    pq.write_table(rows, tmp_path / "t.parquet")
    told = {
        "pid": Column(name="pid", type="integer"),
        "city": Column(name="city", type="text", choices=("Acre", "Haifa")),
    }
    told["cost"] = Column(name="cost", type="number", between=(0, 90))
    unit = dp.person("pid")
    schema = Schema(unit=unit, tables={"t": Table(name="t", columns=told, person="pid", rows_per_person=1)})
    engine = Spark({"t": str(tmp_path / "t.parquet")}, session=lake.session)
    database = Database(schema, engine, sql.open_ledger(unit))
    model = dp.learn.LinearRegression(epsilon=100, target_bound=100)
    assert database.fit(model, "t", features=["city"], target="cost").coef_.shape == (2,)


# --- what is chosen at random -------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_is_chosen_is_the_same_however_often_it_is_computed(lake):
    """A lost task runs again, and a query that is named twice runs twice: both find the same rows, in any layout."""
    rows = pa.table({"pid": [n % 50 for n in range(3000)], "city": [f"c{n % 7}" for n in range(3000)]})
    told = {"pid": Column(name="pid", type="integer"), "city": Column(name="city", type="text")}
    schema = Schema(unit=dp.person("pid"), tables={"t": Table(name="t", columns=told, person="pid", rows_per_person=9)})
    question = read_question("SELECT city, COUNT(*) AS n FROM t GROUP BY city", schema)
    found = []
    for table in (rows, rows.take(pa.array(list(range(3000))[::-1]))):
        engine = lake.opened({"t": table})
        for seed in (5, 5, 6):
            text = Statement(question, engine, Bounds(rows=9, groups=4, per_group=9), seed).additive()
            found.append(sorted(engine.rows(text)))
    assert found[0] == found[1] == found[3] == found[4]
    assert found[2] == found[5] != found[0]
    assert sum(row[1] for row in found[0]) <= 50 * 9


# --- what is done with is let go ----------------------------------------------------------------------------


@pytest.mark.parametrize("made", [a_statement, a_pass])
def test_the_jvm_is_not_filled_by_what_is_done(lake, made):
    """Python would let go of frames when it next searches for garbage, which it hardly does in a large process."""
    run = made(lake)
    assert run()  # what stays is made once
    gc.collect()
    gc.disable()
    try:
        before = held_of_the_jvm()
        for _ in range(3):
            run()
        assert held_of_the_jvm() == before
    finally:
        gc.enable()


# --- nothing is said, and what is left when it fails --------------------------------------------------------


def test_too_long_a_statement_leaves_the_charge(lake, tmp_path, monkeypatch):
    database = dp.connect(written(tmp_path, engine="timeout = 1"), spark=lake.session)
    engine = database.engine
    frame = engine.frame
    monkeypatch.setattr(engine, "frame", lambda statement: lake.session.sql(SLOW))
    with refuses(EngineFailed, "engine-failed") as caught:
        plain(database, key="again")
    assert caught.value.__context__ is None
    monkeypatch.setattr(engine, "frame", frame)
    monkeypatch.setattr(engine, "timeout", 300)
    assert float(database.ledger.spent["ε"]) == 1
    assert plain(database, key="again") == [[3, 6.0]]
    assert float(database.ledger.spent["ε"]) == 1


LOUD = """
import sys
from pyspark.sql import SparkSession
from discreet.engines.spark.engine import Spark
session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
session.sparkContext.setLogLevel("INFO")
def levels():
    loggers = session._jvm.org.apache.logging.log4j.LogManager.getContext(False).getConfiguration().getLoggers()
    return {name: str(loggers[name].getLevel()) for name in loggers}
before = levels()
frame = session.createDataFrame([("secret-" + str(70 + n),) for n in range(9)], "note STRING")
engine = Spark({"t": frame}, session=session)
print("opened", file=sys.stderr, flush=True)
try:
    engine.rows(f"SELECT sum(CAST(note AS BIGINT)) FROM {engine.relations['t']}")
except Exception as error:
    print("failed", repr(error), repr(error.__context__), file=sys.stderr, flush=True)
engine.rows(f"SELECT count(*) FROM {engine.relations['t']} WHERE note = 'secret-77'")
print("closed", file=sys.stderr, flush=True)
engine.close()
print(before[""], levels() == before)
try:
    session.sql("SELECT CAST('told' AS INT)").collect()
except Exception as error:
    print("told" in str(error))
"""


@pytest.mark.slow
def test_the_loggers_are_silent_while_it_is_open(java, tmp_path):
    """A session that tells everything, a cast that quotes its value: nothing is heard until it is closed."""
    done = subprocess.run([sys.executable, "-c", LOUD], capture_output=True, text=True, cwd=tmp_path, timeout=300)
    silent = done.stderr.partition("opened")[2].partition("closed")[0]
    assert "failed EngineFailed" in silent
    assert "secret" not in silent
    assert "INFO" not in silent
    assert "secret" not in done.stdout
    assert done.stdout.split() == ["INFO", "True", "True"]  # the owner's own levels are back


CONNECTED = """
import sys
import discreet as dp
from discreet import testing
database = dp.connect(sys.argv[1])
with testing.no_noise():
    print(database.sql("SELECT COUNT(*) AS n, SUM(cost) AS s FROM visits", epsilon=1).as_json()["rows"])
engine = database.engine
try:
    engine.rows(f"SELECT CAST(note AS BIGINT) FROM {engine.relations['visits']}")
except Exception as error:
    print("failed", repr(error.__context__))
engine.timeout = 1
try:
    engine.rows(sys.argv[2])
except Exception as error:
    print(type(error).__name__)
"""


@pytest.mark.slow
def test_spark_connect(java, tmp_path):
    """The same policy, its master a server of Spark Connect in a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    policy = written(tmp_path, engine=f'master = "sc://127.0.0.1:{port}"')
    with connect_server(tmp_path, port):
        done = subprocess.run(
            [sys.executable, "-c", CONNECTED, str(policy), SLOW],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert done.stdout.splitlines() == ["[[3, 6.0]]", "failed None", "EngineFailed"], done.stderr
    assert "secret" not in done.stderr


@pytest.mark.slow
def test_lost_workers(java, tmp_path):
    """One of two workers killed in the middle of a question, then the other: each has one charge and one outcome."""
    cluster = Cluster(tmp_path)
    try:
        command = [
            sys.executable,
            str(HERE / "lost_workers.py"),
            cluster.url,
            str(tmp_path),
            *map(str, cluster.workers),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    finally:
        cluster.close()
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["both"]["rows"] == found["truth"]["rows"]
    assert [found[name]["charges"] for name in ("both", "one", "retried", "none")] == [1, 2, 2, 3]
    for name in ("one", "retried", "none"):
        one = found[name]
        assert one["context"] == "None" if "failed" in one else one["rows"] == found["truth"]["rows"]
    assert "rows" in found["retried"]
    assert found["none"]["failed"].startswith("Spark could not compute this")
