"""Means of groups whose sizes are not known: the p-value of a hypothesis about several of them is the largest one for
some common mean, of which each group is tested by itself.

The p-values of a group are tabulated where they change: on a grid as fine as the group's mean is known, however many
rows another group has. Between the points of a grid they are interpolated, which errs upwards in the tails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from discreet.stats.inference.means import MeanOf
    from discreet.stats.inference.noisy_shares import Alternative

Floats = NDArray[np.float64]
_EVEN = np.linspace(0.0, 1.0, 11)
_STEPS = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 9.0, 14.0, 25.0])
_NEAR = np.concatenate([-_STEPS[:0:-1], _STEPS])
"""Where a p-value is computed, in deviations of the estimated mean."""
_BETWEEN = 8
"""Into how many parts the steps between points are divided for more than two groups."""


def table_of(group: MeanOf, alternative: Alternative, *, sampled: bool = True) -> tuple[Floats, Floats]:
    """Means in ascending order, in the first dimension, and their p-values. Other dimensions are releases."""
    best = np.asarray(group.mean, dtype=np.float64)
    law = group.shares.error(group.less(best), sampled=sampled)
    deviation = np.minimum(law.deviation / np.maximum(np.asarray(group.size, dtype=np.float64), 1e-9), 1.0)
    shape = (-1, *([1] * best.ndim))
    even = np.broadcast_to(_EVEN.reshape(shape), (len(_EVEN), *best.shape))
    grid = np.sort(np.clip(np.concatenate([best + deviation * _NEAR.reshape(shape), even]), 0.0, 1.0), 0)
    return grid, group.p_of_mean(grid, alternative, sampled=sampled)


def p_of_two(one: tuple[Floats, Floats], other: tuple[Floats, Floats], gap: Any) -> Floats:
    """The largest p-value, over all pairs of means that differ by `gap`, of the least of both. The dimensions of `gap`
    are releases, or several hypotheses about one release.
    """
    gap = np.asarray(gap, dtype=np.float64)
    shape = np.broadcast_shapes(gap.shape, one[0].shape[1:])
    gap = np.broadcast_to(gap, shape)
    first, second = (tuple(_spread(part, shape) for part in table) for table in (one, other))
    low, high = np.maximum(0.0, -gap), np.minimum(1.0, 1 - gap)
    at = np.sort(np.clip(np.concatenate([first[0], second[0] - gap, low[None], high[None]]), low, high), 0)
    p, q = _interpolated(at, *first), _interpolated(at + gap, *second)
    apart = p - q
    # both are straight lines between neighboring points: where they cross, the least of them is largest
    change = np.where(
        apart[:-1] * apart[1:] < 0, apart[:-1] / np.where(apart[:-1] == apart[1:], 1.0, -np.diff(apart, axis=0)), 0.0
    )
    crossed = np.where(change > 0, p[:-1] + change * np.diff(p, axis=0), 0.0)
    return np.asarray(np.minimum(1.0, 2 * np.maximum(np.minimum(p, q).max(0), crossed.max(0))))


def p_of_several(tables: list[tuple[Floats, Floats]]) -> float:
    """The p-value of the hypothesis that all groups of one release have the same mean (Bonferroni)."""
    knots = np.unique(np.concatenate([grid for grid, _ in tables]))
    parts = np.arange(_BETWEEN) / _BETWEEN
    at = np.append((knots[:-1, None] + np.diff(knots)[:, None] * parts).reshape(-1), knots[-1])
    each = np.stack([np.interp(at, grid, p) for grid, p in tables])
    # between two points no p-value is larger than at both of them
    least = np.maximum(each[:, :-1], each[:, 1:]).min(0)
    return float(min(1.0, len(tables) * least.max()))


def _spread(part: Floats, shape: tuple[int, ...]) -> Floats:
    return np.broadcast_to(
        part.reshape(len(part), *([1] * (len(shape) - part.ndim + 1)), *part.shape[1:]), (len(part), *shape)
    )


def _interpolated(at: Floats, grid: Floats, values: Floats) -> Floats:
    """Linear interpolation along the first dimension."""
    after = np.zeros(at.shape, dtype=np.int64)
    for point in grid[1:-1]:
        after += at >= point
    left, right = np.take_along_axis(grid, after, 0), np.take_along_axis(grid, after + 1, 0)
    low, high = np.take_along_axis(values, after, 0), np.take_along_axis(values, after + 1, 0)
    part = np.clip((at - left) / np.where(right > left, right - left, 1.0), 0.0, 1.0)
    return np.asarray(np.where(right > left, low + part * (high - low), np.maximum(low, high)))
