"""Every public call that takes data, with what an odd record may change in it."""

from __future__ import annotations

from . import calls_learn, calls_local, calls_queries, calls_studies, calls_tables
from .checking import Call

CALLS: list[Call] = [*calls_queries.CALLS, *calls_learn.CALLS, *calls_local.CALLS, *calls_studies.CALLS, *calls_tables.CALLS]
