"""Whether a machine did anything else while a benchmark ran: what all processes used, less what the benchmark used.

Linux only; elsewhere nothing is known, and nothing is said.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import time
from dataclasses import dataclass
from pathlib import Path

STAT = Path("/proc/stat")
SET_SUBREAPER, GET_SUBREAPER = 36, 37
"""What Linux calls a process that takes over the children of its children when those end: PR_SET_CHILD_SUBREAPER."""


def adopt() -> None:
    """From now on, servers that a benchmark leaves behind are children of this process: their time can be counted."""
    if STAT.exists():
        ctypes.CDLL(None).prctl(SET_SUBREAPER, 1, 0, 0, 0)


def of_the_machine() -> tuple[float, float]:
    """The seconds that all cores have worked since the start, and those that a host kept for other machines."""
    user, nice, system, _idle, _waits, hard, soft, stolen, *_ = map(int, STAT.read_text("ascii").split()[1:11])
    ticks = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + hard + soft) / ticks, stolen / ticks


def reap() -> None:
    """Count the time of adopted children that have ended. Without `adopt`, somebody else may wait for them."""
    adopting = ctypes.c_int()
    if STAT.exists():
        ctypes.CDLL(None).prctl(GET_SUBREAPER, ctypes.byref(adopting), 0, 0, 0)
    if not adopting.value:
        return
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def of_our_own() -> float:
    """The seconds of this process and of all its children that have ended and were waited for."""
    each = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in each)


@dataclass(frozen=True)
class Watch:
    """The clocks when a benchmark begins."""

    began: float
    worked: float
    stolen: float
    own: float

    @classmethod
    def start(cls) -> Watch:
        worked, stolen = of_the_machine() if STAT.exists() else (0.0, 0.0)
        return cls(time.monotonic(), worked, stolen, of_our_own())

    def said(self) -> str:
        """How long it took, and the share of all cores that something else used meanwhile."""
        passed = time.monotonic() - self.began
        took = f"took {passed / 60:.0f} min" if passed >= 90 else f"took {passed:.0f} s"
        if not STAT.exists():
            return took
        worked, stolen = of_the_machine()
        cores = passed * (os.cpu_count() or 1)
        others = max(0.0, worked - self.worked - (of_our_own() - self.own)) / cores
        elsewhere = (stolen - self.stolen) / cores
        return f"{took}; {others:.0%} of the cores were used by other programs, {elsewhere:.0%} by other machines"
