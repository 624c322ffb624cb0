"""The matrix of seeded bugs: runs exactly the tests that kill them, and tells which bug was killed by which test.

    python tests/matrix.py            # what `make mutants` does
    python tests/matrix.py --write    # and writes the pages of docs/reference

A bug is planted in one of two ways. A test plants it, and passes only if the bug is caught. Or the list says which
piece of which file is replaced by what (`file`, `old`, `new`: Python, JavaScript, a template). It is then replaced in a
copy of the project, where the named tests, which pass on the sound project, must fail. A test that is skipped, or does
not run, shows nothing, and is told as such.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Literal

import pytest

Verdict = Literal["killed", "SURVIVED", "not run"]
PLANTED = {"file", "old", "new"}
"""What a mutant has that is planted in a copy of the project."""
COPIED = ("src", "tests", "fuzz", "bench", "clients", "docs", "examples", "pyproject.toml", "README.md", "CHANGELOG.md")
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


def planted_text(mutant: Mapping[str, Any], text: str) -> str:
    """The text of a file with a bug in it; a piece that is there more than once, or no longer, plants nothing."""
    if text.count(mutant["old"]) != 1:
        raise ValueError(f"{mutant['name']}: the piece is {text.count(mutant['old'])} times in {mutant['file']}")
    return text.replace(mutant["old"], mutant["new"])


@contextmanager
def planted(mutant: Mapping[str, Any], copy: Path) -> Iterator[None]:
    """A bug in a copy of the project, for as long as it is looked for."""
    path = copy / mutant["file"]
    sound = path.read_text("utf-8")
    path.write_text(planted_text(mutant, sound), "utf-8")
    try:
        yield
    finally:
        path.write_text(sound, "utf-8")


def judge(mutant: Mapping[str, Any], copy: Path) -> Verdict:
    """Plant one bug in a copy, and see whether the tests that are to kill it fail there, each of them."""
    environment = os.environ | {"PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    ended: set[int] = set()
    with planted(mutant, copy):
        for node in mutant["killed_by"]:
            command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-n", "0", "-m", "", node]
            ended.add(subprocess.run(command, cwd=copy, env=environment, capture_output=True, check=False).returncode)
    if 0 in ended:
        return "SURVIVED"
    return "killed" if ended == {1} else "not run"  # 1: a test failed; more: nothing was collected, or pytest broke


def judge_all(mutants: Iterable[Mapping[str, Any]], workers: int) -> list[Verdict]:
    """The verdicts on bugs that are planted in copies of the project: one copy for each worker."""
    with tempfile.TemporaryDirectory(prefix="discreet_mutants_") as folder:
        Path(folder).chmod(0o755)  # some tests run the program as other users
        free: SimpleQueue[Path] = SimpleQueue()
        for number in range(workers):
            free.put(_copied(Path(folder) / str(number)))

        def one(mutant: Mapping[str, Any]) -> Verdict:
            copy = free.get()
            try:
                return judge(mutant, copy)
            finally:
                free.put(copy)

        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(one, mutants))


def _copied(copy: Path) -> Path:
    copy.mkdir()
    leave = shutil.ignore_patterns("__pycache__", ".lock", "node_modules")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=leave, symlinks=True)
        else:
            shutil.copy2(ROOT / name, copy / name)
    installed = ROOT / "clients" / "js" / "node_modules"
    if installed.exists():
        (copy / "clients" / "js" / "node_modules").symlink_to(installed)
    return copy


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
        name = (
            f"{mutant['name']} (`{mutant['file'].removeprefix('src/discreet/')}`)"
            if "file" in mutant
            else mutant["name"]
        )
        rows[mutant.get("listed", False)].append(_row(name, mutant["killed_by"], found))
    head = ["| seeded bug | killed by | |", "|---|---|---|"]
    return "\n".join(
        [
            "# Seeded bugs",
            GENERATED,
            "",
            "Each bug below is planted in the code, and the very check that the sound code passes must catch it.",
            "`make mutants` plants them all and prints this table. Where a file is named, a piece of that file is",
            "replaced in a copy of the project, and the ordinary tests named with it must fail there.",
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
    parser.add_argument("--only", default="", metavar="WORD", help="bugs with this word in their name, file or tests")
    given = parser.parse_args()
    os.chdir(ROOT)
    known = threats()
    mutants = [one for one in known["mutant"] if given.only in repr(one)]
    by_tests = [mutant for mutant in mutants if "file" not in mutant]
    outcomes = run((node for mutant in by_tests for node in mutant["killed_by"]), given.n) if by_tests else {}
    in_copies = [mutant for mutant in mutants if "file" in mutant]
    workers = (os.cpu_count() or 1) if given.n == "auto" else max(1, int(given.n))
    judged = iter(judge_all(in_copies, workers) if in_copies else [])
    verdicts = [next(judged) if "file" in mutant else verdict(mutant["killed_by"], outcomes) for mutant in mutants]
    print(f"\n{shown(mutants, verdicts)}\n\n{summary(verdicts)}")
    if given.write and mutants == known["mutant"]:
        PAGES.mkdir(exist_ok=True)
        (PAGES / "mutants.md").write_text(mutants_page(mutants, verdicts), "utf-8")
        (PAGES / "threats.md").write_text(threats_page(known["case"]), "utf-8")
    return 0 if set(verdicts) == {"killed"} else 1


if __name__ == "__main__":
    sys.exit(main())
