"""MODE, lists of values, and what is asked first: nothing is charged that cannot be answered, and every ± holds."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet.errors import NotAllowed

from .connecting import connected

HUGE = list(range(2**60, 2**60 + 100))
COLUMNS: dict[str, Any] = {
    "k": {"choices": ["a", "b", "c"]},
    "z": {"between": [0, 10]},
    "big": {"between": [0, 2**40]},
    "huge": {"choices": HUGE},
    "o": {"choices": ["x"], "other": "rest"},
}
COUNTS = "WITH x AS (SELECT k, COUNT(*) AS n FROM t GROUP BY k) "


def opened(unit: Any = None, **more: Any) -> Any:
    rng, rows = np.random.default_rng(0), 900
    columns = {
        "pid": np.arange(rows) // 3,
        "k": rng.choice(["a", "b", "c"], rows),
        "z": rng.integers(0, 11, rows),
        "big": np.full(rows, 1234567891),
        "huge": np.full(rows, HUGE[51]),
        "o": np.where(rng.random(rows) < 0.3, "x", "elsewhere"),
    }
    return connected({"t": (pa.table(columns), {"columns": COLUMNS, "rows_per_person": 3} | more)}, unit)


def test_lists_of_numbers_show_their_errors() -> None:
    answer = opened().sql("SELECT [COUNT(*), SUM(z)] AS q FROM t", epsilon=1)
    [row] = answer.table.to_pylist()
    assert row["q_error"][0] > 1
    assert answer.shown(row)["q"].count("±") == 2
    taken = opened().sql("SELECT QUANTILE_CONT(z, [0.1, 0.5]) AS q, COUNT(*) AS q_low FROM t", epsilon=1)
    assert taken.shown(taken.table.to_pylist()[0])["q"].count("±") == 2
    assert "(" in str(opened().sql("SELECT QUANTILE_CONT(z, [0.1, 0.5]) AS q FROM t", epsilon=1)).split("\n")[2]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT [COUNT(*), 'a'] AS q FROM t", "sql-types"),
        ("SELECT QUANTILE_CONT(z, [[0.5]]) AS q FROM t", "sql-quantile"),
        ("SELECT SUM(QUANTILE_CONT(z, [0.1, 0.5])) OVER () AS q FROM t", "sql-window"),
        (COUNTS + "SELECT k, [n, n] AS m FROM x", "sql-function"),
        (COUNTS + "SELECT QUANTILE_CONT(n, [0.1, 0.9]) AS m FROM x", "sql-function"),
        (COUNTS + "SELECT k, NTILE(n - n) OVER (ORDER BY k) AS m FROM x", "sql-limit"),
        ("WITH x AS (SELECT k, QUANTILE_CONT(z, [0.5]) AS q FROM t GROUP BY k) SELECT q FROM x", "sql-not-computable"),
        ("SELECT MEDIAN(z * 1e12 * (SELECT COUNT(*) FROM t)) AS m FROM t", "sql-asked-first"),
        ("SELECT MODE(FLOOR(z * (SELECT COUNT(*) FROM t))) AS m FROM t", "sql-asked-first"),
        ("SELECT SUM(ROUND(z, (SELECT COUNT(*) FROM t))) AS m FROM t", "sql-asked-first"),
    ],
)
def test_what_could_fail_after_a_charge_is_refused_before(text: str, code: str) -> None:
    database = opened()
    with pytest.raises(NotAllowed) as refused:
        database.sql(text, epsilon=1)
    assert refused.value.code == code
    assert database.ledger.count == 0


@pytest.mark.slow
def test_a_median_of_scores_is_answered_whatever_is_released_first() -> None:
    """If the deviation that is released is 0, no range follows from the declarations, and one is found."""
    for rows in ("t", "t WHERE z > 100"):
        scores = f"(z - (SELECT AVG(z) FROM {rows})) / (SELECT STDDEV(z) FROM {rows})"
        assert opened().sql(f"SELECT MEDIAN({scores}) AS m FROM t", epsilon=1).table.column_names[0] == "m"


@pytest.mark.some_quick(3)
@pytest.mark.parametrize(
    "shown",
    [
        "COUNT(*) * 9223372036854775807 AS m",
        "MAX(n) * 9223372036854775807 AS m",
        "-MIN(n) * 9223372036854775807 AS m",
        "SUM(CAST(n AS DECIMAL(38, 0))) * CAST(1e37 AS DECIMAL(38, 0)) AS m",
        "SUM(n) + 9223372036854775807 AS m",
        "COUNT(*) FILTER (WHERE n > 0) * 9223372036854775807 AS m",
    ],
)
def test_no_number_stops_a_statement_over_answers(shown: str) -> None:
    [row] = opened().sql(f"{COUNTS}SELECT {shown} FROM x", epsilon=1)
    assert abs(row["m"]) > 1e18
    cut = opened().sql(f"{COUNTS}SELECT k, SUBSTRING(k, n * 1000000000000) AS m FROM x", epsilon=1)
    assert cut.table.num_rows == 3


def test_an_integer_of_a_wide_range_is_inside_its_interval() -> None:
    [row] = opened().sql("SELECT MEDIAN(big) AS m FROM t", epsilon=5)
    assert row["m_low"] <= 1234567891 <= row["m_high"]
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Pure(epsilon=100))
    table = dp.table(pa.table({"big": np.full(20_000, 1234567891)}), ledger=ledger)
    found = table.quantiles("big", [0.25, 0.5], between=(0, 2**40), epsilon=5)
    assert all(low <= 1234567891 <= high for low, high in found.intervals)


def test_a_quantile_has_no_interval_above_its_confidence() -> None:
    answer = opened().sql("SELECT MEDIAN(z) AS m, MEDIAN(z) + 1 AS more FROM t", epsilon=1)
    [sure] = answer.with_errors(0.999).to_pylist()
    assert (sure["m_error"], sure["m_low"], sure["more_error"]) == (None, None, None)
    [less] = answer.with_errors(0.9).to_pylist()
    assert less["m_low"] is not None
    assert json.loads(json.dumps(answer.as_json(0.999)))["low"] == [[None, None]]


def test_one_quantile_has_an_interval_for_the_confidence_that_is_asked() -> None:
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=100, delta=1e-3))
    table = dp.table(pa.table({"z": np.arange(3000) % 100}), ledger=ledger)
    for confidence in (0.95, 0.8):
        found = table.quantiles("z", [0.5], between=(0, 99), epsilon=1, confidence=confidence)
        [[low, high]] = found.intervals
        assert low <= found.value[0] <= high


def test_modes_of_large_numbers_and_of_other_values() -> None:
    assert [row["m"] for row in opened().sql("SELECT MODE(huge) AS m FROM t", epsilon=50)] == [HUGE[51]]
    assert [row["m"] for row in opened().sql("SELECT MODE(o) AS m FROM t", epsilon=50)] == ["rest"]
    asked = opened().sql("SELECT COUNT(*) AS n FROM t WHERE o = (SELECT MODE(o) FROM t)", epsilon=50)
    assert [row["n"] for row in asked] == [0]  # nobody has the value that stands for all others


def test_a_mode_takes_no_error_from_other_columns() -> None:
    text = "SELECT k, n, m FROM (SELECT k, COUNT(*) AS n, MODE(z) AS m FROM t GROUP BY k) AS x"
    for row in opened().sql(text, epsilon=1):
        assert row["n_error"] > 0
        assert row["m_error"] is None


@pytest.mark.parametrize("neighbors", ["add_or_remove", "replace"])
def test_a_person_with_few_rows_pays_for_no_more_in_many_groups(neighbors: str) -> None:
    database = opened({"person": "pid", "neighbors": neighbors})
    plans = [
        database.plan(f"SELECT {key}MODE(z) AS m FROM t{by}", epsilon=1)
        for key, by in (("", ""), ("k, ", " GROUP BY k"))
    ]
    alone, by_group = (float(plan.price.parts[0].error(0.95)) for plan in plans)
    assert by_group == pytest.approx(alone)


def test_modes_of_too_many_groups_are_refused() -> None:
    wide = {"a": {"between": [0, 999]}, "b": {"between": [0, 999]}, "c": {"between": [0, 9999]}}
    data = pa.table({"pid": [1], "a": [1], "b": [1], "c": [1]})
    database = connected({"t": (data, {"columns": wide, "rows_per_person": 1})})
    with pytest.raises(NotAllowed, match="10,000 values in each of 1,000,000 groups"):
        database.plan("SELECT a, b, MODE(c) AS m FROM t GROUP BY a, b", epsilon=1)


@pytest.mark.parametrize(
    ("first", "again"),
    [
        ("SELECT k, MODE(z) AS m FROM t GROUP BY k", "SELECT MODE(z) AS most, k FROM t GROUP BY k ORDER BY k LIMIT 2"),
        ("SELECT QUANTILE_CONT(z, [0.1, 0.5]) AS q FROM t", "SELECT [MEDIAN(z), QUANTILE_CONT(z, 0.1)] AS r FROM t"),
    ],
)
def test_the_same_measurement_in_other_words_is_free(first: str, again: str) -> None:
    database = opened(version="1")
    database.sql(first, epsilon=1)
    charged = database.ledger.count
    assert database.sql(again, epsilon=1).replayed
    assert database.ledger.count == charged


def test_another_mode_is_another_measurement() -> None:
    database = opened(version="1")
    for text in ("MODE(z)", "MODE(k)", "MEDIAN(z)", "MODE(z) FILTER (WHERE k = 'a')"):
        assert not database.sql(f"SELECT {text} AS m FROM t", epsilon=1).replayed
