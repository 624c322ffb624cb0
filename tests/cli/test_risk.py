"""`discreet risk` says what a ledger has spent and may spend, and changes nothing."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import discreet as dp
from discreet.cli import main
from discreet.ledger import Ledger


class Said(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture
def discreet(capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    def run(*arguments: object) -> Said:
        with pytest.raises(SystemExit) as exit_info:
            main(["risk", *map(str, arguments)])
        code = exit_info.value.code
        return Said(code if isinstance(code, int) else 0, *capsys.readouterr())

    return run


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    path = tmp_path / "clinic.ledger"
    ledger = Ledger.open(path, protects=dp.person("patient_id"), limit=dp.Approx(epsilon=2, delta=1e-6))
    alice = ledger.for_analyst("alice", limit=dp.Approx(epsilon=1, delta=1e-7))
    dp.release(5, dp.Laplace(scale=10, step=1), sensitivity=1, ledger=alice)
    ledger.charge(dp.Pure(epsilon=0.4), asked="a", mechanism="b")
    ledger.close()
    return path


def test_it_says_what_was_spent_and_what_may_be(clinic: Path, discreet: Callable[..., Said]) -> None:
    said = discreet(clinic)
    text = " ".join(said.out.split())
    assert said.status == 0
    assert "limit: ε = 2, δ = 1e-06 spent: ε = 0.5" in text
    limit, _, spent = text.partition("SO FAR")
    assert "patient_id (user-level)" in limit
    assert "What is not promised" in limit
    assert "factor of 1.65" in spent  # e^0.5
    assert "62.3%" in spent  # an even chance, after e^0.5
    assert "may reveal everything" not in spent


def test_it_changes_nothing(clinic: Path, discreet: Callable[..., Said], tmp_path: Path) -> None:
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.suffix in (".ledger", ".checkpoint")}
    discreet(clinic, "--format", "json", "--people", 3, "--analyst", "alice")
    discreet(clinic)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name in before} == before


def test_json_for_a_household_and_a_base_rate(clinic: Path, discreet: Callable[..., Said]) -> None:
    facts = json.loads(discreet(clinic, "--format", "json", "--people", 3, "--base-rate", 0.02).out)
    assert facts["limit"]["people"] == 3
    [row] = facts["spent"]["base_rates"]
    exact = dp.risk(dp.Pure(epsilon=1.5), base_rates=[0.02])
    assert row["base_rate"] == 0.02
    assert (row["lowest"], row["highest"]) == pytest.approx(exact.posterior(0.02))
    assert facts["spent_holds_for_adaptive_questions"] is True
    assert (facts["analyst"], facts["periods"]) == (None, 1)


def test_an_analyst_alone(clinic: Path, discreet: Callable[..., Said]) -> None:
    facts = json.loads(discreet(clinic, "--format", "json", "--analyst", "alice").out)
    assert facts["spent"]["guarantee"] == "ε = 0.1"
    assert facts["limit"]["guarantee"] == "ε = 1, δ = 1e-07"
    assert "alice sees it alone" in discreet(clinic, "--analyst", "alice").out
    nobody = discreet(clinic, "--analyst", "bob")
    assert (nobody.status, "[ledger-no-account]" in nobody.err) == (2, True)


def test_a_value_costs_more_than_presence(clinic: Path, discreet: Callable[..., Said]) -> None:
    value, presence = (
        json.loads(discreet(clinic, "--format", "json", "--about", about).out)["spent"]
        for about in ("value", "presence")
    )
    assert value["largest_loss"] == pytest.approx(2 * presence["largest_loss"])


def test_renewed_periods_add_up_and_adaptive_totals_are_marked(tmp_path: Path, discreet: Callable[..., Said]) -> None:
    path = tmp_path / "years.ledger"
    ledger = Ledger.open(path, protects=dp.row(), limit=dp.ZeroConcentrated(rho=0.5))
    assert "Nothing was spent" in discreet(path).out
    ledger.charge(dp.ZeroConcentrated(rho=0.25), asked="a", mechanism="b")
    ledger.renew(why="a new year")
    ledger.charge(dp.ZeroConcentrated(rho=0.125), asked="a", mechanism="b")
    text = " ".join(discreet(path).out.split())
    assert "limit over 2 periods, for people in the data of all of them: ρ = 1 " in text
    assert "spent over 2 periods, for people in the data of all of them: ρ = 0.375 " in text
    assert "if the questions did not depend on earlier answers" in text
    assert "event-level" in text


@pytest.mark.parametrize("name", ["attack.svg", "attack.png"])
def test_the_picture_has_both_curves(clinic: Path, discreet: Callable[..., Said], tmp_path: Path, name: str) -> None:
    assert discreet(clinic, "--plot", tmp_path / name, "--style", "dark").status == 0
    drawn = (tmp_path / name).read_bytes()
    if name.endswith("png"):
        assert drawn[:4] == b"\x89PNG"
    else:
        assert len(re.findall(rb'<path d="[^"]+" fill="none" class="risk-curve risk-curve-\d"', drawn)) == 2
        assert "so far" in "".join(ET.fromstring(drawn).itertext())


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--base-rate", "1.5"], "out-of-range"),
        (["--plot", "/no/such/folder/attack.svg"], "picture-not-written"),
        (["--plot", "attack.txt"], "picture-not-written"),
        (["--people", "9000000"], "out-of-range"),
    ],
)
def test_bad_options_are_refused(clinic: Path, discreet: Callable[..., Said], arguments: list[str], code: str) -> None:
    said = discreet(clinic, *arguments)
    assert (said.status, f"[{code}]" in said.err) == (2, True)


def test_a_ledger_that_does_not_exist(tmp_path: Path, discreet: Callable[..., Said]) -> None:
    said = discreet(tmp_path / "none.ledger")
    assert said.status == 2
    assert not (tmp_path / "none.ledger").exists()
    (tmp_path / "clinic.toml").write_text('[ledger]\npath = "clinic.ledger"\n')
    assert discreet(tmp_path / "clinic.toml").status == 2


def test_a_file_that_cannot_be_written(clinic: Path, discreet: Callable[..., Said], tmp_path: Path) -> None:
    (tmp_path / "folder.svg").mkdir()
    said = discreet(clinic, "--plot", tmp_path / "folder.svg")
    assert (said.status, "[file-not-writable]" in said.err) == (2, True)
