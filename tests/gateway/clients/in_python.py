"""Clients in Python, each with its own way to connect, list tables, ask, fail and cancel.

It runs in an environment of its own, which has these clients and not the project: `python in_python.py CLIENT`, with
the task as JSON on its input. It prints what the client saw, as JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import csv
import io
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any


class Psycopg:
    """psycopg 3: text and binary, pipelines, and cursors on the server."""

    def __init__(self, task: dict[str, Any]) -> None:
        import psycopg

        self._errors = psycopg.Error
        self.connection = psycopg.connect(_url(task), autocommit=True)

    def tables(self) -> list[str]:
        return [row[0] for row in self.rows(_TABLES)]

    def rows(self, sql: str) -> list[Any]:
        return [list(row) for row in self.connection.execute(sql).fetchall()]

    def state(self, sql: str) -> str | None:
        try:
            self.rows(sql)
        except self._errors as error:
            return error.sqlstate
        return None

    def cancelled(self, sql: str) -> str | None:
        threading.Timer(0.5, self.connection.cancel_safe).start()
        return self.state(sql)

    def more(self, sql: str) -> dict[str, Any]:
        binary = self.connection.cursor(binary=True).execute(sql).fetchall()
        with self.connection.transaction(), self.connection.cursor(name="some") as cursor:
            cursor.execute(sql)
            pages = [cursor.fetchmany(2), cursor.fetchmany(2)]
        with self.connection.pipeline():
            both = [self.connection.execute(sql), self.connection.execute(sql)]
        with self.connection.cursor().copy(f"COPY ({sql}) TO STDOUT") as copied:
            text = b"".join(bytes(part) for part in copied).decode()
        return {
            "binary": _plain(binary),
            "cursor": _plain([row for page in pages for row in page]),
            "pipeline": [_plain(one.fetchall()) for one in both],
            "copy": [line.split("\t") for line in text.splitlines()],
        }


class Psycopg2(Psycopg):
    """psycopg 2, with named cursors."""

    def __init__(self, task: dict[str, Any]) -> None:
        import psycopg2

        self._errors = psycopg2.Error
        self.connection = psycopg2.connect(_url(task))

    def rows(self, sql: str) -> list[Any]:
        with self.connection, self.connection.cursor() as cursor:
            cursor.execute(sql)
            return [list(row) for row in cursor.fetchall()]

    def state(self, sql: str) -> str | None:
        try:
            self.rows(sql)
        except self._errors as error:
            return error.pgcode
        return None

    def cancelled(self, sql: str) -> str | None:
        threading.Timer(0.5, self.connection.cancel).start()
        return self.state(sql)

    def more(self, sql: str) -> dict[str, Any]:
        with self.connection, self.connection.cursor(name="some") as cursor:
            cursor.itersize = 2
            cursor.execute(sql)
            return {"cursor": _plain(cursor)}


class Asyncpg:
    """asyncpg: it prepares every statement, and reads binary values."""

    def __init__(self, task: dict[str, Any]) -> None:
        import asyncpg

        self._errors = asyncpg.PostgresError
        self._loop = asyncio.new_event_loop()
        self.connection = self._loop.run_until_complete(asyncpg.connect(_url(task)))

    def tables(self) -> list[str]:
        return [row[0] for row in self.rows(_TABLES)]

    def rows(self, sql: str, *given: Any) -> list[Any]:
        return _plain(self._loop.run_until_complete(self.connection.fetch(sql, *given)))

    def state(self, sql: str) -> str | None:
        try:
            self.rows(sql)
        except self._errors as error:
            return error.sqlstate
        return None

    def cancelled(self, sql: str) -> str | None:
        """A time limit of asyncpg sends a request to cancel."""
        try:
            self._loop.run_until_complete(self.connection.fetch(sql, timeout=0.5))
        except TimeoutError:
            return "57014"
        return None

    def more(self, sql: str) -> dict[str, Any]:
        given = self.rows("SELECT COUNT(*) AS n FROM visits WHERE cost <= $1 AND city = $2", 50.0, "Koper")
        return {"parameters": given}


class Pg8000(Asyncpg):
    """pg8000, which is written in Python."""

    def __init__(self, task: dict[str, Any]) -> None:
        import pg8000.native

        self._errors = pg8000.native.DatabaseError
        names = {"database": task["database"], "password": task["password"]}
        self.connection = pg8000.native.Connection(task["user"], host=task["host"], port=task["port"], **names)

    def rows(self, sql: str, *given: Any) -> list[Any]:
        return _plain(self.connection.run(sql))

    def state(self, sql: str) -> str | None:
        try:
            self.rows(sql)
        except self._errors as error:
            return error.args[0]["C"]
        return None

    def cancelled(self, sql: str) -> str | None:
        raise NotImplementedError

    def more(self, sql: str) -> dict[str, Any]:
        asked = "SELECT COUNT(*) AS n FROM visits WHERE cost <= :most"
        return {"parameters": _plain(self.connection.run(asked, most=50.0))}


class SqlAlchemy:
    """SQLAlchemy with psycopg: it reflects the tables."""

    driver = "psycopg"

    def __init__(self, task: dict[str, Any]) -> None:
        import sqlalchemy

        self._sqlalchemy = sqlalchemy
        self.engine = sqlalchemy.create_engine(_url(task, f"postgresql+{self.driver}"))

    def tables(self) -> list[str]:
        return self._sqlalchemy.inspect(self.engine).get_table_names()

    def rows(self, sql: str) -> list[Any]:
        with self.engine.connect() as connection:
            return _plain(connection.execute(self._sqlalchemy.text(sql)).fetchall())

    def state(self, sql: str) -> str | None:
        try:
            self.rows(sql)
        except self._sqlalchemy.exc.DBAPIError as error:
            return getattr(error.orig, "sqlstate", None) or error.orig.pgcode
        return None

    def cancelled(self, sql: str) -> str | None:
        raise NotImplementedError

    def more(self, sql: str) -> dict[str, Any]:
        known = self._sqlalchemy.MetaData()
        known.reflect(self.engine)
        visits = known.tables["visits"]
        count = self._sqlalchemy.func.count().label("n")
        asked = self._sqlalchemy.select(visits.c.city, count).group_by(visits.c.city).order_by(visits.c.city)
        with self.engine.connect() as connection:
            built = _plain(connection.execute(asked).fetchall())
        types = {column.name: str(column.type) for column in visits.columns}
        return {"types": types, "built": built, "reflected": sorted(known.tables)}


class SqlAlchemy2(SqlAlchemy):
    """SQLAlchemy with psycopg 2."""

    driver = "psycopg2"


class Pandas(SqlAlchemy):
    """pandas through SQLAlchemy, which first looks for a table with the name of the whole question."""

    driver = "psycopg2"

    def rows(self, sql: str) -> list[Any]:
        import pandas

        try:
            return _plain(pandas.read_sql(sql, self.engine).itertuples(index=False))
        except pandas.errors.DatabaseError as error:
            raise error.__cause__ or error from None

    def more(self, sql: str) -> dict[str, Any]:
        import pandas

        return {"types": {name: str(kind) for name, kind in pandas.read_sql(sql, self.engine).dtypes.items()}}


class Adbc:
    """ADBC: it copies binary rows out."""

    def __init__(self, task: dict[str, Any]) -> None:
        import adbc_driver_postgresql.dbapi

        self._errors = adbc_driver_postgresql.dbapi.Error
        self.connection = adbc_driver_postgresql.dbapi.connect(_url(task), autocommit=True)

    def tables(self) -> list[str]:
        found = self.connection.adbc_get_objects(depth="tables", db_schema_filter="public").read_all().to_pylist()
        return [
            table["table_name"]
            for catalog in found
            for schema in catalog["catalog_db_schemas"]
            for table in schema["db_schema_tables"]
        ]

    def rows(self, sql: str) -> list[Any]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            return _plain(cursor.fetchall())

    def state(self, sql: str) -> str | None:
        try:
            self.rows(sql)
        except self._errors as error:
            return error.sqlstate
        return None

    def cancelled(self, sql: str) -> str | None:
        with self.connection.cursor() as cursor:
            threading.Timer(0.5, cursor.adbc_cancel).start()
            try:
                cursor.execute(sql)
                cursor.fetchall()
            except self._errors:
                return "57014"  # ADBC has an error of its own for it
        return None

    def more(self, sql: str) -> dict[str, Any]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            table = cursor.fetch_arrow_table()
        return {"types": {field.name: str(field.type) for field in table.schema}}


class Polars(Adbc):
    """polars, which reads through ADBC."""

    def __init__(self, task: dict[str, Any]) -> None:
        super().__init__(task)
        self._task = task

    def rows(self, sql: str) -> list[Any]:
        import polars

        return _plain(polars.read_database_uri(sql, _url(self._task), engine="adbc").rows())

    def cancelled(self, sql: str) -> str | None:
        raise NotImplementedError

    def more(self, sql: str) -> dict[str, Any]:
        import polars

        found = polars.read_database_uri(sql, _url(self._task), engine="adbc")
        return {"types": {name: str(kind) for name, kind in found.schema.items()}}


class Odbc:
    """psqlODBC through unixODBC. With `fetches`, it declares a cursor and fetches from it."""

    fetches = 0

    def __init__(self, task: dict[str, Any]) -> None:
        import pyodbc

        self._errors = pyodbc.Error
        said = {"Driver": "PostgreSQL Unicode", "Server": task["host"], "Port": task["port"], "Uid": task["user"]}
        said |= {"Pwd": task["password"], "Database": task["database"], "UseDeclareFetch": self.fetches, "Fetch": 2}
        self.connection = pyodbc.connect(";".join(f"{name}={value}" for name, value in said.items()))

    def tables(self) -> list[str]:
        return [row.table_name for row in self.connection.cursor().tables(tableType="TABLE")]

    def rows(self, sql: str) -> list[Any]:
        found = _plain(self.connection.execute(sql).fetchall())
        self.connection.commit()
        return found

    def state(self, sql: str) -> str | None:
        try:
            self.rows(sql)
        except self._errors as error:
            self.connection.rollback()
            return error.args[0]
        return None

    def cancelled(self, sql: str) -> str | None:
        cursor = self.connection.cursor()
        threading.Timer(0.5, cursor.cancel).start()
        try:
            cursor.execute(sql).fetchall()
        except self._errors as error:
            self.connection.rollback()
            return error.args[0]
        return None

    def more(self, sql: str) -> dict[str, Any]:
        columns = self.connection.cursor().columns(table="visits")
        return {"types": {row.column_name: row.type_name for row in columns}}


class OdbcFetching(Odbc):
    """psqlODBC with UseDeclareFetch, as Tableau uses it."""

    fetches = 1


class Pgcli:
    """pgcli, as a program."""

    def __init__(self, task: dict[str, Any]) -> None:
        self._url = _url(task)
        self._folder = tempfile.TemporaryDirectory()
        self._config = Path(self._folder.name) / "config"
        self._config.write_text("[main]\ntable_format = csv\ntiming = False\n")

    def _run(self, text: str) -> list[str]:
        command = [sys.executable, "-m", "pgcli.main", self._url, "--pgclirc", str(self._config), "-c", text]
        run = subprocess.run(command, capture_output=True, text=True, env={"HOME": self._folder.name}, check=False)
        return run.stdout.splitlines()

    def _cells(self, text: str) -> list[list[str]]:
        return list(csv.reader(line for line in self._run(text) if line.startswith('"')))

    def tables(self) -> list[str]:
        return [row[1] for row in self._cells("\\dt") if row[2] == "table"]

    def rows(self, sql: str) -> list[Any]:
        return [[name, int(count), float(error)] for name, count, error in self._cells(sql)[1:]]

    def state(self, sql: str) -> str | None:
        """It shows messages, and no codes."""
        return " ".join(self._run(sql))

    def cancelled(self, sql: str) -> str | None:
        raise NotImplementedError

    def more(self, sql: str) -> dict[str, Any]:
        return {}


class JupySql(SqlAlchemy):
    """JupySQL: the magic %sql in a notebook's shell."""

    def __init__(self, task: dict[str, Any]) -> None:
        super().__init__(task)
        from IPython.core.interactiveshell import InteractiveShell

        self.shell = InteractiveShell.instance()
        self.shell.run_line_magic("load_ext", "sql")
        self.shell.run_line_magic("config", "SqlMagic.displaycon = False")
        self.shell.run_line_magic("config", "SqlMagic.feedback = 0")
        self.shell.run_line_magic("sql", _url(task, "postgresql+psycopg2"))

    def rows(self, sql: str) -> list[Any]:
        return _plain(self.shell.run_cell_magic("sql", "", sql))

    def state(self, sql: str) -> str | None:
        """It shows messages, and no codes: some in an error, and some in its output."""
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                found = self.shell.run_cell_magic("sql", "", sql)
        except Exception as error:
            return str(error)
        return said.getvalue() if found is None else "answered"

    def more(self, sql: str) -> dict[str, Any]:
        return {}


CLIENTS = {
    "psycopg": Psycopg,
    "psycopg2": Psycopg2,
    "asyncpg": Asyncpg,
    "pg8000": Pg8000,
    "sqlalchemy": SqlAlchemy,
    "sqlalchemy-psycopg2": SqlAlchemy2,
    "pandas": Pandas,
    "polars": Polars,
    "adbc": Adbc,
    "odbc": Odbc,
    "odbc-fetching": OdbcFetching,
    "pgcli": Pgcli,
    "jupysql": JupySql,
}
_TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY table_name"


def _url(task: dict[str, Any], scheme: str = "postgresql") -> str:
    return f"{scheme}://{task['user']}:{task['password']}@{task['host']}:{task['port']}/{task['database']}"


def _plain(rows: Any) -> list[list[Any]]:
    return [list(row) for row in rows]


def main() -> None:
    task = json.load(sys.stdin)
    client: Any = CLIENTS[sys.argv[1]](task)
    saw: dict[str, Any] = {"tables": sorted(client.tables()), "rows": client.rows(task["ask"])}
    saw["again"] = client.rows(task["ask"])
    saw["scan"] = client.state(task["scan"])
    saw["budget"] = client.state(task["budget"])
    try:
        begun = time.monotonic()
        saw["cancel"] = client.cancelled(task["slow"])
        saw["waited"] = time.monotonic() - begun
    except NotImplementedError:
        saw["cancel"] = "no way to cancel"
    saw["after"] = client.rows(task["ask"])
    saw["more"] = client.more(task["ask"])
    print(json.dumps(saw, default=float))


if __name__ == "__main__":
    main()
