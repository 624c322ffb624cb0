"""Experiments in which data are reused and noise looks like a finding: known to fool the naive way, and not ours.

All data are pure noise: the label has nothing to do with the features, so that every prediction is right half of the
time on the population, however it was found. Data and the noise of answers come from fixed seeds: no false alarms.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from discreet import testing
from discreet.adaptive import Holdout, Leaderboard, Study, holdout, leaderboard, study
from discreet.reproduce.game import Population, Raw, play, trace

Columns = dict[str, NDArray[Any]]
CHANCE = 0.5


def noise(draw: np.random.Generator, rows: int, features: int) -> Columns:
    """Independent coins of −1 and 1; a column of features lies together in memory."""
    coins = draw.integers(0, 2, (features, rows), dtype=np.int8) * 2 - 1
    return {"features": coins.T, "label": draw.integers(0, 2, rows, dtype=np.int8) * 2 - 1}


def agreement(feature: int) -> Any:
    return lambda rows: rows["features"][:, feature] == rows["label"]


def vote(kept: NDArray[Any], signs: NDArray[Any]) -> Any:
    """Whether the vote of some features, each with its sign, is the label."""
    return lambda rows: (rows["features"][:, kept].astype(np.float32) @ signs > 0) == (rows["label"] > 0)


# --- the reusable holdout (Dwork et al., Science 2015) ------------------------------------------------------


def select(
    trained: NDArray[np.float64], held: NDArray[np.float64], rows: int, most: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The features with the most signal on the training set, of those for which the holdout says that it is there."""
    agree = (np.abs(trained) > 0.5 / np.sqrt(rows)) & (np.abs(held) > 0.5 / np.sqrt(rows)) & (trained * held > 0)
    strength = np.where(agree, np.abs(trained), 0)
    kept = np.argsort(-strength, kind="stable")[: min(most, int(agree.sum()))]
    return kept, np.sign(trained[kept]).astype(np.float32)


def science(rows: int, features: int, most: int, overfits: int, seed: int) -> tuple[float, Any, Holdout]:
    """What a holdout says of the vote that was selected with its help: when it is reused as it is, and with ours."""
    draw = np.random.default_rng(seed)
    train, test = noise(draw, rows, features), noise(draw, rows, features)
    trained = np.array([agreement(j)(train).mean() for j in range(features)]) - CHANCE
    raw = np.array([agreement(j)(test).mean() for j in range(features)]) - CHANCE
    naive = float(vote(*select(trained, raw, rows, most))(test).mean())

    guarded = holdout(train, test, queries=features + 1, overfits=overfits, unprotected=True)
    told = np.array([guarded.check(agreement(j)).value for j in range(features)]) - CHANCE
    return naive, guarded.check(vote(*select(trained, told, rows, most))), guarded


def check_science(naive: float, ours: Any, guarded: Holdout) -> None:
    assert naive > 0.60
    assert abs(ours.value - CHANCE) <= ours.width <= guarded.width < 0.25
    assert not ours.agrees  # the training set says far more
    assert ours.interval[0] <= CHANCE <= ours.interval[1]
    assert naive > CHANCE + 2 * abs(ours.value - CHANCE)


@pytest.mark.slow
def test_a_holdout_that_is_reused_sees_signal_in_noise_and_ours_does_not() -> None:
    check_science(*science(rows=2000, features=2000, most=100, overfits=5, seed=1))


@pytest.mark.slow
def test_a_holdout_that_is_reused_sees_signal_in_noise_at_the_size_of_the_paper() -> None:
    check_science(*science(rows=10_000, features=10_000, most=500, overfits=10, seed=2))


# --- boosting a leaderboard (Blum-Hardt 2015) ---------------------------------------------------------------


def boosted(board: Leaderboard, submissions: NDArray[Any]) -> Any:
    """The score of the majority of all submissions that scored below ½."""
    kept = [predictions for predictions in submissions if board.submit(predictions).value < CHANCE]
    return board.submit(np.sum(kept, axis=0) > len(kept) / 2)


@pytest.mark.slow
def test_a_leaderboard_is_climbed_by_chance_and_ours_is_not() -> None:
    draw = np.random.default_rng(3)
    labels, submissions = draw.integers(0, 2, 4000) > 0, draw.integers(0, 2, (500, 4000), dtype=np.int8) > 0
    losses = (submissions != labels).mean(axis=1)
    kept = submissions[losses < CHANCE]
    naive = float(((kept.sum(axis=0) > len(kept) / 2) != labels).mean())
    assert naive < 0.45

    ladder = leaderboard(labels, submissions=501, unprotected=True)
    last = boosted(ladder, submissions)
    assert abs(last.value - CHANCE) <= last.width < 0.1
    assert last.value > naive + 0.03
    assert all(score.interval[0] <= CHANCE <= score.interval[1] for score in ladder.scores)

    with testing.frozen(3):
        private = leaderboard(labels, submissions=501)
        last = boosted(private, submissions)
    assert abs(last.value - CHANCE) <= last.width < 0.4
    assert all(score.interval[0] <= CHANCE <= score.interval[1] for score in private.scores)
    assert private.guarantee is not None


# --- Freedman's paradox (Freedman 1983) -------------------------------------------------------------------------


def least_squares(x: NDArray[Any], y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], float]:
    """The weights, the p-value of each, and that of the F-test of all together."""
    rows, columns = x.shape
    inverse = np.linalg.inv(x.T @ x)
    weights = inverse @ x.T @ y
    rest = float(((y - x @ weights) ** 2).sum()) / (rows - columns)
    each = 2 * stats.t.sf(np.abs(weights) / np.sqrt(rest * np.diag(inverse)), rows - columns)
    explained = float(((x @ weights) ** 2).sum()) / columns
    return weights, each, float(stats.f.sf(explained / rest, columns, rows - columns))


@pytest.mark.slow
def test_freedman_a_model_of_the_best_looking_regressors_is_significant_and_ours_is_not() -> None:
    rows, regressors = 1000, 500
    draw = np.random.default_rng(4)
    train, test = ({"x": draw.normal(size=(rows, regressors)), "y": draw.normal(size=rows)} for _ in range(2))
    _, each, first = least_squares(train["x"], train["y"])
    kept = np.flatnonzero(each < 0.25)
    weights, again, refitted = least_squares(train["x"][:, kept], train["y"])
    assert first > 0.01  # all of them together: nothing is found
    assert refitted < 1e-4  # the best of them: a finding
    assert (again < 0.05).sum() > 0.2 * len(kept)

    # Our way: each regressor's sign, and then the model, are checked on rows that stay fresh.
    guarded = holdout(train, test, queries=regressors + 1, overfits=2, unprotected=True)
    told = [guarded.check(lambda r, j=j: (r["x"][:, j] > 0) == (r["y"] > 0)) for j in range(regressors)]
    assert all(one.interval[0] <= CHANCE <= one.interval[1] for one in told)
    model = guarded.check(lambda r: (r["x"][:, kept] @ weights > 0) == (r["y"] > 0))
    on_train = float(((train["x"][:, kept] @ weights > 0) == (train["y"] > 0)).mean())
    assert model.interval[0] <= CHANCE <= model.interval[1] < on_train  # not rejected, and the training set is
    assert guarded.width < 0.25


# --- fingerprinting (Hardt-Ullman 2014, Steinke-Ullman 2015) ------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "questions", "least"), [(1000, 1000, 0.3), (4000, 500, 0.1)])
def test_exact_answers_betray_the_sample_and_ours_do_not(rows: int, questions: int, least: float) -> None:
    population, samples = Population.of_noise(questions), []

    def exact(sample: Columns) -> Raw:
        samples.append(sample)
        return Raw(sample, questions=questions + 1)

    def noisy(sample: Columns) -> Study:
        samples.append(sample)
        return study(sample, queries=questions + 1, method="gaussian")

    with testing.frozen(5):
        raw, ours = (play(population, trace, begin, size=rows) for begin in (exact, noisy))
        width = noisy(samples[1]).width
    assert not raw.held
    assert raw.worst == raw.rounds[-1].value - CHANCE > least
    assert ours.held
    assert ours.worst <= width < 1
    # What the last question finds in the sample it was made for, and nowhere else: a fraction of what it was.
    found = float(ours.rounds[-1].question(samples[1]).mean()) - CHANCE
    assert found < raw.worst / 3
