# %% [markdown]
# # A hospital's visits
#
# A hospital wants its analysts to plan with last year's visits: which diagnoses are the most common, and what a visit
# costs. None of them needs to know that a certain patient came, how often, or why.
#
# **Who is protected:** a patient, with all visits. Everything that is published would be nearly as likely if the
# patient had never come. The 40,000 people here, with 160,000 visits, are synthetic, so the truth can be shown next to
# the answers.

# %%
import tempfile
from pathlib import Path

import duckdb
import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter1d

import discreet as dp
from discreet.demo.data import make_clinic

plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "figure.dpi": 120})
folder = tempfile.TemporaryDirectory()
home = Path(folder.name)
_ = make_clinic(home)  # writes visits.parquet: visit_id, patient_id, day, diagnosis, cost

# %% [markdown]
# ## The owner writes a policy
#
# It says who is protected, how much may be spent in total (ε = 3), and what is public about a column: a visit costs
# between 0 and 3,000. At most 20 visits of one patient count. Diagnoses are not listed, so they are not public: a
# diagnosis that few patients have is not shown.

# %%
policy = home / "hospital.toml"
policy.write_text("""
[ledger]
path = "hospital.ledger"
epsilon = 3.0
delta = 1e-5
delta_per_question = 1e-7

[unit]
person = "patient_id"

[tables.visits]
source = "visits.parquet"
rows_per_person = 20
groups_per_person = 7
[tables.visits.columns.cost]
between = [0, 3000]
""")
hospital = dp.connect(policy)

# %% [markdown]
# ## A question in SQL
#
# `explain` shows what an answer would cost and its expected error. It reads no visit and spends nothing.

# %%
question = """SELECT diagnosis, COUNT(*) AS visits, AVG(cost) AS cost
              FROM visits GROUP BY diagnosis ORDER BY visits DESC"""
print(hospital.explain(question, epsilon=0.5))

# %%
answer = hospital.sql(question, epsilon=0.5)
print(answer)

# %% [markdown]
# The same question again gets the same answer for free, so nobody can average the noise away.

# %%
again = hospital.sql(question, epsilon=0.5)
print("the same answer:", again.table.equals(answer.table), "| answered before:", again.replayed)

# %% [markdown]
# ## A mean, by a method
#
# The same visits under the same ledger, without SQL. With five times the ε, the error is about a fifth.

# %%
visits = dp.table(home / "visits.parquet", ledger=hospital.ledger, rows_per_person=20)
print("for ε = 0.1:", visits.mean("cost", between=(0, 3000), epsilon=0.1))
print("for ε = 0.5:", visits.mean("cost", between=(0, 3000), epsilon=0.5))

# %% [markdown]
# ## The whole distribution of costs, as one function
#
# A mean hides the expensive visits. A density is paid for once, and can then be evaluated at every point. It is smooth:
# each visit counts as a bell curve, whose width the release chooses by itself. The band shows how much noise may have
# changed that smooth curve, at all points together.

# %%
density = visits.density("cost", between=(0, 3000), epsilon=1, delta=1e-6)
print(f"nine of ten visits cost less than {density.quantile(0.9):,.0f}")
print(f"{100 * density.integrate(1500, 3000):.1f}% of the visits cost more than 1,500")
true_costs = duckdb.read_parquet(str(home / "visits.parquet")).fetchnumpy()["cost"]  # no analyst sees these
true_shares, _ = np.histogram(true_costs, 600, range=(0, 3000), density=True)  # in steps of 5
smoothed = gaussian_filter1d(true_shares, density.bandwidth[0] / 5, mode="constant")
places, heights = density.grid(600)
off = float(density.error(0.95))
figure, panel = plt.subplots(figsize=(7, 3.6), layout="constrained")
panel.hist(true_costs, 100, range=(0, 3000), density=True, color="0.88", label="the truth, which nobody is shown")
panel.fill_between(places, heights - off, heights + off, color="#9ec3e6", label=f"noise: ± {off:.2g} everywhere (95%)")
panel.plot(places, heights, color="#1f4e79", label="released density")
panel.plot(np.arange(2.5, 3000, 5), smoothed, ":", color="black", label="the truth, smoothed alike")
panel.set(xlim=(0, 3000), xlabel="cost of a visit", ylabel="density", title="What visits cost, for ε = 1")
panel.legend(frameon=False)
figure.savefig("hospital_visits_density.png")

# %% [markdown]
# ## The budget runs out
#
# Now somebody counts the visits of each month, one month at a time. The ledger charges each question before it is
# answered, and a refusal costs nothing.

# %%
left = []
try:
    for month in range(1, 13):
        left.append(hospital.ledger.remaining.epsilon_at(delta=1e-5))
        print(f"month {month}:", visits.count(where=f"month(day) = {month}", epsilon=0.2))
except dp.BudgetExhausted as refused:
    print("refused:", refused)
figure, panel = plt.subplots(figsize=(7, 2.8), layout="constrained")
panel.bar(range(len(left)), left, color="#9ec3e6", edgecolor="#1f4e79")
panel.axhline(0.2, color="#c0504d", linestyle="--", label="the cost of one more month")
panel.legend(frameon=False)
panel.set(xlabel="months counted", ylabel="ε that still fits", ylim=(0, None), title="The budget runs out")
figure.savefig("hospital_visits_budget.png")

# %% [markdown]
# ## What it cost
#
# The ledger is a file. Each entry is an answer that was released. `verify` checks all hashes, costs and totals.

# %%
print(hospital.ledger.verify(), "entries verify, the opening included")
print(*(f"{entry.receipt:>8}  {entry.asked[:84]}" for entry in hospital.ledger.entries()), sep="\n")

# %% [markdown]
# **What to notice.** No analyst saw a single visit. The cost of an answer was known in advance, and so was the error of
# a count. And twelve questions about twelve months were too many. One question with GROUP BY answers all of them for
# the cost of one, because each visit is in one month. It can still be explained, but the budget is used up:

# %%
print(hospital.explain("SELECT month(day) AS month, COUNT(*) AS visits FROM visits GROUP BY month", epsilon=0.2))
hospital.close()
folder.cleanup()
print("files written: hospital_visits_density.png, hospital_visits_budget.png")
