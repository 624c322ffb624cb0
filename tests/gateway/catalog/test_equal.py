"""The catalog answers the statements of real clients as a real, empty PostgreSQL 15 with the same tables does.

The statements were recorded from the clients that each of them names. The real server is made in `empty_postgres.py`:
it has one database, one account that may only read, no statistics, no descriptions of PostgreSQL's own functions and
operators, and no TOAST tables. Numbers of declared tables are compared by what they number.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from discreet.gateway.catalog.catalog import Catalog

from .clinic_tables import CLINIC, HOSTILE
from .compare_catalogs import Ours, Real, expected, recorded, recorded_numbers, same
from .empty_postgres import DATABASE, READER, find_programs, serve

DIFFERENT = {
    r"pg_(database|table|tablespace|total_relation|relation)_size": "no sizes are told",
    r"\bversion\(\)": "the version says who answers",
    r"pg_get_viewdef": "the definitions of PostgreSQL's own views are left out",
    r"pg_stat_user_tables": "views of statistics have no rows",
    r"s\.source <> 'default'": "a server has settings of its own",
    r"7\.0/2": "the number of zeros at the end of a numeric quotient",
    r"string_agg\(pg_catalog\.format_type\(oc\.opcintype": "the order of string_agg without ORDER BY",
}
"""Where our answers differ on purpose, and why."""


def reason_of(sql: str) -> str | None:
    """Why an answer differs on purpose, if it does."""
    return next((why for pattern, why in DIFFERENT.items() if re.search(pattern, sql, re.IGNORECASE)), None)


@contextmanager
def real_server(tables: dict[str, Any]) -> Iterator[Real]:
    """A real server with the same tables."""
    with tempfile.TemporaryDirectory(prefix="discreet_postgres_") as folder, serve(Path(folder), tables) as url:
        real = Real(url)
        try:
            yield real
        finally:
            real.connection.close()


@pytest.fixture(scope="module")
def catalog() -> Iterator[Catalog]:
    made = Catalog(CLINIC, database=DATABASE, seconds=60)
    yield made
    made.close()


@pytest.mark.slow
def test_recorded_answers_are_equal(catalog: Catalog) -> None:
    statements, numbers, ours = recorded(), recorded_numbers(), Ours(catalog, READER)
    known = {place: answer for place, answer in expected().items() if reason_of(statements[place].sql) is None}
    assert len(known) > 50
    different = [
        (statements[place].clients, statements[place].sql)
        for place, answer in known.items()
        if not same(
            answer, ours.answer(statements[place].sql, statements[place].parameters, numbers), statements[place].sql
        )
    ]
    assert different == []


def test_many_clients_were_recorded() -> None:
    clients = {client.split("-")[0] for statement in recorded() for client in statement.clients}
    assert clients >= {
        *("psql", "psycopg", "psycopg2", "asyncpg", "pg8000", "sqlalchemy", "pandas", "adbc", "polars"),
        *("pgjdbc", "psqlodbc", "pgcli", "jupysql", "node", "postgres.js", "rpostgresql"),
    }


def test_the_comparison_sees_differences(catalog: Catalog) -> None:
    ours, sql = Ours(catalog, READER), "SELECT relname, relnatts FROM pg_class WHERE relnamespace = 2200 ORDER BY 1"
    answer = ours.answer(sql, (), ours.numbers)
    assert same(answer, answer, sql)
    assert not same(answer, answer._replace(rows=answer.rows[1:]), sql)
    assert not same(answer, answer._replace(columns=(("relname", 25), *answer.columns[1:])), sql)
    assert not same(answer, answer._replace(error="42P01"), sql)
    assert not same(answer, answer._replace(rows=((answer.rows[0][0], "9"), *answer.rows[1:])), sql)


@pytest.mark.slow
def test_all_recorded_statements_are_equal(catalog: Catalog, install) -> None:
    install(find_programs, "postgresql-15")
    ours, wrong, honest = Ours(catalog, READER), [], set()
    with real_server(CLINIC) as real:
        for clients, sql, parameters in recorded():
            if "server_version_num" in sql:  # which patch is installed here
                continue
            theirs = real.answer(sql, parameters)
            equal = same(theirs, ours.answer(sql, parameters, real.numbers), sql)
            why = reason_of(sql)
            if why is None and not equal:
                wrong.append((clients, sql))
            if why is not None and not equal:
                honest.add(why)
    assert wrong == []
    assert honest == set(DIFFERENT.values())  # a difference that is gone must leave the list


_ABOUT_NAMES = (
    "SELECT relname, relkind, relnatts FROM pg_class WHERE relnamespace = 2200 ORDER BY 1",
    "SELECT oid::regclass::text FROM pg_class WHERE relnamespace = 2200 ORDER BY 1",
    "SELECT attname, format_type(atttypid, atttypmod), col_description(attrelid, attnum) FROM pg_attribute "
    "WHERE attrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 2200) AND attnum > 0 ORDER BY attrelid, attnum",
    "SELECT typname, typrelid <> 0, typelem <> 0 FROM pg_type WHERE typnamespace = 2200 ORDER BY 1",
    "SELECT table_name, column_name, data_type, ordinal_position, is_nullable FROM information_schema.columns "
    "WHERE table_schema = 'public' ORDER BY 1, 4",
    "SELECT quote_ident(relname), pg_table_is_visible(oid) FROM pg_class WHERE relnamespace = 2200 ORDER BY 1",
    "SELECT obj_description(oid, 'pg_class') FROM pg_class WHERE relnamespace = 2200 ORDER BY 1",
    """SELECT 'public."Visits"'::regclass::text, to_regclass('"x""; DROP TABLE y; --"')::text, to_regclass('visits')""",
    "SELECT 'pg_class'::regclass::text, 'public.pg_class'::regclass::text",
    "SELECT parse_ident('public.\"a.b\"'), quote_literal('it''s'), format('%I.%L', 'order', 'x')",
)


@pytest.mark.slow
def test_hostile_names_are_equal(install) -> None:
    install(find_programs, "postgresql-15")
    made = Catalog(HOSTILE, database=DATABASE)
    with real_server(HOSTILE) as real:
        ours = Ours(made, READER)
        for sql in _ABOUT_NAMES:
            assert same(real.answer(sql, ()), ours.answer(sql, (), real.numbers), sql), sql
    made.close()
