"""What the owner is told when SIGHUP replaces the running pair."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from discreet.gateway import serve
from discreet.gateway.serve import Supervisor

from .house import House
from .served import served


@pytest.fixture
def supervisor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """One whose pairs are only said to run."""
    house = House(tmp_path / "clinic", 'http = "127.0.0.1:0"\nanswer_after = 0\n')
    monkeypatch.setattr(serve, "Pair", lambda *given: SimpleNamespace(given=given))
    made: Any = Supervisor(house.policy, isolated=False)
    made._pair = SimpleNamespace(sockets={}, folder=tmp_path / "pair", stop=lambda: None)
    made._locks = made._only_gateway()
    yield made
    for lock in made._locks:
        os.close(lock)


def test_the_owner_is_told_which_policy_is_served(supervisor: Any, capsys: pytest.CaptureFixture[str]) -> None:
    os.utime(supervisor.policy_file, (1_800_000_000, 1_800_000_000))
    supervisor.replace()
    said = capsys.readouterr()
    assert said.out.startswith("Replaced: the policy of 2027-01-")
    assert said.err == ""
    assert supervisor._pair.given[-1] == supervisor._locks  # those of the only gateway


@pytest.mark.parametrize(
    ("ledger", "store", "code"),
    [("clinic", "other", "gateway-store"), ("other", "clinic", "gateway-other-ledger")],
)
def test_a_pair_that_is_kept_is_not_replaced(
    ledger: str, store: str, code: str, supervisor: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would use a file that this gateway has not locked."""
    before = supervisor._pair
    text = supervisor.policy_file.read_text().replace("clinic.ledger", f"{ledger}.ledger")
    supervisor.policy_file.write_text(text.replace("[gateway]\n", f'[gateway]\nstore = "{store}.gateway"\n'))
    supervisor.replace()
    said = capsys.readouterr()
    assert said.out == ""
    assert f"[{code}]" in said.err
    assert supervisor._pair is before


def test_the_owner_is_told_that_a_source_has_changed(supervisor: Any, capsys: pytest.CaptureFixture[str]) -> None:
    source = supervisor.policy_file.with_name("visits.parquet")
    copy = Path(supervisor.settings.copies) / "1" / "visits" / source.name
    copy.parent.mkdir(parents=True)
    copy.write_bytes(b"")
    supervisor.replace()
    assert capsys.readouterr().err.startswith("WARNING: visits.parquet is not the file")


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_gateway_outlives_who_read_what_it_says(name: str, supervisor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing a terminal sends SIGHUP, and nobody reads what is said then."""
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as stream:
        monkeypatch.setattr(sys, name, stream)
        if name == "stderr":
            supervisor.policy_file.write_text("")
        supervisor.replace()
        print("and later", file=stream, flush=True)


def test_the_address_for_clients_of_postgresql_names_the_database(supervisor: Any) -> None:
    supervisor._pair.sockets = {
        name: SimpleNamespace(getsockname=lambda: ("127.0.0.1", 5433)) for name in ("http", "postgres")
    }
    assert supervisor.addresses()["postgres"] == "postgresql://127.0.0.1:5433/clinic"


@pytest.mark.slow
def test_a_new_pair_serves_after_a_signal(tmp_path: Path) -> None:
    """It takes over the lock of the old one, which is there until both have ended."""
    with served(tmp_path / "house", "answer_after = 0\n") as running:
        token = running.open("ada")
        running.serve("--not-isolated")
        running.process.send_signal(signal.SIGHUP)
        assert running.process.stdout is not None
        while not (line := running.process.stdout.readline()).startswith("Replaced"):
            assert line, running.errors
        assert running.post(token, "SELECT COUNT(*) AS n FROM visits").status_code == 200
