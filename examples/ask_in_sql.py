"""Query a clinic in SQL: a policy, answers with error bars, an explanation, and a refused question."""

import os
import tempfile
from pathlib import Path

import discreet as dp
from discreet.demo.data import make_clinic

os.chdir(tempfile.mkdtemp())
clinic = dp.connect(make_clinic(Path.cwd()))  # writes people.parquet, visits.parquet and clinic.toml

question = """SELECT city, COUNT(*) AS visits, AVG(cost) AS cost
              FROM visits JOIN people USING (patient_id) WHERE age >= 18 GROUP BY city"""
print(clinic.tables)
print(clinic.explain(question, epsilon=0.5))
print()
answer = clinic.sql(question, epsilon=0.5)
print(answer)
print(answer.table.schema.names, answer.cost, answer.receipt)
print()
people = "SELECT city, COUNT(*) AS people FROM people GROUP BY city"
print(clinic.sql(people, within={"people": 100}, confidence=0.95))
print()
# every quarter and city that the policy allows is a group: none has to be chosen by how many people are in it
quarters = (
    "SELECT date_trunc('quarter', day) AS quarter, city, COUNT(*) AS visits FROM visits JOIN people USING (patient_id)"
)
print(clinic.sql(f"{quarters} WHERE year(day) = 2025 GROUP BY quarter, city", epsilon=0.5))
print()
first_visits = """SELECT diagnosis, COUNT(*) AS people
                  FROM (SELECT diagnosis FROM visits
                        WHERE patient_id IN (SELECT patient_id FROM people WHERE age >= 65)
                        QUALIFY ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY day) = 1) AS first_visits
                  GROUP BY ALL ORDER BY people DESC"""
print(clinic.sql(first_visits, epsilon=0.5))  # what depends on one person's rows only needs no more noise
print()
try:
    clinic.sql("SELECT patient_id, cost FROM visits WHERE cost > 1000", epsilon=0.1)
except dp.NotAllowed as refused:
    print(refused)
clinic.close()
