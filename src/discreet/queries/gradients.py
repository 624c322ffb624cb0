"""How far one unit moves a sum of clipped gradients."""

from __future__ import annotations

from discreet.exact.rational import Number, exactly
from discreet.guarantees.unit import Unit, check_rows, row
from discreet.queries.sensitivity import Sensitivity
from discreet.rows.gradients.examples import unit_of


def gradient_sensitivity(
    clip: Number, dimension: int, unit: Unit | None = None, rows_per_person: int = 1
) -> Sensitivity:
    """How far one unit can move a sum of gradients that are clipped row by row, in L2.

    Promise: a row added or removed moves it by its own part, which is at most the clip; a row replaced by two such
    parts. Every part is a whole number of `unit_of(clip)` in each coordinate.
    """
    who = row() if unit is None else unit
    parts = check_rows(who, rows_per_person) * (2 if who.neighbors == "replace" else 1)
    return Sensitivity(exactly(clip) * parts, "L2", unit=unit, dimension=dimension, grain=unit_of(clip))
