"""The first example of the thesis's introduction: patients without names, found in the register of voters."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import discreet as dp
from discreet.exact import public_draws
from discreet.reproduce.experiment import Experiment, ReportColumn

VALUES: Mapping[str, int] = {"sex": 2, "birth year": 80, "post code": 450, "birthday": 365}
"""The columns that both tables have, and how many values each can take."""
PUBLISHED = (1, 2, 3, 4)
"""How many of these columns the hospital publishes."""
VOTERS, PATIENTS = 20_000, 1_000
EPSILON = 4.0


def run() -> tuple[Experiment, ...]:
    """How many patients are named by the register."""
    return (linked(),)


def linked() -> Experiment:
    """A patient is named if exactly one voter has the same values."""
    return Experiment(
        name="t-voters",
        title=f"Thesis, introduction · {PATIENTS:,} patients without names, and {VOTERS:,} voters with names",
        source="the thesis, introduction; T.4.7, T.4.10",
        columns=(
            ReportColumn("columns", "published columns", "given"),
            ReportColumn("cells", "cells K", "given", ",d"),
            ReportColumn("named", "named,\nas published", "exact", ".4f"),
            ReportColumn("named_observed", "named,\nas published", "observed", ".4f"),
            ReportColumn("named_response", "named rightly,\nresponse", "exact", ".6f"),
            ReportColumn("named_response_observed", "named rightly,\nresponse", "observed", ".4f"),
        ),
        rows=tuple(map(_row, PUBLISHED)),
        notes=(
            "All values are uniform here, so a patient is the only voter of a cell with probability (1 −",
            f"1/K)^(n−1). Response: each published value by randomized response, ε = {EPSILON:g} for the whole row,",
            "in equal shares. Then nearly every link is wrong, and nobody can tell which. Counts of diagnoses with",
            "noise are far more useful.",
        ),
    )


def cells(columns: int) -> int:
    """How many different rows the first columns can have."""
    return math.prod(list(VALUES.values())[:columns])


def alone(columns: int) -> float:
    """The probability that no other voter has the same values."""
    return math.exp((VOTERS - 1) * math.log1p(-1 / cells(columns)))


def response(columns: int) -> dp.Each:
    """Randomized response of every published value."""
    spaces = [dp.queries.Categories(range(count)) for count in list(VALUES.values())[:columns]]
    return dp.Each.for_guarantee(dp.Pure(epsilon=EPSILON), spaces=spaces)


def draw_voters(columns: int) -> list[tuple[int, ...]]:
    """The values of every voter. The first ones are the patients."""
    drawn = (public_draws.whole_numbers(count, VOTERS).tolist() for count in list(VALUES.values())[:columns])
    return list(zip(*drawn, strict=True))


def _row(columns: int) -> dict[str, Any]:
    voters, each = draw_voters(columns), response(columns)
    patients, held = voters[:PATIENTS], Counter(voters)
    said = dp.release(patients if columns > 1 else [value for (value,) in patients], each).value
    reports = said if columns > 1 else [(value,) for value in said]
    true = math.prod(float(mechanism.truth) for mechanism in each.mechanisms)
    right = sum(a == b and held[a] == 1 for a, b in zip(reports, patients, strict=True))
    return {
        "columns": ("+ " if columns > 1 else "") + list(VALUES)[columns - 1],
        "cells": cells(columns),
        "named": alone(columns),
        "named_observed": sum(held[row] == 1 for row in patients) / PATIENTS,
        "named_response": true * alone(columns),
        "named_response_observed": right / PATIENTS,
    }
