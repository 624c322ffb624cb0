"""What a newcomer runs first: the examples, the README's code and the demo."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import pytest
from rich.console import Console

from discreet.demo.data import CITIES, PEOPLE, VISITS, make_clinic
from discreet.demo.run import QUESTIONS, main
from discreet.reproduce.lectures import lecture_6

ROOT = Path(__file__).resolve().parents[2]


ON_SPARK = ("learn_on_spark.py", "one_policy_two_engines.py")
QUICK = ("ledger.py", "odd_records.py", "risk.py", "shuffle.py", "your_own_query.py")
EXAMPLES = [
    pytest.param(
        path,
        id=path.name,
        marks=[pytest.mark.slow] * (path.name not in QUICK) + [pytest.mark.spark] * (path.name in ON_SPARK),
    )
    for path in sorted((ROOT / "examples").rglob("*.py"))
    if path.parent.name != "stories"  # `test_stories.py` runs them
]
QUOTED = ("api-gateway.md",)  # lines of examples/gateway.py, which runs
LONG = (
    "adaptive.md",
    "data-scientist.md",
    "distributions.md",
    "learning.md",
    "local.md",
    "mechanism-author.md",
    "models.md",
    "researcher.md",
)
PAGES = [
    pytest.param(path, id=path.name, marks=[pytest.mark.slow] * (path.name in LONG))
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if path.name not in QUOTED
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_run_and_print(example: Path, tmp_path: Path) -> None:
    """What they print goes to files: a service that one leaves behind would hold a pipe open, and the test with it."""
    command = [sys.executable, "-W", "error", str(example)]
    with tempfile.TemporaryFile("w+") as printed, tempfile.TemporaryFile("w+") as wrong:
        done = subprocess.run(command, cwd=tmp_path, stdout=printed, stderr=wrong, check=False)
        for file in (printed, wrong):
            file.seek(0)
        assert done.returncode == 0, wrong.read()
        assert printed.read().strip()


def code_of(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_every_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(lecture_6, "REPEATED", lecture_6.REPEATED)  # a page shows how to choose others
    names: dict[str, Any] = {}
    for block in code_of(page):
        exec(compile(block, str(page), "exec"), names)
    if page.name == "README.md":
        assert names["answer"].guarantee.epsilon_at(delta=0) == 0.5


def test_the_demo_shows_answers_a_refusal_and_the_ledger() -> None:
    console = Console(record=True, width=120, file=io.StringIO())
    main(console)
    shown = console.export_text()
    for title, question, _ in QUESTIONS:
        assert title in shown
        assert question.split("\n")[0] in shown
    assert shown.count("±") > 30
    assert "Not shown, because too few patients have it: case" in shown
    assert re.search(r"Asked again: the same answer, receipt \S+, for free", shown)
    assert "passes the limit" in shown
    assert re.search(r"Still fits: ε = 1\.[123]", shown)
    assert "All 15 entries verify" in shown


def test_the_demo_data_is_what_its_policy_declares(tmp_path: Path) -> None:
    make_clinic(tmp_path)
    data = duckdb.connect()
    people, visits = (f"read_parquet('{tmp_path / name}.parquet')" for name in ("people", "visits"))
    assert data.execute(f"SELECT count(*), count(DISTINCT patient_id) FROM {people}").fetchone() == (PEOPLE, PEOPLE)
    assert data.execute(f"SELECT count(*) FROM {visits}").fetchone() == (VISITS,)
    assert {city for (city,) in data.execute(f"SELECT DISTINCT city FROM {people}").fetchall()} == set(CITIES)
    assert data.execute(f"SELECT min(age) >= 0 AND max(age) <= 110 FROM {people}").fetchone() == (True,)
    [old] = data.execute(f"SELECT avg((age >= 65)::INT) FROM {people}").fetchone()
    assert 0.15 < old < 0.2  # the first question of the demo has an answer that nobody takes for a mistake
    often = data.execute(f"SELECT max(n) FROM (SELECT count(*) AS n FROM {visits} GROUP BY patient_id)").fetchone()
    assert often[0] > 20  # the bound of 20 visits a patient has something to do
