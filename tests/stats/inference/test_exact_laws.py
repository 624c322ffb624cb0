"""The mechanisms of statistics with their samplers replaced by the exact law, over all tiny tables and neighbors.

Each check is a function, and a bug that is planted must make the very same function fail.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet import testing
from discreet.exact import samplers
from discreet.mechanisms.counts.step_tallies import StepTallies
from discreet.mechanisms.noise.steps import Steps
from discreet.mechanisms.quantiles.rank_scores import RankScores

Law = dict[Any, float]
EPSILONS = (0.0, 0.1, 0.3, 0.5, 0.8, 1.0, 1.4, 2.0, 3.0)
ROW, REPLACED = dp.row(), dp.row(neighbors="replace")


def law_of(draw: Callable[[], Any], window: int) -> tuple[Law, float]:
    """The exact law of what is drawn, and the mass outside the window."""
    found = testing.exact_law(draw, window=window)
    return {outcome: float(mass) for outcome, mass in found.law.items()}, float(found.unresolved)


def not_told_apart(one: tuple[Law, float], other: tuple[Law, float], claim: Any) -> float:
    """Both ways, no ε has more than the claimed δ. The largest share of the claim that is attained."""
    share = 0.0
    for (law, _), (second, unresolved) in ((one, other), (other, one)):
        for epsilon in EPSILONS:
            ratio = math.exp(epsilon)
            attained = sum(max(0.0, mass - ratio * second.get(outcome, 0.0)) for outcome, mass in law.items())
            claimed = claim.delta_at(epsilon=epsilon)
            assert attained - ratio * unresolved <= claimed + 1e-9, "neighbors are told apart"
            share = max(share, attained / claimed if claimed > 1e-6 else 0.0)
    return share


class Chosen:
    """Two questions to a few bits: how many there are, and then, of a half that the first answer chooses, how many."""

    def __init__(self, bits: tuple[int, ...]) -> None:
        self.bits = bits

    def answer(self, earlier: list[Any]) -> Any:
        """The exact answer to the next question."""
        if not earlier:
            return np.array([sum(self.bits)])
        return np.array([sum(self.bits[::2] if float(earlier[0][0]) > 1 else self.bits[1::2])])


def answers_in_steps_keep_their_promise() -> None:
    made = Steps(noises=(dp.Laplace(scale=2, step=1), dp.Laplace(scale=1, step=1)))
    claim = made.guarantee([dp.Sensitivity(1, grain=1), dp.Sensitivity(1, grain=1)])
    tables = list(product((0, 1), repeat=3))
    laws = {
        bits: law_of(lambda bits=bits: tuple(float(one[0]) for one in made._draw(Chosen(bits))), 9) for bits in tables
    }
    pairs = [(a, b) for a in tables for b in tables if a < b and sum(x != y for x, y in zip(a, b, strict=True)) == 1]
    assert max(not_told_apart(laws[a], laws[b], claim) for a, b in pairs) > 0.5


def tallies_keep_their_promise(unit: Any = REPLACED, steps: int = 1) -> None:
    """A row arrives in one of the steps, without or with success."""
    made = StepTallies(steps=steps, groups=1, noise=dp.Laplace(scale=1, step=1))
    claim = made.guarantee(made.sensitivity(unit))

    def streamed(table: tuple[tuple[int, float], ...]) -> Any:
        running = made._start()
        drawn = [running._draw(([value for at, value in table if at == step],)) for step in range(steps)]
        return tuple(int(count) for step in drawn for count in step)

    rows = list(product(range(steps), (0.0, 1.0)))
    laws = [law_of(lambda one=one: streamed((one,)), 6) for one in rows]
    if unit is REPLACED:
        pairs = list(combinations(laws, 2))
    else:
        none = law_of(lambda: streamed(()), 6)
        pairs = [(none, law) for law in laws]
    assert max(not_told_apart(one, other, claim) for one, other in pairs) > 0.5


def products_of_ranks_scatter_as_they_say() -> None:
    """No rows at all: what is released is noise alone. 3,000 numbers: a halved noise is 30 of their deviations away."""
    for allowed in (dp.Pure(epsilon=1), dp.Approx(epsilon=1, delta=1e-6)):
        made = RankScores.for_guarantee(allowed, groups=1000, unit=ROW)
        drawn = made._draw((np.zeros(0), np.zeros(0, dtype=np.int64)))
        assert len(drawn) == 3000
        assert abs(drawn.std() / made.noise.deviation - 1) < 0.15, "the noise is not what is charged"


CHECKS: list[Callable[[], None]] = [
    answers_in_steps_keep_their_promise,
    tallies_keep_their_promise,
    products_of_ranks_scatter_as_they_say,
]


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_nothing_is_wrong(check: Callable[[], None]) -> None:
    check()


def test_added_rows_keep_their_promise_too() -> None:
    tallies_keep_their_promise(ROW)


@pytest.mark.slow
def test_rows_may_move_from_one_step_to_another() -> None:
    tallies_keep_their_promise(REPLACED, steps=2)


# --- the bugs -------------------------------------------------------------------------------------------------


def half_the_noise(patch: pytest.MonkeyPatch) -> None:
    original = samplers.discrete_laplace
    patch.setattr(samplers, "discrete_laplace", lambda scale, size: original(scale / 2, size))


def a_replaced_row_moves_one_count(patch: pytest.MonkeyPatch) -> None:
    honest = StepTallies.measured
    patch.setattr(
        StepTallies,
        "measured",
        staticmethod(lambda sensitivity, **given: honest(dp.Sensitivity(1, unit=ROW, grain=1), **given)),
    )


def products_with_half_the_noise(patch: pytest.MonkeyPatch) -> None:
    for kind in (dp.Laplace, dp.Gaussian):
        honest = kind._draw
        patch.setattr(kind, "_draw", lambda self, value, honest=honest: (honest(self, value) + np.asarray(value)) / 2)


@pytest.mark.parametrize(
    ("plant", "check"),
    [
        (half_the_noise, answers_in_steps_keep_their_promise),
        (half_the_noise, tallies_keep_their_promise),
        (a_replaced_row_moves_one_count, tallies_keep_their_promise),
        (products_with_half_the_noise, products_of_ranks_scatter_as_they_say),
    ],
    ids=lambda one: one.__name__,
)
def test_a_seeded_bug_is_seen(
    plant: Callable[[pytest.MonkeyPatch], None], check: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        check()
