"""What is computed inside one person: the answer about all people is the sum of the answers about each one alone.

So nobody's rows change what is computed from another's, and one person moves an answer by no more than is priced.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet.datasets.database import Database
from discreet.engines.duckdb import dialect
from discreet.engines.duckdb.engine import DuckDB
from discreet.sql.measuring import rows as printing
from discreet.sql.measuring.measure import read_measures
from discreet.sql.planner import Planner
from discreet.sql.pricing.price import contribution
from discreet.sql.pricing.relation import rows_of_person
from discreet.sql.reading import joins
from discreet.sql.reading.select import read_question
from discreet.sql.schema import Column, Schema, Table

from ..refusing import refuses
from .connecting import connected, rows_of

PERSON = dp.person("pid")
PEOPLE = (1, 2, 3, 4)
MOST = 50


def column(name: str, kind: Any = "integer", **known: Any) -> Column:
    return Column(name=name, type=kind, **known)


COLUMNS = {
    "visits": [
        column("pid"),
        column("vid"),
        column("c", "text", choices=("e", "f")),
        column("x", "number", between=(0, 9)),
        column("day", between=(0, 9)),
    ],
    "items": [column("vid"), column("k", "text", choices=("a", "b")), column("n", between=(0, 5))],
    "drugs": [column("pid"), column("day", between=(0, 9)), column("k", "text", choices=("a", "b"))],
    "places": [column("c", "text", choices=("e", "f")), column("size", between=(0, 9))],
}
KINDS = {"integer": pa.int64(), "text": pa.string(), "number": pa.float64()}
Rows = dict[str, list[tuple[Any, ...]]]


def random_rows(seed: int) -> Rows:
    """Rows of four people and of nobody. A key of visits may have several owners, and every column may be missing."""
    rng = np.random.default_rng(seed)

    def some(most: int) -> int | None:
        return None if rng.random() < 0.1 else int(rng.integers(0, most))

    def letter(letters: str) -> str | None:
        return None if rng.random() < 0.1 else str(rng.choice(list(letters)))

    def value() -> float | None:
        odd = (None, float("nan"), float("inf"), -0.0, 1e300)
        return odd[int(rng.integers(0, 5))] if rng.random() < 0.2 else float(rng.integers(0, 10))

    def who() -> int | None:
        return None if rng.random() < 0.1 else int(rng.choice(PEOPLE))

    return {
        "visits": [(who(), some(8), letter("ef"), value(), some(10)) for _ in range(16)],
        "items": [(some(8), letter("ab"), some(6)) for _ in range(14)],
        "drugs": [(who(), some(10), letter("ab")) for _ in range(8)],
        "places": [("e", 3), ("f", 7), (None, 1)],
    }


def only(rows: Rows, people: Iterable[int]) -> Rows:
    """The rows of some people: those that lead to none of them go."""
    visits = [row for row in rows["visits"] if row[0] in people]
    keys = {row[1] for row in visits}
    return {
        "visits": visits,
        "items": [row for row in rows["items"] if row[0] in keys and row[0] is not None],
        "drugs": [row for row in rows["drugs"] if row[0] in people],
        "places": rows["places"],
    }


def arrow(rows: Rows) -> dict[str, pa.Table]:
    return {
        name: pa.table({c.name: pa.array([row[n] for row in rows[name]], KINDS[c.type]) for n, c in enumerate(columns)})
        for name, columns in COLUMNS.items()
    }


def schema() -> Schema:
    tables = {
        name: Table(
            name=name,
            columns={c.name: c for c in columns},
            public=name == "places",
            person="pid" if name in ("visits", "drugs") else None,
            through="visits.vid" if name == "items" else None,
            rows_per_person=None if name == "places" else MOST,
        )
        for name, columns in COLUMNS.items()
    }
    return Schema(unit=PERSON, tables=tables)


def open_ledger() -> Any:
    return dp.Ledger.open(":memory:", protects=PERSON, limit=dp.Approx(epsilon=1000, delta=0.1), rule="basic")


def exact(rows: Rows, text: str) -> tuple[Any, list[Any]]:
    """The plan, and every measure without noise."""
    database = Database(schema(), DuckDB(arrow(rows)), open_ledger())
    plan = database.plan(text, epsilon=1)
    found = read_measures(plan.question, database.engine, plan.enforced, plan.groups)
    return plan, [np.asarray(one, dtype=object) for one in found]


QUESTIONS = [
    # IN and EXISTS
    "SELECT c, COUNT(*) AS n, SUM(x) AS s FROM visits WHERE pid IN (SELECT pid FROM drugs WHERE k = 'a') GROUP BY c",
    "SELECT COUNT(*) AS n FROM visits WHERE pid NOT IN (SELECT pid FROM drugs WHERE day > 3)",
    "SELECT COUNT(*) AS n FROM visits WHERE vid IN (SELECT vid FROM items WHERE k = 'a' AND n > 1)",
    "SELECT COUNT(*) AS n FROM visits WHERE vid NOT IN (SELECT vid FROM items WHERE k = 'a')",
    "SELECT k, COUNT(*) AS n FROM items WHERE vid IN (SELECT vid FROM visits WHERE c = 'e') GROUP BY k",
    "SELECT k, COUNT(*) AS n FROM items i WHERE NOT EXISTS (SELECT 1 FROM visits v WHERE v.vid = i.vid AND v.x > i.n) "
    "GROUP BY k",
    "SELECT COUNT(*) AS n FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.pid = v.pid AND w.day > v.day)",
    "SELECT COUNT(*) AS n FROM visits v WHERE EXISTS (SELECT 1 FROM items i WHERE i.vid = v.vid AND i.n > v.day) "
    "OR v.x > 5 AND v.pid NOT IN (SELECT pid FROM drugs)",
    "SELECT COUNT(*) AS n FROM visits v JOIN items i ON v.vid = i.vid WHERE EXISTS (SELECT 1 FROM items j "
    "WHERE j.vid = v.vid AND j.n <> i.n) AND NOT EXISTS (SELECT 1 FROM items j WHERE j.vid = v.vid AND j.n > i.n)",
    "SELECT COUNT(*) AS n FROM visits v WHERE v.day > (SELECT AVG(w.day) FROM visits w WHERE w.pid = v.pid)",
    "SELECT COUNT(*) AS n FROM visits v WHERE (SELECT COUNT(*) FROM items i WHERE i.vid = v.vid AND i.k = 'a') <> 1",
    "SELECT t, COUNT(*) AS n FROM (SELECT vid IN (SELECT vid FROM items WHERE n > 2) AS t FROM visits) u GROUP BY t",
    # GROUP BY, HAVING and DISTINCT
    "SELECT COUNT(*) AS n FROM (SELECT pid FROM visits GROUP BY pid HAVING COUNT(*) > 3 AND MAX(x) > 5) t",
    "SELECT k, COUNT(*) AS n FROM (SELECT pid, COUNT(DISTINCT c) AS k, SUM(day) / COUNT(*) AS m FROM visits "
    "GROUP BY pid) t WHERE m > 2 GROUP BY k",
    "SELECT COUNT(*) AS n, SUM(q) AS s FROM (SELECT vid, COUNT_IF(n > 2) AS q FROM items GROUP BY vid HAVING q > 0) t",
    "SELECT c, COUNT(*) AS n FROM (SELECT DISTINCT pid, c FROM visits) t GROUP BY c",
    "SELECT COUNT(*) AS n, SUM(x) AS s FROM (SELECT DISTINCT pid, x FROM visits) t",
    "SELECT COUNT(*) AS n FROM (SELECT DISTINCT vid, k FROM items) t",
    "SELECT COUNT(*) AS n FROM visits WHERE vid IN (SELECT vid FROM items GROUP BY vid HAVING SUM(n) > 4)",
    # windows
    "SELECT c, COUNT(*) AS n FROM (SELECT c, ROW_NUMBER() OVER (PARTITION BY pid ORDER BY day) AS k FROM visits) t "
    "WHERE k = 2 GROUP BY c",
    "SELECT SUM(w) AS s, COUNT(w) AS n FROM (SELECT LAG(day) OVER (PARTITION BY pid ORDER BY c) AS w FROM visits) t",
    "SELECT SUM(w) AS s FROM (SELECT LEAD(x, 2) OVER (PARTITION BY pid, c ORDER BY day DESC) AS w FROM visits) t",
    "SELECT SUM(w) AS s FROM (SELECT FIRST_VALUE(vid % 4) OVER (PARTITION BY pid ORDER BY c DESC) AS w FROM visits) t",
    "SELECT w, COUNT(*) AS n FROM (SELECT RANK() OVER (PARTITION BY pid ORDER BY x) AS w FROM visits) t GROUP BY w",
    "SELECT COUNT(*) AS n FROM (SELECT 1 / x AS v FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY pid "
    "ORDER BY day) = 1) t WHERE v > 0",
    "SELECT SUM(w) AS s FROM (SELECT GREATEST(LEAST(SUM(x) OVER (PARTITION BY pid ORDER BY day "
    "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW), 20), 0) AS w FROM visits) t",
    "SELECT COUNT(*) AS n FROM (SELECT AVG(x) OVER (PARTITION BY pid ORDER BY day) AS w FROM visits) t WHERE w > 4",
    "SELECT SUM(w) AS s FROM (SELECT MAX(n) OVER (PARTITION BY vid) - MIN(n) OVER (PARTITION BY vid) AS w "
    "FROM items) t",
    # joins that keep rows without a match
    "SELECT COUNT(*) AS n, COUNT(DISTINCT pid) AS p, COUNT(x) AS m FROM visits FULL JOIN drugs USING (pid)",
    "SELECT COUNT(*) AS n, SUM(x) AS s, SUM(n) AS m FROM visits FULL JOIN items USING (vid)",
    "SELECT COUNT(*) AS n, COUNT(x) AS m FROM (SELECT pid, x FROM visits WHERE x > 5) v RIGHT JOIN drugs USING (pid)",
    "SELECT COUNT(*) AS n FROM (SELECT pid AS a, day AS i FROM visits WHERE c = 'e') v FULL JOIN (SELECT pid AS b, "
    "day AS j FROM drugs) d ON a = b AND i = j WHERE a IS NULL OR b IS NULL",
    # public rows
    "SELECT COUNT(*) AS n FROM visits WHERE c IN (SELECT c FROM places WHERE size > (SELECT AVG(size) FROM places))",
]


@pytest.mark.some_quick(5)
@pytest.mark.parametrize(
    ("seed", "text"), [(seed, text) for seed in range(4) for first in (0, 1) for text in QUESTIONS[first::2]]
)
def test_people_add_up(seed: int, text: str) -> None:
    check_people_add_up(seed, text)


def check_people_add_up(seed: int, text: str) -> None:
    """Bounds never bind here: what all people have is what each has alone. And nobody has more than is priced."""
    rows = random_rows(seed)
    plan, together = exact(rows, text)
    alone = [exact(only(rows, [one]), text)[1] for one in PEOPLE]
    for number, measure in enumerate(plan.question.measures):
        assert (together[number] == sum(found[number] for found in alone)).all()
        bound = contribution(measure, plan.bounds, PERSON)
        for found in alone:
            assert sum(abs(found[number])) <= bound.l1
            assert sum(found[number] ** 2) <= bound.squared


def check_no_order(seed: int, text: str) -> None:
    """Where rows lie changes nothing: it depends on the rows of others."""
    rows, rng = random_rows(seed), np.random.default_rng(seed)
    _, first = exact(rows, text)
    _, second = exact({name: [listed[n] for n in rng.permutation(len(listed))] for name, listed in rows.items()}, text)
    assert all((a == b).all() for a, b in zip(first, second, strict=True))


ORDERED = [text for text in QUESTIONS if "OVER" in text or "GROUP BY pid" in text or "DISTINCT pid" in text]


@pytest.mark.some_quick(7)
@pytest.mark.parametrize(("seed", "text"), [(seed, text) for seed in range(4) for text in ORDERED])
def test_where_rows_lie_changes_nothing(seed: int, text: str) -> None:
    check_no_order(seed, text)


def check_all_add_up(text: str) -> None:
    for seed in range(4):
        check_people_add_up(seed, text)


@pytest.mark.slow
def test_the_questions_find_something() -> None:
    """A question that nobody's rows answer would add up in any case."""
    found = {text: sum(abs(exact(random_rows(seed), text)[1][0]).sum() for seed in range(4)) for text in QUESTIONS}
    assert [text for text, total in found.items() if not total] == []


# --- odd rows -------------------------------------------------------------------------------------------------------

NOT_IN = "SELECT COUNT(*) AS n FROM people WHERE pid NOT IN (SELECT pid FROM visits WHERE x > 5)"


def test_one_null_does_not_empty_not_in() -> None:
    """The one difference from DuckDB: there, a row without a person would move everybody."""
    for extra in ([], [None]):
        visits = pa.table({"pid": pa.array([1, *extra], pa.int64()), "x": [9.0, *(9.0 for _ in extra)]})
        people = pa.table({"pid": pa.array([1, 2, 3, *extra], pa.int64())})
        assert rows_of(connected({"people": (people, {}), "visits": (visits, {})}), NOT_IN) == [(2,)]


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), -0.0, 1e308])
def test_an_odd_row_changes_only_its_own_person(value: float | None) -> None:
    people = pa.table({"pid": [1, 2, 3]})
    for text, others in (
        (NOT_IN, 1),
        ("SELECT COUNT(*) AS n FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.pid = p.pid "
         "AND SQRT(v.x) * 1e300 + p.pid > 0 AND v.x / v.x = 1)", 1),
    ):  # fmt: skip
        visits = pa.table({"pid": [1, 3], "x": pa.array([9.0, value], pa.float64())})
        [(found,)] = rows_of(connected({"people": (people, {}), "visits": (visits, {})}), text)
        assert found - others in (0, 1)


# --- what is measured -----------------------------------------------------------------------------------------------

APART = [
    "pid IN (SELECT pid FROM drugs)",
    "pid NOT IN (SELECT pid FROM drugs)",
    "pid IN (SELECT pid FROM drugs WHERE day > 3)",
    "pid IN (SELECT pid FROM drugs WHERE day > 4)",
    "pid IN (SELECT pid FROM visits)",
    "vid IN (SELECT vid FROM items)",
    "vid IN (SELECT vid FROM visits)",
    "EXISTS (SELECT 1 FROM drugs d WHERE d.pid = visits.pid AND d.day > visits.day)",
    "EXISTS (SELECT 1 FROM drugs d WHERE d.pid = visits.pid AND d.day < visits.day)",
    "pid IN (SELECT pid FROM drugs) OR day > 3",
    "pid IN (SELECT pid FROM drugs) AND day > 3",
    "c IN (SELECT c FROM places)",
    "c IN (SELECT c FROM places WHERE size > 3)",
    "day > (SELECT MAX(size) FROM places)",
    "day > (SELECT MIN(size) FROM places)",
    "day > (SELECT MAX(size) FROM places WHERE c = 'e')",
    "day > (SELECT MAX(size) FROM places WHERE c = visits.c)",
    "day > (SELECT MAX(day) FROM drugs WHERE pid = visits.pid)",
    "day > (SELECT MAX(day) FROM drugs WHERE pid = visits.pid AND k = visits.c)",
]
ROW = "ROW_NUMBER() OVER (PARTITION BY pid ORDER BY day)"
WINDOWS = [
    ROW,
    ROW.replace("day", "x"),
    ROW.replace("day", "day DESC"),
    ROW.replace("day", "day NULLS FIRST"),
    ROW.replace("pid", "pid, c"),
    ROW.replace("ROW_NUMBER", "RANK"),
    ROW.replace("ROW_NUMBER", "DENSE_RANK"),
    ROW.replace("ROW_NUMBER()", "LAG(day)"),
    ROW.replace("ROW_NUMBER()", "LAG(day, 2)"),
    ROW.replace("ROW_NUMBER()", "LEAD(day)"),
    ROW.replace("ROW_NUMBER()", "SUM(day)"),
    "SUM(day) OVER (PARTITION BY pid ORDER BY day ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
    "SUM(day) OVER (PARTITION BY pid ORDER BY day ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
    "SUM(day) OVER (PARTITION BY pid)",
    "MIN(day) OVER (PARTITION BY pid)",
]
GROUPED = [
    "SELECT pid IN (SELECT pid FROM drugs) AS t FROM visits",
    "SELECT pid IN (SELECT pid FROM drugs WHERE day > 1) AS t FROM visits",
    "SELECT pid FROM visits",
    "SELECT DISTINCT pid FROM visits",
    "SELECT DISTINCT pid, c FROM visits",
    "SELECT pid FROM visits GROUP BY pid, c",
    "SELECT pid FROM visits GROUP BY pid, c HAVING COUNT(*) > 1",
    "SELECT pid FROM visits GROUP BY pid, c HAVING COUNT(*) > 2",
    "SELECT pid FROM visits GROUP BY pid, c HAVING COUNT(DISTINCT day) > 2",
    "SELECT pid FROM visits GROUP BY pid, c HAVING COUNT_IF(day > 2) > 2",
    "SELECT x FROM visits JOIN drugs USING (pid)",
    "SELECT x FROM visits LEFT JOIN drugs USING (pid)",
    "SELECT x FROM visits RIGHT JOIN drugs USING (pid)",
    "SELECT x FROM visits FULL JOIN drugs USING (pid)",
]


def meaning(text: str) -> str:
    return read_question(text, schema()).meaning


def test_different_rows_have_different_identities() -> None:
    meanings = [meaning(f"SELECT COUNT(*) AS n FROM visits WHERE {where}") for where in ["TRUE", *APART]]
    meanings += [meaning(f"SELECT SUM(w) AS s FROM (SELECT {over} AS w FROM visits) t") for over in WINDOWS]
    meanings += [meaning(f"SELECT COUNT(*) AS n FROM ({rows}) t") for rows in GROUPED]
    assert len(set(meanings)) == len(meanings)


def test_the_same_rows_have_one_identity() -> None:
    first = meaning("SELECT COUNT(*) AS n FROM visits WHERE pid IN (SELECT pid FROM drugs d WHERE d.day > 3)")
    assert first == meaning("select count(*) from visits v where (v.pid in (select e.pid from drugs e where day > 3))")


def test_an_answer_is_of_the_version_of_every_table_that_decides_who_counts() -> None:
    question = read_question("SELECT COUNT(*) AS n FROM visits WHERE pid IN (SELECT pid FROM drugs)", schema())
    assert [table.name for table in question.relation.tables(owners=True)] == ["visits", "drugs"]
    assert [table.name for table in question.relation.tables()] == ["visits"]


@pytest.mark.parametrize("where", ["a IN (SELECT a FROM t)", "EXISTS (SELECT 1 FROM t u WHERE u.a = t.a)"])
def test_rows_that_are_protected_one_by_one_are_not_tested_against_each_other(where: str) -> None:
    data = pa.table({"a": [1, 2]})
    database = connected({"t": (data, {}), "p": (data, {"public": True})}, unit={"row": True})
    with refuses(dp.NotAllowed, "sql-subquery"):
        database.sql(f"SELECT COUNT(*) AS n FROM t WHERE {where}", epsilon=1)
    assert rows_of(database, "SELECT COUNT(*) AS n FROM t WHERE a IN (SELECT a FROM p WHERE a > 1)") == [(1,)]


def test_a_person_whose_rows_would_take_long_to_compare_is_refused() -> None:
    """Time would show who has many rows. Several tests of the same rows take no longer than their sum."""
    many = Column(name="pid", type="integer")
    table = Table(name="t", columns={"pid": many, "x": column("x")}, person="pid", rows_per_person=10_000)
    known = Schema(unit=PERSON, tables={"t": table})
    test = "EXISTS (SELECT 1 FROM t b WHERE b.pid = a.pid AND b.x > a.x)"
    plan = Planner(known, DuckDB({"t": pa.table({"pid": [1], "x": [1]})}), open_ledger()).plan
    plan(f"SELECT COUNT(*) AS n FROM t a WHERE {test} AND NOT {test.replace('>', '<')}", epsilon=1)
    joined = f"SELECT COUNT(*) AS n FROM t a JOIN t c ON a.pid = c.pid WHERE {test}"
    with refuses(dp.NotAllowed, "sql-join-too-many"):
        plan(joined, epsilon=1)


@pytest.mark.parametrize(
    ("rows", "most"),
    [
        ("SELECT x FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY pid ORDER BY day) = 1", 1),
        ("SELECT x FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY pid ORDER BY day) <= 3 AND x > 1", 3),
        ("SELECT x FROM (SELECT x, ROW_NUMBER() OVER (PARTITION BY pid ORDER BY x) AS k FROM visits) u WHERE k < 3", 2),
        ("SELECT x FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY pid, c ORDER BY day) = 1", MOST),
        ("SELECT x FROM visits QUALIFY RANK() OVER (PARTITION BY pid ORDER BY day) = 1", MOST),
        ("SELECT x FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY pid ORDER BY day) = 1 OR x > 1", MOST),
        ("SELECT n FROM items QUALIFY ROW_NUMBER() OVER (PARTITION BY vid ORDER BY n) = 1", MOST),
    ],
)
def test_the_first_rows_of_a_person_are_so_many(rows: str, most: int) -> None:
    question = read_question(f"SELECT COUNT(*) AS n FROM ({rows}) t", schema())
    assert rows_of_person(question.relation) == most


def test_what_is_written_instead_is_answered() -> None:
    """The hint of a refusal is a part of a question that can be asked."""
    for asked, again in (
        ("SELECT COUNT(*) AS n FROM visits WHERE c IN (SELECT k FROM drugs)", "SELECT COUNT(*) AS n FROM visits {}"),
        ("SELECT COUNT(*) AS n FROM (SELECT ROW_NUMBER() OVER (ORDER BY x) AS k FROM visits) t",
         "SELECT COUNT(*) AS n FROM (SELECT {} AS k FROM visits) t"),
        ("SELECT COUNT(*) AS n FROM (SELECT LAG(x) OVER (PARTITION BY pid) AS k FROM visits) t",
         "SELECT COUNT(*) AS n FROM (SELECT {} AS k FROM visits) t"),
    ):  # fmt: skip
        with pytest.raises(dp.NotAllowed) as caught:
            read_question(asked, schema())
        instead = str(caught.value).partition(" Write ")[2].partition("\n")[0].removesuffix(".")
        assert read_question(again.format(instead), schema()).meaning


# --- mutants --------------------------------------------------------------------------------------------------------


def test_mutant_a_test_forgets_the_person(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key of several owners: the rows of one are kept for the rows of another."""
    monkeypatch.setattr(joins.Joins, "of_person", lambda self, first, second, pairs, condition: condition)
    with pytest.raises(AssertionError):
        check_all_add_up(QUESTIONS[5])


def test_mutant_a_test_by_any_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joins.Joins, "of_one_person", lambda self, first, second, pairs: True)
    monkeypatch.setattr(joins.Joins, "of_person", lambda self, first, second, pairs, condition: condition)
    with pytest.raises(AssertionError):
        check_all_add_up("SELECT COUNT(*) AS n FROM visits WHERE day IN (SELECT day FROM drugs)")


def test_mutant_not_in_as_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row without a person empties it."""
    original = printing._exists

    def as_written(test: Any, source: Any, engine: Any) -> str:
        found = original(test, source, engine)
        return found.replace("WHERE (", "WHERE coalesce((").removesuffix("))") + "), TRUE))"

    monkeypatch.setattr(printing, "_exists", as_written)
    with pytest.raises(AssertionError):
        test_one_null_does_not_empty_not_in()


def test_mutant_rows_that_are_equal_in_order_are_numbered_as_they_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    original = printing._windowed

    def loose(source: Any, columns: Any, engine: Any) -> str:
        return original(source, tuple((shown, replace(over, total=False)) for shown, over in columns), engine)

    monkeypatch.setattr(printing, "_windowed", loose)
    numbered = [text for text in QUESTIONS if "OVER (PARTITION BY pid" in text and "RANK" not in text]
    with pytest.raises(AssertionError):
        [check_no_order(seed, text) for text in numbered for seed in range(2)]


ZEROS = [pa.table({"pid": [1, 1], "x": zeros}) for zeros in ([0.0, -0.0], [-0.0, 0.0])]
FIRST = "SELECT x FROM v QUALIFY ROW_NUMBER() OVER (PARTITION BY pid ORDER BY pid) = 1"


def test_the_sign_of_a_zero_does_not_say_which_row_comes_first() -> None:
    asked = f"SELECT COUNT(*) AS n FROM ({FIRST}) t WHERE 1 / x > 0"
    assert [rows_of(connected({"v": (one, {})}), asked) for one in ZEROS] == [[(1,)], [(1,)]]


def test_mutant_zeros_keep_their_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialect, "canonical", lambda value, kind: value)
    with pytest.raises(AssertionError):
        test_the_sign_of_a_zero_does_not_say_which_row_comes_first()


# --- rows that are chosen at random ---------------------------------------------------------------------------------


def check_marked_rows_are_drawn_once() -> None:
    """With one row of each key in a join, at most one row of the join is there, whatever tests say of it."""
    rows = {"a": pa.table({"k": [1] * 8, "v": list(range(8))}), "b": pa.table({"k": [1]})}
    said = {name: (data, {"columns": {"k": {"frequency": 1}}}) for name, data in rows.items()}
    said["p"] = (pa.table({"v": [0, 2, 4, 6]}), {"public": True})
    database = connected(said, {"row": True})
    text = "SELECT t, COUNT(*) AS n FROM (SELECT a.v IN (SELECT v FROM p) AS t FROM a JOIN b ON a.k = b.k) u GROUP BY t"
    plan = database.plan(text, epsilon=1)
    for _ in range(20):
        [found] = read_measures(plan.question, database.engine, plan.enforced, plan.groups)
        assert sum(found) == 1


def test_rows_that_are_chosen_at_random_are_marked_once() -> None:
    check_marked_rows_are_drawn_once()


def test_mutant_each_test_chooses_rows_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialect, "exists_as_column", False)
    with pytest.raises(AssertionError):
        check_marked_rows_are_drawn_once()


def test_many_tests_are_one_statement() -> None:
    listed = ", ".join(f"vid IN (SELECT vid FROM items WHERE n > {n}) AS t{n}" for n in range(12))
    _, [found] = exact(random_rows(1), f"SELECT COUNT(*) AS n FROM (SELECT {listed} FROM visits) u WHERE t1")
    _, [simple] = exact(
        random_rows(1), "SELECT COUNT(*) AS n FROM visits WHERE vid IN (SELECT vid FROM items WHERE n > 1)"
    )
    assert (found == simple).all()
