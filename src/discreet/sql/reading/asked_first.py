"""Questions inside a question: a query about everybody that stands for a number, or for the values of IN.

It is asked first, and what it released is written into the question around it. `WHERE cost > (SELECT AVG(cost) FROM
visits)` asks for the average with a part of ε, and then compares with the released number, which is nobody's any more.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlglot import exp

from discreet.sql.reading.values.literals import literal
from discreet.sql.schema import Type

Role = Literal["number", "values"]
"""What a query stands for: one number, or what is tested by IN."""
_MARK = "asked first"
"""The entry in the meta data of a node that a released answer replaces. A comment can only set text there."""
VALUES: tuple[Type, ...] = ("integer", "number", "date", "timestamp", "text", "boolean")
"""What a query that stands for one value may be."""
_EXAMPLES: dict[Type, tuple[Any, ...]] = {
    "integer": (1, 0, -1, 10**15),
    "number": (1.0, 0.0, -1.0, 1e15),
    "date": (datetime.date(2000, 1, 1), datetime.date(1, 1, 1), datetime.date(9999, 12, 31)),
    "timestamp": (datetime.datetime(2000, 1, 1), datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31)),
    "text": ("a",),
    "boolean": (True, False),
}
"""A question is planned with the first, until it is known what was released; with each of the others and with NULL, it
must have a plan, too.
"""
EXAMPLES = 1 + max(map(len, _EXAMPLES.values()))


@dataclass(frozen=True)
class _Mark:
    role: Role
    number: int
    type: Type


@dataclass(frozen=True)
class Asked:
    """A question, with a mark in the place of each earlier answer that it needs."""

    query: Any

    @property
    def needs(self) -> tuple[int, ...]:
        """The numbers of these answers."""
        return tuple(sorted({mark.number for _, mark in _marks(self.query)}))

    def text(self, released: Mapping[int, Sequence[Any]] | None = None, example: int = 0) -> str:
        """The question as text, with what was released in the place of each mark, or else an example: the last one is
        NULL, and no value for IN.
        """
        placed = self.query.copy()
        for node, mark in _marks(placed):
            values = _example(mark, example) if released is None else released[mark.number]
            if mark.role == "number":
                node.replace(literal(values[0] if values else None, mark.type))
                continue
            listed = [literal(value, mark.type) for value in values if value is not None]
            if listed:
                node.parent.set("expressions", listed)
            else:
                node.parent.replace(exp.paren(exp.false()))
        return str(placed.sql(dialect="duckdb", comments=False))

    @property
    def key(self) -> str:
        """Two questions with one key are the same."""
        return str(self.query.sql(dialect="duckdb", comments=False))


def role_of(part: exp.Subquery) -> Role | None:
    """What a query stands for. None if it is a source of rows, or is compared in another way."""
    if isinstance(part.parent, exp.In) and part.arg_key == "query":
        return "values"
    other = (exp.From, exp.Join, exp.SetOperation, exp.Subquery, exp.CTE, exp.Exists, exp.Any, exp.All)
    return None if isinstance(part.parent, other) or part.args.get("alias") else "number"


def put_mark(part: exp.Subquery, role: Role, number: int, kind: Type) -> None:
    """Replace a query by a mark."""
    mark = exp.Placeholder(this=f"answer_{number}_{role}")
    mark.meta[_MARK] = _Mark(role, number, kind)
    if role == "values":
        parent: Any = part.parent
        parent.set("query", None)
        parent.set("expressions", [mark])
    else:
        part.replace(mark)


def without_queries(query: Any) -> Any:
    """A query without those in its conditions and SELECT lists: the columns that it groups by are the same."""
    if not query.find(exp.In, exp.Exists, exp.Subquery):
        return query
    found = query.copy()
    for part in list(found.find_all(exp.Subquery, exp.Exists)):
        if isinstance(part, exp.Subquery) and role_of(part) is None:
            continue
        one: Any = part.parent if isinstance(part.parent, exp.In) else part
        above = one
        while above.parent is not None and not isinstance(above.parent, exp.And | exp.Where | exp.Having | exp.Select):
            above = above.parent
        if isinstance(above.parent, exp.Select):
            one.replace(exp.null() if one is part and isinstance(part, exp.Subquery) else exp.true())
        elif above.parent is not None:
            above.replace(exp.true())
    return found


def _example(mark: _Mark, number: int) -> list[Any]:
    if number == EXAMPLES - 1:
        return []
    known = _EXAMPLES[mark.type]
    return [known[min(number, len(known) - 1)]]


def _marks(query: Any) -> list[tuple[Any, _Mark]]:
    found = [(node, node.meta.get(_MARK)) for node in query.find_all(exp.Placeholder)]
    return [(node, mark) for node, mark in found if isinstance(mark, _Mark)]
