"""Gaussian noise of several deviations: the guarantee of numbers whose sensitivity is measured in deviations."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact import samplers
from discreet.exact.rational import exactly, significant
from discreet.guarantees.conversions import largest_mu
from discreet.guarantees.guarantee import Approx, Guarantee, ZeroConcentrated
from discreet.guarantees.privacy_loss.compose import LossDistribution
from discreet.guarantees.privacy_loss.derived_pairs import ConcentratedPair, near_gaussian
from discreet.guarantees.unit import Unit
from discreet.mechanisms.noise.lattice import from_lattice
from discreet.mechanisms.protocol import is_pure, least_noise, meets
from discreet.queries.sensitivity import Sensitivity, SensitivityLike

Floats = NDArray[np.float64]


class Deviating(Protocol):
    """A mechanism whose sensitivity is measured in deviations of its noise."""

    def sensitivity(self, unit: Unit | None = None, rows_per_person: int = 1) -> Sensitivity:
        """How far one unit can move the answer, in deviations."""

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        """The guarantee for this sensitivity."""


D = TypeVar("D", bound=Deviating)


def within_deviations(squared: Fraction, variance: Fraction, moved: int, unit: Unit | None) -> LossDistribution:
    """The guarantee of discrete Gaussian noise if `moved` coordinates move by `squared`, in squared deviations.

    Promise: the variance of every coordinate is at least `variance`, in squared steps of its lattice. Then its mass at
    each point equals that of the continuous cell within the factor that `near_gaussian` states for this variance. So
    the slack of all coordinates is at most `moved` times that, and the distance of the continuous laws is the root of
    `squared`.
    """
    near = near_gaussian(math.ceil(squared * variance), variance, moved)
    pair = near if near.slack < 1e-4 else ConcentratedPair(squared / 2)
    return LossDistribution(factors=((pair, 1),), protects=unit)


def noisy_units(exact: NDArray[Any], grain: Fraction, step: Fraction, variance: Fraction) -> Floats:
    """Multiples of `grain` with noise in whole steps, added as integers. The step divides the grain."""
    flat = np.asarray(exact, dtype=object).reshape(-1) * int(grain / step)
    noise = samplers.discrete_gaussian(variance / step**2, flat.size).astype(object)
    return from_lattice(flat + noise, step).astype(np.float64).reshape(np.shape(exact))


def calibrate_noise(make: Callable[[Fraction], D], guarantee: Guarantee, unit: Unit | None, rows_per_person: int) -> D:
    """The mechanism of the family `make(scale)` with the least noise that keeps `guarantee`."""
    if is_pure(guarantee):
        raise InvalidArgument(
            "Gaussian noise cannot keep a pure guarantee. Give a delta, such as 1e-6.", code="needs-delta"
        )

    def keeps(m: D) -> bool:
        return meets(m.guarantee(m.sensitivity(unit, rows_per_person)), guarantee)

    start = make(Fraction(1)).sensitivity(unit, rows_per_person).exact / Fraction(allowed_move(guarantee))
    for more in (0, Fraction(1, 10**9), Fraction(1, 10**7), Fraction(1, 10**5)):
        if keeps(made := make(start * (1 + more))):
            return made
    return least_noise(make, keeps, significant(start, up=True))


def allowed_move(guarantee: Guarantee) -> float:
    """The largest move that the guarantee allows, in deviations of continuous noise."""
    if isinstance(guarantee, ZeroConcentrated):
        return math.sqrt(2 * exactly(guarantee.rho))
    if not isinstance(guarantee, Approx):
        raise InvalidArgument(
            "This noise is calibrated for Approx and ZeroConcentrated. Ask for one of them.",
            code="guarantee-not-supported",
        )
    return largest_mu(float(exactly(guarantee.epsilon)), float(exactly(guarantee.delta)))
