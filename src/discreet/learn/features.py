"""Public features: functions of one row that learn nothing, in front of a private model."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.closing import Closed
from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count
from discreet.extras import need
from discreet.guarantees.guarantee import Guarantee
from discreet.learn.base import (
    BaseEstimator,
    Private,
    check_is_fitted,
    column_of,
    declared_classes,
    keep_columns,
    known_table,
    places_of,
    table_of,
)
from discreet.learn.glm_plan import MOMENTUM, Fitted, show_step
from discreet.ledger import Ledger
from discreet.mechanisms.learning.descent.centered import CenteredDescent
from discreet.rows import has_width, on_device
from discreet.rows.arrays import is_numpy, namespace, to_device_of
from discreet.rows.containers import Data, on_host
from discreet.rows.gradients.losses import Softmax
from discreet.rows.gradients.unit_rows import UnitRows, unit_length
from discreet.rows.scattering import Scattering as Transform

ClassifierMixin: Any = need("sklearn.base", "learn", "discreet.learn").ClassifierMixin
TransformerMixin: Any = need("sklearn.base", "learn", "discreet.learn").TransformerMixin
_COLORS = np.array([[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]])
"""From red, green and blue to brightness and two differences of color, as in JPEG files."""
_STEEPEST = 0.05
"""The largest mean curvature of rows less their mean that is allowed for, in units of the largest possible one."""
_NOISE = 2.25
"""The noise that may be left in a weight: more than usual, because many features share what they say."""
_LEAST_SIDE, _MOST_SIDE = 8, 256


class Scattering(Closed, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The scattering transform of images: averages of the sizes of wavelets of wavelets, for a private linear model.

    Nothing is learned, so nothing is spent. `shape` is that of an image: (28, 28), or (32, 32, 3) for colors, which
    become brightness and two differences of color. An image is a row of pixels, or an array of that shape. Bytes count
    from 0 to 1; other numbers are used as they are. An image with a pixel that is not a finite number has features 0.

    `scales` says how many sizes waves have; 2^scales pixels are averaged. Several, such as (2, 3), give the features of
    each, side by side. None is 2 for colors, and (2, 3) for gray images of at least 16 pixels a side. All points of an
    image are made about equally strong, and the features for each of `scales` have norm 1.

    Promise: the features of an image depend on that image alone.

    >>> Scattering(shape=(28, 28), scales=2).fit_transform(np.zeros((2, 784))).shape
    (2, 3969)
    """

    def __init__(
        self, *, shape: Sequence[int] = (28, 28), scales: int | Sequence[int] | None = None, angles: int = 8
    ) -> None:
        self.shape, self.scales, self.angles = shape, scales, angles

    def _described(self) -> tuple[int, bool, list[int]]:
        """The side of an image, whether it has colors, and all scales."""
        known = [check_count(size, "shape") for size in self.shape] if isinstance(self.shape, Sequence) else []
        square = len(known) in (2, 3) and known[0] == known[1] and known[2:] in ([], [3])
        if not square or not _LEAST_SIDE <= known[0] <= _MOST_SIDE:
            raise InvalidArgument(
                f"shape must be that of a square image with {_LEAST_SIDE} to {_MOST_SIDE} pixels a side: (28, 28), or "
                "(32, 32, 3) for colors.",
                code="wrong-shape",
            )
        side, colors = known[0], len(known) == 3
        asked: Any = self.scales
        if asked is None:
            asked = 2 if colors or side < 16 else (2, 3)
        scales = [check_count(one, "scales") for one in (asked if isinstance(asked, Sequence) else [asked])]
        if not scales or not all(1 <= one <= 4 and 2 ** (one + 1) <= side for one in scales):
            raise InvalidArgument(
                "scales must be from 1 to 4, or several such numbers, and 2^(scales + 1) at most the side of an image.",
                code="out-of-range",
            )
        if check_count(self.angles, "angles") > 32:
            raise InvalidArgument("angles must be at most 32.", code="out-of-range")
        return side, colors, scales

    def fit(self, X: Data, y: Data | None = None) -> Self:
        """Nothing is learned. The shape is checked."""
        side, colors, _ = self._described()
        self.n_features_in_ = side * side * (3 if colors else 1)
        self._pixels(X)
        return self

    def transform(self, X: Data) -> NDArray[np.float32]:
        """The features of each image: images × features."""
        check_is_fitted(self)
        side, colors, scales = self._described()
        images = self._pixels(X).reshape(-1, side, side, *([3] if colors else []))
        layers = [_mixed(images, weights) for weights in _COLORS.astype(np.float32)] if colors else [images]
        transforms = [Transform(side, one, self.angles) for one in scales]
        found = np.empty((len(images), len(layers) * sum(one.features for one in transforms)), dtype=np.float32)
        end = 0
        for transform in transforms:
            part = found[:, end : (end := end + len(layers) * transform.features)]
            for place, layer in enumerate(layers):
                part[:, place * transform.features : (place + 1) * transform.features] = transform(layer)
            transform.even(part)
        return found

    def _pixels(self, X: Any) -> NDArray[Any]:
        """Rows of pixels. Their type decides whether they are bytes."""
        shape = tuple(self.shape)
        if getattr(X, "ndim", 2) == 1 + len(shape) and tuple(X.shape[1:]) == shape:
            X = X.reshape(len(X), self.n_features_in_)  # also without any image
        bytes_given = str(getattr(X, "dtype", "")) == "uint8"
        rows, _ = table_of(X, self.n_features_in_)
        if rows.shape[1] != self.n_features_in_:
            raise InvalidArgument(
                f"An image of shape {shape} has {self.n_features_in_} pixels, and rows have {rows.shape[1]} columns.",
                code="wrong-shape",
            )
        with np.errstate(all="ignore"):  # a warning would reveal something about a pixel
            found = np.asarray(rows, dtype=np.float32)
        return found / np.float32(255) if bytes_given else found


def _mixed(images: NDArray[np.float32], weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """A weighted sum of the three colors, in a fixed order."""
    with np.errstate(all="ignore"):
        return np.asarray(images[..., 0] * weights[0] + images[..., 1] * weights[1] + images[..., 2] * weights[2])


class FeatureClassifier(ClassifierMixin, Private):  # type: ignore[misc]
    """Softmax regression on public features: of images by `Scattering`, or of anything by a `transform` of yours.

    `features` is a transformer, or a function from rows to an array of features. Both must be public, accept any row,
    and treat every row by itself: a network that was trained on other data, for example. None takes rows as features.
    Features are divided by their norm. Their mean, which is released for a fiftieth of the cost, is subtracted, and
    what is left is divided by its norm again. `classes` must be declared. With `n_samples`, the number of rows is
    public.

    Promise: one release, of the mean and of all steps of the descent.
    """

    def __init__(
        self,
        *,
        features: Any = None,
        epsilon: Number = 1.0,
        delta: Number = 1e-6,
        classes: Sequence[Hashable] | None = None,
        n_samples: int | None = None,
        steps: int = 400,
        clip: Number = 0.5,
        learning_rate: Number | None = None,
        rows_per_person: int | None = None,
        ledger: Ledger | None = None,
        verbose: int = 0,
    ) -> None:
        self.features, self.epsilon, self.delta, self.classes = features, epsilon, delta, classes
        self.n_samples, self.steps, self.clip, self.learning_rate = n_samples, steps, clip, learning_rate
        self.rows_per_person, self.ledger, self.verbose = rows_per_person, ledger, verbose

    def _plan(self, features: int, size: int | None = None) -> CenteredDescent:
        many = len(declared_classes(self.classes))
        made = CenteredDescent.for_guarantee(
            self._goal(),
            columns=features,
            unit=self._unit(),
            rows_per_person=self._rows(),
            loss=Softmax(many),
            dimension=many * (features + 1),
            steps=check_count(self.steps, "steps"),
            clip=self.clip,
            learning_rate=self.learning_rate,
            momentum=MOMENTUM,
            size=self.n_samples if size is None else size,
            progress=show_step if self.verbose else None,
        )
        # rows less their mean have no direction in which most of them are long, so steps may be as long as noise allows
        return (
            made
            if self.learning_rate is not None
            else replace(made, descent=replace(made.descent, steepest=_STEEPEST, final_noise=_NOISE))
        )

    def guarantee(self, n_samples: int | None = None, n_features: int = 1) -> Guarantee:
        """What one call of `fit` will promise, for so many features. Nothing is spent."""
        return self._promised(self._plan(check_count(n_features, "n_features"), n_samples))

    def fit(self, X: Data, y: Data) -> Self:
        """Learn from rows and their classes: one release, charged before the rows are read. `features` of yours are
        computed before that.
        """
        declared = declared_classes(self.classes)
        column = column_of(y, type(self).__name__)
        if self.features is None and not has_width(X):
            raise InvalidArgument(
                "Give an array or a frame: the number of cells in the rows of a list is private.", code="wrong-shape"
            )
        table, names = table_of(X) if self.features is None else (self._featured(X), None)
        if len(column) != table.shape[0]:
            raise InvalidArgument("X and y must have the same number of rows.", code="unequal-lengths")
        width = int(table.shape[1])

        def read() -> UnitRows:
            return UnitRows(unit_length(table) if self.features is None else table, places_of(column, declared))

        plan = self._plan(width)
        asked = f"{type(self).__name__} of {width} features in {plan.descent.steps} steps"
        release = self._release(read, plan, self._promised(plan), asked)
        known = replace(plan.descent, size=release.value["size"], progress=None)
        self.release_ = replace(release, _mechanism=Fitted(known, float(release.value["gap"])))
        weights = np.asarray(release.value["weights"])
        self.classes_, self.coef_, self.intercept_ = np.array(declared), weights[:, :-1], weights[:, -1]
        self.center_, self.scale_, self.n_iter_ = release.value["center"], release.value["scale"], self.steps
        if self.features is None:
            keep_columns(self, width, names)
        return self

    def _featured(self, X: Data) -> Any:
        """Features of unit length, on their own device. The transform is public, and we take your word that it treats
        each row by itself.
        """
        if self.features is None:
            found = known_table(self, X)
        elif isinstance(self.features, Scattering):
            found = self.features.fit(X).transform(X)
        elif callable(change := getattr(self.features, "transform", self.features)):
            found = _changed(change, X)
        else:
            raise InvalidArgument(
                "features must be a transformer, a function from rows to features, or None.", code="wrong-type"
            )
        rows = found if on_device(found) else on_host(found)
        if rows.ndim != 2 or (is_numpy(rows) and rows.dtype.kind not in "fiub"):
            raise InvalidArgument("features must give an array of numbers: rows × features.", code="wrong-shape")
        return unit_length(rows)

    def decision_function(self, X: Data) -> NDArray[np.float64]:
        """The score of each row and class, or of the second of two classes. A larger score means more confidence."""
        scores = self._scores(X)
        return scores if scores.shape[1] > 2 else scores[:, 1] - scores[:, 0]

    def _scores(self, X: Data) -> NDArray[np.float64]:
        check_is_fitted(self, "coef_")
        rows = self._featured(X)
        if rows.shape[1] != self.coef_.shape[1]:
            raise InvalidArgument(
                f"X has {rows.shape[1]} features, but the model was fitted to {self.coef_.shape[1]}.",
                code="wrong-shape",
            )
        xp, center, weights = namespace(rows), to_device_of(self.center_, rows), to_device_of(self.coef_, rows)
        centered = (rows - center) * self.scale_
        centered /= xp.clip(xp.sqrt((centered * centered).sum(1)), 1.0, None)[:, None]
        return np.asarray(on_host(centered @ weights.T) + self.intercept_)

    def predict(self, X: Data) -> NDArray[Any]:
        """The most likely class of each row."""
        best = self._scores(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: Data) -> NDArray[np.float64]:
        """The probability of each class for each row."""
        scores = self._scores(X)
        grown = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(grown / grown.sum(axis=1, keepdims=True))


def _changed(change: Callable[[Data], Any], X: Data) -> Any:
    """What a transform of the user makes of the rows. Its own error may quote a row, and is not shown."""
    try:
        return change(X)
    except Exception:
        failed = InvalidArgument(
            "features= failed on these rows. It must accept any row, including missing and infinite numbers: replace "
            "them inside it. Its own error is not shown, because it may quote a row.",
            code="learn-features-failed",
        )
    raise failed
