"""Guarantees: how much one unit can change what is released.

Each class has the same four methods, rounded to the safe side: `epsilon_at(delta=)`, `delta_at(epsilon=)`,
`renyi(order)` (the Rényi divergence outside the mass `infinite`, which is set aside) and `for_replacement()`. A limit
is also a guarantee. Fields keep the number that a person wrote, and `exactly` reads it as that decimal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, fields, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

from discreet.errors import IncompatibleGuarantee, InvalidArgument
from discreet.exact.rational import (
    Number,
    check_delta,
    check_epsilon,
    check_positive,
    exactly,
    exp_bounds,
    float_up,
    log_bounds,
)
from discreet.guarantees.conversions import (
    delta_at_order,
    delta_from_renyi,
    epsilon_at_order,
    epsilon_from_renyi,
    gaussian_delta,
    renyi_of_response,
    smallest_epsilon,
)
from discreet.guarantees.unit import Relation, Unit

Trust = Literal["central", "local", "shuffled"]


@dataclass(frozen=True, repr=False)
class Guarantee:
    """What every guarantee has: who is protected (`protects`, None if no unit is named) and against whom (`trust`).

    `neighbors` is the relation for which a guarantee without a unit was proved. It is None if the sensitivity was
    stated for the unit of the ledger that is charged.
    """

    _: KW_ONLY
    protects: Unit | None = None
    trust: Trust = "central"
    neighbors: Relation | None = None
    theorem: ClassVar[str] = ""

    def __repr__(self) -> str:
        shown = [f for f in fields(self) if getattr(self, f.name) != f.default and f.init]
        shown.sort(key=lambda f: f.name in ("protects", "trust", "neighbors"))
        return f"{type(self).__name__}({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in shown)})"

    @property
    def relation(self) -> Relation:
        """The neighbor relation of the guarantee."""
        return (self.neighbors or "add_or_remove") if self.protects is None else self.protects.neighbors

    @property
    def infinite(self) -> float:
        """The probability set aside as a total loss: the δ coordinate of this guarantee."""
        return 0.0

    @property
    def largest_loss(self) -> Fraction | None:
        """An exact bound on every loss outside the mass `infinite`: the ε coordinate of basic sums. None if there is
        none.
        """
        return None

    def epsilon_at(self, *, delta: Number) -> float:
        """The smallest known ε for which (ε, delta) holds, rounded up. Infinity if none is known."""
        raise NotImplementedError

    def delta_at(self, *, epsilon: Number) -> float:
        """The smallest known δ for which (epsilon, δ) holds, rounded up."""
        raise NotImplementedError

    def renyi(self, order: float) -> float:
        """An upper bound on the Rényi divergence of this order, outside the mass `infinite`."""
        raise NotImplementedError

    def for_replacement(self) -> Self:
        """The guarantee if a unit is replaced instead of added or removed (two steps of the relation)."""
        if self.relation == "replace":
            return self
        if self.protects is None:
            return replace(self._twice(), neighbors="replace")
        return replace(self._twice(), protects=replace(self.protects, neighbors="replace"))

    def _twice(self) -> Self:
        raise NotImplementedError

    def stated_for(self, unit: Unit | None) -> Self:
        """This guarantee for `unit`. It is converted from add/remove to replace if needed. Raises for a different
        unit.
        """
        if unit is None:
            return self
        if self.protects is None:
            own = unit if self.neighbors in (None, unit.neighbors) else replace(unit, neighbors=self.neighbors)
            return replace(self, protects=own, neighbors=None).stated_for(unit)
        if not unit.same_kind(self.protects):
            raise IncompatibleGuarantee(
                f"The guarantee protects {self.protects!r}, but {unit!r} is requested. "
                "Derive the sensitivity for the unit that the ledger protects."
            )
        if unit.neighbors == self.relation:
            return self
        if unit.neighbors == "add_or_remove":
            raise IncompatibleGuarantee(
                "A guarantee for replaced units does not cover added or removed ones. "
                f"Open a ledger with protects={self.protects!r}, or use a mechanism proved for add_or_remove."
            )
        return self.for_replacement()


def _fmt(value: Any) -> str:
    return f"{float(value):.6g}"


@dataclass(frozen=True, repr=False)
class Approx(Guarantee):
    """(ε,δ)-differential privacy: `P[M(X)∈F] ≤ e^ε P[M(X')∈F] + δ` for all neighbors and events.

    >>> Approx(epsilon=1, delta=1e-6).epsilon_at(delta=1e-6)
    1.0
    """

    _: KW_ONLY
    epsilon: Number
    delta: Number = 0

    theorem: ClassVar[str] = "definition; tight curve by Kairouz-Oh-Viswanath"

    def __post_init__(self) -> None:
        if exactly(self.epsilon, "epsilon") != 0 or exactly(self.delta, "delta") == 0:
            check_epsilon(self.epsilon)
        check_delta(self.delta)

    def __str__(self) -> str:
        return f"ε = {_fmt(self.epsilon)}" + (f", δ = {_fmt(self.delta)}" if self.delta else "")

    @property
    def infinite(self) -> float:
        return float_up(exactly(self.delta))

    @property
    def largest_loss(self) -> Fraction:
        return exactly(self.epsilon)

    def delta_at(self, *, epsilon: Number) -> float:
        # the worst (ε,δ) mechanism leaks everything with probability δ, and is otherwise randomized response
        own_epsilon, own_delta = exactly(self.epsilon), exactly(self.delta)
        at = exactly(epsilon, "epsilon")
        if at >= own_epsilon:
            return float_up(own_delta)
        above = exp_bounds(own_epsilon)[1]
        return float_up(own_delta + (1 - own_delta) * (above - exp_bounds(at)[0]) / (1 + above))

    def epsilon_at(self, *, delta: Number) -> float:
        own_epsilon, own_delta = exactly(self.epsilon), exactly(self.delta)
        at = check_delta(delta)
        if at < own_delta:
            return math.inf
        if at == own_delta:
            return float_up(own_epsilon)
        ratio = (1 - at) / (1 - own_delta) * (1 + exp_bounds(own_epsilon)[1]) - 1
        return 0.0 if ratio <= 1 else min(float_up(log_bounds(ratio)[1]), float_up(own_epsilon))

    def renyi(self, order: float) -> float:
        return renyi_of_response(float_up(exactly(self.epsilon)), order)

    def _twice(self) -> Self:
        own_epsilon, own_delta = exactly(self.epsilon), exactly(self.delta)
        doubled = (1 + exp_bounds(own_epsilon)[1]) * own_delta
        if doubled >= 1:
            raise IncompatibleGuarantee("δ is too large to be converted to replacement: (1+e^ε)δ exceeds 1.")
        twice = replace(self, epsilon=2 * own_epsilon)
        return replace(twice, delta=doubled) if doubled else twice


@dataclass(frozen=True, repr=False)
class Pure(Approx):
    """ε-differential privacy: δ is 0.

    >>> Pure(epsilon=0.5).delta_at(epsilon=0.5)
    0.0
    """

    _: KW_ONLY
    epsilon: Number
    delta: ClassVar[int] = 0  # type: ignore[misc]

    theorem: ClassVar[str] = "definition"

    def __init__(
        self,
        *,
        epsilon: Number,
        protects: Unit | None = None,
        trust: Trust = "central",
        neighbors: Relation | None = None,
    ) -> None:
        for name, value in (("epsilon", epsilon), ("protects", protects), ("trust", trust), ("neighbors", neighbors)):
            object.__setattr__(self, name, value)
        check_epsilon(epsilon)


@dataclass(frozen=True, repr=False)
class NoLoss(Guarantee):
    """Neighbors have the same output, as nothing private was read. There is nothing to charge, and no ledger takes it.

    >>> NoLoss().epsilon_at(delta=0)
    0.0
    """

    theorem: ClassVar[str] = "definition"

    def __str__(self) -> str:
        return "nothing"

    @property
    def largest_loss(self) -> Fraction:
        return Fraction(0)

    def epsilon_at(self, *, delta: Number) -> float:
        check_delta(delta)
        return 0.0

    def delta_at(self, *, epsilon: Number) -> float:
        return 0.0

    def renyi(self, order: float) -> float:
        return 0.0

    def _twice(self) -> Self:
        return self


@dataclass(frozen=True, repr=False)
class ZeroConcentrated(Guarantee):
    """ρ-zCDP: every Rényi divergence of order α is at most ρα.

    >>> round(ZeroConcentrated(rho=0.5).epsilon_at(delta=1e-6), 3)
    5.222
    """

    _: KW_ONLY
    rho: Number
    theorem: ClassVar[str] = "Bun-Steinke 2016; conversion of Canonne-Kamath-Steinke 2020"

    def __post_init__(self) -> None:
        check_positive(self.rho, "rho")

    def __str__(self) -> str:
        return f"ρ = {_fmt(self.rho)}"

    def delta_at(self, *, epsilon: Number) -> float:
        return delta_from_renyi(self._curve(), _epsilon_or_zero(epsilon))

    def epsilon_at(self, *, delta: Number) -> float:
        return epsilon_from_renyi(self._curve(), check_delta(delta))

    def renyi(self, order: float) -> float:
        return float_up(exactly(self.rho) * exactly(order, "order"))

    def _curve(self) -> Callable[[float], float]:
        """`renyi` in floats, rounded up. It is faster, because many orders are tried."""
        rho = float_up(exactly(self.rho))
        return lambda order: math.nextafter(rho * order, math.inf)

    def _twice(self) -> Self:
        return replace(self, rho=4 * exactly(self.rho))


@dataclass(frozen=True, repr=False)
class Renyi(Guarantee):
    """The Rényi divergence of one fixed order is at most `epsilon` (lower orders follow, higher ones do not)."""

    _: KW_ONLY
    order: Number
    epsilon: Number
    theorem: ClassVar[str] = "Mironov 2017; conversion of Canonne-Kamath-Steinke 2020"

    def __post_init__(self) -> None:
        if exactly(self.order, "order") <= 1:
            raise InvalidArgument("order must be above 1, such as 2 or 32.", code="out-of-range")
        check_epsilon(self.epsilon)

    def __str__(self) -> str:
        return f"Rényi divergence of order {_fmt(self.order)} at most {_fmt(self.epsilon)}"

    def delta_at(self, *, epsilon: Number) -> float:
        return delta_at_order(float(self.order), self.renyi(float(self.order)), _epsilon_or_zero(epsilon))

    def epsilon_at(self, *, delta: Number) -> float:
        return epsilon_at_order(float(self.order), self.renyi(float(self.order)), check_delta(delta))

    def renyi(self, order: float) -> float:
        return float_up(exactly(self.epsilon)) if order <= float(self.order) else math.inf

    def _twice(self) -> Self:
        if exactly(self.order) < 4:
            raise IncompatibleGuarantee(
                "A Rényi guarantee of order below 4 has no known conversion to replacement. "
                "State a higher order, or use zCDP."
            )
        return replace(self, order=exactly(self.order) / 2, epsilon=3 * exactly(self.epsilon))


@dataclass(frozen=True, repr=False)
class GaussianTradeoff(Guarantee):
    """μ-GDP: distinguishing neighbors is at least as hard as distinguishing N(0,1) from N(μ,1).

    >>> round(GaussianTradeoff(mu=1).epsilon_at(delta=1e-6), 3)
    4.887
    """

    _: KW_ONLY
    mu: Number
    theorem: ClassVar[str] = "Dong-Roth-Su 2022; curve of Balle-Wang 2018"

    def __post_init__(self) -> None:
        check_positive(self.mu, "mu")

    def __str__(self) -> str:
        return f"μ = {_fmt(self.mu)}"

    def delta_at(self, *, epsilon: Number) -> float:
        return gaussian_delta(float_up(exactly(self.mu)), _epsilon_or_zero(epsilon))

    def epsilon_at(self, *, delta: Number) -> float:
        mu, at = float_up(exactly(self.mu)), float(check_delta(delta))
        if at == 0:
            return math.inf
        return smallest_epsilon(lambda epsilon: gaussian_delta(mu, epsilon), at)

    def renyi(self, order: float) -> float:
        return float_up(exactly(self.mu) ** 2 * exactly(order, "order") / 2)

    def _twice(self) -> Self:
        return replace(self, mu=2 * exactly(self.mu))


def _epsilon_or_zero(epsilon: Any) -> float:
    exact = exactly(epsilon, "epsilon")
    if exact < 0:
        raise InvalidArgument("epsilon must not be negative.", code="out-of-range")
    return float(exact)
