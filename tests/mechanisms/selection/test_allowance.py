"""Spending as one goes: exact caps, nothing drawn that is not paid for, and the claim against exact enumeration."""

import inspect
import math
import textwrap
from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet import testing
from discreet.mechanisms.selection import allowance
from discreet.mechanisms.selection.allowance import Allowance, guarantee_of_caps

from ...refusing import refuses

ADDED, REPLACED = dp.row(), dp.row(neighbors="replace")


def bound(unit, rows=1):
    return dp.Count().sensitivity(unit, rows)


class NotPrivate(AssertionError):
    """Two neighbors are told apart better than is claimed."""


def two_rounds(counts, guess):
    """Choose a table by its distance from a public guess, measure it, and let the answer decide the next noise."""
    left = Allowance(measuring=Fraction(1, 2), choosing=Fraction(1, 128))
    scores = np.array([int(np.abs(table - guess).sum()) for table in counts])
    chosen = left.choose(scores, Fraction(1, 8))
    first = left.measure(counts[chosen][:1], Fraction(3 if chosen else 2))
    rest = left.measuring / (2 if first[0] > 1 else 1)
    second = left.measure(counts[1 - chosen], 1 / (2 * rest))
    return chosen, first, second


def check_rounds(unit):
    """Tables of counts over two columns with two values; a row is in one cell of each."""
    guess = np.array([1, 1])
    start = [np.array([1, 1]), np.array([2, 0])]
    if unit == ADDED:
        moves = [[np.array([1, 0]), np.array([0, 1])], [np.array([0, 1]), np.array([1, 0])]]
    else:
        moves = [[np.array([1, -1]), np.array([-1, 1])], [np.array([-1, 1]), np.array([-1, 1])]]
    claim = guarantee_of_caps(Fraction(1, 2), Fraction(1, 128), 1, bound(unit))
    base = testing.exact_law(lambda: two_rounds(start, guess), window=4)
    for move in moves:
        moved = [a + b for a, b in zip(start, move, strict=True)]
        other = testing.exact_law(lambda moved=moved: two_rounds(moved, guess), window=4)
        for one, two in ((base, other), (other, base)):
            shared = [(float(p), float(two.law[y])) for y, p in one.law.items() if y in two.law]
            for order in (1.5, 2, 4):
                found = math.log(sum(p * (p / q) ** (order - 1) for p, q in shared)) / (order - 1)
                if found > claim.renyi(order):
                    raise NotPrivate(f"{found} is above {claim.renyi(order)}")
            for epsilon in (0.2, 0.5, 1.0, 2.0):
                ratio = math.exp(epsilon)
                found = sum(max(0.0, p - ratio * q) for p, q in shared)
                if found > claim.delta_at(epsilon=epsilon):
                    raise NotPrivate(f"δ({epsilon}) is {found}")


@pytest.mark.slow
@pytest.mark.parametrize("unit", [ADDED, pytest.param(REPLACED, marks=pytest.mark.slow)])
def test_adaptive_noise_keeps_the_claim(unit):
    check_rounds(unit)


def mutate(monkeypatch, name, old, new):
    source = textwrap.dedent(inspect.getsource(getattr(Allowance, name)))
    assert source.count(old) == 1
    space = dict(vars(allowance))
    exec(source.replace(old, new), space)
    monkeypatch.setattr(Allowance, name, space[name])


@pytest.mark.slow
def test_mutant_measuring_is_free(monkeypatch):
    mutate(monkeypatch, "measure", "self._measuring -= cost", "pass")
    with pytest.raises(NotPrivate):
        check_rounds(ADDED)


@pytest.mark.slow
def test_mutant_noise_of_half_the_variance(monkeypatch):
    mutate(monkeypatch, "measure", "discrete_gaussian(variance,", "discrete_gaussian(variance / 2,")
    with pytest.raises(NotPrivate):
        check_rounds(ADDED)


@pytest.mark.slow
def test_mutant_replacement_forgotten(monkeypatch):
    original = guarantee_of_caps
    monkeypatch.setitem(globals(), "guarantee_of_caps", lambda m, c, rows, bound: original(m, c, rows, None))
    with pytest.raises(NotPrivate):
        check_rounds(REPLACED)


def test_choices_are_paid_for(monkeypatch):
    """The mutant: a selection that is not charged could be repeated for ever."""
    scores = np.array([3, 1])

    def choices():
        left = Allowance(measuring=1, choosing=Fraction(1, 2))
        count = 0
        while count < 20:
            try:
                left.choose(scores, Fraction(1, 2))
            except dp.BudgetExhausted:
                break
            count += 1
        return count

    assert choices() == 4
    mutate(monkeypatch, "choose", "self._choosing -= cost", "pass")
    assert choices() == 20


def test_caps_are_exact_and_refusals_draw_nothing():
    left = Allowance(measuring=0.3, choosing=0.1)
    with testing.frozen() as tape:
        for _ in range(3):  # 0.1 each, as the decimals a person wrote
            left.measure(np.zeros(2, dtype=np.int64), Fraction(5))
        assert left.measuring == 0
        drawn = len(tape.calls)
        with refuses(dp.BudgetExhausted, "budget-exhausted"):
            left.measure(np.zeros(2, dtype=np.int64), Fraction(10**30))
        with refuses(dp.BudgetExhausted, "budget-exhausted"):
            left.choose(np.array([1, 2]), Fraction(1, 2))
        assert len(tape.calls) == drawn
    assert left.choosing == Fraction(1, 10)


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf])
def test_bad_noise_is_refused(bad):
    left = Allowance(measuring=1, choosing=1)
    for ask in (left.measure, left.choose):
        with pytest.raises(dp.InvalidArgument):
            ask(np.array([1, 2]), bad)
    assert left.measuring == left.choosing == 1
    with pytest.raises(dp.InvalidArgument):
        Allowance(measuring=bad, choosing=1)


def test_what_the_caps_promise():
    one, more = guarantee_of_caps(0.5, 0.25, 1, None), guarantee_of_caps(0.5, 0.25, 3, bound(dp.person("id"), 3))
    assert (one.rho, one.neighbors, one.protects) == (0.75, "add_or_remove", None)
    assert (more.rho, more.protects) == (6.75, dp.person("id"))
    replaced = guarantee_of_caps(0.5, 0.25, 3, bound(dp.person("id", neighbors="replace"), 3))
    assert replaced.rho == 9 * (2 * 0.5 + 4 * 0.25)
