"""A poll of every kind. It is calibrated when a test first needs it: that takes a while."""

from __future__ import annotations

from functools import cache
from typing import Any

import discreet as dp

POLLS = ("bit", "two messages", "fakes", "response", "parallel", "inverted", "hashed", "digits", "split and mix")


@cache
def poll(
    name: str, clients: int = 300, epsilon: float = 1, delta: float = 1e-6, choices: tuple[Any, ...] = ("x", "y", "z")
) -> Any:
    """The poll of one kind: of a bit, of `choices` or of a number in [0, 1]."""
    terms: dict[str, Any] = {"clients": clients, "epsilon": epsilon, "delta": delta}
    match name:
        case "bit":
            return dp.shuffle.bit_sum(**terms)
        case "two messages":
            return dp.shuffle.bit_sum(**terms, method=name)
        case "digits":
            return dp.shuffle.sum(between=(0, 1), **terms, planes=3)
        case "split and mix":
            return dp.shuffle.sum(between=(0, 1), **terms, method=name)
    return dp.shuffle.histogram(choices=list(choices), **terms, method=name)
