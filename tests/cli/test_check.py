"""`discreet check`: what is left to decide, what the limit pays for, what is wrong. No row is read unless it is asked
for on a terminal.
"""

from __future__ import annotations

import datetime
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import discreet as dp
from discreet.cli import check as check_command
from discreet.cli import init as init_command
from discreet.cli import main
from discreet.datasets import checking
from discreet.errors import InvalidArgument

from ..refusing import refuses
from .test_init_odd import Terminal

CANARY = "canary-7c1e"
POLICY = """
[ledger]
path = "clinic.ledger"
epsilon = 1.0
delta = 1e-6
[unit]
person = "patient_id"
[tables.visits]
source = "visits.parquet"
rows_per_person = 3
[tables.visits.columns]
city = {choices = ["Haifa"], other = "elsewhere"}
unit = {choices = ["A"]}
cost = {between = [0, 100]}
"""


SCHEMA = pa.schema({"patient_id": pa.int64(), "cost": pa.float64(), "city": pa.string(), "unit": pa.string()})


class Said(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture
def clinic(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that everybody may enter, with a policy that is complete, and data that only its owner can read."""
    folder = Path(tempfile.mkdtemp(prefix="clinic-"))
    folder.chmod(0o755)
    patients = [*range(400), None]
    visits = {"patient_id": patients, "cost": [12345.5] * 401, "city": [CANARY] * 401, "unit": ["A"] * 401}
    pyarrow.parquet.write_table(pa.table(visits), folder / "visits.parquet")
    (folder / "visits.parquet").chmod(0o600)
    (folder / "clinic.toml").write_text(POLICY, "utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(checking, "_TEMPORARY", ("/nowhere",))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def check(clinic: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    def run(*arguments: object) -> Said:
        with pytest.raises(SystemExit) as exit_info:
            main(["check", *map(str, arguments)])
        code = exit_info.value.code
        return Said(code if isinstance(code, int) else 0, *capsys.readouterr())

    return run


@pytest.mark.slow
def test_the_settings_of_a_gateway_are_checked(clinic: Path, check: Callable[..., Said]) -> None:
    (clinic / "clinic.toml").write_text(POLICY + '[gateway]\nanswer_after = "2 fortnights"\n', "utf-8")
    said = check("clinic.toml", "--json")
    assert (said.status, [one["code"] for one in json.loads(said.out)["problems"]]) == (2, ["gateway-duration"])
    (clinic / "clinic.toml").write_text(POLICY + '[gateway]\nanswer_after = "2s"\n', "utf-8")
    assert check("clinic.toml").status == 0


def test_a_policy_that_is_ready(check: Callable[..., Said], clinic: Path) -> None:
    said = check("clinic.toml")
    assert said.status == 0, said
    assert "ready" in said.out.splitlines()[-1]
    for words in (
        "rows whose patient_id is NULL are left out",
        "values of city that are not declared, and NULL, are in the group elsewhere",
        "values of unit that are not declared, and NULL, are in no group",
        "values outside their range count as its end, and NULL is left out of sums: cost",
        "3 rows are used at most",
        "not begun: the first question creates it",
    ):
        assert words in said.out
    assert not (clinic / "clinic.ledger").exists()


def test_what_is_left_to_decide_is_listed_until_it_is_decided(check: Callable[..., Said], clinic: Path) -> None:
    init_command.main([clinic / "visits.parquet"], clinic / "first.toml", person="patient_id")
    said = check("first.toml", "--json")
    found = json.loads(said.out.splitlines()[-1])
    assert (said.status, found["ready"], found["usable"]) == (1, False, True)
    lines = (clinic / "first.toml").read_text("utf-8").splitlines()
    assert [lines[one["line"] - 1].partition(" ")[0] for one in found["decisions"]] == ["epsilon", "delta"]
    (clinic / "first.toml").write_text("\n".join(lines).replace("decide: ", ""), "utf-8")
    assert check("first.toml").status == 0


@pytest.mark.slow
def test_the_budget_is_what_a_ledger_would_pay_for(check: Callable[..., Said], clinic: Path) -> None:
    """Each question is asked until the ledger refuses it."""
    found = json.loads(check("clinic.toml", "--json", "--epsilon", "0.25").out)["budget"]
    assert [one["question"].split()[1] for one in found] == ["COUNT(*)", 'AVG("cost")', '"city",']
    for number, one in enumerate(found):
        words = (clinic / "clinic.toml").read_text("utf-8").replace("clinic.ledger", f"{number}.ledger")
        (clinic / f"{number}.toml").write_text(words, "utf-8")
        database, times = dp.connect(clinic / f"{number}.toml"), 0
        owed = database.prepare(one["question"], epsilon=0.25).owed()
        try:
            while True:
                for guarantee in owed:
                    database.ledger.charge(guarantee, asked="a")
                times += 1
        except dp.BudgetExhausted:
            assert times == one["times"] > 1


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('"visits.parquet"', '"gone.parquet"', "source-missing"),
        ("clinic.ledger", "no/such/clinic.ledger", "ledger-place"),
        ("cost = {between", "costs = {between", "unknown-column"),
    ],
)
def test_what_is_wrong_has_a_code(old: str, new: str, code: str, check: Callable[..., Said], clinic: Path) -> None:
    (clinic / "clinic.toml").write_text(POLICY.replace(old, new), "utf-8")
    said = check("clinic.toml", "--json")
    found = json.loads(said.out)
    assert (said.status, found["usable"]) == (2, False)
    assert code in [one["code"] for one in found["problems"]]
    assert f"[{code}]" in check("clinic.toml").out


def test_a_policy_that_cannot_be_read(check: Callable[..., Said], clinic: Path) -> None:
    (clinic / "clinic.toml").write_text("[ledger", "utf-8")
    said = check("clinic.toml")
    assert said.status == 2
    assert "policy-not-toml" in said.err
    assert check("gone.toml").status == 2
    assert check("clinic.toml", "--epsilon", "0").status == 2


def test_what_others_may_do_is_told(check: Callable[..., Said], clinic: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (clinic / "visits.parquet").chmod(0o644)
    dp.connect(clinic / "clinic.toml").ledger.charge(dp.Pure(epsilon=0.25), asked="a")
    (clinic / "clinic.ledger").chmod(0o666)
    monkeypatch.setattr(checking, "_TEMPORARY", (str(clinic),))
    monkeypatch.setattr(checking, "_file_system", lambda folder: "nfs4")
    said = check("clinic.toml")
    assert said.status == 1
    words_of_ledger = (
        "chmod go-w",
        "can read the questions and answers",
        "temporary files",
        "network file system (nfs4)",
    )
    for words in ("can read the rows of visits", *words_of_ledger):
        assert words in said.out
    assert "ε = 0.75 of ε = 1, δ = 1e-06 remains, after 1 entry" in said.out


def test_nobody_may_do_anything_in_a_folder_that_is_closed(check: Callable[..., Said], clinic: Path) -> None:
    """Files that everybody may read and write are the owner's alone where nobody else can enter a folder above them."""
    inside = clinic / "data"
    inside.mkdir()
    (clinic / "visits.parquet").rename(inside / "visits.parquet")
    text = POLICY.replace('"visits.parquet"', '"data/visits.parquet"').replace("clinic.ledger", "data/clinic.ledger")
    (clinic / "clinic.toml").write_text(text, "utf-8")
    dp.connect(clinic / "clinic.toml").ledger.charge(dp.Pure(epsilon=0.25), asked="a")
    for name in ("visits.parquet", "clinic.ledger"):
        (inside / name).chmod(0o666)
    words = ("can read the rows", "Others may write", "can read the questions")
    for mode, of_clinic, told in (
        (0o711, 0o711, words),
        (0o710, 0o711, ("Others may write",)),  # only the group
        (0o700, 0o711, ()),
        (0o711, 0o700, ()),
    ):
        inside.chmod(mode)
        clinic.chmod(of_clinic)
        said = check("clinic.toml")
        assert tuple(one for one in words if one in said.out) == told, (oct(mode), said)
        assert said.status == (1 if told else 0)


def test_a_limit_that_protects_hardly_anybody_is_told(check: Callable[..., Said], clinic: Path) -> None:
    (clinic / "clinic.toml").write_text(POLICY.replace("1.0", "1000").replace("1e-6", "0.1"), "utf-8")
    said = check("clinic.toml")
    assert said.status == 1
    assert "ε = 1000: suppose that" in said.out
    assert "δ = 0.1: for 10% of all people, everything may be revealed" in said.out


@pytest.mark.slow
def test_limits_of_a_gateway_that_do_not_fit_together_are_told(check: Callable[..., Said], clinic: Path) -> None:
    def said(question: str, limits: str = "") -> list[str]:
        gateway = f"[gateway]\n[gateway.question]\n{question}\n[gateway.limits]\n{limits}\n"
        (clinic / "clinic.toml").write_text(POLICY.replace("1.0", "5.0") + gateway, "utf-8")
        found = json.loads(check("clinic.toml", "--json").out)
        assert found["usable"]
        return [one["text"] for one in found["problems"] if "[gateway." in one["text"]]

    assert said("default = 0.5\nmost = 1", "session = 2\nday = 5\napprove_above = 0.9") == []
    [refused] = said("default = 2\nmost = 1")
    assert refused.startswith("A question that names no ε is refused")
    assert "most of [gateway.question] is 1" in refused
    [refused] = said("default = 2", "day = 1")
    assert "day of [gateway.limits] is 1" in refused
    [idle] = said("most = 9")
    assert idle == "most of [gateway.question] is 9, and limits nothing: epsilon of [ledger] is 5."
    [alone] = said("most = 1", "approve_above = 1")
    assert alone.startswith("No question needs a second person")


def test_groups_of_an_example_are_declared(check: Callable[..., Said], clinic: Path) -> None:
    """A column that differs in every row has no group that is shown."""
    undeclared = POLICY.replace("city = ", "# ").replace("unit = ", "# ")
    (clinic / "clinic.toml").write_text(undeclared, "utf-8")
    found = json.loads(check("clinic.toml", "--json").out)["budget"]
    assert {one["question"].split()[1] for one in found} == {"COUNT(*)", 'AVG("cost")'}


def test_a_ledger_that_cannot_be_written(
    check: Callable[..., Said], clinic: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discreet.datasets.checking.os.access", lambda path, mode: False)  # the administrator may
    assert check("clinic.toml").status == 2


def test_a_password_that_others_can_read(clinic: Path) -> None:
    text = POLICY.replace("clinic.ledger", "postgresql://ada:hunter2@host/clinic")
    (clinic / "clinic.toml").write_text(text, "utf-8")
    (clinic / "clinic.toml").chmod(0o644)
    [found] = checking._problems_of_files(clinic / "clinic.toml", checking.load(clinic / "clinic.toml"))
    assert "chmod 600" in found.text
    assert "hunter2" not in found.text


def test_nothing_about_rows_is_in_a_log(clinic: Path) -> None:
    for given in ({}, {"as_json": True}):
        with refuses(InvalidArgument, "command-terminal"):
            check_command.main("clinic.toml", rows=True, **given)


def test_rows_are_counted_on_a_terminal_only(clinic: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    with monkeypatch.context() as patch:
        patch.setattr("sys.stdout", screen)
        assert check_command.main("clinic.toml", rows=True) == 0
    assert "from the rows: exact, and for you alone" in screen.getvalue()
    assert "visits: 401 rows of 400 people" in screen.getvalue()
    assert "patient_id: 1 are NULL" in screen.getvalue()
    assert CANARY not in screen.getvalue()


def test_the_same_is_said_of_any_rows(clinic: Path) -> None:
    """One person more, and what only they have, changes nothing that is said."""
    seen = []
    for more in (0, 1):
        rows = [{"patient_id": 1, "cost": None}, *[{"patient_id": 7, "cost": 9e9}] * more]
        table = pa.Table.from_pylist([{"city": "x", "unit": "A", **row} for row in rows], SCHEMA)
        pyarrow.parquet.write_table(table, clinic / "visits.parquet")
        seen.append(checking.check_policy(clinic / "clinic.toml", [0.1]).as_json())
    assert seen[0] == seen[1]


def test_columns_that_can_only_be_counted_are_named(tmp_path: Path) -> None:
    table = pa.table({"patient_id": [1], "scan": pa.array([b"x"]), "city": ["Haifa"]})
    pyarrow.parquet.write_table(table, tmp_path / "visits.parquet")
    init_command.main([tmp_path / "visits.parquet"], tmp_path / "policy.toml")
    fates = checking.check_policy(tmp_path / "policy.toml").fates["visits"]
    assert "can be counted, but not grouped or compared, because of their type: scan" in fates
    assert any(one.endswith("for a part of ε and δ: city") for one in fates)


def test_only_groups_that_plans_do_not_know_are_shown_if_enough_people_have_them(tmp_path: Path) -> None:
    columns = {
        "day": {"type": "date", "between": [datetime.date(2024, 1, 1), datetime.date(2024, 12, 31)]},
        "age": {"type": "integer", "between": [0, 99]},
        "member": {"type": "boolean"},
        "city": {"choices": ["Haifa"]},
        "model": {"type": "text"},
        "seen": {"type": "date"},
        "cost": {"type": "number", "between": [0, 99]},
        "millis": {"type": "integer", "between": [0, 10**12]},
        "size": {"type": "integer", "between": "auto"},
    }
    rows = {"id": [1], **{name: ["1"] for name in columns}}
    pyarrow.csv.write_csv(pa.table(rows), tmp_path / "visits.csv")
    tables = {"visits": {"source": str(tmp_path / "visits.csv"), "columns": {"id": {"type": "integer"}, **columns}}}
    ledger = {"path": ":memory:", "epsilon": 9, "delta": 1e-6, "delta_per_question": 1e-8}
    with closing(dp.connect({"ledger": ledger, "unit": {"person": "id"}, "tables": tables})) as database:
        fates = checking._fates(database.schema.tables["visits"], database.engine)
        [said] = [one for one in fates if "part of ε" in one]
        asked = {name: f"SELECT {name}, COUNT(*) AS n FROM visits GROUP BY {name}" for name in columns}
        plans = {name: database.explain(text, epsilon=1).data for name, text in asked.items()}
    unknown = [name for name, plan in plans.items() if plan["groups"] is None]
    assert unknown == ["model", "seen", "cost", "millis", "size"]
    assert said.endswith(f": {', '.join(unknown)}")
