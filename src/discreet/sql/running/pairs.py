"""Covariance, correlation and regression: computed from noisy sums of two values, of their squares and their products.

All sums are about public centers. The intervals follow from those of the sums, by arithmetic on intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from discreet.sql.question import Aggregate, Measure, PairKind

Floats = NDArray[np.float64]
Band = tuple[Floats, Floats]
PAIRS: tuple[str, ...] = get_args(PairKind)


def value_of_pair(aggregate: Aggregate, measures: Sequence[Measure], numbers: Sequence[Floats]) -> Floats:
    """The best estimate. NaN where it is not defined, so that even exact sums would leave more than one value: if a
    spread is not positive, or a sample has fewer than two rows.
    """
    with np.errstate(all="ignore"):
        low, high = _computed(aggregate, measures, [(one, one) for one in numbers])
    return np.where(low == high, low, np.nan)


def band_of_pair(aggregate: Aggregate, measures: Sequence[Measure], bands: Sequence[Band]) -> Band:
    """The interval that contains the true value if all sums are in theirs."""
    with np.errstate(all="ignore"):
        return _computed(aggregate, measures, bands)


def _computed(aggregate: Aggregate, measures: Sequence[Measure], bands: Sequence[Band]) -> Band:
    count = np.maximum(bands[0][0], 1.0), np.maximum(bands[0][1], 1.0)
    means = [_over(_scale(b, float(m.step)), count) for m, b in zip(measures[1:3], bands[1:3], strict=True)]
    means = [_within(mean, *_ends(measure)) for mean, measure in zip(means, measures[1:3], strict=True)]
    reach = [max(map(abs, _ends(measure))) for measure in measures[1:3]]
    products = _over(_scale(bands[-1], float(measures[-1].step)), count)
    products = _within(products, -reach[0] * reach[1], reach[0] * reach[1])
    shared = _less(products, _product(*means))
    if aggregate.kind == "covariance":
        return _of_sample(shared, count) if aggregate.sample else shared
    if aggregate.kind == "sxy":
        return _product(shared, count)
    named = {"slope": (1,), "intercept": (1,), "sxx": (1,), "syy": (0,)}.get(aggregate.kind, (0, 1))
    spreads = {}
    for place, value in enumerate(named, 3):
        squares = _over(_scale(bands[place], float(measures[place].step) ** 2), count)
        spread = _less(_within(squares, 0.0, reach[value] ** 2), _square(means[value]))
        spreads[value] = np.maximum(spread[0], 0.0), np.maximum(spread[1], 0.0)
    if aggregate.kind in ("sxx", "syy"):
        return _product(spreads[named[0]], count)
    return _KINDS[aggregate.kind](shared, spreads, means, [float(measure.center) for measure in measures[1:3]])


def _slope(shared: Band, spreads: dict[int, Band], means: list[Band], centers: list[float]) -> Band:
    return _quotient(shared, spreads[1])


def _intercept(shared: Band, spreads: dict[int, Band], means: list[Band], centers: list[float]) -> Band:
    mean = [(band[0] + center, band[1] + center) for band, center in zip(means, centers, strict=True)]
    return _less(mean[0], _product(_slope(shared, spreads, means, centers), mean[1]))


def _correlation(shared: Band, spreads: dict[int, Band], means: list[Band], centers: list[float]) -> Band:
    both = _product(spreads[0], spreads[1])
    return _within(_quotient(shared, (np.sqrt(both[0]), np.sqrt(both[1]))), -1.0, 1.0)


def _r2(shared: Band, spreads: dict[int, Band], means: list[Band], centers: list[float]) -> Band:
    return _square(_correlation(shared, spreads, means, centers))


_KINDS: dict[str, Callable[..., Band]] = {
    "slope": _slope,
    "intercept": _intercept,
    "correlation": _correlation,
    "r2": _r2,
}


def _ends(measure: Measure) -> tuple[float, float]:
    """The farthest values from the center."""
    return float(measure.step) * measure.lowest, float(measure.step) * measure.highest


def _of_sample(band: Band, count: Band) -> Band:
    """Times n/(n−1), which decreases with n. Anything is possible with fewer than two rows."""
    ratios = [n / np.maximum(n - 1, 1.0) for n in count]
    low, high = _product(band, (np.minimum(*ratios), np.maximum(*ratios)))
    return np.where(count[0] < 2, -np.inf, low), np.where(count[0] < 2, np.inf, high)


def _scale(band: Band, factor: float) -> Band:
    return band[0] * factor, band[1] * factor


def _over(band: Band, count: Band) -> Band:
    corners = [end / n for end in band for n in count]
    return np.minimum.reduce(corners), np.maximum.reduce(corners)


def _within(band: Band, low: float, high: float) -> Band:
    return np.clip(band[0], low, high), np.clip(band[1], low, high)


def _less(first: Band, second: Band) -> Band:
    return first[0] - second[1], first[1] - second[0]


def _product(first: Band, second: Band) -> Band:
    corners = [a * b for a in first for b in second]
    return np.minimum.reduce(corners), np.maximum.reduce(corners)


def _square(band: Band) -> Band:
    ends = band[0] ** 2, band[1] ** 2
    inside = (band[0] <= 0) & (band[1] >= 0)
    return np.where(inside, 0.0, np.minimum(*ends)), np.maximum(*ends)


def _quotient(first: Band, second: Band) -> Band:
    """A quotient by a spread. Anything is possible if the spread may be 0."""
    corners: list[Any] = [a / b for a in first for b in second]
    open_ended = second[0] <= 0
    low = np.where(open_ended, -np.inf, np.minimum.reduce(corners))
    return low, np.where(open_ended, np.inf, np.maximum.reduce(corners))
