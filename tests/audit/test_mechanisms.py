"""Our mechanisms through the public door: each passes at its claim, and the same audit fires on half its noise.

The noise is real, so nothing is seeded. False alarms: confidence 1 − 1e-8 for each of at most 30 right audits.
Misses: every halved mechanism has a true ε near 2, several standard errors past what the audit needs to fire.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet import testing
from discreet.audit import audit
from discreet.audit.mechanisms import SUBJECTS, Subject, subject, with_half_noise
from discreet.cli.audit import main
from discreet.errors import InvalidArgument

from ..refusing import refuses

SURE = 1 - 1e-8
DELTA = {"gaussian": 1e-6, "key_selection": 1e-6}
# ε and the number of outputs: large enough to fire, small enough to be quick
QUICK: dict[str, tuple[float, int]] = {
    "laplace": (1, 200_000),
    "gaussian": (1, 200_000),
    "randomized_response": (1, 100_000),
    "key_selection": (1, 2_000),
}
SOME = [pytest.param(name, marks=[pytest.mark.slow] * (name == "key_selection")) for name in QUICK]


def run(audited: Subject, samples: int, confidence: float = SURE) -> Any:
    claim = audited.claim
    return audit(
        audited.draw,
        audited.first,
        audited.second,
        samples=samples,
        epsilon=claim.epsilon,
        delta=claim.delta,
        confidence=confidence,
    )


@pytest.mark.parametrize("name", SOME)
def test_right_noise_passes_and_half_of_it_fires(name: str) -> None:
    epsilon, samples = QUICK[name]
    right = run(subject(name, epsilon=epsilon, delta=DELTA.get(name, 0)), samples)
    assert right.passed, right
    assert right.epsilon_lower > 0
    wrong = run(subject(name, epsilon=epsilon, delta=DELTA.get(name, 0), broken=True), samples)
    assert not wrong.passed, wrong
    assert wrong.delta_lower > wrong.delta
    assert right.delta_lower <= right.delta


@pytest.mark.slow
@pytest.mark.parametrize("name", SUBJECTS)
def test_every_mechanism_passes_and_fires(name: str) -> None:
    right = subject(name, epsilon=1, delta=DELTA.get(name, 0))
    samples = min(right.samples, 200_000) if name in QUICK else 25_000
    result = run(right, samples)
    assert result.passed, result
    assert result.epsilon_lower > 0.05 * result.claimed, result  # as a rule above 0.1
    wrong = subject(name, epsilon=1, delta=DELTA.get(name, 0), broken=True)
    result = run(wrong, samples, confidence=0.999)  # a lower bar: firing is right here
    assert not result.passed, result


@pytest.mark.slow
def test_the_claim_of_a_mechanism_is_its_own_guarantee() -> None:
    """A mechanism audited as it is: its bound stays below its claim, for numbers, vectors and single answers."""
    result = audit(dp.Laplace(scale=2), 0, 1, sensitivity=1, samples=100_000, confidence=SURE)
    assert result.claimed == pytest.approx(0.5)
    assert result.passed
    assert result.epsilon_lower > 0.3  # as a rule 0.434 ± 0.008
    assert not audit(dp.Laplace(scale=2), 0, 2, sensitivity=1, samples=100_000, confidence=SURE).passed
    vectors = audit(dp.Laplace(scale=1), [0, 0], [1, 1], sensitivity=2, samples=1000, confidence=SURE)
    assert vectors.passed
    assert vectors.claimed == pytest.approx(2)
    response = dp.RandomizedResponse(choices=["a", "b"], lie=0.25)
    assert audit(response, "a", "b", samples=50_000, confidence=SURE).epsilon_lower > 0.8


def test_without_noise_the_audit_fires() -> None:
    with testing.no_noise():
        assert not audit(dp.Laplace(scale=1), 0, 1, sensitivity=1, samples=10_000, confidence=SURE).passed


def test_low_bits_of_our_own_noise_say_nothing() -> None:
    """x = 0 and x = 1 at ε = 1: the lattice is the same, and so is every power of two that may divide the output."""
    result = audit(dp.Laplace(scale=1), 0.0, 1.0, sensitivity=1, samples=400_000, confidence=SURE)
    assert result.passed, result


@pytest.mark.parametrize("name", SUBJECTS)
def test_halved_means_twice_the_loss(name: str) -> None:
    right = subject(name, epsilon=1, delta=DELTA.get(name, 0))
    wrong = with_half_noise(right.mechanism)
    at = float(right.claim.delta) or 1e-9
    before = right.mechanism.guarantee(right.sensitivity).epsilon_at(delta=at)
    assert 1.4 * before < wrong.guarantee(right.sensitivity).epsilon_at(delta=at) < 4.5 * before


def test_the_command_prints_everything_and_returns_the_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("laplace", epsilon=1, delta=0, samples=50_000, confidence=SURE) == 0
    shown = capsys.readouterr().out
    assert "Laplace(scale=1)" in shown
    assert "passed" in shown
    assert re.search(r"δ at ε = 1 +≥ 0 *\n", shown)
    assert main("laplace", epsilon=1, delta=0, samples=50_000, confidence=SURE, broken=True) == 1
    shown = capsys.readouterr().out
    for word in ("mechanism", "neighbors", "claim", "lower bound", "event", "power", "verdict", "FIRED", "on purpose"):
        assert word in shown
    assert re.search(r"δ at ε = 1 +≥ 0\.3", shown)
    assert "for both bounds together" in shown


def test_unknown_names_and_bad_numbers_are_typed_errors() -> None:
    with refuses(InvalidArgument, "not-an-option"):
        main("laplas")
    with refuses(InvalidArgument, "needs-delta"):
        main("gaussian", epsilon=1, delta=0)
    for bad, code in (
        (0, "out-of-range"),
        (-1, "out-of-range"),
        (float("nan"), "not-a-number"),
        (float("inf"), "not-a-number"),
    ):
        with refuses(InvalidArgument, code):
            main("laplace", epsilon=bad)
    with refuses(InvalidArgument, "sensitivity-missing"):
        audit(dp.Laplace(scale=1), 0, 1)  # no sensitivity
    assert np.isfinite(subject("laplace", epsilon=1).samples)
