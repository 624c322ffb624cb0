"""Membership scores: how much a fitted model, or a synthetic table, looks as if it had seen a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.closing import closed
from discreet.errors import InvalidArgument

Floats = NDArray[np.float64]
Score = Callable[[Any, Any, Any], Any]
"""From a fitted model, rows and their targets to one number for each row: larger means more likely a member."""
BINS = 32


@closed
def membership_score(model: Any, X: Any, y: Any = None) -> Floats:
    """One number for each row, larger for a member: minus the loss, or a log-density, as far as the model has one.

    Classifiers: the log-probability of the label. Regressors: minus the squared error. Clusters: minus the squared
    distance to the nearest center. Components: the explained variance in the direction of the row. Scalers: minus the
    squared length after scaling. Synthetic tables: the log-likelihood of the row from the frequencies of single
    columns.
    """
    _, score = find_score(model, y)
    return np.asarray(score(model, X, y), dtype=np.float64)


def find_score(model: Any, y: Any) -> tuple[str, Score]:
    """The score for this kind of model, and its name."""
    if columns_of(model) is not None:
        return "likelihood by single columns", _likelihood
    if y is not None and hasattr(model, "predict_joint_log_proba"):
        return "log-density of the row and its label", _joint
    if y is not None and hasattr(model, "classes_") and hasattr(model, "decision_function"):
        return "margin of the label", _margin
    if y is not None and hasattr(model, "classes_") and hasattr(model, "predict_proba"):
        return "log-probability of the label", _likely
    if y is not None and hasattr(model, "predict"):
        return "minus the squared error", lambda model, X, y: -((np.asarray(y) - model.predict(X)) ** 2)
    if hasattr(model, "score_samples"):
        return "log-density", lambda model, X, _: model.score_samples(X)
    if hasattr(model, "cluster_centers_"):
        return "minus the squared distance", lambda model, X, _: -(model.transform(X).min(axis=1) ** 2)
    if hasattr(model, "explained_variance_"):
        return "explained variance", lambda model, X, _: (model.transform(X) ** 2) @ model.explained_variance_
    if hasattr(model, "transform"):
        return "minus the squared length", lambda model, X, _: -(np.asarray(model.transform(X)) ** 2).sum(axis=1)
    raise InvalidArgument(
        "There is no membership score for this kind of model. Pass one: score=f, where f(model, X, y) has one number "
        "for each row.",
        code="audit-score",
    )


def _places(model: Any, y: Any) -> NDArray[np.int64]:
    known = {label: place for place, label in enumerate(model.classes_.tolist())}
    return np.array([known[label] for label in np.asarray(y).tolist()])


def _joint(model: Any, X: Any, y: Any) -> Floats:
    table = model.predict_joint_log_proba(X)
    return np.asarray(table[np.arange(len(table)), _places(model, y)])


def _likely(model: Any, X: Any, y: Any) -> Floats:
    table = model.predict_proba(X)
    return np.asarray(np.log(np.maximum(table[np.arange(len(table)), _places(model, y)], 1e-300)))


def _margin(model: Any, X: Any, y: Any) -> Floats:
    scores, places = np.asarray(model.decision_function(X)), _places(model, y)
    if scores.ndim == 1:
        return np.where(places == 1, scores, -scores)
    own = scores[np.arange(len(scores)), places]
    top = scores.max(axis=1)
    return np.asarray(own - top - np.log(np.exp(scores - top[:, None]).sum(axis=1)))


# --- synthetic tables ---------------------------------------------------------------------------------------------


def columns_of(model: Any) -> dict[str, Any] | None:
    """The columns of a synthetic table, a frame or an Arrow table. None for anything else."""
    table = getattr(model, "table", model)
    if isinstance(table, Mapping):
        return {name: np.asarray(column) for name, column in table.items()}
    if hasattr(table, "column_names"):
        return {name: table.column(name).to_numpy(zero_copy_only=False) for name in table.column_names}
    if hasattr(table, "columns") and hasattr(table, "dtypes"):
        return {name: table[name].to_numpy() for name in table.columns}
    return None


def _likelihood(model: Any, X: Any, _: Any) -> Floats:
    made, rows = columns_of(model), columns_of(X)
    if made is None or rows is None:
        raise InvalidArgument(
            "The canaries of a synthetic table must be a table with the same columns.", code="audit-canaries"
        )
    return np.asarray(sum(_frequency(made[name], rows[name]) for name in made if name in rows))


def _frequency(made: Any, wanted: Any) -> Any:
    """The logarithm of how often each wanted value, or one in the same bin, is among those made."""
    if made.dtype.kind == "f" and len(np.unique(wanted)) > BINS:
        edges = np.linspace(min(made.min(), wanted.min()), max(made.max(), wanted.max()), BINS + 1)[1:-1]
        made, wanted = np.searchsorted(edges, made), np.searchsorted(edges, wanted)
    values, counts = np.unique(made.astype(str), return_counts=True)
    often = dict(zip(values.tolist(), counts.tolist(), strict=True))
    return np.log([often.get(value, 0) + 0.5 for value in wanted.astype(str).tolist()])
