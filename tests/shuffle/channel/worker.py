"""A channel that is killed with kill -9 at one point, then goes on: run by the tests, results as JSON.

Both halves run in one process here. It is killed before or after one statement to any of the three databases, or one
change of a file on disk. `serve` runs one real service that kills itself at a named step.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from polls import Poll, counts, finish

from discreet.ledger.stores.postgres import PostgresStore
from discreet.ledger.stores.sqlite import SqliteStore
from discreet.shuffle.channel import analyzer, keys, results, store

REPORTS = 10


def in_child(work):
    """What `work` gives back in a child, or None when it was killed."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(read)
            os.write(write, json.dumps(work()).encode())
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return None
    assert os.WEXITSTATUS(status) == 0, "a child failed"
    return json.loads(said)


def watch(see) -> None:
    """Call `see("before" or "after")` around every statement and every change of a file."""

    def watched(inner):
        def call(*args, **kwargs):
            see("before")
            result = inner(*args, **kwargs)
            see("after")
            return result

        return call

    for kind in (SqliteStore, PostgresStore):
        kind._execute, kind._begin = watched(kind._execute), watched(kind._begin)
    keys._write_new = watched(keys._write_new)
    os.replace = watched(os.replace)


def close(poll: Poll, at: int | None = None, side: str = "") -> dict:
    """Seal, deliver, analyze, acknowledge; killed at one event."""
    seen = {"before": 0, "after": 0}

    def see(which: str) -> None:
        seen[which] += 1
        if which == side and seen[which] == at:
            os.kill(os.getpid(), signal.SIGKILL)

    shuffler, other = poll.shuffler(), poll.analyzer()
    watch(see)
    result = finish(shuffler, other)
    return {"events": seen["after"], "counts": counts(result), "state": shuffler.store.standing()[0]}


def sealed_digest(poll: Poll) -> str | None:
    sealed = poll.shuffler().store.batch()[1]
    return None if sealed is None else sealed.digest.hex()


def settled(poll: Poll) -> dict:
    """What there is in the end."""
    done = close(poll)
    one = results.AnalyzerStore(poll.analyzer_at, poll.task.hash)
    with one.database.transaction(write=False) as execute:
        [(digest, blob)] = execute("SELECT digest, blob FROM received")
    ledger = poll.ledger()
    ledger.verify()
    secrets = poll.issuer
    left = [secrets.outer, secrets.storage, keys.AnalyzerKeys.load(poll.path.with_name("poll.analyzer.key")).inner]
    entries = [entry.state for entry in ledger.entries()]
    return done | {"digest": bytes(digest).hex(), "blob": blob is None, "entries": entries, "keys": any(left)}


def crash(folder: str, place: str, step: str, first: str) -> dict:
    """Every `step`-th point, each with a poll of its own; `place` is a PostgreSQL URL or empty."""
    template = Path(folder) / "template"
    origin = Poll(template / "poll.toml", "", "", "")
    uploads = [origin.exact(number, number % 3) for number in range(REPORTS)]

    def fresh(name: str) -> Poll:
        own = shutil.copytree(template, Path(folder) / name) / "poll.toml"
        at = (f"{place}#{name}_s", f"{place}#{name}_a") if place else (str(own) + ".s", str(own) + ".a")
        poll = Poll(own, *at, str(own) + ".ledger")

        def fill():
            return poll.shuffler().accept(uploads)

        assert in_child(fill) == ["accepted"] * REPORTS
        return poll

    events = in_child(lambda: close(fresh(f"k{os.getpid()}_whole")))["events"]
    runs, killed = [], 0
    for number in range(int(first), events + 1, int(step)):
        for side in ("before", "after"):
            poll = fresh(f"k{os.getpid()}_{side}{number}")
            killed += in_child(lambda at=(poll, number, side): close(*at)) is None
            digest = in_child(lambda at=poll: sealed_digest(at))
            runs.append(in_child(lambda at=poll: settled(at)) | {"sealed": digest, "point": f"{side} {number}"})
            shutil.rmtree(poll.path.parent)
    return {"events": events, "killed": killed, "runs": runs}


# --- one real service -----------------------------------------------------------------------------------------


def serve(name: str, step: str, *arguments: str) -> None:
    """`discreet shuffle NAME …`, killed at a step: `before` or `after`, then a method such as ShufflerStore.seal."""
    from discreet.cli import main

    side, _, method = step.partition(" ")
    kinds = {
        "ShufflerStore": store.ShufflerStore,
        "AnalyzerStore": results.AnalyzerStore,
        "Analyzer": analyzer.Analyzer,
    }
    if method:
        kind, _, attribute = method.partition(".")
        inner = getattr(kinds[kind], attribute)

        def dying(*args, **kwargs):
            if side == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            inner(*args, **kwargs)
            os.kill(os.getpid(), signal.SIGKILL)

        setattr(kinds[kind], attribute, dying)
    main(["shuffle", name, *arguments])


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(*sys.argv[2:])
    else:
        print(json.dumps(crash(*sys.argv[2:])))
