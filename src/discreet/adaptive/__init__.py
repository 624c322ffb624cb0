"""Adaptive analysis: answers that hold on the population, even if a question depends on earlier answers."""

from discreet.adaptive.answers import StudyAnswer
from discreet.adaptive.holdouts import Holdout, holdout
from discreet.adaptive.ladder import Leaderboard, leaderboard
from discreet.adaptive.planning import StudyPlan, plan, rows_needed
from discreet.adaptive.scoring import scorer, splitter
from discreet.adaptive.studies import Study, study

__all__ = [
    "Holdout",
    "Leaderboard",
    "Study",
    "StudyAnswer",
    "StudyPlan",
    "holdout",
    "leaderboard",
    "plan",
    "rows_needed",
    "scorer",
    "splitter",
    "study",
]
