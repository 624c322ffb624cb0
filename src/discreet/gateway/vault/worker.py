"""A process of the vault that plans or answers. It reads requests from a socket, one after the other.

There are two kinds. A *lane* has the data, and answers charged questions. A *reader* has the same tables without a
private row: it plans, explains, and finds answers that were bought before. How long it takes depends on nobody.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from discreet.datasets.connect import connect, open_engine, schema_of
from discreet.datasets.database import Database
from discreet.datasets.policy import Policy, policy_in
from discreet.datasets.prepared import Prepared
from discreet.engines.duckdb.engine import memory_in_bytes
from discreet.engines.engine import Engine
from discreet.errors import BudgetExhausted, DiscreetError, EngineFailed
from discreet.gateway.formats import TYPES, answer_format, facts_beside
from discreet.gateway.frames import Frame, packed, receive, refusal, replied
from discreet.gateway.isolation import harden
from discreet.gateway.vault.planning import LEFT, OWES, planned
from discreet.gateway.vault.snapshot import named, published
from discreet.guarantees.guarantee import Guarantee
from discreet.ledger import Ledger
from discreet.ledger.stores.store import IN_MEMORY
from discreet.ledger.texts.record import to_text
from discreet.ledger.views import NotBought, Replays, Watched

ROOM = 2**30
"""The memory of a lane for what Python does with the results of its engine, beyond twice `lane_memory`."""
_PER_THREAD = 80 * 2**20
"""What one thread reserves: its stack, and an arena of the allocator."""


class Worker:
    """One open database, seen by one analyst after the other."""

    def __init__(self, link: socket.socket, kind: str, opening: Mapping[str, Any]) -> None:
        self.link = link
        policy = policy_in(opening["policy"], opening["folder"])
        engine = _opened(policy, opening)
        policy = named(policy, opening["version"])
        self._has_rows = kind == "lane"
        schema = schema_of(policy, engine)
        if not self._has_rows:
            public = {name for name, table in schema.tables.items() if table.public}
            engine = without_private_rows(engine, public)
        view = Watched if self._has_rows else Replays
        self.ledger: Ledger = view.open(policy.ledger, protects=policy.unit)  # the vault has created it
        self.database = Database(
            schema,
            engine,
            self.ledger,
            delta_per_question=policy.delta_per_question,
            policy=policy.public_text(),
            rules=policy.answers,
        )
        self._seen: dict[tuple[str, tuple[str, ...], bool], Database] = {}
        self._prepared: dict[str, Prepared] = {}
        self._until: dict[str, int] = {}
        """Of each account, entries after this one are not found."""
        self._as_of: int | None = None
        """What remains is what remained after this entry."""
        warm_up(in_slots=bool(opening.get("slots")))
        if opening.get("memory") and sys.platform == "linux":
            limit_memory(memory_in_bytes(opening["memory"]), opening["threads"])

    def run(self) -> None:
        """Serve until the vault closes the socket."""
        while (frame := receive(self.link)) is not None:
            header, given = frame.header, dict(frame.header.get("given") or {})
            try:
                self._until, self._as_of = given.pop("until", {}), given.pop("as_of", None)
                reply = getattr(self, f"do_{header['verb']}")(**given)
            except DiscreetError as error:
                # whether an engine with private rows fails may depend on them: it is said at the end of the slot
                failed = self._has_rows and isinstance(error, EngineFailed)
                reply = Frame({"ok": False, "failed": True}) if failed else refusal(error, given.get("sql"))
            except Exception:  # its message could quote a value
                reply = Frame({"ok": False, "failed": True})
            if reply is not None:
                self.link.sendall(replied(reply, header["id"]))

    def do_ask(
        self,
        sql: str,
        options: dict[str, Any],
        analyst: str,
        form: str,
        key: str | None = None,
        others: list[str] | None = None,
        spends: bool = True,
    ) -> Frame:
        """Answer a question. In a reader, only one that was bought before; otherwise say what it would cost. Without
        `spends`, nothing is said about what remains.
        """
        begun = time.process_time()
        asked = self._prepared.pop(prepared_name(analyst, sql, options), None)
        if asked is None:
            asked = self._prepare(sql, options, self._database(analyst, others or (), spends=spends))
        ledger = asked.planner.ledger
        if isinstance(ledger, Watched):
            ledger.until, ledger.as_of = self._until, self._as_of
        if not isinstance(ledger, Replays):
            return self._answer(asked, key, form, options)
        owed = asked.owed(key=key)
        if not owed or asked.finds_bounds:
            ledger.found_elsewhere = False
            with contextlib.suppress(NotBought, BudgetExhausted):
                return self._answer(asked, key, form, options)
        if others:  # whoever buys anything pays for all of it: a lane finds only what they bought themselves
            asked = self._prepare(sql, options, self._database(analyst))
            owed = asked.owed(key=key)
        costs: dict[str, Any] = {"owed": [to_text(cost) for cost in owed], "epsilon": str(asked.epsilon_of(owed))}
        costs["name"] = asked.fingerprint(sql)
        charged = asked.planner.ledger
        costs["within"] = [list(charged._parts), charged._division]
        if spends:
            costs["exceeds"] = _refusal_of(charged, owed)
        return Frame({"ok": True, "bought": False, **costs, "planned": time.process_time() - begun})

    @staticmethod
    def _answer(asked: Prepared, key: str | None, form: str, options: Mapping[str, Any]) -> Frame:
        answer, ledger = asked.answer(key=key), asked.planner.ledger
        own = not (isinstance(ledger, Replays) and ledger.found_elsewhere)
        answer.release = replace(answer.release, left_now=not own)
        kind, body = answer_format(answer, form, options.get("confidence", 0.95))
        said = {"ok": True, "type": kind, "receipt": answer.receipt, "own": own, "derived": bool(answer.derived_from)}
        said |= {"beside": facts_beside(answer)} if form == "csv" else {}
        if not isinstance(ledger, Replays):
            said[LEFT] = None if answer.remaining is None else to_text(answer.remaining)
        return Frame(said, body)

    def do_prepare(self, sql: str, options: dict[str, Any], analyst: str, **_: Any) -> None:
        """Plan a question that is likely to be asked next. There is no reply."""
        self._prepared.clear()
        with contextlib.suppress(Exception):  # it is said when it is asked
            asked = self._prepare(sql, options, self._database(analyst))
            asked.owed()  # what it looks up and names is remembered
            self._prepared[prepared_name(analyst, sql, options)] = asked

    def _prepare(self, sql: str, options: Mapping[str, Any], database: Database) -> Prepared:
        """A question with its plan, in the parts that its options name."""
        return self._in_parts(database, options).prepare(sql, **without_parts(options))

    def _in_parts(self, database: Database, options: Mapping[str, Any]) -> Database:
        """The same tables, of which only the rows in the parts of a question count. Its ledger is made from that of the
        database, as it is now.
        """
        return database.part(*options["parts"]) if options.get("parts") else database

    def do_ready(self) -> Frame:
        """Say that what was told before is done."""
        return Frame({"ok": True})

    def do_plan(
        self,
        sql: str,
        options: dict[str, Any],
        analyst: str,
        spends: bool,
        others: list[str] | None = None,
        finds: bool = True,
    ) -> Frame:
        """Explain a question, and if it `finds` answers, say whether it was bought. Of a refused one, say what to ask
        instead.
        """
        database = self._in_parts(self._database(analyst, others or (), spends=spends), options)
        plan = planned(database, sql, without_parts(options), finds=finds)
        owes = plan.pop(OWES)
        found = _json(plan)
        return Frame({**found.header, OWES: owes}, found.body)

    def do_describe(self, sql: str, analyst: str, spends: bool) -> Frame:
        """The columns that an answer would have, without an ε."""
        return _json({"columns": [vars(column) for column in self._database(analyst, spends=spends).describe(sql)]})

    def do_tables(self, analyst: str, spends: bool, near: str = "") -> Frame:
        """What may be asked. `near` says which limit leaves less than the account."""
        found = self._database(analyst, spends=spends).tables.as_json()
        return _json({**found, "remains": f"{found['remains']}{near}"})

    def _database(self, analyst: str, others: Any = (), *, spends: bool = True) -> Database:
        """The database as an analyst sees it. The ledger of a lane says what it is about to charge."""
        seen = (analyst, tuple(others), spends)
        if seen not in self._seen:
            ledger = self.ledger.for_analyst(analyst) if analyst else self.ledger
            if isinstance(ledger, Watched):
                ledger.told = self._tell
            if isinstance(ledger, Replays):
                ledger = ledger.read_by(others, spends=spends)
            self._seen[seen] = self.database.seen_by(ledger)
        found = self._seen[seen]
        if isinstance(found.ledger, Replays):
            found.ledger.until, found.ledger.as_of = self._until, self._as_of
        return found

    def _tell(self, key: str | None, identity: str | None) -> None:
        """Say what is about to be charged, and wait until it may be."""
        self.link.sendall(packed({"charging": [key, identity]}))
        reply = receive(self.link)
        if reply is None or reply.header.get("allowed") is not True:
            raise NotBought("This was refused before it was charged.")


def _refusal_of(ledger: Ledger, owed: Sequence[Guarantee]) -> dict[str, Any] | None:
    """How the ledger would refuse all that is owed: in the words of a plan, and before anybody is asked to approve it.
    None if it fits.
    """
    try:
        ledger.after(*owed)
    except BudgetExhausted as refused:
        return refusal(refused).header
    return None


def _opened(policy: Policy, opening: Mapping[str, Any]) -> Engine:
    """The engine on the published sources, with the memory and the threads of one lane."""
    version = opening["version"]
    place = published(policy, version, opening["copies"], [version])  # by the vault
    if place.engine.kind == "duckdb":
        own = {name: opening[name] for name in ("memory", "threads") if opening.get(name)}
        place = replace(place, engine=replace(place.engine, **own))
    return open_engine(place)


def limit_memory(engine: int, threads: int) -> None:
    """Let this process reserve no more than its engine, its threads and some room need, beyond what it has by now. A
    question that needs more fails, and the machine stays usable for others. What a process reserves before it reads a
    row depends on the machine: 2.6 GiB with two cores.
    """
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    most = held + 2 * engine + threads * _PER_THREAD + ROOM
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def without_parts(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `Database.sql`."""
    return {name: value for name, value in options.items() if name != "parts"}


def prepared_name(analyst: str, sql: str, options: Mapping[str, Any]) -> str:
    """One name for a question with its options."""
    return json.dumps([analyst, sql, dict(options)], sort_keys=True)


def warm_up(*, in_slots: bool = False) -> None:
    """Answer a question about nobody, so that the first answer takes no longer than others. With `in_slots` the first
    plan must not take longer either: with δ it weighs two noises, for which libraries are loaded.
    """
    table = {
        "visits": {
            "source": {"id": [1, 2], "cost": [1.0, 2.0]},
            "rows_per_person": 1,
            "columns": {"id": {"type": "integer"}, "cost": {"between": [0, 10]}},
        }
    }
    delta: dict[str, Any] = {"delta": 1e-6} if in_slots else {}
    policy = {"ledger": {"path": IN_MEMORY, "epsilon": 10} | delta, "unit": {"person": "id"}, "tables": table}
    with contextlib.closing(connect(policy)) as database:
        answer = database.sql("SELECT COUNT(*) AS n, AVG(cost) AS c FROM visits", epsilon=1, **delta)
        for form in TYPES:
            answer_format(answer, form, 0.95)


def without_private_rows(engine: Engine, public: set[str]) -> Engine:
    """The same tables: public ones as they are, all others without a row."""
    blank = engine.blank()
    blank.relations = {
        name: engine.relations[name] if name in public else relation for name, relation in blank.relations.items()
    }
    return blank


def _json(content: Any) -> Frame:
    text = json.dumps(content, ensure_ascii=False, default=str)
    return Frame({"ok": True, "type": "application/json"}, text.encode())


class WithoutPandas:
    """An importer that finds no pandas. Arrow imports it to read any list, and nobody passes data frames to a worker:
    without it, a worker starts in a third less time and needs less memory.
    """

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Nothing: other importers are asked, but not for pandas."""
        if name == "pandas":
            raise ModuleNotFoundError("A worker does not use pandas.", name=name)


def main() -> None:
    """Serve the socket that the vault passed as the only argument, after its first frame says what to open."""
    harden()
    sys.meta_path.insert(0, WithoutPandas)
    link = socket.socket(fileno=int(sys.argv[1]))
    if sys.argv[2] == "lane":
        os.nice(19)  # free requests should not feel what a lane does
    opening = receive(link)
    if opening is None:
        return
    try:
        worker = Worker(link, sys.argv[2], opening.header)
    except DiscreetError as error:
        link.sendall(packed(refusal(error).header))
        return
    link.sendall(packed({"ok": True, "id": 0}))
    worker.run()


if __name__ == "__main__":
    main()
