"""Without a seeded bug, every check of publications passes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .bugs import BUGS, Plan


@pytest.mark.some_quick(1)
@pytest.mark.parametrize("check", dict.fromkeys(check for _, check in BUGS.values()))
def test_every_check_passes(check: Callable[[Path, Plan], None], clinic: Path, plan: Plan) -> None:
    check(clinic, plan)
