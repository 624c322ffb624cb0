"""Draws docs/images/architecture.svg and the table of packages in docs/architecture.md.

Run `python docs/make/architecture.py`. The floors are those that import-linter checks, and the description of a package
is the first sentence of its docstring. `tests/test_architecture.py` fails when the page does not match the code.
"""

from __future__ import annotations

import ast
import re
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "images" / "architecture.svg"
PAGE = ROOT / "docs" / "architecture.md"
FLOORS = [
    "command line",
    "demonstrations",
    "published results, reproduced",
    "a service for analysts who are not trusted",
    "publications",
    "entry points for data owners",
    "larger kinds of answers",
    "kinds of answers",
    "the door",
    "results",
    "storage and computation",
    "how a question is answered",
    "what is asked",
    "what is promised",
    "how data is read",
    "exact numbers",
    "shared basics",
]
NOUNS = {
    "guarantees": "Unit, Guarantee",
    "queries": "Query",
    "mechanisms": "Mechanism",
    "ledger": "Ledger",
    "releases": "Release",
}
STEPS = [
    ("a file, a table, a DataFrame", "named in the policy: who is protected, what is public"),
    ("a question", "parsed, resolved and bounded, from declarations only"),
    ("query.sensitivity(unit)", "how much one unit can change the exact answer"),
    ("mechanism.guarantee(sensitivity)", "what the drawn noise guarantees"),
    ("ledger.charge(guarantee)", "durable, before the first random bit; or refused"),
    ("mechanism draws", "exact integers from the engine, exact noise on a lattice"),
    ("ledger keeps", "a retry gets the same answer for free"),
    ("Release", "value, guarantee, accuracy, receipt"),
]
INK, PALE, WALL, DOOR = "#1d2b3a", "#5d6b7a", "#e9eef4", "#fbe3c0"


def floors() -> list[list[str]]:
    """The packages of each floor that exist, the highest floor first."""
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(one["layers"] for one in known if one["id"] == "floors")
    named = [re.findall(r"\((\w+)\)", layer) for layer in layers]
    return [[name for name in rooms if _files(name)] for rooms in named]


def _files(room: str) -> list[Path]:
    place = ROOT / "src" / "discreet" / room
    return (
        sorted(place.rglob("*.py")) if place.is_dir() else [one for one in [place.with_suffix(".py")] if one.exists()]
    )


def purpose(room: str) -> str:
    """The first sentence of a package's docstring."""
    files = _files(room)
    name = Path(room).name
    home = next((one for one in files if one.name == "__init__.py" and one.parent.name == name), files[0])
    said = ast.get_docstring(ast.parse(home.read_text())) or ""
    return " ".join(said.split("\n\n")[0].split())


def rooms() -> str:
    """The table of docs/architecture.md: a row for each package, and one for each of its subpackages."""
    lines = ["| floor | package | what it is for | files |", "|---|---|---|---|"]
    for number, (floor, names) in enumerate(zip(FLOORS, floors(), strict=True)):
        for place, name in enumerate(names):
            shown = f"{len(FLOORS) - 1 - number} · {floor}" if place == 0 else ""
            folder = name + "/" if (ROOT / "src" / "discreet" / name).is_dir() else name + ".py"
            lines.append(f"| {shown} | `{folder}` | {purpose(name)} | {len(_files(name))} |")
            for inner in _subpackages(name):
                lines.append(
                    f"| | `{name}/{inner}/` | {purpose(f'{name}/{inner}')} | {len(_files(f'{name}/{inner}'))} |"
                )
    return "\n".join(lines)


def _subpackages(room: str) -> list[str]:
    return sorted(one.parent.name for one in (ROOT / "src" / "discreet" / room).glob("*/__init__.py"))


def page() -> str:
    """The page with the table for the current code."""
    start, end = "<!-- rooms -->\n", "\n<!-- end of rooms -->"
    before, rest = PAGE.read_text().split(start)
    return before + start + rooms() + end + rest.split(end)[1]


def picture() -> str:
    """The floors on the left, the path of one question on the right."""
    parts = [_text(24, 34, "Floors: each imports only from the floors below it", 17, weight="bold")]
    for number, (floor, names) in enumerate(zip(FLOORS, floors(), strict=True)):
        top = 52 + 52 * number
        colour = DOOR if names == ["door"] else WALL
        parts.append(f'<rect x="24" y="{top}" width="700" height="46" rx="6" fill="{colour}"/>')
        parts.append(_text(36, top + 18, floor, 12, PALE))
        parts.append(_text(36, top + 37, " · ".join(names), 15, weight="bold"))
        owned = ", ".join(NOUNS[name] for name in names if name in NOUNS)
        if owned:
            parts.append(_text(712, top + 18, owned, 12, PALE, anchor="end"))
    parts.append(_text(770, 34, "One question: from a file to a release", 17, weight="bold"))
    for number, (name, text) in enumerate(STEPS):
        top = 52 + 72 * number
        colour = DOOR if 2 <= number <= 6 else WALL
        parts.append(f'<rect x="770" y="{top}" width="400" height="52" rx="6" fill="{colour}"/>')
        parts.append(_text(784, top + 22, name, 15, weight="bold"))
        parts.append(_text(784, top + 42, text, 12.5, PALE))
        if number:
            parts.append(
                f'<path d="M970 {top - 19} v15 m-5 -6 l5 6 l5 -6" stroke="{PALE}" fill="none" stroke-width="2"/>'
            )
    body, height = "\n".join(parts), 68 + 52 * len(FLOORS)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1194 {height}" role="img" '
        'aria-label="Floors of the package, and the path of one question to its release" '
        f'font-family="system-ui, sans-serif">\n<rect width="1194" height="{height}" fill="white"/>\n{body}\n</svg>\n'
    )


def _text(
    x: float, y: float, words: str, size: float, colour: str = INK, *, anchor: str = "start", weight: str = "normal"
) -> str:
    looks = f'font-size="{size}" fill="{colour}" text-anchor="{anchor}" font-weight="{weight}"'
    return f'<text x="{x}" y="{y}" {looks}>{escape(words)}</text>'


if __name__ == "__main__":
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture())
    PAGE.write_text(page())
    print(PICTURE, PAGE, sep="\n")
