"""Everything that leaves by a public call, each made from rows in which canaries are planted: see `walk.py`."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from sklearn.pipeline import make_pipeline

import discreet as dp
from discreet.audit import audit
from discreet.datasets.database import Database
from discreet.functions import curves
from discreet.functions.density import density_of
from discreet.functions.regression import regression_curve

from .walk import NUMBER, TEXT, WHOLE, Planted

Made = Callable[[Planted, Any], Any]
RELEASED: dict[str, Made] = {}
PEOPLE, ROWS = 40, 2
GOAL = dp.Approx(epsilon=1, delta=1e-6)
CITIES = ["Bled", "Koper"]
TYPES = {"pid": "text", "age": "integer", "cost": "number", "city": "text"}


def ledger(person: str | None = "pid", **terms: Any) -> dp.Ledger:
    unit = dp.row() if person is None else dp.person(person)
    return dp.Ledger.open(":memory:", protects=unit, **{"limit": dp.Approx(epsilon=10_000, delta=1e-3), **terms})


def columns() -> dict[str, list[Any]]:
    """Two rows for each of forty people; the last row has the canaries."""
    count = PEOPLE * ROWS
    return {
        "pid": [*(f"p{place % PEOPLE}" for place in range(count)), f"p-{TEXT}"],
        "age": [*(20 + place % 60 for place in range(count)), WHOLE],
        "cost": [*(float(place % 50) for place in range(count)), NUMBER],
        "city": [*(CITIES[place % 2] for place in range(count)), TEXT],
    }


SOURCES: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "dict": dict,
    "arrays": lambda given: {name: np.array(values) for name, values in given.items()},
    "arrow": pa.table,
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "relation": lambda given: duckdb.from_arrow(pa.table(given)),
}


@lru_cache
def _opened(kind: str) -> tuple[Any, Any]:
    """One table for all questions: to open one takes longer than to ask."""
    source = SOURCES[kind](columns())
    return source, dp.table(source, ledger=ledger(), rows_per_person=ROWS, types=TYPES, version="1")


def opened(planted: Planted, kind: str = "arrow") -> Any:
    source, table = _opened(kind)
    planted.add(source)
    return table


def database(planted: Planted) -> Database:
    """What `connect` makes, of a table in memory."""
    planner = opened(planted)._methods._planner({"cost": (0, 100)}, {"city": CITIES})
    return Database(planner.schema, planner.engine, planner.ledger)


# --- tables and SQL ------------------------------------------------------------------------------------------

TABLE: dict[str, Callable[[Any], Any]] = {
    "count": lambda t: t.count(epsilon=1),
    "people": lambda t: t.count("people", epsilon=1),
    "sum": lambda t: t.sum("cost", between=(0, 50), epsilon=1),
    "mean": lambda t: t.mean("cost", between=(0, 50), epsilon=1, delta=1e-6),
    "mean, range found": lambda t: t.mean("cost", between="auto", epsilon=300),
    "variance": lambda t: t.variance("cost", between=(0, 50), epsilon=1),
    "median": lambda t: t.median("cost", between=(0, 50), epsilon=1),
    "few quantiles": lambda t: t.quantiles("cost", [0.1, 0.9], between=(0, 50), epsilon=1),
    "quantiles": lambda t: t.quantiles("age", [0.1, 0.3, 0.5, 0.7], between=(0, 100), epsilon=1),
    "cdf": lambda t: t.cdf("age", between=(0, 100), step=10, epsilon=1),
    "histogram": lambda t: t.histogram("city", choices=CITIES, epsilon=1),
    "count by": lambda t: t.count(epsilon=1, by={"city": CITIES}),
    "histogram of bins": lambda t: t.histogram("age", edges=[0, 50, 100], epsilon=1),
    "histogram, undeclared": lambda t: t.histogram("city", epsilon=1, delta=1e-6),
    "most common": lambda t: t.most_common("city", choices=CITIES, epsilon=1),
    "two most common": lambda t: t.most_common("city", choices=CITIES, k=2, epsilon=1),
    "synthesize": lambda t: t.synthesize({"cost": (0, 9), "city": CITIES}, epsilon=1, delta=1e-6, rounds=0),
    "density": lambda t: t.density("cost", between=(0, 50), bandwidth=5, epsilon=1, delta=1e-6),
    "explained count": lambda t: t.explain.count(epsilon=1),
    "fit": lambda t: t.fit(dp.learn.LinearRegression(target_bound=50), features={"age": (0, 100)}, target="cost"),
    "columns": lambda t: t.columns,
    "repr": repr,
}
RELEASED |= {f"table.{name}": lambda p, _, ask=ask: ask(opened(p)) for name, ask in TABLE.items()}
RELEASED |= {f"from {kind}": lambda p, _, kind=kind: opened(p, kind).count(epsilon=1) for kind in SOURCES}
GROUPS = "SELECT city, COUNT(*) AS n, SUM(cost) AS total FROM data GROUP BY city"
SQL: dict[str, Callable[[Database], Any]] = {
    "answer": lambda d: d.sql(GROUPS, epsilon=1),
    "answer, computed": lambda d: d.sql(f"{GROUPS} HAVING COUNT(*) > 3 ORDER BY n DESC LIMIT 1", epsilon=1),
    "answer, of the stored one": lambda d: (d.sql(GROUPS, epsilon=1), d.sql(GROUPS, epsilon=1))[1],
    "answer, within": lambda d: d.sql(GROUPS, within={"n": 20}),
    "explanation": lambda d: d.explain(GROUPS, epsilon=1),
    "plan": lambda d: d.plan(GROUPS, epsilon=1),
    "entries": lambda d: (d.sql(GROUPS, epsilon=1), d.ledger.entries())[1],
    "ledger": lambda d: (d.sql(GROUPS, epsilon=1), d.ledger)[1],
    "schema": lambda d: d.schema,
    "fit": lambda d: d.fit(dp.learn.LinearRegression(target_bound=50), "data", features={"age": (0, 9)}, target="cost"),
    "frames": lambda d: (d.sql(GROUPS, epsilon=1).to_pandas(), d.sql(GROUPS, epsilon=1).to_polars()),
}
RELEASED |= {f"database.{name}": lambda p, _, ask=ask: ask(database(p)) for name, ask in SQL.items()}


# --- releases and sessions -----------------------------------------------------------------------------------


def numbers(planted: Planted) -> Any:
    return planted.add(np.array([*np.linspace(0, 40, 60), NUMBER]))


def listed(planted: Planted) -> Any:
    return planted.add([*np.linspace(0, 40, 60).tolist(), NUMBER])


def words(planted: Planted) -> Any:
    return planted.add([*CITIES * 20, TEXT])


def drawn(planted: Planted, mechanism: Any, data: Any = listed, **given: Any) -> Any:
    return dp.release(data(planted), mechanism, **given)


SPACE, NEAR = dp.Interval(0, 50), dp.Integers(0, 50)
PURE = dp.Pure(epsilon=1)
BINS = dp.queries.Domain({"x": 4})
MECHANISMS: dict[str, Callable[[Planted], Any]] = {
    "query": lambda p: drawn(p, dp.Laplace(scale=50), query=dp.Sum((0, 50)), ledger=ledger(None)),
    "Laplace": lambda p: drawn(p, dp.Laplace(scale=50), numbers, sensitivity=50),
    "Laplace, a number": lambda p: dp.release(planted_number(p), dp.Laplace(scale=50), sensitivity=50),
    "Gaussian": lambda p: drawn(p, dp.Gaussian(stddev=50), numbers, sensitivity=50),
    "Exponential": lambda p: drawn(p, dp.Exponential.for_guarantee(PURE, sensitivity=1), sensitivity=1),
    "TopK": lambda p: drawn(p, dp.mechanisms.TopK.for_guarantee(PURE, k=2, sensitivity=1), sensitivity=1),
    "NoisyArgmax": lambda p: drawn(p, dp.NoisyArgmax(scale=5), sensitivity=1),
    "AboveThreshold": lambda p: drawn(
        p, dp.mechanisms.AboveThreshold.for_guarantee(PURE, threshold=9, sensitivity=1), sensitivity=1
    ),
    "UpwardSearch": lambda p: drawn(
        p, dp.mechanisms.UpwardSearch.for_guarantee(PURE, people=3, sensitivity=1), sensitivity=1
    ),
    "KeySelection": lambda p: dp.release(p.add({TEXT: 1, "Bled": 900}), dp.mechanisms.KeySelection.for_guarantee(GOAL)),
    "CommonKeys": lambda p: dp.release(
        dp.mechanisms.PersonKeys(np.arange(901), np.append(np.zeros(900, dtype=int), 1), p.add(["Bled", TEXT])),
        dp.mechanisms.CommonKeys.for_guarantee(GOAL, keys_per_person=2),
    ),
    "Quantile": lambda p: drawn(p, dp.mechanisms.Quantile.for_guarantee(PURE, space=SPACE)),
    "Quantiles": lambda p: drawn(
        p, dp.mechanisms.Quantiles.for_guarantee(PURE, space=NEAR, quantiles=[0.2, 0.7]), numbers
    ),
    "CumulativeCounts": lambda p: drawn(p, dp.mechanisms.CumulativeCounts.for_guarantee(PURE, space=NEAR), numbers),
    "RandomizedResponse": lambda p: drawn(p, dp.RandomizedResponse.for_guarantee(PURE, choices=CITIES), words),
    "Each": lambda p: drawn(p, dp.Each.for_guarantee(PURE, spaces=SPACE)),
    "Composed": lambda p: dp.release(
        (numbers(p), numbers(p)), dp.Composed(mechanisms=[dp.Laplace(scale=50)] * 2), sensitivity=(50, 50)
    ),
    "Subsampled": lambda p: drawn(
        p, dp.Subsampled(mechanism=dp.Laplace(scale=50), rate=0.5, query=dp.Sum((0, 50))), sensitivity=50
    ),
    "Shuffled": lambda p: dp.release(
        p.add([*CITIES * 500]),
        dp.Shuffled(local=dp.RandomizedResponse.for_guarantee(PURE, choices=CITIES), clients=1000),
    ),
    "MultiplicativeWeights": lambda p: dp.release(
        p.add(np.array([[place % 4] for place in range(100)])),
        dp.mechanisms.MultiplicativeWeights.for_guarantee(
            PURE, workload=dp.queries.Workload.prefixes(BINS), size=100, rounds=2
        ),
    ),
}
RELEASED |= {f"release.{name}": lambda p, _, make=make: make(p) for name, make in MECHANISMS.items()}


def planted_number(planted: Planted) -> float:
    return NUMBER


def said_by_a_stream(planted: Planted, _: Any) -> Any:
    running = dp.stream(dp.mechanisms.PrefixSums.for_guarantee(GOAL, points=8), sensitivity=1, ledger=ledger(None))
    return [running.add(value) for value in (WHOLE, 1)], running.error(), running.guarantee


RELEASED["stream"] = said_by_a_stream


def said_by_a_stream_with_buffers(planted: Planted, _: Any) -> Any:
    running = dp.stream(dp.mechanisms.StreamSums.for_guarantee(GOAL, points=8), sensitivity=1, ledger=ledger(None))
    return [running.add(value) for value in (WHOLE, 1)], running.error(), running.guarantee


RELEASED["stream with buffers"] = said_by_a_stream_with_buffers


# --- models --------------------------------------------------------------------------------------------------


def table_and_goal(planted: Planted, classes: bool = False) -> tuple[Any, Any]:
    """Features in an array and targets, each with a canary."""
    rows = np.column_stack([np.linspace(0, 1, 81), np.linspace(1, 0, 81)])
    rows[-1, 0] = NUMBER
    goal = np.arange(81) % 2 if classes else np.append(np.linspace(0, 1, 80), NUMBER)
    return planted.add(rows), planted.add(goal)


def fitted(model: Any, planted: Planted, *, classes: bool = False, framed: bool = False) -> Any:
    rows, goal = table_and_goal(planted, classes)
    return model.fit(planted.add(pd.DataFrame(rows, columns=["a", "b"])) if framed else rows, goal)


L = dp.learn
WIDE: dict[str, Any] = {"feature_ranges": [(0, 1), (0, 1)]}


def logistic(**given: Any) -> Any:
    return L.LogisticRegression(classes=[0, 1], steps=3, **given)


MODELS: dict[str, Callable[[Planted], Any]] = {
    "LinearRegression": lambda p: fitted(L.LinearRegression(), p),
    "Ridge": lambda p: fitted(L.Ridge(), p, framed=True),
    "LogisticRegression": lambda p: fitted(logistic(), p, classes=True),
    "objective": lambda p: fitted(logistic(solver="objective"), p, classes=True),
    "three classes": lambda p: fitted(L.LogisticRegression(classes=[0, 1, 2], steps=3), p, classes=True, framed=True),
    "under a ledger": lambda p: fitted(logistic(ledger=ledger(None)), p, classes=True),
    "LinearSVC": lambda p: fitted(L.LinearSVC(classes=[0, 1], steps=3), p, classes=True),
    "HuberRegressor": lambda p: fitted(L.HuberRegressor(steps=3), p),
    "PoissonRegressor": lambda p: fitted(L.PoissonRegressor(steps=3, target_bound=5), p),
    "QuantileRegressor": lambda p: fitted(L.QuantileRegressor(steps=3), p),
    "GaussianNB": lambda p: fitted(L.GaussianNB(classes=[0, 1], **WIDE), p, classes=True),
    "KMeans": lambda p: fitted(L.KMeans(n_clusters=2, **WIDE), p),
    "GaussianMixture": lambda p: fitted(L.GaussianMixture(n_components=2, **WIDE), p),
    "PCA": lambda p: fitted(L.PCA(n_components=1), p),
    "RangeScaler": lambda p: fitted(L.RangeScaler(**WIDE), p),
    "StandardScaler": lambda p: fitted(L.StandardScaler(**WIDE), p),
    "search": lambda p: fitted(L.PrivateSearch(logistic(), {"clip": [0.5, 1.0]}, tries=2), p, classes=True),
    "pipeline": lambda p: fitted(make_pipeline(L.RangeScaler(**WIDE), L.LinearRegression()), p),
    "private pipeline": lambda p: fitted(make_pipeline(L.StandardScaler(**WIDE), L.PCA(), L.LinearRegression()), p),
}
RELEASED |= {f"learn.{name}": lambda p, _, make=make: make(p) for name, make in MODELS.items()}


def batch_of(planted: Planted) -> Any:
    rows, goal = table_and_goal(planted, classes=True)
    return planted.add(pa.table({"a": rows[:, 0], "b": rows[:, 1], "y": goal}))


BATCHES: dict[str, Callable[[Planted, Any], Any]] = {
    "pairs": lambda p, _: partial(lambda pair: iter([pair]), table_and_goal(p, classes=True)),
    "list": lambda p, _: [table_and_goal(p, classes=True)],
    "arrow": lambda p, _: batch_of(p).to_batches(),
    "dataset": lambda p, _: ds.dataset(batch_of(p)),
    "parquet": lambda p, folder: pq.write_table(batch_of(p), folder / "rows.parquet") or folder / "rows.parquet",
}


def from_batches(batches: Callable[[Planted, Any], Any], model: Callable[[], Any]) -> Made:
    def make(planted: Planted, folder: Any) -> Any:
        return model().fit_batches(batches(planted, folder), features=["a", "b"], target="y")

    return make


for _name, _batches in BATCHES.items():
    RELEASED[f"fit_batches {_name}"] = from_batches(_batches, lambda: logistic())
RELEASED["fit_batches moments"] = from_batches(BATCHES["parquet"], L.LinearRegression)
RELEASED["fit_batches samples"] = from_batches(BATCHES["pairs"], lambda: logistic(sampling=0.5, n_samples=81))


# --- functions, studies, surveys -------------------------------------------------------------------------------


def many_curves(planted: Planted) -> Any:
    given = np.outer(np.linspace(0, 1, 30), np.sin(np.linspace(0, 3, 8)))
    given[-1, 3] = NUMBER
    return planted.add(given)


def targets_of(planted: Planted) -> Any:
    return planted.add(np.append(np.linspace(0, 1, 29), NUMBER))


POINTS: dict[str, Any] = {"points": np.linspace(0, 1, 8)}
FUNCTIONS: dict[str, Callable[[Planted], Any]] = {
    "density": lambda p: density_of(numbers(p), between=(0, 50), bandwidth=5, guarantee=GOAL),
    "density of a list": lambda p: density_of(listed(p), between=(0, 50), bandwidth=5, guarantee=GOAL).smooth(6),
    "regression": lambda p: regression_curve(
        numbers(p), numbers(p), between=(0, 50), bandwidth=9, guarantee=GOAL, target_bound=50, size=61
    ),
    "mean curve": lambda p: curves.MeanCurve(**POINTS).fit(many_curves(p)),
    "curve components": lambda p: curves.CurvePCA(1, **POINTS).fit(many_curves(p)),
    "curve regression": lambda p: curves.CurveRegression(**POINTS).fit(many_curves(p), targets_of(p)),
    "noisy copies": lambda p: curves.sanitized_curves(many_curves(p), **POINTS),
}
RELEASED |= {f"functions.{name}": lambda p, _, make=make: make(p) for name, make in FUNCTIONS.items()}


def people(planted: Planted) -> Any:
    given = {name: np.array(values) for name, values in columns().items()}
    return planted.add(dict(given, x=np.append(np.linspace(0, 1, PEOPLE * ROWS), NUMBER)))


def high(rows: Any) -> Any:
    return rows["x"] > 0.5


def low(rows: Any) -> Any:
    return rows["x"] < 0.5


A = dp.adaptive


def checked(planted: Planted, **given: Any) -> Any:
    return A.holdout(people(Planted()), people(planted), queries=2, overfits=1, **given).check(high)


STUDIES: dict[str, Callable[[Planted], Any]] = {
    "mean": lambda p: A.study(people(p), queries=3).mean(high),
    "mean of nobody": lambda p: A.study(people(p), queries=3, unprotected=True).mean(high),
    "under a ledger": lambda p: A.study(people(p), queries=3, ledger=ledger(), size=40).mean(high),
    "of a table": lambda p: A.study(opened(p), queries=3, size=40).mean(lambda rows: rows["cost"] > 20),
    "correlation": lambda p: A.study(people(p), queries=9).correlation(high, low),
    "covariance": lambda p: A.study(people(p), queries=9).covariance(high, low),
    "holdout": lambda p: checked(p, method="gaussian"),
    "holdout of nobody": lambda p: checked(p, method="guess and check", unprotected=True),
    "plan": lambda p: A.plan(1000, 10, methods=["gaussian"]),
    "ladder": lambda p: A.leaderboard(labels_of(p), submissions=3, unprotected=True).submit(np.zeros(81)),
    "leaderboard": lambda p: A.leaderboard(labels_of(p), submissions=3).submit(np.zeros(81)),
}
RELEASED |= {f"adaptive.{name}": lambda p, _, make=make: make(p) for name, make in STUDIES.items()}


def labels_of(planted: Planted) -> Any:
    return planted.add(np.append(np.arange(80) % 2, NUMBER))


def polled(survey: Any, values: Any) -> Any:
    reports = survey.encode_many(values)
    return reports, survey.analyze(reports)


def shuffled(poll: Any, values: Any) -> Any:
    messages = poll.encode_many(values)
    return messages, poll.analyze(messages)


LOCAL: dict[str, Callable[[Planted], Any]] = {
    "survey": lambda p: polled(dp.local.survey(choices=CITIES, epsilon=1), words(p)),
    "survey of text": lambda p: dp.local.survey(domain="strings", epsilon=1).encode_many(words(p)),
    "mean": lambda p: polled(dp.local.mean(between=(0, 50), epsilon=1), numbers(p)),
    "laplace mean": lambda p: polled(dp.local.mean(between=(0, 50), epsilon=1, method="laplace"), listed(p)),
    "rows": lambda p: polled(
        dp.local.rows({"city": CITIES, "cost": (0, 50)}, epsilon=2), {"city": words(p), "cost": listed(p)[:41]}
    ),
    "heavy hitters": lambda p: polled(dp.local.heavy_hitters(length=3, epsilon=2), words(p)),
    "sketch": lambda p: dp.local.sketch(epsilon=2).encode_many(words(p)),
    "shuffled bits": lambda p: shuffled(dp.shuffle.BitSum(clients=100, minimum=50, lie=0.3), p.add(np.arange(100) % 2)),
}
RELEASED |= {f"local.{name}": lambda p, _, make=make: make(p) for name, make in LOCAL.items()}
RELEASED["audit"] = lambda p, _: audit(
    dp.Laplace(scale=1), NUMBER, NUMBER + 1, sensitivity=1, samples=1000, confidence=0.99
)
