"""`discreet init --columns`: names for a file that has no line of names."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import discreet as dp
from discreet import testing
from discreet.cli import init as init_command
from discreet.datasets.sources import read_source
from discreet.errors import InvalidArgument

from ..refusing import refuses

CANARY = "7654321"
NAMES = "mrn, visited, ward , cost"


def stays() -> str:
    """Rows of 60 people: an id, a date that is no other day if swapped, a ward, and a cost."""
    cells = (f"M{CANARY}{n % 60};{n % 12 + 1:02}/{n % 9 + 1:02}/2024;W{n % 3};1.{n % 9}00,50" for n in range(300))
    return "".join(f"{line}\n" for line in cells)


def write(folder: Path, **files: str) -> list[str]:
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text, "utf-8")
    return [str(folder / f"{name}.txt") for name in files]


def test_one_command_names_the_columns_of_a_file_without_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The person is known by the name, nothing about names is left to decide, and the first line is a row."""
    policy = tmp_path / "policy.toml"
    init_command.main(write(tmp_path, stays=stays()), policy, columns=[NAMES])
    said = capsys.readouterr().out
    assert "column1" not in said
    assert "Decide about stays: days and months of visited cannot be told apart." in said
    text = policy.read_text("utf-8")
    assert "column" not in text.replace("[tables.stays.columns]", "").replace("columns: no value is in it", "")
    assert CANARY not in text
    words = tomllib.loads(text)
    assert words["unit"] == {"person": "mrn"}
    assert words["tables"]["stays"]["format"]["names"] == ["mrn", "visited", "ward", "cost"]
    assert words["tables"]["stays"]["columns"] == {
        "visited": {"type": "date", "format": "dd/mm/yyyy"},
        "cost": {"type": "number"},
    }
    asked = dp.connect(policy)
    question = "SELECT COUNT(*) AS n, COUNT(cost) AS c FROM stays WHERE ward = 'W0' AND visited < DATE '2025-01-01'"
    with testing.no_noise():
        found = asked.sql(question, epsilon=1, bounds={"rows_per_person": 5}).table
    assert [found[name][0].as_py() for name in ("n", "c")] == [100, 100]


def test_names_are_those_of_the_one_file_without_names(tmp_path: Path) -> None:
    data = write(tmp_path, patients="mrn;age\n" + "M1;30\n" * 20, stays=stays())
    made = read_source(data, tmp_path / "policy.toml", columns=[NAMES])
    assert list(made.tables["patients"]) == ["mrn", "age"]
    assert list(made.tables["stays"]) == ["mrn", "visited", "ward", "cost"]


def test_an_owner_who_names_columns_says_that_the_first_line_is_a_row(tmp_path: Path) -> None:
    """Without the names, nobody can tell."""
    data = write(tmp_path, wards="north,anna\nsouth,ben\n" * 20)
    with refuses(InvalidArgument, "command-header"):
        read_source(data, tmp_path / "policy.toml")
    made = read_source(data, tmp_path / "policy.toml", columns=["ward, patient"])
    assert made.tables == {"wards": {"ward": "text", "patient": "text"}}
    assert made.format_of("wards")["header"] is False


@pytest.mark.parametrize(
    "names",
    [
        "mrn, visited, ward",
        "mrn, visited, ward, cost, more",
        "mrn",
        "mrn, visited, ward, MRN",
        "mrn, visited,, cost",
        "",
        f"{CANARY}, 01/02/2024, 3, 4",
        "mrn, visited, ward, co\nst",
        "mrn, visited, ward, c\udce4",
    ],
)
def test_wrong_names_are_refused_and_neither_they_nor_cells_are_quoted(names: str, tmp_path: Path) -> None:
    """A row that is pasted in their place must not get into a policy or a log."""
    with refuses(InvalidArgument, "column-names") as refused:
        init_command.main(write(tmp_path, stays=stays()), tmp_path / "policy.toml", columns=[names])
    assert CANARY not in str(refused.value)
    assert [one.name for one in tmp_path.iterdir()] == ["stays.txt"]


def test_the_number_of_columns_is_said(tmp_path: Path) -> None:
    with refuses(InvalidArgument, "column-names") as refused:
        read_source(write(tmp_path, stays=stays()), tmp_path / "policy.toml", columns=["mrn, cost"])
    assert "stays has 4 columns, and 2 names are given" in str(refused.value)


@pytest.mark.some_quick(4)
@pytest.mark.parametrize(
    ("data", "more"),
    [
        (["postgresql://localhost/clinic"], {}),
        (["t.parquet"], {}),
        (["t.json"], {}),
        (["named.txt"], {}),
        (["stays.txt", "others.txt"], {}),
        (["stays.txt"], {"header": True}),
        (["stays.txt"], {"names_only": True}),
        (["named.txt"], {"encoding": "windows-1252"}),
    ],
)
def test_columns_that_have_names_are_not_named(data: list[str], more: Any, tmp_path: Path) -> None:
    pyarrow.parquet.write_table(
        pa.table({"mrn": [1], "visited": [2], "ward": [3], "cost": [4]}), tmp_path / "t.parquet"
    )
    (tmp_path / "t.json").write_text('{"mrn": 1, "visited": 2, "ward": 3, "cost": 4}\n')
    write(tmp_path, stays=stays(), others=stays(), named="id;day;place;price\n" + stays())
    before = sorted(tmp_path.iterdir())
    words = [one if "://" in one else str(tmp_path / one) for one in data]
    with refuses(InvalidArgument, "command-columns") as refused:
        read_source(words, tmp_path / "policy.toml", columns=[NAMES], **more)
    assert CANARY not in str(refused.value)
    assert sorted(tmp_path.iterdir()) == before


def test_an_owner_may_insist_that_the_first_line_is_a_row(tmp_path: Path) -> None:
    data = write(tmp_path, named="id;day;place;price\n" + stays())
    made = read_source(data, tmp_path / "policy.toml", header=False, columns=[NAMES])
    assert list(made.tables["named"]) == ["mrn", "visited", "ward", "cost"]


@pytest.mark.slow
def test_one_command_names_the_columns_of_several_files(tmp_path: Path) -> None:
    """By table or by file, and one of them without: that is the one that is left."""
    data = write(
        tmp_path, stays=stays(), labs="M1;7;0.5\n" * 20, wards="W1;north\n" * 20, patients="mrn;age\n" + "M1;30\n" * 20
    )
    given = ["code, name", "labs.txt: mrn, test, value", "stays: mrn, visited, ward, cost"]
    made = read_source(data, tmp_path / "policy.toml", columns=given)
    assert {table: list(types) for table, types in made.tables.items()} == {
        "stays": ["mrn", "visited", "ward", "cost"],
        "labs": ["mrn", "test", "value"],
        "wards": ["code", "name"],
        "patients": ["mrn", "age"],
    }
    assert not any(made.is_nameless(table) for table in made.tables)


def test_names_with_a_table_leave_the_first_lines_of_others_alone(tmp_path: Path) -> None:
    """Only where columns are named, a first line that may be names is a row."""
    data = write(tmp_path, wards="north,anna\nsouth,ben\n" * 20, teams="red,carl\nblue,dora\n" * 20)
    with refuses(InvalidArgument, "command-header"):
        read_source(data, tmp_path / "policy.toml", columns=["wards: ward, nurse"])
    made = read_source(data, tmp_path / "policy.toml", columns=["wards: ward, nurse", "teams: team, head"])
    assert list(made.tables["teams"]) == ["team", "head"]


def test_a_name_with_a_colon_follows_its_table(tmp_path: Path) -> None:
    made = read_source(
        write(tmp_path, stays=stays()), tmp_path / "p.toml", columns=["stays: id:mrn, visited, ward, a:b"]
    )
    assert list(made.tables["stays"]) == ["id:mrn", "visited", "ward", "a:b"]


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ([f"M{CANARY}: mrn, visited, ward, cost"], "column-names"),
        (["stays: mrn, visited, ward, cost", "stays.txt: a, b, c, d"], "column-names"),
        ([NAMES, NAMES], "column-names"),
        (["stays: mrn, visited, ward"], "column-names"),
        (["stays:"], "column-names"),
        (["patients: mrn, age"], "command-columns"),
        ([NAMES, "stays: mrn, visited, ward, cost"], "command-columns"),
        (["numbers: mrn"], "command-columns"),
    ],
)
def test_names_of_several_files_are_refused_if_they_are_wrong(given: list[str], code: str, tmp_path: Path) -> None:
    data = write(tmp_path, stays=stays(), patients="mrn;age\n" + "M1;30\n" * 20)
    pyarrow.parquet.write_table(pa.table({"mrn": [1]}), tmp_path / "numbers.parquet")
    with refuses(InvalidArgument, code) as refused:
        read_source([*data, str(tmp_path / "numbers.parquet")], tmp_path / "policy.toml", columns=given)
    assert CANARY not in str(refused.value)
    assert not (tmp_path / "policy.toml").exists()
