"""The bounds themselves: exact intervals, honest splitting, sensible events."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import bdtr, bdtrc

from discreet.audit import Finding, delta_lower_bound, lower_bound
from discreet.audit.bounds import clopper_pearson
from discreet.audit.features import Event, OutputFeature, as_outputs, bins_of, edges_of, lowest_bit
from discreet.audit.power import quantile
from discreet.errors import InvalidArgument

from ..refusing import refuses


@pytest.mark.parametrize("trials", [1, 7, 1000, 100_000])
@pytest.mark.parametrize("miss", [0.3, 1e-3, 5e-10])
def test_clopper_pearson_is_exact(trials: int, miss: float) -> None:
    """At the low end, so many hits or more have probability `miss`; at the high end, so many or fewer."""
    hits = np.unique(np.linspace(0, trials, 9).astype(int))
    low, high = clopper_pearson(hits, trials, miss)
    for k, below, above in zip(hits.tolist(), low.tolist(), high.tolist(), strict=True):
        assert (below == 0) if k == 0 else math.isclose(float(bdtrc(k - 1, trials, below)), miss, rel_tol=1e-6)
        assert (above == 1) if k == trials else math.isclose(float(bdtr(k, trials, above)), miss, rel_tol=1e-6)
        assert below <= k / trials <= above


def test_false_alarms_are_as_rare_as_promised() -> None:
    """At confidence 0.9, randomized response at its claim fires in at most 10%: 100 runs, ≤ 27 (1e-6)."""
    random = np.random.default_rng(7)
    alarms = 0
    for _ in range(100):
        truth = random.random((2, 4000)) < 0.75
        alarms += lower_bound(truth[0], ~truth[1], confidence=0.9).epsilon > math.log(3)
    assert alarms <= 27


@pytest.mark.slow
def test_searching_many_events_finds_nothing_in_equal_samples() -> None:
    """The tested half had no say, so nothing is paid for a long search: 10% of 60 runs, ≤ 19 (1e-6)."""
    random = np.random.default_rng(8)
    alarms = sum(
        lower_bound(random.normal(size=(2000, 4)), random.normal(size=(2000, 4)), confidence=0.9).epsilon > 0
        for _ in range(60)
    )
    assert alarms <= 19


def test_delta_at_an_epsilon() -> None:
    random = np.random.default_rng(9)
    a, b = np.round(random.normal(size=(2, 200_000)) * 1024) / 1024
    truth = 0.38292  # 2Φ(1/2) − 1, the total variation of N(0,1) and N(1,1)
    found = delta_lower_bound(a, b + 1, epsilon=0, confidence=1 - 1e-8)
    assert 0.36 < found.delta < truth
    assert found.epsilon == 0
    assert delta_lower_bound(a, b + 1, epsilon=800).delta == 0
    assert delta_lower_bound(a, b, epsilon=0, confidence=1 - 1e-8).delta < 0.01


@pytest.mark.slow
def test_a_million_numbers_and_the_direction() -> None:
    random = np.random.default_rng(10)
    a, b = random.integers(0, 100, size=(2, 1_000_000))
    found = lower_bound(np.minimum(a, 49), b)
    assert found == lower_bound(np.minimum(a, 49), b)
    assert found.likelier in ("first", "second")
    assert found.epsilon > 9  # above 49 happens on the second alone
    assert isinstance(found, Finding)
    assert "the second neighbor" in str(found)


def test_tails_are_searched_far_out() -> None:
    """An event of probability 1e-3 that never happens on the other side proves ln(1e-3·n/…) > 3."""
    random = np.random.default_rng(11)
    a, b = random.random((2, 400_000))
    assert lower_bound(a * 0.999, b).epsilon > 2


def test_not_a_number_and_infinities() -> None:
    zeros = np.zeros(1000)
    for strange in (np.nan, np.inf, -np.inf):
        found = lower_bound(np.full(1000, strange), zeros)
        assert found.epsilon > 3
    assert "not a number" in lower_bound(np.where(np.arange(1000) % 3, np.nan, 0), zeros).event


def test_vectors_may_be_infinite_constant_or_of_different_lengths() -> None:
    strange = np.array([[np.inf, -np.inf, 1e308, 1e308], [np.nan, 1.0, 1e308, 1e308]] * 500)
    assert lower_bound(strange, np.zeros((1000, 4))).epsilon > 3
    assert lower_bound(strange, strange[::-1]).epsilon == 0
    assert lower_bound([(1, 2), (1,)] * 500, [(1,)] * 1000).epsilon > 2
    assert lower_bound([("a", 2)] * 1000, [("b", 2)] * 1000).epsilon > 3
    assert lower_bound([(1.5, 2)] * 1000, [(1.5, 2)] * 1000).epsilon == 0


def test_few_or_no_outputs_are_refused() -> None:
    for bad, code in (([], "empty"), ([1.0] * 7, "audit-too-few-outputs")):
        with refuses(InvalidArgument, code):
            lower_bound(bad, [1.0] * 100)
    with refuses(InvalidArgument, "wrong-type"):
        lower_bound(np.float64(3), [1.0] * 100)  # type: ignore[arg-type]
    with refuses(InvalidArgument, "out-of-range"):
        delta_lower_bound([1.0] * 100, [1.0] * 100, epsilon=-1)


def test_samples_become_numbers_vectors_or_things() -> None:
    assert as_outputs([1, 2.5, None]).dtype == np.float64
    assert as_outputs([np.zeros(3), np.ones(3)]).shape == (2, 3)
    assert as_outputs(np.zeros((4, 2, 3))).shape == (4, 6)
    assert as_outputs(["a", 1, [2]]).tolist() == ["a", 1, "[2]"]
    assert as_outputs([10**400, 1]).dtype == object
    assert as_outputs(np.array(["x", "y"])).dtype == object


def test_lowest_bit() -> None:
    values = np.array([1.0, -6.0, 2.0**-1074, 1 + 2.0**-52, 2.0**1000, 0.0, np.inf, np.nan])
    assert lowest_bit(values).tolist()[:6] == [0, 1, -1074, -52, 1000, np.inf]
    assert np.isnan(lowest_bit(values)[6:]).all()


def test_bins_hold_frequent_values_alone() -> None:
    values = np.concatenate([np.linspace(0, 1, 1000), np.full(50, 0.25)])
    feature = OutputFeature("the output", lambda x: x)
    edges = edges_of(values)
    at = bins_of(feature, edges, np.array([np.nextafter(0.25, 0), 0.25, np.nextafter(0.25, 1)]))
    assert len(set(at.tolist())) == 3
    chosen = np.zeros(len(edges) + 1, dtype=bool)
    chosen[at[1]] = True
    assert str(Event(feature, edges, chosen)) == "the output is 0.25"


def test_events_read_as_intervals() -> None:
    edges = np.array([0.0, np.nextafter(0.0, 1), 2.0, 5.0, np.nan])

    def words(*bins: int) -> str:
        return str(Event(OutputFeature("it", lambda x: x), edges, np.isin(np.arange(6), bins)))

    assert words(0) == "it is below 0"
    assert words(0, 1) == "it is at most 0"
    assert words(2) == "it is above 0 and below 2"
    assert words(3) == "it is at least 2 and below 5"
    assert words(4, 0) == "it is below 0 or at least 5"
    assert words(1, 5) == "it is 0 or not a number"
    assert words(*range(5)) == "it is anything"
    assert words() == "it is nothing"


def test_quantile_of_a_binomial() -> None:
    assert quantile(10, 0.5, 0.5) == 5
    assert quantile(1000, 1e-4, 0.995) == 1
