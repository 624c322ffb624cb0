"""Private SQL: from text to a plan in which every row belongs to one person, and from the plan to noisy answers."""

from typing import TYPE_CHECKING

from discreet.exports import lazily

_LATER = {
    "Answer": "running.answer",
    "AnswerColumn": "running.answer",
    "AnswerRules": "estimates.rules",
    "Explanation": "running.explanation",
    "Plan": "plan",
}

if TYPE_CHECKING:
    from discreet.sql.estimates.rules import AnswerRules
    from discreet.sql.plan import Plan
    from discreet.sql.running.answer import Answer, AnswerColumn
    from discreet.sql.running.explanation import Explanation
else:
    __getattr__, __dir__ = lazily(__name__, _LATER)

__all__ = [
    "Answer",
    "AnswerColumn",
    "AnswerRules",
    "Explanation",
    "Plan",
]
