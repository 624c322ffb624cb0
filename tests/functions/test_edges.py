"""One odd record of a density or of curves changes its own part only."""

from __future__ import annotations

import datetime
import math
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet as dp
from discreet import testing
from discreet.functions import density as densities
from discreet.functions import regression as regressions
from discreet.functions.curves import CurvePCA, CurveRegression, MeanCurve, SanitizedCurves
from discreet.functions.density import density_of
from discreet.functions.regression import regression_curve
from discreet.learn import base
from discreet.rows.features import FourierFeatures, RandomFeatures

from ..odd_objects import Hides
from ..refusing import refuses

GOAL = dp.Approx(epsilon=1, delta=1e-6)


ODD: list[Any] = [
    None, math.nan, "text", b"bytes", [], [None], ["x"], [1], [1, 2, 3], (0.1, 0.2, 0.3, 0.4), {}, {1}, Decimal("sNaN"),
    np.zeros((2, 2)), np.array([]), Hides(), [Hides(), 1], 1j,
]  # fmt: skip
"""None of them is a row of two numbers."""
FINITE: list[Any] = [[-0.0, 10**30], [2**53 + 1, True], [Fraction(1, 3), Decimal("1e999999")], [math.inf, 0]]


def placed(records: list[Any], odd: list[Any], place: int) -> list[Any]:
    return [*records[:place], *odd, *records[place:]]


def size_of(rows: Any, ranges: Any = ((0, 1), (0, 1))) -> float:
    """The number of rows that a density counted, without noise."""
    with testing.no_noise():
        return density_of(rows, between=list(ranges), bandwidth=0.5, guarantee=GOAL).size


def counted_alone(odd: list[Any]) -> None:
    rows = [[i / 40, 1 - i / 40] for i in range(40)]
    for place in (0, 20, 40):
        assert size_of(placed(rows, odd, place)) == pytest.approx(40, abs=1e-3)


def test_one_odd_row_of_a_density_counts_for_itself() -> None:
    counted_alone(ODD)
    for odd in (None, [], [1, 2, 3]):
        counted_alone([odd])
    rows = [[i / 40, 1 - i / 40] for i in range(40)]
    assert size_of(placed(rows, FINITE, 3)) == pytest.approx(44, abs=1e-3)
    one = placed([i / 40 for i in range(20)] + [[i / 40] for i in range(20)], ODD, 7)
    assert size_of(one, [(0, 1)]) == pytest.approx(41, abs=1e-3)  # of one column, [1] is a row


def test_containers_with_a_type_say_how_wide_a_row_is() -> None:
    frames = (pd.DataFrame, pl.DataFrame, pa.table)
    for given in (
        np.full((9, 2), 0.5),
        np.full((9, 2), 1, np.int8),
        *(f({"a": [0.5] * 9, "b": [1] * 9}) for f in frames),
    ):
        assert size_of(given) == pytest.approx(9, abs=1e-3)
    for given in (np.full(9, 0.5), pd.Series([0.5] * 9), pa.array([0.5] * 9), np.full((9, 1), 0.5, np.float32)):
        assert size_of(given, [(0, 1)]) == pytest.approx(9, abs=1e-3)
    for wrong, code in (
        (np.zeros((9, 3)), "wrong-shape"),
        (np.zeros(9), "wrong-shape"),
        (np.zeros((9, 2), "U3"), "not-a-number"),
    ):
        with refuses(dp.InvalidArgument, code):
            size_of(wrong)


def read_by_curve(rows: Any, targets: Any) -> Any:
    """What `regression_curve` takes through the door: features and target of each row."""
    found: list[Any] = []

    class Seen(Exception):
        pass

    def look(read: Callable[[], Any], *_: Any, **__: Any) -> Any:
        found.append(np.column_stack(read()))
        raise Seen

    ranges = [(0, 1), (0, 1)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(regressions, "through", look)
        with pytest.raises(Seen):
            regression_curve(rows, targets, between=ranges, bandwidth=0.8, guarantee=GOAL, size=40, ridge=100)
    return found[0]


def others_of_a_curve_stay(odd: list[Any]) -> None:
    rows, targets = [[i / 20, 1 - i / 20] for i in range(20)], [i / 20 for i in range(20)]
    known = read_by_curve(rows, targets)
    for place in (0, 10, 20):
        for more in ((placed(rows, odd, place), placed(targets, [0.5] * len(odd), place)),
                     (placed(rows, [[0.5, 0.5]] * len(odd), place), placed(targets, odd, place))):  # fmt: skip
            found = read_by_curve(*more)
            np.testing.assert_array_equal(np.delete(found, slice(place, place + len(odd)), axis=0), known)
    cells = [[one] for one in targets]
    np.testing.assert_array_equal(read_by_curve(np.array(rows), np.array(cells)), known)
    np.testing.assert_array_equal(read_by_curve(rows, placed(cells, [None], 20)[:20]), known)


def test_one_odd_row_or_target_of_a_curve_changes_no_other() -> None:
    others_of_a_curve_stay(ODD)
    for odd in (None, [], [1, 2, 3]):
        others_of_a_curve_stay([odd])


def test_features_of_kernels_read_rows_alike() -> None:
    rows = [[0.25, 0.5]] * 3
    fourier = FourierFeatures.over([(0, 1)] * 2, [0.5] * 2)
    random = RandomFeatures.drawn([(0, 1)] * 2, [0.5] * 2, number=3)
    for known in (fourier, random):
        np.testing.assert_array_equal(known.counts([*rows, *ODD]), known.counts(np.array(rows)))


# --- rows that are curves ------------------------------------------------------------------------------------------

POINTS = [0.0, 0.5, 1.0]
CURVES = [[0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [0.0, -0.1, 0.0]]
ODD_CURVES = [one for one in ODD if type(one) is not list or len(one) != 3] + [[1], [0.1, None, 0.2], ["a"] * 3, 0.5]
GIVEN: dict[str, Any] = {"points": POINTS, "curve_norm": 1, "epsilon": 1, "delta": 1e-6}


def taken(model: Any, *given: Any) -> Any:
    found: list[Any] = []

    class Seen(Exception):
        pass

    def look(self: Any, read: Callable[[], Any], *_: Any) -> Any:
        rows = read()
        parts = [rows] if isinstance(rows, np.ndarray) else [np.column_stack(block) for block in rows.blocks()]
        found.append(np.concatenate(parts))
        raise Seen

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base.Private, "_release", look)
        with pytest.raises(Seen):
            model.fit(*given)
    return found[0]


@pytest.mark.parametrize("model", [MeanCurve, CurvePCA, CurveRegression, SanitizedCurves])
def test_one_odd_curve_changes_no_other(model: Any) -> None:
    regression = model is CurveRegression
    known = taken(model(**GIVEN), np.array(CURVES), *([np.zeros(3)] if regression else []))
    for place in (0, 2, 3):
        more = placed(CURVES, ODD_CURVES, place)
        found = taken(model(**GIVEN), more, *([[0.0] * len(more)] if regression else []))
        np.testing.assert_array_equal(np.delete(found, slice(place, place + len(ODD_CURVES)), axis=0), known)
    if regression:
        goals = placed([[0.0]] * 3, ODD, 1)
        found = taken(model(**GIVEN), np.array([CURVES[0]] + CURVES * len(goals))[: len(goals)], goals)
        assert found.shape == (len(goals), 4)
        assert np.isfinite(found[[0, -1]]).all()


def test_lists_of_curves_need_declared_points() -> None:
    for curves in (CURVES, [*CURVES, None]):
        with refuses(dp.InvalidArgument, "width-not-declared"):
            MeanCurve(epsilon=1, delta=1e-6).fit(curves)


def test_curves_that_are_not_learned_from_are_read_alike() -> None:
    with testing.frozen(0):
        fitted = CurvePCA(2, **GIVEN).fit(np.array(CURVES))
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        found = fitted.transform([CURVES[0], None, [1.0], CURVES[1]])
    np.testing.assert_array_equal(found[[0, 3]], fitted.transform(np.array(CURVES[:2])))
    back = fitted.inverse_transform([[0.1, 0.2], None, [0.3, 0.4]])
    np.testing.assert_array_equal(back[[0, 2]], fitted.inverse_transform(np.array([[0.1, 0.2], [0.3, 0.4]])))


# --- a seeded bug: the reading of 0.1 ------------------------------------------------------------------------------


def test_rows_read_all_together_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def together(rows: Any, width: int) -> Any:
        array = np.asarray(rows) if hasattr(rows, "dtype") else np.array(list(rows), dtype=object)
        flat = [float(cell) if isinstance(cell, float | int) else math.nan for cell in array.reshape(-1).tolist()]
        cells = flat if len(flat) == width * len(array) else [math.nan] * (width * len(array))
        return np.array(cells).reshape(-1, width)

    monkeypatch.setattr(densities, "table_of", together)
    monkeypatch.setattr(regressions, "table_of", together)
    with pytest.raises(AssertionError):
        counted_alone([None])
    with pytest.raises(AssertionError):
        others_of_a_curve_stay([None])


def book(**unit: Any) -> Any:
    return dp.Ledger.open(":memory:", protects=dp.row(**unit), limit=dp.Approx(epsilon=9, delta=1e-3))


@pytest.mark.parametrize(
    "rows",
    [["secret"], [10**400], [datetime.date(2000, 1, 1)], [None], [b"x"], [], [1 + 2j]],
    ids=lambda rows: str(rows)[:12],
)
def test_no_cell_is_quoted_and_none_stops_a_release(rows: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        density_of(rows, between=(0, 1), bandwidth=0.2, guarantee=GOAL)
        regression_curve(rows, [1e308] * len(rows), between=(0, 1), bandwidth=0.5, guarantee=GOAL, size=5)
        regression_curve([0.5] * len(rows), rows, between=(0, 1), bandwidth=0.5, guarantee=GOAL, size=5)


def test_shapes_are_checked_before_the_charge() -> None:
    ledger = book()
    kept: dict[str, Any] = {"between": (0, 1), "bandwidth": 0.5, "guarantee": GOAL, "ledger": ledger}
    for rows, targets, code in (
        ([0.1] * 3, [1.0], "unequal-lengths"),
        ([0.1], [1.0] * 3, "unequal-lengths"),
        (np.zeros((5, 2)), np.zeros(5), "wrong-shape"),
        (np.zeros(()), [1.0], "wrong-shape"),
    ):
        with refuses(dp.InvalidArgument, code):
            regression_curve(rows, targets, size=5, **kept)
    for rows in (np.zeros((5, 2)), np.zeros((2, 2, 2))):
        with refuses(dp.InvalidArgument, "wrong-shape"):
            density_of(rows, **kept)
    assert not ledger.entries()
