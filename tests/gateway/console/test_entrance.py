"""The way in and what stands in it: logins of a provider, errors that people see, and files that stay small."""

from __future__ import annotations

import asyncio
import json
from urllib.parse import urlencode

import httpx
import pytest

from discreet.gateway.console.cookies import form_secret, set_session
from discreet.gateway.console.pages import histories
from discreet.gateway.console.site import Console
from discreet.gateway.console.visit import Fields
from discreet.gateway.desk.http import Request, make_app
from discreet.gateway.desk.rates import Rate, Rates
from discreet.gateway.frames import Frame
from discreet.gateway.settings import Settings


class NoVault:
    """A vault that knows nobody."""

    async def call(self, verb, token=None, arguments=None, *, address=""):
        return Frame({"ok": False, "kind": "NotAllowed", "code": "gateway-login", "message": "Log in."})


def client(**given) -> httpx.AsyncClient:
    app = make_app(NoVault(), console=Console(Settings()), **given)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://clinic.test")


def get(path: str, accept: str, times: int = 1, **given) -> httpx.Response:
    async def load():
        async with client(**given) as browser:
            for _ in range(times):
                reply = await browser.get(path, headers={"accept": accept})
            return reply

    return asyncio.run(load())


def test_a_login_of_a_provider_is_no_redirect():
    """Browsers send a strict cookie with no request that another site began, nor with where it is redirected to."""
    scope = {"method": "GET", "path": "/v1/oidc/return", "headers": [(b"host", b"clinic.test")], "type": "http"}
    body = json.dumps({"token": "dsc_1_2", "account": "alice", "expires": "2999-01-01T00:00:00+00:00"})
    reply = Console(Settings()).enter(Request(scope, None), Frame({"ok": True}, body.encode()))
    headers = dict(reply.headers)
    assert reply.status == 200
    assert headers[b"refresh"] == b"0; url=/"
    assert b"discreet=dsc_1_2" in headers[b"set-cookie"]
    assert b"SameSite=Strict" in headers[b"set-cookie"]
    assert b'href="/"' in reply.body
    assert b"dsc_1_2" not in reply.body


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_over_tls_a_session_is_never_sent_without(scheme):
    scope = {"method": "GET", "path": "/", "headers": [(b"host", b"clinic.test")], "type": "http", "scheme": scheme}
    name, value = set_session(Request(scope, None), "dsc_1_2", 60)
    assert name == b"set-cookie"
    assert value.startswith(b"__Host-discreet=" if scheme == "https" else b"discreet=")
    assert value.endswith(b"; Secure") == (scheme == "https")


class OneAccount(NoVault):
    """A vault that knows alice, and fails at everything else."""

    async def call(self, verb, token=None, arguments=None, *, address=""):
        if verb == "me":
            said = {"account": "alice", "role": "owner", "database": "clinic", "scopes": [], "suspended": False}
            return Frame({"ok": True}, json.dumps(said).encode())
        raise RuntimeError("zq7canary")


def test_a_page_that_fails_and_a_form_that_is_none():
    """Another site can send a text, but no form of ours; and what went wrong inside is shown to nobody."""
    token = "dsc_1_2"
    form = urlencode({"form": form_secret(token), "name": "bob", "role": "analyst"})
    app = make_app(OneAccount(), console=Console(Settings()))

    async def load():
        given = {"base_url": "http://clinic.test", "headers": {"cookie": f"discreet={token}"}}
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), **given) as browser:
            kinds = ("application/x-www-form-urlencoded", "text/plain", "application/json")
            sent = [await browser.post("/accounts", content=form, headers={"content-type": kind}) for kind in kinds]
            return await browser.get("/accounts"), *sent

    shown, sent, *others = asyncio.run(load())
    for reply in (shown, sent):
        assert reply.status_code == 500
        assert "Go back, and try again" in reply.text
        assert "zq7canary" not in reply.text
        assert "Traceback" not in reply.text
    for reply in others:
        assert reply.status_code == 400
        assert "gateway-form" in reply.text


@pytest.mark.parametrize("path", ["/nothing", "/ask?sql=%ff", "/v1/nothing"])
def test_people_get_pages_and_programs_get_problems(path):
    shown = get(path, "text/html,application/xhtml+xml,*/*;q=0.8")
    assert shown.headers["content-type"] == "text/html; charset=utf-8"
    assert "frame-ancestors 'none'" in shown.headers["content-security-policy"]
    plain = get(path, "application/json")
    assert plain.headers["content-type"] == "application/problem+json"
    assert plain.status_code == shown.status_code
    assert plain.json()["code"] in shown.text


def test_who_is_too_fast_sees_a_page():
    slow = Rates(address=Rate(0.001, 2))
    shown = get("/login", "text/html", 3, rates=slow)
    assert (shown.status_code, "gateway-too-fast" in shown.text) == (429, True)
    assert int(shown.headers["retry-after"]) > 0


class Reader:
    """What the history asks of a visit."""

    role, query = "analyst", Fields(b"")

    def __init__(self, count: int, sql: str) -> None:
        self.count, self.sql, self.asked = count, sql, 0

    async def ask_vault(self, verb, *, page, most, last, **_):
        self.asked += 1
        numbers = range(self.count - (page - 1) * most, max(0, self.count - page * most), -1)
        one = {"at": "2026-01-01T00:00:00+00:00", "sql": self.sql, "options": {}, "cost": 0.1, "version": "v1"}
        found = [{**one, "number": number, "receipt": f"{number}-a"} for number in numbers]
        return {"questions": found, "pages": -(-self.count // most)}


@pytest.mark.slow
@pytest.mark.parametrize(("count", "sql", "asked", "cut"), [(250, "x", 3, False), (5000, "x" * 90_000, 2, True)])
def test_the_file_of_a_history_has_an_end(monkeypatch, count, sql, asked, cut):
    reader = Reader(count, sql)
    reply = asyncio.run(histories.history_file(reader))
    assert reader.asked == asked
    assert (histories.LEFT_OUT.encode() in reply.body) == cut
    assert len(reply.body) < 2 * histories._LARGEST
    assert (b"content-disposition", b'attachment; filename="history.csv"') in reply.headers


def test_tabs_of_a_session_that_ended_lock_nobody_out():
    """A browser that restores its tabs sends a cookie that no longer counts, many times."""

    async def visit():
        async with client() as browser:
            browser.cookies.set("discreet", "dsc_1_2")
            tabs = [(await browser.get("/ask")).status_code for _ in range(20)]
            browser.cookies.clear()
            tried = [(await browser.post("/login", data={"link": "wrong"})).status_code for _ in range(8)]
            return tabs, tried

    tabs, tried = asyncio.run(visit())
    assert set(tabs) == {303}
    assert tried[:5] == [401] * 5
    assert tried[-1] == 429  # guessing a link is slowed down
