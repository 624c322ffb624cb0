"""What Python knows and a client in another language must match: exact laws, hashes, and tasks."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from math import factorial
from typing import Any
from unittest import mock

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

import discreet as dp
from discreet.exact.canonical import canonical
from discreet.guarantees.guarantee import Pure
from discreet.mechanisms.reports.bit_response import SubsetSelection, UnaryResponse
from discreet.mechanisms.reports.frequency_oracle import DirectResponse
from discreet.mechanisms.reports.geometric_response import HadamardResponse, ProjectiveResponse
from discreet.mechanisms.reports.local_hashing import LocalHashing
from discreet.mechanisms.reports.local_mean import HybridResponse, WindowResponse
from discreet.mechanisms.reports.prefix_response import PrefixResponse, SketchResponse
from discreet.shuffle.bit_sums import BitSum, TwoMessageBitSum
from discreet.shuffle.channel import keys
from discreet.shuffle.channel.task import Task
from discreet.shuffle.fakes import Fakes
from discreet.shuffle.hashed import HashedHistogram
from discreet.shuffle.histograms import ParallelSums, ResponseHistogram
from discreet.shuffle.reals import BitPlanes
from discreet.testing import exact_law

Law = Mapping[Any, Fraction]
SHUFFLER_KEY, ANALYZER_KEY = bytes([7] * 32), bytes([9] * 32)
REGISTRATION = bytes(range(32))
RFC9180 = {  # A.1.1: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM, base mode
    "info": "4f6465206f6e2061204772656369616e2055726e",
    "enc": "37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431",
    "skEm": "52c4a758a802cd8b936eceea314432798d5baf2d7e9235dc084ab1b9cfa2f736",
    "pkRm": "3948cfe0ad1ddb695d780e59077195da6c56506b027329794ab02bca80815c4d",
    "key": "4531685d41d65f03dc48f6b8302c05b0",
    "base_nonce": "56d890e5accaaf011cff4b7d",
}


def written(law: Law) -> list[str]:
    """A law as sorted text: outcomes as JSON, probabilities as fractions."""
    return sorted(
        f"{json.dumps(outcome, separators=(',', ':'))} {Fraction(mass).numerator}/{Fraction(mass).denominator}"
        for outcome, mass in law.items()
        if mass
    )


def renamed(law: Law, name: Callable[[Any], Any]) -> dict[Any, Fraction]:
    """The law of a function of the outcome."""
    found: dict[Any, Fraction] = {}
    for outcome, mass in law.items():
        found[name(outcome)] = found.get(name(outcome), Fraction(0)) + mass
    return found


# --- local reports ----------------------------------------------------------------------------------------------


def packed(places: Any, size: int) -> tuple[int, ...]:
    """A set of places as packed bits."""
    bits = np.zeros(size, dtype=bool)
    bits[list(places)] = True
    return tuple(np.packbits(bits).tolist())


def oracles() -> Iterator[tuple[str, Any, Callable[[Any], Any]]]:
    """Small oracles of each kind, and the form of their reports."""
    odds = Fraction(5, 2)
    yield "direct", DirectResponse(size=3, odds=odds), lambda report: report
    yield "direct, many digits", DirectResponse(size=4, odds=2.718281828459045), lambda report: report
    yield "unary", UnaryResponse(size=4, odds=odds), lambda bits: packed([i for i, b in enumerate(bits) if b], 4)
    yield "subset as bits", SubsetSelection(size=5, odds=odds, width=2), lambda places: packed(places, 5)
    yield "subset as a list", SubsetSelection(size=9, odds=odds, width=2), lambda places: places
    yield "hashing", LocalHashing(size=3, odds=odds, cells=2), lambda report: report
    yield "hashing of 5", LocalHashing(size=5, odds=3, cells=3), lambda report: report
    yield "hadamard", HadamardResponse(size=3, odds=odds), lambda report: report
    yield "hadamard of 6", HadamardResponse(size=6, odds=odds), lambda report: report
    yield "projective over 2", ProjectiveResponse(size=6, odds=odds, prime=2, dimension=3), lambda report: report
    yield "projective over 3", ProjectiveResponse(size=13, odds=3, prime=3, dimension=3), lambda report: report
    yield "projective over 5", ProjectiveResponse(size=4, odds=odds, prime=5, dimension=2), lambda report: report


def surveys() -> Iterator[dict[str, Any]]:
    """The exact law of a report for each value of small surveys."""
    stated = Pure(epsilon=2)
    for name, oracle, form in oracles():
        survey = dp.local.Survey(mechanism=oracle, stated=stated)
        for place, law in oracle.laws().items():
            yield _survey(f"{name}, value {place}", survey, place, renamed(law, form))
    named = dp.local.Survey(mechanism=DirectResponse(size=3, odds=2), stated=stated, choices=("never", 1, "täglich"))
    for value, law in zip(("never", True, "täglich"), named.oracle.laws().values(), strict=True):
        yield _survey(f"choice {value}", named, value, law)
    yield from _means()
    yield from _parts()


def _survey(name: str, survey: Any, value: Any, law: Law) -> dict[str, Any]:
    return {"name": name, "task": dp.local.task(survey).decode(), "value": value, "law": written(law)}


def _means() -> Iterator[dict[str, Any]]:
    coin = WindowResponse(odds=Fraction(5, 2), grid=4)
    wide = WindowResponse(outputs=6, window=2, odds=Fraction(5, 2), grid=4)
    for name, mechanism in (
        ("one coin", coin),
        ("a window", wide),
        ("hybrid", HybridResponse(wide=wide, coin=coin, share=Fraction(3, 8))),
    ):
        survey = dp.local.MeanSurvey(
            space=dp.Interval(-1, 3), mechanism=mechanism, stated=Pure(epsilon=2), method="hybrid"
        )
        for place, law in mechanism.laws().items():
            yield _survey(f"{name} at {place}", survey, place - 1, law)
        yield _survey(f"{name} above", survey, 17.5, mechanism.laws()[4])
        yield _survey(f"{name} below", survey, -1e300, mechanism.laws()[0])


def _parts() -> Iterator[dict[str, Any]]:
    """Reports of a part of a value."""
    stated = Pure(epsilon=2)
    prefix = PrefixResponse(oracle=LocalHashing(size=9, odds=2, cells=2), base=3, length=2, lengths=(1, 2))
    search = dp.local.HeavyHitters(mechanism=prefix, stated=stated, top=1, alphabet="aб")
    for text, place in (("", 0), ("a", 3), ("бa", 7), ("aбa", 5), ("xб", 0), ("бx", 6)):
        yield _survey(f"prefixes of {text!r}", search, text, renamed(prefix.laws()[place], lambda r: (r[0], *r[1])))
    sketched = SketchResponse(oracle=DirectResponse(size=4, odds=2), hashes=3, seed=5)
    sketch = dp.local.Sketch(mechanism=sketched, stated=stated)
    for text in ("", "täglich", "🜁" * 40):
        with _as_they_are("prefix_response"):
            place = sketch.places([text])
            law = exact_law(lambda place=place: sketched._draw(place)[0])
        yield _survey(f"sketch of {text[:8]!r}", sketch, text, law.law)
    rows = dp.local.Rows(
        columns={
            "city": dp.local.Survey(mechanism=DirectResponse(size=2, odds=2), stated=stated, choices=("a", "b")),
            "age": dp.local.MeanSurvey(
                space=dp.Interval(0, 4), mechanism=WindowResponse(odds=2, grid=4), stated=stated, method="duchi"
            ),
        },
        stated=Pure(epsilon=4),
    )
    city, age = rows.columns["city"].oracle.laws()[1], rows.columns["age"].mechanism.laws()[3]
    law = {
        json.dumps({"city": a, "age": b}, separators=(",", ":")): p * q
        for (a, p), (b, q) in itertools.product(city.items(), age.items())
    }
    found = _survey("rows", rows, {"city": "b", "age": 3}, {})
    yield found | {"law": sorted(f"{key} {mass.numerator}/{mass.denominator}" for key, mass in law.items())}


@contextmanager
def _as_they_are(module: str) -> Iterator[None]:
    """Without the draw that replaces a foreign record: it has too many outcomes to list, and no effect here."""
    with mock.patch(f"discreet.mechanisms.reports.{module}.inside", lambda places, size: places):
        yield


# --- messages of polls ------------------------------------------------------------------------------------------


def polls() -> Iterator[dict[str, Any]]:
    """The exact law of the ordered messages for each value of small polls."""
    sizes: dict[str, Any] = {"clients": 10, "minimum": 10}
    three = ("x", "ÿ", "z")
    yield from _poll(BitSum(lie=Fraction(1, 7), **sizes), (0, 1, True, False))
    yield from _poll(TwoMessageBitSum(chance=0.3, **sizes), (0, 1))
    yield from _poll(ResponseHistogram(choices=three, lie=0.125, **sizes), three)
    yield from _poll(ParallelSums(choices=("x", "y"), chance=0.25, **sizes), ("x", "y"))
    yield from _poll(ParallelSums(choices=("x", "y"), chance=0.25, inverted=True, **sizes), ("x",))
    yield from _poll(Fakes(choices=three, fakes=0.1589141647, **sizes), three)
    yield from _poll(Fakes(choices=three, fakes=1.5, **sizes), ("ÿ",))
    yield from _poll(Fakes(choices=three, fakes=2, **sizes), ("z",))
    yield from _poll(HashedHistogram(fakes=0.5, rows=3, buckets=4, seed="s", **sizes), ("", "any text", "täglich"))
    planes = BitPlanes(low=-1, high=2, lies=(0.1, 0.25), **sizes)
    for value in (-1, 0, 1, 2, 99, -1e9):
        yield from _poll(planes, (value,))
    # between two steps: one of them, by a fair coin
    laws = [_messages(planes, value) for value in (0, 1)]
    half = {key: (laws[0].get(key, 0) + laws[1].get(key, 0)) / 2 for key in {*laws[0], *laws[1]}}
    yield {"name": "digits between", "task": _task(planes), "value": 0.5, "law": written(half)}


def _poll(protocol: Any, values: tuple[Any, ...]) -> Iterator[dict[str, Any]]:
    for value in values:
        law = written(_messages(protocol, value))
        yield {"name": f"{protocol.kind} {value!r}", "task": _task(protocol), "value": value, "law": law}


def _task(protocol: Any) -> str:
    return canonical({"protocol": protocol.described()}).decode()


def _messages(protocol: Any, value: Any) -> dict[Any, Fraction]:
    """Python's client, every draw of it listed, and then every order of its messages."""
    with _as_they_are("shuffle_clients"):
        places = protocol._places([value])
        law = exact_law(lambda: protocol.client._draw(places)[0])
    assert law.unresolved == 0
    found: dict[Any, Fraction] = {}
    for messages, mass in law.law.items():
        for order in itertools.permutations(messages):
            found[order] = found.get(order, Fraction(0)) + mass / factorial(len(messages))
    return found


# --- everything -------------------------------------------------------------------------------------------------


def poll_task(choices: tuple[str, ...] = ("a", "b", "c"), clients: int = 1000, **given: Any) -> Task:
    """A task whose two services have known keys."""
    protocol = dp.shuffle.histogram(choices=choices, clients=clients, epsilon=1, delta=1e-6, honest=0.8, **given)
    return Task(
        description=protocol.described(),
        epsilon=1.0,
        delta=1e-6,
        shuffler_key=keys.public_of(SHUFFLER_KEY),
        analyzer_key=keys.public_of(ANALYZER_KEY),
    )


def everything(draws: int) -> dict[str, Any]:
    """All vectors, as JSON. `draws` says how often each sampler is drawn from."""
    daily = dp.local.task(dp.local.survey(choices=["daily", "weekly", "never"], epsilon=1))
    direct = dp.local.survey(choices=["daily", "weekly", "never"], epsilon=1, method="direct")
    poll = poll_task()
    shared = X25519PrivateKey.from_private_bytes(bytes.fromhex(RFC9180["skEm"])).exchange(
        X25519PublicKey.from_public_bytes(bytes.fromhex(RFC9180["pkRm"]))
    )
    sealed = AESGCM(bytes.fromhex(RFC9180["key"])).encrypt(bytes.fromhex(RFC9180["base_nonce"]), b"\1\2\3\4", None)
    data = bytes(range(256)) * 2
    return {
        "draws": draws,
        "surveys": list(surveys()),
        "polls": list(polls()),
        "numbers": [
            [json.dumps(one), str(Fraction(exact).numerator), str(Fraction(exact).denominator)]
            for one, exact in (
                *((text, Fraction(repr(text))) for text in (0.1, 1e-06, 1.5e-300, 0.1589141647, 1e22, 123456.789)),
                *((whole, Fraction(whole)) for whole in (0, -3, 2**53 - 1)),
                ({"fraction": [str(-(10**40)), "3"]}, Fraction(-(10**40), 3)),
            )
        ],
        "blake2b": [
            {
                "data": data[:size].hex(),
                "length": length,
                "person": person.hex(),
                "digest": hashlib.blake2b(data[:size], digest_size=length, person=person).hexdigest(),
            }
            for size, length, person in itertools.product(
                (0, 1, 64, 127, 128, 129, 300), (8, 64), (b"", b"discreet local", b"0123456789abcdef")
            )
        ],
        "shake256": [
            {"data": data[:size].hex(), "digest": hashlib.shake_256(data[:size]).hexdigest(length)}
            for size, length in ((0, 32), (135, 136), (136, 137), (137, 500), (300, 16))
        ],
        "rfc9180": RFC9180 | {"dh": shared.hex(), "sealed": sealed.hex()},
        "daily": {"task": daily.decode(), "hash": hashlib.sha256(daily).hexdigest(), "taken": ["daily", "never"]},
        "repeated": {"task": dp.local.task(dp.local.repeated(direct, memory={})).decode()},
        "fresh": {"task": dp.local.task(dp.local.repeated(direct, memory={}, each_round=0.7)).decode()},
        "larger": {
            "text": dp.local.task(dp.local.survey(domain="strings", epsilon=1)).decode(),
            "sketch": dp.local.task(dp.local.sketch(epsilon=1, method="direct")).decode(),
        },
        "poll": {
            "task": poll.canonical.decode(),
            "hash": poll.hash.hex(),
            "choices": ["a", "b", "c"],
            "length": poll.shape.report,
            "token": keys.token_for(REGISTRATION, poll.hash).hex(),
        },
    }
