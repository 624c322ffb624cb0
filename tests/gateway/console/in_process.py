"""The pages of the console in this process, in front of a real vault: no browser and no port."""

from __future__ import annotations

import asyncio
import itertools
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

import httpx

from discreet.gateway.console.site import Console
from discreet.gateway.desk.http import make_app
from discreet.gateway.desk.rates import Rate, Rates
from discreet.gateway.frames import Link
from discreet.gateway.settings import load_settings

from ..house import House

_MANY = Rate(1e6, 1e6)
_SEEDS = itertools.count(1)
_URL = "http://clinic.test"


class Visitor:
    """One session at a desk: what a browser without scripts would send."""

    def __init__(self, pages: Pages, token: str) -> None:
        self._pages, self._headers = pages, {"Cookie": f"discreet={token}"}

    def get(self, path: str, **query: Any) -> httpx.Response:
        """Load a page."""
        return self._send("GET", path + (f"?{urlencode(query, doseq=True)}" if query else ""))

    def post(self, path: str, **fields: Any) -> httpx.Response:
        """Send a form, with the secret of the session."""
        return self._send("POST", path, data={"form": self.secret, **fields})

    def ask(self, sql: str, *, seed: str = "", **fields: Any) -> httpx.Response:
        """Ask as the page does, whose seed is new each time it is loaded."""
        seed = seed or f"{next(_SEEDS):032x}"
        return self.post("/ask", sql=sql, seed=seed, do="ask", **fields)

    @cached_property
    def secret(self) -> str:
        """The secret of the session's forms."""
        return re.search(r'name="form" value="([^"]+)"', self.get("/ask").text)[1]

    def _send(self, method: str, path: str, **given: Any) -> httpx.Response:
        return self._pages.run(self._pages.client.request(method, path, headers=self._headers, **given))


class Pages:
    """A desk with pages, and a thread in which it runs."""

    def __init__(self, house: House) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._link = Link(house.socket)
        settings = load_settings(house.policy)[1]
        self.console = Console(settings)
        app = make_app(self._link, rates=Rates(address=_MANY, token=_MANY), console=self.console)
        self.client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=_URL, timeout=60)

    def run(self, work: Any) -> Any:
        """Wait for something that the desk does."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def visitor(self, token: str) -> Visitor:
        """A session with a token."""
        return Visitor(self, token)

    def close(self) -> None:
        """Stop the desk."""
        self.run(self.client.aclose())
        self.run(self._link.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(20)
        self._loop.close()


@contextmanager
def pages_of(house: House) -> Iterator[Pages]:
    """The pages of a running house."""
    made = Pages(house)
    try:
        yield made
    finally:
        made.close()
