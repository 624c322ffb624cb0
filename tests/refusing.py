"""Errors are known by their class and their code. The message is for people, and its wording may change."""

from __future__ import annotations

from types import TracebackType

import pytest

from discreet.errors import DiscreetError


class refuses:
    """What runs in here raises an error of this class with this code. Yields pytest's ExceptionInfo.

    A class, as the frame of a generator would be part of the traceback and keep the error and all it holds alive.
    """

    def __init__(self, kind: type[DiscreetError], code: str) -> None:
        self._raises, self._code = pytest.raises(kind), code

    def __enter__(self) -> pytest.ExceptionInfo[DiscreetError]:
        return self._raises.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        caught = self._raises.__exit__(kind, error, traceback)
        found = getattr(error, "code", None)
        assert not caught or found == self._code, f"{found}: {error}"
        return caught
