"""No clause is dropped: a question is refused, or its answer is that of plain DuckDB."""

import pytest

import discreet as dp

SAME = [
    "SELECT COUNT(note || 'x') AS n FROM visits",
    "SELECT COUNT(*) AS n FROM visits WHERE note || 'x' = 'x'",
    "SELECT SUM(CAST(cost / 7 AS DECIMAL(10, 0))) AS n FROM visits",
    "SELECT COUNT(*) AS n FROM visits WHERE TRY_CAST(minutes * 10 AS TINYINT) IS NULL",
    "SELECT COUNT(*) AS n FROM visits WHERE CAST(floor AS BIT) > 1",
    f"SELECT COUNT(*) AS n FROM visits WHERE floor < 1{'0' * 400}",
    "SELECT CASE WHEN city = 'Haifa' THEN 'H' ELSE 'o' END AS city, COUNT(*) AS n FROM visits GROUP BY city",
    "SELECT city, COUNT(*) AS n FROM visits GROUP BY city, city",
    "SELECT COUNT(*) AS n FROM visits LIMIT 10%",
    "SELECT COUNT(*) AS n FROM visits LIMIT 10 PERCENT",
    "SELECT COUNT(*) AS n FROM visits GROUP BY city LIMIT 1 WITH TIES",
    "SELECT COUNT(*) AS n FROM visits GROUP BY city LIMIT 2 BY city",
    "SELECT COUNT(* EXCLUDE (cost)) AS n FROM visits",
    "SELECT COUNT(*) AS n FROM visits OUTER JOIN cities USING (city)",
    "WITH x AS (SELECT * FROM read_csv('/etc/passwd')) SELECT COUNT(*) AS n FROM visits",
    "WITH x AS (SELECT random() FROM visits LIMIT 1) SELECT COUNT(*) AS n FROM visits",
    "SELECT CASE WHEN urgent THEN city END AS k, COUNT(DISTINCT floor) AS d FROM visits GROUP BY 1",
    "SELECT CASE WHEN urgent THEN city END AS k, MEDIAN(floor) AS d FROM visits GROUP BY 1",
    "SELECT CITY, COUNT(*) AS n FROM visits GROUP BY CITY",
]


@pytest.mark.parametrize("text", SAME)
def test_refused_or_the_same(clinic, text):
    try:
        clinic.private_rows(text)
    except (dp.NotAllowed, dp.InvalidArgument):
        return
    clinic.check_same(text, ordered=False)


def test_join_on_the_person_of_a_cte(clinic):
    clinic.check_same(
        "WITH v AS (SELECT person_id, cost FROM visits) SELECT p.active, SUM(v.cost) AS s FROM v JOIN people p "
        "ON v.person_id = p.person_id GROUP BY p.active", ordered=False)  # fmt: skip
