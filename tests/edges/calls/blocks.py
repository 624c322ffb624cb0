"""Blocks of time: whatever the day of one row is, it counts in one part at most, and changes no other."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import discreet as dp

from ..checking import Call
from ..containers import Container, arrow_of, objects, of_plain, table_of_objects
from ..distances import total
from .studies import objects_of

NAMES = ("who", "day", "came", "x")
DAYS = [datetime.date(2024, 1, 31), datetime.date(2024, 2, 1), datetime.date(2024, 3, 15), None]
ROWS = [["p" + str(k), DAYS[k % 4], DAYS[k % 3], [0.5, 0.25, 1][k % 3]] for k in range(60)]
"""Who, when, when it came in, and a number of [0, 1]."""
PARTS = ("2024-01", "2024-02", "2024-03", "null", "0001-01", "9999-12")
TEXT = "SELECT COUNT(*) AS k, SUM(x) AS s FROM visits"


def by_column(make: Any, kinds: dict[str, Any]) -> Container:
    def made(rows: list[Any]) -> Any:
        table = table_of_objects(rows, 4)
        return make({name: kinds.get(name, kinds["any"])(list(table[:, k])) for k, name in enumerate(NAMES)})

    return of_plain(made)


ARROW = {
    "who": lambda c: arrow_of(c, pa.string()),
    "day": lambda c: arrow_of(c, pa.date32()),
    "came": lambda c: arrow_of(c, pa.date32()),
    "x": lambda c: arrow_of(c, pa.float64()),
    "any": list,
}
CONTAINERS = {
    "dict of lists": by_column(dict, {"any": list}),
    "dict of objects": by_column(dict, {"any": objects}),
    "pandas objects": by_column(pd.DataFrame, {"any": objects_of}),
    "arrow": by_column(pa.table, ARROW),
}
ODD_DAYS = {
    "infinite": np.datetime64("294247-01-10"),
    "before Christ": np.datetime64("-4713-11-24"),
    "not a time": np.datetime64("NaT"),
    "text of a day": "2024-01-31",
    "text of no day": "2024-02-30",
    "infinity": "infinity",
    "a zone at the border": datetime.datetime(
        2024, 1, 31, 23, 59, tzinfo=datetime.timezone(datetime.timedelta(hours=-12))
    ),
    "the last moment": datetime.datetime.max,
    "the first day": datetime.date.min,
    "a moment of pandas": pd.Timestamp("2024-02-01 00:00:00+14:00"),
    "a number": 20240131,
    "not a number": float("nan"),
    "a huge number": 10**30,
    "missing": None,
    "a list": [2024, 1, 31],
}
WAYS: dict[str, Any] = {
    "day": lambda odd: ["q", odd, DAYS[0], 0.5],
    "came": lambda odd: ["q", DAYS[0], odd, 0.5],
    "who": lambda odd: [odd, DAYS[0], DAYS[0], 0.5],
    "record": lambda odd: odd,
}
EXTREMES = (["q", DAYS[0], DAYS[0], 1.0], ["q", None, None, 0.0])


def in_parts(late: str | None, **unit: Any) -> Any:
    """What each part says, one after the other, and all of them together."""

    def run(source: Any) -> Any:
        time = {"column": "day", "block": "month"} | ({} if late is None else {"arrived": "came", "late": late})
        columns = {"who": {"type": "text"}, "day": {"type": "date"}, "came": {"type": "date"}}
        columns |= {"x": {"type": "number", "between": [0, 1]}}
        visits = {"source": source, "rows_per_person": 1, "time": time, "columns": columns}
        policy = {"ledger": {"path": ":memory:", "epsilon": 1000}, "unit": unit, "tables": {"visits": visits}}
        database = dp.connect(policy)
        answers = [one.sql(TEXT, epsilon=1).table for one in map(database.part, PARTS)]
        return [[str(table.schema), *table.to_pylist()] for table in answers]

    return run


def standing(*, totals: bool, **unit: Any) -> Any:
    """What a standing question says of each block."""

    def run(source: Any) -> Any:
        columns = {"who": {"type": "text"}, "day": {"type": "date"}, "came": {"type": "date"}}
        columns |= {"x": {"type": "number", "between": [0, 1]}}
        time = {"column": "day", "block": "month"}
        visits = {"source": source, "rows_per_person": 1, "time": time, "columns": columns}
        ledger = {"path": ":memory:", "epsilon": 1000, "delta": 0.1, "delta_per_question": 1e-3}
        database = dp.connect({"ledger": ledger, "unit": unit, "tables": {"visits": visits}})
        asked = {"every": "month", "times": 3, "epsilon": 100, "first": "2024-01", "totals": totals}
        opened = database.standing(TEXT, **asked)
        opened.run(today=datetime.date(2024, 4, 1))
        return [[str(one.table.schema), *one.table.to_pylist()] for one in opened.answers.values()]

    return run


SHARED: dict[str, Any] = {
    "base": ROWS,
    "moved": total,
    "most": 2,
    "containers": CONTAINERS,
    "ways": WAYS,
    "extremes": EXTREMES,
}
MONTHLY = {"person": "who", "per": "month"}
CALLS: list[Call] = [
    Call(name="Database.part", covers=("Database.part",), run=in_parts(None, **MONTHLY), heavy=3, **SHARED),
    Call(name="Database.part, odd days", covers=("Database.part",), run=in_parts(None, **MONTHLY),
         odd=ODD_DAYS, heavy=2, **SHARED),
    Call(name="Database.part, odd days that came late", alike=True, covers=("Database.part",), odd=ODD_DAYS, heavy=2,
         run=in_parts("next", **MONTHLY), **SHARED),
    Call(name="Database.standing", covers=("Database.standing", "datasets.Standing.run"),
         run=standing(totals=False, **MONTHLY), odd=ODD_DAYS, heavy=2, **SHARED),
    Call(name="Database.standing, totals", covers=("Database.standing",), run=standing(totals=True, **MONTHLY),
         odd=ODD_DAYS, heavy=2, **SHARED),
]  # fmt: skip
