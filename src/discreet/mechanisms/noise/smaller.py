"""Which noise is smaller: Laplace, or Gaussian where a δ is allowed."""

from __future__ import annotations

from collections.abc import Callable

from discreet.exact.rational import Number
from discreet.guarantees.guarantee import Guarantee
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.protocol import is_pure
from discreet.queries.sensitivity import Norm, Sensitivity


def smaller_noise(
    guarantee: Guarantee, sensitivity: Callable[[Norm], Sensitivity], *, step: Number | None = None
) -> tuple[Laplace | Gaussian, Sensitivity]:
    """The noise with the smaller deviation that keeps a guarantee, and the sensitivity that it is made for.

    `sensitivity` states it in the L1 norm, for Laplace noise, and in the L2 norm, for Gaussian noise.
    """
    plain = sensitivity("L1")
    laplace = Laplace.for_guarantee(guarantee, sensitivity=plain, step=step)
    if is_pure(guarantee):
        return laplace, plain
    square = sensitivity("L2")
    gaussian = Gaussian.for_guarantee(guarantee, sensitivity=square, step=step)
    return (gaussian, square) if gaussian.deviation < laplace.deviation else (laplace, plain)
