"""The only place where randomness enters: an AES-256-CTR keystream keyed by the operating system.

Promise: every thread of every process reads its own stream, and a fork never shares one. Without entropy, nothing is
drawn. There is no seed. `discreet.testing` may replace the stream by a fixed one, and every release then says
`not_private`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from discreet.errors import EntropyUnavailable

_KEY_BYTES, _NONCE_BYTES = 32, 16
_BYTES_PER_KEY = 2**34
_ZEROS = memoryview(bytes(2**20))


_making = threading.Lock()
"""OpenSSL holds a lock while it creates a cipher. A fork waits for it. Otherwise its child would find it locked
forever.
"""


class Keystream:
    """Random bytes from one key. Tests replay the stream of a fixed key."""

    def __init__(self, key: bytes, nonce: bytes) -> None:
        with _making:
            self._cipher = Cipher(algorithms.AES256(key), modes.CTR(nonce)).encryptor()
        self.used = 0

    def read(self, count: int) -> bytes:
        """The next `count` bytes."""
        self.used += count
        if count <= len(_ZEROS):
            return self._cipher.update(_ZEROS[:count])
        return self._cipher.update(bytes(count))


class _OwnStream(threading.local):
    """One keystream per thread, created again after a fork and after 16 GiB."""

    stream: Keystream | None = None
    owner: tuple[int, int] = (0, 0)


_own = _OwnStream()
_forks = 0
_replayed: ContextVar[Keystream | None] = ContextVar("replayed keystream", default=None)


def _begin_child() -> None:
    global _forks
    _forks += 1
    _making.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_making.acquire, after_in_parent=_making.release, after_in_child=_begin_child)


def _entropy(count: int) -> bytes:
    try:
        entropy = os.urandom(count)
    except (OSError, NotImplementedError) as error:
        raise EntropyUnavailable(
            "The operating system gives no randomness, so no noise can be drawn. Make its random device available."
        ) from error
    if len(entropy) != count or len(set(entropy)) == 1:
        raise EntropyUnavailable(
            "The operating system's randomness is broken, so no noise can be drawn. Fix its random device."
        )
    return entropy


def _bytes(count: int) -> bytes:
    replayed = _replayed.get()
    if replayed is not None:
        return replayed.read(count)
    # a pid can be reused, and the fork count misses a raw clone
    owner = (os.getpid(), _forks)
    stream = _own.stream
    if stream is None or _own.owner != owner or stream.used > _BYTES_PER_KEY:
        seed = _entropy(_KEY_BYTES + _NONCE_BYTES)
        stream = _own.stream = Keystream(seed[:_KEY_BYTES], seed[_KEY_BYTES:])
        _own.owner = owner
    return stream.read(count)


def random_words(count: int) -> NDArray[np.uint64]:
    """`count` independent uniform 64-bit words."""
    return np.frombuffer(_bytes(8 * count), dtype=np.uint64)


def random_integer(bits: int) -> int:
    """A uniform integer of exactly `bits` random bits."""
    whole = (bits + 7) // 8
    return int.from_bytes(_bytes(whole), "little") >> (8 * whole - bits)


def is_replayed() -> bool:
    """Whether a test has replaced the stream."""
    return _replayed.get() is not None


@contextmanager
def replaying(stream: Keystream) -> Iterator[None]:
    """Read from `stream` instead of fresh randomness: for `discreet.testing`, and for a key that was drawn
    elsewhere.
    """
    token = _replayed.set(stream)
    try:
        yield
    finally:
        _replayed.reset(token)
