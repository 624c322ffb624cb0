"""What browsers and people meet: shared routes, tokens of open polls, the task, the page; and bugs planted in them."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from discreet.errors import InvalidArgument
from discreet.shuffle.channel import keys
from discreet.shuffle.channel.client import Client, ask_for_token
from discreet.shuffle.channel.services import analyzer as analyzer_service
from discreet.shuffle.channel.services import page, service
from discreet.shuffle.channel.services import shuffler as shuffler_service
from discreet.shuffle.channel.services.page import draw_page
from discreet.shuffle.channel.shuffler import Shuffler
from discreet.shuffle.channel.task import Task

from ...refusing import refuses
from .polls import CHOICES, Poll, finish, make_poll, serve

ORIGIN = {"Origin": "https://polls.example"}
SHARED = [("POST", "/v1/report"), ("POST", "/v1/token"), ("GET", "/v1/task"), ("GET", "/v1/state"), ("GET", "/healthz")]
RESULTS = [("GET", "/v1/result"), ("GET", "/v1/task")]
OPERATORS = [("POST", "/v1/close"), ("POST", "/v1/reports")]
RESULT: dict[str, Any] = {
    "reports": 1000,
    "heard": 998,
    "value": [["yes", 600.25], ["<b>no</b>", 410], ["never", -3.5]],
    "error": 15.666,
    "confidence": 0.95,
    "guarantee": "ε = 8, δ = 0.05",
    "receipt": "1-0f49",
    "not_private": False,
}


def ask(app: object, method: str, path: str, **given: Any) -> httpx.Response:
    async def once() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here") as http:
            return await http.request(method, path, **given)

    return asyncio.run(once())


def shuffler(poll: Poll, *, anybody: bool = False) -> Any:
    return shuffler_service.application(
        poll.shuffler(), poll.issuer.operator, "http://nowhere.invalid", anybody=anybody
    )


def analyzer(poll: Poll) -> Any:
    return analyzer_service.application(poll.analyzer(), poll.issuer.operator)


def shared(answer: httpx.Response) -> list[str]:
    return [name for name in answer.headers if name.startswith("access-control")]


# --- checks, which planted bugs must fail ---------------------------------------------------------------------


def operators_routes_are_not_shared(poll: Poll) -> None:
    for app, routes in ((shuffler(poll), OPERATORS), (analyzer(poll), [("POST", "/v1/batch"), ("GET", "/")])):
        for method, path in routes:
            for headers in (ORIGIN, ORIGIN | {"Authorization": f"Bearer {poll.issuer.operator.hex()}"}):
                assert not shared(ask(app, method, path, headers=headers))
            preflight = ask(app, "OPTIONS", path, headers=ORIGIN | {"Access-Control-Request-Method": method})
            assert preflight.status_code == 405
            assert not shared(preflight)


def closed_polls_issue_no_token(poll: Poll) -> None:
    for headers in ({}, {"Authorization": f"Bearer {poll.issuer.operator.hex()}"}):
        said = ask(shuffler(poll), "POST", "/v1/token", headers=headers)
        assert (said.status_code, said.content) == (400, b"not accepted\n")


def the_task_is_the_bytes_that_are_hashed(poll: Poll) -> None:
    for app in (shuffler(poll), analyzer(poll)):
        said = ask(app, "GET", "/v1/task")
        assert (said.status_code, said.headers["content-type"]) == (200, "application/json")
        assert said.headers["cache-control"] == "no-store"
        assert hashlib.sha256(said.content).digest() == poll.task.hash


def the_page_says_how_many_are_needed_and_never_how_many_came(poll: Poll) -> None:
    app, both = analyzer(poll), poll.shuffler()
    pages = [ask(app, "GET", "/").content]
    both.accept([poll.exact(number, 0) for number in range(poll.task.protocol.minimum + 1)])
    pages.append(ask(app, "GET", "/").content)
    both.seal()
    other = poll.analyzer()
    both.deliver(other.receive, lambda: "waiting")  # the batch is there, and not counted yet
    pages.append(ask(app, "GET", "/").content)
    assert len(set(pages)) == 1
    shown = re.sub(r"<style>.*</style>", "", pages[0].decode(), flags=re.DOTALL)
    assert "at least 10 reports" in shown
    assert "11" not in shown.replace(poll.task.hash.hex(), "").replace("127.0.0.1", "")


CHECKS = (
    operators_routes_are_not_shared,
    closed_polls_issue_no_token,
    the_task_is_the_bytes_that_are_hashed,
    the_page_says_how_many_are_needed_and_never_how_many_came,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_nothing_is_wrong(check: Callable[[Poll], None], tmp_path: Path) -> None:
    check(make_poll(tmp_path))


# --- seeded bugs ------------------------------------------------------------------------------------------------


def every_route_is_shared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(service.Application, "_shared", lambda self, route, given: given._replace(headers=service.ANY_ORIGIN))


def closing_is_shared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(shuffler_service, "FOR_BROWSERS", (*shuffler_service.FOR_BROWSERS, ("POST", "/v1/close")))


def everybody_gets_a_token(patch: pytest.MonkeyPatch) -> None:
    real = shuffler_service.application
    patch.setattr(
        shuffler_service, "application", lambda *given, anybody=False, **more: real(*given, anybody=True, **more)
    )


def the_task_is_written_again(patch: pytest.MonkeyPatch) -> None:
    real = service.constant

    def written(given: service.Answer) -> Any:
        again = json.dumps(json.loads(given.body)).encode() if given.kind == service.JSON else given.body
        return real(given._replace(body=again))

    patch.setattr(shuffler_service, "constant", written)


def the_page_counts(patch: pytest.MonkeyPatch) -> None:
    def counted(task: Task, result: Any) -> bytes:
        return draw_page(task, result) + str(Counting.reports).encode()

    class Counting:
        reports = 0

    real = Shuffler.accept

    def accept(self: Shuffler, uploads: Any) -> Any:
        Counting.reports += len(uploads)
        return real(self, uploads)

    patch.setattr(Shuffler, "accept", accept)
    patch.setattr(analyzer_service, "draw_page", counted)


@pytest.mark.parametrize(
    ("bug", "check"),
    [
        (every_route_is_shared, operators_routes_are_not_shared),
        (closing_is_shared, operators_routes_are_not_shared),
        (everybody_gets_a_token, closed_polls_issue_no_token),
        (the_task_is_written_again, the_task_is_the_bytes_that_are_hashed),
        (the_page_counts, the_page_says_how_many_are_needed_and_never_how_many_came),
    ],
    ids=lambda one: one.__name__,
)
def test_a_seeded_bug_is_seen(
    bug: Callable[[pytest.MonkeyPatch], None],
    check: Callable[[Poll], None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    bug(monkeypatch)
    with pytest.raises(AssertionError):
        check(make_poll(tmp_path))


# --- shared routes ----------------------------------------------------------------------------------------------


def test_browsers_of_every_origin_are_answered(tmp_path: Path) -> None:
    poll = make_poll(tmp_path)
    preflights = set()
    for app, routes in ((shuffler(poll), SHARED), (analyzer(poll), RESULTS)):
        for method, path in routes:
            for headers in ({}, ORIGIN, {"Origin": "null"}):
                said = ask(app, method, path, headers=headers)
                assert said.headers["access-control-allow-origin"] == "*", path
                assert "access-control-allow-credentials" not in said.headers
            for origin in (ORIGIN, {"Origin": "https://other.example", "Access-Control-Request-Headers": "x-other"}):
                said = ask(app, "OPTIONS", path, headers=origin)
                preflights.add((said.status_code, said.content, str(sorted(said.headers.items()))))
    assert len(preflights) == 1
    [(status, content, headers)] = preflights
    assert (status, content) == (204, b"")
    for wanted in ("'*'", "'GET, POST'", "'authorization, content-type'", "'86400'"):
        assert wanted in headers


def test_errors_can_be_read_by_browsers(tmp_path: Path) -> None:
    poll = make_poll(tmp_path)
    held = poll.shuffler()
    app = shuffler_service.application(held, poll.issuer.operator, "http://nowhere.invalid")
    token, report = poll.exact(0, 0)
    own = {"Authorization": f"Bearer {token.hex()}"}

    async def asked() -> list[httpx.Response]:
        async with (
            app.running(),
            httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here") as http,
        ):
            post = http.post
            found = [
                await post("/v1/report", content=b"x", headers=own),
                await post("/v1/report", content=report, headers=own),
            ]
            found.append(await post("/v1/report", content=Client(poll.task, token).envelope([0, 3]), headers=own))
            await asyncio.to_thread(held.store.discard)
            late, last = poll.exact(1, 0)
            bearer = {"Authorization": f"Bearer {late.hex()}"}
            found.append(await post("/v1/report", content=last, headers=bearer))
            return found

    found = asyncio.run(asked())
    assert [one.status_code for one in found] == [400, 200, 409, 410]
    assert {one.headers["access-control-allow-origin"] for one in found} == {"*"}


def test_a_failure_is_told_to_browsers_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    poll = make_poll(tmp_path)
    held = poll.shuffler()
    app = shuffler_service.application(held, poll.issuer.operator, "http://nowhere.invalid")
    monkeypatch.setattr(held.store, "standing", lambda: 1 / 0)
    sent: list[dict[str, Any]] = []

    async def send(event: dict[str, Any]) -> None:
        sent.append(event)

    with pytest.raises(ZeroDivisionError):
        asyncio.run(app({"type": "http", "method": "GET", "path": "/v1/state", "headers": []}, None, send))
    assert (sent[0]["status"], sent[1]["body"]) == (500, b"failed\n")
    assert (b"access-control-allow-origin", b"*") in sent[0]["headers"]


def test_health_is_constant_and_heads_have_no_body(tmp_path: Path) -> None:
    poll = make_poll(tmp_path)
    for app in (shuffler(poll), analyzer(poll)):
        assert ask(app, "GET", "/").status_code == 200  # people who open the address are told what it is
        assert (ask(app, "GET", "/healthz").status_code, ask(app, "GET", "/healthz").content) == (200, b"ok\n")
        head = ask(app, "HEAD", "/v1/task")
        assert (head.status_code, head.content) == (200, b"")
        assert int(head.headers["content-length"]) == len(poll.task.canonical)
        assert ask(app, "PUT", "/v1/task").status_code == 405
        assert ask(app, "GET", "/v1/other").status_code == 404
        assert ask(app, "GET", "/v1/t%61sk").status_code == 404  # whoever guards a path in front of it has guarded it


def test_a_task_whose_keys_are_none_is_refused(tmp_path: Path) -> None:
    task = make_poll(tmp_path).task
    assert Task.from_bytes(task.canonical).hash == task.hash
    for name in ("shuffler_key", "analyzer_key"):
        with refuses(InvalidArgument, "shuffle-task-unreadable"):
            Task.from_bytes(replace(task, **{name: b"key"}).canonical)


# --- open polls -------------------------------------------------------------------------------------------------


def test_an_open_poll_issues_a_new_token_to_everybody(tmp_path: Path) -> None:
    poll = make_poll(tmp_path)
    app = shuffler(poll, anybody=True)
    said = [ask(app, "POST", "/v1/token", headers=ORIGIN) for _ in range(2)]
    tokens = [one.content for one in said]
    assert [(one.status_code, len(one.content)) for one in said] == [(200, 48)] * 2
    assert tokens[0] != tokens[1]
    for token in tokens:
        assert keys.client_of(token, poll.issuer.registration, poll.task.hash) == token[:16]
    assert ask(app, "POST", "/v1/token", content=b"x").status_code == 400
    assert ask(app, "GET", "/v1/token").status_code == 405


@pytest.mark.slow
def test_anybody_reports_to_an_open_poll_as_it_runs(tmp_path: Path) -> None:
    poll = make_poll(tmp_path)
    running = serve(poll, "shuffler", tmp_path / "open.log", "--open")
    try:
        task = replace(poll.task, shuffler=running.url)
        first = ask_for_token(task)
        Client(task, first).report(CHOICES[0])
        assert httpx.get(f"{running.url}/healthz").text == "ok\n"
        assert Task.from_bytes(httpx.get(f"{running.url}/v1/task").content) == replace(
            poll.task, shuffler="http://127.0.0.1:7002"
        )
        state = httpx.get(
            f"{running.url}/v1/state", headers={"Authorization": f"Bearer {poll.issuer.operator.hex()}"}
        ).json()
        assert state["reports"] == 1
    finally:
        running.stop()


# --- the page -----------------------------------------------------------------------------------------------------


def test_the_page_shows_counts_with_error_bars_and_no_markup_of_others(tmp_path: Path) -> None:
    task = make_poll(tmp_path).task
    text = draw_page(task, RESULT).decode()
    assert "<b>no" not in text
    assert text.count("&lt;b&gt;no&lt;/b&gt;") >= 2  # in the picture and in the table
    assert text.count('class="whisker"') == 9
    assert "600.2" in text
    assert "± 15.7" in text  # rounded up
    assert "−3.5" in text
    assert "998 can be read" in text
    assert task.hash.hex() in text
    assert "script" not in text
    assert "style=" not in text
    assert "http-equiv" in text


def test_the_styles_are_those_that_the_policy_allows(tmp_path: Path) -> None:
    import base64

    poll = make_poll(tmp_path)
    said = ask(analyzer(poll), "GET", "/")
    assert said.headers["content-type"] == "text/html; charset=utf-8"
    [styles] = re.findall(r"<style>(.*?)</style>", said.text, flags=re.DOTALL)
    allowed = f"'sha256-{base64.b64encode(hashlib.sha256(styles.encode()).digest()).decode()}'"
    policy = said.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    assert allowed in policy
    assert "unsafe" not in policy
    assert said.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"value": 12.5}, "12.5"),
        ({"value": 0.12345, "error": 0.0123}, "0.123"),
        ({"value": 0.12345, "error": 0.0123}, "± 0.013"),
        ({"error": 5.33}, "± 5.4"),
        ({"error": None}, "No bound on its error is known"),
        ({"not_private": True}, "NOT PRIVATE"),
        ({"value": [[f"choice {n}", n] for n in range(page.MOST_BARS + 5)]}, "The table has all"),
        ({"value": [["a", 0], ["b", 0]], "error": None}, "No bound"),
    ],
)
def test_the_page_of_other_results(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    assert words in draw_page(make_poll(tmp_path).task, RESULT | change).decode()


def test_the_page_of_a_batch_that_is_withheld(tmp_path: Path) -> None:
    text = draw_page(make_poll(tmp_path).task, {"reports": 105, "heard": 60, "needed": 84}).decode()
    assert "Nothing is published" in text
    assert all(word in text for word in ("105", "60", "84"))


def test_the_page_of_a_real_result(tmp_path: Path) -> None:
    poll = make_poll(tmp_path)
    one, other = poll.shuffler(), poll.analyzer()
    one.accept([poll.exact(number, number % 3) for number in range(12)])
    app = analyzer_service.application(other, poll.issuer.operator)
    result = finish(one, other)
    assert ask(app, "GET", "/").content == draw_page(poll.task, result)
    assert all(choice in ask(app, "GET", "/").text for choice in CHOICES)
