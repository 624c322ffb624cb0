"""The best of a random number of runs: the exact law of what comes out, against what is claimed."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise, permutations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

import discreet as dp
from discreet import testing
from discreet.exact import samplers
from discreet.guarantees.conversions import epsilon_from_renyi
from discreet.guarantees.privacy_loss.finite_pairs import FinitePair
from discreet.mechanisms.selection import private_selection
from discreet.mechanisms.selection.private_selection import NegativeBinomialTries, PoissonTries, Selection

from ...refusing import refuses

ORDERS = (1.2, 2.0, 4.0, 16.0)
DELTAS = (1e-2, 1e-5)
LAWS = [
    NegativeBinomialTries(stop=0.1),
    NegativeBinomialTries(stop=0.01, shape=-0.5),
    NegativeBinomialTries(stop=0.3, shape=1),
    NegativeBinomialTries(stop=0.05, shape=0.5),
    PoissonTries(mean=0.3),
    PoissonTries(mean=4),
    PoissonTries(mean=30),
]
SLOW = [NegativeBinomialTries(stop=0.01, shape=-0.5), PoissonTries(mean=0.3), PoissonTries(mean=30)]
Law = list[float]


class NotPrivate(AssertionError):
    """Two neighbors are told apart better than is claimed."""


# --- the exact law --------------------------------------------------------------------------------------


def selected(tries: Any, run: Law) -> Law:
    """P[the best is y] = f(Q(≤ y)) − f(Q(< y)), the outputs listed from the worst to the best; then no try at all."""
    ends = [tries.generating(min(1.0, c)) for c in np.cumsum([0.0, *run])]
    return [*np.diff(ends), tries.generating(0.0)]


@pytest.mark.slow
@pytest.mark.parametrize("tries", LAWS, ids=repr)
def test_the_law_is_a_sum_over_the_number_of_tries(tries: Any) -> None:
    run = [0.2, 0.5, 0.3]
    ends = np.cumsum([0.0, *run])
    most = np.arange(2500 if isinstance(tries, NegativeBinomialTries) else 200)
    masses = np.array([tries.probability(int(k)) for k in most])
    assert masses.sum() == pytest.approx(1, abs=1e-9)
    assert masses @ most == pytest.approx(float(tries.mean), rel=1e-6)
    assert masses[0] == pytest.approx(tries.none, abs=1e-12)
    summed = [masses[1:] @ (b ** most[1:] - a ** most[1:]) for a, b in pairwise(ends)]
    assert selected(tries, run)[:3] == pytest.approx(summed, abs=1e-9)


def delta(p: Law, q: Law, epsilon: float) -> float:
    return sum(max(0.0, a - math.exp(epsilon) * b) for a, b in zip(p, q, strict=True))


def renyi(p: Law, q: Law, order: float) -> float:
    return math.log(sum(a**order * b ** (1 - order) for a, b in zip(p, q, strict=True) if a)) / (order - 1)


def check(tries: Any, p: Law, q: Law, run: dp.Guarantee, claim: Any = None) -> float:
    """Both directions, at several δ and orders; the largest share of ε that is really needed."""
    claim = claim or (lambda at: float(Selection(tries=tries, run=run, delta=at).guarantee().epsilon))
    sides = selected(tries, p), selected(tries, q)
    share = 0.0
    for first, second in (sides, sides[::-1]):
        for at in DELTAS:
            epsilon = claim(at)
            if delta(first, second, epsilon) > at * (1 + 1e-9) + 1e-12:
                raise NotPrivate(f"δ at {epsilon} is above {at}")
            low = next(e for e in np.linspace(0, epsilon, 101) if delta(first, second, e) <= at)
            share = max(share, low / epsilon)
        if not run.infinite and claim.__name__ == "<lambda>":
            for order in ORDERS:
                if renyi(first, second, order) > Selection(tries=tries, run=run, delta=1e-6).renyi(order) + 1e-9:
                    raise NotPrivate(f"the Rényi divergence of order {order} is too large")
    return share


def exact(p: Law, q: Law) -> dp.Guarantee:
    """What two laws promise, as exactly as can be."""
    inside, outside = (tuple(Fraction(round(v * 10**6), 10**6) for v in law) for law in (p, q))
    return dp.guarantees.LossDistribution(factors=((FinitePair(inside, outside), 1),))


def response(epsilon: float) -> tuple[Law, Law]:
    high = round(math.exp(epsilon) / (1 + math.exp(epsilon)), 6)
    return [high, 1 - high], [1 - high, high]


def gaussian_like(mu: float) -> tuple[Law, Law]:
    """Seven outputs of a Gaussian comparison."""
    cuts = np.linspace(-3, 3, 6)
    laws = [np.diff(stats.norm.cdf(np.concatenate([[-np.inf], cuts, [np.inf]]), loc=at)).round(6) for at in (0, mu)]
    return tuple([*law[:-1], round(1 - sum(law[:-1]), 6)] for law in laws)  # type: ignore[return-value]


@pytest.mark.parametrize("tries", LAWS, ids=repr)
@pytest.mark.parametrize("epsilon", [0.1, 0.7, 2.0])
def test_randomized_response(tries: Any, epsilon: float) -> None:
    p, q = response(epsilon)
    most = dp.Pure(epsilon=math.log(p[0] / p[1]) * (1 + 1e-9))
    share = check(tries, p, q, most)
    assert share > 0.05 or tries.mean == 30
    whole = Selection(tries=tries, run=most).guarantee()
    assert isinstance(whole, dp.Pure)
    sides = selected(tries, p), selected(tries, q)
    ratios = [abs(math.log(a / b)) for a, b in zip(*sides, strict=True) if a]
    assert max(ratios) <= float(whole.epsilon)


def test_pure_is_nearly_attained() -> None:
    """A rare best output and a small `stop`: twice the ε for the logarithmic law, three times for the geometric one."""
    for shape in (0, 1, -0.5):
        tries = NegativeBinomialTries(stop=1e-4, shape=shape)
        p, q = [1 - 1e-6 * math.e, 1e-6 * math.e], [1 - 1e-6, 1e-6]
        middle = [0.5, 0.5 * math.exp(-1)], [0.5 * math.exp(-1), 0.5]
        for first, second in ((p, q), ([*middle[0], 1 - sum(middle[0])], [*middle[1], 1 - sum(middle[1])])):
            sides = selected(tries, first)[:-1], selected(tries, second)[:-1]
            assert max(abs(math.log(a / b)) for a, b in zip(*sides, strict=True)) <= (2 + shape) * (1 + 1e-9)
    far = selected(NegativeBinomialTries(stop=1e-4, shape=1), [0.001 / math.e, 0, 1 - 0.001 / math.e])
    near = selected(NegativeBinomialTries(stop=1e-4, shape=1), [0.001, 0, 0.999])
    assert math.log(near[0] / far[0]) > 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "tries", [pytest.param(t, marks=[pytest.mark.slow] if t in SLOW else [], id=repr(t)) for t in LAWS]
)
def test_several_outputs_in_any_order_of_score(tries: Any) -> None:
    rng = np.random.default_rng(4)
    shares = []
    for trial in range(2):
        p = rng.dirichlet(np.ones(4)).round(6)
        p[-1] = 1 - p[:-1].sum()
        q = (p * np.exp(rng.normal(size=4) * (0.2 if trial % 2 else 0.8))).round(6)
        q = (q / q.sum()).round(6)
        q[-1] = 1 - q[:-1].sum()
        run = exact(p.tolist(), q.tolist())
        orders = list(permutations(range(4)))
        for order in [orders[i] for i in rng.permutation(24)[:6]]:
            shares.append(check(tries, p[list(order)].tolist(), q[list(order)].tolist(), run))
    for mu in (0.2, 1.0)[: 1 if tries.mean == 4 else 2]:
        p, q = gaussian_like(mu)
        shares += [check(tries, a, b, exact(p, q)) for a, b in ((p, q), (p[::-1], q[::-1]))]
    assert max(shares) > 0.4


@pytest.mark.parametrize("tries", LAWS, ids=repr)
def test_runs_that_go_wrong(tries: Any) -> None:
    """A total leak with probability δ, and else randomized response: (ε,δ) is exactly what one run has."""
    for small in (1e-7, 1e-3):
        response_p, response_q = response(0.5)
        epsilon = math.log(response_p[0] / response_p[1]) * (1 + 1e-9)
        run = dp.Approx(epsilon=epsilon, delta=small)
        p, q = ([small * k, *((1 - small) * v for v in one), small * (1 - k)]
                for k, one in ((0, response_p), (1, response_q)))  # fmt: skip
        allowed = small * float(tries.mean)
        claim = Selection(tries=tries, run=run, delta=max(allowed * 1.01, 1e-12)).guarantee()
        sides = selected(tries, p), selected(tries, q)
        for first, second in (sides, sides[::-1]):
            assert delta(first, second, float(claim.epsilon)) <= float(claim.delta) * (1 + 1e-9)
        assert float(claim.epsilon) <= float(tries.pure(Fraction(epsilon))) * (1 + 1e-9)
        worst = max(delta(a, b, float(claim.epsilon)) for a, b in (sides, sides[::-1]))
        assert worst > 0.2 * min(allowed, 0.1)  # the runs' δ, uncharged, is passed
        with refuses(dp.InvalidArgument, "guarantee-out-of-reach"):
            Selection(tries=tries, run=run, delta=small * min(0.5, float(tries.mean) / 2)).guarantee()


@pytest.mark.parametrize("tries", [law for law in LAWS if float(law.mean) > 1], ids=repr)
def test_an_uncharged_choice_is_caught(tries: Any) -> None:
    p, q = response(0.7)
    run = dp.Pure(epsilon=math.log(p[0] / p[1]) * (1 + 1e-9))
    with pytest.raises(NotPrivate):
        check(tries, p, q, run, claim=lambda at, run=run: run.epsilon_at(delta=at) if at < 1e-2 else 9.0)
    p, q = gaussian_like(1.0)
    caught = 0
    for a, b in ((p, q), (p[::-1], q[::-1])):
        try:
            check(tries, a, b, exact(p, q), claim=lambda at: exact(p, q).epsilon_at(delta=at))
        except NotPrivate:
            caught += 1
    assert caught


def forget() -> None:
    private_selection._tilt.cache_clear()
    private_selection._known_epsilon.cache_clear()


def test_mutants(monkeypatch: pytest.MonkeyPatch) -> None:
    p, q = gaussian_like(0.5)

    def all_of(tries: Any) -> None:
        for a, b in ((p, q), (p[::-1], q[::-1])):
            check(tries, a, b, exact(p, q))
        check(tries, *response(0.7), exact(*response(0.7)))

    geometric, poisson = NegativeBinomialTries(stop=0.02, shape=1), PoissonTries(mean=8)
    all_of(geometric)
    all_of(poisson)
    for kind, tries, name, mutant in (
        (NegativeBinomialTries, geometric, "tilt", lambda self, run: 0.0),
        (PoissonTries, poisson, "tilt", lambda self, run: 0.0),
        (NegativeBinomialTries, geometric, "pure", lambda self, epsilon: epsilon),
        (PoissonTries, poisson, "pure", lambda self, epsilon: epsilon),
        (PoissonTries, PoissonTries(mean=0.05), "renyi", _published),
    ):
        forget()
        monkeypatch.setattr(kind, name, mutant)
        with pytest.raises(NotPrivate):
            all_of(tries)
        monkeypatch.undo()
        forget()


def _published(self: PoissonTries, run: dp.Guarantee, order: float) -> float:
    """Theorem 6's formula, without the mass of no try: it fails for means far below 1."""
    apart = run.delta_at(epsilon=math.log1p(1 / (order - 1)) * (1 - 1e-12))
    return run.renyi(order) + float(self.mean) * apart + math.log(float(self.mean)) / (order - 1)


@pytest.mark.slow
def test_sharper_than_renyi_alone() -> None:
    run = dp.GaussianTradeoff(mu=0.2)
    for tries in (NegativeBinomialTries.for_mean(10), NegativeBinomialTries.for_mean(100, shape=1)):
        whole = Selection(tries=tries, run=run, delta=1e-6)

        def published(order: float, tries: Any = tries) -> float:
            best = min(
                (1 - 1 / a) * run.renyi(a) - math.log(float(tries.stop)) / a for a in np.geomspace(1.1, 1e4, 200)
            )
            return run.renyi(order) + (1 + float(tries.shape)) * best + math.log(tries.mean) / (order - 1)

        assert float(whole.guarantee().epsilon) <= epsilon_from_renyi(published, 1e-6) * (1 + 1e-6)
    assert float(Selection(tries=NegativeBinomialTries.for_mean(10), run=run, delta=1e-6).guarantee().epsilon) < 1.38


# --- calibration ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_calibration() -> None:
    asked = dp.Approx(epsilon=1, delta=1e-6)
    for tries in (NegativeBinomialTries.for_mean(10), PoissonTries(mean=10)):
        for of in (lambda mu: dp.GaussianTradeoff(mu=mu), lambda e: dp.Approx(epsilon=e, delta=1e-8)):
            made = Selection.for_guarantee(asked, tries=tries, of=of)
            assert 0.999 < float(made.guarantee().epsilon) <= 1
            assert made.delta == 1e-6
    pure = Selection.for_guarantee(dp.Pure(epsilon=1), tries=NegativeBinomialTries(stop=0.1))
    assert isinstance(pure.run, dp.Pure)
    assert 0.4999 < float(pure.run.epsilon) <= 0.5
    concentrated = Selection.for_guarantee(dp.Approx(epsilon=1, delta=1e-4), tries=NegativeBinomialTries.for_mean(5))
    assert isinstance(concentrated.run, dp.ZeroConcentrated)
    assert 0.999 < float(concentrated.guarantee().epsilon) <= 1
    with refuses(dp.InvalidArgument, "guarantee-not-supported"):
        Selection.for_guarantee(dp.ZeroConcentrated(rho=1), tries=NegativeBinomialTries(stop=0.1))


def test_tries() -> None:
    for mean, shape in ((3, 0), (10, 1), (50, -0.5), (1.1, 0.5)):
        assert NegativeBinomialTries.for_mean(mean, shape=shape).mean == pytest.approx(mean, rel=1e-4)
        assert NegativeBinomialTries.for_mean(mean, shape=shape).mean <= mean
    whole = Selection(tries=NegativeBinomialTries(stop=0.5, shape=1), run=dp.Pure(epsilon=1))
    assert whole.chance(1) == pytest.approx(1)
    assert whole.chance(2) == pytest.approx(1 - 0.25 / 0.75)
    assert Selection(tries=PoissonTries(mean=4), run=dp.Pure(epsilon=1)).chance(2) == pytest.approx(1 - math.exp(-2))
    assert whole.error(0.9).amount is None


# --- what is drawn --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "tries", [pytest.param(t, marks=[pytest.mark.slow] if t in SLOW else [], id=repr(t)) for t in LAWS]
)
def test_the_number_of_tries_is_drawn_by_its_law(tries: Any) -> None:
    """A chi-square test with a false alarm in 10^6; twice the `stop` or 3/2 of the mean is refused."""
    many = 600 if float(tries.mean) > 8 or getattr(tries, "shape", 1) < 0 else 2000
    drawn = Counter(tries._sample() for _ in range(many))

    def p_value(law: Any) -> float:
        cells = [k for k in range(200) if many * law.probability(k) > 10]
        seen, expected = [drawn[k] for k in cells], [many * law.probability(k) for k in cells]
        rest = many - sum(expected)
        if rest > 1:
            seen, expected = [*seen, many - sum(seen)], [*expected, rest]
        return float(stats.chisquare(seen, np.array(expected) * sum(seen) / sum(expected)).pvalue)

    assert p_value(tries) > 1e-6
    if isinstance(tries, PoissonTries):
        assert p_value(PoissonTries(mean=1.5 * tries.mean)) < 1e-6
    elif tries.shape > 0:
        assert p_value(NegativeBinomialTries(stop=2 * tries.stop, shape=tries.shape)) < 1e-6


@pytest.mark.slow
def test_choices_follow_the_law() -> None:
    """1500 choices of two candidates with three outputs each, by a chi-square test with a false alarm in 10^6."""
    scores = {"a": (0, 2, 5), "b": (1, 2, 3)}  # equal scores of different candidates are told apart by chance
    chances = {"a": (0.5, 0.3, 0.2), "b": (0.25, 0.25, 0.5)}

    def run(name: str) -> tuple[float, tuple[str, int]]:
        at = int(samplers.exponential_choice(np.zeros(20, dtype=np.int64), Fraction(1), 1)[0]) / 20
        place = int(np.searchsorted(np.cumsum(chances[name]) - 1e-9, at, side="right"))
        return scores[name][place], (name, place)

    for tries in (NegativeBinomialTries(stop=0.2), PoissonTries(mean=2)):
        selection = Selection(tries=tries, run=dp.Pure(epsilon=1))
        seen = Counter(selection.choose(run, ["a", "b"], default="none").output for _ in range(1500))
        one = {(n, i): chances[n][i] / 2 for n in "ab" for i in range(3)}
        levels = sorted({scores[n][i] for n, i in one})
        expected: dict[Any, float] = {"none": tries.none} if tries.none else {}
        below = 0.0
        for level in levels:
            tied = [y for y in one if scores[y[0]][y[1]] == level]
            mass = sum(one[y] for y in tied)
            whole = tries.generating(min(1.0, below + mass)) - tries.generating(below)
            expected |= {y: whole * one[y] / mass for y in tied}
            below += mass
        assert set(seen) <= set(expected)
        counts, wanted = zip(*((seen[y], 1500 * e) for y, e in expected.items()), strict=True)
        assert stats.chisquare(counts, np.array(wanted) * 1500 / sum(wanted)).pvalue > 1e-6


def test_no_try_and_bad_scores() -> None:
    never = Selection(tries=PoissonTries(mean=1e-9), run=dp.Pure(epsilon=1))
    assert never.choose(lambda _: (1.0, "run"), ["a"], default="public") == (None, -math.inf, "public")
    always = Selection(tries=NegativeBinomialTries(stop=0.2, shape=1), run=dp.Pure(epsilon=1))
    for _ in range(20):
        found = always.choose(lambda c: (math.nan if c else 0.5, c), [0, 1])
        assert found.score in (0.5, -math.inf)
        assert not math.isnan(found.score)
    value = SimpleNamespace(run=lambda c: (c, 2 * c), candidates=[3, 4])
    released = dp.release(value, always)
    assert released.value in ({"candidate": c, "score": float(c), "output": 2 * c} for c in (3, 4))
    assert released.guarantee == dp.Pure(epsilon=3)


def test_one_charge_before_the_first_run() -> None:
    book = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=2, delta=1e-5), rule="basic")
    calls: list[int] = []

    def run(candidate: float) -> tuple[float, float]:
        calls.append(len(book.entries()))
        noisy = dp.Laplace(scale=candidate, step=1)._draw(np.array([5]))
        return float(noisy[0]), float(noisy[0])

    selection = Selection(tries=NegativeBinomialTries(stop=0.2, shape=1), run=dp.Pure(epsilon=0.5))
    value = SimpleNamespace(run=run, candidates=[2, 4, 8])
    dp.release(value, selection, ledger=book)
    assert calls
    assert set(calls) == {1}
    assert len(book.entries()) == 1
    again = Selection(tries=selection.tries, run=dp.Pure(epsilon=0.5))
    with refuses(dp.BudgetExhausted, "budget-exhausted"):
        dp.release(value, again, ledger=book)
    assert len(book.entries()) == 1


def test_the_same_draws_whatever_the_scores_are() -> None:
    selection = Selection(tries=NegativeBinomialTries(stop=0.1), run=dp.Pure(epsilon=0.5))
    tapes = []
    for score in (0.0, 1e300, math.nan, -math.inf):
        with testing.frozen(5) as tape:
            selection.choose(lambda c, score=score: (score, c), list("abc"))
        tapes.append(tape.calls)
    assert all(tape == tapes[0] for tape in tapes)


def test_values() -> None:
    selection = Selection(tries=PoissonTries(mean=4), run=dp.ZeroConcentrated(rho=0.1), delta=1e-6)
    again = Selection(tries=PoissonTries(mean=4), run=dp.ZeroConcentrated(rho=0.1), delta=1e-6)
    assert selection == again
    assert hash(selection) == hash(again)
    named = Selection(tries=PoissonTries(mean=4), run=dp.Pure(epsilon=0.1, protects=dp.person("id")))
    assert named.guarantee().protects == dp.person("id")


def test_bad_input() -> None:
    tries = NegativeBinomialTries(stop=0.1)
    for bad in (
        lambda: NegativeBinomialTries(stop=0),
        lambda: NegativeBinomialTries(stop=1),
        lambda: NegativeBinomialTries(stop=0.1, shape=-1),
        lambda: NegativeBinomialTries(stop=0.1, shape=2),
        lambda: NegativeBinomialTries.for_mean(1),
        lambda: PoissonTries(mean=0),
        lambda: PoissonTries(mean=math.nan),
        lambda: Selection(tries=3, run=dp.Pure(epsilon=1)),
        lambda: Selection(tries=tries, run=1),
        lambda: Selection(tries=tries, run=dp.ZeroConcentrated(rho=1)),
        lambda: Selection(tries=tries, run=dp.Approx(epsilon=1, delta=1e-6)),
        lambda: Selection(tries=tries, run=dp.Pure(epsilon=1), delta=1),
        lambda: Selection(tries=tries, run=dp.Pure(epsilon=1)).guarantee(1),
        lambda: Selection(tries=tries, run=dp.Pure(epsilon=1)).choose(lambda c: (0, c), []),
        lambda: Selection(tries=tries, run=dp.Pure(epsilon=1)).chance(0),
    ):
        with pytest.raises(dp.InvalidArgument):
            bad()
