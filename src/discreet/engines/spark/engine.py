"""Apache Spark (3.5 or 4.x): each plan runs on a cluster as one SQL statement, and only bounded aggregates come back.

The session is one that the owner passes, one that is started with `master` (such as "local[*]", "spark://host:7077" or
"yarn"), or one of Spark Connect ("sc://host:15002"). Statements run in a SQL session of their own with fixed settings.
Spark's messages quote values, so its exceptions and loggers are silenced.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from discreet.engines.configuration import DELTA, is_path
from discreet.engines.dialect import Dialect
from discreet.engines.spark import dialect as spark_dialect
from discreet.engines.spark.dialect import plainly_typed, quote
from discreet.engines.spark.sessions import Silence, attempt, frees_frames, in_time, new_name, own_session, session_for
from discreet.errors import EngineFailed, InvalidArgument
from discreet.rows.arrow import array_of

_KINDS = {
    "boolean": ("boolean",),
    "integer": ("tinyint", "smallint", "int", "bigint"),
    "number": ("float", "double", "decimal"),
    "text": ("string", "varchar", "char"),
    "date": ("date",),
    "timestamp": ("timestamp", "timestamp_ntz"),
}
_KIND_OF = {own: kind for kind, names in _KINDS.items() for own in names}
_FAILED = (
    "Spark could not compute this, took longer than allowed, or lost its workers. Its message is not shown, as it may "
    "quote values. What was charged stays charged: ask again with the same key, or give it more time with timeout."
)
_TYPED = ("parquet", "delta", "orc", "iceberg")
"""Formats whose columns have types: no cell of theirs has to be understood first."""


class Spark:
    """Tables, folders of Parquet or Delta files, and DataFrames, under our names.

    A session that you pass is silent while a database is open on it. A session that is started here stays until the
    process ends.
    """

    reads_files = False

    def __init__(
        self,
        sources: Mapping[str, Any],
        *,
        master: str | None = None,
        session: Any = None,
        config: Mapping[str, str] | None = None,
        timeout: int | None = None,
    ) -> None:
        self.timeout = timeout
        self._given = session_for(master, config or {}) if session is None else session
        self.relations: dict[str, str] = {}
        self._kinds: dict[str, dict[str, str]] = {}
        self._files: dict[str, Callable[[], Any]] = {}
        self._kept: list[str] = []
        Silence.begin(self._given)
        self._open = True
        try:
            self._session = attempt(lambda: own_session(self._given), _FAILED)
            for name, source in sources.items():
                self._find(name, source)
        except BaseException:
            self.close()
            raise

    @property
    def dialect(self) -> Dialect:
        """Spark's dialect."""
        return spark_dialect

    def _find(self, name: str, source: Any) -> None:
        """Find a source and the types of its columns. No rows are read, except that a view or DataFrame is computed
        now: a later failure would reveal something about a row.
        """
        said = f"The source of {name} must be a table of Spark, a path of Parquet or Delta, or a DataFrame."
        if isinstance(source, str | Path):
            said = (
                f"The source of {name} cannot be read: {source}. Check that Spark finds it, and can read such a file."
            )
        refused = partial(attempt, said=said, error=InvalidArgument, code="source-unreadable")
        if isinstance(source, str | Path):
            relation = refused(lambda: self._path(str(source)) or self._table(str(source)))
        else:
            relation = refused(lambda: self._computed(source))
        found = refused(lambda: self._session.sql(f"SELECT * FROM {relation} LIMIT 0").schema)
        types = {field.name: field.dataType.simpleString() for field in found}
        self._kinds[name] = {column: _kind(own) for column, own in types.items()}
        columns = ", ".join(plainly_typed(column, _kind(own), own) for column, own in types.items())
        self.relations[name] = f"(SELECT {columns} FROM {relation}) AS source_of_rows"

    def _path(self, source: str) -> str | None:
        """A file or folder of Parquet or Delta. Its list of files is read again for each question."""
        if not is_path(source):
            return None
        delta = source.startswith(DELTA) or (Path(source) / "_delta_log").is_dir()
        path, view = source.removeprefix(DELTA), new_name()
        kind = "delta" if delta else "parquet"
        if not delta:
            _check_units(Path(path))
        schema = self._session.read.format(kind).load(path).schema

        def listed() -> None:
            reader = self._session.read.format(kind).option("discreet", view)  # not cached under this name
            (reader if delta else reader.schema(schema)).load(path).createOrReplaceTempView(view)

        self._files[view] = listed
        listed()
        return quote(view)

    def _table(self, source: str) -> str:
        """A table of the catalog, used directly if reading a row cannot fail. Anything else is computed first."""
        known = self._given.catalog.getTable(source)
        if not known.isTemporary and known.tableType in ("MANAGED", "EXTERNAL"):
            name = ".".join(map(quote, [known.catalog, *known.namespace, known.name]))
            described = self._session.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
            if any(row[0] == "Provider" and row[1].lower() in _TYPED for row in described):
                return name
        return self._computed(self._given.table(source))

    def _computed(self, frame: Any) -> str:
        """The rows of a DataFrame, computed once, under a name that is visible to every session of the cluster."""
        if hasattr(frame, "createOrReplaceGlobalTempView") and not hasattr(frame, "localCheckpoint"):
            raise InvalidArgument(
                "This Spark cannot keep a DataFrame or view. Write it as Parquet, and name its path.",
                code="source-format",
            )
        view = new_name()
        frame.localCheckpoint(eager=True).createGlobalTempView(view)
        self._kept.append(view)
        return f"{quote(self._session.conf.get('spark.sql.globalTempDatabase'))}.{quote(view)}"

    def columns(self, name: str) -> dict[str, str]:
        """The names and types of a source's columns."""
        return dict(self._kinds[name])

    def reads_text(self, name: str, column: str) -> bool:
        """Tables and Parquet files have types of their own."""
        return False

    def untyped(self, name: str) -> Collection[str]:
        """Always empty: nothing is in memory."""
        return ()

    def typed(self, name: str, types: Mapping[str, str]) -> Spark:
        """The same database, because its types are fixed."""
        return self

    def blank(self) -> Spark:
        """The same sources: Spark analyzes a statement without reading rows or files."""
        return self

    def computes(self, statement: str) -> bool:
        """Whether Spark can analyze a statement that was printed for it. The statement does not run."""

        def analyzed() -> bool:
            from pyspark.errors import AnalysisException, ParseException

            with suppress(AnalysisException, ParseException):
                return self._session.sql(statement).schema is not None
            return False

        return bool(attempt(analyzed, _FAILED))

    def computed(self, statement: str) -> str:
        """The statement itself in a FROM clause. What reads from it is tried together with it."""
        return f"({statement}) AS computed"

    def frame(self, statement: str) -> Any:
        """The result of a statement, as a DataFrame that is not yet computed."""

        def planned() -> Any:
            for listed in self._files.values():
                listed()
            return self._session.sql(statement)

        return attempt(planned, _FAILED)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """The result of a statement that was printed for this engine. Sums are integers."""
        return self._run(statement)[1]

    def table(self, statement: str) -> Any:
        """The same as an Arrow table."""
        import pyarrow as pa

        arrow = {"boolean": pa.bool_(), "double": pa.float64(), "string": pa.string(), "date": pa.date32()}
        arrow |= {"timestamp_ntz": pa.timestamp("us"), "int": pa.int32(), "bigint": pa.int64()}
        types, rows = self._run(statement)
        values = list(zip(*rows, strict=True)) if rows else [()] * len(types)
        made = zip(types, values, strict=True)
        columns = [name for name, _ in types]
        return attempt(
            lambda: pa.table([array_of(found, arrow.get(own)) for (_, own), found in made], columns), _FAILED
        )

    @frees_frames
    def _run(self, statement: str) -> tuple[list[tuple[str, str]], list[tuple[Any, ...]]]:
        def fetched() -> Any:
            with in_time(self._session, self.timeout):
                frame = self.frame(statement)
                types = [(field.name, field.dataType.simpleString()) for field in frame.schema]
                return types, [tuple(map(_plain, row)) for row in frame.collect()]

        found: tuple[list[tuple[str, str]], list[tuple[Any, ...]]] = attempt(fetched, _FAILED)
        return found

    def hold(self, statement: str) -> str | None:
        """Nothing is written: a later statement computes it again."""
        return None

    def forget(self, name: str) -> None:
        """Nothing is held."""

    def close(self) -> None:
        """Drop the views. The session stays open."""
        views, self._files, kept, self._kept = list(self._files), {}, self._kept, []
        with suppress(EngineFailed):  # a cluster that is gone has no views
            for view in views:
                attempt(partial(self._session.catalog.dropTempView, view), _FAILED)
            for view in kept:
                attempt(partial(self._session.catalog.dropGlobalTempView, view), _FAILED)
        if self._open:
            self._open = False
            Silence.end(self._given)


def _kind(own: str) -> str:
    return _KIND_OF.get(own.partition("(")[0].partition(" ")[0], "other")


def _check_units(path: Path) -> None:
    """Refuse timestamps in milliseconds where they are visible to us: Spark fails on a cell that does not fit
    microseconds.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    for file in sorted(path.glob("**/*.parquet")) if path.is_dir() else [path] if path.is_file() else []:
        for field in pq.read_schema(file):
            if pa.types.is_timestamp(field.type) and field.type.unit in ("s", "ms"):
                raise InvalidArgument(
                    f"{field.name} is in milliseconds, which may stop Spark. Write it in microseconds.",
                    code="source-milliseconds",
                )


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, decimal.Decimal) else value
