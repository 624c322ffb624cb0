"""The services, started by the very commands of the units and of the compose file, over loopback."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import yaml

from discreet.cli import main
from discreet.cli.shuffle.options import files_of

from ..gateway.house import BY_CITY, COUNT
from ..gateway.served import ENVIRONMENT, give_to_vault, python_for_all, served, served_as_root
from ..shuffle.channel.polls import Service, free_port
from ..shuffle.channel.test_tls import certificate

DEPLOY = Path(__file__).parents[2] / "deploy"
PROGRAM = [sys.executable, "-c", "from discreet.cli import main; main()"]
pytestmark = pytest.mark.slow


def command_of_unit(name: str, instance: str, **moved: Path) -> list[str]:
    """What systemd runs for an instance, with folders of this test for `/var/lib/…`."""
    [line] = [
        line.removeprefix("ExecStart=")
        for line in (DEPLOY / name).read_text().splitlines()
        if line.startswith("ExecStart=")
    ]
    for place, folder in moved.items():
        line = line.replace(f"/var/lib/{place.replace('_', '/')}/%i", str(folder))
    program, *words = shlex.split(line.replace("%i", instance))
    assert program == "/opt/discreet/bin/discreet"
    assert not any(word.startswith("/var/") for word in words)
    return [*PROGRAM, *words]


def command_of_compose(name: str, folder: Path) -> list[str]:
    """What a container runs, with a folder of this test for its volume, and on this machine alone."""
    program, *words = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"][name]["command"]
    assert program == "discreet"
    return [
        *PROGRAM,
        *(word.replace("/var/lib/discreet/poll", str(folder)).replace("0.0.0.0", "127.0.0.1") for word in words),
    ]


def with_port(command: list[str], port: str) -> list[str]:
    """The same command on a free port."""
    at = command.index("--port") + 1
    return [*command[:at], port, *command[at + 1 :]]


@contextmanager
def heard(folder: Path) -> Iterator[socket.socket]:
    """The socket on which a service says that it is ready, as systemd has it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ours:
        ours.bind(str(folder / "notify"))
        ours.settimeout(120)
        yield ours


def test_the_gateway_of_the_unit(tmp_path: Path) -> None:
    is_root = os.geteuid() == 0 and python_for_all() is not None
    with served_as_root() if is_root else served(tmp_path / "clinic") as house:
        token = house.open("ana")
        command = [house.python, *command_of_unit("discreet@.service", "clinic", discreet=house.folder)[1:]]
        if is_root:  # systemd starts it as root, and it gives both processes their users
            give_to_vault(house.folder)
        else:
            command.append("--not-isolated")
        environment = ENVIRONMENT | {"NOTIFY_SOCKET": str(tmp_path / "notify")}
        with (
            heard(tmp_path) as ready,
            subprocess.Popen(command, env=environment, cwd="/", stdout=subprocess.PIPE, text=True) as process,
        ):
            try:
                assert b"READY=1" in ready.recv(1000)
                assert process.stdout is not None
                assert process.stdout.readline() == "ready\n"
                house.url = process.stdout.readline().split()[1]
                assert house.post(token, COUNT).status_code == 200
                process.send_signal(signal.SIGHUP)  # as ExecReload does; no connection is refused meanwhile
                assert house.post(token, BY_CITY).status_code == 200
            finally:
                process.terminate()
        assert process.returncode == 0
        assert len(house.charges()) == 2


def command(*words: object) -> int:
    """One command of `discreet shuffle`, in this process."""
    with pytest.raises(SystemExit) as ended:
        main(["shuffle", *map(str, words)])
    return ended.value.code or 0


@pytest.mark.parametrize("source", ["units", "compose"])
def test_the_poll_of_two_services(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ports = {"shuffler": free_port(), "analyzer": free_port()}
    scheme = "http" if source == "units" else "https"
    places = {name: tmp_path / name for name in ports}
    for folder in places.values():
        folder.mkdir()
    if source == "compose":
        for file in certificate(tmp_path):
            for folder in places.values():
                shutil.copy(file, folder)
    task = tmp_path / "poll.toml"
    where = [word for name, port in ports.items() for word in (f"--{name}", f"{scheme}://127.0.0.1:{port}")]
    small = ("--clients", 12, "--epsilon", 8, "--delta", 0.01, "--choices", "IL,US,DE")
    assert command("init", task, *small, *where) == 0
    shutil.copy(task, places["shuffler"])
    shutil.copy(task, places["analyzer"])
    for name in ports:  # each operator has one key, and no other
        shutil.copy(getattr(files_of(task), f"{name}_key"), places[name])
    if source == "compose":
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "tls.pem"))
    with ExitStack() as ending:
        for name in ("analyzer", "shuffler"):
            words = (
                command_of_unit(f"discreet-{name}@.service", "poll", **{f"private_discreet-{name}": places[name]})
                if source == "units"
                else command_of_compose(name, places[name])
            )
            service = Service(with_port(words, ports[name]), tmp_path / f"{name}.log")
            ending.callback(service.stop)
            assert service.url == f"{scheme}://127.0.0.1:{ports[name]}"
        for number in range(12):
            assert command("report", task, ("IL", "US", "DE")[number % 3]) == 0
        assert command("close", task, "--json") == 0
    assert {path.name for path in places["shuffler"].iterdir()} & {"poll.analyzer.key", "poll.ledger"} == set()
    assert (places["analyzer"] / "poll.ledger").exists()
