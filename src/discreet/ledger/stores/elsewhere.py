"""A second checkpoint outside of the ledger's folder, so that a folder that is put back as a whole is noticed, too.

For root, it is that of the user whose ledger it is: only the vault's user has seen what a gateway has charged.

It is written after the entry is durable and after the first checkpoint, so it may be behind an honest ledger, and never
ahead. A user, a machine or a container without it notices less, and is never stopped by its absence. Where the owner
chose a folder, nothing is written to a ledger without it.
"""

from __future__ import annotations

import os
import pwd
from contextlib import suppress
from pathlib import Path

from discreet.errors import InvalidArgument, LedgerUnavailable
from discreet.ledger.stores.checkpoint import Checkpoint, Seen

VARIABLE, OFF = "DISCREET_STATE", "off"


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
    """What was seen of one ledger, in a folder that its backups do not contain."""

    def __init__(self, path: Path, *, chosen: bool, owner: int | None = None) -> None:
        self._checkpoint, self._chosen = Checkpoint(path, owner=owner), chosen

    @property
    def path(self) -> Path:
        """The file."""
        return self._checkpoint.path

    def read(self) -> Seen | None:
        """What was seen last. None if nothing is known here."""
        try:
            return self._checkpoint.read()
        except LedgerUnavailable:
            if self._chosen:
                raise
            return None

    def try_folder(self) -> None:
        """Refuse to go on if a folder was chosen that cannot be used: after a charge it would be too late to say so."""
        if self._chosen:
            try:
                self._make_folder()
                os.close(self._checkpoint.open(os.O_RDWR | os.O_CREAT))
            except OSError as error:
                raise self._unusable("Nothing is written to the ledger.") from error

    def advance(self, seen: Seen) -> None:
        """Record a state that is durable, unless a newer one is recorded. Nobody waits for it, and it stops nobody who
        did not choose its folder.
        """
        try:
            try:
                self._checkpoint.advance(seen)
            except LedgerUnavailable:  # the first time, there is no folder
                self._make_folder()
                self._checkpoint.advance(seen)
        except (OSError, LedgerUnavailable) as error:
            if self._chosen:
                raise self._unusable("What was charged stays charged.") from error

    def _make_folder(self) -> None:
        if self._checkpoint.owner is None:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)

    def _unusable(self, effect: str) -> LedgerUnavailable:
        return LedgerUnavailable(
            f"The folder {self.path.parent} that {VARIABLE} names cannot be used. {effect} Make it writable, or name "
            f"another; {VARIABLE}={OFF} goes without.",
            code="ledger-checkpoint",
        )


def second_checkpoint(ledger: str, first: Checkpoint | None) -> SecondCheckpoint | None:
    """The second checkpoint of a ledger: in the folder that DISCREET_STATE names, or in the user's state directory, or
    for root in that of the owner, if there is one. None if it is switched off, or if the first one is there.
    """
    if first is None or not ledger:
        return None
    with suppress(RuntimeError, OSError):  # a user without a home
        if (folder := second_folder()) is not None:
            path = folder / f"{ledger}.checkpoint"
            chosen = bool(os.environ.get(VARIABLE, "").strip())
            if path.resolve() == first.path.resolve():
                return None
            return _of_owner(path, first, chosen) or SecondCheckpoint(path, chosen=chosen)
    return None


def _of_owner(own: Path, first: Checkpoint, chosen: bool) -> SecondCheckpoint | None:
    """The one of another user whose ledger root uses, by the owner of its first checkpoint or of their folder."""
    if os.geteuid() != 0:
        return None
    for place in (first.path, first.path.parent):
        with suppress(OSError, KeyError):  # it is missing, or its owner is a number without a home
            owner = os.stat(place).st_uid
            folder = second_folder(pwd.getpwuid(owner).pw_dir) if owner else None
            if folder is not None and folder != own.parent and os.path.lexists(folder / own.name):
                return SecondCheckpoint(folder / own.name, chosen=chosen, owner=owner)
    return None
