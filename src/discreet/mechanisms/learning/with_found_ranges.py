"""Ranges of columns that are found first, and another mechanism that works within them: one release."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, exactly, significant
from discreet.guarantees.conversions import gaussian_delta, largest_mu, smallest_epsilon
from discreet.guarantees.guarantee import Approx, Guarantee, Pure, ZeroConcentrated
from discreet.guarantees.privacy_loss.compose import LossDistribution, compose
from discreet.guarantees.privacy_loss.derived_pairs import merge_gaussians
from discreet.guarantees.unit import Unit
from discreet.mechanisms.learning.found_ranges import FoundRanges
from discreet.mechanisms.protocol import meets, tidy
from discreet.rows.unbounded import UnboundedRows

SHARE = Fraction(1, 6)
"""What finding the ranges may cost of a fit: this part of its squared sensitivity in deviations, or of ε where that is
pure."""
ROUGH = Fraction(1, 10)
"""The same, if rough ranges are enough: for bins, or for the part of a declared range."""
LEAST_SPLIT = 0.1
LOOSE = 1e-3
"""From this step down, a remainder gives up a part of δ, too."""


@dataclass(frozen=True, kw_only=True)
class WithFoundRanges:
    """Finds ranges, and then lets another mechanism, `then`, work within them: one release.

    The value is `UnboundedRows`. The result is that of `then`, a dict, with the found "ranges".

    Promise: the composition of the two. The noise of `then` is fixed before the ranges are found, because rows are
    scaled by them: whatever they are, its sensitivity is the same.
    Error: that of `then`, in scaled units.
    """

    finding: FoundRanges
    then: Any

    def sensitivity(self, unit: Unit | None = None, rows_per_person: int = 1) -> tuple[Any, Any]:
        """How far one unit can move each of the two."""
        moved = getattr(self.then, "sensitivity", None)  # a selection is made for its unit
        then = None if moved is None else moved(unit, rows_per_person)
        return self.finding.sensitivity(unit, rows_per_person), then

    def guarantee(self, sensitivity: tuple[Any, Any] | None = None) -> LossDistribution:
        """For one added or removed row. For another unit, give `m.sensitivity(unit, rows_per_person)`."""
        first, second = (None, None) if sensitivity is None else sensitivity
        both = compose([self.finding.guarantee(first), self.then.guarantee(second)])
        return replace(both, factors=merge_gaussians(both.factors))

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        then: Callable[[Any], Any],
        unit: Unit | None = None,
        rows_per_person: int = 1,
        share: Number = SHARE,
        **columns: Any,
    ) -> Self:
        """`then` makes the other mechanism for what is left of the guarantee: the most with which both keep it.

        `columns` are the `weights`, `outer` and `cuts` of the ranges.
        """
        stated: Guarantee | None = None
        finding = FoundRanges.for_share(guarantee, share=share, unit=unit, rows_per_person=rows_per_person, **columns)
        for less in (0.0, 1e-9, 1e-7, 1e-5, 1e-4, 1e-3, 1e-2, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5):
            if less and less < LEAST_SPLIT and isinstance(stated, Approx) and exactly(stated.delta):
                continue  # what is only known by (ε,δ) adds as such
            made = cls(finding=finding, then=then(_left(guarantee, exactly(share), less)))
            moved = made.sensitivity(unit, rows_per_person)
            stated = made.then.guarantee(moved[1])
            if meets(made.guarantee(moved), guarantee):
                return made
        raise InvalidArgument(
            "No noise keeps this guarantee if ranges are found, too. Declare the ranges.",
            code="guarantee-out-of-reach",
        )

    def error(self, confidence: float, **sizes: Any) -> Any:
        return self.then.error(confidence, **sizes)

    def _draw(self, value: UnboundedRows) -> dict[str, Any]:
        ranges = self.finding._draw(value)["ranges"]
        drawn = self.then._draw(value.within(ranges))
        return {**(drawn if isinstance(drawn, dict) else {"weights": drawn}), "ranges": ranges}


def _left(guarantee: Guarantee, share: Fraction, less: float) -> Guarantee:
    """What remains for the other mechanism, a little less than the whole remainder."""
    if isinstance(guarantee, ZeroConcentrated):
        return ZeroConcentrated(
            rho=tidy(significant(exactly(guarantee.rho) * (1 - share) * (1 - Fraction(less)), up=False))
        )
    if not isinstance(guarantee, Approx):
        raise InvalidArgument(
            "Ranges are found for Pure, Approx and ZeroConcentrated guarantees.", code="guarantee-not-supported"
        )
    epsilon, delta = exactly(guarantee.epsilon), exactly(guarantee.delta)
    if not delta:
        return Pure(epsilon=tidy(significant(epsilon * (1 - share) * (1 - Fraction(less)), up=False)))
    move = largest_mu(float(epsilon), float(delta)) * math.sqrt(float(1 - share)) * (1 - less)
    found = smallest_epsilon(lambda tried: gaussian_delta(move, tried), float(delta))
    # a mechanism that needs all of its δ leaves none for the ranges
    kept = guarantee.delta if less < LOOSE else tidy(significant(delta * (1 - Fraction(less)), up=False))
    return Approx(epsilon=tidy(significant(Fraction(found), up=False)), delta=kept)
