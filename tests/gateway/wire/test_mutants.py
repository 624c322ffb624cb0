"""Bugs planted in sessions over the PostgreSQL protocol: the check that a sound session passes must catch each."""

from __future__ import annotations

import pytest

from discreet.gateway.wire import asking, rehearsal, session
from discreet.gateway.wire.asking import Asker
from discreet.gateway.wire.cursors import Cursors
from discreet.gateway.wire.format.values import Column, Notice, Refusal
from discreet.gateway.wire.text import parameters, statements

from .wire_vault import Client, LocalVault, said

COUNT = "SELECT COUNT(*) AS n FROM visits"


class Seen(Exception):
    """A check found a bug."""


def expect(holds):
    if not holds:
        raise Seen


@pytest.fixture
def client():
    made = Client()
    yield made
    made.close()


# --- checks -------------------------------------------------------------------------------------------------


def describing_is_free(client):
    client.describe(COUNT)
    client.describe(f"EXPLAIN {COUNT}")
    client.query(f"DECLARE c CURSOR WITH HOLD FOR {COUNT}; PREPARE p AS {COUNT}")
    expect(client.vault.charges == 0)


def only_the_mode_answer_buys(client):
    for mode in ("replay", "preview", "rehearse"):
        try:
            client.run(f"/* discreet mode={mode} */ {COUNT}")
        except Refusal:
            expect(mode == "replay")
    expect(client.vault.charges == 0)


def a_cursor_is_charged_once(client):
    client.query(f"DECLARE c CURSOR WITH HOLD FOR {COUNT}; FETCH c; MOVE ABSOLUTE 0 c; FETCH c")
    expect([verb for verb, _ in client.vault.calls].count("ask") == 1)


def quotes_end_no_literal(client):
    client.run("SELECT COUNT(*) AS n FROM visits WHERE city = $1", "x' OR 'a' = 'a")
    expect("x'' OR ''a''" in client.vault.calls[-1][1]["sql"])


def what_is_quoted_is_no_comment(client):
    client.run("SELECT COUNT(*) AS n FROM visits WHERE city <> '/* epsilon=9 */'")
    expect(client.vault.calls[-1][1].get("epsilon") is None)


def unexpected_errors_stay_inside(client):
    try:
        client.run("SELECT 'fail'")
    except Refusal as refusal:
        expect("zq7canary" not in refusal.message)
    except RuntimeError:
        raise Seen from None


def types_do_not_depend_on_values(client):
    one = LocalVault(rows=[])
    other = Client(one)
    text = "SELECT city, MAX(cost) AS m, COUNT(*) AS n FROM visits GROUP BY city"
    columns = other.run(text).columns
    other.close()
    expect(columns == client.run(text).columns == client.describe(text).columns)


def made_up_rows_are_marked_and_asked_of_nobody(client):
    client.vault.calls.clear()
    result = client.run(f"/* discreet mode=rehearse */ {COUNT}")
    expect("NOT REAL" in said(result)[0])
    expect({verb for verb, _ in client.vault.calls} <= {"describe"})
    expect(client.run(f"/* discreet mode=rehearse */ {COUNT}").rows == result.rows)


def a_changed_statement_is_refused_before_it_costs(client):
    [statement] = client.session.read(COUNT)
    client.loop.run_until_complete(client.session.describe(statement))
    client.query("SET discreet.errors = off")
    try:
        client.loop.run_until_complete(client.session.run(statement))
    except Refusal:
        expect(client.vault.charges == 0)
    else:
        raise Seen


def refused_errors_cost_nothing(client):
    try:
        client.run("SELECT COUNT(*) AS n, error(m) FROM visits")
    except Refusal:
        expect(client.vault.charges == 0)


CHECKS = [
    describing_is_free,
    only_the_mode_answer_buys,
    a_cursor_is_charged_once,
    quotes_end_no_literal,
    what_is_quoted_is_no_comment,
    unexpected_errors_stay_inside,
    types_do_not_depend_on_values,
    made_up_rows_are_marked_and_asked_of_nobody,
    a_changed_statement_is_refused_before_it_costs,
    refused_errors_cost_nothing,
]


# --- bugs ---------------------------------------------------------------------------------------------------


def describe_runs_the_question(monkeypatch):
    real = Asker.describe

    async def eager(self, statement, declared=()):
        found = await real(self, statement, declared)
        await self.answer(statement)
        return found

    monkeypatch.setattr(Asker, "describe", eager)


def replay_buys_what_is_missing(monkeypatch):
    real = asking.options_of

    def generous(comments, settings):
        found = real(comments, settings)
        return asking.Options(found.arguments, "answer" if found.mode == "replay" else found.mode, found.errors)

    monkeypatch.setattr(asking, "options_of", generous)


def each_fetch_asks_again(monkeypatch):
    real = Cursors.fetch

    async def forgetful(self, name, move, ask):
        self.find(name).answered = None
        return await real(self, name, move, ask)

    monkeypatch.setattr(Cursors, "fetch", forgetful)


def quotes_not_doubled(monkeypatch):
    monkeypatch.setattr(parameters, "literal", lambda value, kind: f"'{value}'")


def comments_found_in_the_text(monkeypatch):
    monkeypatch.setattr(
        statements,
        "comments_in",
        lambda text, *_: tuple(part.partition("*/")[0].strip() for part in text.split("/*")[1:]),
    )
    statements._remembered.cache_clear()


def errors_passed_on(monkeypatch):
    async def open_hearted(call):
        try:
            return await call
        except RuntimeError as error:
            raise Refusal(str(error), state="XX000") from None

    monkeypatch.setattr(session, "_guarded", open_hearted)


def types_from_values(monkeypatch):
    real = asking._answered

    def guessed(*given):
        found = real(*given)
        kinds = [
            "int8" if all(float(row[place]).is_integer() for row in found.rows if row[place] is not None) else "float8"
            for place, column in enumerate(found.columns)
            if column.type == "float8"
        ]
        columns = [Column(one.name, kinds.pop(0)) if one.type == "float8" else one for one in found.columns]
        return found._replace(columns=tuple(columns))

    monkeypatch.setattr(asking, "_answered", guessed)


def made_up_rows_not_marked(monkeypatch):
    monkeypatch.setattr(asking, "Notice", lambda message, *_: Notice("rows"))


def made_up_rows_from_the_answer(monkeypatch):
    async def real_rows(self, statement, asked, options):
        return await self._ask(statement, asked, options)

    monkeypatch.setattr(Asker, "_rehearse", real_rows)


def made_up_rows_drawn_anew(monkeypatch):
    numbers = iter(range(10**6))
    real = rehearsal._number
    monkeypatch.setattr(rehearsal, "_number", lambda seed, *given: real(f"{seed}{next(numbers)}", *given))


def columns_not_compared_with_those_described(monkeypatch):
    monkeypatch.setattr(Asker, "_shown", staticmethod(lambda fields, asked, options: _Anything()))


class _Anything(tuple):
    __slots__ = ()

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    __hash__ = None


def errors_checked_after_the_answer(monkeypatch):
    monkeypatch.setattr(asking, "ERRORS", ())


BUGS = [
    (describe_runs_the_question, describing_is_free),
    (replay_buys_what_is_missing, only_the_mode_answer_buys),
    (each_fetch_asks_again, a_cursor_is_charged_once),
    (quotes_not_doubled, quotes_end_no_literal),
    (comments_found_in_the_text, what_is_quoted_is_no_comment),
    (errors_passed_on, unexpected_errors_stay_inside),
    (types_from_values, types_do_not_depend_on_values),
    (made_up_rows_not_marked, made_up_rows_are_marked_and_asked_of_nobody),
    (made_up_rows_from_the_answer, made_up_rows_are_marked_and_asked_of_nobody),
    (made_up_rows_drawn_anew, made_up_rows_are_marked_and_asked_of_nobody),
    (columns_not_compared_with_those_described, a_changed_statement_is_refused_before_it_costs),
    (errors_checked_after_the_answer, refused_errors_cost_nothing),
]


@pytest.mark.parametrize("check", CHECKS)
def test_sound_code_passes(client, check):
    check(client)


@pytest.mark.parametrize(("bug", "check"), BUGS, ids=[f"{bug.__name__}-{check.__name__}" for bug, check in BUGS])
def test_a_mutant_is_killed(client, monkeypatch, bug, check):
    bug(monkeypatch)
    try:
        with pytest.raises(Seen):
            check(client)
    finally:
        statements._remembered.cache_clear()
