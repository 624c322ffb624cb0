"""A gateway with its console in this process: a real vault and a real desk, whose workers are threads."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from discreet.gateway.books import accounts
from discreet.gateway.books.tokens import COMMAND_LINE
from discreet.gateway.console.site import Console
from discreet.gateway.settings import load_settings

from ..desk.a_desk import Running, desk
from ..small_house import SmallHouse


class SmallSite(SmallHouse):
    """The files of a gateway, its vault, and its desk while `open_desk` holds."""

    desk: Running

    @contextmanager
    def open_desk(self) -> Iterator[Running]:
        """Serve the pages."""
        _, settings = load_settings(self.policy)
        with desk(self.folder, vault_at=self.socket, console=Console(settings)) as running:
            self.desk = running
            yield running

    @property
    def url(self) -> str:
        """Where the pages are."""
        return self.desk.url

    def login_link(self, name: str) -> str:
        """A login link for an account. Earlier ones no longer work."""
        return f"{self.url}/login#{accounts.new_link(self.store, name, by=COMMAND_LINE, now=time.time())}"

    def publish(self, version: str) -> None:
        """Serve another version of the data from the next start on."""
        text = re.sub(r'version = "[^"]*"', f'version = "{version}"', self.policy.read_text())
        self.policy.write_text(text)

    def visitor(self, name: str) -> Visitor:
        """A browser of this account."""
        return Visitor(self, name)


class Visitor(httpx.Client):
    """A session of one account, as a browser without scripts."""

    def __init__(self, site: SmallSite, name: str) -> None:
        super().__init__(base_url=site.desk.url, timeout=30, trust_env=False)
        assert self.post("/login", data={"link": site.login_link(name)}).status_code == 303
        self.secret = ""

    def page(self, path: str, status: int = 200, **query: Any) -> str:
        """The text of a page."""
        reply = self.get(path, params=query or None)
        assert reply.status_code == status, reply.text
        found = re.search(r'name="form" value="([^"]+)"', reply.text)
        self.secret = found[1] if found else self.secret
        return reply.text

    def fill(self, path: str, status: int = 303, **fields: Any) -> httpx.Response:
        """Send a form."""
        reply = self.post(path, data={"form": self.secret, **fields})
        assert reply.status_code == status, reply.text
        return reply


@contextmanager
def small_site(folder: Path, gateway: str = 'answer_after = 0\nversion = "v1"', **given: Any) -> Iterator[SmallSite]:
    """A site that is stopped at the end. It is not started yet."""
    made = SmallSite(folder, gateway, **given)
    try:
        yield made
    finally:
        if getattr(made, "_begun", None) is not None:
            made.stop()
