"""Share products: exact sums, and what one unit can change, for every unit that is possible."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dp
from discreet.queries.shares import WHOLE, ShareProducts
from discreet.stats.samples.dividing import divided, pairs_of, part_of_range

from ..refusing import refuses

ALL = ShareProducts(3, pairs_of([[0, 1, 2]], None))


def test_exact_sums() -> None:
    units = np.array([[WHOLE // 4, WHOLE // 4, WHOLE // 2], [0, 0, WHOLE]])
    found = dict(zip(ALL.pairs, ALL(units), strict=True))
    assert found == {(0, 0): Fraction(1, 16), (0, 1): Fraction(1, 8), (0, 2): Fraction(1, 4), (1, 1): Fraction(1, 16),
                     (1, 2): Fraction(1, 4), (2, 2): Fraction(5, 4)}  # fmt: skip


def test_a_million_rows_are_exact() -> None:
    units = np.tile([[WHOLE - 1, 1]], (1_000_000, 1))
    found = ShareProducts(2, ((0, 0), (0, 1), (1, 1)))(units)
    assert found[0] == Fraction(10**6 * (WHOLE - 1) ** 2, WHOLE**2)
    assert found[1] == Fraction(2 * 10**6 * (WHOLE - 1), WHOLE**2)


def test_sensitivities() -> None:
    replaced = dp.row(neighbors="replace")
    assert ALL.sensitivity(dp.row()).exact == 1 == ALL.sensitivity(dp.person("id"), 9).exact
    assert ALL.sensitivity(replaced).exact == 2
    assert ALL.sensitivity(replaced, norm="L2").exact ** 2 >= 2
    assert ALL.sensitivity(dp.row()).dimension == 6


CELLS = st.one_of(st.floats(), st.floats(0, 1))


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.integers(-2, 1), CELLS), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(-2, 1), CELLS), min_size=1, max_size=4),
    st.booleans(),
)
def test_no_unit_moves_the_sum_further_than_stated(
    one: list[tuple[int, float]], other: list[tuple[int, float]], several: bool
) -> None:
    rows = 4 if several else 1
    places = 4 + several
    query = ShareProducts(places, pairs_of([[0, 1], [2, 3]], 4 if several else None))

    def of(unit: list[tuple[int, float]]) -> np.ndarray[tuple[int], np.dtype[np.object_]]:
        own = unit if several else unit[:1]
        at = np.array([2 * group for group, _ in own])
        part = part_of_range(np.array([cell for _, cell in own]), 0.0, 1.0)
        spots = np.where((at < 0)[:, None] | np.isnan(part)[:, None], -1, np.stack([at, at + 1], 1))
        whose = np.zeros(len(own), dtype=np.int64) if several else None
        units = divided(places, spots, np.stack([1 - part, part], 1), owners=whose, rows=rows)
        assert (units >= 0).all()
        assert (units.sum(1) <= WHOLE).all()
        return query(units)  # type: ignore[return-value]

    assert sum(map(abs, of(one))) <= 1
    apart = of(one) - of(other)
    assert sum(map(abs, apart)) <= 2
    assert sum(x * x for x in apart) <= query.sensitivity(dp.row(neighbors="replace"), norm="L2").exact ** 2


@given(st.lists(st.floats(0, 1), min_size=1, max_size=3), st.integers(1, 7))
def test_three_shares_never_exceed_the_whole(parts: list[float], rows: int) -> None:
    t = np.array(parts[:rows])
    shares = np.stack([(1 - t) ** 2, 2 * t * (1 - t), t**2], 1)
    spots = np.tile(np.arange(3), (len(t), 1))
    units = divided(4, spots, shares, owners=np.zeros(len(t), dtype=np.int64), rows=rows)
    assert units.sum() == WHOLE
    assert (units >= 0).all()


def test_bad_pairs() -> None:
    with refuses(dp.InvalidArgument, "duplicates"):
        ShareProducts(2, ((0, 0), (0, 0)))
    with refuses(dp.InvalidArgument, "out-of-range"):
        ShareProducts(2, ((0, 2),))
    with pytest.raises(dp.InvalidArgument):
        ShareProducts(0, ((0, 0),))
