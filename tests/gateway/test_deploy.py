"""The files of `deploy/`, checked by the programs that read them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

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
