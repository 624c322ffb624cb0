"""Every line of the tour. `python examples/tour.py` prints the result of each."""

import os
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import discreet as dp

os.chdir(tempfile.mkdtemp())  # each run starts with a new ledger, in a temporary folder

# Ask one question
ledger = dp.Ledger.open(
    "clinic.ledger", protects=dp.person("patient_id"), limit=dp.Approx(epsilon=10, delta=1e-5)
)  # created if missing; same terms or refused if present
CITIES, CODES = ["Haifa", "Ljubljana"], ["flu", "injury", "checkup"]
draw = np.random.default_rng(1)
count = 200_000
pq.write_table(
    pa.table(
        {
            "visit_id": np.arange(count),
            "patient_id": draw.integers(0, 40_000, count),
            "age": draw.integers(0, 100, count),
            "cost": np.round(draw.lognormal(5, 1, count), 2),
            "city": draw.choice(CITIES, count),
            "diagnosis": draw.choice(CODES, count, p=[0.5, 0.2, 0.3]),
            "readmitted": draw.integers(0, 2, count),
        }
    ),
    "visits.parquet",
)
visits = dp.table("visits.parquet", ledger=ledger, rows_per_person=20)  # CSV, Parquet, Arrow, pandas, polars, DuckDB

age = visits.median("age", between=(0, 120), epsilon=0.2)
print(age)
print(age.value, age.error(0.95), age.guarantee, age.receipt)

print(visits.count(epsilon=0.1), visits.count("people", epsilon=0.1))  # rows; people
print(visits.sum("cost", between=(0, 5000), epsilon=0.1))
print(visits.mean("cost", between=(0, 5000), epsilon=0.1))
print(visits.variance("cost", between=(0, 5000), epsilon=0.1))
print(visits.quantiles("cost", [0.1, 0.5, 0.9], between=(0, 5000), epsilon=0.2))
print(visits.cdf("age", between=(0, 120), step=1, epsilon=0.2))  # every threshold at once; monotone
print(visits.histogram("city", choices=CITIES, epsilon=0.1))  # declared keys
print(visits.histogram("diagnosis", epsilon=0.1, delta=1e-8))  # undeclared keys: private selection
print(visits.most_common("diagnosis", choices=CODES, epsilon=0.1))  # exponential mechanism / noisy argmax
print(visits.mean("cost", between="auto", epsilon=0.2))  # the range is found privately, cost shown
print(visits.explain.median("age", between=(0, 120), epsilon=0.2))  # spends nothing
print(ledger.spent, ledger.remaining, len(ledger.entries()))  # used, what still fits, the append-only record

# SQL
pq.write_table(
    pa.table({"visit_id": draw.integers(0, count, count), "pills": draw.integers(1, 90, count)}),
    "prescriptions.parquet",
)
Path("cities.csv").write_text("city,country,region\nHaifa,Israel,north\nLjubljana,Slovenia,center\n")
Path("clinic.toml").write_text("""
[ledger]
path = "clinic.ledger"            # or postgresql://…
epsilon = 10.0
delta = 1e-5
delta_per_question = 1e-8

[unit]
person = "patient_id"

[tables.visits]
source = "visits.parquet"         # file, folder, or a table of the engine
rows_per_person = 20
groups_per_person = 5             # or "auto"
[tables.visits.columns.cost]
between = [0, 5000]
[tables.visits.columns.city]
choices = ["Haifa", "Ljubljana"]

[tables.prescriptions]
source = "prescriptions.parquet"
through = "visits.visit_id"       # foreign-key path to the person
rows_per_person = 50

[tables.cities]
source = "cities.csv"
public = true

[engine]                           # default: embedded DuckDB
kind = "duckdb"                    # "spark" with master =, "postgres" with url =
""")
clinic = dp.connect("clinic.toml")
question = """SELECT city, COUNT(*) AS visits, AVG(cost) AS cost
              FROM visits JOIN cities USING (city) WHERE age >= 18 GROUP BY city"""
print(clinic.explain(question, epsilon=0.5))  # plan, sensitivity, expected ± per column; spends nothing
answer = clinic.sql(question, epsilon=0.5)
print(answer.table)  # pyarrow: city, visits, visits_error, cost, cost_error (95%)
print(answer.guarantee, answer.receipt, answer.to_pandas())
print(clinic.sql(question, within={"visits": 50}, confidence=0.95))  # accuracy first: the smallest ε that promises it

# Nothing declared but the person
Path("open.toml").write_text("""
[ledger]
path = "open.ledger"
epsilon = 10.0
delta = 1e-5
delta_per_question = 1e-8
[unit]
person = "patient_id"
[tables.visits]
source = "visits.parquet"            # no bounds, no ranges: found privately, per question, shown by explain
[tables.prescriptions]
source = "prescriptions.parquet"
through = "visits.visit_id"
[tables.people]
source = "people.parquet"
[tables.cities]
source = "cities.csv"
public = true
""")
pq.write_table(pa.table({"patient_id": np.arange(40_000)}), "people.parquet")
clinic = dp.connect("open.toml")
answer = clinic.sql("SELECT city, COUNT(*) AS visits, SUM(cost) AS cost FROM visits GROUP BY city", epsilon=1)
print(answer.clipped)  # {"visits": 0.004, "cost": 0.011}: estimated share lost to clipping, from the release itself
all_visits = dp.table("visits.parquet", ledger=ledger)  # rows_per_person optional
print(all_visits.mean("cost", epsilon=0.1))  # between optional
print(all_visits.most_common("diagnosis", epsilon=0.1, delta=1e-8))  # choices optional
print(clinic.tables)  # what may be asked: columns, types, ranges, choices, who is protected

# More of SQL
print(
    clinic.sql(
        """SELECT city, COUNT(*) AS n, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS share
              FROM visits GROUP BY city ORDER BY n DESC""",
        epsilon=1,
    )
)  # windows and shares, after the noise
levels = "SELECT region, city, COUNT(*) AS n FROM visits JOIN cities USING (city) GROUP BY ROLLUP(region, city)"
print(clinic.sql(levels, epsilon=1))  # levels that add up: one charge
costly = "SELECT COUNT(*) AS n FROM people WHERE patient_id IN (SELECT patient_id FROM visits WHERE cost > 1000)"
print(clinic.sql(costly, epsilon=0.1))

# Mechanisms, for people who build their own
m = dp.Laplace.for_guarantee(dp.Pure(epsilon=1), sensitivity=1)  # or dp.Laplace(scale=2), dp.Gaussian(stddev=3)
print(m.scale, m.guarantee(sensitivity=1), m.error(0.95))
print(
    dp.release(41, m, sensitivity=1, ledger=ledger).value
)  # ledger optional: the release always carries its guarantee
numpy_array = np.zeros(1_000_000)
print(dp.release(numpy_array, m, sensitivity=1).value)  # an array of exact noise, millions a second
r = dp.RandomizedResponse.for_guarantee(dp.Pure(epsilon=1), choices=["a", "b"])
print(r.guarantee())
g = m.guarantee(sensitivity=1)
print(dp.compose([g] * 100).epsilon_at(delta=1e-6))  # numerically tight, parameters fixed in advance
print(dp.Gaussian, dp.Exponential, dp.NoisyArgmax, dp.GaussianProcess, dp.Each, dp.Composed, dp.Subsampled, dp.Shuffled)
print(dp.verify(r).delta_at(epsilon=0.5))  # exact, by enumeration, for any finite mechanism
print(dp.risk(dp.Pure(epsilon=1)))  # what ε means, in words and odds
space = dp.Interval(0, 120)
print(dp.least_error(space, dp.Approx(epsilon=1, delta=1e-6)))  # least error any mechanism could have

# Learning
X = np.random.default_rng(1).normal(size=(3000, 4)) / 4
y = (X[:, 0] > X[:, 1]).astype(int)
model = dp.learn.LogisticRegression(epsilon=1, delta=1e-6, classes=[0, 1], ledger=ledger)  # ledger optional
model.fit(X, y)  # numpy, or a torch tensor on the GPU
print(model.release_.error(0.95))  # excess risk bound
dp.learn.LinearRegression(epsilon=1, delta=1e-6, feature_norm=1.0, target_bound=1.0, fit_intercept=False).fit(X, y)
print(visits.fit(model, features=["age", "cost"], target="readmitted").coef_)

density = visits.density("cost", bandwidth=200, between=(0, 5000), epsilon=1, delta=1e-6)
print(
    density(1200.0), density.error(0.95), density.sample(1000)[:3], density.plot("cost.png")
)  # same point, same answer

people = visits.synthesize({"age": (0, 120), "city": CITIES, "cost": (0, 5000)}, epsilon=1, delta=1e-6)  # a table
print(people, people.table.slice(0, 2).to_pylist())

# Surveys without a trusted collector
EMOJI, COUNTRIES = ["🙂", "😐", "🙁"], ["IL", "SI", "IT"]
survey = dp.local.survey(choices=EMOJI, epsilon=2)
print(survey.encode("🙂"))  # on the device
reports = [survey.encode(emoji) for emoji in draw.choice(EMOJI, 2000)]
print(survey.analyze(reports).value)  # {choice: count}, with error bars
poll = dp.shuffle.histogram(
    choices=COUNTRIES, clients=100_000, epsilon=1, delta=1e-8
)  # honest=1.0, minimum=clients by default
values = draw.choice(COUNTRIES, 100_000)
print(poll.encode("IL"))
messages = poll.encode_many(values)  # vectorized: simulation and tests
print(poll.analyze(messages).value, poll.error(0.95))  # {choice: count}; poll.error(0.95) before anyone is asked
total = dp.shuffle.bit_sum(clients=100_000, epsilon=1, delta=1e-8)
print(total)

# Analysis that cannot fool itself
sample = {"smokes": draw.random(100_000) < 0.2, "age": draw.integers(18, 90, 100_000)}
study = dp.adaptive.study(
    sample, queries=10_000, confidence=0.95
)  # a table, a DataFrame, or a dict of arrays (first axis = rows)
first = study.mean(
    lambda rows: rows["smokes"]
)  # value ± width that holds on the POPULATION (data under a ledger: private methods only)
second = study.mean(lambda rows: rows["smokes"] & (rows["age"] > 40 + 10 * first.value))
print(first, second, second.error(0.95, of="population"))

# What a person sees
answer = dp.release(41, m, sensitivity=1, ledger=ledger)
print(answer)
print(answer.value, answer.error(0.95), answer.guarantee, answer.receipt)
print(g.epsilon_at(delta=1e-6), g.delta_at(epsilon=0.5))
print(ledger.spent, ledger.remaining, [entry.receipt for entry in ledger.entries()])

try:
    dp.release(41, dp.Laplace(scale=0.05), sensitivity=1, ledger=ledger)
except dp.BudgetExhausted as refused:
    print(refused.code, refused)
