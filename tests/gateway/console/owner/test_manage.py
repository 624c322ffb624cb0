"""The pages where people manage a gateway, by role: what they show, what they change, and what nobody else can."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import discreet as dp
from discreet.gateway.books.tokens import COMMAND_LINE
from discreet.gateway.vault import inspection

from ....refusing import refuses
from ..an_office import PEOPLE, URL, Office, Person, office

PAGES = {
    "/accounts": ("owner", "steward", "auditor"),
    "/accounts/bob": ("owner", "steward", "auditor"),
    "/tokens": ("owner", "steward", "auditor", "analyst", "viewer"),
    "/requests": tuple(set(PEOPLE.values())),
    "/policy": tuple(set(PEOPLE.values())),
    "/policy/text": tuple(set(PEOPLE.values())),
    "/record": ("owner", "auditor"),
    "/audit": ("owner", "auditor"),
    "/health": ("owner", "steward", "auditor"),
}
HOSTILE = "<script>alert(1)</script>'\"&"


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    limits = "answer_after = 0\n[gateway.limits]\napprove_above = 0.5"
    with office(tmp_path_factory.mktemp("console"), limits) as running:
        yield running


def new_account(desk: Office, name: str, role: str = "analyst", epsilon: str = "2") -> str:
    """Open an account over its form, and return the link on the page."""
    reply = desk.person("olga").post("/accounts", name=name, role=role, epsilon=epsilon)
    assert reply.status_code == 200, reply.text
    return shown_secret(reply.text)


def shown_secret(text: str) -> str:
    found = re.search(r'<textarea id="secret"[^>]*>([^<]+)</textarea>', text)
    assert found
    return html.unescape(found[1])


def file_request(desk: Office, sql: str = "SELECT COUNT(*) AS n FROM visits", name: str = "alice") -> int:
    """A question that waits for a second person."""
    reply = desk.house.ask(desk.token(name), sql, epsilon=0.9)
    assert reply.header["code"] == "gateway-approval", reply.header
    return max(one["number"] for one in desk.house.value(desk.token("olga"), "requests")["requests"])


# --- what is shown ------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_for_its_roles(desk: Office, path: str) -> None:
    for name, role in PEOPLE.items():
        reply = desk.person(name).get(path)
        assert (reply.status_code == 200) == (role in PAGES[path]), (path, role, reply.status_code)
        assert reply.status_code in (200, 403)
        assert len(reply.content) < 60_000
    assert Person(desk.desk).get(path).headers["location"].startswith("/login")


@pytest.mark.some_quick(4)
@pytest.mark.parametrize(
    ("path", "button", "roles"),
    [
        ("/accounts", "Open the account", ("owner",)),
        ("/accounts", "Stop all charged questions", ("owner", "steward")),
        ("/accounts/bob", "Suspend this account", ("owner", "steward")),
        ("/accounts/bob", "Raise the limit", ("owner",)),
        ("/accounts/bob", "Make a login link", ("owner",)),
        ("/policy", "Propose a change", ("owner", "steward", "analyst", "service")),
        ("/record", "Verify the records", ("owner", "auditor")),
    ],
)
def test_a_button_is_shown_to_those_who_may_use_it(
    desk: Office, path: str, button: str, roles: tuple[str, ...]
) -> None:
    for name, role in PEOPLE.items():
        assert (button in desk.person(name).get(path).text) == (role in roles), role


FORMS = {
    "/accounts": {"name": "eve", "role": "analyst", "epsilon": "1"},
    "/stop": {},
    "/resume": {},
    "/accounts/bob/suspend": {},
    "/accounts/bob/resume": {},
    "/accounts/bob/raise": {"epsilon": "50", "why": "x"},
    "/accounts/bob/renew": {"epsilon": "50", "why": "x"},
    "/accounts/bob/role": {"role": "viewer"},
    "/accounts/bob/link": {},
    "/accounts/bob/token": {"scope": "ask"},
    "/accounts/bob/revoke": {},
    "/requests/1": {"decision": "approve"},
    "/policy/proposals/1": {"decision": "approve"},
    "/record/verify": {},
}
MAY = {"/stop": ("steward",), "/accounts/bob/suspend": ("steward",), "/record/verify": ("auditor",)}
MAY |= {"/requests/1": ("steward",), "/policy/proposals/1": ("steward",)}


@pytest.mark.slow
def test_the_vault_refuses_what_a_role_may_not_do(desk: Office) -> None:
    """Whatever the page shows: the form is sent with the secret of the session."""
    before = state(desk)
    for name in ("stefan", "aude", "alice"):
        for path, fields in FORMS.items():
            if PEOPLE[name] not in MAY.get(path, ()):
                reply = desk.person(name).post(path, **fields)
                assert reply.status_code in (403, 404), (name, path, reply.status_code)
    assert state(desk) == before


def state(desk: Office) -> object:
    """Everything that forms change: accounts, tokens, limits, requests and proposals."""
    known = desk.value("otto", "accounts")
    tokens = desk.value("otto", "tokens")["tokens"]
    return known, tokens, desk.value("otto", "requests"), desk.value("otto", "policy")["proposals"]


def test_a_form_of_another_site_changes_nothing(desk: Office) -> None:
    olga, before = desk.person("olga"), state(desk)
    foreign = desk.person("alice").secret
    for path in (*FORMS, "/tokens", "/policy/propose"):
        fields = {**FORMS.get(path, {}), "text": "{}"}
        assert olga.post(path, form="", **fields).status_code == 403
        assert olga.post(path, form=foreign, **fields).status_code == 403
        assert olga.post(path, headers={"Origin": "https://elsewhere.example"}, **fields).status_code == 403
        assert olga.get(path).status_code in (200, 404, 405)  # and a link does nothing
    assert state(desk) == before


# --- accounts and tokens ------------------------------------------------------------------------------------


def test_an_account_is_opened_and_its_link_works_once(desk: Office) -> None:
    link = new_account(desk, "a.lee@clinic.org")
    assert link.startswith(URL)
    lee = Person(desk.desk, link)
    assert "a.lee@clinic.org" in lee.get("/me").text
    assert Person(desk.desk).post("/login", link=link).status_code == 401
    assert link.partition("#")[2] not in desk.person("olga").get("/accounts/a.lee@clinic.org").text
    assert (
        desk.person("olga").post("/accounts", name="A.Lee@clinic.org", role="analyst", epsilon="1").status_code == 400
    )


@pytest.mark.parametrize("wrong", [{"name": HOSTILE}, {"epsilon": "much"}, {"epsilon": ""}, {"role": HOSTILE}])
def test_a_wrong_account_is_refused_on_its_page(desk: Office, wrong: dict[str, str]) -> None:
    reply = desk.person("olga").post("/accounts", **{"name": "bad", "role": "analyst", "epsilon": "1", **wrong})
    assert reply.status_code == 400
    assert 'role="alert"' in reply.text
    assert "<script>alert" not in reply.text


def test_an_account_is_changed_with_reasons(desk: Office) -> None:
    new_account(desk, "bea")
    olga, place = desk.person("olga"), "/accounts/bea"
    assert olga.post(f"{place}/raise", epsilon="4", why="").status_code == 400
    assert olga.post(f"{place}/raise", epsilon="4", why=HOSTILE).headers["location"] == f"{place}?done=raised"
    assert "ε = 4" in olga.get(place, done="raised").text
    assert olga.post(f"{place}/renew", why="a new year").headers["location"] == f"{place}?done=renewed"
    assert olga.post(f"{place}/role", role="viewer").headers["location"] == f"{place}?done=role"
    assert olga.post(f"{place}/suspend").headers["location"] == f"{place}?done=suspended"
    assert "suspended" in olga.get(place).text
    assert olga.post(f"{place}/resume").headers["location"] == f"{place}?done=resumed"
    trail = olga.get("/audit", what="limit raised").text
    assert html.escape(HOSTILE, quote=False).split("'")[0] in trail
    assert "<script>alert" not in trail
    assert "Free text" not in olga.get(place, done="Free text").text


def test_all_charged_questions_stop_and_go_on(desk: Office) -> None:
    assert desk.person("stefan").post("/stop").headers["location"] == "/accounts?done=stopped"
    assert desk.house.ask(desk.token("alice")).header["code"] == "gateway-stopped"
    assert "Only the owner resumes them" in desk.person("stefan").get("/accounts").text
    assert desk.person("olga").post("/resume").headers["location"] == "/accounts?done=going"
    assert desk.house.ask(desk.token("alice")).header["ok"]


def test_tokens_are_shown_once_and_end_at_once(desk: Office) -> None:
    new_account(desk, "cleo")
    olga = desk.person("olga")
    fields = {"token_name": HOSTILE, "scope": ["ask", "explain"], "expires": "2d", "token_epsilon": "0.5"}
    token = shown_secret(olga.post("/accounts/cleo/token", **fields).text)
    page = olga.get("/accounts/cleo").text
    assert token not in page
    assert "<script>alert" not in page
    assert desk.house.value(token, "me")["scopes"] == ["ask", "explain"]
    identity = token.split("_")[1]
    other = shown_secret(olga.post(f"/tokens/{identity}/rotate", account="cleo").text)
    assert desk.house.call("me", token).header["code"] == "gateway-login"
    reply = olga.post(f"/tokens/{identity}/revoke", account="cleo")
    assert reply.headers["location"] == "/accounts/cleo?done=revoked"
    assert desk.house.call("me", other).header["code"] == "gateway-login"


def test_ones_own_tokens(desk: Office) -> None:
    alice, vera = desk.person("alice"), desk.person("vera")
    token = shown_secret(alice.post("/tokens", token_name="notebook", scope="ask", expires="1d").text)
    identity = token.split("_")[1]
    assert "notebook" in alice.get("/tokens").text
    assert vera.post(f"/tokens/{identity}/revoke").status_code == 404
    assert vera.post(f"/tokens/{identity}/rotate").status_code == 404
    assert desk.house.call("me", token).header["ok"]
    assert alice.post("/tokens", scope="metrics").status_code == 403
    assert alice.post("/tokens", expires="soon").status_code == 400
    elsewhere = alice.post(f"/tokens/{identity}/revoke", account="//elsewhere.example").headers["location"]
    assert elsewhere.startswith("/accounts/%2F%2Felsewhere")


def test_a_found_token_is_revoked_by_anybody(desk: Office) -> None:
    token, anybody = desk.house.token("bob"), Person(desk.desk)
    assert anybody.get("/leaked").status_code == 200
    replies = [anybody.post("/leaked", token=one) for one in ("nonsense", token, token)]
    assert len({(one.status_code, one.headers["location"]) for one in replies}) == 1
    assert desk.house.call("me", token).header["code"] == "gateway-login"
    wrong = {"Origin": "https://elsewhere.example"}
    assert anybody.post("/leaked", token=token, headers=wrong).status_code == 403


# --- requests and the policy --------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_steward_decides_what_an_analyst_filed(desk: Office) -> None:
    sql = f"SELECT COUNT(*) AS n FROM visits WHERE city <> '{HOSTILE.replace(chr(39), '')}'"
    number = file_request(desk, sql)
    stefan, alice = desk.person("stefan"), desk.person("alice")
    page = stefan.get(f"/requests/{number}").text
    assert "<script>alert" not in page
    assert "ε = 0.9" in page
    assert "The plan is free" in page
    assert "Your decision" not in alice.get(f"/requests/{number}").text
    assert alice.post(f"/requests/{number}", decision="approve").status_code == 403
    assert stefan.post(f"/requests/{number}", decision="perhaps").status_code == 400
    assert stefan.post(f"/requests/{number}", decision="approve", why="fine").headers["location"].endswith("approved")
    assert stefan.post(f"/requests/{number}", decision="approve").status_code == 400
    assert desk.house.ask(desk.token("alice"), sql, epsilon=0.9).header["ok"]
    assert "approved" in stefan.get("/requests", done="approved").text


def test_requests_of_others_are_not_shown(desk: Office) -> None:
    number = file_request(desk, "SELECT COUNT(*) AS concealed FROM visits")
    for name in ("vera", "robot", "aude"):
        assert "concealed" not in desk.person(name).get("/requests").text
        assert desk.person(name).get(f"/requests/{number}").status_code == 404
    assert desk.person("olga").get("/requests/999999").status_code == 404
    assert desk.person("olga").get("/requests/x").status_code == 404


def test_a_proposal_and_its_difference(desk: Office) -> None:
    alice, stefan = desk.person("alice"), desk.person("stefan")
    text = html.unescape(re.search(r"<textarea[^>]*>(.*)</textarea>", alice.get("/policy/propose").text, re.S)[1])
    assert '"Haifa"' in text
    assert alice.post("/policy/propose", text=text, why="").status_code == 400  # it is the same
    changed = text.replace('"Koper"', '"Koper", "<b>Izola</b>"')
    place = alice.post("/policy/propose", text=changed, why=HOSTILE).headers["location"]
    page = stefan.get(place.partition("?")[0]).text
    assert "<script>alert" not in page
    assert "&lt;b&gt;Izola" in page
    assert re.search(r"<ins>.*Izola", page)
    assert "Your decision" not in alice.get(place).text
    assert alice.post(place.partition("?")[0], decision="approve").status_code == 403
    assert desk.person("vera").get(place.partition("?")[0]).status_code == 404
    assert (
        stefan.post(place.partition("?")[0], decision="refuse", why="no").headers["location"] == "/policy?done=refused"
    )
    assert "Decided before" in stefan.get("/policy").text
    assert desk.person("vera").post("/policy/propose", text=changed).status_code == 403


def test_open_decisions_are_what_is_not_declared(desk: Office) -> None:
    from discreet.gateway.console.pages.policy import undecided

    described = desk.house.value(desk.token("alice"), "tables")
    assert list(undecided(described)) == []
    [table] = [one for one in described["tables"] if one["name"] == "visits"]
    table["rows_per_person"] = None
    for column in table["columns"]:
        column["between"] = column["choices"] = None
    found = {(one["where"], one["what"]) for one in undecided(described)}
    assert found == {("visits", "rows_per_person"), ("visits.city", "choices"), ("visits.cost", "between")}


# --- the records --------------------------------------------------------------------------------------------


def test_the_records_are_verified(desk: Office) -> None:
    page = desk.person("aude").post("/record/verify").text
    found = re.search(r"([\d,]+) entries of the ledger, ([\d,]+) lines of the audit", page)
    assert found
    assert int(found[1]) == desk.house.ledger.count + 1
    with desk.house.store.write() as execute:
        execute("UPDATE audit SET who = 'nobody' WHERE number = 2")
    try:
        page = desk.person("aude").post("/record/verify").text
        assert "Something is damaged" in page
        assert "gateway-audit-changed" in page
    finally:
        with desk.house.store.write() as execute:
            execute("UPDATE audit SET who = '(command line)' WHERE number = 2")
    assert "Everything is whole" in desk.person("olga").post("/record/verify").text


def test_a_record_that_is_too_long_is_refused(desk: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.gateway.vault.inspection.MOST_ENTRIES", 1)
    reply = desk.person("aude").post("/record/verify")
    assert "gateway-verify-size" in reply.text


def test_records_are_verified_one_at_a_time() -> None:
    busy: Any = SimpleNamespace(is_verifying=True)
    with refuses(dp.errors.ServiceUnavailable, "gateway-busy"):
        asyncio.run(inspection.verify(busy, COMMAND_LINE, {}))


def test_the_trail_is_searched(desk: Office) -> None:
    olga = desk.person("olga")
    desk.person("alice")  # whose login is in the trail
    assert olga.get("/audit", who="nobody-at-all").text.count("<tr>") == 2
    found = desk.house.value(desk.token("aude"), "trail", who="ALICE", what="log")
    assert found["lines"]
    assert {(one["who"], one["what"]) for one in found["lines"]} <= {("alice", "login")}
    first = desk.house.value(desk.token("aude"), "trail", before=3)
    assert [one["number"] for one in first["lines"]] == [2, 1]
    assert first["older"] is None
    assert olga.get("/audit", before=3).status_code == 200
    assert olga.get("/audit", before="x", who=HOSTILE).status_code == 200
    assert "<script>alert" not in olga.get("/audit", before="x", who=HOSTILE).text
    for wrong in ({"before": "x"}, {"who": 3}, {"before": -1}):
        reply = desk.house.call("trail", desk.token("olga"), **wrong)
        assert reply.header["code"] == "gateway-argument"


def test_a_search_of_the_trail_is_short(desk: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.gateway.vault.inspection.SEARCHED", 2)
    token = desk.token("olga")
    found = desk.house.value(token, "trail", who="nobody-at-all", before=9)
    assert (found["lines"], found["older"]) == ([], 7)


def test_health_says_no_place_and_no_value(desk: Office) -> None:
    found = desk.house.value(desk.token("stefan"), "status")
    assert found["engine"] == {"kind": "duckdb", "plans": True}
    assert found["ledger"]["kind"] == "file"
    assert found["ledger"]["answers"]
    assert found["settings"]["approve_above"] == 0.5
    text = desk.person("stefan").get("/health").text
    for hidden in (str(desk.house.folder), "clinic.ledger", "visits"):
        assert hidden not in text
        assert hidden not in str(found)
    assert desk.house.call("status", desk.token("alice")).header["code"] == "gateway-role"
    assert desk.house.call("verify", desk.token("stefan")).header["code"] == "gateway-role"
    assert desk.house.call("status", desk.house.token("olga", "owner", ["ask"])).header["code"] == "gateway-role"


def test_the_record_shows_questions_and_no_answer(desk: Office) -> None:
    token = desk.token("alice")
    answered = desk.house.value(token, "ask", sql="SELECT COUNT(*) AS seen FROM visits", epsilon=0.2)
    page = desk.person("aude").get("/record").text
    assert "seen" in page
    assert str(answered["rows"][0][0]) not in re.sub(r"<[^>]*>", " ", page).split()
    assert desk.person("aude").get("/record", last="1").status_code == 200
    assert desk.person("aude").get("/record", last="x").status_code == 200
