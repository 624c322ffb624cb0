"""Data whose rows are curves: their mean, their variation, regression on them, and noisy copies of each.

A curve is a row of values at public points. It becomes its coefficients in finitely many cosines, orthonormal for the
mean over the points, and is shortened to a declared norm: its root mean square. From there on curves are vectors, sums
of them are exact, and what is released is a function again: it has a value at every point between the first and the
last. Source: [T.3.4], [T.4.3]; Mirshani-Reimherr-Slavković 2019.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count
from discreet.extras import need
from discreet.functions.cosines import ALL
from discreet.functions.curve_models import CurveModel, Floats, check_is_fitted
from discreet.functions.mean_curve import MeanCurve
from discreet.functions.noisy_copies import SanitizedCurves, sanitized_curves
from discreet.guarantees.accuracy import Accuracy
from discreet.learn.automatic import target_range
from discreet.learn.base import clip_rows, column_of, fitted_table
from discreet.learn.linear import LeastSquares
from discreet.learn.structure.decomposition import PCA
from discreet.ledger import Ledger
from discreet.rows.containers import Data

__all__ = ["CurvePCA", "CurveRegression", "MeanCurve", "SanitizedCurves", "sanitized_curves"]
RegressorMixin: Any = need("sklearn.base", "learn", "discreet.functions.curves").RegressorMixin


class CurvePCA(CurveModel, PCA):
    """Functional principal components: the curves along which curves vary most, from their noisy covariance operator.

    `points`, `curve_norm` and `basis` are as in `MeanCurve`; noise grows with `basis`. `center` says what variance is
    about: "private" for the mean, which is released too, None for 0.
    `components_` has a curve a row, at the points: orthonormal for the mean over them. `explained_variance_` is the
    variance of the coordinates that `transform` gives; all of them add to the mean square of a curve about the mean.
    """

    feature_ranges = None
    feature_norm: Any = property(lambda self: self.curve_norm)

    def __init__(
        self,
        n_components: int | None = None,
        *,
        points: ArrayLike | None = None,
        curve_norm: Number = 1.0,
        basis: int | str = ALL,
        epsilon: Number = 1.0,
        delta: Number = 1e-6,
        center: str | None = "private",
        n_samples: int | None = None,
        rows_per_person: int | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.n_components, self.points, self.curve_norm, self.basis = n_components, points, curve_norm, basis
        self.epsilon, self.delta, self.center, self.n_samples = epsilon, delta, center, n_samples
        self.rows_per_person, self.ledger = rows_per_person, ledger

    def fit(self, X: Data, y: Data = None) -> Self:
        """Learn the components: one release, charged before the curves are read."""
        table = self._curves_of(X)
        size = self._basis(int(table.shape[1])).size
        many = size if self.n_components is None else check_count(self.n_components, "n_components")
        if many > size:
            raise InvalidArgument(
                f"n_components must be at most the number of functions in the basis, {size}.", code="out-of-range"
            )
        plan = self._learn(table)
        self.n_components_ = many
        self._take(plan, None)
        self._curves, self._center = self.components_, self.mean_
        self.components_, self.mean_ = self._curves @ self.basis_.values.T, self.basis_.values @ self._center
        return self

    def transform(self, X: Data) -> Floats:
        """Curves in the coordinates of the components: means over the points of (curve − mean)·component."""
        return np.asarray((self._seen(X) - self._center) @ self._curves.T)

    def inverse_transform(self, X: Data) -> Floats:
        """Curves at the points, as far as the components go."""
        check_is_fitted(self)
        return np.asarray(fitted_table(self, X, self.n_components_) @ self.components_ + self.mean_)


class CurveRegression(RegressorMixin, CurveModel, LeastSquares):  # type: ignore[misc]
    """Least squares of a number on a curve: y ≈ intercept + mean over the points of β(x)·curve(x).

    `points`, `curve_norm` and `basis` are as in `MeanCurve`; targets are clamped to ±`target_bound`.
    `coefficient_curve_` is β at the points. `error` bounds the root mean square of what noise did to β, together with
    the intercept's part.
    """

    coefficient_curve_: Floats
    feature_ranges = None
    feature_norm: Any = property(lambda self: self.curve_norm)

    def __init__(
        self,
        *,
        points: ArrayLike | None = None,
        curve_norm: Number = 1.0,
        target_bound: Number = 1.0,
        basis: int | str = ALL,
        epsilon: Number = 1.0,
        delta: Number = 1e-6,
        fit_intercept: bool = True,
        n_samples: int | None = None,
        rows_per_person: int | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.points, self.curve_norm, self.target_bound, self.basis = points, curve_norm, target_bound, basis
        self.epsilon, self.delta, self.fit_intercept, self.n_samples = epsilon, delta, fit_intercept, n_samples
        self.rows_per_person, self.ledger = rows_per_person, ledger

    def fit(self, X: Data, y: Data) -> Self:
        """Learn from curves and their targets: one release, charged before they are read."""
        plan = self._learn(X, column_of(y, type(self).__name__))
        self.target_range_ = target_range(self.target_bound)
        self._take(plan, None)
        self._curves, self.coefficient_curve_ = self.coef_, self.basis_.values @ self.coef_
        return self

    def _narrows(self) -> bool:
        return False

    def error(self, confidence: float = 0.95) -> Accuracy:
        """How far all coefficients together may be, in the L2 norm, from those without noise."""
        return self.coefficient_error(confidence)

    def predict(self, X: Data) -> Floats:
        """The prediction for each curve."""
        return np.asarray(clip_rows(self._seen(X), self.curve_norm) @ self.coef_ + self.intercept_)
