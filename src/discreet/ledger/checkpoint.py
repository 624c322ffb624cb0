"""The last entry seen, stored in a small file next to the ledger, so that an old copy of the ledger is noticed.

It is written after the entry is durable, so it is never ahead of an honest ledger: a ledger that is behind it has lost
entries. Two slots are written in turn, so an interrupted write leaves the other one intact.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from discreet.errors import LedgerDamaged, LedgerUnavailable

_SLOT = 512
PATIENCE = 60.0
"""How many seconds to wait for a file, a lock or a database that another process holds, before an error is raised."""


class Seen(NamedTuple):
    """The newest state that was seen: of which ledger, its last entry, the inode of its file (0 if it has none), and
    its number of answers.
    """

    ledger: str
    number: int
    chain: str
    file: int = 0
    answers: int = 0

    def newer(self, other: Seen) -> bool:
        """Whether this is a later state. States of one ledger follow each other, so both counts decide."""
        return (self.number, self.answers) > (other.number, other.answers)


class Checkpoint:
    """One such file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Seen | None:
        """What was seen last. None if there is no such file, or nothing readable in it."""
        try:
            return _newest(self.path.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unavailable(error) from None

    def advance(self, seen: Seen, *, durable: bool = False) -> None:
        """Record a state, unless a newer one of the same ledger is already recorded. States of another ledger are
        dropped.
        """
        try:
            with self._locked() as file:
                content = os.pread(file, 2 * _SLOT, 0)
                newest = _newest(content)
                if newest is None or newest.ledger != seen.ledger:
                    os.pwrite(file, _slot(seen).ljust(2 * _SLOT), 0)
                elif newest.number == seen.number and newest.chain != seen.chain:
                    raise LedgerDamaged(
                        "The ledger has another history than its checkpoint. Nothing is released. "
                        "Restore the newest copy.",
                        code="ledger-old-copy",
                    )
                elif seen.newer(newest):
                    os.pwrite(file, _slot(seen), _SLOT if _slots(content[:_SLOT]) == [newest] else 0)
                if durable:
                    os.fsync(file)
        except OSError as error:
            raise self._unavailable(error) from None

    @contextmanager
    def _locked(self) -> Iterator[int]:
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._wait_for(file)
            yield file
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)  # a child process that was forked meanwhile holds the same lock
            os.close(file)

    def _wait_for(self, file: int) -> None:
        """The lock of the file. The wait has a limit, because the process that holds the lock may have been stopped."""
        deadline = time.monotonic() + PATIENCE
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            if time.monotonic() > deadline:
                raise LedgerUnavailable(
                    f"Another process has held the checkpoint {self.path} for more than {PATIENCE:.0f} s. "
                    "What was charged stays charged. Check that process, and ask again with the same key=.",
                    code="ledger-busy",
                )
            time.sleep(0.001)

    def _unavailable(self, error: OSError) -> LedgerUnavailable:
        return LedgerUnavailable(
            f"The checkpoint {self.path} cannot be used ({error.strerror}). Make it readable and writable: "
            "without it, a restored old ledger would go unnoticed.",
            code="ledger-checkpoint",
        )


def _slot(seen: Seen) -> bytes:
    text = json.dumps(seen)
    line = f"{text} {hashlib.sha256(text.encode()).hexdigest()[:16]}\n".encode()
    return line.ljust(_SLOT)


def _newest(content: bytes) -> Seen | None:
    return max(_slots(content), key=lambda seen: (seen.number, seen.answers), default=None)


def _slots(content: bytes) -> list[Seen]:
    """The slots that are complete."""
    found = []
    for at in (0, _SLOT):
        text, _, check = content[at : at + _SLOT].decode(errors="replace").rstrip().rpartition(" ")
        if text and hashlib.sha256(text.encode()).hexdigest()[:16] == check:
            found += _read_slot(text)
    return found


def _read_slot(text: str) -> list[Seen]:
    """The state in a slot, if it is one. Nothing else could be written without computing the hash."""
    with suppress(ValueError, TypeError, RecursionError):
        seen = Seen(*json.loads(text))
        if [type(value) for value in seen] == [str, int, str, int, int]:
            return [seen]
    return []
