"""Cubes in SQL: the statement for rows by several keys, and by all levels of hierarchies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from discreet.errors import InvalidArgument

Cross = Sequence[str | Sequence[str]]
"""Keys, and hierarchies of keys from coarse to fine: [("region", "city"), "sex"]."""


def crossed(by: Any) -> list[tuple[str, ...]]:
    """The hierarchies of a cube. A key alone is one of a single level."""
    listed = [by] if isinstance(by, str) else list(by) if isinstance(by, list | tuple) else []
    found = [(one,) if isinstance(one, str) else tuple(one) if isinstance(one, list | tuple) else () for one in listed]
    keys = [key for one in found for key in one]
    if not keys or not all(found) or not all(isinstance(key, str) for key in keys):
        raise InvalidArgument(
            'A cube needs keys, such as ["sex", "city"], and hierarchies from coarse to fine: [("region", "city"), '
            '"sex"].',
            code="cube-keys",
        )
    if len(set(keys)) < len(keys):
        raise InvalidArgument("A cube names a key twice. Name each once.", code="duplicates")
    return found


def all_levels(hierarchies: Sequence[Sequence[str]]) -> str:
    """The GROUP BY clause with all combinations of the levels of hierarchies, whose keys are written in SQL."""
    rollups = (f"ROLLUP ({', '.join(keys)})" for keys in hierarchies)
    return f" GROUP BY {', '.join(rollups)}"
