"""What one row moves in a release of several stages: the stages of one set of rows, played again with its neighbor.

The noisy numbers of the first run are returned again in the second, so that all that is released is the same. The
distance of what was to be released is then what the promise speaks of, in every stage.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.mechanisms.learning import radius_moments
from discreet.mechanisms.learning.cell_sums import Stage

Calls = list[tuple[Any, list[Any], Any]]


def _noisy(run: list[Any], calls: Calls, again: Calls | None) -> Any:
    """A stand-in for `Stage.noisy` that notes its calls."""
    plain = Stage.noisy

    def noisy(self: Stage, exact: Any) -> Any:
        drawn = plain(self, exact) if again is None else again[len(calls)][2]
        calls.append((self, [np.asarray(part, dtype=object) for part in exact], drawn))
        return drawn

    return noisy


def run_stages(mechanism: Any, rows: Any, again: Calls | None = None) -> Calls:
    """The stages of a run: each with its exact numbers and what was released for them."""
    calls: Calls = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stage, "noisy", _noisy([], calls, again))
        mechanism._draw(rows)
    return calls


def stage_distance(first: Calls, second: Calls) -> Fraction:
    """How far two runs are apart: the sum of squares in deviations, or of distances in scales for Laplace noise."""
    total = Fraction(0)
    for (stage, one, _), (_, other, _) in zip(first, second, strict=True):
        for part, a, b in zip(stage.parts, one, other, strict=True):
            apart = [abs(int(x)) for x in np.ravel(a - b)]
            unit = part.grain / stage.size(part)
            total += sum(x * x for x in apart) * unit**2 if stage.noise == "gaussian" else sum(apart) * unit
    return total


def run_moments(mechanism: Any, rows: Any, again: Calls | None = None) -> Calls:
    """The same for `RadiusMoments`: its rings, then its moments."""
    from discreet.mechanisms.learning import deviations, moments

    calls: Calls = []
    plain = deviations.noisy_units

    def noisy(exact: Any, grain: Fraction, step: Fraction, variance: Fraction) -> Any:
        drawn = plain(exact, grain, step, variance) if again is None else again[len(calls)][2]
        calls.append(((grain, variance), [np.asarray(exact, dtype=object)], drawn))
        return drawn

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(radius_moments, "noisy_units", noisy)
        patch.setattr(moments, "noisy_units", noisy)
        mechanism._draw(rows)
    return calls


def moments_distance(first: Calls, second: Calls) -> Fraction:
    total = Fraction(0)
    for ((grain, variance), (one,), _), (_, (other,), _) in zip(first, second, strict=True):
        total += sum(int(x) ** 2 for x in np.ravel(one - other)) * grain**2 / variance
    return total
