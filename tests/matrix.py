"""The matrix of seeded bugs: runs exactly the tests that kill them, and tells which bug was killed by which test.

    python tests/matrix.py            # what `make mutants` does
    python tests/matrix.py --write    # and writes the pages of docs/reference

A test that kills passes only when the bug that it plants is caught. A bug survives when such a test fails; a test that
is skipped, or does not run, shows nothing, and is told as such.
"""

from __future__ import annotations

import argparse
import os
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import pytest

Verdict = Literal["killed", "SURVIVED", "not run"]
ROOT = Path(__file__).resolve().parent.parent
THREATS = ROOT / "tests" / "threats.toml"
PAGES = ROOT / "docs" / "reference"
GENERATED = "*Generated from `tests/threats.toml` by `python tests/matrix.py --write`: do not edit.*"


def threats() -> dict[str, list[dict[str, Any]]]:
    """The seeded bugs under `mutant` and the cases under `case`."""
    return tomllib.loads(THREATS.read_text("utf-8"))


class Outcomes:
    """A plugin of pytest that remembers how every test ended."""

    def __init__(self) -> None:
        self.of: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        told = report.when == "call" or report.outcome != "passed"
        if told and self.of.get(report.nodeid, "passed") == "passed":
            self.of[report.nodeid] = report.outcome


def run(nodes: Iterable[str], workers: str) -> dict[str, str]:
    """How each test ended. Spark uses all cores by itself: its tests run in one process, after the others."""
    outcomes, chosen = Outcomes(), ["-q", "--no-header", "--tb=short", *dict.fromkeys(nodes)]
    for kind in (["-m", "not spark", "-n", workers], ["-m", "spark"]):
        pytest.main([*kind, *chosen], plugins=[outcomes])
    return outcomes.of


def verdict(nodes: Iterable[str], outcomes: Mapping[str, str]) -> Verdict:
    """Of one bug: killed when all tests that are to kill it passed, with all of their parameters."""
    ended: set[str] = set()
    for node in nodes:
        ended |= {end for name, end in outcomes.items() if name == node or name.startswith(f"{node}[")} or {"not run"}
    if "failed" in ended:
        return "SURVIVED"
    return "killed" if ended == {"passed"} else "not run"


def summary(verdicts: Iterable[Verdict]) -> str:
    """One line."""
    every = list(verdicts)
    line = f"{len(every)} seeded bugs, {every.count('killed')} killed, {every.count('SURVIVED')} survived"
    return line + (f", {every.count('not run')} not run" if "not run" in every else "")


def shown(mutants: list[dict[str, Any]], verdicts: list[Verdict]) -> str:
    """The matrix for a terminal: the bug, the verdict, and below it each test."""
    lines = []
    for mutant, found in zip(mutants, verdicts, strict=True):
        lines += [f"{found:9} {mutant['name']}", *(f"{'':12}{node}" for node in mutant["killed_by"])]
    return "\n".join(lines)


def mutants_page(mutants: list[dict[str, Any]], verdicts: list[Verdict]) -> str:
    """The matrix as a page."""
    rows: dict[bool, list[str]] = {True: [], False: []}
    for mutant, found in zip(mutants, verdicts, strict=True):
        rows[mutant.get("listed", False)].append(_row(mutant["name"], mutant["killed_by"], found))
    head = ["| seeded bug | killed by | |", "|---|---|---|"]
    return "\n".join(
        [
            "# Seeded bugs",
            GENERATED,
            "",
            "Each bug below is planted in the code, and the very check that the sound code passes must catch it.",
            "`make mutants` plants them all and prints this table.",
            "",
            f"**{summary(verdicts)}.**",
            "",
            "## The list of the threat model",
            "",
            *head,
            *rows[True],
            "",
            "## Further ones",
            "",
            *head,
            *rows[False],
            "",
        ]
    )


def threats_page(cases: list[dict[str, Any]]) -> str:
    """The cases as a page."""
    held = sum("held_by" in case for case in cases)
    lines = [
        "# Threats and their tests",
        GENERATED,
        "",
        "What can go wrong, case by case, and the tests that hold what must happen instead. The bugs that are planted",
        "on purpose are on [their own page](mutants.md).",
        "",
        f"{len(cases)} cases, {held} held by tests; of the others it is said where they are.",
    ]
    for part in dict.fromkeys(case["part"] for case in cases):
        lines += ["", f"## {part}", "", "| what must hold | held by |", "|---|---|"]
        lines += [_row(c["claim"], c.get("held_by", []), c.get("not_here")) for c in cases if c["part"] == part]
    return "\n".join([*lines, ""])


def _row(name: str, nodes: list[str], last: str | None) -> str:
    tests = "<br>".join(f"`{node}`" for node in nodes)
    cells = [name, tests, last] if tests and last else [name, tests or f"*{last}*"]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def main() -> int:
    parser = argparse.ArgumentParser(description="Run every test that kills a seeded bug, and tell what was killed.")
    parser.add_argument("-n", default="auto", metavar="WORKERS", help="processes of the tests; default: one a core")
    parser.add_argument("--write", action="store_true", help="write the pages of docs/reference")
    given = parser.parse_args()
    os.chdir(ROOT)
    known = threats()
    mutants = known["mutant"]
    outcomes = run((node for mutant in mutants for node in mutant["killed_by"]), given.n)
    verdicts = [verdict(mutant["killed_by"], outcomes) for mutant in mutants]
    print(f"\n{shown(mutants, verdicts)}\n\n{summary(verdicts)}")
    if given.write:
        PAGES.mkdir(exist_ok=True)
        (PAGES / "mutants.md").write_text(mutants_page(mutants, verdicts), "utf-8")
        (PAGES / "threats.md").write_text(threats_page(known["case"]), "utf-8")
    return 0 if set(verdicts) == {"killed"} else 1


if __name__ == "__main__":
    sys.exit(main())
