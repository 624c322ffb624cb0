"""One test body for every engine: the clinic of the SQL tests, its rows loaded into each of them."""

from __future__ import annotations

import importlib.util
import itertools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from discreet.engines.duckdb import DuckDB
from discreet.engines.postgres import Postgres


def beside(folder: str, name: str = "conftest") -> Any:
    """A module of other tests."""
    spec = importlib.util.spec_from_file_location(f"{folder}_{name}", Path(__file__).parents[1] / folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


sql = beside("sql")
postgres = beside("ledger").postgres
pytest_generate_tests = sql.pytest_generate_tests
ENGINES = ("duckdb", "postgres")
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
    return sql.Clinic() if where == "duckdb" else PostgresClinic(request.getfixturevalue("server"))


@pytest.fixture(scope="session")
def opened(request: pytest.FixtureRequest, where: str) -> Any:
    """An engine on tables of its own."""
    if where == "duckdb":
        return DuckDB

    def make(data: Mapping[str, pa.Table]) -> Postgres:
        server = request.getfixturevalue("server")
        return Postgres(server.url, server.loaded(data))

    return make
