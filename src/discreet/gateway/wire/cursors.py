"""Cursors: DECLARE, FETCH, MOVE and CLOSE. The question is asked when rows are needed first, and once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from discreet.gateway.wire.asking import Answered
from discreet.gateway.wire.format.values import Column, Refusal
from discreet.gateway.wire.portals import MOST_CELLS, cells_in
from discreet.gateway.wire.text.statement import Move, Statement

MOST = 100
"""Cursors of one session, at most."""


@dataclass
class Cursor:
    """A cursor: `place` is the number of the current row from 1, 0 before the first and one more after the last."""

    statement: Statement
    columns: tuple[Column, ...]
    hold: bool
    scroll: bool
    answered: Answered | None = None
    place: int = 0
    cells: int = 0

    def moved(self, rows: list[tuple[Any, ...]], move: Move) -> list[tuple[Any, ...]]:
        """The rows that a move passes over. The cursor is then at the last of them."""
        last = len(rows) + 1
        if move.how in ("absolute", "relative"):
            number = move.count or 0
            target = self.place + number if move.how == "relative" else number if number >= 0 else last + number
            if target < self.place:
                self._check_scroll()
            self.place = min(max(target, 0), last)
            return rows[self.place - 1 : self.place] if 1 <= self.place < last else []
        if move.count == 0:
            return rows[self.place - 1 : self.place] if 1 <= self.place < last else []
        if move.how == "forward":
            end = last if move.count is None else min(self.place + move.count, last)
            found = rows[self.place : end]
            self.place = end
            return found
        self._check_scroll()
        begin = 0 if move.count is None else max(self.place - move.count, 0)
        found = rows[max(begin - 1, 0) : self.place - 1] if begin else rows[: max(self.place - 1, 0)]
        self.place = begin
        return found[::-1]

    def _check_scroll(self) -> None:
        if not self.scroll:
            raise Refusal(
                "cursor can only scan forward",
                state="55000",
                hint="Declare it with SCROLL option to enable backward scan.",
            )


class Cursors:
    """The cursors of one session."""

    def __init__(self) -> None:
        self._cursors: dict[str, Cursor] = {}

    def find(self, name: str) -> Cursor:
        """The cursor of this name."""
        if name not in self._cursors:
            raise Refusal(f'cursor "{name}" does not exist', state="34000")
        return self._cursors[name]

    def check_new(self, name: str) -> None:
        """Refuse a name that is taken."""
        if name in self._cursors:
            raise Refusal(f'cursor "{name}" already exists', state="42P03")
        if len(self._cursors) >= MOST:
            raise Refusal(f"A session has at most {MOST} cursors.", state="53400", hint="Close one of them.")

    def add(self, name: str, cursor: Cursor) -> None:
        """Add a cursor."""
        self._cursors[name] = cursor

    def close(self, name: str) -> None:
        """Close a cursor, or all of them with an empty name."""
        if not name:
            self._cursors.clear()
            return
        self.find(name)
        del self._cursors[name]

    def end_transaction(self, begun_with: frozenset[str] | None = None) -> None:
        """Close what does not outlive its transaction. After a rollback, also what was declared in it."""
        self._cursors = {
            name: one for name, one in self._cursors.items() if one.hold and (begun_with is None or name in begun_with)
        }

    def _check_room(self) -> None:
        """Refuse another result while too much of the others is kept."""
        if sum(one.cells for one in self._cursors.values()) > MOST_CELLS:
            raise Refusal("The cursors keep too many rows.", state="54000", hint="Close some of them.")

    @property
    def texts(self) -> int:
        """How many characters the statements of all cursors have."""
        return sum(len(one.statement.text) for one in self._cursors.values())

    @property
    def names(self) -> frozenset[str]:
        """The names of all cursors."""
        return frozenset(self._cursors)

    async def fetch(
        self, name: str, move: Move, ask: Callable[[Statement], Awaitable[Answered]]
    ) -> tuple[Cursor, list[tuple[Any, ...]], Answered | None]:
        """The rows of a move, and the answer if this move was the first that needed it."""
        cursor, new = self.find(name), None
        if cursor.answered is None:
            if move.count == 0:
                return cursor, [], None
            self._check_room()
            new = await ask(cursor.statement)
            cursor.answered, cursor.cells = new, cells_in(new.rows)
        return cursor, cursor.moved(cursor.answered.rows, move), new
