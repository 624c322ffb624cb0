"""What a newcomer runs first: the examples, the README's code and the demo."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from discreet.demo.data import CITIES, DIAGNOSES, PEOPLE, make_people
from discreet.demo.run import main

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_examples_run_and_print(example: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", str(example)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def code_of(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda p: p.name)
def test_the_code_of_every_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in code_of(page):
        exec(compile(block, str(page), "exec"), names)
    if page.name == "README.md":
        assert names["answer"].guarantee.epsilon_at(delta=0) == 0.5


def test_the_demo_shows_answers_a_refusal_and_the_ledger() -> None:
    console = Console(record=True, width=120, file=io.StringIO())
    main(console)
    shown = console.export_text()
    assert "How many people of 40 or more have diabetes?" in shown
    assert "passes the limit" in shown
    assert "Still fits: ε = 1.2" in shown
    assert shown.count("Laplace") == 5
    assert "65 or older" in shown


def test_the_demo_data_is_one_row_a_person_inside_the_declared_lists() -> None:
    people = make_people()
    assert people.execute("SELECT count(*), count(DISTINCT person_id) FROM people").fetchone() == (PEOPLE, PEOPLE)
    cities = {city for (city,) in people.execute("SELECT DISTINCT city FROM people").fetchall()}
    diagnoses = {name for (name,) in people.execute("SELECT DISTINCT diagnosis FROM people").fetchall()}
    assert cities == set(CITIES)
    assert diagnoses == set(DIAGNOSES)
    assert people.execute("SELECT min(age) >= 0 AND max(age) <= 120 FROM people").fetchone() == (True,)
