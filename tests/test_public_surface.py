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

import pytest

import discreet

ROOT = Path(__file__).resolve().parents[1]

PUBLIC = [
    "AboveThreshold",
    "Accuracy",
    "Approx",
    "Ball",
    "BudgetExhausted",
    "Categories",
    "Composed",
    "CorrelatedGaussian",
    "Count",
    "CountTree",
    "CountingQuery",
    "CumulativeCounts",
    "DiscreetError",
    "Domain",
    "Each",
    "EngineFailed",
    "EntropyUnavailable",
    "Exponential",
    "Functions",
    "Gaussian",
    "GaussianProcess",
    "GaussianTradeoff",
    "Grid",
    "Guarantee",
    "Histogram",
    "IncompatibleGuarantee",
    "Integers",
    "Interval",
    "InvalidArgument",
    "KeySelection",
    "Laplace",
    "Ledger",
    "LedgerDamaged",
    "LedgerUnavailable",
    "LossDistribution",
    "Mean",
    "MedianScore",
    "MissingExtra",
    "MultiplicativeWeights",
    "NoisyArgmax",
    "NotAllowed",
    "OnlineMultiplicativeWeights",
    "PermuteAndFlip",
    "PrefixSums",
    "Popularity",
    "Product",
    "Pure",
    "Quantile",
    "QuantileScore",
    "Quantiles",
    "QuantilesFromCounts",
    "QueryError",
    "RandomizedResponse",
    "Ratings",
    "Release",
    "Renyi",
    "SealedValue",
    "Sensitivity",
    "SmallDatabase",
    "Subsampled",
    "Sum",
    "TopK",
    "Unit",
    "VectorSum",
    "Workload",
    "ZeroConcentrated",
    "__version__",
    "best_quantiles",
    "chooser_for",
    "compose",
    "adaptive",
    "connect",
    "table",
    "learn",
    "local",
    "shuffle",
    "Shuffled",
    "least_error",
    "person",
    "release",
    "row",
    "stream",
    "verify",
]

# Imported on first use: `import discreet` stays fast, and works where they are not installed.
HEAVY = ["duckdb", "pyarrow", "sqlglot", "matplotlib", "scipy.stats", "typer"]


def test_the_public_names_are_pinned() -> None:
    assert sorted(discreet.__all__) == sorted(PUBLIC)
    assert len(set(discreet.__all__)) == len(discreet.__all__)


@pytest.mark.parametrize("name", sorted(discreet.__all__))
def test_every_public_name_resolves_and_is_documented(name: str) -> None:
    value = getattr(discreet, name)
    assert name in dir(discreet)
    if callable(value):
        assert value.__doc__, f"dp.{name} has no docstring"


def test_no_other_name_is_invented() -> None:
    assert not hasattr(discreet, "no_such_name")


def test_what_is_imported_later_is_what_type_checkers_see() -> None:
    (seen,) = (node for node in ast.parse(inspect.getsource(discreet)).body if isinstance(node, ast.If))
    imports = [node for node in seen.body if isinstance(node, ast.ImportFrom)]
    names = {alias.name: node.module for node in imports for alias in node.names}
    whole = dict.fromkeys(discreet._MODULES, "discreet")
    assert names == whole | {name: f"discreet.{module}" for name, module in discreet._LATER.items()}


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
