"""Two users: the vault's can read the data, and the desk's cannot. This is checked by trying."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from discreet.datasets.policy import Policy
from discreet.errors import InvalidArgument
from discreet.gateway.settings import Settings
from discreet.ledger.store import URLS

_TRY = """
import sys
for path in sys.argv[1:]:
    try:
        open(path, "rb").close()
        print(path)
    except IsADirectoryError:
        try:
            import os
            os.listdir(path)
            print(path)
        except OSError:
            pass
    except OSError:
        pass
"""


class User(NamedTuple):
    """A user and its group, by number."""

    user: int
    group: int

    @property
    def given(self) -> dict[str, object]:
        """How a process of this user is started. Only root can start one of another user."""
        return {} if self == this_user() else {"user": self.user, "group": self.group, "extra_groups": []}


def this_user() -> User:
    """The user of this process."""
    return User(os.geteuid(), os.getegid())


def users_of(settings: Settings) -> tuple[User, User]:
    """The users of the vault and the desk."""
    return _user(settings.users[0]), _user(settings.users[1])


def _user(name: str) -> User:
    try:
        found = pwd.getpwuid(int(name)) if name.isdecimal() else pwd.getpwnam(name)
    except KeyError:
        if name.isdecimal():
            return User(int(name), int(name))
        raise InvalidArgument(
            f"there is no user {name}: create it with useradd --system --user-group --no-create-home {name}, or name "
            "other users in [gateway]",
            code="gateway-users",
        ) from None
    return User(found.pw_uid, found.pw_gid)


def private_paths(policy: Policy, settings: Settings) -> list[str]:
    """The files that only the vault may read: the sources, the ledger, and the gateway's own database."""
    places = [table.source for table in policy.tables.values() if not table.public]
    places += [policy.ledger, f"{policy.ledger}.checkpoint", settings.store, f"{settings.store}.data"]
    named = (str(place) for place in places if isinstance(place, str | Path) and not str(place).startswith(URLS))
    return sorted({str(Path(os.path.expanduser(place)).resolve()) for place in named})


def readable(paths: Iterable[str], user: User) -> list[str]:
    """Which of these files this user can read, found by trying in a process of that user."""
    run = subprocess.run(
        [sys.executable, "-I", "-c", _TRY, *paths], capture_output=True, text=True, check=True, cwd="/", **user.given
    )  # type: ignore[call-overload]
    return str(run.stdout).splitlines()


def problems(policy: Policy, settings: Settings) -> list[str]:
    """Why the desk is not isolated from the data, in words. Empty if it is."""
    if os.geteuid() != 0:
        return ["vault and desk run as the same user: start as root, so that they get users of their own"]
    try:
        vault, desk = users_of(settings)
    except InvalidArgument as error:
        return [str(error)]
    if vault.user == desk.user or 0 in (vault.user, desk.user):
        return ["vault and desk must be two different users, neither of them root"]
    paths = [path for path in private_paths(policy, settings) if Path(path).exists()]
    found = [f"the desk can read {path}: chmod go-rwx {path}" for path in readable(paths, desk)]
    able = set(readable(paths, vault))
    found += [f"the vault cannot read {path}: chown {settings.users[0]} {path}" for path in paths if path not in able]
    if vault.group == desk.group:
        found.append("vault and desk have the same group: give each its own")
    return found
