"""The whole distribution of a column, the most common values, and a synthetic table, all under one ledger.

Run it with `python examples/distributions.py`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import discreet as dp

draw = np.random.default_rng(11)
people, rows = 8_000, 40_000
city = draw.choice(["Haifa", "Ljubljana", "Bled"], rows, p=[0.5, 0.3, 0.2])
visits = pa.table(
    {
        "patient_id": draw.integers(0, people, rows),
        "age": draw.normal(47, 18, rows).clip(0, 110).astype(int),
        "city": city,
        "cost": np.round(draw.lognormal(np.where(city == "Bled", 6, 5), 0.6), 2),
    }
)
ledger = dp.Ledger.open(":memory:", protects=dp.person("patient_id"), limit=dp.Approx(epsilon=10, delta=1e-5))
table = dp.table(visits, ledger=ledger, rows_per_person=15)

print("Nine deciles of the cost, at once:")
print(" ", table.quantiles("cost", [i / 10 for i in range(1, 10)], between=(0, 5000), epsilon=1, delta=1e-6))

ages = table.cdf("age", between=(0, 120), step=1, epsilon=1)
count, off = ages.between(17, 64)
print("\nThe whole distribution of ages:")
print(" ", ages)
true_count = sum(17 < age <= 64 for age in visits["age"].to_pylist())
print(f"  from 18 to 64 years: {count:,.0f} ± {off:,.0f} visits (true: {true_count:,})")

print("\nThe two cities with most visits:")
print(" ", table.most_common("city", choices=["Bled", "Haifa", "Ljubljana"], k=2, epsilon=0.5))

print("\nA synthetic table, which may be published:")
made = table.synthesize(
    {"age": (0, 120), "city": ["Haifa", "Ljubljana", "Bled"], "cost": (0, 5000)}, epsilon=2, delta=1e-6
)
print(" ", made)
for name in ("Haifa", "Bled"):
    true = np.median(visits["cost"].to_numpy()[city == name])
    fake = np.median(made["cost"][made["city"] == name])
    print(f"  median cost in {name}: {fake:,.0f} in synthetic rows, {true:,.0f} in true ones")
print(f"\n{ledger.remaining} remains of {ledger.rule.limit}.")
