"""Statistics people can publish: estimates for the population, tests and regression tables, private throughout.

>>> import discreet as dp
>>> ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Pure(epsilon=10))
>>> heights = [1.6, 1.7, 1.8] * 1000
>>> found = dp.stats.mean(heights, between=(1, 2.5), epsilon=1, ledger=ledger)
>>> low, high = found.interval(0.95)
>>> bool(1.6 < low < high < 1.8)
True
"""

from typing import TYPE_CHECKING

from discreet.exports import lazily

_LATER = {
    "mean": "arrays",
    "variance": "arrays",
    "proportion": "arrays",
    "compare": "arrays",
    "paired": "arrays",
    "ratio": "arrays",
    "Difference": "results",
    "Estimate": "results",
    "Evidence": "results",
    "TableStatistics": "table",
}

if TYPE_CHECKING:
    from discreet.stats.arrays import compare, mean, paired, proportion, ratio, variance
    from discreet.stats.results import Difference, Estimate, Evidence
    from discreet.stats.table import TableStatistics
else:
    __getattr__, __dir__ = lazily(__name__, _LATER)

__all__ = [
    # what they return
    "Difference",
    "Estimate",
    "Evidence",
    "TableStatistics",
    # estimates for the population
    "compare",
    "mean",
    "paired",
    "proportion",
    "ratio",
    "variance",
]
