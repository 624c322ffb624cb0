"""Public calls on data that end in an error of ours: see `test_closed.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import discreet as dp
from discreet.audit import audit
from discreet.functions import curves
from discreet.functions.density import density_of
from discreet.functions.regression import regression_curve
from discreet.synthetic import Declared

from .released import (
    CITIES,
    GOAL,
    TYPES,
    WIDE,
    A,
    L,
    batch_of,
    columns,
    database,
    high,
    labels_of,
    ledger,
    listed,
    logistic,
    many_curves,
    numbers,
    opened,
    people,
    table_and_goal,
    words,
)
from .walk import NUMBER, TEXT, WHOLE, Planted

FAILING: dict[str, Callable[[Planted, Any], Any]] = {}
POOR: dict[str, Any] = {"limit": dp.Pure(epsilon=0.01)}


def poor_table(planted: Planted) -> Any:
    return dp.table(planted.add(columns()), ledger=ledger(**POOR), rows_per_person=2, types=TYPES)


TABLES: dict[str, Callable[[Planted], Any]] = {
    "no such column": lambda p: opened(p).sum("no", between=(0, 1), epsilon=1),
    "no range": lambda p: opened(p).sum("city", between=(0, 1), epsilon=1),
    "no condition": lambda p: opened(p).count(epsilon=1, where="no > 1"),
    "explained": lambda p: opened(p).explain.sum("no", between=(0, 1), epsilon=1),
    "quantiles": lambda p: opened(p).quantiles("cost", [0.1, 0.2, 0.3, 7], between=(0, 1), epsilon=1),
    "synthesis": lambda p: opened(p).synthesize({"city": CITIES}, epsilon=1, delta=0),
    "density": lambda p: opened(p).density(["cost", "age"], between=[(0, 1)], epsilon=1),
    "fit": lambda p: opened(p).fit(logistic(), features=["age", "no"], target="city"),
    "fit, refused below": lambda p: opened(p).fit(logistic(clip=-1), features=["age"], target="age"),
    "study": lambda p: A.study(opened(p), queries=3, accuracy=1e-9, size=40),
    "exhausted": lambda p: poor_table(p).count(epsilon=1),
    "exhausted fit": lambda p: poor_table(p).fit(logistic(), features=["age"], target="age"),
    "opened": lambda p: dp.table(
        p.add(pa.table(columns())), ledger=ledger(), rows_per_person=2, types={"cost": "date"}
    ),
    "unequal": lambda p: dp.table(p.add({"pid": [TEXT, "b"], "x": [1.0]}), ledger=ledger(), rows_per_person=2),
    "frame": lambda p: dp.table(p.add(pd.DataFrame(columns())), ledger=ledger("nobody"), rows_per_person=2),
    "sql": lambda p: database(p).sql("SELECT SUM(no) FROM data", epsilon=1),
    "sql, refused": lambda p: database(p).sql("SELECT cost FROM data", epsilon=1),
    "plan": lambda p: database(p).plan("SELECT COUNT(*) FROM no", epsilon=1),
    "database fit": lambda p: database(p).fit(logistic(), "data", features=["age"], target="no"),
}
RELEASES: dict[str, Callable[[Planted], Any]] = {
    "no sensitivity": lambda p: dp.release(listed(p), dp.Laplace(scale=1)),
    "too far": lambda p: dp.release(numbers(p), dp.Laplace(scale=1), sensitivity="far"),
    "exhausted": lambda p: dp.release(listed(p), dp.Laplace(scale=1), query=dp.Count(), ledger=ledger(None, **POOR)),
    "parts": lambda p: dp.release((listed(p),), dp.Composed(mechanisms=[dp.Laplace(scale=1)] * 2), sensitivity=1),
    "a stream": lambda p: dp.stream(dp.mechanisms.PrefixSums(points=2, stddev=1), sensitivity=1).add(
        p.add([1, 2, WHOLE])
    ),
    "a stream with buffers": lambda p: dp.stream(dp.mechanisms.StreamSums(points=2, stddev=1), sensitivity=1).add(
        p.add([1, 2, WHOLE])
    ),
    "audit": lambda p: audit(lambda data, size: [1], listed(p), listed(p), samples=8, epsilon=1),
    "a sum": lambda p: dp.Sum((0, 50))(p.add(np.full((2, 2), NUMBER))),
    "declared": lambda p: Declared({"x": (0, 1)}).codes(p.add(columns())),
}


def fit(model: Any, planted: Planted, *, width: int | None = None, rows: int | None = None) -> Any:
    """A fit, or a use after it, of rows that are too few or too narrow."""
    table, goal = table_and_goal(planted, classes=True)
    return model.fit(table[:, :width], goal[:rows])


def used(model: Any, planted: Planted, by: str) -> Any:
    table, goal = table_and_goal(Planted(), classes=True)
    wrong = planted.add(table_and_goal(Planted())[0][:, :1].copy())
    return getattr(model.fit(table, goal), by)(wrong)


LEARNED: dict[str, Callable[[Planted], Any]] = {
    "LogisticRegression": lambda p: fit(logistic(), p, rows=-1),
    "a ledger": lambda p: fit(logistic(ledger=ledger(None, **POOR)), p),
    "LinearRegression": lambda p: fit(L.LinearRegression(), p, rows=-1),
    "GaussianNB": lambda p: fit(L.GaussianNB(classes=[0, 1], **WIDE), p, rows=-1),
    "GaussianNB, ranges": lambda p: fit(L.GaussianNB(classes=[0, 1], **WIDE), p, width=1),
    "KMeans": lambda p: fit(L.KMeans(n_clusters=2, **WIDE), p, width=1),
    "GaussianMixture": lambda p: fit(L.GaussianMixture(n_components=2, **WIDE), p, width=1),
    "PCA": lambda p: fit(L.PCA(n_components=9), p),
    "StandardScaler": lambda p: fit(L.StandardScaler(**WIDE), p, width=1),
    "RangeScaler": lambda p: fit(L.RangeScaler(**WIDE), p, width=1),
    "OneHot": lambda p: L.OneHot(categories=[["a"], ["b"]]).fit(p.add(np.array([[TEXT]]))),
    "search": lambda p: fit(L.PrivateSearch(logistic(), {"clip": [1.0]}), p, rows=-1),
    "text": lambda p: logistic().fit(p.add(np.array([[TEXT], ["b"]])), [0, 1]),
    "one dimension": lambda p: logistic().fit(numbers(p), [0, 1]),
    "predict": lambda p: used(logistic(), p, "predict"),
    "predict_proba": lambda p: used(logistic(), p, "predict_proba"),
    "transform": lambda p: used(L.PCA(n_components=1), p, "transform"),
    "no batch": lambda p: logistic().fit_batches(lambda: iter([table_and_goal(p)[0]]), features=2),
    "batches once": lambda p: logistic().fit_batches(iter([table_and_goal(p)]), features=2),
    "a batch too many": lambda p: logistic().fit_batches([table_and_goal(p, classes=True)], features=["a", "b", "c"]),
    "density": lambda p: density_of(numbers(p), between=(0, 1), bandwidth=-1, guarantee=GOAL),
    "density, too little": lambda p: density_of(
        listed(p), between=(0, 50), bandwidth=5, guarantee=GOAL, ledger=ledger(None, **POOR)
    ),
    "regression": lambda p: regression_curve(numbers(p), [1.0], between=(0, 50), bandwidth=9, guarantee=GOAL, size=61),
    "curves": lambda p: curves.MeanCurve(points=[0, 1]).fit(many_curves(p)),
    "noisy copies": lambda p: curves.sanitized_curves(many_curves(p), points=[0, 1]),
    "curve components": lambda p: curves.CurvePCA(99).fit(many_curves(p)),
    "curve regression": lambda p: curves.CurveRegression().fit(many_curves(p), [[1.0, 2.0]]),
}


def damaged(planted: Planted, folder: Any) -> Any:
    """A Parquet file that opens, and cannot be read to the end."""
    path = folder / "rows.parquet"
    pq.write_table(batch_of(planted), path, compression="zstd", use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[40:400] = bytes(360)
    path.write_bytes(content)
    return logistic().fit_batches(path, features=["a", "b"], target="y")


def studied(planted: Planted, question: Any, **given: Any) -> Any:
    return A.study(people(planted), queries=3, **given).mean(question)


ADAPTIVE: dict[str, Callable[[Planted], Any]] = {
    "no such column": lambda p: studied(p, lambda rows: rows["no"]),
    "one number": lambda p: studied(p, lambda rows: rows["x"].sum()),
    "text": lambda p: studied(p, lambda rows: rows["city"]),
    "under a ledger": lambda p: studied(p, lambda rows: np.sort(rows["x"]), ledger=ledger(), size=40),
    "types": lambda p: studied(p, lambda rows: rows["x"] + rows["city"], ledger=ledger(), size=40),
    "nobody's": lambda p: A.study(people(p), queries=3, ledger=ledger(), unprotected=True),
    "no person": lambda p: A.study(people(p), queries=3, ledger=ledger("nobody")),
    "correlation": lambda p: A.study(people(p), queries=2).correlation(high, high),
    "holdout": lambda p: A.holdout(people(p), people(p), queries=2, method="gaussian").check(lambda rows: rows["no"]),
    "leaderboard": lambda p: A.leaderboard(labels_of(p), submissions=3).submit([1, 2]),
    "ladder": lambda p: A.leaderboard(labels_of(p), submissions=3, unprotected=True).submit([1, 2]),
    "survey": lambda p: dp.local.survey(choices=CITIES, epsilon=1).encode(words(p)[-1], key="k"),
    "survey of many": lambda p: dp.local.survey(choices=CITIES, epsilon=1).encode_many(TEXT),
    "reports": lambda p: dp.local.survey(choices=CITIES, epsilon=1).analyze([TEXT]),
    "rows": lambda p: dp.local.rows({"cost": (0, 50)}, epsilon=1).encode(p.add([TEXT])),
    "rows of many": lambda p: dp.local.rows({"cost": (0, 50)}, epsilon=1).encode_many(p.add(TEXT)),
    "shuffled": lambda p: dp.shuffle.BitSum(clients=100, minimum=50, lie=0.3).analyze(p.add([1, 0])),
}
for _room, _asked in {"table": TABLES, "release": RELEASES, "learn": LEARNED, "rows": ADAPTIVE}.items():
    FAILING |= {f"{_room}: {name}": lambda p, _, ask=ask: ask(p) for name, ask in _asked.items()}
FAILING["a damaged file"] = damaged
