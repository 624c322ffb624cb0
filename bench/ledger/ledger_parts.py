"""Ledgers with parts: the time to open a long one and to charge it, beside one without parts.

`python -m bench.ledger.ledger_parts` makes ledgers of a million entries in files, one whose charges are on everything
and one whose last 20,000 are on 1,000 parts in turn. Then it opens and charges both in turn, the second one in single
parts.
"""

from __future__ import annotations

import random
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.report import line, machine, notes, section, table, verdict

SIZE, PARTS, TOGETHER = 10**6, 1000, 50
OPENINGS, CHARGES = 51, 2000
VERIFIED = 2 * 10**4
GOAL = 1.5
"""Times as long as without parts, at most."""
EPSILON, LIMIT = 1e-6, 1e3
ASKED = "how many, by benchmark"
CASES = {"without": 0, "1,000 parts": PARTS}


def opened(path: Path) -> Any:
    import discreet as dp

    return dp.Ledger.open(path, protects=dp.person("id", per="month"), limit=dp.Pure(epsilon=LIMIT))


def views_of(ledger: Any, count: int) -> list[Any]:
    """The views that are charged: everything, or each part alone."""
    return [ledger._within(f"part {number}") for number in range(count)] or [ledger]


def grow(path: Path, size: int, count: int) -> None:
    """Charge until there are so many entries, many in one transaction. The rows are those of single charges."""
    import discreet as dp
    from discreet.ledger import book
    from discreet.ledger.texts.request import request_of
    from discreet.ledger.writer import Draft

    ledger, known = opened(path), None
    views, stated = views_of(ledger, count), dp.Pure(epsilon=EPSILON).stated_for(ledger.protects)
    request = request_of(stated, ASKED, "", None, None)
    columns = request.columns()
    with ledger._store.transaction(write=True) as execute:
        at = book.head(execute)
        while at.number < size:
            draft = Draft(execute, at, known)
            for number in range(at.number, min(at.number + TOGETHER, size)):
                views[number % len(views)]._reserve(request, columns, draft)
            for statement in draft.statements():
                execute(*statement)
            at, known = draft.at, draft.known()
    ledger._writer.checkpoint.advance(_seen(ledger, at))
    ledger.close()


def begin(path: Path, size: int) -> None:
    """Write so many charges on everything, as single charges are written."""
    import discreet as dp
    from discreet.ledger import book
    from discreet.ledger.texts.request import request_of

    ledger = opened(path)
    rule, stated = ledger.rule, dp.Pure(epsilon=EPSILON).stated_for(ledger.protects)
    columns = request_of(stated, ASKED, "", None, None).columns() | {"kind": "charge", "analyst": ""}
    insert = f"INSERT INTO entries VALUES ({', '.join('?' for _ in book.EntryRow._fields)})"
    with ledger._store.transaction(write=True) as execute:
        at, spent, cost = book.head(execute), rule.nothing, rule.coordinates(stated)
        while at.number < size:
            spent = rule.add(spent, cost)
            row = book.entry_after(at, columns | {"costs": {"": cost}, "totals": {"": spent}})
            execute(insert, *row)
            at = book.Head(row.number, row.chain)
        execute("UPDATE head SET number = ?, chain = ?", at.number, at.chain)
    ledger._writer.checkpoint.advance(_seen(ledger, at))
    ledger.close()


def copied(path: Path, to: Path) -> None:
    """The same ledger in another file, adopted there without an entry."""
    from discreet.ledger import book, opening
    from discreet.ledger.stores.opening import open_store

    shutil.copy(path, to)
    source = opened(path)
    with source._store.transaction(write=False) as execute:
        at = book.head(execute)
    store: Any = open_store(to, None)
    checkpoint = store.checkpoint_of(source._terms.ledger)
    checkpoint.advance(opening.state_of(store, source._terms.ledger, at))
    source.close()


def _seen(ledger: Any, at: Any) -> Any:
    from discreet.ledger import opening

    return opening.state_of(ledger._store, ledger._terms.ledger, at)


def cold(path: Path, count: int, draw: random.Random) -> tuple[float, float]:
    """Seconds to open a ledger, and for its first charge."""
    import discreet as dp

    part = f"part {draw.randrange(count)}" if count else None
    start = time.perf_counter()
    ledger = opened(path)
    middle = time.perf_counter()
    (ledger._within(part) if part else ledger).charge(dp.Pure(epsilon=EPSILON), asked=ASKED)
    end = time.perf_counter()
    ledger.close()
    return middle - start, end - middle


class Warm:
    """A ledger that stays open, charged in parts that are drawn at random."""

    def __init__(self, path: Path, count: int, draw: random.Random) -> None:
        self.ledger, self.draw = opened(path), draw
        self.views = views_of(self.ledger, count)
        for view in self.views:
            self._charge(view)

    def _charge(self, view: Any) -> None:
        import discreet as dp

        view.charge(dp.Pure(epsilon=EPSILON), asked=ASKED)

    def seconds(self) -> float:
        """Seconds for one charge."""
        view = self.draw.choice(self.views)
        start = time.perf_counter()
        self._charge(view)
        return time.perf_counter() - start


def verified(path: Path) -> float:
    """Seconds for each entry that the check of the whole record takes."""
    ledger = opened(path)
    start = time.perf_counter()
    entries = ledger.verify()
    seconds = time.perf_counter() - start
    ledger.close()
    return seconds / entries


def main() -> None:
    section(
        "Ledgers with parts",
        "ledger.ledger_parts",
        f"""One SQLite file of {SIZE:,} entries with charges on everything, and one whose last {20 * PARTS:,} are on
        {PARTS:,} parts in turn, by rule "basic". Medians of {OPENINGS} openings and of {CHARGES:,} charges, the
        ledgers in turn. {machine()}.""",
    )
    draw = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: Path(folder).resolve() / f"{number}.ledger" for number, name in enumerate(CASES)}
        checked = {name: Path(folder).resolve() / f"{number}-short.ledger" for number, name in enumerate(CASES)}
        start = time.perf_counter()
        without, divided = paths.values()
        begin(without, SIZE - 20 * PARTS)
        copied(without, divided)
        for name, count in CASES.items():
            grow(paths[name], SIZE, count)
            grow(checked[name], VERIFIED, count)
        print(f"made in {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
        times = [{name: cold(paths[name], count, draw) for name, count in CASES.items()} for _ in range(OPENINGS)]
        warm = {name: Warm(paths[name], count, draw) for name, count in CASES.items()}
        rounds = [{name: one.seconds() for name, one in warm.items()} for _ in range(CHARGES)]
        each = {
            name: (
                *(statistics.median(one[name][place] for one in times) for place in (0, 1)),
                statistics.median(one[name] for one in rounds),
                verified(checked[name]),
                paths[name].stat().st_size / SIZE,
            )
            for name in CASES
        }
    table("parts", "open, ms", "first charge, ms", "charge, ms", "verify, µs an entry", "bytes an entry")
    for name, (to_open, first, charge, verify, size) in each.items():
        line(
            name,
            f"{1e3 * to_open:.2f}",
            f"{1e3 * first:.2f}",
            f"{1e3 * charge:.2f}",
            f"{1e6 * verify:.0f}",
            f"{size:.0f}",
        )
    plain, parted = each.values()
    ratios = {
        "to open": parted[0] / plain[0],
        "to open and charge once": sum(parted[:2]) / sum(plain[:2]),
        "to charge": parted[2] / plain[2],
    }
    said = {f"at most {GOAL:g} times as long {what} ({ratio:.2f})": ratio <= GOAL for what, ratio in ratios.items()}
    verdict(said)
    notes(
        f"""The first charge of a process reads what its part has lost, and the sum that tells whether the table of
        parts is the newest; later ones remember it. The check of the whole record was timed on {VERIFIED:,} entries."""
    )


if __name__ == "__main__":
    main()
