"""What could be asked instead of a refused question: the nearest name, or numbers in place of rows."""

from __future__ import annotations

from typing import Any

import pytest

import discreet as dp
from discreet.gateway.vault.planning import instead_of, planned

OPTIONS = {"epsilon": 1.0}


def refused(database: Any, text: str) -> dp.DiscreetError:
    with pytest.raises(dp.DiscreetError) as found:
        planned(database, text, OPTIONS)
    return found.value


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        ("SELECT COUNT(*) FROM vistis", "SELECT COUNT(*) FROM visits"),
        ("SELECT COUNT(*) FROM Vistis AS v", "SELECT COUNT(*) FROM visits AS v"),
        ("SELECT AVG(agee) FROM people", "SELECT AVG(age) FROM people"),
        ("SELECT AVG(p.agee) AS a -- agee\nFROM people AS p", "SELECT AVG(p.age) AS a -- agee\nFROM people AS p"),
        (
            "SELECT ctiy, SUM(cost) AS s FROM visits GROUP BY ctiy",
            "SELECT city, SUM(cost) AS s FROM visits GROUP BY city",
        ),
        ("SELECT * FROM visits WHERE cost > 3 LIMIT 5", "SELECT COUNT(*) AS n FROM visits WHERE cost > 3"),
        ("SELECT city, cost FROM visits ORDER BY cost", "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"),
        ("SELECT city, COUNT(*) AS n FROM visits", "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"),
        ("SELECT person_id FROM visits", "SELECT COUNT(DISTINCT person_id) AS people FROM visits"),
        ("(SELECT COUNT(*) FROM visits)", "SELECT COUNT(*) FROM visits"),
    ],
)
def test_what_is_suggested_can_be_answered(clinic: Any, written: str, instead: str) -> None:
    error = refused(clinic.database, written)
    assert error.more == {"instead": instead}
    assert planned(clinic.database, instead, OPTIONS)["epsilon"] > 0


@pytest.mark.parametrize(
    "written",
    [
        "SELECT COUNT(*) FROM nowhere_near",
        "SELECT COUNT(* FROM visits",
        "SELECT COUNT(*) FROM visits; SELECT 1",
        "SELECT COUNT(*) FROM visits WHERE md5(note) = 'x'",
        f"SELECT * FROM visits WHERE note = '{'x' * 10_000}'",
        "",
    ],
)
def test_nothing_is_suggested_that_is_only_a_guess(clinic: Any, written: str) -> None:
    assert not hasattr(refused(clinic.database, written), "more")


def test_names_with_quotes_stay_one_name(clinic: Any) -> None:
    error = dp.errors.QueryError("x", code="sql-unknown-column")
    error.place = ('SELECT AVG("cots") FROM visits', 11)
    assert instead_of(clinic.database, error.place[0], OPTIONS, error) == "SELECT AVG(cost) FROM visits"


def test_a_question_that_says_how_wrong_it_may_be_gets_a_suggestion(clinic: Any) -> None:
    with pytest.raises(dp.DiscreetError) as found:
        planned(clinic.database, "SELECT COUNT(*) AS n FROM vistis", {"within": {"n": 50}})
    assert found.value.more == {"instead": "SELECT COUNT(*) AS n FROM visits"}


def test_a_plan_spends_nothing_whatever_the_ledger(clinic: Any) -> None:
    before = clinic.database.ledger.count
    found = planned(clinic.database, "SELECT SUM(cost) AS s FROM visits", {"epsilon": 0.5})
    assert (found["bought"], found["fits"]) == (False, True)
    assert clinic.database.ledger.count == before


@pytest.mark.parametrize(
    ("written", "code", "said"),
    [
        ("SELECT COUNT(*) FROM vistis", "sql-unknown-table", "Did you mean visits?"),
        ("SELECT ctiy, COUNT(*) FROM visits GROUP BY 1", "sql-unknown-column", "Did you mean city?"),
        ("SELECT COUNT(*) FROM visits WHERE city = Koper", "sql-unknown-column", "quotes: 'Koper'."),
        ('SELECT COUNT(*) FROM visits WHERE "O\'Hara" <> city', "sql-unknown-column", "quotes: 'O''Hara'."),
        ("SELECT COUNT(*) FROM visits WHERE city IN (Koper)", "sql-unknown-column", "quotes: 'Koper'."),
        ("SELEC city, COUNT(*) FROM visits GROUP BY city", "sql-syntax", "begins with SELECT or WITH.\n  SELEC city"),
        ("SELECT city COUNT(*) FROM visits GROUP BY city", "sql-syntax", "Unexpected token"),
        ("SELECT TOP 5 city FROM visits", "sql-syntax", "Write LIMIT 5"),
        ("SELECT DISTINCT top 7 city, cost FROM visits", "sql-syntax", "Write LIMIT 7"),
        ("SELECT COUNT(*) FROM visits WHERE day = '2025-13-45'", "sql-date", "'2025-13-45' is not a date"),
        ("SELECT COUNT(*) FROM visits WHERE day IN ('2025-01-01', 'may')", "sql-date", "'may' is not a date"),
        ("SELECT COUNT(*) FROM visits WHERE day > DATE '2025-02-30'", "sql-date", "'2025-02-30' is not a date"),
    ],
)
def test_a_refusal_says_what_was_meant(clinic: Any, written: str, code: str, said: str) -> None:
    error = refused(clinic.database, written)
    assert (error.code, said in str(error)) == (code, True)


@pytest.mark.parametrize(
    "written",
    [
        "SELECT COUNT(*) FROM visits WHERE Koper = 'Koper'",  # compared with a text, it is none
        "SELECT Koper, COUNT(*) FROM visits GROUP BY 1",
        "SELECT COUNT(*) FROM visits WHERE city = lower(Koper)",
        "SELECT COUNT(*) FROM visits WHERE city = v.Koper",
    ],
)
def test_a_name_that_is_not_compared_with_a_column_is_no_text(clinic: Any, written: str) -> None:
    assert "quotes" not in str(refused(clinic.database, written))


def test_text_that_is_no_date_is_an_error_of_types_where_nothing_is_compared(clinic: Any) -> None:
    assert refused(clinic.database, "SELECT COUNT(*) FROM visits WHERE day - 'x' > 1").code == "sql-types"
    assert refused(clinic.database, "SELECT COUNT(*) FROM visits WHERE TOP 5").code == "sql-syntax"


@pytest.mark.parametrize("kind", ["FLOAT", "REAL", "FLOAT8"])
def test_a_cast_to_float_is_one_to_double(clinic: Any, kind: str) -> None:
    plans = [clinic.database.plan(f"SELECT SUM(cost::{one}) AS s FROM visits", epsilon=1) for one in (kind, "DOUBLE")]
    assert plans[0].question.meaning == plans[1].question.meaning
