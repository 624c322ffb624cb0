"""What several receipts cost together, and what was spent up to one of them."""

from __future__ import annotations

from typing import Any

import pytest

import discreet as dp
from discreet.ledger.reports.receipts import cost_together, digest_of, rule_at, spent_until


def charged(limit: Any, *guarantees: dp.Guarantee, rule: str | None = None) -> Any:
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=limit, rule=rule)
    for number, guarantee in enumerate(guarantees):
        ledger.charge(guarantee, asked=f"question {number}", mechanism="")
    return ledger


PURE = dp.Pure(epsilon=0.5)
CONCENTRATED = dp.ZeroConcentrated(rho=0.05)


def test_sums_of_one_kind_are_exact() -> None:
    ledger = charged(dp.Pure(epsilon=4), PURE, PURE)
    assert cost_together(ledger, ledger.entries()) == dp.Pure(epsilon=1, protects=dp.row())
    assert cost_together(ledger, ledger.entries()[:1]) == dp.Pure(epsilon=0.5, protects=dp.row())
    assert digest_of(ledger, ledger.entries()[0]) is None


def test_stated_epsilons_and_rhos_are_added_apart_and_keep_what_is_stated() -> None:
    ledger = charged(dp.Approx(epsilon=10, delta=1e-5), PURE, CONCENTRATED, PURE, CONCENTRATED)
    total = cost_together(ledger, ledger.entries())
    assert isinstance(total, dp.Approx)
    delta = float(total.delta)
    apart = 1 + dp.ZeroConcentrated(rho=0.1).epsilon_at(delta=delta)
    assert float(total.epsilon) <= apart * (1 + 1e-9)
    noise = [dp.Laplace(scale=2), dp.Laplace(scale=2), dp.Gaussian(stddev=10**0.5), dp.Gaussian(stddev=10**0.5)]
    needed = dp.compose([one.guarantee(1) for one in noise]).epsilon_at(delta=delta)
    assert needed <= float(total.epsilon), "real noise of this cost keeps it"


def test_a_total_of_a_half_is_caught() -> None:
    """The mutant adds only half of the ρ."""
    ledger = charged(dp.Approx(epsilon=10, delta=1e-5), *[CONCENTRATED] * 4)
    total: Any = cost_together(ledger, ledger.entries())
    needed = dp.compose([dp.Gaussian(stddev=10**0.5).guarantee(1)] * 4).epsilon_at(delta=float(total.delta))
    half = dp.ZeroConcentrated(rho=0.1).epsilon_at(delta=float(total.delta))
    assert half < needed <= float(total.epsilon)


@pytest.mark.parametrize("rule", ["basic", "best", "zcdp"])
def test_charges_before_and_after_a_renewal_add(rule: str) -> None:
    ledger = charged(dp.Approx(epsilon=5, delta=1e-5), PURE, rule=rule)
    ledger.renew(dp.Approx(epsilon=3, delta=1e-6), why="a new year")
    ledger.charge(PURE, asked="later", mechanism="")
    entries = [entry for entry in ledger.entries() if entry.kind == "charge"]
    total = cost_together(ledger, entries)
    assert total.epsilon_at(delta=1e-4) >= 0.5
    assert float(rule_at(ledger, 1).limit.epsilon) == 5  # type: ignore[attr-defined]
    spent, limit = spent_until(ledger, 1)
    assert float(limit.epsilon) == 5  # type: ignore[attr-defined]
    assert spent.epsilon_at(delta=1e-5) > 0
    _, both = spent_until(ledger, entries[-1].number)
    assert float(both.epsilon) == 8  # type: ignore[attr-defined]
