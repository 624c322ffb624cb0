"""Estimators, densities and curves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import discreet as dp
from discreet import learn, testing
from discreet.mechanisms.learning.descent.descent import Descent
from discreet.mechanisms.learning.descent.tuned import TunedDescent
from discreet.mechanisms.selection.private_selection import NegativeBinomialTries, Selection
from discreet.rows import table

from ..checking import Call
from ..containers import Container, Odd, arrow_of, objects, of_plain, rows_in, table_of_objects
from ..distances import largest, reports

GOAL: dict[str, Any] = {"epsilon": 5, "delta": 1e-5}
ENDS = [(-1.0, 1.0), (-1.0, 1.0)]
"""Declared, so that a list of rows has a public width."""
BIG = 2**53 + 1


@dataclass(frozen=True)
class Example:
    """A row of features and its label."""

    row: Any
    label: Any


def parts(records: Sequence[Example]) -> tuple[list[Any], list[Any]]:
    """Rows, and labels."""
    return [one.row for one in records], [one.label for one in records]


def both(rows: Callable[[list[Any]], Any], labels: Callable[[list[Any]], Any]) -> Container:
    """A pair (X, y)."""

    def made(records: list[Any]) -> Any:
        first, second = parts(records)
        return rows(first), labels(second)

    return of_plain(made)


def one_cell_labels_but_the_odd(records: Sequence[Any]) -> Any:
    """Labels in rows of one cell, the odd one bare."""
    known = [one.value if isinstance(one, Odd) else one for one in records]
    labels = [one.value.label if isinstance(one, Odd) else [one.label] for one in records]
    return [one.row for one in known], labels


def matrix(rows: list[Any]) -> Any:
    """Numbers in a matrix."""
    return table_of_objects(rows, 2).astype(np.float64)


def frame(rows: list[Any], dtype: Any = object) -> Any:
    """Columns a and b of pandas."""
    table = table_of_objects(rows, 2)
    return pd.DataFrame({name: pd.Series(list(table[:, k]), dtype=dtype) for k, name in enumerate("ab")})


def arrow(rows: list[Any]) -> Any:
    """Columns a and b of Arrow, with a type."""
    table = table_of_objects(rows, 2)
    return pa.table({name: arrow_of(list(table[:, k]), pa.float64()) for k, name in enumerate("ab")})


def arrow_labels(labels: list[Any]) -> Any:
    """Labels with the type that most of them have."""
    text = sum(isinstance(label, str) for label in labels) > len(labels) / 2
    return arrow_of(labels, pa.string() if text else pa.float64() if 0.8 in labels or 1.0 in labels else pa.int64())


def tuples(rows: list[Any]) -> list[Any]:
    """Rows as tuples, but for what is no row."""
    return [tuple(row) if isinstance(row, list) else row for row in rows]


PAIRS: dict[str, Container] = {
    "lists": both(list, list),
    "tuples": both(tuples, tuple),
    "tuple of lists": both(tuple, list),
    "labels in one-cell rows": both(list, lambda labels: [[label] for label in labels]),
    "labels in one-cell rows but the odd": one_cell_labels_but_the_odd,
    "labels in one-cell tuples": both(list, lambda labels: [(label,) for label in labels]),
    "objects": both(lambda rows: table_of_objects(rows, 2), objects),
    "objects of rows": both(objects, objects),
    "matrix and objects": both(matrix, objects),
    "matrix and list": both(matrix, list),
    "matrix and one column of objects": both(matrix, lambda labels: objects(labels).reshape(-1, 1)),
    "matrix and floats": both(matrix, lambda labels: np.array(labels, dtype=np.float64)),
    "pandas objects": both(frame, lambda labels: pd.Series(labels, dtype=object)),
    "pandas Float64": both(lambda rows: frame(rows, "Float64"), lambda labels: pd.Series(labels, dtype=object)),
    "polars": both(lambda rows: pl.DataFrame(table_of_objects(rows, 2).astype(float), schema=["a", "b"]), list),
    "arrow": both(arrow, list),
    "arrow and arrow": both(arrow, arrow_labels),
}


def odd_ways(label: Any) -> dict[str, Any]:
    """Where in an example something odd can be; the rest of it is valid."""
    return {
        "cell": lambda odd: Example([odd, 0.5], label),
        "label": lambda odd: Example([0.5, 0.5], odd),
        "row": lambda odd: Example(odd, label),
        "longer": lambda odd: Example([0.5, 0.5, odd], label),
        "shorter": lambda odd: Example([odd], label),
        "record": lambda odd: odd if isinstance(odd, Example) else Example(odd, odd),
    }


def examples(labels: Sequence[Any], count: int = 240) -> list[Example]:
    """Rows in the unit square, each with one of the labels by the side it is on."""
    grid = [((k * 7) % 16 / 16 - 0.5, (k * 5) % 12 / 12 - 0.4) for k in range(count)]
    return [Example([x, y], labels[int(x + y > 0) % len(labels)]) for x, y in grid]


def numbers(count: int = 240) -> list[Example]:
    """The same rows with a number to be learned; some rows hold numbers that are whole, or beyond every bound."""
    rows = [Example(one.row, 0.8 * one.row[0] - 0.3 * one.row[1]) for one in examples((0, 1), count)]
    return [*rows, Example([1, 0], 1), Example([BIG, -BIG], 0), Example([0, 0], BIG)]


def value_of(fit: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What a fit releases; of a search, the weights that it found."""

    def run(held: Any) -> Any:
        value = fit(held).release_.value
        return value["output"]["weights"] if "output" in value else value

    return run


def fitted(make: Callable[[], Any]) -> Callable[[Any], Any]:
    """Fit to (X, y)."""
    return lambda held: make().fit(*held)


def with_extremes(ways: dict[str, Any]) -> dict[str, Any]:
    """The ways, and the valid examples as they are."""
    return ways | {"record": lambda odd: odd if isinstance(odd, Example) else Example(odd, odd)}


QUICK = ("GaussianNB of large", "LogisticRegression of three", "Ridge")
"""In the quick tests of these every record is tried: the others read theirs in the same way."""


def of_estimator(name: str, make: Callable[[], Any], base: list[Example], most: float | None, **given: Any) -> Call:
    """An estimator that is fitted to (X, y); its released numbers are what moves."""
    return Call(
        name=given.pop("called", name), covers=(f"learn.{name}.fit",), base=base, run=value_of(fitted(make)),
        moved=largest, most=most, containers=PAIRS, ways=odd_ways(base[0].label), together=40,
        heavy=given.pop("heavy", 2 if given.get("called") not in QUICK and name not in QUICK else 1),
        extremes=given.pop("extremes", (Example([0.7, 0.7], base[0].label), Example([-1, 0], base[1].label))), **given,
    )  # fmt: skip


class Priced(TunedDescent):
    """A search whose price is not worked out, which takes seconds: only what it reads is looked at here."""

    def guarantee(self, sensitivity: Any = None) -> dp.Approx:
        return dp.Approx(epsilon=5, delta=1e-5, protects=dp.row())


class Searching(learn.PrivateSearch):
    """A search that was planned before."""

    def _tuned(self, features: int, models: list[Any]) -> TunedDescent:
        run = dp.ZeroConcentrated(rho=2, protects=dp.row())
        described = models[0]._described(features, None) | {"progress": None}
        return Priced(
            candidates=(Descent.for_guarantee(dp.ZeroConcentrated(rho=1), unit=dp.row(), **described),),
            selection=Selection(tries=NegativeBinomialTries.for_mean(1.01), run=run, delta=1e-5),
            scoring=dp.Gaussian(stddev=1, step=1),
        )


def two_columns(rows: Any) -> Any:
    """Features that are the rows themselves: of a list, those of two cells."""
    return table(rows, None if hasattr(rows, "shape") else 2)


CLASSES = {"whole": (0, 1), "text": ("no", "yes"), "large": (BIG, BIG + 2), "three": ("a", 7, 2.5)}
FAR = (Example([1.0, 0.0], 1.0), Example([-1.0, 0.0], 1.0), Example([0.0, -1.0], -1.0), Example([0.7, 0.7], -1.0))
FEW: dict[str, Any] = {"steps": 3, "n_samples": 240, "feature_ranges": ENDS, **GOAL}
PLAIN: dict[str, Any] = {"feature_ranges": ENDS, **GOAL}

ESTIMATORS: list[Call] = [
    *(
        of_estimator(
            "GaussianNB", lambda c=classes: learn.GaussianNB(classes=list(c), feature_ranges=ENDS, **GOAL),
            examples(classes), 1, called=f"GaussianNB of {name}",
        )
        for name, classes in CLASSES.items()
    ),
    *(
        of_estimator(
            "LogisticRegression", lambda c=classes: learn.LogisticRegression(classes=list(c), **FEW),
            examples(classes), None, called=f"LogisticRegression of {name}",
            extremes=tuple(Example(far.row, label) for far in FAR for label in classes),
        )
        for name, classes in CLASSES.items()
    ),
    of_estimator("LinearSVC", lambda: learn.LinearSVC(classes=[0, 1], **FEW), examples((0, 1)), None,
                 extremes=tuple(Example(far.row, label) for far in FAR for label in (0, 1))),
    of_estimator("LinearRegression", lambda: learn.LinearRegression(**PLAIN), numbers(), 1 + 1e-6, extremes=FAR),
    of_estimator("Ridge", lambda: learn.Ridge(**PLAIN), numbers(), 1 + 1e-6, extremes=FAR),
    of_estimator("HuberRegressor", lambda: learn.HuberRegressor(**FEW), numbers(), None, extremes=FAR),
    of_estimator("QuantileRegressor", lambda: learn.QuantileRegressor(**FEW), numbers(), None, extremes=FAR),
    of_estimator("PoissonRegressor", lambda: learn.PoissonRegressor(target_bound=2, **FEW), numbers(), None,
                 extremes=(*FAR, Example([1.0, 0.0], 2.0), Example([0.0, -1.0], 2.0))),
    of_estimator(
        "AdditiveClassifier",
        lambda: learn.AdditiveClassifier(classes=["no", "yes"], ranges=ENDS, n_samples=240, steps=3, **GOAL),
        examples(("no", "yes")), None,
        extremes=tuple(Example(far.row, label) for far in FAR for label in ("no", "yes")),
    ),
    of_estimator(
        "AdditiveRegressor",
        lambda: learn.AdditiveRegressor(ranges=ENDS, target_range=(-1, 1), n_samples=240, steps=3, **GOAL),
        numbers(), None, extremes=FAR,
    ),
    of_estimator(
        "FeatureClassifier",
        lambda: learn.FeatureClassifier(features=two_columns, classes=["no", "yes"], n_samples=240, steps=3, **GOAL),
        examples(("no", "yes")), None,
        extremes=tuple(Example(far.row, label) for far in FAR for label in ("no", "yes")),
    ),
    of_estimator(
        "BoostedTreesClassifier",
        lambda: learn.BoostedTreesClassifier(classes=["no", "yes"], ranges=ENDS, n_samples=240, rounds=3, **GOAL),
        examples(("no", "yes")), None,
        extremes=tuple(Example(far.row, label) for far in FAR for label in ("no", "yes")),
    ),
    of_estimator(
        "BoostedTreesRegressor",
        lambda: learn.BoostedTreesRegressor(ranges=ENDS, target_range=(-1, 1), n_samples=240, rounds=3, **GOAL),
        numbers(), None, extremes=FAR,
    ),
    of_estimator(
        "RandomForestClassifier",
        lambda: learn.RandomForestClassifier(classes=["no", "yes"], ranges=ENDS, n_samples=240, n_estimators=3, **GOAL),
        examples(("no", "yes")), None,
        extremes=tuple(Example(far.row, label) for far in FAR for label in ("no", "yes")),
    ),
    of_estimator(
        "RandomForestRegressor",
        lambda: learn.RandomForestRegressor(ranges=ENDS, target_range=(-1, 1), n_samples=240, n_estimators=3, **GOAL),
        numbers(), None, extremes=FAR,
    ),
    of_estimator(
        "PrivateSearch",
        lambda: Searching(learn.LogisticRegression(classes=["no", "yes"], n_samples=240, feature_ranges=ENDS),
                          [{"steps": 2}], **GOAL),
        examples(("no", "yes")), None, frozen=True,
        extremes=tuple(Example(far.row, label) for far in FAR for label in ("no", "yes")),
    ),
]  # fmt: skip

ROWS = [one.row for one in numbers()]
IN_A_ROW = {
    "record": lambda odd: odd,
    "cell": lambda odd: [odd, 0.5],
    "last cell": lambda odd: [0.5, odd],
    "longer": lambda odd: [0.5, 0.5, odd],
    "shorter": lambda odd: [odd],
}
CORNERS = ([1.0, 1.0], [-1.0, 0.0], [0.0, -1.0])


def of_rows(name: str, run: Callable[[Any], Any], most: float | None, **given: Any) -> Call:
    """Rows without labels."""
    given.setdefault(
        "heavy", 2 if name.startswith(("Gaussian", "KMeans", "PCA", "Standard")) and name != "PCA.fit" else 1
    )
    if name.startswith("GaussianMixture"):  # each corner may tip the next step of a fit to its other side
        given.setdefault("extremes", (*CORNERS, [1.0, -1.0], [-1.0, 1.0]))
    return Call(
        name=name, covers=given.pop("covers", (f"learn.{name}",)), base=given.pop("base", ROWS), run=run, most=most,
        moved=given.pop("moved", largest), containers=given.pop("containers", rows_in(2)),
        ways=given.pop("ways", IN_A_ROW), together=given.pop("together", 20), extremes=given.pop("extremes", CORNERS),
        **given,
    )  # fmt: skip


def fits(make: Callable[[], Any]) -> Callable[[Any], Any]:
    """What a fit to rows releases."""
    return lambda rows: make().fit(rows).release_.value


def known(make: Callable[[], Any]) -> Any:
    """A model that was fitted before, to rows without anything odd."""
    with testing.no_noise():
        return make().fit(np.array(ROWS, dtype=float))


SCALER = learn.StandardScaler(feature_ranges=ENDS, **GOAL)
MODELS: dict[str, Any] = {
    "StandardScaler": known(lambda: SCALER),
    "RangeScaler": known(lambda: learn.RangeScaler(feature_ranges=ENDS)),
    "PCA": known(lambda: learn.PCA(1, **PLAIN)),
    "KMeans": known(lambda: learn.KMeans(2, rounds=2, **PLAIN)),
    "Bins": known(lambda: learn.Bins(ranges=ENDS)),
    "Bins of choices": learn.Bins(categories=[[0, 1, BIG], ["f", "m"]], encode="onehot").fit([[0, "f"]]),
    "GaussianMixture": known(lambda: learn.GaussianMixture(2, rounds=1, **PLAIN)),
    "OneHot": learn.OneHot(categories=[[0, 1, BIG], ["f", "m"]]).fit([[0, "f"]]),
}
CLASSED = learn.LogisticRegression(classes=[0, 1], **FEW)
with testing.no_noise():
    CLASSED.fit(np.array([one.row for one in examples((0, 1))]), [one.label for one in examples((0, 1))])
IMAGES = learn.Scattering(shape=(8, 8), scales=1, angles=2).fit(np.zeros((1, 64)))
PIXELS = [[(k * place % 7) / 7 for place in range(64)] for k in range(60)]
IN_AN_IMAGE = {
    "record": lambda odd: odd,
    "pixel": lambda odd: [odd, *PIXELS[1][1:]],
    "longer": lambda odd: [*PIXELS[1], odd],
    "shorter": lambda odd: [odd],
}
WIDE = {name: made for name, made in rows_in(64).items() if name in ("rows", "tuples", "float64", "objects of rows")}
BLANK = ([0.0] * 64, [1.0] * 64)
CELLS = {"record": lambda odd: odd, "number": lambda odd: [odd, "f"], "choice": lambda odd: [1, odd]}

UNLABELLED: list[Call] = [
    of_rows("StandardScaler.fit", fits(lambda: learn.StandardScaler(feature_ranges=ENDS, **GOAL)), 1 + 1e-6),
    # the radius that is found may change, and with it all moments; test_cluster_mutants.py has the distances
    of_rows("PCA.fit", fits(lambda: learn.PCA(1, **PLAIN)), None),
    of_rows("PCA.fit, private center", fits(lambda: learn.PCA(1, center="private", **PLAIN)), None,
            covers=("learn.PCA.fit",)),
    of_rows("KMeans.fit", fits(lambda: learn.KMeans(2, rounds=2, **PLAIN)), None),
    of_rows("KMeans.fit, pure", fits(lambda: learn.KMeans(2, rounds=1, **{**PLAIN, "delta": 0})), None,
            covers=("learn.KMeans.fit",)),
    of_rows("GaussianMixture.fit", fits(lambda: learn.GaussianMixture(2, rounds=1, **PLAIN)), None),
    of_rows("GaussianMixture.fit, diag",
            fits(lambda: learn.GaussianMixture(2, rounds=1, covariance_type="diag", **PLAIN)), None,
            covers=("learn.GaussianMixture.fit",)),
    of_rows("GaussianMixture.fit_predict",
            lambda rows: learn.GaussianMixture(2, rounds=1, **PLAIN).fit_predict(rows),
            1, base=[[-0.9, -0.9]] * 26 + [[0.9, 0.9]] * 14, moved=reports, replaced=True, extremes=()),
    of_rows("KMeans.fit_predict", lambda rows: learn.KMeans(2, rounds=1, **PLAIN).fit_predict(rows),
            1, base=[[-0.9, -0.9]] * 26 + [[0.9, 0.9]] * 14, moved=reports, replaced=True, extremes=()),
    *(
        of_rows(f"{name}.{what}", getattr(MODELS[name], what), 1, moved=reports, replaced=True)
        for name, what in (("StandardScaler", "transform"), ("StandardScaler", "inverse_transform"),
                           ("RangeScaler", "transform"), ("RangeScaler", "inverse_transform"),
                           ("PCA", "transform"), ("KMeans", "transform"), ("KMeans", "predict"),
                           ("GaussianMixture", "predict"), ("GaussianMixture", "predict_proba"),
                           ("GaussianMixture", "score_samples"))
    ),
    of_rows("PCA.inverse_transform", MODELS["PCA"].inverse_transform, 1, base=[[0.5], [1], [BIG], [-0.25]] * 20,
            containers=rows_in(1), ways={"record": lambda odd: odd, "cell": lambda odd: [odd]}, extremes=(),
            moved=reports, replaced=True),
    of_rows("RangeScaler.fit", lambda rows: learn.RangeScaler(feature_ranges=ENDS).fit(rows).center_, 0),
    of_rows("OneHot.fit", lambda rows: learn.OneHot(categories=[[0, 1, BIG], ["f", "m"]]).fit(rows).categories_, 0,
            base=[[0, "f"], [1, "m"], [BIG, "f"]] * 20, ways=CELLS, extremes=()),
    of_rows("Scattering.fit", lambda rows: IMAGES.fit(rows).n_features_in_, 0, base=PIXELS, containers=WIDE,
            ways=IN_AN_IMAGE, extremes=BLANK),
    of_rows("Scattering.transform", IMAGES.transform, 1, base=PIXELS, containers=WIDE, ways=IN_AN_IMAGE,
            extremes=BLANK, moved=reports, replaced=True),
    of_rows("Bins.fit", lambda rows: [one.edges for one in learn.Bins(ranges=ENDS).fit(rows).bins_], 0),
    of_rows("Bins.transform", MODELS["Bins"].transform, 1, moved=reports, replaced=True),
    of_rows("Bins.transform of choices", MODELS["Bins of choices"].transform, 1, covers=("learn.Bins.transform",),
            base=[[0, "f"], [1, "m"], [BIG, "f"]] * 20, moved=reports, replaced=True, ways=CELLS, extremes=()),
    of_rows("OneHot.transform", MODELS["OneHot"].transform, 1, base=[[0, "f"], [1, "m"], [BIG, "f"]] * 20,
            moved=reports, replaced=True, ways=CELLS, extremes=()),
    of_rows("LogisticRegression.predict", CLASSED.predict, 1, moved=reports, replaced=True),
    of_rows("LogisticRegression.predict_proba", CLASSED.predict_proba, 1, moved=reports, replaced=True),
]  # fmt: skip


def batched(make: Callable[[], Any], features: Any = 2) -> Callable[[Any], Any]:
    """Fit to batches of pairs, the odd row in one of them."""

    def run(held: Any) -> Any:
        rows, labels = held
        cut = len(labels) // 2
        batches = [(rows[:cut], labels[:cut]), (rows[cut:], labels[cut:])]
        return make().fit_batches(lambda: batches, features=features).release_.value

    return run


def batched_rows(make: Callable[[], Any]) -> Callable[[Any], Any]:
    """The same for rows alone."""

    def run(rows: Any) -> Any:
        cut = len(rows) // 2
        return make().fit_batches(lambda: [rows[:cut], rows[cut:]], features=2).release_.value

    return run


SLICED = {name: PAIRS[name] for name in PAIRS if "arrow" not in name and "polars" not in name}
SLICED_ROWS = {name: one for name, one in rows_in(2).items() if name not in ("arrow", "polars", "polars objects")}
BATCHES: list[Call] = [
    Call(name=f"{name}.fit_batches", covers=(f"learn.{name}.fit_batches",), base=base, run=batched(make), moved=largest,
         most=most, containers=SLICED, ways=odd_ways(base[0].label), extremes=extremes, together=40,
         heavy=2 if name != "GaussianNB" else 1)
    for name, make, base, most, extremes in (
        ("GaussianNB", lambda: learn.GaussianNB(classes=["no", "yes"], feature_ranges=ENDS, **GOAL),
         examples(("no", "yes")), 1, (Example([1, 1], "no"),)),
        ("LogisticRegression", lambda: learn.LogisticRegression(classes=["no", "yes"], **FEW),
         examples(("no", "yes")), None, tuple(Example(far.row, label) for far in FAR for label in ("no", "yes"))),
        ("Ridge", lambda: learn.Ridge(**PLAIN), numbers(), 1 + 1e-6, FAR),
        ("LinearRegression", lambda: learn.LinearRegression(**PLAIN), numbers(), 1 + 1e-6, FAR),
        ("LinearSVC", lambda: learn.LinearSVC(classes=["no", "yes"], **FEW), examples(("no", "yes")), None,
         tuple(Example(far.row, label) for far in FAR for label in ("no", "yes"))),
        ("HuberRegressor", lambda: learn.HuberRegressor(**FEW), numbers(), None, FAR),
        ("QuantileRegressor", lambda: learn.QuantileRegressor(**FEW), numbers(), None, FAR),
        ("PoissonRegressor", lambda: learn.PoissonRegressor(target_bound=2, **FEW), numbers(), None,
         (*FAR, Example([1.0, 0.0], 2.0), Example([0.0, -1.0], 2.0))),
    )
] + [
    of_rows("KMeans.fit_batches",
            batched_rows(lambda: learn.KMeans(2, rounds=2, **PLAIN)), None, containers=SLICED_ROWS),
    of_rows("StandardScaler.fit_batches", batched_rows(lambda: learn.StandardScaler(feature_ranges=ENDS, **GOAL)),
            1 + 1e-6, containers=SLICED_ROWS),
    of_rows("GaussianMixture.fit_batches",
            batched_rows(lambda: learn.GaussianMixture(2, rounds=1, **PLAIN)), None, containers=SLICED_ROWS),
    of_rows("PCA.fit_batches", batched_rows(lambda: learn.PCA(1, **PLAIN)), None,
            containers={n: c for n, c in rows_in(2).items() if n not in ("arrow", "polars")}),
]  # fmt: skip

CALLS: list[Call] = [*ESTIMATORS, *UNLABELLED, *BATCHES]
