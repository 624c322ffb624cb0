"""From a policy to a database on the command line: whoever asks is told if a new ledger begins."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet.datasets.database import Database


def connected(policy: str | None, analyst: str | None) -> Database:
    """The database of a policy. If its ledger did not exist before, that is said on standard error."""
    from discreet.datasets.connect import connect
    from discreet.datasets.discovery import find_policy
    from discreet.datasets.ledgers import beginning, mistyped
    from discreet.datasets.policy import load

    known = load(find_policy() if policy is None else policy)
    begun, other = beginning(known), mistyped(known)
    database = connect(known, analyst=analyst)
    if begun:
        print(begun, *([f"WARNING: {other}"] if other else []), sep="\n", file=sys.stderr)
    return database
