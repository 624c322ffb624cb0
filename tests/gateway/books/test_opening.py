"""The accounts of a gateway belong to one ledger: a lost one is no new budget, and an empty database is noticed."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from discreet.cli import main
from discreet.errors import InvalidArgument
from discreet.gateway.books import audit
from discreet.gateway.books.opening import open_books
from discreet.gateway.books.store import GatewayStore
from discreet.gateway.books.tables import MIGRATIONS
from discreet.gateway.settings import load_settings
from discreet.gateway.vault.vault import open_vault

from ...refusing import refuses
from ..house import House


@pytest.fixture
def house(tmp_path: Path) -> House:
    """A gateway with an account, which was opened once."""
    made = House(tmp_path / "clinic")
    made.open("ada")
    opened(made)
    return made


def opened(house: House) -> str:
    """Open the books, and give back the name of the ledger."""
    ledger, store = open_books(*load_settings(house.policy))
    with closing(ledger), store, store.read() as execute:
        return str(execute("SELECT name FROM seen WHERE what = 'ledger'")[0][0])


def lose(house: House, name: str) -> None:
    for file in house.folder.glob(f"{name}*"):
        if file.is_file():
            file.unlink()


def renamed(house: House) -> None:
    """A policy with a typo in the path of its ledger, and the old database."""
    text = house.policy.read_text().replace('"clinic.ledger"', '"klinik.ledger"')
    house.policy.write_text(text.replace("[gateway]\n", '[gateway]\nstore = "clinic.gateway"\n'))


def ledger_command(house: House, *words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["ledger", str(house.policy), *words])
    return int(ended.value.code or 0)


@pytest.mark.parametrize("how", ["lost", "renamed", "another one"])
def test_another_ledger_is_refused(how: str, house: House) -> None:
    """A missing one is not created."""
    if how == "renamed":
        renamed(house)
    else:
        lose(house, "clinic.ledger")
    if how == "another one":
        house.ledger.close()
    for start in (opened, lambda one: open_vault(one.policy)):
        with refuses(InvalidArgument, "gateway-other-ledger"):
            start(house)
    assert (house.folder / "clinic.ledger").exists() is (how != "lost")
    assert not (house.folder / "klinik.ledger").exists()


@pytest.mark.parametrize("how", ["lost", "renamed"])
def test_an_older_database_creates_no_ledger_for_its_accounts(how: str, house: House) -> None:
    """It does not know the ledger, but it has accounts that were opened in one."""
    with house.store as store, store.write() as execute:
        execute("DELETE FROM seen")
    renamed(house) if how == "renamed" else lose(house, "clinic.ledger")
    with refuses(InvalidArgument, "gateway-other-ledger"):
        opened(house)
    assert not (house.folder / "klinik.ledger").exists()


@pytest.mark.parametrize("how", ["lost", "renamed", "another one"])
def test_it_can_be_adopted(how: str, house: House, capsys: pytest.CaptureFixture[str]) -> None:
    before = opened(house)
    if how == "renamed":
        renamed(house)
    else:
        lose(house, "clinic.ledger")
    if how == "another one":
        house.ledger.close()
    assert ledger_command(house, "--adopt", "the disk failed") == 0
    assert ("is new" in capsys.readouterr().err) is (how != "another one")
    after = opened(house)
    assert after != before
    with house.store as store:
        line = audit.lines(store)[-1]
    assert line.what == "ledger adopted"
    assert json.loads(line.details) == {"ledger": after, "before": before, "why": "the disk failed"}


def test_a_ledger_whose_checkpoint_is_left_cannot_be_adopted_anew(house: House) -> None:
    (house.folder / "clinic.ledger").unlink()
    assert ledger_command(house, "--adopt", "the disk failed") != 0
    assert not (house.folder / "clinic.ledger").exists()


def test_without_accounts_nothing_is_adopted_anew(tmp_path: Path) -> None:
    house = House(tmp_path / "clinic")
    assert ledger_command(house, "--adopt", "to begin") != 0
    assert not (house.folder / "clinic.ledger").exists()


def test_a_database_of_an_earlier_version_takes_the_ledger_that_it_sees_first(tmp_path: Path) -> None:
    house = House(tmp_path / "clinic")
    GatewayStore(str(house.folder / "clinic.gateway"), MIGRATIONS[:-1]).close()
    assert opened(house) == opened(house)


def test_a_lost_database_is_noticed(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    opened(house)
    assert capsys.readouterr().err == ""
    lose(house, "clinic.gateway")
    opened(house)
    assert capsys.readouterr().err.startswith("WARNING: the ledger has accounts")
