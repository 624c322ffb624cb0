"""One survey, four private answers from one budget: the query knows its sensitivity, the ledger its unit."""

import numpy as np

import discreet as dp

# synthetic rows: hours of sleep of 5,000 people, and what they had for breakfast
rng = np.random.default_rng(7)
sleep = np.clip(rng.normal(7, 1.2, 5000), 0, 24)
breakfast = rng.choice(["bread", "cereal", "nothing"], 5000, p=[0.5, 0.2, 0.3])

ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=1, delta=1e-6))

# a sum of hours, clamped to the declared range and added exactly
hours = dp.Sum((0, 24))
noise = dp.Laplace.for_guarantee(dp.Pure(epsilon=0.1), sensitivity=hours.sensitivity(dp.row()))
print("hours slept in total:", dp.release(sleep, noise, query=hours, ledger=ledger))

# a histogram: one row is in one bar, so all bars together cost as much as one bar
bars = dp.queries.Histogram(["bread", "cereal", "nothing"])
noise = dp.Laplace.for_guarantee(dp.Pure(epsilon=0.1), sensitivity=bars.sensitivity(dp.row()), step=1)
print("breakfasts:", dp.release(breakfast, noise, query=bars, ledger=ledger))

# the 90th percentile, to a tenth of an hour
tail = dp.mechanisms.Quantile.for_guarantee(dp.Pure(epsilon=0.1), space=dp.queries.Grid(0, 24, 0.1), quantile=0.9)
print("nine of ten sleep less than:", dp.release(sleep, tail, sensitivity=tail.sensitivity(dp.row()), ledger=ledger))

# Gaussian noise, if a δ is allowed
noise = dp.Gaussian.for_guarantee(dp.Approx(epsilon=0.2, delta=1e-7), sensitivity=24)
print("the sum again, with Gaussian noise:", dp.release(sleep, noise, query=hours, ledger=ledger))

print("spent:", {name: round(used, 4) for name, used in ledger.spent.items()})
