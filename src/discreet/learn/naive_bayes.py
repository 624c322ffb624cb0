"""Naive Bayes from noisy counts, sums and sums of squares of each class."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number
from discreet.extras import need
from discreet.guarantees.guarantee import Approx
from discreet.learn.automatic import AUTO, Auto, Source, finds_features, rows_in_memory, with_ranges, within_ranges
from discreet.learn.base import (
    Planned,
    column_of,
    declared_ranges,
    fitted_table,
    keep_columns,
    places_of,
    table_of,
    width_of,
)
from discreet.learn.preprocessing import SHARES, spreads
from discreet.learn.streams import open_batches
from discreet.ledger import Ledger
from discreet.mechanisms.learning.group_moments import GroupMoments
from discreet.rows.containers import Data
from discreet.rows.rounding import RoundedRows

ClassifierMixin: Any = need("sklearn.base", "learn", "discreet.learn").ClassifierMixin
Floats = NDArray[np.float64]


class GaussianNB(ClassifierMixin, Planned):  # type: ignore[misc]
    """Columns as independent normal variables, with a mean and a variance in each of the declared `classes`.

    `feature_ranges`, a public (low, high) for each column, clamp cells, both in `fit` and in `predict`. With "auto"
    they are found privately, within the cost of the fit: `ranges_`. A row with a target outside the classes is left
    out. Each row is in one class only, so all classes are measured at the cost of one. Variances have a lower bound, as
    in `StandardScaler`.
    """

    classes_: NDArray[Any]
    theta_: Floats
    var_: Floats
    class_prior_: Floats
    class_count_: Floats

    def __init__(
        self,
        *,
        classes: Sequence[Hashable] = (0, 1),
        feature_ranges: ArrayLike | Auto | None = AUTO,
        epsilon: Number = 1.0,
        delta: Number = 1e-6,
        priors: Sequence[Number] | None = None,
        rows_per_person: int | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.classes, self.feature_ranges, self.epsilon, self.delta = classes, feature_ranges, epsilon, delta
        self.priors, self.rows_per_person, self.ledger = priors, rows_per_person, ledger

    def _plan(self, features: int) -> Any:
        return with_ranges(self, features, lambda goal: self._moments(features, goal))

    def _moments(self, features: int, goal: Approx) -> GroupMoments:
        return GroupMoments.for_guarantee(
            goal,
            features=features,
            groups=len(self._declared()),
            shares=SHARES,
            unit=self._unit(),
            rows_per_person=self._rows(),
        )

    def _declared(self) -> list[Any]:
        listed = [] if isinstance(self.classes, str) else list(self.classes)
        if len(listed) < 2 or len(set(listed)) != len(listed):
            raise InvalidArgument(
                "classes must be declared: at least two labels, all different, such as [0, 1].", code="learn-classes"
            )
        return listed

    def _priors(self, many: int) -> Floats | None:
        if self.priors is None:
            return None
        shares = np.asarray(self.priors, dtype=np.float64)
        if shares.shape != (many,) or not (shares > 0).all() or abs(float(shares.sum()) - 1) > 1e-9:
            raise InvalidArgument(f"priors must be {many} numbers above 0 with a sum of 1.", code="learn-priors")
        return shares

    def fit(self, X: Data, y: Data) -> Self:
        """Learn from rows and their classes: one release, charged before the rows are read."""
        (table, names), labels = table_of(X, width_of(self.feature_ranges)), column_of(y, type(self).__name__)
        if labels.shape[0] != table.shape[0]:
            raise InvalidArgument("X and y must have the same number of rows.", code="unequal-lengths")

        def rounded(codes: Callable[[Any], Floats], **bounds: Any) -> RoundedRows:
            return RoundedRows(table, codes(labels), **bounds)

        return self._fitted(int(table.shape[1]), names, Source(rounded, rows_in_memory(table)))

    def fit_batches(
        self, batches: Data, *, features: int | Sequence[str] | None = None, target: str | None = None
    ) -> Self:
        """Learn from rows that do not fit in memory, in one pass: one release, charged before the first batch is read.

        The arguments are those of `LogisticRegression.fit_batches`, including a Spark DataFrame.
        """
        known = open_batches(batches, features, target, self.feature_ranges)
        rows = Source(known.rounded, known.summing(partial(places_of, classes=self._declared())))
        return self._fitted(known.features, known.names, rows)

    def _fitted(self, features: int, names: list[str] | None, rows: Source) -> Self:
        given = None if finds_features(self) else declared_ranges(self.feature_ranges, features)
        declared = self._declared()
        priors, whole = self._priors(len(declared)), self._plan(features)
        plan: GroupMoments = within_ranges(whole)

        def rounded(ranges: Floats) -> RoundedRows:
            return rows(partial(places_of, classes=declared), feature_ranges=ranges, groups=len(declared))

        def read() -> Any:
            return rows.unbounded(features, rounded) if given is None else rounded(given)

        asked = f"GaussianNB of {features} features in {len(declared)} classes"
        self.release_ = self._release(read, whole, self._promised(whole), asked, (features, names))
        self.ranges_ = ranges = np.asarray(self.release_.value.get("ranges", given))
        sizes, means, variances, _ = spreads(self.release_.value, plan)
        half = ranges[:, 1] / 2 - ranges[:, 0] / 2
        self.theta_ = ranges[:, 0] / 2 + ranges[:, 1] / 2 + means * half
        self.var_, self.classes_ = variances * half**2, np.array(declared)
        self.class_count_, self.class_prior_ = sizes, sizes / sizes.sum() if priors is None else priors
        keep_columns(self, len(ranges), names)
        return self

    def predict_joint_log_proba(self, X: Data) -> Floats:
        """The logarithm of each class's share times the density of the row in it."""
        table = np.clip(fitted_table(self, X), self.ranges_[:, 0], self.ranges_[:, 1])
        found = [
            np.log(share) - ((np.log(2 * np.pi * var) + (table - mean) ** 2 / var) / 2).sum(1)
            for share, mean, var in zip(self.class_prior_, self.theta_, self.var_, strict=True)
        ]
        return np.stack(found, axis=1)

    def predict_log_proba(self, X: Data) -> Floats:
        """The logarithm of the probability of each class."""
        joint = self.predict_joint_log_proba(X)
        top = joint.max(axis=1, keepdims=True)
        return np.asarray(joint - top - np.log(np.exp(joint - top).sum(axis=1, keepdims=True)))

    def predict_proba(self, X: Data) -> Floats:
        """The probability of each class."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Data) -> NDArray[Any]:
        """The likeliest class of each row."""
        places = self.predict_joint_log_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[places])
