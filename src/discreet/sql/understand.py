"""The SELECT list, GROUP BY, HAVING, ORDER BY and LIMIT: which measures are taken, and what is made of them."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any, NoReturn

from sqlglot import exp

from discreet.errors import QueryError
from discreet.rational import power_of_two_below
from discreet.sql.domains import domain_of, restricted, typed
from discreet.sql.expressions import Const, Expr, Field, Range, Ref, call, conjuncts, has_number, present
from discreet.sql.parse import Text, parsed, span_of
from discreet.sql.plan import Aggregate, AggregateKind, Key, Measure, Ordering, Output, Question
from discreet.sql.ranges import range_of
from discreet.sql.relation import Filter
from discreet.sql.schema import Schema, Type
from discreet.sql.scope import Scope
from discreet.sql.sources import Sources
from discreet.sql.translate import Translator

_CLAUSES = {"expressions", "from_", "joins", "where", "with_", "group", "having", "order", "limit", "offset"}
_FINENESS = {1: 2**30, 2: 2**18}
"""Values are rounded to so many steps of their range, or of one where they are whole; their squares to fewer, for the
sums of many to stay inside 64 bits."""
GRID = 2**16
"""A quantile of values that are not whole is one of so many points of their range."""
_NUMBER = 'Cast it to DOUBLE; or, for a column of a CSV or JSON file, declare it: type = "number".'
EXTREMES = {"min": Fraction(1, 1000), "max": Fraction(999, 1000)}
"""MIN and MAX are answered as these quantiles: the true ones belong to single people."""


def understood(text: Any, schema: Schema) -> Question:
    """The question in a text, or what is wrong with it."""
    words, query = parsed(text)
    if not isinstance(query, exp.Select):
        words.refuse(query, f"{query.key.upper()} of whole queries is not answered.", "Ask them one by one.")
    try:
        return _Reader(words, schema, query).question()
    except RecursionError:
        raise QueryError("This question is nested too deeply. Ask for less at once.") from None


_INSTEAD = {"approxdistinct": "Write COUNT(DISTINCT x), which has noise in any case."}
_INSTEAD |= dict.fromkeys(("countif", "logicaland", "logicalor"), "Write COUNT(*) FILTER (WHERE …).")
_INSTEAD |= dict.fromkeys(("mode", "approxtopk"), "Write COUNT(*) with GROUP BY, and ORDER BY it with a LIMIT.")
_INSTEAD |= dict.fromkeys(
    ("anyvalue", "first", "last", "argmax", "argmin", "arrayagg", "groupconcat"),
    "It would show values of single people: write MEDIAN(x), or COUNT(*) with GROUP BY.",
)
"""What to write for aggregates that are not answered."""

Parts = tuple[AggregateKind, tuple[int, ...], bool, Type]
"""The kind of an aggregate, its measures, whether it is of a sample, and its type."""


class _Reader:
    """Reads one SELECT."""

    def __init__(self, words: Text, schema: Schema, query: exp.Select) -> None:
        self.words, self.schema, self.query = words, schema, query
        self.measures: list[Measure] = []
        self.aggregates: list[Aggregate] = []
        self.bounded: set[Field] = set()
        self._check_clauses()
        self.scope: Scope = Sources(words, schema).scope(query, {})
        if self.scope.relation.public:
            words.refuse(query, "This asks of public tables only.", "Read them directly: no noise is needed.")
        self.keys, self.key_nodes = self._keys()
        self.key_fields = tuple(
            Field(f"k{n}", key.name, key.expr.type, choices=key.domain) for n, key in enumerate(self.keys)
        )

    def _check_clauses(self) -> None:
        for name, value in self.query.args.items():
            if value and name not in _CLAUSES:
                node = value if isinstance(value, exp.Expression) else self.query
                self.words.refuse(node, f"{name.strip('_').upper()} is not answered.", "Leave it out.")
        group = self.query.args.get("group")
        if group is not None:
            extra = [name for name, value in group.args.items() if value and name != "expressions"]
            if extra:
                self.words.refuse(group, f"GROUP BY {extra[0].upper()} is not answered.", "List the columns.")

    def question(self) -> Question:
        """Everything that was asked."""
        outputs = tuple(self._output(item) for item in self.query.expressions)
        names = [output.name.lower() for output in outputs]
        if len(set(names)) != len(names):
            self.words.unknown(self.query, "Two columns of the answer have the same name. Name them apart with AS.")
        if any(f"{name}_error" in names for name in names):
            self.words.unknown(self.query, "A column ends in _error like the error of another. Name it apart with AS.")
        having = self.query.args.get("having")
        order = self.query.args.get("order")
        question = Question(
            text=self.words.text,
            same=self.query.sql(dialect="duckdb", comments=False),
            relation=self.scope.relation,
            keys=self.keys,
            key_fields=self.key_fields,
            measures=(),
            aggregates=(),
            outputs=outputs,
            having=None if having is None else self._condition(having.this),
            order=() if order is None else tuple(self._ordering(item, outputs) for item in order.expressions),
            limit=self._whole("limit"),
            offset=self._whole("offset") or 0,
        )
        if not self.measures:
            self.words.refuse(
                self.query, "This asks for rows of single people.", "Aggregate them: COUNT(*), AVG(age), MEDIAN(cost)."
            )
        return replace(
            question,
            measures=tuple(self.measures),
            aggregates=tuple(self.aggregates),
            bounded=frozenset(self.bounded),
        )

    # --- keys ---------------------------------------------------------------------------------------------

    def _keys(self) -> tuple[tuple[Key, ...], list[exp.Expression]]:
        group = self.query.args.get("group")
        keys, nodes = [], []
        for item in [] if group is None else group.expressions:
            node, name = self._grouped(item)
            if list(node.find_all(exp.AggFunc)):
                self.words.refuse(item, "An aggregate cannot be grouped by.", "Group by columns.")
            expr = self.scope.translate(node)
            if expr.type == "other":
                self.words.unknown(
                    item,
                    "Groups are made by numbers, text, dates and conditions, and this is none. Cast it to one.",
                )
            if node not in nodes:
                keys.append(Key(name or node.sql(), expr, self._domain(expr)))
                self.bounded |= set(expr.fields()) if keys[-1].domain is not None else set()
                nodes.append(node)
        return tuple(keys), nodes

    def _domain(self, key: Expr) -> tuple[Any, ...] | None:
        """The values of a key that are declared, and that WHERE leaves."""
        found, relation = domain_of(key), self.scope.relation
        if found is None:
            return None
        domain = typed(found, key.type)
        return restricted(key, domain, conjuncts(relation.condition)) if isinstance(relation, Filter) else domain

    def _grouped(self, item: exp.Expression) -> tuple[exp.Expression, str]:
        """What a GROUP BY item stands for: itself, an alias of the SELECT list, or its number."""
        if isinstance(item, exp.Literal) and not item.is_string:
            place = int(item.this) if item.this.isdigit() else 0
            if not 1 <= place <= len(self.query.expressions):
                self.words.unknown(
                    item,
                    f"GROUP BY {item.this} names no column of the answer. Write a number from 1 to "
                    f"{len(self.query.expressions)}.",
                )
            chosen = self.query.expressions[place - 1]
            return _plain(chosen), chosen.alias_or_name
        if isinstance(item, exp.Column) and not item.table and not self.scope.knows(item.name):
            for chosen in self.query.expressions:
                if isinstance(chosen, exp.Alias) and chosen.alias.lower() == item.name.lower():
                    return _plain(chosen), chosen.alias
        return item, item.name if isinstance(item, exp.Column) else ""

    # --- what is shown ------------------------------------------------------------------------------------

    def _output(self, item: exp.Expression) -> Output:
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            self.words.refuse(item, "SELECT * shows rows of single people.", "Ask for aggregates, such as COUNT(*).")
        node = _plain(item)
        expr = self._noisy(node)
        name = item.alias or (self.scope.lookup(node).name if isinstance(node, exp.Column) else _shown(node))
        return Output(name, expr)

    def _ordering(self, item: exp.Ordered, outputs: tuple[Output, ...]) -> Ordering:
        node, expr = item.this, None
        if isinstance(node, exp.Literal) and not node.is_string:
            place = int(node.this) if node.this.isdigit() else 0
            if not 1 <= place <= len(outputs):
                self.words.unknown(
                    node,
                    f"ORDER BY {node.this} names no column of the answer. Write a number from 1 to {len(outputs)}.",
                )
            expr = outputs[place - 1].expr
        elif isinstance(node, exp.Column) and not node.table:
            expr = next((output.expr for output in outputs if output.name.lower() == node.name.lower()), None)
        expr = self._noisy(node) if expr is None else expr
        if not list(expr.fields()):
            self.words.refuse(node, "ORDER BY takes a column of the answer.", "Write its name or its number.")
        return Ordering(expr, bool(item.args.get("desc")), bool(item.args.get("nulls_first")))

    def _whole(self, name: str) -> int | None:
        clause = self.query.args.get(name)
        if clause is None:
            return None
        value = clause.expression
        extra = any(given for given_name, given in clause.args.items() if given_name != "expression")
        plain = isinstance(value, exp.Literal) and not value.is_string and str(value.this).isdecimal()
        if extra or not plain or len(value.this) > 18:
            self.words.refuse(clause, f"{name.upper()} takes a whole number.", f"Write {name.upper()} 10.")
        return int(value.this)

    def _condition(self, node: exp.Expression) -> Expr:
        found = self._noisy(node)
        if found.type != "boolean":
            self.words.unknown(node, "HAVING takes a condition that is true or false, such as COUNT(*) > 100.")
        return found

    def _noisy(self, node: exp.Expression) -> Expr:
        """An expression over keys and aggregates: arithmetic on noisy values is free."""
        aliases = {
            item.alias.lower(): item.this
            for item in self.query.expressions
            if isinstance(item, exp.Alias) and item.find(exp.AggFunc)
        }

        def put(part: Any) -> Any:
            for number, key in enumerate(self.key_nodes):
                if part == key:
                    return _stands_for(part, f"k{number}")
            named = part.name.lower() if isinstance(part, exp.Column) and not part.table else ""
            if named in aliases and aliases[named] is not node and not self.scope.knows(named):
                return aliases[named].copy().transform(put, copy=False)
            if isinstance(part, exp.Filter | exp.AggFunc | exp.WithinGroup):
                return _stands_for(part, self._aggregate(part).id)
            return part

        placed = node.copy().transform(put, copy=False)
        return Translator(self.words, self._noisy_field)(placed)

    def _noisy_field(self, node: exp.Column) -> Field:
        if node.table == "noisy":
            fields = {field.id: field for field in (*self.key_fields, *(a.field for a in self.aggregates))}
            if node.name in fields:
                return fields[node.name]
        self.scope.lookup(node)
        self.words.refuse(node, f"{node.name} is a value of single people.", "Aggregate it, or put it into GROUP BY.")

    # --- aggregates ---------------------------------------------------------------------------------------

    def _aggregate(self, node: Any) -> Field:
        """The column of an aggregate, its measures taken once however often it is written."""
        where, inner = None, node
        if isinstance(node, exp.Filter):
            where, inner = self.scope.translate(node.expression.this), node.this
            if where.type != "boolean":
                self.words.unknown(node, "FILTER takes a condition that is true or false, such as age >= 18.")
        kind, parts, sample, type_ = self._parts(inner, where)
        field = Field(f"a{len(self.aggregates)}", _shown(node), type_)
        for known in self.aggregates:
            if (known.kind, known.parts, known.sample) == (kind, parts, sample):
                return known.field
        self.aggregates.append(Aggregate(field.name, kind, parts, field, sample))
        return field

    def _parts(self, node: exp.Expression, where: Expr | None) -> Parts:
        given = {name for name, value in node.args.items() if value} - {"this", "expression", "quantile", "big_int"}
        if given:
            self._unknown_aggregate(node)
        match node:
            case exp.Count():
                return "count", (self._counted(node, where),), True, "integer"
            case exp.Sum():
                value, within = self._value(node, node.this)
                return "sum", (self._summed(value, where, within, centered=False),), True, "number"
            case exp.Avg():
                value, within = self._value(node, node.this)
                return "mean", self._moments(value, where, within, 1), True, "number"
            case exp.Variance() | exp.VariancePop() | exp.Stddev() | exp.StddevPop() | exp.StddevSamp():
                value, within = self._value(node, node.this)
                kind: AggregateKind = "variance" if isinstance(node, exp.Variance | exp.VariancePop) else "stddev"
                sample = not isinstance(node, exp.VariancePop | exp.StddevPop)
                return kind, self._moments(value, where, within, 2), sample, "number"
            case exp.Median():
                return self._quantile(node, node.this, Fraction(1, 2), where)
            case exp.Quantile():
                return self._quantile(node, node.this, self._share(node, node.args["quantile"]), where)
            case exp.PercentileCont() | exp.PercentileDisc() if node.expression is not None:
                return self._quantile(node, node.this, self._share(node, node.expression), where)
            case exp.WithinGroup(this=exp.PercentileCont() | exp.PercentileDisc() as inner):
                if len(node.expression.expressions) != 1:
                    self._unknown_aggregate(node)
                [ordered] = node.expression.expressions
                share = self._share(node, inner.this)
                return self._quantile(node, ordered.this, 1 - share if ordered.args.get("desc") else share, where)
            case exp.Min():
                return self._quantile(node, node.this, EXTREMES["min"], where)
            case exp.Max():
                return self._quantile(node, node.this, EXTREMES["max"], where)
        self._unknown_aggregate(node)

    def _unknown_aggregate(self, node: exp.Expression) -> NoReturn:
        self.words.refuse(
            node,
            f"{self.words.name(node)} is not among the aggregates that are answered, or not in this form.",
            _INSTEAD.get(node.key, "Use COUNT, SUM, AVG, VARIANCE, STDDEV, MEDIAN, QUANTILE, MIN or MAX."),
        )

    def _take(self, measure: Measure) -> int:
        if measure not in self.measures:
            self.measures.append(measure)
        return self.measures.index(measure)

    def _counted(self, node: exp.Count, where: Expr | None) -> int:
        if isinstance(node.this, exp.Star) and not any(node.this.args.values()):
            return self._take(Measure("count", where=where))
        if node.this is None or isinstance(node.this, exp.Star):
            self.words.refuse(node, "COUNT takes * or one value.", "Write COUNT(*).")
        if isinstance(node.this, exp.Distinct):
            if len(node.this.expressions) != 1 or node.this.args.get("on"):
                self.words.refuse(node, "COUNT(DISTINCT …) takes one value.", "Write COUNT(DISTINCT city).")
            value = self.scope.translate(node.this.expressions[0])
            if isinstance(value, Ref) and value.field == self.scope.relation.person:
                return self._take(Measure("people", where=where))
            if isinstance(value, Ref) and self.schema.leads(value.field.origin) == "person":
                # the same person, or nobody where a LEFT JOIN met none
                return self._take(Measure("people", where=_both(where, present(value))))
            return self._take(Measure("distinct", value, _both(where, present(value))))
        value = self.scope.translate(node.this)
        return self._take(Measure("count", where=_both(where, present(value))))

    def _value(self, node: exp.Expression, of: exp.Expression) -> tuple[Expr, Range]:
        if isinstance(of, exp.Distinct):
            self.words.refuse(node, "DISTINCT is answered in COUNT only.", "Write SUM(x), or COUNT(DISTINCT x).")
        value = self.scope.translate(of)
        if value.type not in ("integer", "number", "boolean"):
            self.words.unknown(node, f"{_shown(of)} is not a number. {_NUMBER}")
        return value, self._within(node, value)

    def _within(self, node: exp.Expression, value: Expr) -> Range:
        self.bounded |= set(value.fields())
        within = range_of(value)
        if within is None or not all(map(math.isfinite, within)) or max(map(abs, within)) > 1e15:
            self.words.refuse(
                node,
                "The range of this value is not declared, so one person could move the answer without limit.",
                "Declare between = [low, high] for its columns in the policy, or write LEAST(GREATEST(x, low), high).",
            )
        return within if within[0] < within[1] else (within[0] - 1, within[1] + 1)

    def _summed(self, value: Expr, where: Expr | None, within: Range, *, centered: bool, power: int = 1) -> int:
        low, high = (Fraction(end) for end in within)
        whole = value.type in ("integer", "boolean")
        center = (low + high) / 2 if centered else Fraction(0)
        fine, common = (_step(low, high, from_, whole, 1) for from_ in (center, Fraction(0)))
        # a mean has the steps of a sum, unless its range is much narrower: the engine then adds them up once
        fine = common if common <= 4 * fine else fine
        center = math.floor(center / fine) * fine
        step = fine if power == 1 else _step(low, high, center, whole, power)
        ends = math.floor((low - center) / step), math.ceil((high - center) / step)
        return self._take(Measure("sum", value, _both(where, has_number(value)), center, step, *ends, power))

    def _moments(self, value: Expr, where: Expr | None, within: Range, most: int) -> tuple[int, ...]:
        count = self._take(Measure("count", where=_both(where, has_number(value))))
        sums = [self._summed(value, where, within, centered=True, power=power) for power in range(1, most + 1)]
        return (count, *sums)

    def _share(self, node: exp.Expression, of: exp.Expression) -> Fraction:
        value = self.scope.translate(of)
        if not isinstance(value, Const) or not isinstance(value.value, int | float) or not 0 < value.value < 1:
            self.words.refuse(node, "A quantile takes one number between 0 and 1.", "Write QUANTILE_CONT(age, 0.9).")
        return Fraction(str(value.value))

    def _quantile(self, node: exp.Expression, of: exp.Expression, share: Fraction, where: Expr | None) -> Parts:
        value, within = self._value(node, of)
        low, high = (Fraction(end) for end in within)
        whole = value.type in ("integer", "boolean") and high - low < 2**31
        if whole:
            low, high, step = Fraction(math.ceil(low)), Fraction(math.floor(high)), Fraction(1)
        else:
            step = power_of_two_below((high - low) / (GRID // 2))
        last = max(1, math.floor((high - low) / step))
        measure = Measure("quantile", value, _both(where, has_number(value)), low, step, 0, last, quantile=share)
        return "quantile", (self._take(measure),), True, value.type


def _step(low: Fraction, high: Fraction, center: Fraction, whole: bool, power: int) -> Fraction:
    """What values are rounded to before they, or their squares, are added."""
    step = power_of_two_below(max(abs(low - center), abs(high - center)) / _FINENESS[power])
    return max(step, Fraction(1)) if whole else step


def _stands_for(part: Any, field: str) -> exp.Column:
    """A noisy field in the place of what it answers."""
    column, span = exp.column(field, table="noisy"), span_of(part)
    if span is not None:
        column.meta.update(start=span[0], end=span[1])
    return column


def _plain(item: exp.Expression) -> exp.Expression:
    return item.this if isinstance(item, exp.Alias) else item


def _shown(node: exp.Expression) -> str:
    return node.sql(dialect="duckdb").lower()


def _both(first: Expr | None, second: Expr | None) -> Expr | None:
    if first is None or second is None:
        return first if second is None else second
    return call("and", first, second)
