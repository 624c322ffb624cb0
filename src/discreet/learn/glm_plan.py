"""What a fit of a generalized linear model will do and promise, from public numbers alone."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count, exactly, float_up
from discreet.extras import need
from discreet.guarantees.accuracy import Accuracy
from discreet.guarantees.guarantee import Approx, Guarantee
from discreet.guarantees.unit import Unit
from discreet.learn.automatic import (
    finds_target,
    is_auto,
    with_ranges,
    within_ranges,
)
from discreet.learn.base import (
    Private,
)
from discreet.mechanisms.learning.descent.descent import Descent
from discreet.mechanisms.learning.minimizers.objective_perturbation import ObjectivePerturbation
from discreet.rows.gradients.examples import row_norm
from discreet.rows.gradients.losses import HuberHinge, Loss, Softmax

clone: Any = need("sklearn.base", "learn", "discreet.learn").clone
Floats = NDArray[np.float64]

STEPS, MOMENTUM = 200, 0.9


@dataclass(frozen=True)
class Minimized:
    """How far from the optimum a model by objective perturbation may be, for a public number of rows."""

    perturbation: ObjectivePerturbation
    size: int | None

    def error(self, confidence: float) -> Accuracy:
        return self.perturbation.error(confidence, size=self.size)


@dataclass(frozen=True)
class Fitted:
    """How far from the optimum a fitted model may be. It also uses the released count and gradients."""

    descent: Descent
    gap: float

    def error(self, confidence: float) -> Accuracy:
        return self.descent.gap_error(confidence, self.gap)


class LinearPlan(Private):
    """The mechanism of a linear model with these settings."""

    # --- what a subclass says of itself ---------------------------------------------------------------------

    def _loss(self) -> Loss | Softmax:
        raise NotImplementedError

    def _targets(self, y: Any, found: Floats | None = None) -> Any:
        """Targets as the loss needs them. NaN for undeclared ones, so that their rows are left out."""
        raise NotImplementedError

    def _plain_targets(self, y: Any) -> Any:
        """Targets as numbers before their range is known. Classes have none to be found."""
        return np.zeros(len(y))

    def _middle(self) -> float:
        """What a score of 0 means in the target's own unit."""
        return 0.0

    def _spread(self) -> float:
        """What a score of 1 means in the target's own unit."""
        return 1.0

    # --- before fitting -------------------------------------------------------------------------------------

    def guarantee(self, n_samples: int | None = None, n_features: int = 1) -> Guarantee:
        """What one call of `fit` will promise. Nothing is spent. The number of rows changes only the steps."""
        return self._promised(self._mechanism(n_features, n_samples))

    def error(self, n_samples: int | None = None, n_features: int = 1, confidence: float = 0.95) -> Accuracy:
        """How far from the best model a fit may end. It can be called before the fit is paid for."""
        mechanism = within_ranges(self._mechanism(n_features, n_samples))
        if isinstance(mechanism, Descent):
            return mechanism.error(confidence)
        return Minimized(mechanism, self.n_samples if n_samples is None else n_samples).error(confidence)

    def _noise_errors(self, features: int, sizes: Sequence[int]) -> list[Accuracy]:
        """What noise adds to the bound that a fit will have, for each of these numbers of rows."""
        mechanism = within_ranges(self._mechanism(features))
        if isinstance(mechanism, Descent):
            return [mechanism.noise_error(0.95, size) for size in sizes]
        return [Minimized(mechanism, size).error(0.95) for size in sizes]

    def _mechanism(self, features: int, size: int | None = None) -> Any:
        solver = getattr(self, "solver", "descent")
        if solver not in ("descent", "objective"):
            raise InvalidArgument('solver must be "descent" or "objective".', code="not-an-option")

        def within(goal: Approx) -> Any:
            return self._descent(features, size, goal) if solver == "descent" else self._perturbation(features, goal)

        return with_ranges(self, features, within, target=finds_target(self))

    def _norm(self) -> Number:
        """The norm to which scaled rows are clipped."""
        return 1.0 if is_auto(self.feature_norm) else self.feature_norm

    def _perturbation(self, features: int, goal: Approx) -> ObjectivePerturbation:
        loss = self._loss()
        if isinstance(loss, Softmax):
            raise InvalidArgument(
                'solver="objective" supports two classes. Use solver="descent" for more.', code="learn-two-classes"
            )
        if self.sampling is not None:
            raise InvalidArgument('solver="objective" reads all rows. Leave out sampling=.', code="learn-solver")
        return _perturbation(
            goal,
            loss,  # type: ignore[arg-type]
            self._weights(features),
            float_up(row_norm(self._norm(), bool(self.fit_intercept))),
            self._unit(),
            self._rows(),
            (-1, 1) if isinstance(loss, HuberHinge) else (0, 1),
        )

    def _descent(self, features: int, size: int | None = None, goal: Approx | None = None) -> Descent:
        given: dict[str, Any] = {"unit": self._unit(), "rows_per_person": self._rows()}
        return Descent.for_guarantee(self._goal() if goal is None else goal, **given, **self._described(features, size))

    def _described(self, features: int, size: int | None) -> dict[str, Any]:
        """What a descent needs to know besides its cost and who is protected."""
        declared, loss, weights = self.n_samples if size is None else size, self._loss(), self._weights(features)
        longest = float(row_norm(self._norm(), bool(self.fit_intercept)))
        bounded = not isinstance(loss, Softmax)  # several classes have no certificate, and need no bounded region
        return {
            "noise": "gaussian" if exactly(self.delta) else "laplace",
            "dimension": weights,
            "size": None if declared is None else check_count(declared, "n_samples"),
            "loss": loss,
            "feature_norm": self._norm(),
            "intercept": bool(self.fit_intercept),
            "clip": self._typical_slope() * longest / 2 if self.clip is None else self.clip,
            "steps": STEPS if self.steps is None else self.steps,
            "learning_rate": self.learning_rate,
            "region": max(10.0, 3 * weights**0.5) if self.radius is None and bounded else self.radius,
            "momentum": MOMENTUM if self.momentum is None else self.momentum,
            "average": self.average,
            "sampling": self.sampling,
            "progress": show_step if self.verbose else None,
        }

    def _typical_slope(self) -> float:
        """Twice the slope at which rows are clipped. By default that is the largest possible slope."""
        return self._loss().lipschitz

    def _weights(self, features: int) -> int:
        loss = self._loss()
        return (features + bool(self.fit_intercept)) * (loss.classes if isinstance(loss, Softmax) else 1)


@lru_cache(maxsize=64)
def _perturbation(
    goal: Approx, loss: Any, weights: int, longest: float, unit: Unit, rows: int, targets: tuple[int, int]
) -> ObjectivePerturbation:
    """Computed once, because cross-validation asks for the same many times."""
    return ObjectivePerturbation.for_guarantee(
        goal, loss=loss, dimension=weights, row_norm=longest, unit=unit, rows_per_person=rows, targets=targets
    )


def show_step(step: int, steps: int) -> None:
    end = "\n" if step == steps else "\r"
    print(f"step {step} of {steps}", end=end, file=sys.stderr, flush=True)
