"""What an engine is: named sources, a dialect to print plans with, and tables as results.

An engine runs only text that was printed with its own dialect. Every operation on values is total: for any row it
returns a value or NULL, never an error. The message of an error, or the fact that there is one, would reveal something
about the row.
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
        """The dialect to print its plans with."""

    def columns(self, name: str) -> dict[str, str]:
        """The names and types of a source's columns."""

    def reads_text(self, name: str, column: str) -> bool:
        """Whether a column has no type of its own, and is read as the type it was opened with."""

    def untyped(self, name: str) -> Collection[str]:
        """The columns of a source in memory that have no types of their own: lists, tuples and object columns."""

    def typed(self, name: str, types: Mapping[str, str]) -> Engine:
        """The same database, with other types for the columns of a source that have none of their own."""

    def blank(self) -> Engine:
        """The same columns with the same types, but no rows. A statement is tried on it before it is paid for."""

    def computes(self, statement: str) -> bool:
        """Whether a statement that was printed for a blank engine can be computed. No row is read."""

    def computed(self, statement: str) -> str | None:
        """The result of a statement that was printed for a blank engine, in a FROM clause: its columns, without a row.
        None if the engine knows that it cannot compute it.
        """

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """The result of a statement that was printed for this engine. Integers are `int`, whatever their size."""

    def table(self, statement: str) -> Any:
        """The same as an Arrow table."""

    def hold(self, statement: str) -> str | None:
        """Compute a statement once, for later statements that read its result by the returned name. None if the engine
        cannot.
        """

    def forget(self, name: str) -> None:
        """Drop a result that is held."""

    def close(self) -> None:
        """Close the database."""
