# %% [markdown]
# # A telemetry survey
#
# The makers of an app want to know which screen people open first. They could collect everyone's answer and promise to
# be careful. Or they could design the survey so that no promise is needed. What does that cost in accuracy?
#
# **Who is protected:** a user, with one answer. **Against whom** depends on the model:
#
# | model | who sees the answers |
# |---|---|
# | central | a collector, who adds noise to the counts and is trusted to do so |
# | shuffled | nobody: a shuffler mixes messages with fakes, and the analyzer cannot know who sent them |
# | local | nobody: each device sometimes sends a false answer, so that every report can be denied |

# %%
import matplotlib.pyplot as plt
import numpy as np

import discreet as dp

plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "figure.dpi": 120})
SCREENS = ["map", "forecast", "radar", "alerts", "news", "settings"]
USERS = 50_000
EPSILON, DELTA = 1, 1e-8
answers = np.random.default_rng(5).choice(SCREENS, USERS, p=[0.34, 0.27, 0.18, 0.12, 0.06, 0.03])  # synthetic users
truth = {screen: int((answers == screen).sum()) for screen in SCREENS}
print(f"{USERS:,} users, one answer each, {len(SCREENS)} choices; ε = {EPSILON} for each user")

# %% [markdown]
# ## Nobody is trusted: a local survey
#
# `encode` runs on the device. What it sends is already private, whoever reads it.

# %%
survey = dp.local.survey(choices=SCREENS, epsilon=EPSILON)
print("one report of a user whose screen is the map:", survey.encode("map"))
print("exactly, by enumeration:", dp.verify(survey))
reports = survey.encode_many(answers)
local = survey.analyze(reports)
print(local)

# %% [markdown]
# ## A shuffler is trusted to mix: a shuffled poll
#
# Every device sends its answer and a few fakes. The shuffler mixes all messages and learns nothing, because they are
# encrypted for the analyzer. The analyzer counts them and cannot know who sent them. The two must not collude. (In a
# real poll, `discreet shuffle` runs both as services; here the shuffling is a permutation.)

# %%
poll = dp.shuffle.histogram(choices=SCREENS, clients=USERS, epsilon=EPSILON, delta=DELTA)
print(f"a device sends {poll.messages} messages, some of them empty; the error of a count is {poll.error(0.95)}")
messages = np.random.default_rng(6).permutation(poll.encode_many(answers))
mixed = poll.analyze(messages)
print({screen: round(count) for screen, count in mixed.value.items()})

# %% [markdown]
# With one report too few, nothing is released: the promise is for exactly this number of reports.

# %%
try:
    poll.analyze(messages[: -poll.messages])
except dp.NotAllowed as refused:
    print("refused:", refused)

# %% [markdown]
# ## The collector is trusted: the central model

# %%
ledger = dp.Ledger.open(":memory:", protects=dp.row(neighbors="replace"), limit=dp.Pure(epsilon=EPSILON))
counts = dp.queries.Histogram(SCREENS)
noise = dp.Laplace.for_guarantee(dp.Pure(epsilon=EPSILON), sensitivity=counts.sensitivity(ledger.protects))
central = dp.release(answers, noise, query=counts, ledger=ledger)
central_error = float(noise.error(0.95, values=len(SCREENS)))
print({screen: round(count) for screen, count in zip(SCREENS, central.value, strict=True)})
print(f"each ± {central_error:.1f}; {ledger.remaining or 'nothing'} remains")

# %% [markdown]
# ## Side by side
#
# All three answer the same question for the same ε, with error bars that hold for all six counts at once. The error
# bars of two models are too short to be visible.

# %%
models = {
    "central": (central.value, central_error, "#2a8c82"),
    "shuffled": (list(mixed.value.values()), float(mixed.error(0.95)), "#1f4e79"),
    "local": (list(local.value.values()), float(local.error(0.95)), "#c0504d"),
}
print(f"{'screen':>10} {'truth':>8}" + "".join(f"{name:>18}" for name in models))
for place, screen in enumerate(SCREENS):
    shown = "".join(f"{f'{values[place]:,.0f} ± {off:,.0f}':>18}" for values, off, _ in models.values())
    print(f"{screen:>10} {truth[screen]:8,}{shown}")

figure, panel = plt.subplots(figsize=(7.5, 3.8), layout="constrained")
for place, (name, (values, off, color)) in enumerate(models.items()):
    where = np.arange(len(SCREENS)) + 0.2 * (place - 1)
    panel.errorbar(where, values, yerr=off, fmt="o", ms=4, capsize=4, color=color, label=f"{name}: ± {off:,.0f}")
for place, screen in enumerate(SCREENS):
    label = "the truth, which nobody is shown" if place == 0 else None
    panel.hlines(truth[screen], place - 0.4, place + 0.4, color="0.6", linewidth=1, zorder=0, label=label)
panel.set(xticks=range(len(SCREENS)), xticklabels=SCREENS, ylabel="users", ylim=(0, None))
panel.set_title(f"The same question in three models, for ε = {EPSILON} (bars: 95%)")
panel.legend(frameon=False)
figure.savefig("telemetry_survey_counts.png")

# %% [markdown]
# ## How many users does it take?
#
# Errors are known before anyone is asked, so this plot needs no users. It shows errors as percentages of all users. A
# local survey improves with the square root of their number. The other two have noise of about the same few users,
# whether a thousand people answer or a million.

# %%
sizes = [1000, 10_000, 100_000, 1_000_000]
polls = [dp.shuffle.histogram(choices=SCREENS, clients=n, epsilon=EPSILON, delta=DELTA) for n in sizes]
errors = {
    "central": [central_error for n in sizes],
    "shuffled": [float(poll.error(0.95)) for poll in polls],
    "local": [float(survey.error(0.95, users=n)) for n in sizes],
}
figure, panel = plt.subplots(figsize=(7, 3.6), layout="constrained")
for name, amounts in errors.items():
    shares = [100 * off / n for off, n in zip(amounts, sizes, strict=True)]
    panel.plot(sizes, shares, "o-", color=models[name][2], label=name)
    print(f"{name:>9}: " + ", ".join(f"{share:.2g}% of {n:,}" for share, n in zip(shares, sizes, strict=True)))
panel.set(xscale="log", yscale="log", xlabel="users", ylabel="error, % of users (95%)", title="What trust is worth")
panel.legend(frameon=False)
figure.savefig("telemetry_survey_errors.png")
print("files written: telemetry_survey_counts.png, telemetry_survey_errors.png")

# %% [markdown]
# **What to notice.** A survey without any trust works, and its error bars show what that costs. A shuffler, which is
# trusted with much less than the answers, recovers most of the accuracy. The local promise has δ = 0 and was checked by
# enumeration above. The shuffled one needs a δ, and two services that do not collude.
