"""The shuffle model: messages arrive in random order, so a little noise from each client hides everyone."""

from discreet.shuffle.bit_sums import BitSum, TwoMessageBitSum, bit_sum
from discreet.shuffle.fakes import Fakes
from discreet.shuffle.hashed import HashedHistogram
from discreet.shuffle.histograms import ParallelSums, ResponseHistogram, histogram
from discreet.shuffle.protocol import PollRelease, Protocol, from_description
from discreet.shuffle.reals import BitPlanes
from discreet.shuffle.split_and_mix import SplitAndMix
from discreet.shuffle.sums import mean, real_sum

sum = real_sum

__all__ = [
    "BitPlanes",
    "BitSum",
    "Fakes",
    "HashedHistogram",
    "ParallelSums",
    "PollRelease",
    "Protocol",
    "ResponseHistogram",
    "SplitAndMix",
    "TwoMessageBitSum",
    "bit_sum",
    "from_description",
    "histogram",
    "mean",
    "real_sum",
    "sum",
]
