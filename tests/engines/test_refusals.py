"""What engines refuse, without one: words that they do not print, sources and sessions that they do not take."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.postgres import dialect as postgres_dialect
from discreet.engines.postgres import values as postgres_values
from discreet.engines.postgres.engine import Postgres
from discreet.engines.spark import dataframes
from discreet.engines.spark import dialect as spark_dialect
from discreet.engines.spark import sessions as spark_sessions
from discreet.engines.spark import values as spark_values
from discreet.engines.spark.dataframes import ByPartition, kinds_of, partitions_of, run_on_partitions
from discreet.engines.spark.engine import Spark, _check_units
from discreet.engines.spark.sessions import own_session, session_for
from discreet.errors import DiscreetError, EngineFailed, InvalidArgument, NotAllowed
from discreet.queries.counts import Count
from fuzz.oracle import CANARY, words_of

from ..refusing import refuses

VALUES = pytest.mark.parametrize("values", [postgres_values, spark_values], ids=["postgres", "spark"])
DIALECTS = pytest.mark.parametrize("dialect", [postgres_dialect, spark_dialect], ids=["postgres", "spark"])
MOMENT = datetime.datetime(2025, 1, 31, tzinfo=datetime.UTC)


def refused(asked: Callable[[], Any], code: str, kind: type[DiscreetError] = InvalidArgument) -> None:
    with refuses(kind, code):
        asked()


def fail(*_: Any, **__: Any) -> Any:
    """What a cluster does that is gone."""
    raise RuntimeError("a true value")


# --- dialects ------------------------------------------------------------------------------------------------


@VALUES
@pytest.mark.parametrize(
    "ask",
    [
        lambda of: of.literal(2**64),
        lambda of: of.literal(MOMENT),
        lambda of: of.literal("\ud800"),
        lambda of: of.operation("add", ["a", "b"], ["text", "text"], "text"),
        lambda of: of.operation("modulo", ["a", "b"], ["number", "number"], "number"),
        lambda of: of.operation("sing", ["a"], ["text"], "text"),
        lambda of: of.operation("round", ["a", "b"], ["number", "number"], "number"),
        lambda of: of.operation("substring", ["a", "b"], ["text", "number"], "text"),
        lambda of: of.operation("cast", ["a"], ["date"], "number"),
    ],
)
def test_a_value_that_is_not_printed(values: ModuleType, ask: Callable[[Any], Any]) -> None:
    refused(lambda: ask(values), "sql-engine", NotAllowed)


def test_values_that_one_engine_does_not_print() -> None:
    refused(lambda: postgres_values.literal("a\0b"), "sql-engine", NotAllowed)
    kinds = ["text", "text"]
    refused(lambda: spark_values.operation("like", ["a", "b"], kinds, "boolean"), "sql-engine", NotAllowed)
    odd = lambda: spark_values.operation("part", ["a"], ["date"], "integer", "century")  # noqa: E731
    refused(odd, "sql-engine", NotAllowed)


@DIALECTS
def test_an_aggregate_that_is_not_printed(dialect: ModuleType) -> None:
    refused(lambda: dialect._number("a", "text"), "sql-engine", NotAllowed)
    refused(lambda: dialect.of_person("min", "a", "other", "other"), "sql-engine", NotAllowed)
    refused(lambda: dialect.group_key("a", "other"), "sql-engine", NotAllowed)


# --- PostgreSQL -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "encoding", "code"),
    [(120000, "UTF8", "engine-version"), (160000, "LATIN1", "engine-encoding")],
)
def test_a_server_that_is_too_old_or_has_other_letters(version: int, encoding: str, code: str) -> None:
    found = SimpleNamespace(fetchone=lambda: (encoding,))
    connection = SimpleNamespace(info=SimpleNamespace(server_version=version), execute=lambda text: found)
    refused(lambda: object.__new__(Postgres)._open_all(connection, {}), code)


# --- Spark ------------------------------------------------------------------------------------------------


@pytest.fixture
def gone() -> Spark:
    """A database on a cluster that does not answer any more."""
    made = object.__new__(Spark)
    lost = SimpleNamespace(dropTempView=fail, dropGlobalTempView=fail, getTable=fail)
    made._session = made._given = SimpleNamespace(sql=fail, catalog=lost, read=SimpleNamespace(format=fail))
    made._files, made._kept, made.timeout, made._open = {}, [], None, False
    return made


def test_a_cluster_that_is_gone_says_nothing_of_values(gone: Spark, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "engine-failed"
    refused(lambda: gone.frame("SELECT 1"), code, EngineFailed)
    gone._session.sql = lambda statement: SimpleNamespace(schema=[], collect=fail)
    refused(lambda: gone.rows("SELECT 1"), code, EngineFailed)
    monkeypatch.setattr(gone, "_run", lambda statement: ([("a", "int")], [("text",)]))
    refused(lambda: gone.table("SELECT 1"), code, EngineFailed)
    gone._files = {"view": fail}
    gone.close()
    gone._kept = ["view"]
    gone.close()  # nothing is raised: what is gone has no views
    monkeypatch.setattr(spark_sessions.Silence, "begin", lambda session: None)
    monkeypatch.setattr(spark_sessions.Silence, "end", lambda session: None)
    refused(lambda: Spark({}, session=SimpleNamespace(newSession=fail)), code, EngineFailed)


def test_sources_that_spark_does_not_find(gone: Spark, tmp_path: Path) -> None:
    refused(lambda: gone._find("visits", "no_such_table"), "source-unreadable")
    refused(lambda: gone._find("visits", 3), "source-unreadable")
    gone._computed = lambda frame: "view"  # type: ignore[method-assign]
    refused(lambda: gone._find("visits", 3), "source-unreadable")
    frame = SimpleNamespace(createOrReplaceGlobalTempView=None)
    refused(lambda: Spark._computed(gone, frame), "source-format")
    file = tmp_path / "visits.parquet"
    pyarrow.parquet.write_table(pa.table({"at": pa.array([0], pa.timestamp("ms"))}), file)
    refused(lambda: _check_units(file), "source-milliseconds")


def test_sessions_that_are_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = SimpleNamespace(master=lambda name: builder, config=lambda *_: builder, getOrCreate=fail, create=fail)
    builder.remote = lambda master: builder
    session = SimpleNamespace(builder=builder, getActiveSession=lambda: None)
    sparks = {
        "pyspark.sql": SimpleNamespace(SparkSession=session),
        "pyspark": SimpleNamespace(SparkContext=SimpleNamespace(_active_spark_context=None)),
    }
    monkeypatch.setattr(spark_sessions, "need", lambda name, *_: sparks[name])
    refused(lambda: session_for("sc://host", {}), "engine-unreachable")
    refused(lambda: session_for("spark://host", {}), "engine-unreachable")
    other = SimpleNamespace(sparkContext=SimpleNamespace(master="spark://other"))
    monkeypatch.setattr(session, "getActiveSession", lambda: other)
    refused(lambda: session_for("spark://host", {}), "spark-session")
    refused(lambda: own_session(SimpleNamespace()), "spark-session")


# --- DataFrames to learn from -----------------------------------------------------------------------------


def columns(*names: str, streaming: bool = False) -> Any:
    """A DataFrame of text, as far as its columns are looked at."""
    text = SimpleNamespace(typeName=lambda: "string")
    fields = [SimpleNamespace(name=name, dataType=text) for name in names]
    return SimpleNamespace(schema=SimpleNamespace(fields=fields), isStreaming=streaming)


def collected(*rows: tuple[bytes, bytes]) -> Any:
    """A DataFrame whose pass brings these marks and parts."""
    spread = SimpleNamespace(collect=lambda: rows)
    return SimpleNamespace(mapInArrow=lambda *_: spread, sparkSession=None)


def test_a_pass_that_cannot_be_trusted() -> None:
    work: Any = None
    refused(lambda: run_on_partitions(SimpleNamespace(mapInArrow=fail), work), "engine-failed", EngineFailed)
    refused(
        lambda: run_on_partitions(collected((b"one", b""), (b"two", b"")), work), "spark-workers-differ", EngineFailed
    )
    refused(lambda: dataframes._add([b"short"], 2), "engine-failed", EngineFailed)
    refused(lambda: dataframes._whole(0.5), "out-of-range")


def test_frames_that_cannot_be_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    refused(lambda: kinds_of(columns("a", streaming=True)), "source-streaming")
    refused(lambda: kinds_of(SimpleNamespace()), "source-columns")
    refused(lambda: partitions_of(columns("a", "a"), ["a"], None), "source-columns")
    refused(lambda: ByPartition(max, ["a"]), "not-additive")
    refused(lambda: ByPartition(Count(), ["a"])([1]), "wrong-type")
    monkeypatch.setattr(dataframes, "is_spark_dataframe", lambda data: True)
    refused(lambda: ByPartition(Count(), ["a"])(columns("a")), "unknown-column")


@pytest.mark.parametrize("ask", [DuckDB.rows, DuckDB.table])
def test_nothing_hangs_on_the_error_of_an_engine(ask: Any) -> None:
    """The engine's own error, which quotes the value, was its `__context__`."""
    engine = DuckDB({"t": pa.table({"note": [CANARY]})})
    with pytest.raises(EngineFailed) as failed:
        ask(engine, f"SELECT CAST(note AS INTEGER) FROM {engine.relations['t']}")
    assert failed.value.__context__ is None
    assert CANARY not in words_of(failed.value)
    engine.close()
