"""The catalog knows names and types only, reaches nothing else, and always ends."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from discreet.gateway.catalog import functions
from discreet.gateway.catalog.catalog import Catalog, Reference
from discreet.gateway.catalog.dialect import PostgresText
from discreet.gateway.catalog.types import TEXTS, merge
from discreet.gateway.wire.format.values import TYPES, Column, Refusal

from .clinic_tables import CLINIC, HOSTILE, column, table


@pytest.fixture(scope="module")
def catalog() -> Iterator[Catalog]:
    made = Catalog(CLINIC, database="clinic", seconds=30)
    yield made
    made.close()


def read(sql: str) -> Any:
    return sqlglot.parse_one(sql, read=PostgresText)


def ask(catalog: Catalog, sql: str, *values: Any, user: str = "alice", **settings: str) -> list[tuple[Any, ...]]:
    return catalog.run(read(sql), values, user=user, settings=settings)[1]


def refusal(catalog: Catalog, sql: str, *values: Any) -> str:
    with pytest.raises(Refusal) as raised:
        ask(catalog, sql, *values)
    assert "duckdb" not in raised.value.message.lower() or "duckdb" in sql.lower()
    return raised.value.state


# --- which statements are for the catalog -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "mine"),
    [
        ("SELECT 1", True),
        ("SELECT now()", True),
        ("SELECT 'FROM visits'", True),
        ("SELECT relname FROM pg_class WHERE relname = 'SELECT * FROM visits'", True),
        ("SELECT * FROM pg_catalog.pg_class", True),
        ("SELECT * FROM information_schema.tables", True),
        ("SELECT * FROM PG_CLASS", True),
        ("VALUES (1)", True),
        ("WITH visits AS (SELECT 1 AS a) SELECT a FROM visits", True),
        ("SELECT * FROM generate_series(1, 3)", True),
        ("SELECT count(*) FROM visits", False),
        ("SELECT count(*) FROM public.visits", False),
        ("SELECT count(*) FROM public.pg_class", False),
        ("SELECT count(*) FROM nothing", False),
        ("WITH a AS (SELECT * FROM visits) SELECT count(*) FROM a", False),
        ("WITH visits AS (SELECT * FROM visits) SELECT count(*) FROM visits", False),
        ("SELECT (SELECT count(*) FROM visits)", False),
        ('SELECT * FROM "PG_CLASS"', False),
        ("INSERT INTO pg_class VALUES (1)", False),
        ("DROP TABLE pg_class", False),
        ("SET search_path TO x", False),
        ("SELECT * FROM pg_class, visits", True),
        ("SELECT * FROM pg_class WHERE EXISTS (SELECT 1 FROM public.visits)", True),
    ],
)
def test_statements_are_told_apart_by_their_tree(catalog: Catalog, sql: str, mine: bool) -> None:
    assert catalog.answers(read(sql)) is mine


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM pg_class, visits",
        "SELECT * FROM pg_class JOIN public.visits ON true",
        "SELECT relname FROM pg_class WHERE EXISTS (SELECT 1 FROM visits)",
        "WITH a AS (SELECT * FROM visits) SELECT * FROM a, pg_class",
        "SELECT relname FROM pg_class UNION SELECT city FROM visits",
        "SELECT (SELECT max(cost) FROM visits) FROM pg_class",
        "SELECT relname FROM pg_class ORDER BY (SELECT max(cost) FROM visits)",
        "SELECT relname FROM pg_class LIMIT (SELECT max(cost) FROM visits)",
    ],
)
def test_a_statement_that_mixes_is_refused(catalog: Catalog, sql: str) -> None:
    assert catalog.answers(read(sql))
    assert refusal(catalog, sql) == "0A000"
    with pytest.raises(Refusal):
        catalog.describe(read(sql), ())


# --- nothing else can be reached ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_parquet('x')",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM '/etc/passwd'",
        'SELECT * FROM "/etc/passwd"',
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM duckdb_functions()",
        "SELECT * FROM duckdb_secrets()",
        "SELECT * FROM pragma_database_list",
        "SELECT * FROM pragma_table_info('pg_class')",
        "SELECT * FROM sniff_csv('x')",
        "SELECT * FROM query('SELECT 1')",
        "SELECT * FROM query_table('kept')",
        "SELECT * FROM kept.pg_settings",
        "SELECT * FROM pg.pg_class",
        "SELECT * FROM main.pg_class",
        "SELECT * FROM memory.pg.pg_class",
        "SELECT * FROM sqlite_master",
        "SELECT * FROM arriving",
        "SELECT * FROM information_schema.character_sets_x",
        "SELECT getenv('HOME')",
        "SELECT getvariable('who')",
        "SELECT our_current_user_0()",
        "SELECT find_regclass('x')",
        "SELECT current_setting('threads')",
        "SELECT current_setting('memory_limit')",
        "SELECT load_extension('x')",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT pg_ls_dir('/')",
        "SELECT pg_sleep(10)",
        "SELECT lo_import('/etc/passwd')",
        "SELECT nextval('x')",
        "SELECT error('x')",
        "SELECT sleep_ms(1000)",
        "SELECT write_log('x')",
        "SELECT list_transform([1], x -> x)",
        "SELECT string_split('a', 'b')",
        "SELECT regexp_matches('a', 'b')",
        "SELECT pg_class FROM pg_class",
        "SELECT columns('.*') FROM pg_class",
        "SELECT * EXCLUDE (oid) FROM pg_class",
        "SELECT x.* REPLACE (1 AS oid) FROM pg_class x",
        "SELECT * FROM pg_class USING SAMPLE 10",
        "SELECT * FROM pg_class TABLESAMPLE SYSTEM (10)",
        "SELECT relname FROM pg_class QUALIFY true",
        "SELECT relname INTO x FROM pg_class",
        "SELECT relname FROM pg_class FOR UPDATE",
        "SELECT {'a': 1}",
        "SELECT other.main.version()",
        "SELECT system.main.getenv('HOME')",
        "SELECT public.version()",
        "PIVOT pg_class ON relkind",
        "SELECT cast('x' AS STRUCT(a INT))",
        "SELECT 'x'::regconfig_x",
        "COPY pg_class TO '/tmp/x'",
        "ATTACH 'x'",
        "INSTALL httpfs",
        "PRAGMA version",
        "SET threads = 4",
        "CREATE TABLE x (a int)",
        "DELETE FROM pg_class",
        "EXPLAIN SELECT 1",
        "DESCRIBE pg_class",
    ],
)
def test_nothing_of_the_engine_is_reached(catalog: Catalog, sql: str) -> None:
    try:
        query = read(sql)
    except sqlglot.errors.SqlglotError:
        return
    with pytest.raises(Refusal) as raised:
        catalog.run(query, user="alice", settings={})
    assert raised.value.state in ("0A000", "42P01", "42883", "42703", "42704", "42601", "22P02", "42602")


@pytest.mark.slow
def test_every_function_is_one_of_the_list(catalog: Catalog) -> None:
    engine = {
        name
        for (name,) in catalog._database.execute("SELECT DISTINCT function_name FROM duckdb_functions()").fetchall()
    }
    reached = set()
    for name in sorted(engine - functions.KNOWN):
        for arguments in ("", "'a'", "1", "'a', 1", "1, 2", "ARRAY[1]"):
            try:
                catalog.describe(read(f'SELECT pg_catalog."{name}"({arguments})'), ())
                reached.add(name)
            except (Refusal, sqlglot.errors.SqlglotError):
                pass
    assert len(engine) > 500
    assert reached == set()


def test_the_database_is_locked(catalog: Catalog) -> None:
    import duckdb

    cursor = catalog._database.cursor()
    for statement in (
        "SET threads = 8",
        "SET memory_limit = '10GB'",
        "SET enable_external_access = true",
        "SELECT * FROM read_text('/etc/hostname')",
        "COPY (SELECT 1) TO '/tmp/discreet_catalog_test'",
        "ATTACH '/tmp/discreet_catalog_test.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
    ):
        with pytest.raises(duckdb.Error):
            cursor.execute(statement)
    local = "this would be found by its name"
    with pytest.raises(duckdb.Error):
        cursor.execute("SELECT * FROM local")
    assert local


def test_hostile_texts_stay_texts(catalog: Catalog) -> None:
    for hostile in (
        "'; DROP TABLE pg.pg_class; --",
        "\\'; SELECT 1",
        "$$",
        "' || getenv('HOME') || '",
        "\x01",
        "é",
        '"',
    ):
        quoted = hostile.replace("'", "''")
        assert ask(catalog, f"SELECT '{quoted}' AS a") == [(hostile,)]
        assert ask(catalog, "SELECT $1::text", hostile) == [(hostile,)]
        assert ask(catalog, "SELECT relname FROM pg_class WHERE relname = $1", hostile) == []
        name = hostile.replace('"', '""')
        assert catalog.run(read(f'SELECT 1 AS "{name}"'), user="alice")[0] == (Column(hostile, "int4"),)


@pytest.mark.slow
def test_hostile_names_are_only_names() -> None:
    made = Catalog(HOSTILE, database='a"b', seconds=20)
    try:
        names = ask(made, "SELECT relname FROM pg_class WHERE relnamespace = 2200 ORDER BY oid")
        assert [name for (name,) in names] == [one["name"] for one in HOSTILE["tables"]]
        columns = "SELECT column_name FROM information_schema.columns WHERE table_name = $1 ORDER BY ordinal_position"
        for one in HOSTILE["tables"]:
            found = ask(made, columns + "", one["name"]) if one["name"] != "pg_class" else None
            assert found is None or [name for (name,) in found] == [each["name"] for each in one["columns"]]
        assert ask(made, "SELECT current_database(), current_user", user="o'\"x") == [('a"b', "o'\"x")]
        # a bare name is PostgreSQL's own relation first
        assert made.answers(read("SELECT * FROM pg_class"))
        assert not made.answers(read("SELECT count(*) FROM public.pg_class"))
    finally:
        made.close()


# --- bombs ----------------------------------------------------------------------------------------------------------

_BOMBS = {
    "SELECT count(*) FROM pg_proc a, pg_proc b, pg_proc c WHERE a.proname || b.proname < c.proname": "57014",
    "SELECT count(*) FROM pg_attribute a, pg_attribute b WHERE pg_table_is_visible(a.attrelid + b.attnum)": "57014",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t": "57014",
    "SELECT generate_series(1, 1000000000)": "54000",
    "SELECT a.oid FROM pg_attribute x, pg_class a, pg_class b LIMIT 100001": "54000",
    "SELECT * FROM generate_series(1, 1000000000)": "54000",
    "SELECT length(replace(a, 'a', a)) FROM (SELECT replace(a, 'a', a) AS a FROM "
    "(SELECT replace(a, 'a', a) AS a FROM (SELECT 'aaaaaaaaaaaaaaaaaaaa' AS a) x) x) x": "54000",
    "SELECT array_to_string(ARRAY(SELECT proname FROM pg_proc), (SELECT string_agg(proname, '') "
    "FROM pg_proc))": "54000",
    "SELECT quote_literal(proname) FROM pg_proc a, (SELECT 1 FROM pg_class) b, (SELECT 1 FROM pg_class) c": "54000",
    "SELECT 1 / 0": "22012",
    "SELECT 1 % 0": "22012",
}


@pytest.fixture(scope="module")
def hurried() -> Iterator[Catalog]:
    made = Catalog(CLINIC, database="clinic", seconds=0.5)
    yield made
    made.close()


@pytest.fixture(scope="module")
def patient() -> Iterator[Catalog]:
    made = Catalog(CLINIC, database="clinic", seconds=120)
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.parametrize("sql", _BOMBS)
def test_bombs_end(hurried: Catalog, patient: Catalog, sql: str) -> None:
    made = hurried if _BOMBS[sql] == "57014" else patient
    assert refusal(made, sql) == _BOMBS[sql]
    assert ask(patient, "SELECT 1") == [(1,)]


@pytest.mark.parametrize(
    "level",
    [
        "CASE {} WHEN 1 THEN 2 WHEN 2 THEN 3 WHEN 3 THEN 4 ELSE 1 END",
        "7 % ({} % 5 + 6)",
        "7 / ({} / 5 + 6)",
        "array_upper(array_append(ARRAY[1], {}), 1)",
        "coalesce({}, {}, 1)",
        "(SELECT max(n) FROM unnest(array_append(ARRAY[1], {})) WITH ORDINALITY AS u(x, n))",
        "(WITH RECURSIVE a(n) AS (SELECT {} UNION SELECT 1) SELECT max(n) FROM a)",
        "nullif({}, 100)",
    ],
)
def test_nesting_does_not_double(hurried: Catalog, level: str) -> None:
    nested = "1"
    for _ in range(7 if level.count("{}") > 1 else 14):
        nested = level.replace("{}", nested)
    try:
        text = hurried._translate(read(f"SELECT {nested}"), ())[2]
    except Refusal as refused:
        text = refused.state
    assert len(text) < 60 * len(nested) + 2000


@pytest.mark.slow
def test_memory_is_bounded() -> None:
    made = Catalog(CLINIC, database="clinic", seconds=20)
    try:
        wide = "string_agg(a.proname || b.proname || a.proname || b.proname, ',')"
        state = refusal(made, f"SELECT length({wide}) FROM pg_proc a, pg_proc b")
        assert state in ("53200", "57014", "54000", "0A000")
        text = "repeat"
        assert refusal(made, f"SELECT {text}('a', 1000000000)") == "42883"
        assert ask(made, "SELECT 1") == [(1,)]
    finally:
        made.close()


@pytest.mark.slow
def test_deep_and_long_statements_are_refused(catalog: Catalog) -> None:
    deep: Any = exp.Literal.number(1)
    for _ in range(200):
        deep = exp.Neg(this=exp.Paren(this=deep))
    with pytest.raises(Refusal) as raised:
        catalog.run(exp.Select(expressions=[deep]), user="alice")
    assert raised.value.state == "54001"
    assert refusal(catalog, f"SELECT {', '.join(['1'] * 25_000)}") == "54001"
    many = " AND ".join(["1 = 1"] * 500)
    assert ask(catalog, f"SELECT {many}") == [(True,)]


# --- who asks -------------------------------------------------------------------------------------------------------


def test_only_the_account_that_asks_is_seen(catalog: Catalog) -> None:
    for user in ("alice", "bob", "o'brien"):
        roles = ask(catalog, "SELECT rolname FROM pg_roles WHERE rolname !~ '^pg_'", user=user)
        assert roles == [(user,)]
        assert ask(catalog, "SELECT usename, usesuper FROM pg_user", user=user) == [(user, False)]
        assert ask(catalog, "SELECT DISTINCT pg_get_userbyid(relowner) FROM pg_class", user=user) == [(user,)]
        everything = ask(catalog, "SELECT relacl::text FROM pg_class WHERE relacl IS NOT NULL", user=user)
        assert not any("alice" in acl for (acl,) in everything) or user == "alice"


def test_threads_do_not_share_who_asks(catalog: Catalog) -> None:
    wrong: list[Any] = []

    def work(user: str) -> None:
        for _ in range(10):
            found = ask(
                catalog, "SELECT current_user, rolname FROM pg_roles WHERE oid = 10", user=user, search_path=user
            )
            if found != [(user, user)]:
                wrong.append(found)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("alice", "bob", "carol", "dora")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_settings_of_the_session_are_seen(catalog: Catalog) -> None:
    assert ask(catalog, "SELECT current_setting('discreet.epsilon')", **{"discreet.epsilon": "0.5"}) == [("0.5",)]
    assert ask(catalog, "SELECT current_schema()", search_path="pg_catalog") == [("pg_catalog",)]
    assert ask(catalog, "SELECT 'visits'::regclass::text") == [("visits",)]
    assert ask(catalog, "SELECT 'public.visits'::regclass::text", search_path="pg_catalog") == [("public.visits",)]
    assert refusal(catalog, "SELECT current_setting('nothing')") == "42704"
    assert refusal(catalog, "SELECT 'nothing'::regclass") == "42P01"


# --- nothing about rows ---------------------------------------------------------------------------------------------


def test_no_sizes_and_no_statistics(catalog: Catalog) -> None:
    assert ask(catalog, "SELECT DISTINCT reltuples, relpages FROM pg_class") == [(-1.0, 0)]
    for view in ("pg_stats", "pg_stat_user_tables", "pg_stat_all_tables", "pg_statio_all_tables", "pg_stat_activity"):
        assert ask(catalog, f"SELECT * FROM {view}") == []
    for function in ("pg_table_size", "pg_total_relation_size", "pg_relation_size", "pg_indexes_size"):
        assert ask(catalog, f"SELECT {function}('visits'::regclass)") == [(None,)]
    assert ask(catalog, "SELECT pg_size_pretty(pg_database_size('clinic'))") == [(None,)]


@pytest.mark.slow
def test_what_remains_of_a_budget_is_not_in_it() -> None:
    one, other = (Catalog(CLINIC | {"remains": said}, database="clinic") for said in ("ε=10", "ε=0.001"))
    try:
        for sql in (
            "SELECT * FROM pg_class ORDER BY oid",
            "SELECT * FROM pg_description ORDER BY 1, 2, 3",
            "SELECT * FROM information_schema.columns ORDER BY 2, 3, 5",
            "SELECT * FROM pg_settings ORDER BY 1",
        ):
            assert ask(one, sql) == ask(other, sql)
    finally:
        one.close()
        other.close()


def test_comments_say_what_is_declared(catalog: Catalog) -> None:
    sql = "SELECT obj_description('visits'::regclass), col_description('visits'::regclass, 2)"
    table_comment, city = ask(catalog, sql)[0]
    assert "person('patient')" in table_comment
    assert "5 rows" in table_comment
    assert "Oslo" in city
    assert "elsewhere" in city
    found = "SELECT col_description('people'::regclass, 2), col_description('visits'::regclass, 3)"
    assert ask(catalog, found) == [("a range that is found privately", "between 0 and 500")]


# --- names and types ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT 1", [("?column?", "int4")]),
        ("SELECT 'a', NULL, true", [("?column?", "text"), ("?column?", "text"), ("?column?", "bool")]),
        ("SELECT 1 + 1, 3000000000, 2.5", [("?column?", "int4"), ("?column?", "int8"), ("?column?", "numeric")]),
        ("SELECT count(*), max(oid), min(relname) FROM pg_class", [("count", "int8"), ("max", "oid"), ("min", "text")]),
        ("SELECT relname::text, 'x'::name FROM pg_class", [("relname", "text"), ("name", "name")]),
        ("SELECT oid::regclass, oid FROM pg_class", [("oid", "regclass"), ("oid", "oid")]),
        ("SELECT CASE WHEN true THEN 1 END, coalesce(NULL, 'a')", [("case", "int4"), ("coalesce", "text")]),
        ("SELECT ARRAY[1, 2], ARRAY(SELECT oid FROM pg_class)", [("array", "int4[]"), ("array", "oid[]")]),
        ("SELECT EXISTS (SELECT 1), (SELECT relname FROM pg_class LIMIT 1)", [("exists", "bool"), ("relname", "name")]),
        ("SELECT current_user, current_schemas(true)", [("current_user", "name"), ("current_schemas", "name[]")]),
        ("SELECT a.* FROM (SELECT attname, attnum FROM pg_attribute) a", [("attname", "name"), ("attnum", "int2")]),
        ("SELECT relkind, relacl FROM pg_class", [("relkind", "char"), ("relacl", "aclitem[]")]),
        ("SELECT now(), current_date", [("now", "timestamptz"), ("current_date", "date")]),
    ],
)  # fmt: skip
def test_columns_are_named_and_typed_as_by_postgres(catalog: Catalog, sql: str, columns: list[tuple[str, str]]) -> None:
    described = catalog.describe(read(sql), ())
    assert described.columns == tuple(Column(*one) for one in columns)
    assert catalog.run(read(sql), user="alice")[0] == described.columns


@pytest.mark.parametrize(
    ("sql", "declared", "parameters"),
    [
        ("SELECT relname FROM pg_class WHERE oid = $1", (), ("oid",)),
        ("SELECT relname FROM pg_class WHERE relname = $1 AND relkind = ANY($2)", (), ("name", "char[]")),
        ("SELECT relname FROM pg_class WHERE relname LIKE $1 LIMIT $2", (), ("text", "int8")),
        ("SELECT $1::int4, $2", (), ("int4", "text")),
        ("SELECT $1", (20,), ("int8",)),
        ("SELECT format_type($1, $2)", (), ("oid", "int4")),
        ("SELECT 1 WHERE $1 IN (1, 2) AND $2", (), ("int4", "bool")),
        ("SELECT relname FROM pg_class WHERE oid = $1::regclass", (), ("regclass",)),
        ("SELECT attname FROM pg_attribute WHERE attnum > $1 AND attrelid = ANY($2::oid[])", (0, 0), ("int2", "oid[]")),
    ],
)
def test_parameters_are_typed(
    catalog: Catalog, sql: str, declared: tuple[int, ...], parameters: tuple[str, ...]
) -> None:
    assert catalog.describe(read(sql), declared).parameters == parameters


def test_values_of_parameters(catalog: Catalog) -> None:
    assert ask(catalog, "SELECT relname FROM pg_class WHERE oid = $1", 1259) == [("pg_class",)]
    assert ask(catalog, "SELECT relname FROM pg_class WHERE relname = ANY($1) ORDER BY 1", ["visits", "cities"]) == [
        ("cities",),
        ("visits",),
    ]
    assert ask(catalog, "SELECT $1::regclass::oid = $2", "visits", 16385) == [(True,)]
    assert ask(catalog, "SELECT $1, $2", 7, None) == [(7, None)]
    with pytest.raises(Refusal) as raised:
        ask(catalog, "SELECT $1::text, $2::text", "x")
    assert raised.value.state == "08P01"


def test_references_are_numbers_with_names(catalog: Catalog) -> None:
    ((found, kind),) = ask(catalog, "SELECT 'visits'::regclass, 'bigint'::regtype")
    assert isinstance(found, Reference)
    assert (str(found), int(found)) == ("visits", 16385)
    assert (str(kind), int(kind)) == ("bigint", 20)


def test_unknown_names_have_the_states_of_postgres(catalog: Catalog) -> None:
    assert refusal(catalog, "SELECT nothing FROM pg_class") == "42703"
    assert refusal(catalog, "SELECT x.oid FROM pg_class") == "42703"
    assert refusal(catalog, "SELECT * FROM pg_catalog.nothing") == "42P01"
    assert refusal(catalog, "SELECT nothing(1)") == "42883"
    assert refusal(catalog, "SELECT oid FROM pg_class a, pg_class b") == "42702"
    assert refusal(catalog, "SELECT 1::nothing") == "42704"
    assert refusal(catalog, "SELECT 'x'::int4") == "22P02"
    assert refusal(catalog, "SELECT 1 UNION SELECT 1, 2") == "42601"


def test_arithmetic(catalog: Catalog) -> None:
    assert ask(catalog, "SELECT 7 / 2, -7 / 2, 7 % 3, 2 ^ 3, 7 - 2 * 3") == [(3, -3, 1, 8.0, 1)]
    assert ask(catalog, "SELECT 1 = 1 AND NOT 2 IS NULL, 3 IS NOT NULL, 'a' NOT LIKE 'b%'") == [(True, True, True)]


@pytest.mark.slow
def test_a_closed_catalog_says_so() -> None:
    made = Catalog({"tables": []}, database="empty")
    assert ask(made, "SELECT relname FROM pg_class WHERE relnamespace = 2200") == []
    made.close()
    made.close()
    assert refusal(made, "SELECT 1") == "57P01"


def test_types_that_meet() -> None:
    assert all(merge((one, other)) in TYPES for one, other in itertools.product(TYPES, TYPES))
    assert merge(("unknown", "unknown")) == "text"
    assert [merge((one, "text")) for one in TEXTS] == ["text", "name", "varchar", "bpchar", "text"]


# --- fuzz -----------------------------------------------------------------------------------------------------------

_ITEMS = st.sampled_from(
    [
        *("visits", "public.visits", '"visits"', "VISITS", "people p", "pg_class", "pg_catalog.pg_type t"),
        *("information_schema.tables", "(SELECT * FROM visits) s", "(SELECT 1) one", "generate_series(1, 2)"),
        *("kept.pg_settings", "read_csv('visits')", "duckdb_tables()", "unnest(ARRAY[1])", "(VALUES (1)) v"),
        *("LATERAL (SELECT count(*) FROM visits) l", "(visits CROSS JOIN pg_class)", "pg.pg_class"),
    ]
)
_PLACES = st.sampled_from(
    [
        "SELECT 1 FROM {0}, {1}",
        "SELECT 1 FROM {0} CROSS JOIN {1}",
        "SELECT (SELECT 1 FROM {0} LIMIT 1) FROM {1}",
        "SELECT 1 FROM {0} UNION ALL SELECT 1 FROM {1}",
        "WITH a AS (SELECT 1 FROM {0}) SELECT 1 FROM a, {1}",
        "WITH visits AS (SELECT 1 FROM {0}) SELECT 1 FROM visits, {1}",
        "SELECT 1 FROM {0} WHERE EXISTS (SELECT 1 FROM {1})",
        "SELECT ARRAY(SELECT 1 FROM {0}) FROM {1}",
        "SELECT 1 FROM {0} ORDER BY (SELECT 1 FROM {1} LIMIT 1)",
    ]
)


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(place=_PLACES, one=_ITEMS, other=_ITEMS)
def test_mixed_sources_never_reach_a_declared_table(catalog: Catalog, place: str, one: str, other: str) -> None:
    try:
        query = read(place.format(one, other))
    except sqlglot.errors.SqlglotError:
        return
    sources = (one + " " + other).lower()
    rows, state = None, None
    try:
        _, rows = catalog.run(query, user="alice", settings={})
    except Refusal as refused:
        state = refused.state
    if rows is None:
        assert state in ("0A000", "42P01", "42883", "54000", "57014", "42601")
    else:
        hidden = place.startswith("WITH visits") and "public." not in sources and one.lower().find("visits") < 0
        assert hidden or not any(word in sources for word in ("visits", "people", "kept", "csv", "duckdb", "pg.pg"))
        assert all(value in (1, [1], None) or isinstance(value, list) for row in rows for value in row)


@pytest.mark.slow
def test_many_tables() -> None:
    tables = {"tables": [table(f"t{n}", column("a"), column("b", "integer")) for n in range(200)]}
    made = Catalog(tables, database="wide")
    try:
        assert ask(made, "SELECT count(*), count(DISTINCT oid) FROM pg_class WHERE relnamespace = 2200") == [(200, 200)]
        assert ask(made, "SELECT count(*) FROM information_schema.columns WHERE table_schema = 'public'") == [(400,)]
    finally:
        made.close()
