"""Analysis that cannot fool itself: answers to adaptive questions that hold on the population."""

from discreet.adaptive.answers import Answer
from discreet.adaptive.holdout import Holdout, holdout
from discreet.adaptive.leaderboard import Leaderboard, leaderboard
from discreet.adaptive.plan import Plan, plan, rows_needed
from discreet.adaptive.scoring import scorer, splitter
from discreet.adaptive.study import Study, study

__all__ = [
    "Answer",
    "Holdout",
    "Leaderboard",
    "Plan",
    "Study",
    "holdout",
    "leaderboard",
    "plan",
    "rows_needed",
    "scorer",
    "splitter",
    "study",
]
