"""Bugs planted in the books of the gateway: the very check that the sound code passes catches each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from discreet.gateway.books import accounts, approvals, audit, late, limits, offices, store, tokens
from discreet.gateway.books.agents import Agent
from discreet.gateway.books.store import GatewayStore

from ..clinics import Clinic, at_once
from ..programs.planting import Bug, plant

MODULES = (accounts, approvals, audit, limits, offices, store, tokens)
TENTH, BIG = Fraction(1, 10), Fraction(6, 10)


# --- the checks -------------------------------------------------------------------------------------------


def ask(clinic: Clinic, caller: tokens.Caller, epsilon: Fraction = TENTH) -> limits.Reservation:
    return limits.reserve(clinic.store, clinic.settings, caller, epsilon, clinic.time, digest="d", sql="SELECT 1")


def every_character_of_a_secret_counts(clinic: Clinic) -> None:
    clinic.open("alice")
    right = clinic.do("token", account="alice")["token"]
    clinic.caller(right)
    for place in range(len(right) - 64, len(right)):
        other = right[:place] + ("0" if right[place] != "0" else "1") + right[place + 1 :]
        assert_refused(lambda token=other: clinic.caller(token), "gateway-login")


def what_was_revoked_is_refused(clinic: Clinic) -> None:
    clinic.open("alice")
    made = clinic.do("token", account="alice")
    other = GatewayStore(clinic.target)
    callers = tokens.Callers(other)
    callers.caller(made["token"], clinic.time)
    clinic.do("revoke", id=made["id"])
    assert_refused(lambda: callers.caller(made["token"], clinic.time), "gateway-login")
    assert_refused(lambda: tokens.authenticate(other, made["token"], clinic.time), "gateway-login")
    other.close()


def a_suspended_caller_asks_nothing(clinic: Clinic) -> None:
    alice = clinic.login("alice")
    clinic.do("suspend", name="alice")
    assert_refused(lambda: ask(clinic, alice), "gateway-suspended")


def a_link_works_once(clinic: Clinic) -> None:
    link = clinic.open("alice")
    found = at_once(lambda _: clinic.do("login", None, link=link)["account"], 4)
    assert found.count("alice") == 1


def an_approval_is_used_once(clinic: Clinic) -> None:
    clinic.set(approve_above=Fraction(1, 2))
    alice = clinic.login("alice")
    assert_refused(lambda: ask(clinic, alice, BIG), "gateway-approval")
    clinic.do("decide", number=1, decision="approve")
    ask(clinic, alice, BIG)
    assert_refused(lambda: ask(clinic, alice, BIG), "gateway-approval")


def an_approval_is_for_no_more_epsilon(clinic: Clinic) -> None:
    clinic.set(approve_above=Fraction(1, 2))
    alice = clinic.login("alice")
    assert_refused(lambda: ask(clinic, alice, BIG), "gateway-approval")
    clinic.do("decide", number=1, decision="approve")
    assert_refused(lambda: ask(clinic, alice, 2 * BIG), "gateway-approval")


def somebody_else_decides(clinic: Clinic) -> None:
    olga = clinic.login("olga", "owner")
    approvals.ask_approval(clinic.store, olga, "d", "SELECT 1", BIG, clinic.time)
    assert_refused(lambda: clinic.do("decide", olga, number=1, decision="approve"), "gateway-approval")


def a_day_is_never_exceeded(clinic: Clinic) -> None:
    clinic.set(day=Fraction(2, 10))
    alice = clinic.login("alice")
    found = at_once(lambda _: type(ask(clinic, alice)).__name__)
    assert found.count("Reservation") == 2


def undoing_twice_is_undoing_once(clinic: Clinic) -> None:
    clinic.set(day=Fraction(2, 10))
    alice = clinic.login("alice")
    ask(clinic, alice)
    made = ask(clinic, alice)
    limits.undo(clinic.store, made)
    limits.undo(clinic.store, made)
    ask(clinic, alice)
    assert_refused(lambda: ask(clinic, alice), "gateway-day-limit")


def ask_over_mcp(clinic: Clinic, caller: tokens.Caller, epsilon: Fraction = TENTH, **agent: Any) -> limits.Reservation:
    given = {"digest": "d", "sql": "SELECT 1", "agent": Agent(**agent)}
    return limits.reserve(clinic.store, clinic.settings, caller, epsilon, clinic.time, **given)


def an_agent_ends_at_the_limit_of_its_session(clinic: Clinic) -> None:
    clinic.set(mcp_session=Fraction(2, 10))
    alice = clinic.login("alice")
    ask_over_mcp(clinic, alice)
    ask_over_mcp(clinic, alice)
    assert_refused(lambda: ask_over_mcp(clinic, alice), "gateway-mcp-limit")
    limits.undo(clinic.store, ask(clinic, alice))  # that of a person gives an agent nothing back
    assert_refused(lambda: ask_over_mcp(clinic, alice), "gateway-mcp-limit")


def agents_at_once_end_at_the_limit(clinic: Clinic) -> None:
    clinic.set(mcp_session=Fraction(2, 10))
    alice = clinic.login("alice")
    found = at_once(lambda _: type(ask_over_mcp(clinic, alice)).__name__)
    assert found.count("Reservation") == 2


def a_person_confirms(clinic: Clinic) -> None:
    alice = clinic.login("alice")
    assert_refused(lambda: ask_over_mcp(clinic, alice, BIG, can_confirm=True), "gateway-confirm")
    assert_refused(lambda: ask_over_mcp(clinic, alice, BIG, can_confirm=True, confirmed=BIG / 2), "gateway-confirm")
    assert_refused(lambda: ask_over_mcp(clinic, alice, BIG), "gateway-approval")
    ask_over_mcp(clinic, alice, BIG, can_confirm=True, confirmed=BIG)


def a_confirmation_replaces_no_second_person(clinic: Clinic) -> None:
    clinic.set(approve_above=Fraction(1, 2))
    alice = clinic.login("alice")
    assert_refused(lambda: ask_over_mcp(clinic, alice, BIG, can_confirm=True, confirmed=BIG), "gateway-approval")


def a_late_answer_stops_all(clinic: Clinic) -> None:
    alice = clinic.login("alice")
    late.record_late(clinic.store, "alice", "d", clinic.time)
    assert_refused(lambda: ask(clinic, alice), "gateway-stopped")


def a_changed_line_is_noticed(clinic: Clinic) -> None:
    audit.record(clinic.store, clinic.time, "alice", "asked", sql="SELECT 1")
    with clinic.store.write() as execute:
        execute("UPDATE audit SET details = '{}'")
    assert_refused(lambda: audit.verify(clinic.store), "gateway-audit-changed")


def an_old_token_loses_what_its_role_lost(clinic: Clinic) -> None:
    token = clinic.do("login", None, link=clinic.open("alice"))["token"]
    clinic.do("role", name="alice", role="viewer")
    assert "ask" not in clinic.caller(token).scopes


def a_small_token_makes_no_larger_one(clinic: Clinic) -> None:
    alice = clinic.login("alice")
    small = clinic.caller(clinic.do("token", alice, scopes=["ask", "manage"], epsilon=0.1)["token"])
    assert_refused(lambda: clinic.do("token", small, scopes=["ask"]), "gateway-role")


def other_people_s_tokens_stay(clinic: Clinic) -> None:
    alice, bob = clinic.login("alice"), clinic.login("bob")
    assert_refused(lambda: clinic.do("rotate", alice, id=bob.token), "gateway-not-found")


def assert_refused(work: Callable[[], object], code: str) -> None:
    """An assertion, so that a missing refusal is told apart from an accident."""
    try:
        work()
    except Exception as error:
        found = getattr(error, "code", repr(error))
    else:
        found = "nothing was refused"
    assert found == code


# --- the bugs ---------------------------------------------------------------------------------------------

MUTANTS = {
    "secret_compared_by_its_beginning": Bug(
        tokens, "digest_of", 'secret.encode("utf-8", "replace")', 'secret.encode("utf-8", "replace")[:32]',
        every_character_of_a_secret_counts,
    ),
    "revoked_token_taken_from_the_cache": Bug(
        tokens, "Callers", "generation != self._generation or", "self._generation < 0 or", what_was_revoked_is_refused
    ),
    "revocation_not_announced": Bug(
        tokens, "revoke", "    note_change(execute)\n", "    pass\n", what_was_revoked_is_refused
    ),
    "revoked_token_accepted": Bug(
        tokens, "holder", "== _NOBODY or revoked or", "== _NOBODY or", what_was_revoked_is_refused
    ),
    "suspension_seen_at_login_only": Bug(
        limits, "reserve", "        state.check_caller()\n", "", a_suspended_caller_asks_nothing
    ),
    "link_not_used_up": Bug(
        accounts, "login", 'execute("UPDATE links SET used = 1 WHERE digest = ?", digest)', "pass", a_link_works_once
    ),
    "approval_not_used_up": Bug(
        approvals, "consume", """execute("UPDATE requests SET state = 'used' WHERE number = ?", number)""", "pass",
        an_approval_is_used_once,
    ),
    "approval_for_any_epsilon": Bug(
        approvals, "consume", "round_up(epsilon) <= int(units)", "units", an_approval_is_for_no_more_epsilon
    ),
    "asker_approves": Bug(
        approvals, "decide", "request.account == by.account", "by.account is None", somebody_else_decides
    ),
    "limit_checked_before_the_transaction": Bug(
        limits, "reserve",
        "    with store.write() as execute:\n        state = _State(execute, settings, caller, now)\n",
        "    with store.read() as execute:\n        state = _State(execute, settings, caller, now)\n"
        "        state.check_limits(epsilon)\n    __import__('time').sleep(0.02)\n"
        "    with store.write() as execute:\n        state = _State(execute, settings, caller, now)\n"
        "        state.check_limits = lambda epsilon: None\n",
        a_day_is_never_exceeded,
    ),
    "undone_twice": Bug(
        limits, "undo", '        execute("DELETE FROM reservations WHERE number = ?", reservation.number)\n', "",
        undoing_twice_is_undoing_once,
    ),
    "agents_not_counted": Bug(
        limits, "_State", "str(self.mcp_spent + units * mcp)", "str(self.mcp_spent)",
        an_agent_ends_at_the_limit_of_its_session,
    ),
    "agents_get_back_what_people_undo": Bug(
        limits, "undo", "(back if mcp else 0)", "back", an_agent_ends_at_the_limit_of_its_session
    ),
    "agents_without_a_limit": Bug(
        limits, "_State", "if self.agent is not None:\n            person", "if False:\n            person",
        agents_at_once_end_at_the_limit,
    ),
    "agents_need_nobody": Bug(
        limits, "reserve", "alone = agent is not None and", "alone = False and", a_person_confirms
    ),
    "confirmed_for_any_epsilon": Bug(
        limits, "reserve", "epsilon > max(settings.mcp_confirm_above, agent.confirmed)",
        "epsilon > settings.mcp_confirm_above and not agent.confirmed", a_person_confirms,
    ),
    "confirmation_replaces_approval": Bug(
        limits, "reserve", "needed = above is not None and epsilon > above",
        "needed = above is not None and epsilon > above and not (agent and agent.confirmed)",
        a_confirmation_replaces_no_second_person,
    ),
    "late_answers_not_counted": Bug(
        limits, "_State", 'self.numbers["late"] > self.settings.late_allowed', "False", a_late_answer_stops_all
    ),
    "audit_chained_without_details": Bug(
        audit, "Line", "list(self[:-1])", "list(self[:-2])", a_changed_line_is_noticed
    ),
    "scopes_of_an_old_role": Bug(
        tokens, "holder", " & frozenset(ROLES[role])", "", an_old_token_loses_what_its_role_lost
    ),
    "small_token_makes_a_larger_one": Bug(
        offices, "token", 'caller.role != "owner" and caller.epsilon is not None', "False",
        a_small_token_makes_no_larger_one,
    ),
    "any_token_rotated_by_anybody": Bug(
        offices, "_own_token", "found.account != caller.account", "False", other_people_s_tokens_stay
    ),
}  # fmt: skip


@pytest.fixture
def planted(tmp_path: Path) -> Iterator[Clinic]:
    made = Clinic(tmp_path, str(tmp_path / "clinic.gateway"))
    yield made
    made.close()


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_killed(name: str, planted: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, MUTANTS[name], MODULES)
    with pytest.raises(AssertionError):
        MUTANTS[name].check(planted)


CHECKS = {bug.check.__name__: bug.check for bug in MUTANTS.values()}


@pytest.mark.parametrize("check", CHECKS)
def test_sound_code_passes(check: str, clinic: Clinic) -> None:
    CHECKS[check](clinic)
