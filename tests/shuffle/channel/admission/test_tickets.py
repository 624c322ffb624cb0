"""One person, one report: tickets at the shuffler, and what a task says about its issuer."""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives import hashes

from discreet.errors import InvalidArgument
from discreet.shuffle.channel import admission, blind_rsa, keys, wire
from discreet.shuffle.channel import task as tasks
from discreet.shuffle.channel.client import Client, uploads
from discreet.shuffle.channel.services import shuffler as shuffler_service
from discreet.shuffle.channel.task import Task
from discreet.shuffle.fakes import Fakes

from ....refusing import refuses
from ..polls import CHOICES, Poll, counts, finish, make_poll, signer
from .tickets import ticket, upload


def a_ticket_counts_once(poll: Poll) -> None:
    """The same bytes again are the same report. Other bytes are not, even with another signature of the ticket."""
    task, shuffler = poll.task, poll.shuffler()
    own = ticket(task)
    first = upload(task, own)
    assert shuffler.accept([first, first]) == ["accepted"] * 2
    assert shuffler.accept([upload(task, own, 1)]) == ["other bytes"]
    message = admission.message_of(own[16:80], task.hash)
    again = own[:80] + signer().key.sign(message, blind_rsa._PADDING, hashes.SHA384())
    assert again != own
    assert shuffler.accept([upload(task, again, 1)]) == ["other bytes"], "one ticket counts twice"
    assert shuffler.accept([(again, first[1])]) == ["accepted"]  # the same report
    assert shuffler.store.standing() == ("collecting", 1)


def a_forged_ticket_is_malformed(poll: Poll) -> None:
    task, shuffler = poll.task, poll.shuffler()
    own = ticket(task)
    random_bytes = keys.random_bytes(len(own))
    number = int.from_bytes(task.issuer_key, "big")
    larger = (int.from_bytes(own[80:], "big") + number).to_bytes(257, "big")[-256:]
    forged = [
        own[:-1] + bytes([own[-1] ^ 1]),
        bytes([own[0] ^ 1]) + own[1:],
        own[:40] + bytes([own[40] ^ 1]) + own[41:],
        random_bytes,
        bytes(len(own)),
        own[:80] + larger,
        own[:80] + (1).to_bytes(256, "big"),
        ticket(replace(task, issuer_key=signer(1).modulus), signer(1)),
    ]
    reports = [upload(task, one) for one in forged]
    assert shuffler.accept(reports) == ["malformed"] * len(forged), "a forged ticket is accepted"
    short = [(one, reports[0][1]) for one in (b"", own[:-1], own + b"\0", poll.token(1), own[:48])]
    assert shuffler.accept(short) == ["malformed"] * len(short)
    assert shuffler.store.standing() == ("collecting", 0)
    assert shuffler.accept([upload(task, own)]) == ["accepted"]  # it was not used up


def a_ticket_of_another_task_is_malformed(poll: Poll) -> None:
    task = poll.task
    elsewhere = replace(task, epsilon=9.0)
    assert elsewhere.hash != task.hash
    assert poll.shuffler().accept([upload(task, ticket(elsewhere))]) == ["malformed"], (
        "a ticket of another poll is accepted"
    )


def test_a_ticket_counts_once(poll: Poll) -> None:
    a_ticket_counts_once(poll)


def test_a_forged_ticket_is_malformed(poll: Poll) -> None:
    a_forged_ticket_is_malformed(poll)


def test_a_ticket_of_another_task_is_malformed(poll: Poll) -> None:
    a_ticket_of_another_task_is_malformed(poll)


def test_a_report_is_bound_to_its_ticket(poll: Poll) -> None:
    a_report_is_bound_to_its_ticket(poll)


def a_report_is_bound_to_its_ticket(poll: Poll) -> None:
    task = poll.task
    mine, thine = ticket(task), ticket(task)
    assert poll.shuffler().accept([(thine, upload(task, mine)[1])]) == ["malformed"]
    found = admission.accepted(mine, task.issuer_key, task.hash)
    assert found.client == mine[:16] == hashlib.sha256(found.message).digest()[:16]
    renamed = thine[:16] + mine[16:]  # with a name of one's own choice, the report of another would open
    assert poll.shuffler().accept([(renamed, upload(task, thine)[1])]) == ["malformed"]


def test_a_task_without_an_issuer_takes_no_tickets(tmp_path: Path, poll: Poll) -> None:
    (tmp_path / "other").mkdir()
    plain = make_poll(tmp_path / "other")
    own = ticket(poll.task)
    report = upload(poll.task, own)[1]
    assert plain.shuffler().accept([(own, report), (own[:48], report)]) == ["malformed"] * 2
    with refuses(InvalidArgument, "shuffle-not-accepted"):
        Client(plain.task, own)
    with refuses(InvalidArgument, "shuffle-not-accepted"):
        Client(poll.task, plain.token(1))
    with refuses(InvalidArgument, "shuffle-no-issuer"):
        Client.admitted(plain.task, admission.new_voucher())


def test_reports_with_tickets_are_counted(poll: Poll) -> None:
    task, shuffler, analyzer = poll.task, poll.shuffler(), poll.analyzer()
    assert shuffler.accept([upload(task, ticket(task), number % 3) for number in range(11)]) == ["accepted"] * 11
    assert counts(finish(shuffler, analyzer)) == [4, 4, 3]


def test_many_reports_with_tickets_in_one_request(poll: Poll) -> None:
    task, shuffler = poll.task, poll.shuffler()
    own = [ticket(task) for _ in range(3)]
    forged = bytes(len(own[0]))
    body = uploads(task, [*own, forged], [CHOICES[0]] * 4) + b"".join(upload(task, own[0], 1))
    app = shuffler_service.application(shuffler, b"operator", "http://127.0.0.1:1")

    async def post(content: bytes) -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://shuffler") as http:
            return await http.post("/v1/reports", content=content)

    found = asyncio.run(post(body))
    assert (found.status_code, found.content[1:4]) == (200, b"++?")
    assert {found.content[:1], found.content[4:]} == {b"+", b"!"}  # of two at once, either is the first
    assert asyncio.run(post(body[:-1])).status_code == 400
    assert len(body) == 5 * task.shape.upload
    assert task.shape.upload == 80 + 256 + task.shape.report


# --- the task file --------------------------------------------------------------------------------------------


def test_a_task_without_an_issuer_has_the_hash_that_it_always_had() -> None:
    described = Fakes(clients=100, minimum=50, honest=0.8, choices=("a", "b"), fakes=2).described()
    facts: dict[str, Any] = {"description": described, "epsilon": 8.0, "delta": 0.05}
    task = Task(**facts, shuffler_key=bytes(range(32)), analyzer_key=bytes(range(32, 64)))
    assert task.hash.hex() == "b6b476cf5cc7ed9bb0f2862b46d5e5aa19e64cce1176960ed15edf743d13f6cf"
    admits = replace(task, issuer_key=signer().modulus)
    assert len({task.hash, admits.hash, replace(task, issuer_key=signer(1).modulus).hash}) == 3
    assert replace(admits, issuer="https://elsewhere.example").hash == admits.hash
    assert json.loads(admits.canonical)["admission"] == {"scheme": tasks.SCHEME, "key": signer().modulus.hex()}
    assert (task.shape.token, admits.shape.token) == (wire.TOKEN, 336)
    assert "issuer" in admits.promise
    assert "issuer" not in task.promise


def test_the_bytes_of_a_task_are_read_again(poll: Poll) -> None:
    task = poll.task
    again = Task.from_bytes(task.canonical)
    assert (again.hash, again.issuer_key) == (task.hash, task.issuer_key)
    facts = json.loads(task.canonical)
    short = replace(task, issuer_key=b"\xff" * 128)
    with refuses(InvalidArgument, "shuffle-issuer-key"):
        Task.from_bytes(short.canonical)
    other = json.dumps(facts | {"admission": facts["admission"] | {"scheme": "RSA"}}).encode()
    for damaged in (other, json.dumps(facts | {"admission": {}}).encode()):
        with refuses(InvalidArgument, "shuffle-task-unreadable"):
            Task.from_bytes(damaged)


def test_a_shuffler_with_an_issuer_is_not_open(poll: Poll) -> None:
    with refuses(InvalidArgument, "shuffle-has-issuer"):
        shuffler_service.application(poll.shuffler(), b"operator", "http://127.0.0.1:1", anybody=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [("RSABSSA-SHA384-PSS-Randomized", "RSA"), ("\nkey = ", "\nkey = 5 # "), ("\nkey = ", "\nother = 1\nkey = "),
     ("\nkey = \"", "\nkey = \"f"), ("[admission]\n", "[[admission]]\n")],
)  # fmt: skip
def test_a_damaged_part_about_admission_is_refused(old: str, new: str, poll: Poll) -> None:
    text = poll.path.read_text()
    assert text.count(old) == 1
    poll.path.write_text(text.replace(old, new))
    with refuses(InvalidArgument, "shuffle-task-unreadable"):
        Task.load(poll.path)
