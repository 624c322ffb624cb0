"""From noisy measures to the columns of an answer, each with an interval that contains the true value.

If a column uses several measures, each gets a part of the failure probability, so that all intervals hold at once with
the requested confidence. If no interval can be computed, the answer has none and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.rows.arrow import floats_of
from discreet.rows.key_columns import KeyColumns
from discreet.sql.estimates.shown import Estimated
from discreet.sql.expressions import Call, Const, Expr, Ref
from discreet.sql.pricing.price import Price
from discreet.sql.question import Aggregate, Measure, Question
from discreet.sql.reading.values.ranges import range_of
from discreet.sql.running.levels import LeveledLoss, LeveledRows
from discreet.sql.running.loss import Loss
from discreet.sql.running.pairs import PAIRS, band_of_pair, value_of_pair
from discreet.sql.schema import Found

Floats = NDArray[np.float64]
_TAILS = np.exp(-np.linspace(0.01, 14.0, 29))
"""The probabilities for which the quantiles of a noise are computed; between them it is interpolated."""
Band = tuple[Floats, Floats]
Uniform = Callable[[tuple[int, ...]], Floats]
"""Makes an array of numbers that are spread evenly between 0 and 1."""


class Columns:
    """The noisy measures of all groups, and the columns computed from them. `loss` is what clipping took off, if people
    were clipped. `shown` has the rows of several levels, if there are any, and `estimated` the errors of numbers that
    are estimated from several answers. Without a price, nothing is known of errors.
    """

    def __init__(
        self,
        question: Question,
        price: Price | None,
        noisy: Sequence[Any],
        keys: Sequence[tuple[Any, ...]],
        loss: Loss | None = None,
        shown: LeveledRows | None = None,
        estimated: Estimated | None = None,
    ) -> None:
        self.question, self._price, self.loss, self.shown = question, price, loss, shown
        self.estimated = estimated
        self.keys = KeyColumns.of(keys, [key.expr.type for key in question.keys])
        self.noisy: list[Floats] = [
            np.asarray(values, dtype=np.float64).reshape((-1, 3) if measure.kind == "quantile" else (-1,))
            for measure, values in zip(question.measures, noisy, strict=True)
        ]
        self._by_field = {aggregate.field.id: aggregate for aggregate in question.aggregates}

    @classmethod
    def without_groups(cls, question: Question, price: Price | None) -> Columns:
        """The columns of an answer that has no groups."""
        noisy = [np.zeros((0, 3) if measure.kind == "quantile" else 0) for measure in question.measures]
        return cls(question, price, noisy, [], shown=LeveledRows(question, [], []) if question.levels else None)

    @property
    def price(self) -> Price:
        """The noise of every measure, and what was paid for all of them."""
        assert self._price is not None
        return self._price

    # --- values -------------------------------------------------------------------------------------------

    def value(self, aggregate: Aggregate) -> Floats:
        """The best estimate: exact measures would give the exact aggregate."""
        measures = [self.question.measures[part] for part in aggregate.parts]
        numbers = [self.noisy[part] for part in aggregate.parts]
        return combine(aggregate, measures, numbers)

    # --- intervals ----------------------------------------------------------------------------------------

    def band(self, expr: Expr, confidence: float) -> Band | None:
        """The interval that contains the true value with this confidence, for each group. None if there is none."""
        parts = self.parts_of(expr)
        each = 1 - (1 - confidence) / max(1, len(parts)) / (max(1, len(self.keys)) if self.is_chosen_by(expr) else 1)
        with np.errstate(all="ignore"):  # an end that is NaN is no error, and is reported as missing
            return self._band(expr, each)

    def parts_of(self, *exprs: Expr) -> set[int]:
        """The measures that these expressions use."""
        fields = {field.id for expr in exprs for field in expr.fields()} & self._by_field.keys()
        return {part for field in fields for part in self._by_field[field].parts}

    def is_drawn_for(self, expr: Expr, confidence: float) -> bool:
        """Whether the noise in an expression can be drawn again: it has no chosen value, and the intervals of its
        quantiles were drawn for at least this confidence.
        """
        chosen = [part for part in self.parts_of(expr) if self.question.measures[part].is_chosen]
        return all(
            self.question.measures[part].kind == "quantile"
            and confidence <= self.price.parts[part].mechanism.confidence
            for part in chosen
        )

    def is_chosen_by(self, expr: Expr) -> bool:
        """Whether the noise in an expression decides which rows are shown. Then the intervals of all groups must hold
        at once: the rows with the largest noise are the first to be chosen.
        """
        return bool(self.parts_of(expr) & self.parts_of(*self.question.chosen_by))

    def _band(self, expr: Expr, each: float) -> Band | None:
        match expr:
            case Const(value=bool() | int() | float() as value):
                return self._constant(float(value))
            case Ref(field=field) if field.id in self._by_field:
                return self._aggregate_band(self._by_field[field.id], each)
            case Ref(field=field) if field in self.question.public_fields[len(self.question.key_fields) :]:
                assert self.shown is not None
                place = self.question.public_fields.index(field) - len(self.question.key_fields)
                values = self.shown.summed[place].astype(np.float64)
                return values, values
            case Ref(field=field) if field.type in ("integer", "number"):
                place = [f.id for f in self.question.key_fields].index(field.id)
                values = floats_of(self.keys.columns[place])
                return values, values
            case Call(op=op, args=args) if op in _BANDS:
                bands = [self._band(arg, each) for arg in args]
                known = [band for band in bands if band is not None]
                return _BANDS[op](*known) if len(known) == len(bands) else None
        return None

    def _constant(self, value: float) -> Band:
        filled = np.full(len(self.keys), value)
        return filled, filled

    def _aggregate_band(self, aggregate: Aggregate, each: float) -> Band | None:
        measures = [self.question.measures[part] for part in aggregate.parts]
        bands = [self._measure_band(part, each) for part in aggregate.parts]
        if any(band is None for band in bands):
            return None
        band = _band_of(aggregate, measures, [band for band in bands if band is not None])
        return _widen_by_rounding(
            band, float(measures[-1].center), whole=aggregate.kind in ("count", "sum", "quantile")
        )

    def _measure_band(self, part: int, each: float) -> Band | None:
        measure, noisy = self.question.measures[part], self.noisy[part]
        if measure.kind == "mode":
            return None
        if measure.kind == "quantile":
            return self._drawn_band(part, each)
        offsets = self._offsets(part, each)
        if offsets is None:
            return None
        least = -np.inf if measure.kind == "sum" and measure.power == 1 else 0.0
        return np.maximum(noisy - offsets[0], least), np.maximum(noisy + offsets[1], least)

    def _offsets(self, part: int, confidence: float) -> tuple[Any, Any] | None:
        """How far below and how far above its noisy number the truth of a measure may be."""
        measure = self.question.measures[part]
        if self.estimated is not None:
            return (self.estimated.error(part, confidence),) * 2
        if self.shown is not None and not len(self.keys):
            return np.zeros(0), np.zeros(0)
        if self.shown is not None:
            if self.is_unknown(measure):
                return None
            unknown, off = self.shown.unknown(part), self.shown.off(part)
            noise = (
                (self.shown.error(part, confidence),) * 2 if self.loss is None else self.loss.interval(part, confidence)
            )
            return unknown * (noise[0] + off), unknown * (noise[1] + off)
        if self.loss is None or not measure.is_added:
            amount = self.price.parts[part].error(confidence).amount
            return None if amount is None else (amount, amount)
        return None if self.is_unknown(measure) else self.loss.interval(part, confidence)

    def is_unknown(self, measure: Measure) -> bool:
        """Whether too few people are in it to say what was cut off: their limit is probably far too low."""
        return measure.kind in ("count", "sum") and self.loss is not None and self.loss.is_mostly_noise()

    def redrawn(self, part: int, draws: int, uniform: Uniform) -> Floats | None:
        """What the truth of a measure may be, as often as the law of the noise says: a row for each draw. None if its
        noise is not known.
        """
        noisy, size = self.noisy[part], (draws, len(self.keys))
        if self.estimated is not None:
            noise = self.estimated.redrawn(part, draws, uniform)
            return None if noise is None else np.asarray(noisy - noise)
        if self.shown is not None:
            return self._redrawn_at_levels(part, draws, uniform) if len(self.keys) else np.zeros(size)
        if self.question.measures[part].kind == "mode":
            return np.broadcast_to(noisy, size)  # right or wrong: no number describes its noise
        if self.question.measures[part].kind == "quantile":
            band = self._drawn_band(part, 0)
            if band is None or self._isopened(part, band):
                return None
            from scipy.special import ndtri  # it takes long to import, and few questions need it

            reach = float(ndtri((1 + float(self.price.parts[part].mechanism.confidence)) / 2))
            moved = ndtri(uniform(size)) / reach
            middle = noisy[:, 1]
            points = middle + np.where(moved < 0, moved * (middle - band[0]), moved * (band[1] - middle))
            return np.stack([points] * 3, axis=-1)
        offsets = [self._offsets(part, 1 - tail) for tail in _TAILS]
        known = [(np.broadcast_to(b, size[1:]), np.broadcast_to(a, size[1:])) for b, a in (o for o in offsets if o)]
        if len(known) < len(offsets):
            return None
        place = np.interp(-np.log(uniform(size)), -np.log(_TAILS), np.arange(len(_TAILS)))
        lower = np.minimum(place.astype(int), len(_TAILS) - 2)
        groups, up = np.arange(size[1]), uniform(size) < 0.5
        ends = [np.stack([known[n][side] for n in range(len(known))]) for side in (0, 1)]
        below, above = (
            end[lower, groups] + (place - lower) * (end[lower + 1, groups] - end[lower, groups]) for end in ends
        )
        return np.asarray(np.where(up, noisy + above, noisy - below))

    def _redrawn_at_levels(self, part: int, draws: int, uniform: Uniform) -> Floats | None:
        """The same for several levels, which have their noise in common. What people lose to clipping is between
        nothing and its estimate.
        """
        assert self.shown is not None
        made = ((part, Fraction(1)),) if self.loss is None else self.loss.clipping.basis.made_of[part]
        moved = np.zeros((draws, len(self.keys)))
        for place, factor in made:
            noise, size = self.shown.redrawn(place, draws, uniform), float(factor)
            if noise is None:
                return None
            if isinstance(self.loss, LeveledLoss):
                size *= float(self.loss.clip.units[place])
                noise = noise - (self.loss.redrawn(place, draws, uniform) if self.loss.clip.above else 0.0)
            moved += size * noise
        return np.asarray(self.noisy[part] - self.shown.unknown(part) * moved)

    def clipped(self, expr: Expr) -> float | None:
        """The estimated part of a count or a sum that is lost to clipping. None if nothing was clipped, and for other
        columns: how far an average is off does not follow from what its sum and its count lost.
        """
        used = self._by_field.get(expr.field.id) if isinstance(expr, Ref) else None
        if self.loss is None or used is None or used.kind not in ("count", "sum"):
            return None
        return self.loss.share(used.parts[0]) if self.question.measures[used.parts[0]].is_added else None

    def _isopened(self, part: int, band: Band) -> bool:
        """Whether an interval of a quantile has no end."""
        measure = self.question.measures[part]
        ends = opened(band, band, measure) if has_found_range(measure) else band
        return not bool(np.isfinite(ends).all())

    def _drawn_band(self, part: int, each: float) -> Band | None:
        """The interval that was drawn with a quantile. It holds only with the confidence for which it was drawn."""
        if each > self.price.parts[part].mechanism.confidence:
            return None
        return self.noisy[part][:, 0], self.noisy[part][:, 2]


def _ends(measure: Measure) -> tuple[float, float]:
    """The declared range of a measure's values."""
    center, step = float(measure.center), float(measure.step)
    return center + step * measure.lowest, center + step * measure.highest


def combine(aggregate: Aggregate, measures: list[Measure], numbers: list[Floats]) -> Floats:
    """An aggregate, computed from its measures in steps."""
    if aggregate.kind in PAIRS:
        return value_of_pair(aggregate, measures, numbers)
    match aggregate.kind:
        case "count":
            return numbers[0]
        case "sum":
            return numbers[0] * float(measures[0].step)
        case "quantile":
            return float(measures[0].center) + numbers[0][:, 1] * float(measures[0].step)
        case "mode":
            return float(measures[0].center) + numbers[0]
    count = np.maximum(numbers[0], 1.0)
    moved = numbers[1] * float(measures[1].step) / count
    if aggregate.kind == "mean":
        return np.clip(moved + float(measures[1].center), *_ends(measures[1]))
    squares = numbers[2] * float(measures[2].step) ** 2 / count
    spread = np.maximum(squares - moved**2, 0.0)
    if aggregate.sample:
        spread = spread * count / np.maximum(count - 1, 1.0)
    low, high = _ends(measures[1])
    spread = np.minimum(spread, (high - low) ** 2 / 2)
    return np.sqrt(spread) if aggregate.kind == "stddev" else spread


def _band_of(aggregate: Aggregate, measures: list[Measure], bands: list[Band]) -> Band:
    if aggregate.kind in PAIRS:
        return band_of_pair(aggregate, measures, bands)
    match aggregate.kind:
        case "count":
            return bands[0]
        case "sum":
            return _scale(bands[0], float(measures[0].step))
        case "quantile":
            steps, center = _scale(bands[0], float(measures[0].step)), float(measures[0].center)
            exact = measures[0].step == 1 and measures[0].value is not None and measures[0].value.type != "number"
            off = 0.0 if exact else float(measures[0].step) / 2  # a value is within half a step of its point
            band = _clip((steps[0] + center - off, steps[1] + center + off), *_ends(measures[0]))
            return opened(band, bands[0], measures[0]) if has_found_range(measures[0]) else band
    count = (np.maximum(bands[0][0], 1.0), np.maximum(bands[0][1], 1.0))
    low, high = _ends(measures[1])
    center = float(measures[1].center)
    moved = _clip(_over(_scale(bands[1], float(measures[1].step)), count), low - center, high - center)
    if aggregate.kind == "mean":
        return moved[0] + center, moved[1] + center
    reach = max(center - low, high - center)
    squares = _clip(_over(_scale(bands[2], float(measures[2].step) ** 2), count), 0.0, reach**2)
    square = _square(moved)
    spread = (np.maximum(squares[0] - square[1], 0.0), np.maximum(squares[1] - square[0], 0.0))
    if aggregate.sample:
        # n/(n−1) decreases with n; with fewer than two rows there is no variance, and any answer is fine
        ratios = [n / np.maximum(n - 1, 1.0) for n in count]
        spread = (spread[0] * ratios[1], spread[1] * np.maximum(ratios[0], 1.0))
        spread = (spread[0], np.where(count[0] < 2, (high - low) ** 2 / 2, spread[1]))
    spread = (spread[0], np.minimum(spread[1], (high - low) ** 2 / 2))
    return (np.sqrt(spread[0]), np.sqrt(spread[1])) if aggregate.kind == "stddev" else spread


def has_found_range(measure: Measure) -> bool:
    """Whether a quantile is chosen from a range that was found, and not declared."""
    assert measure.value is not None
    return range_of(measure.value) is None or any(isinstance(one.between, Found) for one in measure.value.fields())


def opened(band: Band, steps: Band, measure: Measure) -> Band:
    """The band without the ends of the range. What lies beyond a range that was found was moved to its ends: who is
    there may be anywhere beyond.
    """
    below, above = steps[0] <= measure.lowest, steps[1] >= measure.highest
    return np.where(below, -np.inf, band[0]), np.where(above, np.inf, band[1])


def _widen_by_rounding(band: Band, center: float, *, whole: bool) -> Band:
    """The band, widened by the rounding error of floats at its ends and in the value. Multiples of a power of two are
    exact up to 2^53 steps.
    """
    ends = (np.where(np.isfinite(end), np.abs(end), 0.0) for end in band)  # without one end, the other is known
    size = np.maximum(np.maximum(*ends), abs(center))
    off = np.where((size < _EXACT) & whole, 0.0, _ROUNDINGS * np.spacing(size))
    return band[0] - off, band[1] + off


_EXACT = 2.0**53
_ROUNDINGS = 4
"""A mean is rounded when its sum is divided and when its center is added, and so is each end of its band."""


def _scale(band: Band, factor: float) -> Band:
    return band[0] * factor, band[1] * factor


def _over(band: Band, count: Band) -> Band:
    """A quotient by a number that is greater than 0."""
    corners = [end / n for end in band for n in count]
    return np.minimum.reduce(corners), np.maximum.reduce(corners)


def _clip(band: Band, low: float, high: float) -> Band:
    return np.clip(band[0], low, high), np.clip(band[1], low, high)


def _square(band: Band) -> Band:
    ends = band[0] ** 2, band[1] ** 2
    inside = (band[0] <= 0) & (band[1] >= 0)
    return np.where(inside, 0.0, np.minimum(*ends)), np.maximum(*ends)


def _product(first: Band, second: Band) -> Band:
    corners = [a * b for a in first for b in second]
    return np.minimum.reduce(corners), np.maximum.reduce(corners)


def _quotient(first: Band, second: Band) -> Band:
    around_zero = (second[0] <= 0) & (second[1] >= 0)
    with np.errstate(all="ignore"):
        corners = [a / b for a in first for b in second]
    low, high = np.minimum.reduce(corners), np.maximum.reduce(corners)
    return np.where(around_zero, -np.inf, low), np.where(around_zero, np.inf, high)


def _magnitude(band: Band) -> Band:
    ends = np.abs(band[0]), np.abs(band[1])
    inside = (band[0] <= 0) & (band[1] >= 0)
    return np.where(inside, 0.0, np.minimum(*ends)), np.maximum(*ends)


def _round(band: Band, digits: Band | None = None) -> Band:
    unit = 1.0 if digits is None else 10.0 ** -digits[0]
    return band[0] - unit / 2, band[1] + unit / 2


_BANDS: dict[str, Any] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "subtract": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "multiply": _product,
    "divide": _quotient,
    "negate": lambda a: (-a[1], -a[0]),
    "abs": _magnitude,
    "round": _round,
    "cast": lambda a: a,
    "coalesce": lambda *bands: bands[0],
    "nullif": lambda a, b: a,
    "least": lambda *bands: (np.minimum.reduce([b[0] for b in bands]), np.minimum.reduce([b[1] for b in bands])),
    "greatest": lambda *bands: (np.maximum.reduce([b[0] for b in bands]), np.maximum.reduce([b[1] for b in bands])),
    "sqrt": lambda a: (np.sqrt(np.maximum(a[0], 0.0)), np.sqrt(np.maximum(a[1], 0.0))),
}
