"""Additive noise: what Laplace and Gaussian noise have in common."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_positive, exactly, significant
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Guarantee
from discreet.mechanisms.noise.lattice import (
    add_noise,
    as_numbers,
    between,
    check_step,
    from_lattice,
    grain_of,
    step_for,
)
from discreet.mechanisms.protocol import least_noise, meets, plain_sensitivity, tidy
from discreet.queries.sensitivity import Norm, Sensitivity, SensitivityLike
from discreet.rows.containers import Data


@dataclass(frozen=True, kw_only=True, repr=False)
class AdditiveNoise:
    """Independent noise on every coordinate, in integer steps of a public lattice.

    `step` is a power of two. By default it is so fine that the noise looks continuous. `step=1` gives integers.

    A subclass implements `guarantee`, `error` and `_noise`.

    Promise: that of the noise, which each subclass states for the most steps by which one unit can move the answer.
    """

    step: Number | None = None
    size_field: ClassVar[str]
    """The field that holds the size of the noise: "scale" or "stddev"."""
    norm: ClassVar[Norm]
    """The norm in which the noise measures sensitivity."""

    def __post_init__(self) -> None:
        size = check_positive(getattr(self, self.size_field), self.size_field)
        object.__setattr__(self, "step", step_for(size) if self.step is None else check_step(self.step))

    def __repr__(self) -> str:
        step = "" if self._step == step_for(self._size) else f", step={tidy(self._step)!r}"
        return f"{type(self).__name__}({self.size_field}={getattr(self, self.size_field)!r}{step})"

    @property
    def _size(self) -> Fraction:
        return exactly(getattr(self, self.size_field))

    @property
    def _step(self) -> Fraction:
        return exactly(self.step)

    @classmethod
    def _make(cls, size: Fraction, step: Number | None) -> Self:
        return cls(**{cls.size_field: tidy(size)}, step=step)

    @classmethod
    def _least(cls, guarantee: Guarantee, bound: Sensitivity, step: Number | None, start: Fraction) -> Self:
        return least_noise(lambda size: cls._make(size, step), lambda m: meets(m.guarantee(bound), guarantee), start)

    @classmethod
    def for_error(
        cls, amount: Number, *, confidence: float = 0.95, step: Number | None = None, values: int = 1
    ) -> Self:
        """The most noise whose error stays within `amount` with this confidence, for all of `values` numbers at
        once.
        """
        most = check_positive(amount, "amount")
        check_confidence(confidence)
        if step is not None and check_step(step) > most:
            raise InvalidArgument("amount must be at least one step of the lattice.", code="step-does-not-fit")
        # least_noise finds the smallest 1/size that is accurate enough
        return least_noise(
            lambda inverse: cls._make(significant(1 / inverse, up=False), step),
            lambda m: float(m.error(confidence, values=values)) <= most,
            1 / most,
        )

    def guarantee(self, sensitivity: SensitivityLike) -> Guarantee:
        """What a release of an answer with this sensitivity promises, including the rounding to the lattice."""
        raise NotImplementedError

    def error(self, confidence: float, *, values: int = 1) -> Accuracy:
        """Every one of `values` answers is within the amount of the truth with this confidence."""
        raise NotImplementedError

    def _accuracy(self, steps: int, sure: float, values: int) -> Accuracy:
        # an integer on steps of 1 is not rounded; anything else moves by at most half a step
        rounding = 0.0 if self._step == 1 else 0.5
        amount = (steps + rounding) * float(self._step)
        return Accuracy(amount=amount, confidence=sure, of="value" if values == 1 else "every value")

    def sensitivity_for(self, sensitivity: SensitivityLike, value: Data) -> Any:
        """A plain number as a `Sensitivity` in this mechanism's norm, for the public shape and type of `value`. A given
        `Sensitivity` is checked against the shape.
        """
        amount = plain_sensitivity(sensitivity).exact
        array = as_numbers(value)
        if isinstance(sensitivity, Sensitivity):
            if array.size > sensitivity.dimension:
                raise InvalidArgument(
                    f"The sensitivity is stated for {sensitivity.dimension} coordinates, but the answer has "
                    f"{array.size}. State it for {array.size}.",
                    code="sensitivity-wrong-size",
                )
            return sensitivity
        grain = grain_of(array)
        whole = grain is not None and amount.denominator == 1
        return Sensitivity(amount, self.norm, dimension=max(array.size, 1), grain=grain if whole else None)

    def _noise(self, size: int) -> NDArray[Any]:
        raise NotImplementedError

    def _draw(self, value: Any) -> Any:
        array = as_numbers(value)
        return add_noise(array, self._noise(array.size), self._step)

    def _draw_between(self, values: NDArray[Any], low: Fraction, high: Fraction) -> NDArray[Any]:
        """A column of numbers with noise, each from `low` to `high` in integer steps: sensitivity high − low."""
        return from_lattice(between(values, low, high, self._step) + self._noise(len(values)), self._step)
