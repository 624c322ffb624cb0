"""Numbers on the lattice: what rounding may add, and that nothing wraps or fails."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dp
from discreet import testing
from discreet.mechanisms.noise.lattice import to_lattice

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
        assert dp.release([1, 5, 2], dp.PermuteAndFlip(rate=1), sensitivity=1).value == 1
        assert dp.release([3, 9, 4], dp.Quantile(space=dp.Integers(0, 9), rate=1)).value == 4
        assert dp.release({"a": 30, "b": 1}, dp.KeySelection(scale=1, threshold=20)).value == {"a": 30}
        assert dp.release(["a", "b"], dp.RandomizedResponse(choices=["a", "b"], lie=0.1)).value == ["a", "b"]


def test_a_subsampled_vector_pays_for_its_rounding():
    """The shape is asked of no rows at all, so it says nothing about the data."""
    sampled = dp.Subsampled(mechanism=dp.Laplace(scale=1, step=1), rate=0.5, query=lambda rows: rows.sum(axis=0))
    wide = dp.release(np.zeros((4, 3)), sampled, sensitivity=0.5).guarantee
    narrow = dp.release(np.zeros((4, 1)), sampled, sensitivity=0.5).guarantee
    assert wide.largest_loss > narrow.largest_loss
    stated = sampled.guarantee(dp.Sensitivity(0.5, "L1", dimension=3))
    assert wide == stated
