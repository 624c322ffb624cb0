"""A policy that is not named: found by `DISCREET_POLICY`, or as discreet.toml in this folder or one above it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import discreet as dp
from discreet.cli import main
from discreet.datasets.discovery import FILE, VARIABLE, find_policy

from ..refusing import refuses

POLICY = """
[ledger]
path = "NAME.ledger"
epsilon = 10.0
[unit]
person = "pid"
[tables.NAME]
source = "visits.parquet"
rows_per_person = 1
[tables.NAME.columns.cost]
between = [0, 10]
[tables.NAME.columns.city]
choices = ["Acre", "Bled"]
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two others below it, and policies that are told apart by their table. The inner folder is where
    one works.
    """
    monkeypatch.delenv(VARIABLE, raising=False)
    inner = tmp_path / "middle" / "inner"
    inner.mkdir(parents=True)
    visits = pa.table({"pid": range(4), "city": ["Acre", "Bled"] * 2, "cost": [1.0, 2.0, 3.0, 4.0]})
    for folder in (tmp_path, tmp_path / "middle", inner):
        pyarrow.parquet.write_table(visits, folder / "visits.parquet")
    monkeypatch.chdir(inner)
    return tmp_path


def written(path: Path, name: str) -> Path:
    path.write_text(POLICY.replace("NAME", name), "utf-8")
    return path


def opened() -> list[str]:
    database = dp.connect()
    database.close()
    return list(database.tables)


def test_the_nearest_file_is_found_and_the_variable_comes_first(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outer = written(place / FILE, "farther")
    assert find_policy() == outer
    assert opened() == ["farther"]
    nearer = written(place / "middle" / FILE, "nearer")
    assert find_policy() == nearer
    here = written(place / "middle" / "inner" / FILE, "here")
    assert find_policy() == here
    monkeypatch.setenv(VARIABLE, str(written(place / "named.toml", "named")))
    assert opened() == ["named"]
    monkeypatch.setenv(VARIABLE, "")
    assert opened() == ["here"]


def test_a_policy_that_is_named_wrongly_is_not_replaced(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever names a policy gets that one, or an error."""
    written(place / FILE, "farther")
    monkeypatch.setenv(VARIABLE, str(place / "missing.toml"))
    with refuses(dp.InvalidArgument, "policy-file"):
        dp.connect()
    monkeypatch.delenv(VARIABLE)
    with refuses(dp.InvalidArgument, "policy-file"):
        dp.connect(place / "missing.toml")


def test_the_error_says_what_was_looked_for(place: Path) -> None:
    with refuses(dp.InvalidArgument, "policy-not-found") as refused:
        dp.connect()
    for looked_for in (VARIABLE, FILE, str(place / "middle" / "inner")):
        assert looked_for in str(refused.value)


def test_a_folder_is_not_a_policy(place: Path) -> None:
    (place / "middle" / "inner" / FILE).mkdir()
    file = written(place / FILE, "farther")
    assert find_policy() == file


def test_a_removed_folder_is_an_error(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "gone").mkdir()
    monkeypatch.chdir(place / "gone")
    (place / "gone").rmdir()
    with refuses(dp.InvalidArgument, "policy-not-found"):
        find_policy()


def test_a_file_of_another_user_is_used_only_if_it_is_named(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(place / FILE, "farther")
    monkeypatch.setattr(os, "getuid", lambda: file.stat().st_uid + 1)
    if file.stat().st_uid == 0:  # what the administrator writes is used by all
        assert find_policy() == file
        os.chown(file, 4321, -1)
    with refuses(dp.InvalidArgument, "policy-of-another-user"):
        find_policy()
    monkeypatch.setenv(VARIABLE, str(file))
    assert opened() == ["farther"]


# --- on the command line ------------------------------------------------------------------------------------


def said(capsys: Any, *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        main(list(arguments))
    out, err = capsys.readouterr()
    return int(left.value.code or 0), out, err


def test_commands_find_the_policy(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(place / FILE, "farther")
    status, out, _ = said(capsys, "tables")
    assert (status, out.splitlines()[0].split(":")[0]) == (0, "farther")
    status, out, _ = said(capsys, "query", "SELECT COUNT(*) AS total FROM farther", "--epsilon", "1")
    assert (status, "total" in out) == (0, True)
    status, out, _ = said(capsys, "explain", "SELECT COUNT(*) AS total FROM farther", "--epsilon", "1")
    assert (status, "ε = 1" in out) == (0, True)
    status, out, _ = said(capsys, "ledger")
    assert (status, "SELECT COUNT(*)" in out) == (0, True)


def test_a_policy_without_a_question_is_no_question(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(place / FILE, "farther")
    for arguments in (("query", "clinic.toml", "--epsilon", "1"), ("explain", "--epsilon", "1")):
        status, _, err = said(capsys, *arguments)
        assert status == 2
        assert "[command-question]" in err


@pytest.mark.parametrize("command", [("tables",), ("ledger",), ("query", "SELECT 1", "--epsilon", "1")])
def test_a_command_without_a_policy_says_what_was_looked_for(
    command: tuple[str, ...], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = said(capsys, *command)
    assert (status, out) == (2, "")
    assert "[policy-not-found]" in err


def test_tables_are_printed_for_people_and_programs(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(written(place / "clinic.toml", "visits"))
    _, out, _ = said(capsys, "tables", path)
    assert "  cost  number   0 to 10" in out
    assert "  city  text     Acre, Bled" in out
    assert "one person (all rows of one pid)" in out
    assert "ε = 10 of ε = 10 remains" in out
    _, out, _ = said(capsys, "tables", path, "--format", "json")
    [table] = json.loads(out)["tables"]
    assert table["columns"][2] == {
        "name": "cost",
        "type": "number",
        "between": [0, 10],
        "choices": None,
        "other": None,
        "identifies_people": False,
    }
    assert (table["protects"], table["rows_per_person"]) == ("person('pid')", 1)


def test_show_and_describe_need_no_epsilon(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(written(place / "clinic.toml", "visits"))
    status, out, _ = said(capsys, "query", path, "SHOW TABLES")
    assert (status, "ε = 10 of ε = 10 remains" in out) == (0, True)
    status, out, _ = said(capsys, "query", path, "DESCRIBE visits")
    assert (status, "  cost  number   0 to 10" in out) == (0, True)
    status, _, err = said(capsys, "query", path, "DESCRIBE people")
    assert (status, "[sql-unknown-table]" in err) == (2, True)
