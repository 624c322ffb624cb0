"""Levels of tests and coverage of intervals over skewed, heavy-tailed, tiny and clustered data.

Every cell has by default 10,000 simulated samples and releases, with noise of the law that is drawn. Where a p-value is
itself simulated, it has 99 draws: its level is the same for any number of them. `--only anova` has one family alone.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import discreet as dp
from bench.report import line, machine, section, table
from discreet.mechanisms.quantiles.cumulative import CumulativeCounts
from discreet.queries.space import Integers
from discreet.stats.group_methods import _groups_of
from discreet.stats.inference.common_means import p_of_several, table_of
from discreet.stats.inference.correlations import NoisyCorrelation
from discreet.stats.inference.equal_means import EqualMeans
from discreet.stats.inference.means import DifferenceOf, MeanOf
from discreet.stats.inference.noisy_shares import Noise, NoisyShares
from discreet.stats.inference.tables_of_counts import (
    _LEAST_EVEN,
    NoiseOfCounts,
    distance,
    evened,
    fit_independent,
    fit_shares,
)
from discreet.stats.quantile_methods import QuantileOf
from discreet.stats.regression.likelihood import INFORMATION, score_parts
from discreet.stats.samples.dividing import pairs_of
from tests.stats.regression import regression_simulation as regressions
from tests.stats.regression.test_correlation import DESIGN as PAIR
from tests.stats.regression.test_likelihood import SLOPES, likelihood

Floats = Any
RUNS, DRAWS, CHUNK = 10_000, 99, 1_000
EPSILONS = (0.05, 0.5, 1.0, 5.0)
LEVELS = np.array([0.05, 0.01])
RNG = np.random.default_rng(28)
ABOUT = """tests under their hypothesis: how often the p-value is at most 5% / at most 1%. Intervals: how often 95% or
99% ones have the value of the population. Cells that miss by more than the binomial error (99%) are **marked**. Where
the noise is too large, nothing is said: p is 1 and intervals are infinite. Declared ranges clip heavy tails."""
Missed = Callable[[float, int], Iterator[Floats]]
"""For an ε and a number of runs, p-values or for each level whether it was missed."""


def normal(shape: Any) -> Floats:
    return np.clip(0.5 + 0.15 * RNG.normal(size=shape), 0, 1)


def skewed(shape: Any) -> Floats:
    return np.clip(0.1 * RNG.exponential(size=shape), 0, 1)


def heavy(shape: Any) -> Floats:
    return np.clip(0.5 + RNG.standard_t(2, shape) / 40, 0, 1)


def rare(shape: Any) -> Floats:
    return (RNG.random(shape) < 0.02) * 1.0


def ties(shape: Any) -> Floats:
    return np.clip(RNG.poisson(1.0, shape) / 10, 0, 1)


def products(values: Floats) -> Floats:
    return np.stack([((1 - values) ** 2).sum(-1), (2 * values * (1 - values)).sum(-1), (values**2).sum(-1)], -1)


def groups_from(exact: Floats, groups: int, scale: float) -> list[MeanOf]:
    """The means of groups, from exact products of their shares and Laplace noise."""
    pairs = tuple((2 * g + v, 2 * g + w) for g in range(groups) for v, w in ((0, 0), (0, 1), (1, 1)))
    noisy = exact + RNG.laplace(0, scale, exact.shape)
    return _groups_of(NoisyShares(noisy, pairs, 2 * groups, Noise(laplace=scale)), groups)


def only(group: MeanOf, some: Any) -> MeanOf:
    return replace(group, shares=replace(group.shares, numbers=group.shares.numbers[some]))


# --- χ² ---------------------------------------------------------------------------------------------------------


def whole_laplace(scale: float, shape: Any) -> Floats:
    q = 1 - np.exp(-1 / scale)
    return RNG.geometric(q, shape) - RNG.geometric(q, shape)


def at_least(seen: Floats, fit: Any, null: Floats, noise: NoiseOfCounts, draws: int) -> Floats:
    """How many of some simulated statistics are at least as large."""
    shape = (len(null), draws, *null.shape[1:])
    drawn = (RNG.poisson(np.broadcast_to(null[:, None], shape)) + whole_laplace(noise.laplace, shape)).astype(float)
    return (distance(drawn, fit(drawn), noise.variance) >= seen[:, None] * (1 - 1e-9)).sum(1)


def p_of_counts(counts: Floats, fit: Any, noise: NoiseOfCounts, even: bool) -> Floats:
    """p-values, exact where they are at most 5%: most others are clear after a few draws."""
    fitted = fit(counts)
    seen = distance(counts, fitted, noise.variance)
    nulls, asked = [fitted], [np.ones(len(counts), dtype=bool)]
    if even:
        more, part = evened(fitted, noise.variance)
        nulls, asked = [fitted, more], [asked[0], part.reshape(-1) > _LEAST_EVEN]
    found = np.zeros(len(counts))
    for null, wanted in zip(nulls, asked, strict=True):
        open_, first = np.flatnonzero(wanted & (found <= 0.05)), 19
        some = at_least(seen[open_], fit, null[open_], noise, first)
        found[open_[some > 4]] = 1.0
        left = open_[some <= 4]
        rest = at_least(seen[left], fit, null[left], noise, DRAWS - first) if len(left) else 0
        found[left] = np.maximum(found[left], (1 + some[some <= 4] + rest) / (DRAWS + 1))
    return found


def independence(shares: Floats, size: int) -> Missed:
    def drawn(epsilon: float, runs: int) -> Iterator[Floats]:
        noise = NoiseOfCounts(laplace=1 / epsilon)
        each = max(20, min(CHUNK, 2_000_000 // (80 * shares.size)))
        for _ in range(0, runs, each):
            counts = RNG.multinomial(size, shares.reshape(-1), size=each).reshape(each, *shares.shape)
            noisy = (counts + whole_laplace(1 / epsilon, counts.shape)).astype(float)
            yield p_of_counts(noisy, lambda one: fit_independent(one, noise.variance), noise, True)

    return drawn


def goodness(shares: Floats, size: int) -> Missed:
    def drawn(epsilon: float, runs: int) -> Iterator[Floats]:
        noise = NoiseOfCounts(laplace=1 / epsilon)
        for _ in range(0, runs, CHUNK):
            counts = RNG.multinomial(size, shares, size=CHUNK)[:, None]
            noisy = (counts + whole_laplace(1 / epsilon, counts.shape)).astype(float)
            yield p_of_counts(noisy, lambda one: fit_shares(one, shares[None], noise.variance), noise, False)

    return drawn


def falling(cells: int, power: float) -> Floats:
    weights = np.arange(1, cells + 1.0) ** -power
    return weights / weights.sum()


def hashed(values: int, power: float) -> Floats:
    """The shares of 16 groups into which values fall by chance."""
    return np.bincount(np.random.default_rng(4).integers(0, 16, values), falling(values, power), 16)


# --- means of groups, and ranks -----------------------------------------------------------------------------------


def p_of_equal(groups: list[MeanOf]) -> Floats:
    """p-values of the hypothesis that means are equal, exact where they are at most 5%."""
    runs, count = len(groups[0].shares.numbers), len(groups)
    known = np.all([group.size_is_known for group in groups], axis=0)
    found = np.ones(runs)
    for run in np.flatnonzero(known):
        found[run] = EqualMeans([only(group, run) for group in groups], DRAWS).tested[1]
    rest = np.flatnonzero(~known)
    if len(rest):  # the p-value is the largest for any common mean: most are large for the estimated one already
        some = [only(group, rest) for group in groups]
        sizes = np.maximum([group.size for group in some], 1.0)
        common = (sizes * [group.mean for group in some]).sum(0) / sizes.sum(0)
        least = count * np.min([group.p_of_mean(common) for group in some], axis=0)
        for run in rest[least <= 0.06]:
            found[run] = p_of_several([table_of(only(group, run), "two-sided") for group in groups])
    return found


def p_of_gap(groups: list[MeanOf]) -> Floats:
    """The same for two groups."""
    first, second = groups
    known = np.asarray(first.size_is_known & second.size_is_known)
    found = np.ones(len(known))
    if known.any():
        found[known] = DifferenceOf(only(first, known), only(second, known)).p_of_gap(np.zeros(int(known.sum())))
    rest = np.flatnonzero(~known)
    if len(rest):
        some = [only(group, rest) for group in groups]
        sizes = np.maximum([group.size for group in some], 1.0)
        common = (sizes * [group.mean for group in some]).sum(0) / sizes.sum(0)
        far = rest[2 * np.min([group.p_of_mean(common) for group in some], axis=0) <= 0.06]
        if len(far):
            found[far] = DifferenceOf(only(first, far), only(second, far)).p_of_gap(np.zeros(len(far)))
    return found


def compared(law: Any, sizes: tuple[int, ...], *, ranked: bool = False) -> Missed:
    """ANOVA or Kruskal–Wallis of several groups, `compare` or Mann–Whitney of two."""

    def drawn(epsilon: float, runs: int) -> Iterator[Floats]:
        scale = 1.25 / epsilon if ranked else 1 / epsilon
        for _ in range(0, runs, CHUNK):
            values = law((CHUNK, sum(sizes)))
            values = scores_of(values, epsilon) if ranked else values
            parts = np.split(values, np.cumsum(sizes)[:-1], axis=1)
            groups = groups_from(np.concatenate([products(part) for part in parts], -1), len(sizes), scale)
            yield p_of_gap(groups) if len(sizes) == 2 else p_of_equal(groups)

    return drawn


def scores_of(values: Floats, epsilon: float) -> Floats:
    """Scores from a noisy histogram in 64 parts. The mechanism has 4096 parts and a tree, with about the same error."""
    bins = np.clip((values * 64).astype(int), 0, 63)
    counts = np.stack([np.bincount(one, minlength=64) for one in bins]) + RNG.laplace(0, 5 / epsilon, (len(bins), 64))
    sums = np.maximum(counts, 0).cumsum(1)
    middle = (np.concatenate([np.zeros((len(bins), 1)), sums[:, :-1]], 1) + sums) / 2 / np.maximum(sums[:, -1:], 1e-9)
    return np.take_along_axis(middle, bins, 1)


def signed(law: Any, size: int) -> Missed:
    """Wilcoxon's signed ranks of values that are symmetric about 0."""

    def drawn(epsilon: float, runs: int) -> Iterator[Floats]:
        for _ in range(0, runs, CHUNK):
            values = law((CHUNK, size))
            scores = 0.5 + 0.5 * np.sign(values) * scores_of(np.abs(values), epsilon)
            (mean,) = groups_from(products(scores), 1, 1.25 / epsilon)
            yield mean.p_of_mean(np.full(CHUNK, 0.5))

    return drawn


def one_mean(law: Any, size: int, true: float, alternative: Any) -> Missed:
    def drawn(epsilon: float, runs: int) -> Iterator[Floats]:
        for _ in range(0, runs, CHUNK):
            (mean,) = groups_from(products(law((CHUNK, size))), 1, 1 / epsilon)
            yield mean.p_of_mean(np.full(CHUNK, true), alternative)

    return drawn


def clustered_anova(people: int) -> Missed:
    """Three groups. People have three rows, each in some group, with values that are alike."""
    pairs = pairs_of([[0, 1], [2, 3], [4, 5]], 6)

    def drawn(epsilon: float, runs: int) -> Iterator[Floats]:
        for _ in range(0, runs, CHUNK):
            own = np.clip(
                0.5 + 0.15 * RNG.normal(size=(CHUNK, people, 1)) + 0.05 * RNG.normal(size=(CHUNK, people, 3)), 0, 1
            )
            group = RNG.choice(3, size=own.shape, p=[0.6, 0.3, 0.1])
            units = np.zeros((CHUNK, people, 7))
            for g in range(3):
                units[..., 2 * g] = np.where(group == g, 1 - own, 0).sum(-1) / 3
                units[..., 2 * g + 1] = np.where(group == g, own, 0).sum(-1) / 3
            exact = np.stack([(units[..., v] * units[..., w]).sum(-1) * (1 + (v != w)) for v, w in pairs], -1)
            shares = NoisyShares(exact + RNG.laplace(0, 1 / epsilon, exact.shape), pairs, 7, Noise(laplace=1 / epsilon))
            places = np.arange(7)
            yield p_of_equal([
                MeanOf(shares, ((places // 2 == g) & (places < 6)) * 1.0, (places == 2 * g + 1) * 1.0) for g in range(3)
            ])  # fmt: skip

    return drawn


# --- intervals ----------------------------------------------------------------------------------------------------


def quantile(law: Any, true: float, share: float, size: int) -> Missed:
    """Of values on 0, 1, … 100."""

    def drawn(epsilon: float, runs: int) -> Iterator[Floats]:
        made = CumulativeCounts.for_guarantee(dp.Pure(epsilon=epsilon), space=Integers(0, 100), unit=dp.row())
        tree: Any = made.sums
        width = tree.branches**tree.levels
        missed = np.zeros((runs, 2), dtype=bool)
        for run in range(runs):
            counts = np.bincount(np.clip(np.rint(law(size)), 0, 100).astype(int), minlength=width)
            noisy = []
            while len(counts) > 1:
                noisy.append(counts + whole_laplace(float(tree.scale), len(counts)).astype(float))
                counts = counts.reshape(-1, tree.branches).sum(1)
            found = QuantileOf(made.read(np.cumsum(tree._reconciled(noisy))[: tree.points]), share, 0.0, 1.0)
            for place, level in enumerate(LEVELS):
                low, high = found.interval(1 - level)
                missed[run, place] = not low <= true <= high
        yield missed

    return drawn


def pair(kind: str, rows: int) -> list[Floats]:
    """Two columns within −1 and 1."""
    if kind == "two-point":
        first = np.where(RNG.random(rows) < 0.1, 1.0, -1.0)
        return [first, np.where(RNG.random(rows) < 0.8, first, -1.0)]
    draw = {"skewed": lambda: RNG.exponential(1, rows) - 4, "heavy": lambda: RNG.standard_t(3, rows)}.get(
        kind, lambda: RNG.normal(size=rows)
    )
    common, own = draw(), 0.05 if kind == "close to 1" else 1.0
    return [np.clip(0.2 * (common + own * draw()), -1, 1) for _ in range(2)]


def correlation(kind: str, rows: int) -> Missed:
    true = float(np.corrcoef(*pair(kind, 4_000_000))[0, 1])
    layout = regressions.best_layout(PAIR, "L1", dp.row(), 1)

    def drawn(epsilon: float, runs: int) -> Iterator[Floats]:
        scale, second = float(layout.query.sensitivity(dp.row()).exact) / (0.75 * epsilon), 4 / epsilon
        for _ in range(0, runs, CHUNK):
            samples = [pair(kind, rows) for _ in range(CHUNK)]
            numbers = np.stack([regressions.exact_numbers(layout, codes) for codes in samples])
            numbers = numbers + RNG.laplace(0, scale, numbers.shape)
            ends = np.array([[-1, 1], [-1, 1.0]])
            model = NoisyCorrelation(numbers, layout.matrices, Noise(laplace=scale), ends, Noise(laplace=second))
            squares = np.zeros(CHUNK)
            for run in np.flatnonzero(model.is_known):
                scores = replace(model, numbers=numbers[run]).scores(PAIR.values(samples[run]))
                squares[run] = (np.clip(scores, -1, 1) ** 2).sum()
            model = replace(model, squares=squares + RNG.laplace(0, second, CHUNK))
            yield np.stack([model.p_of(true, level) <= level for level in LEVELS], 1)

    return drawn


def least_squares(kind: str, rows: int) -> Missed:
    """The slope and the coefficient of a condition: the worse of both."""

    def drawn(epsilon: float, runs: int) -> Iterator[Floats]:
        for _ in range(0, runs, CHUNK):
            seed = int(RNG.integers(2**31))
            model = regressions.simulated(kind, rows, epsilon, runs=CHUNK, seed=seed, robust=True)
            each = [[model.p_of(at, regressions.SLOPES[at], level) <= level for level in LEVELS] for at in (1, 3)]
            yield np.moveaxis(np.array(each), -1, 0)

    return drawn


def by_likelihood(family: Any, rows: int, *, uneven: bool = False) -> Missed:
    """All three coefficients: the worst of them. Uneven: one row in 20 has the condition, and the number is skewed."""

    def drawn(epsilon: float, runs: int) -> Iterator[Floats]:
        made = likelihood(family, epsilon)
        layout, mechanism, _ = made._chosen
        noises = [Noise.of(noise) for noise in mechanism.noises]
        weights = np.array([1.0] * made.features.size + [float(INFORMATION)] * len(made.features.pairs))
        units = made.design.units / made.design.outcome_unit
        missed = np.zeros((runs, 3, 2), dtype=bool)
        last, starts = [], []
        for _ in range(runs):
            x, t = RNG.uniform(-1, 1, rows), (RNG.random(rows) < (0.05 if uneven else 0.4)) * 1.0
            x = np.clip(-1 + 0.4 * RNG.exponential(size=rows), -1, 1) if uneven else x
            about = SLOPES[0] + SLOPES[1] * x + SLOPES[2] * t
            if family == "logistic":
                y = (RNG.random(rows) < 1 / (1 + np.exp(-about))) * 1.0
            else:
                y = np.minimum(RNG.poisson(np.exp(about)), 12) / 6.0 - 1
            codes = [x, t, y]
            first = regressions.exact_numbers(layout, codes)
            answers: list[Any] = [first + RNG.laplace(size=len(first)) * noises[0].laplace]
            values = made.design.values(codes)
            for noise in noises[1:]:
                starts_at = made.fit(answers)
                parts = score_parts(made.features, made.link, starts_at, values).sum(0) * weights
                answers.append(parts + RNG.laplace(size=len(parts)) * noise.laplace)
            last.append(answers[-1])
            starts.append(starts_at)
        model = made.step(np.array(last), noises[-1])
        for place, slope in enumerate(SLOPES):
            at = slope / units[place] - np.array(starts)[:, place]
            for number, level in enumerate(LEVELS):
                missed[:, place, number] = model.p_of(place, at, level) <= level
        yield missed

    return drawn


# --- the tables ---------------------------------------------------------------------------------------------------


def centered(shape: Any) -> Floats:
    return np.clip(0.2 * RNG.normal(size=shape), -1, 1)


def centered_heavy(shape: Any) -> Floats:
    return np.clip(RNG.standard_t(2, shape) / 40, -1, 1)


def symmetric(law: Any) -> Any:
    return lambda shape: law(shape) * RNG.choice([-1.0, 1.0], shape)


def rows_of(family: str) -> list[tuple[str, str, Missed, tuple[float, ...]]]:
    """What is simulated for one family: the test, the data, and for which ε."""
    one_big, ends = np.append(0.99, np.full(9, 0.01 / 9)), (0.05, 5.0)
    listed: dict[str, list[tuple[Any, ...]]] = {
        "chi2": [
            ("χ², expected shares", "99% in one of 10, n = 50", goodness(one_big, 50)),
            ("χ², expected shares", "falling as 1/k² over 20, n = 500", goodness(falling(20, 2), 500)),
            ("χ², expected shares", "99.9% and 0.1%, n = 5,000", goodness(np.array([0.999, 0.001]), 5000)),
            ("χ², declared", "2 × 2, even, n = 50", independence(np.full((2, 2), 0.25), 50)),
            ("χ², declared", "2 × 2, even, n = 500", independence(np.full((2, 2), 0.25), 500)),
            ("χ², declared", "2 × 2, 5% and 5%, n = 500", independence(np.outer([0.95, 0.05], [0.95, 0.05]), 500)),
            ("χ², one hashed", "40 values falling as 1/k, and 3% or 97%, n = 500",
             independence(np.outer(hashed(40, 1), [0.97, 0.03]), 500)),
            ("χ², both hashed", "40 values falling as 1/k each, n = 500",
             independence(np.outer(hashed(40, 1), hashed(40, 1)), 500), (1.0,)),
        ],
        "means": [
            ("mean, less", "rare, n = 500", one_mean(rare, 500, 0.02, "less")),
            ("mean", "rare, n = 2,000", one_mean(rare, 2000, 0.02, "two-sided"), (0.5, 5.0)),
            ("compare", "normal, 490 + 10 rows", compared(lambda shape: normal(shape) * 0.95, (490, 10))),
            ("compare", "skewed, 4,995 + 5 rows", compared(skewed, (4995, 5)), (1.0,)),
        ],
        "anova": [
            ("ANOVA", "normal, 25 + 15 + 10 rows", compared(normal, (25, 15, 10)), ends),
            ("ANOVA", "skewed, 250 + 150 + 100", compared(skewed, (250, 150, 100)), (0.5, 5.0)),
            ("ANOVA", "heavy-tailed, 2,500 + 2,490 + 10", compared(heavy, (2500, 2490, 10)), (1.0,)),
            ("ANOVA", "clustered, 200 people with 3 rows", clustered_anova(200), (5.0,)),
        ],
        "ranks": [
            ("Mann–Whitney", "skewed, 25 + 25 rows", compared(skewed, (25, 25), ranked=True)),
            ("Mann–Whitney", "heavy-tailed, 480 + 20", compared(heavy, (480, 20), ranked=True), ends),
            ("Mann–Whitney", "ties, 2,500 + 2,500", compared(ties, (2500, 2500), ranked=True), ends),
            ("Kruskal–Wallis", "skewed, 25 + 15 + 10", compared(skewed, (25, 15, 10), ranked=True), (5.0,)),
            ("Kruskal–Wallis", "ties, 300 + 150 + 50", compared(ties, (300, 150, 50), ranked=True), (0.5, 5.0)),
            ("Wilcoxon", "normal, n = 50", signed(centered, 50), ends),
            ("Wilcoxon", "heavy-tailed, n = 500", signed(centered_heavy, 500)),
            ("Wilcoxon", "ties and zeros, n = 5,000", signed(symmetric(ties), 5000), ends),
        ],
        "quantile": [
            ("quantile 0.9", "skewed, n = 50", quantile(lambda n: RNG.exponential(10, n), 10 * math.log(10), 0.9, 50)),
            ("quantile 0.5", "six values, n = 500", quantile(lambda n: 10 * RNG.binomial(5, 0.4, n), 20, 0.5, 500)),
            ("quantile 0.02", "heavy-tailed, n = 5,000",
             quantile(lambda n: 50 + 4 * RNG.standard_t(2, n), 50 - 4 * 4.84873, 0.02, 5000), ends),
        ],
        "correlation": [
            ("correlation", "skewed, n = 500", correlation("skewed", 500), (5.0,)),
            ("correlation", "two-point, n = 500", correlation("two-point", 500), (1.0, 5.0)),
            ("correlation", "close to 1, n = 500", correlation("close to 1", 500), (5.0,)),
            ("correlation", "heavy-tailed, n = 2,000", correlation("heavy", 2000), (1.0,)),
        ],
        "ols": [
            ("OLS by person", "clustered, 501 rows of 167 people", least_squares("clustered", 501), (5.0,)),
            ("OLS, HC", "skewed, n = 500", least_squares("skewed", 500), (5.0,)),
            ("OLS, HC", "heavy-tailed, n = 2,000", least_squares("heavy", 2000), (1.0,)),
        ],
        "likelihood": [
            ("logistic", "n = 500", by_likelihood("logistic", 500), (5.0,)),
            ("logistic", "skewed, uneven, n = 1,000", by_likelihood("logistic", 1000, uneven=True), (5.0,)),
            ("Poisson", "n = 500", by_likelihood("poisson", 500), (5.0,)),
            ("Poisson", "skewed, uneven, n = 1,000", by_likelihood("poisson", 1000, uneven=True), (5.0,)),
        ],
    }  # fmt: skip
    return [(one[0], one[1], one[2], one[3] if len(one) > 3 else EPSILONS) for one in listed[family]]


TESTS, INTERVALS = ("chi2", "means", "anova", "ranks"), ("quantile", "correlation", "ols", "likelihood")


def measured(missed: Missed, epsilon: float, runs: int, *, covered: bool) -> str:
    """One cell: both levels, or both coverages."""
    hits, done = 0.0, 0
    for block in missed(epsilon, runs):
        each = np.asarray(block)
        flags = each[:, None] <= LEVELS if each.ndim == 1 else each
        hits, done = hits + flags.sum(0), done + len(flags)
    shares = np.atleast_2d(np.asarray(hits) / done).max(0)
    allowed = LEVELS + 2.326 * np.sqrt(LEVELS * (1 - LEVELS) / done)
    shown = 1 - shares if covered else shares
    text = " / ".join(f"{100 * one:.1f}%" for one in shown)
    return f"**{text}**" if (shares > allowed).any() else text


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--only", nargs="*", default=[*TESTS, *INTERVALS])
    given = parser.parse_args()
    section("Levels and coverage", "statistics.stats_levels", f"{ABOUT} {machine()}.")
    for title, families in (("Tests: level at 5% / 1%", TESTS), ("Intervals: coverage at 95% / 99%", INTERVALS)):
        chosen = [family for family in families if family in given.only]
        if not chosen:
            continue
        error = 232.6 * np.sqrt(LEVELS * (1 - LEVELS) / given.runs)
        print(f"### {title}, {given.runs:,} runs (binomial error {error[0]:.1f}% / {error[1]:.1f}%)\n")
        table("", "data", *(f"ε = {epsilon:g}" for epsilon in EPSILONS))
        for family in chosen:
            for name, data, missed, some in rows_of(family):
                cells = [
                    measured(missed, epsilon, given.runs, covered=families is INTERVALS) if epsilon in some else None
                    for epsilon in EPSILONS
                ]
                line(name, data, *cells)
        print()


if __name__ == "__main__":
    main()
