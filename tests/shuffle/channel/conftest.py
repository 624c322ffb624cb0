"""Polls on SQLite, and on a real PostgreSQL as the ledger's tests start it."""

from __future__ import annotations

import importlib.util
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from .polls import Poll, make_poll

for package in ("uvicorn", "httpx"):
    pytest.importorskip(package, reason='the channel needs pip install "discreet[shuffle]"')

_spec = importlib.util.spec_from_file_location("ledger_conftest", Path(__file__).parents[2] / "ledger" / "conftest.py")
_ledger = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_ledger)
postgres = _ledger.postgres
_numbers = itertools.count()


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str, str] | None]:
    """Where the shuffler, the analyzer and its ledger keep things; None is beside the task."""
    if request.param == "sqlite":
        yield None
        return
    url = request.getfixturevalue("postgres")
    schemas = [f"c{os.getpid()}_{next(_numbers)}" for _ in range(2)]
    # the ledger stays a file: tests/ledger has it on PostgreSQL
    yield (*(f"{url}#{schema}" for schema in schemas), str(tmp_path / "poll.ledger"))
    for schema in schemas:
        _ledger._drop(url, schema)


@pytest.fixture
def poll(place: tuple[str, str, str] | None, tmp_path: Path) -> Poll:
    """A task with a minimum of ten reports."""
    return make_poll(tmp_path, place)
