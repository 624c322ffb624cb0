"""A private density: figures 1 to 3 of the thesis, as printed, corrected, and with the least noise [T.6.12]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

import discreet as dp
from discreet.exact import public_draws
from discreet.functions.density import Density, process_for
from discreet.guarantees.conversions import gaussian_delta
from discreet.mechanisms.noise.gaussian_process import GaussianProcess
from discreet.reproduce.experiment import Experiment, ReportColumn, promise
from discreet.reproduce.people import People
from discreet.rows.features import FourierFeatures

ROWS = 200
CENTERS = (1, 5)
BANDWIDTH = 0.485
EPSILONS = (0.1, 1, 3)
DELTA = 0.1
SHOWN = (-1, 7)
BETWEEN = (-3, 9)
"""The declared range: four deviations beyond the centers, so that almost no row of the mixture is clamped."""
UNIT = dp.row(neighbors="replace")
APART = math.sqrt(2)
"""The largest distance between the kernels of two rows, if K(x, x) = 1."""
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Curves:
    """The curves at one ε: the three releases, at the plotted points."""

    as_printed: Floats
    taught: Floats
    tight: Floats


def run(people: People) -> tuple[Experiment, ...]:
    """One sample, and one curve of each kind at each ε. Uses no people."""
    points = np.linspace(*SHOWN, 401)
    rows = draw(ROWS)
    estimate = kernel_estimate(rows, points)
    found = [_compare(rows, estimate, points, epsilon) for epsilon in EPSILONS]
    return (
        Experiment(
            name="figures-1-3",
            title="Figures 1–3 · a private density of 200 rows, δ = 0.1 claimed",
            source="T.6.12",
            columns=(
                ReportColumn("promise", "(ε, δ)\nclaimed", "given"),
                ReportColumn("stddev_printed", "noise at\na point", "printed", ".4f"),
                ReportColumn("stddev_taught", "noise at\na point", "taught", ".4f"),
                ReportColumn("stddev_tight", "noise at\na point", "tight", ".4f"),
                ReportColumn("delta_printed", "δ kept,\nhalf noise", "printed", ".4f"),
                ReportColumn("delta_taught", "δ\nkept", "taught", ".4f"),
                ReportColumn("delta_tight", "δ\nkept", "tight", ".4f"),
                *(
                    ReportColumn(f"largest_{kind}", f"largest\nerror\n{kind}", "observed", ".3f")
                    for kind in ("printed", "taught", "tight")
                ),
            ),
            rows=tuple(row for row, _ in found),
            notes=(
                "As printed the curve is NOT PRIVATE: its noise is half of what [T.6.10] needs, and the noise at the",
                "first point is subtracted everywhere, which publishes that point exactly (δ = 1). Taught:",
                "2√ln(2/δ)/(εn√(2π)h), proved for ε ≤ 1. Tight: the least noise, n public. Errors: against the",
                "estimate without noise, from −1 to 7. A row is replaced; h = 0.485.",
            ),
            series={
                "points": points,
                "truth": truth(points),
                "estimate": estimate,
                "curves": [curves for _, curves in found],
            },
        ),
    )


def draw(count: int) -> Floats:
    """Rows of the mixture ½N(1, 1) + ½N(5, 1)."""
    normal = public_draws.normals(count)
    return np.asarray(np.where(public_draws.coins(Fraction(1, 2), count), *CENTERS) + normal)


def truth(points: Floats) -> Floats:
    """The density that the rows are drawn from."""
    bells = [np.exp(-((points - center) ** 2) / 2) for center in CENTERS]
    return np.asarray(sum(bells) / (2 * math.sqrt(2 * math.pi)))


def kernel_estimate(rows: Floats, points: Floats) -> Floats:
    """The kernel estimate without noise."""
    kernels = np.exp(-(((points[:, None] - rows) / BANDWIDTH) ** 2) / 2)
    return np.asarray(kernels.mean(axis=1) / (math.sqrt(2 * math.pi) * BANDWIDTH))


def thesis_noise(epsilon: float, *, printed: bool = False) -> GaussianProcess:
    """The noise of the thesis for a sum of kernels: 2√ln(2/δ)/ε by its theorem. The printed value is half of it and
    keeps less.
    """
    features = FourierFeatures.over([BETWEEN], [BANDWIDTH])
    stddev = (1 if printed else 2) * math.sqrt(math.log(2 / DELTA)) / epsilon
    return GaussianProcess(features=features, noise=dp.Gaussian(stddev=stddev, step=features.unit))


def least(epsilon: float) -> GaussianProcess:
    """The least noise that keeps (ε, δ) for a replaced row, if the number of rows is public."""
    asked = dp.Approx(epsilon=epsilon, delta=DELTA)
    return process_for(asked, between=BETWEEN, bandwidth=BANDWIDTH, size=ROWS, unit=UNIT)


def delta_of_noise(process: GaussianProcess, epsilon: float) -> float:
    """The exact δ of noise for a sum of kernels at ε."""
    return gaussian_delta(APART / process.deviation, epsilon)


def _compare(rows: Floats, estimate: Floats, points: Floats, epsilon: float) -> tuple[dict[str, Any], Curves]:
    printed, taught, tight = thesis_noise(epsilon, printed=True), thesis_noise(epsilon), least(epsilon)
    scale = tight.features.height / ROWS
    path = printed.path(points) * scale
    released = dp.release(tight.features.counts(rows), tight, sensitivity=tight.sensitivity(UNIT))
    density = Density(tight, np.asarray(released.value["coefficients"]), float(released.value["size"]), released)
    curves = Curves(
        as_printed=estimate + (path - path[0]),  # as the thesis draws it: the first point has no noise
        taught=estimate + taught.path(points) * scale,
        tight=np.asarray(density(points)),
    )
    row = {
        "promise": promise(epsilon, DELTA),
        "stddev_printed": printed.deviation * scale,
        "stddev_taught": taught.deviation * scale,
        "stddev_tight": density.noise_stddev,
        "delta_printed": delta_of_noise(printed, epsilon),
        "delta_taught": delta_of_noise(taught, epsilon),
        "delta_tight": released.guarantee.delta_at(epsilon=epsilon),
        "largest_printed": float(np.abs(curves.as_printed - estimate).max()),
        "largest_taught": float(np.abs(curves.taught - estimate).max()),
        "largest_tight": float(np.abs(curves.tight - estimate).max()),
    }
    return row, curves
