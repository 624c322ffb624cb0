"""The units of systemd for all services: understood, hardened, and with options that the commands have."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from discreet.cli.shuffle import app

UNITS = Path(__file__).parents[3] / "deploy"
NAMES = ("shuffler", "analyzer", "issuer")
DROP_INS = ("shuffler", "analyzer")
HARDENED = ("DynamicUser=yes", "ProtectSystem=strict", "NoNewPrivileges=yes", "ProtectHome=yes", "LimitCORE=0")


@pytest.fixture(scope="module")
def systemd(install) -> None:
    """The program that reads units."""
    install(lambda: shutil.which("systemd-analyze"), "systemd")


def told(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.mark.some_quick(3)
@pytest.mark.parametrize(
    ("name", "with_tls"), [*((name, False) for name in NAMES), *((name, True) for name in DROP_INS)]
)
def test_systemd_understands_the_unit(name: str, with_tls: bool, tmp_path: Path, systemd: None) -> None:
    unit = tmp_path / f"discreet-{name}@poll.service"
    text = (UNITS / f"discreet-{name}@.service").read_text().replace("/opt/discreet/bin/discreet", "/bin/true")
    unit.write_text(text)
    if with_tls:
        (tmp_path / f"{unit.name}.d").mkdir()
        drop_in = (UNITS / f"{name}-tls.conf").read_text().replace("/opt/discreet/bin/discreet", "/bin/true")
        (tmp_path / f"{unit.name}.d" / "tls.conf").write_text(drop_in)
    assert told("systemd-analyze", "verify", str(unit)) == ""
    unit.write_text(text.replace("DynamicUser", "DynamicUsers"))
    assert "Unknown key" in told("systemd-analyze", "verify", str(unit))  # a mistake would be seen


@pytest.mark.parametrize("name", NAMES)
def test_the_unit_is_hardened_and_its_command_exists(name: str) -> None:
    unit = (UNITS / f"discreet-{name}@.service").read_text()
    drop_in = (UNITS / f"{name}-tls.conf").read_text() if name in DROP_INS else ""
    assert all(f"\n{line}\n" in unit for line in HARDENED)
    assert f"\nStateDirectory=discreet-{name}/%i\n" in unit
    manual = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "200", "TERM": "dumb"}).output
    for command in re.findall(r"^ExecStart=(.+)$", unit + drop_in, flags=re.MULTILINE):
        assert command.startswith(f"/opt/discreet/bin/discreet shuffle {name} /var/lib/private/discreet-{name}/%i/")
        assert all(option in manual for option in re.findall(r"--[a-z-]+", command))
