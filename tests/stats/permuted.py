"""The exact laws of the permutation test on tiny tables, computed from the definition: no sampler is used."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, combinations_with_replacement
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.quantiles.permutation_test import PermutationTest

Floats = NDArray[np.float64]
Row = tuple[int, int]
Table = tuple[Row, ...]


def reach_of(test: PermutationTest) -> int:
    """Noise beyond this has a probability below 1e-13, also when a few rows move it."""
    return int(30 * float(test.scale)) + 5 * test.steps


def tables(steps: int, most: int) -> list[Table]:
    """All tables of at most this many rows: values from 0 to `steps` in two groups, in any order."""
    rows = [(value, group) for value in range(steps + 1) for group in (0, 1)]
    return [one for size in range(most + 1) for one in combinations_with_replacement(rows, size)]


def neighbors(known: list[Table], steps: int, relation: str) -> Iterator[tuple[Table, Table]]:
    """All pairs of tables that differ in one row."""
    largest = max(map(len, known))
    rows = [(value, group) for value in range(steps + 1) for group in (0, 1)]
    for table in known:
        if len(table) == largest:
            continue
        more = [tuple(sorted((*table, row))) for row in rows]
        if relation == "add_or_remove":
            yield from ((table, one) for one in more)
        else:
            yield from ((one, other) for one in more for other in more if one < other)


def counts_of(table: Table, steps: int) -> NDArray[np.int64]:
    """The number of rows of each group with each value."""
    counts = np.zeros((2, steps + 1), dtype=np.int64)
    for value, group in table:
        counts[group, value] += 1
    return counts


def law_of(test: PermutationTest, table: Table) -> Floats:
    """The probabilities of all answers: False and True, or every rank."""
    reach = reach_of(test)
    numbers = np.arange(-reach, reach + 1)
    noise = np.exp(-np.abs(numbers) / float(test.scale))
    noise /= noise.sum()
    values, size = [value for value, _ in table], sum(group for _, group in table)
    own = sum(value for value, group in table if group)
    moved = np.array([sum(taken) for taken in combinations(values, size)]) - own
    other = np.mean([np.roll(noise, by) for by in moved], axis=0)
    below = np.concatenate([[0.0], np.cumsum(other)])
    if test.level is None:
        return _law_of_rank(noise, other, 1 - below[1:], test.permutations)
    if test.side == "two-sided":
        return _law_between(noise, below, test)
    beyond = 1 - below[:-1] if test.side == "greater" else below[1:]
    rejects = float(noise @ sum(binomial(test.permutations, k, beyond) for k in range(test.tail)))
    return np.array([1 - rejects, rejects])


def binomial(size: int, k: int, p: Floats) -> Floats:
    """The probability of k successes."""
    return np.asarray(comb(size, k) * p**k * (1 - p) ** (size - k))


def _law_of_rank(noise: Floats, other: Floats, above: Floats, size: int) -> Floats:
    """Ties in a random order: a place in a tie is uniform, which a rule of Gauss integrates exactly."""
    nodes, weights = np.polynomial.legendre.leggauss(size + 1)
    law = np.zeros(size + 1)
    for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        law += weight * np.array([noise @ binomial(size, k, above + node * other) for k in range(size + 1)])
    return law


def _law_between(noise: Floats, below: Floats, test: PermutationTest) -> Floats:
    """The smallest and the largest permuted sum decide, as one in each tail does."""
    assert test.tail == 1
    # P[a ≤ all ≤ b], and from it P[smallest = a, largest = b]
    inside = np.maximum(below[None, 1:] - below[:-1, None], 0.0) ** test.permutations
    padded = np.zeros((len(noise) + 1, len(noise) + 1))
    padded[:-1, 1:] = np.triu(inside)
    joint = padded[:-1, 1:] - padded[1:, 1:] - padded[:-1, :-1] + padded[1:, :-1]
    cumulative = np.concatenate([[0.0], np.cumsum(noise)])
    reach = reach_of(test)
    numbers = np.arange(-reach, reach + 1)
    low, high = np.meshgrid(numbers, numbers, indexing="ij")
    first = np.minimum(low, np.ceil((low + high - test.width) / 2)).astype(int)
    last = np.maximum(high, np.floor((low + high + test.width) / 2)).astype(int)
    first, last = np.clip(first, -reach, reach) + reach, np.clip(last, -reach, reach) + reach
    accepted = float((joint * (cumulative[last + 1] - cumulative[first])).sum())
    return np.array([accepted, 1 - accepted])


def largest_delta(test: PermutationTest, relation: str, epsilon: float, most: int = 4) -> float:
    """δ(ε) of the worst pair of neighbors among all tables of at most this many rows."""
    known = tables(test.steps, most)
    laws: dict[Any, Floats] = {table: law_of(test, table) for table in known}
    worst = 0.0
    for one, other in neighbors(known, test.steps, relation):
        p, q = laws[one], laws[other]
        for a, b in ((p, q), (q, p)):
            worst = max(worst, float(np.maximum(a - np.exp(epsilon) * b, 0.0).sum()))
    return worst
