"""Finite mechanisms as tables of exact probabilities, with products, repetitions and adaptive compositions.

Probabilities are integers over one common denominator, so that long products need not reduce fractions.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from itertools import product as cartesian
from typing import Any

from discreet.errors import InvalidArgument
from discreet.exact.rational import check_count, exactly

Laws = Mapping[Any, Mapping[Any, Any]]


@dataclass(frozen=True)
class FiniteLaws:
    """Each output has probability `weights[input][output] / total`. The mass missing to 1 is unresolved."""

    inputs: tuple[Hashable, ...]
    outputs: tuple[Hashable, ...]
    weights: tuple[tuple[int, ...], ...]
    total: int

    def __post_init__(self) -> None:
        if any(weight < 0 for law in self.weights for weight in law):
            raise InvalidArgument(
                "A law has a negative probability. Give weights of at least 0.", code="not-a-distribution"
            )
        if any(sum(law) > self.total for law in self.weights):
            raise InvalidArgument(
                "The probabilities of a law add up to more than 1. They may add up to 1 at most.",
                code="not-a-distribution",
            )

    def unresolved(self, index: int) -> int:
        """The mass missing from the law of one input, over `total`."""
        return self.total - sum(self.weights[index])

    def laws(self) -> dict[Hashable, dict[Hashable, Fraction]]:
        """The same as fractions."""
        return {
            label: {y: Fraction(w, self.total) for y, w in zip(self.outputs, law, strict=True) if w}
            for label, law in zip(self.inputs, self.weights, strict=True)
        }

    def columns(self) -> Iterator[tuple[Hashable, tuple[int, ...]]]:
        """Each output with its weight under every input."""
        return zip(self.outputs, zip(*self.weights, strict=True), strict=True)


def finite(mechanism: Any) -> FiniteLaws:
    """The table of a mechanism with a method `laws()`, or of a mapping input → {output: probability}."""
    if isinstance(mechanism, FiniteLaws):
        return mechanism
    laws: Laws = mechanism if isinstance(mechanism, Mapping) else _laws_of(mechanism)
    exact = {a: {y: exactly(p, "probability") for y, p in law.items()} for a, law in laws.items()}
    outputs = tuple(dict.fromkeys(y for law in exact.values() for y in law))
    total = math.lcm(*(p.denominator for law in exact.values() for p in law.values()))
    weights = tuple(tuple(int(law.get(y, 0) * total) for y in outputs) for law in exact.values())
    return FiniteLaws(tuple(exact), outputs, weights, total)


def _laws_of(mechanism: Any) -> Laws:
    if not hasattr(mechanism, "laws"):
        raise InvalidArgument(
            "Only a finite mechanism can be enumerated. Give it a method laws(), or a mapping.", code="not-finite"
        )
    found: Laws = mechanism.laws()
    return found


def product(*mechanisms: Any) -> FiniteLaws:
    """Independent mechanisms run on the same secret input; outputs are tuples."""
    tables = [finite(mechanism) for mechanism in mechanisms]
    for table in tables:
        _same_inputs(tables[0], table)
    columns = [
        (tuple(y for y, _ in parts), tuple(math.prod(ws) for ws in zip(*(w for _, w in parts), strict=True)))
        for parts in cartesian(*(table.columns() for table in tables))
    ]
    return _table(tables[0].inputs, columns, math.prod(table.total for table in tables))


def repeat(mechanism: Any, times: int) -> FiniteLaws:
    """The mechanism run `times` times on the same input, independently; outputs are counts.

    Outputs with proportional probabilities give an observer the same information and count as one. So the result has
    one output for each way to divide `times` among the kinds: times + 1 for randomized response.
    """
    table, count = finite(mechanism), check_count(times, "times")
    kinds: dict[tuple[Fraction, ...], list[int]] = {}
    for _, weights in table.columns():
        if any(weights):
            shape = tuple(Fraction(w, sum(weights)) for w in weights)
            merged = kinds.setdefault(shape, [0] * len(weights))
            merged[:] = [a + b for a, b in zip(merged, weights, strict=True)]
    powers = [[_powers(w, count) for w in weights] for weights in kinds.values()]
    columns = []
    for counts in _divisions(count, len(kinds)):
        ways = math.factorial(count) // math.prod(math.factorial(n) for n in counts)
        weights = tuple(
            ways * math.prod(power[i][n] for power, n in zip(powers, counts, strict=True))
            for i in range(len(table.inputs))
        )
        columns.append((counts, weights))
    return _table(table.inputs, columns, table.total**count)


def adaptive(first: Any, then: Callable[[Any], Any]) -> FiniteLaws:
    """Run `first`, then the mechanism `then(output)`, or stop if that is None. Outputs are transcripts."""
    table = finite(first)
    following = {y: None if (chosen := then(y)) is None else finite(chosen) for y in table.outputs}
    later = math.lcm(*(after.total for after in following.values() if after is not None))
    columns: list[tuple[Hashable, tuple[int, ...]]] = []
    for y, weights in table.columns():
        after = following[y]
        if after is None:
            columns.append(((y,), tuple(w * later for w in weights)))
            continue
        _same_inputs(table, after)
        scale = later // after.total
        for z, more in after.columns():
            columns.append(((y, z), tuple(w * v * scale for w, v in zip(weights, more, strict=True))))
    return _table(table.inputs, columns, table.total * later)


def _table(inputs: tuple[Hashable, ...], columns: list[tuple[Any, tuple[int, ...]]], total: int) -> FiniteLaws:
    weights = tuple(zip(*(w for _, w in columns), strict=True))
    return FiniteLaws(inputs, tuple(y for y, _ in columns), weights, total)


def _same_inputs(first: FiniteLaws, second: FiniteLaws) -> None:
    if first.inputs != second.inputs:
        raise InvalidArgument(
            "Composed mechanisms must have the same inputs, in the same order.", code="different-inputs"
        )


def _powers(base: int, largest: int) -> list[int]:
    return list(accumulate([base] * largest, operator.mul, initial=1))


def _divisions(count: int, kinds: int) -> Iterator[tuple[int, ...]]:
    if kinds == 1:
        yield (count,)
        return
    for here in range(count + 1):
        for rest in _divisions(count - here, kinds - 1):
            yield here, *rest
