"""Offices on SQLite, and on a real PostgreSQL as the ledger's tests start it."""

from __future__ import annotations

import importlib.util
import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .clinics import Clinic

_spec = importlib.util.spec_from_file_location("ledger_conftest", Path(__file__).parents[1] / "ledger" / "conftest.py")
_ledger = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_ledger)
postgres = _ledger.postgres
_numbers = itertools.count()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where the gateway's database is: a file, or a schema."""
    if request.param == "sqlite":
        yield str(tmp_path / "clinic.gateway")
        return
    url, schema = request.getfixturevalue("postgres"), f"g{os.getpid()}_{next(_numbers)}"
    yield f"{url}#{schema}"
    _ledger._drop(url, schema)


@pytest.fixture
def clinic_with(tmp_path: Path) -> Iterator[Callable[..., Clinic]]:
    """An office with these settings."""
    made: list[Clinic] = []

    def make(**settings: Any) -> Clinic:
        made.append(Clinic(tmp_path, str(tmp_path / "clinic.gateway"), **settings))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def clinic(clinic_with: Callable[..., Clinic]) -> Clinic:
    return clinic_with()


@pytest.fixture
def anywhere(target: str, tmp_path: Path) -> Iterator[Clinic]:
    """An office on SQLite, and one on PostgreSQL."""
    made = Clinic(tmp_path, target)
    yield made
    made.close()
