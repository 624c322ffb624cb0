"""The verbs: each is for its roles and scopes, takes its arguments and no others, and breaks on none."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from typing import Any

import pytest

import discreet as dp
from discreet.errors import DiscreetError, InvalidArgument, NotAllowed
from discreet.gateway.books import questions
from discreet.gateway.books.dashboards import AUTHORS
from discreet.gateway.books.offices import check_caller
from discreet.gateway.books.tokens import COMMAND_LINE, ROLES, Caller
from discreet.gateway.vault.verbs import VERBS

from ...refusing import refuses
from ..clinics import Clinic

EVERYBODY = frozenset(ROLES)
OWNER, DECIDING, LOOKING = frozenset({"owner"}), frozenset({"owner", "steward"}), frozenset({"owner", "auditor"})
MAKING = frozenset(AUTHORS)
MAY = {
    **dict.fromkeys(("me", "end_session", "budget", "history", "spending", "requests", "policy"), EVERYBODY),
    **dict.fromkeys(("dashboards", "dashboard", "remove_dashboard"), EVERYBODY),
    **dict.fromkeys(("publish_dashboard", "unpublish_dashboard"), EVERYBODY),
    **dict.fromkeys(("make_dashboard", "rename_dashboard", "rename_tile", "move_tile", "remove_tile"), MAKING),
    "set_rule": MAKING - {"service"},
    **dict.fromkeys(("tokens", "token", "revoke", "rotate"), EVERYBODY - {"service"}),
    **dict.fromkeys(("open", "link", "resume", "raise", "renew", "role"), OWNER),
    **dict.fromkeys(("suspend", "decide", "decide_policy"), DECIDING),
    "accounts": DECIDING | LOOKING,
    "propose": DECIDING | {"analyst", "service"},
    **dict.fromkeys(("record", "audit", "trail"), LOOKING),
}
"""Who may use a verb, with a token that has all scopes of its role."""
FOR_ANYBODY = {"login", "leaked"}


def test_every_verb_of_the_design_is_here() -> None:
    assert set(VERBS) == set(MAY) | FOR_ANYBODY


@pytest.mark.parametrize("role", ROLES)
def test_verbs_are_for_their_roles(clinic: Clinic, role: str) -> None:
    caller = Caller(account="alice", role=role, scopes=frozenset(ROLES[role]))
    for verb, roles in MAY.items():
        with pytest.raises(DiscreetError) as info:
            clinic.do(verb, caller, nonsense=1)
        assert info.value.code == ("gateway-argument" if role in roles else "gateway-role"), verb


def test_nobody_without_a_token_gets_further_than_the_door(clinic: Clinic) -> None:
    for verb in MAY:
        with refuses(NotAllowed, "gateway-login"):
            clinic.do(verb, None)


def test_verbs_that_manage_need_a_token_for_it(clinic: Clinic) -> None:
    owner = Caller(account="olga", role="owner", scopes=frozenset({"ask", "replay", "explain", "metrics"}))
    free = {"me", "end_session", "budget", "history", "spending", "requests", "policy", "propose"}
    free |= {verb for verb in MAY if "dashboard" in verb or "tile" in verb}  # these look at the scope replay
    for verb in set(MAY) - free:
        with refuses(NotAllowed, "gateway-role"):
            clinic.do(verb, owner)


ODD: tuple[Any, ...] = (
    *(None, "", "alice", "nobody", "\0", "\ud800", 0, 1, -1, 2**70, 1.5, float("inf"), True),
    *([], ["ask"], [[]], {}, {"a": 1}, "x" * 300_000, "30d", "approve"),
)


NAMES = ("name", "account", "id", "number", "decision", "epsilon", "delta", "why", "first", "last", "text")
NAMES += ("role", "link", "token", "scopes", "expires", "find", "page", "most", "whole", "points")
NAMES += ("title", "tile", "steps", "rule")


@pytest.mark.some_quick(19)
@pytest.mark.parametrize("verb", VERBS)
def test_odd_arguments_are_refused_or_answered_in_json(anywhere: Clinic, verb: str) -> None:
    anywhere.open("alice")
    good: dict[str, Any] = {"name": "alice", "epsilon": 5, "why": "so", "number": 1, "decision": "approve"}
    good |= {"role": "analyst", "text": "text", "link": "x", "token": "x", "id": anywhere.login("bob").token}
    taken = [name for name in NAMES if takes(anywhere, verb, name)]
    for name, odd in itertools.product(taken, ODD):
        arguments = {other: good[other] for other in taken if other in good} | {name: odd}
        try:
            json.dumps(anywhere.do(verb, **arguments), allow_nan=False)
        except DiscreetError as error:
            said = str(error)
        else:
            said = ""
        assert len(said) < 2000, arguments
    assert len(anywhere.do("accounts")["accounts"]) >= 2


def takes(clinic: Clinic, verb: str, name: str) -> bool:
    """Whether a verb knows an argument: an unknown one is refused first, by its name."""
    with pytest.raises(InvalidArgument) as info:
        clinic.do(verb, **{name: "x", "nonsense": 1})
    return "'nonsense'" in str(info.value)


def test_what_a_verb_takes_is_known(clinic: Clinic) -> None:
    assert [name for name in NAMES if takes(clinic, "open", name)] == ["name", "epsilon", "delta", "role"]
    assert [name for name in NAMES if takes(clinic, "me", name)] == []


def test_what_remains_is_said_in_questions(clinic: Clinic) -> None:
    alice = clinic.login("alice", epsilon=2)
    clinic.office.ledger.for_analyst("alice").charge(dp.Pure(epsilon=0.5), asked="a")
    clinic.set(question_default=Fraction(1, 2), day=Fraction(1))
    found = clinic.do("budget", alice)
    assert found["limit"] == {"epsilon": 2.0, "delta": 1e-6}
    assert found["remaining"]["epsilon"] == pytest.approx(1.5)
    assert found["day"] == {"limit": 1.0, "left": 1.0}
    assert found["about"] == "about 3 questions with ε = 0.5, 2 of them today"
    clinic.set(question_default=Fraction(1, 2), day=Fraction(2))
    assert clinic.do("budget", alice)["about"] == "about 3 questions with ε = 0.5"
    clinic.set(question_default=Fraction(1, 2), day=Fraction(2), session=Fraction(1, 4))
    assert clinic.do("budget", alice)["about"] == "about 3 questions with ε = 0.5, 0 of them in this session"
    clinic.set(question_default=Fraction(1))
    assert clinic.do("budget", alice)["about"] == "about 1 question with ε = 1, 0 of them in this session"
    assert clinic.do("budget", clinic.login("vera", "viewer"))["remaining"] is None
    assert clinic.do("budget", clinic.login("olga", "owner"))["remaining"]["epsilon"] == pytest.approx(9.5)


def test_history_is_one_s_own(clinic: Clinic) -> None:
    alice, bob = clinic.login("alice"), clinic.login("bob")
    for number in range(1, 4):
        questions.note_question(clinic.store, "alice", f"{number}-x", f"SELECT {number}", {}, clinic.time)
    assert [one["sql"] for one in clinic.do("history", alice)["questions"]] == ["SELECT 1", "SELECT 2", "SELECT 3"]
    assert [one["receipt"] for one in clinic.do("history", alice, first=2, last=2)["questions"]] == ["2-x"]
    assert clinic.do("history", bob)["questions"] == []


def test_records_are_paged(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.gateway.books.offices._PAGE", 2)
    monkeypatch.setattr("discreet.gateway.books.offices.LONGEST_PAGE", 3)
    for name in ("alice", "bob", "carl", "dora", "emil"):
        clinic.open(name)
    for verb, key in (("record", "entries"), ("audit", "lines")):
        found = clinic.do(verb)
        assert found["count"] == 5
        assert [one["number"] for one in found[key]] == [4, 5]
        assert [one["number"] for one in clinic.do(verb, first=1)[key]] == [1, 2, 3]
        assert [one["number"] for one in clinic.do(verb, first=4, last=4)[key]] == [4]
        assert [one["number"] for one in clinic.do(verb, last=2)[key]] == [1, 2]
        with refuses(InvalidArgument, "gateway-argument"):
            clinic.do(verb, first=0)


def test_an_auditor_reads_everything_and_changes_nothing(clinic: Clinic) -> None:
    audrey = clinic.login("audrey", "auditor")
    assert clinic.do("audit", audrey)["count"] == 2
    assert clinic.do("record", audrey)["count"] == 0
    assert [one["name"] for one in clinic.do("accounts", audrey)["accounts"]] == ["audrey"]
    for verb in ("suspend", "resume"):
        with refuses(NotAllowed, "gateway-role"):
            clinic.do(verb, audrey)


def test_what_is_missing_or_unknown_is_named(clinic: Clinic) -> None:
    with pytest.raises(InvalidArgument, match="needs why"):
        clinic.do("renew", name="alice")
    with pytest.raises(InvalidArgument, match="'epsilom'"):
        clinic.do("open", name="alice", epsilom=3)
    assert COMMAND_LINE.account not in {one["name"] for one in clinic.do("accounts")["accounts"]}


@pytest.mark.parametrize(("role", "scope"), [("steward", "replay"), ("auditor", "ask"), ("viewer", "ask")])
def test_who_can_have_no_such_token_is_not_told_to_ask_for_one(role: str, scope: str) -> None:
    """The role decides, and the roles that may are named. Who only needs another token is told to get it."""
    caller = Caller(account="stefan", role=role, scopes=frozenset(ROLES[role]))
    with refuses(NotAllowed, "gateway-role") as refused:
        check_caller(caller, "ask", ROLES, scope)
    said = str(refused.value)
    assert "token" not in said
    assert said.endswith(f"Yours is {role}.")
    assert role not in said.partition("Yours")[0]
    with refuses(NotAllowed, "gateway-role") as refused:
        check_caller(Caller(account="ada", role="analyst", scopes=frozenset({"explain"})), "ask", ROLES, scope)
    assert f"a token with the scope {scope}" in str(refused.value)
