"""Answers from answers and units of a few rows on every engine: the same numbers as DuckDB's, for the same price."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import discreet as dp
from discreet import testing

from .test_published_and_standing import Place, in_files, place, session  # noqa: F401 (fixtures)

CITIES = ["Rome", "Oslo", "Bonn", "Çeşme"]
ROWS = [
    *((city, age, (age * 7 + len(city)) % 5 > 1) for city in CITIES for age in (1, 2, 3, 5)),
    *(("Rome ", 2, True), ("rome", 2, True), ("çeşme", 1, False), ("", 3, True), ("Rome", 4, False)),
    *((None, 2, True), ("Oslo", None, None), ("Bonn", 2, None)),
]
ASKED = (
    ("SELECT city, age, COUNT(*) AS n FROM t GROUP BY city, age", 1.0),
    ("SELECT COUNT(*) AS n FROM t WHERE city = 'Rome' AND age IN (1, 2, 3, 5)", 0.1),
    ("SELECT COUNT(*) AS n FROM t WHERE city IN ('Rome', 'Çeşme') AND age <= 2", 0.1),
    ("SELECT COUNT(*) AS n FROM t WHERE city <> 'Rome' AND flu", 0.5),
    ("SELECT SUM(age) AS n FROM t WHERE city = 'Oslo'", 0.5),
    ("SELECT age, COUNT(*) AS n FROM t WHERE city IS NULL GROUP BY age", 0.5),
    ("SELECT COUNT(*) AS n FROM t WHERE lower(city) = 'rome'", 0.5),
)
UNITS: dict[str, dict[str, Any]] = {
    "row": {"row": True},
    "three rows": {"rows": 3},
    "rows in groups": {"rows": 2, "groups": 2, "by": "city"},
}


def asked(found: dict[str, Any], unit: dict[str, Any], spark: Any, ledger: Path) -> list[Any]:
    """What every question says and costs, one after the other, and from how many answers it follows."""
    columns: dict[str, Any] = {
        "city": {"choices": CITIES},
        "age": {"choices": [1, 2, 3, 5]},
        "flu": {"type": "boolean"},
    }
    table = {"source": found["sources"]["t"], "version": "1", "columns": columns}
    words = {"ledger": {"path": str(ledger), "epsilon": 100}, "unit": unit, "tables": {"t": table}}
    database = dp.connect(words | {"answers": {"wide": True}, "engine": found["engine"]}, spark=spark)
    shown = []
    with testing.no_noise():
        for text, epsilon in ASKED:
            answer = database.sql(text, epsilon=epsilon)
            shown.append([answer.table.to_pylist(), str(answer.cost), len(answer.derived_from), len(answer.notes)])
    costs = [str(entry.guarantee) for entry in database.ledger.entries() if entry.kind == "charge"]
    database.close()
    return [*shown, costs]


@pytest.mark.some_quick(3)
@pytest.mark.parametrize("unit", UNITS)
def test_every_engine_has_the_same_estimates(unit: str, place: Place, session: Any, tmp_path: Path) -> None:  # noqa: F811
    data = {"t": pa.table({name: [row[at] for row in ROWS] for at, name in enumerate(("city", "age", "flu"))})}
    here, there = in_files(data, tmp_path), place(data)
    expected = asked(here, UNITS[unit], None, tmp_path / "a.ledger")
    assert asked(there, UNITS[unit], session, tmp_path / "b.ledger") == expected
    assert any(one[2] for one in expected[:-1]) == (unit == "row")  # rows that come together are in no estimate
