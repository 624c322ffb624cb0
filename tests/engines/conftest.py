"""One test body for every engine: the clinic of the SQL tests, its rows loaded into each of them."""

from __future__ import annotations

import importlib.util
import itertools
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.postgres.engine import Postgres
from discreet.engines.spark.engine import Spark

QUICK = 70
"""The number of SQL fixtures that PostgreSQL is asked in the quick tests, always the same ones. Others are slow."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spark runs in one process, after the others. PostgreSQL is quickly asked a part of what all engines are."""
    where = [(item, item.callspec.params.get("where")) for item in items if hasattr(item, "callspec")]
    for item, engine in where:
        if engine == "spark":
            item.add_marker(pytest.mark.spark)
    corpus = [item for item, engine in where if engine == "postgres" and item.path.name == "test_corpus.py"]
    for n, item in enumerate(corpus):
        if n * QUICK // len(corpus) == (n - 1) * QUICK // len(corpus):
            item.add_marker(pytest.mark.slow)


def beside(folder: str, name: str = "conftest") -> Any:
    """A module of other tests."""
    spec = importlib.util.spec_from_file_location(f"{folder}_{name}", Path(__file__).parents[1] / folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


sql = beside("sql")
postgres = beside("ledger").postgres
pytest_generate_tests = sql.pytest_generate_tests
ENGINES = ("duckdb", "postgres", "spark")
CORES = 2
ELSEWHERE = "Asia/Kathmandu"
"""The time zone of the session that is passed: ours has another one."""
_numbers = itertools.count()
_TYPES = {
    pa.int64(): "int8",
    pa.int32(): "int4",
    pa.float64(): "float8",
    pa.string(): "text",
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp",
}


class Server:
    """A PostgreSQL server, on which tables are made and dropped."""

    def __init__(self, url: str) -> None:
        import psycopg

        self.url, self.schemas = url, []
        self.connection = psycopg.connect(url, autocommit=True)

    def loaded(self, data: Mapping[str, pa.Table], types: Mapping[str, str] | None = None) -> dict[str, str]:
        """The rows in a schema of their own; the sources by name."""
        schema = f"e{os.getpid()}_{next(_numbers)}"
        self.schemas.append(schema)
        self.connection.execute(f"CREATE SCHEMA {schema}")
        for name, table in data.items():
            kinds = [(types or {}).get(f.name, _TYPES[f.type]) for f in table.schema]
            columns = ", ".join(f'"{f.name}" {kind}' for f, kind in zip(table.schema, kinds, strict=True))
            self.connection.execute(f'CREATE TABLE {schema}."{name}" ({columns})')
            rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
            with self.connection.cursor() as cursor, cursor.copy(f'COPY {schema}."{name}" FROM STDIN') as copy:
                for row in rows:
                    copy.write_row(row)
        return {name: f"{schema}.{name}" for name in data}

    def close(self) -> None:
        for schema in self.schemas:
            self.connection.execute(f"DROP SCHEMA {schema} CASCADE")
        self.connection.close()


class PostgresClinic(sql.Clinic):
    """The clinic, its rows in PostgreSQL."""

    def __init__(self, server: Server) -> None:
        self.server = server
        super().__init__()

    def engine(self, data: Mapping[str, pa.Table]) -> Postgres:
        return Postgres(self.server.url, self.server.loaded(data))


class Lake:
    """A session of Spark, and a folder for Parquet files."""

    def __init__(self, session: Any, folder: Path) -> None:
        self.session, self.folder = session, folder

    def loaded(self, data: Mapping[str, pa.Table]) -> dict[str, str]:
        """The rows as folders of two files each; the sources by name."""
        place = self.folder / str(next(_numbers))
        for name, table in data.items():
            half = table.num_rows // 2
            (place / name).mkdir(parents=True)
            for number, part in enumerate((table.slice(0, half), table.slice(half))):
                pq.write_table(part, place / name / f"{number}.parquet")
        return {name: str(place / name) for name in data}

    def opened(self, data: Mapping[str, pa.Table]) -> Spark:
        return Spark(self.loaded(data), session=self.session)


class SparkClinic(sql.Clinic):
    """The clinic, its rows in Parquet files that Spark reads."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        super().__init__()

    def engine(self, data: Mapping[str, pa.Table]) -> Spark:
        return self.lake.opened(data)


@pytest.fixture(scope="session")
def lake(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """Spark on two cores of this machine."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # where this package is
    builder = SparkSession.builder.master(f"local[{CORES}]").config("spark.ui.enabled", "false")
    for key in ("spark.sql.shuffle.partitions", "spark.default.parallelism"):
        builder = builder.config(key, str(CORES))
    folder = tmp_path_factory.mktemp("lake")
    settings = {"spark.ui.showConsoleProgress": "false", "spark.sql.ansi.enabled": "false"}
    settings |= {"spark.sql.session.timeZone": ELSEWHERE, "spark.sql.warehouse.dir": str(folder / "warehouse")}
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield Lake(session, folder)
    session.stop()


@pytest.fixture(scope="session")
def server(postgres: str) -> Iterator[Server]:
    server = Server(postgres)
    yield server
    server.close()


@pytest.fixture(scope="session", params=ENGINES)
def where(request: pytest.FixtureRequest) -> str:
    """The engine's name."""
    return request.param


@pytest.fixture(scope="session")
def clinic(request: pytest.FixtureRequest, where: str) -> Any:
    """The clinic on each engine."""
    match where:
        case "spark":
            return SparkClinic(request.getfixturevalue("lake"))
        case "postgres":
            return PostgresClinic(request.getfixturevalue("server"))
    return sql.Clinic()


@pytest.fixture(scope="session")
def opened(request: pytest.FixtureRequest, where: str) -> Any:
    """An engine on tables of its own."""
    if where == "duckdb":
        return DuckDB
    if where == "spark":
        return request.getfixturevalue("lake").opened

    def make(data: Mapping[str, pa.Table]) -> Postgres:
        server = request.getfixturevalue("server")
        return Postgres(server.url, server.loaded(data))

    return make
