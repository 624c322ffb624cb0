"""Groups that are computed from declared columns: what is listed is exactly what every engine computes from all values
of the columns. Nothing is missing, and nothing is listed that no row can have.
"""

from __future__ import annotations

import datetime
import itertools
import math
from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from discreet.sql.measuring.measure import read_undeclared
from discreet.sql.reading.values.domains import domain_of

from .test_engine import answer, database

FIRST, LAST = datetime.date(2023, 11, 15), datetime.date(2025, 2, 20)
EARLY, LATE = datetime.datetime(2023, 12, 30, 22, 30), datetime.datetime(2024, 1, 3, 1, 0)
CITIES = ("Acre", "Haifa", "La Paz")
COLUMNS = {
    "day": {"between": (FIRST, LAST)},
    "born": {"between": ("1930-05-05", "2010-01-01")},
    "at": {"between": (EARLY, LATE)},
    "age": {"between": (-30, 33)},
    "income": {"between": (-100_000, 1_000_000)},
    "cost": {"between": (-130, 260.5)},
    "city": {"choices": CITIES},
    "ok": {},
}


def near(number: float) -> list[float]:
    """A number and its neighbors: a step begins exactly there, or just after it."""
    return [math.nextafter(number, -math.inf), number, math.nextafter(number, math.inf)]


def values() -> dict[str, list[Any]]:
    """Values of every column: all of them, or those at which a step can begin."""
    days = [FIRST + datetime.timedelta(days=n) for n in range((LAST - FIRST).days + 1)]
    start = datetime.date(1930, 5, 5)
    born = [start + datetime.timedelta(days=n) for n in range(0, (datetime.date(2010, 1, 1) - start).days, 13)]
    born += [datetime.date(y, 1, 1) for y in range(1931, 2011)] + [datetime.date(y, 12, 31) for y in range(1930, 2010)]
    hours = [EARLY + datetime.timedelta(minutes=30 * n) for n in range(150)]
    moments = [at + datetime.timedelta(microseconds=m) for at in hours for m in (0, 1)]
    costs = [n / 10 for n in range(-1300, 2606)] + [c for n in range(-260, 522) for c in near(n / 2)]
    return {
        "day": days,
        "born": born,
        "at": [at for at in moments if at <= LATE],
        "age": list(range(-30, 34)),
        "income": [*range(-100_000, 1_000_001, 997), *range(-100_000, 1_000_001, 5_000), *range(-50, 50)],
        "cost": [c for c in costs if -130 <= c <= 260.5],
        "city": list(CITIES),
        "ok": [False, True, True, False, True],
    }


KINDS = {"day": pa.date32(), "born": pa.date32(), "at": pa.timestamp("us"), "age": pa.int64(), "income": pa.int64()}
KINDS |= {"cost": pa.float64(), "city": pa.string(), "ok": pa.bool_()}


def all_rows() -> pa.Table:
    """Every value of every column in some row."""
    found = values()
    many = max(map(len, found.values()))
    columns = {n: pa.array(list(itertools.islice(itertools.cycle(v), many)), KINDS[n]) for n, v in found.items()}
    return pa.table({"pid": pa.array(range(many), pa.int64()), **columns})


UNITS = ("year", "quarter", "month", "week", "day")
PARTS = (*UNITS, "dayofweek", "isodow", "doy")
KEYS = [
    *(f"date_trunc('{unit}', {column})" for unit in UNITS for column in ("day", "at")),
    *(f"date_trunc('{unit}', born)" for unit in ("year", "quarter")),
    *(f"EXTRACT({part} FROM {column})" for part in PARTS for column in ("day", "at")),
    *("date_trunc('hour', at)", "hour(at)", "CAST(at AS DATE)", "CAST(CAST(at AS DATE) AS TIMESTAMP)"),
    *("year(day) * 100 + month(day)", "year(at) * 1000 + week(at)", "day - DATE '2023-12-01'", "dayofyear(at)"),
    *("strftime(day, '%Y-%m')", "strftime(at, '%d.%m. %H h')", "strftime(day, '%b %Y')", "strftime(born, '%Y')"),
    *("dayname(day)", "monthname(day)", "strftime(day, '%j')", "year(born) // 10 * 10", "2024 - year(born)"),
    *("age // 10", "age % 10", "abs(age)", "-age", "age / 8", "FLOOR(age / 10) * 10", "CEIL(age / 10.0)", "sign(age)"),
    *("ROUND(age, -1)", "ROUND(age / 4.0, 1)", "TRUNC(age / 10)", "WIDTH_BUCKET(age, -20, 20, 7)", "age * age"),
    *("CAST(age / 4.0 AS INTEGER)", "CAST(age AS VARCHAR)", "CAST(age AS BOOLEAN)", "least(age, 5)", "age + 0.25"),
    *("CASE WHEN age < 0 THEN 'below' WHEN age > 40 THEN 'never' WHEN age < 18 THEN 'minor' ELSE 'adult' END",),
    *("CASE WHEN age BETWEEN 3 AND 4 THEN age END", "age > 50", "age IN (3, 4)", "nullif(age, 3) // 2"),
    *("income // 50000", "FLOOR(income / 100000) * 100", "ROUND(income, -5)", "(income + 7) // 200000"),
    *("FLOOR(cost / 50) * 50", "FLOOR(cost)", "CEIL(cost * 0.1)", "ROUND(cost)", "ROUND(cost, 1)", "ROUND(cost, -1)"),
    *("CAST(cost AS INTEGER)", "TRUNC(cost / 7)", "WIDTH_BUCKET(cost, 0, 200, 8)", "FLOOR(-cost / 30)"),
    *(
        "FLOOR(abs(cost) / 40)",
        "FLOOR(least(cost, 100) / 25)",
        "FLOOR(FLOOR(cost / 10) / 3)",
        "CASE WHEN ok THEN age END",
    ),
    *(
        "upper(city)",
        "substring(city, 1, 1)",
        "length(city)",
        "city || '/' || CAST(ok AS VARCHAR)",
        "trim(city) = 'Acre'",
    ),
]


@pytest.fixture(scope="session")
def everything(opened):
    return database(opened, all_rows(), columns=COLUMNS)


def keys_of(asked: Any, key: str) -> tuple[set[Any], tuple[Any, ...]]:
    """The keys that the engine computes, and those that are listed."""
    question = asked.plan(f"SELECT {key} AS k, COUNT(*) AS n FROM t GROUP BY k", epsilon=20, delta=1e-3).question
    [declared] = question.keys
    assert declared.domain is not None, "not listed"
    plain = replace(question, keys=(replace(declared, domain=None),))
    return {key for (key,) in read_undeclared(plain, asked.engine, None)[0]}, declared.domain


@pytest.mark.some_quick(19)
@pytest.mark.parametrize(
    "key", [key if n % 5 == 0 else pytest.param(key, marks=pytest.mark.slow) for n, key in enumerate(KEYS)]
)
def test_listed_groups_are_those_of_the_engine(everything, key):
    computed, listed = keys_of(everything, key)
    assert len(set(listed)) == len(listed)
    assert {(type(k), k) for k in computed} == {(type(k), k) for k in listed}


def test_conditions_narrow_what_is_listed(everything):
    """What is listed under a condition is what the engine computes where it holds."""
    cases = [
        ("date_trunc('month', day)", "day >= '2024-02-10' AND day < '2024-05-01'"),
        ("date_trunc('month', day)", "month(day) = 2 OR year(day) = 2023"),
        ("date_trunc('day', at)", "at > '2023-12-31 23:29:59' AND at < '2024-01-02'"),
        ("date_trunc('day', at)", "CAST(at AS DATE) <= DATE '2024-01-01'"),
        ("hour(at)", "at >= '2024-01-01 03:00:00' AND at <= '2024-01-01 05:00:00'"),
        ("FLOOR(cost / 50) * 50", "cost > 0 AND cost < 100"),
        ("FLOOR(cost / 50) * 50", "-50 <= cost AND 100 >= cost"),
        ("age // 10", "age > 9.5 AND age <> 20 AND age <= 29"),
        ("city || '!'", "city <> 'Acre'"),
        ("pid // 100", "pid BETWEEN 250 AND 1000"),
        ("pid", "pid IN (3, 5, 4.0)"),
    ]
    for key, condition in cases:
        text = f"SELECT {key} AS k, COUNT(*) AS n FROM t WHERE {condition} GROUP BY k"
        question = everything.plan(text, epsilon=20, delta=1e-3).question
        [declared] = question.keys
        plain = replace(question, keys=(replace(declared, domain=None),))
        computed = {key for (key,) in read_undeclared(plain, everything.engine, None)[0]}
        assert declared.domain is not None, text
        assert set(declared.domain) == computed, text


ODD = {
    "day": [None, datetime.date(1, 1, 1), datetime.date(9999, 12, 31)],
    "at": [None, datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)],
    "born": [None, datetime.date(1, 1, 1), datetime.date(9999, 12, 31)],
    "age": [None, 2**63 - 1, -(2**63)],
    "income": [None, 2**63 - 1, -(2**63)],
    "cost": [None, math.nan, math.inf, -math.inf, 1e308, -5e-324],
    "city": [None, "", "ÅÇ𝄞"],
    "ok": [None],
}


@pytest.mark.some_quick(1)
@pytest.mark.parametrize("start", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 9))])
def test_an_odd_record_changes_no_other_group_and_stops_nothing(opened, start):
    """Every key is computed for every odd value; a group changes by the rows of the one odd person at most."""
    plain = all_rows().slice(0, 40)
    many = max(map(len, ODD.values()))
    odd = pa.table({"pid": pa.array([10**6] * many, pa.int64())} | {
        name: pa.array(list(itertools.islice(itertools.cycle(ODD[name]), many)), KINDS[name]) for name in KINDS
    })  # fmt: skip
    asked = [
        database(opened, rows, columns=COLUMNS, rows_per_person=many)
        for rows in (plain, pa.concat_tables([plain, odd]))
    ]
    for key in KEYS[start::9]:
        text = f"SELECT {key} AS k, COUNT(*) AS n FROM t GROUP BY k"
        before, after = (answer(one, text, delta=1e-3) for one in asked)
        assert [row[0] for row in before] == [row[0] for row in after], text
        moved = sum(abs(a[1] - b[1]) for a, b in zip(before, after, strict=True))
        assert moved <= many, text


def test_without_a_declared_range_nothing_is_listed(opened):
    asked = database(opened, all_rows().slice(0, 50))
    for key in ("date_trunc('month', day)", "FLOOR(cost / 50)", "age // 10", "upper(city)", "CAST(at AS DATE)"):
        question = asked.plan(f"SELECT {key} AS k, COUNT(*) AS n FROM t GROUP BY k", epsilon=20, delta=1e-3).question
        assert domain_of(question.keys[0].expr) is None, key


OTHER = {"city": {"choices": ("Acre", "Haifa"), "other": "elsewhere"}, "age": {"choices": (1, 2), "other": -1}}
OTHERS = (
    "SELECT city AS k, COUNT(*) AS n FROM t GROUP BY k",
    "SELECT upper(city) AS k, COUNT(*) AS n FROM t GROUP BY k",
    "SELECT city AS k, COUNT(*) AS n FROM t WHERE city <> 'Acre' GROUP BY k",
    "SELECT city AS k, COUNT(*) AS n FROM t WHERE city = 'Nowhere' GROUP BY k",
    "SELECT city AS k, COUNT(*) AS n FROM t WHERE city = 'Haifa' GROUP BY k",
    "SELECT age AS k, COUNT(*) AS n FROM t GROUP BY k",
    "SELECT age + 1 AS k, COUNT(*) AS n FROM (SELECT pid, age FROM t WHERE age <> 2 OR age IS NULL) AS u GROUP BY k",
)


def test_what_is_not_a_choice_is_in_the_group_of_others(opened):
    """The same as CASE WHEN city IN (…) THEN city ELSE 'elsewhere' END, in plain Python."""
    cities = ["Acre", "Haifa", "Nowhere", "", "\U0001d11e", None, "Acre", "Nowhere"]
    ages = [1, 2, 3, 2**63 - 1, -(2**63), None, 1, 1]
    rows = pa.table({"pid": list(range(8)), "city": cities, "age": pa.array(ages, pa.int64())})
    asked = database(opened, rows, columns=OTHER)

    def of(city):
        return city if city in ("Acre", "Haifa") else "elsewhere"

    def many(values):
        return sorted(Counter(values).items())

    known = [city for city in cities if city is not None]
    ours = [sorted(answer(asked, text)) for text in OTHERS]
    assert ours[0] == many(map(of, cities))
    assert ours[1] == many(of(city).upper() for city in cities)
    assert ours[2] == many(of(city) for city in known if city != "Acre")
    assert ours[3] == [("elsewhere", 2)]
    assert ours[4] == [("Haifa", 1)]
    assert ours[5] == many(age if age in (1, 2) else -1 for age in ages)
    assert ours[6] == many((age if age == 1 else -1) + 1 for age in ages if age != 2)
