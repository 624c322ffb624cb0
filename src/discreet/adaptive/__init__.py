"""Adaptive analysis: answers that hold on the population, even if a question depends on earlier answers."""

from discreet.adaptive.answers import StudyAnswer
from discreet.adaptive.holdouts import Holdout, holdout
from discreet.adaptive.ladder import Leaderboard, leaderboard
from discreet.adaptive.planning import Sizes, StudyPlan, plan, rows_needed
from discreet.adaptive.scoring import Splitter, StudyScorer, scorer, splitter
from discreet.adaptive.studies import Study, study

__all__ = [
    "Holdout",
    "Leaderboard",
    "Sizes",
    "Splitter",
    "Study",
    "StudyAnswer",
    "StudyPlan",
    "StudyScorer",
    "holdout",
    "leaderboard",
    "plan",
    "rows_needed",
    "scorer",
    "splitter",
    "study",
]
