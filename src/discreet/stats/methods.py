"""All statistics of a table, as methods that build offers."""

from __future__ import annotations

from discreet.stats.count_methods import CountMethods
from discreet.stats.group_methods import GroupMethods
from discreet.stats.mean_methods import MeanMethods
from discreet.stats.permutation_methods import PermutationMethods
from discreet.stats.proportion_methods import ProportionMethods
from discreet.stats.quantile_methods import QuantileMethods
from discreet.stats.regression.correlation_methods import CorrelationMethods
from discreet.stats.regression.likelihood_methods import LikelihoodMethods
from discreet.stats.regression.methods import RegressionMethods


class Statistics(
    MeanMethods,
    ProportionMethods,
    QuantileMethods,
    CountMethods,
    GroupMethods,
    PermutationMethods,
    CorrelationMethods,
    RegressionMethods,
    LikelihoodMethods,
):
    """The statistics of one table. Each method builds an offer, which explains itself or makes the release."""
