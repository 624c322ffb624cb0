"""The shape of the tree: files that can be read at once, rooms that can be overlooked, and no circle of imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from statistics import median

import pytest

from .source import ROOT, SOURCES

FULL = 20
MEDIAN = 200


def files_by_room(root: Path) -> dict[str, int]:
    """How many files are in each folder."""
    found: dict[str, int] = {}
    for path in root.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            room = path.parent.relative_to(root).as_posix()
            found[room] = found.get(room, 0) + 1
    return found


ROOMS = (
    "src/discreet",
    "bench",
    "fuzz",
    "deploy",
    "docs/make",
    "clients/js/src",
    "clients/js/test",
    "tests",
    "examples",
)


@pytest.mark.parametrize("root", ROOMS)
def test_no_room_is_too_full(root: str) -> None:
    found = files_by_room(ROOT / root)
    assert found
    assert {room: files for room, files in found.items() if files > FULL} == {}


def test_a_full_room_is_seen(tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    for number in range(FULL + 1):
        (tmp_path / f"{number}.py").touch()
        (tmp_path / "small" / "one.py").touch()
    assert files_by_room(tmp_path) == {".": FULL + 1, "small": 1}


def test_half_of_the_files_are_short() -> None:
    assert median(len(source.splitlines()) for source in SOURCES.values()) <= MEDIAN


def imported_when_run(source: str) -> Iterator[str]:
    """The modules that a text imports, at its top or in a function. Imports that only types need are left out."""
    waiting: list[ast.AST] = [ast.parse(source)]
    while waiting:
        match waiting.pop():
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), orelse=otherwise):
                waiting += otherwise
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                yield from (f"{module}.{alias.name}" for alias in names)
            case ast.expr():
                pass
            case node:
                waiting += ast.iter_child_nodes(node)


def circle_in(sources: Mapping[str, str]) -> list[str]:
    """Modules that import each other, in a circle. Packages are left out: they show what is in their modules."""
    modules = {name.removesuffix(".py").replace("/", "."): text for name, text in sources.items()}
    modules = {name: text for name, text in modules.items() if not name.endswith("__init__")}

    def module_of(imported: str) -> str | None:
        inside = imported.removeprefix("discreet.")
        return next((name for name in (inside, inside.rpartition(".")[0]) if name in modules), None)

    graph = {name: {module_of(one) for one in imported_when_run(text)} - {None, name} for name, text in modules.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_modules_import_each_other() -> None:
    assert circle_in(SOURCES) == []


@pytest.mark.parametrize(
    ("text", "is_circle"),
    [
        ("from discreet.a.one import x", True),
        ("def f():\n    from discreet.a import one", True),
        ("import discreet.a.one", True),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from discreet.a.one import x", False),
        ("from discreet.a.three import x", False),
    ],
)
def test_a_circle_is_seen(text: str, is_circle: bool) -> None:
    modules = {"a/one.py": "from discreet.a.two import y", "a/two.py": text, "a/three.py": "", "a/__init__.py": ""}
    assert bool(circle_in(modules)) == is_circle
