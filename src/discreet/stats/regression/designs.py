"""From a formula to polynomials of coded columns: which sums a regression needs, and what one row adds to them.

A column of numbers from `low` to `high` is coded as z = (x − center)/half, from −1 to 1. A condition or a factor is
coded by indicators of its levels. Every product of two terms is a polynomial of these codes. Numbers are measured in
units of `half` while a regression is computed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.stats.regression.formula import Formula

Floats = NDArray[np.float64]
Monomial = tuple[tuple[int, int], ...]
"""Pairs of a column and the power of its code, or for a factor the level whose indicator it is."""
Polynomial = dict[Monomial, float]
ONE: Monomial = ()
_MOST_CORNERS = 4096


@dataclass(frozen=True)
class Coded:
    """A column as it enters a regression: a number within `ends`, or a factor with these `levels`."""

    name: str
    ends: tuple[float, float] | None = None
    levels: tuple[Any, ...] | None = None

    @property
    def half(self) -> float:
        """Half the width of the range: the unit in which a number is measured."""
        return 1.0 if self.ends is None else (self.ends[1] - self.ends[0]) / 2 or 1.0

    @property
    def center(self) -> float:
        """The middle of the range, in units of `half`."""
        return 0.0 if self.ends is None else (self.ends[0] + self.ends[1]) / 2 / self.half

    @property
    def shares(self) -> int:
        """How many shares a value is divided into."""
        return 2 if self.levels is None else len(self.levels)

    @property
    def is_condition(self) -> bool:
        return self.levels == (False, True)


@dataclass(frozen=True)
class Design:
    """The terms of a regression as polynomials of the coded columns. The outcome is the last column."""

    formula: Formula
    columns: tuple[Coded, ...]

    @cached_property
    def terms(self) -> tuple[tuple[str, Polynomial, float], ...]:
        """The name of each coefficient, its polynomial, and the unit of the polynomial."""
        place = {column.name: number for number, column in enumerate(self.columns)}
        found: list[tuple[str, Polynomial, float]] = []
        for term in self.formula.terms:
            choices = [self._variants(place[name], full=self._is_full(name, term)) for name in term]
            for chosen in itertools.product(*choices):
                name, polynomial, unit = "Intercept", {ONE: 1.0}, 1.0
                for part, values, size in chosen:
                    name = part if name == "Intercept" else f"{name}:{part}"
                    polynomial, unit = self.product(polynomial, values), unit * size
                found.append((name, polynomial, unit))
        return tuple(found)

    def _is_full(self, name: str, term: tuple[str, ...]) -> bool:
        """Whether a factor has a coefficient for every level: the first one has, if there is no intercept."""
        factors = [one for one in self.formula.terms if len(one) == 1 and self._column(one[0]).levels is not None]
        return () not in self.formula.terms and len(term) == 1 and bool(factors) and factors[0] == (name,)

    def _column(self, name: str) -> Coded:
        return next(column for column in self.columns if column.name == name)

    def _variants(self, place: int, *, full: bool = False) -> list[tuple[str, Polynomial, float]]:
        """What a column stands for in a term: one number, or an indicator for each level but the first."""
        column = self.columns[place]
        if column.levels is None:
            return [(column.name, {ONE: column.center, ((place, 1),): 1.0}, column.half)]
        listed = enumerate(column.levels)
        if column.is_condition and not full:
            return [(column.name, {((place, 1),): 1.0}, 1.0)]
        return [(f"{column.name}[{level}]", {((place, at),): 1.0}, 1.0) for at, level in listed if at or full]

    @cached_property
    def outcome(self) -> Polynomial:
        """The outcome as a polynomial."""
        return self._variants(len(self.columns) - 1)[0][1]

    @property
    def outcome_unit(self) -> float:
        return self.columns[-1].half

    @cached_property
    def units(self) -> Floats:
        """A coefficient in the units of the columns is the computed one times this."""
        return np.array([self.outcome_unit / unit for _, _, unit in self.terms])

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _, _ in self.terms)

    def product(self, first: Polynomial, second: Polynomial) -> Polynomial:
        """The product of two polynomials. An indicator is its own square, and two levels exclude each other."""
        found: Polynomial = {}
        for (one, weight), (other, factor) in itertools.product(first.items(), second.items()):
            powers: dict[int, int] | None = dict(one)
            for place, power in other:
                if self.columns[place].levels is None:
                    powers[place] = powers.get(place, 0) + power  # type: ignore[union-attr, index]
                elif powers.get(place, power) != power:  # type: ignore[union-attr]
                    powers = None
                    break
                else:
                    powers[place] = power  # type: ignore[index]
            if powers is not None:
                key = tuple(sorted(powers.items()))
                found[key] = found.get(key, 0.0) + weight * factor
        return {key: value for key, value in found.items() if value}

    @cached_property
    def moments(self) -> tuple[tuple[Monomial, ...], Floats]:
        """The monomials whose sums are needed, and for each the matrix that it adds to the second moments of all
        terms and the outcome.
        """
        every = [polynomial for _, polynomial, _ in self.terms] + [self.outcome]
        size = len(every)
        products = {(a, b): self.product(every[a], every[b]) for a in range(size) for b in range(a, size)}
        listed = dict.fromkeys([ONE, *(key for found in products.values() for key in found)])
        monomials = tuple(sorted(listed, key=lambda one: (len(one), one)))
        place = {key: number for number, key in enumerate(monomials)}
        matrices = np.zeros((len(monomials), size, size))
        for (a, b), found in products.items():
            for key, weight in found.items():
                matrices[place[key], a, b] = matrices[place[key], b, a] = weight
        return monomials, matrices

    # --- values -------------------------------------------------------------------------------------------------

    def is_multilinear(self, monomial: Monomial) -> bool:
        """Whether every number in it has the power 1, so that its sum follows from the table of shares."""
        return all(power == 1 for place, power in monomial if self.columns[place].levels is None)

    def is_positive(self, monomial: Monomial) -> bool:
        """Whether it is never negative."""
        return all(power % 2 == 0 for place, power in monomial if self.columns[place].levels is None)

    def of_codes(self, monomial: Monomial, codes: list[Floats]) -> Floats:
        """A monomial of the codes: z of a number, and the place of the level of a factor."""
        found: Floats = np.ones(codes[0].shape)
        for place, power in monomial:
            if self.columns[place].levels is None:
                for _ in range(power):  # not a power: its last digit may depend on the place in the array
                    found = found * codes[place]
            else:
                found = found * (codes[place] == power)
        return found

    @cached_property
    def corners(self) -> Floats:
        """The codes of every cell of the table of shares: −1 and 1 for a number, and each level of a factor."""
        each = [(-1.0, 1.0) if column.levels is None else range(len(column.levels)) for column in self.columns]
        return np.array(list(itertools.product(*each)), dtype=np.float64)

    def bound(self, weights: Floats) -> Floats:
        """The most that a linear combination of the terms and the outcome can be. It is largest at a corner."""
        if self.cells <= _MOST_CORNERS:
            return np.asarray(np.abs(weights @ self._at_corners).max(-1))
        return np.asarray(np.abs(weights) @ np.abs(self.term_matrix[1]).sum(1))

    @cached_property
    def _at_corners(self) -> Floats:
        monomials, weights = self.term_matrix
        return np.asarray(weights @ np.stack([self.of_codes(one, list(self.corners.T)) for one in monomials]))

    def values(self, codes: list[Floats]) -> Floats:
        """The terms and the outcome of rows, one column for each."""
        monomials, weights = self.term_matrix
        return by_row(np.stack([self.of_codes(one, codes) for one in monomials]).T, weights.T)

    @property
    def cells(self) -> int:
        """The number of cells of the table of shares."""
        return math.prod(column.shares for column in self.columns)

    def largest(self, weights: Mapping[Monomial, Any]) -> Any:
        """The most that Σ weight·|monomial| can be, for weights that are not negative."""
        listed = [column.levels for column in self.columns]
        combinations = math.prod(len(levels) for levels in listed if levels is not None)
        if combinations > _MOST_CORNERS:
            return sum(weights.values())
        each = [range(1) if levels is None else range(len(levels)) for levels in listed]
        return max(
            sum(
                weight
                for monomial, weight in weights.items()
                if all(listed[place] is None or at[place] == power for place, power in monomial)
            )
            for at in itertools.product(*each)
        )

    @cached_property
    def term_matrix(self) -> tuple[tuple[Monomial, ...], Floats]:
        """The monomials of the terms and the outcome, and the weight of each in every one of them."""
        every = [polynomial for _, polynomial, _ in self.terms] + [self.outcome]
        monomials = tuple(dict.fromkeys(key for polynomial in every for key in polynomial))
        weights = np.array([[polynomial.get(key, 0.0) for key in monomials] for polynomial in every])
        return monomials, weights

    @cached_property
    def expected(self) -> Floats:
        """The mean of each monomial if all columns are independent, with numbers spread evenly over their ranges."""
        return np.array([self._mean(monomial) for monomial in self.moments[0]])

    def _mean(self, monomial: Monomial) -> float:
        found = 1.0
        for place, power in monomial:
            levels = self.columns[place].levels
            found *= (0.0 if power % 2 else 1 / (power + 1)) if levels is None else 1 / len(levels)
        return found


def by_row(values: Floats, weights: Floats) -> Floats:
    """values @ weights, so that what a row gives depends on that row alone: a product of matrices may add in another
    order if there are more rows.
    """
    found = np.zeros((weights.shape[1], len(values)))  # one line for each column: operations on long lines are fast
    for place, weight in enumerate(weights):
        found += values[:, place] * weight[:, None]
    return found.T
