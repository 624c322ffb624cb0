"""The k best: the exact law of peeling, what it costs on all neighbors, and which choice suits a ledger."""

from __future__ import annotations

import inspect
import math
import textwrap
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet import testing
from discreet.exact.rational import exp_minus_bits
from discreet.guarantees.rules.best_of import rule_for
from discreet.mechanisms.selection import top_k
from discreet.mechanisms.selection.top_k import TopK, chooser_for
from discreet.queries import Ratings

from ...refusing import refuses

ROW, REPLACED = dp.row(), dp.row(neighbors="replace")
KINDS = ("exponential", "permute and flip")


def weight(energy: Fraction) -> Fraction:
    return Fraction(exp_minus_bits(energy, 256)[0], 2**256)


@pytest.mark.parametrize("scores", [(0, 0, 0), (3, 1, 2, 0), (5, 5, 0, 1)])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_law_is_that_of_gumbel_noise_added_once(scores: tuple[int, ...], k: int) -> None:
    """P[i, j, …] = w_i/W · w_j/(W − w_i) · …, with w = exp(rate·score): the order of Gumbel-noised scores."""
    rate = Fraction(7, 10)
    found = testing.exact_law(lambda: dp.release(scores, TopK(k=k, rate=rate), sensitivity=1).value)
    assert set(found.law) == set(permutations(range(len(scores)), k))
    w = [weight(rate * (max(scores) - s)) for s in scores]
    for named, mass in found.law.items():
        expected, left = Fraction(1), sum(w)
        for i in named:
            expected, left = expected * w[i] / left, left - w[i]
        assert abs(mass - expected) < Fraction(1, 2**200)


def test_gumbel_noise_added_once_by_simulation() -> None:
    """4000 sets of Gumbel noise: each frequency within 5.5 standard deviations (false alarm below 1e-6)."""
    scores, k, draws = np.array([3, 1, 2, 0]), 2, 4000
    law = testing.exact_law(lambda: TopK(k=k, rate=0.7)._draw(scores)).law
    noisy = 0.7 * scores - np.log(-np.log(np.random.default_rng(11).random((draws, 4))))
    seen = [tuple(line) for line in np.argsort(-noisy, axis=1)[:, :k].tolist()]
    for named, mass in law.items():
        p = float(mass)
        assert abs(seen.count(named) - draws * p) <= 5.5 * math.sqrt(draws * p) + 5


def scores_check(exact: Any, kind: TopK, scores: list[tuple[int, ...]]) -> Any:
    runs = {s: exact.run(kind, np.array(s), 1) for s in scores}
    pairs = [
        (runs[a], runs[b])
        for a in scores
        for b in scores
        if a < b and max(abs(x - y) for x, y in zip(a, b, strict=True)) <= 1
    ]
    return exact.check(pairs, orders=(1.5, 2, 8))


SCORES = [*product((0, 1), repeat=3), (2, 1, 1), (1, 2, 2)]


@pytest.mark.some_quick(2)
@pytest.mark.parametrize("peel", KINDS)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_neighbors_by_scores(exact: Any, peel: Any, k: int) -> None:
    share = scores_check(exact, TopK(k=k, rate=0.5, peel=peel), SCORES)
    assert share > (0.2 if k < 3 else 0.1)


@pytest.mark.some_quick(1)
@pytest.mark.parametrize("unit", [ROW, REPLACED])
@pytest.mark.parametrize("peel", KINDS)
def test_neighbors_by_popularity(exact: Any, peel: Any, unit: dp.Unit) -> None:
    """[L3.POP]. All tables of up to two people over three items, empty ones too."""
    query, people = dp.queries.Popularity(("a", "b", "c")), ("", "a", "b", "ab", "abc")
    kind = TopK(k=2, rate=1, peel=peel, choices=("a", "b", "c"))
    bound = query.sensitivity(unit)
    runs = {t: exact.run(kind, query(list(t)), bound) for n in range(3) for t in product(people, repeat=n)}
    if unit is ROW:
        pairs = [(runs[t], runs[t[:-1]]) for t in runs if t]
    else:
        pairs = [(runs[t], runs[(*t[:-1], p)]) for t in runs if t for p in people if t[-1] < p]
    assert exact.check(pairs, orders=(1.5, 2, 8)) > 0.3


def mutate(monkeypatch: pytest.MonkeyPatch, name: str, old: str, new: str) -> None:
    source = textwrap.dedent(inspect.getsource(getattr(TopK, name)))
    assert source.count(old) == 1
    space = dict(vars(top_k))
    exec(source.replace(old, new), space)
    monkeypatch.setattr(TopK, name, space[name])


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("guarantee", "* self.k", "* 1"),
        ("guarantee", "* self.k", "* (self.k - 1)"),
        ("guarantee", "guarantee(sensitivity)", "guarantee(dp_half(sensitivity))"),
        ("_draw", "steps[left]", "2 * steps[left]"),
    ],
)
def test_mutants(exact: Any, monkeypatch: pytest.MonkeyPatch, name: str, old: str, new: str) -> None:
    monkeypatch.setattr(top_k, "dp_half", lambda s: Fraction(s) / 2, raising=False)
    mutate(monkeypatch, name, old, new)
    for peel in KINDS:
        exact.killed(lambda peel=peel: scores_check(exact, TopK(k=2, rate=1, peel=peel), SCORES))


def test_mutant_permute_and_flip_charged_by_its_range(exact: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dp.mechanisms.PermuteAndFlip, "guarantee", dp.Exponential.guarantee)
    exact.killed(
        lambda: scores_check(
            exact,
            TopK(k=2, rate=0.5, peel="permute and flip"),
            [(0, 0, 1), (1, -1, 0), *SCORES, (0, 0, 0), (1, -1, -1), (-1, 1, 1)],
        )
    )


def test_costs() -> None:
    peeled = TopK(k=10, rate=0.05).guarantee(1)
    assert peeled.largest_loss == 1
    assert peeled.rho() == pytest.approx(10 * 0.1**2 / 8)
    assert TopK(k=10, rate=0.05, peel="permute and flip").guarantee(1).rho() == pytest.approx(10 * 0.1**2 / 2)
    counts = dp.queries.Popularity(tuple("abcdefghijkl")).sensitivity(ROW)
    assert TopK(k=10, rate=0.1).guarantee(counts).largest_loss == 1  # monotone: half the price
    assert TopK.for_guarantee(dp.Pure(epsilon=1), k=4, sensitivity=counts).rate == 0.25


@pytest.mark.slow
def test_errors_hold_and_are_met() -> None:
    """[L3.EM-U]: the exact probability that someone named lacks more than the amount is at most what is left."""
    scores, k = (9, 7, 6, 3, 0), 2
    for peel in KINDS:
        made = TopK.for_error(4, k=k, candidates=5, confidence=0.8, peel=peel)
        assert 3.999 < float(made.error(0.8, candidates=5)) <= 4
        law = testing.exact_law(lambda m=made: dp.release(scores, m, sensitivity=1).value).law
        missed = sum(
            p for named, p in law.items() if any(scores[i] < scores[place] - 4 for place, i in enumerate(named))
        )
        assert missed <= Fraction(1, 5)
    assert TopK(k=2, rate=1).error(0.9).amount is None
    assert float(TopK(k=1, rate=1).error(0.9, candidates=7)) == float(dp.Exponential(rate=1).error(0.9, candidates=7))


def test_edges() -> None:
    assert dp.release([4], TopK(k=1, rate=1), sensitivity=1).value == (0,)
    assert sorted(dp.release([2, 2, 2], TopK(k=3, rate=1), sensitivity=1).value) == [0, 1, 2]
    with testing.no_noise():
        assert dp.release([1, 9, 5], TopK(k=2, rate=1, choices=("a", "b", "c")), sensitivity=1).value == ("b", "c")
        assert dp.release([1.5, float("nan"), 2.5], TopK(k=2, rate=1), sensitivity=1).value == (2, 0)
    for bad in (
        lambda: TopK(k=0, rate=1),
        lambda: TopK(k=2, rate=0),
        lambda: TopK(k=3, rate=1, choices=("a", "b")),
        lambda: TopK(k=1, rate=1, peel="gumbel"),
        lambda: dp.release([1], TopK(k=2, rate=1), sensitivity=1),
        lambda: dp.release([], TopK(k=1, rate=1), sensitivity=1),
        lambda: TopK(k=1, rate=1).guarantee(0),
        lambda: TopK(k=3, rate=1).error(0.9, candidates=2),
    ):
        with pytest.raises(dp.InvalidArgument):
            bad()


def test_the_chooser_follows_the_coordinate_that_binds() -> None:
    limit = dp.Approx(epsilon=1, delta=1e-6)
    for rule in ("basic", "advanced", "heterogeneous"):
        assert chooser_for(rule_for(limit, rule), times=50) is dp.mechanisms.PermuteAndFlip
    for rule in ("zcdp", "renyi"):
        assert chooser_for(rule_for(limit, rule), times=50) is dp.Exponential
    assert chooser_for(dp.Pure(epsilon=1), times=1000) is dp.mechanisms.PermuteAndFlip
    assert chooser_for(dp.ZeroConcentrated(rho=0.1)) is dp.Exponential
    # in the best of several boxes ε binds a few choices, and a divergence many
    assert chooser_for(limit, times=3) is dp.mechanisms.PermuteAndFlip
    assert chooser_for(limit, times=300) is dp.Exponential
    with refuses(dp.errors.IncompatibleGuarantee, "incompatible-guarantee"):
        chooser_for(dp.GaussianTradeoff(mu=1))
    with refuses(dp.InvalidArgument, "out-of-range"):
        chooser_for(limit, times=0)


def lost(kind: Any, rate: Fraction, scores: tuple[int, ...]) -> float:
    law = testing.exact_law(lambda: dp.release(scores, kind(rate=rate), sensitivity=1).value).law
    return float(sum(p * (max(scores) - scores[i]) for i, p in law.items()))


@pytest.mark.parametrize("scores", [(1, 0), (3, 2, 0, 0), (5, 5, 4, 1), (2, 0, 0, 0, 0, 0)])
def test_why(scores: tuple[int, ...]) -> None:
    """[L6.T7]: at equal ε permute-and-flip loses less; at equal ρ (twice the ε), the exponential mechanism does."""
    rate = Fraction(1, 2)
    assert lost(dp.mechanisms.PermuteAndFlip, rate, scores) <= lost(dp.Exponential, rate, scores)
    assert lost(dp.Exponential, 2 * rate, scores) <= lost(dp.mechanisms.PermuteAndFlip, rate, scores)


@pytest.mark.parametrize("between", [(0, 5), (1, 5), (-2, 1)])
def test_the_best_rated(exact: Any, between: tuple[int, int]) -> None:
    """Scores given by users: one of them, added, removed or replaced, moves each total by what is declared."""
    query = Ratings(("a", "b"), between)
    people: list[dict[str, Any]] = [{}, {"a": 9}, {"a": -9, "b": 1}, {"b": float("nan"), "a": 1}, {"b": 9, "a": 9}]
    for unit in (ROW, REPLACED):
        bound = query.sensitivity(unit)
        moved = [
            np.abs(query([p]).steps - query([o] if unit is REPLACED else []).steps).max()
            for p in people for o in people
        ]  # fmt: skip
        assert max(moved) == bound.exact
    assert Ratings(("a", "b"), (0, 5)).sensitivity(ROW).monotone
    assert not Ratings(("a", "b"), (-2, 1)).sensitivity(ROW).monotone
    best = dp.mechanisms.PermuteAndFlip(rate=Fraction(1, 5), choices=("a", "b"))
    runs = [exact.run(best, query([p]), query.sensitivity(ROW)) for p in [*people]]
    empty = exact.run(best, query([]), query.sensitivity(ROW))
    exact.check([(run, empty) for run in runs])
    assert query(np.array([[1.0, np.nan], [7, 0]])).steps.tolist() == [1 + between[1], max(0, between[0])]
    with refuses(dp.InvalidArgument, "wrong-shape"):
        query(np.zeros((2, 3)))
