"""Sums of randomized bits: how well they reveal one replaced bit, whatever the other bits are. [L8.SUM]

Of m other clients, t hold a one. The analyzer sees Bin(t, 1−lie) + Bin(m−t, lie) plus the randomized bit of the
replaced client. No t is the worst for all ε, so the worst case is bounded and not guessed. An observer who also knows
some of the other randomized bits can distinguish at least as well, so one view with a ones and m−b zeros bounds all t
from a to b. Proofs: `docs/decisions/0011`.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from discreet.exact.rational import float_down, float_up, log_bounds
from discreet.exact.search import bisect, bracket
from discreet.guarantees.conversions import renyi_of_response
from discreet.guarantees.privacy_loss.derived_pairs import ProfilePair
from discreet.guarantees.privacy_loss.pairs import Floats
from discreet.guarantees.privacy_loss.shuffled_pairs import LOST, binomial

View = Callable[[int, int], Floats]
"""An upper bound on δ, given the numbers of known ones and zeros. It falls as either number grows."""

_FINE, _COARSE, _ROUGH = 1e-3, 8e-3, 2e-2
"""How far a bound may be above the worst view, as a fraction of it: at one ε, along a curve, for a Rényi divergence."""
_KNOTS = 400
_MOST_VIEWS = 20_000  # a search that needs more stops with the current bounds: looser, never too low


@dataclass(frozen=True)
class RandomizedBitsPair(ProfilePair):
    """Sums of bits that are each flipped with probability `lie`, if one of `clients` is replaced, for any other bits.

    Promise: δ(ε) is never below that of the worst number of ones among the others, including rounding. It is above by
    at most 0.1%, in compositions by at most 1%, and as a Rényi divergence by at most 2%.
    """

    clients: int
    lie: Fraction

    loose: ClassVar[bool] = False

    @property
    def largest(self) -> float:
        """The loss of a client's own randomized bit, an upper bound on what anyone learns. The guarantee of the sum
        does not use it.
        """
        return float_up(log_bounds((1 - self.lie) / self.lie)[1])

    def _curve(self, epsilon: float) -> float:
        if epsilon >= self.largest:
            return 0.0
        most, least = (float(one[0]) for one in weights(self.lie, np.array([epsilon])))

        def view(ones: int, zeros: int) -> Floats:
            return np.array([delta_at_weights(ones, zeros, self.lie, most, least)])

        return min(1.0, float(worst(self.clients - 1, view, _FINE)[0]))

    def _curves(self, epsilons: Floats) -> Floats:
        # a maximum of convex functions of e^ε is convex: between knots it lies below the straight line
        knots, heights = _table(self)
        grown = np.expm1(np.minimum(epsilons, 700.0))
        rounding = 1e-13 * heights[np.searchsorted(knots, grown, side="right") - 1]
        curve = np.interp(grown, knots, heights) + rounding
        return np.where(epsilons >= self.largest, 0.0, np.minimum(1.0, curve))

    def span(self) -> tuple[float, float]:
        reach = math.log1p(float(_table(self)[0][-1]))
        return -reach, reach

    def renyi(self, order: float) -> float:
        def view(ones: int, zeros: int) -> Floats:
            return np.array([renyi_of_view(ones, zeros, self.lie, order)])

        return min(float(worst(self.clients - 1, view, _ROUGH)[0]), renyi_of_response(self.largest, order))


def worst(others: int, view: View, tolerance: float) -> Floats:
    """An elementwise upper bound on view(t, others − t) for every t. It exceeds the largest view by at most a fraction
    `tolerance`.

    view(a, others − b) bounds all t from a to b. The range whose bound is farthest above the largest view is halved.
    """
    found = np.maximum(view(0, others), view(others, 0))
    closed = found
    ranges: list[tuple[float, int, int, Floats]] = []
    views = 0

    def bound(first: int, last: int) -> None:
        nonlocal found, views
        above = view(first, others - last)
        views += 1
        if first == last:
            found = np.maximum(found, above)
        else:
            heapq.heappush(ranges, (-float((above / found).max()), first, last, above))

    bound(0, others)
    while ranges:
        _, first, last, above = heapq.heappop(ranges)
        room = float((above / found).max()) - 1
        if room <= tolerance or views >= _MOST_VIEWS:
            closed = np.maximum(closed, above)
            continue
        middle = (first + last) // 2
        found = np.maximum(found, view(middle, others - middle))
        bound(first, middle)
        bound(middle + 1, last)
    return np.maximum(closed, found)


def weights(lie: Fraction, epsilons: Floats) -> tuple[Floats, Floats]:
    """A, rounded up, and B, rounded down: P − e^ε·Q at a sum k is A·s(k) − B·s(k−1), where s is the law of the other
    bits' sum.
    """
    grown = np.exp(epsilons)
    most = float_up(1 - lie) * (1 + 1e-15) - grown * float_down(lie) * (1 - 2e-15)
    least = grown * float_down(1 - lie) * (1 - 2e-15) - float_up(lie) * (1 + 1e-15)
    return np.maximum(most, 0.0), np.maximum(least, 0.0)


def _sides(ones: int, zeros: int, lie: Fraction, window: float = 16.0) -> tuple[Floats, Floats, float]:
    """The laws of the sums of the randomized zeros and ones, and the relative error of sums of their products."""
    up, down = binomial(zeros, lie, window)[1], binomial(ones, lie, window)[1][::-1]
    return up, down, 2e-15 * (len(up) + len(down) + 16)


def delta_at_weights(ones: int, zeros: int, lie: Fraction, most: float, least: float) -> float:
    """δ at one ε with weights A = `most`, B = `least`, for a zero replaced by a one, rounded up.

    The sum of the others has a log-concave law, so s(k−1)/s(k) rises, and A·s(k) > B·s(k−1) holds only up to some k.
    This k is found by bisection, rounded to the safe side, and the terms up to it are summed.
    """
    up, down, error = _sides(ones, zeros, lie)
    back, length = down[::-1], len(down)

    def mass(k: int) -> float:
        first, last = max(0, k - length + 1), min(len(up) - 1, k)
        return float(up[first : last + 1] @ back[length - 1 - k + first : length - k + last])

    ratio = most / least * (1 + 4 * error) if least > 0 else math.inf
    center = int(np.argmax(up)) + int(np.argmax(down))

    def counts(k: int) -> bool:
        here = mass(k)
        # far below the center a mass may be 0 in floats, but it counts
        return k < center if here == 0 else mass(k - 1) <= here * ratio

    counted = bisect(counts, 0, len(up) + length - 1)
    first, last = max(0, counted - length), min(len(up) - 1, counted - 1)
    upto = np.cumsum(down)[np.minimum(counted - 1 - np.arange(first, last + 1), length - 1)]
    below = float(up[:first].sum()) + float(up[first : last + 1] @ upto)
    excess = most * (below + mass(counted)) * (1 + 6 * error) - least * below * (1 - 6 * error)
    return min(most, excess) + LOST


def deltas_at_weights(ones: int, zeros: int, lie: Fraction, most: Floats, least: Floats) -> Floats:
    """The same at many ε, from the whole law of the sum."""
    up, down, error = _sides(ones, zeros, lie)
    law = _law_of_sum(up, down)
    with np.errstate(divide="ignore"):
        ratios = most / least * (1 + 4 * error)
    counted = 1 + np.searchsorted(np.maximum.accumulate(law[:-1] / law[1:]), ratios, side="right")
    sums = np.concatenate([[0.0], np.cumsum(law)])
    excess = most * sums[counted] * (1 + 6 * error) - least * sums[counted - 1] * (1 - 6 * error)
    return np.asarray(np.minimum(most, excess) + LOST)


def _law_of_sum(up: Floats, down: Floats) -> Floats:
    """The distribution of the others' sum, except for masses that floats cannot distinguish from 0."""
    law = np.convolve(up, down)
    kept = np.flatnonzero(law > 1e-300)
    return np.asarray(law[kept[0] : kept[-1] + 1])


@lru_cache(maxsize=256)
def _table(pair: RandomizedBitsPair) -> tuple[Floats, Floats]:
    """The curve at knots up to its reach, as a function of e^ε − 1."""
    knots = np.linspace(0.0, _reach(pair), _KNOTS)
    most, least = weights(pair.lie, knots)
    heights = worst(
        pair.clients - 1, lambda ones, zeros: deltas_at_weights(ones, zeros, pair.lie, most, least), tolerance=_COARSE
    )
    return np.expm1(knots), heights


def _reach(pair: RandomizedBitsPair) -> float:
    """A loss that is exceeded by a mass of about 10⁻²⁵. The knots end there. Any choice is valid."""
    others = pair.clients - 1

    def beyond(loss: float) -> bool:
        most, least = (float(one[0]) for one in weights(pair.lie, np.array([loss])))
        return max(delta_at_weights(t, others - t, pair.lie, most, least) for t in (0, others // 2, others)) <= 1e-25

    found = bracket(beyond, pair.largest, least=pair.largest * 1e-9, most=pair.largest, factor=8)
    return pair.largest if found is None else bisect(beyond, *found, relative=0.02)


def renyi_of_view(ones: int, zeros: int, lie: Fraction, order: float) -> float:
    """The Rényi divergence of a zero from a one, next to this many others, rounded up."""
    steepest = (order - 1) * float_up(log_bounds((1 - lie) / lie)[1])
    window = 36.0 * max(1.0, min(steepest + 40, 660) / 200)  # the mass that is cut off must be below float precision
    up, down, error = _sides(ones, zeros, lie, window)
    law, p = _law_of_sum(up, down), float(lie)
    here, before = np.append(law, 0.0), np.insert(law, 0, 0.0)
    inside, outside = (1 - p) * here + p * before, p * here + (1 - p) * before
    exponents = order * np.log(inside) - (order - 1) * np.log(outside)
    # the mass that was cut off has at most the largest loss; the sum is convex, so this is the most that it can add
    lost = math.log(_mass_outside(zeros, lie, window) + _mass_outside(ones, lie, window) + 1e-290)
    exponents = np.append(exponents, lost + steepest)
    top = float(exponents.max())
    total = top + math.log(float(np.exp(exponents - top).sum()))
    return max(1e-18, (total + 2 * order * (error + 1e-12)) / (order - 1))


def _mass_outside(trials: int, chance: Fraction, window: float) -> float:
    """An upper bound on the mass of a binomial law outside its window, because ratios of neighbors fall outward."""
    first, masses = binomial(trials, chance, window)
    ends = [masses[:2]] * (first > 0) + [masses[:-3:-1]] * (first + len(masses) <= trials)
    return sum(float(last / (1 - last / before)) for last, before in ends if last > 0) * (1 + 1e-9)
