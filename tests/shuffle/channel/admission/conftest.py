"""Polls whose people are admitted by tickets."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..polls import Poll, make_poll, signer


@pytest.fixture
def poll(tmp_path: Path) -> Poll:
    """A poll with an issuer."""
    return make_poll(tmp_path, admission_by=signer())
