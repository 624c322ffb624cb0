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
