"""What a ledger has spent and may spend over its life is never less than its charges and limits."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

import discreet as dp
from discreet.guarantees.guarantee import NoLoss
from discreet.ledger import Ledger
from discreet.ledger.periods import over_all

WHO = dp.person("id")


def opened(limit: dp.Guarantee, rule: str | None = None) -> Ledger:
    return Ledger.open(":memory:", protects=WHO, limit=limit, rule=rule)


def charge(ledger: Ledger, guarantee: dp.Guarantee, times: int = 1) -> None:
    for _ in range(times):
        ledger.charge(guarantee, asked="a", mechanism="b")


def test_a_new_ledger_has_spent_nothing() -> None:
    [period] = opened(dp.Approx(epsilon=1, delta=1e-6)).periods
    assert period.spent == NoLoss(protects=WHO)
    assert period.limit == dp.Approx(epsilon=1, delta=1e-6, protects=WHO)
    assert period.adaptive


@pytest.mark.parametrize("rule", ["basic", "best"])
def test_few_releases_are_the_sum_of_their_epsilons(rule: str) -> None:
    ledger = opened(dp.Approx(epsilon=1, delta=1e-6), rule)
    charge(ledger, dp.Pure(epsilon=0.1), 2)
    assert ledger.periods[0].spent == dp.Pure(epsilon=Fraction(1, 5), protects=WHO)
    charge(ledger, dp.Approx(epsilon=0.1, delta=1e-9))
    assert ledger.periods[0].spent == dp.Approx(epsilon=Fraction(3, 10), delta=Fraction(1, 10**9), protects=WHO)
    assert ledger.periods[0].adaptive


def test_many_releases_under_the_best_rule_cost_less_than_their_sum() -> None:
    ledger = opened(dp.Approx(epsilon=3, delta=1e-6))
    charge(ledger, dp.Pure(epsilon=0.01), 200)
    period = ledger.periods[0]
    assert isinstance(period.spent, dp.Approx)
    assert 0.1 < period.spent.epsilon < 2
    assert period.spent.delta <= 1e-6
    assert not period.adaptive
    # never below the exact composition
    exact = dp.compose([dp.Pure(epsilon=0.01)] * 200)
    assert period.spent.epsilon >= exact.epsilon_at(delta=period.spent.delta)


@pytest.mark.parametrize(
    ("limit", "once", "thrice"),
    [
        (dp.ZeroConcentrated(rho=1), dp.ZeroConcentrated(rho=0.1), dp.ZeroConcentrated(rho=Fraction(3, 10))),
        (dp.GaussianTradeoff(mu=3), dp.GaussianTradeoff(mu=0.5), dp.GaussianTradeoff(mu=0.75**0.5)),
        (dp.Renyi(order=8, epsilon=1), dp.Renyi(order=8, epsilon=0.1), dp.Renyi(order=8, epsilon=Fraction(3, 10))),
    ],
)
def test_other_limits_are_spent_in_their_own_kind(limit: Any, once: Any, thrice: Any) -> None:
    ledger = opened(limit)
    charge(ledger, once, 3)
    spent = ledger.periods[0].spent
    assert type(spent) is type(limit)
    assert spent.epsilon_at(delta=1e-6) == pytest.approx(thrice.epsilon_at(delta=1e-6), rel=1e-9)
    assert not ledger.periods[0].adaptive


def test_a_raised_limit_is_one_period_and_a_renewal_begins_another() -> None:
    ledger = opened(dp.Approx(epsilon=1, delta=1e-6))
    charge(ledger, dp.Pure(epsilon=0.5))
    ledger.raise_limit(dp.Approx(epsilon=2, delta=1e-6), why="agreed")
    charge(ledger, dp.Pure(epsilon=0.25))
    ledger.renew(why="new people")
    ledger.renew(dp.Approx(epsilon=3, delta=1e-7), why="new people again")
    charge(ledger, dp.Pure(epsilon=0.125))
    spent, limits = ([getattr(one, name) for one in ledger.periods] for name in ("spent", "limit"))
    assert [float(one.largest_loss) for one in spent] == [0.75, 0, 0.125]
    assert [one.epsilon for one in limits] == [2, 2, 3]
    assert over_all(spent, WHO) == dp.Pure(epsilon=Fraction(7, 8), protects=WHO)
    assert over_all(limits, WHO) == dp.Approx(epsilon=7, delta=Fraction(21, 10**7), protects=WHO)


def test_an_analyst_has_periods_of_their_own() -> None:
    ledger = opened(dp.Approx(epsilon=4, delta=1e-6))
    alice = ledger.for_analyst("alice", limit=dp.Approx(epsilon=1, delta=1e-7))
    charge(alice, dp.Pure(epsilon=0.5))
    charge(ledger, dp.Pure(epsilon=0.25))
    ledger.renew(why="a new year", analyst="alice")
    assert [float(one.spent.largest_loss or 0) for one in alice.periods] == [0.5, 0]
    assert [float(one.spent.largest_loss or 0) for one in ledger.periods] == [0.75]
    assert [one.limit.epsilon_at(delta=1e-7) for one in alice.periods] == [1, 1]


@pytest.mark.parametrize(
    ("parts", "check"),
    [
        ([dp.ZeroConcentrated(rho=1), dp.ZeroConcentrated(rho=2)], lambda one: one.rho == 3),
        ([dp.GaussianTradeoff(mu=3), dp.GaussianTradeoff(mu=4)], lambda one: one.mu == 5),
        ([dp.Renyi(order=4, epsilon=1)] * 2, lambda one: (one.order, one.epsilon) == (4, 2)),
        ([dp.Pure(epsilon=1), NoLoss()], lambda one: one == dp.Pure(epsilon=1)),
        (
            [dp.Pure(epsilon=1), dp.ZeroConcentrated(rho=0.5)],
            lambda one: one.epsilon > 6 and one.delta == Fraction(1, 10**6),
        ),
        ([], lambda one: isinstance(one, NoLoss)),
    ],
)
def test_periods_add_up(parts: list[dp.Guarantee], check: Callable[[Any], bool]) -> None:
    assert check(over_all(parts, WHO))
