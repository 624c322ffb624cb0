"""What is wrong with a promise, a rule, a law or a number, said before anything is spent."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import discreet as dp
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
from discreet.guarantees.rules.advanced import AdvancedTaught
from discreet.guarantees.rules.best_of import BestOf, rule_for
from discreet.sealed import Sealed
from discreet.tables.bands import checked
from discreet.testing import exact_law

Asked = Callable[[], Any]
ONE = dp.Approx(epsilon=1, delta=1e-6)
HALF = dp.Approx(epsilon=0.5, delta=0.3)


def refused(asked: Asked, said: str, kind: type[DiscreetError] = InvalidArgument) -> None:
    with pytest.raises(kind, match=re.escape(said)):
        asked()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda: float(Accuracy(amount=None, confidence=0.95, reason="it depends")), "No error bound is known"),
        (
            lambda: AdvancedTaught(limit=dp.Approx(epsilon=1), each=dp.Pure(epsilon=1)),
            "L6.T2 needs a limit with δ above",
        ),
        (lambda: AdvancedTaught(limit=ONE, each=HALF).total((10**18, 10**18)), "L6.T1 says nothing once 2kδ reaches 1"),
        (lambda: finite(dp.Laplace(scale=1)), "Only a finite mechanism can be enumerated"),
        (lambda: finite({0: {"a": -1}, 1: {"a": 1}}), "A law has a negative probability"),
        (lambda: least_error(3, ONE), "least_error takes a space and a guarantee"),
        (lambda: pair_of(SimpleNamespace()), "SimpleNamespace cannot be composed"),
        (lambda: compose([dp.Laplace(scale=1)]), "compose takes guarantees"),
        (lambda: BestOf(limit=ONE, grid=((Fraction(2), Fraction(1)),)), "The conversions of grid must have shares"),
        (lambda: rule_for(ONE, BestOf(limit=HALF)), "Make it for this limit"),
        (lambda: rule_for(ONE, AdvancedTaught(limit=ONE, each=HALF)), "cannot stop a session"),
        (lambda: rule_for(dp.Laplace(scale=1).guarantee(sensitivity=1)), "A limit must be Pure, Approx"),
        (lambda: verify([({}, {}, {})]), "A sequence must hold pairs of laws"),
        (lambda: exactly(np.float64("inf"), "scale"), "scale must be finite, not inf"),
        (lambda: exp_bounds(Fraction(10**8), 64), "exp of a number beyond ±1e7"),
        (lambda: checked([0.5], "most"), "least must be 'bound', 'mean' or 'largest'"),
    ],
)
def test_a_promise_that_cannot_be_stated(asked: Asked, said: str) -> None:
    refused(asked, said)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda: AdvancedTaught(limit=ONE, each=HALF).coordinates(ONE), "Only equal releases of"),
        (lambda: RenyiPair(Fraction(8), Fraction(1)).twice(), "Convert the Rényi guarantee to replacement"),
        (
            lambda: SubsampledPair(LaplacePair(1, Fraction(1)), Fraction(1, 2)).twice(),
            "no known conversion from add_or",
        ),
        (
            lambda: rule_for(dp.ZeroConcentrated(rho=1)).coordinates(dp.Renyi(order=8, epsilon=1)),
            "has no finite cost under rule 'zcdp'",
        ),
        (lambda: replace(ONE, protects=dp.row()).stated_for(dp.person("id")), "The guarantee protects row()"),
        (lambda: dp.Renyi(order=2, epsilon=1).for_replacement(), "A Rényi guarantee of order below 4"),
        (lambda: compose([ONE, replace(ONE, trust="local")]), "Central, local and shuffled guarantees"),
        (lambda: compose([replace(ONE, protects=u) for u in (dp.row(), dp.person("id"))]), "protect different units"),
    ],
)
def test_promises_that_do_not_go_together(asked: Asked, said: str) -> None:
    refused(asked, said, IncompatibleGuarantee)


# --- noise ------------------------------------------------------------------------------------------------


def test_no_noise_is_drawn_from_broken_randomness(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", lambda count: bytes(count))
    refused(lambda: randomness._entropy(16), "randomness is broken; no noise can be drawn", EntropyUnavailable)

    def missing(count: int) -> bytes:
        raise NotImplementedError

    monkeypatch.setattr(os, "urandom", missing)
    refused(lambda: randomness._entropy(16), "gives no randomness, so no noise can be drawn", EntropyUnavailable)


def test_probabilities_are_not_decided_by_floats() -> None:
    refused(lambda: samplers.exponential_choice(np.array([0.5]), Fraction(1)), "losses must be integers or Fractions")


def test_a_law_that_is_not_written_down_is_not_enumerated() -> None:
    refused(lambda: exact_law(lambda: samplers.polya(2, Fraction(1), 1)), "No exact law is written down for")


def test_a_sealed_value_is_shown_to_nobody() -> None:
    refused(lambda: float(Sealed(42)), "A sealed true value cannot be printed", SealedValue)


def test_a_missing_package_is_named_with_the_line_that_brings_it() -> None:
    refused(
        lambda: need("no_such_package", "plot", "plot()"),
        "plot() needs no_such_package. Install it with: pip",
        MissingExtra,
    )


# --- the door ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda: release(3, dp.Laplace(scale=1), sensitivity=1, key="a"), "A key is kept in a ledger"),
        (lambda: stream(dp.Laplace(scale=1), sensitivity=1), "This mechanism answers once: use dp.release"),
        (
            lambda: release(3, dp.Laplace(scale=1), sensitivity=1, stated=dp.GaussianTradeoff(mu=1)),
            "stated must be Pure",
        ),
    ],
)
def test_what_the_door_does_not_open_for(asked: Asked, said: str) -> None:
    refused(asked, said)


def test_a_session_goes_on_in_one_process_only(monkeypatch: pytest.MonkeyPatch) -> None:
    session = stream(dp.PrefixSums.for_guarantee(ONE, points=4), sensitivity=1)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    refused(lambda: session.add(1), "A session cannot go on in two processes", DiscreetError)
