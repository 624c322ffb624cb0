"""The law of a weighted sum of noises: as wide as it is, and hardly wider."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri

import discreet as dp
from discreet.sql.estimates import law
from discreet.sql.estimates.law import SumLaw

LAPLACE = [dp.Laplace(scale=scale, step=1) for scale in (20, 7, 3, 1.5)]
DESIGNS: dict[str, Any] = {
    "two small noises": ([1.0, 1.0], [dp.Laplace(scale=1, step=1)] * 2),
    "hardly any noise": ([0.9, 0.1, 0.05], [dp.Laplace(scale=0.3, step=1)] * 3),
    "one large and one small": ([1.0, 0.001], [dp.Laplace(scale=5, step=1)] * 2),
    "thirty equal ones": ([0.3] * 30, [dp.Laplace(scale=5, step=1)] * 30),
    "of both kinds": ([0.5, -0.5, 0.2], [LAPLACE[0], dp.Gaussian(stddev=15), dp.Gaussian(stddev=0.4, step=1)]),
    "all different": ([0.7, -0.2, 0.4, 1.1], LAPLACE),
}
CONFIDENCES = (0.5, 0.9, 0.95, 0.99)
DRAWS = 200_000


def drawn(weights: Any, noises: Any, draws: int) -> Any:
    """Sums of noises as they are drawn."""
    total = np.zeros(draws)
    for weight, noise in zip(weights, noises, strict=True):
        total += weight * float(noise._step) * np.asarray(noise._noise(draws), dtype=np.float64)
    return total


def check_coverage(name: str, draws: int = DRAWS) -> None:
    """A sum is inside as often as it is said: fewer than once in 10^6 runs, a right law is refused. A law that is 2%
    too narrow is seen.
    """
    weights, noises = DESIGNS[name]
    found, sums = SumLaw.of(weights, noises), np.abs(drawn(weights, noises, draws))
    for confidence in CONFIDENCES:
        width = found.half_width(confidence)
        inside = float((sums <= width + 1e-12).mean())
        assert inside >= confidence - 5 * math.sqrt(confidence * (1 - confidence) / draws), (name, confidence)
        narrower = float((sums <= width - 0.06 * found.deviation).mean())
        assert narrower <= confidence + 5 * math.sqrt(confidence * (1 - confidence) / draws) + 0.005, (name, confidence)


@pytest.mark.parametrize("name", DESIGNS)
def test_a_sum_is_inside_as_often_as_it_is_said(name: str) -> None:
    check_coverage(name)


def test_a_law_by_its_variance_alone_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The width of a Gaussian noise of the same variance is too narrow for heavy tails."""
    monkeypatch.setattr(
        law.SumLaw, "half_width", lambda self, confidence: self.deviation * float(ndtri((1 + confidence) / 2))
    )
    with pytest.raises(AssertionError):
        check_coverage("one large and one small")


@pytest.mark.parametrize("scale", [0.2, 1, 10, 1e9])
def test_one_noise_has_its_own_law(scale: float) -> None:
    noise = dp.Laplace(scale=scale, step=1)
    assert SumLaw.of([-2.0, 0.0], [noise, noise]).half_width(0.95) == 2 * float(noise.error(0.95))


def test_no_noise_has_no_width() -> None:
    assert SumLaw.of([], []).half_width(0.99) == 0
    assert SumLaw.of([0.0], [dp.Laplace(scale=3, step=1)]).half_width(0.99) == 0


@pytest.mark.parametrize("name", DESIGNS)
def test_what_is_within_is_what_is_wide_enough(name: str) -> None:
    found = SumLaw.of(*DESIGNS[name])
    for confidence in CONFIDENCES:
        width = found.half_width(confidence)
        assert found.is_within(width * (1 + 1e-9) + 1e-9, confidence)
        assert not found.is_within(width - 0.08 * found.deviation - 1e-6, confidence) or confidence < 0.95


def test_a_continuous_law_that_is_known() -> None:
    """P(|a + b| > t) = (1 + t/2s)·exp(−t/s) for two Laplace noises of scale s, up to their steps of 1/10^6."""
    found, scale = SumLaw.of([1.0, 1.0], [dp.Laplace(scale=10**6, step=1)] * 2), 1e6
    for confidence in (0.5, 0.95, 0.999, 1 - 1e-6):
        width = found.half_width(confidence) / scale
        outside = (1 + width / 2) * math.exp(-width)
        assert 0.93 * (1 - confidence) < outside <= (1 - confidence)


def test_single_crossing() -> None:
    """Decision 0026: a sum that is as narrow as a Laplace noise at 95% is so at every higher confidence."""
    for weights, noises in DESIGNS.values():
        found = SumLaw.of(weights, noises)
        own = dp.Laplace(scale=found.half_width(0.95) / math.log(20), step=1)
        if own.scale < 20:
            continue  # steps of whole numbers are wider than the rest
        for confidence in (0.97, 0.99, 0.999, 0.99999):
            assert found.half_width(confidence) <= float(own.error(confidence)) + 1
