"""The wire format, byte by byte: all that client, shuffler and analyzer share besides the task.

message   an answer's randomized message, sealed to the analyzer               48 + length bytes
report    all messages of a client, sealed once more, to the shuffler          48 + messages · message
upload    token or ticket, report: one of many in a batch of uploads           48 or more + report
batch     task hash, number of reports, digest, and the messages of all clients in a random order
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

VERSION = b"discreet/shuffle/v1/"
SEAL = 48
"""What a seal adds: an X25519 key and the tag of AES-GCM."""
CLIENT, TAG, HASH = 16, 32, 32
TOKEN = CLIENT + TAG
_HEAD = HASH + 8 + HASH


class Malformed(Exception):
    """Bytes that do not have the expected form. It has no details: the response is the same for every kind."""


@dataclass(frozen=True)
class MessageSizes:
    """The lengths in one task: the same for every client and every answer."""

    messages: int
    length: int
    token: int = TOKEN
    """Bytes of what says that a client may report: a token, or a ticket of the issuer (admission.py)."""

    @property
    def message(self) -> int:
        """Bytes of a sealed message."""
        return SEAL + self.length

    @property
    def report(self) -> int:
        """Bytes of a sealed report."""
        return SEAL + self.messages * self.message

    @property
    def upload(self) -> int:
        """Bytes of one report among many, with its token."""
        return self.token + self.report


def inner(task: bytes) -> bytes:
    """What a sealed message is bound to."""
    return VERSION + b"inner" + task


def outer(task: bytes, client: bytes) -> bytes:
    """What a sealed report is bound to. A report that another client sends again does not open."""
    return VERSION + b"outer" + task + client


class Batch(NamedTuple):
    """Everything that leaves the shuffler."""

    task: bytes
    reports: int
    digest: bytes
    blob: bytes

    @property
    def is_whole(self) -> bool:
        """Whether the digest matches the content."""
        return self.digest == digest(self.task, self.reports, self.blob)


def start_digest(task: bytes, reports: int) -> hashlib._Hash:
    """SHA-256 of a batch before its messages, which follow."""
    return hashlib.sha256(b"".join((VERSION, b"batch", task, reports.to_bytes(8, "big"))))


def digest(task: bytes, reports: int, blob: bytes) -> bytes:
    """SHA-256 of everything in a batch."""
    whole = start_digest(task, reports)
    whole.update(blob)
    return whole.digest()


def without_copies(blob: bytes, width: int) -> bytes:
    """Sealed messages of this width, without repetitions: two seals are never the same by chance."""
    heads = np.frombuffer(blob, dtype=np.dtype({"names": ["head"], "formats": ["<u8"], "itemsize": width}))["head"]
    if len(np.unique(heads)) == len(heads):  # the usual case, fast for a million messages
        return blob
    return b"".join(dict.fromkeys(blob[start : start + width] for start in range(0, len(blob), width)))


def pack_batch(batch: Batch) -> bytes:
    """A batch as bytes."""
    return b"".join((batch.task, batch.reports.to_bytes(8, "big"), batch.digest, batch.blob))


def unpack_batch(data: bytes, shape: MessageSizes) -> Batch:
    """A batch of this shape whose digest is right, or Malformed."""
    if len(data) < _HEAD:
        raise Malformed
    reports = int.from_bytes(data[HASH : HASH + 8], "big")
    batch = Batch(data[:HASH], reports, data[HASH + 8 : _HEAD], data[_HEAD:])
    if len(batch.blob) != reports * shape.messages * shape.message or not batch.is_whole:
        raise Malformed
    return batch
