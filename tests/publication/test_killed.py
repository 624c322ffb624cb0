"""A publication that is killed at any point is run again with the same plan, and nothing is paid or drawn twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import discreet as dp
from discreet.publication import verify_publication

KILLED = """
import json, os, signal, sys
from types import SimpleNamespace
import discreet as dp
from discreet.ledger.ledger import Ledger
from discreet.publication import writing
plan, out, point, times = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
left = [times]

def dying(call, *, after):
    def run(*args, **given):
        left[0] -= 1
        if left[0] == 0 and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        found = call(*args, **given)
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return found
    return run

match point:
    case "charged": Ledger.charge = dying(Ledger.charge, after=True)
    case "drawn": Ledger.keep = dying(Ledger.keep, after=False)
    case "stored": Ledger.keep = dying(Ledger.keep, after=True)
    case "half written": writing.os = SimpleNamespace(**{**vars(os), "fsync": dying(os.fsync, after=True)})
    case "before the move": writing.os = SimpleNamespace(**{**vars(os), "rename": dying(os.rename, after=False)})
    case "after the move": writing.os = SimpleNamespace(**{**vars(os), "rename": dying(os.rename, after=True)})
dp.publish(plan, out)
"""
POINTS = [
    *(("charged", 2), ("half written", 3), ("charged", 1), ("drawn", 1), ("drawn", 2), ("stored", 1), ("stored", 2)),
    *(("before the move", 1), ("after the move", 1)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("point", "times"), POINTS)
def test_a_killed_run_goes_on_without_paying_twice(
    clinic: Path, plan: Callable[..., dict[str, Any]], point: str, times: int
) -> None:
    words = plan("by_city", "people")
    command = [sys.executable, "-c", KILLED, json.dumps(words), str(clinic / "out"), point, str(times)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == -signal.SIGKILL, found.stderr
    if point != "after the move":
        assert not (clinic / "out").exists(), "all of it is there, or nothing"
    kept = answers(clinic)
    made = dp.publish(words, clinic / "out")
    assert made.already == (point == "after the move")
    checked = verify_publication(clinic / "out", clinic / "clinic.ledger")
    assert checked.holds, str(checked)
    after = answers(clinic)
    assert len(after) == 2, "each part is charged once"
    assert {**after, **kept} == after, "what was stored is what is published"
    assert not list(clinic.glob(".out.*")), "what a killed run left behind is removed"


def answers(folder: Path) -> dict[int, str]:
    """The stored answer of each charge."""
    ledger = dp.Ledger.open(folder / "clinic.ledger")
    found = {entry.number: str(ledger.answer(entry)) for entry in ledger.entries() if entry.state == "answered"}
    charged = [entry for entry in ledger.entries() if entry.kind == "charge"]
    ledger.close()
    assert len(charged) <= 2
    return found


def test_what_another_run_is_writing_is_left_alone(clinic: Path, plan: Callable[..., dict[str, Any]]) -> None:
    theirs, dead = clinic / f".out.{os.getppid()}.part", clinic / ".out.999999999.part"
    other = clinic / ".out.mine.part"
    for folder in (theirs, dead, other):
        folder.mkdir()
    dp.publish(plan("by_city"), clinic / "out")
    assert theirs.exists()
    assert other.exists()
    assert not dead.exists()
