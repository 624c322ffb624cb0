"""All statistics of a table, as methods that build offers."""

from __future__ import annotations

from discreet.stats.count_methods import CountMethods
from discreet.stats.group_methods import GroupMethods
from discreet.stats.mean_methods import MeanMethods
from discreet.stats.quantile_methods import QuantileMethods


class Statistics(MeanMethods, CountMethods, GroupMethods, QuantileMethods):
    """The statistics of one table. Each method builds an offer, which explains itself or makes the release."""
