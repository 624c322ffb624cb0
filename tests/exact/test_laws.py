"""Integer weights against 80-digit arithmetic, tables word by word, and the remainder inverted at its boundaries."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidArgument
from discreet.exact import laws
from discreet.exact.laws import AliasTable, OneSided, Shape

from ..refusing import refuses

SHAPES = [
    Shape(kind, parameter)
    for kind in ("laplace", "gaussian")
    for parameter in map(Fraction, ("1/50", "1/3", "1", "7/2", "31.9", "81/2"))
] + [Shape("gaussian", Fraction(2047)), Shape("laplace", Fraction(10**9 + 7, 10**9))]


def _truth(shape: Shape, k: int) -> mpmath.mpf:
    energy = shape.energy(k)
    return mpmath.exp(-mpmath.mpf(energy.numerator) / energy.denominator)


def _beyond(shape: Shape, start: int) -> mpmath.mpf:
    """Σ exp(-energy(k)) over k ≥ start: a geometric series, or summed until the terms vanish."""
    if shape.kind == "laplace":
        return _truth(shape, start) / (1 - _truth(shape, 1))
    total, k, term = mpmath.mpf(0), start, _truth(shape, start)
    first = term
    while term > first * mpmath.mpf(10) ** -120:
        total, k, term = total + term, k + 1, _truth(shape, k + 1)
    return total + 10 * shape.parameter.numerator * term


@pytest.mark.some_quick(10)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("bits", [4, 127])
def test_masses_enclose_the_law_and_slack_covers_the_rest(shape, bits):
    masses, slack = shape.masses(bits)
    with mpmath.workdps(130):
        unit = mpmath.mpf(2) ** bits
        for k, mass in enumerate(masses):
            assert mass <= _truth(shape, k) * unit <= mass + slack
        assert _beyond(shape, len(masses)) * unit <= slack
    assert slack <= 2**14  # and is small against the masses, or the remainder would be likely


@pytest.mark.some_quick(6)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_law_for_enumeration_is_rounded_down_and_complete(shape):
    law, left_out = shape.law(256)
    assert 0 < left_out < Fraction(1, 2**230)
    assert sum(law.values()) + left_out == 1
    assert all(law[k] == law[-k] for k in law)
    with mpmath.workdps(130):
        whole = 1 + 2 * _beyond(shape, 1)
        for k in (0, 1, 2, max(law) // 2):
            gap = _truth(shape, k) / whole - mpmath.mpf(law[k].numerator) / law[k].denominator
            assert 0 <= gap < mpmath.mpf(2) ** -230


@given(st.lists(st.integers(0, 40), min_size=1, max_size=12), st.integers(0, 4))
def test_every_word_of_an_alias_table_is_spent_as_its_weight_says(weights, extra):
    bits = max(sum(weights), 1).bit_length() + 4 + extra
    weights = [*weights, 2**bits - sum(weights)]
    picked = AliasTable(weights, bits).pick(np.arange(2**bits, dtype=np.uint64))
    assert np.bincount(picked, minlength=len(weights)).tolist() == weights


def test_alias_tables_use_all_63_bits():
    table = AliasTable([1, 2**62 - 1, 2**62])
    ends = np.array([0, 1, 2**61 - 1, 2**61, 2**62 - 1, 2**62, 2**63 - 1], dtype=np.uint64)
    assert set(table.pick(ends).tolist()) <= {0, 1, 2}
    assert AliasTable([2**63]).pick(ends).tolist() == [0] * 7
    for weights in ([1, 2], [-1, 2**63 + 1], [2**62]):
        with refuses(InvalidArgument, "not-a-distribution"):
            AliasTable(weights)


@pytest.mark.some_quick(12)
@pytest.mark.parametrize("halved", [True, False])
@pytest.mark.parametrize("bits", [3, 12])
@pytest.mark.parametrize("shape", SHAPES[:9], ids=str)
def test_table_and_remainder_together_are_the_law(shape, bits, halved):
    """Word by word the table spends its weights, no weight is above the truth, and the rest is the remainder's."""
    one_sided = OneSided(shape, halved=halved, bits=bits)
    picked = one_sided._table.pick(np.arange(2**bits, dtype=np.uint64))
    weights = [*one_sided._weights, one_sided._remainder]
    assert np.bincount(picked, minlength=len(weights)).tolist() == weights
    cumulative = _cumulative(shape, halved)
    with mpmath.workdps(80):
        for k, weight in enumerate(one_sided._weights):
            assert weight <= (cumulative(k) - cumulative(k - 1)) * 2**bits


def _cumulative(shape: Shape, halved: bool):
    """P[K ≤ k] of the one-sided law, to 80 digits."""
    with mpmath.workdps(80):
        masses = [_truth(shape, k) for k in range(700 if shape.kind == "laplace" else 120)]
        if halved:
            masses[0] /= 2
        whole = mpmath.fsum(masses)
        sums = [mpmath.mpf(0)]
        for mass in masses:
            sums.append(sums[-1] + mass / whole)
    return lambda k: sums[k + 1]


@pytest.mark.some_quick(3)
@pytest.mark.parametrize("bits", [0, 4])
@pytest.mark.parametrize(
    ("shape", "halved"), [(SHAPES[2], True), (SHAPES[3], False), (SHAPES[9], True), (SHAPES[10], False)], ids=str
)
def test_the_remainder_inverts_its_cumulative_law(monkeypatch, shape, halved, bits):
    """At uniforms just below and just above every boundary, where a wrong rounding would choose the wrong neighbor."""
    one_sided = OneSided(shape, halved=halved, bits=bits)
    cumulative = _cumulative(shape, halved)
    table = [sum(one_sided._weights[: k + 1]) for k in range(40)]
    with mpmath.workdps(80):
        ends = [(cumulative(k) * 2**bits - table[k]) / one_sided._remainder for k in range(40)]
        ends = [0] + [int(mpmath.floor(end * 2**192)) for end in ends]
    checked = 0
    inside = [k for k in range(40) if ends[k + 1] - ends[k] > 4]
    for k, uniform in [(k, ends[k] + 1) for k in inside] + [(k, ends[k + 1] - 1) for k in inside]:
        words = [uniform >> 128, uniform >> 64 & (2**64 - 1), uniform & (2**64 - 1), 2**63]
        words.reverse()
        monkeypatch.setattr(laws, "random_integer", lambda bits, words=words: words.pop())
        assert one_sided._draw_remainder() == k
        checked += 1
    assert checked > 40


def test_a_remainder_past_the_table_comes_as_a_python_integer(monkeypatch):
    """Every word of a table of 0 bits is the remainder; one that lands at 10^4 cells must not be left to overflow."""
    one_sided = OneSided(Shape("laplace", Fraction(1)), halved=True, bits=0)
    drawn = iter([3, 10_000, 2**80, 0])
    monkeypatch.setattr(one_sided, "_draw_remainder", lambda: next(drawn))
    items = one_sided.draw(np.zeros(4, dtype=np.uint64))
    assert items.dtype == object
    assert items.tolist() == [3, 10_000, 2**80, 0]
