"""What agents may spend over MCP: settings, counts in the gateway's database, and what the desk may say about them."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from discreet.datasets.policy import policy_in
from discreet.errors import BudgetExhausted, InvalidArgument, NotAllowed
from discreet.gateway.books import audit, limits
from discreet.gateway.books.agents import Agent, read_agent
from discreet.gateway.books.store import GatewayStore
from discreet.gateway.books.tables import MIGRATIONS
from discreet.gateway.books.tokens import Caller
from discreet.gateway.settings import Settings, settings_of
from discreet.gateway.vault.asking import read_question

from ...refusing import refuses
from ..clinics import Clinic

TENTH = Fraction(1, 10)
POLICY = (
    '[ledger]\npath = "clinic.ledger"\nepsilon = 1\n[unit]\nperson = "id"\n[tables.visits]\nsource = "visits.parquet"\n'
)


def reserve(clinic: Clinic, caller: Caller, epsilon: Fraction = TENTH, **agent: Any) -> limits.Reservation:
    given: dict[str, Any] = {"sql": "SELECT 1", "digest": "d", "agent": Agent(**agent)}
    return limits.reserve(clinic.store, clinic.settings, caller, epsilon, clinic.time, **given)


def left(clinic: Clinic, caller: Caller) -> Fraction:
    found = limits.standing(clinic.store, clinic.settings, caller, clinic.time, Agent())
    return found["mcp"]["left"]


def settings(folder: Path, **words: Any) -> Settings:
    return settings_of(words, folder, policy_in(POLICY, folder))


def test_settings_of_agents(tmp_path: Path) -> None:
    plain = settings(tmp_path)
    assert (plain.mcp_session, plain.mcp_confirm_above) == (1, TENTH)
    assert settings(tmp_path, limits={"session": 0.3}).mcp_session == Fraction(3, 10)
    given = settings(tmp_path, limits={"session": 0.3}, mcp={"session": 0.2, "confirm_above": 0})
    assert (given.session, given.mcp_session, given.mcp_confirm_above) == (Fraction(3, 10), Fraction(1, 5), 0)
    with refuses(InvalidArgument, "policy-unknown-key"):
        settings(tmp_path, mcp={"confirm": 1})
    for wrong in ({"session": 0}, {"session": "much"}, {"confirm_above": -1}, {"confirm_above": False}):
        with pytest.raises(InvalidArgument):
            settings(tmp_path, mcp=wrong)


def test_agents_and_people_of_one_token_are_counted_apart(anywhere: Clinic) -> None:
    anywhere.set(mcp_session=Fraction(2, 10), session=Fraction(4, 10))
    alice = anywhere.login("alice")
    made = reserve(anywhere, alice)
    limits.reserve(anywhere.store, anywhere.settings, alice, TENTH, anywhere.time)
    assert left(anywhere, alice) == TENTH
    reserve(anywhere, alice)
    with refuses(BudgetExhausted, "gateway-mcp-limit"):
        reserve(anywhere, alice)
    limits.undo(anywhere.store, made)
    limits.undo(anywhere.store, made)
    assert left(anywhere, alice) == TENTH
    reserve(anywhere, alice)
    limits.reserve(anywhere.store, anywhere.settings, alice, TENTH, anywhere.time)
    with refuses(BudgetExhausted, "gateway-session-limit"):  # that of all holds for agents, too
        reserve(anywhere, alice)


def test_a_new_session_begins_after_a_pause(clinic_with: Callable[..., Clinic]) -> None:
    clinic = clinic_with(mcp_session=TENTH)
    alice = clinic.login("alice")
    made = reserve(clinic, alice)
    clinic.time += 1799
    with refuses(BudgetExhausted, "gateway-mcp-limit"):
        reserve(clinic, alice)
    clinic.time += 2
    reserve(clinic, alice)
    limits.undo(clinic.store, made)  # it was counted in the session before
    assert left(clinic, alice) == 0


def test_with_zero_a_person_confirms_everything(clinic_with: Callable[..., Clinic]) -> None:
    clinic = clinic_with(mcp_confirm_above=Fraction(0))
    alice = clinic.login("alice")
    with refuses(NotAllowed, "gateway-confirm"):
        reserve(clinic, alice, Fraction(1, 1000), can_confirm=True)
    assert left(clinic, alice) == 1
    reserve(clinic, alice, Fraction(1, 1000), can_confirm=True, confirmed=Fraction(1, 1000))
    assert [line.what for line in audit.lines(clinic.store)].count("asked") == 1


def test_a_database_of_the_first_version_is_opened(target: str) -> None:
    old = GatewayStore(target, MIGRATIONS[:1])
    with old.write() as execute:
        execute("UPDATE tokens SET spent = '5'")
    old.close()
    with GatewayStore(target) as store, store.read() as execute:
        assert execute("SELECT spent, mcp_spent FROM tokens") == [("5", "0")]


def test_what_the_desk_says_about_an_agent() -> None:
    assert read_agent({}) is None
    assert read_agent({"via": "mcp"}) == Agent()
    said = {"via": "mcp", "can_confirm": True, "confirmed": "1/3"}
    assert read_agent(said) == Agent(can_confirm=True, confirmed=Fraction(1, 3))
    for wrong in ({"via": "http"}, {"can_confirm": 1}, {"confirmed": 1}, {"confirmed": "1/0"}, {"confirmed": "1e9"}):
        with refuses(InvalidArgument, "gateway-argument"):
            read_agent(said | wrong)


def test_a_reason_is_a_sentence() -> None:
    asked = read_question({"sql": "SELECT 1", "epsilon": 1, "why": "Because."}, Settings())
    assert (asked.why, asked.agent) == ("Because.", None)
    for wrong in (7, "a" * 2001):
        with refuses(InvalidArgument, "gateway-argument"):
            read_question({"sql": "SELECT 1", "epsilon": 1, "why": wrong}, Settings())
