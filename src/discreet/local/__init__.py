"""Local privacy: each report is randomized on the device that sends it, so no collector has to be trusted."""

from discreet.local.estimates import Counted, Measured
from discreet.local.numbers import MeanSurvey, mean
from discreet.local.prefixes import HeavyHitters, heavy_hitters
from discreet.local.repetition import Repeated, repeated
from discreet.local.row_reports import Rows, rows
from discreet.local.sketches import Sketch, sketch
from discreet.local.surveys import Survey, survey
from discreet.local.tasks import from_task, task

__all__ = [
    "Counted",
    "HeavyHitters",
    "MeanSurvey",
    "Measured",
    "Repeated",
    "Rows",
    "Sketch",
    "Survey",
    "from_task",
    "heavy_hitters",
    "mean",
    "repeated",
    "rows",
    "sketch",
    "survey",
    "task",
]
