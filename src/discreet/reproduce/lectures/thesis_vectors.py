"""Examples 3.2 and 3.4 of the thesis: rows that are images, and rows that are curves [T.3.4], [T.6.2]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import discreet as dp
from discreet.exact import public_draws
from discreet.reproduce.experiment import Experiment, ReportColumn

PROMISE = dp.Approx(epsilon=1, delta=1e-6)
SIDE, HOURS = 8, 24
ROWS = (1, 100, 10_000)

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Kind:
    """One example: how many numbers a row has, the largest of them, and the mean row."""

    name: str
    size: int
    most: int
    shape: tuple[int, ...]

    @property
    def sums(self) -> float:
        """The L1 diameter, which is the metric of the example."""
        return self.size * self.most

    @property
    def length(self) -> float:
        """The L2 diameter, for Gaussian noise."""
        return math.sqrt(self.size) * self.most


IMAGES = Kind("3.2 image, 8×8×3 of 0 … 255", SIDE * SIDE * 3, 255, (SIDE, SIDE, 3))
CURVES = Kind("3.4 curve, 24 hours of 0 … 5000 W", HOURS, 5000, (HOURS,))


def run() -> tuple[Experiment, ...]:
    """Means of images and of curves."""
    return (vectors(),)


def vectors() -> Experiment:
    """A row is a vector. The mean of n rows, with noise for its L1 diameter, and for its L2 diameter."""
    found = [_row(kind, count) for kind in (IMAGES, CURVES) for count in ROWS]
    return Experiment(
        name="t-images-and-curves",
        title="Thesis, examples 3.2 and 3.4 · the mean of n images or curves · ε = 1, δ = 10⁻⁶",
        source="T.3.1, T.3.4, T.6.2",
        columns=(
            ReportColumn("kind", "a row", "given"),
            ReportColumn("rows", "n", "given", ",d"),
            ReportColumn("laplace", "σ, Laplace\nby L1", "taught", ".2f"),
            ReportColumn("gaussian_taught", "σ, Gaussian\nby L2", "taught", ".2f"),
            ReportColumn("gaussian", "σ, Gaussian\nby L2", "tight", ".2f"),
            ReportColumn("error_observed", "root mean\nsquare error", "observed", ".2f"),
            ReportColumn("relative", "σ, part of\nthe range", "tight", ".4f"),
        ),
        rows=tuple(row for row, _ in found),
        notes=(
            "n = 1 is a sanitized row: a picture or a curve that nobody else sees. Its metric adds up all numbers,",
            "so each number gets noise for all of them. Laplace: √2·diam/(nε), δ = 0. Gaussian taught: T.6.2.",
            "Tight: the least noise. Observed: the mean with tight Gaussian noise against the mean without.",
        ),
        series={"means": [mean for _, mean in found], "kinds": (IMAGES, CURVES), "counts": ROWS},
    )


def draw_rows(kind: Kind, count: int) -> Numbers:
    """Synthetic rows: a sunset, or a day with a morning and an evening peak, with changes from row to row."""
    middle = _sunset() if kind is IMAGES else _day()
    spread = kind.most // 5
    moved = middle.reshape(-1) + public_draws.whole_numbers(2 * spread + 1, count * kind.size).reshape(count, -1)
    return np.asarray(np.clip(moved.astype(np.int64) - spread, 0, kind.most))


def _sunset() -> Numbers:
    down, right = np.mgrid[0:SIDE, 0:SIDE]
    sun = np.hypot(down - 3, right - 4) < 2
    sky = np.stack([90 + 20 * down, 70 + 12 * down, 200 - 16 * down], axis=-1)
    sky[sun] = (250, 220, 80)
    sky[down > 5] = (20, 60, 140)
    return np.asarray(sky, dtype=np.int64)


def _day() -> Numbers:
    hours = np.arange(HOURS)
    peaks = 700 * np.exp(-((hours - 7.5) ** 2) / 4) + 1500 * np.exp(-((hours - 19) ** 2) / 6)
    return np.asarray(np.rint(900 + peaks), dtype=np.int64)


def noises(kind: Kind, count: int) -> dict[str, Any]:
    """Noise on the mean of `count` rows, one of which may be replaced."""
    return {
        "laplace": dp.Laplace.for_guarantee(dp.Pure(epsilon=PROMISE.epsilon), sensitivity=kind.sums / count),
        "gaussian_taught": dp.Gaussian.for_guarantee(PROMISE, sensitivity=kind.length / count, calibration="taught"),
        "gaussian": dp.Gaussian.for_guarantee(PROMISE, sensitivity=kind.length / count),
    }


def _row(kind: Kind, count: int) -> tuple[dict[str, Any], NDArray[np.float64]]:
    made, true = noises(kind, count), draw_rows(kind, count).mean(axis=0)
    noisy = dp.release(true, made["gaussian"], sensitivity=kind.length / count).value
    deviations = {name: float(noise.deviation) for name, noise in made.items()}
    row = {
        "kind": kind.name,
        "rows": count,
        **deviations,
        "error_observed": float(np.sqrt(np.mean(np.square(noisy - true)))),
        "relative": deviations["gaussian"] / kind.most,
    }
    return row, np.asarray(noisy, dtype=np.float64).reshape(kind.shape)
