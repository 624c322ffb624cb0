"""Lecture 10: projected gradient descent with noise [L10.NPGD], [L10.T2], [L10.T3]."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import discreet as dp
from discreet.exact import public_draws
from discreet.mechanisms.learning.descent.descent import Descent
from discreet.mechanisms.learning.descent.plain import plain_descent
from discreet.reproduce.experiment import Experiment, ReportColumn
from discreet.rows.gradients.examples import Examples
from discreet.rows.gradients.losses import Logistic

PROMISE = dp.Approx(epsilon=1, delta=1e-6)
UNIT = dp.row(neighbors="replace")
DIMENSIONS = (2, 10, 50)
SIZE, STEPS, RADIUS = 2_000, 100, 2
RUNS = 3
NOISES = (
    ("Laplace, each coordinate", {"noise": "laplace", "calibration": "taught"}),
    ("Laplace, by the L2 norm", {"noise": "laplace", "calibration": "L10.T3"}),
    ("Laplace, least", {"noise": "laplace"}),
    ("Gaussian, least", {"noise": "gaussian"}),
)
"""The lecture's first version, its Theorem 3, and the least noise of both kinds that keeps the promise."""


def run() -> tuple[Experiment, ...]:
    """Noisy descent with four kinds of noise, in three dimensions."""
    return (descents(),)


def descents() -> Experiment:
    """The noise of a step, the ε that all steps really keep, and how far the weights are from the best."""
    rows = [_row(data, *one) for data in map(data_of, DIMENSIONS) for one in NOISES]
    return Experiment(
        name="l10-descent",
        title=f"Lecture 10 · {STEPS} noisy steps for n = {SIZE:,} rows in d dimensions · ε = 1, δ = 10⁻⁶",
        source="L10.NPGD, L10.T2, L10.T3",
        columns=(
            ReportColumn("dimension", "d", "given", "d"),
            ReportColumn("noise", "noise", "given"),
            ReportColumn("stddev", "σ of a\ncoordinate", "exact", ".4f"),
            ReportColumn("epsilon_least", "ε kept,\nat least", "tight", ".3f"),
            ReportColumn("epsilon", "ε kept,\nat most", "tight", ".3f"),
            ReportColumn("bound_taught", "mean excess,\nat most", "taught", ".3f"),
            ReportColumn("bound_tight", "mean excess,\nat most", "tight", ".3f"),
            ReportColumn("excess_observed", "mean excess", "observed", ".4f"),
        ),
        rows=tuple(rows),
        notes=(
            "Logistic loss, G = 1, weights in a ball of diameter R = 4, one row replaced. σ is that of the mean",
            "gradient. Each coordinate: b = 2G√(T·d·ln(1/δ))/(nε), the first version. By the L2 norm: b =",
            "2G√(T·ln(1/δ))/(nε), Theorem 3. Its constant, as printed, does not keep ε = 1. At least: a row that",
            "moves one coordinate. At most: any row. Taught: η = R/(G√T) and Theorem 2 with the constants of its",
            "proof. Tight: the best η, and the distance from the start in place of R. Weights of 0 have a loss of",
            f"ln 2 ≈ 0.693. Observed: the mean of {RUNS} runs.",
        ),
        series={"start": math.log(2)},
    )


class Data(NamedTuple):
    """Rows on the unit sphere, their labels, and the least mean loss over the ball of weights."""

    features: NDArray[np.float64]
    labels: NDArray[np.float64]
    least: float

    @property
    def dimension(self) -> int:
        return int(self.features.shape[1])


def data_of(dimension: int) -> Data:
    """Synthetic rows: the label moves the first coordinate, the others are noise."""
    labels = public_draws.coins(Fraction(1, 2), SIZE).astype(np.float64)
    features = (2 * public_draws.fractions(SIZE * dimension).reshape(SIZE, dimension) - 1) * math.sqrt(3 / dimension)
    features[:, 0] += 2 * (2 * labels - 1)
    features /= np.linalg.norm(features, axis=1)[:, None]
    best = plain_descent(
        lambda weights: features.T @ Logistic().derivative(features @ weights, labels) / SIZE,
        dimension=dimension,
        steps=500,
        learning_rate=4.0,
        region=RADIUS,
        average="last",
    )
    return Data(features, labels, mean_loss(features, labels, best))


def mean_loss(features: Any, labels: Any, weights: Any) -> float:
    """The mean logistic loss of these weights."""
    return float(np.mean(Logistic().value(features @ weights, labels)))


def descent(dimension: int, **noise: Any) -> Descent:
    """Noisy descent for replaced rows, with the rate of the bound. The average of all weights is the answer."""
    return Descent.for_guarantee(
        PROMISE,
        loss=Logistic(),
        clip=1,
        dimension=dimension,
        steps=STEPS,
        size=SIZE,
        region=RADIUS,
        intercept=False,
        average="all",
        learning_rate="bound",
        unit=UNIT,
        **noise,
    )


def taught_bound(made: Descent) -> float:
    """Theorem 2 with the constants of its proof: η(G² + d·σ²)/2 + R²/(2ηT), with η = R/(G√T) and the diameter R."""
    diameter, stddev = 2 * RADIUS, made.noise.deviation / SIZE
    rate = diameter / math.sqrt(STEPS)
    return rate * (1 + made.dimension * stddev**2) / 2 + diameter**2 / (2 * rate * STEPS)


def one_coordinate(made: Descent) -> float:
    """ε of a row that moves one coordinate by 2G in every step. Others may be worse: a lower bound."""
    moved = dp.Sensitivity(2, "L1")
    if isinstance(made.noise, dp.Laplace):
        return made.noise.guarantee(moved, times=STEPS).epsilon_at(delta=PROMISE.delta)
    return dp.compose([made.noise.guarantee(moved)] * STEPS).epsilon_at(delta=PROMISE.delta)


def _row(data: Data, name: str, settings: dict[str, str]) -> dict[str, Any]:
    made = descent(data.dimension, **settings)
    kept = made.guarantee(made.sensitivity(UNIT))
    rows = Examples(data.features, data.labels, intercept=False)
    found = [
        mean_loss(
            data.features,
            data.labels,
            dp.release(rows, made, sensitivity=made.sensitivity(UNIT)).value["weights"],
        )
        for _ in range(RUNS)
    ]
    return {
        "dimension": data.dimension,
        "noise": name,
        "stddev": made.noise.deviation / SIZE,
        "epsilon_least": one_coordinate(made),
        "epsilon": kept.epsilon_at(delta=PROMISE.delta),
        "bound_taught": taught_bound(made),
        "bound_tight": made._descended().expected(),
        "excess_observed": float(np.mean(found)) - data.least,
    }
