"""Train models on a table without exposing anyone, charged to one ledger.

Run it with `python examples/learning/learning.py`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import discreet as dp

draw = np.random.default_rng(5)
rows = 30_000
age, cost = draw.integers(18, 95, rows), draw.lognormal(6, 0.7, rows).clip(0, 5000)
city = draw.choice(["Haifa", "Ljubljana", "Bled"], rows)
score = (age - 60) / 12 + (cost - 500) / 600 + 0.8 * (city == "Bled")
visits = pa.table(
    {
        "patient_id": draw.integers(0, 15_000, rows),
        "age": age,
        "cost": np.round(cost, 2),
        "city": city,
        "readmitted": (score + draw.logistic(size=rows) > 0).astype(int),
    }
)

ledger = dp.Ledger.open(":memory:", protects=dp.person("patient_id"), limit=dp.Approx(epsilon=10, delta=1e-4))
table = dp.table(visits, ledger=ledger, rows_per_person=4)
features = {"age": (18, 95), "cost": (0, 5000), "city": ["Haifa", "Ljubljana", "Bled"]}

model = dp.learn.LogisticRegression(epsilon=1, delta=1e-6, classes=[0, 1])
print("What it would cost, and whom it would protect:")
print("  " + table.explain.fit(model, features=features, target="readmitted").replace("\n", "\n  "))

table.fit(model, features=features, target="readmitted")
known = np.column_stack([age, cost, *(city == name for name in features["city"])])
print("\nA model of readmission:")
for name, weight in zip(model.feature_names_in_, model.coef_[0], strict=True):
    print(f"  {name:16} {weight:+.4f}")
print(f"  right for {100 * model.score(known, visits['readmitted'].to_numpy()):.1f}% of the visits")
print(f"  its mean loss is within {float(model.release_.error(0.95)):.2f} of the best such model's (95%)")
print(f"  according to the noisy gradients, the loss fell by about {-model.learning_curve_[-1]:.2f}")

prices = dp.learn.QuantileRegressor(epsilon=1, delta=1e-6, quantile=0.9, target_bound=5000)
table.fit(prices, features={"age": (18, 95)}, target="cost")
print(f"\nNine visits in ten cost less than {prices.predict(np.array([[50.0]]))[0]:,.0f} at the age of 50")

print(f"\n{ledger.remaining} remains after {len(ledger.entries())} fits")
