"""Embedded DuckDB, locked down: it reads only the declared sources, and runs only text that was printed for it."""

from __future__ import annotations

import copy
import hashlib
import os
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from discreet.engines import parquet_files
from discreet.engines.dialect import Dialect
from discreet.engines.duckdb import dialect, forks
from discreet.engines.duckdb.dialect import list_texts, quote, quote_text
from discreet.engines.duckdb.in_memory import NOTHING, InMemory
from discreet.engines.duckdb.spill import Spill
from discreet.engines.duckdb.text_files import ZIPPED, Csv, JsonLines, TextSource
from discreet.engines.duckdb.types import is_safe, kind_of, plainly
from discreet.engines.text_format import TextFormat
from discreet.errors import EngineFailed, InvalidArgument
from discreet.exact.randomness import random_integer
from discreet.rows.tables import columns_of, run_guarded

_JSON = (".json", ".jsonl", ".ndjson")
_READERS = dict.fromkeys((".csv", ".tsv", ".txt"), "read_csv") | dict.fromkeys(_JSON, "read_json")
FILES = {".parquet": "read_parquet"} | {f"{end}{zipped}": r for zipped in ("", ZIPPED) for end, r in _READERS.items()}
# A repeated expression would be computed outside of the TRY that makes it total; a TRY_CAST that is pushed into the
# reading of a text file would drop the row, or stop the question.
_UNSAFE_OPTIMIZERS = ("common_subexpressions", "type_pushdown", "scalar_fn_pushdown")
# A rank as a list for each person cannot be spilled to disk, and is not faster. A value that is named once would be
# computed again wherever its name is used.
_GREEDY_OPTIMIZERS = ("top_n_window_elimination", "projection_pullup")
_UNITS = {
    f"{letter}{kind}": base**power
    for power, letter in enumerate("KMGT", 1)
    for kind, base in (("B", 1000), ("iB", 1024))
}
_LEAST_MEMORY = 100 * 10**6
"""With less, the smallest question may fail; a thread should have as much for itself."""
_REMEMBERED, _LONGEST_REMEMBERED = 1000, 10_000
"""So many statements are known to be fine without being tried again, if their columns have no longer text."""
_PATIENCE, _COARSE = 0.5, 5
"""How often progress is read, in seconds, and the steps in which it is reported, in percent."""


class DuckDB:
    """One connection to an embedded database, on sources fixed when it is opened.

    A CSV or JSON source has no types of its own: its columns are text, except those that `types` names. The same holds
    for lists, tuples and object columns of a source in memory. Types are guessed from the rows only if a source is
    listed in `sniffed`, which is for public tables and for their owner. `formats` says how a text file is to be read if
    it is not as its first line and its name say.

    `memory` is the maximum memory, such as "8GB", by default four fifths of the machine's, and `threads` how many
    threads it may use, by default one for each core. What does not fit is written
    to a folder with mode 0700, inside `spill` or the system's temporary folder, and removed when the engine is closed.
    These files contain rows and are not encrypted: DuckDB can encrypt them safely only with an extension that is not
    included. So by default, rows are spilled only if every source is a file, because they are already on a disk. Rows
    that exist only in memory stay there, unless `spill` is True or a folder. With False, nothing is written. DuckDB
    lets statements read its own folder, as well as the sources, but only printed text reaches it.
    """

    reads_files = True
    progress: Callable[[int], None] | None = None
    """Told how much of a long statement is done, in percent. Like the time it takes this is not private: it is for a
    person at a terminal who runs the engine, and nothing for an answer."""

    def __init__(
        self,
        sources: Mapping[str, Any],
        *,
        types: Mapping[str, Mapping[str, str]] | None = None,
        formats: Mapping[str, TextFormat] | None = None,
        sniffed: Collection[str] = (),
        memory: str | None = None,
        threads: int | None = None,
        spill: str | Path | bool | None = None,
    ) -> None:
        import duckdb

        limit = None if memory is None else memory_in_bytes(memory)
        self._duckdb = duckdb
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._connection = duckdb.connect(":memory:", config={"allow_unsigned_extensions": "false"})
        forks.watch(self._connection)
        self.relations: dict[str, str] = {}
        self._texts: dict[str, TextSource] = {}
        self._left_out: dict[str, set[str]] = {}
        self._blanks: dict[str, str] = {}
        self._fine: dict[bytes, str] = {}
        paths: list[str] = []
        for name, source in sources.items():
            found, path = self._source(name, source, (formats or {}).get(name), sniffed=name in sniffed)
            self.relations[name] = found
            paths += path
        for name in self._texts:
            self.relations[name] = self._relation(name, (types or {}).get(name, {}))
        for name in sources.keys() - self._texts.keys():
            self.relations[name] = self._plainly_typed(name, self.relations[name])
        on_disk = len(paths) == len(sources)
        self._spill = _spilling(spill) if spill is not None or on_disk else None
        self._lock_down(paths, limit, threads)

    @property
    def dialect(self) -> Dialect:
        """DuckDB's dialect. It is requested when a question is planned, so a forked process is refused before a
        charge.
        """
        self._check_process()
        return dialect

    def _source(self, name: str, source: Any, declared: TextFormat | None, *, sniffed: bool) -> tuple[str, list[str]]:
        """The source in a FROM clause, and the files it reads."""
        if isinstance(source, str | Path):
            named = os.path.expanduser(source)
            if not os.path.exists(named):
                raise InvalidArgument(
                    f"The source of {name} does not exist: {source}. Correct its path.", code="source-missing"
                )
            path = Path(named).resolve()
            inside = _ending(path)
            reader, files = FILES.get(inside), f"{path}/**/*{inside}" if path.is_dir() else str(path)
            if reader is None:
                raise InvalidArgument(
                    f"The source of {name} must be a Parquet, CSV, TSV, TXT or JSON file, or a folder of them, not "
                    f"{source}. All but Parquet may end in .gz.",
                    code="source-format",
                )
            found = sorted(path.glob(f"**/*{inside}")) if path.is_dir() else [path]
            _check_format(name, declared, reader)
            if reader == "read_parquet":
                self._check_alike(name, files, len(found))
                self._left_out[name] = parquet_files.in_milliseconds(found)
                return parquet_files.reading(files), [str(path)]
            if sniffed:
                return f"{reader}({quote_text(files)}, sample_size = -1)", [str(path)]
            made = JsonLines if reader == "read_json" else Csv
            self._texts[name] = made.opened(name, found, declared or TextFormat())
            return "", [str(path)]
        if isinstance(source, self._duckdb.DuckDBPyRelation):
            said = (
                f"The source of {name} is a DuckDB relation that cannot be computed. Its message is not shown, as it "
                "may quote values. Check that its query runs."
            )
            source = run_guarded(source.to_arrow_table, said, code="source-unreadable")
        _check_format(name, declared, "")
        columns = columns_of(source, name)
        self._texts[name] = InMemory(name, columns, self._connection.register)
        return "", []

    def _check_alike(self, name: str, files: str, number: int) -> None:
        """Check that no file of a folder has a wider type than the first. All are read with the first one's type."""
        if number == 1:
            return
        with suppress(self._duckdb.Error, RuntimeError):  # reported when its columns are requested
            first, widest = (
                {row[0]: row[1] for row in self._described(parquet_files.reading(files, together=together))}
                for together in (False, True)
            )
            if unlike := [column for column, kind in first.items() if widest.get(column, kind) != kind]:
                raise InvalidArgument(
                    f"The files of {name} have different types for {', '.join(unlike)}. Write them with the same type.",
                    code="source-files-differ",
                )

    def _relation(self, name: str, types: Mapping[str, str]) -> str:
        """A source without types of its own in a FROM clause, with these types for its columns."""
        text = self._texts[name]
        made = text.relation(types)
        return self._plainly_typed(name, made) if isinstance(text, InMemory) else made

    def _plainly_typed(self, name: str, relation: str) -> str:
        """A source with one DuckDB type for each of our types, and without columns that are not safe to read."""
        try:
            described = self._described(relation)
        except (self._duckdb.Error, RuntimeError):
            return relation  # reported when its columns are requested
        types = {row[0]: row[1].upper() for row in described}
        unread = [column for column, given in types.items() if not is_safe(given)]
        unread += [column for column in self._left_out.get(name, ()) if column in types and column not in unread]
        if len(unread) == len(types):
            raise InvalidArgument(NOTHING.format(name), code="source-no-columns")
        read = {quote(column): given for column, given in types.items() if column not in unread}
        parquet = name in self._left_out
        how = {column: text for column, given in read.items() if (text := plainly(column, given, parquet=parquet))}
        without = f" EXCLUDE ({', '.join(map(quote, unread))})" if unread else ""
        replaced = f" REPLACE ({', '.join(f'{text} AS {column}' for column, text in how.items())})" if how else ""
        return f"(SELECT *{without}{replaced} FROM {relation})" if unread or how else relation

    def _described(self, relation: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()

    def _lock_down(self, paths: Sequence[str], memory: int | None, threads: int | None) -> None:
        """From here on, only the sources can be read, and no setting can be changed back."""
        folders = [path for path in paths if Path(path).is_dir()]
        files = [path for path in paths if not Path(path).is_dir()]
        known = [name for (name,) in self._connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()]
        without = [name for name in (*_UNSAFE_OPTIMIZERS, *_GREEDY_OPTIMIZERS) if name in known]
        spill = "" if self._spill is None else str(self._spill.folder)
        with suppress(self._duckdb.InvalidInputException):  # a notebook without ipywidgets shows no bar
            self._connection.execute("SET enable_progress_bar = true")
            self._connection.execute("SET enable_progress_bar_print = false")
        for statement in (
            f"SET temp_directory = {quote_text(spill)}",
            *([] if threads is None else [f"SET threads = {threads}"]),
            *([] if memory is None else self._within(memory, threads)),
            "SET preserve_insertion_order = false",
            "SET error_on_division_by_zero = false",
            f"SET disabled_optimizers = '{','.join(without)}'",
            f"SET allowed_paths = {list_texts(files)}",
            f"SET allowed_directories = {list_texts(folders)}",
            "SET enable_external_access = false",
            "SET lock_configuration = true",
        ):
            self._connection.execute(statement)

    def _within(self, memory: int, threads: int | None) -> list[str]:
        """The settings for this many bytes: as many threads as have enough memory to work with."""
        threads = threads or self._connection.execute("SELECT current_setting('threads')").fetchall()[0][0]
        few = max(1, min(threads, memory // _LEAST_MEMORY))
        return [f"SET memory_limit = '{memory}B'", f"SET threads = {few}"]

    def columns(self, name: str) -> dict[str, str]:
        """The names and types of a source's columns."""
        try:
            described = self.rows(f"DESCRIBE SELECT * FROM {self.relations[name]}")
        except EngineFailed:
            raise InvalidArgument(
                f"The source of {name} cannot be read as a table. Check that the file is complete and in the format "
                "that its name says.",
                code="source-unreadable",
            ) from None
        return {row[0]: kind_of(row[1]) for row in described}

    def reads_text(self, name: str, column: str) -> bool:
        """Whether a column has no type of its own, and is read as the type it was opened with."""
        text = self._texts.get(name)
        return text is not None and (not isinstance(text, InMemory) or column in text.cells)

    def untyped(self, name: str) -> Collection[str]:
        """The columns of a source in memory that have no types of their own: lists, tuples and object columns."""
        text = self._texts.get(name)
        return text.cells if isinstance(text, InMemory) else ()

    def typed(self, name: str, types: Mapping[str, str]) -> DuckDB:
        """The same database, with other types for the columns of a source that have none of their own."""
        text = self._texts.get(name)
        if text is None or (isinstance(text, InMemory) and not text.cells):
            return self
        other = copy.copy(self)
        self._check_process()
        with self._lock:
            other.relations = self.relations | {name: self._relation(name, types)}
        return other

    def __copy__(self) -> DuckDB:
        other = object.__new__(DuckDB)
        other.__dict__.update(self.__dict__)
        return other

    def __reduce__(self) -> Any:
        raise InvalidArgument(
            "An open table or database cannot be pickled: it holds its data. Open it again in the other process.",
            code="not-pickled",
        )

    def blank(self) -> DuckDB:
        """The same columns with the same types, but no rows. Files and their statistics have no influence."""
        other = copy.copy(self)
        other.relations = {name: self._blank(relation) for name, relation in self.relations.items()}
        return other

    def _blank(self, relation: str) -> str:
        if relation not in self._blanks:
            self._blanks[relation] = _blank_of(self.rows(f"DESCRIBE SELECT * FROM {relation}"))
        return self._blanks[relation]

    def computes(self, statement: str) -> bool:
        """Whether a statement that was printed for a blank engine can be computed. No row is read."""
        return self.computed(statement) is not None

    def computed(self, statement: str) -> str | None:
        """The columns of the result of such a statement, without a row. None if it cannot be computed."""

        def tried() -> str | None:
            with suppress(self._duckdb.ProgrammingError, self._duckdb.DataError, self._duckdb.NotSupportedError):
                result = self._connection.execute(statement)
                columns = _blank_of((one[0], str(one[1])) for one in result.description or ())
                result.fetchall()
                return columns
            return None

        known = hashlib.sha256(statement.encode("utf-8", "surrogatepass")).digest()
        if known in self._fine:
            return self._fine[known]
        found: str | None = self._held(tried)
        if found is not None and len(found) <= _LONGEST_REMEMBERED:
            if len(self._fine) >= _REMEMBERED:
                self._fine.clear()
            self._fine[known] = found
        return found

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """The result of a statement that was printed for this engine."""
        return self._run(statement, lambda text: self._connection.execute(text).fetchall())  # type: ignore[no-any-return]

    def table(self, statement: str, *, seconds: float | None = None) -> Any:
        """The same as an Arrow table. It is given up after so many seconds, if a number is given."""

        def within(text: str) -> Any:
            timer = None if seconds is None else threading.Timer(seconds, self._connection.interrupt)
            if timer is not None:
                timer.start()
            try:
                return self._connection.sql(text).to_arrow_table()
            finally:
                if timer is not None:
                    timer.cancel()

        return self._run(statement, within)

    def hold(self, statement: str) -> str | None:
        """Compute a statement once, for later statements that read its result by the returned name."""
        name = f"held_{random_integer(62)}"
        self.rows(f"CREATE TEMP TABLE {name} AS {statement}")
        return name

    def forget(self, name: str) -> None:
        """Drop a result that is held."""
        self.rows(f"DROP TABLE {name}")

    def _run(self, statement: str, fetch: Callable[[str], Any]) -> Any:
        return self._held(lambda: fetch(statement))

    def _held(self, work: Callable[[], Any]) -> Any:
        """Use the connection, one thread at a time. Its error messages are not passed on."""
        self._check_process()
        with suppress(self._duckdb.Error, RuntimeError), self._lock, self._watched():
            return work()
        raise EngineFailed(  # outside of a handler: no context, which might quote values
            "The engine could not compute this. Its message is not shown, as it may quote values. "
            "Ask for less at once, or give the engine more memory, or a folder to spill into."
        )

    def _check_process(self) -> None:
        """The threads of a database stay in the process that opened it. A forked process would wait for them
        forever.
        """
        if os.getpid() != self._process:
            raise EngineFailed(
                "This process was forked from the one that opened the data. Open the data again in this process.",
                code="forked-process",
            )

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Report progress meanwhile, if a callback was given."""
        if self.progress is None:
            yield
            return
        done = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(self.progress, done), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()

    def _watch(self, tell: Callable[[int], None], done: threading.Event) -> None:
        reported = 0
        while not done.wait(_PATIENCE):
            percent = int(self._connection.query_progress()) // _COARSE * _COARSE
            if percent > reported:
                reported = percent
                tell(percent)

    def close(self) -> None:
        """Close the database and remove the files it wrote."""
        if os.getpid() != self._process:
            return
        self._connection.close()
        if self._spill is not None:
            self._spill.close()


def _check_format(name: str, declared: TextFormat | None, reader: str) -> None:
    """Refuse a format for a source that has one of its own."""
    if declared is not None and (reader not in _READERS.values() or (reader == "read_json" and declared.words())):
        raise InvalidArgument(
            f"The source of {name} has a format of its own. Remove format from [tables.{name}] and its columns.",
            code="format-not-text",
        )


def _spilling(spill: str | Path | bool | None) -> Spill | None:
    """The folder to spill to, if requested. By default none if none can be created."""
    if spill is False:
        return None
    if spill is None:
        with suppress(InvalidArgument):
            return Spill()
        return None
    return Spill(None if spill is True else spill)


def _blank_of(columns: Iterable[Sequence[Any]]) -> str:
    """Columns with these names and types, without a row."""
    return f"(SELECT {', '.join(f'CAST(NULL AS {one[1]}) AS {quote(one[0])}' for one in columns)} WHERE FALSE)"


def memory_in_bytes(text: str) -> int:
    """An amount of memory, such as "8GB" or "512 MiB"."""
    found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,3})?) ?([KMGT]i?B)", text) if isinstance(text, str) else None
    amount = int(float(found[1]) * _UNITS[found[2]]) if found else 0
    if amount < _LEAST_MEMORY:
        raise InvalidArgument('memory must be an amount of at least 100MB, such as "8GB".', code="engine-memory")
    return amount


def has_types(source: Any) -> bool:
    """Whether a source has types of its own, so that not everything is text."""
    return not isinstance(source, str | Path) or FILES.get(_ending(Path(source).expanduser())) == "read_parquet"


def text_files_in(source: Path) -> list[Path]:
    """The CSV, TSV or TXT files of a source. None of it if the source is another file, or a folder of others."""
    path = source.expanduser().resolve()
    inside = _ending(path)
    if FILES.get(inside) != "read_csv":
        return []
    return sorted(path.glob(f"**/*{inside}")) if path.is_dir() else [path]


def _ending(path: Path) -> str:
    """The file extension of a file, or of the files in a folder."""
    if path.is_dir():
        return next((s for s in FILES if any(path.glob(f"**/*{s}"))), "")
    return "".join(path.suffixes[-2:]).lower() if path.suffix.lower() == ZIPPED else path.suffix.lower()
