"""A gateway under load while its processes are killed: nothing is lost, and nothing is charged twice.

Clients ask new questions and old ones, each with a key, and retry until they have an answer or a final error.
Meanwhile a process of the gateway, chosen at random, gets kill -9 every few seconds, and the pair is replaced now and
then. At the end the ledger is verified, and compared with what the clients were told.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from bench import report
from bench.gateway import gateways
from bench.gateway.timing import write_visits
from discreet.ledger import Ledger

CLIENTS, PAUSE, SLOT = 4, 20.0, 1.0
FINAL = (200, 504)
"""An answer, or that it is late: both are the last word on a key."""


class Caller(threading.Thread):
    """One client, with its own account."""

    def __init__(self, desk: gateways.Desk, name: str, stop: threading.Event) -> None:
        super().__init__()
        self.account, self._desk, self._ended = name, desk, stop
        self._token = desk.token(name, epsilon=20_000)
        self.told: dict[str, tuple[int, bytes]] = {}
        self.asked: dict[str, str] = {}
        self.retries = 0
        self.wrong: list[str] = []

    def run(self) -> None:
        number = 0
        while not self._ended.is_set():
            known = random.random() < 0.3 and self.told
            key = random.choice(list(self.told)) if known else f"{self.account}-{number}"
            number += not known
            limit = self.asked.setdefault(key, str(100 + number))
            reply = self._ask(key, f"SELECT city, COUNT(*) AS n FROM visits WHERE cost <= {limit} GROUP BY city")
            if reply is not None and self.told.setdefault(key, reply) != reply:
                self.wrong.append(key)

    def _ask(self, key: str, sql: str) -> tuple[int, bytes] | None:
        """The last word on a question, however often it takes. None if the soak ends before."""
        end = time.monotonic() + 120
        while time.monotonic() < end:
            client = gateways.Client(self._desk.url, self._token)
            try:
                status, body = client.send("POST", "/v1/questions", {"sql": sql, "epsilon": 1, "key": key})
            except OSError:
                status, body = 0, b""
            finally:
                client.close()
            if status in FINAL:
                return status, body
            self.retries += 1
            time.sleep(0.2)
        self.wrong.append(f"{key}: no answer for two minutes")
        return None


def processes(pid: int) -> list[int]:
    """The processes below one."""
    found, children = [], Path(f"/proc/{pid}/task/{pid}/children")
    for child in children.read_text().split() if children.exists() else ():
        found += [int(child), *processes(int(child))]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    minutes = parser.parse_args().minutes
    report.section(
        "A gateway whose processes are killed",
        "gateway.soak",
        f"""{minutes:g} minutes, {CLIENTS} clients, slots of {SLOT:g} s; every {PAUSE:g} s one process of the gateway
        gets kill -9, or the pair is replaced (SIGHUP). {report.machine()}.""",
    )
    done: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = folder / "visits.parquet"
        write_visits(source, person=False, rows=30_000)
        more = f'answer_after = "{SLOT}s"\nlanes = 2\nlate_allowed = 1000'
        with gateways.gateway(folder / "gateway", source, more) as desk:
            stop = threading.Event()
            callers = [Caller(desk, f"client{number}", stop) for number in range(CLIENTS)]
            for caller in callers:
                caller.start()
            end = time.monotonic() + 60 * minutes
            while time.monotonic() < end:
                time.sleep(PAUSE)
                if random.random() < 0.1:
                    os.kill(desk.pid, signal.SIGHUP)
                    done["replacements of the pair"] += 1
                elif below := processes(desk.pid):
                    try:
                        os.kill(random.choice(below), signal.SIGKILL)
                        done["processes killed"] += 1
                    except ProcessLookupError:
                        pass
            stop.set()
            for caller in callers:
                caller.join()
        ledger = Ledger.open(folder / "gateway" / "clinic.ledger")
        entries = ledger.verify()
        charges = [entry for entry in ledger.entries() if entry.kind == "charge"]
        charged = Counter((entry.analyst, entry.key) for entry in charges)
        paid = {(entry.analyst, entry.receipt) for entry in charges if entry.state == "answered"}
    told = {(caller.account, key): reply for caller in callers for key, reply in caller.told.items()}
    receipts = Counter(json.loads(body)["receipt"] for status, body in told.values() if status == 200)
    report.table("what", "number")
    for what, number in (
        *done.items(),
        ("questions with an answer", sum(status == 200 for status, _ in told.values())),
        ("questions that were late", sum(status == 504 for status, _ in told.values())),
        ("requests that had to be sent again", sum(caller.retries for caller in callers)),
        ("entries of the ledger, verified", entries),
    ):
        report.line(what, f"{number:,}")
    twice = [one for one, count in charged.items() if one[1] is not None and count > 1]
    answered = [(name, json.loads(body)["receipt"]) for (name, _), (status, body) in told.items() if status == 200]
    unpaid = [one for one in answered if one not in paid]
    goals = {
        "no key is charged twice": not twice,
        "no answer without a charge": not unpaid,
        "one key always has the same reply": not any(caller.wrong for caller in callers),
        "no two questions share a receipt": all(count == 1 for count in receipts.values()),
    }
    report.verdict(goals)
    sys.exit(0 if all(goals.values()) else 1)


if __name__ == "__main__":
    main()
