"""Generalized linear models by noisy descent: what their estimators share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, exactly
from discreet.extras import need
from discreet.learn.automatic import (
    finds_features,
    finds_target,
    is_auto,
    rows_in_memory,
    show_found,
    target_range,
    within_ranges,
)
from discreet.learn.base import (
    check_is_fitted,
    clip_rows,
    column_of,
    keep_columns,
    keep_ranges,
    known_table,
    numbers_of,
    refuse_other_targets,
    table_of,
    width_of,
)
from discreet.learn.glm_plan import Fitted, LinearPlan, Minimized
from discreet.learn.streams import open_batches, show_progress
from discreet.mechanisms.learning.descent.descent import Descent
from discreet.mechanisms.learning.minimizers.objective_perturbation import ObjectivePerturbation
from discreet.rows.arrays import doubles, scaled, to_device_of
from discreet.rows.containers import Data, on_host
from discreet.rows.gradients.gpu import examples_of
from discreet.rows.rounding import check_ranges
from discreet.rows.unbounded import UnboundedRows

clone: Any = need("sklearn.base", "learn", "discreet.learn").clone
Floats = NDArray[np.float64]


class Linear(LinearPlan):
    """A model whose score is linear in the features, fitted by noisy projected descent.

    `feature_norm` clips every row to that L2 norm. `feature_ranges`, a public (low, high) for each column, first scales
    the columns to [−1, 1], clamps each cell there, and divides by √(number of columns), so that nothing inside the
    ranges is clipped. If neither is declared, ranges are found privately, within the cost of the fit: `ranges_`. With
    `n_samples` the number of rows is public. Without it, the rows are counted privately, for about a hundredth of the
    noise's share. `steps`, `clip`, `learning_rate`, `radius` (a number, or a region such as `Box`), `average` and
    `momentum` are those of `Descent`. None uses the default, which is computed only from public numbers. `sampling` is
    the probability that a row takes part in a step, for data that is read in samples.
    """

    coef_: Any
    intercept_: Any

    # --- fitting --------------------------------------------------------------------------------------------

    def fit(self, X: Data, y: Data) -> Self:
        """Learn from rows of features and their targets: one release, charged before the rows are read."""
        (table, names), column = table_of(X, width_of(self.feature_ranges)), column_of(y, type(self).__name__)
        if hasattr(self, "target_bound"):
            refuse_other_targets(y, type(self).__name__)
        if len(column) != table.shape[0]:
            raise InvalidArgument("X and y must have the same number of rows.", code="unequal-lengths")
        return self._fitted(
            int(table.shape[1]),
            names,
            lambda found: self._examples(table, column, found),
            lambda work: rows_in_memory(table, self._plain_targets(column))(work),
        )

    def fit_batches(
        self,
        batches: Data,
        *,
        features: int | Sequence[str] | None = None,
        target: str | None = None,
        held_rows: Number | None = None,
    ) -> Self:
        """Learn from rows that do not fit in memory: one release, charged before the first batch is read.

        `batches` is the path of Parquet files (a file, a folder, a pattern, or a list of them), an Arrow dataset, or a
        function without arguments that starts a new pass on each call and returns an iterator of batches: pairs (X, y),
        or record batches. `features` and `target` name the columns. For pairs, `features` is the number of features.
        Files and datasets must have numbers in these columns. Elsewhere, a cell that is not a number counts as missing.
        `batches` may also be a Spark DataFrame: the executors sum its partitions, and only exact sums come back.

        Without `sampling` every step reads all the rows. With it, one pass collects the samples of many steps, and
        every row has its own coin flip for each step. The public number of rows decides how many steps one pass serves,
        so that about `held_rows` rows are held in memory.
        """
        if getattr(self, "solver", "descent") != "descent":
            raise InvalidArgument(
                'solver="objective" cannot learn from batches. Use solver="descent".', code="learn-solver"
            )
        known = open_batches(batches, features, target, self.feature_ranges)
        # what is sent to other machines holds no ledger
        sent = self if known.here else clone(self).set_params(ledger=None)

        def stream(found: Floats | None) -> Any:
            return known.stream(
                partial(sent._targets, found=found),
                feature_norm=self._norm(),
                intercept=bool(self.fit_intercept),
                held_rows=held_rows,
                progress=show_progress if self.verbose else None,
                **self._scaling(known.features, found),
            )

        # bad arguments are refused before anything is spent
        stream(np.tile([-1.0, 1.0], (known.features + 1, 1)) if self._finds() else None)
        return self._fitted(known.features, known.names, stream, known.summing(sent._plain_targets))

    def _finds(self) -> bool:
        return finds_features(self) or finds_target(self)

    def _read(self, features: int, read: Callable[[Floats | None], Any], summed: Callable[[Any], Any]) -> Any:
        """What the door reads: the rows, or those whose ranges are found first."""
        if not self._finds():
            return read(None)
        found = {"finds_features": finds_features(self), "finds_target": finds_target(self)}
        return UnboundedRows(summed, read, features=features, **found)

    def _fitted(
        self,
        features: int,
        names: list[str] | None,
        read: Callable[[Floats | None], Any],
        summed: Callable[[Any], Any],
    ) -> Self:
        self._scaling(features)  # refuses bad ranges before anything is spent
        whole = self._mechanism(features)
        mechanism, guarantee, known_as = within_ranges(whole), self._promised(whole), (features, names)
        if isinstance(mechanism, ObjectivePerturbation):
            asked = f"{type(self).__name__} of {features} features by objective perturbation"
            rows = lambda found: read(found).plain()  # noqa: E731
            release = self._release(lambda: self._read(features, rows, summed), whole, guarantee, asked)
            value = release.value if isinstance(release.value, dict) else {"weights": release.value}
            shown = show_found(replace(release, value=value), *known_as)
            self.release_ = replace(shown, _mechanism=Minimized(mechanism, self.n_samples))
            self._settle(1, features, names)
            return self
        descent: Descent = mechanism
        asked = f"{type(self).__name__} of {features} features in {descent.steps} steps"
        release = self._release(lambda: self._read(features, read, summed), whole, guarantee, asked, known_as)
        known = replace(descent, size=release.value["size"], progress=None)
        self.release_ = replace(release, _mechanism=Fitted(known, float(release.value["gap"])))
        self._settle(descent.steps, features, names)
        return self

    def _settle(self, steps: int, features: int, names: list[str] | None) -> None:
        """Use what was released as the model."""
        found = self.release_.value.get("ranges")
        declared = None if is_auto(self.feature_ranges) else check_ranges(self.feature_ranges, features)
        keep_ranges(self, found[:features] if found is not None and finds_features(self) else declared)
        if hasattr(self, "target_bound"):
            self.target_range_ = self._between(found)
        self._take(np.asarray(self.release_.value["weights"]), **self._scaling(features, found))
        self.n_iter_ = steps
        keep_columns(self, features, names)

    def _examples(self, table: Any, y: Any, found: Floats | None = None) -> Any:
        return examples_of(
            table,
            self._targets(y, found),
            feature_norm=self._norm(),
            intercept=bool(self.fit_intercept),
            **self._scaling(int(table.shape[1]), found),
        )

    def _scaling(self, features: int, found: Floats | None = None) -> dict[str, Any]:
        """How columns are shifted, scaled and clamped by their ranges. Empty if only whole rows are clipped."""
        if not is_auto(self.feature_ranges):
            ranges = check_ranges(self.feature_ranges, features)
        elif found is not None and finds_features(self):
            ranges = found[:features]
        else:
            return {}
        half = (ranges[:, 1] - ranges[:, 0]) / 2
        most = float(exactly(self._norm())) / math.sqrt(features)
        return {"offset": ranges[:, 0] / 2 + ranges[:, 1] / 2, "scale": most / half, "most": most}

    def _between(self, found: Floats | None) -> tuple[float, float]:
        """The range of the target: as declared, or as found, centered at 0 if there is no intercept."""
        if not finds_target(self):
            return target_range(self.target_bound)
        if found is None:
            return -1.0, 1.0
        low, high = map(float, found[-1])
        most = max(abs(low), abs(high))
        return (low, high) if self.fit_intercept else (-most, most)

    def _take(self, weights: Floats, **scaling: Any) -> None:
        """Convert weights of the scaled features to coefficients of the original features."""
        matrix = np.atleast_2d(weights) * self._spread()
        coefficients = matrix[:, :-1] if self.fit_intercept else matrix
        constant = self._middle() + (matrix[:, -1] if self.fit_intercept else np.zeros(len(matrix)))
        if scaling:
            coefficients = coefficients * scaling["scale"]
            constant = constant - coefficients @ scaling["offset"]
        self._keep_weights(coefficients, constant)

    def _keep_weights(self, coefficients: Floats, constant: Floats) -> None:
        self.coef_, self.intercept_ = coefficients[0], float(constant[0])

    def _scores(self, X: Any) -> Any:
        """Rows × classes, on the device of the features, with rows scaled and clipped as in `fit`."""
        with np.errstate(all="ignore"):  # a warning would reveal something about a cell
            rows = self._shortened(X)
            matrix = np.atleast_2d(self.release_.value["weights"]) * self._spread()
            scores = rows @ to_device_of(matrix[:, : self.n_features_in_].T, rows) + self._middle()
            return scores + to_device_of(matrix[:, -1], rows) if self.fit_intercept else scores

    def _shortened(self, X: Any) -> Any:
        table = known_table(self, X)
        scaling = self._scaling(self.n_features_in_, getattr(self, "ranges_", None))
        return clip_rows(scaled(table, **scaling) if scaling else doubles(table), self._norm())

    @property
    def learning_curve_(self) -> Floats:
        """The mean loss after each step, estimated from the noisy gradients. It uses only released values."""
        check_is_fitted(self)
        if "objective" not in self.release_.value:
            raise InvalidArgument(
                'solver="objective" takes no steps, so there is no learning curve. Use solver="descent".',
                code="learn-no-curve",
            )
        return np.asarray(self.release_.value["objective"])


class LinearRegressor(Linear):
    """Predicts a number. Targets are clamped to ±`target_bound`, or to a pair (low, high). With "auto" their range is
    found privately: `target_range_`.
    """

    _estimator_type = "regressor"
    target_range_: tuple[float, float]

    def _spread(self) -> float:
        low, high = self.target_range_
        return high / 2 - low / 2

    def _middle(self) -> float:
        low, high = self.target_range_
        return low / 2 + high / 2

    def _plain_targets(self, y: Any) -> Any:
        return numbers_of(y)

    def _targets(self, y: Any, found: Floats | None = None) -> Any:
        low, high = self._between(found)
        with np.errstate(all="ignore"):  # a warning would reveal something about a target
            return (np.clip(numbers_of(y), low, high) - (low / 2 + high / 2)) / (high / 2 - low / 2)

    def _answers(self, scores: Any) -> Any:
        """Predictions in the unit of `_targets`."""
        return scores

    def _widest(self) -> float:
        """The largest useful error of a prediction, in the unit of `_targets`."""
        return 2.0

    def predict(self, X: Data) -> Any:
        """The prediction for each row."""
        return on_host(self._scores(X))[:, 0]
