"""Seeded bugs of proportions and sequential tests: each is planted, and a check of ours must see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet.exact import samplers
from discreet.mechanisms.counts import step_tallies
from discreet.mechanisms.counts.step_tallies import StepTallies
from discreet.mechanisms.noise import smoothed
from discreet.mechanisms.noise.smoothed import SmoothedCount
from discreet.queries.sensitivity import Sensitivity
from discreet.stats import proportion_methods, sequential_test
from discreet.stats.inference.proportions import ShareOfKnown

Plant = Callable[[pytest.MonkeyPatch], None]
REPLACED = dp.row(neighbors="replace")


# --- the checks ------------------------------------------------------------------------------------------------------


def a_count_scatters_as_it_says() -> None:
    """3,000 draws, within 15% of the deviation: a false alarm has a probability below 1e-6. Noise is whole, and the
    uniform part is not.
    """
    made = SmoothedCount(dp.Laplace(scale=5, step=1))
    drawn = np.array([made._draw(100) for _ in range(3000)]) - 100
    assert abs(drawn.std() / np.sqrt(50.0) - 1) < 0.15, "the noise is not what is charged"
    assert len(set(drawn % 1)) > 2900, "the uniform part is missing"


def each_step_has_its_own_noise() -> None:
    stream = dp.stream(StepTallies(steps=40, groups=2, noise=dp.Laplace(scale=50, step=1)), sensitivity=1)
    drawn = np.array([stream.add(([], [])) for _ in range(40)])
    assert len({tuple(one) for one in drawn}) == 40, "a draw is used twice"
    assert drawn.any(), "no noise"
    with pytest.raises(dp.InvalidArgument):
        stream.add(([], []))


def a_replaced_row_is_charged_for_both_of_its_counts() -> None:
    """A row that moves from one count to another, measured."""
    noise = dp.Laplace(scale=1, step=1)
    made = StepTallies(steps=2, groups=2, noise=noise)
    base, other = np.array(step_tallies.tally([1, 1])), np.array(step_tallies.tally([1, 0]))
    moved = int(np.abs(base - other).sum())
    charged = made.guarantee(made.sensitivity(REPLACED)).epsilon_at(delta=0)
    assert charged >= moved - 1e-9, "a replaced row moves more than is charged"
    three = made.guarantee(made.sensitivity(dp.person("who"), 3)).epsilon_at(delta=0)
    assert three >= 3 - 1e-9, "the rows of a person are not all charged"


def a_test_is_charged_before_its_first_look() -> None:
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Pure(epsilon=1))
    dp.stats.sequential(looks=5, epsilon=1, ledger=ledger)
    assert ledger.count == 1, "nothing is charged"
    with pytest.raises(dp.BudgetExhausted):
        dp.stats.sequential(looks=5, epsilon=0.1, ledger=ledger)


def a_public_number_of_rows_needs_replaced_rows() -> None:
    yes = np.arange(50) % 2 == 0
    for unit, where in ((dp.row(), None), (REPLACED, "yes"), (dp.person("who"), None)):
        ledger = dp.Ledger.open(":memory:", protects=unit, limit=dp.Pure(epsilon=9))
        table = dp.table({"yes": yes, "who": np.arange(50)}, ledger=ledger, rows_per_person=1 if unit.column else None)
        found = table.stats.proportion("yes", epsilon=1, where=where)
        assert not isinstance(found._inference, ShareOfKnown), "a private number of rows is used"


def missing_values_keep_the_number_private() -> None:
    ledger = dp.Ledger.open(":memory:", protects=REPLACED, limit=dp.Pure(epsilon=9))
    for cells in ([True, None] * 9, np.array([True, None] * 9, dtype=object)):
        table = dp.table({"yes": cells}, ledger=ledger, types={"yes": "boolean"})
        found = table.stats.proportion("yes", epsilon=1)
        assert not isinstance(found._inference, ShareOfKnown), "rows without a value are counted"


# --- the bugs --------------------------------------------------------------------------------------------------------


def noise_halved(patch: pytest.MonkeyPatch) -> None:
    draw = dp.Laplace._draw
    patch.setattr(dp.Laplace, "_draw", lambda self, value: (draw(self, value) + np.asarray(value)) // 2)


def no_uniform_part(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(smoothed.samplers, "uniform_below", lambda bound, size: np.zeros(size, dtype=np.int64))


def noise_used_twice(patch: pytest.MonkeyPatch) -> None:
    once = samplers.discrete_laplace(dp.Laplace(scale=50, step=1)._steps, 4)
    patch.setattr(dp.Laplace, "_noise", lambda self, size: once)


def steps_without_end(patch: pytest.MonkeyPatch) -> None:
    draw = step_tallies.RunningTallies._draw

    def never(self: Any, value: Any) -> Any:
        self._taken = 0
        return draw(self, value)

    patch.setattr(step_tallies.RunningTallies, "_draw", never)


def one_count_of_a_replaced_row(patch: pytest.MonkeyPatch) -> None:
    def once(sensitivity: Any, *, steps: int, groups: int, norm: str) -> Sensitivity:
        return Sensitivity(sensitivity.exact, norm, sensitivity.unit, 2 * steps * groups, 1)  # type: ignore[arg-type]

    patch.setattr(StepTallies, "measured", staticmethod(once))


def one_row_of_a_person(patch: pytest.MonkeyPatch) -> None:
    moved = step_tallies.rows_moved
    patch.setattr(step_tallies, "rows_moved", lambda unit, rows=1: moved(unit, 1))


def no_charge(patch: pytest.MonkeyPatch) -> None:
    stream = sequential_test.stream
    patch.setattr(sequential_test, "stream", lambda *given, **named: stream(*given, **(named | {"ledger": None})))


def every_relation_has_a_public_size(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(proportion_methods, "has_public_size", lambda methods: True)


def everything_is_complete(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(proportion_methods, "is_complete", lambda methods, column: True)


@pytest.mark.parametrize(
    ("plant", "check"),
    [
        (noise_halved, a_count_scatters_as_it_says),
        (no_uniform_part, a_count_scatters_as_it_says),
        (noise_used_twice, each_step_has_its_own_noise),
        (steps_without_end, each_step_has_its_own_noise),
        (one_count_of_a_replaced_row, a_replaced_row_is_charged_for_both_of_its_counts),
        (one_row_of_a_person, a_replaced_row_is_charged_for_both_of_its_counts),
        (no_charge, a_test_is_charged_before_its_first_look),
        (every_relation_has_a_public_size, a_public_number_of_rows_needs_replaced_rows),
        (everything_is_complete, missing_values_keep_the_number_private),
    ],
    ids=lambda one: one.__name__,
)
def test_a_seeded_bug_is_seen(plant: Plant, check: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check()


@pytest.mark.parametrize(
    "check",
    [
        a_count_scatters_as_it_says,
        each_step_has_its_own_noise,
        a_replaced_row_is_charged_for_both_of_its_counts,
        a_test_is_charged_before_its_first_look,
        a_public_number_of_rows_needs_replaced_rows,
        missing_values_keep_the_number_private,
    ],
    ids=lambda one: one.__name__,
)
def test_without_a_bug_nothing_is_seen(check: Callable[[], None]) -> None:
    check()
