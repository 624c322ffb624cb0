"""Private learning: estimators with the interface of scikit-learn, each fit one release under the ledger."""

from discreet.learn.checks import expected_failed_checks
from discreet.learn.classification import LinearSVC, LogisticRegression
from discreet.learn.regression import HuberRegressor, PoissonRegressor, QuantileRegressor
from discreet.learn.search import PrivateSearch
from discreet.mechanisms.descent import Descent, enough_steps, plain_descent
from discreet.queries.convex import Affine, Box, Projection, Simplex, WithinRadius

__all__ = [
    "Affine",
    "Box",
    "Descent",
    "HuberRegressor",
    "LinearSVC",
    "LogisticRegression",
    "PoissonRegressor",
    "PrivateSearch",
    "Projection",
    "QuantileRegressor",
    "Simplex",
    "WithinRadius",
    "enough_steps",
    "expected_failed_checks",
    "plain_descent",
]
