"""Whether time tells about a person: answers with and without one person who has 200,000 of 500,000 rows.

Two gateways run on neighboring tables. Questions go to one or the other, over HTTP or over the protocol of PostgreSQL,
in random order, each one new and charged. The area under the curve (AUC) is how often a longer time is with that
person: one half if time tells nothing. The check fails if the 99% interval of an AUC does not hold one half. With
`answer_after = 0` it must tell the tables apart: otherwise it could not have seen anything.

Two processes are never equally fast, even with the same data. So free requests are compared with those of the same
gateway while it has nothing to do: what is timed is by how much they are slower during a question.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import math
import random
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import psycopg

from bench import report
from bench.gateway import gateways

DOORS = ("HTTP", "PostgreSQL")
ROWS, PERSON = 300_000, 200_000
QUESTION = "SELECT city, COUNT(*) AS n, AVG(cost) AS c FROM visits WHERE cost <= {limit} GROUP BY city"
LENGTH = 2.0
"""Seconds after which answers leave: several times what they take."""
Z = 2.576
"""A 99% interval."""


def write_visits(path: Path, *, person: bool, rows: int = ROWS) -> None:
    """Visits of many people, and of one who has very many."""
    import duckdb

    more = f"UNION ALL SELECT 999999 AS id, 'a' AS city, (i % 100)::DOUBLE AS cost FROM range({PERSON}) t(i)"
    duckdb.execute(
        f"""COPY (SELECT i // 3 AS id, ['a', 'b', 'c'][1 + i % 3] AS city, (hash(i) % 100)::DOUBLE AS cost
                  FROM range({rows}) t(i) {more if person else ""}) TO '{path}'"""
    )


def area(without: list[float], with_person: list[float]) -> tuple[float, float]:
    """The AUC, and half of its 99% interval (Hanley and McNeil 1982)."""
    a, b = np.asarray(without), np.asarray(with_person)
    found = float(np.mean(b[:, None] > a[None, :]) + 0.5 * np.mean(b[:, None] == a[None, :]))
    q1, q2, n, m = found / (2 - found), 2 * found**2 / (1 + found), len(b), len(a)
    variance = (found * (1 - found) + (n - 1) * (q1 - found**2) + (m - 1) * (q2 - found**2)) / (n * m)
    return found, Z * math.sqrt(max(variance, 1 / (4 * n * m)))


class Pings:
    """Free requests, one after the other, while a question is answered: how long they take on average."""

    def __init__(self, client: gateways.Client) -> None:
        self._client, self._running, self._times = client, True, list[float]()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while self._running:
            self._times.append(gateways.timed(lambda: self._client.send("GET", "/v1/me")))

    def __enter__(self) -> Pings:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._running = False
        self._thread.join()

    @property
    def mean(self) -> float:
        return float(np.mean(self._times))


IDLE = 0.2
"""Seconds of free requests before each question, when the gateway has nothing to do."""


class Doors:
    """One gateway as an analyst reaches it: a connection for each protocol, and one more for free requests."""

    def __init__(self, desk: gateways.Desk) -> None:
        token = desk.token("ada")
        self._http, self.free = desk.connect(token), desk.connect(token)
        wire = f"postgresql://ada:{token}@{urlsplit(desk.postgres).netloc}/clinic"
        self._wire = psycopg.connect(wire, autocommit=True)

    def ask(self, door: str, sql: str) -> None:
        """A charged question through one of the doors."""
        if door == "PostgreSQL":
            self._wire.execute(f"/* epsilon=1 */ {sql}".encode()).fetchall()
        else:
            self._http.ask(sql, epsilon=1)

    def touch(self, door: str) -> None:
        """A free request, so that the connection is open and warm."""
        if door == "PostgreSQL":
            self._wire.execute("SELECT 1").fetchall()
        else:
            self._http.send("GET", "/v1/me")


def measure(folder: Path, more: str, pairs: int) -> dict[str, list[list[float]]]:
    """Times of answers through each door, and of free requests meanwhile: without and with the person."""
    times: dict[str, list[list[float]]] = {f"answers over {door}": [[], []] for door in DOORS}
    idle: list[list[float]] = [[], []]
    times["free requests meanwhile"] = [[], []]
    with contextlib.ExitStack() as stack:
        houses = []
        for there in (False, True):
            own = folder / f"{'with' if there else 'without'}-{abs(hash(more))}"
            own.mkdir(parents=True)
            write_visits(own / "visits.parquet", person=there)
            wire = 'postgres = "127.0.0.1:0"'
            houses.append(Doors(stack.enter_context(gateways.gateway(own, own / "visits.parquet", f"{wire}\n{more}"))))
        for warm, (door, house) in enumerate(itertools.product(DOORS * 2, houses)):
            house.ask(door, QUESTION.format(limit=200 + warm))
        order = [(person, door) for person in (0, 1) for door in DOORS for _ in range(pairs)]
        random.shuffle(order)
        for number, (person, door) in enumerate(order):
            house, question = houses[person], QUESTION.format(limit=300 + number)
            house.touch(door)
            with Pings(house.free) as before:
                time.sleep(IDLE)
            idle[person].append(before.mean)
            with Pings(house.free) as meanwhile:
                times[f"answers over {door}"][person].append(gateways.timed(partial(house.ask, door, question)))
            times["free requests meanwhile"][person].append(meanwhile.mean)
    usual = [float(np.mean(one)) for one in idle]
    found = [np.asarray(slower) - own for slower, own in zip(times["free requests meanwhile"], usual, strict=True)]
    times["free requests meanwhile"] = [one.tolist() for one in found]
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=100, help="questions through each door of the two gateways")
    pairs = parser.parse_args().pairs
    report.section(
        "Does time tell?",
        "gateway.timing",
        f"""{ROWS:,} rows, with and without one person of {PERSON:,}; {pairs} charged questions through each door of
        two gateways in random order on this machine, with free requests one after the other meanwhile: by how much
        they are slower than when the same gateway has nothing to do.
        The AUC is 50% if time tells nothing. {report.machine()}.""",
    )
    report.table("answers leave", "what is timed", "median without", "median with", "AUC", "99% interval")
    fine = {}
    with tempfile.TemporaryDirectory() as name:
        for more, leave in (("answer_after = 0", "when ready"), (f'answer_after = "{LENGTH}s"', f"after {LENGTH:g} s")):
            found = measure(Path(name), more, pairs)
            for what, (without, with_person) in found.items():
                auc, half = area(without, with_person)
                report.line(
                    leave,
                    what,
                    f"{1000 * float(np.median(without)):.2f} ms",
                    f"{1000 * float(np.median(with_person)):.2f} ms",
                    f"{auc:.1%}",
                    f"{max(0, auc - half):.1%} to {min(1, auc + half):.1%}",
                )
                if more == "answer_after = 0":
                    if what.startswith("answers"):
                        fine[f"without a deadline, {what} tell (AUC above 80%)"] = auc - half > 0.8
                else:
                    fine[f"with a deadline, {what} tell nothing"] = abs(auc - 0.5) <= half
    said = []
    for door in DOORS:
        answers = np.concatenate([np.asarray(one) for one in found[f"answers over {door}"]])
        spread = float(np.percentile(answers, 99) - np.percentile(answers, 1))
        said.append(f"{1000 * spread:.1f} ms of each other over {door}")
    report.notes(f"With a deadline, 98% of the answers leave within {' and '.join(said)}.")
    report.verdict(fine)
    sys.exit(0 if all(fine.values()) else 1)


if __name__ == "__main__":
    main()
