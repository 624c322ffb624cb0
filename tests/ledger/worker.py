"""Processes that use one ledger at once, or die while they do: run by the tests, one task each, results as JSON.

The driver opens and uses the ledger first and then forks, so that every child inherits a ledger with an open connection
that it must not use.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import threading
import time
import traceback

import discreet as dp
from discreet.ledger.stores.checkpoint import LockedCheckpoint
from discreet.ledger.texts import values


def fork(work):
    """Run `work(write)` in a child, which fails when any of its threads does; its id, and the pipe of its lines."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(read)
            threading.excepthook = lambda failed: (traceback.print_exception(failed.exc_value), os._exit(1))
            work(lambda line: os.write(write, f"{json.dumps(line)}\n".encode()))
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(write)
    return child, read


def collect(children):
    """All lines of all children, which must end well or by SIGKILL."""
    lines, killed = [], 0
    for child, read in children:
        with os.fdopen(read) as pipe:
            lines += map(json.loads, pipe)
        status = os.waitpid(child, 0)[1]
        if os.WIFSIGNALED(status):
            assert os.WTERMSIG(status) == signal.SIGKILL
            killed += 1
        else:
            assert os.WEXITSTATUS(status) == 0, "a child failed"
    return lines, killed


def race(ledger, processes, scale, threads=1):
    """Every thread of every process asks until the ledger refuses."""
    noise = dp.Laplace(scale=int(scale))

    def ask_on(write):
        while True:
            try:
                write(dp.release(5, noise, sensitivity=1, ledger=ledger).receipt)
            except dp.BudgetExhausted:
                return

    def ask(write):
        others = [threading.Thread(target=ask_on, args=[write]) for _ in range(int(threads) - 1)]
        for thread in others:
            thread.start()
        ask_on(write)
        for thread in others:
            thread.join()

    lines, _ = collect([fork(ask) for _ in range(int(processes))])
    return {"receipts": lines}


def retry(ledger, processes, threads):
    """One request, made by all threads of all processes at the same moment, always with the same key."""
    noise = dp.Laplace(scale=10)
    start_read, start_write = os.pipe()

    def ask(write):
        os.close(start_write)
        ready = threading.Barrier(int(threads))

        def one():
            ready.wait()
            answer = dp.release([5.0, 6.5, 7.0], noise, sensitivity=1, ledger=ledger, key="the one")
            write([answer.receipt, hashlib.sha256(values.encode(answer.value)).hexdigest()])

        started = [threading.Thread(target=one) for _ in range(int(threads))]
        os.read(start_read, 1)  # end of file: the driver let go of the other end
        for thread in started:
            thread.start()
        for thread in started:
            thread.join()

    children = [fork(ask) for _ in range(int(processes))]
    os.close(start_write)
    lines, _ = collect(children)
    return {"answers": lines}


class Dies(dp.Laplace):
    """A mechanism that is killed after the draw."""

    def _draw(self, value):
        super()._draw(value)
        os.kill(os.getpid(), signal.SIGKILL)


def crash(ledger, rounds):
    """Kill a release before and after each statement it sends to the database, and around its draw; then retry it."""
    statements = count_statements(ledger)
    points = [(side, number) for number in range(1, statements + 1) for side in ("before", "after")]
    points += [(side, 0) for side in ("draw", "checkpoint", "handed out", "never")]
    results, deaths = [], 0
    for turn in range(int(rounds)):
        for side, number in points:
            key = f"{turn} {side} {number}"
            lines, killed = collect([fork(lambda write, a=(side, number, key): dying(ledger, write, *a))])
            deaths += killed
            spent = ledger.spent["ε"]
            again = ask(ledger, key)
            results.append(
                {
                    "point": key,
                    "handed_out": lines,
                    "spent_after_crash": spent,
                    "spent_after_retry": ledger.spent["ε"],
                    "retried": [again.receipt, again.value],
                }
            )
    return {"statements": statements, "killed": deaths, "runs": results}


def ask(ledger, key, kind=dp.Laplace):
    return dp.release(5, kind(scale=100), sensitivity=1, ledger=ledger, key=key)


def dying(ledger, write, side, number, key):
    """One release in a process that is killed at one point."""

    def die():
        os.kill(os.getpid(), signal.SIGKILL)

    watch(ledger._store, lambda n: side == "before" and n == number and die())
    watch(ledger._store, lambda n: side == "after" and n == number and die(), after=True)
    if side == "checkpoint":
        LockedCheckpoint.advance = lambda self, seen, durable=False: die()
    # the mechanism's name is part of the request: a subclass would be another one
    Dies.__name__ = Dies.__qualname__ = "Laplace"
    Dies.__module__ = dp.Laplace.__module__
    answer = ask(ledger, key, Dies if side == "draw" else dp.Laplace)
    write([answer.receipt, answer.value])
    if side == "handed out":
        die()


def watch(store, see, after=False):
    """Call `see` with the number of each statement, or of each message with several, before or after it is run."""
    seen = 0

    def counted(inner):
        def call(*args, **kwargs):
            nonlocal seen
            seen += 1
            number = seen
            if not after:
                see(number)
            result = inner(*args, **kwargs)
            if after:
                see(number)
            return result

        return call

    for name in ("_begin", "_execute", "_change", "_send"):
        if hasattr(store, name):
            setattr(store, name, counted(getattr(store, name)))


def count_statements(ledger):
    """How many statements one release sends."""

    def one(write):
        seen = []
        watch(ledger._store, seen.append)
        ask(ledger, "counted")
        write(len(seen))

    [count], _ = collect([fork(one)])
    return count


def forget(ledger, charges):
    """Charge, and die without closing: SQLite's log is not yet in the file."""

    def work(write):
        for _ in range(int(charges)):
            ask(ledger, None)
        os.kill(os.getpid(), signal.SIGKILL)

    ledger.close()
    collect([fork(work)])
    return {}


def crowd(ledger, processes):
    """Everybody opens, makes the same account, charges and verifies, all at once."""

    def work(write):
        target, checkpoint = sys.argv[2:4]
        for _ in range(5):
            mine = dp.Ledger.open(target, checkpoint=checkpoint)
            alice = mine.for_analyst("alice", limit=dp.Pure(epsilon=900))
            write(ask(alice, None).receipt)
            mine.verify()
            mine.close()

    lines, _ = collect([fork(work) for _ in range(int(processes))])
    return {"receipts": lines}


def outlive(ledger):
    """A child that goes on charging after its parent closed; one that is forked while a thread charges."""
    commands = [os.pipe() for _ in range(2)]

    def work(write):
        for read, _ in commands:
            os.read(read, 1)
            write(ask(ledger, None).receipt)

    child = fork(work)
    os.write(commands[0][1], b"x")
    threads = [threading.Thread(target=lambda: [ask(ledger, None) for _ in range(20)]) for _ in range(2)]
    for thread in threads:
        thread.start()
    other = fork(lambda write: write(ask(ledger, None).receipt))
    for thread in threads:
        thread.join()
    ledger.close()
    os.write(commands[1][1], b"x")
    lines, _ = collect([child, other])
    return {"receipts": lines}


GROUP = ((0.1, "first"), (0.1, "a"), (0.1, "b"), (0.9, "c"), (0.1, "a"), (0.1, "d"), (0.1, "e"), (0.1, "f"))
"""Charges and their keys. The first one is written alone, the others together."""


def group(ledger, fails=0):
    """Threads that charge while another one writes: the next transaction is for all of them. It may fail."""
    writer, store = ledger._writer, ledger._store
    write, finish = writer._write_together, store.finish
    go, groups, results, early = threading.Event(), [], [None] * len(GROUP), []

    def gated(jobs):
        if not groups:
            go.wait()
        groups.append(len(jobs))
        write(jobs)

    def watched(statements):
        if len(groups) > 1:
            for thread in set(threads) - {threading.current_thread()}:
                thread.join(0.05)
            early.extend(result for result in results[1:] if result is not None)
            if int(fails) and len(groups) == 2:
                raise dp.errors.LedgerUnavailable("The disk is full.")
        return finish(statements)

    def charge(number):
        epsilon, key = GROUP[number]
        try:
            entry = ledger.charge(dp.Pure(epsilon=epsilon), asked="q", key=key)
            results[number] = [key, entry.receipt, entry.totals[""][1]]
        except dp.DiscreetError as error:
            results[number] = [key, error.code, 0]

    writer._write_together, store.finish = gated, watched
    threads = [threading.Thread(target=charge, args=[number]) for number in range(len(GROUP))]
    for number, thread in enumerate(threads):
        thread.start()
        while not (writer._leader if number == 0 else len(writer._waiting) == number):
            time.sleep(0.001)
    go.set()
    for thread in threads:
        thread.join()
    return {"groups": groups, "early": early, "results": results}


def make(_, processes):
    """Everybody makes the ledger, and charges it."""

    def work(write):
        target, checkpoint = sys.argv[2:4]
        terms = {"protects": dp.row(), "limit": dp.Pure(epsilon=1000)}
        write(ask(dp.Ledger.open(target, checkpoint=checkpoint, **terms), None).receipt)

    lines, _ = collect([fork(work) for _ in range(int(processes))])
    return {"receipts": lines}


def main():
    if mutant := os.environ.get("DISCREET_TEST_MUTANT"):
        from mutants import MUTANTS

        MUTANTS[mutant]()
    task, target, checkpoint, *arguments = sys.argv[1:]
    ledger = None
    if task != "make":
        ledger = dp.Ledger.open(target, checkpoint=checkpoint)
        if ledger.protects.lives_in_one:
            ledger = ledger._within("feb", "jan")
        assert ledger.spent is not None  # the connection is open when we fork
    tasks = {
        "make": make,
        "group": group,
        "race": race,
        "retry": retry,
        "crash": crash,
        "forget": forget,
        "crowd": crowd,
        "outlive": outlive,
    }
    print(json.dumps(tasks[task](ledger, *arguments)))


if __name__ == "__main__":
    main()
