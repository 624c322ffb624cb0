"""Too many requests, failed logins and slow connections: who has to wait, and who has not."""

from __future__ import annotations

import socket
from pathlib import Path

import httpx
import pytest

from discreet.gateway.desk import rates as desk_rates
from discreet.gateway.desk.connections import LONGEST_HEAD, Connections, bounded
from discreet.gateway.desk.rates import Backoff, Buckets, Gate, Rate, Rates, network_of

from .a_desk import TOKEN, desk, refused, said


class Clock:
    """A time that a test moves."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_bucket_gives_so_many_at_once_and_then_so_many_a_second(clock: Clock) -> None:
    bucket = Buckets(Rate(2, 3), clock)
    assert [bucket.take("a") for _ in range(5)] == [0, 0, 0, 0.5, 0.5]
    assert bucket.take("b") == 0
    clock.now += 0.5
    assert [bucket.take("a"), bucket.take("a")] == [0, 0.5]
    clock.now += 1000
    assert [bucket.take("a") for _ in range(4)] == [0, 0, 0, 0.5]


def test_failures_wait_longer_each_time_and_are_forgotten_by_time_alone(clock: Clock) -> None:
    backoff = Backoff(2, 100, clock)
    waits = []
    for _ in range(12):
        backoff.fail("a")
        waits.append(backoff.wait("a"))
    assert waits == [0, 0, 1, 2, 4, 8, 16, 32, 64, 100, 100, 100]
    assert backoff.wait("b") == 0
    clock.now += 99
    assert backoff.wait("a") == 1
    clock.now += 200
    backoff.fail("a")
    assert backoff.wait("a") == 0


def test_a_right_token_between_wrong_ones_does_not_help(clock: Clock) -> None:
    """Whoever has a token of their own could try those of others with no wait otherwise."""
    gate = Gate(Rates(free_failures=2), clock)
    for number in range(4):
        gate.fail("10.0.0.1", f"wrong{number}")
        gate.accept("right")
    assert gate.enter("10.0.0.1", "another")[0] > 0
    assert gate.enter("10.0.0.1", "right")[0] == 0


def test_memory_is_bounded(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk_rates, "REMEMBERED", 10)
    gate = Gate(Rates(), clock)
    for number in range(100):
        gate.fail(f"10.0.0.{number}", None)
        gate.accept(f"token{number}")
        gate.leave(gate.enter(f"10.0.1.{number}", f"token{number}")[1])
    kept = (gate._backoff._failures, gate._accepted, gate._tokens._left, gate._addresses._left)
    assert max(map(len, kept)) == 10
    assert (gate._running, gate.running) == ({}, 0)
    assert "token99" not in repr(gate._accepted)


def test_a_token_that_holds_does_not_wait_for_its_neighbors(clock: Clock) -> None:
    gate = Gate(Rates(address=Rate(1, 2), token=Rate(1, 3)), clock)
    gate.accept("good")
    for _ in range(2):
        assert gate.enter("10.0.0.1", "guess")[0] == 0
    assert gate.enter("10.0.0.1", "guess")[0] == 1
    assert gate.enter("10.0.0.1", None)[0] == 1
    assert [gate.enter("10.0.0.1", "good")[0] for _ in range(4)] == [0, 0, 0, 1]
    gate.fail("10.0.0.1", "good")  # it was revoked: now it is a guess like others
    assert gate.enter("10.0.0.1", "good")[0] == 1


def test_requests_at_the_same_time_are_bounded(clock: Clock) -> None:
    gate = Gate(Rates(running=3, running_each=2), clock)
    wait, first = gate.enter("10.0.0.1", None)
    assert wait == 0
    assert gate.enter("10.0.0.1", None)[0] == 0
    assert gate.enter("10.0.0.1", None)[0] > 0
    assert gate.enter("10.0.0.2", None)[0] == 0
    assert gate.enter("10.0.0.3", None)[0] > 0
    gate.leave(first)
    assert gate.enter("10.0.0.3", None)[0] == 0


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("a:b", "a:b"),
    ],
)
def test_who_is_behind_an_address(address: str, network: str) -> None:
    assert network_of(address) == network


def test_too_fast_over_http(tmp_path: Path) -> None:
    rates = Rates(address=Rate(0.1, 3))
    with desk(tmp_path, {"me": refused("NotAllowed", "gateway-role")}, rates=rates) as running:
        codes = [running.client.get("/v1/me").status_code for _ in range(5)]
        assert codes == [403, 403, 403, 429, 429]
        reply = running.client.get("/openapi.json")
        assert (reply.status_code, reply.json()["code"]) == (429, "gateway-too-fast")
        assert 1 <= int(reply.headers["retry-after"]) <= 10
        assert len(running.frames) == 3


def test_failed_logins_wait_and_valid_tokens_do_not(tmp_path: Path) -> None:
    def me(frame: object) -> object:
        known = frame.header["token"] == TOKEN  # type: ignore[attr-defined]
        return said(b"{}") if known else refused("NotAllowed", "gateway-login")

    rates = Rates(free_failures=2, longest_wait=1000)
    verbs = {"me": me, "login": refused("NotAllowed", "gateway-login")}
    with desk(tmp_path, verbs, rates=rates) as running:  # type: ignore[arg-type]
        assert running.client.get("/v1/me").status_code == 200
        with httpx.Client(base_url=running.url, trust_env=False) as other:
            guesses = [other.get("/v1/me", headers={"Authorization": f"Bearer guess{n}"}) for n in range(2)]
            assert [reply.status_code for reply in guesses] == [401, 401]
            assert other.post("/v1/login", json={"link": "guess"}).status_code == 401
            before = len(running.frames)
            for _ in range(3):
                assert other.post("/v1/login", json={"link": "guess"}).status_code == 429
            assert len(running.frames) == before
        assert running.client.get("/v1/me").status_code == 200


# --- connections --------------------------------------------------------------------------------------------


def test_connections_are_counted() -> None:
    known = Connections(most=3, most_each=2)
    assert [known.add(one) for one in ("a", "a", "a", "b", "c")] == [True, True, False, True, False]
    known.remove("a")
    assert known.add("c")
    for one in ("a", "b", "c"):
        known.remove(one)
    assert (known.count, known._each) == (0, {})


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Connections:
    """The connections of a desk that takes two."""
    known = Connections(most=2)
    monkeypatch.setattr("discreet.gateway.desk.connections.bounded", lambda _: bounded(known))
    return known


def test_one_connection_too_many_and_slow_ones_are_closed(tmp_path: Path, known: Connections) -> None:
    known.patience = 0.1
    with desk(tmp_path) as running:
        first, second, third = (socket.create_connection(running.address, timeout=20) for _ in range(3))
        assert third.recv(1000).startswith(b"HTTP/1.1 429 ")
        first.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n")
        assert (first.recv(100), second.recv(100)) == (b"", b"")  # nothing came in time, or not all of it
        for one in (first, second, third):
            one.close()
        known.patience = 20
        assert running.client.get("/healthz").status_code == 200


def test_a_second_request_must_arrive_in_time_too(tmp_path: Path, known: Connections) -> None:
    with desk(tmp_path) as running, socket.create_connection(running.address, timeout=20) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        got = b""
        while not got.endswith(b"{}"):
            got += connection.recv(10_000)
        known.patience = 0.1
        connection.sendall(b"GET /healthz HTTP/1.1\r\n")
        assert connection.recv(100) == b""


def test_a_head_that_does_not_end_is_cut_off(tmp_path: Path) -> None:
    with desk(tmp_path) as running, socket.create_connection(running.address, timeout=20) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nX: ")
        with pytest.raises(ConnectionError):
            connection.sendall(1000 * LONGEST_HEAD * b"a")
        assert running.client.get("/healthz").status_code == 200
