"""`table.stats` and `table.explain.stats`: the statistics of a table as methods."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from discreet.closing import Closed
from discreet.sql.running.explanation import Explanation
from discreet.stats.methods import Statistics
from discreet.tables.methods import Methods
from discreet.tables.offer import Offer

P = ParamSpec("P")
R = TypeVar("R")
Method = Callable[Concatenate[Statistics, P], Offer[R]]


def _released(method: Method[P, R]) -> Callable[Concatenate[TableStatistics, P], R]:
    """The method that makes the release."""

    @wraps(method)
    def released(table: TableStatistics, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return method(table._statistics, *args, **kwargs).release()

    return released


def _explained(method: Method[P, R]) -> Callable[Concatenate[ExplainedStatistics, P], Explanation]:
    """The method that says what the release would cost and how wide its interval would be."""

    @wraps(method)
    def explained(table: ExplainedStatistics, /, *args: P.args, **kwargs: P.kwargs) -> Explanation:
        return method(table._statistics, *args, **kwargs).explain()

    return explained


class TableStatistics(Closed):
    """Statistics for the population that the rows of a table are a sample of. Every method charges the ledger once."""

    def __init__(self, methods: Methods) -> None:
        self._statistics = Statistics(methods)

    mean = _released(Statistics.mean)
    proportion = _released(Statistics.proportion)
    compare = _released(Statistics.compare)
    paired = _released(Statistics.paired)
    ratio = _released(Statistics.ratio)
    variance = _released(Statistics.variance)
    ols = _released(Statistics.ols)
    correlation = _released(Statistics.correlation)
    logistic = _released(Statistics.logistic)
    poisson = _released(Statistics.poisson)
    chi2 = _released(Statistics.chi2)
    anova = _released(Statistics.anova)
    mann_whitney = _released(Statistics.mann_whitney)
    kruskal = _released(Statistics.kruskal)
    wilcoxon = _released(Statistics.wilcoxon)
    permutation = _released(Statistics.permutation)
    quantile = _released(Statistics.quantile)
    risk_ratio = _released(Statistics.risk_ratio)


class ExplainedStatistics(Closed):
    """The same methods with the same arguments: what they would cost and how wide their intervals would be."""

    def __init__(self, methods: Methods) -> None:
        self._statistics = Statistics(methods)

    mean = _explained(Statistics.mean)
    proportion = _explained(Statistics.proportion)
    compare = _explained(Statistics.compare)
    paired = _explained(Statistics.paired)
    ratio = _explained(Statistics.ratio)
    variance = _explained(Statistics.variance)
    ols = _explained(Statistics.ols)
    correlation = _explained(Statistics.correlation)
    logistic = _explained(Statistics.logistic)
    poisson = _explained(Statistics.poisson)
    chi2 = _explained(Statistics.chi2)
    anova = _explained(Statistics.anova)
    mann_whitney = _explained(Statistics.mann_whitney)
    kruskal = _explained(Statistics.kruskal)
    wilcoxon = _explained(Statistics.wilcoxon)
    permutation = _explained(Statistics.permutation)
    quantile = _explained(Statistics.quantile)
    risk_ratio = _explained(Statistics.risk_ratio)
