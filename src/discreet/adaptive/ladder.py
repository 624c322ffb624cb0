"""A leaderboard that cannot be climbed by chance: the Ladder, without a parameter (Blum-Hardt 2015)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.adaptive.answers import Interval, StudyAnswer
from discreet.adaptive.guarded import each_row, try_call
from discreet.adaptive.methods import FewRevealed, nearest_cell
from discreet.adaptive.reading import typed_array
from discreet.adaptive.sample import exact_total
from discreet.adaptive.studies import Study, study
from discreet.closing import Closed, closed
from discreet.errors import BudgetExhausted, InvalidArgument
from discreet.exact.rational import check_count
from discreet.guarantees.accuracy import check_confidence
from discreet.guarantees.unit import row
from discreet.ledger import Ledger
from discreet.mechanisms.adaptive.means import QUANTUM
from discreet.rows import column
from discreet.rows.containers import Data

Loss = Callable[[Any, Any], Any]


def zero_one(labels: Data, predictions: Data) -> Any:
    """1 where a prediction is wrong."""
    return labels != predictions


LOSSES: dict[str, Loss] = {
    "zero_one": zero_one,
    "absolute": lambda labels, predictions: np.abs(labels - predictions),
    "squared": lambda labels, predictions: (labels - predictions) ** 2,
}


class Ladder:
    """The score of a submission: its loss if it is clearly the best so far, otherwise the best so far.

    A submission is better if its mean loss is below the best one's by more than the standard error of their difference.
    Losses are rounded to one of about √n values. Because so little is revealed, a score holds on the population: after
    j new bests the width is that of `FewRevealed`, which grows with j.
    """

    def __init__(self, labels: NDArray[Any], loss: Loss, submissions: int, confidence: float) -> None:
        self._labels, self._loss, self._best, self._mean = labels, loss, 1.0, 1.0
        self._losses: NDArray[np.float64] | None = None
        cells = max(2, math.isqrt(len(labels)))
        self._revealed, self._asked = 0, 0
        self._union = FewRevealed(len(labels), submissions, cells, submissions)
        self.submissions, self.confidence = submissions, confidence

    def submitted(self, predictions: Data) -> StudyAnswer:
        """Compare a submission with the best so far."""
        losses = _losses(self._labels, predictions, self._loss)
        if self._asked >= self.submissions:
            raise BudgetExhausted(
                f"All {self.submissions} submissions are used up. Open another leaderboard with new labels.",
                code="questions-used-up",
            )
        self._asked += 1
        mean = exact_total(losses) * float(QUANTUM) / len(losses)
        better = self._losses is None
        if self._losses is not None:
            spread = float((losses - self._losses).std(ddof=1)) if len(losses) > 1 else 0.0
            better = mean < self._mean - spread / math.sqrt(len(losses))
        if better:
            self._best, self._mean, self._losses = nearest_cell(mean, self._union.cells), mean, losses
            self._revealed += 1
        revealed, best = self._revealed - 1, self._best  # the best was computed when one answer less was revealed
        return StudyAnswer(
            value=best,
            confidence=self.confidence,
            remaining=self.submissions - self._asked,
            agrees=better,
            note="" if better else "no new best: this is the best so far",
            not_private=True,
            _interval=partial(_interval, best, self._union, revealed),  # it keeps nothing of the labels
        )


def _interval(best: float, union: FewRevealed, revealed: int, confidence: float) -> Interval:
    width = 0.5 / union.cells + float(QUANTUM) + union.deviation(confidence, revealed)
    return max(0.0, best - width), min(1.0, best + width)


class Leaderboard(Closed):
    """Submissions against hidden labels, each score within its width of the population's. `dp.adaptive.leaderboard`."""

    def __init__(self, answer: Callable[[Any], StudyAnswer], private: Study | None) -> None:
        self._submitted, self._study = answer, private
        self.scores: list[StudyAnswer] = []

    def __repr__(self) -> str:
        last = "none yet" if not self.scores else f"the last score is {self.scores[-1]}"
        return f"<Leaderboard of {len(self.scores)} submissions: {last}>"

    @property
    def guarantee(self) -> Any:
        """What is promised to everyone with a label. None if scores are not private."""
        return None if self._study is None else self._study.guarantee

    def submit(self, predictions: Data) -> StudyAnswer:
        """The score of one submission: one prediction for each label, in their order.

        Without privacy the score is the best one so far. `agrees` says whether it belongs to this submission.
        """
        self.scores.append(self._submitted(predictions))
        return self.scores[-1]


@closed
def leaderboard(
    labels: Data,
    loss: str | Loss = "zero_one",
    *,
    submissions: int,
    confidence: float = 0.95,
    ledger: Ledger | None = None,
    unprotected: bool = False,
) -> Leaderboard:
    """A leaderboard for hidden labels, with a loss in [0,1] for each row: "zero_one", "absolute", "squared", or a
    function of labels and predictions that treats each row alone.

    `unprotected=True` says that the labels belong to nobody. Scores are then those of the Ladder, which are not
    private. Otherwise every score has noise, is charged to `ledger` once for all submissions, and belongs to the
    submission itself. The ledger protects single rows that are replaced, because the positions of the labels are
    public.
    """
    count, sure = check_count(submissions, "submissions"), check_confidence(confidence)
    measured = LOSSES.get(loss) if isinstance(loss, str) else loss
    if not callable(measured):
        raise InvalidArgument(
            f"loss must be one of {', '.join(LOSSES)}, or a function of labels and predictions.", code="not-an-option"
        )
    held = typed_array(labels)
    if held.ndim != 1 or len(held) < 1:
        raise InvalidArgument("labels must have one dimension, with at least one label.", code="wrong-shape")
    if unprotected and ledger is None:
        return Leaderboard(Ladder(held, measured, count, sure).submitted, None)
    if ledger is not None and (not isinstance(ledger, Ledger) or ledger.protects != row(neighbors="replace")):
        raise InvalidArgument(
            'A leaderboard needs a ledger with protects=dp.row(neighbors="replace").', code="study-ledger"
        )
    asked = study(
        {"place": np.arange(len(held))},
        queries=count,
        confidence=sure,
        ledger=ledger,
        unprotected=unprotected,
    )
    return Leaderboard(lambda predictions: asked._of_values(_losses(held, predictions, measured)), asked)


def _losses(labels: NDArray[Any], predictions: Any, loss: Loss) -> NDArray[np.float64]:
    """One loss in [0,1] per row. A value that is not a number counts as 1."""
    # a list with one text would become text as a whole; predictions for a user-defined loss may be rows
    listed = isinstance(predictions, list | tuple) and labels.dtype.kind == "O" and loss in LOSSES.values()
    given = column(predictions) if listed else np.asarray(predictions)
    if given.shape[:1] != labels.shape:
        raise InvalidArgument(
            f"A submission must have one prediction for each of the {len(labels)} labels.", code="wrong-shape"
        )
    # types decide what is refused, not a label: other values stand in for the labels
    placed = given.astype(object) if labels.dtype.kind == "O" else np.zeros(len(labels), labels.dtype)
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        said = try_call(loss, placed, given)
        if said is None:
            raise InvalidArgument(
                "The loss cannot be computed from labels and predictions of these types. "
                "Predict in the type of the labels.",
                code="study-types",
            )
        if said.shape != labels.shape or said.dtype.kind not in "biuf":
            raise InvalidArgument("loss must return one number for each row.", code="study-question")
        losses = np.nan_to_num(each_row(loss, labels, given), nan=1.0)
        return np.asarray(np.clip(losses, 0.0, 1.0), dtype=np.float64)
