"""Embedded DuckDB, locked: it reads the declared sources only, and runs no text but what was printed for it."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from discreet.errors import DiscreetError, InvalidArgument

FILES = {".parquet": "read_parquet", ".csv": "read_csv", ".tsv": "read_csv", ".json": "read_json"}
_TYPES = (
    ("boolean", ("BOOLEAN",)),
    ("integer", ("INTEGER", *(f"{size}INT" for size in ("TINY", "SMALL", "BIG", "HUGE")))),
    ("integer", ("UINTEGER", *(f"U{size}INT" for size in ("TINY", "SMALL", "BIG", "HUGE")))),
    ("number", ("DOUBLE", "FLOAT", "DECIMAL", "REAL")),
    ("date", ("DATE",)),
    ("timestamp", ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS")),
    ("text", ("VARCHAR", "ENUM")),
)


class EngineFailed(DiscreetError):
    """The engine could not answer. Its own words are not passed on: they may quote values."""


class DuckDB:
    """One connection to an embedded database, on sources fixed when it is opened."""

    def __init__(self, sources: Mapping[str, Any]) -> None:
        import duckdb

        self._duckdb = duckdb
        self._lock = threading.Lock()
        self._connection = duckdb.connect(":memory:", config={"allow_unsigned_extensions": "false"})
        self.relations: dict[str, str] = {}
        paths = []
        for name, source in sources.items():
            found, path = self._source(name, source)
            self.relations[name] = found
            paths += path
        self._lock_down(paths)

    def _source(self, name: str, source: Any) -> tuple[str, list[str]]:
        """How a source is written in FROM, and the files it reads."""
        if isinstance(source, str | Path):
            path = Path(source).expanduser().resolve()
            if path.is_dir():
                inside = next((s for s in FILES if any(path.glob(f"**/*{s}"))), None)
                reader, files = FILES.get(inside or ""), f"{path}/**/*{inside}"
            else:
                reader, files = FILES.get(path.suffix.lower()), str(path)
            if not path.exists() or reader is None:
                raise InvalidArgument(
                    f"The source of {name} is not a Parquet, CSV or JSON file, or a folder of them: {source}."
                )
            return f"{reader}({quoted_text(files)})", [str(path)]
        if isinstance(source, self._duckdb.DuckDBPyRelation):
            source = source.to_arrow_table()
        try:
            self._connection.register(f"source {name}", _as_arrow(source))
        except Exception:
            raise InvalidArgument(
                f"The source of {name} must be a path, an Arrow table, a DataFrame or a DuckDB relation."
            ) from None
        return quoted(f"source {name}"), []

    def _lock_down(self, paths: Sequence[str]) -> None:
        """Nothing outside of the sources can be read from here on, and no setting be changed back."""
        folders = [path for path in paths if Path(path).is_dir()]
        files = [path for path in paths if not Path(path).is_dir()]
        for statement in (
            "SET temp_directory = ''",
            "SET error_on_division_by_zero = false",
            # a repeated expression would be computed outside of the TRY that makes it total
            "SET disabled_optimizers = 'common_subexpressions'",
            f"SET allowed_paths = {_listed(files)}",
            f"SET allowed_directories = {_listed(folders)}",
            "SET enable_external_access = false",
            "SET lock_configuration = true",
        ):
            self._connection.execute(statement)

    def columns(self, name: str) -> dict[str, str]:
        """The names and types of a source's columns."""
        try:
            described = self.rows(f"DESCRIBE SELECT * FROM {self.relations[name]}")
        except EngineFailed:
            raise InvalidArgument(f"The source of {name} cannot be read as a table.") from None
        return {row[0]: _type(row[1]) for row in described}

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """What a statement that was printed for this engine gives."""
        return self._run(statement, lambda result: result.fetchall())  # type: ignore[no-any-return]

    def table(self, statement: str) -> Any:
        """The same as an Arrow table."""
        with self._held():
            return self._connection.sql(statement).to_arrow_table()

    def _run(self, statement: str, fetch: Callable[[Any], Any]) -> Any:
        with self._held():
            return fetch(self._connection.execute(statement))

    @contextmanager
    def _held(self) -> Iterator[None]:
        """The connection for one thread; what it says when it fails goes no further."""
        with self._lock:
            try:
                yield
            except (self._duckdb.Error, RuntimeError):
                raise EngineFailed(
                    "The engine could not compute this. Its message is not shown, as it may quote values. "
                    "Ask for less at once, or give the engine more memory."
                ) from None

    def close(self) -> None:
        """Let go of the database."""
        self._connection.close()


def _as_arrow(source: Any) -> Any:
    import pyarrow as pa

    if isinstance(source, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        return source.read_all() if isinstance(source, pa.RecordBatchReader) else source
    if isinstance(source, Mapping):
        return pa.table(dict(source))
    if hasattr(source, "__arrow_c_stream__"):
        return pa.table(source)
    if hasattr(source, "to_arrow"):
        return source.to_arrow()
    return pa.Table.from_pandas(source, preserve_index=False)


def _type(name: str) -> str:
    plain = name.upper().partition("(")[0]
    return next((kind for kind, names in _TYPES if plain in names), "other") if "[" not in name else "other"


def quoted(name: str) -> str:
    """A name, whatever it is made of."""
    return '"' + name.replace('"', '""') + '"'


def quoted_text(text: str) -> str:
    """A text, whatever it is made of."""
    return "'" + text.replace("'", "''") + "'"


def _listed(texts: Sequence[str]) -> str:
    return f"[{', '.join(map(quoted_text, texts))}]"


def literal(value: Any) -> str:
    """A constant in the engine's words."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return f"({value})"
        case float():
            return f"({value!r}::DOUBLE)"
        case str():
            return quoted_text(value)
        case datetime.datetime():
            return f"TIMESTAMP {quoted_text(value.isoformat(' '))}"
        case datetime.date():
            return f"DATE {quoted_text(value.isoformat())}"
    raise InvalidArgument(f"A {type(value).__name__} cannot be written into a question. Use numbers, text or dates.")


WORDS = {
    "add": "({0} + {1})",
    "subtract": "({0} - {1})",
    "multiply": "({0} * {1})",
    "divide": "({0} / {1})",
    "integer_divide": "({0} // {1})",
    "modulo": "({0} % {1})",
    "power": "power({0}, {1})",
    "negate": "(-{0})",
    "abs": "abs({0})",
    "sign": "sign({0})",
    "round": "round({all})",
    "floor": "floor({0})",
    "ceil": "ceil({0})",
    "sqrt": "sqrt({0})",
    "ln": "ln({0})",
    "exp": "exp({0})",
    "eq": "({0} = {1})",
    "ne": "({0} <> {1})",
    "lt": "({0} < {1})",
    "le": "({0} <= {1})",
    "gt": "({0} > {1})",
    "ge": "({0} >= {1})",
    "same": "({0} IS NOT DISTINCT FROM {1})",
    "like": "({0} LIKE {1})",
    "ilike": "({0} ILIKE {1})",
    "not": "(NOT {0})",
    "is_null": "({0} IS NULL)",
    "is_number": "({0} IS NOT NULL AND NOT isnan(TRY_CAST({0} AS DOUBLE)))",
    "coalesce": "coalesce({all})",
    "least": "least({all})",
    "greatest": "greatest({all})",
    "nullif": "nullif({0}, {1})",
    "lower": "lower({0})",
    "upper": "upper({0})",
    "trim": "trim({0})",
    "length": "length({0})",
    "substring": "substring({all})",
    "concat": "concat({all})",
    "joined": "({0} || {1})",
    "part": "date_part('{detail}', {0})",
    "truncate": "date_trunc('{detail}', {0})",
    "days_between": "date_diff('day', {0}, {1})",
    "cast": "TRY_CAST({0} AS {detail})",
}
"""How each operation on values is written here."""


TYPES = {
    "integer": "BIGINT",
    "number": "DOUBLE",
    "text": "VARCHAR",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}


def total(value: str) -> str:
    """A value that is NULL where it cannot be computed: no row can stop a question."""
    return f"TRY({value})"


def exact_sum(value: str) -> str:
    """A sum of whole numbers, in 128 bits."""
    return f"sum({value})"


def clamped_steps(value: str, center: float, step: float, lowest: int, highest: int) -> str:
    """A number as whole steps from the center, within [lowest, highest]; NULL for NULL and NaN."""
    number = f"TRY_CAST({value} AS DOUBLE)"
    steps = f"round(({number} - ({center!r}::DOUBLE)) / ({step!r}::DOUBLE))"
    inside = f"least(greatest({steps}, ({float(lowest)!r}::DOUBLE)), ({float(highest)!r}::DOUBLE))"
    # least and greatest pass NULL over, and take NaN for the largest number of all
    return f"CASE WHEN {number} IS NULL OR isnan({number}) THEN NULL ELSE CAST({inside} AS BIGINT) END"


def random_rank(person: str, by: Sequence[str], seed: int) -> str:
    """The place of a row among its person's rows, in a random order that depends on no value but `by`."""
    order = f"hash({', '.join([*by, person, str(seed)])})"
    return f"row_number() OVER (PARTITION BY {person} ORDER BY {order})"
