"""A vault whose lanes have no room beyond what their engine and threads need: `python little_memory.py …`."""

from __future__ import annotations

import sys


def main() -> None:
    if sys.argv[1] == "worker":
        from discreet.gateway.vault import worker

        del sys.argv[1]
        worker.ROOM = 0
        worker.main()
        return
    from discreet.gateway.vault import processes, vault

    processes.PROGRAM = (__file__, "worker")
    vault.main()


if __name__ == "__main__":
    main()
