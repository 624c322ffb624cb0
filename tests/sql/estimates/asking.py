"""A small table under a policy, and what a session of questions on it is charged."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import discreet as dp
from discreet.ledger import Entry

CITIES, SEXES = ["A", "B", "C"], ["f", "m"]
ROWS = [(n % 7, (*CITIES, "elsewhere", None)[n % 5], (*SEXES, None)[n % 3], float(n % 11)) for n in range(330)]
BY_BOTH = "SELECT city, sex, COUNT(*) AS n FROM t GROUP BY city, sex"
BY_CITY = "SELECT city, COUNT(*) AS n FROM t WHERE sex IN ('f', 'm') GROUP BY city"
WOMEN = "SELECT city, COUNT(*) AS n FROM t WHERE sex = 'f' GROUP BY city"
TOTAL = "SELECT COUNT(*) AS n FROM t"


def opened(
    rows: Any = ROWS, *, version: str | None = "1", unit: Any = None, ledger: Any = None, table: Any = None, **more: Any
) -> Any:
    names, kinds = ("pid", "city", "sex", "x"), (pa.int64(), pa.string(), pa.string(), pa.float64())
    data = pa.table(
        {n: pa.array([row[i] for row in rows], k) for i, (n, k) in enumerate(zip(names, kinds, strict=True))}
    )
    columns = {"city": {"choices": CITIES}, "sex": {"choices": SEXES}, "x": {"between": [0, 10]}}
    said = {"source": data, "columns": columns, "version": version, **(table or {})}
    terms = {"path": ":memory:", "epsilon": 1e4, "delta": 0.01, "delta_per_question": 0, **(ledger or {})}
    return dp.connect({"ledger": terms, "unit": unit or {"row": True}, "tables": {"t": said}, **more})


def charges(database: Any) -> list[Entry]:
    return [entry for entry in database.ledger.entries() if entry.kind == "charge"]


def epsilons(database: Any) -> list[float]:
    """What was charged, one after the other."""
    return [float(entry.guarantee.largest_loss) for entry in charges(database)]
