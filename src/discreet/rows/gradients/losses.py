"""Losses of generalized linear models: convex in the score z = x·w, each with bounds on its slope and curvature.

The gradient of one row is `derivative(z, y)·x`, so a sum of clipped gradients is two products with the matrix of rows,
and no gradient of a single row is stored. Every function works elementwise, so that the contribution of a row depends
on that row alone. Arrays may be numpy, torch or cupy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_positive, exactly
from discreet.rows.arrays import flags_to_numbers, namespace


class Loss(Protocol):
    """A convex function of a score and a target."""

    @property
    def lipschitz(self) -> float:
        """The largest absolute value of `derivative`. Infinite if only the clip bounds it."""

    @property
    def smoothness(self) -> float:
        """The largest second derivative. Infinite if the slope jumps."""

    def value(self, z: Any, y: Any) -> Any:
        """The loss of scores against targets."""

    def derivative(self, z: Any, y: Any) -> Any:
        """Its slope in the score."""

    def second(self, z: Any, y: Any) -> Any:
        """Its curvature in the score."""


@dataclass(frozen=True)
class Logistic:
    """ln(1 + e^z) − y·z, where y is 0 or 1."""

    lipschitz: ClassVar[float] = 1.0
    smoothness: ClassVar[float] = 0.25

    def value(self, z: Any, y: Any) -> Any:
        xp = namespace(z)
        return xp.log1p(xp.exp(-xp.abs(z))) + xp.clip(z, 0, None) - y * z

    def derivative(self, z: Any, y: Any) -> Any:
        return _sigmoid(z) - y

    def second(self, z: Any, y: Any) -> Any:
        likely = _sigmoid(z)
        return likely * (1 - likely)


def _sigmoid(z: Any) -> Any:
    xp = namespace(z)
    return 1 / (1 + xp.exp(-xp.clip(z, -700, 700)))


@dataclass(frozen=True)
class HuberHinge:
    """The hinge max(0, 1 − m) of the margin m = y·z, where y is −1 or 1, smoothed within `smoothing` of its corner."""

    smoothing: Number = 0.5
    lipschitz: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        check_positive(self.smoothing, "smoothing")

    @property
    def _width(self) -> float:
        return float(exactly(self.smoothing))

    @property
    def smoothness(self) -> float:
        return 1 / (2 * self._width) * (1 + 1e-15)

    def value(self, z: Any, y: Any) -> Any:
        xp, short = namespace(z), 1 - y * z
        inside = xp.clip(short + self._width, 0, 2 * self._width)
        return inside**2 / (4 * self._width) + xp.clip(short - self._width, 0, None)

    def derivative(self, z: Any, y: Any) -> Any:
        return -y * namespace(z).clip((1 - y * z + self._width) / (2 * self._width), 0, 1)

    def second(self, z: Any, y: Any) -> Any:
        return flags_to_numbers(namespace(z).abs(1 - y * z) < self._width, z) / (2 * self._width)


@dataclass(frozen=True)
class Huber:
    """Half the squared error, linear beyond `threshold`."""

    threshold: Number = 1.0
    smoothness: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        check_positive(self.threshold, "threshold")

    @property
    def lipschitz(self) -> float:
        return float(exactly(self.threshold))

    def value(self, z: Any, y: Any) -> Any:
        xp = namespace(z)
        off = xp.abs(z - y)
        inside = xp.clip(off, 0, self.lipschitz)
        return inside**2 / 2 + self.lipschitz * (off - inside)

    def derivative(self, z: Any, y: Any) -> Any:
        return namespace(z).clip(z - y, -self.lipschitz, self.lipschitz)

    def second(self, z: Any, y: Any) -> Any:
        return flags_to_numbers(namespace(z).abs(z - y) < self.lipschitz, z)


@dataclass(frozen=True)
class Pinball:
    """The quantile loss: q per unit if the target is above the score, 1 − q if below, smoothed within `smoothing`."""

    quantile: Number = 0.5
    smoothing: Number = 0.01

    def __post_init__(self) -> None:
        check_positive(self.smoothing, "smoothing")
        if not 0 < exactly(self.quantile, "quantile") < 1:
            raise InvalidArgument("quantile must lie strictly between 0 and 1, such as 0.5.", code="out-of-range")

    @property
    def _level(self) -> float:
        return float(exactly(self.quantile))

    @property
    def _width(self) -> float:
        return float(exactly(self.smoothing))

    @property
    def lipschitz(self) -> float:
        return max(self._level, 1 - self._level)

    @property
    def smoothness(self) -> float:
        return 1 / (2 * self._width) * (1 + 1e-15)

    def value(self, z: Any, y: Any) -> Any:
        xp, above = namespace(z), z - y
        inside = xp.clip(above + self._width, 0, 2 * self._width)
        return inside**2 / (4 * self._width) + xp.clip(above - self._width, 0, None) - self._level * above

    def derivative(self, z: Any, y: Any) -> Any:
        return namespace(z).clip((z - y + self._width) / (2 * self._width), 0, 1) - self._level

    def second(self, z: Any, y: Any) -> Any:
        return flags_to_numbers(namespace(z).abs(z - y) < self._width, z) / (2 * self._width)


@dataclass(frozen=True)
class Poisson:
    """e^z − y·z for counts y from 0 to `most`. It is linear where the rate e^z would exceed `most`."""

    most: Number

    def __post_init__(self) -> None:
        check_positive(self.most, "most")

    @property
    def lipschitz(self) -> float:
        return float(exactly(self.most))

    @property
    def smoothness(self) -> float:
        return self.lipschitz

    def value(self, z: Any, y: Any) -> Any:
        xp, edge = namespace(z), math.log(self.lipschitz)
        inside = xp.clip(z, None, edge)
        return xp.exp(inside) + self.lipschitz * (z - inside) - y * z

    def derivative(self, z: Any, y: Any) -> Any:
        return self._rate(z) - y

    def second(self, z: Any, y: Any) -> Any:
        return self._rate(z) * flags_to_numbers(z < math.log(self.lipschitz), z)

    def _rate(self, z: Any) -> Any:
        xp = namespace(z)
        return xp.clip(xp.exp(xp.clip(z, -700, 700)), 0, self.lipschitz)


@dataclass(frozen=True)
class Softmax:
    """The cross-entropy of `classes` scores against the index y of the correct class."""

    classes: int
    lipschitz: ClassVar[float] = math.sqrt(2) * (1 + 1e-15)
    smoothness: ClassVar[float] = 0.5

    def residuals(self, scores: Any, y: Any) -> Any:
        """The slopes, classes × rows: P[class], minus 1 for the correct one. Computed class by class, so rows are
        independent.
        """
        xp = namespace(scores)
        top = scores[0]
        for row in scores[1:]:
            top = xp.where(row > top, row, top)
        weights = xp.exp(xp.clip(scores - top, -700, 0))
        total = weights[0] + 0
        for row in weights[1:]:
            total = total + row
        for number in range(self.classes):
            weights[number] = weights[number] / total - flags_to_numbers(y == number, scores)
        return weights
