"""What an analyzer sees of shuffled messages: counts, and how well they distinguish one replaced value. [L8.DEF]

The laws are binomial. Their masses are computed from ratios of neighbors, from the mode outward, and then normalized,
so each has a relative error of about 10⁻¹². The mass beyond 16 deviations is below `LOST` and counts as a leak.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from discreet.exact.rational import exp_bounds
from discreet.guarantees.privacy_loss.finite_pairs import by_cell, renyi_of_atoms
from discreet.guarantees.privacy_loss.pairs import Floats, Pair

LOST = 1e-35
"""An upper bound on the mass that is left out, beyond 16 deviations plus 16 counts from a mode."""
_WINDOW = 16.0


@lru_cache(maxsize=512)
def binomial(trials: int, chance: Fraction, window: float = _WINDOW) -> tuple[int, Floats]:
    """The first k and the masses of Bin(trials, chance) within 16 deviations of its mode, which sum to 1."""
    if chance > Fraction(1, 2):  # 1 − p would cancel, so failures are counted instead
        first, masses = binomial(trials, 1 - chance, window)
        return trials - first - len(masses) + 1, masses[::-1]
    p = float(chance)
    if trials == 0 or p == 0:
        return 0, np.ones(1)
    mode = min(trials, math.floor((trials + 1) * p))
    reach = math.ceil(window * math.sqrt(trials * p * (1 - p)) + window)
    low, high = max(0, mode - reach), min(trials, mode + reach)
    odds = p / (1 - p)
    above = np.arange(mode + 1, high + 1, dtype=np.float64)
    below = np.arange(mode, low, -1, dtype=np.float64)
    up = np.cumprod((trials - above + 1) / above * odds)
    down = np.cumprod(below / (trials - below + 1) / odds)
    masses = np.concatenate([down[::-1], [1.0], up])
    return low, masses / masses.sum()


def law_of_sum(first: tuple[int, Floats], second: tuple[int, Floats]) -> tuple[int, Floats]:
    """The law of a sum of two independent counts."""
    return first[0] + second[0], np.convolve(first[1], second[1])


class CountedPair(Pair):
    """Two laws on the same outcomes, in floating point with a known relative error."""

    @property
    def relative(self) -> float:  # type: ignore[override]
        """Every step from a mode adds the rounding of a few operations."""
        return 8e-16 * (self._window() + 16)

    def _window(self) -> int:
        """The largest number of steps from a mass to its mode."""
        raise NotImplementedError

    def _laws(self) -> tuple[Floats, Floats]:
        """The masses of P and of Q, outcome by outcome."""
        raise NotImplementedError

    def _atoms(self) -> tuple[Floats, Floats, Floats, float]:
        """The losses in ascending order with the masses of P and Q, and the mass of P where Q has none."""
        return _sorted_atoms(self)

    @property
    def infinite(self) -> float:  # type: ignore[override]
        return self._atoms()[3] * (1 + self.relative) + LOST

    def span(self) -> tuple[float, float]:
        losses, p, _, _ = self._atoms()
        kept = losses[p > 1e-30]
        return (float(kept[0]) - 1e-12, float(kept[-1]) + 1e-12) if len(kept) else (-1.0, 1.0)

    def cells(self, edges: Floats) -> tuple[Floats, Floats]:
        losses, p, q, _ = self._atoms()
        up = (1e-13 + 4 * self.relative) * (1 + np.abs(losses))  # more than rounding can lower a loss
        place = np.searchsorted(edges, losses + up, side="left")
        size = len(edges) + 1
        return by_cell(place, p, size), by_cell(place, q, size)

    def delta(self, epsilon: float) -> float:
        return float(self.deltas(np.array([epsilon]))[0])

    def deltas(self, epsilons: Floats) -> Floats:
        """The curve at many ε, rounded up.

        A loss is accurate to twice the relative error. Every loss that may lie above ε is counted, and its masses are
        rounded far enough apart that its part is not negative.
        """
        losses, above_p, above_q, alone = _suffixes(self)
        start = np.searchsorted(losses, epsilons - 3 * self.relative, side="right")
        p, q = above_p[start], np.exp(np.minimum(epsilons, 700.0)) * above_q[start]
        apart = 3 * self.relative + 2**-52 * len(losses)
        excess = np.maximum(p * (1 + apart) - q * (1 - apart), 0.0)
        return np.asarray(np.minimum(1.0, excess + alone * (1 + apart) + LOST))

    def renyi(self, order: float) -> float:
        largest = max(renyi_of_atoms(losses, p, order) for losses, p, _, _ in self._both_ways())
        return largest * (1 + 1e-9) + 2 * order * self.relative / (order - 1)

    def _both_ways(self) -> list[tuple[Floats, Floats, Floats, float]]:
        other = self.mirrored()
        return [self._atoms(), other._atoms()] if isinstance(other, CountedPair) else [self._atoms()]


@lru_cache(maxsize=1024)
def _sorted_atoms(pair: CountedPair) -> tuple[Floats, Floats, Floats, float]:
    p, q = (law.ravel() for law in pair._laws())
    both = (p > 0) & (q > 0)
    losses = np.log(p[both] / q[both])
    order = np.argsort(losses, kind="stable")
    return losses[order], p[both][order], q[both][order], float(p[q <= 0].sum())


@lru_cache(maxsize=1024)
def _suffixes(pair: CountedPair) -> tuple[Floats, Floats, Floats, float]:
    """The losses in ascending order, and the masses of P and of Q at or above each of them."""
    losses, p, q, alone = pair._atoms()
    upward = [np.append(np.cumsum(law[::-1])[::-1], 0.0) for law in (p, q)]
    return losses, upward[0], upward[1], alone


@dataclass(frozen=True)
class ShiftedBinomialPair(CountedPair):
    """Bin(trials, chance) and the same plus one: a bit among the noise bits of all clients [L8.SUM]."""

    trials: int
    chance: Fraction
    turned: bool = False

    def _window(self) -> int:
        return len(binomial(self.trials, self.chance)[1])

    def _laws(self) -> tuple[Floats, Floats]:
        masses = binomial(self.trials, self.chance)[1]
        without, one_more = np.append(masses, 0.0), np.insert(masses, 0, 0.0)
        return (one_more, without) if self.turned else (without, one_more)

    def mirrored(self) -> Pair:
        return replace(self, turned=not self.turned)


@dataclass(frozen=True)
class TwoCountsPair(CountedPair):
    """The counts of two values a and b, of which one replaced client holds a (P) or b (Q).

    Each of `others` messages is a or b with probability `chance` in total, and both are equally likely. For `more`
    further messages this probability is `more_chance`. The client's own message is the value it holds with probability
    `truth`, the other value with probability `lie`, and otherwise neither. The observer is assumed to know whether it
    is neither, because the number of such messages may show it. Fakes have truth 1. k-ary response, and the clones of
    any ε₀-local randomizer, also lie.
    """

    others: int
    chance: Fraction
    truth: Fraction = Fraction(1)
    lie: Fraction = Fraction(0)
    more: int = 0
    more_chance: Fraction = Fraction(0)

    def _totals(self) -> tuple[int, Floats]:
        """The law of the number of other messages that are a or b."""
        return _totals(self)

    def _window(self) -> int:
        return 2 * len(self._totals()[1])

    @property
    def infinite(self) -> float:  # type: ignore[override]
        """The mass without any b, which is impossible if the client holds b and never lies. 0 if it may lie."""
        if self.lie:
            return LOST
        first, masses = self._totals()
        alone = np.ldexp(masses, -np.minimum(first + np.arange(len(masses)), 2000))
        return float(self.truth) * float(alone.sum()) * (1 + self.relative) + LOST

    def _laws(self) -> tuple[Floats, Floats]:
        return _two_counts(self)

    def delta(self, epsilon: float) -> float:
        """Computed from tails of fair coins: of `total` messages, i are a, and the ratio grows with i."""
        ratio = math.exp(min(epsilon, 700.0))
        first, masses = self._totals()
        truth, lie = float(self.truth), float(self.lie)
        totals = np.arange(first + 1, first + len(masses) + 1, dtype=np.float64)  # including the client's own message
        # P ∝ C(T,i)·2·b(T−1)·(truth·i + lie·(T−i))/T, and Q with i and T−i exchanged
        scale = 2 * masses / totals
        slope = scale * (truth - lie) * (1 + ratio)
        level = scale * totals * (lie - ratio * truth)
        with np.errstate(divide="ignore", invalid="ignore"):
            start = np.where(slope > 0, np.floor(-level / slope * (1 - 1e-14)) + 1, totals + 1)
        start = np.clip(start, 0, totals + 1)  # the least i with P > ratio·Q, or one at which they are equal in floats
        # Σ_{i≥start} C(T,i)2^-T·(i·slope + level): i·C(T,i) = T·C(T−1,i−1)
        at_least = _at_least(start, totals)
        one_less = _at_least(start - 1, totals - 1)
        excess = slope * totals / 2 * one_less + level * at_least
        # both terms may be far larger than their difference: their rounding errors are added, those of tails ten times
        size = np.abs(slope * totals / 2 * one_less) + np.abs(level * at_least)
        rounding = float((size * (1e-12 + 1e-15 * np.sqrt(totals))).sum())
        total = float(np.maximum(excess, 0.0).sum()) + rounding
        return min(1.0, max(5e-324, total * (1 + self.relative) + LOST))

    def mirrored(self) -> Pair:
        return self


@lru_cache(maxsize=64)
def _totals(pair: TwoCountsPair) -> tuple[int, Floats]:
    return law_of_sum(binomial(pair.others, pair.chance), binomial(pair.more, pair.more_chance))


def _at_least(start: Floats, trials: Floats) -> Floats:
    """P[Bin(trials, ½) ≥ start]."""
    from scipy.special import betainc

    chance = np.where(start <= 0, 1.0, 0.0)
    inside = (start > 0) & (start <= trials)
    chance[inside] = betainc(start[inside], trials[inside] - start[inside] + 1, 0.5)
    return np.asarray(chance)


@lru_cache(maxsize=8)
def _two_counts(pair: TwoCountsPair) -> tuple[Floats, Floats]:
    """For each total: the masses of P and Q on a window of i around half of it."""
    first, masses = pair._totals()
    truth, lie = float(pair.truth), float(pair.lie)
    neither = np.array([max(0.0, float(1 - pair.truth - pair.lie))])
    inside, outside = [neither], [neither]
    for place in np.flatnonzero(masses > 1e-40).tolist():
        total = first + place + 1
        low, coins = binomial(total, Fraction(1, 2))
        i = low + np.arange(len(coins), dtype=np.float64)
        share = 2 * masses[place] / total
        inside.append(coins * share * (truth * i + lie * (total - i)))
        outside.append(coins * share * (truth * (total - i) + lie * i))
    return np.concatenate(inside), np.concatenate(outside)


def clone_pair(epsilon: Fraction, clients: int) -> TwoCountsPair:
    """The dominating pair of any ε₀-local randomizer whose reports are shuffled among `clients`.

    Source: Feldman-McMillan-Talwar 2021: each other client is a clone of the replaced one with probability e^-ε₀ in
    total, with both values equally likely. (The stronger clone of Feldman-McMillan-Talwar 2023, 2/(e^ε₀ + 1), has an
    erratum: it is proved only for some randomizers.)
    """
    above = exp_bounds(epsilon)[1]
    lie = 1 / (above + 1)
    return TwoCountsPair(clients - 1, 1 / above, 1 - lie, lie)


def likelier_reports_pair(odds: Fraction, apart: Fraction, clients: int) -> TwoCountsPair:
    """The dominating pair of a randomizer in which no report is more than `odds` times likelier for one value than for
    another. For any two values, the reports that are likelier for one of them have probability odds·`apart` for it and
    `apart` for the other.

    Proof: for values 0 and 1, R₀ = odds·apart·Q₀ + apart·Q₁ + rest, and R₁ with the roles exchanged, where Q₀ ∝ (R₀ −
    R₁)⁺ and Q₁ ∝ (R₁ − R₀)⁺. For every value i, R_i ≥ apart·(Q₀ + Q₁), because (r₀ − r₁)⁺/(odds − 1) ≤ r₀/odds ≤ r_i.
    So each other client holds one of the two values with probability 2·apart, and both are equally likely.
    """
    return TwoCountsPair(clients - 1, 2 * apart, odds * apart, apart)


def blanket_of_response(choices: int, lie: Fraction, clients: int) -> TwoCountsPair:
    """The dominating pair of k-ary response: with probability choices·lie a report is uniform, and hides the others.

    Source: Balle-Bell-Gascón-Nissim 2019, the privacy blanket, if the observer knows whether the client's report is
    neither value.
    """
    return TwoCountsPair(clients - 1, 2 * lie, 1 - (choices - 1) * lie, lie)
