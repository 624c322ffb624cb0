"""One gateway at a database or a ledger in a file: a second one is refused, and one that was killed leaves no lock."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from discreet.errors import InvalidArgument, ServiceUnavailable
from discreet.gateway.books import store
from discreet.gateway.books.store import check_held, only_gateway
from discreet.gateway.serve import Pair, Supervisor
from discreet.gateway.vault.vault import open_vault

from ...refusing import refuses
from ..house import House


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for a gateway to end."""
    monkeypatch.setattr(store, "_LAST_GATEWAY", 0.0)


def freed(locks: tuple[int, ...]) -> int:
    """How many locks these were."""
    for lock in locks:
        os.close(lock)
    return len(locks)


@pytest.mark.slow
def test_a_second_gateway_is_refused(tmp_path: Path) -> None:
    house = House(tmp_path / "clinic", 'http = "127.0.0.1:0"\nanswer_after = 0\n')
    house.start()
    try:
        with refuses(ServiceUnavailable, "gateway-running"), Supervisor(house.policy, isolated=False).running():
            pass
    finally:
        house.stop(signal.SIGKILL)
    freed(only_gateway(str(house.folder / "clinic.gateway"), str(house.folder / "clinic.ledger")))


def test_the_pair_holds_the_lock_of_its_supervisor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after the supervisor was killed, while its vault answers what it has begun."""
    house = House(tmp_path / "clinic", 'http = "127.0.0.1:0"\nanswer_after = 0\n')
    kept: list[subprocess.Popen[bytes]] = []

    def start(pair: Pair) -> None:
        assert len(pair._locks) == 2
        kept.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=pair._locks))
        raise ServiceUnavailable("It would start now.", code="gateway-unavailable")

    places = [str(house.folder / name) for name in ("clinic.gateway", "clinic.ledger")]
    monkeypatch.setattr(Pair, "_start_vault", start)
    with refuses(ServiceUnavailable, "gateway-unavailable"), Supervisor(house.policy, isolated=False).running():
        pass
    for place in places:
        with refuses(ServiceUnavailable, "gateway-running"):
            only_gateway(place)
    kept[0].kill()
    kept[0].communicate()
    assert freed(only_gateway(*places)) == 2


def test_one_ledger_has_one_gateway_whatever_its_own_database(tmp_path: Path) -> None:
    """It would see when the other one charges. What was locked before a refusal is free again."""
    ledger, own, other = (str(tmp_path / name) for name in ("clinic.ledger", "clinic.gateway", "other.gateway"))
    locks = only_gateway(own, ledger)
    with refuses(ServiceUnavailable, "gateway-running"):
        only_gateway(other, ledger)
    assert freed(only_gateway(other)) == 1
    assert freed(locks) == 2
    assert freed(only_gateway(other, ledger)) == 2


def test_what_is_used_is_what_is_locked(tmp_path: Path) -> None:
    """By which file it is, and not by its name. In PostgreSQL nothing is locked, and passwords may change."""
    (tmp_path / "other").mkdir()
    (tmp_path / "link.ledger").symlink_to(tmp_path / "clinic.ledger")
    store, ledger, link = (str(tmp_path / name) for name in ("clinic.gateway", "clinic.ledger", "link.ledger"))
    locks = only_gateway(store, ledger)
    for same in (ledger, link, str(tmp_path / "other" / ".." / "clinic.ledger"), "postgresql://u:new@db/clinic"):
        check_held(locks, store, same)
    (tmp_path / "link.ledger").unlink()
    (tmp_path / "link.ledger").symlink_to(tmp_path / "second.ledger")
    freed(only_gateway(str(tmp_path / "second.ledger")))  # its lock is there, and nobody holds it
    for other in (link, str(tmp_path / "third.ledger")):
        with refuses(InvalidArgument, "gateway-other-ledger"):
            check_held(locks, store, other)
    with refuses(InvalidArgument, "gateway-store"):
        check_held(locks, str(tmp_path / "second.gateway"), ledger)
    assert freed(locks) == 2


def test_a_vault_that_is_started_again_uses_no_ledger_that_is_not_locked(tmp_path: Path) -> None:
    """It reads the policy again, which may have changed since its supervisor took the locks."""
    house = House(tmp_path / "clinic", 'http = "127.0.0.1:0"\nanswer_after = 0\nstore = "clinic.gateway"\n')
    locks = only_gateway(str(house.folder / "clinic.gateway"), str(house.folder / "clinic.ledger"))
    open_vault(house.policy, locks)
    house.policy.write_text(house.policy.read_text().replace('"clinic.', '"other.'))
    with refuses(InvalidArgument, "gateway-store"):
        open_vault(house.policy, locks)
    assert not (house.folder / "other.ledger").exists()
    freed(locks)


def test_a_link_to_a_database_is_the_same_database(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "clinic.gateway")
    locks = only_gateway(str(tmp_path / "clinic.gateway"))
    with refuses(ServiceUnavailable, "gateway-running"):
        only_gateway(str(tmp_path / "link"))
    assert freed(locks) == 1


def test_a_folder_that_is_not_there_is_an_error_in_words(tmp_path: Path) -> None:
    with refuses(InvalidArgument, "file-not-writable"):
        only_gateway(str(tmp_path / "nowhere" / "clinic.gateway"))


def test_there_may_be_several_in_postgresql() -> None:
    assert only_gateway("postgresql://db/clinic#accounts", "postgresql://db/clinic") == ()
