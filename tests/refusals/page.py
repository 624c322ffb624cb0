"""`docs/reference/refusals.md`: every refusal of the source, with a test that shows it.

    python -m pytest -p tests.refusals.record --refusals FOLDER tests/…    # records what the tests meet
    python -m tests.refusals.page FOLDER                                   # writes the page
    python -m tests.refusals.page FOLDER --missing                         # only lists what no test met

A refusal that the record does not know keeps the test that the page names, as long as its words are the same.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from .sites import ROOT, Site, sites

PAGE = ROOT / "docs" / "reference" / "refusals.md"
ROOMS = {
    "Asking a table": ("tables", "asking", "distributions", "columns", "training", "statistics"),
    "Asking in SQL": ("policy", "connecting", "database", "sql"),
    "Reading the data": ("engines", "rows"),
    "Spending": ("ledger",),
    "Learning": ("learn",),
    "Densities and curves": ("functions",),
    "Synthetic tables": ("synthetic",),
    "Analysis that cannot fool itself": ("adaptive",),
    "Surveys without trust": ("local",),
    "The shuffle model": ("shuffle",),
    "On the command line": ("cli", "demo", "reproduce", "gateway"),
    "Stating a promise": ("guarantees",),
    "Writing a query": ("queries",),
    "Choosing a mechanism": ("mechanisms", "door"),
    "Auditing and testing": ("audit", "testing"),
    "Numbers, noise and packages": ("rational", "samplers", "laws", "randomness", "sealed", "extras"),
}
"""What a person is doing, and the packages and modules that may refuse it then."""
HEAD = """# What is refused

Everything that `discreet` refuses, in the words it uses, with a test that shows it. A message says what is wrong and
how to mend it, and never holds a private value; ‹what stands here› is filled in. A refused question in SQL is also
shown, with the culprit underlined.

The table is made from the source and from a run of the tests, and a test compares it with the source. Whoever adds a
refusal, or changes its words, adds a test that meets it and writes the page again:
```console
$ .venv/bin/python -m pytest -p tests.refusals.record --refusals build/met tests/learn  # or all tests
$ .venv/bin/python -m tests.refusals.page build/met
```
"""
TABLE = "| message | error | shown by |\n|---|---|---|"
Shown = tuple[str, str, str]


@dataclass(frozen=True)
class Row:
    """One line of the page: a message of a module, in how many places, and the tests that show it."""

    module: str
    kind: str
    message: str
    places: int
    tests: tuple[str, ...]

    @property
    def shown(self) -> Shown:
        return self.module, self.kind, self.message

    @property
    def start(self) -> str:
        """The line without its tests."""
        message = escaped(self.message) + (f" ({self.places} places)" if self.places > 1 else "")
        return f"| {message} | `{self.kind}` in `{self.module}` |"

    def __str__(self) -> str:
        named = [test.removeprefix("tests/").split("::", 1) for test in self.tests]
        return f"{self.start} {'<br>'.join(f'`{file}` `{name}`' for file, name in named)} |"


def escaped(text: str) -> str:
    """Text that Markdown leaves as it is, in a cell of a table."""
    for sign in "\\`*_[]|":
        text = text.replace(sign, f"\\{sign}")
    return text.replace("<", "&lt;").replace("\n", " ")


def places_of(found: Iterable[Site]) -> dict[Shown, list[Site]]:
    """The sites by what the page shows of them."""
    grouped: dict[Shown, list[Site]] = {}
    for site in found:
        grouped.setdefault(site.shown, []).append(site)
    return grouped


def rows_on(page: str, grouped: dict[Shown, list[Site]]) -> dict[Shown, Row]:
    """The rows of the page that the source still has, word for word and as often."""
    lines = [line.removesuffix(" |").rpartition(" | ") for line in page.splitlines() if line.startswith("| ")]
    tests = {f"{start} |": re.findall("`([^`]*)` `([^`]*)`", named) for start, _, named in lines}
    found = {}
    for shown, places in grouped.items():
        row = Row(*shown, len(places), ())
        if row.start in tests:
            found[shown] = replace(row, tests=tuple(f"tests/{file}::{name}" for file, name in tests[row.start]))
    return found


def room_of(module: str) -> str:
    """What a person is doing when this module refuses."""
    [room] = [room for room, parts in ROOMS.items() if module.split(".")[0] in parts]
    return room


@cache
def named_in(path: str) -> frozenset[str]:
    """The tests of one file, with the class they are in."""
    file = ROOT / path
    tree = ast.parse(file.read_text("utf-8")) if file.is_file() else ast.Module([], [])
    return frozenset(_tests(tree.body))


def exists(test: str) -> bool:
    path, _, name = test.partition("::")
    return name in named_in(path)


def _tests(body: list[ast.stmt], within: str = "") -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _tests(node.body, f"{node.name}::")
        elif isinstance(node, ast.FunctionDef):
            yield within + node.name


class Record:
    """What the plugin wrote: by site and test, whether `pytest.raises` caught it."""

    def __init__(self, folder: Path) -> None:
        self.met: dict[str, dict[str, bool]] = {}
        for file in sorted(folder.glob("*.json")):
            for key, tests in json.loads(file.read_text("utf-8")).items():
                known = self.met.setdefault(key, {})
                for test, caught in tests.items():
                    known[test] = caught or known.get(test, False)
        self.unseen = sorted(key.removeprefix("?") for key in self.met if key.startswith("?"))
        self.sites_of = Counter(test for tests in self.met.values() for test in tests)

    def best(self, site: Site, preferred: Iterable[str] = ()) -> str | None:
        """The test that shows a site best: one on the page, or one that catches it, meets little else and is near."""
        met = {test: caught for test, caught in self.met.get(site.key, {}).items() if exists(test.partition("[")[0])}

        def rank(test: str) -> tuple[object, ...]:
            name = test.partition("[")[0]
            near = name.startswith(f"tests/{site.module.split('.')[0]}/")
            return name not in preferred, not met[test], self.sites_of[test], not near, len(name), name

        return min(met, key=rank).partition("[")[0] if met else None


def made(record: Record, page: str, grouped: dict[Shown, list[Site]]) -> tuple[list[Row], list[Site]]:
    """The rows of the page, and the sites that no test met."""
    before = rows_on(page, grouped)
    rows, missing = [], []
    for shown, places in grouped.items():
        old = before[shown].tests if shown in before and all(map(exists, before[shown].tests)) else ()
        found = {site: record.best(site, old) for site in places}
        met = {test for test in found.values() if test is not None}
        tests = old if None in found.values() else tuple(sorted(met))
        missing += [] if tests else [site for site, test in found.items() if test is None]
        rows.append(Row(*shown, len(places), tests))
    return rows, missing


def written(rows: list[Row]) -> str:
    """The page."""
    from discreet.cli.app import exit_code

    parts = [HEAD, "| error | it says that | exit code | messages |\n|---|---|---|---|"]
    counts = Counter(row.kind for row in rows)
    for kind in sorted(counts, key=lambda kind: (-counts[kind], kind)):
        error = _class(kind)
        says = (error.__doc__ or "").partition("\n")[0]
        parts.append(f"| `{kind}` | {says} | {exit_code(error(''))} | {counts[kind]} |")
    for room in ROOMS:
        inside = [row for row in rows if room_of(row.module) == room]
        if inside:
            parts += [f"\n## {room}\n", TABLE, *map(str, inside)]
    return "\n".join(parts) + "\n"


def _class(kind: str) -> type:
    from discreet import errors
    from discreet.engines import engine

    found: type = getattr(errors, kind, None) or getattr(engine, kind)
    return found


def main() -> None:
    options = argparse.ArgumentParser(description="Write docs/reference/refusals.md from a record of the tests.")
    options.add_argument("folder", type=Path, help="what --refusals of the plugin named")
    options.add_argument("--missing", action="store_true", help="only list what no test met")
    given = options.parse_args()
    page = PAGE.read_text("utf-8") if PAGE.is_file() else ""
    record = Record(given.folder)
    rows, missing = made(record, page, places_of(sites()))
    for line in record.unseen:
        print(f"{line} builds an error that sites.py does not see.")
    for site in missing:
        print(f"{site.module.replace('.', '/')}.py:{site.lines[0]} {site.kind}: {site.message}")
    if missing or record.unseen:
        raise SystemExit(
            f"{len(missing)} refusals have no test, and {len(record.unseen)} are not seen: nothing is written."
        )
    if not given.missing:
        PAGE.write_text(written(rows), "utf-8")


if __name__ == "__main__":
    main()
