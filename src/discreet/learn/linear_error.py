"""How far least squares from noisy moments may be from those without noise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.exact.rational import exactly
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.learn.automatic import within_ranges
from discreet.learn.base import Planned, check_is_fitted
from discreet.learn.noisy_equations import largest_eigenvalue, longest_noise
from discreet.mechanisms.learning.moments import PARTS, Moments

Floats = NDArray[np.float64]


class CertifiedLeastSquares(Planned):
    """The bounds on what noise did to a fitted regression: with confidence, and without any priors."""

    target_range_: tuple[float, float]
    _weights: Floats
    _widest: float

    def _ridge(self) -> float:
        return 0.0

    def _scales_target(self) -> bool:
        """Whether targets are scaled from a range to [−1, 1]."""
        raise NotImplementedError

    def _target_scale(self) -> tuple[float, float]:
        """The middle of the target's range, and what 1 means in the moments: half of the range if it is scaled."""
        low, high = self.target_range_
        return (low / 2 + high / 2, high / 2 - low / 2) if self._scales_target() else (0.0, 1.0)

    def _size(self) -> float:
        return float(self.release_.value["count"] if self.n_samples is None else self.n_samples)

    def error(self, confidence: float = 0.95) -> Accuracy:
        """How far the mean squared error on the clipped training rows may be above that of the best linear model.

        The constant model is linear, too: so a fit is worse than that by at most this much. With A, b and w as in
        `coefficient_error`, n times the excess is (w − w*)ᵀA(w − w*), at most ‖A(w − w*)‖² over A's least eigenvalue.
        It is also at most wᵀAw − 2wᵀb + Σy², the error of w itself, and at most that of predictions at the wrong end.
        """
        check_is_fitted(self)
        sure = check_confidence(confidence)
        square, product, weights, wrong_square, wrong_product = self._equations(1 - sure)
        plan: Any = within_ranges(self.release_._mechanism)
        bound, length = float(exactly(plan.target_bound)), float(np.linalg.norm(weights))
        # every row adds at most the squared norm to the trace, twice with an intercept, whose feature is as long
        most = float(exactly(plan.feature_norm)) ** 2 * (2 if self.fit_intercept else 1)
        size = max((float(np.trace(square)) - len(square) * wrong_square) / most, 1.0)
        if self.n_samples is not None:
            size = float(self.n_samples)
        own = float(weights @ square @ weights - 2 * weights @ product)
        own += wrong_square * length**2 + 2 * wrong_product * length
        amounts = [4 * bound**2, bound**2 + max(own, 0.0) / size]
        if (least := float(np.linalg.eigvalsh(square)[0]) - wrong_square) > 0:
            gap = float(np.linalg.norm(square @ weights - product)) + wrong_square * length + wrong_product
            amounts.append(gap**2 / least / size)
        amount = max(min(amounts), 0.0) * self._target_scale()[1] ** 2
        return Accuracy(amount=amount * (1 + 1e-9), confidence=sure, of="excess risk")

    def coefficient_error(self, confidence: float = 0.95) -> Accuracy:
        """How far all coefficients together may be, in the L2 norm, from those that the same clipped rows give without
        noise.

        Whatever w is, A(w − w*) = (A~w − b~) − (E·w − e) for the noise E and e of A~ and b~, whose size is bounded
        with this confidence: so the length of w − w* is at most that of the right side over A's least eigenvalue.
        """
        check_is_fitted(self)
        sure = check_confidence(confidence)
        square, product, weights, wrong_square, wrong_product = self._equations(1 - sure)
        least = float(np.linalg.eigvalsh(square)[0]) - wrong_square
        if least <= 0:
            why = "the noise is as large as some direction's part of the features: more rows, or a larger epsilon"
            return Accuracy(amount=None, confidence=sure, of="norm", reason=why)
        gap = float(np.linalg.norm(square @ weights - product))
        amount = (gap + wrong_square * float(np.linalg.norm(weights)) + wrong_product) / least
        return Accuracy(amount=amount * self._widest * (1 + 1e-9), confidence=sure, of="norm")

    def _equations(self, miss: float) -> tuple[Floats, Floats, Floats, float, float]:
        """A, b and w of the released equations, with the intercept first, and the errors of A and b."""
        plan: Any = within_ranges(self.release_._mechanism)
        given, noise, d = self.release_.value, deviations_of(plan), plan.features
        square, product = np.asarray(given["square"]) + self._ridge() * np.eye(d), np.asarray(given["product"])
        each = miss / len(noise)
        wrong_square = largest_eigenvalue(d, noise["square"], each)
        wrong_product = longest_noise(d, noise["product"], each)
        if not self.fit_intercept:
            return square, product, self._weights[1:], wrong_square, wrong_product
        constant = float(exactly(plan.feature_norm))  # the feature of an intercept, as long as a row
        edge = constant * np.asarray(given["sum"])
        square = np.block([[np.array([[self._size() * constant**2]]), edge[None, :]], [edge[:, None], square]])
        product = np.concatenate([[constant * given["target"]], product])
        weights = self._weights / np.concatenate([[constant], np.ones(d)])
        wrong_count = longest_noise(1, noise.get("count", 0.0), each) * constant**2
        wrong_square = max(wrong_square, wrong_count) + constant * longest_noise(d, noise["sum"], each)
        wrong_product = math.hypot(wrong_product, constant * longest_noise(1, noise["target"], each))
        return square, product, weights, wrong_square, wrong_product


def deviations_of(plan: Moments) -> dict[str, float]:
    """The noise of each released part."""
    return {part: float(exactly(getattr(plan, part))) for part in PARTS if getattr(plan, part) is not None}


def noise_after_centering(noise: dict[str, float], features: int, center: float, level: float) -> dict[str, float]:
    """The noise that remains in the moments around noisy means. `center` is the squared length of the mean row."""
    count = noise.get("count", 0.0)
    square = noise["square"] ** 2 + 4 * center * noise["sum"] ** 2 / features
    square += 2 * (count * center) ** 2 / (features * (features + 1))
    product = noise["product"] ** 2 + (level * noise["sum"]) ** 2
    product += center * (noise["target"] ** 2 + (level * count) ** 2) / features
    return {"square": math.sqrt(square), "product": math.sqrt(product)}
