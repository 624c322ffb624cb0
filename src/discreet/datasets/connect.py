"""From a policy to a database: open its engine, complete its tables and open its ledger.

Only the names and types of columns are read from the data here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from discreet.closing import closed
from discreet.datasets.database import Database
from discreet.datasets.discovery import find_policy
from discreet.datasets.ledgers import open_policy_ledger
from discreet.datasets.policy import Policy, load, unknown
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.engine import Engine
from discreet.errors import InvalidArgument
from discreet.guarantees.unit import Unit
from discreet.rows.tables import refuse_untyped
from discreet.sql.schema import Column, Schema, Table, Type, validate_choice


@closed
def connect(
    policy: str | Path | Mapping[str, Any] | Policy | None = None, *, analyst: str | None = None, spark: Any = None
) -> Database:
    """Open a database for SQL under a policy: a TOML file, a mapping with the same keys, or a `Policy`.

    Without one, it is the file that the environment variable DISCREET_POLICY names, or `discreet.toml` in this folder
    or the nearest folder above it.

    The ledger is created with the terms of the policy if it does not exist. Its limit may be edited in the policy until
    the first charge; afterwards both must agree. With `analyst`, answers are also charged to the account that the owner
    opened for that analyst (`ledger.for_analyst(name, limit=…)`). A policy with `[analysts] required = true` needs it.
    `spark` is the session to use if the policy's engine is Spark. Without it, a session is started.
    """
    named = find_policy() if policy is None else policy
    known = named if isinstance(named, Policy) else load(named)
    if known.analyst_required and analyst is None:
        raise InvalidArgument(
            'This policy needs to know who asks. Write analyst="alice" in connect, or --analyst alice: an account that '
            "the owner opened.",
            code="analyst-required",
        )
    engine = open_engine(known, spark)
    schema = schema_of(known, engine)
    ledger = open_policy_ledger(known)
    if analyst is not None:
        ledger = ledger.for_analyst(analyst)
    return Database(
        schema,
        engine,
        ledger,
        delta_per_question=known.delta_per_question,
        policy=known.public_text(),
        rules=known.answers,
    )


def open_engine(known: Policy, session: Any = None) -> Engine:
    """The engine that the policy names, opened on its sources."""
    place = known.engine
    sources = {name: table.source for name, table in known.tables.items()}
    for name, source in sources.items():
        place.check_source(name, source)
    if session is not None and place.kind != "spark":
        raise InvalidArgument(
            'spark= is for a policy whose [engine] has kind = "spark". Remove it.', code="spark-not-the-engine"
        )
    if place.kind == "postgres":
        from discreet.engines.postgres.engine import Postgres

        assert place.url is not None  # checked when the policy was made
        return Postgres(place.url, sources, **({} if place.timeout is None else {"timeout": place.timeout}))
    if place.kind == "spark":
        from discreet.engines.spark.engine import Spark

        return Spark(sources, master=place.master, session=session, config=place.config, timeout=place.timeout)
    tables = known.tables
    return DuckDB(
        sources,
        types={name: _types(table, known.unit) for name, table in tables.items()},
        formats={name: table.text_format for name, table in tables.items() if table.text_format is not None},
        sniffed=[name for name, table in tables.items() if table.public and not _is_declared(table)],
        memory=place.memory,
        threads=place.threads,
        spill=place.spill,
    )


def _is_declared(table: Table) -> bool:
    """Whether the owner says how the text of a table is read."""
    return table.text_format is not None or any(column.declared for column in table.columns.values())


def _types(table: Table, unit: Unit) -> dict[str, str]:
    """The types of a table's columns, if its source has no types of its own."""
    types: dict[str, str] = {column.name: column.type for column in table.columns.values()}
    if unit.column is not None and table.person is None and table.through is None and not table.public:
        types.setdefault(unit.column, "text")
    return types


def schema_of(policy: Policy, engine: Engine) -> Schema:
    """The policy's tables with all of their columns, with the types that the engine reports."""
    for table in policy.tables.values():
        _check_has_types(table, engine.untyped(table.name), policy)
    tables = {name: _complete(table, engine.columns(name), policy.unit) for name, table in policy.tables.items()}
    return Schema(unit=policy.unit, tables=tables)


def _check_has_types(table: Table, untyped: Collection[str], policy: Policy) -> None:
    """Check that each column that leads to a person has a type, its own or a declared one."""
    leads = {other.path[2] for other in policy.tables.values() if other.through and other.path[1] == table.name}
    leads |= {table.path[0]} if table.through else {table.person or policy.unit.column or ""}
    for name in sorted(leads & set(untyped)):
        if not table.public and (name not in table.columns or table.columns[name].type == "other"):
            refuse_untyped(name, table.name)


def _complete(table: Table, types: Mapping[str, Any], unit: Unit) -> Table:
    for name in table.columns:
        if name not in types:
            unknown(table.name, "column", name, types, code="unknown-column")
    columns = {name: _with_type(table.columns.get(name, Column(name=name)), kind) for name, kind in types.items()}
    person = table.person or (unit.column if unit.column in types and not table.public else None)
    return replace(table, columns=columns, person=person)


def _with_type(column: Column, kind: Type) -> Column:
    if column.declared and column.type != kind:
        raise InvalidArgument(
            f"{column.name} is {column.type} in the policy, but {kind} in its source. Remove type.", code="column-type"
        )
    if column.choices is None:
        return replace(column, type=kind)
    choices = tuple(validate_choice(value, kind, column.name) for value in column.choices)
    other = None if column.other is None else validate_choice(column.other, kind, column.name)
    return replace(column, type=kind, choices=choices, other=other)
