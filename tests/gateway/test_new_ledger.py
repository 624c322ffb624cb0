"""A mistyped path of a ledger, and the first charges of root: nothing that was spent is forgotten."""

from __future__ import annotations

import os
import pwd
import shutil
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

import discreet as dp
from discreet.cli import main
from discreet.datasets.policy import load
from discreet.errors import InvalidArgument, LedgerDamaged
from discreet.gateway.books.opening import open_books
from discreet.gateway.isolation import as_vault, own_paths
from discreet.gateway.serve import Supervisor, check
from discreet.gateway.settings import load_books, load_settings
from discreet.ledger import Ledger
from discreet.ledger.stores import elsewhere

from ..refusing import refuses
from .house import COUNT, House
from .served import USERS, VAULT, give_to_vault, python_for_all

LISTEN = 'http = "127.0.0.1:0"\nanswer_after = 0\n'


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path / "clinic", LISTEN)


def begun(house: House) -> None:
    """What `discreet serve` does first."""
    for one in open_books(*load_settings(house.policy)):
        one.close()


def rename(house: House, old: str, new: str) -> None:
    text = house.policy.read_text()
    assert old in text
    house.policy.write_text(text.replace(old, new))


def names(house: House, end: str) -> list[str]:
    return sorted(one.name for one in house.folder.glob(f"*{end}"))


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    shown = capsys.readouterr()
    return int(ended.value.code or 0), shown.out, shown.err


# --- a mistyped path ----------------------------------------------------------------------------------------


def test_a_mistyped_ledger_brings_no_database_along(house: House) -> None:
    begun(house)
    before = names(house, "")
    rename(house, "clinic.ledger", "clinc.ledger")
    with refuses(InvalidArgument, "gateway-other-ledger"):
        begun(house)
    assert names(house, "") == before


def test_the_database_has_the_name_of_the_policy(house: House) -> None:
    moved = house.policy.rename(house.folder / "klinik.toml")
    house.policy = moved
    begun(house)
    assert names(house, ".gateway") == ["klinik.gateway"]
    policy, settings = load_settings(moved)
    assert (settings.name, settings.copies) == ("klinik", str(house.folder / "klinik.gateway.data"))
    assert str(house.folder / "klinik.gateway") in own_paths(policy, settings)
    assert load_books(moved).store == settings.store  # type: ignore[union-attr]
    link = house.folder / "newest.toml"
    link.symlink_to(moved)
    assert load_settings(link)[1] == settings
    assert load_books(link).store == settings.store  # type: ignore[union-attr]


def test_a_database_with_the_name_of_its_ledger_is_used(house: House) -> None:
    """As earlier versions named it."""
    begun(house)
    house.policy = house.policy.rename(house.folder / "klinik.toml")
    before = names(house, "")
    begun(house)
    assert names(house, "") == before
    settings = load_settings(house.policy)[1]
    assert settings.store == str(house.folder / "clinic.gateway")
    assert settings.copies == str(house.folder / "clinic.gateway.data")
    assert load_books(house.policy).store == settings.store  # type: ignore[union-attr]
    (house.folder / "klinik.gateway").touch(0o600)
    assert load_settings(house.policy)[1].store == str(house.folder / "klinik.gateway")


def test_it_is_said_that_a_ledger_begins(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    question = (str(house.policy), COUNT, "--epsilon", "0.1", "--format", "json")
    for words in (("explain", *question), ("query", *question)):
        code, out, told = said(capsys, *words)
        assert (code, out[0]) == (0, "{")
        assert (f"A new ledger begins: {house.folder / 'clinic.ledger'}, with ε = 8" in told) == (words[0] == "explain")
    rename(house, "clinic.ledger", "clinc.ledger")
    for words in (("check", str(house.policy)), ("query", *question)):
        _, out, told = said(capsys, *words)
        assert "clinic.ledger is there, and has 1 entry: is the path" in out + told
    assert f"A new ledger begins: {house.folder / 'clinc.ledger'}" in told
    _, out, told = said(capsys, "check", str(house.policy))
    assert "mistyped" not in out + told


def test_only_a_ledger_with_entries_is_named(house: House) -> None:
    from discreet.datasets.ledgers import mistyped

    with closing(dp.connect(house.policy)) as clinic:
        (house.folder / "clinic2.ledger").write_bytes(b"no ledger")
        rename(house, "clinic.ledger", "clinc.ledger")
        assert mistyped(load(house.policy)) is None
        clinic.sql(COUNT, epsilon=0.1)
        assert "clinic.ledger is there" in str(mistyped(load(house.policy)))
        rename(house, "clinc.ledger", "another.ledger")
        assert mistyped(load(house.policy)) is None
        rename(house, "another.ledger", "no-such-folder/clinc.ledger")
        assert mistyped(load(house.policy)) is None


def test_serve_says_it(house: House, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(Supervisor, "watch", lambda _: None)
    words = ("serve", str(house.policy), "--not-isolated")
    assert f"A new ledger begins: {house.folder / 'clinic.ledger'}, with ε = 8" in said(capsys, *words)[2]
    with closing(dp.connect(house.policy)) as clinic:
        clinic.sql(COUNT, epsilon=0.1)
    assert "A new ledger" not in said(capsys, *words)[2]
    rename(house, "clinic.ledger", "clinc.ledger")
    (house.folder / "clinic.gateway").unlink()  # as if it were lost, too
    assert "clinic.ledger is there, and has 1 entry: is the path" in " ".join(
        Supervisor(house.policy, isolated=False).warnings
    )


# --- root ---------------------------------------------------------------------------------------------------

as_root = pytest.mark.skipif(
    os.geteuid() != 0 or python_for_all() is None, reason="only root can be other users, which need a Python"
)


@pytest.fixture
def clinic(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """A policy and its data, in a folder of the vault, whose user has a home. Nothing was asked yet."""
    monkeypatch.setattr(sys, "executable", python_for_all())
    folder = Path(tempfile.mkdtemp(prefix="clinic-"))
    folder.chmod(0o755)
    made = House(folder / "clinic", USERS + LISTEN)
    (made.folder / "home").mkdir()
    give_to_vault(made.folder)
    vault = pwd.struct_passwd(("vault", "x", VAULT, VAULT, "", str(made.folder / "home"), "/bin/sh"))
    known = pwd.getpwuid
    monkeypatch.setattr(pwd, "getpwuid", lambda user: vault if user == VAULT else known(user))
    monkeypatch.delenv("DISCREET_STATE")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "root"))
    yield made
    shutil.rmtree(folder)


def owners(house: House, pattern: str) -> set[int]:
    found = {one.lstat().st_uid for one in house.folder.rglob(pattern)}
    assert found
    return found


@as_root
def test_first_charges_of_root_are_seen_by_the_vault(clinic: House, tmp_path: Path, capsys) -> None:
    """Two charges, a copy, a third one, and the copy put back."""
    with as_vault(*load_settings(clinic.policy)):
        begun(clinic)
    ledger = clinic.folder / "clinic.ledger"
    for epsilon in ("0.1", "0.1", "0.3"):
        old = {file: file.read_bytes() for file in (ledger, Path(f"{ledger}.checkpoint"))}
        assert (
            said(capsys, "query", str(clinic.policy), COUNT, "--epsilon", epsilon, "--key", os.urandom(4).hex())[0] == 0
        )
    for file, content in old.items():
        file.write_bytes(content)
    code, _, told = said(capsys, "ledger", str(clinic.policy))
    assert (code, "[ledger-old-copy]" in told) == (1, True)
    with as_vault(*load_settings(clinic.policy)) as is_vault, refuses(LedgerDamaged, "ledger-old-copy"):
        assert is_vault
        Ledger.open(ledger)
    assert owners(clinic, "home/.local/state/discreet/*") == {VAULT}
    assert owners(clinic, "home/.*") == {VAULT}
    assert not (tmp_path / "root").exists()


@as_root
@pytest.mark.parametrize("obstacle", ["a link", "a pipe", "a file of root", "a closed home"])
def test_what_the_vault_has_in_its_home_leads_root_nowhere(clinic: House, tmp_path: Path, obstacle: str) -> None:
    """Then root has a second checkpoint of its own."""
    home, secret = clinic.folder / "home", clinic.folder / "secret"
    secret.mkdir(0o700)
    with closing(dp.connect(clinic.policy)) as database:
        name = f"{Ledger.open(clinic.folder / 'clinic.ledger')._terms.ledger}.checkpoint"
        place = home / ".local" / "state" / "discreet" / name
        if obstacle == "a link":
            (home / ".local").symlink_to(secret)
        elif obstacle == "a closed home":
            os.chown(home, 0, 0)
        else:
            place.parent.mkdir(parents=True)
            os.mkfifo(place) if obstacle == "a pipe" else place.touch()
        database.sql(COUNT, epsilon=0.1)
    assert list(secret.iterdir()) == []
    assert list((tmp_path / "root" / "discreet").iterdir()) == [tmp_path / "root" / "discreet" / name]
    assert not place.is_file() or place.stat().st_size == 0


@as_root
def test_a_user_who_can_have_no_second_checkpoint_is_tried_once(clinic: House, monkeypatch) -> None:
    os.chown(clinic.folder / "home", 0, 0)
    tried, make = [], elsewhere._make_as
    monkeypatch.setattr(elsewhere, "_make_as", lambda *given: tried.append(given) or make(*given))
    with closing(dp.connect(clinic.policy)) as database:
        for epsilon in (0.1, 0.2, 0.3):
            database.sql(COUNT, epsilon=epsilon)
    assert len(tried) == 1


@as_root
@pytest.mark.parametrize("by", ["query", "explain", "tables", "python"])
def test_a_ledger_that_root_begins_is_the_vaults(clinic: House, by: str, capsys) -> None:
    question = () if by == "tables" else (COUNT, "--epsilon", "0.1")
    if by == "python":
        with closing(dp.connect(clinic.policy)) as database:
            database.sql(COUNT, epsilon=0.1)
            assert owners(clinic, "clinic.ledger*") == {VAULT}  # -wal and -shm, too
    else:
        assert said(capsys, by, str(clinic.policy), *question)[0] == 0
    assert owners(clinic, "clinic.ledger*") == {VAULT}
    assert said(capsys, "ledger", str(clinic.policy), "--verify")[0] == 0
    rename(clinic, "epsilon = 8", "epsilon = 9")
    code, _, told = said(capsys, "ledger", str(clinic.policy), "--raise", "the board agreed")
    assert (code, "as root" in told) == (0, False)
    check(clinic.policy)


@as_root
def test_a_ledger_of_root_in_a_folder_of_the_vault_can_be_opened(clinic: House, capsys) -> None:
    """As earlier versions left it."""
    with closing(dp.connect(clinic.policy)) as database:
        database.sql(COUNT, epsilon=0.1)
    for name in ("clinic.ledger", "clinic.ledger.checkpoint"):
        os.chown(clinic.folder / name, 0, 0)
        code, _, told = said(capsys, "ledger", str(clinic.policy), "--verify")
        assert (code, "as root" in told) == (0, True)
        with refuses(InvalidArgument, "gateway-not-isolated") as refused:
            check(clinic.policy)
        assert f"chown {VAULT} {clinic.folder / name}" in str(refused.value)
        os.chown(clinic.folder / name, VAULT, VAULT)


@as_root
def test_in_roots_own_folder_a_ledger_is_roots(clinic: House) -> None:
    os.chown(clinic.folder, 0, 0)
    dp.connect(clinic.policy).close()
    assert owners(clinic, "clinic.ledger*") == {0}
