"""The desk passes on what it gets, and nothing else: verbs, arguments, errors, and the form of requests."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.openapi.models import OpenAPI
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.gateway.desk.http import LONGEST_BODY, Desk, make_app
from discreet.gateway.desk.rates import Rate, Rates
from discreet.gateway.desk.replies import FAILED
from discreet.gateway.desk.routes import METRICS, ROUTES, Route
from discreet.gateway.frames import BadFrame, Frame, packed

from .a_desk import TOKEN, Running, Verbs, desk, refused, said

PLACES = {"receipt": "7:ab", "number": "12", "name": "alice", "id": "k3"}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with desk(tmp_path_factory.mktemp("desk"), {}) as running:
        yield running


@pytest.fixture
def running(shared: Running) -> Running:
    shared.verbs.clear()
    shared.frames.clear()
    return shared


def last(running: Running) -> Frame:
    assert len(running.frames) == 1
    return running.frames[-1]


# --- what is passed on --------------------------------------------------------------------------------------


@pytest.mark.some_quick(21)
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.verb)
def test_every_route_is_its_verb(route: Route, running: Running) -> None:
    running.verbs[route.verb] = said(b'{"a": 1}')
    sent = {"json": {"why": "Because."}} if route.method == "POST" else {}
    reply = running.client.request(route.method, route.path.format(**PLACES), **sent)
    assert (reply.status_code, reply.content) == (200, b'{"a": 1}')
    assert reply.headers["content-type"] == "application/json"
    header = last(running).header
    assert (header["verb"], header["address"]) == (route.verb, "127.0.0.1")
    assert header["token"] == (TOKEN if route.token else None)
    named = {name: 12 if name == "number" else PLACES[name] for name in route.names}
    assert last(running).arguments == {**sent.get("json", {}), **named}


def test_the_query_string_holds_arguments(running: Running) -> None:
    running.client.get("/v1/history", params={"first": "3", "last": "20", "like": "a b"})
    assert last(running).arguments == {"first": 3, "last": 20, "like": "a b"}


@pytest.mark.parametrize("query", ["first=1&first=2", "first", "a=%ff", "a=" + 3000 * "b"])
def test_an_unclear_query_string_is_refused(query: str, running: Running) -> None:
    reply = running.client.get(f"/v1/history?{query}")
    assert (reply.status_code, reply.json()["code"], running.frames) == (400, "gateway-arguments", [])


def test_numbers_and_text_stay_what_they_are(running: Running) -> None:
    sent = {"sql": 'SELECT "ä\\u0000 \u2028"', "epsilon": 0.1, "delta": 1e-9, "bounds": {"rows_per_person": 3}}
    running.client.post("/v1/questions", json=sent)
    assert last(running).arguments == sent


@pytest.mark.parametrize("token", ["a b", "ä", 9000 * "a"])
def test_what_cannot_be_a_token_is_none(token: str, running: Running) -> None:
    running.client.get("/v1/me", headers={"Authorization": f"Bearer {token}".encode()})
    assert last(running).header["token"] is None


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("*/*", None),
        ("application/json", "json"),
        ("text/csv", "csv"),
        ("application/vnd.apache.arrow.stream", "arrow"),
        ("text/html, text/csv;q=0.5, application/json;q=0.2", "csv"),
        ("text/*;q=0.1, application/*", "json"),
    ],
)
def test_accept_chooses_the_form(accept: str, form: str | None, running: Running) -> None:
    running.client.post("/v1/questions", json={"sql": "x"}, headers={"Accept": accept})
    assert last(running).arguments.get("format") == form


def test_a_form_that_does_not_exist_is_refused(running: Running) -> None:
    for accept in ("text/html", "application/json;q=0", "text/csv;q=x"):
        reply = running.client.post("/v1/questions", json={"sql": "x"}, headers={"Accept": accept})
        assert (reply.status_code, reply.json()["code"]) == (406, "gateway-format")
    assert running.frames == []


def test_the_key_of_a_request(running: Running) -> None:
    running.client.post("/v1/questions", json={"sql": "x"}, headers={"Idempotency-Key": "k 1"})
    assert last(running).arguments == {"sql": "x", "key": "k 1"}


@pytest.mark.parametrize(("key", "own"), [("a" * 201, None), ("", None), ("ä", None), ("a", "b")])
def test_a_bad_key_is_refused(key: str, own: str | None, running: Running) -> None:
    sent = {"sql": "x"} | ({} if own is None else {"key": own})
    reply = running.client.post("/v1/questions", json=sent, headers={"Idempotency-Key": key.encode()})
    assert (reply.status_code, reply.json()["code"], running.frames) == (400, "gateway-key", [])


def test_what_is_in_the_path_is_not_in_the_body(running: Running) -> None:
    reply = running.client.post("/v1/requests/12", json={"number": 13, "decision": "approve"})
    assert (reply.status_code, reply.json()["code"], running.frames) == (400, "gateway-arguments", [])


def test_the_type_of_an_answer_is_that_of_the_vault(running: Running) -> None:
    running.verbs["ask"] = said(b"n\r\n3\r\n", "text/csv; charset=utf-8")
    reply = running.client.post("/v1/questions", json={"sql": "x"})
    assert (reply.headers["content-type"], reply.content) == ("text/csv; charset=utf-8", b"n\r\n3\r\n")
    assert "discreet-facts" not in reply.headers


def test_what_csv_has_no_place_for_is_in_a_header(running: Running) -> None:
    facts = json.dumps({"replayed": True, "notes": ["The ± covers\r\nnoise."]})
    header = {"ok": True, "type": "text/csv; charset=utf-8", "beside": facts}
    running.verbs["ask"] = Frame(header, b"n\r\n3\r\n")
    reply = running.client.post("/v1/questions", json={"sql": "x"})
    assert (reply.content, json.loads(reply.headers["discreet-facts"])) == (b"n\r\n3\r\n", json.loads(facts))


# --- what is not passed on ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"[1]",
        b"{",
        b'"text"',
        b'{"epsilon": NaN}',
        b'{"epsilon": 1e999}',
        b'{"sql": "\\ud800"}',
        b"\xff",
        b'{"a": ' + 50_000 * b"[" + 50_000 * b"]" + b"}",
        b'{"a": ' + 5000 * b"9" + b"}",
        b'{"a": ' + 33 * b"[" + 33 * b"]" + b"}",
    ],
    ids=range(10),
)
def test_a_body_that_is_no_json_object_is_refused(body: bytes, running: Running) -> None:
    reply = running.client.post("/v1/questions", content=body, headers={"Content-Type": "application/json"})
    assert (reply.status_code, reply.json()["code"], running.frames) == (400, "gateway-body-not-json", [])


def test_another_content_type_is_refused(running: Running) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        reply = running.client.post("/v1/questions", content=b'{"sql": "x"}', headers={"Content-Type": kind})
        assert (reply.status_code, reply.json()["code"]) == (400, "gateway-body-not-json")
    assert running.frames == []


def test_a_large_body_is_refused(running: Running) -> None:
    body, app = b'{"sql": "' + b"a" * LONGEST_BODY + b'"}', make_app(Failing())
    for headers in ([], [(b"content-length", str(LONGEST_BODY + 1).encode())]):
        sent = {"method": "POST", "headers": [(b"content-type", b"application/json"), *headers]}
        status, reply = in_process(app, "/v1/questions", b"" if headers else body, **sent)
        assert (status, json.loads(reply)["code"]) == (413, "gateway-body-too-large")
    with contextlib.suppress(httpx.WriteError, httpx.ReadError):  # it is refused while it is sent
        assert running.client.post("/v1/questions", content=iter([body])).status_code == 413
    assert running.frames == []
    assert running.client.get("/v1/me").status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/", 404, "gateway-unknown-path"),
        ("GET", "/v1/questions/", 404, "gateway-unknown-path"),
        ("GET", "/v1/questions/a/b", 404, "gateway-unknown-path"),
        ("GET", f"/v1/questions/{2001 * 'a'}", 404, "gateway-unknown-path"),
        ("GET", "/docs", 404, "gateway-unknown-path"),
        ("GET", "/metrics", 404, "gateway-unknown-path"),
        ("GET", "/v1/oidc/start", 404, "gateway-unknown-path"),
        ("POST", "/v1/accounts/alice/delete", 404, "gateway-unknown-path"),
        ("PUT", "/v1/questions", 405, "gateway-method"),
        ("DELETE", "/v1/questions/7:ab", 405, "gateway-method"),
        ("HEAD", "/v1/me", 405, None),
        ("POST", "/openapi.json", 405, "gateway-method"),
    ],
)
def test_other_paths_and_methods_are_refused(
    method: str, path: str, status: int, code: str | None, running: Running
) -> None:
    reply = running.client.request(method, path)
    assert reply.status_code == status
    assert code is None or reply.json()["code"] == code
    assert (status == 405) == ("allow" in reply.headers)
    assert running.frames == []


# --- errors -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "code", "status"),
    [
        ("QueryError", "sql-unknown-table", 400),
        ("InvalidArgument", "out-of-range", 400),
        ("NotAllowed", "gateway-login", 401),
        ("BudgetExhausted", "budget-exhausted", 402),
        ("NotBought", "gateway-not-bought", 402),
        ("NotAllowed", "gateway-role", 403),
        ("NotAllowed", "gateway-approval", 403),
        ("NotAllowed", "gateway-suspended", 403),
        ("InvalidArgument", "gateway-not-found", 404),
        ("NotAllowed", "sql-rows", 422),
        ("NotAllowed", "gateway-too-fast", 429),
        ("LedgerUnavailable", "ledger-unavailable", 503),
        ("LedgerDamaged", "ledger-damaged", 503),
        ("ServiceUnavailable", "gateway-busy", 503),
        ("NotAllowed", "gateway-stopped", 503),
        ("EngineFailed", "gateway-late", 504),
    ],
)
def test_errors_of_the_vault(kind: str, code: str, status: int, running: Running) -> None:
    running.verbs["ask"] = refused(kind, code, "What is wrong. Say ε instead.", request=3)
    reply = running.client.post("/v1/questions", json={"sql": "x"})
    assert reply.headers["content-type"] == "application/problem+json"
    found = reply.json()
    assert found.pop("title")
    assert (reply.status_code, found) == (
        status,
        {
            "type": "about:blank",
            "status": status,
            "kind": kind,
            "code": code,
            "detail": "What is wrong. Say ε instead.",
            "more": {"request": 3},
        },
    )
    assert (status == 401) == (reply.headers.get("www-authenticate") == "Bearer")
    assert (status in (429, 503)) == ("retry-after" in reply.headers)


class Failing:
    """A vault whose connection fails in a way that nobody thought of, with a value in the message."""

    async def call(self, *_: Any, **__: Any) -> Frame:
        raise RuntimeError("patient 4711 has the flu")


def in_process(app: Desk, path: str = "/v1/me", body: bytes = b"", **other: Any) -> tuple[int, bytes]:
    """The reply of a desk without a server in front of it."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": body}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": path, "headers": [], "client": ("127.0.0.1", 1)}
    scope |= other
    asyncio.run(app(scope, receive, send))
    return sent[0]["status"], sent[1]["body"]


def test_nothing_of_another_error_leaves() -> None:
    assert in_process(make_app(Failing())) == (500, FAILED.body)
    assert b"4711" not in FAILED.body


class Reading:
    """A vault that reads what it gets, as the real one does."""

    def __init__(self) -> None:
        self.verbs: list[str] = []

    async def call(self, verb: str, token: str | None, arguments: bytes, *, address: str) -> Frame:
        packed({"verb": verb, "token": token, "address": address})
        assert isinstance(Frame({}, arguments).arguments, dict)
        self.verbs.append(verb)
        return said()


READING = Reading()
READER = make_app(READING, rates=Rates(address=Rate(1e9, 1e9), token=Rate(1e9, 1e9)))
_PATHS = [route.path.format(**PLACES) for route in ROUTES]
_BODIES = st.one_of(
    st.binary(max_size=50),
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=9),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
        max_leaves=6,
    ).map(lambda value: json.dumps(value).encode()),
)


@pytest.mark.slow
@given(
    method=st.sampled_from(["GET", "POST", "DELETE", "PATCH"]),
    path=st.sampled_from(_PATHS) | st.text(max_size=30).map(lambda text: f"/{text}"),
    query=st.binary(max_size=30) | st.sampled_from([b"first=1", b"number=2", b"receipt=x"]),
    body=_BODIES,
    headers=st.dictionaries(
        st.sampled_from([b"authorization", b"accept", b"idempotency-key", b"content-type", b"cookie", b"host"]),
        st.binary(max_size=30) | st.sampled_from([b"Bearer a", b"application/json", b"*/*", b"text/csv;q=1"]),
    ),
)
@settings(max_examples=150)
def test_whatever_arrives_the_vault_gets_a_json_object_or_nothing(
    method: str, path: str, query: bytes, body: bytes, headers: dict[bytes, bytes]
) -> None:
    READING.verbs.clear()
    sent = {"method": method, "query_string": query, "headers": list(headers.items())}
    status, reply = in_process(READER, path, body, **sent)
    assert status != 500
    assert isinstance(json.loads(reply), dict)
    assert bool(READING.verbs) <= (status == 200)


def test_an_error_of_an_unknown_kind_is_not_passed_on(running: Running) -> None:
    running.verbs["me"] = refused("ValueError", "what", "patient 4711 has the flu")
    reply = running.client.get("/v1/me")
    assert (reply.status_code, reply.content) == (500, FAILED.body)


def test_a_vault_that_is_gone_and_comes_back(tmp_path: Path) -> None:
    def vanish(_: Frame) -> Frame:
        raise BadFrame  # the connection between the two is closed

    verbs: Verbs = {"me": said(b"{}")}
    with desk(tmp_path, verbs) as running:
        assert running.client.get("/v1/me").status_code == 200
        verbs["me"] = vanish
        reply = running.client.get("/v1/me")
        assert (reply.status_code, reply.json()["code"]) == (503, "gateway-unavailable")
        verbs["me"] = said(b"{}")
        assert running.client.get("/v1/me").status_code == 200


# --- headers and the description ----------------------------------------------------------------------------


def test_headers_are_safe_and_say_nothing_about_the_machine(running: Running) -> None:
    for path in ("/v1/me", "/nothing", "/openapi.json"):
        headers = running.client.get(path).headers
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert not {"server", "date", "set-cookie", "access-control-allow-origin"} & set(headers)


def test_the_description_is_openapi_and_complete(running: Running) -> None:
    found = httpx.get(f"{running.url}/openapi.json", trust_env=False).json()
    OpenAPI.model_validate(found)
    described = {(method.upper(), path) for path, one in found["paths"].items() for method in one}
    assert described == {(route.method, route.path) for route in ROUTES}
    assert all(one["summary"] and one["responses"]["200"] for path in found["paths"].values() for one in path.values())
    ids = [one["operationId"] for path in found["paths"].values() for one in path.values()]
    assert len(set(ids)) == len(ids)
    assert "http" not in json.dumps(found["paths"])  # nothing is loaded from elsewhere


def test_metrics_have_a_listener_of_their_own(tmp_path: Path) -> None:
    with desk(tmp_path, {"metrics": said(b"n 1\n", "text/plain; version=0.0.4")}, metrics=True) as running:
        reply = running.client.get("/metrics")
        assert (reply.content, reply.headers["content-type"]) == (b"n 1\n", "text/plain; version=0.0.4")
        assert running.frames[-1].header["token"] == TOKEN
        assert running.client.post("/v1/questions", json={"sql": "x"}).status_code == 404
        assert {route.path for route in METRICS} == {"/healthz", "/metrics"}


def test_requests_run_side_by_side(running: Running) -> None:
    """A question that waits does not keep others waiting."""
    asked, free = asyncio.Event(), asyncio.Event()

    async def slow(_: Frame) -> Frame:
        asked.set()
        await free.wait()
        return said(b"[1]")

    def quick(_: Frame) -> Frame:
        free.set()
        return said(b"[2]")

    running.verbs |= {"ask": slow, "me": quick}

    async def both() -> list[bytes]:
        async with httpx.AsyncClient(base_url=running.url, trust_env=False, timeout=20) as client:
            waiting = asyncio.ensure_future(client.post("/v1/questions", json={"sql": "x"}))
            while not asked.is_set():
                await asyncio.sleep(0.01)
            reply = await client.get("/v1/me")
            return [reply.content, (await waiting).content]

    assert asyncio.run(both()) == [b"[2]", b"[1]"]


def test_garbage_is_answered_and_the_desk_goes_on(running: Running) -> None:
    for sent in (b"\x16\x03\x01\x02\x00\x01", b"GET\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n"):
        with socket.create_connection(running.address, timeout=20) as connection:
            connection.sendall(sent)
            assert connection.recv(1000).startswith(b"HTTP/1.1 400")
    assert running.client.get("/v1/me").status_code == 200
