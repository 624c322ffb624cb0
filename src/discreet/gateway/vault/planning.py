"""The plan of a question as the gateway shows it: the explanation, whether it is free, and what to ask instead."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from discreet.datasets.database import Database
from discreet.datasets.prepared import Prepared
from discreet.errors import BudgetExhausted, DiscreetError
from discreet.guarantees.guarantee import Guarantee
from discreet.ledger.texts.record import to_text
from discreet.ledger.views import NotBought, Replays
from discreet.sql.reading.suggested import suggestions
from discreet.sql.running.answer import Answer

OWES = "owes"
"""In a plan, for the vault alone: the exact ε that the question would be charged now, what is left now and after it,
and what the ledger would say if it refused it.
"""
LEFT = "left_after"
"""In the reply of a lane, for the vault alone: what remained after an answer that it bought."""
_TRIED = 0.1
"""The ε with which a suggestion is planned if the question says how wrong it may be: its columns have other names."""


def planned(database: Database, sql: str, options: Mapping[str, Any], *, finds: bool = True) -> dict[str, Any]:
    """A question explained. Nothing is spent: the ledger of the database finds what was bought, and charges nothing.
    Whether it was bought is not said to those who may not see answers.
    """
    try:
        asked = database.prepare(sql, **options)
    except DiscreetError as refused:
        instead = instead_of(database, sql, options, refused)
        if instead is not None:
            refused.more = {"instead": instead}  # type: ignore[attr-defined]
        raise
    spends = getattr(database.ledger, "spends", True)  # who has no budget is told nothing of that of the data set
    left = database.planner.ledger.remaining
    bought = finds and is_bought(asked)
    owed = [] if bought else asked.owed() if finds else asked.charges
    explained = asked.explain(options.get("confidence", 0.95), budget=spends, finds=finds, owed=owed)
    after, exceeds = (left, None) if not spends or not owed else _after(database, owed)
    facts = {"epsilon": float(asked.epsilon), "bought": bought, "text": str(explained), "spends": spends}
    facts |= {"fits": exceeds is None, "left": _shown(left), "after": None if exceeds else _shown(after)}
    facts[OWES] = {
        "epsilon": str(asked.epsilon_of(owed)),
        "left": None if left is None else to_text(left),
        "after": None if after is None else to_text(after),
        "exceeds": exceeds,
    }
    return {**explained.data, **facts}


def _after(database: Database, owed: Sequence[Guarantee]) -> tuple[Guarantee | None, str | None]:
    """What would remain after all that is owed, and why it is refused if it does not fit."""
    try:
        return database.planner.ledger.after(*owed), None
    except BudgetExhausted as refused:
        return None, str(refused)


def _shown(guarantee: Guarantee | None) -> str | None:
    return None if guarantee is None else str(guarantee)


def is_bought(asked: Prepared) -> bool:
    """Whether the answer is there already. A statement that costs nothing was never bought."""
    if isinstance(asked.plan, Answer) or not asked.epsilon:
        return False
    if not asked.finds_bounds:
        return not asked.owed()
    if not isinstance(asked.planner.ledger, Replays):  # another ledger would charge
        return False
    with contextlib.suppress(NotBought, BudgetExhausted):  # what the rest costs is known once its bounds are found
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
