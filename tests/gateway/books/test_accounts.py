"""Accounts, roles and login links: who may come in, and what the ledger knows of them."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest

import discreet as dp
from discreet.errors import InvalidArgument, NotAllowed
from discreet.gateway.books import accounts, audit, limits
from discreet.gateway.books.tokens import COMMAND_LINE
from discreet.gateway.console.pages.accounts import with_spent

from ...refusing import refuses
from ..clinics import Clinic, at_once


def test_an_analyst_has_an_account_in_the_ledger_and_others_have_none(clinic: Clinic) -> None:
    clinic.open("alice", epsilon=3)
    clinic.open("sam", "steward")
    assert clinic.office.ledger.analysts == ("alice",)
    assert clinic.office.ledger.for_analyst("alice").limit == dp.Approx(epsilon=3, delta=1e-6)
    listed = {one["name"]: one for one in clinic.do("accounts")["accounts"]}
    assert listed["alice"]["limit"] == {"epsilon": 3.0, "delta": 1e-6}
    assert listed["sam"]["limit"] is None


def test_a_limit_is_of_the_kind_of_the_ledger(clinic_with: Callable[..., Clinic]) -> None:
    pure = clinic_with(limit=dp.Pure(epsilon=10))
    pure.open("alice", epsilon=2)
    assert pure.office.ledger.for_analyst("alice").limit == dp.Pure(epsilon=2)
    with refuses(InvalidArgument, "ledger-limit-kind"):
        pure.open("bob", epsilon=2, delta=1e-7)
    assert pure.office.ledger.analysts == ("alice",)


def test_what_an_account_spent_is_its_own_also_if_it_may_spend_more_than_the_data_set(clinic: Clinic) -> None:
    clinic.open("alice", epsilon=50)
    clinic.open("bob", epsilon=5)
    clinic.open("sam", "steward")
    clinic.office.ledger.for_analyst("bob").charge(dp.Pure(epsilon=4), asked="a question")
    clinic.office.ledger.for_analyst("alice").charge(dp.Pure(epsilon=1), asked="a question")
    listed = {one["name"]: one for one in clinic.do("accounts")["accounts"]}
    assert {name: one["spent"] for name, one in listed.items()} == {"alice": 1.0, "bob": 4.0, "sam": None}
    assert listed["alice"]["remaining"]["epsilon"] == 5.0
    shown = {name: with_spent(one) for name, one in listed.items()}
    assert [shown[name]["spent"] for name in ("alice", "bob", "sam")] == [1.0, 4.0, None]
    assert (shown["alice"]["most"], shown["alice"]["left"]) == (50.0, 5.0)


def test_what_is_spent_of_a_limit_without_epsilon_has_no_meter(clinic_with: Callable[..., Clinic]) -> None:
    clinic = clinic_with(limit=dp.ZeroConcentrated(rho=2))
    clinic.office.ledger.for_analyst("alice", limit=dp.ZeroConcentrated(rho=1))
    clinic.open("alice", epsilon=None)
    clinic.office.ledger.for_analyst("alice").charge(dp.ZeroConcentrated(rho=0.25), asked="a question")
    [found] = clinic.do("accounts")["accounts"]
    assert found["spent"] == pytest.approx(0.25)
    assert (with_spent(found)["spent"], with_spent(found)["most"]) == (None, None)


def test_an_analyst_needs_a_limit_and_a_steward_has_none(clinic: Clinic) -> None:
    with refuses(InvalidArgument, "gateway-account-limit"):
        clinic.open("alice", epsilon=None)
    with refuses(InvalidArgument, "gateway-account-limit"):
        clinic.open("sam", "steward", epsilon=1)
    assert clinic.do("accounts")["accounts"] == []


def test_an_account_that_the_ledger_knows_is_taken_over_with_its_limit(clinic: Clinic) -> None:
    clinic.office.ledger.for_analyst("alice", limit=dp.Approx(epsilon=1, delta=1e-7))
    with refuses(InvalidArgument, "ledger-other-terms"):
        clinic.open("alice", epsilon=3)
    with refuses(InvalidArgument, "gateway-account-exists"):
        clinic.open("Alice", epsilon=3)
    clinic.open("alice", epsilon=None)
    assert clinic.office.ledger.for_analyst("alice").limit == dp.Approx(epsilon=1, delta=1e-7)


@pytest.mark.parametrize("name", ["", "a b", "-x", "ä", "a" * 65, "(command line)", "a\0b", 7, None, "alice\n"])
def test_names_that_no_account_can_have(clinic: Clinic, name: object) -> None:
    with refuses(InvalidArgument, "gateway-argument" if name is None else "gateway-account-name"):
        clinic.do("open", name=name, epsilon=1)


def test_names_are_unique_whatever_their_case(clinic: Clinic) -> None:
    clinic.open("A.Lee@clinic.org")
    with refuses(InvalidArgument, "gateway-account-exists"):
        clinic.open("a.lee@clinic.org")
    clinic.do("suspend", name="a.lee@CLINIC.org")
    assert clinic.do("accounts")["accounts"][0]["suspended"]


def test_an_unknown_role_or_account(clinic: Clinic) -> None:
    with refuses(InvalidArgument, "gateway-unknown-role"):
        clinic.open("alice", "king")
    with refuses(InvalidArgument, "gateway-not-found"):
        clinic.do("suspend", name="nobody")


# --- login links ------------------------------------------------------------------------------------------


def test_a_link_works_once_and_for_a_day(clinic: Clinic) -> None:
    link = clinic.open("alice")
    given = clinic.do("login", None, link=link)
    caller = clinic.caller(given["token"])
    assert (caller.account, caller.role, given["account"]) == ("alice", "analyst", "alice")
    assert caller.expires == clinic.time + 12 * 3600
    with refuses(NotAllowed, "gateway-login"):
        clinic.do("login", None, link=link)
    clinic.time += 24 * 3600 - 1
    later = clinic.do("link", name="alice")["link"].split("#")[1]
    clinic.time += 24 * 3600
    with refuses(NotAllowed, "gateway-login"):
        clinic.do("login", None, link=later)


def test_a_new_link_ends_the_earlier_ones(clinic: Clinic) -> None:
    first = clinic.open("alice")
    second = clinic.do("link", name="alice")["link"].split("#")[1]
    with refuses(NotAllowed, "gateway-login"):
        clinic.do("login", None, link=first)
    clinic.do("login", None, link=second)


@pytest.mark.parametrize("link", ["", "x", "0" * 64, 7, ["a"], "\0"])
def test_links_that_were_never_made(clinic: Clinic, link: object) -> None:
    clinic.open("alice")
    with refuses(NotAllowed, "gateway-login"):
        clinic.do("login", None, link=link)


def test_a_suspended_account_keeps_its_link_for_later(clinic: Clinic) -> None:
    link = clinic.open("alice")
    clinic.do("suspend", name="alice")
    with refuses(NotAllowed, "gateway-suspended"):
        clinic.do("login", None, link=link)
    clinic.do("resume", name="alice")
    assert clinic.do("login", None, link=link)["account"] == "alice"


def test_a_link_that_eight_use_at_once_works_for_one(anywhere: Clinic) -> None:
    link = anywhere.open("alice")
    found = at_once(lambda _: anywhere.do("login", None, link=link)["account"])
    assert sorted(found) == ["alice", *["gateway-login"] * 7]


def test_somebody_known_from_elsewhere_gets_a_session(clinic: Clinic) -> None:
    clinic.open("alice")
    given = accounts.begin_session(clinic.store, "ALICE", "by login.example.org", clinic.time)
    assert clinic.caller(given.text).account == "alice"
    assert given.text not in repr(given)


def test_what_can_no_longer_be_used_is_forgotten(clinic: Clinic) -> None:
    clinic.set(day=Fraction(1))
    alice = clinic.login("alice")
    limits.reserve(clinic.store, clinic.settings, alice, Fraction(1, 10), clinic.time)
    for days, logins in ((29, 2), (3, 2), (60, 1)):
        clinic.time += days * 86_400
        clinic.do("login", None, link=clinic.do("link", name="alice")["link"].split("#")[1])
        assert len(clinic.do("tokens", account="alice")["tokens"]) == logins
    with clinic.store.read() as execute:
        assert [execute(f"SELECT COUNT(*) FROM {table}")[0][0] for table in ("days", "reservations")] == [0, 0]
        assert len(execute("SELECT digest FROM links")) == 1
    assert audit.verify(clinic.store) == audit.count(clinic.store)


# --- changes ----------------------------------------------------------------------------------------------


def test_a_limit_is_raised_and_renewed_in_the_ledger_with_a_reason(clinic: Clinic) -> None:
    clinic.open("alice", epsilon=3)
    assert clinic.do("raise", name="alice", epsilon=5, why="a second study")["limit"]["epsilon"] == 5
    clinic.do("renew", name="alice", epsilon=4, why="new people")
    ledger = clinic.office.ledger
    assert ledger.for_analyst("alice").limit == dp.Approx(epsilon=4, delta=1e-6)
    assert [entry.asked for entry in ledger.entries()][-2:] == ["a second study", "new people"]
    with refuses(InvalidArgument, "ledger-no-reason"):
        clinic.do("renew", name="alice", why=" ")
    clinic.open("sam", "steward")
    with refuses(InvalidArgument, "gateway-account-limit"):
        clinic.do("raise", name="sam", epsilon=5, why="why not")


def test_a_new_role_takes_scopes_away_from_old_tokens(clinic: Clinic) -> None:
    caller_token = clinic.do("login", None, link=clinic.open("alice"))["token"]
    assert "ask" in clinic.caller(caller_token).scopes
    clinic.do("role", name="alice", role="viewer")
    caller = clinic.caller(caller_token)
    assert (caller.role, caller.scopes) == ("viewer", {"replay", "explain", "manage"})


def test_a_new_analyst_by_role_needs_a_limit(clinic: Clinic) -> None:
    clinic.open("sam", "steward")
    with refuses(InvalidArgument, "gateway-account-limit"):
        clinic.do("role", name="sam", role="analyst")
    clinic.do("role", name="sam", role="analyst", epsilon=1)
    assert clinic.office.ledger.analysts == ("sam",)


def test_everything_that_changes_an_account_is_in_the_audit(clinic: Clinic) -> None:
    clinic.login("alice")
    clinic.do("raise", name="alice", epsilon=5, why="a second study")
    clinic.do("suspend", name="alice")
    clinic.do("resume", name="alice")
    clinic.do("role", name="alice", role="viewer")
    clinic.do("suspend")
    clinic.do("resume")
    said = [(line.who, line.what) for line in audit.lines(clinic.store)]
    owner = COMMAND_LINE.account
    assert said == [
        (owner, "account opened"), ("alice", "login"), (owner, "limit raised"), (owner, "account suspended"),
        (owner, "account resumed"), (owner, "role changed"), (owner, "all suspended"), (owner, "all resumed"),
    ]  # fmt: skip
