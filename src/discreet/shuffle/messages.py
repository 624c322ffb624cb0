"""Received messages: integers, each read by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.mechanisms.reports.local_records import is_column
from discreet.rows import whole_of
from discreet.rows.containers import Data

Ints = NDArray[np.int64]


class Once:
    """The result of a function, which is called when it is first needed, and only once."""

    def __init__(self, bring: Callable[[], Any]) -> None:
        self._bring, self._brought = bring, list[Any]()

    def __call__(self) -> Any:
        if not self._brought:
            self._brought.append(whole_messages(self._bring()))
        return self._brought[0]


def whole_messages(messages: Data) -> Ints:
    """Messages as integers, each by itself. −1 for a value that is not an integer."""
    if isinstance(messages, np.ndarray) and messages.dtype.kind in "iu":
        flat = messages.reshape(-1)
        return np.where(flat < 2**62, flat, 0).astype(np.int64) - (flat >= 2**62)
    if isinstance(messages, np.ndarray) and messages.dtype.kind != "O":
        raise InvalidArgument(
            "Messages must be whole numbers. Pass what encode or encode_many returned.", code="foreign-reports"
        )
    if not is_column(messages):
        raise InvalidArgument(
            "Messages must come in a list or an array. Pass what encode or encode_many returned.",
            code="foreign-reports",
        )
    listed = messages.reshape(-1).tolist() if isinstance(messages, np.ndarray) else list(messages)
    return np.fromiter(map(_whole_message, listed), dtype=np.int64, count=len(listed))


def _whole_message(one: Any) -> int:
    if not issubclass(type(one), int | np.integer) or issubclass(type(one), bool | np.timedelta64):
        return -1
    whole = whole_of(one)
    return whole if whole is not None and 0 <= whole < 2**62 else -1
