"""Expressions over released numbers, which are nobody's any more: windows, and functions that only DuckDB computes.

What may be written is still listed: the released numbers are computed in a database, and nothing but arithmetic on them
should reach it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from sqlglot import exp

from discreet.sql.expressions import Const, Expr, Ordering, Window, call, fits, walk
from discreet.sql.reading.parse import unread_arguments
from discreet.sql.reading.translate import ALLOWED, Rule, Translator
from discreet.sql.reading.unstopped import LONGEST
from discreet.sql.schema import Type

_SIDES = ("PRECEDING", "FOLLOWING")
_WIDE = re.compile(r"\d{4,}|\*")
Read = Callable[["ReleasedTranslator", Any], tuple[Expr, ...]]
"""The arguments of a function."""


class ReleasedTranslator(Translator):
    """Translates expressions over the keys and the noisy numbers of an answer."""

    def _window(self, node: exp.Window) -> Expr:
        function = node.this
        if unread_arguments(node, "this", "partition_by", "order", "spec", "over") or type(function) not in WINDOWS:
            self._refuse_window(node)
        name, read, kind = WINDOWS[type(function)]
        known = {"this", "expression", "offset", "default", "big_int", "expressions"}
        if unread_arguments(function, *known):
            self._refuse_window(node)
        args = read(self, function)
        if any(arg.type == "other" for arg in args):
            self._refuse_window(node)
        order = tuple(self.ordered(item) for item in (node.args["order"].expressions if node.args.get("order") else ()))
        if not order and name in ORDERED:
            what = f"{name.upper()} needs an order."
            self.sql.refuse(node, what, f"Write {name.upper()}(…) OVER (ORDER BY COUNT(*) DESC).", code="sql-window")
        partition = tuple(self(part) for part in node.args.get("partition_by") or ())
        window = Window(name, args, kind or args[0].type, partition, order, self._frame(node))
        if sum(isinstance(part, Window) for part in walk(window)) > 1:
            what = "A window function inside another is not supported."
            self.sql.refuse(node, what, "Compute the inner one in a column of its own.", code="sql-window")
        return window

    def ordered(self, item: exp.Ordered) -> Ordering:
        """An item of ORDER BY."""
        return Ordering(self(item.this), bool(item.args.get("desc")), bool(item.args.get("nulls_first")))

    def _refuse_window(self, node: exp.Window) -> None:
        what = f"This window function is not supported: {self.sql.name(node.this)}."
        instead = (
            "Write SUM(COUNT(*)) OVER (), RANK() OVER (ORDER BY COUNT(*) DESC) or LAG(COUNT(*)) OVER (ORDER BY …)."
        )
        self.sql.refuse(node, what, instead, code="sql-window")

    def _frame(self, node: exp.Window) -> str:
        """Which rows count, as it is written after ORDER BY."""
        spec = node.args.get("spec")
        if spec is None:
            return ""
        kind = str(spec.args.get("kind") or "").upper()
        if kind not in ("ROWS", "RANGE") or unread_arguments(spec, "kind", "start", "start_side", "end", "end_side"):
            self._refuse_window(node)
        ends = [self._end(node, spec.args.get(name), spec.args.get(f"{name}_side"), kind) for name in ("start", "end")]
        return f"{kind} BETWEEN {ends[0]} AND {ends[1] or 'CURRENT ROW'}"

    def _end(self, node: exp.Window, end: Any, side: Any, kind: str) -> str:
        if end is None or end == "CURRENT ROW":
            return "CURRENT ROW" if end else ""
        if side not in _SIDES:
            self._refuse_window(node)
        if end == "UNBOUNDED":
            return f"UNBOUNDED {side}"
        if kind != "ROWS":
            self._refuse_window(node)
        return f"{self.whole(end, 'The end of a frame')} {side}"

    def whole(self, node: exp.Expression, what: str, least: int = 0) -> int:
        """A literal whole number."""
        value = self(node)
        if not isinstance(value, Const) or not isinstance(value.value, int) or not least <= value.value < 2**31:
            self.sql.unknown(node, f"{what} takes a whole number. Write {max(least, 2)}.", code="sql-limit")
        return int(value.value)

    def _function(self, node: exp.Expression, name: str, kind: Type, parts: tuple[str, ...]) -> Expr:
        given = [node.args.get(part) for part in parts]
        flat = [one for part in given for one in (part if isinstance(part, list) else [part]) if one is not None]
        return call("released", *(self(part) for part in flat), detail=name, kind=kind)

    def _list(self, node: exp.Array) -> Expr:
        values = tuple(map(self, node.expressions))
        if not values or not fits("coalesce", values):
            what = "A list has values of one type."
            self.sql.refuse(node, what, "Write [MIN(cost), MEDIAN(cost), MAX(cost)].", code="sql-types")
        return call("released", *values, detail="list_value", kind="other")

    def _log(self, node: exp.Log) -> Expr:
        if node.expression is None:
            return call("released", self(node.this), detail="log10", kind="number")
        bases = {"2": "log2", "10": "log10"}
        base = node.this.name if isinstance(node.this, exp.Literal) else ""
        if base not in bases:
            self.refuse(node)
        return call("released", self(node.expression), detail=bases[base], kind="number")

    def _pad(self, node: exp.Pad) -> Expr:
        name = "lpad" if node.args.get("is_left") else "rpad"
        if self.whole(node.expression, name.upper()) > LONGEST:
            self.sql.unknown(node, f"A text can be padded to {LONGEST} letters. Write fewer.", code="sql-limit")
        return self._function(node, name, "text", ("this", "expression", "fill_pattern"))

    def _named(self, node: exp.Anonymous) -> Expr:
        if node.name.lower() != "printf":
            return super()._anonymous(node)
        form = node.expressions[0] if node.expressions else None
        if not isinstance(form, exp.Literal) or _WIDE.search(str(form.this)):
            what = "The first argument of PRINTF must be a literal, with widths of at most three digits."
            self.sql.refuse(node, what, "Write PRINTF('%d visits', COUNT(*)).", code="sql-not-literal")
        return call("released", *(self(part) for part in node.expressions), detail="printf", kind="text")


def _arguments(translator: ReleasedTranslator, node: exp.Expression) -> tuple[Expr, ...]:
    return () if node.this is None or isinstance(node.this, exp.Star) else (translator(node.this),)


def _shifted(translator: ReleasedTranslator, node: Any) -> tuple[Expr, ...]:
    """A value of another row: how many rows away, and what stands for a row that is not there."""
    args: list[Expr] = [translator(node.this)]
    if node.args.get("offset") is not None:
        args.append(Const(translator.whole(node.args["offset"], f"The offset of {node.key.upper()}"), "integer"))
    if node.args.get("default") is not None:
        args.append(translator(node.args["default"]))
    return tuple(args)


def _nth(translator: ReleasedTranslator, node: Any) -> tuple[Expr, ...]:
    return translator(node.this), Const(translator.whole(node.args["offset"], "NTH_VALUE", 1), "integer")


def _tiles(translator: ReleasedTranslator, node: Any) -> tuple[Expr, ...]:
    return (Const(translator.whole(node.this, "NTILE", 1), "integer"),)


WINDOWS: dict[type[exp.Expression], tuple[str, Read, Type | None]] = {
    exp.Count: ("count", _arguments, "integer"),
    exp.Sum: ("sum", _arguments, None),
    exp.Avg: ("avg", _arguments, "number"),
    exp.Min: ("min", _arguments, None),
    exp.Max: ("max", _arguments, None),
    exp.Median: ("median", _arguments, "number"),
    exp.Lag: ("lag", _shifted, None),
    exp.Lead: ("lead", _shifted, None),
    exp.FirstValue: ("first_value", _arguments, None),
    exp.LastValue: ("last_value", _arguments, None),
    exp.NthValue: ("nth_value", _nth, None),
    exp.RowNumber: ("row_number", _arguments, "integer"),
    exp.Rank: ("rank", _arguments, "integer"),
    exp.DenseRank: ("dense_rank", _arguments, "integer"),
    exp.PercentRank: ("percent_rank", _arguments, "number"),
    exp.CumeDist: ("cume_dist", _arguments, "number"),
    exp.Ntile: ("ntile", _tiles, "integer"),
}
"""The window functions that may be written, how their arguments are read, and their types. None: as the first one."""
ORDERED = ("lag", "lead", "row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile")
"""Those that mean nothing without an order."""


def _by_name(name: str, kind: Type, *parts: str) -> Rule:
    return lambda translator, node: translator._function(node, name, kind, parts or ("this",))  # type: ignore[attr-defined]


RELEASED: dict[type[exp.Expression], Rule] = {
    exp.Window: ReleasedTranslator._window,  # type: ignore[dict-item]
    exp.Log: ReleasedTranslator._log,  # type: ignore[dict-item]
    exp.Pad: ReleasedTranslator._pad,  # type: ignore[dict-item]
    exp.Anonymous: ReleasedTranslator._named,  # type: ignore[dict-item]
    **{
        node: _by_name(node.__name__.lower(), "number")
        for node in (exp.Cbrt, exp.Sin, exp.Cos, exp.Tan, exp.Asin, exp.Acos, exp.Atan, exp.Degrees, exp.Radians)
    },
    exp.Array: ReleasedTranslator._list,  # type: ignore[dict-item]
    exp.Pi: _by_name("pi", "number", "nothing"),
    exp.Trunc: _by_name("trunc", "number"),
    exp.Left: _by_name("left", "text", "this", "expression"),
    exp.Right: _by_name("right", "text", "this", "expression"),
    exp.Replace: _by_name("replace", "text", "this", "expression", "replacement"),
    exp.Reverse: _by_name("reverse", "text"),
    exp.ConcatWs: _by_name("concat_ws", "text", "expressions"),
    exp.SplitPart: _by_name("split_part", "text", "this", "delimiter", "part_index"),
    exp.StartsWith: _by_name("starts_with", "boolean", "this", "expression"),
    exp.Contains: _by_name("contains", "boolean", "this", "expression"),
    exp.TimeToStr: _by_name("strftime", "text", "this", "format"),
    exp.Monthname: _by_name("monthname", "text"),
    exp.Dayname: _by_name("dayname", "text"),
}
"""What may be computed from released numbers, beside what may be computed from rows."""
ReleasedTranslator.allowed = ALLOWED | RELEASED
ReleasedTranslator.read = {
    exp.Window: {"partition_by", "order", "spec", "over"},
    exp.Pad: {"is_left", "fill_pattern"},
    exp.Replace: {"replacement"},
    exp.SplitPart: {"delimiter", "part_index"},
    exp.TimeToStr: {"format"},
}
