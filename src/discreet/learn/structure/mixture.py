"""A mixture of normal laws, fitted by noisy steps of expectation and maximization."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.exact.rational import Number, check_count
from discreet.extras import need
from discreet.guarantees.guarantee import Approx
from discreet.learn.automatic import AUTO, Auto, Source, is_auto, with_ranges, within_ranges
from discreet.learn.base import check_is_fitted, fitted_table, keep_columns, keep_ranges
from discreet.learn.structure.clustering import levels_for
from discreet.learn.structure.unlabelled import Unlabelled
from discreet.ledger import Ledger
from discreet.mechanisms.learning.mixture import MixtureSteps
from discreet.rows.containers import Data
from discreet.rows.rounding import check_ranges

DensityMixin: Any = need("sklearn.base", "learn", "discreet.learn").DensityMixin
check_random_state: Any = need("sklearn.utils", "learn", "discreet.learn").check_random_state
Floats = NDArray[np.float64]
ROUNDS = 3
"""Enough after private clusters; more rounds mean more noise in each."""


class GaussianMixture(DensityMixin, Unlabelled):  # type: ignore[misc]
    """`n_components` normal laws, each with a weight, a mean and a covariance.

    Half of the budget finds clusters, as `KMeans` does, from which `rounds` steps of expectation and maximization
    start. `feature_ranges`, a public (low, high) for each column, clamp the training rows. With "auto" they are found
    privately, within the cost of the fit: `ranges_`. With a `feature_norm` instead, rows are clipped to it.
    `covariance_type` is "full", or "diag" for variances only, which needs less data.
    `deviations_` are the standard deviations that the noise of the last step adds to the means. With `delta=0` the
    noise is Laplace and the promise is pure ε.
    """

    weights_: Floats
    means_: Floats
    covariances_: Floats
    deviations_: Floats

    def __init__(
        self,
        n_components: int = 2,
        *,
        covariance_type: str = "full",
        epsilon: Number = 1.0,
        delta: Number = 1e-6,
        feature_ranges: ArrayLike | Auto | None = AUTO,
        feature_norm: Number | Auto = AUTO,
        rounds: int | None = None,
        rows_per_person: int | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.n_components, self.covariance_type = n_components, covariance_type
        self.epsilon, self.delta = epsilon, delta
        self.feature_ranges, self.feature_norm, self.rounds = feature_ranges, feature_norm, rounds
        self.rows_per_person, self.ledger = rows_per_person, ledger

    def _plan(self, features: int) -> Any:
        return with_ranges(self, features, lambda goal: self._steps(features, goal))

    def _steps(self, features: int, goal: Approx) -> MixtureSteps:
        components = check_count(self.n_components, "n_components")
        by_norm = is_auto(self.feature_ranges) and not is_auto(self.feature_norm)
        norm: Any = self.feature_norm if by_norm else None
        return MixtureSteps.for_guarantee(
            goal,
            components=components,
            features=features,
            rounds=ROUNDS if self.rounds is None else check_count(self.rounds, "rounds"),
            levels=levels_for(components),
            covariance=self.covariance_type,
            feature_norm=norm,
            unit=self._unit(),
            rows_per_person=self._rows(),
        )

    def _fitted(self, features: int, names: list[str] | None, rows: Source) -> Self:
        ranges = None if is_auto(self.feature_ranges) else check_ranges(self.feature_ranges, features)
        whole = self._plan(features)
        plan: MixtureSteps = within_ranges(whole)
        read = self._read(rows, features, np.asarray, feature_norm=plan.feature_norm, feature_ranges=ranges)
        asked = f"GaussianMixture of {features} features with {plan.components} components and {plan.rounds} rounds"
        self.release_ = self._release(read, whole, self._promised(whole), asked, (features, names))
        ranges = self.release_.value.get("ranges", ranges)
        keep_ranges(self, ranges)
        half = np.ones(features) if ranges is None else ranges[:, 1] / 2 - ranges[:, 0] / 2
        middle = 0.0 if ranges is None else ranges[:, 0] / 2 + ranges[:, 1] / 2
        given = self.release_.value
        covariances = np.asarray(given["covariances"]) * np.outer(half, half)
        self.weights_, self.means_ = np.asarray(given["weights"]), np.asarray(given["means"]) * half + middle
        is_full = plan.covariance == "full"
        self.covariances_ = covariances if is_full else np.diagonal(covariances, axis1=1, axis2=2).copy()
        self.deviations_ = np.asarray(given["deviations"]) * half
        self.n_iter_ = plan.rounds
        keep_columns(self, features, names)
        return self

    def _matrices(self) -> Floats:
        """The covariances as matrices."""
        given = self.covariances_
        return given if given.ndim == 3 else given[:, :, None] * np.eye(given.shape[1])

    @np.errstate(all="ignore")  # a warning would reveal something about a cell
    def _joint(self, X: Data) -> Floats:
        """The logarithm of weight times density, for each row and component."""
        table = fitted_table(self, X)
        found = np.zeros((len(table), len(self.weights_)))
        for k, covariance in enumerate(self._matrices()):
            inverse = np.linalg.inv(np.linalg.cholesky(covariance)).T
            scaled = ((table - self.means_[k]) @ inverse) ** 2
            constant = np.log(np.diag(inverse)).sum() + np.log(self.weights_[k])
            found[:, k] = constant - scaled.sum(1) / 2 - table.shape[1] / 2 * math.log(2 * math.pi)
        return found

    def predict(self, X: Data) -> NDArray[np.int64]:
        """The most likely component of each row."""
        return np.asarray(self._joint(X).argmax(axis=1))

    @np.errstate(all="ignore")
    def predict_proba(self, X: Data) -> Floats:
        """The probability of each component, for each row."""
        joint = self._joint(X)
        likely = np.exp(joint - joint.max(1)[:, None])
        return np.asarray(likely / likely.sum(1)[:, None])

    @np.errstate(all="ignore")
    def score_samples(self, X: Data) -> Floats:
        """The logarithm of the density at each row."""
        joint = self._joint(X)
        highest = joint.max(1)
        return np.asarray(highest + np.log(np.exp(joint - highest[:, None]).sum(1)))

    def score(self, X: Data, y: Data = None) -> float:
        """The mean of `score_samples`. Computed on X as it is, so it is not private."""
        return float(np.mean(self.score_samples(X)))

    def fit_predict(self, X: Data, y: Data = None) -> NDArray[np.int64]:
        """Fit, then return the most likely component of each of the same rows. These labels are not private."""
        return np.asarray(self.fit(X).predict(X))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Floats, NDArray[np.int64]]:
        """New rows drawn from the mixture, and the component of each. This spends nothing: only the model is used."""
        check_is_fitted(self)
        many, draw = check_count(n_samples, "n_samples"), check_random_state(random_state)
        which = np.asarray(draw.choice(len(self.weights_), size=many, p=self.weights_ / self.weights_.sum()))
        roots = np.linalg.cholesky(self._matrices())
        normal = draw.normal(size=(many, self.means_.shape[1]))
        return self.means_[which] + np.einsum("nij,nj->ni", roots[which], normal), which
