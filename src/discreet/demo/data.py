"""Made-up people of a clinic, in embedded DuckDB: the same every time, so that a reader can compare."""

from __future__ import annotations

from typing import Any

CITIES = ("Haifa", "Jerusalem", "Koper", "Ljubljana", "Maribor", "Tel Aviv")
DIAGNOSES = ("asthma", "back pain", "diabetes", "hypertension", "influenza", "migraine", "pneumonia")
PEOPLE = 50_000

# hash() of a row number is a fixed, well-mixed integer: no seed, no file, the same people on every machine
_MAKE = f"""
CREATE TABLE people AS
WITH dice AS (
  SELECT i AS person_id,
         [hash(i * 31 + k) % 1000000 / 1000000.0 FOR k IN range(12)] AS u
  FROM range({PEOPLE}) t(i)
)
SELECT person_id,
       least(105, greatest(0, round(46 + 7.5 * (u[1] + u[2] + u[3] + u[4] + u[5] + u[6] - 3) * 1.41)))::INT AS age,
       {list(CITIES)}[1 + floor(6 * u[7] * u[7])::INT] AS city,
       {list(DIAGNOSES)}[1 + floor(7 * pow(u[8], 1.3))::INT] AS diagnosis,
       round(least(5000, 120 + 900 * -ln(1 - u[9]) * (0.4 + u[10])), 2) AS cost
FROM dice
"""


def make_people() -> Any:
    """A DuckDB connection with the table `people`, one row for each person."""
    import duckdb

    connection = duckdb.connect(":memory:")
    connection.execute(_MAKE)
    return connection
