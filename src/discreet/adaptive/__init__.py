"""Analysis that cannot fool itself: answers to adaptive questions that hold on the population."""

from discreet.adaptive.answers import Answer
from discreet.adaptive.holdout import Holdout, holdout
from discreet.adaptive.leaderboard import Leaderboard, leaderboard
from discreet.adaptive.scoring import scorer, splitter
from discreet.adaptive.study import Study, study

__all__ = [
    "Answer",
    "Holdout",
    "Leaderboard",
    "Study",
    "holdout",
    "leaderboard",
    "scorer",
    "splitter",
    "study",
]
