"""Exact numbers as plain JSON values, and the one way to write them: what is hashed is the same on every machine."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any


def plain(value: Any) -> Any:
    """A value as JSON has it. A fraction is {"fraction": ["1", "3"]}, so that no reader rounds it."""
    if isinstance(value, Fraction):
        return {"fraction": [str(value.numerator), str(value.denominator)]}
    if isinstance(value, tuple | list):
        return [plain(one) for one in value]
    json.dumps(value)  # whatever else it is must be plain
    return value


def from_plain(value: Any) -> Any:
    """The value that `plain` wrote. Lists are tuples."""
    if isinstance(value, dict) and set(value) == {"fraction"}:
        return Fraction(int(value["fraction"][0]), int(value["fraction"][1]))
    return tuple(from_plain(one) for one in value) if isinstance(value, list) else value


def canonical(value: Any) -> bytes:
    """One way to write a JSON value: sorted names, no spaces, plain ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
