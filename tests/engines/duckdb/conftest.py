"""Tests of the engine itself make its DuckDB each time, as users do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ... import lent


@pytest.fixture(scope="module", autouse=True)
def own_instances() -> Iterator[None]:
    """No instance of another engine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lent, "LENDS", False)
        yield
