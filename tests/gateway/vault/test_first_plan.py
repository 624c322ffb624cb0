"""The first question of a worker is planned as fast as later ones, where answers leave in slots."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from discreet.gateway.vault import vault, worker
from discreet.gateway.vault.vault import open_vault
from discreet.gateway.vault.worker import Worker

from ..house import House

LOADED = """
import contextlib, sys
from discreet.gateway.vault import worker

sys.meta_path.insert(0, worker.WithoutPandas)
worker.warm_up(in_slots=bool(int(sys.argv[1])))
visits = {
    "source": {"id": [1, 2], "city": ["a", "b"], "cost": [1.0, 2.0]},
    "rows_per_person": 3,
    "columns": {"id": {"type": "integer"}, "city": {"choices": ["a", "b"]}, "cost": {"between": [0, 10]}},
}
ledger = {"path": worker.IN_MEMORY, "epsilon": 10, "delta": 1e-6}
policy = {"ledger": ledger, "unit": {"person": "id"}, "tables": {"visits": visits}}
with contextlib.closing(worker.connect(policy)) as database:
    before = set(sys.modules)
    text = "SELECT city, COUNT(*) AS n, AVG(cost) AS c FROM visits WHERE cost <= 9 GROUP BY city"
    database.prepare(text, epsilon=1, delta=1e-7).owed()
print(*(name for name in set(sys.modules) - before if name.startswith(("numpy", "scipy"))))
"""


@pytest.mark.parametrize("in_slots", [False, True])
def test_what_plans_need_is_loaded_before_the_first(in_slots: bool) -> None:
    """Otherwise it counts as the time of the question, which is refused in a slot of 2 s."""
    command = [sys.executable, "-c", LOADED, str(int(in_slots))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ("scipy.special" in done.stdout.split()) is not in_slots
    assert not (in_slots and done.stdout.strip())


@pytest.mark.parametrize("seconds", [0, 5])
def test_workers_are_told_whether_answers_leave_in_slots(
    seconds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = House(tmp_path / "house", f'http = "127.0.0.1:0"\nanswer_after = {f"{seconds}s" if seconds else 0!r}\n')
    openings: list[Any] = []

    class Opened:
        def __init__(self, *given: Any) -> None:
            openings.append(given[-1])

    monkeypatch.setattr(vault, "Vault", Opened)
    open_vault(house.policy)
    warmed: list[Any] = []
    monkeypatch.setattr(worker, "warm_up", lambda **given: warmed.append(given))
    made: Any = None
    Worker(made, "reader", openings[0])
    assert warmed == [{"in_slots": seconds > 0}]
