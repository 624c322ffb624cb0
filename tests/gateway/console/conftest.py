"""A served gateway with one account of each role, and a browser for it."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from discreet.gateway.books import accounts
from discreet.gateway.books.tokens import COMMAND_LINE

from ..served import Served
from .browser import Browser, chromium
from .keyboard.keyboard import Keyboard
from .small_site import SmallSite, small_site

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

    def login_link(self, name: str) -> str:
        """A login link for an account. Earlier ones no longer work."""
        secret = accounts.new_link(self.store, name, by=COMMAND_LINE, now=time.time())
        return f"{self.url}/login#{secret}"


@contextmanager
def serving(folder: Path, more: str = "") -> Iterator[Site]:
    """A gateway whose answers leave when they are ready, with more lines in its settings."""
    made = Site(folder, f'http = "127.0.0.1:0"\nanswer_after = 0\n{more}', epsilon=100)
    for name, role in ACCOUNTS.items():
        made.open(name, role, epsilon=20)
    made.serve("--not-isolated")
    yield made
    made.stop()


@contextmanager
def serving_here(folder: Path) -> Iterator[SmallSite]:
    """The same accounts at a gateway in this process: for tests of pages, which do not see who runs them."""
    with small_site(folder, epsilon=100) as made:
        for name, role in ACCOUNTS.items():
            made.open(name, role, epsilon=20)
        made.start()
        with made.open_desk():
            yield made


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[Site]:
    """The gateway of a module's tests."""
    with serving(tmp_path_factory.mktemp("site")) as made:
        yield made


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


LOOKS = {"desktop": ("light", True), "phone, no scripts": ("dark", False)}


@pytest.fixture(params=LOOKS)
def keyboard(request, browser, site) -> Callable[[str], Keyboard]:
    """Logs somebody in who has a keyboard alone."""
    scheme, scripts = LOOKS[request.param]

    def come(name: str) -> Keyboard:
        page = browser.open(size=request.param.partition(",")[0], scheme=scheme, scripts=scripts)
        keys = Keyboard(page, scripts=scripts)
        keys.log_in(site.login_link(name))
        return keys

    return come


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
