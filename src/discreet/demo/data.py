"""Made-up people of a clinic and their visits, as Parquet files: the same every time, so that a reader can compare."""

from __future__ import annotations

from pathlib import Path

CITIES = ("Haifa", "Jerusalem", "Koper", "Ljubljana", "Maribor", "Tel Aviv")
PEOPLE, VISITS = 40_000, 160_000

# hash() of a row number is a fixed, well-mixed integer: no seed, no file, the same people on every machine
_PEOPLE = f"""
WITH dice AS (SELECT i AS patient_id, [hash(i * 31 + k) % 1000000 / 1000000.0 FOR k IN range(8)] AS u
              FROM range({PEOPLE}) t(i))
SELECT patient_id,
       least(105, greatest(0, round(46 + 10.6 * (u[1] + u[2] + u[3] + u[4] + u[5] + u[6] - 3))))::INT AS age,
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
rows_per_person = 1
[tables.people.columns.age]
between = [0, 110]
[tables.people.columns.city]
choices = [{", ".join(f'"{city}"' for city in CITIES)}]

[tables.visits]
source = "visits.parquet"
rows_per_person = 20
groups_per_person = 7
[tables.visits.columns.cost]
between = [0, 3000]
"""


def make_clinic(folder: Path) -> Path:
    """Write both tables and a policy for them into a folder; the policy's path."""
    import duckdb

    with duckdb.connect(":memory:") as connection:
        for name, query in (("people", _PEOPLE), ("visits", _VISITS)):
            connection.execute(f"COPY ({query}) TO '{folder / name}.parquet'")
    policy = folder / "clinic.toml"
    policy.write_text(POLICY, encoding="utf-8")
    return policy
