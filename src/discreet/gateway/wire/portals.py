"""Prepared statements and portals of one connection: no more than fit, and each portal runs once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from discreet.gateway.wire.format.values import Described, Refusal, Result

MOST = 1000
"""Prepared statements of a connection, and portals, at most."""
MOST_BYTES = 16 * 2**20
"""Bytes of all texts and parameters that a connection keeps, at most."""
MOST_CELLS = 1_000_000
"""Values in results that were fetched in part, at most. One result may be larger, and a long text counts as many."""
TREE = 32
"""A statement that was read takes much more room than its text."""


class Statement(Protocol):
    """A statement, as the session reads it."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to run."""


@dataclass
class Prepared:
    """A statement that a client has named, with the types that it declared."""

    statement: Statement | None
    """None if the text has no statement."""
    declared: tuple[int, ...] = ()
    size: int = 0
    parameters: tuple[str, ...] | None = None
    """The types of the parameters, once they are known."""
    told: Described | None = None
    """What the client was told about its columns."""


@dataclass
class Portal:
    """A statement with its parameters. It runs when it is executed for the first time, and never again."""

    prepared: Prepared
    values: tuple[Any, ...] = ()
    formats: tuple[int, ...] = ()
    size: int = 0
    described: Described | None = None
    told: Described | None = None
    """What the client was told about its columns."""
    has_begun: bool = False
    result: Result | None = None
    sent: int = 0
    """How many of its rows were sent."""

    cells: int = 0
    """How many values are kept for later."""


@dataclass
class Kept:
    """What a connection keeps, by name."""

    statements: dict[str, Prepared] = field(default_factory=dict)
    portals: dict[str, Portal] = field(default_factory=dict)
    size: int = 0

    def prepare(self, name: str, prepared: Prepared) -> None:
        """Keep a statement. The one without a name is replaced."""
        if name:
            if name in self.statements:
                raise Refusal(f'There is already a prepared statement "{name}".', state="42P05")
        else:
            self.close_statement(name)
        self._check(self.statements, prepared.size)
        self.statements[name] = prepared
        self.size += prepared.size

    def bind(self, name: str, portal: Portal) -> None:
        """Keep a portal. The one without a name is replaced."""
        if name:
            if name in self.portals:
                raise Refusal(f'There is already a portal "{name}".', state="42P03")
        else:
            self.close_portal(name)
        self._check(self.portals, portal.size)
        self.portals[name] = portal
        self.size += portal.size

    def _check(self, kept: dict[str, Any], size: int) -> None:
        if len(kept) >= MOST or self.size + size > MOST_BYTES:
            raise Refusal(
                "The connection keeps too many statements and portals.", state="54000", hint="Close some of them."
            )

    def check_room(self, portal: Portal) -> None:
        """Refuse another result while too much of the others is left."""
        if sum(other.cells for other in self.portals.values() if other is not portal) > MOST_CELLS:
            raise Refusal("Too many rows were not fetched yet.", state="54000", hint="Fetch them, or close portals.")

    def statement(self, name: str) -> Prepared:
        """The prepared statement with this name."""
        if name not in self.statements:
            raise Refusal(f'There is no prepared statement "{name}".', state="26000")
        return self.statements[name]

    def portal(self, name: str) -> Portal:
        """The portal with this name."""
        if name not in self.portals:
            raise Refusal(f'There is no portal "{name}".', state="34000")
        return self.portals[name]

    def close_statement(self, name: str) -> None:
        """Forget a statement, if there is one, and the portals that were made of it."""
        gone = self.statements.pop(name, None)
        if gone is not None:
            self.size -= gone.size
            for other in [key for key, portal in self.portals.items() if portal.prepared is gone]:
                self.close_portal(other)

    def close_portal(self, name: str) -> None:
        """Forget a portal, if there is one."""
        gone = self.portals.pop(name, None)
        if gone is not None:
            self.size -= gone.size

    def close_portals(self) -> None:
        """Forget all portals: the transaction has ended."""
        for name in list(self.portals):
            self.close_portal(name)

    def close_statements(self) -> None:
        """Forget all statements."""
        for name in list(self.statements):
            self.close_statement(name)


def cells_in(rows: Sequence[Sequence[Any]]) -> int:
    """How many values rows have. Of a long text or array, each twenty characters or elements count as one."""
    return sum(1 + (len(value) // 20 if isinstance(value, str | list) else 0) for row in rows for value in row)


def tag_of(result: Result, sent: int) -> str:
    """How a result is reported of which so many rows were sent in one step."""
    word, _, number = result.tag.rpartition(" ")
    return f"{word} {sent}" if word in ("SELECT", "FETCH") and number.isdecimal() else result.tag
