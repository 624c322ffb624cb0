"""What engines refuse, without one: words that they do not print, sources and sessions that they do not take."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from fuzz.oracle import CANARY, words_of

from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.postgres import dialect as postgres_dialect
from discreet.engines.postgres import values as postgres_values
from discreet.engines.postgres.engine import Postgres
from discreet.engines.spark import dialect as spark_dialect
from discreet.engines.spark import frames
from discreet.engines.spark import sessions as spark_sessions
from discreet.engines.spark import values as spark_values
from discreet.engines.spark.engine import Spark, _check_units
from discreet.engines.spark.frames import ByPartition, kinds_of, partitions_of, passed
from discreet.engines.spark.sessions import own_session, session_for
from discreet.errors import DiscreetError, EngineFailed, InvalidArgument, NotAllowed
from discreet.queries.counts import Count

VALUES = pytest.mark.parametrize("values", [postgres_values, spark_values], ids=["postgres", "spark"])
DIALECTS = pytest.mark.parametrize("dialect", [postgres_dialect, spark_dialect], ids=["postgres", "spark"])
MOMENT = datetime.datetime(2025, 1, 31, tzinfo=datetime.UTC)


def refused(asked: Callable[[], Any], said: str, kind: type[DiscreetError] = InvalidArgument) -> None:
    with pytest.raises(kind, match=re.escape(said)):
        asked()


def fail(*_: Any, **__: Any) -> Any:
    """What a cluster does that is gone."""
    raise RuntimeError("a true value")


# --- dialects ------------------------------------------------------------------------------------------------


@VALUES
@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda of: of.literal(2**64), "A number of more than 64 bits"),
        (lambda of: of.literal(MOMENT), "A constant of type datetime"),
        (lambda of: of.literal("\ud800"), "Text that is not Unicode"),
        (lambda of: of.operation("add", ["a", "b"], ["text", "text"], "text"), "ADD is not answered"),
        (
            lambda of: of.operation("modulo", ["a", "b"], ["number", "number"], "number"),
            "of numbers that are not whole",
        ),
        (lambda of: of.operation("sing", ["a"], ["text"], "text"), "SING is not answered"),
        (lambda of: of.operation("round", ["a", "b"], ["number", "number"], "number"), "ROUND to other"),
        (
            lambda of: of.operation("substring", ["a", "b"], ["text", "number"], "text"),
            "SUBSTRING with places",
        ),
        (lambda of: of.operation("cast", ["a"], ["date"], "number"), "A cast from date to number"),
    ],
)
def test_a_value_that_is_not_printed(values: ModuleType, ask: Callable[[Any], Any], said: str) -> None:
    refused(lambda: ask(values), said, NotAllowed)


def test_values_that_one_engine_does_not_print() -> None:
    refused(lambda: postgres_values.literal("a\0b"), "Text with a zero character", NotAllowed)
    kinds = ["text", "text"]
    refused(lambda: spark_values.operation("like", ["a", "b"], kinds, "boolean"), "LIKE with a pattern", NotAllowed)
    odd = lambda: spark_values.operation("part", ["a"], ["date"], "integer", "century")  # noqa: E731
    refused(odd, "CENTURY of a date is not answered from Spark", NotAllowed)


@DIALECTS
def test_an_aggregate_that_is_not_printed(dialect: ModuleType) -> None:
    refused(lambda: dialect._number("a", "text"), "A sum or rank of a text", NotAllowed)
    refused(lambda: dialect.of_person("min", "a", "other", "other"), "MIN of a column of another type", NotAllowed)
    refused(lambda: dialect.group_key("a", "other"), "GROUP BY a column of type other", NotAllowed)


# --- PostgreSQL -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "encoding", "said"),
    [(120000, "UTF8", "needs PostgreSQL 13 or later"), (160000, "LATIN1", "a database whose encoding is UTF8")],
)
def test_a_server_that_is_too_old_or_has_other_letters(version: int, encoding: str, said: str) -> None:
    found = SimpleNamespace(fetchone=lambda: (encoding,))
    connection = SimpleNamespace(info=SimpleNamespace(server_version=version), execute=lambda text: found)
    refused(lambda: object.__new__(Postgres)._open_all(connection, {}), said)


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
    said = "Spark could not compute this"
    refused(lambda: gone.frame("SELECT 1"), said, EngineFailed)
    gone._session.sql = lambda statement: SimpleNamespace(schema=[], collect=fail)
    refused(lambda: gone.rows("SELECT 1"), said, EngineFailed)
    monkeypatch.setattr(gone, "_run", lambda statement: ([("a", "int")], [("text",)]))
    refused(lambda: gone.table("SELECT 1"), said, EngineFailed)
    gone._files = {"view": fail}
    gone.close()
    gone._kept = ["view"]
    gone.close()  # nothing is raised: what is gone has no views
    monkeypatch.setattr(spark_sessions.Silence, "begin", lambda session: None)
    monkeypatch.setattr(spark_sessions.Silence, "end", lambda session: None)
    refused(lambda: Spark({}, session=SimpleNamespace(newSession=fail)), said, EngineFailed)


def test_sources_that_spark_does_not_find(gone: Spark, tmp_path: Path) -> None:
    refused(lambda: gone._find("visits", "no_such_table"), "The source of visits cannot be read: no_such_table")
    refused(lambda: gone._find("visits", 3), "The source of visits must be a table of Spark")
    gone._computed = lambda frame: "view"  # type: ignore[method-assign]
    refused(lambda: gone._find("visits", 3), "The source of visits must be a table of Spark")
    frame = SimpleNamespace(createOrReplaceGlobalTempView=None)
    refused(lambda: Spark._computed(gone, frame), "This Spark cannot keep a DataFrame or view")
    file = tmp_path / "visits.parquet"
    pyarrow.parquet.write_table(pa.table({"at": pa.array([0], pa.timestamp("ms"))}), file)
    refused(lambda: _check_units(file), "at is in milliseconds, which may stop Spark")


def test_sessions_that_are_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = SimpleNamespace(master=lambda name: builder, config=lambda *_: builder, getOrCreate=fail, create=fail)
    builder.remote = lambda master: builder
    session = SimpleNamespace(builder=builder, getActiveSession=lambda: None)
    sparks = {
        "pyspark.sql": SimpleNamespace(SparkSession=session),
        "pyspark": SimpleNamespace(SparkContext=SimpleNamespace(_active_spark_context=None)),
    }
    monkeypatch.setattr(spark_sessions, "need", lambda name, *_: sparks[name])
    refused(lambda: session_for("sc://host", {}), "Spark cannot be started or reached")
    refused(lambda: session_for("spark://host", {}), "Spark cannot be started or reached")
    other = SimpleNamespace(sparkContext=SimpleNamespace(master="spark://other"))
    monkeypatch.setattr(session, "getActiveSession", lambda: other)
    refused(lambda: session_for("spark://host", {}), "Another session of Spark runs in this process")
    refused(lambda: own_session(SimpleNamespace()), "This session of Spark Connect cannot make another")


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
    refused(lambda: passed(SimpleNamespace(mapInArrow=fail), work), "Spark cannot finish a pass", EngineFailed)
    refused(lambda: passed(collected((b"one", b""), (b"two", b"")), work), "do not compute alike", EngineFailed)
    refused(lambda: frames._added([b"short"], 2), "Spark cannot finish a pass", EngineFailed)
    refused(lambda: frames._whole(0.5), "A sum must be of whole numbers below 2^100")


def test_frames_that_cannot_be_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    refused(lambda: kinds_of(columns("a", streaming=True)), "A streaming DataFrame has no end")
    refused(lambda: kinds_of(SimpleNamespace()), "Spark cannot find the columns of the DataFrame")
    refused(lambda: partitions_of(columns("a", "a"), ["a"], None), "Spark cannot find the columns of the DataFrame")
    refused(lambda: ByPartition(max, ["a"]), "Only counts, histograms and sums add up")
    refused(lambda: ByPartition(Count(), ["a"])([1]), "The data must be a DataFrame of Spark")
    monkeypatch.setattr(frames, "is_frame", lambda data: True)
    refused(lambda: ByPartition(Count(), ["a"])(columns("a")), "There is no column of numbers a. Name one")


@pytest.mark.parametrize("ask", [DuckDB.rows, DuckDB.table])
def test_nothing_hangs_on_the_error_of_an_engine(ask: Any) -> None:
    """The engine's own error, which quotes the value, was its `__context__`."""
    engine = DuckDB({"t": pa.table({"note": [CANARY]})})
    with pytest.raises(EngineFailed) as failed:
        ask(engine, f"SELECT CAST(note AS INTEGER) FROM {engine.relations['t']}")
    assert failed.value.__context__ is None
    assert CANARY not in words_of(failed.value)
    engine.close()
