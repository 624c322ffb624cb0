"""A second checkpoint outside of the ledger's folder, so that a folder that is put back as a whole is noticed, too.

For root, it is also that of the user whose ledger it is: only the vault's user has seen what a gateway has charged.

It is written after the entry is durable and after the first checkpoint, so it may be behind an honest ledger, and never
ahead. A user, a machine or a container without it notices less, and is never stopped by its absence. Where the owner
chose a folder, nothing is written to a ledger without it.
"""

from __future__ import annotations

import os
import pwd
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

from discreet.errors import InvalidArgument, LedgerUnavailable
from discreet.ledger.stores.checkpoint import Checkpoint, Seen

VARIABLE, OFF = "DISCREET_STATE", "off"
_MAKE = 'mkdir -p "$1" && : >> "$2"'
_PATIENCE = 1.0
"""How many seconds to wait for a second checkpoint that nobody chose, and that another process holds."""


def state_folder() -> Path:
    """The folder for what this user has seen of ledgers."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "discreet"


def second_folder(home: str | None = None) -> Path | None:
    """The folder of second checkpoints: the one that DISCREET_STATE names, or in the state directory of this user, or
    of the user with this home. None if they are switched off.
    """
    chosen = os.environ.get(VARIABLE, "").strip()
    if chosen == OFF:
        return None
    if not chosen:
        return state_folder() if home is None else Path(home) / ".local" / "state" / "discreet"
    if home is not None and chosen.startswith("~/"):
        chosen = home + chosen[1:]
    folder = os.path.expanduser(chosen)
    if not os.path.isabs(folder):
        raise InvalidArgument(
            f"{VARIABLE} must be the full path of a folder, or {OFF}. A relative one would depend on where you are.",
            code="ledger-place",
        )
    return Path(folder)


class SecondCheckpoint:
    """What was seen of one ledger, in folders that its backups do not contain. The first file is the one to name."""

    def __init__(self, *files: Checkpoint, chosen: bool) -> None:
        self._files, self._chosen = files, chosen
        self._tried = set[Checkpoint]()

    @property
    def path(self) -> Path:
        """The file, or where it will be."""
        return next((file.path for file in self._files if os.path.lexists(file.path)), self._files[0].path)

    def read(self) -> Seen | None:
        """What was seen last. None if nothing is known here."""
        newest = None
        for file in self._files:
            try:
                seen = file.read()
            except LedgerUnavailable:
                if self._chosen:
                    raise
                continue
            if seen is not None and (newest is None or seen.newer(newest)):
                newest = seen
        return newest

    def try_folder(self) -> None:
        """Refuse to go on if a folder was chosen that cannot be used: after a charge it would be too late to say so."""
        if self._chosen:
            try:
                if self._files[0].owner is None:
                    self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._files[0].fill()
            except (OSError, RuntimeError) as error:
                raise self._unusable("Nothing is written to the ledger.") from error

    def advance(self, seen: Seen) -> None:
        """Record a state that is durable, unless a newer one is recorded. Nobody waits long for it, and it stops nobody
        who did not choose its folder.
        """
        is_seen = False
        for file in self._files:
            try:
                if not os.path.lexists(file.path):  # the first time
                    if is_seen or file in self._tried:
                        continue  # root has its own only for a user who can have none
                    self._make(file)
                file.advance(seen)
                is_seen = True
            except (OSError, LedgerUnavailable) as error:
                if self._chosen:
                    raise self._unusable("What was charged stays charged.") from error

    def _make(self, file: Checkpoint) -> None:
        """Create the folder of a file, and the file if it is that of another user, which is tried once."""
        if file.owner is None:
            file.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        elif not self._chosen:
            self._tried.add(file)
            _make_as(file.owner, file.path)

    def _unusable(self, effect: str) -> LedgerUnavailable:
        return LedgerUnavailable(
            f"The folder {self.path.parent} that {VARIABLE} names cannot be used. {effect} Make it writable, or name "
            f"another; {VARIABLE}={OFF} goes without.",
            code="ledger-checkpoint",
        )


def second_checkpoint(ledger: str, first: Checkpoint | None, place: str) -> SecondCheckpoint | None:
    """The second checkpoint of a ledger at a place: in the folder that DISCREET_STATE names, or in the user's state
    directory. Root also uses that of the user whose ledger it is. None if it is switched off, if the first one is
    there, or for a user without a home.
    """
    if first is None or not ledger:
        return None
    chosen = bool(os.environ.get(VARIABLE, "").strip())
    try:
        if (folder := second_folder()) is None:
            return None
    except RuntimeError:  # there is no home
        return None
    path = folder / f"{ledger}.checkpoint"
    if os.path.realpath(path) == os.path.realpath(first.path):
        return None
    owner = _owner_of(Path(place), first) if os.geteuid() == 0 else 0
    if chosen:
        return SecondCheckpoint(Checkpoint(path, owner=owner or None, creates=True), chosen=True)
    files = [Checkpoint(path, patience=_PATIENCE)]
    if owner:
        files = _for_owner(path, owner)
    return SecondCheckpoint(*files, chosen=False) if files else None


def _owner_of(place: Path, first: Checkpoint) -> int:
    """The user whose ledger root opens, by the owners of its files and their folders. 0 if they are root's."""
    for one in (place, place.parent, first.path, first.path.parent):
        with suppress(OSError):  # it is missing, or in a database
            if owner := os.lstat(one).st_uid:
                return owner
    return 0


def _make_as(owner: int, file: Path) -> None:
    """Let root create an empty file and its folder as another user, who could make links in its own home.

    That user may look into the process that does it, and stop it: it has no file and no terminal of root's, and ends
    with all that it started.
    """
    import subprocess

    nothing = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    command = ["/bin/sh", "-c", _MAKE, "sh", str(file.parent), str(file)]
    with suppress(OSError, KeyError, subprocess.SubprocessError):
        group = pwd.getpwuid(owner).pw_gid
        given: dict[str, Any] = {"user": owner, "group": group, "extra_groups": [], "umask": 0o077, **nothing}
        process = subprocess.Popen(command, cwd="/", env={}, start_new_session=True, **given)
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _for_owner(own: Path, owner: int) -> list[Checkpoint]:
    """That of another user, and root's own, which root does not create next to that or in its home."""
    files, home = [], ""
    with suppress(KeyError):  # a number without a home
        home = pwd.getpwuid(owner).pw_dir
    folder = second_folder(home) if home else None
    if folder is not None:
        files.append(Checkpoint(folder / own.name, owner=owner, patience=_PATIENCE))
    is_roots = folder is None or os.path.realpath(folder) != os.path.realpath(own.parent)
    if is_roots:
        files.append(Checkpoint(own, patience=_PATIENCE))
    return files
