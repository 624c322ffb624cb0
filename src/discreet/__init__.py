"""discreet: answers about people that expose no one of them, from exact noise.

>>> import discreet as dp
>>> dp.Laplace.for_guarantee(dp.Pure(epsilon=1), sensitivity=1)
Laplace(scale=1)
"""

from typing import TYPE_CHECKING

from discreet._version import __version__
from discreet.door import Session, release, stream
from discreet.errors import BudgetExhausted, DiscreetError, InvalidArgument, NotAllowed, QueryError
from discreet.exports import lazily
from discreet.guarantees.finite.least_error import least_error
from discreet.guarantees.finite.verify import verify
from discreet.guarantees.guarantee import Approx, GaussianTradeoff, Guarantee, Pure, Renyi, ZeroConcentrated
from discreet.guarantees.privacy_loss.compose import compose
from discreet.guarantees.unit import Unit, person, row
from discreet.ledger import Ledger
from discreet.queries import Count, Integers, Interval, Sensitivity, Sum
from discreet.releases import Release

_MODULES = (
    "adaptive",
    "audit",
    "datasets",
    "errors",
    "functions",
    "gateway",
    "guarantees",
    "learn",
    "ledger",
    "local",
    "mechanisms",
    "publication",
    "queries",
    "shuffle",
    "sql",
    "stats",
    "synthetic",
    "tables",
    "testing",
)
_LATER = {
    "connect": "datasets.connect",
    "publish": "publication.publishing",
    "remote": "gateway.remote",
    "load_ipython_extension": "notebook",
    "unload_ipython_extension": "notebook",
    "for_unit": "guarantees.meaning.units",
    "risk": "guarantees.meaning.risk",
    "table": "tables.table",
    "Composed": "mechanisms.combine",
    "Each": "mechanisms.combine",
    "Subsampled": "mechanisms.combine",
    "Gaussian": "mechanisms.noise.gaussian",
    "GaussianProcess": "mechanisms.noise.gaussian_process",
    "Laplace": "mechanisms.noise.laplace",
    "RandomizedResponse": "mechanisms.reports.randomized_response",
    "Shuffled": "mechanisms.reports.shuffled",
    "Exponential": "mechanisms.selection.exponential",
    "NoisyArgmax": "mechanisms.selection.noisy_argmax",
}
_MOVED = {
    "errors": (
        *("EngineFailed", "EntropyUnavailable", "IncompatibleGuarantee", "LedgerDamaged", "LedgerUnavailable"),
        *("MissingExtra", "SealedValue"),
    ),
    "guarantees": ("Accuracy", "LossDistribution"),
    "mechanisms": (
        *("AboveThreshold", "CorrelatedGaussian", "CountTree", "CumulativeCounts", "KeySelection"),
        *("MultiplicativeWeights", "OnlineMultiplicativeWeights", "PermuteAndFlip", "PrefixSums", "Quantile"),
        *("Quantiles", "QuantilesFromCounts", "SmallDatabase", "TopK", "best_quantiles", "chooser_for"),
    ),
    "queries": (
        *("Ball", "Categories", "CountingQuery", "Domain", "Functions", "Grid", "Histogram", "Mean", "MedianScore"),
        *("Popularity", "Product", "QuantileScore", "Ratings", "VectorSum", "Workload"),
    ),
}

if TYPE_CHECKING:  # what follows is imported when it is first used: a program uses few of these names
    from discreet import (
        adaptive,
        audit,
        datasets,
        errors,
        functions,
        gateway,
        guarantees,
        learn,
        ledger,
        local,
        mechanisms,
        publication,
        queries,
        shuffle,
        sql,
        stats,
        synthetic,
        tables,
        testing,
    )
    from discreet.datasets.connect import connect
    from discreet.gateway.remote import remote
    from discreet.guarantees.meaning.risk import risk
    from discreet.guarantees.meaning.units import for_unit
    from discreet.mechanisms.combine import Composed, Each, Subsampled
    from discreet.mechanisms.noise.gaussian import Gaussian
    from discreet.mechanisms.noise.gaussian_process import GaussianProcess
    from discreet.mechanisms.noise.laplace import Laplace
    from discreet.mechanisms.reports.randomized_response import RandomizedResponse
    from discreet.mechanisms.reports.shuffled import Shuffled
    from discreet.mechanisms.selection.exponential import Exponential
    from discreet.mechanisms.selection.noisy_argmax import NoisyArgmax
    from discreet.notebook import load_ipython_extension as load_ipython_extension
    from discreet.notebook import unload_ipython_extension as unload_ipython_extension
    from discreet.publication.publishing import publish
    from discreet.tables.table import table
else:
    __getattr__, __dir__ = lazily(
        __name__, _LATER, _MODULES, moved={name: module for module, names in _MOVED.items() for name in names}
    )

__all__ = [
    # who is protected
    "Unit",
    "person",
    "row",
    # the data
    "connect",
    "remote",
    "table",
    # what is asked: more in `queries`
    "Count",
    "Integers",
    "Interval",
    "Sensitivity",
    "Sum",
    # how it is answered: more in `mechanisms`
    "Composed",
    "Each",
    "Exponential",
    "Gaussian",
    "GaussianProcess",
    "Laplace",
    "NoisyArgmax",
    "RandomizedResponse",
    "Shuffled",
    "Subsampled",
    # what is promised: more in `guarantees`
    "Approx",
    "GaussianTradeoff",
    "Guarantee",
    "Pure",
    "Renyi",
    "ZeroConcentrated",
    "compose",
    "for_unit",
    "least_error",
    "risk",
    "verify",
    # what is spent, and what is returned
    "Ledger",
    "publish",
    "Release",
    "Session",
    "release",
    "stream",
    # what can go wrong: more in `errors`
    "BudgetExhausted",
    "DiscreetError",
    "InvalidArgument",
    "NotAllowed",
    "QueryError",
    # submodules
    "adaptive",
    "audit",
    "datasets",
    "errors",
    "functions",
    "gateway",
    "guarantees",
    "learn",
    "ledger",
    "local",
    "mechanisms",
    "publication",
    "queries",
    "shuffle",
    "sql",
    "stats",
    "synthetic",
    "tables",
    "testing",
    "__version__",
]
