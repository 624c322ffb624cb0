"""Rows that are curves: a curve's part depends on it alone, promises hold, bands cover, nothing private is kept."""

from __future__ import annotations

import math
import pickle
import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

import discreet as dp
from discreet import testing
from discreet.errors import BudgetExhausted, IncompatibleGuarantee, InvalidArgument
from discreet.exact.rational import exactly
from discreet.functions.cosines import Cosines, CurveRows, cosines_for
from discreet.functions.curves import CurvePCA, CurveRegression, MeanCurve, SanitizedCurves, sanitized_curves
from discreet.functions.mean_curve import shrink
from discreet.learn.checks import expected_failed_checks
from discreet.mechanisms.learning.moments import exact_moments
from discreet.rows.rounding import BLOCK

from ..refusing import refuses

POINTS = np.array([0.0, 1.0, 2.0, 4.0, 8.0, 9.0, 9.5, 10.0])
LIMIT = dp.Approx(epsilon=10, delta=1e-4)
REPLACED = dp.row(neighbors="replace")
UNITS = [dp.row(), REPLACED, dp.person("id"), dp.person("id", neighbors="replace")]


def data(n=60, seed=0, points=POINTS):
    draw = np.random.default_rng(seed)
    x = (np.arange(len(points)) + 0.5) / len(points)
    level, tilt, wave = draw.uniform(-1, 1, size=(3, n, 1))
    return 0.3 * level + 0.4 * tilt * np.cos(np.pi * x) + 0.2 * (1 + wave) * np.cos(3 * np.pi * x)


def odd(cell, place=2):
    curve = np.full((1, len(POINTS)), 0.1)
    curve[0, place] = cell
    return curve


NEIGHBORS = {
    "removed": lambda X: X[1:],
    "a double": lambda X: np.r_[X, X[:1]],
    "nan": lambda X: np.r_[X, odd(math.nan)],
    "infinite": lambda X: np.r_[X, odd(-math.inf)],
    "1e38": lambda X: np.r_[X, odd(1e38)],
    "1e308": lambda X: np.r_[X, np.full((1, 8), 1e308)],
    "tiny": lambda X: np.r_[X, odd(5e-324)],
    "replaced": lambda X: np.r_[-9 * X[:1], X[1:]],
    "replaced by nan": lambda X: np.r_[odd(math.nan), X[1:]],
    "nobody": lambda X: X[:0],
}


# --- curves as vectors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 3, 8])
def test_functions_are_orthonormal_for_the_mean_over_any_points(size):
    basis = Cosines(tuple(POINTS), size)
    assert np.allclose(basis.values.T @ basis.values / len(POINTS), np.eye(size), atol=1e-14)
    assert np.allclose(basis(POINTS), basis.values, atol=1e-14)
    curves = data(20)
    found = basis.coefficients(curves)
    assert np.allclose(found, curves @ basis.values / len(POINTS), atol=1e-6)
    if size == len(POINTS):
        assert np.allclose(found @ basis.values.T, curves, atol=1e-5)
        assert np.allclose((found**2).sum(1), (curves**2).mean(1), atol=1e-6)


@pytest.mark.parametrize("columns", [1, 2, 24, 257])
def test_a_curves_numbers_depend_on_that_curve_alone(columns):
    """Sums of doubles would not do: the order in which a matrix product adds changes with the number of rows."""
    draw = np.random.default_rng(1)
    curves = draw.normal(size=(300, columns)) * 2.0 ** draw.integers(-60, 60, size=(300, 1))
    curves[0], curves[1], curves[2] = 1e308, math.nan, 5e-324
    basis = cosines_for(None, "all", columns)
    together = basis.coefficients(curves)
    for place in range(0, 300, 7):
        assert np.array_equal(basis.coefficients(curves[place : place + 1])[0], together[place], equal_nan=True)
    order = draw.permutation(300)
    assert np.array_equal(basis.coefficients(np.asfortranarray(curves[order])), together[order], equal_nan=True)
    assert np.isnan(together[1]).all()
    assert np.isfinite(np.delete(together, 1, axis=0)).all()
    exact = [Fraction(float(x)) for x in curves[5]]
    whole = sum(exact, Fraction(0)) / columns  # the first coefficient is the mean
    assert float(whole) == pytest.approx(together[5][0], abs=1e-5 * np.abs(curves[5]).max())


def test_no_curve_comes_out_longer_than_the_norm():
    curves = np.concatenate([data(50) * 1e3, np.full((1, 8), 1e308), odd(1e38), odd(math.inf)])
    rows = CurveRows(curves, basis=Cosines(tuple(POINTS), 8), curve_norm=0.7, target_bound=None)
    ((whole, kept),) = rows.blocks()
    lengths = [sum(int(x) ** 2 for x in row) for row in whole]
    most = (exactly(0.7) / rows.unit) ** 2
    assert max(lengths) <= most
    assert lengths[50] >= 0.9999 * float(most)  # 1e308 is shortened, not left out
    assert lengths[-1] == 0
    assert np.isnan(kept).tolist() == [False] * 52 + [True]


def test_many_curves_add_exactly_in_any_order():
    curves = data(BLOCK + 100)
    basis = Cosines(tuple(POINTS), 5)
    order = np.random.default_rng(0).permutation(len(curves))
    one, other = (
        exact_moments(CurveRows(c, basis=basis, curve_norm=1, target_bound=None), ["square", "sum", "count"])
        for c in (curves, curves[order])
    )
    assert all((a == b).all() for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("parts", [{"sum": 1}, {"sum": 1, "count": 3}])
@pytest.mark.parametrize("unit", [dp.row(), REPLACED])
def test_no_neighbors_are_further_apart_than_declared(parts, unit):
    """[T.3.4]: rows that are curves, any one of them changed."""
    book = dp.Ledger.open(":memory:", protects=unit, limit=LIMIT)
    model = MeanCurve(points=POINTS, curve_norm=0.5, basis=5, ledger=book, n_samples=None if "count" in parts else 60)
    plan = model._plan(5)
    assert {part for part in ("sum", "count") if getattr(plan, part) is not None} == set(parts)
    bound, X = plan.sensitivity(unit).exact ** 2, data()

    def moments(curves):
        rows = CurveRows(curves, basis=Cosines(tuple(POINTS), 5), curve_norm=0.5, target_bound=None)
        return exact_moments(rows, list(parts))

    base, furthest = moments(X), Fraction(0)
    kinds = [name for name in NEIGHBORS if name != "nobody" and (name.startswith("replaced") == (unit == REPLACED))]
    for name in kinds:
        apart = Fraction(0)
        for part, a, b in zip(parts, base, moments(NEIGHBORS[name](X)), strict=True):
            grain, variance = plan._grain(part), exactly(getattr(plan, part)) ** 2
            apart += sum(Fraction(int(x)) ** 2 for x in np.ravel(a - b)) * grain**2 / variance
        assert apart <= bound
        furthest = max(furthest, apart)
    if unit == dp.row():
        assert furthest >= bound * Fraction(999, 1000)  # a long curve that is added


# --- neighbors look alike but for the numbers -----------------------------------------------------------------


def seen(model, curves, goals):
    with testing.frozen(4) as tape:
        fitted = clone(model).fit(curves, goals)
    value = fitted.release_.value
    shapes = {part: np.shape(x) for part, x in value.items()} if isinstance(value, dict) else None
    numbers = [x for x in vars(fitted).values() if isinstance(x, np.ndarray | float)]
    assert all(np.isfinite(np.asarray(x, dtype=float)).all() for x in numbers)
    return tape.calls, shapes, fitted.release_.guarantee, sorted(vars(fitted))


@pytest.mark.parametrize(
    "model",
    [
        MeanCurve(points=POINTS),
        MeanCurve(points=POINTS, damp=False, basis=3, n_samples=60),
        CurvePCA(2, points=POINTS),
        CurvePCA(points=POINTS, center=None, n_samples=60),
        CurveRegression(points=POINTS),
        CurveRegression(points=POINTS, basis=4, fit_intercept=False),
    ],
    ids=repr,
)
@pytest.mark.parametrize("change", NEIGHBORS.values(), ids=NEIGHBORS)
def test_neighbors_differ_in_numbers_only(model, change):
    X = data()
    assert seen(model, X, np.zeros(len(X))) == seen(model, change(X), np.zeros(len(change(X))))


@pytest.mark.parametrize("change", ["replaced", "replaced by nan"])
def test_sanitized_neighbors_differ_in_one_copy_only(change):
    X, copies = data(), []
    for curves in (X, NEIGHBORS[change](X)):
        with testing.frozen(4) as tape:
            made = sanitized_curves(curves, points=POINTS)
        copies.append((tape.calls, made.curves_))
    assert copies[0][0] == copies[1][0]
    assert (copies[0][1][1:] == copies[1][1][1:]).all()
    assert (copies[0][1][0] != copies[1][1][0]).all()
    assert np.isfinite(copies[1][1]).all()


def test_cells_that_are_no_numbers_stop_nothing():
    X = data(30).astype(object)
    X[3, 2], X[4, 0] = "wrong", None
    assert np.isfinite(MeanCurve(points=POINTS).fit(X).mean_).all()
    assert np.isfinite(sanitized_curves(X, points=POINTS).curves_).all()


# --- promises -------------------------------------------------------------------------------------------------

MODELS = [MeanCurve, CurvePCA, CurveRegression]


@pytest.mark.parametrize("estimator", MODELS)
@pytest.mark.parametrize("unit", UNITS, ids=repr)
def test_the_promise_is_kept_and_tight_for_every_unit(estimator, unit):
    book = dp.Ledger.open(":memory:", protects=unit, limit=LIMIT)
    rows = None if unit.column is None else 3
    model = estimator(points=POINTS, epsilon=0.5, delta=1e-7, ledger=book, rows_per_person=rows)
    promised = model.guarantee()
    assert promised.protects == unit
    assert promised.trust == "central"
    assert 0.999e-7 < promised.delta_at(epsilon=0.5) <= 1e-7
    assert len(list(book.entries())) == 0
    assert model.fit(data(), np.zeros(60)).release_.guarantee == promised
    assert len(list(book.entries())) == 1


@pytest.mark.parametrize("unit", UNITS, ids=repr)
def test_copies_are_local_and_for_replaced_curves(unit):
    book = dp.Ledger.open(":memory:", protects=unit, limit=LIMIT)
    model = SanitizedCurves(points=POINTS, epsilon=0.5, delta=1e-7, ledger=book, rows_per_person=1)
    promised = model.guarantee()
    assert promised.trust == "local"
    assert promised.relation == "replace"
    assert 0.999e-7 < promised.delta_at(epsilon=0.5) <= 1e-7
    if unit.neighbors == "add_or_remove":  # the number of copies is told
        with refuses(IncompatibleGuarantee, "incompatible-guarantee"):
            model.fit(data())
        assert len(list(book.entries())) == 0
    else:
        assert model.fit(data()).release_.guarantee == promised


def test_copies_have_the_noise_of_the_whole_diameter_and_of_all_of_a_persons():
    one = sanitized_curves(data(), points=POINTS, curve_norm=3)
    assert one.noise_ == pytest.approx(
        6 * dp.Gaussian.for_guarantee(dp.Approx(epsilon=1, delta=1e-6), sensitivity=1).stddev, rel=1e-6
    )
    four = sanitized_curves(data(), points=POINTS, curve_norm=3, rows_per_person=4)
    assert four.noise_ == pytest.approx(2 * one.noise_, rel=1e-6)


@pytest.mark.parametrize("rule", ["best", "basic", "zcdp", "renyi"])
def test_every_rule_is_charged_once_a_fit(rule):
    book = dp.Ledger.open(":memory:", protects=REPLACED, limit=LIMIT, rule=rule)
    models = [estimator(points=POINTS, ledger=book, epsilon=0.5) for estimator in [*MODELS, SanitizedCurves]]
    for many, model in enumerate(models):
        model.fit(data(), np.zeros(60))
        assert len(list(book.entries())) == many + 1
        assert model.release_.receipt is not None


def test_the_charge_comes_before_the_curves_are_read(monkeypatch):
    def never(self, curves):
        raise AssertionError("read")

    book = dp.Ledger.open(":memory:", protects=REPLACED, limit=dp.Approx(epsilon=0.6, delta=1e-5), rule="basic")
    monkeypatch.setattr(Cosines, "coefficients", never)
    for estimator in (MeanCurve, SanitizedCurves):
        with pytest.raises(AssertionError, match="read"):
            estimator(points=POINTS, epsilon=0.3, ledger=book).fit(data())
    assert len(list(book.entries())) == 2
    with refuses(BudgetExhausted, "budget-exhausted"):
        MeanCurve(points=POINTS, epsilon=0.3, ledger=book).fit(data())


def test_noise_is_what_the_plan_says():
    """The mean of 1000 numbers of noise squared is within 25% of its variance, but for one in 10^7."""
    model = MeanCurve(curve_norm=2, n_samples=1, damp=False)
    with testing.frozen(9):
        model.fit(np.zeros((0, 1000)))
    told = model._noise
    assert told == pytest.approx(
        2 * dp.Gaussian.for_guarantee(dp.Approx(epsilon=1, delta=1e-6), sensitivity=1).stddev, rel=1e-3
    )
    assert (np.asarray(model.release_.value["sum"]) ** 2).mean() == pytest.approx(told**2, rel=0.25)


def test_shares_of_the_count():
    added = MeanCurve(curve_norm=2)._plan(16)
    assert (float(added.sum) / (2 * float(added.count))) ** 2 == pytest.approx(1 / 4, rel=1e-6)
    book = dp.Ledger.open(":memory:", protects=REPLACED, limit=LIMIT)
    counted, public = (MeanCurve(curve_norm=2, ledger=book, n_samples=n)._plan(16) for n in (None, 5))
    assert float(counted.sum) == pytest.approx(float(public.sum), rel=1e-6)  # the count is free


# --- without noise --------------------------------------------------------------------------------------------


def test_no_noise_gives_the_mean_itself():
    X = np.r_[data(500), odd(math.nan)]
    with testing.no_noise():
        for n in (None, 500):
            model = MeanCurve(points=POINTS, curve_norm=2, n_samples=n, damp=False).fit(X)
            assert np.allclose(model.mean_, X[:-1].mean(0), atol=1e-5)
            assert np.allclose(model(POINTS), model.mean_)
        many = MeanCurve(points=POINTS, curve_norm=2).fit(np.tile(X, (40, 1)))
        assert np.allclose(many.mean_, X[:-1].mean(0), atol=1e-3)
    assert model.release_.not_private


def test_no_noise_gives_the_components_themselves():
    X = data(4000)
    with testing.no_noise():
        model = CurvePCA(3, points=POINTS, curve_norm=2, epsilon=1000).fit(X)
    values, vectors = np.linalg.eigh(np.cov(X.T, bias=True) / 8)
    assert np.allclose(model.explained_variance_, values[::-1][:3], rtol=1e-3)
    assert np.allclose(np.abs((model.components_ / math.sqrt(8)) @ vectors[:, ::-1][:, :3]), np.eye(3), atol=1e-2)
    assert np.allclose(model.components_ @ model.components_.T / 8, np.eye(3), atol=1e-12)
    assert np.allclose(model.mean_, X.mean(0), atol=1e-3)
    scores = model.transform(X)
    assert np.allclose(scores, (X - model.mean_) @ model.components_.T / 8, atol=1e-5)
    assert np.allclose(scores.var(0), model.explained_variance_, rtol=1e-2)
    assert np.allclose(model.inverse_transform(scores), X, atol=1e-2)  # they vary in three ways only
    assert np.allclose(model.at(POINTS), model.components_)


def test_no_noise_gives_the_line_itself():
    X = data(4000) + 0.2 * np.random.default_rng(8).normal(size=(4000, 8))
    truth = 0.5 * np.cos(np.pi * (np.arange(8) + 0.5) / 8)
    y = 0.2 + X @ truth / 8
    with testing.no_noise():
        model = CurveRegression(points=POINTS, curve_norm=2, epsilon=1000, basis=4).fit(X, y)
    assert np.allclose(model.predict(X), y, atol=1e-2)
    assert model.intercept_ == pytest.approx(0.2, abs=1e-2)
    assert np.allclose(model.coefficient_curve_, truth, atol=0.05)
    assert np.allclose(model.at(POINTS), model.coefficient_curve_)
    assert model.score(X, y) > 0.99
    assert model.error(0.95).amount > 0


def test_no_noise_gives_the_curves_themselves():
    X = data(30)
    with testing.no_noise():
        made = sanitized_curves(X, points=POINTS, curve_norm=2)
        short = sanitized_curves(100 * X, points=POINTS, curve_norm=2)
    assert np.allclose(made.curves_, X, atol=1e-4)
    assert np.allclose(np.sqrt((short.curves_**2).mean(1)), 2, atol=1e-4)
    assert np.allclose(made.at(POINTS), made.curves_)


# --- errors and bands -----------------------------------------------------------------------------------------


@pytest.mark.some_quick(1)
@pytest.mark.parametrize(
    ("counted", "damp", "releases"),
    [
        (True, True, 60),
        (False, False, 150),
        *(pytest.param(c, d, 300, marks=pytest.mark.slow) for c in (False, True) for d in (False, True)),
    ],
)
def test_bands_and_errors_cover(counted, damp, releases):
    """At 80%: as many releases are covered as must be but for one in 10^7, and the bands are not far too wide."""
    X = data(400)
    basis = Cosines(tuple(POINTS), 6)
    with testing.no_noise():
        kept = MeanCurve(points=POINTS, curve_norm=2, basis=6, damp=False).fit(X)
    true, norm = kept(basis.fine), kept._curves
    model = MeanCurve(points=POINTS, curve_norm=2, basis=6, damp=damp, n_samples=None if counted else 400)
    covered = dict.fromkeys(("band", "place", "every value", "value", "norm"), 0)
    with testing.frozen(21):
        for _ in range(releases):
            gap = np.abs(model.fit(X)(basis.fine) - true)
            low, high = model.band(0.8, basis.fine)
            covered["band"] += bool(((low <= true) & (true <= high)).all())
            low, high = model.band(0.8, 3.3, everywhere=False)
            covered["place"] += bool(low <= kept(3.3) <= high)
            covered["every value"] += bool(gap.max() <= model.error(0.8).amount)
            covered["value"] += bool(gap[37] <= model.error(0.8, of="value").amount)
            covered["norm"] += bool(np.linalg.norm(model._curves - norm) <= model.error(0.8, of="norm").amount)
    assert min(covered.values()) >= binom.ppf(1e-7, releases, 0.8)
    most = binom.isf(1e-7, releases, 0.8)
    if not damp:
        assert covered["place"] <= most
        assert covered["band"] <= releases * 0.98
    if not damp and not counted:
        assert covered["norm"] <= most


def test_the_band_of_all_functions_holds_between_the_points_too():
    basis = Cosines(tuple(POINTS), 8)
    many, one = (basis.deviations(0.05, everywhere=e) for e in (True, False))
    assert one == pytest.approx(1.95996, abs=1e-4)
    assert one < many < 3.6
    draw = np.random.default_rng(3).normal(size=(4000, 8))
    outside = (np.abs(draw @ basis(basis.fine).T) > many * basis.length(basis.fine)).any(1).mean()
    assert 0.02 < outside < 0.07  # 0.05 at most: five deviations of 4000 tries are 0.017
    assert Cosines((0.0,), 1).deviations(0.05, everywhere=True) == pytest.approx(one)


def test_no_bound_where_the_count_is_lost():
    with testing.frozen(1):
        model = MeanCurve(points=POINTS, epsilon=0.01).fit(data(2))
    for of in ("value", "every value", "norm"):
        assert model.error(0.95, of=of).amount is None
    low, high = model.band()
    assert np.isinf(low).all()
    assert np.isinf(high).all()


def test_copies_are_as_wrong_as_they_say():
    X = data(400)
    with testing.frozen(5):
        made = sanitized_curves(X, points=POINTS, curve_norm=2, epsilon=3)
    gap = np.abs(made.at(made.basis_.fine) - made.basis_.coefficients(X) @ made.basis_(made.basis_.fine).T)
    norm = np.sqrt(((made.curves_ - X) ** 2).mean(1))
    assert 0.74 < (norm <= made.error(0.8, of="norm").amount).mean() < 0.9
    assert (gap.max(1) <= made.error(0.8).amount).mean() > 0.74
    assert (gap[:, 9] <= made.error(0.8, of="value").amount).mean() > 0.74
    assert float(made.error(0.95, of="norm")) > 2  # more than a curve may be: the price of trusting nobody


def test_damping_is_worth_its_while():
    """Root mean squares of 60 fits each: at most as wrong as without, and much less where there is much noise."""
    draw = np.random.default_rng(0)
    x = (np.arange(40) + 0.5) / 40
    truths = {"smooth": np.sin(3 * x), "rough": draw.normal(size=40), "none": 0 * x, "step": 1.0 * (x > 0.4)}
    for name, truth in truths.items():
        true = cosines_for(None, "all", 40).coefficients(truth[None])[0]
        noisy = true + 0.05 * draw.normal(size=(60, 40))
        gaps = np.array([((shrink(one, 0.05, 2.0)[0] - true) ** 2).sum() for one in noisy])
        before = ((noisy - true) ** 2).sum(1).mean()
        assert gaps.mean() < (1.02 if name == "rough" else 0.6) * before
        told = np.mean([shrink(one, 0.05, 2.0)[1].sum() for one in noisy])
        assert told < before  # and about right, where there is anything to be right about
        assert name == "none" or 0.3 * told < gaps.mean() < 3 * told
    exact, variances = shrink(true, 1e-12, 2.0)
    assert np.allclose(exact, true)
    assert (variances <= 1e-20).all()


def test_damped_means_beat_plain_ones():
    X = data(200, points=np.arange(30))
    sizes = {}
    for damp in (False, True):
        with testing.frozen(2):
            model = MeanCurve(curve_norm=1, n_samples=200, damp=damp)
            sizes[damp] = np.mean([((model.fit(X).mean_ - X.mean(0)) ** 2).mean() for _ in range(20)])
    assert sizes[True] < 0.7 * sizes[False]


# --- what leaves, and what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [*MODELS, SanitizedCurves])
def test_a_pickled_model_is_the_same_and_holds_no_curve(estimator):
    X = data(50)
    X[7] = 0.123456789
    model = estimator(points=POINTS).fit(X, np.zeros(50))
    text = pickle.dumps(model)
    assert np.float64(0.123456789).tobytes() not in text
    assert X[3].tobytes() not in text
    again = pickle.loads(text)
    assert np.array_equal(again.at([0.0, 3.3, 10.0]), model.at([0.0, 3.3, 10.0]))
    assert (model.at(3.3) == model.at([3.3, 4])[..., 0]).all()
    assert model.release_.guarantee == again.release_.guarantee


def test_a_mean_is_a_function_of_any_shape():
    model = MeanCurve(points=POINTS).fit(data())
    assert model(3.3).shape == ()
    assert model(np.full((2, 3), 3.3)).shape == (2, 3)
    assert model.deviation_.shape == model.mean_.shape == (8,)
    assert (model.deviation_ > 0).all()
    assert (model.mean_**2).mean() <= 1 + 1e-12  # no longer than a curve
    low, high = model.band(0.9, [[0.0, 3.3]])
    assert low.shape == high.shape == (1, 2)
    assert ((low <= model([[0.0, 3.3]])) & (model([[0.0, 3.3]]) <= high)).all()


@pytest.mark.slow
def test_pictures(tmp_path):
    figure = MeanCurve(points=POINTS, epsilon=5).fit(data()).plot(tmp_path / "mean.png", title="cost in $")
    assert (tmp_path / "mean.png").stat().st_size > 1000
    assert len(figure.axes[0].collections) == 2
    with testing.no_noise():
        shown = MeanCurve(points=POINTS, epsilon=5).fit(data()).plot()
    assert "NOT PRIVATE" in shown.axes[0].get_title()
    with refuses(InvalidArgument, "picture-not-written"):
        MeanCurve(points=POINTS, epsilon=5).fit(data()).plot(tmp_path / "nowhere" / "mean.png")


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"points": [0, 1, 1]}, "not-increasing"),
        ({"points": [0, math.nan, 1]}, "not-increasing"),
        ({"points": "abc"}, "not-a-number"),
        ({"points": []}, "not-increasing"),
        ({"points": [[0, 1]]}, "not-increasing"),
        ({"points": [0, 1, 2]}, "wrong-shape"),
        ({"basis": 9}, "out-of-range"),
        ({"basis": 0}, "out-of-range"),
        ({"basis": "some"}, "not-a-number"),
        ({"curve_norm": 0}, "out-of-range"),
        ({"curve_norm": math.inf}, "not-a-number"),
        ({"curve_norm": 1e200}, "out-of-range"),
        ({"epsilon": 0}, "out-of-range"),
        ({"delta": 0}, "needs-delta"),
        ({"n_samples": 0}, "out-of-range"),
        ({"rows_per_person": 0}, "out-of-range"),
        ({"ledger": "book"}, "wrong-type"),
    ],
)
@pytest.mark.parametrize("estimator", [*MODELS, SanitizedCurves])
def test_bad_settings_are_refused_before_anything_is_read(estimator, settings, code, monkeypatch):
    if estimator is SanitizedCurves and "n_samples" in settings:
        return
    monkeypatch.setattr(Cosines, "coefficients", None)
    with refuses(InvalidArgument, code):
        estimator(**settings).fit(data(), np.zeros(60))


@pytest.mark.some_quick(1)
@pytest.mark.parametrize("model", [MeanCurve(), CurvePCA(), CurveRegression()], ids=repr)
def test_scikit_learns_own_checks(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(model, expected_failed_checks=expected_failed_checks(model), on_skip=None, on_fail=None)
    assert [one["check_name"] for one in found if one["status"] == "failed"] == []
    assert sum(one["status"] == "passed" for one in found) >= 35


def test_other_refusals():
    with pytest.raises(NotFittedError):
        MeanCurve()(0.5)
    with refuses(InvalidArgument, "missing-argument"):
        MeanCurve().guarantee()
    with refuses(InvalidArgument, "out-of-range"):
        CurvePCA(6, basis=5).fit(data())
    with refuses(InvalidArgument, "wrong-shape"):
        CurveRegression().fit(data(), np.zeros(59))
    model = MeanCurve(points=POINTS).fit(data())
    for where in (-0.1, 10.1, math.nan):
        with refuses(InvalidArgument, "out-of-range"):
            model(where)
    with refuses(InvalidArgument, "not-an-option"):
        model.error(0.95, of="sup")
    with refuses(InvalidArgument, "out-of-range"):
        model.band(1)
    with refuses(InvalidArgument, "wrong-shape"):
        CurvePCA().fit(data()).transform(data()[:, :7])
