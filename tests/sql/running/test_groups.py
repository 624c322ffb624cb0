"""Keys of groups: one person cannot take the place of a group, and a key has the type of its column."""

from __future__ import annotations

import datetime
from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import discreet as dp

from ...refusing import refuses
from ..connecting import connected, rows_of

FAR = datetime.date(9999, 12, 31)


def keyed(values, kind):
    return pa.table({"pid": pa.array(range(len(values)), pa.int64()), "t": pa.array(values, kind)})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("common", "odd", "kind"),
    [
        (
            np.datetime64("2020-01-01T00:00:00.000000000"),
            np.datetime64("2020-01-01T00:00:00.000000001"),
            pa.timestamp("ns"),
        ),
        (1.5, float("nan"), pa.float64()),
        (1.5, float("inf"), pa.float64()),
        (0.0, -0.0, pa.float64()),
        (Decimal("0.10"), Decimal("0.20"), pa.decimal128(10, 2)),
        (5, 2**64 - 1, pa.uint64()),
    ],
)
def test_one_person_cannot_take_the_place_of_a_group(common, odd, kind):
    """Two values of the engine that are one in Python would put one count in place of the other."""
    for values in ([common] * 300, [common] * 300 + [odd]):
        answer = connected({"v": (keyed(values, kind), {})}).sql(
            "SELECT t, COUNT(*) AS n FROM v GROUP BY t", epsilon=20, delta=1e-6
        )
        assert answer.table.num_rows == 1
        assert abs(answer.table.column("n").to_pylist()[0] - 300) < 50


@pytest.mark.parametrize("odd", ["infinity", "-infinity"])
def test_an_infinite_date_is_no_group(odd):
    source = duckdb.connect()
    dates = ", ".join(["(DATE '9999-12-31')"] * 300 + [f"('{odd}'::DATE)"])
    data = source.sql(f"SELECT row_number() OVER () AS pid, d FROM (VALUES {dates}) t(d)")
    answer = connected({"v": (data, {})}).sql("SELECT d, COUNT(*) AS n FROM v GROUP BY d", epsilon=20, delta=1e-6)
    assert answer.table.column("d").to_pylist() == [FAR]


def test_many_people_with_a_number_that_does_not_fit_are_a_group_of_none():
    data = keyed([2**64 - 1] * 300, pa.uint64())
    answer = connected({"v": (data, {})}).sql("SELECT t, COUNT(*) AS n FROM v GROUP BY t", epsilon=20, delta=1e-6)
    assert answer.table.column("t").to_pylist() == [None]


def test_lists_are_no_keys():
    data = pa.table({"pid": [1, 2], "tags": [["a"], ["b"]]})
    with refuses(dp.QueryError, "sql-unknown-column"):
        connected({"v": (data, {})}).sql("SELECT tags, COUNT(*) AS n FROM v GROUP BY tags", epsilon=1, delta=1e-6)
    data = pa.table({"pid": [1, 2], "raw": [b"a", b"b"]})
    with refuses(dp.QueryError, "sql-key-type"):
        connected({"v": (data, {})}).sql("SELECT raw, COUNT(*) AS n FROM v GROUP BY raw", epsilon=1, delta=1e-6)


@pytest.mark.parametrize(
    "key",
    [
        "CASE WHEN a = 1 THEN DATE '2020-01-01' ELSE TIMESTAMP '2021-01-01 10:00:00' END",
        "CASE WHEN a = 1 THEN 9007199254740993 ELSE 0.5 END",
        "d",
    ],
)
def test_declared_keys_are_of_the_type_of_their_column(key):
    """Whether or not a row with the first value is there."""
    for values in ([1, 2, 3], [2, 3]):
        data = pa.table(
            {"pid": values, "a": values, "d": pa.array([Decimal("0.10") for _ in values], pa.decimal128(10, 2))}
        )
        database = connected({"v": (data, {"columns": {"d": {"choices": [5.0, 0.1]}}})})
        assert sum(row[1] for row in rows_of(database, f"SELECT {key} AS g, COUNT(*) AS n FROM v GROUP BY g")) == len(
            values
        )


def test_moments_with_a_zone_are_refused_and_dates_take_the_day():
    data = pa.table({"pid": [1, 2], "d": [datetime.date(1970, 1, 2), datetime.date(1970, 1, 3)],
                     "t": pa.array([0, 1], pa.timestamp("us"))})  # fmt: skip
    database = connected({"v": (data, {"columns": {"d": {"between": ["1970-01-01", "1970-01-05"]}}})})
    assert rows_of(database, "SELECT COUNT(*) AS n FROM v WHERE d >= '1970-01-02 10:00:00'") == [(2,)]
    with pytest.raises(dp.DiscreetError):
        database.sql(
            "SELECT t, COUNT(*) AS n FROM v WHERE t >= '1970-01-01T00:00:00+02:00' GROUP BY t", epsilon=1, delta=1e-6
        )


@pytest.mark.some_quick(1)
@pytest.mark.parametrize("limits", [{"groups_per_person": 1}, {}], ids=["by a threshold", "chosen first"])
def test_undeclared_groups_are_sorted_by_their_type(limits):
    """Numbers by size, dates by time, NULL last; the first key as it is written decides, then the second."""
    numbers = [10, 2, -3, None, 100, 2, 10]
    days = [datetime.date(2024, 1, 9), datetime.date(999, 5, 5), None]
    pairs = [(n, d) for n in numbers for d in days] * 60
    data = pa.table(
        {
            "pid": list(range(len(pairs))),
            "n": pa.array([n for n, _ in pairs], pa.int64()),
            "x": pa.array([None if n is None else n / 4 for n, _ in pairs], pa.float64()),
            "d": pa.array([d for _, d in pairs], pa.date32()),
        }
    )
    database = connected({"v": (data, {"rows_per_person": 1, **limits} if limits else {"rows_per_person": None})})

    def keys(columns):
        rows = rows_of(database, f"SELECT {columns}, COUNT(*) AS c FROM v GROUP BY {columns}", delta=1e-6)
        return [row[:-1] for row in rows]

    size, time = [-3, 2, 10, 100, None], [datetime.date(999, 5, 5), datetime.date(2024, 1, 9), None]
    assert keys("n") == [(n,) for n in size]
    assert keys("x") == [(n if n is None else n / 4,) for n in size]
    assert keys("d") == [(d,) for d in time]
    assert keys("n, d") == [(n, d) for n in size for d in time]
    assert keys("d, n") == [(d, n) for d in time for n in size]


CITIES = pa.table({"pid": list(range(40)), "city": ["Haifa", "Acre", "Oslo", None] * 10})


def with_other(**facts):
    return connected({"v": (CITIES, {"columns": {"city": {"choices": ["Haifa", "Acre"], **facts}}})})


def test_a_group_of_others_is_another_measurement():
    """An answer without the group of others is not served for the question with it, nor with another name for it."""
    text = "SELECT city, COUNT(*) AS n FROM v GROUP BY city"
    meanings = {with_other(**facts).plan(text, epsilon=1).meaning for facts in ({}, {"other": "x"}, {"other": "y"})}
    assert len(meanings) == 3


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        ({"other": "Acre"}, "column-other"),
        ({"other": "x", "choices": None}, "column-other"),
        ({"other": 5}, "column-choices-type"),
    ],
)
def test_a_group_of_others_needs_choices_and_its_own_name(facts, code):
    with refuses(dp.InvalidArgument, code):
        with_other(**facts)


def test_notes_say_which_facts_leave_rows_out():
    """In words that the rows do not change."""
    text = "SELECT city, pid // 10 AS tens, COUNT(*) AS n FROM v WHERE pid BETWEEN 0 AND 39 GROUP BY city, tens"
    plain = with_other().sql(text, epsilon=1).notes
    assert "Left out: rows whose pid is NULL, or whose city is not one of its choices, or whose tens is none of the " \
        "groups shown." in plain  # fmt: skip
    counted = with_other(other="elsewhere").sql("SELECT city, COUNT(*) AS n FROM v GROUP BY city", epsilon=1).notes
    assert "Left out: rows whose pid is NULL." in counted
    for rows in (CITIES.slice(0, 1), CITIES.slice(0, 0)):
        empty = connected({"v": (rows, {"columns": {"city": {"choices": ["Haifa", "Acre"]}}})})
        assert [n for n in empty.sql(text, epsilon=1).notes if "Left" in n] == [n for n in plain if "Left" in n]


@pytest.mark.slow
def test_the_group_of_others_moves_by_one_person_at_most():
    """Whatever one person has: all of it may be in the group of others, and nothing else moves."""
    for mine in ("Haifa", "Oslo", "", None, "\x00"):
        rows = pa.concat_tables([CITIES, pa.table({"pid": [99], "city": pa.array([mine], pa.string())})])
        counts = []
        for data in (CITIES, rows):
            asked = connected({"v": (data, {"columns": {"city": {"choices": ["Haifa", "Acre"], "other": "x"}}})})
            counts.append(dict(rows_of(asked, "SELECT city, COUNT(*) AS n FROM v GROUP BY city")))
        moved = {city: counts[1][city] - counts[0][city] for city in counts[0]}
        assert sum(moved.values()) == 1
        assert moved["Haifa" if mine == "Haifa" else "x"] == 1
