"""What an engine is: sources under names, a vocabulary that plans are printed with, and tables that come back.

An engine runs only text that was printed with its own words. Every word for a value is total: whatever is in a row,
it gives a value or NULL, and never an error, whose message or mere presence would tell of that row.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol

from discreet.engines.dialect import Dialect


class Engine(Protocol):
    """A database on sources that are fixed when it is opened."""

    relations: dict[str, str]
    """How each source is written in FROM."""
    reads_files: bool
    """Whether a source that is a text is the path of a file."""

    @property
    def dialect(self) -> Dialect:
        """What a plan for it is printed with."""

    def columns(self, name: str) -> dict[str, str]:
        """The names and types of a source's columns."""

    def reads_text(self, name: str, column: str) -> bool:
        """Whether a column has no type of its own, and is read as the one it was opened with."""

    def untyped(self, name: str) -> Collection[str]:
        """The columns of a source in memory that have no types of their own: lists, tuples and object columns."""

    def typed(self, name: str, types: Mapping[str, str]) -> Engine:
        """The same database, with other types for the columns of a source that have none of their own."""

    def blank(self) -> Engine:
        """The same columns of the same types, and not one row: what a statement is tried on before it is paid for."""

    def computes(self, statement: str) -> bool:
        """Whether a statement that was printed for a blank engine can be computed; no row is read."""

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """What a statement that was printed for this engine gives; whole numbers are `int`, whatever their size."""

    def table(self, statement: str) -> Any:
        """The same as an Arrow table."""

    def close(self) -> None:
        """Let go of the database."""
