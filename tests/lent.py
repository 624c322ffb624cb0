"""DuckDB's instances, used again: to make one takes 30 ms, and most tests make one for a few rows in memory.

An engine has its own instance for as long as it lives, made and locked down as always. One whose tables are all in
memory leaves it empty, and with the settings that the next such engine would choose: that one gets it.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

from discreet.engines.duckdb import forks
from discreet.engines.duckdb.engine import DuckDB

LENDS = True
_MOST = 16
_LEFT = "SELECT 'TABLE', table_name FROM duckdb_tables() UNION ALL SELECT 'VIEW', view_name FROM duckdb_views()"


class Lent:
    """A connection that is given back when it is closed, or when nobody has it any more."""

    def __init__(self, connection: Any, spare: list[Any], *, is_locked: bool) -> None:
        self._connection, self._spare, self.is_locked = connection, spare, is_locked
        self._process = os.getpid()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def close(self) -> None:
        """Leave it without a table. After an error that stops DuckDB, or before it is locked, it is closed."""
        connection, self._connection = self._connection, _CLOSED
        if connection is _CLOSED or os.getpid() != self._process:
            return
        try:
            for kind, name in connection.execute(f"{_LEFT} WHERE NOT internal").fetchall():
                connection.unregister(name) if kind == "VIEW" else connection.execute(f'DROP TABLE "{name}"')
            is_empty = not connection.execute(f"{_LEFT} WHERE NOT internal").fetchall()
        except duckdb.Error:
            is_empty = False
        if is_empty and self.is_locked and len(self._spare) < _MOST:
            self._spare.append(connection)
        else:
            connection.close()

    def __del__(self) -> None:
        if sys is not None and not sys.is_finalizing():  # at the very end, modules are None
            self.close()


_CLOSED = duckdb.connect(":memory:")
_CLOSED.close()


@contextmanager
def lending() -> Iterator[None]:
    """Lend instances to engines whose tables are all in memory, without settings of their own."""
    spare: list[Any] = []
    opening = threading.local()
    connect, make, lock_down = duckdb.connect, DuckDB.__init__, DuckDB._lock_down

    def lent(*given: Any, **settings: Any) -> Any:
        if not getattr(opening, "lends", False):
            return connect(*given, **settings)
        if not spare:
            gc.collect(1)  # an error that a test has caught may hold an engine
        try:
            return Lent(spare.pop(), spare, is_locked=True)
        except IndexError:
            made = connect(*given, **settings)
            forks.watch(made)
            return Lent(made, spare, is_locked=False)

    def made(self: DuckDB, sources: Mapping[str, Any], **given: Any) -> None:
        own = any(given.get(name) is not None for name in ("memory", "threads", "spill"))
        files = any(isinstance(one, str | Path) for one in sources.values())
        opening.lends = LENDS and bool(sources) and not own and not files
        try:
            make(self, sources, **given)
        finally:
            opening.lends = False

    def locked(self: DuckDB, *given: Any) -> None:
        if not getattr(self._connection, "is_locked", False):
            lock_down(self, *given)
            if isinstance(self._connection, Lent):
                self._connection.is_locked = True

    def forget() -> None:
        spare.clear()  # a child has none of the threads

    os.register_at_fork(after_in_child=forget)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duckdb, "connect", lent)
        patch.setattr(DuckDB, "__init__", made)
        patch.setattr(DuckDB, "_lock_down", locked)
        yield
    for one in spare:
        one.close()
