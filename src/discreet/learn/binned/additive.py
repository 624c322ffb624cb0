"""Additive models: the score of a row is a sum of shapes, one for each column, learned together in one convex fit."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count, exactly, float_up
from discreet.extras import need
from discreet.guarantees.accuracy import Accuracy
from discreet.learn.automatic import within_ranges
from discreet.learn.base import check_is_fitted, keep_columns
from discreet.learn.binned.bin_columns import Columns, names_or_places, place_of_column
from discreet.learn.binned.bin_tables import ColumnBins
from discreet.learn.binned.models import BinnedClassifier, BinnedModel, BinnedRegressor, Layout
from discreet.learn.binned.shapes import CONFIDENCE, Shape, plot_shapes
from discreet.ledger import Ledger
from discreet.mechanisms.learning.descent.additive import AdditiveDescent
from discreet.releases import below_title
from discreet.rows.containers import Data
from discreet.rows.gradients.losses import Softmax

Floats = NDArray[np.float64]
STEPS, MOMENTUM = 150, 0.9
"""The steps and their momentum, if nothing is set. Chosen on generated tables, as are the two numbers of each class."""


@dataclass(frozen=True)
class Fitted:
    """How far from the best model a fit may be. It also uses the released count and gradients."""

    descent: AdditiveDescent
    gap: float

    def error(self, confidence: float) -> Accuracy:
        return self.descent.gap_error(confidence, self.gap)


class Additive(BinnedModel):
    """What both additive models share.

    `ranges` declares a public (low, high) for columns of numbers: a dict by name or position, or a list with one entry
    for each column. Numbers outside are read as the nearest end. The range of any other column of numbers is found
    privately, for a tenth of the cost. `categories` declares the values of other columns in the same way. All other
    cells share one more bin. Columns of text need categories. `pairs` names columns that are also learned together.
    With `n_samples` the number of rows is public. Otherwise it is counted privately. `steps`, `clip` (of the slope of a
    row), `learning_rate` and `radius` are those of the descent. None uses the default, which is computed only from
    public numbers.
    """

    _final_noise, _slope = 0.7, 0.5  # noise that may stay in a weight, and where the slope of a row is clipped
    shapes_: dict[str, Shape]
    intercept_: Any
    _asked: str

    # --- before fitting -------------------------------------------------------------------------------------

    def _within(self, layout: Layout, goal: Any, size: int | None) -> AdditiveDescent:
        if not exactly(self.delta):
            raise InvalidArgument(
                "An additive model needs Gaussian noise, and so a delta, such as 1e-6. For pure ε, use Bins in front "
                'of LogisticRegression(solver="objective", delta=0).',
                code="needs-delta",
            )
        declared, loss, tables = self.n_samples if size is None else size, self._loss(), layout.tables()
        many = loss.classes if isinstance(loss, Softmax) else 1
        weights = tables.dimension * many
        norm = tables.longest * exactly(self._slope if self.clip is None else self.clip)
        return AdditiveDescent.for_guarantee(
            goal,
            unit=self._unit(),
            rows_per_person=self._rows(),
            dimension=weights,
            size=None if declared is None else check_count(declared, "n_samples"),
            loss=loss,
            feature_norm=float_up(tables.feature_norm),
            intercept=True,
            clip=float_up(norm),
            steps=STEPS if self.steps is None else check_count(self.steps, "steps"),
            learning_rate=self.learning_rate,
            region=max(10.0, 3 * weights**0.5) if self.radius is None and many == 1 else self.radius,
            momentum=MOMENTUM,
            final_noise=self._final_noise,
        )

    def _noise_errors(self, empty: Mapping[str, Any], sizes: Sequence[int]) -> list[Accuracy]:
        """What noise adds to the bound that a fit will have, for each of these numbers of rows. `empty` has the columns
        without their rows.
        """
        columns, _, declared = self._opened(empty, np.zeros(0))
        mechanism = within_ranges(self._mechanism(Layout(tuple(declared), self._pairs(columns))))
        return [mechanism.noise_error(0.95, size) for size in sizes]

    # --- fitting --------------------------------------------------------------------------------------------

    def fit(self, X: Data, y: Data) -> Self:
        """Learn from rows of features and their targets: one release, charged before the rows are read."""
        columns, goal, declared = self._opened(X, y)
        layout = Layout(tuple(declared), self._pairs(columns))
        release, mechanism = self._learn(layout, columns, goal, layout.examples, "{0.steps} steps")
        known = replace(mechanism, size=release.value["size"], progress=None)
        self.release_ = replace(release, _mechanism=Fitted(known, float(release.value["gap"])))
        self.n_iter_ = mechanism.steps
        self._layout = layout
        # parameters may be set to others later
        self._asked = f"ε = {float(exactly(self.epsilon)):.3g}, δ = {float(exactly(self.delta)):.3g}"
        keep_columns(self, len(columns), None if columns.names is None else list(columns.names))
        self._settle(known)
        return self

    def _pairs(self, columns: Columns) -> tuple[tuple[int, int], ...]:
        found = []
        for pair in self.pairs or ():
            if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
                raise InvalidArgument('pairs must be pairs of columns: [("hour", "workday")].', code="wrong-type")
            first, second = (place_of_column(one, columns.names, len(columns)) for one in pair)
            if first == second:
                raise InvalidArgument("A pair needs two different columns.", code="duplicates")
            found.append((first, second))
        names = names_or_places(columns.names, len(columns))
        called = [*names, *(pair_name(names[first], names[second]) for first, second in found)]
        if len(set(called)) != len(called):
            raise InvalidArgument(
                "Two shapes would have the same name. Name each pair once, and rename a column that is called like a "
                "pair.",
                code="duplicates",
            )
        return tuple(found)

    def _settle(self, descent: AdditiveDescent) -> None:
        """Use what was released as the model."""
        value = self.release_.value
        ranges, weights = value.get("ranges"), np.atleast_2d(value["weights"])
        self._take_ranges(ranges)
        parts = self._layout.tables().values(weights)
        band = self._spread() * _band(descent, float(value["size"]))
        constant, shapes = weights[:, -1].copy(), {}
        bins, pairs = self._layout.bins(ranges), self._layout.pair_bins(ranges)
        many = 1 if len(weights) == 1 else len(weights)
        for one, part in zip(bins, parts, strict=False):
            middle = part[:, : max(one.bins - 1, 1)].mean(axis=1)
            constant += middle
            shapes[one.name] = _shape(one, (part - middle[:, None])[: many if many > 1 else 1], band, self._spread())
        for (first, second), part in zip(pairs, parts[len(bins) :], strict=True):
            both = tuple(_shape(one, np.zeros((1, one.bins)), 0.0, 1.0) for one in (first, second))
            name = pair_name(first.name, second.name)
            labels = tuple(f"{a} & {b}" for a in first.labels() for b in second.labels())
            shapes[name] = Shape(name, labels, _squeezed(part * self._spread()), band, parts=both)
        self.shapes_, self._bins, self._paired = shapes, bins, pairs
        self._keep_intercept(constant)

    def _keep_intercept(self, constant: Floats) -> None:
        self.intercept_ = float(constant[0]) if len(constant) == 1 else constant

    # --- the model ------------------------------------------------------------------------------------------

    def _scores(self, X: Data) -> Floats:
        """Classes × rows."""
        check_is_fitted(self)
        columns = self._known_columns(X)
        many = columns.rows
        scores = np.repeat(np.atleast_1d(self.intercept_).astype(float)[:, None], many, axis=1)
        listed = list(self.shapes_.values())
        for place, (one, shape) in enumerate(zip(self._bins, listed, strict=False)):
            scores += np.atleast_2d(shape.values)[:, one.codes(columns, place)]
        pairs = zip(self._layout.pairs, self._paired, listed[len(self._bins) :], strict=True)
        for pair, (first, second), shape in pairs:
            code = first.codes(columns, pair[0]) * second.bins + second.codes(columns, pair[1])
            scores += np.atleast_2d(shape.values)[:, code]
        return scores

    def edit(
        self,
        column: Any,
        *,
        value: Number | None = None,
        increasing: bool | None = None,
        between: tuple[Number, Number] | None = None,
        choices: Sequence[Hashable] | None = None,
    ) -> Self:
        """A copy of the model whose shape of one column is changed: set to `value`, or made monotone.

        With `increasing=True` it never falls, with False it never rises. `between` or `choices` say where, otherwise
        everywhere except for missing cells. The release is not changed, and nothing is spent: this uses only released
        numbers.
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        place = place_of_column(column, None if names is None else list(names), self.n_features_in_)
        if (value is None) == (increasing is None):
            raise InvalidArgument("Give either value= or increasing=.", code="conflicting-arguments")
        name = self._bins[place].name
        shape = self.shapes_[name]
        changed = copy.copy(self)
        new = None if value is None else float(exactly(value))
        changed.shapes_ = self.shapes_ | {name: shape.edited(shape.chosen(between, choices), new, increasing)}
        return changed

    def plot(self, path: str | Path | None = None, *, columns: Sequence[Any] | None = None) -> Any:
        """The shapes as a matplotlib figure, saved at `path` if one is given. The band is what noise may have added."""
        check_is_fitted(self)
        shown = list(self.shapes_.values())
        if columns is not None:
            names = getattr(self, "feature_names_in_", None)
            known = None if names is None else list(names)
            places = [place_of_column(one, known, self.n_features_in_) for one in columns]
            shown = [self.shapes_[self._bins[place].name] for place in places]
        title = f"{type(self).__name__} with {self._asked}: shapes with 95% bands of the noise"
        classes = [str(one) for one in getattr(self, "classes_", [])]
        return plot_shapes(shown, classes, title + below_title(self.release_), self._unit_of_scores(), path)

    def _unit_of_scores(self) -> str:
        return "log-odds"


def pair_name(first: str, second: str) -> str:
    """What the shape of a pair of columns is called."""
    return f"{first} & {second}"


def _shape(bins: ColumnBins, values: Floats, band: float, spread: float) -> Shape:
    between = None if bins.edges is None else (bins.low, bins.high)
    return Shape(
        bins.name, tuple(bins.labels()), _squeezed(values * spread), band, bins.edges, between, bins.choices, bins.whole
    )


def _squeezed(values: Floats) -> Floats:
    return values[0] if len(values) == 1 else values


def _band(descent: AdditiveDescent, size: float) -> float:
    """How far the noise moves the value of a bin at most, with 95% confidence, for any curvature of the mean loss.

    The features of a bin have norm 1. The most noise stays where the loss is flat, as in bins without any rows.
    """
    steepest = descent.loss.smoothness * float_up(exactly(descent.feature_norm)) ** 2 + descent.loss.smoothness
    tried = [0.0, *np.geomspace(steepest * 1e-6, steepest, 12)]
    largest = max(float(np.linalg.norm(descent.response(size, curve))) for curve in tried)
    normal: Any = need("scipy.special", "learn", "discreet.learn").ndtri(0.5 + CONFIDENCE / 2)
    return float(normal) * largest * descent.noise.deviation / size


class AdditiveClassifier(BinnedClassifier, Additive):
    """Chooses among declared `classes` by a sum of shapes, one for each column. Rows of any other class are left out.

    >>> import numpy as np
    >>> age = np.linspace(0, 120, 5000)
    >>> model = AdditiveClassifier(epsilon=1, delta=1e-6, classes=[0, 1], ranges={"age": (0, 120)})
    >>> model = model.fit({"age": age}, abs(age - 60) < 30)
    >>> bool(model.score({"age": age}, abs(age - 60) < 30) > 0.9)
    True
    """

    def __init__(
        self,
        *,
        epsilon: Number = 1.0,
        delta: Number = 1e-6,
        classes: Sequence[Hashable] | None = None,
        ranges: Any = None,
        categories: Any = None,
        pairs: Sequence[tuple[Any, Any]] | None = None,
        n_samples: int | None = None,
        steps: int | None = None,
        clip: Number | None = None,
        learning_rate: Number | None = None,
        radius: Number | None = None,
        rows_per_person: int | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.epsilon, self.delta, self.classes = epsilon, delta, classes
        self.ranges, self.categories, self.pairs, self.n_samples = ranges, categories, pairs, n_samples
        self.steps, self.clip, self.learning_rate, self.radius = steps, clip, learning_rate, radius
        self.rows_per_person, self.ledger = rows_per_person, ledger


class AdditiveRegressor(BinnedRegressor, Additive):
    """Predicts a number by a sum of shapes, one for each column, with the squared error.

    `target_range` is a public (low, high). Targets outside are read as the nearest end. Without it, the range is found
    privately, like that of a column.
    """

    _final_noise, _slope = 0.05, 0.25  # targets are within ±1, and scores of classes are not

    def __init__(
        self,
        *,
        epsilon: Number = 1.0,
        delta: Number = 1e-6,
        target_range: tuple[Number, Number] | None = None,
        ranges: Any = None,
        categories: Any = None,
        pairs: Sequence[tuple[Any, Any]] | None = None,
        n_samples: int | None = None,
        steps: int | None = None,
        clip: Number | None = None,
        learning_rate: Number | None = None,
        radius: Number | None = None,
        rows_per_person: int | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.epsilon, self.delta, self.target_range = epsilon, delta, target_range
        self.ranges, self.categories, self.pairs, self.n_samples = ranges, categories, pairs, n_samples
        self.steps, self.clip, self.learning_rate, self.radius = steps, clip, learning_rate, radius
        self.rows_per_person, self.ledger = rows_per_person, ledger

    def _keep_intercept(self, constant: Floats) -> None:
        low, high = self.target_range_
        self.intercept_ = float(constant[0]) * self._spread() + low / 2 + high / 2

    def _unit_of_scores(self) -> str:
        return "change of the prediction"
