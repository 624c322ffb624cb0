"""The analysis of variance and rank tests: level and power on simulated releases, and their release."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import discreet as dp
from discreet import testing
from discreet.mechanisms.quantiles.rank_scores import POINTS, RankScores
from discreet.queries.shares import WHOLE
from discreet.stats.group_methods import _groups_of
from discreet.stats.group_offers import smallest_gap
from discreet.stats.inference.equal_means import EqualMeans
from discreet.stats.inference.means import DifferenceOf
from discreet.stats.inference.noisy_shares import Noise, NoisyShares

from ..refusing import refuses

PAIRS = ((0, 0), (0, 1), (1, 1))


def released(rng: Any, groups: list[Any], scale: float) -> NoisyShares:
    """What is released of groups of numbers in [0, 1], with simulated noise."""
    sums = [[((1 - t) ** 2).sum(), 2 * (t * (1 - t)).sum(), (t**2).sum()] for t in groups]
    numbers = np.concatenate(sums) + rng.laplace(0, scale, 3 * len(groups))
    pairs = tuple((2 * g + v, 2 * g + w) for g in range(len(groups)) for v, w in PAIRS)
    return NoisyShares(numbers, pairs, 2 * len(groups), Noise(laplace=scale))


def p_of_anova(rng: Any, groups: list[Any], scale: float) -> float:
    return EqualMeans(_groups_of(released(rng, groups, scale), len(groups)), 199).tested[1]


def even(rng: Any, size: int) -> Any:
    return np.clip(0.5 + 0.15 * rng.normal(size=size), 0, 1)


def skewed(rng: Any, size: int) -> Any:
    return np.clip(0.08 * rng.gamma(1, 1, size), 0, 1)


@pytest.mark.slow
@pytest.mark.parametrize("law", [even, skewed])
@pytest.mark.parametrize(("size", "epsilon"), [(300, 0.5), (300, 5), (2000, 0.2)])
def test_the_level_of_anova_holds_with_unequal_sizes(law: Callable[..., Any], size: int, epsilon: float) -> None:
    """300 runs: with a level of 5% more than 11% has a probability below 2e-5."""
    rng = np.random.default_rng(size)
    p = [p_of_anova(rng, [law(rng, int(size * part)) for part in (0.5, 0.3, 0.2)], 1 / epsilon) for _ in range(300)]
    assert np.mean(np.array(p) <= 0.05) < 0.11


@pytest.mark.slow
def test_anova_holds_if_variances_differ_and_if_a_group_is_empty() -> None:
    rng = np.random.default_rng(3)
    p = [
        p_of_anova(rng, [0.5 + d * rng.normal(size=n) for n, d in ((600, 0.02), (100, 0.15), (60, 0.15))], 1.0)
        for _ in range(300)
    ]
    assert np.mean(np.array(p) <= 0.05) < 0.11
    empty = [p_of_anova(rng, [even(rng, 40), np.zeros(0), even(rng, 10)], 2.0) for _ in range(5)]
    assert min(empty) > 0.05


def test_anova_with_little_noise_is_close_to_welchs() -> None:
    rng = np.random.default_rng(5)
    groups = [even(rng, 400), even(rng, 300) + 0.02, even(rng, 500) + 0.02]
    shares = released(rng, groups, 1e-3)
    statistic, p = EqualMeans(_groups_of(shares, 3)).tested
    weights = np.array([len(g) / g.var(ddof=1) for g in groups])
    means = np.array([g.mean() for g in groups])
    welch = (weights * (means - (weights * means).sum() / weights.sum()) ** 2).sum()
    assert statistic == pytest.approx(welch, rel=0.03)
    assert p == pytest.approx(stats.chi2.sf(welch, 2), abs=0.02)


# --- ranks --------------------------------------------------------------------------------------------------------


def test_scores_are_midranks_of_all_values() -> None:
    made = RankScores.for_guarantee(dp.Pure(epsilon=1), groups=2, unit=dp.row())
    values = np.array([0.1, 0.1, 0.3, 0.9])
    bins = (values * POINTS).astype(int)
    scores = made.scores_from(np.cumsum(np.bincount(bins, minlength=POINTS)))[bins]
    assert scores == pytest.approx((stats.rankdata(values) - 0.5) / 4)
    assert made.scores_from(np.full(POINTS, -5.0)) == pytest.approx((np.arange(POINTS) + 0.5) / POINTS)


def test_what_is_released_are_products_of_scores() -> None:
    rng = np.random.default_rng(2)
    parts, group = rng.random(500), rng.integers(0, 3, 500)
    made = RankScores.for_guarantee(dp.Pure(epsilon=1), groups=3, unit=dp.row())
    with testing.no_noise():
        found = made._draw((np.append(parts, np.nan), np.append(group, 1)))
    scores = (stats.rankdata((parts * POINTS).astype(int)) - 0.5) / 500
    for g in range(3):
        own = scores[group == g]
        expected = [((1 - own) ** 2).sum(), 2 * (own * (1 - own)).sum(), (own**2).sum()]
        assert found[3 * g : 3 * g + 3] == pytest.approx(expected, abs=500 / WHOLE * 4)


@pytest.mark.parametrize("unit", [dp.row(), dp.row(neighbors="replace"), dp.person("who")], ids=str)
@pytest.mark.parametrize("allowed", [dp.Pure(epsilon=1), dp.Approx(epsilon=1, delta=1e-6)], ids=str)
def test_both_draws_together_keep_what_is_allowed(unit: Any, allowed: Any) -> None:
    made = RankScores.for_guarantee(allowed, groups=2, unit=unit)
    guarantee = made.guarantee()
    assert guarantee.epsilon_at(delta=float(getattr(allowed, "delta", 0))) <= 1 + 1e-9
    tree, rest = made.tree.guarantee(made.tree.sensitivity(unit)), guarantee.largest_loss
    assert float(tree.largest_loss or 9) == pytest.approx(0.2, rel=1e-2)
    if rest is not None:
        assert float(rest) == pytest.approx(1, rel=1e-2)


def ranked(rng: Any, first: Any, second: Any, epsilon: float) -> float:
    """The p-value of a Mann–Whitney test, with simulated noise: of a histogram in 64 parts, and of the products."""
    both = np.concatenate([first, second])
    bins = np.clip((both * 64).astype(int), 0, 63)
    counts = np.maximum(np.bincount(bins, minlength=64) + rng.laplace(0, 5 / epsilon, 64), 0).cumsum()
    scores = ((np.append(0, counts[:-1]) + counts) / 2 / max(counts[-1], 1))[bins]
    shares = released(rng, [scores[: len(first)], scores[len(first) :]], 1.25 / epsilon)
    return float(DifferenceOf(*_groups_of(shares, 2)).p_of_gap(0.0))


@pytest.mark.slow
@pytest.mark.parametrize(("size", "epsilon"), [(60, 5), (500, 0.5)])
def test_the_level_of_ranks_holds_and_they_have_power(size: int, epsilon: float) -> None:
    rng = np.random.default_rng(8)
    p = np.array([ranked(rng, skewed(rng, size), skewed(rng, size), epsilon) for _ in range(200)])
    assert np.mean(p <= 0.05) < 0.125  # 200 runs at 5%: probability below 2e-5
    other = np.array([ranked(rng, skewed(rng, 1000), 1.3 * skewed(rng, 1000), 1) for _ in range(20)])
    assert np.mean(other <= 0.05) > 0.7


# --- through the door ---------------------------------------------------------------------------------------------


def visits(rows: int = 2000) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    treated, city = rng.random(rows) < 0.5, rng.choice(["Acre", "Bled", "Cork"], rows)
    before = rng.gamma(2, 100, rows)
    return {
        "who": [f"p{k // 2}" for k in range(rows)],
        "treated": treated.tolist(),
        "city": city.tolist(),
        "cost": before + 100 * treated,
        "before": before,
        "after": before + rng.normal(40, 50, rows),
        "level": rng.integers(1, 6, rows),
    }


CITY = {"city": ["Acre", "Bled", "Cork"]}
TESTS: dict[str, Callable[[Any], Any]] = {
    "anova": lambda s: s.anova("cost", by=CITY, between=(0, 1000), epsilon=1),
    "anova of two": lambda s: s.anova("cost", by="treated", between=(0, 1000), epsilon=1),
    "mann-whitney": lambda s: s.mann_whitney("cost", by="treated", between=(0, 5000), epsilon=1),
    "kruskal": lambda s: s.kruskal("cost", by=CITY, between=(0, 1000), epsilon=1),
    "kruskal of levels": lambda s: s.kruskal("level", by=CITY, between=(1, 5), epsilon=1),
    "wilcoxon": lambda s: s.wilcoxon("before", "after", between=(-500, 1500), epsilon=1),
    "wilcoxon of one": lambda s: s.wilcoxon("after", between=(-500, 1500), epsilon=1),
}
DIFFERENT = {"anova of two", "mann-whitney", "wilcoxon", "wilcoxon of one"}


@pytest.mark.some_quick(11)
@pytest.mark.parametrize("unit", [dp.row(), dp.row(neighbors="replace"), dp.person("who")], ids=str)
@pytest.mark.parametrize("name", TESTS)
def test_each_is_one_release(unit: Any, name: str) -> None:
    ledger = dp.Ledger.open(":memory:", protects=unit, limit=dp.Pure(epsilon=2))
    table = dp.table(pa.table(visits()), ledger=ledger, **({"rows_per_person": 2} if unit.column else {}))
    assert "ε = 1" in TESTS[name](table.explain.stats)
    assert ledger.count == 0
    found = TESTS[name](table.stats)
    assert ledger.count == 1
    assert ledger.spent["ε"] == pytest.approx(1)
    assert 0 <= found.p_value <= 1
    if name in DIFFERENT:
        assert found.p_value < 0.001
    assert found.hypothesis in str(found)
    assert "p-value" in found._repr_html_()


def test_without_noise_they_are_those_of_scipy() -> None:
    rows = visits()
    table = dp.table(pa.table(rows), ledger=dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Pure(epsilon=9)))
    treated, cost = np.array(rows["treated"]), rows["cost"]
    with testing.no_noise():
        larger = table.stats.mann_whitney("cost", by="treated", between=(0, 1500), epsilon=1)
        means = table.stats.anova("cost", by=CITY, between=(0, 2000), epsilon=1)
        signed = table.stats.wilcoxon("before", "after", between=(-500, 2000), epsilon=1)
    u = stats.mannwhitneyu(cost[treated], cost[~treated]).statistic / (treated.sum() * (~treated).sum())
    assert larger.statistic == pytest.approx(u, abs=0.002)
    for city, mean in means.value.items():
        assert mean == pytest.approx(cost[np.array(rows["city"]) == city].mean(), rel=1e-4)
    gap = rows["after"] - rows["before"]
    ranks = stats.rankdata(np.abs(gap)) / len(gap)
    assert signed.statistic == pytest.approx((np.sign(gap) * ranks).mean(), abs=0.005)


def test_one_sided_and_found_ranges() -> None:
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Pure(epsilon=20))
    table = dp.table(pa.table(visits()), ledger=ledger)
    more = table.stats.mann_whitney("cost", by="treated", between=(0, 1000), alternative="greater", epsilon=1)
    less = table.stats.mann_whitney("cost", by="treated", between=(0, 1000), alternative="less", epsilon=1)
    assert more.p_value < 0.01 < less.p_value
    assert table.stats.kruskal("cost", by=CITY, epsilon=1).found
    assert "clipped" in str(table.stats.anova("cost", by=CITY, epsilon=1))


def test_refusals() -> None:
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Pure(epsilon=20))
    tests = dp.table(pa.table(visits()), ledger=ledger).stats
    with refuses(dp.InvalidArgument, "wrong-shape"):
        tests.mann_whitney("cost", by=CITY, between=(0, 1), epsilon=1)
    with refuses(dp.InvalidArgument, "wrong-shape"):
        tests.anova("cost", by=["city", "treated"], between=(0, 1), epsilon=1)
    with refuses(dp.InvalidArgument, "choices-missing"):
        tests.kruskal("cost", by="city", between=(0, 1), epsilon=1)
    with refuses(dp.InvalidArgument, "duplicates"):
        tests.wilcoxon("cost", "cost", between=(0, 1), epsilon=1)
    with refuses(dp.InvalidArgument, "duplicates"):
        tests.anova("cost", by={"cost": [1.0, 2.0]}, between=(0, 1), epsilon=1)
    with refuses(dp.InvalidArgument, "not-an-option"):
        tests.wilcoxon("cost", between=(0, 1), alternative="more", epsilon=1)
    assert ledger.count == 0


@pytest.mark.parametrize("ranked", [False, True], ids=["means", "ranks"])
def test_what_is_foreseen_is_about_what_is_found(ranked: bool) -> None:
    """At the foreseen gap the power is about 80%, with 1,000 rows in two groups: 1,000 simulated releases."""
    epsilon, each, runs = 1.0, 500, 1000
    spread = (1 / 12) ** 0.5 if ranked else 1 / 6
    gap = smallest_gap(2 * each, 2, 2**0.5 / epsilon, spread)
    rng = np.random.default_rng(3)
    shape = (runs, 2, each)
    values = rng.random(shape) if ranked else 0.5 + rng.normal(size=shape) / 6
    values = np.clip(values + (np.arange(2) == 0)[:, None] * gap, 0, 1)
    products = np.stack([((1 - values) ** 2).sum(2), (2 * values * (1 - values)).sum(2), (values**2).sum(2)], 2)
    noisy = products.reshape(runs, 6) + rng.laplace(size=(runs, 6)) / epsilon
    query = RankScores.for_guarantee(dp.Pure(epsilon=1), groups=2, unit=dp.row()).query
    first, second = _groups_of(NoisyShares(noisy, query.pairs, query.places, Noise(laplace=1 / epsilon)), 2)
    assert 0.65 < np.mean(DifferenceOf(first, second).p_of_gap(0.0, "two-sided") <= 0.05) < 0.9


def test_explanations_say_what_would_be_found() -> None:
    table = dp.table(
        {"x": np.arange(60.0), "z": np.arange(60.0), "g": list("abc") * 20},
        ledger=dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Pure(epsilon=9)),
    )
    explained = table.explain.stats
    by, ends = {"g": ["a", "b", "c"]}, (0, 60)
    for text in (
        str(explained.anova("x", by=by, between=ends, epsilon=1)),
        str(explained.kruskal("x", by=by, between=ends, epsilon=1)),
        str(explained.mann_whitney("x", by={"g": ["a", "b"]}, between=ends, epsilon=1)),
        str(explained.wilcoxon("x", "z", between=ends, epsilon=1)),
    ):
        assert "costs ε = 1" in text
        assert text.count("power 80%") == 2
    assert "no difference is found" in str(explained.wilcoxon("x", "z", between=ends, epsilon=0.001))
