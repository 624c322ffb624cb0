"""A generalized linear model as the minimizer of its loss with a random linear term. There are no steps to tune."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import (
    Number,
    check_count,
    check_positive,
    exactly,
    float_up,
    log_bounds,
    significant,
    sqrt_up,
)
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Approx, Guarantee, Pure, Renyi
from discreet.guarantees.privacy_loss.compose import LossDistribution, compose
from discreet.guarantees.unit import Unit
from discreet.mechanisms.learning.minimizers.certified_minimum import Problem, SmoothLoss, minimum
from discreet.mechanisms.learning.minimizers.minimizer_pair import FAR, MinimizerPair
from discreet.mechanisms.learning.minimizers.ridge_choice import (
    OUTPUT,
    PURE_OUTPUT,
    PureSplit,
    best_ridge,
    least_stddev,
)
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.noise.norm_gamma import NormGamma
from discreet.mechanisms.protocol import (
    TAUGHT,
    TIGHT,
    check_calibration,
    for_rows,
    is_pure,
    least_noise,
    meets,
    rows_in,
    rows_moved,
    tidy,
)
from discreet.queries.sensitivity import Sensitivity, SensitivityLike
from discreet.rows.containers import Data

MOST_ROWS = 2**27
"""The default bound on the number of rows. The error of the arithmetic, and so the output noise, grows with it."""


@dataclass(frozen=True, kw_only=True)
class ObjectivePerturbation:
    """Releases the weights w that minimize Σ loss(x·w, y) + (ridge/2)‖w‖² + b·w over the rows, for a random b.

    Rows are shortened to `row_norm`, including the column of an intercept. Rows that are not finite count as zeros.
    Targets are clipped to `targets`. The value is anything with an array `X` of `dimension` columns and an array `y`. A
    steep wall keeps the weights within about `radius`. `most_rows` is a public bound on the number of rows.

    Promise: the density of w is that of b = −∇(w) times the determinant of the Hessian. One row x with slope ℓ' moves b
    by ℓ'·x at each w, and multiplies the determinant by 1 + ℓ''·xᵗH⁻¹x, which is between 1 and 1 + β/ridge. Only the
    part of b along x matters. It is a normal number Z, and ℓ' falls in Z because the loss is convex. So with μ =
    L/stddev, the privacy loss is at most ln(1 + β/ridge) + max(0, μZ + μ²/2) for the data with the row against those
    without it, and μ|Z| + μ²/2 the other way around. For `NormGamma` it is at most L/scale + ln(1 + β/ridge). The
    released weights are the minimizer that arithmetic can certify, within a fixed distance of the true one, plus output
    noise for twice that distance. Both guarantees compose.
    Error: the mean loss is within (ridge·‖w₀‖ + ‖b‖)²/(4·ridge·size) of that of any w₀ within the radius, plus a small
    term for the output noise.
    Source: Chaudhuri-Monteleoni-Sarwate 2011; Redberg-Koskela-Wang 2023, whose curve is 2·δ(ε − |ln(1 − β/ridge)|). It
    is sharpened here by the sign of ℓ' and by H ⪰ ridge + ℓ''xxᵗ.
    """

    loss: SmoothLoss
    dimension: int
    ridge: Number
    noise: Gaussian | NormGamma
    output: Gaussian | Laplace
    row_norm: Number = 1
    radius: Number | None = None
    targets: tuple[Number, Number] = (-1, 1)
    most_rows: int = MOST_ROWS

    def __post_init__(self) -> None:
        _check_loss(self.loss)
        check_count(self.dimension, "dimension")
        for name in ("ridge", "row_norm"):
            check_positive(getattr(self, name), name)
        if check_count(self.most_rows, "most_rows") * self.dimension > 2**40:
            raise InvalidArgument("most_rows times dimension must be at most 2^40.", code="too-large")
        if not isinstance(self.targets, tuple) or len(self.targets) != 2:
            raise InvalidArgument(
                "targets must be the least and the largest target, such as (-1, 1).", code="wrong-type"
            )
        if exactly(self.targets[0], "targets") >= exactly(self.targets[1], "targets"):
            raise InvalidArgument("The least target must be below the largest.", code="ends-out-of-order")
        pair = (type(self.noise), type(self.output))
        if pair not in ((Gaussian, Gaussian), (NormGamma, Laplace)):
            raise InvalidArgument(
                "noise and output must be Gaussian and Gaussian, or NormGamma and Laplace.", code="part-does-not-fit"
            )
        if self.radius is None:
            farthest = max(Fraction(1), *(abs(exactly(end)) for end in self.targets))
            object.__setattr__(self, "radius", tidy(64 * farthest / exactly(self.row_norm)))
        check_positive(self.radius, "radius")
        if exactly(self.ridge) * 2**40 < self.most_rows * self._problem.curvature:
            raise InvalidArgument(
                "ridge is too small for this number of rows. Increase it, or lower most_rows.", code="ridge-too-small"
            )
        self._distance  # noqa: B018 (refuses what cannot be certified)

    @cached_property
    def _problem(self) -> Problem:
        low, high = self.targets
        return Problem(
            self.loss,
            self.dimension,
            exactly(self.row_norm),
            exactly(self.ridge),
            exactly(self.radius),
            (exactly(low), exactly(high)),
            self.most_rows,
        )

    @property
    def _slope(self) -> Fraction:
        return self._problem.lipschitz * self._problem.row_norm

    @cached_property
    def _distance(self) -> Fraction:
        """How far the computed weights may be from the true minimizer, before the output noise."""
        return self._problem.distance((self.dimension + 1) * exactly(self.noise.step))

    @property
    def _moved(self) -> Sensitivity:
        """How far the computed weights of two neighbors may be apart if their true minimizers are the same."""
        return Sensitivity(2 * self._distance, "L2", None, self.dimension)

    def sensitivity(self, unit: Unit, rows_per_person: int = 1) -> Sensitivity:
        """How many rows one unit can add, remove or replace."""
        return rows_moved(unit, rows_per_person)

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        """For one added or removed row. For another unit, give `m.sensitivity(unit, rows_per_person)`."""
        bound = rows_in(sensitivity)
        rows = check_count(bound.exact, "The rows of one unit")
        changed = rows * (2 if bound.replaced else 1)
        if isinstance(self.noise, NormGamma):
            # for replaced rows, the ratio of the determinants is that of one side only
            epsilon = changed * self._slope / exactly(self.noise.scale) + rows * self._jacobian()
            parts = [Pure(epsilon=epsilon, protects=bound.unit), self.output.guarantee(self._moved)]
            return for_rows(compose(parts))
        pair = replace(self._pair(), rows=changed)
        return for_rows(LossDistribution(factors=((pair, 1),), protects=bound.unit))

    def _jacobian(self) -> Fraction:
        return log_bounds(1 + self._problem.curvature / self._problem.ridge)[1]

    def _pair(self) -> MinimizerPair:
        assert isinstance(self.noise, Gaussian)
        assert isinstance(self.output, Gaussian)
        squared = self._moved.squared_in_steps(exactly(self.output.step))
        output = math.sqrt(squared / self.output._variance) * (1 + 1e-15)
        # the mass at a lattice point is that of its cell up to a factor e^(r²/24v) within r standard deviations
        part = sum(((FAR + output) ** 2 + 1) / (12 * float(noise._variance)) for noise in (self.noise, self.output))
        return MinimizerPair(
            float_up(self._slope / exactly(self.noise.stddev)) * (1 + 1e-15),
            output,
            float_up(self._jacobian()),
            1.05 * self.dimension * part,
            self.dimension,
        )

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        loss: SmoothLoss,
        dimension: int,
        row_norm: Number = 1,
        ridge: Number | None = None,
        norm: Number | None = None,
        unit: Unit | None = None,
        rows_per_person: int = 1,
        calibration: str = TIGHT,
        **others: Any,
    ) -> Self:
        """The least noise that keeps `guarantee`: Gaussian for Approx and Renyi, NormGamma for Pure.

        A larger ridge needs less noise. The default ridge is the one with the least error bound for weights of `norm`
        (5/row_norm by default, for scores up to 5): the least (ridge·norm + ‖b‖)²/(4·ridge), where ‖b‖ is about
        √dimension·stddev or dimension·scale. It depends on public numbers only.

        Taught, for Pure and replaced rows: scale = 2L/ε' with ε' = ε − 2 ln(1 + β/ridge). If that is not above 0, ridge
        = β/(e^{ε/4} − 1) and ε' = ε/2. Output noise is added to it.
        """
        check_calibration(calibration)
        _check_loss(loss)
        bound = rows_in(None) if unit is None else rows_moved(unit, rows_per_person)
        fixed = others | {"loss": loss, "dimension": check_count(dimension, "dimension"), "row_norm": row_norm}
        length = check_positive(row_norm, "row_norm")
        slope = Fraction(float(loss.lipschitz)) * length
        curve = Fraction(float(loss.smoothness)) * length**2
        wanted = 5 / length if norm is None else check_positive(norm, "norm")
        given = None if ridge is None else check_positive(ridge, "ridge")
        if type(guarantee) is Pure:
            if calibration == TAUGHT and bound.exact != 1:
                raise InvalidArgument(
                    "The formula of the documents is for one row per person. Use calibration='tight'.",
                    code="formula-does-not-apply",
                )
            pure = PureSplit(exactly(guarantee.epsilon), slope, curve, bound, wanted * Fraction(1, dimension))
            kept, scale = pure.taught(given) if calibration == TAUGHT else pure.tight(given)
            made = cls(ridge=tidy(kept), noise=NormGamma(scale=tidy(scale)), output=Laplace(scale=1), **fixed)
            moved = made._moved
            spent = Pure(epsilon=exactly(guarantee.epsilon) * PURE_OUTPUT)
            return replace(made, output=Laplace.for_guarantee(spent, sensitivity=moved))
        if calibration == TAUGHT or not isinstance(guarantee, Approx | Renyi):
            raise InvalidArgument(
                "Objective perturbation is calibrated for Pure, Approx and Renyi, and as taught for Pure. Ask for "
                "one of them.",
                code="guarantee-not-supported",
            )
        if is_pure(guarantee):
            raise InvalidArgument(
                "Gaussian linear terms cannot keep ε alone. Ask for Pure(epsilon=…), or give a delta.",
                code="needs-delta",
            )
        kept = given or best_ridge(guarantee, slope, curve, bound, wanted / sqrt_up(Fraction(dimension)))
        if log_bounds(1 + curve / kept)[1] * bound.exact >= exactly(guarantee.epsilon):
            raise InvalidArgument(
                "No noise keeps this guarantee with this ridge: ln(1 + β/ridge) must be below ε. Increase ridge.",
                code="ridge-too-small",
            )

        def make(stddev: Fraction) -> Any:
            noise = Gaussian(stddev=tidy(stddev))
            first = cls(ridge=tidy(kept), noise=noise, output=noise, **fixed)
            output = significant(2 * first._distance * OUTPUT * stddev / slope, up=True)
            return replace(first, output=Gaussian(stddev=tidy(output)))

        start = significant(least_stddev(guarantee, slope, curve, bound, kept), up=True, digits=10)
        return least_noise(make, lambda m: meets(m.guarantee(bound), guarantee), start)  # type: ignore[no-any-return]

    def error(self, confidence: float, *, size: Any = None, norm: Any = None) -> Accuracy:
        """How far the mean loss of `size` rows may be above that of the best weights of `norm` (by default `radius`).

        The loss is convex, so loss(w) − loss(w₀) ≤ (ridge·w + b)·(w₀ − w) ≤ ‖ridge·w₀ + b‖²/(4·ridge).
        """
        sure = check_confidence(confidence)
        if size is None:
            return Accuracy(amount=None, confidence=sure, of="excess risk", reason="the number of rows is not given")
        rows, longest = (
            float(check_positive(size, "size")),
            float(check_positive(self.radius if norm is None else norm, "norm")),
        )
        if norm is not None and exactly(norm) > exactly(self.radius):
            raise InvalidArgument("norm must be at most the radius within which weights are held.", code="out-of-range")
        linear = _length(self.noise, self.dimension, (1 - sure) / 2)
        if linear > 7 * self.most_rows * float(self._slope):
            return Accuracy(
                amount=None, confidence=sure, of="excess risk", reason="the noise may reach beyond the wall"
            )
        ridge = float(exactly(self.ridge))
        off = float(self._distance) + _length(self.output, self.dimension, (1 - sure) / 2)
        amount = (ridge * longest + linear) ** 2 / (4 * ridge * rows) + float(self._slope) * off
        return Accuracy(amount=amount * (1 + 1e-9), confidence=sure, of="excess risk")

    def sizes(self, value: Data) -> dict[str, int]:
        """Empty, because `error` needs no sizes. Raises, before anything is charged, if the rows have the wrong
        shape.
        """
        self._problem.checked(value)
        return {}

    def _draw(self, value: Any) -> NDArray[np.float64]:
        step = exactly(self.noise.step)
        linear = [int(k) * step for k in self.noise._noise(self.dimension)]
        return np.asarray(self.output._draw(minimum(self._problem, value, linear)))


def _check_loss(loss: Any) -> None:
    for name in ("derivative", "second"):
        if not callable(getattr(loss, name, None)):
            raise InvalidArgument(
                "loss must be a loss of one score with a derivative and a second, such as Logistic().",
                code="unsuitable-loss",
            )
    for name in ("lipschitz", "smoothness"):
        if not 0 < float(getattr(loss, name, math.inf)) < math.inf:
            raise InvalidArgument(
                f"loss must have a finite {name} above 0, for a smooth loss of bounded slope.", code="unsuitable-loss"
            )


def _length(noise: Gaussian | Laplace | NormGamma, dimension: int, miss: float) -> float:
    """The bound that the norm of the noise exceeds with at most this probability, including the lattice."""
    from scipy.special import chdtri, gammainccinv

    lattice = (dimension + 1) * float(exactly(noise.step))
    if isinstance(noise, Gaussian):
        return float(exactly(noise.stddev)) * math.sqrt(float(chdtri(dimension, miss))) * (1 + 1e-9) + lattice
    # the sum of absolute Laplace numbers is also a Gamma number, and at least their norm
    return float(exactly(noise.scale)) * float(gammainccinv(dimension, miss)) * (1 + 1e-9) + lattice
