"""Two users: the vault's can read the data, and the desk's cannot. This is checked by trying."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pwd
import resource
import signal
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import discreet
from discreet.datasets.policy import Policy
from discreet.errors import InvalidArgument
from discreet.gateway.settings import Settings
from discreet.ledger.stores.elsewhere import OFF, VARIABLE, second_folder
from discreet.ledger.stores.store import URLS

_TRY = """
import json, os, sys

def can_read(path):
    try:
        os.listdir(path) if os.path.isdir(path) else open(path, "rb").close()
    except OSError:
        return False
    return True

print(json.dumps([
    [can_read(path), os.access(path, os.W_OK), os.access(path, os.X_OK)]
    for path in json.load(sys.stdin)
]))
"""
_PARENT_ENDS, _DUMPABLE, _NO_NEW_PRIVILEGES = 1, 4, 38
"""Numbers of prctl, as Linux defines them."""
VAULT_HOME = "/var/lib/discreet-vault"
"""The home of the vault's user. The second checkpoint of its ledgers is there, away from their folders."""


class User(NamedTuple):
    """A user and its group, by number, and its home."""

    user: int
    group: int
    home: str = "/"

    @property
    def given(self) -> dict[str, object]:
        """How a process of this user is started. Only root can start one of another user."""
        return {} if self.user == os.geteuid() else {"user": self.user, "group": self.group, "extra_groups": []}

    @property
    def environment(self) -> dict[str, str]:
        """What differs in the environment of its processes: files of its own are in its own home."""
        return {} if self.user == os.geteuid() else {"HOME": self.home, "XDG_STATE_HOME": ""}


class Access(NamedTuple):
    """What a user can do with a file or a folder."""

    read: bool
    write: bool
    enter: bool
    """Or run, if it is a file."""


def this_user() -> User:
    """The user of this process."""
    return User(os.geteuid(), os.getegid())


def users_of(settings: Settings) -> tuple[User, User]:
    """The users of the vault and the desk."""
    vault, desk = (_user(name) for name in settings.users)
    if vault is None or desk is None:
        missing = [name for name, user in zip(settings.users, (vault, desk), strict=True) if user is None]
        made = [
            f"useradd --system --user-group --no-create-home --home-dir {home} --shell /usr/sbin/nologin {name}"
            for name, home in zip(settings.users, (VAULT_HOME, "/nonexistent"), strict=True)
            if name in missing
        ]
        if vault is None:  # useradd would let everybody enter the home
            name = settings.users[0]
            made.append(f"install -d -o {name} -g {name} -m 700 {VAULT_HOME}")
        raise InvalidArgument(
            f"there is no user {' and no user '.join(missing)}: {' && '.join(made)}", code="gateway-users"
        )
    return vault, desk


def vault_of(settings: Settings) -> User | None:
    """The user of the vault. None if there is no such user."""
    return _user(settings.users[0])


def _user(name: str) -> User | None:
    try:
        found = pwd.getpwuid(int(name)) if name.isdecimal() else pwd.getpwnam(name)
    except KeyError:
        return User(int(name), int(name)) if name.isdecimal() else None
    return User(found.pw_uid, found.pw_gid, found.pw_dir)


# --- files --------------------------------------------------------------------------------------------------


def _files(places: Iterable[object]) -> list[str]:
    """Those places that are files or folders, with everything in the folders, by their full paths."""
    found = set()
    for place in places:
        if isinstance(place, str | Path) and not str(place).startswith(URLS):
            path = Path(os.path.expanduser(place)).resolve()
            found |= {path, *path.rglob("*")} if path.is_dir() else {path}
    return sorted(str(path) for path in found if path.exists())


def own_paths(policy: Policy, settings: Settings) -> list[str]:
    """The files that the vault writes: the ledger, the gateway's own database, and the published data."""
    databases = [place for place in (policy.ledger, settings.store) if not str(place).startswith(URLS)]
    written = [f"{place}{end}" for place in databases for end in ("", "-wal", "-shm", ".checkpoint", ".lock")]
    return _files([*written, settings.copies])


def private_paths(file: Path, policy: Policy, settings: Settings) -> list[str]:
    """The files that the desk may not read: the sources, what the vault writes, and the policy, which may hold a
    password.
    """
    sources = _files(table.source for table in policy.tables.values() if not table.public)
    return sorted({*sources, *own_paths(policy, settings), *_files([file])})


def access(paths: Iterable[str], user: User) -> dict[str, Access]:
    """What this user can do with these files, found by trying in a process of that user."""
    paths = list(paths)
    try:
        run = subprocess.run(
            [sys.executable, "-I", "-c", _TRY],
            input=json.dumps(paths),
            capture_output=True,
            text=True,
            check=True,
            cwd="/",
            start_new_session=True,  # that user may look into the process, which must not have root's terminal
            **user.given,
        )  # type: ignore[call-overload]
    except (OSError, subprocess.CalledProcessError):
        raise InvalidArgument(_why_not_run(user), code="gateway-users") from None
    return {path: Access(*found) for path, found in zip(paths, json.loads(run.stdout), strict=True)}


def _why_not_run(user: User) -> str:
    """What stops a user from running the Python of this process, in words."""
    python = os.path.realpath(sys.executable)
    said = f"the user {_name(user)} cannot run {python}"
    above = {*Path(python).parents, *Path(os.path.abspath(sys.executable)).parents}
    with _acting_as(user) if user.given and os.geteuid() == 0 else contextlib.nullcontext():
        stopped = [str(one) for one in sorted(above) if not os.access(one, os.X_OK, effective_ids=True)]
    said += f", because it cannot enter {stopped[0]}" if stopped else ""
    return (
        f"{said}. Install discreet where all users can read it: "
        '/usr/bin/python3 -m venv /opt/discreet && /opt/discreet/bin/pip install "discreet[gateway]"  '
        '# once it is published; until then ".[gateway]" in a checkout'
    )


def _name(user: User) -> str:
    """How a user is called, or its number."""
    try:
        return pwd.getpwuid(user.user).pw_name
    except KeyError:
        return str(user.user)


def problems(file: Path, policy: Policy, settings: Settings) -> list[str]:
    """Why the desk is not isolated from the data, in words. Empty if it is. `file` is that of the policy."""
    if os.geteuid() != 0:
        return ["vault and desk run as the same user: start as root, so that they get users of their own"]
    try:
        try:
            vault, desk = users_of(settings)
        except InvalidArgument as error:  # before a first run, there is no policy to change
            return [str(error), *(["or name other users in [gateway]"] if file.exists() else [])]
        if vault.user == desk.user or 0 in (vault.user, desk.user):
            return ["vault and desk must be two different users, neither of them root"]
        found = _reached(file, policy, settings, vault, desk)
    except InvalidArgument as error:
        return [str(error)]
    if vault.group == desk.group:
        found.append("vault and desk have the same group: give each its own")
    return found


def _reached(file: Path, policy: Policy, settings: Settings, vault: User, desk: User) -> list[str]:
    """What the desk can reach and should not, and what either cannot reach and must."""
    private = private_paths(file, policy, settings)
    above = sorted({str(folder) for path in private for folder in Path(path).parents} - set(private))
    shown = [path for path in (settings.certificate, settings.key) if path is not None]
    program = str(Path(discreet.__file__).parent)
    by_desk = access([*private, *above, *shown, program], desk)

    read = [path for path in private if by_desk[path].read]
    found = [f"the desk can read {path}: chmod go-rwx {path}" for path in read]
    # in a folder such as /tmp, nobody can replace the files of others
    changed = [path for path in above if not os.stat(path).st_mode & stat.S_ISVTX]
    changed = [path for path in (*private, *changed) if by_desk[path].write]
    found += [f"the desk can change {path}: chmod go-w {path}" for path in changed]
    found += _out_of_reach(file, policy, settings, vault, {*read, *changed})
    for path in shown:
        if not by_desk[path].read:
            found.append(f"the desk cannot read {path}: chgrp {settings.users[1]} {path} && chmod g+r {path}")
    for who, able in (("vault", access([program], vault)), ("desk", by_desk)):
        if not able[program].read:
            found.append(f"the {who} cannot read {program}: install discreet where all users can read it")
    return found


def _out_of_reach(file: Path, policy: Policy, settings: Settings, vault: User, closed: set[str]) -> Iterator[str]:
    """What the vault cannot reach and must, also once the files and folders in `closed` are for their owners alone."""
    name, place, published = settings.users[0], f"/var/lib/{file.stem}", f"{settings.copies}{os.sep}"
    own = [path for path in own_paths(policy, settings) if not path.startswith(published)]  # which never changes
    folders = sorted({str(Path(path).parent) for path in _places(policy, settings)})
    read = [*_files(table.source for table in policy.tables.values()), *_files([file])]
    needed = dict.fromkeys([*read, *own, *folders])
    homes = {one.pw_dir for one in pwd.getpwall() if one.pw_uid != vault.user}
    below = sorted({str(folder) for path in needed for folder in Path(path).parents})
    able = access([*needed, *below], vault)
    blocking = next((folder for folder in below if not able[folder].enter), None)
    if blocking is not None:
        if _is_shared(blocking, homes) or blocking not in {
            str(Path(path).parent) for path in needed if path not in folders
        }:
            yield (
                f"the vault cannot enter {blocking}. Move the data, the policy and the ledger to a folder that it can "
                f"enter, such as {place}"
            )
            return
        yield f"the vault cannot enter {blocking}: chown {name} {blocking}"
    for path in needed:
        reads, is_owner = path in read, os.stat(path).st_uid == vault.user
        allowed = blocking is not None or (able[path].read if reads else able[path].write)
        needs_owner = blocking is not None or path in closed
        if path == blocking or (allowed and (is_owner or not needs_owner)):
            continue
        does = "read" if reads else "write"
        if path in folders and _is_shared(path, homes):
            yield f"the vault cannot write {path}. Move the policy and the ledger to a folder such as {place}"
        else:
            yield f"the vault cannot {does} {path}: chown {name} {path}"


def _is_shared(folder: str, homes: set[str]) -> bool:
    """Whether a folder is a home, has homes in it, or belongs to the system, so that it cannot be the vault's."""
    return any(Path(home).is_relative_to(folder) for home in homes) or len(Path(folder).parts) <= 2


def _places(policy: Policy | None, settings: Settings) -> list[str]:
    places = (*(() if policy is None else (policy.ledger,)), settings.store, settings.copies)
    return [str(Path(place).resolve()) for place in places if not str(place).startswith(URLS)]


def why_unnoticed(policy: Policy, vault: User, name: str) -> str | None:
    """Why an old ledger that is put back together with its checkpoint would not be noticed, in words. None if it is
    noticed, or if the owner switched that off. `name` is how the vault's user is called. A folder that the owner chose
    must be usable, because nothing is released without it.
    """
    is_chosen = bool(os.environ.get(VARIABLE, "").strip())
    if str(policy.ledger).startswith(URLS) and not is_chosen:
        return None  # its first checkpoint is not next to it already
    try:
        folder = second_folder(None if vault == this_user() else vault.home)
    except RuntimeError:
        folder = Path("/nonexistent")  # nobody knows a home
    if folder is None:
        return None
    there = next((str(one) for one in (folder, *folder.parents) if one.exists()), "/")
    if os.path.isdir(there) and access([there], vault)[there].write:
        return None
    if is_chosen:
        raise InvalidArgument(
            f"{name} cannot write {folder}, which {VARIABLE} names: no question could be charged. Name a folder that "
            f"{name} may write. {VARIABLE}={OFF} goes without a second checkpoint.",
            code="ledger-place",
        )
    return (
        f"there is no second checkpoint, because {name} cannot write {folder}: an old copy of the ledger that is put "
        f"back together with its checkpoint would not be noticed. Set {VARIABLE} to a folder that {name} may write, or "
        "give it a home"
    )


# --- processes ----------------------------------------------------------------------------------------------


def harden(*, ends_with_parent: bool = False) -> None:
    """Let this process gain no privileges, and let nobody look into its memory: no core dump, no debugger of the same
    user. It can be told to stop when the process that started it ends.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        prctl = ctypes.CDLL(None, use_errno=True).prctl
        prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        prctl(_DUMPABLE, 0, 0, 0, 0)
        if ends_with_parent:
            prctl(_PARENT_ENDS, signal.SIGTERM, 0, 0, 0)


@contextlib.contextmanager
def as_vault(policy: Policy | None, settings: Settings) -> Iterator[bool]:
    """Let root do something as the vault's user, so that files which it makes belong to the vault. Where that user does
    not exist, or cannot write the folders and the files in them, nothing changes. Gives whether this is that user now.
    Without a policy, no ledger is used.
    """
    places = _places(policy, settings)
    written = {str(Path(path).parent) for path in places}
    written |= {file for place in places for file in (place, f"{place}.checkpoint") if os.path.isfile(file)}
    with _as_user(vault_of(settings) if os.geteuid() == 0 else this_user(), written) as able:
        yield able


@contextlib.contextmanager
def as_owner(file: Path) -> Iterator[bool]:
    """Let root do something as the owner of a file, whose second checkpoints know it. Where the owner cannot write it
    and its folder, nothing changes. Gives whether this is the owner now.
    """
    owner = this_user() if os.geteuid() != 0 or not file.exists() else _user(str(file.stat().st_uid))
    with _as_user(owner, {str(file.resolve().parent), str(file.resolve())}) as able:
        yield able


@contextlib.contextmanager
def _as_user(user: User | None, written: set[str]) -> Iterator[bool]:
    """Let root be a user who can write these files and folders, and run this program."""
    if user is None or user.user == os.geteuid():
        yield user is not None
        return
    program = str(Path(discreet.__file__).parent)
    try:
        found = access({*written, program}, user)
        able = found[program].read and all(found[path].write for path in written)
    except InvalidArgument:
        able = False
    with _acting_as(user) if able else contextlib.nullcontext():
        yield able


@contextlib.contextmanager
def _acting_as(user: User) -> Iterator[None]:
    """Let root be another user, with the environment of that user."""
    groups, group = os.getgroups(), os.getegid()
    before = {name: os.environ.get(name) for name in user.environment}
    os.environ.update(user.environment)
    os.setgroups([])
    os.setegid(user.group)
    os.seteuid(user.user)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(group)
        os.setgroups(groups)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
