"""A clinic whose owner declares nothing but who a patient is. Limits on what one person adds are found privately.

Run it with `python examples/sql/nothing_declared.py`. It writes to a temporary folder only.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import discreet as dp

draw = np.random.default_rng(11)
folder = Path(tempfile.mkdtemp())
often = draw.lognormal(0, 1, 20_000)  # a few patients come much more often than the others
patient = draw.choice(20_000, 100_000, p=often / often.sum())
city = draw.choice(["Haifa", "Koper", "Ljubljana", "Piran"], 20_000, p=[0.5, 0.2, 0.2999, 0.0001])
visits = pa.table({"patient_id": patient, "city": city[patient], "cost": np.round(draw.lognormal(4, 1, 100_000), 2)})
pq.write_table(visits, folder / "visits.parquet")
(folder / "clinic.toml").write_text("""
[ledger]
path = "clinic.ledger"
epsilon = 10.0
delta = 1e-5
delta_per_question = 1e-8

[unit]
person = "patient_id"

[tables.visits]
source = "visits.parquet"
""")

clinic = dp.connect(folder / "clinic.toml")
question = "SELECT city, COUNT(*) AS visits, SUM(cost) AS cost, AVG(cost) AS mean FROM visits GROUP BY city"
print("What would be found first, and for which part of ε? Nothing is spent.\n")
print(clinic.explain(question, epsilon=1), end="\n\n")

answer = clinic.sql(question, epsilon=1)
print(answer, end="\n\n")
print("The estimated part of each count and sum that is lost to the limits:", answer.clipped, end="\n\n")

print("The truth, which nobody may see if people are real. Piran has too few patients to be shown.\n")
print(visits.group_by("city").aggregate([("cost", "count"), ("cost", "sum"), ("cost", "mean")]).to_pandas(), end="\n\n")

print("One table, by methods:\n")
table = dp.table(folder / "visits.parquet", ledger=clinic.ledger)
print(table.mean("cost", epsilon=0.5))
print(table.variance("cost", epsilon=0.5))
print(table.most_common("city", epsilon=0.5, delta=1e-8))
