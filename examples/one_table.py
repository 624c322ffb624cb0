"""The first lines of the tour: one table under a ledger, queried by methods."""

import os
import tempfile
from pathlib import Path

import discreet as dp
from discreet.demo.data import make_clinic

os.chdir(tempfile.mkdtemp())
make_clinic(Path.cwd())
CITIES = ["Haifa", "Jerusalem", "Koper", "Ljubljana", "Maribor", "Tel Aviv"]

ledger = dp.Ledger.open("own.ledger", protects=dp.person("patient_id"), limit=dp.Approx(epsilon=10, delta=1e-5))
visits = dp.table("visits.parquet", ledger=ledger, rows_per_person=20)
people = dp.table("people.parquet", ledger=ledger, rows_per_person=1)

age = people.median("age", between=(0, 120), epsilon=0.2)
print(age)
print(age.value, age.error(0.95), age.guarantee, age.receipt)

print(visits.count(epsilon=0.1))
print(visits.count("people", epsilon=0.1))
print(visits.sum("cost", between=(0, 5000), epsilon=0.1))
print(visits.mean("cost", between=(0, 5000), epsilon=0.1))
print(visits.variance("cost", between=(0, 5000), epsilon=0.1))
print(visits.quantiles("cost", [0.1, 0.5, 0.9], between=(0, 5000), epsilon=0.2))
print(people.histogram("city", choices=CITIES, epsilon=0.1))
print(people.mean("age", between=(0, 120), by={"city": CITIES}, epsilon=0.1).table)
print(people.histogram("age", edges=[0, 18, 65, 120], epsilon=0.1))
print(visits.histogram("diagnosis", epsilon=0.5, delta=1e-8))
print(visits.most_common("diagnosis", choices=["asthma", "diabetes", "migraine"], epsilon=0.1))
print(visits.explain.mean("cost", between=(0, 5000), epsilon=0.1))
print(ledger.remaining, [entry.receipt for entry in ledger.entries()])
