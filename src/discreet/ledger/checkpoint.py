"""The last entry seen, kept in a small file beside the ledger, so that an old ledger put back is noticed.

It is written after the entry is durable, so it is never ahead of an honest ledger: a ledger that is behind it has
lost entries. Two slots are written in turn; a write that is cut short leaves the other one.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from discreet.errors import LedgerUnavailable

_SLOT = 512


class Seen(NamedTuple):
    """The newest entry that was seen, of which ledger, and the file number of that ledger (0 where it has none)."""

    ledger: str
    number: int
    chain: str
    file: int = 0


class Checkpoint:
    """One such file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Seen | None:
        """What was seen last; None when there is no such file, or nothing readable in it."""
        try:
            return max(_slots(self.path.read_bytes()), key=lambda seen: seen.number, default=None)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unavailable(error) from None

    def advance(self, seen: Seen) -> None:
        """Note an entry, unless a newer one of the same ledger is noted already; another ledger's are forgotten."""
        try:
            with self._locked() as file:
                content = os.pread(file, 2 * _SLOT, 0)
                newest = max(_slots(content), key=lambda slot: slot.number, default=None)
                if newest is None or newest.ledger != seen.ledger:
                    os.pwrite(file, _slot(seen).ljust(2 * _SLOT), 0)
                elif newest.number < seen.number:
                    os.pwrite(file, _slot(seen), _SLOT if _slots(content[:_SLOT]) == [newest] else 0)
        except OSError as error:
            raise self._unavailable(error) from None

    def replace(self, seen: Seen) -> None:
        """Begin anew with this entry, whatever was noted before; durable when it returns."""
        try:
            with self._locked() as file:
                os.pwrite(file, _slot(seen).ljust(2 * _SLOT), 0)
                os.fsync(file)
        except OSError as error:
            raise self._unavailable(error) from None

    @contextmanager
    def _locked(self) -> Iterator[int]:
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        finally:
            os.close(file)

    def _unavailable(self, error: OSError) -> LedgerUnavailable:
        return LedgerUnavailable(
            f"The checkpoint {self.path} cannot be used ({error.strerror}). Make it readable and writable; "
            "without it an old ledger put back would go unnoticed."
        )


def _slot(seen: Seen) -> bytes:
    text = json.dumps(seen)
    line = f"{text} {hashlib.sha256(text.encode()).hexdigest()[:16]}\n".encode()
    return line.ljust(_SLOT)


def _slots(content: bytes) -> list[Seen]:
    """The slots that are whole."""
    found = []
    for at in (0, _SLOT):
        text, _, check = content[at : at + _SLOT].decode(errors="replace").rstrip().rpartition(" ")
        if text and hashlib.sha256(text.encode()).hexdigest()[:16] == check:
            found.append(Seen(*json.loads(text)))
    return found
