"""Look at your data as often as you like, and still trust what you find: answers that hold beyond the sample.

If you choose a question after you have seen other answers, you fit the noise of the sample. Here the data is pure
noise, so everything that looks like a finding is an illusion. Run it with `python examples/adaptive.py`.
"""

from __future__ import annotations

import numpy as np

import discreet as dp
from discreet.reproduce import game

draw = np.random.default_rng(6)


def noise(rows: int, features: int) -> dict[str, np.ndarray]:
    """Coin flips: the label is independent of the features, so no prediction is right more than half of the time."""
    return {"x": draw.integers(0, 2, (rows, features)) > 0, "label": draw.integers(0, 2, rows) > 0}


# A study: ten questions, each chosen after the earlier answers. The width is known before the first one.
visits = {"age": draw.integers(18, 95, 200_000), "readmitted": draw.random(200_000) < 0.4}
ledger = dp.Ledger.open(":memory:", protects=dp.row(neighbors="replace"), limit=dp.Approx(epsilon=20, delta=1e-6))
study = dp.adaptive.study(visits, queries=10, ledger=ledger)
print(study)
old = study.mean(lambda rows: rows["age"] > 65)
print(f"  older than 65: {old}")
if old.value > 0.2:  # the next question depends on this answer, and its interval still holds
    print(f"  and readmitted: {study.mean(lambda rows: (rows['age'] > 65) & rows['readmitted'])}")
print(f"  {study.correlation(lambda r: r['age'], lambda r: r['readmitted'], x_between=(18, 95))}: age and readmission")

# A holdout: search the training set freely, and check what it says on fresh rows.
train, test = noise(2000, 300), noise(2000, 300)
agree = (train["x"] == train["label"][:, None]).mean(axis=0)
best = np.argsort(-agree)[:51]
holdout = dp.adaptive.holdout(train, test, queries=100, overfits=3, unprotected=True)  # synthetic rows: not private
print(f"\n{holdout}")
single = holdout.check(lambda rows: rows["x"][:, 7] == rows["label"])
print(f"  one feature, planned in advance: {single}")
claimed = ((train["x"][:, best].sum(axis=1) > 25) == train["label"]).mean()
voted = holdout.check(lambda rows: (rows["x"][:, best].sum(axis=1) > 25) == rows["label"])
print(f"  the vote of the best 51 is right for {100 * claimed:.0f}% of the training set; on fresh rows:\n  {voted}")

# A leaderboard: 300 random submissions, then the majority vote of those that scored well (Blum-Hardt 2015).
labels, submissions = draw.integers(0, 2, 4000) > 0, draw.integers(0, 2, (300, 4000)) > 0


def majority(kept: list[np.ndarray]) -> np.ndarray:
    return np.sum(kept, axis=0) > len(kept) / 2


lucky = [one for one in submissions if (one != labels).mean() < 0.5]
print(f"\nA leaderboard with exact scores can be climbed by chance: a loss of {(majority(lucky) != labels).mean():.3f}")
boards = {
    "the Ladder": dp.adaptive.leaderboard(labels, submissions=301, unprotected=True),
    "private": dp.adaptive.leaderboard(labels, submissions=301),
}
for name, board in boards.items():
    lucky = [one for one in submissions if board.submit(one).value < 0.5]
    print(f"  {name}: {board.submit(majority(lucky))}")

# The game: the population is known, so you can see whether answers hold on it. Every question here has the mean 0.5.
population = game.Population.of_noise(99)
print("\nAn analyst asks 99 questions about 4000 rows, and derives the last one from their answers:")
naive = game.play(population, game.trace, lambda rows: game.Raw(rows, questions=100), size=4000)
ours = game.play(population, game.trace, lambda rows: dp.adaptive.study(rows, queries=100), size=4000)
for name, last in (("exact means", naive.rounds[-1]), ("a study", ours.rounds[-1])):
    low, high = last.interval
    print(f"  {name}: {last.value:.3f}, in [{low:.3f}, {high:.3f}]; {'true' if last.held else 'FALSE'}")
