"""A name of the data that was published stands for that data for ever, and the owner sees that a source has changed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import InvalidArgument
from discreet.gateway.books.store import GatewayStore
from discreet.gateway.books.tables import MIGRATIONS
from discreet.gateway.calibrate import time_questions
from discreet.gateway.serve import Supervisor
from discreet.gateway.settings import load_settings
from discreet.gateway.vault.snapshot import published, replaced_sources
from discreet.gateway.vault.vault import open_vault
from discreet.gateway.vault.worker import _opened

from ...refusing import refuses
from ..house import House


@pytest.fixture
def house(tmp_path: Path) -> House:
    """A gateway that was opened once, and has published version 1."""
    made = House(tmp_path / "clinic", 'http = "127.0.0.1:0"\nanswer_after = 0\n')
    opened(made)
    return made


def opened(house: House) -> None:
    vault = open_vault(house.policy)
    vault.ledger.close()
    vault.store.close()


def copies(house: House) -> Path:
    return house.folder / "clinic.gateway.data"


def use_version(house: House, name: str) -> None:
    text = house.policy.read_text().replace("[gateway]\n", f'[gateway]\nversion = "{name}"\n')
    house.policy.write_text(text)


def calibrated(house: House) -> None:
    list(time_questions(*load_settings(house.policy), ["SELECT COUNT(*) FROM visits"]))


def in_a_lane(house: House) -> None:
    """What a lane does that is started again."""
    policy, settings = load_settings(house.policy)
    _opened(policy, {"version": settings.version, "copies": settings.copies})


@pytest.mark.parametrize("start", [opened, calibrated, in_a_lane])
def test_a_version_whose_copy_is_gone_is_not_published_again(start: Any, house: House) -> None:
    shutil.rmtree(copies(house))
    with refuses(InvalidArgument, "gateway-version"):
        start(house)
    assert not copies(house).exists()


def test_an_earlier_version_can_be_withdrawn(house: House) -> None:
    use_version(house, "2")
    opened(house)
    shutil.rmtree(copies(house) / "1")
    opened(house)
    assert [one.name for one in copies(house).iterdir()] == ["2"]


def test_versions_of_earlier_programs_are_known(tmp_path: Path) -> None:
    """They remembered only what was asked about. Copies that are there are remembered now."""
    house = House(tmp_path / "clinic")
    policy, settings = load_settings(house.policy)
    for name in ("1", "2"):
        published(policy, name, settings.copies, ())
    with GatewayStore(settings.store, MIGRATIONS[:-1]) as old, old.write() as execute:
        given = ("ada", 1, "r", "SELECT 1", "{}", 0, "0")
        execute(
            "INSERT INTO questions (account, number, receipt, sql, options, at, version) VALUES (?, ?, ?, ?, ?, ?, ?)",
            *given,
        )
    opened(house)
    shutil.rmtree(copies(house))
    for name in ("0", "1", "2"):
        use_version(house, name)
        with refuses(InvalidArgument, "gateway-version"):
            opened(house)
        house.policy.write_text(house.policy.read_text().replace(f'version = "{name}"\n', ""))


# --- a source that changes ------------------------------------------------------------------------------------


def changed(house: House) -> list[str]:
    return replaced_sources(*load_settings(house.policy))


def newer(path: Path) -> None:
    os.utime(path, (path.stat().st_mtime + 10, path.stat().st_mtime + 10))


def larger(path: Path) -> None:
    facts = path.stat()
    path.write_bytes(path.read_bytes() + b" ")
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


@pytest.mark.parametrize(
    ("change", "said"), [(newer, "is not the file"), (larger, "is not the file"), (os.remove, "gone")]
)
def test_a_source_that_changed_is_noticed(
    change: Any, said: str, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert changed(house) == []
    change(house.folder / "visits.parquet")
    [found] = changed(house)
    assert found.startswith("visits.parquet is")
    assert said in found
    assert Supervisor(house.policy, isolated=False).warnings == [found]


def test_a_source_that_was_exported_before_the_copy_was_made_is_noticed(tmp_path: Path) -> None:
    """A copy has the time of its file, and not the time at which it was made."""
    house = House(tmp_path / "clinic")
    path = house.folder / "visits.parquet"
    os.utime(path, (path.stat().st_mtime - 100, path.stat().st_mtime - 100))
    opened(house)
    newer(path)
    assert len(changed(house)) == 1


def test_a_new_version_says_nothing(house: House) -> None:
    newer(house.folder / "visits.parquet")
    use_version(house, "2")
    assert changed(house) == []
    opened(house)
    assert changed(house) == []


def test_a_folder_of_files_is_compared_file_by_file(house: House) -> None:
    parts = house.folder / "parts"
    parts.mkdir()
    shutil.move(house.folder / "visits.parquet", parts / "1.parquet")
    house.policy.write_text(house.policy.read_text().replace('"visits.parquet"', '"parts"'))
    use_version(house, "2")
    opened(house)
    assert changed(house) == []
    shutil.copy2(parts / "1.parquet", parts / "2.parquet")
    assert len(changed(house)) == 1
