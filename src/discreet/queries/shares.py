"""Second moments of shares: one sum from which means, proportions and their sampling errors are computed.

Every unit is divided among a few places, such as the low and the high end of a range: its shares add up to 1. The sum
over all units of the products of their shares has all that a mean and its standard error need, and one unit adds
exactly 1 to it, however many products there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.closing import Closed
from discreet.errors import InvalidArgument
from discreet.exact.rational import check_count
from discreet.guarantees.unit import Unit, check_one_row
from discreet.queries.sensitivity import Sensitivity

WHOLE = 2**20
"""A unit's shares are whole numbers that add up to this."""
Ints = NDArray[np.int64]
_BLOCK = 2**18


@dataclass(frozen=True)
class ShareProducts(Closed):
    """The sum over units of the products p_v·p_w of their shares, for some pairs of places.

    `pairs` lists them with v ≤ w; a product of two different places counts twice, as in the square of the sum of all
    shares. Pairs that no unit can be in at once need not be listed.

    Promise: the products of one unit are not negative and add up to at most (Σp)² = 1. So one unit that is added or
    removed moves the answer by at most 1 in the L1 norm, and in the L2 norm, which is never larger. A replaced unit
    moves it by at most 2 in the L1 norm, and by √2 in the L2 norm: the angle of two vectors that are not negative is at
    most 90°.

    >>> ShareProducts(2, ((0, 0), (0, 1), (1, 1)))([[WHOLE // 2, WHOLE // 2], [0, WHOLE]]).astype(float)
    array([0.25, 0.5 , 1.25])
    """

    places: int
    pairs: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        check_count(self.places, "places")
        if not self.pairs or len(set(self.pairs)) < len(self.pairs):
            raise InvalidArgument("pairs must name each pair of places once.", code="duplicates")
        if any(not 0 <= v <= w < self.places for v, w in self.pairs):
            raise InvalidArgument("A pair must name two places, the lower one first.", code="out-of-range")

    @property
    def space(self) -> None:
        """None: the shares of a unit are computed from its rows before they come here."""
        return None

    @cached_property
    def grain(self) -> Fraction:
        """Every answer is a whole multiple of this."""
        return Fraction(1, WHOLE**2)

    def __call__(self, units: NDArray[np.int64]) -> NDArray[np.object_]:
        shares = np.asarray(units, dtype=np.int64).reshape(-1, self.places)
        totals = [0] * len(self.pairs)
        for start in range(0, len(shares), _BLOCK):
            block = shares[start : start + _BLOCK]
            for place, (v, w) in enumerate(self.pairs):
                totals[place] += (1 + (v != w)) * int((block[:, v] * block[:, w]).sum())
        return np.array([self.grain * total for total in totals] + [None], dtype=object)[:-1]

    def sensitivity(self, unit: Unit, rows_per_person: int = 1, *, norm: str = "L1") -> Sensitivity:
        """1 for an added or removed unit, 2 in L1 and √2 in L2 for a replaced one, whatever its number of rows. Only
        the rows of a person share: a unit of several rows is refused.
        """
        check_count(rows_per_person, "rows_per_person")
        check_one_row(unit, "A query of shares")
        replaced = unit.neighbors == "replace"
        if norm == "L2":
            return Sensitivity(Fraction(141422, 100000) if replaced else 1, "L2", unit, len(self.pairs), self.grain)
        return Sensitivity(2 if replaced else 1, "L1", unit, len(self.pairs), self.grain)
