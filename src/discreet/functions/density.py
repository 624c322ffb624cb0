"""A private density: one release that can be evaluated at every point, always with the same answer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.closing import closed
from discreet.errors import InvalidArgument
from discreet.exact import public_draws
from discreet.exact.rational import Number, check_count, check_positive, exactly
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.unit import Unit
from discreet.ledger import Ledger, cost_of
from discreet.mechanisms.noise.gaussian_process import GaussianProcess
from discreet.releases import Release, Released
from discreet.rows import table as table_of
from discreet.rows.containers import Data
from discreet.rows.convex import onto_simplex
from discreet.rows.features import FourierFeatures

Floats = NDArray[np.float64]
_CHUNK = 2**16


@dataclass(frozen=True)
class Density(Released):
    """The density of one to three columns, estimated with Gaussian kernels and released with noise.

    Call it at any number of points, at no further cost. The same point always has the same answer, even after pickling.
    It may be slightly below 0 or have a mass that is not exactly 1 on the range, because noise and kernels reach
    beyond. `projected` is the closest true density on a grid, which `cdf`, `quantile` and `sample` use. `smooth` widens
    the bandwidth, for free. Values outside the range were moved to its ends, where they accumulate: declare a range
    that contains them.

    >>> import discreet as dp
    >>> rows = np.linspace(0, 6, 5000)
    >>> goal = dp.Approx(epsilon=1, delta=1e-6)
    >>> density = density_of(rows, between=(-1, 7), bandwidth=0.4, guarantee=goal)
    >>> bool(abs(density(3.0) - 1 / 6) < 0.03), density(3.0) == density(3.0)
    (True, True)
    """

    process: GaussianProcess
    coefficients: Floats
    size: float
    release: Release
    damping: Floats | None = None
    smoothed: float | None = None
    names: tuple[str, ...] = ()

    @property
    def bandwidth(self) -> tuple[float, ...]:
        """The kernel's bandwidth along each column, including smoothing."""
        if self.smoothed is not None:
            return (self.smoothed,)
        return tuple(axis.width for axis in self.features.axes)

    # --- the function ---------------------------------------------------------------------------------------

    @property
    def features(self) -> FourierFeatures:
        """The kernel's features."""
        known: Any = self.process.features
        return known  # type: ignore[no-any-return]

    def __call__(self, *points: ArrayLike) -> Any:
        """The density at a point, or at each of an array of points: one array for each column, or rows of them."""
        table, shape = self._points(points)
        weights = self._weights
        found = np.empty(len(table))
        lows = np.array([float(exactly(axis.low)) for axis in self.features.axes])
        highs = np.array([float(exactly(axis.high)) for axis in self.features.axes])
        room = np.array([axis.period - axis.length for axis in self.features.axes]) / 2
        beyond = ((table < lows - room) | (table > highs + room)).any(axis=1)  # the circle's other side
        for start in range(0, len(table), _CHUNK):
            part = slice(start, start + _CHUNK)
            found[part] = (
                self._series(table[part])
                if len(self.features.axes) == 1
                else (self.features.features(table[part]) @ weights)
            )
        found[beyond] = 0.0
        return float(found[0]) if shape == () else found.reshape(shape)

    def _series(self, table: Floats) -> Floats:
        """One axis: a polynomial in e^{iθ}, by Horner's rule."""
        [axis] = self.features.axes
        weights, roots = self._weights, np.sqrt(axis.weights)
        turn = np.exp(1j * (table[:, 0] - float(exactly(axis.low))) * (2 * math.pi / axis.period))
        total = np.zeros(len(table), dtype=complex)
        for order in range(axis.orders, 0, -1):
            total = (total + roots[order] * (weights[2 * order - 1] - 1j * weights[2 * order])) * turn
        return np.asarray(total.real + roots[0] * weights[0])

    @cached_property
    def _weights(self) -> Floats:
        grown = self.coefficients if self.damping is None else self.coefficients * self.damping
        return np.asarray(grown * (self.features.height / self.size))

    def _points(self, points: Any) -> tuple[Floats, tuple[int, ...]]:
        columns = len(self.features.axes)
        if columns > 1 and len(points) == 1:
            table = np.asarray(points[0], dtype=np.float64)
            shape = table.shape[:-1]
            if table.ndim == 0 or table.shape[-1] != columns:
                raise InvalidArgument(
                    f"Each point must have {columns} coordinates, one for each column.", code="wrong-shape"
                )
            return table.reshape(-1, columns), shape
        if len(points) != columns:
            raise InvalidArgument(
                f"Give {columns} coordinates, or {columns} arrays of coordinates.", code="wrong-shape"
            )
        arrays = np.broadcast_arrays(*(np.asarray(point, dtype=np.float64) for point in points))
        return np.stack([array.reshape(-1) for array in arrays], axis=1), arrays[0].shape

    def grid(self, points: int | Sequence[int] = 512) -> tuple[Any, Floats]:
        """Evenly spaced points of the range and the density there. With several columns, one axis of points for
        each.
        """
        axes = self.features.axes
        sizes = [check_count(points, "points")] * len(axes) if isinstance(points, int | np.integer) else list(points)
        places = [
            np.linspace(float(exactly(a.low)), float(exactly(a.high)), n) for a, n in zip(axes, sizes, strict=True)
        ]
        if len(axes) == 1:
            return places[0], np.asarray(self(places[0]))
        return places, self._on_axes(places)

    def _on_axes(self, places: Sequence[Floats]) -> Floats:
        """The density at all combinations of the axes' points."""
        axes = self.features.axes
        total = self._weights.reshape([axis.size for axis in axes])
        for axis, place in zip(axes, places, strict=True):  # the first axis is summed out and becomes the last
            total = np.tensordot(total, axis.features(place), axes=([0], [1]))
        return np.asarray(total)

    def score_samples(self, points: ArrayLike) -> Floats:
        """The logarithm of the density at each row, as in `KernelDensity`. Very low where the density is not
        above 0.
        """
        table = np.asarray(points, dtype=np.float64)
        columns = len(self.features.axes)
        found = self(*table.reshape(-1, columns).T) if columns == 1 else self(table.reshape(-1, columns))
        return np.asarray(np.log(np.maximum(found, 1e-300)))

    # --- what it promises, how wrong it may be --------------------------------------------------------------

    @property
    def value(self) -> Floats:
        """The released numbers."""
        return self.coefficients

    @property
    def noise_stddev(self) -> float:
        """The deviation of the sum's noise at every point. A noisy count adds to it, which `error` includes."""
        return self.process.deviation * self.features.height / self.size * self.process.spread(self.damping)

    def error(self, confidence: float = 0.95, *, uniform: bool = True) -> Accuracy:
        """How far it may be from the estimate without noise: everywhere at once, or at any single point."""
        sure = check_confidence(confidence)
        miss = (1 - sure) if self.process.size is not None else (1 - sure) / 2
        reach = self.process.anywhere(miss, self.damping) if uniform else self.process.at_one_point(miss, self.damping)
        off = reach * self.features.height / self.size
        if self.process.size is None:  # the number of rows is noisy, too, and everything is divided by it
            counted = self.process.at_one_point((1 - sure) / 2) / float(self.features.constant) / self.size
            if counted >= 1:
                return Accuracy(amount=None, confidence=sure, of="every value", reason="too few rows to be counted")
            highest = float(np.abs(self.grid(64 if len(self.features.axes) > 1 else 2048)[1]).max()) + off
            off = off + highest * counted / (1 - counted)
        return Accuracy(amount=off, confidence=sure, of="every value" if uniform else "value")

    def __str__(self) -> str:
        named = " and ".join(f"{float(exactly(a.low)):g} to {float(exactly(a.high)):g}" for a in self.features.axes)
        text = f"a density from {named}, {self.error(0.95)}"
        return "; ".join([text, str(self.guarantee), *self.release.marks()])

    __repr__ = __str__

    # --- free post-processing -------------------------------------------------------------------------------

    def smooth(self, bandwidth: Number) -> Density:
        """The same release with a wider bandwidth: less noise, more blur, at no cost. For one column."""
        [axis] = self._one_axis("smooth")
        wide = float(check_positive(bandwidth, "bandwidth"))
        if wide < axis.width:
            raise InvalidArgument(
                f"A release can be made smoother, not sharper. Choose a bandwidth of at least {axis.width:g}.",
                code="density-bandwidth",
            )
        widest = axis.width if axis.widest is None else float(exactly(axis.widest))
        if wide > widest * (1 + 1e-9):
            raise InvalidArgument(
                f"This release allows a bandwidth of at most {widest:g}. To allow more, release with widest=.",
                code="density-bandwidth",
            )
        # the kernel stays as high as it was: a convolution with the Gaussian of what is missing
        damping = np.exp(-(axis.frequencies() ** 2) * (wide**2 - axis.width**2) / 2)
        return replace(self, damping=damping, smoothed=wide)

    def smooth_by_rule(self) -> Density:
        """Smoothed by Silverman's rule for what was released, and at least enough that noise does not dominate."""
        [axis] = self._one_axis("smooth_by_rule")
        middles, heights = self.projected
        shares = heights / heights.sum()
        mean = float(shares @ middles)
        spread = math.sqrt(float(shares @ (middles - mean) ** 2))
        quartiles = float(self.quantile(0.75) - self.quantile(0.25)) / 1.34
        rule = 0.9 * min(spread, quartiles or spread) * self.size**-0.2
        floor = least_bandwidth(self.process.deviation, self.size, axis.length)
        widest = axis.width if axis.widest is None else float(exactly(axis.widest))
        return self.smooth(min(max(axis.width, rule, floor), widest))

    @cached_property
    def projected(self) -> tuple[Floats, Floats]:
        """The closest density on a grid: midpoints of the cells and their heights, nonnegative and of mass 1 on the
        range.
        """
        [axis] = self._one_axis("projected")
        low, width = float(exactly(axis.low)), axis.length / _CELLS
        middles = low + (np.arange(_CELLS) + 0.5) * width
        return middles, nearest_density(np.asarray(self(middles)), width)

    def integrate(self, low: float, high: float) -> float:
        """The mass between two points, of the series as released."""
        [axis] = self._one_axis("integrate")
        room = (axis.period - axis.length) / 2
        low, high = np.clip([low, high], float(exactly(axis.low)) - room, float(exactly(axis.high)) + room).tolist()
        ends = (np.array([low, high]) - float(exactly(axis.low))) * (2 * math.pi / axis.period)
        roots, weights, orders = np.sqrt(axis.weights), self._weights, np.arange(1, axis.orders + 1)
        scale = axis.period / (2 * math.pi) / orders
        sines, cosines = np.sin(ends[:, None] * orders) * scale, -np.cos(ends[:, None] * orders) * scale
        parts = (sines[1] - sines[0]) * roots[1:] * weights[1::2] + (cosines[1] - cosines[0]) * roots[1:] * weights[
            2::2
        ]
        return float(parts.sum() + roots[0] * weights[0] * (high - low))

    def cdf(self, points: ArrayLike) -> Any:
        """The share of the projected density up to each point: from 0 to 1, never decreasing."""
        edges, shares = self._cumulated
        found = np.interp(np.asarray(points, dtype=np.float64), edges, shares)
        return float(found) if np.ndim(points) == 0 else found

    def quantile(self, shares: ArrayLike) -> Any:
        """The point below which the projected density has that share."""
        wanted = np.asarray(shares, dtype=np.float64)
        if ((wanted < 0) | (wanted > 1)).any():
            raise InvalidArgument("shares must be between 0 and 1, such as 0.5.", code="out-of-range")
        edges, known = self._cumulated
        found = np.interp(wanted, known, edges)
        return float(found) if np.ndim(shares) == 0 else found

    @cached_property
    def _cumulated(self) -> tuple[Floats, Floats]:
        [axis] = self._one_axis("cdf")
        edges = float(exactly(axis.low)) + np.arange(_CELLS + 1) * (axis.length / _CELLS)
        shares = np.concatenate([[0.0], np.cumsum(self.projected[1])]) * (axis.length / _CELLS)
        return edges, shares / shares[-1]

    def sample(self, count: int) -> Floats:
        """Synthetic draws from the projected density. With several columns, rows from the cells of a grid."""
        number = check_count(count, "count")
        uniform = public_draws.fractions(number)
        if len(self.features.axes) == 1:
            return np.asarray(self.quantile(uniform))
        axes, sides = self.features.axes, 64
        widths = [axis.length / sides for axis in axes]
        middles: list[Floats] = [
            np.asarray(float(exactly(a.low)) + (np.arange(sides) + 0.5) * w, dtype=np.float64)
            for a, w in zip(axes, widths, strict=True)
        ]
        heights = nearest_density(self._on_axes(middles).reshape(-1), math.prod(widths))
        shares = np.cumsum(heights)
        cells = np.searchsorted(shares / shares[-1], uniform, side="right").clip(0, len(shares) - 1)
        columns = []
        for middle, width, index in zip(middles, widths, np.unravel_index(cells, [sides] * len(axes)), strict=True):
            within = public_draws.fractions(number) - 0.5
            columns.append(middle[index] + within * width)
        return np.stack(columns, axis=1)

    def _one_axis(self, what: str) -> tuple[Any, ...]:
        if len(self.features.axes) != 1:
            raise InvalidArgument(
                f"{what} needs a release of one column. Release each column alone.", code="one-column-only"
            )
        return self.features.axes

    def plot(self, path: str | None = None, *, title: str | None = None) -> Any:
        """The curve with its band, or a map of two columns, with their names if it is of a table. Saved if a path is
        given.
        """
        from discreet.functions.pictures import density_plot

        return density_plot(self, path, title)


_CELLS = 4096


def nearest_density(heights: Floats, volume: float) -> Floats:
    """The closest heights of cells that are nonnegative and of mass 1."""
    return onto_simplex(heights, 1 / volume)


@closed
def density_of(
    rows: Data,
    *,
    between: Sequence[Number] | Sequence[Sequence[Number]],
    bandwidth: Number | Sequence[Number] | None,
    guarantee: Guarantee,
    size: Number | None = None,
    unit: Unit | None = None,
    ledger: Ledger | None = None,
    rows_per_person: int = 1,
    calibration: str = "tight",
    widest: Number | None = None,
) -> Density:
    """The private density of an array: a column, or rows of up to three. Use `table.density` for tables.

    `unit` is who to protect without a ledger, by default one row, added or removed. `size` is the public number of
    rows.
    """
    from discreet.door import through

    unit = unit if ledger is None else ledger.protects
    process = process_for(
        guarantee,
        between=between,
        bandwidth=bandwidth,
        size=size,
        unit=unit,
        rows_per_person=rows_per_person,
        calibration=calibration,
        widest=widest,
    )
    table = table_of(rows, len(process.features.axes))  # type: ignore[union-attr]
    promised = process.guarantee(process.sensitivity(unit, rows_per_person))
    asked = f"a density of {len(process.features.axes)} columns"  # type: ignore[union-attr]
    charged = cost_of(ledger, promised, guarantee)
    release = through(lambda: process.features.counts(table), process, charged, ledger=ledger, asked=asked)
    return Density(process, np.asarray(release.value["coefficients"]), float(release.value["size"]), release)


def process_for(
    guarantee: Guarantee,
    *,
    between: Sequence[Number] | Sequence[Sequence[Number]],
    bandwidth: Number | Sequence[Number] | None,
    size: Number | None = None,
    widest: Number | None = None,
    **others: Any,
) -> GaussianProcess:
    """The mechanism for a density on these ranges: one pair of ends, or a list of pairs.

    One column has room to be smoothed, up to `widest` (by default four bandwidths).
    """
    features = features_over(between, bandwidth, room=4, widest=widest)
    return GaussianProcess.for_guarantee(guarantee, features=features, size=size, **others)


def features_over(
    between: Any, bandwidth: Any, *, room: int | None = None, widest: Number | None = None
) -> FourierFeatures:
    """The features on these ranges: one pair of ends, or a list of pairs, and a bandwidth for all or for each.

    One column has room to be smoothed up to `widest`, by default `room` bandwidths.
    """
    try:
        pairs = [tuple(pair) for pair in ([between] if np.ndim(between) == 1 else between)]
        widths = list(islice(bandwidth, 4)) if isinstance(bandwidth, Iterable) else [bandwidth] * len(pairs)
    except (TypeError, ValueError):  # no pairs, or lists of several lengths
        pairs, widths = [], []
    if not pairs or len(widths) != len(pairs) or any(len(pair) != 2 for pair in pairs):
        raise InvalidArgument("Give one pair of ends and one bandwidth for each column.", code="wrong-shape")
    if len(pairs) > 1:
        return FourierFeatures.over(pairs, widths)
    wide = room * exactly(widths[0], "bandwidth") if widest is None and room is not None else widest
    return FourierFeatures.over(pairs, widths, widest=wide)


def least_bandwidth(deviation: float, size: float, length: float) -> float:
    """The bandwidth at which noise adds as much squared error as the sample does, from public numbers only.

    h ≥ s²L·√(4π)/(2πn), with s the noise of a sum of features for rows of n: below it noise is all that is seen.
    """
    return deviation**2 * length * math.sqrt(4 * math.pi) / (2 * math.pi * size)
