"""Additive models: the score of a row is a sum of shapes, one for each column, learned together in one convex fit."""

from __future__ import annotations

import copy
import math
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
from discreet.guarantees.guarantee import Guarantee
from discreet.learn.base import Private, check_is_fitted, column_of, keep_columns, numbers_of, places_of
from discreet.learn.bin_columns import Columns, Declared, declare, declared_width, place_of_column
from discreet.learn.bin_tables import PAIRED, ColumnBins, bins_for, pair_features
from discreet.learn.shapes import CONFIDENCE, Shape, plot_shapes
from discreet.ledger import Ledger
from discreet.mechanisms.learning.additive_descent import AdditiveDescent
from discreet.releases import below_title
from discreet.rows.arrays import on_host
from discreet.rows.binned import BinnedExamples, BinTables, NumberColumns
from discreet.rows.containers import Data
from discreet.rows.losses import Huber, Logistic, Loss, Softmax

_mixins: Any = need("sklearn.base", "learn", "discreet.learn")
Floats = NDArray[np.float64]
STEPS, MOMENTUM = 150, 0.9
"""The steps and their momentum, if nothing is set. Chosen on generated tables, as are the two numbers of each class."""
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


def _parts(declared: Declared) -> int:
    """In how many parts a column of a pair is cut: one for each whole number, up to 24, or equal parts."""
    span = 0.0 if declared.range is None else declared.range[1] - declared.range[0]
    return 24 if declared.kind == "whole numbers" and 0 < span < 24 else PAIRED


class _Rows:
    """The rows of a fit, whose bins may depend on ranges that are found first."""

    def __init__(self, model: Additive, columns: Columns, layout: Layout, targets: Any) -> None:
        self._model, self._columns, self._layout, self._targets = model, columns, layout, targets
        own = [columns.numbers(place) for place in layout.unknown]
        self.unknown = NumberColumns([*own, *([targets] if model._finds_target() else [])])

    def __reduce__(self) -> Any:
        raise InvalidArgument(
            "The rows of a model cannot be pickled: they are private. Pickle the fitted model.", code="not-pickled"
        )

    def binned(self, ranges: Any) -> BinnedExamples:
        """The rows in their bins."""
        layout, goal = self._layout, self._model._scaled(self._targets, None if ranges is None else ranges[-1])
        return BinnedExamples(layout.codes(self._columns, ranges), goal, layout.tables())


@dataclass(frozen=True)
class Fitted:
    """How far from the best model a fit may be. It also uses the released count and gradients."""

    descent: AdditiveDescent
    gap: float

    def error(self, confidence: float) -> Accuracy:
        return self.descent.gap_error(confidence, self.gap)


class Additive(Private):
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

    def _spread(self) -> float:
        """What a score of 1 means in the target's own unit."""
        return 1.0

    # --- before fitting -------------------------------------------------------------------------------------

    def guarantee(self, n_samples: int | None = None, n_features: int = 1) -> Guarantee:
        """What one call of `fit` will promise. Nothing is spent."""
        known = sum(
            0 if given is None or isinstance(given, str) else len(given) for given in (self.ranges, self.categories)
        )
        many = check_count(n_features, "n_features")
        declared = (_ANY,) * min(known, many) + (Declared("", "numbers"),) * max(0, many - known)
        return self._promised(self._mechanism(Layout(declared, ()), n_samples))

    def _mechanism(self, layout: Layout, size: int | None = None) -> AdditiveDescent:
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
            self._goal(),
            find=len(layout.unknown) + self._finds_target(),
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

    # --- fitting --------------------------------------------------------------------------------------------

    def fit(self, X: Data, y: Data) -> Self:
        """Learn from rows of features and their targets: one release, charged before the rows are read."""
        columns, goal = Columns.of(X, declared_width(self.ranges, self.categories)), column_of(y, type(self).__name__)
        if len(goal) != columns.rows:
            raise InvalidArgument("X and y must have the same number of rows.", code="unequal-lengths")
        declared = declare(columns, self.ranges, self.categories)
        layout = Layout(tuple(declared), self._pairs(columns))
        mechanism = self._mechanism(layout)
        asked = f"{type(self).__name__} of {len(declared)} columns in {mechanism.steps} steps"
        release = self._release(
            lambda: _Rows(self, columns, layout, on_host(self._numbered(goal))),
            mechanism,
            self._promised(mechanism),
            asked,
        )
        known = replace(mechanism, size=release.value["size"], progress=None)
        self.release_ = replace(release, _mechanism=Fitted(known, float(release.value["gap"])))
        self.n_iter_ = mechanism.steps
        self._layout = layout
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
        return tuple(found)

    def _settle(self, descent: AdditiveDescent) -> None:
        """Use what was released as the model."""
        value = self.release_.value
        ranges, weights = value["ranges"], np.atleast_2d(value["weights"])
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
            name = f"{first.name} & {second.name}"
            labels = tuple(f"{a} & {b}" for a in first.labels() for b in second.labels())
            shapes[name] = Shape(name, labels, _squeezed(part * self._spread()), band, parts=both)
        self.shapes_, self._bins, self._paired = shapes, bins, pairs
        self._keep_intercept(constant)

    def _take_ranges(self, ranges: Any) -> None:
        """Store the range of the target, if it was found."""

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

    def _known_columns(self, X: Data) -> Columns:
        """The columns of new rows, in the order of those that were learned from."""
        columns, many = Columns.of(X, self.n_features_in_), self.n_features_in_
        names = getattr(self, "feature_names_in_", None)
        if isinstance(X, Mapping) and names is not None:  # a dict has no order that anyone relies on
            places = [place_of_column(str(name), columns.names, len(columns)) for name in names]
            return Columns(tuple(columns.parts[place] for place in places), tuple(names))
        if len(columns) != many:
            expected = f"{type(self).__name__} is expecting {many} features as input"
            raise InvalidArgument(f"X has {len(columns)} features, but {expected}.", code="wrong-shape")
        return columns

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
        epsilon = f"ε = {float(exactly(self.epsilon)):.3g}, δ = {float(exactly(self.delta)):.3g}"
        title = f"{type(self).__name__} with {epsilon}: shapes with 95% bands of the noise"
        classes = [str(one) for one in getattr(self, "classes_", [])]
        return plot_shapes(shown, classes, title + below_title(self.release_), self._unit_of_scores(), path)

    def _unit_of_scores(self) -> str:
        return "log-odds"


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


class AdditiveClassifier(_mixins.ClassifierMixin, Additive):  # type: ignore[misc]
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

    def _declared(self) -> list[Any]:
        if self.classes is None or isinstance(self.classes, str) or not isinstance(self.classes, Sequence | np.ndarray):
            raise InvalidArgument(
                "classes must be declared, such as classes=[0, 1]. Which classes occur in the data is private.",
                code="learn-not-declared",
            )
        listed = list(self.classes)
        if len(listed) < 2 or len(set(listed)) != len(listed):
            raise InvalidArgument("classes must have at least two labels, all different.", code="learn-classes")
        return listed

    def _loss(self) -> Loss | Softmax:
        many = len(self._declared())
        return Logistic() if many == 2 else Softmax(many)

    def _numbered(self, y: Any) -> Any:
        return places_of(y, self._declared())

    def _keep_intercept(self, constant: Floats) -> None:
        super()._keep_intercept(constant)
        self.classes_ = np.array(self._declared())

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
            cut = float(exactly(self._slope if self.clip is None else self.clip))
            # clipped slopes balance where a class has this frequency, not σ(z)
            high, low = np.minimum(likely, cut), np.minimum(1 - likely, cut)
            return np.column_stack([low, high]) / (low + high)[:, None]
        grown = np.exp(scores - scores.max(axis=1, keepdims=True))
        return grown / grown.sum(axis=1, keepdims=True)

    def predict_log_proba(self, X: Data) -> Any:
        """The logarithms of `predict_proba`."""
        return np.log(np.maximum(self.predict_proba(X), 1e-300))


class AdditiveRegressor(_mixins.RegressorMixin, Additive):  # type: ignore[misc]
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

    def _loss(self) -> Loss:
        return Huber(2.0)  # the clip of the slope decides from where the error counts linearly

    def _finds_target(self) -> bool:
        return self.target_range is None or isinstance(self.target_range, str)

    def _numbered(self, y: Any) -> Any:
        return numbers_of(y)

    def _ends(self, found: Any) -> tuple[float, float]:
        given: Any = found if self._finds_target() else self.target_range
        low, high = (float(end) for end in given)
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise InvalidArgument(
                "target_range must be two finite numbers, the smaller one first.", code="ends-out-of-order"
            )
        return low, high

    def _mechanism(self, layout: Layout, size: int | None = None) -> AdditiveDescent:
        if not self._finds_target():
            self._ends(None)  # refuses bad ranges before anything is spent
        return super()._mechanism(layout, size)

    def _scaled(self, targets: Floats, found: Any) -> Floats:
        low, high = self._ends(found)
        with np.errstate(all="ignore"):  # a warning would reveal something about a target
            return np.clip((targets - (low / 2 + high / 2)) / (high / 2 - low / 2), -1.0, 1.0)

    def _take_ranges(self, ranges: Any) -> None:
        self.target_range_ = self._ends(None if ranges is None else ranges[-1])

    def _spread(self) -> float:
        low, high = getattr(self, "target_range_", (-1.0, 1.0))
        return float(high / 2 - low / 2)

    def _keep_intercept(self, constant: Floats) -> None:
        low, high = self.target_range_
        self.intercept_ = float(constant[0]) * self._spread() + low / 2 + high / 2

    def _unit_of_scores(self) -> str:
        return "change of the prediction"

    def predict(self, X: Data) -> Any:
        """The prediction for each row, within the range of the target."""
        return np.clip(self._scores(X)[0], *self.target_range_)
