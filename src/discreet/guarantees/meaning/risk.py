"""`risk`: what a guarantee means for one person or a household, as odds, as the best attack, and in words."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

from discreet.errors import IncompatibleGuarantee, InvalidArgument
from discreet.exact.rational import Number, check_count, check_probability, exactly, exp_bounds, float_down, float_up
from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.meaning.curve import FARTHEST, Curve, curve_of, found_at, loss_except, posterior_of, success_at
from discreet.guarantees.meaning.groups import for_group
from discreet.guarantees.privacy_loss.compose import LossDistribution
from discreet.guarantees.unit import Unit

About = Literal["presence", "value"]
BASE_RATES = (0.001, 0.01, 0.1, 0.5)
"""How likely something may be before anything is released: 1 in 1000 to an even chance."""


@dataclass(frozen=True, kw_only=True)
class Risk:
    """What an attacker who knows everything else can learn about one person, or about `people` of them together.

    The attacker decides between two neighboring data sets: with and without these people (`about="presence"`), or with
    one or another value for each of them (`about="value"`). A base rate is the probability that the attacker gives to
    the first one before anything is released.

    Promise: no method returns less risk than there is, for any mechanism that keeps `guarantee`, any attack and any
    other knowledge. Probabilities are rounded to the side of more risk.
    Source: Wasserman-Zhou 2010; Kairouz-Oh-Viswanath 2015; Dong-Roth-Su 2022.
    """

    guarantee: Guarantee
    people: int = 1
    about: About = "presence"
    base_rates: tuple[Number, ...] = BASE_RATES
    failure: float = 0.0
    """The probability with which the odds may change by more than `factor`. 0 if every loss is bounded."""
    covers: Guarantee = field(repr=False)
    """What the guarantee promises to all `people` together, in this question."""

    @cached_property
    def curve(self) -> Curve:
        """Each ε with the δ that the guarantee has there, for all these people together."""
        return curve_of(self.covers)

    @cached_property
    def loss(self) -> float:
        """The largest privacy loss, except with probability `failure`: odds change by at most e^loss, up or down."""
        return loss_except(self.covers, self.failure)

    @property
    def factor(self) -> float:
        """e^loss: the factor by which odds may change, rounded up. Infinity if there is no bound."""
        return math.inf if self.loss > FARTHEST else float_up(exp_bounds(Fraction(self.loss))[1])

    def posterior(self, base_rate: Number) -> tuple[float, float]:
        """The lowest and the highest probability that the attacker can hold after all releases.

        Promise: whichever of the two data sets is the true one, the probability is between the two numbers, except
        with probability at most `failure`.

        >>> from discreet.guarantees import Pure
        >>> low, high = risk(Pure(epsilon=1)).posterior(0.5)
        >>> round(low, 3), round(high, 3)
        (0.269, 0.731)
        """
        low, high = posterior_of(_rate(base_rate), self.loss)
        return float_down(low), float_up(high)

    def odds(self, base_rate: Number) -> tuple[float, float]:
        """The lowest and the highest odds (a probability divided by the rest) after all releases."""
        low, high = posterior_of(_rate(base_rate), self.loss)
        return float_down(low / (1 - low)), math.inf if high == 1 else float_up(high / (1 - high))

    def success(self, base_rate: Number) -> float:
        """The largest probability that the best guess is right. Without the releases it is the larger of `base_rate`
        and the rest.
        """
        return float_up(self._success(_rate(base_rate)))

    def _success(self, base_rate: Fraction) -> Fraction:
        return success_at(self.covers, self.curve, base_rate)

    @cached_property
    def advantage(self) -> float:
        """The largest difference between the fraction of people that an attack finds and that of its false alarms."""
        return min(1.0, float_up(2 * self._success(Fraction(1, 2)) - 1))

    def true_positives(self, false_positives: Number) -> float:
        """The largest fraction of the people in the data that an attack finds, at this fraction of false alarms."""
        exact = exactly(false_positives, "false_positives")
        if not 0 <= exact <= 1:
            raise InvalidArgument("false_positives must be between 0 and 1, such as 0.01.", code="out-of-range")
        return found_at(self.covers, self.curve, float_up(exact))

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON. A number that has no bound is None."""
        rates = [_rate(one) for one in self.base_rates]
        return {
            "guarantee": str(self.guarantee),
            "protects": None if self.guarantee.protects is None else repr(self.guarantee.protects),
            "neighbors": self.guarantee.relation,
            "trust": self.guarantee.trust,
            "people": self.people,
            "about": self.about,
            "largest_loss": self.loss if math.isfinite(self.loss) else None,
            "largest_factor": self.factor if math.isfinite(self.factor) else None,
            "failure": self.failure,
            "advantage": self.advantage,
            "base_rates": [
                {"base_rate": float(one)}
                | dict(zip(("lowest", "highest"), self.posterior(one), strict=True))
                | {"best_guess_right": self.success(one), "without_releases": float(max(one, 1 - one))}
                for one in rates
            ],
            "attack": [
                {"false_positives": one, "true_positives": self.true_positives(one)} for one in (0.001, 0.01, 0.1)
            ],
        }

    def __str__(self) -> str:
        from discreet.guarantees.meaning.words import described

        return described(self)

    def _repr_html_(self) -> str:
        from discreet.guarantees.meaning.words import as_html

        return as_html(self)

    def svg(self, *, width: int = 360, style: str | None = None) -> str:
        """The best attack as a small SVG picture, in the color of the text around it, or "light" or "dark"."""
        from discreet.guarantees.meaning.picture import draw_svg

        return draw_svg({"": self}, width=width, style=style)

    def plot(self, path: Any = None, *, style: str = "light") -> Any:
        """The best attack as a matplotlib figure, saved at `path` if one is given."""
        from discreet.guarantees.meaning.picture import plot_attacks

        return plot_attacks({"": self}, path=path, style=style)


def risk(
    guarantee: Guarantee,
    *,
    people: int = 1,
    base_rates: Iterable[Number] = BASE_RATES,
    about: About | None = None,
    failure: Number | None = None,
    protects: Unit | None = None,
) -> Risk:
    """What a guarantee means, in words and odds, for one person or for a household of several `people`.

    `about` is what the attacker wants to know: whether these people are in the data ("presence"), or which of two
    values they have ("value"), which is the same as replacing them. By default it is what the neighbor relation says.
    `failure` is the probability with which the odds may change by more than stated. By default it is 0 for a bounded
    loss, and otherwise one in a million, or ten times δ if that is more. `protects` states the unit, if the guarantee
    does not.

    >>> from discreet.guarantees import Pure
    >>> round(risk(Pure(epsilon=1)).success(0.5), 4), round(risk(Pure(epsilon=1), people=3).success(0.5), 4)
    (0.7311, 0.9526)
    """
    if not isinstance(guarantee, Guarantee):
        raise InvalidArgument(
            "risk needs a guarantee, such as dp.Pure(epsilon=1), or answer.guarantee for what was released.",
            code="wrong-type",
        )
    stated = guarantee.stated_for(protects)
    count = check_count(people, "people")
    rates = _rates(base_rates)
    question = _question(stated, about)
    covers = _covers(stated, count, question)
    chosen = _default_failure(covers) if failure is None else _checked_failure(failure)
    return Risk(guarantee=stated, people=count, about=question, base_rates=rates, failure=chosen, covers=covers)


def _rate(value: Any) -> Fraction:
    return check_probability(value, "base_rate")


def _rates(given: Any) -> tuple[Number, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidArgument("base_rates must be a list of probabilities, such as [0.01, 0.5].", code="wrong-type")
    rates = tuple(given)
    if not rates:
        raise InvalidArgument("base_rates is empty. Write at least one, such as [0.01].", code="empty")
    for rate in rates:
        _rate(rate)
    return rates


def _question(guarantee: Guarantee, about: Any) -> About:
    natural: About = "presence" if guarantee.relation == "add_or_remove" else "value"
    if about is None:
        return natural
    if about not in ("presence", "value"):
        raise InvalidArgument("about must be 'presence' or 'value'.", code="not-an-option")
    if about == "presence" and natural == "value":
        raise IncompatibleGuarantee(
            "This guarantee is for replaced people: whether somebody is in the data is public. Ask about='value'."
        )
    found: About = about
    return found


def _covers(guarantee: Guarantee, people: int, about: About) -> Guarantee:
    if about == "presence" or guarantee.relation == "replace":
        return for_group(guarantee, people)
    if isinstance(guarantee, LossDistribution):
        try:
            return for_group(guarantee.for_replacement(), people)
        except IncompatibleGuarantee:
            pass  # a replacement is a removal and an addition: two steps
    twice = for_group(guarantee, 2 * people)
    unit = twice.protects
    if unit is None:
        return replace(twice, neighbors="replace")
    return replace(twice, protects=replace(unit, neighbors="replace"))


def _default_failure(covers: Guarantee) -> float:
    if covers.largest_loss is not None and not covers.infinite:
        return 0.0
    failure = max(1e-6, float(f"{10 * covers.infinite:.3g}"))
    return failure if failure < 1 else covers.infinite


def _checked_failure(value: Number) -> float:
    exact = exactly(value, "failure")
    if not 0 <= exact < 1:
        raise InvalidArgument(
            "failure must be at least 0 and below 1. Choose a value such as 1e-6.", code="out-of-range"
        )
    return float_down(exact)
