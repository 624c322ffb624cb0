"""Embedded DuckDB, locked: it reads the declared sources only, and runs no text but what was printed for it."""

from __future__ import annotations

import copy
import csv
import datetime
import re
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

from discreet.errors import DiscreetError, InvalidArgument

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


class EngineFailed(DiscreetError):
    """The engine could not answer. Its own words are not passed on: they may quote values."""


class DuckDB:
    """One connection to an embedded database, on sources fixed when it is opened.

    A CSV or JSON source has no types of its own: its columns are text, but for those that `types` names. Only where a
    source is listed in `sniffed` are they guessed from the rows, which is for public tables and for their owner.
    """

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
        self._texts: dict[str, _TextSource] = {}
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
            self._texts[name] = _JsonLines.opened(name, found) if inside in _JSON else _Csv.opened(name, found)
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


_LINES = (
    "auto_detect = false, ignore_errors = true, null_padding = true, strict_mode = false, hive_partitioning = false"
)
"""Nothing is guessed from the rows, and none stops a question: fields that a line lacks are NULL, those it has too many
are left out, and what cannot be read as a line at all is none.
"""
# In parallel, DuckDB 2.0 may take a line break inside quotes for the end of a row, and what follows it for rows of
# other people; and with null_padding it fails there.
_IN_ORDER = "parallel = false"


class _TextSource(Protocol):
    """Files whose values are text."""

    def relation(self, types: Mapping[str, str]) -> str:
        """How they are written in FROM, their columns of these types: what does not fit is NULL."""


@dataclass(frozen=True)
class _Csv:
    """Files with the names of their columns in the first line."""

    files: tuple[str, ...]
    names: tuple[str, ...]
    delimiter: str

    @classmethod
    def opened(cls, name: str, files: Sequence[Path]) -> _Csv:
        found = {_header(file) for file in files}
        if len(found) > 1:
            raise InvalidArgument(f"The files of {name} begin with different lines of names. Give them the same one.")
        [(names, delimiter)] = found
        plain = {column.strip().lower() for column in names}
        if len(plain) < len(names) or "" in plain or any(map(_is_number, plain)):
            raise InvalidArgument(
                f"The source of {name} must begin with the names of its columns: all different, and none a number."
            )
        return cls(tuple(map(str, files)), names, delimiter)

    def relation(self, types: Mapping[str, str]) -> str:
        dialect = f"""header = true, delim = {quoted_text(self.delimiter)}, quote = '"', escape = '"'"""
        columns = [f"{_cast(quoted(name), types.get(name))} AS {quoted(name)}" for name in self.names]
        return f"(SELECT {', '.join(columns)} FROM {_read_lines(self.files, self.names, dialect)})"


@dataclass(frozen=True)
class _JsonLines:
    """Files with one object in each line. They have no names of their own: the columns are those that are typed."""

    name: str
    files: tuple[str, ...]

    @classmethod
    def opened(cls, name: str, files: Sequence[Path]) -> _JsonLines:
        for file in files:
            with file.open("rb") as opened:
                if re.match(rb"[\xef\xbb\xbf\s]*\[\s*\{", opened.read(4096)):
                    raise InvalidArgument(f"The source of {name} is one JSON list. Write one object in each line.")
        return cls(name, tuple(map(str, files)))

    def relation(self, types: Mapping[str, str]) -> str:
        if not types:
            raise InvalidArgument(
                f"The source of {self.name} is JSON, whose columns are those that are declared. Say their types."
            )
        # the delimiter is a character that no JSON has as it is, so that every line is one field
        lines = _read_lines(self.files, ["line"], "header = false, delim = '\x01', quote = '', escape = ''")
        paths = _listed(["/" + name.replace("~", "~0").replace("/", "~1") for name in types])
        found = total(f"json_extract_string(line, {paths})")
        columns = [f"{_cast(f'found[{n}]', kind)} AS {quoted(name)}" for n, (name, kind) in enumerate(types.items(), 1)]
        return f"(SELECT {', '.join(columns)} FROM (SELECT {found} AS found FROM {lines}))"


def _read_lines(files: Sequence[str], names: Sequence[str], dialect: str) -> str:
    columns = ", ".join(f"{quoted_text(name)}: 'VARCHAR'" for name in names)
    return f"read_csv({_listed(files)}, columns = {{{columns}}}, {dialect}, {_LINES}, {_IN_ORDER})"


def _header(file: Path) -> tuple[tuple[str, ...], str]:
    """The names in the first line of a CSV file, and what stands between them."""
    with file.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as opened:
        first = opened.readline(100_000)
        delimiter = "\t" if file.suffix.lower() == ".tsv" else max(",;\t|", key=first.count)
        opened.seek(0)
        try:
            names = tuple(next(csv.reader(opened, delimiter=delimiter), []))
            "".join(names).encode()
        except (csv.Error, UnicodeEncodeError):
            names = ()
    return names or ("",), delimiter


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _cast(value: str, kind: str | None) -> str:
    return value if kind in (None, "text", "other") else WORDS["cast"].format(value, detail=TYPES[kind])


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


def moved_sum(total: str, rows: str, shift: int) -> str:
    """The exact sum of values that are all moved by so much."""
    return f"{total} + CAST({shift} AS HUGEINT) * {rows}"


def distance(value: str, center: Fraction) -> str:
    """How far a number lies from the center; NULL where it is no number.

    Promise: nothing is known of it in advance. An engine that believes the statistics of a file leaves out comparisons
    that they decide, clamping among them; what is in a TRY has none.
    """
    number = f"TRY_CAST({value} AS DOUBLE)"
    return total(f"{number} - ({float(center)!r}::DOUBLE)" if center else number)


def clamped_steps(number: str, step: Fraction, lowest: int, highest: int) -> str:
    """A DOUBLE, given by name, as whole steps within [lowest, highest]; NULL for NULL and NaN.

    Promise: steps are powers of two and ends below 2^53, so that both are exact, and rounding what lies between the
    ends does not lead beyond them.
    """
    low, high = (f"({float(end * step)!r}::DOUBLE)" for end in (lowest, highest))
    whole = f"TRY_CAST({number} * ({float(1 / step)!r}::DOUBLE) AS BIGINT)"
    # nearly all values need the first case only; NaN is taken for the largest number of all
    return (
        f"CASE WHEN {number} BETWEEN {low} AND {high} THEN {whole} WHEN {number} < {low} THEN ({lowest}) "
        f"WHEN isnan({number}) THEN NULL WHEN {number} > {high} THEN ({highest}) END"
    )


def random_rank(person: str, by: Sequence[str], seed: int) -> str:
    """The place of a row among its person's rows, in a random order that depends on no value but `by`."""
    order = f"hash({', '.join([*by, person, str(seed)])})"
    return f"row_number() OVER (PARTITION BY {person} ORDER BY {order})"


def few_of_each(rows: str, key: str, most: int) -> str:
    """Rows, at most so many of them with the same key, chosen at random."""
    drawn = f"WITH drawn AS MATERIALIZED (SELECT *, random() AS draw FROM ({rows}))"
    rank = f"row_number() OVER (PARTITION BY {key} ORDER BY draw)"
    return f"{drawn} SELECT * EXCLUDE (draw, place) FROM (SELECT *, {rank} AS place FROM drawn) WHERE place <= {most}"


def one_of_each(rows: str, key: str, value: str) -> str:
    """One value for each key, chosen at random."""
    drawn = f"WITH drawn AS MATERIALIZED (SELECT *, random() AS draw FROM ({rows}))"
    return f"{drawn} SELECT arg_min({value}, draw) AS {value} FROM drawn GROUP BY {key}"


def octave_bin(value: str, first: int, last: int) -> str:
    """Which doubling a number is in: 0 under 2^first, then 1, 2, … to last − first, with the sign of the number."""
    number = f"TRY_CAST({value} AS DOUBLE)"
    octave = f"least(floor(log2(abs({number}))) - ({first}) + 1, {last - first})"
    sized = f"CASE WHEN abs({number}) < {2.0**first!r} THEN 0 ELSE CAST(sign({number}) * {octave} AS INTEGER) END"
    return total(f"CASE WHEN {number} IS NULL OR isnan({number}) THEN NULL ELSE {sized} END")


def year_bin(value: str, first: int, last: int) -> str:
    """The year of a date, or the nearest one of those listed."""
    year = f"date_part('year', {value})"
    inside = f"CAST(least(greatest({year}, {first}), {last}) AS INTEGER)"
    return total(f"CASE WHEN {year} IS NULL THEN NULL ELSE {inside} END")


def of_person(aggregate: str, value: str, kind: str) -> str:
    """An aggregate of one person's rows: it never fails, and is NULL where it does not fit its type."""
    if aggregate in ("count", "min", "max"):
        return f"{aggregate}({value})"
    # in an order that these values have by themselves: that of the rows depends on the rows of others
    number = f"TRY_CAST({value} AS DOUBLE)"
    found = f"{aggregate}({number} ORDER BY {number})"
    return f"TRY_CAST(round({found}) AS BIGINT)" if kind in ("integer", "boolean") else found


def group_key(value: str, kind: str) -> str:
    """A key that is the same value here and in Python: what has no such value is NULL."""
    match kind:
        case "integer":
            return f"TRY_CAST({value} AS BIGINT)"
        case "number":
            return f"CASE WHEN isfinite(TRY_CAST({value} AS DOUBLE)) THEN TRY_CAST({value} AS DOUBLE) END"
        case "timestamp":
            return f"CASE WHEN isfinite(TRY_CAST({value} AS TIMESTAMP)) THEN TRY_CAST({value} AS TIMESTAMP) END"
        case "date":
            return f"CASE WHEN isfinite({value}) THEN {value} END"
    return value
