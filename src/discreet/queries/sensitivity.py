"""How far one unit can move an answer: an amount, in a norm, for a unit with its neighbor relation."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count, check_positive, exactly, sqrt_up
from discreet.guarantees.unit import Unit

Norm = Literal["L1", "L2", "Linf"]
NORMS: tuple[Norm, ...] = ("L1", "L2", "Linf")


@dataclass(frozen=True)
class Sensitivity:
    """The largest distance, in `norm`, between the answers on two neighboring databases.

    `unit` names who is protected and the relation (None: the ledger's own unit). `dimension` is the number of
    coordinates. Neighboring answers differ by whole multiples of `grain` in every coordinate, where it is
    known (1 for counts). `monotone`: one neighbor's coordinates are all at least the other's.

    >>> Sensitivity(1, unit=Unit(neighbors="replace"), grain=1).in_steps(Fraction(1, 4))
    4
    """

    amount: Number
    norm: Norm = "L1"
    unit: Unit | None = None
    dimension: int = 1
    grain: Number | None = None
    monotone: bool = False

    def __post_init__(self) -> None:
        amount = check_positive(self.amount, "sensitivity")
        check_norm(self.norm)
        check_count(self.dimension, "dimension")
        if self.unit is not None and not isinstance(self.unit, Unit):
            raise InvalidArgument("unit must be row() or person('column').", code="wrong-type")
        if self.grain is not None and check_positive(self.grain, "grain") > amount:
            raise InvalidArgument(
                "grain must be at most the sensitivity. With a larger grain nothing could change.", code="out-of-range"
            )

    def __str__(self) -> str:
        norm = "" if self.dimension == 1 else f" in {self.norm}"
        if self.unit is None:
            return f"at most {float(self.exact):.6g}{norm}"
        change = "replaced" if self.replaced else "added or removed"
        return f"at most {float(self.exact):.6g}{norm} when one {self.unit!r} is {change}"

    @property
    def exact(self) -> Fraction:
        """The amount as an exact rational number."""
        return exactly(self.amount)

    @property
    def replaced(self) -> bool:
        """Whether it is for a unit that is replaced, rather than added or removed."""
        return self.unit is not None and self.unit.neighbors == "replace"

    def to(self, norm: Norm) -> Sensitivity:
        """The same bound stated in another norm, rounded up where a square root is not rational.

        Promise: `‖x‖∞ ≤ ‖x‖₂ ≤ ‖x‖₁`, `‖x‖₁ ≤ √d ‖x‖₂`, `‖x‖₂ ≤ √d ‖x‖∞`, `‖x‖₁ ≤ d ‖x‖∞`.
        """
        check_norm(norm)
        powers = {"L1": 0, "L2": 1, "Linf": 2}
        raised = max(0, powers[self.norm] - powers[norm])
        return replace(self, amount=sqrt_up(self.exact**2 * self.dimension**raised), norm=norm)

    def in_steps(self, step: Number) -> int:
        """The largest distance, in this norm and in integer steps, after answers are rounded by `nearest_step`.

        Promise: an unchanged coordinate stays unchanged, and one that moves by `a_i > 0` steps moves by at
        most `⌈a_i⌉ < a_i + 1` after rounding, so `Σ⌈a_i⌉ ≤ ⌈Σa_i⌉ + d − 1` in L1 and `max⌈a_i⌉ = ⌈max a_i⌉`
        in Linf; both are attained. When `grain` is a multiple of `step`, rounding shifts neighbors alike:
        `⌊amount/grain⌋` grains, exactly.
        """
        if self.norm == "L2" and self.dimension > 1:
            raise InvalidArgument(
                "An L2 distance is not a whole number of steps: use squared_in_steps.", code="sensitivity-wrong-kind"
            )
        size, scale = self._ratio(check_positive(step, "step"))
        if scale is not None:
            return math.floor(size) * scale
        return math.ceil(size) + (self.dimension - 1 if self.norm == "L1" else 0)

    def squared_in_steps(self, step: Number) -> int:
        """The largest squared L2 distance, in squared steps, after answers are rounded by `nearest_step`.

        Promise: with `n_i = m_i + 1 ≤ ⌈a_i⌉` for the coordinates that move, `m_i < a_i`, so the whole number
        `s = Σm_i²` is below `‖a‖₂²` and `Σn_i² ≤ s + 2Σm_i + d`, where `Σm_i ≤ min(s, √(ds))` (never above
        `(‖a‖₂ + √d)²`). In L1 the worst is `⌈a⌉² + d − 1`. Exact, `⌊(amount/grain)²⌋` squared grains, when
        `grain` is a multiple of `step`.
        """
        size, scale = self._ratio(check_positive(step, "step"))
        d, many = self.dimension, self.dimension if self.norm == "Linf" else 1
        if scale is not None:
            return (math.floor(size**2) if self.norm == "L2" else many * math.floor(size) ** 2) * scale**2
        if self.norm == "L2" and d > 1:
            s = math.ceil(size**2) - 1
            return s + 2 * min(s, math.isqrt(d * s)) + d
        return many * math.ceil(size) ** 2 + (d - 1 if self.norm == "L1" else 0)

    def _ratio(self, step: Fraction) -> tuple[Fraction, int | None]:
        # the amount in grains with the steps of a grain, or in steps if the grain does not help
        if self.grain is not None and (exactly(self.grain) / step).denominator == 1:
            return self.exact / exactly(self.grain), int(exactly(self.grain) / step)
        return self.exact / step, None


SensitivityLike = Number | Sensitivity | None
"""A sensitivity, or a plain number for the ledger's own unit. None is for mechanisms that know their own."""


def sensitivity_of(value: Number | Sensitivity, *, dimension: int = 1) -> Sensitivity:
    """A Sensitivity as it is, or a plain number read as an L1 bound for the ledger's own unit.

    >>> sensitivity_of(0.5).exact
    Fraction(1, 2)
    """
    if not isinstance(value, Sensitivity):
        return Sensitivity(value, dimension=dimension)
    if dimension > value.dimension:
        raise InvalidArgument(
            f"The sensitivity is stated for {value.dimension} coordinates, but the answer has {dimension}. State it "
            f"for {dimension}.",
            code="sensitivity-wrong-size",
        )
    return value


def nearest_step(value: Number, step: Number) -> int:
    """The nearest multiple of `step`, ties always upward: shifting by a step shifts the result by one.

    Ties to even would not do: 0.5 and 1.5, one step apart, would land two steps apart.

    >>> nearest_step(0.5, 1), nearest_step(1.5, 1), nearest_step(-0.5, 1)
    (1, 2, 0)
    """
    return math.floor(exactly(value) / check_positive(step, "step") + Fraction(1, 2))


def check_norm(norm: Any) -> None:
    """Raise unless `norm` is 'L1', 'L2' or 'Linf'."""
    if norm not in NORMS:
        raise InvalidArgument("norm must be 'L1', 'L2' or 'Linf'.", code="not-an-option")
