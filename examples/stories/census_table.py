# %% [markdown]
# # A census-like table
#
# A statistical office asked 30,000 people six questions. Researchers want tables, quantiles, and most of all "the data"
# to experiment with. The office can give them all three, and say how accurate each is.
#
# **Who is protected:** a person, who is one row. The people here are synthetic, from a generator that everyone can
# read, so we can compare each release with the truth. A real office could not show it.

# %%
import itertools
from collections import Counter

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa

import discreet as dp
from discreet.mechanisms.counts.residuals import ResidualMarginals, whole_counts

plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "figure.dpi": 120})
PEOPLE = 30_000
EDUCATION = ["school", "college", "university"]
WORK = ["office", "craft", "care", "none"]
draw = np.random.default_rng(1994)
age = np.clip(draw.gamma(6, 7.5, PEOPLE), 16, 95).astype(int)
sex = draw.choice(["f", "m"], PEOPLE)
study = np.clip(draw.normal(1.1 - (age > 55) * 0.4, 0.7), 0, 2.49).round().astype(int)
retired = (age > 66) | (draw.random(PEOPLE) < 0.12)
manual = np.where(draw.random(PEOPLE) < 0.35 + 0.3 * (sex == "m"), 1, 2)
job = np.where(retired, 3, np.where(draw.random(PEOPLE) < 0.25 + 0.3 * study, 0, manual))
hours = np.where(job == 3, 0, np.clip(draw.normal(36 + 4 * (sex == "m"), 9), 5, 80)).astype(int)
logit = -3.2 + 1.1 * study + 0.05 * (hours - 20) + 0.02 * (age - 30)
census = {
    "age": age,
    "sex": sex,
    "education": np.array(EDUCATION)[study],
    "work": np.array(WORK)[job],
    "hours": hours,
    "income": np.where(draw.random(PEOPLE) < 1 / (1 + np.exp(-logit)), "above", "below"),
}
ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=4, delta=1e-5))
table = dp.table(pa.table(census), ledger=ledger, rows_per_person=1)
print(f"{PEOPLE:,} people; columns: {', '.join(census)}")

# %% [markdown]
# ## All tables of two columns at once
#
# Four columns have six such tables. If you ask for them one by one, they disagree about the number of women. Measured
# together they agree, and the error of every count is known before a row is read.

# %%
columns = {"sex": ("f", "m"), "education": EDUCATION, "work": WORK, "income": ("below", "above")}
pairs = dp.queries.Workload.marginals(dp.queries.Domain(columns), 2)
plan = ResidualMarginals.for_guarantee(dp.Approx(epsilon=0.5, delta=1e-6), workload=pairs)
shown = ("education", "income")
off = float(plan.error(0.95, of=shown))
print(f"{len(pairs)} counts, off by about {plan.expected_rmse():.0f}; one of {' × '.join(shown)} ± {off:.0f} (95%)")
records = list(zip(*(census[name].tolist() for name in columns), strict=True))
tables = dp.release(records, plan, sensitivity=dp.Count().sensitivity(dp.row()), ledger=ledger)
counts = plan.marginal(tables.value, shown)
print(whole_counts(counts), f"of about {counts.sum():,.0f} people")

# %%
figure, panel = plt.subplots(figsize=(7, 3.4), layout="constrained")
for place, (income, color) in enumerate(zip(columns["income"], ("#9ec3e6", "#1f4e79"), strict=True)):
    where = np.arange(3) + 0.36 * (place - 0.5)
    panel.bar(where, counts[:, place], 0.34, yerr=off, capsize=4, color=color, label=f"income {income} the line")
    true = [((census["education"] == e) & (census["income"] == income)).sum() for e in EDUCATION]
    panel.plot(where, true, "D", color="white", markeredgecolor="black", label="the truth" if place else None)
panel.set(xticks=range(3), xticklabels=EDUCATION, ylabel="people")
panel.set_title(f"One of six tables, for ε = 0.5: each bar ± {off:.0f} (95%)")
panel.legend(frameon=False, loc="upper right")
figure.savefig("census_table_income.png")

# %% [markdown]
# ## Quantiles
#
# Nine deciles of the age, each with an interval. All nine intervals hold together.

# %%
tenths = [i / 10 for i in range(1, 10)]
deciles = table.quantiles("age", tenths, between=(16, 96), epsilon=0.5, delta=1e-6)
print(deciles)
print("true deciles:", np.quantile(age, tenths).tolist())

# %% [markdown]
# ## A synthetic table
#
# Its rows belong to nobody. It can be copied, published and used for any question, at no further cost.

# %%
choices = {"age": (16, 96), "sex": ["f", "m"], "education": EDUCATION, "work": WORK, "hours": (0, 80)}
made = table.synthesize({**choices, "income": ["below", "above"]}, epsilon=2, delta=1e-6)
print(made)
for row in made.table.slice(0, 3).to_pylist():
    print("  ", row)

# %% [markdown]
# ## How good is it?
#
# For each pair of columns, what percentage of the rows would have to change to make the synthetic counts true? For
# comparison, the same for independent columns, which need only the six columns one by one. A star marks pairs that
# were measured; the others follow from the model.

# %%
synthetic = {name: made[name] for name in census}
independent = {name: draw.permutation(census[name]) for name in census}


def counted(columns: dict, pair: tuple[str, str]) -> Counter:
    """The number of rows for each combination of a pair of columns, with numbers in steps of ten."""
    coarse = (columns[name] // 10 if name in ("age", "hours") else columns[name] for name in pair)
    return Counter(zip(*(column.tolist() for column in coarse), strict=True))


def apart(columns: dict, pair: tuple[str, str]) -> float:
    """The percentage of rows that would have to change for the counts of a pair to be true."""
    ours, true = counted(columns, pair), counted(census, pair)
    return 50 * sum(abs(ours[cell] / ours.total() - true[cell] / true.total()) for cell in ours | true)


found = []
for pair in itertools.combinations(census, 2):
    mark = "* " if any(set(pair) == set(names) for names in made.measured) else ""
    found.append((mark + " × ".join(pair), apart(synthetic, pair), apart(independent, pair)))
    print("{:>20}: {:4.1f}%, independent {:4.1f}%".format(*found[-1]))
figure, panel = plt.subplots(figsize=(7, 4.4), layout="constrained")
names, ours, others = zip(*sorted(found, key=lambda one: one[2]), strict=True)
panel.hlines(range(len(names)), ours, others, color="0.85", zorder=0)
panel.plot(others, range(len(names)), "o", color="#c0504d", label="independent columns")
panel.plot(ours, range(len(names)), "o", color="#1f4e79", label="synthetic table, ε = 2")
panel.set(yticks=range(len(names)), yticklabels=names)
panel.set(xlabel="rows that would have to change, % (* measured)", xlim=(-0.5, None), title="How far pairs are off")
panel.legend(frameon=False, loc="lower right")
figure.savefig("census_table_pairs.png")

# %% [markdown]
# ## What it cost

# %%
for entry in ledger.entries():
    print(f"{entry.receipt:>7}  {entry.guarantee}")
print(f"{ledger.remaining} remains of {ledger.limit}")
print("files written: census_table_income.png, census_table_pairs.png")

# %% [markdown]
# **What to notice.** Tables and quantiles come with errors that hold. A synthetic table is a convenience: it contains
# the pairs that matter, and everything that was not measured follows from a model that may be wrong. Experiment with
# it, then query the true table with the remaining budget.
