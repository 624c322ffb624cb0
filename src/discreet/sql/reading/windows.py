"""Window functions in FROM: functions of all rows of one person, in their order.

The order of rows that are equal in ORDER BY would depend on where the rows of other people lie. So where it matters,
the order is made total by all other columns; rows that are then still equal are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn

from sqlglot import exp

from discreet.exact.rational import power_of_two_below
from discreet.sql.expressions import Const, Expr, Field, Ref, call
from discreet.sql.pricing.relation import Over, Relation, Where, Windowed, rows_of_person
from discreet.sql.reading.grouped import aliased
from discreet.sql.reading.parse import unread_arguments
from discreet.sql.reading.scope import Scope, stands_for
from discreet.sql.reading.values.domains import like
from discreet.sql.reading.values.ranges import may_have_range, range_of

if TYPE_CHECKING:
    from discreet.sql.reading.sources import Sources

_OPEN_STEP = Fraction(1, 2**20)
_FINENESS = 2**30
"""Numbers that are not whole are added in whole steps: of their declared range, or of a millionth."""
_Frame = tuple[int | None, int | None] | None


@dataclass
class _Found:
    """The windows of one query, the relation and names they are over, and the windows that have a name."""

    scope: Scope
    named: dict[str, exp.Window]
    columns: list[tuple[Field, Over]] = field(default_factory=list)


class Windows:
    """Reads window functions that are partitioned by the person."""

    def __init__(self, sources: Sources) -> None:
        self.sources, self.sql, self.schema = sources, sources.sql, sources.schema

    def placed(self, scope: Scope, query: exp.Select, listed: list[Any]) -> tuple[Scope, list[Any]]:
        """The rows with the windows that a query names, after QUALIFY, and what it lists with their results."""
        qualify = query.args.get("qualify")
        found = _Found(scope, {one.name.lower(): one for one in query.args.get("windows") or []})

        def put(part: Any) -> Any:
            return self._window(found, part) if isinstance(part, exp.Window) else part

        items: list[Any] = []
        for item in listed:
            placed = item.copy().transform(put, copy=False)
            bare = placed is not item and not isinstance(placed, exp.Alias) and item.find(exp.Window) is not None
            items.append(exp.alias_(placed, item.sql(), quoted=True) if bare else placed)
        kept = None
        if qualify is not None:
            written = qualify.this.copy().transform(lambda part: aliased(scope, query, part) or part, copy=False)
            kept = written.transform(put, copy=False)
        if not found.columns:
            return (scope, items) if qualify is None else self._refuse(scope, qualify)
        relation: Relation = Windowed(scope.relation, tuple(found.columns))
        if kept is not None:
            condition = Scope(self.sql, relation, scope.names).condition(kept)
            self.check_columns(Scope(self.sql, relation, scope.names), query, [(found.columns[0][0], condition)])
            relation = Where(relation, condition)
        return Scope(self.sql, relation, scope.names), items

    def check_columns(self, scope: Scope, query: exp.Select, columns: list[tuple[Field, Expr]]) -> None:
        """Refuse a column that has no order next to a window: it could tell rows apart that the order does not."""
        relation = scope.relation.source if isinstance(scope.relation, Where) else scope.relation
        if isinstance(relation, Windowed) and any(one.type == "other" for _, expr in columns for one in expr.fields()):
            what = "Next to a window function, columns must be numbers, text, dates or conditions."
            self.sql.refuse(query, what, "Select those by name.", code="sql-window")

    def _window(self, found: _Found, node: exp.Window) -> exp.Expression:
        named = found.named.get(node.args["alias"].name.lower()) if node.args.get("alias") else None
        if named is not None and not unread_arguments(node, "this", "alias", "over"):
            known = {name: value for name, value in named.args.items() if name not in ("this", "over")}
            written, node = node, exp.Window(this=node.this, over="OVER", **known)
            node.meta.update(written.meta)
        rule = WINDOWS.get(type(node.this))
        read = ("this", "partition_by", "order", "spec", "over")
        if rule is None or unread_arguments(node, *read) or str(node.args.get("over") or "").upper() != "OVER":
            self._refuse(found.scope, node)
        keys = [found.scope.translate(key) for key in node.args.get("partition_by") or []]
        led = [self.schema.leads(key.field.origin) if isinstance(key, Ref) else None for key in keys]
        if found.scope.relation.person is None or not any(led):
            self._refuse(found.scope, node)
        order = node.args.get("order")
        listed = [] if order is None else [self._ordered(found, item) for item in order.expressions]
        over = Over("", None, tuple(keys), tuple(listed), self._frame(node), total=False)
        return rule(self, found, node, over)

    def _ordered(self, found: _Found, item: exp.Ordered) -> tuple[Expr, bool, bool]:
        value = found.scope.translate(item.this)
        if value.type == "other" or isinstance(value, Const) or unread_arguments(item, "this", "desc", "nulls_first"):
            self.sql.unknown(item, "ORDER BY takes numbers, text, dates and conditions.", code="sql-key-type")
        return value, bool(item.args.get("desc")), bool(item.args.get("nulls_first"))

    def _frame(self, node: exp.Window) -> _Frame:
        """The rows that count: ROWS BETWEEN … AND …. Without it, those up to the row at hand and its equals."""
        spec = node.args.get("spec")
        if spec is None:
            return None
        if spec.args.get("kind") != "ROWS" or spec.args.get("exclude"):
            self._refuse_frame(node)
        first = self._end(node, spec, "start", "PRECEDING")
        last = self._end(node, spec, "end", "FOLLOWING") if spec.args.get("end") else 0
        if (first or 0) > (last or 0) and first is not None and last is not None:
            self._refuse_frame(node)
        return first, last

    def _end(self, node: exp.Window, spec: exp.WindowSpec, name: str, outermost: str) -> int | None:
        """The distance of the first or last row that counts. None for all there are."""
        end: Any = spec.args.get(name)
        side = spec.args.get(f"{name}_side")
        if end == "CURRENT ROW":
            return 0
        if end == "UNBOUNDED" and side == outermost:
            return None
        written = isinstance(end, exp.Literal) and not end.is_string and end.this.isdecimal() and len(end.this) < 10
        if not written or side not in ("PRECEDING", "FOLLOWING"):
            self._refuse_frame(node)
        return -int(end.this) if side == "PRECEDING" else int(end.this)

    # --- functions ------------------------------------------------------------------------------------------

    def _numbered(self, found: _Found, node: exp.Window, over: Over, word: str) -> exp.Expression:
        """ROW_NUMBER, RANK, DENSE_RANK: the last two tell no equal rows apart."""
        self._need_order(found, node, over)
        if over.frame is not None or unread_arguments(node.this):
            self._refuse(found.scope, node)
        rows = rows_of_person(found.scope.relation)
        known = Field("", "", "integer", None if rows is None or rows < 2 else (1, rows))
        return self._add(found, node, replace(over, word=word, total=word == "row_number"), known)

    def _shifted(self, found: _Found, node: exp.Window, over: Over, word: str) -> exp.Expression:
        """LAG and LEAD: a value of the row so many places before or after."""
        self._need_order(found, node, over)
        offset = node.this.args.get("offset")
        far = "1" if offset is None else str(getattr(offset, "this", ""))
        plain = offset is None or (isinstance(offset, exp.Literal) and not offset.is_string)
        plain = plain and far.isdecimal() and len(far) < 10
        if over.frame is not None or not plain or unread_arguments(node.this, "this", "offset"):
            what = f"{word.upper()} takes a value and a whole number."
            self.sql.refuse(node, what, f"Write COALESCE({word.upper()}(x, 1) OVER (…), 0).", code="sql-window")
        return self._valued(found, node, replace(over, word=word, offset=int(far)))

    def _ended(self, found: _Found, node: exp.Window, over: Over, word: str) -> exp.Expression:
        """FIRST_VALUE and LAST_VALUE. Of rows that are equal in order, the last one would be anyone's choice."""
        self._need_order(found, node, over)
        if word == "last_value" and over.frame is None:
            self._refuse_frame(node)
        if unread_arguments(node.this, "this"):
            self._refuse(found.scope, node)
        return self._valued(found, node, replace(over, word=word))

    def _valued(self, found: _Found, node: exp.Window, over: Over) -> exp.Expression:
        value = found.scope.translate(node.this.this)
        known = replace(value.field, origin=None) if isinstance(value, Ref) else like(value, self.sources.work)
        return self._add(found, node, replace(over, value=value, total=True), known)

    def _counted(self, found: _Found, node: exp.Window, over: Over) -> exp.Expression:
        of, over = node.this.args.get("this"), self._framed(over)
        rows = rows_of_person(found.scope.relation)
        known = Field("", "", "integer", None if rows is None else (0, rows))
        if isinstance(of, exp.Distinct) or unread_arguments(node.this, "this", "big_int"):
            self._refuse(found.scope, node)
        value = Const(1, "integer") if of is None or isinstance(of, exp.Star) else found.scope.translate(of)
        return self._add(found, node, replace(over, word="count", value=value), known)

    def _extreme(self, found: _Found, node: exp.Window, over: Over, word: str) -> exp.Expression:
        if unread_arguments(node.this, "this") or isinstance(node.this.this, exp.Star | exp.Distinct):
            self._refuse(found.scope, node)
        value, over = found.scope.translate(node.this.this), self._framed(over)
        known = replace(value.field, origin=None) if isinstance(value, Ref) else like(value, self.sources.work)
        return self._add(found, node, replace(over, word=word, value=value), known)

    def _summed(self, found: _Found, node: exp.Window, over: Over) -> exp.Expression:
        """The exact sum. Numbers that are not whole are added in whole steps, so that no order changes it."""
        value, whole = self._whole(found, node)
        within, rows = range_of(value), rows_of_person(found.scope.relation)
        if within is not None:
            within = None if rows is None else (rows * min(within[0], 0), rows * max(within[1], 0))
        origins = frozenset(origin for one in value.fields() for origin in one.found)
        known = Field("", "", "integer", within if may_have_range(within) else None, found=origins)
        over = replace(self._framed(over), word="sum", value=whole)
        if value.type != "number":
            return self._add(found, node, over, known)
        steps = self._add(found, node, over, replace(known, between=None))
        return exp.Paren(this=exp.Mul(this=steps, expression=exp.Literal.number(repr(float(_step_of(value))))))

    def _whole(self, found: _Found, node: exp.Window) -> tuple[Expr, Expr]:
        """The value that is added, and its whole steps. NULL for what is no number."""
        of = node.this.this
        if unread_arguments(node.this, "this") or isinstance(of, exp.Star | exp.Distinct):
            self._refuse(found.scope, node)
        value = found.scope.translate(of)
        if value.type not in ("integer", "number", "boolean"):
            self.sql.unknown(node, f"{of.sql()} is not a number. Cast it to DOUBLE.", code="sql-not-a-number")
        if value.type == "number":
            steps = call("round", call("multiply", value, Const(float(1 / _step_of(value)), "number")))
            return value, call("cast", steps, detail="BIGINT", kind="integer")
        return value, value if value.type == "integer" else call("cast", value, detail="BIGINT", kind="integer")

    def _mean(self, found: _Found, node: exp.Window, over: Over) -> exp.Expression:
        """The sum over the count."""
        total = self._summed(found, node, over)
        counted = replace(self._framed(over), word="count", value=self._whole(found, node)[1])
        count = self._add(found, node, counted, Field("", "", "integer"))
        none = exp.Nullif(this=count, expression=exp.Literal.number(0))
        return exp.Paren(this=exp.Div(this=total, expression=none))

    def _framed(self, over: Over) -> Over:
        """An aggregate over rows that are counted from the row at hand needs a total order, or none."""
        if over.order and over.frame is not None:
            return replace(over, total=True)
        return over if over.frame in (None, (None, None)) else replace(over, total=True)

    def _add(self, found: _Found, node: exp.Window, over: Over, known: Field) -> exp.Column:
        if over.value is not None and over.value.type == "other":
            self._refuse(found.scope, node)
        column = self.sources.names.fresh("", known)
        found.columns.append((column, over))
        return stands_for(node, column)

    # --- refusals -------------------------------------------------------------------------------------------

    def _need_order(self, found: _Found, node: exp.Window, over: Over) -> None:
        if not over.order:
            what = "This window function depends on an order."
            self.sql.refuse(node, what, self._instead(found.scope), code="sql-window")

    def _refuse(self, scope: Scope, node: exp.Expression) -> NoReturn:
        self.sql.refuse(
            node,
            "In a query in FROM, window functions of one person's rows are supported: ROW_NUMBER, RANK, DENSE_RANK, "
            "LAG, LEAD, FIRST_VALUE, LAST_VALUE, COUNT, SUM, AVG, MIN, MAX.",
            self._instead(scope),
            code="sql-window",
        )

    def _instead(self, scope: Scope) -> str:
        """A window that is supported: in the order of a column that people differ in, if there is one."""
        person = scope.relation.person
        if person is None or not person.name:
            return "Join the table that has the person's column, and write PARTITION BY this column."
        others = [one.name for one in scope.relation.fields if one != person and one.type != "other"]
        dated = [one.name for one in scope.relation.fields if one.type in ("date", "timestamp")]
        order = (*dated, *others, person.name)[0]
        return f"Write ROW_NUMBER() OVER (PARTITION BY {person.name} ORDER BY {order})."

    def _refuse_frame(self, node: exp.Expression) -> NoReturn:
        what = "Which rows count is said by ROWS BETWEEN, with whole numbers."
        instead = "BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING, or ROWS BETWEEN 2 PRECEDING AND CURRENT ROW."
        self.sql.refuse(node, what, f"Write ROWS {instead}", code="sql-window")


def _step_of(value: Expr) -> Fraction:
    within = range_of(value)
    if within is None or not any(within):
        return _OPEN_STEP
    return min(power_of_two_below(Fraction(max(map(abs, within))) / _FINENESS), Fraction(1))


Rule = Callable[[Windows, _Found, Any, Over], exp.Expression]


def _worded(rule: Callable[[Windows, _Found, Any, Over, str], exp.Expression], word: str) -> Rule:
    return lambda windows, found, node, over: rule(windows, found, node, over, word)


WINDOWS: dict[type[exp.Expression], Rule] = {
    exp.RowNumber: _worded(Windows._numbered, "row_number"),
    exp.Rank: _worded(Windows._numbered, "rank"),
    exp.DenseRank: _worded(Windows._numbered, "dense_rank"),
    exp.Lag: _worded(Windows._shifted, "lag"),
    exp.Lead: _worded(Windows._shifted, "lead"),
    exp.FirstValue: _worded(Windows._ended, "first_value"),
    exp.LastValue: _worded(Windows._ended, "last_value"),
    exp.Count: Windows._counted,
    exp.Sum: Windows._summed,
    exp.Avg: Windows._mean,
    exp.Min: _worded(Windows._extreme, "min"),
    exp.Max: _worded(Windows._extreme, "max"),
}
"""The window functions of one person's rows. Every other is refused."""
