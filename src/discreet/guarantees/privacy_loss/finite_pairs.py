"""Dominating pairs with few outcomes: two laws in rationals, and the worst pair of a stated (ε,δ)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet.exact.rational import exactly, exp_bounds, float_up, log_bounds
from discreet.guarantees.conversions import renyi_of_response
from discreet.guarantees.guarantee import Approx
from discreet.guarantees.privacy_loss.pairs import Floats, Pair


@dataclass(frozen=True)
class FinitePair(Pair):
    """Two laws on the same few outcomes, as rationals."""

    inside: tuple[Fraction, ...]
    outside: tuple[Fraction, ...]
    relative: ClassVar[float] = 1e-15

    def _atoms(self) -> tuple[Floats, Floats, Floats]:
        rows = [(p, q) for p, q in zip(self.inside, self.outside, strict=True) if p > 0 and q > 0]
        losses = np.array([math.log(p / q) if p != q else 0.0 for p, q in rows])
        order = np.argsort(losses, kind="stable")
        p, q = (np.array([float(row[i]) for row in rows]) for i in (0, 1))
        return losses[order], p[order], q[order]

    @property
    def infinite(self) -> float:  # type: ignore[override]
        return float_up(sum((p for p, q in zip(self.inside, self.outside, strict=True) if q == 0), Fraction(0)))

    @property
    def bound(self) -> Fraction:  # type: ignore[override]
        return max(log_bounds(p / q)[1] for p, q in zip(self.inside, self.outside, strict=True) if p > 0 and q > 0)

    @property
    def spacing(self) -> float | None:  # type: ignore[override]
        losses = np.unique(np.abs(self._atoms()[0]))
        nonzero = losses[losses > 1e-9]
        return float(nonzero[0]) if len(nonzero) and np.ptp(nonzero) < 1e-9 * nonzero[0] else None

    def span(self) -> tuple[float, float]:
        losses = self._atoms()[0]
        return float(losses[0]), float(losses[-1])

    def cells(self, edges: Floats) -> tuple[Floats, Floats]:
        losses, p, q = self._atoms()
        place = np.searchsorted(edges, losses * np.where(losses > 0, 1 - 1e-15, 1 + 1e-15), side="left")
        size = len(edges) + 1
        return by_cell(place, p, size), by_cell(place, q, size)

    def delta(self, epsilon: float) -> float:
        ratio = exp_bounds(min(exactly(epsilon), Fraction(10**6)))[0]
        excess = (p - ratio * q for p, q in zip(self.inside, self.outside, strict=True))
        return float_up(sum((e for e in excess if e > 0), Fraction(0)))

    def renyi(self, order: float) -> float:
        return max(renyi_of_atoms(*self._atoms()[:2], order), renyi_of_atoms(*self._mirror()._atoms()[:2], order))

    def _mirror(self) -> FinitePair:
        return FinitePair(self.outside, self.inside)

    def mirrored(self) -> Pair:
        rows = list(zip(self.inside, self.outside, strict=True))
        return self if sorted(rows) == sorted((q, p) for p, q in rows) else self._mirror()


def by_cell(places: NDArray[np.intp], masses: Floats, size: int) -> Floats:
    """The masses summed in each cell."""
    return np.bincount(places, masses, minlength=size).astype(np.float64)


def renyi_of_atoms(losses: Floats, masses: Floats, order: float) -> float:
    """ln Σ p e^{(order-1)ℓ} / (order-1), rounded up."""
    exponents = (order - 1) * losses + np.log(np.maximum(masses, 1e-320))
    top = float(exponents.max())
    total = top + math.log(float(np.exp(exponents - top).sum()))
    return max(0.0, (total + 1e-14 * (1 + abs(top))) / (order - 1))


@dataclass(frozen=True)
class ResponsePair(Pair):
    """The worst pair of a stated (ε,δ): a total leak with probability δ, and otherwise randomized response."""

    bound: Fraction
    delta_mass: Fraction = Fraction(0)
    relative: ClassVar[float] = 1e-15

    @property
    def infinite(self) -> float:  # type: ignore[override]
        return float_up(self.delta_mass)

    @property
    def spacing(self) -> float | None:  # type: ignore[override]
        return self.largest or None

    def span(self) -> tuple[float, float]:
        return -self.largest, self.largest

    def cells(self, edges: Floats) -> tuple[Floats, Floats]:
        high = float(1 - self.delta_mass) / (1 + math.exp(-self.largest))
        low = high * math.exp(-self.largest)
        place = np.searchsorted(edges, np.array(self.span()), side="left")
        size = len(edges) + 1
        return by_cell(place, np.array([low, high]), size), by_cell(place, np.array([high, low]), size)

    def renyi(self, order: float) -> float:
        return renyi_of_response(self.largest, order) if self.bound else 0.0

    def twice(self) -> Pair:
        twice = Approx(epsilon=self.bound, delta=self.delta_mass)._twice()
        return ResponsePair(exactly(twice.epsilon), exactly(twice.delta))
