"""Rows that stay on the GPU: the same sums as `Examples`, in one fused pass that reads every row once."""

from __future__ import annotations

import importlib.util
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.exact.rational import Number, exactly
from discreet.rows.arrays import namespace, scaled
from discreet.rows.gradients.examples import Examples, PlainRows, unit_of
from discreet.rows.gradients.kernels import MOST_COLUMNS, FusedPass
from discreet.rows.gradients.losses import Huber, HuberHinge, Logistic, Loss, Pinball, Poisson, Softmax


def examples_of(features: Any, targets: Any, **kept: Any) -> Examples | OnGpu:
    """Rows on their own device: with the fused pass if it supports them, otherwise with matrix products."""
    return OnGpu(features, targets, **kept) if _fits(features) else Examples(features, targets, **kept)


def _fits(features: Any) -> bool:
    if type(features).__module__.partition(".")[0] != "torch" or not features.is_cuda:
        return False
    narrow = features.ndim == 2 and 1 <= features.shape[1] <= MOST_COLUMNS
    return narrow and str(features.dtype) in _PRECISIONS and importlib.util.find_spec("triton") is not None


_PRECISIONS = ("torch.float32", "torch.bfloat16")


class OnGpu:
    """Rows of features on a GPU with their targets. The arguments are those of `Examples`.

    For several classes and for samples of the rows, `Examples` on the same device are used, created when needed.
    """

    large = False

    def __init__(
        self,
        features: Any,
        targets: Any,
        *,
        feature_norm: Number = 1,
        intercept: bool = True,
        offset: Any = None,
        scale: Any = None,
        most: float | None = None,
    ) -> None:
        torch, rows = namespace(features), features
        if offset is not None:
            rows = scaled(rows, offset, scale, most).to(torch.float32)
        rows = rows.contiguous()
        self._rows = rows if rows.data_ptr() % 16 == 0 else rows.clone()
        self._goal = torch.as_tensor(targets, dtype=torch.float32, device=rows.device).contiguous().clone()
        self.intercept, self.norm = bool(intercept), feature_norm
        self.count, self.columns = map(int, rows.shape)
        self._fast: tuple[Any, FusedPass] | None = None
        self._plain: Examples | None = None

    def __repr__(self) -> str:
        return f"<OnGpu, rows of {self.columns} features>"

    @property
    def dimension(self) -> int:
        """How many weights a score has, the intercept's included."""
        return self.columns + self.intercept

    def sums(self, weights: NDArray[np.float64], loss: Loss | Softmax, clip: Number) -> NDArray[Any]:
        """Σ clipped gradients, as whole numbers of `unit_of(clip)`: the promise of `Examples.sums`."""
        if isinstance(loss, Softmax) or not _moderate(clip, self.norm, *_describe(loss).values()):
            return self._slow().sums(weights, loss, clip)
        if np.abs(weights).max(initial=0) > 2.0**100:
            return self._slow().sums(weights, loss, clip)
        if self._fast is None or self._fast[0] != (loss, clip):
            fast = FusedPass(
                self._rows,
                self._goal,
                clip=clip,
                feature_norm=self.norm,
                intercept=self.intercept,
                **_describe(loss),
            )
            self._fast = (loss, clip), fast
        fast = self._fast[1]
        total, constant = fast.sums(weights[: self.columns], float(weights[-1]) if self.intercept else 0.0)
        whole = np.append(total, constant) if self.intercept else total
        return whole.astype(object) * int(fast.unit / unit_of(clip))

    def judged(self, weights: NDArray[np.float64], judge: Any) -> int:
        """As `Examples.judged`."""
        return self._slow().judged(weights, judge)

    def plain(self) -> PlainRows:
        """As `Examples.plain`."""
        return self._slow().plain()

    def sample(self, chosen: NDArray[np.bool_]) -> Examples:
        """The chosen rows only."""
        return self._slow().sample(chosen)

    def _slow(self) -> Examples:
        if self._plain is None:
            self._plain = Examples(self._rows, self._goal, feature_norm=self.norm, intercept=self.intercept)
        return self._plain


def _moderate(*values: Any) -> bool:
    """Whether the fused pass supports all numbers, and products with the weights fit its floats."""
    return all(isinstance(value, str) or Fraction(1, 2**40) <= exactly(value) <= 2**40 for value in values)


def _describe(loss: Any) -> dict[str, Any]:
    """The name and parameters of a loss for the fused pass."""
    match loss:
        case Logistic():
            return {"loss": "logistic"}
        case HuberHinge():
            return {"loss": "huber_hinge", "smoothing": loss.smoothing}
        case Huber():
            return {"loss": "huber", "threshold": loss.threshold}
        case Pinball():
            return {"loss": "pinball", "quantile": loss.quantile, "smoothing": loss.smoothing}
        case Poisson():
            return {"loss": "poisson", "most": loss.most}
    raise TypeError(f"There is no fused pass for {type(loss).__name__}.")
