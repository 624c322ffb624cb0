"""The same policy on DuckDB and on Spark: only [engine] changes. Needs Java 17 and `pip install "discreet[spark]"`."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import discreet as dp

QUESTION = "SELECT city, COUNT(*) AS visits, AVG(cost) AS cost FROM visits GROUP BY city ORDER BY city"


def policy(folder: Path, engine: dict) -> dict:
    """The policy of the data owner."""
    return {
        "ledger": {"path": str(folder / f"{engine['kind']}.ledger"), "epsilon": 10, "delta": 1e-6},
        "unit": {"person": "patient_id"},
        "engine": engine,
        "tables": {
            "visits": {
                "source": str(folder / "visits"),
                "rows_per_person": 5,
                "columns": {"city": {"choices": ["Acre", "Haifa", "Ljubljana"]}, "cost": {"between": [0, 500]}},
            }
        },
    }


def main() -> None:
    draw = np.random.default_rng(7)
    rows = 20_000
    visits = pa.table(
        {
            "patient_id": draw.integers(0, 8000, rows),
            "city": draw.choice(["Acre", "Haifa", "Ljubljana"], rows, p=[0.2, 0.3, 0.5]),
            "cost": draw.gamma(2, 60, rows).round(2),
        }
    )
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "visits").mkdir()
        for number in range(2):
            pq.write_table(visits.slice(number * rows // 2, rows // 2), folder / "visits" / f"{number}.parquet")
        for engine in ({"kind": "duckdb"}, {"kind": "spark", "master": "local[2]"}):
            database = dp.connect(policy(folder, engine))
            print(engine["kind"])
            print(database.sql(QUESTION, epsilon=1))
            database.close()


if __name__ == "__main__":
    main()
