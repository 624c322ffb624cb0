"""The folder for rows that do not fit into memory. Only its owner can read it, and it is removed with the engine."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path

from discreet.errors import InvalidArgument

_NEW, _NAME, _LOCK = "discreet-new-", "discreet-spill-", "in-use"


class Spill:
    """A folder inside `parent`, with mode 0700, for one engine.

    Promise: it is removed by `close`, with the last use of this object, and at the end of the process. Only a process
    that is killed leaves it behind; the next one that spills into the same `parent` removes it then.
    """

    def __init__(self, parent: str | Path | None = None) -> None:
        """In the system's temporary folder, unless `parent` is given, which must exist."""
        if parent is not None and not os.path.isdir(os.path.expanduser(parent)):
            raise InvalidArgument(
                f"The folder {parent} to spill into does not exist. Create it, or name another.", code="spill-folder"
            )
        try:
            place = Path(os.path.expanduser(tempfile.gettempdir() if parent is None else parent)).resolve()
            _remove_leftovers(place)
            new = Path(tempfile.mkdtemp(prefix=_NEW, dir=place))
        except OSError as error:
            raise InvalidArgument(
                f"The folder to spill into cannot be used: {error.strerror}. Name another.", code="spill-folder"
            ) from None
        lock = os.open(new / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        _try_lock(lock)
        # others look only for this name, and by then the lock shows that it is in use
        self.folder = new.rename(place / f"{_NAME}{new.name.removeprefix(_NEW)}")
        self._finalizer = weakref.finalize(self, _remove, self.folder, lock, os.getpid())

    def close(self) -> None:
        """Remove the folder and everything in it."""
        self._finalizer()


def _remove(folder: Path, lock: int, process: int) -> None:
    if os.getpid() == process:  # a forked child leaves its parent's folder alone
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _remove_leftovers(place: Path) -> None:
    """Remove the folders of processes that were killed: their locks are free."""
    for folder in place.glob(f"{_NAME}*"):
        with suppress(OSError):  # it was removed meanwhile, or belongs to another user
            lock = os.open(folder / _LOCK, os.O_RDWR)
            try:
                if folder.lstat().st_uid == os.getuid() and _try_lock(lock):
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


def _try_lock(lock: int) -> bool:
    """Whether we hold the lock now. A file system without locks never grants it."""
    with suppress(OSError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False
