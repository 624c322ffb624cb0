"""What a table's methods draw beside sums: many quantiles, a CDF, common values, made-up rows; each one release.

Rows are read as in SQL: no more of one person than may be, and values on a public grid.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.datasets.database import Database
from discreet.errors import InvalidArgument
from discreet.exact.rational import check_delta, check_epsilon, check_positive, exactly, significant
from discreet.functions.density import Density, process_for
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Approx, Guarantee, Pure
from discreet.mechanisms.counts.factorization import MOST_POINTS
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.protocol import tidy
from discreet.mechanisms.quantiles.cumulative import CumulativeCounts
from discreet.mechanisms.selection.exponential import Exponential
from discreet.mechanisms.selection.top_k import Peel, TopK, chooser_for
from discreet.queries.counts import Count
from discreet.queries.sensitivity import Sensitivity
from discreet.queries.space import Integers
from discreet.releases import Release
from discreet.rows import doubles
from discreet.sql.identity import line_before
from discreet.sql.plan import Plan
from discreet.sql.question import Measure
from discreet.sql.running.measure import measured
from discreet.synthetic import Declared, MadeUp, Synthesis
from discreet.synthetic.table import SyntheticTable
from discreet.tables.bands import BandedQuantiles, Bands, Least, bands_for
from discreet.tables.columns import DAYS, EPOCH, as_number, columns_of, from_number, in_days, rows_of_one
from discreet.tables.distribution import Distribution


@dataclass(frozen=True)
class Drawing:
    """One release before it is made: what is read, what is drawn, what is charged, and what is made of it.

    `arguments` are all that the method was asked with beside the rows of its plan: they tell it from another one.
    `what` is for people; `before` is what version 0.1 called it, where that was no other one's name.
    """

    what: str
    database: Database
    plan: Plan
    mechanism: Any
    guarantee: Guarantee
    read: Callable[[], Any]
    finish: Callable[[Release], Release]
    method: str
    arguments: Mapping[str, Any]
    before: str | None = None


def drawing(database: Database, plan: Plan, mechanism: Any, sensitivity: Any, *, what: str, **parts: Any) -> Drawing:
    """A release under the database's ledger: stated as (ε,δ) where its rule adds nothing else."""
    guarantee = database.ledger.rule.charged(mechanism.guarantee(sensitivity), allowed(plan))
    old = line_before(plan.question)
    parts |= {"what": f"{what} {plan.question.line}", "before": None if old is None else f"{what} {old}"}
    return Drawing(database=database, plan=plan, mechanism=mechanism, guarantee=guarantee, **parts)


def allowed(plan: Plan) -> Guarantee:
    """What the release may cost."""
    epsilon, delta = plan.terms["epsilon"], check_delta(plan.terms["delta"])
    return Approx(epsilon=epsilon, delta=delta) if delta else Pure(epsilon=epsilon)


def _values(database: Database, plan: Plan) -> Any:
    """The values of the one measure, in steps of its grid."""
    assert plan.groups is not None  # nothing is grouped
    return measured(plan.question, database.engine, plan.enforced, plan.groups)[0][0]


def counted(database: Database, plan: Plan, epsilon: Any, column: str, where: str | None) -> Drawing:
    """How many values there are, as the quantiles see them, for a part of ε."""
    what = f"how many values {column} has{'' if where is None else f' WHERE {where}'}"
    unit, rows = database.schema.unit, rows_of_one(plan)
    bound = Sensitivity(rows, "L1", unit, grain=1)
    noise = Laplace(scale=tidy(significant(bound.exact / check_epsilon(epsilon), up=True)), step=1)
    return Drawing(
        what=what,
        database=database,
        plan=plan,
        mechanism=noise,
        guarantee=noise.guarantee(bound),
        read=lambda: np.array([len(_values(database, plan))]),
        finish=lambda release: release,
        method="counted",
        arguments={"column": column},
        before=what,
    )


def _released_as(kind: type[Release], release: Release, **parts: Any) -> Release:
    """The release as one of a kind that has more parts."""
    return kind(**({one.name: getattr(release, one.name) for one in fields(Release)} | parts))


# --- quantiles ----------------------------------------------------------------------------------------------


def quantiles(
    database: Database, plan: Plan, at: Sequence[Any], *, rows: float, least: Least, confidence: float, kind: str
) -> Drawing:
    """Quantiles of a column that has at least about so many values, each with the two beside it."""
    [measure] = plan.question.measures
    space, unit = Integers(measure.lowest, measure.highest), database.schema.unit
    made = bands_for(
        allowed(plan),
        space=space,
        quantiles=at,
        rows=rows,
        unit=unit,
        rows_per_person=rows_of_one(plan),
        least=least,
        confidence=confidence,
    )
    return drawing(
        database,
        plan,
        made.mechanism,
        made.mechanism.sensitivity(unit, rows_of_one(plan)),
        what=f"quantiles {', '.join(map(str, at))} of",
        method="quantiles",
        arguments={"at": tuple(at), "least": least, "confidence": confidence, "kind": kind},
        read=lambda: _values(database, plan),
        finish=lambda release: _with_bands(release, made, measure, space, confidence, kind),
    )


def _with_bands(
    release: Release, made: Bands, measure: Measure, space: Integers, confidence: float, kind: str
) -> Release:
    lines = float(measure.center) + float(measure.step) * made.read(release.value, space).astype(np.float64)
    whole = measure.value is not None and measure.value.type != "number"
    if not whole:  # a value is within half a step of its point
        lines[:, 0], lines[:, 2] = lines[:, 0] - float(measure.step) / 2, lines[:, 2] + float(measure.step) / 2
    shown = np.array([[from_number(int(v) if whole else float(v), kind) for v in line] for line in lines])
    halves = np.maximum(lines[:, 2] - lines[:, 1], lines[:, 1] - lines[:, 0])
    error = _Known(float(halves.max()), confidence, made)
    more = {"intervals": shown[:, [0, 2]], "_mechanism": error, "_sizes": {}}
    return _released_as(BandedQuantiles, release, value=shown[:, 1], **more)


@dataclass(frozen=True)
class _Known:
    """Half the widest interval, for the confidence it was asked for; the bound in ranks for any."""

    amount: float
    confidence: float
    made: Bands

    def error(self, confidence: Any) -> Accuracy:
        sure = check_confidence(confidence)
        ranks = self.made.mechanism.error(sure).amount
        if sure > self.confidence:
            why = f"the intervals are drawn with the answer, for {100 * self.confidence:g}%"
            return Accuracy(amount=None, confidence=sure, of="every value", reason=why, ranks=ranks)
        return Accuracy(amount=self.amount, confidence=sure, of="every value", ranks=ranks)


# --- cumulative counts --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Points:
    """The points of a CDF: from low to high by a step, of days where they are dates."""

    low: Any
    high: Any
    step: Any

    def __post_init__(self) -> None:
        step = check_positive(self.step, "step")
        if isinstance(self.low, datetime.date) and step.denominator != 1:
            raise InvalidArgument("step must be a whole number of days.")
        if self._width > step * (MOST_POINTS - 2):
            raise InvalidArgument(f"This grid has more than {MOST_POINTS:,} points. Take a larger step.")
        if step > exactly(self._width):  # the ends are points in any case
            object.__setattr__(self, "step", self._width)

    @property
    def _width(self) -> Any:
        return (self.high - self.low).days if isinstance(self.low, datetime.date) else self.high - self.low

    @property
    def grid(self) -> Any:
        """The points themselves; the last one is the high end, however far from the one before it."""
        count = math.ceil(round(float(self._width / exactly(self.step)), 9))
        if isinstance(self.low, datetime.date):
            days = [min(int(self.step) * n, self._width) for n in range(count + 1)]
            return np.array([self.low + datetime.timedelta(days=n) for n in days])
        return np.minimum(self.low + _plainly(self.step) * np.arange(count + 1), self.high)

    def places(self, column: str, kind: str) -> str:
        """In SQL: the number of the first point that is not below a value; of one beyond the ends, that of the end."""
        days = isinstance(self.low, datetime.date)
        low, high = ((end - EPOCH).days if days else _plainly(end) for end in (self.low, self.high))
        value = as_number(column, kind)
        steps = f"ROUND(({value} - {low!r}) / {_plainly(self.step)!r}, 9)"
        # −x, because NaN is larger than all numbers, and stays NaN
        ends = f"WHEN {value} <= {low!r} THEN 0 WHEN -{value} <= {-high!r} THEN {len(self.grid) - 1}"
        return f"CASE {ends} ELSE CAST(CEIL({steps}) AS INTEGER) END"


def _plainly(number: Any) -> Any:
    """A number as SQL has it."""
    plain = number.item() if isinstance(number, np.generic) else number
    return plain if isinstance(plain, int | float) else float(plain)


def cumulative(database: Database, plan: Plan, points: Points) -> Drawing:
    """How many values lie up to each of the points."""
    unit, grid = database.schema.unit, points.grid
    made = CumulativeCounts.for_guarantee(
        allowed(plan),
        space=Integers(0, max(1, len(grid) - 1)),
        unit=unit,
        rows_per_person=rows_of_one(plan),
        bins=max(2, len(grid)),
    )

    def finish(release: Release) -> Release:
        counts = np.asarray(release.value, dtype=np.float64)[: len(grid)]
        monotone = made.read(release.value).monotone[: len(grid)]
        shares = np.minimum(monotone / max(float(monotone[-1]), 1.0), 1.0)
        return _released_as(Distribution, release, value=shares, grid=grid, _counts=counts, _numbers=made)

    return drawing(
        database,
        plan,
        made,
        made.sensitivity(unit, rows_of_one(plan)),
        what="cumulative counts of",
        method="cumulative",
        arguments={"points": points},
        read=lambda: _values(database, plan),
        finish=finish,
    )


# --- made-up rows -------------------------------------------------------------------------------------------


def synthetic(
    database: Database, plan: Plan, columns: Mapping[str, Any], *, kinds: Mapping[str, str], **options: Any
) -> Drawing:
    """Rows of nobody whose marginals are close to those of the true rows."""
    if not check_delta(plan.terms["delta"]):
        raise InvalidArgument("synthesize needs a delta, such as delta=1e-6.")
    days = {name for name in columns if kinds[name] in ("date", "timestamp") and isinstance(columns[name], tuple)}
    read_as = {name: kinds[name] if isinstance(columns[name], tuple) else "listed" for name in columns}
    whole = days | {name for name in columns if kinds[name] == "integer"}
    told = {name: in_days(what) if name in days else what for name, what in columns.items()}
    declared = Declared(told, whole=whole)
    sensitivity = Count().sensitivity(database.schema.unit, rows_of_one(plan))
    made = Synthesis.for_guarantee(
        allowed(plan), domain=declared.domain, sensitivity=sensitivity, ordered=declared.ordered, **options
    )

    def finish(release: Release) -> Release:
        import pyarrow as pa

        rows = MadeUp(release.value, declared)
        shown = {n: [from_number(v, "date") for v in c] if n in days else c for n, c in rows.columns.items()}
        arrow = {"integer": pa.int64(), "number": pa.float64(), "text": pa.string(), "boolean": pa.bool_()}
        arrow |= {"date": pa.date32(), "timestamp": pa.timestamp("us")}
        typed = {n: pa.array(c, pa.date32() if n in days else arrow.get(kinds[n])) for n, c in shown.items()}
        return _released_as(SyntheticTable, release, value=pa.table(typed), _made=rows)

    return drawing(
        database,
        plan,
        made,
        sensitivity,
        what=f"made-up rows of {', '.join(columns)} from",
        method="synthetic",
        arguments={"columns": dict(columns), "kinds": dict(kinds), **_without_progress(options)},
        read=lambda: declared.codes(columns_of(database, plan, list(columns), read_as)),
        finish=finish,
    )


def _without_progress(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "progress"}


def density(
    database: Database, plan: Plan, columns: Sequence[str], ranges: Sequence[Any], bandwidth: Any, kinds: Sequence[str]
) -> Drawing:
    """The density of up to three columns, as one function; without a bandwidth, one by rule, found in the release."""
    unit, rows = database.schema.unit, rows_of_one(plan)
    ends = [in_days(pair) if kind in DAYS else pair for pair, kind in zip(ranges, kinds, strict=True)]
    if bandwidth is None and len(columns) > 1:
        raise InvalidArgument("Say the bandwidth, one for each column: only one column has a rule for it.")
    width = Fraction(exactly(ends[0][1]) - exactly(ends[0][0])) / 100 if bandwidth is None else bandwidth
    widest = 25 * width if bandwidth is None else None
    process = process_for(allowed(plan), between=ends, bandwidth=width, widest=widest, unit=unit, rows_per_person=rows)

    def read() -> Any:
        found = columns_of(database, plan, list(columns), dict(zip(columns, kinds, strict=True)))
        return process.features.counts(np.stack([doubles(found[name]) for name in columns], axis=1))

    def finish(release: Release) -> Any:
        drawn = release.value
        made = Density(process, np.asarray(drawn["coefficients"]), float(drawn["size"]), release)
        return made.smooth_by_rule() if bandwidth is None else made

    return drawing(
        database,
        plan,
        process,
        process.sensitivity(unit, rows),
        what=f"density of {', '.join(columns)} from",
        method="density",
        arguments={"columns": list(columns), "ranges": list(ranges), "bandwidth": bandwidth, "kinds": list(kinds)},
        read=read,
        finish=finish,
    )


# --- choices ------------------------------------------------------------------------------------------------


def votes(database: Database, plan: Plan, k: int) -> Drawing:
    """The choice of values by the rows that have them, of which one person has a few."""
    cells, unit = plan.groups, database.schema.unit
    if cells is None:
        raise InvalidArgument("The most common value is one of those that are declared: give choices=.")
    listed = tuple(key for (key,) in cells.keys())  # noqa: SIM118 - not a dict
    added = unit.neighbors == "add_or_remove"
    votes = 1 if plan.bounds is None else plan.bounds.per_group
    bound = Sensitivity(votes, "Linf", unit, len(listed), grain=1, monotone=added)
    goal, rule = allowed(plan), database.ledger.rule
    limit = getattr(rule.limit, "epsilon", None)  # how often so much may be asked; often, where no ε is named
    times = 100 if limit is None else max(1, min(1000, int(exactly(limit) / exactly(plan.terms["epsilon"]))))
    sharper = chooser_for(rule, times=times)
    choose: Any
    if k == 1:
        choose = sharper.for_guarantee(goal, sensitivity=bound, choices=listed)
    else:
        peel: Peel = "exponential" if sharper is Exponential else "permute and flip"
        choose = TopK.for_guarantee(goal, k=k, sensitivity=bound, choices=listed, peel=peel)
    return drawing(
        database,
        plan,
        choose,
        bound,
        what=f"{'most common' if k == 1 else f'{k} most common'} of",
        method="votes",
        arguments={"k": k, "choices": listed},
        read=lambda: measured(plan.question, database.engine, plan.enforced, cells)[0],
        finish=lambda release: release if k == 1 else replace(release, value=list(release.value)),
    )
