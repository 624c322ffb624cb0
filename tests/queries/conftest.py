"""All tiny databases and their neighbors, for checking sensitivities by brute force."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import pytest

from discreet.guarantees.unit import Relation


def _neighbors(
    domain: Sequence[Any], rows: int, relation: Relation, per_person: int = 1, *, exchange: bool = False
) -> Iterator[tuple[list[Any], list[Any]]]:
    """Every pair of databases with at most `rows` other rows that differ in one unit of at most `per_person`.

    With `exchange` a replaced unit keeps its number of rows, as a replaced row() does.
    """
    units = [list(u) for k in range(per_person + 1) for u in itertools.combinations_with_replacement(domain, k)]
    for size in range(rows + 1):
        for rest in itertools.combinations_with_replacement(domain, size):
            if relation == "add_or_remove":
                yield from ((list(rest), [*rest, *unit]) for unit in units)
            else:
                for before, after in itertools.combinations(units, 2):
                    if not exchange or len(before) == len(after):
                        yield [*rest, *before], [*rest, *after]


def _largest(
    answer: Callable[[list[Any]], Sequence[Fraction]],
    pairs: Iterator[tuple[list[Any], list[Any]]],
    norm: str,
) -> Fraction:
    """The largest distance between the answers of neighbors; squared, in L2."""
    worst, known = Fraction(0), {}

    def answered(rows: list[Any]) -> list[Fraction]:
        """Each database is in many pairs, and answered once."""
        key = repr(rows)
        if key not in known:
            known[key] = [Fraction(a) for a in answer(rows)]
        return known[key]

    for before, after in pairs:
        moves = [abs(a - b) for a, b in zip(answered(before), answered(after), strict=True)]
        size = {"L1": sum(moves), "L2": sum(m * m for m in moves), "Linf": max(moves)}[norm]
        worst = max(worst, Fraction(size))
    return worst


@pytest.fixture(scope="session")
def neighbors() -> Callable[..., Iterator[tuple[list[Any], list[Any]]]]:
    return _neighbors


@pytest.fixture(scope="session")
def largest() -> Callable[..., Fraction]:
    return _largest
