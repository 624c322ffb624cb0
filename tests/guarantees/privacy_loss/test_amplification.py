"""Poisson subsampling against exact mixtures, in both directions of add/remove."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import mpmath
import pytest

from discreet.errors import InvalidArgument
from discreet.guarantees.finite.verify import verify
from discreet.guarantees.guarantee import Pure
from discreet.guarantees.privacy_loss.amplification import (
    subsampled_approx,
    subsampled_gaussian_renyi,
    subsampled_renyi,
)

from ...refusing import refuses

RATES = [Fraction(1, 1000), Fraction(1, 20), Fraction(1, 2), Fraction(19, 20), Fraction(1)]
ORDERS = [2, 3, 5, 16, 64]


def divergence(p, q, order):
    """The Rényi divergence of two rational laws, in 40 digits."""
    a = mpmath.mpf(order)
    return mpmath.log(sum(_mp(x) ** a * _mp(y) ** (1 - a) for x, y in zip(p, q, strict=True))) / (a - 1)


def _mp(x):
    return mpmath.mpf(x.numerator) / x.denominator


def curve(p, q):
    return lambda order: float(max(divergence(p, q, order), divergence(q, p, order))) * (1 + 1e-14)


def both_directions(p, q, rate, order):
    mixed = [(1 - rate) * y + rate * x for x, y in zip(p, q, strict=True)]
    return divergence(mixed, q, order), divergence(q, mixed, order)


def random_law(source, size):
    weights = [source.randint(1, 10 ** source.randint(1, 4)) for _ in range(size)]
    return [Fraction(w, sum(weights)) for w in weights]


_SOURCE = random.Random(7)
PAIRS = [(random_law(_SOURCE, 4), random_law(_SOURCE, 4)) for _ in range(12)]
PAIRS += [([Fraction(1, 100), Fraction(99, 100)], [Fraction(1, 2), Fraction(1, 2)])]  # rare when present
PAIRS += [([Fraction(1, 2), Fraction(1, 2)], [Fraction(1, 100), Fraction(99, 100)])]


@pytest.mark.some_quick(8)
@pytest.mark.parametrize("rate", RATES, ids=str)
@pytest.mark.parametrize("order", ORDERS)
def test_the_general_bound_holds_for_lopsided_mechanisms(rate, order):
    with mpmath.workdps(40):
        for p, q in PAIRS:
            forward, backward = both_directions(p, q, rate, order)
            assert subsampled_renyi(curve(p, q), rate, order) >= max(forward, backward)


def test_the_second_direction_can_be_the_larger_one():
    """So the bound above is put to the test in both directions, and the binomial sum alone would not do."""
    with mpmath.workdps(40):
        larger = 0
        for p, q in PAIRS:
            forward, backward = both_directions(p, q, Fraction(1, 2), 3)
            larger += backward > forward
    assert larger >= 1


@pytest.mark.parametrize("rate", RATES, ids=str)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("p", [Fraction(1, 4), Fraction(45, 100)], ids=str)
def test_the_general_bound_on_randomized_response_is_close(rate, order, p):
    with mpmath.workdps(40):
        law, other = [p, 1 - p], [1 - p, p]
        forward, backward = both_directions(law, other, rate, order)
        assert backward <= forward * (1 + mpmath.mpf("1e-30"))
        found = subsampled_renyi(curve(law, other), rate, order)
        assert forward <= found
        assert found <= float(forward) * 1.05 or order * rate > Fraction(1, 10)


@pytest.mark.some_quick(2)
@pytest.mark.parametrize("order", [2, 3, 8])
@pytest.mark.parametrize(("sigma", "rate"), [("1", "0.01"), ("5", "0.3"), ("0.7", "0.9")])
def test_the_gaussian_formula_is_exact_in_both_directions(sigma, rate, order):
    with mpmath.workdps(25):
        s, q, a = mpmath.mpf(sigma), mpmath.mpf(rate), mpmath.mpf(order)

        def density(x, center):
            return mpmath.exp(-((x - center) ** 2) / (2 * s**2)) / (s * mpmath.sqrt(2 * mpmath.pi))

        def mixed(x):
            return (1 - q) * density(x, 0) + q * density(x, 1)

        edges = [(k - 14) * s + k * a / 28 for k in range(0, 29, 4)]
        forward = mpmath.quad(lambda x: mixed(x) ** a * density(x, 0) ** (1 - a), edges)
        backward = mpmath.quad(lambda x: density(x, 0) ** a * mixed(x) ** (1 - a), edges)
        found = subsampled_gaussian_renyi(Fraction(sigma), Fraction(rate), order)
        truth = mpmath.log(forward) / (a - 1)
        assert truth * (1 - mpmath.mpf("1e-14")) <= found <= truth * (1 + mpmath.mpf("1e-9"))
        assert backward <= forward
        general = subsampled_renyi(lambda k: k / (2 * float(sigma) ** 2), Fraction(rate), order)
        assert general >= found * (1 - 1e-11)


@pytest.mark.parametrize("sigma", ["0.3", "1", "20", "1000000"])
@pytest.mark.parametrize("rate", ["1e-9", "0.001", "0.2", "0.999999", "1"])
@pytest.mark.parametrize("order", [2, 7, 100, pytest.param(1000, marks=pytest.mark.slow)])
def test_the_gaussian_formula_is_never_below_fifty_digits(sigma, rate, order):
    found = subsampled_gaussian_renyi(Fraction(sigma), Fraction(rate), order)
    with mpmath.workdps(50):
        s, q = mpmath.mpf(sigma), mpmath.mpf(rate)
        terms = (
            mpmath.binomial(order, k) * (1 - q) ** (order - k) * q**k * mpmath.expm1(k * (k - 1) / (2 * s**2))
            for k in range(2, order + 1)
        )
        truth = mpmath.log1p(mpmath.fsum(terms)) / (order - 1)
        assert truth <= found <= truth * (1 + mpmath.mpf("1e-9"))


def test_a_very_large_order_costs_a_simpler_bound_and_no_time():
    assert subsampled_gaussian_renyi(1, Fraction(1, 10), 10**18) <= 10**18 / 2 * (1 + 1e-9)
    small = subsampled_gaussian_renyi(1000, Fraction(1, 100), 10_001)
    assert subsampled_gaussian_renyi(1000, Fraction(1, 100), 10_000) <= small * (1 + 1e-9)


def test_the_general_bound_is_below_the_published_one_for_ordinary_rates():
    """Zhu-Wang 2019, Theorem 6: constant 1 for the square and 3 for the higher terms."""
    for rate in (0.001, 0.01, 0.05):
        for sigma in (0.8, 2, 20):
            for order in (2, 3, 8, 32):
                terms = [
                    (3 if k > 2 else 1) * math.comb(order, k) * (1 - rate) ** (order - k) * rate**k
                    * mpmath.exp(k * (k - 1) / (2 * sigma**2))
                    for k in range(2, order + 1)
                ]  # fmt: skip
                first = (1 - rate) ** (order - 1) * (order * rate - rate + 1)
                published = float(mpmath.log(first + sum(terms))) / (order - 1)
                found = subsampled_renyi(lambda k, s=sigma: k / (2 * s**2), rate, order)
                assert found <= published * (1 + 1e-6) + 1e-15


@pytest.mark.parametrize("rate", ["0.001", "0.3", "1"])
@pytest.mark.parametrize(("epsilon", "delta"), [("0.1", "0"), ("1", "0.01"), ("5", "0.001")])
def test_the_approximate_bound_is_attained_and_never_passed(epsilon, delta, rate):
    leak, q = Fraction(delta), Fraction(rate)
    ratio = Fraction(math.floor(math.exp(float(epsilon)) * 10**9), 10**9)
    present = {"yes": (1 - leak) * ratio / (1 + ratio), "no": (1 - leak) / (1 + ratio), "leak": leak}
    absent = {"yes": (1 - leak) / (1 + ratio), "no": (1 - leak) * ratio / (1 + ratio), "other": leak}
    mixed = {y: q * present.get(y, 0) + (1 - q) * absent.get(y, 0) for y in {*present, *absent}}
    amplified = subsampled_approx(Fraction(epsilon), leak, q)
    exact = verify({0: mixed, 1: absent}).pairs[0].delta(amplified.epsilon)
    assert exact <= amplified.delta == q * leak
    less = verify({0: mixed, 1: absent}).pairs[0].delta(amplified.epsilon * Fraction(999, 1000))
    assert less > amplified.delta
    assert amplified.epsilon <= Fraction(epsilon) * (1 + Fraction(1, 10**50))


@pytest.mark.parametrize("rate", [0, -0.1, 1.1, math.nan])
def test_a_rate_that_is_no_probability_is_refused(rate):
    with pytest.raises(InvalidArgument):
        subsampled_approx(1, 0, rate)
    with pytest.raises(InvalidArgument):
        subsampled_gaussian_renyi(1, rate, 2)
    with pytest.raises(InvalidArgument):
        subsampled_renyi(Pure(epsilon=1).renyi, rate, 2)


def test_orders_are_whole_and_at_least_two():
    for order in (1, 0, 2.5):
        with pytest.raises(InvalidArgument):
            subsampled_renyi(Pure(epsilon=1).renyi, 0.1, order)
    with refuses(InvalidArgument, "out-of-range"):
        subsampled_gaussian_renyi(0, 0.1, 2)


def test_an_unknown_curve_stays_unknown():
    assert subsampled_renyi(lambda order: math.inf if order > 4 else 0.1, 0.1, 8) == math.inf
