"""Seeded bugs of ranges that are found: each is planted, and a check of ours must see it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet import testing
from discreet.exact import samplers
from discreet.guarantees.privacy_loss.compose import compose
from discreet.learn.binned.bin_columns import Columns
from discreet.mechanisms.learning import found_ranges, with_found_ranges
from discreet.mechanisms.learning.boosted_trees import BoostedTrees
from discreet.mechanisms.learning.descent.additive import AdditiveDescent
from discreet.mechanisms.learning.found_ranges import FoundRanges
from discreet.mechanisms.learning.leaf_counts import LeafCounts
from discreet.mechanisms.learning.moments import Moments
from discreet.mechanisms.learning.seen_ranges import Cut
from discreet.mechanisms.learning.with_found_ranges import WithFoundRanges
from discreet.rows.gradients.leaves import Bins
from discreet.rows.gradients.losses import Logistic
from discreet.rows.unbounded import UnboundedRows

from .test_found_ranges import GOAL, rows_of, test_no_unit_moves_the_counts_farther_than_is_charged

Check = Callable[[], None]
TWO = Bins((9, 3), (True, False))


def no_row_moves_counts_too_far() -> None:
    for noise in ("stddev", "scale"):
        test_no_unit_moves_the_counts_farther_than_is_charged(dp.row(), noise, 1)


def no_row_moves_further_cuts_too_far() -> None:
    test_no_unit_moves_the_counts_farther_than_is_charged(dp.row(), "stddev", 2)


def no_replaced_row_moves_counts_too_far() -> None:
    test_no_unit_moves_the_counts_farther_than_is_charged(dp.row(neighbors="replace"), "stddev", 1)


def no_person_moves_counts_too_far() -> None:
    test_no_unit_moves_the_counts_farther_than_is_charged(dp.person("id"), "stddev", 1)


def counts_scatter_as_is_charged() -> None:
    """20,000 counts: their deviation is within 5% of the charged one, 10 times what chance explains."""
    m = FoundRanges(weights=(1, 2), stddev=40)
    drawn = m._noisy(np.zeros((2, 10_000), dtype=np.int64), np.array(m.weights))
    assert drawn[0].std() == pytest.approx(40, rel=0.05)
    assert drawn[1].std() == pytest.approx(20, rel=0.05)
    assert abs(np.corrcoef(drawn)[0, 1]) < 0.1


def no_row_of_a_table_is_counted_twice() -> None:
    """With and without a row, one count of each column differs by 1 at most."""
    known = np.array([[1.0, 0.0], [5.0, np.nan]])
    for cell in (0.0, 1e300, np.inf, np.nan, 3.0):
        one, other = (
            Columns.of(cells).unbounded([0, 1], lambda ranges: ranges).counts(found_ranges._place_sizes, 209)
            for cells in (known, np.vstack([known, [[cell, cell]]]))
        )
        assert np.abs(one - other).sum() <= 2, "a row is counted twice"


def what_is_drawn_does_not_depend_on_rows() -> None:
    m, drawn = FoundRanges(weights=(1, 2), stddev=40, cuts=2), []
    for many in (50, 49):
        with testing.frozen(3) as tape:
            m._draw(rows_of(np.ones((many, 2))))
        drawn.append(tape.calls)
    assert drawn[0] == drawn[1], "what is drawn depends on the rows"


def bins_follow_from_what_is_released() -> None:
    """If the noisy counts are the same, whatever the rows are, then so are all bins and the ranges."""
    probes, seen = np.linspace(-20, 20, 401)[:, None], []
    for cells in (np.full((500, 1), 7.0), np.full((500, 1), -3.0)):
        asked: list[Any] = []
        with pytest.MonkeyPatch.context() as patch:
            counts = UnboundedRows.counts

            def recorded(self: Any, places: Any, bins: int, counts: Any = counts, asked: Any = asked) -> Any:
                asked.append(places(probes))
                return counts(self, places, bins)

            def same(self: Any, counts: Any, weights: Any) -> Any:
                shown = np.zeros(counts.shape)
                shown[:, 104 + 43 if counts.shape[1] > 64 else 28] = 500
                return shown

            patch.setattr(UnboundedRows, "counts", recorded)
            patch.setattr(FoundRanges, "_noisy", same)
            found = FoundRanges(weights=(1,), stddev=1, cuts=2)._draw(rows_of(cells))["ranges"]
        seen.append([*asked, found])
    assert len(seen[0]) == 4
    for one, other in zip(*seen, strict=True):
        assert np.array_equal(one, other), "bins depend on more than what is released"


def everything_is_charged(then: Callable[[Any], Any], **columns: Any) -> None:
    """Gaussian parts of the two steps, as the formula adds them, stay within the guarantee."""
    m = WithFoundRanges.for_guarantee(GOAL, weights=(1, 1), then=then, unit=dp.row(), **columns)
    moved = m.sensitivity(dp.row())
    parts = [m.finding.guarantee(moved[0]), m.then.guarantee(moved[1])]
    factors = [(pair.base.mu, times) for part in (compose([one]) for one in parts) for pair, times in part.factors]
    whole = dp.GaussianTradeoff(mu=math.sqrt(sum(times * mu**2 for mu, times in factors)) * 0.999)
    assert whole.delta_at(epsilon=1) <= 1e-6, "not charged"


def both_steps_are_charged() -> None:
    everything_is_charged(lambda goal: Moments.for_guarantee(goal, features=2, shares={"square": 1}))


def an_additive_model_charges_ranges() -> None:
    given: dict[str, Any] = {"loss": Logistic(), "clip": 0.9, "dimension": 5, "steps": 20, "size": 50}
    everything_is_charged(lambda goal: AdditiveDescent.for_guarantee(goal, feature_norm=1, region=5.0, **given), cuts=2)


def boosted_trees_charge_ranges() -> None:
    given: dict[str, Any] = {"bins": TWO, "loss": Logistic(), "clip": 0.4, "rounds": 30, "size": 60}
    everything_is_charged(lambda goal: BoostedTrees.for_guarantee(goal, **given), cuts=2)


def a_forest_charges_ranges() -> None:
    given: dict[str, Any] = {"bins": TWO, "trees": 7, "shape": (2, 2), "classes": 2}
    everything_is_charged(lambda goal: LeafCounts.for_guarantee(goal, **given), cuts=2)


CHECKS = [
    no_row_moves_counts_too_far,
    no_replaced_row_moves_counts_too_far,
    no_person_moves_counts_too_far,
    counts_scatter_as_is_charged,
    no_row_moves_further_cuts_too_far,
    no_row_of_a_table_is_counted_twice,
    what_is_drawn_does_not_depend_on_rows,
    bins_follow_from_what_is_released,
    both_steps_are_charged,
    an_additive_model_charges_ranges,
    boosted_trees_charge_ranges,
    a_forest_charges_ranges,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_sound_code_passes(check: Check) -> None:
    check()


def replaced_taken_for_added(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(found_ranges, "_replaces", lambda unit: False)


def the_second_histogram_not_charged(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(found_ranges, "_histograms", lambda outer, cuts: cuts)


def further_cuts_not_charged(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(found_ranges, "_histograms", lambda outer, cuts: 1 + (outer is None))


def weights_left_out(patch: pytest.MonkeyPatch) -> None:
    sound = FoundRanges.sensitivity
    patch.setattr(FoundRanges, "sensitivity", lambda self, *who: sound(replace(self, weights=(1, 1)), *who))


def rows_of_a_person_forgotten(patch: pytest.MonkeyPatch) -> None:
    sound = FoundRanges.sensitivity
    patch.setattr(FoundRanges, "sensitivity", lambda self, unit=None, rows=1: sound(self, unit, 1))


def a_row_counted_twice(patch: pytest.MonkeyPatch) -> None:
    sound = UnboundedRows.counts
    patch.setattr(UnboundedRows, "counts", lambda self, places, bins: 2 * sound(self, places, bins))


def a_row_of_a_table_counted_twice(patch: pytest.MonkeyPatch) -> None:
    sound = Columns.numbers
    patch.setattr(Columns, "numbers", lambda self, place: np.repeat(sound(self, place), 2))
    patch.setattr(Columns, "rows", property(lambda self: 2 * len(self.parts[0])))


def noise_by_the_true_count(patch: pytest.MonkeyPatch) -> None:
    def noisy(self: Any, counts: Any, weights: Any) -> Any:
        return counts + samplers.discrete_gaussian(Fraction(int(counts.sum()) + 1), counts.size).reshape(counts.shape)

    patch.setattr(FoundRanges, "_noisy", noisy)


def noise_halved(patch: pytest.MonkeyPatch) -> None:
    sound = FoundRanges._noisy
    patch.setattr(FoundRanges, "_noisy", lambda self, counts, weights: (counts + sound(self, counts, weights)) / 2)


def bins_by_exact_counts(patch: pytest.MonkeyPatch) -> None:
    exact: list[Any] = []
    counts, narrowed = UnboundedRows.counts, Cut.narrowed

    def kept(self: Any, places: Any, bins: int) -> Any:
        exact[:] = [counts(self, places, bins)]
        return exact[0]

    def cut(self: Cut) -> Cut:
        return narrowed(self if self.counts is None else replace(self, counts=exact[0][0].astype(float)))

    patch.setattr(UnboundedRows, "counts", kept)
    patch.setattr(Cut, "narrowed", cut)


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
    patch.setattr(with_found_ranges, "_left", lambda guarantee, share, less: guarantee)


MUTANTS: list[tuple[Callable[[pytest.MonkeyPatch], None], Check]] = [
    (replaced_taken_for_added, no_replaced_row_moves_counts_too_far),
    (the_second_histogram_not_charged, no_row_moves_counts_too_far),
    (weights_left_out, no_row_moves_counts_too_far),
    (rows_of_a_person_forgotten, no_person_moves_counts_too_far),
    (a_row_counted_twice, no_row_moves_counts_too_far),
    (exact_counts, counts_scatter_as_is_charged),
    (noise_of_one_column_for_all, counts_scatter_as_is_charged),
    (further_cuts_not_charged, no_row_moves_further_cuts_too_far),
    (a_row_of_a_table_counted_twice, no_row_of_a_table_is_counted_twice),
    (noise_by_the_true_count, what_is_drawn_does_not_depend_on_rows),
    (noise_halved, counts_scatter_as_is_charged),
    (bins_by_exact_counts, bins_follow_from_what_is_released),
    (ranges_not_charged, both_steps_are_charged),
    (ranges_not_charged, an_additive_model_charges_ranges),
    (ranges_not_charged, boosted_trees_charge_ranges),
    (ranges_not_charged, a_forest_charges_ranges),
]


@pytest.mark.parametrize(("mutant", "check"), MUTANTS, ids=lambda one: one.__name__)
def test_a_seeded_bug_is_seen(
    mutant: Callable[[pytest.MonkeyPatch], None], check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    with pytest.raises(AssertionError):
        check()
