"""Limits on what one person adds to an answer, found without guessing: one for each kind of number in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

import numpy as np

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, exactly
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Guarantee, Pure
from discreet.guarantees.privacy_loss.compose import compose
from discreet.mechanisms.selection.upward_search import UpwardSearch
from discreet.queries.sensitivity import SensitivityLike
from discreet.rows.containers import Data


@dataclass(frozen=True, kw_only=True)
class PersonLimits:
    """A limit for each of several kinds of numbers, such that few enough people exceed it.

    The value is, for each kind, the total of every person, without signs. `limits` has the possible limits of each
    kind, in growing order. A kind with one possible limit has no search (None): that one is publicly known.

    Promise: the searches compose. A person adds 0 or 1 to every count of people above a limit.
    Error: of the number of people above each limit.
    """

    limits: tuple[tuple[int, ...], ...]
    searches: tuple[UpwardSearch | None, ...]

    def __post_init__(self) -> None:
        fits = len(self.limits) == len(self.searches) and any(search is not None for search in self.searches)
        if not fits or any((len(own) == 1) != (search is None) for own, search in self._pairs()):
            raise InvalidArgument(
                "PersonLimits needs a search for each kind that has several limits.", code="part-does-not-fit"
            )

    def _pairs(self) -> list[tuple[tuple[int, ...], UpwardSearch | None]]:
        return list(zip(self.limits, self.searches, strict=True))

    def guarantee(self, sensitivity: SensitivityLike) -> Guarantee:
        return compose([search.guarantee(sensitivity) for search in self.searches if search is not None])

    @classmethod
    def for_guarantee(
        cls, guarantee: Guarantee, *, limits: Sequence[Sequence[int]], people: Number, sensitivity: SensitivityLike
    ) -> Self:
        """Equal shares of ε for all kinds whose limits are not known, for limits that about so many people exceed."""
        if type(guarantee) is not Pure:
            raise InvalidArgument(
                "PersonLimits is calibrated for Pure. Use Pure(epsilon=…).", code="guarantee-not-supported"
            )
        unknown = max(1, sum(len(own) > 1 for own in limits))
        share = Pure(epsilon=exactly(guarantee.epsilon) / unknown)
        search = UpwardSearch.for_guarantee(share, people=people, sensitivity=sensitivity)
        return cls(
            limits=tuple(tuple(own) for own in limits),
            searches=tuple(search if len(own) > 1 else None for own in limits),
        )

    def error(self, confidence: float) -> Accuracy:
        sure, searched = check_confidence(confidence), [one for one in self._pairs() if one[1] is not None]
        each = 1 - (1 - sure) / len(searched)
        errors = [search.error(each, limits=len(own)) for own, search in searched if search is not None]
        return Accuracy(amount=max(map(float, errors)), confidence=sure, of=errors[0].of)

    def check(self, value: Data) -> None:
        """Refuse what is not one total of every person for each kind. Only shape and type decide."""
        if not isinstance(value, Sequence) or [np.ndim(own) for own in value] != [1] * len(self.limits):
            raise InvalidArgument("Give the totals of all people, as one array for each kind.", code="wrong-shape")

    def _draw(self, value: Sequence[Any]) -> tuple[int, ...]:
        self.check(value)
        pairs = zip(value, self._pairs(), strict=True)
        return tuple(
            own[0] if search is None else own[search._draw(people_above(totals, own))]
            for totals, (own, search) in pairs
        )


def people_above(totals: Any, limits: Sequence[int]) -> list[int]:
    """How many people exceed each limit."""
    ordered = np.sort(np.asarray(totals))
    edges = np.asarray(limits, dtype=ordered.dtype)
    return [int(count) for count in len(ordered) - np.searchsorted(ordered, edges, side="right")]


def thirds_of_octaves(first: int, last: int) -> list[int]:
    """The integers first·2^(j/3), rounded up, as far as they do not exceed the last."""
    return list(_thirds_of_octaves(first, last))


@lru_cache(maxsize=100)
def _thirds_of_octaves(first: int, last: int) -> tuple[int, ...]:
    powers = range(3 * (last // first).bit_length() + 1)
    found = {_cube_root_above(first**3 << power) for power in powers}
    return tuple(sorted(limit for limit in found if limit <= last))


def _cube_root_above(number: int) -> int:
    """The cube root of an integer, rounded up, by Newton's method from above."""
    root = 1 << -(-number.bit_length() // 3)
    while (lower := (2 * root + number // root**2) // 3) < root:
        root = lower
    return root if root**3 == number else root + 1
