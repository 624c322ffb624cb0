"""The plan of a question as the gateway shows it: the explanation, whether it is free, and what to ask instead."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from discreet.datasets.database import Database
from discreet.datasets.prepared import Prepared
from discreet.errors import DiscreetError
from discreet.ledger.views import NotBought
from discreet.sql.reading.suggested import suggestions
from discreet.sql.running.answer import Answer

_TRIED = 0.1
"""The ε with which a suggestion is planned if the question says how wrong it may be: its columns have other names."""


def planned(database: Database, sql: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """A question explained. Nothing is spent: the ledger of the database finds what was bought, and charges nothing."""
    try:
        asked = database.prepare(sql, **options)
    except DiscreetError as refused:
        instead = instead_of(database, sql, options, refused)
        if instead is not None:
            refused.more = {"instead": instead}  # type: ignore[attr-defined]
        raise
    explained, left = asked.explain(options.get("confidence", 0.95)), database.ledger.remaining
    facts = {"epsilon": float(asked.epsilon), "bought": is_bought(asked), "left": None if left is None else str(left)}
    return {**explained.data, **facts, "text": str(explained)}


def is_bought(asked: Prepared) -> bool:
    """Whether the answer is there already. A statement that costs nothing was never bought."""
    if isinstance(asked.plan, Answer) or not asked.epsilon:
        return False
    if not asked.finds_bounds:
        return not asked.owed()
    with contextlib.suppress(NotBought):  # what the rest costs is known once its bounds are found
        asked.answer()
        return True
    return False


def instead_of(database: Database, sql: str, options: Mapping[str, Any], refused: DiscreetError) -> str | None:
    """A question close to a refused one that can be answered. None if none is found."""
    with contextlib.suppress(DiscreetError):
        for suggested in suggestions(sql, database.schema, refused):
            with contextlib.suppress(DiscreetError):
                database.prepare(suggested, epsilon=options.get("epsilon") or _TRIED, delta=options.get("delta"))
                return suggested
    return None
