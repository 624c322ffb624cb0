"""All statistics of a table, as methods that build offers."""

from __future__ import annotations

from discreet.stats.mean_methods import MeanMethods
from discreet.stats.proportion_methods import ProportionMethods


class Statistics(MeanMethods, ProportionMethods):
    """The statistics of one table. Each method builds an offer, which explains itself or makes the release."""
