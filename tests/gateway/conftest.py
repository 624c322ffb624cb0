"""An office on a new ledger and a new database, with a clock that tests move."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import discreet as dp
from discreet.gateway.offices import VERBS, Office
from discreet.gateway.settings import Settings
from discreet.gateway.store import GatewayStore
from discreet.gateway.tokens import COMMAND_LINE, Caller, authenticate

START = 1_800_000_000.0


class Clinic:
    """An office whose time stands still until a test moves it."""

    def __init__(self, folder: Path, store: GatewayStore, limit: dp.Guarantee, **settings: Any) -> None:
        self.folder, self.time = folder, START
        ledger = dp.Ledger.open(folder / "clinic.ledger", protects=dp.person("id"), limit=limit)
        self.office = Office(store=store, ledger=ledger, settings=Settings(**settings), now=lambda: self.time)

    @property
    def store(self) -> GatewayStore:
        return self.office.store

    def set(self, **settings: Any) -> None:
        self.office = replace(self.office, settings=replace(self.office.settings, **settings))

    def do(self, verb: str, caller: Caller | None = COMMAND_LINE, **arguments: Any) -> dict[str, Any]:
        return VERBS[verb](self.office, caller, arguments)

    def open(self, name: str, role: str = "analyst", **terms: Any) -> str:
        """A new account, and the secret of its link."""
        terms = {"epsilon": 3} | terms if role in ("analyst", "service") else terms
        return self.do("open", name=name, role=role, **terms)["link"].split("#")[1]

    def caller(self, token: str) -> Caller:
        return authenticate(self.store, token, self.time)

    def login(self, name: str, role: str = "analyst", **terms: Any) -> Caller:
        """A new account, logged in."""
        return self.caller(self.do("login", None, link=self.open(name, role, **terms))["token"])

    def close(self) -> None:
        self.store.close()
        self.office.ledger.close()


@pytest.fixture
def clinic_with(tmp_path: Path) -> Iterator[Callable[..., Clinic]]:
    made: list[Clinic] = []

    def make(limit: dp.Guarantee | None = None, **settings: Any) -> Clinic:
        store = GatewayStore(str(tmp_path / "clinic.gateway"))
        made.append(Clinic(tmp_path, store, limit or dp.Approx(epsilon=10, delta=1e-6), **settings))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def clinic(clinic_with: Callable[..., Clinic]) -> Clinic:
    return clinic_with()
