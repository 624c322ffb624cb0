"""Guarantees for several units at once: a household, or one person who is counted as several units."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from discreet.errors import IncompatibleGuarantee, InvalidArgument
from discreet.exact.rational import (
    LARGEST_EPSILON,
    Number,
    check_count,
    check_delta,
    exactly,
    exp_bounds,
    float_up,
)
from discreet.guarantees.conversions import SLACK, smallest_epsilon
from discreet.guarantees.finite.verify import Verified
from discreet.guarantees.guarantee import (
    Approx,
    GaussianTradeoff,
    Guarantee,
    NoLoss,
    Pure,
    Renyi,
    ZeroConcentrated,
)
from discreet.guarantees.meaning.curve import FARTHEST, curve_of, delta_below
from discreet.guarantees.privacy_loss.compose import LossDistribution


def for_group(guarantee: Guarantee, steps: int) -> Guarantee:
    """What `guarantee` promises for data sets that are `steps` steps of its neighbor relation apart.

    Promise: the result holds for every mechanism that keeps `guarantee`. It is kε for ε, k²ρ for ρ, kμ for μ and
    (kε, δ(e^{kε}−1)/(e^ε−1)) for (ε,δ). Other guarantees get the bound of `Path`.
    Source: Dwork-Roth 2014; Bun-Steinke 2016; Dong-Roth-Su 2022.

    >>> for_group(Pure(epsilon=0.5), 3)
    Pure(epsilon=Fraction(3, 2))
    """
    count = check_count(steps, "people")
    if count == 1:
        return guarantee
    match guarantee:
        case NoLoss():
            return guarantee
        case Verified():
            raise IncompatibleGuarantee(
                "An enumeration holds only for its own neighbors. Verify the pairs that you mean."
            )
        case ZeroConcentrated():
            return replace(guarantee, rho=count**2 * exactly(guarantee.rho))
        case GaussianTradeoff():
            return replace(guarantee, mu=count * exactly(guarantee.mu))
        case Pure():
            return replace(guarantee, epsilon=_times(guarantee.epsilon, count))
        case Approx():
            lost = _delta_of_path(exactly(guarantee.epsilon), exactly(guarantee.delta), count)
            if lost < 1:
                return replace(guarantee, epsilon=_times(guarantee.epsilon, count), delta=lost)
    return _path(guarantee, count)


def _path(guarantee: Guarantee, steps: int) -> Path:
    stated = {"protects": guarantee.protects, "trust": guarantee.trust, "neighbors": guarantee.neighbors}
    return Path(of=guarantee, steps=steps, **stated)  # type: ignore[arg-type]


def _times(epsilon: Number, count: int) -> Fraction:
    exact = count * exactly(epsilon)
    if exact > LARGEST_EPSILON:
        raise InvalidArgument(
            f"people is too large: {count:,} people together have an ε above 1e6, which protects nobody. "
            "Ask for a smaller group.",
            code="out-of-range",
        )
    return exact


def _delta_of_path(epsilon: Fraction, delta: Fraction, count: int) -> Fraction:
    """δ(1 + e^ε + … + e^{(k−1)ε}), rounded up. At most 1."""
    if not delta:
        return Fraction(0)
    if float(epsilon) * (count - 1) > 700:
        return Fraction(1)
    below = exp_bounds(epsilon)[0]
    if count > 64 and below > 1:  # the closed form of a long sum
        total = (exp_bounds(count * epsilon)[1] - 1) / (below - 1)
    else:
        total = sum((exp_bounds(power * epsilon)[1] for power in range(count)), Fraction(0))
    return min(Fraction(1), total * delta)


@dataclass(frozen=True, repr=False)
class Path(Guarantee):
    """A guarantee over a path of `steps` neighbors.

    Promise: δ_k(e) ≤ δ(e'/k)·(1 + e^{e'/k} + … + e^{(k−1)e'/k}) for every e' ≤ e, because each step costs e'/k and
    adds its δ, which the steps before it multiply. Where a ρ is known, k²ρ holds as well. For a Rényi order α ≥ 2^{c+1}
    and k ≤ 2^c, so does 3^c times its divergence at the order α/2^c.
    Source: Dwork-Roth 2014; Bun-Steinke 2016; Mironov 2017.
    """

    _: KW_ONLY
    of: Guarantee
    steps: int
    theorem: ClassVar[str] = "group privacy, one step after the other"

    def __str__(self) -> str:
        return f"{self.of}, {self.steps} times"

    @cached_property
    def _points(self) -> list[tuple[Fraction, float]]:
        """Each ε of the path with its δ: those of one step, and those of the bounded part of its losses."""
        of, points = self.of, [(Fraction(epsilon), Fraction(delta)) for epsilon, delta in curve_of(self.of)]
        if of.largest_loss is not None:
            points.append((of.largest_loss, Fraction(of.infinite)))
        return [(self.steps * e, float_up(_delta_of_path(e, delta, self.steps))) for e, delta in points]

    @property
    def infinite(self) -> float:
        return min([1.0, *(delta for _, delta in self._points)]) if self.of.infinite else 0.0

    @property
    def largest_loss(self) -> Fraction | None:
        one = self.of.largest_loss
        return None if one is None else self.steps * one

    def delta_at(self, *, epsilon: Number) -> float:
        at = exactly(epsilon, "epsilon")
        found = [1.0, *(delta for own, delta in self._points if own <= at)]
        if at < FARTHEST:
            above = [(float_up(own), delta) for own, delta in self._points if own > at]
            found.append(delta_below(above, math.exp(at) / SLACK))
        return min([*found, *(known.delta_at(epsilon=at) for known in self._known)])

    @cached_property
    def _known(self) -> list[Guarantee]:
        """Guarantees of other kinds that hold for the whole path."""
        if isinstance(self.of, LossDistribution) and 0 < (rho := self.of.rho()) < math.inf:
            return [ZeroConcentrated(rho=self.steps**2 * Fraction(rho))]
        if isinstance(self.of, Renyi):
            halved = (self.steps - 1).bit_length()
            order, divergence = exactly(self.of.order) / 2**halved, 3**halved * exactly(self.of.epsilon)
            if order >= 2 and divergence <= LARGEST_EPSILON:
                return [Renyi(order=order, epsilon=divergence)]
        return []

    def renyi(self, order: float) -> float:
        return math.inf

    def epsilon_at(self, *, delta: Number) -> float:
        at = float(check_delta(delta))
        bound = self.largest_loss
        if at <= self.infinite:
            return float_up(bound) if bound is not None and at == self.infinite else math.inf
        return smallest_epsilon(lambda epsilon: self.delta_at(epsilon=epsilon), at, 1e-6) * SLACK
