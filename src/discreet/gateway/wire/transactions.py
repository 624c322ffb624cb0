"""Transactions of a session. Nothing is ever written, so they only keep a status, settings and cursors."""

from __future__ import annotations

from typing import Any, NamedTuple

from discreet.gateway.wire.cursors import Cursors
from discreet.gateway.wire.format.values import Notice, Refusal, Result
from discreet.gateway.wire.options import Settings
from discreet.gateway.wire.text.statement import Statement

_MOST_SAVEPOINTS = 1000
_ALLOWED = ("commit", "rollback", "rollback to", "empty")
"""What a failed transaction still takes."""


class _Savepoint(NamedTuple):
    name: str
    settings: Any


class Transactions:
    """Where a session is: idle, in a transaction, or in a failed one."""

    def __init__(self, settings: Settings, cursors: Cursors) -> None:
        self.status = "I"
        self._settings, self._cursors = settings, cursors
        self._begun: Any = None
        self._held: frozenset[str] = frozenset()
        self._savepoints: list[_Savepoint] = []

    def fail(self) -> None:
        """After an error, a transaction has failed."""
        if self.status == "T":
            self.status = "E"

    def check(self, statement: Statement) -> None:
        """Refuse everything in a failed transaction but its end."""
        if self.status == "E" and statement.what not in _ALLOWED:
            raise Refusal(
                "current transaction is aborted, commands ignored until end of transaction block",
                state="25P02",
                hint="Write ROLLBACK.",
            )

    def need(self, what: str) -> None:
        """Refuse what makes sense in a transaction only."""
        if self.status == "I":
            raise Refusal(f"{what} can only be used in transaction blocks", state="25P01", hint="Write BEGIN first.")

    def begin(self, statement: Statement) -> Result:
        """BEGIN."""
        tag = "START TRANSACTION" if statement.tokens[0].text.upper() == "START" else "BEGIN"
        if self.status != "I":
            said = Notice("there is already a transaction in progress", None, "WARNING", "25001")
            return Result(tag, notices=(said,))
        self._open()
        return Result(tag)

    def _open(self) -> None:
        self.status = "T"
        self._begun, self._held, self._savepoints = self._settings.saved(), self._cursors.names, []

    def commit(self, statement: Statement) -> Result:
        """COMMIT. What has failed is rolled back."""
        if self.status == "E":
            return self.rollback(statement)
        return self._end(statement, "COMMIT")

    def rollback(self, statement: Statement) -> Result:
        """ROLLBACK: settings are again as they were. What was charged stays charged."""
        if self.status != "I":
            self._settings.restore(self._begun)
            self._cursors.end_transaction(self._held)
        return self._end(statement, "ROLLBACK")

    def _end(self, statement: Statement, tag: str) -> Result:
        if self.status == "I":
            return Result(tag, notices=(Notice("there is no transaction in progress", None, "WARNING", "25P01"),))
        self._settings.end_transaction()
        self._cursors.end_transaction()
        self.status, self._savepoints = "I", []
        if (statement.given or {}).get("chain"):
            self._open()
        return Result(tag)

    def savepoint(self, statement: Statement) -> Result:
        """SAVEPOINT."""
        self.need("SAVEPOINT")
        if len(self._savepoints) >= _MOST_SAVEPOINTS:
            raise Refusal(f"A transaction has at most {_MOST_SAVEPOINTS} savepoints.", state="53400")
        self._savepoints.append(_Savepoint(statement.name, self._settings.saved()))
        return Result("SAVEPOINT")

    def release(self, statement: Statement) -> Result:
        """RELEASE SAVEPOINT."""
        self.need("RELEASE SAVEPOINT")
        del self._savepoints[self._find(statement.name) :]
        return Result("RELEASE")

    def rollback_to(self, statement: Statement) -> Result:
        """ROLLBACK TO SAVEPOINT."""
        self.need("ROLLBACK TO SAVEPOINT")
        place = self._find(statement.name)
        self._settings.restore(self._savepoints[place].settings)
        del self._savepoints[place + 1 :]
        self.status = "T"
        return Result("ROLLBACK")

    def _find(self, name: str) -> int:
        for place in range(len(self._savepoints) - 1, -1, -1):
            if self._savepoints[place].name == name:
                return place
        raise Refusal(f'savepoint "{name}" does not exist', state="3B001")
