"""Catalogs that sessions share: accounts that see the same tables have the same one."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from sqlglot import exp

from discreet.gateway.wire.format.values import Column, Described

_MOST = 16


class Catalog(Protocol):
    """What a session needs of a catalog."""

    def answers(self, query: exp.Expression) -> bool:
        """Whether a statement is for the catalog, by its tree."""

    def describe(self, query: exp.Expression, declared: Sequence[int]) -> Described:
        """The parameters and columns of a statement."""

    def run(
        self,
        query: exp.Expression,
        values: Sequence[Any],
        *,
        user: str,
        settings: Mapping[str, str],
        declared: Sequence[int] = (),
    ) -> tuple[tuple[Column, ...], list[tuple[Any, ...]]]:
        """The columns and the rows of a statement."""

    def close(self) -> None:
        """Close it."""


class Catalogs:
    """Catalogs by what they describe."""

    def __init__(self, make: Callable[[Mapping[str, Any], str], Catalog]) -> None:
        self._make, self._lock = make, threading.Lock()
        self._known: OrderedDict[str, Catalog] = OrderedDict()

    def find(self, tables: Mapping[str, Any], database: str) -> Catalog:
        """The catalog of these tables in a database of this name. One that is used no more ends by itself."""
        key = json.dumps([tables.get("tables"), database], sort_keys=True, default=str)
        with self._lock:
            if key not in self._known:
                self._known[key] = self._make({"tables": tables.get("tables", [])}, database)
                while len(self._known) > _MOST:
                    self._known.popitem(last=False)
            self._known.move_to_end(key)
            return self._known[key]
