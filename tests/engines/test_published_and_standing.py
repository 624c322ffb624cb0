"""Publications and standing questions on every engine: without noise they have the numbers of DuckDB."""

from __future__ import annotations

import copy
import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet import testing
from discreet.publication import verify_publication

from .conftest import beside

published = beside("publication")
Place = Callable[[dict[str, pa.Table]], dict[str, Any]]
"""From tables to the sources of a policy, and its engine."""


@pytest.fixture
def place(request: pytest.FixtureRequest, where: str, tmp_path: Path) -> Place:
    def made(data: dict[str, pa.Table]) -> dict[str, Any]:
        if where == "postgres":
            server = request.getfixturevalue("server")
            return {"sources": server.loaded(data), "engine": {"kind": "postgres", "url": server.url}}
        if where == "spark":
            return {"sources": request.getfixturevalue("lake").loaded(data), "engine": {"kind": "spark"}}
        return in_files(data, tmp_path)

    return made


def in_files(data: dict[str, pa.Table], folder: Path) -> dict[str, Any]:
    for name, table in data.items():
        pq.write_table(table, folder / f"{name}.parquet")
    return {"sources": {name: str(folder / f"{name}.parquet") for name in data}, "engine": {"kind": "duckdb"}}


@pytest.fixture
def session(request: pytest.FixtureRequest, where: str) -> Any:
    return request.getfixturevalue("lake").session if where == "spark" else None


def with_place(policy: dict[str, Any], found: dict[str, Any], ledger: Path) -> dict[str, Any]:
    """A policy whose tables and ledger are elsewhere."""
    tables = {
        name: table | {"source": found["sources"][name], "version": "1"} for name, table in policy["tables"].items()
    }
    own = policy["ledger"] | {"path": str(ledger)}
    return policy | {"engine": found["engine"], "tables": tables, "ledger": own}


# --- publications -------------------------------------------------------------------------------------------


def plan_of(folder: Path, found: dict[str, Any], *parts: str) -> dict[str, Any]:
    words = copy.deepcopy(published.PLAN)
    for kind in ("tables", "cubes", "synthetic"):
        words[kind] = {name: part for name, part in words[kind].items() if name in parts}
    policy = with_place(published.policy_in(folder), found, folder / "clinic.ledger")
    policy["tables"]["visits"]["rows_per_person"] = 50  # of more rows than the bound, other ones are left out each time
    return words | {"policy": policy, "anyway": True}


def clinic_in(folder: Path) -> dict[str, pa.Table]:
    folder.mkdir()
    published.write_data(folder, rows=400)
    return {name: pq.read_table(folder / f"{name}.parquet") for name in ("visits", "cities")}


def both(place: Place, session: Any, folder: Path, *parts: str) -> tuple[Any, Any]:
    """A publication without noise, of DuckDB and of this engine."""
    data = clinic_in(folder / "here")
    (folder / "there").mkdir()
    with testing.no_noise():
        here = dp.publish(plan_of(folder / "here", in_files(data, folder / "here"), *parts), folder / "one")
        there = dp.publish(plan_of(folder / "there", place(data), *parts), folder / "two", spark=session)
    assert here.files == there.files
    return here, there


@pytest.mark.slow
def test_tables_and_cubes_have_the_numbers_of_duckdb(place: Place, session: Any, tmp_path: Path) -> None:
    here, there = both(place, session, tmp_path, "by_city", "by_country", "city_sex")
    for name in here.files:
        if name.endswith(".csv") or name.startswith("public/"):
            assert (here.out / name).read_bytes() == (there.out / name).read_bytes(), name
    assert [one["content"] for one in here.facts["parts"]] == [one["content"] for one in there.facts["parts"]]


@pytest.mark.parametrize(
    "parts",
    [("by_city", "by_country", "city_sex"), pytest.param(("people",), marks=pytest.mark.slow)],
    ids=["sql", "rows"],
)
def test_a_publication_is_verified_without_its_engine(place: Place, session: Any, tmp_path: Path, parts: Any) -> None:
    plan = plan_of(tmp_path / "here", place(clinic_in(tmp_path / "here")), *parts)
    dp.publish(plan, tmp_path / "out", spark=session)
    checked = verify_publication(tmp_path / "out", tmp_path / "here" / "clinic.ledger")
    assert checked.holds, str(checked)
    again = dp.publish(plan, tmp_path / "out", spark=session)
    assert again.already


# --- standing questions -------------------------------------------------------------------------------------

D, T = datetime.date, datetime.datetime
DAYS = [T(2024, 1, 1), T(2024, 1, 31, 23, 59, 59, 999999), T(2024, 2, 1), T(2024, 3, 31, 12), T(2023, 12, 31, 23), None]
"""The ends of blocks, a time before the horizon, and none."""


def visits() -> pa.Table:
    """Rows at all pairs of times of happening and arrival, of people with few and many rows and of nobody."""
    rows = [
        (person if person < 9 else None, day, came, "ABC"[(person + place) % 3], person % 7)
        for person in range(10)
        for place, day in enumerate(DAYS)
        for came in DAYS[:: 1 + person % 3]
    ]
    kinds = (pa.int64(), pa.timestamp("us"), pa.timestamp("us"), pa.string(), pa.int64())
    names = ("pid", "day", "came", "city", "cost")
    return pa.table({n: pa.array(c, k) for n, c, k in zip(names, zip(*rows, strict=True), kinds, strict=True)})


SUMS = "SELECT city, COUNT(*) AS n, SUM(cost) AS total FROM visits GROUP BY city"
PEOPLE = "SELECT city, COUNT(DISTINCT pid) AS people FROM visits GROUP BY city"
CASES: dict[str, tuple[str, dict[str, Any], str, dict[str, Any], dict[str, Any]]] = {
    "months": (SUMS, {"person": "pid"}, "month", {}, {}),
    "first months": (SUMS, {"person": "pid"}, "month", {"late": "drop"}, {"blocks_per_person": 1}),
    "totals": (SUMS, {"person": "pid"}, "month", {"late": "next"}, {"blocks_per_person": 2, "totals": True}),
    "totals by unit": (SUMS, {"person": "pid", "per": "month"}, "month", {}, {"totals": True}),
    "weeks": (SUMS, {"person": "pid", "per": "week"}, "week", {"late": "next"}, {}),
    "quarters of rows": (SUMS, {"row": True}, "quarter", {}, {}),
    "groups that appear": (PEOPLE, {"person": "pid"}, "month", {"open": True}, {}),
}
QUICK = ("first months", "totals by unit")
FIRST = {"month": "2024-01", "week": "2024-W01", "quarter": "2024-Q1"}


def standing_policy(unit: dict[str, Any], block: str, rule: dict[str, Any]) -> dict[str, Any]:
    time = {"column": "day", "block": block} | ({"arrived": "came", "late": rule["late"]} if "late" in rule else {})
    columns = {"cost": {"between": [0, 5]}} | ({} if "open" in rule else {"city": {"choices": ["A", "B", "C"]}})
    table = {"time": time, "columns": columns} | ({} if "row" in unit else {"rows_per_person": 50})
    ledger = {"epsilon": 1000, "delta": 0.1, "delta_per_question": 1e-3}
    return {"ledger": ledger, "unit": unit, "tables": {"visits": table}}


@pytest.mark.some_quick(2)
@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
def test_standing_questions_have_the_numbers_of_duckdb(place: Place, session: Any, tmp_path: Path, name: str) -> None:
    question, unit, block, rule, options = CASES[name]
    data, tables = {"visits": visits()}, []
    for found, spark, ledger in ((in_files(data, tmp_path), None, "one"), (place(data), session, "two")):
        policy = with_place(standing_policy(unit, block, rule), found, tmp_path / ledger)
        database = dp.connect(policy, spark=spark)
        with testing.no_noise():
            asked = database.standing(question, every=block, times=4, epsilon=400, first=FIRST[block], **options)
            asked.run(today=D(2025, 6, 1))
        tables.append(asked.table)
        assert asked.answered == asked.blocks
        database.ledger.verify()
        database.close()
    assert tables[0].num_rows
    assert tables[0].equals(tables[1])
