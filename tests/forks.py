"""A process that forks, begun for one test: a worker with the threads of other tests cannot be forked safely."""

from __future__ import annotations

import subprocess
import sys

_SCRIPT = """
import gc, os, signal, sys
{before}
gc.disable()  # what another library takes apart in a child may wait for a thread that is not there
sys.stdout.flush()
if (child := os.fork()) == 0:
    signal.alarm(60)
    try:
        said = ask()
    except Exception as error:
        said = getattr(error, "code", type(error).__name__)
    os.write(1, str(said).encode())
    os._exit(0)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) % 256)
"""


def said_in_a_fork(before: str) -> str:
    """Run `before`, which defines `ask()`, in a fresh interpreter. What `ask()` returns in a forked child, or the code
    of its error.
    """
    script = _SCRIPT.format(before=before)
    run = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script]
    done = subprocess.run(run, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"the child ended with {done.returncode}: {done.stderr[-2000:]}"
    return done.stdout
