"""Multiplicative weights, in rounds and online: exact laws on all neighbors, what is learned, and promised errors."""

from __future__ import annotations

import inspect
import math
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet import testing
from discreet.mechanisms.counts.multiplicative_weights import MultiplicativeWeights, Weights, row_error
from discreet.mechanisms.counts.online_weights import OnlineMultiplicativeWeights
from discreet.queries import Domain, Workload

ROW, REPLACED = dp.row(), dp.row(neighbors="replace")
TWO = Workload.marginals(Domain({"x": 2}), 1)
HALF = dp.Laplace(scale=Fraction(1, 2), step=1)
WAVES = Workload.prefixes(Domain({"x": 64}))
PEOPLE = np.clip(np.random.default_rng(4).normal(20, 6, 20_000), 0, 63).astype(np.int64)


def mwem(**changed: Any) -> MultiplicativeWeights:
    plain = MultiplicativeWeights(workload=TWO, size=2, rounds=1, passes=1, select=dp.Exponential(rate=0.5), noise=HALF)
    return replace(plain, **changed)


def online(**changed: Any) -> OnlineMultiplicativeWeights:
    plain = OnlineMultiplicativeWeights(
        workload=TWO,
        size=2,
        updates=1,
        test=dp.mechanisms.AboveThreshold(threshold=1, threshold_scale=Fraction(1, 2), answer_scale=1, step=1),
        noise=HALF,
    )
    return replace(plain, **changed)


def pairs_of(runs: dict[tuple[int, ...], Any], unit: dp.Unit) -> list[tuple[Any, Any]]:
    """All neighbors among these tables of values 0, 1 and 9, which is outside the domain."""
    pairs = []
    for t in runs:
        for i in range(len(t)):
            less = t[:i] + t[i + 1 :]
            others = [less] if unit is ROW else [tuple(sorted((*less, v))) for v in (0, 1, 9) if v != t[i]]
            pairs += [(runs[t], runs[o]) for o in others if o in runs]
    return pairs


TABLES = [(), (0,), (1,), (0, 1), (1, 1)]


# --- in rounds ----------------------------------------------------------------------------------------


def laws(mechanism: Any, questions: tuple[int, ...] | None, known: dict[Any, Any]) -> dict[tuple[int, ...], Any]:
    """The exact law of each table's output, or of what all of it follows from; drawn once for all units."""

    def once(table: tuple[int, ...]) -> Any:
        value = list(table) if questions is None else (list(table), list(questions))
        drawn = mechanism._draw(value)
        return drawn["measured"] if questions is None else (drawn["answers"], drawn["measured"], drawn["stopped"])

    for table in TABLES:
        if (mechanism, table) not in known:
            known[mechanism, table] = testing.exact_law(lambda t=table: once(t), window=3)
    return {table: known[mechanism, table] for table in TABLES}


def check_both(exact: Any, mechanism: Any, questions: tuple[int, ...] | None, known: dict[Any, Any]) -> float:
    """All neighbors of both relations."""
    shares = []
    for unit in (ROW, REPLACED):
        claim = mechanism.guarantee(mechanism.sensitivity(unit))
        runs = {
            t: exact.Run({y: float(p) for y, p in found.law.items()}, float(found.unresolved), claim)
            for t, found in laws(mechanism, questions, known).items()
        }
        shares.append(exact.check(pairs_of(runs, unit)))
    return min(shares)


KNOWN: dict[Any, Any] = {}
STRONG = mwem(select=dp.Exponential(rate=1))


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [mwem(), STRONG, mwem(select=dp.mechanisms.PermuteAndFlip(rate=0.5))])
def test_rounds_on_all_neighbors(exact: Any, mechanism: Any) -> None:
    assert check_both(exact, mechanism, None, KNOWN) > 0.02


@pytest.mark.slow
def test_rounds_with_gaussian_noise(exact: Any) -> None:
    check_both(exact, mwem(noise=dp.Gaussian(stddev=Fraction(4, 5), step=1)), None, KNOWN)


def test_the_door_claims_the_same(exact: Any) -> None:
    run = exact.run(mwem(), [0], mwem().sensitivity(ROW), window=1, shown=lambda v: v["measured"])
    assert run.claim == mwem().guarantee()


def mutate(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, old: str, new: str) -> None:
    source = textwrap.dedent(inspect.getsource(getattr(owner, name)))
    assert source.count(old) == 1, f"{old!r} is not in {name}"
    space = dict(vars(sys.modules[owner.__module__]))
    exec(source.replace(old, new), space)
    monkeypatch.setattr(owner, name, space[name])


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("_measure", "self.noise._draw(int(truth[index]))", "int(truth[index])"),
        ("_measure", "self.noise._draw(int(truth[index]))", "self.noise._draw(10 * int(truth[index]))"),
        ("_measure", "Fraction(1, FINE)", "Fraction(8, FINE)"),
        ("guarantee", "[chosen, counted]", "[chosen]"),
        ("guarantee", "[chosen, counted]", "[counted]"),
        ("guarantee", "(self.rounds + 1)", "self.rounds"),
    ],
)
def test_mutants_of_rounds(exact: Any, monkeypatch: pytest.MonkeyPatch, name: str, old: str, new: str) -> None:
    """What is drawn is drawn again by the mutant; where the claim was changed, the laws are those from above."""
    for mechanism in (mwem(), STRONG):
        laws(mechanism, None, KNOWN)
    mutate(monkeypatch, MultiplicativeWeights, name, old, new)
    known = KNOWN if name == "guarantee" else {}
    exact.killed(lambda: [check_both(exact, m, None, known) for m in (STRONG, mwem())])


def test_what_is_charged() -> None:
    m = mwem(rounds=9, select=dp.Exponential(rate=0.05), noise=dp.Gaussian(stddev=20, step=1))
    claim = m.guarantee()
    assert claim.rho() == pytest.approx(10 * (0.1**2 / 8 + 1 / 800))
    pure = mwem(
        rounds=9, select=dp.mechanisms.PermuteAndFlip(rate=0.05), noise=dp.Laplace(scale=20, step=1)
    ).guarantee()
    assert pure.largest_loss == 10 * (Fraction(1, 10) + Fraction(1, 20))
    three = mwem().sensitivity(dp.person("id"), 3)
    assert mwem(rounds=9).guarantee(three).largest_loss == 10 * 3 * 3


@pytest.mark.parametrize(
    "promise", [dp.Pure(epsilon=1), dp.ZeroConcentrated(rho=0.02), dp.Approx(epsilon=1, delta=1e-6)], ids=str
)
def test_calibration(promise: dp.Guarantee) -> None:
    m = MultiplicativeWeights.for_guarantee(promise, workload=WAVES, size=20_000, rounds=8)
    claim = m.guarantee(m.sensitivity(ROW))
    if isinstance(promise, dp.ZeroConcentrated):
        assert 0.0199 < claim.rho() <= 0.02 * (1 + 1e-9)
    else:
        delta = promise.delta
        assert 0.999 < claim.epsilon_at(delta=delta) <= 1 + 1e-9
    usual = MultiplicativeWeights.for_guarantee(dp.Pure(epsilon=1), workload=WAVES, size=20_000)
    assert usual.rounds == int(20_000 ** (2 / 3) / 20)


@pytest.mark.slow
def test_it_learns_and_says_how_well() -> None:
    """[L3.CQ], every query of the class at once.

    40 runs: `within` may fail in 5% of them (more than 11 failures have probability below 1e-6).
    """
    truth = WAVES.answers(PEOPLE)
    m = MultiplicativeWeights.for_guarantee(dp.ZeroConcentrated(rho=0.02), workload=WAVES, size=20_000, rounds=10)
    uniform = np.abs(truth - WAVES.answers(histogram=np.full(64, 20_000 / 64))).max()
    missed, errors = 0, []
    for _ in range(40):
        value = dp.release(PEOPLE, m).value
        error = np.abs(value["answers"] - truth).max()
        missed += error > value["within"]
        errors.append(error)
        assert value["histogram"].sum() == pytest.approx(20_000)
        assert len(value["measured"]) == 11
    assert missed <= 11
    assert np.median(errors) < uniform / 10
    assert m.error(0.95).amount is None
    assert "within" in m.error(0.95).reason


@pytest.mark.slow
def test_the_theorem() -> None:
    """Cautious runs keep the error that is known in advance, without which it is 10,000 rows."""
    truth = WAVES.answers(PEOPLE)
    m = replace(
        MultiplicativeWeights.for_guarantee(dp.ZeroConcentrated(rho=1), workload=WAVES, size=20_000, rounds=60),
        cautious=True,
    )
    amount = float(m.error(0.95))
    lost = math.log(64 * 60 / 0.025) / float(m.select.rate) + 1 / 16
    noise = float(m.noise.error(0.975, values=60))
    assert amount == pytest.approx(lost + 2 * noise + 0.5 + 20_000 * math.sqrt(math.log(64) / 120))
    assert amount < 5000
    for _ in range(3):
        assert np.abs(dp.release(PEOPLE, m).value["answers"] - truth).max() <= amount
    assert "confidence" in m.error(0.99).reason


def relative_entropy(truth: np.ndarray, histogram: np.ndarray) -> float:
    p, q = truth / truth.sum(), histogram / histogram.sum()
    return float((p[p > 0] * np.log(p[p > 0] / q[p > 0])).sum())


def test_an_update_never_leads_away_from_the_truth() -> None:
    """With the noise within the margin, the entropy falls by at least 2((t−a)/n)²."""
    rng = np.random.default_rng(8)
    domain = Domain({"x": 6})
    for _ in range(300):
        truth = rng.multinomial(50, rng.dirichlet(np.full(6, 0.5)))
        weights = Weights(Workload.marginals(domain, 1), 50)
        weights.histogram = 50 * rng.dirichlet(np.ones(6)) + 1e-9
        inside = rng.random(6) < 0.5
        margin = float(rng.integers(0, 12))
        measured = int(truth[inside].sum()) + int(rng.integers(-margin, margin + 1))
        before, own = relative_entropy(truth, weights.histogram), weights.answer(inside)
        moved = weights.update(inside, measured, max(margin, 0.5))
        drop = before - relative_entropy(truth, weights.histogram)
        assert drop >= 2 * ((weights.answer(inside) - own) / weights.histogram.sum()) ** 2 - 1e-6
        assert moved or abs(drop) < 1e-12


def test_one_row_moves_an_error_by_at_most_sixteen_sixteenths() -> None:
    own = np.linspace(-1, 8, 1000)
    for true in range(6):
        assert np.abs(row_error(true + 1, own) - row_error(true, own)).max() == 16


def test_edges_of_rounds() -> None:
    one = Workload.marginals(Domain({"x": ("only",)}), 1)
    value = dp.release([], mwem(workload=one)).value
    assert value["histogram"].tolist() == [2.0]
    with testing.no_noise():
        exactly = mwem(workload=WAVES, size=4, rounds=30, select=dp.Exponential(rate=1))
        found = dp.release([5, 5, 9, 60], exactly).value
    assert np.abs(found["answers"] - WAVES.answers([5, 5, 9, 60])).max() <= 1.5
    again = dp.Ledger.open(":memory:", protects=ROW, limit=dp.Pure(epsilon=10))
    kept = dp.release([0, 1], mwem(), ledger=again, key="k")
    assert dp.release([0, 1], mwem(), ledger=again, key="k").value["measured"] == kept.value["measured"]


# --- online -------------------------------------------------------------------------------------------


LOUD = online(
    test=dp.mechanisms.AboveThreshold(threshold=0, threshold_scale=HALF.scale, answer_scale=HALF.scale, step=1)
)
SHARP = replace(LOUD, noise=dp.Laplace(scale=Fraction(1, 8), step=1))


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [online(), LOUD, SHARP])
def test_a_stream_on_all_neighbors(exact: Any, mechanism: Any) -> None:
    assert check_both(exact, mechanism, (0,), KNOWN) > 0.02


@pytest.mark.slow
def test_two_questions_and_two_updates_on_neighbors(exact: Any) -> None:
    test = dp.mechanisms.AboveThreshold(
        threshold=1, threshold_scale=Fraction(1, 4), answer_scale=Fraction(1, 4), step=1
    )
    twice = online(updates=2, test=test, noise=dp.Laplace(scale=Fraction(1, 4), step=1))
    runs = [exact.run(twice, ([0] * n, [0, 1]), 1, window=1, shown=lambda v: v["answers"]) for n in (0, 1)]
    exact.check([tuple(runs)])


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("_draw", "self.noise._draw(session.true)", "session.true"),
        ("_draw", "self.noise._draw(session.true)", "self.noise._draw(10 * session.true)"),
        ("guarantee", "[tested, self.noise.guarantee(one_count(bound))]", "[tested]"),
        ("guarantee", "[tested, self.noise.guarantee(one_count(bound))]", "[self.noise.guarantee(one_count(bound))]"),
    ],
)
def test_mutants_online(exact: Any, monkeypatch: pytest.MonkeyPatch, name: str, old: str, new: str) -> None:
    for mechanism in (LOUD, SHARP):
        laws(mechanism, (0,), KNOWN)
    mutate(monkeypatch, OnlineMultiplicativeWeights, name, old, new)
    known = KNOWN if name == "guarantee" else {}
    exact.killed(lambda: [check_both(exact, m, (0,), known) for m in (LOUD, SHARP)])


def test_mutant_that_does_not_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    mutate(monkeypatch, OnlineMultiplicativeWeights, "_draw", "range(self.updates)", "range(99)")
    with pytest.raises(AssertionError):
        test_it_stops_after_its_allowance()


def test_the_questions_may_follow_the_answers() -> None:
    """A generator is sent each answer, and one charge covers all of them."""
    heard: list[Any] = []

    def bisect() -> Iterator[int]:
        low, high = 0, 63
        while low < high:
            middle = (low + high) // 2
            heard.append((yield middle))
            low, high = (low, middle) if heard[-1] >= 10_000 else (middle + 1, high)

    ledger = dp.Ledger.open(":memory:", protects=ROW, limit=dp.Pure(epsilon=1))
    m = OnlineMultiplicativeWeights.for_guarantee(
        dp.Pure(epsilon=1), workload=WAVES, size=20_000, questions=6, updates=6, threshold=1500
    )
    value = dp.release((PEOPLE, bisect()), m, ledger=ledger).value
    assert len(ledger.entries()) == 1
    assert value["answers"][: len(heard)] == heard
    assert len(value["answers"]) == 6
    assert 0 < len(value["measured"]) <= 6


def test_a_stream_is_answered_within_its_error() -> None:
    truth, questions = WAVES.answers(PEOPLE), list(range(64)) * 3
    m = OnlineMultiplicativeWeights.for_guarantee(dp.Pure(epsilon=10), workload=WAVES, size=20_000, questions=192)
    assert m.guarantee().largest_loss == pytest.approx(10)
    amount = float(m.error(0.95, questions=192))
    assert amount < 10_000
    found = dp.release((PEOPLE, questions), m)
    assert not found.value["stopped"]
    assert len(found.value["answers"]) == 192
    assert np.abs(np.array(found.value["answers"]) - truth[questions]).max() <= amount
    assert float(found.error(0.95)) == amount


def test_it_stops_after_its_allowance() -> None:
    m = OnlineMultiplicativeWeights.for_guarantee(
        dp.Pure(epsilon=4), workload=WAVES, size=20_000, questions=500, updates=3, threshold=500
    )
    tables = [np.arange(64) <= i for i in range(64)]
    value = dp.release((PEOPLE, tables), m).value
    assert value["stopped"]
    assert len(value["measured"]) == 3
    assert value["measured"][-1] == len(value["answers"]) - 1 < 63
    with testing.no_noise():
        all_three = dp.release((PEOPLE, [10, 20, 25]), m).value
    assert all_three["answers"] == WAVES.answers(PEOPLE)[[10, 20, 25]].tolist()
    assert not all_three["stopped"]
    assert dp.release((PEOPLE, []), m).value["answers"] == []


WIDE = Workload.marginals(Domain({f"c{i}": 10 for i in range(9)}), 1)


@pytest.mark.parametrize(
    "bad",
    [
        lambda: mwem(workload="x"),
        lambda: mwem(workload=WIDE),
        lambda: mwem(size=0),
        lambda: mwem(rounds=0),
        lambda: mwem(passes=0),
        lambda: mwem(select=dp.NoisyArgmax(scale=1)),
        lambda: mwem(select=dp.Exponential(rate=1, choices=("a", "b"))),
        lambda: mwem(noise=dp.Exponential(rate=1)),
        lambda: mwem(confidence=1),
        lambda: mwem().guarantee(0),
        lambda: online(updates=0),
        lambda: online(test=dp.Laplace(scale=1)),
        lambda: online(noise=dp.Gaussian(stddev=1)),
        lambda: online(workload=WIDE),
        lambda: OnlineMultiplicativeWeights.for_guarantee(
            dp.ZeroConcentrated(rho=1), workload=TWO, size=2, questions=1
        ),
        lambda: dp.release(["secret"], online()),
        lambda: dp.release(([0], [[True]]), online()),
        lambda: dp.release(([0], [7]), online()),
        lambda: dp.release(([0], ["secret"]), online()),
    ],
)
def test_bad_input(bad: Any) -> None:
    with pytest.raises(dp.InvalidArgument) as caught:
        bad()
    assert "secret" not in str(caught.value)
