"""discreet: answers about people that expose no one of them, from exact noise.

>>> import discreet as dp
>>> dp.Laplace.for_guarantee(dp.Pure(epsilon=1), sensitivity=1)
Laplace(scale=1)
"""

import importlib
from typing import TYPE_CHECKING, Any

from discreet._version import __version__
from discreet.door import release, stream
from discreet.errors import (
    BudgetExhausted,
    DiscreetError,
    EngineFailed,
    EntropyUnavailable,
    IncompatibleGuarantee,
    InvalidArgument,
    LedgerDamaged,
    LedgerUnavailable,
    MissingExtra,
    NotAllowed,
    QueryError,
    SealedValue,
)
from discreet.guarantees.accuracy import Accuracy
from discreet.guarantees.guarantee import Approx, GaussianTradeoff, Guarantee, Pure, Renyi, ZeroConcentrated
from discreet.guarantees.least_error import least_error
from discreet.guarantees.loss import LossDistribution, compose
from discreet.guarantees.unit import Unit, person, row
from discreet.guarantees.verify import verify
from discreet.ledger import Ledger
from discreet.queries import (
    Ball,
    Categories,
    Count,
    CountingQuery,
    Domain,
    Functions,
    Grid,
    Histogram,
    Integers,
    Interval,
    Mean,
    MedianScore,
    Popularity,
    Product,
    QuantileScore,
    Ratings,
    Sensitivity,
    Sum,
    VectorSum,
    Workload,
)
from discreet.releases import Release

if TYPE_CHECKING:  # what follows is imported when it is first named: a program uses few of them
    from discreet import adaptive, learn, local, shuffle
    from discreet.connecting import connect
    from discreet.mechanisms.combine import Composed, Each, Subsampled
    from discreet.mechanisms.count_tree import CountTree
    from discreet.mechanisms.covariance import CorrelatedGaussian
    from discreet.mechanisms.cumulative import CumulativeCounts, QuantilesFromCounts, best_quantiles
    from discreet.mechanisms.exponential import Exponential, PermuteAndFlip
    from discreet.mechanisms.factorization import PrefixSums
    from discreet.mechanisms.gaussian import Gaussian
    from discreet.mechanisms.gaussian_process import GaussianProcess
    from discreet.mechanisms.laplace import Laplace
    from discreet.mechanisms.multiplicative_weights import MultiplicativeWeights
    from discreet.mechanisms.noisy_argmax import NoisyArgmax
    from discreet.mechanisms.online_weights import OnlineMultiplicativeWeights
    from discreet.mechanisms.quantile import Quantile
    from discreet.mechanisms.quantiles import Quantiles
    from discreet.mechanisms.randomized_response import RandomizedResponse
    from discreet.mechanisms.shuffled import Shuffled
    from discreet.mechanisms.small_database import SmallDatabase
    from discreet.mechanisms.threshold import AboveThreshold, KeySelection
    from discreet.mechanisms.top_k import TopK, chooser_for
    from discreet.tables import table

_MODULES = ("adaptive", "learn", "local", "shuffle")
_LATER = {
    "connect": "connecting",
    "Composed": "mechanisms.combine",
    "Each": "mechanisms.combine",
    "Subsampled": "mechanisms.combine",
    "CountTree": "mechanisms.count_tree",
    "CorrelatedGaussian": "mechanisms.covariance",
    "CumulativeCounts": "mechanisms.cumulative",
    "QuantilesFromCounts": "mechanisms.cumulative",
    "best_quantiles": "mechanisms.cumulative",
    "Exponential": "mechanisms.exponential",
    "PermuteAndFlip": "mechanisms.exponential",
    "PrefixSums": "mechanisms.factorization",
    "Gaussian": "mechanisms.gaussian",
    "GaussianProcess": "mechanisms.gaussian_process",
    "Laplace": "mechanisms.laplace",
    "MultiplicativeWeights": "mechanisms.multiplicative_weights",
    "NoisyArgmax": "mechanisms.noisy_argmax",
    "OnlineMultiplicativeWeights": "mechanisms.online_weights",
    "Quantile": "mechanisms.quantile",
    "Quantiles": "mechanisms.quantiles",
    "RandomizedResponse": "mechanisms.randomized_response",
    "Shuffled": "mechanisms.shuffled",
    "SmallDatabase": "mechanisms.small_database",
    "AboveThreshold": "mechanisms.threshold",
    "KeySelection": "mechanisms.threshold",
    "TopK": "mechanisms.top_k",
    "chooser_for": "mechanisms.top_k",
    "table": "tables",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"discreet.{name}")
    if name in _LATER:
        found = getattr(importlib.import_module(f"discreet.{_LATER[name]}"), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module 'discreet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    # who is protected
    "Unit",
    "person",
    "row",
    # what is asked
    "Ball",
    "Categories",
    "Count",
    "CountingQuery",
    "Domain",
    "Functions",
    "Grid",
    "Histogram",
    "Integers",
    "Interval",
    "Mean",
    "MedianScore",
    "Popularity",
    "Product",
    "QuantileScore",
    "Ratings",
    "Sensitivity",
    "Sum",
    "VectorSum",
    "Workload",
    "adaptive",
    "connect",
    "learn",
    "local",
    "shuffle",
    "table",
    # how it is answered
    "AboveThreshold",
    "Composed",
    "CorrelatedGaussian",
    "CountTree",
    "CumulativeCounts",
    "Each",
    "Exponential",
    "Gaussian",
    "GaussianProcess",
    "KeySelection",
    "Laplace",
    "MultiplicativeWeights",
    "NoisyArgmax",
    "OnlineMultiplicativeWeights",
    "PermuteAndFlip",
    "PrefixSums",
    "Quantile",
    "Quantiles",
    "QuantilesFromCounts",
    "RandomizedResponse",
    "Shuffled",
    "SmallDatabase",
    "Subsampled",
    "TopK",
    "chooser_for",
    "best_quantiles",
    # what is promised
    "Accuracy",
    "Approx",
    "GaussianTradeoff",
    "Guarantee",
    "LossDistribution",
    "Pure",
    "Renyi",
    "ZeroConcentrated",
    "compose",
    "least_error",
    "verify",
    # what is spent, and what leaves
    "Ledger",
    "Release",
    "release",
    "stream",
    # what can go wrong
    "BudgetExhausted",
    "DiscreetError",
    "EngineFailed",
    "EntropyUnavailable",
    "IncompatibleGuarantee",
    "InvalidArgument",
    "LedgerDamaged",
    "LedgerUnavailable",
    "MissingExtra",
    "NotAllowed",
    "QueryError",
    "SealedValue",
    "__version__",
]
