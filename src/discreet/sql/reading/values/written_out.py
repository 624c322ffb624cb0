"""Functions that are written out with others, so that no engine has to know them: names of days, formats, buckets."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from discreet.sql.expressions import Call, Const, Expr, call

DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)

LONGEST_FORMAT = 100
"""The largest number of characters of a format."""


def size_of(expr: Expr) -> int:
    """The number of parts of an expression. A function that is written out uses its argument several times."""
    return 1 + sum(map(size_of, expr.args)) if isinstance(expr, Call) else 1


def part_of(value: Expr, name: str) -> Expr:
    """A part of a date."""
    return call("part", value, detail=name)


def _whole(number: int) -> Const:
    return Const(number, "integer")


def _text_of(number: Expr) -> Expr:
    return call("cast", number, detail="VARCHAR", kind="text")


def _digits(number: Expr, many: int) -> Expr:
    """A number from 0 on with this many digits, zeros first."""
    longer = _text_of(call("add", number, _whole(10**many)))
    return call("substring", longer, _whole(2), _whole(many))


def _named(number: Expr, names: Sequence[str], first: int) -> Expr:
    """The name with this number. NULL for NULL: the last part is empty, or NULL."""
    cases: list[Expr] = []
    for place, name in enumerate(names[:-1], first):
        cases += [call("eq", number, _whole(place)), Const(name, "text")]
    found = call("case", *cases, Const(names[-1], "text"))
    return call("joined", found, call("substring", _text_of(number), _whole(3)))


def day_name(value: Expr, letters: int | None = None) -> Expr:
    """The English name of a day of the week."""
    return _named(part_of(value, "dayofweek"), [name[:letters] for name in DAYS], 0)


def month_name(value: Expr, letters: int | None = None) -> Expr:
    """The English name of a month."""
    return _named(part_of(value, "month"), [name[:letters] for name in MONTHS], 1)


def day_of_year(value: Expr) -> Expr:
    """The number of a day in its year, from 1."""
    return call("add", call("days_between", call("truncate", value, detail="year"), value), _whole(1))


def iso_weekday(value: Expr) -> Expr:
    """The number of a day in its week, from Monday, 1, to Sunday, 7."""
    later = call("modulo", call("add", part_of(value, "dayofweek"), _whole(6)), _whole(7))
    return call("add", later, _whole(1))


def _year(value: Expr) -> Expr:
    year = part_of(value, "year")
    usual = call("and", call("ge", year, _whole(0)), call("le", year, _whole(9999)))
    return call("case", usual, _digits(year, 4), _text_of(year))


_FORMATS: dict[str, Callable[[Expr], Expr]] = {
    "%Y": _year,
    "%m": lambda value: _digits(part_of(value, "month"), 2),
    "%d": lambda value: _digits(part_of(value, "day"), 2),
    "%H": lambda value: _digits(part_of(value, "hour"), 2),
    "%M": lambda value: _digits(part_of(value, "minute"), 2),
    "%S": lambda value: _digits(part_of(value, "second"), 2),
    "%j": lambda value: _digits(day_of_year(value), 3),
    "%u": lambda value: _text_of(iso_weekday(value)),
    "%B": month_name,
    "%b": lambda value: month_name(value, 3),
    "%A": day_name,
    "%a": lambda value: day_name(value, 3),
}
FORMATS = tuple(_FORMATS)
"""The parts of a format of STRFTIME that are supported."""


def formatted(value: Expr, pattern: str) -> Expr | None:
    """A date as text. None if a part of the format is not supported, or if it has none."""
    pieces = [piece for piece in re.split(r"(%.)", pattern) if piece]
    unknown = any("%" in piece and piece not in (*_FORMATS, "%%") for piece in pieces)
    if unknown or len(pattern) > LONGEST_FORMAT or not any(piece in _FORMATS for piece in pieces):
        return None
    texts = [
        _FORMATS[piece](value) if piece in _FORMATS else Const(piece.replace("%%", "%"), "text") for piece in pieces
    ]
    found = texts[0]
    for text in texts[1:]:
        found = call("joined", found, text)
    return found


def towards_zero(value: Expr) -> Expr:
    """A number without its fraction."""
    return call("case", call("lt", value, _whole(0)), call("ceil", value), call("floor", value))


def bucket(value: Expr, low: float, high: float, many: int) -> Expr:
    """Which of equal buckets a number is in: 0 below them, and one more than there are above them."""
    ends = Const(low, "number"), Const(high, "number")
    share = call("divide", call("subtract", value, ends[0]), call("subtract", ends[1], ends[0]))
    place = call("floor", call("multiply", _whole(many), share))
    inside = call("cast", call("add", place, _whole(1)), detail="INTEGER", kind="integer")
    cases = [
        *(call("lt", value, ends[0]), _whole(0)),
        *(call("ge", value, ends[1]), _whole(many + 1)),
        *(call("ge", place, _whole(many)), _whole(many)),  # a quotient just below 1 may be rounded up to it
    ]
    return call("case", *cases, inside)
