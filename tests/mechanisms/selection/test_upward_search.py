"""The upward search by its exact law: what it promises, where it stops, and how far it may go too far."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

import discreet as dp
from discreet import testing
from discreet.mechanisms.selection.upward_search import BAR, OFFSET

from ...refusing import refuses

Floats = NDArray[np.float64]
ALARM = 1e-7
MORE, EITHER = (dp.Sensitivity(1, "Linf", grain=1, monotone=monotone) for monotone in (True, False))


def search(bar: Any, step: Any, enough: int = 3) -> dp.mechanisms.UpwardSearch:
    """The search with these rates of noise."""
    return dp.mechanisms.UpwardSearch(enough=enough, bar_scale=1 / Fraction(bar), step_scale=1 / Fraction(step))


def stops(kind: dp.mechanisms.UpwardSearch, counts: Any, reach: int = 250) -> Floats:
    """P[the walk stops at j], summed over the noise of the bar: a step stops with P[G_j ≥ count − enough + G]."""
    bar, step = 1 / float(kind.bar_scale), 1 / float(kind.step_scale)
    noise = np.arange(reach)
    masses = np.exp(-bar * noise) * -math.expm1(-bar)
    stop = np.exp(-step * np.maximum(np.asarray(counts)[..., None] - kind.enough + noise, 0))
    stop[..., -1, :] = 1
    on = np.cumprod(1 - stop[..., :-1, :], axis=-2)
    reached = np.concatenate([np.ones_like(stop[..., :1, :]), on], axis=-2)
    law: Floats = (reached * stop) @ masses
    return law


def worst(kind: dp.mechanisms.UpwardSearch, first: Any, second: Any) -> float:
    """The largest log ratio of the two laws, either way."""
    return float(np.abs(np.log(stops(kind, first)) - np.log(stops(kind, second))).max())


@pytest.mark.parametrize("counts", [(4, 1), (0, 6), (3, 3), (2,)])
def test_the_formula_is_the_law_that_is_drawn(counts: tuple[int, ...]) -> None:
    kind = search(1, 2)
    found = testing.exact_law(lambda: kind._draw(list(counts)), window=14)
    for place, mass in enumerate(stops(kind, counts)):
        drawn = float(found.law.get(place, 0))
        assert drawn <= mass + 1e-12
        assert mass <= drawn + float(found.unresolved) + 1e-12


def random_neighbors(cases: int, either: bool) -> tuple[Any, Any]:
    """Counts of five limits near the bar, and the same with 0 or 1 more; or one less, too."""
    random = np.random.default_rng(5)
    counts = random.integers(0, 9, (cases, 5))
    counts[: cases // 2] = -np.sort(-counts[: cases // 2], axis=1)  # people above growing limits
    return counts, counts + random.integers(-1 if either else 0, 2, counts.shape)


@pytest.mark.parametrize(("bar", "step"), [(0.3, 0.2), (0.7, 0.3), (0.1, 1.5)])
def test_one_person_more_costs_the_sum_of_both_and_no_more(bar: float, step: float) -> None:
    """The exact law of 2,000 random cases in both directions, and a case that attains the promise."""
    kind = search(Fraction(str(bar)), Fraction(str(step)))
    promised = float(kind.guarantee(MORE).epsilon)  # type: ignore[attr-defined]
    assert promised == pytest.approx(bar + step)
    first, second = random_neighbors(2000, either=False)
    assert worst(kind, first, second) <= promised + 1e-9
    attained = np.log(stops(kind, (4, 3, 0)) / stops(kind, (3, 3, 0)))
    assert attained[1] == pytest.approx(promised, abs=1e-6)
    # towards more people the bar costs nothing
    assert np.log(stops(kind, first) / stops(kind, second)).max() <= step + 1e-9


@pytest.mark.parametrize(("bar", "step"), [(0.3, 0.2), (0.7, 0.3), (0.1, 1.5)])
def test_counts_that_move_both_ways_cost_one_step_more(bar: float, step: float) -> None:
    kind = search(Fraction(str(bar)), Fraction(str(step)))
    promised = float(kind.guarantee(EITHER).epsilon)  # type: ignore[attr-defined]
    assert promised == pytest.approx(bar + 2 * step)
    assert worst(kind, *random_neighbors(2000, either=True)) <= promised + 1e-9
    assert worst(kind, (4, 3, 0), (3, 4, 0)) == pytest.approx(promised, abs=1e-6)


def test_a_replaced_person_moves_the_counts_one_way() -> None:
    """All tables of four people with a number from 0 to 3 each, compared with the limits 0, 1, 2; one is replaced."""
    kind = search(Fraction(1, 2), Fraction(1, 4), enough=2)
    promised = float(kind.guarantee(MORE).epsilon)  # type: ignore[attr-defined]
    rest = np.array(list(product(range(4), repeat=3)))
    above = {
        own: np.stack([(np.column_stack([rest, np.full(len(rest), own)]) > limit).sum(axis=1) for limit in range(3)], 1)
        for own in range(4)
    }
    found = [worst(kind, above[a], above[b]) for a, b in combinations(range(4), 2)]
    assert max(found) <= promised + 1e-9
    assert max(found) > 0.9 * promised


def test_two_people_cost_twice() -> None:
    kind = search(Fraction(1, 2), Fraction(1, 4))
    bound = dp.Sensitivity(2, "Linf", monotone=True)
    assert kind.guarantee(bound) == dp.Pure(epsilon=Fraction(3, 2))
    assert worst(kind, (4, 3, 0), (2, 3, 0)) == pytest.approx(1.5, abs=1e-6)
    assert kind.guarantee(dp.Sensitivity(1.5, "Linf", monotone=True)) == dp.Pure(epsilon=Fraction(3, 2))


@pytest.mark.slow
@pytest.mark.parametrize("walks", [600, 10_000])
def test_walks_follow_the_law(walks: int) -> None:
    """Chi-square of 600 or 10⁴ walks; detects a bar whose noise is half or twice as large."""
    people = -np.sort(-np.random.default_rng(8).lognormal(3, 1, 2000))
    limits = 2.0 ** (np.arange(40) / 2)
    counts = (people[:, None] > limits).sum(axis=0)
    kind = dp.mechanisms.UpwardSearch.for_guarantee(dp.Pure(epsilon=0.2), people=5, sensitivity=MORE)
    drawn = np.bincount([kind._draw(counts) for _ in range(walks)], minlength=40)

    def p_value(of: dp.mechanisms.UpwardSearch) -> float:
        law = stops(of, counts)
        often = law * drawn.sum() > 10
        seen, expected = (np.append(x[often], x[~often].sum()) for x in (drawn, law * drawn.sum()))
        return float(chi2.sf(((seen - expected) ** 2 / expected).sum(), len(seen) - 1))

    assert p_value(kind) > ALARM
    for factor in (Fraction(1, 2), 2):
        other = Fraction(str(kind.bar_scale)) * factor
        assert p_value(dp.mechanisms.UpwardSearch(enough=kind.enough, bar_scale=other, step_scale=kind.step_scale)) < (
            ALARM
        )


@pytest.mark.parametrize("epsilon", [0.05, 0.2, 1])
def test_a_walk_that_goes_much_too_far_is_rare(epsilon: float) -> None:
    """The exact law: the walk ends within ten octaves after nobody is above, but for a few in a thousand."""
    kind = dp.mechanisms.UpwardSearch.for_guarantee(dp.Pure(epsilon=epsilon), people=1, sensitivity=MORE)
    counts = np.append(np.full(10, 10_000), np.zeros(60, dtype=int))
    law = stops(kind, counts, reach=4000)
    assert law[:10].sum() < 1e-9
    assert law[30:].sum() < 0.004
    even = search(Fraction(str(epsilon)) / 2, Fraction(str(epsilon)) / 2, enough=kind.enough)
    assert stops(even, counts, reach=4000)[30:].sum() > 2 * law[30:].sum()


@pytest.mark.parametrize("bound", [MORE, EITHER, dp.Sensitivity(3, "Linf")])
def test_it_is_calibrated_with_the_share_of_the_bar(bound: dp.Sensitivity) -> None:
    kind = dp.mechanisms.UpwardSearch.for_guarantee(dp.Pure(epsilon=0.3), people=2.5, sensitivity=bound)
    assert float(kind.guarantee(bound).epsilon) == pytest.approx(0.3, rel=1e-9)  # type: ignore[attr-defined]
    assert kind.guarantee(bound).epsilon <= 0.3  # type: ignore[attr-defined]
    ratio = float(kind.step_scale) / float(kind.bar_scale)
    assert ratio == pytest.approx(float(BAR / (1 - BAR)), rel=1e-9)
    assert kind.enough == math.ceil(2.5 + float(OFFSET) * float(kind.step_scale))


def test_its_error_holds() -> None:
    kind = search(Fraction(1, 5), Fraction(1, 10))
    counts = np.array([900, 400, 120, 60, 40, 20, 5, 0])
    most = kind.enough + float(kind.error(0.9, limits=len(counts)))
    assert stops(kind, counts)[counts > most].sum() <= 0.1
    assert kind.error(0.9) == kind.error(0.9, limits=1)


def test_without_noise_it_stops_where_few_enough_are_above() -> None:
    kind = search(1, 1, enough=3)
    with testing.no_noise():
        assert dp.release([9, 4, 3, 0], kind, sensitivity=MORE).value == 2
        assert dp.release([9, 8], kind, sensitivity=MORE).value == 1
        assert dp.release(np.array([2]), kind, sensitivity=MORE).value == 0


def test_what_it_does_not_take() -> None:
    with refuses(dp.InvalidArgument, "guarantee-not-supported"):
        dp.mechanisms.UpwardSearch.for_guarantee(dp.Approx(epsilon=1, delta=1e-6), people=3, sensitivity=1)
    with refuses(dp.InvalidArgument, "wrong-shape"):
        dp.release([], search(1, 1), sensitivity=1)
    with refuses(dp.InvalidArgument, "not-a-number"):
        dp.release(["a"], search(1, 1), sensitivity=1)
