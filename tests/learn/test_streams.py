"""Rows that do not fit in memory: exact sums, true Poisson samples, one charge, and bounded memory."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from scipy import stats
from sklearn.base import clone

import discreet as dp
from discreet import testing
from discreet.errors import EngineFailed
from discreet.exact import samplers
from discreet.mechanisms import sampling as draws
from discreet.mechanisms.learning.descent.descent import Descent
from discreet.mechanisms.noise.lattice import from_lattice
from discreet.rows.gradients.examples import Examples, unit_of
from discreet.rows.gradients.losses import Huber, Logistic, Softmax
from discreet.rows.gradients.stream import Stream

from ..refusing import refuses

GOAL: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}
MODELS: list[Any] = [
    dp.learn.LogisticRegression(classes=[0, 1], steps=5),
    dp.learn.LogisticRegression(classes=[0, 1, 2], steps=5),
    dp.learn.LinearSVC(classes=[0, 1], steps=5),
    dp.learn.HuberRegressor(steps=5),
    dp.learn.QuantileRegressor(steps=5),
    dp.learn.PoissonRegressor(target_bound=10, steps=5),
]


def data(count: int = 2000, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, 3)) / 2
    return rows, (rows @ [2.0, -1.0, 0.5] + 0.3 * rng.standard_normal(count) > 0).astype(int)


def cut(rows: Any, goal: Any, *sizes: int) -> list[tuple[Any, Any]]:
    """Batches of these sizes, and what is left."""
    ends = np.cumsum(sizes)
    return list(zip(np.split(rows, ends), np.split(goal, ends), strict=True))


def table(rows: Any, goal: Any) -> Any:
    return pa.table({name: rows[:, i] for i, name in enumerate("abc")} | {"label": goal})


def ledger(epsilon: float = 50) -> Any:
    return dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=epsilon, delta=1e-3))


def logistic(**kept: Any) -> Any:
    return dp.learn.LogisticRegression(**({"classes": [0, 1], "steps": 5, "feature_norm": 1} | GOAL | kept))


# --- sums ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(), (1, 1, 1), (0, 500), (8192, 1, 0, 8191), (3, 7, 20_000)], ids=str)
@pytest.mark.parametrize("loss", [Logistic(), Huber(1), Softmax(3)], ids=lambda loss: type(loss).__name__)
def test_sums_are_those_of_the_whole_table_wherever_a_batch_ends(sizes: tuple[int, ...], loss: Any) -> None:
    rows, goal = data(24_000)
    rows[5], rows[9, 0], rows[20_000] = np.nan, np.inf, 1e38
    goal = goal.astype(float)
    goal[17] = np.nan
    kept: dict[str, Any] = {"feature_norm": 0.7, "offset": [0.1, 0.0, -0.2], "scale": [0.5, 2.0, 1.0]}
    whole, parts = Examples(rows, goal, **kept), Stream(lambda: cut(rows, goal, *sizes), columns=3, **kept)
    assert (parts.count, parts.dimension) == (whole.count, whole.dimension)
    for seed in range(3):
        weights = np.random.default_rng(seed).standard_normal((3, 4) if isinstance(loss, Softmax) else 4) * 3
        assert (parts.sums(weights, loss, 0.3) == whole.sums(weights, loss, 0.3)).all()


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_without_samples_a_stream_learns_what_fit_learns_to_the_last_bit(model: Any) -> None:
    """Grey-box: the noise frozen, the same draws and the same weights, with the rows counted too."""
    rows, goal = data(300)
    with testing.frozen(5) as whole:
        known = clone(model).set_params(**GOAL).fit(rows, goal)
    with testing.frozen(5) as parts:
        found = clone(model).set_params(**GOAL).fit_batches(lambda: cut(rows, goal, 100, 7), features=3)
    assert parts.calls == whole.calls
    for name in ("weights", "size", "objective", "gap"):
        np.testing.assert_array_equal(found.release_.value[name], known.release_.value[name])
    assert found.n_features_in_ == 3


def test_neighbors_see_the_same_draws_and_settings() -> None:
    rows, goal = data(300)
    seen = []
    for count in (300, 299, 0):
        with testing.frozen(4) as tape:
            fitted = logistic(feature_ranges=[(-1, 1)] * 3).fit_batches(lambda n=count: cut(rows[:n], goal[:n], 100))
        m = fitted.release_._mechanism.descent
        seen.append((tape.calls, m.steps, m.learning_rate, m.noise, m.counting, m.clip))
        assert fitted.release_.not_private
    assert seen[0] == seen[1] == seen[2]


# --- samples ---------------------------------------------------------------------------------------------------


def members(part: Stream) -> list[int]:
    """Which rows are in a sample: their targets are their numbers."""
    return sorted(int(one) for _, goal in part._batches() for one in goal)


def numbered(count: int, *sizes: int, held_rows: int = 10**6) -> Stream:
    return Stream(lambda: cut(np.zeros((count, 1)), np.arange(float(count)), *sizes), columns=1, held_rows=held_rows)


def the_law_is_that_of_a_coin_for_each_row_and_step() -> None:
    """Every outcome of 2 steps on 3 rows with its exact probability, for any batches and any number of passes."""
    share = Fraction(1, 3)
    for sizes in ((), (2,), (1, 0, 1)):
        for held_rows, size in ((100, 3.0), (1, 3.0), (1, 50.0)):  # one pass, one for each step, nothing held
            stream = numbered(3, *sizes, held_rows=held_rows)
            law = testing.exact_law(
                lambda s=stream, n=size: [members(part) for part in s.samples(share, 2, n, draws.poisson_samples)]
            )
            assert law.unresolved == 0
            assert len(law.law) == 64, "some samples never come"
            for found, mass in law.law.items():
                heads = sum(map(len, found))  # type: ignore[arg-type]
                assert mass == share**heads * (1 - share) ** (6 - heads), "the coins are not independent"


ROWS, STEPS, RATE = 3000, 150, Fraction(1, 10)


def the_samples_are_binomial() -> None:
    """Four tests with two-sided false alarms of 2.5e-7 each, together 1e-6, on 450,000 coins.

    The totals, the spread of the samples' sizes, the spread of how often each row comes, and how many rows two samples
    share. Seen by them: a rate off by 5%, sizes whose variance is half or twice that, and samples that repeat.
    """
    stream = numbered(ROWS, 700, 1, 1500)
    drawn = [members(part) for part in stream.samples(RATE, STEPS, ROWS, draws.poisson_samples)]
    came = np.zeros((STEPS, ROWS))
    for step, rows in enumerate(drawn):
        assert len(set(rows)) == len(rows), "a row is twice in a sample"
        came[step, rows] = 1
    share, miss = float(RATE), 1.25e-7
    spread = share * (1 - share)
    total = stats.binom(ROWS * STEPS, share)
    assert total.ppf(miss) <= came.sum() <= total.isf(miss), "the rate is another"
    for axis, count, each in ((1, STEPS, ROWS), (0, ROWS, STEPS)):
        moved = ((came.sum(axis=axis) - each * share) ** 2).sum() / (each * spread)
        law = stats.chi2(count)  # binomials are wider than normal by less than a hundredth here: a twentieth is given
        assert law.ppf(miss) * 0.95 <= moved <= law.isf(miss) * 1.05, "sizes or rows are not binomial"
    both = stats.binom(ROWS * (STEPS // 2), share**2)
    shared = (came[: STEPS // 2] * came[STEPS // 2 :]).sum()
    assert both.ppf(miss) <= shared <= both.isf(miss), "two samples know of each other"


LAWS = (the_law_is_that_of_a_coin_for_each_row_and_step, the_samples_are_binomial)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_samples_are_poisson(law: Callable[[], None]) -> None:
    law()


def fixed_sizes(patch: pytest.MonkeyPatch) -> None:
    """Shuffled batches: each has exactly its share of the rows."""

    def fixed(rate: Fraction, steps: int, count: int) -> Iterator[Any]:
        for _ in range(steps):
            yield samplers.permutation(count)[: round(rate * count)]

    patch.setattr(draws, "poisson_samples", fixed)


def epochs(patch: pytest.MonkeyPatch) -> None:
    """The rows are dealt out: every row comes once before any comes again."""

    def dealt(rate: Fraction, steps: int, count: int) -> Iterator[Any]:
        rounds = math.floor(1 / rate)
        for step in range(steps):
            if step % rounds == 0:
                order = samplers.permutation(count)
            yield order[step % rounds :: rounds]

    patch.setattr(draws, "poisson_samples", dealt)


def one_coin_for_a_batch(patch: pytest.MonkeyPatch) -> None:
    def together(rate: Fraction, steps: int, count: int) -> Iterator[Any]:
        for _ in range(steps):
            yield np.arange(count) if samplers.bernoulli(rate, 1)[0] else np.zeros(0, dtype=np.int64)

    patch.setattr(draws, "poisson_samples", together)


def one_sample_for_all_steps_of_a_pass(patch: pytest.MonkeyPatch) -> None:
    sound = draws.poisson_samples
    patch.setattr(draws, "poisson_samples", lambda rate, steps, count: list(sound(rate, 1, count)) * steps)


def empty_samples_are_left_out(patch: pytest.MonkeyPatch) -> None:
    def some(rate: Fraction, steps: int, count: int) -> Iterator[Any]:
        for coins in samplers.bernoulli(rate, steps * count).reshape(steps, count):
            yield np.flatnonzero(coins) if coins.any() else np.arange(min(count, 1))

    patch.setattr(draws, "poisson_samples", some)


@pytest.mark.parametrize(
    ("mutant", "law"),
    [
        *((mutant, LAWS[0]) for mutant in (fixed_sizes, epochs, one_coin_for_a_batch, empty_samples_are_left_out)),
        *((mutant, LAWS[1]) for mutant in (fixed_sizes, epochs, one_coin_for_a_batch)),
        *((one_sample_for_all_steps_of_a_pass, law) for law in LAWS),
    ],
    ids=lambda one: one.__name__,
)
def test_a_mutant_is_caught_by_the_law(mutant: Any, law: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    with pytest.raises(AssertionError):
        law()


@pytest.mark.slow
@pytest.mark.parametrize("held_rows", [10**6, 100, 1])
def test_every_row_has_a_coin_in_every_step(held_rows: int) -> None:
    rows, goal = data(400)
    with testing.frozen(3) as tape:
        logistic(sampling=0.1, steps=12).fit_batches(
            lambda: cut(rows, goal, 150, 1, 0), features=3, held_rows=held_rows
        )
    coins = [given for name, given in tape.calls if name == "bernoulli"]
    assert {rate for rate, _ in coins} == {Fraction(1, 10)}
    assert sum(count for _, count in coins) == 400 * 12
    assert sum(name == "discrete_gaussian" for name, _ in tape.calls) == 1 + 12


@pytest.mark.parametrize("held_rows", [10**6, 45, 1])
def test_a_run_is_replayed_by_hand(held_rows: int) -> None:
    """Grey-box: coins, samples, sums, noise and weights, computed here from the same frozen stream."""
    rows, goal = data(200)
    batches = cut(rows, goal, 90, 60)
    share, steps = Fraction(1, 10), 8
    model = logistic(sampling=0.1, steps=steps, n_samples=200, average="last", momentum=0, learning_rate=2.0)
    with testing.frozen(7):
        found = model.fit_batches(lambda: batches, features=3, held_rows=held_rows).release_.value["weights"]
    together = {10**6: 8, 45: 2, 1: 0}[held_rows]
    m = model._descent(3)
    weights = np.zeros(4)
    with testing.frozen(7):
        held: list[Any] = []
        for step in range(steps):
            if together and step % together == 0:
                coins = [samplers.bernoulli(share, together * len(y)).reshape(together, -1) for _, y in batches]
                held = [np.concatenate([one[k] for one in coins]) for k in range(together)]
            chosen = (
                held.pop(0) if together else np.concatenate([samplers.bernoulli(share, len(y)) for _, y in batches])
            )
            sums = Examples(rows[chosen], goal[chosen]).sums(weights, Logistic(), m.clip)
            slope = from_lattice(sums + m.noise._noise(4), unit_of(m.clip)) / (200 * 0.1)
            weights = np.asarray(m.region.project(weights - 2.0 * slope))
    np.testing.assert_array_equal(found, weights)


def test_an_empty_sample_is_a_step_of_noise() -> None:
    rows, goal = data(50)
    for held_rows, size in ((10**6, 50), (1, 10**12)):
        m = Descent(
            loss=Logistic(),
            steps=3,
            noise=dp.Gaussian(stddev=2, step=unit_of(1)),
            clip=1,
            dimension=4,
            size=size,
            sampling=Fraction(1, 10**9),
        )
        runs = []
        for batches in (cut(rows, goal, 20), cut(rows[::-1] * 2, 1 - goal, 20)):
            with testing.frozen(1):
                runs.append(m._draw(Stream(lambda b=batches: b, columns=3, held_rows=held_rows))["weights"])
        assert np.isfinite(runs[0]).all()
        assert runs[0].any()
        np.testing.assert_array_equal(runs[0], runs[1])


@pytest.mark.slow
def test_samples_learn() -> None:
    rows, goal = data(20_000)
    for held_rows in (None, 500):
        model = logistic(sampling=0.02, steps=100, n_samples=20_000).fit_batches(
            lambda: cut(rows, goal, *[999] * 20), features=3, held_rows=held_rows
        )
        assert model.score(rows, goal) > 0.85
        assert model.release_.guarantee.epsilon_at(delta=1e-6) <= 1
    assert model.learning_curve_[-1] < -0.1


@pytest.mark.slow
def test_samples_of_counted_rows_keep_what_is_asked_for() -> None:
    """Also where the number of rows is counted first: the noise found must keep the goal."""
    assert logistic(sampling=0.02, steps=100).guarantee(None, 3).epsilon_at(delta=1e-6) <= 1


# --- memory ----------------------------------------------------------------------------------------------------


class Made:
    """Batches that are made while they are read: it knows how many are alive at once, and how often they were read."""

    def __init__(self, count: int, size: int) -> None:
        self.count, self.size = count, size
        self.made: list[Any] = []
        self.most_alive, self.passes = 0, 0

    def __call__(self) -> Iterator[tuple[Any, Any]]:
        self.passes += 1
        for number in range(self.count):
            rng = np.random.default_rng(number)
            rows = rng.standard_normal((self.size, 8))
            self.made = [*self.made[-9:], weakref.ref(rows)]
            self.most_alive = max(self.most_alive, sum(one() is not None for one in self.made))
            yield rows, rng.integers(0, 2, self.size)
            del rows


@pytest.mark.slow
def test_no_more_rows_are_held_than_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """40 samples of 500 rows, 2,000 held: 4 steps a pass, 10 passes. 1.2 times that has probability below 1e-15."""
    held: list[int] = []
    sound = Stream._collected

    def counted(self: Stream, rate: Fraction, steps: int, choose: Any) -> Any:
        found = sound(self, rate, steps, choose)
        held.append(sum(len(goal) for pieces in found for _, goal in pieces))
        return found

    monkeypatch.setattr(Stream, "_collected", counted)
    made = Made(20, 500)
    logistic(sampling=0.05, steps=40, n_samples=10_000).fit_batches(made, features=8, held_rows=2000)
    assert made.passes == len(held) == 10
    assert max(held) <= 2000 * 1.2
    assert sum(held) > 40 * 500 * 0.8
    made = Made(20, 500)
    logistic(sampling=0.05, steps=6, n_samples=10_000).fit_batches(made, features=8, held_rows=499)
    assert made.passes == 6
    assert len(held) == 10  # not even one sample may be held: it is summed while it is read


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows() -> None:
    """25 MB of rows and 57 MB of samples pass through 8 MB; a batch is let go before the next but one comes."""
    batches = Made(40, 10_000)
    for sampling, held_rows in ((0.05, 20_000), (0.5, 20_000), (None, None)):
        model = logistic(sampling=sampling, steps=4, n_samples=400_000)
        model.guarantee(n_features=8)  # what is found once for all is not of the rows
        tracemalloc.start()
        model.fit_batches(batches, features=8, held_rows=held_rows)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert most < 8e6
    assert batches.most_alive <= 2


# --- one release -----------------------------------------------------------------------------------------------


def test_the_charge_comes_before_the_first_batch() -> None:
    rows, goal = data(100)
    book, seen = ledger(), []

    def batches() -> Iterator[Any]:
        seen.append(len(book.entries()))
        yield rows, goal

    fitted = logistic(ledger=book).fit_batches(batches, features=3)
    assert seen == [1] * 6  # one pass to count, five to descend
    assert len(book.entries()) == 1
    assert fitted.release_.receipt == book.entries()[0].receipt
    with refuses(dp.BudgetExhausted, "budget-exhausted"):
        logistic(ledger=book, epsilon=60).fit_batches(batches, features=3)
    assert len(seen) == 6


@pytest.mark.slow
def test_progress_tells_nothing_of_the_rows(capsys: pytest.CaptureFixture[str]) -> None:
    rows, goal = data(777)
    logistic(sampling=0.1, verbose=1).fit_batches(lambda: cut(rows, goal, 333), features=3, held_rows=200)
    told = capsys.readouterr().err
    for line in ("counting the rows", "pass 1 of ", "step 5 of 5"):
        assert line in told
    assert "777" not in told


def test_nothing_of_the_rows_is_kept() -> None:
    rows, goal = data(100)
    fitted = pickle.loads(pickle.dumps(logistic().fit_batches(lambda: cut(rows, goal, 50), features=3)))
    assert fitted.predict(rows).shape == (100,)
    stream = numbered(12345)
    assert "12345" not in repr(stream)
    with refuses(dp.InvalidArgument, "not-pickled"):
        pickle.dumps(stream)


# --- Parquet, datasets, record batches -------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path) -> Path:
    rows, goal = data(900)
    (tmp_path / "in").mkdir()
    for number, (one, two) in enumerate(cut(rows, goal, 200, 300)):
        pq.write_table(table(one, two), tmp_path / "in" / f"part[{number}].parquet", row_group_size=64)
    return tmp_path / "in"


@pytest.mark.slow
def test_parquet_through_duckdb(files: Path) -> None:
    rows, goal = data(900)
    with testing.frozen(2):
        known = logistic().fit(rows, goal)
    each = [files / f"part[{number}].parquet" for number in range(3)]
    sources: list[Any] = [files, str(files), f"{files}/*.parquet", each, [str(one) for one in each]]
    for source in [*sources, ds.dataset(files), table(rows, goal), lambda: table(rows, goal).to_batches(100)]:
        for features in ("abc", ["a", "b", "c"]):
            given = {"features": list(features), "target": "label"}
            with testing.frozen(2):
                found = logistic().fit_batches(source, **given)
            np.testing.assert_array_equal(found.coef_, known.coef_)
            assert list(found.feature_names_in_) == ["a", "b", "c"]
    with testing.frozen(2):
        np.testing.assert_array_equal(logistic().fit_batches(files, target="label").coef_, known.coef_)
    with testing.frozen(2):
        swapped = logistic().fit_batches(files, features=["c", "a"], target="label")
    assert swapped.n_features_in_ == 2
    with testing.frozen(2):
        np.testing.assert_array_equal(swapped.coef_, logistic().fit(rows[:, [2, 0]], goal).coef_)


@pytest.mark.slow
def test_samples_of_parquet(files: Path) -> None:
    rows, goal = data(900)
    for source in (files, ds.dataset(files)):
        model = logistic(sampling=0.1, steps=60, epsilon=5, n_samples=900)
        with testing.frozen(2) as tape:
            model.fit_batches(source, target="label")
        assert sum(given[1] for name, given in tape.calls if name == "bernoulli") == 900 * 60
        assert model.fit_batches(source, target="label").score(rows, goal) > 0.8


def odd_table() -> Any:
    """Numbers in all their types, with holes, and labels that are text."""
    return pa.table(
        {
            "small": pa.array([1, None, 3, -4, 0, 1], pa.int8()),
            "large": pa.array([2**63 - 1, 1, None, 0, 5, -7], pa.int64()),
            "flag": pa.array([True, False, None, True, False, True]),
            "price": pa.array([Decimal("0.5"), None, Decimal("-1.25"), Decimal(0), Decimal(1), Decimal(2)]),
            "half": pa.array([0.5, float("nan"), 0.25, float("inf"), 0.125, 1.0], pa.float32()),
            "word": pa.array(["yes", "no", None, "yes", "maybe", "no"]),
        }
    )


def test_odd_columns_are_numbers_or_missing(tmp_path: Path) -> None:
    odd = odd_table()
    names = odd.column_names[:-1]
    cells = np.array([[np.nan if cell is None else float(cell) for cell in odd[name].to_pylist()] for name in names]).T
    with testing.frozen(2):
        known = logistic(classes=["no", "yes"]).fit(cells, np.array(odd["word"].to_pylist(), dtype=object))
    pq.write_table(odd, tmp_path / "odd.parquet", row_group_size=2)
    coded = odd.set_column(5, "word", odd["word"].combine_chunks().dictionary_encode())
    for source in (tmp_path / "odd.parquet", ds.dataset(odd), lambda: odd.to_batches(4), lambda: [coded]):
        with testing.frozen(2):
            found = logistic(classes=["no", "yes"]).fit_batches(source, features=names, target="word")
        np.testing.assert_array_equal(found.coef_, known.coef_)


def test_a_label_does_not_depend_on_the_labels_beside_it() -> None:
    """2^53 + 1 is no 2^53, also where a missing label would make doubles of them all."""
    large = [2**53, 2**53 + 1]
    for labels in ([2**53, 2**53 + 1, 2**53], [2**53, 2**53 + 1, None]):
        seen: list[Any] = []
        model = logistic(classes=large)
        stream = pa.table({"a": [0.1, 0.2, 0.3], "label": pa.array(labels, pa.int64())})
        sound = model._targets
        model._targets = lambda y, found=None, seen=seen, sound=sound: seen.append(sound(y)) or seen[-1]
        model.fit_batches([stream], features=["a"], target="label")
        assert seen[0][:2].tolist() == [0.0, 1.0]


@pytest.mark.parametrize("strange", [np.nan, np.inf, 1e38, "text", None, [1, 2]])
def test_no_cell_can_stop_a_fit(strange: Any) -> None:
    rows, goal = data(50)
    cells, labels = rows.astype(object), goal.astype(object)
    cells[3, 1] = labels[7] = strange
    as_lists = (cells.tolist(), labels.tolist())
    for batch in ((cells, labels), as_lists):
        for sampling in (None, 0.5):
            fitted = logistic(sampling=sampling).fit_batches(lambda b=batch: [b], features=3)
            assert np.isfinite(fitted.coef_).all()
        assert np.isfinite(dp.learn.HuberRegressor(steps=3, **GOAL).fit_batches([batch], features=3).coef_).all()
    with testing.frozen(1):  # the other rows count as they do without it
        kept = np.arange(50)[(np.arange(50) != 3) & (np.arange(50) != 7)]
        without = logistic(n_samples=50).fit(rows[kept], goal[kept])
    if not isinstance(strange, float) or strange != 1e38:
        with testing.frozen(1):
            np.testing.assert_array_equal(
                logistic(n_samples=50).fit_batches([as_lists], features=3).coef_, without.coef_
            )


def test_columns_of_no_numbers_count_as_missing_where_types_may_come_from_cells() -> None:
    wild = pa.table({"a": ["x", "y"], "b": pa.array([None, None]), "when": pa.array([0, 10**18], pa.timestamp("ns"))})
    for target in ("a", "b", "when"):
        names = [name for name in wild.column_names if name != target]
        for model in (logistic(), dp.learn.HuberRegressor(steps=3, **GOAL)):
            assert np.isfinite(model.fit_batches([wild], features=names, target=target).coef_).all()


@pytest.mark.slow
def test_without_duckdb_and_sqlglot() -> None:
    """On a bare machine: the package imports, and learns from what is given to it."""
    script = """
import sys
sys.modules["duckdb"] = sys.modules["sqlglot"] = None
import numpy as np
from discreet.learn import LogisticRegression
rows = np.linspace(-1, 1, 400)[:, None]
labels = (rows[:, 0] > 0).astype(int)
model = LogisticRegression(classes=[0, 1], steps=5, sampling=0.5)
model.fit_batches(lambda: [(rows[:100], labels[:100]), (rows[100:], labels[100:])], features=1)
import pyarrow as pa
import pyarrow.dataset as ds
model.fit_batches(ds.dataset(pa.table({"a": rows[:, 0], "label": labels})), target="label")
print(model.coef_.shape)
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert found.stdout.strip() == "(1, 1)", found.stderr


def test_what_the_engine_says_when_it_fails_goes_no_further(tmp_path: Path) -> None:
    path = tmp_path / "broken.parquet"
    rows, goal = data(5000)
    pq.write_table(table(rows, goal), path, compression="zstd")
    content = bytearray(path.read_bytes())
    content[1000:60_000] = bytes(59_000)
    path.write_bytes(content)
    for source in (path, ds.dataset(path)):
        book = ledger()
        with refuses(EngineFailed, "engine-failed") as caught:
            logistic(ledger=book).fit_batches(source, target="label")
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__
        assert len(book.entries()) == 1  # spent, and nothing is out


# --- bad input -------------------------------------------------------------------------------------------------


def test_what_is_refused_from_public_facts_costs_nothing(files: Path, tmp_path: Path) -> None:
    rows, goal = data(60)
    book = ledger()
    (tmp_path / "words.csv").write_text("a,label\n1,0\n")
    (tmp_path / "note.txt").write_text("no Parquet")
    pq.write_table(pa.table({"a": ["text"], "label": [1]}), tmp_path / "text.parquet")
    generator = (batch for batch in cut(rows, goal, 30))
    refused: list[tuple[Any, dict[str, Any], str]] = [
        (generator, {"features": 3}, "learn-batches-once"),
        (table(rows, goal).to_reader(), {"features": ["a"], "target": "label"}, "learn-batches-once"),
        (iter([(rows, goal)]), {"features": 3}, "learn-batches-once"),
        (lambda: cut(rows, goal), {}, "learn-no-features"),
        (lambda: cut(rows, goal), {"features": 0}, "out-of-range"),
        (lambda: cut(rows, goal), {"features": ["a", "a"]}, "duplicates"),
        (lambda: cut(rows, goal), {"features": []}, "duplicates"),
        (lambda: cut(rows, goal), {"features": 3, "held_rows": 0}, "out-of-range"),
        (lambda: cut(rows, goal), {"features": 3, "target": 7}, "wrong-type"),
        (lambda other: cut(rows, goal), {"features": 3}, "learn-batches"),
        ((rows, goal), {"features": 3}, "learn-batches"),
        (rows, {"features": 3}, "learn-batches"),
        (12, {"features": 3}, "learn-batches"),
        (files, {}, "learn-no-target"),
        (files, {"target": "nothing"}, "unknown-column"),
        (files, {"features": ["a", "z"], "target": "label"}, "unknown-column"),
        (files, {"features": 3, "target": "label"}, "learn-no-features"),
        (files, {"features": ["a", "label"], "target": "label"}, "duplicates"),
        (ds.dataset(files), {"features": ["a", "z"], "target": "label"}, "unknown-column"),
        (ds.dataset(tmp_path / "words.csv", format="csv"), {"target": "label"}, "learn-text-files"),
        (tmp_path / "text.parquet", {"target": "label"}, "learn-feature-type"),
        (tmp_path / "nowhere.parquet", {"target": "label"}, "file-not-readable"),
        (tmp_path / "note.txt", {"target": "label"}, "file-not-readable"),
    ]
    for batches, given, code in refused:
        with refuses(dp.InvalidArgument, code):
            logistic(ledger=book).fit_batches(batches, **given)
    with refuses(dp.InvalidArgument, "learn-solver"):
        logistic(ledger=book, solver="objective").fit_batches(lambda: cut(rows, goal), features=3)
    with refuses(dp.InvalidArgument, "wrong-shape"):
        logistic(ledger=book, feature_ranges=[(0, 1)]).fit_batches(lambda: cut(rows, goal), features=3)
    assert not book.entries()


def once() -> Any:
    rows, goal = data(60)
    come = iter(cut(rows, goal, 30))
    return lambda: come


def once_dressed_up() -> Any:
    rows, goal = data(60)
    come = iter(cut(rows, goal, 30))
    return lambda: map(tuple, come)


def test_batches_that_do_not_fit_are_told() -> None:
    rows, goal = data(60)
    batch = table(rows, goal).to_batches()[0]
    named = {"features": ["a", "b", "c"], "target": "label"}
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        (lambda: [(rows, goal), (rows[:, :2], goal)], {"features": 3}, "wrong-shape"),
        (lambda: [(rows[:, 0], goal)], {"features": 3}, "wrong-shape"),
        (lambda: [(rows, goal[:-1])], {"features": 3}, "wrong-shape"),
        (lambda: [rows], {"features": 3}, "learn-batches"),
        (lambda: None, {"features": 3}, "learn-batches"),
        (lambda: [batch], {"features": 3}, "learn-no-features"),
        (lambda: [batch], {"features": ["a", "b", "z"], "target": "label"}, "unknown-column"),
        (lambda: [batch, batch.select(["a", "b", "label"])], named, "unknown-column"),
    ]
    for sampling in (None, 0.5):
        for batches, given, code in wrong:
            with refuses(dp.InvalidArgument, code):
                logistic(sampling=sampling).fit_batches(batches, **given)
        for batches in (once(), once_dressed_up()):
            with refuses(dp.InvalidArgument, "learn-batches-once"):
                logistic(sampling=sampling).fit_batches(batches, features=3)
