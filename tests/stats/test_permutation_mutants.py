"""Seeded bugs of the permutation test: each is planted, and a check of ours must see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet.exact import samplers
from discreet.mechanisms.quantiles import permutation_test
from discreet.mechanisms.quantiles.permutation_test import PermutationTest
from discreet.stats import permutation_methods

from .permuted import counts_of, largest_delta

Plant = Callable[[pytest.MonkeyPatch], None]
REPLACED = dp.row(neighbors="replace")


# --- the checks -----------------------------------------------------------------------------------------------


def tiny_tables_look_alike() -> None:
    for unit, given in (
        (REPLACED, {"level": 0.1, "permutations": 19, "side": "less"}),
        (REPLACED, {"level": None, "permutations": 6}),
    ):
        test = PermutationTest.for_guarantee(dp.Pure(epsilon=3), unit=unit, steps=1, **given)
        assert largest_delta(test, unit.neighbors, 3.0) < 1e-12, "a pair of neighbors is distinguished"


def a_replaced_row_costs_more_in_ranks() -> None:
    costs = [
        PermutationTest(scale=10, permutations=9, level=None, steps=10, unit=unit).guarantee().epsilon
        for unit in (dp.row(), REPLACED)
    ]
    assert costs == [2, 3]


def two_sides_accept_a_wide_interval() -> None:
    """Equal sums of all permutations: without the least width only that sum would be accepted."""
    test = PermutationTest(scale=100, permutations=99, level=0.05, unit=dp.row())
    others = np.zeros(99, dtype=np.int64)
    assert [test.decide(own, others) for own in (-201, -200, 0, 200, 201)] == [True, False, False, False, True]
    assert float(test.guarantee().epsilon) > 2.55, "two sides cost more than one"


def noise_is_on_every_sum() -> None:
    """All rows are alike, so only noise differs: ranks are uniform, and 100 of 19 + 1 are not all at an end."""
    test = PermutationTest(scale=50, permutations=19, level=None, steps=1, unit=dp.row())
    ranks = [test._answer(counts_of(((1, 0), (1, 1)), 1)) for _ in range(100)]
    assert len(set(ranks)) > 10, "noise is missing on some sums"
    assert 0.2 < np.mean(np.isin(ranks, range(5, 15))) < 0.8, "noise has several scales"


def permutations_keep_the_group_sizes() -> None:
    sums = permutation_test.permuted_sums(np.array([0, 1000]), 300, 50)
    assert set(sums) == {300}, "a permuted group has another size"
    drawn = permutation_test.permuted_sums(np.array([500, 500]), 500, 400)
    assert 40 < drawn.var() < 90, "rows are not drawn without replacement"


def a_person_has_one_row() -> None:
    ledger = dp.Ledger.open(":memory:", protects=dp.person("who"), limit=dp.Pure(epsilon=100))
    rows = {"who": ["p", "p", "p", "q"], "x": [0.5] * 4, "g": [True, True, True, False]}
    table = dp.table(pa.table(rows), ledger=ledger, rows_per_person=3)
    offer = table.stats._statistics.permutation("x", by="g", between=(0, 1), epsilon=1)
    assert len(offer.drawing(offer.rows).read()[0]) == 2, "a person has several rows"


CHECKS: list[Callable[[], None]] = [
    tiny_tables_look_alike,
    a_replaced_row_costs_more_in_ranks,
    two_sides_accept_a_wide_interval,
    noise_is_on_every_sum,
    permutations_keep_the_group_sizes,
    a_person_has_one_row,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_nothing_is_wrong(check: Callable[[], None]) -> None:
    check()


# --- the bugs -------------------------------------------------------------------------------------------------


def half_the_noise(patch: pytest.MonkeyPatch) -> None:
    honest = PermutationTest.guarantee

    def claimed(self: PermutationTest, sensitivity: Any = None) -> Any:
        doubled = PermutationTest.__new__(PermutationTest)
        doubled.__dict__.update(self.__dict__ | {"scale": 2 * self.scale})
        return honest(doubled)

    patch.setattr(PermutationTest, "guarantee", claimed)


def replaced_as_added(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(permutation_test, "largest_change", lambda unit, rows, *, added, replaced: added)


def no_least_width(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PermutationTest, "width", property(lambda self: 1))


def two_sides_for_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(permutation_test, "log_bounds", lambda value: (0, permutation_test.Fraction(255, 100)))


def permuted_without_noise(patch: pytest.MonkeyPatch) -> None:
    honest = samplers.discrete_laplace

    def only_first(scale: Any, size: int) -> Any:
        drawn = honest(scale, size)
        drawn[1:] = 0
        return drawn

    patch.setattr(samplers, "discrete_laplace", only_first)


def own_without_noise(patch: pytest.MonkeyPatch) -> None:
    honest = samplers.discrete_laplace

    def only_others(scale: Any, size: int) -> Any:
        drawn = honest(scale, size)
        drawn[0] = 0
        return drawn

    patch.setattr(samplers, "discrete_laplace", only_others)


def with_replacement(patch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    patch.setattr(
        samplers, "hypergeometric", lambda marked, others, taken: rng.binomial(taken, marked / (marked + others))
    )


def all_rows_of_a_person(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(permutation_methods, "one_row_each", lambda methods: methods)


@pytest.mark.parametrize(
    ("plant", "check"),
    [
        (half_the_noise, tiny_tables_look_alike),
        (replaced_as_added, a_replaced_row_costs_more_in_ranks),
        (no_least_width, two_sides_accept_a_wide_interval),
        (two_sides_for_one, two_sides_accept_a_wide_interval),
        (permuted_without_noise, noise_is_on_every_sum),
        (own_without_noise, noise_is_on_every_sum),
        (with_replacement, permutations_keep_the_group_sizes),
        (all_rows_of_a_person, a_person_has_one_row),
    ],
    ids=lambda one: one.__name__,
)
def test_a_seeded_bug_is_seen(plant: Plant, check: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        check()
