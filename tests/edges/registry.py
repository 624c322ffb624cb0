"""Every public call that takes data, with what an odd record may change in it."""

from __future__ import annotations

from . import calls_queries
from .checking import Call

CALLS: list[Call] = [*calls_queries.CALLS]
