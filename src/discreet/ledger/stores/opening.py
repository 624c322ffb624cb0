"""Opening the store of a ledger: a file, a schema of PostgreSQL, or memory."""

from __future__ import annotations

import os
import re
from typing import Any

from discreet.errors import InvalidArgument
from discreet.ledger.stores.postgres import PostgresStore
from discreet.ledger.stores.sqlite import SqliteStore
from discreet.ledger.stores.store import URLS, Store

_CONNECTION = re.compile(r"(host|hostaddr|port|dbname|user|password|service)\s*=")


def open_store(target: Any, checkpoint: Any) -> Store:
    """The store for a path, a postgresql:// URL, or ":memory:"."""
    if not isinstance(target, str | os.PathLike) or not str(target).strip():
        raise InvalidArgument(
            'A ledger needs a path, such as "clinic.ledger", or a postgresql:// URL.', code="ledger-place"
        )
    address, path = os.fspath(target).strip(), None if checkpoint is None else os.fspath(checkpoint)
    if address.startswith(URLS):
        return PostgresStore(address, path)
    if "://" in address or _CONNECTION.match(address):
        raise InvalidArgument(
            "This is neither a path nor a URL of a ledger. Write postgresql://user@host:5432/database#schema.",
            code="ledger-place",
        )
    return SqliteStore(address, path)
