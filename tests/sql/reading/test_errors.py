"""What can never be answered is refused with an error of ours, before anything is charged."""

import pytest

import discreet as dp

from ...refusing import refuses

RAW = [
    "SELECT COUNT(*) + n AS n FROM visits",
    "SELECT COUNT() AS n FROM visits",
    "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY minutes, cost) FROM visits",
    f"SELECT SUM(floor + 1{'0' * 400}) FROM visits",
    "SELECT COUNT(*) FROM visits LIMIT '²'",
    "SELECT COUNT(*) FROM visits LIMIT 99999999999999999999999",
    "SELECT COUNT(*) FROM visits WHERE " + " AND ".join(["floor > 1"] * 3000),
    "SELECT city + COUNT(*) FROM visits GROUP BY city",
    "SELECT lower(COUNT(*)) FROM visits",
    "SELECT TRUE + TRUE + COUNT(*) FROM visits",
    "SELECT COUNT(*) FROM visits HAVING 'x'",
    "SELECT COUNT(*) FROM visits ORDER BY 'x'",
    "SELECT @city, COUNT(*) AS n FROM visits GROUP BY city",
]


@pytest.mark.some_quick(7)
@pytest.mark.parametrize("text", RAW, ids=[t[:60] for t in RAW])
def test_only_our_errors_are_raised(clinic, text):
    before = clinic.database.ledger.spent
    try:
        clinic.private_rows(text)
    except dp.DiscreetError:
        assert clinic.database.ledger.spent == before, "charged for a question that can never be answered"


@pytest.mark.parametrize("text", [
    "SELECT COUNT(*) FROM visits WHERE note > 5", "SELECT COUNT(*) FROM visits WHERE coalesce(note, floor) = 5",
    "SELECT SUM(TRUE + urgent) FROM visits", "SELECT COUNT(*) FROM visits WHERE note = '\ud800'",
    "SELECT coalesce(city, 0) AS k, COUNT(*) AS n FROM visits GROUP BY 1",
    "SELECT CASE WHEN floor > 2 THEN 'x' ELSE 1 END AS k, COUNT(*) AS n FROM visits GROUP BY 1",
    "SELECT COUNT(*) AS n FROM visits WHERE day - 5 > DATE '2024-01-01'",
])  # fmt: skip
def test_what_can_never_be_answered_is_refused_before_it_is_charged(clinic, text):
    before = clinic.database.ledger.spent
    with pytest.raises((dp.InvalidArgument, dp.NotAllowed if hasattr(dp, "NotAllowed") else dp.DiscreetError)):
        clinic.database.sql(text, epsilon=1)
    assert clinic.database.ledger.spent == before


def test_a_column_is_not_hidden_by_the_error_of_another(clinic):
    with refuses(dp.QueryError, "sql-same-name"):
        clinic.database.sql("SELECT COUNT(*) AS n, SUM(cost) AS n_error FROM visits", epsilon=1)
