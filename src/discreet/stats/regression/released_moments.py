"""Which numbers a regression releases: a table of shares with some sums, or weighted sums alone.

Under Laplace noise the table is often better: one row adds 1 to it, however many products it stands for. Under Gaussian
noise weighted sums are. Sums with the outcome get more weight than others, as the error of a coefficient is mostly
theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.queries.products import CodedRows, WeightedSums, coded_rows, whole_weight
from discreet.stats.regression.designs import ONE, Design, Monomial

Floats = NDArray[np.float64]
_TYPICAL = 0.3
"""A coefficient that is not unusual, in units of half the ranges."""
_MOST_CELLS = 512
_BLOCK = 2**14


@dataclass(frozen=True)
class Layout:
    """The released numbers: those of `query`. `matrices` has for each of them what it adds to the second moments."""

    design: Design
    table_weight: float
    weights: tuple[tuple[Monomial, float], ...]

    @cached_property
    def query(self) -> WeightedSums:
        weights = {monomial: whole_weight(weight) for monomial, weight in self.weights}
        return WeightedSums(
            tuple(column.shares for column in self.design.columns) if self.table_weight else (),
            whole_weight(self.table_weight) if self.table_weight else Fraction(0),
            tuple(weights.values()),
            tuple(not self.design.is_positive(monomial) for monomial in weights),
            Fraction(self.design.largest(weights) if weights else 0),
            Fraction(self.design.largest({key: w * w for key, w in weights.items()}) if weights else 0),
        )

    @cached_property
    def weight_of_sums(self) -> Floats:
        """The weight of every released number in the sum of every monomial."""
        monomials = self.design.moments[0]
        found = np.zeros((self.query.size, len(monomials)))
        cells = self.query.size - len(self.query.weights)
        own = {monomial: number for number, (monomial, _) in enumerate(self.weights)}
        codes = list(self.design.corners.T) if cells else []
        for place, monomial in enumerate(monomials):
            if monomial in own:
                found[cells + own[monomial], place] = 1 / float(self.query.weights[own[monomial]])
            else:
                found[:cells, place] = self.design.of_codes(monomial, codes) / float(self.query.table_weight)
        return found

    @cached_property
    def matrices(self) -> Floats:
        """For each released number the matrix that it adds to the second moments of the terms and the outcome."""
        return np.tensordot(self.weight_of_sums, self.design.moments[1], (1, 0))

    @cached_property
    def of_count(self) -> Floats:
        """The weight of every released number in the number of rows."""
        return np.array(self.weight_of_sums[:, self.design.moments[0].index(ONE)])

    @cached_property
    def expected(self) -> Floats:
        """The numbers that one row is expected to add if all columns are independent and spread evenly."""
        cells = self.query.size - len(self.query.weights)
        place = {monomial: number for number, monomial in enumerate(self.design.moments[0])}
        sums = [
            float(w) * self.design.expected[place[monomial]]
            for w, (monomial, _) in zip(self.query.weights, self.weights, strict=True)
        ]
        return np.array([float(self.query.table_weight) / cells] * cells + sums)

    def blocks(self, codes: list[Floats]) -> Iterator[CodedRows]:
        """All rows, some at a time."""
        for start in range(0, len(codes[0]), _BLOCK):
            yield self.coded([code[start : start + _BLOCK] for code in codes])

    def coded(self, codes: list[Floats]) -> CodedRows:
        """What rows add. The codes of a row are all known, or one is NaN and the row is left out."""
        known = ~np.any(np.isnan(codes), axis=0)
        kept = [code[known] for code in codes]
        shares = []
        for column, code in zip(self.design.columns, kept, strict=True):
            if not self.table_weight:
                break
            if column.levels is None:
                shares.append(np.stack([(1 - code) / 2, (1 + code) / 2]).T)
            else:
                shares.append((code == np.arange(len(column.levels))[:, None]).astype(np.float64).T)
        products = [self.design.of_codes(monomial, kept) for monomial, _ in self.weights]
        return coded_rows(shares, np.stack(products).T if products else np.zeros((int(known.sum()), 0)))

    def variance(self, unit_noise: float) -> float:
        """The variance of the noise in a typical score, if every number has noise of this variance. Only compared."""
        size = self.matrices.shape[1] - 1
        residual = np.append(np.full(size, -_TYPICAL), 1.0)
        return unit_noise * float(((self.matrices[:, :size] @ residual) ** 2).sum())


def sums_layout(design: Design, power: float) -> Layout:
    """Weighted sums alone. `power` is 1/3 for noise that is measured in the L1 norm, and 1/4 in L2."""
    weights = [(monomial, _importance(design, monomial) ** power) for monomial in design.moments[0]]
    return Layout(design, 0.0, tuple(weights))


def table_layout(design: Design) -> Layout | None:
    """A table of shares, and the sums that it lacks. None if it has too many cells."""
    if design.cells > _MOST_CELLS:
        return None
    lacking = [monomial for monomial in design.moments[0] if not design.is_multilinear(monomial)]
    if not lacking:
        return Layout(design, 1.0, ())
    raw = {monomial: _importance(design, monomial) ** (1 / 3) for monomial in lacking}
    whole = sum(raw.values())
    listed = [monomial for monomial in design.moments[0] if design.is_multilinear(monomial)]
    of_table = design.cells * sum(_importance(design, monomial) for monomial in listed)
    of_rest = sum(_importance(design, key) / (weight / whole) ** 2 for key, weight in raw.items())
    parts = np.cbrt([of_table, of_rest])
    table = float(parts[0] / parts.sum())
    return Layout(design, table, tuple((key, (1 - table) * weight / whole) for key, weight in raw.items()))


def _importance(design: Design, monomial: Monomial) -> float:
    """How much the error of a coefficient depends on a sum: most if the outcome is in it."""
    outcome = len(design.columns) - 1
    powers = dict(monomial)
    if outcome not in powers:
        return _TYPICAL**2
    squared = design.columns[outcome].levels is None and powers[outcome] == 2
    return _TYPICAL**4 if squared else 1.0


def best_layout(design: Design, norm: str, unit: object, rows: int) -> Layout:
    """The layout with the least noise in a typical score, for noise that is measured in this norm."""
    if norm == "L2":
        return sums_layout(design, 1 / 4)
    listed = [sums_layout(design, 1 / 3), table_layout(design)]
    found = [layout for layout in listed if layout is not None]
    return min(
        found,
        key=lambda one: one.variance(float(one.query.sensitivity(unit, rows).exact) ** 2),  # type: ignore[arg-type]
    )
