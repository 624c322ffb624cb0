"""The files of `deploy/`, checked by the programs that read them."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from .house import House

DEPLOY = Path(__file__).parents[2] / "deploy"


@pytest.fixture
def systemd(install) -> None:
    install(lambda: all(map(shutil.which, ("systemd-analyze", "systemd-sysusers", "systemd-tmpfiles"))), "systemd")


def told(*command: str | Path) -> str:
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, "LC_ALL": "C"})
    return run.stdout + run.stderr + (f"exit code {run.returncode}" if run.returncode else "")


def test_systemd_understands_the_unit(tmp_path, systemd):
    text = (DEPLOY / "discreet@.service").read_text().replace("/opt/discreet/bin/discreet", "/bin/true")
    unit = tmp_path / "discreet@clinic.service"
    unit.write_text(text)
    assert told("systemd-analyze", "verify", unit) == ""
    unit.write_text(text.replace("PrivateTmp", "PrivateTemp"))
    assert "Unknown key" in told("systemd-analyze", "verify", unit)  # a mistake would be seen


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make users")
def test_users_and_folders_are_made(tmp_path, systemd):
    (tmp_path / "etc").mkdir()
    assert "not" not in told("systemd-sysusers", f"--root={tmp_path}", DEPLOY / "discreet.sysusers")
    lines = [line.split(":") for line in (tmp_path / "etc" / "passwd").read_text().splitlines()]
    numbers = {line[0]: int(line[2]) for line in lines}
    assert {"discreet-vault", "discreet-desk"} <= set(numbers)
    assert numbers["discreet-vault"] != numbers["discreet-desk"]
    assert told("systemd-tmpfiles", "--create", f"--root={tmp_path}", DEPLOY / "discreet.tmpfiles") == ""
    made = (tmp_path / "var" / "lib" / "discreet").stat()
    assert (made.st_uid, made.st_mode & 0o777) == (numbers["discreet-vault"], 0o711)
    home = (tmp_path / "var" / "lib" / "discreet-vault").stat()
    assert (home.st_uid, home.st_mode & 0o777) == (numbers["discreet-vault"], 0o700)


def test_the_image_has_the_users_that_are_the_default():
    from discreet.gateway.settings import USERS

    text = (DEPLOY / "Containerfile").read_text()
    assert re.findall(r"useradd .*?--uid (\d+).*?(discreet-\S+)\s", text.replace("\\\n", " ")) == [
        ("64101", USERS[0]),
        ("64102", USERS[1]),
    ]
    assert "USER" not in re.findall(r"^([A-Z]+) ", text, re.M)  # it starts as root, to have two users


@pytest.mark.slow
def test_only_its_owner_can_read_a_backup(tmp_path, install):
    """The commands of the page, with the usual umask of root."""
    install(lambda: shutil.which("sqlite3"), "sqlite3")
    house, kept, programs = House(tmp_path / "clinic"), tmp_path / "backup", tmp_path / "programs"
    house.open("ada")
    house.policy.chmod(0o600)
    programs.mkdir()
    for name, words in (("discreet", f'"{sys.executable}" -m discreet "$@"'), ("runuser", 'shift 3; "$@"')):
        (programs / name).write_text(f"#!/bin/sh\n{words}\n")
        (programs / name).chmod(0o755)
    page = (DEPLOY / "README.md").read_text("utf-8")
    commands = "\n".join(re.findall("^# (.+)", page.partition("## Backup")[2].partition("```\n")[0], re.M))
    commands = commands.replace("/var/lib/discreet/clinic", str(house.folder)).replace("/backup", str(kept))
    found = {"PATH": f"{programs}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-ec", f"umask 022\n{commands}"], check=True, timeout=60, env=os.environ | found)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (kept, *kept.iterdir())}
    ours = ("clinic.gateway", "clinic.ledger", "clinic.ledger.checkpoint", "clinic.toml")
    assert modes == {"backup": 0o700, **dict.fromkeys(ours, 0o600)}
