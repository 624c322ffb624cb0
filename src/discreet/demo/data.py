"""Synthetic people: a clinic with its visits, patients who may come back, employees with an opinion.

They are the same in every run, so that results can be compared.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

CITIES = ("Haifa", "Jerusalem", "Koper", "Ljubljana", "Maribor", "Tel Aviv")
PEOPLE, VISITS = 40_000, 160_000

# hash() of a row number is a fixed, well-mixed integer: no seed, no file, the same people on every machine
_PEOPLE = f"""
WITH dice AS (SELECT i AS patient_id, [hash(i * 31 + k) % 1000000 / 1000000.0 FOR k IN range(8)] AS u
              FROM range({PEOPLE}) t(i))
SELECT patient_id,
       least(105, greatest(0, round(48 + 24 * (u[1] + u[2] + u[3] + u[4] + u[5] + u[6] - 3))))::INT AS age,
       {list(CITIES)}[1 + floor(6 * u[7] * u[7])::INT] AS city
FROM dice
"""
# most people come rarely and a few often: the patient is a power of a uniform number
_VISITS = f"""
WITH dice AS (SELECT i AS visit_id, [hash(i * 67 + k + 5) % 1000000 / 1000000.0 FOR k IN range(8)] AS u
              FROM range({VISITS}) t(i))
SELECT visit_id,
       floor({PEOPLE} * pow(u[1], 1.2))::INT AS patient_id,
       DATE '2025-01-01' + floor(365 * u[2])::INT AS day,
       CASE WHEN u[3] < 0.00002 THEN 'case ' || (visit_id % 7)
            ELSE ['asthma', 'back pain', 'diabetes', 'hypertension', 'influenza', 'migraine', 'pneumonia']
                 [1 + floor(7 * pow(u[4], 1.3))::INT] END AS diagnosis,
       round(least(5000, 60 + 420 * -ln(1 - u[5]) * (0.4 + u[6])), 2) AS cost
FROM dice
"""
# patients who are older, cost more or come more often are more likely to come back
PATIENTS = """
WITH dice AS (SELECT [hash(i * 41 + k + 11) % 1000000 / 1000000.0 FOR k IN range(4)] AS u FROM range({count}) t(i)),
     known AS (SELECT 18 + 72 * u[1] AS age, least(3000, -500 * ln(1 - u[2])) AS cost, 10 * u[3] * u[3] AS visits,
                      u[4] AS coin FROM dice)
SELECT age, cost, visits,
       (coin < 1 / (1 + exp(-((age - 55) / 14 + (cost - 450) / 750 + (visits - 3) / 3))))::INT AS readmitted
FROM known
"""
PATIENT_RANGES = {"age": (18, 90), "cost": (0, 3000), "visits": (0, 10)}
OPINIONS = ("yes", "probably", "no", "cannot say")
EMPLOYEES = """
SELECT CASE WHEN u < 0.36 THEN 'yes' WHEN u < 0.62 THEN 'probably' WHEN u < 0.89 THEN 'no' ELSE 'cannot say' END AS said
FROM (SELECT hash(i * 53 + 7) % 1000000 / 1000000.0 AS u FROM range({count}) t(i))
"""
POLICY = f"""\
[ledger]
path = "clinic.ledger"
epsilon = 4.0
delta = 1e-5
delta_per_question = 1e-7

[unit]
person = "patient_id"

[tables.people]
source = "people.parquet"
rows_per_person = 1               # a fact, and not a guess: then errors are known in advance
[tables.people.columns.city]
choices = [{", ".join(f'"{city}"' for city in CITIES)}]

[tables.visits]
source = "visits.parquet"         # nothing is declared: limits are found privately, for each question
"""


def make_clinic(folder: Path) -> Path:
    """Write both tables and a policy for them into a folder, and return the path of the policy."""
    import duckdb

    with duckdb.connect(":memory:") as connection:
        for name, query in (("people", _PEOPLE), ("visits", _VISITS)):
            connection.execute(f"COPY ({query}) TO '{folder / name}.parquet'")
    policy = folder / "clinic.toml"
    policy.write_text(POLICY, encoding="utf-8")
    return policy


def columns_of(query: str, **sizes: int) -> dict[str, Any]:
    """The result of a query that generates synthetic people, as numpy columns."""
    import duckdb

    with duckdb.connect(":memory:") as connection:
        return dict(connection.execute(query.format(**sizes)).fetchnumpy())


class Truth:
    """Exact answers by plain DuckDB on the clinic's files, which nobody may see if people are real."""

    def __init__(self, folder: Path) -> None:
        import duckdb

        self._connection = duckdb.connect(":memory:")
        for name in ("people", "visits"):
            self._connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{folder / name}.parquet')")

    def rows(self, question: str, keys: int) -> dict[tuple[Any, ...], tuple[Any, ...]]:
        """The exact answer, by its keys."""
        return {row[:keys]: row[keys:] for row in self._connection.execute(question).fetchall()}
