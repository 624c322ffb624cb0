"""Statistics for the population: the released numbers move by at most 1 in all, whatever a record holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import discreet as dp

from ..checking import Call
from ..containers import Container, objects, of_plain
from ..distances import largest, total
from .studies import book
from .tables import ADDED, EXTREMES, PAIR, PEOPLE, PERSON, REPLACED, SOURCES, WAYS, opened

RANGES: dict[str, Any] = {"between": {"x": (0, 1), "n": (0, 6)}, "epsilon": 1}


def numbers(found: Any) -> Any:
    """The numbers that were released for an estimate."""
    inner = found._inference
    inner = getattr(inner, "of_rows", getattr(inner, "inner", inner))
    return inner.shares.numbers


METHODS: dict[str, Callable[[Any], Any]] = {
    "mean": lambda s: numbers(s.mean("x", **PAIR)),
    "mean of whole": lambda s: numbers(s.mean("n", between=(0, 6), epsilon=1)),
    "proportion": lambda s: numbers(s.proportion("c", value="a", epsilon=1)),
    "compare": lambda s: numbers(s.compare("x", by={"c": ["a", "b"]}, **PAIR)),
    "paired": lambda s: numbers(s.paired("x", "n", between=(0, 6), epsilon=1)),
    "ratio": lambda s: numbers(s.ratio("x", "n", **RANGES)),
    "variance": lambda s: numbers(s.variance("x", **PAIR)),
}
COVERS = tuple(
    f"stats.TableStatistics.{name}" for name in ("mean", "proportion", "compare", "paired", "ratio", "variance")
)


def asked(method: Callable[[Any], Any], unit: Any = ADDED, **given: Any) -> Callable[[Any], Any]:
    return lambda source: method(opened(source, unit, **given).stats)


def found_first(source: Any) -> Any:
    """A range that is found: its ends stay, and the numbers move by at most 1."""
    found = opened(source).stats.mean("x", epsilon=1)
    return [repr(found.assumed), numbers(found)]


SHARED: dict[str, Any] = {
    "base": PEOPLE, "moved": total, "containers": SOURCES, "ways": WAYS, "extremes": EXTREMES, "together": 60,
}  # fmt: skip
COLUMN: dict[str, Container] = {
    "list": of_plain(list),
    "objects": of_plain(objects),
    "doubles": of_plain(lambda rows: np.array(rows, dtype=np.float64)),
}
ARRAYS: dict[str, Callable[[Any], Any]] = {
    "mean": lambda v: dp.stats.mean(v, ledger=book(ADDED), **PAIR),
    "variance": lambda v: dp.stats.variance(v, ledger=book(ADDED), **PAIR),
    "proportion": lambda v: dp.stats.proportion(v, value=0.5, epsilon=1, ledger=book(ADDED)),
    "compare": lambda v: dp.stats.compare(v, v, groups=[0.25, 0.5], ledger=book(ADDED), **PAIR),
    "paired": lambda v: dp.stats.paired(v, v, ledger=book(ADDED), **PAIR),
    "ratio": lambda v: dp.stats.ratio(v, v, between=((0, 1), (0, 1)), epsilon=1, ledger=book(ADDED)),
}
FORMULA: dict[str, Any] = {"between": {"v": (0, 1), "w": (0, 1)}, "epsilon": 1}
GROUPS: dict[str, Any] = {"groups": [0.25, 0.5], "epsilon": 1}


def _any_cells(column: Any) -> bool:
    """Whether a container may hold true and false."""
    return isinstance(column, list) or column.dtype == object


OTHER_ARRAYS: dict[str, Callable[[Any], Any]] = {
    "quantile": lambda v: dp.stats.quantile(v, ledger=book(ADDED), **PAIR)._inference.counts.values,
    "correlation": lambda v: repr(
        dp.stats.correlation(v, v, between=((0, 1), (0, 1)), epsilon=1, ledger=book(ADDED)).what
    ),
    "risk_ratio": lambda v: repr(dp.stats.risk_ratio(v, v, ledger=book(ADDED), **GROUPS).what) if _any_cells(v) else "",
    "chi2": lambda v: dp.stats.chi2(v, expected={0.25: 0.5, 0.5: 0.5}, epsilon=1, ledger=book(ADDED)).value,
    "anova": lambda v: repr(dp.stats.anova(v, v, between=(0, 1), ledger=book(ADDED), **GROUPS).test),
    "mann_whitney": lambda v: repr(dp.stats.mann_whitney(v, v, between=(0, 1), ledger=book(ADDED), **GROUPS).test),
    "kruskal": lambda v: repr(dp.stats.kruskal(v, v, between=(0, 1), ledger=book(ADDED), **GROUPS).test),
    "wilcoxon": lambda v: repr(dp.stats.wilcoxon(v, ledger=book(ADDED), **PAIR).test),
    "permutation": lambda v: repr(
        dp.stats.permutation(v, v, between=(0, 1), permutations=19, ledger=book(ADDED), **GROUPS).test
    ),
    "ols": lambda v: repr(dp.stats.ols({"v": v, "w": v}, "v ~ w", ledger=book(ADDED), **FORMULA).value.keys()),
    "logistic": lambda v: (
        repr(
            dp.stats.logistic(
                {"v": v, "w": v}, "v ~ w", between={"w": (0, 1)}, epsilon=1, ledger=book(ADDED)
            ).value.keys()
        )
        if _any_cells(v)
        else ""
    ),
    "poisson": lambda v: repr(dp.stats.poisson({"v": v, "w": v}, "v ~ w", ledger=book(ADDED), **FORMULA).value.keys()),
}
"""Statistics of arrays whose numbers are tried as those of a table: here, that every array can be read."""

CALLS: list[Call] = [
    *(Call(name=f"stats.{name}", covers=COVERS, run=asked(method), most=1, heavy=3, **SHARED)
      for name, method in METHODS.items()),
    Call(name="stats.mean of people", covers=COVERS, heavy=3, most=1, **SHARED,
         run=asked(METHODS["mean"], PERSON, rows_per_person=2)),
    Call(name="stats.compare of people", covers=COVERS, heavy=3, most=1, **SHARED,
         run=asked(METHODS["compare"], PERSON, rows_per_person=2)),
    Call(name="stats.mean, replaced", covers=COVERS, run=asked(METHODS["mean"], REPLACED), most=2, heavy=3,
         replaced=True, **SHARED),
    Call(name="stats.mean, range found", covers=COVERS, run=found_first, most=1, heavy=3, **SHARED),
    *(Call(name=f"dp.stats.{name}", covers=(f"stats.{name}",), base=[0.5, 0.25, 0.75, 0.5, 1.0] * 20, moved=total,
           most=1, run=lambda v, run=run: numbers(run(v)), containers=COLUMN, extremes=(0.0, 1.0), together=20,
           heavy=1)
      for name, run in ARRAYS.items()),
    *(Call(name=f"dp.stats.{name}", covers=(f"stats.{name}",), base=[0.5, 0.25, 0.75, 0.5, 1.0] * 20, moved=largest,
           most=1, run=run, containers=COLUMN, extremes=(0.0, 1.0), together=20, heavy=3)
      for name, run in OTHER_ARRAYS.items()),
]  # fmt: skip
