"""Several statements in one message to PostgreSQL: a charge waits for the server twice, and not once per statement."""

from __future__ import annotations

import itertools
import select
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from discreet.ledger.stores.store import Rows, Statement

_INTEGERS, _BYTES = (20, 21, 23), 17
"""The PostgreSQL types (by their `oid`) that are not text."""


class Found(NamedTuple):
    """What one statement returned, and how many rows it returned or changed."""

    rows: Rows
    changed: int


class Pipeline:
    """Sends statements over a connection of psycopg, with its wrapper of libpq. Each statement is prepared once."""

    def __init__(self, psycopg: Any, connection: Any) -> None:
        self._psycopg, self._connection, self._wire = psycopg, connection, connection.pgconn
        self._prepared: dict[str, bytes] = {}
        self._numbers = itertools.count()  # a name is not used again, even if its statement was not run
        self._socket = select.poll()

    def send(self, statements: Sequence[Statement]) -> list[Found]:
        """Run the statements. If one fails, those after it are not run, and its error is raised."""
        status, names = self._psycopg.pq.ExecStatus, dict(self._prepared)
        try:
            self._wire.enter_pipeline_mode()
            prepared = [self._add(names, text, given) for text, *given in statements]
            self._wire.pipeline_sync()
            results = self._wait(status.PIPELINE_SYNC)
            self._wire.exit_pipeline_mode()
        except BaseException:  # what was sent may still be running: nobody else can use the connection
            self._connection.close()
            raise
        failed = next((result for result in results if result.status == status.FATAL_ERROR), None)
        if failed is not None:
            raise self._error(failed)
        self._prepared = names
        found, each = [], iter(results)
        for is_new in prepared:
            if is_new:
                next(each)
            found.append(self._read(next(each)))
        return found

    def is_quiet(self) -> bool:
        """Whether the server has said nothing since the last message. It does when it closes the connection."""
        self._socket.register(self._wire.socket, select.POLLIN)
        return not self._socket.poll(0)

    def _add(self, names: dict[str, bytes], text: str, given: Sequence[Any]) -> bool:
        """Add a statement to the message, and prepare it if it is new."""
        is_new = text not in names
        if is_new:
            parts = text.split("?")
            numbered = "".join(f"{part}${number}" for number, part in enumerate(parts[:-1], 1)) + parts[-1]
            names[text] = f"discreet_{next(self._numbers)}".encode()
            self._wire.send_prepare(names[text], numbered.encode())
        values = [_write(value) for value in given]
        formats = [isinstance(value, bytes) for value in given]
        self._wire.send_query_prepared(names[text], values, formats)
        return is_new

    def _wait(self, end: int) -> list[Any]:
        """All results, up to the end of the message."""
        wire, socket, unsent = self._wire, self._socket, True
        found: list[Any] = []
        while True:
            while unsent or wire.is_busy():
                unsent = bool(wire.flush())
                socket.register(wire.socket, select.POLLIN | (select.POLLOUT if unsent else 0))
                socket.poll()
                wire.consume_input()
            result = wire.get_result()
            if result is None:  # the end of one statement's results
                if wire.status != self._psycopg.pq.ConnStatus.OK:
                    raise self._psycopg.OperationalError("the connection to the server was lost")
                continue
            if result.status == end:
                return found
            found.append(result)

    def _read(self, result: Any) -> Found:
        get = result.get_value
        columns = [(column, self._reader(result.ftype(column))) for column in range(result.nfields)]
        rows = [
            tuple([None if (content := get(row, column)) is None else read(content) for column, read in columns])
            for row in range(result.ntuples)
        ]
        return Found(rows, result.command_tuples or 0)

    def _reader(self, kind: int) -> Callable[[bytes], Any]:
        """The function that reads a value of a PostgreSQL type."""
        if kind == _BYTES:
            return self._psycopg.pq.Escaping().unescape_bytea  # type: ignore[no-any-return]
        return int if kind in _INTEGERS else bytes.decode

    def _error(self, result: Any) -> Exception:
        field = self._psycopg.pq.DiagnosticField
        code, said = (result.error_field(name) or b"" for name in (field.SQLSTATE, field.MESSAGE_PRIMARY))
        try:
            kind = self._psycopg.errors.lookup(code.decode())
        except KeyError:
            kind = self._psycopg.DatabaseError
        return kind(said.decode(errors="replace"))  # type: ignore[no-any-return]


def _write(value: Any) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else str(value).encode()
