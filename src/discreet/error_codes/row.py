"""One row of the table of error codes."""

from __future__ import annotations

from typing import NamedTuple


class Explained(NamedTuple):
    """One row of docs/reference/errors.md."""

    written: str
    why: str
    instead: str
