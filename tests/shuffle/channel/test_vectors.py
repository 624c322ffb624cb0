"""The published vectors: Python opens what they hold, and still writes the bytes that they hold."""

from __future__ import annotations

import hashlib
import hmac
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

import discreet as dp
from discreet.errors import InvalidArgument
from discreet.shuffle.channel import keys, wire
from discreet.shuffle.channel.task import Task
from discreet.shuffle.protocol import KINDS

from ...refusing import refuses

FOLDER = Path(__file__).parents[2] / "vectors"
POLLS: dict[str, Any] = json.loads((FOLDER / "polls.json").read_text())
SURVEYS: list[dict[str, Any]] = json.loads((FOLDER / "surveys.json").read_text())["surveys"]
_spec = importlib.util.spec_from_file_location("vectors_make", FOLDER / "make.py")
make = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make)


def test_the_files_are_what_is_made() -> None:
    assert (FOLDER / "polls.json").read_text() == make.written(make.polls(make.kept_polls()))
    assert (FOLDER / "surveys.json").read_text() == make.written(make.surveys())


def test_every_kind_has_a_vector() -> None:
    kinds = {json.loads(one["task"])["protocol"]["kind"] for one in POLLS["polls"]}
    assert kinds == {kind for kind, protocol in KINDS.items() if protocol.__module__.startswith("discreet.")}
    found = [json.loads(one["task"])["survey"] for one in SURVEYS]
    assert {one["kind"] for one in found} == {"choices", "numbers", "text", "mean", "sketch", "prefixes", "rows"}
    methods = {one["oracle"]["method"] for one in found if "oracle" in one}
    assert methods == {"direct", "unary", "subset", "hashing", "hadamard", "projective"}


@pytest.mark.parametrize("vector", POLLS["polls"], ids=lambda one: json.loads(one["task"])["protocol"]["kind"])
def test_a_report_opens(vector: dict[str, Any]) -> None:
    data, token = vector["task"].encode(), bytes.fromhex(vector["token"])
    task = Task.from_bytes(data)
    assert task.canonical == data
    assert task.hash.hex() == vector["hash"] == hashlib.sha256(data).hexdigest()
    client = keys.client_of(token, bytes.fromhex(POLLS["registration"]), task.hash)
    assert client == token[:16]
    assert wire.outer(task.hash, client).hex() == vector["outer_info"]
    assert wire.inner(task.hash).hex() == vector["inner_info"]
    report = bytes.fromhex(vector["report"])
    assert len(report) == task.shape.report
    inside = keys.open_seal(report, bytes.fromhex(POLLS["shuffler_private"]), wire.outer(task.hash, client))
    width = task.shape.message
    parts = [inside[start : start + width] for start in range(0, len(inside), width)]
    private, info = bytes.fromhex(POLLS["analyzer_private"]), wire.inner(task.hash)
    plain = b"".join(keys.open_seal(one, private, info) for one in parts)
    assert plain.hex() == vector["packed"]
    assert task.protocol.unpacked(plain).tolist() == vector["messages"]
    assert len(task.protocol.encode(vector["value"])) == len(vector["messages"])


@pytest.mark.parametrize("vector", SURVEYS, ids=lambda one: one["name"])
def test_a_survey_is_read_and_written_again(vector: dict[str, Any]) -> None:
    data = vector["task"].encode()
    assert hashlib.sha256(data).hexdigest() == vector["hash"]
    survey = dp.local.from_task(data, memory={})
    assert dp.local.task(survey) == data
    json.dumps(survey.encode(vector["value"]))  # a report is plain JSON


CHANGED = (
    b"",
    b"[]",
    b"\xff",
    POLLS["polls"][0]["task"].replace('"minimum"', ' "minimum"').encode(),  # the same JSON in other bytes
    POLLS["polls"][0]["task"].replace("shuffle/v1", "shuffle/v2").encode(),
    POLLS["polls"][0]["task"].replace('"messages":1', '"messages":2').encode(),
    POLLS["polls"][0]["task"].replace('"epsilon":1.0', '"epsilon":1').encode(),
    POLLS["polls"][0]["task"].replace('"length":1', '"length":1,"more":1').encode(),
    b"[" * 100_000,
)


@pytest.mark.parametrize("data", CHANGED, ids=range(len(CHANGED)))
def test_other_bytes_are_no_task(data: bytes) -> None:
    with refuses(InvalidArgument, "shuffle-task-unreadable"):
        Task.from_bytes(data)


def test_a_task_with_less_noise_is_refused() -> None:
    task = POLLS["polls"][0]["task"].replace('"lie":0.031', '"lie":0.0001').encode()
    with refuses(InvalidArgument, "shuffle-promise-not-kept"):
        Task.from_bytes(task)


# --- docs/reference/wire.md, read by somebody who has only the page -----------------------------------------------


@pytest.mark.parametrize("vector", POLLS["polls"], ids=lambda one: json.loads(one["task"])["protocol"]["kind"])
def test_the_page_is_enough_to_open_a_report(vector: dict[str, Any]) -> None:
    pyhpke = pytest.importorskip("pyhpke", reason="an implementation of HPKE that is not ours")
    suite = pyhpke.CipherSuite.new(
        pyhpke.KEMId.DHKEM_X25519_HKDF_SHA256, pyhpke.KDFId.HKDF_SHA256, pyhpke.AEADId.AES128_GCM
    )

    def opened(sealed: bytes, private: str, info: bytes) -> bytes:
        key = suite.kem.deserialize_private_key(bytes.fromhex(private))
        return suite.create_recipient_context(sealed[:32], key, info=info).open(sealed[32:])

    task, name = json.loads(vector["task"]), hashlib.sha256(vector["task"].encode()).digest()
    client, tag = bytes.fromhex(vector["token"])[:16], bytes.fromhex(vector["token"])[16:]
    registration = bytes.fromhex(POLLS["registration"])
    assert tag == hmac.digest(registration, b"discreet/shuffle/v1/token|" + name + client, "sha256")
    report = bytes.fromhex(vector["report"])
    width, count = 48 + task["length"], task["messages"]
    assert len(report) == 48 + count * width
    inside = opened(report, POLLS["shuffler_private"], b"discreet/shuffle/v1/outer" + name + client)
    messages = [
        int.from_bytes(
            opened(
                inside[width * place : width * (place + 1)],
                POLLS["analyzer_private"],
                b"discreet/shuffle/v1/inner" + name,
            ),
            "big",
        )
        for place in range(count)
    ]
    assert messages == vector["messages"]
    assert all(message < alphabet(task["protocol"]) for message in messages)


def alphabet(protocol: dict[str, Any]) -> int:
    """One more than the largest message, as the page has it."""
    choices = len(protocol.get("choices", ()))
    return {
        "bit sum": 2,
        "bit sum in two messages": 2,
        "histogram by response": choices,
        "histogram with fakes": choices + 1,
        "histogram by parallel sums": 2 * choices,
        "hashed histogram": protocol.get("rows", 0) * protocol.get("buckets", 0) + 1,
        "sum by digits": 2 * len(protocol.get("lies", ())),
        "sum by split and mix": 2 ** protocol.get("bits", 0),
    }[protocol["kind"]]


def test_a_cell_is_that_of_the_page() -> None:
    [vector] = [one for one in POLLS["polls"] if json.loads(one["task"])["protocol"]["kind"] == "hashed histogram"]
    protocol, prime = json.loads(vector["task"])["protocol"], 2**61 - 1
    rows, buckets = protocol["rows"], protocol["buckets"]
    drawn = hashlib.shake_256(f"discreet/hashed/{protocol['seed']}".encode()).digest(16 * rows)
    words = [int.from_bytes(drawn[at : at + 8], "big") % prime for at in range(0, len(drawn), 8)]
    key = int.from_bytes(hashlib.blake2b(vector["value"].encode(), digest_size=8).digest(), "big") % prime
    cells = {row * buckets + ((words[row] or 1) * key + words[rows + row]) % prime % buckets for row in range(rows)}
    assert cells & set(vector["messages"])
    made = Task.from_bytes(vector["task"].encode()).protocol
    for _ in range(20):
        assert cells & set(made.encode(vector["value"]))
