"""`discreet sanitize` on real files and a real ledger: the copy, its exact promise, its errors, statuses, and no leak."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import discreet as dp
from discreet import samplers, testing
from discreet.cli import main, sanitize_command
from discreet.cli.sanitize_command import planned
from discreet.door import through
from discreet.engines.duckdb import DuckDB
from discreet.sql.schema import Column, Table

CANARY = "canary-7c1e"
ROWS = 300
POLICY = """
[ledger]
path = "people.ledger"
epsilon = 10.0
[unit]
row = true
neighbors = "replace"
[tables.people]
source = "people.parquet"
[tables.people.columns.age]
between = [0, 100]
[tables.people.columns.salary]
between = [1500.0, 4500.0]
[tables.people.columns.city]
choices = ["Haifa", "Ljubljana", "Lipica"]
[tables.people.columns.born]
between = [1950-01-01, 2010-01-01]
[tables.people.columns.seen]
between = [2020-01-01T00:00:00, 2020-01-02T00:00:00]
[tables.people.columns.grade]
choices = [1, 2, 3]
[tables.cities]
source = "cities.csv"
public = true
"""
DECLARED = ["age", "salary", "city", "born", "seen", "grade"]


class Said(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """A policy, its data and a ledger of its own."""
    rows = range(ROWS)
    table = {
        "person_id": [f"{CANARY}-{row}" for row in rows],
        "age": [row % 150 - 20 for row in rows],
        "salary": [1000.0 + 20 * row for row in rows],
        "city": [["Haifa", "Ljubljana", "Lipica", CANARY][row % 4] for row in rows],
        "born": [datetime.date(1940, 1, 1) + datetime.timedelta(days=100 * row) for row in rows],
        "seen": [datetime.datetime(2019, 12, 31, 12) + datetime.timedelta(minutes=10 * row) for row in rows],
        "grade": [row % 5 for row in rows],
        "note": [f"{CANARY}!{row}" for row in rows],
    }
    pyarrow.parquet.write_table(pa.table(table), tmp_path / "people.parquet")
    pyarrow.csv.write_csv(pa.table({"city": ["Haifa", "Lipica"]}), tmp_path / "cities.csv")
    policy = tmp_path / "people.toml"
    policy.write_text(POLICY, "utf-8")
    return policy


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Said]:
    """Run `discreet sanitize`: its status, and what it printed."""

    def sanitize(*arguments: object) -> Said:
        monkeypatch.setenv("COLUMNS", "100")
        with pytest.raises(SystemExit) as exit_info:
            main(["sanitize", *map(str, arguments)])
        code = exit_info.value.code
        said = Said(code if isinstance(code, int) else 0, *capsys.readouterr())
        assert CANARY not in said.out + said.err
        assert "Traceback" not in said.err
        return said

    return sanitize


def ledger(policy: Path) -> dp.Ledger:
    return dp.Ledger.open(policy.with_name("people.ledger"))


def nothing_spent(policy: Path) -> bool:
    return not policy.with_name("people.ledger").exists() or not ledger(policy).entries()


def read(path: Path) -> pa.Table:
    return pyarrow.parquet.read_table(path)


# --- the copy -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_copy_without_identifiers_and_its_report(people: Path, run, kind: str) -> None:
    out = people.with_name(f"copy.{kind}")
    said = run(people, "people", "--epsilon", 3, "--out", out)
    assert (said.status, said.err) == (0, "")
    copy = read(out) if kind == "parquet" else pyarrow.csv.read_csv(out)
    assert copy.column_names == DECLARED
    assert copy.num_rows == ROWS
    assert CANARY.encode() not in out.read_bytes()
    assert not [file for file in people.parent.iterdir() if file.name.endswith(".part")]
    lines = said.out.splitlines()
    assert "dropped  person_id, note" in lines
    assert "cost     ε = 3, for one row, replaced by another" in lines
    assert "split    ε = 0.5 for each column; the columns of a record add" in lines
    assert "remains  ε = 7 of ε = 10" in lines
    [entry] = ledger(people).entries()
    assert f"receipt  {entry.receipt}" in lines
    assert entry.asked == "sanitize people: age, salary, city, born, seen, grade"
    assert re.search(r"NULL and NaN become the middle .* the first of them", said.out)


def test_a_copy_has_the_types_of_the_table(people: Path, run) -> None:
    out = people.with_name("copy.parquet")
    assert run(people, "people", "--epsilon", 3, "--out", out).status == 0
    kinds = [str(field.type) for field in read(out).schema]
    assert kinds == ["int64", "double", "string", "date32[day]", "timestamp[ms]", "int64"]


def test_without_noise_it_is_the_clamped_original(people: Path, run) -> None:
    out = people.with_name("copy.parquet")
    with testing.no_noise():
        said = run(people, "people", "--epsilon", 3, "--out", out)
    assert "NOT PRIVATE" in said.out
    copy, true = read(out).to_pydict(), read(people.with_name("people.parquet")).to_pydict()
    assert copy["age"] == [min(max(age, 0), 100) for age in true["age"]]
    assert copy["salary"] == [min(max(salary, 1500.0), 4500.0) for salary in true["salary"]]
    assert copy["city"] == [city if city != CANARY else "Haifa" for city in true["city"]]
    first, last = datetime.date(1950, 1, 1), datetime.date(2010, 1, 1)
    assert copy["born"] == [min(max(born, first), last) for born in true["born"]]
    start, end = datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 2)
    assert copy["seen"] == [min(max(seen, start), end) for seen in true["seen"]]
    assert copy["grade"] == [grade if grade in (1, 2, 3) else 1 for grade in true["grade"]]


def test_what_is_missing_follows_the_public_rule(people: Path, run) -> None:
    far = pa.array([2_000_000, -2_000_000, None], pa.date32())
    whole = pa.array([2**62, -(2**62), None], pa.int64())
    odd = {"age": whole, "salary": [math.nan, math.inf, None], "city": [None, "haifa", "Lipica"], "born": far}
    odd |= {"seen": pa.nulls(3, pa.timestamp("us")), "grade": pa.array([None, 3, 9]), "person_id": [1, 2, 3]}
    pyarrow.parquet.write_table(pa.table(odd), people.with_name("people.parquet"))
    out = people.with_name("copy.parquet")
    with testing.no_noise():
        assert run(people, "people", "--epsilon", 3, "--out", out).status == 0
    copy = read(out).to_pydict()
    assert copy["age"] == [100, 0, 50]
    assert copy["salary"] == [3000.0, 4500.0, 3000.0]
    assert copy["city"] == ["Haifa", "Haifa", "Lipica"]
    assert copy["born"] == [datetime.date(2010, 1, 1), datetime.date(1950, 1, 1), datetime.date(1979, 12, 31)]
    assert copy["seen"] == [datetime.datetime(2020, 1, 1, 12)] * 3
    assert copy["grade"] == [1, 3, 1]


def test_dates_stop_at_the_ends_of_the_calendar(people: Path, run) -> None:
    out = people.with_name("copy.parquet")
    assert run(people, "people", "--epsilon", 1e-6, "--out", out, "--columns", "born,seen").status == 0
    copy = read(out).to_pydict()  # Python has no date beyond: to read it at all is the test
    assert {day.year for day in copy["born"]} >= {1, 9999}
    assert all(1 <= moment.year <= 9999 for moment in copy["seen"])


def test_a_table_without_rows(people: Path, run) -> None:
    source, out = people.with_name("people.parquet"), people.with_name("copy.csv")
    pyarrow.parquet.write_table(read(source).slice(0, 0), source)
    assert run(people, "people", "--epsilon", 1, "--out", out).status == 0
    assert out.read_text("utf-8").splitlines() == [",".join(f'"{name}"' for name in DECLARED)]


def test_named_columns_share_epsilon(people: Path, run) -> None:
    out = people.with_name("copy.parquet")
    said = run(people, "PEOPLE", "--epsilon", 3, "--out", out, "--columns", 'city, "age",city')
    assert read(out).column_names == ["city", "age"]
    assert "split    ε = 1.5 for each column" in said.out
    assert "dropped  person_id, salary, born, seen, grade, note" in said.out


# --- the promise ----------------------------------------------------------------------------------------

SMALL = (
    Column(name="age", type="integer", between=(0, 2)),
    Column(name="city", type="text", choices=("a", "b", "c")),
)


def law_of(rows: list[tuple[Any, ...]], columns: tuple[Column, ...], epsilon: float, window: int = 6) -> dict:
    """The exact law of a copy of these rows: read from an engine, in every order, with every noise."""
    table = Table(name="t", columns={column.name: column for column in columns})
    copy = planned(table, None, epsilon=epsilon)
    kinds = {"integer": pa.int64(), "text": pa.string()}
    values = [pa.array(part, kinds[c.type]) for part, c in zip(zip(*rows, strict=True), columns, strict=True)]
    engine = DuckDB({"t": pa.table(values, names=[column.name for column in columns])})
    claim = copy.mechanism.guarantee(None)
    assert claim.protects == dp.row(neighbors="replace")
    assert claim.largest_loss <= Fraction(epsilon)
    found = copy.read(engine, "t")  # in the order of the file, or the law below would be of an order of an order
    with testing.no_noise():
        found = copy.read(engine, "t")

    def release() -> tuple[Any, ...]:
        order = samplers.permutation(len(rows))
        drawn = through(lambda: tuple(c[order] for c in found), copy.mechanism, claim, ledger=None)
        return tuple(zip(*(map(str, column.tolist()) for column in copy.as_arrow(drawn.value).columns), strict=True))

    return testing.exact_law(release, window=window).law
