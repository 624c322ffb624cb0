"""`discreet serve --new`: the set-up of a gateway on this machine alone, and then the gateway itself, at one address.

A program in the place of the vault reads the names and types of columns. The owner, who has the printed link, decides
the rest in a browser. Once the policy is written, vault and desk take over the listening socket.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from discreet.datasets.policy import Policy
from discreet.datasets.sources import is_database
from discreet.errors import InvalidArgument, ServiceUnavailable
from discreet.gateway.books.tokens import digest_of, new_secret
from discreet.gateway.isolation import User, problems, this_user, users_of
from discreet.gateway.serve import Pair, Supervisor, hearing, not_isolated, own_folder, ready, started
from discreet.gateway.settings import HTTP, USERS, Address, Settings
from discreet.gateway.setup.process import BEGIN
from discreet.guarantees.guarantee import Pure
from discreet.guarantees.unit import Unit
from discreet.sql.schema import Table

if TYPE_CHECKING:
    import subprocess

_LOOK = 0.2
"""Seconds between two looks at what the set-up says."""


class SetupPair(Pair):
    """The program of a first run, and its desk."""

    is_setup = True

    def __init__(self, opening: dict[str, object], policy: Path, settings: Settings, **given: object) -> None:
        self._opening = opening
        super().__init__(policy, settings, **given)  # type: ignore[arg-type]

    def _start_vault(self) -> subprocess.Popen[str]:
        user, desk = self._users
        command = [sys.executable, "-m", "discreet.gateway.setup.process"]
        process = started(command, user, env={**os.environ, **user.environment}, stdin=-1)
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(self._opening | {"socket": str(self._path), "desk": desk.user}))
            process.stdin.close()
        return ready(process, "set-up")

    def has_begun(self, seconds: float) -> bool:
        """Whether the policy was written, after waiting this long at most."""
        assert self.vault.stdout is not None
        found, _, _ = select.select([self.vault.stdout], [], [], seconds)
        if not found:
            return False
        said = self.vault.stdout.readline().strip()
        if not said:  # it ended
            raise ServiceUnavailable(
                "The set-up ended. Nothing was charged. Start it again.", code="gateway-unavailable"
            )
        return said == BEGIN


class FirstRun:
    """A first run for data, until the gateway itself runs."""

    def __init__(
        self,
        data: Sequence[str],
        policy: str | Path | None = None,
        *,
        header: bool | None = None,
        columns: Sequence[str] = (),
        encoding: str | Sequence[str] | None = None,
        isolated: bool = True,
        users: tuple[str, str] = USERS,
    ) -> None:
        self.policy_file = (Path(policy) if policy else Path(_policy_name(data[0]))).expanduser().resolve()
        self.data = [one if is_database([one]) else str(Path(one).expanduser().resolve()) for one in data]
        self._known = {"header": header, "columns": columns, "encoding": encoding}
        self._isolated = isolated
        self._secret = new_secret()
        self._signals: list[int] = []
        _check_new(self.policy_file)
        store = str(self.policy_file.with_suffix(".gateway"))
        self.settings = Settings(name=self.policy_file.stem, store=store, copies=f"{store}.data", users=users)
        self.problems, self._users = self._isolation()

    def _isolation(self) -> tuple[list[str], tuple[User, User]]:
        """What is wrong with the isolation, and the users that follow. It is that of the policy that will be."""
        sources = {} if is_database(self.data) else {f"t{number}": one for number, one in enumerate(self.data)}
        tables = {name: Table(name=name, columns={}, source=one) for name, one in sources.items()}
        tables = tables or {"t": Table(name="t", columns={}, source="t.t")}
        ledger = str(self.policy_file.with_suffix(".ledger"))
        policy = Policy(unit=Unit(None), limit=Pure(epsilon=1), tables=tables, ledger=ledger)
        found = problems(self.policy_file, policy, self.settings)
        if found and os.geteuid() == 0 and self._isolated:
            raise not_isolated(found)
        return found, (this_user(), this_user()) if found else users_of(self.settings)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """The set-up, which is stopped at the end."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(hearing(self._signals))
            folder = stack.enter_context(own_folder())
            self._listening = stack.enter_context(_listen())
            opening: dict[str, object] = {
                "data": self.data,
                "policy": str(self.policy_file),
                "known": self._known,
                "http": str(self.address),
                "users": None if self.settings.users == USERS else self.settings.users,
                "link": digest_of(self._secret),
            }
            given = {"sockets": {"http": self._listening}, "folder": folder, "users": self._users}
            self._pair: SetupPair | None = SetupPair(opening, self.policy_file, self.settings, **given)
            stack.callback(self._stop)
            yield

    @property
    def address(self) -> Address:
        """Where the set-up and then the gateway listen: on this machine only."""
        return Address(*self._listening.getsockname()[:2])

    @property
    def link(self) -> str:
        """The owner's link, which works once."""
        return f"http://{self.address}/login#{self._secret}"

    def watch(self) -> None:
        """Wait until the policy is written, serve it, and return on SIGTERM or Ctrl-C."""
        assert self._pair is not None
        while not self._pair.has_begun(_LOOK):
            if {signal.SIGTERM, signal.SIGINT}.intersection(self._signals):
                return
        supervisor = Supervisor(self.policy_file, isolated=self._isolated)
        for text in supervisor.warnings:
            print(f"WARNING: {text}", file=sys.stderr)
        with supervisor.running({"http": self._listening.dup()}):
            ending = threading.Thread(target=self._stop)
            ending.start()
            print(f"serving   {self.policy_file}", flush=True)
            supervisor.watch()
            ending.join()

    def _stop(self) -> None:
        if self._pair is not None:
            self._pair.stop()
            self._pair = None


@contextlib.contextmanager
def _listen() -> Iterator[socket.socket]:
    """A socket at the usual port, or at another one if it is used."""
    try:
        found = socket.create_server(HTTP, backlog=1024)
    except OSError:
        found = socket.create_server((HTTP.host, 0), backlog=1024)
    with found:
        yield found


def _policy_name(source: str) -> str:
    """The name of the policy if none is given: that of the data."""
    stem = urlsplit(source).path.strip("/") if is_database([source]) else Path(source).stem
    plain = re.sub(r"[^\w.-]+", "_", stem).strip("._") or "data"
    return f"{plain}.toml"


def _check_new(file: Path) -> None:
    """Refuse to touch a policy or records that exist."""
    for one in (file, file.with_suffix(".ledger"), file.with_suffix(".gateway")):
        if one.exists():
            serve = f"Serve it with: discreet serve {file.name}. For new data, name another policy after the data."
            several = "It would be the policy. For several files, repeat the option: --new a.csv --new b.csv."
            raise InvalidArgument(
                f"{one} exists and is left as it is. {serve if file.suffix == '.toml' else several}", code="file-exists"
            )
    if not file.parent.is_dir():
        raise InvalidArgument(
            f"The folder {file.parent} does not exist. Create it, or name another.", code="no-such-folder"
        )
