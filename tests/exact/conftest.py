"""The checks of the ground floor, as functions: tests call them on the real samplers, mutant tests on broken ones.

A statistical check gives a p-value, corrected for everything it looks at; it fails below `ALARM`. So each one alarms
falsely at most once in ten million runs, and a test with ten of them at most once in a million.
"""

from __future__ import annotations

import contextlib
import gc
import math
import os
import random
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.special import bdtr, bdtrc, betaincinv, erfc, gammaincc

from discreet.exact import randomness

ALARM = 1e-7
"""A check fails when its p-value is below this."""
_FEWEST = 50  # cells expected to hold fewer are put together: chi-square is a poor law below


# --- p-values ---------------------------------------------------------------------------------------------------------


def goodness(counts: Sequence[int], probabilities: Sequence[float]) -> float:
    """The p-value of counts against the probabilities of their cells, which sum to 1."""
    observed, expected = np.asarray(counts, float), np.sum(counts) * np.asarray(probabilities, float)
    assert abs(np.sum(probabilities) - 1) < 1e-9
    few = expected < _FEWEST
    if few.any():
        observed = np.append(observed[~few], observed[few].sum())
        expected = np.append(expected[~few], expected[few].sum())
        if expected[-1] < _FEWEST:  # a count that is small even so has an exact law
            rare = binomial(int(observed[-1]), int(observed.sum()), min(1.0, max(0.0, expected[-1] / observed.sum())))
            observed, expected = observed[:-1], expected[:-1] * observed[:-1].sum() / expected[:-1].sum()
            return min(1.0, 2 * min(rare, _chi_square(observed, expected)))
    return _chi_square(observed, expected)


def _chi_square(observed: Any, expected: Any) -> float:
    if len(expected) < 2:
        return 1.0
    return float(gammaincc((len(expected) - 1) / 2, ((observed - expected) ** 2 / expected).sum() / 2))


def two_sample(first: Any, second: Any) -> float:
    """The p-value that two samples of integers have one law, in bins of half a percent or single integers."""
    first, second = np.asarray(first, np.int64), np.asarray(second, np.int64)
    cuts = np.unique(np.quantile(np.append(first, second), np.linspace(0, 1, 201), method="lower"))
    table = np.array(
        [np.bincount(np.searchsorted(cuts, x, side="right"), minlength=len(cuts) + 1) for x in (first, second)]
    )
    few = table.sum(axis=0) * min(len(first), len(second)) < 15 * (len(first) + len(second))
    return contingency(np.column_stack([table[:, ~few], table[:, few].sum(axis=1)]))


def contingency(table: Any) -> float:
    """The p-value that rows and columns of a table of counts are independent."""
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True) / table.sum()
    freedom = (table.shape[0] - 1) * (table.shape[1] - 1)
    return float(gammaincc(freedom / 2, ((table - expected) ** 2 / expected).sum() / 2)) if freedom else 1.0


def binomial(count: int, size: int, probability: float) -> float:
    """The exact two-sided p-value of a count."""
    up = bdtrc(count - 1, size, probability) if count else 1.0
    return float(min(1.0, 2 * min(up, bdtr(count, size, probability))))


# --- the exact laws ---------------------------------------------------------------------------------------------------


def tail(kind: str, scale: Fraction, edges: Any) -> Any:
    """P[K ≥ m] for m ≥ 0: the closed form for Laplace; for Gaussian a sum, or the integral once σ ≥ 2^16.

    The sum and the integral from m − ½ differ by less than 1/(24σ²) of a density, 10^-11 of the mass.
    """
    size = float(scale)
    at = np.array([float(m) for m in edges])
    if kind == "laplace":
        return np.exp(-at / size) / (1 + math.exp(-1 / size))
    if size >= 2**16:
        return erfc((at - 0.5) / (size * math.sqrt(2))) / 2
    weights = np.exp(-(np.arange(math.ceil(39 * size) + 2, dtype=float) ** 2) / (2 * size * size))
    sums = np.append(np.cumsum(weights[::-1])[::-1], 0.0)
    return sums[np.minimum(at, len(weights)).astype(int)] / (2 * sums[0] - 1)


@dataclass
class Histogram:
    """Draws counted in signed bins of |k| (single integers when the scale is small) and by three far tails; wide ones
    also by their last four bits and by their place in cells of 1/64 to 1/8 of the scale, sixteen places a cell.
    """

    kind: str
    size: int
    edges: Any
    bins: Any
    last_bits: Any
    places: list[tuple[int, Any]]
    tails: list[tuple[int, int]]

    def p_value(self, scale: Fraction) -> float:
        """That the draws have this scale: bins, last bits and exact binomial tails, corrected for all of them."""
        above = np.append(tail(self.kind, scale, self.edges), 0.0)
        inner = np.append(tail(self.kind, scale, np.maximum(self.edges, 1)), 0.0)
        negative = inner[:-1] - inner[1:]
        p = [goodness(self.bins, np.stack([above[:-1] - above[1:], negative], axis=1).ravel())]
        if self.last_bits is not None:
            p.append(goodness(self.last_bits, [1 / 16] * 16))
        for cell, counts in self.places:
            starts = np.arange(math.ceil(40 * float(scale) / cell))[:, None] * cell
            ends = starts + np.arange(17) * (cell // 16)
            mass = tail(self.kind, scale, ends.ravel()) + tail(self.kind, scale, np.maximum(ends, 1).ravel())
            p.append(goodness(counts, -np.diff(mass.reshape(ends.shape), axis=1).sum(axis=0)))
        for edge, count in self.tails:
            p.append(binomial(count, self.size, 2 * float(tail(self.kind, scale, [edge])[0])))
        return min(1.0, len(p) * min(p))


def histogram(values: Any, kind: str, scale: Fraction) -> Histogram:
    """Count draws in the bins that suit this scale."""
    n = len(values)
    if kind == "laplace":
        reach = [float(scale) * math.log(n / few) for few in (200, 100, 10, 1)]
    else:
        reach = [float(scale) * math.sqrt(2 * math.log(n / few)) for few in (200, 100, 10, 1)]
    edges = np.unique([*range(4), *np.floor(np.linspace(0, reach[0], 200)).astype(np.int64)])
    size = np.abs(values)
    codes = 2 * (np.searchsorted(edges, size, side="right") - 1) + (values < 0)
    wide = scale >= 512
    cells = [2**b for b in range(scale.numerator.bit_length() - 7, scale.numerator.bit_length() - 3)] if wide else []
    return Histogram(
        kind,
        n,
        edges,
        np.bincount(codes, minlength=2 * len(edges)),
        np.bincount(values & 15, minlength=16) if wide else None,
        [(cell, np.bincount((size & (cell - 1)) // (cell // 16), minlength=16)) for cell in cells if cell >= 16],
        [(math.ceil(r), int((size >= math.ceil(r)).sum())) for r in reach[1:]],
    )


def law_of(draw: Callable[[int], Any], kind: str, scale: Fraction, size: int) -> float:
    """The p-value that `draw(size)` follows the discrete law of this scale."""
    return histogram(draw(size), kind, scale).p_value(scale)


def independence_of(draw: Callable[[int], Any], scale: Fraction, size: int) -> float:
    """The p-value that draws are independent within a call (lags 1, 2, 3 and a chunk) and between two calls.

    Pairs of octiles and pairs of last three bits in 8×8 tables, and the plain lag-1 correlation.
    """
    first, second = draw(size), draw(size)
    quarter = max(1, round(float(scale) / 2))
    p = []
    for classes in (lambda x: np.clip(x // quarter + 4, 0, 7), lambda x: x & 7):
        a, b = classes(first), classes(second)
        pairs = [(a[:-lag], a[lag:]) for lag in (1, 2, 3, 2**15) if lag < size]
        for left, right in [*pairs, (a, b)]:
            p.append(contingency(np.bincount(8 * left + right, minlength=64).reshape(8, 8)))
    x = np.clip(first / float(scale), -5, 5)
    p.append(float(erfc(abs(np.corrcoef(x[:-1], x[1:])[0, 1]) * math.sqrt(size / 2))))
    return min(1.0, len(p) * min(p))


def bit_events_hold(release: Callable[[float, int], Any], pair: tuple[float, float], epsilon: float, size: int) -> bool:
    """Whether no event "a multiple of 2^-j" (or its complement), j = 0 … 60, is over e^ε likelier on one of two inputs.

    Clopper-Pearson bounds at 10^-10 each, so 244 comparisons alarm falsely with probability below 5·10^-8.
    """

    def counts(x: float) -> Any:
        values = release(x, size)
        mantissa, exponent = np.frexp(values)
        whole = (mantissa * 2.0**53).astype(np.int64)
        zeros = np.where(whole == 0, 2000, np.log2(np.maximum(whole & -whole, 1)).astype(np.int64))
        places = 53 - exponent - zeros  # a multiple of 2^-j exactly when places ≤ j
        return np.array([(places <= j).sum() for j in range(61)])

    both = [counts(x) for x in pair]
    for one, other in (both, both[::-1]):
        for a, b in ((one, other), (size - one, size - other)):
            least = np.where(a > 0, betaincinv(np.maximum(a, 1), size - a + 1, 1e-10), 0.0)
            most = np.where(b < size, betaincinv(b + 1, np.maximum(size - b, 1), 1 - 1e-10), 1.0)
            if (least > math.exp(epsilon) * most).any():
                return False
    return True


# --- streams and processes --------------------------------------------------------------------------------------------


class Script:
    """A stream that says what it is told, and then fails; `used` counts bytes."""

    def __init__(self, *words: int) -> None:
        self._bytes = b"".join(word.to_bytes(8, "little") for word in words)
        self.used = 0

    def read(self, count: int) -> bytes:
        self.used += count
        assert self.used <= len(self._bytes), "more randomness was read than the script holds"
        return self._bytes[self.used - count : self.used]


@contextlib.contextmanager
def scripted(*words: int) -> Iterator[Script]:
    """The next random words are these."""
    script = Script(*words)
    with randomness.replaying(script):  # type: ignore[arg-type]
        yield script


def fork_shares_nothing() -> bool:
    """Whether a forked child, its forked child, and the parent read different words."""
    randomness.random_words(1)  # the parent has a stream before the fork
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns when other threads exist
        child = os.fork()
    if child == 0:
        gc.disable()  # what another library takes apart here may wait for a thread that is not there
        try:
            words = randomness.random_words(4).tobytes()
            grandchild = os.fork()
            if grandchild == 0:
                os.write(write, randomness.random_words(4).tobytes())
                os._exit(0)
            os.waitpid(grandchild, 0)
            os.write(write, words + randomness.random_words(4).tobytes())
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    mine = randomness.random_words(8).tobytes()
    with os.fdopen(read, "rb") as pipe:
        theirs = pipe.read()
    assert len(theirs) == 96
    return len(set(np.frombuffer(theirs + mine, np.uint64).tolist())) == 20


def processes_differ(before: str = "") -> bool:
    """Whether two processes with the same seeds of everything draw different words and different noise."""
    script = f"""
import random, numpy, os
random.seed(7); numpy.random.seed(7)
from fractions import Fraction
from discreet.exact import randomness, samplers
{before}
print(*randomness.random_words(4).tolist(), *samplers.discrete_laplace(Fraction(2**40), 4).tolist())
"""
    run = [sys.executable, "-c", script]
    environment = dict(os.environ, PYTHONHASHSEED="7")
    first, second = (
        subprocess.run(run, env=environment, capture_output=True, text=True, check=True).stdout.split() for _ in "ab"
    )
    assert len(first) == len(second) == 8
    return not set(first) & set(second)


def saturates(add: Callable[[Any, Any, Fraction], Any]) -> bool:
    """Whether sums beyond 64 bits end at ±2^63 instead of wrapping."""
    top, bottom = 2**63 - 1, -(2**63)
    cases = [
        (2**62, 2**62, top),
        (top, 1, top),
        (bottom, -1, bottom),
        (bottom, 3, bottom + 3),
        (top, -3, top - 3),
        (2**62, 2**70, top),
        (-(2**62), -(2**62) - 1, bottom),
    ]
    return all(
        add(np.array(true), np.array([noise], dtype=object if abs(noise) >= 2**63 else np.int64), Fraction(1)) == result
        for true, noise, result in cases
    )


# --- the slow reference -----------------------------------------------------------------------------------------------


class Reference:
    """Canonne, Kamath and Steinke's samplers, word for word, in `Fraction`s, from an unrelated generator."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def bernoulli(self, p: Fraction) -> bool:
        return self._random.randrange(p.denominator) < p.numerator

    def bernoulli_exp(self, gamma: Fraction) -> bool:
        while gamma > 1:
            if not self.bernoulli_exp(Fraction(1)):
                return False
            gamma -= 1
        k = 1
        while self.bernoulli(gamma / k):
            k += 1
        return k % 2 == 1

    def laplace(self, scale: Fraction) -> int:
        t, s = scale.numerator, scale.denominator
        while True:
            u = self._random.randrange(t)
            if not self.bernoulli_exp(Fraction(u, t)):
                continue
            v = 0
            while self.bernoulli_exp(Fraction(1)):
                v += 1
            y = (u + t * v) // s
            negative = self.bernoulli(Fraction(1, 2))
            if not (negative and y == 0):
                return -y if negative else y

    def gaussian(self, variance: Fraction) -> int:
        t = math.isqrt(math.floor(variance)) + 1
        while True:
            y = self.laplace(Fraction(t))
            if self.bernoulli_exp((abs(y) - variance / t) ** 2 / (2 * variance)):
                return y


@pytest.fixture(scope="session")
def checks() -> SimpleNamespace:
    """The checks by name."""
    return SimpleNamespace(
        ALARM=ALARM,
        goodness=goodness,
        two_sample=two_sample,
        binomial=binomial,
        tail=tail,
        histogram=histogram,
        law_of=law_of,
        independence_of=independence_of,
        bit_events_hold=bit_events_hold,
        scripted=scripted,
        fork_shares_nothing=fork_shares_nothing,
        processes_differ=processes_differ,
        saturates=saturates,
        Reference=Reference,
    )
