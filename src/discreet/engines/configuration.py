"""Engine configuration: which engine has the rows, and how to connect to it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from discreet.engines.duckdb.engine import memory_in_bytes
from discreet.errors import InvalidArgument

URLS = ("postgresql://", "postgres://")
DELTA = "delta:"
"""Before the path of a Delta table that is not on this machine."""
KEYS = {
    "duckdb": ("kind", "memory", "threads", "spill"),
    "postgres": ("kind", "url", "timeout"),
    "spark": ("kind", "master", "config", "timeout"),
}
"""What may be said of each kind of engine."""


@dataclass(frozen=True, kw_only=True)
class EngineConfiguration:
    """An engine, with the keys of the policy's [engine] section.

    `memory` is the maximum memory of DuckDB, such as "8GB", `threads` how many it may use, and `spill` the folder for
    what does not fit. `url` is a
    PostgreSQL database, whose tables are named with their schema. `master` is Spark's master, such as "local[*]",
    "spark://host:7077" or "sc://host:15002". `config` has the settings of a session that is started there. `timeout` is
    the maximum number of seconds for one statement.
    """

    kind: str = "duckdb"
    url: str | None = field(default=None, repr=False)  # it may hold a password
    master: str | None = None
    config: Mapping[str, str] | None = field(default=None, repr=False)  # this, too
    timeout: int | None = None
    memory: str | None = None
    threads: int | None = None
    spill: str | Path | bool | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in KEYS:
            raise InvalidArgument(
                f'Unknown engine {self.kind}. Remove it, or write kind = "duckdb", "postgres" or "spark".',
                code="not-an-option",
            )
        for key in (key for keys in KEYS.values() for key in keys):
            if key not in KEYS[self.kind] and getattr(self, key) is not None:
                raise InvalidArgument(
                    f'[engine] has no key {key} for kind = "{self.kind}". Remove it.', code="engine-unknown-key"
                )
        if self.timeout is not None and not (type(self.timeout) is int and 1 <= self.timeout <= 86_400):
            raise InvalidArgument(
                "timeout of [engine] must be a whole number of seconds from 1 to 86400, such as 600.",
                code="out-of-range",
            )
        if self.threads is not None and not (type(self.threads) is int and 1 <= self.threads <= 1024):
            raise InvalidArgument(
                "threads of [engine] must be a whole number from 1 to 1024, such as 4.", code="out-of-range"
            )
        if self.memory is not None:
            memory_in_bytes(self.memory)
        if not isinstance(self.spill, str | Path | bool | None) or self.spill == "":
            raise InvalidArgument(
                'spill of [engine] must be a folder, such as "/srv/spill", or true or false.', code="wrong-type"
            )
        if self.kind == "postgres" and not (isinstance(self.url, str) and self.url.startswith(URLS)):
            raise InvalidArgument(
                '[engine] needs the url of the database. Add url = "postgresql://host/database".', code="engine-url"
            )
        if not isinstance(self.master, str | None) or self.master == "":
            raise InvalidArgument('master of [engine] must be text, such as "local[*]".', code="wrong-type")
        self._check_config()

    def _check_config(self) -> None:
        if self.config is None:
            return
        known = isinstance(self.config, Mapping) and all(str(key).startswith("spark.") for key in self.config)
        if not known or not all(isinstance(value, str) for value in self.config.values()):
            raise InvalidArgument(
                'config of [engine] must be settings of Spark, such as "spark.executor.memory" = "8g".',
                code="engine-config",
            )

    def check_source(self, name: str, source: Any) -> None:
        """Refuse a value that cannot be the source of a table in this engine."""
        if self.kind == "postgres":
            parts = source.split(".") if isinstance(source, str) else []
            if len(parts) != 2 or not all(parts):
                raise InvalidArgument(
                    f'The source of {name} must be a table in PostgreSQL with its schema, such as "public.{name}".',
                    code="source-name",
                )

    def resolve_source(self, folder: Path | None, source: Any) -> Any:
        """A source as a policy file in `folder` names it. Paths are relative to the file."""
        if folder is None or self.kind == "postgres" or "://" in source or source.startswith(DELTA):
            return source
        path = folder.resolve() / os.path.expanduser(source)
        return str(path) if self.kind == "duckdb" or is_path(source) or os.path.exists(path) else source


def is_path(source: str) -> bool:
    """Whether a source of Spark is a path, not the name of a table."""
    return "/" in source or source.endswith(".parquet")
