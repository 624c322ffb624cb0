"""DataFrames of Spark: the same model to the last bit, however rows lie in partitions, and nothing else comes back."""

from __future__ import annotations

import contextlib
import datetime as dt
import itertools
import os
import sys
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats
from sklearn.base import clone

import discreet as dp
from discreet import testing
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.spark import dataframes
from discreet.engines.spark.dataframes import ByPartition, Partitions
from discreet.errors import EngineFailed
from discreet.mechanisms import sampling as draws
from discreet.rows.gradients import partitions as spreading
from discreet.rows.gradients.losses import Huber
from discreet.rows.gradients.partitions import SpreadStream
from discreet.rows.gradients.stream import Stream

from ..refusing import refuses

pyspark = pytest.importorskip("pyspark", reason='needs pip install "discreet[spark]"')
pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support:FutureWarning"),
    pytest.mark.spark,
]

NAMES = ["a", "b", "c"]
RANGES = [(-1.0, 1.0), (-2.0, 1.0), (0.0, 1.0)]
GOAL: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}
CANARY = "secret-of-patient-4711"


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What Spark and its workers write to their standard error."""
    return tmp_path_factory.mktemp("spark") / "stderr"


@pytest.fixture(scope="module")
def spark(java: None, said: Path) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local[2]").appName("learn").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.ui.showConsoleProgress", "false")
    ours = os.dup(2)
    with said.open("wb") as file:
        os.dup2(file.fileno(), 2)
        try:
            session = builder.getOrCreate()
        finally:
            os.dup2(ours, 2)
            os.close(ours)
    yield session
    session.stop()


def data(count: int = 3000) -> Any:
    """Numbers, some missing, infinite or huge, and targets of three kinds."""
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((count, 3)) / 2
    score = rows @ [2.0, -1.0, 0.5]
    rows[5, 0], rows[9, 1], rows[11], rows[77, 2] = np.nan, np.inf, 1e38, -1e300
    label = (score > 0).astype(int) + (score > 1)
    label[13] = 8
    columns: dict[str, Any] = {name: rows[:, place] for place, name in enumerate(NAMES)}
    columns["label"] = pa.array(label, pa.int64(), mask=np.arange(count) == 21)
    columns["word"] = pa.array(np.where(label > 0, "yes", "no").tolist())
    columns["amount"] = np.where(np.arange(count) % 100 == 50, np.nan, score)
    return pa.table(columns)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    pq.write_table(data(), path, row_group_size=700)
    return path


@pytest.fixture(scope="module")
def frame(spark: Any, path: Path) -> Any:
    return spark.read.parquet(str(path))


MODELS: list[tuple[Any, str | None]] = [
    (dp.learn.LogisticRegression(classes=[0, 1], steps=2, **GOAL), "label"),
    (dp.learn.LogisticRegression(classes=[0, 1, 2], steps=2, n_samples=3000, feature_ranges=RANGES, **GOAL), "label"),
    (dp.learn.LinearSVC(classes=["no", "yes"], steps=2, n_samples=3000, **GOAL), "word"),
    (dp.learn.PoissonRegressor(target_bound=5, steps=2, n_samples=3000, **GOAL), "amount"),
    (dp.learn.LinearRegression(target_bound=3, **GOAL), "amount"),
    (dp.learn.Ridge(target_bound=3, feature_ranges=RANGES, **GOAL), "amount"),
    (dp.learn.GaussianNB(classes=["yes", "no"], feature_ranges=RANGES, **GOAL), "word"),
    (dp.learn.PCA(2, center="private", **GOAL), None),
    (dp.learn.StandardScaler(feature_ranges=RANGES, **GOAL), None),
    (dp.learn.KMeans(3, feature_ranges=RANGES, rounds=2, **GOAL), None),
]


def fitted(model: Any, source: Any, target: str | None, **given: Any) -> tuple[Any, Any]:
    goal = {} if target is None else {"target": target}
    with testing.frozen(5) as tape:
        found = clone(model).fit_batches(source, features=NAMES, **goal, **given)
    return found, tape.calls


def assert_same(one: Any, other: Any) -> None:
    (found, draws), (known, others) = one, other
    assert draws == others
    assert found.release_.value.keys() == known.release_.value.keys()
    for name, value in known.release_.value.items():
        np.testing.assert_array_equal(found.release_.value[name], value)
    assert list(found.feature_names_in_) == NAMES
    assert found.release_.guarantee == known.release_.guarantee


@pytest.mark.parametrize(
    ("model", "target"),
    [
        pytest.param(*one, marks=[] if number in (0, len(MODELS) - 1) else [pytest.mark.slow])
        for number, one in enumerate(MODELS)
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_model_is_that_of_the_same_rows_to_the_last_bit(model: Any, target: str | None, path: Path) -> None:
    """Batches here first: for the estimators of one pass these are new, too."""
    table = pq.read_table(path)
    X = np.column_stack([table[name].to_numpy() for name in NAMES])
    y = None if target is None else np.array(table[target].to_pylist(), dtype=object)
    with testing.frozen(5) as tape:
        known = clone(model).fit(X) if y is None else clone(model).fit(X, y)
    known.feature_names_in_ = NAMES
    for source in (path, table, lambda: table.to_batches(77)):
        assert_same(fitted(model, source, target), (known, tape.calls))
    pairs = [X[:100], X[100:]] if y is None else [(X[:100], y[:100]), (X[100:], y[100:])]
    with testing.frozen(5):
        found = clone(model).fit_batches(lambda: pairs, features=3)
    for name, value in known.release_.value.items():
        np.testing.assert_array_equal(found.release_.value[name], value)
    with refuses(dp.InvalidArgument, "wrong-shape"):
        clone(model).fit_batches(lambda: [X[:, :2] if y is None else (X[:, :2], y)], features=3)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "target"), MODELS, ids=lambda one: type(one).__name__)
def test_partitions_change_nothing(
    model: Any, target: str | None, path: Path, frame: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = fitted(model, path, target)
    spread = {"LogisticRegression": (1, 2, 7), "LinearRegression": (2, 7)}.get(type(model).__name__, (3,))
    for many in spread if getattr(model, "n_samples", None) is None else (3,):
        assert_same(fitted(model, frame.repartition(many), target), known)
    if isinstance(model, dp.learn.LinearRegression):  # as where sums are so wide that executors add them up
        monkeypatch.setattr(dataframes, "_NARROW", 1)
        assert_same(fitted(model, frame.repartition(9), target), known)


@pytest.mark.slow
def test_odd_columns_and_no_rows(spark: Any, tmp_path: Path) -> None:
    odd = pa.table(
        {
            "a": pa.array([1, None, 3, -4, 0, 1], pa.int8()),
            "b": pa.array([Decimal("0.5"), None, Decimal("-1.25"), Decimal(0), Decimal(1), Decimal(2)]),
            "c": pa.array([0.5, float("nan"), 0.25, float("inf"), 0.125, 1.0], pa.float32()),
            "word": pa.array(["yes", "no", None, "yes", "maybe", "no"]),
            "flag": pa.array([True, False, None, True, False, True]),
            "when": pa.array([0, 10**9, None, 1, 2, 3], pa.timestamp("us")),
        }
    )
    pq.write_table(odd, tmp_path / "odd.parquet")
    there = spark.read.parquet(str(tmp_path / "odd.parquet"))
    words = dp.learn.LogisticRegression(classes=["no", "yes"], steps=1, **GOAL)
    flags = dp.learn.GaussianNB(classes=[True, False], feature_ranges=RANGES, **GOAL)
    for model, target in ((words, "word"), (flags, "flag"), (dp.learn.Ridge(**GOAL), "when")):
        known = fitted(model, tmp_path / "odd.parquet", target)
        assert_same(fitted(model, there.repartition(2), target), known)
    none = fitted(words, odd.slice(0, 0), "word")
    assert_same(fitted(words, there.where("a > 99"), "word"), none)
    assert_same(fitted(words, spark.createDataFrame([], there.schema), "word"), none)


# --- samples ---------------------------------------------------------------------------------------------------


class Machines:
    """Partitions on this machine, each worked on twice, as Spark may do: what comes of it must be the same."""

    def __init__(self, *parts: int) -> None:
        ends = np.cumsum([0, *parts])
        numbers = [np.arange(one, two, dtype=float) for one, two in itertools.pairwise(ends)]
        self.parts = [(np.ones((len(goal), 1)), goal) for goal in numbers]

    def gathered(self, work: Any) -> list[bytes]:
        twice = [[list(work(iter([part]), place)) for place, part in enumerate(self.parts)] for _ in range(2)]
        same = twice[0] == twice[1]  # told alone: pytest would take hours to print how two such lists differ
        assert same, "a second attempt has other coins"
        return [blob for blobs in twice[0] for blob in blobs]

    def summed(self, work: Any, *, alike: bool = False) -> Any:
        twice = [[work(iter([part]), place) for place, part in enumerate(self.parts)] for _ in range(2)]
        for one, two in zip(*twice, strict=True):
            np.testing.assert_array_equal(one[0], two[0])
        return [np.asarray(sum(found[0] for found in twice[0]), dtype=object)]


def test_samples_of_partitions_are_poisson() -> None:
    """Two-sided false alarms of 2.5e-7 for totals, sizes, rows and pairs, together 1e-6, on 450,000 coins.

    The same bounds as of a stream here: a rate off by 5%, shared coins of partitions, and samples that repeat are seen.
    """
    rows, steps, rate, miss = 3000, 150, Fraction(1, 10), 1.25e-7
    there = Machines(1000, 1000, 0, 1000)
    stream = SpreadStream(there.summed, there.gathered, columns=1, held_rows=10**6)
    assert stream.count == rows
    came = np.zeros((steps, rows))
    for step, part in enumerate(stream.samples(rate, steps, rows, draws.poisson_samples)):
        for _, goal in part._batches():
            came[step, goal.astype(int)] += 1
    assert came.max() == 1
    share = float(rate)
    total = stats.binom(rows * steps, share)
    assert total.ppf(miss) <= came.sum() <= total.isf(miss)
    for axis, count, each in ((1, steps, rows), (0, rows, steps)):
        moved = ((came.sum(axis=axis) - each * share) ** 2).sum() / (each * share * (1 - share))
        assert stats.chi2(count).ppf(miss) * 0.95 <= moved <= stats.chi2(count).isf(miss) * 1.05
    both = stats.binom(steps * 2000, share**2)
    apart = (came[:, :1000] * came[:, 1000:2000]).sum() + (came[:, 1000:2000] * came[:, 2000:]).sum()
    assert both.ppf(miss) <= apart <= both.isf(miss), "two partitions have the same coins"


def same_coins_everywhere(patch: pytest.MonkeyPatch) -> None:
    sound = spreading._coins_of
    patch.setattr(spreading, "_coins_of", lambda key, place: sound(key, 0))


def new_coins_for_a_second_attempt(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(spreading, "_coins_of", lambda key, place: contextlib.nullcontext())


def a_step_repeats_its_sample(patch: pytest.MonkeyPatch) -> None:
    sound = draws.poisson_samples
    patch.setattr(draws, "poisson_samples", lambda rate, steps, count: list(sound(rate, 1, count)) * steps)


@pytest.mark.parametrize(
    "mutant",
    [same_coins_everywhere, new_coins_for_a_second_attempt, a_step_repeats_its_sample],
    ids=lambda one: one.__name__,
)
def test_a_mutant_is_caught_by_the_law(mutant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    with pytest.raises(AssertionError):
        test_samples_of_partitions_are_poisson()


def test_a_sample_that_is_not_held_is_summed_where_it_is() -> None:
    there = Machines(400, 600)
    stream = SpreadStream(there.summed, there.gathered, columns=1, held_rows=1, intercept=False, feature_norm=1)
    parts = list(stream.samples(Fraction(1, 4), 3, 1000, draws.poisson_samples))
    assert {type(part) for part in parts} == {SpreadStream}
    # every row's clipped gradient is the same, so that a sum says how many rows are in it
    each = int(Machines(0, 1).summed(lambda batches, _: [_one_row(batches)])[0].item())
    many = [float(part.sums(np.array([5000.0]), Huber(1), 0.5)[0]) / each for part in parts]
    law = stats.binom(1000, 0.25)
    assert all(law.ppf(1.6e-7) <= one <= law.isf(1.6e-7) for one in many)


def _one_row(batches: Any) -> Any:
    known = Stream(lambda: batches, columns=1, intercept=False, feature_norm=1)
    return known.sums(np.array([5000.0]), Huber(1), 0.5)


@pytest.mark.slow
def test_samples_on_spark(frame: Any) -> None:
    for held_rows in (None, 1):
        model = dp.learn.LogisticRegression(classes=[0, 1], steps=3, sampling=0.2, n_samples=3000, **GOAL)
        model.fit_batches(frame.repartition(2), features=NAMES, target="label", held_rows=held_rows)
        assert np.isfinite(model.coef_).all()
        assert not model.release_.not_private


# --- one release, and nothing else -----------------------------------------------------------------------------


def test_one_charge_before_the_first_pass(frame: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark import cloudpickle

    limit = dp.Approx(epsilon=2, delta=1e-5)
    book = dp.Ledger.open(tmp_path / "canary-ledger.db", protects=dp.person("id"), limit=limit)
    seen: list[int] = []
    sound = dataframes.run_on_partitions

    def watched(frame: Any, work: Any, **given: Any) -> Any:
        seen.append(len(book.entries()))
        assert b"canary-ledger" not in cloudpickle.dumps(work), "the ledger goes to the executors"
        return sound(frame, work, **given)

    monkeypatch.setattr(dataframes, "run_on_partitions", watched)
    model = dp.learn.LogisticRegression(classes=[0, 1], steps=2, ledger=book, rows_per_person=3, **GOAL)
    model.fit_batches(frame, features=NAMES, target="label")
    assert seen == [1] * 5  # two to find ranges, one to count, two to descend
    assert model.release_.receipt == book.entries()[0].receipt
    assert model.release_.guarantee == model.guarantee(n_features=3)
    with refuses(dp.BudgetExhausted, "budget-exhausted"):
        clone(model).set_params(epsilon=2.5).fit_batches(frame, features=NAMES, target="label")
    assert len(seen) == 5


@pytest.mark.slow
def test_what_is_refused_from_public_facts_costs_nothing(spark: Any, frame: Any) -> None:
    book = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=2, delta=1e-5))
    model = dp.learn.LogisticRegression(classes=[0, 1], ledger=book, **GOAL)
    twice = frame.selectExpr("a", "a", "label")
    moving = spark.readStream.format("rate").load()
    for source, given, code in (
        (frame, {"target": "label", "features": ["a", "z"]}, "unknown-column"),
        (frame, {"target": "label", "features": ["a", "word"]}, "learn-feature-type"),
        (frame, {"target": "label"}, "learn-feature-type"),
        (frame, {"features": ["a"]}, "learn-no-target"),
        (frame, {"features": 3, "target": "label"}, "learn-no-features"),
        (twice, {"features": ["a"], "target": "label"}, "source-columns"),
        (moving, {"features": ["value"], "target": "value"}, "source-streaming"),
    ):
        with refuses(dp.InvalidArgument, code):
            model.fit_batches(source, **given)
    with refuses(dp.InvalidArgument, "data-in-spark"):
        model.fit(frame, frame)
    assert not book.entries()


def fails(batch: Any, targets: Any) -> Any:
    raise ValueError(f"could not convert {batch.column(0)[0].as_py()}")


def test_no_cell_is_quoted(spark: Any, said: Path, capfd: pytest.CaptureFixture[str]) -> None:
    there = spark.createDataFrame([(0.5, CANARY), (0.25, "yes")], "a double, word string")
    model = dp.learn.LogisticRegression(classes=["no", "yes"], steps=1, **GOAL)
    model.fit_batches(there, features=["a"], target="word")
    bad = Partitions(there.selectExpr("word"), 1, ["a"], fails)
    with refuses(EngineFailed, "engine-failed") as caught:
        model.fit_batches(bad)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert CANARY not in said.read_text()
    # the owner's own plan fails while it is read: Spark's log is the owner's, the error is ours
    broken = there.selectExpr("a", "CAST(raise_error(word) AS int) AS label")
    with refuses(EngineFailed, "engine-failed") as caught:
        model.fit_batches(broken, target="label")
    assert CANARY not in str(caught.value)
    assert caught.value.__context__ is None
    assert CANARY not in "".join(capfd.readouterr())


@pytest.mark.slow
def test_executors_must_compute_alike(frame: Any) -> None:
    def work(batches: Any, place: int) -> Any:
        sound = np.exp
        dataframes._arithmetic.cache_clear()
        if place:  # another machine, with another exp
            np.exp = np.expm1
        yield b""
        np.exp = sound
        dataframes._arithmetic.cache_clear()

    with refuses(EngineFailed, "spark-workers-differ"):
        dataframes.run_on_partitions(frame.repartition(2), work, alike=True)


# --- queries ---------------------------------------------------------------------------------------------------


def test_a_query_of_vectors(frame: Any, path: Path) -> None:
    rows = np.column_stack([pq.read_table(path)[name].to_numpy() for name in NAMES])
    vectors = dp.queries.VectorSum(dp.queries.Ball(3, 1))
    asked = ByPartition(vectors, NAMES)
    assert asked(frame.repartition(5)).tolist() == vectors(rows).tolist()
    assert asked.sensitivity(dp.row()) == vectors.sensitivity(dp.row())
    assert ByPartition(dp.Sum((-1, 1)), ["b"])(frame) == dp.Sum((-1, 1))(rows[:, 1])
    assert ByPartition(dp.Count(), ["b"])(frame) == 3000
    book = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=2, delta=1e-5))
    noise = dp.Gaussian.for_guarantee(dp.Approx(**GOAL), sensitivity=vectors.sensitivity(dp.row()))
    with testing.frozen(1):
        known = dp.release(rows, noise, query=vectors, ledger=book)
    with testing.frozen(1):
        found = dp.release(frame, noise, query=asked, ledger=book)
    np.testing.assert_array_equal(found.value, known.value)
    with refuses(dp.InvalidArgument, "unknown-column"):
        ByPartition(dp.Count(), ["word"])(frame)


# --- tables of a policy ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_table_whose_engine_has_frames(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Features of all kinds are made on the executors: the model is that of the rows brought here."""
    rng = np.random.default_rng(1)
    visits = pa.table(
        {
            "age": pa.array(rng.integers(0, 100, 500), mask=rng.random(500) < 0.1),
            "city": pa.array(rng.choice(["Haifa", "Bled", CANARY], 500)),
            "day": pa.array(rng.integers(0, 400, 500), pa.int32()).cast(pa.date32()),
            "cost": rng.lognormal(3, 1, 500),
            "well": pa.array(rng.random(500) < 0.5, mask=rng.random(500) < 0.1),
        }
    )
    table = dp.table(
        visits, ledger=dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=99, delta=1e-3))
    )
    features = {"age": (0, 120), "city": ["Haifa", "Bled"], "day": (dt.date(1970, 1, 1), dt.date(1971, 1, 1))}
    models: list[tuple[Any, str | None]] = [
        (dp.learn.LogisticRegression(classes=[True, False], steps=1, **GOAL), "well"),
        (dp.learn.LinearRegression(target_bound=100, **GOAL), "cost"),
        (dp.learn.PCA(**GOAL), None),
    ]

    def fit(model: Any, target: str | None) -> Any:
        with testing.frozen(3):
            return table.fit(clone(model), features=features, target=target)

    def frame(self: Any, statement: str) -> Any:
        found = self.table(statement)
        return spark.createDataFrame(found.to_pylist(), _spark_types(found.schema)).repartition(3)

    here = [fit(*one) for one in models]
    monkeypatch.setattr(DuckDB, "frame", frame, raising=False)
    collected = dataframes.run_on_partitions
    passes: list[Any] = []
    monkeypatch.setattr(
        dataframes, "run_on_partitions", lambda *one, **more: passes.append(one) or collected(*one, **more)
    )
    for known, (model, target) in zip(here, models, strict=True):
        found = fit(model, target)
        for name, value in known.release_.value.items():
            np.testing.assert_array_equal(found.release_.value[name], value)
        assert list(found.feature_names_in_) == ["age", "city=Haifa", "city=Bled", "day"]
    assert len(passes) == 6  # two each: a count and a step; the range of a target, or a radius, and then the sums
    objective = dp.learn.LogisticRegression(classes=[True, False], solver="objective", **GOAL)
    assert fit(objective, "well").coef_.shape == (1, 4)  # brought here, as before
    assert len(passes) == 6


def _spark_types(schema: Any) -> str:
    names = {"int64": "bigint", "string": "string", "date32[day]": "date", "double": "double", "bool": "boolean"}
    return ", ".join(f"`{field.name}` {names[str(field.type)]}" for field in schema)


def test_sums_are_exact_beyond_64_bits() -> None:
    numbers = [0, 1, -1, 2**64 - 1, -(2**64), 2**99 + 7, -(2**99) - 7]
    blobs = [dataframes._pack([np.array(numbers, dtype=object), np.array([5, -5])])] * 1001
    low, high = dataframes._add(blobs, 9)
    assert (high.astype(object) * 2**64 + low.astype(object)).tolist() == [1001 * one for one in [*numbers, 5, -5]]
    for wrong in (2**100, 0.5, Fraction(1, 3)):
        with refuses(dp.InvalidArgument, "out-of-range"):
            dataframes._pack([np.array([wrong], dtype=object)])
    with refuses(EngineFailed, "engine-failed"):
        dataframes._add([b"short"], 9)
