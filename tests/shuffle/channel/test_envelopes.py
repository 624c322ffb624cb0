"""Envelopes: HPKE as another implementation has it, bound to the task and the client, all of one length."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import shuffle
from discreet.errors import InvalidArgument
from discreet.shuffle.bit_sums import bit_sum
from discreet.shuffle.channel import keys, wire
from discreet.shuffle.channel.client import Client, uploads
from discreet.shuffle.channel.opening import Openers
from discreet.shuffle.channel.services import service
from discreet.shuffle.channel.task import Task, canonical
from discreet.shuffle.histograms import METHODS, histogram

from ...refusing import refuses
from .polls import CHOICES, EMPTY, make_poll

PRIVATE = bytes(range(32))


def another_suite():
    pyhpke = pytest.importorskip("pyhpke", reason="an independent HPKE: pip install pyhpke")
    return pyhpke.CipherSuite.new(
        pyhpke.KEMId.DHKEM_X25519_HKDF_SHA256, pyhpke.KDFId.HKDF_SHA256, pyhpke.AEADId.AES128_GCM
    )


@given(message=st.binary(max_size=200), info=st.binary(max_size=100))
def test_we_open_what_another_implementation_seals(message: bytes, info: bytes) -> None:
    suite = another_suite()
    enc, sender = suite.create_sender_context(suite.kem.deserialize_public_key(keys.public_of(PRIVATE)), info=info)
    assert keys.open_seal(enc + sender.seal(message), PRIVATE, info) == message


@given(message=st.binary(max_size=200), info=st.binary(max_size=100))
def test_another_implementation_opens_what_we_seal(message: bytes, info: bytes) -> None:
    suite = another_suite()
    sealed = keys.seal(message, keys.public_of(PRIVATE), info)
    recipient = suite.create_recipient_context(sealed[:32], suite.kem.deserialize_private_key(PRIVATE), info=info)
    assert recipient.open(sealed[32:]) == message


def test_what_was_changed_or_is_bound_elsewhere_does_not_open() -> None:
    sealed = keys.seal(b"yes", keys.public_of(PRIVATE), b"here")
    assert keys.open_seal(sealed, PRIVATE, b"here") == b"yes"
    assert keys.open_seal(sealed, PRIVATE, b"there") is None
    assert keys.open_seal(sealed, PRIVATE[::-1], b"here") is None
    for place in range(len(sealed)):
        changed = bytearray(sealed)
        changed[place] ^= 1
        assert keys.open_seal(bytes(changed), PRIVATE, b"here") is None
    for length in range(len(sealed)):
        assert keys.open_seal(sealed[:length], PRIVATE, b"here") is None
    assert keys.open_seal(bytes(80), PRIVATE, b"here") is None  # a point of low order


@pytest.mark.parametrize(
    ("protocol", "values"),
    [
        (histogram(choices=[*"abc", "d" * 1000], clients=300, epsilon=1, delta=1e-6), [*"abc", "d" * 1000]),
        (histogram(choices=range(300), clients=3000, epsilon=2, delta=1e-6), [0, 1, 255, 256, 299]),
        (bit_sum(clients=300, epsilon=1, delta=1e-6), [0, 1]),
        (bit_sum(clients=2000, epsilon=1, delta=1e-6, method="two messages"), [0, 1]),
    ],
)
def test_every_answer_has_one_length(protocol, values) -> None:
    task = Task(
        description=json.loads(json.dumps(protocol.described())),
        epsilon=2,
        delta=1e-6,
        shuffler_key=keys.public_of(PRIVATE),
        analyzer_key=keys.public_of(PRIVATE[::-1]),
    )
    token = keys.token_for(bytes(32), task.hash)
    client = Client(task, token)
    lengths = {len(client.sealed(value)) for value in values for _ in range(5)}
    assert lengths == {task.shape.report}
    opened = keys.open_seal(client.sealed(values[-1]), PRIVATE, wire.outer(task.hash, token[:16]))
    assert len(opened) == protocol.messages * (48 + protocol.length)


@pytest.mark.slow
def test_every_request_has_one_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    poll, seen = make_poll(tmp_path), []

    def post(url, **given):
        request = httpx.Client().build_request("POST", url, **given)
        seen.append((request.method, str(request.url), len(request.content), sorted(map(len, request.headers.raw[0]))))
        seen[-1] += (sum(len(name) + len(value) for name, value in request.headers.raw),)
        return httpx.Response(200)

    monkeypatch.setattr(httpx, "post", post)
    for value in CHOICES * 3:
        Client(poll.task, poll.token()).report(value)
    assert len(seen) == 9
    assert len(set(map(str, seen))) == 1


def test_a_report_opens_for_its_client_and_its_task_only(tmp_path: Path) -> None:
    poll = make_poll(tmp_path)
    task, secret = poll.task, poll.issuer
    token, report = poll.exact(1, 0)
    assert keys.open_seal(report, secret.outer, wire.outer(task.hash, token[:16])) is not None
    assert keys.open_seal(report, secret.outer, wire.outer(task.hash, poll.token(2)[:16])) is None
    less_noise = replace(task, description=task.description | {"fakes": 0.01})
    assert less_noise.hash != task.hash
    assert keys.open_seal(report, secret.outer, wire.outer(less_noise.hash, token[:16])) is None


def test_whatever_weakens_a_task_changes_its_hash(tmp_path: Path) -> None:
    task = make_poll(tmp_path).task
    changes = [
        {"description": task.description | change}
        for change in (
            {"fakes": 0.98},
            {"minimum": 9},
            {"honest": 0.9},
            {"choices": ["a", "b", "c"]},
            {"clients": 9999},
        )
    ]
    changes += [{"epsilon": 7.0}, {"delta": 0.04}, {"shuffler_key": bytes(32)}, {"analyzer_key": bytes(32)}]
    hashes = {replace(task, **change).hash for change in changes}
    assert len(hashes | {task.hash}) == len(changes) + 1
    assert replace(task, shuffler="http://elsewhere").hash == task.hash
    assert Task.load(tmp_path / "poll.toml").hash == task.hash


CHOICES_OF_ALL_KINDS = ['"quoted"', "חיפה 🙂", "\x7f\t\\", "plain"]


@pytest.mark.some_quick(4)
@pytest.mark.parametrize("method", [*METHODS, "bit", "two bits"])
def test_every_protocol_travels_in_a_task_file(method: str, tmp_path: Path) -> None:
    """Choices with quotes, in other scripts and with signs come back as they were."""
    terms = {"clients": 3000, "epsilon": 2, "delta": 1e-6, "honest": 0.8}
    if method in METHODS:
        protocol = shuffle.histogram(choices=CHOICES_OF_ALL_KINDS, method=method, **terms)
    else:
        protocol = shuffle.bit_sum(method="response" if method == "bit" else "two messages", **terms)
    task = Task(description=protocol.described(), epsilon=2, delta=1e-6, shuffler_key=bytes(32), analyzer_key=bytes(32))
    task.save(tmp_path / "task.toml")
    again = Task.load(tmp_path / "task.toml")
    assert again.protocol == protocol
    assert again.hash == task.hash


def test_a_client_refuses_a_task_that_does_not_keep_its_promise(tmp_path: Path) -> None:
    path = make_poll(tmp_path).path
    path.write_text(path.read_text().replace("fakes = 0.99", "fakes = 0.01"))
    with refuses(InvalidArgument, "shuffle-promise-not-kept"):
        Task.load(path)


def test_the_error_of_an_answer_does_not_hold_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    poll = make_poll(tmp_path)

    def refuse(self, value):
        raise InvalidArgument(f"{value} is not allowed")

    monkeypatch.setattr(type(poll.task.protocol), "encode", refuse)
    with refuses(InvalidArgument, "unknown-answer") as caught:
        Client(poll.task, poll.token()).sealed("my secret")
    assert "my secret" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_client_refuses_an_answer_that_is_none(tmp_path: Path) -> None:
    poll = make_poll(tmp_path)
    for answer in ("my secret", None, ["my secret"], 10**5000):
        with refuses(InvalidArgument, "unknown-answer"):
            Client(poll.task, poll.token()).sealed(answer)


def test_a_client_can_say_what_is_promised_and_who_is_trusted(tmp_path: Path) -> None:
    told = make_poll(tmp_path).task.promise
    for part in ("ε = 8, δ = 0.05", "127.0.0.1:7002", "127.0.0.1:7001", "they learn your answer", "8 of 10 clients"):
        assert part in told
    response = shuffle.bit_sum(clients=40, epsilon=8, delta=0.05)
    (tmp_path / "bit").mkdir()
    left = make_poll(tmp_path / "bit", description=response.described()).task.promise
    assert f"{response.if_they_collude} is left" in left


@pytest.mark.parametrize(("name", "value"), [("clients", 10**18), ("minimum", 10**30), ("fakes", 10**12)])
def test_a_task_that_would_fill_the_memory_is_refused(tmp_path: Path, name: str, value: int) -> None:
    path = make_poll(tmp_path).path
    lines = [f"{name} = {value}" if line.startswith(f"{name} =") else line for line in path.read_text().splitlines()]
    lines = ["clients = 1" + "0" * 18 if line.startswith("clients") else line for line in lines]
    path.write_text("\n".join(lines))
    with refuses(InvalidArgument, "too-large"):
        Task.load(path)


def test_a_lack_of_memory_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Task) -> None:
        raise MemoryError

    path = make_poll(tmp_path).path
    monkeypatch.setattr(Task, "check", full)
    with refuses(InvalidArgument, "shuffle-task-unreadable"):
        Task.load(path)


@pytest.mark.parametrize("name", ["operator", "registration", "nullifiers", "storage", "outer"])
def test_a_key_file_with_an_empty_secret_is_refused(tmp_path: Path, name: str) -> None:
    """An empty operator would make everybody the operator, an empty registration everybody a client."""
    keys.ShufflerKeys.made().save(tmp_path / "k")
    lines = (tmp_path / "k").read_text().splitlines()
    (tmp_path / "k").write_text("\n".join(f'{name} = ""' if line.startswith(name) else line for line in lines))
    with refuses(InvalidArgument, "shuffle-wrong-keys"):
        keys.ShufflerKeys.load(tmp_path / "k")
    other = keys.AnalyzerKeys.made()
    other.save(tmp_path / "a")
    (tmp_path / "a").write_text((tmp_path / "a").read_text().replace(other.operator.hex(), ""))
    with refuses(InvalidArgument, "shuffle-wrong-keys"):
        keys.AnalyzerKeys.load(tmp_path / "a")


def test_nobody_is_the_operator_of_an_empty_secret() -> None:
    for headers in ([(b"authorization", b"Bearer ")], []):
        assert not service.Request({"headers": headers}, None).is_from(b"")


def test_secrets_do_not_print_and_files_are_the_owners_alone(tmp_path: Path) -> None:
    made = keys.ShufflerKeys.made()
    assert made.outer.hex() not in repr(made)
    assert "outer" not in repr(made)
    made.save(tmp_path / "k")
    assert (tmp_path / "k").stat().st_mode & 0o777 == 0o600
    assert keys.ShufflerKeys.load(tmp_path / "k") == made
    with refuses(InvalidArgument, "file-exists"):
        made.save(tmp_path / "k")
    keys.forget(tmp_path / "k", "outer", "storage", "nullifiers")
    left = keys.ShufflerKeys.load(tmp_path / "k")
    assert (left.outer, left.storage, left.registration) == (b"", b"", made.registration)
    assert (tmp_path / "k").stat().st_mode & 0o777 == 0o600
    (tmp_path / "k").chmod(0o644)
    with refuses(InvalidArgument, "shuffle-keys-exposed"):
        keys.ShufflerKeys.load(tmp_path / "k")


def test_tokens_are_for_one_task() -> None:
    registration, task = bytes(32), bytes([1]) * 32
    token = keys.token_for(registration, task)
    assert keys.client_of(token, registration, task) == token[:16]
    assert keys.client_of(token, registration, bytes(32)) is None
    assert keys.client_of(token, PRIVATE, task) is None
    assert keys.client_of(token[:-1], registration, task) is None
    assert keys.client_of(token[:-1] + bytes([token[-1] ^ 1]), registration, task) is None


@given(blob=st.binary(max_size=300), reports=st.integers(0, 2**63))
def test_a_batch_of_another_shape_is_refused(blob: bytes, reports: int) -> None:
    shape, task = wire.MessageSizes(2, 1), bytes(32)
    batch = wire.Batch(task, reports, wire.digest(task, reports, blob), blob)
    if len(blob) == reports * 2 * 49:
        assert wire.unpack_batch(wire.pack_batch(batch), shape) == batch
    else:
        with pytest.raises(wire.Malformed):
            wire.unpack_batch(wire.pack_batch(batch), shape)


def test_a_changed_batch_is_refused() -> None:
    shape, task, blob = wire.MessageSizes(1, 1), bytes(32), bytes(98)
    whole = wire.pack_batch(wire.Batch(task, 2, wire.digest(task, 2, blob), blob))
    assert wire.unpack_batch(whole, shape).reports == 2
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1
        with pytest.raises(wire.Malformed):
            wire.unpack_batch(bytes(changed), shape)


def test_many_uploads_are_those_of_single_clients(tmp_path: Path) -> None:
    poll = make_poll(tmp_path)
    tokens = [poll.token(number) for number in range(20)]
    data = uploads(poll.task, tokens, [CHOICES[number % 3] for number in range(20)])
    width = poll.task.shape.upload
    assert len(data) == 20 * width
    assert [data[place : place + 48] for place in range(0, len(data), width)] == tokens
    opened = Openers(1).reports(
        [
            (data[place + 48 : place + width], wire.outer(poll.task.hash, data[place : place + 16]))
            for place in range(0, len(data), width)
        ],
        poll.issuer.outer,
    )
    assert None not in opened


@pytest.mark.slow
def test_processes_open_as_one_does(tmp_path: Path) -> None:
    task = make_poll(tmp_path).task
    info, sealed = wire.inner(task.hash), []
    for number in range(1500):
        sealed.append(keys.seal(bytes([number % 4]), keys.public_of(PRIVATE), info if number % 5 else b"elsewhere"))
    openers = Openers(2)
    try:
        plain = openers.messages(b"".join(sealed), 49, PRIVATE, info)
        assert openers._pool is not None
    finally:
        openers.close()
    assert plain == bytes(number % 4 for number in range(1500) if number % 5)
    assert (np.bincount(np.frombuffer(plain, dtype=np.uint8)) == 300).all()


def test_canonical_is_one_way_of_writing() -> None:
    assert canonical({"b": [1, "ε"], "a": 0.5}) == b'{"a":0.5,"b":[1,"\\u03b5"]}'
    assert EMPTY == 3
