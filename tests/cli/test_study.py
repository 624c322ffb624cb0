"""`discreet study plan`: a table, rows needed, JSON and a chart, from public numbers alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from discreet.adaptive.planning import plan, rows_needed
from discreet.cli import main


class Said(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Said]:
    """Run `discreet study plan` with the methods that are quick: its status, and what it printed."""

    def quick(*given: Any, **options: Any) -> Any:
        return plan(*given, **options, methods=["gaussian", "splitting", "Bonferroni"])

    def study(*arguments: object) -> Said:
        monkeypatch.setenv("COLUMNS", "120")
        monkeypatch.setattr("discreet.adaptive.planning.plan", quick)
        with pytest.raises(SystemExit) as exit_info:
            main(["study", "plan", *map(str, arguments)])
        code = exit_info.value.code
        said = Said(code if isinstance(code, int) else 0, *capsys.readouterr())
        assert "Traceback" not in said.err
        return said

    return study


def test_a_table_of_widths(run) -> None:
    said = run("--rows", 100000, "--questions", 1000)
    assert (said.status, said.err) == (0, "")
    assert said.out == f"{plan(10**5, 1000, methods=['gaussian', 'splitting', 'Bonferroni'])}\n"


def test_numbers_may_be_listed_and_repeated(run) -> None:
    listed = run("--rows", "1e4,100_000", "--questions", "10, 1000", "--json")
    repeated = run("--rows", 10000, "--rows", 100000, "--questions", 1000, "--questions", 10, "--json")
    assert listed == repeated
    widths = json.loads(listed.out)["widths"]
    assert {(row["rows"], row["questions"]) for row in widths} == {(n, k) for n in (10**4, 10**5) for k in (10, 1000)}


def test_json_has_all_that_was_asked(run) -> None:
    said = run("--rows", 10000, "--questions", 10, "--confidence", 0.9, "--overfits", 3, "--accuracy", 0.1, "--json")
    found = json.loads(said.out)
    assert (found["confidence"], found["overfits"]) == (0.9, 3)
    assert found["sizes"] == [
        {"questions": 10, "accuracy": 0.1, "method": "gaussian", "rows": rows_needed(0.1, 10, 0.9)}
    ]
    assert set(found["widths"][0]) >= {"rows", "questions", "method", "private", "width", "useful", "narrowest"}


def test_rows_needed_are_below_the_table(run) -> None:
    said = run("--rows", 10000, "--questions", 10, "--accuracy", "0.1,0.05")
    assert "± 0.1" in said.out
    assert f"{rows_needed(0.05, 10):,}" in said.out.splitlines()[-1]


def test_a_chart(run, tmp_path: Path) -> None:
    said = run("--rows", 10000, "--questions", "10,100", "--chart", tmp_path / "widths.png")
    assert said.status == 0
    assert (tmp_path / "widths.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--rows", "ten", "--questions", 10), "--rows takes whole numbers. Write --rows 10000,100000."),
        (("--rows", "1.5", "--questions", 10), "--rows takes whole numbers"),
        (("--rows", "10,", "--questions", 10), "--rows takes whole numbers"),
        (("--rows", "inf", "--questions", 10), "--rows takes whole numbers"),
        (("--rows", 10, "--questions", 0), "k must be a whole number of at least 1"),
        (("--rows", 10, "--questions", 10, "--accuracy", "small"), "--accuracy takes numbers"),
        (("--rows", 10, "--questions", 10, "--accuracy", 0.7), "accuracy must be below 0.5"),
        (("--rows", 10, "--questions", 10, "--confidence", 2), "confidence"),
        (("--rows", 10, "--questions", 10, "--chart", "widths.txt"), "cannot be a picture"),
        (("--rows", 10, "--questions", 10, "--chart", "/no/such/folder/widths.png"), "cannot be a picture"),
        (("--rows", 10), "--questions"),
    ],
)
def test_bad_options_are_status_2(run, arguments: tuple[object, ...], words: str) -> None:
    said = run(*arguments)
    assert said.status == 2
    assert words in said.err
    assert said.out == ""


def test_help_reads_like_a_manual(run) -> None:
    said = run("--help")
    assert said.status == 0
    assert "Example: discreet study plan --rows 100000" in said.out
    assert all(
        option in said.out for option in ("--rows", "--questions", "--overfits", "--accuracy", "--chart", "--json")
    )
