"""Private densities: exact sums, the covariance that is claimed, the same answer for ever."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet import testing
from discreet.functions.density import Density, density_of, least_bandwidth, process_for
from discreet.guarantees.conversions import gaussian_delta
from discreet.mechanisms.noise.gaussian_process import GaussianProcess, feature_sensitivity
from discreet.rows.features import Axis, FourierFeatures, RandomFeatures

from ..refusing import refuses

GOAL = dp.Approx(epsilon=1, delta=1e-6)


def mixture(count: int = 2000, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return np.where(rng.random(count) < 0.5, rng.normal(1, 1, count), rng.normal(5, 1, count))


def made(rows: Any = None, **kept: Any) -> Density:
    given: dict[str, Any] = {"between": (-1, 7), "bandwidth": 0.4, "guarantee": GOAL}
    return density_of(mixture() if rows is None else rows, **(given | kept))


# --- features ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("between", "bandwidth"),
    [([(0, 8)], [0.6]), ([(-1, 7)], [0.2]), ([(0, 10), (0, 5)], [1, 0.7]), ([(0, 3)] * 3, [1] * 3)],
)
def test_the_kernel_is_the_gaussian_one_within_its_error(between: Any, bandwidth: Any) -> None:
    features = FourierFeatures.over(between, bandwidth)
    rng = np.random.default_rng(1)
    points = rng.uniform([a for a, _ in between], [b for _, b in between], (40, len(between)))
    found = features.features(points) @ features.features(points).T
    apart = (points[:, None, :] - points[None, :, :]) / np.array(bandwidth)
    assert np.abs(found - np.exp(-(apart**2).sum(-1) / 2)).max() <= features.kernel_error
    assert features.kernel_error < (1e-8, 1e-5, 1e-2)[len(between) - 1]


@pytest.mark.parametrize("between", [[(0, 8)], [(0, 8), (0, 4)], [(0, 4)] * 3])
def test_sums_are_those_of_the_rows_and_no_row_is_longer_than_one(between: Any) -> None:
    features = FourierFeatures.over(between, [1] * len(between))
    rng = np.random.default_rng(2)
    rows = rng.uniform(-1, 9, (30, len(between)))
    alone = [features.sums(features.counts(rows[i : i + 1])) for i in range(30)]
    assert (features.sums(features.counts(rows)) == sum(alone)).all()
    most = int(1 / features.unit) ** 2
    assert all(sum(int(x) ** 2 for x in one) <= most for one in alone)
    constant = int(features.constant / features.unit)
    assert all(int(one[0]) == constant for one in alone)
    bound = feature_sensitivity(features, False, dp.row(neighbors="replace"), 1).exact / features.unit
    public = feature_sensitivity(features, True, None, 1).exact / features.unit
    for one in alone:
        assert sum(int(x) ** 2 for x in one[1:]) <= public**2
        assert sum(int(x - y) ** 2 for x, y in zip(one, alone[0], strict=True)) <= bound**2


def test_short_ranges_need_less_noise_under_replacement() -> None:
    wide, narrow = (FourierFeatures.over([(0, end)], [1]).distance() for end in (20, 0.5))
    assert wide == pytest.approx(math.sqrt(2), rel=1e-6)
    assert narrow == pytest.approx(math.sqrt(2 * (1 - math.exp(-0.125))), rel=1e-4)


def test_rows_are_placed_by_a_public_rule() -> None:
    features = FourierFeatures.over([(0, 8)], [0.6])
    odd = np.array([np.nan, np.inf, -np.inf, 1e38, -5.0, 3.0, 3.0])
    counts = features.counts(odd)
    assert counts.sum() == 6
    assert counts[0] == 2
    assert counts[-1] == 2
    assert counts.max() == 2
    assert (features.counts(np.zeros(0)) == 0).all()


def test_many_rows_do_not_wrap() -> None:
    features = FourierFeatures.over([(0, 8)], [0.6])
    counts = np.zeros(features.axes[0].cells, dtype=np.int64)
    counts[3] = 2**40
    assert int(features.sums(counts)[0]) == 2**40 * int(features.axes[0].table[3, 0])


def test_random_features_serve_more_columns() -> None:
    features = RandomFeatures.drawn([(0, 1)] * 6, [0.5] * 6, 400)
    rows = np.random.default_rng(3).random((20, 6))
    alone = [features.sums(features.counts(rows[i : i + 1])) for i in range(20)]
    assert (features.sums(features.counts(rows)) == sum(alone)).all()
    assert all(sum(int(x) ** 2 for x in one) <= 4**30 for one in alone)
    near = features.features(rows) @ features.features(rows).T
    apart = ((rows[:, None, :] - rows[None, :, :]) / 0.5) ** 2
    assert np.abs(near - np.exp(-apart.sum(-1) / 2)).max() < 0.35
    m = GaussianProcess.for_guarantee(GOAL, features=features)
    assert m.guarantee().delta_at(epsilon=1) <= 1e-6


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (lambda: FourierFeatures.over([(1, 0)], [1]), "ends-out-of-order"),
        (lambda: FourierFeatures.over([(0, 1)], [0]), "out-of-range"),
        (lambda: FourierFeatures.over([(0, 1)], [1e-9]), "bandwidth-too-small"),
        (lambda: FourierFeatures.over([(0, 1)] * 4, [1] * 4), "too-large"),
        (lambda: FourierFeatures.over([(0, 100)] * 3, [0.1] * 3), "bandwidth-too-small"),
        (lambda: Axis(0, 1, 1, tolerance=0.5), "out-of-range"),
        (lambda: process_for(GOAL, between=(0, 1), bandwidth=[1, 2]), "wrong-shape"),
        (lambda: made().smooth(0.1), "density-bandwidth"),
        (lambda: made()(1.0, 2.0), "wrong-shape"),
        (lambda: made().quantile(1.5), "out-of-range"),
        (lambda: made().sample(0), "out-of-range"),
    ],
)
def test_bad_arguments_are_told(bad: Any, code: str) -> None:
    with refuses(dp.InvalidArgument, code):
        bad()


# --- the promise ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbors", ["add_or_remove", "replace"])
@pytest.mark.parametrize("public", [False, True])
def test_noise_is_calibrated_on_the_exact_law(neighbors: Any, public: bool) -> None:
    unit = dp.row(neighbors=neighbors)
    features = FourierFeatures.over([(-1, 7)], [0.4])
    m = GaussianProcess.for_guarantee(GOAL, features=features, size=2000 if public else None, unit=unit)
    promised = m.guarantee(m.sensitivity(unit))
    assert promised.delta_at(epsilon=1) <= 1e-6
    assert promised.protects == unit
    mu = float(m.sensitivity(unit).exact) / float(m.noise.stddev)
    assert gaussian_delta(mu, 1.0) == pytest.approx(1e-6, rel=1e-3)
    three = m.sensitivity(dp.person("who"), 3).exact
    assert three == pytest.approx(3 * float(m.sensitivity(dp.person("who"), 1).exact), rel=1e-6)


def test_any_finite_set_of_points_keeps_the_promise() -> None:
    """[T.4.2], [T.6.1], [T.6.5]: answers at points are Gaussian with covariance σ²K; the worst neighbors' δ is as said.

    [T.6.9], [T.6.10]: the noise was chosen for the distance in the RKHS, and no points show a larger one.
    """
    features = FourierFeatures.over([(0, 8)], [0.6])
    m = GaussianProcess.for_guarantee(GOAL, features=features, size=100, unit=dp.row(neighbors="replace"))
    points = np.linspace(0, 8, 7)
    drawn = features.features(points)[:, 1:]
    covariance = drawn @ drawn.T * float(m.noise.stddev) ** 2
    worst = 0.0
    for x in np.linspace(0, 8, 9):
        for y in np.linspace(0, 8, 9):
            moved = drawn @ (features.features([x]) - features.features([y]))[0, 1:]
            worst = max(worst, float(moved @ np.linalg.lstsq(covariance, moved, rcond=1e-9)[0]) ** 0.5)
    assert 0.5e-6 < gaussian_delta(worst, 1.0) <= 1e-6 * 1.001


def test_the_taught_constant_is_there_and_says_what_it_attains() -> None:
    """[T.6.12]: the corrected constant keeps what it says, up to ε = 1; the tight noise is far smaller."""
    kept: dict[str, Any] = {"between": (-1, 7), "bandwidth": 0.485, "size": 200, "unit": dp.row(neighbors="replace")}
    goal = dp.Approx(epsilon=0.1, delta=0.1)
    taught = process_for(goal, calibration="taught", **kept)
    tight = process_for(goal, **kept)
    assert float(taught.noise.stddev) / float(tight.noise.stddev) == pytest.approx(8.6, abs=0.1)
    assert taught.guarantee(taught.sensitivity(dp.row(neighbors="replace"))).delta_at(epsilon=0.1) < 0.02
    with refuses(dp.InvalidArgument, "formula-does-not-apply"):
        process_for(dp.Approx(epsilon=8, delta=0.1), calibration="taught", **kept)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1000, pytest.param(4000, marks=pytest.mark.slow)])
def test_the_noise_has_the_covariance_it_claims(count: int) -> None:
    """Paths at grid and scattered points: each entry within 6 standard errors (false alarms below 1e-6)."""
    for size in (None, 500):
        m = process_for(GOAL, between=(0, 4), bandwidth=0.5, size=size)
        points = np.concatenate([np.linspace(0, 4, 5), [0.123, 2.7182, 3.99]])
        paths = np.array([m.path(points) for _ in range(count)]) / m.deviation
        apart = points[:, None] - points[None, :]
        claimed = np.exp(-(apart**2) / (2 * 0.25)) - (0 if size is None else float(m.features.constant) ** 2)  # type: ignore[union-attr]
        found = paths.T @ paths / count
        assert np.abs(found - claimed).max() < 6 * math.sqrt(2 / count)
        assert np.diag(claimed).min() > 0.5  # no point is without noise


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kept", "few"),
    [
        ({"between": (-1, 7), "bandwidth": 0.4}, 3),
        pytest.param({"between": [(0, 4), (0, 4)], "bandwidth": 1.0}, 0, marks=pytest.mark.slow),
    ],
    ids=["one column", "two columns"],
)
def test_bands_cover_everywhere_at_once(kept: Any, few: int) -> None:
    """90% bands on 400 paths: more than 80 misses would happen with probability below 1e-9; and they are not idle."""
    m = process_for(GOAL, **kept)
    axes = m.features.axes  # type: ignore[union-attr]
    grids = np.meshgrid(*(np.linspace(float(a.low), float(a.high), 200 if len(axes) == 1 else 25) for a in axes))
    points = np.stack([grid.reshape(-1) for grid in grids], axis=1)
    tops = np.array([np.abs(m.path(points)).max() for _ in range(400)])
    assert few <= (tops > m.anywhere(0.1)).sum() <= 80
    assert (np.abs(m.path(points)[:1]) < m.at_one_point(1e-9)).all()


@pytest.mark.slow
@pytest.mark.parametrize("goal", [GOAL, dp.Pure(epsilon=1)], ids=str)
def test_the_error_covers_what_noise_did(goal: Any) -> None:
    rows = mixture()
    misses = 0
    with testing.no_noise():
        plain = made(rows, guarantee=goal)
    points = np.linspace(-1, 7, 100)
    for _ in range(40):
        noisy = made(rows, guarantee=goal)
        misses += float(np.abs(noisy(points) - plain(points)).max()) > float(noisy.error(0.9))
    assert misses <= 16  # of 40 at 90%: more would happen with probability below 1e-6


@pytest.mark.parametrize("odd", [np.nan, np.inf, 1e38, 3.0])
def test_neighbors_see_the_same_draws_and_sums_within_the_sensitivity(odd: float) -> None:
    rows = mixture(50)
    m = process_for(GOAL, between=(-1, 7), bandwidth=0.4)
    seen = []
    for table in (rows, np.append(rows, odd), rows[1:]):
        with testing.frozen(4) as tape:
            m._draw(m.features.counts(table))
        seen.append(tape.calls)
        moved = m.features.sums(m.features.counts(table)) - m.features.sums(m.features.counts(rows))
        assert sum(int(x) ** 2 for x in moved) <= (1 / m.features.unit) ** 2
    assert seen[0] == seen[1] == seen[2]


# --- the object ----------------------------------------------------------------------------------------------------


def test_the_same_point_has_the_same_answer_for_ever() -> None:
    density = made()
    again = pickle.loads(pickle.dumps(density))
    points = np.linspace(-1, 7, 1000)
    assert density(3.21) == density(3.21) == again(3.21) == density(np.array([0.5, 3.21]))[1]
    np.testing.assert_array_equal(density(points), again(points))
    np.testing.assert_allclose(density.grid(1000)[1], density(points), rtol=1e-12)
    assert len(pickle.dumps(density)) < 20_000


def test_without_noise_it_is_the_kernel_density_estimate() -> None:
    rows = mixture(500)
    with testing.no_noise():
        density = made(rows)
    points = np.linspace(0, 6, 13)
    inside = np.clip(rows, -1, 7)
    known = np.exp(-((points[:, None] - inside) ** 2) / (2 * 0.16)).mean(axis=1) / (0.4 * math.sqrt(2 * math.pi))
    np.testing.assert_allclose(density(points), known, atol=2e-4)
    assert density.integrate(-1, 7) == pytest.approx(
        float(np.trapezoid(density.grid(4001)[1], density.grid(4001)[0])), abs=1e-6
    )
    np.testing.assert_allclose(density.score_samples(points[:, None]), np.log(known), atol=0.02)


def test_projected_densities_are_densities() -> None:
    for rows in (mixture(), mixture(20), np.zeros(0)):
        density = made(rows)
        middles, heights = density.projected
        assert heights.min() >= 0
        assert heights.sum() * (middles[1] - middles[0]) == pytest.approx(1)
        shares = density.cdf(np.linspace(-1, 7, 200))
        assert (np.diff(shares) >= 0).all()
        assert (shares[0], shares[-1]) == (0, 1)
        assert density.cdf(density.quantile(0.3)) == pytest.approx(0.3, abs=1e-3)
        drawn = density.sample(2000)
        assert drawn.min() >= -1
        assert drawn.max() <= 7


def test_smoothing_is_free_and_lowers_the_noise() -> None:
    density = made(mixture(500))
    wide = density.smooth(0.8)
    assert wide.bandwidth == (0.8,)
    assert float(wide.error(0.95)) < float(density.error(0.95))
    assert wide.noise_stddev < density.noise_stddev
    with testing.no_noise():
        rows = mixture(500)
        twice, once = made(rows).smooth(0.8), made(rows, bandwidth=0.8)
    np.testing.assert_allclose(twice(np.linspace(1, 5, 9)), once(np.linspace(1, 5, 9)), atol=3e-3)
    assert density.smooth_by_rule().bandwidth[0] >= 0.4
    assert least_bandwidth(4.2, 100, 8) > least_bandwidth(4.2, 10_000, 8)


def test_two_and_three_columns() -> None:
    rng = np.random.default_rng(5)
    for columns in (2, 3):
        density = made(rng.normal(5, 1, (20_000, columns)), between=[(0, 10)] * columns, bandwidth=1.0)
        center = density(*[5.0] * columns)
        assert center == pytest.approx((2 * math.pi * 2) ** (-columns / 2), rel=0.1)
        assert density(np.full((4, columns), 5.0)).tolist() == pytest.approx([center] * 4)
        assert density.sample(50).shape == (50, columns)
        assert density.sample(2000).mean() == pytest.approx(5, abs=0.2)
        assert density.score_samples(np.full((2, columns), 5.0)).shape == (2,)
        with refuses(dp.InvalidArgument, "one-column-only"):
            density.cdf(1.0)


def test_a_ledger_is_charged_once_however_often_it_is_asked() -> None:
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=3, delta=1e-4))
    density = made(ledger=ledger)
    density(np.linspace(-1, 7, 100_000))
    assert len(ledger.entries()) == 1
    assert density.receipt == ledger.entries()[0].receipt
    with refuses(dp.BudgetExhausted, "budget-exhausted"):
        made(ledger=ledger, guarantee=dp.Approx(epsilon=50, delta=1e-6))


def visits(rows: int = 20_000) -> Any:
    rng = np.random.default_rng(6)
    people = {
        "patient_id": rng.integers(0, 8000, rows),
        "cost": rng.lognormal(6, 0.8, rows),
        "age": rng.integers(0, 100, rows),
    }
    people["city"] = rng.choice(["Haifa", "Bled"], rows)
    people["day"] = np.datetime64("2024-01-01") + rng.integers(0, 365, rows).astype("timedelta64[D]")
    ledger = dp.Ledger.open(":memory:", protects=dp.person("patient_id"), limit=dp.Approx(epsilon=30, delta=1e-4))
    return dp.table(people, ledger=ledger, rows_per_person=5, version="1"), ledger


def test_the_tour(tmp_path: Any) -> None:
    table, ledger = visits()
    density = table.density("cost", bandwidth=200, between=(0, 5000), epsilon=1, delta=1e-6)
    assert density(1200.0) > 0
    assert float(density.error(0.95)) > 0
    assert density.sample(1000).shape == (1000,)
    density.plot(str(tmp_path / "cost.png"))
    assert (tmp_path / "cost.png").stat().st_size > 5000
    again = table.density("cost", bandwidth=200, between=(0, 5000), epsilon=1, delta=1e-6)
    assert again(1200.0) == density(1200.0)  # asked before of the same data: the stored answer, at no cost
    assert len(ledger.entries()) == 1
    assert float(density.process.sensitivity(dp.person("patient_id"), 5).exact) == pytest.approx(5)
    assert "costs ε = 1" in table.explain.density("cost", bandwidth=200, between=(0, 5000), epsilon=1, delta=1e-6)


@pytest.mark.parametrize("name", ["nowhere/cost.png", "cost.toml"])
def test_a_path_that_cannot_be_a_picture_is_told(name: str, tmp_path: Any) -> None:
    with refuses(dp.InvalidArgument, "picture-not-written"):
        made().plot(str(tmp_path / name))


@pytest.mark.slow
def test_a_picture_stays_in_no_list_and_a_notebook_shows_it() -> None:
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    figure = made().plot(title="in $ and $_")  # no formula
    assert plt.get_fignums() == before
    for shown in (figure, pickle.loads(pickle.dumps(figure))):
        assert shown._repr_png_().startswith(b"\x89PNG")


@pytest.mark.slow
def test_tables_have_densities_of_dates_pairs_and_by_rule(tmp_path: Any) -> None:
    import datetime

    table, _ = visits()
    year = (datetime.date(2024, 1, 1), datetime.date(2024, 12, 31))
    days = table.density("day", between=year, bandwidth=20, epsilon=1, delta=1e-6)
    middle = (datetime.date(2024, 7, 1) - datetime.date(1970, 1, 1)).days
    assert days(middle) == pytest.approx(1 / 366, rel=0.2)
    both = table.density(["age", "cost"], between=[(0, 120), (0, 5000)], bandwidth=[10, 300], epsilon=1, delta=1e-6)
    both.plot(str(tmp_path / "two.png"))
    assert both(50.0, 400.0) > both(50.0, 4000.0)
    ruled = table.density("cost", between=(0, 5000), epsilon=1, delta=1e-6)
    assert 50 <= ruled.bandwidth[0] < 1000
    pure = table.density("age", between=(0, 120), bandwidth=15, epsilon=2)
    assert pure.guarantee.pure.epsilon <= 2
    for wrong in (
        {"column": "city", "between": (0, 1)},
        {"column": "none", "between": (0, 1)},
        {"column": ["age", "cost"], "between": [(0, 1)]},
        {"column": ["age", "cost"], "between": [(0, 120), (0, 5000)]},
    ):
        with pytest.raises(dp.InvalidArgument):
            table.density(**wrong, epsilon=1, delta=1e-6)


def test_the_sup_of_the_noise_on_the_thesis_example() -> None:
    """n = 200, h = .485 at (1, 0.1): the mean supremum of 30 paths is small; the taught constant's is twice that."""
    kept: dict[str, Any] = {"between": (-1, 7), "bandwidth": 0.485, "size": 200, "unit": dp.row(neighbors="replace")}
    points = np.linspace(-1, 7, 200)
    tops = []
    for calibration in ("tight", "taught"):
        m = process_for(dp.Approx(epsilon=1, delta=0.1), calibration=calibration, **kept)
        height = m.features.height / 200
        tops.append(np.mean([np.abs(m.path(points)).max() for _ in range(30)]) * height)
    assert tops[0] < 0.0155
    assert tops[1] > 1.7 * tops[0]


def test_the_unit_is_a_power_of_two() -> None:
    assert FourierFeatures.over([(0, 8)], [0.6]).unit == Fraction(1, 2**30)


def book(**unit: Any) -> Any:
    return dp.Ledger.open(":memory:", protects=dp.row(**unit), limit=dp.Approx(epsilon=9, delta=1e-3))


def test_smoothing_does_not_run_around_the_circle() -> None:
    rows = np.random.default_rng(1).exponential(100, 20_000)
    density = density_of(rows, between=(0, 1000), bandwidth=10, widest=200, guarantee=GOAL)
    direct = density_of(rows, between=(0, 1000), bandwidth=150, guarantee=GOAL)
    wide = density.smooth(150)
    assert abs(wide(1000.0) - direct(1000.0)) < 2 * float(wide.error(0.999)) + 1e-5
    assert wide.quantile(0.9) == pytest.approx(direct.quantile(0.9), rel=0.02)
    with refuses(dp.InvalidArgument, "density-bandwidth"):
        density.smooth(300)
    few = dp.table({"x": rows[:3000]}, ledger=book()).density("x", between=(0, 1000), epsilon=1, delta=1e-6)
    assert abs(few(1000.0)) < 3 * float(few.error(0.99))


def test_beyond_the_range_there_is_nothing() -> None:
    density = density_of(np.full(1000, 5.0), between=(0, 1000), bandwidth=10, guarantee=GOAL)
    assert density(1e4) == 0
    assert density(-1e9) == 0
    assert density.integrate(-1e9, 1e9) == pytest.approx(1, abs=0.05)
    assert density.grid(np.int64(5))[1].shape == (5,)


def test_samples_of_two_columns_are_of_the_projected_density() -> None:
    rows = 0.5 + 0.03 * np.random.default_rng(2).standard_normal((2000, 2))
    density = density_of(rows, between=[(0, 1), (0, 1)], bandwidth=0.05, guarantee=GOAL)
    drawn = density.sample(4000)
    inside = (np.abs(drawn - 0.5) < 0.25).all(axis=1).mean()
    assert inside > 0.9
    assert drawn.min() > 0
    assert drawn.max() < 1
