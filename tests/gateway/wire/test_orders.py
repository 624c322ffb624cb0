"""Any order of messages, over two connections: the server answers as the protocol says, and runs each portal once.

A small model of the protocol, written from its documentation, says what every message must be answered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from ..clinics import Clinic
from . import raw
from .a_wire import Accounts, wire
from .conftest import Doors
from .raw import Client

NAMES = st.sampled_from(["", "a", "b"])
TEXTS = st.sampled_from(
    ["rows 3", "rows 0", "set x", "begin", "commit", "rollback", "fail", "boom", "", "rows 1; rows 2"]
)
COUNTS = st.sampled_from([0, 1, 2, 5])
WITH_ROWS = {"rows 3": 3, "rows 0": 0}


@dataclass
class Portal:
    """What the model knows of a portal."""

    text: str
    source: str
    begun: bool = False
    failed: bool = False
    sent: int = 0
    done: bool = False


@dataclass
class Model:
    """What one connection keeps, and what it owes to its client."""

    client: Client
    number: int
    status: str = "I"
    skipping: bool = False
    statements: dict[str, str] = field(default_factory=dict)
    portals: dict[str, Portal] = field(default_factory=dict)
    owed: str = ""
    runs: int = 0

    # --- what a session does

    def run(self, text: str) -> str:
        """What comes of running a statement: ok, or E."""
        self.runs += 1
        if self.status == "E" and text not in ("rollback", "commit"):
            return "E"
        if text in ("fail", "boom"):
            return "E"
        if text in ("begin", "commit", "rollback"):
            self.status = "T" if text == "begin" else "I"
        return "ok"

    def error(self, *, skip: bool = True) -> str:
        if self.status == "T":
            self.status = "E"
        self.skipping = skip
        return "E"

    def end(self) -> str:
        if self.status != "T":
            self.portals.clear()
        return "Z"

    # --- messages

    def parse(self, name: str, text: str) -> str:
        if not name:
            self._drop("")
        if ";" in text or name in self.statements:
            return self.error()
        self.statements[name] = text
        return "1"

    def _drop(self, name: str) -> None:
        gone = self.statements.pop(name, None)
        if gone is not None:
            self.portals = {key: one for key, one in self.portals.items() if one.source != name}

    def bind(self, portal: str, name: str) -> str:
        if name not in self.statements:
            return self.error()
        if portal and portal in self.portals:
            return self.error()
        self.portals[portal] = Portal(self.statements[name], name)
        return "2"

    def describe(self, kind: str, name: str) -> str:
        known: Any = self.statements if kind == "S" else self.portals
        if name not in known:
            return self.error()
        text = known[name] if kind == "S" else known[name].text
        if kind == "P" and known[name].begun and not known[name].failed:
            return "T" if text in WITH_ROWS else "n"
        if text:
            if self.status == "E" and text not in ("rollback", "commit"):
                return self.error()
            if text == "fail":
                return self.error()
        return ("t" if kind == "S" else "") + ("T" if text in WITH_ROWS else "n")

    def execute(self, name: str, most: int) -> str:
        if name not in self.portals:
            return self.error()
        one = self.portals[name]
        if not one.text:
            return "I"
        first, one.begun = not one.begun, True
        if first:
            if self.run(one.text) == "E":
                one.failed = True
                return self.error()
        elif one.failed or self.status == "E":
            return self.error()
        if one.text not in WITH_ROWS:
            if not first:
                return self.error()
            return "CS" if one.text == "set x" else "C"
        left = 0 if one.done else WITH_ROWS[one.text] - one.sent
        rows = min(left, most) if most else left
        one.sent += rows
        if rows < left:
            return "D" * rows + "s"
        one.done = True
        return "D" * rows + "C"

    def query(self, text: str) -> str:
        self._drop("")
        self.portals.pop("", None)
        answer = "" if text.strip() else "I"
        for part in [part.strip() for part in text.split(";") if part.strip()]:
            if self.run(part) == "E":
                answer += self.error(skip=False)
                break
            if part.startswith("rows"):
                answer += "T" + "D" * int(part.split()[1]) + "C"
            else:
                answer += "CS" if part == "set x" else "C"
        return answer + self.end()


def machine(doors: Doors) -> type[RuleBasedStateMachine]:
    """The rules, on a server that runs."""

    class Orders(RuleBasedStateMachine):
        @initialize()
        def connect(self) -> None:
            doors.log.runs.clear()
            doors.log.describes.clear()
            self.models = []
            for _ in range(2):
                client = doors.client()
                self.models.append(Model(client, doors.log.numbers[-1]))

        def _send(self, one: Model, sent: bytes, answer: str) -> None:
            one.client.send(sent)
            one.owed += answer

        def _flushed(self, one: Model) -> None:
            found = "".join(one.client.read().kind for _ in one.owed)
            assert found == one.owed
            one.owed = ""
            assert sum(number == one.number for number, _, _ in doors.log.runs) == one.runs

        @rule(which=st.integers(0, 1), name=NAMES, text=TEXTS)
        def parse(self, which: int, name: str, text: str) -> None:
            one = self.models[which]
            self._send(one, raw.parse(text, name), "" if one.skipping else one.parse(name, text))

        @rule(which=st.integers(0, 1), portal=NAMES, name=NAMES)
        def bind(self, which: int, portal: str, name: str) -> None:
            one = self.models[which]
            self._send(one, raw.bind(portal, name), "" if one.skipping else one.bind(portal, name))

        @rule(which=st.integers(0, 1), kind=st.sampled_from("SP"), name=NAMES)
        def describe(self, which: int, kind: str, name: str) -> None:
            one = self.models[which]
            before = one.runs
            self._send(one, raw.describe(kind, name), "" if one.skipping else one.describe(kind, name))
            assert one.runs == before

        @rule(which=st.integers(0, 1), name=NAMES, most=COUNTS)
        def execute(self, which: int, name: str, most: int) -> None:
            one = self.models[which]
            self._send(one, raw.execute(name, most), "" if one.skipping else one.execute(name, most))

        @rule(which=st.integers(0, 1), name=NAMES, texts=st.sampled_from(["rows 3", "rows 0"]), most=COUNTS)
        def fetch(self, which: int, name: str, texts: str, most: int) -> None:
            """What most clients do, in one go."""
            self.parse(which, name, texts)
            self.bind(which, name, name)
            self.execute(which, name, most)

        @rule(which=st.integers(0, 1), kind=st.sampled_from("SP"), name=NAMES)
        def close(self, which: int, kind: str, name: str) -> None:
            one = self.models[which]
            if not one.skipping:
                if kind == "S":
                    one._drop(name)
                else:
                    one.portals.pop(name, None)
            self._send(one, raw.close(kind, name), "" if one.skipping else "3")

        @rule(which=st.integers(0, 1), sent=st.sampled_from([b"d", b"c", b"f"]))
        def copied_data(self, which: int, sent: bytes) -> None:
            self._send(self.models[which], raw.packed(sent.decode(), b"x\0"), "")

        @rule(which=st.integers(0, 1))
        def broken(self, which: int) -> None:
            one = self.models[which]
            self._send(one, raw.packed("B", b"\0"), "" if one.skipping else one.error())

        @precondition(lambda self: any(not one.skipping for one in self.models))
        @rule(which=st.integers(0, 1), text=TEXTS)
        def query(self, which: int, text: str) -> None:
            one = self.models[which]
            if not one.skipping:
                self._send(one, raw.query(text), one.query(text))
                self._flushed(one)

        @rule(which=st.integers(0, 1))
        def flush(self, which: int) -> None:
            self._send(self.models[which], raw.FLUSH, "")
            if not self.models[which].skipping:
                self._flushed(self.models[which])

        @rule(which=st.integers(0, 1))
        def sync(self, which: int) -> None:
            one = self.models[which]
            one.skipping = False
            self._send(one, raw.SYNC, one.end())
            self._flushed(one)

        def teardown(self) -> None:
            for one in getattr(self, "models", ()):
                one.skipping = False
                self._send(one, raw.SYNC, one.end())
                self._flushed(one)
                one.client.send(raw.TERMINATE)
                one.client.close()

    return Orders


@pytest.fixture
def doors(tmp_path: Path, clinic: Clinic) -> Iterator[Doors]:
    with wire(Accounts(clinic.store, lambda: clinic.time)) as running:
        yield Doors(running, clinic)


def _run(doors: Doors, examples: int) -> None:
    given = settings(max_examples=examples, stateful_step_count=30, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(machine(doors), settings=given)


@pytest.mark.slow
def test_any_order_of_messages(doors: Doors) -> None:
    _run(doors, 30)


@pytest.mark.slow
def test_any_order_of_messages_for_longer(doors: Doors) -> None:
    _run(doors, 1000)
