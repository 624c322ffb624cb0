"""The public surface, as its own lists and the reference pages name it, and which of it takes data."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import discreet
from discreet.datasets.database import Database
from discreet.door import Session
from discreet.tables.table import PrivateTable

PAGES = Path(__file__).resolve().parents[2] / "docs" / "reference"
MODULES = ("learn", "local", "shuffle", "adaptive", "synthetic", "audit", "queries", "mechanisms", "functions")

SETTINGS = frozenset(
    """
    about accuracies accuracy alpha alphabet amount amounts analyst apart arguments average bandwidth basis between
    bins bits bounds branches buckets calibration candidates cautious center chance checkpoint choice choices
    choosing claimed classes clients clip columns confidence count counting covariance covariance_type curve_norm
    damp deep delta delta_per_question described detail dimension domain domain_size each_round engine epsilon
    estimator everywhere
    fakes feature_norm feature_ranges features fit_intercept given grain groups groups_per_person guarantee
    guarantees hashes held_rows high honest identity index input_features intercept inverted k key keys_per_person
    kind last learning_rate least ledger length lie lies limit local loss low measuring mechanism mechanisms memory
    method methods metric minimum miss missing momentum monotone mu n_clusters n_components n_features n_samples
    name names neighbors noise norm options order ordered others overfits passes path peel planes point policy
    priors progress protects quantile quantiles queries question questions radius rate region relation replaced rho
    ridge room rounds rows_per_group rows_per_person rule rules sample_weight samples sampling schema security seed
    select sensitivity sets settings shares simplex size smoothing solver space spaces spark spread stated statistic
    stddev step steps submissions sums survey target target_bound terms threshold times title tolerance top transform
    tries trust types uniform unit unprotected updates users verbose version weights why widest width with_mean
    with_std within workload x_between y_between
    """.split()  # noqa: SIM905 (a list of names is read more easily so)
)
"""Parameters that hold what is declared and public, whatever call they are of. What is not here may be data."""


DRAWS = ("_draw", "_start")
"""What a mechanism has one of."""


def names() -> dict[str, Any]:
    """Every public name with what it is."""
    found = {name: getattr(discreet, name) for name in discreet.__all__ if name not in discreet._MODULES}
    for module, moved in discreet._MOVED.items():  # these bear plain names in the tables of the edges
        found |= {name: getattr(importlib.import_module(f"discreet.{module}"), name) for name in moved}
    for module in MODULES:
        room = importlib.import_module(f"discreet.{module}")
        found |= {f"{module}.{name}": getattr(room, name) for name in room.__all__}
    for page in sorted(PAGES.glob("*.md")):
        for dotted in re.findall(r"^::: discreet\.([\w.]+)$", page.read_text("utf-8"), flags=re.MULTILINE):
            if (value := _resolved(dotted)) is not None:
                found.setdefault(dotted, value)
    return found | {"PrivateTable": PrivateTable, "Database": Database, "Session": Session}


def _resolved(dotted: str) -> Any:
    """What a reference page documents; None for a module, whose own names are listed elsewhere."""
    if _is_module(f"discreet.{dotted}"):
        return None
    *rooms, last = dotted.split(".")
    return getattr(importlib.import_module(".".join(["discreet", *rooms])), last)


def _is_module(dotted: str) -> bool:
    try:
        return importlib.util.find_spec(dotted) is not None
    except ModuleNotFoundError:  # what is before the last point is a class
        return False


def calls() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public function, every class and its public methods, by the shortest public name of each."""
    shortest: dict[int, str] = {}
    for name, value in names().items():
        known = shortest.get(id(value))
        if known is None or name.count(".") < known.count("."):
            shortest[id(value)] = name
    by_name = {name: value for name, value in names().items() if shortest[id(value)] == name}
    for name, value in sorted(by_name.items()):
        if not callable(value) or (isinstance(value, type) and issubclass(value, BaseException)):
            continue
        yield name, value
        if isinstance(value, type):
            for part, method in inspect.getmembers(value, callable):
                ours = str(getattr(method, "__module__", "")).startswith("discreet")
                if ours and (not part.startswith("_") or part == "__call__"):
                    yield f"{name}.{part}", method


def parameters(call: Callable[..., Any]) -> list[str]:
    """The names of what a call takes."""
    try:
        return [name for name in inspect.signature(call).parameters if name not in ("self", "cls")]
    except (TypeError, ValueError):
        return []


def mechanisms() -> Iterator[str]:
    """Public mechanisms: what each does with the value of `dp.release` or `dp.stream` is a call of its own."""
    for name, value in calls():
        room, _, last = name.rpartition(".")
        if isinstance(value, type) and room in ("", "mechanisms") and any(hasattr(value, x) for x in DRAWS):
            yield f"release({last})"


def may_take_data() -> dict[str, list[str]]:
    """The calls with a parameter that is not a setting, and these parameters."""
    found = {
        name: [one for one in parameters(call) if one not in SETTINGS and not one.startswith("_")]
        for name, call in calls()
    }
    return {name: given for name, given in found.items() if given} | {name: ["value"] for name in mechanisms()}


def matches(name: str, patterns: Any) -> list[str]:
    """The patterns that a name fits."""
    return [pattern for pattern in patterns if fnmatchcase(name, pattern)]
