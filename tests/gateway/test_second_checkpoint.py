"""Whether an old ledger would be noticed that is put back together with its checkpoint: the owner is told if not."""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from pathlib import Path

import pytest

from discreet.cli import main
from discreet.errors import InvalidArgument
from discreet.gateway.isolation import User, this_user, why_unnoticed
from discreet.gateway.serve import Supervisor
from discreet.gateway.settings import load_settings

from ..refusing import refuses
from .house import House

OTHER = User(64101, 64101, "/nonexistent")


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    """A gateway whose owner chose no folder for second checkpoints."""
    monkeypatch.delenv("DISCREET_STATE")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return House(tmp_path / "clinic", 'http = "127.0.0.1:0"\nanswer_after = 0\n')


def no_folder(tmp_path: Path) -> None:
    """A state directory that nobody can make: root may write everywhere."""
    (tmp_path / "state").write_text("a file in its place")


def test_a_folder_that_can_be_made_is_enough(house: House, tmp_path: Path) -> None:
    policy, _ = load_settings(house.policy)
    assert why_unnoticed(policy, this_user(), "ana") is None
    assert not (tmp_path / "state").exists()  # only the first charge makes it


def test_a_folder_that_cannot_be_used_is_named(house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy, _ = load_settings(house.policy)
    no_folder(tmp_path)
    said = why_unnoticed(policy, this_user(), "ana")
    assert said is not None
    assert f"ana cannot write {tmp_path / 'state' / 'discreet'}" in said
    assert "Set DISCREET_STATE to a folder that ana may write" in said
    assert why_unnoticed(replace(policy, ledger="postgresql://db/clinic"), this_user(), "ana") is None
    monkeypatch.setenv("DISCREET_STATE", str(tmp_path / "chosen"))
    assert why_unnoticed(policy, this_user(), "ana") is None
    monkeypatch.setenv("DISCREET_STATE", "off")
    assert why_unnoticed(policy, this_user(), "ana") is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can try as another user")
def test_it_is_the_vault_that_must_be_able(house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from .served import python_for_all

    python = python_for_all()
    if python is None:
        pytest.skip("no Python of this version that other users can run")
    monkeypatch.setattr("sys.executable", python)
    policy, _ = load_settings(house.policy)
    said = why_unnoticed(policy, OTHER, "ana")  # root can write its own state directory, and the vault has no home
    assert said is not None
    assert "ana cannot write /nonexistent/.local/state/discreet" in said
    monkeypatch.setenv("DISCREET_STATE", "~/state")  # in the home of the vault, not in that of root
    with refuses(InvalidArgument, "ledger-place") as refused:
        why_unnoticed(policy, OTHER, "ana")
    assert "ana cannot write /nonexistent/state" in str(refused.value)


@pytest.mark.parametrize("command", ["serve", "check"])
def test_the_owner_is_told(command: str, house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    def begin(_: Supervisor) -> None:
        raise InvalidArgument("It would start now.", code="port-unavailable")

    monkeypatch.setattr(Supervisor, "running", begin)
    monkeypatch.setattr("discreet.gateway.isolation._user", lambda _: None)
    options = ("--not-isolated",) if command == "serve" else ()
    for told in (False, True):
        if told:
            no_folder(tmp_path)
        with contextlib.suppress(SystemExit):
            main([command, str(house.policy), *options])
        said = "".join(capsys.readouterr())
        assert ("no second checkpoint" in said) == (told and (os.geteuid() == 0 or command == "serve")), said


@pytest.mark.parametrize("ledger", ["clinic.ledger", "postgresql://db/clinic"])
def test_a_folder_that_was_chosen_must_be_usable(
    ledger: str, house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = replace(load_settings(house.policy)[0], ledger=ledger)
    monkeypatch.setenv("DISCREET_STATE", str(tmp_path / "disk" / "discreet"))
    assert why_unnoticed(policy, this_user(), "ana") is None
    (tmp_path / "disk").write_text("a file where a disk would be mounted")
    with refuses(InvalidArgument, "ledger-place"):
        why_unnoticed(policy, this_user(), "ana")


@pytest.mark.parametrize("option", ["--not-isolated", "--check"])
def test_nothing_is_served_without_the_folder_that_was_chosen(
    option: str,
    house: House,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "disk").write_text("a file where a disk would be mounted")
    monkeypatch.setenv("DISCREET_STATE", str(tmp_path / "disk"))
    monkeypatch.setattr("discreet.gateway.serve.problems", lambda *_: [])
    monkeypatch.setattr("discreet.gateway.serve.users_of", lambda _: (this_user(), this_user()))
    with pytest.raises(SystemExit) as ended:
        main(["serve", str(house.policy), option])
    assert ended.value.code
    assert "[ledger-place]" in capsys.readouterr().err


def test_an_analyst_is_not_told_where_it_is(house: House) -> None:
    """It was usable when the gateway was started. The question is refused before it is charged."""
    token = house.open("ada")
    house.environment = {"DISCREET_STATE": "/proc/nowhere"}
    house.start()
    try:
        said = house.ask(token).header
    finally:
        house.stop()
    assert (said["ok"], said["code"]) == (False, "ledger-checkpoint")
    assert "nowhere" not in said["message"]
    assert "DISCREET_STATE" not in said["message"]
    assert house.charges() == []
