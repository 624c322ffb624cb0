"""`compose` against exact answers found another way: binomial sums, direct sums, and contour integrals of the moments.

For independent losses with moments M(t) = E[e^{tL}], δ(ε) = (1/2πi) ∫ M(t) e^{-tε} / (t(t+1)) dt along any line
Re t > 0: no grid of losses and no convolution, so it shares nothing with the code under test.
"""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import discreet as dp
from discreet.exact.rational import float_up
from discreet.guarantees.privacy_loss.derived_pairs import SubsampledPair
from discreet.guarantees.privacy_loss.finite_pairs import FinitePair, ResponsePair
from discreet.guarantees.privacy_loss.pairs import GaussianPair, LaplacePair

from ...refusing import refuses

DELTA = 1e-6
TIGHT = 1e-4  # relative


def integral_delta(log_moment, epsilon, reach=14.0, points=6001):
    """δ(ε) by the contour integral; `log_moment` takes an array of complex t."""

    def exponent(t):
        return log_moment(t) - t * epsilon - np.log(t) - np.log1p(t)

    reals = np.exp(np.linspace(-4, 3.6, 100))
    center = float(reals[np.argmin(exponent(reals + 0j).real)])
    h = 1e-4 * center
    second = np.diff(exponent(center + h * np.arange(-1, 2) + 0j).real, 2)[0] / h**2
    y = np.linspace(0, reach / math.sqrt(second), points)
    values = np.exp(exponent(center + 1j * y)).real
    return float((values.sum() - values[0] / 2) * (y[1] - y[0]) / math.pi)


def inverse(delta_of, delta, low=0.0, high=40.0):
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of(middle) > delta else (low, middle)
    return high


def binomial_epsilon(times, epsilon0, delta):
    """ε(δ) of `times` randomized responses, in 40 digits."""
    with mpmath.workdps(40):
        e0 = mpmath.mpf(epsilon0)
        p = 1 / (1 + mpmath.exp(-e0))
        masses = [mpmath.binomial(times, k) * p**k * (1 - p) ** (times - k) for k in range(times + 1)]

        def delta_of(epsilon):
            return mpmath.fsum(
                m * (1 - mpmath.exp(epsilon - (2 * k - times) * e0))
                for k, m in enumerate(masses)
                if (2 * k - times) * e0 > epsilon
            )

        low, high = mpmath.mpf(0), times * e0
        for _ in range(70):
            middle = (low + high) / 2
            low, high = (middle, high) if delta_of(middle) > delta else (low, middle)
        return float(low), float(high)


def gaussian_sum(variance, times):
    """Losses and masses of `times` discrete Gaussians shifted by 1.

    Their sum is a discrete Gaussian of `times` the variance, up to a relative e^{-π²·variance} (Poisson summation).
    """
    deviation = math.sqrt(variance * times)
    k = np.arange(-math.ceil(14 * deviation), math.ceil(14 * deviation) + 1)
    masses = np.exp(-(k**2) / (2 * variance * times))
    return (times - 2 * k) / (2 * variance), masses / masses.sum()


def direct_delta(losses, masses, epsilon):
    above = losses > epsilon
    return float(np.sum(masses[above] * -np.expm1(epsilon - losses[above])))


def laplace_moment(epsilon0, times):
    """The continuous Laplace loss: two atoms and the stretch between them."""

    def log_moment(t):
        top = np.exp(t * epsilon0)
        stretch = top * -np.expm1(-(1 + 2 * t) * epsilon0) / (1 + 2 * t)
        return times * np.log((top + np.exp(-(1 + t) * epsilon0) + stretch) / 2)

    return log_moment


def gaussian_moment(sigma, times):
    return lambda t: times * t * (t + 1) / (2 * sigma**2)


def subsampled_moment(sigma, rate, times, *, removed=True):
    x, width = np.linspace(-13 * sigma, 13 * sigma + 3, 801, retstep=True)
    q = np.exp(-(x**2) / (2 * sigma**2)) * width / (sigma * math.sqrt(2 * math.pi))
    loss = np.log1p(rate * np.expm1((2 * x - 1) / (2 * sigma**2)))
    powers = (lambda t: t + 1) if removed else (lambda t: -t)
    return lambda t: times * np.log(np.exp(np.multiply.outer(powers(t), loss)) @ q)


def check(composed, exact, tight=TIGHT, delta=DELTA):
    found = composed.epsilon_at(delta=delta)
    assert exact * (1 - 1e-9) <= found <= exact * (1 + tight)
    assert composed.delta_at(epsilon=found) <= delta * (1 + 1e-3)


# --- five large compositions --------------------------------------------------------------------------


def test_the_contour_integral_agrees_with_a_closed_form():
    from scipy.stats import norm

    mu, epsilon = math.sqrt(1000) / 20, 8.0
    closed = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    assert integral_delta(gaussian_moment(20, 1000), epsilon) == pytest.approx(closed, rel=1e-9)


@pytest.mark.slow
def test_a_thousand_laplace_on_the_integers():
    low, high = binomial_epsilon(1000, "0.05", DELTA)
    composed = dp.compose([dp.Laplace(scale=20, step=1).guarantee(1)] * 1000)
    assert low <= composed.epsilon_at(delta=DELTA) <= high * (1 + TIGHT)


def test_a_thousand_laplace_on_a_fine_lattice():
    exact = inverse(lambda e: integral_delta(laplace_moment(0.05, 1000), e), DELTA)
    check(dp.compose([dp.Laplace(scale=20).guarantee(1)] * 1000), exact)


def test_a_thousand_gaussians_on_the_integers():
    losses, masses = gaussian_sum(400, 1000)
    exact = inverse(lambda e: direct_delta(losses, masses, e), DELTA)
    check(dp.compose([dp.Gaussian(stddev=20, step=1).guarantee(1)] * 1000), exact)


def test_sums_of_discrete_gaussians_are_what_the_reference_says():
    k = np.arange(-60, 61)
    one = np.exp(-(k**2) / 18)
    one /= one.sum()
    total = one
    for _ in range(9):
        total = np.convolve(total, one)
    losses, masses = gaussian_sum(9, 10)
    slow = np.sort((10 - 2 * (np.arange(len(total)) - 600)) / 18)[::-1]
    for epsilon in (0.0, 1.0, 4.0):
        assert direct_delta(slow, total, epsilon) == pytest.approx(direct_delta(losses, masses, epsilon), rel=1e-10)


def test_a_thousand_gaussians_on_a_fine_lattice():
    check(dp.compose([dp.Gaussian(stddev=20).guarantee(1)] * 1000), 8.306225, tight=1e-5)


@pytest.mark.slow
def test_laplace_and_gaussian_mixed_on_a_fine_lattice():
    laplace, gaussian = laplace_moment(0.05, 1000), gaussian_moment(20, 1000)
    exact = inverse(lambda e: integral_delta(lambda t: laplace(t) + gaussian(t), e), DELTA)
    guarantees = [dp.Laplace(scale=20).guarantee(1), dp.Gaussian(stddev=20).guarantee(1)] * 1000
    check(dp.compose(guarantees), exact)


def test_laplace_and_gaussian_mixed_on_the_integers():
    from scipy.stats import binom

    p = 1 / (1 + math.exp(-0.05))
    heads = np.arange(1001)
    chances = binom.pmf(heads, 1000, p)
    losses, masses = gaussian_sum(400, 1000)
    # suffix sums of P and of Q = P e^{-loss}: the excess above any ε at once
    order = np.argsort(losses)
    sorted_losses = losses[order]
    inside = np.cumsum(masses[order][::-1])[::-1]
    outside = np.cumsum((masses * np.exp(-losses))[order][::-1])[::-1]
    inside, outside = np.append(inside, 0.0), np.append(outside, 0.0)

    def delta_of(epsilon):
        left = epsilon - (2 * heads - 1000) * 0.05
        place = np.searchsorted(sorted_losses, left, side="right")
        return float(np.sum(chances * (inside[place] - np.exp(left) * outside[place])))

    guarantees = [dp.Laplace(scale=20, step=1).guarantee(1), dp.Gaussian(stddev=20, step=1).guarantee(1)] * 1000
    check(dp.compose(guarantees), inverse(delta_of, DELTA))


@pytest.mark.slow
def test_ten_thousand_poisson_subsampled_gaussians():
    one = dp.Subsampled(mechanism=dp.Gaussian(stddev=1), rate=0.01).guarantee(1)
    found = dp.compose([one] * 10_000).epsilon_at(delta=DELTA)
    assert found == pytest.approx(6.9074, abs=2e-4)
    both = [subsampled_moment(1.0, 0.01, 10_000, removed=removed) for removed in (True, False)]

    def exact(epsilon):
        return max(integral_delta(moment, epsilon, points=401) for moment in both)

    assert exact(found) <= DELTA * (1 + 1e-6)
    assert exact(found * (1 - TIGHT)) > DELTA


def test_both_directions_of_subsampling_against_the_integral():
    one = dp.Subsampled(mechanism=dp.Gaussian(stddev=1), rate=0.2).guarantee(1)
    (pair, _), *_ = one.factors
    from discreet.guarantees.privacy_loss.convolution import compose_pairs

    for removed, side in ((True, pair), (False, pair.mirrored())):
        moment = subsampled_moment(1.0, 0.2, 30, removed=removed)
        for epsilon in (0.5, 2.0, 4.0):
            found = compose_pairs([(side, 30)], epsilon=epsilon).delta(epsilon)
            exact = integral_delta(moment, epsilon, points=401)
            assert exact * (1 - 1e-8) <= found <= exact * (1 + 1e-4)


@pytest.mark.slow
def test_five_hundred_randomized_responses():
    low, high = binomial_epsilon(500, "0.1", DELTA)
    assert high == pytest.approx(12.51788, abs=1e-5)
    exact = dp.compose([dp.Pure(epsilon=0.1)] * 500)
    assert low <= exact.epsilon_at(delta=DELTA) <= high * (1 + TIGHT)
    response = dp.RandomizedResponse.for_guarantee(dp.Pure(epsilon=0.1), choices=["a", "b"])
    found = dp.compose([response.guarantee()] * 500).epsilon_at(delta=DELTA)
    assert low * (1 - 1e-9) <= found <= high * (1 + TIGHT)


# --- repetition ---------------------------------------------------------------------------------------

LAPLACE = dp.Laplace(scale=4, step=1)
KINDS = {
    "Pure": dp.Pure(epsilon=0.1),
    "Approx": dp.Approx(epsilon=0.1, delta=1e-9),
    "zCDP": dp.ZeroConcentrated(rho=0.01),
    "Renyi": dp.Renyi(order=8, epsilon=0.01),
    "trade-off": dp.GaussianTradeoff(mu=0.1),
    "Laplace": LAPLACE.guarantee(1),
    "Laplace L2": dp.Laplace(scale=8).guarantee(dp.Sensitivity(1, "L2", dimension=3)),
    "Gaussian": dp.Gaussian(stddev=10).guarantee(1),
    "Gaussian on integers": dp.Gaussian(stddev=10, step=1).guarantee(1),
    "Gaussian L2": dp.Gaussian(stddev=10).guarantee(dp.Sensitivity(1, "L2", dimension=3)),
    "Exponential": dp.Exponential(rate=0.05).guarantee(1),
    "PermuteAndFlip": dp.mechanisms.PermuteAndFlip(rate=0.05).guarantee(1),
    "NoisyArgmax": dp.NoisyArgmax(scale=20).guarantee(1),
    "Quantile": dp.mechanisms.Quantile(space=dp.Integers(0, 9), rate=0.1).guarantee(),
    "KeySelection": dp.mechanisms.KeySelection(scale=10, threshold=250).guarantee(),
    "AboveThreshold": dp.mechanisms.AboveThreshold(threshold=5, threshold_scale=20, answer_scale=40).guarantee(1),
    "RandomizedResponse": dp.RandomizedResponse(choices=list("abc"), lie=0.3).guarantee(),
    "Each": dp.Each(mechanisms=(dp.Laplace(scale=50),), spaces=(dp.Interval(0, 5),)).guarantee(),
    "Composed": dp.Composed(mechanisms=(LAPLACE, dp.Gaussian(stddev=9))).guarantee((1, 1)),
    "Subsampled": dp.Subsampled(mechanism=LAPLACE, rate=0.1).guarantee(1),
}


SOME = [pytest.param(kind, marks=[pytest.mark.slow] if kind == "Laplace L2" else []) for kind in KINDS]


@pytest.mark.parametrize("kind", SOME)
def test_ten_at_once_is_ten_times(kind):
    one = KINDS[kind]
    at_once, by_one = dp.compose([one] * 10), one
    for _ in range(9):
        by_one = dp.compose([by_one, one])
    halves = dp.compose([dp.compose([one] * 4), dp.compose([one] * 6)])
    assert at_once == by_one == halves
    assert hash(at_once) == hash(by_one)
    assert at_once.epsilon_at(delta=1e-5) == by_one.epsilon_at(delta=1e-5)
    single = dp.compose([one])
    assert at_once.epsilon_at(delta=1e-5) > single.epsilon_at(delta=1e-5) > 0


@pytest.mark.some_quick(24)
@pytest.mark.parametrize("kind", SOME)
@pytest.mark.parametrize("delta", [1e-15, 1e-5, 0.3])
def test_epsilon_and_delta_agree(kind, delta):
    composed = dp.compose([KINDS[kind]] * 10)
    if composed.infinite > delta:
        assert composed.epsilon_at(delta=delta) == math.inf
        return
    epsilon = composed.epsilon_at(delta=delta)
    if epsilon == 0:
        assert composed.delta_at(epsilon=0) <= delta
        return
    # each question has its own grid: they agree to its accuracy, not to the last digit
    assert composed.delta_at(epsilon=epsilon * (1 + 1e-4)) <= delta
    if math.isfinite(epsilon) and composed.delta_at(epsilon=epsilon) > 0:
        assert composed.delta_at(epsilon=epsilon * 0.99) > delta * 0.99


@pytest.mark.parametrize("kind", KINDS)
def test_one_factor_composed_is_itself(kind):
    one = KINDS[kind]
    for delta in (1e-8, 1e-3):
        assert dp.compose([one]).epsilon_at(delta=delta) >= one.epsilon_at(delta=delta) * (1 - 1e-9)
    assert dp.compose([one]).epsilon_at(delta=1e-3) <= one.epsilon_at(delta=1e-3) * (1 + 1e-6) + 1e-9


def test_below_the_chance_of_the_largest_loss_epsilon_is_that_loss():
    composed = dp.compose([dp.Pure(epsilon=1)] * 3)
    rare = (1 / (1 + math.exp(-1))) ** 3 * 1e-9
    assert 3 * (1 - 1e-6) < composed.epsilon_at(delta=rare) <= 3
    assert composed.epsilon_at(delta=0) == 3
    assert composed.delta_at(epsilon=3) == 0
    assert composed.pure == dp.Pure(epsilon=3)


def test_infinite_mass_is_a_floor_of_delta():
    mixed = dp.compose([dp.Approx(epsilon=0.1, delta=1e-4)] * 10 + [dp.Gaussian(stddev=5).guarantee(1)])
    floor = -math.expm1(10 * math.log1p(-1e-4))
    assert mixed.infinite == pytest.approx(floor, rel=1e-9)
    assert mixed.infinite >= floor
    assert mixed.epsilon_at(delta=9e-4) == math.inf
    assert math.isfinite(mixed.epsilon_at(delta=1.1e-3))
    assert mixed.delta_at(epsilon=30) >= floor
    assert dp.compose([dp.Approx(epsilon=0.1, delta=1e-4)] * 2).epsilon_at(delta=floor) <= 0.2


def test_mixed_infinite_mass_against_exact_enumeration():
    # T.4.5: twice (0.1, 0.4) is not (0.1, 0.4); two and three worst (ε,δ) mechanisms, in rationals
    from discreet.guarantees.finite.verify import repeat, verify

    e = Fraction(11, 10)  # e^ε, rational; ε is its logarithm rounded up, so the claim is above the truth
    delta = Fraction(1, 20)
    high, low = (1 - delta) * e / (1 + e), (1 - delta) / (1 + e)
    laws = {0: {"leak0": delta, "h": high, "l": low}, 1: {"leak1": delta, "h": low, "l": high}}
    epsilon = math.log(1.1) * (1 + 1e-12)
    for times in (1, 2, 3, 12):
        exact = verify(repeat(laws, times))
        claimed = dp.compose([dp.Approx(epsilon=epsilon, delta=0.05)] * times)
        for at in (0.0, 0.05, 0.1, 0.3, 0.6):
            true = exact.delta_at(epsilon=at)
            assert true * (1 - 1e-9) <= claimed.delta_at(epsilon=at) <= true * (1 + 1e-5) + 1e-11


@pytest.mark.slow
def test_very_large_losses_are_not_lost():
    composed = dp.compose([dp.Pure(epsilon=2)] * 1000)
    low, high = binomial_epsilon(1000, 2, DELTA)
    assert low <= composed.epsilon_at(delta=DELTA) <= high * (1 + TIGHT)
    assert composed.delta_at(epsilon=high) >= DELTA * 0.999
    assert 0 <= composed.delta_at(epsilon=1999.0) < 1e-50
    wide = dp.compose([dp.Gaussian(stddev=0.05).guarantee(1)] * 30)
    assert 5000 < wide.epsilon_at(delta=0.3) < wide.epsilon_at(delta=1e-6) < 8000


# --- relations ----------------------------------------------------------------------------------------


def test_relations_are_not_mixed():
    added = dp.Laplace(scale=1).guarantee(dp.Sensitivity(1, unit=dp.row()))
    replaced = dp.Laplace(scale=1).guarantee(dp.Sensitivity(1, unit=dp.row(neighbors="replace")))
    other = dp.Laplace(scale=1).guarantee(dp.Sensitivity(1, unit=dp.person("id")))
    for pair in ([added, replaced], [added, other]):
        with refuses(dp.errors.IncompatibleGuarantee, "incompatible-guarantee"):
            dp.compose(pair)
    local = dp.RandomizedResponse(choices=list("ab"), lie=0.3).guarantee()
    with refuses(dp.errors.IncompatibleGuarantee, "incompatible-guarantee"):
        dp.compose([local, replaced])
    with refuses(dp.InvalidArgument, "empty"):
        dp.compose([])
    with refuses(dp.InvalidArgument, "wrong-type"):
        dp.compose([dp.Laplace(scale=1)])


def test_replacement_doubles_distances():
    unit, target = dp.row(), dp.row(neighbors="replace")
    laplace = dp.Laplace(scale=3, step=1).guarantee(dp.Sensitivity(1, unit=unit, grain=1)).stated_for(target)
    assert laplace.factors == ((LaplacePair(2, Fraction(3)), 1),)
    gaussian = dp.Gaussian(stddev=3, step=1).guarantee(dp.Sensitivity(1, unit=unit, grain=1)).stated_for(target)
    assert gaussian.factors == ((GaussianPair(2, Fraction(9)), 1),)
    exponential = dp.Exponential(rate=1).guarantee(dp.Sensitivity(1, "Linf", unit)).stated_for(target)
    assert exponential.pure == dp.Pure(epsilon=4, protects=target)
    assert laplace.protects == target
    sampled = dp.Subsampled(mechanism=dp.Laplace(scale=1), rate=0.1).guarantee(dp.Sensitivity(1, unit=unit))
    with refuses(dp.errors.IncompatibleGuarantee, "incompatible-guarantee"):
        sampled.stated_for(target)


# --- single pairs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("distance", [1, 2, 3, 8])
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3), Fraction(10)])
def test_discrete_laplace_by_the_formula_of_the_thesis(distance, scale):
    """[T.4.9], discrete: with q = e^{-1/t} and m = ⌊(Δ−εt)/2⌋, δ = 1 − (q^{m+1} + e^ε q^{Δ−m})/(1+q)."""
    pair = LaplacePair(distance, scale)
    with mpmath.workdps(50):
        t = mpmath.mpf(scale.numerator) / scale.denominator
        q = mpmath.exp(-1 / t)
        for part in (0, 0.1, 0.37, 0.5, 0.99):
            epsilon = mpmath.mpf(part * float(distance / scale))
            m = mpmath.floor((distance - epsilon * t) / 2)
            exact = 1 - (q ** (m + 1) + mpmath.exp(epsilon) * q ** (distance - m)) / (1 + q)
            found = mpmath.mpf(pair.delta(float(epsilon)))
            assert exact <= found <= exact * (1 + 1e-9) + 1e-10
    assert pair.delta(float(distance / scale) * (1 + 1e-15)) == 0


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.9])
def test_finite_events_suffice(epsilon):
    """[T.4.1]: finite sets of whole numbers and their complements generate all events, and their worst is δ(ε)."""
    scale, distance, found = 3, 3, []
    for reach in (2, 5, 20, 80, 200):
        k = np.arange(-reach, reach + 1)
        law, other = (math.tanh(1 / (2 * scale)) * np.exp(-np.abs(k - move) / scale) for move in (0, distance))
        found.append(float(np.maximum(0, law - math.exp(epsilon) * other).sum()))
    exact = LaplacePair(distance, Fraction(scale)).delta(epsilon)
    assert found == sorted(found)
    assert exact * (1 - 1e-9) <= found[-1] <= exact * (1 + 1e-12)


def discrete_gaussian_delta(variance, distance, epsilon):
    reach = int(20 * math.sqrt(variance)) + distance
    masses = {k: mpmath.exp(-mpmath.mpf(k * k) / (2 * variance)) for k in range(-reach - distance, reach + 1)}
    total = mpmath.fsum(masses.values())
    grown = mpmath.exp(epsilon)
    return mpmath.fsum(max(0, masses[k] - grown * masses[k - distance]) for k in range(-reach, reach + 1)) / total


def test_discrete_gaussian_is_above_the_continuous_one():
    pair = GaussianPair(1, Fraction(9))
    with mpmath.workdps(40):
        for epsilon in (0.0, 0.5, 1.4549, 3.0):
            exact = discrete_gaussian_delta(9, 1, epsilon)
            assert exact <= pair.delta(epsilon) <= exact * (1 + 1e-9)
        below = discrete_gaussian_delta(9, 1, 1.4548)
        above = discrete_gaussian_delta(9, 1, 1.4550)
    assert above < 1e-6 < below
    drawn = dp.Gaussian(stddev=3, step=1).guarantee(1).epsilon_at(delta=1e-6)
    continuous = dp.GaussianTradeoff(mu=1 / 3).epsilon_at(delta=1e-6)
    assert drawn == pytest.approx(1.4549, abs=1e-4)
    assert continuous == pytest.approx(1.4480, abs=1e-4)
    assert 1.004 < drawn / continuous < 1.006


def test_the_continuous_laplace_formula_fails_on_integers():
    scale = 1 / (1 - 2 * math.log(0.9))  # T.4.9, tight, for continuous noise at (1, 0.1)
    assert dp.Laplace(scale=scale, step=1).guarantee(1).delta_at(epsilon=1) == pytest.approx(0.146, abs=5e-4)
    assert dp.Laplace(scale=scale).guarantee(1).delta_at(epsilon=1) == pytest.approx(0.1, abs=1e-6)
    kept = dp.Laplace.for_guarantee(dp.Approx(epsilon=1, delta=0.1), sensitivity=1, step=1)
    assert kept.guarantee(1).delta_at(epsilon=1) <= 0.1
    assert kept.scale > scale


@pytest.mark.slow
@pytest.mark.parametrize("order", [2, *(pytest.param(o, marks=pytest.mark.slow) for o in (1.01, 1.5, 7.3, 64))])
def test_renyi_of_pairs_against_direct_sums(order):
    with mpmath.workdps(40):

        def divergence(p, q):
            moment = mpmath.fsum(a**order * b ** (1 - mpmath.mpf(order)) for a, b in zip(p, q, strict=True))
            return mpmath.log(moment) / (mpmath.mpf(order) - 1)

        def shifted(mass, distance, reach):
            p = [mass(k) for k in range(-reach, reach)]
            q = [mass(k - distance) for k in range(-reach, reach)]
            total = mpmath.fsum(mass(k) for k in range(-2 * reach, 2 * reach))
            return [x / total for x in p], [x / total for x in q]

        for distance, scale in ((1, Fraction(2)), (3, Fraction(5, 2)), (1, Fraction(50))):
            t = mpmath.mpf(scale.numerator) / scale.denominator
            p, q = shifted(lambda k, t=t: mpmath.exp(-abs(k) / t), distance, int(70 * scale))
            exact, found = divergence(p, q), LaplacePair(distance, scale).renyi(order)
            assert exact * (1 - mpmath.mpf("1e-20")) <= found <= exact * (1 + mpmath.mpf("1e-6")) + 1e-12
        p, q = shifted(lambda k: mpmath.exp(-mpmath.mpf(k * k) / 18), 2, 300)
        exact, found = divergence(p, q), GaussianPair(2, Fraction(9)).renyi(order)
        assert exact * (1 - mpmath.mpf("1e-20")) <= found <= exact * (1 + mpmath.mpf("2e-3"))
        response = dp.RandomizedResponse(choices=list("abcd"), lie=0.1)
        p = [mpmath.mpf("0.7"), mpmath.mpf("0.1"), mpmath.mpf("0.2")]
        q = [mpmath.mpf("0.1"), mpmath.mpf("0.7"), mpmath.mpf("0.2")]
        exact, found = divergence(p, q), response.guarantee().renyi(order)
        assert exact * (1 - mpmath.mpf("1e-14")) <= found <= exact * (1 + mpmath.mpf("1e-9")) + 1e-11


# --- subsampling --------------------------------------------------------------------------------------


def test_sampling_twice_is_sampling_once_at_the_product():
    base = LaplacePair(3, Fraction(2))
    nested = SubsampledPair(SubsampledPair(base, Fraction(1, 2)), Fraction(1, 3))
    once = SubsampledPair(base, Fraction(1, 6))
    for epsilon in (0.0, 0.05, 0.1, 0.2):
        assert nested.delta(epsilon) == pytest.approx(once.delta(epsilon), rel=1e-9, abs=1e-12)
        assert nested.mirrored().delta(epsilon) == pytest.approx(once.mirrored().delta(epsilon), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("times", [1, 2, 5])
def test_a_leak_survives_subsampling(times):
    """A stated (ε,δ) puts mass where the other law has none; the sampled mechanism must not forget it."""
    from discreet.guarantees.finite.verify import repeat, verify

    rate, delta, e = Fraction(1, 2), Fraction(1, 10), Fraction(2)
    epsilon = math.log(2) * (1 + 1e-12)
    high, low = (1 - delta) * e / (1 + e), (1 - delta) / (1 + e)
    p = {"leak0": delta, "leak1": Fraction(0), "h": high, "l": low}
    q = {"leak0": Fraction(0), "leak1": delta, "h": low, "l": high}
    mixed = {y: (1 - rate) * q[y] + rate * p[y] for y in p}
    pair = SubsampledPair(ResponsePair(Fraction(repr(epsilon)), delta), rate)
    claimed = dp.guarantees.LossDistribution(factors=((pair, times),))
    exact = verify(repeat({0: mixed, 1: q}, times))
    for at in (0.0, 0.1, 0.3, 0.6, 1.0):
        true = exact.delta_at(epsilon=at)
        assert true * (1 - 1e-9) <= claimed.delta_at(epsilon=at) <= true * (1 + 1e-4) + 1e-11


def test_sampling_a_mechanism_known_by_its_curve():
    one = dp.Subsampled(mechanism=dp.Exponential(rate=1), rate=0.1).guarantee(1)
    for epsilon in (0.0, 0.1, 0.3, 0.5):
        ratio = math.log1p(math.expm1(epsilon) / 0.1)
        base = dp.Exponential(rate=1).guarantee(1).delta_at(epsilon=ratio)
        assert one.delta_at(epsilon=epsilon) == pytest.approx(0.1 * base, rel=1e-9, abs=1e-15)
    assert dp.compose([one] * 10).epsilon_at(delta=1e-6) <= float(10 * one.largest_loss) * (1 + 1e-12)


def test_a_lopsided_pair_is_charged_for_its_worse_direction():
    pair = FinitePair((Fraction(1), Fraction(0)), (Fraction(1, 2), Fraction(1, 2)))
    both = dp.guarantees.LossDistribution(factors=((pair, 2),))
    assert both.infinite >= 0.75
    assert both.pure is None
    assert both.epsilon_at(delta=0.5) == math.inf
    assert both.delta_at(epsilon=5) >= 0.75


def test_a_stated_delta_is_found_again():
    """Composing one (ε,δ) promise, alone or beside pure ones, gives the sum of the ε at exactly that δ."""
    stated = dp.Approx(epsilon=1, delta=1e-6)
    assert dp.compose([stated]).epsilon_at(delta=1e-6) == 1.0
    assert dp.compose([stated]).delta_at(epsilon=1) == float_up(Fraction(1, 10**6))
    assert dp.compose([stated, dp.Pure(epsilon=0.5)]).epsilon_at(delta=1e-6) == 1.5
    assert dp.compose([stated]).epsilon_at(delta=9.9e-7) == math.inf
    assert 1.99 < dp.compose([stated] * 2).epsilon_at(delta=2e-6) <= 2


def test_rho_outside_a_leak_is_that_of_the_rest() -> None:
    """A leak has no ρ. Ledgers that add ρ set its mass aside, and add the ρ of the rest."""
    noise = dp.Gaussian(stddev=5, step=1).guarantee(1)
    leak = dp.mechanisms.KeySelection(scale=1, threshold=30).guarantee()
    both = dp.compose([noise, dp.Approx(epsilon=0, delta=1e-6)])
    assert both.rho() == math.inf
    assert both.rho(outside=True) == pytest.approx(0.02)
    assert both.infinite == pytest.approx(1e-6)
    assert leak.rho(outside=True) == pytest.approx(0.5)  # type: ignore[attr-defined]
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=3, delta=1e-4), rule="zcdp")
    assert ledger.charge(both, asked="both").guarantee.infinite == pytest.approx(1e-6)
