"""A vault in this process, and a catalog that knows nothing, for tests of sessions over the PostgreSQL protocol."""

from __future__ import annotations

import asyncio
import atexit
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from sqlglot import exp

import discreet as dp
from discreet.errors import DiscreetError
from discreet.gateway.formats import answer_format
from discreet.gateway.frames import Frame, refusal
from discreet.gateway.wire.catalogs import Catalogs
from discreet.gateway.wire.format.values import Column, Described, Notice, Refusal, Result
from discreet.gateway.wire.session import Session, open_session
from discreet.ledger.views import NotBought

_FOLDER = tempfile.mkdtemp()
atexit.register(shutil.rmtree, _FOLDER, ignore_errors=True)
CITIES = ("Haifa", "Koper", "Maribor")


def policy(folder: Path, rows: Any = None) -> dict[str, Any]:
    """The declarations of a small clinic, whose files are in a folder."""
    made = [(n // 3, CITIES[n % 3], float(n % 100), n % 7, f"2024-01-{1 + n % 28:02}") for n in range(300)]
    made = made if rows is None else rows
    names = ("id", "city", "cost", "stays", "day")
    columns = {name: [row[place] for row in made] for place, name in enumerate(names)}
    types = {"id": pa.int64(), "city": pa.string(), "cost": pa.float64(), "stays": pa.int64()}
    visits = pa.table({name: pa.array(columns[name], types.get(name)) for name in names if name != "day"})
    visits = visits.append_column("day", pa.array(columns["day"], pa.string()).cast(pa.date32()))
    pq.write_table(visits, folder / "visits.parquet")
    pq.write_table(pa.table({"city": list(CITIES), "price": [1, 2, 3]}), folder / "prices.parquet")
    return {
        "ledger": {"path": ":memory:", "epsilon": 100, "delta": 1e-5},
        "unit": {"person": "id"},
        "tables": {
            "visits": {
                "source": str(folder / "visits.parquet"),
                "rows_per_person": 3,
                "columns": {
                    "city": {"choices": list(CITIES)},
                    "cost": {"between": [0, 100]},
                    "stays": {"between": [0, 6]},
                    "day": {"between": ["2024-01-01", "2024-12-31"]},
                },
            },
            "prices": {"source": str(folder / "prices.parquet"), "public": True},
        },
    }


class LocalVault:
    """The verbs of a vault on a database in memory. `calls` are all requests, and `charges` the number of charges."""

    def __init__(self, role: str = "analyst", default: float | None = 0.1, rows: Any = None) -> None:
        self.database = dp.connect(policy(Path(tempfile.mkdtemp(dir=_FOLDER)), rows))
        self.role, self.default = role, default
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.delay = 0.0
        self.hindrance: str | None = None

    @property
    def charges(self) -> int:
        """How many charges are in the ledger."""
        return sum(entry.kind == "charge" for entry in self.database.ledger.entries())

    async def call(self, verb: str, token: str | None = None, arguments: Any = None, *, address: str = "") -> Frame:
        """Answer like the vault does."""
        given = dict(arguments or {})
        self.calls.append((verb, given))
        if self.delay:
            await asyncio.sleep(self.delay)
        try:
            return getattr(self, f"do_{verb}")(**given)
        except DiscreetError as error:
            return refusal(error, given.get("sql"))

    def do_me(self) -> Frame:
        return _json({"account": "ana", "role": self.role})

    def do_tables(self) -> Frame:
        return _json(self.database.tables.as_json())

    def do_budget(self) -> Frame:
        left = float(self.database.ledger.remaining.epsilon)
        return _json(
            {"remaining": {"epsilon": left, "delta": 0}, "limit": {"epsilon": 100, "delta": 1e-5}, "about": "9"}
        )

    def do_describe(self, sql: str) -> Frame:
        return _json({"columns": [vars(column) for column in self.database.describe(sql)]})

    def do_plan(self, sql: str, **options: Any) -> Frame:
        explained = self.database.explain(sql, **self._options(options))
        return _json({**explained.data, "text": str(explained), "hindrance": self.hindrance})

    def do_ask(self, sql: str, format: str, bought_only: bool = False, key: str | None = None, **options: Any) -> Frame:
        options.pop("answer_after", None)
        options = self._options(options)
        asked = self.database.prepare(sql, **options)
        if bought_only and asked.owed(key=key):
            raise NotBought("This was not bought before, and only what was bought is shown here.")
        kind, body = answer_format(asked.answer(key=key), format, options.get("confidence", 0.95))
        return Frame({"ok": True, "type": kind}, body)

    def _options(self, given: dict[str, Any]) -> dict[str, Any]:
        if "epsilon" not in given and "within" not in given and self.default is not None:
            given["epsilon"] = self.default
        return given


def _json(content: Any) -> Frame:
    return Frame({"ok": True, "type": "application/json"}, json.dumps(content, default=str).encode())


class NoCatalog:
    """A catalog for tests: it takes what names no declared table, and answers with one row."""

    def __init__(self, tables: Any = None, database: str = "") -> None:
        self.ran: list[str] = []

    def answers(self, query: exp.Expression) -> bool:
        """Whether no table is named, or only those of the catalog."""
        known = ("pg_catalog", "information_schema")
        within = {one.alias.lower() for one in query.find_all(exp.CTE)}
        tables = [one for one in query.find_all(exp.Table) if one.db or one.name.lower() not in within]
        return all(one.db.lower() in known or one.name.lower().startswith("pg_") for one in tables)

    def describe(self, query: exp.Expression, declared: Any) -> Described:
        """One column of text."""
        return Described(tuple("text" for _ in query.find_all(exp.Parameter)), (Column("?column?", "int4"),))

    def run(self, query: exp.Expression, values: Any, *, user: str, settings: Any, declared: Any = ()) -> Any:
        """One row."""
        self.ran.append(query.sql("postgres"))
        if "fail" in self.ran[-1]:
            raise RuntimeError("zq7canary")
        return (Column("?column?", "int4"),), [(1,)]

    def close(self) -> None:
        """Nothing is open."""


class Client:
    """A client that waits: one session, its results and its refusals."""

    def __init__(self, vault: Any = None, token: str = "t", catalog: Any = None, **options: str) -> None:
        self.vault = LocalVault() if vault is None else vault
        self.catalog = NoCatalog() if catalog is None else catalog
        self.loop = asyncio.new_event_loop()
        catalogs = Catalogs(lambda tables, database: self.catalog)
        opened = open_session(self.vault, catalogs, token, account="ana", database="clinic", options=options)
        self.session: Session = self.loop.run_until_complete(opened)

    def query(self, text: str) -> list[Result]:
        """The results of a text, as a simple query sends it."""
        try:
            return [self.loop.run_until_complete(self.session.run(one)) for one in self.session.read(text)]
        except Refusal:
            self.session.fail()
            raise

    def run(self, text: str, *values: Any) -> Result:
        """The result of one statement, as the extended protocol sends it."""
        [statement] = self.session.read(text)
        return self.loop.run_until_complete(self.session.run(statement, values))

    def describe(self, text: str, *declared: int) -> Described:
        """What a statement needs and gives."""
        [statement] = self.session.read(text)
        return self.loop.run_until_complete(self.session.describe(statement, declared))

    def prepared(self, text: str, *values: Any, declared: Any = ()) -> tuple[Described, Result]:
        """A statement that is described, and then run."""
        [statement] = self.session.read(text)
        described = self.loop.run_until_complete(self.session.describe(statement, declared))
        return described, self.loop.run_until_complete(self.session.run(statement, values))

    def refused(self, text: str, *values: Any) -> Refusal:
        """The refusal of a text."""
        try:
            self.run(text, *values) if values else self.query(text)
        except Refusal as refusal:
            return refusal
        raise AssertionError(f"not refused: {text}")

    def rows(self, text: str, *values: Any) -> list[Any]:
        """The rows of one statement."""
        return list(self.run(text, *values).rows)

    def show(self, name: str) -> str:
        """The value of a setting."""
        return str(self.rows(f"SHOW {name}")[0][0])

    def close(self) -> None:
        """End it."""
        self.loop.run_until_complete(self.session.close())
        self.loop.close()


def names(result: Any) -> list[str]:
    """The names of columns."""
    return [column.name for column in result.columns]


def said(result: Result) -> list[str]:
    """What the notices say."""
    return [notice.message for notice in result.notices if isinstance(notice, Notice)]
