"""Seeded bugs are killed by the very checks that the real samplers pass.

Each check passes on the real thing elsewhere in this folder; here it must fail on a broken one. A mutant survives by
chance with probability below 10^-6: the effects are many times what the checks detect.
"""

from __future__ import annotations

import os
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

import discreet as dp
from discreet.exact import randomness, samplers
from discreet.mechanisms.noise import lattice

F = Fraction
LAPLACE, GAUSSIAN = samplers.discrete_laplace, samplers.discrete_gaussian


def _released(n):
    return dp.Laplace(scale=3, step=1)._draw(np.zeros(n, dtype=np.int64))


def test_noise_scale_halved(checks, monkeypatch):
    """Through a release, and on the sampler at a scale with cells."""
    assert checks.law_of(_released, "laplace", F(3), 10**5) > checks.ALARM
    monkeypatch.setattr(samplers, "discrete_laplace", lambda scale, size: LAPLACE(scale / 2, size))
    assert checks.law_of(_released, "laplace", F(3), 10**5) < checks.ALARM
    assert checks.law_of(lambda n: LAPLACE(F(500), n), "laplace", F(1000), 10**5) < checks.ALARM
    assert checks.law_of(lambda n: GAUSSIAN(F(500), n), "gaussian", F(1000), 10**5) < checks.ALARM


def test_variance_taken_for_deviation(checks):
    assert checks.law_of(lambda n: GAUSSIAN(F(9), n), "gaussian", F(9), 10**5) < checks.ALARM


@pytest.mark.parametrize("scale", [F(3), F(2**20)], ids=str)
def test_same_draw_used_twice(checks, scale):
    """Twice in a row, in every chunk, and in every call."""
    size = 2 * 10**5
    once = LAPLACE(scale, size)
    chunk = LAPLACE(scale, 2**15)
    for broken in (
        lambda n: np.repeat(LAPLACE(scale, n // 2), 2),
        lambda n: np.resize(chunk, n),
        lambda n: once,
    ):
        assert checks.law_of(broken, "laplace", scale, size) > 0  # each looks lawful one draw at a time
        assert checks.independence_of(broken, scale, size) < checks.ALARM
    assert checks.independence_of(lambda n: LAPLACE(scale, n), scale, size) > checks.ALARM


def test_magnitudes_used_twice_with_fresh_signs(checks):
    def broken(n):
        signs = np.where(samplers.bernoulli(F(1, 2), n), 1, -1)
        return signs * np.abs(np.repeat(LAPLACE(F(3), n // 2), 2))

    assert checks.independence_of(broken, F(3), 2 * 10**5) < checks.ALARM


@pytest.mark.parametrize(("kind", "scale"), [("laplace", F(3)), ("laplace", F(2**30)), ("gaussian", F(2**20))])
def test_last_bit_not_randomized(checks, kind, scale):
    def broken(n):
        return (LAPLACE(scale, n) if kind == "laplace" else GAUSSIAN(scale * scale, n)) & ~1

    assert checks.law_of(broken, kind, scale, 10**5) < checks.ALARM


def test_last_bit_of_a_release_not_randomized(checks, monkeypatch):
    """Neighbors one step apart: the parity of the answer gives the data away."""
    pair = (0.0, 2.0**-40)

    def release(x, n):
        return dp.Laplace(scale=1)._draw(np.full(n, x))

    assert checks.bit_events_hold(release, pair, 1.0, 10**5)
    monkeypatch.setattr(samplers, "discrete_laplace", lambda scale, size: 2 * LAPLACE(scale / 2, size))
    assert not checks.bit_events_hold(release, pair, 1.0, 10**5)


def test_noise_in_floating_point(checks):
    """A naive sampler in floating point: 0.27 of its answers at x = 0 are no multiples of 2^-53, and none at x = 1."""
    generator = np.random.default_rng(1)

    def naive(x, n):
        return x + generator.choice([-1.0, 1.0], n) * np.log(generator.random(n) + 2.0**-60)

    assert not checks.bit_events_hold(naive, (0.0, 1.0), 1.0, 10**5)


def test_the_data_choose_the_lattice(checks):
    def broken(x, n):
        return x + np.round(LAPLACE(F(2**40), n) * 2.0**-40, 3 if x else 6)

    assert not checks.bit_events_hold(broken, (0.0, 1.0), 1.0, 10**5)


def test_a_tail_that_is_cut(checks):
    for cut in (6, 9):
        assert checks.law_of(
            lambda n, c=cut: np.clip(LAPLACE(F(100), n), -100 * c, 100 * c), "laplace", F(100), 10**6
        ) < (checks.ALARM)


def test_zero_drawn_with_either_sign(checks):
    """A geometric magnitude with a fair sign, and zero not halved: twice too many zeros."""

    def broken(n):
        size = np.abs(LAPLACE(F(3), 3 * n))
        one_sided = np.where((size == 0) | samplers.bernoulli(F(1, 2), 3 * n), size, -1)
        return one_sided[one_sided >= 0][:n] * np.where(samplers.bernoulli(F(1, 2), n), 1, -1)

    assert checks.law_of(broken, "laplace", F(3), 10**5) < checks.ALARM


def test_a_sign_that_leans(checks):
    """Negative with probability 0.49."""

    def broken(n):
        return np.where(samplers.bernoulli(F(49, 100), n), -1, 1) * np.abs(LAPLACE(F(100), n))

    assert checks.law_of(broken, "laplace", F(100), 10**6) < checks.ALARM


def test_rejection_left_out(checks, monkeypatch):
    """Every place in a cell kept: a staircase of cells 1/16 of the scale or smaller, instead of the law."""
    monkeypatch.setattr(samplers, "_keep_with_exp", lambda energies, exact: np.ones(len(energies), dtype=bool))
    assert checks.law_of(lambda n: LAPLACE(F(1000), n), "laplace", F(1000), 3 * 10**6) < checks.ALARM
    assert checks.law_of(lambda n: LAPLACE(F(2**40), n), "laplace", F(2**40), 10**6) < checks.ALARM
    assert checks.law_of(lambda n: GAUSSIAN(F(1449**2), n), "gaussian", F(1449), 2 * 10**6) < checks.ALARM


def _one_stream(key: bytes = bytes(range(32))):
    stream = randomness.Keystream(key, bytes(16))
    return stream.read


def test_fork_shares_the_stream(checks, monkeypatch):
    assert checks.fork_shares_nothing()
    monkeypatch.setattr(randomness, "_bytes", _one_stream())
    assert not checks.fork_shares_nothing()


def another_process() -> SimpleNamespace:
    """The module of the system for one module only: others, and their threads, are in the process that they are in."""
    return SimpleNamespace(**vars(os) | {"getpid": lambda: 1})


def test_fork_is_noticed_without_the_hook_and_without_the_pid(checks, monkeypatch):
    """Either of the two signs of a fork is enough, and with neither the check fails."""
    with monkeypatch.context() as patch:
        patch.setattr(randomness, "os", another_process())
        assert checks.fork_shares_nothing()

    class Frozen:
        """A count of forks that does not count."""

        def __iadd__(self, _):
            return self

    with monkeypatch.context() as patch:
        patch.setattr(randomness, "_forks", Frozen())
        assert checks.fork_shares_nothing()
        patch.setattr(randomness, "os", another_process())
        assert not checks.fork_shares_nothing()


def test_generator_seeded_per_process(checks):
    """Fixed entropy, or the hash seed: equal in two processes with equal seeds."""
    for broken in (
        "randomness._entropy = lambda count: bytes(range(count))",
        "randomness._entropy = lambda count: str(hash('discreet')).encode().ljust(count)[:count]",
    ):
        assert not checks.processes_differ(broken)


def test_ties_decided_at_once(checks):
    """A tie with the first 64 bits of 1/3 counted as heads, or as tails, is seen by the scripted words."""
    digits = 2**64 // 3

    def exact(flip):
        with checks.scripted(digits, digits - 1):
            first = flip()
        with checks.scripted(digits, digits + 1):
            return first and not flip()

    assert exact(lambda: bool(samplers.bernoulli(F(1, 3), 1)[0]))
    assert not exact(lambda: bool((randomness.random_words(1) <= np.uint64(digits))[0]))
    assert not exact(lambda: bool((randomness.random_words(1) < np.uint64(digits))[0]))


def test_sums_that_wrap(checks):
    def wraps(array, noise, step):
        with np.errstate(over="ignore"):
            return (array.reshape(-1).astype(np.int64) + noise.astype(object).astype(np.int64, casting="unsafe"))[0]

    def forgets_the_smallest_integer(array, noise, step):
        if abs(int(noise[0])) >= 2**63 or np.abs(array) >= 2**61:
            array = array.astype(object)
        return lattice.from_lattice(array.reshape(-1) + noise, step)[0]

    assert checks.saturates(lattice.add_noise)
    assert not checks.saturates(wraps)
    assert not checks.saturates(forgets_the_smallest_integer)
