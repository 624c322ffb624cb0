"""The catalog of one policy, as clients of PostgreSQL ask for it. It knows names and types, and never a row."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb
from sqlglot import exp
from sqlglot.errors import SqlglotError

from discreet.gateway.catalog import facts, objects, snapshot
from discreet.gateway.catalog.database import SCHEMAS, make_database, write_array
from discreet.gateway.catalog.lookups import Asking, Lookups
from discreet.gateway.catalog.scopes import name_of
from discreet.gateway.catalog.translate import Relation, Translator
from discreet.gateway.catalog.types import REFERENCES, UNKNOWN, element_of, is_array, is_record
from discreet.gateway.wire.format.values import NAMES, TYPES, Column, Described, Refusal

SECONDS = 2.0
"""How long one statement may run."""
MOST_ROWS = 100_000
LONGEST_RESULT = 50_000_000
"""At most so many characters and elements of arrays are in one result."""
_QUERIES = (exp.Select, exp.SetOperation, exp.Values, exp.Subquery)


class Reference(int):
    """The number of an object. As a text it is the object's name."""

    name: str

    def __new__(cls, number: int, name: str) -> Reference:
        made = super().__new__(cls, number)
        made.name = name
        return made

    def __str__(self) -> str:
        return self.name


class Catalog:
    """Answers statements about PostgreSQL's own relations, and statements without a table."""

    def __init__(self, tables: Mapping[str, Any], *, database: str, seconds: float = SECONDS) -> None:
        kept, said = snapshot.load()
        declared = facts.read_tables(tables)
        rows = objects.make_rows(declared, database, kept)
        kept = kept | {("pg_catalog", name): kept["pg_catalog", name].add(more) for name, more in rows.items()}
        self._declared = {table.name for table in declared}
        self._lookups = Lookups(kept, said, database)
        self._database = make_database(kept, self._lookups)
        self._seconds = seconds
        oids = {(row["relnamespace"], row["relname"]): row["oid"] for row in kept["pg_catalog", "pg_class"].records}
        spaces = {row["nspname"]: row["oid"] for row in kept["pg_catalog", "pg_namespace"].records}
        self._relations = {
            (schema, name): Relation(SCHEMAS[schema], name, one.columns, oids.get((spaces[schema], name), 0))
            for (schema, name), one in kept.items()
        }
        hidden = self._relations.pop(("pg_catalog", "pg_get_keywords"))
        self._sources = self._relations | {("pg_catalog", "pg_get_keywords"): hidden}
        self._end = weakref.finalize(self, self._database.close)  # also one that nobody closed

    def answers(self, query: exp.Expr) -> bool:
        """Whether a statement is for the catalog: it names one of its relations, or no table at all.

        One that names a table of the policy, too, is for the catalog, and is refused there.
        """
        if not isinstance(query, _QUERIES):
            return False
        named = list(_tables_of(query))
        return not named or any(self._is_mine(table) for table in named)

    def describe(self, query: exp.Expr, declared: Sequence[int] = ()) -> Described:
        """The parameters and the columns of a statement. Nothing is run."""
        made, columns, _, _ = self._translate(query, declared)
        return Described(made.parameters, _told(columns))

    def run(
        self,
        query: exp.Expr,
        values: Sequence[Any] = (),
        *,
        user: str,
        settings: Mapping[str, str] | None = None,
        declared: Sequence[int] = (),
    ) -> tuple[tuple[Column, ...], list[tuple[Any, ...]]]:
        """The columns and the rows of a statement. `values` are its parameters, and `declared` their types."""
        made, columns, text, used = self._translate(query, declared)
        if not declared and any(not made.hints.get(place) for place in used):
            # nothing in the statement says what such a parameter is, so its value does
            guessed = [0 if made.hints.get(n) else _type_of(value) for n, value in enumerate(values, start=1)]
            made, columns, text, used = self._translate(query, guessed)
        if len(values) < len(made.parameters):
            raise Refusal(f"There are {len(values)} values, but {len(made.parameters)} parameters.", state="08P01")
        given = [values[place - 1] for place in used]
        rows = self._fetch(text, given, Asking(user, dict(settings or {})), columns)
        return _told(columns), rows

    def close(self) -> None:
        """Give the memory back."""
        self._end()

    # --- inside -----------------------------------------------------------------------------------------------

    def _is_mine(self, table: exp.Table) -> bool:
        schema, name = name_of(table.args.get("db")), name_of(table.this)
        if schema in SCHEMAS:
            return True
        return schema is None and ("pg_catalog", name) in self._relations

    def _translate(
        self, query: exp.Expr, declared: Sequence[int]
    ) -> tuple[Translator, tuple[Column, ...], str, list[int]]:
        for table in _tables_of(query):
            if not self._is_mine(table):
                raise Refusal(
                    "A statement cannot use both the catalog and a table of the policy.",
                    state="0A000",
                    hint="Ask the catalog and the table in two statements.",
                )
        made = Translator(self._sources, [NAMES.get(oid, UNKNOWN) for oid in declared])
        try:
            node, columns = made.translate(query)
            filled, used = made.fill(node)
            return made, columns, filled.sql("duckdb"), used
        except (SqlglotError, RecursionError, KeyError, AttributeError, TypeError):
            raise Refusal("The catalog cannot read this statement.", state="0A000") from None

    def _fetch(self, text: str, values: list[Any], asking: Asking, columns: Sequence[Column]) -> list[tuple[Any, ...]]:
        with self._cursor(asking) as cursor:
            try:
                rows = _fetch_bounded(cursor.execute(text, values or None))
            except duckdb.Error as error:
                raise self._explained(error, asking) from None
            return self._shown(rows, columns)

    @contextmanager
    def _cursor(self, asking: Asking) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor that knows who asks, and is stopped when its time is over."""
        if not self._end.alive:
            raise Refusal("The catalog is closed. Connect again.", state="57P01")
        cursor = self._database.cursor()
        self._lookups.local.asking = asking
        timer = threading.Timer(self._seconds, cursor.interrupt)
        timer.daemon = True
        try:
            cursor.execute("SET VARIABLE who = $1", [asking.user])
            cursor.execute("SET VARIABLE who_quoted = $1", [self._lookups.quote_ident(asking.user)])
            timer.start()
            yield cursor
        finally:
            timer.cancel()
            self._lookups.local.asking = None
            cursor.close()

    def _explained(self, error: duckdb.Error, asking: Asking) -> Refusal:
        """DuckDB's error as one of PostgreSQL. Its own words are not shown."""
        if asking.refusal is not None:
            return asking.refusal
        if isinstance(error, duckdb.InterruptException):
            return Refusal("canceling statement due to statement timeout", state="57014")
        if isinstance(error, duckdb.OutOfMemoryException):
            return Refusal("The statement needs more memory than the catalog has.", state="53200")
        if isinstance(error, duckdb.ConversionException | duckdb.OutOfRangeException):
            return Refusal("invalid input syntax for a type, or a value out of its range", state="22P02")
        return Refusal("The catalog cannot answer this statement.", state="0A000")

    def _shown(self, rows: list[tuple[Any, ...]], columns: Sequence[Column]) -> list[tuple[Any, ...]]:
        """The rows with the values that clients are given."""
        changes = {place: self._change(one.type) for place, one in enumerate(columns)}
        used = {place: change for place, change in changes.items() if change is not None}
        if not used:
            return rows
        return [
            tuple(
                used[place](value) if place in used and value is not None else value for place, value in enumerate(row)
            )
            for row in rows
        ]

    def _change(self, kind: str) -> Callable[[Any], Any] | None:
        """What is done with the values of a type. None: nothing."""
        if element_of(kind) in REFERENCES:
            said = getattr(self._lookups, f"said_{element_of(kind)}")

            def refer(number: int) -> Reference:
                return Reference(number, said(number))

            if not is_array(kind):
                return refer
            return lambda values: [None if value is None else refer(value) for value in values]
        if is_record(kind):
            return lambda value: "(" + ",".join("" if part is None else str(part) for part in value.values()) + ")"
        if kind == "anyarray":
            return write_array
        if kind in ("text", "name", "varchar"):
            return lambda value: value if isinstance(value, str) else str(value)
        return None


def _fetch_bounded(result: duckdb.DuckDBPyConnection) -> list[tuple[Any, ...]]:
    """All rows, if there are not too many, and their texts are not too long."""
    rows: list[tuple[Any, ...]] = []
    long = 0
    while part := result.fetchmany(2000):
        rows += part
        long += sum(len(value) for row in part for value in row if isinstance(value, str | list))
        if len(rows) > MOST_ROWS or long > LONGEST_RESULT:
            raise Refusal(
                f"The result has more than {MOST_ROWS:,} rows, or is too long. Ask with a LIMIT.", state="54000"
            )
    return rows


def _tables_of(query: exp.Expr) -> Iterator[exp.Table]:
    """The tables that a statement names: not what WITH names, and not functions."""
    for table in query.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier) and not _is_cte(table):
            yield table


def _is_cte(table: exp.Table) -> bool:
    if table.args.get("db") is not None:
        return False
    name = name_of(table.this)
    inner: exp.Expr = table
    above = table.parent
    while above is not None:
        with_ = above.args.get("with_")
        if isinstance(with_, exp.With) and inner is not with_:
            if any(name_of(cte.args["alias"].this) == name for cte in with_.expressions):
                return True
        elif isinstance(above, exp.With):
            place = next((n for n, cte in enumerate(above.expressions) if cte is inner), 0)
            seen = above.expressions if above.args.get("recursive") else above.expressions[:place]
            if any(name_of(cte.args["alias"].this) == name for cte in seen):
                return True
        inner, above = above, above.parent
    return False


def _told(columns: Sequence[Column]) -> tuple[Column, ...]:
    """The columns with the types that are spoken."""
    return tuple(
        Column(one.name, "record" if is_record(one.type) else one.type if one.type in TYPES else "text")
        for one in columns
    )


def _type_of(value: Any) -> int:
    """The number of the type that a value has, if only the value tells."""
    name = {bool: "bool", int: "int8", float: "float8"}.get(type(value))
    return TYPES[name].oid if name else 0
