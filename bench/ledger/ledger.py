"""The durable ledger: charges a second, the time to open a long one, and the peers that keep budgets in memory.

`python -m bench.ledger.ledger` measures all in one run: real processes that open one ledger each for themselves, beside
bare one-row commits on the same disk and server, then the peers, each in its own environment. PostgreSQL is the one
that $DISCREET_TEST_POSTGRES names, postgresql://user@host/database, or else one that is started here; every ledger
there is a schema of its own, dropped at the end.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import urldefrag

from bench import peers, postgres_server
from bench.report import line, machine, notes, section, table, verdict

SECONDS, REPEAT = 0.5, 3
"""Each rate is the best of so many rounds, each so long."""
WRITERS = {"1": (1, 1), "8 processes": (8, 1), "8 threads": (1, 8)}
"""Who writes at once: so many processes, or so many threads of one."""
CASES = [("basic", "1"), ("best", "1"), ("basic", "8 processes"), ("basic", "8 threads")]
COUNTED = (
    "bare commits/s",
    "bare, after locking one row/s",
    "charges/s",
    "charges/s, an analyst's",
    "releases/s",
    "replays/s",
)
GOALS = {"SQLite file": 3000, "PostgreSQL": 1000}
SIZES = (10**2, 10**4, 10**6)
VERIFIED, OPENINGS = 10**4, 15
MARKS = (10**3, 10**4, 10**5)
PATIENCE = 60.0
"""Seconds after which whoever has not made all charges is stopped, and what was reached is reported."""
GROWN = 1.5
"""The goal for the longest ledgers: times as long to open and to charge as one of `VERIFIED` entries, at most."""
BARE = ("commit", "locked")
"""What the database does alone."""
EPSILON, LIMIT = 1e-6, 1e3
ASKED = "how many, by benchmark"
ROW = "x" * 600
"""About as many bytes as an entry has."""
VARIABLE = "DISCREET_TEST_POSTGRES"

_gate: Any = None


class Place(NamedTuple):
    """Where a ledger is kept."""

    kind: str
    target: str
    checkpoint: str | None = None


class Places:
    """New places: files in one folder on this disk, and schemas in one database, if there is one."""

    def __init__(self, folder: str, url: str | None) -> None:
        self.folder, self.url = Path(folder), url
        self.made: list[str] = []

    @property
    def durable(self) -> list[str]:
        return ["SQLite file"] + ["PostgreSQL"] * bool(self.url)

    def new(self, kind: str) -> Place:
        if kind == ":memory:":
            return Place(kind, kind)
        name = f"bench_{os.getpid()}_{len(self.made)}"
        self.made.append(name)
        if kind == "PostgreSQL":
            return Place(kind, f"{self.url}#{name}", str(self.folder / f"{name}.checkpoint"))
        return Place(kind, str(self.folder / f"{name}.ledger"))

    def drop(self) -> None:
        if self.url:
            with postgres(self.url) as connection:
                for name in self.made:
                    connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")


def postgres(url: str) -> Any:
    """A bare connection, to the schema after the #."""
    import psycopg

    address, schema = urldefrag(url)
    connection = psycopg.connect(address, autocommit=True)
    connection.execute(f"SET search_path = {schema or 'public'}")
    return connection


def opened(place: Place, rule: str) -> Any:
    """The ledger there, made when missing: basic sums up to a pure limit, or the default rule of an (ε,δ) limit."""
    import discreet as dp

    limit = dp.Pure(epsilon=LIMIT) if rule == "basic" else dp.Approx(epsilon=10, delta=1e-5)
    return dp.Ledger.open(place.target, protects=dp.row(), limit=limit, rule=rule, checkpoint=place.checkpoint)


# --- charges a second -------------------------------------------------------------------------------------


def step(what: str, place: Place, rule: str = "") -> Callable[[], Any]:
    """One charge, replay, release or bare commit, over and over, on a connection of its own."""
    if what == "commit":
        return _commit(place)
    if what == "locked":
        return _locked(place)
    import discreet as dp

    ledger, mechanism, guarantee = opened(place, rule), dp.Laplace(scale=10**6), dp.Pure(epsilon=EPSILON)
    if what == "charge":
        return lambda: ledger.charge(guarantee, asked=ASKED)
    if what == "analyst":
        limit = dp.Pure(epsilon=LIMIT / 2) if rule == "basic" else dp.Approx(epsilon=9, delta=9e-6)
        account = ledger.for_analyst("alice", limit=limit, rule=rule)
        return lambda: account.charge(guarantee, asked=ASKED)
    if what == "replay":
        again = partial(ledger.charge, guarantee, asked=ASKED, mechanism=mechanism, key="again")
        if (entry := again()).state == "reserved":
            ledger.keep(entry, [17.0, 4.0])
        return lambda: ledger.answer(again())
    return lambda: dp.release(17, mechanism, sensitivity=1, ledger=ledger, asked=ASKED)


def _commit(place: Place) -> Callable[[], Any]:
    """One row, durably: what the disk and the database allow, with nothing to check or to chain."""
    if place.kind == "PostgreSQL":
        server, schema = postgres(place.target), urldefrag(place.target)[1]
        server.execute("SET synchronous_commit = on")
        server.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        server.execute("CREATE TABLE IF NOT EXISTS bare (number BIGSERIAL PRIMARY KEY, content TEXT)")
        return lambda: server.execute("INSERT INTO bare (content) VALUES (%s)", (ROW,))
    file = sqlite3.connect(place.target, isolation_level=None, timeout=60)
    file.execute("PRAGMA journal_mode = WAL")
    file.execute("PRAGMA synchronous = FULL")
    file.execute("CREATE TABLE IF NOT EXISTS bare (number INTEGER PRIMARY KEY, content TEXT)")
    return lambda: file.execute("INSERT INTO bare (content) VALUES (?)", (ROW,))


def _locked(place: Place) -> Callable[[], Any]:
    """One row, durably, after the lock on another row that everybody needs: what is possible for writers in a line."""
    head, row = "CREATE TABLE IF NOT EXISTS head (number BIGINT)", "INSERT INTO bare (content) VALUES ({})"
    _commit(place)()
    if place.kind == "PostgreSQL":
        server = postgres(place.target)
        server.execute("SET synchronous_commit = on")
        server.execute(head)
        server.execute("INSERT INTO head SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM head)")

        def once() -> None:
            with server.pipeline():
                server.execute("BEGIN")
                (number,) = server.execute("SELECT number FROM head FOR UPDATE").fetchone()
                server.execute("UPDATE head SET number = %s", (number + 1,))
                server.execute(row.format("%s"), (ROW,))
                server.execute("COMMIT")

        return once
    file = sqlite3.connect(place.target, isolation_level=None, timeout=60)
    file.execute("PRAGMA synchronous = FULL")
    file.execute(head)
    file.execute("INSERT INTO head SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM head)")

    def in_turn() -> None:
        file.execute("BEGIN IMMEDIATE")
        (number,) = file.execute("SELECT number FROM head").fetchone()
        file.execute("UPDATE head SET number = ?", (number + 1,))
        file.execute(row.format("?"), (ROW,))
        file.execute("COMMIT")

    return in_turn


def _ready(gate: Any) -> None:
    global _gate  # a barrier reaches a process only while it is started
    _gate = gate


def _rounds(
    work: dict[str, Place], rule: str, shared: Mapping[str, Callable[[], Any]] = MappingProxyType({})
) -> list[tuple[str, float, float, int, float]]:
    """Of each kind of work in turn, `REPEAT` times: when it began and ended here, how often, and the longest step."""
    steps = {what: shared.get(what) or step(what, place, rule) for what, place in work.items()}
    _gate.wait(timeout=60)  # all have opened it
    found = []
    for what in [*steps] * REPEAT:
        once = steps[what]
        once()
        _gate.wait(timeout=60)
        count, longest = 0, 0.0
        start = last = time.monotonic()
        while last - start < SECONDS:
            once()
            now = time.monotonic()
            count, longest, last = count + 1, max(longest, now - last), now
        found.append((what, start, last, count, longest))
        _gate.wait(timeout=60)
    return found


def _rounds_of_threads(work: dict[str, Place], rule: str, threads: int) -> list[Any]:
    """The same by threads of one process, which share a ledger; each has its own connection for bare commits."""
    shared = {what: step(what, place, rule) for what, place in work.items() if what not in BARE}
    _ready(threading.Barrier(threads))
    with ThreadPoolExecutor(threads) as pool:
        working = [pool.submit(_rounds, work, rule, shared) for _ in range(threads)]
        return [one.result() for one in working]


class Rate(NamedTuple):
    """Steps a second in the best round, and the longest step in any."""

    each_second: float
    longest: float


def rate(work: dict[str, Place], rule: str, processes: int, threads: int = 1) -> dict[str, Rate]:
    """What `processes`, or `threads` of one process, make together, from their common start to the last end."""
    for what, place in work.items():
        step(what, place, rule)()  # makes what all of them open
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, spawn, _ready, (spawn.Barrier(processes),)) as pool:
        if threads > 1:
            found = pool.submit(_rounds_of_threads, work, rule, threads).result()
        else:
            found = [one.result() for one in [pool.submit(_rounds, work, rule) for _ in range(processes)]]
    rounds = list(zip(*found, strict=True))
    made: dict[str, Rate] = {}
    for parts in rounds:
        (what, *_), starts, ends, counts, longest = zip(*parts, strict=True)
        before = made.get(what, Rate(0, 0))
        now = sum(counts) / (max(ends) - min(starts))
        made[what] = Rate(max(before.each_second, now), max(before.longest, *longest))
    return made


def synced(folder: Path) -> float:
    """Appends of 4 KiB to a file a second, each on disk before the next."""
    file, block = os.open(folder / "appended", os.O_WRONLY | os.O_CREAT | os.O_APPEND), bytes(4096)
    best = 0.0
    for _ in range(REPEAT):
        count, start = 0, time.perf_counter()
        while (spent := time.perf_counter() - start) < SECONDS:
            os.write(file, block)
            os.fsync(file)
            count += 1
        best = max(best, count / spent)
    os.close(file)
    return best


def rates(places: Places) -> None:
    appends = synced(places.folder)
    print(f"\n### Charges a second\n\n4 KiB appended to a file and fsynced: {appends:,.0f} a second.\n", flush=True)
    table("where", "rule", "writers", *COUNTED, "longest charge, ms")
    together: dict[str, dict[str, float]] = {}
    for kind in (*places.durable, ":memory:"):
        for rule, writers in CASES if kind != ":memory:" else CASES[:2]:
            ledger = places.new(kind)
            work = {} if kind == ":memory:" else dict.fromkeys(("commit", "locked"), places.new(kind))
            work |= dict.fromkeys(("charge", "analyst", "release", "replay"), ledger)
            made = rate(work, rule, *WRITERS[writers])
            bare = made["commit"].each_second if "commit" in made else None
            shown = [bare and f"{bare:,.0f}", bare and f"{made['locked'].each_second:,.0f}"]
            for what in ("charge", "analyst", "release", "replay"):
                each = made[what].each_second
                shown += [f"{each:,.0f}" + (f" ({each / bare:.2f})" if bare else "")]
            line(kind, rule, writers, *shown, f"{1000 * max(made['charge'].longest, made['analyst'].longest):.0f}")
            if rule == "basic" and bare:
                together.setdefault(kind, {})[writers] = made["analyst"].each_second
    met = {}
    for kind, rates_of in together.items():
        one, *others = rates_of.values()
        least = min(others) / one
        met[f"several writers of {kind} are together not slower than one ({least:.2f} times)"] = least >= 1
        met[f"{kind}: at least {GOALS[kind]:,} charges/s by one writer ({one:,.0f})"] = one >= GOALS[kind]
    verdict(met)
    notes(
        """In brackets: divided by the bare commits of the same row. A charge reads the head, follows the chain to it
        from the last entry it knows, checks the limits, and appends one row, durable when it returns. A release is two
        such commits and a draw. A replay finds an earlier charge by its key, and its stored answer; it writes
        nothing.""",
        """The second column of bare commits reads, locks and changes one row before each commit, as every writer of a
        ledger has to: those who wait for it cannot share a flush.""",
        """Processes wait for each other. Threads of one process share a transaction, and plain commits in PostgreSQL
        share their flushes.""",
        f"A flush takes {1000 / appends:.2f} ms here. If it takes longer, the ratios rise.",
        *["PostgreSQL is missing: Debian's `postgresql` has it."] * (not places.url),
    )


# --- long ledgers -----------------------------------------------------------------------------------------


def grow(ledger: Any, size: int) -> None:
    """Charge until there are `size` charges, all in one transaction; the rows are those of single charges."""
    import discreet as dp
    from discreet.ledger import book
    from discreet.ledger.book import WHOLE, Head
    from discreet.ledger.texts.request import request_of

    stated, rule = dp.Pure(epsilon=EPSILON).stated_for(ledger.protects), ledger.rule
    request = request_of(stated, ASKED, "", None, None).columns()
    with ledger._store.transaction(write=True) as execute:
        at = book.head(execute)
        spent = book.last_row(execute, at).spent(WHOLE)
        while at.number < size:
            after = rule.spend(spent, stated)
            cost = tuple(new - old for new, old in zip(after, spent, strict=True))
            kept = {"kind": "charge", "analyst": WHOLE, "costs": {WHOLE: cost}, "totals": {WHOLE: after}}
            row = book.entry_after(at, request | kept)
            new = Head(row.number, row.chain)
            for statement in book.moving(at, new, [row], {}):
                execute(*statement)
            at, spent = new, after


def move(file: Place, schema: Place, rule: str) -> Place:
    """The ledger of a file, put into PostgreSQL as a backup is: its rows copied, its checkpoint begun anew."""
    from discreet.ledger.book import EntryRow

    opened(schema, rule).close()
    columns = ", ".join(EntryRow._fields)
    rows = sqlite3.connect(file.target)
    with postgres(schema.target) as server, server.transaction():
        server.execute("TRUNCATE entries, head")
        with server.cursor().copy(f"COPY entries ({columns}) FROM STDIN") as copy:
            for row in rows.execute(f"SELECT {columns} FROM entries ORDER BY number"):
                copy.write_row(row)
        server.execute("INSERT INTO head SELECT 1, number, chain, 0 FROM entries ORDER BY number DESC LIMIT 1")
    rows.close()
    return schema._replace(checkpoint=f"{schema.checkpoint}.moved")


def prepared(places: Places, rule: str, size: int) -> list[Place]:
    """One ledger of this size, in every kind of place."""
    start = time.perf_counter()
    file = places.new("SQLite file")
    ledger = opened(file, rule)
    grow(ledger, size)
    ledger.close()
    found = [file, *(move(file, places.new(kind), rule) for kind in places.durable[1:])]
    print(f"{size:,} entries by rule {rule} were made in {time.perf_counter() - start:.1f} s", file=sys.stderr)
    return found


def reopened(place: Place) -> tuple[float, float]:
    """Seconds to open a ledger that is there, and to charge it once after that."""
    import discreet as dp

    start = time.perf_counter()
    ledger = dp.Ledger.open(place.target, checkpoint=place.checkpoint)
    middle = time.perf_counter()
    ledger.charge(dp.Pure(epsilon=EPSILON), asked=ASKED)
    end = time.perf_counter()
    ledger.close()
    return middle - start, end - middle


def walked(place: Place) -> float:
    """Seconds for each entry that the check of the whole record takes."""
    import discreet as dp

    ledger = dp.Ledger.open(place.target, checkpoint=place.checkpoint)
    seconds, entries = peers.best(ledger.verify, 1)
    ledger.close()
    return seconds / entries


def long_ledgers(places: Places) -> None:
    from discreet.ledger.opening import LOOKED_AT

    print(f"\n### Long ledgers\n\nMedians of {OPENINGS} openings, with the sizes in turn.\n", flush=True)
    rules = {"basic": SIZES, "best": (VERIFIED,)}
    ledgers = {(p.kind, rule, n): p for rule, sizes in rules.items() for n in sizes for p in prepared(places, rule, n)}
    times = [{case: reopened(place) for case, place in ledgers.items()} for _ in range(OPENINGS)]
    table("where", "rule", "entries", "open, ms", "charge, ms", f"÷ {VERIFIED:,} entries", "verify, µs an entry")
    longest: dict[str, float] = {}
    for kind in places.durable:
        for rule, sizes in rules.items():
            both = {n: [1000 * statistics.median(t[kind, rule, n][i] for t in times) for i in (0, 1)] for n in sizes}
            for size, (to_open, to_charge) in both.items():
                verify = f"{1e6 * walked(ledgers[kind, rule, size]):.0f}" if size == VERIFIED else None
                grown = (to_open + to_charge) / sum(both[VERIFIED])
                line(kind, rule, f"{size:,}", f"{to_open:.1f}", f"{to_charge:.1f}", f"{grown:.2f}", verify)
                if size == max(SIZES):
                    longest[kind] = grown
    goal = f"{max(SIZES):,} entries take at most {GROWN:g} times as long to open and charge as {VERIFIED:,}"
    seen = ", ".join(f"{kind} {grown:.2f} times" for kind, grown in longest.items())
    verdict({f"{goal} ({seen})": max(longest.values()) <= GROWN})
    notes(f"The last {LOOKED_AT} entries are checked at every opening; a shorter ledger has fewer to check.")


# --- against the peers ------------------------------------------------------------------------------------


def timed(system: str, once: Callable[[], Any]) -> Iterator[dict[str, Any]]:
    """The seconds that so many charges took, for every mark that is reached in time, and where it was stopped."""
    start = time.perf_counter()
    for count in range(1, MARKS[-1] + 1):
        once()
        spent = time.perf_counter() - start
        if count in MARKS or spent > PATIENCE:
            yield {"system": system, "count": count, "seconds": spent}
        if spent > PATIENCE:
            return


def opendp() -> Iterator[dict[str, Any]]:
    """Its filter, which may be asked anything, and its composition of costs that were all named in advance."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.atom_domain(T="i64"), dp.absolute_distance(T="i64")
    noisy = dp.m.make_laplace(*space, scale=1 / EPSILON)
    odometer = dp.c.make_fully_adaptive_composition(*space, dp.max_divergence())
    limited = dp.c.make_privacy_filter(odometer, d_in=1, d_out=LIMIT)(17)
    yield from timed(f"OpenDP {version('opendp')}, privacy filter", lambda: limited(noisy))
    costs = [noisy.map(1)] * MARKS[-1]
    named = dp.c.make_adaptive_composition(*space, dp.max_divergence(), d_in=1, d_mids=costs)(17)
    yield from timed("OpenDP, costs named in advance", lambda: named(noisy))


def diffprivlib() -> Iterator[dict[str, Any]]:
    from diffprivlib import BudgetAccountant

    accountant = BudgetAccountant(epsilon=LIMIT, delta=0)
    yield from timed(f"diffprivlib {version('diffprivlib')}, BudgetAccountant", lambda: accountant.spend(EPSILON, 0))


PEERS = {"opendp": opendp, "diffprivlib": diffprivlib}


def ours(places: Places) -> Iterator[dict[str, Any]]:
    for kind in (":memory:", *places.durable[:1]):
        yield from timed(f"discreet, {kind}", step("charge", places.new(kind), "basic"))


def against_peers(places: Places) -> None:
    rows = list(ours(places))
    with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as cores:  # one for each: both may need all their patience
        rows += [row for found in cores.map(partial(peers.measure, __spec__.name), PEERS) for row in found]
    compared(rows)


def compared(rows: list[dict[str, Any]]) -> None:
    """Who made how many charges in how many seconds, ours in memory first."""
    counts: dict[str, dict[int, float]] = {}
    for row in rows:
        counts.setdefault(row["system"], {})[row["count"]] = row["seconds"]
    base = next(iter(counts.values()))
    print(
        f"\n### Against the peers\n\nPeers keep the budget in the memory of one process. A run is stopped after "
        f"{PATIENCE:g} s. × is the time relative to {next(iter(counts))}.\n"
    )
    marks = [f"{mark:,} charges" for mark in MARKS]
    table("budget kept by", "survives the process", *marks, f"in {PATIENCE:g} s at most")
    for system, seconds in counts.items():
        spans = [f"{seconds[m]:.2f} s" if m in seconds else f"over {PATIENCE:g} s" for m in MARKS]
        ratios = [f", {seconds[m] / base[m]:.2f} ×" if m in seconds and m in base else "" for m in MARKS]
        last, end = max(seconds.items())
        survives = "yes" if "SQLite file" in system else "no"
        line(
            system,
            survives,
            *map("".join, zip(spans, ratios, strict=True)),
            f"{last:,}, {1e6 * end / last:,.0f} µs each",
        )
    notes(
        """OpenDP's filter (`make_privacy_filter` over `make_fully_adaptive_composition`) and diffprivlib add up
        everything again at each charge, so the time of a charge grows with their number.""",
        """OpenDP's `make_adaptive_composition` needs every cost before the first question, so it cannot guard an
        adaptive session. The time to make its list is not counted. An OpenDP charge includes a Laplace draw; ours
        here does
        not.""",
    )


# --- the run ----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def database() -> Iterator[str | None]:
    """The database that takes part: one that is named, or of a server that is started here, if there is any."""
    programs = postgres_server.programs()
    if url := os.environ.get(VARIABLE):
        yield urldefrag(url)[0]
    elif programs is None:
        yield None
    else:
        with postgres_server.server(programs, {}) as serving:
            yield serving.url


def main(parts: Iterable[Callable[[Places], None]] = (rates, long_ledgers, against_peers)) -> None:
    here = tempfile.TemporaryDirectory(prefix=".bench-ledger-", dir=".")
    with database() as url, here as folder:
        server = "PostgreSQL"
        if url:
            with postgres(url) as connection:
                server = f"PostgreSQL {connection.info.server_version // 10_000}"
        about = f"""Real processes on all cores, each opening the ledger itself, compared with plain one-row commits
        on the same
        disk and server ({len(ROW)} bytes; SQLite WAL with synchronous=FULL; {server}, one round trip). Rates are the
        best of {REPEAT} rounds of {SECONDS:g} s. {machine()}."""
        section("Ledger", "ledger.ledger", about)
        places = Places(folder, url)
        try:
            for part in parts:
                part(places)
        finally:
            places.drop()


if __name__ == "__main__":
    if sys.argv[1:]:
        print(*map(json.dumps, PEERS[sys.argv[1]]()), sep="\n")
    else:
        main()
