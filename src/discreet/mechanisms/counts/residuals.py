"""All marginals of a workload at once, from noisy residuals: the optimal plan for Gaussian noise, in closed form.

The table of counts over a set B of columns is a sum of independent parts, one for each A ⊆ B: the information in the
columns of A that no smaller set contains. Each part is measured once, with its own noise, and every marginal is the sum
of its parts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact import samplers
from discreet.exact.rational import Number, check_count, check_positive, exactly, significant, sqrt_up
from discreet.exact.search import bisect
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Guarantee, ZeroConcentrated
from discreet.guarantees.privacy_loss.compose import LossDistribution
from discreet.guarantees.privacy_loss.derived_pairs import near_gaussian
from discreet.mechanisms.protocol import least_noise, meets, tidy
from discreet.queries.sensitivity import Sensitivity, SensitivityLike
from discreet.queries.workload import Workload
from discreet.rows import none_of
from discreet.rows.containers import Data
from discreet.rows.convex import onto_simplex

Names = tuple[str, ...]
Floats = NDArray[np.float64]
_FINE = 2**56
"""The variance of the noise in squared lattice steps is at least this."""
_ALL_SETS = 16


def rows_of(sensitivity: SensitivityLike) -> tuple[int, Sensitivity | None]:
    """How many rows one unit has, and the sensitivity with its unit, from an integer or from the sensitivity of a
    count.
    """
    if not isinstance(sensitivity, Sensitivity):
        return check_count(1 if sensitivity is None else sensitivity, "sensitivity"), None
    if sensitivity.dimension > 1:
        raise InvalidArgument(
            "Here the sensitivity is the number of rows of one unit: a whole number, or Count().sensitivity(unit, "
            "rows).",
            code="sensitivity-wrong-kind",
        )
    return check_count(sensitivity.amount, "sensitivity"), sensitivity


@dataclass(frozen=True, kw_only=True)
class ResidualMarginals:
    """Measures the residual of every subset of the sets of a workload of marginals, and so all of its marginals.

    The residual of A is P_A·x_A, where x_A are the counts and P_A = ⊗(1 − J/n_i) is the projection on what no smaller
    set contains. In units of 1/Πn_i it is a vector of whole numbers. Independent discrete Gaussian noise of standard
    deviation σ_A is added to each entry, on this lattice or a finer one. The part of the noise outside the space of the
    residual is projected away. `stddev` scales the plan: with 1, it costs as much as one count with noise of standard
    deviation 1, Σ p_A/σ_A² = 1 with p_A = Π(1 − 1/n_i).

    Promise: one added row moves the residual of A by exactly ‖P_A e‖₂ = √p_A, a whole number of lattice steps in every
    coordinate. So the release is 1/(2·stddev²)-zCDP, and its δ(ε) is that of the continuous law plus a certified slack.
    For a replaced row, the cost is the exact worst case over the sets of columns in which it may change.
    Error: every cell of the marginal of B has the variance Σ_{A⊆B} σ_A² p_A Π_{j∈B∖A} n_j⁻², which is known before any
    row is read. No unbiased Gaussian plan of this cost has a smaller sum of variances over the workload.
    Source: Xiao-He-Zhang-Kifer 2023 (ResidualPlanner); zCDP on a lattice: Canonne-Kamath-Steinke 2020.
    """

    workload: Workload
    stddev: Number = 1

    def __post_init__(self) -> None:
        check_positive(self.stddev, "stddev")
        if not isinstance(self.workload, Workload) or self.workload.kind != "cells":
            raise InvalidArgument(
                "workload must be marginals, such as Workload.marginals(domain, 2).", code="wrong-type"
            )

    @property
    def query(self) -> Workload:
        """The query that is asked of the rows."""
        return self.workload

    @cached_property
    def _sizes(self) -> dict[str, int]:
        return dict(zip(self.workload.domain.names, self.workload.domain.shape, strict=True))

    def _ordered(self, names: Sequence[str]) -> Names:
        self.workload.domain.axes(names)
        return tuple(sorted(names, key=self.workload.domain.axis))

    def _shape(self, names: Names) -> tuple[int, ...]:
        return tuple(self._sizes[name] for name in names)

    @cached_property
    def closure(self) -> tuple[Names, ...]:
        """The sets whose residuals are measured: all subsets of the workload's sets that are not constant."""
        found = {part for names in self.workload.sets for part in self._parts_of(names)}
        return tuple(sorted(found, key=lambda names: (len(names), self.workload.domain.axes(names))))

    def _parts_of(self, names: Sequence[str]) -> list[Names]:
        whole = tuple(name for name in self._ordered(names) if self._sizes[name] > 1)
        return [part for ways in range(len(whole) + 1) for part in itertools.combinations(whole, ways)]

    def _kept(self, names: Names) -> Fraction:
        """p_A: the squared length of a unit vector's residual."""
        return math.prod((1 - Fraction(1, n) for n in self._shape(names)), start=Fraction(1))

    @cached_property
    def _variances(self) -> dict[Names, Fraction]:
        """σ_A² of the plan of cost 1, rounded up: √(p_A/v_A)·Σ√(p_A v_A)."""
        weights = dict.fromkeys(self.closure, Fraction(0))
        for names in self.workload.sets:
            cells = math.prod(self._shape(names))
            for part in self._parts_of(names):
                left = cells // math.prod(self._shape(part))
                weights[part] += self._kept(part) * Fraction(cells, left**2)
        total = math.fsum(math.sqrt(self._kept(part) * weight) for part, weight in weights.items())
        return {
            part: significant(Fraction(math.sqrt(self._kept(part) / weight) * total * (1 + 1e-13)), up=True)
            for part, weight in weights.items()
        }

    @cached_property
    def _added(self) -> Fraction:
        """Σ p_A/σ_A² for the plan at stddev 1: 1, or slightly less because of rounding."""
        return sum((self._kept(part) / variance for part, variance in self._variances.items()), Fraction(0))

    @cached_property
    def _replaced(self) -> Fraction:
        """The largest Σ ‖P_A(e−e')‖²/σ_A² over two rows, or for one that leaves the domain.

        ‖P_A(e−e')‖² = 2(p_A − Π_{i∈A} ([e_i = e'_i] − 1/n_i)) depends only on the columns that differ.
        """
        columns = [name for name in self.workload.domain.names if any(name in part for part in self.closure)]
        if len(columns) <= _ALL_SETS:
            differs = np.arange(2 ** len(columns))
            cost = np.zeros(len(differs))
            for part, variance in self._variances.items():
                product = np.ones(len(differs))
                for name in part:
                    n = self._sizes[name]
                    product *= np.where(differs >> columns.index(name) & 1, -1 / n, 1 - 1 / n)
                cost += 2 * (float(self._kept(part)) - product) / float(variance)
            worst = Fraction(float(cost.max()) * (1 + 1e-9))
        else:
            worst = sum(
                (
                    2 * self._kept(part) * Fraction(least, least - 1) / variance
                    for part, variance in self._variances.items()
                    if part
                    for least in [min(self._shape(part))]
                ),
                Fraction(0),
            )
        return max(worst, self._added)

    def guarantee(self, sensitivity: SensitivityLike = 1) -> Guarantee:
        """`sensitivity` is the number of rows of one unit: a whole number (of added or removed rows), or that of a
        count.
        """
        rows, bound = rows_of(sensitivity)
        replaced = bound is not None and bound.replaced
        squared = rows**2 * (self._replaced if replaced else self._added) / exactly(self.stddev) ** 2
        moved = sum(math.prod(self._shape(part)) for part in self.closure)
        pair = near_gaussian(squared * _FINE, Fraction(_FINE), moved)
        unit = None if bound is None else bound.unit
        return LossDistribution(
            factors=((pair, 1),), protects=unit, neighbors="add_or_remove" if unit is None else None
        )

    @classmethod
    def for_guarantee(cls, guarantee: Guarantee, *, workload: Workload, sensitivity: SensitivityLike = 1) -> Self:
        """The least noise that keeps `guarantee`. `sensitivity` is the number of rows of one unit."""
        plan = cls(workload=workload)
        costs = {"_variances": plan._variances, "_added": plan._added, "_replaced": plan._replaced}

        def make(stddev: Fraction) -> Any:
            made = cls(workload=workload, stddev=tidy(stddev))
            vars(made).update(closure=plan.closure, **costs)  # the plan's shape does not depend on its scale
            return made

        rows, bound = rows_of(sensitivity)
        replaced = bound is not None and bound.replaced
        if isinstance(guarantee, ZeroConcentrated):
            squared = rows**2 * (plan._replaced if replaced else plan._added)
            start = sqrt_up(squared / (2 * exactly(guarantee.rho)))
        else:
            start = Fraction(rows)
        kept: Self = least_noise(
            make, lambda m: meets(m.guarantee(sensitivity), guarantee), significant(start, up=True)
        )
        return kept

    # --- how wrong it will be, before anything is spent ---------------------------------------------------

    def variance_of(self, names: Sequence[str]) -> float:
        """The variance of every cell of the marginal over these columns."""
        asked = self._ordered(names)
        total = Fraction(0)
        for part in self._known_parts(asked):
            left = math.prod(self._sizes[name] for name in asked if name not in part)
            total += self._variances[part] * self._kept(part) / left**2
        return float(total * exactly(self.stddev) ** 2)

    def _known_parts(self, names: Names) -> list[Names]:
        parts = self._parts_of(names)
        if parts[-1] not in self._variances:
            raise InvalidArgument(
                f"{' × '.join(names)} is not part of the workload, so it was not measured. Ask for columns of one of "
                "its sets.",
                code="not-in-workload",
            )
        return parts

    def expected_rmse(self, names: Sequence[str] | None = None) -> float:
        """The root of the mean squared error over all cells of the workload, or of the marginal over `names`."""
        sets = self.workload.sets if names is None else (tuple(names),)
        cells = [math.prod(self._shape(part)) for part in sets]
        total = math.fsum(n * self.variance_of(part) for n, part in zip(cells, sets, strict=True))
        return math.sqrt(total / sum(cells))

    def error(self, confidence: float, *, of: Sequence[str] | None = None) -> Accuracy:
        """The error of all cells of the workload at once, by a union bound, or of one cell of the marginal over the
        columns `of`.
        """
        sure = check_confidence(confidence)
        sets = self.workload.sets if of is None else (tuple(of),)
        cells = np.array([math.prod(self._shape(names)) if of is None else 1 for names in sets], dtype=np.float64)
        spread = np.array([math.sqrt(self.variance_of(names)) for names in sets])
        from scipy.special import ndtr

        def holds(amount: float) -> bool:
            return float(np.sum(2 * cells * ndtr(-amount / spread))) <= (1 - sure) * (1 - 1e-9)

        amount = bisect(holds, 40.0 * float(spread.max()), 0.0, relative=1e-12) * (1 + 1e-6)
        return Accuracy(amount=amount, confidence=sure, of="value" if of is not None else "every value")

    # --- the draw, and what is made of it -----------------------------------------------------------------

    def check(self, value: Data) -> None:
        """Raise if the value cannot be read. Only its shape and type decide, never its content."""
        self.workload.domain.codes(none_of(value))

    def _draw(self, value: Any) -> dict[Names, Floats]:
        """The noisy residual of each set of the closure, from rows of the domain."""
        domain = self.workload.domain
        codes = domain.codes(value)
        return {part: self._noisy(part, domain.counts(codes, part)) for part in self.closure}

    def _noisy(self, part: Names, counts: NDArray[np.int64]) -> Floats:
        units, variance = math.prod(counts.shape), self._variances[part] * exactly(self.stddev) ** 2
        finer = max(0, math.ceil(math.log2(_FINE / (variance * units**2)) / 2) + 1)
        while finer and variance * units**2 * 4 ** (finer - 1) >= _FINE:
            finer -= 1
        lattice = units << finer
        kind: Any = object if int(counts.sum()) * lattice << counts.ndim >= 2**61 else np.int64
        steps = np.asarray(_center(counts.astype(kind)), dtype=kind).reshape(-1) * 2**finer
        noise = samplers.discrete_gaussian(variance * lattice**2, counts.size)
        noisy = steps + (noise.astype(object) if kind is object else noise)
        return _project((noisy / lattice).astype(np.float64).reshape(counts.shape))

    def marginal(self, residuals: Mapping[Names, Floats], names: Sequence[str]) -> Floats:
        """The unbiased noisy counts over these columns. They agree with every other marginal on the columns
        they share.
        """
        asked = self._ordered(names)
        table = np.zeros(self._shape(asked))
        for part in self._known_parts(asked):
            left = math.prod(self._sizes[name] for name in asked if name not in part)
            shape = [self._sizes[name] if name in part else 1 for name in asked]
            table += residuals[part].reshape(shape) / left
        return table.transpose([asked.index(name) for name in names]) if names else table

    def marginals(self, residuals: Mapping[Names, Floats]) -> dict[Names, Floats]:
        """All marginals of the workload."""
        return {names: self.marginal(residuals, names) for names in self.workload.sets}


def _center(counts: NDArray[Any]) -> NDArray[Any]:
    """⊗(n_i − J)·x in whole numbers: the residual times the number of cells."""
    for axis, n in enumerate(counts.shape):
        counts = n * counts - counts.sum(axis=axis, keepdims=True)
    return counts


def _project(table: Floats) -> Floats:
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def whole_counts(table: Any) -> NDArray[np.int64]:
    """The nearest table of counts that a database could have: whole numbers, none below zero, with the same total.

    First the nearest point of the simplex in L2, then the largest remainders are rounded up. This uses only released
    numbers, so it costs nothing. Marginals that agreed before may differ afterwards.
    """
    counts = np.asarray(table, dtype=np.float64)
    total = max(0, round(float(counts.sum())))
    if not total or not counts.size:
        return np.zeros(counts.shape, dtype=np.int64)
    flat = counts.reshape(-1)
    positive = onto_simplex(flat, total)
    whole = np.floor(positive).astype(np.int64)
    missing = total - int(whole.sum())
    order = np.argsort(whole - positive, kind="stable")
    whole[order[: max(missing, 0)]] += 1
    return np.asarray(whole.reshape(counts.shape))
