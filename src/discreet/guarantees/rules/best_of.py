"""The rules for ledgers, and the default one: the best of several filters ("boxes")."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

from discreet.errors import IncompatibleGuarantee, InvalidArgument
from discreet.exact.rational import LEDGER_UNIT, SMALLEST_EPSILON, exactly, round_down, round_up
from discreet.guarantees.guarantee import Approx, Guarantee
from discreet.guarantees.rules.advanced import AdaptiveAdvanced, Heterogeneous
from discreet.guarantees.rules.coordinates import best_order, stated_delta, stated_epsilon
from discreet.guarantees.rules.filters import (
    Basic,
    Filter,
    GaussianRule,
    RenyiRule,
    Rule,
    Vector,
    ZeroConcentratedRule,
)

__all__ = [
    "CLOSED",
    "RULES",
    "AdaptiveAdvanced",
    "Basic",
    "BestOf",
    "Filter",
    "GaussianRule",
    "Heterogeneous",
    "RenyiRule",
    "Rule",
    "Vector",
    "ZeroConcentratedRule",
    "rule_for",
]

CLOSED = 10**60
"""A cost above every limit. It closes one box of several, and stays above the limit when more costs are added."""


@dataclass(frozen=True, kw_only=True)
class BestOf(Rule):
    """Several boxes, of which at least one must fit: basic sums, and Rényi divergences on a grid of orders.

    The boxes are fixed when the ledger is opened. Half of the limit's δ is for the δ_i of the releases, the same in all
    boxes. The other half is for the conversions, most of it at the orders that suit the limit.

    Promise: a session that ends with `Σδ_i ≤ δ_own` and `Σr_i(α_j) ≤ r*(α_j; ε, δ_j)` in some box j is (ε,δ)-DP,
    however its questions were chosen, because `δ_own + Σ_j δ_j ≤ δ`.
    Source: decision 0004. Proof: let P' and Q' be the parts of the laws of the transcript in which no release failed.
    The mass outside them is at most δ_own, whichever box holds. Split the transcripts by the first box that holds at
    the end. On each part, the session is the session that this box alone would stop, so `P' − e^ε Q'` is at most δ_j
    there. Disjoint parts add up.

    A single release that needs all of the limit's δ does not fit. The error then names rule="basic".
    """

    name = "best"
    limit: Approx
    grid: tuple[tuple[Fraction, Fraction], ...] | None = None
    """The Rényi orders, each with the δ for its conversion. None chooses those that suit the limit."""

    def __post_init__(self) -> None:
        if not isinstance(self.limit, Approx) or not exactly(self.limit.delta):
            raise InvalidArgument(
                'The rule "best" needs a limit with δ above 0. Use rule="basic" for δ = 0.', code="needs-delta"
            )
        if not 0 < self.converted <= exactly(self.limit.delta):
            raise InvalidArgument("The shares of grid must be above 0 and add up to at most δ.", code="out-of-range")

    def fixed(self) -> Self:
        return replace(self, grid=self.conversions)

    @cached_property
    def conversions(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """The Rényi orders, each with its share of δ."""
        if self.grid is not None:
            return self.grid
        delta = exactly(self.limit.delta)
        center = float(best_order(self.limit.epsilon, delta / 6)) - 1
        weights: dict[Fraction, Fraction] = {}
        # further below the center no room is left; far above it, boxes are close to basic sums
        for step in range(-2, 9):
            order = _round_order(1 + center * 2 ** (step / 2))
            weights[order] = weights.get(order, Fraction(0)) + Fraction(1, 1 + step * step)
        half = delta / 2 / sum(weights.values())
        return tuple((order, half * weight) for order, weight in weights.items())

    @cached_property
    def converted(self) -> Fraction:
        """The part of the limit's δ that is for all conversions."""
        return sum((share for _, share in self.conversions), Fraction(0))

    @cached_property
    def boxes(self) -> tuple[Filter, ...]:
        """Basic sums, then one Rényi filter for each order."""
        orders = (RenyiRule(limit=self.limit, order=a, conversion=share) for a, share in self.conversions)
        return Basic(limit=self.limit), *orders

    @property
    def labels(self) -> tuple[str, ...]:
        return "δ", *(box.labels[1] for box in self.boxes)

    @cached_property
    def delta_room(self) -> int:
        """The largest Σδ_i, in ledger units, that keeps the limit."""
        return round_down(exactly(self.limit.delta) - self.converted)

    def coordinates(self, guarantee: Guarantee) -> Vector:
        costs = [box.cost(guarantee) for box in self.boxes]
        if all(cost is None for cost in costs):
            orders = ", ".join(self.labels[2:])
            raise IncompatibleGuarantee(
                f"{guarantee} has no finite cost, neither as ε nor at {orders}. "
                "State it as Approx, or at a higher Rényi order."
            )
        delta = round_up(stated_delta(guarantee))
        return delta, *(CLOSED if cost is None else min(round_up(cost), CLOSED) for cost in costs)

    def total(self, vector: Vector) -> Approx:
        found = [
            box.epsilon(Fraction(spent, LEDGER_UNIT), box.converted)
            for box, spent in zip(self.boxes, vector[1:], strict=True)
            if spent < CLOSED
        ]
        if not found:
            raise IncompatibleGuarantee("These releases have no finite cost in common. State them as Approx.")
        delta = self.converted + Fraction(vector[0], LEDGER_UNIT)
        return Approx(epsilon=max(min(found), SMALLEST_EPSILON), delta=delta)

    def fits(self, vector: Vector) -> bool:
        within = (spent <= box.room for box, spent in zip(self.boxes, vector[1:], strict=True))
        return vector[0] <= self.delta_room and any(within)

    def _fits_more(self, vector: Vector, times: int) -> Callable[[Guarantee], bool]:
        left = tuple(zip(self.boxes, vector[1:], strict=True))

        def fits(guarantee: Guarantee) -> bool:
            nonlocal left
            if len(left) == len(self.boxes):
                self.coordinates(guarantee)  # refuses what has no cost in any box
            (delta,) = self.add(vector[:1], (round_up(stated_delta(guarantee)),), times)
            kept = [(box, spent) for box, spent in left if self._holds(box, spent, guarantee, times)]
            if delta > self.delta_room or not kept:
                return False
            left = tuple(kept)  # the other boxes do not hold anything larger
            return True

        return fits

    def _holds(self, box: Filter, spent: int, guarantee: Guarantee, times: int) -> bool:
        """Whether a box of which this is spent has room for so many releases."""
        cost = box.cost(guarantee)
        return cost is not None and self.add((spent,), (min(round_up(cost), CLOSED),), times) <= (box.room,)

    def refusal(self, guarantee: Guarantee, remaining: Guarantee | None) -> str:
        text, basic = super().refusal(guarantee, remaining), Basic(limit=self.limit)
        if stated_epsilon(guarantee) is None or self.fits(self.coordinates(guarantee)):
            return text
        if basic.fits(basic.coordinates(guarantee)):
            text += ' It would fit a ledger opened with rule="basic": this rule keeps half of δ for conversions.'
        return text


def _round_order(order: float) -> Fraction:
    # whole orders suit subsampled mechanisms; near 1, quarters are as good
    return Fraction(round(order)) if order >= 3 else max(Fraction(5, 4), Fraction(round(order * 4), 4))


RULES: dict[str, type[Rule]] = {
    "best": BestOf,
    "basic": Basic,
    "zcdp": ZeroConcentratedRule,
    "renyi": RenyiRule,
    "gaussian": GaussianRule,
    "advanced": AdaptiveAdvanced,
    "heterogeneous": Heterogeneous,
}
"""The rules that can enforce a limit in an adaptive session, by name."""


def rule_for(limit: Guarantee, name: str | Rule | None = None) -> Rule:
    """The rule that enforces `limit`: the named one, or the default for its kind.

    >>> rule_for(Approx(epsilon=1, delta=1e-6)).name
    'best'
    """
    if isinstance(name, Rule):
        if name.limit != limit:
            raise InvalidArgument(
                f"The rule guards {name.limit}, not {limit}. Make it for this limit.", code="rule-does-not-fit"
            )
        if not name.adaptive:
            raise InvalidArgument(
                f'The rule {name.name!r} cannot stop a session. Use rule="advanced" or "best".',
                code="rule-does-not-fit",
            )
        return name
    if name is not None and name not in RULES:
        raise InvalidArgument(f"rule must be one of {', '.join(RULES)}.", code="not-an-option")
    terms: dict[str, Any] = {"limit": limit}
    return RULES[name or _natural(limit)](**terms)


def _natural(limit: Guarantee) -> str:
    if isinstance(limit, Approx):
        return "best" if exactly(limit.delta) else "basic"
    for rule in (ZeroConcentratedRule, RenyiRule, GaussianRule):
        if isinstance(limit, rule.native):
            return rule.name
    raise InvalidArgument(
        "A limit must be Pure, Approx, ZeroConcentrated, Renyi or GaussianTradeoff.", code="wrong-type"
    )
