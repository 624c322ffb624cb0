"""The minimizer under a random linear term: exact densities in one and two dimensions against what is claimed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import logsumexp, ndtr

import discreet as dp
from discreet import testing
from discreet.guarantees.conversions import gaussian_delta
from discreet.guarantees.privacy_loss.compose import compose
from discreet.mechanisms.learning.minimizers.certified_minimum import Problem, minimum
from discreet.mechanisms.learning.minimizers.minimizer_pair import MinimizerPair
from discreet.mechanisms.learning.minimizers.objective_perturbation import ObjectivePerturbation
from discreet.mechanisms.noise.norm_gamma import NormGamma, _Normal
from discreet.rows.gradients.losses import Huber, HuberHinge, Logistic, Softmax

from ...refusing import refuses

EPSILONS = (0.0, 0.03, 0.1, 0.3, 0.6, 1.0, 1.5, 2.5, 4.0)
LEFT = SimpleNamespace(X=np.array([[0.6]]), y=np.array([1.0]))
APPROX = dp.Approx(epsilon=1, delta=1e-6)
Row = tuple[float, float]


class NotPrivate(AssertionError):
    """Two neighbors are told apart better than is claimed."""


# --- exact densities in one dimension -------------------------------------------------------------------


def log_density(loss: Any, rows: list[Row], ridge: float, log_noise: Callable[[Any], Any], w: Any) -> Any:
    """ln of the density of the minimizer: that of the linear term it stands for, times the second derivative."""
    linear, bend = -ridge * w, ridge + 0 * w
    for x, y in rows:
        linear = linear - loss.derivative(x * w, y) * x
        bend = bend + loss.second(x * w, y) * x * x
    return log_noise(linear) + np.log(bend)


def compare(loss: Any, others: list[Row], own: Row, ridge: float, log_noise: Any, reach: float) -> tuple[Any, Any, Any]:
    """Both laws on a grid: masses with the row and without, and ln of their ratio."""
    w = np.linspace(-reach, reach, 80_001)
    with_row, without = (log_density(loss, rows, ridge, log_noise, w) for rows in ([*others, own], others))
    masses = [np.exp(one) * (w[1] - w[0]) for one in (with_row, without)]
    for mass in masses:
        assert mass.sum() == pytest.approx(1, abs=1e-3)
        mass /= mass.sum()
    return masses[0], masses[1], with_row - without


def gaussian(stddev: float) -> Callable[[Any], Any]:
    return lambda b: -0.5 * (b / stddev) ** 2 - math.log(stddev * math.sqrt(2 * math.pi))


def check(pair: MinimizerPair, p: Any, q: Any, orders: tuple[float, ...] = (1.2, 2, 8)) -> float:
    """The largest share of the claim that the two laws attain, either way; NotPrivate when it is above 1."""
    share = 0.0
    for first, second in ((p, q), (q, p)):
        for epsilon in EPSILONS:
            found = float(np.maximum(first - math.exp(epsilon) * second, 0).sum())
            claimed = pair.delta(epsilon)
            if found > claimed * (1 + 1e-4) + 1e-9:
                raise NotPrivate(f"δ({epsilon}) is {found}, not {claimed}")
            if claimed > 1e-6:
                share = max(share, found / claimed)
        seen = (first > 1e-200) & (second > 1e-200)
        for order in orders:
            powers = order * np.log(first[seen]) + (1 - order) * np.log(second[seen])
            if float(logsumexp(powers)) / (order - 1) > pair.renyi(order) * (1 + 1e-6) + 1e-7:
                raise NotPrivate(f"the Rényi divergence of order {order} is too large")
    return share


HUBER, TARGETS = Huber(threshold=1.0), (-9.0, -4.0, -2.0, -0.5, 0.0, 2.0)
SETTINGS = [(4.0, 1.0), (4.0, 8.0), (1.0, 1.0), (0.6, 2.5), (1.0, 0.2)]


def worst(
    stddev: float, ridge: float, pair: MinimizerPair, others: list[Row], loss: Any = HUBER, own: Any = TARGETS
) -> float:
    reach = (14 * stddev + len(others) + 1) / ridge
    return max(check(pair, *compare(loss, others, (1.0, y), ridge, gaussian(stddev), reach)[:2]) for y in own)


@pytest.mark.some_quick(2)
@pytest.mark.parametrize(("stddev", "ridge"), SETTINGS)
def test_the_curve_holds_for_the_exact_densities(stddev: float, ridge: float) -> None:
    """Huber's loss goes through all slopes from −L to L as steeply as any loss can: nothing is worse."""
    pair = MinimizerPair(1 / stddev, 0.0, math.log1p(1 / ridge))
    for others in ([], [(1.0, 1.0)], [(0.5, -3.0), (-1.0, 2.0)]):
        share = worst(stddev, ridge, pair, others)
        if ridge <= 1 and not others:
            assert share > 0.3
    logistic = MinimizerPair(1 / stddev, 0.0, math.log1p(0.25 / ridge))
    worst(stddev, ridge, logistic, [(0.9, 1.0), (1.0, 0.0)], Logistic(), (0.0, 1.0))


def test_without_the_row_the_curve_is_attained() -> None:
    """Slope +L in one tail and −L in the other: twice the Gaussian curve is exact once both are reached."""
    for stddev, ridge, epsilon in ((4.0, 4.0, 1.0), (4.0, 1.0, 0.5), (1.0, 1.0, 2.0)):
        w = 14 * stddev / ridge
        p, q, _ = compare(HUBER, [], (1.0, 0.0), ridge, gaussian(stddev), w)
        found = float(np.maximum(q - math.exp(epsilon) * p, 0).sum())
        assert found == pytest.approx(2 * gaussian_delta(1 / stddev, epsilon), rel=1e-3)


@pytest.mark.parametrize(("stddev", "ridge"), [(4.0, 1.0), (1.0, 1.0)])
def test_mutants_of_the_curve(stddev: float, ridge: float, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = MinimizerPair(1 / stddev, 0.0, math.log1p(1 / ridge))
    worst(stddev, ridge, honest, [])
    for mutant in (replace(honest, jacobian=0.0), replace(honest, move=honest.move / 2, jacobian=0.05)):
        with pytest.raises(NotPrivate):
            worst(stddev, ridge, mutant, [])
    monkeypatch.setattr(
        MinimizerPair, "_one", lambda self, e: gaussian_delta(self.move, max(e - self.jacobian * (e > 2), 0))
    )
    with pytest.raises(NotPrivate):  # the sign of the slope forgotten where the row is not there
        worst(1.0, 1.0, MinimizerPair(1.0, 0.0, 0.0), [])


@pytest.mark.slow
def test_two_dimensions() -> None:
    """Only the noise along the row counts, whatever the other rows are."""
    stddev, ridge, own, others = 1.5, 0.7, (np.array([0.6, 0.8]), 1.0), [(np.array([1.0, 0.0]), 0.0)] * 3
    side = np.linspace(-24, 24, 801)
    w = np.stack(np.meshgrid(side, side), axis=-1)

    def law(rows: list[Any]) -> Any:
        linear, bends = -ridge * w, ridge * np.eye(2) + np.zeros((*w.shape, 2))
        for x, y in rows:
            z = w @ x
            linear = linear - Logistic().derivative(z, y)[..., None] * x
            bends = bends + Logistic().second(z, y)[..., None, None] * np.outer(x, x)
        mass = np.exp(-0.5 * (linear**2).sum(-1) / stddev**2) * np.linalg.det(bends)
        return (mass / mass.sum()).reshape(-1)

    share = check(MinimizerPair(1 / stddev, 0.0, math.log1p(0.25 / ridge)), law([*others, own]), law(others))
    assert 0.2 < share <= 1


@pytest.mark.slow
def test_the_output_noise_composes() -> None:
    """Against the exact integral over both normal numbers, and not far above it."""
    for move, output, jacobian in ((0.25, 0.025, 0.05), (1.0, 0.1, 0.3), (1.0, 1.0, 0.3)):
        pair = MinimizerPair(move, output, jacobian)
        z, other = np.meshgrid(np.linspace(-10, 10, 1501), np.linspace(-10, 10, 401))
        mass = np.exp(-(z * z + other * other) / 2)
        mass /= mass.sum()
        more = output * other + output**2 / 2
        for epsilon in EPSILONS:
            absent = move * np.abs(z) + move**2 / 2 + more
            present = jacobian + np.maximum(0, move * z + move**2 / 2) + more
            found = max(float((mass * np.maximum(0, -np.expm1(epsilon - one))).sum()) for one in (absent, present))
            assert found <= pair.delta(epsilon) * (1 + 1e-3) + 1e-9
            apart = compose(
                [
                    dp.guarantees.LossDistribution(factors=((replace(pair, output=0.0), 1),)),
                    dp.GaussianTradeoff(mu=output),
                ]
            )
            if epsilon >= 1 and output <= 0.1 * move:
                assert pair.delta(epsilon) <= apart.delta_at(epsilon=epsilon) * 1.02


def test_sharper_than_published() -> None:
    """Redberg-Koskela-Wang 2023: 2·δ(ε − |ln(1 − β/λ)|), for λ > β."""
    for move, ratio in ((0.25, 0.03), (0.25, 0.3), (1.0, 0.5)):
        for epsilon in (0.8, 1.0, 2.0, 4.0):
            published = 2 * gaussian_delta(move, max(0.0, epsilon + math.log(1 - ratio)))
            assert MinimizerPair(move, 0.0, math.log1p(ratio)).delta(epsilon) <= published * (1 + 1e-9)


def test_more_rows_come_one_by_one() -> None:
    """Two rows at once, in both orders, against the chain of two steps."""
    stddev, ridge = 2.0, 3.0
    pair = MinimizerPair(1 / stddev, 0.0, math.log1p(1 / ridge), rows=2)
    for y, other in ((0.0, 0.0), (-3.0, 3.0), (1.0, -2.0)):
        p, _, _ = compare(HUBER, [(1.0, y)], (1.0, other), ridge, gaussian(stddev), 14 * stddev / ridge)
        _, q, _ = compare(HUBER, [], (1.0, other), ridge, gaussian(stddev), 14 * stddev / ridge)
        check(pair, p, q)
    assert pair.twice() == replace(pair, rows=4)


def of_mechanism(m: ObjectivePerturbation) -> float:
    """Rows as long as the mechanism allows, against its own pair."""
    stddev, ridge = float(m.noise.stddev), float(m.ridge)
    reach = (14 * stddev + 2) / ridge
    laws = [compare(m.loss, [], (2.0, y), ridge, gaussian(stddev), reach) for y in (-9.0, -4.0, -2.0, 0.0, 1.0)]
    return max(check(m._pair(), *law[:2], orders=(2, 8)) for law in laws)


def test_the_mechanism_claims_its_own_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    loss, output = Huber(threshold=0.5), dp.Gaussian(stddev=1)
    m = ObjectivePerturbation(
        loss=loss, dimension=1, row_norm=2, ridge=4, noise=dp.Gaussian(stddev=4), output=output, targets=(-9, 9)
    )
    assert of_mechanism(m) > 0.3
    pair = m._pair()
    assert (pair.move, pair.jacobian) == pytest.approx((0.25, math.log(2)))
    assert pair.output == pytest.approx(2 * float(m._distance))
    gentle = replace(m, ridge=100)
    assert of_mechanism(gentle) > 0.3
    mutants = {"_jacobian": (m, lambda self: Fraction(0)), "_slope": (gentle, Fraction(1, 2))}
    for name, (mechanism, mutant) in mutants.items():
        monkeypatch.setattr(ObjectivePerturbation, name, mutant)
        with pytest.raises(NotPrivate):
            of_mechanism(mechanism)
        monkeypatch.undo()


# --- pure -----------------------------------------------------------------------------------------------


def largest_ratio(scale: float, ridge: float) -> float:
    def noise(b: Any) -> Any:
        return -np.abs(b) / scale - math.log(2 * scale)

    found = [
        compare(HUBER, [], (1.0, y), ridge, noise, (30 * scale + 1) / ridge)[2] for y in (*TARGETS, 1.0, -1.0, 3.0)
    ]
    return max(float(np.abs(one).max()) for one in found)


@pytest.mark.parametrize(("scale", "ridge"), [(2.0, 1.0), (5.0, 4.0), (0.5, 0.3)])
def test_pure_is_exact(scale: float, ridge: float) -> None:
    claimed, found = 1 / scale + math.log1p(1 / ridge), largest_ratio(scale, ridge)
    assert 0.99 * claimed < found <= claimed * (1 + 1e-9)
    assert found > 1 / scale + 1e-3  # the determinant forgotten
    assert found > 0.5 / scale + math.log1p(1 / ridge) + 1e-3  # half the scale


def test_pure_costs() -> None:
    m = ObjectivePerturbation(
        loss=HUBER, dimension=1, ridge=4, noise=NormGamma(scale=5), output=dp.Laplace(scale=1), targets=(-9, 9)
    )
    out = float(m.output.guarantee(m._moved).largest_loss)
    one, two = (float(m.guarantee(k).largest_loss) - out for k in (1, 2))
    assert one == pytest.approx(0.2 + math.log(1.25))
    assert two == pytest.approx(2 * one)
    replaced = m.guarantee(m.sensitivity(dp.row(neighbors="replace")))
    assert float(replaced.largest_loss) - out == pytest.approx(0.4 + math.log(1.25))
    assert replaced.relation == "replace"
    assert float(m.guarantee().for_replacement().largest_loss) == pytest.approx(2 * (one + out))


# --- calibration ----------------------------------------------------------------------------------------


def less(m: ObjectivePerturbation) -> ObjectivePerturbation:
    if isinstance(m.noise, NormGamma):
        return replace(m, noise=NormGamma(scale=Fraction(98, 100) * Fraction(str(m.noise.scale))))
    return replace(m, noise=dp.Gaussian(stddev=0.98 * m.noise.stddev))


@pytest.mark.parametrize(
    "asked", [APPROX, dp.Approx(epsilon=0.05, delta=1e-9), dp.Approx(epsilon=6, delta=1e-4)], ids=str
)
@pytest.mark.parametrize("unit", [dp.row(), dp.row(neighbors="replace"), dp.person("id")], ids=repr)
def test_calibration(asked: dp.Approx, unit: dp.Unit) -> None:
    rows = 2 if unit.column else 1
    m = ObjectivePerturbation.for_guarantee(asked, loss=Logistic(), dimension=7, unit=unit, rows_per_person=rows)
    bound = m.sensitivity(unit, rows)
    claim = m.guarantee(bound)
    assert 0.999 * asked.delta < claim.delta_at(epsilon=asked.epsilon) <= asked.delta
    assert less(m).guarantee(bound).delta_at(epsilon=asked.epsilon) > asked.delta
    assert claim.protects == unit


def test_calibration_for_others() -> None:
    renyi = dp.Renyi(order=8, epsilon=0.5)
    m = ObjectivePerturbation.for_guarantee(renyi, loss=Logistic(), dimension=3)
    assert 0.499 < m.guarantee().renyi(8.0) <= 0.5 < less(m).guarantee().renyi(8.0)
    for unit in (None, dp.row(neighbors="replace")):
        pure = ObjectivePerturbation.for_guarantee(dp.Pure(epsilon=1), loss=Logistic(), dimension=3, unit=unit)
        bound = None if unit is None else pure.sensitivity(unit)
        assert 0.999 < float(pure.guarantee(bound).largest_loss) <= 1 < float(less(pure).guarantee(bound).largest_loss)
        assert pure.guarantee(bound).pure is not None
    assert m.guarantee().protects == dp.row()
    assert m.guarantee(1).neighbors == "add_or_remove"
    for bad in (dp.ZeroConcentrated(rho=1), dp.GaussianTradeoff(mu=1), dp.Approx(epsilon=1)):
        with pytest.raises(dp.InvalidArgument):
            ObjectivePerturbation.for_guarantee(bad, loss=Logistic(), dimension=3)


def test_the_ridge_is_a_rule_of_public_numbers() -> None:
    small, large = (ObjectivePerturbation.for_guarantee(APPROX, loss=Logistic(), dimension=d) for d in (10, 100))
    assert (small.ridge, large.ridge) == (3.29, 8.78)
    assert 4.3 < large.noise.stddev < small.noise.stddev < 4.6  # Gaussian noise alone is 4.225
    assert float(small.output.stddev) < 3e-4

    def cost(m: ObjectivePerturbation) -> float:
        return (m.ridge * 5 + m.noise.stddev * math.sqrt(10)) ** 2 / m.ridge

    for factor in (0.5, 2):
        other = ObjectivePerturbation.for_guarantee(APPROX, loss=Logistic(), dimension=10, ridge=factor * small.ridge)
        assert cost(other) > cost(small)
    with refuses(dp.InvalidArgument, "ridge-too-small"):
        ObjectivePerturbation.for_guarantee(APPROX, loss=Logistic(), dimension=10, ridge=0.1)


def test_taught() -> None:
    taught = {"loss": Logistic(), "dimension": 3, "calibration": "taught"}
    m = ObjectivePerturbation.for_guarantee(dp.Pure(epsilon=1), ridge=4, **taught)
    assert float(m.noise.scale) == pytest.approx(2 / (0.98 - 2 * math.log1p(0.25 / 4)))
    low = ObjectivePerturbation.for_guarantee(dp.Pure(epsilon=1), ridge=0.1, **taught)
    assert (float(low.ridge), float(low.noise.scale)) == pytest.approx((0.25 / math.expm1(0.245), 2 / 0.49))
    for one in (m, low):
        replaced = one.guarantee(one.sensitivity(dp.row(neighbors="replace")))
        assert float(one.guarantee().largest_loss) < float(replaced.largest_loss) <= 1
    with refuses(dp.InvalidArgument, "guarantee-not-supported"):
        ObjectivePerturbation.for_guarantee(APPROX, ridge=4, **taught)


# --- what is drawn --------------------------------------------------------------------------------------


def problem(loss: Any, dimension: int, ridge: float = 2, most_rows: int = 2**27) -> Problem:
    targets = (Fraction(-1), Fraction(1))
    return Problem(loss, dimension, Fraction(1), Fraction(ridge), Fraction(16), targets, most_rows)


def slope(loss: Any, z: Any, y: Any) -> Any:
    if isinstance(loss, Logistic):
        return 1 / (1 + mpmath.exp(-z)) - y
    part = (1 - y * z + mpmath.mpf(loss._width)) / (2 * mpmath.mpf(loss._width))
    return -y * min(max(part, mpmath.mpf(0)), mpmath.mpf(1))


def true_gradient(p: Problem, data: Any, linear: list[Fraction], w: Any) -> float:
    """The norm of the gradient in 60 digits, for the rows as they are used."""
    with mpmath.workdps(60):
        rows = p.rows(data)
        used = rows._features * rows._step
        place = [mpmath.mpf(float(v)) for v in w]
        total = [mpmath.mpf(float(p.ridge)) * v + mpmath.mpf(b.numerator) / b.denominator
                 for v, b in zip(place, linear, strict=True)]  # fmt: skip
        for x, y in zip(used.tolist(), rows._targets.tolist(), strict=True):
            part = slope(p.loss, sum(a * b for a, b in zip(x, place, strict=True)), y)
            total = [t + part * a for t, a in zip(total, x, strict=True)]
        length = mpmath.sqrt(sum(v * v for v in place))
        if length > float(p.radius):
            pull = float(p.wall) * (1 - float(p.radius) / length)
            total = [t + pull * v for t, v in zip(total, place, strict=True)]
        return float(mpmath.sqrt(sum(t * t for t in total)))


@pytest.mark.some_quick(2)
@pytest.mark.parametrize("loss", [Logistic(), HuberHinge(), HuberHinge(smoothing=0.01)], ids=repr)
def test_the_gradient_is_certified(loss: Any) -> None:
    """Separable rows, equal rows, tiny rows, rows with one target, and linear terms from 0 to 10^5."""
    rng = np.random.default_rng(5)
    for ridge in (0.05, 2, 50):
        for kind in range(5):
            X = rng.normal(size=(60, 3)) * (1e-3 if kind == 1 else 1)
            y = np.where(X[:, 0] > 0, 1.0, float(not isinstance(loss, Logistic)) * -1.0)
            X, y = (X[:1].repeat(60, 0), y) if kind == 2 else (X, y * 0 + 1) if kind == 3 else (X, y)
            linear = [Fraction(float(b)) for b in rng.normal(size=3) * (1e5 if kind == 4 else kind * 2)]
            p = problem(loss, 3, ridge, 2**20)
            w = minimum(p, SimpleNamespace(X=X, y=y), linear)
            assert np.isfinite(w).all()
            # doubles add their own rounding of the weights to what is asked of whole numbers
            rounding = float(p.ridge + p.wall + 60 * p.curvature) * float(p.reach) * 2.0**-52
            assert true_gradient(p, SimpleNamespace(X=X, y=y), linear, w) <= float(p.tolerance) + rounding


def test_rows_are_clipped_and_each_is_its_own() -> None:
    p = problem(Logistic(), 2)
    rows = p.rows(SimpleNamespace(X=[[3, 4], [0.5, 0.25], [1e300, -1e300], [np.nan, 1], [1, np.inf], [1, 0]],
                                  y=[1, 0, 1e300, 1, 0, np.nan]))  # fmt: skip
    used = rows._features * rows._step
    assert used[0] == pytest.approx([0.6, 0.8], abs=1e-6)
    assert used[1].tolist() == [0.5, 0.25]
    assert used[2] == pytest.approx([0.5**0.5, -(0.5**0.5)], abs=1e-6)
    assert not used[3:].any()
    exact = [sum(Fraction(v) ** 2 for v in row) for row in used.tolist()]
    assert max(exact) <= 1
    assert rows._targets[2] == 1
    random = np.random.default_rng(0).normal(size=(5000, 2)) * 3
    whole = p.rows(SimpleNamespace(X=random, y=np.zeros(5000)))._features
    assert (whole == np.trunc(whole)).all()
    assert ((whole**2).sum(1) <= 2.0**46).all()


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["gaussian", pytest.param("gamma", marks=pytest.mark.slow)])
def test_draws_follow_the_density(noise: str) -> None:
    """900 draws by Kolmogorov-Smirnov: a false alarm in 10^6; the density for twice the noise is refused, and half."""
    asked = dp.Approx(epsilon=2, delta=1e-3) if noise == "gaussian" else dp.Pure(epsilon=2)
    m = ObjectivePerturbation.for_guarantee(asked, loss=Logistic(), dimension=1)
    drawn = [float(m._draw(LEFT)[0]) for _ in range(900)]
    w, size = np.linspace(-60, 60, 40_001), float(m.noise.stddev if noise == "gaussian" else m.noise.scale)

    def p_value(part: float) -> float:
        law = gaussian(part * size) if noise == "gaussian" else lambda b: -np.abs(b) / (part * size)
        cumulative = np.cumsum(np.exp(log_density(Logistic(), [(0.6, 1.0)], float(m.ridge), law, w)))
        return float(stats.kstest(drawn, lambda v: np.interp(v, w, cumulative / cumulative[-1])).pvalue)

    assert p_value(1) > 1e-6
    assert max(p_value(2), p_value(0.5)) < 1e-6


@pytest.mark.slow
def test_norm_gamma_is_a_gamma_length_in_a_uniform_direction() -> None:
    """800 vectors; each Kolmogorov-Smirnov test has a false alarm in 10^6, and refuses 3/2 of the scale."""
    law, step = NormGamma(scale=0.5), float(NormGamma(scale=0.5).step)
    drawn = np.array([law._noise(3).astype(np.float64) for _ in range(800)]) * step
    lengths = np.linalg.norm(drawn, axis=1)
    assert stats.kstest(lengths, stats.gamma(3, scale=0.5).cdf).pvalue > 1e-6
    assert stats.kstest(lengths, stats.gamma(3, scale=0.75).cdf).pvalue < 1e-6
    for along in [*np.eye(3).tolist(), [0.6, 0.8, 0]]:  # a coordinate of a uniform direction in three is uniform
        assert stats.kstest(drawn @ np.array(along) / lengths, stats.uniform(-1, 2).cdf).pvalue > 1e-6
    normals = [(n := _Normal()).value / 2.0 ** (n.bits + 8) for _ in range(800)]
    assert stats.kstest(normals, ndtr).pvalue > 1e-6
    single = np.array([float(NormGamma(scale=2)._noise(1)[0]) for _ in range(800)]) * float(NormGamma(scale=2).step)
    assert stats.kstest(single, stats.laplace(scale=2).cdf).pvalue > 1e-6


def test_the_same_draws_whatever_the_rows_are() -> None:
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(50, 3)), np.where(rng.random(50) < 0.5, 1.0, 0.0)
    variants = [(X, y), (X[1:], y[1:]), (X[:0], y[:0])]
    for bad in ([np.nan, 0, 0], [np.inf, 1, 1], [1e300, -1e300, 1e300], [1e-320, 0, 0], [0, 0, 0]):
        variants += [(np.vstack([X, [bad]]), np.append(y, 1.0)), (np.vstack([X, [bad]]), np.append(y, np.nan))]
    for asked in (APPROX, dp.Pure(epsilon=1)):
        m = ObjectivePerturbation.for_guarantee(asked, loss=Logistic(), dimension=3)
        tapes, results = [], []
        for features, targets in variants:
            with testing.frozen(3) as tape:
                results.append(m._draw(SimpleNamespace(X=features, y=targets)))
            tapes.append(tape.calls)
        assert all(tape == tapes[0] for tape in tapes)
        assert np.isfinite(results).all()
        # one row moves the minimizer by at most L/ridge; the noise was the same
        assert max(np.linalg.norm(r - results[0]) for i, r in enumerate(results) if i != 2) < 1.01 / float(m.ridge)
        dropped = [i for i in range(len(variants)) if i > 2 and (np.isnan(variants[i][1][-1]) or i == 3)]
        assert all(np.abs(results[i] - results[0]).max() < 1e-3 for i in dropped)


def test_releases() -> None:
    rng = np.random.default_rng(8)
    X = rng.normal(size=(4000, 5)) / 3
    y = (rng.random(4000) < 1 / (1 + np.exp(-X @ np.array([3, -2, 1, 0, 0.5])))).astype(float)
    data = SimpleNamespace(X=X, y=y)
    m = ObjectivePerturbation.for_guarantee(APPROX, loss=Logistic(), dimension=5)
    book = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=2, delta=1e-5), rule="basic")
    found = dp.release(data, m, ledger=book, stated=APPROX)
    assert found.value.shape == (5,)
    assert found.guarantee == replace(APPROX, protects=dp.row())
    with testing.no_noise():
        plain = m._draw(data)
    assert np.linalg.norm(found.value - plain) < 0.5
    clipped = X / np.maximum(1, np.linalg.norm(X, axis=1))[:, None]
    gradient = clipped.T @ (1 / (1 + np.exp(-clipped @ plain)) - y) + m.ridge * plain
    assert np.linalg.norm(gradient) < 1e-2

    def risk(w: Any) -> float:
        return float(np.mean(np.logaddexp(0, clipped @ w) - y * (clipped @ w)))

    best = min(risk(plain * t) for t in np.linspace(0.8, 1.4, 61))
    bound = m.error(0.9, size=4000, norm=5)
    assert bound.of == "excess risk"
    assert float(bound) < 0.03
    assert all(risk(m._draw(data)) - best <= float(bound) for _ in range(20))
    assert float(m.error(0.9, size=4000)) > float(bound)  # for weights of any norm within the radius
    assert m.error(0.9).amount is None


def test_values() -> None:
    m = ObjectivePerturbation.for_guarantee(APPROX, loss=Logistic(), dimension=4)
    assert m == replace(m)
    assert len({m, replace(m), less(m)}) == 2
    assert m.radius == 64
    assert ObjectivePerturbation.for_guarantee(APPROX, loss=HUBER, dimension=1, targets=(-10, 2)).radius == 640


@dataclass(frozen=True)
class Kinked:
    """A loss whose slope jumps."""

    lipschitz: float = 1.0
    smoothness: float = math.inf
    derivative = second = staticmethod(np.sign)


def test_bad_input() -> None:
    good = {
        "loss": Logistic(),
        "dimension": 2,
        "ridge": 3,
        "noise": dp.Gaussian(stddev=4),
        "output": dp.Gaussian(stddev=1),
    }
    ObjectivePerturbation(**good)
    for name, bad in (
        ("loss", Softmax(3)),
        ("loss", Kinked()),
        ("loss", None),
        ("dimension", 0),
        ("dimension", 1.5),
        ("ridge", 0),
        ("ridge", math.nan),
        ("ridge", 1e-9),
        ("row_norm", -1),
        ("noise", dp.Laplace(scale=1)),
        ("output", dp.Laplace(scale=1)),
        ("radius", 0),
        ("targets", (1, 1)),
        ("targets", 3),
        ("targets", (0, math.inf)),
        ("most_rows", 0),
        ("most_rows", 2**40),
    ):
        with pytest.raises(dp.InvalidArgument):
            ObjectivePerturbation(**good | {name: bad})
    m = ObjectivePerturbation(**good | {"most_rows": 3})
    for X, y in (
        (np.zeros((2, 3)), [0, 1]),
        (np.zeros(2), [0, 1]),
        (np.zeros((2, 2)), [0]),
        (np.zeros((4, 2)), [0] * 4),
    ):
        with pytest.raises(dp.InvalidArgument):
            m._draw(SimpleNamespace(X=X, y=y))
    book = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=99, delta=1e-5), rule="basic")
    secret = SimpleNamespace(X=[["Alice", 1]], y=[0])
    for value in (secret, SimpleNamespace(X=np.zeros((1, 2))), 3, SimpleNamespace(X=np.zeros((9, 2)), y=np.zeros(9))):
        with pytest.raises(dp.InvalidArgument) as caught:
            dp.release(value, m, ledger=book, stated=dp.Approx(epsilon=50, delta=1e-6))
        assert "Alice" not in str(caught.value)
        assert caught.value.__context__ is None
    assert book.entries() == ()
    for bound in (0, 1.5, -1, math.nan):
        with pytest.raises(dp.InvalidArgument):
            m.guarantee(bound)
    with refuses(dp.InvalidArgument, "out-of-range"):
        m.error(0.9, size=10, norm=1000)
    for scale in (0, -1, math.nan):
        with pytest.raises(dp.InvalidArgument):
            NormGamma(scale=scale)


def test_a_coarse_lattice_is_paid_for() -> None:
    fine = ObjectivePerturbation(
        loss=Logistic(), dimension=2, ridge=3, noise=dp.Gaussian(stddev=4), output=dp.Gaussian(stddev=1)
    )
    coarse = replace(fine, noise=dp.Gaussian(stddev=4, step=2.0**-9))
    assert coarse.guarantee().delta_at(epsilon=1) > 1.0001 * fine.guarantee().delta_at(epsilon=1)
    assert math.isinf(coarse.guarantee().renyi(8.0))
    assert math.isfinite(fine.guarantee().renyi(8.0))
    assert coarse._distance > fine._distance


def test_the_renyi_formulas() -> None:
    """Both moments by numerical integration."""
    move, jacobian = 0.7, 0.2
    pair = MinimizerPair(move, 0.0, jacobian)
    for order in (1.05, 1.5, 3.0, 12.0):

        def moment(loss: Callable[[float], float], order: float = order) -> float:
            inside = lambda z: math.exp((order - 1) * loss(z) - z * z / 2) / math.sqrt(2 * math.pi)  # noqa: E731
            return math.log(integrate.quad(inside, -30, 30, points=[-move / 2, 0], limit=400)[0]) / (order - 1)

        absent = moment(lambda z: move * abs(z) + move**2 / 2)
        present = moment(lambda z: jacobian + max(0.0, move * z + move**2 / 2))
        assert pair.renyi(order) == pytest.approx(max(absent, present), rel=1e-4)
        assert pair.renyi(order) >= max(absent, present) * (1 - 1e-9)
