"""All marginals of a workload at once, from noisy residuals: the optimal plan for Gaussian noise, in closed form.

The table of counts over a set B of columns is a sum of independent parts, one for each A ⊆ B: the information in the
columns of A that no smaller set contains. Each part is measured once, with its own noise, and every marginal is the sum
of its parts. Columns whose values are ordered may be asked as prefixes or ranges; then they are measured accordingly.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, Self

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
from discreet.mechanisms.counts import residual_bases
from discreet.mechanisms.counts.largest_variance import Marginal, balance
from discreet.mechanisms.counts.residual_bases import Basis, Floats, cells_basis, ordered_basis
from discreet.mechanisms.protocol import least_noise, meets, tidy
from discreet.queries.sensitivity import Sensitivity, SensitivityLike
from discreet.queries.workload import Workload
from discreet.rows import none_of
from discreet.rows.containers import Data
from discreet.rows.convex import onto_simplex

Names = tuple[str, ...]
_FINE = 2**56
"""The variance of the noise in squared lattice steps is at least this."""
_ALL_SETS = 16
_ALL_QUESTIONS = 10**5
_WEIGHTS = 10**6


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

    The questions about a set of columns are all combinations of the questions about each: whether a row has the value
    v, for `prefixes` whether it has at most the value v, and for `ranges` whether its value lies between v and w.
    Every column has an integer matrix R_i, which measures what the column adds to the total, in units of 1/u_i:
    n − J in units of 1/n for cells, and otherwise one that is optimized for the questions. The residual of A is the
    vector of whole numbers ⊗R_i·x_A, where x_A are the counts. Independent discrete Gaussian noise of standard
    deviation σ_A·Πu_i is added to each entry, on this lattice or a finer one. The counts are computed from the noisy
    residuals by the inverse of each R_i. `stddev` scales the plan: with 1, it costs as much as one count with noise of
    standard deviation 1, Σ p_A/σ_A² = 1, where p_A = Π_{i∈A} p_i and p_i is the largest squared length of a column of
    R_i/u_i, which is 1 − 1/n_i for cells.

    Of all plans of this cost, the one with the `least` sum of variances over all questions is taken, or the one whose
    `largest` variance of a question is least, within 0.1%. `weights` of sets of the workload multiply the variances of
    their questions in both cases: with weight 4, a deviation counts twice. Other sets have weight 1. The choice depends
    on public facts only, and the promise does not depend on the choice.

    Promise: one added row moves the residual of A by at most √p_A, a whole number of lattice steps in every
    coordinate. So the release is 1/(2·stddev²)-zCDP, and its δ(ε) is that of the continuous law plus a certified slack.
    For a replaced row, the cost is the worst case over the sets of columns in which it may change.
    Error: the variance of every question is Σ_{A⊆B} σ_A² Π_{i∈A} v_i Π_{j∈B∖A} s_j, where v_i is its variance from R_i
    with noise 1, and √s_j its share of the total. It is known before any row is read. If all columns are asked as
    cells, no unbiased Gaussian plan of this cost has a smaller (weighted) sum of variances over the workload or, within
    0.1%, a smaller largest one.
    Source: Xiao-He-Zhang-Kifer 2023 (ResidualPlanner); He et al. 2026 (ResidualPlanner+); zCDP on
    a lattice: Canonne-Kamath-Steinke 2020.
    """

    workload: Workload
    stddev: Number = 1
    prefixes: Names = ()
    ranges: Names = ()
    weights: Mapping[Names, Number] | tuple[tuple[Names, Number], ...] = ()
    """Kept as pairs."""
    least: Literal["sum", "largest"] = "sum"

    def __post_init__(self) -> None:
        check_positive(self.stddev, "stddev")
        if not isinstance(self.workload, Workload) or self.workload.kind != "cells":
            raise InvalidArgument(
                "workload must be marginals, such as Workload.marginals(domain, 2).", code="wrong-type"
            )
        for field in ("prefixes", "ranges"):
            names = getattr(self, field)
            if isinstance(names, str | bytes) or not isinstance(names, Iterable):
                raise InvalidArgument(f"{field} must be a tuple of columns, such as ('age',).", code="wrong-type")
            object.__setattr__(self, field, tuple(names))
        self.workload.domain.axes((*self.prefixes, *self.ranges))
        if self.least not in ("sum", "largest"):
            raise InvalidArgument("least must be 'sum' or 'largest'.", code="not-an-option")
        object.__setattr__(self, "weights", tuple(self._checked_weights().items()))

    def _checked_weights(self) -> dict[Names, Number]:
        pairs: Any = tuple(self.weights.items()) if isinstance(self.weights, Mapping) else self.weights
        if not isinstance(pairs, tuple) or not all(
            isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], tuple) for pair in pairs
        ):
            raise InvalidArgument(
                "weights must map sets of columns to numbers, such as {('age', 'sex'): 3}.", code="wrong-type"
            )
        asked = {self._ordered(names) for names in self.workload.sets}
        found: dict[Names, Number] = {}
        for names, weight in pairs:
            ordered = self._ordered(names)
            if ordered not in asked:
                raise InvalidArgument(
                    f"weights has {' × '.join(names) or '()'}, which is not a set of the workload. Give weights to its "
                    "sets.",
                    code="not-in-workload",
                )
            if ordered in found:
                raise InvalidArgument("weights must name each set of columns once.", code="duplicates")
            if not Fraction(1, _WEIGHTS) <= exactly(weight, "a weight") <= _WEIGHTS:
                raise InvalidArgument("A weight must be between 1e-6 and 1e6.", code="out-of-range")
            found[ordered] = weight
        return found

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

    @property
    def _bases(self) -> dict[str, Basis]:
        """What is measured of each column."""
        return self._plan[0]

    @cached_property
    def _plan(self) -> tuple[dict[str, Basis], dict[Names, tuple[Fraction, float]]]:
        """What is measured of each column, and the prices of all sets. All ordered columns have the tilt whose plan is
        best.
        """
        ordered = dict.fromkeys(self.prefixes, "prefixes") | dict.fromkeys(self.ranges, "ranges")
        asked = {name: kind for name, kind in ordered.items() if self._sizes[name] > 1 and self._is_measured(name)}
        cells = {name: cells_basis(n) for name, n in self._sizes.items() if name not in asked}
        tilts = residual_bases.TILTS if asked else residual_bases.TILTS[:1]
        tried = []
        for tilt in tilts:
            unit = residual_bases.UNIT
            made = {name: ordered_basis(self._sizes[name], kind, tilt, unit) for name, kind in asked.items()}
            tried.append((cells | made, self._costs(cells | made)))
        return min(tried, key=lambda plan: _root_of_total(plan[1]))

    def _is_measured(self, name: str) -> bool:
        return any(name in part for part in self.closure)

    def _costs(self, bases: Mapping[str, Basis]) -> dict[Names, tuple[Fraction, float]]:
        """p_A and v_A of every set: its price, and its part of what is least, both with noise of variance 1.

        What is least is a weighted sum of variances, in which only the worst questions count if the largest is least.
        """
        kept = [math.prod((bases[name].kept for name in part), start=Fraction(1)) for part in self.closure]
        chosen = dict(self.weights)
        weights = {names: float(exactly(chosen.get(self._ordered(names), 1))) for names in self.workload.sets}
        if self.least == "largest":
            marginals = [self._marginal(names, bases, weight) for names, weight in weights.items()]
            found = balance(np.array([float(price) for price in kept]), marginals).tolist()
            return dict(zip(self.closure, zip(kept, found, strict=True), strict=True))
        sums = dict.fromkeys(self.closure, 0.0)
        for names, weight in weights.items():
            for part in self._parts_of(names):
                inside = math.prod(bases[name].sums[0] for name in part)
                outside = math.prod(bases[name].sums[1] for name in names if name not in part)
                sums[part] += weight * inside * outside
        return {part: (price, sums[part]) for part, price in zip(self.closure, kept, strict=True)}

    @cached_property
    def _places_of_parts(self) -> dict[Names, int]:
        return {part: place for place, part in enumerate(self.closure)}

    def _marginal(self, names: Sequence[str], bases: Mapping[str, Basis], weight: float = 1.0) -> Marginal:
        whole = self._parts_of(names)[-1]
        kept = itertools.product((True, False), repeat=len(whole))
        parts = [self._places_of_parts[tuple(itertools.compress(whole, chosen))] for chosen in kept]
        return Marginal(np.array(parts), [bases[name] for name in whole], weight)

    def _kept(self, names: Names) -> Fraction:
        """p_A: the largest squared length of what an added row moves in the residual of A."""
        return math.prod((self._bases[name].kept for name in names), start=Fraction(1))

    @cached_property
    def _variances(self) -> dict[Names, Fraction]:
        """σ_A² of the plan of cost 1, rounded up: √(p_A/v_A)·Σ√(p_A v_A)."""
        costs = self._plan[1]
        total = _root_of_total(costs)
        return {
            part: significant(Fraction(math.sqrt(kept / weight) * total * (1 + 1e-13)), up=True)
            for part, (kept, weight) in costs.items()
        }

    @cached_property
    def _added(self) -> Fraction:
        """Σ p_A/σ_A² for the plan at stddev 1: 1, or slightly less because of rounding."""
        return sum((self._kept(part) / variance for part, variance in self._variances.items()), Fraction(0))

    @cached_property
    def _replaced(self) -> Fraction:
        """The largest Σ ‖⊗R_i(e−e')‖²/σ_A² over two rows, or for one that leaves the domain.

        The squared length is at most 2(p_A − Π g_i), where g_i is the product of the two rows' columns of R_i. The sum
        over A is linear in each g_i, so it is largest where every g_i is the smallest one or, for equal values, p_i.
        """
        columns = [name for name in self.workload.domain.names if self._is_measured(name)]
        if len(columns) <= _ALL_SETS:
            differs = np.arange(2 ** len(columns))
            cost = np.zeros(len(differs))
            for part, variance in self._variances.items():
                product = np.ones(len(differs))
                for name in part:
                    basis = self._bases[name]
                    changed = differs >> columns.index(name) & 1
                    product *= np.where(changed, float(basis.opposed), float(basis.kept))
                cost += 2 * (float(self._kept(part)) - product) / float(variance)
            worst = Fraction(float(cost.max()) * (1 + 1e-9))
        else:
            worst = sum(
                (
                    2 * self._kept(part) * (1 + max(-basis.opposed / basis.kept for basis in bases)) / variance
                    for part, variance in self._variances.items()
                    if part
                    for bases in [[self._bases[name] for name in part]]
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
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        workload: Workload,
        sensitivity: SensitivityLike = 1,
        prefixes: Sequence[str] = (),
        ranges: Sequence[str] = (),
        weights: Mapping[Names, Number] | tuple[tuple[Names, Number], ...] = (),
        least: Literal["sum", "largest"] = "sum",
    ) -> Self:
        """The least noise that keeps `guarantee`. `sensitivity` is the number of rows of one unit."""
        asked: Any = {"prefixes": prefixes, "ranges": ranges}  # made tuples
        plan = cls(workload=workload, weights=weights, least=least, **asked)
        costs = {"_variances": plan._variances, "_added": plan._added, "_replaced": plan._replaced}

        def make(stddev: Fraction) -> Any:
            made = replace(plan, stddev=tidy(stddev))
            vars(made).update(closure=plan.closure, _plan=plan._plan, **costs)  # they do not depend on the scale
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
        """The mean variance of the questions about these columns. All cells of a marginal have the same variance."""
        asked = self._ordered(names)
        total = 0.0
        for part in self._known_parts(asked):
            sums = [self._bases[name].sums[0 if name in part else 1] for name in asked]
            total += float(self._variances[part]) * math.prod(sums)
        return total / self._questions(asked) * float(exactly(self.stddev)) ** 2

    def deviation(self, where: Mapping[str, Any]) -> float:
        """The standard deviation of `count(residuals, where)`, for example of {"age": (18, 64), "sex": "f"}."""
        places = self._places(where)
        names = self._ordered(tuple(where))
        spreads = {name: self._bases[name].spread(*places[name]) for name in names}
        total = 0.0
        for part in self._known_parts(names):
            factors = [spreads[name][0 if name in part else 1] for name in names]
            total += float(self._variances[part]) * math.prod(factors)
        return math.sqrt(total) * float(exactly(self.stddev))

    def _questions(self, names: Sequence[str]) -> int:
        return math.prod(self._bases[name].sums[2] for name in names)

    def _spreads(self, names: Sequence[str]) -> tuple[Floats, Floats]:
        """The variances of all questions about these columns, and how many questions each of them stands for.

        Where there are many, groups of questions have one bound.
        """
        asked = self._ordered(names)
        ordered = sum(self._bases[name].matrix is not None for name in asked)
        most = math.floor(_ALL_QUESTIONS ** (1 / max(1, ordered)))
        spreads = {name: self._bases[name].grouped(most) for name in asked}
        total: Any = 0.0
        for part in self._known_parts(asked):
            factors = [spreads[name][0 if name in part else 1] for name in asked]
            total = total + float(self._variances[part]) * _outer(factors)
        times = _outer([spreads[name][2] for name in asked])
        return np.ravel(total) * float(exactly(self.stddev)) ** 2, np.ravel(times)

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
        """The root of the mean squared error over all questions of the workload, or over those about `names`."""
        sets = self.workload.sets if names is None else (tuple(names),)
        questions = [self._questions(part) for part in sets]
        total = math.fsum(n * self.variance_of(part) for n, part in zip(questions, sets, strict=True))
        return math.sqrt(total / sum(questions))

    def largest_deviation(self, names: Sequence[str] | None = None) -> float:
        """The largest standard deviation of a question of the workload, or of one about `names`."""
        sets = self.workload.sets if names is None else (self._ordered(names),)
        self._known_parts(sets[0])
        variances = np.array([float(self._variances[part]) for part in self.closure])
        largest = max(self._marginal(part, self._bases).worst(variances)[0] for part in sets)
        return math.sqrt(largest) * float(exactly(self.stddev))

    def error(self, confidence: float, *, of: Sequence[str] | None = None) -> Accuracy:
        """The error of all questions of the workload at once, by a union bound, or of one question about the columns
        `of`.
        """
        sure = check_confidence(confidence)
        sets = self.workload.sets if of is None else (tuple(of),)
        found = [self._spreads(names) for names in sets]
        if of is None:
            spread, questions = np.sqrt(np.concatenate([v for v, _ in found])), np.concatenate([t for _, t in found])
        else:
            spread, questions = np.sqrt(found[0][0].max(keepdims=True)), np.ones(1)
        from scipy.special import ndtr

        def holds(amount: float) -> bool:
            return float(np.sum(2 * questions * ndtr(-amount / spread))) <= (1 - sure) * (1 - 1e-9)

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
        bases = [self._bases[name] for name in part]
        units, variance = math.prod(basis.unit for basis in bases), self._variances[part] * exactly(self.stddev) ** 2
        finer = max(0, math.ceil(math.log2(_FINE / (variance * units**2)) / 2) + 1)
        while finer and variance * units**2 * 4 ** (finer - 1) >= _FINE:
            finer -= 1
        lattice = units << finer
        largest = int(counts.sum()) * math.prod(basis.largest for basis in bases) << finer + len(bases)
        kind: Any = object if largest >= 2**61 else np.int64
        measured = np.asarray(_measure(bases, counts.astype(kind)), dtype=kind)
        noise = samplers.discrete_gaussian(variance * lattice**2, measured.size)
        noisy = measured.reshape(-1) * 2**finer + (noise.astype(object) if kind is object else noise)
        return _restore(bases, (noisy / lattice).astype(np.float64).reshape(measured.shape))

    def marginal(self, residuals: Mapping[Names, Floats], names: Sequence[str]) -> Floats:
        """The unbiased noisy counts over these columns. They agree with every other marginal on the columns
        they share.
        """
        asked = self._ordered(names)
        table = np.zeros(self._shape(asked))
        for part in self._known_parts(asked):
            piece = residuals[part].reshape([self._sizes[name] if name in part else 1 for name in asked])
            for axis, name in enumerate(asked):
                if name not in part:
                    later = tuple(range(1, len(asked) - axis))
                    piece = piece * np.expand_dims(self._bases[name].lift, later)
            table += piece
        return table.transpose([asked.index(name) for name in names]) if names else table

    def marginals(self, residuals: Mapping[Names, Floats]) -> dict[Names, Floats]:
        """All marginals of the workload."""
        return {names: self.marginal(residuals, names) for names in self.workload.sets}

    def count(self, residuals: Mapping[Names, Floats], where: Mapping[str, Any]) -> float:
        """How many rows have these values or, for a pair (low, high), a value from low to high: unbiased.

        `where` is for example {"age": (18, 64), "sex": "f"}. `deviation` says how far this may be from the truth.
        """
        places = self._places(where)
        table = self.marginal(residuals, tuple(where))
        return float(table[tuple(slice(*places[name]) for name in where)].sum())

    def _places(self, where: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
        """The first value of each column and the one after the last, by index."""
        if not isinstance(where, Mapping):
            raise InvalidArgument(
                "where must map columns to a value or a pair, such as {'age': (18, 64)}.", code="wrong-type"
            )
        places = {}
        for name, value in where.items():
            values = self.workload.domain.values(name)
            pair = value if isinstance(value, tuple) and len(value) == 2 else (value, value)
            if any(end not in values for end in pair):
                raise InvalidArgument(
                    f"{name} does not have this value. Use values of the domain.", code="unknown-choice"
                )
            low, high = values.index(pair[0]), values.index(pair[1])
            if low > high:
                raise InvalidArgument(f"The first end of the range of {name} is the lower.", code="ends-out-of-order")
            places[name] = (low, high + 1)
        return places


def _root_of_total(costs: Mapping[Names, tuple[Fraction, float]]) -> float:
    """The root of the sum of variances of the best plan of cost 1."""
    return math.fsum(math.sqrt(kept * Fraction(weight)) for kept, weight in costs.values())


def _outer(factors: Sequence[Floats]) -> Floats:
    table: Floats = np.ones(())
    for factor in factors:
        table = np.multiply.outer(table, factor)
    return table


def _measure(bases: Sequence[Basis], counts: NDArray[Any]) -> NDArray[Any]:
    """⊗R_i·x in whole numbers: the residual in units of its matrices."""
    for axis, basis in enumerate(bases):
        counts = basis.measure(counts, axis)
    return counts


def _restore(bases: Sequence[Basis], residual: Floats) -> Floats:
    for axis, basis in enumerate(bases):
        residual = basis.restore(residual, axis)
    return residual


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
