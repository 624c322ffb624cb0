"""Seeded bugs in publications: each is planted, and a check sees it."""

from __future__ import annotations

from pathlib import Path

import pytest

from .bugs import BUGS, Plan


@pytest.mark.some_quick(3)
@pytest.mark.parametrize("name", BUGS)
def test_a_seeded_bug_is_seen(name: str, clinic: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, check = BUGS[name]
    plant(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check(clinic, plan)
