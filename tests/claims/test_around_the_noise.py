"""Most privacy bugs sit around the noise: the checks that catch them, and seeded mutants that they must catch.

Each check is one function. It holds for the code as it is and fails for every mutant below it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet.exact.rational import LEDGER_UNIT, round_down
from discreet.guarantees.rules import filters
from discreet.queries.sensitivity import Sensitivity

WILD = (0.0, 1.0, -3.0, 700.0, math.nan, math.inf, -math.inf, 1e38)


def sum_stays_within_its_sensitivity(query: Any) -> bool:
    """Removing any row of any table over wild values moves the sum by at most what was declared in advance."""
    declared = query.sensitivity(dp.row()).exact
    for size in (1, 2):
        for table in itertools.product(WILD, repeat=size):
            whole, less = query(list(table)), query(list(table[1:]))
            if not math.isfinite(whole) or abs(Fraction(whole) - Fraction(less)) > declared:
                return False
    return True


def sum_is_exact(query: Any) -> bool:
    """A long sum equals the sum in rationals, in any order."""
    rows = [5.0] * 3_000
    return bool(query(rows) == query(rows[::-1]) == 5 * 3_000)


class DroppedClip(dp.Sum):
    def __call__(self, data: Any) -> Any:
        return Fraction(float(np.nan_to_num(np.asarray(data, dtype=float)).sum()))


class ClippedCopy(dp.Sum):
    def __call__(self, data: Any) -> Any:
        self.space.clamp(np.ravel(data))  # clipped, and then forgotten
        return float(np.asarray(data, dtype=float).sum())


class NanPasses(dp.Sum):
    def __call__(self, data: Any) -> Any:
        return float(np.clip(np.asarray(data, dtype=float), *map(float, self.between)).sum())


class LowerBoundTwice(dp.Sum):
    def sensitivity(self, unit: dp.Unit, rows_per_person: int = 1) -> Sensitivity:
        low = abs(self.space.ends[0])
        return Sensitivity(max(low, low), unit=unit)


class NarrowSum(dp.Sum):
    def __call__(self, data: Any) -> Any:
        steps = np.rint(self.space.clamp(np.ravel(data)) / float(self.grain)).astype(np.int32)
        return self.grain * int(np.add.reduce(steps, dtype=np.int32))


def test_sums_keep_their_sensitivity_and_are_exact() -> None:
    assert sum_stays_within_its_sensitivity(dp.Sum((-1, 5)))
    assert sum_is_exact(dp.Sum((-1, 5)))


@pytest.mark.parametrize("mutant", [DroppedClip, ClippedCopy, NanPasses, LowerBoundTwice])
def test_mutants_of_clipping(mutant: type[dp.Sum]) -> None:
    with np.errstate(all="ignore"):
        assert not sum_stays_within_its_sensitivity(mutant((-1, 5)))


def test_mutant_narrow_sum() -> None:
    with np.errstate(all="ignore"):
        assert not sum_is_exact(NarrowSum((-1, 5)))


def sensitivity_is_public(make: Callable[[list[float]], Any]) -> bool:
    """What is declared is the same for neighboring tables."""
    return bool(make([1.0, 2.0]).exact == make([1.0]).exact)


def test_sensitivity_does_not_look_at_the_data_and_a_mutant_that_does() -> None:
    query = dp.Sum((-1, 5))
    assert sensitivity_is_public(lambda rows: query(rows) and query.sensitivity(dp.row()))  # after it saw the rows
    assert not sensitivity_is_public(lambda rows: Sensitivity(max(rows), unit=dp.row()))


def mean_needs_no_private_size(query: Any) -> bool:
    """Either the mean refuses an unknown number of rows, or one row moves it by at most what it says."""
    try:
        declared = query.sensitivity(dp.row()).exact
    except dp.InvalidArgument:
        return True
    return all(abs(query([*rest, 5.0]) - query(rest)) <= declared for rest in ([], [0.0], [0.0] * 9))


def test_a_mean_never_uses_the_true_number_of_rows_and_a_mutant_that_does() -> None:
    class TrueSize(dp.queries.Mean):
        def __call__(self, data: Any) -> Any:
            return Fraction(sum(Fraction(x) for x in data)) / max(len(data), 1)

        def sensitivity(self, unit: dp.Unit, rows_per_person: int = 1) -> Sensitivity:
            return Sensitivity(Fraction(5, 10), unit=unit)

    assert mean_needs_no_private_size(dp.queries.Mean((0, 5)))
    assert not mean_needs_no_private_size(TrueSize((0, 5), size=10))


def tiny_charges_add_up(rule: filters.Rule) -> bool:
    """A thousand charges of less than one ledger unit leave a trace of at least their sum."""
    vector = rule.nothing
    for _ in range(1000):
        vector = rule.spend(vector, dp.Pure(epsilon=Fraction(3, 2 * LEDGER_UNIT)))
    return vector[1] >= 1500


def ten_tenths_are_one(rule: filters.Rule) -> bool:
    """Ten charges of 0.1 fit a limit of 1, and nothing fits beside them."""
    vector = rule.nothing
    for _ in range(10):
        vector = rule.spend(vector, dp.Pure(epsilon=0.1))
    return rule.fits(vector) and not rule.fits(rule.spend(vector, dp.Pure(epsilon=1e-18)))


def test_costs_round_up_and_mutants_that_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = filters.Basic(limit=dp.Pure(epsilon=1))
    assert tiny_charges_add_up(rule)
    assert ten_tenths_are_one(rule)
    with monkeypatch.context() as rounded_down:
        rounded_down.setattr(filters, "round_up", round_down)
        rule = filters.Basic(limit=dp.Pure(epsilon=1))  # which remembers no cost
        assert not tiny_charges_add_up(rule)

    class FloatBudget(filters.Basic):
        def spend(self, vector: Any, guarantee: Any, times: int = 1) -> Any:
            return (0, vector[1] + float(guarantee.epsilon))

        def fits(self, vector: Any) -> bool:
            return bool(vector[1] <= 1.0)

    assert not ten_tenths_are_one(FloatBudget(limit=dp.Pure(epsilon=1)))


def a_crash_cannot_leak(release: Callable[..., Any]) -> bool:
    """When the draw fails half-way, the ledger is charged all the same."""

    class Crashes(dp.Laplace):
        def _draw(self, value: Any) -> Any:
            super()._draw(value)
            raise RuntimeError("the power went")

    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Pure(epsilon=1))
    with pytest.raises(RuntimeError):
        release(41, Crashes(scale=2), sensitivity=1, ledger=ledger)
    return len(ledger.entries()) == 1


def test_the_charge_comes_first_and_a_mutant_where_it_does_not() -> None:
    def debit_after_release(value: Any, mechanism: Any, *, sensitivity: Any, ledger: dp.Ledger) -> Any:
        drawn = mechanism._draw(value)
        ledger.charge(mechanism.guarantee(sensitivity), asked="later")
        return drawn

    assert a_crash_cannot_leak(dp.release)
    assert not a_crash_cannot_leak(debit_after_release)
