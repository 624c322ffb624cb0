"""Each curve on its own: noisy copies that need no trusted collector."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from discreet.closing import closed
from discreet.exact.rational import Number, check_bound, exactly, sqrt_up
from discreet.functions.cosines import ALL, UP, CurveRows
from discreet.functions.curve_models import CurveModel, Floats, check_is_fitted, check_kind, longest
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.unit import Unit
from discreet.ledger import Ledger
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.queries.sensitivity import Sensitivity
from discreet.rows.containers import Data


class SanitizedCurves(CurveModel):
    """A noisy copy of every curve, each made from that curve only, so nobody else has to be trusted with it.

    Promise: (ε,δ) for one replaced curve, in the local model: any two curves are at most 2·`curve_norm` apart, and
    noise hides all of that. The number of curves and their order are public; a curve with a value that is no finite
    number is noise about 0. Error: one curve has `noise_` at each coefficient, mostly more than the curve itself: use
    `MeanCurve` where the collector is trusted. Source: [T.4.3], [T.6.10] with n = 1.
    """

    curves_: Floats
    noise_: float

    def __init__(
        self,
        *,
        points: ArrayLike | None = None,
        curve_norm: Number = 1.0,
        basis: int | str = ALL,
        epsilon: Number = 1.0,
        delta: Number = 1e-6,
        rows_per_person: int | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.points, self.curve_norm, self.basis = points, curve_norm, basis
        self.epsilon, self.delta, self.rows_per_person, self.ledger = epsilon, delta, rows_per_person, ledger

    def _unit(self) -> Unit:
        return replace(super()._unit(), neighbors="replace")

    def _stated(self, guarantee: Guarantee) -> Guarantee:
        return replace(super()._stated(guarantee), trust="local")

    def _bound(self, size: int) -> Sensitivity:
        rows = self._rows()
        apart = sqrt_up(4 * check_bound(self.curve_norm, "curve_norm") ** 2 * rows)
        return Sensitivity(apart, "L2", unit=self._unit(), dimension=size * rows)

    def guarantee(self, n_samples: int | None = None, n_features: int | None = None) -> Guarantee:
        """What one call of `fit` will promise; nothing is spent."""
        bound = self._bound(self._basis(n_features).size)
        return self._stated(Gaussian.for_guarantee(self._goal(), sensitivity=bound).guarantee(bound))

    def fit(self, X: Data, y: Data = None) -> Self:
        """Make the copies: one release, charged before the curves are read."""
        table = self._curves_of(X)
        basis = self._basis(int(table.shape[1]))
        rows = CurveRows(table, basis=basis, curve_norm=self.curve_norm, target_bound=None)
        bound = self._bound(basis.size)
        plan = Gaussian.for_guarantee(self._goal(), sensitivity=bound)

        def read() -> Floats:
            return np.concatenate([whole for whole, _ in rows.blocks()]) * float(rows.unit)

        asked = f"a copy of {table.shape[0]} curves at {len(basis.points)} points, each alone"
        self.release_ = self._release(read, plan, plan.guarantee(bound), asked)
        self.basis_, self.n_features_in_ = basis, len(basis.points)
        self.noise_, self._curves = float(exactly(plan.stddev)), np.asarray(self.release_.value)
        self.curves_ = self._curves @ basis.values.T
        return self

    def error(self, confidence: float = 0.95, of: str = "every value") -> Accuracy:
        """How far one copy may be from its clipped curve: everywhere, at one place ("value") or in "norm"."""
        check_is_fitted(self)
        sure = check_confidence(confidence)
        if check_kind(of) == "norm":
            return Accuracy(amount=self.noise_ * longest(self.basis_.size, 1 - sure), confidence=sure, of=of)
        wide = self.basis_.deviations(1 - sure, everywhere=of == "every value")
        most = float(self.basis_.length(self.basis_.fine).max()) * UP
        return Accuracy(amount=self.noise_ * wide * most, confidence=sure, of=of)


@closed
def sanitized_curves(curves: Data, **settings: Any) -> SanitizedCurves:
    """A noisy copy of every curve, each made from that curve only. The settings are those of `SanitizedCurves`."""
    return SanitizedCurves(**settings).fit(curves)
