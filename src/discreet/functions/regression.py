"""Regression curves and decision curves: functions in a kernel's space, released once and known everywhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.closing import closed
from discreet.door import through
from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_positive, exactly
from discreet.functions.density import features_over
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Guarantee
from discreet.ledger import Ledger, cost_of
from discreet.mechanisms.learning.minimizers.private_minimizer import PrivateMinimizer
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.gaussian_process import GaussianProcess
from discreet.releases import Release, Released
from discreet.rows import table as table_of
from discreet.rows.containers import Data
from discreet.rows.features import FourierFeatures
from discreet.rows.gradients.examples import PlainRows
from discreet.rows.gradients.losses import Huber, HuberHinge

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Curve(Released):
    """A function of one to three columns. Call it at any number of points, for one charge."""

    features: FourierFeatures
    weights: Floats
    noise: Gaussian
    scale: float
    release: Release

    def __call__(self, *points: ArrayLike) -> Any:
        """The value at a point, or at each of arrays of points, one for each column."""
        if len(points) != len(self.features.axes):
            raise InvalidArgument(
                f"Give {len(self.features.axes)} coordinates, or arrays of coordinates.", code="wrong-shape"
            )
        arrays = np.broadcast_arrays(*(np.asarray(point, dtype=np.float64) for point in points))
        table = np.stack([array.reshape(-1) for array in arrays], axis=1)
        found = np.concatenate(
            [self.features.features(table[start : start + 4096]) @ self.weights for start in range(0, len(table), 4096)]
        )
        return float(found[0]) * self.scale if arrays[0].shape == () else found.reshape(arrays[0].shape) * self.scale

    def error(self, confidence: float = 0.95, *, uniform: bool = True) -> Accuracy:
        """How far it may be from the curve without noise: everywhere at once, or at any single point."""
        sure = check_confidence(confidence)
        process = GaussianProcess(features=self.features, noise=self.noise)
        reach = process.anywhere(1 - sure) if uniform else process.at_one_point(1 - sure)
        return Accuracy(amount=reach * self.scale, confidence=sure, of="every value" if uniform else "value")

    def __repr__(self) -> str:
        return f"<Curve: {'; '.join([str(self.error(0.95)), str(self.guarantee), *self.release.marks()])}>"


@closed
def regression_curve(
    rows: Data,
    targets: Data,
    *,
    between: Sequence[Number] | Sequence[Sequence[Number]],
    bandwidth: Number | Sequence[Number],
    guarantee: Guarantee,
    target_bound: Number = 1,
    size: Number,
    norm: Number = 3,
    ridge: Number | None = None,
    kind: Literal["numbers", "classes"] = "numbers",
    ledger: Ledger | None = None,
    rows_per_person: int = 1,
) -> Curve:
    """Kernel ridge regression with an absolute error beyond half the bound, or a smooth support vector machine.

    `kind="classes"` takes targets of −1 and 1. The sign of the curve decides. `size`, a public number of rows, and
    `norm`, how large the curve may be in its space, are used to choose the ridge if none is given: the one that
    balances its own bias, ridge·norm²/(2n), with the noise that it admits.
    """
    features = features_over(between, bandwidth)
    if kind not in ("numbers", "classes"):
        raise InvalidArgument('kind must be "numbers" or "classes".', code="not-an-option")
    loss: Any = Huber(0.5) if kind == "numbers" else HuberHinge(0.5)
    unit = None if ledger is None else ledger.protects
    shared: dict[str, Any] = {
        "loss": loss,
        "dimension": features.size,
        "unit": unit,
        "rows_per_person": rows_per_person,
    }
    pull = float(_best_ridge(guarantee, loss, size, norm, shared)) if ridge is None else ridge
    mechanism = PrivateMinimizer.for_guarantee(guarantee, ridge=pull, step=features.unit, **shared)
    bound = float(check_positive(target_bound, "target_bound")) if kind == "numbers" else 1.0
    table, goal = (np.asarray(table_of(*one), np.float64) for one in ((rows, len(features.axes)), (targets, 1)))
    if len(table) != len(goal):
        raise InvalidArgument("rows and targets must have the same length.", code="unequal-lengths")

    def read() -> PlainRows:
        return _to_features(features, table, goal[:, 0], bound)

    promised = mechanism.guarantee(mechanism.sensitivity(unit, rows_per_person))
    charged = cost_of(ledger, promised, guarantee)
    release = through(read, mechanism, charged, ledger=ledger, asked=f"a curve of {len(features.axes)} columns")
    return Curve(features, np.asarray(release.value), mechanism.noise, bound, release)


def _best_ridge(guarantee: Guarantee, loss: Any, size: Number, norm: Number, shared: dict[str, Any]) -> float:
    """The least of ridge·norm²/(2n) + β·s²/2, the noise s being inversely proportional to the ridge."""
    n, length = float(check_positive(size, "size")), float(check_positive(norm, "norm"))
    at_one = PrivateMinimizer.for_guarantee(guarantee, ridge=1000, **shared)
    deviation = float(exactly(at_one.noise.stddev)) * 1000
    return float((2 * loss.smoothness * deviation**2 * n / length**2) ** (1 / 3))


def _to_features(features: FourierFeatures, table: Floats, targets: Floats, bound: float) -> PlainRows:
    """Each row as the features of its cell, from the public tables; zeros for one with a NaN."""
    goal = np.clip(targets, -bound, bound) / bound
    kept = ~(np.isnan(table).any(axis=1) | np.isnan(goal))
    grown = np.ones((len(table), 1))
    for number, axis in enumerate(features.axes):
        places = axis.place(np.where(kept, table[:, number], float(exactly(axis.low))))
        part = axis.table[places] * math.ldexp(1.0, -axis.bits)
        grown = (grown[:, :, None] * part[:, None, :]).reshape(len(table), grown.shape[1] * axis.size)
    return PlainRows(grown * kept[:, None], np.where(kept, goal, 0.0))
