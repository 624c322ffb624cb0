"""The program of a first run, in the place of the vault: it reads names and types of columns, and serves the set-up."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

from discreet.datasets.sources import read_source
from discreet.errors import DiscreetError
from discreet.gateway.frames import serve_frames
from discreet.gateway.isolation import harden
from discreet.gateway.setup.office import FirstRun

BEGIN = "begin"
"""What it prints once the policy is written."""


async def serve_first_run(first_run: FirstRun, path: Path, desk: int) -> None:
    """Serve at a Unix socket until the process is told to stop."""
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    server = await serve_frames(path, first_run.handle, {desk, os.getuid()}, mode=0o660)
    print("ready", flush=True)
    await stopped.wait()
    server.close()


def main() -> None:
    """Serve a first run. What it is about comes over standard input, because a URL may hold a password."""
    harden(ends_with_parent=True)
    os.umask(0o077)
    opening = json.load(sys.stdin)
    policy = Path(opening["policy"])
    try:
        source = read_source(opening["data"], policy, **opening["known"])
        first_run = FirstRun(
            source=source,
            policy=policy,
            gateway={name: opening[name] for name in ("http", "users") if opening[name] is not None},
            link=opening["link"],
            begin=lambda: print(BEGIN, flush=True),
        )
        try:
            asyncio.run(serve_first_run(first_run, Path(opening["socket"]), opening["desk"]))
        finally:
            if not policy.exists():
                source.remove_copies()
    except DiscreetError as error:
        print(f"error [{error.code}]: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
