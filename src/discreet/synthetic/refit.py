"""The noisy counts of a synthetic table fitted once more: over the whole table, without its impossible rows.

Everything here uses numbers that are already released. Nothing is private, and floats may be used.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.synthetic.model import Floats, uniforms

MOST_CELLS = 2**19
"""A larger table is not fitted again: its rows stay as they were drawn."""
SWEEPS, STEPS = 60, 100
"""How often all counts are matched in turn, and how many steps of descent follow."""


@dataclass(frozen=True)
class _Counts:
    """Noisy counts of some columns, shaped to meet the whole table, their deviation, and the other columns."""

    noisy: Floats
    stddev: Floats
    away: tuple[int, ...]

    def of(self, table: Floats) -> Floats:
        return np.asarray(table.sum(axis=self.away, keepdims=True))


def refit(drawn: Mapping[str, Any], names: Sequence[str], possible: NDArray[np.bool_] | None = None) -> Floats | None:
    """The probability of each cell of the table of bins, close to all noisy counts in their deviations, and 0 where it
    is not `possible`. None if the table is too large.

    The counts are matched in turn, as in iterative proportional fitting, each by no more than its noise allows. Then
    the squared error of all of them is lowered by mirror descent.
    """
    bins = [np.asarray(one) for one in drawn["bins"]]
    shape = tuple(int(one.max()) + 1 for one in bins)
    if math.prod(shape) > MOST_CELLS or (possible is not None and not possible.any()):
        return None
    total, counts = max(float(drawn["total"]), 1.0), _counts(drawn, names, bins, shape)
    law = np.ones(shape) if possible is None else possible.astype(np.float64)
    law /= law.sum()
    for _ in range(SWEEPS):
        for one in counts:
            law *= (np.maximum(one.noisy, 0.0) + one.stddev) / (total * one.of(law) + one.stddev)
        law /= law.sum()
    return _descend(law, counts, total)


def _counts(
    drawn: Mapping[str, Any], names: Sequence[str], bins: Sequence[NDArray[Any]], shape: tuple[int, ...]
) -> list[_Counts]:
    found = []
    for columns, noisy, stddev in drawn["measured"]:
        places = [names.index(one) for one in columns]
        order = np.argsort(places)
        values, spread = np.asarray(noisy, dtype=np.float64).transpose(order), np.asarray(float(stddev))
        if len(places) == 1:  # single columns were measured before their values were merged
            own = bins[places[0]]
            values = np.bincount(own, values, minlength=shape[places[0]]).astype(np.float64)
            spread = stddev * np.sqrt(np.bincount(own, minlength=shape[places[0]]))
        size = tuple(shape[axis] if axis in places else 1 for axis in range(len(shape)))
        away = tuple(axis for axis in range(len(shape)) if axis not in places)
        found.append(_Counts(values.reshape(size), spread.reshape(size) if spread.ndim else spread, away))
    return found


def _descend(law: Floats, counts: Sequence[_Counts], total: float) -> Floats:
    """The law after some steps of mirror descent on the squared error. A step that does not lower it is halved."""

    def loss(cells: Floats) -> float:
        return sum(float((((total * one.of(cells) - one.noisy) / one.stddev) ** 2).sum()) for one in counts) / 2

    least = min(float(np.min(one.stddev)) for one in counts)
    best, size = loss(law), 4 * least**2 / total**2
    for _ in range(STEPS):
        slope = np.zeros(law.shape)
        for one in counts:
            slope += total * (total * one.of(law) - one.noisy) / one.stddev**2
        slope -= float((law * slope).sum())
        while size > 1e-300:
            moved = law * np.exp(np.clip(-size * slope, -50.0, 50.0))
            moved /= moved.sum()
            reached = loss(moved)
            if reached < best:
                break
            size /= 2
        else:
            return law
        law, best, size = moved, reached, 1.5 * size
    return law


def drawn_cells(law: Floats, rows: int) -> NDArray[np.int64]:
    """Rows of a table of probabilities, as codes: each cell has its expected count, rounded up or down."""
    ends = np.cumsum(law.reshape(-1))
    at = (np.arange(rows) + float(uniforms(1)[0])) / max(rows, 1) * ends[-1]
    places = np.minimum(np.searchsorted(ends, at, side="right"), law.size - 1)
    return np.stack(np.unravel_index(places, law.shape), axis=1).astype(np.int64)
