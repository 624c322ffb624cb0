"""An office on a new ledger and a new database, with a clock that tests move."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import discreet as dp
from discreet.errors import DiscreetError
from discreet.gateway.books import tokens
from discreet.gateway.books.offices import Office
from discreet.gateway.books.store import GatewayStore
from discreet.gateway.books.tokens import COMMAND_LINE, Caller
from discreet.gateway.settings import Settings
from discreet.gateway.vault.verbs import VERBS

START = 1_800_000_000.0  # 08:00 UTC


class Clinic:
    """An office whose time stands still until a test moves it."""

    def __init__(self, folder: Path, target: str, limit: dp.Guarantee | None = None, **settings: Any) -> None:
        self.folder, self.target, self.time = folder, target, START
        limit = limit or dp.Approx(epsilon=10, delta=1e-6)
        ledger = dp.Ledger.open(folder / "clinic.ledger", protects=dp.person("id"), limit=limit)
        given = Settings(store=target, **settings)
        books = GatewayStore(target)
        self.office = Office(store=books, open_ledger=lambda: ledger, settings=given, now=lambda: self.time)

    @property
    def store(self) -> GatewayStore:
        return self.office.store

    @property
    def settings(self) -> Settings:
        return self.office.settings

    def set(self, **settings: Any) -> None:
        self.office = replace(self.office, settings=replace(self.settings, **settings))

    def do(self, verb: str, caller: Caller | None = COMMAND_LINE, /, **arguments: Any) -> dict[str, Any]:
        return VERBS[verb](self.office, caller, arguments)

    def open(self, name: str, role: str = "analyst", **terms: Any) -> str:
        """A new account, and the secret of its link."""
        terms = {"epsilon": 3} | terms if role in ("analyst", "service") else terms
        return str(self.do("open", name=name, role=role, **terms)["link"].split("#")[1])

    def caller(self, token: str) -> Caller:
        return tokens.authenticate(self.store, token, self.time)

    def login(self, name: str, role: str = "analyst", **terms: Any) -> Caller:
        """A new account, logged in."""
        return self.caller(self.do("login", None, link=self.open(name, role, **terms))["token"])

    def close(self) -> None:
        self.store.close()
        self.office.ledger.close()


def at_once(work: Callable[[int], Any], threads: int = 8) -> list[Any]:
    """What each thread returned, or the code of the error that it got, all started at the same time."""
    barrier, found = threading.Barrier(threads), [None] * threads

    def run(number: int) -> None:
        barrier.wait()
        try:
            found[number] = work(number)
        except DiscreetError as error:
            found[number] = error.code  # type: ignore[call-overload]

    started = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for one in started:
        one.start()
    for one in started:
        one.join()
    return found
