"""Seeded bugs of tests from counts and ranks: each is planted, and a check of ours must see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet import testing
from discreet.mechanisms.quantiles.rank_scores import POINTS, RankScores
from discreet.queries import cells as queries_cells
from discreet.queries.cells import CellCounts
from discreet.stats import count_methods
from discreet.stats.inference import tables_of_counts
from discreet.stats.samples import cells

Plant = Callable[[pytest.MonkeyPatch], None]


# --- the checks -----------------------------------------------------------------------------------------------


def opened(data: dict[str, Any], unit: Any, **given: Any) -> Any:
    ledger = dp.Ledger.open(":memory:", protects=unit, limit=dp.Pure(epsilon=100))
    return dp.table(pa.table(data), ledger=ledger, **given)


def a_row_moves_one_cell_by_one() -> None:
    rows = {"a": ["x", "y", "z", "x"] * 5, "b": ["u", "v"] * 10}
    more = {"a": [*rows["a"], "a new value"], "b": [*rows["b"], "u"]}
    with testing.no_noise():
        one, other = (opened(data, dp.row()).stats.chi2("a", "b", epsilon=1).value for data in (rows, more))
    assert np.abs(one - other).sum() == 1, "a row moves more than one cell"


def a_replaced_row_is_charged_as_two_cells() -> None:
    assert CellCounts(4).sensitivity(dp.row(neighbors="replace")).amount == 2, "a replaced row is in two cells"
    assert CellCounts(4).sensitivity(dp.row()).amount == 1


def a_person_has_one_row() -> None:
    rows = {"who": ["p", "p", "p", "q"], "a": ["x", "x", "x", "y"], "b": ["u", "u", "u", "v"]}
    table = opened(rows, dp.person("who"), rows_per_person=3)
    with testing.no_noise():
        found = table.stats.chi2("a", "b", choices={"a": ["x", "y"], "b": ["u", "v"]}, epsilon=1)
    assert found.value.sum() == 2, "a person has several rows"


def both_draws_of_ranks_are_charged() -> None:
    made = RankScores.for_guarantee(dp.Pure(epsilon=1), groups=2, unit=dp.row())
    loss = made.guarantee().largest_loss
    assert loss is not None
    assert float(loss) >= 0.99, "a draw is not charged"


def scores_follow_from_the_noisy_distribution() -> None:
    made = RankScores.for_guarantee(dp.Pure(epsilon=1), groups=1, unit=dp.row())
    seen: list[Any] = []

    class Listening(RankScores):
        def scores_from(self, cumulative: Any) -> Any:
            seen.append(np.asarray(cumulative, dtype=np.float64))
            return super().scores_from(cumulative)

    listening = Listening(groups=1, signed=False, tree=made.tree, noise=made.noise, unit=made.unit)
    listening._draw((np.full(40, 0.5), np.zeros(40, dtype=np.int64)))
    exact = np.where(np.arange(POINTS) >= POINTS // 2, 40, 0)
    assert np.count_nonzero(seen[0] != exact) > POINTS // 2, "scores follow from the true distribution"


def the_law_has_the_noise() -> None:
    """Pure noise: without the noise in the simulated law nearly every table would be rejected."""
    rng = np.random.default_rng(1)
    noise = tables_of_counts.NoiseOfCounts(laplace=20.0)
    tables = 200 + rng.laplace(0, 20, (40, 3, 3)).round()
    assert np.mean([tables_of_counts.p_of_independence(one, noise, 99)[1] <= 0.05 for one in tables]) < 0.3


CHECKS: list[Callable[[], None]] = [
    a_row_moves_one_cell_by_one,
    a_replaced_row_is_charged_as_two_cells,
    a_person_has_one_row,
    both_draws_of_ranks_are_charged,
    scores_follow_from_the_noisy_distribution,
    the_law_has_the_noise,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_nothing_is_wrong(check: Callable[[], None]) -> None:
    check()


# --- the bugs -------------------------------------------------------------------------------------------------


def buckets_by_rank(patch: pytest.MonkeyPatch) -> None:
    def by_rank(column: Any, number_of: Any) -> Any:
        values = [str(one) for one in column.to_pylist()]
        place = {one: k % cells.BUCKETS for k, one in enumerate(sorted(set(values)))}
        return np.array([place[one] for one in values])

    patch.setattr(cells, "each_value", by_rank)


def replaced_as_added(patch: pytest.MonkeyPatch) -> None:
    honest = queries_cells.Histogram.sensitivity
    patch.setattr(
        queries_cells.Histogram, "sensitivity", lambda self, unit, rows=1, norm="L1": honest(self, dp.row(), rows, norm)
    )


def all_rows_of_a_person(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cells, "one_row_each", lambda methods: methods)


def ranks_for_free(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        RankScores, "guarantee", lambda self, sensitivity=None: self.noise.guarantee(self.query.sensitivity(self.unit))
    )


def true_ranks(patch: pytest.MonkeyPatch) -> None:
    from discreet.mechanisms.counts.count_tree import CountTree

    patch.setattr(CountTree, "_draw", lambda self, counts: np.cumsum(counts))


def noise_left_out_of_the_law(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(tables_of_counts.NoiseOfCounts, "imagined", lambda self, numbers, *shape: np.zeros(shape))


@pytest.mark.parametrize(
    ("plant", "check"),
    [
        (buckets_by_rank, a_row_moves_one_cell_by_one),
        (replaced_as_added, a_replaced_row_is_charged_as_two_cells),
        (all_rows_of_a_person, a_person_has_one_row),
        (ranks_for_free, both_draws_of_ranks_are_charged),
        (true_ranks, scores_follow_from_the_noisy_distribution),
        (noise_left_out_of_the_law, the_law_has_the_noise),
    ],
    ids=lambda one: one.__name__,
)
def test_a_seeded_bug_is_seen(plant: Plant, check: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        check()


def test_methods_use_what_is_patched_here() -> None:
    assert count_methods.groups_of is cells.groups_of
