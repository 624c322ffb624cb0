"""The last entry seen, stored in a small file next to the ledger, so that an old copy of the ledger is noticed.

It is written after the entry is durable, so it is never ahead of an honest ledger: a ledger that is behind it has lost
entries. Two slots are written in turn, so an interrupted write leaves the other one intact.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import stat
import time
from contextlib import suppress
from itertools import chain, repeat
from json.encoder import encode_basestring_ascii
from pathlib import Path
from typing import NamedTuple, Self

from discreet.errors import LedgerDamaged, LedgerUnavailable

_SLOT = 512
PATIENCE = 60.0
"""How many seconds to wait for a file, a lock or a database that another process holds, before an error is raised."""
_PAUSES = (0.0005, 0.001, 0.002, 0.004)
"""Seconds between attempts to get the lock. The last one is repeated."""
_TURN = 0.25
"""How many seconds to wait for the turn to use the database."""


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
    """One such file. With an `owner`, root uses it for that user. Root then creates it only if it `creates`. Who waits
    for it may have less `patience`.
    """

    def __init__(
        self, path: Path, *, owner: int | None = None, creates: bool = False, patience: float | None = None
    ) -> None:
        self.path, self.owner, self._patience = path, owner, patience
        self._creates = creates or owner is None
        self._known: dict[bytes, Seen | None] = {}

    @property
    def patience(self) -> float:
        """How many seconds to wait for who holds it."""
        return PATIENCE if self._patience is None else self._patience

    def open(self, flags: int) -> int:
        """A descriptor of the file. Root follows no link to it, because others may own its folder, and does not wait
        for what is no file.
        """
        flags |= os.O_CLOEXEC | os.O_NONBLOCK | (os.O_NOFOLLOW if os.geteuid() == 0 else 0)
        if flags & os.O_CREAT and self.owner is None:
            make_file(self.path)
        file = os.open(self.path, flags if self._creates else flags & ~os.O_CREAT, 0o600)
        try:
            self._check(file)
        except BaseException:
            os.close(file)
            raise
        return file

    def _check(self, file: int) -> None:
        facts = os.fstat(file)
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(errno.EINVAL, "it is no file")
        if self.owner is not None and facts.st_uid != self.owner:
            is_theirs = not facts.st_size or (os.stat(self.path.parent).st_uid == self.owner and _is_one(file))
            if not self._creates or facts.st_uid != 0 or facts.st_nlink != 1 or not is_theirs:
                raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
            os.fchown(file, self.owner, -1)

    def fill(self) -> None:
        """Let the file have all of its bytes, so that it can be written also when the disk is full."""
        file = self.open(os.O_RDWR | os.O_CREAT)
        try:
            if os.fstat(file).st_size < 2 * _SLOT:
                os.posix_fallocate(file, 0, 2 * _SLOT)
        finally:
            os.close(file)

    def read(self) -> Seen | None:
        """What was seen last. None if there is no such file, or nothing readable in it."""
        try:
            file = self.open(os.O_RDONLY)
            try:
                return self._newest(os.pread(file, 2 * _SLOT, 0))
            finally:
                os.close(file)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unavailable(error) from None

    def advance(self, seen: Seen, *, durable: bool = False) -> None:
        """Record a state, unless a newer one of the same ledger is already recorded. States of another ledger are
        dropped.
        """
        with self.locked("What was charged stays charged. Check that process, and ask again with the same key=.") as at:
            at.advance(seen, durable=durable)

    def locked(self, advice: str) -> LockedCheckpoint:
        """The file, with its lock inside of `with`. The wait for the lock has a limit, because the process that holds
        it may have been stopped: the error then gives the advice.
        """
        return LockedCheckpoint(self, advice)

    def turn(self) -> Turn:
        """The turn of this process to use the database, inside of `with`."""
        return Turn(self.path.with_name(f"{self.path.name}.turn"))

    def _newest(self, content: bytes) -> Seen | None:
        """The newest state in the file. A slot with bytes that were seen before is not read again."""
        known, slots = self._known, (content[:_SLOT], content[_SLOT : 2 * _SLOT])
        self._known = {slot: known[slot] if slot in known else _read_slot(slot) for slot in slots}
        newest = None
        for seen in self._known.values():
            if seen is not None and (newest is None or seen.newer(newest)):
                newest = seen
        return newest

    def _unavailable(self, error: OSError) -> LedgerUnavailable:
        return LedgerUnavailable(
            f"The checkpoint {self.path} cannot be used ({error.strerror}). Make it readable and writable: "
            "without it, a restored old ledger would go unnoticed.",
            code="ledger-checkpoint",
        )


class LockedCheckpoint:
    """A checkpoint that nobody else can change now."""

    def __init__(self, checkpoint: Checkpoint, advice: str) -> None:
        self._checkpoint, self._advice = checkpoint, advice
        self._read: tuple[bytes, Seen | None] | None = None

    def __enter__(self) -> Self:
        try:
            self._file = self._checkpoint.open(os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise self._checkpoint._unavailable(error) from None
        try:
            self._wait()
        except BaseException:
            os.close(self._file)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        fcntl.flock(self._file, fcntl.LOCK_UN)  # a child process that was forked meanwhile holds the same lock
        os.close(self._file)

    def _wait(self) -> None:
        if not is_locked(self._file, self._checkpoint.patience):
            raise LedgerUnavailable(
                f"Another process has held the checkpoint {self._checkpoint.path} for more than "
                f"{self._checkpoint.patience:.0f} s. {self._advice}",
                code="ledger-busy",
            )

    def read(self) -> Seen | None:
        """What was seen last. None if nothing readable is in the file."""
        try:
            content = os.pread(self._file, 2 * _SLOT, 0)
        except OSError as error:
            raise self._checkpoint._unavailable(error) from None
        self._read = content, self._checkpoint._newest(content)
        return self._read[1]

    def advance(self, seen: Seen, *, durable: bool = False) -> None:
        """Record a state, unless a newer one of the same ledger is already recorded."""
        if self._read is None:
            self.read()
            assert self._read is not None
        content, newest = self._read
        try:
            if newest is None or newest.ledger != seen.ledger:
                os.pwrite(self._file, _slot(seen).ljust(2 * _SLOT), 0)
            elif newest.number == seen.number and newest.chain != seen.chain:
                raise LedgerDamaged(
                    "The ledger has another history than its checkpoint. Nothing is released. Restore the newest copy.",
                    code="ledger-old-copy",
                )
            elif seen.newer(newest):
                slot = _slot(seen)
                os.pwrite(self._file, slot, _SLOT if self._checkpoint._known[content[:_SLOT]] == newest else 0)
                self._checkpoint._known[slot] = seen
            if durable:
                os.fsync(self._file)
        except OSError as error:
            raise self._checkpoint._unavailable(error) from None


class Turn:
    """The lock of an empty file, at which the processes of one machine wait for each other.

    It only saves time: in the database they would wait for each other at every charge, while here a process makes
    several in a row. Nobody depends on it, so a process that waits too long, or cannot use the file, goes on without.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._file = path, -1

    def __enter__(self) -> None:
        try:
            make_file(self._path)
            self._file = os.open(self._path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            is_locked(self._file, _TURN)
        except OSError:
            pass

    def __exit__(self, *_: object) -> None:
        if self._file >= 0:
            fcntl.flock(self._file, fcntl.LOCK_UN)  # a child process that was forked meanwhile holds the same lock
            os.close(self._file)


def leads_away(place: Path) -> bool:
    """Whether a link of a user other than root is on the way to a file, and leads to what is not that user's."""
    for one in (place, *place.parents):
        with suppress(OSError):  # nothing is there
            owner, there = os.lstat(one).st_uid, one.resolve()
            folder = there if there.is_dir() else there.parent
            if owner and one.is_symlink() and os.stat(folder).st_uid != owner:
                return True
    return False


def make_file(path: Path) -> None:
    """Create an empty file that only its owner can read, with its directory entry on disk. Nothing happens to one that
    exists. What root creates belongs to the owner of its folder, whose ledger it is.

    A file that exists is never opened here: closing it would drop all locks of this process on it, also those of a
    connection of SQLite. Another process could then remove the log that this one still writes.
    """
    if os.path.lexists(path):
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(FileExistsError):
            file = os.open(path.name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
            try:
                if os.geteuid() == 0:
                    with suppress(OSError):  # in some containers, root may not
                        os.fchown(file, os.fstat(folder).st_uid, -1)
            finally:
                os.close(file)
            os.fsync(folder)
    finally:
        os.close(folder)


def is_locked(file: int, patience: float) -> bool:
    """Whether the lock of a file could be taken in so many seconds."""
    deadline = None
    for pause in chain(_PAUSES, repeat(_PAUSES[-1])):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            deadline = deadline or time.monotonic() + patience
            if time.monotonic() > deadline:
                return False
        time.sleep(pause)
    raise AssertionError


def _is_one(file: int) -> bool:
    """Whether all of a file is a checkpoint: anything else of root's may have been moved here."""
    content = os.pread(file, 2 * _SLOT + 1, 0)
    slots = content[:_SLOT], content[_SLOT:]
    return len(content) == 2 * _SLOT and all(not one.strip(b"\0") or _read_slot(one) is not None for one in slots)


def _slot(seen: Seen) -> bytes:
    ledger, chain = encode_basestring_ascii(seen.ledger), encode_basestring_ascii(seen.chain)
    text = f"[{ledger}, {seen.number}, {chain}, {seen.file}, {seen.answers}]"
    line = f"{text} {hashlib.sha256(text.encode()).hexdigest()[:16]}\n".encode()
    return line.ljust(_SLOT)


def _read_slot(content: bytes) -> Seen | None:
    """The state in a slot that is complete. Nothing else could be written without computing the hash."""
    text, _, check = content.decode(errors="replace").rstrip().rpartition(" ")
    if not text or hashlib.sha256(text.encode()).hexdigest()[:16] != check:
        return None
    with suppress(ValueError, TypeError, RecursionError):
        seen = Seen(*json.loads(text))
        if [type(value) for value in seen] == [str, int, str, int, int]:
            return seen
    return None
