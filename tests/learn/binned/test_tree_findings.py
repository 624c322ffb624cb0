"""Findings of an attack on trees, forests and additive models: whole fits, played again with a neighboring table.

What was to be released in every stage is compared, while what is released stays that of the first run. So the distance
is the one that the promises speak of, from the cells of any container to the sums.
"""

from __future__ import annotations

import datetime
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
from sklearn.base import clone

import discreet as dp
from discreet import testing
from discreet.exact.rational import exactly
from discreet.learn.binned import bin_columns
from discreet.learn.binned.bin_columns import Columns
from discreet.mechanisms.learning.boosted_trees import BoostedTrees
from discreet.mechanisms.learning.descent.descent import Descent
from discreet.rows import columns as reading
from discreet.rows.gradients.binned import BinnedExamples
from discreet.rows.gradients.examples import unit_of
from discreet.rows.gradients.leaves import LeafRows, slope_unit
from discreet.rows.unbounded import UnboundedRows

from ...refusing import refuses

GOAL: dict[str, Any] = {"epsilon": 1, "delta": 1e-5}
STAGES = (
    (LeafRows, "sums"),
    (LeafRows, "counts"),
    (LeafRows, "totals"),
    (BinnedExamples, "sums"),
    (UnboundedRows, "counts"),
)
ODD = [0, 7, -0.0, 2.5, float("nan"), float("inf"), -1e308, 5e-324, 2.0**53 + 2]
LABELS: list[Any] = [*ODD, 1, None, "a", "b", b"a", 10**400, Decimal("NaN"), Fraction(1, 3), True, [1], (), pd.NA]
LABELS += [np.array([1, 2]), datetime.date(2020, 1, 1), object()]
CHOICES = [Decimal(1), 2.0**53, 2, "a"]
TABLES: dict[str, Callable[[Any], Any]] = {
    "arrow": lambda of: pa.table(
        {
            "number": pa.array(of["number"], pa.float64()),
            "whole": pa.array(of["whole"], pa.int64()),
            "text": pa.array(of["text"], pa.string_view()),
        }
    ),
    "polars": lambda of: pl.DataFrame(
        of, schema={"number": pl.Float64, "whole": pl.Int64, "text": pl.Categorical}, strict=False
    ),
    "pandas": lambda of: pd.DataFrame(
        {
            "number": pd.Series(of["number"], dtype="float64"),
            "whole": pd.Series(of["whole"], dtype="Int64"),
            "text": pd.Series(of["text"], dtype="string"),
        }
    ),
    "pandas in arrow": lambda of: pd.DataFrame(
        {
            "number": pd.Series(of["number"], dtype="double[pyarrow]"),
            "whole": pd.Series(of["whole"], dtype="int64[pyarrow]"),
            "text": pd.Series(of["text"], dtype="string[pyarrow]"),
        }
    ),
}
CLASSES: dict[str, Any] = {"classes": [0, 1, "a"]}
MODELS: dict[str, Callable[..., Any]] = {
    "boosted classes": lambda **known: dp.learn.BoostedTreesClassifier(rounds=4, **CLASSES, **known, **GOAL),
    "boosted numbers": lambda **known: dp.learn.BoostedTreesRegressor(rounds=4, **known, **GOAL),
    "forest of classes": lambda **known: dp.learn.RandomForestClassifier(n_estimators=3, **CLASSES, **known, **GOAL),
    "forest of numbers": lambda **known: dp.learn.RandomForestRegressor(n_estimators=3, **known, **GOAL),
    "additive classes": lambda **known: dp.learn.AdditiveClassifier(steps=3, **CLASSES, **known, **GOAL),
    "additive numbers": lambda **known: dp.learn.AdditiveRegressor(steps=3, **known, **GOAL),
}


def drawn_rows(rng: Any, count: int) -> list[dict[str, Any]]:
    def one_of(choices: list[Any]) -> Any:
        return choices[int(rng.integers(len(choices)))]

    return [
        {
            "number": float(one_of(ODD)),
            "whole": one_of([0, 1, 2, 2**53 + 1, None]),
            "text": one_of(["a", "b", "other", None]),
            "y": one_of(LABELS),
        }
        for _ in range(count)
    ]


def noting(plain: Any, name: str, calls: list[Any], again: Any) -> Any:
    """A stage that notes its exact numbers, and returns those of the first run if there was one."""

    def stage(self: Any, *given: Any) -> Any:
        exact = plain(self, *given)
        calls.append((type(self), name, given, np.array(exact, dtype=object)))
        return exact if again is None else again[len(calls) - 1][3].astype(exact.dtype)

    return stage


def play(model: Any, rows: list[dict[str, Any]], table: Callable[[Any], Any], again: Any = None) -> Any:
    """Each stage with its arguments and exact numbers, what was drawn, and what a stranger sees of the model."""
    calls: list[Any] = []
    with pytest.MonkeyPatch.context() as patch, testing.frozen(3) as tape, warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind, name in STAGES:
            patch.setattr(kind, name, noting(getattr(kind, name), name, calls, again))
        for kind in (BoostedTrees, Descent):
            patch.setattr(kind, "_counted", lambda self, rows: 50.0)
        goal = np.empty(len(rows), dtype=object)
        goal[:] = [one["y"] for one in rows]
        model.fit(table({name: [one[name] for one in rows] for name in ("number", "whole", "text")}), goal)
    return calls, tape.calls, {name: value for name, value in vars(model).items() if name != "_layout"}


def most_moved(call: Any, replaced: bool) -> Fraction:
    """The square of how far one row may move the numbers of a stage, as the mechanisms promise."""
    kind, name, given, exact = call
    times = 2 if replaced else 1
    if name == "sums":
        clip = given[3 if kind is LeafRows else 2]
        return (times * exactly(clip) / (slope_unit if kind is LeafRows else unit_of)(clip)) ** 2
    if name == "totals":
        return Fraction(2 * times) / given[2] ** 2
    return Fraction(times * (1 if kind is LeafRows else len(exact)))


def moved(call: Any, other: Any) -> int:
    apart = call[3] - other[3]
    if call[1] == "totals":  # counts in the unit of sums
        apart[0] *= int(1 / call[2][2])
    return sum(int(one) ** 2 for one in np.ravel(apart))


def shown(value: Any) -> str:
    with np.printoptions(threshold=10**6):
        return repr(value.value) if hasattr(value, "guarantee") else repr(value)


def no_row_moves_a_fit_too_far(seed: int = 0, tables: Any = TABLES, models: Any = MODELS) -> None:
    rng = np.random.default_rng(seed)
    for table in tables.values():
        for make in models.values():
            known: dict[str, Any] = {"categories": {"whole": CHOICES, "text": ["a", "b"]}}
            if rng.integers(2):
                known["ranges"] = {"number": (0, 5)}
            rows, at = drawn_rows(rng, int(rng.integers(2, 14))), int(rng.integers(2))
            replaced = bool(rng.integers(2))
            others = rows[:at] + drawn_rows(rng, 1) * replaced + rows[at + 1 :]
            first = play(make(**known), rows, table)
            second = play(make(**known), others, table, first[0])
            assert first[1] == second[1], "what is drawn depends on a row"
            for one, other in zip(first[0], second[0], strict=True):
                assert moved(one, other) <= most_moved(one, replaced), "a row moves a stage too far"
            assert first[2].keys() == second[2].keys()
            for name, value in first[2].items():
                assert shown(value) == shown(second[2][name]), f"{name} depends on a row"


def a_bin_depends_on_its_own_cell() -> None:
    """Integers with and without a missing one beside them, compared with categories that are no integers."""
    for make in (pa.array, lambda cells, kind: pd.Series(cells, dtype=pd.ArrowDtype(kind))):
        alone, beside = (
            Columns.of({"whole": make([1, 2**53 + 1, 2, *more], pa.int64())}).places(0, CHOICES).tolist()
            for more in ([], [None])
        )
        assert alone == beside[:3] == [0, 4, 2], "a missing cell changes the bins of other rows"


@pytest.mark.slow
@pytest.mark.parametrize("check", [a_bin_depends_on_its_own_cell, no_row_moves_a_fit_too_far])
def test_sound_code_passes(check: Callable[[], None]) -> None:
    check()


@pytest.mark.slow
def test_many_fits_played_again() -> None:
    for seed in range(1, 12):
        no_row_moves_a_fit_too_far(seed)


def categories_are_compared_as_a_column_comes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(bin_columns, "whole_in_arrow", lambda part: None)


def targets_count_twice(patch: pytest.MonkeyPatch) -> None:
    plain = LeafRows.__init__

    def twice(self: LeafRows, codes: Any, targets: Any) -> None:
        plain(self, [np.repeat(one, 2) for one in codes], np.repeat(targets, 2))

    patch.setattr(LeafRows, "__init__", twice)


@pytest.mark.parametrize(
    ("bug", "check"),
    [
        (categories_are_compared_as_a_column_comes, a_bin_depends_on_its_own_cell),
        (targets_count_twice, no_row_moves_a_fit_too_far),
    ],
)
def test_a_mutant_is_killed(
    bug: Callable[[pytest.MonkeyPatch], None], check: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    bug(monkeypatch)
    with pytest.raises(AssertionError):
        check()


# --- what is public is refused before the charge ----------------------------------------------------------------------

SQUARE = pd.DataFrame({"a": [0.0, 1], "b": [1.0, 0], "a & b": [0.0, 0]})
RANGES = dict.fromkeys(SQUARE, (0, 1))
REFUSED = [
    ("duplicates", dp.learn.AdditiveClassifier(classes=[0, 1], ranges=RANGES, pairs=[("a", "b")])),
    ("duplicates", dp.learn.AdditiveClassifier(classes=[0, 1], ranges=RANGES, pairs=[(1, 0), ("b", "a")])),
    ("out-of-range", dp.learn.RandomForestClassifier(classes=[0, 1], ranges=RANGES, max_depth=17)),
    ("learn-classes", dp.learn.BoostedTreesClassifier(classes=[(1, 2), (3,)], ranges=RANGES)),
    ("wrong-type", dp.learn.BoostedTreesRegressor(target_range="widest", ranges=RANGES)),
    ("wrong-type", dp.learn.RandomForestRegressor(target_range=(0, 1, 2), ranges=RANGES)),
]


@pytest.mark.parametrize(("code", "model"), REFUSED)
def test_what_would_fail_after_the_charge_is_refused_before(code: str, model: Any) -> None:
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=9, delta=1e-3))
    with refuses(dp.InvalidArgument, code):
        clone(model).set_params(ledger=ledger).fit(SQUARE, [0, 1])
    assert not ledger.entries()


def test_a_picture_tells_what_was_paid() -> None:
    model = dp.learn.AdditiveClassifier(classes=[0, 1], ranges=RANGES, steps=2, epsilon=7).fit(SQUARE, [0, 1])
    title = model.set_params(epsilon=0.1).plot()._suptitle.get_text()
    assert "ε = 7," in title


def test_labels_of_rows_do_not_decide_types() -> None:
    """A slice of a series by its labels would hold rows where labels are numbers with fractions."""

    class ByLabel(pd.Series):
        def __getitem__(self, key: Any) -> Any:
            raise AssertionError("a row was selected by its label")

    part = ByLabel([1, 2], index=[0.5, -0.5])
    assert Columns((part,), None).kind(0) == bin_columns.WHOLE
    assert not Columns((part,), None).is_boolean(0)
    assert reading.column(reading.none_of(part)).dtype.kind == "i"
