"""Answers that are functions: a density and a regression curve, released once and evaluated as often as you like.

Run it with `python examples/functions.py`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import discreet as dp
from discreet.functions import regression_curve

draw = np.random.default_rng(3)
rows = 40_000
visits = pa.table({"patient_id": draw.integers(0, 15_000, rows), "cost": draw.lognormal(6, 0.8, rows)})
ledger = dp.Ledger.open(":memory:", protects=dp.person("patient_id"), limit=dp.Approx(epsilon=10, delta=1e-5))
table = dp.table(visits, ledger=ledger, rows_per_person=8)

density = table.density("cost", between=(0, 5000), epsilon=1, delta=1e-6)
off = float(density.error(0.95))
print(f"The density of costs, bandwidth {density.bandwidth[0]:.0f}, within ± {off:.2g} everywhere (95%):")
for place in (100, 300, 1000, 3000):
    print(f"  at {place:5,}: {density(float(place)):.6f}  {'#' * round(density(float(place)) * 30_000)}")
print(f"  half of the visits cost less than {density.quantile(0.5):,.0f}")
print(f"  three synthetic costs: {density.sample(3).round()}")

age = draw.uniform(20, 90, rows)
burden = 0.2 + 0.5 / (1 + np.exp(-(age - 65) / 6)) + draw.normal(0, 0.1, rows)
goal = dp.Approx(epsilon=1, delta=1e-6)
curve = regression_curve(
    age, burden, between=(20, 90), bandwidth=10, guarantee=goal, size=rows, ledger=ledger, rows_per_person=1
)
print(f"\nBurden by age, within ± {float(curve.error(0.95)):.2f} everywhere (95%):")
for place in (30, 50, 65, 80):
    print(f"  at {place}: {curve(float(place)):.2f} (true {0.2 + 0.5 / (1 + np.exp(-(place - 65) / 6)):.2f})")
print(f"\n{ledger.remaining} remains after {len(ledger.entries())} releases, for any number of points")
