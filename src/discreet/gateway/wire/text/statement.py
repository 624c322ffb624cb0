"""One statement of a text, as it was read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from discreet.gateway.wire.text.texts import kind_of


@dataclass(frozen=True, eq=False)
class Statement:
    """One statement of a text: `what` it does, where it is, and what was read of it.

    `query` is the tree of a question or a catalog statement, and `first` the character where it begins. `inner` is
    what EXPLAIN, COPY, DECLARE and PREPARE are about, and `given` what else they were told.
    """

    what: str
    text: str = ""
    start: int = 0
    end: int = 0
    tokens: tuple[Any, ...] = ()
    comments: tuple[str, ...] = ()
    query: exp.Expression | None = None
    of_catalog: bool = False
    before: str = ""
    inner: Statement | None = None
    name: str = ""
    given: Any = None
    memory: dict[Any, Any] = field(default_factory=dict)
    """What follows from the text alone, found once for all copies."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing but comments."""
        return self.what == "empty"

    @property
    def parameters(self) -> list[tuple[int, int, int]]:
        """The parameters such as $1: the number of each, and its first and last character."""
        if "parameters" not in self.memory:
            self.memory["parameters"] = self._parameters()
        known: list[tuple[int, int, int]] = self.memory["parameters"]
        return known

    def _parameters(self) -> list[tuple[int, int, int]]:
        found = []
        for mark, number in zip(self.tokens, self.tokens[1:], strict=False):
            if kind_of(mark) == "PARAMETER" and kind_of(number) == "NUMBER" and number.start == mark.end + 1:
                found.append((int(number.text) if number.text.isdecimal() else 0, mark.start, number.end))
        return found


@dataclass(frozen=True)
class Move:
    """How far a cursor moves: `how` is forward, backward, absolute or relative; a `count` of None is ALL."""

    how: str = "forward"
    count: int | None = 1
