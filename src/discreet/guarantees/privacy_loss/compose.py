"""Privacy-loss distributions as guarantees, and `compose`: numerically tight, for parameters that are fixed in advance.

A `LossDistribution` stores which pairs compose and how often, not numbers on a grid. Composing ten times gives the same
value as composing once with a count of ten. Nothing is rounded until ε or δ is computed, and each computation gets a
grid of its own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Self

from discreet.errors import IncompatibleGuarantee, InvalidArgument
from discreet.exact.rational import SMALLEST_EPSILON, Number, check_delta, exactly, float_down, float_up
from discreet.guarantees.conversions import SLACK, delta_from_renyi, epsilon_from_renyi, smallest_epsilon
from discreet.guarantees.guarantee import Approx, GaussianTradeoff, Guarantee, Pure, Renyi, ZeroConcentrated
from discreet.guarantees.privacy_loss.convolution import compose_pairs
from discreet.guarantees.privacy_loss.derived_pairs import (
    BoundedRangePair,
    ConcentratedPair,
    EitherPair,
    NearPair,
    ProfilePair,
    RenyiPair,
)
from discreet.guarantees.privacy_loss.finite_pairs import ResponsePair
from discreet.guarantees.privacy_loss.pairs import GaussianPair, Pair, TradeoffPair
from discreet.guarantees.unit import Relation

Factors = tuple[tuple[Pair, int], ...]
_FINE, _COARSE = 1e-6, 1e-3
"""The fraction of itself by which an ε may be rounded up, approximately."""


@dataclass(frozen=True, repr=False)
class LossDistribution(Guarantee):
    """The exact privacy loss of the noise that is drawn. `factors` lists each dominating pair and how often it is used.

    Promise: `epsilon_at` and `delta_at` are never below the truth for the composition of these pairs, in both
    directions of the relation.
    """

    _: KW_ONLY
    factors: Factors
    theorem: ClassVar[str] = "Zhu-Dong-Wang 2022 (dominating pairs); Doroshenko et al. 2022 (connecting the dots)"

    def __repr__(self) -> str:
        parts = ", ".join(f"{times} × {type(pair).__name__}" for pair, times in self.factors)
        return f"<LossDistribution: {self}; {parts}{'' if self.protects is None else f'; {self.protects!r}'}>"

    def __str__(self) -> str:
        pure = self.pure
        if pure is not None:
            return str(pure)
        delta = max(1e-6, float(f"{2 * self.infinite:.0e}"))
        return f"ε = {self.epsilon_at(delta=delta):.6g} at δ = {delta:.0e}"

    @property
    def infinite(self) -> float:
        leak = _one_leak(self.factors)
        return max(_infinite(side) for side in _directions(self.factors)) if leak is None else float_up(leak)

    @property
    def pure(self) -> Pure | None:
        """The pure guarantee that follows if every loss is bounded."""
        bound = self.largest_loss
        if bound is None or self.infinite:
            return None
        least = max(bound, SMALLEST_EPSILON)
        return Pure(epsilon=least, protects=self.protects, trust=self.trust, neighbors=self.neighbors)

    @property
    def largest_loss(self) -> Fraction | None:
        return _largest_loss(self.factors)

    def delta_at(self, *, epsilon: Number) -> float:
        at = exactly(epsilon, "epsilon")
        if at < 0:
            raise InvalidArgument("epsilon must not be negative.", code="out-of-range")
        if (bound := self.largest_loss) is not None and at >= bound:
            return self.infinite
        return _delta_at(self.factors, float_down(at))

    def epsilon_at(self, *, delta: Number) -> float:
        at = check_delta(delta)
        if (bound := self.largest_loss) is not None and at == _one_leak(self.factors):
            return float_up(bound)  # exactly the stated δ
        return _epsilon_at(self.factors, float_down(at))

    def renyi(self, order: float) -> float:
        return sum(times * pair.renyi(order) for pair, times in self.factors) * SLACK

    def rho(self, *, outside: bool = False) -> float:
        """A ρ for which ρ-zCDP holds, with `outside` only outside the mass `infinite`. Infinity if none is known."""
        factors = _moving(self.factors)[0] if outside else self.factors
        return sum(times * _rho(pair) for pair, times in factors) * SLACK

    def _twice(self) -> Self:
        return replace(self, factors=tuple((pair.twice(), times) for pair, times in self.factors))


def _largest_loss(factors: Factors) -> Fraction | None:
    total = Fraction(0)
    for pair, times in factors:
        ends = (pair.bound, pair.mirrored().bound)
        if ends[0] is None or ends[1] is None:
            return None
        total += times * max(ends[0], ends[1])
    return total


def _moving(factors: Factors) -> tuple[Factors, float]:
    """The factors with losses other than 0 and infinity, and the probability that one of the others leaks
    everything.
    """
    still = tuple((pair, times) for pair, times in factors if pair.bound == 0)
    return tuple((pair, times) for pair, times in factors if pair.bound != 0), _infinite(still)


def _one_leak(factors: Factors) -> Fraction | None:
    """The exact probability of a total leak, if it comes from a single stated δ."""
    leaks = [(pair, times) for pair, times in factors if pair.infinite or pair.mirrored().infinite]
    if not leaks:
        return Fraction(0)
    pair, times = leaks[0]
    return pair.delta_mass if len(leaks) == times == 1 and isinstance(pair, ResponsePair) else None


def _infinite(factors: Factors) -> float:
    if any(pair.infinite >= 1 for pair, _ in factors):
        return 1.0
    kept = sum(times * math.log1p(-pair.infinite) for pair, times in factors if pair.infinite)
    return 0.0 if kept == 0 else min(1.0, -math.expm1(kept) * SLACK)


def _rho(pair: Pair) -> float:
    if isinstance(pair, NearPair):
        return _rho(pair.base)
    if isinstance(pair, GaussianPair | TradeoffPair | ConcentratedPair):
        return pair.renyi(1.0)
    if isinstance(pair, BoundedRangePair):
        return pair.largest**2 / 8
    if isinstance(pair, EitherPair):
        return min(_rho(pair.first), _rho(pair.second))
    other = pair.mirrored()
    return math.inf if pair.infinite or other.infinite else max(pair.largest, other.largest) ** 2 / 2


def _directions(factors: Factors) -> list[Factors]:
    other = tuple((pair.mirrored(), times) for pair, times in factors)
    return [factors] if other == factors else [factors, other]


def _worst(factors: Factors, answer: Callable[[Factors, float], float]) -> float:
    """The larger result of the two directions. A coarse result is never below the fine one, so a direction is done if
    its coarse result is below the fine result of the other.
    """
    sides = _directions(factors)
    if len(sides) == 1:
        return answer(sides[0], _FINE)
    worst = -math.inf
    for coarse, side in sorted(((answer(side, _COARSE), side) for side in sides), key=lambda pair: -pair[0]):
        if coarse > worst:
            worst = max(worst, min(coarse, answer(side, _FINE)))
    return worst


@lru_cache(maxsize=4096)
def _delta_at(factors: Factors, epsilon: float) -> float:
    factors = tuple(pair.repeated(times) for pair, times in factors)
    moving, leak = _moving(factors)
    if len(moving) == 1 and moving[0][1] == 1:
        single = max(side[0][0].delta(epsilon) for side in _directions(moving))
        return min(1.0, single + (1 - single) * leak)
    bound = _largest_loss(factors)
    if bound is not None and exactly(epsilon) >= bound:
        return LossDistribution(factors=factors).infinite
    numeric = _worst(
        factors, lambda side, accuracy: compose_pairs(side, epsilon=epsilon, accuracy=accuracy).delta(epsilon)
    )
    if any(isinstance(pair, ProfilePair) and pair.loose for pair, _ in factors):
        whole = LossDistribution(factors=factors)
        numeric = min(numeric, delta_from_renyi(whole.renyi, epsilon) + whole.infinite)
    return max(numeric, 5e-324)


@lru_cache(maxsize=4096)
def _epsilon_at(factors: Factors, delta: float) -> float:
    factors = tuple(pair.repeated(times) for pair, times in factors)
    whole = LossDistribution(factors=factors)
    largest = math.inf if whole.largest_loss is None else float_up(whole.largest_loss)
    if delta <= whole.infinite:
        return largest if delta == whole.infinite else math.inf
    if len(_moving(factors)[0]) == 1 and _moving(factors)[0][0][1] == 1:
        return min(smallest_epsilon(lambda epsilon: _delta_at(factors, epsilon), delta), largest)
    numeric = _worst(factors, lambda side, accuracy: compose_pairs(side, delta=delta, accuracy=accuracy).epsilon(delta))
    if any(isinstance(pair, ProfilePair) and pair.loose for pair, _ in factors):
        numeric = min(numeric, epsilon_from_renyi(whole.renyi, delta - whole.infinite))
    return min(numeric, largest)


def pair_of(guarantee: Guarantee) -> Factors:
    """The dominating pairs of any guarantee."""
    match guarantee:
        case LossDistribution():
            return guarantee.factors
        case Approx():
            return ((ResponsePair(exactly(guarantee.epsilon), exactly(guarantee.delta)), 1),)
        case GaussianTradeoff():
            return ((TradeoffPair(float_up(exactly(guarantee.mu))), 1),)
        case ZeroConcentrated():
            return ((ConcentratedPair(exactly(guarantee.rho)), 1),)
        case Renyi():
            return ((RenyiPair(exactly(guarantee.order), exactly(guarantee.epsilon)), 1),)
    raise InvalidArgument(
        f"{type(guarantee).__name__} cannot be composed. Compose guarantees, not mechanisms.", code="wrong-type"
    )


def compose(guarantees: Iterable[Guarantee]) -> LossDistribution:
    """The guarantee of several releases together, if all their parameters were fixed before the first.

    Promise: never below the exact answer for the noise that is drawn. This is not a stopping rule for questions that
    depend on earlier answers: a ledger has a rule for that.

    >>> one = Pure(epsilon=0.1)
    >>> compose([one] * 10) == compose([compose([one] * 5), compose([one] * 5)])
    True
    """
    listed = list(guarantees) if isinstance(guarantees, Iterable) else [None]
    if not listed:
        raise InvalidArgument("compose needs at least one guarantee.", code="empty")
    counts: Counter[Pair] = Counter()
    if not all(isinstance(guarantee, Guarantee) for guarantee in listed):
        raise InvalidArgument(
            "compose takes guarantees. Write compose([m.guarantee(sensitivity=1), …]).", code="wrong-type"
        )
    uses = Counter(map(id, listed))  # a thousand uses of one object are handled once
    different = {id(one): one for one in listed}
    trust = listed[0].trust
    if any(guarantee.trust != trust for guarantee in different.values()):
        raise IncompatibleGuarantee(
            "Central, local and shuffled guarantees cannot be composed with each other. Compose guarantees of one kind."
        )
    units = {guarantee.protects for guarantee in different.values()} - {None}
    if len(units) > 1:
        raise IncompatibleGuarantee(
            f"The guarantees protect different units: {', '.join(sorted(map(repr, units)))}. State them for one."
        )
    unit = next(iter(units), None)
    proved = {guarantee.neighbors for guarantee in different.values()} - {None}
    neighbors: Relation | None = None
    if unit is None and proved:
        neighbors = "replace" if "replace" in proved else "add_or_remove"
    for key, guarantee in different.items():
        stated = guarantee.stated_for(unit)
        if neighbors == "replace" and guarantee.neighbors == "add_or_remove":
            stated = guarantee.for_replacement()
        for pair, times in pair_of(stated):
            counts[pair] += times * uses[key]
    return LossDistribution(factors=_merge_divergences(counts), protects=unit, trust=trust, neighbors=neighbors)


def _merge_divergences(counts: Counter[Pair]) -> Factors:
    """Divergences are added before they are turned into pairs: all zCDP items become one, and so do the Rényi items of
    one order.
    """
    kept: list[tuple[Pair, int]] = []
    rho = sum((times * pair.rho for pair, times in counts.items() if isinstance(pair, ConcentratedPair)), Fraction(0))
    if rho:
        kept.append((ConcentratedPair(rho), 1))
    orders: dict[Fraction, Fraction] = {}
    for pair, times in counts.items():
        if isinstance(pair, RenyiPair):
            orders[pair.order] = orders.get(pair.order, Fraction(0)) + times * pair.divergence
        elif not isinstance(pair, ConcentratedPair):
            kept.append((pair, times))
    kept += [(RenyiPair(order, divergence), 1) for order, divergence in orders.items()]
    return tuple(sorted(kept, key=lambda factor: repr(factor[0])))
