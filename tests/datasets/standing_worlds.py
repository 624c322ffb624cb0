"""Every small history of one person, and a clinic for standing questions."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

import discreet as dp
from discreet.datasets.database import Database

Q = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
LATER = datetime.date(2024, 12, 1)
CITIES = ["A", "B"]


def visits(many: int = 40) -> pa.Table:
    """People who come every month from January to April, each to one of two cities."""
    rows = [
        (p, datetime.date(2024, m, 1 + p % 28), CITIES[(p + m) % 2], p % 10) for p in range(many) for m in (1, 2, 3, 4)
    ]
    kinds = (pa.int64(), pa.date32(), pa.string(), pa.int64())
    names = ("pid", "day", "city", "cost")
    return pa.table({n: pa.array(c, k) for n, c, k in zip(names, zip(*rows, strict=True), kinds, strict=True)})


def policy_of(unit: dict[str, Any], path: Path | str, source: Any = None, **more: Any) -> dict[str, Any]:
    """A policy with blocks of one month."""
    table = {"source": visits() if source is None else source, "time": {"column": "day", "block": "month"}}
    table["columns"] = {"city": {"choices": CITIES}, "cost": {"between": [0, 10]}}
    if "person" in unit:
        table |= {"rows_per_person": 2}
    ledger = {"path": str(path), "epsilon": 10, "delta": 1e-5, "delta_per_question": more.pop("delta", 1e-6)}
    return {"ledger": ledger, "unit": unit, "tables": {"visits": table | more}}


def clinic(unit: dict[str, Any], path: Path | str = ":memory:", source: Any = None, **more: Any) -> Database:
    return dp.connect(policy_of(unit, path, source, **more))


MONTHLY = {"person": "pid", "per": "month"}
PERSON = {"person": "pid"}
ROW = {"row": True}
