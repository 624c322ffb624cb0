"""Composition as addition: a rule turns each guarantee into a vector of costs, and the vectors are added.

A `Rule` has two functions, `coordinates(guarantee)` and `total(vector)`. The base class adds, repeats and refuses.
Vectors are integers in units of 10^-18. Costs are rounded up and limits down, and δ is always first. A `Filter` has one
cost besides δ, and one box that is fixed when the ledger is opened, so it holds however the questions are chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

from discreet.errors import BudgetExhausted, IncompatibleGuarantee, InvalidArgument
from discreet.exact.rational import (
    LEDGER_UNIT,
    SMALLEST_EPSILON,
    Number,
    check_count,
    exactly,
    round_down,
    round_up,
    sqrt_up,
)
from discreet.exact.search import bisect
from discreet.guarantees.guarantee import Approx, GaussianTradeoff, Guarantee, Pure, Renyi, ZeroConcentrated
from discreet.guarantees.rules.coordinates import (
    as_fraction,
    best_order,
    conversion_cost,
    stated_delta,
    stated_epsilon,
    stated_rho,
)

Vector = tuple[int, ...]
SHOWN_AT = Fraction(1, 10**6)
"""The δ at which a total is shown if the limit has none (a limit in ρ, μ or a Rényi order)."""
_FAR, _FARTHEST = 64 * LEDGER_UNIT, 10**6 * LEDGER_UNIT + 1
"""Where the search for the largest guarantee begins, usually, and where it ends."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """How costs add up, and when a limit is reached. `adaptive` says whether it can guard an adaptive session.

    `adds_stated` says that, for a release with δ, it adds only a stated ε and δ, and not the curve of its losses.
    """

    limit: Guarantee
    name: ClassVar[str]
    adaptive: ClassVar[bool] = True
    adds_stated: ClassVar[bool] = False

    @property
    def labels(self) -> tuple[str, ...]:
        """What each coordinate counts, in symbols."""
        raise NotImplementedError

    def coordinates(self, guarantee: Guarantee) -> Vector:
        """The cost of one release in ledger units, rounded up."""
        raise NotImplementedError

    def total(self, vector: Vector) -> Approx:
        """The (ε,δ) of releases that were fixed in advance and cost `vector` in total, rounded up."""
        raise NotImplementedError

    def fits(self, vector: Vector) -> bool:
        """Whether a total cost of `vector` keeps `limit`."""
        raise NotImplementedError

    @property
    def nothing(self) -> Vector:
        """What a new ledger has spent."""
        return (0,) * len(self.labels)

    def charged(self, drawn: Guarantee, goal: Guarantee, *, proved: bool = False) -> Guarantee:
        """The cost of a release that was calibrated for `goal`: the goal if the rule adds only (ε,δ), otherwise
        `drawn`.

        Other modules call `ledger.cost_of`. With `proved`, the caller has shown that `drawn` keeps the goal.

        Promise: `drawn` keeps the returned guarantee, for the unit that `drawn` protects.
        """
        if not self.adds_stated or not isinstance(goal, Approx) or not exactly(goal.delta):
            return drawn
        kept = proved or drawn.delta_at(epsilon=goal.epsilon) <= exactly(goal.delta)
        if not kept:
            raise IncompatibleGuarantee(
                "The noise does not keep the requested (ε,δ). This is a bug: please report it.",
                code="guarantee-not-kept",
            )
        return replace(goal, protects=drawn.protects, trust=drawn.trust, neighbors=drawn.neighbors)

    def spend(self, vector: Vector, guarantee: Guarantee, times: int = 1) -> Vector:
        """The total after `times` more releases."""
        return self.add(vector, self.coordinates(guarantee), times)

    def add(self, vector: Vector, cost: Vector, times: int = 1) -> Vector:
        """A total plus a cost. Costs are added and repeated only here."""
        count = check_count(times, "times")
        return tuple([spent + count * more for spent, more in zip(vector, cost, strict=True)])

    def fixed(self) -> Self:
        """The same rule with everything that follows from its limit stated explicitly. A ledger records it when it is
        opened.
        """
        return self

    def raised(self, limit: Guarantee) -> Self:
        """The rule for a larger limit, with the same coordinates and conversions.

        Promise: what fitted before still fits, so a session that raises its limit is a session under the larger limit.
        """
        if not _covers(limit, self.limit):
            raise InvalidArgument(
                f"A limit can only grow: {limit} does not cover {self.limit}, or is of another kind.",
                code="limit-shrinks",
            )
        return replace(self.fixed(), limit=limit)

    def admit(self, vector: Vector, guarantee: Guarantee, times: int = 1) -> Vector:
        """The total after the releases. Raises BudgetExhausted if they exceed the limit. Nothing is spent then."""
        after = self.spend(vector, guarantee, times)
        if not self.fits(after):
            remaining = self.largest(vector, guarantee)
            raise BudgetExhausted(self.refusal(guarantee, remaining), remaining=remaining)
        return after

    def largest(self, vector: Vector, like: Guarantee, times: int = 1) -> Guarantee | None:
        """The largest guarantee of the same kind as `like` (same δ or order) that still fits so many times. None if
        nothing fits.
        """
        fits = self._fits_more(vector, times)

        def holds(units: int) -> bool:
            return fits(_of_size(like, Fraction(units, LEDGER_UNIT)))

        units = bisect(holds, 0, _FARTHEST if holds(_FAR) else _FAR)
        return _of_size(like, _readable(Fraction(units, LEDGER_UNIT))) if units else None

    def _fits_more(self, vector: Vector, times: int) -> Callable[[Guarantee], bool]:
        """Whether a release still fits so many times, for a search: after one that fits, only larger ones are asked."""
        return lambda guarantee: self.fits(self.spend(vector, guarantee, times))

    def refusal(self, guarantee: Guarantee, remaining: Guarantee | None) -> str:
        """Why a release is refused, and what would still fit."""
        left = f"The largest that still fits is {remaining}" if remaining else "Nothing of this kind still fits"
        text = f"{guarantee} passes the limit of {self.limit} (rule {self.name!r}). Nothing was spent. {left}."
        if str(guarantee) == str(remaining):
            text += (
                " The request is above by less than is shown: a vector pays for rounding to the lattice. "
                "Calibrate for it with sensitivity=dp.Sensitivity(…, dimension=…)."
            )
        return text


@dataclass(frozen=True, kw_only=True)
class Filter(Rule):
    """One cost besides δ, and one box: `Σ cost ≤ room` and `Σ δ_i ≤ δ − conversion`, both fixed when the ledger is
    opened.

    `conversion` is the part of the limit's δ that is for the conversion of the cost to an ε. The default is `share`.

    Promise: every adaptive sequence of releases that stays in the box satisfies `limit`. Proof: each release costs
    `cost` except on a bad part of mass δ_i, and together these have mass at most Σδ_i.
    """

    conversion: Fraction | None = None
    share: ClassVar[Fraction] = Fraction(1, 2)
    symbol: ClassVar[str]
    native: ClassVar[type[Guarantee]] = Approx
    remedy: ClassVar[str] = 'Open the ledger with rule="best", or pass stated=dp.Approx(…) to release.'

    def __post_init__(self) -> None:
        if not isinstance(self.limit, Approx | self.native):
            raise InvalidArgument(
                f"The rule {self.name!r} cannot guard a limit of {self.limit}. Use another.", code="rule-does-not-fit"
            )
        if isinstance(self.limit, Approx) and self.share and not 0 < self.converted <= exactly(self.limit.delta):
            raise InvalidArgument(
                f'The rule {self.name!r} needs a limit with δ above 0. Use rule="basic" for δ = 0.', code="needs-delta"
            )

    def fixed(self) -> Self:
        return replace(self, conversion=self.converted)

    def cost(self, guarantee: Guarantee) -> Fraction | None:
        """The cost besides δ, rounded up. None if it is not finite under this rule."""
        raise NotImplementedError

    def epsilon(self, spent: Fraction, delta: Fraction) -> Fraction:
        """The ε of a total cost `spent` > 0, converted at δ = `conversion`, rounded up."""
        raise NotImplementedError

    @property
    def labels(self) -> tuple[str, ...]:
        return "δ", self.symbol

    @property
    def converted(self) -> Fraction:
        """The δ for the conversion to ε."""
        if self.conversion is not None:
            return self.conversion
        return exactly(self.limit.delta) * self.share if isinstance(self.limit, Approx) else SHOWN_AT

    @cached_property
    def room(self) -> int:
        """The largest total cost, in ledger units, that keeps the limit. Negative if there is none."""
        if not isinstance(self.limit, Approx):
            return round_down(self.cost(self.limit) or Fraction(0))
        epsilon, unit = exactly(self.limit.epsilon), Fraction(1, LEDGER_UNIT)
        return bisect(lambda k: self.epsilon(k * unit, self.converted) <= epsilon, 0, 10**40 + 1)

    @cached_property
    def delta_room(self) -> int:
        """The largest Σδ_i, in ledger units, that keeps the limit."""
        return round_down(exactly(self.limit.delta) - self.converted) if isinstance(self.limit, Approx) else 0

    def coordinates(self, guarantee: Guarantee) -> Vector:
        cost = self.cost(guarantee)
        if cost is None:
            raise IncompatibleGuarantee(f"{guarantee} has no finite cost under rule {self.name!r}. {self.remedy}")
        return round_up(stated_delta(guarantee)), round_up(cost)

    def total(self, vector: Vector) -> Approx:
        delta, spent = (Fraction(v, LEDGER_UNIT) for v in vector)
        epsilon = self.epsilon(spent, self.converted) if spent else Fraction(0)
        return Approx(epsilon=max(epsilon, SMALLEST_EPSILON), delta=self.converted + delta)

    def fits(self, vector: Vector) -> bool:
        return vector[0] <= self.delta_room and vector[1] <= self.room


class Basic(Filter):
    """Σε and Σδ. The whole limit can be spent on one release.

    Promise: adaptive (ε_i,δ_i)-DP releases are (Σε_i, Σδ_i)-DP, even if the ε_i are chosen adaptively.
    Source: basic composition (Dwork et al. 2006); as a filter, Rogers-Roth-Ullman-Vadhan 2016.
    """

    name, symbol, share, adds_stated = "basic", "ε", Fraction(0), True

    def cost(self, guarantee: Guarantee) -> Fraction | None:
        return stated_epsilon(guarantee)

    def epsilon(self, spent: Fraction, delta: Fraction) -> Fraction:
        return spent


class ZeroConcentratedRule(Filter):
    """Σρ.

    Promise: adaptive δ_i-approximate ρ_i-zCDP releases are Σδ_i-approximate Σρ_i-zCDP, a valid stopping rule.
    Source: Bun-Steinke 2016; as a filter, Whitehouse-Ramdas-Rogers-Wu 2023, Theorem 1. ε is computed at a fixed order.
    """

    name, symbol, native = "zcdp", "ρ", ZeroConcentrated

    def cost(self, guarantee: Guarantee) -> Fraction | None:
        return stated_rho(guarantee)

    def epsilon(self, spent: Fraction, delta: Fraction) -> Fraction:
        return as_fraction(ZeroConcentrated(rho=spent).epsilon_at(delta=delta))

    @cached_property
    def room(self) -> int:
        if not isinstance(self.limit, Approx):
            return super().room
        order = best_order(self.limit.epsilon, self.converted)
        return round_down((exactly(self.limit.epsilon) - conversion_cost(order, self.converted)) / order)


@dataclass(frozen=True, kw_only=True)
class RenyiRule(Filter):
    """The sum of the Rényi divergences of one `order`, fixed when the ledger is opened (by default, the best for
    Gaussian noise).

    Promise: adaptive releases with divergences r_i outside masses δ_i have divergence Σr_i outside Σδ_i.
    Source: Mironov 2017; as a filter, Feldman-Zrnic 2021; ε by Canonne-Kamath-Steinke 2020, Proposition 12.
    """

    name, native = "renyi", Renyi
    order: Number | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.at <= 1 or (isinstance(self.limit, Renyi) and self.order not in (None, self.limit.order)):
            raise InvalidArgument(
                "order must be above 1. If the limit is Renyi, it must be the order of the limit.", code="out-of-range"
            )

    def fixed(self) -> Self:
        return replace(super().fixed(), order=self.at)

    @cached_property
    def at(self) -> Fraction:
        """The order at which divergences add."""
        if self.order is not None or not isinstance(self.limit, Approx):
            return exactly(getattr(self.limit, "order", self.order), "order")
        return best_order(self.limit.epsilon, self.converted)

    @property
    def labels(self) -> tuple[str, ...]:
        return "δ", f"Rényi {float(self.at):.6g}"

    def cost(self, guarantee: Guarantee) -> Fraction | None:
        if isinstance(guarantee, Renyi):
            return exactly(guarantee.epsilon) if self.at <= exactly(guarantee.order) else None
        divergence = guarantee.renyi(float(self.at))
        return Fraction(divergence) if math.isfinite(divergence) else None

    def epsilon(self, spent: Fraction, delta: Fraction) -> Fraction:
        return max(Fraction(0), spent + conversion_cost(self.at, delta))

    @cached_property
    def room(self) -> int:
        if not isinstance(self.limit, Approx):
            return super().room
        return round_down(exactly(self.limit.epsilon) - conversion_cost(self.at, self.converted))


class GaussianRule(Filter):
    """Σμ², for true Gaussian trade-offs only. Guarantees in ρ or Rényi divergences have no μ.

    Promise: adaptive μ_i-GDP releases with Σμ_i² ≤ μ² are μ-GDP, even if the μ_i are chosen adaptively.
    Source: Dong-Roth-Su 2022; as a filter, Smith-Thakurta 2022. (f-DP in general is not a filter.)
    """

    name, symbol, native, share = "gaussian", "μ²", GaussianTradeoff, Fraction(1)
    remedy = 'This rule adds only GaussianTradeoff. Open the ledger with rule="zcdp" or rule="best".'

    def cost(self, guarantee: Guarantee) -> Fraction | None:
        return exactly(guarantee.mu) ** 2 if isinstance(guarantee, GaussianTradeoff) else None

    def epsilon(self, spent: Fraction, delta: Fraction) -> Fraction:
        return as_fraction(GaussianTradeoff(mu=sqrt_up(spent)).epsilon_at(delta=delta))


def _covers(limit: Guarantee, old: Guarantee) -> bool:
    """Whether a limit allows at least as much as an old one of the same kind."""
    if isinstance(limit, Approx) and isinstance(old, Approx):
        names: tuple[str, ...] = ("epsilon", "delta")
    elif type(limit) is not type(old) or getattr(limit, "order", None) != getattr(old, "order", None):
        return False
    else:
        names = tuple(name for name in ("rho", "mu", "epsilon") if hasattr(old, name))
    return all(exactly(getattr(limit, name)) >= exactly(getattr(old, name)) for name in names)


def _of_size(like: Guarantee, size: Any) -> Guarantee:
    # the same kind of guarantee with another size; for a loss distribution, (ε,δ) instead
    for field, kind in (("rho", ZeroConcentrated), ("mu", GaussianTradeoff), ("epsilon", Approx | Renyi)):
        if isinstance(like, kind):
            return replace(like, **{field: size})
    if like.infinite:
        return Approx(epsilon=size, delta=Fraction(like.infinite), protects=like.protects, trust=like.trust)
    return Pure(epsilon=size, protects=like.protects, trust=like.trust)


def _readable(size: Fraction) -> float:
    # the largest float that is at most `size` when it is read as the decimal that it prints
    value = float(size)
    while exactly(value) > size:
        value = math.nextafter(value, 0)
    return value
