"""Intervals of quantiles read from cumulative counts [L3.CDF]: they hold for any noise within its bound, and the bound
of the noise holds for the law that is drawn.
"""

from __future__ import annotations

import inspect
import math
import textwrap
from itertools import pairwise, product

import numpy as np
import pytest

import discreet as dp
from discreet.mechanisms.counts import count_tree, factorization
from discreet.mechanisms.quantiles import cumulative
from discreet.mechanisms.quantiles.cumulative import Cumulative, CumulativeCounts, QuantilesFromCounts

CountTree, PrefixSums = dp.mechanisms.CountTree, dp.mechanisms.PrefixSums
SHARES = [0.01, 0.1, 0.25, 0.5, 0.875, 0.99]
RULES = [
    *("inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull"),
    *("linear", "median_unbiased", "normal_unbiased", "lower", "higher", "nearest", "midpoint"),
]
"""All definitions of a quantile that numpy knows."""


class Missed(AssertionError):
    """A true quantile lies outside of its interval, or an answer is off by more ranks than promised."""


def weights(made):
    """How much each measurement weighs in each prefix sum: a line for each sum."""
    if isinstance(made, PrefixSums):
        measured = [made._weighted_sums(np.eye(made.points)[i] * 2.0**34) for i in range(made.points)]
        of = factorization.weights(made.points, made.normalized)
        return np.array([factorization.sums_from(one, of) for one in measured]).T
    sizes = [made.branches**level for level in range(made.levels, 0, -1)]
    impulses = np.split(np.eye(sum(sizes)), np.cumsum(sizes)[:-1], axis=1)
    lines = [np.cumsum(made._reconciled([part[n] for part in impulses])) for n in range(sum(sizes))]
    return np.array(lines).T[: made.points]


MADE = [
    PrefixSums(points=2, stddev=1),
    PrefixSums(points=37, stddev=1),
    *(CountTree(points=n, scale=1000, branches=b) for n, b in ((2, 2), (5, 2), (8, 2), (9, 3), (27, 3), (30, 4))),
]


@pytest.mark.parametrize("made", MADE, ids=repr)
def test_the_noise_of_a_sum_less_a_share_of_the_last_one(made):
    """Its largest variance is the exact one, interpolation never gives less, and no measurement weighs more than 1."""
    known = weights(made)
    if isinstance(made, PrefixSums):
        stated = factorization.share_variances(made.points, made.normalized)
    else:
        stated = count_tree.share_variances(made.points, made.branches)
        assert np.allclose(known @ known[-1], count_tree.covariances(made.points, made.branches))
    for share in np.linspace(0, 1, 41):
        of_share = known - share * known[-1]
        exact, found = (of_share**2).sum(axis=1).max(), np.interp(share, factorization.EIGHTHS, stated)
        assert exact <= found * (1 + 1e-9)
        if share in factorization.EIGHTHS:
            assert found == pytest.approx(exact)
        own = made.beyond_at(share, 0.01, slice(made.points))
        if isinstance(made, CountTree):
            tails = [made._tail(one, -math.log(0.01)) for one in (of_share**2).sum(axis=1)]
            assert np.all(own >= np.array(tails) * (1 - 1e-9))
            assert np.abs(of_share).max() <= 1 + 1e-9
            ranges = known[:, None] - known[None]  # what `within` uses
            assert np.abs(ranges).max() <= 1 + 1e-9
        else:
            assert np.allclose(own, np.sqrt((of_share**2).sum(axis=1)) * 2.3263478740)
        assert np.all(own <= made.beyond(np.array([share]), 0.01) * (1 + 1 / 32))


@pytest.mark.parametrize("miss", [0.05, 1e-3, 1e-6])
def test_the_tail_of_laplace_noise_is_never_below_the_true_one(miss):
    """One, two and three variables have tails in closed form. The bound is at most 2.3 times what it has to be."""
    made = CountTree(points=4, scale=1, branches=2)
    tails = {1: lambda x: 1 / 2, 2: lambda x: (2 + x) / 4, 3: lambda x: (8 + 5 * x + x * x) / 16}
    for variables, factor in tails.items():
        bound = made._tail(variables, -math.log(miss))
        assert factor(bound) * math.exp(-bound) <= miss
        tight = bound / 2.3
        assert factor(tight) * math.exp(-tight) > miss


# --- what holds for any noise within its bound ------------------------------------------------------------------


def check_bands(rows, points, bins, rng):
    """Noise at the edge of its bound, as bad as it can be: every interval contains its quantile, by any definition."""
    space = dp.Integers(3, 2 + points)
    counts = CumulativeCounts(space=space, sums=CountTree(points=bins, scale=2, branches=3))
    true = np.cumsum(np.bincount((rows - 3) // counts.width, minlength=bins)).astype(float)
    signs = [np.full(bins, -1.0), np.full(bins, 1.0), rng.choice([-1.0, 1.0], bins)]
    for sign, share in product(signs, SHARES):
        most = counts.sums.beyond_at(share, 0.025, slice(bins))
        noise = most * sign * (1 - 1e-9)
        noise[-1] = 0.0  # so that a sum less a share of the last one is off by the edge and no more
        drawn = Cumulative(counts, true + noise)
        [(low, high)], [value] = drawn.bands([share], 0.95), drawn.quantiles([share])
        if not low <= value <= high:
            raise Missed("an answer outside of its interval")
        for rule in RULES:
            if not low <= np.quantile(rows, share, method=rule) <= high:
                raise Missed(rule)
        if counts.width == 1:
            off = max((rows < value).sum() - share * len(rows), share * len(rows) - (rows <= value).sum())
            if off > most.max() + 1e-9:
                raise Missed("ranks")


CASES = [
    (1, 40, 40),
    (2, 40, 40),
    (7, 40, 40),
    (300, 40, 40),
    (300, 4000, 4000),
    (300, 40, 13),
    (300, 4000, 100),
    (5, 4000, 100),
]


def check_all_cases():
    rng = np.random.default_rng(7)
    for rows, points, bins in CASES * 2:
        check_bands(rng.integers(3, 3 + points, rows), points, bins, rng)
        check_bands(np.full(rows, 3 + points // 2), points, bins, rng)


@pytest.mark.slow
def test_intervals_hold_for_any_noise_within_its_bound():
    check_all_cases()


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("bands", ">= -BETWEEN", ">= 0"),
        ("bands", "+ width - 1", ""),
        ("bands", "< BETWEEN", "< 0"),
        ("bands", " - sums.beyond_at(share, miss, above)", ""),
        ("_bisect", "_steps(len(self.values))", "3"),
    ],
)
def test_mutant_an_interval_that_ends_too_early(name, old, new, monkeypatch):
    source = textwrap.dedent(inspect.getsource(getattr(Cumulative, name)))
    assert source.count(old) == 1
    space = dict(vars(cumulative))
    exec("from __future__ import annotations\n" + source.replace(old, new), space)
    monkeypatch.setattr(Cumulative, name, space[name])
    with pytest.raises(Missed):
        check_all_cases()


# --- what holds for the law that is drawn -------------------------------------------------------------------------


def misses(made, rows, runs):
    """How often some true quantile is outside of its interval."""
    true = np.quantile(rows, [float(q) for q in made.quantiles])
    lines = (made._draw(rows) for _ in range(runs))
    return sum(bool(np.any((line[:, 0] > true) | (true > line[:, 2]))) for line in lines)


ROWS = np.clip(np.random.default_rng(2).normal(1000, 200, 2000).round(), 0, 2000).astype(int)


def bands(guarantee):
    return QuantilesFromCounts.for_guarantee(
        guarantee, space=dp.Integers(0, 2000), quantiles=[n / 10 for n in range(1, 10)], confidence=0.9
    )


@pytest.mark.slow
@pytest.mark.parametrize("guarantee", [dp.Pure(epsilon=1), dp.Approx(epsilon=1, delta=1e-6)], ids=repr)
def test_intervals_hold_together_as_often_as_stated(guarantee):
    """300 draws, 30 may miss: over 59 have a probability below 1e-6."""
    assert misses(bands(guarantee), ROWS, 300) <= 59


def test_mutant_half_the_bound_of_the_noise(monkeypatch):
    """With half of the bound, many more draws miss than may."""
    whole = PrefixSums.beyond
    monkeypatch.setattr(PrefixSums, "beyond", lambda self, shares, miss: whole(self, shares, miss) / 2)
    assert misses(bands(dp.Approx(epsilon=1, delta=1e-6)), ROWS, 300) > 59


def test_intervals_are_narrow():
    """Nine deciles on 2^16 points: the promised ranks, and half an interval, at ε = 1 and at (1, 1e-6)."""
    for guarantee, ranks, half in ((dp.Pure(epsilon=1), 140, 95), (dp.Approx(epsilon=1, delta=1e-6), 90, 60)):
        made = QuantilesFromCounts.for_guarantee(
            guarantee, space=dp.Integers(0, 2**16 - 1), quantiles=[n / 10 for n in range(1, 10)]
        )
        assert float(made.error(0.95)) < ranks
        assert np.median(made.counts.sums.beyond(np.array([float(q) for q in made.quantiles]), 0.05 / 18)) < half
        assert all(float(made.error(low)) < float(made.error(high)) for low, high in pairwise((0.5, 0.9, 0.95, 0.999)))
