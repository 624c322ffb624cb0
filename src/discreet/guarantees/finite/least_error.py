"""The error that no private mechanism can avoid: lower bounds for one row of a metric space."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Protocol

from discreet.errors import IncompatibleGuarantee, InvalidArgument
from discreet.exact.rational import check_positive, exactly, exp_bounds, float_down
from discreet.guarantees.guarantee import Approx, Guarantee


class MetricSpace(Protocol):
    """A space with a diameter. A finite one also has `minimal_distance` and a length."""

    @property
    def diameter(self) -> Fraction:
        """The largest distance between two points."""


def least_error(space: MetricSpace, guarantee: Guarantee) -> float:
    """A lower bound, rounded down, on the worst expected error of publishing one row of `space` privately.

    A guarantee without a unit is taken to be for replaced rows. One for added or removed rows is converted. For a
    guarantee with a whole curve, every (ε, δ) gives a valid bound, and the best of a grid is used.

    Error: `(1-δ) diam / (2(1+e^ε))`. On m+1 points with smallest distance κ, if the answer is one of them, it is `(1-δ)
    κ m/(m+e^ε)`, which randomized response attains.
    Source: [T.5.3], [T.5.5], [T.5.6].
    """
    if not hasattr(space, "diameter") or not isinstance(guarantee, Guarantee):
        raise InvalidArgument(
            "least_error takes a space and a guarantee: least_error(dp.Interval(0, 1), dp.Pure(epsilon=1)).",
            code="wrong-type",
        )
    diameter = check_positive(space.diameter, "diameter")
    closest: Fraction | None = getattr(space, "minimal_distance", None)
    # len() itself stops at 2^63 points
    others = 0 if closest is None else int(space.__len__()) - 1  # type: ignore[attr-defined]
    best = Fraction(0)
    for epsilon, delta in _promises(guarantee):
        power = exp_bounds(epsilon)[1]
        best = max(best, (1 - delta) * diameter / (2 * (1 + power)))
        if closest is not None:
            best = max(best, (1 - delta) * closest * others / (others + power))
    return float_down(best)


def _promises(guarantee: Guarantee) -> Iterator[tuple[Fraction, Fraction]]:
    if guarantee.protects is not None:
        try:
            guarantee = guarantee.for_replacement()
        except IncompatibleGuarantee:  # nothing is promised for replaced rows, so no error follows
            return
    if isinstance(guarantee, Approx):  # its own (ε, δ) is the best point of its curve
        yield exactly(guarantee.epsilon), exactly(guarantee.delta)
        return
    for epsilon in [
        Fraction(0),
        *(Fraction(2) ** power * part / 4 for power in range(-10, 6) for part in range(4, 8)),
    ]:
        delta = Fraction(guarantee.delta_at(epsilon=epsilon))
        if delta < 1:
            yield epsilon, delta
