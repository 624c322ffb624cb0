"""Model selection on one holdout that stays valid: a scorer and a splitter for scikit-learn that use a study."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.adaptive.answers import StudyAnswer
from discreet.adaptive.holdouts import Holdout
from discreet.adaptive.studies import Study
from discreet.closing import Closed
from discreet.errors import InvalidArgument
from discreet.exact.rational import Number
from discreet.rows.containers import Data

Loss = Callable[[Any, Any], Any]


class StudyScorer(Closed):
    """A scorer for scikit-learn. It ignores the given rows and scores a model on the study's own, one question per
    call.

    `answers` stores every score with its interval. All of them hold together, however many models were tried.
    """

    def __init__(self, study: Study | Holdout, features: Any, target: str, loss: Loss | None, between: Any) -> None:
        self._study, self._features, self._target = study, features, target
        self._loss, self._between = loss, between
        self.answers: list[StudyAnswer] = []

    def __call__(self, estimator: Any, X: Data = None, y: Data = None) -> float:
        """Accuracy, or with a loss minus its mean, because larger scores must be better."""

        worst = False if self._loss is None else float(self._between[1])

        def said(rows: Any) -> Any:
            right = rows[self._target]
            text = getattr(right, "kind", "") == "O"
            predicted = _as_function(lambda table: _predict(estimator, table), rows, self._features, text=text)
            known = _as_function(_complete, rows, self._features) > 0
            return np.where(known, predicted == right if self._loss is None else self._loss(right, predicted), worst)

        ask = self._study.check if isinstance(self._study, Holdout) else self._study.mean
        self.answers.append(ask(said, between=self._between))
        return self.answers[-1].value if self._loss is None else -self.answers[-1].value


def _as_function(function: Callable[[Any], Any], rows: Any, features: Any, *, text: bool = False) -> Any:
    """A function of the features, row by row: of one column with many numbers per row, or of many columns."""
    names = [features] if isinstance(features, str) else list(features)
    if hasattr(rows, "apply"):  # rows under a ledger: only the model sees them
        return rows.apply(lambda *columns: function(_table(columns)), *names, text=text)
    return function(_table([rows[name] for name in names]))


def _complete(table: NDArray[Any]) -> NDArray[np.float64]:
    """1 for rows that have all their numbers."""
    with np.errstate(all="ignore"):  # a warning would reveal something about a cell
        return np.asarray(np.isfinite(table.astype(np.float64)).all(axis=1), dtype=np.float64)


def _predict(estimator: Any, table: NDArray[Any]) -> NDArray[Any]:
    """Predictions. Rows with a missing number, which models refuse, get the prediction for a row of zeros."""
    return np.asarray(estimator.predict(np.where(_complete(table)[:, None] > 0, table, 0.0)))


def _table(columns: Sequence[Any]) -> NDArray[Any]:
    if len(columns) == 1 and np.ndim(columns[0]) == 2:
        return np.asarray(columns[0])
    return np.column_stack(columns)


def scorer(
    study: Study | Holdout,
    *,
    features: str | Sequence[str],
    target: str,
    loss: Loss | None = None,
    between: Sequence[Number] = (0, 1),
) -> StudyScorer:
    """Score models through a study or a holdout: `GridSearchCV(…, scoring=scorer(…), cv=splitter())`.

    `features` names one column with several numbers per row, or several columns. `target` is the column to predict.
    Without a `loss`, a function of targets and predictions with public bounds `between`, the score is the accuracy.
    """
    if not isinstance(study, Study | Holdout):
        raise InvalidArgument(
            "The first argument must be a study or a holdout: dp.adaptive.study(…).", code="wrong-type"
        )
    return StudyScorer(study, features, target, loss, between)


class Splitter:
    """One split for scikit-learn: all given rows are for training, and the scorer tests on rows of its own."""

    def split(self, X: Data, y: Data = None, groups: Any = None) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """All rows, and one of them as the test set that scikit-learn requires. The scorer does not read it."""
        rows = X.shape[0] if hasattr(X, "shape") else len(X)
        yield np.arange(rows), np.arange(1)

    def get_n_splits(self, X: Data = None, y: Data = None, groups: Any = None) -> int:
        """One."""
        return 1


def splitter() -> Splitter:
    """A cross-validation splitter for `scorer`."""
    return Splitter()
