"""The first run with files that have no line of names: their owner names the columns on the first page."""

from __future__ import annotations

import html
import tomllib
from pathlib import Path
from typing import Any

import pytest

import discreet as dp
from discreet.datasets.sources import read_source

from ..browser import Browser
from ..keyboard.keyboard import Keyboard
from .first_runs import running_first_run
from .test_setup import LIMITS, first_run

CANARY = "7654321"
NAMES = {"names.0": "mrn, visited, ward, cost", "naming": "0"}


def write_stays(folder: Path) -> list[str]:
    """Two files without names, and one with names."""
    rows = "".join(f"M{CANARY}{n % 60};{n % 12 + 1:02}/{n % 9 + 1:02}/2024;W{n % 3};{n % 9}.5\n" for n in range(300))
    for name in ("stays", "others"):
        (folder / f"{name}.txt").write_text(rows, "utf-8")
    (folder / "patients.csv").write_text("mrn,age\n" + "".join(f"M{CANARY}{n},{n}\n" for n in range(60)), "utf-8")
    return [str(folder / name) for name in ("stays.txt", "others.txt", "patients.csv")]


@pytest.mark.slow
def test_columns_are_named_and_the_person_is_found(tmp_path: Path) -> None:
    source = read_source(write_stays(tmp_path), tmp_path / "clinic.toml")
    with first_run(tmp_path, source) as running:
        owner = running.person()
        shown = owner.get("/setup").text
        assert 'value="column1, column2, column3, column4"' in shown
        assert "Names of the columns of patients" not in shown
        uses = {"use.0": "left out", "use.1": "through:stays.column1", "use.2": "people:mrn"}
        reply = owner.post("/setup", **uses, **NAMES, **{"names.1": "column1, column2, column3, column4"})
        assert reply.headers["location"] == "/setup?page=1&named=yes"
        shown = owner.get("/setup?page=1&named=yes").text
        assert 'role="status"' in shown
        assert '<option value="people:mrn" selected>' in shown.partition('id="use.1"')[0]
        assert 'value="mrn, visited, ward, cost"' in shown
        chosen = {"use.0": "people:mrn", "use.1": "left out", "use.2": "people:mrn"}
        named = {"names.0": "mrn, visited, ward, cost", "names.1": "column1, column2, column3, column4"}
        assert owner.post("/setup", **chosen, **named).headers["location"] == "/setup/columns/1"
        assert "days and months of visited cannot be told apart" in owner.get("/setup/columns/1").text
        owner.post("/setup/columns/1", **{"low.3": "0", "high.3": "9", "type.1": "text"})
        # another name for a column keeps what was decided about it, also where "Next" is pressed
        again = {**chosen, **named, "names.0": "mrn, visited, ward, price"}
        assert owner.post("/setup", **again).headers["location"] == "/setup?page=1&named=yes"
        owner.post("/setup/limits", **LIMITS)
        assert CANARY not in "".join(owner.get(f"/setup{page}").text for page in ("", "/columns/1", "/policy"))
        assert owner.post("/setup/policy").status_code == 303
    text = (tmp_path / "clinic.toml").read_text("utf-8")
    words = tomllib.loads(text)["tables"]
    assert set(words) == {"stays", "patients"}
    assert words["stays"]["format"]["names"] == ["mrn", "visited", "ward", "price"]
    assert words["stays"]["columns"] == {"price": {"type": "number", "between": [0, 9]}}
    assert "Write names" not in text
    assert CANARY not in text
    assert list(dp.connect(tmp_path / "clinic.toml").schema.tables["stays"].columns) == [
        *("mrn", "visited", "ward", "price")
    ]


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"names.0": "mrn, cost"}, "column-names"),
        ({"names.0": "mrn, visited, ward, Ward"}, "column-names"),
        ({"names.0": f"M{CANARY}1; 01/02/2024, 3, 4, 5"}, "column-names"),
        ({"names.0": "a, b, c, d", "names.1": "mrn,,,"}, "column-names"),
    ],
)
def test_wrong_names_change_nothing_and_can_be_corrected(given: dict[str, str], code: str, tmp_path: Path) -> None:
    source = read_source(write_stays(tmp_path), tmp_path / "clinic.toml")
    with first_run(tmp_path, source) as running:
        owner = running.person()
        reply = owner.post("/setup", **given)
        assert code in reply.text
        assert html.escape(given["names.0"]) in reply.text  # what was typed is still there
        assert running.first_run.source == source


@pytest.mark.slow
def test_a_file_with_names_cannot_be_named(tmp_path: Path) -> None:
    source = read_source(write_stays(tmp_path), tmp_path / "clinic.toml")
    with first_run(tmp_path, source) as running:
        owner = running.person()
        assert owner.post("/setup", **{"names.2": "a, b", "naming": "2"}).headers["location"].endswith("named=no")
        assert running.first_run.source == source
        with pytest.raises(dp.InvalidArgument):
            running.first_run.choose({"step": "names", "given": {"patients": "a, b"}})


@pytest.mark.slow
def test_hostile_names_are_text(tmp_path: Path) -> None:
    source = read_source(write_stays(tmp_path), tmp_path / "clinic.toml")
    hostile = '"]<script>alert(1)</script>[unit]'
    with first_run(tmp_path, source) as running:
        owner = running.person()
        owner.post("/setup", **{"use.2": "people:mrn", "names.0": f"mrn, {hostile}, ward, cost"})
        owner.post("/setup", **{"use.0": "people:mrn", "use.1": "left out", "use.2": "people:mrn"})
        pages = "".join(owner.get(f"/setup{page}").text for page in ("", "/columns/1", "/policy"))
        assert "<script>alert" not in pages
        assert owner.post("/setup/policy").status_code == 303
    words = tomllib.loads((tmp_path / "clinic.toml").read_text("utf-8"))
    assert words["tables"]["stays"]["format"]["names"][1] == hostile
    assert words["unit"] == {"person": "mrn"}


@pytest.mark.slow
@pytest.mark.parametrize(("size", "scripts"), [("desktop", True), ("phone", False)])
def test_columns_are_named_with_a_keyboard_alone(
    tmp_path: Path, running_chromium: Any, size: str, scripts: bool
) -> None:
    write_stays(tmp_path)
    with running_first_run(tmp_path, "--new", "stays.txt") as run:
        browser = Browser(running_chromium, run.url)
        keys = Keyboard(browser.open(size=size, scheme="light", scripts=scripts), scripts=scripts)
        keys.log_in(run.link)
        keys.check_walk()
        keys.write("Names of the columns of stays", "mrn, visited, ward")
        keys.press("Name the columns of stays")
        keys.page.get_by_role("alert").wait_for()
        keys.write("Names of the columns of stays", "mrn, visited, ward, cost")
        keys.page.keyboard.press("Enter")
        keys.page.get_by_text("The columns are named.").wait_for()
        keys.check_walk()
        assert keys.page.input_value("select") == "people:mrn"
        keys.press("Next: columns")
        keys.page.get_by_label("Smallest cost").wait_for()
        browser.close()


@pytest.mark.slow
def test_a_first_run_takes_names_from_the_command(tmp_path: Path, running_chromium: Any) -> None:
    write_stays(tmp_path)
    with running_first_run(tmp_path, "--new", "stays.txt", "--no-header", "--columns", NAMES["names.0"]) as run:
        browser = Browser(running_chromium, run.url)
        keys = Keyboard(browser.open(size="desktop", scheme="light", scripts=True))
        keys.log_in(run.link)
        assert keys.page.input_value("select") == "people:mrn"
        browser.close()
