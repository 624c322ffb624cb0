"""All statistics of a table, as methods that build offers."""

from __future__ import annotations

from discreet.stats.correlation_methods import CorrelationMethods
from discreet.stats.likelihood_methods import LikelihoodMethods
from discreet.stats.mean_methods import MeanMethods
from discreet.stats.regression_methods import RegressionMethods


class Statistics(MeanMethods, RegressionMethods, CorrelationMethods, LikelihoodMethods):
    """The statistics of one table. Each method builds an offer, which explains itself or makes the release."""
