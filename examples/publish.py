"""A publication: tables, a cube and synthetic rows for the public, checked with the ledger after the data are gone."""

import os
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import discreet as dp

os.chdir(tempfile.mkdtemp())

# visits to a clinic: somebody may have several
rng = np.random.default_rng(7)
age = np.clip(rng.normal(45, 15, 12_000).round(), 10, 99).astype(int)
visits = {
    "patient_id": rng.integers(0, 6000, 12_000),
    "city": np.array(["Bled", "Haifa", "Kiel"])[rng.choice(3, 12_000, p=[0.3, 0.4, 0.3])],
    "sex": np.array(["f", "m"])[rng.integers(0, 2, 12_000)],
    "age": age,
}
pyarrow.parquet.write_table(pa.table(visits), "visits.parquet")

Path("clinic.toml").write_text("""
[ledger]
path = "clinic.ledger"
epsilon = 10.0
delta = 1e-5
[unit]
person = "patient_id"
[tables.visits]
source = "visits.parquet"
rows_per_person = 3
[tables.visits.columns.city]
choices = ["Bled", "Haifa", "Kiel"]
[tables.visits.columns.sex]
choices = ["f", "m"]
[tables.visits.columns.age]
between = [0, 99]
""")
Path("plan.toml").write_text("""
title = "Visits to the clinic"
policy = "clinic.toml"
[tables.by_city]
sql = "SELECT city, COUNT(*) AS visits FROM visits GROUP BY city"
epsilon = 0.5
[cubes.city_and_sex]
table = "visits"
by = ["city", "sex"]
epsilon = 0.5
[synthetic.visits_like]
table = "visits"
columns = ["city", "sex", "age"]
epsilon = 3
delta = 1e-6
bins = 10
[[synthetic.visits_like.criteria]]
kind = "marginals"
ways = 2
at_most = 0.1
""")

# what it would cost, and how large errors may be: nothing is spent
print(dp.publication.explain_publication("plan.toml"))

made = dp.publish("plan.toml", "out")
print(made)
for name in sorted(made.files):
    print(" ", name)
print(Path("out/by_city.csv").read_text())

# the same plan again: the ledger has the answers, and nothing is paid twice
assert dp.publish("plan.toml", "out").already

# anyone with the ledger can check it, without the data
Path("visits.parquet").unlink()
print(dp.publication.verify_publication("out", "clinic.ledger"))

# a number that is changed is found
table = Path("out/by_city.csv")
table.write_text(table.read_text().replace("Bled", "Lake"))
assert not dp.publication.verify_publication("out", "clinic.ledger").holds
