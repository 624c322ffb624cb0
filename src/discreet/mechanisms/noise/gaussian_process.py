"""Noise for answers that are functions: a path of a Gaussian process, as finitely many exact numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_positive, exactly, significant
from discreet.exact.search import bisect
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Guarantee, Pure
from discreet.guarantees.unit import Unit, check_rows, row
from discreet.mechanisms.noise.gaussian import Gaussian, taught_deviation
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.noise.lattice import from_lattice
from discreet.mechanisms.protocol import TAUGHT, TIGHT, check_calibration, is_pure, plain_sensitivity, tidy
from discreet.queries.sensitivity import Sensitivity, SensitivityLike
from discreet.rows.features import FourierFeatures, RandomFeatures

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class GaussianProcess:
    """Releases θ̃ = Σ φ(row) + noise, and with it the function φ(x)·θ̃ at every x, for one charge.

    For K(x, y) = φ(x)·φ(y) that is Σ K(x, row) + G(x), with G a path of the Gaussian process of covariance stddev²·K:
    finitely many numbers hold all of it, so that the same point has the same answer for ever. `size` is the public
    number of rows; the constant feature then is not drawn, and the covariance is stddev²·(K − its constant part).
    The value is counts of cells, as `features.counts` gives them.

    Promise: that of `noise` for a sum of vectors, of which a row changes one of norm at most 1 (less without the
    constant); two rows' vectors are at most √2 apart, less where the range is short.
    Error: at one point, the noise of the sum there.
    Source: [T.6.1], [T.6.5], [T.6.9], [T.6.10]; Hall-Rinaldo-Wasserman 2013.
    """

    features: FourierFeatures | RandomFeatures
    noise: Gaussian | Laplace
    size: Number | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.features, FourierFeatures | RandomFeatures):
            raise InvalidArgument("features must be FourierFeatures or RandomFeatures.", code="wrong-type")
        if not isinstance(self.noise, Gaussian | Laplace) or exactly(self.noise.step) != self.features.unit:
            raise InvalidArgument(
                "noise must be Gaussian or Laplace, with step=features.unit. Use for_guarantee.",
                code="part-does-not-fit",
            )
        if self.size is not None:
            check_positive(self.size, "size")
            if not isinstance(self.features, FourierFeatures):
                raise InvalidArgument(
                    "Random features have no constant one: leave size out.", code="conflicting-arguments"
                )

    @property
    def dimension(self) -> int:
        """How many numbers are drawn."""
        return self.features.size - (self.size is not None)

    def sensitivity(self, unit: Unit | None = None, rows_per_person: int = 1) -> Sensitivity:
        """How far one unit can move the sum of features, in L2. A replaced row may also be one that is left out."""
        return feature_sensitivity(self.features, self.size is not None, unit, rows_per_person)

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        """By default for one added or removed row. Pass `m.sensitivity(unit, rows_per_person)` for another unit."""
        bound = self.sensitivity(row()) if sensitivity is None else plain_sensitivity(sensitivity, "L2", self.dimension)
        return self.noise.guarantee(bound)

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        features: FourierFeatures | RandomFeatures,
        size: Number | None = None,
        unit: Unit | None = None,
        rows_per_person: int = 1,
        calibration: str = TIGHT,
    ) -> Self:
        """The least noise that keeps `guarantee`: Gaussian, or Laplace for Pure.

        `calibration="taught"` uses (Δ/ε)√(2 ln(2/δ)), proved for ε ≤ 1 [T.6.10]; `guarantee()` says what it attains.
        """
        check_calibration(calibration)
        bound = feature_sensitivity(features, size is not None, unit, rows_per_person)
        noise: Any
        if is_pure(guarantee):
            noise = Laplace.for_guarantee(Pure(epsilon=guarantee.epsilon), sensitivity=bound, step=features.unit)
        elif calibration == TAUGHT:
            noise = Gaussian._make(significant(taught_deviation(guarantee, bound.exact), up=True), features.unit)
        else:
            noise = Gaussian.for_guarantee(guarantee, sensitivity=bound, step=features.unit)
        return cls(features=features, noise=noise, size=size)

    def error(self, confidence: float) -> Accuracy:
        """Of Σ K(x, row) at one point x: beyond it with probability at most 1 − confidence."""
        sure = check_confidence(confidence)
        return Accuracy(amount=self.at_one_point(1 - sure), confidence=sure)

    @property
    def deviation(self) -> float:
        """Of each number drawn."""
        return self.noise.deviation

    def spread(self, damping: Floats | None = None) -> float:
        """√K(x, x) of what is drawn, with each frequency damped by this much: 1, or less without the constant."""
        return math.sqrt(float(self._spectrum(damping).sum()))

    def _spectrum(self, damping: Floats | None) -> Floats:
        """The share of each feature in K(x, x), on average over a period. The constant's share is 0 if it is
        not drawn.
        """
        if isinstance(self.features, RandomFeatures):
            return np.full(self.features.size, 1 / self.features.size)
        shares = np.ones(1)
        for axis in self.features.axes:
            own = np.concatenate([axis.weights[:1], axis.weights[1:].repeat(2) / 2])
            shares = np.outer(shares, own).reshape(-1)
        if self.size is not None:
            shares[0] = 0.0
        return shares if damping is None else shares * damping**2

    def at_one_point(self, miss: float, damping: Floats | None = None) -> float:
        """A bound that the noise of the sum at one point exceeds with probability at most `miss`."""
        if isinstance(self.noise, Gaussian):
            from scipy.special import ndtri

            return float(-ndtri(miss / 2)) * self.deviation * self.spread(damping) * (1 + 1e-9)
        # θ·Σφ_jξ_j has an exponential moment of at most e^{2θ²b²} while θb ≤ 1/√2
        scale, needed = self.deviation / math.sqrt(2), math.log(2 / miss)
        theta = min(math.sqrt(needed / 2), 1 / math.sqrt(2))
        return scale * (needed / theta + 2 * theta)

    def anywhere(self, miss: float, damping: Floats | None = None) -> float:
        """A bound that the noise of the sum exceeds, at any point of the range, with probability at most `miss`.

        On one axis by Rice's formula: a path that passes u does so at the start or crosses it going up, which it does
        L/(2πh)·e^{-u²/2} times on average. Otherwise by points that are dense enough to bound a band-limited
        path up to a factor.
        """
        if isinstance(self.features, RandomFeatures):
            return math.inf
        if isinstance(self.noise, Gaussian) and len(self.features.axes) == 1:
            return self._by_crossings(miss, damping)
        points = math.prod(8 * axis.orders + 1 for axis in self.features.axes)
        return self.at_one_point(miss / points, damping) / math.cos(math.pi / 8) ** len(self.features.axes)

    def _by_crossings(self, miss: float, damping: Floats | None) -> float:
        from scipy.special import ndtr

        [axis] = self.features.axes  # type: ignore[union-attr]
        shares = self._spectrum(damping)
        if not shares.sum() > 0:
            return 0.0
        turning = math.sqrt(float((shares * axis.frequencies() ** 2).sum() / shares.sum()))
        crossing = turning * axis.length / (2 * math.pi)

        def rare(level: float) -> bool:
            return 2 * (float(ndtr(-level)) + crossing * math.exp(-(level**2) / 2)) <= miss

        return bisect(rare, 60.0, 0.0, absolute=1e-9) * self.deviation * self.spread(damping) * (1 + 1e-6)

    def _draw(self, value: Any) -> dict[str, Any]:
        sums = self.features.sums(value).astype(object)
        unit, first = self.features.unit, 0 if self.size is None else 1
        noisy = from_lattice(sums[first:] + self.noise._noise(self.dimension), unit)
        if self.size is None:
            return {"coefficients": noisy, "size": self._counted(noisy)}
        known = float(exactly(self.size) * self.features.constant)  # type: ignore[union-attr]
        return {"coefficients": np.concatenate([[known], noisy]), "size": float(exactly(self.size))}

    def _counted(self, noisy: Floats) -> float:
        """The noisy number of rows, from the constant feature. If there is none, from K(x, x) = 1 on average."""
        if isinstance(self.features, FourierFeatures):
            return max(float(noisy[0]) / float(self.features.constant), 1.0)
        return math.nan

    def path(self, points: ArrayLike) -> Floats:
        """A path of the noise alone at these points, drawn anew: exactly [T.6.1], made from the same features."""
        drawn = from_lattice(self.noise._noise(self.dimension), self.features.unit)
        first = 0 if self.size is None else 1
        return np.asarray(self.features.features(points)[:, first:] @ drawn)


def feature_sensitivity(
    features: FourierFeatures | RandomFeatures, public: bool, unit: Unit | None, rows_per_person: int
) -> Sensitivity:
    """How far one unit can move a sum of features. `public` if the constant feature is not drawn."""
    who, rows = row() if unit is None else unit, check_rows(unit, rows_per_person)
    one = features.without_constant() if public and isinstance(features, FourierFeatures) else Fraction(1)
    moved = max(one, features.distance()) if who.neighbors == "replace" else one
    whole = (rows * moved / features.unit).__ceil__() * features.unit
    return Sensitivity(tidy(whole), "L2", unit=unit, dimension=features.size - public, grain=features.unit)
