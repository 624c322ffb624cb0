"""The walls of the house: small files, one door, one source of randomness, promises written down.

Every checker is a plain function over source text, so that each can be shown to catch an offender.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Protocol

import pytest

import discreet

from .source import ROOT, SOURCES, nodes_like

HARD_LIMIT = 600

ENTROPY = (
    "random",
    "secrets",
    "os.urandom",
    "os.getrandom",
    "uuid.uuid1",
    "uuid.uuid4",
    "numpy.random",
    "torch.bernoulli",
    "torch.distributions",
    "torch.normal",
    "torch.rand",
    "torch.randint",
    "torch.randn",
    "torch.randperm",
)
ENTROPY_FILES = ("/dev/random", "/dev/urandom")
ENTROPY_METHODS = ("rvs",)  # scipy.stats draws with it


# --- file size ------------------------------------------------------------------------------------------


def too_long(source: str) -> bool:
    return len(source.splitlines()) > HARD_LIMIT


def test_files_stay_short() -> None:
    assert [name for name, source in SOURCES.items() if too_long(source)] == [], f"over {HARD_LIMIT} lines: split it"


def test_a_long_file_is_caught() -> None:
    assert not too_long("x = 1\n" * HARD_LIMIT)
    assert too_long("x = 1\n" * (HARD_LIMIT + 1))


# --- one door -------------------------------------------------------------------------------------------


def mentions(source: str, attribute: str) -> list[int]:
    """Lines that call or pass on `something.attribute`, by dot, by `getattr` or by `methodcaller`."""
    lines = []
    for node in nodes_like(source, ast.Attribute, ast.Call):
        match node:
            case ast.Attribute(attr=name, ctx=ast.Load()) if name == attribute:
                lines.append(node.lineno)
            case ast.Call(func=ast.Name(id="getattr" | "methodcaller"), args=arguments) if any(
                isinstance(argument, ast.Constant) and argument.value == attribute for argument in arguments
            ):
                lines.append(node.lineno)
    return sorted(lines)


def may_charge(module: str) -> bool:
    """The door, and views of a ledger that pass a charge on."""
    return module in ("door.py", "ledger/views.py")


def may_draw(module: str) -> bool:
    return module == "door.py" or module.startswith("mechanisms/")


def found_in(sources: Mapping[str, str], check: Callable[[str], list[int]]) -> list[str]:
    """Each place that a check objects to, as `file:line`."""
    return [f"{name}:{line}" for name, source in sources.items() for line in check(source)]


def test_only_the_door_charges() -> None:
    others = {name: source for name, source in SOURCES.items() if not may_charge(name)}
    assert found_in(others, lambda source: mentions(source, "charge")) == []


def test_only_the_ledger_decides_what_a_release_costs() -> None:
    """`ledger.cost_of` is asked by all others."""
    owners = ("ledger/", "guarantees/")
    others = {name: source for name, source in SOURCES.items() if not name.startswith(owners)}
    assert found_in(others, lambda source: mentions(source, "adds_stated") + mentions(source, "charged")) == []
    assert mentions("cost = goal if ledger.rule.adds_stated else own", "adds_stated") == [1]


def test_only_the_door_keeps_answers() -> None:
    others = {
        name: source for name, source in SOURCES.items() if not may_charge(name) and not name.startswith("ledger/")
    }
    assert found_in(others, lambda source: mentions(source, "keep")) == []


def draws(source: str) -> list[int]:
    """Lines that reach for `_draw`, or that call another method of a mechanism that draws."""
    helpers = ("_noise", "_report")
    called = [
        node.lineno
        for node in nodes_like(source, ast.Attribute, ast.Call)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in helpers
    ]
    return sorted([*mentions(source, "_draw"), *called])


def test_only_the_door_and_the_mechanisms_draw() -> None:
    others = {name: source for name, source in SOURCES.items() if not may_draw(name)}
    assert found_in(others, draws) == []
    assert draws("release = mechanism._draw\nmechanism._noise(3) + response._report(places)") == [1, 2, 2]
    assert draws("deviation = self._noise ** 2") == []


def test_the_walk_sees_every_module_and_names_the_place() -> None:
    assert {"door.py", "exact/randomness.py", "ledger/ledger.py"} <= SOURCES.keys()
    assert found_in(SOURCES, lambda source: mentions(source, "charge"))[0].startswith("door.py:")
    assert found_in({"a.py": "\nledger.charge()"}, lambda source: mentions(source, "charge")) == ["a.py:2"]


@pytest.mark.parametrize(
    "offender",
    [
        "ledger.charge(guarantee)",
        "def f(ledger):\n    spend = ledger.charge\n    spend(1)",
        "getattr(ledger, 'charge')(guarantee)",
        "methodcaller('charge', guarantee)(ledger)",
        "self.ledger.inner.charge(*guarantees)",
    ],
)
def test_a_second_door_is_caught(offender: str) -> None:
    assert mentions(offender, "charge")
    assert mentions(offender.replace("charge", "_draw"), "_draw")


def test_defining_or_naming_a_charge_is_not_a_second_door() -> None:
    assert mentions("class Ledger:\n    def charge(self): ...\n", "charge") == []
    assert mentions("'the charge is durable'\ncharge = 1\nledger.charged()", "charge") == []


def test_who_may_pass() -> None:
    assert may_charge("door.py")
    assert not any(map(may_charge, ["ledger/ledger.py", "mechanisms/door.py", "cli/app.py"]))
    assert may_draw("mechanisms/noise/laplace.py")
    assert not any(map(may_draw, ["audit/attack.py", "testing.py", "ledger/ledger.py", "demo/mechanisms/run.py"]))


# --- who draws ------------------------------------------------------------------------------------------

SAMPLERS = "discreet.exact.samplers"
MAY_SAMPLE = ("door.py", "testing.py", "exact/", "mechanisms/")
"""What else is random is public (`exact/public_draws.py`), or handed over by a mechanism (`mechanisms/sampling.py`)."""


def imports_samplers(source: str) -> list[int]:
    """Lines that import the samplers, or use them by a longer name."""
    imports = list(imported_names(source))
    aliases = {local: dotted for local, dotted, _ in imports if local}
    lines = {line for _, dotted, line in imports if f"{dotted}.".startswith(f"{SAMPLERS}.")}
    for node in nodes_like(source, ast.Attribute, ast.Call):
        match node:
            case ast.Attribute() if dotted_name(node, aliases) == SAMPLERS:
                lines.add(node.lineno)
            case ast.Call(func=ast.Name(id="__import__") | ast.Attribute(attr="import_module"), args=arguments):
                if any(isinstance(a, ast.Constant) and str(a.value) == SAMPLERS for a in arguments):
                    lines.add(node.lineno)
    return sorted(lines)


def test_only_the_door_and_the_mechanisms_import_samplers() -> None:
    others = {name: source for name, source in SOURCES.items() if not name.startswith(MAY_SAMPLE)}
    assert found_in(others, imports_samplers) == []
    assert imports_samplers(SOURCES["door.py"])
    assert imports_samplers(SOURCES["mechanisms/noise/laplace.py"])


@pytest.mark.parametrize(
    "offender",
    [
        "from discreet.exact import samplers",
        "from discreet.exact import samplers as harmless",
        "from discreet.exact.samplers import permutation",
        "import discreet.exact.samplers",
        "import discreet.exact.samplers as draw",
        "def f():\n    from discreet.exact.samplers import discrete_laplace",
        "import discreet\ndiscreet.exact.samplers.bernoulli(p, 3)",
        "from discreet import exact\nexact.samplers.bernoulli(p, 3)",
        "import importlib\nimportlib.import_module('discreet.exact.samplers')",
    ],
)
def test_an_import_of_samplers_is_caught(offender: str) -> None:
    assert imports_samplers(offender)


def test_other_imports_are_no_samplers() -> None:
    assert imports_samplers("from discreet.exact import public_draws\npublic_draws.normals(3)") == []
    assert imports_samplers("from discreet.mechanisms.sampling import random_order\nsamplers = 3") == []


# --- one source of randomness ---------------------------------------------------------------------------


def is_entropy(dotted: str) -> bool:
    return any(dotted == name or dotted.startswith(name + ".") for name in ENTROPY)


def dotted_name(node: ast.AST, aliases: dict[str, str]) -> str:
    """`np.random.normal` as `numpy.random.normal`; empty when it is not a chain of names."""
    match node:
        case ast.Name(id=name):
            return aliases.get(name, "")
        case ast.Attribute(value=value, attr=attribute):
            base = dotted_name(value, aliases)
            return base and f"{base}.{attribute}"
        case _:
            return ""


def imported_names(source: str) -> Iterator[tuple[str, str, int]]:
    """Each import as (local name, what it stands for, line)."""
    for node in nodes_like(source, ast.Import, ast.ImportFrom):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    local = alias.asname or alias.name.partition(".")[0]
                    yield local, alias.name if alias.asname else local, node.lineno
                    yield "", alias.name, node.lineno
            case ast.ImportFrom(module=str(module), names=names, level=0):
                for alias in names:
                    yield alias.asname or alias.name, f"{module}.{alias.name}", node.lineno


def entropy_uses(source: str) -> list[int]:
    """Lines that reach for randomness in any way this checker knows."""
    imports = list(imported_names(source))
    aliases = {local: dotted for local, dotted, _ in imports if local}
    lines = {line for _, dotted, line in imports if is_entropy(dotted)}
    for node in nodes_like(source, ast.Attribute, ast.Call, ast.Constant):
        match node:
            case ast.Attribute(attr=attribute) if attribute in ENTROPY_METHODS or is_entropy(
                dotted_name(node, aliases)
            ):
                lines.add(node.lineno)
            case ast.Call(func=ast.Name(id="__import__") | ast.Attribute(attr="import_module"), args=arguments):
                if any(isinstance(a, ast.Constant) and is_entropy(str(a.value)) for a in arguments):
                    lines.add(node.lineno)
            case ast.Constant(value=str(text)) if text in ENTROPY_FILES:
                lines.add(node.lineno)
    return sorted(lines)


def test_only_randomness_reads_entropy() -> None:
    others = {name: source for name, source in SOURCES.items() if name != "exact/randomness.py"}
    assert found_in(others, entropy_uses) == []


@pytest.mark.parametrize(
    "offender",
    [
        "import random",
        "import random as harmless",
        "import secrets",
        "from secrets import token_bytes",
        "import os\nkey = os.urandom(32)",
        "import os as system\nread = system.urandom",
        "from os import urandom",
        "import uuid\nreceipt = uuid.uuid4()",
        "import numpy as np\nnoise = np.random.laplace(size=3)",
        "import numpy.random",
        "import numpy.random as generator",
        "from numpy import random as r",
        "from numpy.random import default_rng",
        "def f():\n    import torch\n    return torch.randn(3)",
        "from scipy import stats\nstats.laplace.rvs(size=3)",
        "__import__('random')",
        "import importlib\nimportlib.import_module('numpy.random')",
        "open('/dev/urandom', 'rb')",
    ],
)
def test_a_second_source_is_caught(offender: str) -> None:
    assert entropy_uses(offender)


@pytest.mark.parametrize(
    "innocent",
    [
        "from discreet import randomness\nrandomness.stream().bytes(16)",
        "from discreet.exact.randomness import random_bits",
        "import os\nos.path.join('a', 'b')",
        "import numpy as np\nnp.arange(3)",
        "random = 3\nprint(random)",
        "'the secrets of random numbers'",
    ],
)
def test_an_innocent_is_left_alone(innocent: str) -> None:
    assert entropy_uses(innocent) == []


# --- promises -------------------------------------------------------------------------------------------


def without_promise(classes: Iterable[type]) -> list[str]:
    """Public, concrete mechanisms whose own docstring does not state the promise."""
    return [
        cls.__qualname__
        for cls in classes
        if hasattr(cls, "_draw")
        and not cls.__name__.startswith("_")
        and not inspect.isabstract(cls)
        and not getattr(cls, "_is_protocol", False)
        and "Promise:" not in docstring_of(cls)
    ]


def docstring_of(cls: type) -> str:
    """What stands in the source: a wheel leaves out what is not public."""
    source = ROOT / "src" / f"{cls.__module__.replace('.', '/')}.py"
    if not source.is_file():
        return cls.__dict__.get("__doc__") or ""
    nodes = ast.walk(ast.parse(source.read_text("utf-8")))
    [own] = [node for node in nodes if isinstance(node, ast.ClassDef) and node.name == cls.__name__]
    return ast.get_docstring(own) or ""


def mechanism_classes() -> list[type]:
    package = importlib.import_module("discreet.mechanisms")
    names = [
        package.__name__,
        *(m.name for m in pkgutil.walk_packages(package.__path__, "discreet.mechanisms.")),
    ]
    modules = map(importlib.import_module, names)
    return [
        cls
        for module in modules
        for _, cls in inspect.getmembers(module, inspect.isclass)
        if cls.__module__ == module.__name__
    ]


def test_every_mechanism_states_its_promise() -> None:
    classes = mechanism_classes()
    assert any(hasattr(cls, "_draw") for cls in classes), "no mechanism was found: the check is blind"
    assert without_promise(classes) == []


def test_a_mechanism_without_a_promise_is_caught() -> None:
    class Interface(Protocol):
        def _draw(self) -> int: ...

    class Stated:
        """Promise: epsilon at most 1/scale."""

        def _draw(self) -> int:
            return 0

    class Silent:
        """Adds noise."""

        def _draw(self) -> int:
            return 0

    class Inherits(Stated):
        pass

    class _Hidden(Silent):
        pass

    found = without_promise([Interface, Stated, Silent, Inherits, _Hidden, int])
    assert [name.rpartition(".")[2] for name in found] == ["Silent", "Inherits"]


# --- names ----------------------------------------------------------------------------------------------


def shadowed(modules: Iterable[str], functions: Iterable[str]) -> set[str]:
    """Modules directly under `discreet` that, once imported, would replace a function of the same name."""
    return set(modules) & set(functions)


def test_no_module_bears_the_name_of_a_public_function() -> None:
    modules = [module.name for module in pkgutil.iter_modules(discreet.__path__)]
    functions = [name for name in discreet.__all__ if inspect.isroutine(getattr(discreet, name))]
    assert "errors" in modules
    assert functions
    assert shadowed(modules, functions) == set()


def test_a_shadowing_module_is_caught() -> None:
    assert shadowed(["errors", "release"], ["release", "compose"]) == {"release"}


# --- the theory map -------------------------------------------------------------------------------------

MAP = ROOT / "docs" / "theory.md"
FILE = re.compile(r"`((?:src|tests|bench)/[\w/.-]+)`")


def missing_files(text: str, root: Path) -> list[str]:
    return sorted({name for name in FILE.findall(text) if not (root / name).exists()})


def test_the_theory_map_names_files_that_exist() -> None:
    text = MAP.read_text("utf-8")
    assert FILE.search(text)
    assert missing_files(text, ROOT) == []


def test_a_stale_map_is_caught(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "here.py").touch()
    assert missing_files("| L3.EM | `src/here.py` | `tests/test_gone.py` |", tmp_path) == ["tests/test_gone.py"]


# --- the picture and the rooms of docs/architecture.md are those of the tree ---------------------------------------


def drawn() -> ModuleType:
    """docs/make/architecture.py, which is no part of the package."""
    path = Path(__file__).parents[1] / "docs" / "make" / "architecture.py"
    spec = importlib.util.spec_from_file_location("make_architecture", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_the_architecture_is_that_of_the_tree() -> None:
    maker = drawn()
    mend = "run python docs/make/architecture.py"
    assert maker.PICTURE.read_text() == maker.picture(), mend
    assert maker.PAGE.read_text() == maker.page(), mend
