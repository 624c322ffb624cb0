"""A small database that answers a whole class of counting queries, chosen by the exponential mechanism among all of
them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations_with_replacement, islice
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact import samplers
from discreet.exact.rational import Number, check_count, check_positive, exactly, significant
from discreet.exact.search import bisect
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Guarantee, Pure
from discreet.guarantees.unit import Unit, row
from discreet.mechanisms.counts.monotone_paths import Paths, blocks
from discreet.mechanisms.protocol import TAUGHT, TIGHT, check_calibration, plain_sensitivity, tidy
from discreet.mechanisms.selection.exponential import Exponential
from discreet.queries.sensitivity import Sensitivity, SensitivityLike
from discreet.queries.workload import Workload, check_size
from discreet.rows import none_of
from discreet.rows.containers import Data

MOST_LISTED = 10**7
"""The largest number of small databases that are scored one by one. Paths may be more."""
_MOST_PLACES, _MOST_BITS, _CHUNK = 2**22, 900, 2**15


@dataclass(frozen=True, kw_only=True)
class SmallDatabase:
    """Draws a database Y of `rows` rows with probability ∝ exp(−rate·E(Y)), where E is its largest error on the
    workload.

    E(Y) = max_c |c(X) − (size/rows)·c(Y)| in rows, as a whole multiple of 1/rows. `size` is a public number of rows:
    the true one if it is public, otherwise a guess or a noisy count. Privacy does not depend on it. The result is a
    table of counts over the domain. Up to 10^7 multisets of rows are scored one by one. The thresholds of one ordered
    column need no list: there the databases are monotone paths, which are counted exactly by their error, and one is
    drawn among those with the same error.

    Promise: each row changes every score by at most 1, so the choice is ε-DP with ε = 2·rate·Δ, and ε²/8-zCDP, where Δ
    is the number of rows of one unit, added, removed or replaced.
    Error: if `size` rows are in the domain, all answers are off by at most the error of the best database
    (size/(2·rows) for thresholds, size·√(ln(2|C|)/(2·rows)) for any class C) plus ln(databases/(1−confidence))/rate.
    Source: [L3.CQ], [L3.EM-U], [L3.CDF].
    """

    workload: Workload
    size: int
    rows: int
    rate: Number

    def __post_init__(self) -> None:
        if not isinstance(self.workload, Workload):
            raise InvalidArgument("workload must be a Workload of counting queries.", code="wrong-type")
        check_size(self.size)
        if check_count(self.rows, "rows") * self.size >= 2**61:
            raise InvalidArgument("size times rows must be below 2^61.", code="too-large")
        check_positive(self.rate, "rate")
        if not _possible(self.workload, self.rows):
            raise InvalidArgument(_refusal(self.workload, self.rows), code="too-large")

    @property
    def candidates(self) -> int:
        """The number of databases to choose from."""
        return _databases(self.workload, self.rows)

    def sensitivity(self, unit: Unit, rows_per_person: int = 1) -> Sensitivity:
        """How far one unit can move any score, in rows."""
        return self.workload.sensitivity(unit, rows_per_person, "Linf")

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        """For one added or removed row. For another unit, give `m.sensitivity(unit, rows_per_person)`."""
        bound = self.sensitivity(row()) if sensitivity is None else plain_sensitivity(sensitivity, "Linf")
        # a row moves some scores up and others down, so they are not monotone
        return Exponential(rate=self.rate).guarantee(replace(bound, norm="Linf", monotone=False))

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        workload: Workload,
        size: int,
        rows: int | None = None,
        unit: Unit | None = None,
        rows_per_person: int = 1,
        confidence: float = 0.95,
        calibration: str = TIGHT,
    ) -> Self:
        """The strongest preference that keeps `guarantee`. By default, `rows` is the number with the least error.

        Taught: m = ⌈2 ln(2|C|)/α²⌉ rows for the smallest α with size ≥ (4/(αε))·ln(|D|^m/(1−confidence)) [L3.CQ].
        """
        check_calibration(calibration)
        bound = replace(workload.sensitivity(unit or row(), rows_per_person, "Linf"), monotone=False)
        rate = Exponential.for_guarantee(guarantee, sensitivity=bound, calibration=calibration).rate
        if rows is None and calibration == TAUGHT:
            assert isinstance(guarantee, Pure)  # the taught calibration takes nothing else
            rows = taught_rows(workload, taught_accuracy(workload, size, guarantee.epsilon, confidence))
        if rows is None:
            rows = _best_rows(workload, check_count(size, "size"), float(rate), confidence)
        return cls(workload=workload, size=size, rows=rows, rate=rate)

    @classmethod
    def for_error(
        cls, amount: Number, *, workload: Workload, size: int, rows: int | None = None, confidence: float = 0.95
    ) -> Self:
        """The weakest preference for which all answers stay within `amount` rows with this confidence."""
        most, sure = check_positive(amount, "amount"), check_confidence(confidence)
        tried = range(1, _most_rows(workload, check_count(size, "size")) + 1) if rows is None else (rows,)
        rates = {
            m: _log_candidates(workload, m, sure) / left for m in tried if (left := most - _best(workload, size, m)) > 0
        }
        if not rates:
            raise InvalidArgument(
                "No small database is this accurate. Allow a larger error, or use more rows.", code="error-out-of-reach"
            )
        best = min(rates, key=rates.__getitem__)
        rate = significant(exactly(float(rates[best])) * Fraction(1 + 2**-40), up=True)
        return cls(workload=workload, size=size, rows=best, rate=tidy(rate))

    def error(self, confidence: float) -> Accuracy:
        """The error of all answers at once, in rows."""
        sure = check_confidence(confidence)
        chosen = _log_candidates(self.workload, self.rows, sure) / float(self.rate)
        amount = float(_best(self.workload, self.size, self.rows)) + chosen
        return Accuracy(amount=amount, confidence=sure, of="every value")

    def answers(self, drawn: Any) -> NDArray[np.float64]:
        """All answers of the workload from the drawn database, scaled to `size` rows."""
        return np.asarray(self.workload.answers(histogram=drawn) * (self.size / self.rows), dtype=np.float64)

    def check(self, value: Data) -> None:
        """Raise if the value cannot be read. Only its shape and type decide, never its content."""
        self.workload.domain.codes(none_of(value))

    def _draw(self, value: Any) -> NDArray[np.int64]:
        truth = self.workload.answers(value)
        rate = exactly(self.rate) / self.rows
        if _is_ordered(self.workload):
            return np.diff(_path(Paths(truth, self.rows, self.size), rate), prepend=0).astype(np.int64)
        errors = self._errors(truth)
        levels, counts = np.unique(errors, return_counts=True)
        level = int(samplers.exponential_choice(levels, rate, 1, counts)[0])
        index = int(samplers.uniform_below(int(counts[level]), 1)[0])
        cells = self._database(int(np.flatnonzero(errors == levels[level])[index]))
        return np.bincount(cells, minlength=self.workload.domain.size).reshape(self.workload.domain.shape)

    @cached_property
    def _holds(self) -> NDArray[np.int64]:
        """Whether each query counts each cell of the domain."""
        return np.stack([self.workload.indicator(i).reshape(-1) for i in range(len(self.workload))]).astype(np.int64)

    def _database(self, index: int) -> NDArray[np.int64]:
        listed = combinations_with_replacement(range(self.workload.domain.size), self.rows)
        return np.array(next(islice(listed, index, None)), dtype=np.int64)

    def _errors(self, truth: NDArray[np.int64]) -> NDArray[np.int64]:
        """rows·E(Y) of every database Y in order. The first rows are enumerated one by one, the last ones all
        at once.
        """
        cells, last = self.workload.domain.size, 1
        while last < self.rows and math.comb(cells + last, last + 1) <= _CHUNK:
            last += 1
        ends = np.array(list(combinations_with_replacement(range(cells), last)), dtype=np.int64)
        counted = self.size * np.add.reduce([self._holds[:, ends[:, i]] for i in range(last)])
        starts = np.searchsorted(ends[:, 0], np.arange(cells))  # rows are sorted: c is followed by c or a larger cell
        parts = []
        for first in combinations_with_replacement(range(cells), self.rows - last):
            left = truth * self.rows - self.size * self._holds[:, list(first)].sum(axis=1)
            parts.append(np.abs(left[:, None] - counted[:, starts[first[-1]] if first else 0 :]).max(axis=0))
        return np.concatenate(parts)


def _path(paths: Paths, rate: Fraction) -> list[int]:
    """A path with probability ∝ exp(−rate·error)."""
    parts = blocks(paths, float(rate))
    while (path := _try_path(paths, rate, parts)) is None:
        pass
    return path


def _try_path(paths: Paths, rate: Fraction, parts: list[tuple[int, int, int]]) -> list[int] | None:
    """Choose an interval of errors by the weight at its start, and a path in it. None if the path is rejected by its
    own weight.
    """
    starts = np.array([start for start, _, _ in parts])
    counts = np.array([count for *_, count in parts] + [None], dtype=object)[:-1]
    start, end, count = parts[int(samplers.exponential_choice(starts, rate, 1, counts)[0])]
    path = paths.nth(int(samplers.uniform_below(count, 1)[0]), start, end)
    lost = paths.error_of(path) - start
    return path if not lost or samplers.bernoulli_exp(rate * lost, 1)[0] else None


def _is_ordered(workload: Workload) -> bool:
    return workload.kind == "prefixes" and len(workload.domain.names) == len(workload.sets) == 1


def _databases(workload: Workload, rows: int) -> int:
    return math.comb(workload.domain.size + rows - 1, rows)


def _log_databases(workload: Workload, rows: int) -> float:
    cells = workload.domain.size
    return math.lgamma(cells + rows) - math.lgamma(rows + 1) - math.lgamma(cells)


def _possible(workload: Workload, rows: int) -> bool:
    """Whether databases with this many rows can be drawn exactly."""
    cells = workload.domain.size
    if _is_ordered(workload):
        return cells * rows <= _MOST_PLACES and _log_databases(workload, rows) < _MOST_BITS * math.log(2)
    return cells * len(workload) <= MOST_LISTED and _log_databases(workload, rows) <= math.log(MOST_LISTED)


def _refusal(workload: Workload, rows: int) -> str:
    many = f"about 10^{_log_databases(workload, rows) / math.log(10):.0f} databases of {rows} rows"
    if _is_ordered(workload):
        return f"{many} over {workload.domain.size} values are too many to draw from. Ask for fewer rows."
    return (
        f"There are {many} over {workload.domain.size} cells, and at most 10^7 can be listed. Ask for fewer rows, "
        "columns or values, for the thresholds of one ordered column, or use MultiplicativeWeights, which lists none."
    )


def _most_rows(workload: Workload, size: int) -> int:
    """The most rows that can be drawn, up to 4096 and the size itself."""
    if not _possible(workload, 1):
        raise InvalidArgument(_refusal(workload, 1), code="too-large")
    return bisect(lambda rows: _possible(workload, rows), 1, min(size, 4096) + 1)


def _best(workload: Workload, size: int, rows: int) -> Fraction:
    """An error that the best database with this many rows does not exceed, for any data, in rows and rounded up.

    Rounding the true prefix counts gives a path within half a step. For any class, rows sampled from the data miss one
    of the queries by more than t with probability at most 2|C|exp(−2·rows·t²) (Hoeffding).
    """
    if _is_ordered(workload):
        return Fraction(size, 2 * rows)
    chance = math.sqrt(math.log(2 * len(workload)) / (2 * rows))
    return size * min(Fraction(1), Fraction(chance * (1 + 1e-12)))


def _log_candidates(workload: Workload, rows: int, sure: float) -> float:
    """ln(databases/(1−confidence)), rounded up."""
    return (_log_databases(workload, rows) - math.log1p(-sure)) * (1 + 1e-12)


def _best_rows(workload: Workload, size: int, rate: float, confidence: Any) -> int:
    sure = check_confidence(confidence)
    tried = range(1, _most_rows(workload, size) + 1)
    return min(tried, key=lambda m: float(_best(workload, size, m)) + _log_candidates(workload, m, sure) / rate)


def taught_rows(workload: Workload, accuracy: Any) -> int:
    """m = ⌈2 ln(2|C|)/α²⌉ rows answer every query of C within α/2 (Hoeffding). α is a fraction of the rows [L3.CQ]."""
    alpha = float(check_positive(accuracy, "accuracy"))
    return math.ceil(2 * math.log(2 * len(workload)) / alpha**2)


def taught_accuracy(workload: Workload, size: int, epsilon: Number, confidence: float = 0.95) -> float:
    """The smallest α, a fraction of the rows, with size ≥ (4/(αε))·ln(|D|^m/(1−confidence)) and m from `taught_rows`
    [L3.CQ].
    """
    logs = math.log(workload.domain.size), math.log1p(-check_confidence(confidence))
    budget = check_count(size, "size") * float(check_positive(epsilon, "epsilon")) / 4

    def enough(alpha: float) -> bool:
        return alpha > 1e-6 and (taught_rows(workload, alpha) * logs[0] - logs[1]) / alpha <= budget

    if not enough(1.0):
        raise InvalidArgument(
            "The formula of the lecture gives no bound for so few rows. Use calibration='tight', or a larger ε.",
            code="formula-does-not-apply",
        )
    return bisect(enough, 1.0, 0.0, absolute=1e-9)
