"""A policy says exactly what its owner meant: every word of it is used, or refused with what to write instead."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import discreet as dp
from discreet.cli import ledger as ledger_command
from discreet.datasets.connect import connect
from discreet.datasets.ledgers import open_policy_ledger
from discreet.datasets.policy import Policy, ledger_of, load
from discreet.engines.duckdb.engine import DuckDB
from discreet.errors import InvalidArgument
from discreet.sql.schema import Column, Table
from fuzz.policy import SEEDS
from fuzz.policy import Policy as Policies

from ..refusing import refuses

CANARY = "canary-7c1e"
PEOPLE = 400
VISITS = pa.table(
    {
        "patient_id": [row % PEOPLE for row in range(3 * PEOPLE)],
        "age": [20 + row % PEOPLE % 60 for row in range(3 * PEOPLE)],
        "cost": [float(row % 100) for row in range(3 * PEOPLE)],
        "city": [("Haifa", "Ljubljana", CANARY)[row % 3] for row in range(3 * PEOPLE)],
        "day": [datetime.date(2024, 1, 1 + row % 28) for row in range(3 * PEOPLE)],
        "seen": [datetime.datetime(2024, 1, 1 + row % 28, 12) for row in range(3 * PEOPLE)],
        "smokes": [row % 2 == 0 for row in range(3 * PEOPLE)],
    }
)
CITIES = pa.table({"city": ["Haifa", "Ljubljana"], "country": ["Israel", "Slovenia"]})
CLINIC = """
[ledger]
path = "clinic.ledger"
epsilon = 10.0
delta = 1e-5
delta_per_question = 1e-8

[unit]
person = "patient_id"

[tables.visits]
source = "visits.parquet"
rows_per_person = 20
groups_per_person = 5
[tables.visits.columns.cost]
between = [0, 5000]
[tables.visits.columns.city]
choices = ["Haifa", "Ljubljana"]

[tables.cities]
source = "cities.csv"
public = true

[engine]
kind = "duckdb"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with data and a policy."""
    pyarrow.parquet.write_table(VISITS, tmp_path / "visits.parquet")
    pyarrow.csv.write_csv(CITIES, tmp_path / "cities.csv")
    (tmp_path / "clinic.toml").write_text(CLINIC, "utf-8")
    return tmp_path


def complaint(folder: Path, old: str, new: str) -> InvalidArgument:
    """The error of the policy with one part of it changed."""
    assert old in CLINIC
    (folder / "clinic.toml").write_text(CLINIC.replace(old, new), "utf-8")
    with pytest.raises(InvalidArgument) as error:
        connect(folder / "clinic.toml")
    assert CANARY not in str(error.value)
    assert not (folder / "clinic.ledger").exists(), "a policy that is refused makes no ledger"
    return error.value


# --- what is read ---------------------------------------------------------------------------------------


def test_the_policy_of_the_tour(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    policy = load(folder / "clinic.toml")
    assert policy.unit == dp.person("patient_id")
    assert policy.limit == dp.Approx(epsilon=10.0, delta=1e-5)
    assert (policy.ledger, policy.delta_per_question) == (str(folder / "clinic.ledger"), 1e-8)
    visits, cities = policy.tables["visits"], policy.tables["cities"]
    assert (visits.source, cities.source) == (str(folder / "visits.parquet"), str(folder / "cities.csv"))
    assert (visits.rows_per_person, visits.groups_per_person, visits.public) == (20, 5, False)
    assert cities.public

    schema = connect(folder / "clinic.toml").schema
    columns = schema.tables["visits"].columns
    assert {name: column.type for name, column in columns.items()} == {
        "patient_id": "integer",
        "age": "integer",
        "cost": "number",
        "city": "text",
        "day": "date",
        "seen": "timestamp",
        "smokes": "boolean",
    }
    assert columns["cost"].between == (0, 5000)
    assert columns["city"].choices == ("Haifa", "Ljubljana")
    assert columns["age"].between is None
    assert schema.tables["visits"].person == "patient_id"
    assert schema.tables["cities"].person is None
    assert (folder / "clinic.ledger").exists()


def test_connect_answers_and_remembers(folder: Path) -> None:
    clinic = dp.connect(folder / "clinic.toml")
    question = "SELECT city, COUNT(*) AS visits FROM visits JOIN cities USING (city) GROUP BY city"
    answer = clinic.sql(question, epsilon=1)
    assert answer.table.column_names == ["city", "visits", "visits_error"]
    again = dp.connect(str(folder / "clinic.toml")).sql(question, epsilon=1)
    assert again.replayed
    assert again.table == answer.table
    with pytest.raises(dp.BudgetExhausted):
        clinic.sql(question, epsilon=9.5)


def test_declared_values_take_the_type_of_their_column(folder: Path) -> None:
    words = """
[tables.visits.columns.day]
between = ["2024-01-01", 2024-12-31]
choices = ["2024-01-01", 2024-01-02]
[tables.visits.columns.seen]
between = [2024-01-01, 2024-12-31T12:00:00]
[tables.visits.columns.smokes]
choices = [true, false]
[tables.visits.columns.age]
choices = [20, 21]
"""
    (folder / "clinic.toml").write_text(CLINIC + words, "utf-8")
    columns = connect(folder / "clinic.toml").schema.tables["visits"].columns
    assert columns["day"].between == (datetime.date(2024, 1, 1), datetime.date(2024, 12, 31))
    assert columns["day"].choices == (datetime.date(2024, 1, 1), datetime.date(2024, 1, 2))
    assert columns["seen"].between == (datetime.datetime(2024, 1, 1), datetime.datetime(2024, 12, 31, 12))
    assert columns["smokes"].choices == (True, False)
    assert columns["age"].choices == (20, 21)


@pytest.mark.parametrize(
    ("lines", "limit", "per_question"),
    [
        ("epsilon = 2", dp.Pure(epsilon=2), 0),
        ("epsilon = 2\ndelta = 0.0", dp.Pure(epsilon=2), 0),
        ("epsilon = 2\ndelta = 1e-5", dp.Approx(epsilon=2, delta=1e-5), 1e-8),
        ("epsilon = 2\ndelta = 1e-5\ndelta_per_question = 0", dp.Approx(epsilon=2, delta=1e-5), 0),
    ],
)
def test_the_limit_and_what_one_question_may_use_of_delta(
    lines: str, limit: dp.Guarantee, per_question: float, folder: Path
) -> None:
    words = CLINIC.replace("epsilon = 10.0\ndelta = 1e-5\ndelta_per_question = 1e-8", lines)
    (folder / "clinic.toml").write_text(words, "utf-8")
    policy = load(folder / "clinic.toml")
    assert type(policy.limit) is type(limit)
    assert policy.limit == limit
    assert float(policy.delta_per_question) == per_question
    connect(policy)


def test_the_rule_of_the_ledger(folder: Path) -> None:
    (folder / "clinic.toml").write_text(CLINIC.replace("epsilon = 10.0", 'epsilon = 10.0\nrule = "basic"'), "utf-8")
    assert connect(folder / "clinic.toml").ledger.rule.name == "basic"


def test_rows_may_be_protected_one_by_one(folder: Path) -> None:
    words = CLINIC.replace('person = "patient_id"', 'row = true\nneighbors = "replace"')
    words = words.replace("rows_per_person = 20\ngroups_per_person = 5\n", "")
    (folder / "clinic.toml").write_text(words, "utf-8")
    clinic = connect(folder / "clinic.toml")
    assert clinic.schema.unit == dp.row(neighbors="replace")
    assert clinic.schema.tables["visits"].person is None


def test_a_table_may_name_the_person_by_another_column(folder: Path) -> None:
    renamed = VISITS.rename_columns(["customer", *VISITS.column_names[1:]])
    pyarrow.parquet.write_table(renamed, folder / "other.parquet")
    other = '[tables.other]\nsource = "other.parquet"\nperson = "customer"\nrows_per_person = 3\nversion = 7\n'
    (folder / "clinic.toml").write_text(CLINIC + other, "utf-8")
    clinic = connect(folder / "clinic.toml")
    assert clinic.schema.tables["other"].person == "customer"
    assert clinic.schema.tables["other"].version == "7"
    people = clinic.sql("SELECT COUNT(DISTINCT customer) AS people FROM other", epsilon=5)
    assert abs(people.table["people"][0].as_py() - PEOPLE) < 100
    joined = "SELECT COUNT(*) AS n FROM visits JOIN other ON visits.patient_id = other.customer"
    assert clinic.plan(joined, epsilon=1).price.shares == (1,)


def test_a_folder_of_files_is_a_table(folder: Path) -> None:
    (folder / "parts").mkdir()
    for part in range(2):
        pyarrow.parquet.write_table(VISITS.slice(part * 600, 600), folder / "parts" / f"{part}.parquet")
    (folder / "clinic.toml").write_text(CLINIC.replace("visits.parquet", "parts"), "utf-8")
    clinic = connect(folder / "clinic.toml")
    found = clinic.sql("SELECT COUNT(*) AS n FROM visits", epsilon=5).table["n"][0].as_py()
    assert abs(found - 1200) < 150


def test_an_analyst_has_an_account_of_their_own(folder: Path) -> None:
    owner = connect(folder / "clinic.toml")
    with refuses(InvalidArgument, "ledger-no-account"):
        connect(folder / "clinic.toml", analyst="ana")
    owner.ledger.for_analyst("ana", limit=dp.Approx(epsilon=1, delta=1e-6))
    ana = connect(folder / "clinic.toml", analyst="ana")
    ana.sql("SELECT COUNT(*) FROM visits", epsilon=0.8)
    with pytest.raises(dp.BudgetExhausted):
        ana.sql("SELECT COUNT(*) FROM visits WHERE age > 30", epsilon=0.8)
    assert [entry.analyst for entry in owner.ledger.entries()][-1] == "ana"


# --- as Python objects ----------------------------------------------------------------------------------


def test_the_same_words_as_a_mapping_with_data_in_memory() -> None:
    words = {
        "ledger": {"path": ":memory:", "epsilon": 10},
        "unit": {"person": "patient_id"},
        "tables": {
            "visits": {"source": VISITS, "rows_per_person": 3, "columns": {"cost": {"between": (0, 100)}}},
            "cities": {"source": CITIES, "public": True},
        },
    }
    clinic = dp.connect(words)
    total = clinic.sql("SELECT SUM(cost) AS cost FROM visits", epsilon=5).table["cost"][0].as_py()
    assert abs(total - sum(VISITS["cost"].to_pylist())) < 3000
    assert CANARY not in repr(load(words))


def test_the_same_policy_as_objects(folder: Path) -> None:
    visits = Table(
        name="visits",
        source=folder / "visits.parquet",
        columns={"cost": Column(name="cost", type="number", between=(0, 5000))},
        rows_per_person=3,
    )
    policy = Policy(unit=dp.person("patient_id"), limit=dp.Pure(epsilon=3), tables={"visits": visits})
    clinic = connect(policy)
    assert clinic.schema.tables["visits"].columns["cost"].between == (0, 5000)
    assert clinic.ledger.limit == dp.Pure(epsilon=3)
    assert len(clinic.sql("SELECT AVG(cost) FROM visits", epsilon=1).table) == 1


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"unit": "patient_id"}, "wrong-type"),
        ({"limit": 3}, "wrong-type"),
        ({"tables": {}}, "policy-missing-key"),
        ({"tables": {"x": Table(name="y", columns={})}}, "policy-table-name"),
        ({"tables": {"y": Table(name="y", columns={}, public=True, through="x.id")}}, "policy-public"),
        ({"tables": {n: Table(name=n, columns={}) for n in "yY"}}, "duplicates"),
    ],
)
def test_bad_objects_are_refused(change: dict[str, object], code: str) -> None:
    terms = {"unit": dp.row(), "limit": dp.Pure(epsilon=1), "tables": {"y": Table(name="y", columns={})}}
    with refuses(InvalidArgument, code):
        Policy(**(terms | change))


@pytest.mark.parametrize("policy", [None, 3, b"clinic.toml", {}, {"ledger": 3}, {1: {}}])
def test_what_is_no_policy_is_refused(policy: object) -> None:
    with pytest.raises(InvalidArgument):
        connect(policy)


def test_a_repr_holds_no_password(folder: Path) -> None:
    (folder / "clinic.toml").write_text(
        CLINIC.replace("clinic.ledger", "postgresql://bob:hunter2@host/clinic"), "utf-8"
    )
    policy = load(folder / "clinic.toml")
    assert policy.ledger == ledger_of(folder / "clinic.toml") == "postgresql://bob:hunter2@host/clinic"
    assert "hunter2" not in repr(policy)


# --- the identity of an answer --------------------------------------------------------------------------


def changed_text(folder: Path, old: str, new: str) -> str:
    assert old in CLINIC
    (folder / "clinic.toml").write_text(CLINIC.replace(old, new), "utf-8")
    return load(folder / "clinic.toml").public_text()


def test_the_public_text_changes_with_what_changes_an_answer(folder: Path) -> None:
    texts = {
        load(folder / "clinic.toml").public_text(),
        changed_text(folder, "rows_per_person = 20", "rows_per_person = 21"),
        changed_text(folder, "groups_per_person = 5", "groups_per_person = 6"),
        changed_text(folder, "[0, 5000]", "[0, 5001]"),
        changed_text(folder, '["Haifa", "Ljubljana"]', '["Ljubljana", "Haifa"]'),
        changed_text(folder, 'person = "patient_id"', 'person = "patient_id"\nneighbors = "replace"'),
    }
    assert len(texts) == 6


def test_the_public_text_is_the_same_when_only_the_budget_or_a_path_changes(folder: Path) -> None:
    text = load(folder / "clinic.toml").public_text()
    assert changed_text(folder, "epsilon = 10.0", "epsilon = 20.0") == text
    assert changed_text(folder, "clinic.ledger", "other.ledger") == text
    assert changed_text(folder, "[0, 5000]", "[\n  0, 5000,\n]") == text
    assert CANARY not in text


# --- what is refused ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        (
            "rows_per_person = 20",
            "rows_per_persn = 20",
            "policy-unknown-key",
        ),
        ("[unit]", "[units]", "policy-unknown-key"),
        ("epsilon = 10.0", "epsilonn = 10.0", "policy-unknown-key"),
        ("between = [0, 5000]", "betwen = [0, 5000]", "policy-unknown-key"),
        ("public = true", "xyz = true", "policy-unknown-key"),
        ('kind = "duckdb"', 'kind = "duckdb"\nurl = "x"', "policy-unknown-key"),
        ('kind = "duckdb"', 'kind = "postgres"', "engine-url"),
        ('kind = "duckdb"', 'kind = "postgres"\nurl = "x"', "engine-url"),
        ('kind = "duckdb"', 'kind = "postgres"\nurl = 3', "engine-url"),
        ('kind = "duckdb"', 'kind = "postgres"\nuri = "postgresql://h/d"', "policy-unknown-key"),
        ('kind = "duckdb"', 'kind = "postgres"\nurl = "postgresql://h/d"\ntimeout = 0', "out-of-range"),
        ('kind = "duckdb"', 'kind = "spark"\nurl = "sc://h"', "policy-unknown-key"),
        ('kind = "duckdb"', 'kind = "spark"\nmaster = 3', "wrong-type"),
        ('kind = "duckdb"', 'kind = "spark"\nconfig = {cores = "3"}', "engine-config"),
        ('kind = "duckdb"', 'kind = "spark"\nconfig = {"spark.cores" = 3}', "engine-config"),
        ('kind = "duckdb"', 'kind = "oracle"', "not-an-option"),
        ('kind = "duckdb"', "kind = 3", "not-an-option"),
        ("epsilon = 10.0\n", "", "policy-missing-key"),
        ('path = "clinic.ledger"\n', "", "policy-missing-key"),
        ('path = "clinic.ledger"', "path = 3", "wrong-type"),
        ('path = "clinic.ledger"', 'path = ":memory:"', "policy-ledger-in-memory"),
        ("epsilon = 10.0", "epsilon = -1", "out-of-range"),
        ("epsilon = 10.0", "epsilon = nan", "not-a-number"),
        ("epsilon = 10.0", 'epsilon = "10"', "not-a-number"),
        ("delta = 1e-5", "delta = 1.5", "out-of-range"),
        ("delta_per_question = 1e-8", "delta_per_question = 1e-4", "policy-delta"),
        ("delta = 1e-5\n", "", "policy-delta"),
        ("epsilon = 10.0", 'epsilon = 10.0\nrule = "none"', "not-an-option"),
        ('person = "patient_id"', "", "policy-unit"),
        ('person = "patient_id"', "row = false", "policy-unit"),
        ('person = "patient_id"', 'row = "yes"', "policy-unit"),
        ('person = "patient_id"', 'person = "patient_id"\nrow = true', "policy-unit"),
        ('person = "patient_id"', "person = 3", "wrong-type"),
        ('person = "patient_id"', 'person = "patient_id"\nneighbors = "all"', "not-an-option"),
        ('person = "patient_id"', "row = true", "rows-protected"),
        ('person = "patient_id"', 'person = "doctor"', "person-column-missing"),
        ('person = "patient_id"', 'person = "patientid"', "person-column-missing"),
        ("[unit]\n", "[unit.person]\n", "wrong-type"),
        ("rows_per_person = 20", "rows_per_person = 0", "out-of-range"),
        ("rows_per_person = 20", "rows_per_person = 2.5", "not-whole"),
        ("rows_per_person = 20", 'rows_per_person = "20"', "not-a-number"),
        ("groups_per_person = 5", 'groups_per_person = "all"', "not-a-number"),
        ("groups_per_person = 5", 'through = "other.id"', "policy-through"),
        ("groups_per_person = 5", 'person = "id"', "unknown-column"),
        ('source = "visits.parquet"\n', "", "policy-missing-key"),
        ('source = "visits.parquet"', "source = 3", "policy-missing-key"),
        ("visits.parquet", "visit.parquet", "source-missing"),
        ("visits.parquet", "clinic.toml", "source-format"),
        ("public = true", "public = 1", "wrong-type"),
        ("public = true", "public = true\nrows_per_person = 3", "policy-public"),
        ("public = true\n", "", "person-column-missing"),
        ("public = true\n", "rows_per_person = 3\n", "person-column-missing"),
        ("[0, 5000]", "[5000, 0]", "ends-out-of-order"),
        ("[0, 5000]", "[0]", "wrong-shape"),
        ("[0, 5000]", "5000", "wrong-shape"),
        ("[0, 5000]", "[0, inf]", "out-of-range"),
        ("[0, 5000]", "[true, false]", "out-of-range"),
        ("[0, 5000]", '["low", "high"]', "not-a-date"),
        ("[0, 5000]", '"all"', "wrong-shape"),
        ("[0, 5000]", "[0, 5000]\nfrequency = 0", "out-of-range"),
        ("[0, 5000]", "[2024-01-01, 2024-12-31]", "out-of-range"),
        ("choices = ", "between = [0, 1]\nchoices = ", "column-no-range"),
        ("columns.cost]", "columns.costs]", "unknown-column"),
        ('["Haifa", "Ljubljana"]', "[]", "column-choices"),
        ('["Haifa", "Ljubljana"]', '"Haifa"', "column-choices"),
        ('["Haifa", "Ljubljana"]', '["Haifa", "Haifa"]', "column-choices"),
        ('["Haifa", "Ljubljana"]', '[["Haifa"]]', "column-choices"),
        ('["Haifa", "Ljubljana"]', "[1, 2]", "column-choices-type"),
        ("columns.city]", "columns.age]", "column-choices-type"),
        ("columns.city]", "columns.day]", "column-choices-type"),
        ("[tables.visits.columns.cost]", "[tables.visits.columns]\ncost = 3\n[tables.x]", "policy-section"),
    ],
)
def test_a_bad_policy_is_refused(old: str, new: str, code: str, folder: Path) -> None:
    assert complaint(folder, old, new).code == code


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("rows_per_person", "rows_per_persn"),
        ("unit", "units"),
        ("epsilon", "epsilonn"),
        ("between", "betwen"),
        ("patient_id", "patientid"),
        ("columns.cost", "columns.costs"),
    ],
)
def test_a_misspelled_name_is_refused_with_the_nearest(old: str, new: str, folder: Path) -> None:
    nearest = old.removeprefix("columns.")
    assert re.search(rf"\b{nearest}\b", str(complaint(folder, old, new)))


@pytest.mark.parametrize(("text", "code"), [(None, "policy-file"), ("[ledger\n", "policy-not-toml")])
def test_a_file_that_is_no_policy(text: str | None, code: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "clinic.toml").write_text(text, "utf-8")
    with refuses(InvalidArgument, code):
        load(tmp_path / "clinic.toml")


def edited(folder: Path, epsilon: str, delta: str = "1e-5") -> Path:
    """The policy with another limit."""
    text = CLINIC.replace("epsilon = 10.0", f"epsilon = {epsilon}").replace("delta = 1e-5", f"delta = {delta}")
    (folder / "clinic.toml").write_text(text, "utf-8")
    return folder / "clinic.toml"


def ledger_in(policy: Path) -> dp.Ledger:
    """The ledger of a policy, as `connect` opens it."""
    return open_policy_ledger(load(policy))


def test_a_limit_may_be_edited_until_the_first_charge(folder: Path) -> None:
    ledger_in(folder / "clinic.toml").for_analyst("alice", limit=dp.Approx(epsilon=1, delta=1e-7))
    for epsilon, delta in (("20.0", "1e-5"), ("3.0", "1e-6"), ("5.0", "1e-5")):
        ledger = ledger_in(edited(folder, epsilon, delta))
        assert ledger.limit == dp.Approx(epsilon=float(epsilon), delta=float(delta))
        assert ledger.remaining == dp.Pure(epsilon=float(epsilon))
    assert len(ledger.periods) == 1  # nothing was charged in those before
    assert ledger.analysts == ("alice",)
    ledger.charge(dp.Pure(epsilon=4), asked="a")
    with pytest.raises(dp.BudgetExhausted):
        ledger.charge(dp.Pure(epsilon=2), asked="a")
    assert ledger.verify() == 6


def test_a_limit_that_is_edited_after_the_first_charge_is_refused(folder: Path) -> None:
    ledger_in(folder / "clinic.toml").charge(dp.Pure(epsilon=1), asked="a")
    with refuses(InvalidArgument, "ledger-other-terms") as refused:
        ledger_in(edited(folder, "20.0"))
    assert "--raise" in str(refused.value)
    assert ledger_in(edited(folder, "10.0")).spent
    ledger_command.change_limit(str(edited(folder, "20.0")), "the board agreed", None, None)
    ledger = ledger_in(folder / "clinic.toml")
    assert ledger.limit == dp.Approx(epsilon=20, delta=1e-5)
    assert ledger.spent != {}
    ledger_command.change_limit(str(edited(folder, "2.0")), None, "a new year", None)
    assert ledger_in(folder / "clinic.toml").remaining == dp.Pure(epsilon=2)
    assert [period.limit.epsilon for period in ledger.periods] == [20, 2]


def test_a_limit_is_changed_in_one_way_and_by_a_policy(folder: Path) -> None:
    for given in (("clinic.toml", "a", "b"), ("clinic.toml", None, None), ("clinic.ledger", "a", None)):
        with refuses(InvalidArgument, "command-limit"):
            ledger_command.change_limit(*given, None)


def test_another_rule_after_the_first_charge_is_refused(folder: Path) -> None:
    ledger_in(folder / "clinic.toml").charge(dp.Pure(epsilon=1), asked="a")
    (folder / "clinic.toml").write_text(CLINIC.replace("epsilon = 10.0", 'epsilon = 10.0\nrule = "basic"'), "utf-8")
    with refuses(InvalidArgument, "ledger-other-terms"):
        ledger_in(folder / "clinic.toml")


def test_rows_of_a_unit_are_called_rows(folder: Path) -> None:
    (folder / "clinic.toml").write_text(CLINIC.replace('person = "patient_id"', "rows = 0"), "utf-8")
    with refuses(InvalidArgument, "out-of-range") as refused:
        load(folder / "clinic.toml")
    assert "rows must" in str(refused.value)
    assert "times" not in str(refused.value)


def test_people_are_told_apart_by_what_is_exact(tmp_path: Path) -> None:
    """Decimals of many digits are read as floating-point numbers, where two of them may be one."""
    from decimal import Decimal

    ids = pa.array([Decimal(10**20), Decimal(10**20 + 1)], pa.decimal128(38, 0))
    words = {
        "ledger": {"path": str(tmp_path / "a.ledger"), "epsilon": 1},
        "unit": {"person": "pid"},
        "tables": {"t": {"source": pa.table({"pid": ids}), "rows_per_person": 1}},
    }
    with refuses(InvalidArgument, "person-type"):
        connect(words)


@pytest.mark.some_quick(4)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"clinic.ledger"', r'"a\u0000b"'),
        ('"clinic.ledger"', '"~who/x"'),
        ('"visits.parquet"', r'"a\u0000b"'),
        ('"visits.parquet"', '"~who/x"'),
        ('"visits.parquet"', f'"{"a" * 5000}"'),
        ('kind = "duckdb"', 'kind = ["duckdb"]'),
        ('kind = "duckdb"', "kind = {}"),
        ('kind = "duckdb"', r'spill = "a\u0000b"'),
        ("[0, 5000]", "[" * 5000 + "]" * 5000),
        ("[ledger]", "\udcff[ledger]"),
    ],
)
def test_a_policy_is_refused_in_words_for_people(old: str, new: str, tmp_path: Path) -> None:
    policies = Policies(tmp_path)
    assert old in SEEDS[0]
    said = policies.check(SEEDS[0].replace(old, new).encode("utf-8", "surrogateescape"))
    assert said.startswith(("InvalidArgument", "read:"))  # read, where the home of nobody is another folder
    policies.close()


@pytest.mark.parametrize("source", ["a\0b", "~who/x.parquet", "a" * 5000, ""])
def test_a_source_that_cannot_be_a_file_is_said_to_be_none(source: str) -> None:
    with refuses(InvalidArgument, "source-missing"):
        DuckDB({"t": source})


# --- who asks ---------------------------------------------------------------------------------------------


def test_a_policy_can_need_to_know_who_asks(tmp_path: Path) -> None:
    words = {
        "ledger": {"path": str(tmp_path / "clinic.ledger"), "epsilon": 10.0},
        "unit": {"person": "patient_id"},
        "tables": {"visits": {"source": VISITS}},
    }
    required = words | {"analysts": {"required": True}}
    with refuses(InvalidArgument, "analyst-required"):
        connect(required)
    assert not (tmp_path / "clinic.ledger").exists()
    connect(words | {"analysts": {"required": False}}).ledger.for_analyst("alice", limit=dp.Pure(epsilon=1))
    assert connect(required, analyst="alice").ledger.analyst == "alice"
    with refuses(InvalidArgument, "ledger-no-account"):
        connect(required, analyst="bob")
    with refuses(InvalidArgument, "wrong-type"):
        connect(words | {"analysts": {"required": "yes"}})
    with refuses(InvalidArgument, "policy-unknown-key"):
        connect(words | {"analysts": {"require": True}})
