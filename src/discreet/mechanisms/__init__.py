"""How questions are answered: each mechanism is a frozen value whose fields are the noise that is drawn."""

from typing import TYPE_CHECKING

from discreet.exports import lazily

_LATER = {
    "AboveThreshold": "selection.threshold",
    "CommonKeys": "selection.common_keys",
    "Composed": "combine",
    "CorrelatedGaussian": "noise.covariance",
    "CountTree": "counts.count_tree",
    "Cumulative": "quantiles.cumulative",
    "CumulativeCounts": "quantiles.cumulative",
    "Each": "combine",
    "Exponential": "selection.exponential",
    "Gaussian": "noise.gaussian",
    "GaussianProcess": "noise.gaussian_process",
    "Holders": "selection.key_holders",
    "KeySelection": "selection.threshold",
    "Laplace": "noise.laplace",
    "Mechanism": "protocol",
    "MultiplicativeWeights": "counts.multiplicative_weights",
    "NoisyArgmax": "selection.noisy_argmax",
    "OnlineMultiplicativeWeights": "counts.online_weights",
    "PermuteAndFlip": "selection.exponential",
    "PersonKeys": "selection.key_holders",
    "PrefixSums": "counts.factorization",
    "Quantile": "quantiles.quantile",
    "Quantiles": "quantiles.quantiles",
    "QuantilesFromCounts": "quantiles.cumulative",
    "RandomizedResponse": "reports.randomized_response",
    "Shuffled": "reports.shuffled",
    "SmallDatabase": "counts.small_database",
    "StreamSums": "counts.stream_sums",
    "Subsampled": "combine",
    "TopK": "selection.top_k",
    "UpwardSearch": "selection.upward_search",
    "best_quantiles": "quantiles.cumulative",
    "chooser_for": "selection.top_k",
}

if TYPE_CHECKING:
    from discreet.mechanisms.combine import Composed, Each, Subsampled
    from discreet.mechanisms.counts.count_tree import CountTree
    from discreet.mechanisms.counts.factorization import PrefixSums
    from discreet.mechanisms.counts.multiplicative_weights import MultiplicativeWeights
    from discreet.mechanisms.counts.online_weights import OnlineMultiplicativeWeights
    from discreet.mechanisms.counts.small_database import SmallDatabase
    from discreet.mechanisms.counts.stream_sums import StreamSums
    from discreet.mechanisms.noise.covariance import CorrelatedGaussian
    from discreet.mechanisms.noise.gaussian import Gaussian
    from discreet.mechanisms.noise.gaussian_process import GaussianProcess
    from discreet.mechanisms.noise.laplace import Laplace
    from discreet.mechanisms.protocol import Mechanism
    from discreet.mechanisms.quantiles.cumulative import (
        Cumulative,
        CumulativeCounts,
        QuantilesFromCounts,
        best_quantiles,
    )
    from discreet.mechanisms.quantiles.quantile import Quantile
    from discreet.mechanisms.quantiles.quantiles import Quantiles
    from discreet.mechanisms.reports.randomized_response import RandomizedResponse
    from discreet.mechanisms.reports.shuffled import Shuffled
    from discreet.mechanisms.selection.common_keys import CommonKeys
    from discreet.mechanisms.selection.exponential import Exponential, PermuteAndFlip
    from discreet.mechanisms.selection.key_holders import Holders, PersonKeys
    from discreet.mechanisms.selection.noisy_argmax import NoisyArgmax
    from discreet.mechanisms.selection.threshold import AboveThreshold, KeySelection
    from discreet.mechanisms.selection.top_k import TopK, chooser_for
    from discreet.mechanisms.selection.upward_search import UpwardSearch
else:
    __getattr__, __dir__ = lazily(__name__, _LATER)

__all__ = [
    "AboveThreshold",
    "CommonKeys",
    "Composed",
    "CorrelatedGaussian",
    "CountTree",
    "Cumulative",
    "CumulativeCounts",
    "Each",
    "Exponential",
    "Gaussian",
    "GaussianProcess",
    "Holders",
    "KeySelection",
    "Laplace",
    "Mechanism",
    "MultiplicativeWeights",
    "NoisyArgmax",
    "OnlineMultiplicativeWeights",
    "PermuteAndFlip",
    "PersonKeys",
    "PrefixSums",
    "Quantile",
    "Quantiles",
    "QuantilesFromCounts",
    "RandomizedResponse",
    "Shuffled",
    "SmallDatabase",
    "StreamSums",
    "Subsampled",
    "TopK",
    "UpwardSearch",
    "best_quantiles",
    "chooser_for",
]
