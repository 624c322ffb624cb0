"""Aggregates: the measures each one is computed from, their grid and their range."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, NoReturn

from sqlglot import exp

from discreet.exact.rational import power_of_two_below
from discreet.sql.expressions import Const, Expr, Field, Origin, Range, Ref, call, has_number, present, with_fields
from discreet.sql.pricing.relation import DEFAULTS
from discreet.sql.question import OPEN, Aggregate, AggregateKind, Measure, PairKind
from discreet.sql.reading.parse import Text, span_of, unread_arguments
from discreet.sql.reading.scope import Scope
from discreet.sql.reading.translate import has_digits
from discreet.sql.reading.values.domains import Work, declared_values, with_other
from discreet.sql.reading.values.literals import literal
from discreet.sql.reading.values.ranges import range_of
from discreet.sql.schema import NARROWEST, ORDERED, Schema, Type

_FINENESS = {1: 2**30, 2: 2**18}
"""The number of steps of the range to which values are rounded (integers are rounded to 1). Squares have fewer steps,
so that sums stay within 64 bits."""
_OPEN_STEP = {"integer": Fraction(1), "boolean": Fraction(1), "number": Fraction(1, 2**20)}
"""The steps to which values without a declared range are rounded before they are added."""
GRID = 2**16
"""The number of points of the range among which a quantile of non-integer values is chosen."""
_NUMBER = 'Cast it to DOUBLE; or, for a column of a CSV or JSON file, declare it: type = "number".'
MOST_CHOICES = 1000
"""The largest number of declared values, other than integers, of which the most common one is chosen."""
_EXACT_INTEGERS = 2**53
"""Whole numbers up to this one are exact as DOUBLE."""
EXTREMES = {"min": Fraction(1, 1000), "max": Fraction(999, 1000)}
"""MIN and MAX are answered as these quantiles: the true ones belong to single people."""
_INSTEAD = {"approxdistinct": "Write COUNT(DISTINCT x), which has noise in any case."}
_INSTEAD |= dict.fromkeys(("logicaland", "logicalor"), "Write COUNT(*) FILTER (WHERE …).")
_INSTEAD["approxtopk"] = "Write MODE(x); or COUNT(*) with GROUP BY, and ORDER BY it with a LIMIT."
_INSTEAD |= dict.fromkeys(
    ("anyvalue", "first", "last", "argmax", "argmin", "arrayagg", "groupconcat"),
    "It would show values of individual people: write MEDIAN(x), or COUNT(*) with GROUP BY.",
)
"""What to write for aggregates that are not supported."""

Parts = tuple[AggregateKind, tuple[int, ...], bool, Type]
"""The kind of an aggregate, its measures, whether it is of a sample, and its type."""


class Aggregates:
    """The aggregates of one SELECT, in order of appearance. `bounded` are the fields whose ranges matter.

    `ranges` were found privately for values whose variance is asked for, or a quantile if no column tells its range.
    `uncentered` are those without one, and `products` are values that are computed from both.
    `unranged` are the columns whose quantiles are asked for, and whose ranges are not declared. `chosen` has the ranges
    that were found for them: a quantile is chosen from them, and sums of the same column do without.
    """

    def __init__(
        self,
        sql: Text,
        schema: Schema,
        scope: Scope,
        ranges: Mapping[Expr, Range] | None = None,
        chosen: Mapping[Origin, Any] | None = None,
    ) -> None:
        self.sql, self.schema, self.scope, self.ranges = sql, schema, scope, dict(ranges or {})
        self.chosen = dict(chosen or {})
        self.work = Work()
        self._numbered: dict[int, tuple[tuple[Any, ...], Type]] = {}
        self.uncentered: list[Expr] = []
        self.products: list[Expr] = []
        self.unranged: set[Origin] = set()
        self._places: dict[Measure, int] = {}
        self._taken: dict[tuple[AggregateKind, tuple[int, ...], bool], Aggregate] = {}
        self.bounded: set[Field] = set()
        self.fields: dict[str, Field] = {}

    def shown(self, node: Any) -> Any:
        """What stands for an aggregate in an expression over released numbers: its column, the list of the columns of
        several quantiles, or the value whose number was chosen.
        """
        shares = _listed_shares(node)
        if shares is not None:
            if not shares or any(isinstance(share, exp.Array) for share in shares):
                self._share(node, exp.null())
            return exp.Array(expressions=[self.shown(_with_share(node, share)) for share in shares])
        aggregate = self._aggregate(node)
        column = noisy_column(node, aggregate.field.id)
        if aggregate.parts[0] not in self._numbered:
            return column
        values, kind = self._numbered[aggregate.parts[0]]
        numbers = map(exp.Literal.number, range(len(values)))
        chosen = [exp.If(this=n, true=literal(value, kind)) for n, value in zip(numbers, values, strict=True)]
        return exp.Case(this=column, ifs=chosen)

    def _aggregate(self, node: Any) -> Aggregate:
        """An aggregate and its column. If it is written twice, its measures are taken only once."""
        where, inner = None, node
        if isinstance(node, exp.Filter):
            where, inner = self.scope.translate(node.expression.this), node.this
            if where.type != "boolean":
                what = "FILTER takes a condition that is true or false, such as age >= 18."
                self.sql.unknown(node, what, code="sql-not-a-condition")
        kind, parts, sample, type_ = self._parts(inner, where)
        if (kind, parts, sample) not in self._taken:
            field = Field(f"a{len(self._taken)}", default_name(node), type_)
            self.fields[field.id] = field
            self._taken[kind, parts, sample] = Aggregate(field.name, kind, parts, field, sample)
        return self._taken[kind, parts, sample]

    @property
    def measures(self) -> list[Measure]:
        """What is measured, in order of appearance."""
        return list(self._places)

    @property
    def taken(self) -> list[Aggregate]:
        """The columns that are computed from the measures."""
        return list(self._taken.values())

    def _parts(self, node: exp.Expression, where: Expr | None) -> Parts:
        if unread_arguments(node, "this", "expression", "quantile", "big_int"):
            self._unknown_aggregate(node)
        if type(node) not in AGGREGATES:
            self._unknown_aggregate(node)
        return AGGREGATES[type(node)](self, node, where)

    def _count(self, node: exp.Count, where: Expr | None) -> Parts:
        return "count", (self._counted(node, where),), True, "integer"

    def _count_if(self, node: exp.CountIf, where: Expr | None) -> Parts:
        return (
            "count",
            (self._take(Measure("count", where=_both(where, self.scope.condition(node.this)))),),
            True,
            "integer",
        )

    def _sum(self, node: exp.Sum, where: Expr | None) -> Parts:
        value = self._value(node, node.this)
        within = self._known_range(node, value)
        if within is None:
            return "sum", (self._open_sum(value, where),), True, "number"
        return "sum", (self._summed(value, where, within, centered=False),), True, "number"

    def _mean(self, node: exp.Avg, where: Expr | None) -> Parts:
        value = self._value(node, node.this)
        within = self._known_range(node, value)
        if within is None:
            count = self._take(Measure("count", where=_both(where, has_number(value))))
            return "mean", (count, self._open_sum(value, where)), True, "number"
        return "mean", self._moments(value, where, within, 1), True, "number"

    def _spread(self, node: exp.Expression, where: Expr | None, kind: AggregateKind, *, sample: bool) -> Parts:
        value = self._value(node, node.this)
        return kind, self._moments(value, where, self._range_to_center(node, value), 2), sample, "number"

    def _of_share(self, node: exp.Quantile, where: Expr | None) -> Parts:
        return self._quantile(node, node.this, self._share(node, node.args["quantile"]), where)

    def _percentile(self, node: exp.PercentileCont | exp.PercentileDisc, where: Expr | None) -> Parts:
        if node.expression is None:
            self._unknown_aggregate(node)
        return self._quantile(node, node.this, self._share(node, node.expression), where)

    def _within_group(self, node: exp.WithinGroup, where: Expr | None) -> Parts:
        inner = node.this
        known = (exp.PercentileCont, exp.PercentileDisc, exp.Mode)
        if type(inner) not in known or len(node.expression.expressions) != 1:
            self._unknown_aggregate(node)
        [ordered] = node.expression.expressions
        if isinstance(inner, exp.Mode):
            return self._most_common(node, ordered.this, where)
        share = self._share(node, inner.this)
        return self._quantile(node, ordered.this, 1 - share if ordered.args.get("desc") else share, where)

    def _mode(self, node: exp.Mode, where: Expr | None) -> Parts:
        if node.this is None or node.expression is not None:
            self._unknown_aggregate(node)
        return self._most_common(node, node.this, where)

    def _most_common(self, node: exp.Expression, of: exp.Expression, where: Expr | None) -> Parts:
        """The number of the most common value among the declared ones. Rows with another value are left out."""
        if isinstance(of, exp.Distinct):
            self._unknown_aggregate(node)
        raw = self.scope.translate(of)
        value = with_other(raw)
        found = declared_values(value, self.scope.relation, self.work)
        values = [one for one in found or () if one is not None]
        near = value.type == "integer" and all(abs(one) < _EXACT_INTEGERS for one in values)
        whole = near and values == list(range(min(values, default=0), max(values, default=0) + 1))
        if not values or value.type == "other" or (len(values) > MOST_CHOICES and not whole):
            self.sql.refuse(
                node,
                f"MODE chooses among declared values, at most {MOST_CHOICES:,} of them.",
                "Declare choices for its column in the policy; or write COUNT(*) with GROUP BY, and ORDER BY it with a "
                "LIMIT.",
                code="sql-mode",
            )
        self.bounded |= set(value.fields())
        kind, center = value.type, Fraction(0)
        if whole:
            ends = [Const(end, kind) for end in (values[0], values[-1])]
            inside = call("and", call("ge", value, ends[0]), call("le", value, ends[1]))
            where, center = _both(where, inside), Fraction(values[0])
        else:
            value = _numbered(raw, value, values)
        measure = Measure("mode", value, _both(where, present(value)), center, highest=len(values) - 1)
        part = self._take(measure)
        if not whole:
            self._numbered[part] = tuple(values), kind
        return "mode", (part,), True, "integer"

    def _unknown_aggregate(self, node: exp.Expression) -> NoReturn:
        self.sql.refuse(
            node,
            f"The aggregate {self.sql.name(node)} is not supported, or not in this form.",
            _INSTEAD.get(node.key, "Use COUNT, SUM, AVG, VARIANCE, STDDEV, CORR, MEDIAN, QUANTILE, MODE, MIN or MAX."),
            code="sql-aggregate",
        )

    def _take(self, measure: Measure) -> int:
        return self._places.setdefault(measure, len(self._places))

    def _counted(self, node: exp.Count, where: Expr | None) -> int:
        if isinstance(node.this, exp.Star) and not any(node.this.args.values()):
            return self._take(Measure("count", where=where))
        if node.this is None or isinstance(node.this, exp.Star):
            self.sql.refuse(node, "COUNT takes * or one value.", "Write COUNT(*).", code="sql-count")
        if isinstance(node.this, exp.Distinct):
            if len(node.this.expressions) != 1 or node.this.args.get("on"):
                what = "COUNT(DISTINCT …) takes one value."
                self.sql.refuse(node, what, "Write COUNT(DISTINCT city).", code="sql-count")
            value = self.scope.translate(node.this.expressions[0])
            if isinstance(value, Ref) and value.field == self.scope.relation.person:
                return self._take(Measure("people", where=where))
            if self._is_person(value):
                # the same person, or NULL if a LEFT JOIN found no match
                return self._take(Measure("people", where=_both(where, present(value))))
            return self._take(Measure("distinct", value, _both(where, present(value))))
        value = self.scope.translate(node.this)
        return self._take(Measure("count", where=_both(where, present(value))))

    def _is_person(self, value: Expr) -> bool:
        """Whether its different values are the different units: not if one person is a unit in each block of time, and
        rows of several blocks count.
        """
        several = self.schema.unit.per is not None and len(self.schema.parts or ()) != 1
        return isinstance(value, Ref) and self.schema.leads(value.field.origin) == "person" and not several

    def _value(self, node: exp.Expression, of: exp.Expression) -> Expr:
        if isinstance(of, exp.Distinct):
            what = "DISTINCT is supported in COUNT only."
            self.sql.refuse(node, what, "Write SUM(x), or COUNT(DISTINCT x).", code="sql-distinct")
        value = self.scope.translate(of)
        if value.type not in ("integer", "number", "boolean"):
            if value.type == "text":
                self._refuse_text(node, default_name(of), value)
            far = isinstance(node, exp.Min | exp.Max) and value.type in ("date", "timestamp")
            instead = (
                f"MIN and MAX are of numbers: count by date_trunc('month', {default_name(of)})." if far else _NUMBER
            )
            self.sql.unknown(node, f"{default_name(of)} is not a number. {instead}", code="sql-not-a-number")
        return value

    def _refuse_text(self, node: exp.Expression, name: str, value: Expr) -> NoReturn:
        """Refuse a text that is added up, or whose largest is asked for. Declarations say whether a cast can help."""
        what = f"{name} is text and not a number. Write COUNT(DISTINCT {name})"
        if isinstance(value, Ref) and (value.field == self.scope.relation.person or self._is_person(value)):
            self.sql.unknown(node, f"{what}.", code="sql-not-a-number")
        known = not isinstance(value, Ref) or has_digits(value.field)
        cast = f" If it holds numbers: {_NUMBER[0].lower()}{_NUMBER[1:]}" if known else ""
        self.sql.unknown(node, f"{what}, or COUNT(*) with GROUP BY {name}.{cast}", code="sql-not-a-number")

    def _known_range(self, node: exp.Expression, value: Expr) -> Range | None:
        """The range that follows from the declarations, or was found for this question. None if there is none."""
        self.bounded |= set(value.fields())
        return self._checked(node, self.ranges.get(value) or range_of(value))

    def _checked(self, node: exp.Expression, within: Range | None) -> Range | None:
        """A range that sums and grids can have. None if it has no ends."""
        if within is None or not all(map(math.isfinite, within)):
            return None
        if max(map(abs, within)) > 1e15:
            self.sql.refuse(
                node,
                "The range of this value is larger than 1e15.",
                "Use another unit, write LEAST(GREATEST(x, low), high), or declare no range: then a person's total is "
                "limited.",
                code="sql-no-bounds",
            )
        if 0 < within[1] - within[0] < NARROWEST:
            what = f"The range of this value is narrower than {NARROWEST}."
            self.sql.refuse(node, what, "Multiply it first.", code="sql-narrow-bounds")
        return within if within[0] < within[1] else (within[0] - 1, within[1] + 1)

    def _range_to_center(self, node: exp.Expression, value: Expr) -> Range:
        """The range of a value from its quartiles, if no declaration tells it. It is found first."""
        within = self._known_range(node, value)
        if within is None and value not in self.uncentered:
            self.uncentered.append(value)
        return within or DEFAULTS["number"]

    def _range_to_choose_from(self, node: exp.Expression, value: Expr) -> Range:
        """The range of a value whose quantile is chosen. If a column has none, it is found first, and if the value of
        columns has none, its own.
        """
        within = self._known_range(node, value)
        if within is not None:
            return within
        undeclared = [field for field in value.fields() if field.between is None and field.choices is None]
        if undeclared and all(field.origin is not None and field.type in ORDERED for field in undeclared):
            origins = {field: field.origin or ("", "") for field in undeclared}
            known = {field: self.chosen.get(origins[field], DEFAULTS[field.type]) for field in undeclared}
            fields = {field: replace(field, between=between) for field, between in known.items()}
            within = self._checked(node, range_of(with_fields(value, fields)))
            if within is not None:
                self.unranged |= set(origins.values())
                return within
        return self._range_to_center(node, value)

    def _open_sum(self, value: Expr, where: Expr | None) -> int:
        step = _OPEN_STEP[value.type]
        return self._take(Measure("sum", value, _both(where, has_number(value)), Fraction(0), step, -OPEN, OPEN))

    def _summed(self, value: Expr, where: Expr | None, within: Range, *, centered: bool, power: int = 1) -> int:
        present = _both(where, has_number(value))
        return self._take(_on_grid(Measure("sum", value, present), within, centered=centered, power=power))

    def _pair(self, node: Any, where: Expr | None, kind: PairKind, squares: str, *, sample: bool) -> Parts:
        """Sums of two values y and x, of the squares of those in `squares`, and of their products, about their centers.
        Only rows with both count, and products are those of values within their ranges.
        """
        values = [self._value(node, of) for of in (node.this, node.expression)]
        ranges = [self._range_to_center(node, value) for value in values]
        present = _both(where, call("and", *(has_number(value) for value in values)))
        sums = [Measure("sum", value, present) for value in values]
        moments = [_on_grid(*one, centered=True) for one in zip(sums, ranges, strict=True)]
        powers = [_on_grid(*one, centered=True, power=2) for one in zip(sums, ranges, strict=True)]
        moved = [_moved(value, within, m.center) for value, within, m in zip(values, ranges, moments, strict=True)]
        far = [max(abs(Fraction(end) - m.center) for end in within) for within, m in zip(ranges, moments, strict=True)]
        step, product = powers[0].step * powers[1].step, call("multiply", *moved)
        most = math.ceil(far[0] * far[1] / step)
        if any(value in self.ranges or value in self.uncentered for value in values):
            self.products.append(product)
        multiplied = Measure("sum", product, present, step=step, lowest=-most, highest=most)
        squared = [power for power, name in zip(powers, "yx", strict=True) if name in squares]
        taken = (Measure("count", where=present), *moments, *squared, multiplied)
        return kind, tuple(self._take(measure) for measure in taken), sample, "number"

    def _pair_count(self, node: Any, where: Expr | None) -> Parts:
        """The number of rows with both values."""
        values = [self._value(node, of) for of in (node.this, node.expression)]
        present = _both(where, call("and", *(has_number(value) for value in values)))
        return "count", (self._take(Measure("count", where=present)),), True, "integer"

    def _pair_mean(self, node: Any, where: Expr | None, *, of: str) -> Parts:
        """The mean of one of two values, over the rows with both."""
        values = {"y": self._value(node, node.this), "x": self._value(node, node.expression)}
        other = values["y" if of == "x" else "x"]
        within = self._range_to_center(node, values[of])
        return "mean", self._moments(values[of], _both(where, has_number(other)), within, 1), True, "number"

    def _moments(self, value: Expr, where: Expr | None, within: Range, most: int) -> tuple[int, ...]:
        count = self._take(Measure("count", where=_both(where, has_number(value))))
        sums = [self._summed(value, where, within, centered=True, power=power) for power in range(1, most + 1)]
        return (count, *sums)

    def _share(self, node: exp.Expression, of: exp.Expression) -> Fraction:
        value = self.scope.translate(of)
        if not isinstance(value, Const) or not isinstance(value.value, int | float) or not 0 < value.value < 1:
            what = "A quantile takes one number between 0 and 1."
            self.sql.refuse(node, what, "Write QUANTILE_CONT(age, 0.9).", code="sql-quantile")
        return Fraction(str(value.value))

    def on_grid(self, of: exp.Expression) -> Measure:
        """The values of an expression, as integer steps of a public grid."""
        self._quantile(of, of, Fraction(1, 2), None)
        assert not self.uncentered  # of columns only: their ranges are found as those of columns
        return self.measures[-1]

    def _quantile(self, node: exp.Expression, of: exp.Expression, share: Fraction, where: Expr | None) -> Parts:
        value = self._value(node, of)
        low, high = (Fraction(end) for end in self._range_to_choose_from(node, value))
        whole = value.type in ("integer", "boolean") and high - low < 2**31
        if whole:
            low, high, step = Fraction(math.ceil(low)), Fraction(math.floor(high)), Fraction(1)
        else:
            step = power_of_two_below((high - low) / (GRID // 2))
        last = max(1, math.floor((high - low) / step))
        measure = Measure("quantile", value, _both(where, has_number(value)), low, step, 0, last, quantile=share)
        return "quantile", (self._take(measure),), True, value.type


def _on_grid(measure: Measure, within: tuple[Any, Any], *, centered: bool, power: int = 1) -> Measure:
    """A sum of values in this range, or of their squares, with its center, its step and its ends in steps."""
    low, high = (Fraction(end) for end in within)
    whole = measure.value is not None and measure.value.type in ("integer", "boolean")
    center = (low + high) / 2 if centered else Fraction(0)
    fine, common = (_step(low, high, from_, whole, 1) for from_ in (center, Fraction(0)))
    # a mean uses the steps of a sum unless its range is much narrower: the engine then computes one sum for both
    fine = common if common <= 4 * fine else fine
    center = math.floor(center / fine) * fine
    step = fine if power == 1 else _step(low, high, center, whole, power)
    ends = math.floor((low - center) / step), math.ceil((high - center) / step)
    return replace(measure, center=center, step=step, lowest=ends[0], highest=ends[1], power=power)


def _moved(value: Expr, within: Range, center: Fraction) -> Expr:
    """A value within its range, as its distance from a center."""
    low, high = (Const(float(end), "number") for end in within)
    inside = call("greatest", call("least", value, high), low)
    return call("subtract", inside, Const(float(center), "number"))


def _step(low: Fraction, high: Fraction, center: Fraction, whole: bool, power: int) -> Fraction:
    """The step to which values are rounded before they, or their squares, are added."""
    step = power_of_two_below(max(abs(low - center), abs(high - center)) / _FINENESS[power])
    return max(step, Fraction(1)) if whole else step


def _numbered(raw: Expr, value: Expr, values: list[Any]) -> Expr:
    """The place of a value in a list. NULL if it is not there. What is not among the choices of a column may be
    counted as another value, the last one.
    """
    rest: Expr = Const(None, "integer")
    if isinstance(raw, Ref) and raw != value and values[-1] == raw.field.other:
        rest = call("case", present(raw), Const(len(values) - 1, "integer"), rest)
        value, values = raw, values[:-1]
    pairs = ((call("eq", value, Const(one, value.type)), Const(n, "integer")) for n, one in enumerate(values))
    return call("case", *(part for pair in pairs for part in pair), rest) if values else rest


def _listed_shares(node: Any) -> list[Any] | None:
    """The shares of several quantiles that are asked for in a list. None if there is none."""
    listed = _share_of(node)
    return listed.expressions if isinstance(listed, exp.Array) else None


def _share_of(node: Any) -> Any:
    """What stands for the share in a quantile. None if it is not a quantile."""
    inner = node.this if isinstance(node, exp.Filter) else node
    if isinstance(inner, exp.WithinGroup):
        return inner.this.this if isinstance(inner.this, exp.PercentileCont | exp.PercentileDisc) else None
    if isinstance(inner, exp.PercentileCont | exp.PercentileDisc):
        return inner.expression
    return inner.args.get("quantile") if isinstance(inner, exp.Quantile | exp.ApproxQuantile) else None


def _with_share(node: Any, share: Any) -> Any:
    """One of several quantiles."""
    one = node.copy()
    _share_of(one).replace(share.copy())
    return one


def noisy_column(part: Any, field: str) -> exp.Column:
    """A noisy field that replaces the expression it measures."""
    column, span = exp.column(field, table="noisy"), span_of(part)
    if span is not None:
        column.meta.update(start=span[0], end=span[1])
    return column


def default_name(node: exp.Expression) -> str:
    """The name of a column of the answer that was given no name."""
    return node.sql(dialect="duckdb").lower()


def _both(first: Expr | None, second: Expr | None) -> Expr | None:
    if first is None or second is None:
        return first if second is None else second
    return call("and", first, second)


Rule = Callable[[Aggregates, Any, Expr | None], Parts]
"""How an aggregate is measured, over the rows where its condition holds."""


def _spread(kind: AggregateKind, *, sample: bool = True) -> Rule:
    return lambda aggregates, node, where: aggregates._spread(node, where, kind, sample=sample)


def _paired(kind: PairKind, squares: str = "", *, sample: bool = False) -> Rule:
    return lambda aggregates, node, where: aggregates._pair(node, where, kind, squares, sample=sample)


def _fixed_share(share: Fraction) -> Rule:
    return lambda aggregates, node, where: aggregates._quantile(node, node.this, share, where)


AGGREGATES: dict[type[exp.Expression], Rule] = {
    exp.Count: Aggregates._count,
    exp.CountIf: Aggregates._count_if,
    exp.Sum: Aggregates._sum,
    exp.Avg: Aggregates._mean,
    exp.Variance: _spread("variance"),
    exp.VariancePop: _spread("variance", sample=False),
    exp.Stddev: _spread("stddev"),
    exp.StddevSamp: _spread("stddev"),
    exp.StddevPop: _spread("stddev", sample=False),
    exp.CovarPop: _paired("covariance"),
    exp.CovarSamp: _paired("covariance", sample=True),
    exp.Corr: _paired("correlation", "yx"),
    exp.RegrSlope: _paired("slope", "x"),
    exp.RegrIntercept: _paired("intercept", "x"),
    exp.RegrR2: _paired("r2", "yx"),
    exp.RegrSxx: _paired("sxx", "x"),
    exp.RegrSyy: _paired("syy", "y"),
    exp.RegrSxy: _paired("sxy"),
    exp.RegrCount: Aggregates._pair_count,
    exp.RegrAvgx: partial(Aggregates._pair_mean, of="x"),
    exp.RegrAvgy: partial(Aggregates._pair_mean, of="y"),
    exp.Median: _fixed_share(Fraction(1, 2)),
    exp.Min: _fixed_share(EXTREMES["min"]),
    exp.Max: _fixed_share(EXTREMES["max"]),
    exp.Quantile: Aggregates._of_share,
    exp.ApproxQuantile: Aggregates._of_share,
    exp.PercentileCont: Aggregates._percentile,
    exp.PercentileDisc: Aggregates._percentile,
    exp.WithinGroup: Aggregates._within_group,
    exp.Mode: Aggregates._mode,
}
"""The aggregates that are supported. `Aggregates` refuses every other."""
