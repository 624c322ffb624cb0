"""`discreet sanitize` on real files and a real ledger: the copy, its promise, its errors, statuses, no leak."""

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
from discreet import testing
from discreet.cli import main, sanitize
from discreet.door import through
from discreet.engines.duckdb.engine import DuckDB
from discreet.sql.schema import Column, Table
from discreet.tables.sanitize import plan_copy

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
    assert copy["born"] == [datetime.date(2010, 1, 1), datetime.date(1950, 1, 1), datetime.date(1980, 1, 1)]
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
    copy = plan_copy(table, None, epsilon=epsilon)
    kinds = {"integer": pa.int64(), "text": pa.string()}
    values = [pa.array(part, kinds[c.type]) for part, c in zip(zip(*rows, strict=True), columns, strict=True)]
    engine = DuckDB({"t": pa.table(values, names=[column.name for column in columns])})
    claim = copy.mechanism.guarantee(None)
    assert claim.protects == dp.row(neighbors="replace")
    assert claim.largest_loss <= Fraction(epsilon)

    def release() -> tuple[Any, ...]:
        drawn = through(lambda: copy.read(engine, "t"), copy.mechanism, claim, ledger=None)
        return tuple(tuple(row.values()) for row in copy.as_arrow(drawn.value).to_pylist())

    return testing.exact_law(release, window=window).law


def worst_ratio(first: dict, second: dict) -> float:
    """The largest ratio of the probabilities of an output that both laws list; noise beyond the window is in none."""
    return float(max(p / second[output] for output, p in first.items() if output in second))


@pytest.mark.slow
def test_one_record_keeps_epsilon_exactly() -> None:
    """[T.3.6], [T.4.7], [T.4.9]: one record, numbers and choices, by the exact law."""
    epsilon = 1.25
    records = [(0, "a"), (0, "b"), (2, "b"), (2, "c"), (99, "a"), (None, None), (1, CANARY)]
    laws = [law_of([record], SMALL, epsilon, window=3) for record in records]
    ratios = [worst_ratio(first, second) for first in laws for second in laws]
    assert max(ratios) <= math.exp(epsilon) * (1 + 1e-12)
    assert max(ratios) >= math.exp(epsilon) * (1 - 1e-6)  # nothing is wasted, and the check is not blind
    assert all(sum(law.values()) > 0.6 for law in laws)


def test_choices_keep_epsilon_by_enumeration() -> None:
    """[T.4.10]: one choice keeps ε, and nothing less."""
    laws = {city: law_of([(city,)], SMALL[1:], 1) for city in "abc"}
    verified = dp.verify(laws)
    assert verified.delta_at(epsilon=1) < 1e-50
    assert verified.delta_at(epsilon=0.999) > 1e-4


@pytest.mark.slow
def test_a_file_sorted_by_a_value_tells_no_more() -> None:
    # one record replaced, c for a: the sorted files differ in two places, and kept order would double ε
    first, second = [("a",), ("b",)], [("b",), ("c",)]
    one, other = law_of(first, SMALL[1:], 1), law_of(second, SMALL[1:], 1)
    assert one.keys() == other.keys()
    assert max(worst_ratio(one, other), worst_ratio(other, one)) <= math.e * (1 + 1e-12)


# --- the error ------------------------------------------------------------------------------------------


def test_the_errors_are_those_of_the_noise(people: Path, run) -> None:
    """Every bound is passed by chance with probability below 1e-6; a scale wrong by 5%, or 2% more lies, is seen."""
    rows = 40_000
    same = {"age": [50] * rows, "salary": [2000.0] * rows, "city": ["Lipica"] * rows, "person_id": list(range(rows))}
    same |= {"born": [datetime.date(1980, 1, 1)] * rows, "grade": [2] * rows}
    same |= {"seen": pa.nulls(rows, pa.timestamp("us"))}
    pyarrow.parquet.write_table(pa.table(same), people.with_name("people.parquet"))
    out = people.with_name("copy.parquet")
    said = run(people, "people", "--epsilon", 6, "--out", out)
    copy, told = read(out), {}
    for line in said.out.splitlines()[2:8]:
        told[line.split()[0]] = [float(n.replace(",", "")) for n in re.findall(r"(?<= )[\d,.]+(?= |%|$)", line)]
    slack = math.sqrt(math.log(2e6) / (2 * rows))  # Hoeffding, for a fraction
    days = np.array(copy["born"].to_numpy(), "datetime64[D]") - np.datetime64("1980-01-01")
    moved = {"age": copy["age"].to_numpy() - 50, "salary": copy["salary"].to_numpy() - 2000, "born": days.astype(int)}
    for name, noise in moved.items():
        epsilon, mean, least, within = told[name]
        assert epsilon == 1
        assert least < mean
        # six standard deviations of a mean of exponentials, and what is lost in three printed digits
        assert np.abs(noise).mean() == pytest.approx(mean, rel=0.005 + 6 / math.sqrt(rows))
        assert (np.abs(noise) > 1.005 * within).mean() <= 0.05 + slack
        assert (np.abs(noise) > 0.995 * within).mean() >= 0.045 - slack
    for name, truth in {"city": "Lipica", "grade": 2}.items():
        epsilon, mean, least, within = told[name]
        wrong = np.mean([value != truth for value in copy[name].to_pylist()])
        assert least == mean  # randomized response attains the bound
        assert wrong == pytest.approx(mean / 100, abs=0.0005 + slack)
        assert mean < within < mean + 1


def test_the_least_error_is_that_of_the_theory(people: Path, run) -> None:
    said = run(people, "people", "--epsilon", 2, "--out", people.with_name("c.csv"), "--columns", "age,salary,city")
    share = dp.Pure(epsilon=Fraction(2, 3))
    spaces = {
        "age": dp.Integers(0, 100),
        "salary": dp.Interval(1500, 4500),
        "city": dp.queries.Categories(["a", "b", "c"]),
    }
    for name, space in spaces.items():
        [line] = [line for line in said.out.splitlines() if line.startswith(name)]
        least = dp.least_error(space, share)
        shown = f"{100 * least:.3g}% wrong" if name == "city" else f"{least:.3g}"
        assert shown in re.split(r" {2,}", line)


# --- the ledger -----------------------------------------------------------------------------------------


def test_the_same_request_again_is_the_same_copy_for_free(people: Path, run) -> None:
    first, again = people.with_name("first.parquet"), people.with_name("again.parquet")
    assert run(people, "people", "--epsilon", 3, "--out", first).status == 0
    said = run(people, "people", "--epsilon", 3, "--out", again)
    assert "answered before, at no new cost" in said.out
    assert read(first).equals(read(again))
    assert len(ledger(people).entries()) == 1
    assert ledger(people).spent["ε"] == pytest.approx(3, rel=1e-6)
    assert run(people, "people", "--epsilon", 2, "--out", again, "--force").status == 0
    assert len(ledger(people).entries()) == 2


@pytest.mark.slow
def test_a_large_copy_is_kept_only_for_a_key(people: Path, run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sanitize, "LARGEST_KEPT", 0)
    out = people.with_name("copy.parquet")
    for number in (1, 2):
        said = run(people, "people", "--epsilon", 1, "--out", out, "--force")
        assert "too large to be kept" in said.out
        assert len(ledger(people).entries()) == number
    for _ in range(2):
        said = run(people, "people", "--epsilon", 1, "--out", out, "--force", "--key", "k1")
        assert "too large" not in said.out
    assert "answered before" in said.out
    assert len(ledger(people).entries()) == 3
    assert run(people, "people", "--epsilon", 2, "--out", out, "--force", "--key", "k1").status == 2


def test_the_charge_comes_before_the_reading(people: Path, run, monkeypatch: pytest.MonkeyPatch) -> None:
    charged, table = [], DuckDB.table

    def watched(engine: DuckDB, statement: str) -> Any:
        charged.append(len(ledger(people).entries()))
        assert "person_id" not in statement.partition(" FROM ")[0]
        return table(engine, statement)

    monkeypatch.setattr(DuckDB, "table", watched)
    assert run(people, "people", "--epsilon", 1, "--out", people.with_name("copy.parquet")).status == 0
    assert charged == [1]


def test_a_row_that_does_not_fit_is_copied_like_any_other(people: Path, run) -> None:
    people.write_text(POLICY.replace("people.parquet", "people.csv"), "utf-8")
    row, out = "1,50,2000.5,Haifa,1980-01-01,2020-01-01 10:00:00,2\n", people.with_name("copy.parquet")
    text = f"person_id,{','.join(DECLARED)}\n{row * 30_000}{row.replace('50', CANARY, 1)}"
    people.with_name("people.csv").write_text(text, "utf-8")
    said = run(people, "people", "--epsilon", 1, "--out", out)
    assert (said.status, said.err) == (0, "")
    assert CANARY not in said.out
    assert len(ledger(people).entries()) == 1
    assert read(out).num_rows == 30_001


def test_a_budget_that_is_used_up_is_status_4(people: Path, run) -> None:
    out = people.with_name("copy.parquet")
    said = run(people, "people", "--epsilon", 11, "--out", out)
    assert (said.status, said.out) == (4, "")
    assert not out.exists()
    assert nothing_spent(people)


# --- refusals: nothing is charged -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unit", "who"),
    [
        ("row = true", "one row"),
        ('person = "person_id"', "one person"),
        ('person = "person_id"\nneighbors = "replace"', "one person"),
    ],
)
def test_another_unit_is_refused(people: Path, run, unit: str, who: str) -> None:
    text = POLICY.replace('row = true\nneighbors = "replace"', unit)
    bounded = text.replace('people.parquet"', 'people.parquet"\nrows_per_person = 1')
    people.write_text(bounded if "person_id" in unit else text, "utf-8")
    said = run(people, "people", "--epsilon", 1, "--out", people.with_name("copy.parquet"))
    assert (said.status, said.out) == (3, "")
    assert f"the policy protects {who}" in said.err
    assert 'write row = true and neighbors = "replace" in [unit]' in said.err
    assert not people.with_name("people.ledger").exists()


@pytest.mark.some_quick(6)
@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("people", "--columns", "age,note"), 3, "note has no declared range or choices"),
        (("people", "--columns", "person_id"), 3, "Declare between = [LOW, HIGH] or choices"),
        (("cities",), 3, "cities is public"),
        (("people", "--columns", "agee"), 2, "people has no column agee"),
        (("people", "--columns", ","), 2, "--columns names no column"),
        (("patients",), 2, "The policy has no table patients. Its tables: people, cities"),
        (("people", "--epsilon", "0"), 2, "epsilon"),
        (("people", "--epsilon", "nan"), 2, "epsilon"),
        (("people", "--out", "copy.txt"), 2, "Name a .parquet or .csv file"),
        (("people", "--out", "nowhere/copy.csv"), 2, "in a folder that exists"),
        (("people", "--out", "cities.csv", "--force"), 2, "belongs to the source of cities"),
        (("people", "--out", "people.parquet", "--force"), 2, "belongs to the source of people"),
        (("people", "--out", "old.csv"), 2, "old.csv exists and is left as it is"),
    ],
)
def test_refusals(
    people: Path, run, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], status: int, words: str
) -> None:
    monkeypatch.chdir(people.parent)
    Path("old.csv").write_text("old", "utf-8")
    before = {path.name: path.read_bytes() for path in (*Path().glob("*.csv"), *Path().glob("*.parquet"))}
    given = [*arguments, *(() if "--epsilon" in arguments else ("--epsilon", 1))]
    said = run(people, *given, *(() if "--out" in arguments else ("--out", "copy.csv")))
    assert (said.status, said.out) == (status, "")
    assert words in said.err
    assert nothing_spent(people)
    assert {path.name: path.read_bytes() for path in (*Path().glob("*.csv"), *Path().glob("*.parquet"))} == before


def test_a_table_of_which_nothing_is_declared(people: Path, run) -> None:
    people.write_text(re.sub(r"\[tables.people.columns.*(?=\[tables.cities)", "", POLICY, flags=re.DOTALL), "utf-8")
    said = run(people, "people", "--epsilon", 1, "--out", people.with_name("copy.parquet"))
    assert (said.status, said.out) == (3, "")
    assert "Nothing is declared of people" in said.err


def test_one_choice_is_no_choice(people: Path, run) -> None:
    people.write_text(POLICY.replace("[1, 2, 3]", "[1]"), "utf-8")
    said = run(people, "people", "--epsilon", 1, "--out", people.with_name("copy.parquet"))
    assert said.status == 2
    assert "choices of grade has one value only" in said.err


def test_a_file_that_came_in_between_is_left_as_it_is(people: Path, run, monkeypatch: pytest.MonkeyPatch) -> None:
    out, released = people.with_name("copy.csv"), sanitize.release_columns

    def slow(*given: Any, **named: Any) -> Any:
        out.write_text("another's", "utf-8")
        return released(*given, **named)

    monkeypatch.setattr(sanitize, "release_columns", slow)
    said = run(people, "people", "--epsilon", 1, "--out", out)
    assert said.status == 2
    assert out.read_text("utf-8") == "another's"
    assert not list(people.parent.glob(".*.part"))
    assert run(people, "people", "--epsilon", 1, "--out", out, "--force").status == 0
    assert out.read_text("utf-8").startswith('"age"')
