"""What all models of curves share: public points, cosines, a declared norm."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import check_bound, check_count
from discreet.extras import need
from discreet.functions.cosines import Cosines, CurveRows, cosines_for
from discreet.guarantees.guarantee import Guarantee
from discreet.learn.base import Private, fitted_table, table_of

check_is_fitted: Any = need("sklearn.utils.validation", "learn", "discreet.functions.curves").check_is_fitted
Floats = NDArray[np.float64]


class CurveModel(Private):
    """What all models of curves share: the points, the functions, the norm."""

    basis_: Cosines

    def guarantee(self, n_samples: int | None = None, n_features: int | None = None) -> Guarantee:
        """What one call of `fit` will promise. Nothing is spent. `n_features` is the number of points, if none are
        declared.
        """
        return self._promised(self._plan(self._basis(n_features).size))

    def _basis(self, columns: int | None) -> Cosines:
        check_bound(self.curve_norm, "curve_norm")
        return cosines_for(self.points, self.basis, None if columns is None else check_count(columns, "n_features"))

    def _curves_of(self, curves: Any) -> Any:
        """Rows of curves. A record of a list without a value at each of the declared points counts as missing."""
        known = None if self.points is None else len(self._basis(None).points)
        return table_of(curves, known, typed=False)[0]

    def _learn(self, curves: Any, targets: Any = None) -> Any:
        """The moments of the coefficients: one release, charged before the curves are read."""
        table = self._curves_of(curves)
        basis = self._basis(int(table.shape[1]))
        plan = self._plan(basis.size)
        rows = CurveRows(table, targets, basis=basis, curve_norm=plan.feature_norm, target_bound=plan.target_bound)
        asked = f"{type(self).__name__} of curves at {len(basis.points)} points"
        self.release_ = self._release(lambda: rows, plan, self._promised(plan), asked)
        self.basis_, self.n_features_in_ = basis, len(basis.points)
        return plan

    def _seen(self, curves: Any) -> Floats:
        """Coefficients of curves that are not used for learning."""
        table = fitted_table(self, curves)
        return self.basis_.coefficients(table)

    def at(self, where: ArrayLike) -> Floats:
        """What was learned, at any places from the first point to the last: a curve, or one curve per row."""
        check_is_fitted(self)
        return self._values(self._curves, where)

    def _values(self, coefficients: Floats, where: Any) -> Floats:
        """Functions with these coefficients, at the given places. The result does not depend on the other places."""
        found = np.zeros((*coefficients.shape[:-1], np.size(where)))
        for one, function in zip(np.moveaxis(coefficients, -1, 0), self.basis_(where).T, strict=True):
            found += np.multiply.outer(one, function)  # in this order: a matrix product's depends on its shape
        return found.reshape(coefficients.shape[:-1] + np.shape(where))


def check_kind(of: str) -> str:
    """Raise unless an error of this kind is defined."""
    if of not in ("value", "every value", "norm"):
        raise InvalidArgument('of must be "value", "every value" or "norm".', code="not-an-option")
    return of


def longest(size: int, miss: float) -> float:
    """The length of this many independent normal numbers, except with probability `miss`."""
    from scipy.special import gammainccinv

    return math.sqrt(2 * float(gammainccinv(size / 2, miss))) * (1 + 1e-6)
