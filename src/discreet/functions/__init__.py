"""Answers that are functions: densities, regression curves, and data whose rows are curves."""

from typing import TYPE_CHECKING

from discreet.exports import lazily

_LATER = {
    "Curve": "regression",
    "CurvePCA": "curves",
    "CurveRegression": "curves",
    "Density": "density",
    "MeanCurve": "mean_curve",
    "SanitizedCurves": "noisy_copies",
    "density_of": "density",
    "regression_curve": "regression",
    "sanitized_curves": "noisy_copies",
}

if TYPE_CHECKING:
    from discreet.functions.curves import CurvePCA, CurveRegression
    from discreet.functions.density import Density, density_of
    from discreet.functions.mean_curve import MeanCurve
    from discreet.functions.noisy_copies import SanitizedCurves, sanitized_curves
    from discreet.functions.regression import Curve, regression_curve
else:
    __getattr__, __dir__ = lazily(__name__, _LATER)

__all__ = [
    "Curve",
    "CurvePCA",
    "CurveRegression",
    "Density",
    "MeanCurve",
    "SanitizedCurves",
    "density_of",
    "regression_curve",
    "sanitized_curves",
]
