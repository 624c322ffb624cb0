"""The two services as they run, over loopback: honest and hostile clients, and what a thief would find."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

import discreet as dp
from discreet.cli.shuffle.options import files_of
from discreet.errors import NotAllowed
from discreet.shuffle.channel import keys, wire
from discreet.shuffle.channel.client import Client
from discreet.shuffle.channel.services import analyzer as analyzer_service
from discreet.shuffle.channel.services import shuffler as shuffler_service
from discreet.shuffle.channel.task import Task
from fuzz.wire import Wire
from fuzz.wire_model import Request

from ...refusing import refuses
from .polls import CHOICES, EMPTY, Poll, counts, make_poll, services

KINDS = 8


def hostile(poll: Poll, task: Task, number: int, others: list[tuple[bytes, bytes]]) -> tuple[bytes, bytes, int]:
    """What a client that does not follow the protocol sends, and the answer it must get."""
    token = poll.token(10**6 + number)
    client, bound = Client(task, token), wire.outer(task.hash, token[:16])
    known, report = others[number % len(others)]
    match number % KINDS:
        case 0:  # of another length
            return token, client.envelope([0, EMPTY])[: -1 - number % 5], 400
        case 1:  # no envelope at all
            return token, bytes([number % 256]) * task.shape.report, 400
        case 2:  # a token that nobody issued
            return keys.random_bytes(48), client.envelope([0, EMPTY]), 400
        case 3:  # somebody else's report, sent again
            return token, report, 400
        case 4:  # one's own, byte for byte
            return known, report, 200
        case 5:  # a second one, with another answer
            return known, Client(task, known).envelope([0, EMPTY]), 409
        case 6:  # made for another task
            return token, keys.seal(bytes(task.shape.report - 48), task.shuffler_key, bound[:-1]), 400
        case _:  # a copy inside: taken, and left out of the batch
            once = keys.seal(b"\0", task.analyzer_key, wire.inner(task.hash))
            return token, keys.seal(once + once, task.shuffler_key, bound), 200


def send(client: httpx.Client, url: str, token: bytes, report: bytes) -> httpx.Response:
    return client.post(f"{url}/v1/report", content=report, headers={"Authorization": f"Bearer {token.hex()}"})


def crowd(poll: Poll, folder: Path, honest: int, bad: int) -> None:
    """So many honest clients and so many others, all at once; then one less than the minimum, and the minimum."""
    with services(poll, folder) as (shuffler, _):
        task, operator = poll.task, {"Authorization": f"Bearer {poll.issuer.operator.hex()}"}
        good = [poll.exact(number, number % 3) for number in range(honest)]
        last = good.pop()
        with httpx.Client(timeout=60) as http, ThreadPoolExecutor(16) as pool:

            def close() -> dict:
                return http.post(f"{shuffler.url}/v1/close", headers=operator).json()

            early = good[: honest // 2]
            assert {one.status_code for one in pool.map(lambda up: send(http, shuffler.url, *up), early)} == {200}
            attacks = [hostile(poll, task, number, early) for number in range(bad)]
            late = [(*up, 200) for up in good[honest // 2 :]]
            both = [one for pair in zip(attacks, late, strict=False) for one in pair]
            both += attacks[len(late) :] + late[len(attacks) :]
            answers = list(pool.map(lambda up: send(http, shuffler.url, *up[:2]), both))
            assert [one.status_code for one in answers] == [code for *_, code in both]
            # one constant answer to whatever is malformed
            refused = {(one.content, str(sorted(one.headers.items()))) for one in answers if one.status_code == 400}
            assert len(refused) == 1
            copies = sum(number % KINDS == 7 for number in range(bad))
            assert set(http.get(f"{shuffler.url}/v1/state").json()) == {"state", "minimum"}  # no count for everybody
            seen = http.get(f"{shuffler.url}/v1/state", headers=operator).json()
            assert seen["reports"] == honest - 1 + copies
            # the minimum less one: copies do not make up for it
            said = close()
            assert (said["state"], said["minimum"]) == ("collecting", honest)
            assert http.get(f"{task.analyzer}/v1/result").status_code == 404
            assert send(http, shuffler.url, *last).status_code == 200
            assert close()["reports"] == honest
            result = published(http, task)
            assert result["reports"] == honest
            assert counts(result) == [len(range(place, honest, 3)) for place in range(3)]
            assert send(http, shuffler.url, *poll.exact(10**7, 0)).status_code == 410
    assert poll.ledger().count == 1


def published(http: httpx.Client, task: Task) -> dict:
    for _ in range(600):
        found = http.get(f"{task.analyzer}/v1/result")
        if found.status_code == 200:
            return found.json()
        assert found.status_code in (202, 404)
        threading.Event().wait(0.05)
    raise AssertionError("nothing was published")


@pytest.mark.slow
def test_each_honest_report_is_counted_once_and_nothing_else(tmp_path: Path) -> None:
    crowd(make_poll(tmp_path, minimum=200), tmp_path, honest=200, bad=48)


@pytest.mark.slow
def test_a_thousand_honest_reports_among_others(place: tuple[str, str, str] | None, tmp_path: Path) -> None:
    crowd(make_poll(tmp_path, place, minimum=1000), tmp_path, honest=1000, bad=248)


# --- what a thief finds ---------------------------------------------------------------------------------------


@contextmanager
def wiretap(url: str) -> Iterator[tuple[str, bytearray]]:
    """An address that passes everything on, and what went through in both directions."""
    target, seen, stop = urlsplit(url), bytearray(), threading.Event()
    listening = socket.create_server(("127.0.0.1", 0))
    listening.settimeout(0.1)

    def copy(source: socket.socket, to: socket.socket) -> None:
        with source, to:
            while data := source.recv(65536):
                seen.extend(data)
                to.sendall(data)
            to.shutdown(socket.SHUT_WR)

    def accept() -> None:
        while not stop.is_set():
            try:
                one, _ = listening.accept()
            except TimeoutError:
                continue
            other = socket.create_connection((target.hostname, target.port))
            for pair in ((one, other), (other.dup(), one.dup())):
                threading.Thread(target=copy, args=pair, daemon=True).start()

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", seen
    finally:
        stop.set()
        thread.join()
        listening.close()


@pytest.mark.slow
def test_a_captured_shuffler_tells_no_answer_and_a_captured_analyzer_no_client(tmp_path: Path) -> None:
    poll = make_poll(tmp_path)
    files = files_of(poll.path)
    with services(poll, tmp_path) as (shuffler, _), wiretap(shuffler.url) as (address, trace):
        task = Task(**vars_of(poll.task) | {"shuffler": address})
        tokens = [poll.token(number) for number in range(10)]
        for number, token in enumerate(tokens):
            Client(task, token).report(CHOICES[number % 3])
        with refuses(NotAllowed, "shuffle-reported-already"):
            Client(task, tokens[0]).report(CHOICES[2])
        captured = {"trace": bytes(trace), "collecting": everything(files.shuffler_store)}
        operator = {"Authorization": f"Bearer {poll.issuer.operator.hex()}"}
        names = [keys.keyed_hash(poll.issuer.nullifiers, b"client", token[:16]) for token in tokens]
        assert sum(name in captured["collecting"] for name in names) == 10  # it is the right file
        httpx.post(f"{shuffler.url}/v1/close", headers=operator)
        with httpx.Client() as http:
            published(http, task)
        for _ in range(200):
            if httpx.get(f"{shuffler.url}/v1/state").json()["state"] == "acknowledged":
                break
            threading.Event().wait(0.02)
        captured |= {"closed": everything(files.shuffler_store), "log": (tmp_path / "shuffler.log").read_bytes()}
        theirs = everything(files.analyzer_store) + everything(files.ledger) + (tmp_path / "analyzer.log").read_bytes()
    assert len(captured["trace"]) > 10 * task.shape.report
    for name, data in captured.items():
        for choice in CHOICES:
            assert choice.encode() not in data, name
    # no address, no agent and no time in what the shuffler keeps
    kept = captured["collecting"] + captured["closed"] + captured["log"].replace(shuffler.url.encode(), b"")
    assert not re.search(rb"127\.0\.0\.1|python-httpx|user-agent|20\d\d-\d\d-\d\d", kept, re.IGNORECASE)
    # once it is closed, not even who took part
    assert not any(name in captured["closed"] for name in names)
    for token, name in zip(tokens, names, strict=True):
        for secret in (token, token[:16], token[16:], name):
            assert secret not in theirs
            assert secret.hex().encode() not in theirs
    assert CHOICES[0].encode() in theirs  # the published table is there


def vars_of(task: Task) -> dict:
    return {name: getattr(task, name) for name in Task.__dataclass_fields__}


def everything(path: Path) -> bytes:
    """A database and its log, as bytes on disk."""
    beside = (path, path.with_name(path.name + "-journal"))
    return b"".join(one.read_bytes() for one in beside if one.exists())


def test_many_reports_in_one_request_and_who_may_do_what(tmp_path: Path) -> None:
    poll = make_poll(tmp_path)
    operator = poll.issuer.operator
    shuffler = shuffler_service.application(poll.shuffler(), operator, "http://nowhere.invalid")
    analyzer = analyzer_service.application(poll.analyzer(), operator)

    def ask(app: object, method: str, path: str, **given: object) -> httpx.Response:
        async def once() -> httpx.Response:
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here") as http:
                return await http.request(method, path, **given)

        return asyncio.run(once())

    good = [poll.exact(number, number % 3) for number in range(10)]
    data = b"".join(token + report for token, report in good)
    token, report = poll.exact(3, 1)
    said = ask(shuffler, "POST", "/v1/reports", content=data + bytes(poll.task.shape.upload))
    assert said.content == b"+" * 10 + b"?"
    assert ask(shuffler, "POST", "/v1/reports", content=token + report + data).content == b"!" + b"+" * 10
    for bad in (data[:-1], b"", b"x" * (shuffler_service.MOST + 1) * poll.task.shape.upload):
        assert ask(shuffler, "POST", "/v1/reports", content=bad).content == b"not accepted\n"
    # nobody else may close, and nobody but the shuffler may bring a batch
    for headers in ({}, {"Authorization": "Bearer 00"}, {"Authorization": f"Bearer {bytes(32).hex()}"}):
        assert ask(shuffler, "POST", "/v1/close", headers=headers).status_code == 400
        assert ask(analyzer, "POST", "/v1/batch", headers=headers, content=b"x").status_code == 400
    own = {"Authorization": f"Bearer {operator.hex()}", "Idempotency-Key": poll.task.hash.hex()}
    assert ask(analyzer, "POST", "/v1/batch", headers=own, content=b"x").status_code == 400
    assert ask(shuffler, "POST", "/v1/close", headers=own, content=b"{}").status_code == 400
    assert ask(shuffler, "GET", "/v1/state").json()["state"] == "collecting"
    assert ask(shuffler, "POST", "/v1/close", headers=own).json()["state"] == "sealed"
    for path in ("/docs", "/openapi.json", "/redoc"):
        assert ask(shuffler, "GET", path).status_code == 404


def test_uploads_share_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    poll = make_poll(tmp_path)
    shuffler, groups = poll.shuffler(), []
    accept = shuffler.accept
    monkeypatch.setattr(shuffler, "accept", lambda uploads: groups.append(len(uploads)) or accept(uploads))

    async def all_at_once() -> list[str]:
        group = shuffler_service.GroupCommit(shuffler)
        writer = asyncio.create_task(group.write())
        answers = await asyncio.gather(*(group.accept(*poll.exact(number, 0)) for number in range(40)))
        writer.cancel()
        return answers

    assert asyncio.run(all_at_once()) == ["accepted"] * 40
    assert sum(groups) == 40
    assert len(groups) <= 3


def test_why_the_ledger_refuses_is_told_to_the_operator_only(tmp_path: Path) -> None:
    poll = make_poll(tmp_path)
    dp.release(0, dp.Laplace(scale=1), sensitivity=1, ledger=poll.ledger())
    shuffler, analyzer = poll.shuffler(), poll.analyzer()
    shuffler.accept([poll.exact(number, 0) for number in range(10)])
    shuffler.seal()
    app = analyzer_service.application(analyzer, poll.issuer.operator)
    own = {"Authorization": f"Bearer {poll.issuer.operator.hex()}", "Idempotency-Key": poll.task.hash.hex()}

    async def asked() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app)
        async with (
            app.running(),
            httpx.AsyncClient(transport=transport, base_url="http://here") as http,
        ):
            batch = wire.pack_batch(wire.Batch(poll.task.hash, *shuffler.store.batch()[1]))
            assert (await http.post("/v1/batch", headers=own, content=batch)).status_code == 202
            while (first := await http.get("/v1/result")).status_code == 202:
                await asyncio.sleep(0.01)
            return [first, await http.get("/v1/result", headers=own)]

    everybody, operator = asyncio.run(asked())
    assert (everybody.status_code, everybody.json()) == (409, {"state": "received", "refused": "budget"})
    assert "ε" in operator.json()["why"]


def test_a_client_that_goes_away_and_a_path_that_ends_otherwise_are_refused_plainly(tmp_path: Path) -> None:
    """The first was an exception of the server, the second a redirection to a host of the sender's choice."""
    services = Wire(tmp_path)
    for path in ("/v1/report", "/v1/reports", "/v1/close"):
        gone = Request("shuffler", "POST", path, body=b"x" * 10, goes_away=True)
        assert services.check([gone]) == f"{path} 400, collecting, 0, False"
    elsewhere = Request("shuffler", "POST", "/v1/report/", ((b"host", b"elsewhere"),))
    assert services.check([elsewhere]) == "/v1/report/ 404, collecting, 0, False"
    services.close()
