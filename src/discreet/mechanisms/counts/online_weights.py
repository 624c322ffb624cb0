"""Private multiplicative weights, online: a stream of counting queries, most of which are answered at no cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sized
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count, exactly, significant
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Guarantee, Pure
from discreet.guarantees.privacy_loss.compose import LossDistribution, compose
from discreet.guarantees.unit import Unit, row
from discreet.mechanisms.counts.multiplicative_weights import (
    FINE,
    Weights,
    check_workload,
    one_count,
    row_error,
    two_sided,
)
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.protocol import plain_sensitivity, tidy
from discreet.mechanisms.selection.threshold import AboveThreshold
from discreet.queries.sensitivity import Sensitivity, SensitivityLike
from discreet.queries.workload import Workload, check_size
from discreet.rows.containers import Data


@dataclass(frozen=True, kw_only=True)
class OnlineMultiplicativeWeights:
    """Answers counting queries as they arrive. A synthetic histogram answers most of them at no cost.

    Each question is tested. If the answer of the histogram is off by less than about `test.threshold` rows, it is the
    answer. Otherwise the count is measured and is the answer, and the histogram learns the part of the difference that
    noise cannot explain (with `confidence`). After `updates` measurements it stops. The value to release is a pair: the
    data and the questions. The questions are an iterable of indices of queries of the workload, or of tables of truth
    values over the domain. A generator is sent each answer, and may choose the next question by it. The result is a
    dict: the `answers` in order, the indices of the `measured` ones, the `histogram`, and whether it `stopped` before
    the last question.

    Promise: the composition of `updates` sparse-vector tests, each of any number of questions, and of as many noisy
    counts. It is charged once, before the first question. Questions may depend on earlier answers.
    Error: an answer that was not measured is off by at most the threshold plus the error of the test, and a measured
    one by the error of the noise. With `size` rows in the domain, it does not stop before the last question if updates
    ≥ size²·ln|D|/(2·(threshold − test's error − 2·noise's error − ½)²).
    Source: Hardt-Rothblum 2010, with the sparse vector of `AboveThreshold`; [L3.CQ].
    """

    workload: Workload
    size: int
    updates: int
    test: AboveThreshold
    noise: Laplace
    confidence: Number = 0.95

    def __post_init__(self) -> None:
        check_workload(self.workload)
        check_size(self.size)
        check_count(self.updates, "updates")
        check_confidence(self.confidence)
        if not isinstance(self.test, AboveThreshold) or not isinstance(self.noise, Laplace):
            raise InvalidArgument("test must be an AboveThreshold, and noise Laplace.", code="part-does-not-fit")

    def sensitivity(self, unit: Unit, rows_per_person: int = 1) -> Sensitivity:
        """How far one unit can move any one answer, in rows."""
        return self.workload.sensitivity(unit, rows_per_person, "Linf")

    def guarantee(self, sensitivity: SensitivityLike = None) -> LossDistribution:
        """For one added or removed row. For another unit, give `m.sensitivity(unit, rows_per_person)`."""
        bound = self.sensitivity(row()) if sensitivity is None else plain_sensitivity(sensitivity, "Linf")
        tested = self.test.guarantee(two_sided(bound))
        return compose([tested, self.noise.guarantee(one_count(bound))] * self.updates)

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        workload: Workload,
        size: int,
        questions: int,
        updates: int | None = None,
        threshold: Number | None = None,
        unit: Unit | None = None,
        rows_per_person: int = 1,
        confidence: float = 0.95,
    ) -> Self:
        """Half of ε is for the tests and half for the counts. By default, `updates` is the number with the least error,
        and the threshold is the lowest at which these updates suffice for all questions. A lower threshold is more
        accurate, but may stop early.
        """
        check_workload(workload)
        check_count(size, "size")
        if type(guarantee) is not Pure:
            raise InvalidArgument(
                "OnlineMultiplicativeWeights is calibrated for Pure. Use Pure(epsilon=…).",
                code="guarantee-not-supported",
            )
        bound = workload.sensitivity(unit or row(), rows_per_person, "Linf")

        def make(count: int) -> Any:
            share = exactly(guarantee.epsilon) / (2 * count)
            test = AboveThreshold.for_guarantee(Pure(epsilon=share), threshold=0, sensitivity=two_sided(bound))
            noise = Laplace(scale=tidy(significant(bound.exact / share, up=True)), step=1)
            started = cls(
                workload=workload,
                size=size,
                updates=count,
                test=test,
                noise=noise,
                confidence=tidy(exactly(confidence)),
            )
            lost, off = started._errors(confidence, questions)
            bar = lost + 2 * off + 0.5 + size * math.sqrt(math.log(workload.domain.size) / (2 * count))
            proved = tidy(significant(Fraction(bar), up=True, digits=6))
            return replace(started, test=replace(test, threshold=proved if threshold is None else threshold))

        counts = (
            [round(2 ** (step / 2)) for step in range(21)] if updates is None else [check_count(updates, "updates")]
        )
        best: Self = min(map(make, counts), key=lambda m: float(m.error(confidence, questions=questions)))
        return best

    def _errors(self, confidence: Any, questions: int) -> tuple[float, float]:
        """The errors of the tests, over all questions and updates, and of the counts, all at once with
        this confidence.
        """
        each = 1 - (1 - check_confidence(confidence)) / 2
        first, second = (
            Laplace(scale=scale, step=self.test.step).error(1 - (1 - each) / 2, values=count)
            for scale, count in ((self.test.threshold_scale, self.updates), (self.test.answer_scale, questions))
        )
        return float(first) + float(second) + 1 / FINE, float(self.noise.error(each, values=self.updates))

    def error(self, confidence: float, *, questions: int | None = None) -> Accuracy:
        """The error of all answers to this many questions, in rows."""
        sure = check_confidence(confidence)
        if questions is None:
            return Accuracy(
                amount=None, confidence=sure, of="every value", reason="the number of questions is not given"
            )
        lost, off = self._errors(sure, check_count(questions, "questions"))
        amount = min(float(self.test.threshold) + lost, float(self.size))
        return Accuracy(amount=max(amount, off), confidence=sure, of="every value")

    def sizes(self, value: Data) -> dict[str, int]:
        """The number of questions, for `error`, if they are in a list."""
        if not isinstance(value, tuple) or len(value) != 2:
            raise InvalidArgument("Release a pair: the data, and the questions.", code="wrong-type")
        return {"questions": max(len(value[1]), 1)} if isinstance(value[1], Sized) else {}

    def _draw(self, value: Any) -> dict[str, Any]:
        data, questions = value
        session, margin = _Session(self, data, questions), self._errors(self.confidence, 1)[1]
        for _ in range(self.updates):
            if self.test._draw(session.errors()) is None:
                break
            session.learn(self.noise._draw(session.true), margin)
        stopped = len(session.measured) == self.updates and session.ask()
        return {
            "answers": session.answers,
            "measured": session.measured,
            "histogram": session.weights.histogram,
            "stopped": stopped,
        }


class _Session:
    """One run of questions: the answers so far, and the question that is being tested."""

    def __init__(self, mechanism: OnlineMultiplicativeWeights, data: Data, questions: Iterable[Any]) -> None:
        self.workload, self.weights = mechanism.workload, Weights(mechanism.workload, mechanism.size)
        self._truth = self.workload.domain.histogram(data)
        self._questions, self._started = iter(questions), False
        self.answers: list[float] = []
        self.measured: list[int] = []
        self.inside, self.true = np.zeros(self._truth.shape, np.bool_), 0

    def ask(self) -> bool:
        """Read the next question. A generator first gets the last answer. False if there is no question left."""
        try:
            if self._started and hasattr(self._questions, "send"):
                asked = self._questions.send(self.answers[-1])
            else:
                asked = next(self._questions)
        except StopIteration:
            return False
        self._started = True
        self.inside = self._cells(asked)
        self.true = int(self._truth[self.inside].sum())
        return True

    def _cells(self, asked: Any) -> NDArray[np.bool_]:
        if isinstance(asked, int | np.integer):
            return self.workload.indicator(int(asked))
        inside = np.asarray(asked)
        if inside.dtype != np.bool_ or inside.shape != self._truth.shape:
            raise InvalidArgument(
                "A question is the number of a query, or a table of truth values over the domain.", code="wrong-type"
            )
        return inside

    def errors(self) -> Iterator[Fraction]:
        """The error of the histogram on each question in turn. If it is asked for the next one, the error was small
        enough.
        """
        while self.ask():
            own = self.weights.answer(self.inside)
            yield Fraction(int(row_error(self.true, own)), FINE)
            self.answers.append(own)

    def learn(self, count: int, margin: float) -> None:
        """Answer the tested question with its noisy count, and learn from it."""
        self.measured.append(len(self.answers))
        self.answers.append(count)
        self.weights.update(self.inside, count, margin)
