"""`discreet serve` as a whole: TLS for other machines, memory of a lane, and the demo."""

from __future__ import annotations

import io
import json
import re
import shlex
import socket
import ssl
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import httpx
import pytest
from rich.console import Console

import discreet as dp
from discreet.cli.gateway.serve import serve as command
from discreet.demo import gateway as demo
from discreet.gateway import serve
from discreet.gateway.settings import Settings, load_settings

from ..refusing import refuses
from .certificates import write_certificate
from .house import COUNT, House
from .served import COMMAND, ENVIRONMENT, served


def own_address() -> str | None:
    """An address of this machine that others can reach. No packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            one.connect(("192.0.2.1", 9))
        except OSError:
            return None
        found = str(one.getsockname()[0])
    return None if found.startswith("127.") else found


ADDRESS = own_address()


@pytest.mark.slow
@pytest.mark.skipif(ADDRESS is None, reason="this machine has no network")
def test_other_machines_need_tls(tmp_path):
    house = House(tmp_path / "open", f'http = "{ADDRESS}:0"')
    with refuses(dp.errors.InvalidArgument, "gateway-tls"):
        load_settings(house.policy)
    write_certificate(tmp_path, ADDRESS)
    text = f'http = "{ADDRESS}:0"\nanswer_after = 0\n'
    text += f'certificate = "{tmp_path}/certificate.pem"\nkey = "{tmp_path}/key.pem"'
    with served(tmp_path / "house", text) as running:
        token = running.open("ada")
        running.serve("--not-isolated")
        assert running.url.startswith(f"https://{ADDRESS}:")
        trusted = ssl.create_default_context(cafile=tmp_path / "certificate.pem")
        assert running.post(token, COUNT, verify=trusted).status_code == 200
        with pytest.raises(httpx.ConnectError):
            running.post(token, COUNT)  # nobody vouches for the certificate
        running.url = running.url.replace("https", "http")
        with pytest.raises(httpx.HTTPError):
            running.post(token, COUNT)


@pytest.mark.slow
def test_a_question_that_needs_too_much_memory(tmp_path):
    """Its answer is late like any other, and the vault goes on with the next question."""
    settings = 'answer_after = 0\nlate_allowed = 5\nlane_memory = "100MB"'
    house = House(tmp_path / "house", settings, people=1_000_000)
    heavy = (
        "SELECT CAST(cost * 1000 + id AS INTEGER) AS k, COUNT(DISTINCT id) AS d, COUNT(*) AS n FROM visits GROUP BY k"
    )
    house.start(str(Path(__file__).parent / "programs/little_memory.py"))
    token = house.open("ada")
    first = house.ask(token, heavy)
    assert (first.header["code"], first.body) == ("gateway-late", b"")
    assert house.process.poll() is None
    assert house.ask(token).header["ok"]
    assert [entry.state for entry in house.charges()].count("answered") == 1
    assert house.value(token, "budget")["remaining"]["epsilon"] < 2.9  # both stay charged
    assert house.stop() == 0
    house.start()  # with the usual room
    other = house.open("bea")
    assert house.ask(other, heavy).header["ok"]
    assert house.stop() == 0


@pytest.mark.slow
def test_the_demo(monkeypatch):
    """Its address, token and command line work while it runs."""
    monkeypatch.setattr(demo, "ANSWER_AFTER", "0")
    out = io.StringIO()
    found = []

    def watch(self: serve.Supervisor) -> None:
        """In the place of a person who reads what is shown, and then presses Ctrl-C."""
        [line] = re.findall(r"^curl .*$", out.getvalue(), re.M)
        words = shlex.split(line)
        reply = httpx.post(
            words[2],
            headers=dict(one.split(": ") for one in words if ": " in one and "{" not in one),
            content=words[-1],
        )
        found.append(reply.json())
        for secret in re.findall(r"/login#(\w+)", out.getvalue()):
            found.append(httpx.post(f"{self.addresses()['http']}/v1/login", json={"link": secret}).json())

    monkeypatch.setattr(serve.Supervisor, "watch", watch)
    demo.tell(Console(file=out, width=80, highlight=False), once=False)
    answer, *logins = found
    assert answer["columns"] == ["city", "patients"]
    assert answer["remaining"]["epsilon"] == pytest.approx(2.9)  # the demo had bought it
    assert {login["account"] for login in logins} == {"olga", "alice"}
    assert "truth*" in out.getvalue()
    assert "has stopped" in out.getvalue()


@pytest.mark.slow
def test_the_demo_ends_by_itself_without_a_terminal():
    run = subprocess.run(
        [sys.executable, *COMMAND, "demo", "gateway"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    assert "for free" in run.stdout


def test_a_port_that_is_used_is_not_taken(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as used:
        monkeypatch.setattr(demo, "HTTP", demo.HTTP._replace(port=used.getsockname()[1]))
        assert demo.free_port() not in (0, demo.HTTP.port)


def test_a_log_in_no_folder_is_refused(tmp_path):
    house = House(tmp_path / "house", 'http = "127.0.0.1:0"\nlog = "missing/log"')
    with refuses(dp.errors.InvalidArgument, "file-not-writable"):
        serve.Supervisor(house.policy, isolated=False)


def test_systemd_is_told(tmp_path, monkeypatch):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        serve._notify("READY=1")
        assert listening.recv(100) == b"READY=1"
    serve._notify("STOPPING=1")  # nobody listens: it is no error


def test_serving_needs_a_policy_or_data():
    with refuses(dp.InvalidArgument, "command-policy"):
        command()


def test_the_desk_is_told_names_and_limits_and_no_place_of_data():
    settings = Settings(
        question_most=Fraction(1, 3), name="clinic", version="7", store="secret.gateway", copies="secret"
    )
    told = json.loads(json.dumps(serve.desk_opening(settings, Path("vault"), {"http": 3})))
    assert (told["name"], told["version"], told["question_most"], told["approve_above"]) == ("clinic", "7", "1/3", None)
    assert "secret" not in json.dumps(told)
