"""`discreet serve`: starts vault and desk, each as its own user if it can, and keeps them running.

It holds the listening sockets, so that a new pair can take over from a running one: the old pair answers what it has
begun, and no connection is refused meanwhile.
"""

from __future__ import annotations

import contextlib
import json
import logging
import logging.handlers
import os
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, TextIO

from discreet.datasets.ledgers import beginning, mistyped
from discreet.datasets.policy import Policy
from discreet.errors import InvalidArgument, ServiceUnavailable
from discreet.gateway.books.store import check_held, only_gateway
from discreet.gateway.desk.mcp import is_installed
from discreet.gateway.isolation import User, as_vault, problems, this_user, users_of, why_unnoticed
from discreet.gateway.settings import SHOWN_AMOUNTS, Address, Settings, load_served
from discreet.gateway.vault.snapshot import replaced_sources

PATIENCE = 120.0
"""How many seconds vault and desk may take until they are ready: the vault copies a new version of the data."""
_LOG_SIZE, _LOGS = 10 * 2**20, 5
_COMMANDS = ("chmod ", "chown ", "chgrp ", "useradd ", "/usr/bin/python3 ")
"""How commands begin that the owner is told."""
_AGAIN = 1.0
"""A process that ended by itself is started again after so many seconds."""
_KEPT = ("PATH", "LANG", "LC_ALL", "TZ", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "HOME")
"""The desk gets only these of the environment: others may hold passwords."""


class Pair:
    """A vault and its desk."""

    is_setup = False
    """Whether it is a first run, which has a program of its own in the place of the vault."""

    def __init__(
        self,
        policy: Path,
        settings: Settings,
        sockets: dict[str, socket.socket],
        folder: Path,
        users: tuple[User, User],
        locks: tuple[int, ...] = (),
    ) -> None:
        self.policy, self.settings, self.sockets, self._users, self._locks = policy, settings, sockets, users, locks
        self.folder = Path(tempfile.mkdtemp(prefix="pair-", dir=folder))
        self._own(self.folder, self._users[0], self._users[1])
        self.vault = self._start_vault()
        try:
            self.desk = self._start_desk()
        except ServiceUnavailable:
            _end(self.vault, PATIENCE)
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    @staticmethod
    def _own(folder: Path, vault: User, desk: User) -> None:
        """A folder in which the vault makes its socket, and which the desk can enter."""
        if vault != desk:
            os.chown(folder, vault.user, desk.group)
        folder.chmod(0o2710)  # what is made inside belongs to the desk's group

    @property
    def _path(self) -> Path:
        return self.folder / "vault"

    def _start_vault(self) -> subprocess.Popen[str]:
        user, desk = self._users
        command = [
            sys.executable,
            "-m",
            "discreet.gateway.vault.vault",
            str(self.policy),
            str(self._path),
            str(desk.user),
        ]
        command += ["supervised", *map(str, self._locks)]
        environment = {**os.environ, **user.environment}
        return ready(started(command, user, env=environment, pass_fds=self._locks), "vault")

    def _start_desk(self) -> subprocess.Popen[str]:
        listening = {name: one.fileno() for name, one in self.sockets.items()}
        command = [sys.executable, "-m", "discreet.gateway.desk.process"]
        process = started(
            command,
            self._users[1],
            pass_fds=tuple(listening.values()),
            env={name: os.environ[name] for name in _KEPT if name in os.environ} | self._users[1].environment,
            stdin=subprocess.PIPE,
        )
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            opening = desk_opening(self.settings, self._path, listening)
            process.stdin.write(json.dumps(opening | {"setup": self.is_setup}))
            process.stdin.close()
        return ready(process, "desk")

    def revive(self) -> list[str]:
        """Start again what ended by itself. Returns the names of what did."""
        gone = [name for name in ("vault", "desk") if getattr(self, name).poll() is not None]
        if gone:
            time.sleep(_AGAIN)
        if "vault" in gone:
            self.vault = self._start_vault()
        if "desk" in gone:
            self.desk = self._start_desk()
        return gone

    def stop(self) -> None:
        """Let both finish what they have begun: first the desk, then the vault."""
        longest = max(self.settings.answer_after * 3, 10.0) + PATIENCE
        for process in (self.desk, self.vault):
            _end(process, longest)
        shutil.rmtree(self.folder, ignore_errors=True)


def desk_opening(settings: Settings, vault: Path, listening: dict[str, int]) -> dict[str, Any]:
    """What the desk is told: where the vault is, its sockets, and the settings that concern it. No place of data."""
    oidc = settings.oidc
    return {
        "vault": str(vault),
        "listening": listening,
        "certificate": settings.certificate,
        "key": settings.key,
        "answer_after": settings.answer_after,
        "name": settings.name,
        "version": settings.version,
        **{name: _text(getattr(settings, name)) for name in SHOWN_AMOUNTS},
        "oidc": None if oidc is None else vars(oidc),
    }


def started(command: list[str], user: User, **given: Any) -> subprocess.Popen[str]:
    """A process of this user."""
    known: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "text": True}
    known |= {"start_new_session": True, "cwd": "/"} | user.given | given  # Ctrl-C reaches this process only
    return subprocess.Popen(command, **known)


def _end(process: subprocess.Popen[str], longest: float) -> None:
    """Let a process finish, and kill it if it takes too long."""
    process.terminate()
    try:
        process.wait(timeout=longest)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def ready(process: subprocess.Popen[str], name: str) -> subprocess.Popen[str]:
    """The process, after it said that it is ready."""
    assert process.stdout is not None
    found, _, _ = select.select([process.stdout], [], [], PATIENCE)
    if found and process.stdout.readline().strip() == "ready":
        return process
    process.kill()
    process.wait()
    raise ServiceUnavailable(
        f"The {name} of the gateway did not start. Its own message is above. Nothing was charged.",
        code="gateway-unavailable",
    )


def _text(amount: Fraction | None) -> str | None:
    return None if amount is None else str(amount)


def listen(settings: Settings) -> dict[str, socket.socket]:
    """The listening sockets of the desk. Those of one port are opened before a user is given up."""
    found = {}
    for name, address in (("http", settings.http), ("postgres", settings.postgres), ("metrics", settings.metrics)):
        if address is not None:
            found[name] = _listening(address, name)
    return found


def _addresses(settings: Settings) -> tuple[Address | None, ...]:
    return settings.http, settings.postgres, settings.metrics


def _listening(address: Address, name: str) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        return socket.create_server((address.host, address.port), family=family, backlog=1024)
    except OSError as error:
        raise InvalidArgument(
            f"{name} = {address} of [gateway] cannot be used: {error.strerror}. Choose another port.",
            code="port-unavailable",
        ) from None


class Supervisor:
    """Keeps one pair running: a new one on SIGHUP, none after SIGTERM or Ctrl-C."""

    def __init__(self, policy: str | Path, *, isolated: bool = True) -> None:
        self.policy_file = Path(policy).expanduser().resolve()
        self._isolated = isolated
        known, self.settings, self.problems, self._users = self._read()
        self.warnings = _warnings(known, self.settings, self._users[0])
        self.beginning = beginning(known)
        self._log = _log(self.settings)
        self._signals: list[int] = []
        self._ending: list[threading.Thread] = []

    def _read(self) -> tuple[Policy, Settings, list[str], tuple[User, User]]:
        """The policy and the settings as they are now, what is wrong with the isolation, and the users that follow."""
        policy, settings = load_served(self.policy_file)
        found = problems(self.policy_file, policy, settings)
        if found and os.geteuid() == 0 and self._isolated:
            raise not_isolated(found)
        return policy, settings, found, (this_user(), this_user()) if found else users_of(settings)

    @contextlib.contextmanager
    def running(self, sockets: dict[str, socket.socket] | None = None) -> Iterator[Pair]:
        """A running pair, stopped at the end. It takes over sockets that listen already, if there are some."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(hearing(self._signals))
            folder = stack.enter_context(own_folder())
            self._locks = self._only_gateway()  # before the ports, which are taken if the same policy is served twice
            for lock in self._locks:
                stack.callback(os.close, lock)
            sockets = listen(self.settings) if sockets is None else sockets
            for one in sockets.values():
                stack.callback(one.close)
            self._pair = Pair(self.policy_file, self.settings, sockets, folder, self._users, self._locks)
            self._log.info("started")
            _notify("READY=1")
            try:
                yield self._pair
            finally:
                _notify("STOPPING=1")
                self._pair.stop()
                for thread in self._ending:
                    thread.join()
                self._log.info("stopped")

    def _only_gateway(self) -> tuple[int, ...]:
        """The locks that no other gateway uses the same databases. Their files belong to the vault, like these."""
        policy, settings = load_served(self.policy_file)
        with as_vault(policy, settings):
            return only_gateway(settings.store, str(policy.ledger))

    def addresses(self) -> dict[str, str]:
        """Where the desk is reached. A port of 0 is the one that was given."""
        secure = "https" if self.settings.certificate else "http"
        found = {}
        for name, one in self._pair.sockets.items():
            host, port = one.getsockname()[:2]
            scheme = "postgresql" if name == "postgres" else secure
            end = {"postgres": f"/{self.settings.name}", "metrics": "/metrics"}.get(name, "")
            found[name] = f"{scheme}://{Address(host, port)}{end}"
        if is_installed():
            found["mcp"] = f"{found['http']}/mcp"
        return found

    def watch(self) -> None:
        """Revive what ends, replace the pair on SIGHUP, and return on SIGTERM or Ctrl-C."""
        while not {signal.SIGTERM, signal.SIGINT}.intersection(self._signals):
            if self._signals:
                self._signals.clear()
                self.replace()
            try:
                for name in self._pair.revive():
                    self._log.warning("%s ended and was started again", name)
            except ServiceUnavailable as error:
                self._log.error("%s", error)
            time.sleep(0.2)

    def replace(self) -> None:
        """Start a new pair from what is installed now, and let the old one finish. If it does not start, keep the
        old.
        """
        old = self._pair
        try:
            policy, settings, found, users = self._read()
            if _addresses(settings) != _addresses(self.settings):
                raise InvalidArgument(
                    "http, postgres or metrics of [gateway] has changed, but the gateway listens already. Restart it.",
                    code="gateway-address",
                )
            self._log = _log(settings)  # a new file, if the old one was moved away
            check_held(self._locks, settings.store, str(policy.ledger))
            self._pair = Pair(self.policy_file, settings, old.sockets, old.folder.parent, users, self._locks)
        except (InvalidArgument, ServiceUnavailable) as error:
            self._log.error("the running pair was kept: %s", error)
            _tell(f"error [{error.code}]: {error} The running pair was kept.", sys.stderr)
            return
        self.settings, self.problems, self._users = settings, found, users
        self.warnings = _warnings(policy, settings, users[0])
        for text in self.warnings:
            _tell(f"WARNING: {text}", sys.stderr)
        self._ending = [thread for thread in self._ending if thread.is_alive()]
        self._ending.append(threading.Thread(target=old.stop))
        self._ending[-1].start()
        self._log.info("replaced")
        read = datetime.fromtimestamp(self.policy_file.stat().st_mtime)
        _tell(f"Replaced: the policy of {read:%Y-%m-%d %H:%M:%S} is served.", sys.stdout)


def _tell(text: str, stream: TextIO) -> None:
    """Print it, if somebody can still read it. A gateway outlives the terminal or the pipe that it was started with."""
    try:
        print(text, file=stream, flush=True)
    except OSError:  # from now on nobody reads: what is left in the stream must not fail again at the end
        with open(os.devnull, "w") as nobody:
            os.dup2(nobody.fileno(), stream.fileno())


@contextlib.contextmanager
def hearing(signals: list[int]) -> Iterator[None]:
    """Keep signals in a list, also those that come while a pair starts."""
    heard = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = [signal.signal(number, lambda found, _: signals.append(found)) for number in heard]
    try:
        yield
    finally:
        for number, handler in zip(heard, before, strict=True):
            signal.signal(number, handler)


@contextlib.contextmanager
def own_folder() -> Iterator[Path]:
    """A folder for the sockets of pairs, which others can enter but not list."""
    folder = Path(tempfile.mkdtemp(prefix="discreet-"))
    try:
        folder.chmod(0o711)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _notify(state: str) -> None:
    """Tell systemd, if it started this process and wants to know."""
    if place := os.environ.get("NOTIFY_SOCKET"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one, contextlib.suppress(OSError):
            one.sendto(state.encode(), "\0" + place[1:] if place.startswith("@") else place)


def not_isolated(found: list[str]) -> InvalidArgument:
    """The error if an analyst who takes over the desk could read the data."""
    lines = [line for one in found for line in _lines(one)]
    return InvalidArgument(
        "NOT ISOLATED. Nothing was started. Correct this, or try things out with --not-isolated:\n" + "\n".join(lines),
        code="gateway-not-isolated",
    )


def _lines(problem: str) -> Iterator[str]:
    """A problem on a line, and the commands that correct it, each on its own."""
    said, _, commands = problem.rpartition(": ")
    if not commands.startswith(_COMMANDS):
        said, commands = problem, ""
    yield f"  {said}"
    yield from (f"    {command}" for command in commands.split(" && ") if command)


def _log(settings: Settings) -> logging.Logger:
    """The log of starts, stops and failures. It has no questions, names or addresses. Old ones are removed."""
    log = logging.getLogger("discreet.gateway")
    log.setLevel(logging.INFO)
    log.propagate = False
    handler: logging.Handler = logging.NullHandler()
    if settings.log:
        try:
            handler = logging.handlers.RotatingFileHandler(settings.log, maxBytes=_LOG_SIZE, backupCount=_LOGS)
        except OSError as error:
            raise _log_error(settings.log, error.strerror) from None
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    for old in log.handlers:  # only now: if the new file cannot be written, the old one says so
        old.close()
    log.handlers = [handler]
    return log


def _check_log(file: str | None) -> None:
    """Refuse a log that `discreet serve` could not write. Nothing is made here."""
    if not file:
        return
    place = Path(file)
    is_there = place.exists()
    if is_there and not place.is_file():
        raise _log_error(file, "not a file")
    if not os.access(place if is_there else place.parent, os.W_OK if is_there else os.W_OK | os.X_OK):
        raise _log_error(file, "not writable" if place.parent.is_dir() else "no such folder")


def _log_error(file: str, why: str | None) -> InvalidArgument:
    folder = Path(file).parent
    remedy = (
        "Name another file" if folder.is_dir() else f"Make its folder: install -d -m 700 {shlex.quote(str(folder))}"
    )
    return InvalidArgument(f"log of [gateway] cannot be written: {why}. {remedy}.", code="file-not-writable")


def _warnings(policy: Policy, settings: Settings, vault: User) -> list[str]:
    """What the owner should know, such as why an old copy of the ledger might not be noticed, in words."""
    unnoticed = why_unnoticed(policy, vault, "this user" if vault == this_user() else settings.users[0])
    return [*(text for text in (unnoticed, mistyped(policy)) if text), *replaced_sources(policy, settings)]


def check(file: str | Path) -> list[str]:
    """Refuse unless the desk is isolated from the data of a policy. Returns what the owner should know, in words."""
    file = Path(file).expanduser().resolve()
    policy, settings = load_served(file)
    if found := problems(file, policy, settings):
        raise not_isolated(found)
    _check_log(settings.log)
    return _warnings(policy, settings, users_of(settings)[0])
