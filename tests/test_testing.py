"""Noise under control: reproducible, absent or enumerated, and never passed off as private."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet import testing
from discreet.errors import InvalidArgument
from discreet.exact import randomness, samplers
from discreet.functions.density import density_of
from discreet.functions.regression import regression_curve
from discreet.releases import NOT_PRIVATE

F = Fraction


def _everything():
    return [
        samplers.discrete_laplace(F(3), 4).tolist(),
        samplers.discrete_gaussian(F(10**8), 4).tolist(),
        samplers.bernoulli(F(1, 3), 4).tolist(),
        samplers.bernoulli_exp(F(1), 2).tolist(),
        samplers.bernoulli_exp_each(np.array([1, 2]), F(1, 2)).tolist(),
        samplers.uniform_below(10**6, 3).tolist(),
        samplers.permutation(9).tolist(),
        samplers.exponential_choice(np.array([1, 0, 2]), F(1), 5).tolist(),
        dp.release(10, dp.Laplace(scale=2), sensitivity=1).value,
    ]


def test_frozen_noise_is_reproducible():
    """Equal seeds give equal noise, other seeds other noise; equal by chance with probability below 10^-20."""
    with testing.frozen(5):
        first = _everything()
    with testing.frozen(5):
        second = _everything()
    with testing.frozen(6):
        other = _everything()
    assert first == second
    assert first != other
    assert _everything() != first


def test_the_tape_holds_names_and_public_parameters_only():
    losses = np.array([10, 0, 77])
    with testing.frozen() as tape:
        samplers.discrete_laplace(F(3), 4)
        samplers.exponential_choice(losses, F(1), size=2)
        samplers.bernoulli(probability=F(1, 3), size=1)
    assert tape.calls == [
        ("discrete_laplace", (F(3), 4)),
        ("exponential_choice", ((3,), F(1), 2)),
        ("bernoulli", (F(1, 3), 1)),
    ]
    assert "77" not in repr(tape)


def test_frozen_blocks_nest_and_end():
    with testing.frozen(1) as outer:
        with testing.frozen(2) as inner:
            samplers.permutation(3)
        samplers.permutation(4)
    assert [len(outer.calls), len(inner.calls)] == [1, 1]
    with pytest.raises(KeyError), testing.frozen(1):
        raise KeyError
    assert samplers.is_private()
    assert not randomness.is_replayed()


def test_no_noise_gives_the_true_answer():
    with testing.no_noise():
        assert samplers.discrete_laplace(F(3), 3).tolist() == [0, 0, 0]
        assert samplers.discrete_gaussian(F(3), 2).tolist() == [0, 0]
        assert samplers.exponential_choice(np.array([3, 1, 2]), F(1)).tolist() == [1]
        assert samplers.exponential_choice(np.array([3, 1, 2]), F(1), widths=np.array([1, 0, 1])).tolist() == [2]
        assert samplers.bernoulli(F(9, 10), 2).tolist() == [False, False]
        assert samplers.bernoulli_exp_each(np.array([0, 1]), F(1)).tolist() == [True, False]
        assert samplers.permutation(3).tolist() == [0, 1, 2]
        assert samplers.uniform_below(9, 2).tolist() == [0, 0]
        assert dp.release(41, dp.Laplace(scale=100), sensitivity=1).value == 41
        assert dp.release(np.array([0.25, 7]), dp.Gaussian(stddev=3), sensitivity=1).value.tolist() == [0.25, 7.0]
    assert len(set(samplers.discrete_laplace(F(2**40), 3).tolist())) == 3


def test_counts_of_a_poll_are_shown_as_far_as_the_error_means_something():
    poll = dp.shuffle.histogram(choices=["a", "b"], clients=1000, epsilon=1, delta=1e-8)
    answer = poll.analyze(poll.encode_many(["a"] * 700 + ["b"] * 300))
    shown = {name: round(count) for name, count in answer.value.items()}
    assert str(answer).startswith(f"{shown} ± ")


def test_everything_made_under_control_says_so():
    def answer():
        return dp.release(3, dp.Laplace(scale=2, step=1), sensitivity=1)

    with testing.frozen(3):
        assert answer().not_private
        assert "NOT PRIVATE" in str(answer())
    with testing.no_noise():
        assert answer().not_private
    assert set(testing.exact_law(lambda: answer().not_private).law) == {True}
    assert not answer().not_private
    assert "NOT PRIVATE" not in str(answer())


def answers_of_every_kind():
    """What has words of its own for people: with and without a ledger, by table, in SQL, local, and as functions."""
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=1000, delta=0.01))
    x = np.arange(200) % 10
    table = dp.table({"x": x, "kind": ["a", "b"] * 100}, ledger=ledger)
    between, cost = {"between": (0, 9)}, {"epsilon": 1, "delta": 1e-6}
    survey = dp.local.survey(choices=["a", "b"], epsilon=1)
    mean = dp.local.mean(between=(0, 9), epsilon=1)
    smooth = {**between, "bandwidth": 1, "guarantee": dp.Approx(**cost)}
    policy = {"unit": {"row": True}, "ledger": {"path": ":memory:", "epsilon": 9, "delta": 1e-3}}
    database = dp.connect(policy | {"tables": {"t": {"source": pa.table({"x": x})}}})
    return [
        dp.release(3, dp.Laplace(scale=2, step=1), sensitivity=1),
        table.count(epsilon=1),
        table.quantiles("x", [0.1, 0.2, 0.5, 0.9], **between, epsilon=1),
        table.cdf("x", **between, epsilon=1),
        table.synthesize({"x": (0, 9), "kind": ["a", "b"]}, rows=5, **cost),
        table.density("x", **between, **cost),
        survey.analyze(survey.encode_many(["a", "b"] * 50)),
        mean.analyze(mean.encode_many(x)),
        density_of(x, **smooth),
        regression_curve(x, x, **smooth, target_bound=9, size=200),
        database.sql("SELECT COUNT(*) AS n FROM t", epsilon=1),
    ]


@pytest.mark.slow
def test_whatever_is_shown_says_that_it_was_made_under_control():
    with testing.frozen(3):
        made = answers_of_every_kind()
    for answer in made:
        assert answer.not_private
        assert str(answer).count(NOT_PRIVATE) == 1, answer
    for answer in answers_of_every_kind():
        assert not answer.not_private
        assert NOT_PRIVATE not in str(answer), answer


def test_pictures_say_that_they_were_made_under_control():
    pytest.importorskip("matplotlib", reason='needs pip install "discreet[plot]"')
    one = {"between": (0, 9), "bandwidth": 1, "guarantee": dp.Approx(epsilon=1, delta=1e-6)}
    with testing.no_noise():
        made = density_of(np.arange(10.0), **one)
    for picture in (made.plot(), made.plot(title="mine")):
        assert picture.axes[0].get_title().endswith(f"\n{NOT_PRIVATE}")
    assert NOT_PRIVATE not in density_of(np.arange(10.0), **one).plot().axes[0].get_title()


def _close_below(found: Fraction, truth: mpmath.mpf) -> bool:
    """Never above the truth, and below it by less than 10^-60."""
    return 0 <= truth - mpmath.mpf(found.numerator) / found.denominator < mpmath.mpf(10) ** -60


def test_exact_law_of_one_draw_is_the_formula():
    found = testing.exact_law(lambda: int(samplers.discrete_laplace(F(3, 2), 1)[0]), window=9)
    with mpmath.workdps(90):
        q = mpmath.exp(-mpmath.mpf(2) / 3)
        assert sorted(found.law) == list(range(-9, 10))
        assert all(_close_below(found.law[k], (1 - q) / (1 + q) * q ** abs(k)) for k in found.law)
        outside = 2 * q**10 / (1 + q)
        assert abs(mpmath.mpf(found.unresolved.numerator) / found.unresolved.denominator - outside) < 1e-60
    assert sum(found.law.values()) == 1 - found.unresolved


def test_exact_law_of_a_geometric_draw_is_the_formula():
    found = testing.exact_law(lambda: int(samplers.geometric(F(3, 2), 1)[0]), window=9)
    with mpmath.workdps(90):
        q = mpmath.exp(-mpmath.mpf(2) / 3)
        assert sorted(found.law) == list(range(10))
        assert all(_close_below(found.law[k], (1 - q) * q**k) for k in found.law)
        assert abs(mpmath.mpf(found.unresolved.numerator) / found.unresolved.denominator - q**10) < 1e-60


def test_exact_law_of_a_composition_is_the_convolution():
    """Two Laplace draws and a rational coin that adds one, by enumeration and by formula."""

    def run():
        return int(samplers.discrete_laplace(F(1), 2).sum()) + int(samplers.bernoulli(F(1, 3), 1)[0])

    found = testing.exact_law(run, window=8)
    assert sum(found.law.values()) == 1 - found.unresolved
    with mpmath.workdps(90):
        q = mpmath.exp(-1)
        one = {k: (1 - q) / (1 + q) * q ** abs(k) for k in range(-8, 9)}
        for total, mass in found.law.items():
            truth = sum(
                one[a] * one[total - coin - a] * (mpmath.mpf(2) / 3 if coin == 0 else mpmath.mpf(1) / 3)
                for coin in (0, 1)
                for a in one
                if total - coin - a in one
            )
            assert _close_below(mass, truth)


def test_exact_law_of_adaptive_draws():
    """The second draw depends on the first: P[(heads, k)] = e^-1 · uniform on 3, P[(tails, order)] = (1 − e^-1)/2."""

    def run():
        if samplers.bernoulli_exp(F(1), 1)[0]:
            return "heads", int(samplers.uniform_below(3, 1)[0])
        return "tails", samplers.permutation(2)

    found = testing.exact_law(run)
    with mpmath.workdps(90):
        p = mpmath.exp(-1)
        expected = {("heads", k): p / 3 for k in range(3)} | {("tails", o): (1 - p) / 2 for o in ((0, 1), (1, 0))}
        assert found.law.keys() == expected.keys()
        assert all(_close_below(found.law[key], expected[key]) for key in expected)
    assert 0 <= found.unresolved < F(1, 2**250)


def test_exact_law_of_choices_and_separate_coins():
    losses, widths = np.array([2, 0, 5, 1]), np.array([3, 1, 0, 2])
    found = testing.exact_law(lambda: int(samplers.exponential_choice(losses, F(1, 2), 1, widths)[0]))
    coins = testing.exact_law(lambda: samplers.bernoulli_exp_each(np.array([0, 1, 3]), F(1, 2)))
    with mpmath.workdps(90):
        weights = {i: int(widths[i]) * mpmath.exp(-mpmath.mpf(int(losses[i])) / 2) for i in (0, 1, 3)}
        whole = mpmath.fsum(weights.values())
        assert found.law.keys() == weights.keys()
        assert all(_close_below(found.law[i], weights[i] / whole) for i in weights)
        p, r = mpmath.exp(-mpmath.mpf(1) / 2), mpmath.exp(-mpmath.mpf(3) / 2)
        assert _close_below(coins.law[(True, True, False)], p * (1 - r))
        assert all(coin[0] for coin in coins.law)  # an impossible outcome is not enumerated


def test_exact_law_does_not_walk_impossible_ways():
    """Permute-and-flip with no heads at all would choose among nothing; it never happens, so it is never tried."""

    def run():
        heads = np.flatnonzero(samplers.bernoulli_exp_each(np.array([0, 1]), F(1)))
        return int(heads[int(samplers.uniform_below(len(heads), 1)[0])])

    found = testing.exact_law(run)
    with mpmath.workdps(90):
        assert _close_below(found.law[1], mpmath.exp(-1) / 2)


def test_exact_law_agrees_with_the_gaussian_formula():
    found = testing.exact_law(lambda: int(samplers.discrete_gaussian(F(7, 4), 1)[0]), window=30)
    with mpmath.workdps(90):
        whole = mpmath.fsum(mpmath.exp(-mpmath.mpf(k * k) * 2 / 7) for k in range(-60, 61))
        assert all(_close_below(found.law[k], mpmath.exp(-mpmath.mpf(k * k) * 2 / 7) / whole) for k in found.law)


def test_exact_law_refuses_to_run_forever():
    with pytest.raises(InvalidArgument):
        testing.exact_law(lambda: samplers.discrete_laplace(F(1), 3), most_paths=50)
    assert samplers.is_private()
