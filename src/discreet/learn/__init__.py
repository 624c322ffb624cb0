"""Private learning: estimators with the interface of scikit-learn, each fit one release under the ledger."""

from discreet.learn.classification import LinearSVC, LogisticRegression
from discreet.learn.regression import HuberRegressor, PoissonRegressor, QuantileRegressor

__all__ = [
    "HuberRegressor",
    "LinearSVC",
    "LogisticRegression",
    "PoissonRegressor",
    "QuantileRegressor",
]
