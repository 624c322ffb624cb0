"""Simulated releases of a regression: many samples, with noise of the law that is drawn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from discreet.guarantees.unit import row
from discreet.stats.inference.noisy_shares import Noise
from discreet.stats.regression.designs import Coded, Design
from discreet.stats.regression.formula import parse_formula
from discreet.stats.regression.linear import NoisyRegression
from discreet.stats.regression.released_moments import Layout, best_layout
from discreet.stats.regression.rows import scores_of, square_reach, totals_by_unit

Floats = NDArray[np.float64]
SLOPES = (-0.1, 0.2, -0.3, 0.25)
"""Of the intercept, two numbers and a condition."""
DESIGN = Design(
    parse_formula("y ~ x + z + t"),
    (Coded("x", (-1, 1)), Coded("z", (-1, 1)), Coded("t", levels=(False, True)), Coded("y", (-1, 1))),
)


def sample(kind: str, rows: int, rng: np.random.Generator) -> list[Floats]:
    """The codes of one sample."""
    t = (rng.random(rows) < 0.3).astype(np.float64)
    if kind == "skewed":
        x, z = (np.clip(-1 + 0.3 * rng.exponential(1, rows), -1, 1) for _ in range(2))
        e = 0.1 * (rng.exponential(1, rows) - 1)
    elif kind == "narrow":
        x, z = (np.clip(0.3 + 0.2 * rng.normal(size=rows), -1, 1) for _ in range(2))
        e = 0.1 * rng.normal(size=rows)
    elif kind == "clustered":  # people have three rows each, with the same x and t, and residuals that are alike
        x, t = np.repeat(rng.uniform(-1, 1, rows // 3), 3), np.repeat(t[: rows // 3], 3)
        z = rng.uniform(-1, 1, rows)
        e = np.repeat(0.1 * rng.normal(size=rows // 3), 3) + 0.05 * rng.normal(size=rows)
    elif kind == "heavy":
        x, z = (np.clip(0.3 * rng.standard_t(3, rows), -1, 1) for _ in range(2))
        e = np.clip(0.05 * rng.standard_t(3, rows), -0.35, 0.35)
    else:
        x, z = (rng.uniform(-1, 1, rows) for _ in range(2))
        e = rng.normal(size=rows) * (0.2 * x**2 if kind == "heteroscedastic" else 0.1)
    y = SLOPES[0] + SLOPES[1] * x + SLOPES[2] * z + SLOPES[3] * t + np.clip(e, -0.35, 0.35)
    return [x, z, t, y]


def exact_numbers(layout: Layout, codes: list[Floats]) -> Floats:
    """The exact answer of a layout, in doubles: much faster than in fractions."""
    rows, query = layout.coded(codes), layout.query
    parts = np.ones((len(rows.products), 1))
    for column in rows.shares:
        parts = (parts[:, :, None] * column[:, None, :]).reshape(len(parts), -1)
    table = parts.sum(0) * float(query.table_weight) if query.cells else np.zeros(0)
    return np.concatenate([table, rows.products.sum(0) * np.array([float(w) for w in query.weights])])


def simulated(
    kind: str, rows: int, epsilon: float, *, runs: int, seed: int, robust: bool = False, design: Design = DESIGN
) -> NoisyRegression:
    """What follows from many releases."""
    rng = np.random.default_rng(seed)
    of_one = 3 if kind == "clustered" else 1
    layout = best_layout(design, "L1", row(), of_one)
    first = float(layout.query.sensitivity(row(), of_one).exact) / (epsilon * (0.75 if robust else 1))
    samples = [sample(kind, rows, rng) for _ in range(runs)]
    numbers = np.stack([exact_numbers(layout, codes) for codes in samples])
    noisy = numbers + rng.laplace(size=numbers.shape) * first
    model = NoisyRegression(noisy, layout.matrices, layout.of_count, Noise(laplace=first), design.bound)
    if not robust:
        return model
    scale = model.size / (epsilon / 4)
    reach = square_reach(model, design, of_one, scale * 2**0.5)
    owners = np.repeat(np.arange(rows // 3), 3) if of_one > 1 else None
    squares = []
    for run, codes in enumerate(samples):
        one = replace(model, numbers=noisy[run])
        each = scores_of(one, design.values(codes))
        scores = (each if owners is None else totals_by_unit(each, owners)) / np.sqrt(reach[run])
        squares.append((np.clip(scores, -1, 1) ** 2).sum(0))
    released = np.stack(squares) + rng.laplace(size=(runs, model.size)) * scale
    return replace(model, squares=released, square_noise=Noise(laplace=scale), square_reach=reach)


def covered(kind: str, rows: int, epsilon: float, *, runs: int, seed: int, robust: bool = False) -> list[float]:
    """For each coefficient, how often a 95% interval has the true value."""
    model = simulated(kind, rows, epsilon, runs=runs, seed=seed, robust=robust)
    return [float((model.p_of(place, slope, 0.05) > 0.05).mean()) for place, slope in enumerate(SLOPES)]
