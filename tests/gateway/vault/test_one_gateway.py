"""One gateway at a database in a file: a second one is refused, and one that was killed leaves no lock."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from discreet.errors import InvalidArgument, ServiceUnavailable
from discreet.gateway.books import store
from discreet.gateway.books.store import only_gateway
from discreet.gateway.serve import Pair, Supervisor

from ...refusing import refuses
from ..house import House


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for a gateway to end."""
    monkeypatch.setattr(store, "_LAST_GATEWAY", 0.0)


@pytest.mark.slow
def test_a_second_gateway_is_refused(tmp_path: Path) -> None:
    house = House(tmp_path / "clinic", 'http = "127.0.0.1:0"\nanswer_after = 0\n')
    house.start()
    try:
        with refuses(ServiceUnavailable, "gateway-running"), Supervisor(house.policy, isolated=False).running():
            pass
    finally:
        house.stop(signal.SIGKILL)
    file = only_gateway(str(house.folder / "clinic.gateway"))
    assert file is not None
    os.close(file)


def test_the_pair_holds_the_lock_of_its_supervisor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after the supervisor was killed, while its vault answers what it has begun."""
    house = House(tmp_path / "clinic", 'http = "127.0.0.1:0"\nanswer_after = 0\n')
    kept: list[subprocess.Popen[bytes]] = []

    def start(pair: Pair) -> None:
        assert pair._lock is not None
        kept.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[pair._lock]))
        raise ServiceUnavailable("It would start now.", code="gateway-unavailable")

    place = str(house.folder / "clinic.gateway")
    monkeypatch.setattr(Pair, "_start_vault", start)
    with refuses(ServiceUnavailable, "gateway-unavailable"), Supervisor(house.policy, isolated=False).running():
        pass
    with refuses(ServiceUnavailable, "gateway-running"):
        only_gateway(place)
    kept[0].kill()
    kept[0].communicate()
    os.close(only_gateway(place) or 0)


def test_a_link_to_a_database_is_the_same_database(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "clinic.gateway")
    file = only_gateway(str(tmp_path / "clinic.gateway"))
    with refuses(ServiceUnavailable, "gateway-running"):
        only_gateway(str(tmp_path / "link"))
    os.close(file or 0)


def test_a_folder_that_is_not_there_is_an_error_in_words(tmp_path: Path) -> None:
    with refuses(InvalidArgument, "file-not-writable"):
        only_gateway(str(tmp_path / "nowhere" / "clinic.gateway"))


def test_there_may_be_several_in_postgresql() -> None:
    assert only_gateway("postgresql://db/clinic#accounts") is None
