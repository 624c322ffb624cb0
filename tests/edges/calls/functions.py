"""Densities and curves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import discreet as dp
from discreet.functions.curves import CurvePCA, CurveRegression
from discreet.functions.density import density_of
from discreet.functions.mean_curve import MeanCurve
from discreet.functions.noisy_copies import SanitizedCurves, sanitized_curves
from discreet.functions.regression import regression_curve

from ..checking import Call
from ..containers import NUMBERS, Container, objects, rows_in, table_of_objects
from ..distances import reports
from .learn import (
    BIG,
    GOAL,
    Example,
    both,
    fits,
    fitted,
    numbers,
    of_rows,
    one_cell_labels_but_the_odd,
    value_of,
    with_extremes,
)

APPROX = dp.Approx(epsilon=5, delta=1e-5)
POINTS = [0.1, 0.9, 0.4, 0.5, 1, 0, 0.25, 0.3, BIG, 0.8, 0.2] * 12
PLANE = [[0.1, 0.9], [0.4, 0.5], [1, 0], [BIG, 0.3], [0.25, 0.75]] * 24


def told(density: Any) -> Any:
    """What a density released."""
    return {"size": density.size, "coefficients": density.coefficients}


def curve(held: Any) -> Any:
    """What a regression curve released."""
    rows, labels = held
    return regression_curve(
        rows, labels, between=(-1, 1), bandwidth=0.6, size=120, ridge=20, guarantee=APPROX
    ).release.value


LINE = [Example(one.row[0], one.label) for one in numbers()[:120]] + [Example(1, 1), Example(0, BIG), Example(BIG, 0)]
ON_A_LINE: dict[str, Container] = {
    "lists": both(list, list),
    "one-cell rows": both(lambda rows: [[row] for row in rows], list),
    "one-cell rows and labels": both(lambda rows: [[row] for row in rows], lambda labels: [[one] for one in labels]),
    "objects": both(objects, objects),
    "floats": both(lambda rows: np.array(rows, dtype=float), lambda labels: np.array(labels, dtype=float)),
    "pandas objects": both(lambda rows: pd.Series(rows, dtype=object), lambda labels: pd.Series(labels, dtype=object)),
}
WAVES = [[float(np.sin(k + p / 3)) for p in range(6)] for k in range(120)] + [[BIG, 0, 0, 0, 1, 0], [0, 0, 1, 0, 0, 0]]
IN_A_WAVE = {
    "record": lambda odd: odd,
    "value": lambda odd: [0.5, 0.5, odd, 0.5, 0.5, 0.5],
    "first value": lambda odd: [odd, 0.5, 0.5, 0.5, 0.5, 0.5],
    "longer": lambda odd: [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, odd],
    "shorter": lambda odd: [0.5, odd],
}
AT = tuple(range(6))
"""Where curves are known: declared, so that a list of them has a public width."""
FLAT = ([1.0] * 6, [-1.0] * 6)
OF_CURVES: dict[str, Any] = {
    "containers": rows_in(6, names="abcdef"), "base": WAVES, "ways": IN_A_WAVE, "extremes": FLAT, "together": 40,
}  # fmt: skip
TARGETED: dict[str, Container] = {
    "lists": both(list, list),
    "objects": both(lambda rows: table_of_objects(rows, 6), objects),
    "floats": both(lambda rows: table_of_objects(rows, 6).astype(float), lambda y: np.array(y, dtype=float)),
    "labels in one-cell rows": both(list, lambda labels: [[label] for label in labels]),
    "labels in one-cell rows but the odd": one_cell_labels_but_the_odd,
}

CALLS: list[Call] = [
    of_rows("density_of", lambda rows: told(density_of(rows, between=(0, 1), bandwidth=0.3, guarantee=APPROX)), 1.5,
            covers=("functions.density_of",), base=POINTS, containers=NUMBERS, ways={"record": lambda odd: odd},
            extremes=(1.0, 0.0), together=40),
    of_rows("density_of of two columns",
            lambda rows: told(density_of(rows, between=[(0, 1)] * 2, bandwidth=[0.5] * 2, guarantee=APPROX)), 1.5,
            covers=("functions.density_of",), base=PLANE, extremes=([1.0, 1.0], [0.0, 1.0]), together=40),
    of_rows("regression_curve", curve, None, covers=("functions.regression_curve",), base=LINE,
            containers=ON_A_LINE,
            ways=with_extremes({"place": lambda odd: Example(odd, 0.5), "target": lambda odd: Example(0.5, odd),
                                "row": lambda odd: Example([odd], 0.5)}), together=20,
            extremes=(Example(1.0, 1.0), Example(-1.0, 1.0), Example(0.0, -1.0))),
    of_rows("MeanCurve.fit", fits(lambda: MeanCurve(curve_norm=1, points=AT, **GOAL)), 1 + 1e-6,
            covers=("functions.MeanCurve.fit",), **OF_CURVES),
    of_rows("MeanCurve.fit, of 3 cosines", fits(lambda: MeanCurve(curve_norm=1, points=AT, basis=3, **GOAL)), 1 + 1e-6,
            covers=("functions.MeanCurve.fit",), **OF_CURVES),
    of_rows("CurvePCA.fit", fits(lambda: CurvePCA(1, curve_norm=1, points=AT, **GOAL)), 1 + 1e-6,
            covers=("functions.CurvePCA.fit",), **OF_CURVES),
    of_rows("sanitized_curves", lambda rows: sanitized_curves(rows, curve_norm=1, points=AT, **GOAL).curves_, 1,
            moved=reports, covers=("functions.sanitized_curves",), replaced=True, **OF_CURVES),
    of_rows("SanitizedCurves.fit", lambda rows: SanitizedCurves(curve_norm=1, points=AT, **GOAL).fit(rows).curves_, 1,
            covers=("functions.SanitizedCurves.fit",), moved=reports, replaced=True, **OF_CURVES),
    of_rows("CurveRegression.fit", value_of(fitted(lambda: CurveRegression(curve_norm=1, points=AT, **GOAL))), 1 + 1e-6,
            covers=("functions.CurveRegression.fit",), base=[Example(row, row[0] / 2) for row in WAVES],
            containers=TARGETED, extremes=tuple(Example(row, 1.0) for row in FLAT), together=40,
            ways=with_extremes({"value": lambda odd: Example(IN_A_WAVE["value"](odd), 0.5),
                                "target": lambda odd: Example(WAVES[0], odd),
                                "row": lambda odd: Example(odd, 0.5)})),
]  # fmt: skip
