"""Running sums with a few buffers [L3.CDF]: norms with what rounding adds, the exact law, noise, memory, batches."""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import discreet as dp
from discreet import testing
from discreet.exact import samplers
from discreet.mechanisms.counts import factorization, stream_sums
from discreet.mechanisms.counts.stream_sums import BufferedSum, Runs, StreamSums

from ...refusing import refuses

ROW, REPLACED = dp.row(), dp.row(neighbors="replace")
CACHES = (stream_sums.buffers, stream_sums.runs, stream_sums.column_norms, stream_sums.inverse)


class NotPrivate(AssertionError):
    """Two neighbors are farther apart, or told apart better, than is claimed."""


def forget():
    for cached in (*CACHES, stream_sums.second_moments):
        cached.cache_clear()


@pytest.fixture
def _coarse(monkeypatch):
    """Lattices so coarse that rounding is a large part of what is measured."""
    forget()
    monkeypatch.setattr(factorization, "_BITS", 1)
    monkeypatch.setattr(factorization, "_WEIGHT_BITS", 1)
    monkeypatch.setattr(factorization, "_STEP", Fraction(1, 4))
    monkeypatch.setattr(stream_sums, "_GUARD_BITS", 3)
    yield
    forget()


def measured(made, counts):
    """What noise is added to, in whole steps."""
    stream, of = BufferedSum(made), stream_sums.runs(made.points, made.normalized)
    return [stream._measure(int(count) * of.at(place)) for place, count in enumerate(counts)]


def exact_column(made, point):
    """A column of CW in rational numbers."""
    factor, of = stream_sums.buffers(made.points), stream_sums.runs(made.points, made.normalized)
    size = Fraction(of.at(point), 1 << factorization._WEIGHT_BITS)
    one = stream_sums._ONE
    below = [
        sum(Fraction(w, one) * Fraction(t, one) ** k for t, w in zip(factor.decays, factor.shares, strict=True))
        for k in range(made.points - point - 1)
    ]
    return [Fraction(0)] * point + [size, *(size * entry for entry in below)]


# --- the norms ----------------------------------------------------------------------------------------


def check_norms(points, normalized):
    """Every added row and every replaced one against the columns of the factor in rational numbers."""
    made = StreamSums(points=points, stddev=1, normalized=normalized)
    columns = [exact_column(made, point) for point in range(points)]
    added = max(sum(x * x for x in one) for one in columns)
    replaced = max(added, *(sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) for a in columns for b in columns))
    for unit, rows, distance in (
        (ROW, 1, added),
        (REPLACED, 1, replaced),
        (dp.person("id"), 3, 9 * added),
        (dp.person("id", neighbors="replace"), 3, 9 * replaced),
    ):
        declared = made.measured(made.sensitivity(unit, rows)).exact
        if distance > declared**2:
            raise NotPrivate(f"{float(distance)} is more than {float(declared**2)}")
        assert declared**2 <= distance * (1 + Fraction(1, 10**8)) or (normalized and unit.neighbors == "replace")


@pytest.mark.some_quick(7)
@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("points", [1, 2, 5, 20])
def test_norms_are_those_of_the_exact_factor(points, normalized):
    check_norms(points, normalized)


@pytest.mark.parametrize("points", [300, 2**16])
def test_norms_of_long_streams(points):
    """Against sums of squares of doubles."""
    made, of = stream_sums.buffers(points), stream_sums.runs(points, True).of_each(points)
    norms = np.cumsum(made.column(points) ** 2)[::-1] * (of / 2.0**8) ** 2
    added, replaced = stream_sums.column_norms(points, True)
    assert float(added) == pytest.approx(norms.max(), rel=1e-9)
    assert replaced == 2 * added
    assert norms[: -points // 32].min() > 0.97 * norms.max()


@pytest.mark.parametrize("normalized", [True, False])
def test_mutant_one_norm_for_replaced_rows(normalized, monkeypatch):
    norms = stream_sums.column_norms
    monkeypatch.setattr(stream_sums, "column_norms", lambda *given: (norms(*given)[0],) * 2)
    with pytest.raises(NotPrivate):
        check_norms(12, normalized)


def test_mutant_norm_of_the_first_column_only(monkeypatch):
    """With weights that rise too fast, a later column is longer than the first."""
    rising = Runs(tuple(range(12)), tuple(range(100, 208, 9)))
    monkeypatch.setattr(stream_sums, "runs", lambda points, normalized: rising)
    stream_sums.column_norms.cache_clear()
    check_norms(12, True)

    def of_the_first(points, normalized):
        found = Fraction(rising.weights[0], 2**8) ** 2 * stream_sums.buffers(points).squared_norm(points)
        return found, 2 * found

    monkeypatch.setattr(stream_sums, "column_norms", of_the_first)
    with pytest.raises(NotPrivate):
        check_norms(12, True)


# --- what rounding adds -------------------------------------------------------------------------------


def check_rounded(points, runs=400):
    """Random neighbors, as they are measured after rounding, are as near as is declared."""
    rng, farthest = np.random.default_rng(points), 0
    for normalized in (True, False):
        made = StreamSums(points=points, stddev=1, normalized=normalized)
        declared = {
            unit: made.measured(made.sensitivity(unit)).squared_in_steps(factorization._STEP)
            for unit in (ROW, REPLACED)
        }
        for _ in range(runs):
            counts = rng.integers(-20, 20, points)
            one, other = counts.copy(), counts.copy()
            one[rng.integers(points)] += 1
            other[rng.integers(points)] += 1
            for unit, before, after in ((ROW, counts, one), (REPLACED, one, other)):
                pairs = zip(measured(made, before), measured(made, after), strict=True)
                distance = sum((a - b) ** 2 for a, b in pairs)
                farthest = max(farthest, distance / declared[unit])
                if distance > declared[unit]:
                    raise NotPrivate(f"{distance} is more than {declared[unit]}")
    return farthest


@pytest.mark.usefixtures("_coarse")
@pytest.mark.parametrize("points", [1, 2, 3, 6, 12])
def test_neighbors_are_as_near_as_declared_on_coarse_lattices(points):
    assert check_rounded(points) > 0.1


@pytest.mark.parametrize("points", [2, 40])
def test_neighbors_are_as_near_as_declared(points):
    assert check_rounded(points, runs=40) > 0.4


@pytest.mark.usefixtures("_coarse")
def test_mutant_rounding_forgotten(monkeypatch):
    monkeypatch.setattr(stream_sums, "slack", lambda points: Fraction(0))
    with pytest.raises(NotPrivate):
        check_rounded(12)


@pytest.mark.usefixtures("_coarse")
def test_mutant_rounding_of_the_buffers_forgotten(monkeypatch):
    """Buffers that fade slowly keep every difference that rounding makes, and here they count twice each."""
    slow = stream_sums.Buffers((stream_sums._ONE * 63 // 64,) * 3, (2 * stream_sums._ONE,) * 3)
    monkeypatch.setattr(stream_sums, "buffers", lambda points: slow)
    monkeypatch.setattr(stream_sums, "_GUARD_BITS", 0)
    check_rounded(12, runs=100)
    monkeypatch.setattr(stream_sums.Buffers, "most_rounding", lambda self, steps: Fraction(0))
    with pytest.raises(NotPrivate):
        check_rounded(12)


@pytest.mark.parametrize("points", [3, 200])
def test_what_is_measured_is_near_the_exact_product(points):
    counts = np.random.default_rng(1).integers(-(2**40), 2**40, points)
    made = StreamSums(points=points, stddev=1)
    found = measured(made, counts)
    if points < 10:
        columns = [exact_column(made, point) for point in range(points)]
        exact = [sum(int(c) * column[t] for c, column in zip(counts, columns, strict=True)) for t in range(points)]
        assert max(abs(y - x * 2**34) for y, x in zip(found, exact, strict=True)) <= 1
    column = stream_sums.buffers(points).column(points)
    weighted = counts * stream_sums.runs(points, True).of_each(points) / 2.0**8
    near = np.convolve(column, weighted)[:points]
    assert np.allclose(np.array([float(y) for y in found]) / 2.0**34, near, rtol=1e-9, atol=2**10)


# --- what it costs ------------------------------------------------------------------------------------


def check_law(unit=ROW, points=2):
    """Every outcome on coarse lattices: δ(ε) and divergences, both ways."""
    made = StreamSums(points=points, stddev=0.5, normalized=unit == ROW)
    claim = made.guarantee(made.sensitivity(unit))
    laws = {}
    for counts in [(0,) * points, *map(tuple, np.eye(points, dtype=int).tolist())]:
        found = testing.exact_law(lambda c=counts: made._draw(np.array(c)), window=10 if points == 2 else 8)
        laws[counts] = ({y: float(p) for y, p in found.law.items()}, float(found.unresolved))
    for one, other in product(laws, repeat=2):
        if one == other or (unit == ROW) != (not any(one) or not any(other)):
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


@pytest.mark.some_quick(1)
@pytest.mark.usefixtures("_coarse")
@pytest.mark.parametrize("points", [2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("unit", [ROW, REPLACED])
def test_the_charge_covers_what_is_learned(unit, points):
    check_law(unit, points)


@pytest.mark.usefixtures("_coarse")
def test_mutant_noise_halved(monkeypatch):
    original = samplers.discrete_gaussian
    monkeypatch.setattr(samplers, "discrete_gaussian", lambda variance, size: original(variance / 4, size))
    with pytest.raises(NotPrivate):
        check_law()


@pytest.mark.usefixtures("_coarse")
def test_mutant_later_steps_without_noise(monkeypatch):
    original = samplers.discrete_gaussian
    monkeypatch.setattr(
        samplers, "discrete_gaussian", lambda variance, size: np.append(original(variance, 1), [0] * (size - 1))
    )
    with pytest.raises(NotPrivate):
        check_law()


def check_read_from_the_measurement(monkeypatch):
    """Other counts, with noise that makes up for the difference of what is measured, give the same sums."""
    made = StreamSums(points=30, stddev=3)
    rng = np.random.default_rng(5)
    one, other = rng.integers(0, 99, 30), rng.integers(0, 99, 30)
    noise = [int(x) for x in rng.integers(-(2**36), 2**36, 30)]
    gap = [a - b for a, b in zip(measured(made, one), measured(made, other), strict=True)]
    drawn = []
    for counts, added in ((one, noise), (other, [x + y for x, y in zip(noise, gap, strict=True)])):
        monkeypatch.setattr(samplers, "discrete_gaussian", lambda variance, size, added=added: np.array(added))
        drawn.append(made._draw(counts).tolist())
    if drawn[0] != drawn[1]:
        raise NotPrivate("what is released depends on more than the measurement")


def test_sums_are_read_from_the_measurement_alone(monkeypatch):
    check_read_from_the_measurement(monkeypatch)


def test_mutant_sums_read_with_the_private_buffers(monkeypatch):
    honest = BufferedSum._read

    def leaking(self, noisy, weight):
        found = honest(self, noisy, weight)
        self._noisy[-1] = math.ldexp(float(self._private[-1]), -58)
        return found

    monkeypatch.setattr(BufferedSum, "_read", leaking)
    with pytest.raises(NotPrivate):
        check_read_from_the_measurement(monkeypatch)


@pytest.mark.parametrize("unit", [dp.person("id"), dp.person("id", neighbors="replace")])
def test_calibration_keeps_the_promise_and_uses_it(unit):
    asked = dp.Approx(epsilon=0.5, delta=1e-6)
    made = StreamSums.for_guarantee(asked, points=100, unit=unit, rows_per_person=4)
    assert made.normalized is (unit.neighbors != "replace")
    assert made.guarantee(made.sensitivity(unit, 4)).delta_at(epsilon=0.5) <= asked.delta
    less = StreamSums.for_guarantee(asked, points=100, unit=unit, rows_per_person=3)
    assert less.guarantee(less.sensitivity(unit, 4)).delta_at(epsilon=0.5) > asked.delta
    with refuses(dp.InvalidArgument, "needs-delta"):
        StreamSums.for_guarantee(dp.Pure(epsilon=1), points=100)


# --- noise, memory and streams ------------------------------------------------------------------------


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("points", [1, 2, 9, 130])
def test_deviations_are_those_of_the_matrix(points, normalized):
    """Against the inverse of the factor, as a dense matrix."""
    made = StreamSums(points=points, stddev=2, normalized=normalized)
    column, of = stream_sums.buffers(points).column(points), stream_sums.runs(points, normalized).of_each(points)
    matrix = np.array([[column[i - j] * of[j] if i >= j else 0 for j in range(points)] for i in range(points)]) / 2.0**8
    sums = np.tril(np.ones((points, points))) @ np.linalg.inv(matrix)
    covariance = sums @ sums.T
    assert np.allclose(made.deviation(np.arange(1, points + 1)), 2 * np.sqrt(np.diag(covariance)), rtol=1e-9)
    assert np.allclose(made._moments()[1], covariance[-1], rtol=1e-9)
    if points > 2:
        spread = covariance[6, 6] + covariance[2, 2] - 2 * covariance[6, 2]
        assert made.deviation(7, 3) == pytest.approx(2 * math.sqrt(spread), rel=1e-9)


@pytest.mark.slow
def test_the_noise_has_the_deviation_that_is_stated():
    """1000 draws: a variance is off by 5·√(2/1000), 22%, with probability below 1e-6."""
    made = StreamSums(points=60, stddev=5)
    drawn = np.array([made._draw(np.zeros(60, dtype=np.int64)) for _ in range(1000)])
    for last, first in ((1, 0), (17, 0), (60, 0), (60, 59), (40, 7), (8, 7)):
        noise = drawn[:, last - 1] - (drawn[:, first - 1] if first else 0)
        assert noise.std() == pytest.approx(float(made.deviation(last, first)), rel=0.12)
        assert abs(noise.mean()) < 6 * noise.std() / math.sqrt(1000)
    assert (np.abs(drawn).max(axis=1) <= float(made.error(0.9))).mean() >= 0.9


@pytest.mark.parametrize("points", [1, 2, 3, 10, 30, 100, 365, 1000, 1024, 4096])
def test_noise_is_within_1_percent_of_all_in_memory(points):
    for normalized in (True, False):
        made = StreamSums(points=points, stddev=1, normalized=normalized)
        whole = dp.mechanisms.PrefixSums(points=points, stddev=1, normalized=normalized)
        assert made.spread < 1.01 * whole.spread
    assert made.remembered <= 13


@pytest.mark.slow
def test_noise_is_within_1_percent_of_all_in_memory_at_a_million_points():
    made = StreamSums(points=2**20, stddev=1)
    assert made.spread < 1.01 * 5.294
    assert made.remembered == 17


def test_a_stream_remembers_few_numbers():
    """Everything that a stream holds, but for its public mechanism, factor and rates."""
    stream = StreamSums(points=2000, stddev=1)._start()
    stream._draw(np.full(1500, 2**40))
    held = {name: value for name, value in vars(stream).items() if name not in ("_mechanism", "_buffers", "_rates")}
    numbers = [x for value in held.values() for x in (value if isinstance(value, list) else [value])]
    assert len(numbers) == stream._mechanism.remembered + 1  # and the number of steps
    assert sum(map(sys.getsizeof, numbers)) < 1000


def test_a_stream_is_one_release_whatever_the_batches(monkeypatch):
    rng = np.random.default_rng(3)
    counts, noise = rng.integers(0, 50, 500), rng.integers(-(2**37), 2**37, 500)
    made, place = StreamSums(points=500, stddev=4), [0]

    def next_noise(variance, size):
        assert variance == (4 * 2**34) ** 2
        place[0] += size
        return noise[place[0] - size : place[0]]

    monkeypatch.setattr(samplers, "discrete_gaussian", next_noise)
    whole = made._draw(counts)
    for sizes in ([500], [1] * 500, [3, 100, 1, 200, 64, 65, 67], [250, 0, 250]):
        place[0], stream = 0, made._start()
        found = [stream._draw(part) for part in np.split(counts, np.cumsum(sizes)[:-1])]
        assert np.array_equal(np.concatenate(found), whole)
    with refuses(dp.InvalidArgument, "stream-ended"):
        stream._draw([1])
    assert repr(stream) == "<BufferedSum: step 500 of 500>"


def test_without_noise_sums_are_exact_but_for_rounding():
    counts = np.random.default_rng(4).integers(0, 2**20, 3000)
    with testing.no_noise():
        made = StreamSums(points=3000, stddev=1)
        assert np.abs(made._draw(counts) - np.cumsum(counts)).max() < made._rounding * made._largest + 1e-4


def test_a_stream_takes_whole_numbers_only():
    stream = StreamSums(points=5, stddev=1)._start()
    for bad in (np.array([0.5]), np.ones((2, 2), int), [1] * 6):
        with pytest.raises(dp.InvalidArgument):
            stream._draw(bad)
    with testing.no_noise():
        assert np.allclose(stream._draw([2**40]), [2**40])
        assert np.allclose(stream._draw([5, "a", None]), [2**40 + 5] * 3)  # what is no number counts nobody


def test_an_error_asked_for_is_kept():
    for amount in (100, 1e-3):
        made = StreamSums.for_error(amount, points=64, confidence=0.9)
        assert 0.99 * amount < float(made.error(0.9)) <= amount
        assert made.within(64, 3, 0.9) < amount
    with refuses(dp.InvalidArgument, "error-out-of-reach"):
        StreamSums.for_error(1e-12, points=64)


def test_a_session_is_charged_once():
    ledger = dp.Ledger.open(":memory:", protects=ROW, limit=dp.Approx(epsilon=2, delta=1e-5))
    made = StreamSums.for_guarantee(dp.Approx(epsilon=1, delta=1e-6), points=365)
    days = dp.stream(made, sensitivity=1, ledger=ledger)
    assert [len(days.add(np.arange(n))) for n in (1, 5, 100)] == [1, 5, 100]
    assert ledger.count == 1
    assert "Session of StreamSums" in repr(days)
    assert len(dp.release(np.arange(365), made, sensitivity=1, ledger=ledger).value) == 365


def test_prefix_sums_of_a_grid_may_have_few_buffers():
    made = dp.mechanisms.CumulativeCounts(space=dp.Integers(0, 49), sums=StreamSums(points=50, stddev=1))
    read = made.read(dp.release(np.arange(1000) % 50, made, sensitivity=1).value)
    count, deviation = read.between(10, 19)
    assert abs(count - 200) < 9 * deviation
