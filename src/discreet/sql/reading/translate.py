"""From scalar expressions of the syntax tree to ours. What is not in `ALLOWED`, the table at the end, is refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NoReturn

from sqlglot import exp

from discreet.engines.duckdb.dialect import quote_text
from discreet.sql.expressions import OPERATIONS, PARTS, UNITS, Call, Const, Expr, Field, Ref, call, family, fits
from discreet.sql.reading.instead import instead_of
from discreet.sql.reading.parse import Text
from discreet.sql.reading.values.literals import MONTHS, SECONDS, fold_numbers, later, moment_of, read_date
from discreet.sql.reading.values.public_values import constant_of
from discreet.sql.reading.values.written_out import (
    FORMATS,
    bucket,
    day_name,
    day_of_year,
    formatted,
    iso_weekday,
    month_name,
    size_of,
    towards_zero,
)
from discreet.sql.schema import Type

Lookup = Callable[[exp.Column], Field]
"""What field of the relation a name stands for."""
Rule = Callable[["Translator", Any], Expr]
"""What a node of the syntax tree becomes."""

_TYPES: dict[Any, tuple[Type, str]] = {
    exp.DataType.Type.INT: ("integer", "INTEGER"),
    exp.DataType.Type.BIGINT: ("integer", "BIGINT"),
    exp.DataType.Type.DOUBLE: ("number", "DOUBLE"),
    # how exact FLOAT and REAL are is not in the standard; FLOAT is DOUBLE in PostgreSQL
    exp.DataType.Type.FLOAT: ("number", "DOUBLE"),
    exp.DataType.Type.VARCHAR: ("text", "VARCHAR"),
    exp.DataType.Type.TEXT: ("text", "VARCHAR"),
    exp.DataType.Type.BOOLEAN: ("boolean", "BOOLEAN"),
    exp.DataType.Type.DATE: ("date", "DATE"),
    exp.DataType.Type.TIMESTAMP: ("timestamp", "TIMESTAMP"),
    exp.DataType.Type.TIMESTAMPNTZ: ("timestamp", "TIMESTAMP"),
}
"""The types a value may be cast to, and how they are written."""
_WITH_DIGITS = ("integer", "number", "date", "timestamp")
_SPECIAL = re.compile("inf|nan|epoch|today|now|tomorrow")
"""Numbers and dates that some engine reads in a text without digits."""
_WORDS = {"dow": "dayofweek", "weekday": "dayofweek"}
_COMPUTED_PARTS = {"doy": day_of_year, "dayofyear": day_of_year, "isodow": iso_weekday}
"""Parts of a date that are computed from others."""
_COMPARED = ("eq", "ne", "lt", "le", "gt", "ge", "same", "in")
_WRITTEN = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_WRITTEN |= {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "modulo": "%"}
"""Operations as people write them."""
_LONGEST_SHOWN = 40
_MOST_BUCKETS = _MOST_PARTS = 10_000
_READ: dict[type[exp.Expression], set[str]] = {
    exp.Between: {"low", "high"},
    exp.Case: {"ifs", "default"},
    exp.If: {"true", "false"},
    exp.Round: {"decimals"},
    exp.Substring: {"start", "length"},
    exp.TimestampTrunc: {"unit"},
    exp.DateTrunc: {"unit"},
    exp.DateDiff: {"unit", "date_part_boundary"},
    exp.Like: {"negate"},
    exp.ILike: {"negate"},
    exp.Least: {"ignore_nulls"},
    exp.Greatest: {"ignore_nulls"},
    exp.In: {"query", "unnest", "field"},
    exp.Interval: {"unit"},
    exp.Cast: {"to"},
    exp.TryCast: {"to"},
    exp.Literal: {"is_string"},
    exp.Column: {"table"},
    exp.TimeToStr: {"format"},
    exp.WidthBucket: {"min_value", "max_value", "num_buckets"},
}
"""The arguments of a node that are read below, besides this, expression and expressions. Others are never dropped."""
_HARMLESS = {"safe", "coalesce", "typed", "big_int", "requires_string", "returns_list_for_maps"}
"""Arguments that sqlglot sets by itself, and that change nothing here."""


class Translator:
    """Translates expressions over one relation, and refuses what is not listed. `allowed` is the list, and `read` says
    which arguments of its nodes are read.
    """

    allowed: ClassVar[Mapping[type[exp.Expression], Rule]]
    read: ClassVar[Mapping[type[exp.Expression], set[str]]] = {}

    def __init__(self, sql: Text, lookup: Lookup) -> None:
        self.sql, self.lookup = sql, lookup

    def __call__(self, node: exp.Expression) -> Expr:
        self._check_all_is_read(node)
        if type(node) not in self.allowed:
            self.refuse(node)
        return self.allowed[type(node)](self, node)

    def _in_parentheses(self, node: exp.Paren) -> Expr:
        return self(node.this)

    def _field(self, node: exp.Column) -> Expr:
        return Ref(self.lookup(node))

    def _sum(self, node: exp.Add | exp.Sub) -> Expr:
        if isinstance(node.expression, exp.Interval):
            return self._moved(node, node.this, node.expression)
        if isinstance(node, exp.Add) and isinstance(node.this, exp.Interval):
            return self._moved(node, node.expression, node.this)
        return self._checked(node, "add" if isinstance(node, exp.Add) else "subtract", node.this, node.expression)

    def _quotient(self, node: exp.IntDiv) -> Expr:
        """`//`: of integers it is rounded towards 0, and of other numbers it is `/`, as `/` is in PostgreSQL."""
        args = self(node.this), self(node.expression)
        whole = all(arg.type == "integer" for arg in args)
        return self._applied(node, "integer_divide" if whole else "divide", args)

    def _check_all_is_read(self, node: exp.Expression) -> None:
        args = node.args.items()
        given = {name for name, value in args if isinstance(value, exp.Expression) or value not in (None, False, [])}
        known = _READ.get(type(node), set()) | self.read.get(type(node), set())
        if given - known - _HARMLESS - {"this", "expression", "expressions"}:
            self.refuse(node)

    def refuse(self, node: exp.Expression) -> NoReturn:
        """Raise an error that says that this is not supported, and what to write instead."""
        name = self.sql.name(node)
        what, instead = f"{name} is not supported.", instead_of(name, node)
        code = "sql-function"
        if isinstance(node, exp.AggFunc):
            what, instead = f"{name} is not supported here.", _instead_of_aggregate(node)
            code = "sql-misplaced-aggregate"
        elif isinstance(node, exp.Subquery | exp.Query | exp.Exists):
            what = "A query inside an expression is supported in WHERE, and in the SELECT list of a query in FROM."
            instead = "Write it there, or as a JOIN."
            code = "sql-subquery"
        elif isinstance(node, exp.Window):
            what, instead = "Window functions are not supported.", "Aggregate with GROUP BY instead."
            code = "sql-window"
        elif isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets):
            what, instead = f"{self.sql.name(node)} is not supported.", "List the columns of GROUP BY."
            code = "sql-grouping"
        elif isinstance(node, exp.Interval):
            what = "An INTERVAL is supported only when it is added to or subtracted from a literal date."
            instead = "Write DATE '2024-01-01' + INTERVAL 1 DAY."
            code = "sql-interval"
        self.sql.refuse(node, what, instead, code=code)

    def _checked(self, node: exp.Expression, op: str, *parts: exp.Expression, detail: str = "") -> Expr:
        return self._applied(node, op, tuple(self(part) for part in parts), detail)

    def _applied(self, node: exp.Expression, op: str, args: tuple[Expr, ...], detail: str = "") -> Expr:
        """An operation on parts that are translated: once each, or what is nested takes twice as long each time."""
        rule = OPERATIONS[op]
        if len(args) < rule.least or (rule.most is not None and len(args) > rule.most):
            what = f"{op.upper()} has the wrong number of arguments. Write as many as it takes."
            self.sql.unknown(node, what, code="sql-arguments")
        args = read_date(args)
        if not fits(op, args):
            self._check_dates(node, op, args)
            shown = ", ".join(arg.type for arg in args)
            instead = (op in _COMPARED and _with_other_quotes(op, args)) or "Cast one of them."
            what = f"{_WRITTEN.get(op) or op.upper().replace('_', ' ')} is not defined for {shown}. {instead}"
            self.sql.unknown(node, what, code="sql-types")
        return fold_numbers(op, args) or call(op, *args, detail=detail)

    def _check_dates(self, node: exp.Expression, op: str, args: tuple[Expr, ...]) -> None:
        """Name a text that is compared with a date and is none."""
        texts = [arg.value for arg in args if isinstance(arg, Const) and isinstance(arg.value, str)]
        wrong = [text for text in texts if moment_of(text) is None]
        if wrong and op in _COMPARED and {arg.type for arg in args} & {"date", "timestamp"}:
            self._refuse_date(node, wrong[0])

    def _refuse_date(self, node: exp.Expression, text: str) -> NoReturn:
        shown = text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
        self.sql.unknown(node, f"{quote_text(shown)} is not a date. Write it as DATE '2020-01-31'.", code="sql-date")

    def _constant(self, node: exp.Expression) -> Const:
        if isinstance(node, exp.Null):
            return Const(None, "other")
        if isinstance(node, exp.Boolean):
            return Const(bool(node.this), "boolean")
        if node.args.get("is_string"):
            return Const(node.this, "text")
        text = str(node.this)
        if len(text) > 40 or float(text) in (float("inf"), float("-inf")):
            self.sql.unknown(node, "This number is too large. Write it with fewer digits.", code="sql-large-number")
        return Const(int(text), "integer") if text.isdecimal() else Const(float(text), "number")

    def _moved(self, node: exp.Expression, of: exp.Expression, interval: exp.Interval) -> Expr:
        """A date literal plus or minus an interval literal: a timestamp, as in the engine."""
        self._check_all_is_read(interval)
        this, many, unit = self(of), interval.this, interval.args.get("unit")
        name = unit.name.lower().removesuffix("s") if isinstance(unit, exp.Var) else ""
        written = isinstance(many, exp.Literal) and many.this.removeprefix("-").isdecimal() and len(many.this) < 10
        if not isinstance(this, Const) or this.type not in ("date", "timestamp") or not written:
            self.refuse(interval)
        if name not in MONTHS and name not in SECONDS:
            self.refuse(interval)
        amount = -int(many.this) if isinstance(node, exp.Sub) else int(many.this)
        try:
            return Const(later(this.value, amount, name), "timestamp")
        except (ValueError, OverflowError):
            self.sql.unknown(node, "This date is not in the years 1 to 9999. Write another one.", code="sql-date")

    def _between(self, node: exp.Between) -> Expr:
        value, low, high = self(node.this), self(node.args["low"]), self(node.args["high"])
        both = self._applied(node, "ge", (value, low)), self._applied(node, "le", (value, high))
        return self._written_out(node, call("and", *both))

    def _in(self, node: exp.In) -> Expr:
        if node.args.get("query") or node.args.get("unnest") or node.args.get("field"):
            what = "IN with a query is supported in WHERE, and in the SELECT list of a query in FROM."
            self.sql.refuse(node, what, "Write it there, or list the values.", code="sql-subquery")
        return self._checked(node, "in", node.this, *node.expressions)

    def _is(self, node: exp.Is) -> Expr:
        this = self(node.this)
        if isinstance(node.expression, exp.Null):
            return call("is_null", this)
        if isinstance(node.expression, exp.Boolean):
            return call("same", this, self._constant(node.expression))
        self.refuse(node)

    def _like(self, node: exp.Like, op: str = "like") -> Expr:
        if not isinstance(node.expression, exp.Literal):
            self.sql.refuse(node, "The pattern of LIKE must be a literal.", "Write LIKE 'A%'.", code="sql-not-literal")
        found = self._checked(node, op, node.this, node.expression)
        return call("not", found) if node.args.get("negate") else found

    def _ilike(self, node: exp.ILike) -> Expr:
        return self._like(node, "ilike")  # type: ignore[arg-type]

    def _case(self, node: exp.Case) -> Expr:
        tested = None if node.args.get("this") is None else self(node.this)
        args: list[Expr] = []
        for branch in node.args["ifs"]:
            condition = self(branch.this)
            args += [condition if tested is None else call("eq", tested, condition), self(branch.args["true"])]
        default = node.args.get("default")
        args.append(Const(None, "other") if default is None else self(default))
        found = self._cases(node, tuple(args))
        return found if tested is None else self._written_out(node, found)

    def _cases(self, node: exp.Expression, args: tuple[Expr, ...]) -> Expr:
        if not fits("case", args):
            what = "CASE takes conditions, and results of one type. Cast some of them."
            self.sql.unknown(node, what, code="sql-types")
        return call("case", *args)

    def _if(self, node: exp.If) -> Expr:
        default = node.args.get("false")
        no = Const(None, "other") if default is None else self(default)
        return self._cases(node, (self(node.this), self(node.args["true"]), no))

    def _round(self, node: exp.Round) -> Expr:
        digits = node.args.get("decimals")
        if digits is None:
            return self._checked(node, "round", node.this)
        many = self(digits)
        if not isinstance(many, Const) and not isinstance(constant_of(many), int):
            what = "The number of digits of ROUND must be a literal."
            self.sql.refuse(node, what, "Write ROUND(x, 2).", code="sql-not-literal")
        checked = self._checked(node, "round", node.this, digits)
        assert isinstance(checked, Call)
        return (
            checked if isinstance(many, Const) else call("round", checked.args[0], Const(constant_of(many), "integer"))
        )

    def _trim(self, node: exp.Trim) -> Expr:
        return self.refuse(node) if node.expression else self._checked(node, "trim", node.this)

    def _substring(self, node: exp.Substring) -> Expr:
        parts = (node.this, node.args.get("start"), node.args.get("length"))
        return self._checked(node, "substring", *(part for part in parts if part is not None))

    def _extract(self, node: exp.Extract) -> Expr:
        return self._part(node, node.this.name.lower(), node.expression)

    def _part(self, node: exp.Expression, name: str, of: exp.Expression) -> Expr:
        name = _WORDS.get(name, name)
        if name in _COMPUTED_PARTS:
            return self._written_out(node, _COMPUTED_PARTS[name](self._date(node, of)))
        if name not in PARTS:
            what = f"The part {name.upper()} of a date is not supported."
            self.sql.refuse(node, what, f"Use {', '.join(PARTS)}.", code="sql-date-part")
        return self._checked(node, "part", self._date_in(of), detail=name)

    def _date_in(self, of: exp.Expression) -> exp.Expression:
        # sqlglot wraps the arguments of its date functions; the wrapper has no meaning of its own
        wrapped = isinstance(of, exp.TsOrDsToDate | exp.TsOrDsToTimestamp)
        return of.this if wrapped else of

    def _date(self, node: exp.Expression, of: exp.Expression) -> Expr:
        """An argument that must be a date or a timestamp."""
        [value] = read_date((self(self._date_in(of)), Const(None, "date")))[:1]
        if value.type not in ("date", "timestamp"):
            what = f"{self.sql.name(node)} takes a date, not {value.type}. Cast it to DATE."
            self.sql.unknown(node, what, code="sql-types")
        return value

    def _strftime(self, node: exp.TimeToStr) -> Expr:
        pattern = node.args["format"]
        if not isinstance(pattern, exp.Literal) or not pattern.is_string:
            what = "The format of STRFTIME must be a literal."
            self.sql.refuse(node, what, "Write STRFTIME(day, '%Y-%m').", code="sql-not-literal")
        found = formatted(self._date(node, node.this), pattern.this)
        if found is None:
            what = f"This format of {self.sql.name(node)} is not supported."
            self.sql.refuse(node, what, f"Use {', '.join(FORMATS)} and other text.", code="sql-date-part")
        return self._written_out(node, found)

    def _written_out(self, node: exp.Expression, found: Expr) -> Expr:
        """A function that is written out with others, if it is not nested so often that it is too long."""
        if size_of(found) > _MOST_PARTS:
            self.sql.unknown(node, "This expression is too long. Simplify it.", code="sql-too-complex")
        return found

    def _width_bucket(self, node: exp.WidthBucket) -> Expr:
        parts = [node.args.get(name) for name in ("min_value", "max_value", "num_buckets")]
        given: list[Any] = [None if part is None else constant_of(self(part)) for part in parts]
        low, high, many = given
        written = all(isinstance(end, int | float) and abs(end) <= 1e15 for end in (low, high)) and type(many) is int
        if not written or not low < high or not 1 <= many <= _MOST_BUCKETS:
            what = f"WIDTH_BUCKET takes a lower and a higher number, and 1 to {_MOST_BUCKETS:,} buckets, as literals."
            self.sql.refuse(node, what, "Write WIDTH_BUCKET(age, 0, 100, 10).", code="sql-not-literal")
        value = self(node.this)
        if value.type not in ("integer", "number"):
            what = f"WIDTH_BUCKET takes a number, not {value.type}. Cast it to DOUBLE."
            self.sql.unknown(node, what, code="sql-types")
        return self._written_out(node, bucket(value, float(low), float(high), many))

    def _trunc(self, node: exp.Trunc) -> Expr:
        value = self(node.this)
        self._applied(node, "floor", (value,))
        return self._written_out(node, towards_zero(value))

    def _timestamptrunc(self, node: exp.TimestampTrunc) -> Expr:
        unit = node.args["unit"].name.lower()
        if unit not in UNITS:
            what = f"The unit {unit.upper()} is not supported."
            self.sql.refuse(node, what, f"Use {', '.join(UNITS)}.", code="sql-date-part")
        return self._checked(node, "truncate", self._date_in(node.this), detail=unit)

    def _datediff(self, node: exp.DateDiff) -> Expr:
        unit = node.args.get("unit")
        if unit is not None and unit.name.lower() != "day":
            what = "Only differences in days are supported."
            self.sql.refuse(node, what, "Write DATE_DIFF('day', a, b).", code="sql-date-part")
        return self._checked(node, "days_between", self._date_in(node.expression), self._date_in(node.this))

    def _cast(self, node: exp.Cast) -> Expr:
        known = _TYPES.get(node.to.this)
        if known is None or node.to.expressions:
            decimal = node.to.this == exp.DataType.Type.DECIMAL
            what = f"A cast to {'DECIMAL' if decimal else node.to.sql()} is not supported."
            instead = "Write CAST(x AS DOUBLE), or ROUND(x, 2)." if decimal else "Cast to INTEGER, DOUBLE or DATE."
            self.sql.refuse(node, what, instead, code="sql-cast")
        kind, shown = known
        this = self(node.this)
        if isinstance(this, Const) and kind in ("date", "timestamp") and isinstance(this.value, str):
            moment = moment_of(this.value)
            if moment is None:
                self._refuse_date(node, this.value)
            return Const(moment.date() if kind == "date" else moment, kind)
        if isinstance(this, Ref) and this.type == "text" and kind in _WITH_DIGITS and not has_digits(this.field):
            article = "an" if kind == "integer" else "a"
            what = f"No declared choice of {this.field.name} is {article} {kind}, and this is NULL for all of them."
            self.sql.refuse(node, what, "Use a column that has such values.", code="sql-cast")
        return call("cast", this, detail=shown, kind=kind)

    def _anonymous(self, node: exp.Anonymous) -> Expr:
        name, parts = node.name.lower(), node.expressions
        if name in ("date_part", "datepart") and len(parts) == 2 and isinstance(parts[0], exp.Literal):
            return self._part(node, str(parts[0].this).lower(), parts[1])
        self.refuse(node)

    def _to_date(self, node: exp.Date) -> Expr:
        return (
            self.refuse(node)
            if node.expressions
            else self._cast(exp.Cast(this=node.this, to=exp.DataType.build("date")))
        )


def has_digits(field: Field) -> bool:
    """Whether a text may be a number or a date in some row. Without declared choices it may."""
    known = None if field.choices is None else [one for one in (*field.choices, field.other) if one is not None]
    return known is None or any(any(map(str.isdigit, one)) or _SPECIAL.search(one.lower()) for one in known)


def _instead_of_aggregate(node: exp.Expression) -> str:
    """What to write instead of an aggregate where there is none: in WHERE, or in another aggregate."""
    part: Any = node
    above: Any = node.parent
    while above is not None and not isinstance(above, exp.Select | exp.AggFunc):
        part, above = above, above.parent
    if isinstance(above, exp.AggFunc):
        return "Aggregate in a query in FROM first: SELECT AVG(n) FROM (SELECT city, COUNT(*) AS n … GROUP BY city)."
    if isinstance(part, exp.Where):
        return "WHERE is for rows. Write a condition on groups in HAVING, after GROUP BY: HAVING COUNT(*) > 10."
    return "Aggregate in the SELECT list, HAVING or ORDER BY."


def _with_other_quotes(op: str, args: tuple[Expr, ...]) -> str:
    """How a constant is written that is compared with a column: 30 and not '30' with numbers. Empty if it is none, and
    for the order of texts, in which '9' is after '10'.
    """
    values = [arg.value for arg in args if isinstance(arg, Const) and arg.value is not None]
    kinds = {family(arg) for arg in args if not isinstance(arg, Const)}
    texts = [one for one in values if isinstance(one, str) and re.fullmatch(r"-?\d{1,15}(\.\d{1,15})?", one, re.ASCII)]
    numbers = [one for one in values if isinstance(one, int | float) and not isinstance(one, bool)]
    if texts and kinds == {"numbers"}:
        return f"Write {texts[0]} without quotes."
    in_order = op in ("lt", "le", "gt", "ge")
    return f"Write '{numbers[0]}' in quotes." if numbers and kinds == {"text"} and not in_order else ""


def _one(op: str) -> Rule:
    return lambda translator, node: translator._checked(node, op, node.this)


def _two(op: str) -> Rule:
    return lambda translator, node: translator._checked(node, op, node.this, node.expression)


def _several(op: str) -> Rule:
    def rule(translator: Translator, node: exp.Expression) -> Expr:
        first = [] if node.args.get("this") is None else [node.this]
        return translator._checked(node, op, *first, *node.expressions)

    return rule


def _date_part(name: str) -> Rule:
    return lambda translator, node: translator._part(node, name, node.this)


def _of_date(write_out: Callable[[Expr], Expr]) -> Rule:
    return lambda translator, node: translator._written_out(node, write_out(translator._date(node, node.this)))


ALLOWED: dict[type[exp.Expression], Rule] = {
    # values
    exp.Paren: Translator._in_parentheses,
    exp.Column: Translator._field,
    exp.Literal: Translator._constant,
    exp.Boolean: Translator._constant,
    exp.Null: Translator._constant,
    exp.Cast: Translator._cast,
    exp.TryCast: Translator._cast,
    # arithmetic
    exp.Add: Translator._sum,
    exp.Sub: Translator._sum,
    exp.Mul: _two("multiply"),
    exp.Div: _two("divide"),
    exp.IntDiv: Translator._quotient,
    exp.Mod: _two("modulo"),
    exp.Pow: _two("power"),
    exp.Neg: _one("negate"),
    exp.Abs: _one("abs"),
    exp.Sign: _one("sign"),
    exp.Sqrt: _one("sqrt"),
    exp.Ln: _one("ln"),
    exp.Exp: _one("exp"),
    exp.Floor: _one("floor"),
    exp.Ceil: _one("ceil"),
    exp.Round: Translator._round,
    exp.Trunc: Translator._trunc,
    exp.WidthBucket: Translator._width_bucket,
    exp.Least: _several("least"),
    exp.Greatest: _several("greatest"),
    # conditions
    exp.EQ: _two("eq"),
    exp.NEQ: _two("ne"),
    exp.LT: _two("lt"),
    exp.LTE: _two("le"),
    exp.GT: _two("gt"),
    exp.GTE: _two("ge"),
    exp.NullSafeEQ: _two("same"),
    exp.And: _two("and"),
    exp.Or: _two("or"),
    exp.Not: _one("not"),
    exp.Between: Translator._between,
    exp.In: Translator._in,
    exp.Is: Translator._is,
    exp.Case: Translator._case,
    exp.If: Translator._if,
    exp.Coalesce: _several("coalesce"),
    exp.Nullif: _two("nullif"),
    # text
    exp.Like: Translator._like,
    exp.ILike: Translator._ilike,
    exp.DPipe: _two("joined"),
    exp.Concat: _several("concat"),
    exp.Lower: _one("lower"),
    exp.Upper: _one("upper"),
    exp.Length: _one("length"),
    exp.Trim: Translator._trim,
    exp.Substring: Translator._substring,
    # dates
    exp.Date: Translator._to_date,
    exp.DateDiff: Translator._datediff,
    exp.DateTrunc: Translator._timestamptrunc,
    exp.TimestampTrunc: Translator._timestamptrunc,
    exp.Extract: Translator._extract,
    exp.Year: _date_part("year"),
    exp.Quarter: _date_part("quarter"),
    exp.Month: _date_part("month"),
    exp.Week: _date_part("week"),
    exp.Day: _date_part("day"),
    exp.DayOfWeek: _date_part("dayofweek"),
    exp.DayOfWeekIso: _date_part("isodow"),
    exp.DayOfMonth: _date_part("day"),
    exp.DayOfYear: _date_part("dayofyear"),
    exp.WeekOfYear: _date_part("week"),
    exp.Dayname: _of_date(day_name),
    exp.Monthname: _of_date(month_name),
    exp.TimeToStr: Translator._strftime,
    exp.Hour: _date_part("hour"),
    exp.Minute: _date_part("minute"),
    exp.Second: _date_part("second"),
    # functions that sqlglot does not know: DATE_PART only
    exp.Anonymous: Translator._anonymous,
}
"""The allow-list: the nodes of the syntax tree that may see the data. `Translator` refuses every other node."""
Translator.allowed = ALLOWED
