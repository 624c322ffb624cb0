"""Several noisy answers in a row, where what is asked next depends on what was answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, Self

import numpy as np

from discreet.errors import InvalidArgument
from discreet.exact.rational import check_positive, exactly, significant, sqrt_up
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Guarantee, Pure
from discreet.guarantees.privacy_loss.compose import LossDistribution, compose
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.protocol import least_noise, meets, plain_sensitivity, tidy
from discreet.queries.sensitivity import SensitivityLike


class Asked(Protocol):
    """Exact answers to a row of questions about private rows."""

    def answer(self, earlier: list[Any]) -> Any:
        """The exact answer to the next question, which is chosen by the noisy answers to the earlier ones."""


@dataclass(frozen=True, kw_only=True)
class Steps:
    """Answers as many questions as there are `noises`, one after the other.

    Each question may depend on the noisy answers before it, and on nothing else. The sensitivities are fixed before.
    The result is a list with an array for each step.

    Promise: the numerically tight composition of all steps: noise and sensitivity of every step are fixed in advance,
    so it holds for questions that are chosen by earlier answers.
    Error: of one number of each step.
    """

    noises: tuple[Laplace | Gaussian, ...]

    def __post_init__(self) -> None:
        if not self.noises or not all(isinstance(noise, Laplace | Gaussian) for noise in self.noises):
            raise InvalidArgument("noises must be a tuple of Laplace or Gaussian noise.", code="part-does-not-fit")

    def guarantee(self, sensitivity: Sequence[SensitivityLike]) -> LossDistribution:
        """The guarantee for one sensitivity for each step."""
        if not isinstance(sensitivity, Sequence) or len(sensitivity) != len(self.noises):
            raise InvalidArgument("Give one sensitivity for each step.", code="wrong-shape")
        return compose(noise.guarantee(one) for noise, one in zip(self.noises, sensitivity, strict=True))

    @classmethod
    def for_guarantee(
        cls, guarantee: Guarantee, *, sensitivity: Sequence[SensitivityLike], parts: Sequence[Fraction]
    ) -> Self:
        """The least noise that keeps `guarantee`, of which each step gets a part. Laplace noise for a pure guarantee,
        Gaussian noise otherwise.
        """
        whole = sum((check_positive(part, "parts") for part in parts), Fraction(0))
        shares = [exactly(part) / whole for part in parts]
        if type(guarantee) is Pure:
            epsilon = exactly(guarantee.epsilon)
            return cls(
                noises=tuple(
                    Laplace.for_guarantee(Pure(epsilon=tidy(epsilon * share)), sensitivity=one)
                    for one, share in zip(sensitivity, shares, strict=True)
                )
            )
        bounds = [plain_sensitivity(one, "L2").to("L2").exact for one in sensitivity]
        # in deviations, the squared moves of the steps add up: each step gets its share of them
        widths = [bound * sqrt_up(1 / share) for bound, share in zip(bounds, shares, strict=True)]
        start = exactly(Gaussian.for_guarantee(guarantee, sensitivity=1).stddev)

        def make(scale: Fraction) -> Any:
            return cls(noises=tuple(Gaussian(stddev=tidy(significant(scale * width, up=True))) for width in widths))

        def keeps(made: Any) -> bool:
            return meets(made.guarantee(sensitivity), guarantee)

        for more in (0, Fraction(1, 10**7), Fraction(1, 10**5), Fraction(1, 10**3)):
            if keeps(made := make(start * (1 + more))):
                return made  # type: ignore[no-any-return]
        return least_noise(make, keeps, start)  # type: ignore[no-any-return]

    def error(self, confidence: float) -> tuple[Accuracy, ...]:
        """The error of one number of each step, all at once with this confidence."""
        each = 1 - (1 - check_confidence(confidence)) / len(self.noises)
        return tuple(noise.error(each) for noise in self.noises)

    def _draw(self, value: Asked) -> list[Any]:
        drawn: list[Any] = []
        for noise in self.noises:
            exact = value.answer(list(drawn))
            drawn.append(np.asarray(noise._draw(exact), dtype=np.float64))
        return drawn
