"""Every public name has an example in the reference that runs, and the pages show what it prints."""

from __future__ import annotations

import inspect
import re
import runpy
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ..test_public_surface import public_names, rooms
from .test_docs import words

ROOT = Path(__file__).resolve().parents[2]
MAKING = runpy.run_path(str(ROOT / "docs" / "make" / "examples.py"))
PAGES = sorted((ROOT / "docs" / "reference").glob("api-*.md"))
SESSIONS = {page.stem: MAKING["sessions"](page.read_text("utf-8")) for page in PAGES}
GATEWAY = "api-gateway"
"""Its example needs a server, and is part of `examples/gateway.py`, which `test_examples.py` runs."""
LONG = ("api-learn", "api-stats")
"""Pages whose examples take more than a second."""


def public_things() -> Iterator[tuple[list[str], Any]]:
    """Every public class and function, with all names that people call it by."""
    found: dict[int, tuple[list[str], Any]] = {}
    for room in rooms():
        for name in public_names(room):
            value = getattr(room, name)
            if inspect.isclass(value) or inspect.isroutine(value):
                names, _ = found.setdefault(id(value), ([], value))
                names.append(f"{room.__name__}.{name}".replace("discreet", "dp", 1))
    yield from found.values()


def in_docstrings(value: Any) -> bool:
    """Whether the docstring of a function, or of a class, its members or its bases, has an example."""
    owners = (
        [kind for kind in value.__mro__ if kind.__module__.startswith("discreet")] if inspect.isclass(value) else []
    )
    members = [member for kind in owners for member in vars(kind).values()]
    return any(">>> " in (getattr(one, "__doc__", None) or "") for one in (value, *members))


def without_example(things: Iterable[tuple[list[str], Any]], shown: str) -> list[str]:
    """What no example uses: a function by one of its full names, a class by its own."""
    missing = []
    for names, value in things:
        used = [name.rpartition(".")[2] if inspect.isclass(value) else name for name in names]
        if not in_docstrings(value) and not any(re.search(rf"\b{re.escape(name)}\b", shown) for name in used):
            missing.append(names[0])
    return missing


def test_every_public_name_has_an_example() -> None:
    gateway = (ROOT / "docs" / "reference" / f"{GATEWAY}.md").read_text("utf-8").partition("\n::: ")[0]
    assert without_example(public_things(), "\n".join([*SESSIONS.values(), gateway])) == []


def test_a_name_without_an_example_is_noticed() -> None:
    def plain() -> None:
        """Nothing to see."""

    class Plain:
        """Nothing to see."""

    things = [(["dp.stats.plain"], plain), (["dp.Plain"], Plain)]
    assert without_example(things, ">>> dp.local.plain(1)\n>>> Plainly") == ["dp.stats.plain", "dp.Plain"]
    assert without_example(things, ">>> dp.stats.plain(1)\n'Plain'") == []


def test_the_example_of_the_gateway_is_one_that_runs() -> None:
    [shown] = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / "reference" / f"{GATEWAY}.md").read_text("utf-8"), re.DOTALL
    )
    ran = (ROOT / "examples" / "gateway.py").read_text("utf-8").splitlines()
    assert [line for line in shown.splitlines() if line not in ran] == []


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.stem, marks=[pytest.mark.slow] * (page.stem in LONG))
        for page in PAGES
        if SESSIONS[page.stem]
    ],
)
def test_the_examples_print_what_the_reference_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers are noise, and differ; all else is the same."""
    monkeypatch.chdir(tmp_path)
    shown = page.read_text("utf-8")
    assert words(MAKING["with_outputs"](shown)) == words(shown), f"run python docs/make/examples.py {page.stem}"
