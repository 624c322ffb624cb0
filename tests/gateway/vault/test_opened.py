"""A process of the vault that does not open the data: it ended, or it is only slow."""

from __future__ import annotations

import asyncio

import pytest

from discreet.errors import ServiceUnavailable
from discreet.gateway.vault import processes

from ...refusing import refuses


@pytest.mark.parametrize(
    ("program", "is_slow"), [("raise SystemExit(1)", False), ("import time; time.sleep(60)", True)]
)
def test_a_process_that_is_slow_is_told_from_one_that_ended(
    program: str, is_slow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "PROGRAM", ("-c", program))
    monkeypatch.setattr(processes, "PATIENCE", 0.0 if is_slow else 60.0)
    with refuses(ServiceUnavailable, "gateway-unavailable") as refused:
        asyncio.run(processes.Process("lane", {}).start())
    assert ("again in a moment" in str(refused.value)) == is_slow
