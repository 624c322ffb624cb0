"""Covariance, correlation and regression: intervals hold the truth, and what is not defined is no number."""

from __future__ import annotations

import math
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from discreet.sql.running import intervals, pairs

from ..connecting import connected, rows_of

GROUPS = 1000
SLACK = 5.2 * math.sqrt(0.95 * 0.05 / GROUPS)
"""A fair 95% is below this much less with probability 1e-7 (normal tail, 5.2 deviations); six columns: under 1e-6."""
QUESTIONS = {
    "cp": "COVAR_POP(y, x)", "cs": "COVAR_SAMP(y, x)", "r": "CORR(y, x)",
    "s": "REGR_SLOPE(y, x)", "i": "REGR_INTERCEPT(y, x)", "r2": "REGR_R2(y, x)",
}  # fmt: skip
SUMS = {
    "n": "REGR_COUNT(y, x)", "ax": "REGR_AVGX(y, x)", "ay": "REGR_AVGY(y, x)",
    "sxx": "REGR_SXX(y, x)", "syy": "REGR_SYY(y, x)", "sxy": "REGR_SXY(y, x)",
}  # fmt: skip
"""Defined for any number of rows."""


def data() -> pa.Table:
    """Groups of 40 to 80 people, one row each. Some values are missing."""
    rng = np.random.default_rng(8)
    g = np.repeat(np.arange(GROUPS), rng.integers(40, 81, GROUPS))
    x = np.round(rng.uniform(0, 10, len(g)) * 64) / 64
    y = np.round((30 + 4 * x + rng.uniform(-10, 10, len(g))) * 64) / 64
    missing = rng.random(len(g)) < 0.05
    return pa.table({"pid": np.arange(len(g)), "g": g, "x": x, "y": pa.array(y, mask=missing)})


def covered(names: list[str], shrunk: float = 1.0) -> dict[str, float]:
    """In what part of the groups the interval of each column holds the truth."""
    table = data()
    columns = {"g": {"between": [0, GROUPS - 1]}, "x": {"between": [0, 10]}, "y": {"between": [0, 100]}}
    database = connected(
        {"t": (table, {"columns": columns, "rows_per_person": 1, "groups_per_person": 1})}, limit=10**6
    )
    shown = ", ".join(f"{(QUESTIONS | SUMS)[name]} AS {name}" for name in names)
    answer = database.sql(f"SELECT g, {shown} FROM t GROUP BY g ORDER BY g", epsilon=60 * len(names))
    plain = duckdb.connect()
    plain.register("t", table)
    truth = plain.execute(f"SELECT {shown} FROM t GROUP BY g ORDER BY g").fetchnumpy()
    found = {}
    for name in names:
        value = np.array(answer.table.column(name).to_pylist(), dtype=float)
        half = np.array([np.inf if e is None else e for e in answer.table.column(f"{name}_error").to_pylist()])
        held = np.abs(value - truth[name]) <= shrunk * half * (1 + 1e-9) + 1e-3
        found[name] = float(np.mean(held | np.isnan(value)))
    return found


def test_intervals_hold_the_truth() -> None:
    for name, share in covered(list(QUESTIONS)).items():
        assert share >= 0.95 - SLACK, name


def test_intervals_of_sums_hold_the_truth() -> None:
    for name, share in covered(list(SUMS)).items():
        assert share >= 0.95 - SLACK, name


def test_an_interval_that_forgets_the_products_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The noise of the products matters most."""
    original = pairs.band_of_pair

    def narrow(aggregate: Any, measures: Any, bands: Any) -> Any:
        middle = (bands[-1][0] + bands[-1][1]) / 2
        return original(aggregate, measures, [*((sum(b) / 2,) * 2 for b in bands[:-1]), (middle, middle)])

    monkeypatch.setattr(intervals, "band_of_pair", narrow)
    assert covered(["cp"])["cp"] < 0.95 - SLACK


@pytest.mark.some_quick(1)
@pytest.mark.parametrize("rows", [0, 1])
def test_what_is_not_defined_is_no_number(rows: int) -> None:
    table = pa.table({"pid": list(range(rows)), "x": [1.0] * rows, "y": [2.0] * rows})
    table = table.cast(pa.schema([("pid", pa.int64()), ("x", pa.float64()), ("y", pa.float64())]))
    columns = {"x": {"between": [0, 10]}, "y": {"between": [0, 100]}}
    database = connected({"t": (table, {"columns": columns, "rows_per_person": 1})})
    names = [name for name in QUESTIONS if name != "cp"]
    [found] = rows_of(database, f"SELECT {', '.join(f'{QUESTIONS[name]} AS {name}' for name in names)} FROM t")
    assert all(value is None or math.isnan(value) for value in found)


@pytest.mark.some_quick(1)
@pytest.mark.parametrize("odd", [None, float("nan"), float("inf"), 1e300])
def test_an_odd_row_moves_an_answer_as_far_as_any_other_row(odd: float | None) -> None:
    """NULL and NaN are left out, and others count as the end of their range."""
    columns = {"x": {"between": [0, 10]}, "y": {"between": [0, 100]}}
    x = pa.array([1.0, 2.0, 3.0, 4.0, odd], pa.float64())
    table = pa.table({"pid": list(range(5)), "x": x, "y": [1.0, 3.0, 2.0, 5.0, 4.0]})
    [found] = rows_of(connected({"t": (table, {"columns": columns, "rows_per_person": 1})}),
                      "SELECT COVAR_POP(y, x) AS c, CORR(y, x) AS r FROM t")  # fmt: skip
    ends = [1.0, 2.0, 3.0, 4.0, *([10.0] if odd in (float("inf"), 1e300) else [])]
    values = [1.0, 3.0, 2.0, 5.0, 4.0][: len(ends)]
    assert found[0] == pytest.approx(np.cov(ends, values, bias=True)[0, 1], abs=1e-3)
    assert found[1] == pytest.approx(np.corrcoef(ends, values)[0, 1], abs=1e-3)


def test_values_without_a_range_are_found_first() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(50, 5, 20_000)
    table = pa.table({"pid": np.arange(len(x)), "x": x, "y": 2 * x + rng.normal(0, 5, len(x))})
    database = connected({"t": (table, {"rows_per_person": 1})})
    answer = database.sql("SELECT CORR(y, x) AS r FROM t", epsilon=20)
    assert answer.table.column("r").to_pylist()[0] == pytest.approx(2 / math.sqrt(5), abs=0.1)
