"""The reusable holdout: results of a training set are checked on rows that stay fresh, with a few corrections
allowed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, ClassVar, Self

from scipy.special import ndtri

from discreet.adaptive.answers import Interval, StudyAnswer
from discreet.adaptive.methods import FewRevealed, nearest_cell
from discreet.adaptive.opening import Source, candidate_methods, check_accuracy, source_of
from discreet.adaptive.reading import columns_of
from discreet.adaptive.sample import Question, Sample, validate_range
from discreet.closing import Closed, closed
from discreet.door import Session, in_test_mode
from discreet.errors import BudgetExhausted, InvalidArgument
from discreet.exact.rational import Number, check_count, check_positive, exactly
from discreet.guarantees.accuracy import at_most, check_confidence
from discreet.guarantees.guarantee import Guarantee
from discreet.ledger import Ledger
from discreet.mechanisms.adaptive.means import QUANTUM, AdaptiveMeans, Kind
from discreet.mechanisms.adaptive.thresholdout import Thresholdout
from discreet.rows.containers import Data

METHODS = {"thresholdout": True, "gaussian": True, "guess and check": False}
"""Each method, and whether it is private."""


@dataclass(frozen=True)
class GuessAndCheck:
    """A guess within `tolerance` of the holdout's mean is confirmed. Otherwise it is corrected, roughly.

    Width: that of `FewRevealed`, because only `overfits` corrections, each one of `cells` values, are ever revealed,
    plus the tolerance for a confirmation, or half a cell for a correction. Source: Rogers et al. 2020, with a sharper
    count.
    """

    size: int
    queries: int
    overfits: int
    tolerance: float
    cells: int
    private: ClassVar[bool] = False

    @classmethod
    def narrowest(cls, *, size: int, queries: int, overfits: int, tolerance: float, confidence: float) -> Self:
        """With the best number of cells: corrections are about as accurate as confirmations."""
        few = {math.ceil(0.5 / tolerance * 1.1**power) for power in range(-12, 5)}
        made = [cls(size, queries, overfits, tolerance, max(2, cells)) for cells in few]
        return min(made, key=lambda one: one.width(confidence))

    def width(self, confidence: float, revealed: int | None = None) -> float:
        """The width of all answers after this many corrections, and of the next one. None for the width of
        everything.
        """
        union = FewRevealed(self.size, self.queries, self.cells, self.overfits)
        last = min(self.overfits, self.queries - 1)
        off = union.widest(confidence, last) if revealed is None else union.deviation(confidence, revealed)
        return min(1.0, off + max(self.tolerance, 0.5 / self.cells) + float(QUANTUM))


Checking = Thresholdout | AdaptiveMeans | GuessAndCheck


def honest_tolerance(train: int, test: int, queries: int, failures: float) -> float:
    """How far means over two samples may be apart so that about this many of `queries` honest guesses fail."""
    spread = math.sqrt((1 / train + 1 / test) / 4)
    return float(-ndtri(min(0.5, failures / queries) / 2)) * spread


class Holdout(Closed):
    """Rows that only check whether a training set is right about the population. Created by `dp.adaptive.holdout`."""

    _session: Session | None

    def __init__(
        self,
        train: Sample,
        source: Source,
        mechanism: Checking,
        method: str,
        tolerance: float,
        overfits: int,
        confidence: float,
        lost: float,
    ) -> None:
        self.method, self.mechanism, self.confidence, self.tolerance = method, mechanism, confidence, tolerance
        self.overfits, self.asked, self.corrected, self._lost = overfits, 0, 0, lost
        self._train, self._session, self._ended = train, None, False
        if not isinstance(mechanism, GuessAndCheck):
            asked = f"a holdout for {mechanism.queries} questions, each within {at_most(self.width)}"
            self._session = source.session(mechanism, asked)
        self._test = source.opened(mechanism.size)

    def __repr__(self) -> str:
        left = f"{self.remaining} questions and {self.overfits - self.corrected} overfits left, ± {at_most(self.width)}"
        private = "NOT PRIVATE" if self._session is None else "private"
        return f"<Holdout of {self.mechanism.size} rows: {left}, {self.method}, {private}>"

    @property
    def remaining(self) -> int:
        """How many questions may still be asked."""
        return 0 if self._ended else self.mechanism.queries - self.asked

    @property
    def width(self) -> float:
        """How far any answer may be from the population's mean, for all of them together."""
        return self._width(self.confidence, None)

    @property
    def guarantee(self) -> Guarantee | None:
        """What is promised to everyone in the holdout. None if it is not private."""
        return None if self._session is None else self._session.guarantee

    def _width(self, confidence: float, revealed: int | None) -> float:
        return _width(self.mechanism, self._lost, revealed, confidence)

    def check(self, statistic: Question, *, between: Sequence[Number] = (0, 1)) -> StudyAnswer:
        """Compare the mean of `statistic` over the training set with the holdout's.

        If they agree, the answer is the training set's value, and costs none of the allowed overfits. Otherwise
        `agrees` is False and the value is the holdout's.
        """
        low, high = validate_range(between)
        if self.remaining < 1:
            raise BudgetExhausted(
                "All questions, or all allowed overfits, are used up. Start again with new rows.",
                code="questions-used-up",
            )
        guess = self._train.total(statistic, (low, high)) * float(QUANTUM) / self._train.size
        total, revealed = self._test.total(statistic, (low, high)), self.corrected
        self.asked += 1
        agrees, value = self._checked(guess, total)
        self.corrected += not agrees
        width = partial(_width, self.mechanism, self._lost, revealed)  # an answer keeps nothing of the rows
        return StudyAnswer(
            value=low + value * (high - low),
            confidence=self.confidence,
            remaining=self.remaining,
            agrees=agrees,
            note="" if agrees else "the training set was off",
            guarantee=self.guarantee,
            receipt=None if self._session is None else self._session.receipt,
            not_private=self._session is None or self._session.not_private or in_test_mode(),
            _interval=partial(_interval, value, low, high, width),
        )

    def _checked(self, guess: float, total: int) -> tuple[bool, float]:
        if isinstance(self.mechanism, GuessAndCheck):
            mean = total * float(QUANTUM) / self.mechanism.size
            if abs(guess - mean) <= self.tolerance:
                return True, guess
            if self.corrected >= self.overfits:
                self._ended = True
                raise BudgetExhausted(
                    "This is one overfit more than allowed, so nothing more can be checked. Start again with new rows.",
                    code="overfits-used-up",
                )
            return False, nearest_cell(mean, self.mechanism.cells)
        assert self._session is not None
        if isinstance(self.mechanism, AdaptiveMeans):  # every answer is revealed, and shows whether it agrees
            value = float(self._session.add(total))
            off = self.tolerance + float(self.mechanism.error(self.confidence, of="sample"))
            return abs(guess - value) <= off, value
        try:
            said = self._session.add((guess, total))
        except BudgetExhausted:
            self._ended = True
            raise
        return bool(said["confirmed"]), float(said["value"])


def _width(mechanism: Checking, lost: float, revealed: int | None, confidence: float) -> float:
    if confidence + lost >= 1:
        return 1.0
    if isinstance(mechanism, GuessAndCheck):
        return mechanism.width(confidence + lost, revealed)
    return mechanism.width(confidence + lost)


def _interval(value: float, low: float, high: float, width: Callable[[float], float], confidence: float) -> Interval:
    off = width(confidence)
    return low + max(0.0, value - off) * (high - low), low + min(1.0, value + off) * (high - low)


@lru_cache(maxsize=64)
def _narrowest(
    method: str, size: int, queries: int, overfits: int, tolerance: float, confidence: float, kind: Kind
) -> Checking:
    """The mechanism of a method with the least width; for the same public numbers it is found once."""
    given: dict[str, Any] = {"size": size, "queries": queries, "confidence": confidence}
    if method == "gaussian":
        return AdaptiveMeans.narrowest(**given, noise=kind)
    given |= {"overfits": overfits, "tolerance": tolerance}
    if method == "thresholdout":
        return Thresholdout.narrowest(**given, kind=kind)
    return GuessAndCheck.narrowest(**given)


@closed
def holdout(
    train: Data,
    test: Data,
    *,
    queries: int,
    overfits: int = 10,
    accuracy: Number | None = None,
    confidence: float = 0.95,
    tolerance: Number | None = None,
    method: str = "auto",
    ledger: Ledger | None = None,
    size: int | None = None,
    unprotected: bool = False,
) -> Holdout:
    """Keep `test` fresh: up to `queries` statistics of `train` are checked on it, and up to `overfits` are corrected.

    The training set belongs to the analyst: results about it are not hidden. `tolerance` is how far the two means may
    be apart while they agree. By default, honest guesses use up about three tenths of the overfits. The holdout is
    protected, and answers have noise, unless `unprotected=True` says that its rows belong to nobody: then guess and
    check is used, which is not private. `ledger`, `size`, `accuracy` and `confidence` are as in `dp.adaptive.study`.
    """
    source = source_of(test, ledger, unprotected, size)
    if hasattr(train, "_ledger_of_study"):
        raise InvalidArgument(
            "The training set is shown to the analyst, so it cannot be a table under a ledger. "
            "Pass rows that are not protected.",
            code="study-protected",
        )
    known = Sample(columns_of(train))
    k, f, sure = check_count(queries, "queries"), check_count(overfits, "overfits"), check_confidence(confidence)
    names = candidate_methods(method, METHODS, source.protected)
    kind: Kind = "laplace" if source.pure() else "gaussian"
    wished = None if accuracy is None else check_positive(accuracy, "accuracy")
    given_tolerance = None if tolerance is None else float(check_positive(tolerance, "tolerance"))
    rows, lost = source.size((1 - sure) / 100)
    within = honest_tolerance(known.size, rows, k, 0.3 * f) if given_tolerance is None else given_tolerance
    made = {name: _narrowest(name, rows, k, f, within, float(sure + lost), kind) for name in names}
    best = min(names, key=lambda name: made[name].width(sure + lost))
    check_accuracy(wished, made[best].width(sure + lost), rows, k)
    if best == "gaussian":
        f = k  # every answer is revealed anyway
    return Holdout(known, source, made[best], best, float(exactly(within)), f, sure, lost)
