"""The channel: envelopes a second, the permutation, bytes a user, and a whole poll over HTTP.

`python -m bench.surveys.channel [CLIENTS]` times each step on one core and on all, beside the X25519 exchange that an
envelope costs at least; then runs both services as processes of their own and has CLIENTS simulated clients (100,000 by
default) report to them over loopback. Rates of one core are for a second of its time, whatever else the machine does.
"""

from __future__ import annotations

import contextlib
import hmac
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from bench.report import line, machine, notes, section, table, verdict
from discreet.cli.shuffle.init import write_task
from discreet.exact.samplers import permutation
from discreet.shuffle.channel import admission, blind_rsa, keys, wire
from discreet.shuffle.channel.client import Client, uploads
from discreet.shuffle.channel.opening import Openers
from discreet.shuffle.channel.task import Task

CHOICES = [f"country {number}" for number in range(50)]
TERMS = {"epsilon": 1.0, "delta": 1e-8, "honest": 0.8}
CORES = len(os.sched_getaffinity(0))
PART, TOGETHER = 2000, 4
"""Reports of one request, and requests at once."""
OPENED, PERMUTED = 10_000, 0.2
"""Goals: reports and messages opened a second on all cores, and seconds to permute a million."""


def timed(work: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds of the fastest of three runs: the machine has other work, too."""
    best = float("inf")
    for _ in range(3):
        start = clock()
        work()
        best = min(best, clock() - start)
    return best


def one_core(count: int, work: Callable[[], Any]) -> str:
    return f"{count / timed(work, time.process_time):,.0f} /s"


def envelope(sealed: bytes, private: bytes, info: bytes) -> None:
    """Where the time of one opened envelope goes, on one core."""
    count = 4000

    def each(work: Callable[[], Any]) -> float:
        """Microseconds of one call."""
        return timed(lambda: [work() for _ in range(count)], time.process_time) / count * 1e6

    own, cipher = X25519PrivateKey.from_private_bytes(private), AESGCM(bytes(16)).encrypt(bytes(12), b"1", None)
    suite = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_128_GCM)
    public, context = sealed[:32], bytes(100)

    def schedule() -> None:
        for _ in range(7):  # RFC 9180: eae_prk, shared_secret, psk_id_hash, info_hash, secret, key, base_nonce
            hmac.digest(private, context, "sha256")

    whole = each(lambda: keys.open_seal(sealed, private, info))
    inside = each(lambda: suite.decrypt(sealed, own, info=info))
    parts = {
        "X25519, and reading the public key": each(lambda: own.exchange(X25519PublicKey.from_public_bytes(public))),
        "the key schedule, 7 HMAC-SHA-256": each(schedule),
        "AES-128-GCM": each(lambda: AESGCM(bytes(16)).decrypt(bytes(12), cipher, None)),
    }
    line("one envelope opened, one core", f"{whole:.0f} µs")
    for name, part in parts.items():
        line(f"… of it {name}", f"{part:.1f} µs, {part / whole:.0%}")
    line("… of it Python around the call", f"{max(0.0, whole - inside):.1f} µs, {max(0.0, whole - inside) / whole:.0%}")
    rest = inside - sum(parts.values())
    line("… of it the rest of the call", f"{rest:.1f} µs, {rest / whole:.0%}")


def tickets() -> None:
    """What one ticket costs the issuer, the shuffler and the client, on one core."""
    for bits in (blind_rsa.SMALLEST, blind_rsa.USUAL, blind_rsa.LARGEST):
        key, count = blind_rsa.generate(bits), 20
        request = admission.TicketRequest.made(key.modulus, bytes(32))
        ticket = request.signed(blind_rsa.blind_sign(key, request.blinded))

        def each(work: Callable[[], Any], count: int = count) -> str:
            return f"{1000 * timed(lambda: [work() for _ in range(count)], time.process_time) / count:.2f} ms"

        signed = each(partial(blind_rsa.blind_sign, key, request.blinded))
        checked = each(partial(admission.accepted, ticket, key.modulus, bytes(32)))
        asked = each(partial(admission.TicketRequest.made, key.modulus, bytes(32)))
        line(f"ticket of {bits} bits, one core", f"signed in {signed}, checked in {checked}, asked for in {asked}")


def made(folder: Path, clients: int) -> Task:
    path = folder / "poll.toml"
    where: dict[str, Any] = {"shuffler": "http://127.0.0.1:7002", "analyzer": "http://127.0.0.1:7001"}
    terms = TERMS | {"clients": clients, "minimum": None}
    with contextlib.redirect_stdout(sys.stderr):  # it says which files it writes
        write_task(path, choices=",".join(CHOICES), **where, **terms)
    return Task.load(path)


def steps(task: Task, folder: Path) -> dict[str, bool]:
    """Each step alone, and which goals are met."""
    issuer = keys.ShufflerKeys.load(folder / "poll.shuffler.key")
    inner = keys.AnalyzerKeys.load(folder / "poll.analyzer.key").inner
    token = keys.token_for(issuer.registration, task.hash)
    client, info = Client(task, token), wire.outer(task.hash, token[:16])
    count, shape = 2000, task.shape
    own, other = X25519PrivateKey.generate(), X25519PrivateKey.generate().public_key()
    line(
        "X25519 alone, one core: no envelope opens faster",
        one_core(count, lambda: [own.exchange(other) for _ in range(count)]),
    )
    line(
        f"client: randomize and seal a report of {shape.messages} messages, one core",
        one_core(count, lambda: [client.sealed(CHOICES[3]) for _ in range(count)]),
    )
    sealed = [(client.sealed(CHOICES[3]), info) for _ in range(count)]
    messages = keys.open_seal(sealed[0][0], issuer.outer, info)
    blob, width, bound = messages * count, shape.message, wire.inner(task.hash)
    alone, total = Openers(1), count * shape.messages
    line("shuffler: reports opened, one core", one_core(count, lambda: alone.reports(sealed, issuer.outer)))
    line("analyzer: messages opened, one core", one_core(total, lambda: alone.messages(blob, width, inner, bound)))
    envelope(blob[:width], inner, bound)
    tickets()
    many, more = sealed * 10, blob * 10
    with_all = Openers()
    with_all.messages(more, width, inner, bound)  # the processes start
    reports_opened = len(many) / timed(lambda: with_all.reports(many, issuer.outer))
    messages_opened = 10 * total / timed(lambda: with_all.messages(more, width, inner, bound))
    with_all.close()
    line(f"shuffler: reports opened, {CORES} cores", f"{reports_opened:,.0f} /s")
    line(
        f"analyzer: messages opened, {CORES} cores",
        f"{messages_opened:,.0f} /s, {messages_opened / CORES:,.0f} a core",
    )
    array = np.zeros(10**6, dtype=np.dtype((np.void, width)))
    drawn = timed(lambda: permutation(10**6))
    line("permutation of 10⁶ (drawn)", f"{drawn:.3f} s")
    line(
        f"… and 10⁶ messages of {width} bytes put in that order",
        f"{timed(lambda: array[permutation(10**6)].tobytes()):.3f} s",
    )
    line(
        "a user sends",
        f"{shape.report} bytes ({shape.messages} messages of {shape.length} byte, each sealed twice) and a token of 48",
    )
    return {
        f"{OPENED:,} reports opened a second on {CORES} cores ({reports_opened:,.0f})": reports_opened >= OPENED,
        f"{OPENED:,} messages opened a second on {CORES} cores ({messages_opened:,.0f})": messages_opened >= OPENED,
        f"10⁶ permuted in {PERMUTED} s ({drawn:.2f} s)": drawn <= PERMUTED,
    }


def sealed_part(given: tuple[str, list[bytes], list[str]]) -> bytes:
    path, tokens, values = given
    return uploads(Task.load(Path(path)), tokens, values)


def service(folder: Path, name: str, *arguments: str) -> tuple[subprocess.Popen[str], str]:
    command = [
        sys.executable,
        "-c",
        "from discreet.cli import main; main()",
        "shuffle",
        name,
        str(folder / "poll.toml"),
    ]
    process = subprocess.Popen([*command, "--port", "0", *arguments], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline().split()[-1]


def whole(task: Task, folder: Path, clients: int) -> None:
    """A poll over HTTP, from randomizing to published counts."""
    issuer = keys.ShufflerKeys.load(folder / "poll.shuffler.key")
    values = [CHOICES[number % 7] for number in range(clients)]
    tokens = [keys.token_for(issuer.registration, task.hash) for _ in range(clients)]
    parts = [
        (str(folder / "poll.toml"), tokens[place : place + PART], values[place : place + PART])
        for place in range(0, clients, PART)
    ]
    start = time.perf_counter()
    with ProcessPoolExecutor(CORES, multiprocessing.get_context("spawn")) as pool:
        requests = list(pool.map(sealed_part, parts))
    line(f"{clients:,} clients randomize and seal ({CORES} cores)", f"{time.perf_counter() - start:.1f} s")
    begun = time.perf_counter()
    analyzer, analyzer_url = service(folder, "analyzer")
    first = time.perf_counter()
    shuffler, url = service(folder, "shuffler", "--analyzer", analyzer_url)
    then = time.perf_counter()
    line("from its start until it answers: analyzer, shuffler", f"{first - begun:.2f} s, {then - first:.2f} s")
    try:
        with httpx.Client(timeout=600) as http, ThreadPoolExecutor(TOGETHER) as threads:
            begun = time.perf_counter()
            answers = list(threads.map(lambda data: http.post(f"{url}/v1/reports", content=data).content, requests))
            uploaded = time.perf_counter()
            assert b"".join(answers) == b"+" * clients
            took = uploaded - begun
            line(
                f"shuffler: {clients:,} reports over HTTP until they are durable",
                f"{took:.1f} s, {clients / took:,.0f} reports/s",
            )
            said = http.post(f"{url}/v1/close", headers={"Authorization": f"Bearer {issuer.operator.hex()}"}).json()
            assert said["reports"] == clients
            closed = time.perf_counter()
            line("shuffler: permuted and sealed in one transaction", f"{closed - uploaded:.1f} s")
            while (found := http.get(f"{analyzer_url}/v1/result")).status_code != 200:
                time.sleep(0.02)
            ended = time.perf_counter()
            messages = clients * task.shape.messages
            line(
                f"handed on, charged, {messages:,} messages opened, counted, published",
                f"{ended - closed:.1f} s, {messages / (ended - closed):,.0f} messages/s",
            )
            line("the whole poll after sealing", f"{ended - begun:.1f} s")
    finally:
        for process in (shuffler, analyzer):
            process.terminate()
            process.wait(20)
    result = found.json()
    truth = [sum(value == choice for value in values) for choice in CHOICES]
    worst = max(abs(count - true) for (_, count), true in zip(result["value"], truth, strict=True))
    line(f"largest error of {len(CHOICES)} counts", f"{worst:.0f}, promised ± {result['error']:.0f} (95%)")


def main() -> None:
    clients = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        task = made(folder, clients)
        section(
            "The channel",
            "surveys.channel",
            f"""Each step of a shuffled poll by itself, then a whole poll over HTTP, with both services as separate
            processes: a histogram of {len(CHOICES)} choices, {clients:,} clients; {machine()}.""",
        )
        table("step", "measured")
        met = steps(task, folder)
        whole(task, folder, clients)
    verdict(met)
    notes(
        """Opening is arithmetic, one X25519 exchange per envelope, and uses all cores. Rates of one core are per
        second of CPU time. The parts of an envelope are timed as single calls from Python, so that what they add up to
        is a little more than the whole, and the rest may be below 0."""
    )


if __name__ == "__main__":
    main()
