"""The note on errors that are larger than their numbers: what it counts, and that it is said once."""

from __future__ import annotations

import difflib
import re

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet.sql.running.notes import RARE, TOO_FEW, _four_digits, note_on_large_errors

SAID = "larger than the number itself"
CITIES = ["Haifa", *(f"empty {n}" for n in range(30))]


def note(values, errors, *, notes=(), each="group", **more):
    table = pa.table({"n": values, "n_error": errors, **more})
    return note_on_large_errors(table, {name: f"{name}_error" for name in ("n", *list(more)[::2])}, notes, each)


def test_it_counts_the_rows_with_such_an_error():
    [said] = note([13.0, -649.0, 0.0, 7.0], [586.0, 88.0, 1.0, 7.0])
    assert said.startswith("In 2 of 4 groups the error is")
    assert "more ε" in said
    [said] = note([13, 649], [586.0, 88.0], each="")
    assert said.startswith("The error is")
    [said] = note([13, 649], [1.0, 1.0], m=[1.0, 2.0], m_error=[0.5, 3.0])
    assert said.startswith("In 1 of 2 groups the error of m is")


def test_it_says_nothing_where_no_error_is_known_or_large():
    assert note([13.0, 649.0], [13.0, 88.0]) == ()
    assert note([0.0, 0.0], [0.0, 0.0]) == ()
    assert not any(SAID in one for one in note([1.0, None, np.nan, 5.0], [None, 3.0, 3.0, None]))
    assert note([], pa.array([], pa.float64())) == ()
    assert note(["a"], [1.0]) == ()
    assert note([[1.0, 2.0]], [[9.0, 9.0]]) == ()


def test_it_says_what_an_unknown_error_is():
    [said] = note([1.0, None, 5.0], [0.1, 3.0, None])
    assert said.startswith("± ? of n:")
    assert note([None, 1.0], [None, 0.1]) == ()  # no number, no error
    assert note(["a"], [None]) == ()
    both = {"m": [1.0], "m_error": pa.array([None], pa.float64())}
    [said] = note([5.0], pa.array([None], pa.float64()), notes=("No ± for n, k: noise moves a rank by jumps.",), **both)
    assert said.startswith("± ? of m:")
    assert note([5.0], pa.array([None], pa.float64()), notes=("No ±: DISTINCT shows equal rows once.",)) == ()
    ends = {"n_low": pa.array([None], pa.float64()), "n_high": [9.0]}
    table = pa.table({"n": [5.0], "n_error": pa.array([None], pa.float64()), **ends})
    [said] = note_on_large_errors(table, {"n": "n_error"}, (), "")
    assert "the end of a range that was found" in said
    [said] = note([5.0], pa.array([None], pa.float64()), notes=(f"{TOO_FEW}.",))
    assert "so few people" in said
    large, unknown = note([1.0, 2.0], [3.0, None])
    assert (SAID in large, unknown[:3]) == (True, "± ?")


@pytest.mark.parametrize(
    ("number", "shown"),
    [(10323.4, "10,320"), (26_633_000.0, "26,630,000"), (999.96, "1,000"), (427.53, "427.5"), (0.00123456, "0.001235")],
)
def test_large_limits_are_written_without_exponents(number, shown):
    assert _four_digits(number) == shown


def test_the_advice_is_given_once():
    [said] = note([13.0], [586.0], notes=(f"{TOO_FEW}, …",))
    assert SAID in said
    assert "ε" not in said


@pytest.fixture(scope="module")
def clinic():
    source = pa.table({"pid": range(3000), "city": ["Haifa"] * 3000, "cost": [5.0] * 3000})
    columns = {"city": {"choices": CITIES}, "cost": {"between": [0, 10]}}
    table = {"source": source, "rows_per_person": 1, "columns": columns}
    policy = {"ledger": {"path": ":memory:", "epsilon": 1000}, "unit": {"person": "pid"}, "tables": {"visits": table}}
    return dp.connect(policy)


def said_by(answer):
    return [one for one in answer.notes if SAID in one]


@pytest.mark.parametrize("what", ["COUNT(*)", "SUM(cost)", "AVG(cost)"])
def test_groups_of_nobody_have_it(what, clinic):
    """That 30 groups of nobody all have more noise than their error happens once in 20^30 times."""
    answer = clinic.sql(f"SELECT city, {what} AS n FROM visits GROUP BY city", epsilon=1)
    [said] = said_by(answer)
    rows = answer.table.to_pylist()
    assert said.startswith(f"In {sum(row['n_error'] > abs(row['n']) for row in rows)} of 31 groups")
    assert str(answer).count(SAID) == answer._repr_html_().count(SAID) == 1
    assert said_by(clinic.sql(f"SELECT {what} AS n FROM visits", epsilon=1)) == []


@pytest.mark.slow
def test_of_statements_only_the_rows_that_are_shown_count(clinic):
    """The groups of a part are not those of the whole, and what was asked first is not shown."""
    none = f"SELECT 'none' AS who, COUNT(*) AS n FROM visits WHERE city = '{CITIES[1]}'"
    both = f"{none} UNION ALL SELECT 'all' AS who, COUNT(*) AS n FROM visits"
    for _ in range(3):
        answer = clinic.sql(both, epsilon=1)
        many = sum(row["n_error"] > abs(row["n"]) for row in answer.table.to_pylist())
        assert [one.split(" the ")[0] for one in said_by(answer)] == ["In 1 of 2 rows"] * many
    top = "SELECT COUNT(*) AS n FROM visits WHERE cost < (SELECT 100 + COUNT(*) FROM visits WHERE city = 'empty 3')"
    assert said_by(clinic.sql(top, epsilon=1)) == []


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("city = 'haifa'", ["'haifa' is not among the declared choices of city. Did you mean Haifa?"]),
        ("city IN ('Lod', 'Zzz') OR 'Zzz' <> city", ["'Zzz' is not among the declared choices of city."]),
        ("city = 'Lod' AND age = 7 AND lower(city) = 'lod' AND name = 'x'", []),
    ],
)
def test_a_value_that_is_not_declared_is_told_before_and_after(condition, said):
    """It is not refused: rows may have it. What is told depends on the declarations only."""
    columns = {"city": {"choices": ["Haifa", "Lod"]}, "age": {"between": [0, 9]}}
    rows = pa.table({"pid": [1, 2], "city": ["Haifa", "haifa"], "age": [3, 4], "name": ["x", "y"]})
    table = {"source": rows, "rows_per_person": 1, "columns": columns}
    policy = {"ledger": {"path": ":memory:", "epsilon": 10}, "unit": {"person": "pid"}, "tables": {"people": table}}
    db = dp.connect(policy)
    for text in (
        f"SELECT COUNT(*) AS n FROM people WHERE {condition}",
        f"SELECT COUNT(*) FILTER (WHERE {condition}) AS n, SUM(CASE WHEN {condition} THEN age END) AS a FROM people",
    ):
        assert [one for one in db.sql(text, epsilon=1).notes if "declared choices" in one] == said
        plan = db.explain(text, epsilon=1)
        assert all(one in plan for one in said)
        assert ("look at" in plan) is bool(said)
        assert plan.data.get("look_at", []) == said


@pytest.fixture(scope="module")
def rides():
    several = np.arange(3000)
    day = pa.array(np.datetime64("2025-01-01") + several % 40).cast(pa.date32())
    rows = pa.table(
        {"rider": [f"R{n % 600}" for n in several], "day": day, "age": several % 40, "x": several % 9 * 1.0}
    )
    known = {"age": {"between": [0, 99]}, "day": {"between": ["2025-01-01", "2025-12-31"]}, "x": {"between": "auto"}}
    policy = {"ledger": {"path": ":memory:", "epsilon": 1000, "delta": 1e-6}, "unit": {"person": "rider"}}
    return dp.connect(policy | {"tables": {"rides": {"source": rows, "rows_per_person": 5, "columns": known}}})


DAYS = "No value in the declared range of day, 2025-01-01 to 2025-12-31, meets the condition."
AGES = "No value in the declared range of age, 0 to 99, meets the condition."
ONE = "This asks about one person: the noise hides the answer by design."


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("day >= '2026-01-01'", [DAYS]),
        ("EXTRACT(year FROM day) = 2024 AND 100 <= age", [DAYS, AGES]),
        ("age BETWEEN 50 AND 40", [AGES]),
        ("age IN (100, 101)", [AGES]),
        ("age IN (99, 100) AND day <> '2026-01-01' AND age >= 99", []),
        ("age > 99 OR day = '2025-01-01'", []),
        ("NOT age > 99", []),
        ("age > 99 AND 'R1' = rider", [AGES, ONE]),
        ("rider = 'R1'", [ONE]),
        ("rider IN ('R1')", [ONE]),
        ("rider IN ('R1', 'R2') OR rider <> 'R3'", []),
    ],
)
def test_a_condition_that_gets_nothing_is_told_before_and_after(rides, condition, said):
    """Declarations and the statement decide."""
    for text in (
        f"SELECT COUNT(*) AS n FROM rides WHERE {condition}",
        f"SELECT COUNT(*) FILTER (WHERE {condition}) AS n, SUM(CASE WHEN {condition} THEN age ELSE 0 END) FROM rides",
        f"SELECT COUNT(*) AS n FROM (SELECT * FROM rides) AS q WHERE {condition}",
    ):
        assert rides.explain(text, epsilon=1).data.get("look_at", []) == said
        notes = rides.sql(text, epsilon=1).notes
        assert [note for note in notes if "in the declared range of" in note or "one person:" in note] == said


def test_a_range_that_was_found_is_not_a_declared_one(rides):
    """It was released, but an answer does not say more of it than before."""
    for _ in range(2):
        answer = rides.sql("SELECT AVG(x) AS m FROM rides WHERE x < 1000 AND x > -1000 AND NOT x > 1000", epsilon=5)
        assert any(note.startswith("Found privately") for note in answer.notes)
        beyond = "SELECT SUM(x) AS s, COUNT(*) FILTER (WHERE x > 1000) AS n FROM rides"
        assert "look_at" not in rides.explain(beyond, epsilon=5).data
        notes = rides.sql(beyond, epsilon=5).notes
        assert not any("in the declared range of" in note for note in notes)


@pytest.fixture(scope="module")
def wards():
    choices = {"choices": ["x", "y"], "other": "rest"}
    named = {"choices": [f"ICD-{number}" for number in range(20_000)]}
    rows = pa.table({"pid": [1, 2], "o": ["x", "z"], "c": ["ICD-1", "ICD-2"]})
    people = {"source": rows, "rows_per_person": 1, "columns": {"o": choices, "c": named}}
    public = {"source": pa.table({"o": ["x", "y"], "k": ["one", "a note. Ask with epsilon 100"]}), "public": True}
    ledger = {"path": ":memory:", "epsilon": 10}
    return dp.connect({"ledger": ledger, "unit": {"person": "pid"}, "tables": {"t": people, "p": public}})


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("(SELECT o, pid FROM t WHERE o = 'x') AS q WHERE o = 'y'", []),  # declared, even if no row is left
        ("t JOIN p ON t.o = p.o WHERE p.k = 'a note'", []),  # public rows are no declarations
        ("(SELECT lower(o) AS l, pid FROM t) AS q WHERE l = 'q'", []),
        ("(SELECT CASE WHEN o = 'x' THEN 'a' ELSE 'b' END AS l, pid FROM t) AS q WHERE l = 'q'", []),
        ("t WHERE o = 'rest'", ["'rest' is the group of all other values of o, and not one of them."]),
        ("t WHERE o = 'a\n\x1b[2J'", ["'a??[2J' is not among the declared choices of o."]),
        (f"t WHERE o = '{'z' * 9000}'", [f"'{'z' * 60}…' is not among the declared choices of o."]),
    ],
)
def test_only_what_is_declared_is_told(wards, asked, said):
    plan = wards.explain(f"SELECT COUNT(*) AS n FROM {asked}", epsilon=0.1)
    assert plan.data.get("look_at", []) == said
    assert "\x1b" not in plan.split("look at")[-1]


def test_of_many_values_few_are_named(wards, monkeypatch):
    """A free plan compared each value with each choice, letter by letter: 400 of 10,000 took three minutes."""
    compared = []
    monkeypatch.setattr(difflib, "get_close_matches", lambda word, known, **more: compared.append(list(known)) or [])
    listed = ", ".join(f"'ICE-{number}'" for number in range(400))
    told = wards.explain(f"SELECT COUNT(*) AS n FROM t WHERE c IN ({listed}, 'ICD-7')", epsilon=0.1).data["look_at"]
    assert told[:3] == [f"'ICE-{number}' is not among the declared choices of c." for number in range(3)]
    assert told[3:] == ["The same holds for 397 values more."]
    assert compared == [[], [], []]


@pytest.mark.parametrize(
    ("asked", "may_miss"),
    [
        *(("COUNT(*)", 0), ("SUM(CASE WHEN y > 3 THEN 1 ELSE 0 END)", 0)),
        *(("SUM(y)", 1), ("SUM(x)", 1), ("AVG(x)", 1), ("STDDEV(x)", 1), ("AVG(y)", 1), ("STDDEV(y)", 1)),
    ],
)
def test_rare_values_are_told_before_and_after_where_limits_are_found(asked, may_miss):
    """A range alone does not help: if 0.3% of the values are at the end of a wide one, limits cut them off, too."""
    rows = pa.table({"pid": np.arange(4000) % 500, "x": np.arange(4000.0) % 7, "y": np.arange(4000) % 7})
    people = {"source": rows, "columns": {"y": {"between": [0, 6]}}}
    ledger = {"path": ":memory:", "epsilon": 1000, "delta": 1e-6}
    db = dp.connect({"ledger": ledger, "unit": {"person": "pid"}, "tables": {"t": people}})
    text = f"SELECT {asked} AS n FROM t"
    plan = db.explain(text, epsilon=50)
    assert plan.count(RARE) == may_miss
    assert plan.data["limits"]["not_in_error"] == (RARE if may_miss else None)
    assert " ".join(db.sql(text, epsilon=50).notes).count(RARE) == may_miss
    known = {"tables": {"t": {**people, "rows_per_person": 8}}}
    bounded = dp.connect({"ledger": ledger, "unit": {"person": "pid"}, **known})
    assert RARE not in bounded.explain("SELECT SUM(y) AS n FROM t", epsilon=50)


@pytest.fixture(scope="module")
def undeclared():
    rows = {"pid": [n % 800 for n in range(2400)], "x": [float(n % 97) for n in range(2400)], "k": ["a", "b"] * 1200}
    policy = {"ledger": {"path": ":memory:", "epsilon": 10**6}, "unit": {"person": "pid"}}
    return dp.connect(policy | {"tables": {"t": {"source": pa.table(rows)}}})


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("COUNT(*) AS n, MEDIAN(x) AS m", r"m uses at most \d+ rows of one person. All else is missing from it,"),
        ("COUNT(*) AS n, COUNT(DISTINCT k) AS d", r"d uses at most \d+ different values? of one person."),
        ("MEDIAN(x) AS a, SUM(x) AS s, MEDIAN(x) + COUNT(*) AS b", r"a and b use at most .* missing from them,"),
        ("MEDIAN(x) AS m", r"The answer uses at most \d+ rows of one person. All else is missing from it,"),
    ],
    ids=["median", "distinct", "several", "alone"],
)
def test_only_columns_of_which_rows_are_missing_are_said_to_miss_some(undeclared, columns, said):
    """People who are scaled down count with all their rows."""
    notes = [note for note in undeclared.sql(f"SELECT {columns} FROM t", epsilon=50).notes if "at most" in note]
    [note] = [note for note in notes if "missing from" in note]
    assert re.match(said, note), note
