"""A clinic that publishes its visits every month: one charge for a year, and running totals that add up.

Run it with `python examples/sql/standing.py`. It writes to a temporary folder only.
"""

from __future__ import annotations

import datetime
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import discreet as dp

draw = np.random.default_rng(7)
folder = Path(tempfile.mkdtemp())
days = np.datetime64("2024-01-01") + draw.integers(0, 366, 30_000).astype("timedelta64[D]")
visits = {"patient_id": draw.integers(0, 5_000, 30_000), "day": days, "city": draw.choice(["Haifa", "Kiel"], 30_000)}
pq.write_table(pa.table(visits), folder / "visits.parquet")
(folder / "clinic.toml").write_text("""
[ledger]
path = "clinic.ledger"
epsilon = 10.0
delta = 1e-5
delta_per_question = 1e-6

[unit]
person = "patient_id"
per = "month"

[tables.visits]
source = "visits.parquet"
rows_per_person = 4
time = { column = "day", block = "month" }
columns.city.choices = ["Haifa", "Kiel"]
""")
clinic = dp.connect(folder / "clinic.toml")
question = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"

print(clinic.explain_standing(question, every="month", times=12, epsilon=1, first="2024-01", totals=True))
standing = clinic.standing(question, every="month", times=12, epsilon=1, first="2024-01", totals=True)
print(f"\ncharged once: {clinic.part('2024-05').tables.remains}")

for today in (datetime.date(2024, 4, 1), datetime.date(2025, 1, 1)):  # what cron would do, with discreet schedule
    print(f"{today}: answered {', '.join(standing.run(today=today))}")

print(f"\nMay alone\n{standing.answer('2024-05')}\n\nthe whole year\n{standing.total()}")
[found] = dp.connect(folder / "clinic.toml").standings
assert found.table.equals(standing.table)
print(f"\nfound again after a restart: {found!r}")
