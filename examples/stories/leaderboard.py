# %% [markdown]
# # A leaderboard
#
# A competition hides the labels of a test set and publishes the score of each submission. Exact scores leak: a
# participant who submits often enough learns about the labels, and climbs without having learned anything else.
#
# **Who is misled:** everyone who reads the board. A score shows how a submission does on *these* labels, but what
# matters is how it will do on new ones. **Who is protected:** the owner of each label. One tool does both: a score that
# reveals little about any one label cannot be overfitted to it.

# %%
import matplotlib.pyplot as plt
import numpy as np

import discreet as dp

plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "figure.dpi": 120})
LABELS, SUBMISSIONS = 20_000, 2000
draw = np.random.default_rng(8)
labels = draw.integers(0, 2, LABELS) > 0
print(f"{LABELS:,} hidden labels, all coin flips: no prediction is wrong less than half of the time")

# %% [markdown]
# ## The attack
#
# Blum and Hardt, 2015: submit coin flips, keep those that happen to score better than half, and submit their majority
# vote. The attack uses only the scores on the board.

# %%
guesses = draw.integers(0, 2, (SUBMISSIONS, LABELS)) > 0
CHECKED = range(200, SUBMISSIONS + 1, 200)


def climb(submit) -> list:
    """The attack on one board: its scores of the majority vote after every 200 submissions."""
    votes, kept, said = np.zeros(LABELS), 0, []
    for number, guess in enumerate(guesses, start=1):
        score = submit(guess)
        if score.agrees and score.value < 0.5:  # its own score, and a lucky one
            votes, kept = votes + guess, kept + 1
        if number in CHECKED:
            said.append(submit(2 * votes > kept))
    return said


# %% [markdown]
# ## Three boards
#
# The naive board shows the exact loss. If the labels belong to nobody, `dp.adaptive.leaderboard` is the Ladder: it
# shows a loss only if it is clearly the best so far. If the labels belong to people, every score has noise, and the
# whole competition is one entry in a ledger, charged before the first submission.


# %%
class Naive:
    """A board without protection: the exact fraction of wrong predictions, and the textbook interval."""

    agrees = True

    def __init__(self, predictions: np.ndarray) -> None:
        self.value = float((predictions != labels).mean())
        self.interval = (self.value - 0.98 / LABELS**0.5, self.value + 0.98 / LABELS**0.5)


ledger = dp.Ledger.open(":memory:", protects=dp.row(neighbors="replace"), limit=dp.Approx(epsilon=20, delta=1e-6))
total = SUBMISSIONS + len(CHECKED) + 1
ladder = dp.adaptive.leaderboard(labels, submissions=total, unprotected=True)
private = dp.adaptive.leaderboard(labels, submissions=total, ledger=ledger)
said = {"naive": climb(Naive), "the Ladder": climb(ladder.submit), "private": climb(private.submit)}
for name, scores in said.items():
    print(f"{name:>10}: a loss of {scores[-1].value:.3f} after {SUBMISSIONS} submissions of coin flips")

# %% [markdown]
# The plot shows each board with the interval that it claims for new data. The naive board uses the textbook interval,
# which is meant for one submission chosen in advance. Its leader seems clearly better than chance, but is not. Ours
# were attacked in the same way, with the same coin flips.

# %%
colors = {"naive": "#c0504d", "the Ladder": "#7a9a3a", "private": "#1f4e79"}
figure, panels = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained", sharey=True)
for panel, (name, scores) in zip(panels, said.items(), strict=True):
    low, high = np.array([score.interval for score in scores]).T
    panel.fill_between(CHECKED, low, high, color=colors[name], alpha=0.25, label="claimed (95%)")
    panel.plot(CHECKED, [score.value for score in scores], "o-", color=colors[name], markersize=4, label="shown")
    panel.axhline(0.5, color="black", linestyle=":", label="the truth")
    panel.set(xlabel="coin flips submitted", title=name, ylim=(0.1, 0.9))
panels[0].set_ylabel("loss of the majority vote")
panels[0].legend(frameon=False, loc="lower left")
figure.savefig("leaderboard_climbed.png")

# %% [markdown]
# ## What the scores promise
#
# Each of our scores has an interval for the loss on *new* data. All intervals of a competition hold together, whoever
# submits, and however the next submission depends on the last score.

# %%
print("the Ladder:", ladder.scores[-1])
print("private:   ", private.scores[-1])
print("it cost:   ", ledger.entries()[-1].guarantee, "for all scores together")
for name, scores in said.items():
    held = sum(score.interval[0] <= 0.5 <= score.interval[1] for score in scores)
    print(f"{name}: {held} of {len(scores)} claimed intervals contain the truth")

# %% [markdown]
# ## Real progress is visible
#
# A board that shows nothing would be easy to build. So here are predictions like those of somebody who did learn: wrong
# in a tenth of all cases. (They are derived from the labels, because coin flips cannot be learned; no board can know.)

# %%
skilled = labels ^ (draw.random(LABELS) < 0.1)
for name, board in (("the Ladder", ladder), ("private", private)):
    score = board.submit(skilled)
    low, high = score.interval
    print(f"{name}: {score.value:.3f}, in [{low:.3f}, {high:.3f}]; clearly better than chance: {high < 0.5}")

# %% [markdown]
# ## How many labels does a competition need?
#
# Widths depend on public numbers only, so this is known before the first submission.

# %%
for row in dp.adaptive.plan([10_000, 100_000, 1_000_000], SUBMISSIONS, methods=["gaussian"]).rows:
    print(f"{row['rows']:>9,} labels: every private score is within ± {row['width']:.3f}")
print("files written: leaderboard_climbed.png")

# %% [markdown]
# **What to notice.** The naive leader has a better score than anyone can have. A private score cannot be climbed,
# because it hardly depends on any one label. The price is a width that is known in advance. It is wide, because it
# holds against the worst participant. The Ladder is narrower, and protects nobody's label.
