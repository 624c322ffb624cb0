"""The exact check of a finite mechanism, in rationals: no sampling, no floats, no grid.

`verify` reads the law of every input and computes δ(ε) and ε(δ) for the worst pair of neighbors. A law may leave some
mass unresolved (a tail that was cut off). This mass counts against privacy. Products, repetitions and adaptive
compositions of finite mechanisms are also finite mechanisms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cmp_to_key
from typing import Any, ClassVar, NamedTuple, Self

from discreet.errors import IncompatibleGuarantee, InvalidArgument
from discreet.exact.rational import Number, check_count, check_delta, exactly, exp_bounds, float_up, log_bounds
from discreet.guarantees.finite.laws import FiniteLaws, adaptive, finite, product, repeat
from discreet.guarantees.guarantee import Guarantee

__all__ = [
    "FiniteLaws",
    "Neighbors",
    "Verified",
    "adaptive",
    "finite",
    "product",
    "repeat",
    "verify",
]


class Neighbors(NamedTuple):
    """Two inputs of a finite mechanism, in the order in which they are compared."""

    laws: FiniteLaws
    first: int
    second: int

    def weights(self) -> Iterable[tuple[int, int]]:
        """The probabilities of each output under both inputs, over the common denominator `laws.total`."""
        return zip(self.laws.weights[self.first], self.laws.weights[self.second], strict=True)

    def infinite(self) -> int:
        """The mass that only the first input can produce, including the unresolved mass, over `laws.total`."""
        return self.laws.unresolved(self.first) + sum(p for p, q in self.weights() if not q)

    def delta(self, epsilon: Fraction) -> Fraction:
        """Σ max(0, p − e^ε p') plus the unresolved mass, rounded up by less than 1e-50."""
        total = self.laws.total
        if epsilon > total.bit_length():  # no finite ratio of weights is that large
            return Fraction(self.infinite(), total)
        # over the outputs that count, e^ε·Σp' < 1, so a relative error of e^ε is an absolute one of δ
        ratio = exp_bounds(epsilon)[0]
        over, under = ratio.numerator, ratio.denominator
        excess = sum(max(0, p * under - over * q) for p, q in self.weights())
        return Fraction(excess + self.laws.unresolved(self.first) * under, total * under)

    def ratio(self, delta: Fraction) -> Fraction | None:
        """The exact least e^ε ≥ 1 with δ(ε) ≤ delta. None if delta is below the infinite mass."""
        over, under = delta.numerator * self.laws.total, delta.denominator
        inside, outside = self.infinite(), 0
        if inside * under > over:
            return None
        # δ is linear in e^ε between the ratios of neighboring outputs: walk down until it exceeds delta
        for p, q in _by_ratio(self.weights()):
            if p <= q or (q * inside - p * outside) * under > over * q:
                break
            inside, outside = inside + p, outside + q
        if (inside - outside) * under <= over:
            return Fraction(1)
        return Fraction(inside * under - over, outside * under)


@dataclass(frozen=True, repr=False)
class Verified(Guarantee):
    """The exact guarantee of a finite mechanism over all `pairs` of neighbors.

    Promise: δ(ε) = max over ordered pairs of Σ max(0, p − e^ε p'), and ε(δ) its inverse.
    Source: the definition. For a finite mechanism, the worst event is the set of outputs with `p > e^ε p'` [T.4.8].
    """

    _: KW_ONLY
    pairs: tuple[Neighbors, ...]
    theorem: ClassVar[str] = "T.4.8: exact enumeration"

    def __repr__(self) -> str:
        return f"Verified({len(self.pairs)} pairs)"

    def __str__(self) -> str:
        infinite = self.infinite
        epsilon = math.inf if infinite >= 1 else self.epsilon_at(delta=Fraction(infinite))
        return f"ε = {epsilon:.6g}" + (f", δ = {infinite:.6g}" if infinite else "")

    def exact_delta_at(self, epsilon: Number) -> Fraction:
        """δ(ε) as a rational, rounded up by less than 1e-50."""
        at = _at(epsilon)
        return max(pair.delta(at) for pair in self.pairs)

    def exact_ratio_at(self, delta: Number) -> Fraction | None:
        """The exact e^ε(δ), which is rational. None if no ε suffices."""
        ratios = [pair.ratio(check_delta(delta)) for pair in self.pairs]
        return None if None in ratios else max(ratio for ratio in ratios if ratio is not None)

    def delta_at(self, *, epsilon: Number) -> float:
        return float_up(self.exact_delta_at(epsilon))

    def epsilon_at(self, *, delta: Number) -> float:
        ratio = self.exact_ratio_at(delta)
        return math.inf if ratio is None else float_up(log_bounds(ratio)[1])

    @property
    def infinite(self) -> float:
        return float_up(max(Fraction(pair.infinite(), pair.laws.total) for pair in self.pairs))

    @property
    def largest_loss(self) -> Fraction | None:
        """The largest loss outside the mass `infinite`, rounded up by less than 1e-50."""
        tops = [Fraction(*rows[0]) for pair in self.pairs if (rows := _by_ratio(pair.weights()))]
        return log_bounds(max(tops, default=Fraction(1)))[1]

    def renyi(self, order: float) -> float:
        return max(_renyi(pair, order) for pair in self.pairs)

    def worst(self, epsilon: Number) -> Neighbors:
        """The pair of neighbors that attains δ(ε)."""
        at = _at(epsilon)
        return max(self.pairs, key=lambda pair: pair.delta(at))

    def worst_pair(self, epsilon: Number = 0) -> tuple[Hashable, Hashable]:
        """The two inputs that attain δ(ε)."""
        laws, first, second = self.worst(epsilon)
        return laws.inputs[first], laws.inputs[second]

    def worst_event(self, epsilon: Number) -> frozenset[Hashable]:
        """The outputs that distinguish the worst pair: those with p > e^ε p'."""
        pair, ratio = self.worst(epsilon), exp_bounds(_at(epsilon))[1]
        found = zip(pair.laws.outputs, pair.weights(), strict=True)
        return frozenset(output for output, (p, q) in found if p > ratio * q)

    def _twice(self) -> Self:
        raise IncompatibleGuarantee("An enumeration holds only for its own neighbors. Verify the pairs that you mean.")


def verify(mechanism: Any, *, neighbors: Callable[[Any, Any], bool] | None = None, times: int = 1) -> Verified:
    """Check a finite mechanism exactly.

    `mechanism` has a method `laws()`, or is a mapping input → {output: probability}, or a sequence of pairs
    of laws. Every two inputs are neighbors unless `neighbors(a, b)` says otherwise. `times` runs it so often on the
    same input, independently.

    >>> coin = {0: {"yes": 0.25, "no": 0.75}, 1: {"yes": 0.75, "no": 0.25}}
    >>> verify(coin).exact_ratio_at(0)
    Fraction(3, 1)
    >>> verify(coin, times=2).exact_ratio_at(0)
    Fraction(9, 1)
    """
    if isinstance(mechanism, Sequence):
        if any(len(pair) != 2 for pair in mechanism):
            raise InvalidArgument(
                "A sequence must hold pairs of laws. Give a mapping for more than two inputs.", code="wrong-shape"
            )
        return _over(_run({0: first, 1: second}, times) for first, second in mechanism)
    return _over([_run(mechanism, times)], neighbors)


def _run(mechanism: Any, times: int) -> FiniteLaws:
    """The law of `times` runs. The outputs of a single run keep their names."""
    return repeat(mechanism, times) if check_count(times, "times") > 1 else finite(mechanism)


def _over(tables: Iterable[FiniteLaws], neighbors: Callable[[Any, Any], bool] | None = None) -> Verified:
    pairs = tuple(
        Neighbors(laws, i, j)
        for laws in tables
        for i, first in enumerate(laws.inputs)
        for j, second in enumerate(laws.inputs)
        if i != j and (neighbors is None or neighbors(first, second))
    )
    if not pairs:
        raise InvalidArgument("There is no pair of neighbors to compare. Give at least two inputs.", code="empty")
    return Verified(pairs=pairs)


def _at(epsilon: Any) -> Fraction:
    at = exactly(epsilon, "epsilon")
    if at < 0:
        raise InvalidArgument("epsilon must not be negative.", code="out-of-range")
    return at


def _by_ratio(weights: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Outputs that both inputs can produce, the largest ratio p/p' first."""

    def compare(a: tuple[float, int, int], b: tuple[float, int, int]) -> int:
        if abs(a[0] - b[0]) > 1e-9 * (1 + abs(a[0])):
            return -1 if a[0] > b[0] else 1
        return b[1] * a[2] - a[1] * b[2]  # too close for floats to decide

    rows = [(_log_ratio(p, q), p, q) for p, q in weights if p and q]
    return [(p, q) for _, p, q in sorted(rows, key=cmp_to_key(compare))]


def _renyi(pair: Neighbors, order: float) -> float:
    # ln Σ p (p/p')^{order-1}, without the unresolved or infinite mass
    losses = [(_log_ratio(p, q), _log_ratio(p, pair.laws.total)) for p, q in pair.weights() if p and q]
    if not losses:
        return 0.0
    logs = [(order - 1) * loss + mass for loss, mass in losses]
    top, size = max(logs), max(order * abs(loss) + abs(mass) for loss, mass in losses)
    moment = top + math.log(math.fsum(math.exp(log - top) for log in logs))
    return max(0.0, (moment + 1e-15 * (4 + size)) / (order - 1))


def _log_ratio(p: int, q: int) -> float:
    near = abs(p.bit_length() - q.bit_length()) < 900
    return math.log(p / q) if near else math.log(p) - math.log(q)
