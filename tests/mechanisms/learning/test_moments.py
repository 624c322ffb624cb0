"""Noisy moments: exact sums of rounded rows, a distance in deviations that no neighbors pass, and a tight promise."""

from __future__ import annotations

import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet import testing
from discreet.errors import InvalidArgument
from discreet.exact.rational import exactly
from discreet.guarantees.privacy_loss.derived_pairs import near_gaussian
from discreet.guarantees.privacy_loss.pairs import GaussianPair
from discreet.mechanisms.learning.deviations import noisy_units, within_deviations
from discreet.mechanisms.learning.moments import PARTS, Moments, exact_moments
from discreet.rows.rounding import BLOCK, RoundedRows, exact_sums, unit_of

from ...refusing import refuses

REPLACED = dp.row(neighbors="replace")
ASKED = dp.Approx(epsilon=1, delta=1e-6)
ALL = {"square": 2, "product": 4, "sum": 2, "target": 2, "count": 1}
STRANGE = {
    "long": [30.0, -40.0, 5.0],
    "at the norm": [1.2, 0.0, 1.6],
    "tiny": [1e-300, 5e-324, -1e-200],
    "huge": [1e308, -1e308, 1e308],
    "1e38": [1e38, 1.0, 0.0],
    "nan": [math.nan, 0.1, 0.2],
    "infinite": [math.inf, 0.1, -math.inf],
    "zero": [0.0, -0.0, 0.0],
}
GOALS = (0.3, -9.0, 1e300, math.nan, -math.inf, 3.0)


def rounded(rows, goals, **bounds):
    usual = {"feature_norm": 2, "target_bound": 3} | bounds
    return RoundedRows(np.array(rows, dtype=float).reshape(-1, 3), np.array(goals, dtype=float), **usual)


def usual(n=40, seed=3):
    draw = np.random.default_rng(seed)
    return draw.normal(size=(n, 3)).tolist(), draw.normal(size=n).tolist()


def moments(**noise):
    return Moments(features=3, feature_norm=2, target_bound=3, **noise)


def squared_distance(m, one, other):
    """How far apart two exact answers are, in squared deviations of the noise, in rationals."""
    total = Fraction(0)
    for part in PARTS:
        if getattr(m, part) is None:
            continue
        gap = exact_moments(one, [part])[0] - exact_moments(other, [part])[0]
        grain, variance = m._grain(part), exactly(getattr(m, part)) ** 2
        if part == "square":  # every pair of places counts twice, with half the variance: once in the whole matrix
            total += sum(Fraction(int(x)) ** 2 for x in np.diag(gap)) * grain**2 / variance
            total += sum(Fraction(int(x)) ** 2 for x in gap[np.triu_indices(3, 1)]) * grain**2 / (variance / 2)
        else:
            total += sum(Fraction(int(x)) ** 2 for x in np.ravel(gap)) * grain**2 / variance
    return total


# --- rows ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", [2, 1e-30, 0.1, 1e30])
def test_no_row_is_longer_than_the_norm_or_depends_on_another(norm):
    draw = np.random.default_rng(0)
    table = draw.normal(size=(500, 3)) * norm * 2.0 ** draw.integers(-30, 30, size=(500, 1))
    table[: len(STRANGE)] = list(STRANGE.values())
    rows = RoundedRows(table, feature_norm=norm)
    whole = np.concatenate([block for block, _ in rows.blocks()])
    most = (exactly(norm) / rows.unit) ** 2
    lengths = [sum(int(x) ** 2 for x in row) for row in whole]
    assert all(length <= most for length in lengths)
    assert max(lengths) >= 0.99999 * most  # and not much is lost
    for place in range(60):
        ((alone, _),) = RoundedRows(table[place : place + 1], feature_norm=norm).blocks()
        assert (alone[0] == whole[place]).all()


def test_short_rows_are_rounded_to_the_nearest_unit():
    table = np.random.default_rng(1).normal(size=(100, 3)) / 10
    ((whole, _),) = RoundedRows(table, feature_norm=2).blocks()
    assert np.abs(whole * float(unit_of(2)) - table).max() <= float(unit_of(2)) / 2


def test_ranges_clamp_and_scale_columns():
    ranges = [(0, 10), (-1, 1), (1e-3, 1e3)]
    rows = RoundedRows(np.array([[5, 7, 1e3], [-1e300, -7, 1e-3], [10, 0, np.nan]]), feature_ranges=ranges)
    ((whole, goal),) = rows.blocks()
    most = 1 / rows.unit
    assert (whole == [[0, most, most], [-most, -most, -most], [0, 0, 0]]).all()
    assert np.isnan(goal).tolist() == [False, False, True]


def test_rows_left_out_are_not_counted():
    rows = rounded([[0.1, 0.2, 0.3]] * len(GOALS), GOALS)
    assert [int(x) for x in exact_moments(rows, ["count"])] == [4]
    goal = next(rows.blocks())[1] * float(unit_of(3))
    assert goal[1] == pytest.approx(-3)
    assert goal[2] == pytest.approx(3)
    for table in (np.array([["0.1", "a"]]), np.array([["0.1", "a"]], dtype="S")):
        with refuses(InvalidArgument, "not-a-number"):
            RoundedRows(table, feature_norm=1)


def test_sums_are_exact_whatever_the_order():
    draw = np.random.default_rng(2)
    table, goals = draw.normal(size=(2 * BLOCK + 77, 3)), draw.normal(size=2 * BLOCK + 77)
    order = draw.permutation(len(goals))
    one = exact_moments(rounded(table, goals), PARTS)
    other = exact_moments(rounded(table[order], goals[order]), PARTS)
    assert all((a == b).all() for a, b in zip(one, other, strict=True))
    whole = np.concatenate([block for block, _ in rounded(table, goals).blocks()]).astype(object)
    assert (one[0] == whole.T @ whole).all()
    assert (one[2] == whole.sum(0)).all()


def test_sums_do_not_wrap():
    block = (np.full((1, 1), 2.0**53), np.zeros(1))
    (total,) = exact_sums(itertools.repeat(block, 3000), lambda b: [b[0][0]])
    assert total[0] == 3000 * 2**53


def test_empty_tables_have_moments():
    drawn = Moments.for_guarantee(ASKED, features=3, shares=ALL, feature_norm=2, target_bound=3)._draw(rounded([], []))
    assert drawn["square"].shape == (3, 3)
    assert np.isfinite(drawn["square"]).all()


# --- the promise ---------------------------------------------------------------------------------------------


def neighbors():
    rows, goals = usual()
    for name, strange in STRANGE.items():
        for goal in GOALS:
            yield f"{name} {goal}", strange, goal
    yield "a double", rows[0], goals[0]


@pytest.mark.slow
@pytest.mark.parametrize("parts", [ALL, {"square": 1, "product": 3}, {"square": 1}, {"sum": 1, "count": 5}])
def test_no_neighbors_are_further_apart_than_declared(parts):
    m = Moments.for_guarantee(ASKED, features=3, shares=parts, feature_norm=2, target_bound=3)
    added, replaced = (m.sensitivity(unit).exact ** 2 for unit in (None, REPLACED))
    rows, goals = usual()
    base, furthest = rounded(rows, goals), Fraction(0)
    for _, strange, goal in neighbors():
        more = squared_distance(m, base, rounded([*rows, strange], [*goals, goal]))
        assert more <= added
        furthest = max(furthest, more)
        for place in (0, 7):
            changed = rounded([*rows[:place], strange, *rows[place + 1 :]], [*goals[:place], goal, *goals[place + 1 :]])
            assert squared_distance(m, base, changed) <= replaced
        assert squared_distance(m, base, rounded(rows[1:], goals[1:])) <= added
    assert furthest >= added * Fraction(9999, 10000)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_the_distance_of_a_replaced_row_is_bounded_and_nearly_attained(seed):
    draw = np.random.default_rng(seed)
    m = moments(**{part: float(np.exp(draw.normal())) for part in ("square", "product", "sum", "target")})
    bound, worst = float(m.sensitivity(REPLACED).exact ** 2), 0.0
    first = np.array([2.0, 0, 0])
    for angle in np.linspace(0, np.pi, 60):
        other = 2 * np.array([np.cos(angle), np.sin(angle), 0])
        for y, z in itertools.product((-3.0, 3.0), repeat=2):
            worst = max(worst, float(squared_distance(m, rounded([first], [y]), rounded([other], [z]))))
    assert bound * 0.99 <= worst <= bound


def test_several_rows_of_a_person():
    m = moments(square=1, product=1, sum=1, target=1, count=1)
    rows, goals = usual(5)
    for unit in (None, REPLACED):
        bound = m.sensitivity(unit, 3).exact
        assert bound == 3 * m.sensitivity(unit).exact
    together = squared_distance(m, rounded(rows, goals), rounded([*rows, *[STRANGE["long"]] * 3], [*goals, 9, 9, 9]))
    assert together <= m.sensitivity(None, 3).exact ** 2
    assert together > m.sensitivity(None, 2).exact ** 2
    # a person may be replaced by one with fewer rows
    fewer = squared_distance(
        m, rounded([*rows, [0, 2, 0], [2, 0, 0]], [*goals, 3, 3]), rounded([*rows, [0, -2, 0]], [*goals, -3])
    )
    assert fewer <= m.sensitivity(REPLACED, 2).exact ** 2


def test_less_noise_off_the_diagonal_would_be_noticed():
    """The very variance s²/2 is needed there: with s²/4 neighbors are further apart than is claimed."""
    m = moments(square=1)
    row = rounded([[2 / 3**0.5] * 3], [0.0])
    gap = exact_moments(row, ["square"])[0].astype(float) * float(m._grain("square"))
    on, over = (np.diag(gap) ** 2).sum(), (gap[np.triu_indices(3, 1)] ** 2).sum()
    claimed = float(m.sensitivity().exact ** 2)
    assert on + over / (1 / 2) <= claimed < on + over / (1 / 4)


def test_noise_has_the_variances_it_claims():
    m, d = Moments(features=60, square=5.0), 60
    with testing.frozen(5) as tape:
        drawn = m._draw(RoundedRows(np.zeros((0, d)), feature_norm=1))["square"]
    variances = [Fraction(25) / m._step("square") ** 2 / halves for halves in (1, 2)]
    assert tape.calls == [("discrete_gaussian", (v, n)) for v, n in zip(variances, (d, d * (d - 1) // 2), strict=True)]
    assert (drawn == drawn.T).all()
    off = drawn[np.triu_indices(d, 1)]
    assert abs(off.var() / 12.5 - 1) < 0.17  # five deviations: far from 25 and from 6.25


def exact_delta(epsilon, moves, variances):
    """δ(ε) of two coordinates of discrete Gaussian noise, each moved by whole steps."""
    sides = []
    for move, variance in zip(moves, variances, strict=True):
        reach = math.ceil(12 * math.sqrt(variance)) + abs(move)
        k = np.arange(-reach, reach + 1)
        inside, outside = (np.exp(-((k - shift) ** 2) / (2 * variance)) for shift in (0, move))
        sides.append((k, inside / inside.sum(), outside / outside.sum(), move * (move - 2 * k) / (2 * variance)))
    (_, p, q, first), (k, r, s, second) = sides
    order = np.argsort(-second, kind="stable")
    above, below = np.concatenate([[0], np.cumsum(r[order])]), np.concatenate([[0], np.cumsum(s[order])])
    many = np.searchsorted(-second[order], first - epsilon, side="left")  # second > epsilon − first
    return float((p * above[many] - math.exp(epsilon) * q * below[many]).sum())


def test_noise_of_several_deviations_keeps_the_promise_of_the_distance():
    """Two coordinates whose variances differ by 49, against the exact curve of their discrete laws."""
    for moves, variances in [((600, 900), (10**6, 49 * 10**6)), ((-400, 5000), (10**6, 49 * 10**6))]:
        squared = sum(Fraction(move) ** 2 / variance for move, variance in zip(moves, variances, strict=True))
        claim = within_deviations(squared, Fraction(min(variances)), 2, None)
        for epsilon in (0.1, 0.5, 1.0, 2.0):
            exact = exact_delta(epsilon, moves, variances)
            assert exact <= claim.delta_at(epsilon=epsilon)
            assert claim.delta_at(epsilon=epsilon) <= exact * 1.01 + 1e-12
        single = GaussianPair(int(math.sqrt(squared * min(variances))), min(variances))
        assert single.delta(1.0) == pytest.approx(claim.delta_at(epsilon=1), rel=0.02)


def test_the_slack_is_that_of_the_smallest_variance():
    m = moments(square=1)
    ((pair, times),) = m.guarantee().factors
    variance = 1 / m._step("square") ** 2 / 2  # off the diagonal
    assert times == 1
    assert pair.slack == pytest.approx(near_gaussian(math.ceil(16 * variance), variance, 6).slack, rel=1e-6, abs=0)


def test_a_coarse_lattice_falls_back_on_concentration():
    claim = within_deviations(Fraction(1), Fraction(4), 10, None)
    assert claim.rho() == pytest.approx(0.5)
    assert claim.delta_at(epsilon=1) >= within_deviations(Fraction(1), Fraction(10**9), 10, None).delta_at(epsilon=1)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 1e-9), (0.1, 1e-6), (1, 1e-6), (8, 1e-5), (300, 1e-6)])
@pytest.mark.parametrize(("unit", "rows"), [(None, 1), (REPLACED, 1), (dp.person("id"), 4)])
def test_calibration_is_kept_and_tight(epsilon, delta, unit, rows):
    asked = dp.Approx(epsilon=epsilon, delta=delta)
    m = Moments.for_guarantee(
        asked, features=7, shares=ALL, feature_norm=3, target_bound=0.5, unit=unit, rows_per_person=rows
    )
    promised = m.guarantee(m.sensitivity(unit, rows))
    assert delta * 0.999 <= promised.delta_at(epsilon=epsilon) <= delta
    assert promised.protects == unit


def test_calibration_for_concentration_and_for_pure():
    m = Moments.for_guarantee(dp.ZeroConcentrated(rho=0.25), features=4, shares={"square": 1})
    assert 0.2499 < m.guarantee().rho() <= 0.25
    with refuses(InvalidArgument, "needs-delta"):
        Moments.for_guarantee(dp.Pure(epsilon=1), features=4, shares={"square": 1})


def test_shares_are_shares():
    m = Moments.for_guarantee(ASKED, features=2, shares={"square": 1, "product": 3}, feature_norm=2, target_bound=5)
    own = {
        part: exactly(reach) ** 2 / exactly(getattr(m, part)) ** 2 for part, reach in (("square", 4), ("product", 10))
    }
    assert float(own["product"] / own["square"]) == pytest.approx(3)


# --- errors, and what leaves ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_errors_cover():
    """At 90%: 400 draws cover 328 times at least but for one in 10^7."""
    m = moments(square=2, product=1, sum=3, target=0.5, count=4)
    bounds = [float(e) for e in m.error(0.9)]
    with testing.frozen(11):
        drawn = [m._draw(rounded([], [])) for _ in range(400)]
    covered = sum(all(np.abs(d[p]).max() <= b for p, b in zip(PARTS, bounds, strict=True)) for d in drawn)
    assert 328 <= covered <= 396


def test_no_noise_gives_the_moments_themselves():
    rows, goals = np.random.default_rng(0).uniform(-1, 1, size=(1000, 3)), np.linspace(-2, 2, 1000)
    with testing.no_noise():
        drawn = moments(square=1, product=1, sum=1, target=1, count=1)._draw(rounded(rows, goals))
    assert np.allclose(drawn["square"], rows.T @ rows, atol=1e-3)
    assert np.allclose(drawn["product"], rows.T @ goals, atol=1e-3)
    assert np.allclose(drawn["sum"], rows.sum(0), atol=1e-3)
    assert drawn["target"] == pytest.approx(goals.sum(), abs=1e-3)
    assert drawn["count"] == 1000


def test_noise_is_added_in_whole_steps():
    with testing.no_noise():
        assert noisy_units(np.array([2**70, -3], dtype=object), Fraction(1), Fraction(1, 4), Fraction(1)).tolist() == [
            2.0**70,
            -3,
        ]


def test_neighbors_ask_for_the_same_noise():
    m = Moments.for_guarantee(ASKED, features=3, shares=ALL, feature_norm=2, target_bound=3)
    rows, goals = usual()
    seen = []
    for extra in ([], [STRANGE["nan"]], [STRANGE["huge"]], [STRANGE["infinite"]] * 9000):
        with testing.frozen(1) as tape:
            drawn = m._draw(rounded([*rows, *extra], [*goals, *[0.5] * len(extra)]))
        seen.append((tape.calls, {part: np.shape(x) for part, x in drawn.items()}))
    assert all(one == seen[0] for one in seen)


def test_rows_are_not_pickled_or_shown():
    rows = rounded([[0.123456, 0, 0]], [0])
    assert "0.123" not in repr(rows)
    with refuses(InvalidArgument, "not-pickled"):
        pickle.dumps(rows)
    m = moments(square=1)
    assert pickle.loads(pickle.dumps(m)) == m


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: Moments(features=0, square=1), "out-of-range"),
        (lambda: Moments(features=2), "missing-argument"),
        (lambda: Moments(features=2, count=1), "missing-argument"),
        (lambda: Moments(features=2, square=0), "out-of-range"),
        (lambda: Moments(features=2, square=math.nan), "not-a-number"),
        (lambda: Moments(features=2, square=1, feature_norm=-1), "out-of-range"),
        (lambda: Moments(features=2, square=1, feature_norm=1e200), "out-of-range"),
        (lambda: Moments(features=2, product=1), "missing-argument"),
        (lambda: Moments.for_guarantee(ASKED, features=2, shares={"cubes": 1}), "not-an-option"),
        (lambda: Moments.for_guarantee(ASKED, features=2, shares={"square": 0}), "out-of-range"),
        (
            lambda: Moments.for_guarantee(dp.GaussianTradeoff(mu=1), features=2, shares={"square": 1}),
            "guarantee-not-supported",
        ),
        (lambda: RoundedRows(np.array([1, 2, 3]), feature_norm=1), "wrong-shape"),
        (lambda: RoundedRows(np.array([[1, 2]]), feature_norm=1, feature_ranges=[(0, 1)] * 2), "conflicting-arguments"),
        (lambda: RoundedRows(np.array([[1, 2]]), feature_ranges=[(0, 1)]), "wrong-shape"),
        (lambda: RoundedRows(np.array([[1, 2]]), feature_ranges=[(0, 1), (1, 1)]), "ends-out-of-order"),
        (lambda: RoundedRows(np.array([[1, 2]]), feature_ranges=[(0, 1), (0, math.inf)]), "not-a-number"),
        (lambda: RoundedRows(np.array([[1, 2]]), [1, 2], feature_norm=1), "wrong-shape"),
        (lambda: RoundedRows(np.array([["a", "b"]]), feature_norm=1), "not-a-number"),
        (lambda: moments(square=1)._draw(RoundedRows(np.array([[1, 2, 3]]), feature_norm=9)), "rows-not-rounded"),
    ],
)
def test_bad_arguments_have_a_remedy(make, code):
    with refuses(InvalidArgument, code):
        make()
