"""The process of the desk: TLS, sockets that are given, the end of a process, and what it writes: nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import httpx
import pytest

import discreet as dp
from discreet.errors import InvalidArgument, ServiceUnavailable
from discreet.gateway.desk.server import serve_desk, tls_context
from discreet.gateway.frames import Frame, serve_frames
from discreet.gateway.settings import Settings

from ...refusing import refuses
from ..certificates import write_certificate
from .a_desk import TOKEN, desk, said

PROGRAM = """
import socket, sys
from pathlib import Path
from discreet.gateway.desk.server import serve_desk
from discreet.gateway.settings import Settings
listening = socket.socket(fileno=int(sys.argv[1]))
serve_desk([listening], Path(sys.argv[2]), Settings(), ready=lambda: print("ready", flush=True))
print("ended", flush=True)
"""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A certificate for 127.0.0.1 that nobody else signed."""
    folder = tmp_path_factory.mktemp("tls")
    write_certificate(folder)
    return Settings(certificate=str(folder / "certificate.pem"), key=str(folder / "key.pem"))


def test_tls(tmp_path: Path, certificate: Settings) -> None:
    trusted = ssl.create_default_context(cafile=certificate.certificate)
    with desk(tmp_path, {"me": said()}, context=tls_context(certificate), verify=trusted) as running:
        url = running.url.replace("127.0.0.1", "localhost")
        reply = running.client.get(f"{url}/v1/me")
        assert reply.status_code == 200
        assert reply.headers["strict-transport-security"]
        assert running.frames[-1].header["token"] == TOKEN
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{url}/v1/me", trust_env=False)  # nobody vouches for the certificate
        with pytest.raises(httpx.HTTPError):
            httpx.get(f"{url.replace('https', 'http')}/v1/me", trust_env=False)
        assert tls_context(certificate).minimum_version >= ssl.TLSVersion.TLSv1_2  # type: ignore[union-attr]


def test_the_python_client_trusts_nobody_else(
    tmp_path: Path, certificate: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discreet.gateway.remote.time.sleep", lambda _: None)
    with desk(tmp_path, {"budget": said(b'{"about": "7"}')}, context=tls_context(certificate)) as running:
        url = running.url.replace("127.0.0.1", "localhost")
        with closing(dp.remote(url, token=TOKEN)) as remote, refuses(ServiceUnavailable, "remote-unreachable"):
            remote.budget()
        assert running.frames == []
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate.certificate))
        with closing(dp.remote(url, token=TOKEN)) as remote:
            assert remote.budget() == {"about": "7"}


def test_a_certificate_that_cannot_be_used_is_refused(tmp_path: Path, certificate: Settings) -> None:
    (tmp_path / "empty").write_text("")
    for wrong in (tmp_path / "empty", tmp_path / "missing"):
        with refuses(InvalidArgument, "gateway-certificate"):
            tls_context(Settings(certificate=str(wrong), key=certificate.key))


def test_a_socket_for_other_machines_needs_tls(tmp_path: Path) -> None:
    for host in ("0.0.0.0", "::"):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family) as listening:
            listening.bind((host, 0))
            with refuses(InvalidArgument, "gateway-tls"):
                serve_desk([listening], tmp_path / "vault", Settings())
            with refuses(InvalidArgument, "gateway-tls"):
                serve_desk([], tmp_path / "vault", Settings(), metrics=[listening])


@pytest.mark.slow
def test_a_desk_that_is_told_to_end_answers_what_it_has_begun(tmp_path: Path) -> None:
    """And writes nothing: no address, no token, no question."""
    asked, free = threading.Event(), asyncio.Event()

    async def answer(_: Frame) -> Frame:
        asked.set()
        await free.wait()
        return said(b"[1]")

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    vault = asyncio.run_coroutine_threadsafe(serve_frames(tmp_path / "vault", answer, {os.getuid()}), loop).result(20)
    listening = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    command = [sys.executable, "-c", PROGRAM, str(listening.fileno()), str(tmp_path / "vault")]
    process = subprocess.Popen(
        command, pass_fds=[listening.fileno()], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        listening.close()
        replies: list[bytes] = []

        def ask() -> None:
            headers = {"Authorization": f"Bearer {TOKEN}"}
            reply = httpx.post(f"{url}/v1/questions", json={"sql": "x"}, headers=headers, trust_env=False, timeout=20)
            replies.append(reply.content)

        asking = threading.Thread(target=ask)
        asking.start()
        assert asked.wait(20)
        process.send_signal(signal.SIGTERM)
        while True:  # no new connection is taken
            try:
                httpx.get(f"{url}/healthz", trust_env=False, timeout=0.2)
            except httpx.ConnectError:
                break
            except httpx.HTTPError:
                continue
        loop.call_soon_threadsafe(free.set)
        asking.join(20)
        assert replies == [b"[1]"]
        rest, _ = process.communicate(timeout=20)
        assert (rest, process.returncode) == ("ended\n", 0)
    finally:
        process.kill()
        loop.call_soon_threadsafe(vault.close)
        for task in asyncio.all_tasks(loop):
            loop.call_soon_threadsafe(task.cancel)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(20)
        loop.close()
