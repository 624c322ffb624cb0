"""Statistics for the population: an estimate, a comparison and a test, each with sampling, noise and clipping in it."""

import numpy as np

import discreet as dp

draw = np.random.default_rng(4)
rows = 20_000
treated = draw.random(rows) < 0.5
ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Pure(epsilon=10))
visits = dp.table(
    {
        "cost": draw.gamma(2, 100, rows) + 12 * treated,
        "treated": treated,
        "readmitted": draw.random(rows) < 0.11,
    },
    ledger=ledger,
)

print(visits.explain.stats.mean("cost", between=(0, 2000), epsilon=0.5))  # how wide it would be; spends nothing
print(visits.stats.mean("cost", between=(0, 2000), epsilon=0.5))
print(visits.stats.mean("cost", epsilon=0.5))  # a range is found first: see what is assumed

gap = visits.stats.compare("cost", by="treated", between=(0, 2000), epsilon=1)
print(gap, f"p = {gap.p_value:.4f}", sep="; ")

share = visits.stats.proportion("readmitted", epsilon=0.5)
print(share.test(0.10), share.test(0.12, alternative="less"), sep="\n")
