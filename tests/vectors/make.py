"""Test vectors for clients in any language: `python tests/vectors/make.py` writes polls.json and surveys.json.

Everything but the envelopes follows from this file: run twice, it writes the same bytes. Envelopes are random, so
those of a task that is unchanged are kept. docs/reference/wire.md says what the bytes mean.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import discreet as dp
from discreet.guarantees.guarantee import Pure
from discreet.mechanisms.reports.bit_response import SubsetSelection, UnaryResponse
from discreet.mechanisms.reports.frequency_oracle import DirectResponse
from discreet.mechanisms.reports.geometric_response import HadamardResponse, ProjectiveResponse
from discreet.mechanisms.reports.local_hashing import OPEN, LocalHashing
from discreet.mechanisms.reports.local_mean import HybridResponse, WindowResponse
from discreet.mechanisms.reports.prefix_response import PrefixResponse, SketchResponse
from discreet.shuffle.channel import keys, wire
from discreet.shuffle.channel.client import Client
from discreet.shuffle.channel.task import Task

HERE = Path(__file__).parent
SHUFFLER, ANALYZER, REGISTRATION = bytes([7] * 32), bytes([9] * 32), bytes(range(32))
"""Private keys of the two services, and what issues tokens. They are public here: never use them elsewhere."""
CLIENT = bytes(range(16))
SIZES: dict[str, Any] = {"clients": 2000, "minimum": 1250, "honest": 0.8}
CHOICES = ["daily", "täglich", 3]
POLLS: list[tuple[dict[str, Any], Any]] = [
    ({"kind": "bit sum", "lie": 0.031}, 1),
    ({"kind": "bit sum in two messages", "chance": {"fraction": ["7", "200"]}}, True),
    ({"kind": "histogram by response", "choices": CHOICES, "lie": 0.037}, "täglich"),
    ({"kind": "histogram with fakes", "choices": CHOICES, "fakes": 0.13}, "daily"),
    ({"kind": "histogram with fakes", "choices": CHOICES, "fakes": 2}, 3),
    ({"kind": "histogram by parallel sums", "choices": CHOICES, "chance": 0.044, "inverted": False}, 3),
    ({"kind": "histogram by parallel sums", "choices": CHOICES, "chance": 0.044, "inverted": True}, "daily"),
    (
        {"kind": "hashed histogram", "fakes": 1.5, "rows": 512, "buckets": 23, "seed": "discreet", "choices": CHOICES},
        "täglich",
    ),
    ({"kind": "sum by digits", "low": -1, "high": 2.5, "lies": [0.039, 0.069, 0.116], "of": "mean"}, 0.75),
    (
        {"kind": "sum by split and mix", "low": 0, "high": 1, "steps": 255, "scale": 255, "bits": 21, "shares": 10}
        | {"security": 22, "of": "sum"},
        0.5,
    ),
]
"""A protocol of each kind, and an answer to it."""


def task_of(protocol: dict[str, Any]) -> Task:
    """The task of a protocol, with the keys above."""
    return Task(
        description=protocol | SIZES,
        epsilon=1.0,
        delta=1e-6,
        shuffler_key=keys.public_of(SHUFFLER),
        analyzer_key=keys.public_of(ANALYZER),
    )


def poll_of(protocol: dict[str, Any], value: Any, kept: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """One task as bytes, its hash, a token, and a report that opens."""
    task = task_of(protocol)
    task.check()
    token = keys.token_for(REGISTRATION, task.hash, CLIENT)
    before = kept.get(task.hash.hex())
    messages = before["messages"] if before else task.protocol.encode(value)
    report = before["report"] if before else Client(task, token).envelope(messages).hex()
    return {
        "task": task.canonical.decode(),
        "hash": task.hash.hex(),
        "token": token.hex(),
        "value": value,
        "messages": messages,
        "packed": task.protocol.packed(messages).hex(),
        "inner_info": wire.inner(task.hash).hex(),
        "outer_info": wire.outer(task.hash, CLIENT).hex(),
        "report": report,
    }


def polls(kept: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The vectors of all polls, with the keys that open them."""
    return {
        "shuffler_private": SHUFFLER.hex(),
        "analyzer_private": ANALYZER.hex(),
        "registration": REGISTRATION.hex(),
        "polls": [poll_of(*one, kept) for one in POLLS],
    }


# --- surveys ----------------------------------------------------------------------------------------------------


def every_survey() -> Iterator[tuple[str, Any, Any]]:
    """A survey of each kind and of each oracle, and an answer to it."""
    stated, odds = Pure(epsilon=1), Fraction(5, 2)
    oracles = [
        DirectResponse(size=3, odds=odds),
        DirectResponse(size=3, odds=2.7182),
        UnaryResponse(size=10, odds=odds),
        SubsetSelection(size=10, odds=odds, width=3),
        SubsetSelection(size=100, odds=odds, width=3),
        LocalHashing(size=50, odds=odds, cells=4),
        LocalHashing(size=2**40, odds=odds, cells=4),
        HadamardResponse(size=6, odds=odds),
        ProjectiveResponse(size=13, odds=odds, prime=3, dimension=3),
    ]
    for oracle in oracles:
        name = f"numbers below {oracle.size}, {oracle.method}"
        yield name, dp.local.Survey(mechanism=oracle, stated=stated), 2
    direct = dp.local.Survey(mechanism=oracles[0], stated=stated, choices=("daily", "täglich", 3))
    yield "choices", direct, "täglich"
    yield "repeated", dp.local.Repeated(survey=direct, memory={}, fresh=None), "daily"
    fresh = DirectResponse(size=3, odds=Fraction(3, 2))
    yield "repeated with fresh noise", dp.local.Repeated(survey=direct, memory={}, fresh=fresh), 3
    text = LocalHashing(size=OPEN, odds=odds, cells=4)
    yield "text", dp.local.Survey(mechanism=text, stated=stated, domain="strings"), "täglich"
    coin = WindowResponse(odds=odds)
    wide = WindowResponse(outputs=512, window=150, odds=odds)
    hybrid = HybridResponse(wide=wide, coin=coin, share=Fraction(3, 8))
    space = dp.Interval(-1, 2.5)
    for method, mechanism in (("duchi", coin), ("piecewise", wide), ("hybrid", hybrid)):
        made = dp.local.MeanSurvey(space=space, mechanism=mechanism, stated=stated, method=method)
        yield f"mean, {method}", made, 0.75
    yield "mean, laplace", dp.local.mean(between=(-1, 2.5), epsilon=1, method="laplace"), 0.75
    sketched = SketchResponse(oracle=DirectResponse(size=64, odds=odds), hashes=16, seed=5)
    yield "sketch", dp.local.Sketch(mechanism=sketched, stated=stated), "täglich"
    prefix = PrefixResponse(oracle=LocalHashing(size=27**6, odds=odds, cells=4), base=27, length=6, lengths=(2, 4, 6))
    yield (
        "prefixes",
        dp.local.HeavyHitters(mechanism=prefix, stated=stated, top=10, alphabet="abcdefghijklmnopqrstuvwxyz"),
        "hello",
    )
    columns = {
        "often": direct,
        "hours": dp.local.MeanSurvey(space=space, mechanism=coin, stated=stated, method="duchi"),
    }
    yield "rows", dp.local.Rows(columns=columns, stated=Pure(epsilon=2)), {"often": 3, "hours": 0.75}


def surveys() -> dict[str, Any]:
    """The vectors of all surveys."""
    found = []
    for name, survey, value in every_survey():
        data = dp.local.task(survey)
        found.append({"name": name, "task": data.decode(), "hash": hashlib.sha256(data).hexdigest(), "value": value})
    return {"surveys": found}


def written(vectors: dict[str, Any]) -> str:
    """A file of vectors."""
    return json.dumps(vectors, indent=1, ensure_ascii=True) + "\n"


def kept_polls() -> dict[str, dict[str, Any]]:
    """The polls of the file as it is, by the hash of their task."""
    file = HERE / "polls.json"
    return {one["hash"]: one for one in json.loads(file.read_text())["polls"]} if file.exists() else {}


if __name__ == "__main__":
    (HERE / "polls.json").write_text(written(polls(kept_polls())))
    (HERE / "surveys.json").write_text(written(surveys()))
