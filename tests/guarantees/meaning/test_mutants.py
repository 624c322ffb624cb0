"""Seeded bugs of what is said about a guarantee: each is planted, and a check of ours must see it."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import pytest

import discreet as dp
from discreet.guarantees import Guarantee
from discreet.guarantees.meaning import curve, groups, risk, words
from discreet.ledger import periods

from .attacks import (
    CHECKS,
    groups_are_paths,
    leaks_are_found,
    odds_change_in_both_directions,
    rare_outputs_are_counted,
    values_are_replacements,
)

Plant = Callable[[pytest.MonkeyPatch], None]


def printed_numbers_never_understate() -> None:
    for value in (0.73101, 0.0271, 0.9989):
        assert Fraction(words.percent(value, up=True)[:-1]) / 100 >= Fraction(value), "a printed risk is too small"
        assert Fraction(words.percent(value, up=False)[:-1]) / 100 <= Fraction(value), "a printed risk is too small"


def every_period_counts() -> None:
    ledger = dp.Ledger.open(":memory:", protects=dp.person("id"), limit=dp.Pure(epsilon=1))
    ledger.charge(dp.Pure(epsilon=0.5), asked="a", mechanism="b")
    ledger.renew(why="a new year")
    ledger.charge(dp.Pure(epsilon=0.25), asked="a", mechanism="b")
    spent = [one.spent for one in ledger.periods]
    total = periods.over_all(spent, ledger.protects)
    assert total.epsilon_at(delta=0) == 0.75, "an earlier period is forgotten"


# --- the bugs -----------------------------------------------------------------------------------------------------


def a_household_is_one_person(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(risk, "for_group", lambda guarantee, people: guarantee)


def delta_of_a_group_is_added(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(groups, "_delta_of_path", lambda epsilon, delta, count: min(Fraction(1), count * delta))


def a_value_costs_as_much_as_presence(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(risk, "_covers", lambda guarantee, people, about: groups.for_group(guarantee, people))


def odds_forget_delta(patch: pytest.MonkeyPatch) -> None:
    true = risk.loss_except

    def forgetful(guarantee: Guarantee, failure: float) -> float:
        bound = guarantee.largest_loss
        return true(guarantee, failure) if bound is None else float(bound)

    patch.setattr(risk, "loss_except", forgetful)


def failures_of_one_direction(patch: pytest.MonkeyPatch) -> None:
    def one_sided(guarantee: Guarantee, epsilon: float, failure: float) -> float:
        share = curve.delta_of(guarantee, Fraction(epsilon)) / failure
        return math.inf if share >= 1 else epsilon - math.log1p(-share)

    patch.setattr(curve, "_loss_at", one_sided)


def the_best_guess_forgets_delta(patch: pytest.MonkeyPatch) -> None:
    true = curve.delta_of

    def forgetful(guarantee: Guarantee, epsilon: Any) -> float:
        return max(0.0, true(guarantee, epsilon) - guarantee.infinite)

    patch.setattr(curve, "delta_of", forgetful)


def numbers_are_rounded_to_the_nearest(patch: pytest.MonkeyPatch) -> None:
    def nearest(value: Fraction, digits: int, *, up: bool) -> Decimal:
        return Context(prec=digits).divide(Decimal(value.numerator), Decimal(value.denominator))

    patch.setattr(words, "_rounded", nearest)


def renewals_forget(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(periods, "over_all", lambda guarantees, protects: guarantees[-1])


@pytest.mark.parametrize(
    ("plant", "check"),
    [
        (a_household_is_one_person, groups_are_paths),
        (delta_of_a_group_is_added, groups_are_paths),
        (a_value_costs_as_much_as_presence, values_are_replacements),
        (odds_forget_delta, rare_outputs_are_counted),
        (failures_of_one_direction, odds_change_in_both_directions),
        (the_best_guess_forgets_delta, leaks_are_found),
        (numbers_are_rounded_to_the_nearest, printed_numbers_never_understate),
        (renewals_forget, every_period_counts),
    ],
)
def test_a_seeded_bug_is_seen(plant: Plant, check: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    check()
    plant(monkeypatch)
    with pytest.raises(AssertionError, match=r"more often|more people|too small|forgotten"):
        check()


@pytest.mark.slow
def test_nothing_is_wrong() -> None:
    for check in (*CHECKS, printed_numbers_never_understate, every_period_counts):
        check()
