"""The container file, the compose file and the units say the same about users, capabilities, ports and exposure."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from discreet.gateway.isolation import VAULT_HOME
from discreet.gateway.settings import USERS
from discreet.ledger.stores.elsewhere import VARIABLE, second_folder

DEPLOY = Path(__file__).parents[2] / "deploy"
UNITS = sorted(DEPLOY.glob("*.service"))
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
EXPOSURE = {"discreet@.service": 30}
"""The most that `systemd-analyze security` may find, in tenths; 13 where no process has to be root."""


def instructions(text: str) -> list[tuple[str, str]]:
    """The instructions of a container file, with continued lines joined and comments left out."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in joined.splitlines())]


CONTAINER = instructions((DEPLOY / "Containerfile").read_text("utf-8"))


def test_the_container_file_is_read() -> None:
    known = ["ARG", "FROM", "WORKDIR", "COPY", "RUN", "ENV", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "CMD"]
    assert {word for word, _ in CONTAINER} == set(known)
    assert [rest for word, rest in CONTAINER if word == "FROM"] == ["${PYTHON} AS build", "${PYTHON}"]
    copied = [name for word, rest in CONTAINER if word == "COPY" and "--from" not in rest for name in rest.split()[:-1]]
    assert all((DEPLOY.parent / name).exists() for name in copied)
    assert instructions("RUN a \\\n && b\n# c\nCMD d\n") == [("RUN", "a && b"), ("CMD", "d")]


def test_both_ways_grant_the_same_capabilities() -> None:
    unit = (DEPLOY / "discreet@.service").read_text("utf-8")
    [line] = re.findall(r"^CapabilityBoundingSet=(.+)$", unit, re.MULTILINE)
    granted = {name.removeprefix("CAP_") for name in line.split()}
    gateway = COMPOSE["services"]["gateway"]
    assert set(gateway["cap_add"]) == granted
    [told] = re.findall(r"--cap-add (\S+)", (DEPLOY / "README.md").read_text("utf-8"))
    assert {name.upper() for name in told.split(",")} == granted


def test_the_unit_has_a_second_checkpoint_away_from_the_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    """And it is where commands outside of the unit look for it: in the home of the vault's user."""
    monkeypatch.delenv(VARIABLE)
    unit = (DEPLOY / "discreet@.service").read_text("utf-8")
    settings = dict(line.split("=", 1) for line in unit.splitlines() if "=" in line and line[0] != "#")
    variable, _, state = settings["Environment"].partition("=")
    assert (variable, state) == (VARIABLE, str(second_folder(VAULT_HOME)))
    assert not Path(state).is_relative_to(settings["ReadWritePaths"].removesuffix("/%i"))
    assert f"/var/lib/{settings['StateDirectory']}" == VAULT_HOME
    assert settings["ExecStartPre"].endswith(f"-o {USERS[0]} -g {USERS[0]} -m 0700 {VAULT_HOME}")
    assert f'"Data and ledger of discreet" {VAULT_HOME}\n' in (DEPLOY / "discreet.sysusers").read_text("utf-8")


@pytest.mark.parametrize("name", sorted(COMPOSE["services"]))
def test_a_service_of_the_compose_file(name: str) -> None:
    service = COMPOSE["services"][name]
    if name == "postgres":
        assert "ports" not in service  # only the gateway reaches it
        return
    assert (service["cap_drop"], service["read_only"]) == (["ALL"], True)
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["build"] == {"context": "..", "dockerfile": "deploy/Containerfile"}
    if name == "gateway":
        assert "user" not in service  # it starts as root, to have two users
        assert service["ports"] == [f"{port}:{port}" for word, port in CONTAINER if word == "EXPOSE"]
        [volume] = [rest for word, rest in CONTAINER if word == "VOLUME"]
        assert service["volumes"] == [f"./clinic:{volume}", f"vault:{VAULT_HOME}"]
        assert f"--home-dir {VAULT_HOME} " in (DEPLOY / "Containerfile").read_text("utf-8")
        assert "vault" in COMPOSE["volumes"]
    else:
        assert "cap_add" not in service
        port = service["command"][service["command"].index("--port") + 1]
        assert service["ports"] == [f"{port}:{port}"]
        assert f"127.0.0.1', {port}" in service["healthcheck"]["test"][-1]
    assert service["profiles"] == [name]


@pytest.fixture
def systemd(install) -> None:
    install(lambda: shutil.which("systemd-analyze"), "systemd")


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_how_exposed_a_unit_is(unit: Path, tmp_path: Path, systemd: None) -> None:
    most = EXPOSURE.get(unit.name, 13)
    instance = tmp_path / unit.name.replace("@", "@one")

    def is_below(text: str) -> bool:
        instance.write_text(text.replace("/opt/discreet/bin/discreet", "/bin/true"))
        command = ["systemd-analyze", "security", "--offline=true", f"--threshold={most}", str(instance)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    text = unit.read_text("utf-8")
    assert is_below(text)
    assert not is_below(text.replace("PrivateDevices=yes", "PrivateDevices=no"))
