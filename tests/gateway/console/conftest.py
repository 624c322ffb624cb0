"""A served gateway with one account of each role, and a browser for it."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from discreet.gateway import accounts
from discreet.gateway.tokens import COMMAND_LINE

from ..served import Served
from .browser import Browser, chromium

ACCOUNTS = {
    "olga": "owner",
    "stefan": "steward",
    "aude": "auditor",
    "alice": "analyst",
    "vera": "viewer",
    "service": "service",
}
AXE = Path(sys.prefix) / "axe"


class Site(Served):
    """A gateway whose accounts have every role."""

    def link(self, name: str) -> str:
        """A login link for an account. Earlier ones no longer work."""
        secret = accounts.new_link(self.store, name, by=COMMAND_LINE, now=time.time())
        return f"{self.url}/login#{secret}"


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[Site]:
    """The gateway of a module's tests. Answers leave when they are ready."""
    made = Site(tmp_path_factory.mktemp("site"), 'http = "127.0.0.1:0"\nanswer_after = 0', epsilon=100)
    for name, role in ACCOUNTS.items():
        made.open(name, role, epsilon=20)
    made.serve("--not-isolated")
    yield made
    made.stop()


@pytest.fixture(scope="module")
def running_chromium(install) -> Iterator[object]:
    """One Chromium for a module's tests."""
    pytest.importorskip("playwright", reason='needs pip install "discreet[browser]"')
    install(lambda: shutil.which("chromium"), "chromium")
    with chromium() as running:
        yield running


@pytest.fixture
def browser(running_chromium, site) -> Iterator[Browser]:
    """A browser at the gateway. The test fails if it complains."""
    one = Browser(running_chromium, site.url)
    yield one
    one.close()


@pytest.fixture(scope="session")
def axe(install) -> str:
    """The text of axe-core, from npm."""
    install(lambda: shutil.which("npm"), "nodejs", "npm")
    AXE.mkdir(exist_ok=True)
    with (AXE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        file = AXE / "node_modules" / "axe-core" / "axe.min.js"
        if not file.exists():
            command = ["npm", "install", "--no-audit", "--no-fund", "axe-core@4"]
            subprocess.run(command, cwd=AXE, check=True, capture_output=True)
    return file.read_text(encoding="utf-8")
