"""Bugs planted in the catalog: the very check that the sound code passes catches each of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from discreet.gateway.catalog import catalog as catalogs
from discreet.gateway.catalog import expressions, lookups, objects
from discreet.gateway.catalog.catalog import Catalog
from discreet.gateway.catalog.dialect import PostgresText
from discreet.gateway.catalog.scopes import Value, call
from discreet.gateway.wire.format.values import Refusal

from .clinic_tables import CLINIC


def ask(made: Catalog, sql: str, user: str = "alice") -> list[tuple[Any, ...]]:
    return made.run(sqlglot.parse_one(sql, read=PostgresText), user=user, settings={})[1]


# --- the checks -----------------------------------------------------------------------------------------------------


def functions_of_the_engine_are_unknown(made: Catalog) -> None:
    with pytest.raises(Refusal) as raised:
        ask(made, "SELECT getenv('HOME')")
    assert raised.value.state == "42883"


def a_mixed_statement_is_refused(made: Catalog) -> None:
    for sql in ("SELECT * FROM pg_class, visits", "WITH a AS (SELECT * FROM visits) SELECT * FROM a, pg_class"):
        with pytest.raises(Refusal) as raised:
            ask(made, sql)
        assert raised.value.state == "0A000"


def questions_are_not_for_the_catalog(made: Catalog) -> None:
    for sql in ("SELECT count(*) FROM visits", "WITH visits AS (SELECT * FROM visits) SELECT count(*) FROM visits"):
        assert not made.answers(sqlglot.parse_one(sql, read=PostgresText))


def accounts_do_not_see_each_other(made: Catalog) -> None:
    seen: dict[str, list[tuple[Any, ...]]] = {}
    inside, asked = threading.Barrier(2), "SELECT pg_get_userbyid(relowner) FROM pg_class WHERE relname = 'visits'"

    def work(user: str) -> None:
        with made._cursor(lookups.Asking(user)) as cursor:
            inside.wait(20)
            seen[user] = cursor.execute("SELECT our_current_user_0()").fetchall()
            inside.wait(20)

    threads = [threading.Thread(target=work, args=(user,)) for user in ("alice", "bob")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {"alice": [("alice",)], "bob": [("bob",)]}
    assert ask(made, asked, "carol") == [("carol",)]


def the_engine_is_locked(made: Catalog) -> None:
    for statement in ("SELECT * FROM read_text('/etc/hostname')", "SET memory_limit = '1GB'"):
        with pytest.raises(duckdb.Error):
            made._database.cursor().execute(statement)


def the_budget_is_not_told(made: Catalog) -> None:
    assert not [said for (said,) in ask(made, "SELECT description FROM pg_description") if "remains" in said]


def a_privilege_is_only_to_read(made: Catalog) -> None:
    kinds = "SELECT has_table_privilege('visits', 'SELECT'), has_table_privilege('visits', 'INSERT')"
    assert ask(made, kinds) == [(True, False)]


# --- the bugs -------------------------------------------------------------------------------------------------------


class Bug(NamedTuple):
    """What is put in place of what, and the check that must notice."""

    place: Any
    name: str
    wrong: Callable[..., Any]
    check: Callable[[Catalog], None]


def unknown_functions_are_passed_on(made: Any, name: str, values: Any) -> Value:
    return Value(call(name, *(made.coerce(value, "text").node for value in values)), "text")


def no_table_is_looked_for(query: exp.Expr) -> Any:
    return iter(())


def every_name_is_one_of_with(table: exp.Table) -> bool:
    return True


def who_asks_is_shared() -> Any:
    return SimpleNamespace()


def nothing_is_locked(kept: Any, known: Any) -> Any:
    made = duckdb.connect(":memory:")
    made.execute("CREATE SCHEMA pg; CREATE SCHEMA info; CREATE SCHEMA kept")
    return made


_make_rows = objects.make_rows


def comments_hold_the_budget(tables: Any, name: str, kept: Any) -> Any:
    rows = _make_rows(tables, name, kept)
    rows["pg_description"][0]["description"] = CLINIC["remains"]
    return rows


def every_privilege_is_had(self: Any, kind: str, name: str, asked: str) -> bool:
    return True


BUGS = {
    "unknown_functions_are_passed_on": Bug(
        expressions, "call_function", unknown_functions_are_passed_on, functions_of_the_engine_are_unknown
    ),
    "no_table_is_looked_for": Bug(catalogs, "_tables_of", no_table_is_looked_for, questions_are_not_for_the_catalog),
    "a_mixed_statement_is_not_seen": Bug(catalogs, "_tables_of", no_table_is_looked_for, a_mixed_statement_is_refused),
    "every_name_is_one_of_with": Bug(catalogs, "_is_cte", every_name_is_one_of_with, questions_are_not_for_the_catalog),
    "who_asks_is_shared": Bug(lookups.threading, "local", who_asks_is_shared, accounts_do_not_see_each_other),
    "nothing_is_locked": Bug(catalogs, "make_database", nothing_is_locked, the_engine_is_locked),
    "comments_hold_the_budget": Bug(objects, "make_rows", comments_hold_the_budget, the_budget_is_not_told),
    "every_privilege_is_had": Bug(
        lookups.Lookups, "has_privilege_by_name", every_privilege_is_had, a_privilege_is_only_to_read
    ),
}


@pytest.mark.parametrize("check", sorted({bug.check for bug in BUGS.values()}, key=lambda check: check.__name__))
def test_sound_code_passes(sound: Catalog, check: Callable[[Catalog], None]) -> None:
    check(sound)


@pytest.fixture(scope="module")
def sound() -> Any:
    made = Catalog(CLINIC, database="clinic", seconds=30)
    yield made
    made.close()


@pytest.mark.parametrize("name", BUGS)
def test_a_mutant_is_killed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bug = BUGS[name]
    monkeypatch.setattr(bug.place, bug.name, bug.wrong)
    made = Catalog(CLINIC, database="clinic", seconds=30)
    try:
        with pytest.raises((AssertionError, pytest.fail.Exception, Refusal)):
            bug.check(made)
    finally:
        made.close()
