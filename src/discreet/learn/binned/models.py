"""Models over binned columns: what their estimators share, from the declared columns to the predictions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import check_count, exactly
from discreet.extras import need
from discreet.guarantees.guarantee import Guarantee
from discreet.learn.automatic import is_auto, with_ranges, within_ranges
from discreet.learn.base import Private, by_name, column_of, declared_classes, numbers_of, places_of, table_columns
from discreet.learn.binned.bin_columns import (
    Columns,
    Declared,
    declare,
    declared_width,
    place_of_column,
)
from discreet.learn.binned.bin_tables import PAIRED, ColumnBins, bins_for, pair_features
from discreet.rows.containers import Data, on_host
from discreet.rows.gradients.binned import BinnedExamples, BinTables
from discreet.rows.gradients.losses import Huber, Logistic, Loss, Softmax

_mixins: Any = need("sklearn.base", "learn", "discreet.learn")
Floats = NDArray[np.float64]
_ANY = Declared("", "numbers", range=(0.0, 1.0))


@dataclass(frozen=True)
class Layout:
    """The public plan of a fit: what is declared of each column, and the chosen pairs by position."""

    declared: tuple[Declared, ...]
    pairs: tuple[tuple[int, int], ...]

    @property
    def unknown(self) -> list[int]:
        """The columns whose range must be found."""
        return [place for place, one in enumerate(self.declared) if one.is_auto]

    def bins(self, ranges: Any) -> list[ColumnBins]:
        """The bins of each column."""
        found = dict(zip(self.unknown, [] if ranges is None else ranges, strict=False))
        return [bins_for(one, found.get(place, (0.0, 1.0))) for place, one in enumerate(self.declared)]

    def pair_bins(self, ranges: Any) -> list[tuple[ColumnBins, ColumnBins]]:
        """The bins of the columns of each pair, which are wider."""
        found = dict(zip(self.unknown, [] if ranges is None else ranges, strict=False))
        return [
            tuple(
                bins_for(self.declared[one], found.get(one, (0.0, 1.0)), _parts(self.declared[one]), 0) for one in pair
            )  # type: ignore[misc]
            for pair in self.pairs
        ]

    def tables(self) -> BinTables:
        """The features of all bins. They do not depend on ranges that are found, only on how ranges are cut."""
        alone = [one.features() for one in self.bins(None)]
        return BinTables.rounded([*alone, *(pair_features(*pair) for pair in self.pair_bins(None))])

    def codes(self, columns: Columns, ranges: Any) -> list[Any]:
        """The bins of all rows, for each column and pair."""
        alone = [one.codes(columns, place) for place, one in enumerate(self.bins(ranges))]
        for pair, (first, second) in zip(self.pairs, self.pair_bins(ranges), strict=True):
            alone.append(first.codes(columns, pair[0]) * second.bins + second.codes(columns, pair[1]))
        return alone

    def examples(self, codes: list[Any], goal: Any) -> BinnedExamples:
        """The rows of an additive model in these bins."""
        return BinnedExamples(codes, goal, self.tables())


def _parts(declared: Declared) -> int:
    """In how many parts a column of a pair is cut: one for each whole number, up to 24, or equal parts."""
    span = 0.0 if declared.range is None else declared.range[1] - declared.range[0]
    return 24 if declared.kind == "whole numbers" and 0 < span < 24 else PAIRED


class BinnedModel(Private):
    """A model over the bins of its columns. Ranges that are not declared are found within its release."""

    _slope = 0.5  # where the slope of a row is clipped

    def _loss(self) -> Loss | Softmax:
        raise NotImplementedError

    def _numbered(self, y: Any) -> Any:
        """Targets as numbers. NaN for those that are left out."""
        raise NotImplementedError

    def _finds_target(self) -> bool:
        return False

    def _scaled(self, targets: Floats, found: Any) -> Floats:
        """Targets in the unit of the score."""
        return targets

    def _within(self, layout: Layout, goal: Any, size: int | None) -> Any:
        """The mechanism that works within known ranges, for this guarantee."""
        raise NotImplementedError

    def _mechanism(self, layout: Layout, size: int | None = None) -> Any:
        return with_ranges(
            self,
            len(layout.unknown),
            lambda goal: self._within(layout, goal, size),
            target=self._finds_target(),
            found=bool(layout.unknown),
            binned=True,
        )

    def _learn(self, layout: Layout, columns: Columns, goal: Any, make: Callable[[Any, Any], Any], how: str) -> Any:
        """One release, charged before the rows are read, and the mechanism. `make` gets the bins of rows and their
        targets.
        """
        plan = self._mechanism(layout)
        mechanism = within_ranges(plan)

        def rows() -> Any:
            targets = on_host(self._numbered(goal))

            def within(ranges: Any) -> Any:
                scaled = self._scaled(targets, None if ranges is None else ranges[-1])
                return make(layout.codes(columns, ranges), scaled)

            if plan is mechanism:
                return within(None)
            return columns.unbounded(layout.unknown, within, targets if self._finds_target() else None)

        names = [layout.declared[place].name for place in layout.unknown]
        asked = f"{type(self).__name__} of {len(columns)} columns in {how.format(mechanism)}"
        return self._release(rows, plan, self._promised(plan), asked, (len(names), names)), mechanism

    def _take_ranges(self, ranges: Any) -> None:
        """Store what predictions need besides the fit: the classes, or the range of the target."""
        raise NotImplementedError

    def _scores(self, X: Data) -> Floats:
        """Classes × rows."""
        raise NotImplementedError

    def _spread(self) -> float:
        """What a score of 1 means in the target's own unit."""
        return 1.0

    def guarantee(self, n_samples: int | None = None, n_features: int = 1) -> Guarantee:
        """What one call of `fit` will promise. Nothing is spent."""
        known = sum(
            0 if given is None or isinstance(given, str) else len(given) for given in (self.ranges, self.categories)
        )
        many = check_count(n_features, "n_features")
        declared = (_ANY,) * min(known, many) + (Declared("", "numbers"),) * max(0, many - known)
        return self._promised(self._mechanism(Layout(declared, ()), n_samples))

    def _opened(self, X: Data, y: Data) -> tuple[Columns, Any, list[Declared]]:
        """The columns, the targets, and what is declared, checked without reading a cell."""
        columns, goal = Columns.of(X, declared_width(self.ranges, self.categories)), column_of(y, type(self).__name__)
        if len(goal) != columns.rows:
            raise InvalidArgument("X and y must have the same number of rows.", code="unequal-lengths")
        return columns, goal, declare(columns, self.ranges, self.categories)

    def _known_columns(self, X: Data) -> Columns:
        """The columns of new rows, in the order of those that were learned from."""
        chosen = table_columns(self, X)
        if chosen is not None:
            return Columns.of({one.name: one.cells(part) for one, part in chosen})
        columns, many = Columns.of(by_name(self, X), self.n_features_in_), self.n_features_in_
        names = getattr(self, "feature_names_in_", None)
        if isinstance(X, Mapping) and names is not None:  # a dict has no order that anyone relies on
            places = [place_of_column(str(name), columns.names, len(columns)) for name in names]
            return Columns(tuple(columns.parts[place] for place in places), tuple(names))
        if len(columns) != many:
            expected = f"{type(self).__name__} is expecting {many} features as input"
            raise InvalidArgument(f"X has {len(columns)} features, but {expected}.", code="wrong-shape")
        return columns


class BinnedClassifier(_mixins.ClassifierMixin, BinnedModel):  # type: ignore[misc]
    """Chooses among declared `classes` by their scores."""

    _cut: float  # where slopes were clipped

    def _declared(self) -> list[Any]:
        return declared_classes(self.classes)

    def _take_ranges(self, ranges: Any) -> None:
        self.classes_ = np.array(self._declared())
        clip = getattr(self, "clip", None)  # a forest has none
        self._cut = float(exactly(self._slope if clip is None else clip))

    def _loss(self) -> Loss | Softmax:
        many = len(self._declared())
        return Logistic() if many == 2 else Softmax(many)

    def _numbered(self, y: Any) -> Any:
        return places_of(y, self._declared())

    def decision_function(self, X: Data) -> Any:
        """The score of each row, or of each row and class. A larger score means more confidence."""
        scores = self._scores(X)
        return scores[0] if len(scores) == 1 else scores.T

    def predict(self, X: Data) -> Any:
        """The most likely class of each row."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    def predict_proba(self, X: Data) -> Any:
        """The probability of each class for each row."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            likely = 1 / (1 + np.exp(-np.clip(scores, -700, 700)))
            # clipped slopes balance where a class has this frequency, not σ(z)
            high, low = np.minimum(likely, self._cut), np.minimum(1 - likely, self._cut)
            return np.column_stack([low, high]) / (low + high)[:, None]
        grown = np.exp(scores - scores.max(axis=1, keepdims=True))
        return grown / grown.sum(axis=1, keepdims=True)

    def predict_log_proba(self, X: Data) -> Any:
        """The logarithms of `predict_proba`."""
        return np.log(np.maximum(self.predict_proba(X), 1e-300))


class BinnedRegressor(_mixins.RegressorMixin, BinnedModel):  # type: ignore[misc]
    """Predicts a number within a declared or found `target_range`."""

    def _loss(self) -> Loss:
        return Huber(2.0)  # the clip of the slope decides from where the error counts linearly

    def _finds_target(self) -> bool:
        return is_auto(self.target_range)

    def _numbered(self, y: Any) -> Any:
        return numbers_of(y)

    def _ends(self, found: Any) -> tuple[float, float]:
        given: Any = found if self._finds_target() else self.target_range
        try:
            low, high = (float(end) for end in given)
        except (TypeError, ValueError):
            raise InvalidArgument("target_range must be two numbers, such as (0, 100).", code="wrong-type") from None
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise InvalidArgument(
                "target_range must be two finite numbers, the smaller one first.", code="ends-out-of-order"
            )
        return low, high

    def _scaled(self, targets: Floats, found: Any) -> Floats:
        low, high = self._ends(found)
        with np.errstate(all="ignore"):  # a warning would reveal something about a target
            return np.clip((targets - (low / 2 + high / 2)) / (high / 2 - low / 2), -1.0, 1.0)

    def _mechanism(self, layout: Layout, size: int | None = None) -> Any:
        if not self._finds_target():
            self._ends(None)  # refuses bad ranges before anything is spent
        return super()._mechanism(layout, size)

    def _take_ranges(self, ranges: Any) -> None:
        self.target_range_ = self._ends(None if ranges is None else ranges[-1])

    def _spread(self) -> float:
        low, high = getattr(self, "target_range_", (-1.0, 1.0))
        return float(high / 2 - low / 2)

    def predict(self, X: Data) -> Any:
        """The prediction for each row, within the range of the target."""
        return np.clip(self._scores(X)[0], *self.target_range_)
