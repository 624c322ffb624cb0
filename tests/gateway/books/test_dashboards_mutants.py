"""Bugs planted in dashboards and in what is said about budgets: the check that the sound code passes catches each."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

import discreet as dp
from discreet.errors import DiscreetError
from discreet.gateway.books import dashboard_store, dashboards, histories, offices, questions, spending
from discreet.gateway.books.tokens import ROLES, Caller
from discreet.gateway.vault import tiles
from discreet.ledger import views

from ..clinics import Clinic
from ..programs.planting import Bug, plant

MODULES = (dashboard_store, dashboards, histories, questions, spending, tiles, offices, views)
ANSWER = json.dumps({"rows": [[5]], "remaining": {"epsilon": 2.5}, "receipt": "1-ab12"}).encode()


# --- the checks -------------------------------------------------------------------------------------------


def person(name: str, role: str = "analyst", **more: Any) -> Caller:
    return Caller(account=name, role=role, scopes=frozenset(ROLES[role]), **more)


ADA, BOB, VERA, STEFAN = person("ada"), person("bob"), person("vera", "viewer"), person("stefan", "steward")


def refuses(clinic: Clinic, code: str, verb: str, caller: Caller, **given: Any) -> None:
    found = ""
    try:
        clinic.do(verb, caller, **given)
    except DiscreetError as error:
        found = error.code
    assert found == code, verb


def made(clinic: Clinic) -> int:
    return int(clinic.do("make_dashboard", ADA, title="t")["number"])


def with_tile(clinic: Clinic) -> tuple[int, int]:
    number, (answer, receipt) = made(clinic), dashboard_store.released(ANSWER)
    with clinic.store.write() as execute:
        board = dashboard_store.own_dashboard(execute, ADA, number)
        given: dict[str, Any] = {"title": "t", "sql": "SELECT 1", "options": {}, "answer": answer, "receipt": receipt}
        return number, dashboard_store.add_tile(execute, board, **given, version="v1", now=clinic.time)


def published(clinic: Clinic) -> int:
    number = made(clinic)
    clinic.do("publish_dashboard", ADA, number=number)
    clinic.do("publish_dashboard", STEFAN, number=number)
    return number


def a_draft_is_seen_by_its_author_alone(clinic: Clinic) -> None:
    number = made(clinic)
    for other in (BOB, VERA, STEFAN, person("olga", "owner")):
        refuses(clinic, "gateway-not-found", "dashboard", other, number=number)
        assert clinic.do("dashboards", other)["dashboards"] == []


def what_waits_is_seen_by_who_decides(clinic: Clinic) -> None:
    number = made(clinic)
    clinic.do("publish_dashboard", ADA, number=number)
    refuses(clinic, "gateway-not-found", "dashboard", BOB, number=number)
    assert clinic.do("dashboard", STEFAN, number=number)["may_publish"]


def a_second_person_publishes(clinic: Clinic) -> None:
    assert clinic.do("publish_dashboard", ADA, number=made(clinic))["state"] == "waiting"


def what_is_new_is_looked_at_again(clinic: Clinic) -> None:
    number = published(clinic)
    clinic.do("rename_dashboard", ADA, number=number, title="another")
    refuses(clinic, "gateway-not-found", "dashboard", VERA, number=number)


def only_authors_change_a_dashboard(clinic: Clinic) -> None:
    number = published(clinic)
    for other in (BOB, person("olga", "owner")):
        refuses(clinic, "gateway-role", "rename_dashboard", other, number=number, title="mine")
        refuses(clinic, "gateway-role", "remove_dashboard", other, number=number)


def what_remains_is_on_no_tile(clinic: Clinic) -> None:
    number, _ = with_tile(clinic)
    assert "remaining" not in clinic.do("dashboard", ADA, number=number)["tiles"][0]["answer"]


def a_changed_answer_is_not_shown(clinic: Clinic) -> None:
    number, tile = with_tile(clinic)
    with clinic.store.write() as execute:
        execute("UPDATE tiles SET answer = ? WHERE number = ?", b'{"rows": [[7]]}', tile)
    assert clinic.do("dashboard", ADA, number=number)["tiles"][0]["answer"] is None


def a_rule_ends_at_its_limit(clinic: Clinic) -> None:
    number, _ = with_tile(clinic)
    clinic.do("set_rule", ADA, number=number, rule="rule", epsilon=0.15)
    fits = []
    for version in ("v2", "v2", "v3"):
        with clinic.store.write() as execute:
            board = dashboard_store.own_dashboard(execute, ADA, number)
            [tile] = dashboard_store.tiles_of(execute, number)
            fits.append(dashboard_store.set_aside(execute, board, tile, version, Fraction(1, 10)))
    assert fits == [True, True, False]
    assert clinic.do("dashboard", ADA, number=number)["spent"] == 0.1


def a_token_with_a_limit_sets_no_rule(clinic: Clinic) -> None:
    number = made(clinic)
    small = person("ada", epsilon=Fraction(1, 10))
    refuses(clinic, "gateway-role", "set_rule", small, number=number, rule="rule", epsilon=3)


def asked(clinic: Clinic, name: str, epsilon: float) -> str:
    before = clinic.office.ledger.count
    entry = clinic.office.ledger.for_analyst(name).charge(dp.Pure(epsilon=epsilon), asked="SELECT 1")
    noted = (clinic.store, name, entry.receipt, "SELECT 1", {}, clinic.time)
    questions.note_question(*noted, version="v1", since=before)
    return entry.receipt


def nothing_of_a_slot_that_runs_is_seen(clinic: Clinic) -> None:
    clinic.open("ada")
    asked(clinic, "ada", 0.5)
    before, count = clinic.do("spending", ADA), clinic.office.ledger.count
    clinic.office = replace(clinic.office, as_of=lambda: count)
    asked(clinic, "ada", 0.25)
    assert clinic.do("spending", ADA) == before


def histories_are_one_s_own(clinic: Clinic) -> None:
    for name in ("ada", "bob"):
        clinic.open(name)
    for caller in (BOB, VERA, STEFAN):
        refuses(clinic, "gateway-role", "history", caller, account="ada")
        refuses(clinic, "gateway-role", "spending", caller, account="ada")


def a_part_is_paid_once(clinic: Clinic) -> None:
    clinic.open("ada")
    first, before = asked(clinic, "ada", 0.5), clinic.office.ledger.count
    second = clinic.office.ledger.for_analyst("ada").charge(dp.Pure(epsilon=0.25), asked="more").receipt
    noted = (clinic.store, "ada", f"{first}, {second}", "both", {}, clinic.time)
    questions.note_question(*noted, version="v1", since=before)
    assert [one["cost"] for one in clinic.do("history", ADA)["questions"]] == [0.5, 0.25]


def stewards_see_nothing_of_a_slot(clinic: Clinic) -> None:
    clinic.open("ada")
    asked(clinic, "ada", 0.5)
    before, count = clinic.do("accounts", STEFAN), clinic.office.ledger.count
    clinic.office = replace(clinic.office, as_of=lambda: count)
    asked(clinic, "ada", 0.25)
    assert clinic.do("accounts", STEFAN) == before


def auditors_see_nothing_of_a_slot(clinic: Clinic) -> None:
    clinic.open("ada")
    before, count = clinic.do("record", person("aude", "auditor")), clinic.office.ledger.count
    clinic.office = replace(clinic.office, as_of=lambda: count)
    asked(clinic, "ada", 0.25)
    assert clinic.do("record", person("aude", "auditor")) == before


def only_what_was_seen_is_published(clinic: Clinic) -> None:
    number = made(clinic)
    clinic.do("publish_dashboard", ADA, number=number)
    seen = clinic.do("dashboard", STEFAN, number=number)["content"]
    clinic.do("rename_dashboard", ADA, number=number, title="another")
    refuses(clinic, "gateway-dashboard", "publish_dashboard", STEFAN, number=number, content=seen)


def a_weak_token_removes_nothing(clinic: Clinic) -> None:
    weak = replace(ADA, scopes=frozenset({"explain"}))
    refuses(clinic, "gateway-role", "remove_dashboard", weak, number=made(clinic))


def who_has_no_budget_is_told_none(clinic: Clinic) -> None:
    whole = clinic.office.ledger
    view = views.Replays(whole._store, whole._terms, whole._analyst).read_by((), spends=False)
    assert (view.after(dp.Pure(epsilon=0.1)), view.remaining) == (None, None)


MUTANTS = {
    "hidden_dashboards_shown": Bug(
        dashboard_store, "may_see", "dashboard.state == PUBLISHED", "dashboard.state",
        a_draft_is_seen_by_its_author_alone,
    ),
    "waiting_dashboards_shown": Bug(
        dashboard_store, "may_see", "dashboard.state == WAITING and decides(caller)", "dashboard.state == WAITING",
        what_waits_is_seen_by_who_decides,
    ),
    "authors_publish_alone": Bug(
        dashboard_store, "may_publish", 'settings.share == "everyone"', "True", a_second_person_publishes
    ),
    "changed_after_it_was_published": Bug(
        dashboard_store, "shown_anew", "dashboard.state == PUBLISHED", "False", what_is_new_is_looked_at_again
    ),
    "anybody_changes_a_dashboard": Bug(
        dashboard_store, "own_dashboard", "found.author != caller.account", "False", only_authors_change_a_dashboard
    ),
    "tile_tells_what_remains": Bug(
        dashboard_store, "released", "content.pop(name, None)", "pass", what_remains_is_on_no_tile
    ),
    "tile_not_checked": Bug(
        dashboard_store, "Tile", "== self.digest", "is not None", a_changed_answer_is_not_shown
    ),
    "rule_without_a_limit": Bug(
        dashboard_store, "set_aside", "spent + units > round_up(dashboard.most)", "False", a_rule_ends_at_its_limit
    ),
    "rule_beyond_a_token": Bug(
        dashboards, "set_rule", "caller.epsilon is not None", "False", a_token_with_a_limit_sets_no_rule
    ),
    "slots_seen_in_spending": Bug(
        spending, "spending", "office.ledger.count if last is None else last", "office.ledger.count",
        nothing_of_a_slot_that_runs_is_seen,
    ),
    "histories_of_others": Bug(histories, "whose", "check_looks(caller)", "pass", histories_are_one_s_own),
    "parts_paid_twice": Bug(questions, "entries_of", "number > question.since", "True", a_part_is_paid_once),
    "slots_seen_in_accounts": Bug(
        offices, "_left", "view.remaining if as_of is None else view.remaining_at(as_of)", "view.remaining",
        stewards_see_nothing_of_a_slot,
    ),
    "slots_seen_in_the_record": Bug(
        offices, "record", "office.ledger.count if as_of is None else as_of", "office.ledger.count",
        auditors_see_nothing_of_a_slot,
    ),
    "published_unseen": Bug(
        dashboards, "publish_dashboard", "(None, kept.content_of(execute, found))", "(arguments.get('content'),)",
        only_what_was_seen_is_published,
    ),
    "weak_tokens_remove": Bug(
        dashboards, "remove_dashboard", "check_reads(caller)", "pass", a_weak_token_removes_nothing
    ),
    "budget_of_the_data_set_told": Bug(
        views, "Replays", "if self.spends:\n", "if True:\n", who_has_no_budget_is_told_none
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_killed(name: str, clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, MUTANTS[name], MODULES)
    with pytest.raises(AssertionError):
        MUTANTS[name].check(clinic)


CHECKS = {bug.check.__name__: bug.check for bug in MUTANTS.values()}


@pytest.mark.parametrize("check", CHECKS)
def test_sound_code_passes(check: str, anywhere: Clinic) -> None:
    CHECKS[check](anywhere)
