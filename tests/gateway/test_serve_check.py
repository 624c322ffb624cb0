"""What `discreet serve --check` refuses because a start would, and which of two refusals comes first."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from discreet.errors import InvalidArgument, ServiceUnavailable
from discreet.gateway import serve
from discreet.gateway.books import store
from discreet.gateway.books.store import only_gateway
from discreet.gateway.serve import Supervisor

from ..refusing import refuses
from .house import House


@pytest.fixture(autouse=True)
def no_log() -> Iterator[None]:
    """The log of one test is not that of the next."""
    yield
    log = logging.getLogger("discreet.gateway")
    for handler in log.handlers:
        handler.close()
    log.handlers = []


def clinic(folder: Path, log: Path | str) -> House:
    return House(folder / "clinic", f'http = "127.0.0.1:0"\nanswer_after = 0\nlog = "{log}"\n')


@pytest.mark.parametrize(
    ("log", "said"),
    [("nowhere/my log/clinic.log", "install -d -m 700 '"), ("clinic", "Name another file")],
    ids=["folder", "file"],
)
def test_a_log_that_stops_serve_stops_check(
    log: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "problems", lambda *_: [])  # isolation needs root, and two users
    monkeypatch.setattr(serve, "_warnings", lambda *_: [])
    monkeypatch.setattr(serve, "users_of", lambda _: (serve.this_user(), serve.this_user()))
    house = clinic(tmp_path, tmp_path / log)
    for begin in (serve.check, Supervisor):
        with refuses(InvalidArgument, "file-not-writable") as refused:
            begin(house.policy)
        assert said in str(refused.value)
    fine = clinic(tmp_path / "fine", tmp_path / "clinic.log")
    assert serve.check(fine.policy) == []
    assert not (tmp_path / "clinic.log").exists()  # nothing is made
    (tmp_path / "clinic.log").touch()
    assert serve.check(fine.policy) == []


def test_a_folder_that_cannot_be_written_stops_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "logs").mkdir(mode=0o500)
    if os.geteuid() == 0:  # root may write any folder, so what others may is asked
        monkeypatch.setattr(
            serve.os, "access", lambda path, mode: not mode & os.W_OK & ~(Path(path).stat().st_mode >> 6)
        )
    with refuses(InvalidArgument, "file-not-writable"):
        serve._check_log(str(tmp_path / "logs" / "clinic.log"))


def test_a_log_that_cannot_be_renewed_leaves_the_old_one(tmp_path: Path) -> None:
    """SIGHUP keeps the running pair, and says so in its log."""
    house = clinic(tmp_path, tmp_path / "clinic.log")
    supervisor = Supervisor(house.policy, isolated=False)
    text = house.policy.read_text()
    house.policy.write_text(text.replace("clinic.log", "nowhere/clinic.log"))
    with refuses(InvalidArgument, "file-not-writable"):
        serve._log(serve.load_served(house.policy)[1])
    supervisor._log.error("the running pair was kept")
    assert "was kept" in (tmp_path / "clinic.log").read_text()


def test_the_same_policy_twice_is_no_matter_of_ports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_LAST_GATEWAY", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as used:
        house = House(tmp_path / "clinic", f'http = "127.0.0.1:{used.getsockname()[1]}"\nanswer_after = 0\n')
        supervisor = Supervisor(house.policy, isolated=False)
        locks = only_gateway(str(house.folder / "clinic.gateway"), str(house.folder / "clinic.ledger"))
        with refuses(ServiceUnavailable, "gateway-running") as refused, supervisor.running():
            pass
        assert "runs already" in str(refused.value)
        assert "SIGHUP" in str(refused.value)
        for lock in locks:
            os.close(lock)
        with refuses(InvalidArgument, "port-unavailable"), supervisor.running():
            pass
        for lock in only_gateway(str(house.folder / "clinic.ledger")):  # a refusal leaves no lock
            os.close(lock)
