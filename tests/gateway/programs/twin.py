"""A vault that is one of several on one PostgreSQL: `python twin.py POLICY …` runs the vault, with short limits.

With STEP=charge, a lane that has the lock of the ledger stops with its vault, as if their machine was cut off: once,
and not before the file STEP_DONE.armed exists.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from discreet.ledger import book
from discreet.ledger.stores import postgres

IDLE = 3.0
"""Instead of 40 s."""


def stop_before_charge() -> None:
    """Let a charge stop this process and the vault, inside the transaction."""
    real, done = book.entry_after, Path(os.environ["STEP_DONE"])

    def stopped(*given: Any) -> Any:
        if done.with_suffix(".armed").exists() and not done.exists():
            done.touch()
            os.kill(os.getppid(), signal.SIGSTOP)
            os.kill(os.getpid(), signal.SIGSTOP)
        return real(*given)

    book.entry_after = stopped


def main() -> None:
    postgres.IDLE = IDLE
    if sys.argv[1] == "worker":
        from discreet.gateway.vault import worker

        del sys.argv[1]
        if os.environ.get("STEP") == "charge" and sys.argv[2] == "lane":
            Path(os.environ["STEP_DONE"]).with_suffix(".lane").write_text(str(os.getpid()))
            stop_before_charge()
        worker.main()
        return
    from discreet.gateway.vault import processes, vault

    processes.PROGRAM = (__file__, "worker")
    vault.main()


if __name__ == "__main__":
    main()
