"""The best attack on two laws with few outputs, exactly: what a risk must never be below. And checks that use it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise

import discreet as dp
from discreet.guarantees import Guarantee, Risk
from discreet.guarantees.meaning.groups import for_group

Law = tuple[Fraction, ...]
RATES = tuple(map(Fraction, ("0.001", "0.03", "0.2", "0.5", "0.7", "0.99")))
ALARMS = tuple(map(Fraction, ("0", "0.001", "0.01", "0.1", "0.27", "0.5", "0.9", "1")))


def law(*weights: int) -> Law:
    total = sum(weights)
    return tuple(Fraction(weight, total) for weight in weights)


def response(ratio: Fraction) -> tuple[Law, Law]:
    """Randomized response with e^ε = `ratio`."""
    yes = ratio / (1 + ratio)
    return (yes, 1 - yes), (1 - yes, yes)


def geometric(ratio: Fraction, distance: int, reach: int = 40) -> tuple[Law, Law]:
    """Two-sided geometric noise around 0 and `distance`, clamped to ±`reach`, so that every output is listed."""

    def around(center: int) -> Law:
        inside = [(1 - ratio) / (1 + ratio) * ratio ** abs(place - center) for place in range(-reach + 1, reach)]
        ends = [ratio ** (reach + side * center) / (1 + ratio) for side in (1, -1)]
        return ends[0], *inside, ends[1]

    return around(0), around(distance)


def delta(first: Law, second: Law, ratio: Fraction) -> Fraction:
    """The exact hockey-stick divergence at e^ε = `ratio`, in both directions."""

    def one(p: Law, q: Law) -> Fraction:
        return sum((max(Fraction(0), a - ratio * b) for a, b in zip(p, q, strict=True)), Fraction(0))

    return max(one(first, second), one(second, first))


def found(first: Law, second: Law, alarms: Fraction) -> Fraction:
    """The largest P(F) with P'(F) ≤ alarms, over all randomized events F: the lemma of Neyman and Pearson."""
    left, total = alarms, Fraction(0)
    for p, q in sorted(zip(first, second, strict=True), key=lambda pair: (pair[1] > 0, -pair[0] / (pair[1] or 1))):
        share = Fraction(1) if q <= left else left / q
        total, left = total + share * p, left - share * q
    return total


def right(first: Law, second: Law, rate: Fraction) -> Fraction:
    """How often the best guess is right if the first law is the true one with probability `rate`."""
    return sum((max(rate * p, (1 - rate) * q) for p, q in zip(first, second, strict=True)), Fraction(0))


def outside(first: Law, second: Law, rate: Fraction, ends: tuple[float, float]) -> Fraction:
    """How likely the posterior lies outside of `ends`, whichever law is true."""
    low, high = map(Fraction, ends)
    masses = [Fraction(0), Fraction(0)]
    for p, q in zip(first, second, strict=True):
        if p or q:
            after = rate * p / (rate * p + (1 - rate) * q)
            if not low <= after <= high:
                masses = [masses[0] + p, masses[1] + q]
    return max(masses)


def check_attacks(risk: Risk, first: Law, second: Law) -> None:
    """The risk covers every attack on these laws, in both directions."""
    for p, q in ((first, second), (second, first)):
        for alarms in ALARMS:
            assert risk.true_positives(alarms) >= found(p, q, alarms), "an attack finds more people"
        for rate in RATES:
            assert risk.success(rate) >= right(p, q, rate), "a guess is right more often"
            assert outside(p, q, rate, risk.posterior(rate)) <= Fraction(risk.failure), "odds change more often"
        advantage = sum((max(Fraction(0), a - b) for a, b in zip(p, q, strict=True)), Fraction(0))
        assert risk.advantage >= advantage, "an attack has a larger advantage"


def guarantees_of(pairs: Iterable[tuple[Law, Law]]) -> list[Guarantee]:
    """Guarantees of several kinds that hold for every one of these pairs of neighbors."""
    listed = list(pairs)
    every = [(p, q) for first, second in listed for p, q in ((first, second), (second, first))]
    claims: list[Guarantee] = []
    for ratio in map(Fraction, ("1.1", "1.7", "3", "8")):
        worst = max(delta(p, q, ratio) for p, q in listed)
        epsilon = Fraction(math.nextafter(math.log(ratio) * (1 + 1e-14), math.inf))
        if worst < 1:
            claims.append(dp.Approx(epsilon=epsilon, delta=worst))
    if all(bool(a) == bool(b) for p, q in every for a, b in zip(p, q, strict=True)):
        ratios = [a / b for p, q in every for a, b in zip(p, q, strict=True) if b]
        largest = max(Fraction(1, 10**6), Fraction(math.log(max(ratios)) * (1 + 1e-12)))
        claims.append(dp.Pure(epsilon=largest))
        claims.append(dp.ZeroConcentrated(rho=largest**2 / 2))
        for order in (2, 6):
            moments = [sum(a**order / b ** (order - 1) for a, b in zip(p, q, strict=True) if b) for p, q in every]
            divergence = max(math.log(moment) for moment in moments) / (order - 1) * (1 + 1e-12) + 1e-15
            claims.append(dp.Renyi(order=order, epsilon=Fraction(divergence)))
    return claims


def check_path(laws: list[Law]) -> None:
    """Each guarantee of the neighbors in a path covers its two ends, as a group of so many people."""
    steps = len(laws) - 1
    for claim in guarantees_of(pairwise(laws)):
        together = for_group(claim, steps)
        for ratio in map(Fraction, ("1", "1.5", "4", "20", "300")):
            at = Fraction(math.log(ratio) * (1 - 1e-15))
            exact = delta(laws[0], laws[-1], ratio) * (1 - Fraction(1, 10**9))
            assert together.delta_at(epsilon=max(at, Fraction(0))) >= exact, "a group is told apart more often"
        check_attacks(dp.risk(claim, people=steps), laws[0], laws[-1])


# --- mechanisms for which a bound is as tight as it can be --------------------------------------------------------


def rare_outputs_are_counted() -> None:
    """An output that changes the odds by 4 has probability 0.2, although (ln 2, 0.1) holds."""
    first, second = law(20, 80), law(5, 95)
    assert delta(first, second, Fraction(2)) == Fraction(1, 10)
    claim = dp.Approx(epsilon=math.log(2) * (1 + 1e-14), delta=Fraction(1, 10))
    check_attacks(dp.risk(claim, failure=0.15), first, second)


def odds_change_in_both_directions() -> None:
    """Two outputs change the odds by 4, one up and one down: together they have probability 0.25."""
    first, second = law(20, 5, 75), law(5, 20, 75)
    claim = dp.Approx(epsilon=math.log(2) * (1 + 1e-14), delta=Fraction(1, 10))
    check_attacks(dp.risk(claim, failure=0.21), first, second)


def leaks_are_found() -> None:
    """With probability 0.02 the mechanism says everything, and otherwise it is a randomized response."""
    first, second = law(6, 0, 196, 98), law(0, 6, 98, 196)
    check_attacks(dp.risk(dp.Approx(epsilon=math.log(2) * (1 + 1e-14), delta=Fraction(2, 100))), first, second)


def groups_are_paths() -> None:
    """Three laws in a row with ratio 3 and δ = 0.1 have their ends (1 + 3)·0.1 apart."""
    check_path([law(4, 6), law(1, 9), law(0, 1)])
    check_path([law(1, 2, 4), law(2, 3, 2), law(4, 2, 1)])
    check_path([law(1, 3), law(1, 1), law(3, 1), law(9, 1)])


def values_are_replacements() -> None:
    """Two values of one person are two steps apart: with the first, with none, with the second."""
    first, none, second = law(1, 2, 4), law(2, 3, 2), law(4, 2, 1)
    for claim in guarantees_of([(first, none), (none, second)]):
        check_attacks(dp.risk(claim, about="value"), first, second)


CHECKS = (
    rare_outputs_are_counted,
    odds_change_in_both_directions,
    leaks_are_found,
    groups_are_paths,
    values_are_replacements,
)
