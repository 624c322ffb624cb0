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
from discreet.guarantees.finite.least_error import least_error
from discreet.guarantees.finite.verify import verify
from discreet.guarantees.guarantee import Approx, GaussianTradeoff, Guarantee, Pure, Renyi, ZeroConcentrated
from discreet.guarantees.privacy_loss.compose import LossDistribution, compose
from discreet.guarantees.unit import Unit, person, row
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
    from discreet.datasets.connect import connect
    from discreet.mechanisms.combine import Composed, Each, Subsampled
    from discreet.mechanisms.counts.count_tree import CountTree
    from discreet.mechanisms.counts.factorization import PrefixSums
    from discreet.mechanisms.counts.multiplicative_weights import MultiplicativeWeights
    from discreet.mechanisms.counts.online_weights import OnlineMultiplicativeWeights
    from discreet.mechanisms.counts.small_database import SmallDatabase
    from discreet.mechanisms.noise.covariance import CorrelatedGaussian
    from discreet.mechanisms.noise.gaussian import Gaussian
    from discreet.mechanisms.noise.gaussian_process import GaussianProcess
    from discreet.mechanisms.noise.laplace import Laplace
    from discreet.mechanisms.quantiles.cumulative import CumulativeCounts, QuantilesFromCounts, best_quantiles
    from discreet.mechanisms.quantiles.quantile import Quantile
    from discreet.mechanisms.quantiles.quantiles import Quantiles
    from discreet.mechanisms.reports.randomized_response import RandomizedResponse
    from discreet.mechanisms.reports.shuffled import Shuffled
    from discreet.mechanisms.selection.exponential import Exponential, PermuteAndFlip
    from discreet.mechanisms.selection.noisy_argmax import NoisyArgmax
    from discreet.mechanisms.selection.threshold import AboveThreshold, KeySelection
    from discreet.mechanisms.selection.top_k import TopK, chooser_for
    from discreet.tables.table import table

_MODULES = ("adaptive", "learn", "local", "shuffle")
_LATER = {
    "connect": "datasets.connect",
    "Composed": "mechanisms.combine",
    "Each": "mechanisms.combine",
    "Subsampled": "mechanisms.combine",
    "CountTree": "mechanisms.counts.count_tree",
    "CorrelatedGaussian": "mechanisms.noise.covariance",
    "CumulativeCounts": "mechanisms.quantiles.cumulative",
    "QuantilesFromCounts": "mechanisms.quantiles.cumulative",
    "best_quantiles": "mechanisms.quantiles.cumulative",
    "Exponential": "mechanisms.selection.exponential",
    "PermuteAndFlip": "mechanisms.selection.exponential",
    "PrefixSums": "mechanisms.counts.factorization",
    "Gaussian": "mechanisms.noise.gaussian",
    "GaussianProcess": "mechanisms.noise.gaussian_process",
    "Laplace": "mechanisms.noise.laplace",
    "MultiplicativeWeights": "mechanisms.counts.multiplicative_weights",
    "NoisyArgmax": "mechanisms.selection.noisy_argmax",
    "OnlineMultiplicativeWeights": "mechanisms.counts.online_weights",
    "Quantile": "mechanisms.quantiles.quantile",
    "Quantiles": "mechanisms.quantiles.quantiles",
    "RandomizedResponse": "mechanisms.reports.randomized_response",
    "Shuffled": "mechanisms.reports.shuffled",
    "SmallDatabase": "mechanisms.counts.small_database",
    "AboveThreshold": "mechanisms.selection.threshold",
    "KeySelection": "mechanisms.selection.threshold",
    "TopK": "mechanisms.selection.top_k",
    "chooser_for": "mechanisms.selection.top_k",
    "table": "tables.table",
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
