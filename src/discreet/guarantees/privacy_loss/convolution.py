"""Numerically tight composition of fixed pairs: grid, tilt, Fourier transform, and an error bound that is added to δ.

Each pair is put on a grid of losses. In every cell, the masses of P and of Q are kept exactly and move only to the two
ends of the cell. So the curve can only rise, by an amount of the order of the squared step. Losses are then summed by
FFT under an exponential tilt that moves the relevant tail to the middle, so that rounding is relative to δ and not to
1. Everything that is cut off, wraps around or is rounded is bounded and counted in δ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.exact.search import bisect
from discreet.guarantees.privacy_loss.pairs import Floats, Pair

Factors = Sequence[tuple[Pair, int]]
_UNIT = 2.0**-53
_LARGEST_TRANSFORM = 2**22
_MOST_CELLS = 2**18
_CHEAP_TRANSFORM = 200_000
_DROWNED = 10.0  # masses above 1 are rounding errors under a steep tilt, so there is no bound for this ε
_FAINT = -60.0  # ln of the size below which the spectrum, whose peak is 1, is left out


@dataclass(frozen=True)
class GridLaw:
    """The masses of P at the losses (first + i)·step, and the mass that counts as an infinite loss."""

    step: float
    first: int
    masses: Floats
    infinite: float

    def losses(self) -> Floats:
        """The loss at each mass."""
        return np.asarray((self.first + np.arange(len(self.masses))) * self.step, dtype=np.float64)

    def log_moment(self, tilt: float) -> float:
        """ln Σ mass·e^{tilt·loss}."""
        exponents = tilt * self.losses() + self._log_masses
        top = float(exponents.max())
        return top + math.log(float(np.exp(exponents - top).sum()))

    def tilted_mean_and_variance(self, tilt: float) -> tuple[float, float]:
        """Mean and variance of the loss under the tilted law."""
        losses = self.losses()
        exponents = tilt * losses + self._log_masses
        weights = np.exp(exponents - exponents.max())
        weights /= weights.sum()
        mean = float(weights @ losses)
        return mean, float(weights @ (losses - mean) ** 2)

    @cached_property
    def _log_masses(self) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(self.masses)


def on_grid(pair: Pair, step: float, span: tuple[float, float] | None = None) -> GridLaw:
    """The pair on the grid of multiples of `step`. The masses of P and Q are kept, and move only to the ends of their
    cells. Losses below `span` are raised to its lower end, and those above it count as infinite.
    """
    low, high = span or pair.span()
    first, last = math.floor(low / step - 1e-9), math.ceil(high / step + 1e-9)
    edges = np.asarray(np.arange(first, last + 1) * step, dtype=np.float64)
    inside, outside = pair.cells(edges)
    # a cell (a, b] with masses p, q puts u at b and p-u at a, where u e^-b + (p-u) e^-a = q
    p = inside[1:-1] * (1 + pair.relative)
    width = -math.expm1(-step)
    with np.errstate(over="ignore", invalid="ignore"):
        back = np.where(p > 0, outside[1:-1] * (1 - pair.relative) * np.exp(np.minimum(edges[:-1], 700.0)), 0.0)
    upper = np.clip((p - back) / width, 0.0, p)
    masses = np.zeros(len(edges))
    masses[1:] += upper
    masses[:-1] += p - upper
    masses[0] += inside[0] * (1 + pair.relative)
    used = np.flatnonzero(masses)
    if len(used) == 0:
        return GridLaw(step, first, np.full(1, 1e-300), 1.0)
    masses, first = masses[used[0] : used[-1] + 1], first + int(used[0])
    return GridLaw(step, first, masses, min(1.0, pair.infinite + float(inside[-1]) * (1 + pair.relative)))


@dataclass(frozen=True)
class Composition:
    """The curve of a composition over a window: suffix sums of P and of Q over the grid, with all errors in `lost`."""

    step: float
    first: int
    above: Floats
    below: Floats
    lost: float
    reference: float = 0.0
    """`below` is e^reference times the mass of Q, so that losses in the thousands do not underflow."""
    whole: bool = True
    """Whether no loss lies below the first."""

    def delta(self, epsilon: float) -> float:
        """δ(ε), rounded up."""
        place = math.floor(epsilon / self.step) + 1 - self.first
        if place < 0 and not self.whole:
            return 1.0  # losses below the window were cut off
        place = max(place, 0)
        if place >= len(self.above):
            return min(1.0, self.lost)
        if not self.above[place] < _DROWNED:
            return 1.0
        excess = self.above[place] - math.exp(min(epsilon - self.reference, 700.0)) * self.below[place]
        return float(min(1.0, max(excess, 0.0) + self.lost))

    def epsilon(self, delta: float) -> float:
        """The smallest ε ≥ 0 with δ(ε) ≤ delta, rounded up."""
        room = delta - self.lost
        if room < 0:
            return math.inf
        with np.errstate(over="ignore", invalid="ignore"):
            ends = (self.first + np.arange(len(self.above))) * self.step
            curve = self.above - np.exp(np.minimum(ends - self.reference, 700.0)) * self.below
        curve = np.where(self.above < _DROWNED, curve, np.inf)
        beyond = np.flatnonzero(curve > room)
        if len(beyond) == 0:
            return max(0.0, float(ends[0]))
        place = int(beyond[-1]) + 1  # the curve falls below `room` inside the cell that ends here
        if place >= len(self.above):
            return float(ends[-1]) + self.step
        if self.below[place] <= 0 or self.above[place] <= room:
            return max(0.0, float(ends[place]))
        ratio = (self.above[place] - room) / self.below[place]
        inside = math.log(ratio) + self.reference + 1e-13 * (1 + abs(float(ends[place])))
        return max(0.0, float(ends[place - 1]), min(inside, float(ends[place])))


def _log_moment(laws: Sequence[tuple[GridLaw, int]], tilt: float) -> float:
    return sum(times * law.log_moment(tilt) for law, times in laws)


def _mean_and_deviation(laws: Sequence[tuple[GridLaw, int]], tilt: float) -> tuple[float, float]:
    parts = [(times, *law.tilted_mean_and_variance(tilt)) for law, times in laws]
    return sum(t * m for t, m, _ in parts), math.sqrt(sum(t * v for t, _, v in parts))


def _tilt_for(laws: Sequence[tuple[GridLaw, int]], *, epsilon: float | None, log_delta: float) -> float:
    """The tilt whose mean is the requested ε, or the Chernoff estimate of ε at δ. Any tilt is valid, and this one is
    precise.
    """

    # under too strong a tilt, only the largest losses would be visible
    narrow = _mean_and_deviation(laws, 0.0)[1] / 5

    def too_small(tilt: float) -> bool:
        mean, deviation = _mean_and_deviation(laws, tilt)
        if deviation < narrow:
            return False
        if epsilon is not None:
            return mean < epsilon
        return _log_moment(laws, tilt) - tilt * mean > log_delta

    outside = 1.0
    while too_small(outside) and outside < 1e6:
        outside *= 4
    return bisect(too_small, 0.0 if outside == 1.0 else outside / 4, outside, absolute=outside / 4096)


def _step_for(factors: Factors, estimate: float, deviation: float, log_delta: float, accuracy: float) -> float:
    """A grid step whose rounding moves ε by about a fraction `accuracy`."""
    steps_in_all = sum(times for _, times in factors)
    pull = 1 + math.sqrt(2 * max(-log_delta, 1.0)) / max(deviation, 1e-9)
    step = math.sqrt(12 * accuracy * max(estimate, 1e-3) / (steps_in_all * pull))
    narrowest = min(max(pair.span()[1] - pair.span()[0], 1e-30) for pair, _ in factors)
    return min(step, narrowest / 8)


def _align_step(step: float, factors: Factors) -> float:
    """The step, shortened so that it divides the spacing of the most common losses, or at least the largest loss, which
    is an atom for bounded noise. Losses on the grid are not rounded at all.
    """
    spacings = {pair.spacing for pair, _ in factors}
    if len(spacings) == 1 and (only := spacings.pop()) is not None and only > step:
        return only  # all losses lie on one lattice, so nothing is rounded
    for pair, _ in sorted(factors, key=lambda factor: -factor[1]):
        for unit in (pair.spacing, pair.largest):
            if unit is not None and step < unit < math.inf:
                return unit / math.ceil(unit / step)
    return step


def _pilot(pair: Pair) -> GridLaw:
    """The pair on a grid that is just fine enough to estimate its standard deviation, to plan the real grid."""
    low, high = pair.span()
    step = max(high - low, 1e-30) / 400
    while True:
        law = on_grid(pair, step)
        deviation = math.sqrt(law.tilted_mean_and_variance(0.0)[1])
        if deviation > 8 * step or len(law.masses) > 30_000:
            return law
        step = max(min(deviation / 8, step / 2), (high - low) / 60_000)


def _window(pilots: Sequence[tuple[GridLaw, int]], tilt: float, delta: float) -> tuple[float, float, float]:
    """The ends of a window for the tilted sum, and the tilt that best bounds the mass above it (Chernoff).

    Mass below the window wraps around to the top, times e^(-tilt·width). So a steep tilt needs little room below.
    """
    center, deviation = _mean_and_deviation(pilots, tilt)
    negligible = math.log(delta) - 16
    reach = 4 * deviation
    while True:
        high = center + reach
        further = [tilt + part * reach / deviation**2 for part in (0.03, 0.1, 0.2, 0.4, 0.7, 1.0)]
        bounds = [_log_moment(pilots, t) - t * high for t in further]
        best = min(range(len(bounds)), key=bounds.__getitem__)
        # mass so far above that it wraps around to above ε, as a fraction of the tilted law
        returning = min(bound - (t - tilt) * 3 * deviation for bound, t in zip(bounds, further, strict=True))
        returning += tilt * high - _log_moment(pilots, tilt)
        if (bounds[best] < negligible and returning < -16) or reach > 100 * deviation:
            steep = -tilt * (reach + 4 * deviation) < negligible
            return center - (4 if steep else 8) * deviation, high, further[best]
        reach *= 1.25


def _reach(pilot: GridLaw, tilt: float, negligible: float) -> tuple[float, float]:
    """The range of losses for the grid. Above it lies `negligible` mass, and losses below it may be raised to its lower
    end, which adds 1e-10 to a tilted law of mass 1.
    """
    raised = np.cumsum(pilot.masses) * np.exp(np.minimum(tilt * pilot.losses() - pilot.log_moment(tilt), 700.0))
    above = np.cumsum(pilot.masses[::-1])[::-1]
    low = max(int(np.argmax(raised > 1e-10)) - 1, 0)
    high = min(int(np.count_nonzero(above > negligible)), len(above) - 1)
    return (pilot.first + min(low, high)) * pilot.step, (pilot.first + high) * pilot.step


def compose_pairs(
    factors: Factors, *, epsilon: float | None = None, delta: float | None = None, accuracy: float = 1e-6
) -> Composition:
    """The curve of the composition around one ε or one δ.

    Error: the curve is never below the true one. At the requested point, its ε is above by a fraction of about
    `accuracy`, or a sixteenth of that where this is cheap.
    """
    still = sum(times * math.log1p(-pair.infinite) for pair, times in factors if not _moves(pair))
    factors = [(pair, times) for pair, times in factors if _moves(pair)]
    if not factors:
        return Composition(1.0, 0, np.zeros(1), np.zeros(1), -math.expm1(still) * (1 + 1e-12))
    pilots = [(_pilot(pair), times) for pair, times in factors]
    tilt = _tilt_for(pilots, epsilon=epsilon, log_delta=math.log(delta) if delta else 0.0)
    center, deviation = _mean_and_deviation(pilots, tilt)
    target = delta or max(math.exp(_log_moment(pilots, tilt) - tilt * center), 1e-300)
    low, high, above = _window(pilots, tilt, target)
    spans = [_reach(pilot, tilt, 1e-10 * target / times) for pilot, times in pilots]
    step = _step_for(factors, abs(center), deviation, math.log(target), accuracy)
    step = max(step / 4, min(step, (high - low) / _CHEAP_TRANSFORM))
    step = max(step, (high - low) / _LARGEST_TRANSFORM, *((ends[1] - ends[0]) / _MOST_CELLS for ends in spans))
    if sum(times * (ends[1] - ends[0]) for ends, (_, times) in zip(spans, factors, strict=True)) < _MOST_CELLS * step:
        low, high = -math.inf, math.inf  # few losses, so all are kept
    step = _align_step(step, factors)
    laws = [(on_grid(pair, step, span), times) for (pair, times), span in zip(factors, spans, strict=True)]
    least = sum(times * law.first for law, times in laws)
    most = sum(times * (law.first + len(law.masses) - 1) for law, times in laws)
    first, last = math.floor(max(least, low / step)), math.ceil(min(most, high / step))
    beyond = 0.0 if last >= most else math.exp(min(0.0, _log_moment(laws, above) - above * (last + 1) * step))
    return _transform(laws, tilt, first, last, beyond - math.expm1(still) * (1 + 1e-12))


def _moves(pair: Pair) -> bool:
    """Whether any finite loss other than 0 is possible."""
    low, high = pair.span()
    return high > low


def _power(base: NDArray[np.complex128], times: int) -> NDArray[np.complex128]:
    """The power by repeated squaring. Its error is a third of what `powers` below allows, and it is much faster than
    `**`.
    """
    result = np.ones_like(base)
    while True:
        if times & 1:
            result = result * base
        times >>= 1
        if not times:
            return result
        base = base * base


def _transform(laws: Sequence[tuple[GridLaw, int]], tilt: float, first: int, last: int, beyond: float) -> Composition:
    from scipy.fft import irfft, next_fast_len, rfft

    step = laws[0][0].step
    length = next_fast_len(last - first + 1, real=True)
    rounding = 4 * _UNIT * math.log2(length + 2)
    log_scale, parts = 0.0, []
    ceiling = np.zeros(length // 2 + 1)  # ln of the largest size the true spectrum can have
    for law, times in laws:
        log_moment = law.log_moment(tilt)
        log_scale += times * log_moment
        places = (law.first + np.arange(len(law.masses))) % length
        tilted = law.masses * np.exp(tilt * law.losses() - log_moment)
        parts.append((rfft(np.bincount(places, tilted, minlength=length)), times))
        ceiling += times * np.log(np.abs(parts[-1][0]) + rounding)
    active = np.flatnonzero(ceiling > _FAINT)  # the rest is left out, and its size is added to the error
    spectrum = np.zeros(length // 2 + 1, dtype=np.complex128)
    spectrum[active] = 1.0
    for part, times in parts:
        spectrum[active] *= _power(part[active], times)
    powers = 1 + 16 * _UNIT * sum(times for _, times in parts)
    error = float((np.exp(ceiling[active]) * powers - np.abs(spectrum[active])).sum()) + length * math.exp(_FAINT)
    drift = 2 * (error + rounding * float(np.abs(spectrum[active]).sum())) / length
    kept = last - first + 1  # losses above are counted in `beyond`, and losses below do not affect these ε
    tilted_sum = np.roll(irfft(spectrum, length), -(first % length))[:kept]
    ends = (first + np.arange(kept)) * step
    masses = (np.maximum(tilted_sum, 0.0) + drift) * np.exp(np.clip(log_scale - tilt * ends, -745.0, 600.0))
    lost = -math.expm1(sum(times * math.log1p(-min(law.infinite, 1 - 1e-16)) for law, times in laws))
    reference = float(ends[len(ends) // 2])
    whole = first <= sum(times * law.first for law, times in laws)
    with np.errstate(over="ignore", under="ignore"):  # clipping the exponent makes Q smaller, which is safe
        other = np.minimum(masses, _DROWNED) * np.exp(np.minimum(reference - ends, 600.0))
    above, below = (np.cumsum(side[::-1])[::-1] for side in (masses, other))
    summing = 1 + 2 * length * _UNIT
    return Composition(step, first, above * summing, below / summing, lost * (1 + 1e-12) + beyond, reference, whole)
