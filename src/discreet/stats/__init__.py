"""Statistics people can publish: estimates for the population, tests and regression tables, private throughout."""

from typing import TYPE_CHECKING

from discreet.exports import lazily

_LATER = {
    "Difference": "results",
    "Estimate": "results",
    "Evidence": "results",
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
    from discreet.stats.planning import SampleSize, power, sample_size
    from discreet.stats.results import Difference, Estimate, Evidence
    from discreet.stats.sequential_test import Look, SequentialTest, sequential
else:
    __getattr__, __dir__ = lazily(__name__, _LATER)

__all__ = [
    "Difference",
    "Estimate",
    "Evidence",
    "Look",
    "SampleSize",
    "SequentialTest",
    "benjamini_hochberg",
    "benjamini_yekutieli",
    "bonferroni",
    "holm",
    "power",
    "sample_size",
    "sequential",
]
