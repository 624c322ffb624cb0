"""What stands around a private estimator: steps of a pipeline that learned without noise, and ledgers left behind."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from typing import Any

from discreet.errors import DiscreetError
from discreet.extras import need
from discreet.ledger import Ledger

_PUBLIC = {"PolynomialFeatures", "SplineTransformer"}
"""Transformers that learn only the number of columns, at least with the arguments that `_learns` checks."""


def warn_of_steps_before(model: Any) -> None:
    """Warn if this fit is a step of a scikit-learn pipeline in which an earlier step learned from the rows.

    Only types and arguments of the steps decide. A transformer that was fitted elsewhere, before its output was passed
    on as an array, cannot be noticed.
    """
    if learned := [type(step).__name__ for step in _steps_before(model) if _learns(step)]:
        warnings.warn(
            f"{', '.join(learned)} before {type(model).__name__} learned from the rows without noise, so the guarantee "
            "does not hold for the pipeline. Use a private transformer, such as dp.learn.StandardScaler, one that is "
            "declared, such as dp.learn.RangeScaler, or no transformer: ranges are found privately.",
            UserWarning,
            stacklevel=2,
        )


def _steps_before(model: Any) -> Iterator[Any]:
    """The steps before this one, of every pipeline that is fitting it now."""
    pipeline = need("sklearn.pipeline", "learn", "discreet.learn").Pipeline
    frame = sys._getframe(1)
    while frame is not None:  # a pipeline does not tell its steps that it calls them
        owner = frame.f_locals.get("self") if "pipeline" in frame.f_code.co_filename else None
        if isinstance(owner, pipeline):
            steps = [step for _, step in owner.steps]
            places = [place for place, step in enumerate(steps) if type(step) is type(model)]
            yield from _inner(steps[: places[0] if places else len(steps) - 1])
            return
        frame = frame.f_back  # type: ignore[assignment]


def _inner(steps: list[Any]) -> Iterator[Any]:
    """The steps, with those that a step is made of in its place."""
    for step in steps:
        parts = getattr(step, "transformers", None) or getattr(step, "transformer_list", None)
        if parts is None and hasattr(step, "steps"):
            parts = step.steps
        if parts is None:
            yield step
        else:
            yield from _inner([part[1] for part in parts])


def _learns(step: Any) -> bool:
    """Whether a transformer learns from rows without noise, as far as its type and arguments tell."""
    if step is None or isinstance(step, str) or type(step).__module__.partition(".")[0] == "discreet":
        return False
    if type(step).__name__ in _PUBLIC:
        return getattr(step, "knots", None) == "quantile"
    given = getattr(step, "categories", "auto")
    if not (isinstance(given, str) and given == "auto"):
        return False
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
