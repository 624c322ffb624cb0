"""Settings chosen privately: tried at random, a random number of times, and charged once."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any, Self

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number
from discreet.extras import need
from discreet.guarantees.guarantee import Approx, Guarantee
from discreet.learn.automatic import finds_features, finds_target, rows_in_memory, with_ranges, within_ranges
from discreet.learn.base import Private, check_is_fitted, column_of, table_of, width_of
from discreet.learn.glm import Linear
from discreet.ledger import Ledger
from discreet.mechanisms.learning.descent.tuned import Judged, TunedDescent
from discreet.mechanisms.selection.private_selection import NegativeBinomialTries
from discreet.rows.arrays import flags_to_numbers, namespace
from discreet.rows.containers import Data
from discreet.rows.gradients.losses import HuberHinge, Logistic, Softmax

clone: Any = need("sklearn.base", "learn", "discreet.learn").clone


class PrivateSearch(Private):
    """Fits a linear estimator with the settings that a private search finds best, for `epsilon` and `delta` in total.

    `candidates` maps parameters to the values to try, as a grid, or lists whole settings. About `tries` of them, a
    number that is itself random and not shown, are drawn at random, each trained and scored with noise (classes: right
    or wrong; numbers: how near), and the best is released: `best_estimator_`, `best_params_` and `best_score_`, the
    noisy share of the marks. Source: Liu-Talwar 2019, Papernot-Steinke 2022.
    """

    def __init__(
        self,
        estimator: Any,
        candidates: Any,
        *,
        epsilon: Number = 1.0,
        delta: Number = 1e-6,
        tries: Number = 10,
        rows_per_person: int | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.estimator, self.candidates, self.epsilon, self.delta = estimator, candidates, epsilon, delta
        self.tries, self.rows_per_person, self.ledger = tries, rows_per_person, ledger

    def _settings(self) -> list[dict[str, Any]]:
        given = self.candidates
        if isinstance(given, dict):
            given = [dict(zip(given, values, strict=True)) for values in product(*given.values())]
        if not given or not all(isinstance(one, dict) for one in given):
            raise InvalidArgument(
                'candidates must be a grid such as {"clip": [0.5, 1]}, or a list of settings.', code="wrong-type"
            )
        fixed = {"epsilon", "delta", "ledger", "rows_per_person", "classes", "target_bound", "feature_norm"}
        if wrong := sorted(set().union(*given) & (fixed | {"feature_ranges", "fit_intercept", "sampling", "solver"})):
            raise InvalidArgument(
                f"{', '.join(wrong)} cannot be searched: the guarantee depends on it. Leave it out of the candidates.",
                code="learn-search",
            )
        return list(given)

    def _models(self) -> list[Linear]:
        if not isinstance(self.estimator, Linear):
            raise InvalidArgument(
                "PrivateSearch tunes the linear estimators, such as LogisticRegression(…).", code="learn-search"
            )
        if self.estimator.sampling is not None or getattr(self.estimator, "solver", "descent") != "descent":
            raise InvalidArgument(
                "PrivateSearch tunes descent over all rows. Leave out sampling= and solver=.", code="learn-search"
            )
        shared = {"epsilon": self.epsilon, "delta": self.delta, "rows_per_person": self.rows_per_person, "ledger": None}
        return [clone(self.estimator).set_params(**one, **shared) for one in self._settings()]

    def _tuned(self, features: int, models: list[Linear]) -> Any:
        first = models[0]
        return with_ranges(
            self,
            features,
            lambda goal: self._tries(features, models, goal),
            target=finds_target(first),
            found=finds_features(first),
        )

    def _tries(self, features: int, models: list[Linear], goal: Approx) -> TunedDescent:
        return TunedDescent.for_guarantee(
            goal,
            # the number of tries must stay secret: no progress is reported
            candidates=[model._described(features, None) | {"progress": None} for model in models],
            tries=NegativeBinomialTries.for_mean(self.tries),
            unit=self._unit(),
            rows_per_person=self._rows(),
            most=1 if _is_classifier(models[0]) else MARKS,
        )

    def guarantee(self, n_samples: int | None = None, n_features: int = 1) -> Guarantee:
        """What one call of `fit` will promise, for all tries together."""
        return self._cost(self._tuned(n_features, self._models()))

    def _cost(self, tuned: Any) -> Guarantee:
        """The guarantee of the search, and of the ranges that are found first."""
        return tuned.guarantee() if within_ranges(tuned) is tuned else self._promised(tuned)

    def fit(self, X: Data, y: Data) -> Self:
        """Try, score and choose: one release, charged before the rows are read."""
        (table, names), column = (
            table_of(X, width_of(getattr(self.estimator, "feature_ranges", None))),
            column_of(y, type(self).__name__),
        )
        if len(column) != table.shape[0]:
            raise InvalidArgument("X and y must have the same number of rows.", code="unequal-lengths")
        models, width = self._models(), int(table.shape[1])
        whole = self._tuned(width, models)
        tuned: TunedDescent = within_ranges(whole)
        first = models[0]

        def judged(found: Any) -> Judged:
            return Judged(first._examples(table, column, found), _judge(first))

        def read() -> Any:
            return first._read(width, judged, rows_in_memory(table, first._plain_targets(column)))

        asked = f"PrivateSearch of {type(self.estimator).__name__}, {len(models)} settings, {width} features"
        self.release_ = self._release(read, whole, self._cost(whole), asked, (width, names))
        found = self.release_.value
        best = models[found["candidate"]]
        ranges = {"ranges": found["ranges"]} if "ranges" in found else {}
        best.release_ = replace(self.release_, value={**found["output"], **ranges})
        best._settle(tuned.candidates[found["candidate"]].steps, width, names)
        best.release_ = replace(best.release_, _mechanism=tuned)
        self.best_estimator_, self.best_params_ = best, self._settings()[found["candidate"]]
        self.best_score_ = found["score"] / max(found["output"]["size"], 1.0) / tuned.most
        self.n_features_in_ = width
        return self

    def __getattr__(self, name: str) -> Any:
        if name in ("predict", "predict_proba", "decision_function", "classes_", "score"):
            check_is_fitted(self)
            return getattr(self.best_estimator_, name)
        raise AttributeError(f"{type(self).__name__} has no {name}.")


MARKS = 1000
"""The most marks that a prediction of a number can earn."""


def _is_classifier(model: Linear) -> bool:
    return isinstance(model._loss(), Logistic | HuberHinge | Softmax)


def _judge(model: Linear) -> Any:
    """From the scores of rows, classes × rows, and their targets to integer marks."""
    loss = model._loss()

    def of_classes(scores: Any, goal: Any) -> Any:
        xp = namespace(goal)
        if isinstance(loss, HuberHinge):
            return flags_to_numbers(scores[0] * goal > 0, goal)
        if not isinstance(loss, Softmax):
            return flags_to_numbers((scores[0] > 0) == (goal > 0.5), goal)
        top, place = scores[0], xp.zeros_like(goal)
        for number in range(1, loss.classes):
            place = xp.where(scores[number] > top, xp.zeros_like(goal) + number, place)
            top = xp.where(scores[number] > top, scores[number], top)
        return flags_to_numbers(place == goal, goal)

    def of_numbers(scores: Any, goal: Any) -> Any:
        xp = namespace(goal)
        far = xp.abs(model._answers(scores[0]) - goal) / model._widest()
        return xp.floor(MARKS * (1 - xp.clip(far, 0, 1)))

    return of_classes if _is_classifier(model) else of_numbers


__all__ = ["PrivateSearch"]
