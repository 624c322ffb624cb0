"""Whether time tells about a person: answers over HTTP with and without one person who has 200,000 of 500,000 rows.

Two gateways run on neighboring tables. Questions go to one or the other in random order, each one new and charged. The
area under the curve (AUC) is how often a longer time is with that person: one half if time tells nothing. The check
fails if the 99% interval of an AUC does not hold one half. With `answer_after = 0` it must tell the tables apart:
otherwise it could not have seen anything.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import random
import sys
import tempfile
import threading
from functools import partial
from pathlib import Path

import gateways
import numpy as np
import report

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


def measure(folder: Path, more: str, pairs: int) -> tuple[dict[str, list[list[float]]], list[float]]:
    """Times of answers, and of free requests meanwhile, without and with the person."""
    answers: list[list[float]] = [[], []]
    pings: list[list[float]] = [[], []]
    with contextlib.ExitStack() as stack:
        clients, others = [], []
        for person in (False, True):
            own = folder / f"{'with' if person else 'without'}-{abs(hash(more))}"
            own.mkdir(parents=True)
            write_visits(own / "visits.parquet", person=person)
            desk = stack.enter_context(gateways.gateway(own, own / "visits.parquet", more))
            token = desk.token("ada")
            clients.append(desk.connect(token))
            others.append(desk.connect(token))
        for warm in range(3):
            for client in clients:
                client.ask(QUESTION.format(limit=200 + warm), epsilon=1)
        order = [person for person in (0, 1) for _ in range(pairs)]
        random.shuffle(order)
        for number, person in enumerate(order):
            client, question = clients[person], QUESTION.format(limit=300 + number)
            clients[person].send("GET", "/v1/me")  # the connection is open
            with Pings(others[person]) as meanwhile:
                answers[person].append(gateways.timed(partial(client.ask, question, epsilon=1)))
            pings[person].append(meanwhile.mean)
    return {"answers": answers, "free requests meanwhile": pings}, [one for two in answers for one in two]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=100, help="questions to each of the two gateways")
    pairs = parser.parse_args().pairs
    report.section(
        "Does time tell?",
        "timing",
        f"""{ROWS:,} rows, with and without one person of {PERSON:,}; {pairs} charged questions to each of two
        gateways in random order, over HTTP on this machine, with free requests one after the other meanwhile.
        The AUC is 50% if time tells nothing. {report.machine()}.""",
    )
    report.table("answers leave", "what is timed", "median without", "median with", "AUC", "99% interval")
    fine = {}
    with tempfile.TemporaryDirectory() as name:
        for more, said in (("answer_after = 0", "when ready"), (f'answer_after = "{LENGTH}s"', f"after {LENGTH:g} s")):
            found, all_answers = measure(Path(name), more, pairs)
            for what, (without, with_person) in found.items():
                auc, half = area(without, with_person)
                report.line(
                    said,
                    what,
                    f"{1000 * float(np.median(without)):.1f} ms",
                    f"{1000 * float(np.median(with_person)):.1f} ms",
                    f"{auc:.1%}",
                    f"{max(0, auc - half):.1%} to {min(1, auc + half):.1%}",
                )
                if more == "answer_after = 0":
                    if what == "answers":
                        fine["without a deadline, time tells (AUC above 80%)"] = auc - half > 0.8
                else:
                    fine[f"with a deadline, {what} tell nothing"] = abs(auc - 0.5) <= half
    spread = float(np.percentile(all_answers, 99) - np.percentile(all_answers, 1))
    report.notes(f"With a deadline, 98% of the answers leave within {1000 * spread:.1f} ms of each other.")
    report.verdict(fine)
    sys.exit(0 if all(fine.values()) else 1)


if __name__ == "__main__":
    main()
