"""Embedded DuckDB, locked: it reads the declared sources only, and runs no text but what was printed for it."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from discreet.engines import words
from discreet.engines.engine import EngineFailed as EngineFailed
from discreet.engines.engine import Words
from discreet.engines.text_files import Csv, JsonLines, TextSource
from discreet.engines.words import listed, quoted, quoted_text
from discreet.errors import InvalidArgument

_JSON = (".json", ".jsonl", ".ndjson")
FILES = {".parquet": "read_parquet", ".csv": "read_csv", ".tsv": "read_csv"} | dict.fromkeys(_JSON, "read_json")
_TYPES = (
    ("boolean", ("BOOLEAN",)),
    ("integer", ("INTEGER", *(f"{size}INT" for size in ("TINY", "SMALL", "BIG", "HUGE")))),
    ("integer", ("UINTEGER", *(f"U{size}INT" for size in ("TINY", "SMALL", "BIG", "HUGE")))),
    ("number", ("DOUBLE", "FLOAT", "DECIMAL", "REAL")),
    ("date", ("DATE",)),
    ("timestamp", ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS")),
    ("text", ("VARCHAR", "ENUM")),
)


_ODD = {
    **dict.fromkeys(("UBIGINT", "HUGEINT", "UHUGEINT"), "BIGINT"),
    **dict.fromkeys(("DECIMAL", "FLOAT", "REAL"), "DOUBLE"),
    **dict.fromkeys(("TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), "TIMESTAMP"),
    "ENUM": "VARCHAR",
}
"""Types that are read as others: what does not fit those is NULL."""

# A repeated expression would be computed outside of the TRY that makes it total; a TRY_CAST that is pushed into the
# reading of a text file would drop the row, or stop the question.
_UNSAFE_OPTIMIZERS = ("common_subexpressions", "type_pushdown", "scalar_fn_pushdown")


class DuckDB:
    """One connection to an embedded database, on sources fixed when it is opened.

    A CSV or JSON source has no types of its own: its columns are text, but for those that `types` names. Only where a
    source is listed in `sniffed` are they guessed from the rows, which is for public tables and for their owner.
    """

    reads_files = True

    def __init__(
        self,
        sources: Mapping[str, Any],
        *,
        types: Mapping[str, Mapping[str, str]] | None = None,
        sniffed: Collection[str] = (),
    ) -> None:
        import duckdb

        self._duckdb = duckdb
        self._lock = threading.Lock()
        self._connection = duckdb.connect(":memory:", config={"allow_unsigned_extensions": "false"})
        self.relations: dict[str, str] = {}
        self._texts: dict[str, TextSource] = {}
        paths = []
        for name, source in sources.items():
            found, path = self._source(name, source, sniffed=name in sniffed)
            self.relations[name] = found
            paths += path
        for name, text in self._texts.items():
            self.relations[name] = text.relation((types or {}).get(name, {}))
        for name in sources.keys() - self._texts.keys():
            self.relations[name] = self._plainly_typed(self.relations[name])
        self._lock_down(paths)

    @property
    def words(self) -> Words:
        """DuckDB's own."""
        return words

    def _source(self, name: str, source: Any, *, sniffed: bool) -> tuple[str, list[str]]:
        """How a source is written in FROM, and the files it reads."""
        if isinstance(source, str | Path):
            path = Path(source).expanduser().resolve()
            inside = _ending(path)
            reader, files = FILES.get(inside), f"{path}/**/*{inside}" if path.is_dir() else str(path)
            if not path.exists() or reader is None:
                raise InvalidArgument(
                    f"The source of {name} is not a Parquet, CSV or JSON file, or a folder of them: {source}."
                )
            if reader == "read_parquet":
                return f"{reader}({quoted_text(files)})", [str(path)]
            if sniffed:
                return f"{reader}({quoted_text(files)}, sample_size = -1)", [str(path)]
            found = sorted(path.glob(f"**/*{inside}")) if path.is_dir() else [path]
            self._texts[name] = JsonLines.opened(name, found) if inside in _JSON else Csv.opened(name, found)
            return "", [str(path)]
        if isinstance(source, self._duckdb.DuckDBPyRelation):
            source = source.to_arrow_table()
        try:
            self._connection.register(f"source {name}", _as_arrow(source))
        except Exception:
            raise InvalidArgument(
                f"The source of {name} must be a path, an Arrow table, a DataFrame or a DuckDB relation."
            ) from None
        return quoted(f"source {name}"), []

    def _plainly_typed(self, relation: str) -> str:
        """A source with one type of the engine for each of ours: values that meet are then compared as they are."""
        try:
            described = self._connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
        except (self._duckdb.Error, RuntimeError):
            return relation  # said when its columns are asked for
        odd = {
            row[0]: _ODD[row[1].upper().partition("(")[0]]
            for row in described
            if "[" not in row[1] and row[1].upper().partition("(")[0] in _ODD
        }
        if not odd:
            return relation
        cast = ", ".join(f"TRY_CAST({quoted(name)} AS {kind}) AS {quoted(name)}" for name, kind in odd.items())
        return f"(SELECT * REPLACE ({cast}) FROM {relation})"

    def _lock_down(self, paths: Sequence[str]) -> None:
        """Nothing outside of the sources can be read from here on, and no setting be changed back."""
        folders = [path for path in paths if Path(path).is_dir()]
        files = [path for path in paths if not Path(path).is_dir()]
        known = [name for (name,) in self._connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()]
        for statement in (
            "SET temp_directory = ''",
            "SET error_on_division_by_zero = false",
            f"SET disabled_optimizers = '{','.join(name for name in _UNSAFE_OPTIMIZERS if name in known)}'",
            f"SET allowed_paths = {listed(files)}",
            f"SET allowed_directories = {listed(folders)}",
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

    def reads_text(self, name: str) -> bool:
        """Whether a source is text that is cast to the types it was opened with."""
        return name in self._texts

    def typed(self, name: str, types: Mapping[str, str]) -> DuckDB:
        """The same database, with other types for the columns of a source that is read as text."""
        if name not in self._texts:
            return self
        other = copy.copy(self)
        other.relations = self.relations | {name: self._texts[name].relation(types)}
        return other

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


def has_types(source: Any) -> bool:
    """Whether a source has types of its own, and is not text."""
    return not isinstance(source, str | Path) or FILES.get(_ending(Path(source).expanduser())) == "read_parquet"


def _ending(path: Path) -> str:
    """How the name of a file ends, or the names of the files in a folder."""
    return next((s for s in FILES if any(path.glob(f"**/*{s}"))), "") if path.is_dir() else path.suffix.lower()


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
