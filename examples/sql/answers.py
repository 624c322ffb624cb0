"""A morning of questions: what earlier answers imply is free, and of all else only the missing part is paid.

Run it with `python examples/sql/answers.py`. It writes to a temporary folder only.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import discreet as dp

draw = np.random.default_rng(3)
folder = Path(tempfile.mkdtemp())
visits = {
    "city": draw.choice(["Haifa", "Kiel", "Lod"], 20_000),
    "age": draw.choice(["child", "adult", "old"], 20_000, p=[0.2, 0.5, 0.3]),
    "sex": draw.choice(["f", "m"], 20_000),
}
pq.write_table(pa.table(visits), folder / "visits.parquet")
(folder / "clinic.toml").write_text("""
[ledger]
path = "clinic.ledger"
epsilon = 2.0

[unit]
row = true

[tables.visits]
source = "visits.parquet"
columns.city.choices = ["Haifa", "Kiel", "Lod"]
columns.age.choices = ["child", "adult", "old"]
columns.sex.choices = ["f", "m"]

[answers]
derived = true
""")
clinic = dp.connect(folder / "clinic.toml")
QUESTIONS = [
    "SELECT city, age, sex, COUNT(*) AS n FROM visits GROUP BY city, age, sex",
    "SELECT city, COUNT(*) AS n FROM visits WHERE age = 'child' AND sex = 'f' GROUP BY city",
    "SELECT COUNT(*) AS n FROM visits WHERE age = 'old' AND city = 'Kiel' AND sex IN ('f', 'm')",
    "SELECT age, COUNT(*) AS n FROM visits WHERE sex = 'f' AND city IN ('Haifa', 'Kiel', 'Lod') GROUP BY age",
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT COUNT(*) AS n FROM visits WHERE city <> 'Kiel' OR city IS NULL",
    "SELECT COUNT(*) AS n FROM visits WHERE city = 'Kiel'",
]
asked = 0.0
for question in QUESTIONS:
    asked += 0.1
    answer = clinic.sql(question, epsilon=0.1)
    print(f"{question}\n{answer}\n")
spent = clinic.ledger.spent["ε"]
print(f"asked for ε = {asked:.3g} in all, and spent {spent:.3g}")
assert spent < asked
