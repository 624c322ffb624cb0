"""Real messages among fakes: how many clients have each choice, and how many fakes a promise needs."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count, exactly
from discreet.exact.search import bracket
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Approx, Guarantee
from discreet.guarantees.influence import Moves
from discreet.guarantees.privacy_loss.compose import Factors, LossDistribution
from discreet.guarantees.privacy_loss.shuffled_pairs import TwoCountsPair, binomial
from discreet.mechanisms.protocol import meets, tidy
from discreet.mechanisms.reports.local_records import places_among
from discreet.mechanisms.reports.shuffle_clients import ChoiceAmongFakes
from discreet.queries.space import Categories
from discreet.shuffle.protocol import (
    Ints,
    Protocol,
    each_of,
    far_off,
    honest_clients,
    least_that_keeps,
    validate_goal,
)

MOST_MESSAGES = 256
"""More messages a client than this are refused: hashing needs fewer."""


@dataclass(frozen=True, kw_only=True)
class CountedChoices(Protocol):
    """Counts of declared choices. A value matches a choice if they are equal. Any other value is reported as a uniform
    choice, so that no error can reveal it.
    """

    choices: Sequence[Hashable]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "choices", Categories(self.choices).points())
        if len(self.choices) < 2:
            raise InvalidArgument("A histogram needs at least two choices.", code="too-few-choices")

    publishes: ClassVar[str] = "one count"

    @property
    def takes(self) -> str:
        return "one of its choices"

    @cached_property
    def _by_choice(self) -> dict[Hashable, int]:
        return {choice: place for place, choice in enumerate(self.choices)}

    def _places(self, values: Any) -> Ints:
        return places_among(values, self._by_choice)

    def _named(self, counts: NDArray[Any]) -> dict[Hashable, float]:
        return dict(zip(self.choices, (float(one) for one in counts), strict=True))


@dataclass(frozen=True, kw_only=True)
class Fakes(CountedChoices):
    """Each client sends its choice, and `fakes` messages that are uniform over all choices; a fraction of one is sent
    with that probability, and an empty message otherwise, so that all send equally many.

    Promise: the counts of two choices with the fakes among them, exactly (`TwoCountsPair`). Together, shuffler and
    analyzer learn the choice.
    Error: a count less its share of the fakes has the standard deviation √(fakes·n/choices), whatever the counts.
    """

    fakes: Number
    kind: ClassVar[str] = "histogram with fakes"

    def __post_init__(self) -> None:
        super().__post_init__()
        if exactly(self.fakes) <= 0 or self.messages > MOST_MESSAGES:
            raise InvalidArgument(
                f"fakes must be above 0 and at most {MOST_MESSAGES} for each client. For so many choices, hash them: "
                "dp.shuffle.histogram(…, method='hashed').",
                code="too-large",
            )

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        choices: Sequence[Hashable],
        clients: int,
        minimum: int | None = None,
        honest: Number = 1,
    ) -> Self:
        """The fewest fakes that keep (ε,δ)."""
        least = clients if minimum is None else minimum
        count = honest_clients(least, honest)
        fakes = least_fakes(validate_goal(guarantee), len(tuple(choices)), count)
        return cls(clients=clients, minimum=least, honest=honest, choices=choices, fakes=tidy(fakes))

    @property
    def _whole(self) -> tuple[int, Fraction]:
        return math.floor(exactly(self.fakes)), exactly(self.fakes) % 1

    @property
    def messages(self) -> int:
        return 1 + math.ceil(exactly(self.fakes))

    @property
    def alphabet(self) -> int:
        return len(self.choices) + 1  # the last one is an empty message

    def _factors(self, honest: int) -> Factors:
        return ((fakes_pair(exactly(self.fakes), len(self.choices), honest), 1),)

    @property
    def client(self) -> ChoiceAmongFakes:
        return ChoiceAmongFakes(size=len(self.choices), fakes=self.fakes)

    def _readable(self, known: Ints) -> int:
        return readable_with_fakes(known, len(self.choices), self.messages, self._whole[0])

    def _estimate(self, counts: NDArray[Any], reports: int) -> dict[Hashable, float]:
        real = counts[: len(self.choices)]
        fakes = real.sum() - reports  # how many of them there were is known: the rest was empty
        return self._named(real - fakes / len(self.choices))

    @property
    def deviation(self) -> float:
        size = len(self.choices)
        return math.sqrt(self.clients * float(self.fakes) / size * (1 - 1 / size))

    def error(self, confidence: float, *, reports: int | None = None) -> Accuracy:
        sure, count, size = (
            check_confidence(confidence),
            self.clients if reports is None else reports,
            len(self.choices),
        )
        # given the number of fakes, which is bounded, each choice has a binomial share
        fakes = count * math.ceil(exactly(self.fakes))
        if (part := self._whole[1]) and self.fakes:
            low, masses = binomial(count, part)
            fakes = count * self._whole[0] + low + int(np.searchsorted(np.cumsum(masses), 1 - (1 - sure) / 100)) + 1
        law = binomial(fakes, Fraction(1, size))
        return Accuracy(
            amount=far_off(law, fakes / size, each_of(0.99 * (1 - sure), size)), confidence=sure, of="every value"
        )

    def _moves(self, fakes: int, reports: int) -> Moves:
        """All messages name one choice. Each is taken for a fake of every choice, but for one in each report."""
        size, sent = len(self.choices), fakes * self.messages
        spread = Fraction(sent - fakes, size)
        return Moves(float(sent - spread), float(spread), float(sent + (size - 2) * spread))


def readable_with_fakes(known: Ints, choices: int, messages: int, whole: int) -> int:
    """Of how many reports messages can be, of which at most one a report is empty and the others name a choice."""
    named = int(np.count_nonzero(known < choices))
    return min(len(known) // messages, named // (1 + whole))


def fakes_pair(fakes: Fraction, choices: int, honest: int) -> TwoCountsPair:
    """How `fakes` per client hide a real message among this many choices."""
    whole, part, two = math.floor(fakes), fakes % 1, Fraction(2, choices)
    if not part:
        return TwoCountsPair(honest * whole, two)
    return TwoCountsPair(honest * whole, two, more=honest, more_chance=part * two)


@lru_cache(maxsize=256)
def least_fakes(goal: Approx, choices: int, honest: int) -> Fraction:
    """The fewest fakes per client that satisfy (ε,δ)."""
    check_count(choices, "choices", at_least=2)
    check_count(honest, "honest clients", at_least=2)
    # about 30/ε² + 5 fakes a choice are enough for any δ above 10⁻¹²; more are tried when they are not
    start = Fraction(8 * choices, honest)

    def factors(fakes: Fraction) -> Factors:
        return ((fakes_pair(fakes, choices, honest), 1),)

    def keeps(fakes: Fraction) -> bool:
        return meets(LossDistribution(factors=factors(fakes)), goal)

    found = bracket(keeps, start, least=start, most=Fraction(choices * 10**9, honest))
    if found is None:
        raise InvalidArgument(
            f"No number of fakes guarantees {goal}. Ask more clients, or choose a weaker guarantee.",
            code="guarantee-out-of-reach",
        )
    return least_that_keeps(factors, goal, Fraction(1, 10**12), found[0], "number of fakes")
