"""What a mechanism may offer besides guarantee, error and draw: declared protocols, which the door asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet.guarantees.accuracy import Accuracy
from discreet.mechanisms import protocol
from discreet.mechanisms.combine import Subsampled
from discreet.mechanisms.counts.factorization import PrefixSums
from discreet.mechanisms.counts.stream_sums import StreamSums
from discreet.mechanisms.protocol import Mechanism
from discreet.mechanisms.quantiles.quantile import Quantile
from discreet.mechanisms.reports.randomized_response import RandomizedResponse
from discreet.mechanisms.reports.shuffled import Shuffled
from discreet.mechanisms.selection.exponential import Exponential
from discreet.queries.space import Integers

from ..refusing import refuses

LAPLACE = dp.Laplace(scale=1)
RESPONSE = RandomizedResponse(choices=["a", "b"], lie=0.25)
SHUFFLED = Shuffled(local=RESPONSE, clients=100)
MEDIAN = Quantile(space=Integers(0, 10), rate=1)
OFFERED = {
    "Laplace": (LAPLACE, {"ReadsSensitivity", "HasNorm"}),
    "RandomizedResponse": (RESPONSE, {"ChecksShape"}),
    "Shuffled": (SHUFFLED, {"ChecksShape", "NeedsRecords", "CountsRecords"}),
    "Quantile": (MEDIAN, {"ChecksShape"}),
    "Exponential": (Exponential(rate=1, choices=["a", "b"]), {"StatesSizes"}),
    "Subsampled": (
        Subsampled(mechanism=LAPLACE, rate=0.5, query=len),
        {"ReadsSensitivity", "ChecksShape", "AsksItself"},
    ),
    "PrefixSums": (PrefixSums(points=8, stddev=1), {"ChecksShape", "GoesOn"}),
    "StreamSums": (StreamSums(points=8, stddev=1), {"ChecksShape", "GoesOn"}),
}
PARTS = [name for name, part in vars(protocol).items() if getattr(part, "_is_runtime_protocol", False)]


@pytest.mark.parametrize("name", OFFERED)
def test_the_parts_that_a_mechanism_offers(name):
    mechanism, offered = OFFERED[name]
    found = {part for part in PARTS if isinstance(mechanism, getattr(protocol, part))}
    assert found == {"Mechanism", *offered}


@dataclass(frozen=True)
class Counting:
    """Noise of one's own, which offers one more part."""

    at_least: int = 3

    def guarantee(self, sensitivity: Any) -> dp.Guarantee:
        return dp.Pure(epsilon=1)

    def error(self, confidence: Any) -> Accuracy:
        return Accuracy(amount=0.0, confidence=confidence)

    def count_records(self, value: Any) -> int:
        return len(value)

    def _draw(self, value: Any) -> int:
        return 0


def test_the_door_uses_the_parts_of_a_mechanism_of_ones_own():
    assert isinstance(Counting(), Mechanism)
    assert dp.release(np.zeros(3), Counting(), sensitivity=1).value == 0
    with pytest.raises(dp.NotAllowed):
        dp.release(np.zeros(2), Counting(), sensitivity=1)
    with refuses(dp.InvalidArgument, "size-is-private"):
        Subsampled(mechanism=Counting(), rate=0.5)


def test_a_mechanism_that_answers_once_is_no_stream():
    with pytest.raises(dp.InvalidArgument):
        dp.stream(LAPLACE, sensitivity=1)
