"""A vault with a seeded bug: `python planted.py POLICY …` runs it with the bug that MUTANT names, in all its processes.

With SLOW, a lane takes that many seconds to write an answer that it has drawn and stored.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any

from discreet import door
from discreet.gateway.vault import clock, processes, vault, worker
from discreet.ledger import Ledger
from discreet.releases import Release


def slot_ends_when_ready() -> None:
    """The answer leaves when it is there."""
    real = clock.Lanes.run

    def hurried(self: Any, given: Any, length: float, *steps: Any, **named: Any) -> Any:
        return real(self, given, 0.0, *steps, **named)

    clock.Lanes.run = hurried  # type: ignore[method-assign]


def late_answer_handed_out() -> None:
    """The slot ends, but its lane may go on."""
    real = clock.Lanes._answer

    async def patient(self: Any, lane: Any, slot: Any, given: Any, cut: float) -> None:
        await real(self, lane, slot, given, cut + 60)

    clock.Lanes._answer = patient  # type: ignore[method-assign]


def late_question_not_topped_up() -> None:
    """A late question costs what its lane had charged by then."""
    real = Ledger.discard
    Ledger.discard = lambda self, requests, *, after, **_: real(self, requests, after=after)  # type: ignore


def late_charge_not_discarded() -> None:
    """What a late question drew stays stored, to be had for nothing."""
    real = Ledger.discard

    def only_charge(self: Any, requests: Any, *, after: int, owed: Any = (), **named: Any) -> Any:
        charged = len(self.charges_of(requests, after=after))
        return real(self, [], after=after, owed=owed[charged:], **named)

    Ledger.discard = only_charge  # type: ignore[method-assign]


def charge_after_answer() -> None:
    """Draw and hand out first, charge afterwards."""
    real = door.through

    def hasty(read: Any, mechanism: Any, guarantee: Any, *, ledger: Any, **given: Any) -> Any:
        if type(ledger) is not worker.Watched:
            return real(read, mechanism, guarantee, ledger=ledger, **given)
        value = mechanism._draw(read())
        facts = {name: given.get(name) for name in ("asked", "key", "identity")}
        later = threading.Timer(20, lambda: ledger.charge(guarantee, mechanism=mechanism, **facts))
        later.daemon = True
        later.start()
        return Release(value=value, guarantee=guarantee, receipt="0-soon", _mechanism=mechanism, _sizes={})

    from discreet.sql.running import answering

    answering.through = hasty  # type: ignore[attr-defined]


def cache_shared_between_accounts() -> None:
    """What is remembered for one account is served to all."""
    get, put = vault.Remembered.get, vault.Remembered.put
    vault.Remembered.get = lambda self, name: get(self, ("", *name[1:]))  # type: ignore[method-assign]
    vault.Remembered.put = lambda self, name, frame: put(self, ("", *name[1:]), frame)  # type: ignore[method-assign]


MUTANTS = {
    mutant.__name__: mutant
    for mutant in (
        *(slot_ends_when_ready, late_answer_handed_out, late_question_not_topped_up, late_charge_not_discarded),
        *(charge_after_answer, cache_shared_between_accounts),
    )
}


def main() -> None:
    if name := os.environ.get("MUTANT"):
        MUTANTS[name]()
    if sys.argv[1] == "worker":
        del sys.argv[1]
        if sys.argv[2] == "lane" and os.environ.get("SLOW"):
            real, worker.warm_up = worker.answer_format, lambda **_: None

            def slowly(*given: Any) -> Any:
                time.sleep(float(os.environ["SLOW"]))
                return real(*given)

            worker.answer_format = slowly
        worker.main()
        return
    processes.PROGRAM, vault._PLANNED = (__file__, "worker"), 0
    vault.main()


if __name__ == "__main__":
    main()
