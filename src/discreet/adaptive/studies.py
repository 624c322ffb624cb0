"""A study: a sequence of questions to one sample, with answers that hold on the population. [L6.T9]"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.adaptive.answers import Interval, StudyAnswer
from discreet.adaptive.methods import Compression, Splitting
from discreet.adaptive.opening import Source, candidate_methods, check_accuracy, source_of
from discreet.adaptive.sample import Question, exact_total, validate_range
from discreet.closing import Closed, closed
from discreet.door import Session, in_test_mode
from discreet.errors import BudgetExhausted, InvalidArgument
from discreet.exact.rational import Number, check_count, check_positive
from discreet.guarantees.accuracy import at_most, check_confidence
from discreet.guarantees.guarantee import Guarantee
from discreet.ledger import Ledger
from discreet.mechanisms.adaptive.means import QUANTUM, AdaptiveMeans
from discreet.rows.containers import Data

METHODS = {"gaussian": True, "laplace": True, "taught": True, "compression": False, "splitting": False}
"""Each method, and whether it is private. The first that is narrowest is taken."""
Method = AdaptiveMeans | Compression | Splitting


def method_for(
    name: str, *, size: int, queries: int, confidence: float, accuracy: float | None = None
) -> AdaptiveMeans | Compression | Splitting:
    """A method with its best settings, from public numbers only. With `accuracy`, the settings that cost least and
    reach it.
    """
    given: dict[str, Any] = {"size": size, "queries": queries, "confidence": confidence}
    if name == "compression":
        return Compression.narrowest(**given)
    if name == "splitting":
        return Splitting.narrowest(**given)
    if name == "taught":
        return AdaptiveMeans.taught(**given)
    best = AdaptiveMeans.narrowest(**given, noise=name)  # type: ignore[arg-type]
    if accuracy is None or best.width(confidence) > accuracy:
        return best
    return AdaptiveMeans.for_error(accuracy, **given, noise=name)  # type: ignore[arg-type]


class Study(Closed):
    """Up to `queries` questions to one sample. Each question may depend on earlier answers.

    All answers together are within their widths of the population's means, with the study's confidence, whoever asks.
    Created by `dp.adaptive.study`.
    """

    _session: Session | None

    def __init__(self, source: Source, mechanism: Method, method: str, confidence: float, lost: float) -> None:
        self.method, self.mechanism, self.confidence, self.asked = method, mechanism, confidence, 0
        self._lost, self._session = lost, None
        if isinstance(mechanism, AdaptiveMeans):
            asked = f"a study of {mechanism.queries} questions, each within {at_most(self.width)}"
            self._session = source.session(mechanism, asked)
        self._sample = source.opened(mechanism.size, mixed=isinstance(mechanism, Splitting))

    def __repr__(self) -> str:
        private = "private" if self._session is not None else "NOT PRIVATE"
        left = f"{self.remaining} questions left, ± {at_most(self.width)}"
        return f"<Study of {self.size} rows: {left}, {self.method}, {private}>"

    @property
    def size(self) -> int:
        """The public number of rows in the sample."""
        return self.mechanism.size

    @property
    def queries(self) -> int:
        """How many questions may be asked in all."""
        return self.mechanism.queries

    @property
    def remaining(self) -> int:
        """How many questions may still be asked."""
        return self.queries - self.asked

    @property
    def width(self) -> float:
        """How far every mean may be from the population's, for all of them together."""
        return self._width(self.confidence)

    def _width(self, confidence: float) -> float:
        """The width, after the noise of a count has used its part of the confidence."""
        return _width(self.mechanism, self._lost, confidence)

    @property
    def guarantee(self) -> Guarantee | None:
        """What the whole study promises to everyone in the sample. None if it is not private."""
        return None if self._session is None else self._session.guarantee

    @property
    def receipt(self) -> str | None:
        """The receipt of the ledger's entry for the whole study."""
        return None if self._session is None else self._session.receipt

    # --- questions ------------------------------------------------------------------------------------------

    def mean(self, question: Question, *, between: Sequence[Number] = (0, 1)) -> StudyAnswer:
        """The mean of `question` over the rows: true or false, or numbers clamped to two public bounds.

        `question` is a function of rows, such as `lambda rows: rows["age"] > 40`, that treats each row separately.
        """
        low, high = validate_range(between)
        value = self._asked(question, (low, high))
        return self._answer(low + value * (high - low), partial(_around, value, low=low, high=high), high - low)

    def covariance(
        self, x: Question, y: Question, *, x_between: Sequence[Number] = (0, 1), y_between: Sequence[Number] = (0, 1)
    ) -> StudyAnswer:
        """The covariance of two numbers of a row: three questions."""
        means, across = self._moments(x, y, x_between, y_between, 3)
        value = across * (means[2] - means[0] * means[1])
        return self._answer(value, partial(_scaled_covariance, means, across))

    def correlation(
        self, x: Question, y: Question, *, x_between: Sequence[Number] = (0, 1), y_between: Sequence[Number] = (0, 1)
    ) -> StudyAnswer:
        """Pearson's correlation of two numbers of a row: five questions."""
        means, _ = self._moments(x, y, x_between, y_between, 5)
        spread = math.sqrt(max(0.0, means[3] - means[0] ** 2) * max(0.0, means[4] - means[1] ** 2))
        value = 0.0 if spread == 0 else max(-1.0, min(1.0, (means[2] - means[0] * means[1]) / spread))
        return self._answer(value, partial(_correlation, means, value=value))

    def _moments(
        self, x: Question, y: Question, x_between: Any, y_between: Any, count: int
    ) -> tuple[list[float], float]:
        """The means of u, v, uv, u², v² for x and y brought to [0,1], and what one unit of uv is."""
        (a, b), (c, d) = validate_range(x_between), validate_range(y_between)
        if self.remaining < count:
            raise BudgetExhausted(
                f"This takes {count} questions, but only {self.remaining} are left. Start another study with new rows.",
                code="questions-used-up",
            )

        def u(rows: Any) -> Any:
            return _scale_to_unit(x(rows), a, b)

        def v(rows: Any) -> Any:
            return _scale_to_unit(y(rows), c, d)

        products: list[Question] = [
            lambda rows: u(rows) * v(rows),
            lambda rows: u(rows) ** 2,
            lambda rows: v(rows) ** 2,
        ]
        return [self._asked(question, (0.0, 1.0)) for question in [u, v, *products][:count]], (b - a) * (d - c)

    def _asked(self, question: Question, between: tuple[float, float]) -> float:
        """One question, counted after checking that it can be computed."""
        self._check_left()
        where = slice(None) if isinstance(self.mechanism, AdaptiveMeans) else self.mechanism.rows(self.asked)
        return self._answer_for(self._sample.total(question, between, where), where)

    def _answer_for(self, total: int, where: slice = slice(None)) -> float:
        """The answer if the sum over these rows is `total`."""
        self.asked += 1
        if self._session is not None:
            return float(self._session.add(total))
        assert not isinstance(self.mechanism, AdaptiveMeans)
        return self.mechanism.answered(total * float(QUANTUM) / len(range(*where.indices(self.size))))

    def _check_left(self) -> None:
        if self.remaining < 1:
            raise BudgetExhausted(
                f"All {self.queries} questions are used up. Start another study with new rows.",
                code="questions-used-up",
            )

    def _of_values(self, values: NDArray[np.float64]) -> StudyAnswer:
        """The mean of one number in [0,1] per row, for a leaderboard."""
        self._check_left()
        value = self._answer_for(exact_total(values))
        return self._answer(value, partial(_around, value, low=0.0, high=1.0), 1.0)

    def _answer(self, value: float, interval: Callable[[float], Interval], scale: float | None = None) -> StudyAnswer:
        on_sample = None
        if isinstance(self.mechanism, AdaptiveMeans) and scale is not None:
            on_sample = partial(_error_on_sample, self.mechanism, scale)
        return StudyAnswer(
            value=value,
            confidence=self.confidence,
            remaining=self.remaining,
            guarantee=self.guarantee,
            receipt=self.receipt,
            not_private=self._session is None or self._session.not_private or in_test_mode(),
            _interval=partial(_interval, interval, self.mechanism, self._lost),  # it keeps nothing of the rows
            _on_sample=on_sample,
        )


def _width(mechanism: Method, lost: float, confidence: float) -> float:
    return mechanism.width(confidence + lost) if confidence + lost < 1 else 1.0


def _interval(interval: Callable[[float], Interval], mechanism: Method, lost: float, confidence: float) -> Interval:
    """An answer's interval for a confidence, from public numbers."""
    return interval(_width(mechanism, lost, confidence))


def _error_on_sample(mechanism: AdaptiveMeans, scale: float, confidence: float) -> float:
    return float(mechanism.error(confidence, of="sample")) * scale


def _scale_to_unit(values: Any, low: float, high: float) -> Any:
    """Values scaled from [low, high] to [0,1]. A value that is not a number becomes 0."""
    return np.fmin(np.fmax((values - low) / (high - low), 0.0), 1.0)


def _around(value: float, width: float, low: float, high: float) -> Interval:
    """The interval of a mean in [0,1], scaled back to [low, high]."""
    return low + max(0.0, value - width) * (high - low), low + min(1.0, value + width) * (high - low)


def _scaled_covariance(means: list[float], factor: float, width: float) -> Interval:
    low, high = _covariance(means, width)
    return low * factor, high * factor


def _covariance(means: list[float], width: float) -> Interval:
    """E[uv] − E[u]E[v], where each mean is within `width` of its answer. Its absolute value is at most a quarter."""
    (u0, u1), (v0, v1), (w0, w1) = (_around(mean, width, 0.0, 1.0) for mean in means[:3])
    return max(-0.25, w0 - u1 * v1), min(0.25, w1 - u0 * v0)


def _correlation(means: list[float], width: float, value: float) -> Interval:
    """The covariance over the deviations, each of them anywhere in its interval."""
    (c0, c1), variances = _covariance(means, width), []
    for first, second in ((0, 3), (1, 4)):
        (m0, m1), (s0, s1) = (_around(means[place], width, 0.0, 1.0) for place in (first, second))
        variances.append((max(0.0, s0 - m1**2), min(0.25, max(0.0, s1 - m0**2))))
    least, most = (math.sqrt(variances[0][end] * variances[1][end]) for end in (0, 1))
    if least <= 0:
        low = -1.0 if c0 < 0 or most <= 0 else c0 / most
        high = 1.0 if c1 > 0 or most <= 0 else c1 / most
    else:
        low, high = c0 / (most if c0 > 0 else least), c1 / (least if c1 > 0 else most)
    return max(-1.0, min(low, value)), min(1.0, max(high, value))


@closed
def study(
    sample: Data,
    *,
    queries: int,
    accuracy: Number | None = None,
    confidence: float = 0.95,
    method: str = "auto",
    ledger: Ledger | None = None,
    size: int | None = None,
    unprotected: bool = False,
) -> Study:
    """Start a study of a sample: a table, a data frame, or a dict of arrays whose first axis is the rows.

    `queries` is the maximum number of questions. Before any row is read, the width of every method is computed, and the
    narrowest is chosen. With `accuracy`, the cheapest method with at most this width is chosen. Rows must be
    independent draws from the population, one for each person.

    A table under a ledger, or arrays with `ledger=`, use only private methods, and the whole study is charged once,
    before the first row is read. Widths hold for rows of which nothing else was learned: ask all questions in one
    study, and begin the next on new rows. `size` is the public number of rows. Without it, if rows may be added or
    removed, they are counted with noise (ε = 0.05). Without a ledger the guarantee is then for a replaced row.
    `unprotected=True` says that the rows belong to nobody. Methods that publish functions of the sample are then also
    considered, and their answers are marked `not_private`.
    """
    source = source_of(sample, ledger, unprotected, size)
    check_count(queries, "queries")
    sure, wished = check_confidence(confidence), None if accuracy is None else check_positive(accuracy, "accuracy")
    names = _methods_to_compare(source, method)
    rows, lost = source.size((1 - sure) / 100)
    cheap = float(wished) if wished is not None and source.protected else None
    if queries > rows and "splitting" in names:
        names = [name for name in names if name != "splitting"]
        if not names:
            raise InvalidArgument(
                "Splitting needs at least one row for every question. Ask fewer questions, or use more rows.",
                code="study-too-few-rows",
            )
    made = {
        name: method_for(name, size=rows, queries=queries, confidence=sure + lost, accuracy=cheap) for name in names
    }
    best = min(names, key=lambda name: made[name].width(sure + lost))
    check_accuracy(wished, made[best].width(sure + lost), rows, queries)
    return Study(source, made[best], best, sure, lost)


def _methods_to_compare(source: Source, method: str) -> list[str]:
    """The methods that are compared: only private ones unless the rows belong to nobody, and only what the ledger can
    add.
    """
    names = candidate_methods(method, METHODS, source.protected)
    if source.pure():
        names = [name for name in names if name in ("laplace", "taught")]
        if not names:
            raise InvalidArgument(
                'The ledger guarantees a pure ε. Only method="laplace" and "taught" fit it.', code="study-ledger"
            )
        return names[:1]
    return [name for name in names if name not in ("laplace", "taught")] if method == "auto" else names
