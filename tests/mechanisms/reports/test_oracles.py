"""Every oracle: its law enumerated exactly, its draws against that law, its counts against their formula.

Draws are real randomness. Each statistical test has a false-alarm rate of at most 1e-8, and there are under 100.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

import discreet as dp
from discreet import testing
from discreet.exact.rational import exactly, exp_bounds
from discreet.mechanisms.reports import bit_response
from discreet.mechanisms.reports.bit_response import SubsetSelection, UnaryResponse
from discreet.mechanisms.reports.frequency_oracle import DirectResponse, FrequencyOracle
from discreet.mechanisms.reports.geometric_response import HadamardResponse, ProjectiveResponse
from discreet.mechanisms.reports.local_hashing import LocalHashing
from discreet.mechanisms.reports.local_reports import coins, ratio_of
from discreet.mechanisms.reports.oracle_choice import ORACLES, TIE, best_oracle

from ...refusing import refuses

ALARM = 1e-8
kinds = pytest.mark.parametrize("kind", ORACLES, ids=lambda kind: kind.method)
PROMISES = [dp.Pure(epsilon=0.1), dp.Pure(epsilon=1), dp.Pure(epsilon=3), dp.Approx(epsilon=0.5, delta=0.1)]


def words_of(oracle: FrequencyOracle, reports: Any) -> list[Any]:
    """Reports as the outputs that `laws` lists."""
    if isinstance(oracle, UnaryResponse) or (isinstance(oracle, SubsetSelection) and not oracle.listed):
        bits = np.unpackbits(np.asarray(reports, dtype=np.uint8), axis=1, count=oracle.size)
        rows = bits.tolist()
        return [
            tuple(row) if isinstance(oracle, UnaryResponse) else tuple(np.flatnonzero(row).tolist()) for row in rows
        ]
    return [tuple(r) if isinstance(r, list) else r for r in np.asarray(reports).tolist()]


# --- privacy, exactly -------------------------------------------------------------------------------------------


@pytest.mark.some_quick(48)
@kinds
@pytest.mark.parametrize("size", [2, 3, 5, 8])
@pytest.mark.parametrize("promise", PROMISES, ids=str)
def test_the_law_keeps_the_promise_and_no_more(kind: type[FrequencyOracle], size: int, promise: dp.Approx) -> None:
    oracle = kind.for_guarantee(promise, size=size)
    found = dp.verify(oracle)
    assert found.exact_delta_at(promise.epsilon) <= exactly(promise.delta)
    assert found.exact_ratio_at(0) == exactly(oracle.odds)
    claimed = oracle.guarantee()
    assert (claimed.trust, claimed.protects) == ("local", dp.row(neighbors="replace"))
    for epsilon in (0.05, 0.3, 1.0):
        exact = float(found.exact_delta_at(epsilon))
        if kind is LocalHashing:  # some functions give two values one cell, and then nothing is told
            assert claimed.delta_at(epsilon=epsilon) >= exact
        else:
            assert claimed.delta_at(epsilon=epsilon) == pytest.approx(exact, rel=1e-9, abs=1e-15)


@kinds
@pytest.mark.parametrize("promise", PROMISES[1:], ids=str)
def test_two_percent_more_truth_is_caught(kind: type[FrequencyOracle], promise: dp.Approx) -> None:
    oracle = kind.for_guarantee(promise, size=5)
    louder = dp.verify(replace(oracle, odds=exactly(oracle.odds) * Fraction(102, 100)))
    if kind is LocalHashing and promise.delta:  # its enumeration is below its claim, which is for the worst function
        assert replace(oracle, odds=exactly(oracle.odds) * Fraction(102, 100)).guarantee().delta_at(
            epsilon=promise.epsilon
        ) > float(promise.delta)
    else:
        assert louder.exact_delta_at(promise.epsilon) > exactly(promise.delta)


@kinds
def test_the_support_is_that_of_the_law(kind: type[FrequencyOracle]) -> None:
    oracle = kind.for_guarantee(dp.Pure(epsilon=1), size=5)
    laws = oracle.laws()
    reports = list(laws[0])
    if isinstance(oracle, SubsetSelection | UnaryResponse):
        sets = [np.isin(range(5), r) if isinstance(oracle, SubsetSelection) else np.array(r) > 0 for r in reports]
        arrays = np.array(reports) if getattr(oracle, "listed", False) else np.packbits(np.array(sets), axis=1)
    else:
        arrays = np.array(reports)
    supports = [oracle.supported(oracle.valid(arrays[i : i + 1])) for i in range(len(reports))]
    truth, lie, both = oracle.support
    for x in range(5):
        for other in range(5):
            mass = sum((p for s, p in zip(supports, laws[x].values(), strict=True) if s[other]), Fraction(0))
            assert mass == (truth if x == other else lie)
    if kind is not LocalHashing:
        assert both == sum((p for s, p in zip(supports, laws[0].values(), strict=True) if s[0] and s[1]), Fraction(0))


def test_the_documents_response_is_the_direct_one() -> None:
    promise = dp.Approx(epsilon=1, delta=0.05)
    lie = DirectResponse.for_guarantee(promise, size=6).support.lie
    assert float(lie) == pytest.approx((1 - 0.05) / (5 + math.e), rel=1e-12)
    assert float(lie) == pytest.approx(float(dp.RandomizedResponse.for_guarantee(promise, choices=range(6)).lie))


@pytest.mark.parametrize("epsilon", [1e-18, 1e-9, 0.1, 1, 10, 41, 50, 1e6])
def test_odds_never_pass_e_to_the_epsilon(epsilon: float) -> None:
    assert 1 < ratio_of(epsilon) <= exp_bounds(min(exactly(epsilon), Fraction(60)))[1]


def test_odds_of_no_epsilon_are_even() -> None:
    assert ratio_of(0) == 1


# --- what is really drawn ---------------------------------------------------------------------------------------


@kinds
def test_the_draws_have_the_law_exactly(kind: type[FrequencyOracle]) -> None:
    oracle = kind.for_guarantee(dp.Pure(epsilon=1), size=3)
    laws = oracle.laws()
    for x in (0, 2):
        drawn = testing.exact_law(lambda x=x: words_of(oracle, oracle._draw(np.array([x])))[0])
        assert drawn.unresolved == 0
        assert drawn.law == {report: p for report, p in laws[x].items() if p}


@pytest.mark.some_quick(3)
@kinds
def test_many_draws_fit_the_law(kind: type[FrequencyOracle]) -> None:
    oracle = kind.for_guarantee(dp.Pure(epsilon=1), size=6 if kind is not LocalHashing else 5)
    law = oracle.laws()[4]
    drawn = words_of(oracle, oracle._draw(np.full(40_000, 4)))
    seen = dict.fromkeys(law, 0)
    for report in drawn:
        seen[report] += 1
    wanted = np.array([float(p) for p in law.values()]) * len(drawn)
    assert stats.chisquare(list(seen.values()), wanted).pvalue > ALARM


def test_sets_of_many_values_are_as_likely_as_sets_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bit_response, "_FEW", 0)
    oracle = SubsetSelection.for_guarantee(dp.Pure(epsilon=0.5), size=7)
    law = oracle.laws()[3]
    drawn = words_of(oracle, oracle._draw(np.full(40_000, 3)))
    seen = dict.fromkeys(law, 0)
    for report in drawn:
        seen[report] += 1
    assert stats.chisquare(list(seen.values()), np.array([float(p) for p in law.values()]) * 40_000).pvalue > ALARM


def test_listed_sets_have_the_law() -> None:
    oracle = SubsetSelection(size=9, odds=3, width=2)
    assert oracle.listed
    assert oracle.report_bits == 8
    law = oracle.laws()[5]
    seen = dict.fromkeys(law, 0)
    for report in words_of(oracle, oracle._draw(np.full(40_000, 5))):
        seen[report] += 1
    assert stats.chisquare(list(seen.values()), np.array([float(p) for p in law.values()]) * 40_000).pvalue > ALARM
    reports = oracle._draw(np.arange(9))
    assert (oracle.supported(reports) == [(reports == x).sum() for x in range(9)]).all()
    bad = np.array([[1, 1], [2, 1], [0, 9], [-1, 3], [0, 8]])
    assert oracle.valid(bad).tolist() == [[0, 8]]


def test_a_wrong_law_would_be_seen() -> None:
    """The test above can fail: draws with 10% larger odds do not fit."""
    oracle = DirectResponse.for_guarantee(dp.Pure(epsilon=1), size=6)
    louder = replace(oracle, odds=exactly(oracle.odds) * Fraction(11, 10))
    seen = np.bincount(louder._draw(np.full(40_000, 4)), minlength=6)
    wanted = np.array([float(p) for p in oracle.laws()[4].values()]) * 40_000
    assert stats.chisquare(seen, wanted).pvalue < ALARM


@pytest.mark.parametrize(
    "probability", [Fraction(1, 3), Fraction(1, 2**20), Fraction(65535, 65536), Fraction(1), Fraction(0)]
)
def test_cheap_coins_are_exact(probability: Fraction) -> None:
    heads = int(coins(probability, 2**21).sum())
    assert stats.binomtest(heads, 2**21, float(probability)).pvalue > ALARM


@kinds
@pytest.mark.parametrize("size", [40, 1000])
def test_support_is_as_likely_as_stated(kind: type[FrequencyOracle], size: int) -> None:
    """Detects a probability of support that is off by about 2.5% of a half with 20,000 reports."""
    oracle, users = kind.for_guarantee(dp.Pure(epsilon=1), size=size), 20_000
    supported = oracle.supported(oracle._draw(np.full(users, 7)))
    assert stats.binomtest(int(supported[7]), users, float(oracle.support.truth)).pvalue > ALARM
    for other in (0, 8, size - 1):
        assert stats.binomtest(int(supported[other]), users, float(oracle.support.lie)).pvalue > ALARM


@pytest.mark.some_quick(2)
@kinds
def test_counts_are_unbiased_with_the_stated_variance(kind: type[FrequencyOracle]) -> None:
    """300 surveys of 400 users: the mean within 6 standard errors, the spread inside chi-square's range."""
    oracle = kind.for_guarantee(dp.Pure(epsilon=1), size=12)
    data, runs = np.repeat([0, 1, 5, 11], [200, 100, 60, 40]), 300
    true = np.bincount(data, minlength=12)
    errors = np.array([oracle.counts(oracle.supported(oracle._draw(data)), 400) - true for _ in range(runs)])
    truth, lie = float(oracle.support.truth), float(oracle.support.lie)
    variance = (true * truth * (1 - truth) + (400 - true) * lie * (1 - lie)) / (truth - lie) ** 2
    assert (np.abs(errors.mean(axis=0)) < 6 * np.sqrt(variance / runs)).all()
    low, high = stats.chi2.ppf([ALARM / 12, 1 - ALARM / 12], runs)
    spread = (errors**2).sum(axis=0) / variance
    assert ((spread > low * 0.9) & (spread < high * 1.1)).all()
    assert oracle.variance * 400 == pytest.approx(variance.mean())  # whatever the data are


@pytest.mark.some_quick(2)
@kinds
def test_intervals_cover_all_counts_at_once(kind: type[FrequencyOracle]) -> None:
    oracle = kind.for_guarantee(dp.Pure(epsilon=1), size=6)
    data, missed, runs = np.repeat([0, 2, 5], [150, 40, 10]), 0, 100
    true = np.bincount(data, minlength=6)
    for _ in range(runs):
        ends = oracle.intervals(oracle.supported(oracle._draw(data)), 200, 0.8)
        missed += not ((ends[:, 0] <= true) & (true <= ends[:, 1])).all()
        assert (ends >= 0).all()
        assert (ends <= 200).all()
    assert missed <= stats.binom.isf(ALARM, runs, 0.2)


@kinds
def test_the_error_stated_before_holds(kind: type[FrequencyOracle]) -> None:
    oracle = kind.for_guarantee(dp.Pure(epsilon=2), size=6)
    data, missed, runs = np.repeat([0, 2, 5], [150, 40, 10]), 0, 100
    amount = float(oracle.error(0.8, records=200))
    for _ in range(runs):
        counts = oracle.counts(oracle.supported(oracle._draw(data)), 200)
        missed += (np.abs(counts - np.bincount(data, minlength=6)) > amount).any()
    assert missed <= stats.binom.isf(ALARM, runs, 0.2)


def test_both_ways_to_count_hashes_agree() -> None:
    oracle = LocalHashing.for_guarantee(dp.Pure(epsilon=1), size=50)
    reports = oracle._draw(np.arange(2000) % 50)
    slow = [sum(int(oracle._cell(a * x + b) == cell) for a, b, cell in reports.tolist()) for x in range(50)]
    assert oracle._supported_by_table(reports).tolist() == slow
    assert oracle.supported_among(reports, np.arange(50)).tolist() == slow


def test_two_limbs_are_hashed_exactly() -> None:
    oracle = LocalHashing.for_guarantee(dp.Pure(epsilon=1), size=2**60)
    values = np.array([0, 1, 2**30 - 1, 2**30, 2**59 + 12345, 2**60 - 1])
    edge = np.array([[oracle.prime - 1] * 3 + [2], [0, 0, 0, 0], [1, 0, oracle.prime - 1, 3]])
    reports = np.concatenate([oracle._draw(values), edge])
    slow = [
        sum(
            int(oracle._cell(a * (int(v) >> 30) + b * (int(v) % 2**30) + c) == cell)
            for a, b, c, cell in reports.tolist()
        )
        for v in values
    ]
    assert oracle.supported_among(reports, values).tolist() == slow


def test_a_point_has_one_place() -> None:
    oracle = ProjectiveResponse(size=31, odds=3, prime=5, dimension=3)
    places = np.arange(oracle.points)
    vectors = oracle._vectors(places)
    assert len({tuple(v) for v in vectors.tolist()}) == oracle.points == 31
    for factor in range(1, 5):
        assert (oracle._places(vectors * factor % 5) == places).all()


def test_the_hadamard_matrix_is_that_of_the_law() -> None:
    oracle = HadamardResponse.for_guarantee(dp.Pure(epsilon=1), size=7)
    assert oracle.order == 8
    law = oracle.laws()
    assert all(sum(p > Fraction(1, 8) for p in law[x].values()) == 4 for x in range(7))


# --- the choice -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1, 2, 4, 7])
@pytest.mark.parametrize("size", [2, 3, 10, 33, 200, 1024, 20_000])
def test_the_best_oracle_has_the_least_variance(epsilon: float, size: int) -> None:
    promise = dp.Pure(epsilon=epsilon)
    chosen = best_oracle(promise, size)
    every = [kind.for_guarantee(promise, size=size) for kind in ORACLES]
    least = min(one.variance for one in every)
    assert chosen.variance <= TIE * least
    assert all(one.report_bits >= chosen.report_bits for one in every if one.variance <= TIE * least)


@pytest.mark.parametrize(
    ("epsilon", "size", "method"), [(2, 3, "direct"), (1, 16, "subset"), (1, 1024, "projective"), (6, 1024, "subset")]
)
def test_who_wins_where(epsilon: float, size: int, method: str) -> None:
    assert best_oracle(dp.Pure(epsilon=epsilon), size).method == method


def test_subset_selection_is_never_worse() -> None:
    for epsilon in (0.2, 1, 3):
        for size in (2, 7, 64, 500):
            promise = dp.Pure(epsilon=epsilon)
            subset = SubsetSelection.for_guarantee(promise, size=size).variance
            assert all(subset <= kind.for_guarantee(promise, size=size).variance * (1 + 1e-9) for kind in ORACLES)


def test_variances_are_those_of_the_literature() -> None:
    def at_zero(oracle: FrequencyOracle) -> float:
        truth, lie = float(oracle.support.truth), float(oracle.support.lie)
        return lie * (1 - lie) / (truth - lie) ** 2

    one = dp.Pure(epsilon=1)
    e = math.e
    assert at_zero(DirectResponse.for_guarantee(one, size=16)) == pytest.approx((14 + e) / (e - 1) ** 2)
    assert at_zero(UnaryResponse.for_guarantee(one, size=16)) == pytest.approx(4 * e / (e - 1) ** 2)
    assert at_zero(HadamardResponse.for_guarantee(one, size=16)) == pytest.approx(((e + 1) / (e - 1)) ** 2)
    assert at_zero(SubsetSelection.for_guarantee(one, size=16)) == pytest.approx(3.11, abs=0.01)
    assert at_zero(LocalHashing.for_guarantee(one, size=1024)) == pytest.approx(3.69, abs=0.01)
    assert at_zero(ProjectiveResponse.for_guarantee(one, size=1024)) < 1.03 * 4 * e / (e - 1) ** 2


# --- bad arguments ----------------------------------------------------------------------------------------------


@kinds
def test_bad_parameters_are_refused(kind: type[FrequencyOracle]) -> None:
    with refuses(dp.InvalidArgument, "out-of-range"):
        kind(size=1, odds=2)
    for odds, code in (
        (1, "out-of-range"),
        (0, "out-of-range"),
        (-1, "out-of-range"),
        (float("nan"), "not-a-number"),
        (float("inf"), "not-a-number"),
        (1e19, "out-of-range"),
        ("2", "not-a-number"),
        (True, "not-a-number"),
    ):
        with refuses(dp.InvalidArgument, code):
            kind(size=4, odds=odds)  # type: ignore[arg-type]
    with refuses(dp.InvalidArgument, "guarantee-not-supported"):
        kind.for_guarantee(dp.ZeroConcentrated(rho=1), size=4)
    with refuses(dp.InvalidArgument, "too-large"):
        kind.for_guarantee(dp.Pure(epsilon=1), size=6000).laws()


def test_unknown_methods_are_refused() -> None:
    with refuses(dp.InvalidArgument, "not-an-option"):
        best_oracle(dp.Pure(epsilon=1), 5, "rappor")
    with refuses(dp.InvalidArgument, "too-large"):
        best_oracle(dp.Pure(epsilon=1), 2**21, "subset")
