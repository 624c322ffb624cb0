"""A clinic whose owner knows little about the data: automatic bounds, and prescriptions that lead to people by visits.

Run it with `python examples/sql/bounds_found.py`. It writes to a temporary folder only.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import discreet as dp

draw = np.random.default_rng(7)
folder = Path(tempfile.mkdtemp())
visits = pa.table({"patient_id": draw.integers(0, 5_000, 40_000), "visit_id": np.arange(40_000)})
prescriptions = pa.table(
    {
        "visit_id": draw.integers(0, 40_000, 60_000),
        "drug": draw.choice(["aspirin", "insulin", "statin", "zinc"], 60_000, p=[0.5, 0.2, 0.2, 0.1]),
        "price": np.round(draw.lognormal(3, 0.7, 60_000), 2),
    }
)
pq.write_table(visits, folder / "visits.parquet")
pq.write_table(prescriptions, folder / "prescriptions.parquet")
(folder / "clinic.toml").write_text("""
[ledger]
path = "clinic.ledger"
epsilon = 10.0
delta = 1e-5

[unit]
person = "patient_id"

[tables.visits]
source = "visits.parquet"
rows_per_person = 20

[tables.prescriptions]
source = "prescriptions.parquet"
through = "visits.visit_id"       # the foreign key to the person
rows_per_person = 30
groups_per_person = "auto"        # the number of groups with the smallest total error
rows_per_group = 2
[tables.prescriptions.columns.price]
between = "auto"                  # nobody knows the range of prices
[tables.prescriptions.columns.drug]
choices = ["aspirin", "insulin", "statin", "zinc"]
""")

clinic = dp.connect(folder / "clinic.toml")
question = "SELECT drug, COUNT(*) AS prescriptions, AVG(price) AS price FROM prescriptions GROUP BY drug"
print(clinic.explain(question, epsilon=1), end="\n\n")
print(clinic.sql(question, epsilon=1), end="\n\n")

print("The range is known now: another question at the same ε uses it for free.\n")
print(clinic.sql("SELECT SUM(price) AS spent FROM prescriptions", epsilon=1), end="\n\n")

print("How many people have more than ten prescriptions? Each person has one row, so one person changes it by one:\n")
many = """SELECT COUNT(*) AS people FROM
  (SELECT v.patient_id, COUNT(*) AS n FROM prescriptions p JOIN visits v ON p.visit_id = v.visit_id
   GROUP BY v.patient_id) AS each_person
WHERE n > 10"""
print(clinic.sql(many, epsilon=0.5), end="\n\n")

for entry in clinic.ledger.entries():
    print(entry.number, entry.guarantee, "·", " ".join(entry.asked.split())[:90])
