"""The synthetic people of the thesis, each with a salary and a state [T.7]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.exact import public_draws
from discreet.exact.rational import check_count

SALARIES = (1500, 4500)
"""The declared range in dollars. It is public and never read from the people."""

# fmt: off
_INHABITANTS = {
    "AL": 478, "AZ": 639, "AR": 292, "CA": 3725, "CO": 503, "CT": 357, "DE": 90, "FL": 1880,
    "GA": 969, "ID": 157, "IL": 1283, "IN": 648, "IA": 305, "KS": 285, "KY": 434, "LA": 453,
    "ME": 133, "MD": 577, "MA": 655, "MI": 988, "MN": 530, "MS": 297, "MO": 599, "MT": 99,
    "NE": 183, "NV": 270, "NH": 132, "NJ": 879, "NM": 206, "NY": 1938, "NC": 954, "ND": 67,
    "OH": 1154, "OK": 375, "OR": 383, "PA": 1270, "RI": 105, "SC": 463, "SD": 81, "TN": 635,
    "TX": 2515, "UT": 276, "VT": 63, "VA": 800, "WA": 672, "WV": 185, "WI": 569, "WY": 56,
}
"""The 48 contiguous states with their populations in tens of thousands (census of 2010)."""
# fmt: on
STATES: tuple[str, ...] = tuple(_INHABITANTS)


@dataclass(frozen=True, kw_only=True)
class People:
    """One salary, in whole dollars, and one state for each person."""

    salaries: NDArray[np.int64]
    states: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.states)


def generate(count: int = 1000) -> People:
    """`count` people. Salaries are uniform over the whole dollars of the range, and states are drawn by population.

    >>> people = generate(3)
    >>> len(people), set(people.states) <= set(STATES)
    (3, True)
    """
    size = check_count(count, "people")
    low, high = SALARIES
    ends = np.cumsum(list(_INHABITANTS.values()))
    places = np.searchsorted(ends, public_draws.whole_numbers(int(ends[-1]), size), side="right")
    return People(
        salaries=low + public_draws.whole_numbers(high - low + 1, size),
        states=tuple(STATES[place] for place in places.tolist()),
    )
