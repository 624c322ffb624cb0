"""How far a noisy descent may end from the best weights: before it is run, and from what it released."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

from discreet.exact.rational import Number, exactly, float_up
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.mechanisms.learning.descent.excess_risk import Descended, drift_term
from discreet.mechanisms.noise.laplace import Laplace
from discreet.rows.gradients.examples import row_norm
from discreet.rows.gradients.losses import Loss, Softmax

Average = Literal["last half", "all", "last"]
MOMENTUM_LATER = "descent with momentum has no bound before it is run"


class CertifiedDescent:
    """The bounds on the excess risk of a descent with these settings."""

    loss: Loss | Softmax
    steps: int
    noise: Any
    clip: Number
    dimension: int
    size: Number | None
    counting: Any
    feature_norm: Number
    intercept: bool
    region: Any
    average: Average
    momentum: Number
    sampling: Number | None

    def rate(self, size: float) -> float:
        """The learning rate for this many rows."""
        raise NotImplementedError

    def _first(self) -> int:
        """The index of the first weights that are averaged. The starting point is never one of them."""
        return max(1, {"all": 0, "last half": self.steps // 2, "last": self.steps}[self.average])

    def error(self, confidence: float) -> Accuracy:
        sure = check_confidence(confidence)
        if why := self._uncertified():
            return Accuracy(amount=None, confidence=sure, of="excess risk", reason=why)
        if self.counting is None:
            return Accuracy(amount=self._descended().bound(1 - sure), confidence=sure, of="excess risk")
        size, off = float(exactly(self.size or 0)), float(self.counting.error(1 - (1 - sure) / 10))
        if off >= size:
            return Accuracy(
                amount=None, confidence=sure, of="excess risk", reason="there are too few rows to count them"
            )
        amount = self._descended(1 + off / size).bound(0.9 * (1 - sure)) * size / (size - off)
        return Accuracy(amount=amount, confidence=sure, of="excess risk")

    def gap_error(self, confidence: float, gap: float) -> Accuracy:
        """The better of `error` and of the bound from the drawn noisy gradients. `gap` is in the drawn dict.

        F(w̄) − F* is at most the mean of ⟨∇F(w_t), w_t − w*⟩ over the averaged weights, however they were found. With
        the noisy gradients in its place, this mean is at most `gap`, its largest value over all w* of the region. The
        noise is independent of w_t − w*, which is at most the diameter.
        """
        sure = check_confidence(confidence)
        if self._uncertified() not in ("", MOMENTUM_LATER):
            return self.error(confidence)
        before = self.error(1 - (1 - sure) / 2)
        size, more = float(exactly(self.size or 1)), 1.0
        miss = (1 - sure) / 2
        if self.counting is not None:
            off, miss = float(self.counting.error(1 - miss / 10)), miss * 0.9
            more = size / (size - off) if off < size else math.inf
        known = self._descended()
        amount = (gap + drift_term(known.steps, known.stddev, known.diameter, miss, known.laplace)) * more
        amount = amount if before.amount is None else min(amount, before.amount)
        return Accuracy(amount=amount, confidence=sure, of="excess risk")

    def noise_error(self, confidence: float, size: float) -> Accuracy:
        """What noise adds to `gap_error` if there are this many rows. It is known before anything is drawn."""
        known: Any = self
        return replace(known, size=size).gap_error(confidence, 0.0)  # type: ignore[no-any-return]

    def _uncertified(self) -> str:
        region: Any = self.region
        if math.isinf(region.diameter(self.dimension)):
            return "the weights are not kept in a bounded region"
        if self.average == "last":
            return "the last weights have no bound, an average has"
        if self.size is None:
            return "the number of rows is not known before it is counted"
        if self.sampling is not None:
            return "steps that look at samples have none"
        if isinstance(self.loss, Softmax) and not self._unclipped():
            return "the clip may bind, and clipped gradients of several classes are those of no convex loss"
        return MOMENTUM_LATER if exactly(self.momentum) else ""

    def _unclipped(self) -> bool:
        return float(exactly(self.clip)) >= self.loss.lipschitz * float(row_norm(self.feature_norm, self.intercept))

    def _descended(self, more: float = 1.0) -> Descended:
        """The inputs of the error bound, if there may be `more` times as many rows as `size`."""
        region: Any = self.region
        longest = float_up(row_norm(self.feature_norm, self.intercept))
        whole, size = self.average == "all", float(exactly(self.size or 1))
        return Descended(
            steps=self.steps - self._first() if self.steps > 1 else 1,
            rate=self.rate(size),
            start=region.reach(self.dimension) if whole else region.diameter(self.dimension),
            diameter=region.diameter(self.dimension),
            slope=min(float_up(exactly(self.clip)), self.loss.lipschitz * longest) * more,
            curvature=self.loss.smoothness * longest**2 * more,
            stddev=self.noise.deviation / size,
            dimension=self.dimension,
            laplace=isinstance(self.noise, Laplace),
        )


def best_rate(known: Descended) -> float:
    """The rate with the least expected excess risk by the slope alone: η* = D/√(k(G² + d·s²)) [L10.T2]."""
    return known.start / math.sqrt(known.steps * (known.slope**2 + known.dimension * known.stddev**2))
