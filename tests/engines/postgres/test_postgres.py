"""What is PostgreSQL's own: the policy that names it, its types, who it trusts, and what is left when it fails."""

from __future__ import annotations

import datetime
import math
import threading
import time
import traceback
import uuid

import psycopg
import pyarrow as pa
import pytest

import discreet as dp
from discreet import testing
from discreet.datasets.database import Database
from discreet.datasets.policy import load
from discreet.engines.postgres.engine import Postgres
from discreet.errors import DiscreetError, EngineFailed, InvalidArgument
from discreet.sql.schema import Column, Schema, Table

from ...refusing import refuses
from ..conftest import sql

POLICY = """
[ledger]
path = "clinic.ledger"
epsilon = 10.0
[engine]
kind = "postgres"
url = "{url}"
timeout = {timeout}
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


@pytest.fixture
def source(server):
    return server.loaded({"visits": VISITS})["visits"]


def written(folder, url, source, timeout=600):
    path = folder / "clinic.toml"
    path.write_text(POLICY.format(url=url, source=source, timeout=timeout))
    return path


def spent(database: Database) -> float:
    """The ε that was charged."""
    return float(database.ledger.spent["ε"])


def with_password(url: str, password: str) -> str:
    return url.replace("postgres@", f"postgres:{password}@")


# --- the policy ---------------------------------------------------------------------------------------------


def test_a_policy_names_a_database(server, source, tmp_path):
    database = dp.connect(written(tmp_path, server.url, source))
    with testing.no_noise():
        answer = database.sql(COUNT, epsilon=1)
    assert answer.as_json()["rows"] == [[3, 6.0]]
    assert spent(database) == 1
    database.close()


def test_answers_are_not_replayed_without_a_version(server, source, tmp_path):
    """The rows may have changed: only a declared version makes the same question free."""
    path = written(tmp_path, server.url, source)
    database = dp.connect(path)
    receipts = {database.sql(COUNT, epsilon=1).receipt for _ in range(2)}
    assert len(receipts) == 2
    path.write_text(path.read_text().replace("rows_per_person = 2", 'rows_per_person = 2\nversion = "2025-01"'))
    again = dp.connect(path)
    assert [again.sql(COUNT, epsilon=1).replayed for _ in range(2)] == [False, True]


def test_a_password_is_nowhere(server, source, tmp_path):
    url = with_password(server.url, "hunter2")
    path = written(tmp_path, url, source)
    database = dp.connect(path)
    told = [str(database.explain(COUNT, epsilon=1)), repr(load(path)), repr(database.engine), load(path).public_text()]
    for mend in (("127.0.0.1", "127.0.0.1:1/x?y="), ("/postgres", "/nowhere")):
        with refuses(EngineFailed, "engine-unreachable") as caught:
            dp.connect(written(tmp_path, url.replace(*mend), source))
        told.append("".join(traceback.format_exception(caught.value)))
    assert not any("hunter2" in text for text in told)


@pytest.mark.parametrize("source", ["visits", "a.b.c", ".visits", "public."])
def test_a_source_has_a_schema(server, source, tmp_path):
    with refuses(InvalidArgument, "source-name"):
        dp.connect(written(tmp_path, server.url, source))


def test_a_source_is_a_table_that_may_be_read(server, source, tmp_path):
    schema = source.partition(".")[0]
    server.connection.execute(f"CREATE VIEW {schema}.seen AS SELECT 1 / pid AS x, * FROM {source}")
    for wrong, code in ((f"{schema}.nothing", "source-missing"), (f"{schema}.seen", "source-not-a-table")):
        with refuses(InvalidArgument, code):
            dp.connect(written(tmp_path, server.url, wrong))
    server.connection.execute(f"CREATE ROLE nobody_{schema} LOGIN")
    with refuses(InvalidArgument, "source-no-rights"):
        dp.connect(written(tmp_path, server.url.replace("postgres@", f"nobody_{schema}@"), source))
    server.connection.execute(f"DROP ROLE nobody_{schema}")


# --- types --------------------------------------------------------------------------------------------------


def test_types_of_postgres(server):
    schema = server.loaded({"visits": VISITS})["visits"].partition(".")[0]
    run = server.connection.execute
    run(f"CREATE TYPE {schema}.mood AS ENUM ('well', 'ill')")
    run(f"CREATE DOMAIN {schema}.age AS int2 CHECK (VALUE >= 0)")
    run(
        f"CREATE TABLE {schema}.odd (pid uuid, small int2, age {schema}.age, mood {schema}.mood, real_ float4, "
        "price numeric, fixed char(5), long varchar(9), day date, at timestamp, zoned timestamptz, made json, "
        "many int[])"
    )
    me = uuid.uuid4()
    for price, day, at in (
        ("12.5", "2024-01-02", "2024-01-02 03:04:05+00"),
        ("NaN", "infinity", "-infinity"),
        ("1e400", "5000000-01-01", "200000-01-01"),
        ("1e-400", "4000-01-01 BC", "4000-01-01 BC"),
        (None, None, None),
    ):
        run(
            f"INSERT INTO {schema}.odd VALUES (%s, 1, 2, 'ill', 0.5, %s, 'ab', 'cd', %s, %s, %s, '{{}}', '{{1}}')",
            (me, price, day, at, at and at.replace("+00", "+05:30")),
        )
    engine = Postgres(server.url, {"odd": f"{schema}.odd"})
    kinds = ["text", "integer", "integer", "text", "number", "number", "text", "text", "date", "timestamp", "timestamp"]
    assert list(engine.columns("odd").values()) == [*kinds, "other", "other"]
    columns = "pid, small, age, mood, real_, price, fixed, day, at, zoned"
    found = engine.rows(f"SELECT {columns} FROM {engine.relations['odd']}")
    assert found[0][:5] == (str(me), 1, 2, "ill", 0.5)
    assert found[0][5:8] == (12.5, "ab", datetime.date(2024, 1, 2))
    assert found[0][8] == datetime.datetime(2024, 1, 2, 3, 4, 5)
    assert found[0][9] == datetime.datetime(2024, 1, 1, 21, 34, 5)  # in UTC
    assert math.isnan(found[1][5])
    assert [row[5] for row in found[2:]] == [None, 0.0, None]
    assert [row[7:] for row in found[1:]] == [(None, None, None)] * 4


def test_nothing_of_the_role_or_the_schema_is_trusted(server, tmp_path):
    """A function, an operator or a setting that someone put in the way is not used."""
    source = server.loaded({"visits": VISITS})["visits"]
    schema = source.partition(".")[0]
    run = server.connection.execute
    run(f"CREATE FUNCTION {schema}.abs(float8) RETURNS float8 LANGUAGE sql AS 'SELECT 1e6::float8'")
    run(f"CREATE ROLE odd_{schema} LOGIN")
    run(f"GRANT USAGE ON SCHEMA {schema} TO odd_{schema}")
    run(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO odd_{schema}")
    for setting in (
        f"search_path = {schema}, pg_catalog",
        "standard_conforming_strings = off",
        "DateStyle = 'SQL, DMY'",
        "extra_float_digits = -5",
        "transform_null_equals = on",
    ):
        run(f"ALTER ROLE odd_{schema} SET {setting}")
    database = dp.connect(written(tmp_path, server.url.replace("postgres@", f"odd_{schema}@"), source))
    text = COUNT + r" WHERE abs(cost) < 3 AND note <> 'x\' AND (note = NULL) IS NULL"
    with testing.no_noise():
        assert database.sql(text, epsilon=1).as_json()["rows"] == [[2, 3.0]]
    run(f"DROP OWNED BY odd_{schema}")
    run(f"DROP ROLE odd_{schema}")


def test_it_only_reads(server, source):
    engine = Postgres(server.url, {"visits": source})
    for text in (f"DELETE FROM {source}", f"CREATE TABLE {source}2 (x int)", "SELECT 1; DROP TABLE x"):
        with pytest.raises(EngineFailed):
            engine.rows(text)
    assert server.connection.execute(f"SELECT count(*) FROM {source}").fetchone() == (3,)


# --- failure ------------------------------------------------------------------------------------------------


def opened(url: str, source: str, timeout: int) -> Database:
    engine = Postgres(url, {"visits": source}, timeout=timeout)
    told = {name: Column(name=name, type=kind) for name, kind in engine.columns("visits").items()}
    told["cost"] = Column(name="cost", type="number", between=(0, 10))
    table = Table(name="visits", columns=told, person="pid", rows_per_person=2)
    unit = dp.person("pid")
    return Database(Schema(unit=unit, tables={"visits": table}), engine, sql.open_ledger(unit))


def check_failed_and_retried(database: Database, error: DiscreetError, release) -> None:
    """One public error that quotes nothing; the charge stays, and the same key answers without a new one."""
    assert error.__context__ is None
    assert error.__cause__ is None
    assert error.code == "engine-failed"
    assert spent(database) == 1
    release()
    with testing.no_noise():
        answer = database.sql(COUNT, epsilon=1, key="again")
    assert answer.as_json()["rows"] == [[3, 6.0]]
    assert spent(database) == 1


@pytest.mark.slow
def test_a_statement_that_takes_too_long(server, source):
    database = opened(server.url, source, timeout=1)
    with psycopg.connect(server.url) as other:
        other.execute(f"LOCK TABLE {source} IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(EngineFailed) as caught:
            database.sql(COUNT, epsilon=1, key="again")
        check_failed_and_retried(database, caught.value, other.rollback)


def test_a_server_that_goes_away(server, source):
    database = opened(server.url, source, timeout=60)
    waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE %s"
    with psycopg.connect(server.url) as other:
        other.execute(f"LOCK TABLE {source} IN ACCESS EXCLUSIVE MODE")

        def cut() -> None:
            for _ in range(300):
                found = server.connection.execute(waiting, (f"%{source.partition('.')[0]}%",)).fetchall()
                for (pid,) in found:
                    server.connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
                if found:
                    return
                time.sleep(0.1)

        thread = threading.Thread(target=cut)
        thread.start()
        with pytest.raises(EngineFailed) as caught:
            database.sql(COUNT, epsilon=1, key="again")
        thread.join()
        check_failed_and_retried(database, caught.value, other.rollback)


def test_a_table_that_is_dropped(server, source):
    """A failure that lasts: every retry fails with the same words, and costs nothing more."""
    database = opened(server.url, source, timeout=60)
    server.connection.execute(f"DROP TABLE {source}")
    said = set()
    for _ in range(2):
        with pytest.raises(EngineFailed) as caught:
            database.sql(COUNT, epsilon=1, key="again")
        said.add(str(caught.value))
    assert len(said) == 1
    assert spent(database) == 1


def test_what_cannot_be_converted_is_quoted_in_no_error() -> None:
    import decimal

    from discreet.engines.postgres import engine as postgres

    for odd in (decimal.Decimal("NaN"), decimal.Decimal("Infinity")):
        with pytest.raises(EngineFailed) as failed:
            postgres._convert(lambda odd=odd: postgres._plain(odd))  # type: ignore[misc]
        assert failed.value.__context__ is None
        assert "NaN" not in str(failed.value)
