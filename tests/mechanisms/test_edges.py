"""Mechanisms that take rows: no record moves another, no matrix is a column, and no double is outside of its bounds."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import discreet as dp
from discreet import testing
from discreet.mechanisms.noise import additive
from discreet.mechanisms.noise.lattice import between, to_lattice
from discreet.queries.ranks import places_of

from ..refusing import refuses

LARGE = [2**60 + 2 * k for k in range(9)]
WHOLE = dp.Integers(2**60, 2**60 + 99)
ODD = [None, math.nan, 0.5, 10**30, "x", [1], np.float32(3)]


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_large_whole_numbers_stay_what_they_are(odd: Any) -> None:
    alone = places_of(WHOLE, LARGE).tolist()
    for rows in ([odd, *LARGE], [*LARGE, odd]):
        found = Counter(places_of(WHOLE, rows).tolist())
        assert Counter(alone) <= found
        assert found.total() <= len(alone) + 1
        with testing.no_noise():
            counts = dp.mechanisms.CumulativeCounts(
                space=WHOLE, sums=dp.mechanisms.PrefixSums(points=100, stddev=1)
            )._draw(rows)
            assert np.abs(counts - np.cumsum(np.bincount(np.array(alone), minlength=100))).max() <= 1.01


MATRIX = np.full((8, 3), 3.0)
FRAME = pd.DataFrame(MATRIX, columns=["a", "b", "c"])
ASKED = {
    "Sum": dp.Sum((0, 10)),
    "VectorSum": dp.queries.VectorSum(dp.queries.Ball(1, 10)),
    "MedianScore": dp.queries.MedianScore(dp.queries.Grid(0, 10, 1)),
    "QuantileScore": dp.queries.QuantileScore(dp.queries.Grid(0, 10, 1)),
    "Quantile": dp.mechanisms.Quantile(space=dp.queries.Grid(0, 10, 1), rate=1)._draw,
    "Quantiles": dp.mechanisms.Quantiles.for_guarantee(
        dp.Pure(epsilon=1), space=dp.queries.Grid(0, 10, 1), quantiles=(0.25, 0.75)
    )._draw,
    "CumulativeCounts": dp.mechanisms.CumulativeCounts(
        space=dp.queries.Grid(0, 9, 1), sums=dp.mechanisms.PrefixSums(points=10, stddev=1)
    )._draw,
    "Each": dp.Each(dp.Laplace(scale=1), dp.Interval(0, 10))._draw,
    "Histogram": dp.queries.Histogram((1, 2, 3)),
}


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize(
    "data", [MATRIX, FRAME, MATRIX.astype(object), MATRIX[:, :2]], ids=["array", "frame", "objects", "two"]
)
def test_a_matrix_is_no_column(name: str, data: Any) -> None:
    with pytest.raises(dp.InvalidArgument):
        ASKED[name](data)


# --- records with noise: bounds and values are one number system -----------------------------------------------------

FAR = [
    dp.Interval(10**15 + Fraction(1, 10), 10**15 + Fraction(3, 10)),
    dp.Interval(1e15 + 0.1, 1e15 + 0.3),
    dp.Interval(0, 0.1),
    dp.Interval(-(2**60) - 1000, -(2**60) + 7),
    dp.queries.Grid(10**14 + Fraction(1, 3), 10**14 + Fraction(4, 3), Fraction(1, 2)),
    dp.Integers(2**60, 2**60 + 5),
    dp.Integers(-(2**62), 2**62),
]


def moved(space: Any, noise: Any, patch: pytest.MonkeyPatch) -> Fraction:
    """How far apart the numbers really are that noise is added to, in exact arithmetic."""
    low, high = space.ends
    records = [float(low), float(high), math.nextafter(float(low), -math.inf), math.nextafter(float(high), math.inf)]
    records += [int(low), int(high), -math.inf, math.inf, None, float((low + high) / 2)]
    patch.setattr(additive, "from_lattice", lambda indices, step: indices)  # which rounds to doubles what leaves
    with testing.no_noise():
        steps = dp.Each(noise, space)._draw(records).tolist()
    return (max(steps) - min(steps)) * noise._step


@pytest.mark.parametrize("space", FAR, ids=repr)
@pytest.mark.parametrize("step", [None, Fraction(1, 2**60), 1], ids=["default", "fine", "whole"])
def test_no_record_is_further_from_another_than_the_ends_are(
    space: Any, step: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert moved(space, dp.Laplace(scale=1, step=step), monkeypatch) <= space.diameter


def test_doubles_as_they_are_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    space, noise = dp.Interval(1e15 + 0.1, 1e15 + 0.3), dp.Laplace(scale=1, step=Fraction(1, 2**60))
    monkeypatch.setattr(additive, "between", lambda values, low, high, step: to_lattice(values, step))
    assert moved(space, noise, monkeypatch) > space.diameter


def test_numbers_near_and_far_are_rounded_to_the_lattice() -> None:
    step = Fraction(1, 2**10)
    assert (between(np.array([0.0, 0.5, 1.0]), Fraction(0), Fraction(1), step) == [0, 512, 1024]).all()
    assert (between(np.array([3, 9]), Fraction(2), Fraction(9), step) == [3 * 1024, 9 * 1024]).all()
    assert (between(np.array([2**61, 2**62]), Fraction(2**61), Fraction(2**62), step) == [2**71, 2**72]).all()
    ends = Fraction(-(2**1000)), Fraction(2**1000)
    assert between(np.array([-(2.0**1000), 0.0, 2.0**1000]), *ends, step).tolist() == [-(2**1010), 0, 2**1010]


def test_records_of_several_columns_are_read_one_by_one() -> None:
    """[T.4.7]: each record is read by itself."""
    each = dp.Each((dp.Laplace(scale=1), dp.Laplace(scale=1)), (dp.Interval(0, 1), dp.Integers(0, 9)))
    frame = pd.DataFrame({"a": [0.5, 1.0], "b": [3, 4]})
    with testing.no_noise():
        assert each._draw([(0.5, 3), None, (1, 2, 3), (1.0, 4)]) == [(0.5, 3), (0.5, 4), (0.5, 4), (1.0, 4)]
        assert each._draw(frame) == each._draw(frame.to_numpy()) == [(0.5, 3), (1.0, 4)]
    for wrong in (np.ones((4, 3)), frame[["a"]]):
        with refuses(dp.InvalidArgument, "wrong-shape"):
            each._draw(wrong)


# --- keys ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [-0.0, 0, 0.0, False])
def test_a_key_is_not_that_of_who_came_first(first: Any) -> None:
    with testing.no_noise():
        shown = dp.mechanisms.KeySelection(scale=1, threshold=2)._draw(Counter([first, 0.0, 0.0, "a", "a", None, None]))
    assert repr(shown) == "{0: 3, 'a': 2}"


def test_keys_that_one_class_tells_apart_count_nobody_twice() -> None:
    class Odd(str):
        """Text that is equal to itself alone."""

        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            return self is other

        __hash__ = str.__hash__

    with testing.no_noise():
        shown = dp.mechanisms.KeySelection(scale=1, threshold=2, keys_per_person=2)._draw(
            {Odd("a"): 1, Odd("a"): 1, "b": 5}
        )
    assert shown == {"b": 5}


# --- samples ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_a_sample_is_taken_of_records_as_they_are(odd: Any) -> None:
    query = lambda rows: dp.Sum((0, 10))(rows[1:])  # noqa: E731
    asked = dp.Subsampled(mechanism=dp.Laplace(scale=1e-9), rate=Fraction(10**9 - 1, 10**9), query=query)
    assert round(asked._draw([odd, 1, 2, 3])) == 6
    assert round(asked._draw(np.array([9, 1, 2, 3]))) == 6
