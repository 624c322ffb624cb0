"""Public features: functions of one row that learn nothing, in front of a private model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.closing import Closed
from discreet.errors import InvalidArgument
from discreet.exact.rational import check_count
from discreet.extras import need
from discreet.learn.base import BaseEstimator, check_is_fitted, table_of
from discreet.rows.containers import Data
from discreet.rows.scattering import Scattering as Transform

TransformerMixin: Any = need("sklearn.base", "learn", "discreet.learn").TransformerMixin
_COLORS = np.array([[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]])
"""From red, green and blue to brightness and two differences of color, as in JPEG files."""
_LEAST_SIDE, _MOST_SIDE = 8, 256


class Scattering(Closed, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The scattering transform of images: averages of the sizes of wavelets of wavelets, for a private linear model.

    Nothing is learned, so nothing is spent. `shape` is that of an image: (28, 28), or (32, 32, 3) for colors, which
    become brightness and two differences of color. An image is a row of pixels, or an array of that shape. Bytes count
    from 0 to 1; other numbers are used as they are. An image with a pixel that is not a finite number has features 0.

    Promise: the features of an image depend on that image alone.

    >>> Scattering(shape=(28, 28)).fit_transform(np.zeros((2, 784))).shape
    (2, 3969)
    """

    def __init__(self, *, shape: Sequence[int] = (28, 28), scales: int = 2, angles: int = 8) -> None:
        self.shape, self.scales, self.angles = shape, scales, angles

    def _described(self) -> tuple[int, bool]:
        """The side of an image, and whether it has colors."""
        known = [check_count(size, "shape") for size in self.shape] if isinstance(self.shape, Sequence) else []
        square = len(known) in (2, 3) and known[0] == known[1] and known[2:] in ([], [3])
        if not square or not _LEAST_SIDE <= known[0] <= _MOST_SIDE:
            raise InvalidArgument(
                f"shape must be that of a square image with {_LEAST_SIDE} to {_MOST_SIDE} pixels a side: (28, 28), or "
                "(32, 32, 3) for colors.",
                code="wrong-shape",
            )
        if not 1 <= check_count(self.scales, "scales") <= 4 or 2 ** (self.scales + 1) > known[0]:
            raise InvalidArgument(
                "scales must be from 1 to 4, and 2^(scales + 1) at most the side of an image.", code="out-of-range"
            )
        if check_count(self.angles, "angles") > 32:
            raise InvalidArgument("angles must be at most 32.", code="out-of-range")
        return known[0], len(known) == 3

    def fit(self, X: Data, y: Data | None = None) -> Self:
        """Nothing is learned. The shape is checked."""
        side, colors = self._described()
        self.n_features_in_ = side * side * (3 if colors else 1)
        self._pixels(X)
        return self

    def transform(self, X: Data) -> NDArray[np.float32]:
        """The features of each image: images × features."""
        check_is_fitted(self)
        side, colors = self._described()
        images, transform = self._pixels(X), Transform(side, self.scales, self.angles)
        if not colors:
            return transform(images.reshape(-1, side, side))
        images = images.reshape(-1, side, side, 3)
        return np.concatenate([transform(_mixed(images, weights)) for weights in _COLORS.astype(np.float32)], axis=1)

    def _pixels(self, X: Any) -> NDArray[Any]:
        """Rows of pixels. Their type decides whether they are bytes."""
        shape = tuple(self.shape)
        if getattr(X, "ndim", 2) == 1 + len(shape) and tuple(X.shape[1:]) == shape:
            X = X.reshape(len(X), -1)
        bytes_given = str(getattr(X, "dtype", "")) == "uint8"
        rows, _ = table_of(X, self.n_features_in_)
        if rows.shape[1] != self.n_features_in_:
            raise InvalidArgument(
                f"An image of shape {shape} has {self.n_features_in_} pixels, and rows have {rows.shape[1]} columns.",
                code="wrong-shape",
            )
        found = np.asarray(rows, dtype=np.float32)
        return found / np.float32(255) if bytes_given else found


def _mixed(images: NDArray[np.float32], weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """A weighted sum of the three colors, in a fixed order."""
    with np.errstate(all="ignore"):
        return images[..., 0] * weights[0] + images[..., 1] * weights[1] + images[..., 2] * weights[2]
