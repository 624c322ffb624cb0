"""Where randomness enters: no stream is shared, no seed has a hold on it, and nothing is drawn without entropy."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet import testing
from discreet.errors import EntropyUnavailable
from discreet.exact import randomness, samplers


def _in_thread(work):
    results = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    thread.join()
    return results[0]


def test_threads_read_their_own_streams():
    """Distinct words; a false alarm (two equal 64-bit words among 800) has probability 2·10^-14."""
    barrier, drawn = threading.Barrier(8), []

    def work() -> None:
        barrier.wait()
        for _ in range(25):
            drawn.extend(randomness.random_words(4).tolist())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(drawn) == len(set(drawn)) == 800


def test_a_forked_child_does_not_share_the_stream(checks):
    assert checks.fork_shares_nothing()


def test_forked_workers_do_not_share_the_stream():
    """Through multiprocessing, from a parent whose main thread and another thread have drawn before."""
    script = """
import multiprocessing, threading
from fractions import Fraction
from discreet.exact import randomness, samplers
def work(_):
    return randomness.random_words(4).tolist() + samplers.discrete_laplace(Fraction(2**50), 4).tolist()
if __name__ == "__main__":
    thread = threading.Thread(target=work, args=(0,)); thread.start(); thread.join()
    drawn = work(0)
    context = multiprocessing.get_context("fork")
    for _ in range(2):
        with context.Pool(3) as pool:
            for words in pool.map(work, range(6), chunksize=1):
                drawn += words
        drawn += work(0)
    print(len(drawn), len(set(drawn)))
"""
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=True, timeout=120
    )
    assert run.stdout.split() == ["120", "120"]


def test_no_seed_has_a_hold_on_it(checks):
    """Two processes with equal PYTHONHASHSEED and seeds differ, and drawing leaves numpy's and random's state alone."""
    assert checks.processes_differ()
    np.random.seed(3)
    random.seed(3)
    before = np.random.get_state()[1].tolist(), random.getstate()
    first = samplers.discrete_laplace(Fraction(2**40), 4).tolist()
    assert (np.random.get_state()[1].tolist(), random.getstate()) == before
    np.random.seed(3)
    random.seed(3)
    assert not set(first) & set(samplers.discrete_laplace(Fraction(2**40), 4).tolist())


def _raise(error: Exception):
    def urandom(count: int) -> bytes:
        raise error

    return urandom


@pytest.mark.parametrize(
    "urandom",
    [
        _raise(OSError("no device")),
        _raise(NotImplementedError()),
        bytes,
        lambda count: b"\xff" * count,
        lambda count: bytes(range(count - 1)),
        lambda count: b"",
    ],
    ids=["OSError", "NotImplementedError", "zeros", "ones", "short", "empty"],
)
def test_nothing_is_drawn_without_entropy(monkeypatch, urandom):
    monkeypatch.setattr(randomness._own, "stream", None)
    monkeypatch.setattr(os, "urandom", urandom)
    for draw in (
        lambda: randomness.random_words(1),
        lambda: randomness.random_integer(7),
        lambda: samplers.discrete_laplace(Fraction(3), 5),
        lambda: samplers.bernoulli(Fraction(1, 3), 5),
        lambda: samplers.permutation(5),
        lambda: dp.release(3, dp.Laplace(scale=1), sensitivity=1),
    ):
        with pytest.raises(EntropyUnavailable):
            draw()
    assert randomness._own.stream is None

    def refused() -> bool:
        with pytest.raises(EntropyUnavailable):
            randomness.random_words(1)
        return True

    assert _in_thread(refused)


def test_a_child_without_entropy_draws_nothing(monkeypatch):
    """A stream that was good before the fork is not used after it."""
    randomness.random_words(1)
    monkeypatch.setattr(randomness, "_forks", randomness._forks + 1)
    monkeypatch.setattr(os, "urandom", _raise(OSError()))
    with pytest.raises(EntropyUnavailable):
        randomness.random_words(1)


def test_a_key_is_replaced_after_its_share_of_bytes(monkeypatch):
    asked = []
    real = os.urandom
    monkeypatch.setattr(os, "urandom", lambda count: asked.append(count) or real(count))
    monkeypatch.setattr(randomness, "_BYTES_PER_KEY", 100)
    monkeypatch.setattr(randomness._own, "stream", None)
    words = [word for _ in range(40) for word in randomness.random_words(2).tolist()]
    assert asked == [48] * 6  # 7 reads of 16 bytes pass 100, so a key serves 7 reads
    assert len(set(words)) == 80


def test_the_keystream_is_aes_256_in_counter_mode():
    """The published vector of NIST SP 800-38A F.5.5 (XOR of its plaintext and ciphertext)."""
    key = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    stream = randomness.Keystream(key, bytes.fromhex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"))
    expected = "0bdf7df1591716335e9a8b15c860c5025a6e699d536119065433863c8f657b94"
    assert (stream.read(5) + stream.read(27)).hex() == expected
    assert stream.used == 32


def test_long_and_short_reads_are_one_stream():
    key, nonce = bytes(range(32)), bytes(16)
    whole = randomness.Keystream(key, nonce).read(2**21 + 5)
    parts = randomness.Keystream(key, nonce)
    assert whole == b"".join(parts.read(n) for n in (0, 1, 2**20, 3, 2**20 + 1))


@pytest.mark.parametrize("bits", [0, 1, 7, 8, 9, 64, 65, 200])
def test_random_integers_use_all_their_bits(bits):
    """Each bit is seen as 0 and as 1 in 64 draws; a false alarm has probability 2·200·2^-64."""
    drawn = [randomness.random_integer(bits) for _ in range(64)]
    assert all(0 <= k < 2**bits for k in drawn)
    ored, anded = 0, -1
    for k in drawn:
        ored, anded = ored | k, anded & k
    assert ored == 2**bits - 1
    assert anded & (2**bits - 1) == 0


def test_replaying_is_marked_and_ends():
    stream = randomness.Keystream(bytes(32), bytes(16))
    assert samplers.is_private()
    with randomness.replaying(stream):
        assert randomness.is_replayed()
        assert not samplers.is_private()
        assert dp.release(3, dp.Laplace(scale=1), sensitivity=1).not_private
        inside = randomness.random_words(2).tolist()
    assert not randomness.is_replayed()
    assert samplers.is_private()
    assert not dp.release(3, dp.Laplace(scale=1), sensitivity=1).not_private
    assert inside != randomness.random_words(2).tolist()
    with pytest.raises(KeyError), randomness.replaying(stream):
        raise KeyError
    assert not randomness.is_replayed()


def test_a_thread_inside_frozen_draws_real_randomness():
    def work():
        return randomness.random_words(4).tolist(), samplers.is_private()

    runs = []
    for _ in range(2):
        with testing.frozen(7):
            runs.append((_in_thread(work), randomness.random_words(4).tolist()))
    (first, mine), (second, again) = runs
    assert mine == again
    assert first[1]
    assert second[1]
    assert not set(first[0]) & set(second[0])
