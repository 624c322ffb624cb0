"""The two addresses of a poll with https, as deploy/Caddyfile has them: a phone answers through both."""

from __future__ import annotations

import re
import shutil
import ssl
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

import discreet as dp
from discreet.shuffle.channel.form.page import draw_form

from ..gateway.console.browser import Browser, chromium
from ..shuffle.channel.polls import Service, free_port, make_poll, services

CADDYFILE = Path(__file__).parents[2] / "deploy" / "Caddyfile"
OWN = """{
	admin off
	auto_https disable_redirects
	local_certs
	skip_install_trust
	storage file_system STORE
}
"""
"""What is different on a machine without names: certificates of its own."""


def configured(folder: Path, page: str, shuffler: str, behind: str) -> Path:
    """The file as it is, with other names, another folder and another port."""
    text = CADDYFILE.read_text("utf-8")
    for known, own in {
        "polls.example {": f"{page} {{",
        "shuffler.example {": f"{shuffler} {{",
        "/srv/polls\n": f"{folder / 'served'}\n",
        "127.0.0.1:7002": behind,
    }.items():
        assert text.count(known) == 1
        text = text.replace(known, own)
    path = folder / "Caddyfile"
    path.write_text(OWN.replace("STORE", str(folder / "store")) + text)
    return path


def answers(url: str, context: ssl.SSLContext) -> bool:
    try:
        return httpx.get(url, verify=context).status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.slow
def test_a_phone_answers_over_https(tmp_path: Path, install: Any) -> None:
    install(lambda: shutil.which("chromium"), "chromium")
    install(lambda: shutil.which("caddy"), "caddy")
    made = dp.shuffle.histogram(choices=("never", "daily"), clients=12, minimum=10, epsilon=8, delta=0.05)
    poll = make_poll(tmp_path, description=made.described())
    page, address = (f"https://127.0.0.1:{free_port()}" for _ in range(2))
    (tmp_path / "served").mkdir()
    with services(poll, tmp_path) as (shuffler, _):
        poll.path.write_text(poll.path.read_text().replace(shuffler.url, address))
        (tmp_path / "served" / "form.html").write_bytes(draw_form(poll.task, "How often?"))
        file = configured(tmp_path, page, address, shuffler.url.removeprefix("http://"))
        caddy = Service(["caddy", "run", "--config", str(file)], tmp_path / "caddy.log")
        try:
            authority = tmp_path / "store" / "pki" / "authorities" / "local" / "root.crt"
            deadline = time.monotonic() + 60
            while not (
                authority.exists() and answers(f"{address}/healthz", ssl.create_default_context(cafile=authority))
            ):
                assert time.monotonic() < deadline, (tmp_path / "caddy.log").read_text()
                time.sleep(0.1)
            sent = httpx.get(f"{page}/form.html", verify=ssl.create_default_context(cafile=authority)).headers
            assert sent["content-security-policy"] == "frame-ancestors 'none'"
            with chromium() as running:
                browser = Browser(running, page)
                phone = browser.open(size="phone", trusting=True)
                phone.goto(f"{page}/form.html#{poll.token(0).hex()}")
                phone.get_by_text("daily").click()
                phone.get_by_role("button", name="Send").click()
                phone.get_by_text("Your report was taken.").wait_for()
                browser.close()
        finally:
            caddy.stop()
        operator = {"Authorization": f"Bearer {poll.issuer.operator.hex()}"}
        assert httpx.get(f"{shuffler.url}/v1/state", headers=operator).json()["reports"] == 1
    said = (tmp_path / "caddy.log").read_text()
    assert poll.token(0).hex() not in said
    assert not re.search(r'"remote_(ip|addr)"|/v1/report', said)
