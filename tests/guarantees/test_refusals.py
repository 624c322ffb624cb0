"""What is wrong with a promise, a rule, a law or a number, said before anything is spent."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet import door
from discreet.door import release, stream
from discreet.errors import (
    DiscreetError,
    EntropyUnavailable,
    IncompatibleGuarantee,
    InvalidArgument,
    MissingExtra,
    SealedValue,
)
from discreet.exact import randomness, samplers
from discreet.exact.rational import exactly, exp_bounds
from discreet.extras import need
from discreet.guarantees.accuracy import Accuracy
from discreet.guarantees.finite.laws import finite
from discreet.guarantees.finite.least_error import least_error
from discreet.guarantees.finite.verify import verify
from discreet.guarantees.privacy_loss.compose import compose, pair_of
from discreet.guarantees.privacy_loss.derived_pairs import RenyiPair, SubsampledPair
from discreet.guarantees.privacy_loss.pairs import LaplacePair
from discreet.guarantees.rules.best_of import BestOf, rule_for
from discreet.reproduce.course import AdvancedTaught
from discreet.sealed import Sealed
from discreet.tables.bands import validate_quantiles
from discreet.testing import exact_law

from ..refusing import refuses

Asked = Callable[[], Any]
ONE = dp.Approx(epsilon=1, delta=1e-6)
HALF = dp.Approx(epsilon=0.5, delta=0.3)


def refused(asked: Asked, code: str, kind: type[DiscreetError] = InvalidArgument) -> None:
    with refuses(kind, code):
        asked()


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (lambda: float(Accuracy(amount=None, confidence=0.95, reason="it depends")), "error-not-known"),
        (
            lambda: AdvancedTaught(limit=dp.Approx(epsilon=1), each=dp.Pure(epsilon=1)),
            "needs-delta",
        ),
        (lambda: AdvancedTaught(limit=ONE, each=HALF).total((10**18, 10**18)), "formula-does-not-apply"),
        (lambda: finite(dp.Laplace(scale=1)), "not-finite"),
        (lambda: finite({0: {"a": -1}, 1: {"a": 1}}), "not-a-distribution"),
        (lambda: least_error(3, ONE), "wrong-type"),
        (lambda: pair_of(SimpleNamespace()), "wrong-type"),
        (lambda: compose([dp.Laplace(scale=1)]), "wrong-type"),
        (lambda: BestOf(limit=ONE, grid=((Fraction(2), Fraction(1)),)), "out-of-range"),
        (lambda: rule_for(ONE, BestOf(limit=HALF)), "rule-does-not-fit"),
        (lambda: rule_for(ONE, AdvancedTaught(limit=ONE, each=HALF)), "rule-does-not-fit"),
        (lambda: rule_for(dp.Laplace(scale=1).guarantee(sensitivity=1)), "wrong-type"),
        (lambda: verify([({}, {}, {})]), "wrong-shape"),
        (lambda: exactly(np.float64("inf"), "scale"), "not-a-number"),
        (lambda: exp_bounds(Fraction(10**8), 64), "out-of-range"),
        (lambda: validate_quantiles([0.5], "most"), "not-an-option"),
    ],
)
def test_a_promise_that_cannot_be_stated(asked: Asked, code: str) -> None:
    refused(asked, code)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (lambda: AdvancedTaught(limit=ONE, each=HALF).coordinates(ONE), "incompatible-guarantee"),
        (lambda: RenyiPair(Fraction(8), Fraction(1)).twice(), "incompatible-guarantee"),
        (
            lambda: SubsampledPair(LaplacePair(1, Fraction(1)), Fraction(1, 2)).twice(),
            "incompatible-guarantee",
        ),
        (
            lambda: rule_for(dp.ZeroConcentrated(rho=1)).coordinates(dp.Renyi(order=8, epsilon=1)),
            "incompatible-guarantee",
        ),
        (lambda: replace(ONE, protects=dp.row()).stated_for(dp.person("id")), "incompatible-guarantee"),
        (lambda: dp.Renyi(order=2, epsilon=1).for_replacement(), "incompatible-guarantee"),
        (lambda: compose([ONE, replace(ONE, trust="local")]), "incompatible-guarantee"),
        (lambda: compose([replace(ONE, protects=u) for u in (dp.row(), dp.person("id"))]), "incompatible-guarantee"),
    ],
)
def test_promises_that_do_not_go_together(asked: Asked, code: str) -> None:
    refused(asked, code, IncompatibleGuarantee)


# --- noise ------------------------------------------------------------------------------------------------


def test_no_noise_is_drawn_from_broken_randomness(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", lambda count: bytes(count))
    refused(lambda: randomness._entropy(16), "entropy-unavailable", EntropyUnavailable)

    def missing(count: int) -> bytes:
        raise NotImplementedError

    monkeypatch.setattr(os, "urandom", missing)
    refused(lambda: randomness._entropy(16), "entropy-unavailable", EntropyUnavailable)


def test_probabilities_are_not_decided_by_floats() -> None:
    refused(lambda: samplers.exponential_choice(np.array([0.5]), Fraction(1)), "not-whole")


def test_a_law_that_is_not_written_down_is_not_enumerated() -> None:
    refused(lambda: exact_law(lambda: samplers.polya(2, Fraction(1), 1)), "no-exact-law")


def test_a_sealed_value_is_shown_to_nobody() -> None:
    refused(lambda: float(Sealed(42)), "sealed-value", SealedValue)


def test_a_missing_package_is_named_with_the_line_that_brings_it() -> None:
    refused(
        lambda: need("no_such_package", "plot", "plot()"),
        "missing-extra",
        MissingExtra,
    )


# --- the door ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (lambda: release(3, dp.Laplace(scale=1), sensitivity=1, key="a"), "missing-argument"),
        (lambda: stream(dp.Laplace(scale=1), sensitivity=1), "not-a-stream"),
        (
            lambda: release(3, dp.Laplace(scale=1), sensitivity=1, stated=dp.GaussianTradeoff(mu=1)),
            "wrong-type",
        ),
    ],
)
def test_what_the_door_does_not_open_for(asked: Asked, code: str) -> None:
    refused(asked, code)


def test_a_session_goes_on_in_one_process_only(monkeypatch: pytest.MonkeyPatch) -> None:
    session = stream(dp.mechanisms.PrefixSums.for_guarantee(ONE, points=4), sensitivity=1)
    monkeypatch.setattr(door, "os", SimpleNamespace(getpid=lambda: -1))  # others are in the process that they are in
    refused(lambda: session.add(1), "session-in-two-processes", DiscreetError)
