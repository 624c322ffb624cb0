"""The noise of a descent: the guarantee of all steps together, and the least noise that keeps a guarantee."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from discreet.errors import IncompatibleGuarantee, InvalidArgument
from discreet.exact.rational import Number, exactly, significant, sqrt_up
from discreet.exact.search import bisect, bracket, geometric
from discreet.guarantees.conversions import largest_mu
from discreet.guarantees.guarantee import Approx, Guarantee, ZeroConcentrated
from discreet.guarantees.privacy_loss.compose import compose
from discreet.mechanisms.combine import Subsampled
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.laplace import Laplace, taught_sum_scale
from discreet.mechanisms.protocol import TAUGHT, is_pure, least_noise, meets, tidy
from discreet.queries.sensitivity import Sensitivity

COUNTED = 10
"""The noise of the count, relative to its sensitivity, is this many times that of all steps together."""


@dataclass(frozen=True)
class StepNoise:
    """What the guarantee depends on: the noise of a step, the number of steps, the sampling, and the noise of the
    count.
    """

    bound: Sensitivity
    clip: Number
    steps: int
    sampling: Fraction | None
    counted: bool

    def guarantee(self, noise: Gaussian | Laplace, counting: Gaussian | Laplace | None) -> Guarantee:
        if self.sampling is not None:
            if self._rows > 1:
                raise IncompatibleGuarantee(
                    "Sampling protects one row only, because each row of a person is sampled independently."
                )
            parts = [Subsampled(mechanism=noise, rate=self.sampling).guarantee(self.bound)] * self.steps
        elif isinstance(noise, Laplace):
            parts = [noise.guarantee(self.bound, times=self.steps)]
        else:
            parts = [noise.guarantee(self.bound)] * self.steps
        count = [] if counting is None else [counting.guarantee(Sensitivity(self._rows, unit=self.bound.unit, grain=1))]
        return compose(parts + count)

    @property
    def _rows(self) -> int:
        """How many rows a unit may add: one for each clip by which it moves the sum."""
        return math.ceil(self.bound.exact / exactly(self.clip))

    def counting(self, noise: Gaussian | Laplace, pure: bool) -> Gaussian | Laplace | None:
        """Noise for the number of rows: a hundredth of the variance of all steps together, or a twentieth of ε."""
        if not self.counted:
            return None
        moved = noise._size / exactly(self.clip)
        if pure:
            shared = moved / (self.steps * sqrt_up(Fraction(self.bound.dimension)))
            return Laplace(scale=tidy(significant(20 * shared, up=True, digits=6)))
        shared = moved / (sqrt_up(Fraction(self.steps)) * (self.sampling or 1))
        return Gaussian(stddev=tidy(significant(COUNTED * shared, up=True, digits=6)))


@lru_cache(maxsize=256)
def calibrate_noise(guarantee: Guarantee, drawn: StepNoise, kind: str) -> Gaussian | Laplace:
    """The least noise. It is cached, because cross-validation asks for the same noise many times."""
    family: Any = Gaussian if kind == "gaussian" else Laplace
    pure = is_pure(guarantee)
    if kind == "gaussian" and pure:
        raise InvalidArgument(
            "Gaussian noise cannot keep a pure guarantee. Give a delta, or noise='laplace'.", code="needs-delta"
        )

    def make(size: Fraction) -> Any:
        return family._make(size, drawn.bound.grain)

    def keeps(noise: Any) -> bool:
        return meets(drawn.guarantee(noise, drawn.counting(noise, pure)), guarantee)

    start = _first_guess(guarantee, drawn.bound, drawn.steps)
    if drawn.sampling is None and (pure or kind == "gaussian"):
        counted = Fraction(21, 20) if pure else sqrt_up(1 + Fraction(1, COUNTED**2))
        plain = start * (counted if drawn.counted else 1)
        for more in (0, Fraction(1, 10**8), Fraction(1, 10**6), Fraction(1, 10**4)):
            if keeps(made := make(significant(plain * (1 + more), up=True, digits=10))):
                return made  # type: ignore[no-any-return]
    if drawn.sampling is None:
        return least_noise(make, keeps, significant(start, up=True))  # type: ignore[no-any-return]

    def enough(size: Fraction) -> bool:
        return keeps(make(size))

    # very small samples might need no noise at all, but get some
    found = bracket(enough, start, least=min(start, drawn.bound.exact / 8), most=start * 2**60)
    if found is None:
        raise InvalidArgument(
            "No amount of this noise keeps the guarantee. Ask for a weaker one.", code="guarantee-out-of-reach"
        )
    # numerical composition is slow, so the search stops at a thousandth and the result is checked
    least = bisect(enough, *found, relative=1e-3, middle=geometric)
    return make(significant(least, up=True, digits=10))  # type: ignore[no-any-return]


def _first_guess(guarantee: Guarantee, bound: Sensitivity, steps: int) -> Fraction:
    """√T·Δ/μ, with μ the Gaussian trade-off that the guarantee allows."""
    if isinstance(guarantee, ZeroConcentrated):
        return sqrt_up(bound.exact**2 * steps / (2 * exactly(guarantee.rho)))
    if not isinstance(guarantee, Approx):
        raise InvalidArgument(
            "Descent is calibrated for Approx, Pure and ZeroConcentrated. Ask for one of them.",
            code="guarantee-not-supported",
        )
    epsilon, delta = float(exactly(guarantee.epsilon)), float(exactly(guarantee.delta))
    if not delta:
        return bound.to("L1").exact * steps / exactly(guarantee.epsilon)
    return sqrt_up(bound.exact**2 * steps) / Fraction(largest_mu(epsilon, delta))


def taught(
    guarantee: Guarantee, bound: Sensitivity, steps: int, calibration: str, noise: str, unit: Fraction
) -> Laplace:
    if noise != "laplace" or calibration not in (TAUGHT, "L10.T3") or not isinstance(guarantee, Approx):
        raise InvalidArgument(
            'The formula of the documents is for Laplace noise and Approx. Use noise="laplace" and '
            'calibration="taught".',
            code="formula-does-not-apply",
        )
    if calibration == TAUGHT:
        scale = taught_sum_scale("L10.A strong", bound.exact, steps * bound.dimension, guarantee)
    else:
        scale = taught_sum_scale("L10.T3", sqrt_up(bound.exact**2 * steps), bound.dimension, guarantee)
    return Laplace._make(significant(scale, up=True), unit)
