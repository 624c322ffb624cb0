"""Regressions by descent: robust (Huber), quantile, and counts (Poisson)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_positive, exactly
from discreet.extras import need
from discreet.learn.automatic import AUTO, Auto, is_auto
from discreet.learn.base import numbers_of
from discreet.learn.glm import LinearRegressor
from discreet.ledger import Ledger
from discreet.rows.arrays import namespace
from discreet.rows.containers import Data
from discreet.rows.gradients.losses import Huber, Loss, Pinball, Poisson

RegressorMixin: Any = need("sklearn.base", "learn", "discreet.learn").RegressorMixin


class HuberRegressor(RegressorMixin, LinearRegressor):  # type: ignore[misc]
    """Squared error up to `threshold` of the target's bound, absolute error beyond, so that outliers have little
    effect.
    """

    def __init__(
        self,
        *,
        epsilon: Number = 1.0,
        delta: Number = 1e-6,
        target_bound: Number | tuple[Number, Number] | Auto = AUTO,
        threshold: Number = 0.5,
        feature_norm: Number | Auto = AUTO,
        feature_ranges: ArrayLike | Auto | None = AUTO,
        fit_intercept: bool = True,
        n_samples: int | None = None,
        steps: int | None = None,
        clip: Number | None = None,
        learning_rate: Number | None = None,
        radius: Number | None = None,
        average: str = "last half",
        momentum: Number | None = None,
        sampling: Number | None = None,
        rows_per_person: int | None = None,
        ledger: Ledger | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon, self.delta, self.target_bound, self.threshold = epsilon, delta, target_bound, threshold
        self.feature_norm, self.feature_ranges, self.fit_intercept = feature_norm, feature_ranges, fit_intercept
        self.n_samples, self.steps, self.clip, self.learning_rate = n_samples, steps, clip, learning_rate
        self.radius, self.average, self.momentum, self.sampling = radius, average, momentum, sampling
        self.rows_per_person, self.ledger, self.verbose = rows_per_person, ledger, verbose

    def _loss(self) -> Loss:
        return Huber(self.threshold)


class QuantileRegressor(RegressorMixin, LinearRegressor):  # type: ignore[misc]
    """The `quantile` of the target given the features. The corner of its loss is smoothed within `smoothing`."""

    def __init__(
        self,
        *,
        epsilon: Number = 1.0,
        delta: Number = 1e-6,
        quantile: Number = 0.5,
        target_bound: Number | tuple[Number, Number] | Auto = AUTO,
        smoothing: Number = 0.05,
        feature_norm: Number | Auto = AUTO,
        feature_ranges: ArrayLike | Auto | None = AUTO,
        fit_intercept: bool = True,
        n_samples: int | None = None,
        steps: int | None = None,
        clip: Number | None = None,
        learning_rate: Number | None = None,
        radius: Number | None = None,
        average: str = "last half",
        momentum: Number | None = None,
        sampling: Number | None = None,
        rows_per_person: int | None = None,
        ledger: Ledger | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon, self.delta, self.target_bound = epsilon, delta, target_bound
        self.quantile, self.smoothing = quantile, smoothing
        self.feature_norm, self.feature_ranges, self.fit_intercept = feature_norm, feature_ranges, fit_intercept
        self.n_samples, self.steps, self.clip, self.learning_rate = n_samples, steps, clip, learning_rate
        self.radius, self.average, self.momentum, self.sampling = radius, average, momentum, sampling
        self.rows_per_person, self.ledger, self.verbose = rows_per_person, ledger, verbose

    def _loss(self) -> Loss:
        return Pinball(self.quantile, self.smoothing)

    def _typical_slope(self) -> float:  # slopes that are clipped on one side only belong to another quantile
        return 2.01 * self._loss().lipschitz


class PoissonRegressor(RegressorMixin, LinearRegressor):  # type: ignore[misc]
    """Counts from 0 to `target_bound`: the logarithm of the mean is linear in the features."""

    def __init__(
        self,
        *,
        epsilon: Number = 1.0,
        delta: Number = 1e-6,
        target_bound: Number | None = None,
        feature_norm: Number | Auto = AUTO,
        feature_ranges: ArrayLike | Auto | None = AUTO,
        fit_intercept: bool = True,
        n_samples: int | None = None,
        steps: int | None = None,
        clip: Number | None = None,
        learning_rate: Number | None = None,
        radius: Number | None = None,
        average: str = "last half",
        momentum: Number | None = None,
        sampling: Number | None = None,
        rows_per_person: int | None = None,
        ledger: Ledger | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon, self.delta, self.target_bound = epsilon, delta, target_bound
        self.feature_norm, self.feature_ranges, self.fit_intercept = feature_norm, feature_ranges, fit_intercept
        self.n_samples, self.steps, self.clip, self.learning_rate = n_samples, steps, clip, learning_rate
        self.radius, self.average, self.momentum, self.sampling = radius, average, momentum, sampling
        self.rows_per_person, self.ledger, self.verbose = rows_per_person, ledger, verbose

    def _loss(self) -> Loss:
        if is_auto(self.target_bound):
            raise InvalidArgument(
                "target_bound, the largest count, must be declared. The largest count in the data is private.",
                code="learn-not-declared",
            )
        return Poisson(self.target_bound)  # type: ignore[arg-type]

    def _spread(self) -> float:
        return 1.0

    def _middle(self) -> float:
        return 0.0

    def _between(self, found: Any) -> tuple[float, float]:
        return 0.0, float(check_positive(self.target_bound, "target_bound"))

    def _typical_slope(self) -> float:  # a count is rarely off by more than a few standard deviations
        return 2 * math.sqrt(check_positive(self.target_bound, "target_bound"))

    def _targets(self, y: Any, found: Any = None) -> Any:
        return np.clip(numbers_of(y), 0, float(check_positive(self.target_bound, "target_bound")))

    def _answers(self, scores: Any) -> Any:
        xp = namespace(scores)
        return xp.clip(xp.exp(xp.clip(scores, -700, 700)), 0, float(exactly(self.target_bound)))

    def _widest(self) -> float:
        return float(exactly(self.target_bound))

    def predict(self, X: Data) -> Any:
        """The mean count for each row, at most the bound."""
        return self._answers(super().predict(X))
