"""Floats on a public lattice: exact rounding, no wrap, no exception that data could cause, and no telling last bits."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dp
from discreet import testing
from discreet.errors import InvalidArgument
from discreet.mechanisms.noise.lattice import add_noise, as_numbers, check_step, from_lattice, step_for, to_lattice
from discreet.queries.sensitivity import Sensitivity

from ...refusing import refuses

F = Fraction
STEPS = st.integers(-90, 40).map(lambda e: F(2) ** e)
FLOATS = st.floats(min_value=-(2.0**960), max_value=2.0**960)
INTEGERS = st.integers(-(2**63), 2**63 - 1)
ODD_FLOATS = [math.nan, math.inf, -math.inf, 1.7976931348623157e308, -1.7976931348623157e308, 5e-324, -5e-324, -0.0]


def _nearest(value, step):
    return math.floor(F(value) / step + F(1, 2))


# --- rounding ---------------------------------------------------------------------------------------------------------


@given(st.lists(FLOATS | st.floats(-4, 4) | st.integers(-50, 50).map(lambda k: k / 8), max_size=6), STEPS)
def test_floats_go_to_the_nearest_index_halves_upward(values, step):
    found = to_lattice(np.array(values, dtype=np.float64), step)
    assert [int(k) for k in found] == [_nearest(value, step) for value in values]


@pytest.mark.slow
@given(st.lists(INTEGERS | st.integers(-100, 100), max_size=6), STEPS)
def test_integers_go_to_the_nearest_index(values, step):
    found = to_lattice(np.array(values, dtype=np.int64), step)
    assert [int(k) for k in found] == [_nearest(value, step) for value in values]


@pytest.mark.slow
@given(st.lists(st.fractions() | st.integers(), max_size=5), STEPS)
def test_rationals_go_to_the_nearest_index(values, step):
    array = np.array([F(value) for value in values] + [None], dtype=object)[:-1]
    assert [int(k) for k in to_lattice(array, step)] == [_nearest(value, step) for value in values]


@pytest.mark.parametrize("x", [0.5 - 2**-54, 0.5, -0.5, -0.5 - 2**-53, 2.0**52 + 0.5, -(2.0**52) - 0.5, 1.5, 2.5, -1.5])
def test_rounding_close_to_halves(x):
    """Adding one half in floating point would round 0.5 − 2^-54 up, and even rounding would send 2.5 to 2."""
    assert to_lattice(np.array([x]), F(1)).tolist() == [_nearest(x, F(1))]


@given(
    st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(-3, 3)), min_size=1, max_size=5),
    st.integers(-45, 3).map(lambda e: F(2) ** e),
)
def test_rounding_moves_neighbors_by_at_most_the_declared_steps(pairs, step):
    """L1, Linf and squared L2 distances on the lattice are within what a Sensitivity declares."""
    x = np.array([a for a, _ in pairs])
    y = np.array([a + b for a, b in pairs])
    moves = [abs(F(a) - F(b)) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    steps = [abs(int(a) - int(b)) for a, b in zip(to_lattice(x, step), to_lattice(y, step), strict=True)]
    if not any(moves):
        assert not any(steps)
        return
    size = len(pairs)
    assert sum(steps) <= Sensitivity(sum(moves), dimension=size).in_steps(step)
    assert max(steps) <= Sensitivity(max(moves), "Linf", dimension=size).in_steps(step)
    assert sum(k * k for k in steps) <= Sensitivity(sum(moves), dimension=size).squared_in_steps(step)


@given(st.lists(st.tuples(INTEGERS, st.integers(-5, 5)), min_size=1, max_size=4), st.integers(-20, 0))
def test_whole_numbers_move_by_exactly_their_distance(pairs, exponent):
    step = F(2) ** exponent
    x = [a for a, _ in pairs]
    y = [max(-(2**63), min(2**63 - 1, a + b)) for a, b in pairs]
    moved = sum(abs(a - b) for a, b in zip(x, y, strict=True))
    rounded = [to_lattice(np.array(values, dtype=np.int64), step) for values in (x, y)]
    steps = sum(abs(int(a) - int(b)) for a, b in zip(*rounded, strict=True))
    assert steps * step == moved
    if moved:
        assert steps == Sensitivity(moved, dimension=len(x), grain=1).in_steps(step)


@given(st.fractions(min_value=F(1, 10**30), max_value=10**30))
def test_the_step_comes_from_the_noise(scale):
    step = step_for(scale)
    assert check_step(step) == step
    assert step <= min(1, scale / 2**40)
    assert (1 / step).denominator == 1  # whole numbers are on the lattice


@pytest.mark.parametrize("step", [0, -1, 3, 0.1, math.nan, math.inf, "1", True])
def test_other_steps_are_refused(step):
    with pytest.raises(InvalidArgument):
        check_step(step)


# --- numbers in and out -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint32])
def test_narrow_integers_are_widened(dtype):
    """A difference of two int8 may not fit int8: scores once wrapped, and the worst was chosen as often as the best."""
    ends = np.iinfo(dtype)
    array = as_numbers(np.array([ends.min, ends.max], dtype=dtype))
    assert array.dtype == np.int64
    assert array.tolist() == [ends.min, ends.max]


def test_scores_of_narrow_integers_do_not_wrap():
    """The best of two 32-bit scores 2^32 apart is chosen every time (a false alarm has probability e^-(2^32))."""
    scores = np.array([-(2**31), 2**31 - 1], dtype=np.int32)
    assert {dp.Exponential(rate=1)._draw(scores) for _ in range(60)} == {1}


def test_large_and_exact_numbers_stay_exact():
    assert as_numbers(np.array([2**64 - 1], dtype=np.uint64)).tolist() == [2**64 - 1]
    assert as_numbers([1, 2**70]).tolist() == [1, 2**70]
    assert as_numbers(F(1, 3)).item() == F(1, 3)
    for value in ("1", None, True, [None], [1j], {"a": 1}, np.array(["1"])):
        with refuses(InvalidArgument, "not-a-number"):
            as_numbers(value)


def test_sums_saturate_and_never_wrap(checks):
    assert checks.saturates(add_noise)


@pytest.mark.parametrize("true", [2**62, -(2**62), 2**63 - 1, -(2**63), 0])
def test_noise_of_scale_2_60_on_numbers_near_2_63(true):
    """Each release is the true number plus exactly the noise drawn, ended at ±2^63; noise seen by freezing it."""
    mechanism = dp.Laplace(scale=2**60)
    for seed in range(40):
        with testing.frozen(seed):
            noise = int(mechanism._noise(1)[0])
        with testing.frozen(seed):
            value = dp.release(np.int64(true), mechanism, sensitivity=1).value
        assert value == max(-(2**63), min(2**63 - 1, true + noise))


def test_many_numbers_near_2_63_with_small_noise():
    values = np.array([2**63 - 1, -(2**63), 0, 2**62, -(2**62) - 1])
    with testing.frozen(1):
        noise = dp.Laplace(scale=3, step=1)._noise(5)
    with testing.frozen(1):
        released = dp.Laplace(scale=3, step=1)._draw(values)
    exact = [max(-(2**63), min(2**63 - 1, int(v) + int(k))) for v, k in zip(values, noise, strict=True)]
    assert released.tolist() == exact
    assert released.dtype == np.int64


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1, 2**60, 1e30], ids=str)
@pytest.mark.parametrize("kind", ["Laplace", "Gaussian"])
def test_no_number_makes_a_release_fail_or_infinite(kind, scale):
    """NaN, ±inf and the largest doubles: finite answers of the same type, no exception and no warning."""
    mechanism = dp.Laplace(scale=scale) if kind == "Laplace" else dp.Gaussian(stddev=scale)
    for x in [*ODD_FLOATS, 1.0]:
        value = mechanism._draw(x)
        assert math.isfinite(value)
        assert type(value) is type(mechanism._draw(1.0))
    together = mechanism._draw(np.array(ODD_FLOATS))
    assert np.isfinite(together).all()
    assert together.dtype == mechanism._draw(np.array([1.0])).dtype


@pytest.mark.parametrize("x", [0, 1, 10**400, -(10**400), F(10) ** 400, F(1, 3)], ids=lambda x: f"{str(x)[:5]}")
@pytest.mark.parametrize("scale", [1e-12, 1, 2**60], ids=str)
def test_no_exact_number_makes_a_release_fail(x, scale):
    assert math.isfinite(dp.Laplace(scale=scale)._draw(x))


def test_zero_dimensions_and_none():
    assert isinstance(dp.Laplace(scale=1)._draw(3.0), float)
    assert isinstance(dp.Laplace(scale=1, step=1)._draw(3), int)
    assert dp.Laplace(scale=1)._draw(np.empty((0, 3))).shape == (0, 3)
    assert dp.Laplace(scale=1)._draw(np.empty(0, dtype=np.int64)).shape == (0,)
    assert dp.Laplace(scale=1)._draw(np.ones((2, 3))).shape == (2, 3)


@given(st.lists(st.integers(-(2**62), 2**62), max_size=4), st.integers(-60, -1))
def test_doubles_are_the_nearest_to_the_lattice_point(indices, exponent):
    step = F(2) ** exponent
    found = from_lattice(np.array(indices, dtype=np.int64), step)
    assert found.tolist() == [float(k * step) for k in indices]
    assert from_lattice(np.array([*indices, None], dtype=object)[:-1], step).tolist() == found.tolist()


# --- bit events -------------------------------------------------------------------------------------------------------


def _laplace(x: float, size: int):
    return dp.Laplace(scale=1)._draw(np.full(size, x))


@pytest.mark.parametrize("pair", [(0.0, 1.0), (0.0, 2.0**-40), (0.1, 1.1)])
def test_bit_events_of_laplace_releases(checks, pair):
    """P[multiple of 2^-j] for x and x', j = 0 … 60, within e: false alarm below 5·10^-8; detects 0.27 against 0."""
    assert checks.bit_events_hold(_laplace, pair, 1.0, 10**6)


def test_a_release_is_always_on_the_public_lattice():
    """The event "not a multiple of 2^-53" is impossible for both inputs: all values are multiples of the step."""
    for x in (0.0, 1.0, 0.1, 1e-9):
        values = dp.Laplace(scale=1)._draw(np.full(10**5, x)) * 2.0**40
        assert (values == np.floor(values)).all()
        assert 0.45 < np.mod(values, 2).mean() < 0.55


def test_bit_events_of_gaussian_releases(checks):
    """σ = 1, x = 0 and 1, against e^6, which a Gaussian of one standard deviation passes with δ < 10^-6."""
    assert checks.bit_events_hold(lambda x, n: dp.Gaussian(stddev=1)._draw(np.full(n, x)), (0.0, 1.0), 6.0, 10**6)


VALUES = st.floats(-50, 50, width=32)


@given(
    st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=5),
    st.sampled_from([Fraction(1, 4), Fraction(1), Fraction(8)]),
)
def test_rounding_moves_no_further_than_is_charged(pairs, step):
    """The distance of the lattice points of two vectors is within what `Sensitivity` says for their true distance."""
    first, second = (np.array(side, dtype=np.float64) for side in zip(*pairs, strict=True))
    apart = [abs(Fraction(a) - Fraction(b)) for a, b in zip(first.tolist(), second.tolist(), strict=True)]
    if not any(apart):
        return
    moved = np.abs(to_lattice(first, step) - to_lattice(second, step))
    size = len(pairs)
    assert moved.sum() <= dp.Sensitivity(sum(apart), "L1", dimension=size).in_steps(step)
    assert moved.max() <= dp.Sensitivity(max(apart), "Linf", dimension=size).in_steps(step)
    length = dp.Sensitivity(max(apart), "L2") if size == 1 else None
    if length is None:
        squares = sum(a * a for a in apart)
        root = Fraction(float(squares) ** 0.5) * Fraction(1_000_001, 1_000_000)
        length = dp.Sensitivity(root, "L2", dimension=size)
    assert (moved**2).sum() <= length.squared_in_steps(step)


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), -float("inf"), 1e308, -1e308, 5e-324])
@pytest.mark.parametrize("scale", [1e-20, 1, 1e20])
def test_odd_floats_get_the_same_number_of_draws(odd, scale):
    with testing.frozen(1) as plain:
        dp.release(0.0, dp.Laplace(scale=scale), sensitivity=1)
    with testing.frozen(1) as strange:
        value = dp.release(odd, dp.Laplace(scale=scale), sensitivity=1).value
    assert plain.calls == strange.calls
    assert np.isfinite(value)


def test_released_floats_lie_on_the_public_lattice():
    for scale in (0.3, 1, 1000):
        m = dp.Laplace(scale=scale)
        values = dp.release(np.linspace(-3, 3, 1000), m, sensitivity=1).value
        assert all((Fraction(v) / Fraction(m.step)).denominator == 1 for v in values.tolist())


def test_no_noise_gives_the_answer_back():
    with testing.no_noise():
        assert dp.release(41, dp.Laplace(scale=1), sensitivity=1).value == 41
        assert dp.release([1, 5, 2], dp.NoisyArgmax(scale=1), sensitivity=1).value == 1
        assert dp.release([1, 5, 2], dp.Exponential(rate=1), sensitivity=1).value == 1
        assert dp.release([1, 5, 2], dp.mechanisms.PermuteAndFlip(rate=1), sensitivity=1).value == 1
        assert dp.release([3, 9, 4], dp.mechanisms.Quantile(space=dp.Integers(0, 9), rate=1)).value == 4
        assert dp.release({"a": 30, "b": 1}, dp.mechanisms.KeySelection(scale=1, threshold=20)).value == {"a": 30}
        assert dp.release(["a", "b"], dp.RandomizedResponse(choices=["a", "b"], lie=0.1)).value == ["a", "b"]


def test_a_subsampled_vector_pays_for_its_rounding():
    """The shape is asked of no rows at all, so it says nothing about the data."""
    sampled = dp.Subsampled(mechanism=dp.Laplace(scale=1, step=1), rate=0.5, query=lambda rows: rows.sum(axis=0))
    wide = dp.release(np.zeros((4, 3)), sampled, sensitivity=0.5).guarantee
    narrow = dp.release(np.zeros((4, 1)), sampled, sensitivity=0.5).guarantee
    assert wide.largest_loss > narrow.largest_loss
    stated = sampled.guarantee(dp.Sensitivity(0.5, "L1", dimension=3))
    assert wide == stated
