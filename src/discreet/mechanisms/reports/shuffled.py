"""Amplification by shuffling: local reports in a random order have a much stronger guarantee than each of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from discreet.errors import InvalidArgument
from discreet.exact import samplers
from discreet.exact.rational import check_count, exactly, significant
from discreet.exact.search import bisect, geometric
from discreet.guarantees.accuracy import Accuracy
from discreet.guarantees.guarantee import Guarantee, Pure
from discreet.guarantees.privacy_loss.compose import LossDistribution
from discreet.guarantees.privacy_loss.shuffled_pairs import (
    TwoCountsPair,
    blanket_of_response,
    clone_pair,
    likelier_reports_pair,
)
from discreet.guarantees.unit import row
from discreet.mechanisms.protocol import ChecksShape, check_enough_records, meets, offers, tidy
from discreet.mechanisms.reports.frequency_oracle import FrequencyOracle
from discreet.mechanisms.reports.local_records import is_column
from discreet.mechanisms.reports.randomized_response import RandomizedResponse
from discreet.queries.sensitivity import SensitivityLike
from discreet.rows.containers import Data


@dataclass(frozen=True, kw_only=True)
class Shuffled:
    """The reports of `clients` or more who each randomize their value with `local`, in a uniformly random order.

    Fewer than `clients` records are refused before anything is charged: their number is public.

    Promise: for a replaced client, the others being honest: by the privacy blanket for k-ary response, by what two
    values of a frequency oracle have in common, and by clones for any other randomizer with a pure local ε. To whom
    sees who sent which report, the local guarantee is left.
    Error: that of the local reports.
    Source: Feldman-McMillan-Talwar 2021; Balle-Bell-Gascón-Nissim 2019; [L8.DEF].

    >>> from discreet.guarantees.guarantee import Approx
    >>> local = RandomizedResponse.for_guarantee(Pure(epsilon=2), choices=["a", "b", "c"])
    >>> round(Shuffled(local=local, clients=10_000).guarantee().epsilon_at(delta=1e-6), 2)
    0.12
    """

    local: Any
    clients: int

    def __post_init__(self) -> None:
        check_count(self.clients, "clients", at_least=2)
        if self.local_epsilon is None:
            raise InvalidArgument(
                "Shuffling amplifies a randomizer with a pure local guarantee, such as k-ary response.",
                code="part-does-not-fit",
            )

    @property
    def local_epsilon(self) -> Fraction | None:
        """The ε of one report alone. None if it is not pure, or not local."""
        guarantee = self.local.guarantee()
        pure = guarantee.pure if isinstance(guarantee, LossDistribution) else guarantee
        return exactly(pure.epsilon) if isinstance(pure, Pure) and guarantee.trust == "local" else None

    def _pair(self) -> TwoCountsPair:
        if isinstance(self.local, RandomizedResponse):
            return blanket_of_response(len(self.local.choices), exactly(self.local.lie), self.clients)
        if isinstance(self.local, FrequencyOracle):
            return likelier_reports_pair(exactly(self.local.odds), self.local.apart, self.clients)
        epsilon = self.local_epsilon
        assert epsilon is not None  # checked when it was made
        return clone_pair(epsilon, self.clients)

    def guarantee(self, sensitivity: SensitivityLike = None) -> LossDistribution:
        """For one replaced client. `sensitivity` is not used: any two values are neighbors."""
        return LossDistribution(factors=((self._pair(), 1),), protects=row(neighbors="replace"), trust="shuffled")

    @classmethod
    def for_guarantee(cls, guarantee: Guarantee, *, clients: int, local: Callable[[Pure], Any]) -> Self:
        """The weakest local randomizer, made by `local` from a pure guarantee, that shuffled keeps `guarantee`."""
        low, high = Fraction(1, 10**6), Fraction(math.ceil(math.log(check_count(clients, "clients", at_least=2))) + 4)

        def keeps(epsilon: Fraction) -> bool:
            return meets(cls(local=local(Pure(epsilon=tidy(epsilon))), clients=clients).guarantee(), guarantee)

        def middle(low: Fraction, high: Fraction) -> Fraction:
            return significant(geometric(low, high), up=False, digits=9)

        if not keeps(low):
            raise InvalidArgument(
                "No local randomizer keeps this guarantee with so few clients. Use more clients, or a weaker "
                "guarantee.",
                code="guarantee-out-of-reach",
            )
        largest = bisect(keeps, low, high, relative=1e-4, middle=middle)
        return cls(local=local(Pure(epsilon=tidy(largest))), clients=clients)

    def error(self, confidence: float, **given: Any) -> Accuracy:
        """That of the local reports."""
        return self.local.error(confidence, **given)  # type: ignore[no-any-return]

    @property
    def at_least(self) -> int:
        """How many records the promise depends on."""
        return self.clients

    def count_records(self, value: Data) -> int:
        """The number of records, from the length of their container."""
        if not is_column(value):
            raise InvalidArgument(
                "Give the records of all clients, one each, in a list or an array.", code="not-a-column"
            )
        return len(value)

    def check(self, value: Data) -> None:
        """Refuse what cannot be read. Only shape and type decide."""
        if offers(self.local, ChecksShape):
            self.local.check(value)

    def _draw(self, value: Any) -> list[Any]:
        check_enough_records(self, self.count_records(value))
        reports = list(self.local._draw(value))
        if len(reports) != len(value):
            raise InvalidArgument(
                "Each client has one record. Give a list, or an array with one row for each.", code="wrong-shape"
            )
        return [reports[place] for place in samplers.permutation(len(reports)).tolist()]


def closed_form_bound(epsilon: float, clients: int, delta: float) -> float:
    """The published closed form of the amplified ε, which is far above the numerical one: for tests and teaching.

    Source: Feldman-McMillan-Talwar 2021, Theorem 3.1, for ε₀ ≤ ln(n/(16 ln(4/δ))).
    """
    grown = math.exp(epsilon)
    if epsilon > math.log(clients / (16 * math.log(4 / delta))):
        raise InvalidArgument(
            "The closed form is proved for a smaller local ε. Use guarantee(), which is exact.",
            code="formula-does-not-apply",
        )
    spread = 8 * math.sqrt(grown * math.log(4 / delta) / clients) + 8 * grown / clients
    return float(np.log1p((grown - 1) / (grown + 1) * spread))
