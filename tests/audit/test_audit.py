"""The audit accepts the right noise and fires on nearby wrong noise.

False alarms: every audit here runs at confidence 1 − 1e-8 on a fixed seed, so over seeds a right mechanism is
refuted with probability at most 1e-8 (1e-6 in this file together). Wrong ones are far past `power.detects`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

from discreet.audit import Audit, audit
from discreet.errors import InvalidArgument

from ..refusing import refuses

SURE = 1 - 1e-8
LATTICE = 2.0**-10
Draw = Callable[[Any, int], Any]


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(20_240_601)


def laplace(random: np.random.Generator, scale: float) -> Draw:
    """Laplace noise rounded to a lattice that holds both inputs, so that no low bit leaks."""
    return lambda data, size: data + np.round(random.laplace(scale=scale, size=size) / LATTICE) * LATTICE


def gaussian(random: np.random.Generator, stddev: float) -> Draw:
    return lambda data, size: data + np.round(random.normal(scale=stddev, size=size) / LATTICE) * LATTICE


def response(random: np.random.Generator, epsilon: float, choices: str = "ab") -> Draw:
    lie = (len(choices) - 1) / (math.exp(epsilon) + len(choices) - 1)

    def draw(data: str, size: int) -> list[str]:
        others = [c for c in choices if c != data]
        lies, which = random.random(size) < lie, random.integers(len(others), size=size)
        return [others[i] if lying else data for i, lying in zip(which, lies, strict=True)]

    return draw


def run(draw: Any, first: Any = 0, second: Any = 1, **options: Any) -> Audit:
    return audit(draw, first, second, confidence=SURE, **{"samples": 100_000} | options)


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 3.0])
def test_laplace_passes_at_its_claim_and_fires_when_its_noise_is_halved(
    random: np.random.Generator, epsilon: float
) -> None:
    right = run(laplace(random, 1 / epsilon), epsilon=epsilon)
    assert right.passed
    assert 0.6 * epsilon < right.epsilon_lower <= epsilon  # not vacuous
    assert right.power is not None
    assert right.power.halved_noise
    assert right.power.detects < 2 * epsilon
    wrong = run(laplace(random, 0.5 / epsilon), epsilon=epsilon)
    assert not wrong.passed
    assert wrong.epsilon_lower > right.power.detects


def test_laplace_fires_at_two_thirds_of_the_noise(random: np.random.Generator) -> None:
    assert not run(laplace(random, 2 / 3), epsilon=1).passed
    assert run(laplace(random, 3 / 2), epsilon=1).passed


def gaussian_delta(mu: float, epsilon: float) -> float:
    return float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu))


@pytest.mark.parametrize("epsilon", [0.1, 0.5])
def test_gaussian_with_delta_passes_at_its_claim_and_fires_when_halved(
    random: np.random.Generator, epsilon: float
) -> None:
    delta = gaussian_delta(1 / 2, epsilon)
    assert delta > 1e-3
    right = run(gaussian(random, 2.0), epsilon=epsilon, delta=delta)
    assert right.passed
    assert right.delta == delta
    assert not run(gaussian(random, 1.0), epsilon=epsilon, delta=delta).passed


def test_delta_at_the_claimed_epsilon_is_bounded_too(random: np.random.Generator) -> None:
    """The true δ at ε = 1 is 0 with the right noise, and 1 − e^{-1/2} = 0.393 with half of it."""
    right = run(laplace(random, 1.0), epsilon=1)
    assert right.passed
    assert right.delta_lower == 0
    wrong = run(laplace(random, 0.5), epsilon=1)
    assert not wrong.passed
    truth = 1 - math.exp(-1 / 2)
    assert 0.9 * truth < wrong.delta_lower <= truth
    assert wrong.delta_finding is not None
    assert wrong.delta_finding.epsilon == 1
    assert f"δ ≥ {wrong.delta_lower:.4g} at ε = 1 (confidence 0.999999995)" in str(wrong)


def test_delta_of_gaussian_noise_against_its_formula(random: np.random.Generator) -> None:
    claim = gaussian_delta(1 / 2, 0.1)
    right = run(gaussian(random, 2.0), epsilon=0.1, delta=claim)
    assert 0.5 * claim < right.delta_lower <= claim
    wrong = run(gaussian(random, 1.0), epsilon=0.1, delta=claim)
    assert claim < wrong.delta_lower <= gaussian_delta(1, 0.1)


@pytest.mark.slow
def test_the_error_is_shared_by_both_bounds(random: np.random.Generator) -> None:
    """At confidence 0.9, randomized response at its claim fires in at most 10%: 200 runs, ≤ 43 (1e-6)."""

    def draw(data: int, size: int) -> Any:
        return random.random(size) < (0.75 if data else 0.25)

    found = [audit(draw, 0, 1, samples=2000, epsilon=math.log(3), confidence=0.9) for _ in range(200)]
    assert sum(not one.passed for one in found) <= 43
    assert {one.confidence for one in found} == {0.9}
    assert {one.finding.confidence for one in found} == {0.95}
    assert {one.delta_finding and one.delta_finding.confidence for one in found} == {0.95}


def test_either_bound_refutes(random: np.random.Generator) -> None:
    right = run(laplace(random, 1.0), epsilon=1)
    assert not replace(right, delta_lower=1e-9).passed
    assert not replace(right, epsilon_lower=1 + 1e-9).passed
    assert replace(right, delta_lower=1e-9, delta=1e-9).passed


@pytest.mark.slow
@pytest.mark.parametrize("choices", ["ab", "abcdef"])
def test_randomized_response(random: np.random.Generator, choices: str) -> None:
    right = run(response(random, 1.0, choices), "a", "b", epsilon=1)
    assert right.passed
    assert right.epsilon_lower > 0.8
    wrong = run(response(random, 2.0, choices), "a", "b", epsilon=1)
    assert not wrong.passed
    assert "'a'" in wrong.event or "'b'" in wrong.event


def test_one_output_at_a_time(random: np.random.Generator) -> None:
    def answer(data: int) -> bool:
        return bool(random.random() < (0.75 if data else 0.25))

    seen: list[tuple[int, int]] = []
    right = run(answer, epsilon=math.log(3), samples=20_000, progress=lambda *told: seen.append(told))
    assert right.passed
    assert right.epsilon_lower > 0.9
    assert seen[-1] == (40_000, 40_000)
    assert seen == sorted(seen)
    assert not run(answer, epsilon=0.7, samples=20_000).passed


def test_no_noise_fires_whatever_the_claim(random: np.random.Generator) -> None:
    for claim in (0.1, 1.0, 7.0):
        assert not run(lambda data, size: np.full(size, data), epsilon=claim).passed
    assert not run(lambda data: data, epsilon=1, samples=1000).passed


def test_low_bits_of_floating_point_laplace(random: np.random.Generator) -> None:
    """Not a multiple of 2^-53: probability 0.27 at x=0 and 0 at x=1, in floating point."""

    def naive(data: float, size: int) -> Any:
        sign = np.where(random.random(size) < 0.5, -1.0, 1.0)
        return data - sign * np.log1p(-random.random(size))

    fired = run(naive, 0.0, 1.0, epsilon=1)
    assert not fired.passed
    assert "power of two" in fired.event
    assert fired.finding.likelier == "first"
    assert fired.finding.probabilities[0] > 0.2
    assert fired.finding.probabilities[1] == 0


def test_a_rare_total_leak_is_forgiven_up_to_delta(random: np.random.Generator) -> None:
    def leaky(data: float, size: int) -> Any:
        answers = laplace(random, 1.0)(data, size)
        return np.where(random.random(size) < 0.01, 1000.0 + data, answers)

    assert not run(leaky, epsilon=1).passed
    assert not run(leaky, epsilon=1, delta=0.001).passed
    assert run(leaky, epsilon=1, delta=0.01).passed


@pytest.mark.slow
@pytest.mark.parametrize("place", [0, 7])
def test_vectors_are_searched_in_every_coordinate(random: np.random.Generator, place: int) -> None:
    def draw(data: float, size: int) -> Any:
        noise = np.round(random.laplace(size=(size, 8)) / LATTICE) * LATTICE
        noise[:, place] += data
        return noise

    right = run(draw, epsilon=1, samples=40_000)
    assert right.passed
    assert right.epsilon_lower > 0.7
    assert not run(draw, epsilon=1, samples=40_000, first=0, second=2).passed


@pytest.mark.slow
def test_a_difference_spread_over_all_coordinates_is_seen(random: np.random.Generator) -> None:
    """Adding the data to each of 16 coordinates costs 16ε; each alone shows only ε = 1/4."""

    def draw(data: float, size: int) -> Any:
        return data + np.round(random.laplace(scale=4, size=(size, 16)) / LATTICE) * LATTICE

    assert not run(draw, epsilon=0.25, samples=40_000).passed
    assert run(draw, epsilon=4, samples=40_000).passed


def test_outputs_of_another_shape_or_kind_fire(random: np.random.Generator) -> None:
    few = {"epsilon": 1, "samples": 5000}
    assert not run(lambda data, size: np.zeros((size, 2 + data)), **few).passed
    assert not run(lambda data, size: [None if data else 1.0] * size, **few).passed
    assert not run(lambda data, size: ["x" if data else 1.0] * size, **few).passed
    assert not run(lambda data: [data], epsilon=1, samples=1000).passed  # no hash: compared by repr


def test_equal_laws_prove_nothing(random: np.random.Generator) -> None:
    same = run(lambda data, size: random.normal(size=size), epsilon=0.1)
    assert same.passed
    assert same.epsilon_lower == 0
    assert same.power is not None
    assert not same.power.halved_noise  # nothing was seen, so nothing is promised


def test_too_few_outputs_are_said_to_have_no_power(random: np.random.Generator) -> None:
    blind = run(laplace(random, 1 / 8), epsilon=8, samples=2000)
    assert blind.passed
    assert blind.power is not None
    assert math.isinf(blind.power.detects)
    assert not blind.power.halved_noise
    assert "draw more" in str(blind)


def test_without_a_claim_the_bound_alone_is_reported(random: np.random.Generator) -> None:
    found = run(laplace(random, 1.0))
    assert found.claimed is None
    assert found.power is None
    assert found.delta_lower == 0
    assert found.delta_finding is None
    assert found.finding.confidence == found.confidence == SURE
    assert found.passed
    assert str(found).startswith("nothing claimed")


def test_a_result_reads_as_a_sentence_and_is_frozen(random: np.random.Generator) -> None:
    wrong = run(laplace(random, 0.5), epsilon=1)
    assert str(wrong).startswith("FIRED: the claim is false; claimed ε = 1, δ = 0\nε ≥ 1.")
    assert "power: at the claim it would show about ε ≥ 0.9" in str(wrong)
    with pytest.raises(AttributeError):
        wrong.claimed = 9.0  # type: ignore[misc]


@pytest.mark.slow
def test_the_fires_promise_of_power_holds(random: np.random.Generator) -> None:
    """At `detects` the audit fires at least 99% of the time: 40 runs, at most 6 misses (1e-7 by chance)."""
    first = run(laplace(random, 1.0), epsilon=1, samples=20_000)
    assert first.power is not None
    detects = first.power.detects

    def pair(epsilon: float) -> Iterator[bool]:
        for _ in range(40):
            yield run(response(random, epsilon), "a", "b", epsilon=1, samples=20_000).passed

    assert sum(pair(detects)) <= 6


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"samples": 3}, "out-of-range"),
        ({"samples": 0.5}, "not-whole"),
        ({"samples": True}, "not-a-number"),
        ({"delta": 1}, "out-of-range"),
        ({"delta": -1}, "out-of-range"),
        ({"delta": math.nan}, "not-a-number"),
        ({"epsilon": 0}, "out-of-range"),
        ({"epsilon": "1"}, "not-a-number"),
        ({"epsilon": math.inf}, "not-a-number"),
        ({"confidence": 1}, "out-of-range"),
        ({"confidence": 0}, "out-of-range"),
    ],
)
def test_bad_parameters_are_typed_errors(options: dict[str, Any], code: str) -> None:
    with refuses(InvalidArgument, code):
        audit(lambda data, size: np.zeros(size), 0, 1, **{"samples": 100} | options)


def test_bad_subjects_are_typed_errors() -> None:
    with refuses(InvalidArgument, "wrong-type"):
        audit(3, 0, 1)
    with refuses(InvalidArgument, "wrong-type"):
        audit(lambda data, size: 3, 0, 1, samples=100)
    with refuses(InvalidArgument, "wrong-shape"):
        audit(lambda data, size: np.zeros(7), 0, 1, samples=100)
