"""Errors are known by their class and their code. The message is for people, and its wording may change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from discreet.errors import DiscreetError


@contextmanager
def refuses(kind: type[DiscreetError], code: str) -> Iterator[pytest.ExceptionInfo[DiscreetError]]:
    """What runs in here raises an error of this class with this code. Yields pytest's ExceptionInfo."""
    with pytest.raises(kind) as caught:
        yield caught
    assert caught.value.code == code, f"{caught.value.code}: {caught.value}"
