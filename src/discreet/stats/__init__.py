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
    "anova": "arrays",
    "chi2": "arrays",
    "compare": "arrays",
    "correlation": "arrays",
    "kruskal": "arrays",
    "logistic": "arrays",
    "mann_whitney": "arrays",
    "mean": "arrays",
    "ols": "arrays",
    "paired": "arrays",
    "permutation": "arrays",
    "poisson": "arrays",
    "proportion": "arrays",
    "quantile": "arrays",
    "ratio": "arrays",
    "risk_ratio": "arrays",
    "variance": "arrays",
    "wilcoxon": "arrays",
    "Decision": "decision",
    "Difference": "results",
    "Estimate": "results",
    "Evidence": "results",
    "TableStatistics": "table",
    "Regression": "regression.results",
    "Tested": "tested",
    "Look": "sequential_test",
    "SampleSize": "planning",
    "SequentialTest": "sequential_test",
    "benjamini_hochberg": "adjusting",
    "benjamini_yekutieli": "adjusting",
    "bonferroni": "adjusting",
    "holm": "adjusting",
    "power": "planning",
    "sample_size": "planning",
    "sequential": "sequential_test",
}

if TYPE_CHECKING:
    from discreet.stats.adjusting import benjamini_hochberg, benjamini_yekutieli, bonferroni, holm
    from discreet.stats.arrays import (
        anova,
        chi2,
        compare,
        correlation,
        kruskal,
        logistic,
        mann_whitney,
        mean,
        ols,
        paired,
        permutation,
        poisson,
        proportion,
        quantile,
        ratio,
        risk_ratio,
        variance,
        wilcoxon,
    )
    from discreet.stats.decision import Decision
    from discreet.stats.planning import SampleSize, power, sample_size
    from discreet.stats.regression.results import Regression
    from discreet.stats.results import Difference, Estimate, Evidence
    from discreet.stats.sequential_test import Look, SequentialTest, sequential
    from discreet.stats.table import TableStatistics
    from discreet.stats.tested import Tested
else:
    __getattr__, __dir__ = lazily(__name__, _LATER)

__all__ = [
    "Decision",
    "Difference",
    "Estimate",
    "Evidence",
    "Look",
    "Regression",
    "SampleSize",
    "SequentialTest",
    "TableStatistics",
    "Tested",
    "anova",
    "benjamini_hochberg",
    "benjamini_yekutieli",
    "bonferroni",
    "chi2",
    "compare",
    "correlation",
    "holm",
    "kruskal",
    "logistic",
    "mann_whitney",
    "mean",
    "ols",
    "paired",
    "permutation",
    "poisson",
    "power",
    "proportion",
    "quantile",
    "ratio",
    "risk_ratio",
    "sample_size",
    "sequential",
    "variance",
    "wilcoxon",
]
