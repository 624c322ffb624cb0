"""The public surface is pinned: adding or losing a name is a decision, made here and in the changelog."""

from __future__ import annotations

import ast
import importlib.metadata
import inspect
import json
import re
import subprocess
import sys
import tomllib
import typing
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

import discreet

from .source import ROOT, SOURCES, nodes_of

PUBLIC = {
    *("Unit", "person", "row"),
    *("connect", "remote", "table"),
    *("Count", "Integers", "Interval", "Sensitivity", "Sum"),
    *("Composed", "Each", "Exponential", "Gaussian", "GaussianProcess", "Laplace", "NoisyArgmax"),
    *("RandomizedResponse", "Shuffled", "Subsampled"),
    *(
        "Approx",
        "GaussianTradeoff",
        "Guarantee",
        "Pure",
        "Renyi",
        "ZeroConcentrated",
        "compose",
        "for_unit",
        "least_error",
        "risk",
        "verify",
    ),
    *("Ledger", "Release", "Session", "publish", "release", "stream"),
    *("BudgetExhausted", "DiscreetError", "InvalidArgument", "NotAllowed", "QueryError"),
    "__version__",
}
MODULES = {
    *(
        "adaptive",
        "audit",
        "datasets",
        "errors",
        "functions",
        "gateway",
        "guarantees",
        "learn",
        "ledger",
        "local",
        "mechanisms",
    ),
    *("publication", "queries", "shuffle", "sql", "stats", "synthetic", "tables", "testing"),
}
LAZY = [
    discreet,
    *(getattr(discreet, name) for name in ("datasets", "functions", "gateway", "mechanisms", "sql", "tables")),
]
"""The packages whose names are imported when they are first used."""

# Imported on first use: `import discreet` stays fast, and works where they are not installed.
HEAVY = ["duckdb", "pyarrow", "sqlglot", "matplotlib", "scipy", "typer"]


def test_the_public_names_are_pinned() -> None:
    assert set(discreet.__all__) == PUBLIC | MODULES
    assert len(set(discreet.__all__)) == len(discreet.__all__)


@pytest.mark.parametrize("name", sorted(discreet.__all__))
def test_every_public_name_resolves_and_is_documented(name: str) -> None:
    value = getattr(discreet, name)
    assert name in dir(discreet)
    if callable(value) or name in MODULES:
        assert value.__doc__, f"dp.{name} has no docstring"


def test_no_other_name_is_invented() -> None:
    assert not hasattr(discreet, "no_such_name")
    assert not hasattr(discreet.mechanisms, "no_such_name")


def test_a_name_that_moved_says_where_it_is() -> None:
    assert not {name for names in discreet._MOVED.values() for name in names} & PUBLIC
    for module, names in discreet._MOVED.items():
        for name in names:
            assert name in getattr(getattr(discreet, module), "__all__", [name])
            assert hasattr(getattr(discreet, module), name)
            with pytest.raises(AttributeError, match=f"discreet.{name} is now discreet.{module}.{name}$"):
                getattr(discreet, name)


@pytest.mark.slow
def test_submodules_resolve_in_a_fresh_process() -> None:
    uses = "; ".join(f"dp.{name}.__doc__.strip()" for name in sorted(MODULES))
    used = "; ".join(("dp.functions.Density", "dp.audit.audit", "dp.sql.Answer", "dp.mechanisms.CountTree"))
    assert "discreet.functions.density" in loaded_by(f"import discreet as dp; {uses}; {used}")


@pytest.mark.parametrize("package", LAZY, ids=lambda package: package.__name__)
def test_what_is_imported_later_is_what_type_checkers_see(package: ModuleType) -> None:
    (seen,) = (node for node in ast.parse(inspect.getsource(package)).body if isinstance(node, ast.If))
    imports = [node for node in seen.body if isinstance(node, ast.ImportFrom)]
    names = {alias.name: node.module for node in imports for alias in node.names}
    later = {name: f"{package.__name__}.{module}" for name, module in package._LATER.items()}
    if package is discreet:
        assert set(discreet._MODULES) == MODULES
        later |= dict.fromkeys(discreet._MODULES, "discreet")
    else:
        assert sorted(package.__all__) == sorted(package._LATER)
    assert names == later


def rooms() -> list[ModuleType]:
    """The package and its public submodules."""
    return [discreet, *(getattr(discreet, name) for name in discreet._MODULES)]


def public_names(room: ModuleType) -> list[str]:
    """The names of a room; those that a plain module defines itself, where it lists none."""
    own = [name for name, value in vars(room).items() if getattr(value, "__module__", "") == room.__name__]
    return list(getattr(room, "__all__", [name for name in own if not name.startswith("_")]))


def public_calls() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public function, the constructor of every public class, and its public methods, once each."""
    seen: set[object] = set()
    for room in rooms():
        for name in public_names(room):
            value = getattr(room, name)
            if isinstance(value, type) and not issubclass(value, BaseException):
                parts = [part for part in dir(value) if part in ("__init__", "__call__") or not part.startswith("_")]
                found = [(f"{value.__qualname__}.{part}", inspect.getattr_static(value, part)) for part in parts]
            else:
                found = [(name, value)] if inspect.isroutine(value) else []
            for label, part in found:
                call = inspect.unwrap(getattr(part, "__func__", part)) if callable(part) else part
                call = call.__func__ if isinstance(call, classmethod | staticmethod) else call
                if inspect.isfunction(call) and call.__module__.startswith("discreet") and call not in seen:
                    seen.add(call)
                    yield f"{room.__name__}: {label}", call


def vague(call: Callable[..., Any]) -> tuple[list[str], int]:
    """The parameters of a call that are untyped or Any, and how many parameters it has. A named alias is a type."""
    given = [one for one in inspect.signature(call).parameters.values() if one.name not in ("self", "cls")]
    untold = {inspect.Parameter.empty, "Any", "Any | None", Any}
    return [one.name for one in given if one.annotation in untold], len(given)


def test_public_signatures_are_typed() -> None:
    found = {name: vague(call) for name, call in public_calls()}
    all_of_them = sum(count for _, count in found.values())
    untyped = [f"{name}({one})" for name, (names, _) in found.items() for one in names]
    assert all_of_them > 1000, "few calls were found: the check is blind"
    assert len(untyped) < 0.05 * all_of_them, f"{len(untyped)} of {all_of_them}:\n" + "\n".join(untyped)


def test_an_untyped_parameter_is_noticed() -> None:
    def called(self, a, b: Any, c: Any | None, d: int, *rest: Any, e: list[Any] = ()) -> None:  # type: ignore
        """As people write them."""

    assert vague(called) == (["a", "b", "c", "rest"], 6)


def classes_in(hint: Any) -> Iterator[type]:
    """The classes that a return annotation names."""
    if isinstance(hint, type) and not typing.get_args(hint):
        yield hint
    if isinstance(typing.get_origin(hint), type):
        yield typing.get_origin(hint)
    for part in typing.get_args(hint):
        for one in part if isinstance(part, list) else [part]:
            yield from classes_in(one)


def hidden(hint: Any, public: set[object]) -> list[str]:
    """The classes of ours in a return annotation that cannot be imported from a public place."""
    ours = [cls for cls in classes_in(hint) if cls.__module__.startswith("discreet")]
    return [f"{cls.__module__}.{cls.__qualname__}" for cls in ours if cls not in public]


def test_what_public_calls_return_can_be_imported() -> None:
    things = [getattr(room, name) for room in rooms() for name in public_names(room)]
    public: set[object] = {thing for thing in things if isinstance(thing, type)}
    found = {}
    for name, call in public_calls():
        if not name.endswith("__init__"):
            found[name] = hidden(typing.get_type_hints(call).get("return"), public)
    assert {name: missing for name, missing in found.items() if missing} == {}


def test_a_hidden_return_type_is_noticed() -> None:
    answer = discreet.sql.Answer
    assert hidden(dict[str, list[answer]], {answer}) == []
    assert hidden(dict[str, list[answer]], set()) == [f"{answer.__module__}.Answer"]
    assert hidden(answer | None, set()) == [f"{answer.__module__}.Answer"]


def newest_entry(changelog: str) -> str | None:
    """The version at the top of a changelog, the unreleased section left aside."""
    found = re.search(r"^## \[(\d[^\]]*)\]", changelog, flags=re.MULTILINE)
    return found and found.group(1)


def test_one_version_everywhere() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", discreet.__version__)
    assert importlib.metadata.version("discreet") == discreet.__version__
    assert newest_entry((ROOT / "CHANGELOG.md").read_text("utf-8")) == discreet.__version__


def test_pages_name_the_wheel_of_this_version() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "deploy").iterdir())]
    named = {
        str(page.relative_to(ROOT)): re.findall(r"discreet-(\d[\w.]*)-py3-none-any", page.read_text("utf-8"))
        for page in pages
    }
    assert {"docs/index.md", "docs/install.md"} <= {page for page, versions in named.items() if versions}
    assert set().union(*named.values()) == {discreet.__version__}


def test_the_newest_entry_is_found() -> None:
    assert newest_entry("# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - x\n\n## [0.1.0] - y\n") == "0.2.0"
    assert newest_entry("# Changelog\n") is None


def loaded_by(statement: str) -> set[str]:
    """The modules a fresh interpreter holds after one statement."""
    program = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(result.stdout))


def extras_named(source: str) -> set[str]:
    """The extras that `need(…)` tells people to install."""
    calls = [node for node in nodes_of(source) if isinstance(node, ast.Call)]
    asked = [node.args[1] for node in calls if isinstance(node.func, ast.Name) and node.func.id == "need"]
    return {extra.value for extra in asked if isinstance(extra, ast.Constant) and extra.value is not None}


def test_every_extra_that_a_message_names_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = set().union(*map(extras_named, SOURCES.values()))
    assert "plot" in named
    assert named <= set(project["optional-dependencies"])


def test_an_extra_that_does_not_exist_is_noticed() -> None:
    assert extras_named('need("polars", "polars", "frames"), need("pandas", None, "frames")') == {"polars"}


def test_import_is_light() -> None:
    loaded = loaded_by("import discreet")
    assert "discreet" in loaded
    assert sorted(loaded & set(HEAVY)) == []


def test_a_heavy_import_is_noticed() -> None:
    assert "typer" in loaded_by("import discreet.cli")
