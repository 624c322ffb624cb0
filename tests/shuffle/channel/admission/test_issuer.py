"""The issuer: one ticket for each voucher, of which it keeps nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from discreet.cli.shuffle.options import files_of
from discreet.errors import InvalidArgument
from discreet.shuffle.channel import admission
from discreet.shuffle.channel.admission import TicketRequest
from discreet.shuffle.channel.issuer import Issuer, IssuerStore
from discreet.shuffle.channel.services import issuer as issuer_service

from ....refusing import refuses
from ..polls import Poll, signer
from .tickets import an_issuer


def a_voucher_is_good_for_one_ticket(poll: Poll) -> None:
    """Its one request is signed again and again, with the same answer, by another process too. Another is refused."""
    one, other = admission.new_voucher(), admission.new_voucher()
    at = an_issuer(poll, one, other)
    task = poll.task
    requests = [TicketRequest.made(task.issuer_key, task.hash) for _ in range(3)]
    first = at.admit(one, requests[0].blinded)
    assert first.outcome == "signed"
    assert at.admit(one, requests[0].blinded) == first
    assert at.admit(one.upper(), requests[1].blinded) == ("used", b""), "a voucher is good for two tickets"
    at.close()
    again = an_issuer(poll, one, other)
    assert again.admit(one, requests[0].blinded) == first
    assert again.admit(one, requests[1].blinded) == ("used", b"")
    assert again.admit(other, requests[2].blinded).outcome == "signed"
    assert again.admit(admission.new_voucher(), requests[1].blinded) == ("malformed", b"")
    assert again.store.count() == 2


def what_is_malformed_does_not_use_up_a_voucher(poll: Poll) -> None:
    voucher = admission.new_voucher()
    at, task = an_issuer(poll, voucher), poll.task
    number = int.from_bytes(task.issuer_key, "big")
    prime = signer().key.private_numbers().p
    bad = [number_.to_bytes(256, "big") for number_ in (0, number, 2**2048 - 1, prime)]
    for blinded in (*bad, b"", bytes(255), b"\1" * 257):
        assert at.admit(voucher, blinded) == ("malformed", b""), "something else is signed"
    assert at.store.count() == 0
    assert at.admit(voucher, TicketRequest.made(task.issuer_key, task.hash).blinded).outcome == "signed"


def test_a_voucher_is_good_for_one_ticket(poll: Poll) -> None:
    a_voucher_is_good_for_one_ticket(poll)


def test_what_is_malformed_does_not_use_up_a_voucher(poll: Poll) -> None:
    what_is_malformed_does_not_use_up_a_voucher(poll)


@pytest.mark.some_quick(1)
def test_the_issuer_keeps_its_vouchers_anywhere(place: tuple[str, str, str] | None, poll: Poll) -> None:
    voucher, task = admission.new_voucher(), poll.task
    at = an_issuer(poll, voucher, at=place[0] if place else None)
    blinded = [TicketRequest.made(task.issuer_key, task.hash).blinded for _ in range(2)]
    assert [at.admit(voucher, one).outcome for one in (blinded[0], blinded[1], blinded[0])] == [
        "signed",
        "used",
        "signed",
    ]
    assert at.store.count() == 1
    with refuses(InvalidArgument, "shuffle-other-task"):
        IssuerStore(place[0] if place else str(files_of(poll.path).issuer_store), bytes(32))
    at.close()


def test_the_issuer_keeps_neither_a_voucher_nor_a_ticket(poll: Poll) -> None:
    """Nor an order: the file is the same, whoever asked first."""
    vouchers, task = sorted(admission.new_voucher() for _ in range(3)), poll.task
    requests = [TicketRequest.made(task.issuer_key, task.hash).blinded for _ in range(3)]
    files = []
    for order in ((0, 1, 2), (2, 0, 1)):
        path = poll.path.with_name(f"{order[0]}.db")
        at = an_issuer(poll, *vouchers, at=str(path))
        for place in order:
            assert at.admit(vouchers[place], requests[place]).outcome == "signed"
        at.close()
        files.append(path.read_bytes())
        for secret in (*vouchers, *requests):
            raw = bytes.fromhex(secret) if isinstance(secret, str) else secret
            assert raw not in files[-1]
            assert not isinstance(secret, str) or secret.encode() not in files[-1]
    assert files[0][100:] == files[1][100:]  # the head counts commits


def test_the_issuer_over_http(poll: Poll) -> None:
    voucher, task = admission.new_voucher(), poll.task
    app = issuer_service.application(an_issuer(poll, voucher))
    request = TicketRequest.made(task.issuer_key, task.hash)

    async def send(method: str, content: bytes, **headers: str) -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://issuer") as http:
            return await http.request(method, "/v1/admit", content=content, headers=headers)

    def ask(content: bytes, authorization: str = f"Bearer {voucher}") -> httpx.Response:
        found = asyncio.run(send("POST", content, Authorization=authorization))
        assert found.headers["access-control-allow-origin"] == "*"
        return found

    other = TicketRequest.made(task.issuer_key, task.hash).blinded
    malformed = [
        (b"", f"Bearer {voucher}"), (bytes(256), f"Bearer {voucher}"), (request.blinded + b"\0", f"Bearer {voucher}"),
        (other, ""), (other, f"Basic {voucher}"), (other, "Bearer " + admission.new_voucher()), (other, "Bearer "),
        (other, f"Bearer {voucher[:-1]}"),
    ]  # fmt: skip
    said = [ask(*one) for one in malformed]
    assert {(one.status_code, one.content) for one in said} == {(400, b"not accepted\n")}
    answers = [ask(request.blinded) for _ in range(2)]
    assert [one.status_code for one in answers] == [200, 200]
    assert answers[0].content == answers[1].content
    assert admission.accepted(request.signed(answers[0].content), task.issuer_key, task.hash)
    assert ask(other).status_code == 409
    allowed = asyncio.run(send("OPTIONS", b""))
    assert (allowed.status_code, allowed.headers["access-control-allow-origin"]) == (204, "*")
    assert "authorization" in allowed.headers["access-control-allow-headers"]


def test_the_key_of_the_issuer_is_kept_for_itself(poll: Poll, tmp_path: Path) -> None:
    path = files_of(poll.path).issuer_key
    assert path.stat().st_mode & 0o777 == 0o600
    with refuses(InvalidArgument, "file-exists"):
        admission.save_key(signer(), path)
    with refuses(InvalidArgument, "shuffle-wrong-keys"):
        admission.load_key(path, signer(1).modulus)
    with refuses(InvalidArgument, "shuffle-wrong-keys"):
        Issuer(poll.task, signer(1), IssuerStore(str(tmp_path / "other.db"), poll.task.hash), [])
    path.write_bytes(b"not a key")
    with refuses(InvalidArgument, "shuffle-wrong-keys"):
        admission.load_key(path, poll.task.issuer_key)
    path.chmod(0o644)
    with refuses(InvalidArgument, "shuffle-keys-exposed"):
        admission.load_key(path, poll.task.issuer_key)
    with refuses(InvalidArgument, "file-not-readable"):
        admission.load_key(tmp_path / "nowhere", poll.task.issuer_key)


def test_a_list_has_vouchers_that_nobody_guesses(tmp_path: Path) -> None:
    path, made = tmp_path / "people.txt", [admission.new_voucher() for _ in range(3)]
    path.write_text(f"{made[0]}\n\n{made[1].upper()}\tAda Lovelace\n  {made[2]} 12 Main St.\n")
    assert admission.read_vouchers(path) == set(made)
    for bad in ("", "Ada Lovelace\n", f"{made[0]}\n{made[0].upper()}\n", made[0][:-1], made[0] + "0", "g" * 32):
        path.write_text(bad)
        with refuses(InvalidArgument, "shuffle-vouchers"):
            admission.read_vouchers(path)
    path.write_bytes(b"\xff\xfe")
    for unreadable in (path, tmp_path / "nowhere"):
        with refuses(InvalidArgument, "file-not-readable"):
            admission.read_vouchers(unreadable)
