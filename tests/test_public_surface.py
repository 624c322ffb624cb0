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
from pathlib import Path
from types import ModuleType

import pytest

import discreet

ROOT = Path(__file__).resolve().parents[1]

PUBLIC = {
    *("Unit", "person", "row"),
    *("connect", "table"),
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
        "least_error",
        "verify",
    ),
    *("Ledger", "Release", "release", "stream"),
    *("BudgetExhausted", "DiscreetError", "InvalidArgument", "NotAllowed", "QueryError"),
    "__version__",
}
MODULES = {
    *("adaptive", "audit", "datasets", "errors", "functions", "guarantees", "learn", "ledger", "local", "mechanisms"),
    *("queries", "shuffle", "sql", "synthetic", "tables", "testing"),
}
LAZY = [discreet, *(getattr(discreet, name) for name in ("datasets", "functions", "mechanisms", "sql", "tables"))]
"""The packages whose names are imported when they are first used."""

# Imported on first use: `import discreet` stays fast, and works where they are not installed.
HEAVY = ["duckdb", "pyarrow", "sqlglot", "matplotlib", "scipy.stats", "typer"]


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


def newest_entry(changelog: str) -> str | None:
    """The version at the top of a changelog, the unreleased section left aside."""
    found = re.search(r"^## \[(\d[^\]]*)\]", changelog, flags=re.MULTILINE)
    return found and found.group(1)


def test_one_version_everywhere() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", discreet.__version__)
    assert importlib.metadata.version("discreet") == discreet.__version__
    assert newest_entry((ROOT / "CHANGELOG.md").read_text("utf-8")) == discreet.__version__


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
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    asked = [node.args[1] for node in calls if isinstance(node.func, ast.Name) and node.func.id == "need"]
    return {extra.value for extra in asked if isinstance(extra, ast.Constant) and extra.value is not None}


def test_every_extra_that_a_message_names_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = set().union(*(extras_named(file.read_text("utf-8")) for file in (ROOT / "src").rglob("*.py")))
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
