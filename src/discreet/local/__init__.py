"""Reports that need no trusted collector: each is randomized on the device that sends it."""

from discreet.local.estimates import Counted, Measured
from discreet.local.heavy_hitters import HeavyHitters, heavy_hitters
from discreet.local.numbers import MeanSurvey, mean
from discreet.local.repeated import Repeated, repeated
from discreet.local.rows import Rows, rows
from discreet.local.sketch import Sketch, sketch
from discreet.local.survey import Survey, survey

__all__ = [
    "Counted",
    "HeavyHitters",
    "MeanSurvey",
    "Measured",
    "Repeated",
    "Rows",
    "Sketch",
    "Survey",
    "heavy_hitters",
    "mean",
    "repeated",
    "rows",
    "sketch",
    "survey",
]
