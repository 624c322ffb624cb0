"""The same noise for several arrays that have one sensitivity together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from discreet.errors import InvalidArgument
from discreet.guarantees.accuracy import Accuracy
from discreet.guarantees.guarantee import Guarantee
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.noise.lattice import as_numbers
from discreet.queries.sensitivity import SensitivityLike
from discreet.rows.containers import Data


@dataclass(frozen=True, kw_only=True)
class JointNoise:
    """Adds noise to several arrays, as if they were one long array.

    Promise: that of the noise, for a sensitivity that is stated for all numbers of all arrays together.
    Error: of one number.
    """

    noise: Laplace | Gaussian

    def __post_init__(self) -> None:
        if not isinstance(self.noise, Laplace | Gaussian):
            raise InvalidArgument("noise must be Laplace or Gaussian.", code="part-does-not-fit")

    def guarantee(self, sensitivity: SensitivityLike) -> Guarantee:
        return self.noise.guarantee(sensitivity)

    @classmethod
    def for_guarantee(
        cls, guarantee: Guarantee, *, sensitivity: SensitivityLike, noise: type[Laplace] | type[Gaussian] = Laplace
    ) -> Self:
        """The least noise that keeps a guarantee."""
        return cls(noise=noise.for_guarantee(guarantee, sensitivity=sensitivity))

    def error(self, confidence: float) -> Accuracy:
        return self.noise.error(confidence)

    def check(self, value: Data) -> None:
        """Refuse what is no sequence of arrays of numbers. Only shape and type decide."""
        if not isinstance(value, Sequence) or isinstance(value, str | bytes) or not value:
            raise InvalidArgument("Give several arrays of numbers, as a list.", code="wrong-shape")
        for part in value:
            as_numbers(part)

    def _draw(self, value: Sequence[Any]) -> list[Any]:
        self.check(value)
        parts = [np.asarray(part) for part in value]
        whole = np.concatenate([part.reshape(-1) for part in parts])
        noisy = np.asarray(self.noise._draw(whole))
        ends = np.cumsum([part.size for part in parts])[:-1]
        return [part.reshape(of.shape) for part, of in zip(np.split(noisy, ends), parts, strict=True)]
