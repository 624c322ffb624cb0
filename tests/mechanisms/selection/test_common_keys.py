"""Common keys: every vote moves a coin by no more than its share, and keys are shown that enough people have."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import mpmath
import numpy as np
import pytest

import discreet as dp
from discreet.exact.rational import exactly
from discreet.guarantees.guarantee import Renyi
from discreet.guarantees.privacy_loss.derived_pairs import RenyiCurvePair
from discreet.mechanisms.selection import key_chances
from discreet.mechanisms.selection.common_keys import CommonKeys, _shown
from discreet.mechanisms.selection.key_chances import Curve, curves, divergence, sizes_up_to
from discreet.mechanisms.selection.key_holders import DEGREES, Holders, PersonKeys

from ...refusing import refuses

GOAL = dp.Approx(epsilon=1, delta=1e-5)
SETTINGS = [
    (16.0, 0.4, 5e-6, 40),
    (3.0, 2.0, 1e-2, 6),
    (1.5, 60.0, 1e-7, 5),
    (180.0, 0.025, 5e-9, 3),
    (40.0, 0.004, 1e-4, 2),
]
EXTREME = [
    (1.000001, 0.1, 1e-30, 2),
    (1.01, 1.0, 1e-200, 2),
    (3.0, 400.0, 1e-2, 3),
    (1.0002, 3e6, 1e-3, 2),
    (16.0, 4.0, 1e-285, 1),
    (1.05, 500.0, 1e-3, 3),
]
"""Where rounding matters: an order near 1, chances near the smallest doubles, and divergences whose exponentials are
no doubles."""


# --- curves ---------------------------------------------------------------------------------------------------


def masses(curve: Curve, place: int) -> tuple[mpmath.mpf, mpmath.mpf]:
    """The exact chances that a key is shown and hidden: of the doubles that are drawn with."""
    small = mpmath.mpf(float(curve.small[min(place, len(curve.small) - 1)]))
    return (small, 1 - small) if min(place, len(curve.small) - 1) < curve.middle else (1 - small, small)


def sums(curve: Curve, place: int, vote: int, order: float, leak: mpmath.mpf) -> mpmath.mpf:
    """Σ P^order·Q^(1−order) of a coin before and after a vote, the larger of both directions, in 60 digits."""
    before, after = masses(curve, place), masses(curve, place + vote)

    def summed(inside: Any, outside: Any) -> mpmath.mpf:
        terms = [mpmath.mpf(0) if p == 0 else mpmath.inf if q == 0 else p * (p / q) ** (order - 1)
                 for p, q in zip(inside, outside, strict=True)]  # fmt: skip
        return mpmath.fsum(terms)

    up = summed((max(after[0] - leak, mpmath.mpf(0)), after[1]), before)
    down = summed((before[0], max(before[1] - leak, mpmath.mpf(0))), after)
    return max(up, down)


def check_votes(made: tuple[Curve, ...], setting: tuple[float, float, float, int], places: int = 40) -> float:
    """A person with t keys moves each coin by 1/t of the loss, with 1/t of the leak; the largest share that is used.

    Both are exact: nothing is added for rounding.
    """
    order, loss, leak, keys = setting
    used = 0.0
    with mpmath.workdps(60 + math.ceil(-math.log10(leak))):
        for curve in made:
            looked = {*range(min(12, len(curve.small))), *range(max(0, len(curve.small) - 12), len(curve.small))}
            looked |= {*np.linspace(0, len(curve.small) - 1, places).astype(int).tolist()}
            for t, place in product((1, 2, 3, keys, 5 * keys), sorted(looked)):
                if vote := curve.votes(t):
                    moved = sums(curve, place, vote, order, mpmath.mpf(leak) / t)
                    share = mpmath.log(moved) * t / ((mpmath.mpf(order) - 1) * loss)
                    assert share <= 1, (curve.keys, curve.steps, place, vote, float(share))
                    used = max(used, float(share))
    return used


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
def test_no_vote_moves_a_coin_by_more_than_its_share(setting: tuple[float, float, float, int]) -> None:
    assert check_votes(curves(*setting), setting) > 0.95


@pytest.mark.slow
@pytest.mark.parametrize("setting", EXTREME)
def test_no_rounding_moves_a_coin_by_more_than_its_share(setting: tuple[float, float, float, int]) -> None:
    check_votes(curves(*setting), setting)
    check_alone(curves(*setting), setting)


def check_alone(made: tuple[Curve, ...], setting: tuple[float, float, float, int]) -> None:
    """A key of one person alone is shown with no more than its part of the leak, as a fraction."""
    leak = Fraction(setting[2])
    for curve in made:
        alone = [Fraction(float(curve.small[vote])) for vote in range(1, curve.steps + 1)]
        parts = curve.steps**2 * curve.keys
        assert all(0 < chance <= leak * vote**2 / parts for vote, chance in enumerate(alone, start=1))


@pytest.mark.parametrize(
    ("check", "name", "wrong"),
    [(check_votes, "_MOST_ROOM", math.inf), (check_alone, "SLACK", 0.0)],
    ids=["of exponentials", "of leaks"],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_mutant_rounding_is_forgotten(monkeypatch: pytest.MonkeyPatch, check: Any, name: str, wrong: float) -> None:
    setting = EXTREME[2]
    check(curves.__wrapped__(*setting), setting)
    monkeypatch.setattr(key_chances, name, wrong)
    with pytest.raises(AssertionError):
        check(curves.__wrapped__(*setting), setting)


@pytest.mark.parametrize(
    "setting",
    [
        (1 + 1e-8, 0.01, 1e-4, 2),
        (2e6, 1e-8, 1e-3, 1),
        (1e5, 1e-20, 1e-3, 1),
        (4.0, 1.0, 1e-289, 300),
        (1.0, 1.0, 0.1, 1),
    ],
)
def test_where_doubles_keep_no_promise_there_are_no_curves(setting: tuple[float, float, float, int]) -> None:
    order, loss, leak, keys = setting
    with refuses(dp.InvalidArgument, "out-of-range"):
        curves(*setting)
    with refuses(dp.InvalidArgument, "out-of-range"):
        CommonKeys(order=order, losses=(loss,), leaks=(leak,), keys_per_person=keys)


def test_orders_and_losses_that_are_no_doubles_are_refused() -> None:
    for order, loss in ((10**400, 1), (2, 10**400), (1 + Fraction(1, 10**400), 1), (2, Fraction(1, 10**400))):
        with refuses(dp.InvalidArgument, "out-of-range"):
            CommonKeys(order=order, losses=(loss,), leaks=(0.1,), keys_per_person=1)
    with refuses(dp.InvalidArgument, "out-of-range"):
        CommonKeys.for_guarantee(dp.Approx(epsilon=1e-4, delta=1e-8))


def test_mutant_a_curve_that_rises_faster_is_caught() -> None:
    setting = SETTINGS[1]
    order, loss, leak, keys = setting
    for wrong in (curves(order, 1.05 * loss, leak, keys), curves(order, loss, 1.05 * leak, keys)):
        with pytest.raises(AssertionError):
            check_votes(wrong, setting)


@pytest.mark.some_quick(3)
@pytest.mark.parametrize("setting", SETTINGS)
def test_the_stated_divergence_is_that_of_the_chances(setting: tuple[float, float, float, int]) -> None:
    """By floats over all votes: at the order of the curves what they were made for, and less at lower ones."""
    order, loss, leak, _ = setting
    found = [divergence(curves(*setting), one, leak) for one in (order, (1 + order) / 2, 1 + (order - 1) / 4)]
    assert 0.98 * loss < found[0] <= loss
    assert found == sorted(found, reverse=True)
    with mpmath.workdps(40):
        lower = (1 + order) / 2
        for curve in curves(*setting)[:1]:
            for place in range(0, len(curve.small), max(1, len(curve.small) // 30)):
                moved = sums(curve, place, curve.steps, lower, mpmath.mpf(leak) / curve.keys)
                assert mpmath.log(moved) * curve.keys / (lower - 1) <= found[1]


@pytest.mark.parametrize("setting", SETTINGS[:3])
def test_chances_rise_from_none_to_certain(setting: tuple[float, float, float, int]) -> None:
    for curve in curves(*setting):
        assert curve.chances[0] == 0
        assert curve.chances[-1] == 1
        assert (np.diff(curve.chances) >= 0).all()
        assert (curve.small <= 0.5).all()


def test_the_better_of_two_curves_keeps_what_both_keep() -> None:
    """Convexity, on a grid: if p → q and p' → q' keep a bound, so do the larger ones, and the smaller ones."""
    order, leak = 5.0, 0.01
    grid = np.linspace(0.02, 0.98, 25)

    def moved(p: Any, q: Any) -> Any:
        up = np.maximum(q - leak, 0) ** order * p ** (1 - order) + (1 - q) ** order * (1 - p) ** (1 - order)
        down = np.maximum(1 - p - leak, 0) ** order * (1 - q) ** (1 - order) + p**order * q ** (1 - order)
        return np.maximum(up, down)

    p, q, r, s = (axis.ravel() for axis in np.meshgrid(grid, grid, grid, grid, indexing="ij", sparse=False))
    rising = (p <= q) & (r <= s)
    p, q, r, s = p[rising], q[rising], r[rising], s[rising]
    most = np.maximum(np.maximum(moved(p, q), moved(r, s)), 1)
    for better in (np.maximum, np.minimum):
        assert (moved(better(p, r), better(q, s)) <= most * (1 + 1e-12)).all()


def test_votes_share_what_a_person_may_move() -> None:
    for curve in curves(*SETTINGS[0]):
        votes = [curve.votes(t) for t in range(1, 3000)]
        assert votes[: curve.keys] == [curve.steps] * curve.keys
        assert votes == sorted(votes, reverse=True)
        assert all(v**2 * t <= curve.steps**2 * curve.keys for t, v in enumerate(votes, start=1))
    assert sizes_up_to(300) == (1, 2, 4, 8, 16, 32, 64, 128, 256, 300)
    assert sizes_up_to(1) == (1,)
    assert sizes_up_to(4) == (1, 2, 4)


# --- who has which keys -------------------------------------------------------------------------------------------


def test_holders_are_counted_by_how_many_other_keys_they_have() -> None:
    random = np.random.default_rng(3)
    pairs = sorted({(int(a), int(b)) for a, b in random.integers(0, [40, 30], (500, 2))})
    people, codes = np.array(pairs).T
    value = PersonKeys(people, codes, [f"k{n}" for n in range(30)])
    for shown in ((), ("k3", "k4"), tuple(value.keys)):
        expected: dict[tuple[str, int], int] = {}
        for person in set(people.tolist()):
            own = [value.keys[c] for p, c in pairs if p == person and value.keys[c] not in shown]
            for key in own:
                degree = next(d for d in DEGREES if d >= len(own))
                expected[key, degree] = expected.get((key, degree), 0) + 1
        found = value.holders(shown)
        rows = zip(found.key.tolist(), found.degree.tolist(), found.people.tolist(), strict=True)
        assert {(found.keys[key], degree): n for key, degree, n in rows} == expected


def test_people_with_too_many_keys_have_no_vote() -> None:
    many = DEGREES[-1] + 1
    value = PersonKeys(np.append(np.zeros(many, dtype=int), 1), np.append(np.arange(many), 5), list(range(many)))
    found = value.holders(())
    assert (list(found.keys), found.degree.tolist(), found.people.tolist()) == ([5], [1], [1])


def test_degrees_are_rounded_up_and_rows_may_come_in_any_order() -> None:
    assert DEGREES[:12] == (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16)
    assert list(DEGREES) == sorted(set(DEGREES))
    made = Holders.of([("b", 2, 5), ("a", 1, 3), ("b", 1, 1)])
    curve = curves(*SETTINGS[1])[0]
    votes = dict(zip(made.keys, made.votes(curve).tolist(), strict=True))
    assert votes == {"b": 5 * curve.votes(2) + curve.votes(1), "a": 3 * curve.votes(1)}
    assert Holders.of([]).keys == []


# --- the mechanism ----------------------------------------------------------------------------------------------


def users(each: int, people: int = 2000, keys: int = 300) -> PersonKeys:
    random = np.random.default_rng(each)
    zipf = 1 / np.arange(1, keys + 1)
    codes = [random.choice(keys, each, replace=False, p=zipf / zipf.sum()) for _ in range(people)]
    return PersonKeys(np.repeat(np.arange(people), each), np.concatenate(codes), list(range(keys)))


@pytest.mark.slow
def test_more_keys_of_each_person_show_more() -> None:
    kind = CommonKeys.for_guarantee(GOAL, keys_per_person=64)
    shown = [len(kind._draw(users(each))) for each in (1, 5, 40)]
    assert shown == sorted(shown)
    assert shown[0] > 10


@pytest.mark.slow
def test_keys_of_many_are_always_shown_and_in_public_order() -> None:
    kind = CommonKeys.for_guarantee(GOAL, keys_per_person=2)
    people = np.arange(3000)
    value = PersonKeys(np.tile(people, 2), np.repeat([0, 1], 3000), ["b", "a"])
    assert all(kind._draw(value) == ["a", "b"] for _ in range(50))
    assert kind._draw(PersonKeys(np.zeros(0, dtype=int), np.zeros(0, dtype=int), [])) == []


def test_a_missing_key_belongs_to_nobody() -> None:
    value = PersonKeys(np.tile(np.arange(3000), 2), np.repeat([0, 1], 3000), [math.nan, 3.0])
    assert CommonKeys.for_guarantee(GOAL, keys_per_person=2)._draw(value) == [3.0]


def test_the_best_curve_decides() -> None:
    """With two curves, a key has the larger of both chances; near 1, the smaller chance to stay hidden."""
    made = curves(*SETTINGS[0])
    for degree, people in ((1, 12), (30, 50), (2, 90), (40, 200)):
        chances = [float(c.chances[min(people * c.votes(degree), len(c.small) - 1)]) for c in made]
        rows = Holders.of([(key, degree, people) for key in range(3000)])
        found = len(_shown(rows, made)) / 3000
        deviation = math.sqrt(max(chances) * (1 - max(chances)) / 3000)
        assert abs(found - max(chances)) <= 5.4 * deviation + 1e-3  # false alarms below 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("goal", [GOAL, dp.Approx(epsilon=0.2, delta=1e-8), dp.Approx(epsilon=5, delta=1e-3)])
def test_the_guarantee_is_kept_and_nearly_used(goal: dp.Approx) -> None:
    kind = CommonKeys.for_guarantee(goal, keys_per_person=4)
    delta = kind.guarantee().delta_at(epsilon=goal.epsilon)
    assert 0.98 * float(goal.delta) <= delta <= float(goal.delta)
    assert kind.guarantee().relation == "add_or_remove"
    replaced = kind.guarantee().for_replacement()
    assert replaced.delta_at(epsilon=2 * float(goal.epsilon)) > float(goal.delta)


def test_a_goal_for_replaced_people_is_kept_for_them() -> None:
    """Half of the divergence at the same order: better than half of ε, to which a smaller order belongs."""
    unit = dp.person("id", neighbors="replace")
    kind = CommonKeys.for_guarantee(dp.Approx(epsilon=1, delta=1e-5, protects=unit), keys_per_person=4)
    stated = kind.guarantee().stated_for(unit)
    assert stated.protects == unit
    assert 0.98e-5 <= stated.delta_at(epsilon=1) <= 1e-5
    halved = CommonKeys.for_guarantee(dp.Approx(epsilon=0.5, delta=1e-5 / (1 + math.exp(0.5))), keys_per_person=4)
    assert kind.error(0.5, keys=4).amount < 0.9 * halved.error(0.5, keys=4).amount


def test_its_error_is_the_number_of_people_that_a_key_needs() -> None:
    kind = CommonKeys.for_guarantee(GOAL, keys_per_person=8)
    made = kind._curves(1)
    for keys, confidence in ((1, 0.5), (3, 0.95), (8, 0.99), (20, 0.9)):
        needed = int(float(kind.error(confidence, keys=keys)))

        def best(people: int, keys: int = keys) -> float:
            return max(float(c.chances[min(people * c.votes(keys), len(c.small) - 1)]) for c in made)

        assert best(needed - 1) < confidence <= best(needed)
    assert kind.error(0.9) == kind.error(0.9, keys=8)
    assert kind.people_needed(3) == float(kind.error(0.5, keys=3))
    assert kind.error(0.9, keys=DEGREES[-1] + 1).amount is None


def test_what_it_does_not_take() -> None:
    kind = CommonKeys(order=4, losses=(1,), leaks=(0.01,), keys_per_person=1)
    with refuses(dp.InvalidArgument, "wrong-type"):
        dp.release({"a": 3}, kind)
    with refuses(dp.InvalidArgument, "sensitivity-not-taken"):
        kind.guarantee(2)
    with refuses(dp.InvalidArgument, "needs-delta"):
        CommonKeys.for_guarantee(dp.Pure(epsilon=1))
    with refuses(dp.InvalidArgument, "out-of-range"):
        CommonKeys.for_guarantee(dp.Approx(epsilon=1, delta=Fraction(1, 10**290)))
    with refuses(dp.InvalidArgument, "out-of-range"):
        CommonKeys.for_guarantee(dp.Approx(epsilon=0, delta=0.1))


def test_a_curve_of_divergences() -> None:
    points = ((Fraction(2), Fraction(1, 10)), (Fraction(8), Fraction(1, 2)))
    pair = RenyiCurvePair(points)
    assert pair.renyi(2.0) == pytest.approx(0.1)
    assert pair.renyi(8.0) == pytest.approx(0.5)
    assert pair.renyi(9.0) == math.inf
    # (order − 1)·divergence is interpolated: 0.1 at 2 and 3.5 at 8
    assert pair.renyi(5.0) == pytest.approx((0.1 + 3.5) / 2 / 4)
    assert pair.renyi(1.5) == pytest.approx(0.1)
    stated = [Renyi(order=order, epsilon=bound).delta_at(epsilon=1) for order, bound in points]
    assert pair.delta(1.0) == min(stated)
    assert pair.twice() == RenyiCurvePair(tuple((order, 2 * bound) for order, bound in points))


def test_a_ledger_adds_divergences_of_lower_orders() -> None:
    """A default ledger admits more choices than the sum of their ε allows."""
    kind = CommonKeys.for_guarantee(dp.Approx(epsilon=0.5, delta=1e-7), keys_per_person=2)
    ledger = dp.Ledger.open(":memory:", protects=dp.person("id"), limit=dp.Approx(epsilon=3, delta=1e-5))
    value = users(1, people=50)
    for _ in range(10):
        assert dp.release(value, kind, ledger=ledger).receipt
    assert float(exactly(kind.order)) > 16


def test_a_pair_counts_once_and_equal_keys_of_other_types_are_apart() -> None:
    """Otherwise one person would move a coin further than a person may."""
    once, thrice = (PersonKeys(np.zeros(n, np.int64), np.zeros(n, np.int64), ["a"]) for n in (1, 3))
    assert thrice.holders(()).people.tolist() == once.holders(()).people.tolist() == [1]
    assert thrice.totals(None) == once.totals(None)
    assert len(Holders.of([(1, 2, 1), (True, 2, 1), (1.0, 2, 1)]).keys) == 3
    with pytest.raises(dp.InvalidArgument, match="degree"):
        Holders.of([("a", 0, 1)])
