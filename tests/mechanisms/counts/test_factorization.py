"""Prefix sums, streams, trees of counts and what is read off them: exact measurements, norms, noise and costs."""

from __future__ import annotations

import inspect
import math
import textwrap
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import discreet as dp
from discreet import testing
from discreet.exact import samplers
from discreet.mechanisms.counts import count_tree, factorization
from discreet.mechanisms.counts.count_tree import best_branches, levels_of, prefix_variances
from discreet.mechanisms.quantiles.cumulative import mean_deviation

from ...refusing import refuses

ROW, REPLACED = dp.row(), dp.row(neighbors="replace")


class NotPrivate(AssertionError):
    """Two neighbors are farther apart, or told apart better, than is claimed."""


# --- the measurement ----------------------------------------------------------------------------------


def multiplied(column, counts):
    """A Toeplitz matrix times a vector, in Python's integers."""
    return [sum(int(column[i - j]) * int(counts[j]) for j in range(i + 1)) for i in range(len(counts))]


@pytest.mark.parametrize("points", [1, 2, 3, 37, 200])
@pytest.mark.parametrize("largest", [1, 3000, 2**33, 2**50])
def test_what_is_measured_is_exact(points, largest):
    counts = np.random.default_rng(points).integers(0, largest, points, endpoint=True)
    assert factorization.measure(counts).tolist() == multiplied(factorization.root(points)[0], counts)


@pytest.mark.parametrize("points", [2**16, pytest.param(2**20, marks=pytest.mark.slow)])
def test_it_is_exact_on_long_vectors_where_transforms_are_worst(points):
    """All digits as large as they get and of one sign, or alternating; a few entries are recomputed."""
    column = factorization.root(points)[0]
    for counts in (np.full(points, 2047), np.where(np.arange(points) % 2, 2047, 6143)):
        found = factorization.measure(counts)
        for i in (0, 1, 4097, points // 3, points - 1):
            assert int(found[i]) == int(column[: i + 1][::-1] @ counts[: i + 1])


def test_the_factors_multiply_to_prefix_sums():
    """(R−E)·R̃ is the summing matrix, to 2^-54 a coefficient, here as far as doubles tell."""
    whole, other = factorization.root(300)
    scaled = whole / 2**26
    assert np.allclose(np.convolve(scaled, other)[:300], 1, atol=1e-12)
    exact = [Fraction(math.comb(2 * k, k), 4**k) for k in range(300)]
    assert max(abs(Fraction(int(w), 2**26) - r) for w, r in zip(whole, exact, strict=True)) <= Fraction(1, 2**26)
    assert np.abs(whole).max() <= 2**26


def measured_rows(made, monkeypatch):
    """What is measured of one row at each point, in whole steps, with nothing added."""
    seen = []
    honest = factorization.measure
    with monkeypatch.context() as patched, testing.no_noise():
        patched.setattr(factorization, "measure", lambda counts: seen.append(honest(counts)) or seen[-1])
        for point in range(made.points):
            made._draw(np.eye(made.points, dtype=np.int64)[point])
    return [[int(x) for x in row] for row in seen]


def check_norms(points, normalized, monkeypatch):
    """Every added row and every replaced one: the squared distance of what is measured, in whole steps."""
    made = dp.mechanisms.PrefixSums(points=points, stddev=1, normalized=normalized)
    rows = measured_rows(made, monkeypatch)
    added = max(sum(x * x for x in row) for row in rows)
    replaced = max(added, *(sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) for a in rows for b in rows))
    for unit, rows_of_one, distance in (
        (ROW, 1, added),
        (REPLACED, 1, replaced),
        (dp.person("id"), 3, 9 * added),
        (dp.person("id", neighbors="replace"), 3, 9 * replaced),
    ):
        declared = made.measured(made.sensitivity(unit, rows_of_one)).squared_in_steps(Fraction(1, 2**34))
        if distance > declared:
            raise NotPrivate(f"{distance} is more than {declared}")
        assert declared <= distance * (1 + 1e-8) or (normalized and unit.neighbors == "replace")


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("points", [1, 2, 5, 12, 40])
def test_measured_norms_are_at_most_declared(points, normalized, monkeypatch):
    check_norms(points, normalized, monkeypatch)


@pytest.mark.parametrize("normalized", [True, False])
def test_mutant_one_norm_for_replaced_rows(normalized, monkeypatch):
    norms = factorization.column_norms
    monkeypatch.setattr(factorization, "column_norms", lambda *given: (norms(*given)[0],) * 2)
    with pytest.raises(NotPrivate):
        check_norms(12, normalized, monkeypatch)


def test_mutant_rows_of_the_person_forgotten(monkeypatch):
    monkeypatch.setattr(factorization, "rows_moved", lambda unit, rows=1: dp.Sensitivity(1, "L1", unit, grain=1))
    with pytest.raises(NotPrivate):
        check_norms(5, True, monkeypatch)


def test_mutant_norm_of_the_first_column_only(monkeypatch):
    """With weights that rise too fast, a later column is longer than the first."""
    monkeypatch.setattr(factorization, "weights", lambda points, normalized: np.arange(100, 100 + 9 * points, 9))
    factorization.column_norms.cache_clear()
    check_norms(12, True, monkeypatch)
    monkeypatch.setattr(factorization, "_starts", lambda of: np.array([0]))
    factorization.column_norms.cache_clear()
    with pytest.raises(NotPrivate):
        check_norms(12, True, monkeypatch)
    factorization.column_norms.cache_clear()


def test_the_table_of_prefix_sums():
    """Standard deviation per unit of noise, against the dyadic tree's 10.49, 12.49."""
    for points, plain, normalized in ((256, 2.831, 2.654), (1024, 3.273, 3.092), (4096, 3.714, 3.530)):
        for given, goal in ((False, plain), (True, normalized)):
            made = dp.mechanisms.PrefixSums(points=points, stddev=3, normalized=given)
            assert made.spread == pytest.approx(goal, rel=1e-3)


@pytest.mark.slow
def test_the_table_of_prefix_sums_at_a_million_points():
    for given, goal in ((False, 5.479), (True, 5.294)):
        made = dp.mechanisms.PrefixSums(points=2**20, stddev=3, normalized=given)
        assert made.spread == pytest.approx(goal, rel=1e-3)


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("points", [1, 2, 9, 130])
def test_deviations_are_those_of_the_matrix(points, normalized):
    """Against the inverse of what is measured, as a dense matrix."""
    of, whole = factorization.weights(points, normalized), factorization.root(points)[0]
    measured = (
        np.array([[whole[i - j] * of[j] if i >= j else 0 for j in range(points)] for i in range(points)]) / 2.0**34
    )
    sums = np.tril(np.ones((points, points))) @ np.linalg.inv(measured)
    covariance = sums @ sums.T
    made = dp.mechanisms.PrefixSums(points=points, stddev=2, normalized=normalized)
    assert np.allclose(made.deviation(np.arange(1, points + 1)), 2 * np.sqrt(np.diag(covariance)), rtol=1e-6)
    assert np.allclose(factorization.second_moments(points, normalized)[1], covariance[-1], rtol=1e-6)
    if points > 2:
        spread = covariance[6, 6] + covariance[2, 2] - 2 * covariance[6, 2]
        assert made.deviation(7, 3) == pytest.approx(2 * math.sqrt(spread), rel=1e-6)


def test_the_better_of_the_two_is_taken_for_each_relation():
    asked = dp.Approx(epsilon=1, delta=1e-6)
    for unit, normalized in ((ROW, True), (REPLACED, False)):
        made = dp.mechanisms.PrefixSums.for_guarantee(asked, points=1024, unit=unit)
        assert made.normalized is normalized
        other = dp.mechanisms.PrefixSums(points=1024, stddev=1, normalized=not normalized)
        scale = float(other.measured(other.sensitivity(unit)).exact / made.measured(made.sensitivity(unit)).exact)
        assert made._largest < scale * other._largest


# --- what it costs ------------------------------------------------------------------------------------


def check_prefix(unit=ROW):
    """Two points on a lattice so coarse that every outcome can be listed: δ(ε) and divergences, both ways."""
    made = dp.mechanisms.PrefixSums(points=2, stddev=0.5, normalized=unit == ROW)
    claim = made.guarantee(made.sensitivity(unit))
    laws = {}
    for counts in product(range(2), repeat=2):
        found = testing.exact_law(lambda c=counts: made._draw(np.array(c)), window=10)
        laws[counts] = ({y: float(p) for y, p in found.law.items()}, float(found.unresolved))
    for one, other in product(laws, repeat=2):
        distance = (one[0] - other[0], one[1] - other[1])
        if distance not in ([(1, 0), (-1, 0), (0, 1), (0, -1)] if unit == ROW else [(1, -1), (-1, 1)]):
            continue
        (p, _), (q, lost) = laws[one], laws[other]
        for epsilon in (0.0, 0.5, 1.0, 2.0, 3.0):
            attained = sum(max(0.0, mass - math.exp(epsilon) * q.get(y, 0.0)) for y, mass in p.items())
            if attained > claim.delta_at(epsilon=epsilon) + math.exp(epsilon) * lost + 1e-9:
                raise NotPrivate(f"δ({epsilon}) is {attained}")
        for order in (1.5, 2, 4):
            shared = sum(mass * (mass / q[y]) ** (order - 1) for y, mass in p.items() if y in q)
            if math.log(shared) / (order - 1) > claim.renyi(order) * (1 + 1e-6) + 1e-9:
                raise NotPrivate(f"the divergence of order {order}")


@pytest.fixture
def _coarse(monkeypatch):
    caches = (factorization.root, factorization._spectra, factorization.column_norms, factorization.weights)
    for cached in caches:
        cached.cache_clear()
    monkeypatch.setattr(factorization, "_BITS", 1)
    monkeypatch.setattr(factorization, "_WEIGHT_BITS", 1)
    monkeypatch.setattr(factorization, "_STEP", Fraction(1, 4))
    yield
    for cached in caches:
        cached.cache_clear()


@pytest.mark.slow
@pytest.mark.usefixtures("_coarse")
@pytest.mark.parametrize("unit", [ROW, REPLACED])
def test_the_charge_covers_what_is_learned(unit):
    check_prefix(unit)


@pytest.mark.usefixtures("_coarse")
def test_mutant_norm_halved(monkeypatch):
    norms = factorization.column_norms
    monkeypatch.setattr(factorization, "column_norms", lambda *given: (norms(*given)[0] / 4, norms(*given)[1] / 4))
    with pytest.raises(NotPrivate):
        check_prefix()


@pytest.mark.usefixtures("_coarse")
def test_mutant_noise_halved(monkeypatch):
    original = samplers.discrete_gaussian
    monkeypatch.setattr(samplers, "discrete_gaussian", lambda variance, size: original(variance / 4, size))
    with pytest.raises(NotPrivate):
        check_prefix()


def tree_measurement(made, counts, monkeypatch):
    """All counts that noise is added to."""
    seen = []
    with monkeypatch.context() as patched, testing.no_noise():
        reconciled = dp.mechanisms.CountTree._reconciled
        patched.setattr(
            dp.mechanisms.CountTree, "_reconciled", lambda self, noisy: (seen.extend(noisy), reconciled(self, noisy))[1]
        )
        made._draw(counts)
    return np.concatenate(seen)


def check_tree(monkeypatch, points=7, branches=2):
    made = dp.mechanisms.CountTree(points=points, scale=1, branches=branches)
    one = np.eye(points, dtype=np.int64)
    base = tree_measurement(made, np.full(points, 3), monkeypatch)
    moved = [tree_measurement(made, 3 + row, monkeypatch) for row in one]
    added = max(np.abs(m - base).sum() for m in moved)
    replaced = max(np.abs(a - b).sum() for a in moved for b in moved)
    for unit, distance in ((ROW, added), (REPLACED, replaced)):
        if distance > made.measured(made.sensitivity(unit)).exact:
            raise NotPrivate(f"{distance} counts move")
    return added, replaced


@pytest.mark.parametrize(("points", "branches"), [(1, 2), (2, 2), (7, 2), (9, 3), (10, 3), (16, 4), (30, 16)])
def test_measured_norms_of_trees_are_as_declared(points, branches, monkeypatch):
    added, replaced = check_tree(monkeypatch, points, branches)
    made = dp.mechanisms.CountTree(points=points, scale=1, branches=branches)
    assert added == made.levels == made.guarantee().largest_loss
    assert replaced <= 2 * made.levels == made.guarantee(made.sensitivity(REPLACED)).largest_loss


@pytest.mark.parametrize(("old", "new"), [("counts * self.levels", "counts"), ("counts = 2 if", "counts = 1 if")])
def test_mutant_levels_or_the_second_leaf_forgotten(old, new, monkeypatch):
    source = textwrap.dedent(inspect.getsource(dp.mechanisms.CountTree.measured))
    assert source.count(old) == 1
    space = dict(vars(count_tree))
    exec(source.replace(old, new), space)
    monkeypatch.setattr(dp.mechanisms.CountTree, "measured", space["measured"])
    with pytest.raises(NotPrivate):
        check_tree(monkeypatch)


@pytest.mark.parametrize("unit", [dp.person("id"), dp.person("id", neighbors="replace")])
def test_calibration_keeps_the_promise_and_uses_it(unit):
    asked = dp.Approx(epsilon=0.5, delta=1e-6)
    for kind, promise in (
        (dp.mechanisms.PrefixSums, asked),
        (dp.mechanisms.CountTree, asked),
        (dp.mechanisms.CountTree, dp.Pure(epsilon=0.5)),
    ):
        made = kind.for_guarantee(promise, points=100, unit=unit, rows_per_person=4)
        claim = made.guarantee(made.sensitivity(unit, 4))
        assert claim.protects == unit
        assert claim.delta_at(epsilon=0.5) <= promise.delta
        less = kind.for_guarantee(promise, points=100, unit=unit, rows_per_person=3)
        assert less.guarantee(less.sensitivity(unit, 4)).delta_at(epsilon=0.5) > promise.delta
    with refuses(dp.InvalidArgument, "needs-delta"):
        dp.mechanisms.PrefixSums.for_guarantee(dp.Pure(epsilon=1), points=100)


def test_a_plain_number_is_rows_added_or_removed():
    for made in (dp.mechanisms.PrefixSums(points=50, stddev=2), dp.mechanisms.CountTree(points=50, scale=2)):
        assert made.guarantee(2).neighbors == "add_or_remove"
        assert made.guarantee(2).renyi(2.0) == pytest.approx(made.guarantee(made.sensitivity(ROW, 2)).renyi(2.0))


# --- the noise ----------------------------------------------------------------------------------------


def variances(mechanism, points, runs):
    zeros = np.zeros(points, dtype=np.int64)
    return np.array([mechanism._draw(zeros) for _ in range(runs)])


@pytest.mark.slow
@pytest.mark.parametrize(
    "made", [dp.mechanisms.PrefixSums(points=60, stddev=5), dp.mechanisms.CountTree(points=60, scale=9, branches=4)]
)
def test_the_noise_has_the_deviation_that_is_stated(made):
    """1000 draws: a variance is off by 5·√(6/1000), 39%, with probability below 1e-6, Laplace tails included."""
    drawn = variances(made, 60, 1000)
    for last, first in ((1, 0), (17, 0), (60, 0), (60, 59), (40, 7), (8, 7)):
        noise = drawn[:, last - 1] - (drawn[:, first - 1] if first else 0)
        assert noise.std() == pytest.approx(float(made.deviation(last, first)), rel=0.22)
        assert abs(noise.mean()) < 6 * noise.std() / math.sqrt(1000)
    assert (np.abs(drawn).max(axis=1) <= float(made.error(0.9))).mean() >= 0.9


@pytest.mark.parametrize(("points", "branches"), [(9, 3), (8, 2), (7, 2), (5, 3), (16, 4)])
def test_the_tree_is_the_least_squares_answer(points, branches):
    """Against the normal equations; and no measurement moves a prefix by more than itself, which `error` uses."""
    made = dp.mechanisms.CountTree(points=points, scale=1000, branches=branches)
    size = branches**made.levels
    ranges = np.concatenate(
        [np.kron(np.eye(size // branches**level), np.ones(branches**level)) for level in range(made.levels)]
    )
    covariance = np.linalg.inv(ranges.T @ ranges)
    sums = np.tril(np.ones((size, size)))[:points]
    assert np.allclose(np.diag(sums @ covariance @ sums.T), prefix_variances(points, branches))
    assert np.abs(sums @ covariance @ ranges.T).max() <= 1
    noisy = [np.random.default_rng(1).normal(size=size // branches**level) for level in range(made.levels)]
    assert np.allclose(made._reconciled(noisy), covariance @ ranges.T @ np.concatenate(noisy))
    for first in range(1, points):
        for last in range(first + 1, points + 1):
            chosen = np.zeros(size)
            chosen[first:last] = 1
            assert made.deviation(last, first) == pytest.approx(
                math.sqrt(chosen @ covariance @ chosen * made._variance)
            )


def test_the_best_tree_is_found():
    found = {points: best_branches(points) for points in (1, 2, 10, 1024, 2**20)}
    assert found[1] == found[2] == 2
    for points in (10, 1024):
        costs = {
            b: levels_of(points, b) ** 2 * prefix_variances(points, b).mean() for b in range(2, min(points, 64) + 1)
        }
        assert costs[found[points]] == min(costs.values())
    assert math.sqrt(2 * prefix_variances(1024, found[1024]).mean()) * levels_of(1024, found[1024]) < 11  # 12.93 before
    assert count_tree.MOST_BRANCHES >= found[2**20] > 4


def test_an_error_asked_for_is_kept():
    for kind in (dp.mechanisms.PrefixSums, dp.mechanisms.CountTree):
        made = kind.for_error(100, points=64, confidence=0.9)
        assert 99 < float(made.error(0.9)) <= 100


# --- streams ------------------------------------------------------------------------------------------


def test_a_stream_is_one_release_whatever_the_batches(monkeypatch):
    """With the noise of each step fixed, batches of any size give the sums that all at once would give."""
    rng = np.random.default_rng(3)
    counts, noise = rng.integers(0, 50, 500), rng.integers(-(2**37), 2**37, 500)
    made = dp.mechanisms.PrefixSums(points=500, stddev=4)
    place = [0]

    def next_noise(variance, size):
        place[0] += size
        return noise[place[0] - size : place[0]]

    monkeypatch.setattr(samplers, "discrete_gaussian", next_noise)
    whole = made._draw(counts)
    for sizes in ([500], [1] * 500, [3, 100, 1, 200, 64, 65, 67], [250, 0, 250]):
        place[0], stream = 0, made._start()
        found = [stream._draw(part) for part in np.split(counts, np.cumsum(sizes)[:-1])]
        assert np.allclose(np.concatenate(found), whole, atol=1e-6)
    with refuses(dp.InvalidArgument, "stream-ended"):
        stream._draw([1])
    assert repr(stream) == "<RunningSum: step 500 of 500>"


def test_a_stream_takes_whole_numbers_only():
    stream = dp.mechanisms.PrefixSums(points=5, stddev=1)._start()
    for bad in (np.array([0.5]), np.ones((2, 2), int), [1] * 6):
        with pytest.raises(dp.InvalidArgument):
            stream._draw(bad)
    with testing.no_noise():
        assert np.allclose(stream._draw([2**40]), [2**40])
        assert np.allclose(stream._draw([5, "a", None]), [2**40 + 5] * 3)  # what is no number counts nobody


@pytest.mark.parametrize(
    "made", [dp.mechanisms.PrefixSums(points=5, stddev=1), dp.mechanisms.CountTree(points=5, scale=1)]
)
def test_counts_are_whole_and_as_many_as_declared(made):
    for bad in ([1, 2], np.array([0.5] * 5), [1] * 6):
        with pytest.raises(dp.InvalidArgument):
            made._draw(bad)


@pytest.mark.parametrize("points", [0, -1, 1.5, 2**22 + 1, True, None, "9"])
@pytest.mark.parametrize("size", [1, 0, -1, math.nan, math.inf, None, "1"])
def test_bad_fields_are_refused(points, size):
    for kind, name in ((dp.mechanisms.PrefixSums, "stddev"), (dp.mechanisms.CountTree, "scale")):
        with pytest.raises(dp.InvalidArgument):
            kind(**{"points": points, name: size})
        if size != 1:
            with pytest.raises(dp.InvalidArgument):
                kind(**{"points": 9, name: size})


# --- what is read off them ----------------------------------------------------------------------------


@pytest.mark.parametrize("promise", [dp.Pure(epsilon=1), dp.Approx(epsilon=1, delta=1e-6)])
@pytest.mark.parametrize("rows", [[], [3], [3, 90], [7] * 400, list(range(100)) * 5])
def test_cumulative_counts_are_monotone_and_ranges_agree(promise, rows):
    """[L3.CDF]: all thresholds together, from one release."""
    made = dp.mechanisms.CumulativeCounts.for_guarantee(promise, space=dp.Integers(0, 99))
    found = made.read(made._draw(np.array(rows, dtype=np.int64)))
    assert np.all(np.diff(found.monotone) >= 0)
    assert np.all(found.monotone >= 0)
    true = np.searchsorted(np.sort(rows), np.arange(100), "right")
    assert np.abs(found.monotone - true).max() <= np.abs(found.values - true).max() + 1e-9
    whole, (left, _), (right, _) = found.between(0, 99)[0], found.between(0, 41), found.between(42, 99)
    assert whole == pytest.approx(left + right)
    assert found.between(10, 20)[1] == made.sums.deviation(21, 10)
    assert 0 <= found.fraction(50) <= found.fraction(99) == 1 or found.monotone[-1] < 1
    assert np.all(np.diff(found.quantiles([0.1, 0.5, 0.9])) >= 0)
    with refuses(dp.InvalidArgument, "ends-out-of-order"):
        found.between(9, 3)


def test_without_noise_everything_is_right():
    rows = np.random.default_rng(4).integers(0, 100, 1000)
    for promise in (dp.Pure(epsilon=1), dp.Approx(epsilon=1, delta=1e-6)):
        made = dp.mechanisms.CumulativeCounts.for_guarantee(promise, space=dp.Integers(0, 99))
        with testing.no_noise():
            found = made.read(made._draw(rows))
        assert found.up_to(30) == pytest.approx((rows <= 30).sum())
        assert found.between(10, 19)[0] == pytest.approx(((rows >= 10) & (rows <= 19)).sum())
        shares = [0.013, 0.507, 0.913]
        assert found.quantiles(shares).tolist() == np.quantile(rows, shares, method="inverted_cdf").tolist()


@pytest.mark.slow
def test_rank_errors_of_read_quantiles_stay_within_the_bound():
    """200 draws: the bound for 90% holds; it is only stated where every point is counted on its own."""
    rows = np.random.default_rng(5).integers(0, 1000, 5000)
    shares = [i / 50 for i in range(1, 50)]
    made = dp.mechanisms.QuantilesFromCounts.for_guarantee(
        dp.Pure(epsilon=1), space=dp.Integers(0, 999), quantiles=shares
    )
    ordered, asked = np.sort(rows), np.array(shares) * 5000
    missed = []
    for _ in range(200):
        found = made._draw(rows)
        below, up_to = (np.searchsorted(ordered, found, side) for side in ("left", "right"))
        missed.append(np.maximum(below - asked, asked - up_to).max())
    assert np.mean(np.array(missed) > float(made.error(0.9))) <= 0.1
    wide = dp.mechanisms.QuantilesFromCounts.for_guarantee(
        dp.Pure(epsilon=1), space=dp.Interval(0, 1), quantiles=shares, bins=64
    )
    assert wide.error(0.9).amount is None
    assert wide._draw(np.linspace(0, 1, 100)).shape == (49,)


def test_the_better_method_is_taken():
    tree = dp.mechanisms.CumulativeCounts.for_guarantee(dp.Pure(epsilon=1), space=dp.Integers(0, 9999))
    root = dp.mechanisms.CumulativeCounts.for_guarantee(dp.ZeroConcentrated(rho=0.1), space=dp.Integers(0, 9999))
    assert isinstance(tree.sums, dp.mechanisms.CountTree)
    assert isinstance(root.sums, dp.mechanisms.PrefixSums)
    other = dp.mechanisms.CountTree.for_guarantee(dp.ZeroConcentrated(rho=0.1), points=10_000)
    assert mean_deviation(root.sums) < mean_deviation(other)


@pytest.mark.slow
def test_counts_whose_weighted_sum_exceeds_64_bits_are_exact():
    """Σ|x|·weight is 2^64 + 2^36 − 256 here: wrapped around, it would look small, until one more row is added."""
    points = 2**17
    of = factorization.weights(points, normalized=False)
    counts = np.zeros(points, dtype=np.int64)
    counts[: 2**16], counts[2**16] = 2**40, 2**28 - 1
    more = counts.copy()
    more[-1] = 1
    before, after = factorization.measure(counts * of), factorization.measure(more * of)
    assert before.dtype == after.dtype == object
    assert [int(place) for place in np.flatnonzero(after != before)] == [points - 1]
    assert after[-1] - before[-1] == int(of[-1]) * int(factorization.root(points)[0][0])
