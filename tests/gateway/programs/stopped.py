"""A vault, or one of its lanes, that is killed at a step: `python stopped.py STEP …` runs the program that follows.

A step is where and when, such as `lane:before keep`. It happens once: the file STEP_DONE marks that it did.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

STEP, DONE = os.environ.get("STEP", ""), Path(os.environ.get("STEP_DONE", ""))


def dies(owner: Any, name: str, step: str) -> None:
    """Let a function end the process, before or after it does its work."""
    where, _, what = STEP.partition(" ")
    if what != step:
        return
    real = getattr(owner, name)

    def killed(*given: Any, **named: Any) -> Any:
        if where.endswith("before"):
            die()
        found = real(*given, **named)
        die()
        return found

    setattr(owner, name, killed)


def die() -> None:
    """Kill this process, unless that was done before."""
    try:
        DONE.touch(exist_ok=False)
    except FileExistsError:
        return
    if STEP.startswith("all"):  # a lane and its vault, as when the power fails
        os.kill(os.getppid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    where = STEP.partition(":")[0]
    if sys.argv[1] == "worker":
        from discreet.gateway.vault import worker
        from discreet.ledger.views import Watched

        del sys.argv[1]
        if where in ("lane", "all") and sys.argv[2] == "lane":
            worker.warm_up = lambda **_: None
            dies(Watched, "charge", "charge")
            dies(Watched, "keep", "keep")
            dies(worker, "answer_format", "format")
        worker.main()
        return
    from discreet.gateway.books import limits, questions
    from discreet.gateway.vault import processes, tiles, vault

    processes.PROGRAM = (__file__, "worker")
    if where == "vault":
        dies(limits, "reserve", "reserve")
        dies(questions, "note_question", "note")
        dies(vault.Purchase, "settle", "settle")
        dies(tiles, "_set_aside", "set aside")
        dies(tiles, "_renew", "renew")
    vault.main()


if __name__ == "__main__":
    main()
