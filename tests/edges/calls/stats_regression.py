"""Regressions and correlations of a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..checking import Call
from ..distances import largest
from .tables import ADDED, EXTREMES, PEOPLE, PERSON, REPLACED, SOURCES, WAYS, asked

GIVEN: dict[str, Any] = {"between": {"x": (0, 1), "n": (0, 6)}, "epsilon": 1}


def sums(found: Any) -> list[float]:
    """The released sums: one row moves each by at most 1, and the number of rows by 1."""
    return [found.nobs, *next(iter(found._inferences.values())).model.numbers]


QUESTIONS: tuple[Callable[[Any], Any], ...] = (
    lambda t: sums(t.stats.ols("x ~ n", **GIVEN)),
    lambda t: sums(t.stats.ols("x ~ n + c", **GIVEN, levels={"c": ["a", "b"]}, robust="HC")),
    lambda t: sums(t.stats.ols("x ~ n*c - 1", **GIVEN, levels={"c": ["a", "b"]}, delta=1e-5)),
    lambda t: t.stats.poisson("n ~ x", **GIVEN).nobs,
    lambda t: list(t.stats.correlation("x", "n", **GIVEN)._inference.numbers),
)
SHARED: dict[str, Any] = {
    "base": PEOPLE, "moved": largest, "containers": SOURCES, "ways": WAYS, "extremes": EXTREMES, "together": 60,
}  # fmt: skip
COVERS = tuple(f"stats.TableStatistics.{name}" for name in ("ols", "poisson", "correlation"))
CALLS: list[Call] = [
    Call(name="regressions of rows", covers=COVERS, run=asked(*QUESTIONS, unit=ADDED), most=1.01, heavy=2, **SHARED),
    Call(name="regressions of replaced rows", alike=True, covers=COVERS, most=2.01, replaced=True, heavy=3,
         run=asked(*QUESTIONS, unit=REPLACED), **SHARED),
    Call(name="regressions of people", alike=True, covers=COVERS,
         run=asked(*QUESTIONS, unit=PERSON, rows_per_person=1), most=1.01, heavy=3, **SHARED),
]  # fmt: skip
