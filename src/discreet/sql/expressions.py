"""Scalar expressions of a question. Only what is listed here can be written, printed or run.

A `Call` names one operation of `OPERATIONS`. Each engine prints the operation in its own dialect, so that it never
fails on a value. Types and ranges follow from the declared columns. Values are clamped to their range before they are
added, so a range that is too narrow biases an answer but never breaks its promise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from discreet.sql.schema import Type

Range = tuple[float, float]
Origin = tuple[str, str]


@dataclass(frozen=True)
class Field:
    """A column of a relation: the name used in statements (`id`), and what is known about its values.

    `origin` is the table and column that it copies. `frequency` is how many rows with the same value may take part in a
    join. `found` lists the columns whose range must be found before the range of this field is known. `other` is the
    group of the values that are not in `choices`.
    """

    id: str
    name: str
    type: Type
    between: tuple[Any, Any] | None = None
    choices: tuple[Any, ...] | None = None
    origin: Origin | None = None
    frequency: int | Literal["auto"] | None = None
    found: frozenset[Origin] = frozenset()
    other: Any = None


class Expr:
    """An expression over the fields of one relation."""

    type: Type

    def fields(self) -> Iterator[Field]:
        """Every field that it reads."""
        yield from ()


@dataclass(frozen=True)
class Ref(Expr):
    """The value of a field."""

    field: Field

    @property
    def type(self) -> Type:  # type: ignore[override]
        return self.field.type

    def fields(self) -> Iterator[Field]:
        yield self.field


@dataclass(frozen=True)
class Const(Expr):
    """A literal of the question. None is NULL."""

    value: Any
    type: Type


@dataclass(frozen=True)
class Call(Expr):
    """One operation on values. `detail` is part of its name: the unit of a date part, the type of a cast, or a function
    of released numbers.
    """

    op: str
    args: tuple[Expr, ...]
    type: Type
    detail: str = ""

    def fields(self) -> Iterator[Field]:
        for argument in self.args:
            yield from argument.fields()


@dataclass(frozen=True)
class Ordering:
    """A value by which rows are sorted."""

    expr: Expr
    descending: bool
    nulls_first: bool

    @property
    def way(self) -> str:
        """What stands after the value in ORDER BY."""
        return f"{'DESC' if self.descending else 'ASC'} NULLS {'FIRST' if self.nulls_first else 'LAST'}"


@dataclass(frozen=True)
class Window(Expr):
    """A function of the rows around a row. `detail` is the frame: which of them count, as it is written in SQL."""

    function: str
    args: tuple[Expr, ...]
    type: Type
    partition: tuple[Expr, ...] = ()
    order: tuple[Ordering, ...] = ()
    detail: str = ""

    def fields(self) -> Iterator[Field]:
        for part in (*self.args, *self.partition, *(one.expr for one in self.order)):
            yield from part.fields()


def with_fields(expr: Expr, known: Mapping[Field, Field]) -> Expr:
    """An expression in which fields are replaced by others."""
    match expr:
        case Ref(field=field):
            return Ref(known.get(field, field))
        case Call(args=args):
            return replace(expr, args=tuple(with_fields(arg, known) for arg in args))
    return expr


def walk(expr: Expr) -> Iterator[Expr]:
    """An expression and everything in it."""
    yield expr
    match expr:
        case Call(args=args):
            inside: tuple[Expr, ...] = args
        case Window(args=args, partition=partition, order=order):
            inside = (*args, *partition, *(one.expr for one in order))
        case _:
            inside = ()
    for part in inside:
        yield from walk(part)


@dataclass(frozen=True)
class Operation:
    """The result type, given the types of the arguments, and how many arguments of which kind are accepted."""

    type_of: Callable[[tuple[Expr, ...]], Type]
    least: int = 1
    most: int | None = 1
    takes: Kind = "any"


Kind = Literal["any", "numbers", "texts", "dates", "conditions", "alike", "difference", "cases"]
"""What an operation takes: arguments of one family, or `alike` ones of whichever."""


def family(expr: Expr) -> str:
    """What an expression can be compared with: numbers with numbers, dates with dates, NULL with everything."""
    if isinstance(expr, Const) and expr.value is None:
        return "null"
    return {"integer": "numbers", "number": "numbers", "date": "dates", "timestamp": "dates"}.get(expr.type, expr.type)


def fits(op: str, args: tuple[Expr, ...]) -> bool:
    """Whether the operation is defined for arguments of these types."""
    kinds = [family(arg) for arg in args]
    known = {kind for kind in kinds if kind != "null"}
    match OPERATIONS[op].takes:
        case "numbers":
            return known <= {"numbers"} and (op != "round" or all(_is_whole(arg) for arg in args[1:]))
        case "texts" if op == "substring":
            return kinds[0] in ("text", "null") and all(_is_whole(arg) for arg in args[1:])
        case "texts":
            return known <= {"text"}
        case "dates":
            return known <= {"dates"}
        case "conditions":
            return known <= {"boolean"}
        case "alike":
            return len(known) <= 1 and "other" not in known
        case "difference":
            return known <= {"numbers"} or (known == {"dates"} and "null" not in kinds)
        case "cases":
            results = {kind for kind in (*kinds[1:-1:2], kinds[-1]) if kind != "null"}
            return set(kinds[:-1:2]) <= {"boolean", "null"} and len(results) <= 1 and "other" not in results
    return True


def _is_whole(expr: Expr) -> bool:
    """Whether an expression is an integer, such as a number of digits or a position in a text."""
    return expr.type == "integer" or family(expr) == "null"


def _is(kind: Type) -> Callable[[tuple[Expr, ...]], Type]:
    return lambda args: kind


def _numeric(args: tuple[Expr, ...]) -> Type:
    return "integer" if all(arg.type in ("integer", "boolean") for arg in args) else "number"


def _first(args: tuple[Expr, ...]) -> Type:
    """The type of the first argument that has one. A mix of integers and other numbers has the type number."""
    known = [arg.type for arg in args if not (isinstance(arg, Const) and arg.value is None)]
    if "number" in known and set(known) <= {"integer", "number"}:
        return "number"
    if "timestamp" in known and set(known) <= {"date", "timestamp"}:
        return "timestamp"
    return known[0] if known else "other"


def _branches(args: tuple[Expr, ...]) -> Type:
    return _first((*args[1:-1:2], args[-1]))


def _difference(args: tuple[Expr, ...]) -> Type:
    return "integer" if args[0].type in ("date", "timestamp") else _numeric(args)


OPERATIONS: dict[str, Operation] = {
    **{op: Operation(_numeric, 2, 2, "numbers") for op in ("add", "multiply", "modulo", "integer_divide")},
    "subtract": Operation(_difference, 2, 2, "difference"),
    "divide": Operation(_is("number"), 2, 2, "numbers"),
    **{op: Operation(_numeric, takes="numbers") for op in ("negate", "abs", "sign")},
    "round": Operation(_is("number"), 1, 2, "numbers"),
    **{op: Operation(_is("number"), takes="numbers") for op in ("floor", "ceil", "sqrt", "ln", "exp")},
    "power": Operation(_is("number"), 2, 2, "numbers"),
    **{op: Operation(_is("boolean"), 2, 2, "alike") for op in ("eq", "ne", "lt", "le", "gt", "ge", "same")},
    **{op: Operation(_is("boolean"), 2, 2, "texts") for op in ("like", "ilike")},
    **{op: Operation(_is("boolean"), 2, None, "conditions") for op in ("and", "or")},
    "in": Operation(_is("boolean"), 2, None, "alike"),
    "not": Operation(_is("boolean"), takes="conditions"),
    "is_null": Operation(_is("boolean")),
    "is_number": Operation(_is("boolean"), takes="numbers"),
    "case": Operation(_branches, 3, None, "cases"),
    **{op: Operation(_first, 1, None, "alike") for op in ("coalesce", "least", "greatest")},
    "nullif": Operation(_first, 2, 2, "alike"),
    **{op: Operation(_is("text"), takes="texts") for op in ("lower", "upper", "trim")},
    "length": Operation(_is("integer"), takes="texts"),
    "substring": Operation(_is("text"), 2, 3, "texts"),
    "concat": Operation(_is("text"), 1, None, "texts"),
    "joined": Operation(_is("text"), 2, 2, "texts"),
    "part": Operation(_is("integer"), takes="dates"),
    "truncate": Operation(_first, takes="dates"),
    "days_between": Operation(_is("integer"), 2, 2, "dates"),
    "cast": Operation(_first),
    "released": Operation(_first, 0, None),
}
PARTS: dict[str, Range | None] = {
    "year": None,
    "quarter": (1, 4),
    "month": (1, 12),
    "week": (1, 53),
    "day": (1, 31),
    "dayofweek": (0, 6),
    "hour": (0, 23),
    "minute": (0, 59),
    "second": (0, 59),
}
"""Parts of a date that may be asked for, and the values they take."""
UNITS = ("year", "quarter", "month", "week", "day", "hour")


def call(op: str, *args: Expr, detail: str = "", kind: Type | None = None) -> Call:
    """An operation on expressions, with its type."""
    return Call(op, args, kind or OPERATIONS[op].type_of(args), detail)


def present(value: Expr) -> Expr:
    """The condition that a value is not NULL."""
    return call("not", call("is_null", value))


def has_number(value: Expr) -> Expr:
    """The condition that a value is a number. Sums, means and quantiles skip NaN as they skip NULL. Integers are never
    NaN.
    """
    return call("is_number", value) if value.type == "number" else present(value)


def conjuncts(condition: Expr) -> list[Expr]:
    """The conditions that must all hold."""
    if isinstance(condition, Call) and condition.op == "and":
        return [part for arg in condition.args for part in conjuncts(arg)]
    return [condition]
