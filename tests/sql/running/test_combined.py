"""Statements over answers: each question in them is charged, and what runs on the answers is free."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet import testing
from discreet.datasets import database
from discreet.errors import EngineFailed
from discreet.sql.reading.asked_first import Asked
from discreet.sql.reading.combined import combination_in
from discreet.sql.running import combined as combining

from ...refusing import refuses

TRUE = {"a": (4000, 3000), "b": (2500, 2600), "c": (900, 1100)}
"""People in each city, before and after."""
BOTH = """WITH old AS (SELECT city, COUNT(*) AS n FROM t WHERE late = 0 AND x > -{x} GROUP BY city),
new AS (SELECT city, COUNT(*) AS n FROM t WHERE late = 1 AND x > -{x} GROUP BY city)
SELECT old.city, new.n - old.n AS more, 100.0 * new.n / old.n AS percent FROM old JOIN new ON old.city = new.city"""
SIZES = "SELECT city, COUNT(*) AS n FROM t GROUP BY city"


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    return connected(tmp_path_factory, epsilon=100_000)


def connected(tmp_path_factory, **limit):
    rows = [(city, late) for city, sizes in TRUE.items() for late, size in enumerate(sizes) for _ in range(size)]
    city, late = zip(*rows, strict=True)
    table = pa.table({"pid": range(len(rows)), "city": city, "late": late, "x": [0] * len(rows)})
    path = tmp_path_factory.mktemp("combined") / "t.parquet"
    pq.write_table(table, path)
    known = {"city": {"choices": list(TRUE)}, "late": {"between": [0, 1]}, "x": {"between": [0, 1]}}
    tables = {"t": {"source": str(path), "rows_per_person": 1, "columns": known}}
    words = {"ledger": {"path": ":memory:", **limit}, "unit": {"person": "pid"}}
    return dp.connect(words | {"tables": tables})


def test_the_parts_are_charged_and_the_rest_is_free(asked):
    before = len(asked.ledger.entries())
    answer = asked.sql(BOTH.format(x=1), epsilon=1)
    entries = asked.ledger.entries()[before:]
    assert [float(entry.guarantee.largest_loss) for entry in entries] == [0.5, 0.5]
    assert float(answer.cost.epsilon) == 1
    assert answer.receipt == ", ".join(entry.receipt for entry in entries)
    again = asked.sql(f"SELECT city FROM ({BOTH.format(x=1)}) u WHERE more > 0", epsilon=1)
    assert again.replayed
    assert len(asked.ledger.entries()) == before + 2
    assert answer.names == ["city", "more", "percent"]
    assert answer.noisy == ["more", "percent"]
    assert answer.as_json()["columns"] == answer.names
    assert "2 questions were answered" in str(answer)


def test_a_statement_says_that_groups_may_be_missing_from_it(tmp_path_factory):
    """A table of facts about cities is divided by, but only cities that are shown meet their facts."""
    asked = connected(tmp_path_factory, epsilon=100, delta=1e-3)
    joined = "WITH v AS (SELECT {key} AS k, COUNT(*) AS n FROM t GROUP BY {key}) SELECT SUM(n) AS n FROM v"
    assert combining.ON_SHOWN not in asked.sql(joined.format(key="city"), epsilon=1).notes
    assert combining.ON_SHOWN in asked.sql(joined.format(key="pid % 2"), epsilon=50, delta=1e-6).notes


@pytest.mark.slow
def test_errors_hold_the_truth(asked):
    """Over 6 answers of 3 rows each; a fair 95% is missed by so many more with probability 1e-7."""
    apart = []
    for number in range(6):
        table = asked.sql(BOTH.format(x=number + 10), epsilon=0.1).table.to_pylist()
        for row in table:
            old, new = TRUE[row["city"]]
            apart.append(abs(row["more"] - (new - old)) / max(row["more_error"], 1e-9))
            apart.append(abs(row["percent"] - 100 * new / old) / max(row["percent_error"], 1e-9))
    assert np.mean(np.array(apart) > 1) <= 0.05 + 5.2 * math.sqrt(0.05 * 0.95 / (len(apart) / 2))
    assert np.mean(apart) > 0.15  # not needlessly wide: for Laplace noise, this is about a third


@pytest.mark.slow
def test_mutant_the_answers_are_drawn_with_one_noise(asked, monkeypatch):
    drawn = combining.redrawn_table
    monkeypatch.setattr(combining, "redrawn_table", lambda q, c, places, draws, stream: drawn(q, c, places, draws, 0))
    with pytest.raises(AssertionError):
        test_errors_hold_the_truth(asked)


def test_mutant_each_question_has_all_of_epsilon(asked, monkeypatch):
    whole = database.exactly
    monkeypatch.setattr(database, "exactly", lambda value, name: 2 * whole(value, name))
    with pytest.raises(AssertionError):
        test_the_parts_are_charged_and_the_rest_is_free(asked)


def test_a_question_that_is_written_twice_is_asked_once(asked):
    text = f"SELECT x.city, x.n + y.n AS n FROM ({SIZES}) x JOIN ({SIZES}) y ON x.city = y.city"
    found = combination_in(text, asked.schema)
    assert found is not None
    assert len(found.questions) == 1
    assert len(asked.sql(text, epsilon=1).parts) == 1


def test_one_row_has_an_error_and_text_has_none(asked):
    table = asked.sql(
        f"SELECT SUM(n) AS n, CASE WHEN MAX(n) > 5 THEN 'many' ELSE 'few' END AS most FROM ({SIZES}) u", epsilon=1
    ).table
    assert table["n_error"][0].as_py() > 0
    assert table["most_error"][0].as_py() is None


def test_answers_one_below_the_other_have_errors_if_a_column_tells_them_apart(asked):
    labeled = "SELECT {0} AS late, city, COUNT(*) AS n FROM t WHERE late = {0} GROUP BY city"
    text = " UNION ALL ".join(labeled.format(late) for late in (0, 1))
    answer = asked.sql(text, epsilon=1)
    assert answer.noisy == ["n"]
    assert answer.table["n_error"].null_count == 0
    plain = asked.sql(text.replace("0 AS late,", "").replace("1 AS late,", ""), epsilon=1)
    assert plain.table["n_error"].null_count == 6


def test_rows_that_noise_may_remove_have_errors(asked):
    table = asked.sql(f"SELECT city, n FROM ({SIZES}) u WHERE n > 1900 ORDER BY n LIMIT 2", epsilon=0.1).table
    assert table["n_error"].null_count == 0


def test_a_key_makes_a_statement_idempotent(asked):
    text = f"SELECT MAX(n) AS n FROM ({SIZES}) u"
    first, second = (asked.sql(text, epsilon=0.3, key="twice").table for _ in range(2))
    assert first.equals(second)


def test_it_is_explained_and_drawn(asked):
    explained = asked.explain(BOTH.format(x=1), epsilon=1)
    assert "Question 2 of 2" in explained
    assert len(explained.data["questions"]) == 2
    assert asked.sql(BOTH.format(x=1), epsilon=1).plot() is not None


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"SELECT COUNT(*) AS n FROM ({SIZES}) u JOIN t ON t.city = u.city", "sql-inner-group"),
        (f"SELECT n FROM ({SIZES}) u WHERE n > (SELECT pid FROM t)", "sql-inner-group"),
        (f"SELECT * FROM ({SIZES}) u, read_csv('/etc/passwd') r", "sql-inner-group"),
        (f"SELECT * FROM ({SIZES}) u JOIN information_schema.tables i ON true", "sql-inner-group"),
        (f"SELECT getenv('HOME') AS h, n FROM ({SIZES}) u", "sql-function"),
        (f"SELECT STDDEV(n) AS s FROM ({SIZES}) u", "sql-function"),
        (f"SELECT lpad(city, 1000000000, 'x') AS c, n FROM ({SIZES}) u", "sql-function"),
        (f"SELECT nothing FROM ({SIZES}) u", "sql-unknown-column"),
        (f"SELECT u.n || 1 AS x, date_trunc('month', n) AS d FROM ({SIZES}) u", "sql-not-computable"),
    ],
)
def test_what_reads_more_than_answers_is_refused_before_it_costs(asked, text, code):
    before = len(asked.ledger.entries())
    with refuses((dp.NotAllowed, dp.QueryError), code):
        asked.sql(text, epsilon=1)
    assert len(asked.ledger.entries()) == before


def test_errors_that_are_asked_for_are_of_one_question(asked):
    with refuses(dp.InvalidArgument, "one-question-only"):
        asked.sql(BOTH.format(x=1), within={"more": 5})


# --- odd statements ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT a.*, b.* FROM ({SIZES}) a JOIN ({SIZES}) b ON a.city = b.city",
        f"SELECT city, n, n + 1 AS N FROM ({SIZES}) a",
        f"SELECT city, n, n + 1 AS n_error FROM ({SIZES}) a",
    ],
)
def test_two_columns_of_one_name_are_refused_before_they_cost(asked, text):
    before = len(asked.ledger.entries())
    with refuses(dp.QueryError, "sql-same-name"):
        asked.sql(text, epsilon=1)
    assert len(asked.ledger.entries()) == before


@pytest.mark.parametrize("name", ["draw", "place of the cell", "__part_0__"])
def test_columns_may_have_any_name(asked, name):
    sizes = f'SELECT city, COUNT(*) + 0 AS "{name}" FROM t GROUP BY city ORDER BY COUNT(x)'
    table = asked.sql(f'SELECT d.city, d."{name}" FROM ({sizes}) d', epsilon=1).table
    assert table.column_names == ["city", name, f"{name}_error"]
    assert table.column(2).null_count == 0
    said = asked.sql(f"SELECT '{name}' AS m FROM ({sizes}) u", epsilon=1).table.column("m")
    assert said.to_pylist() == [name] * 3


def test_no_number_stops_a_statement_that_is_charged(asked):
    failing = "CAST(city AS INTEGER)", "CAST(n AS TINYINT)", "n * 9223372036854775807", "CAST(n AS DECIMAL(2, 1))"
    listed = ", ".join(f"{expression} AS c{number}" for number, expression in enumerate(failing))
    table = asked.sql(f"SELECT city, {listed} FROM ({SIZES}) u", epsilon=1).table
    assert [table.column(f"c{number}").null_count for number in range(len(failing))] == [3] * len(failing)


def test_a_noisy_number_under_the_name_of_a_key_is_noisy(asked):
    named = f"WITH a AS ({SIZES}), b AS (SELECT city AS c, n AS m FROM a), d AS (SELECT c, m AS city FROM b)"
    assert "city" in asked.sql(f"{named} SELECT * FROM d", epsilon=1).noisy


def test_keys_that_are_computed_from_keys_have_no_error(asked):
    answer = asked.sql(f"SELECT UPPER(COALESCE(city, '')) AS big, n FROM ({SIZES}) u", epsilon=1)
    assert answer.table.column_names == ["big", "n", "n_error"]


def test_one_released_number_under_two_names_has_one_noise(asked):
    """Its sum with itself has twice its error, and its difference none."""
    other = SIZES.replace("AS n", "AS m") + " ORDER BY m"
    text = f"SELECT a.city, n, n + m AS two, n - m AS none FROM ({SIZES}) a JOIN ({other}) b ON a.city = b.city"
    answer = asked.sql(text, epsilon=1)
    assert len({part.receipt for part in answer.parts}) == 1
    for row in answer.table.to_pylist():
        assert row["two_error"] == 2 * row["n_error"]
        assert row["none"] == row["none_error"] == 0


def test_rows_that_a_public_condition_leaves_out_change_no_error(asked):
    later = "SELECT city, late, COUNT(*) AS n FROM t GROUP BY city, late"
    text = f"SELECT city, n * (1 + 999 * late) AS m FROM ({later}) u WHERE late = 0"
    [narrow] = {row["m_error"] < 500 for row in asked.sql(text, epsilon=1).table.to_pylist()}
    assert narrow


def test_text_does_not_grow_without_end(asked):
    grown = "'aaaaaaaaaa'"
    for _ in range(12):
        grown = f"REPLACE({grown}, 'a', 'aaaaaaaaaa')"
    for text in (
        f"SELECT city, COUNT(*) AS n, LENGTH({grown}) AS m FROM t GROUP BY city",
        f"SELECT LENGTH({grown}) AS m FROM ({SIZES}) u",
    ):
        assert set(asked.sql(text, epsilon=1).table.column("m").to_pylist()) == {1000}


def test_a_statement_that_takes_too_long_is_given_up(asked, monkeypatch):
    monkeypatch.setattr(combining, "SECONDS", 0.2)
    many = ", ".join(f"({SIZES}) t{n}" for n in range(26))
    with refuses(EngineFailed, "engine-statement-failed"):
        asked.sql(f"SELECT SUM(t0.n * t25.n) AS s FROM {many}", epsilon=1)


# --- numbers that are asked first

ALL = "SELECT COUNT(*) AS n FROM t WHERE x > -30"
ABOVE = f"SELECT city, COUNT(*) AS n FROM t WHERE late * 1000 > ({ALL}) / 20 GROUP BY city"
"""Compares with a number about everybody."""


def test_a_number_about_everybody_is_asked_first(asked):
    check_asked_first(asked, ALL)


def check_asked_first(asked, all_of_them):
    own = int(all_of_them.rpartition("-")[2])  # a question of its own, even if the same number is released again
    before, above = len(asked.ledger.entries()), ABOVE.replace(ALL, all_of_them).replace("1000", str(1000 + own))
    answer = asked.sql(above, epsilon=1)
    first, second = asked.ledger.entries()[before:]
    assert [float(entry.guarantee.largest_loss) for entry in (first, second)] == [0.5, 0.5]
    assert answer.cost.epsilon == 1
    assert answer.receipt == f"{first.receipt}, {second.receipt}"
    number = asked.sql(all_of_them, epsilon=0.5)
    assert number.replayed
    assert f"> {number.table['n'][0].as_py()} / 20" in second.asked
    again = asked.sql(above + " ORDER BY n DESC LIMIT 1", epsilon=1)
    assert again.replayed
    assert len(asked.ledger.entries()) == before + 2
    assert "used as it was released" in str(answer)
    explained = asked.explain(above, epsilon=1)
    assert "with what question 1 releases" in explained
    assert len(explained.data["questions"]) == 2


def test_mutant_the_number_is_not_the_one_that_was_released(asked, monkeypatch):
    text = Asked.text
    monkeypatch.setattr(
        Asked,
        "text",
        lambda self, known=None, **n: text(self, known and {n: [v + 1] for n, (v,) in known.items()}, **n),
    )
    with pytest.raises(AssertionError):
        check_asked_first(asked, ALL.replace("30", "31"))


@pytest.mark.parametrize("value", [None, math.nan, -math.inf, -3, 1e300, 0.1])
def test_any_released_number_can_be_used(asked, value):
    [_, question] = combination_in(ABOVE, asked.schema).questions
    assert asked.plan(question.text({0: [value]}), epsilon=1).groups.count == 3


@pytest.mark.parametrize("values", [[], [None], ["b", "it's", "\n;--"]])
def test_any_released_values_can_be_listed(asked, values):
    text = "SELECT COUNT(*) AS n FROM t WHERE city {} (SELECT city FROM t GROUP BY city HAVING COUNT(*) > 9)"
    for word, kept in (("IN", [v for v in values if v == "b"]), ("NOT IN", [v for v in TRUE if v not in values])):
        [_, question] = combination_in(text.format(word), asked.schema).questions
        with testing.no_noise():
            table = asked.sql(question.text({0: values}), epsilon=50).table
        assert table["n"][0].as_py() == sum(sum(TRUE[city]) for city in kept)


def test_released_numbers_are_part_of_what_is_measured(asked):
    [_, question] = combination_in(ABOVE, asked.schema).questions
    plans = [asked.plan(question.text({0: [value]}), epsilon=1) for value in (1, 1.5, -1, None)]
    assert len({plan.question.meaning for plan in plans}) == 4


def test_queries_about_one_person_are_not_asked_first(asked):
    same = "SELECT COUNT(*) AS n FROM t u WHERE x <= (SELECT SUM(x) FROM t WHERE t.pid = u.pid)"
    listed = "SELECT COUNT(*) AS n FROM t WHERE pid IN (SELECT pid FROM t GROUP BY pid HAVING COUNT(*) > 0)"
    assert combination_in(same, asked.schema) is None or len(asked._combined(same, {"epsilon": 1}).plans) == 1
    assert combination_in(listed, asked.schema) is None or len(asked._combined(listed, {"epsilon": 1}).plans) == 1


def test_what_is_made_of_rows_that_noise_chose_has_no_error(asked):
    few = f"{SIZES} ORDER BY n DESC LIMIT 2"
    assert asked.sql(f"SELECT SUM(n) AS s FROM ({few}) u", epsilon=1).table.column("s_error").null_count == 1


def test_a_column_of_nulls_has_no_type(asked):
    text = "SELECT city, n, nothing FROM (SELECT city, COUNT(*) AS n, NULL AS nothing FROM t GROUP BY city) u"
    assert asked.sql(text, epsilon=1).table["nothing"].null_count == 3


def test_extremes_of_noisy_numbers_have_no_error(asked):
    inner = "SELECT city, COUNT(*) AS n FROM t GROUP BY city"
    one = asked.sql(f"SELECT MAX(n), MIN(n) AS least, SUM(n) AS s FROM ({inner}) AS t", epsilon=1).table.to_pylist()[0]
    assert one["max(n)_error"] is None
    assert one["least_error"] is None
    assert one["s_error"] > 0
    shares = asked.sql(
        f"WITH a AS ({inner}), b AS (SELECT MAX(n) AS top FROM a) SELECT city, n, n / top AS share FROM a, b", epsilon=1
    )
    assert all(row["share_error"] is None and row["n_error"] > 0 for row in shares)
    assert any("largest" in note for note in shares.notes)
    window = asked.sql("SELECT city, COUNT(*) / MAX(COUNT(*)) OVER () AS share FROM t GROUP BY city", epsilon=1)
    assert all(row["share_error"] is None for row in window)


@pytest.mark.parametrize("text", [BOTH.format(x=3), ABOVE])
def test_all_questions_fit_the_budget_or_none_is_asked(asked, text):
    left = asked.ledger.remaining
    with pytest.raises(dp.BudgetExhausted):
        asked.sql(text, epsilon=150_000)
    assert asked.ledger.remaining == left
