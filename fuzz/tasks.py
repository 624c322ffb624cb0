"""Files that others write and we act on: what a device is asked in a survey or a poll, plans, and published proofs.

A task is refused with an error of ours, or it is the very bytes that we would write for it. Then it keeps its promise,
and a device can answer it. A device in JavaScript answers whatever Python accepts; its errors never hold the answer. A
plan is refused or read without touching data or ledger. A changed publication is not what the ledger says, and nothing
is charged for looking.
"""

from __future__ import annotations

import base64
import json
import select
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st

import discreet as dp
from discreet.publication.plan import PublicationPlan, load_plan
from discreet.publication.publishing import publish
from discreet.publication.verifying import verify_publication
from discreet.shuffle.channel import keys
from discreet.shuffle.channel.task import Task
from fuzz.changes import byte_changes, picked, text_changes
from fuzz.oracle import Broken, attempt, label, within, words_of

SECONDS = 30
ROOT = Path(__file__).resolve().parents[1]
BUILT = ROOT / "clients" / "js" / "dist"
"""The package for devices; where it is not built, or Node is missing, only Python reads the tasks."""
ANSWER = "canary7c1e"
_WORDS = (
    *("epsilon", "delta", "survey", "oracle", "odds", "size", "choices", "kind", "method", "mean", "rows", "columns"),
    *("0", "1", "-1", "2", "1e308", "1e-308", "1e999", "9007199254740993", "null", "true", "[]", "{}", '""', "NaN"),
    *('{"fraction":["1","3"]}', '{"fraction":["1","0"]}', '"__proto__"', '"direct"', '"hashing"', '"hadamard"'),
    *("tables", "cubes", "synthetic", "tries", "bins", "at_least", "2024-01-01", "inf", "anyway", "minimum", "honest"),
)
_PLAN = """
title = "Visits"
publisher = "The clinic"
policy = "clinic.toml"
[tables.by_city]
sql = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
epsilon = 1
[cubes.city_sex]
table = "visits"
by = ["city", "sex"]
epsilon = 1
[synthetic.people]
table = "visits"
columns = ["city", "sex"]
epsilon = 2
delta = 1e-6
candidates = [{rounds = 1}]
never = [{city = ["Haifa"], sex = ["f"]}]
criteria = [{kind = "marginals", ways = 1, at_most = 0.5}]
"""
_PUBLISHED = """
title = "Visits"
policy = "clinic.toml"
[tables.by_city]
sql = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
epsilon = 1
"""
_POLICY = """
[ledger]
path = "clinic.ledger"
epsilon = 10
[unit]
person = "id"
[tables.visits]
source = "visits.csv"
rows_per_person = 2
[tables.visits.columns.city]
choices = ["Haifa", "Koper"]
"""
_READ = ("survey", "poll", "toml", "plan")
"""Kinds of input; any other is the name of a published file."""


class Input(NamedTuple):
    """Bytes of one kind: a survey, a poll, a poll's file, a plan, or a file of a publication."""

    kind: str
    content: bytes


class Tasks:
    """Tasks, plans and one publication as they are written; and a device in JavaScript, where it is built."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._device = folder, _Device() if (BUILT / "all.js").exists() and shutil.which("node") else None
        surveys = [
            dp.local.survey(choices=["yes", "no", ANSWER], epsilon=1),
            dp.local.survey(choices=[ANSWER, *map(str, range(40))], epsilon=0.5),
            dp.local.survey(domain="strings", epsilon=2),
            dp.local.mean(between=(0, 100), epsilon=1),
            dp.local.repeated(dp.local.survey(choices=["a", ANSWER], epsilon=1), memory={}),
            dp.local.rows({"city": ["a", ANSWER], "age": (0, 120)}, epsilon=2),
        ]
        promise = {"epsilon": 2, "delta": 1e-5}
        polls = [
            dp.shuffle.histogram(choices=["a", "b", ANSWER], clients=2000, **promise),
            dp.shuffle.bit_sum(clients=2000, **promise),
        ]
        tasks = [_task(one, promise) for one in polls]
        for number, task in enumerate(tasks):
            task.save(folder / f"{number}.toml")
        self._published = self._publish()
        self.seeds: list[Input] = [
            *(Input("survey", dp.local.task(one)) for one in surveys),
            *(Input("poll", one.canonical) for one in tasks),
            *(Input("toml", (folder / f"{number}.toml").read_bytes()) for number in range(len(tasks))),
            Input("plan", _PLAN.encode()),
            *(Input(path.name, path.read_bytes()) for path in sorted(self._published.iterdir())),
        ]
        self._sound = {one.kind: one.content for one in self.seeds if one.kind not in _READ}

    def _publish(self) -> Path:
        """A small publication, whose files are then changed."""
        here = self._folder
        rows = "".join(f"{number // 2},{'Haifa' if number % 3 else 'Koper'}\n" for number in range(60))
        (here / "visits.csv").write_text(f"id,city\n{rows}")
        (here / "clinic.toml").write_text(_POLICY)
        (here / "plan.toml").write_text(_PUBLISHED)
        publish(here / "plan.toml", here / "out")
        self._ledger = (here / "clinic.ledger").read_bytes()
        return here / "out"

    def inputs(self) -> st.SearchStrategy[Input]:
        """Seeds with bytes or words changed."""
        texts = tuple(one.content.decode("utf-8", "replace") for one in self.seeds if one.kind in _READ)

        @st.composite
        def changed(draw: Any) -> Input:
            one = draw(picked(self.seeds))
            if one.kind in _READ and draw(st.booleans()):
                own = one.content.decode("utf-8", "replace")
                return Input(one.kind, draw(text_changes((own, own, own, *texts), _WORDS)).encode("utf-8", "replace"))
            return Input(one.kind, draw(byte_changes(st.just(one.content))))

        return changed()

    def check(self, one: Input) -> str:
        """Read it as those do to whom it is sent."""
        with within(SECONDS):
            match one.kind:
                case "survey":
                    said = self._survey(one.content)
                case "poll" | "toml":
                    said = self._poll(one)
                case "plan":
                    said = self._plan(one.content)
                case _:
                    said = self._verified(one)
        return f"{one.kind}: {said}"

    def _survey(self, content: bytes) -> str:
        made, error = attempt(lambda: dp.local.from_task(content, memory={}))
        if made is not None:
            if dp.local.task(made) != content:
                raise Broken("a survey is read as another one")
            kind = json.loads(content)["survey"]["kind"]
            self._answered("survey", made.encode, content, _answer_to(kind, json.loads(content)["survey"]))
        else:
            self._device_refuses("survey", content)
        return label(error)

    def _poll(self, one: Input) -> str:
        path = self._folder / "task.toml"
        path.write_bytes(one.content)
        made, error = attempt(lambda: Task.load(path) if one.kind == "toml" else Task.from_bytes(one.content))
        if made is None:
            if one.kind == "poll":
                self._device_refuses("poll", one.content)
            return label(error)
        if one.kind == "poll" and made.canonical != one.content:
            raise Broken("a poll is read as another one")
        if made.hash != Task.from_bytes(made.canonical).hash:
            raise Broken("one poll has two names")
        answers = made.description.get("choices") or [1]
        self._answered("poll", made.protocol.encode, made.canonical, answers[0])
        return label(error)

    def _answered(self, kind: str, encode: Any, content: bytes, answer: Any) -> None:
        """What is accepted can be answered, by a device in JavaScript as well."""
        _, error = attempt(lambda: encode(answer))
        if error is not None:
            raise Broken(f"a {kind} is accepted and cannot be answered", words_of(error))
        if self._device is not None and isinstance(answer, str | int | float | dict):
            said = self._device.said(kind, content, answer)
            if "error" in said and said["code"] != "not-supported":
                raise Broken(f"a device does not answer a {kind} that Python accepts", said)

    def _device_refuses(self, kind: str, content: bytes) -> None:
        """A device cannot check every task, but it ends, and its errors do not hold the answer."""
        if self._device is not None:
            said = self._device.said(kind, content, ANSWER)
            if ANSWER in said.get("message", "") and ANSWER.encode() not in content:
                raise Broken("an error of a device holds the answer", said)

    def _plan(self, content: bytes) -> str:
        path = self._folder / "tried.toml"
        path.write_bytes(content)
        before = sorted(self._folder.iterdir())
        made, error = attempt(lambda: load_plan(path))
        if made is not None and not (isinstance(made, PublicationPlan) and made.parts and len(made.digest) == 64):
            raise Broken("a plan without parts is read")
        if sorted(self._folder.iterdir()) != before or (self._folder / "clinic.ledger").read_bytes() != self._ledger:
            raise Broken("reading a plan changes files")
        return label(error)

    def _verified(self, one: Input) -> str:
        """A publication in which one file is changed."""
        file = self._published / one.kind
        file.write_bytes(one.content)
        try:
            checked, error = attempt(lambda: verify_publication(self._published, self._folder / "clinic.ledger"))
        finally:
            file.write_bytes(self._sound[one.kind])
        if (self._folder / "clinic.ledger").read_bytes() != self._ledger:
            raise Broken("verifying changes the ledger")
        changed = one.content != self._sound[one.kind]
        if checked is not None and checked.holds == changed:
            raise Broken(f"a publication whose {one.kind} is {'changed' if changed else 'sound'} is judged wrongly")
        return label(error, "holds" if checked is not None and checked.holds else "does not hold")

    def close(self) -> None:
        """End the device."""
        if self._device is not None:
            self._device.close()


class _Device:
    """Node, reading one task after another."""

    def __init__(self) -> None:
        command = ["node", str(Path(__file__).with_name("tasks.mjs")), str(BUILT)]
        self._node = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def said(self, kind: str, content: bytes, value: Any) -> dict[str, Any]:
        """What it says to an answer."""
        assert self._node.stdin is not None
        assert self._node.stdout is not None
        task = base64.b64encode(content).decode()
        self._node.stdin.write(json.dumps({"kind": kind, "task": task, "value": value}) + "\n")
        self._node.stdin.flush()
        if not select.select([self._node.stdout], [], [], SECONDS)[0]:
            self.close()
            self.__init__()  # type: ignore[misc]
            raise Broken(f"a device never answers a {kind}")
        line = self._node.stdout.readline()
        if not line:
            self.close()
            self.__init__()  # type: ignore[misc]
            raise Broken(f"a device ends at a {kind}")
        found: dict[str, Any] = json.loads(line)
        return found

    def close(self) -> None:
        """End it."""
        self._node.kill()
        self._node.communicate()


def _task(poll: Any, promise: dict[str, float]) -> Task:
    own = [keys.public_of(keys.random_bytes(32)) for _ in range(2)]
    return Task(description=poll.described(), **promise, shuffler_key=own[0], analyzer_key=own[1])


def _answer_to(kind: str, survey: dict[str, Any]) -> Any:
    """A sound answer."""
    match kind:
        case "choices":
            return survey["choices"][0]
        case "text" | "sketch" | "prefixes":
            return ANSWER
        case "rows":
            return {name: _answer_to(one["kind"], one) for name, one in survey["columns"]}
    return 1
