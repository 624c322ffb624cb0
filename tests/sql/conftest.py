"""A small clinic, the same every time: people, visits, prescriptions, laboratory results of visits, public cities; and
how answers are compared.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet import testing
from discreet.datasets.database import Database
from discreet.engines.duckdb.engine import DuckDB
from discreet.sql.schema import Column, Schema, Table

CITIES = ("Acre", "Haifa", "Ljubljana")
REASONS = ("checkup", "flu", "injury")
DRUGS = ("aspirin", "insulin", "statin")
TESTS = ("blood", "urine")
FIXTURES = Path(__file__).parent.parent / "fixtures" / "sql"
CORPUS = sorted(FIXTURES.rglob("*.sql"), key=lambda path: path.name)  # by name, as the first are quick


def clinic_data() -> dict[str, pa.Table]:
    """The clinic's tables. Every key of every combination that the fixtures group by is there."""
    rng = np.random.default_rng(20)
    people, visits, prescriptions = 40, 360, 120
    start = datetime.date(2024, 1, 1)
    days = [start + datetime.timedelta(days=int(d)) for d in rng.integers(0, 366, visits)]
    cost: list[Any] = [float(c) / 4 for c in rng.integers(0, 4001, visits)]
    minutes: list[Any] = [int(m) for m in rng.integers(0, 121, visits)]
    notes: list[Any] = [f"Note {n % 7}" if n % 3 else f"  re-visit {n % 5} " for n in range(visits)]
    for n in range(0, visits, 11):
        cost[n] = None
    for n in range(5, visits, 17):
        minutes[n] = None
    for n in range(3, visits, 13):
        notes[n] = None
    return {
        "people": pa.table(
            {
                "person_id": pa.array(range(1, people + 1), pa.int64()),
                "city": [CITIES[n % 3] for n in range(people)],
                "age": pa.array([18 + (n * 7) % 60 for n in range(people)], pa.int32()),
                "active": [n % 4 != 1 for n in range(people)],
                "height": [150.5 + (n * 13) % 50 for n in range(people)],
                "born": [datetime.date(1950 + n, 1 + n % 12, 1 + n % 28) for n in range(people)],
            }
        ),
        "visits": pa.table(
            {
                "visit_id": pa.array(range(visits), pa.int64()),
                "person_id": pa.array(rng.integers(1, people + 1, visits), pa.int64()),
                "city": [CITIES[int(c)] for c in rng.integers(0, 3, visits)],
                "reason": [REASONS[int(r)] for r in rng.integers(0, 3, visits)],
                "urgent": [bool(u) for u in rng.integers(0, 2, visits)],
                "floor": pa.array(rng.integers(1, 6, visits), pa.int32()),
                "cost": pa.array(cost, pa.float64()),
                "minutes": pa.array(minutes, pa.int64()),
                "discount": [float(d) / 2 for d in rng.integers(-100, 101, visits)],
                "note": pa.array(notes, pa.string()),
                "day": pa.array(days, pa.date32()),
                "seen_at": pa.array(
                    [
                        datetime.datetime(d.year, d.month, d.day, int(h), int(m), 30)
                        for d, h, m in zip(days, rng.integers(0, 24, visits), rng.integers(0, 60, visits), strict=True)
                    ],
                    pa.timestamp("us"),
                ),
            }
        ),
        "prescriptions": pa.table(
            {
                "person_id": pa.array(rng.integers(1, people + 1, prescriptions), pa.int64()),
                "drug": [DRUGS[int(d)] for d in rng.integers(0, 3, prescriptions)],
                "dose": pa.array(rng.integers(1, 11, prescriptions), pa.int64()),
                "price": [float(p) / 8 for p in rng.integers(0, 1601, prescriptions)],
                "filled": pa.array(
                    [start + datetime.timedelta(days=int(d)) for d in rng.integers(0, 366, prescriptions)], pa.date32()
                ),
            }
        ),
        "results": pa.table(
            {
                "visit": pa.array([int(v) for v in np.arange(0, visits, 2)] * 2, pa.int64()),
                "test": [TESTS[n % 2] for n in range(visits)],
                "level": [float(n % 9) / 2 for n in range(visits)],
            }
        ),
        "cities": pa.table(
            {
                "city": list(CITIES),
                "region": ["north", "north", "center"],
                "population": pa.array([50_000, 280_000, 290_000], pa.int64()),
                "coastal": [True, True, False],
            }
        ),
    }


def _columns(**kinds: Mapping[str, Any]) -> dict[str, Column]:
    return {name: Column(name=name, **facts) for name, facts in kinds.items()}


def clinic_columns() -> dict[str, dict[str, Column]]:
    """What is declared of every column."""
    text, year = {"type": "text"}, ("2024-01-01", "2024-12-31")
    return {
        "people": _columns(
            person_id={"type": "integer"},
            city=text | {"choices": CITIES},
            age={"type": "integer", "between": (0, 120)},
            active={"type": "boolean"},
            height={"type": "number", "between": (100, 250)},
            born={"type": "date", "between": ("1950-01-01", "1989-12-31")},
        ),
        "visits": _columns(
            visit_id={"type": "integer"},
            person_id={"type": "integer"},
            city=text | {"choices": CITIES},
            reason=text | {"choices": REASONS},
            urgent={"type": "boolean"},
            floor={"type": "integer", "between": (1, 5)},
            cost={"type": "number", "between": (0, 1000)},
            minutes={"type": "integer", "between": (0, 120)},
            discount={"type": "number", "between": (-50, 50)},
            note=text,
            day={"type": "date", "between": year},
            seen_at={"type": "timestamp", "between": ("2024-01-01", "2025-01-01")},
        ),
        "prescriptions": _columns(
            person_id={"type": "integer"},
            drug=text | {"choices": DRUGS},
            dose={"type": "integer", "between": (1, 10)},
            price={"type": "number", "between": (0, 200)},
            filled={"type": "date", "between": year},
        ),
        "results": _columns(
            visit={"type": "integer"},
            test=text | {"choices": TESTS},
            level={"type": "number", "between": (0, 4)},
        ),
        "cities": _columns(
            city=text | {"choices": CITIES},
            region=text | {"choices": ("north", "center")},
            population={"type": "integer", "between": (0, 1_000_000)},
            coastal={"type": "boolean"},
        ),
    }


def open_ledger(unit: Any) -> Any:
    """A ledger that is never exhausted here."""
    return dp.Ledger.open(":memory:", protects=unit, limit=dp.Approx(epsilon=1_000_000, delta=0.1), rule="basic")


class Clinic:
    """The clinic as a private database and as plain DuckDB."""

    person = dp.person("person_id")

    def __init__(self) -> None:
        self.data, self.columns = clinic_data(), clinic_columns()
        self.database = self.opened(self.data)
        self.plain = duckdb.connect()
        for name, table in self.data.items():
            self.plain.register(name, table)
        # DuckDB does not have it; this is what PostgreSQL computes
        self.plain.execute(
            "CREATE MACRO width_bucket(x, low, high, n) AS CASE WHEN x < low THEN 0 WHEN x >= high THEN n + 1 "
            "ELSE CAST(FLOOR(n * ((x - low) / (high - low))) AS INTEGER) + 1 END"
        )

    def opened(self, data: Mapping[str, pa.Table], unit: Any = None, **bounds: Any) -> Database:
        """A database on other rows, or with other bounds."""
        unit = self.person if unit is None else unit
        bounds = {"rows_per_person": 400} | bounds if unit.column else {}
        tables = {
            name: Table(
                name=name,
                columns=self.columns[name],
                public=name == "cities",
                person=None if name in ("cities", "results") or unit.column is None else "person_id",
                through="visit -> visits.visit_id" if name == "results" and unit.column else None,
                **({} if name == "cities" else bounds),
            )
            for name in data
        }
        return Database(Schema(unit=unit, tables=tables), self.engine(data), open_ledger(unit))

    def engine(self, data: Mapping[str, pa.Table]) -> Any:
        """Where the rows are."""
        return DuckDB(data)

    def true_rows(self, text: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """What plain DuckDB says."""
        found = self.plain.execute(text)
        return [column[0] for column in found.description], found.fetchall()

    def private_rows(self, text: str, **arguments: Any) -> tuple[list[str], list[tuple[Any, ...]]]:
        """What the private database says without noise, the errors left out. Its columns are those described."""
        with testing.no_noise():
            answer = self.database.sql(text, **({"epsilon": 100} | arguments))
        assert self.database.describe(text) == answer.columns
        assert answer.not_private or not answer.cost.largest_loss
        found = answer.as_json()
        return found["columns"], [tuple(row) for row in found["rows"]]

    def check_same(self, text: str, *, ordered: bool, tolerance: float = 0.0, relative: float = 1e-6) -> None:
        """Both say the same."""
        names, ours = self.private_rows(text)
        true_names, theirs = self.true_rows(text)
        assert names == true_names
        if not ordered:
            ours, theirs = sorted(ours, key=_by_key), sorted(theirs, key=_by_key)
        assert len(ours) == len(theirs), f"{len(ours)} rows, not {len(theirs)}: {ours[:3]} against {theirs[:3]}"
        for mine, true in zip(ours, theirs, strict=True):
            for name, a, b in zip(names, mine, true, strict=True):
                assert same_value(a, b, tolerance, relative), f"{name} is {a!r}, not {b!r}, in {mine} against {true}"


def _by_key(row: Sequence[Any]) -> list[str]:
    return [f"{float(v):020.3f}" if isinstance(v, int | float) else str(v) for v in row]


def same_value(a: Any, b: Any, tolerance: float, relative: float) -> bool:
    """Equal, or as near as two numbers must be."""
    if b is None or a is None or isinstance(b, str):
        return a is None and b is None if not isinstance(b, str) else a == b
    if isinstance(b, list):
        return len(a) == len(b) and all(same_value(x, y, tolerance, relative) for x, y in zip(a, b, strict=True))
    if isinstance(b, bool | datetime.date):
        return type(a) is type(b) and a == b
    return math.isclose(float(a), float(b), rel_tol=relative, abs_tol=max(tolerance, 1e-9))


@pytest.fixture(scope="session")
def clinic() -> Clinic:
    return Clinic()


@contextmanager
def captured(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Every text that reaches the engine."""
    seen: list[str] = []
    original, original_table = DuckDB._run, DuckDB.table
    with monkeypatch.context() as patch:
        patch.setattr(DuckDB, "_run", lambda self, text, fetch: (seen.append(text), original(self, text, fetch))[1])
        patch.setattr(
            DuckDB, "table", lambda self, text, **given: (seen.append(text), original_table(self, text, **given))[1]
        )
        yield seen


@pytest.fixture(scope="session")
def capture() -> Any:
    return captured


def fixtures_in(path: Path) -> list[tuple[str, dict[str, str], str]]:
    """The queries of a file: `-- name: x | option value`, then the text up to the next name."""
    found: list[tuple[str, dict[str, str], str]] = []
    for block in ("\n" + path.read_text()).split("\n-- name: ")[1:]:
        head, _, text = block.partition("\n")
        name, *options = (part.strip() for part in head.split("|"))
        found.append((f"{path.stem}: {name}", dict(o.split(" ", 1) for o in options), text.strip()))
    return found


def pytest_generate_tests(metafunc: Any) -> None:
    if "fixture_query" in metafunc.fixturenames:
        listed = [query for path in CORPUS for query in fixtures_in(path)]
        metafunc.parametrize("fixture_query", listed, ids=[name for name, _, _ in listed])
