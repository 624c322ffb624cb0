"""Ranges that are found: what one row can move, what is charged, and what is done with the result."""

from __future__ import annotations

import math
import pickle
import warnings
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet import testing
from discreet.exact.rational import exactly
from discreet.guarantees.privacy_loss.compose import compose
from discreet.guarantees.privacy_loss.derived_pairs import merge_gaussians
from discreet.learn import base
from discreet.learn.surroundings import LostLedger
from discreet.mechanisms.learning.found_ranges import FoundRanges, _place_sizes
from discreet.mechanisms.learning.moments import Moments
from discreet.mechanisms.learning.seen_ranges import EVEN, SIZES, Cut
from discreet.mechanisms.learning.with_found_ranges import WithFoundRanges
from discreet.mechanisms.protocol import meets
from discreet.rows.octaves import even_places, octave_end, octave_places
from discreet.rows.unbounded import UnboundedRows

from ..refusing import refuses

GOAL = dp.Approx(epsilon=1, delta=1e-6)
UNITS = [dp.row(), dp.row(neighbors="replace"), dp.person("id"), dp.person("id", neighbors="replace")]
ODD = [0.0, -0.0, 1.0, -1.0, 5e-324, 1e308, -1e308, math.inf, -math.inf, math.nan, 2.0**64, 2.0**-40, 3.0]


def rows_of(cells: Any, **found: Any) -> UnboundedRows:
    table = np.asarray(cells, dtype=float)
    return UnboundedRows(lambda work: work([(table, None)]), lambda ranges: ranges, features=table.shape[1], **found)


def finding(**kept: Any) -> FoundRanges:
    return FoundRanges.for_share(GOAL, **({"weights": (1, 1, 3), "share": Fraction(1, 6), "unit": None} | kept))


def data(n: int = 4000, seed: int = 0) -> tuple[Any, Any]:
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(n, 3)) * [1, 100, 0.01] + [0, 2000, 5]
    return X, X[:, 0] * 3 + X[:, 1] / 20 + draw.normal(size=n) + 50


# --- the grid -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", ODD)
def test_a_number_is_within_its_bin(cell: float) -> None:
    place = int(octave_places(np.array([[cell]]), -40, 64)[0, 0])
    if not math.isfinite(cell):
        assert place == -1
        return
    assert 0 <= place < SIZES
    bin = place - 104
    assert bin == 0 or math.copysign(1, bin) == math.copysign(1, cell)
    if abs(cell) <= 2.0**64:
        assert abs(cell) <= abs(octave_end(bin, -40, outer=True)) or bin == 0
        assert bin == 0 or abs(cell) > abs(octave_end(bin, -40, outer=False))


@pytest.mark.parametrize("cell", ODD)
def test_even_bins_hold_what_is_inside(cell: float) -> None:
    place = int(even_places(np.array([[cell]]), np.array([-1.0]), np.array([3.0]), np.array([8]))[0, 0])
    assert (place == -1) == (not -1 <= cell <= 3)
    assert place == -1 or -1 + place / 2 <= cell <= -1 + (place + 1) / 2


# --- what is promised -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("noise", ["stddev", "scale"])
@pytest.mark.parametrize("cuts", [1, 2])
def test_no_unit_moves_the_counts_farther_than_is_charged(unit: Any, noise: str, cuts: int) -> None:
    """All histograms of all columns, with the rows of one person added or replaced, at the worst cells we know."""
    weights, many = (1, 2), 1 if unit.column is None else 3
    m = FoundRanges(weights=weights, cuts=cuts, **{noise: 1})
    allowed = m.sensitivity(unit, many).exact
    known = np.random.default_rng(0).normal(size=(20, 2))
    worst = Fraction(0)
    for one in ODD:
        for other in ODD if unit.neighbors == "replace" else [None]:
            before = known if other is None else np.vstack([known, [[other, other]] * many])
            after = np.vstack([known, [[one, one]] * many])
            moved = rows_of(after).counts(_place_sizes, SIZES) - rows_of(before).counts(_place_sizes, SIZES)
            weighted = [abs(int(x)) * w for w, part in zip(weights, moved, strict=True) for x in part]
            worst = max(worst, Fraction(sum(weighted) if noise == "scale" else sum(x * x for x in weighted)))
    every = (1 + cuts) * worst  # each of the next histograms moves as far
    assert every == allowed if noise == "scale" else allowed**2 >= every >= allowed**2 * Fraction(999, 1000)


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("goal", [GOAL, dp.Pure(epsilon=1)], ids=["approx", "pure"])
def test_the_share_is_kept_and_less_noise_is_not_enough(unit: Any, goal: Any) -> None:
    m = FoundRanges.for_share(goal, weights=(1, 1, 2), share=Fraction(1, 4), unit=unit, rows_per_person=2)
    promised = m.guarantee(m.sensitivity(unit, 2))
    assert promised.protects == unit
    if m.stddev is None:
        assert 0.249 < float(promised.epsilon_at(delta=0)) <= 0.25 + 1e-11
        return
    mu = promised.factors[0][0].base.mu
    whole = 2 * mu  # a quarter of the squared distance is half of the distance
    assert dp.GaussianTradeoff(mu=whole * 0.98).delta_at(epsilon=1) < 1e-6
    assert dp.GaussianTradeoff(mu=whole * 1.02).delta_at(epsilon=1) > 1e-6


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("goal", [GOAL, dp.Pure(epsilon=1), dp.ZeroConcentrated(rho=0.1)], ids=lambda one: str(one))
def test_ranges_alone_keep_the_guarantee_tightly(unit: Any, goal: Any) -> None:
    m = FoundRanges.for_guarantee(goal, weights=(1, 1, 2), cuts=2, unit=unit, rows_per_person=3)
    less = replace(m, **{name: size and exactly(size) * Fraction(98, 100) for name, size in sizes(m).items()})
    for one, keeps in ((m, True), (less, False)):
        assert meets(one.guarantee(one.sensitivity(unit, 3)), goal) == keeps
    assert m.error(0.95).amount > 0


def sizes(m: FoundRanges) -> dict[str, Any]:
    return {"stddev": m.stddev, "scale": m.scale}


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_both_steps_together_keep_the_guarantee_tightly(unit: Any) -> None:
    def moments(goal: Any) -> Moments:
        return Moments.for_guarantee(goal, features=2, shares={"square": 1}, unit=unit, rows_per_person=2)

    m = WithFoundRanges.for_guarantee(GOAL, weights=(1, 1), then=moments, unit=unit, rows_per_person=2)
    assert 0.999e-6 < m.guarantee(m.sensitivity(unit, 2)).delta_at(epsilon=1) <= 1e-6


def test_merged_gaussians_are_those_that_compose() -> None:
    one, other = finding().guarantee(), finding(share=Fraction(1, 3)).guarantee()
    both = compose([one, other])
    merged = type(both)(factors=merge_gaussians(both.factors))
    assert len(merged.factors) == 1
    for epsilon in (0.1, 0.5, 1.0):
        numeric, closed = both.delta_at(epsilon=epsilon), merged.delta_at(epsilon=epsilon)
        assert closed == pytest.approx(numeric, rel=1e-3)
    assert merge_gaussians(one.factors) == one.factors


# --- what is found --------------------------------------------------------------------------------------------


def test_ranges_hold_most_rows_and_no_hostile_one() -> None:
    X, _ = data(20_000)
    hostile = np.vstack([X, [[1e300, -1e300, 1e18]]])
    for seed in range(5):
        with testing.frozen(seed):
            known = finding()._draw(rows_of(X))["ranges"]
        with testing.frozen(seed):
            found = finding()._draw(rows_of(hostile))["ranges"]
        np.testing.assert_array_equal(known, found)
        inside = (known[:, 0] <= X) & (known[:, 1] >= X)
        assert inside.mean(axis=0).min() > 0.95
        assert (known[:, 1] - known[:, 0] < 16 * X.std(axis=0) + 32 * np.abs(X).max(axis=0) / EVEN).all()


def test_without_rows_the_range_is_the_default() -> None:
    for seed in range(20):
        with testing.frozen(seed):
            found = finding()._draw(rows_of(np.zeros((0, 3))))["ranges"]
        assert found.shape == (3, 2)
        assert (found[:, 0] < found[:, 1]).all()
    assert found.tolist() == [[-1, 1]] * 3


def test_rare_values_among_zeros_stay_inside() -> None:
    cells = np.zeros((20_000, 1))
    cells[:1500] = 1.0
    with testing.frozen(1):
        low, high = finding(weights=(1,))._draw(rows_of(cells))["ranges"][0]
    assert low <= 0 < 1 <= high


def test_a_declared_range_is_narrowed() -> None:
    cells = np.random.default_rng(0).normal(125, 5, size=(5000, 1))
    m = finding(weights=(1,), outer=((-200.0, 200.0),))
    assert m.sensitivity(dp.row()).exact < finding(weights=(1,)).sensitivity(dp.row()).exact * 2
    with testing.frozen(1):
        low, high = m._draw(rows_of(cells))["ranges"][0]
    assert 80 < low < 125 < high <= 160


def test_a_second_cut_finds_numbers_that_are_close_together() -> None:
    """Numbers near 10,000, within 60 of each other."""
    cells = np.random.default_rng(0).uniform(9970, 10_030, size=(5000, 1))
    for seed in range(5):
        widths = []
        for cuts in (1, 2):
            with testing.frozen(seed):
                low, high = finding(weights=(1,), cuts=cuts)._draw(rows_of(cells))["ranges"][0]
            assert np.mean((cells >= low) & (cells <= high)) > 0.9
            widths.append(high - low)
        assert widths[0] >= 200
        assert widths[1] <= 150


@pytest.mark.parametrize("cuts", [1, 2])
def test_ranges_hold_most_numbers_at_any_scale(cuts: int) -> None:
    shape = np.random.default_rng(1).uniform(1, 2, 20_000)
    columns = [shape * scale for scale in (1e-4, 1.0, 1e6, -1e6)] + [np.where(shape < 1.9, 0.0, shape * 100)]
    m = FoundRanges.for_guarantee(GOAL, weights=(1,) * 5, cuts=cuts)
    for (low, high), values in zip(m._draw(rows_of(np.stack(columns, axis=1)))["ranges"], columns, strict=True):
        assert np.mean((values >= low) & (values <= high)) > 0.95
        assert high - low < 3 * (values.max() - values.min())
    nothing = rows_of([[np.nan, np.inf, np.nan, np.nan, np.nan]] * 9)
    assert np.all(np.diff(m._draw(nothing)["ranges"]) > 0)


def test_only_a_narrow_part_is_cut_again_and_other_bins_are_counted_again() -> None:
    counts = np.zeros(EVEN)
    counts[:8] = [0, 0, 900, 0, 0, 0, 0, 0]
    narrow = Cut(0.0, 8.0, 1.0, bins=8).with_counts(counts).narrowed()
    assert (narrow.low, narrow.high, narrow.draws) == (2.0, 3.0, 0)
    wide = Cut(0.0, 8.0, 1.0, bins=8).with_counts(counts + 100)
    assert wide.narrowed() is wide
    assert wide.with_counts(counts).counts[2] == 950
    assert Cut(0.0, 8.0, 1.0, bins=8, zeros=True).with_counts(counts).kept() == (0.0, 8.0)


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"weights": (1,), "stddev": 1, "cuts": 0}, "out-of-range"),
        ({"weights": (), "stddev": 1}, "empty"),
        ({"weights": (1,)}, "missing-argument"),
        ({"weights": (1,), "stddev": 1, "scale": 1}, "conflicting-arguments"),
        ({"weights": (0,), "stddev": 1}, "out-of-range"),
        ({"weights": (1,), "stddev": 1, "outer": (None, None)}, "wrong-shape"),
        ({"weights": (1,), "stddev": 0}, "out-of-range"),
    ],
)
def test_bad_arguments_have_a_remedy(given: Any, code: str) -> None:
    with refuses(dp.InvalidArgument, code):
        FoundRanges(**given)


# --- estimators -----------------------------------------------------------------------------------------------

MODELS = [
    dp.learn.LinearRegression(),
    dp.learn.LogisticRegression(classes=[0, 1], steps=3),
    dp.learn.HuberRegressor(steps=3),
    dp.learn.GaussianNB(),
    dp.learn.PCA(2),
    dp.learn.KMeans(2),
    dp.learn.StandardScaler(),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_fit_without_bounds_is_one_charge_within_epsilon(model: Any) -> None:
    X, y = data(2000)
    goal = (y > 150).astype(int) if hasattr(model, "classes") else y
    book = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=9, delta=1e-4))
    fitted = base.BaseEstimator.__sklearn_clone__(model).set_params(ledger=book).fit(X, goal)
    assert len(book.entries()) == 1
    assert fitted.release_.guarantee == model.guarantee(n_features=3)
    assert 0.99e-6 < fitted.release_.guarantee.delta_at(epsilon=1) <= 1e-6
    assert fitted.ranges_.shape == (3, 2)
    assert "found privately" in f"found privately: {fitted.release_.found}"
    assert fitted.release_.found[0].startswith("x0 from")
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.ranges_, fitted.ranges_)


BINNED = [
    dp.learn.AdditiveClassifier(classes=[0, 1], steps=10),
    dp.learn.AdditiveRegressor(steps=10),
    dp.learn.BoostedTreesClassifier(classes=[0, 1], rounds=10),
    dp.learn.BoostedTreesRegressor(rounds=10),
    dp.learn.RandomForestClassifier(classes=[0, 1], n_estimators=5),
    dp.learn.RandomForestRegressor(n_estimators=5),
]


@pytest.mark.parametrize("model", BINNED, ids=lambda model: type(model).__name__)
def test_a_model_over_bins_finds_what_is_not_declared_in_one_charge(model: Any) -> None:
    X, y = data(2000)
    goal = (y > 150).astype(int) if hasattr(model, "classes") else y
    book = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=9, delta=1e-4))
    declared = {1: (0, 4000)}
    fitted = base.BaseEstimator.__sklearn_clone__(model).set_params(ledger=book, ranges=declared).fit(X, goal)
    assert len(book.entries()) == 1
    assert 0.99e-6 < fitted.release_.guarantee.delta_at(epsilon=1) <= 1e-6
    named = [text.partition(" from ")[0] for text in fitted.release_.found]
    assert named == ["x0", "x2", *([] if hasattr(model, "classes") else ["the target"])]
    assert fitted.release_.value["ranges"].shape == (len(named), 2)
    if not hasattr(model, "classes"):
        assert fitted.target_range_ == tuple(fitted.release_.value["ranges"][-1])
        known = fitted.set_params(ranges=[(-9, 9), (0, 4000), (4, 6)]).fit(X, goal)
        assert known.release_.found[0].startswith("the target from")


def test_bounds_are_found_in_batches_as_in_memory() -> None:
    X, y = data(500)
    for model in (dp.learn.LinearRegression(), dp.learn.LogisticRegression(classes=[0, 1], steps=3)):
        goal = (y > 150).astype(int) if hasattr(model, "classes") else y
        with testing.frozen(3):
            known = model.fit(X, goal).ranges_
        with testing.frozen(3):
            cut = [(X[:100], goal[:100]), (X[100:], goal[100:])]
            found = model.fit_batches(lambda cut=cut: cut, features=3).ranges_
        np.testing.assert_array_equal(known, found)


def test_least_squares_without_bounds_is_close_to_least_squares() -> None:
    X, y = data(20_000)
    model = dp.learn.LinearRegression(epsilon=1).fit(X, y)
    assert model.score(X, y) > 0.8
    low, high = model.target_range_
    assert low < np.quantile(y, 0.1) < np.quantile(y, 0.9) < high


# --- types ----------------------------------------------------------------------------------------------------


def odd_frames() -> list[Any]:
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    when = pandas.to_datetime(["2020-01-01", "2021-01-01"])
    columns: list[Any] = [["a", "b"], when, pandas.Categorical(["a", "b"]), pandas.Series([1, "x"], dtype=object)]
    frames = [pandas.DataFrame({"age": [1.0, 2.0], "odd": column}) for column in columns]
    polars = pytest.importorskip("polars")
    arrow = pyarrow.table({"age": [1.0, 2.0], "odd": ["a", "b"]})
    return [*frames, arrow, polars.DataFrame({"age": [1.0, 2.0], "odd": ["a", "b"]})]


def test_a_column_with_a_narrow_range_leaves_the_others_of_its_rows() -> None:
    """Almost all of a column of 0 and 1 are 1, and so is its range. The rows with 0 must not count for it alone."""
    table, found = np.array([[0.0, 0.5], [1.0, 0.5]]), np.array([[0.98, 1.0], [-1.0, 1.0]])
    model = dp.learn.LogisticRegression(classes=[0, 1])
    scaled = model._examples(table, np.array([0, 1]), found).plain().X[:, :2]
    assert scaled == pytest.approx(np.array([[-1.0, 0.5], [1.0, 0.5]]) / math.sqrt(2), abs=1e-5)
    draw = np.random.default_rng(0)
    X = draw.uniform(-1, 1, (500, 2))
    fitted = model.set_params(feature_ranges=[(-1, 1)] * 2, epsilon=50).fit(X, (X[:, 0] > 0).astype(int))
    outside, ends = np.array([[7.0, 0.2], [-1e300, 0.2]]), np.array([[1.0, 0.2], [-1.0, 0.2]])
    assert (fitted.decision_function(outside) == fitted.decision_function(ends)).all()


def test_a_rare_value_costs_a_model_without_bounds_little() -> None:
    """Twenty columns of 0 and 1, almost all 1, and one that decides. If whole rows were shortened: 0.76 to 0.82."""
    draw = np.random.default_rng(5)
    X = np.column_stack([draw.random((10_000, 20)) < 0.95, draw.random(10_000) < 0.5]).astype(float)
    y = np.where(draw.random(10_000) < 0.9, X[:, -1], 1 - X[:, -1]).astype(int)
    model = dp.learn.LogisticRegression(classes=[0, 1], epsilon=2, delta=1e-6).fit(X, y)
    assert model.score(X, y) > 0.87  # 0.9 at best


def test_columns_that_are_no_numbers_are_named_before_the_charge() -> None:
    book = dp.Ledger.open(":memory:", protects=dp.row(), limit=GOAL)
    for frame in odd_frames():
        for model in (dp.learn.LinearRegression(ledger=book), dp.learn.PCA(ledger=book)):
            with pytest.raises(dp.InvalidArgument, match="odd") as caught:
                model.fit(frame, [0.0, 1.0])
            assert caught.value.code == "learn-feature-type"
    for array in (np.array([["a"], ["b"]]), np.array([[1.0], [2.0]], dtype=object), np.zeros((2, 1), "datetime64[s]")):
        with refuses(dp.InvalidArgument, "learn-feature-type"):
            dp.learn.LinearRegression(ledger=book).fit(array, [0.0, 1.0])
    with refuses(dp.InvalidArgument, "not-a-number"):
        dp.learn.HuberRegressor(ledger=book).fit(np.zeros((2, 1)), np.array(["a", "b"]))
    assert book.entries() == () or not list(book.entries())


# --- surroundings ---------------------------------------------------------------------------------------------


def test_a_step_that_learns_without_noise_is_warned_about() -> None:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Normalizer, StandardScaler

    X, y = data(100)
    with pytest.warns(UserWarning, match="StandardScaler before LinearRegression learned"):
        make_pipeline(StandardScaler(), dp.learn.LinearRegression()).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_pipeline(Normalizer(), dp.learn.LinearRegression()).fit(X, y)
        make_pipeline(dp.learn.StandardScaler(), dp.learn.LinearRegression()).fit(X, y)


def test_a_ledger_in_memory_is_not_copied_to_another_process() -> None:
    model = dp.learn.LinearRegression(ledger=LostLedger())
    with refuses(dp.DiscreetError, "ledger-in-memory"):
        model.fit(*data(20))
