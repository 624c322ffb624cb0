"""The console without processes: a vault in threads, the desk's application, and people who come by links."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx

from discreet.gateway.books import accounts
from discreet.gateway.books.tokens import COMMAND_LINE
from discreet.gateway.console.site import Console
from discreet.gateway.desk.http import make_app
from discreet.gateway.desk.rates import Rate, Rates
from discreet.gateway.frames import Link
from discreet.gateway.settings import Settings

from ..small_house import SmallHouse

URL = "http://127.0.0.1:8080"
OFTEN = Rate(1e6, 1e6)
PEOPLE = {
    "olga": "owner",
    "otto": "owner",
    "stefan": "steward",
    "aude": "auditor",
    "alice": "analyst",
    "bob": "analyst",
    "vera": "viewer",
    "robot": "service",
}


class Desk:
    """An application in a thread of its own."""

    def __init__(self, socket: Path, console: Console) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._link = Link(socket)
        app = make_app(self._link, rates=Rates(address=OFTEN, token=OFTEN, free_failures=10**6), console=console)
        self._transport = httpx.ASGITransport(app=app)

    def run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(60)

    def client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=self._transport, base_url=URL, follow_redirects=False)

    def close(self) -> None:
        self.run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(20)
        self._loop.close()

    async def _end(self) -> None:
        await self._link.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for one in others:
            one.cancel()
        await asyncio.gather(*others, return_exceptions=True)


class Person:
    """Somebody at a browser without scripts. Forms carry the secret of the session, unless a test says otherwise."""

    def __init__(self, desk: Desk, link: str | None = None) -> None:
        self._desk, self._client = desk, desk.client()
        self.secret = ""
        if link is not None:
            assert self.post("/login", link=link, next="/").status_code == 303
            self.secret = secret_of(self.get("/me").text)

    def get(self, path: str, **query: Any) -> httpx.Response:
        return self._desk.run(self._client.get(path, params=query or None))

    def post(self, path: str, form: str | None = None, headers: Any = None, **fields: Any) -> httpx.Response:
        sent = {"form": self.secret if form is None else form, **fields}
        return self._desk.run(self._client.post(path, data=sent, headers=headers))

    @property
    def cookies(self) -> httpx.Cookies:
        return self._client.cookies


def secret_of(text: str) -> str:
    """The secret of a page's forms."""
    found = re.search(r'name="form" value="([^"]+)"', text)
    return found[1] if found else ""


class Office:
    """A house with an account of each role, and its desk."""

    def __init__(self, house: SmallHouse, desk: Desk) -> None:
        self.house, self.desk = house, desk
        self._known: dict[str, Person] = {}
        self._tokens: dict[str, str] = {}

    def person(self, name: str) -> Person:
        """Somebody who is logged in. The same session for all tests of a module."""
        if name not in self._known:
            self._known[name] = Person(self.desk, self.link(name))
        return self._known[name]

    def token(self, name: str) -> str:
        """A token of somebody, with all scopes of the role. The same one for all tests of a module."""
        if name not in self._tokens:
            self._tokens[name] = self.house.token(name, PEOPLE[name])
        return self._tokens[name]

    def value(self, name: str, verb: str, **arguments: Any) -> Any:
        """What the vault says to somebody."""
        return self.house.value(self.token(name), verb, **arguments)

    def link(self, name: str) -> str:
        return accounts.new_link(self.house.store, name, by=COMMAND_LINE, now=time.time())


@contextmanager
def office(folder: Path, gateway: str = "answer_after = 0") -> Iterator[Office]:
    """A running console for tests."""
    house = SmallHouse(folder, gateway, epsilon=100)
    for name, role in PEOPLE.items():
        house.open(name, role, epsilon=20)
    with ExitStack() as stack:
        house.start()
        stack.callback(house.stop)
        desk = Desk(house.socket, Console(Settings(name="clinic")))
        stack.callback(desk.close)
        yield Office(house, desk)
