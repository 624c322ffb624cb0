"""A release that goes on: charged once, and the same law as all sums at once."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import discreet as dp
from discreet import testing

from .forks import said_in_a_fork
from .refusing import refuses


def opened(limit=None):
    return dp.Ledger.open(":memory:", protects=dp.row(), limit=limit or dp.Approx(epsilon=2, delta=1e-5))


def sums(points=365):
    return dp.mechanisms.PrefixSums.for_guarantee(dp.Approx(epsilon=1, delta=1e-6), points=points)


def test_one_charge_for_all_steps():
    ledger = opened()
    days = dp.stream(sums(), sensitivity=1, ledger=ledger, asked="visits a day")
    [entry] = ledger.entries()
    assert (entry.asked, entry.receipt) == ("visits a day", days.receipt)
    shown = [days.add(np.array([n])) for n in range(3)] + [days.add(np.arange(100))]
    assert [len(one) for one in shown] == [1, 1, 1, 100]
    assert ledger.count == 1
    assert ledger.verify() == 2
    assert float(days.error(0.95)) > 0
    assert "Session of PrefixSums" in repr(days)


def test_without_noise_the_sums_are_exact():
    with testing.no_noise():
        days = dp.stream(sums(50), sensitivity=1)
        found = np.concatenate([days.add(np.array(part)) for part in ([1, 2, 3], [4], [5] * 30)])
    assert found == pytest.approx(np.cumsum([1, 2, 3, 4, *[5] * 30]))
    assert days.not_private


@pytest.mark.slow
def test_errors_hold():
    """200 streams of 100 steps: no sum is off by more than is said, but for one stream in twenty."""
    counts, missed = np.arange(100) % 7, 0
    for _ in range(200):
        days = dp.stream(sums(100), sensitivity=1)
        found = np.concatenate([days.add(counts[:40]), days.add(counts[40:])])
        missed += np.abs(found - np.cumsum(counts)).max() > float(days.error(0.95))
    assert missed <= 10 + 5 * np.sqrt(10)


def test_nothing_begins_that_does_not_fit():
    ledger = opened(dp.Approx(epsilon=0.5, delta=1e-5))
    with refuses(dp.BudgetExhausted, "budget-exhausted"):
        dp.stream(sums(), sensitivity=1, ledger=ledger)
    assert ledger.count == 0


def test_bad_steps_are_told_and_lose_nothing():
    days = dp.stream(sums(5), sensitivity=1)
    days.add(np.array([1, 2]))
    for wrong in (np.array([0.5]), np.arange(4), np.ones((1, 2), int)):
        with pytest.raises(dp.DiscreetError):
            days.add(wrong)
    assert len(days.add(np.array([1, 1, 1]))) == 3


def test_only_what_goes_on_is_streamed():
    with refuses(dp.InvalidArgument, "not-a-stream"):
        dp.stream(dp.Laplace(scale=1), sensitivity=1)


def test_a_session_stays_where_it_began():
    days = dp.stream(sums(5), sensitivity=1)
    with refuses(dp.DiscreetError, "sealed-value"):
        pickle.dumps(days)
    begun = """
import numpy as np, discreet as dp
days = dp.stream(dp.mechanisms.PrefixSums.for_guarantee(dp.Approx(epsilon=1, delta=1e-6), points=5), sensitivity=1)
def ask():
    return days.add(np.array([1]))
"""
    assert said_in_a_fork(begun) == "session-in-two-processes"
