"""One person, one report: blind signatures as in RFC 9474, the issuer, and tickets at the shuffler."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa

from discreet.cli.shuffle import report
from discreet.cli.shuffle import ticket as ticket_command
from discreet.cli.shuffle.options import files_of
from discreet.errors import DiscreetError, InvalidArgument, NotAllowed, ServiceUnavailable
from discreet.shuffle.channel import admission, blind_rsa, client, issuer, issuer_service, keys, shuffler_service, wire
from discreet.shuffle.channel import task as tasks
from discreet.shuffle.channel.admission import TicketRequest
from discreet.shuffle.channel.client import Client, uploads
from discreet.shuffle.channel.issuer import Issuer, IssuerStore
from discreet.shuffle.channel.task import Task
from discreet.shuffle.fakes import Fakes

from ...refusing import refuses
from .polls import CHOICES, EMPTY, Poll, counts, finish, free_port, make_poll, serve, signer

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "rfc9474.json").read_text())["vectors"]


@pytest.fixture
def poll(tmp_path: Path) -> Poll:
    return make_poll(tmp_path, admission_by=signer())


def ticket(task: Task, key: blind_rsa.PrivateKey | None = None) -> bytes:
    request = TicketRequest.made(task.issuer_key, task.hash)
    return request.signed(blind_rsa.blind_sign(key or signer(), request.blinded))


def upload(task: Task, own: bytes, choice: int = 0) -> tuple[bytes, bytes]:
    return own, Client(task, own).envelope([choice, EMPTY])


def an_issuer(poll: Poll, *vouchers: str, at: str | None = None) -> Issuer:
    task = poll.task
    key = admission.load_key(files_of(poll.path).issuer_key, task.issuer_key)
    store = IssuerStore(at or str(files_of(poll.path).issuer_store), task.hash)
    return Issuer(task, key, store, vouchers)


# --- the RFC --------------------------------------------------------------------------------------------------


def private_of(vector: dict[str, str]) -> blind_rsa.PrivateKey:
    p, q, e = (int(vector[name], 16) for name in "pqe")
    d = pow(e, -1, math.lcm(p - 1, q - 1))
    parts = (rsa.rsa_crt_dmp1(d, p), rsa.rsa_crt_dmq1(d, q), rsa.rsa_crt_iqmp(p, q))
    public = rsa.RSAPublicNumbers(e, p * q)
    return blind_rsa.PrivateKey(rsa.RSAPrivateNumbers(p, q, d, *parts, public).private_key())


@pytest.mark.parametrize("vector", VECTORS)
def test_the_vectors_of_the_rfc(vector: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """RFC 9474, Appendix A.1, step by step."""
    have = {name: bytes.fromhex(digits) for name, digits in vector.items()}
    private = private_of(vector)
    modulus, number = private.modulus, int.from_bytes(private.modulus, "big")
    message = have["msg_prefix"] + have["msg"]
    assert blind_rsa.encode(message, number.bit_length() - 1, have["salt"]) == have["encoded_msg"]
    inverse = int(vector["inv"], 16)
    factor = pow(inverse, -1, number)
    blinded = blind_rsa.blind_by(modulus, have["encoded_msg"], factor)
    assert (blinded.sent, blinded.inverse) == (have["blinded_msg"], inverse)
    assert blind_rsa.blind_sign(private, have["blinded_msg"]) == have["blind_sig"]
    assert blind_rsa.finalize(modulus, message, have["blind_sig"], inverse) == have["sig"]
    assert blind_rsa.verify(modulus, message, have["sig"])
    # and as a whole, from the RFC's random numbers
    drawn = iter([have["msg_prefix"], have["salt"], factor.to_bytes(len(modulus), "big")])
    monkeypatch.setattr(blind_rsa, "random_integer", lambda bits: int.from_bytes(next(drawn), "big"))
    assert blind_rsa.prepare(have["msg"]) == message
    assert blind_rsa.blind(modulus, message) == blinded


@pytest.mark.parametrize("bits", [2048, 2056, 2064])
def test_what_is_signed_blindly_is_an_ordinary_signature(bits: int) -> None:
    private = blind_rsa.generate(bits)
    message = blind_rsa.prepare(b"a message")
    made = blind_rsa.blind(private.modulus, message)
    signature = blind_rsa.finalize(private.modulus, message, blind_rsa.blind_sign(private, made.sent), made.inverse)
    private.key.public_key().verify(signature, message, blind_rsa._PADDING, hashes.SHA384())
    ordinary = private.key.sign(message, blind_rsa._PADDING, hashes.SHA384())
    assert blind_rsa.verify(private.modulus, message, ordinary)
    assert not blind_rsa.verify(private.modulus, message + b"!", signature)
    assert "inverse" not in repr(made)
    assert "RSA" not in repr(private)


def test_what_cannot_be_signed_is_refused() -> None:
    private = signer()
    length, number = len(private.modulus), int.from_bytes(private.modulus, "big")
    prime = private.key.private_numbers().p
    for asked in (0, number, number + 1, 256**length - 1, prime, 7 * prime):
        with pytest.raises(blind_rsa.Refused):
            blind_rsa.blind_sign(private, asked.to_bytes(length, "big"))
    for blinded in (b"", b"\1" * (length - 1), b"\0" + b"\1" * length):
        with pytest.raises(blind_rsa.Refused):
            blind_rsa.blind_sign(private, blinded)
    assert blind_rsa.blind_sign(private, (1).to_bytes(length, "big")) == (1).to_bytes(length, "big")
    with pytest.raises(blind_rsa.Refused):  # the client's own message, by an unheard-of chance
        blind_rsa.blind_by(private.modulus, prime.to_bytes(length, "big"), 2)


def test_a_fault_of_the_machine_gives_nothing_away() -> None:
    """Half of a right signature and half of a wrong one would tell a factor of the key (Boneh-DeMillo-Lipton 1997)."""
    right = signer().key.private_numbers()
    wrong = SimpleNamespace(p=right.p, q=right.q, dmp1=right.dmp1 + 2, dmq1=right.dmq1, iqmp=right.iqmp,
                            public_numbers=right.public_numbers)  # fmt: skip
    faulty = blind_rsa.PrivateKey(SimpleNamespace(private_numbers=lambda: wrong, public_key=signer().key.public_key))
    with refuses(DiscreetError, "shuffle-issuer-fault"):
        blind_rsa.blind_sign(faulty, (3).to_bytes(len(faulty.modulus), "big"))


@pytest.mark.parametrize(
    "modulus",
    [b"", b"\1" * 256, b"\xff" * 127, b"\xff" * 255, b"\0" + b"\xff" * 255, b"\xff" * 255 + b"\xfe", b"\xff" * 513],
)
def test_small_and_bad_keys_are_refused(modulus: bytes, poll: Poll, tmp_path: Path) -> None:
    with refuses(InvalidArgument, "shuffle-issuer-key"):
        blind_rsa.public_key(modulus)
    with refuses(InvalidArgument, "shuffle-issuer-key"):
        blind_rsa.blind(modulus, bytes(32))
    if modulus:
        changed = tmp_path / "changed.toml"
        changed.write_text(poll.path.read_text().replace(poll.task.issuer_key.hex(), modulus.hex()))
        with refuses(InvalidArgument, "shuffle-issuer-key"):
            Task.load(changed)


def test_a_key_with_small_factors_takes_more_tries() -> None:
    """Such a key is the issuer's own fault. The device draws again what has no inverse."""
    number = 2**2047 + 1
    number += -number % 1155
    number += 1155 * (number % 2 == 0)
    modulus = number.to_bytes(256, "big")
    for _ in range(20):
        assert math.gcd(int.from_bytes(TicketRequest.made(modulus, bytes(32)).blinded, "big"), number) == 1


def test_a_key_has_a_sensible_length() -> None:
    for bits in (1024, 2047, 2050, 8192):
        with refuses(InvalidArgument, "shuffle-issuer-key"):
            blind_rsa.generate(bits)


# --- nobody can tell whose ticket it is -----------------------------------------------------------------------


def any_ticket_can_be_of_any_request(people: int = 4) -> None:
    """For each pair of what the issuer saw and what the shuffler saw there is one blinding factor that explains it.

    The factor is drawn uniformly, so both pairings of two people are equally likely: the views are exchangeable.
    """
    private = signer()
    modulus, number = private.modulus, int.from_bytes(private.modulus, "big")
    requests = [TicketRequest.made(modulus, bytes(32)) for _ in range(people)]
    at_the_issuer = [(one.blinded, blind_rsa.blind_sign(private, one.blinded)) for one in requests]
    at_the_shuffler = [one.signed(signature) for one, (_, signature) in zip(requests, at_the_issuer, strict=True)]
    for seen, answered in at_the_issuer:
        for one in at_the_shuffler:
            signature = int.from_bytes(one[80:], "big")
            encoded = pow(signature, blind_rsa.EXPONENT, number).to_bytes(len(modulus), "big")
            factor = int.from_bytes(answered, "big") * pow(signature, -1, number) % number
            assert 0 < factor < number, "no factor explains this pair"
            assert math.gcd(factor, number) == 1, "no factor explains this pair"
            explained = blind_rsa.blind_by(modulus, encoded, factor)
            assert explained.sent == seen, "no factor explains this pair"
            message = admission.message_of(one[16:80], bytes(32))
            assert blind_rsa.finalize(modulus, message, answered, explained.inverse) == one[80:]
    seen_by_both = {blinded for blinded, _ in at_the_issuer}
    encodings = {pow(int.from_bytes(one[80:], "big"), 65537, number).to_bytes(256, "big") for one in at_the_shuffler}
    assert len(seen_by_both) == people, "a blinded message repeats"
    assert not seen_by_both & encodings, "a message is sent as it is"


def every_factor_is_as_likely_as_any_other() -> None:
    """All of a byte's values, each once: below 187 = 11·17 each number that has an inverse is drawn once."""
    drawn = iter(range(256))
    before, blind_rsa.random_integer = blind_rsa.random_integer, lambda bits: next(drawn)
    found: Counter[int] = Counter()
    try:
        while True:
            found[blind_rsa._unit(187)] += 1
    except (StopIteration, RuntimeError):
        pass
    finally:
        blind_rsa.random_integer = before
    assert found == Counter(one for one in range(187) if math.gcd(one, 187) == 1), "some factors are likelier"


def a_blinded_message_is_uniform() -> None:
    """With a small modulus: over all factors, each blinded message comes once, whatever the message is."""
    units = [one for one in range(187) if math.gcd(one, 187) == 1]
    for plain in units:
        sent = [blind_rsa.blind_by(b"\xbb", bytes([plain]), factor).sent[0] for factor in units]
        assert sorted(sent) == units, "what is sent depends on the message"


def test_the_issuer_and_the_shuffler_together_cannot_tell_two_people_apart() -> None:
    any_ticket_can_be_of_any_request()
    every_factor_is_as_likely_as_any_other()
    a_blinded_message_is_uniform()


def test_an_answer_with_another_key_is_refused(poll: Poll) -> None:
    """A key for each person would tell them apart: the client accepts the task's only."""
    request = TicketRequest.made(poll.task.issuer_key, poll.task.hash)
    right = blind_rsa.blind_sign(signer(), request.blinded)
    with refuses(InvalidArgument, "shuffle-issuer-answer"):
        request.signed(blind_rsa.blind_sign(signer(), (5).to_bytes(256, "big")))
    for wrong in (b"", right[:-1], right + b"\0", bytes(256), right[:-1] + bytes([right[-1] ^ 1])):
        with refuses(InvalidArgument, "shuffle-issuer-answer"):
            request.signed(wrong)
    assert admission.accepted(request.signed(right), poll.task.issuer_key, poll.task.hash)


# --- tickets at the shuffler ----------------------------------------------------------------------------------


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


# --- the issuer -----------------------------------------------------------------------------------------------


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


# --- the client -----------------------------------------------------------------------------------------------


@pytest.fixture
def answers(poll: Poll, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[bytes]]:
    """An issuer without a network, which may answer something else."""

    def play(*codes: int, voucher: str = "") -> list[bytes]:
        at, left, asked = an_issuer(poll, voucher), list(codes), list[bytes]()

        def post(url: str, *, content: bytes, headers: dict[str, str]) -> httpx.Response:
            assert url.endswith("/v1/admit")
            asked.append(content)
            code = left.pop(0) if left else 0
            if code:
                return httpx.Response(code)
            said = at.admit(headers["Authorization"].removeprefix("Bearer "), content)
            return httpx.Response({"signed": 200, "used": 409, "malformed": 400}[said.outcome], content=said.signature)

        monkeypatch.setattr(httpx, "post", post)
        monkeypatch.setattr(client.time, "sleep", lambda seconds: None)
        return asked

    return play


def test_a_client_gets_its_ticket(poll: Poll, answers: Callable[..., list[bytes]], tmp_path: Path) -> None:
    voucher, kept = admission.new_voucher(), tmp_path / "request"
    asked = answers(500, 503, voucher=voucher)
    first = Client.admitted(poll.task, voucher, save=kept)
    assert len(set(asked)) == 1  # the same bytes, as often as it takes
    assert kept.stat().st_mode & 0o777 == 0o600
    request = TicketRequest.load(kept, poll.task.issuer_key, poll.task.hash)
    assert Client.admitted(poll.task, voucher, request)._token == first._token
    assert request.drawn.hex() not in repr(request)
    assert str(request.inverse) not in repr(request)
    with refuses(NotAllowed, "shuffle-voucher-used"):
        Client.admitted(poll.task, voucher)
    with refuses(InvalidArgument, "shuffle-not-accepted"):
        Client.admitted(poll.task, admission.new_voucher())
    with refuses(InvalidArgument, "shuffle-not-accepted"):
        Client.admitted(poll.task, "Ada")
    with refuses(InvalidArgument, "file-exists"):
        Client.admitted(poll.task, voucher, save=kept)
    kept.write_text("{}")
    with refuses(InvalidArgument, "file-not-readable"):
        TicketRequest.load(kept, poll.task.issuer_key, poll.task.hash)
    answers(*[500] * 5, voucher=voucher)
    with pytest.raises(ServiceUnavailable):
        Client.admitted(poll.task, voucher)
    answers(200, voucher=voucher)  # an empty answer
    with refuses(InvalidArgument, "shuffle-issuer-answer"):
        Client.admitted(poll.task, voucher)


def a_request_is_for_one_task(folder: Path) -> None:
    """Another task's issuer would sign it too, and its voucher would be lost."""
    modulus, own, other = signer().modulus, bytes(32), bytes(31) + b"1"
    TicketRequest.made(modulus, own).save(folder / "request")
    TicketRequest.load(folder / "request", modulus, own)
    with refuses(InvalidArgument, "file-not-readable"):
        TicketRequest.load(folder / "request", modulus, other)
    names = {admission.request_file(folder / "poll.toml", task, "ab" * 16) for task in (own, other)}
    assert len(names) == 2


def test_a_request_is_for_one_task(tmp_path: Path) -> None:
    a_request_is_for_one_task(tmp_path)


def a_report_with_a_voucher_is_drawn_once(poll: Poll) -> None:
    """If the shuffler does not answer, the next try sends the same bytes. In the end no file is left."""
    voucher, others, task, sent = admission.new_voucher(), admission.new_voucher(), poll.task, list[bytes]()
    at, codes = an_issuer(poll, voucher, others), [500] * 5 + [200]

    def post(address: str, path: str, token: str, content: bytes, name: str) -> tuple[int, bytes]:
        if name == "issuer":
            return 200, at.admit(token, content).signature
        sent.append(content)
        if (code := codes.pop(0)) == 500:
            raise ServiceUnavailable("")
        return code, b""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "_post", post)
        for _ in range(5):
            with pytest.raises(ServiceUnavailable):
                report._report_with(poll.path, task, voucher, CHOICES[0])
        files = [*poll.path.parent.glob("*.ticket"), *poll.path.parent.glob("*.report")]
        assert len(files) == 2
        assert {one.stat().st_mode & 0o777 for one in files} == {0o600}
        report._report_with(poll.path, task, voucher, CHOICES[1])
        assert len(set(sent)) == 1, "a report is drawn again"
        assert not any(one.exists() for one in files)
        codes += [409]  # as after a lost answer: nothing is left that links a person to a ticket
        with refuses(NotAllowed, "shuffle-reported-already"):
            report._report_with(poll.path, task, others, CHOICES[1])
        assert not [*poll.path.parent.glob("*.ticket"), *poll.path.parent.glob("*.report")]


def test_a_report_with_a_voucher_is_drawn_once(poll: Poll) -> None:
    a_report_with_a_voucher_is_drawn_once(poll)


def test_a_ticket_can_be_had_before_the_report(poll: Poll, answers: Callable[..., list[bytes]], capsys) -> None:
    voucher = admission.new_voucher()
    asked = answers(voucher=voucher)
    ticket_command.ticket(poll.path, f" {voucher.upper()}\n")
    own = bytes.fromhex(capsys.readouterr().out)
    assert poll.shuffler().accept([upload(poll.task, own)]) == ["accepted"]
    assert len(asked) == 1
    assert not [*poll.path.parent.glob("*.ticket")]


def test_every_person_sends_the_same_number_of_bytes(poll: Poll) -> None:
    made = [TicketRequest.made(poll.task.issuer_key, poll.task.hash) for _ in range(50)]
    assert {len(one.blinded) for one in made} == {256}
    assert {len(ticket(poll.task)) for _ in range(5)} == {336} == {poll.task.shape.token}


@pytest.mark.slow
def test_people_vote_with_vouchers(tmp_path: Path, monkeypatch, capsys) -> None:
    """From `discreet shuffle init --admission` to the counts, through three services."""
    from discreet.cli import main

    def run(*arguments: object) -> tuple[int, str]:
        with pytest.raises(SystemExit) as caught:
            main(["shuffle", *map(str, arguments)])
        said = capsys.readouterr()
        return caught.value.code or 0, said.out + said.err

    monkeypatch.chdir(tmp_path)
    small = ("--clients", 12, "--epsilon", 8, "--delta", 0.01, "--choices", "IL,US,DE")
    status, said = run("init", "poll.toml", *small, "--admission")
    assert (status, "poll.issuer.key: for the issuer only." in said) == (0, True)
    assert len(Task.load(Path("poll.toml")).issuer_key) == blind_rsa.USUAL // 8
    status, listed = run("vouchers", "poll.toml", 12)
    Path("people.txt").write_text(listed)
    files = files_of(tmp_path / "poll.toml")
    poll = Poll(tmp_path / "poll.toml", str(files.shuffler_store), str(files.analyzer_store), str(files.ledger))
    port = free_port()
    analyzer = serve(poll, "analyzer", tmp_path / "analyzer.log", port=port)
    shuffler = serve(poll, "shuffler", tmp_path / "shuffler.log", "--analyzer", f"http://127.0.0.1:{port}")
    signs = serve(
        replace(poll, analyzer_at=str(files.issuer_store)), "issuer", tmp_path / "issuer.log", "--people", "people.txt"
    )
    try:
        text = poll.path.read_text().replace("http://127.0.0.1:7002", shuffler.url)
        text = text.replace("http://127.0.0.1:7003", signs.url)
        poll.path.write_text(text.replace("http://127.0.0.1:7001", analyzer.url))
        people = listed.split()
        for number, voucher in enumerate(people):
            status, said = run("report", "poll.toml", ("IL", "US", "DE")[number % 3], "--voucher", voucher)
            assert (status, "Your report was taken." in said) == (0, True), said
        assert not list(tmp_path.glob("*.ticket"))
        status, said = run("report", "poll.toml", "IL", "--voucher", people[0])
        assert (status != 0, "shuffle-voucher-used" in said) == (True, True)
        assert run("report", "poll.toml", "IL")[0] != 0
        status, said = run("close", "poll.toml")
        assert (status, "12 reports" in said) == (0, True)
    finally:
        for service in (analyzer, shuffler, signs):
            service.stop()


# --- seeded bugs ----------------------------------------------------------------------------------------------


def _in_a_new_poll(check: Callable[[Poll], None]) -> Callable[[Path], None]:
    return lambda folder: check(make_poll(folder, admission_by=signer()))


def a_wrong_signature_is_not_handed_out(folder: Path) -> None:
    test_a_fault_of_the_machine_gives_nothing_away()


def views_are_exchangeable(folder: Path) -> None:
    test_the_issuer_and_the_shuffler_together_cannot_tell_two_people_apart()


FORGED, ELSEWHERE, BOUND, ONCE, VOUCHERS, MALFORMED, DRAWN = map(
    _in_a_new_poll,
    (
        a_forged_ticket_is_malformed,
        a_ticket_of_another_task_is_malformed,
        a_report_is_bound_to_its_ticket,
        a_ticket_counts_once,
        a_voucher_is_good_for_one_ticket,
        what_is_malformed_does_not_use_up_a_voucher,
        a_report_with_a_voucher_is_drawn_once,
    ),
)
MUTANTS: dict[str, tuple[Any, str, str, str, Callable[[Path], None]]] = {
    "a signature that is not verified": (
        admission, "accepted", "or not blind_rsa.verify(modulus, message, ticket[_DRAWN.stop :])", "", FORGED),
    "a ticket of any task": (
        admission, "message_of", 'b"admission" + task +', 'b"admission" + bytes(32) +', ELSEWHERE),
    "a request of any task": (
        admission, "request_file", "task, voucher", "voucher", a_request_is_for_one_task),
    "a report that is drawn again": (
        report, "_report_with", 'client.send(bytes.fromhex(sealed.read_text("ascii")))', "client.report(value)",
        DRAWN),
    "a nullifier from the signature": (admission, "accepted", "CLIENT], message)", "CLIENT], ticket)", ONCE),
    "a name of one's own choice": (
        admission, "accepted", "ticket[:CLIENT] != client_of(message) or", "", BOUND),
    "a voucher for many tickets": (issuer.IssuerStore, "use", "== blinded", "!= b''", VOUCHERS),
    "a voucher that is not known": (
        issuer.Issuer, "admit", "if name not in self._known:", "if not name:", VOUCHERS),
    "a voucher bound to nothing": (
        issuer.Issuer, "admit", "hashlib.sha256(blinded).digest()", "bytes(32)", VOUCHERS),
    "what is not below n is signed": (
        blind_rsa, "check_blinded", "< number", "< 256 ** len(modulus)", MALFORMED),
    "zero and multiples of a factor are signed": (
        blind_rsa, "check_blinded", "not 0 < asked < number or math.gcd(asked, number) != 1", "asked >= number",
        MALFORMED),
    "a signature that is not checked": (
        blind_rsa, "blind_sign", "!= asked", "!= pow(signature, EXPONENT, number)",
        a_wrong_signature_is_not_handed_out),
    "a message that is not blinded": (blind_rsa, "blind", "_unit(number))", "1)", views_are_exchangeable),
    "a factor that is likelier": (
        blind_rsa, "_unit", "if 0 < drawn < number and", "drawn %= number\n        if 0 < drawn and",
        views_are_exchangeable),
    "a factor without an inverse": (
        blind_rsa, "_unit", " and math.gcd(drawn, number) == 1", "", views_are_exchangeable),
}  # fmt: skip


@pytest.mark.some_quick(3)
@pytest.mark.parametrize("name", MUTANTS)
def test_a_seeded_bug_is_seen(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, function, right, wrong, check = MUTANTS[name]
    source = inspect.cleandoc("\n" + inspect.getsource(getattr(owner, function)))
    assert source.count(right) >= 1, f"{right!r} is not in {function}"
    home = owner if isinstance(owner, ModuleType) else inspect.getmodule(owner)
    made: dict[str, Any] = {}
    text = f"from __future__ import annotations\n{source.replace(right, wrong)}"
    exec(compile(text, name, "exec"), vars(home), made)
    check(tmp_path)  # it passes without the bug
    monkeypatch.setattr(owner, function, made[function])
    planted = tmp_path / "planted"
    planted.mkdir()
    with pytest.raises((AssertionError, ValueError, DiscreetError, pytest.fail.Exception)):
        check(planted)
