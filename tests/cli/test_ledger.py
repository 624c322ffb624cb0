"""`discreet ledger` shows, checks and exports a real record, and refuses one that cannot be trusted."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from rich.console import Console

import discreet as dp
from discreet.cli import ledger as ledger_command
from discreet.cli import main
from discreet.cli.app import exit_code
from discreet.errors import LedgerDamaged, LedgerUnavailable
from discreet.ledger import Ledger

LIMIT = dp.Approx(epsilon=10, delta=1e-5)
LONG = "SELECT city, COUNT(*) AS visits, AVG(cost) AS cost FROM visits WHERE age >= 18 AND cost > 10 GROUP BY city"


class Said(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture
def discreet(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Said]:
    """Run the command on so many columns: its status, and what it printed."""

    def run(*arguments: object, columns: int = 80) -> Said:
        monkeypatch.setenv("COLUMNS", str(columns))
        with pytest.raises(SystemExit) as exit_info:
            main(["ledger", *map(str, arguments)])
        code = exit_info.value.code
        return Said(code if isinstance(code, int) else 0, *capsys.readouterr())

    return run


@pytest.fixture
def clinic(tmp_path: Path) -> Ledger:
    """A ledger with an answer, a reservation and a raised limit."""
    ledger = Ledger.open(tmp_path / "clinic.ledger", protects=dp.person("patient_id"), limit=LIMIT)
    dp.release(5, dp.Laplace(scale=10, step=1), sensitivity=1, ledger=ledger, asked="How many [bold]smoke[/bold]?")
    ledger.charge(dp.Approx(epsilon=0.5, delta=1e-7), asked=LONG, mechanism="Gaussian(stddev=30)", key="retry-1")
    ledger.raise_limit(dp.Approx(epsilon=12, delta=1e-5), why="the ethics board agreed")
    return ledger


def path_of(ledger: Ledger) -> Path:
    return Path(ledger._store.shown)


def words(text: str) -> str:
    """What was printed, as one line: where it breaks depends on the length of tmp_path."""
    return " ".join(text.replace("│", " ").split())


# --- the view -----------------------------------------------------------------------------------------


def test_the_view_tells_what_remains_of_each_part(tmp_path: Path, discreet) -> None:
    ledger = Ledger.open(tmp_path / "c.ledger", protects=dp.person("id", per="month"), limit=dp.Pure(epsilon=1))
    for part in ("2024-01", "2024-02", "2024-03"):
        ledger._within(part).charge(dp.Pure(epsilon=0.3), asked="how many")
    ledger._within("2024-01").renew(why="published anew")
    ledger.charge(dp.Pure(epsilon=0.1), asked="how many in all")
    shown = words(discreet(path_of(ledger), columns=200).out)
    assert "protects one person, all rows of one id in one month" in shown
    assert "ε = 0.6 of ε = 1 still fits" in shown
    assert "2024-02: how many" in shown
    assert "renewal: 2024-01: published anew" in shown
    for part, left in (("2024-01", "0.9"), ("2024-02", "0.6")):
        assert f"ε = {left} still fits" in shown[shown.index(f"{part} █") :].split(" 2024-")[0]
    assert "2 parts are not shown: --last 3 shows all." in words(discreet(path_of(ledger), "--last", 1).out)
    exported = json.loads(discreet(path_of(ledger), "--export", "json").out)
    assert exported["parts"] == {"2024-01": "ε = 0.9", "2024-02": "ε = 0.6", "2024-03": "ε = 0.6"}
    assert [entry["parts"] for entry in exported["entries"]] == ["2024-01", "2024-02", "2024-03", "2024-01", None]


def test_the_view_tells_the_terms_and_what_remains(clinic: Ledger, discreet) -> None:
    said = discreet(path_of(clinic), columns=300)
    assert (said.status, said.err) == (0, "")
    shown = words(said.out)
    assert f"ledger {path_of(clinic)}" in shown
    assert "protects one person, all rows of one patient_id" in shown
    assert "limit ε = 12, δ = 1e-05" in shown
    assert "rule best" in shown
    assert "entries 3 since it was opened on 20" in shown
    assert f"{clinic.remaining} of ε = 12, δ = 1e-05 still fits" in shown
    assert "analyst" not in shown
    assert "not shown" not in shown


@pytest.mark.parametrize("columns", [80, 120])
def test_the_table_fits_the_terminal(columns: int, clinic: Ledger, discreet) -> None:
    lines = discreet(path_of(clinic), columns=columns).out.splitlines()
    assert max(map(len, lines)) <= columns
    one, two, three = clinic.entries()
    assert [line.split()[0] for line in lines if line.startswith(("1-", "2-", "3-"))] == [
        one.receipt,
        two.receipt,
        three.receipt,
    ]
    first = next(line for line in lines if line.startswith(one.receipt))
    assert first.split()[1:] == ["How", "many", "[bold]smoke[/bold]?", "ε", "=", "0.1", "answered"]
    second = next(index for index, line in enumerate(lines) if line.startswith(two.receipt))
    assert "SELECT city, COUNT(*) AS visits" in lines[second]
    assert lines[second].endswith("reserved")
    assert "δ = 1e-07" in lines[second + 1]
    assert lines[second + 1].startswith(two.exported()["time"][:19].replace("T", " "))
    assert "Gaussian(stddev=30)" in lines[second + 2]
    third = next(line for line in lines if line.startswith(three.receipt))
    assert "limit: the ethics board agreed" in third
    assert "limit ε = 12," in third
    assert third.rstrip().endswith("recorded")


def test_a_narrow_terminal_does_not_stand_words_on_end(clinic: Ledger, discreet) -> None:
    assert "SELECT city, COUNT(*) AS" in discreet(path_of(clinic), columns=20).out


def test_long_questions_are_cut_but_not_in_the_export(tmp_path: Path, discreet) -> None:
    ledger = Ledger.open(tmp_path / "long.ledger", protects=dp.row(), limit=LIMIT)
    ledger.charge(dp.Pure(epsilon=1), asked="研究" * 500, mechanism="m" * 500)
    said = discreet(path_of(ledger)).out.splitlines()
    assert sum("研" in line for line in said) == 2
    assert sum("mmm" in line for line in said) == 1
    assert json.loads(discreet(path_of(ledger), "--export", "json").out)["entries"][0]["asked"] == "研究" * 500


def test_a_question_cannot_steer_the_terminal(tmp_path: Path, discreet) -> None:
    ledger = Ledger.open(tmp_path / "evil.ledger", protects=dp.row(), limit=LIMIT)
    ledger.charge(dp.Pure(epsilon=1), asked="a\x1b[2Jb\nc\u202ed [/] [link=x]", mechanism="\x1b]0;title\x07")
    said = discreet(path_of(ledger), columns=120)
    assert said.status == 0
    assert "\x1b" not in said.out
    assert "\u202e" not in said.out
    assert "a�[2Jb c�d [/] [link=x]" in said.out


def test_older_entries_are_counted(tmp_path: Path, discreet) -> None:
    ledger = Ledger.open(tmp_path / "many.ledger", protects=dp.row(), limit=dp.Pure(epsilon=100))
    for number in range(1, 23):
        ledger.charge(dp.Pure(epsilon=1), asked=f"question {number}.")
    said = discreet(path_of(ledger)).out
    assert "question 2." not in said
    assert "question 3." in said
    assert "question 22." in said
    assert "2 older entries are not shown: --last 22 shows all.\n" in said
    assert "1 older entry is not shown: --last 22 shows all.\n" in discreet(path_of(ledger), "--last", 21).out
    assert "not shown" not in discreet(path_of(ledger), "--last", 22).out
    assert "22 older entries are not shown" in discreet(path_of(ledger), "--last", 0).out


def test_looking_reads_only_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, discreet) -> None:
    ledger = Ledger.open(tmp_path / "many.ledger", protects=dp.row(), limit=dp.Pure(epsilon=100))
    for number in range(1, 11):
        ledger.charge(dp.Pure(epsilon=1), asked=f"question {number}.")
    asked_for = []
    entries = Ledger.entries
    monkeypatch.setattr(Ledger, "entries", lambda self, *which: asked_for.append(which) or entries(self, *which))
    discreet(path_of(ledger), "--last", 2)
    assert asked_for == [(0, 0), (9, 10)]


@pytest.mark.parametrize(
    ("limit", "charge", "fits", "full"),
    [
        (dp.Pure(epsilon=10), dp.Pure(epsilon=2.5), "ε = 7.5 of ε = 10 still fits", 0.75),
        (dp.ZeroConcentrated(rho=1), dp.ZeroConcentrated(rho=0.5), "ρ = 0.5 of ρ = 1 still fits", 0.5),
        (dp.GaussianTradeoff(mu=1), dp.GaussianTradeoff(mu=0.6), "μ = 0.8 of μ = 1 still fits", 0.8),
        (dp.Pure(epsilon=1), dp.Pure(epsilon=1), "nothing of ε = 1 still fits", 0),
        (dp.Pure(epsilon=1), dp.Pure(epsilon=0.001), "ε = 0.999 of ε = 1 still fits", 39 / 40),
        (dp.Pure(epsilon=1), dp.Pure(epsilon=0.999), "ε = 0.001 of ε = 1 still fits", 1 / 40),
        (dp.Pure(epsilon=1), None, "ε = 1 of ε = 1 still fits", 1),
    ],
)
def test_the_bar_is_as_full_as_what_remains(tmp_path: Path, limit, charge, fits, full, discreet) -> None:
    ledger = Ledger.open(tmp_path / "one.ledger", protects=dp.row(), limit=limit)
    if charge is not None:
        ledger.charge(charge, asked="something")
    [line] = [line for line in discreet(path_of(ledger)).out.splitlines() if "still fits" in line]
    bar, text = line.split("  ", 1)
    assert text.strip() == fits
    assert (len(bar), bar.count("█") + bar.count("░")) == (40, 40)
    assert bar.count("█") == 40 * full


def test_every_analyst_has_a_bar(clinic: Ledger, discreet) -> None:
    clinic.for_analyst("alice", limit=dp.Approx(epsilon=3, delta=1e-6)).charge(dp.Pure(epsilon=1), asked="by alice")
    clinic.for_analyst("the data set", limit=dp.Approx(epsilon=1, delta=1e-6))  # a name like our own label
    shown = discreet(path_of(clinic), columns=120).out.splitlines()
    bars = [line for line in shown if "still fits" in line]
    assert [line.split("  ")[0] for line in bars] == ["the data set", "alice", "the data set"]
    assert f"{clinic.remaining} of ε = 12, δ = 1e-05 still fits" in bars[0]
    assert "ε = 2 of ε = 3, δ = 1e-06 still fits" in bars[1]
    assert "ε = 1 of ε = 1, δ = 1e-06 still fits" in bars[2]
    by_alice = next(index for index, line in enumerate(shown) if "by alice" in line)
    assert shown[by_alice + 1].split()[-1] == "alice"
    assert any("account: an account for alice" in line for line in shown)


def test_a_terminal_gets_color_and_a_given_console_everything(clinic: Ledger) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=80, highlight=False)
    assert ledger_command.main(str(path_of(clinic)), console=console) == 0
    assert "\x1b[32manswered" in console.file.getvalue()


# --- targets ------------------------------------------------------------------------------------------


def test_a_policy_names_its_ledger_relative_to_itself(clinic: Ledger, tmp_path: Path, monkeypatch, discreet) -> None:
    (tmp_path / "policies").mkdir()
    policy = tmp_path / "policies" / "clinic.toml"
    policy.write_text('[ledger]\npath = "../clinic.ledger"\nepsilon = 10.0\n\n[unit]\nperson = "patient_id"\n')
    monkeypatch.chdir("/")
    assert json.loads(discreet(policy, "--export", "json").out)["target"] == str(path_of(clinic))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (None, "cannot be read: No such file"),
        ("[ledger\n", "is not TOML"),
        ("[unit]\n", "names no ledger"),
        ('ledger = "clinic.ledger"\n', "names no ledger"),
        ("[ledger]\npath = 3\n", "names no ledger"),
        ('[ledger]\npath = "gone.ledger"\n', "Nothing was asked yet. The first question creates the ledger at"),
    ],
)
def test_a_policy_without_a_ledger_is_a_bad_argument(text: str | None, complaint: str, tmp_path, discreet) -> None:
    policy = tmp_path / "clinic.toml"
    if text is not None:
        policy.write_text(text)
    said = discreet(policy)
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith("error [")
    assert complaint in said.err
    assert not (tmp_path / "gone.ledger").exists()


@pytest.mark.parametrize("options", [(), ("--verify",), ("--export", "csv"), ("--adopt", "moved")])
def test_a_missing_ledger_is_not_made(options: tuple[str, ...], tmp_path: Path, discreet) -> None:
    said = discreet(tmp_path / "gone.ledger", *options)
    assert (said.status, said.out) == (2, "")
    assert "There is no ledger at" in said.err
    assert list(tmp_path.iterdir()) == []


def test_a_lost_ledger_is_not_taken_for_one_that_was_never_made(clinic: Ledger, tmp_path: Path, discreet) -> None:
    (tmp_path / "clinic.toml").write_text('[ledger]\npath = "clinic.ledger"\n')
    clinic.close()
    for file in tmp_path.glob("clinic.ledger*"):
        if not file.name.endswith(".checkpoint"):
            file.unlink()
    for target in ("clinic.toml", "clinic.ledger"):
        said = discreet(tmp_path / target)
        assert (said.status, said.out) == (1, "")
        assert "is missing, but its checkpoint has seen 3 entries" in said.err


def test_a_password_is_never_printed(tmp_path: Path, monkeypatch, discreet) -> None:
    pytest.importorskip("psycopg")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    url = "postgresql://bob:hunter2@%2Fno%2Fsuch%2Ffolder/clinic"  # a socket that is not there
    (tmp_path / "clinic.toml").write_text(f'[ledger]\npath = "{url}"\n')
    for target in (url, tmp_path / "clinic.toml"):
        said = discreet(target)
        assert (said.status, said.out) == (1, "")
        assert "postgresql://%2Fno%2Fsuch%2Ffolder/clinic" in said.err
        assert "hunter2" not in said.err


@pytest.mark.parametrize("options", [("--export", "xml"), ("--last", "-1"), ("--last", "all"), ("--adopt", " ")])
def test_bad_options_are_status_2(options: tuple[str, ...], clinic: Ledger, discreet) -> None:
    said = discreet(path_of(clinic), *options)
    assert (said.status, said.out) == (2, "")
    assert said.err


def test_statuses_of_ledger_errors() -> None:
    assert exit_code(LedgerDamaged("cut short")) == exit_code(LedgerUnavailable("busy")) == 1


# --- verify -------------------------------------------------------------------------------------------


def test_verify_says_how_much_it_checked(clinic: Ledger, discreet) -> None:
    said = discreet(path_of(clinic), "--verify")
    assert said == (0, "The record is whole: 4 entries checked, the opening among them.\n", "")


def test_verify_finds_an_old_entry_changed(tmp_path: Path, discreet) -> None:
    ledger = Ledger.open(tmp_path / "old.ledger", protects=dp.row(), limit=dp.Pure(epsilon=1000))
    for _ in range(260):  # more than are looked at when it is opened
        ledger.charge(dp.Pure(epsilon=1), asked="the same")
    ledger.close()
    tamper(path_of(ledger), number=2)
    assert discreet(path_of(ledger)).status == 0
    said = discreet(path_of(ledger), "--verify")
    assert (said.status, said.out) == (1, "")
    assert said.err.startswith("error [ledger-entry-changed]: The ledger cannot be trusted: entry 2")
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("options", [(), ("--verify",), ("--export", "json"), ("--adopt", "trust me")])
def test_a_ledger_whose_last_entries_changed_is_not_shown(options, clinic: Ledger, discreet) -> None:
    clinic.close()
    tamper(path_of(clinic), number=2)
    said = discreet(path_of(clinic), *options)
    assert (said.status, said.out) == (1, "")
    assert "entry 2, or the one before it, was changed" in said.err


def tamper(path: Path, number: int) -> None:
    database = sqlite3.connect(path)
    with database:
        assert database.execute("UPDATE entries SET asked = 'nothing' WHERE number = ?", (number,)).rowcount == 1
    database.close()


# --- export -------------------------------------------------------------------------------------------


def test_json_reads_back_as_the_entries(clinic: Ledger, discreet) -> None:
    said = discreet(path_of(clinic), "--export", "json")
    assert (said.status, said.err) == (0, "")
    assert json.loads(said.out) == {
        "target": str(path_of(clinic)),
        "protects": "person('patient_id')",
        "limit": "ε = 12, δ = 1e-05",
        "rule": "best",
        "spent": clinic.spent,
        "remaining": str(clinic.remaining),
        "entries": [entry.exported() for entry in clinic.entries()],
    }


def test_csv_reads_back_as_the_entries(clinic: Ledger, discreet) -> None:
    clinic.charge(dp.Pure(epsilon=0.1), asked='two\nlines, "quoted", and a comma')
    said = discreet(path_of(clinic), "--export", "csv")
    assert (said.status, said.err) == (0, "")
    expected = [
        {name: "" if value is None else str(value) for name, value in entry.exported().items()}
        for entry in clinic.entries()
    ]
    assert list(csv.DictReader(io.StringIO(said.out, newline=""))) == expected


@pytest.mark.parametrize("entries", [0, 1, 3, 4, 7])
def test_exports_go_on_from_batch_to_batch(entries: int, tmp_path: Path, monkeypatch, discreet) -> None:
    monkeypatch.setattr(ledger_command, "_BATCH", 3)
    ledger = Ledger.open(tmp_path / "some.ledger", protects=dp.row(), limit=dp.Pure(epsilon=100))
    for number in range(entries):
        ledger.charge(dp.Pure(epsilon=1), asked=f"question {number}")
    numbers = list(range(1, entries + 1))
    exported = json.loads(discreet(path_of(ledger), "--export", "json").out)["entries"]
    assert [entry["number"] for entry in exported] == numbers
    header, *rows = csv.reader(io.StringIO(discreet(path_of(ledger), "--export", "csv").out, newline=""))
    assert header[0] == "number"
    assert [int(row[0]) for row in rows] == numbers


def test_infinite_and_exhausted_are_null(tmp_path: Path, discreet) -> None:
    ledger = Ledger.open(tmp_path / "spent.ledger", protects=dp.row(), limit=LIMIT)
    ledger.charge(dp.ZeroConcentrated(rho=0.01), asked="no finite ε")
    exported = json.loads(discreet(path_of(ledger), "--export", "json").out)
    assert exported["spent"]["ε"] is None
    assert exported["spent"]["δ"] == 0
    full = Ledger.open(tmp_path / "full.ledger", protects=dp.row(), limit=dp.Pure(epsilon=1))
    full.charge(dp.Pure(epsilon=1), asked="all of it")
    assert json.loads(discreet(path_of(full), "--export", "json").out)["remaining"] is None


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_no_cell_is_a_formula(start: str, tmp_path: Path, discreet) -> None:
    ledger = Ledger.open(tmp_path / "formula.ledger", protects=dp.row(), limit=LIMIT)
    ledger.charge(dp.Pure(epsilon=1), asked=f"{start}cmd|' /C calc'!A0", mechanism=f"{start}1", key=f"{start}k")
    [row] = csv.DictReader(io.StringIO(discreet(path_of(ledger), "--export", "csv").out, newline=""))
    assert (row["asked"], row["mechanism"], row["key"]) == (
        f"'{start}cmd|' /C calc'!A0",
        f"'{start}1",
        f"'{start}k",
    )


def test_an_export_that_is_verified_keeps_stdout_to_itself(clinic: Ledger, discreet) -> None:
    said = discreet(path_of(clinic), "--verify", "--export", "json")
    assert len(json.loads(said.out)["entries"]) == 3
    assert said.err == "The record is whole: 4 entries checked, the opening among them.\n"


# --- adopt --------------------------------------------------------------------------------------------


def test_a_copy_without_its_checkpoint_is_shown_once_adopted(clinic: Ledger, tmp_path: Path, discreet) -> None:
    clinic.close()
    copy = tmp_path / "copy.ledger"
    shutil.copy(path_of(clinic), copy)
    for refused in (discreet(copy), discreet(copy, "--verify"), discreet(copy, "--export", "csv")):
        assert (refused.status, refused.out) == (1, "")
        assert f'discreet ledger {copy} --adopt "why"' in refused.err
    assert discreet(copy, "--adopt", "").status == 2
    assert discreet(copy).status == 1  # an adoption without a reason is none
    adopted = discreet(copy, "--adopt", "restored from the backup of 3 May")
    assert (adopted.status, adopted.err) == (0, "")
    assert "adoption: restored from the backup" in adopted.out
    assert discreet(copy).out == adopted.out
    assert Ledger.open(copy).entries()[-1].kind == "adoption"


def test_the_help_says_when_to_adopt(discreet) -> None:
    shown = words(discreet("--help", columns=200).out)
    assert "For a ledger that was moved or restored without its checkpoint" in shown
