"""Our own estimators on generated rows: what `discreet audit model NAME` attacks. Nobody's data is in it."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from discreet.audit.canaries import coins, corners
from discreet.audit.models import ModelAudit, Steps, audit_model
from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count, check_epsilon, exactly
from discreet.guarantees.guarantee import Approx, Guarantee
from discreet.guarantees.unit import row
from discreet.ledger import Ledger

FEATURES, ROWS, CANARIES = 256, 100, 500
FEWER_FEATURES = {"GaussianMixture": 32}
"""Of models that have many numbers for each column, and would take minutes."""
_LENGTH = 0.1
"""Of the other rows, relative to a canary: they are there to be learned from, and not to cover canaries."""
SYNTHETIC = "synthetic"
"""The name by which a synthetic table is audited."""
_OTHERS = 4
"""The values of the rows of a synthetic table that are no canaries."""
_AMPLE = Approx(epsilon=10**6, delta=0.5)


def estimator_names() -> list[str]:
    """The estimators of `discreet.learn` whose fit is a release."""
    import discreet.learn as learn
    from discreet.learn.base import Private

    found = [getattr(learn, name) for name in learn.__all__]
    names = {one.__name__ for one in found if inspect.isclass(one) and issubclass(one, Private)}
    return sorted(names - {"Bins"})  # where ranges are declared, its fit reads nothing


def model_names() -> list[str]:
    """What `discreet audit model` knows: the private estimators, and synthetic tables."""
    return [*estimator_names(), SYNTHETIC]


def audit_named(
    name: str,
    *,
    epsilon: Number,
    delta: Number,
    fitted_epsilon: Number | None = None,
    canaries: int | None = None,
    runs: int = 1,
    features: int | None = None,
    confidence: Number = 0.95,
    progress: Steps | None = None,
) -> ModelAudit:
    """Audit a model by name on generated rows. With `fitted_epsilon` it spends that, and still claims `epsilon`."""
    features = FEWER_FEATURES.get(name, FEATURES) if features is None else features
    canaries = min(CANARIES, 2 * features) if canaries is None else canaries
    model = named_model(
        name,
        epsilon=epsilon if fitted_epsilon is None else fitted_epsilon,
        delta=delta,
        features=features,
        canaries=canaries,
    )
    rows, targets = generated_rows(name, features=features)
    broken = fitted_epsilon is not None and exactly(fitted_epsilon) != exactly(epsilon)
    return audit_model(
        model,
        rows,
        targets,
        canaries=canaries_for(name, canaries),
        claim=_promise_of(name, epsilon, delta, features) if broken else None,
        delta=delta,
        runs=runs,
        confidence=confidence,
        progress=progress,
    )


def _promise_of(name: str, epsilon: Number, delta: Number, features: int) -> Guarantee:
    """What the model would promise for this ε."""
    model = named_model(name, epsilon=epsilon, delta=delta, features=features)
    if hasattr(model, "guarantee"):
        return model.guarantee(n_features=features)  # type: ignore[no-any-return]
    return Approx(epsilon=epsilon, delta=delta)


def named_model(
    name: str, *, epsilon: Number, delta: Number, features: int = FEATURES, canaries: int = CANARIES
) -> Any:
    """An estimator by name, for the generated rows, or a function that makes a synthetic table."""
    if name == SYNTHETIC:
        return synthesizer(epsilon=epsilon, delta=delta, choices=_OTHERS + canaries)
    if name not in estimator_names():
        raise InvalidArgument(
            f"Unknown model {name!r}. Choose one of {', '.join(model_names())}.", code="not-an-option"
        )
    import discreet.learn as learn

    made = getattr(learn, name)
    known = inspect.signature(made).parameters
    terms: dict[str, Any] = {"epsilon": epsilon, "delta": delta}
    side = 1 / math.sqrt(features)
    if "feature_norm" in known:
        terms["feature_norm"] = 1
    elif "feature_ranges" in known:
        terms["feature_ranges"] = [(-side, side)] * features
    terms |= {"classes": [0, 1]} if "classes" in known else {}
    terms |= {"target_bound": 1} if "target_bound" in known else {}
    if "n_components" in known:  # of a mixture, or all components of a PCA
        terms["n_components"] = 2 if "covariance_type" in known else features
    terms |= {"n_clusters": 4} if "n_clusters" in known else {}
    if "candidates" in known:
        inner = learn.LogisticRegression(classes=[0, 1], feature_norm=1)
        terms |= {"estimator": inner, "candidates": {"clip": [0.5, 1]}, "tries": 2}
    return made(**terms)


def generated_rows(name: str, *, features: int = FEATURES, rows: int = ROWS) -> tuple[Any, Any]:
    """Rows and targets to hide canaries in. The targets are None for a model without any."""
    if name == SYNTHETIC:
        return {"city": np.arange(rows) % _OTHERS}, None
    table = _LENGTH * corners(check_count(rows, "rows"), check_count(features, "features")) / math.sqrt(features)
    import discreet.learn as learn

    labelled = inspect.signature(getattr(learn, name).fit).parameters["y"].default is inspect.Parameter.empty
    return table, coins(rows).astype(np.int64) if labelled else None


def canaries_for(name: str, count: int) -> Any:
    """The number of canaries, or for a synthetic table the canaries: each is the only one with its value."""
    return {"city": _OTHERS + np.arange(check_count(count, "canaries"))} if name == SYNTHETIC else count


def synthesizer(*, epsilon: Number, delta: Number, choices: int) -> Callable[[dict[str, Any]], Any]:
    """A function from columns of whole numbers below `choices` to a synthetic table, under a ledger in memory."""
    check_epsilon(epsilon)

    def make(columns: dict[str, Any]) -> Any:
        from discreet.tables.table import table

        ledger = Ledger.open(":memory:", protects=row(), limit=_AMPLE)
        declared = {name: list(range(choices)) for name in columns}
        made = table(columns, ledger=ledger, version="generated").synthesize
        return made(declared, epsilon=epsilon, delta=delta, rows=100 * choices, progress=lambda _: None)

    return make
