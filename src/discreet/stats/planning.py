"""How many rows a private test needs, and how powerful it is: computed from the laws of the released numbers.

Nothing is read or charged. Sampling is exact for proportions and normal for means; noise has its own law everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy import special

from discreet.closing import closed
from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count, check_delta, check_epsilon, check_positive, exactly
from discreet.guarantees.accuracy import check_confidence
from discreet.guarantees.guarantee import Approx, Pure
from discreet.guarantees.unit import row
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.laplace import Laplace
from discreet.queries.shares import ShareProducts
from discreet.stats import planned_tests
from discreet.stats.inference.noisy_shares import Alternative, Noise
from discreet.stats.results import check_alternative

Floats = NDArray[np.float64]
Test = Literal["proportion", "two-proportions", "mean", "two-means", "paired", "chi2"]
Neighbors = Literal["add_or_remove", "replace"]
MOST_ROWS = 10**10


Power = Callable[[int, planned_tests.Setting], float]


@dataclass(frozen=True)
class _Test:
    """One kind of test: the power with this many rows, that of the test without privacy, and how many groups the rows
    are divided among.
    """

    power: Power
    plain: Power
    groups: int = 1
    proportions: bool = False


_TESTS = {
    "proportion": _Test(planned_tests.of_proportion, planned_tests.of_plain_proportion, proportions=True),
    "two-proportions": _Test(
        planned_tests.of_two_proportions, planned_tests.of_plain_two_proportions, groups=2, proportions=True
    ),
    "mean": _Test(planned_tests.of_mean, planned_tests.of_plain_mean),
    "two-means": _Test(planned_tests.of_two_means, planned_tests.of_plain_two_means, groups=2),
    "paired": _Test(planned_tests.of_mean, planned_tests.of_plain_mean),
    "chi2": _Test(planned_tests.of_chi2, planned_tests.of_plain_chi2),
}


class SampleSize(int):
    """A number of rows: the total of all groups. It prints what it is for."""

    groups: int
    power: float
    without_privacy: int
    test: str

    @classmethod
    def _made(cls, total: int, **facts: Any) -> Self:
        made = cls(total)
        for name, fact in facts.items():
            setattr(made, name, fact)
        return made

    @property
    def total(self) -> int:
        """The number of rows of all groups together."""
        return int(self)

    @property
    def per_group(self) -> int:
        """The number of rows of each group."""
        return int(self) // self.groups

    def __repr__(self) -> str:
        each = f", {self.per_group:,} in each group" if self.groups > 1 else ""
        return (
            f"{self.total:,} rows{each}: power {self.power:.3f} of the test {self.test!r} "
            f"({self.without_privacy:,} rows without privacy)"
        )

    __str__ = __repr__


@closed
def power(
    test: Test,
    *,
    n: int,
    effect: Any,
    epsilon: Number,
    delta: Number = 0,
    level: float = 0.05,
    alternative: Alternative = "two-sided",
    neighbors: Neighbors = "add_or_remove",
    range_in_deviations: Number = 6,
    cells: int = 2,
) -> float:
    """The probability that a private test rejects with `n` rows in all, if the effect is this large.

    `effect` is a pair of proportions (p0, p1) for "proportion" and "two-proportions", a difference in standard
    deviations for "mean", "two-means" and "paired", and Cohen's w for "chi2", with `cells` equally probable cells.
    `range_in_deviations` is the width of the declared range: 6 for ±3 standard deviations (of the differences, for
    "paired"). Groups have the same size, and each unit one row.
    """
    kind, setting = _setting(test, effect, epsilon, delta, level, alternative, neighbors, range_in_deviations, cells)
    return kind.power(check_count(n, "n", at_least=2), setting)


@closed
def sample_size(
    test: Test,
    *,
    effect: Any,
    power: float = 0.8,
    epsilon: Number,
    delta: Number = 0,
    level: float = 0.05,
    alternative: Alternative = "two-sided",
    neighbors: Neighbors = "add_or_remove",
    range_in_deviations: Number = 6,
    cells: int = 2,
) -> SampleSize:
    """How many rows a private test needs for this power. The arguments are those of `power`.

    >>> sample_size("proportion", effect=(0.5, 0.6), epsilon=1, neighbors="replace").total
    202
    """
    kind, setting = _setting(test, effect, epsilon, delta, level, alternative, neighbors, range_in_deviations, cells)
    wanted = check_confidence(power)
    without = _least_rows(kind.plain, kind.groups, setting, wanted, 4)
    total = _least_rows(kind.power, kind.groups, setting, wanted, without)
    return SampleSize._made(
        total, groups=kind.groups, power=kind.power(total, setting), without_privacy=without, test=test
    )


def _least_rows(power: Power, groups: int, setting: planned_tests.Setting, wanted: float, start: int) -> int:
    """The least number of rows, a multiple of the number of groups, with the power that is wanted."""

    def above(size: int) -> float:
        """How far the power is above the one wanted, on the scale on which it is about linear in √size."""
        return float(special.ndtri(np.clip(power(groups * size, setting), 1e-9, 1 - 1e-9)) - special.ndtri(wanted))

    low, high = 1, max(2, start // groups)
    at_low, at_high = -9.0, above(high)
    while at_high < 0:
        low, at_low = high, at_high
        high = 2 * high if high < 64 else high + high // 4
        if high > MOST_ROWS:
            raise InvalidArgument(
                f"No sample of up to {MOST_ROWS:,} rows has this power. Allow a larger epsilon or effect.",
                code="out-of-range",
            )
        at_high = above(high)
    turn = 0
    while high - low > 1:
        part = -at_low / (at_high - at_low)
        guess = (np.sqrt(low) + part * (np.sqrt(high) - np.sqrt(low))) ** 2
        # one beyond the guess, on either side by turns, so that both ends move; every third time, the middle
        middle = (low + high) // 2 if turn % 3 == 2 else int(np.clip(np.rint(guess) + turn % 3, low + 1, high - 1))
        found = above(middle)
        if found < 0:
            low, at_low = middle, found
        else:
            high, at_high = middle, found
        turn += 1
    return groups * high


def _setting(
    test: Any,
    effect: Any,
    epsilon: Number,
    delta: Number,
    level: float,
    alternative: Any,
    neighbors: Any,
    range_in_deviations: Number,
    cells: int,
) -> tuple[_Test, planned_tests.Setting]:
    """The test and everything about it except the number of rows, checked."""
    kind = _TESTS.get(test) if isinstance(test, str) else None
    if kind is None:
        raise InvalidArgument(f"test must be one of {', '.join(map(repr, _TESTS))}.", code="not-an-option")
    if neighbors not in ("add_or_remove", "replace"):
        raise InvalidArgument('neighbors must be "add_or_remove" or "replace".', code="not-an-option")
    check_epsilon(epsilon)
    noise = noise_of(epsilon, delta, replaced=neighbors == "replace", of_count=test == "proportion")
    return kind, planned_tests.Setting(
        effect=_two_shares(effect) if kind.proportions else (0.0, _size(effect)),
        noise=noise,
        level=check_confidence(level),
        alternative=check_alternative(alternative),
        known_size=neighbors == "replace",
        width=float(check_positive(range_in_deviations, "range_in_deviations")),
        cells=check_count(cells, "cells", at_least=2),
    )


def noise_of(epsilon: Number, delta: Number, *, replaced: bool, of_count: bool = False) -> Noise:
    """The noise of the numbers that a test releases. A replaced unit moves a single count by 1, and other sums by 2."""
    unit = row(neighbors="replace") if replaced else row()
    query = ShareProducts(2, ((0, 0), (1, 1)))
    plain, square = query.sensitivity(unit), query.sensitivity(unit, norm="L2")
    if of_count and replaced:
        plain = square = ShareProducts(1, ((0, 0),)).sensitivity(row())
    if not check_delta(delta):
        return Noise.of(Laplace.for_guarantee(Pure(epsilon=epsilon), sensitivity=plain))
    goal = Approx(epsilon=epsilon, delta=delta)
    laplace = Laplace.for_guarantee(goal, sensitivity=plain)
    gaussian = Gaussian.for_guarantee(goal, sensitivity=square)
    return Noise.of(gaussian if gaussian.deviation < laplace.deviation else laplace)


def _two_shares(effect: Any) -> tuple[float, float]:
    if not isinstance(effect, tuple | list) or len(effect) != 2:
        raise InvalidArgument("effect must be two proportions, such as effect=(0.5, 0.6).", code="wrong-shape")
    first, second = float(exactly(effect[0], "effect")), float(exactly(effect[1], "effect"))
    if not (0 <= first <= 1 and 0 <= second <= 1) or first == second:
        raise InvalidArgument("effect must be two different proportions from 0 to 1.", code="out-of-range")
    return first, second


def _size(effect: Any) -> float:
    if isinstance(effect, tuple | list):
        raise InvalidArgument(
            "effect must be one number for this test: a difference in standard deviations, or Cohen's w.",
            code="wrong-shape",
        )
    size = abs(float(exactly(effect, "effect")))
    if not size:
        raise InvalidArgument("effect must not be 0.", code="out-of-range")
    return size
