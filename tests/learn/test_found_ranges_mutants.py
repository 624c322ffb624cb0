"""Seeded bugs of ranges that are found: each is planted, and a check of ours must see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet.mechanisms.learning import found_ranges
from discreet.mechanisms.learning.found_ranges import FoundRanges, WithFoundRanges
from discreet.mechanisms.learning.moments import Moments
from discreet.rows.unbounded import UnboundedRows

from .test_found_ranges import GOAL, test_no_unit_moves_the_counts_farther_than_is_charged

Check = Callable[[], None]


def no_row_moves_counts_too_far() -> None:
    for noise in ("stddev", "scale"):
        test_no_unit_moves_the_counts_farther_than_is_charged(dp.row(), noise)


def no_replaced_row_moves_counts_too_far() -> None:
    test_no_unit_moves_the_counts_farther_than_is_charged(dp.row(neighbors="replace"), "stddev")


def no_person_moves_counts_too_far() -> None:
    test_no_unit_moves_the_counts_farther_than_is_charged(dp.person("id"), "stddev")


def counts_scatter_as_is_charged() -> None:
    """20,000 counts: their deviation is within 5% of the charged one, 10 times what chance explains."""
    m = FoundRanges(weights=(1, 2), stddev=40)
    drawn = m._noisy(np.zeros((2, 10_000), dtype=np.int64), np.array(m.weights))
    assert drawn[0].std() == pytest.approx(40, rel=0.05)
    assert drawn[1].std() == pytest.approx(20, rel=0.05)
    assert abs(np.corrcoef(drawn)[0, 1]) < 0.1


def both_steps_are_charged() -> None:
    def moments(goal: Any) -> Moments:
        return Moments.for_guarantee(goal, features=2, shares={"square": 1})

    m = WithFoundRanges.for_guarantee(GOAL, weights=(1, 1), then=moments)
    apart = [part.guarantee().factors[0][0].base.mu for part in (m.finding, m.then)]
    whole = dp.GaussianTradeoff(mu=float(np.hypot(*apart)) * 0.999)
    assert whole.delta_at(epsilon=1) <= 1e-6


CHECKS = [
    no_row_moves_counts_too_far,
    no_replaced_row_moves_counts_too_far,
    no_person_moves_counts_too_far,
    counts_scatter_as_is_charged,
    both_steps_are_charged,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_sound_code_passes(check: Check) -> None:
    check()


def replaced_taken_for_added(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(found_ranges, "_replaces", lambda unit: False)


def the_second_histogram_not_charged(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(found_ranges, "_histograms", lambda outer: 1)


def weights_left_out(patch: pytest.MonkeyPatch) -> None:
    sound = FoundRanges.sensitivity
    patch.setattr(FoundRanges, "sensitivity", lambda self, *who: sound(replace(self, weights=(1, 1)), *who))


def rows_of_a_person_forgotten(patch: pytest.MonkeyPatch) -> None:
    sound = FoundRanges.sensitivity
    patch.setattr(FoundRanges, "sensitivity", lambda self, unit=None, rows=1: sound(self, unit, 1))


def a_row_counted_twice(patch: pytest.MonkeyPatch) -> None:
    sound = UnboundedRows.counts
    patch.setattr(UnboundedRows, "counts", lambda self, places, bins: 2 * sound(self, places, bins))


def exact_counts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FoundRanges, "_noisy", lambda self, counts, weights: counts.astype(float))


def noise_of_one_column_for_all(patch: pytest.MonkeyPatch) -> None:
    sound = FoundRanges._noisy

    def noisy(self: Any, counts: Any, weights: Any) -> Any:
        return np.repeat(sound(self, counts[:1], weights[:1]), len(counts), axis=0) / weights[:, None]

    patch.setattr(FoundRanges, "_noisy", noisy)


def ranges_not_charged(patch: pytest.MonkeyPatch) -> None:
    def guarantee(self: Any, sensitivity: Any = None) -> Any:
        return self.then.guarantee(None if sensitivity is None else sensitivity[1])

    patch.setattr(WithFoundRanges, "guarantee", guarantee)
    patch.setattr(found_ranges, "_left", lambda guarantee, share, less: guarantee)


MUTANTS: list[tuple[Callable[[pytest.MonkeyPatch], None], Check]] = [
    (replaced_taken_for_added, no_replaced_row_moves_counts_too_far),
    (the_second_histogram_not_charged, no_row_moves_counts_too_far),
    (weights_left_out, no_row_moves_counts_too_far),
    (rows_of_a_person_forgotten, no_person_moves_counts_too_far),
    (a_row_counted_twice, no_row_moves_counts_too_far),
    (exact_counts, counts_scatter_as_is_charged),
    (noise_of_one_column_for_all, counts_scatter_as_is_charged),
    (ranges_not_charged, both_steps_are_charged),
]


@pytest.mark.parametrize(("mutant", "check"), MUTANTS, ids=lambda one: one.__name__)
def test_a_seeded_bug_is_seen(
    mutant: Callable[[pytest.MonkeyPatch], None], check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    with pytest.raises(AssertionError):
        check()
