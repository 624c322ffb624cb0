"""The second checkpoint: an old copy is noticed however it was put back, and nobody else is stopped."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import discreet as dp
from discreet.errors import InvalidArgument, LedgerDamaged, LedgerUnavailable
from discreet.ledger.stores import checkpoint, elsewhere

from ..refusing import refuses
from .conftest import Place, run_worker

TENTH = dp.Laplace(scale=10)


def ask(ledger: dp.Ledger) -> None:
    dp.release(5, TENTH, sensitivity=1, ledger=ledger)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of second checkpoints, as it is if nobody chooses one."""
    monkeypatch.delenv("DISCREET_STATE")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "discreet"


def clinic(folder: Path) -> Place:
    (folder / "clinic").mkdir(exist_ok=True)
    return Place(str(folder / "clinic" / "l"), folder / "clinic" / "l.checkpoint")


def begun(place: Place, charges: int = 2) -> None:
    """A ledger with some charges, and nobody at it."""
    ledger = place.open(dp.Pure(epsilon=9))
    for _ in range(charges):
        ask(ledger)
    ledger.close()


# --- how copies are put back ----------------------------------------------------------------------------------


def copy_over(old: Path, new: Path) -> None:
    """cp old/* new/: the files stay the same ones, with other bytes."""
    for file in old.iterdir():
        shutil.copyfile(file, new / file.name)


def copy_with_times(old: Path, new: Path) -> None:
    """cp -p old/* new/"""
    for file in old.iterdir():
        shutil.copy2(file, new / file.name)


def replace_files(old: Path, new: Path) -> None:
    """rsync: each file is written next to the other, and renamed."""
    for file in old.iterdir():
        shutil.copy2(file, new / f".{file.name}")
        (new / f".{file.name}").rename(new / file.name)


def replace_folder(old: Path, new: Path) -> None:
    """rm -r new; cp -a old new"""
    shutil.rmtree(new)
    shutil.copytree(old, new)


def move_folder(old: Path, new: Path) -> None:
    """rm -r new; mv old new"""
    shutil.rmtree(new)
    old.rename(new)


def roll_back(old: Path, new: Path) -> None:
    """A snapshot of the file system: the same files with their old bytes, and no others."""
    for file in new.iterdir():
        os.truncate(file, 0)
    copy_over(old, new)


WAYS = {
    copy_over: False,
    copy_with_times: False,
    replace_files: True,
    replace_folder: True,
    move_folder: True,
    roll_back: False,
}
"""Whether the checkpoint in the folder notices it alone: the page says the same."""


def put_back(folder: Path, way: Callable[[Path, Path], None]) -> Place:
    """A ledger in whose place an old copy was put back, with all files of its folder."""
    place = clinic(folder)
    begun(place)
    shutil.copytree(folder / "clinic", folder / "old")
    ledger = place.open()
    ask(ledger)
    ledger.close()
    way(folder / "old", folder / "clinic")
    return place


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_an_old_copy_is_noticed_however_it_was_put_back(way: Any, tmp_path: Path, state: Path) -> None:
    with refuses(LedgerDamaged, "ledger-old-copy"):
        put_back(tmp_path, way).open()


@pytest.mark.parametrize("remembered", [True, False])
def test_a_folder_that_was_set_aside(remembered: bool, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """mv clinic aside; cp -a aside clinic, which is charged; rm -r clinic; mv aside clinic"""
    if remembered:
        request.getfixturevalue("state")
    place = clinic(tmp_path)
    begun(place)
    (tmp_path / "clinic").rename(tmp_path / "aside")
    shutil.copytree(tmp_path / "aside", tmp_path / "clinic")
    dp.Ledger.adopt(place.target, why="a copy to try things", checkpoint=place.checkpoint).close()
    move_folder(tmp_path / "aside", tmp_path / "clinic")
    if not remembered:
        assert place.open().count == 2
        return
    with refuses(LedgerDamaged, "ledger-old-copy"):
        place.open()


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_without_a_second_checkpoint_some_are_not(way: Any, tmp_path: Path) -> None:
    place = put_back(tmp_path, way)
    if WAYS[way]:
        with refuses(LedgerDamaged, "ledger-old-copy"):
            place.open()
    else:
        assert place.open().count == 2


def entries_in(place: Place) -> int:
    """How many entries there are, whatever any checkpoint says."""
    with closing(sqlite3.connect(place.target)) as file:
        return int(file.execute("SELECT number FROM head").fetchone()[0])


def test_the_error_names_the_second_checkpoint(tmp_path: Path, state: Path) -> None:
    folder = tmp_path
    place = put_back(folder, roll_back)
    with refuses(LedgerDamaged, "ledger-old-copy") as refused:
        place.open()
    assert str(folder / "home" / "discreet") in str(refused.value)


def test_an_old_copy_is_noticed_by_a_ledger_that_is_open(tmp_path: Path, state: Path) -> None:
    """Also by a process that looked before it was put back."""
    folder = tmp_path
    place = clinic(folder)
    begun(place)
    ledger = place.open()
    ledger.close()
    shutil.copytree(folder / "clinic", folder / "old")
    other = place.open()
    ask(other)
    other.close()
    roll_back(folder / "old", folder / "clinic")
    with refuses(LedgerDamaged, "ledger-old-copy"):
        ask(ledger)
    assert entries_in(place) == 2


def test_an_old_copy_is_noticed_by_a_check(tmp_path: Path, state: Path) -> None:
    folder = tmp_path
    place = clinic(folder)
    begun(place)
    shutil.copytree(folder / "clinic", folder / "old")
    ledger = place.open()
    ask(ledger)
    ledger.close()
    roll_back(folder / "old", folder / "clinic")
    with refuses(LedgerDamaged, "ledger-old-copy"):
        ledger.verify()


def test_an_old_copy_cannot_be_adopted(tmp_path: Path, state: Path) -> None:
    folder = tmp_path
    place = put_back(folder, replace_folder)
    with refuses(LedgerDamaged, "ledger-old-copy"):
        dp.Ledger.adopt(place.target, why="I want it back", checkpoint=place.checkpoint)
    assert entries_in(place) == 2


# --- what it must not do --------------------------------------------------------------------------------------


def test_a_crash_before_the_commit_is_no_alarm(tmp_path: Path, state: Path) -> None:
    """Nothing was charged, so nothing may have been seen."""
    folder = tmp_path
    place = clinic(folder)
    begun(place)
    ledger = place.open()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger._store, "finish", lambda statements: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            ask(ledger)
    ledger.close()
    assert place.open().count == 2


def test_a_crash_after_the_commit_is_no_alarm(tmp_path: Path, state: Path) -> None:
    """The charge counts, and the second checkpoint catches up."""
    folder = tmp_path
    place = clinic(folder)
    begun(place)
    for _ in range(2):
        ledger = place.open()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ledger._writer.checkpoint, "locked", ledger._writer.checkpoint.locked)
            patch.setattr(ledger._writer.second, "advance", lambda seen: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                ask(ledger)
        ledger.close()
    ledger = place.open()
    assert ledger.count == 4
    ask(ledger)
    assert ledger._writer.second is not None
    assert ledger._writer.second.read() == ledger._writer.checkpoint.read()
    assert ledger.verify() == 6


def test_nobody_is_stopped_by_a_folder_that_cannot_be_used(tmp_path: Path, state: Path) -> None:
    folder = tmp_path
    (folder / "home").write_text("a file where the folder would be")
    place = clinic(folder)
    begun(place)
    assert place.open().count == 2


def test_it_is_the_owners_and_holds_no_answer(tmp_path: Path, state: Path) -> None:
    begun(clinic(tmp_path))
    [file] = state.iterdir()
    assert (file.stat().st_mode & 0o077, state.stat().st_mode & 0o077) == (0, 0)
    assert file.stat().st_size <= 1024


def test_another_user_who_saw_less_is_no_alarm(tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = clinic(tmp_path)
    begun(place)
    for home in ("other", "home", "other", "third"):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / home))
        ledger = place.open()
        ask(ledger)
        ledger.close()
    assert place.open().verify() == 7


def test_a_folder_that_was_chosen_must_be_usable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = clinic(tmp_path)
    monkeypatch.setenv("DISCREET_STATE", str(tmp_path / "chosen"))
    begun(place)
    assert len(list((tmp_path / "chosen").iterdir())) == 1
    ledger = place.open()
    shutil.rmtree(tmp_path / "chosen")
    (tmp_path / "chosen").write_text("a file in its place")
    with refuses(LedgerUnavailable, "ledger-checkpoint"):
        ask(ledger)
    with refuses(LedgerUnavailable, "ledger-checkpoint"):
        place.open()
    assert entries_in(place) == 2
    (tmp_path / "chosen").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(elsewhere.Path, "mkdir", lambda *_, **__: (_ for _ in ()).throw(OSError(30, "read-only")))
        with refuses(LedgerUnavailable, "ledger-checkpoint"):
            ask(ledger)
    assert entries_in(place) == 2
    assert ledger._writer.second is not None
    with monkeypatch.context() as patch:  # it was usable a moment ago
        patch.setattr(ledger._writer.second, "try_folder", lambda: None)
        patch.setattr(elsewhere.Path, "mkdir", lambda *_, **__: (_ for _ in ()).throw(OSError(30, "read-only")))
        with refuses(LedgerUnavailable, "ledger-checkpoint"):
            ask(ledger)
    assert entries_in(place) == 3  # what was charged stays charged
    monkeypatch.setenv("DISCREET_STATE", "relative/folder")
    with refuses(InvalidArgument, "ledger-place"):
        place.open()


def test_a_folder_that_was_chosen_is_tried_before_a_charge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISCREET_STATE", "/proc/nowhere")  # it is not there, and nobody can make it
    place = clinic(tmp_path)
    ledger = place.open(dp.Pure(epsilon=9))
    with refuses(LedgerUnavailable, "ledger-checkpoint"):
        ask(ledger)
    assert entries_in(place) == 0


@pytest.mark.parametrize("fault", ["a full disk", "links in a circle"])
def test_a_folder_that_cannot_be_written_costs_nothing(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty file can be made on a full disk, and a chosen folder is never given up in silence."""
    place, folder = clinic(tmp_path), tmp_path / "loop"
    folder.symlink_to(folder) if fault == "links in a circle" else folder.mkdir()
    monkeypatch.setenv("DISCREET_STATE", str(folder))
    if fault == "a full disk":
        monkeypatch.setattr(os, "posix_fallocate", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
    with refuses(LedgerUnavailable, "ledger-checkpoint"), closing(place.open(dp.Pure(epsilon=9))) as ledger:
        ask(ledger)
    monkeypatch.setenv("DISCREET_STATE", "off")
    assert entries_in(place) == 0


def test_what_is_no_file_is_no_checkpoint(tmp_path: Path, state: Path) -> None:
    """Whoever opened a pipe would wait for ever."""
    place = clinic(tmp_path)
    begun(place)
    [second] = state.iterdir()
    second.unlink()
    os.mkfifo(second)
    begun(place)
    place.checkpoint.unlink()
    os.mkfifo(place.checkpoint)
    with refuses(LedgerUnavailable, "ledger-checkpoint"):
        place.open()


def test_who_holds_it_stops_nobody(tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    place = clinic(tmp_path)
    begun(place)
    locked = checkpoint.is_locked

    def is_locked(file: int, patience: float) -> bool:
        waited.append(patience)
        return patience > 2 and locked(file, patience)

    monkeypatch.setattr(checkpoint, "is_locked", is_locked)
    begun(place, 1)
    assert entries_in(place) == 3
    assert min(waited) == 1.0
    assert sum(one < 2 for one in waited) == 2  # the charge and its answer, and none of them again


def test_a_user_without_a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISCREET_STATE")
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(elsewhere.Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    begun(clinic(tmp_path))


@pytest.mark.slow
def test_processes_that_charge_at_once(tmp_path: Path, state: Path) -> None:
    place = clinic(tmp_path)
    place.open(dp.Pure(epsilon=5)).close()
    run_worker("race", place, 3, 10)  # until nothing is left
    ledger = place.open()
    assert ledger._writer.second is not None
    assert ledger._writer.second.read() == ledger._writer.checkpoint.read()
    assert ledger.verify() == ledger.count + 1 == 51


@pytest.mark.parametrize("kind", ["a dump that was restored", "its own checkpoint is the second"])
def test_a_ledger_in_postgresql(kind: str, postgres: str, tmp_path: Path, state: Path) -> None:
    import psycopg

    schema = f"second_{os.getpid()}"
    place = Place(f"{postgres}#{schema}", tmp_path / "beside")
    tables = ("entries", "head", "answers")
    with psycopg.connect(postgres, autocommit=True) as server:
        try:
            if kind.startswith("its own"):
                ledger = dp.Ledger.open(place.target, protects=dp.row(), limit=dp.Pure(epsilon=9))
                ask(ledger)
                assert ledger._writer.second is None
                assert len(list(state.glob("*.checkpoint"))) == 1
                return
            begun(place)
            for table in tables:
                server.execute(f"CREATE TABLE {schema}.old_{table} AS SELECT * FROM {schema}.{table}")
            seen = place.checkpoint.read_bytes()
            ledger = place.open()
            ask(ledger)
            ledger.close()
            for table in tables:
                server.execute(f"DELETE FROM {schema}.{table}")
                server.execute(f"INSERT INTO {schema}.{table} SELECT * FROM {schema}.old_{table}")
            place.checkpoint.write_bytes(seen)
            with refuses(LedgerDamaged, "ledger-old-copy"):
                place.open()
            with refuses(LedgerDamaged, "ledger-old-copy"):
                ask(ledger)
        finally:
            server.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
