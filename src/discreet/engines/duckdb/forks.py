"""What a forked process must not close: it would wait for threads that exist only in its parent."""

from __future__ import annotations

import ctypes
import os
import weakref
from typing import Any

_CONNECTIONS: weakref.WeakSet[Any] = weakref.WeakSet()


def watch(connection: Any) -> None:
    """Keep a connection alive in every process that is forked from this one, for as long as that process lives."""
    _CONNECTIONS.add(connection)


def _keep() -> None:
    for connection in list(_CONNECTIONS):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


os.register_at_fork(after_in_child=_keep)
