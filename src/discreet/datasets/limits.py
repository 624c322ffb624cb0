"""What a limit allows that its owner may not mean, in words."""

from __future__ import annotations

from fractions import Fraction

from discreet.exact.rational import Number, exactly
from discreet.guarantees.meaning.curve import FARTHEST, posterior_of
from discreet.guarantees.meaning.words import percent

_USUAL_EPSILON = 10
_USUAL_DELTA = Fraction(1, 10**4)
_BEFORE = Fraction(1, 100)
"""What somebody believes before. From 50%, every ε above 7 leads to more than 99.9%."""


def warnings_on_limit(epsilon: Number, delta: Number) -> list[str]:
    """One sentence or two for an ε, and for a δ, that protects hardly anybody. Empty for a usual limit.

    >>> warnings_on_limit(3, 1e-6)
    []
    >>> [each.partition(":")[0] for each in warnings_on_limit(1000, 0.1)]
    ['ε = 1000', 'δ = 0.1']
    """
    found = []
    if exactly(epsilon, "epsilon") > _USUAL_EPSILON:
        after = posterior_of(_BEFORE, min(float(epsilon), FARTHEST))[1]
        found.append(
            f"ε = {float(epsilon):g}: suppose that somebody believes with {percent(_BEFORE, up=True)} that a certain "
            f"person is in the data. All answers together can move that to {percent(after, up=True)}. An ε from 1 to "
            "5 is usual."
        )
    if exactly(delta, "delta") > _USUAL_DELTA:
        found.append(
            f"δ = {float(delta):g}: for {percent(exactly(delta), up=True)} of all people, everything may be revealed. "
            "Choose δ well below one over the number of people, such as 1e-6."
        )
    return found
