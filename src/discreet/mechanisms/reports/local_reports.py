"""What all local reports share: their loss, the odds that satisfy a guarantee, their form, exact coins, intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact import samplers
from discreet.exact.randomness import random_words
from discreet.exact.rational import Number, exactly, exp_bounds, float_down, significant
from discreet.exact.search import bisect, bisect_each, bracket
from discreet.guarantees.guarantee import Approx, Guarantee
from discreet.guarantees.privacy_loss.compose import LossDistribution
from discreet.guarantees.privacy_loss.finite_pairs import FinitePair
from discreet.guarantees.unit import row
from discreet.mechanisms.protocol import tidy
from discreet.mechanisms.reports.local_records import Places as Places
from discreet.rows import whole_of
from discreet.rows.containers import Data

Reports = NDArray[Any]
LARGEST_ODDS = Fraction(10**18)


class ReportOdds(Protocol):
    """A report whose loss is ln odds, either way, with probability apart·odds and `apart`, and otherwise 0."""

    @property
    def apart(self) -> Fraction: ...


Report = TypeVar("Report", bound=ReportOdds)


def report_loss(*parts: tuple[Any, Fraction]) -> LossDistribution:
    """The loss of one report, for a replaced value: for each (odds, apart) it is ±ln odds with these probabilities."""
    above = tuple(exactly(odds) * apart for odds, apart in parts)
    below = tuple(apart for _, apart in parts)
    rest = Fraction(1) - sum(above) - sum(below)
    pair = FinitePair((*above, *below, rest), (*below, *above, rest))
    return LossDistribution(factors=((pair, 1),), protects=row(neighbors="replace"), trust="local")


def ratio_of(epsilon: Number) -> Fraction:
    """e^ε, rounded down to 15 digits of e^ε − 1, so that every draw with these odds satisfies ε. 1 for ε = 0."""
    exact = min(exactly(epsilon), Fraction(50))
    return min(LARGEST_ODDS, 1 + significant(exp_bounds(exact)[0] - 1, up=False, digits=15))


def check_promise(guarantee: Guarantee) -> Approx:
    """A guarantee that odds can satisfy. Raises for any other."""
    if not isinstance(guarantee, Approx):
        raise InvalidArgument(
            "Local reports are calibrated for Pure and Approx. Ask for one of them.", code="guarantee-not-supported"
        )
    return guarantee


def largest_odds(guarantee: Guarantee, make: Callable[[Number], Report]) -> Report:
    """The report with the largest odds that satisfies (ε,δ): e^ε if δ = 0, otherwise apart·(odds − e^ε) ≤ δ."""
    promise = check_promise(guarantee)
    low = ratio_of(promise.epsilon)
    delta = exactly(promise.delta) * (1 - Fraction(1, 2**50))
    if not delta:
        return make(tidy(low))
    bound = exp_bounds(exactly(float_down(min(exactly(promise.epsilon), Fraction(50)))))[0]

    def keeps(odds: Fraction) -> bool:
        return make(tidy(odds)).apart * (odds - bound) <= delta

    ends = bracket(keeps, low, least=low, most=LARGEST_ODDS, falling=True) or (low, low)

    def middle(low: Fraction, high: Fraction) -> Fraction:
        return 1 + exactly(float((low + high) / 2 - 1))  # on odds − 1, which may be small

    return make(tidy(bisect(keeps, *ends, middle=middle)))


def whole_numbers(reports: Data, columns: int | None = None, *, packed: bool = False) -> Reports:
    """Reports as an array of integers, one or `columns` of them per row. `packed` bits stay bytes.

    An array has a type and a shape of its own, which decide whether it is refused. In a list each report is read by
    itself: one of another form becomes −1, which is never a report.
    """
    wanted = () if columns is None else (columns,)
    if hasattr(reports, "to_pylist"):
        reports = reports.to_pylist()
    elif hasattr(reports, "to_numpy"):
        reports = reports.to_numpy()
    if isinstance(reports, np.ndarray) and reports.dtype.kind != "O":
        if reports.dtype.kind not in "iu" or reports.shape[1:] != wanted or not reports.ndim:
            raise InvalidArgument(
                "reports must come from this survey: an array of whole numbers, one row for each report.",
                code="foreign-reports",
            )
        return reports if packed and reports.dtype == np.uint8 else reports.astype(np.int64)
    if columns is None:
        return np.array([_whole(one) for one in reports], dtype=np.int64)
    return np.array([_row(one, columns) for one in reports], dtype=np.int64).reshape(-1, columns)


def _whole(cell: Any) -> int:
    if not issubclass(type(cell), int | np.integer) or issubclass(type(cell), bool | np.timedelta64):
        return -1
    whole = whole_of(cell)
    return -1 if whole is None or whole == 2**63 - 1 else max(whole, -1)


def _row(report: Any, columns: int) -> list[int]:
    try:
        if isinstance(report, list | tuple | np.ndarray) and len(report) == columns:
            return [_whole(cell) for cell in report]
    except Exception:
        pass
    return [-1] * columns


def within(numbers: Reports, below: int) -> NDArray[np.bool_]:
    """Where 0 ≤ number < below."""
    return np.asarray((numbers >= 0) & (numbers < below))


def mean_interval(observed: NDArray[Any], most: float) -> NDArray[np.float64]:
    """The means m with KL(observed‖m) ≤ most, as rows (low, high)."""
    seen = np.asarray(observed, dtype=np.float64)

    def excluded(mean: NDArray[np.float64]) -> NDArray[np.bool_]:
        return ~(_relative_entropy(seen, mean) <= most)

    ends = [bisect_each(excluded, far, seen, rounds=60) for far in (np.zeros_like(seen), np.ones_like(seen))]
    return np.stack(ends, axis=-1)


def _relative_entropy(p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.special import rel_entr

    return np.asarray(rel_entr(p, q) + rel_entr(1 - p, 1 - q))


def blocks(count: int, width: int, cells: int = 2**21) -> list[slice]:
    """`count` rows of `width` cells, in slices that fit the cache."""
    step = max(1, cells // max(width, 1))
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]


def coins(probability: Fraction, size: int) -> NDArray[np.bool_]:
    """`size` coins, each True with exactly this probability. A coin uses two random bytes, and more only on a tie."""
    if size < 4096 or probability in (0, 1):
        return samplers.bernoulli(probability, size)
    scaled = probability * 2**16
    prefix = math.floor(scaled)
    words = random_words(-(-size // 4)).view(np.uint16)[:size]
    heads: NDArray[np.bool_] = words < np.uint16(prefix)
    tied = np.flatnonzero(words == np.uint16(prefix))
    heads[tied] = samplers.bernoulli(scaled - prefix, len(tied))
    return heads
