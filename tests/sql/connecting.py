"""A database over Arrow tables, and the rows of an answer without noise."""

from __future__ import annotations

from typing import Any

import discreet as dp
from discreet import testing

PERSON = {"person": "pid"}


def connected(tables: dict[str, Any], unit: Any = None, limit: int = 1000, **options: Any) -> Any:
    """Tables of Arrow data under a policy: `tables` has the data and what is said of them."""
    said = {
        name: {"source": data, **({"rows_per_person": 20} if unit is None else {}), **facts}
        for name, (data, facts) in tables.items()
    }
    ledger = {"path": ":memory:", "epsilon": limit, "delta": 0.01, **options}
    return dp.connect({"ledger": ledger, "unit": unit or PERSON, "tables": said})


def rows_of(database: Any, text: str, **given: Any) -> list[tuple[Any, ...]]:
    with testing.no_noise():
        answer = database.sql(text, **({"epsilon": 20} | given))
    return [tuple(row) for row in answer.as_json()["rows"]]
