"""What a release costs: its own guarantee, or an (ε,δ) that it keeps where the rule adds only those."""

from __future__ import annotations

from fractions import Fraction

import pytest

import discreet as dp
from discreet.exact.rational import exactly
from discreet.ledger import cost_of

from ..refusing import refuses

UNIT = dp.row(neighbors="replace")
GOAL = dp.Approx(epsilon=1, delta=1e-6)
NOISE = dp.Gaussian.for_guarantee(GOAL, sensitivity=1).guarantee(dp.Sensitivity(1, "L2", UNIT))
PURE = dp.Laplace(scale=1).guarantee(dp.Sensitivity(1, unit=UNIT))


def ledger_of(rule: str, delta: float = 1e-4) -> dp.Ledger:
    limit = dp.Approx(epsilon=10, delta=delta) if delta else dp.Pure(epsilon=10)
    return dp.Ledger.open(":memory:", protects=UNIT, limit=limit, rule=rule)


@pytest.mark.parametrize("rule", [None, "zcdp", "best"])
def test_a_rule_that_reads_losses_is_given_them(rule):
    ledger = None if rule is None else ledger_of(rule)
    assert cost_of(ledger, NOISE) is NOISE
    assert cost_of(ledger, NOISE, GOAL) is NOISE


def test_a_rule_that_adds_stated_ones_is_given_the_goal():
    ledger = ledger_of("basic")
    assert cost_of(ledger, NOISE, GOAL) == dp.Approx(epsilon=1, delta=1e-6, protects=UNIT)
    assert cost_of(ledger, PURE, dp.Pure(epsilon=1)) is PURE
    too_little = dp.Approx(epsilon=0.9, delta=1e-6)
    with refuses(dp.errors.IncompatibleGuarantee, "guarantee-not-kept"):
        cost_of(ledger, NOISE, too_little)
    assert cost_of(ledger, NOISE, too_little, proved=True).epsilon == 0.9


def test_without_a_goal_it_is_an_epsilon_at_a_small_delta():
    found = cost_of(ledger_of("basic"), NOISE)
    assert found.protects == UNIT
    assert exactly(found.delta) == Fraction(1, 10**10)
    assert NOISE.delta_at(epsilon=found.epsilon) <= 1e-10
    assert exactly(cost_of(ledger_of("basic"), NOISE, shares=(10,)).delta) == Fraction(1, 10**5)
    assert exactly(cost_of(ledger_of("basic"), NOISE, shares=(10,), most=Fraction(1, 10**9)).delta) == Fraction(
        1, 10**9
    )


def test_a_ledger_without_delta_takes_pure_releases_only():
    assert cost_of(ledger_of("basic", delta=0), PURE) is PURE
    with refuses(dp.errors.IncompatibleGuarantee, "no-epsilon-at-delta"):
        cost_of(ledger_of("basic", delta=0), NOISE)
