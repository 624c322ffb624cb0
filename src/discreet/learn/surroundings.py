"""What stands around a private estimator: steps of a pipeline and other estimators that learn without noise, and
ledgers left behind.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from typing import Any

from discreet.errors import DiscreetError
from discreet.extras import need
from discreet.ledger import Ledger

_ENCODERS = {"OneHotEncoder", "OrdinalEncoder"}
"""Transformers that learn nothing from rows if their categories are given, and rare ones are not dropped."""
_REPEATS = "may give a row to one fit more often than rows_per_person says"
_LEARNS = "learns from the rows without noise"
_AROUND = {
    "BaggingClassifier": _REPEATS,
    "BaggingRegressor": _REPEATS,
    "AdaBoostRegressor": _REPEATS,
    "CalibratedClassifierCV": _LEARNS,
    "TunedThresholdClassifierCV": _LEARNS,
    "StackingClassifier": _LEARNS,
    "StackingRegressor": _LEARNS,
    "SelfTrainingClassifier": _LEARNS,
    "VotingClassifier": _LEARNS,
    "OneVsRestClassifier": _LEARNS,
    "OneVsOneClassifier": _LEARNS,
    "OutputCodeClassifier": _LEARNS,
}
"""Estimators of scikit-learn that contain others, and what they do with the rows: voting and the like list the classes
that occur.
"""


def warn_of_surroundings(model: Any) -> None:
    """Warn if scikit-learn calls this fit from an estimator, or after a step of a pipeline, that has no noise itself.

    Only types and arguments decide. A transformer that was fitted elsewhere, before its output was passed on as an
    array, cannot be noticed, and neither can an estimator that calls this fit in another thread or process.
    """
    _warn_of_steps_before(model)
    for owner in _owners(sys._getframe(1)):
        if what := _flaw_of(owner):
            warnings.warn(
                f"{type(owner).__name__} around {type(model).__name__} {what}, so the guarantee does not hold for what "
                f"it makes. Fit {type(model).__name__} by itself.",
                UserWarning,
                stacklevel=2,
            )


def _flaw_of(owner: Any) -> str:
    """What an estimator around a private one does that its guarantee does not cover. Empty if nothing is known."""
    name = type(owner).__name__
    if name == "TransformedTargetRegressor":
        changed = getattr(owner, "transformer", None)
        return _LEARNS if any(_learns(step) for step in _inner([changed])) else ""
    if name.startswith("Bagging") and not getattr(owner, "bootstrap", True):
        return ""
    return _AROUND.get(name, "")


def _owners(frame: Any) -> Iterator[Any]:
    """The estimators of scikit-learn whose methods run now, each once, from the inner to the outer ones."""
    seen: list[Any] = []
    while frame is not None:
        owner = frame.f_locals.get("self") if "sklearn" in frame.f_code.co_filename else None
        if owner is not None and not any(owner is one for one in seen):
            seen.append(owner)
            yield owner
        frame = frame.f_back


def _warn_of_steps_before(model: Any) -> None:
    """Warn if this fit is a step of a pipeline in which an earlier step learned from the rows."""
    if learned := [type(step).__name__ for step in _steps_before(model) if _learns(step)]:
        warnings.warn(
            f"{', '.join(learned)} before {type(model).__name__} learned from the rows without noise, so the guarantee "
            "does not hold for the pipeline. Use a private transformer, such as dp.learn.StandardScaler, one that is "
            "declared, such as dp.learn.RangeScaler, or no transformer: ranges are found privately.",
            UserWarning,
            stacklevel=2,
        )


def _steps_before(model: Any) -> Iterator[Any]:
    """The steps before this one, of every pipeline that is fitting it now, from the inner to the outer ones."""
    pipeline = need("sklearn.pipeline", "learn", "discreet.learn").Pipeline
    frame, fitted = sys._getframe(1), model
    while frame is not None:  # a pipeline does not tell its steps that it calls them
        owner = frame.f_locals.get("self") if "pipeline" in frame.f_code.co_filename else None
        if isinstance(owner, pipeline) and owner is not fitted:
            yield from _inner(_before([step for _, step in owner.steps], fitted))
            fitted = owner
        frame = frame.f_back  # type: ignore[assignment]


def _before(steps: list[Any], fitted: Any) -> list[Any]:
    """The steps before the one that is fitted, or before the last one of its type if that is a copy."""
    own = [place for place, step in enumerate(steps) if step is fitted]
    like = [place for place, step in enumerate(steps) if type(step) is type(fitted)]
    return steps[: own[0] if own else like[-1] if like else len(steps) - 1]


def _inner(steps: list[Any]) -> Iterator[Any]:
    """The steps, with those that a step is made of in its place."""
    for step in steps:
        parts = getattr(step, "transformers", None) or getattr(step, "transformer_list", None)
        if parts is None and hasattr(step, "steps"):
            parts = step.steps
        if parts is None:
            yield step
        else:
            yield from _inner([*(part[1] for part in parts), getattr(step, "remainder", None)])


def _learns(step: Any) -> bool:
    """Whether a transformer learns from rows without noise, as far as its type and arguments tell."""
    if step is None or isinstance(step, str) or type(step).__module__.partition(".")[0] == "discreet":
        return False
    name = type(step).__name__
    if name == "PolynomialFeatures":  # it learns only the number of columns
        return False
    if name == "SplineTransformer":  # by default, knots go from the smallest to the largest number
        return isinstance(getattr(step, "knots", ""), str)
    if name in _ENCODERS and not isinstance(getattr(step, "categories", "auto"), str):
        return any(getattr(step, rare, None) is not None for rare in ("min_frequency", "max_categories"))
    tags = getattr(step, "__sklearn_tags__", None)
    return tags is None or bool(tags().requires_fit)


# --- ledgers in another process -------------------------------------------------------------------------------


class LostLedger:
    """What is left of a ledger in memory when an estimator is sent to another process. It refuses every use."""

    def __repr__(self) -> str:
        return "<LostLedger: a ledger in memory stays in its process>"


class Sent:
    """A ledger on its way with an estimator: it is opened again where it arrives, if it can be."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def __reduce__(self) -> Any:
        return _arrive, self._ledger.__reduce__()


def _arrive(reopen: Any, given: tuple[Any, ...]) -> Any:
    try:
        return reopen(*given)
    except DiscreetError as error:
        if error.code != "ledger-in-memory":
            raise
    return LostLedger()


def refuse_lost(ledger: Any) -> None:
    """Refuse a fit whose ledger is in the memory of another process."""
    if isinstance(ledger, LostLedger):
        raise DiscreetError(
            "The ledger is in the memory of another process, and a copy would be a second budget. Use a ledger in a "
            'file, Ledger.open("clinic.ledger", …), or n_jobs=1.',
            code="ledger-in-memory",
        )
