"""What table methods compute from rows: many quantiles, a CDF, densities and synthetic rows.

Each is one release. Rows are read as in SQL: the bounds limit the rows of each person, and values lie on a public grid.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_delta, check_epsilon, check_positive, exactly, significant
from discreet.functions.density import Density, process_for
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.mechanisms.counts.factorization import MOST_POINTS
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.protocol import tidy
from discreet.mechanisms.quantiles.cumulative import CumulativeCounts
from discreet.queries.counts import Count
from discreet.queries.sensitivity import Sensitivity
from discreet.queries.space import Integers
from discreet.releases import Release
from discreet.rows import doubles
from discreet.sql.question import Measure
from discreet.sql.running.intervals import has_found_range, opened
from discreet.synthetic import Declared, Synthesis, SyntheticSample
from discreet.synthetic.table import SyntheticTable
from discreet.tables.bands import BandedQuantiles, Bands, Least, bands_for, ending
from discreet.tables.counted_first import Values
from discreet.tables.days import DAYS, EPOCH, as_number, from_number, in_days
from discreet.tables.distribution import Distribution
from discreet.tables.offer import Drawing, TableRows, convert_release, in_words

# --- quantiles ----------------------------------------------------------------------------------------------


def count_values(rows: TableRows, values: Values, epsilon: Number, column: str) -> Drawing[Release]:
    """How many values of a column its quantiles use, for a part of ε."""
    bound = Sensitivity(rows.of_one, "L1", rows.unit, grain=1)
    noise = Laplace(scale=tidy(significant(bound.exact / check_epsilon(epsilon), up=True)), step=1)
    old_text = f"how many values {column} has{'' if rows.where is None else f' WHERE {rows.where}'}"
    return Drawing(
        planner=rows.planner,
        plan=rows.plan,
        asked=in_words(f"how many values {column} has", rows.where),
        old_text=old_text,
        method="counted",
        arguments={"column": column},
        mechanism=noise,
        guarantee=noise.guarantee(bound),
        read=lambda: np.array([len(values())]),
        finish=lambda release: release,
    )


def quantiles(
    rows: TableRows,
    values: Values,
    column: str,
    at: Sequence[Any],
    *,
    size: float,
    least: Least,
    confidence: float,
    kind: str,
) -> Drawing[BandedQuantiles]:
    """Quantiles of a column that has at least about `size` values, each with the ends of its interval."""
    measure, unit = rows.plan.rows.grid, rows.unit
    space = Integers(measure.lowest, measure.highest)
    made = bands_for(
        rows.allowed,
        space=space,
        quantiles=at,
        rows=size,
        unit=unit,
        rows_per_person=rows.of_one,
        least=least,
        confidence=confidence,
    )
    listed = ", ".join(map(str, at))
    return rows.drawing(
        made.mechanism,
        made.mechanism.sensitivity(unit, rows.of_one),
        asked=f"quantiles {listed} of {column}",
        old_text=f"quantiles {listed} of",
        method="quantiles",
        arguments={"at": tuple(at), "least": least, "confidence": confidence, "kind": kind},
        read=values,
        finish=lambda release: _with_bands(release, made, measure, space, confidence, kind),
    )


def _with_bands(release: Release, made: Bands, measure: Measure, space: Integers, confidence: float, kind: str) -> Any:
    steps = made.read(release.value, space)
    lines = float(measure.center) + float(measure.step) * steps.astype(np.float64)
    whole = measure.value is not None and measure.value.type != "number"
    if not whole or measure.step != 1:  # a value is within half a step of its point
        lines[:, 0], lines[:, 2] = lines[:, 0] - float(measure.step) / 2, lines[:, 2] + float(measure.step) / 2
    if has_found_range(measure):
        lines[:, 0], lines[:, 2] = opened((lines[:, 0], lines[:, 2]), (steps[:, 0], steps[:, 2]), measure)
    low, value, high = ([ending(v, kind, whole=whole) for v in column] for column in lines.T)
    halves = np.maximum(lines[:, 2] - lines[:, 1], lines[:, 1] - lines[:, 0])
    widest = float(halves.max())
    error = _Known(widest if math.isfinite(widest) else None, confidence, made)
    more = {"intervals": np.array([low, high]).T, "_mechanism": error, "_sizes": {}}
    return convert_release(BandedQuantiles, release, value=np.array(value), **more)


@dataclass(frozen=True)
class _Known:
    """Half the widest interval, for the confidence that was requested. The bound in ranks is known for any
    confidence.
    """

    amount: float | None
    confidence: float
    made: Bands

    def error(self, confidence: Any) -> Accuracy:
        sure = check_confidence(confidence)
        ranks = self.made.mechanism.error(sure).amount
        if sure > self.confidence:
            why = f"the intervals are drawn with the answer, for {100 * self.confidence:g}%"
            return Accuracy(amount=None, confidence=sure, of="every value", reason=why, ranks=ranks)
        why = "" if self.amount is not None else "the range was found, and an interval may have no end"
        return Accuracy(amount=self.amount, confidence=sure, of="every value", reason=why, ranks=ranks)


# --- cumulative counts --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Points:
    """The points of a CDF, from low to high in equal steps. For dates the step is a number of days."""

    low: Any
    high: Any
    step: Any

    def __post_init__(self) -> None:
        step = check_positive(self.step, "step")
        if isinstance(self.low, datetime.date) and step.denominator != 1:
            raise InvalidArgument("step must be a whole number of days.", code="not-whole")
        if self._width > step * (MOST_POINTS - 2):
            raise InvalidArgument(
                f"This grid has more than {MOST_POINTS:,} points. Choose a larger step.", code="too-large"
            )
        if step > exactly(self._width):  # both ends are always points
            object.__setattr__(self, "step", self._width)

    @property
    def _width(self) -> Any:
        return (self.high - self.low).days if isinstance(self.low, datetime.date) else self.high - self.low

    @property
    def grid(self) -> Any:
        """The points themselves. The last one is the high end, even if the last step is shorter."""
        count = math.ceil(round(float(self._width / exactly(self.step)), 9))
        if isinstance(self.low, datetime.date):
            days = [min(int(self.step) * n, self._width) for n in range(count + 1)]
            return np.array([self.low + datetime.timedelta(days=n) for n in days])
        return np.minimum(self.low + _plainly(self.step) * np.arange(count + 1), self.high)

    def places(self, column: str, kind: str) -> str:
        """In SQL: the index of the first point that is not below a value. A value outside the range has the index of
        that end.
        """
        days = isinstance(self.low, datetime.date)
        low, high = ((end - EPOCH).days if days else _plainly(end) for end in (self.low, self.high))
        value = as_number(column, kind)
        steps = f"ROUND(({value} - {low!r}) / {_plainly(self.step)!r}, 9)"
        # −x, because NaN is larger than all numbers, and stays NaN
        ends = f"WHEN {value} <= {low!r} THEN 0 WHEN -{value} <= {-high!r} THEN {len(self.grid) - 1}"
        return f"CASE {ends} ELSE CAST(CEIL({steps}) AS INTEGER) END"


def _plainly(number: Any) -> Any:
    """A number as SQL writes it."""
    plain = number.item() if isinstance(number, np.generic) else number
    return plain if isinstance(plain, int | float) else float(plain)


def cumulative(rows: TableRows, column: str, points: Points) -> Drawing[Distribution]:
    """How many values lie at or below each of the points."""
    unit, grid = rows.unit, points.grid
    made = CumulativeCounts.for_guarantee(
        rows.allowed,
        space=Integers(0, max(1, len(grid) - 1)),
        unit=unit,
        rows_per_person=rows.of_one,
        bins=max(2, len(grid)),
    )

    def finish(release: Release) -> Any:
        counts = np.asarray(release.value, dtype=np.float64)[: len(grid)]
        monotone = made.read(release.value).monotone[: len(grid)]
        shares = np.minimum(monotone / max(float(monotone[-1]), 1.0), 1.0)
        return convert_release(Distribution, release, value=shares, grid=grid, _counts=counts, _numbers=made)

    return rows.drawing(
        made,
        made.sensitivity(unit, rows.of_one),
        asked=f"cumulative counts of {column}",
        old_text="cumulative counts of",
        method="cumulative",
        arguments={"points": points},
        read=rows.plan.rows.values,
        finish=finish,
    )


# --- synthetic rows -----------------------------------------------------------------------------------------


def synthetic(
    taken: TableRows, columns: Mapping[str, Any], *, kinds: Mapping[str, str], **options: Any
) -> Drawing[SyntheticTable]:
    """Synthetic rows with marginals close to those of the true rows."""
    if not check_delta(taken.plan.terms.delta):
        raise InvalidArgument("synthesize needs a delta, such as delta=1e-6.", code="needs-delta")
    declared, read_as = declare(columns, kinds)
    sensitivity = Count().sensitivity(taken.unit, taken.of_one)
    made = Synthesis.for_guarantee(
        taken.allowed, domain=declared.domain, sensitivity=sensitivity, ordered=declared.ordered, **options
    )

    def finish(release: Release) -> Any:
        drawn = SyntheticSample(release.value, declared)
        table = arrow_of(drawn, columns, kinds)
        return convert_release(SyntheticTable, release, value=table, _made=drawn)

    return taken.drawing(
        made,
        sensitivity,
        asked=f"synthetic rows of {', '.join(columns)}",
        old_text=f"made-up rows of {', '.join(columns)} from",
        method="synthetic",
        arguments={"columns": dict(columns), "kinds": dict(kinds), **_without_progress(options)},
        read=lambda: declared.codes(taken.plan.rows.columns(list(columns), read_as)),
        finish=finish,
    )


def declare(columns: Mapping[str, Any], kinds: Mapping[str, str], bins: int = 100) -> tuple[Declared, dict[str, str]]:
    """The columns of a synthetic table, and how each is read."""
    days = _days(columns, kinds)
    whole = days | {name for name in columns if kinds[name] == "integer"}
    described = {name: in_days(what) if name in days else what for name, what in columns.items()}
    read_as = {name: kinds[name] if isinstance(columns[name], tuple) else "listed" for name in columns}
    return Declared(described, bins=bins, whole=whole), read_as


def arrow_of(drawn: SyntheticSample, columns: Mapping[str, Any], kinds: Mapping[str, str]) -> Any:
    """Synthetic rows as an Arrow table with the types of the true columns."""
    import pyarrow as pa

    days = _days(columns, kinds)
    shown = {n: [from_number(v, "date") for v in c] if n in days else c for n, c in drawn.columns.items()}
    arrow = {"integer": pa.int64(), "number": pa.float64(), "text": pa.string(), "boolean": pa.bool_()}
    arrow |= {"date": pa.date32(), "timestamp": pa.timestamp("us")}
    return pa.table({n: pa.array(c, pa.date32() if n in days else arrow.get(kinds[n])) for n, c in shown.items()})


def _days(columns: Mapping[str, Any], kinds: Mapping[str, str]) -> set[str]:
    return {name for name in columns if kinds[name] in ("date", "timestamp") and isinstance(columns[name], tuple)}


def _without_progress(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "progress"}


def density(
    rows: TableRows, columns: Sequence[str], ranges: Sequence[Any], bandwidth: Any, kinds: Sequence[str]
) -> Drawing[Density]:
    """The density of up to three columns, as one function. If no bandwidth is given, a rule chooses one within the
    release.
    """
    unit, most = rows.unit, rows.of_one
    ends = [in_days(pair) if kind in DAYS else pair for pair, kind in zip(ranges, kinds, strict=True)]
    if bandwidth is None and len(columns) > 1:
        raise InvalidArgument(
            "Give bandwidth=, one for each column: only one column has a rule for it.", code="bandwidth-missing"
        )
    width = Fraction(exactly(ends[0][1]) - exactly(ends[0][0])) / 100 if bandwidth is None else bandwidth
    widest = 25 * width if bandwidth is None else None
    process = process_for(rows.allowed, between=ends, bandwidth=width, widest=widest, unit=unit, rows_per_person=most)

    def read() -> Any:
        found = rows.plan.rows.columns(list(columns), dict(zip(columns, kinds, strict=True)))
        return process.features.counts(np.stack([doubles(found[name]) for name in columns], axis=1))

    def finish(release: Release) -> Any:
        drawn = release.value
        made = Density(process, np.asarray(drawn["coefficients"]), float(drawn["size"]), release, names=tuple(columns))
        return made.smooth_by_rule() if bandwidth is None else made

    return rows.drawing(
        process,
        process.sensitivity(unit, most),
        asked=f"density of {', '.join(columns)}",
        old_text=f"density of {', '.join(columns)} from",
        method="density",
        arguments={"columns": list(columns), "ranges": list(ranges), "bandwidth": bandwidth, "kinds": list(kinds)},
        read=read,
        finish=finish,
    )
