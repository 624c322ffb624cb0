"""Private SQL: from text to a plan in which every row belongs to one person, and from the plan to noisy answers."""

from typing import TYPE_CHECKING

from discreet.exports import lazily

_LATER = {
    "Answer": "running.answer",
    "Column": "schema",
    "Explanation": "running.explanation",
    "Plan": "plan",
    "Schema": "schema",
    "Table": "schema",
}

if TYPE_CHECKING:
    from discreet.sql.plan import Plan
    from discreet.sql.running.answer import Answer
    from discreet.sql.running.explanation import Explanation
    from discreet.sql.schema import Column, Schema, Table
else:
    __getattr__, __dir__ = lazily(__name__, _LATER)

__all__ = [
    "Answer",
    "Column",
    "Explanation",
    "Plan",
    "Schema",
    "Table",
]
