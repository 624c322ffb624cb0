"""Studies, holdouts and leaderboards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import discreet as dp

from ..checking import Call
from ..containers import Container, arrow_of, objects, of_plain, polars_of, series_of, table_of_objects
from ..distances import largest

BIG = 2**53 + 1
PEOPLE = [[(k % 10) / 10, "ab"[k % 2]] for k in range(120)]
NAMES = ("x", "c")
REPLACED = dp.row(neighbors="replace")


def book(unit: Any) -> Any:
    """A ledger of its own: nothing that was asked before is remembered."""
    return dp.Ledger.open(":memory:", protects=unit, limit=dp.Approx(epsilon=10**5, delta=0.1))


def columns(make: Callable[[dict[str, Any]], Any], number: Any, text: Any) -> Container:
    """Two columns, one of numbers and one of text."""

    def made(rows: list[Any]) -> Any:
        table = table_of_objects(rows, 2)
        return make({"x": number(list(table[:, 0])), "c": text(list(table[:, 1]))})

    return of_plain(made)


def typed(cells: list[Any]) -> Any:
    """Doubles, as numpy has them."""
    return np.array(cells, dtype=np.float64)


def objects_of(cells: list[Any]) -> Any:
    """Objects, as pandas has them."""
    return pd.Series(objects(cells), dtype=object)


SAMPLES: dict[str, Container] = {
    "floats and objects": columns(dict, typed, objects),
    "objects": columns(dict, objects, objects),
    "lists": columns(dict, list, list),
    "floats and U": columns(dict, typed, lambda cells: np.array(cells, dtype="U9")),
    "pandas objects": columns(pd.DataFrame, objects_of, objects_of),
    "pandas typed": columns(pd.DataFrame, lambda c: series_of(c, "Float64"), lambda c: series_of(c, "string")),
    "polars": columns(pl.DataFrame, lambda c: polars_of(c, pl.Float64), lambda c: polars_of(c, pl.String)),
    "arrow": columns(pa.table, lambda c: arrow_of(c, pa.float64()), lambda c: arrow_of(c, pa.string())),
    "arrow decimal": columns(pa.table, lambda c: arrow_of(c, pa.decimal128(20, 3)), lambda c: arrow_of(c, pa.string())),
}
WAYS: dict[str, Any] = {"number": lambda odd: [odd, "a"], "text": lambda odd: [0.5, odd]}
TYPED = ("floats and objects", "pandas typed", "polars", "arrow")
SHARED: dict[str, Any] = {
    "base": PEOPLE, "moved": largest, "containers": SAMPLES, "replaced": True, "together": 40, "most": 1 / 120 + 1e-5,
    "ways": WAYS | {"record": lambda odd: odd}, "extremes": ([1.0, "a"], [0.0, "b"]),
}  # fmt: skip


def asked(question: Callable[[Any], Any], unit: Any = REPLACED, **given: Any) -> Callable[[Any], Any]:
    """The mean of one question, under a ledger."""

    def run(sample: Any) -> Any:
        return dp.adaptive.study(sample, queries=3, ledger=book(unit), **given).mean(question).value

    return run


def open_study(sample: Any) -> Any:
    """Without a ledger, and with both columns."""
    study = dp.adaptive.study(sample, queries=9)
    return [study.mean(lambda rows: rows["c"] == "a").value, study.mean(lambda rows: rows["x"] > 0.45).value]


def moments(sample: Any) -> Any:
    """A covariance and a correlation, from three means each."""
    study = dp.adaptive.study(sample, queries=9, ledger=book(REPLACED))
    both = (lambda rows: rows["x"]), (lambda rows: rows["c"] == "a")
    return [study.covariance(*both).value, study.correlation(*both).value / 20]


def held_out(sample: Any) -> Any:
    """A holdout that is asked two statistics."""
    train = {"x": np.linspace(0, 1, 50), "c": np.array(["a", "b"] * 25, dtype=object)}
    holdout = dp.adaptive.holdout(train, sample, queries=4, ledger=book(REPLACED), method="gaussian")
    return [holdout.check(lambda rows: rows["x"]).value, holdout.check(lambda rows: rows["c"] == "a").value]


def scored(sample: Any) -> Any:
    """A model that a scorer asks about."""

    class Model:
        def predict(self, table: Any) -> Any:
            return np.where(np.asarray(table)[:, 0] > 0.4, "a", "b")

    study = dp.adaptive.study(sample, queries=3, ledger=book(REPLACED))
    return dp.adaptive.scorer(study, features=["x"], target="c")(Model())


LABELED = ["a", "b", "a", "b", "b", "a"] * 16
LABELS: dict[str, Container] = {
    "objects": of_plain(objects),
    "list": of_plain(list),
    "tuple": of_plain(tuple),
    "U": of_plain(lambda cells: np.array(cells, dtype="U9")),
    "pandas objects": of_plain(objects_of),
    "pandas string": of_plain(lambda cells: series_of(cells, "string")),
    "polars": of_plain(lambda cells: polars_of(cells, pl.String)),
    "arrow": of_plain(lambda cells: arrow_of(cells, pa.string())),
}
NUMBERED = [0, 1, 0.5, 1, 0, 0] * 16


def submitted(loss: str, predictions: Any) -> Callable[[Any], Any]:
    """The score of a submission against labels."""

    def run(labels: Any) -> Any:
        board = dp.adaptive.leaderboard(labels, loss, submissions=2, ledger=book(REPLACED))
        return board.submit(predictions).value

    return run


CALLS: list[Call] = [
    Call(name="Study.mean of a number", covers=("adaptive.study", "adaptive.Study.mean"),
         run=asked(lambda rows: rows["x"]), heavy=2, **SHARED),
    Call(name="Study.mean of text", covers=("adaptive.study", "adaptive.Study.mean"),
         run=asked(lambda rows: rows["c"] == "a"), heavy=2, **SHARED),
    Call(name="Study.mean of both", covers=("adaptive.study", "adaptive.Study.mean"),
         run=asked(lambda rows: (rows["x"] > 0.45) & (rows["c"] == "a")), heavy=1, **SHARED),
    Call(name="Study.mean, rows added", covers=("adaptive.study",),
         run=asked(lambda rows: rows["x"], dp.row(), size=120), heavy=2, **(SHARED | {"replaced": False})),
    Call(name="study without a ledger", covers=("adaptive.study",), run=open_study, heavy=1,
         **(SHARED | {"containers": {n: SAMPLES[n] for n in TYPED}})),
    Call(name="Study.covariance", covers=("adaptive.Study.covariance", "adaptive.Study.correlation"), run=moments,
         heavy=2, **(SHARED | {"most": None})),
    Call(name="Holdout.check", covers=("adaptive.holdout", "adaptive.Holdout.check"), run=held_out, heavy=2, **SHARED),
    Call(name="scorer", covers=("adaptive.scorer",), run=scored, heavy=2, **SHARED),
    Call(name="Leaderboard.submit", covers=("adaptive.leaderboard", "adaptive.Leaderboard.submit"), base=LABELED,
         run=submitted("zero_one", np.array(["a", "b"] * 48, dtype=object)), moved=largest, most=1 / 96 + 1e-5,
         containers=LABELS, replaced=True, together=24, heavy=1, extremes=("a", "b")),
    Call(name="Leaderboard.submit of numbers", covers=("adaptive.leaderboard", "adaptive.Leaderboard.submit"),
         base=NUMBERED, run=submitted("absolute", np.linspace(0, 1, 96)), moved=largest, most=1 / 96 + 1e-5,
         containers={"floats": of_plain(typed), "pandas Float64": of_plain(lambda c: series_of(c, "Float64")),
                     "arrow": of_plain(lambda c: arrow_of(c, pa.float64())), "objects": LABELS["objects"],
                     "list": LABELS["list"]},
         replaced=True, together=24, heavy=1, extremes=(1.0, 0.0)),
]  # fmt: skip
