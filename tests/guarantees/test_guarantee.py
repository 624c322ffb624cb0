"""Promises as data: conversions against 50-digit arithmetic (never below the truth), and relations."""

import math
from fractions import Fraction

import mpmath
import pytest

import discreet as dp
from discreet.guarantees.conversions import gaussian_delta, renyi_of_response

from ..refusing import refuses

EPSILONS = (0.0, 0.01, 0.3, 1.0, 4.0, 12.0)
DELTAS = (1e-15, 1e-6, 1e-2, 0.3)


def real(x):
    exact = Fraction(repr(x)) if isinstance(x, float) else Fraction(x)
    return mpmath.mpf(exact.numerator) / exact.denominator


@pytest.fixture(autouse=True)
def fifty_digits():
    with mpmath.workdps(50):
        yield


@pytest.mark.parametrize("own", [(0.1, 0), (1, 1e-6), (3, 0.2), (Fraction(1, 3), 1e-9)])
def test_the_curve_of_a_stated_promise(own):
    """The worst (ε,δ) mechanism leaks all with probability δ, and else is randomized response."""
    promise = dp.Approx(epsilon=own[0], delta=own[1])
    e, d = real(own[0]), real(own[1])
    for at in EPSILONS:
        exact = d + (1 - d) * max(0, mpmath.exp(e) - mpmath.exp(real(at))) / (1 + mpmath.exp(e))
        assert exact <= promise.delta_at(epsilon=at) <= exact * (1 + 1e-14)
    for delta in DELTAS:
        found = promise.epsilon_at(delta=delta)
        if delta < own[1]:
            assert found == math.inf
            continue
        ratio = (1 - real(delta)) / (1 - d) * (1 + mpmath.exp(e)) - 1
        exact = max(mpmath.mpf(0), mpmath.log(ratio)) if ratio > 0 else mpmath.mpf(0)
        assert exact <= found <= exact * (1 + 1e-14) + 1e-300


@pytest.mark.parametrize("rho", [0.001, 0.05, 0.5, 8])
def test_zcdp_is_never_below_the_gaussian_it_allows(rho):
    """The continuous Gaussian with μ = √(2ρ) is ρ-zCDP, so no conversion may promise less than it attains."""
    promise, mu = dp.ZeroConcentrated(rho=rho), mpmath.sqrt(2 * real(rho))
    for at in EPSILONS:
        attained = mpmath.ncdf(mu / 2 - at / mu) - mpmath.exp(at) * mpmath.ncdf(-mu / 2 - at / mu)
        assert promise.delta_at(epsilon=at) >= attained
    for delta in DELTAS:
        found = promise.epsilon_at(delta=delta)
        assert promise.delta_at(epsilon=found) <= delta * (1 + 1e-6) or found == 0


@pytest.mark.parametrize("order", [1.05, 2, 17.5, 1000])
@pytest.mark.parametrize("divergence", [1e-6, 0.1, 3])
def test_renyi_conversions(order, divergence):
    """Canonne-Kamath-Steinke, Proposition 12, in 50 digits."""
    promise = dp.Renyi(order=order, epsilon=divergence)
    a, r = real(order), real(divergence)
    for at in EPSILONS:
        exact = mpmath.exp((a - 1) * (r - real(at))) * (1 - 1 / a) ** a / (a - 1)
        assert min(1, exact) <= promise.delta_at(epsilon=at) <= min(1, exact * (1 + mpmath.mpf("1e-9")) + 5e-324)
    for delta in DELTAS:
        exact = r + mpmath.log(1 - 1 / a) - (mpmath.log(real(delta)) + mpmath.log(a)) / (a - 1)
        assert max(0, exact) <= promise.epsilon_at(delta=delta) <= max(0, exact) * (1 + mpmath.mpf("1e-11")) + 1e-11
    assert promise.renyi(order) >= divergence
    assert promise.renyi(order * 1.01) == math.inf


@pytest.mark.parametrize("mu", [0.01, 0.5, 1, 6])
def test_gaussian_tradeoff(mu):
    promise, m = dp.GaussianTradeoff(mu=mu), real(mu)

    def exact(at):
        return mpmath.ncdf(m / 2 - at / m) - mpmath.exp(at) * mpmath.ncdf(-m / 2 - at / m)

    for at in EPSILONS:
        truth = exact(real(at))
        assert truth <= promise.delta_at(epsilon=at)
        if truth > 1e-200:
            assert promise.delta_at(epsilon=at) <= truth * (1 + mpmath.mpf("1e-6"))
        assert gaussian_delta(float(mu), float(at)) >= truth
    for delta in DELTAS:
        found = promise.epsilon_at(delta=delta)
        assert exact(mpmath.mpf(found)) <= delta
        assert found == 0 or exact(mpmath.mpf(found) * (1 - mpmath.mpf("1e-6"))) > delta * (1 - mpmath.mpf("1e-5"))
    assert promise.epsilon_at(delta=0) == math.inf


@pytest.mark.parametrize("order", [1.0001, 1.5, 2, 33, 1e4])
@pytest.mark.parametrize("epsilon", [1e-9, 1e-4, 0.1, 1, 20])
def test_renyi_of_the_worst_pure_mechanism(order, epsilon):
    a, e = mpmath.mpf(order), mpmath.mpf(epsilon)
    moment = (mpmath.exp(a * e) + mpmath.exp((1 - a) * e)) / (1 + mpmath.exp(e))
    exact = mpmath.log(moment) / (a - 1)
    found = renyi_of_response(epsilon, order)
    assert exact <= found <= min(e, a * e * e / 2) * (1 + mpmath.mpf("1e-9"))


def test_to_replacement():
    """Two steps of the relation: 2ε, (1+e^ε)δ, 4ρ, 2μ; and a Rényi order is halved."""
    assert dp.Pure(epsilon=0.5).for_replacement() == dp.Pure(epsilon=1, neighbors="replace")
    assert dp.ZeroConcentrated(rho=0.5).for_replacement() == dp.ZeroConcentrated(rho=2, neighbors="replace")
    assert dp.GaussianTradeoff(mu=0.5).for_replacement() == dp.GaussianTradeoff(mu=1, neighbors="replace")
    approx = dp.Approx(epsilon=1, delta=1e-6).for_replacement()
    assert approx.epsilon == 2
    assert (1 + math.e) * 1e-6 <= approx.delta * (1 + 1e-15) <= (1 + math.e) * 1e-6 * (1 + 1e-14)
    assert dp.Renyi(order=8, epsilon=1).for_replacement() == dp.Renyi(order=4, epsilon=3, neighbors="replace")
    for hopeless in (dp.Renyi(order=3, epsilon=1), dp.Approx(epsilon=3, delta=0.2)):
        with refuses(dp.errors.IncompatibleGuarantee, "incompatible-guarantee"):
            hopeless.for_replacement()
    replaced = dp.Pure(epsilon=1, protects=dp.row(neighbors="replace"))
    assert replaced.for_replacement() is replaced


def test_underflow_is_not_purity():
    """A δ of 1e-400 is not 0: unbounded losses never make a pure promise."""
    for promise in (
        dp.ZeroConcentrated(rho=0.001),
        dp.Renyi(order=1000, epsilon=0.1),
        dp.GaussianTradeoff(mu=0.01),
        dp.Gaussian(stddev=100).guarantee(1),
        dp.Gaussian(stddev=100, step=1).guarantee(1),
        dp.compose([dp.Gaussian(stddev=100).guarantee(1)] * 2),
    ):
        assert 0 < promise.delta_at(epsilon=50) < 1e-30
        assert promise.epsilon_at(delta=0) == math.inf
    with refuses(dp.InvalidArgument, "guarantee-out-of-reach"):
        dp.Composed.for_guarantee(dp.Pure(epsilon=1), of=lambda s: [dp.Gaussian(stddev=s)], sensitivity=1)


def test_units_and_relations():
    added, replaced = dp.person("id"), dp.person("id", neighbors="replace")
    promise = dp.Pure(epsilon=1, protects=added)
    assert promise.stated_for(added) is promise
    assert promise.stated_for(replaced) == dp.Pure(epsilon=2, protects=replaced)
    assert dp.Pure(epsilon=1).stated_for(replaced) == dp.Pure(epsilon=1, protects=replaced)
    for wrong in (dp.row(), dp.person("other")):
        with refuses(dp.errors.IncompatibleGuarantee, "incompatible-guarantee"):
            promise.stated_for(wrong)
    with refuses(dp.errors.IncompatibleGuarantee, "incompatible-guarantee"):
        dp.Pure(epsilon=1, protects=replaced).stated_for(added)


def test_at_its_own_epsilon_a_pure_promise_has_no_delta():
    for epsilon in (0.7, Fraction(1, 3), 0.1):
        for promise in (
            dp.Pure(epsilon=epsilon),
            dp.compose([dp.Pure(epsilon=epsilon)]),
            dp.Exponential(rate=epsilon).guarantee(dp.Sensitivity(1, "Linf", monotone=True)),
            dp.Laplace(scale=1 / Fraction(repr(epsilon) if isinstance(epsilon, float) else epsilon), step=1).guarantee(
                1
            ),
        ):
            assert promise.delta_at(epsilon=epsilon) == 0
            assert promise.epsilon_at(delta=0) == pytest.approx(float(epsilon), rel=1e-15)
            assert Fraction(promise.epsilon_at(delta=0)) >= promise.largest_loss
