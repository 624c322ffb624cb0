"""Pairs that are derived from others: subsampled pairs, and pairs of guarantees that state only a divergence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from discreet.errors import IncompatibleGuarantee
from discreet.exact.rational import exactly, exp_bounds, float_up, log_bounds
from discreet.guarantees.conversions import SLACK, delta_at_order, delta_from_renyi
from discreet.guarantees.guarantee import Renyi
from discreet.guarantees.privacy_loss.finite_pairs import renyi_of_atoms
from discreet.guarantees.privacy_loss.pairs import Floats, GaussianPair, Pair, TradeoffPair


@dataclass(frozen=True)
class SubsampledPair(Pair):
    """Poisson subsampling: each unit takes part with probability `rate`, independently (add or remove only).

    With the unit, the output has the law (1−rate)·Q + rate·P, and without it Q. `removed` means this order, and its
    mirror is the other. The loss of the mixture is ln(1 − rate + rate·e^ℓ).
    """

    base: Pair
    rate: Fraction
    removed: bool = True

    @property
    def infinite(self) -> float:  # type: ignore[override]
        return float_up(self.rate * Fraction(self.base.infinite)) if self.removed else 0.0

    @property
    def bound(self) -> Fraction | None:  # type: ignore[override]
        if self.removed:
            return (
                None if self.base.bound is None else log_bounds(1 + self.rate * (exp_bounds(self.base.bound)[1] - 1))[1]
            )
        # a bound on ln Q/P; if there is none, the mixture still has at least (1−rate)·Q
        lowest = self.base.mirrored().bound
        kept = exp_bounds(-lowest)[0] if lowest is not None and not self.base.mirrored().infinite else Fraction(0)
        return log_bounds(1 / (1 - self.rate + self.rate * kept))[1]

    def _mixed(self, loss: float) -> float:
        rate = float(self.rate)
        return (
            loss + math.log(rate) + math.log1p((1 - rate) / rate * math.exp(-loss))
            if loss > 30
            else math.log1p(rate * math.expm1(loss))
        )

    def _unmixed(self, edges: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            grown = np.expm1(edges) / float(self.rate)
            return np.where(grown > -1, np.log1p(np.maximum(grown, -1.0)), -np.inf)

    def span(self) -> tuple[float, float]:
        low, high = (self._mixed(end) for end in self.base.span())
        if self.base.mirrored().infinite:
            low = math.log1p(-float(self.rate))
        return (low, high) if self.removed else (-high, -low)

    def cells(self, edges: Floats) -> tuple[Floats, Floats]:
        ordered = edges if self.removed else -edges[::-1]
        inside, outside = self.base.cells(self._unmixed(ordered))
        rate = float(self.rate)
        outside[np.searchsorted(ordered, math.log1p(-rate))] += self._outside_only(outside)
        mixed = (1 - rate) * outside + rate * inside
        return (mixed, outside) if self.removed else (outside[::-1], mixed[::-1])

    def _outside_only(self, outside: Floats) -> float:
        """The mass of Q where P has none. `cells` leaves it out, but the mixture contains it."""
        if isinstance(self.base, ProfilePair):
            return max(0.0, 1 - float(outside.sum()))
        return self.base.mirrored().infinite

    def renyi(self, order: float) -> float:
        if isinstance(self.base, GaussianPair | TradeoffPair):
            return self._gaussian_renyi(order, self.base.mu)
        return max(_renyi_on_grid(side, order) for side in (self, self.mirrored()))

    def _gaussian_renyi(self, order: float, mu: float) -> float:
        # (order−1)·divergence is convex in the order and 0 at order 1: whole orders bound those between them
        from discreet.guarantees.privacy_loss.amplification import subsampled_gaussian_renyi

        low = math.floor(order)
        ends = [(a - 1) * subsampled_gaussian_renyi(1 / mu, self.rate, a) if a > 1 else 0.0 for a in (low, low + 1)]
        part = order - low
        return ((1 - part) * ends[0] + part * ends[1]) / (order - 1) * (1 + 1e-9)

    def mirrored(self) -> Pair:
        return SubsampledPair(self.base, self.rate, not self.removed)


def _renyi_on_grid(pair: Pair, order: float) -> float:
    """The divergence of a bounded pair from its cells. Each mass moves to the ends of its cell, so the result is never
    below the truth.
    """
    from discreet.guarantees.privacy_loss.convolution import on_grid

    low, high = pair.span()
    step = max(high - low, 1e-12) / 20_000
    part = on_grid(pair, step)
    if part.infinite > pair.infinite * (1 + 1e-9):
        return math.inf
    return renyi_of_atoms(part.losses(), part.masses, order)


@dataclass(frozen=True)
class NearPair(Pair):
    """A pair whose masses are those of `base` up to factors of e^±slack/2, except for a mass `lost` of P.

    So a loss differs by at most `slack`, and the curve is at most that of `base` at ε − slack, times e^slack, plus
    `lost`.
    """

    base: Pair
    slack: float
    lost: float

    def span(self) -> tuple[float, float]:
        low, high = self.base.span()
        return low - self.slack, high + self.slack

    def cells(self, edges: Floats) -> tuple[Floats, Floats]:
        inside, outside = self.base.cells(edges - self.slack)
        inside = inside * math.exp(self.slack)
        inside[-1] += self.lost
        return inside, outside

    def renyi(self, order: float) -> float:
        return self.base.renyi(order)

    def mirrored(self) -> Pair:
        return NearPair(self.base.mirrored(), self.slack, self.lost)

    def twice(self) -> Pair:
        # twice as many coordinates may move, twice as far: the slack grows by a factor below 2·4
        return NearPair(self.base.twice(), 8 * self.slack, 2 * self.lost)


def subsampled(pair: Pair, rate: Fraction) -> Pair:
    """A pair if each unit takes part only with probability `rate`."""
    if isinstance(pair, NearPair):
        return NearPair(subsampled(pair.base, rate), pair.slack, pair.lost)
    return SubsampledPair(pair, rate)


def near_gaussian(squared: int | Fraction, variance: Fraction, moved: int) -> NearPair:
    """Discrete Gaussian noise if up to `moved` coordinates move by `squared` squared steps in total.

    Let μ be the move in standard deviations. Within r = 12+μ standard deviations of either center, the mass at a
    lattice point is that of its cell under the continuous law, up to a factor e^±η with η = (r²+1)/(24·variance), by
    the midpoint rule, plus a small amount for its next term. The mass of P beyond 12 standard deviations is below 1e-32
    per coordinate. The Rényi divergences, also those of a Poisson sample, are exactly those of the continuous law,
    because a shift by whole steps does not change the sum that normalizes a discrete Gaussian.
    """
    mu = math.sqrt(squared / variance) * (1 + 1e-15)
    slack = float(2 * moved / variance) * ((12 + mu) ** 2 + 1) / 24 * 1.05
    return NearPair(TradeoffPair(mu), slack, 1e-32 * moved)


def merge_gaussians(factors: tuple[tuple[Pair, int], ...]) -> tuple[tuple[Pair, int], ...]:
    """The same factors, with all that are close to Gaussian trade-offs as one.

    Promise: the product of Gaussian pairs that are μ_i apart is one that is √Σμ_i² apart, and the factors by which
    their masses differ from it multiply, so slacks and lost masses add.
    """
    near = [
        (pair, pair.base.mu, times)
        for pair, times in factors
        if isinstance(pair, NearPair) and isinstance(pair.base, TradeoffPair)
    ]
    if sum(times for *_, times in near) < 2:
        return factors
    mu = math.sqrt(math.fsum(times * move**2 for _, move, times in near)) * (1 + 1e-14)
    slack = math.fsum(times * pair.slack for pair, _, times in near) * (1 + 1e-14)
    lost = math.fsum(times * pair.lost for pair, _, times in near) * (1 + 1e-14)
    merged = [pair for pair, *_ in near]
    rest = tuple((pair, times) for pair, times in factors if pair not in merged)
    return ((NearPair(TradeoffPair(mu), slack, lost), 1), *rest)


class ProfilePair(Pair):
    """A pair that is known only by an upper bound on its curve δ(ε), the same in both directions. It is the largest
    pair under that bound.
    """

    knots: ClassVar[int | None] = 600
    """On finer grids, the curve is computed at this many points and interpolated linearly in e^ε. A convex curve is
    never above that.
    """

    loose: ClassVar[bool] = True
    """Whether the Rényi divergences may give a tighter composition than the curve."""

    def _curve(self, epsilon: float) -> float:
        raise NotImplementedError

    def _curves(self, epsilons: Floats) -> Floats:
        """The curve at many ε ≥ 0."""
        return np.array([self._curve(float(epsilon)) for epsilon in epsilons])

    def delta(self, epsilon: float) -> float:
        return (
            self._curve(epsilon) if epsilon >= 0 else -math.expm1(epsilon) + math.exp(epsilon) * self._curve(-epsilon)
        )

    def span(self) -> tuple[float, float]:
        reach = 1e-6
        while self._curve(reach) > 1e-25 and reach < 1e6:
            reach *= 1.5
        return -reach, reach

    def cells(self, edges: Floats) -> tuple[Floats, Floats]:
        far = int(np.count_nonzero(edges < -700))  # there the ratio is 0 in floats, and so is the mass
        if far:
            inside, outside = self.cells(edges[far:]) if far < len(edges) else (np.ones(1), np.zeros(1))
            return np.concatenate([np.zeros(far), inside]), np.concatenate([np.zeros(far), outside])
        if self.knots is not None and len(edges) > self.knots:
            places = np.unique(np.linspace(0, len(edges) - 1, self.knots).astype(np.int64))
            sides = self.cells(edges[places])
            inside, outside = (np.zeros(len(edges) + 1) for _ in sides)
            inside[places], outside[places], inside[-1] = sides[0][:-1], sides[1][:-1], sides[0][-1]
            return inside, outside
        # the curve is convex in e^ε: the slopes of its lower hull over the edges are Q, and P at an edge is e^edge·Q
        ratios = np.concatenate([[0.0], np.exp(edges)])
        curve = self._curves(np.abs(edges))
        heights = np.concatenate([[1.0], np.where(edges >= 0, curve, -np.expm1(edges) + np.exp(edges) * curve)])
        hull = [0]
        for i in range(1, len(ratios)):
            while len(hull) > 1 and _cuts_under(ratios, heights, hull[-2], hull[-1], i):
                hull.pop()
            hull.append(i)
        heights = np.interp(ratios, ratios[hull], heights[hull])
        slopes = np.concatenate([np.diff(heights) / np.diff(ratios), [0.0]])
        outside = np.maximum(np.diff(slopes), 0.0)
        inside = outside * ratios[1:]
        left_over = float(heights[-1])
        return np.concatenate([inside, [left_over]]), np.concatenate([outside, [0.0]])


def _cuts_under(x: Floats, y: Floats, a: int, b: int, c: int) -> bool:
    return bool((y[b] - y[a]) * (x[c] - x[a]) >= (y[c] - y[a]) * (x[b] - x[a]))


@dataclass(frozen=True)
class ConcentratedPair(ProfilePair):
    """Any ρ-zCDP mechanism, by the curve that ρ implies."""

    rho: Fraction

    def _curve(self, epsilon: float) -> float:
        rho = float_up(self.rho) * SLACK
        return delta_from_renyi(lambda order: rho * order, epsilon)

    def renyi(self, order: float) -> float:
        return float_up(self.rho * exactly(order))

    def twice(self) -> Pair:
        return ConcentratedPair(4 * self.rho)


@dataclass(frozen=True)
class RenyiPair(ProfilePair):
    """Any mechanism with a Rényi divergence of at most `divergence` at one order."""

    order: Fraction
    divergence: Fraction

    def _curve(self, epsilon: float) -> float:
        return Renyi(order=self.order, epsilon=self.divergence).delta_at(epsilon=epsilon)

    def renyi(self, order: float) -> float:
        return float_up(self.divergence) if order <= self.order else math.inf

    def twice(self) -> Pair:
        raise IncompatibleGuarantee("Convert the Rényi guarantee to replacement before composing it.")


@dataclass(frozen=True)
class RenyiCurvePair(ProfilePair):
    """A mechanism of independent parts with bounds on its Rényi divergences at several orders, in increasing order.

    Of the parts, a removed unit moves some and an added unit others. A part that both move costs no more than it costs
    one of them. So a replaced unit costs the sum of both.
    """

    points: tuple[tuple[Fraction, Fraction], ...]

    def _curve(self, epsilon: float) -> float:
        return min(delta_at_order(float(order), float_up(bound), epsilon) for order, bound in self.points)

    def renyi(self, order: float) -> float:
        # (order − 1)·divergence is convex in the order and 0 at order 1: known orders bound those between them
        at = exactly(order)
        below, known = Fraction(1), Fraction(0)
        for own, bound in self.points:
            if at <= own:
                return float_up((known + ((own - 1) * bound - known) * (at - below) / (own - below)) / (at - 1))
            below, known = own, (own - 1) * bound
        return math.inf

    def twice(self) -> Pair:
        return RenyiCurvePair(tuple((order, 2 * bound) for order, bound in self.points))


@dataclass(frozen=True)
class BoundedRangePair(ProfilePair):
    """A mechanism whose log-ratios span a range of at most ε = `bound`, such as the exponential mechanism.

    The worst such mechanism has two losses, t and t − ε. Over all t, its curve is (1 − e^{-(ε-e)/2})² / (1 − e^{-ε}),
    and it is ε²/8-zCDP.
    Source: Dong-Durfee-Rogers 2020, Cesar-Rogers 2021.
    """

    bound: Fraction
    knots: ClassVar[int | None] = None

    def _curve(self, epsilon: float) -> float:
        if epsilon >= self.largest:
            return 0.0
        return math.expm1((epsilon - self.largest) / 2) ** 2 / -math.expm1(-self.largest) * (1 + 1e-12)

    def cells(self, edges: Floats) -> tuple[Floats, Floats]:
        largest = self.largest
        if edges[0] < -700:
            return super().cells(edges)
        # as above, for all edges at once: this curve is convex in e^ε, so it needs no hull
        size = np.minimum(np.abs(edges), largest)
        curve = np.expm1((size - largest) / 2) ** 2 / -math.expm1(-largest) * (1 + 1e-12)
        ratios = np.concatenate([[0.0], np.exp(edges)])
        heights = np.concatenate([[1.0], np.where(edges >= 0, curve, -np.expm1(edges) + np.exp(edges) * curve)])
        slopes = np.concatenate([np.diff(heights) / np.diff(ratios), [0.0]])
        outside = np.maximum(np.diff(slopes), 0.0)
        return np.append(outside * ratios[1:], heights[-1]), np.append(outside, 0.0)

    def span(self) -> tuple[float, float]:
        return -self.largest, self.largest

    def renyi(self, order: float) -> float:
        return min(order * self.largest**2 / 8, self.largest) * (1 + 1e-12)

    def twice(self) -> Pair:
        return BoundedRangePair(2 * self.bound)


@dataclass(frozen=True)
class EitherPair(ProfilePair):
    """A mechanism that is dominated by each of two symmetric pairs, so its curve lies below both."""

    first: Pair
    second: Pair

    @property
    def bound(self) -> Fraction | None:  # type: ignore[override]
        return min((b for b in (self.first.bound, self.second.bound) if b is not None), default=None)

    @property
    def infinite(self) -> float:  # type: ignore[override]
        return min(self.first.infinite, self.second.infinite)

    def _curve(self, epsilon: float) -> float:
        return min(self.first.delta(epsilon), self.second.delta(epsilon))

    def span(self) -> tuple[float, float]:
        low, high = super().span()
        return (low, high) if self.bound is None else (max(low, -self.largest), min(high, self.largest))

    def renyi(self, order: float) -> float:
        return min(self.first.renyi(order), self.second.renyi(order))

    def twice(self) -> Pair:
        return EitherPair(self.first.twice(), self.second.twice())
