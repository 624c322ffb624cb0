"""What is listed for a key: from the policy and the text of the question only, and never more than can be shown."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

from discreet.sql.reading.select import read_question
from discreet.sql.reading.values import domains
from discreet.sql.reading.values.domains import LARGEST_DOMAIN
from discreet.sql.schema import Column, Found, Schema, Table

from ..connecting import connected, rows_of

MONTHS = [datetime.date(2024, month, 1) for month in range(1, 13)]


def listed(clinic, key, rest="FROM visits"):
    return read_question(f"SELECT {key} AS k, COUNT(*) AS n {rest} GROUP BY k", clinic.database.schema).keys[0].domain


def with_column(clinic, **facts):
    """The schema with other facts about the day of a visit."""
    visits = clinic.database.schema.tables["visits"]
    columns = {**visits.columns, "day": Column(name="day", type="date", **facts)}
    table = Table(name="visits", columns=columns, person="person_id", rows_per_person=4)
    return Schema(unit=clinic.database.schema.unit, tables={"visits": table})


def test_month_and_city_are_declared_groups(clinic):
    """No group is chosen by how many people are in it, and no δ is spent."""
    text = "SELECT date_trunc('month', day) AS month, city, COUNT(*) AS n FROM visits GROUP BY month, city"
    answer = clinic.database.sql(text, epsilon=1)
    assert answer.table.num_rows == 36
    assert answer.table.column("month").to_pylist() == [month for month in MONTHS for _ in range(3)]


def test_a_range_that_is_found_lists_nothing(clinic):
    """A range that was found from the rows is no declaration, whichever equal range was declared before."""
    year = (datetime.date(2024, 1, 1), datetime.date(2024, 12, 31))
    text = "SELECT date_trunc('month', day) AS k, COUNT(*) AS n FROM visits GROUP BY k"
    assert len(read_question(text, with_column(clinic, between=year)).keys[0].domain) == 12
    assert read_question(text, with_column(clinic, between=Found(year))).keys[0].domain is None
    where = text.replace("GROUP", "WHERE day >= '2024-03-01' AND day <= '2024-04-30' GROUP")
    assert len(read_question(where, with_column(clinic, between=Found(year))).keys[0].domain) == 2


def test_a_long_range_is_listed_by_its_years_and_not_by_its_days(clinic):
    long = with_column(clinic, between=("1900-01-01", "2100-12-31"))

    def of(key):
        return read_question(f"SELECT {key} AS k, COUNT(*) AS n FROM visits GROUP BY k", long).keys[0].domain

    assert len(of("date_trunc('year', day)")) == 201
    assert len(of("date_trunc('month', day)")) == 2412
    assert of("date_trunc('day', day)") is None
    assert of("day") is None
    assert len(of("dayname(day)")) == 7


def test_too_many_groups_together_are_chosen_instead_of_refused(clinic):
    """Keys that are computed are declared only while all groups can be shown."""
    few = "SELECT day, floor, date_trunc('day', seen_at) AS d, COUNT(*) AS n FROM visits GROUP BY 1, 2, 3"
    assert [key.domain is None for key in read_question(few, clinic.database.schema).keys].count(True) == 0
    many = "SELECT day, minutes, date_trunc('day', seen_at) AS d, COUNT(*) AS n FROM visits GROUP BY 1, 2, 3"
    assert [key.domain is None for key in read_question(many, clinic.database.schema).keys].count(True) == 1


@pytest.mark.slow
def test_work_is_bounded(clinic):
    """What is computed in advance stays small, however long the expression is."""
    assert listed(clinic, "least(minutes, 7)") == tuple(range(8))
    assert listed(clinic, f"least(minutes, {', '.join(map(str, range(7, 4_000)))})") is None
    assert listed(clinic, "minutes * 1000 + floor") is not None
    assert listed(clinic, "dayofyear(day) * 1000 + minutes") is None
    columns = ", ".join(f"dayofyear(day) * {n} AS c{n}" for n in range(2, 500))
    text = f"SELECT c2, COUNT(*) AS n FROM (SELECT {columns} FROM visits) AS v GROUP BY c2"
    fields = read_question(text, clinic.database.schema).relation.fields
    assert 50 < sum(field.choices is not None for field in fields) < 400
    deep = "CASE WHEN minutes = 1 THEN " * 40 + "minutes // 2" + " ELSE cost END" * 40
    assert listed(clinic, deep, "FROM visits WHERE minutes > 3") is None


def test_wide_ranges_of_numbers_are_not_listed(clinic):
    assert listed(clinic, "FLOOR(cost * 9)") is not None
    assert listed(clinic, f"FLOOR(cost * {LARGEST_DOMAIN})") is None
    assert listed(clinic, "FLOOR(ln(cost + 1))") is None, "engines may differ in the last bit"
    assert listed(clinic, "FLOOR(cost / discount)") is None
    assert listed(clinic, "cost / 50") is None


def test_contradictions_show_all_groups(clinic):
    """A condition that can never hold leaves all groups: each has noise."""
    contrary = "FROM visits WHERE day < '2024-01-01' AND day > '2024-12-31'"
    assert len(listed(clinic, "date_trunc('month', day)", contrary)) == 12


def test_null_is_listed_where_an_expression_makes_it(clinic):
    assert listed(clinic, "minutes IS NULL") == (False, True)
    assert listed(clinic, "COALESCE(floor, 0)") == (0, 1, 2, 3, 4, 5)
    assert listed(clinic, "nullif(floor, 3)") == (1, 2, 4, 5, None)
    assert listed(clinic, "floor + 1") == (2, 3, 4, 5, 6)
    assert listed(clinic, "CASE WHEN floor > 3 THEN 'high' END") == ("high", None)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("strftime(day, '%Y-%m')", "strftime(day, '%Y-%d')"),
        ("ROUND(cost, -1)", "ROUND(cost, -2)"),
        ("ROUND(cost, -1)", "ROUND(cost, 1)"),
        ("WIDTH_BUCKET(cost, 0, 100, 5)", "WIDTH_BUCKET(cost, 0, 100, 6)"),
        ("WIDTH_BUCKET(cost, 0, 100, 5)", "WIDTH_BUCKET(cost, 1, 100, 5)"),
        ("dayname(day)", "dayname(seen_at)"),
        ("isodow(day)", "dayofweek(day)"),
        ("TRUNC(cost)", "FLOOR(cost)"),
    ],
)
def test_different_groups_have_different_identities(clinic, first, second):
    texts = [f"SELECT {key} AS k, COUNT(*) AS n FROM visits GROUP BY k" for key in (first, second)]
    meanings = [read_question(text, clinic.database.schema).meaning for text in texts]
    assert meanings[0] != meanings[1]


def test_the_same_groups_have_one_identity(clinic):
    for first, second in (("isodow(day)", "EXTRACT(isodow FROM day)"), ("dayofyear(day)", "date_part('doy', day)")):
        texts = [f"SELECT {key} AS k, COUNT(*) AS n FROM visits GROUP BY k" for key in (first, second)]
        meanings = [read_question(text, clinic.database.schema).meaning for text in texts]
        assert meanings[0] == meanings[1]


def some_people(days):
    rows = pa.table({"pid": list(range(len(days))), "d": pa.array(days, pa.date32())})
    return connected({"v": (rows, {"columns": {"d": {"between": ["2024-01-01", "2024-03-31"]}}})})


def groups_shown(days):
    return [
        row[0]
        for row in rows_of(some_people(days), "SELECT date_trunc('month', d) AS m, COUNT(*) AS n FROM v GROUP BY m")
    ]


def depends_on_rows():
    """Whether the groups that are shown differ between two tables."""
    return groups_shown([MONTHS[0]] * 5) != groups_shown([MONTHS[1], MONTHS[5]])


def test_groups_do_not_depend_on_the_rows():
    assert not depends_on_rows()
    assert groups_shown([]) == MONTHS[:3]


def test_mutant_months_that_no_row_has_are_not_listed(monkeypatch):
    """A list that depends on which rows there are shows who is there."""
    from discreet.sql.running import answering

    original = answering.as_written

    def without_empty(question, noisy, keys):
        noisy, keys = original(question, noisy, keys)
        kept = [place for place in range(len(keys)) if noisy[0][place]]
        return [values[kept] for values in noisy], [keys[place] for place in kept]

    monkeypatch.setattr(answering, "as_written", without_empty)
    assert depends_on_rows()


def test_mutant_the_last_month_is_forgotten(monkeypatch, clinic):
    """An enumeration that stops one step early loses rows: the brute force over all values finds it."""
    original = domains._starts
    monkeypatch.setattr(domains, "_starts", lambda field, unit: original(field, unit)[:-1])
    true = {row[0].date() for row in clinic.true_rows("SELECT DISTINCT date_trunc('month', day) FROM visits")[1]}
    assert not true <= set(listed(clinic, "date_trunc('month', day)"))
