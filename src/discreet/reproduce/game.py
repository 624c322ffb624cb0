"""The accuracy game: analysts who overfit, and whether all their answers hold on the population.

[L6.GAME] An analyst asks a mechanism that holds a sample one question after another. Each may depend on earlier
answers. Here the population is known exactly, so each answer can be checked: its interval contains the truth or not.

    population = Population.of_noise(50)
    made = play(population, select_features, lambda rows: Raw(rows, questions=51), size=400)
    made.held, made.worst
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from discreet.adaptive.answers import Interval, StudyAnswer
from discreet.adaptive.holdouts import Holdout
from discreet.adaptive.ladder import Leaderboard
from discreet.errors import BudgetExhausted
from discreet.exact import public_draws
from discreet.exact.rational import check_count
from discreet.guarantees.accuracy import check_confidence

__all__ = [
    "Checks", "Game", "GameAnswer", "MeanOracle", "Population", "Raw", "Round", "Submissions", "Vote", "boost", "climb",
    "play", "select_features", "stay_honest", "trace",
]  # fmt: skip

Columns = dict[str, NDArray[Any]]
HALF = Fraction(1, 2)


@dataclass(frozen=True)
class Vote:
    """How well a weighted vote of features predicts the label: 1 if it is right, 0 if it is wrong, ½ for a tie.

    It is a question about each row by itself. `weights` has an integer for each feature.
    """

    weights: tuple[int, ...]

    @classmethod
    def of(cls, weights: Any) -> Self:
        """A vote with these integer weights."""
        return cls(tuple(int(weight) for weight in weights))

    def __call__(self, rows: Any) -> Any:
        return (self.predicted(rows["features"]) * rows["label"] + 1) / 2

    def predicted(self, features: Any) -> Any:
        """The label that each row would have: −1 or 1, or 0 for a tie."""
        used = [place for place, weight in enumerate(self.weights) if weight]
        if len(used) == 1:
            return np.sign(features[:, used[0]] * self.weights[used[0]])
        return np.sign(features @ np.asarray(self.weights, dtype=np.float64))


@dataclass(frozen=True)
class Population:
    """A distribution of rows: the label is a fair coin, −1 or 1, and each feature agrees with it with its own
    probability.

    Given the label, features are independent, so the mean of every `Vote` over the population is known.
    """

    chances: tuple[Fraction, ...]

    @classmethod
    def of_noise(cls, features: int) -> Self:
        """A population in which no feature depends on the label, so every vote is right half of the time."""
        return cls((HALF,) * check_count(features, "features"))

    def sample(self, size: int) -> Columns:
        """`size` independent rows: "features", −1 or 1 each, and "label"."""
        label = 2.0 * public_draws.coins(HALF, check_count(size, "size")) - 1
        agree = np.stack([public_draws.coins(chance, size) for chance in self.chances], axis=1)
        return {"features": (2.0 * agree - 1) * label[:, None], "label": label}

    def mean(self, vote: Vote) -> float:
        """The mean of a vote over the population: a sum over all outcomes of its tally, computed feature by feature."""
        used = [(w, float(c)) for w, c in zip(vote.weights, self.chances, strict=True) if w]
        if all(chance == 0.5 for _, chance in used):
            return 0.5
        law = np.ones(1)  # of the tally, from the smallest one, in steps of 1
        for weight, chance in used:
            up, far = (chance if weight > 0 else 1 - chance), 2 * abs(weight)
            law = np.pad(law, (far, 0)) * up + np.pad(law, (0, far)) * (1 - up)
        middle = len(law) // 2
        return float(law[middle + 1 :].sum() + law[middle] / 2)


Asking = Generator[Vote, float, None]
Analyst = Callable[[int], Asking]
"""An analyst: given the number of features, it yields one question after another, and is sent the answers."""


def stay_honest(features: int) -> Asking:
    """Asks only planned questions: every feature by itself, and the vote of all."""
    yield from _each(features)
    yield Vote((1,) * features)


def select_features(features: int) -> Asking:
    """Asks about every feature, and then about the vote of the better half of them, each with its sign."""
    found = yield from _each(features)
    kept = np.argsort(-np.abs(found), kind="stable")[: max(1, features // 2)]
    weights = np.zeros(features)
    weights[kept] = np.where(found[kept] < 0, -1, 1)
    yield Vote.of(weights)


def boost(features: int) -> Asking:
    """Asks about every feature, and then about the vote of those that are right more than half of the time. This is the
    attack of Blum-Hardt 2015.
    """
    found = yield from _each(features)
    yield Vote.of(found > 0)


def climb(features: int) -> Asking:
    """Adds features to a vote one by one, and keeps each that gives the best answer so far."""
    kept, best = [0] * features, 0.5
    for feature in range(features):
        tried = [*kept[:feature], 1, *kept[feature + 1 :]]
        answer = yield Vote.of(tried)
        if answer > best:
            kept, best = tried, answer
    yield Vote.of(kept)


def trace(features: int) -> Asking:
    """Uses the features as a code that marks every row: asks for the mean of each bit, and then for rows close to the
    answers.

    Rows of the sample are close to them, and others are not. Source: fingerprinting, Steinke-Ullman 2015, in its
    simplest form.
    """
    found = yield from _each(features)
    yield Vote.of(np.rint(found * (20 / max(1e-9, float(np.abs(found).max())))))


def _each(features: int) -> Generator[Vote, float, NDArray[np.float64]]:
    """Asks about each feature by itself, and returns how far each answer was above ½."""
    found = np.empty(features)
    for feature in range(features):
        found[feature] = (yield Vote.of(np.arange(features) == feature)) - 0.5
    return found


ANALYSTS: tuple[Analyst, ...] = (stay_honest, select_features, boost, climb, trace)


@dataclass(frozen=True)
class GameAnswer:
    """A value with its interval. If a leaderboard returns its best result, the answer is `about` another vote than the
    asked one.
    """

    value: float
    interval: Interval
    about: Vote | None = None


class MeanOracle(Protocol):
    """Anything that answers questions about means, such as a `Study`."""

    def mean(self, question: Vote, /) -> GameAnswer | StudyAnswer: ...


class Raw:
    """The naive method: exact means of the sample, with Hoeffding's interval for this many questions that are fixed in
    advance.

    Not private, and wrong as soon as questions depend on answers. It is the baseline.
    """

    def __init__(self, rows: Columns, *, questions: int, confidence: float = 0.95) -> None:
        size, miss = len(rows["label"]), 1 - check_confidence(confidence)
        self.width = math.sqrt(math.log(2 * check_count(questions, "questions") / miss) / (2 * size))
        self._rows = rows

    def mean(self, question: Vote, /) -> GameAnswer:
        value = float(np.mean(question(self._rows)))
        return GameAnswer(value, (value - self.width, value + self.width))


class Checks:
    """A holdout as a mechanism: each question is one check."""

    def __init__(self, holdout: Holdout) -> None:
        self._holdout = holdout

    def mean(self, question: Vote, /) -> StudyAnswer:
        return self._holdout.check(question)


class Submissions:
    """A leaderboard of `(label + 1) / 2`, with the "absolute" loss, as a mechanism: each vote is a submission.

    The answer is 1 minus the loss. It is about the best vote so far if the board shows no other.
    """

    def __init__(self, board: Leaderboard, features: NDArray[Any]) -> None:
        self._board, self._features = board, features
        self._best: Vote | None = None

    def mean(self, question: Vote, /) -> GameAnswer:
        score = self._board.submit((question.predicted(self._features) + 1) / 2)
        self._best = question if score.agrees else self._best
        low, high = score.interval
        return GameAnswer(1 - score.value, (1 - high, 1 - low), about=self._best)


@dataclass(frozen=True)
class Round:
    """One question, its answer, and the true mean of what the answer is about."""

    question: Vote
    value: float
    interval: Interval
    truth: float

    @property
    def held(self) -> bool:
        """Whether the interval contains the truth."""
        return self.interval[0] <= self.truth <= self.interval[1]


@dataclass(frozen=True)
class Game:
    """All questions and answers of one game."""

    rounds: tuple[Round, ...]

    @property
    def held(self) -> bool:
        """Whether all intervals contain the truth. This is promised, except with the small probability of the study."""
        return all(one.held for one in self.rounds)

    @property
    def worst(self) -> float:
        """The largest error of all."""
        return max((abs(one.value - one.truth) for one in self.rounds), default=0.0)


def play(population: Population, analyst: Analyst, begin: Callable[[Columns], MeanOracle], *, size: int) -> Game:
    """Draw `size` rows, `begin` a mechanism on them, and let the analyst ask until the analyst or the mechanism
    ends.
    """
    mechanism, asking, rounds = begin(population.sample(size)), analyst(len(population.chances)), []
    try:
        vote = next(asking)
        while True:
            said = mechanism.mean(vote)
            about = said.about if isinstance(said, GameAnswer) and said.about is not None else vote
            rounds.append(Round(vote, said.value, said.interval, population.mean(about)))
            vote = asking.send(said.value)
    except (StopIteration, BudgetExhausted):
        return Game(tuple(rounds))
