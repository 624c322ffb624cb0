"""Analysis that cannot fool itself: answers to adaptive questions that hold on the population."""

from discreet.adaptive import game
from discreet.adaptive.answers import Answer
from discreet.adaptive.holdouts import Holdout, holdout
from discreet.adaptive.ladder import Leaderboard, leaderboard
from discreet.adaptive.planning import Plan, plan, rows_needed
from discreet.adaptive.scoring import scorer, splitter
from discreet.adaptive.studies import Study, study

__all__ = [
    "Answer",
    "Holdout",
    "Leaderboard",
    "Plan",
    "Study",
    "game",
    "holdout",
    "leaderboard",
    "plan",
    "rows_needed",
    "scorer",
    "splitter",
    "study",
]
