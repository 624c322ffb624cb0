"""Exact draws: no float decides a probability, no tail is cut off, and no loop runs longer for a larger value.

A number is drawn in two parts: a cell from a table of integer weights (`laws.OneSided`, exact), and uniform bits inside
the cell. The result is accepted with the exact probability that the law requires. This coin compares a 64-bit uniform
with a float `exp`. Inside a guard band of 2^-40 around it (the float is accurate to 2^-48), it uses arbitrary
precision. Cells are small compared with the scale, so nearly every try is accepted, and the number of tries is
independent of the accepted value.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.hypergeometric import Hypergeometric
from discreet.exact.laws import OneSided, Shape
from discreet.exact.randomness import is_replayed, random_integer, random_words
from discreet.exact.rational import exp_bounds, exp_minus_bits, log_bounds

GUARD = 2.0**-40
_CHUNK = 2**15
_TO_UNIT = 2.0**-64
_WIDEST_MACHINE_CELL = 48  # cells of 2^48 with indices below 2^13 stay inside 64-bit integers

_F = TypeVar("_F", bound=Callable[..., Any])
_substitute: ContextVar[Any] = ContextVar("sampler replaced by a test", default=None)


def is_private() -> bool:
    """False while `discreet.testing` has replaced the stream or a sampler."""
    return _substitute.get() is None and not is_replayed()


def _replaceable(sampler: _F) -> _F:
    @functools.wraps(sampler)
    def draw(*args: Any, **kwargs: Any) -> Any:
        substitute = _substitute.get()
        if substitute is None:
            return sampler(*args, **kwargs)
        return substitute(sampler, *args, **kwargs)

    return draw  # type: ignore[return-value]


def below_exp(word: int, energy: Fraction, scale: Fraction = Fraction(1)) -> bool:
    """Whether a uniform that starts with the 64 bits `word` lies below `scale·exp(-energy)`. Reads more bits until this
    is certain.
    """
    bits = 64
    while True:
        lower, upper = exp_minus_bits(energy, bits)
        if word + 1 <= scale * lower:
            return True
        if word >= scale * upper:
            return False
        word = word << 64 | random_integer(64)
        bits += 64


@_replaceable
def bernoulli(probability: Fraction, size: int) -> NDArray[np.bool_]:
    """`size` coins, each True with exactly this rational probability."""
    if not 0 <= probability <= 1:
        raise InvalidArgument("A probability must lie between 0 and 1.", code="out-of-range")
    if probability == 1:
        return np.ones(size, dtype=bool)
    words = random_words(size)
    scaled = probability * 2**64
    prefix = math.floor(scaled)
    heads: NDArray[np.bool_] = words < np.uint64(prefix)
    for tied in np.flatnonzero(words == np.uint64(prefix)):
        heads[tied] = _below_fraction(scaled - prefix)
    return heads


def _below_fraction(probability: Fraction) -> bool:
    """Whether a fresh uniform lies below a rational, 64 bits at a time."""
    while True:
        scaled = probability * 2**64
        word, prefix = random_integer(64), math.floor(scaled)
        if word != prefix:
            return word < prefix
        probability = scaled - prefix


@_replaceable
def bernoulli_exp(energy: Fraction, size: int) -> NDArray[np.bool_]:
    """`size` coins, each True with probability exactly exp(-energy), energy ≥ 0."""
    return np.array([below_exp(int(word), energy) for word in random_words(size)], dtype=bool)


@_replaceable
def bernoulli_exp_each(losses: NDArray[Any], rate: Fraction) -> NDArray[np.bool_]:
    """One coin for each loss ≥ 0, True with probability exactly exp(-rate·loss)."""
    return _keep_with_exp(_energies(losses, rate), lambda i: rate * _exact(losses[i]))


def _energies(losses: NDArray[Any], rate: Fraction) -> NDArray[np.float64]:
    """rate·loss as floats, at most 800, where exp(-x) is 0 in floats."""
    if losses.dtype == object:
        return np.array([float(min(max(rate * loss, 0), 800)) for loss in losses], dtype=np.float64)
    if losses.dtype.kind not in "iu":
        raise InvalidArgument(
            "losses must be integers or Fractions. The rounding of a float would change probabilities.",
            code="not-whole",
        )
    steepest = float(min(rate, Fraction(10**300)))
    with np.errstate(over="ignore"):
        energies: NDArray[np.float64] = np.clip(losses.astype(np.float64) * steepest, 0.0, 800.0)
    return energies


def _keep_with_exp(energies: NDArray[np.float64], exact: Callable[[int], Fraction]) -> NDArray[np.bool_]:
    """Coins with probability exp(-energy). Floats decide outside the guard band, and `exact(i)` inside it."""
    words = random_words(len(energies))
    with np.errstate(under="ignore"):
        distance = np.exp(-energies) - words * _TO_UNIT
    kept: NDArray[np.bool_] = distance > 0
    for i in np.flatnonzero(np.abs(distance) < GUARD):
        kept[i] = below_exp(int(words[i]), exact(int(i)))
    return kept


@functools.lru_cache(maxsize=256)
def _one_sided(shape: Shape, halved: bool) -> OneSided:
    return OneSided(shape, halved=halved)


def _drawn_from(shape: Shape, size: int, *, signed: bool = True) -> NDArray[Any]:
    """Integers with this law, or only the non-negative ones."""
    bits = shape.cell_bits()
    cells = _one_sided(shape.in_cells(bits), signed and bits == 0)
    drawn: list[NDArray[Any]] = []
    missing = size
    while missing:
        count = min(_CHUNK, missing + missing // 24 + (1 if bits else 0))
        words = random_words(count)
        negative = (words & np.uint64(signed)).astype(bool)
        values = cells.draw(words >> np.uint64(1))
        if bits:
            values, kept = _place_in_cell(shape, bits, values)
            kept &= ~(negative & (values == 0))
            values, negative = values[kept], negative[kept]
        values = np.where(negative, -values, values)[:missing]
        drawn.append(values)
        missing -= len(values)
    return drawn[0] if len(drawn) == 1 else np.concatenate([np.empty(0, dtype=np.int64), *drawn])


def _place_in_cell(shape: Shape, bits: int, cells: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """A uniform position in each cell, and whether it is accepted."""
    if bits > _WIDEST_MACHINE_CELL:
        cells = cells.astype(object)
        place: NDArray[Any] = np.array([random_integer(bits) for _ in cells] + [None], dtype=object)[:-1]
    else:
        place = (random_words(len(cells)) & np.uint64(2**bits - 1)).astype(np.int64)
    start = cells * 2**bits
    values = start + place
    # in units of the cell, so that every scale fits a float
    rate = float(1 / shape.in_cells(bits).parameter)
    energies = (place / 2**bits).astype(np.float64) * rate
    if shape.kind == "gaussian":
        energies *= ((values + start) / 2**bits).astype(np.float64) / 2
    kept = _keep_with_exp(energies, lambda i: shape.energy(int(values[i])) - shape.energy(int(start[i])))
    return values, kept


@_replaceable
def discrete_laplace(scale: Fraction, size: int) -> NDArray[Any]:
    """`size` integers with P[k] ∝ exp(-|k|/scale), exactly, for any rational scale.

    Machine integers, or Python integers (dtype object) if the scale exceeds 2^52.
    """
    return _drawn_from(Shape("laplace", scale), size)


@_replaceable
def geometric(scale: Fraction, size: int) -> NDArray[Any]:
    """`size` integers k ≥ 0 with P[k] ∝ exp(-k/scale), exactly, for any rational scale."""
    return _drawn_from(Shape("laplace", scale), size, signed=False)


@_replaceable
def discrete_gaussian(variance: Fraction, size: int) -> NDArray[Any]:
    """`size` integers with P[k] ∝ exp(-k²/(2·variance)), exactly, for any rational variance."""
    return _drawn_from(Shape("gaussian", variance), size)


@_replaceable
def polya(parts: int, scale: Fraction, size: int) -> NDArray[np.int64]:
    """One of `parts` equal shares of a geometric variable: the sum of `parts` of them has mass ∝ exp(−k/scale).

    Promise: every k has exactly the probability (1−a)^r·a^k·r(r+1)…(r+k−1)/k! with r = 1/parts and a = exp(−1/scale). A
    uniform number is compared with cumulative sums, and more bits are read if 64 do not decide.
    """
    below, upto = _polya_table(parts, scale)
    words = random_words(size)
    # the number of sums that are certainly below the word
    drawn = np.searchsorted(upto, words, side="left").astype(np.int64)
    unsure = np.flatnonzero((drawn == len(below)) | (below[np.minimum(drawn, len(below) - 1)] <= words))
    for place in unsure:
        drawn[place] = _polya_slowly(parts, scale, int(words[place]))
    return drawn


def _polya_sums(parts: int, scale: Fraction, bits: int) -> Iterator[tuple[int, int]]:
    """Lower and upper bounds on P[X ≤ 0], P[X ≤ 1], … in units of 2^-bits."""
    low, high = exp_minus_bits(1 / scale, bits + 32)
    one, rate = 1 << (bits + 32), Fraction(1, parts)
    first = [exp_bounds(rate * end, bits // 3 + 20) for end in _log_of(one - high, one - low, one, bits)]
    mass = [math.floor(first[0][0] * one), math.ceil(first[1][1] * one)]
    total, k = list(mass), 0
    while True:
        yield max(0, total[0] >> 32), -(-total[1] >> 32)
        step = Fraction(k * parts + 1, (k + 1) * parts)
        mass = [math.floor(mass[0] * low * step) // one, math.ceil(mass[1] * high * step) // one + 1]
        total, k = [total[0] + mass[0], total[1] + mass[1]], k + 1


def _log_of(low: int, high: int, one: int, bits: int) -> tuple[Fraction, Fraction]:
    return log_bounds(Fraction(low, one), bits // 3 + 20)[0], log_bounds(Fraction(high, one), bits // 3 + 20)[1]


@functools.lru_cache(maxsize=32)
def _polya_table(parts: int, scale: Fraction) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The cumulative sums in 64 bits, each rounded down and up, until one of them may be 1."""
    below, upto = [], []
    for low, high in _polya_sums(parts, scale, 160):
        if -(-high >> 96) >= 2**64 - 1:
            break
        below.append(low >> 96)
        upto.append(-(-high >> 96))
    if not below:
        below, upto = [0], [2**64 - 1]
    return np.array(below, dtype=np.uint64), np.array(upto, dtype=np.uint64)


def _polya_slowly(parts: int, scale: Fraction, word: int) -> int:
    """The same for one uniform number, with as many bits as needed."""
    known = 64
    while True:
        word, known = word << 64 | random_integer(64), known + 64
        for k, (low, high) in enumerate(_polya_sums(parts, scale, known + 96)):
            if (word + 1) << 96 <= low:
                return k
            if word << 96 < high:
                break  # not decided at this k: read more bits


@_replaceable
def uniform_below(bound: int, size: int) -> NDArray[Any]:
    """`size` uniform integers 0 ≤ k < bound (Python integers if the bound exceeds 2^63)."""
    return _uniform_below(bound, size)


def _uniform_below(bound: int, size: int) -> NDArray[Any]:
    if bound < 1:
        raise InvalidArgument("A uniform draw needs a bound of at least 1.", code="out-of-range")
    bits = (bound - 1).bit_length()
    if bits > 63:
        return np.array([_big_uniform_below(bound, bits) for _ in range(size)] + [None], dtype=object)[:-1]
    drawn: list[NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]
    missing = size
    while missing:
        tried = (random_words(2 * missing) & np.uint64((1 << bits) - 1)).astype(np.int64)
        kept = tried[tried < bound][:missing]
        drawn.append(kept)
        missing -= len(kept)
    return np.concatenate(drawn)


def _big_uniform_below(bound: int, bits: int) -> int:
    while (tried := random_integer(bits)) >= bound:
        pass
    return tried


@_replaceable
def permutation(size: int) -> NDArray[np.int64]:
    """A uniformly random order of 0 … size-1."""
    while True:
        order = np.argsort(keys := random_words(size), kind="stable")
        if size < 2 or not (np.diff(keys[order]) == 0).any():  # equal keys would favor their original order
            return order.astype(np.int64)


@_replaceable
def hypergeometric(marked: NDArray[np.int64], others: NDArray[np.int64], taken: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each place, how many of `marked` things are among `taken` things drawn without replacement, exactly.

    A number is proposed in blocks on both sides of the mode, each half as probable as the one before, and accepted with
    the exact probability that the law requires.
    """
    law = Hypergeometric(marked, others, taken)
    drawn: NDArray[np.int64] = law.least.copy()
    widths = law.widths()
    waiting = np.flatnonzero(law.most > drawn)
    while len(waiting):
        numbers, blocks, kept = _propose_near(law.mode[waiting], widths[waiting])
        tried, numbers, blocks = waiting[kept], numbers[kept], blocks[kept]
        words = random_words(len(tried))
        logs = np.minimum(law.log_ratio(numbers, tried) + blocks * math.log(2), 0.0)
        distance = np.exp(logs) - words * _TO_UNIT
        accepted = distance > 0
        for i in np.flatnonzero(np.abs(distance) < 2 * law.slack[tried] + GUARD):
            place, number = int(tried[i]), int(numbers[i])
            scaled = law.exact_ratio(place, number) * 2 ** (64 + int(blocks[i]))
            word, prefix = int(words[i]), math.floor(scaled)
            accepted[i] = word < prefix if word != prefix else _below_fraction(scaled - prefix)
        drawn[tried[accepted]] = numbers[accepted]
        kept[kept] = accepted
        waiting = waiting[~kept]
    return drawn


def _propose_near(
    mode: NDArray[np.int64], widths: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Uniform numbers in blocks of these widths on both sides of a mode, the block, and whether the try counts: block j
    has probability 2^−j−1.
    """
    words = random_words(len(mode))
    negative = (words & np.uint64(1)).astype(bool)
    bits = words >> np.uint64(1)
    blocks = np.bitwise_count((bits & (~bits + np.uint64(1))) - np.uint64(1)).astype(np.int64)
    for i in np.flatnonzero(bits == 0):
        blocks[i] = 63 + _count_zeros()
    places, wide = random_words(len(mode)), widths.astype(np.uint64)
    last = np.uint64(2**64 - 1) - np.uint64(2**64 - 1) % wide  # a multiple of the width: words below are uniform
    away = blocks * widths + (places % wide).astype(np.int64)
    kept = (places < last) & ~(negative & (away == 0))
    return mode + np.where(negative, -away, away), blocks, kept


def _count_zeros() -> int:
    zeros = 0
    while not random_integer(1):
        zeros += 1
    return zeros


def _exact(loss: Any) -> Fraction:
    return loss if isinstance(loss, Fraction) else Fraction(int(loss))


@_replaceable
def exponential_choice(
    losses: NDArray[Any], rate: Fraction, size: int = 1, widths: NDArray[Any] | None = None
) -> NDArray[np.int64]:
    """`size` indices with P[i] ∝ widths[i]·exp(-rate·losses[i]), exactly.

    `losses` are integers or `Fraction`s of any size (dtype object), and `widths` are non-negative integers. Integer
    weights just above the true ones propose an index, and an exact coin accepts it. So there is no normalizing
    constant, and no float affects the law.
    """
    # differences in a narrow type would wrap around
    losses = losses.astype(np.int64) if losses.dtype.kind == "i" else losses
    possible = losses if widths is None else losses[widths > 0]
    least, most = _exact(possible.min()), _exact(losses.max())
    losses = losses.astype(object) - least if most - least >= 2**63 else losses - possible.min()
    wide = np.ones(len(losses)) if widths is None else widths.astype(np.float64)
    with np.errstate(under="ignore"):
        weights = wide * np.exp(-_energies(losses, rate))
    shift = 61 - math.ceil(math.log2(float(weights.sum()) + len(weights) * 2.0**-60))
    above = np.ceil(np.ldexp(weights * (1 + 2 * GUARD), shift)).astype(np.uint64) + np.uint64(1)
    if widths is not None:
        above[widths == 0] = 0
    ends = np.cumsum(above)
    chosen: list[NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]
    missing = size
    while missing:
        tried = np.searchsorted(ends, _uniform_below(int(ends[-1]), missing).astype(np.uint64), side="right")
        words = random_words(len(tried))
        distance = np.ldexp(weights[tried], shift) / above[tried] - words * _TO_UNIT
        kept = distance > 0
        for i in np.flatnonzero(np.abs(distance) < 4 * GUARD):
            item = int(tried[i])
            width = 1 if widths is None else int(widths[item])
            scale = Fraction(width) * Fraction(2) ** shift / int(above[item])
            kept[i] = below_exp(int(words[i]), rate * _exact(losses[item]), scale)
        chosen.append(tried[kept])
        missing -= int(kept.sum())
    return np.concatenate(chosen)
